/*
 * A healthy plugin with a device that records graphs: the fake one (sdk/template/device). A file that
 * includes it says by DEFECT what is wrong with it, and by NAME what it is called.
 */
#ifndef TN_DEFECTS_HEALTHY_GRAPH_H
#define TN_DEFECTS_HEALTHY_GRAPH_H

#include "tenon/plugin/util.h"

#pragma push_macro("TN_PLUGIN_DEFINE")
#undef TN_PLUGIN_DEFINE
#define TN_PLUGIN_DEFINE(...) extern const char healthy_has_no_descriptor
#include "plugin.c" /* of the fake device: its options, memory and threads */
#pragma pop_macro("TN_PLUGIN_DEFINE")

enum {
    HEALTHY,
    RUNS_NOW,
    ONCE,
    SWAPS,
    HALF,
    WAIT_LEFT,
    RECORD_LEFT,
    STAYS,
    MOVES_ALL,
    WAIT_RECORDING,
    KEEPS_RECORDING,
    FORGIVES,
    LEAK,
    NO_MEMORY,
};

static bool records(const tn_stream *s)
{
    return s->recording != NULL;
}

/* ---- while a stream records ------------------------------------------------------------------------- */

static struct held { /* the first of two calls */
    tn_status (*fn)(void *arg, tn_err *err);
    void *arg;
} held;

static tn_status swapped_call(tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg, tn_err *err)
{
    const struct held first = held;
    tn_status st;

    if (!first.fn) {
        held = (struct held){fn, arg};
        return TN_OK;
    }
    held.fn = NULL;
    st = tnfake_stream_call(s, fn, arg, err);
    return st ? st : tnfake_stream_call(s, first.fn, first.arg, err);
}

static tn_status graph_call(tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg, tn_err *err)
{
    if (DEFECT == RUNS_NOW && records(s) && fn(arg, err))
        return TN_E_DEVICE;
    return DEFECT == SWAPS && records(s) ? swapped_call(s, fn, arg, err)
                                         : tnfake_stream_call(s, fn, arg, err);
}

static tn_status graph_event_record(tn_event *e, tn_stream *s, tn_err *err)
{
    return DEFECT == RECORD_LEFT && records(s) ? TN_OK : tnfake_event_record(e, s, err);
}

static tn_status graph_event_wait(tn_stream *s, tn_event *e, tn_err *err)
{
    return DEFECT == WAIT_LEFT && records(s) ? TN_OK : tnfake_event_wait(s, e, err);
}

static tn_status graph_wait(tn_stream *s, tn_err *err)
{
    return DEFECT == WAIT_RECORDING && records(s) ? TN_OK : tnfake_stream_wait(s, err);
}

/* ---- graphs ----------------------------------------------------------------------------------------- */

static tn_device_graph *launched; /* the last one */
static tn_stream *busy;           /* where it was launched */

static tn_status graph_end(tn_stream *s, uint32_t count, void *const *base, const uint64_t *bytes,
                           tn_device_graph **out, tn_err *err)
{
    if (DEFECT == KEEPS_RECORDING && !out && records(s))
        return TN_OK;
    return tnfake_graph_end(s, count, base, bytes, out, err);
}

/* MOVES_ALL: what is queued already moves, too. The first item may be under way: its stream reads it. */
static void queued_move(const tn_device_graph *graph, void *const *base)
{
    (void)pthread_mutex_lock(&busy->lock);
    for (tnfake_item *i = busy->first ? busy->first->next : NULL; i; i = i->next)
        for (uint32_t k = 0; k < graph->slot_count; k++)
            if (i->arg == graph->now[k])
                i->arg = base[k];
    (void)pthread_mutex_unlock(&busy->lock);
}

static tn_status graph_update(tn_device_graph *graph, uint32_t count, void *const *base, tn_err *err)
{
    if (DEFECT == STAYS && count == graph->slot_count)
        return TN_OK;
    if (DEFECT == MOVES_ALL && graph == launched && count == graph->slot_count)
        queued_move(graph, base);
    return tnfake_graph_update(graph, count, base, err);
}

static bool has_failed(tn_stream *s)
{
    bool failed;

    (void)pthread_mutex_lock(&s->lock);
    failed = s->err.code != TN_OK;
    (void)pthread_mutex_unlock(&s->lock);
    return failed;
}

static tn_status graph_launch(tn_device_graph *graph, tn_stream *s, tn_err *err)
{
    const bool again = graph == launched;
    tn_status st;

    launched = graph;
    busy = s;
    if (DEFECT == ONCE && again)
        return TN_OK;
    st = tnfake_graph_launch(graph, s, err);
    if ((DEFECT == FORGIVES && has_failed(s)) || (DEFECT == NO_MEMORY && st == TN_E_NOMEM))
        return TN_OK;
    return st;
}

static void graph_free(tn_device_graph *graph)
{
    if (graph == launched)
        launched = NULL;
    if (DEFECT != LEAK)
        tnfake_graph_free(graph);
}

/* ---- the device ------------------------------------------------------------------------------------- */

static tn_status graph_count(void *plugin, int32_t *out, tn_err *err)
{
    return tnfake_device_ops.count(plugin, out, err);
}

static tn_status graph_open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    return tnfake_device_ops.open(plugin, index, out, err);
}

static void graph_close(tn_device_handle *device)
{
    tnfake_device_ops.close(device);
}

static tn_status graph_info(tn_device_handle *device, tn_device_info *out, tn_err *err)
{
    return tnfake_device_ops.info(device, out, err);
}

static tn_status graph_alloc(tn_device_handle *device, int32_t memory, uint64_t bytes, void **out,
                             tn_err *err)
{
    return tnfake_device_ops.alloc(device, memory, bytes, out, err);
}

static void graph_memory_free(tn_device_handle *device, int32_t memory, void *data)
{
    tnfake_device_ops.free(device, memory, data);
}

/* The fake device knows its own memory by its own name. */
static tn_place as_fake(const tn_place *p)
{
    tn_place own = *p;

    own.type = p->type && !strcmp(p->type, "recorder") ? tnfake_device_ops.head.id : p->type;
    return own;
}

static tn_status recorder_copy(tn_stream *stream, const tn_place *dst, const tn_place *src, uint64_t bytes,
                               tn_err *err)
{
    const tn_place to = as_fake(dst), from = as_fake(src);

    return tnfake_copy(stream, &to, &from, bytes, err);
}

static const tn_device_ops graph_ops = {
    .head = TN_CAPABILITY(tn_device_ops, graph_free, TN_KIND_DEVICE, "recorder"),
    .count = graph_count,
    .open = graph_open,
    .close = graph_close,
    .info = graph_info,
    .alloc = graph_alloc,
    .free = graph_memory_free,
    .stream_create = tnfake_stream_create,
    .stream_destroy = tnfake_stream_destroy,
    .stream_wait = graph_wait,
    .stream_call = graph_call,
    .event_create = tnfake_event_create,
    .event_destroy = tnfake_event_destroy,
    .event_record = graph_event_record,
    .event_wait = graph_event_wait,
    .event_query = tnfake_event_query,
    .event_notify = tnfake_event_notify,
    .copy = recorder_copy,
    .graph_begin = tnfake_graph_begin,
    .graph_end = graph_end,
    .graph_update = DEFECT == HALF ? NULL : graph_update,
    .graph_launch = graph_launch,
    .graph_free = graph_free,
};

static const tn_capability *const graph_tables[] = {&graph_ops.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "device:recorder", fake_init,
                 fake_fini, fake_fork, graph_tables);

#endif
