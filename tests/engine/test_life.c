/*
 * The engine as people meet it: several pushers, a full queue, waits with a limit, shutdown at any moment,
 * fork, completion from outside, early release, host callbacks, the fast path.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "async_device.h"
#include "engine/internal.h"
#include "support/scratch.h"

#define VARS 16
#define PUSHERS 3

/* ThreadSanitizer's runtime dies when the child of a threaded program starts a thread. */
#if defined(__SANITIZE_THREAD__)
static const bool child_may_start_threads = false;
#else
static const bool child_may_start_threads = true;
#endif

typedef struct cell {
    tni_var var;
    uint64_t value;
    uint64_t last[PUSHERS]; /* the highest number of each pusher that was seen here */
    char pad[64];
} cell;

typedef struct sum_args {
    cell *reads[2], *write;
    uint64_t add, pusher, number;
    atomic_uint *wrong;
} sum_args;

static tn_status sum_run(void *payload, tni_run *run)
{
    sum_args *a = payload;

    (void)run;
    if (a->write->last[a->pusher] >= a->number)
        atomic_fetch_add(a->wrong, 1u);
    a->write->last[a->pusher] = a->number;
    a->write->value +=
        a->add + 0 * (a->reads[0]->value + a->reads[1]->value); /* reads race if not excluded */
    return TN_OK;
}

static tn_status push_sum(tni_engine *e, sum_args *a, uint64_t est_ns)
{
    tni_var *reads[] = {&a->reads[0]->var, &a->reads[1]->var}, *writes[] = {&a->write->var};
    tni_task task = {.run = sum_run,
                     .payload = a,
                     .payload_bytes = sizeof *a,
                     .reads = reads,
                     .read_count = 2,
                     .writes = writes,
                     .write_count = 1,
                     .name = "sum",
                     .est_ns = est_ns};

    return tni_engine_push(e, &task);
}

/* ---- several pushers ----------------------------------------------------------------------------------- */

typedef struct pusher {
    tni_engine *engine;
    cell *cells;
    uint64_t id, count, random, added[VARS];
    atomic_uint *wrong;
    bool eager;
} pusher;

static void eager_sum(pusher *p, cell *to, cell *from, uint64_t add)
{
    tni_var *reads[] = {&from->var}, *writes[] = {&to->var};

    if (!tni_engine_enter(p->engine, reads, 1, writes, 1)) {
        p->added[to - p->cells] -= add;
        return;
    }
    to->value += add + 0 * from->value;
    tni_engine_leave(p->engine, reads, 1, writes, 1, TN_OK, "eager");
}

static void pusher_main(void *arg)
{
    pusher *p = arg;

    for (uint64_t i = 1; i <= p->count; i++) {
        cell *to = &p->cells[test_random(&p->random) % VARS], *a = &p->cells[test_random(&p->random) % VARS],
             *b = &p->cells[test_random(&p->random) % VARS];
        sum_args args = {{a, b}, to, test_random(&p->random), p->id, i, p->wrong};

        p->added[to - p->cells] += args.add;
        if (p->eager && i % 3 == 0 && a != to)
            eager_sum(p, to, a, args.add);
        else if (push_sum(p->engine, &args, i % 5 ? 0 : 100))
            abort();
        if (i % 64 == 0 && tni_engine_wait_read(p->engine, &to->var, 0))
            abort();
        if (i % 100 == 0 && tni_engine_wait_all(p->engine))
            abort();
        if (i % 32 == 0)
            (void)tni_var_ready(&to->var);
    }
}

