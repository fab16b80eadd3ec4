/*
 * Finding and loading: plugins are compiled here from one source with different definitions, or changed byte
 * by byte, and every refusal that a file can earn is earned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugin/kit.h"

/* The code with which the only file of `folder` is refused when it is found or loaded. */
static uint32_t refusal_of(const char *folder, const char *says)
{
    fixture f = open_with(folder, NULL, NULL);
    tni_plugin *p;
    uint32_t code;

    assert_int_equal(f.status, TN_OK);
    assert_int_equal(tni_registry_count(f.registry), 1);
    p = tni_registry_at(f.registry, 0);
    if (p->state == TNI_PLUGIN_READY) {
        assert_int_not_equal(tni_plugin_load(f.registry, p), TN_OK);
        assert_int_equal(p->state, TNI_PLUGIN_FAILED);
        assert_int_not_equal(tni_plugin_load(f.registry, p), TN_OK); /* and stays so */
    } else {
        assert_int_equal(p->state, TNI_PLUGIN_REFUSED);
        assert_null(tni_registry_find(f.registry, "acme"));
    }
    code = p->code;
    if (!strstr(p->reason, says))
        fail_msg("L%02u: \"%s\" does not say \"%s\"", code, p->reason, says);
    close_all(&f);
    return code;
}

static void loading(void **state)
{
    const char *folder = folder_new("good");
    const struct self *self;
    const tn_capability *table;
    tni_plugin *p, *owner;
    uint64_t generation, bytes, blocks;
    fixture f;

    (void)state;
    copy(plain, in(folder, "acme.so"));
    scratch_write("good/readme.txt", "no plugin", 9);
    scratch_write("good/.hidden.so", "no plugin", 9);
    f = open_with(folder, "plugin.acme.seed=7", "plugin.acme.mode=b");
    assert_int_equal(f.status, TN_OK);
    assert_int_equal(tni_registry_count(f.registry), 1);
    p = tni_registry_find(f.registry, "acme");
    assert_int_equal(p->state, TNI_PLUGIN_READY);
    assert_string_equal(p->note.body.vendor, "Acme");
    generation = tni_registry_generation(f.registry);
    assert_int_equal(tni_registry_load_providers(f.registry, "pool", "other"), TN_OK);
    assert_int_equal(p->state, TNI_PLUGIN_READY); /* not loaded for what it does not provide */
    assert_int_equal(tni_registry_load_providers(f.registry, "pool", "p1"), TN_OK);
    assert_int_equal(p->state, TNI_PLUGIN_LOADED);
    assert_true(tni_registry_generation(f.registry) > generation);
    assert_true(tni_registry_capability(f.registry, TN_KIND_POOL, 0, &table, &owner));
    assert_ptr_equal(owner, p);
    assert_string_equal(table->id, "p1");
    assert_false(tni_registry_capability(f.registry, TN_KIND_POOL, 1, &table, &owner));
    assert_false(tni_registry_capability(f.registry, 99, 0, &table, &owner));
    assert_true(heard_times(&logged, "1 L18 acme: a table of kind 99"));
    assert_true(heard_times(&logged, "2 acme: hello"));
    self = p->self;
    assert_int_equal(self->seed, 7);
    assert_string_equal(self->text, "b");
    assert_true(self->rate == 0.5);
    assert_int_equal(self->ran, 1);
    tni_plugin_memory(p, &bytes, &blocks);
    assert_true(bytes >= 1000 && blocks == 1);
    assert_int_equal(tni_plugin_load(f.registry, p), TN_OK); /* again: nothing */
    tni_registry_fork(f.registry, TN_FORK_PREPARE);
    tni_registry_fork(f.registry, TN_FORK_PARENT);
    assert_int_equal(self->forks, 3);
    close_all(&f);
    assert_int_equal(heard_times(&logged, "behind"), 0);
    f = open_with(folder, "plugins.require=acme", NULL); /* init comes again after fini */
    assert_int_equal(f.status, TN_OK);
    assert_int_equal(tni_registry_find(f.registry, "acme")->state, TNI_PLUGIN_LOADED);
    assert_null(((const struct self *)tni_registry_find(f.registry, "acme")->self)->text);
    close_all(&f);
}

