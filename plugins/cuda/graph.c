/*
 * Graphs: the driver captures what a stream is given, then launches it as one piece.
 *
 * A function in a graph is numbered from its launch, whose first and last functions say where the launch is:
 * those are queued around it only where the graph has functions. A function whose argument moved is replaced;
 * the old one stays until the launches that use it are done. What kernels were given does not move: such a
 * graph is recorded anew.
 */
#include "internal.h"

typedef struct copy_node {
    struct copy_node *next;
    tncuda_graph_node node;
    tncuda_copy_node params;
    uint32_t dst_slot, src_slot;
} copy_node;

typedef struct event_mark {
    struct event_mark *next;
    tn_event *event;
    uint64_t number; /* calls of the graph before it */
    uint32_t wait;   /* number of the wait, from 1; 0: a record */
} event_mark;

/* One launch of a graph with functions. */
typedef struct graph_launch {
    tncuda_item item; /* first */
    tn_device_graph *graph;
    tncuda_point base;
    tncuda_point waits[]; /* graph->waits of them */
} graph_launch;

tncuda_point tncuda_graph_at(const tncuda_call *call)
{
    const graph_launch *l = call->graph->current;

    return (tncuda_point){.fate = l->base.fate, .number = l->base.number + call->at.number};
}

tncuda_point tncuda_graph_look(const tncuda_call *call)
{
    return call->fn ? (tncuda_point){0} : call->graph->current->waits[call->wait - 1];
}

/* ---- life ---------------------------------------------------------------------------------------------- */

static void calls_free(const tncuda_plugin *p, tncuda_call *first)
{
    while (first) {
        tncuda_call *next = first->next;

        tncuda_delete(p, first);
        first = next;
    }
}

/* The driver's objects are gone by then: its threads may come here. */
static void graph_release(tn_device_graph *g)
{
    const tncuda_plugin *p = g->device->plugin;

    if (atomic_fetch_sub_explicit(&g->refs, 1u, memory_order_acq_rel) != 1)
        return;
    calls_free(p, g->calls);
    calls_free(p, g->replaced);
    for (event_mark *m = g->marks, *next; m; m = next) {
        next = m->next;
        tncuda_delete(p, m);
    }
    for (copy_node *c = g->copies, *next; c; c = next) {
        next = c->next;
        tncuda_delete(p, c);
    }
    tncuda_graph_forget(g);
    tncuda_delete(p, g->was);
    tncuda_delete(p, g);
}

/* In the context. */
static void graph_end_of(tn_device_graph *g)
{
    const tncuda_driver *d = g->device->driver;

    if (g->exec)
        (void)tncuda_check(g->device, d->graph_exec_destroy(g->exec), "cuGraphExecDestroy", NULL);
    if (g->graph)
        (void)tncuda_check(g->device, d->graph_destroy(g->graph), "cuGraphDestroy", NULL);
    tncuda_moment_release(g->device, g->done); /* launches may hold the rest until the device is closed */
    g->done = NULL;
}

/* `all`: nothing runs any more. */
void tncuda_graphs_sweep(tn_device_handle *device, bool all)
{
    const bool works = tncuda_enter_end(device);
    tn_device_graph *g, *kept = NULL;

    pthread_mutex_lock(&device->lock);
    g = device->dead;
    device->dead = NULL;
    pthread_mutex_unlock(&device->lock);
    while (g) {
        tn_device_graph *next = g->next;

        if (!all &&
            (!works || (g->done && device->driver->event_query(g->done->handle) == TNCUDA_NOT_READY))) {
            g->next = kept;
            kept = g;
        } else {
            if (works)
                graph_end_of(g);
            graph_release(g);
        }
        g = next;
    }
    if (works)
        tncuda_leave(device);
    pthread_mutex_lock(&device->lock);
    while (kept) {
        g = kept->next;
        kept->next = device->dead;
        device->dead = kept;
        kept = g;
    }
    pthread_mutex_unlock(&device->lock);
}

void tncuda_graph_free(tn_device_graph *graph)
{
    tn_device_handle *d = graph ? graph->device : NULL;

    if (!graph || atomic_load_explicit(&d->plugin->forked, memory_order_relaxed))
        return;
    tncuda_graph_forms_free(graph);
    pthread_mutex_lock(&d->lock);
    graph->next = d->dead;
    d->dead = graph;
    pthread_mutex_unlock(&d->lock);
    tncuda_graphs_sweep(d, false);
}

