/*
 * The file as bytes: what load's tests read without running anything. The core's own reader of ELF files
 * (core/plugin/elf.h) does the reading, and trusts no number in them.
 */
#ifndef TN_CHECK_IMAGE_H
#define TN_CHECK_IMAGE_H

#include "internal.h"
#include "plugin/elf.h"

typedef struct chk_elf {
    chk_env *env;
    tni_elf_window window;
    tni_elf file;
    tni_link link;
    uint64_t dynamic, dynamic_count; /* where its entries lie in the file */
    uint64_t symbol_count;           /* dynamic ones */
} chk_elf;

/* One dynamic symbol; its name is valid until the next call. */
typedef struct chk_symbol {
    Elf64_Sym sym;
    const char *name;
} chk_symbol;

/* Reads env's file; fails the case (rule "load") where it is no whole ELF file of this machine. */
chk_elf *chk_elf_open(chk_env *env);
void chk_elf_close(chk_elf *e);
/* What the core says of the file, of which `st` is the answer: fails the case unless that is TN_OK. */
void chk_elf_must(const chk_elf *e, const char *rule, tn_status st);
chk_symbol chk_elf_symbol(const chk_elf *e, uint64_t index);
/* A text of the dynamic string table, valid until the next call. */
const char *chk_elf_text(const chk_elf *e, uint64_t at);
/* Value of the `nth` dynamic entry `tag`, from 0; false: there is none. */
bool chk_elf_dynamic(const chk_elf *e, int64_t tag, uint32_t nth, uint64_t *value);

#endif
