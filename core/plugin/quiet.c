/*
 * What a file would run by being mapped. A plugin's code begins with its init (rule R8): a constructor that
 * crashes would take the program with it before anything could be said. Compilers put one function of their
 * own into each shared object, and one more where __builtin_cpu_supports is used; a file with others is
 * refused (L19). Sanitizers and coverage bring constructors, too: files built for them are exempt.
 *
 * Layouts: System V ABI, chapters "Dynamic Section" (DT_INIT_ARRAY), "Relocation", "Symbol Table".
 */
#include <stddef.h>
#include <string.h>

#include "plugin/elf.h"

#define FUNCTIONS_MAX 64u      /* more than that are not the compiler's */
#define CPUID_WITHIN 128u      /* bytes of a function */
#define CHUNK 64u              /* records that are read at once */
#define RECORDS_MAX (1u << 22) /* relocations, symbols */
#define SECTIONS_MAX 4096u

/* What each slot of the array will hold: the addend of its relocation, or its bytes as they are. */
static tn_status slots_read(const tni_elf *e, const tni_link *l, uint64_t value[FUNCTIONS_MAX])
{
    Elf64_Rela chunk[CHUNK];
    uint64_t at;
    tn_status st = tni_link_address(l, l->init_array, 8 * l->init_count, &at);

    if (st || (st = tni_elf_read(e, at, value, 8 * l->init_count)))
        return st;
    for (uint64_t i = 0; i < l->relocation_count && i < RECORDS_MAX; i += CHUNK) {
        const uint64_t left = l->relocation_count - i, count = left < CHUNK ? left : CHUNK;

        if ((st = tni_elf_read(e, l->relocations + i * sizeof *chunk, chunk, count * sizeof *chunk)))
            return st;
        for (uint64_t k = 0; k < count; k++) {
            const uint64_t slot = (chunk[k].r_offset - l->init_array) / 8;

            if (chunk[k].r_offset >= l->init_array && slot < l->init_count)
                value[slot] = (uint64_t)chunk[k].r_addend;
        }
    }
    return TN_OK;
}

/* libgcc asks the processor for its features in a constructor: a function that comes to the instruction cpuid
 * at once. */
static bool asks_processor(const tni_elf *e, const tni_link *l, uint64_t function)
{
    unsigned char code[CPUID_WITHIN];
    uint64_t at;

    if (tni_link_address(l, function, sizeof code, &at) || tni_elf_read(e, at, code, sizeof code))
        return false;
    for (uint32_t i = 0; i + 1 < sizeof code; i++)
        if (code[i] == 0x0f && code[i + 1] == 0xa2)
            return true;
    return false;
}

/* ---- files that bring constructors of their makers ----------------------------------------------------- */

static bool is_mark(const char *name)
{
    static const char *const marks[] = {"__asan_init",      "__tsan_init",    "__gcov_init",
                                        "__llvm_gcov_init", "llvm_gcov_init", "__llvm_profile_",
                                        "__sanitizer_cov"};

    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (strncmp(name, marks[i], strlen(marks[i])) == 0)
            return true;
    return false;
}

/* A table of symbols; `names`: the section of their names. */
static bool symbols_mark(const tni_elf *e, const Elf64_Shdr *table, const Elf64_Shdr *names)
{
    const uint64_t all = table->sh_size / sizeof(Elf64_Sym);
    Elf64_Sym chunk[CHUNK];

    for (uint64_t i = 0; i < all && i < RECORDS_MAX; i += CHUNK) {
        const uint64_t count = all - i < CHUNK ? all - i : CHUNK;

        if (tni_elf_read(e, table->sh_offset + i * sizeof *chunk, chunk, count * sizeof *chunk))
            return false;
        for (uint64_t k = 0; k < count; k++) {
            char name[20] = "";
            const uint64_t left = chunk[k].st_name < names->sh_size ? names->sh_size - chunk[k].st_name : 0;

            if (chunk[k].st_name && left &&
                !tni_elf_read(e, names->sh_offset + chunk[k].st_name, name,
                              left < sizeof name - 1 ? left : sizeof name - 1) &&
                is_mark(name))
                return true;
        }
    }
    return false;
}

/* Sections are for tools: where they are missing or damaged, the file is no such build. */
bool tni_link_instrumented(const tni_elf *e, const tni_link *l)
{
    const Elf64_Ehdr *h = &l->header;
    bool found = false;

    for (uint32_t i = 0; i < h->e_shnum && i < SECTIONS_MAX && !found; i++) {
        Elf64_Shdr table, names;

        if (h->e_shentsize != sizeof table || h->e_shoff > e->size ||
            tni_elf_read(e, h->e_shoff + i * sizeof table, &table, sizeof table))
            break;
        if ((table.sh_type == SHT_SYMTAB || table.sh_type == SHT_DYNSYM) && table.sh_link < h->e_shnum &&
            !tni_elf_read(e, h->e_shoff + table.sh_link * sizeof names, &names, sizeof names))
            found = symbols_mark(e, &table, &names);
    }
    return found;
}

tn_status tni_link_quiet(const tni_elf *e, const tni_link *l)
{
    uint64_t value[FUNCTIONS_MAX], own = l->init_count;
    tn_status st = TN_OK;
    tn_err before;

    if (own <= 1)
        return TN_OK;
    tni_error_get(&before); /* what is looked for and not found is no error */
    if (own <= FUNCTIONS_MAX) {
        if ((st = slots_read(e, l, value)))
            return st;
        for (uint64_t i = 0; i < l->init_count; i++)
            own -= asks_processor(e, l, value[i]);
    }
    if (own <= 1 || tni_link_instrumented(e, l)) {
        tni_error_set(&before);
        return TN_OK;
    }
    return tni_refuse(
        19, TN_E_UNSUPPORTED,
        "%.200s would run %llu functions by being opened (constructors), beside the compiler's own", e->name,
        (unsigned long long)(own - 1));
}
