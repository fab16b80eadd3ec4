/*
 * The file as bytes: what load's tests read without running anything.
 */
#ifndef TN_CHECK_IMAGE_H
#define TN_CHECK_IMAGE_H

#include <elf.h>

#include "internal.h"

typedef struct chk_elf {
    chk_env *env;
    unsigned char *bytes; /* the whole file */
    uint64_t size;
    const Elf64_Ehdr *header;
    const Elf64_Phdr *segments;
    const Elf64_Sym *symbols; /* the dynamic ones */
    uint64_t symbol_count;
    const char *texts;
    uint64_t text_bytes;
    const Elf64_Dyn *dynamic; /* DT_NULL-ended */
} chk_elf;

/* Reads env's file; fails the case (rule "load") where it is no whole ELF file of this machine. */
chk_elf *chk_elf_open(chk_env *env);
void chk_elf_close(chk_elf *e);
/* A text of the dynamic string table; fails the case where it lies outside. */
const char *chk_elf_text(const chk_elf *e, uint64_t at);
/* Value of the dynamic entry `tag`; false: there is none. */
bool chk_elf_dynamic(const chk_elf *e, int64_t tag, uint64_t *value);
/* `bytes` bytes of the file by the address they get when loaded, or NULL. */
const void *chk_elf_at(const chk_elf *e, uint64_t address, uint64_t bytes);
/* The Tenon note; false: there is none. Its list ends within the file. */
typedef struct chk_note {
    const tn_note_body *body;
    const char *provides;
    uint64_t provides_bytes; /* with the NUL */
} chk_note;
bool chk_elf_note(const chk_elf *e, chk_note *out);

#endif
