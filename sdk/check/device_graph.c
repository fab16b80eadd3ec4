/*
 * Group device: graphs, where a device records them. What is recorded is watched from within its calls: they
 * count, and look at what must have been done before.
 */
#include "device.h"

#include <string.h>

#define CALLS 40u
#define LAUNCHES 5u
#define EARLY_US 5000u /* for what is done too early */
#define HELD_MS 100u
#define ROUNDS 12u
#define HELDS 2u /* of these */

/* ---- calls of the table -------------------------------------------------------------------------- */

/* Skips the case if the device records nothing. */
static void graph_open(chk_device *d, chk_env *env)
{
    uint32_t there;

    chk_device_open(d, env, CHK_HOST_EXACT);
    there = (uint32_t)(TN_OFFERS(d->ops, tn_device_ops, graph_begin) +
                       TN_OFFERS(d->ops, tn_device_ops, graph_end) +
                       TN_OFFERS(d->ops, tn_device_ops, graph_update) +
                       TN_OFFERS(d->ops, tn_device_ops, graph_launch) +
                       TN_OFFERS(d->ops, tn_device_ops, graph_free));
    if (!there)
        chk_skip(env, "the device records no graphs");
    chk_count(env);
    chk_fail_if(env, there != 5, NULL, "%u of the five functions for graphs are there", (unsigned)there);
}

static void refused(chk_device *d, const char *call, tn_status st, tn_status want)
{
    chk_count(d->env);
    chk_device_said(d, call, st, &chk_err);
    if (st != want)
        chk_fail(d->env, NULL, "%s gives %s instead of %s", call, tn_status_name(st), tn_status_name(want));
}

static tn_device_graph *end(chk_device *d, tn_stream *s, uint32_t count, void *const *base,
                            const uint64_t *bytes)
{
    tn_device_graph *made = NULL;

    CHK_MUST(d, graph_end, s, count, base, bytes, &made);
    chk_fail_if(d->env, !made, NULL, "graph_end gives TN_OK and no graph");
    return made;
}

/* ---- order --------------------------------------------------------------------------------------- */

typedef struct counted {
    chk_env *env;
    atomic_uint next; /* the number that is to come, modulo CALLS */
    chk_hold *hold;   /* of the first call; NULL: none */
    struct one {
        struct counted *all;
        uint32_t number;
    } one[CALLS];
} counted;

static tn_status count_in_order(void *arg, tn_err *err)
{
    const struct one *o = arg;
    uint32_t came;

    (void)err;
    if (!o->number && o->all->hold)
        chk_hold_wait(o->all->hold);
    came = atomic_fetch_add(&o->all->next, 1);
    if (came % CALLS != o->number)
        chk_fail(o->all->env, "D-graph", "call %u of a graph is made as number %u of its launch",
                 (unsigned)o->number, (unsigned)(came % CALLS));
    return TN_OK;
}

static tn_device_graph *count_record(chk_device *d, tn_stream *s, counted *c)
{
    CHK_MUST(d, graph_begin, s);
    for (uint32_t i = 0; i < CALLS; i++) {
        c->one[i] = (struct one){c, i};
        chk_device_call(d, s, count_in_order, &c->one[i]);
    }
    chk_quiet_us(EARLY_US);
    return end(d, s, 0, NULL, NULL);
}

static void count_is(chk_device *d, tn_stream *s, counted *c, uint32_t launches)
{
    chk_device_wait(d, s);
    if (atomic_load(&c->next) != launches * CALLS)
        chk_fail(d->env, NULL, "%u launches of %u calls are done, and %u calls were made", (unsigned)launches,
                 CALLS, (unsigned)atomic_load(&c->next));
}

static tn_status between(void *arg, tn_err *err)
{
    counted *c = arg;

    (void)err;
    if (atomic_load(&c->next) % CALLS)
        chk_fail(c->env, "D-graph", "a call of the stream is made in the middle of a launch");
    return TN_OK;
}

