/*
 * What a stream keeps in order and what it does not; what a wait for an event holds back; and that leaving
 * out such a wait shows.
 */
#include "fake.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- one stream: strictly in order --------------------------------------------------------------------- */

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

typedef struct gate {
    atomic_int open, passed;
} gate;

static tn_status gate_run(void *arg, tn_err *err)
{
    gate *g = arg;

    (void)err;
    while (!atomic_load(&g->open))
        (void)sched_yield();
    atomic_store(&g->passed, 1);
    return TN_OK;
}

/* What an engine keeps for a variable: where it was written and read last. `held`: not before the gate is
 * open. */
typedef struct cell_state {
    tn_event *write, *reads[STREAMS];
    bool write_held, reads_held[STREAMS];
} cell_state;

enum { DROP_NONE, DROP_ONE, DROP_ALL }; /* which waits for events are left out */

typedef struct program {
    fake f;
    int drop;
    bool dropped;
    gate gate; /* with reorder = 1 the first thing on stream 0 */
    tn_stream *streams[STREAMS];
    cell_state states[CELLS];
    bool held[STREAMS];  /* what is queued on the stream now waits for the gate */
    uint32_t overtaking; /* operations that end before it opens */
    uint64_t cells[CELLS], expected[CELLS];
} program;

static void program_open(program *p, fake_options options, int drop)
{
    *p = (program){.drop = drop};
    fake_start(&p->f, options);
    for (uint32_t i = 0; i < CELLS; i++)
        p->cells[i] = p->expected[i] = i + 1;
    for (uint32_t i = 0; i < STREAMS; i++)
        p->streams[i] = fake_stream(&p->f);
    p->held[0] = options.reorder;
    if (options.reorder)
        assert_int_equal(p->f.ops->stream_call(p->streams[0], gate_run, &p->gate, NULL), TN_OK);
}

static bool program_close(program *p)
{
    for (uint32_t i = 0; i < CELLS; i++) {
        p->f.ops->event_destroy(p->states[i].write);
        for (uint32_t k = 0; k < STREAMS; k++)
            p->f.ops->event_destroy(p->states[i].reads[k]);
    }
    for (uint32_t i = 0; i < STREAMS; i++)
        p->f.ops->stream_destroy(p->streams[i]);
    fake_stop(&p->f);
    return !memcmp(p->cells, p->expected, sizeof p->cells);
}

/* One wait; the first operation that would wait for the gate leaves out the waits for it if one is to be
 * dropped. True: this one was left out. */
static bool wait_for(program *p, uint32_t stream, tn_event *e, bool held)
{
    const bool drop = p->drop == DROP_ONE && held && !p->held[stream] && !p->dropped;

    if (!e || drop || p->drop == DROP_ALL)
        return e && drop;
    p->held[stream] |= held;
    assert_int_equal(p->f.ops->event_wait(p->streams[stream], e, NULL), TN_OK);
    return false;
}

static bool waits_for(program *p, uint32_t stream, const operation *o)
{
    const uint32_t sources[] = {o->a, o->b};
    cell_state *states = p->states;
    bool dropped = false;

    for (uint32_t k = 0; k < 2; k++)
        dropped |= wait_for(p, stream, states[sources[k]].write, states[sources[k]].write_held);
    for (uint32_t k = 0; k < STREAMS; k++)
        dropped |= wait_for(p, stream, states[o->dst].reads[k], states[o->dst].reads_held[k]);
    return dropped | wait_for(p, stream, states[o->dst].write, states[o->dst].write_held);
}

/* What was left out shows only if the operation does run before the gate opens. */
static void run_now(program *p, tn_stream *s)
{
    tn_event *e = fake_mark(&p->f, s);

    while (p->f.ops->event_query(e, NULL) == TN_PENDING)
        (void)sched_yield();
    p->f.ops->event_destroy(e);
    atomic_store(&p->gate.open, 1);
    p->dropped = true;
}

static void submit(program *p, uint32_t stream, operation *o)
{
    const uint32_t sources[] = {o->a, o->b};
    tn_stream *s = p->streams[stream];
    cell_state *states = p->states;
    bool dropped;

    p->expected[o->dst] = p->expected[o->a] * 31 + p->expected[o->b] * 17 + o->salt;
    dropped = waits_for(p, stream, o);
    assert_int_equal(p->f.ops->stream_call(s, operation_run, o, NULL), TN_OK);
    p->overtaking += !p->held[stream];
    if (dropped)
        run_now(p, s);
    for (uint32_t k = 0; k < 2; k++) {
        p->f.ops->event_destroy(states[sources[k]].reads[stream]);
        states[sources[k]].reads[stream] = fake_mark(&p->f, s);
        states[sources[k]].reads_held[stream] = p->held[stream];
    }
    p->f.ops->event_destroy(states[o->dst].write);
    states[o->dst].write = fake_mark(&p->f, s);
    states[o->dst].write_held = p->held[stream];
}

