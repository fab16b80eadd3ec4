/*
 * Recorded work: launches do what the calls themselves would do, late and overtaken as those are; an edge
 * that is left out shows; slots move; what cannot be done is refused and changes nothing.
 */
#include "fake.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a program of several streams, recorded or not ---------------------------------------------------- */

#define CELLS 16u
#define STREAMS 4u
#define STEPS 12u /* of a stream, in each round */
#define ROUNDS 5u

typedef struct step {
    uint64_t *cells;
    uint32_t dst, a, b;
    bool copies; /* a to dst */
    uint64_t salt;
} step;

/*
 * Streams 0, 1, 2 … do their steps in each round, by the reference one stream after the other. A step waits
 * for the last one of each other stream that it must not overtake: of this round in earlier streams, of the
 * last one in later streams. Each step has an event, whose point is a new one in each round.
 */
typedef struct program {
    fake f;
    tn_stream *streams[STREAMS];
    step steps[STREAMS][STEPS];
    tn_event *events[STREAMS][STEPS];
    uint64_t cells[CELLS], expected[CELLS];
} program;

static tn_status step_run(void *arg, tn_err *err)
{
    const step *s = arg;

    (void)err;
    s->cells[s->dst] = s->cells[s->a] * 31 + s->cells[s->b] * 17 + s->salt;
    return TN_OK;
}

static bool conflicts(const step *x, const step *y)
{
    return x->dst == y->dst || x->dst == y->a || x->dst == y->b || y->dst == x->a || y->dst == x->b;
}

static uint64_t draw(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return *random >> 33;
}

static void program_open(program *p, int64_t seed)
{
    uint64_t random = (uint64_t)seed * 77 + 5;

    memset(p, 0, sizeof *p);
    fake_start(&p->f, (fake_options){.seed = seed, .delay_us = 30, .reorder = 1, .devices = 1});
    for (uint32_t i = 0; i < CELLS; i++)
        p->cells[i] = p->expected[i] = i + 1;
    for (uint32_t s = 0; s < STREAMS; s++) {
        p->streams[s] = fake_stream(&p->f);
        for (uint32_t k = 0; k < STEPS; k++) {
            const bool copies = draw(&random) % 3 == 0;

            p->events[s][k] = fake_event(&p->f);
            p->steps[s][k] = (step){p->cells,
                                    (uint32_t)draw(&random) % CELLS,
                                    (uint32_t)draw(&random) % CELLS,
                                    (uint32_t)draw(&random) % CELLS,
                                    copies,
                                    draw(&random)};
            if (copies)
                p->steps[s][k].b = p->steps[s][k].a;
        }
    }
    for (uint32_t r = 0; r < ROUNDS; r++)
        for (uint32_t s = 0; s < STREAMS; s++)
            for (uint32_t k = 0; k < STEPS; k++) {
                step on = p->steps[s][k];

                on.cells = p->expected;
                if (on.copies)
                    on.cells[on.dst] = on.cells[on.a];
                else
                    (void)step_run(&on, NULL);
            }
}

static void program_close(program *p)
{
    for (uint32_t s = 0; s < STREAMS; s++) {
        assert_int_equal(p->f.ops->stream_wait(p->streams[s], NULL), TN_OK);
        for (uint32_t k = 0; k < STEPS; k++)
            p->f.ops->event_destroy(p->events[s][k]);
        p->f.ops->stream_destroy(p->streams[s]);
    }
    assert_memory_equal(p->cells, p->expected, sizeof p->cells);
    assert_int_equal(fake_number(&p->f, "completions"), fake_number(&p->f, "submitted"));
    fake_stop(&p->f);
}

static void step_issue(program *p, uint32_t stream, uint32_t number)
{
    const tn_device_ops *ops = p->f.ops;
    step *on = &p->steps[stream][number];

    for (uint32_t s = 0; s < STREAMS; s++) {
        uint32_t last = STEPS;

        for (uint32_t k = 0; k < STEPS && s != stream; k++)
            if (conflicts(on, &p->steps[s][k]))
                last = k;
        if (last < STEPS)
            assert_int_equal(ops->event_wait(p->streams[stream], p->events[s][last], NULL), TN_OK);
    }
    if (on->copies) {
        const tn_place dst = {&p->cells[on->dst], -1, TN_MEMORY_HOST, NULL},
                       src = {&p->cells[on->a], -1, TN_MEMORY_HOST, NULL};

        assert_int_equal(ops->copy(p->streams[stream], &dst, &src, sizeof p->cells[0], NULL), TN_OK);
    } else {
        assert_int_equal(ops->stream_call(p->streams[stream], step_run, on, NULL), TN_OK);
    }
    assert_int_equal(ops->event_record(p->events[stream][number], p->streams[stream], NULL), TN_OK);
}

