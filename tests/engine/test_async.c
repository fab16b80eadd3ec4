/*
 * Operations on a device with streams: who follows whom by a stream wait and who by a notification, failures
 * that come out late, early release, waits with a limit, memory that is short, allocation failure, and a
 * planted fault that must be seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async_device.h"
#include "engine/internal.h"
#include "support/scratch.h"

/* Under ThreadSanitizer the planted fault is what it is: a race, reported as one. */
#if defined(TN_TEST_SWITCHES) && !defined(__SANITIZE_THREAD__)
static const bool switches = true;
#else
static const bool switches = false;
#endif

typedef struct job { /* y = x + add, late */
    const uint64_t *x;
    uint64_t *y;
    uint64_t add, delay_ns;
    bool fails;
    uint32_t lane;
    uint32_t early;    /* position and 1 of a variable given free early */
    atomic_uint *hold; /* waits until it is not 0 */
    atomic_uint ran;
} job;

static tn_status job_body(void *arg, tn_err *err)
{
    job *j = arg;

    if (j->delay_ns)
        tni_sleep_ns(j->delay_ns);
    while (j->hold && !atomic_load(j->hold))
        tni_sleep_ns(20000);
    if (j->fails)
        return tn_fail(err, TN_E_DEVICE, "the unit is on fire");
    *j->y = *j->x + j->add;
    atomic_store(&j->ran, 1u);
    return TN_OK;
}

static tn_status job_run(void *payload, tni_run *run)
{
    job *j = *(job **)payload;
    tn_err err = {0};
    tn_status st;

    if (!run->stream)
        return job_body(j, &err);
    st = run->device->ops->stream_call(run->stream, job_body, j, &err);
    if (st)
        return tni_error_take(st, &err, "late");
    if (j->early)
        tni_engine_release_at(run, j->early - 1);
    return TN_OK;
}

static tn_status push_job(tni_engine *e, job *j, tni_device *d, tni_var *read, tni_var *write, uint32_t flags)
{
    tni_var *reads[] = {read}, *writes[] = {write};
    tni_task task = {.run = job_run,
                     .payload = &j,
                     .payload_bytes = sizeof j,
                     .reads = reads,
                     .read_count = 1,
                     .writes = writes,
                     .write_count = 1,
                     .device = d,
                     .flags = flags,
                     .lane = j->lane,
                     .name = "job"};

    return tni_engine_push(e, &task);
}

typedef struct setup {
    test_engine t;
    tni_device *first, *second;
    tni_var vars[4];
    uint64_t values[4];
} setup;

static void setup_open(setup *s, const char *type)
{
    memset(s, 0, sizeof *s);
    test_engine_open(&s->t, (tni_engine_options){.type = type});
    assert_int_equal(tni_device_get(s->t.devices, "late", 0, &s->first), TN_OK);
    assert_int_equal(tni_device_get(s->t.devices, "late", 1, &s->second), TN_OK);
}

static void setup_close(setup *s)
{
    test_engine_close(&s->t);
    for (int i = 0; i < 4; i++)
        tni_var_fini(&s->vars[i]);
}

/* The first device holds its write until its OUT lane and the second device were told to wait for it (or,
 * wrongly, ran); then the host follows. Returns what came out at the end. */
