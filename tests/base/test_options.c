/* Options: the table, precedence, kinds of values, suggestions, the environment, open-ended keys. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/options_internal.h"
#include "support/heard.h"
#include "support/scratch.h"

static heard logged = HEARD(TN_LOG_DEBUG);
static const tni_log test_log = {.fn = heard_take, .arg = &logged, .level = TN_LOG_DEBUG};

static tni_options *options_new(void)
{
    tni_options *o = NULL;

    heard_clear(&logged);
    assert_int_equal(tni_options_create(&test_log, &o), TN_OK);
    return o;
}

static void table(void **state)
{
    tni_map *names;
    size_t count;
    const tni_option_def *defs = tni_option_defs(&count);
    char env[OPTION_KEY_MAX + 16];

    (void)state;
    assert_int_equal(tni_map_create(1000, &names), TN_OK);
    for (size_t i = 0; i < count; i++) {
        int64_t integer;
        double number;

        option_env_name(defs[i].key, env);
        assert_false(tni_map_get(names, env, NULL)); /* two options with one name in the environment */
        assert_int_equal(tni_map_set(names, env, NULL), TN_OK);
        assert_int_equal(tni_option_parse(&defs[i], defs[i].key, "", defs[i].default_text, &integer, &number),
                         TN_OK);
        assert_string_not_equal(defs[i].help, "");
        assert_string_not_equal(defs[i].since, "");
        assert_true(defs[i].flags & (TN_OPTION_INIT | TN_OPTION_LIVE));
    }
    tni_map_destroy(names);
    for (size_t i = 0; i < option_foreign_count; i++)
        assert_non_null(option_def_find(option_foreigns[i].key));
}

static void precedence(void **state)
{
    const char *first = scratch_write("1.ini", "[engine]\ntype = naive\nthreads = 3\n", 34);
    const char *second = scratch_write("2.ini", "[engine]\nthreads = 5\n", 21);
    tni_options *o = options_new();
    uint64_t generation = tni_options_generation(o);

    (void)state;
    assert_string_equal(tni_option_text(o, "engine.type"), "threaded");
    assert_false(tni_option_is_set(o, "engine.type"));
    assert_int_equal(tni_options_set(o, "engine.queue_max=100"), TN_OK);
    assert_int_equal(tni_options_read_file(o, first, true), TN_OK);
    assert_int_equal(tni_options_read_file(o, second, true), TN_OK);
    assert_string_equal(tni_option_text(o, "engine.type"), "naive");
    assert_int_equal(tni_option_int(o, "engine.threads"), 5); /* the later file */
    setenv("OMP_NUM_THREADS", "6,2", 1);
    setenv("MXNET_ENGINE_TYPE", "ThreadedEngine", 1);
    setenv("TENON_ENGINE__THREADS", "7", 1);
    setenv("TENON_ENGINE__QUEUE_MAX", "200", 1);
    assert_int_equal(tni_options_read_environment(o), TN_OK);
    assert_int_equal(tni_option_int(o, "engine.threads"), 7);
    assert_string_equal(tni_option_text(o, "engine.type"), "threaded");
    assert_int_equal(tni_option_int(o, "engine.queue_max"), 100); /* --set stays above the environment */
    assert_int_equal(tni_options_read_file(o, first, true), TN_OK);
    assert_int_equal(tni_option_int(o, "engine.threads"), 7); /* a file read late does not win */
    assert_int_equal(tni_options_set(o, "engine.threads=8"), TN_OK);
    assert_int_equal(tni_option_int(o, "engine.threads"), 8);
    assert_true(tni_option_is_set(o, "engine.threads"));
    assert_true(tni_options_generation(o) > generation);
    unsetenv("OMP_NUM_THREADS");
    unsetenv("MXNET_ENGINE_TYPE");
    unsetenv("TENON_ENGINE__THREADS");
    unsetenv("TENON_ENGINE__QUEUE_MAX");
    tni_options_destroy(o);
}

static void origins(void **state)
{
    const char *path = scratch_write("o.ini", "[train]\n\nlr = 0.5\n", 18);
    tni_options *o = options_new();
    const char *key, *value, *where;
    int32_t origin;
    bool seen = false, open_seen = false;

    (void)state;
    assert_int_equal(tni_options_read_file(o, path, false), TN_OK);
    assert_int_equal(tni_options_set(o, "model.pad=0"), TN_OK);
    for (size_t i = 0; tni_options_at(o, i, &key, &value, &origin, &where); i++) {
        if (strcmp(key, "train.lr") == 0) {
            seen = true;
            assert_string_equal(value, "0.5");
            assert_int_equal(origin, TN_ORIGIN_FILE);
            assert_non_null(strstr(where, "o.ini:3"));
        } else if (strcmp(key, "model.pad") == 0) {
            open_seen = true;
            assert_int_equal(origin, TN_ORIGIN_SET);
        } else {
            assert_int_equal(origin, TN_ORIGIN_DEFAULT);
        }
    }
    assert_true(seen && open_seen);
    tni_options_destroy(o);
}

