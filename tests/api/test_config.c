/*
 * Options that show their effect: a file alone switches pool and engine; init options keep what they were
 * opened with, live ones take a change over at once; the profiler writes its file; a log level is heeded from
 * the first line on.
 */
#include "api/support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/heard.h"
#include "support/list.h"
#include "support/scratch.h"

/* A context as --config FILE opens it; only the plugins' folder is said apart. */
static tn_ctx *file_open(const char *ini, heard *log)
{
    const char *folder = getenv("TENON_TEST_PLUGINS");
    char path[4200];
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                         .files = LIST(scratch_write("c.ini", ini, strlen(ini))),
                         .settings = LIST("plugins.trust=off", path),
                         .log = log ? heard_take : NULL,
                         .log_arg = log};
    tn_ctx *ctx = NULL;

    (void)snprintf(path, sizeof path, "plugins.path=%s", folder ? folder : "");
    assert_ok(tn_open(&o, &ctx));
    return ctx;
}

/* Bytes that the default device's pool keeps of a block given back, after it has given a second one. */
static tn_memory_stats pool_use(const char *ini)
{
    tn_memory_stats stats = {.struct_size = TN_SIZE(tn_memory_stats)};
    tn_ctx *ctx = file_open(ini, NULL);
    const tn_device *device;

    assert_ok(tn_device_get(ctx, tn_ctx_option(ctx, "device.default"), &device));
    for (int i = 0; i < 3; i++) {
        tn_array *a = NULL;

        assert_ok(tn_array_zeros(ctx, TN_F32, 1, (int64_t[]){300000}, NULL, &a));
        assert_ok(tn_array_wait(a));
        tn_array_release(a);
        assert_ok(tn_wait_all(ctx));
    }
    assert_ok(tn_device_memory(ctx, device, TN_MEMORY_DEVICE, &stats));
    test_close(ctx);
    return stats;
}

static void a_file_switches_the_pool(void **state)
{
    tn_memory_stats none = pool_use("[memory.cpu]\npool = none\n");
    tn_memory_stats naive = pool_use("[memory.cpu]\npool = naive\n");
    tn_memory_stats round = pool_use("[memory.cpu]\npool = round\n");
    tn_memory_stats fake = pool_use("[device]\ndefault = fake:0\n[memory.fake]\npool = none\n");
    tn_array *a = NULL;
    tn_ctx *ctx = NULL;

    (void)state;
    assert_true(none.cached == 0 && none.hits == 0);
    assert_true(naive.cached >= 1200000 && naive.hits >= 2);
    assert_true(round.cached == 1u << 21 && round.hits >= 2); /* 1.2 MB, up to a power of two */
    assert_true(fake.misses >= 3 && fake.hits == 0);
    assert_int_equal(test_open_with(LIST("memory.cpu.pool=rond", "device.default=cpu"), &ctx), TN_OK);
    assert_ok(tn_array_zeros(ctx, TN_F32, 1, (int64_t[]){100000}, NULL, &a));
    assert_int_equal(tn_array_wait(a), TN_E_KEY);
    assert_non_null(strstr(tn_error_text(), "round"));
    tn_array_release(a);
    (void)tn_close(ctx);
}

static tn_status thread_note(void *arg)
{
    *(pthread_t *)arg = pthread_self();
    return TN_OK;
}

/* Whether a pushed task runs on the thread that pushes it. */
static bool runs_here(const char *ini)
{
    tn_ctx *ctx = file_open(ini, NULL);
    pthread_t ran;
    tn_var *var = NULL;
    tn_task task = {.struct_size = TN_SIZE(tn_task), .run = thread_note, .arg = &ran, .write_count = 1};

    assert_ok(tn_var_create(ctx, &var));
    task.writes = &var;
    assert_ok(tn_engine_push(ctx, &task));
    assert_ok(tn_var_wait(ctx, var));
    tn_var_destroy(ctx, var);
    test_close(ctx);
    return pthread_equal(ran, pthread_self()) != 0;
}

static void a_file_switches_the_engine(void **state)
{
    (void)state;
    assert_true(runs_here("[engine]\ntype = naive\n"));
    assert_false(runs_here("[engine]\ntype = threaded\ninline_ns = 0\n"));
}