/* ---- recording ----------------------------------------------------------------------------------------- */

static tn_status begin_locked(tn_stream *s, tn_device_graph *g, tn_err *err)
{
    tn_device_handle *d = s->device;
    tn_status st;

    if (s->recording || tncuda_stream_failed(s, NULL))
        return tn_fail(err, TN_E_STATE,
                       s->recording ? "the stream is recording already" : "the stream has failed");
    if ((st = tncuda_moment_close(s, err)) ||
        (st = tncuda_check(d, d->driver->capture_begin(s->handle, TNCUDA_CAPTURE_RELAXED),
                           "cuStreamBeginCapture", err)))
        return st;
    s->recording = g;
    return TN_OK;
}

tn_status tncuda_graph_begin(tn_stream *stream, tn_err *err)
{
    tn_device_handle *d = stream ? stream->device : NULL;
    tn_device_graph *g;
    tn_status st;

    if (!stream)
        return tn_fail(err, TN_E_ARG, "no stream");
    if ((st = tncuda_enter(d, err)))
        return st;
    if (!(g = tncuda_new(d->plugin, sizeof *g))) {
        tncuda_leave(d);
        return tncuda_nomem(err, "a graph");
    }
    g->device = d;
    atomic_store_explicit(&g->refs, 1u, memory_order_relaxed);
    g->calls_end = &g->calls;
    g->marks_end = &g->marks;
    pthread_mutex_lock(&stream->lock);
    st = begin_locked(stream, g, err);
    pthread_mutex_unlock(&stream->lock);
    if (st) {
        graph_end_of(g);
        graph_release(g);
    }
    tncuda_leave(d);
    return st;
}

tn_status tncuda_graph_call(tn_device_graph *graph, const tncuda_call *like, tncuda_call **out, tn_err *err)
{
    tncuda_call *c = tncuda_new(graph->device->plugin, sizeof *c);

    if (!c)
        return tncuda_nomem(err, "a call of a graph");
    *c = *like;
    c->graph = graph;
    c->at = (tncuda_point){.number = ++graph->call_count};
    *graph->calls_end = c;
    graph->calls_end = &c->next;
    *out = c;
    return TN_OK;
}

tn_status tncuda_graph_event(tn_device_graph *graph, tn_stream *stream, tn_event *event, bool wait,
                             tn_err *err)
{
    event_mark *m = tncuda_new(graph->device->plugin, sizeof *m);

    if (!m)
        return tncuda_nomem(err, "an event of a graph");
    *m = (event_mark){.event = event, .number = graph->call_count, .wait = wait ? ++graph->waits : 0};
    *graph->marks_end = m;
    graph->marks_end = &m->next;
    return wait ? tncuda_call_locked(stream, &(tncuda_call){.wait = m->wait}, err) : TN_OK;
}

/* ---- slots --------------------------------------------------------------------------------------------- */

/* The slot of an address, and 1; 0: it lies in none. */
static uint32_t slot_of(const void *address, uint32_t count, void *const *base, const uint64_t *bytes)
{
    const uintptr_t at = (uintptr_t)address;

    for (uint32_t i = 0; i < count; i++)
        if (at >= (uintptr_t)base[i] && at - (uintptr_t)base[i] < bytes[i])
            return i + 1;
    return 0;
}

static const void *end_get(const tncuda_copy_end *e)
{
    return e->type == TNCUDA_MEMORY_HOST ? e->host : (const void *)(uintptr_t)e->device;
}

static void *moved(const tn_device_graph *g, const void *address, uint32_t slot)
{
    char *at = (char *)(uintptr_t)address;

    return slot ? g->now[slot - 1] + (at - g->was[slot - 1]) : at;
}

static void end_move(const tn_device_graph *g, tncuda_copy_end *e, uint32_t slot)
{
    void *at = moved(g, end_get(e), slot);

    if (e->type == TNCUDA_MEMORY_HOST)
        e->host = at;
    else
        e->device = (tncuda_address)(uintptr_t)at;
}