static void values(void **state)
{
    static const struct {
        const char *set;
        tn_status status;
        const char *text;
    } bad[] = {
        {"engine.threads=x", TN_E_ARG, "engine.threads = x, expected an integer"},
        {"engine.threads=", TN_E_ARG, "expected an integer"},
        {"engine.threads=-1", TN_E_ARG, "allowed are 0 to 4096 threads"},
        {"engine.type=nave", TN_E_ARG, "but it is one of threaded|naive|stepped"},
        {"engine.type=", TN_E_ARG, "but it is one of"},
        {"engine.type=naive|stepped", TN_E_ARG, "but it is one of"},
        {"train.lr=nan", TN_E_ARG, "expected a number"},
        {"train.lr=-1", TN_E_ARG, "allowed are 0 to"},
        {"train.shuffle=maybe", TN_E_ARG, "expected true or false"},
        {"memory.cpu.limit=12 parsecs", TN_E_ARG, "expected a size"},
        {"memory.cpu.limit=-1", TN_E_ARG, "expected a size"},
        {"memory.cpu.limit=99999999999TiB", TN_E_ARG, "expected a size"},
        {"engine.typ=naive", TN_E_KEY, "no option engine.typ; did you mean engine.type?"},
        {"enginetype=naive", TN_E_KEY, "did you mean engine.type?"},
        {"train.momentun=0", TN_E_KEY, "did you mean train.momentum?"},
        {"memory.cpu.pol=naive", TN_E_KEY, "did you mean memory.cpu.pool?"},
        {"memory.cpu.pinned.pol=naive", TN_E_KEY, "did you mean memory.cpu.pinned.pool?"},
        {"kernel.Convolution=cpu", TN_E_KEY, "no option kernel.Convolution"},
        {"plugin.fake=1", TN_E_KEY, "no option plugin.fake"},
        {"plugin..seed=1", TN_E_KEY, "no option plugin..seed"},
        {"zzzzzzzzzzzzzz=1", TN_E_KEY, "no option zzzzzzzzzzzzzz"},
        {"engine.type", TN_E_ARG, "expected section.key=value"},
        {"=x", TN_E_ARG, "expected section.key=value"},
        {"", TN_E_ARG, "expected section.key=value"},
    };
    tni_options *o = options_new();

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(tni_options_set(o, bad[i].set), bad[i].status);
        if (!strstr(tni_error_message(), bad[i].text))
            fail_msg("%s: \"%s\" does not say \"%s\"", bad[i].set, tni_error_message(), bad[i].text);
    }
    assert_string_equal(tni_option_text(o, "engine.type"), "threaded"); /* nothing of it stays */
    assert_int_equal(tni_options_set(o, "memory.cpu.limit=1.5 GiB"), TN_OK);
    assert_int_equal(tni_option_int(o, "memory.cpu.limit"), 1610612736);
    assert_string_equal(tni_option_text(o, "memory.cpu.limit"),
                        "1610612736"); /* plain for whoever reads it */
    assert_int_equal(tni_option_int(o, "memory.fake.limit"), 0);
    assert_int_equal(tni_option_int(o, "memory.cuda.large_alloc_round_size"), 2097152);
    assert_string_equal(tni_option_text(o, "memory.cuda.pinned.pool"), "auto");
    assert_int_equal(tni_options_set(o, "train.shuffle=off"), TN_OK);
    assert_false(tni_option_bool(o, "train.shuffle"));
    assert_int_equal(tni_options_set(o, "model.pad=2"), TN_OK);
    assert_int_equal(tni_option_int(o, "model.pad"), 2);
    assert_true(tni_option_float(o, "model.pad") == 2.0);
    assert_true(tni_option_float(o, "kvstore.compress_threshold") == 0.5);
    assert_string_equal(tni_option_text(o, "no.such"), "");
    assert_int_equal(tni_option_int(o, "no.such"), 0);
    tni_options_destroy(o);
}

/* A text that was handed out stays valid when the option changes. */
static void texts_stay(void **state)
{
    tni_options *o = options_new();
    const char *before;

    (void)state;
    assert_int_equal(tni_options_set(o, "model.name=one"), TN_OK);
    before = tni_option_text(o, "model.name");
    assert_int_equal(tni_options_set(o, "model.name=two"), TN_OK);
    assert_string_equal(before, "one");
    assert_string_equal(tni_option_text(o, "model.name"), "two");
    tni_options_destroy(o);
}

