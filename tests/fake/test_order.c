/*
 * What a stream keeps in order and what it does not; what a wait for an event holds back; and that leaving
 * out such a wait shows.
 */
#include "fake.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- one stream: strictly in order ----------------------------------------------------------------------
 */

typedef struct step {
    uint32_t *log, *count, value;
} step;

static tn_status step_run(void *arg, tn_err *err)
{
    const step *s = arg;

    (void)err;
    s->log[(*s->count)++] = s->value;
    return TN_OK;
}

static void test_in_order(void **state)
{
    enum { STEPS = 2000 };
    static step steps[STEPS];
    static uint32_t log[STEPS];
    uint32_t count = 0;
    tn_stream *s;
    fake f;

    (void)state;
    fake_start(&f, (fake_options){.seed = 1, .delay_us = 20, .reorder = 1, .devices = 1});
    s = fake_stream(&f);
    for (uint32_t i = 0; i < STEPS; i++) {
        steps[i] = (step){log, &count, i};
        assert_int_equal(f.ops->stream_call(s, step_run, &steps[i], NULL), TN_OK);
    }
    assert_int_equal(f.ops->stream_wait(s, NULL), TN_OK);
    assert_int_equal(count, STEPS);
    for (uint32_t i = 0; i < STEPS; i++)
        assert_int_equal(log[i], i);
    f.ops->stream_destroy(s);
    fake_stop(&f);
}

/* ---- several streams: a random program against its serial result --------------------------------- */

#define CELLS 24u
#define STREAMS 4u
#define OPERATIONS 1500u

typedef struct operation {
    uint64_t *cells;
    uint32_t dst, a, b;
    uint64_t salt;
} operation;

static tn_status operation_run(void *arg, tn_err *err)
{
    const operation *o = arg;

    (void)err;
    o->cells[o->dst] = o->cells[o->a] * 31 + o->cells[o->b] * 17 + o->salt;
    return TN_OK;
}

/* What an engine keeps for a variable: where it was written and read last. */
typedef struct cell_state {
    tn_event *write, *reads[STREAMS];
    uint32_t writer;
} cell_state;

static void wait_for(fake *f, tn_stream *s, tn_event *e, bool drop)
{
    if (e && !drop)
        assert_int_equal(f->ops->event_wait(s, e, NULL), TN_OK);
}

/* Runs the program with a wait for each dependency across streams, but for one in `drop_every` (0: all are
 * kept). */
static bool program_is_right(fake_options options, uint32_t drop_every, int64_t *out_of_order)
{
    static operation operations[OPERATIONS];
    uint64_t cells[CELLS], expected[CELLS], random = 99;
    tn_stream *streams[STREAMS];
    cell_state states[CELLS];
    uint32_t waits = 0;
    fake f;

    fake_start(&f, options);
    memset(states, 0, sizeof states);
    for (uint32_t i = 0; i < CELLS; i++)
        cells[i] = expected[i] = i + 1;
    for (uint32_t i = 0; i < STREAMS; i++)
        streams[i] = fake_stream(&f);
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        operation *o = &operations[i];
        uint32_t stream = (uint32_t)((random = random * 6364136223846793005u + 1) >> 60) % STREAMS;
        tn_stream *s = streams[stream];
        const uint32_t *sources = &o->a;

        random = random * 6364136223846793005u + 1442695040888963407u;
        *o = (operation){cells, (uint32_t)(random >> 33) % CELLS, (uint32_t)(random >> 40) % CELLS,
                         (uint32_t)(random >> 50) % CELLS, random};
        expected[o->dst] = expected[o->a] * 31 + expected[o->b] * 17 + o->salt;
        for (uint32_t k = 0; k < 2; k++)
            wait_for(&f, s, states[sources[k]].write, drop_every && ++waits % drop_every == 0);
        for (uint32_t k = 0; k < STREAMS; k++)
            wait_for(&f, s, states[o->dst].reads[k], drop_every && ++waits % drop_every == 0);
        wait_for(&f, s, states[o->dst].write, drop_every && ++waits % drop_every == 0);
        assert_int_equal(f.ops->stream_call(s, operation_run, o, NULL), TN_OK);
        for (uint32_t k = 0; k < 2; k++) {
            f.ops->event_destroy(states[sources[k]].reads[stream]);
            states[sources[k]].reads[stream] = fake_mark(&f, s);
        }
        f.ops->event_destroy(states[o->dst].write);
        states[o->dst].write = fake_mark(&f, s);
    }
    for (uint32_t i = 0; i < STREAMS; i++)
        assert_int_equal(f.ops->stream_wait(streams[i], NULL), TN_OK);
    *out_of_order = fake_number(&f, "out_of_order");
    assert_int_equal(fake_number(&f, "completions"), fake_number(&f, "submitted"));
    for (uint32_t i = 0; i < CELLS; i++) {
        f.ops->event_destroy(states[i].write);
        for (uint32_t k = 0; k < STREAMS; k++)
            f.ops->event_destroy(states[i].reads[k]);
    }
    for (uint32_t i = 0; i < STREAMS; i++)
        f.ops->stream_destroy(streams[i]);
    fake_stop(&f);
    return !memcmp(cells, expected, sizeof cells);
}

