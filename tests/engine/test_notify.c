/*
 * Notifications: a chain that nobody waits for asks for few of them, and yet all of it ends; whoever needs
 * one asks: waits, operations elsewhere, drains, shutdown. One that fails says which of the operations before
 * it failed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async_device.h"
#include "engine/internal.h"
#include "part.h"
#include "support/space.h"

#define CHAIN 1000u

typedef struct link_job { /* adds one to a number, on a stream or on the host */
    uint64_t *number;
    atomic_uint *open; /* the stream stands still until this is not 0 */
    bool fails;
    atomic_uint done;
    tn_status status;
} link_job;

static tn_status link_body(void *arg, tn_err *err)
{
    link_job *j = arg;

    while (j->open && !atomic_load(j->open))
        tni_sleep_ns(20000);
    if (j->fails)
        return tn_fail(err, TN_E_DEVICE, "planted");
    ++*j->number;
    return TN_OK;
}

static tn_status link_run(void *payload, tni_run *run)
{
    link_job *j = *(link_job **)payload;
    tn_err err = {0};
    tn_status st;

    if (!run->stream)
        return link_body(j, &err);
    st = run->device->ops->stream_call(run->stream, link_body, j, &err);
    return st ? tni_error_take(st, &err, "device") : TN_OK;
}

static void link_done(void *payload, tni_engine *engine, tn_status status)
{
    link_job *j = *(link_job **)payload;

    (void)engine;
    j->status = status;
    atomic_fetch_add(&j->done, 1u);
}

static tni_task link_task(link_job **j, tni_device *d, tni_var *const *writes)
{
    return (tni_task){.run = link_run,
                      .done = link_done,
                      .payload = j,
                      .payload_bytes = sizeof *j,
                      .writes = writes,
                      .write_count = 1,
                      .device = d,
                      .name = "link"};
}

static uint64_t statistic(tni_device *d, const char *name)
{
    const char *text = d->ops->statistics(d->handle);
    const char *at = strstr(text, name);

    assert_non_null(at);
    return strtoull(at + strlen(name) + 2, NULL, 10); /* behind ": */
}

typedef struct chain {
    test_space t;
    tni_device *d;
    tni_var var, *writes[1];
    uint64_t number;
    atomic_uint open;
    link_job jobs[CHAIN], *self[CHAIN];
    tni_task tasks[CHAIN];
} chain;

static bool chain_open(chain *c, const char *engine)
{
    int32_t count = 0;

    memset(c, 0, sizeof *c);
    test_space_open(&c->t, engine);
    if (tni_device_type_count(c->t.devices, "fake", &count) || !count) {
        print_message("skipped: no device fake\n");
        test_space_close(&c->t);
        return false;
    }
    assert_int_equal(tni_device_get(c->t.devices, "fake", 0, &c->d), TN_OK);
    c->writes[0] = &c->var;
    for (uint32_t i = 0; i < CHAIN; i++) {
        c->jobs[i].number = &c->number;
        c->self[i] = &c->jobs[i];
        c->tasks[i] = link_task(&c->self[i], c->d, c->writes);
    }
    return true;
}

/* The chain is issued while its first operation stands still.
 * Then nobody waits, and yet every `done` comes. */
static void test_few(void **state)
{
    static const char *const types[] = {"threaded", "stepped"};
    static chain c;

    (void)state;
    for (int i = 0; i < 2; i++) {
        const bool stepped = i == 1;
        tni_engine_stats stats;
        uint64_t before;

        if (!chain_open(&c, types[i]))
            skip();
        before = statistic(c.d, "notifications");
        c.jobs[0].open = &c.open;
        assert_int_equal(tni_engine_push_group(c.t.engine, c.tasks, CHAIN), TN_OK);
        while (stepped && tni_engine_ready_count(c.t.engine))
            assert_int_equal(tni_engine_step(c.t.engine, 0), TN_OK);
        atomic_store(&c.open, 1u);
        for (uint32_t k = 0; k < CHAIN; k++)
            while (!atomic_load(&c.jobs[k].done))
                (void)tni_engine_ready_count(
                    c.t.engine); /* whoever steps comes by; the threaded one needs nobody */
        assert_int_equal(c.number, CHAIN);
        while (atomic_load(&c.t.engine->watching))
            (void)tni_engine_ready_count(c.t.engine);
        assert_int_equal(tni_engine_wait_all(c.t.engine), TN_OK); /* asks for nothing; `done` comes first */
        tni_engine_stats_get(c.t.engine, &stats);
        assert_int_equal(stats.done, CHAIN);
        assert_true(stats.notifications >= CHAIN / WATCH_EVERY && stats.notifications <= 64);
        assert_true(statistic(c.d, "notifications") - before == stats.notifications);
        test_space_close(&c.t);
        tni_var_fini(&c.var);
    }
}

/* Each of these needs the completion of an operation that is followed by one that stands still. */
static void wait_for_it(chain *c, void *arg)
{
    (void)arg;
    assert_int_equal(tni_engine_wait_read(c->t.engine, &c->var, 0), TN_OK);
}

