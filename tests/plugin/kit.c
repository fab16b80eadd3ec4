/* Plugins made at test time from one source, and registries over folders of them. */
#include "plugin/kit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char plugin_source[] =
    "#include \"tenon/plugin/plugin.h\"\n"
    "struct self { const tn_host *host; const char *text; long long seed; double rate; void *block; int ran, "
    "forks; };\n"
    "static struct self self;\n"
    "#if SLOW\n"
    "int usleep(unsigned us);\n"
    "#else\n"
    "static int usleep(unsigned us) { return (int)us; }\n"
    "#endif\n"
    "static void run(void *arg) { (void)arg; self.ran = 1; }\n"
    "static tn_status init(const tn_host *host, void **plugin, tn_err *err) {\n"
    "    const tn_log_service *log = tn_host_service(host, TN_SERVICE_LOG);\n"
    "    const tn_memory_service *memory = tn_host_service(host, TN_SERVICE_MEMORY);\n"
    "    const tn_options_service *options = tn_host_service(host, TN_SERVICE_OPTIONS);\n"
    "    const tn_trace_service *trace = tn_host_service(host, TN_SERVICE_TRACE);\n"
    "    const tn_clock_service *clock = tn_host_service(host, TN_SERVICE_CLOCK);\n"
    "    const tn_threads_service *threads = tn_host_service(host, TN_SERVICE_THREADS);\n"
    "    int64_t seed = 0; void *thread;\n"
    "    (void)usleep(120000);\n"
    "    if (FAIL) return tn_fail(err, TN_E_DEVICE, \"the moon is full\");\n"
    "    if (!log || !memory || !options || !trace || !clock || !threads || host->service(host, "
    "\"nothing\"))\n"
    "        return tn_fail(err, TN_E_INTERNAL, \"a service is missing\");\n"
    "    log->write(host, TN_LEVEL_INFO, \"hello\");\n"
    "    self.block = memory->alloc(host, 1000, 64);\n"
    "    if (!self.block) return tn_fail(err, TN_E_NOMEM, \"no memory\");\n"
    "    self.text = options->text(host, \"mode\");\n"
    "    options->integer(host, \"seed\", 42, &seed); self.seed = seed;\n"
    "    options->number(host, \"rate\", 0.5, &self.rate);\n"
    "    trace->event(host, 'i', \"plugin\", \"init\");\n"
    "    if (!clock->now_ns(host) || threads->create(host, \"t\", run, 0, &thread)) {\n"
    "        memory->free(host, self.block);\n"
    "        return tn_fail(err, TN_E_NOMEM, \"no thread\"); }\n"
    "    threads->join(host, thread);\n"
    "    self.host = host; *plugin = &self; return TN_OK; }\n"
    "static void fini(void *plugin) { struct self *s = plugin;\n"
    "    const tn_memory_service *memory = tn_host_service(s->host, TN_SERVICE_MEMORY);\n"
    "    if (!LEAK) memory->free(s->host, s->block); }\n"
    "static tn_status at_fork(void *plugin, uint32_t phase) { ((struct self *)plugin)->forks += 1 + "
    "(int)phase; return 0; }\n"
    "static const tn_option_row seed = {TN_END(tn_option_row, max), 0, \"seed\", \"int\", 0, \"0\", \"a "
    "seed\", \"0.1\", 0, 100};\n"
    "static const tn_option_row mode = {TN_END(tn_option_row, max), 0, \"mode\", \"choice\", \"a|b\", \"a\", "
    "\"\", \"0.1\", 1, 0};\n"
    "static const tn_option_row rate = {TN_END(tn_option_row, max), 0, \"rate\", \"float\", 0, \"0\", \"\", "
    "\"0.1\", 1, 0};\n"
    "static const tn_option_row *const rows[] = {&seed, &mode, &rate, 0};\n"
    "static const tn_option_table options = {TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, NAME), "
    "rows};\n"
    "static const tn_capability pool = TN_CAPABILITY(tn_capability, id, TN_KIND_POOL, POOL);\n"
    "static const tn_capability later = TN_CAPABILITY(tn_capability, id, 99, \"later\");\n"
    "static const tn_capability *const tables[] = {&options.head, &later, &pool, 0};\n"
    "TN_PLUGIN_DEFINE(NAME, \"1.0\", \"Acme\", \"Apache-2.0\", \"a test\", \"\", \"pool:p1 options\", init, "
    "fini, at_fork, tables);\n";