static void round_issue(program *p, uint32_t stream)
{
    for (uint32_t k = 0; k < STEPS; k++)
        step_issue(p, stream, k);
}

static void test_same_bits(void **state)
{
    static program p;
    int64_t overtaken = 0;

    (void)state;
    for (int64_t seed = 1; seed <= 20; seed++) {
        tn_device_graph *graphs[STREAMS];
        uint64_t before[CELLS];

        program_open(&p, seed); /* call by call */
        for (uint32_t r = 0; r < ROUNDS; r++)
            for (uint32_t s = 0; s < STREAMS; s++)
                round_issue(&p, s);
        program_close(&p);

        program_open(&p, seed); /* recorded and launched */
        memcpy(before, p.cells, sizeof before);
        for (uint32_t s = 0; s < STREAMS; s++) {
            assert_int_equal(p.f.ops->graph_begin(p.streams[s], NULL), TN_OK);
            round_issue(&p, s);
            assert_int_equal(p.f.ops->graph_end(p.streams[s], 0, NULL, NULL, &graphs[s], NULL), TN_OK);
            assert_int_equal(p.f.ops->stream_wait(p.streams[s], NULL), TN_OK);
        }
        assert_memory_equal(p.cells, before, sizeof before); /* nothing was done */
        assert_int_equal(fake_number(&p.f, "submitted"), 0);
        for (uint32_t r = 0; r < ROUNDS; r++)
            for (uint32_t s = 0; s < STREAMS; s++)
                assert_int_equal(p.f.ops->graph_launch(graphs[s], p.streams[s], NULL), TN_OK);
        for (uint32_t s = 0; s < STREAMS; s++)
            p.f.ops->graph_free(graphs[s]); /* launches are under way */
        assert_int_equal(fake_number(&p.f, "graphs"), STREAMS);
        assert_int_equal(fake_number(&p.f, "graph_launches"), STREAMS * ROUNDS);
        for (uint32_t s = 0; s < STREAMS; s++)
            assert_int_equal(p.f.ops->stream_wait(p.streams[s], NULL), TN_OK);
        overtaken += fake_number(&p.f, "out_of_order");
        program_close(&p);
    }
    print_message("%lld completions overtook an earlier submission\n", (long long)overtaken);
}

/* ---- edges --------------------------------------------------------------------------------------------- */

typedef struct gate {
    atomic_int open;
    uint64_t x, y; /* x: set behind the gate; y: what a stream that waits for that finds */
} gate;

static tn_status gate_run(void *arg, tn_err *err)
{
    gate *g = arg;

    (void)err;
    while (!atomic_load(&g->open))
        (void)sched_yield();
    g->x++;
    return TN_OK;
}

static tn_status look_run(void *arg, tn_err *err)
{
    gate *g = arg;

    (void)err;
    g->y = g->x;
    return TN_OK;
}

typedef struct pair { /* a writes behind a gate; b waits for that, and looks */
    fake f;
    gate g;
    tn_stream *a, *b;
    tn_event *written, *looked;
    tn_device_graph *writes, *looks;
} pair;

static void pair_open(pair *p, int64_t seed, const char *fault)
{
    memset(p, 0, sizeof *p);
    fake_start(&p->f,
               (fake_options){.seed = seed, .delay_us = 40, .reorder = 1, .devices = 1, .fault = fault});
    p->a = fake_stream(&p->f);
    p->b = fake_stream(&p->f);
    p->written = fake_event(&p->f);
    p->looked = fake_event(&p->f);
    assert_int_equal(p->f.ops->graph_begin(p->a, NULL), TN_OK);
    assert_int_equal(p->f.ops->stream_call(p->a, gate_run, &p->g, NULL), TN_OK);
    assert_int_equal(p->f.ops->event_record(p->written, p->a, NULL), TN_OK);
    assert_int_equal(p->f.ops->graph_end(p->a, 0, NULL, NULL, &p->writes, NULL), TN_OK);
    assert_int_equal(p->f.ops->graph_begin(p->b, NULL), TN_OK);
    assert_int_equal(p->f.ops->event_wait(p->b, p->written, NULL), TN_OK);
    assert_int_equal(p->f.ops->stream_call(p->b, look_run, &p->g, NULL), TN_OK);
    assert_int_equal(p->f.ops->event_record(p->looked, p->b, NULL), TN_OK);
    assert_int_equal(p->f.ops->graph_end(p->b, 0, NULL, NULL, &p->looks, NULL), TN_OK);
    assert_int_equal(p->f.ops->event_query(p->looked, NULL), TN_OK); /* was never recorded */
}