static uint64_t relay(setup *s, tni_engine_stats *stats)
{
    atomic_uint open = tni_engine_is_naive(s->t.engine);
    tni_var *v = s->vars;
    job jobs[4];

    for (uint64_t i = 0, add = 1; i < 4; i++, add *= 10)
        jobs[i] =
            (job){.x = &s->values[i], .y = &s->values[(i + 1) % 4], .add = add, .hold = i ? NULL : &open};
    jobs[1].lane = TNI_LANE_OUT;
    assert_int_equal(push_job(s->t.engine, &jobs[0], s->first, &v[0], &v[1], 0), TN_OK);
    assert_int_equal(push_job(s->t.engine, &jobs[1], s->first, &v[1], &v[2], 0), TN_OK);
    assert_int_equal(push_job(s->t.engine, &jobs[2], s->second, &v[2], &v[3], 0), TN_OK);
    assert_int_equal(push_job(s->t.engine, &jobs[3], NULL, &v[3], &v[0], 0), TN_OK);
    do {
        tni_engine_stats_get(s->t.engine, stats);
        if (tni_engine_ready_count(s->t.engine))
            (void)tni_engine_step(s->t.engine, 0);
    } while (!atomic_load(&open) && stats->event_waits < 2 && !atomic_load(&jobs[2].ran));
    atomic_store(&open, 1u);
    assert_int_equal(tni_engine_wait_read(s->t.engine, &s->vars[0], 0), TN_OK);
    assert_int_equal(tni_engine_wait_all(s->t.engine), TN_OK);
    tni_engine_stats_get(s->t.engine, stats);
    return s->values[0];
}

static void test_follow(void **state)
{
    static const char *const types[] = {"threaded", "stepped", "naive"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tni_engine_stats stats;
        setup s;

        setup_open(&s, types[i]);
        assert_int_equal(relay(&s, &stats), 1111);
        assert_int_equal(stats.event_waits, i < 2 ? 2 : 0); /* naive waits on the host */
        setup_close(&s);
    }
}

static void test_planted(void **state) /* without its event wait the engine is wrong, and this test sees it */
{
    tni_engine_stats stats;
    setup s;

    (void)state;
    if (!switches) {
        print_message("skipped: a build without test switches\n");
        skip();
    }
    setup_open(&s, "threaded");
    tni_engine_plant(s.t.engine, "drop_event_wait");
    assert_int_not_equal(relay(&s, &stats), 1111);
    setup_close(&s);
}

static void test_same_stream(void **state)
{
    tni_engine_stats stats;
    setup s;
    job jobs[50];

    (void)state;
    setup_open(&s, "threaded");
    for (int i = 0; i < 50; i++) {
        jobs[i] = (job){.x = &s.values[0], .y = &s.values[0], .add = 1, .delay_ns = i % 10 == 0 ? 200000 : 0};
        assert_int_equal(push_job(s.t.engine, &jobs[i], s.first, &s.vars[1], &s.vars[0], 0), TN_OK);
    }
    assert_int_equal(tni_engine_wait_write(s.t.engine, &s.vars[0], 0), TN_OK);
    assert_int_equal(s.values[0], 50);
    tni_engine_stats_get(s.t.engine, &stats);
    assert_int_equal(stats.event_waits, 0);
    setup_close(&s);
}

static void expect_device_error(setup *s, tni_var *v, const char *text)
{
    for (int i = 0; i < 2; i++) { /* each time */
        assert_int_equal(tni_engine_wait_read(s->t.engine, v, 0), TN_E_DEVICE);
        assert_string_equal(tni_error_message(), text);
    }
}

static void failing_stream(const char *type)
{
    static const char text[] = "job: device late:0 failed: the unit is on fire";
    setup s;
    job bad = {.fails = true, .delay_ns = 1000000}, good[3], again = {.add = 7}, elsewhere = {.add = 5};

    setup_open(&s, type);
    bad.y = &s.values[0];
    bad.x = &s.values[0];
    for (int i = 0; i < 3; i++)
        good[i] = (job){.x = &s.values[i], .y = &s.values[i + 1], .add = 1};
    again.y = elsewhere.y = &s.values[0];
    again.x = elsewhere.x = &s.values[0];
    assert_int_equal(push_job(s.t.engine, &bad, s.first, &s.vars[0], &s.vars[0], 0), TN_OK);
    assert_int_equal(push_job(s.t.engine, &good[0], s.second, &s.vars[0], &s.vars[1], 0),
                     TN_OK);                                                                  /* by event */
    assert_int_equal(push_job(s.t.engine, &good[1], NULL, &s.vars[1], &s.vars[2], 0), TN_OK); /* by notify */
    expect_device_error(&s, &s.vars[0], text);
    expect_device_error(&s, &s.vars[1], text);
    expect_device_error(&s, &s.vars[2], text);
    assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[3], 0), TN_OK);

    assert_int_equal(push_job(s.t.engine, &good[2], s.first, &s.vars[3], &s.vars[3], 0), TN_OK);
    expect_device_error(&s, &s.vars[3], "job: device late:0 failed earlier and refuses further work");

    assert_int_equal(push_job(s.t.engine, &elsewhere, s.second, &s.vars[0], &s.vars[0], 0), TN_OK);
    expect_device_error(&s, &s.vars[0], text); /* does not clear: skipped */
    assert_int_equal(push_job(s.t.engine, &again, s.second, &s.vars[0], &s.vars[0], TNI_TASK_CLEARS), TN_OK);
    assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[0], 0), TN_OK);
    tni_engine_clear(s.t.engine, &s.vars[1]);
    assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[1], 0), TN_OK);
    setup_close(&s);
}

