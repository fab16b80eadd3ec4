/*
 * Symbols and dynamic entries of a file. Symbols are found through the dynamic segment, as the linker finds
 * them, since sections may be stripped.
 */
#include "image.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYMBOLS_MAX ((uint64_t)1 << 24)
#define SHORT_BYTES 512u /* read at once of a name; few are longer */

void chk_elf_must(const chk_elf *e, const char *rule, tn_status st)
{
    if (st)
        chk_fail(e->env, rule, "%s", tni_error_message());
}

static void bytes_read(const chk_elf *e, uint64_t at, void *out, uint64_t count)
{
    chk_elf_must(e, "load", tni_elf_read(&e->file, at, out, count));
}

bool chk_elf_dynamic(const chk_elf *e, int64_t tag, uint32_t nth, uint64_t *value)
{
    for (uint64_t i = 0; i < e->dynamic_count; i++) {
        Elf64_Dyn d;

        bytes_read(e, e->dynamic + i * sizeof d, &d, sizeof d);
        if (d.d_tag == DT_NULL)
            return false;
        if (d.d_tag == tag && !nth--) {
            *value = d.d_un.d_val;
            return true;
        }
    }
    return false;
}

const char *chk_elf_text(const chk_elf *e, uint64_t at)
{
    static char text[1 << 16];

    if (tni_link_text(&e->file, &e->link, at, text, SHORT_BYTES))
        chk_elf_must(e, "load", tni_link_text(&e->file, &e->link, at, text, sizeof text));
    return text;
}

chk_symbol chk_elf_symbol(const chk_elf *e, uint64_t index)
{
    chk_symbol s;

    bytes_read(e, e->link.symbols + index * sizeof s.sym, &s.sym, sizeof s.sym);
    s.name = chk_elf_text(e, s.sym.st_name);
    return s;
}

/* How many there are only the hash tables know: of DT_GNU_HASH the end of the last chain. */
static uint64_t symbols_count(const chk_elf *e)
{
    uint32_t head[4], word = 0, last = 0;
    uint64_t buckets = e->link.gnu_hash + sizeof head;

    if (!e->link.gnu_hash) {
        if (!e->link.hash)
            chk_fail(e->env, "load", "the file has no table of dynamic symbols");
        bytes_read(e, e->link.hash, head, 8);
        return head[1];
    }
    bytes_read(e, e->link.gnu_hash, head, sizeof head);
    buckets += 8 * (uint64_t)head[2];
    for (uint64_t i = 0; i < head[0]; i++) {
        bytes_read(e, buckets + 4 * i, &word, sizeof word);
        last = word > last ? word : last;
    }
    if (last < head[1])
        return head[1];
    for (word = 0; !(word & 1u); last++)
        bytes_read(e, buckets + 4 * ((uint64_t)head[0] + (last - head[1])), &word, sizeof word);
    return last;
}

chk_elf *chk_elf_open(chk_env *env)
{
    chk_elf *e = calloc(1, sizeof *e);
    struct stat info;

    chk_fail_if(env, !e, "kit", "out of memory");
    *e = (chk_elf){.env = env, .file = {.name = env->file, .fd = open(env->file, O_RDONLY | O_CLOEXEC)}};
    if (e->file.fd < 0 || fstat(e->file.fd, &info) || !S_ISREG(info.st_mode))
        chk_fail(env, "load", "no regular file that can be read");
    e->file.size = (uint64_t)info.st_size;
    e->file.window = &e->window;
    chk_elf_must(e, "load", tni_link_read(&e->file, &e->link));
    for (uint32_t i = 0; i < e->link.segments.count && !e->dynamic; i++)
        if (e->link.segments.item[i].p_type == PT_DYNAMIC) {
            e->dynamic = e->link.segments.item[i].p_offset;
            e->dynamic_count = e->link.segments.item[i].p_filesz / sizeof(Elf64_Dyn);
        }
    e->symbol_count = symbols_count(e);
    if (e->symbol_count > SYMBOLS_MAX)
        chk_fail(env, "load", "the file has over %llu dynamic symbols", (unsigned long long)SYMBOLS_MAX);
    return e;
}

void chk_elf_close(chk_elf *e)
{
    if (e)
        (void)close(e->file.fd);
    free(e);
}