static void pair_close(pair *p)
{
    p->f.ops->graph_free(p->writes);
    p->f.ops->graph_free(p->looks);
    p->f.ops->event_destroy(p->written);
    p->f.ops->event_destroy(p->looked);
    fake_stop(&p->f);
}

/* Each launch makes the edge anew. */
static void test_edge_holds(void **state)
{
    static pair p;

    (void)state;
    for (int64_t seed = 1; seed <= 20; seed++) {
        pair_open(&p, seed, NULL);
        for (uint64_t round = 1; round <= 3; round++) {
            atomic_store(&p.g.open, 0);
            assert_int_equal(p.f.ops->graph_launch(p.writes, p.a, NULL), TN_OK);
            assert_int_equal(p.f.ops->graph_launch(p.looks, p.b, NULL), TN_OK);
            while (fake_number(&p.f, "event_waits_blocked") < (int64_t)round)
                (void)sched_yield();
            assert_int_equal(p.f.ops->event_query(p.looked, NULL), TN_PENDING);
            atomic_store(&p.g.open, 1);
            assert_int_equal(p.f.ops->stream_wait(p.b, NULL), TN_OK);
            assert_int_equal(p.f.ops->event_query(p.looked, NULL), TN_OK);
            assert_int_equal(p.g.y, round);
        }
        pair_close(&p);
    }
}

/* The second launch goes without its edge: it looks while the gate is closed, and finds what was before. */
static void test_dropped_edge_shows(void **state)
{
    static pair p;

    (void)state;
    for (int64_t seed = 1; seed <= 20; seed++) {
        pair_open(&p, seed, "wait:2");
        atomic_store(&p.g.open, 1);
        assert_int_equal(p.f.ops->graph_launch(p.writes, p.a, NULL), TN_OK);
        assert_int_equal(p.f.ops->graph_launch(p.looks, p.b, NULL), TN_OK);
        assert_int_equal(p.f.ops->stream_wait(p.b, NULL), TN_OK);
        assert_int_equal(p.g.y, 1);
        assert_int_equal(p.f.ops->stream_wait(p.a, NULL), TN_OK);
        atomic_store(&p.g.open, 0);
        assert_int_equal(p.f.ops->graph_launch(p.writes, p.a, NULL), TN_OK);
        assert_int_equal(p.f.ops->graph_launch(p.looks, p.b, NULL), TN_OK);
        while (p.f.ops->event_query(p.looked, NULL) == TN_PENDING)
            (void)sched_yield(); /* for ever, if the edge were there */
        atomic_store(&p.g.open, 1);
        assert_int_equal(p.f.ops->stream_wait(p.a, NULL), TN_OK);
        assert_int_equal(p.g.x, 2);
        assert_int_equal(p.g.y, 1); /* wrong */
        assert_int_equal(fake_number(&p.f, "faults"), 1);
        assert_true(fake_number(&p.f, "out_of_order") > 0);
        pair_close(&p);
    }
}

/* ---- slots --------------------------------------------------------------------------------------------- */

typedef struct job { /* what a call is given: lies in a slot */
    uint64_t *to, value;
} job;

static tn_status job_run(void *arg, tn_err *err)
{
    const job *j = arg;

    (void)err;
    *j->to += j->value;
    return TN_OK;
}

static tn_status hold_run(void *arg, tn_err *err)
{
    (void)err;
    while (!atomic_load((atomic_int *)arg))
        (void)sched_yield();
    return TN_OK;
}

/* Arguments and both ends of copies move; what lies in no slot stays;
 * launches under way keep their places. */
