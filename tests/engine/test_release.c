/*
 * Variables given free before an operation ends: by position, counted; what fails later poisons only the
 * rest; on a stream behind what was issued so far. And memory of the pusher for the variable list.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async_device.h"
#include "engine/internal.h"
#include "part.h"

/* ---- releases -------------------------------------------------------------------------------------- */

#define RANDOM_VARS 700u
#define NAMED_MAX 3000u

typedef struct random_op { /* names variables again and again, releases its positions in any order */
    tni_var vars[RANDOM_VARS], *list[NAMED_MAX];
    uint32_t left[RANDOM_VARS], order[NAMED_MAX], reads, named, limit;
    bool written[RANDOM_VARS];
} random_op;

static uint64_t held(const tni_var *v)
{
    return atomic_load(&((tni_var *)(uintptr_t)v)->state) & (VAR_WRITER | VAR_READERS);
}

static tn_status random_run(void *payload, tni_run *run)
{
    random_op *o = *(random_op **)payload;

    for (uint32_t i = 0; i < o->limit; i++)
        if (held(&o->vars[i]) != (!o->left[i] ? 0 : o->written[i] ? VAR_WRITER : VAR_READER))
            return tni_error(TN_E_INTERNAL, "variable %u is not held as it is named", i);
    for (uint32_t k = 0; k < o->named; k++) {
        const uint32_t at = o->order[k], i = (uint32_t)(o->list[at] - o->vars);

        tni_engine_release_at(run, at);
        if (!held(&o->vars[i]) != !--o->left[i])
            return tni_error(TN_E_INTERNAL, "variable %u, to be released %u times more, is %s", i, o->left[i],
                             held(&o->vars[i]) ? "held" : "free");
    }
    tni_engine_release_at(run, o->order[0]); /* once too often, and one that is not there */
    tni_engine_release_at(run, o->named);
    return TN_OK;
}

static void random_make(random_op *o, uint32_t limit, uint32_t named, uint64_t *random)
{
    memset(o, 0, sizeof *o);
    o->limit = limit;
    o->named = named;
    o->reads = test_random(random) % (named + 1);
    for (uint32_t k = 0; k < named; k++) {
        const uint32_t i = test_random(random) % limit, swap = test_random(random) % (k + 1);

        o->list[k] = &o->vars[i];
        o->left[i]++;
        o->written[i] |= k >= o->reads;
        o->order[k] = o->order[swap];
        o->order[swap] = k;
    }
}

static void test_release_counts(void **state)
{
    uint64_t random = test_seed();
    static random_op o;
    random_op *self = &o;

    (void)state;
    for (uint64_t run = 0; run < test_runs(300); run++) {
        const uint32_t small = test_random(&random) % 3;
        const uint32_t limit = 1 + test_random(&random) % (small ? 10 : RANDOM_VARS);
        const uint32_t named = 1 + test_random(&random) % (small == 1 ? 8 : small ? 70 : NAMED_MAX);
        test_engine t;

        random_make(&o, limit, named, &random);
        test_engine_open(&t, (tni_engine_options){.type = part_types[run % 3]});
        const tni_task task = {.run = random_run,
                               .payload = &self,
                               .payload_bytes = sizeof self,
                               .reads = o.list,
                               .read_count = o.reads,
                               .writes = o.list + o.reads,
                               .write_count = named - o.reads,
                               .name = "random"};

        assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
        if (tni_engine_wait_all(t.engine))
            fail_msg("run %llu: %s", (unsigned long long)run, tni_error_message());
        for (uint32_t i = 0; i < limit; i++) {
            assert_int_equal(held(&o.vars[i]), 0);
            assert_true(tni_var_version(&o.vars[i]) == o.written[i]);
        }
        test_engine_close(&t);
    }
}

typedef struct taker { /* takes the word while it reads the variable */
    tni_var *var;
    void **word, *got[2];
    uint32_t ran;
} taker;

static tn_status taker_run(void *payload, tni_run *run)
{
    taker *t = *(taker **)payload;

    (void)run;
    t->got[t->ran++ & 1u] = tni_var_take(t->var, t->word);
    return TN_OK;
}

