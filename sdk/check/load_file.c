/*
 * Group load: what the file is, read as bytes. Nothing of it runs.
 */
#include <string.h>

#include "image.h"

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
        const chk_symbol s = chk_elf_symbol(e, i);
        const uint32_t bind = ELF64_ST_BIND(s.sym.st_info), type = ELF64_ST_TYPE(s.sym.st_info);

        if (s.sym.st_shndx == SHN_UNDEF || bind == STB_LOCAL || s.sym.st_shndx == SHN_ABS)
            continue;
        chk_count(env);
        if (strcmp(s.name, TNI_ENTRY) == 0) {
            found = true;
            chk_fail_if(env, type != STT_OBJECT, "R7", "tn_plugin_v1 is no data symbol");
        } else if (bind == STB_GNU_UNIQUE) {
            chk_fail(env, "R7", "%s is STB_GNU_UNIQUE: one copy for all plugins", s.name);
        } else if (!is_linkers(s.name)) {
            chk_fail(env, "R7",
                     "exports %s beside tn_plugin_v1; link with -fvisibility=hidden and tenon-plugin.map",
                     s.name);
        }
    }
    chk_fail_if(env, !found, "R7", "does not export tn_plugin_v1");
    chk_elf_close(e);
}

void chk_load_no_core(chk_env *env)
{
    chk_elf *e = chk_elf_open(env);

    for (uint64_t i = 1; i < e->symbol_count; i++) {
        const chk_symbol s = chk_elf_symbol(e, i);

        chk_count(env);
        if (s.sym.st_shndx == SHN_UNDEF &&
            (strncmp(s.name, "tn_", 3) == 0 || strncmp(s.name, "tni_", 4) == 0))
            chk_fail(env, "R7", "needs the symbol %s: a plugin reaches the host through its tables only",
                     s.name);
    }
    chk_elf_close(e);
}

/* ---- segments and flags ---- */

void chk_load_segments(chk_env *env)
{
    chk_elf *e = chk_elf_open(env);
    uint64_t value;

    for (uint32_t i = 0; i < e->link.segments.count; i++) {
        const Elf64_Phdr *p = &e->link.segments.item[i];

        if (p->p_type == PT_GNU_STACK && (p->p_flags & PF_X))
            chk_fail(env, NULL, "asks for an executable stack; link with -Wl,-z,noexecstack");
        if (p->p_type == PT_LOAD && (p->p_flags & PF_W) && (p->p_flags & PF_X))
            chk_fail(env, NULL, "has a segment that can be written and executed");
        chk_count(env);
    }
    if (chk_elf_dynamic(e, DT_TEXTREL, 0, &value) ||
        (chk_elf_dynamic(e, DT_FLAGS, 0, &value) && (value & DF_TEXTREL)))
        chk_fail(env, NULL, "has relocations in its code (TEXTREL); compile with -fPIC");
    if (chk_elf_dynamic(e, DT_FLAGS, 0, &value) && (value & DF_STATIC_TLS))
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

    if (!chk_elf_dynamic(e, tag, 0, &at))
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

    chk_count(env);
    for (uint32_t k = 0; k < e->link.needed_count; k++) {
        const char *name = chk_elf_text(e, e->link.needed[k]);

        chk_count(env);
        for (size_t i = 0; i < sizeof watched / sizeof *watched; i++)
            if (strncmp(name, watched[i].begin, strlen(watched[i].begin)) == 0)
                chk_fail(env, NULL, "needs %s: %s", name, watched[i].why);
        chk_fail_if(env, strchr(name, '/'), NULL, "needs %s by its path", name);
    }
    path_check(env, e, DT_RUNPATH);
    path_check(env, e, DT_RPATH);
    chk_elf_close(e);
}

void chk_load_constructors(chk_env *env)
{
    chk_elf *e = chk_elf_open(env);
    uint64_t bytes;

    if (tni_link_instrumented(&e->file, &e->link))
        chk_skip(env, "built with a sanitizer or for coverage, which bring constructors");
    chk_count(env);
    chk_elf_must(e, "R8", tni_link_quiet(&e->file, &e->link));
    if (chk_elf_dynamic(e, DT_FINI_ARRAYSZ, 0, &bytes) && bytes > sizeof(uint64_t))
        chk_fail(env, "R8", "has %llu destructors beside the compiler's own; what they do belongs into fini",
                 (unsigned long long)(bytes / sizeof(uint64_t) - 1));
    chk_elf_close(e);
}

