/*
 * Guests in a worker's loop (kv/call.h): threads that wait for short values serve it themselves, and the own
 * thread is back for what they do not do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "context/context.h"
#include "kv/call.h"
#include "kv/job.h"

#ifdef TN_TEST_SWITCHES
#define BIG 100000u /* elements of key 1: no short value */
#define ROUNDS 300u

typedef struct trip {        /* an operation that something outside completes: a request, or the test */
    tni_kv_process *process; /* NULL: the test */
    tni_kv_request r;
    _Atomic(tni_operation *) op;
} trip;

static job j;
static tni_context *ctx;
static tni_var written, others;
static float in[3] = {1, 2, 3}, out[3];

static void trip_called(void *arg, tn_status st)
{
    trip *t = arg;
    tn_err err = {.code = st};

    if (st)
        tni_error_get(&err);
    tni_engine_complete(atomic_load(&t->op), st, st ? &err : NULL);
}

static tn_status trip_run(void *payload, tni_run *run)
{
    trip *t = *(trip **)payload;
    tni_kv_process *p = t->process;
    tn_status st = TN_OK;

    atomic_store(&t->op, run->op); /* the test completes it at once */
    if (p)
        st = tni_kv_process_request(p, &t->r, trip_called, t);
    return st ? st : TN_PENDING;
}

static void trip_push(trip *t, tni_var *var)
{
    const tni_task task = {.run = trip_run,
                           .payload = &t,
                           .payload_bytes = sizeof t,
                           .flags = TNI_TASK_SHORT | TNI_TASK_ASYNC,
                           .writes = &var,
                           .write_count = 1,
                           .name = "trip",
                           .lane = TNI_LANE_COMM};

    assert_int_equal(tni_engine_push(ctx->engine, &task), TN_OK);
}

static trip round_of(uint32_t worker)
{
    return (trip){.process = j.workers[worker],
                  .r = {.kind = TNI_KV_DO_PUSHPULL, .in = in, .out = out, .brief = true}};
}

/* Rounds of worker 0, which is alone; its waits serve the loop from the third on. */
static void rounds(uint32_t count, bool all)
{
    for (uint32_t i = 0; i < count; i++) {
        const float before = out[1];
        trip t = round_of(0);

        trip_push(&t, &written);
        assert_int_equal(
            all ? tni_engine_wait_all(ctx->engine) : tni_engine_wait_read(ctx->engine, &written, 0), TN_OK);
        assert_true(out[1] == before + 2);
    }
}

static uint64_t guests(void)
{
    uint64_t count;

    tni_mutex_lock(&j.workers[0]->lock);
    count = j.workers[0]->guests;
    tni_mutex_unlock(&j.workers[0]->lock);
    return count;
}

static void begin(uint32_t workers)
{
    const char *plugins = getenv("TENON_TEST_PLUGINS");
    char path[4096];
    const char *const settings[] = {path, NULL};
    const tni_context_options o = {.settings = settings};
    static float big[BIG];
    answer a[2 * JOB_NODES];

    (void)snprintf(path, sizeof path, "plugins.path=%s", plugins ? plugins : "");
    assert_int_equal(tni_context_open(&o, &ctx), TN_OK);
    tni_kv_brisk_ns = 3600000000000u; /* however slow this machine is, waits are close to each other */
    job_begin(&j, workers, 1);
    job_start(&j);
    memset(out, 0, sizeof out);
    for (uint32_t w = 0; w < workers; w++)
        for (uint32_t k = 0; k < 2; k++) {
            const tni_kv_request r = {.kind = TNI_KV_DO_INIT, .key = k, .in = k ? big : out};

            assert_int_equal(tni_kv_process_key(j.workers[w], k, 0, k ? BIG : 3, sizeof(float)), TN_OK);
            job_ask(j.workers[w], &r, &a[2 * w + k]);
        }
    for (uint32_t i = 0; i < 2 * workers; i++)
        assert_int_equal(job_wait(&a[i]), TN_OK);
    tni_kv_guests_begin(j.workers[0], ctx->engine);
    tni_var_init(&written);
    tni_var_init(&others);
}

static void end(void)
{
    if (j.workers[0])
        tni_kv_guests_end(j.workers[0]); /* its thread is in the loop, without which no time passes */
    job_end(&j);
    tni_var_fini(&written);
    tni_var_fini(&others);
    assert_int_equal(tni_context_close(ctx, 0), TN_OK);
}