static tn_status node_look(tn_device_graph *g, tncuda_graph_node node, uint32_t count, void *const *base,
                           const uint64_t *bytes, tn_err *err)
{
    tn_device_handle *d = g->device;
    tncuda_host_node host;
    copy_node *c;
    int32_t type;
    tn_status st;

    if ((st = tncuda_check(d, d->driver->graph_node_type(node, &type), "cuGraphNodeGetType", err)))
        return st;
    if (type >= 0 && type < TNCUDA_NODE_TYPES)
        g->types[type]++;
    if (type == TNCUDA_NODE_KERNEL || type == TNCUDA_NODE_FILL)
        g->fixed = true;
    if (type == TNCUDA_NODE_HOST &&
        !(st = tncuda_check(d, d->driver->graph_host(node, &host), "cuGraphHostNodeGetParams", err))) {
        tncuda_call *call = host.arg;

        call->node = node;
        call->slot = call->fn ? slot_of(call->arg, count, base, bytes) : 0;
    }
    if (st || type != TNCUDA_NODE_COPY)
        return st;
    if (!(c = tncuda_new(d->plugin, sizeof *c)))
        return tncuda_nomem(err, "a copy of a graph");
    c->node = node;
    c->next = g->copies;
    g->copies = c;
    if ((st = tncuda_check(d, d->driver->graph_copy(node, &c->params), "cuGraphMemcpyNodeGetParams", err)))
        return st;
    c->dst_slot = slot_of(end_get(&c->params.dst), count, base, bytes);
    c->src_slot = slot_of(end_get(&c->params.src), count, base, bytes);
    return TN_OK;
}

/* What of the graph lies in which slot. */
static tn_status nodes_look(tn_device_graph *g, uint32_t count, void *const *base, const uint64_t *bytes,
                            tn_err *err)
{
    tn_device_handle *d = g->device;
    tncuda_graph_node *nodes = NULL;
    size_t node_count = 0;
    tn_status st =
        tncuda_check(d, d->driver->graph_nodes(g->graph, NULL, &node_count), "cuGraphGetNodes", err);

    g->node_count = node_count;
    if (st || !node_count)
        return st;
    if (!(nodes = tncuda_new(d->plugin, node_count * sizeof(*nodes))))
        return tncuda_nomem(err, "the nodes of a graph");
    st = tncuda_check(d, d->driver->graph_nodes(g->graph, nodes, &node_count), "cuGraphGetNodes", err);
    for (size_t i = 0; i < node_count && !st; i++)
        st = node_look(g, nodes[i], count, base, bytes, err);
    tncuda_delete(d->plugin, nodes);
    return st;
}

static tn_status graph_finish(tn_device_graph *g, uint32_t count, void *const *base, const uint64_t *bytes,
                              tn_err *err)
{
    tn_device_handle *d = g->device;
    tn_status st;

    if (count && (!base || !bytes))
        return tn_fail(err, TN_E_ARG, "slots without their places");
    if (count && !(g->was = tncuda_new(d->plugin, (uint64_t)count * 3 * sizeof(char *))))
        return tncuda_nomem(err, "the slots of a graph");
    g->slot_count = count;
    g->now = count ? g->was + count : NULL;
    g->from = count ? g->now + count : NULL;
    for (uint32_t i = 0; i < count; i++)
        g->was[i] = g->now[i] = g->from[i] = base[i];
    if ((st = nodes_look(g, count, base, bytes, err)))
        return st;
    return tncuda_check(d, d->driver->graph_make(&g->exec, g->graph, 0), "cuGraphInstantiate", err);
}

tn_status tncuda_graph_end(tn_stream *stream, uint32_t count, void *const *base, const uint64_t *bytes,
                           tn_device_graph **out, tn_err *err)
{
    tn_device_handle *d = stream ? stream->device : NULL;
    tn_device_graph *g;
    tn_status st;

    if (!stream)
        return tn_fail(err, TN_E_ARG, "no stream");
    pthread_mutex_lock(&stream->lock);
    g = stream->recording;
    stream->recording = NULL;
    pthread_mutex_unlock(&stream->lock);
    if (!g)
        return tn_fail(err, TN_E_STATE, "the stream is not recording");
    if (!tncuda_enter_end(d)) {
        graph_release(g);
        return tn_fail(err, TN_E_STATE, "the context is gone");
    }
    st = tncuda_check(d, d->driver->capture_end(stream->handle, &g->graph), "cuStreamEndCapture",
                      out ? err : NULL);
    if (!out)
        st = TN_OK;
    else if (!st)
        st = graph_finish(g, count, base, bytes, err);
    if (out && !st) {
        tncuda_count(&d->count.graphs);
        *out = g;
    } else {
        graph_end_of(g);
        graph_release(g);
    }
    tncuda_leave(d);
    return st;
}