void chk_device_graph(chk_env *env)
{
    static counted c;
    static chk_hold hold;
    chk_device d;
    tn_stream *s, *other;
    tn_device_graph *graph;

    graph_open(&d, env);
    s = chk_device_stream(&d);
    other = chk_device_stream(&d);
    c.env = env;
    graph = count_record(&d, s, &c);
    count_is(&d, s, &c, 0);
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        chk_device_call(&d, s, between, &c);
        CHK_MUST(&d, graph_launch, graph, s);
    }
    chk_device_call(&d, s, between, &c);
    count_is(&d, s, &c, LAUNCHES);
    CHK_MUST(&d, graph_launch, graph, other); /* it is no part of the stream that recorded it */
    count_is(&d, other, &c, LAUNCHES + 1);
    chk_hold_begin(&hold, HELD_MS);
    c.hold = &hold;
    CHK_MUST(&d, graph_launch, graph, s);
    d.ops->graph_free(graph); /* before it was done */
    chk_hold_end(&hold);
    count_is(&d, s, &c, LAUNCHES + 2);
    d.ops->graph_free(NULL);
    d.ops->stream_destroy(s);
    d.ops->stream_destroy(other);
    chk_device_close(&d);
}

/* ---- events -------------------------------------------------------------------------------------- */

typedef struct edge { /* one stream writes, another one looks */
    chk_env *env;
    chk_hold *hold;
    atomic_uint written, seen;
} edge;

static tn_status edge_write(void *arg, tn_err *err)
{
    edge *e = arg;

    (void)err;
    if (e->hold)
        chk_hold_wait(e->hold);
    atomic_fetch_add(&e->written, 1);
    return TN_OK;
}

static tn_status edge_look(void *arg, tn_err *err)
{
    edge *e = arg;

    (void)err;
    if (atomic_fetch_add(&e->seen, 1) >= atomic_load(&e->written))
        chk_fail(e->env, "D-graph",
                 "a stream that waits for the event of a graph goes on before it is reached");
    return TN_OK;
}

/* Records either end of the edge; skips the case if graphs hold no events. */
static tn_device_graph *edge_record(chk_device *d, tn_stream *s, tn_event *event, edge *e, bool writes)
{
    tn_status st = TN_OK;

    CHK_MUST(d, graph_begin, s);
    if (!writes)
        st = d->ops->event_wait(s, event, &chk_err);
    chk_device_call(d, s, writes ? edge_write : edge_look, e);
    if (writes)
        st = d->ops->event_record(event, s, &chk_err);
    if (st == TN_E_UNSUPPORTED) {
        CHK_MUST(d, graph_end, s, 0, NULL, NULL, NULL);
        chk_skip(d->env, "graphs of this device hold no events");
    }
    chk_device_must(d, writes ? "event_record" : "event_wait", st);
    return end(d, s, 0, NULL, NULL);
}

/* The round's looking side, recorded or not, comes behind the writing one, recorded or not. */
static void edge_round(chk_device *d, tn_stream *const streams[2], tn_device_graph *const graphs[2],
                       tn_event *event, edge *e, uint32_t round)
{
    static chk_hold holds[HELDS];
    chk_hold *hold = round / 4 < HELDS ? &holds[round / 4] : NULL;

    if (hold)
        chk_hold_begin(hold, HELD_MS);
    e->hold = hold;
    if (round % 4 != 1) {
        CHK_MUST(d, graph_launch, graphs[0], streams[0]);
    } else {
        chk_device_call(d, streams[0], edge_write, e);
        CHK_MUST(d, event_record, event, streams[0]);
    }
    if (round % 4 != 2) {
        CHK_MUST(d, graph_launch, graphs[1], streams[1]);
    } else {
        CHK_MUST(d, event_wait, streams[1], event);
        chk_device_call(d, streams[1], edge_look, e);
    }
    if (hold) {
        chk_quiet_us(EARLY_US);
        chk_hold_end(hold);
    }
    chk_device_wait(d, streams[0]);
    chk_device_wait(d, streams[1]);
    if (atomic_load(&e->seen) != round + 1 || atomic_load(&e->written) != round + 1)
        chk_fail(d->env, NULL, "a launch is done, and its calls were not all made");
}

