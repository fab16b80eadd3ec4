/*
 * Short operations: pushed alone they run on the pusher where they can, and whoever completes one ends it and
 * runs the short ones behind it; order, failures, waits and forks are those of all operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async_device.h"
#include "engine/internal.h"
#include "part.h"

#define CHAIN 2000u

typedef struct piece {
    bool pends, fails;
    _Atomic(tni_operation *) op; /* begun, if it pends */
    atomic_uint ran, done;
    uint64_t thread; /* that ran it */
    tn_status status;
    uint32_t *log, *logged, number;
} piece;

static tn_status piece_run(void *payload, tni_run *run)
{
    piece *p = *(piece **)payload;

    p->thread = tni_thread_id();
    if (p->log)
        p->log[(*p->logged)++] = p->number;
    atomic_fetch_add(&p->ran, 1u);
    atomic_store(&p->op, run->op); /* the last word of it, if it pends */
    return p->pends ? TN_PENDING : p->fails ? tni_error(TN_E_SHAPE, "planted") : TN_OK;
}

static void piece_done(void *payload, tni_engine *engine, tn_status status)
{
    piece *p = *(piece **)payload;

    (void)engine;
    p->status = status;
    atomic_fetch_add(&p->done, 1u);
}

static tn_status piece_push(tni_engine *e, piece *p, tni_var *read, tni_var *write)
{
    tni_var *vars[] = {read, write};
    const tni_task task = {.run = piece_run,
                           .done = piece_done,
                           .payload = &p,
                           .payload_bytes = sizeof p,
                           .flags = TNI_TASK_SHORT | (p->pends ? TNI_TASK_ASYNC : 0),
                           .reads = vars,
                           .read_count = read != NULL,
                           .writes = vars + 1,
                           .write_count = write != NULL,
                           .name = "piece",
                           .lane = TNI_LANE_COMM,
                           .priority = (int32_t)p->number};

    return tni_engine_push(e, &task);
}

static tni_operation *begun(tni_engine *e, piece *p)
{
    tni_operation *op;

    while (!(op = atomic_load(&p->op)) || (e->type == ENGINE_THREADED && !tni_submit_empty(e))) {
        if (e->type == ENGINE_STEPPED && tni_engine_ready_count(e))
            (void)tni_engine_step(e, 0);
        else
            tni_sleep_ns(20000);
    }
    return op;
}

/* One that pends, one behind it, one behind a failure, and all of them waited for. Not naive: there a thread
 * does not push what it is to complete. */
static void ends_where_it_is_completed(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i += 2) {
        piece first = {.pends = true}, second = {.number = 5}, third = {.fails = true}, last = {.number = 1};
        const tn_err why = {.code = TN_E_IO, .message = "the wire is cut"};
        tni_var vars[2] = {0};
        test_engine t;

        test_engine_open(&t, (tni_engine_options){.type = part_types[i], .workers = 2});
        for (int round = 0; round < 2; round++) {
            first.op = NULL;
            assert_int_equal(piece_push(t.engine, &first, NULL, &vars[0]), TN_OK);
            assert_int_equal(piece_push(t.engine, &second, &vars[0], &vars[1]), TN_OK);
            tni_engine_complete(begun(t.engine, &first), round ? TN_E_IO : TN_OK, round ? &why : NULL);
            if (!i) { /* nobody else does it */
                assert_int_equal(atomic_load(&first.done), round + 1);
                assert_int_equal(atomic_load(&second.done), round + 1);
                assert_int_equal(second.thread, tni_thread_id());
            }
            assert_int_equal(tni_engine_wait_read(t.engine, &vars[1], 0), round ? TN_E_IO : TN_OK);
            assert_int_equal(atomic_load(&second.ran), 1); /* its input has failed in the second round */
        }
        assert_int_equal(second.status, TN_E_IO);
        tni_engine_clear(t.engine, &vars[0]);
        tni_engine_clear(t.engine, &vars[1]);
        assert_int_equal(piece_push(t.engine, &third, NULL, &vars[0]), TN_OK);
        assert_int_equal(piece_push(t.engine, &last, &vars[0], &vars[1]), TN_OK);
        assert_int_equal(tni_engine_wait_write(t.engine, &vars[1], 0), TN_E_SHAPE);
        (void)tni_engine_wait_all(t.engine);
        assert_int_equal(atomic_load(&third.done), 1);
        assert_int_equal(atomic_load(&last.ran), 0);
        test_engine_close(&t);
        part_vars_fini(vars, 2);
    }
}