/* Of several readers that were granted the variable only the one that is left last may take the word. */
static void test_take(void **state)
{
    (void)state;
    for (size_t type = 0; type < 3; type++)
        for (uint32_t readers = 1; readers <= 2; readers++) {
            int value = 0;
            void *word = &value;
            tni_var var = {0};
            taker one = {.var = &var, .word = &word}, *self = &one;
            tni_var *reads[] = {&var};
            const tni_task task = {.run = taker_run,
                                   .payload = &self,
                                   .payload_bytes = sizeof self,
                                   .reads = reads,
                                   .read_count = 1};
            atomic_uint open = type != 0; /* where there are threads it is not done before all are entered */
            part gate = {.open = &open}, *gate_self = &gate;
            const tni_task write = part_task(&gate_self, NULL, 0, reads, 1);
            tni_task group[3] = {write, task, task};
            test_engine t;

            test_engine_open(&t, (tni_engine_options){.type = part_types[type], .workers = 1});
            assert_int_equal(tni_engine_push_group(t.engine, group, 1 + readers), TN_OK);
            while (type == 0 && atomic_load(&t.engine->entered) < 1 + readers)
                (void)tni_submit_drain(t.engine, 1 + readers);
            atomic_store(&open, 1u);
            assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
            assert_ptr_equal(one.got[0], readers == 1 ? &value : NULL); /* the write granted both at once */
            assert_ptr_equal(one.got[1], readers == 1 ? NULL : &value);
            assert_null(word);
            test_engine_close(&t);
            part_vars_fini(&var, 1);
        }
}

/* While it waits for a stream, or is written, nobody takes it. */
static void test_take_refused(void **state)
{
    int value = 0;
    void *word = &value;
    tni_var var = {0};

    (void)state;
    assert_null(tni_var_take(&var, &word)); /* nobody reads it */
    assert_true(tni_var_try(&var, true));
    assert_null(tni_var_take(&var, &word));
    tni_var_leave(&var, true, true, NULL);
    assert_true(tni_var_try(&var, false));
    assert_true(tni_var_try(&var, false));
    assert_null(tni_var_take(&var, &word));
    tni_var_leave(&var, false, false, NULL);
    assert_ptr_equal(word, &value);
    assert_ptr_equal(tni_var_take(&var, &word), &value);
    assert_null(word);
    tni_var_leave(&var, false, false, NULL);
    tni_var_fini(&var);
}

/* What fails after a release poisons only what is not released. */
static void test_poison_after_release(void **state)
{
    (void)state;
    for (size_t type = 0; type < 3; type++) {
        part p = {.releases = {1, 0}, .release_count = 2, .fails = true}, *self = &p;
        tni_var vars[3] = {{0}};
        tni_var *const reads[] = {&vars[0]}, *const writes[] = {&vars[1], &vars[2]};
        const tni_task task = part_task(&self, reads, 1, writes, 2);
        test_engine t;

        test_engine_open(&t, (tni_engine_options){.type = part_types[type]});
        assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
        assert_int_equal(tni_engine_wait_read(t.engine, &vars[0], 0), TN_OK);
        assert_int_equal(tni_engine_wait_read(t.engine, &vars[1], 0), TN_OK);
        assert_int_equal(tni_engine_wait_read(t.engine, &vars[2], 0), TN_E_SHAPE);
        assert_string_equal(tni_error_message(), "part: planted");
        test_engine_close(&t);
        assert_int_equal(p.status, TN_E_SHAPE);
        part_vars_fini(vars, 3);
    }
}

/* A reader of a released variable runs while the operation is still running. */
static void test_reader_before_end(void **state)
{
    (void)state;
    for (uint32_t more = 0; more <= 30; more += 30) { /* a list in the operation, and one of its own */
        atomic_uint open = 0;
        part writer = {.releases = {0, 1}, .release_count = 2, .open = &open}, reader = {0};
        part *self[] = {&writer, &reader};
        tni_var vars[33] = {{0}}, *list[33]; /* the first one is read, too: it takes two releases */
        tni_task write = part_task(&self[0], list, 1, list, 3 + more),
                 read = part_task(&self[1], list, 1, NULL, 0);
        test_engine t;

        for (uint32_t i = 0; i < 33; i++)
            list[i] = &vars[i];
        test_engine_open(&t, (tni_engine_options){.workers = 2});
        assert_int_equal(tni_engine_push(t.engine, &write), TN_OK);
        assert_int_equal(tni_engine_push(t.engine, &read), TN_OK);
        part_until(&reader.done, 1);
        assert_int_equal(tni_engine_wait_write(t.engine, &vars[0], 0), TN_OK);
        assert_int_equal(atomic_load(&writer.ran), 0);
        assert_false(tni_var_ready(&vars[1]));
        atomic_store(&open, 1u);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        test_engine_close(&t);
    }
}