static void host_reads_it(chain *c, void *arg)
{
    link_job host = {.number = arg}, *self = &host;
    tni_task task = link_task(&self, NULL, c->writes);

    assert_int_equal(tni_engine_push(c->t.engine, &task), TN_OK);
    part_until(&host.done, 1);
}

static void arrived_reads_it(chain *c, void *arg)
{
    link_job host = {.number = arg}, *self = &host;
    tni_task task = link_task(&self, c->d, c->writes);

    task.flags = TNI_TASK_ARRIVED;
    task.lane = TNI_LANE_OUT;
    assert_int_equal(tni_engine_push(c->t.engine, &task), TN_OK);
    assert_int_equal(tni_engine_wait_write(c->t.engine, &c->var, 0), TN_OK);
    part_until(&host.done, 1); /* `done` comes behind the variables, and uses `host` */
}

static void test_asked_where_needed(void **state)
{
    static void (*const needs[])(chain *, void *) = {wait_for_it, host_reads_it, arrived_reads_it};
    static chain c;

    (void)state;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        link_job held, *self = &held;
        tni_var other = {0}, *const writes[] = {&other};
        uint64_t sink = 0;

        if (!chain_open(&c, "threaded"))
            skip();
        held = (link_job){.number = &sink, .open = &c.open};
        tni_task tasks[] = {c.tasks[0], link_task(&self, c.d, writes)};

        assert_int_equal(tni_engine_push_group(c.t.engine, tasks, 2), TN_OK);
        needs[i](&c, &c.number);
        assert_int_equal(atomic_load(&held.done), 0);
        atomic_store(&c.open, 1u);
        test_space_close(&c.t);
        assert_int_equal(atomic_load(&held.done), 1);
        tni_var_fini(&c.var);
        tni_var_fini(&other);
    }
}

/* Shutdown and drains wait for what nobody asked for,
 * also for notifications whose tokens retired by others. */
static void test_shutdown(void **state)
{
    static chain c;

    (void)state;
    for (uint32_t i = 0; i < test_runs(40); i++) {
        uint32_t done = 0;

        if (!chain_open(&c, i % 2 ? "stepped" : "threaded"))
            skip();
        assert_int_equal(tni_engine_push_group(c.t.engine, c.tasks, 100 + i), TN_OK);
        if (i % 3 == 0)
            assert_int_equal(tni_engine_wait_all(c.t.engine), TN_OK);
        tni_engine_destroy(c.t.engine);
        c.t.engine = NULL;
        for (uint32_t k = 0; k < 100 + i; k++)
            done += atomic_load(&c.jobs[k].done);
        assert_int_equal(done, 100 + i);
        tni_space_destroy(c.t.space);
        tni_device_set_destroy(c.t.devices);
        tni_registry_destroy(c.t.registry);
        tni_options_destroy(c.t.options);
        tni_var_fini(&c.var);
    }
}

/* One notification tells of 40 operations, of which the 21st failed: those before it are good,
 * each as it is. */
static void test_failure_in_between(void **state)
{
    static const char *const types[] = {"threaded", "stepped"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        const uint32_t count = 40, bad = 20;
        static tni_var vars[40];
        static link_job jobs[40];
        static uint64_t numbers[40];
        atomic_uint open = 0;
        tni_device *d;
        test_engine t;

        memset(vars, 0, sizeof vars);
        memset(jobs, 0, sizeof jobs);
        memset(numbers, 0, sizeof numbers);
        test_engine_open(&t, (tni_engine_options){.type = types[i]});
        assert_int_equal(tni_device_get(t.devices, "late", 0, &d), TN_OK);
        for (uint32_t k = 0; k < count; k++) {
            tni_var *const writes[] = {&vars[k]};
            link_job *self = &jobs[k];
            const tni_task task = link_task(&self, d, writes);

            jobs[k] = (link_job){.number = &numbers[k], .fails = k == bad, .open = k ? NULL : &open};
            assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
        }
        while (tni_engine_ready_count(t.engine))
            assert_int_equal(tni_engine_step(t.engine, 0), TN_OK);
        atomic_store(&open, 1u);
        for (uint32_t k = 0; k < count; k++) /* the last may be refused before others are known to be done */
            while (!atomic_load(&jobs[k].done))
                (void)tni_engine_ready_count(t.engine);
        for (uint32_t k = 0; k < count; k++) {
            assert_int_equal(tni_engine_wait_read(t.engine, &vars[k], 0), k < bad ? TN_OK : TN_E_DEVICE);
            assert_int_equal(jobs[k].status, k < bad ? TN_OK : TN_E_DEVICE);
            assert_int_equal(numbers[k], k < bad);
        }
        test_engine_close(&t);
        for (uint32_t k = 0; k < count; k++)
            tni_var_fini(&vars[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few),
        cmocka_unit_test(test_asked_where_needed),
        cmocka_unit_test(test_shutdown),
        cmocka_unit_test(test_failure_in_between),
    };

    return cmocka_run_group_tests_name("engine.notify", tests, NULL, NULL);
}
