/*
 * Graphs: items of a stream that are kept instead of done, and queued again by each launch.
 *
 * A launch makes an item for each recorded one, then queues them in one piece: they are late and overtaken as
 * all others are. Records get a new point at each launch; a wait holds for the point of a record before it in
 * the same launch, else for the one that its event has when it is launched.
 */
#include "fake.h"

#include <inttypes.h>
#include <string.h>

/* ---- recording ----------------------------------------------------------------------------------- */

tn_status tnfake_graph_begin(tn_stream *stream, tn_err *err)
{
    tn_device_graph *graph;
    tn_status st;

    if (!stream)
        return tn_fail(err, TN_E_ARG, "no stream");
    if ((st = tnfake_forked(stream->device->plugin, err)))
        return st;
    graph = tnfake_new(stream->device->plugin, sizeof *graph);
    if (!graph)
        return tn_fail(err, TN_E_NOMEM, "out of host memory for a graph");
    graph->device = stream->device;
    graph->last = &graph->first;
    pthread_mutex_lock(&stream->lock);
    if (stream->recording || stream->err.code)
        st = tn_fail(err, TN_E_STATE,
                     stream->recording ? "the stream is recording already" : "the stream has failed");
    else
        stream->recording = graph;
    pthread_mutex_unlock(&stream->lock);
    if (st)
        tnfake_graph_free(graph);
    return st;
}

tn_status tnfake_graph_add(tn_device_graph *graph, tnfake_item *item, tn_err *err)
{
    if (graph->items == TNFAKE_QUEUE_MAX)
        return tn_fail(err, TN_E_STATE, "the graph is full");
    if (item->kind > TNFAKE_COPY && !item->event) /* it began to record after event.c had looked */
        return tn_fail(err, TN_E_STATE, "another thread uses an event on a stream that records a graph");
    for (tnfake_item *i = graph->first; item->kind == TNFAKE_WAIT && i; i = i->next)
        if (i->kind == TNFAKE_RECORD && i->event == item->event)
            item->earlier = i;
    *graph->last = item;
    graph->last = &item->next;
    graph->items++;
    return TN_OK;
}

/* ---- slots --------------------------------------------------------------------------------------- */

/* The slot of an address, and 1; 0: it lies in none. */
static uint32_t slot_of(const void *address, uint32_t count, void *const *base, const uint64_t *bytes)
{
    const uintptr_t at = (uintptr_t)address;

    for (uint32_t i = 0; i < count; i++)
        if (at >= (uintptr_t)base[i] && at - (uintptr_t)base[i] < bytes[i])
            return i + 1;
    return 0;
}

static tn_status slots_set(tn_device_graph *graph, uint32_t count, void *const *base, const uint64_t *bytes,
                           tn_err *err)
{
    if (count && (!base || !bytes))
        return tn_fail(err, TN_E_ARG, "slots without their places");
    if (count && !(graph->was = tnfake_new(graph->device->plugin, (uint64_t)count * 2 * sizeof(char *))))
        return tn_fail(err, TN_E_NOMEM, "out of host memory for the slots of a graph");
    graph->slot_count = count;
    graph->now = count ? graph->was + count : NULL;
    for (uint32_t i = 0; i < count; i++)
        graph->was[i] = graph->now[i] = base[i];
    for (tnfake_item *i = graph->first; i; i = i->next) {
        i->slots[0] = slot_of(i->arg, count, base, bytes);
        i->slots[1] = slot_of(i->dst, count, base, bytes);
        i->slots[2] = slot_of(i->src, count, base, bytes);
    }
    return TN_OK;
}

static char *moved(const tn_device_graph *graph, const void *address, uint32_t slot)
{
    char *at = (char *)(uintptr_t)address;

    return slot ? graph->now[slot - 1] + (at - graph->was[slot - 1]) : at;
}

tn_status tnfake_graph_end(tn_stream *stream, uint32_t count, void *const *base, const uint64_t *bytes,
                           tn_device_graph **out, tn_err *err)
{
    tn_device_graph *graph;
    tn_status st = TN_OK;

    if (!stream)
        return tn_fail(err, TN_E_ARG, "no stream");
    pthread_mutex_lock(&stream->lock);
    graph = stream->recording;
    stream->recording = NULL;
    pthread_mutex_unlock(&stream->lock);
    if (!graph)
        return tn_fail(err, TN_E_STATE, "the stream is not recording");
    if (!out || (st = slots_set(graph, count, base, bytes, err))) {
        tnfake_graph_free(graph);
        return st;
    }
    atomic_fetch_add_explicit(&graph->device->count.graphs, 1u, memory_order_relaxed);
    *out = graph;
    return TN_OK;
}