/* Every init option refuses a change with TN_E_STATE and keeps its value; every live one takes it. */
static void init_and_live(void **state)
{
    static const char *const live[] = {"engine.wait_warn_s", "log.level", "run.seed"};
    static const char *const to[] = {"5", "debug", "77"};
    tn_ctx *ctx = test_open(LIST("engine.wait_warn_s=9"));
    size_t found = 0;

    (void)state;
    for (size_t i = 0; i < tn_option_count(); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};
        size_t at = 0;

        assert_ok(tn_option_at(i, &o));
        while (at < sizeof live / sizeof *live && strcmp(live[at], o.key) != 0)
            at++;
        assert_true(!(o.flags & TN_OPTION_LIVE) == !(o.flags & TN_OPTION_INIT ? 0 : 1));
        if (strchr(o.key, '*'))
            continue;
        if (!(o.flags & TN_OPTION_LIVE)) {
            char before[256];

            (void)snprintf(before, sizeof before, "%s", tn_ctx_option(ctx, o.key));
            assert_int_equal(tn_ctx_option_set(ctx, o.key, o.default_text), TN_E_STATE);
            assert_non_null(strstr(tn_error_text(), "tn_open"));
            assert_string_equal(tn_ctx_option(ctx, o.key), before);
            continue;
        }
        assert_true(at < sizeof live / sizeof *live); /* a new live option: say above what it takes over */
        found++;
        assert_ok(tn_ctx_option_set(ctx, o.key, to[at]));
        assert_string_equal(tn_ctx_option(ctx, o.key), to[at]);
        assert_int_equal(tn_ctx_option_set(ctx, o.key, "no number"), TN_E_ARG);
        assert_string_equal(tn_ctx_option(ctx, o.key), to[at]);
    }
    assert_int_equal(found, sizeof live / sizeof *live);
    assert_int_equal(tn_ctx_option_set(ctx, "kernel.dot@cpu", "cpu"), TN_E_STATE);
    assert_int_equal(tn_ctx_option_set(ctx, "memory.cpu.pool", "none"), TN_E_STATE);
    assert_int_equal(tn_ctx_option_set(ctx, "log.levle", "debug"), TN_E_KEY);
    test_close(ctx);
}

static tn_status wait_long(void *arg)
{
    struct timespec ts = {0, 100000000};

    for (int i = 0; i < 600 && !heard_lines(arg); i++)
        (void)nanosleep(&ts, NULL);
    return TN_OK;
}

/* engine.wait_warn_s: a wait that begins after the change is reported after the new time. */
static void waits_are_reported_anew(void **state)
{
    heard log = HEARD(TN_LOG_DEBUG);
    tn_ctx *ctx = file_open("[engine]\nwait_warn_s = 0\n[log]\nlevel = warning\n", &log);
    tn_var *var = NULL;
    tn_task task = {.struct_size = TN_SIZE(tn_task), .run = wait_long, .arg = &log, .write_count = 1};

    (void)state;
    assert_ok(tn_ctx_option_set(ctx, "engine.wait_warn_s", "1"));
    assert_ok(tn_var_create(ctx, &var));
    task.writes = &var;
    task.name = "slow";
    assert_ok(tn_engine_push(ctx, &task));
    assert_ok(tn_var_wait(ctx, var));
    tn_var_destroy(ctx, var);
    assert_true(heard_times(&log, "1 a wait has lasted"));
    test_close(ctx);
}

/* log.level holds for what plugins and the environment's reader have to say, and from the first line on. */
static void the_level_is_heeded(void **state)
{
    heard log = HEARD(TN_LOG_DEBUG);
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_NO_SYSTEM,
                         .settings = LIST("log.level=info"),
                         .log = heard_take,
                         .log_arg = &log};
    tn_ctx *ctx = NULL;

    (void)state;
    assert_int_equal(setenv("MXNET_MEMORY_OPT", "1", 1), 0);
    assert_ok(tn_open(&o, &ctx));
    assert_int_equal(heard_times(&log, "2 MXNET_MEMORY_OPT is set and means nothing here"), 1);
    assert_ok(tn_close(ctx));
    heard_clear(&log);
    o.settings = NULL;
    assert_ok(tn_open(&o, &ctx));
    assert_int_equal(heard_times(&log, "MEMORY_OPT"), 0);
    assert_ok(tn_close(ctx));
    (void)unsetenv("MXNET_MEMORY_OPT");
}

/* profiler.autostart: the file is there once the context is closed, and tells what ran. Its name is relative:
 * a line of a configuration file has its limit. */
