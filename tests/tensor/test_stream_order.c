/*
 * Memory that goes back to its pool in stream order: what only one stream was given goes back when the last
 * operation was issued, not when it is complete; what two streams were given, after both. With the pools
 * segment and round on the fake device, whose streams stand still on demand; then many copies at once, whose
 * values tell of a block that was used again too early.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/space.h"

#define BYTES 65536
#define COUNT (BYTES / 4)

static const char *const pools[] = {"segment", "round"};

/* ---- a lane that stands still ------------------------------------------------------------------------ */

typedef struct gate {
    atomic_uint open, passed; /* passed: runs of marks */
} gate;

static tn_status gate_body(void *arg, tn_err *err)
{
    gate *g = arg;

    (void)err;
    while (!atomic_load(&g->open))
        tni_sleep_ns(20000);
    return TN_OK;
}

static tn_status gate_run(void *payload, tni_run *run)
{
    tn_err err = {0};

    return run->device->ops->stream_call(run->stream, gate_body, *(gate **)payload, &err);
}

static tn_status mark_run(void *payload, tni_run *run)
{
    (void)run;
    atomic_fetch_add(&(*(gate **)payload)->passed, 1u);
    return TN_OK;
}

static void push(test_space *t, tni_device *d, uint32_t lane, gate *g,
                 tn_status (*run)(void *payload, tni_run *run))
{
    const tni_task task = {
        .run = run, .payload = &g, .payload_bytes = sizeof g, .device = d, .lane = lane, .name = "gate"};

    assert_int_equal(tni_engine_push(t->engine, &task), TN_OK);
}

/* Comes back when all that was pushed on the lane before was issued. */
static void issued(test_space *t, tni_device *d, uint32_t lane, gate *g)
{
    const unsigned before = atomic_load(&g->passed);

    push(t, d, lane, g, mark_run);
    while (atomic_load(&g->passed) == before)
        tni_sleep_ns(20000);
}

/* ---- what the tests have in common ------------------------------------------------------------------- */

typedef struct setup {
    test_space t;
    tni_device *d;
    gate gate;
} setup;

static bool setup_open(setup *s, const char *pool)
{
    int32_t count = 0;

    memset(s, 0, sizeof *s);
    test_space_open(&s->t, "threaded");
    assert_int_equal(tni_options_set_value(s->t.options, "memory.fake.pool", pool, TN_ORIGIN_SET, "test"),
                     TN_OK);
    if (tni_device_type_count(s->t.devices, "fake", &count) || !count) {
        print_message("skipped: no device fake\n");
        test_space_close(&s->t);
        return false;
    }
    assert_int_equal(tni_device_get(s->t.devices, "fake", 0, &s->d), TN_OK);
    return true;
}

static tni_array *array(setup *s, tni_device *d)
{
    const int64_t shape[] = {COUNT};
    tni_array *a = NULL;

    assert_int_equal(tni_array_create(s->t.space, d, TN_F32, 1, shape, NULL, &a), TN_OK);
    return a;
}

static void fill(float *values, float first)
{
    for (int i = 0; i < COUNT; i++)
        values[i] = first + (float)i;
}

static tni_array *host_array(setup *s, float first)
{
    static float values[COUNT];
    tni_array *a = array(s, s->t.cpu);

    fill(values, first);
    assert_int_equal(tni_array_write(a, values, BYTES), TN_OK);
    return a;
}

static void check(tni_array *a, float first)
{
    static float got[COUNT], wanted[COUNT];

    fill(wanted, first);
    assert_int_equal(tni_array_read(a, got, BYTES), TN_OK);
    assert_memory_equal(got, wanted, BYTES);
}

static uint64_t live(const setup *s)
{
    tni_memory_stats stats;

    assert_int_equal(tni_device_memory(s->d, TN_MEMORY_DEVICE, &stats), TN_OK);
    return stats.live;
}

static uint64_t hits(const setup *s)
{
    tni_memory_stats stats;

    assert_int_equal(tni_device_memory(s->d, TN_MEMORY_DEVICE, &stats), TN_OK);
    return stats.hits;
}

/* ---- one stream ---------------------------------------------------------------------------------------- */

/* `early`: the user lets go while the copy is still queued; else once it was issued. */
static void one_stream(const char *pool, bool early)
{
    tni_array *from, *a, *b;
    uint64_t before;
    setup s;

    if (!setup_open(&s, pool))
        skip();
    from = host_array(&s, 1);
    a = array(&s, s.d);
    b = array(&s, s.d);
    push(&s.t, s.d, TNI_LANE_IN, &s.gate, gate_run); /* the lane that copies from the host take */
    assert_int_equal(tni_array_copy(from, a), TN_OK);
    if (early)
        tni_array_release(a);
    issued(&s.t, s.d, TNI_LANE_IN, &s.gate);
    if (!early) {
        assert_true(live(&s) >= BYTES);
        tni_array_release(a);
    }
    assert_int_equal(live(&s), 0); /* the copy has not begun */
    before = hits(&s);
    assert_int_equal(tni_array_copy(from, b), TN_OK);
    issued(&s.t, s.d, TNI_LANE_IN, &s.gate);
    assert_int_equal(hits(&s), before + 1); /* the same block, behind the first copy */
    atomic_store(&s.gate.open, 1u);
    check(b, 1);
    tni_array_release(b);
    tni_array_release(from);
    test_space_close(&s.t);
}

