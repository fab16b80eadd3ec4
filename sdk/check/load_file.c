/*
 * Group load: what the file is, read as bytes. Nothing of it runs.
 */
#include <stdlib.h>
#include <string.h>

#include "image.h"

#define CPUID_WITHIN 128u    /* bytes */
#define FUNCTIONS_MAX 65536u /* constructors */

/* Symbols that a linker adds by itself, in some versions. */
static bool is_linkers(const char *name)
{
    static const char *const names[] = {"_init", "_fini", "_edata", "_end", "__bss_start"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

void chk_load_one_export(chk_env *env)
{
    chk_elf *e = chk_elf_open(env);
    bool found = false;

    for (uint64_t i = 1; i < e->symbol_count; i++) {
        const Elf64_Sym *s = &e->symbols[i];
        const char *name = chk_elf_text(e, s->st_name);
        uint32_t bind = ELF64_ST_BIND(s->st_info), type = ELF64_ST_TYPE(s->st_info);

        if (s->st_shndx == SHN_UNDEF || bind == STB_LOCAL || s->st_shndx == SHN_ABS)
            continue;
        chk_count(env);
        if (strcmp(name, "tn_plugin_v1") == 0) {
            found = true;
            if (type != STT_OBJECT)
                chk_fail(env, "R7", "tn_plugin_v1 is no data symbol");
        } else if (bind == STB_GNU_UNIQUE) {
            chk_fail(env, "R7", "%s is STB_GNU_UNIQUE: one copy for all plugins", name);
        } else if (!is_linkers(name)) {
            chk_fail(env, "R7",
                     "exports %s beside tn_plugin_v1; link with -fvisibility=hidden and tenon-plugin.map",
                     name);
        }
    }
    if (!found)
        chk_fail(env, "R7", "does not export tn_plugin_v1");
    chk_elf_close(e);
}

void chk_load_no_core(chk_env *env)
{
    chk_elf *e = chk_elf_open(env);

    for (uint64_t i = 1; i < e->symbol_count; i++) {
        const Elf64_Sym *s = &e->symbols[i];
        const char *name = chk_elf_text(e, s->st_name);

        chk_count(env);
        if (s->st_shndx == SHN_UNDEF && (strncmp(name, "tn_", 3) == 0 || strncmp(name, "tni_", 4) == 0))
            chk_fail(env, "R7", "needs the symbol %s: a plugin reaches the host through its tables only",
                     name);
    }
    chk_elf_close(e);
}

/* ---- segments and flags ---- */

void chk_load_segments(chk_env *env)
{
    chk_elf *e = chk_elf_open(env);
    uint64_t value;

    for (uint16_t i = 0; i < e->header->e_phnum; i++) {
        const Elf64_Phdr *p = &e->segments[i];

        if (p->p_type == PT_GNU_STACK && (p->p_flags & PF_X))
            chk_fail(env, NULL, "asks for an executable stack; link with -Wl,-z,noexecstack");
        if (p->p_type == PT_LOAD && (p->p_flags & PF_W) && (p->p_flags & PF_X))
            chk_fail(env, NULL, "has a segment that can be written and executed");
        chk_count(env);
    }
    if (chk_elf_dynamic(e, DT_TEXTREL, &value) ||
        (chk_elf_dynamic(e, DT_FLAGS, &value) && (value & DF_TEXTREL)))
        chk_fail(env, NULL, "has relocations in its code (TEXTREL); compile with -fPIC");
    if (chk_elf_dynamic(e, DT_FLAGS, &value) && (value & DF_STATIC_TLS))
        chk_fail(env, NULL,
                 "takes static thread-local memory, of which a process has little; compile without "
                 "-ftls-model=initial-exec");
    chk_elf_close(e);
}

/* Where libraries are looked for: beside the file, or in the system's own folders. */
static void path_check(chk_env *env, const chk_elf *e, int64_t tag)
{
    uint64_t at;
    const char *path;

    if (!chk_elf_dynamic(e, tag, &at))
        return;
    for (path = chk_elf_text(e, at); *path;) {
        size_t length = strcspn(path, ":");

        chk_count(env);
        if (strncmp(path, "$ORIGIN", 7) != 0 && strncmp(path, "${ORIGIN}", 9) != 0 &&
            strncmp(path, "/usr/lib/", 9) != 0 && strncmp(path, "/lib/", 5) != 0)
            chk_fail(env, NULL, "looks for libraries in %.*s; a run path begins with $ORIGIN", (int)length,
                     path);
        path += length + (path[length] == ':');
    }
}

void chk_load_libraries(chk_env *env)
{
    static const struct {
        const char *begin, *why;
    } watched[] = {
        {"libtenon", "a plugin does not link the core"},
        {"libiomp5", "a second OpenMP runtime beside libgomp"},
        {"libomp.", "a second OpenMP runtime beside libgomp"},
        {"libprotobuf.", "its versions clash between plugins: link it statically, with --exclude-libs"},
    };
    chk_elf *e = chk_elf_open(env);

    for (const Elf64_Dyn *d = e->dynamic; d->d_tag != DT_NULL; d++) {
        const char *name = d->d_tag == DT_NEEDED ? chk_elf_text(e, d->d_un.d_val) : "";

        chk_count(env);
        for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
            if (strncmp(name, watched[i].begin, strlen(watched[i].begin)) == 0)
                chk_fail(env, NULL, "needs %s: %s", name, watched[i].why);
        if (strchr(name, '/'))
            chk_fail(env, NULL, "needs %s by its path", name);
    }
    path_check(env, e, DT_RUNPATH);
    path_check(env, e, DT_RPATH);
    chk_elf_close(e);
}

/* Sanitizers and coverage bring constructors of their own. */
static bool is_instrumented(const chk_elf *e)
{
    static const char *const marks[] = {"__asan_init", "__tsan_init", "__gcov_init", "__ubsan_handle",
                                        "__sanitizer_cov"};

    for (uint64_t i = 1; i < e->symbol_count; i++)
        for (size_t k = 0; k < sizeof marks / sizeof *marks; k++)
            if (strncmp(chk_elf_text(e, e->symbols[i].st_name), marks[k], strlen(marks[k])) == 0)
                return true;
    return false;
}

/* What a slot of an array of functions will hold: the addend of its relocation, or, relocated in place, its
 * bytes. */
static uint64_t slot_value(const chk_elf *e, uint64_t slot)
{
    uint64_t at, bytes, value = 0;
    const Elf64_Rela *rela = NULL;
    const void *here = chk_elf_at(e, slot, sizeof value);

    if (chk_elf_dynamic(e, DT_RELA, &at) && chk_elf_dynamic(e, DT_RELASZ, &bytes))
        rela = chk_elf_at(e, at, bytes);
    for (uint64_t i = 0; rela && i < bytes / sizeof *rela; i++)
        if (rela[i].r_offset == slot)
            return (uint64_t)rela[i].r_addend;
    if (here)
        memcpy(&value, here, sizeof value);
    return value;
}

/* libgcc asks the processor for its features in a constructor, wherever __builtin_cpu_supports is used: a
 * function that comes to the instruction cpuid at once. */
static bool asks_processor(const chk_elf *e, uint64_t function)
{
    const unsigned char *code = chk_elf_at(e, function, CPUID_WITHIN);

    for (uint32_t i = 0; code && i + 1 < CPUID_WITHIN; i++)
        if (code[i] == 0x0f && code[i + 1] == 0xa2)
            return true;
    return false;
}

static uint64_t constructors_own(const chk_elf *e)
{
    uint64_t at, bytes, count = 0;

    if (!chk_elf_dynamic(e, DT_INIT_ARRAY, &at) || !chk_elf_dynamic(e, DT_INIT_ARRAYSZ, &bytes))
        return 0;
    for (uint64_t i = 0; i < bytes / sizeof(uint64_t) && i < FUNCTIONS_MAX; i++)
        count += !asks_processor(e, slot_value(e, at + i * sizeof(uint64_t)));
    return count ? count - 1 : 0; /* one is of the compiler's startup file */
}

void chk_load_constructors(chk_env *env)
{
    chk_elf *e = chk_elf_open(env);
    uint64_t bytes;

    if (is_instrumented(e))
        chk_skip(env, "built with a sanitizer or for coverage, which bring constructors");
    chk_count(env);
    if (constructors_own(e))
        chk_fail(env, "R8", "has %llu constructors beside the compiler's own; what they do belongs into init",
                 (unsigned long long)constructors_own(e));
    if (chk_elf_dynamic(e, DT_FINI_ARRAYSZ, &bytes) && bytes > sizeof(uint64_t))
        chk_fail(env, "R8", "has %llu destructors beside the compiler's own; what they do belongs into fini",
                 (unsigned long long)(bytes / sizeof(uint64_t) - 1));
    chk_elf_close(e);
}

/* ---- note and descriptor ---- */

static void text_same(chk_env *env, const char *what, const char *note, size_t bytes, const char *descriptor)
{
    chk_count(env);
    if (!memchr(note, '\0', bytes))
        chk_fail(env, NULL, "%s of the note has no end", what);
    if (!descriptor || strcmp(note, descriptor) != 0)
        chk_fail(env, NULL, "%s is \"%s\" in the note and \"%.100s\" in the descriptor", what, note,
                 descriptor ? descriptor : "(null)");
}

static void number_same(chk_env *env, const char *what, uint32_t note, uint32_t descriptor)
{
    chk_count(env);
    if (note != descriptor)
        chk_fail(env, NULL, "%s is %u in the note and %u in the descriptor", what, (unsigned)note,
                 (unsigned)descriptor);
}

/* True if a word of the list is `item`, or "op:acme_*" where the item begins so. */
static bool word_is(const char *word, size_t length, const char *item)
{
    if (length > 3 && word[length - 1] == '*' && strncmp(word, "op:", 3) == 0)
        return strncmp(word, item, length - 1) == 0;
    return strlen(item) == length && strncmp(word, item, length) == 0;
}

static bool provides(const char *list, const char *item)
{
    for (const char *at = list; *at; at += *at == ' ') {
        const size_t length = strcspn(at, " ");

        if (word_is(at, length, item))
            return true;
        at += length;
    }
    return false;
}

/* What a table must be called in `provides`; "" for kinds that need not be there. */
static void item_of(const tn_capability *c, char *out, size_t bytes)
{
    static const char *const kinds[] = {[TN_KIND_KERNELS] = "kernels@",
                                        [TN_KIND_DEVICE] = "device:",
                                        [TN_KIND_POOL] = "pool:",
                                        [TN_KIND_OPTIONS] = "options"};
    const char *kind = c->kind < sizeof kinds / sizeof *kinds ? kinds[c->kind] : NULL;

    out[0] = '\0';
    if (kind)
        (void)snprintf(out, bytes, "%s%s", kind, c->kind == TN_KIND_OPTIONS ? "" : c->id ? c->id : "");
}

static void operators_provided(chk_env *env, const chk_note *note, const tn_op_table *table)
{
    for (size_t i = 0; table->ops && table->ops[i]; i++) {
        char item[200];

        (void)snprintf(item, sizeof item, "op:%s", table->ops[i]->name ? table->ops[i]->name : "");
        chk_count(env);
        if (table->ops[i]->name && !(table->ops[i]->flags & TN_OP_BACKWARD) &&
            !provides(note->provides, item))
            chk_fail(env, NULL, "`provides` of the note lacks \"%s\", so nobody will load the plugin for it",
                     item);
    }
}

static bool has_operator(const tn_op_table *table, const char *word)
{
    const size_t length = strlen(word);
    char item[300];

    for (size_t i = 0; table->ops && table->ops[i]; i++) {
        const tn_op *op = table->ops[i];

        if (!op->name || !*op->name)
            return true; /* one without a name is for another rule */
        (void)snprintf(item, sizeof item, "op:%s", op->name);
        if (word_is(word, length, item))
            return true;
        for (const char *const *alias = op->aliases; alias && *alias; alias++) {
            (void)snprintf(item, sizeof item, "op:%s", *alias);
            if (word_is(word, length, item))
                return true;
        }
    }
    return false;
}

/* Of kinds that item_of does not know nothing is said. */
static bool keeps(chk_env *env, const char *word)
{
    static const char *const known[] = {"kernels@", "device:", "pool:", "op:", "options"};
    const tn_capability *const *all = chk_descriptor(env)->capabilities;
    bool judged = false;

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        judged |= strncmp(word, known[i], strlen(known[i])) == 0;
    for (size_t i = 0; judged && all[i]; i++) {
        char item[200];

        item_of(all[i], item, sizeof item);
        if (strcmp(item, word) == 0 || (all[i]->kind == TN_KIND_OPS && strncmp(word, "op:", 3) == 0 &&
                                        has_operator((const tn_op_table *)(const void *)all[i], word)))
            return true;
    }
    return !judged;
}

/* What the note promises and no table holds: somebody would load the plugin for nothing. */
static void promises_check(chk_env *env, const chk_note *note)
{
    char *list = strdup(note->provides), *rest = NULL;

    if (!list)
        chk_fail(env, "kit", "out of memory");
    for (const char *word = strtok_r(list, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (!keeps(env, word))
            chk_fail(env, NULL, "`provides` of the note says \"%s\", and no table of the plugin is that",
                     word);
    free(list);
}

static void provides_check(chk_env *env, const chk_note *note)
{
    const tn_plugin *d = chk_descriptor(env);

    for (size_t i = 0; d->capabilities[i]; i++) {
        char item[200];

        item_of(d->capabilities[i], item, sizeof item);
        chk_count(env);
        if (*item && !provides(note->provides, item))
            chk_fail(env, NULL, "`provides` of the note lacks \"%s\", so nobody will load the plugin for it",
                     item);
        if (d->capabilities[i]->kind == TN_KIND_OPS)
            operators_provided(env, note, (const tn_op_table *)(const void *)d->capabilities[i]);
    }
    promises_check(env, note);
}

void chk_load_note(chk_env *env)
{
    chk_elf *e = chk_elf_open(env);
    const tn_plugin *d = chk_descriptor(env);
    const tn_note_body *note;
    chk_note all;

    if (!chk_elf_note(e, &all))
        chk_fail(env, NULL, "the file has no Tenon note; TN_PLUGIN_DEFINE makes one");
    note = all.body;
    text_same(env, "the name", note->name, sizeof note->name, d->name);
    text_same(env, "the version", note->version, sizeof note->version, d->version);
    text_same(env, "the vendor", note->vendor, sizeof note->vendor, d->vendor);
    text_same(env, "the licence", note->license, sizeof note->license, d->license);
    text_same(env, "the summary", note->summary, sizeof note->summary, d->summary);
    text_same(env, "the platform", note->tag, sizeof note->tag, TN_ABI_TAG);
    number_same(env, "the magic number", note->magic, d->magic);
    number_same(env, "the ABI's major", note->abi_major, d->abi_major);
    number_same(env, "the ABI's minor", note->abi_minor, d->abi_minor);
    number_same(env, "the least ABI minor", note->abi_minor_min, d->abi_minor_min);
    number_same(env, "flags", note->flags, d->flags);
    if (d->abi_minor_min > d->abi_minor)
        chk_fail(env, NULL, "needs minor %u of the ABI, but uses %u", (unsigned)d->abi_minor_min,
                 (unsigned)d->abi_minor);
    if (note->flags)
        chk_fail(env, "L-unknown", "the note and the descriptor have flags %#x, of which none is known",
                 note->flags);
    provides_check(env, &all);
    chk_elf_close(e);
}