static void the_profiler_writes_its_file(void **state)
{
    char ini[512], text[4096] = "";
    const char *path = "profile.json";
    tn_var *var = NULL;
    pthread_t ran;
    tn_task task = {.struct_size = TN_SIZE(tn_task),
                    .run = thread_note,
                    .arg = &ran,
                    .write_count = 1,
                    .name = "my task"};
    heard log = HEARD(TN_LOG_DEBUG);
    tn_ctx *ctx;
    FILE *file;

    (void)state;
    assert_int_equal(chdir(scratch_folder()), 0);
    (void)snprintf(ini, sizeof ini, "[profiler]\nautostart = on\nevents_max = 64\nfile = %s\n", path);
    ctx = file_open(ini, NULL);
    assert_ok(tn_var_create(ctx, &var));
    task.writes = &var;
    assert_ok(tn_engine_push(ctx, &task));
    assert_ok(tn_var_wait(ctx, var));
    tn_var_destroy(ctx, var);
    test_close(ctx);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    (void)fclose(file);
    assert_non_null(strstr(text, "\"traceEvents\""));
    assert_non_null(strstr(text, "\"name\":\"my task\",\"cat\":\"engine\",\"ph\":\"B\""));
    (void)snprintf(ini, sizeof ini, "[profiler]\nautostart = 1\nfile = %s/p.json\n", path);
    ctx = file_open(ini, &log); /* a file is no folder */
    assert_ok(tn_close(ctx));   /* what cannot be written is a warning */
    assert_int_equal(heard_times(&log, "1 the profile was not written"), 1);
}

static size_t events_named(const char *path, const char *named)
{
    static char text[1 << 20];
    size_t count = 0, bytes;
    FILE *file = fopen(path, "r");

    assert_non_null(file);
    bytes = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    assert_true(bytes > 0 && bytes < sizeof text - 1);
    text[bytes] = '\0';
    for (const char *at = text; (at = strstr(at, named)) != NULL; at++)
        count++;
    return count;
}

/* A call that runs at once on its thread. */
static void short_call(tn_ctx *ctx)
{
    tn_array *x = test_array(ctx, 1, (int64_t[]){2}, (float[]){1, 2}), *y;

    assert_ok(tn_array_wait(x));
    y = test_op(ctx, "square", NULL, 1, &x);
    test_values(y, (float[]){1, 4}, 2, 0);
    tn_array_release(x);
    tn_array_release(y);
}

/* Two contexts record, and the program: the first that leaves does not end what the others see. */
static void each_profiler_sees_to_its_end(void **state)
{
    const char *const square = "\"name\":\"square\",\"cat\":\"caller\",\"ph\":\"B\"";
    const char *const ended = "\"name\":\"square\",\"cat\":\"caller\",\"ph\":\"E\"";
    const char *const one_path = "one.json", *const two_path = "two.json";
    char ini[512], *json = NULL;
    tn_ctx *one, *two;

    (void)state;
    assert_int_equal(chdir(scratch_folder()), 0);
    (void)snprintf(ini, sizeof ini, "[profiler]\nautostart = on\nevents_max = 64\nfile = %s\n", one_path);
    one = file_open(ini, NULL);
    short_call(one);
    (void)snprintf(ini, sizeof ini, "[profiler]\nautostart = on\nfile = %s\n", two_path);
    two = file_open(ini, NULL);
    short_call(one);
    assert_ok(tn_trace_start(64));
    tn_trace_stop();
    tn_trace_stop();
    short_call(two);
    test_close(one);
    short_call(two);
    short_call(two);
    test_close(two);
    assert_int_equal(events_named(one_path, square), 3);
    assert_int_equal(events_named(one_path, ended), 3);
    assert_int_equal(events_named(two_path, square), 4);
    assert_int_equal(events_named(two_path, ended), 4);
    one = test_open(NULL); /* nobody records any more */
    short_call(one);
    assert_ok(tn_trace_json(&json));
    assert_null(strstr(json, "square"));
    tn_free(json);
    test_close(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_switches_the_pool),
        cmocka_unit_test(a_file_switches_the_engine),
        cmocka_unit_test(init_and_live),
        cmocka_unit_test(waits_are_reported_anew),
        cmocka_unit_test(the_level_is_heeded),
        cmocka_unit_test(the_profiler_writes_its_file),
        cmocka_unit_test(each_profiler_sees_to_its_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