static void test_slots(void **state)
{
    enum { PLACES = 4 };
    uint64_t sum = 0, fixed = 0, in[PLACES][2], out[PLACES][2] = {{0}};
    job frames[PLACES][2];
    const uint64_t bytes[] = {sizeof frames[0], sizeof in[0], sizeof out[0]};
    void *slots[3] = {frames[0], in[0], out[0]};
    tn_device_graph *graph = NULL;
    atomic_int open;
    tn_stream *s;
    fake f;

    (void)state;
    atomic_init(&open, 0);
    fake_start(&f, (fake_options){.seed = 5, .delay_us = 10, .reorder = 1, .devices = 1});
    s = fake_stream(&f);
    for (uint32_t i = 0; i < PLACES; i++) {
        frames[i][0] = (job){&sum, 1000};
        frames[i][1] = (job){&sum, (uint64_t)1 << i * 8};
        in[i][0] = i + 100;
        in[i][1] = i + 200;
    }
    {
        const tn_place from = {&in[0][1], -1, TN_MEMORY_HOST, NULL},
                       to = {&out[0][0], -1, TN_MEMORY_HOST, NULL},
                       there = {&fixed, -1, TN_MEMORY_HOST, NULL};

        assert_int_equal(f.ops->graph_begin(s, NULL), TN_OK);
        assert_int_equal(f.ops->stream_call(s, job_run, &frames[0][1], NULL), TN_OK);
        assert_int_equal(f.ops->copy(s, &to, &from, sizeof in[0][1], NULL), TN_OK);
        assert_int_equal(f.ops->copy(s, &there, &from, sizeof fixed, NULL), TN_OK);
        assert_int_equal(f.ops->graph_end(s, 3, slots, bytes, &graph, NULL), TN_OK);
    }
    assert_int_equal(f.ops->stream_call(s, hold_run, &open, NULL), TN_OK);
    for (uint32_t i = 0; i < PLACES; i++) { /* all queued before the first one is done */
        slots[0] = frames[i];
        slots[1] = in[i];
        slots[2] = out[i];
        assert_int_equal(f.ops->graph_update(graph, 3, slots, NULL), TN_OK);
        assert_int_equal(f.ops->graph_launch(graph, s, NULL), TN_OK);
    }
    atomic_store(&open, 1);
    assert_int_equal(f.ops->stream_wait(s, NULL), TN_OK);
    assert_int_equal(sum, 0x01010101);
    assert_int_equal(fixed, 200 + PLACES - 1);
    for (uint32_t i = 0; i < PLACES; i++) {
        assert_int_equal(out[i][0], i + 200);
        assert_int_equal(out[i][1], 0);
    }
    assert_int_equal(fake_number(&f, "graph_updates"), PLACES);
    assert_int_equal(f.ops->graph_update(graph, 2, slots, NULL), TN_E_ARG);
    assert_int_equal(f.ops->graph_update(graph, 3, NULL, NULL), TN_E_ARG);
    assert_int_equal(f.ops->graph_update(NULL, 3, slots, NULL), TN_E_ARG);
    f.ops->graph_free(graph);
    fake_stop(&f);
}

/* ---- what is refused -------------------------------------------------------------------------------- */

static tn_status count_run(void *arg, tn_err *err)
{
    (void)err;
    atomic_fetch_add((atomic_int *)arg, 1);
    return TN_OK;
}

static tn_status bad_run(void *arg, tn_err *err)
{
    (void)arg;
    return tn_fail(err, TN_E_SHAPE, "this kernel does not like it");
}