static void pushers_run(const char *type, uint32_t workers, bool eager, uint64_t queue_max)
{
    static cell cells[VARS];
    pusher p[PUSHERS];
    tni_thread *threads[PUSHERS];
    atomic_uint wrong = 0;
    test_engine t;

    memset(cells, 0, sizeof cells);
    test_engine_open(&t, (tni_engine_options){
                             .type = type, .workers = workers, .inline_ns = 1000, .queue_max = queue_max});
    for (uint64_t i = 0; i < PUSHERS; i++) {
        p[i] = (pusher){t.engine, cells, i, test_runs(2000), test_seed() + i, {0}, &wrong, eager};
        assert_int_equal(tni_thread_create("pusher", pusher_main, &p[i], &threads[i]), TN_OK);
    }
    for (int i = 0; i < PUSHERS; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    for (size_t v = 0; v < VARS; v++)
        assert_int_equal(cells[v].value, p[0].added[v] + p[1].added[v] + p[2].added[v]);
    assert_int_equal(atomic_load(&wrong), 0);
    test_engine_close(&t);
}

static void test_pushers(void **state)
{
    (void)state;
    pushers_run("threaded", 1, false, 0);
    pushers_run("threaded", 3, false, 64);
    pushers_run("naive", 1, false, 0);
}

static void test_enter_leave(void **state)
{
    (void)state;
    pushers_run("threaded", 2, true, 0);
    pushers_run("naive", 1, true, 0);
}

static void test_fast_path(void **state) /* what it does to variables, and when it is refused */
{
    tni_var a = {0}, b = {0};
    tni_var *reads[] = {&a}, *writes[] = {&b};
    tni_engine_stats stats;
    test_engine t;

    (void)state;
    test_engine_open(&t, (tni_engine_options){.inline_ns = 1000});
    assert_true(tni_engine_enter(t.engine, reads, 1, writes, 1));
    tni_engine_leave(t.engine, reads, 1, writes, 1, TN_OK, "x");
    assert_int_equal(tni_var_version(&b), 1);
    assert_true(tni_engine_enter(t.engine, reads, 1, writes, 1));
    assert_false(tni_engine_enter(t.engine, writes, 1, NULL, 0));
    assert_true(tni_engine_enter(t.engine, reads, 1, NULL, 0)); /* reads share */
    tni_engine_leave(t.engine, reads, 1, NULL, 0, TN_OK, "x");
    tni_engine_leave(t.engine, reads, 1, writes, 1, tni_error(TN_E_SHAPE, "no"), "add");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tni_engine_wait_read(t.engine, &b, 0), TN_E_SHAPE);
        assert_string_equal(tni_error_message(), "add: no");
    }
    assert_false(tni_engine_enter(t.engine, NULL, 0, writes, 1)); /* poisoned */
    tni_engine_clear(t.engine, &b);
    assert_true(tni_engine_enter(t.engine, reads, 1, writes, 1));
    tni_engine_leave(t.engine, reads, 1, writes, 1, tni_error(TN_E_DTYPE, "never"), "mul");
    assert_int_equal(tni_engine_wait_write(t.engine, &b, 0), TN_E_DTYPE);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK); /* both were told */
    tni_engine_stats_get(t.engine, &stats);
    assert_int_equal(stats.failed, 2);
    test_engine_close(&t);
    tni_var_fini(&b);
}

/* ---- gates: operations that wait for the test ------------------------------------------------------ */

typedef struct gate {
    atomic_uint open, entered, runs, done, cancelled;
    uint32_t early; /* position and 1 of a variable given free early */
    tn_status inner;
} gate;

static tn_status gate_run(void *payload, tni_run *run)
{
    gate *g = *(gate **)payload;

    if (g->early)
        tni_engine_release_at(run, g->early - 1);
    atomic_fetch_add(&g->entered, 1u);
    while (!atomic_load(&g->open))
        tni_sleep_ns(20000);
    atomic_fetch_add(&g->runs, 1u);
    return TN_OK;
}

static tn_status count_run(void *payload, tni_run *run)
{
    (void)run;
    atomic_fetch_add(&(*(gate **)payload)->runs, 1u);
    return TN_OK;
}

static void count_done(void *payload, tni_engine *e, tn_status status)
{
    gate *g = *(gate **)payload;

    (void)e;
    atomic_fetch_add(&g->done, 1u);
    if (status == TN_E_CANCELLED)
        atomic_fetch_add(&g->cancelled, 1u);
}