/* ---- updates ------------------------------------------------------------------------------------------- */

/* Those replaced that no launch uses any more. */
static void replaced_free(tn_device_graph *g)
{
    const uint64_t done = atomic_load_explicit(&g->launches_done, memory_order_acquire);

    for (tncuda_call **at = &g->replaced; *at;) {
        tncuda_call *c = *at;

        if (c->launches > done) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        tncuda_delete(g->device->plugin, c);
    }
}

/* From where its slot lay until now. */
static tn_status call_move(tn_device_graph *g, tncuda_call **at, tn_err *err)
{
    tn_device_handle *d = g->device;
    tncuda_call *old = *at, *c = tncuda_new(d->plugin, sizeof *c);
    tncuda_host_node node;
    tn_status st;

    if (!c)
        return tncuda_nomem(err, "a call of a graph");
    *c = *old;
    c->arg = g->now[old->slot - 1] + ((char *)old->arg - g->from[old->slot - 1]);
    if (!(st = tncuda_check(d, d->driver->graph_host(old->node, &node), "cuGraphHostNodeGetParams", err))) {
        node.arg = c;
        st = tncuda_check(d, d->driver->graph_set_host(g->exec, old->node, &node),
                          "cuGraphExecHostNodeSetParams", err);
    }
    if (st) {
        tncuda_delete(d->plugin, c);
        return st;
    }
    *at = c;
    old->launches = g->launches;
    old->next = g->replaced;
    g->replaced = old;
    return TN_OK;
}

static tn_status all_move(tn_device_graph *g, tn_err *err)
{
    tn_device_handle *d = g->device;
    tn_status st = TN_OK;

    for (tncuda_call **at = &g->calls; *at && !st; at = &(*at)->next)
        if ((*at)->slot && g->from[(*at)->slot - 1] != g->now[(*at)->slot - 1])
            st = call_move(g, at, err);
    for (copy_node *c = g->copies; c && !st; c = c->next) {
        tncuda_copy_node params = c->params;

        if (!c->dst_slot && !c->src_slot)
            continue;
        end_move(g, &params.dst, c->dst_slot);
        end_move(g, &params.src, c->src_slot);
        st = tncuda_check(d, d->driver->graph_set_copy(g->exec, c->node, &params, d->context),
                          "cuGraphExecMemcpyNodeSetParams", err);
    }
    return st;
}

tn_status tncuda_graph_update(tn_device_graph *graph, uint32_t count, void *const *base, tn_err *err)
{
    bool same = true;
    tn_status st;

    if (!graph || (count && !base))
        return tn_fail(err, TN_E_ARG, "an update needs a graph and the places of its slots");
    if (count != graph->slot_count)
        return tn_failf(err, TN_E_ARG, "%u slots, but the graph has %u", (unsigned)count,
                        (unsigned)graph->slot_count);
    for (uint32_t i = 0; i < count; i++)
        same = same && graph->now[i] == base[i];
    if (!same && graph->fixed)
        return tn_fail(err, TN_E_UNSUPPORTED, "what kernels of this graph were given does not move");
    if ((st = tncuda_enter(graph->device, err)))
        return st;
    replaced_free(graph);
    for (uint32_t i = 0; i < count && !same; i++) {
        graph->from[i] = graph->now[i];
        graph->now[i] = base[i];
    }
    if (!same && (st = all_move(graph, err)))
        graph->broken = true;
    tncuda_leave(graph->device);
    if (!st)
        tncuda_count(&graph->device->count.graph_updates);
    return st;
}

/* ---- launches ------------------------------------------------------------------------------------------ */

static void launch_drop(tncuda_item *item)
{
    graph_launch *l = (graph_launch *)(void *)item;
    tn_device_graph *g = l->graph;

    for (uint32_t i = 0; i < g->waits; i++)
        tncuda_fate_release(l->waits[i].fate);
    tncuda_fate_release(l->base.fate);
    tncuda_delete(g->device->plugin, l);
    graph_release(g);
}