static void test_program(void **state)
{
    int64_t out_of_order, sum = 0;

    (void)state;
    for (int64_t seed = 1; seed <= 5; seed++) {
        assert_true(program_is_right((fake_options){.seed = seed, .delay_us = 30, .reorder = 1, .devices = 1},
                                     0, &out_of_order));
        sum += out_of_order;
    }
    print_message("%lld completions overtook an earlier submission\n", (long long)sum);
    assert_true(sum > 1000);
}

/* reorder = 0: nothing overtakes. With it a dropped wait cannot show, so it tells ordering from other
 * mistakes. */
static void test_strict(void **state)
{
    int64_t out_of_order;

    (void)state;
    assert_true(program_is_right((fake_options){.seed = 3, .delay_us = 5, .devices = 1}, 1, &out_of_order));
    assert_int_equal(out_of_order, 0);
}

#ifndef __has_feature
#define __has_feature(x) 0
#endif

/* The tool must be able to find the mistake it is made for. (Under ThreadSanitizer the race itself would be
 * found.) */
static void test_dropped_waits_show(void **state)
{
    int64_t out_of_order;
    uint32_t wrong = 0;

    (void)state;
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
    skip();
#endif
    for (int64_t seed = 1; seed <= 5; seed++)
        wrong += !program_is_right((fake_options){.seed = seed, .delay_us = 100, .reorder = 1, .devices = 1},
                                   3, &out_of_order);
    assert_int_equal(wrong, 5);
}

/* ---- events -------------------------------------------------------------------------------------- */

typedef struct gate {
    atomic_int open, passed;
} gate;

static tn_status gate_run(void *arg, tn_err *err)
{
    gate *g = arg;

    (void)err;
    while (!atomic_load(&g->open))
        ;
    atomic_store(&g->passed, 1);
    return TN_OK;
}

static tn_status flag_run(void *arg, tn_err *err)
{
    (void)err;
    atomic_fetch_add((atomic_int *)arg, 1);
    return TN_OK;
}

/* A wait holds the stream back until the point that was the latest then, also when the event moves on. */
static void test_wait_holds(void **state)
{
    gate g;
    atomic_int ran;
    tn_stream *a, *b, *c;
    tn_event *e;
    fake f;

    (void)state;
    atomic_init(&g.open, 0);
    atomic_init(&g.passed, 0);
    atomic_init(&ran, 0);
    fake_start(&f, (fake_options){.delay_us = 10, .reorder = 1, .devices = 1});
    a = fake_stream(&f);
    b = fake_stream(&f);
    c = fake_stream(&f);
    e = fake_event(&f);
    assert_int_equal(f.ops->event_query(e, NULL), TN_OK); /* never recorded: nothing to wait for */
    assert_int_equal(f.ops->event_wait(b, e, NULL), TN_OK);
    assert_int_equal(f.ops->stream_call(a, gate_run, &g, NULL), TN_OK);
    assert_int_equal(f.ops->event_record(e, a, NULL), TN_OK);
    assert_int_equal(f.ops->event_query(e, NULL), TN_PENDING);
    assert_int_equal(f.ops->event_wait(b, e, NULL), TN_OK);
    assert_int_equal(f.ops->stream_call(b, flag_run, &ran, NULL), TN_OK);
    assert_int_equal(f.ops->event_record(e, c, NULL), TN_OK); /* the event now names a point of c */
    assert_int_equal(f.ops->stream_wait(c, NULL), TN_OK);
    assert_int_equal(f.ops->event_query(e, NULL), TN_OK);
    f.ops->event_destroy(e); /* b still waits for a */
    assert_int_equal(atomic_load(&ran), 0);
    atomic_store(&g.open, 1);
    assert_int_equal(f.ops->stream_wait(b, NULL), TN_OK);
    assert_int_equal(atomic_load(&ran), 1);
    assert_int_equal(atomic_load(&g.passed), 1);
    assert_true(fake_number(&f, "event_waits_blocked") >= 1);
    fake_stop(&f); /* with its streams: they go too */
}