/* Of a gathering, too; what waits for a long one is the worker's. */
static void alone_and_in_groups(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        uint32_t log[4], logged = 0;
        piece pieces[5];
        tni_var var = {0};
        tni_gathering g;
        test_engine t;

        for (uint32_t k = 0; k < 5; k++)
            pieces[k] = (piece){.log = log, .logged = &logged, .number = k};
        test_engine_open(&t, (tni_engine_options){.type = part_types[i]});
        assert_int_equal(piece_push(t.engine, &pieces[0], NULL, &var), TN_OK);
        tni_engine_gather_begin(t.engine, &g);
        assert_int_equal(piece_push(t.engine, &pieces[1], NULL, &var), TN_OK);
        assert_int_equal(atomic_load(&pieces[1].ran), 0);
        assert_int_equal(tni_engine_gather_end(&g, TN_OK), TN_OK);
        tni_engine_gather_begin(t.engine, &g);
        assert_int_equal(piece_push(t.engine, &pieces[2], NULL, &var), TN_OK);
        assert_int_equal(piece_push(t.engine, &pieces[3], NULL, &var), TN_OK);
        assert_int_equal(tni_engine_gather_end(&g, TN_OK), TN_OK);
        tni_engine_gather_begin(t.engine, &g);
        assert_int_equal(piece_push(t.engine, &pieces[4], NULL, &var), TN_OK);
        assert_int_equal(tni_engine_gather_end(&g, TN_E_ARG), TN_E_ARG);
        while (i == 2 && tni_engine_ready_count(t.engine))
            (void)tni_engine_step(t.engine, 0);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(logged, 4);
        for (uint32_t k = 0; k < 4; k++)
            assert_int_equal(log[k], k);
        assert_int_equal(atomic_load(&pieces[4].done), 1); /* without having run */
        assert_int_equal(pieces[4].status, TN_E_ARG);
        test_engine_close(&t);
        part_vars_fini(&var, 1);
    }
}

/* Of a thread that pushes or completes, with an error of its own, what fails right there. */
static void errors_stay_the_threads(void **state)
{
    piece first = {.pends = true}, second = {.fails = true}, third = {.fails = true, .number = 1};
    tni_var vars[3] = {0};
    test_engine t;

    (void)state;
    test_engine_open(&t, (tni_engine_options){.type = part_types[0], .workers = 2});
    (void)tni_error(TN_E_ARG, "of the pusher");
    assert_int_equal(piece_push(t.engine, &second, NULL, &vars[0]), TN_OK);
    assert_string_equal(tni_error_message(), "of the pusher");
    assert_int_equal(piece_push(t.engine, &first, NULL, &vars[1]), TN_OK);
    assert_int_equal(piece_push(t.engine, &third, &vars[1], &vars[2]), TN_OK);
    tni_engine_complete(begun(t.engine, &first), TN_OK, NULL);
    assert_string_equal(tni_error_message(), "of the pusher");
    assert_int_equal(tni_engine_wait_read(t.engine, &vars[2], 0), TN_E_SHAPE);
    assert_non_null(strstr(tni_error_message(), "planted"));
    (void)tni_engine_wait_all(t.engine);
    test_engine_close(&t);
    part_vars_fini(vars, 3);
}

typedef struct chain {
    tni_engine *engine;
    piece *pieces; /* those of even numbers pend */
    atomic_uint over;
} chain;

static void chain_complete(void *arg)
{
    chain *c = arg;

    for (uint32_t i = 0; i < CHAIN; i += 2) {
        tni_operation *op;

        while (!(op = atomic_load(&c->pieces[i].op)))
            tni_sleep_ns(1000);
        tni_engine_complete(op, TN_OK, NULL);
    }
}

static void chain_push(void *arg)
{
    chain *c = arg;
    tni_var var = {0};

    for (uint32_t i = 0; i < CHAIN; i++)
        assert_int_equal(piece_push(c->engine, &c->pieces[i], NULL, &var), TN_OK);
    assert_int_equal(tni_engine_wait_write(c->engine, &var, 0), TN_OK);
    tni_var_fini(&var);
    atomic_store(&c->over, 1u);
}

/* A writer's chain of which another thread completes every second link, beside forks that wait for it. */
static void a_chain_beside_forks(void **state)
{
    static piece pieces[CHAIN];
    static uint32_t log[CHAIN], logged;
    tni_thread *threads[2];
    uint64_t done = 0;
    test_engine t;
    chain c;

    (void)state;
    for (uint32_t i = 0; i < CHAIN; i++)
        pieces[i] = (piece){.pends = i % 2 == 0, .log = log, .logged = &logged, .number = i};
    test_engine_open(&t, (tni_engine_options){.type = "threaded", .queue_max = 50});
    c = (chain){.engine = t.engine, .pieces = pieces};
    assert_int_equal(tni_thread_create("completes", chain_complete, &c, &threads[0]), TN_OK);
    assert_int_equal(tni_thread_create("pushes", chain_push, &c, &threads[1]), TN_OK);
    while (!atomic_load(&c.over)) {
        tni_fork_begin(false);
        tni_fork_close(1);
        for (uint32_t i = 0; i < 10; i++) {
            if (tni_engine_fork_drain(t.engine, tni_clock_ns() + 1000000, &done) && tni_fork_alone(true)) {
                tni_fork_close(2);
                if (tni_engine_fork_lock(t.engine)) {
                    assert_true(tni_engine_idle(t.engine));
                    tni_engine_fork_unlock(t.engine);
                }
                break;
            }
        }
        tni_fork_end(false);
        tni_sleep_ns(200000);
    }
    for (int i = 0; i < 2; i++)
        tni_thread_join(threads[i]);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    assert_int_equal(logged, CHAIN);
    for (uint32_t i = 0; i < CHAIN; i++) {
        assert_int_equal(log[i], i);
        assert_int_equal(atomic_load(&pieces[i].done), 1);
    }
    test_engine_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ends_where_it_is_completed),
                                       cmocka_unit_test(alone_and_in_groups),
                                       cmocka_unit_test(errors_stay_the_threads),
                                       cmocka_unit_test(a_chain_beside_forks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
