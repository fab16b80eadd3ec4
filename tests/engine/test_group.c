/*
 * Groups: all tasks or none, whatever allocation fails; no foreign push between them; room for the whole.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async_device.h"
#include "engine/internal.h"
#include "part.h"

/* ---- all or none ----------------------------------------------------------------------------------- */

#define MANY 40u   /* variables of one task: more than fit into an operation */
#define GROUP 300u /* tasks: more than a piece of the submission list holds */

typedef struct crowd {
    part parts[GROUP], *self[GROUP];
    tni_task tasks[GROUP];
    tni_var vars[MANY], *list[MANY];
    tni_device *late;
} crowd;

static void crowd_init(crowd *c, test_engine *t)
{
    memset(c, 0, sizeof *c);
    assert_int_equal(tni_device_get(t->devices, "late", 0, &c->late), TN_OK);
    for (uint32_t i = 0; i < MANY; i++)
        c->list[i] = &c->vars[i];
    for (uint32_t i = 0; i < GROUP; i++) {
        c->self[i] = &c->parts[i];
        c->tasks[i] = part_task(&c->self[i], c->list, i % 3 ? 3 : MANY, c->list + i % MANY, 1);
        c->tasks[i].device = i % 2 ? c->late : NULL;
    }
}

static void crowd_check(crowd *c, unsigned wanted)
{
    for (uint32_t i = 0; i < GROUP; i++)
        if (atomic_load(&c->parts[i].ran) != wanted || atomic_load(&c->parts[i].done) != wanted)
            fail_msg("task %u ran %u times and was done %u times, expected %u", i,
                     atomic_load(&c->parts[i].ran), atomic_load(&c->parts[i].done), wanted);
}

static void all_or_none(const char *type)
{
    static crowd c;
    bool failed = true;

    for (uint64_t nth = 1; failed; nth++) {
        tni_engine_stats stats;
        test_engine t;
        tn_status st;

        test_engine_open(&t, (tni_engine_options){.type = type});
        crowd_init(&c, &t);
        tni_mem_fail_at(nth, false, true);
        st = tni_engine_push_group(t.engine, c.tasks, GROUP);
        failed = tni_mem_failed();
        tni_mem_fail_at(0, false, true);
        tni_engine_stats_get(t.engine, &stats);
        if (failed && st && st != TN_E_NOMEM)
            fail_msg("allocation %llu fails, and the push says %d", (unsigned long long)nth, st);
        assert_int_equal(stats.pushed, st ? 0 : GROUP);
        if (st) {
            assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
            crowd_check(&c, 0);
            for (uint32_t i = 0; i < MANY; i++)
                assert_true(atomic_load(&c.vars[i].state) == 0);
            assert_int_equal(tni_engine_push_group(t.engine, c.tasks, GROUP), TN_OK); /* nothing is broken */
        }
        while (tni_engine_wait_all(t.engine)) /* where the engine itself found no memory later */
            ;
        if (!st || st == TN_E_NOMEM)
            for (uint32_t i = 0; i < GROUP; i++)
                assert_int_equal(atomic_load(&c.parts[i].done), 1);
        test_engine_close(&t);
        part_vars_fini(c.vars, MANY);
    }
}

static void test_all_or_none(void **state)
{
    (void)state;
    all_or_none("stepped");
    all_or_none("threaded");
}

static void gathered(const char *type)
{
    static crowd c;
    bool failed = true;

    for (uint64_t nth = 0; failed; nth++) { /* 0: all is pushed, and the end cancels it */
        const tn_status end = nth ? TN_OK : TN_E_STATE;
        tni_engine_stats stats;
        tni_gathering g;
        test_engine t;
        uint32_t pushed = 0;
        tn_status st = TN_OK;

        test_engine_open(&t, (tni_engine_options){.type = type, .inline_ns = 1000});
        crowd_init(&c, &t);
        tni_mem_fail_at(nth, false, true);
        tni_engine_gather_begin(t.engine, &g);
        for (; pushed < GROUP - 2 && !st; pushed += !st)
            st = tni_engine_push(t.engine, &c.tasks[pushed]);
        if (!st && !(st = tni_engine_push_group(t.engine, c.tasks + pushed, 2)))
            pushed += 2;
        assert_false(tni_engine_enter(t.engine, NULL, 0, c.list, 1));
        assert_int_equal(atomic_load(&c.parts[0].done), 0);
        st = tni_engine_gather_end(&g, st ? st : end);
        failed = !nth || tni_mem_failed();
        tni_mem_fail_at(0, false, true);
        if (st && st != (nth ? TN_E_NOMEM : end))
            fail_msg("allocation %llu fails, and the end says %d", (unsigned long long)nth, st);
        tni_engine_stats_get(t.engine, &stats);
        assert_int_equal(stats.pushed, st ? 0 : GROUP);
        while (tni_engine_wait_all(t.engine)) /* where the engine itself found no memory later */
            ;
        for (uint32_t i = 0; i < GROUP; i++) {
            assert_int_equal(atomic_load(&c.parts[i].done), i < pushed);
            assert_true(!st || !atomic_load(&c.parts[i].ran));
        }
        test_engine_close(&t);
        part_vars_fini(c.vars, MANY);
    }
}

