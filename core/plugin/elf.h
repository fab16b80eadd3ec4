/* Reading ELF files without loading them: elf.c bytes and header, note.c notes, link.c what the linker needs,
 * quiet.c what it would run. */
#ifndef TN_PLUGIN_ELF_H
#define TN_PLUGIN_ELF_H

#include <elf.h>

#include "plugin/internal.h"

#define TNI_ELF_SEGMENTS_MAX 128u /* a shared object has about a dozen */
#define TNI_ELF_NEEDED_MAX 64u    /* libraries that one file names */

typedef struct tni_elf_window { /* bytes of the file that were read last */
    uint64_t at, count;
    unsigned char bytes[4096];
} tni_elf_window;

typedef struct tni_elf {
    const char *name;
    const unsigned char *bytes; /* NULL: fd */
    int fd;
    uint64_t size;
    tni_elf_window *window; /* NULL: none */
} tni_elf;

/* TN_OK: all `count` bytes; else L03. */
tn_status tni_elf_read(const tni_elf *s, uint64_t at, void *out, uint64_t count);
/* A shared object of this class and byte order with a sane table of segments; L03, L04. */
tn_status tni_elf_header(const tni_elf *src, Elf64_Ehdr *h);

typedef struct tni_segments {
    uint32_t count;
    Elf64_Phdr item[TNI_ELF_SEGMENTS_MAX];
} tni_segments;

/* What the dynamic section says; offsets are those of the file, 0: not there. */
typedef struct tni_link {
    Elf64_Ehdr header;
    tni_segments segments;
    uint64_t strings, strings_size; /* DT_STRTAB */
    uint64_t symbols;               /* DT_SYMTAB */
    uint64_t gnu_hash, hash;
    uint64_t init_array, init_count;        /* DT_INIT_ARRAY: an address, not an offset */
    uint64_t relocations, relocation_count; /* DT_RELA */
    uint64_t run_path;                      /* in the strings; 0: none */
    uint32_t needed_count;
    uint64_t needed[TNI_ELF_NEEDED_MAX]; /* in the strings */
} tni_link;

/* L03: tables that lie outside the file, or segments that the file does not hold; L04: another machine. */
tn_status tni_link_read(const tni_elf *e, tni_link *out);
/* A text of the string table; L03: it has no end, or is longer than `size`. */
tn_status tni_link_text(const tni_elf *e, const tni_link *l, uint64_t at, char *out, size_t size);
/* TN_OK: the file itself defines the data symbol `name`, and the linker would find it; else L12. */
tn_status tni_link_defines(const tni_elf *e, const tni_link *l, const char *name);
/* quiet.c: TN_OK if nothing of the file runs by being mapped but what compilers put into every one; else L19.
 * Files for sanitizers and coverage are exempt. */
tn_status tni_link_quiet(const tni_elf *e, const tni_link *l);
bool tni_link_instrumented(const tni_elf *e, const tni_link *l); /* built for those */
/* The place in the file of `address`, with at least `bytes` behind it in the same segment; L03. */
tn_status tni_link_address(const tni_link *l, uint64_t address, uint64_t bytes, uint64_t *out);
/* "liba.so.1, libb.so" of what it needs. */
void tni_link_needed(const tni_elf *e, const tni_link *l, char *out, size_t size);

/* libraries.c: where the linker would find the library `name` for a file in `folder` with this DT_RUNPATH
 * ("": none). False: nowhere. Only files for this machine count. */
bool tni_library_find(const char *name, const char *folder, const char *run_path, char *out, size_t size);

#endif