/* ---- releases on a stream -------------------------------------------------------------------------- */

typedef struct flow { /* two calls on a stream, and a release between them */
    uint64_t first, second;
    atomic_uint *open; /* the second call waits for it */
    bool first_fails, second_fails, run_fails;
    atomic_uint done;
    tn_status status;
} flow;

static tn_status flow_first(void *arg, tn_err *err)
{
    flow *f = arg;

    if (f->first_fails)
        return tn_fail(err, TN_E_DEVICE, "the first call failed");
    f->first = 1;
    return TN_OK;
}

static tn_status flow_second(void *arg, tn_err *err)
{
    flow *f = arg;

    while (f->open && !atomic_load(f->open))
        tni_sleep_ns(20000);
    if (f->second_fails)
        return tn_fail(err, TN_E_DEVICE, "the second call failed");
    f->second = 1;
    return TN_OK;
}

static tn_status flow_run(void *payload, tni_run *run)
{
    flow *f = *(flow **)payload;
    tn_err err = {0};

    if (run->device->ops->stream_call(run->stream, flow_first, f, &err))
        return tni_error(TN_E_INTERNAL, "no call");
    tni_engine_release_at(run, 0);
    if (run->device->ops->stream_call(run->stream, flow_second, f, &err))
        return tni_error(TN_E_INTERNAL, "no call");
    return f->run_fails ? tni_error(TN_E_SHAPE, "planted") : TN_OK;
}

static void flow_done(void *payload, tni_engine *engine, tn_status status)
{
    flow *f = *(flow **)payload;

    (void)engine;
    f->status = status;
    atomic_fetch_add(&f->done, 1u);
}

typedef struct flow_case {
    bool first_fails, second_fails, run_fails;
    tn_status released, rest;
} flow_case;

static const flow_case flow_cases[] = {
    {false, false, false, TN_OK, TN_OK},          {true, false, false, TN_E_DEVICE, TN_E_DEVICE},
    {false, true, false, TN_OK, TN_E_DEVICE},     {false, false, true, TN_OK, TN_E_SHAPE},
    {true, false, true, TN_E_DEVICE, TN_E_SHAPE},
};

/* The released variable has the status of its moment, whatever comes later; naive waits at the release. */
static void test_stream_release(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof flow_cases / sizeof *flow_cases * 3; k++) {
        const flow_case *want = &flow_cases[k / 3];
        flow f = {.first_fails = want->first_fails,
                  .second_fails = want->second_fails,
                  .run_fails = want->run_fails},
             *self = &f;
        tni_var vars[2] = {{0}};
        tni_var *const writes[] = {&vars[0], &vars[1]};
        tni_task task = {.run = flow_run,
                         .done = flow_done,
                         .payload = &self,
                         .payload_bytes = sizeof self,
                         .writes = writes,
                         .write_count = 2,
                         .name = "flow"};
        tn_status released;
        test_engine t;

        test_engine_open(&t, (tni_engine_options){.type = part_types[k % 3]});
        assert_int_equal(tni_device_get(t.devices, "late", 0, &task.device), TN_OK);
        assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
        released = tni_engine_wait_read(t.engine, &vars[0], 0);
        if (released == TN_E_SHAPE && want->first_fails) /* naive: it stayed with the operation */
            released = TN_E_DEVICE;
        if (released != want->released || tni_engine_wait_read(t.engine, &vars[1], 0) != want->rest)
            fail_msg("case %zu on %s: released %d, rest '%s'", k / 3, part_types[k % 3], released,
                     tni_error_message());
        assert_true(released || f.first == 1);
        test_engine_close(&t);
        assert_int_equal(atomic_load(&f.done), 1);
        assert_true((f.status != TN_OK) == (want->rest != TN_OK));
        part_vars_fini(vars, 2);
    }
}

