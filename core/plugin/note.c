/*
 * Reads a plugin's ELF note without running anything of it: ELF header, program headers, the PT_NOTE
 * segments, the dynamic section's flags. Every byte comes through tni_elf_read, which knows the size of the
 * file; counts that the file states have limits of their own. The text `provides`, of at most 64 KiB, is all
 * that is allocated.
 *
 * Layouts: System V ABI, chapters "ELF Header", "Program Header", "Note Section"; gABI for DF_STATIC_TLS.
 */
#include <string.h>
#include <sys/stat.h>

#include "plugin/elf.h"

#define NOTES_MAX 64u     /* notes in one segment */
#define BUILD_ID_MAX 32u  /* bytes */
#define DYNAMIC_MAX 4096u /* entries of the dynamic section */

typedef struct segment {
    uint64_t offset, size, align;
} segment;

/* True if `text` of `size` bytes ends in NUL and holds nothing but printable ASCII. */
static bool text_valid(const char *text, size_t size)
{
    size_t length = strnlen(text, size);

    for (size_t i = 0; i < length; i++)
        if (text[i] < 0x20 || text[i] > 0x7e)
            return false;
    return length < size;
}

static bool utf8_text_valid(const char *text, size_t size)
{
    size_t length = strnlen(text, size);

    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return length < size;
}

static bool name_valid(const char *name)
{
    if (!((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= '0' && name[0] <= '9')))
        return false;
    for (; *name; name++)
        if (!((*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9') || *name == '-' ||
              *name == '_'))
            return false;
    return true;
}

tn_status tni_note_check_texts(const tn_note_body *b)
{
    if (!text_valid(b->name, sizeof b->name) || !name_valid(b->name))
        return tni_refuse(3, TN_E_FORMAT, "the note's name is not made of a-z, 0-9, - and _");
    if (!text_valid(b->version, sizeof b->version) || !text_valid(b->tag, sizeof b->tag) ||
        !text_valid(b->isa, sizeof b->isa) || !text_valid(b->license, sizeof b->license) ||
        !utf8_text_valid(b->vendor, sizeof b->vendor) || !utf8_text_valid(b->summary, sizeof b->summary))
        return tni_refuse(3, TN_E_FORMAT, "a text of the note does not end or holds control characters");
    return TN_OK;
}

void tni_note_clear(tni_note *note)
{
    tni_free(note->provides);
    *note = (tni_note){0};
}

/* The text behind the body. Notes of other drafts are refused later, by what the body says; their lists are
 * read where ours would lie, for the message about an operator that they would give. */
static tn_status provides_take(const tni_elf *src, uint64_t at, uint64_t size, tni_note *out)
{
    const bool ours = out->body.magic == TN_MAGIC;
    const uint64_t begin = ours ? out->body.struct_size : sizeof out->body, count = size - begin;
    tn_status st;

    if (begin < sizeof out->body || begin >= size || count > TN_NOTE_PROVIDES_MAX)
        return ours ? tni_refuse(
                          3, TN_E_FORMAT,
                          "the note has %llu bytes and a body of %llu; the body has at least %zu, and 1 "
                          "to %d bytes follow",
                          (unsigned long long)size, (unsigned long long)begin, sizeof out->body,
                          TN_NOTE_PROVIDES_MAX)
                    : TN_OK;
    if (!(out->provides = tni_alloc(count)))
        return TN_E_NOMEM;
    if ((st = tni_elf_read(src, at + begin, out->provides, count)))
        return st;
    if (text_valid(out->provides, count))
        return TN_OK;
    if (ours)
        return tni_refuse(3, TN_E_FORMAT, "`provides` of the note does not end or holds control characters");
    out->provides[0] = '\0';
    return TN_OK;
}

static tn_status body_take(const tni_elf *src, uint64_t at, uint64_t size, tni_note *out)
{
    tn_status st;

    if (out->body.struct_size)
        return tni_refuse(3, TN_E_FORMAT, "the file holds two Tenon notes");
    if (size < sizeof out->body)
        return tni_refuse(3, TN_E_FORMAT, "the Tenon note has %llu bytes, at least %zu are needed",
                          (unsigned long long)size, sizeof out->body);
    if ((st = tni_elf_read(src, at, &out->body, sizeof out->body)) || (st = tni_note_check_texts(&out->body)))
        return st;
    if (!out->body.struct_size)
        return tni_refuse(3, TN_E_FORMAT, "the Tenon note says that it has 0 bytes");
    return provides_take(src, at, size, out);
}

static tn_status build_id_take(const tni_elf *src, uint64_t at, uint64_t size, tni_note *out)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char bytes[BUILD_ID_MAX];
    tn_status st = size <= sizeof bytes ? tni_elf_read(src, at, bytes, size) : TN_OK;

    if (st || size > sizeof bytes)
        return st;
    for (uint64_t i = 0; i < size; i++) {
        out->build_id[2 * i] = digits[bytes[i] >> 4];
        out->build_id[2 * i + 1] = digits[bytes[i] & 15];
    }
    out->build_id[2 * size] = '\0';
    return TN_OK;
}

/* The note at `at` of the segment, and where the next one begins; its size: there is none. Notes of a
 * damaged segment behind the damage are not seen; the linker's own notes are not ours to judge. */