/* ---- note and descriptor ---- */

static void text_same(chk_env *env, const char *what, const char *note, size_t bytes, const char *descriptor)
{
    chk_count(env);
    chk_fail_if(env, !memchr(note, '\0', bytes), NULL, "%s of the note has no end", what);
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

/* Kinds that a note names, as it names them. Of others nothing is said. */
static const struct {
    const char *name, *sign; /* sign: before an id, for messages */
} kinds[] = {[TN_KIND_OPS] = {"op", ":"},
             [TN_KIND_KERNELS] = {"kernels", "@"},
             [TN_KIND_DEVICE] = {"device", ":"},
             [TN_KIND_POOL] = {"pool", ":"},
             [TN_KIND_TRANSPORT] = {"transport", ":"},
             [TN_KIND_COLLECTIVE] = {"collective", ":"},
             [TN_KIND_OPTIONS] = {"options", ""},
             [TN_KIND_ARCHIVE] = {"archive", ":"},
             [TN_KIND_IMAGE] = {"image", ":"}};
#define KINDS (sizeof kinds / sizeof *kinds)

static void named_check(chk_env *env, const tni_note *note, uint32_t kind, const char *id)
{
    chk_count(env);
    if (!tni_note_provides(note, kinds[kind].name, id))
        chk_fail(env, NULL, "`provides` of the note lacks \"%s%s%s\", so nobody will load the plugin for it",
                 kinds[kind].name, kinds[kind].sign, id ? id : "");
}

static void tables_named(chk_env *env, const tni_note *note)
{
    for (const tn_capability *const *c = chk_descriptor(env)->capabilities; *c; c++) {
        const uint32_t kind = (*c)->kind < KINDS ? (*c)->kind : 0;
        const tn_op *const *op = kind == TN_KIND_OPS ? ((const tn_op_table *)(const void *)*c)->ops : NULL;

        if (kinds[kind].name && kind != TN_KIND_OPS)
            named_check(env, note, kind, kind == TN_KIND_OPTIONS ? NULL : (*c)->id ? (*c)->id : "");
        for (; op && *op; op++)
            if ((*op)->name && !((*op)->flags & TN_OP_BACKWARD))
                named_check(env, note, kind, (*op)->name);
    }
}

/* A table of operators has one that a word of `provides` names; one without a name is for another rule. */
static bool operators_hold(const tn_op_table *table, const tni_note *word)
{
    for (const tn_op *const *op = table->ops; op && *op; op++) {
        if (!(*op)->name || !*(*op)->name || tni_note_provides(word, "op", (*op)->name))
            return true;
        for (const char *const *alias = (*op)->aliases; alias && *alias; alias++)
            if (tni_note_provides(word, "op", *alias))
                return true;
    }
    return false;
}

static bool is_kept(chk_env *env, const tni_note *word)
{
    bool judged = false;

    for (size_t k = 0; k < KINDS; k++)
        judged |= kinds[k].name && tni_note_provides(word, kinds[k].name, NULL);
    for (const tn_capability *const *c = chk_descriptor(env)->capabilities; judged && *c; c++) {
        const char *kind = (*c)->kind < KINDS ? kinds[(*c)->kind].name : NULL;
        const char *id = (*c)->kind == TN_KIND_OPTIONS ? NULL : (*c)->id;

        if ((*c)->kind == TN_KIND_OPS ? operators_hold((const tn_op_table *)(const void *)*c, word)
                                      : kind && tni_note_provides(word, kind, id))
            return true;
    }
    return !judged;
}

/* What the note promises and no table holds: somebody would load the plugin for nothing. */
static void promises_check(chk_env *env, const tni_note *note)
{
    char *rest = NULL;

    for (char *word = strtok_r(note->provides, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        if (!is_kept(env, &(tni_note){.provides = word}))
            chk_fail(env, NULL, "`provides` of the note says \"%s\", and no table of the plugin is that",
                     word);
}

void chk_load_note(chk_env *env)
{
    chk_elf *e = chk_elf_open(env);
    const tn_plugin *d = chk_descriptor(env);
    const tn_note_body *note;
    tni_note all;

    chk_elf_must(e, NULL, tni_note_read(e->file.fd, env->file, &all));
    note = &all.body;
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
    tables_named(env, &all);
    promises_check(env, &all);
    tni_note_clear(&all);
    chk_elf_close(e);
}