/* Without time that passes, and without the loop's word: the one thread may be away. */
static tn_status answer_wait(answer *a)
{
    while (!atomic_load(&a->done))
        tni_sleep_ns(20000);
    return a->status;
}

static tn_status request_do(uint32_t worker, const tni_kv_request *r)
{
    answer a;

    job_ask(j.workers[worker], r, &a);
    return answer_wait(&a);
}

static void serve(void **state)
{
    (void)state;
    begin(1);
    rounds(ROUNDS, false);
    assert_true(guests() >= ROUNDS / 2); /* most of those that wait */
    rounds(ROUNDS, true);
    assert_true(guests() >= 3 * ROUNDS / 2);
    end();
}

/* What is not brief, and several calls at once, call the own thread, for which nobody waits an hour. */
static void own_thread_is_back(void **state)
{
    static float big[2][BIG];
    const tni_kv_request r = {.kind = TNI_KV_DO_PUSHPULL, .key = 1, .in = big[0], .out = big[1]};
    const tni_kv_request brief = {.kind = TNI_KV_DO_PULL, .out = out, .brief = true};
    answer a[3];

    (void)state;
    begin(1);
    rounds(10, false);
    big[0][7] = 5;
    assert_int_equal(request_do(0, &r), TN_OK);
    assert_true(big[1][7] == 5);
    rounds(10, false);
    for (uint32_t i = 0; i < 3; i++)
        job_ask(j.workers[0], &brief, &a[i]);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(answer_wait(&a[i]), TN_OK);
    rounds(10, false);
    assert_int_equal(tni_kv_process_break(j.workers[0], 1), TN_OK);
    assert_int_equal(tni_kv_process_resume(j.workers[0]), TN_OK);
    end();
}

typedef struct waiting {
    tni_thread *thread;
    tni_var *var;
    uint64_t timeout_ms;
    atomic_bool ended;
    tn_status status;
} waiting;

static void wait_main(void *arg)
{
    waiting *w = arg;

    w->status = tni_engine_wait_write(ctx->engine, w->var, w->timeout_ms);
    atomic_store(&w->ended, true);
    if (w->timeout_ms) /* the own thread is back, so that time passes in the loop */
        (void)tni_kv_process_resume(j.workers[0]);
}

/* A guest: until then nobody is in the loop. */
static void wait_start(waiting *w, tni_var *var, uint64_t timeout_ms)
{
    bool came = false;

    *w = (waiting){.var = var, .timeout_ms = timeout_ms};
    assert_int_equal(tni_thread_create("wait", wait_main, w, &w->thread), TN_OK);
    while (!came) {
        tni_mutex_lock(&j.workers[0]->lock);
        came = j.workers[0]->away && j.workers[0]->owner;
        tni_mutex_unlock(&j.workers[0]->lock);
        tni_sleep_ns(20000);
    }
}

/* Until the own thread has left the loop. */
static void leave(void)
{
    bool away = false;

    rounds(10, false);
    while (!away) {
        tni_mutex_lock(&j.workers[0]->lock);
        away = j.workers[0]->away && !j.workers[0]->owner;
        tni_mutex_unlock(&j.workers[0]->lock);
    }
}

static bool wait_ended(void *arg)
{
    return atomic_load(&((waiting *)arg)->ended);
}

/* What a guest waits for is completed by another thread, behind the back of the loop; and once there
 * are to be no guests any more. */
static void kicked(void **state)
{
    trip t = {.process = NULL};
    waiting w;

    (void)state;
    begin(1);
    for (uint32_t i = 0; i < 50; i++) {
        leave();
        trip_push(&t, &others);
        wait_start(&w, &others, 0);
        if (i == 49)
            tni_kv_guests_end(j.workers[0]);
        assert_false(wait_ended(&w));
        tni_engine_complete(atomic_load(&t.op), TN_OK, NULL);
        tni_thread_join(w.thread);
        assert_int_equal(w.status, TN_OK);
    }
    end();
}

static void complete_later(void *arg)
{
    tni_sleep_ns(5000000);
    tni_engine_complete(atomic_load(&((trip *)arg)->op), TN_OK, NULL);
}