void chk_device_graph_events(chk_env *env)
{
    static edge e;
    chk_device d;
    tn_stream *streams[2];
    tn_device_graph *graphs[2];
    tn_event *event;

    graph_open(&d, env);
    e.env = env;
    event = chk_device_event(&d);
    for (uint32_t i = 0; i < 2; i++)
        streams[i] = chk_device_stream(&d);
    for (uint32_t i = 0; i < 2; i++)
        graphs[i] = edge_record(&d, streams[i], event, &e, i == 0);
    for (uint32_t i = 0; i < ROUNDS; i++)
        edge_round(&d, streams, graphs, event, &e, i);
    for (uint32_t i = 0; i < 2; i++) {
        d.ops->graph_free(graphs[i]);
        d.ops->stream_destroy(streams[i]);
    }
    d.ops->event_destroy(event);
    chk_device_close(&d);
}

/* ---- slots --------------------------------------------------------------------------------------- */

#define PLACES 3u
#define WORDS 1000u

typedef struct place { /* a slot: what the call is given, and what it is to find there */
    chk_env *env;
    chk_hold *hold;
    uint32_t number;
    atomic_uint came;
} place;

static atomic_uint came; /* launches */

static tn_status place_came(void *arg, tn_err *err)
{
    place *p = arg;
    const uint32_t launch = atomic_fetch_add(&came, 1);

    (void)err;
    if (p->hold)
        chk_hold_wait(p->hold);
    atomic_fetch_add(&p->came, 1);
    if (launch != p->number)
        chk_fail(p->env, "D-graph", "launch %u was to use place %u of its slot, but uses %u",
                 (unsigned)launch, (unsigned)launch, (unsigned)p->number);
    return TN_OK;
}

/* What comes from the device afterwards; TN_E_UNSUPPORTED: this copy is not to be recorded. */
static tn_status slots_record(chk_device *d, tn_stream *s, place *p, void *there, void *here)
{
    const tn_place to = chk_device_place(d, (char *)there + 64), from = chk_host_place(here);
    tn_status st;

    CHK_MUST(d, graph_begin, s);
    chk_device_call(d, s, place_came, p);
    if ((st = d->ops->copy(s, &to, &from, sizeof(uint32_t) * WORDS, &chk_err)) != TN_E_UNSUPPORTED)
        chk_device_must(d, "copy", st);
    return st;
}

static void slots_look(chk_device *d, tn_stream *s, void *there, uint32_t number)
{
    static uint32_t back[WORDS + 16];
    const tn_place from = chk_device_place(d, there), to = chk_host_place(back);

    chk_device_copy(d, s, &to, &from, sizeof back);
    chk_device_wait(d, s);
    for (uint32_t i = 0; i < WORDS; i++)
        if (back[i + 16] != number * 1000003 + i)
            chk_fail(d->env, NULL, "a recorded copy does not go to today's place of its slot");
}

/* The first launch is held until the second one was updated and queued. */
static void slots_launch(chk_device *d, tn_stream *s, tn_device_graph *graph, place *places,
                         void *const *there, uint32_t (*here)[WORDS])
{
    static chk_hold hold;

    chk_hold_begin(&hold, HELD_MS);
    places[0].hold = &hold;
    for (uint32_t i = 0; i < PLACES; i++) {
        void *const base[] = {&places[i], there[i], here[i]};
        const tn_status st = i ? d->ops->graph_update(graph, 3, base, &chk_err) : TN_OK;

        if (st == TN_E_UNSUPPORTED) {
            chk_hold_end(&hold);
            chk_skip(d->env, "graphs of this device are recorded anew");
        }
        chk_device_must(d, "graph_update", st);
        CHK_MUST(d, graph_launch, graph, s);
    }
    refused(d, "graph_update with two of three slots", d->ops->graph_update(graph, 2, there, &chk_err),
            TN_E_ARG);
    chk_hold_end(&hold);
    chk_device_wait(d, s);
}