static void test_stream_reader_before_end(void **state)
{
    for (int where = 0; where < 3; where++) { /* the host, the same device's copies, another device */
        atomic_uint open = 0;
        flow f = {.open = &open}, *self = &f;
        part reader = {0}, *read_self = &reader;
        tni_var vars[2] = {{0}};
        tni_var *const writes[] = {&vars[0], &vars[1]};
        tni_task task = {.run = flow_run,
                         .done = flow_done,
                         .payload = &self,
                         .payload_bytes = sizeof self,
                         .writes = writes,
                         .write_count = 2,
                         .name = "flow"},
                 read = part_task(&read_self, writes, 1, NULL, 0);
        test_engine t;

        (void)state;
        test_engine_open(&t, (tni_engine_options){0});
        assert_int_equal(tni_device_get(t.devices, "late", 0, &task.device), TN_OK);
        if (where)
            assert_int_equal(tni_device_get(t.devices, "late", where - 1, &read.device), TN_OK);
        read.lane = where == 1 ? TNI_LANE_OUT : TNI_LANE_COMPUTE;
        assert_int_equal(tni_engine_push(t.engine, &task), TN_OK);
        assert_int_equal(tni_engine_push(t.engine, &read), TN_OK);
        part_until(&reader.done, 1);
        assert_int_equal(tni_engine_wait_read(t.engine, &vars[0], 0), TN_OK);
        assert_int_equal(f.first, 1);
        assert_int_equal(atomic_load(&f.done), 0);
        atomic_store(&open, 1u);
        assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
        test_engine_close(&t);
        part_vars_fini(vars, 2);
    }
}

/* ---- memory of the pusher ------------------------------------------------------------------------------ */

#define ROOM_VARS 500u

typedef struct roomy {
    void *room;
    size_t bytes;
    atomic_uint done;
} roomy;

static tn_status roomy_run(void *payload, tni_run *run)
{
    (void)payload;
    for (uint32_t i = 0; i < ROOM_VARS; i += 2)
        tni_engine_release_at(run, i);
    return TN_OK;
}

static void roomy_done(void *payload, tni_engine *engine, tn_status status)
{
    roomy *r = *(roomy **)payload;

    (void)engine;
    (void)status;
    memset(r->room, 0xa5, r->bytes); /* it is the pusher's again */
    atomic_fetch_add(&r->done, 1u);
}

static void test_room(void **state)
{
    static tni_var vars[ROOM_VARS];
    static tni_var *list[ROOM_VARS];

    (void)state;
    assert_int_equal(tni_engine_room_bytes(3, 5), 0);
    for (uint32_t i = 0; i < ROOM_VARS; i++)
        list[i] = &vars[i * 3 % 400];
    for (size_t type = 0; type < 3; type++) {
        roomy r = {.bytes = tni_engine_room_bytes(ROOM_VARS / 2, ROOM_VARS / 2)}, *self = &r;
        tni_task task = {.run = roomy_run,
                         .done = roomy_done,
                         .payload = &self,
                         .payload_bytes = sizeof self,
                         .reads = list,
                         .read_count = ROOM_VARS / 2,
                         .writes = list + ROOM_VARS / 2,
                         .write_count = ROOM_VARS / 2,
                         .name = "roomy"};
        tni_task none = {
            .run = roomy_run, .done = roomy_done, .payload = &self, .payload_bytes = sizeof self};
        test_engine t;

        r.room = task.room = malloc(r.bytes + 1);
        task.room_bytes = r.bytes;
        test_engine_open(&t, (tni_engine_options){.type = part_types[type]});
        for (unsigned i = 1; i <= 20; i++) {
            assert_int_equal(tni_engine_push(t.engine, i == 1 ? &none : &task), TN_OK);
            assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
            assert_int_equal(atomic_load(&r.done), i);
            tni_mem_fail_at(1, true, true);
            task.room_bytes = r.bytes - (i == 5); /* too small, not there, not aligned: allocated */
            task.room = i == 6 ? NULL : (char *)r.room + (i == 7);
            const tn_status st = tni_engine_push(t.engine, &task);

            tni_mem_fail_at(0, false, false);
            assert_int_equal(st, i >= 5 && i <= 7 ? TN_E_NOMEM : TN_OK);
            atomic_fetch_add(&r.done, st != TN_OK);
            assert_int_equal(tni_engine_wait_all(t.engine), TN_OK);
            assert_int_equal(atomic_fetch_sub(&r.done, 1u), i + 1);
            task.room = r.room;
            task.room_bytes = r.bytes;
        }
        test_engine_close(&t);
        free(r.room);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_release_counts),
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_take_refused),
        cmocka_unit_test(test_poison_after_release),
        cmocka_unit_test(test_reader_before_end),
        cmocka_unit_test(test_stream_release),
        cmocka_unit_test(test_stream_reader_before_end),
        cmocka_unit_test(test_room),
    };

    return cmocka_run_group_tests_name("engine.release", tests, NULL, NULL);
}