static void child_of_fork(void **state)
{
    fixture f = open_with(scratch_path("good"), "plugins.require=acme", NULL);
    int status = -1;
    pid_t pid;

    (void)state;
    tni_registry_fork(f.registry, TN_FORK_PREPARE);
    pid = fork();
    tni_registry_fork(f.registry, pid ? TN_FORK_PARENT : TN_FORK_CHILD);
    if (pid == 0)
        _exit(tni_options_set(f.options, "model.x=1") == TN_OK && tni_registry_find(f.registry, "acme") ? 0
                                                                                                        : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close_all(&f);
}

static void refused_notes(void **state)
{
    static const uint32_t two = 2, nine = 9;
    const char *folder;

    (void)state;
    folder = folder_new("l03");
    scratch_write("l03/x.so", "not an ELF file, but long enough to hold an ELF header if it were one ......",
                  76);
    assert_int_equal(refusal_of(folder, "no ELF file"), 3);
    folder = folder_new("l03b");
    scratch_write("empty.c", "int nothing;\n", 13);
    assert_true(compile(scratch_path("empty.c"), in(folder, "x.so"), ""));
    assert_int_equal(refusal_of(folder, "no Tenon note"), 3);
    folder = folder_new("l04");
    patched(in(folder, "x.so"), offsetof(tn_note_body, tag), "linux-riscv64-lp64-le", 22);
    assert_int_equal(refusal_of(folder, "linux-riscv64-lp64-le, this is " TN_ABI_TAG), 4);
    folder = folder_new("l05");
    patched(in(folder, "x.so"), offsetof(tn_note_body, abi_major), &two, 4);
    assert_int_equal(refusal_of(folder, "built for ABI 2"), 5);
    folder = folder_new("l06");
    patched(in(folder, "x.so"), offsetof(tn_note_body, abi_minor), (uint32_t[]){9, 9}, 8);
    assert_int_equal(refusal_of(folder, "needs ABI 1.9, this core provides 1.0"), 6);
    folder = folder_new("l08");
    patched(in(folder, "x.so"), offsetof(tn_note_body, isa), "x86-64-v9", 10);
    assert_int_equal(refusal_of(folder, "needs the instruction set x86-64-v9"), 8);
    folder = folder_new("l13");
    patched(in(folder, "x.so"), offsetof(tn_note_body, version), "2.0", 4);
    assert_int_equal(refusal_of(folder, "the descriptor's version is 1.0, the note's is 2.0"), 13);
    folder = folder_new("l13b");
    patched(in(folder, "x.so"), offsetof(tn_note_body, abi_minor), &nine, 4);
    assert_int_equal(refusal_of(folder, "the descriptor's ABI is 1.0"), 13);
    folder = folder_new("l13c");
    variant(in(folder, "x.so"), "acme", "-DPOOL='\"other\"'");
    assert_int_equal(refusal_of(folder, "a table pool:other"), 13);
}

static void refused_by_loader(void **state)
{
    static const char undefined[] =
        "int nowhere_defined(void); int call(void); int call(void) { return nowhere_defined(); }\n";
    static const char note_only[] = "#include \"tenon/plugin/plugin.h\"\n"
                                    "TN_NOTE_DEFINE(n, \"acme\", \"1.0\", \"\", \"\", \"\", \"\", "
                                    "\"pool:p1\");\n";
    const char *folder;
    char flags[2 * SCRATCH_PATH_BYTES];

    (void)state;
    folder = folder_new("l11");
    scratch_write("undefined.c", undefined, sizeof undefined - 1);
    snprintf(flags, sizeof flags, "'%s'", scratch_path("undefined.c"));
    variant(in(folder, "x.so"), "acme", flags);
    assert_int_equal(refusal_of(folder, "nowhere_defined"), 11);
    folder = folder_new("l12");
    scratch_write("note.c", note_only, sizeof note_only - 1);
    assert_true(compile(scratch_path("note.c"), in(folder, "x.so"), ""));
    assert_int_equal(refusal_of(folder, "holds no symbol tn_plugin_v1"), 12);
    folder = folder_new("l12b"); /* the symbol is there, but a dependency brings it */
    copy(plain, scratch_path("libother.so"));
    snprintf(flags, sizeof flags, "-Wl,--no-as-needed -L'%s' -l:libother.so -Wl,-rpath,'%s'",
             scratch_folder(), scratch_folder());
    assert_true(compile(scratch_path("note.c"), in(folder, "x.so"), flags));
    assert_int_equal(refusal_of(folder, "libother.so"), 12);
    folder = folder_new("l14");
    variant(in(folder, "x.so"), "acme", "-DFAIL=1");
    assert_int_equal(refusal_of(folder, "init of acme failed (TN_E_DEVICE): the moon is full"), 14);
}

static void refused_paths(void **state)
{
    const char *folder = folder_new("l01");
    fixture f;

    (void)state;
    assert_int_equal(symlink(plain, in(folder, "x.so")), 0);
    assert_int_equal(refusal_of(folder, "no regular file"), 1);
    folder = folder_new("l01b");
    folder_new("l01b/x.so");
    assert_int_equal(refusal_of(folder, "no regular file"), 1);
    folder = folder_new("l01c");
    assert_int_equal(mkfifo(in(folder, "x.so"), 0600), 0);
    assert_int_equal(refusal_of(folder, "no regular file"), 1);
    f = open_with("plugins", NULL, NULL);
    assert_int_equal(f.status, TN_E_ARG);
    assert_int_equal(tni_refusal_code(), 1);
    close_all(&f);
    f = open_with(scratch_path("absent"), NULL, NULL); /* a warning */
    assert_int_equal(f.status, TN_OK);
    assert_true(heard_times(&logged, "absent cannot be opened"));
    close_all(&f);
}

static void refused_owners(void **state)
{
    const char *folder = folder_new("l02"), *inner;
    char setting[64];
    fixture f;

    (void)state;
    copy(plain, in(folder, "x.so"));
    assert_int_equal(chmod(in(folder, "x.so"), 0666), 0);
    assert_int_equal(refusal_of(folder, "may be written by everybody (mode 0666)"), 2);
    assert_int_equal(chmod(in(folder, "x.so"), 0664), 0);
    assert_int_equal(refusal_of(folder, "may be written by its group"), 2);
    snprintf(setting, sizeof setting, "plugins.trust_group=%u", (unsigned)getegid());
    f = open_with(folder, setting, NULL);
    assert_int_equal(tni_registry_at(f.registry, 0)->state, TNI_PLUGIN_READY);
    close_all(&f);
    f = open_with(folder, "plugins.trust=off", NULL);
    assert_int_equal(tni_registry_at(f.registry, 0)->state, TNI_PLUGIN_READY);
    close_all(&f);
    f = open_with(folder, "plugins.trust_group=no-such-group-here", NULL);
    assert_int_equal(f.status, TN_E_ARG);
    close_all(&f);
    assert_int_equal(chmod(in(folder, "x.so"), 0644), 0);
    assert_int_equal(chmod(folder, 01777), 0); /* sticky: others may add files, but only ours would pass */
    assert_int_equal(refusal_of(folder, "may be written by everybody"), 2);
    assert_int_equal(chmod(folder, 0755), 0);
    inner = folder_new("l02/a/b");
    copy(plain, in(inner, "x.so"));
    assert_int_equal(chmod(in(folder, "a"), 0777), 0);
    assert_int_equal(refusal_of(inner, "l02/a may be written by everybody (mode 0777)"), 2);
    assert_int_equal(chmod(in(folder, "a"), 01777), 0); /* as /tmp */
    f = open_with(inner, NULL, NULL);
    assert_int_equal(tni_registry_at(f.registry, 0)->state, TNI_PLUGIN_READY);
    close_all(&f);
    if (geteuid() != 0) {
        print_message("skipped: another owner can be set by root only\n");
        return;
    }
    assert_int_equal(chown(in(inner, "x.so"), 12345, (gid_t)-1), 0);
    assert_int_equal(refusal_of(inner, "belongs to user 12345"), 2);
    assert_int_equal(chown(in(inner, "x.so"), 0, (gid_t)-1), 0);
    assert_int_equal(chown(inner, 12345, (gid_t)-1), 0);
    assert_int_equal(refusal_of(inner, "belongs to user 12345"), 2);
}

/* A file that changes between scan and loading is not loaded. */
static void changed_later(void **state)
{
    const char *folder = folder_new("changed");
    tni_plugin *p;
    fixture f;

    (void)state;
    copy(plain, in(folder, "x.so"));
    f = open_with(folder, NULL, NULL);
    p = tni_registry_find(f.registry, "acme");
    patched(in(folder, "x.so"), offsetof(tn_note_body, version), "2.0", 4);
    assert_int_equal(tni_plugin_load(f.registry, p), TN_E_STATE);
    assert_int_equal(p->code, 13);
    close_all(&f);
    copy(plain, in(folder, "x.so"));
    f = open_with(folder, NULL, NULL);
    assert_int_equal(chmod(in(folder, "x.so"), 0666), 0);
    assert_int_equal(tni_plugin_load(f.registry, tni_registry_find(f.registry, "acme")), TN_E_STATE);
    close_all(&f);
}

static void duplicates(void **state)
{
    char both[2 * SCRATCH_PATH_BYTES];
    const char *first = folder_new("first"), *second = folder_new("second");
    fixture f;

    (void)state;
    copy(plain, in(first, "z.so"));
    copy(plain, in(second, "a.so"));
    snprintf(both, sizeof both, "%s, %s, %s", first, second, first);
    f = open_with(both, NULL, NULL);
    assert_int_equal(tni_registry_count(f.registry), 2); /* the folder named twice counts once */
    assert_non_null(strstr(tni_registry_find(f.registry, "acme")->path, "first/z.so"));
    assert_int_equal(tni_registry_at(f.registry, 1)->code, 15);
    assert_non_null(strstr(tni_registry_at(f.registry, 1)->reason, "first/z.so"));
    close_all(&f);
}

static void rules(void **state)
{
    const char *folder = folder_new("rules");
    fixture f;

    (void)state;
    copy(plain, in(folder, "acme.so"));
    variant(in(folder, "beta.so"), "beta", "-DFAIL=1");
    f = open_with(folder, "plugins.load=beta", NULL);
    assert_null(tni_registry_find(f.registry, "acme"));
    assert_string_equal(tni_registry_at(f.registry, 1)->reason, "not in plugins.load");
    assert_int_equal(tni_registry_at(f.registry, 1)->code, 0);
    assert_int_equal(heard_times(&logged, "1 "), 0); /* skipped on purpose: no warning */
    close_all(&f);
    f = open_with(folder, "plugins.load=beta", "plugins.require=acme");
    assert_int_equal(f.status, TN_E_DEVICE);
    assert_int_equal(tni_refusal_code(), 17);
    assert_non_null(strstr(tni_error_message(), "not in plugins.load"));
    close_all(&f);
    f = open_with(folder, "plugins.require=acme, nowhere", NULL);
    assert_int_equal(f.status, TN_E_DEVICE);
    assert_non_null(strstr(tni_error_message(), "plugin nowhere is required, but no file"));
    close_all(&f);
    f = open_with(folder, "plugins.require=beta", NULL);
    assert_int_equal(f.status, TN_E_DEVICE);
    assert_non_null(strstr(tni_error_message(), "the moon is full"));
    close_all(&f);
    f = open_with(folder, NULL, NULL); /* one bad provider does not hinder the others */
    assert_int_equal(tni_registry_load_providers(f.registry, "pool", "p1"), TN_OK);
    assert_int_equal(tni_registry_find(f.registry, "acme")->state, TNI_PLUGIN_LOADED);
    assert_int_equal(tni_registry_find(f.registry, "beta")->state, TNI_PLUGIN_FAILED);
    assert_true(heard_times(&logged, "1 L14"));
    close_all(&f);
}

static void options_of_plugins(void **state)
{
    static const struct {
        const char *setting;
        tn_status status;
        const char *says;
    } cases[] = {
        {"plugin.acme.sed=1", TN_E_KEY, "no option plugin.acme.sed; did you mean seed?"},
        {"plugin.acme.seed=1000", TN_E_ARG, "allowed are 0 to 100"},
        {"plugin.acme.mode=c", TN_E_ARG, "it is one of a|b"},
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        fixture f = open_with(scratch_path("good"), cases[i].setting, NULL);

        assert_int_equal(tni_registry_load_providers(f.registry, "pool", "p1"), cases[i].status);
        assert_non_null(strstr(tni_error_message(), cases[i].says));
        assert_int_equal(tni_registry_find(f.registry, "acme")->state, TNI_PLUGIN_READY); /* not its fault */
        close_all(&f);
    }
}

static void device_types(void **state)
{
    static const struct {
        const char *setting, *says;
    } bad[] = {
        {"memory.cdua.pool=round", "no device type cdua (memory.cdua.pool); did you mean cuda?"},
        {"kernel.Convolution@cp=cpu", "no device type cp (kernel.Convolution@cp); did you mean cpu?"},
        {"memory.cdua.pinned.pool=round", "no device type cdua"},
    };
    fixture f;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        f = open_with(scratch_path("good"), bad[i].setting, NULL);
        assert_int_equal(f.status, TN_E_KEY);
        assert_non_null(strstr(tni_error_message(), bad[i].says));
        close_all(&f);
    }
    f = open_with(scratch_path("good"), "memory.cuda.pool=round", "kernel.Convolution@cpu=cpu");
    assert_int_equal(f.status, TN_OK); /* known, but absent: said in the log */
    assert_true(heard_times(&logged, "2 memory.cuda.pool is set, but no plugin here"));
    close_all(&f);
}

