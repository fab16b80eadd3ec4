/*
 * Captured segments: on a device that records graphs, a segment of a compiled net is recorded and launched
 * from then on. First it runs plain, once or twice: what a kernel's library sets up late is there then.
 *
 * Devices that run host kernels in stream calls: these read addresses, attributes and draws from the frame
 * when they run, so the frame's segment is the one slot, and a launch for another frame is an update. Devices
 * with kernels of their own (graph_run): the kernels are run each time, and the device looks at what they
 * give it. One worker serves the stream of a device's kernels, so nobody else is at a segment's graph.
 */
#include "exec/frame_internal.h"

#define WARM 2 /* plain runs of a device's own kernels */

struct frame_graph {         /* of one segment, for all frames of the pool */
    tn_device_graph *graph;  /* NULL: not recorded */
    const frame_segment *at; /* whose launch is next, as far as the graph knows */
    uint8_t runs;            /* up to WARM */
    bool plain;              /* it cannot be recorded */
};

/* Of a device with kernels of its own; nothing is given free before they are done. */
static bool capturable(const tni_program *p, const tni_segment *s)
{
    bool all = TN_OFFERS(s->device->ops, tn_device_ops, graph_run) && !s->spent_count;

    for (uint32_t c = s->first_code; c < s->first_code + s->code_count && all; c++)
        all = p->code[c].prepared && p->code[c].prepared->plan.flags & TN_PLAN_CAPTURABLE;
    return all;
}

tn_status tni_captures_create(const tni_program *p, frame_graph **out)
{
    bool any = false;

    for (uint32_t i = 0; i < p->segment_count && p->graph; i++)
        any |= tni_device_graphs(p->segments[i].device);
    if (!any)
        return TN_OK;
    if (!(*out = tni_calloc(p->segment_count, sizeof **out)))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < p->segment_count; i++)
        (*out)[i].plain = !tni_device_graphs(p->segments[i].device) ||
                          !(p->segments[i].device->kernels_plugin || capturable(p, &p->segments[i]));
    return TN_OK;
}

void tni_captures_destroy(const tni_program *p, frame_graph *graphs)
{
    for (uint32_t i = 0; graphs && i < p->segment_count; i++)
        tni_device_graph_free(p->segments[i].device, graphs[i].graph);
    tni_free(graphs);
}

static void count(atomic_uint_fast64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* Nothing but the call is between begin and end. What fails leaves the segment plain,
 * this time or for good. */
static void record(frame_graph *g, frame_segment *s, tn_status (*fn)(void *arg, tn_err *err))
{
    const tn_device_ops *ops = s->run.device->ops;
    const uint64_t bytes = sizeof *s;
    void *const base = s;
    tn_err err = {0};
    tn_status st, ended;

    tni_device_recording_lock(s->run.device);
    if (!(st = ops->graph_begin(s->run.stream, &err))) {
        st = ops->stream_call(s->run.stream, fn, s, &err);
        ended = ops->graph_end(s->run.stream, 1, &base, &bytes, st ? NULL : &g->graph, &err);
        st = st ? st : ended;
    }
    tni_device_recording_unlock(s->run.device);
    g->plain = st == TN_E_UNSUPPORTED;
    g->at = s;
    if (!st)
        count(&s->frame->ctx->exec->graphs);
}

static void move(frame_graph *g, frame_segment *s)
{
    const tn_device_ops *ops = s->run.device->ops;
    void *const base = s;
    tn_err err = {0};

    if (g->at == s)
        return;
    if (ops->graph_update(g->graph, 1, &base, &err)) { /* recorded anew */
        ops->graph_free(g->graph);
        g->graph = NULL;
        return;
    }
    g->at = s;
    count(&s->frame->ctx->exec->graph_updates);
}

/* The kernels themselves, of which the device makes a launch. */
static tn_status own_run(frame_graph *g, frame_segment *s, tn_status (*fn)(void *arg, tn_err *err),
                         tn_err *err)
{
    const tn_device_ops *ops = s->run.device->ops;
    tni_exec *exec = s->frame->ctx->exec;
    uint32_t moved = 0;
    tn_status st = TN_E_UNSUPPORTED;

    if (g && !g->plain && g->runs++ == WARM) {
        g->runs = WARM;
        s->captured = true;
        tni_device_recording_lock(s->run.device);
        st = ops->graph_run(&g->graph, s->run.stream, fn, s, &moved, err);
        tni_device_recording_unlock(s->run.device);
        s->captured = false;
        g->plain = st == TN_E_UNSUPPORTED;
    }
    if (st)
        return st == TN_E_UNSUPPORTED ? fn(s, err) : st;
    if (moved)
        count(moved == UINT32_MAX ? &exec->graphs : &exec->graph_updates);
    count(&exec->graph_launches);
    return st;
}

tn_status tni_capture_run(frame_segment *s, tn_status (*fn)(void *arg, tn_err *err), tn_err *err)
{
    const tn_device_ops *ops = s->run.device->ops;
    frame_graph *g = s->frame->pool->graphs ? &s->frame->pool->graphs[s->index] : NULL;
    tn_status st;

    if (!s->run.device->kernels_plugin)
        return own_run(g, s, fn, err);
    if (!g || !g->runs || g->plain) {
        if (g)
            g->runs = 1;
        return ops->stream_call(s->run.stream, fn, s, err);
    }
    if (g->graph)
        move(g, s);
    if (!g->graph)
        record(g, s, fn);
    if (!g->graph)
        return ops->stream_call(s->run.stream, fn, s, err);
    if (!(st = ops->graph_launch(g->graph, s->run.stream, err)))
        count(&s->frame->ctx->exec->graph_launches);
    return st;
}
