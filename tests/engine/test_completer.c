/*
 * Threads that are to complete an operation push others before they do: no engine makes such a push wait for
 * the pusher. In the naive engine the push runs what can be run, and the thread that began the operation
 * runs the rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async_device.h"

static const char *const types[] = {"threaded", "naive", "stepped"};
#define TYPES 3

typedef struct work {
    tni_engine *engine;
    tni_var vars[3];
    uint32_t log[32]; /* what ran, in order */
    atomic_uint logged, threads_over;
    _Atomic(tni_operation *) begun[4]; /* to be completed */
    atomic_uint begun_count;
    tni_thread *threads[8];
    atomic_uint thread_count;
    void (*body)(struct work *w); /* of the completing thread */
} work;

typedef struct note { /* payload: what a small operation writes into the log */
    work *w;
    uint32_t number;
} note;

static tn_status note_run(void *payload, tni_run *run)
{
    const note *n = payload;

    (void)run;
    n->w->log[atomic_fetch_add(&n->w->logged, 1u)] = n->number;
    return TN_OK;
}

static void push_note(work *w, tni_var *var, uint32_t number)
{
    tni_var *writes[] = {var};
    const note n = {w, number};
    const tni_task task = {.run = note_run,
                           .payload = &n,
                           .payload_bytes = sizeof n,
                           .writes = writes,
                           .write_count = 1,
                           .name = "note"};

    assert_int_equal(tni_engine_push(w->engine, &task), TN_OK);
}

static void thread_main(void *arg)
{
    work *w = arg;

    w->body(w);
    atomic_fetch_add(&w->threads_over, 1u);
}

/* Completes later; the first one starts the thread that completes them all. */
static tn_status later_run(void *payload, tni_run *run)
{
    work *w = *(work **)payload;
    const uint32_t i = atomic_fetch_add(&w->begun_count, 1u);

    atomic_store(&w->begun[i], run->op);
    if (i == 0 &&
        tni_thread_create("completes", thread_main, w, &w->threads[atomic_fetch_add(&w->thread_count, 1u)]))
        return TN_E_NOMEM;
    return TN_PENDING;
}

static void push_later(work *w, tni_var *var)
{
    tni_var *writes[] = {var};
    const tni_task task = {.run = later_run,
                           .payload = &w,
                           .payload_bytes = sizeof w,
                           .writes = writes,
                           .write_count = 1,
                           .flags = TNI_TASK_ASYNC,
                           .name = "later"};

    assert_int_equal(tni_engine_push(w->engine, &task), TN_OK);
}

static void work_over(work *w, test_engine *t)
{
    assert_int_equal(tni_engine_wait_all(w->engine), TN_OK);
    for (uint32_t i = 0; i < atomic_load(&w->thread_count); i++)
        tni_thread_join(w->threads[i]);
    test_engine_close(t);
    for (int i = 0; i < 3; i++)
        tni_var_fini(&w->vars[i]);
}

static bool naive(const work *w)
{
    return tni_engine_is_naive(w->engine);
}

static uint32_t place_of(const work *w, uint32_t number)
{
    uint32_t i = 0;

    while (w->log[i] != number) {
        assert_true(i < atomic_load(&w->logged));
        i++;
    }
    return i;
}

/* ---- small operations ---------------------------------------------------------------------------------- */

/* Free of the operation, behind it, and behind one that is behind it. */
static void pushes_small(work *w)
{
    push_note(w, &w->vars[1], 1);
    if (naive(w))
        assert_int_equal(atomic_load(&w->logged), 1); /* what can run has run */
    push_note(w, &w->vars[0], 2);
    push_note(w, &w->vars[0], 3);
    push_note(w, &w->vars[2], 4);
    if (naive(w))
        assert_int_equal(atomic_load(&w->logged), 2);
    tni_engine_complete(atomic_load(&w->begun[0]), TN_OK, NULL);
}

static void test_small(void **state)
{
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        work w = {.body = pushes_small};
        test_engine t;

        test_engine_open(&t, (tni_engine_options){.type = types[i]});
        w.engine = t.engine;
        push_later(&w, &w.vars[0]);
        if (naive(&w)) /* and its pusher came back when all of it was over */
            assert_int_equal(atomic_load(&w.logged), 4);
        while (!naive(&w) && atomic_load(&w.logged) < 4)
            assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_true(place_of(&w, 2) < place_of(&w, 3));
        work_over(&w, &t);
    }
}