static void leaks_are_told(void **state)
{
    const char *folder = folder_new("leak");
    fixture f;
    tn_host host;
    void *block;

    (void)state;
    variant(in(folder, "x.so"), "leaky", "-DLEAK=1");
    f = open_with(folder, "plugins.require=leaky", NULL);
    assert_int_equal(f.status, TN_OK);
    host = tni_registry_find(f.registry, "leaky")->host;
    block = ((const struct self *)tni_registry_find(f.registry, "leaky")->self)->block;
    (void)host;
    close_all(&f);
    assert_true(heard_times(&logged, "1 leaky leaves"));
    tni_free_aligned(block);
}

/* Told to who asks; no warning, since any init takes long on a busy machine. */
static void slow_init(void **state)
{
    const char *folder = folder_new("slow");
    fixture f;

    (void)state;
    variant(in(folder, "x.so"), "slow", "-DSLOW=1");
    f = open_with(folder, "plugins.require=slow", NULL);
    assert_int_equal(f.status, TN_OK);
    assert_true(heard_times(&logged, "2 slow: init took"));
    close_all(&f);
}

/* ---- plugins inside the program ---------------------------------------------------------------------- */

static tni_registry *reentered;
static tn_status reentered_status;

static tn_status reentrant_init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    (void)err;
    reentered_status = reentered ? tni_registry_load_providers(reentered, "pool", "p1") : TN_OK;
    return TN_OK;
}