/* A fork waits for the guest, and both go on. */
static void forks(void **state)
{
    trip t = {.process = NULL};
    tni_thread *thread;
    pid_t child;
    int status;
    waiting w;

    (void)state;
    begin(1);
    for (uint32_t i = 0; i < 3; i++) {
        leave();
        trip_push(&t, &others);
        wait_start(&w, &others, 0);
        assert_int_equal(tni_thread_create("later", complete_later, &t, &thread), TN_OK);
        child = fork();
        if (child == 0)
            _exit(tni_engine_wait_read(ctx->engine, &others, 0) != TN_OK || j.workers[0]->owner != 0);
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        tni_thread_join(thread);
        tni_thread_join(w.thread);
        assert_int_equal(w.status, TN_OK);
        rounds(10, false);
    }
    end();
}

static void timed_out(void **state)
{
    trip t = {.process = NULL};
    waiting w;

    (void)state;
    begin(1);
    leave();
    trip_push(&t, &others);
    wait_start(&w, &others, 50);
    assert_true(loop_until(wait_ended, &w, 1e6));
    tni_thread_join(w.thread);
    assert_int_equal(w.status, TN_E_TIMEOUT);
    tni_engine_complete(atomic_load(&t.op), TN_OK, NULL);
    assert_int_equal(tni_engine_wait_write(ctx->engine, &others, 0), TN_OK);
    end();
}

/* One thread waits for a round that another worker holds up; a second one is not kept from its own. */
static void two_wait(void **state)
{
    static float other[3];
    trip t = round_of(0), u;
    waiting w;

    (void)state;
    begin(2);
    for (uint32_t i = 0; i < 20; i++) { /* so that waits are close */
        answer a;

        t = round_of(0);
        trip_push(&t, &written);
        u = round_of(1);
        u.r.out = other;
        job_ask(j.workers[1], &u.r, &a);
        assert_int_equal(tni_engine_wait_read(ctx->engine, &written, 0), TN_OK);
        assert_int_equal(answer_wait(&a), TN_OK);
    }
    t = round_of(0);
    trip_push(&t, &written);
    wait_start(&w, &written, 0);
    for (uint32_t i = 0; i < 5; i++) {
        trip v = {.process = j.workers[0], .r = {.kind = TNI_KV_DO_PULL, .key = 1, .any = true}};
        static float big[BIG];

        v.r.out = big;
        trip_push(&v, &others);
        assert_int_equal(tni_engine_wait_write(ctx->engine, &others, 0), TN_OK);
    }
    assert_false(wait_ended(&w));
    assert_int_equal(request_do(1, &u.r), TN_OK);
    tni_thread_join(w.thread);
    assert_int_equal(w.status, TN_OK);
    end();
}

/* The process ends, or its transport does, while a guest is in the loop. */
static void ends_meanwhile(void **state)
{
    trip t;
    waiting w;

    (void)state;
    begin(1);
    leave();
    t = (trip){.process = NULL};
    trip_push(&t, &others);
    wait_start(&w, &others, 0);
    tni_kv_process_end(j.workers[0]);
    j.workers[0] = NULL;
    assert_false(wait_ended(&w));
    tni_engine_complete(atomic_load(&t.op), TN_OK, NULL);
    tni_thread_join(w.thread);
    assert_int_equal(w.status, TN_OK);
    end();
}

static void transport_fails(void **state)
{
    trip t;
    waiting w;

    (void)state;
    begin(2);
    for (uint32_t i = 0; i < 20; i++) {
        trip u = round_of(1);
        static float other[3];
        answer a;

        t = round_of(0);
        trip_push(&t, &written);
        u.r.out = other;
        job_ask(j.workers[1], &u.r, &a);
        assert_int_equal(tni_engine_wait_read(ctx->engine, &written, 0), TN_OK);
        assert_int_equal(answer_wait(&a), TN_OK);
    }
    t = round_of(0);
    trip_push(&t, &written);
    wait_start(&w, &written, 0);
    loop_kill(2); /* scheduler, server, worker 0 */
    tni_thread_join(w.thread);
    assert_int_not_equal(w.status, TN_OK);
    assert_int_not_equal(tni_engine_wait_read(ctx->engine, &written, 0), TN_OK);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serve),           cmocka_unit_test(own_thread_is_back),
        cmocka_unit_test(kicked),          cmocka_unit_test(timed_out),
        cmocka_unit_test(two_wait),        cmocka_unit_test(ends_meanwhile),
        cmocka_unit_test(transport_fails), cmocka_unit_test(forks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void without_switches(void **unused)
{
    (void)unused;
    print_message("skipped: in this build the clock decides who is a guest\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_switches)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