/* ---- copies -------------------------------------------------------------------------------------- */

static void test_copies(void **state)
{
    enum { BYTES = 1 << 16 };
    unsigned char *host = malloc(BYTES), *back = calloc(1, BYTES);
    tn_device_handle *second = NULL;
    void *first_data = NULL, *second_data = NULL;
    tn_stream *s, *t = NULL;
    tn_event *e;
    fake f;

    (void)state;
    fake_start(&f, (fake_options){.seed = 4, .delay_us = 50, .reorder = 1, .devices = 2});
    assert_int_equal(f.ops->open(f.plugin, 1, &second, NULL), TN_OK);
    assert_int_equal(f.ops->stream_create(second, 0, &t, NULL), TN_OK);
    s = fake_stream(&f);
    for (uint32_t i = 0; i < BYTES; i++)
        host[i] = (unsigned char)(i * 7);
    assert_int_equal(f.ops->alloc(f.device, TN_MEMORY_DEVICE, BYTES, &first_data, NULL), TN_OK);
    assert_int_equal(f.ops->alloc(second, TN_MEMORY_DEVICE, BYTES, &second_data, NULL), TN_OK);
    assert_int_equal((uintptr_t)first_data % 256, 0);
    assert_int_equal(*(unsigned char *)first_data, 0xff);
    {
        const tn_place from = {host, -1, TN_MEMORY_HOST}, first = {first_data, 0, TN_MEMORY_DEVICE},
                       other = {second_data, 1, TN_MEMORY_DEVICE}, to = {back, -1, TN_MEMORY_HOST},
                       foreign = {back, 2, TN_MEMORY_DEVICE}, nowhere = {NULL, 0, TN_MEMORY_DEVICE};

        assert_int_equal(f.ops->copy(s, &first, &from, BYTES, NULL), TN_OK);
        e = fake_mark(&f, s);
        assert_int_equal(f.ops->event_wait(t, e, NULL), TN_OK); /* across devices of one plugin */
        assert_int_equal(f.ops->copy(t, &other, &first, BYTES, NULL), TN_OK);
        assert_int_equal(f.ops->copy(t, &to, &other, BYTES, NULL), TN_OK);
        assert_int_equal(f.ops->copy(t, &to, &other, 0, NULL), TN_OK);
        assert_int_equal(f.ops->copy(t, &foreign, &other, 1, NULL), TN_E_UNSUPPORTED);
        assert_int_equal(f.ops->copy(t, &nowhere, &other, 1, NULL), TN_E_ARG);
        assert_int_equal(f.ops->copy(t, NULL, &other, 1, NULL), TN_E_ARG);
    }
    assert_int_equal(f.ops->stream_wait(t, NULL), TN_OK);
    assert_memory_equal(host, back, BYTES);
    assert_int_equal(f.ops->peer(f.device, 1), 1);
    assert_int_equal(f.ops->peer(f.device, 2), 0);
    f.ops->event_destroy(e);
    f.ops->stream_destroy(s);
    f.ops->free(f.device, TN_MEMORY_DEVICE, first_data);
    f.ops->free(second, TN_MEMORY_DEVICE, second_data);
    f.ops->close(second);
    fake_stop(&f);
    free(host);
    free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),   cmocka_unit_test(test_program),
        cmocka_unit_test(test_strict),     cmocka_unit_test(test_dropped_waits_show),
        cmocka_unit_test(test_wait_holds), cmocka_unit_test(test_copies),
    };

    return cmocka_run_group_tests_name("fake.order", tests, NULL, NULL);
}