static void test_failing_stream(void **state)
{
    (void)state;
    failing_stream("threaded");
    failing_stream("stepped");
}

static void test_failing_naive(void **state) /* the failure is known at once */
{
    setup s;
    job bad = {.fails = true};

    (void)state;
    setup_open(&s, "naive");
    bad.y = &s.values[0];
    bad.x = &s.values[0];
    assert_int_equal(push_job(s.t.engine, &bad, s.first, &s.vars[0], &s.vars[0], 0), TN_OK);
    assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[0], 0), TN_E_DEVICE);
    assert_non_null(strstr(tni_error_message(), "the unit is on fire"));
    setup_close(&s);
}

/* Pushes a job that reads var 0 and writes var 1, and comes back once it is in flight, where it stays. */
static void push_held(setup *s, job *j, atomic_uint *hold)
{
    *j = (job){.x = &s->values[0], .y = &s->values[1], .add = 1, .hold = hold};
    assert_int_equal(push_job(s->t.engine, j, s->first, &s->vars[0], &s->vars[1], 0), TN_OK);
    for (int i = 0; i < 2; i++)
        while (!(atomic_load(&s->vars[i].state) & VAR_TOKENS))
            tni_sleep_ns(20000);
}

static void test_timeout(void **state)
{
    atomic_uint hold = 0;
    setup s;
    job held;

    (void)state;
    setup_open(&s, "threaded");
    push_held(&s, &held, &hold);
    assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[1], 5),
                     TN_E_TIMEOUT); /* granted, but in flight */
    assert_int_equal(tni_engine_wait_write(s.t.engine, &s.vars[0], 5), TN_E_TIMEOUT);
    assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[0], 5), TN_OK); /* it is only read */
    assert_false(tni_var_ready(&s.vars[1]));
    atomic_store(&hold, 1u);
    assert_int_equal(tni_engine_wait_write(s.t.engine, &s.vars[0], 0), TN_OK);
    assert_int_equal(s.values[1], 1);
    setup_close(&s);
}

static void test_wait_without_memory(
    void **state) /* behind work under way: gives up in time, and comes back */
{
    atomic_uint hold = 0;
    setup s;
    job held;

    (void)state;
    setup_open(&s, "threaded");
    push_held(&s, &held, &hold);
    for (int write = 0; write < 4; write++) {
        tni_mem_fail_at(1, true, true);
        assert_int_equal(write % 2 ? tni_engine_wait_write(s.t.engine, &s.vars[write / 2], 2)
                                   : tni_engine_wait_read(s.t.engine, &s.vars[1], 2),
                         TN_E_TIMEOUT);
        tni_mem_fail_at(0, false, false);
    }
    tni_mem_fail_at(1, true, true);
    atomic_store(&hold, 1u);
    assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[1], 0), TN_OK);
    assert_int_equal(tni_engine_wait_write(s.t.engine, &s.vars[0], 0), TN_OK);
    tni_mem_fail_at(0, false, false);
    assert_int_equal(s.values[1], 1);
    setup_close(&s);
}

typedef struct recording { /* an operation whose run records work on the stream */
    atomic_uint begun, *open;
} recording;