static void inside(void **state)
{
    static const tn_capability pool = TN_CAPABILITY(tn_capability, id, TN_KIND_POOL, "inner");
    static const tn_capability *const tables[] = {&pool, NULL};
    static const tn_service service = {.struct_size = sizeof service, .id = "mine"};
    tn_plugin d = {TN_END(tn_plugin, capabilities),
                   TN_MAGIC,
                   1,
                   0,
                   0,
                   0,
                   "inner",
                   "1",
                   "v",
                   "l",
                   "s",
                   reentrant_init,
                   NULL,
                   NULL,
                   tables};
    fixture f = open_with(scratch_path("good"), NULL, NULL);
    tni_plugin *p = NULL;
    tn_plugin bad;

    (void)state;
    assert_int_equal(tni_registry_add_service(f.registry, &service), TN_OK);
    assert_int_equal(tni_registry_add_service(f.registry, &service), TN_E_KEY);
    reentered = f.registry;
    assert_int_equal(tni_registry_add_static(f.registry, &d, &p), TN_OK);
    reentered = NULL;
    assert_int_equal(reentered_status, TN_E_STATE); /* a plugin may not load others from its init */
    assert_int_equal(p->state, TNI_PLUGIN_LOADED);
    assert_ptr_equal(p->host.service(&p->host, "mine"), &service);
    assert_true(tni_note_provides(&p->note, "pool", "inner"));
    assert_int_equal(tni_registry_add_static(f.registry, &d, &p), TN_E_KEY);
    bad = d;
    bad.magic++;
    assert_int_equal(tni_registry_add_static(f.registry, &bad, &p), TN_E_FORMAT);
    bad = d;
    bad.name = "Not A Name";
    assert_int_equal(tni_registry_add_static(f.registry, &bad, &p), TN_E_FORMAT);
    bad = d;
    bad.capabilities = NULL;
    assert_int_equal(tni_registry_add_static(f.registry, &bad, &p), TN_E_FORMAT);
    bad = d;
    bad.struct_size = 40;
    assert_int_equal(tni_registry_add_static(f.registry, &bad, &p), TN_E_FORMAT);
    close_all(&f);
}