static void lists(void **state)
{
    tni_options *o = options_new();
    char item[8];

    (void)state;
    assert_int_equal(tni_option_list_count(o, "kernel.prefer"), 0);
    assert_int_equal(tni_options_set(o, "kernel.prefer= a,, b c ,d, "), TN_OK);
    assert_int_equal(tni_option_list_count(o, "kernel.prefer"), 3);
    assert_int_equal(tni_option_list_item(o, "kernel.prefer", 1, item, sizeof item), TN_OK);
    assert_string_equal(item, "b c");
    assert_int_equal(tni_option_list_item(o, "kernel.prefer", 3, item, sizeof item), TN_E_KEY);
    assert_int_equal(tni_option_list_item(o, "kernel.prefer", 1, item, 3), TN_E_ARG);
    tni_options_destroy(o);
}

static void trusted_only(void **state)
{
    const char *path = scratch_write("t.ini", "[plugins]\npath = /tmp\n", 22);
    tni_options *o = options_new();

    (void)state;
    assert_int_equal(tni_options_read_file(o, path, false), TN_E_KEY);
    assert_non_null(strstr(tni_error_message(), "t.ini:2: plugins.path may not be set here"));
    assert_string_equal(tni_option_text(o, "plugins.path"), "");
    assert_int_equal(tni_options_read_file(o, path, true), TN_OK);
    assert_string_equal(tni_option_text(o, "plugins.path"), "/tmp");
    setenv("TENON_PLUGINS__TRUST", "off", 1);
    assert_int_equal(tni_options_read_environment(o), TN_OK);
    assert_string_equal(tni_option_text(o, "plugins.trust"), "owner");
    assert_true(heard_times(&logged, "1 TENON_PLUGINS__TRUST is ignored"));
    unsetenv("TENON_PLUGINS__TRUST");
    tni_options_destroy(o);
}

static void environment(void **state)
{
    tni_options *o = options_new();

    (void)state;
    setenv("TENON_ENGINE__TYP", "x", 1);
    setenv("MXNET_ENGINE_TYPE", "BestEngine", 1);
    setenv("MXNET_GPU_MEM_POOL_TYPE", "Unpooled", 1);
    setenv("TENON_MEMORY_CPU__POOL", "round", 1);
    setenv("TENON_MEMORY_CPU_PINNED__POOL", "naive", 1);
    setenv("TENON_KERNEL__CONVOLUTION_CPU", "cpu", 1);
    setenv("TENON_PLUGIN_CPU_OPENBLAS__TILE", "64", 1);
    setenv("TENON_TEST_NOTHING", "1", 1);
    assert_int_equal(tni_options_read_environment(o), TN_OK);
    assert_true(heard_times(
        &logged, "1 TENON_ENGINE__TYP names no option and is ignored; did you mean TENON_ENGINE__TYPE?"));
    assert_true(
        heard_times(&logged, "1 MXNET_ENGINE_TYPE=BestEngine is not understood; engine.type stays threaded"));
    assert_int_equal(heard_times(&logged, "TENON_TEST_NOTHING"), 0);
    assert_string_equal(tni_option_text(o, "memory.cuda.pool"), "none");
    assert_string_equal(tni_option_text(o, "memory.cpu.pool"), "round");
    assert_string_equal(tni_option_text(o, "memory.cpu.pinned.pool"), "naive");
    assert_string_equal(tni_option_text(o, "kernel.Convolution@cpu"), "cpu");
    assert_string_equal(tni_option_text(o, "plugin.cpu-openblas.tile"), "64");
    assert_true(tni_option_is_set(o, "plugin.cpu-openblas.tile"));
    assert_int_equal(tni_options_set(o, "memory.cpu.pool=segment"), TN_OK);
    assert_string_equal(tni_option_text(o, "memory.cpu.pool"), "segment");
    setenv("TENON_ENGINE__THREADS", "many", 1);
    assert_int_equal(tni_options_read_environment(o), TN_E_ARG);
    assert_non_null(strstr(tni_error_message(), "TENON_ENGINE__THREADS"));
    unsetenv("TENON_ENGINE__TYP");
    unsetenv("MXNET_ENGINE_TYPE");
    unsetenv("MXNET_GPU_MEM_POOL_TYPE");
    unsetenv("TENON_MEMORY_CPU__POOL");
    unsetenv("TENON_MEMORY_CPU_PINNED__POOL");
    unsetenv("TENON_KERNEL__CONVOLUTION_CPU");
    unsetenv("TENON_PLUGIN_CPU_OPENBLAS__TILE");
    unsetenv("TENON_ENGINE__THREADS");
    tni_options_destroy(o);
}

