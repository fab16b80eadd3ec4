/*
 * A reader of ELF files that trusts no number in them: every offset is checked against the size of the file.
 * Symbols are found through the dynamic segment, as the linker finds them, since sections may be stripped.
 */
#include "image.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((uint64_t)1 << 31)
#define DYNAMIC_MAX 4096u /* entries; a file has a few dozen */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

static const void *piece(const chk_elf *e, uint64_t offset, uint64_t bytes)
{
    return offset <= e->size && bytes <= e->size - offset ? e->bytes + offset : NULL;
}

const void *chk_elf_at(const chk_elf *e, uint64_t address, uint64_t bytes)
{
    for (uint16_t i = 0; i < e->header->e_phnum; i++) {
        const Elf64_Phdr *p = &e->segments[i];

        if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr <= p->p_filesz &&
            bytes <= p->p_filesz - (address - p->p_vaddr))
            return piece(e, p->p_offset + (address - p->p_vaddr), bytes);
    }
    return NULL;
}

bool chk_elf_dynamic(const chk_elf *e, int64_t tag, uint64_t *value)
{
    for (const Elf64_Dyn *d = e->dynamic; d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag) {
            *value = d->d_un.d_val;
            return true;
        }
    return false;
}

const char *chk_elf_text(const chk_elf *e, uint64_t at)
{
    if (at >= e->text_bytes || !memchr(e->texts + at, '\0', e->text_bytes - at))
        chk_fail(e->env, "load", "a name lies outside the file's string table");
    return e->texts + at;
}

/* ---- how many dynamic symbols there are: only the hash tables know ---- */

static bool count_sysv(const chk_elf *e, uint64_t *count)
{
    const uint32_t *table;
    uint64_t at;

    if (!chk_elf_dynamic(e, DT_HASH, &at) || !(table = chk_elf_at(e, at, 8)))
        return false;
    *count = table[1];
    return true;
}

static bool count_gnu(const chk_elf *e, uint64_t *count)
{
    const uint32_t *head, *buckets, *link;
    uint64_t at, chains, last = 0;

    if (!chk_elf_dynamic(e, DT_GNU_HASH, &at) || !(head = chk_elf_at(e, at, 16)))
        return false;
    chains = at + 16 + (uint64_t)head[2] * 8 + (uint64_t)head[0] * 4;
    buckets = chk_elf_at(e, at + 16 + (uint64_t)head[2] * 8, (uint64_t)head[0] * 4);
    if (!buckets)
        return false;
    for (uint32_t i = 0; i < head[0]; i++)
        last = buckets[i] > last ? buckets[i] : last;
    *count = head[1];
    while (last >= head[1]) {
        link = chk_elf_at(e, chains + (last - head[1]) * 4, 4);
        if (!link)
            return false;
        *count = ++last;
        if (*link & 1u)
            break;
    }
    return true;
}

static void symbols_find(chk_elf *e)
{
    uint64_t at, bytes;

    if (!chk_elf_dynamic(e, DT_STRTAB, &at) || !chk_elf_dynamic(e, DT_STRSZ, &bytes) ||
        !(e->texts = chk_elf_at(e, at, bytes)))
        chk_fail(e->env, "load", "the file has no table of dynamic names");
    e->text_bytes = bytes;
    if (!chk_elf_dynamic(e, DT_SYMTAB, &at) ||
        (!count_gnu(e, &e->symbol_count) && !count_sysv(e, &e->symbol_count)) ||
        e->symbol_count > FILE_BYTES_MAX / sizeof *e->symbols ||
        !(e->symbols = chk_elf_at(e, at, e->symbol_count * sizeof *e->symbols)))
        chk_fail(e->env, "load", "the file has no table of dynamic symbols");
}

/* ---- opening ---- */