/* What single pushes and groups queue between begin and end: all of it or none. */
static void test_gathered(void **state)
{
    (void)state;
    gathered("stepped");
    gathered("threaded");
}

static void test_bad_task(void **state)
{
    static crowd c;
    tni_engine_stats stats;
    test_engine t;

    (void)state;
    test_engine_open(&t, (tni_engine_options){0});
    crowd_init(&c, &t);
    c.tasks[GROUP - 1].run = NULL;
    assert_int_equal(tni_engine_push_group(t.engine, c.tasks, GROUP), TN_E_ARG);
    assert_int_equal(tni_engine_push_group(t.engine, NULL, 2), TN_E_ARG);
    assert_int_equal(tni_engine_push_group(t.engine, c.tasks, UINT32_MAX), TN_E_ARG);
    assert_int_equal(tni_engine_push_group(t.engine, c.tasks, 0), TN_OK);
    tni_engine_stats_get(t.engine, &stats);
    assert_int_equal(stats.pushed, 0);
    assert_int_equal(tni_engine_push_group(t.engine, c.tasks, GROUP - 1), TN_OK);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    tni_engine_stats_get(t.engine, &stats);
    assert_int_equal(stats.pushed, GROUP - 1);
    test_engine_close(&t);
    part_vars_fini(c.vars, MANY);
}

/* A group of one may run on the caller, as a single push may. */
static void test_inline(void **state)
{
    part p = {0}, *self = &p;
    tni_engine_stats stats;
    tni_var var = {0};
    tni_var *const list[] = {&var};
    test_engine t;
    tni_task task = part_task(&self, NULL, 0, list, 1);

    (void)state;
    task.est_ns = 100;
    test_engine_open(&t, (tni_engine_options){.inline_ns = 1000});
    assert_int_equal(tni_engine_push_group(t.engine, &task, 1), TN_OK);
    tni_engine_stats_get(t.engine, &stats);
    assert_int_equal(stats.inlined, 1);
    assert_int_equal(atomic_load(&p.done), 1);
    test_engine_close(&t);
}

/* ---- order ----------------------------------------------------------------------------------------- */

#define PUSHERS 3u
#define ROUNDS 200u
#define LOG_MAX (PUSHERS * ROUNDS * 8u)

typedef struct pusher {
    tni_engine *engine;
    tni_var *const *one; /* a variable that all write: who ran when is who was pushed when */
    uint32_t *log, *logged, id;
    part parts[ROUNDS][8];
} pusher;

static void pusher_main(void *arg)
{
    pusher *p = arg;

    for (uint32_t r = 0; r < ROUNDS; r++) {
        const uint32_t count = 1 + (r + p->id) % 8;
        part *self[8];
        tni_task tasks[8];

        for (uint32_t i = 0; i < count; i++) {
            self[i] = &p->parts[r][i];
            *self[i] = (part){.log = p->log, .logged = p->logged, .number = p->id << 24 | r << 8 | i};
            tasks[i] = part_task(&self[i], NULL, 0, p->one, 1);
            if (i % 3 == 1)
                tasks[i].lane = TNI_LANE_IN + i % 3; /* another queue */
        }
        if (tni_engine_push_group(p->engine, tasks, count))
            abort();
    }
}

/* Each group lies in one piece, each pusher's groups in its order. */
static void log_check(const uint32_t *log, uint32_t logged)
{
    uint32_t next[PUSHERS] = {0};

    for (uint32_t at = 0; at < logged;) {
        const uint32_t id = log[at] >> 24, r = log[at] >> 8 & 0xffffu, count = 1 + (r + id) % 8;

        assert_int_equal(r, next[id]);
        next[id]++;
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(log[at + i], id << 24 | r << 8 | i);
        at += count;
    }
    for (uint32_t id = 0; id < PUSHERS; id++)
        assert_int_equal(next[id], ROUNDS);
}