/* ---- one thread that completes everything -------------------------------------------------------------- */

/* It pushes what it is to complete itself. In the naive engine one of the two has begun when it was pushed,
 * and is completed first. */
static void pushes_later(work *w)
{
    uint32_t next = 0;

    push_later(w, &w->vars[1]);
    push_later(w, &w->vars[0]); /* behind the one that is under way */
    push_note(w, &w->vars[1], 1);
    if (naive(w)) {
        assert_int_equal(atomic_load(&w->begun_count), 2);
        assert_int_equal(atomic_load(&w->logged), 0);
        tni_engine_complete(atomic_load(&w->begun[1]), TN_OK, NULL);
        tni_engine_complete(atomic_load(&w->begun[0]), TN_OK, NULL);
        next = 2;
    }
    for (; next < 3; next++) {
        while (!atomic_load(&w->begun[next]))
            tni_sleep_ns(20000);
        tni_engine_complete(atomic_load(&w->begun[next]), TN_OK, NULL);
    }
}

static void test_one_completer(void **state)
{
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        work w = {.body = pushes_later};
        test_engine t;

        test_engine_open(&t, (tni_engine_options){.type = types[i]});
        w.engine = t.engine;
        push_later(&w, &w.vars[0]);
        while (atomic_load(&w.threads_over) < 1)
            assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(atomic_load(&w.logged), 1);
        work_over(&w, &t);
    }
}

/* ---- within host callbacks ----------------------------------------------------------------------------- */

static tn_status callback_run(void *payload, tni_run *run)
{
    work *w = *(work **)payload;

    (void)run;
    push_later(w, &w->vars[0]); /* naive: waits here for its completion */
    return tni_engine_wait_read(w->engine, &w->vars[0], 0);
}

static void push_callback(work *w)
{
    const tni_task task = {.run = callback_run,
                           .payload = &w,
                           .payload_bytes = sizeof w,
                           .flags = TNI_TASK_HOST_CALL,
                           .name = "callback"};

    assert_int_equal(tni_engine_push(w->engine, &task), TN_OK);
}

static void test_callback(void **state)
{
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        work w = {.body = pushes_small};
        test_engine t;

        test_engine_open(&t, (tni_engine_options){.type = types[i]});
        w.engine = t.engine;
        push_callback(&w);
        while (atomic_load(&w.threads_over) < 1)
            assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(atomic_load(&w.logged), 4);
        work_over(&w, &t);
    }
}

/* Two at once, each waiting for something of its own: neither waits for the other. */
typedef struct pair {
    work works[2];
    atomic_uint arrived;
} pair;

static void completes_second(work *w)
{
    tni_sleep_ns(300000);
    push_note(w, &w->vars[1], 1);
    tni_engine_complete(atomic_load(&w->begun[0]), TN_OK, NULL);
}

static void callback_thread(void *arg)
{
    push_callback(arg);
}

static void test_two_callbacks(void **state)
{
    (void)state;
    for (int i = 0; i < TYPES; i++) {
        pair p = {.works = {{.body = completes_second}, {.body = completes_second}}};
        tni_thread *threads[2];
        test_engine t;

        test_engine_open(&t, (tni_engine_options){.type = types[i]});
        for (int k = 0; k < 2; k++) {
            p.works[k].engine = t.engine;
            assert_int_equal(tni_thread_create("calls", callback_thread, &p.works[k], &threads[k]), TN_OK);
        }
        for (int k = 0; k < 2; k++)
            tni_thread_join(threads[k]);
        for (int k = 0; k < 2; k++)
            while (atomic_load(&p.works[k].threads_over) < 1)
                assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(atomic_load(&p.works[k].logged), 1);
            tni_thread_join(p.works[k].threads[0]);
        }
        test_engine_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_one_completer),
        cmocka_unit_test(test_callback),
        cmocka_unit_test(test_two_callbacks),
    };

    return cmocka_run_group_tests_name("engine.completer", tests, NULL, NULL);
}