/* The driver's threads come here, and below. */
static void launch_begin(void *arg)
{
    graph_launch *l = arg;

    l->graph->current = l;
}

static void launch_end(void *arg)
{
    graph_launch *l = arg;
    tn_device_handle *d = l->graph->device;

    tncuda_item_begin(d, &l->item);
    atomic_fetch_add_explicit(&l->graph->launches_done, 1u, memory_order_release);
    tncuda_item_end(d, &l->item);
}

static tn_status launch_make(tn_device_graph *g, tn_stream *s, graph_launch **out, tn_err *err)
{
    tn_device_handle *d = g->device;
    graph_launch *l = tncuda_new(d->plugin, sizeof *l + g->waits * sizeof(tncuda_point));

    if (!l)
        return tncuda_nomem(err, "a launch");
    l->item.drop = launch_drop;
    l->graph = g;
    l->base = (tncuda_point){.fate = tncuda_fate_retain(s->fate), .number = s->calls};
    for (const event_mark *m = g->marks; m; m = m->next) {
        const event_mark *before = NULL;

        for (const event_mark *r = g->marks; r != m; r = r->next)
            if (!r->wait && r->event == m->event)
                before = r;
        if (m->wait) /* a record before it in this launch, else the one that the event has now */
            l->waits[m->wait - 1] =
                before ? (tncuda_point){tncuda_fate_retain(s->fate), s->calls + before->number}
                       : tncuda_event_point(m->event);
    }
    atomic_fetch_add_explicit(&g->refs, 1u, memory_order_relaxed);
    tncuda_item_add(d, &l->item);
    *out = l;
    return TN_OK;
}

static tn_status with_functions(tn_device_graph *g, tn_stream *s, tn_err *err)
{
    tn_device_handle *d = g->device;
    graph_launch *l = NULL;
    tn_status st, ended;

    if ((st = launch_make(g, s, &l, err)))
        return st;
    if ((st = tncuda_function_locked(s, launch_begin, l, err))) {
        tncuda_item_end(d, &l->item);
        return st;
    }
    g->launches++;
    st = tncuda_check(d, d->driver->graph_launch(g->exec, s->handle), "cuGraphLaunch", err);
    ended = tncuda_function_locked(s, launch_end, l, st ? NULL : err);
    return st ? st : ended;
}

static tn_status launch_locked(tn_device_graph *g, tn_stream *s, tn_err *err)
{
    tn_device_handle *d = g->device;
    tn_status st;

    if (s->recording || g->broken || !g->exec)
        return tn_fail(err, TN_E_STATE,
                       s->recording ? "the stream is recording"
                       : g->broken  ? "an update of the graph failed"
                                    : "the graph is launched by its runs");
    if ((st = tncuda_stream_failed(s, err)) || (st = tncuda_moment_close(s, err)))
        return st;
    s->work++;
    if (g->call_count)
        st = with_functions(g, s, err);
    else
        st = tncuda_check(d, d->driver->graph_launch(g->exec, s->handle), "cuGraphLaunch", err);
    if (!st && tncuda_moment_here(s, &g->done, NULL)) /* it is launched, and nobody must launch it again */
        st = tncuda_check(d, d->driver->stream_wait(s->handle), "cuStreamSynchronize", err);
    if (st)
        return st;
    for (const event_mark *m = g->marks; m; m = m->next)
        if (!m->wait)
            tncuda_event_move(m->event, s->fate, s->calls + m->number);
    s->calls += g->call_count;
    tncuda_count(&d->count.graph_launches);
    return TN_OK;
}

tn_status tncuda_graph_launch(tn_device_graph *graph, tn_stream *stream, tn_err *err)
{
    tn_status st;

    if (!graph || !stream || stream->device != graph->device)
        return tn_fail(err, TN_E_ARG, "a launch needs a graph and a stream of its device");
    if ((st = tncuda_enter(graph->device, err)))
        return st;
    pthread_mutex_lock(&stream->lock);
    st = launch_locked(graph, stream, err);
    pthread_mutex_unlock(&stream->lock);
    tncuda_leave(graph->device);
    return st;
}