static tn_status recording_run(void *payload, tni_run *run)
{
    recording *r = *(recording **)payload;

    (void)run;
    test_async_refuse(true);
    atomic_store(&r->begun, 1u);
    while (!test_async_refused())
        tni_sleep_ns(20000);
    test_async_refuse(false);
    atomic_store(r->open, 1u);
    return TN_OK;
}

/* Who waits for work on a stream that cannot tell, while its worker records there, does not disturb that. */
static void test_wait_while_recording(void **state)
{
    atomic_uint open = 0;
    recording r = {.open = &open}, *recorder = &r;
    setup s;
    job held, *self = &held;
    tni_var *reads[1], *writes[1];
    tni_task tasks[2] = {{.run = job_run, .payload = &self, .payload_bytes = sizeof self, .name = "job"},
                         {.run = recording_run,
                          .payload = &recorder,
                          .payload_bytes = sizeof recorder,
                          .name = "recording"}};

    (void)state;
    setup_open(&s, "threaded");
    held = (job){.x = &s.values[0], .y = &s.values[1], .add = 1, .hold = &open};
    reads[0] = &s.vars[0];
    writes[0] = &s.vars[1];
    tasks[0].device = tasks[1].device = s.first;
    tasks[0].reads = reads;
    tasks[0].writes = writes;
    tasks[0].read_count = tasks[0].write_count = 1;
    assert_int_equal(tni_engine_push_group(s.t.engine, tasks, 2), TN_OK); /* the worker goes on at once */
    while (!atomic_load(&r.begun))
        tni_sleep_ns(20000);
    assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[1], 0), TN_OK);
    assert_int_equal(s.values[1], 1);
    assert_int_equal(tni_engine_wait_all(s.t.engine), TN_OK);
    setup_close(&s);
}

static tn_status arrived_run(void *payload, tni_run *run)
{
    const job *j = *(job **)payload;

    (void)run;
    return atomic_load(&j->ran) ? TN_OK : tni_error(TN_E_INTERNAL, "it was still under way");
}

/* What looks at its inputs from the host begins when they are there, also behind work of its own stream. */
static void test_arrived(void **state)
{
    static const char *const types[] = {"threaded", "stepped", "naive"};

    (void)state;
    for (int i = 0; i < 3; i++) {
        setup s;
        job slow = {.add = 1, .delay_ns = 3000000}, *self = &slow;
        tni_var *reads[1], *writes[1];
        tni_task task = {.run = arrived_run,
                         .payload = &self,
                         .payload_bytes = sizeof self,
                         .reads = reads,
                         .read_count = 1,
                         .writes = writes,
                         .write_count = 1,
                         .flags = TNI_TASK_ARRIVED,
                         .name = "reader"};

        setup_open(&s, types[i]);
        slow.x = &s.values[0];
        slow.y = &s.values[1];
        reads[0] = &s.vars[1];
        writes[0] = &s.vars[2];
        task.device = s.first;
        assert_int_equal(push_job(s.t.engine, &slow, s.first, &s.vars[0], &s.vars[1], 0), TN_OK);
        assert_int_equal(tni_engine_push(s.t.engine, &task), TN_OK);
        assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[2], 0), TN_OK);
        setup_close(&s);
    }
}

static void test_early_release(void **state)
{
    setup s;

    (void)state;
    setup_open(&s, "threaded");
    for (int round = 0; round < 20; round++) {
        job segment = {.x = &s.values[0],
                       .y = &s.values[1],
                       .add = (uint64_t)round,
                       .delay_ns = round % 2 ? 300000 : 0,
                       .early = 2};
        job after = {.x = &s.values[1], .y = &s.values[2], .add = 1};

        assert_int_equal(push_job(s.t.engine, &segment, s.first, &s.vars[0], &s.vars[1], 0), TN_OK);
        assert_int_equal(push_job(s.t.engine, &after, round % 3 ? s.second : NULL, &s.vars[1], &s.vars[2], 0),
                         TN_OK);
        assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[2], 0), TN_OK);
        assert_int_equal(s.values[2], s.values[0] + (uint64_t)round + 1);
        assert_int_equal(tni_engine_wait_all(s.t.engine), TN_OK);
    }
    setup_close(&s);
}