void chk_device_graph_slots(chk_env *env)
{
    static place places[PLACES];
    static uint32_t here[PLACES][WORDS];
    const uint64_t bytes[] = {sizeof places[0], sizeof(uint32_t) * (WORDS + 16), sizeof here[0]};
    void *there[PLACES], *base[3];
    tn_device_graph *graph;
    chk_device d;
    tn_stream *s;
    tn_status st;

    graph_open(&d, env);
    s = chk_device_stream(&d);
    for (uint32_t i = 0; i < PLACES; i++) {
        places[i].env = env;
        places[i].number = i;
        there[i] = chk_device_alloc(&d, TN_MEMORY_DEVICE, bytes[1]);
        for (uint32_t k = 0; k < WORDS; k++)
            here[i][k] = i * 1000003 + k;
    }
    st = slots_record(&d, s, &places[0], there[0], here[0]);
    base[0] = &places[0];
    base[1] = there[0];
    base[2] = here[0];
    graph = end(&d, s, 3, base, bytes);
    slots_launch(&d, s, graph, places, there, here);
    for (uint32_t i = 0; i < PLACES; i++) {
        if (atomic_load(&places[i].came) != 1)
            chk_fail(env, NULL, "the argument of a recorded call does not move with its slot");
        if (!st)
            slots_look(&d, s, there[i], i);
    }
    d.ops->graph_free(graph);
    for (uint32_t i = 0; i < PLACES; i++)
        d.ops->free(d.handle, TN_MEMORY_DEVICE, there[i]);
    d.ops->stream_destroy(s);
    chk_device_close(&d);
}

/* ---- errors -------------------------------------------------------------------------------------- */

static tn_status broken(void *arg, tn_err *err)
{
    (void)arg;
    return tn_fail(err, TN_E_INTERNAL, "broken on purpose");
}

static tn_status tick(void *arg, tn_err *err)
{
    (void)err;
    atomic_fetch_add((atomic_uint *)arg, 1);
    return TN_OK;
}

static void states(chk_device *d, tn_stream *s, atomic_uint *ticks)
{
    tn_device_graph *graph = NULL, *none = NULL;

    refused(d, "graph_end without a begin", d->ops->graph_end(s, 0, NULL, NULL, &none, &chk_err), TN_E_STATE);
    CHK_MUST(d, graph_begin, s);
    chk_device_call(d, s, tick, ticks);
    refused(d, "a second graph_begin", d->ops->graph_begin(s, &chk_err), TN_E_STATE);
    refused(d, "stream_wait of a stream that is recording", d->ops->stream_wait(s, &chk_err), TN_E_STATE);
    graph = end(d, s, 0, NULL, NULL);
    CHK_MUST(d, graph_begin, s);
    refused(d, "graph_launch on a stream that is recording", d->ops->graph_launch(graph, s, &chk_err),
            TN_E_STATE);
    chk_device_call(d, s, broken, NULL);
    chk_device_must(d, "graph_end without a graph", d->ops->graph_end(s, 0, NULL, NULL, NULL, &chk_err));
    refused(d, "graph_end of a recording that was dropped",
            d->ops->graph_end(s, 0, NULL, NULL, &none, &chk_err), TN_E_STATE);
    CHK_MUST(d, graph_launch, graph, s);
    chk_device_wait(d, s);
    if (atomic_load(ticks) != 1)
        chk_fail(d->env, NULL, "one launch of one call is done, and %u calls were made",
                 (unsigned)atomic_load(ticks));
    d->ops->graph_free(graph);
}