/* Runs the program with a wait for each dependency across streams, but for those to drop. With reorder = 1
 * stream 0 begins when all that does not hang on it is done, so that operations overtake it for certain. */
static bool program_is_right(fake_options options, int drop, int64_t *out_of_order)
{
    static operation operations[OPERATIONS];
    static program p;
    uint64_t random = 99;

    program_open(&p, options, drop);
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        uint32_t stream = (uint32_t)((random = random * 6364136223846793005u + 1) >> 60) % STREAMS;

        random = random * 6364136223846793005u + 1442695040888963407u;
        operations[i] =
            (operation){p.cells, (uint32_t)(random >> 33) % CELLS, (uint32_t)(random >> 40) % CELLS,
                        (uint32_t)(random >> 50) % CELLS, random};
        submit(&p, stream, &operations[i]);
    }
    assert_true(!options.reorder || p.overtaking > 0);
    while (options.reorder && !p.dropped && fake_number(&p.f, "out_of_order") < p.overtaking)
        (void)sched_yield();
    atomic_store(&p.gate.open, 1);
    for (uint32_t i = 0; i < STREAMS; i++)
        assert_int_equal(p.f.ops->stream_wait(p.streams[i], NULL), TN_OK);
    *out_of_order = fake_number(&p.f, "out_of_order");
    assert_int_equal(fake_number(&p.f, "completions"), fake_number(&p.f, "submitted"));
    return program_close(&p);
}

static void test_program(void **state)
{
    int64_t out_of_order, sum = 0;

    (void)state;
    for (int64_t seed = 1; seed <= 5; seed++) {
        assert_true(program_is_right((fake_options){.seed = seed, .delay_us = 30, .reorder = 1, .devices = 1},
                                     DROP_NONE, &out_of_order));
        sum += out_of_order;
    }
    print_message("%lld completions overtook an earlier submission\n", (long long)sum);
}

/* reorder = 0: nothing overtakes. With it a dropped wait cannot show, so it tells ordering from other
 * mistakes. */
static void test_strict(void **state)
{
    int64_t out_of_order;

    (void)state;
    assert_true(
        program_is_right((fake_options){.seed = 3, .delay_us = 5, .devices = 1}, DROP_ALL, &out_of_order));
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
    print_message("skipped: the thread sanitizer would find the race itself\n");
    skip();
#endif
    for (int64_t seed = 1; seed <= 5; seed++)
        wrong += !program_is_right((fake_options){.seed = seed, .delay_us = 100, .reorder = 1, .devices = 1},
                                   DROP_ONE, &out_of_order);
    assert_int_equal(wrong, 5);
}

/* ---- events -------------------------------------------------------------------------------------- */

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
    while (fake_number(&f, "event_waits_blocked") < 1)
        (void)sched_yield();
    assert_int_equal(atomic_load(&ran), 0);
    atomic_store(&g.open, 1);
    assert_int_equal(f.ops->stream_wait(b, NULL), TN_OK);
    assert_int_equal(atomic_load(&ran), 1);
    assert_int_equal(atomic_load(&g.passed), 1);
    assert_int_equal(fake_number(&f, "event_waits_blocked"), 1);
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
        const tn_place from = {host, -1, TN_MEMORY_HOST, NULL},
                       first = {first_data, 0, TN_MEMORY_DEVICE, "fake"},
                       other = {second_data, 1, TN_MEMORY_DEVICE, "fake"},
                       to = {back, -1, TN_MEMORY_HOST, NULL}, foreign = {back, 2, TN_MEMORY_DEVICE, "fake"},
                       cuda = {second_data, 0, TN_MEMORY_DEVICE, "cuda"},
                       nowhere = {NULL, 0, TN_MEMORY_DEVICE, "fake"};

        assert_int_equal(f.ops->copy(s, &first, &from, BYTES, NULL), TN_OK);
        e = fake_mark(&f, s);
        assert_int_equal(f.ops->event_wait(t, e, NULL), TN_OK); /* across devices of one plugin */
        assert_int_equal(f.ops->copy(t, &other, &first, BYTES, NULL), TN_OK);
        assert_int_equal(f.ops->copy(t, &to, &other, BYTES, NULL), TN_OK);
        assert_int_equal(f.ops->copy(t, &to, &other, 0, NULL), TN_OK);
        assert_int_equal(f.ops->copy(t, &foreign, &other, 1, NULL), TN_E_UNSUPPORTED);
        assert_int_equal(f.ops->copy(t, &cuda, &other, 1, NULL), TN_E_UNSUPPORTED);
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