static tn_status push_on(tni_engine *e, tn_status (*run)(void *, tni_run *), gate *g, tni_var *var,
                         uint32_t flags)
{
    tni_var *writes[] = {var};
    tni_task task = {.run = run,
                     .done = count_done,
                     .payload = &g,
                     .payload_bytes = sizeof g,
                     .writes = writes,
                     .write_count = var != NULL,
                     .flags = flags,
                     .name = "gate",
                     .origin = "life.c"};

    return tni_engine_push(e, &task);
}

static void until(atomic_uint *value, unsigned wanted)
{
    while (atomic_load(value) < wanted)
        tni_sleep_ns(20000);
}

static void test_bounded(void **state)
{
    tni_engine_stats stats;
    test_engine t;
    gate g = {0};
    tni_var var = {0};

    (void)state;
    test_engine_open(&t, (tni_engine_options){.queue_max = 50});
    for (int i = 0; i < 5000; i++)
        assert_int_equal(push_on(t.engine, count_run, &g, i % 2 ? &var : NULL, 0), TN_OK);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    tni_engine_stats_get(t.engine, &stats);
    assert_int_equal(atomic_load(&g.runs), 5000);
    assert_true(stats.queue_peak <= 50);
    assert_int_equal(stats.over_limit, 0);
    assert_int_equal(stats.pushed, 5000);
    assert_int_equal(stats.done, 5000);
    test_engine_close(&t);
}

static tn_status nested_run(void *payload, tni_run *run)
{
    gate *g = *(gate **)payload;

    for (int i = 0; i < 100; i++) /* more than the queue holds, from inside: over the limit, not stuck */
        if (push_on(run->engine, count_run, g, NULL, 0))
            return TN_E_INTERNAL;
    g->inner = tni_engine_wait_all(run->engine);
    return TN_OK;
}

static void test_over_limit(void **state)
{
    static const char *const types[] = {"threaded", "naive", "stepped"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tni_engine_stats stats;
        test_engine t;
        gate g = {0};

        test_engine_open(&t, (tni_engine_options){.type = types[i], .queue_max = 10});
        assert_int_equal(push_on(t.engine, nested_run, &g, NULL, 0), TN_OK);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK); /* what the first waited for pushed more */
        assert_int_equal(atomic_load(&g.runs), 100);
        assert_int_equal(g.inner, TN_E_STATE); /* no waiting on a worker */
        tni_engine_stats_get(t.engine, &stats);
        assert_true(stats.over_limit >= 90);
        test_engine_close(&t);
    }
}

static tn_status call_run(void *payload, tni_run *run)
{
    gate *g = *(gate **)payload;
    tni_var var = {0};
    tn_status st;

    if ((st = push_on(run->engine, count_run, g, &var, 0)))
        return st;
    st = tni_engine_wait_read(run->engine, &var, 0);
    tni_var_fini(&var);
    return st;
}

static void test_host_call(void **state)
{
    static const char *const types[] = {"threaded", "naive"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        test_engine t;
        gate g = {0};

        test_engine_open(&t, (tni_engine_options){.type = types[i]});
        for (int k = 0; k < 8; k++)
            assert_int_equal(push_on(t.engine, call_run, &g, NULL, TNI_TASK_HOST_CALL), TN_OK);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(atomic_load(&g.runs), 8);
        test_engine_close(&t);
    }
}

/* ---- waits ----------------------------------------------------------------------------------------- */

/* What was waited for is over in every respect, also if a worker ran it before another one had noted that it
 * was entered: its variable is ready, and the fast path is open. */
static void test_ready_after_wait(void **state)
{
    tni_var var = {0};
    tni_var *writes[] = {&var};
    test_engine t;
    gate g = {0};

    (void)state;
    test_engine_open(&t, (tni_engine_options){.workers = 3, .inline_ns = 1000});
    for (int i = 0; i < 300; i++) {
        assert_int_equal(push_on(t.engine, count_run, &g, &var, 0), TN_OK);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_true(tni_var_ready(&var));
        assert_true(tni_engine_enter(t.engine, NULL, 0, writes, 1));
        tni_engine_leave(t.engine, NULL, 0, writes, 1, TN_OK, "eager");
    }
    test_engine_close(&t);
}