heard logged = HEARD(TN_LOG_DEBUG);
const tni_log test_log = {.fn = heard_take, .arg = &logged, .level = TN_LOG_DEBUG};

/* Compiles `source` (a file in the scratch folder) to `out`; false: there is no compiler. */
bool compile(const char *source, const char *out, const char *flags)
{
    const char *root = getenv("TENON_TEST_SOURCE"), *compiler = getenv("CC");
    char command[4 * SCRATCH_PATH_BYTES];

    snprintf(command, sizeof command,
             "%s -std=c11 -shared -fPIC -fvisibility=hidden -I'%s/sdk/include' -o '%s' '%s' %s",
             compiler && compiler[0] ? compiler : "cc", root ? root : ".", out, source, flags);
    return system(command) == 0;
}

char plain[SCRATCH_PATH_BYTES];

int plugins_build(void **state)
{
    const char *source = scratch_write("plugin.c", plugin_source, sizeof plugin_source - 1);

    (void)state;
    umask(022);
    snprintf(plain, sizeof plain, "%s", scratch_path("acme.so.plain"));
    return compile(source, plain, "-DNAME='\"acme\"' -DPOOL='\"p1\"' -DFAIL=0 -DLEAK=0") ? 0 : -1;
}

void variant(const char *out, const char *name, const char *flags)
{
    char all[512];

    snprintf(all, sizeof all, "-DNAME='\"%s\"' %s %s %s %s", name,
             strstr(flags, "POOL") ? "" : "-DPOOL='\"p1\"'", strstr(flags, "FAIL") ? "" : "-DFAIL=0",
             strstr(flags, "LEAK") ? "" : "-DLEAK=0", flags);
    assert_true(compile(scratch_path("plugin.c"), out, all));
}

/* Unlike the library's own way of writing, this does not wait for the disk. */
void put_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

void copy(const char *from, const char *to)
{
    char *bytes;
    uint64_t count;

    assert_int_equal(tni_file_read_all(from, 1u << 24, &bytes, &count), TN_OK);
    put_file(to, bytes, count);
    tni_free(bytes);
}

/* A copy of the plain plugin with `size` bytes changed at `offset` of the body of its note. */
void patched(const char *to, size_t offset, const void *with, size_t size)
{
    char *bytes, *note;
    uint64_t count;

    assert_int_equal(tni_file_read_all(plain, 1u << 24, &bytes, &count), TN_OK);
    note = memmem(bytes, count, "\1\0\0\0Tenon\0\0\0", 12);
    assert_non_null(note);
    memcpy(note + 12 + offset, with, size);
    put_file(to, bytes, count);
    tni_free(bytes);
}

/* A fresh folder with mode 0755. */
const char *folder_new(const char *name)
{
    const char *path = scratch_path(name);

    assert_int_equal(tni_folder_create(path), TN_OK);
    return path;
}

const char *in(const char *folder, const char *name)
{
    static char paths[4][SCRATCH_PATH_BYTES];
    static unsigned next;
    char *path = paths[next++ % 4];

    assert_true(snprintf(path, SCRATCH_PATH_BYTES, "%s/%s", folder, name) < SCRATCH_PATH_BYTES);
    return path;
}

fixture open_with(const char *folder, const char *setting, const char *setting2)
{
    fixture f = {0};
    char path[SCRATCH_PATH_BYTES + 32];

    heard_clear(&logged);
    assert_int_equal(tni_options_create(&test_log, &f.options), TN_OK);
    snprintf(path, sizeof path, "plugins.path=%s", folder);
    assert_int_equal(tni_options_set(f.options, path), TN_OK);
    if (setting)
        assert_int_equal(tni_options_set(f.options, setting), TN_OK);
    if (setting2)
        assert_int_equal(tni_options_set(f.options, setting2), TN_OK);
    f.status = tni_registry_create(f.options, &test_log, &f.registry);
    return f;
}

void close_all(fixture *f)
{
    tni_registry_destroy(f->registry);
    tni_options_destroy(f->options);
}