/* On a worker: the notification that is under way comes, and the one behind it was not asked for. */
static tn_status relief_run(void *payload, tni_run *run)
{
    uint64_t *left = *(uint64_t **)payload;
    tni_block block = {0};
    tn_status st;

    test_async_hold(false, 1);
    st = tni_block_alloc(run->device, TN_MEMORY_DEVICE, 1u << 30, run->stream, "test", &block);
    *left = tni_engine_tls.worker->issued;
    tni_block_free(&block, run->stream);
    return st;
}

/* Who lacks memory waits for all that its stream has, and no longer: a driver tells in time of what it is
 * asked for. */
static void test_relief(void **state)
{
    job jobs[2];
    uint64_t left = 9, *payload = &left;
    setup s;

    (void)state;
    setup_open(&s, "threaded");
    test_async_hold(true, 0);
    for (int i = 0; i < 2; i++) {
        jobs[i] = (job){.x = &s.values[i], .y = &s.values[i], .add = 1};
        assert_int_equal(push_job(s.t.engine, &jobs[i], s.first, &s.vars[i], &s.vars[i], 0), TN_OK);
        while (!atomic_load(&s.t.engine->watching)) /* an idle worker asks for the first one's */
            tni_sleep_ns(20000);
    }
    assert_int_equal(tni_engine_push(s.t.engine, &(tni_task){.run = relief_run,
                                                             .payload = &payload,
                                                             .payload_bytes = sizeof payload,
                                                             .writes = (tni_var *[]){&s.vars[2]},
                                                             .write_count = 1,
                                                             .device = s.first,
                                                             .name = "short"}),
                     TN_OK);
    assert_int_equal(tni_engine_wait_read(s.t.engine, &s.vars[2], 0), TN_E_NOMEM);
    assert_int_equal(left, 0);
    assert_int_equal(tni_engine_wait_all(s.t.engine), TN_OK);
    assert_true(s.values[0] == 1 && s.values[1] == 1);
    setup_close(&s);
}

/* Whatever allocation fails: an error at its place or a right value, and the next round works. */
static void test_no_memory(void **state)
{
    bool failed = true;

    (void)state;
    for (uint64_t nth = 1; failed && nth < 200; nth++) {
        setup s;
        job jobs[3];
        tn_status st;

        setup_open(&s, "stepped");
        for (int i = 0; i < 3; i++)
            jobs[i] = (job){.x = &s.values[i], .y = &s.values[i + 1], .add = 1, .delay_ns = 100000};
        tni_mem_fail_at(nth, false, true);
        (void)((st = push_job(s.t.engine, &jobs[0], s.first, &s.vars[0], &s.vars[1], 0)) ||
               (st = push_job(s.t.engine, &jobs[1], s.second, &s.vars[1], &s.vars[2], 0)) ||
               (st = push_job(s.t.engine, &jobs[2], NULL, &s.vars[2], &s.vars[3], 0)) ||
               (st = tni_engine_wait_read(s.t.engine, &s.vars[3], 0)));
        tni_mem_fail_at(0, false, true);
        failed = tni_mem_failed();
        if (!st)
            assert_int_equal(s.values[3], 3);
        else if (st != TN_E_NOMEM)
            fail_msg("allocation %llu fails, and the wait says %d: %s", (unsigned long long)nth, st,
                     tni_error_message());
        while (tni_engine_wait_all(s.t.engine))
            ;
        setup_close(&s);
    }
    assert_false(failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_planted),
        cmocka_unit_test(test_same_stream),
        cmocka_unit_test(test_failing_stream),
        cmocka_unit_test(test_failing_naive),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_wait_without_memory),
        cmocka_unit_test(test_wait_while_recording),
        cmocka_unit_test(test_arrived),
        cmocka_unit_test(test_early_release),
        cmocka_unit_test(test_relief),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests_name("engine.async", tests, NULL, NULL);
}