static void test_refused(void **state)
{
    tn_device_graph *graph = NULL, *other = NULL;
    tn_device_handle *second = NULL;
    tn_stream *s, *foreign = NULL;
    atomic_int ran;
    fake f;

    (void)state;
    atomic_init(&ran, 0);
    fake_start(&f, (fake_options){.delay_us = 5, .reorder = 1, .devices = 2});
    s = fake_stream(&f);
    assert_int_equal(f.ops->graph_begin(NULL, NULL), TN_E_ARG);
    assert_int_equal(f.ops->graph_end(NULL, 0, NULL, NULL, &graph, NULL), TN_E_ARG);
    assert_int_equal(f.ops->graph_end(s, 0, NULL, NULL, &graph, NULL), TN_E_STATE);
    assert_int_equal(f.ops->graph_launch(NULL, s, NULL), TN_E_ARG);
    f.ops->graph_free(NULL);
    assert_int_equal(f.ops->graph_begin(s, NULL), TN_OK);
    assert_int_equal(f.ops->graph_begin(s, NULL), TN_E_STATE);
    assert_int_equal(f.ops->stream_call(s, count_run, &ran, NULL), TN_OK);
    assert_int_equal(f.ops->stream_wait(s, NULL), TN_E_STATE);
    assert_int_equal(f.ops->graph_end(s, 0, NULL, NULL, &graph, NULL), TN_OK);
    assert_int_equal(f.ops->graph_begin(s, NULL), TN_OK); /* a launch is not recorded */
    assert_int_equal(f.ops->graph_launch(graph, s, NULL), TN_E_STATE);
    assert_int_equal(f.ops->stream_call(s, bad_run, NULL, NULL), TN_OK);
    assert_int_equal(f.ops->graph_end(s, 0, NULL, NULL, NULL, NULL), TN_OK); /* dropped */
    assert_int_equal(f.ops->graph_begin(s, NULL), TN_OK);
    assert_int_equal(f.ops->graph_end(s, 1, NULL, NULL, &other, NULL), TN_E_ARG);
    assert_int_equal(f.ops->graph_end(s, 0, NULL, NULL, &other, NULL),
                     TN_E_STATE); /* it ended nevertheless */
    assert_null(other);
    assert_int_equal(f.ops->open(f.plugin, 1, &second, NULL), TN_OK);
    assert_int_equal(f.ops->stream_create(second, 0, &foreign, NULL), TN_OK);
    assert_int_equal(f.ops->graph_launch(graph, foreign, NULL), TN_E_ARG);
    assert_int_equal(f.ops->graph_launch(graph, NULL, NULL), TN_E_ARG);
    assert_int_equal(f.ops->stream_wait(s, NULL), TN_OK);
    assert_int_equal(atomic_load(&ran), 0);
    assert_int_equal(f.ops->graph_launch(graph, s, NULL), TN_OK);
    assert_int_equal(f.ops->stream_wait(s, NULL), TN_OK);
    assert_int_equal(atomic_load(&ran), 1);
    assert_int_equal(f.ops->graph_begin(s, NULL), TN_OK); /* and is destroyed so */
    assert_int_equal(f.ops->stream_call(s, count_run, &ran, NULL), TN_OK);
    f.ops->graph_free(graph);
    f.ops->close(second);
    fake_stop(&f);
}

typedef struct recorder {
    fake *f;
    tn_stream *s;
    atomic_int stop;
} recorder;

static void *record_again_and_again(void *arg)
{
    recorder *r = arg;

    while (!atomic_load(&r->stop)) {
        tn_device_graph *graph = NULL;

        if (r->f->ops->graph_begin(r->s, NULL) || r->f->ops->graph_end(r->s, 0, NULL, NULL, &graph, NULL))
            return r;
        if (r->f->ops->graph_launch(graph, r->s, NULL))
            return r;
        r->f->ops->graph_free(graph);
    }
    return NULL;
}

/* Events of another thread, while a stream begins and ends to record: taken or refused. */
static void test_events_beside(void **state)
{
    recorder r = {.stop = 0};
    pthread_t thread;
    tn_event *e;
    void *failed;
    fake f;

    (void)state;
    fake_start(&f, (fake_options){.reorder = 1, .devices = 1});
    r.f = &f;
    r.s = fake_stream(&f);
    e = fake_event(&f);
    assert_int_equal(f.ops->event_record(e, r.s, NULL), TN_OK);
    assert_int_equal(pthread_create(&thread, NULL, record_again_and_again, &r), 0);
    for (int i = 0; i < 3000; i++) {
        const tn_status recorded = f.ops->event_record(e, r.s, NULL);
        const tn_status waited = f.ops->event_wait(r.s, e, NULL);

        assert_true(recorded == TN_OK || recorded == TN_E_STATE);
        assert_true(waited == TN_OK || waited == TN_E_STATE);
    }
    atomic_store(&r.stop, 1);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_int_equal(f.ops->stream_wait(r.s, NULL), TN_OK);
    f.ops->event_destroy(e);
    fake_stop(&f);
}

