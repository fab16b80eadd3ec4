/*
 * What a dump may look at: the variables of an operation until they are given free, when whoever had them may
 * free them, also before the operation has ended.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async_device.h"
#include "engine/internal.h"
#include "part.h"

#ifdef TN_TEST_SWITCHES
static const bool switches = true;
#else
static const bool switches = false;
#endif

static tn_status write_run(void *payload, tni_run *run)
{
    (void)run;
    return *(const bool *)payload ? tni_error(TN_E_SHAPE, "planted") : TN_OK;
}

static tn_status nothing_run(void *payload, tni_run *run)
{
    (void)payload;
    (void)run;
    return TN_OK;
}

static tn_status next_run(void *payload, tni_run *run)
{
    (void)run;
    atomic_store(*(atomic_uint **)payload, 1u);
    return TN_OK;
}

/* An operation writes `v`, one of another queue comes behind it: then `v` is free, while the first one is
 * held before its end. */
static void dump_before_the_end(const char *device, bool fails)
{
    atomic_uint ran = 0, *next = &ran;
    tni_var v = {0}, *vars[] = {&v};
    tni_device *d;
    test_engine t;
    tni_str text;

    test_engine_open(&t, (tni_engine_options){0});
    assert_int_equal(tni_device_get(t.devices, device, 0, &d), TN_OK);
    tni_engine_plant(t.engine, "hold_ends");
    assert_int_equal(tni_engine_push(t.engine, &(tni_task){.run = write_run,
                                                           .payload = &fails,
                                                           .payload_bytes = sizeof fails,
                                                           .writes = vars,
                                                           .write_count = 1,
                                                           .device = d,
                                                           .lane = TNI_LANE_COMM,
                                                           .name = "first"}),
                     TN_OK);
    assert_int_equal(tni_engine_push(t.engine, &(tni_task){.run = next_run,
                                                           .payload = &next,
                                                           .payload_bytes = sizeof next,
                                                           .flags = TNI_TASK_ALWAYS,
                                                           .reads = vars,
                                                           .read_count = 1,
                                                           .name = "next"}),
                     TN_OK);
    part_until(&ran, 1);
    tni_str_init(&text, 4096);
    assert_int_equal(tni_engine_dump(t.engine, &text), TN_OK);
    if (text.text && strstr(text.text, "writes"))
        fail_msg("%s", text.text);
    tni_str_fini(&text);
    tni_engine_plant(t.engine, "");
    assert_int_equal(tni_engine_wait_all(t.engine), fails ? TN_E_SHAPE : TN_OK);
    test_engine_close(&t);
    tni_var_fini(&v);
}

static void test_host(void **state)
{
    (void)state;
    if (!switches) {
        print_message("skipped: a build without test switches\n");
        skip();
    }
    dump_before_the_end("cpu", false);
    dump_before_the_end("cpu", true);
}

static void test_streams(void **state)
{
    (void)state;
    if (!switches) {
        print_message("skipped: a build without test switches\n");
        skip();
    }
    dump_before_the_end("late", false);
    dump_before_the_end("late", true);
}

/* ---- beside each other -------------------------------------------------------------------------------- */

typedef struct dumper {
    tni_engine *engine;
    atomic_uint over, dumps;
    tn_status status;
} dumper;

static void *dump_on(void *arg)
{
    dumper *d = arg;

    while (!atomic_load(&d->over)) {
        tni_str text;
        tn_status st;

        tni_str_init(&text, 1 << 20);
        if ((st = tni_engine_dump(d->engine, &text)))
            d->status = st;
        tni_str_fini(&text);
        atomic_fetch_add(&d->dumps, 1u);
    }
    return NULL;
}

static void var_free(void *payload, tni_engine *e, tn_status status)
{
    tni_var *v = *(tni_var **)payload;

    (void)e;
    (void)status;
    tni_var_fini(v);
    free(v);
}

/* Variables that go as soon as they are free, while somebody dumps: for the sanitizers. */
static void test_beside(void **state)
{
    enum { VARIABLES = 500, DUMPS = 20 };
    const bool fails = false;
    test_engine t;
    dumper d = {.over = 0};
    pthread_t thread;

    (void)state;
    test_engine_open(&t, (tni_engine_options){.queue_max = 100});
    d.engine = t.engine;
    assert_int_equal(pthread_create(&thread, NULL, dump_on, &d), 0);
    for (uint32_t i = 0; i < VARIABLES || atomic_load(&d.dumps) < DUMPS; i++) {
        tni_var *v = calloc(1, sizeof *v);
        const tni_task first = {.run = write_run,
                                .payload = &fails,
                                .payload_bytes = sizeof fails,
                                .writes = &v,
                                .write_count = 1,
                                .lane = TNI_LANE_COMM,
                                .name = "first"};
        const tni_task last = {.run = nothing_run,
                               .done = var_free,
                               .payload = &v,
                               .payload_bytes = sizeof(tni_var *),
                               .writes = &v,
                               .write_count = 1,
                               .name = "last"};

        assert_non_null(v);
        assert_int_equal(tni_engine_push(t.engine, &first), TN_OK);
        assert_int_equal(tni_engine_push(t.engine, &last), TN_OK);
    }
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    atomic_store(&d.over, 1u);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(d.status, TN_OK);
    test_engine_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_host), cmocka_unit_test(test_streams),
                                       cmocka_unit_test(test_beside)};

    return cmocka_run_group_tests_name("engine.dump", tests, NULL, NULL);
}