static void loader_thread(void *arg)
{
    fixture *f = arg;
    const tn_capability *table;

    for (int i = 0; i < 100; i++) {
        if (tni_registry_load_providers(f->registry, "pool", "p1"))
            f->status = TN_E_INTERNAL;
        if (!tni_registry_capability(f->registry, TN_KIND_POOL, 0, &table, NULL))
            f->status = TN_E_INTERNAL;
    }
}

static void threads_load(void **state)
{
    fixture f = open_with(scratch_path("good"), NULL, NULL);
    tni_thread *threads[4];

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(tni_thread_create("load", loader_thread, &f, &threads[i]), TN_OK);
    for (int i = 0; i < 4; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(f.status, TN_OK);
    assert_int_equal(heard_times(&logged, "acme: hello"), 1); /* one init */
    close_all(&f);
}

static tn_status open_body(void *arg)
{
    tni_options *options = NULL;
    tni_registry *r = NULL;
    tn_status st;

    if ((st = tni_options_create(NULL, &options)) || (st = tni_options_set(options, arg)) ||
        (st = tni_registry_create(options, NULL, &r)) || (st = tni_registry_load_providers(r, "pool", "p1")))
        goto cleanup;

cleanup:
    tni_registry_destroy(r);
    tni_options_destroy(options);
    return st;
}

static void without_memory(void **state)
{
    char setting[SCRATCH_PATH_BYTES + 20];

    (void)state;
    snprintf(setting, sizeof setting, "plugins.path=%s", scratch_path("good"));
    assert_true(scratch_each_allocation_fails(open_body, setting) > 100);
}

/* What this process has read so far: bytes, calls. False: the kernel does not count. */
static bool reads_so_far(uint64_t counts[2])
{
    static const char *const rows[] = {"rchar: ", "syscr: "};
    char text[1024] = "";
    FILE *file = fopen("/proc/self/io", "r");
    bool found = true;

    if (!file)
        return false;
    (void)!fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    for (int i = 0; i < 2 && found; i++) {
        const char *at = strstr(text, rows[i]);

        if ((found = at != NULL))
            counts[i] = strtoull(at + strlen(rows[i]), NULL, 10);
    }
    return found;
}

/* A note costs a few reads and a few pages, however large its file is and however many there are. */
static void many_notes(void **state)
{
    enum { NOTES = 200, READS = 12, BYTES = 32768, FILE_BYTES = 1 << 22 };
    const char *folder = folder_new("many");
    uint64_t before[2], after[2];
    char name[32];
    bool counted;
    fixture f;

    (void)state;
    for (int i = 0; i < NOTES; i++) {
        snprintf(name, sizeof name, "p%03d", i);
        patched(in(folder, "x"), offsetof(tn_note_body, name), name, 5);
        snprintf(name, sizeof name, "p%03d.so", i);
        assert_int_equal(truncate(in(folder, "x"), FILE_BYTES), 0);
        assert_int_equal(rename(in(folder, "x"), in(folder, name)), 0);
    }
    counted = reads_so_far(before);
    f = open_with(folder, NULL, NULL);
    counted = counted && reads_so_far(after);
    assert_int_equal(tni_registry_count(f.registry), NOTES);
    assert_string_equal(tni_registry_at(f.registry, NOTES - 1)->note.body.name, "p199");
    close_all(&f);
    if (!counted) {
        print_message("skipped: this kernel does not count what is read\n");
        return;
    }
    print_message("%d notes: %llu bytes in %llu reads\n", NOTES, (unsigned long long)(after[0] - before[0]),
                  (unsigned long long)(after[1] - before[1]));
    assert_true(after[0] - before[0] <= (uint64_t)NOTES * BYTES);
    assert_true(after[1] - before[1] <= (uint64_t)NOTES * READS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loading),        cmocka_unit_test(child_of_fork),
        cmocka_unit_test(refused_notes),  cmocka_unit_test(refused_by_loader),
        cmocka_unit_test(refused_paths),  cmocka_unit_test(refused_owners),
        cmocka_unit_test(changed_later),  cmocka_unit_test(duplicates),
        cmocka_unit_test(rules),          cmocka_unit_test(options_of_plugins),
        cmocka_unit_test(leaks_are_told), cmocka_unit_test(slow_init),
        cmocka_unit_test(device_types),   cmocka_unit_test(inside),
        cmocka_unit_test(threads_load),   cmocka_unit_test(without_memory),
        cmocka_unit_test(many_notes),
    };

    return cmocka_run_group_tests(tests, plugins_build, NULL);
}