static void bytes_read(chk_elf *e)
{
    struct stat info;
    int fd = open(e->env->file, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;

    if (fd < 0 || fstat(fd, &info) || !S_ISREG(info.st_mode) || (uint64_t)info.st_size > FILE_BYTES_MAX)
        chk_fail(e->env, "load", "no regular file that can be read");
    e->bytes = malloc((size_t)info.st_size + 1);
    if (!e->bytes)
        chk_fail(e->env, "kit", "out of memory");
    while (e->size < (uint64_t)info.st_size &&
           (n = read(fd, e->bytes + e->size, (size_t)info.st_size - e->size)) > 0)
        e->size += (uint64_t)n;
    (void)close(fd);
}

static void header_check(chk_elf *e)
{
    const Elf64_Ehdr *h = piece(e, 0, sizeof *h);

    if (!h || memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_type != ET_DYN || h->e_machine != MACHINE || h->e_phentsize != sizeof *e->segments)
        chk_fail(e->env, "load", "no ELF shared object of this machine");
    e->header = h;
    e->segments = piece(e, h->e_phoff, (uint64_t)h->e_phnum * sizeof *e->segments);
    if (!e->segments || h->e_phoff % 8)
        chk_fail(e->env, "load", "the table of segments lies outside the file");
}

static void dynamic_find(chk_elf *e)
{
    for (uint16_t i = 0; i < e->header->e_phnum; i++) {
        const Elf64_Phdr *p = &e->segments[i];
        uint64_t count = p->p_filesz / sizeof *e->dynamic;
        const Elf64_Dyn *d = p->p_type == PT_DYNAMIC ? piece(e, p->p_offset, p->p_filesz) : NULL;

        if (!d || p->p_offset % 8 || count > DYNAMIC_MAX)
            continue;
        for (uint64_t k = 0; k < count && !e->dynamic; k++)
            if (d[k].d_tag == DT_NULL)
                e->dynamic = d;
    }
    if (!e->dynamic)
        chk_fail(e->env, "load", "the file has no dynamic segment");
}

chk_elf *chk_elf_open(chk_env *env)
{
    chk_elf *e = calloc(1, sizeof *e);

    if (!e)
        chk_fail(env, "kit", "out of memory");
    e->env = env;
    bytes_read(e);
    header_check(e);
    dynamic_find(e);
    symbols_find(e);
    return e;
}

void chk_elf_close(chk_elf *e)
{
    if (e)
        free(e->bytes);
    free(e);
}

/* ---- notes ---- */

/* A body of `bytes` bytes, and the list behind it. */
static void note_take(const chk_elf *e, uint64_t at, uint64_t bytes, chk_note *out)
{
    const tn_note_body *body = piece(e, at, bytes);
    const uint64_t begin = body ? body->struct_size : 0;

    if (!body)
        chk_fail(e->env, "load", "the Tenon note lies outside the file");
    if (body->magic != TN_MAGIC) /* another draft: the descriptor says so, too */
        chk_fail(e->env, "R2", "the note is of another ABI: magic %08x; this kit knows %08x",
                 (unsigned)body->magic, (unsigned)TN_MAGIC);
    if (begin < sizeof *body || begin >= bytes || bytes - begin > TN_NOTE_PROVIDES_MAX)
        chk_fail(
            e->env, "L-note",
            "the note has %llu bytes and a body of %llu; the body has at least %zu, and a list of 1 to %d "
            "bytes follows",
            (unsigned long long)bytes, (unsigned long long)begin, sizeof *body, TN_NOTE_PROVIDES_MAX);
    *out = (chk_note){body, (const char *)body + begin, bytes - begin};
    if (!memchr(out->provides, '\0', out->provides_bytes))
        chk_fail(e->env, "L-note", "`provides` of the note has no end");
}

static bool note_in(const chk_elf *e, uint64_t at, uint64_t end, chk_note *out)
{
    while (at + 12 <= end) {
        const uint32_t *head = piece(e, at, 12);
        uint64_t owner, body;

        if (!head || at % 4)
            return false;
        owner = ((uint64_t)head[0] + 3) / 4 * 4;
        body = ((uint64_t)head[1] + 3) / 4 * 4;
        if (head[2] == TN_NOTE_TYPE && head[0] == sizeof TN_NOTE_OWNER && head[1] >= sizeof(tn_note_body) &&
            piece(e, at + 12, owner + head[1]) && memcmp(e->bytes + at + 12, TN_NOTE_OWNER, head[0]) == 0) {
            note_take(e, at + 12 + owner, head[1], out);
            return true;
        }
        at += 12 + owner + body;
    }
    return false;
}

bool chk_elf_note(const chk_elf *e, chk_note *out)
{
    for (uint16_t i = 0; i < e->header->e_phnum; i++) {
        const Elf64_Phdr *p = &e->segments[i];

        if (p->p_type == PT_NOTE && piece(e, p->p_offset, p->p_filesz) &&
            note_in(e, p->p_offset, p->p_offset + p->p_filesz, out))
            return true;
    }
    return false;
}