/* A call that fails in a launch fails its stream, and no other. */
static void failure(chk_device *d)
{
    tn_stream *bad = chk_device_stream(d), *other = chk_device_stream(d);
    atomic_uint ticks;
    tn_device_graph *graph;
    tn_status st;

    atomic_init(&ticks, 0);
    CHK_MUST(d, graph_begin, bad);
    chk_device_call(d, bad, broken, NULL);
    chk_device_call(d, bad, tick, &ticks);
    graph = end(d, bad, 0, NULL, NULL);
    st = d->ops->graph_launch(graph, bad, &chk_err); /* a device may say so at once, or later */
    chk_device_said(d, "graph_launch", st, &chk_err);
    for (int i = 0; i < 2; i++)
        if (!d->ops->stream_wait(bad, &chk_err))
            chk_fail(d->env, NULL, "a call of a launch failed, and stream_wait says TN_OK");
    if (!d->ops->graph_launch(graph, bad, &chk_err))
        chk_fail(d->env, NULL, "a stream failed, and a launch there is said to be good");
    if (atomic_load(&ticks))
        chk_fail(d->env, NULL, "a call of a launch failed, and those behind it were made");
    d->ops->graph_free(graph);
    chk_device_call(d, other, tick, &ticks);
    chk_device_wait(d, other);
    d->ops->stream_destroy(bad);
    d->ops->stream_destroy(other);
}

static bool no_memory(chk_device *d, const char *call, tn_status st)
{
    if (st && st != TN_E_NOMEM)
        chk_fail(d->env, "M-nomem", "where an allocation fails, %s gives %s instead of TN_E_NOMEM", call,
                 tn_status_name(st));
    return st != TN_OK;
}

/* As far as memory goes; true: it sufficed. What a launch promised is done, what it refused is not. */
static bool fragile_graph(chk_device *d, tn_stream *s, tn_event *e)
{
    const tn_device_ops *ops = d->ops;
    tn_device_graph *graph = NULL;
    atomic_uint ticks;
    uint32_t promised = 0;
    bool failed;

    atomic_init(&ticks, 0);
    if (no_memory(d, "graph_begin", ops->graph_begin(s, &chk_err)))
        return false;
    failed = no_memory(d, "stream_call", ops->stream_call(s, tick, &ticks, &chk_err));
    if (!failed && ops->event_record(e, s, &chk_err) == TN_E_NOMEM)
        failed = true;
    if (no_memory(d, "graph_end", ops->graph_end(s, 0, NULL, NULL, failed ? NULL : &graph, &chk_err)) ||
        failed)
        return false;
    for (int i = 0; i < 3 && !failed; i++) {
        failed = no_memory(d, "graph_launch", ops->graph_launch(graph, s, &chk_err));
        promised += !failed;
    }
    chk_host_fail_at(d->plugin.host, 0);
    ops->graph_free(graph);
    chk_device_wait(d, s);
    if (atomic_load(&ticks) != promised)
        chk_fail(d->env, "M-nomem", "%u launches were promised, %u came", (unsigned)promised,
                 (unsigned)atomic_load(&ticks));
    return !failed;
}

static void memory_fails(chk_device *d)
{
    bool sufficed = false;

    for (uint64_t nth = 1; !sufficed && nth < 500; nth++) {
        tn_stream *s = chk_device_stream(d);
        tn_event *e = chk_device_event(d);

        chk_host_fail_at(d->plugin.host, nth);
        sufficed = fragile_graph(d, s, e);
        sufficed = sufficed && !chk_host_failed(d->plugin.host);
        chk_host_fail_at(d->plugin.host, 0);
        d->ops->event_destroy(e);
        d->ops->stream_destroy(s);
        chk_count(d->env);
    }
}

/* What the first time leaves may be made once. */
void chk_device_graph_errors(chk_env *env)
{
    uint64_t once = 0;

    for (int i = 0; i < 2; i++) {
        atomic_uint ticks;
        chk_device d;
        tn_stream *s;

        atomic_init(&ticks, 0);
        graph_open(&d, env);
        s = chk_device_stream(&d);
        states(&d, s, &ticks);
        d.ops->stream_destroy(s);
        failure(&d);
        memory_fails(&d);
        s = chk_device_stream(&d);
        CHK_MUST(&d, graph_begin, s);
        chk_device_call(&d, s, tick, &ticks);
        d.ops->stream_destroy(s); /* in the middle of a recording */
        chk_device_close(&d);
        if (i)
            chk_host_left(d.plugin.host, once, "graphs");
        once = chk_host_memory(d.plugin.host, NULL);
    }
}