static void plugin_rows(void **state)
{
    static const tni_option_def rows[] = {
        {.key = "seed", .type = "int", .choices = "", .default_text = "0", .min = 0, .max = 100},
        {.key = "delay_us", .type = "int", .choices = "us", .default_text = "0", .min = 1, .max = 0},
    };
    tni_options *o = options_new();

    (void)state;
    assert_int_equal(tni_options_set(o, "plugin.fake.seed=7"), TN_OK);
    assert_int_equal(tni_options_set(o, "plugin.other.x=7"),
                     TN_OK); /* an absent plugin's section is no error */
    assert_int_equal(tni_options_check_plugin(o, "fake", rows, 2), TN_OK);
    assert_int_equal(tni_options_set(o, "plugin.fake.delay_u=7"), TN_OK);
    assert_int_equal(tni_options_check_plugin(o, "fake", rows, 2), TN_E_KEY);
    assert_string_equal(tni_error_message(), "no option plugin.fake.delay_u; did you mean delay_us?");
    tni_options_destroy(o);
    o = options_new();
    assert_int_equal(tni_options_set(o, "plugin.fake.seed=700"), TN_OK);
    assert_int_equal(tni_options_check_plugin(o, "fake", rows, 2), TN_E_ARG);
    tni_options_destroy(o);
    o = options_new();
    setenv("TENON_PLUGIN_FAKE__SEED", "x", 1);
    assert_int_equal(tni_options_read_environment(o), TN_OK);
    assert_int_equal(tni_options_check_plugin(o, "fake", rows, 2), TN_E_ARG);
    unsetenv("TENON_PLUGIN_FAKE__SEED");
    tni_options_destroy(o);
}

static void bad_files(void **state)
{
    static const struct {
        const char *text;
        tn_status status;
        const char *says;
    } cases[] = {
        {"x = 1\n", TN_E_KEY, "b.ini:1: x stands in no section"},
        {"[train]\nmomentun = 0.9\n", TN_E_KEY,
         "b.ini:2: no option train.momentun; did you mean train.momentum?"},
        {"[engine]\nthreads = many\n", TN_E_ARG, "b.ini:2: engine.threads = many, expected an integer"},
        {"[engine\n", TN_E_FORMAT, "b.ini:1: ']' is missing"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_options *o = options_new();

        assert_int_equal(
            tni_options_read_file(o, scratch_write("b.ini", cases[i].text, strlen(cases[i].text)), true),
            cases[i].status);
        if (!strstr(tni_error_message(), cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", tni_error_message(), cases[i].says);
        tni_options_destroy(o);
    }
}

static tn_status options_body(void *arg)
{
    tni_options *o = NULL;
    tn_status st;

    (void)arg;
    if ((st = tni_options_create(NULL, &o)) || (st = tni_options_set(o, "engine.type=naive")) ||
        (st = tni_options_set(o, "model.pad=1")) || (st = tni_options_set(o, "model.pad=2")) ||
        (st = tni_options_read_file(o, scratch_path("1.ini"), true)))
        goto cleanup;

cleanup:
    tni_options_destroy(o);
    return st;
}

static void options_without_memory(void **state)
{
    (void)state;
    assert_true(scratch_each_allocation_fails(options_body, NULL) > 100);
}

static void reader(void *arg)
{
    for (int i = 0; i < 20000; i++)
        if (tni_option_text(arg, "model.name")[0] == 'x')
            tni_option_int(arg, "engine.threads");
}

static void options_across_threads(void **state)
{
    tni_options *o = options_new();
    tni_thread *threads[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(tni_thread_create("reader", reader, o, &threads[i]), TN_OK);
    for (int i = 0; i < 2000; i++)
        assert_int_equal(tni_options_set(o, i % 2 ? "model.name=xa" : "model.name=yb"), TN_OK);
    for (int i = 0; i < 3; i++)
        tni_thread_join(threads[i]);
    tni_options_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table),
        cmocka_unit_test(precedence),
        cmocka_unit_test(origins),
        cmocka_unit_test(values),
        cmocka_unit_test(texts_stay),
        cmocka_unit_test(lists),
        cmocka_unit_test(trusted_only),
        cmocka_unit_test(environment),
        cmocka_unit_test(plugin_rows),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(options_without_memory),
        cmocka_unit_test(options_across_threads),
    };

    unsetenv("OMP_NUM_THREADS");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