static void test_timeout(void **state)
{
    test_engine t;
    gate g = {0};
    tni_var var = {0};

    (void)state;
    test_engine_open(&t, (tni_engine_options){.wait_warn_ms = 5});
    assert_int_equal(push_on(t.engine, gate_run, &g, &var, 0), TN_OK);
    assert_int_equal(push_on(t.engine, count_run, &g, &var, 0), TN_OK);
    assert_false(tni_var_ready(&var));
    assert_int_equal(tni_engine_wait_read(t.engine, &var, 20), TN_E_TIMEOUT);
    assert_int_equal(tni_engine_wait_write(t.engine, &var, 1), TN_E_TIMEOUT);
    assert_true(heard_times(&t.logged, "gate (life.c) on cpu:0"));
    assert_int_equal(push_on(t.engine, count_run, &g, &var, 0), TN_OK);
    atomic_store(&g.open, 1u);
    assert_int_equal(tni_engine_wait_write(t.engine, &var, 0), TN_OK);
    assert_int_equal(atomic_load(&g.runs), 3);
    assert_int_equal(tni_var_version(&var), 3);
    assert_true(tni_var_ready(&var));
    test_engine_close(&t);
}

static tn_status gate_fail_run(void *payload, tni_run *run)
{
    (void)gate_run(payload, run);
    return tni_error(TN_E_SHAPE, "pushed first");
}

static tn_status fail_run(void *payload, tni_run *run)
{
    (void)payload;
    (void)run;
    return tni_error(TN_E_DTYPE, "pushed second");
}

/* Failures come out in the order of the pushes, also of one that ran on the caller and failed at once. */
static void test_failures_in_order(void **state)
{
    tni_engine_stats stats;
    test_engine t;
    gate g = {0};
    tni_var vars[2] = {{0}};
    tni_var *writes[] = {&vars[1]};
    const tni_task brief = {
        .run = fail_run, .writes = writes, .write_count = 1, .name = "brief", .est_ns = 100};

    (void)state;
    test_engine_open(&t, (tni_engine_options){.inline_ns = 1000});
    assert_int_equal(push_on(t.engine, gate_fail_run, &g, &vars[0], 0), TN_OK);
    until(&g.entered, 1);
    assert_int_equal(tni_engine_push(t.engine, &brief), TN_OK);
    tni_engine_stats_get(t.engine, &stats);
    assert_int_equal(stats.inlined, 1);
    atomic_store(&g.open, 1u);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_E_SHAPE);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_E_DTYPE);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    test_engine_close(&t);
    for (int i = 0; i < 2; i++)
        tni_var_fini(&vars[i]);
}

static void test_early_release(void **state)
{
    test_engine t;
    gate g = {0}, after = {0};
    tni_var var = {0}, other = {0};
    tni_var *writes[] = {&other, &var};
    gate *self = &g;
    tni_task task = {.run = gate_run,
                     .done = count_done,
                     .payload = &self,
                     .payload_bytes = sizeof self,
                     .writes = writes,
                     .write_count = 2,
                     .name = "segment"};

    (void)state;
    test_engine_open(&t, (tni_engine_options){.workers = 2});
    g.early = 2;
    assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
    assert_int_equal(push_on(t.engine, count_run, &after, &var, 0), TN_OK);
    assert_int_equal(tni_engine_wait_read(t.engine, &var, 0), TN_OK); /* the segment is still running */
    assert_int_equal(atomic_load(&after.runs), 1);
    assert_int_equal(atomic_load(&g.done), 0);
    assert_false(tni_var_ready(&other));
    atomic_store(&g.open, 1u);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    test_engine_close(&t);
}

/* ---- completion from outside ----------------------------------------------------------------------- */

typedef struct outside {
    tni_operation *op;
    tni_thread *thread;
    tn_status status;
    uint64_t delay_ns;
    atomic_uint *done;
} outside;