tn_status tnfake_graph_update(tn_device_graph *graph, uint32_t count, void *const *base, tn_err *err)
{
    if (!graph || (count && !base))
        return tn_fail(err, TN_E_ARG, "an update needs a graph and the places of its slots");
    if (count != graph->slot_count)
        return tnfake_fail(err, TN_E_ARG, "%" PRIu32 " slots, but the graph has %" PRIu32, count,
                           graph->slot_count);
    for (uint32_t i = 0; i < count; i++)
        graph->now[i] = base[i];
    atomic_fetch_add_explicit(&graph->device->count.graph_updates, 1u, memory_order_relaxed);
    return TN_OK;
}

/* ---- launching ----------------------------------------------------------------------------------- */

static void items_drop(tn_device_handle *device, tnfake_item *first)
{
    while (first) {
        tnfake_item *next = first->next;

        tnfake_point_release(first->point);
        tnfake_delete(device->plugin, first);
        first = next;
    }
}

/* The item that does what `from` recorded; NULL: out of memory. */
static tnfake_item *item_make(const tn_device_graph *graph, tnfake_item *from)
{
    tnfake_plugin *p = graph->device->plugin;
    tnfake_item *i = tnfake_new(p, sizeof *i);

    if (!i)
        return NULL;
    i->kind = from->kind;
    i->fn = from->fn;
    i->arg = moved(graph, from->arg, from->slots[0]);
    i->dst = moved(graph, from->dst, from->slots[1]);
    i->src = moved(graph, from->src, from->slots[2]);
    i->bytes = from->bytes;
    if (from->kind == TNFAKE_WAIT)
        i->point =
            from->earlier ? tnfake_point_retain(from->earlier->fresh) : tnfake_event_point(from->event);
    if (from->kind != TNFAKE_RECORD)
        return i;
    if (!(from->fresh = tnfake_point_create(p))) {
        tnfake_delete(p, i);
        return NULL;
    }
    i->point = tnfake_point_retain(from->fresh);
    return i;
}

/* All or none; a wait for an event that was never recorded is left out. */
static tn_status items_make(const tn_device_graph *graph, tnfake_item **first, uint64_t *items, tn_err *err)
{
    tnfake_item **last = first;

    for (tnfake_item *from = graph->first; from; from = from->next) {
        tnfake_item *i = item_make(graph, from);

        if (!i)
            return tn_fail(err, TN_E_NOMEM, "out of host memory for a launch");
        if (i->kind == TNFAKE_WAIT && !i->point) {
            tnfake_delete(graph->device->plugin, i);
            continue;
        }
        *last = i;
        last = &i->next;
        ++*items;
    }
    return TN_OK;
}

/* The points of a launch become those of their events, or go. */
static void points_settle(tn_device_graph *graph, bool launched)
{
    for (tnfake_item *i = graph->first; i; i = i->next) {
        if (launched && i->fresh)
            tnfake_event_move(i->event, i->fresh);
        else
            tnfake_point_release(i->fresh);
        i->fresh = NULL;
    }
}

tn_status tnfake_graph_launch(tn_device_graph *graph, tn_stream *stream, tn_err *err)
{
    tnfake_item *first = NULL;
    uint64_t items = 0;
    tn_status st;

    if (!graph || !stream || stream->device != graph->device)
        return tn_fail(err, TN_E_ARG, "a launch needs a graph and a stream of its device");
    if (!(st = tnfake_forked(graph->device->plugin, err)) && !(st = items_make(graph, &first, &items, err)))
        st = tnfake_stream_put(stream, first, items, err);
    points_settle(graph, !st);
    if (st)
        items_drop(graph->device, first);
    else
        atomic_fetch_add_explicit(&graph->device->count.graph_launches, 1u, memory_order_relaxed);
    return st;
}

void tnfake_graph_free(tn_device_graph *graph)
{
    if (!graph || tnfake_forked(graph->device->plugin, NULL))
        return;
    items_drop(graph->device, graph->first);
    tnfake_delete(graph->device->plugin, graph->was);
    tnfake_delete(graph->device->plugin, graph);
}