static void test_order(void **state)
{
    static uint32_t log[LOG_MAX];
    static pusher p[PUSHERS];

    (void)state;
    for (size_t type = 0; type < 3; type++) {
        tni_thread *threads[PUSHERS];
        tni_var var = {0};
        tni_var *const one[] = {&var};
        uint32_t logged = 0;
        test_engine t;

        test_engine_open(&t, (tni_engine_options){.type = part_types[type], .workers = 3, .queue_max = 20});
        for (uint32_t i = 0; i < PUSHERS; i++) {
            p[i].engine = t.engine;
            p[i].one = one;
            p[i].log = log;
            p[i].logged = &logged;
            p[i].id = i;
            assert_int_equal(tni_thread_create("pusher", pusher_main, &p[i], &threads[i]), TN_OK);
        }
        for (uint32_t i = 0; i < PUSHERS; i++)
            tni_thread_join(threads[i]);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        log_check(log, logged);
        test_engine_close(&t);
        tni_var_fini(&var);
    }
}

/* One queue of the group is busy for long: the worker of the other one, which sleeps,
 * is told all the same. */
static void test_wakes_all(void **state)
{
    atomic_uint open = 0;
    part parts[3] = {{.open = &open}}, *self[3] = {&parts[0], &parts[1], &parts[2]};
    tni_task tasks[3];
    test_engine t;

    (void)state;
    test_engine_open(&t, (tni_engine_options){0});
    for (int i = 0; i < 3; i++)
        tasks[i] = part_task(&self[i], NULL, 0, NULL, 0);
    tasks[2].lane = TNI_LANE_COMM;
    assert_int_equal(tni_engine_push(t.engine, &tasks[2]), TN_OK); /* its worker is there, and sleeps soon */
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    assert_int_equal(tni_engine_push(t.engine, &tasks[0]), TN_OK);
    part_until(&parts[0].entered, 1);
    for (bool asleep = false; !asleep; tni_sleep_ns(20000)) {
        asleep = true;
        for (engine_queue *q = t.engine->queues; q; q = q->next)
            asleep &= q->kind == TNI_LANE_COMPUTE || atomic_load(&q->sleepers) == 1;
    }
    assert_int_equal(tni_engine_push_group(t.engine, tasks + 1, 2), TN_OK);
    part_until(&parts[2].ran, 2);
    assert_int_equal(atomic_load(&parts[1].ran), 0);
    atomic_store(&open, 1u);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    test_engine_close(&t);
}

/* ---- room in the queue ------------------------------------------------------------------------------- */

#define BIG 25u

typedef struct big {
    tni_engine *engine;
    part parts[BIG], *self[BIG];
    tni_task tasks[BIG];
    uint32_t count;
    atomic_uint over;
    tn_status status;
} big;

static void big_init(big *b, tni_engine *e, uint32_t count)
{
    memset(b, 0, sizeof *b);
    b->engine = e;
    b->count = count;
    for (uint32_t i = 0; i < count; i++) {
        b->self[i] = &b->parts[i];
        b->tasks[i] = part_task(&b->self[i], NULL, 0, NULL, 0);
    }
}

static void big_main(void *arg)
{
    big *b = arg;

    b->status = tni_engine_push_group(b->engine, b->tasks, b->count);
    atomic_store(&b->over, 1u);
}

static void big_check(big *b, unsigned times)
{
    assert_int_equal(b->status, TN_OK);
    for (uint32_t i = 0; i < b->count; i++)
        assert_int_equal(atomic_load(&b->parts[i].done), times);
}

/* Groups larger than the queue, of several threads at once and beside single pushes. */
static void test_larger_than_queue(void **state)
{
    (void)state;
    for (uint64_t max = 1; max <= 16; max *= 4)
        for (size_t type = 0; type < 3; type++) {
            static big b[3];
            tni_thread *threads[2];
            tni_engine_stats stats;
            test_engine t;

            test_engine_open(&t,
                             (tni_engine_options){.type = part_types[type], .queue_max = max, .workers = 2});
            for (int i = 0; i < 3; i++)
                big_init(&b[i], t.engine, BIG);
            for (int i = 0; i < 2; i++)
                assert_int_equal(tni_thread_create("big", big_main, &b[i], &threads[i]), TN_OK);
            for (uint32_t i = 0; i < BIG; i++)
                assert_int_equal(tni_engine_push(t.engine, &b[2].tasks[i]), TN_OK);
            for (int i = 0; i < 2; i++)
                tni_thread_join(threads[i]);
            assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
            for (int i = 0; i < 3; i++)
                big_check(&b[i], 1);
            tni_engine_stats_get(t.engine, &stats);
            assert_true(stats.queue_peak <= max + BIG);
            test_engine_close(&t);
        }
}