static void test_one_stream(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        one_stream(pools[i], true);
        one_stream(pools[i], false);
    }
}

/* ---- two streams --------------------------------------------------------------------------------------- */

static void two_streams(const char *pool)
{
    tni_array *from, *to, *a;
    setup s;

    if (!setup_open(&s, pool))
        skip();
    from = host_array(&s, 2);
    to = array(&s, s.t.cpu);
    a = array(&s, s.d);
    assert_int_equal(tni_array_copy(from, a), TN_OK); /* on IN */
    assert_int_equal(tni_array_wait(a), TN_OK);
    push(&s.t, s.d, TNI_LANE_OUT, &s.gate, gate_run);
    assert_int_equal(tni_array_copy(a, to), TN_OK);
    tni_array_release(a);
    issued(&s.t, s.d, TNI_LANE_OUT, &s.gate);
    assert_true(live(&s) >= BYTES); /* OUT is not through with it, and IN had it, too */
    atomic_store(&s.gate.open, 1u);
    check(to, 2);
    assert_int_equal(tni_engine_wait_all(s.t.engine), TN_OK);
    assert_int_equal(live(&s), 0);
    tni_array_release(to);
    tni_array_release(from);
    test_space_close(&s.t);
}

static void test_two_streams(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++)
        two_streams(pools[i]);
}

/* Host memory has no stream: it goes back when the copy is complete. */
static void test_host_memory(void **state)
{
    tni_memory_stats before, held, after;
    tni_array *from, *a;
    setup s;

    (void)state;
    if (!setup_open(&s, "segment"))
        skip();
    assert_int_equal(tni_device_memory(s.t.cpu, TN_MEMORY_DEVICE, &before), TN_OK);
    from = host_array(&s, 3);
    a = array(&s, s.d);
    push(&s.t, s.d, TNI_LANE_IN, &s.gate, gate_run);
    assert_int_equal(tni_array_copy(from, a), TN_OK);
    tni_array_release(from);
    issued(&s.t, s.d, TNI_LANE_IN, &s.gate);
    assert_int_equal(tni_device_memory(s.t.cpu, TN_MEMORY_DEVICE, &held), TN_OK);
    assert_true(held.live >= before.live + BYTES);
    atomic_store(&s.gate.open, 1u);
    check(a, 3);
    assert_int_equal(tni_engine_wait_all(s.t.engine), TN_OK);
    assert_int_equal(tni_device_memory(s.t.cpu, TN_MEMORY_DEVICE, &after), TN_OK);
    assert_int_equal(after.live, before.live);
    tni_array_release(a);
    test_space_close(&s.t);
}

/* ---- many at once -------------------------------------------------------------------------------------- */

/* In, along some arrays of the device, out again; everything between is let go at once. */
static void chain(setup *s, tni_array *from, tni_array *to, uint32_t links)
{
    tni_array *a = array(s, s->d), *next;

    assert_int_equal(tni_array_copy(from, a), TN_OK);
    for (uint32_t i = 0; i < links; i++, a = next) {
        next = array(s, s->d);
        assert_int_equal(tni_array_copy(a, next), TN_OK);
        tni_array_release(a);
    }
    assert_int_equal(tni_array_copy(a, to), TN_OK);
    tni_array_release(a);
}

#define CHAINS 40u

static void test_many(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        tni_array *from[CHAINS], *to[CHAINS];
        setup s;

        if (!setup_open(&s, pools[round % 2]))
            skip();
        for (uint32_t i = 0; i < CHAINS; i++) {
            from[i] = host_array(&s, (float)(i * 100));
            to[i] = array(&s, s.t.cpu);
        }
        for (uint32_t i = 0; i < CHAINS; i++)
            chain(&s, from[i], to[i], i % 5);
        for (uint32_t i = 0; i < CHAINS; i++) {
            check(to[i], (float)(i * 100));
            tni_array_release(from[i]);
            tni_array_release(to[i]);
        }
        assert_int_equal(tni_engine_wait_all(s.t.engine), TN_OK);
        assert_int_equal(live(&s), 0);
        test_space_close(&s.t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_stream),
        cmocka_unit_test(test_two_streams),
        cmocka_unit_test(test_host_memory),
        cmocka_unit_test(test_many),
    };

    return cmocka_run_group_tests_name("tensor.stream_order", tests, NULL, NULL);
}