static void outside_main(void *arg)
{
    outside *o = arg;
    tn_err err = {.code = TN_E_PEER, .message = "the peer is gone"};

    if (o->delay_ns)
        tni_sleep_ns(o->delay_ns);
    tni_engine_complete(o->op, o->status, o->status ? &err : NULL);
}

static tn_status outside_run(void *payload, tni_run *run)
{
    outside *o = *(outside **)payload;

    o->op = run->op;
    if (tni_thread_create("outside", outside_main, o, &o->thread))
        return TN_E_NOMEM;
    if (o->delay_ns == 0) /* completed before the run returns */
        tni_thread_join(o->thread), o->thread = NULL;
    return TN_PENDING;
}

static void outside_test(const char *type)
{
    test_engine t;
    tni_var vars[3] = {{0}};
    outside o[3] = {{.delay_ns = 0}, {.delay_ns = 300000}, {.delay_ns = 200000, .status = TN_E_PEER}};
    gate g = {0};

    test_engine_open(&t, (tni_engine_options){.type = type});
    for (int i = 0; i < 3; i++) {
        tni_var *writes[] = {&vars[i]};
        outside *self = &o[i];
        tni_task task = {.run = outside_run,
                         .payload = &self,
                         .payload_bytes = sizeof self,
                         .writes = writes,
                         .write_count = 1,
                         .flags = TNI_TASK_ASYNC,
                         .name = "pull"};

        assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
        assert_int_equal(push_on(t.engine, count_run, &g, &vars[i], 0), TN_OK);
    }
    assert_int_equal(tni_engine_wait_read(t.engine, &vars[0], 0), TN_OK);
    assert_int_equal(tni_engine_wait_read(t.engine, &vars[1], 0), TN_OK);
    assert_int_equal(tni_engine_wait_read(t.engine, &vars[2], 0), TN_E_PEER);
    assert_string_equal(tni_error_message(), "pull: the peer is gone");
    assert_int_equal(atomic_load(&g.runs), 2);
    for (int i = 0; i < 3; i++)
        tni_thread_join(o[i].thread);
    test_engine_close(&t);
    for (int i = 0; i < 3; i++)
        tni_var_fini(&vars[i]);
}

static void test_pending(void **state)
{
    (void)state;
    outside_test("threaded");
    outside_test("naive");
    outside_test("stepped");
}

/* ---- the end of an engine -------------------------------------------------------------------------- */

static void shutdown_once(uint64_t seed)
{
    static cell cells[VARS];
    uint64_t random = seed * 77;
    uint32_t count = test_random(&random) % 60, pushed = 0;
    const char *types[] = {"threaded", "threaded", "naive", "stepped"};
    tni_device *late = NULL;
    test_engine t;
    gate g = {0};

    memset(cells, 0, sizeof cells);
    test_engine_open(&t,
                     (tni_engine_options){.type = types[seed % 4], .workers = 1 + test_random(&random) % 3});
    if (seed % 8 < 4)
        assert_int_equal(tni_device_get(t.devices, "late", 0, &late), TN_OK);
    for (uint32_t i = 0; i < count; i++) {
        gate *self = &g;
        tni_var *reads[] = {&cells[test_random(&random) % VARS].var},
                *writes[] = {&cells[test_random(&random) % VARS].var};
        tni_task task = {.run = count_run,
                         .done = count_done,
                         .payload = &self,
                         .payload_bytes = sizeof self,
                         .reads = reads,
                         .read_count = 1,
                         .writes = writes,
                         .write_count = 1,
                         .name = "any",
                         .device = test_random(&random) % 2 ? late : NULL,
                         .lane = test_random(&random) % 4 ? 0 : test_random(&random) % TNI_LANES};

        assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
        pushed++;
    }
    for (uint32_t i = test_random(&random) % 64; i > 0; i--)
        __asm__ volatile("" ::: "memory");
    test_engine_close(&t);
    assert_int_equal(atomic_load(&g.done), pushed);
    assert_int_equal(atomic_load(&g.runs) + atomic_load(&g.cancelled), pushed);
    for (int i = 0; i < VARS; i++)
        tni_var_fini(&cells[i].var);
}