/* A launch whose second call fails does not come to the third, and fails its stream; no other. */
static void test_failing_launch(void **state)
{
    tn_device_graph *graph = NULL;
    atomic_int ran[2];
    tn_stream *s, *t;
    tn_event *behind;
    tn_err err;
    fake f;

    (void)state;
    atomic_init(&ran[0], 0);
    atomic_init(&ran[1], 0);
    fake_start(&f, (fake_options){.delay_us = 20, .reorder = 1, .devices = 1});
    s = fake_stream(&f);
    t = fake_stream(&f);
    behind = fake_event(&f);
    assert_int_equal(f.ops->graph_begin(s, NULL), TN_OK);
    assert_int_equal(f.ops->stream_call(s, count_run, &ran[0], NULL), TN_OK);
    assert_int_equal(f.ops->stream_call(s, bad_run, NULL, NULL), TN_OK);
    assert_int_equal(f.ops->stream_call(s, count_run, &ran[1], NULL), TN_OK);
    assert_int_equal(f.ops->event_record(behind, s, NULL), TN_OK);
    assert_int_equal(f.ops->graph_end(s, 0, NULL, NULL, &graph, NULL), TN_OK);
    assert_int_equal(f.ops->graph_launch(graph, s, NULL), TN_OK);
    assert_int_equal(f.ops->stream_wait(s, &err), TN_E_SHAPE);
    assert_int_equal(f.ops->event_query(behind, NULL), TN_E_SHAPE);
    assert_int_equal(atomic_load(&ran[0]), 1);
    assert_int_equal(atomic_load(&ran[1]), 0);
    assert_int_equal(f.ops->graph_launch(graph, s, &err), TN_E_SHAPE);
    assert_non_null(strstr(err.message, "does not like it"));
    assert_int_equal(f.ops->graph_begin(s, NULL), TN_E_STATE);
    assert_int_equal(f.ops->graph_launch(graph, t, NULL), TN_OK); /* another stream, and its own failure */
    assert_int_equal(f.ops->stream_wait(t, NULL), TN_E_SHAPE);
    assert_int_equal(atomic_load(&ran[0]), 2);
    f.ops->graph_free(graph);
    f.ops->event_destroy(behind);
    fake_stop(&f);
}

/* ---- where memory fails ---------------------------------------------------------------------------- */

typedef struct tight {
    fake f;
    tn_stream *s;
    tn_event *e;
    atomic_int ran;
    int launched;
} tight;

/* True: memory sufficed. */
static bool tight_life(tight *t)
{
    const tn_device_ops *ops = t->f.ops;
    void *slot[] = {t};
    const uint64_t bytes[] = {sizeof *t};
    tn_device_graph *graph = NULL;
    bool good = !ops->graph_begin(t->s, NULL);

    if (!good)
        return false;
    good = !ops->stream_call(t->s, count_run, &t->ran, NULL) && !ops->event_record(t->e, t->s, NULL) &&
           !ops->event_wait(t->s, t->e, NULL);
    if (ops->graph_end(t->s, 1, slot, bytes, &graph, NULL)) {
        assert_null(graph);
        return false;
    }
    for (int i = 0; i < 2 && good; i++) {
        good = !ops->graph_launch(graph, t->s, NULL);
        t->launched += good;
    }
    ops->graph_free(graph);
    return good;
}

static void test_no_memory(void **state)
{
    bool good = false;
    int failures = 0;

    (void)state;
    for (int64_t nth = 1; !good; nth++) {
        tight t = {.launched = 0};

        fake_start(&t.f, (fake_options){.delay_us = 5, .reorder = 1, .devices = 1});
        t.s = fake_stream(&t.f);
        t.e = fake_event(&t.f);
        t.f.memory_fail_at = atomic_load(&t.f.memory_calls) + nth;
        good = tight_life(&t);
        t.f.memory_fail_at = 0;
        failures += !good;
        assert_int_equal(t.f.ops->stream_wait(t.s, NULL), TN_OK);
        assert_int_equal(atomic_load(&t.ran), t.launched); /* all of a launch, or nothing */
        t.f.ops->event_destroy(t.e);
        fake_stop(&t.f); /* nothing is left */
        assert_true(nth < 1000);
    }
    assert_true(failures > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_edge_holds),
        cmocka_unit_test(test_dropped_edge_shows),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_events_beside),
        cmocka_unit_test(test_failing_launch),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests_name("fake.graph", tests, NULL, NULL);
}