static tn_status note_take(const tni_elf *src, const segment *s, uint64_t *at, tni_note *out)
{
    const uint64_t align = s->align == 8 ? 8 : 4, name = *at + sizeof(Elf64_Nhdr);
    struct {
        Elf64_Nhdr n;
        char owner[8];
    } head = {0};
    uint64_t body, next;
    const uint64_t left = s->size - *at;
    tn_status st =
        tni_elf_read(src, s->offset + *at, &head, left < sizeof head ? sizeof head.n : sizeof head);

    if (st)
        return st;
    body = (name + head.n.n_namesz + align - 1) & ~(align - 1); /* 32-bit sizes: no overflow in 64 bits */
    next = (body + head.n.n_descsz + align - 1) & ~(align - 1);
    *at = next < s->size ? next : s->size;
    if (body > s->size || head.n.n_descsz > s->size - body) {
        *at = s->size;
        return TN_OK;
    }
    if (head.n.n_type == TN_NOTE_TYPE && head.n.n_namesz == sizeof TN_NOTE_OWNER &&
        memcmp(head.owner, TN_NOTE_OWNER, sizeof TN_NOTE_OWNER) == 0)
        return body_take(src, s->offset + body, head.n.n_descsz, out);
    if (head.n.n_type == NT_GNU_BUILD_ID && head.n.n_namesz == 4 && memcmp(head.owner, "GNU", 4) == 0)
        return build_id_take(src, s->offset + body, head.n.n_descsz, out);
    return TN_OK;
}

static tn_status notes_read(const tni_elf *src, const segment *s, tni_note *out)
{
    uint64_t at = 0;
    tn_status st = TN_OK;

    if (s->offset > src->size || s->size > src->size - s->offset)
        return tni_refuse(3, TN_E_FORMAT, "the file ends inside its notes");
    for (uint32_t i = 0; i < NOTES_MAX && s->size - at >= sizeof(Elf64_Nhdr) && !st; i++)
        st = note_take(src, s, &at, out);
    return st;
}

static tn_status dynamic_read(const tni_elf *src, const segment *s, tni_note *out)
{
    uint64_t count = s->size / sizeof(Elf64_Dyn);

    for (uint64_t i = 0; i < count && i < DYNAMIC_MAX; i++) {
        Elf64_Dyn entry;
        tn_status st = tni_elf_read(src, s->offset + i * sizeof entry, &entry, sizeof entry);

        if (st)
            return st;
        if (entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_STATIC_TLS))
            out->flags |= TNI_NOTE_STATIC_TLS;
    }
    return TN_OK;
}

static tn_status source_note(const tni_elf *src, tni_note *out)
{
    Elf64_Ehdr header;
    tni_note note = {0};
    tn_status st = tni_elf_header(src, &header);

    for (uint32_t i = 0; !st && i < header.e_phnum; i++) {
        Elf64_Phdr p;
        segment s;
        uint64_t at;

        if (__builtin_add_overflow(header.e_phoff, i * sizeof p, &at))
            st = tni_refuse(3, TN_E_FORMAT, "the file ends inside its own tables");
        else
            st = tni_elf_read(src, at, &p, sizeof p);
        if (st)
            break;
        s = (segment){.offset = p.p_offset, .size = p.p_filesz, .align = p.p_align};
        if (p.p_type == PT_NOTE)
            st = notes_read(src, &s, &note);
        else if (p.p_type == PT_DYNAMIC)
            st = dynamic_read(src, &s, &note);
    }
    if (!st && !note.body.struct_size)
        st = tni_refuse(3, TN_E_FORMAT, "the file holds no Tenon note");
    if (st)
        tni_note_clear(&note);
    else
        *out = note;
    return st;
}

tn_status tni_note_read_memory(const void *bytes, uint64_t count, const char *name, tni_note *out)
{
    const tni_elf src = {.name = name, .bytes = bytes, .fd = -1, .size = count};

    return source_note(&src, out);
}

tn_status tni_note_read(int fd, const char *name, tni_note *out)
{
    tni_elf_window window = {0};
    tni_elf src = {.name = name, .fd = fd, .window = &window};
    struct stat info;

    if (fstat(fd, &info) || !S_ISREG(info.st_mode))
        return tni_refuse(1, TN_E_ARG, "%s is no regular file", name);
    src.size = (uint64_t)info.st_size;
    return source_note(&src, out);
}

/* The name of an item, of `length` bytes: "acme_fft", or "acme_*" for all that begin so. */
static bool name_is(const char *item, size_t length, const char *id, bool prefixes)
{
    if (prefixes && length && item[length - 1] == '*')
        return strncmp(item, id, length - 1) == 0;
    return strlen(id) == length && strncmp(item, id, length) == 0;
}

bool tni_note_provides(const tni_note *note, const char *kind, const char *id)
{
    const bool prefixes = strcmp(kind, "op") == 0;
    const char *at = note->provides ? note->provides : "";
    size_t kind_length = strlen(kind);

    while (*at) {
        size_t length = strcspn(at, " ");
        bool divided = length > kind_length && (at[kind_length] == '@' || at[kind_length] == ':');

        if (length >= kind_length && strncmp(at, kind, kind_length) == 0 &&
            (divided || length == kind_length)) {
            size_t rest = divided ? length - kind_length - 1 : 0;

            if (!id || name_is(at + length - rest, rest, id, prefixes))
                return true;
        }
        at += length + strspn(at + length, " ");
    }
    return false;
}