static void test_shutdown(void **state)
{
    uint64_t first = test_seed();

    (void)state;
    for (uint64_t seed = first; seed < first + test_runs(200); seed++)
        shutdown_once(seed);
}

typedef struct blocked {
    test_engine *t;
    gate *gate;
    tni_var *var;
    atomic_uint pushes, over;
    tn_status status;
} blocked;

static void blocked_push_main(void *arg)
{
    blocked *b = arg;

    while (!(b->status = push_on(b->t->engine, count_run, b->gate, NULL, 0)))
        atomic_fetch_add(&b->pushes, 1u);
    atomic_store(&b->over, 1u);
}

static void blocked_wait_main(void *arg)
{
    blocked *b = arg;

    b->status = tni_engine_wait_read(b->t->engine, b->var, 0);
}

static void opener_main(void *arg) /* once the engine refuses pushes */
{
    blocked *b = arg;

    until(&b->over, 1);
    atomic_store(&b->gate->open, 1u);
}

static void test_shutdown_blocked(
    void **state) /* a pusher that waits for room, and a wait, on other threads */
{
    test_engine t;
    gate g = {0};
    tni_var var = {0};
    blocked pushing = {.t = &t, .gate = &g}, waiter = {.t = &t, .var = &var};
    tni_thread *threads[3];

    (void)state;
    test_engine_open(&t, (tni_engine_options){.queue_max = 4});
    assert_int_equal(push_on(t.engine, gate_run, &g, &var, 0), TN_OK);
    assert_int_equal(push_on(t.engine, count_run, &g, &var, 0), TN_OK);
    until(&g.entered, 1);
    assert_int_equal(tni_thread_create("waits", blocked_wait_main, &waiter, &threads[0]), TN_OK);
    assert_int_equal(tni_thread_create("pushes", blocked_push_main, &pushing, &threads[1]), TN_OK);
    until(&t.engine->inside, 2); /* both are in the engine, which has to wait for them */
    assert_int_equal(tni_thread_create("opens", opener_main, &pushing, &threads[2]), TN_OK);
    tni_engine_destroy(t.engine);
    t.engine = NULL;
    for (int i = 0; i < 3; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(pushing.status, TN_E_STATE);
    assert_int_equal(waiter.status, TN_E_CANCELLED); /* the write behind the gate never ran */
    assert_int_equal(atomic_load(&g.done), 2 + atomic_load(&pushing.pushes));
    test_engine_close(&t);
    tni_var_fini(&var);
}

/* ---- fork ------------------------------------------------------------------------------------------ */

static int child_main(test_engine *t, cell *cells, tni_device *late)
{
    atomic_uint wrong = 0;
    gate g = {0};
    tni_device *d;
    tni_var *writes[] = {&cells[0].var};
    gate *self = &g;
    tni_task on_late = {.run = count_run,
                        .payload = &self,
                        .payload_bytes = sizeof self,
                        .writes = writes,
                        .write_count = 1,
                        .device = late};

    for (uint64_t i = 1; i <= 100; i++) {
        sum_args args = {{&cells[1], &cells[2]}, &cells[3], 1, 0, i + 1000, &wrong};

        if (push_sum(t->engine, &args, 0))
            return 1;
    }
    if (tni_engine_wait_all(t->engine) || cells[3].value != 101 || atomic_load(&wrong))
        return 2;
    if (tni_engine_threads(t->engine) != 1)
        return 3;
    if (tni_engine_push(t->engine, &on_late) != TN_E_STATE ||
        tni_device_get(t->devices, "late", 1, &d) != TN_E_STATE)
        return 4;
    if (tni_device_get(t->devices, "cpu", 5, &d))
        return 5;
    tni_engine_destroy(t->engine);
    tni_device_set_destroy(t->devices);
    return 0;
}

static void test_fork(void **state)
{
    static const char *const types[] = {"threaded", "naive", "stepped"};

    (void)state;
    if (!child_may_start_threads)
        print_message("fork of the threaded engine: skipped, the sanitizer allows no threads in a child\n");
    for (size_t i = child_may_start_threads ? 0 : 1; i < 3; i++) {
        static cell cells[VARS];
        atomic_uint wrong = 0;
        uint64_t done = 0;
        tni_device *late;
        test_engine t;
        int status;
        pid_t pid;

        memset(cells, 0, sizeof cells);
        test_engine_open(&t, (tni_engine_options){.type = types[i], .workers = 2});
        assert_int_equal(tni_device_get(t.devices, "late", 0, &late), TN_OK);
        for (uint64_t n = 1; n <= 1; n++) {
            sum_args args = {{&cells[1], &cells[2]}, &cells[3], 1, 0, n, &wrong};

            assert_int_equal(push_sum(t.engine, &args, 0), TN_OK);
        }
        while (!tni_engine_fork_drain(t.engine, tni_clock_ns() + 1000000, &done) ||
               !tni_engine_fork_lock(t.engine))
            ;
        assert_int_equal(cells[3].value, 1); /* drained */
        if ((pid = fork()) == 0) {
            tni_engine_forked(t.engine, true);
            tni_engine_fork_unlock(t.engine);
            _exit(child_main(&t, cells, late));
        }
        tni_engine_fork_unlock(t.engine);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        for (uint64_t n = 2; n <= 5; n++) {
            sum_args args = {{&cells[1], &cells[2]}, &cells[3], 1, 0, n, &wrong};

            assert_int_equal(push_sum(t.engine, &args, 0), TN_OK);
        }
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(cells[3].value, 5);
        test_engine_close(&t);
    }
}

/* ---- out of memory --------------------------------------------------------------------------------- */

static tn_status whole_life(void *arg)
{
    tni_device_set *devices = NULL;
    tni_engine *engine = NULL;
    tni_var vars[20] = {{0}}, *list[20];
    gate g = {0}, *self = &g;
    tni_task task = {.run = count_run,
                     .done = count_done,
                     .payload = &self,
                     .payload_bytes = sizeof self,
                     .writes = list,
                     .write_count = 20};
    tn_status st;

    for (int i = 0; i < 20; i++)
        list[i] = &vars[i];
    if ((st = tni_device_set_create(NULL, NULL, NULL, &devices)) ||
        (st = tni_engine_create(&(tni_engine_options){.type = arg, .queue_max = 100}, devices, NULL,
                                &engine)) ||
        (st = tni_engine_push(engine, &task)))
        goto cleanup;
    task.write_count = 2;
    if ((st = tni_engine_push(engine, &task)) || (st = tni_engine_wait_write(engine, &vars[1], 0)) ||
        (st = tni_engine_wait_all(engine)))
        goto cleanup;
    if (atomic_load(&g.runs) != 2)
        st = TN_E_INTERNAL;

cleanup:
    tni_engine_destroy(engine);
    tni_device_set_destroy(devices);
    for (int i = 0; i < 20; i++)
        tni_var_fini(&vars[i]);
    return st;
}

static void test_no_memory(void **state)
{
    static char types[3][10] = {"threaded", "naive", "stepped"};

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(scratch_each_allocation_fails(whole_life, types[i]) > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pushers),          cmocka_unit_test(test_enter_leave),
        cmocka_unit_test(test_fast_path),        cmocka_unit_test(test_bounded),
        cmocka_unit_test(test_over_limit),       cmocka_unit_test(test_host_call),
        cmocka_unit_test(test_timeout),          cmocka_unit_test(test_early_release),
        cmocka_unit_test(test_pending),          cmocka_unit_test(test_shutdown),
        cmocka_unit_test(test_shutdown_blocked), cmocka_unit_test(test_fork),
        cmocka_unit_test(test_no_memory),        cmocka_unit_test(test_failures_in_order),
        cmocka_unit_test(test_ready_after_wait),
    };

    print_message("seed %llu\n", (unsigned long long)test_seed());
    return cmocka_run_group_tests_name("engine.life", tests, NULL, NULL);
}