static void test_waits_as_a_whole(void **state)
{
    atomic_uint open = 0;
    part gates[3] = {{.open = &open}, {.open = &open}, {.open = &open}}, *self[3];
    tni_thread *thread;
    static big b;
    test_engine t;

    (void)state;
    test_engine_open(&t, (tni_engine_options){.queue_max = 8, .workers = 4});
    for (int i = 0; i < 3; i++) {
        const tni_task task = (self[i] = &gates[i], part_task(&self[i], NULL, 0, NULL, 0));

        assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
    }
    big_init(&b, t.engine, 6); /* 3 are pending: there is room for five */
    assert_int_equal(tni_thread_create("big", big_main, &b, &thread), TN_OK);
    part_until(&t.engine->inside, 1);
    for (int i = 0; i < 20; i++)
        tni_sleep_ns(20000);
    assert_int_equal(atomic_load(&b.over), 0);
    for (uint32_t i = 0; i < b.count; i++)
        assert_int_equal(atomic_load(&b.parts[i].entered), 0);
    atomic_store(&open, 1u);
    tni_thread_join(thread);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    big_check(&b, 1);
    test_engine_close(&t);
}

/* Others take the room again and again: after enough of their operations the group goes over the limit. */
static void test_not_passed_over_for_ever(void **state)
{
    atomic_uint open = 0;
    part gates[2] = {{.open = &open}, {.open = &open}}, *self[2], single = {0}, *one = &single;
    const tni_task task = part_task(&one, NULL, 0, NULL, 0);
    tni_engine_stats stats;
    tni_thread *thread;
    static big b;
    test_engine t;

    (void)state;
    test_engine_open(&t, (tni_engine_options){.queue_max = 4, .workers = 3});
    for (int i = 0; i < 2; i++) {
        const tni_task gate = (self[i] = &gates[i], part_task(&self[i], NULL, 0, NULL, 0));

        assert_int_equal(tni_engine_push(t.engine, &gate), TN_OK);
    }
    big_init(&b, t.engine, 4); /* would go with one pending, and two are till the end */
    assert_int_equal(tni_thread_create("big", big_main, &b, &thread), TN_OK);
    part_until(&t.engine->inside, 1);
    while (!atomic_load(&b.over)) {
        const unsigned done = atomic_load(&single.done);

        assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
        part_until(&single.done, done + 1);
    }
    tni_thread_join(thread);
    atomic_store(&open, 1u);
    assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
    big_check(&b, 1);
    tni_engine_stats_get(t.engine, &stats);
    assert_int_equal(stats.over_limit, 4);
    test_engine_close(&t);
}

static tn_status inner_run(void *payload, tni_run *run)
{
    big *b = *(big **)payload;

    (void)run;
    b->status = tni_engine_push_group(b->engine, b->tasks, b->count);
    return TN_OK;
}

/* From inside an operation: over the limit, counted, never stuck. */
static void test_from_inside(void **state)
{
    (void)state;
    for (size_t type = 0; type < 3; type++) {
        static big b;
        big *self = &b;
        const tni_task task = {
            .run = inner_run, .payload = &self, .payload_bytes = sizeof self, .name = "inner"};
        tni_engine_stats stats;
        test_engine t;

        test_engine_open(&t, (tni_engine_options){.type = part_types[type], .queue_max = 2});
        big_init(&b, t.engine, BIG);
        assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK); /* what the first one pushed */
        big_check(&b, 1);
        tni_engine_stats_get(t.engine, &stats);
        assert_int_equal(stats.over_limit, BIG);
        test_engine_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_or_none),      cmocka_unit_test(test_bad_task),
        cmocka_unit_test(test_inline),           cmocka_unit_test(test_order),
        cmocka_unit_test(test_wakes_all),        cmocka_unit_test(test_larger_than_queue),
        cmocka_unit_test(test_waits_as_a_whole), cmocka_unit_test(test_not_passed_over_for_ever),
        cmocka_unit_test(test_from_inside),      cmocka_unit_test(test_gathered),
    };

    return cmocka_run_group_tests_name("engine.group", tests, NULL, NULL);
}
