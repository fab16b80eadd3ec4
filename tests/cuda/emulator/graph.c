/*
 * Capture of a stream, and graphs: lists of items that a launch queues in one piece. What is refused is
 * what the driver says that it refuses:
 *
 * - waiting for a stream that is captured, or for its context, and asking either; callbacks: "CUDA
 *   Programming Guide", "Prohibited and Unhandled Operations" of stream capture. The capture is invalidated,
 *   and all that comes to the stream until its end is (CUDA_ERROR_STREAM_CAPTURE_INVALIDATED).
 * - cuStreamBeginCapture: a stream that is captured already.
 * - cuGraphExec…NodeSetParams: a node of another graph than the executable one was made of, or of another
 *   type; copies with other memory types.
 */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>

struct CUgraphExec_st {
    const struct CUgraph_st *graph; /* that it was made of; may be gone */
    uint32_t count;
    emu_item items[];
};

void emu_capture(struct CUgraph_st *graph, const emu_item *item)
{
    struct CUgraphNode_st *n = emu_new(sizeof *n);

    n->graph = graph;
    n->index = graph->count++;
    n->item = *item;
    graph->newest = n;
    *graph->last = n;
    graph->last = &n->next;
}

tncuda_result emu_capture_breaks(tncuda_stream stream)
{
    if (!stream->capture)
        return 0;
    stream->capture_broken = true;
    return 900; /* STREAM_CAPTURE_UNSUPPORTED */
}

/* One stream is captured, in a row: the node that a further one would depend on is the newest. */
tncuda_result emu_capture_info(tncuda_stream stream, int32_t *status, unsigned long long *id,
                               tncuda_graph *graph, const tncuda_graph_node **last, size_t *last_count)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_capture_info, &c);
    struct CUgraph_st *g = stream->capture;

    if (result)
        return result;
    *status = !g ? 0 : stream->capture_broken ? 2 : 1; /* CU_STREAM_CAPTURE_STATUS_… */
    if (*status != 1)
        return 0;
    if (id)
        *id = stream->number + 1;
    if (graph)
        *graph = g;
    if (last)
        *last = &g->newest;
    if (last_count)
        *last_count = g->newest ? 1 : 0;
    return 0;
}

tncuda_result emu_capture_begin(tncuda_stream stream, int32_t mode)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_capture_begin, &c);

    if (result || stream->capture || mode != TNCUDA_CAPTURE_RELAXED)
        return result ? result : TNCUDA_INVALID_VALUE;
    stream->capture = emu_new(sizeof *stream->capture);
    stream->capture->last = &stream->capture->first;
    stream->capture_broken = false;
    return 0;
}

tncuda_result emu_graph_destroy(tncuda_graph graph)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_destroy, &c);

    while (graph->first) {
        struct CUgraphNode_st *n = graph->first;

        graph->first = n->next;
        free(n->item.args);
        free(n);
    }
    free(graph);
    return result;
}

tncuda_result emu_capture_end(tncuda_stream stream, tncuda_graph *out)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_capture_end, &c);
    struct CUgraph_st *made = stream->capture;

    if (!made)
        return TNCUDA_INVALID_VALUE;
    stream->capture = NULL;
    *out = NULL;
    if (result || stream->capture_broken) {
        (void)emu_graph_destroy(made);
        return result ? result : 901; /* STREAM_CAPTURE_INVALIDATED */
    }
    *out = made;
    return 0;
}

tncuda_result emu_graph_nodes(tncuda_graph graph, tncuda_graph_node *out, size_t *count)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_nodes, &c);
    size_t i = 0;

    if (result)
        return result;
    for (struct CUgraphNode_st *n = graph->first; n && out && i < *count; n = n->next)
        out[i++] = n;
    *count = out ? i : graph->count;
    return 0;
}

tncuda_result emu_graph_node_type(tncuda_graph_node node, int32_t *out)
{
    static const int32_t types[] = {[ITEM_FUNCTION] = TNCUDA_NODE_HOST,
                                    [ITEM_COPY] = TNCUDA_NODE_COPY,
                                    [ITEM_KERNEL] = TNCUDA_NODE_KERNEL,
                                    [ITEM_RECORD] = TNCUDA_NODE_RECORD,
                                    [ITEM_WAIT] = TNCUDA_NODE_WAIT};
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_node_type, &c);

    if (!result)
        *out = types[node->item.kind];
    return result;
}

tncuda_result emu_graph_host(tncuda_graph_node node, tncuda_host_node *out)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_host, &c);

    if (result || node->item.kind != ITEM_FUNCTION)
        return result ? result : TNCUDA_INVALID_VALUE;
    *out = (tncuda_host_node){node->item.fn, node->item.arg};
    return 0;
}

tncuda_result emu_graph_copy(tncuda_graph_node node, tncuda_copy_node *out)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_copy, &c);

    if (result || node->item.kind != ITEM_COPY)
        return result ? result : TNCUDA_INVALID_VALUE;
    *out = node->item.copy;
    return 0;
}

static void *args_copy(const emu_item *i)
{
    void *made = NULL;

    if (i->args) {
        made = emu_new(i->kernel->args_bytes);
        memcpy(made, i->args, i->kernel->args_bytes);
    }
    return made;
}

tncuda_result emu_graph_make(tncuda_graph_exec *out, tncuda_graph graph, unsigned long long flags)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_make, &c);
    struct CUgraphExec_st *made;

    if (result || flags)
        return result ? result : TNCUDA_INVALID_VALUE;
    made = emu_new(sizeof *made + graph->count * sizeof(emu_item));
    made->graph = graph;
    made->count = graph->count;
    for (struct CUgraphNode_st *n = graph->first; n; n = n->next) {
        made->items[n->index] = n->item;
        made->items[n->index].args = args_copy(&n->item);
    }
    *out = made;
    return 0;
}

tncuda_result emu_graph_exec_destroy(tncuda_graph_exec exec)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_exec_destroy, &c);

    for (uint32_t i = 0; i < exec->count; i++)
        free(exec->items[i].args);
    free(exec);
    return result;
}

tncuda_result emu_graph_set_host(tncuda_graph_exec exec, tncuda_graph_node node,
                                 const tncuda_host_node *params)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_set_host, &c);

    if (result || node->graph != exec->graph || node->item.kind != ITEM_FUNCTION)
        return result ? result : TNCUDA_INVALID_VALUE;
    exec->items[node->index].fn = params->fn;
    exec->items[node->index].arg = params->arg;
    return 0;
}

tncuda_result emu_graph_set_copy(tncuda_graph_exec exec, tncuda_graph_node node,
                                 const tncuda_copy_node *params, tncuda_context context)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_set_copy, &c);
    const tncuda_copy_node *was = &node->item.copy;

    if (result || node->graph != exec->graph || node->item.kind != ITEM_COPY || context != c ||
        params->bytes != was->bytes || params->dst.type != was->dst.type || params->src.type != was->src.type)
        return result ? result : TNCUDA_INVALID_VALUE;
    exec->items[node->index].copy = *params;
    return 0;
}

tncuda_result emu_graph_set_kernel(tncuda_graph_exec exec, tncuda_graph_node node,
                                   const tncuda_kernel_node *params)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_set_kernel, &c);
    const emu_kernel *k = (const emu_kernel *)(const void *)params->function;
    emu_item *i;

    if (result || node->graph != exec->graph || node->item.kind != ITEM_KERNEL || !k || params->extra ||
        !emu_grid_fits(params->grid, params->block, params->shared_bytes))
        return result ? result : TNCUDA_INVALID_VALUE;
    i = &exec->items[node->index];
    free(i->args);
    i->kernel = k;
    memcpy(i->grid, params->grid, sizeof i->grid);
    memcpy(i->block, params->block, sizeof i->block);
    i->args = emu_new(k->args_bytes);
    memcpy(i->args, params->params[0], k->args_bytes);
    return 0;
}

/* Records get a new point, and waits hold for those that their events have by then. */
static emu_item *item_make(const emu_item *from)
{
    emu_item *i = emu_new(sizeof *i);
    tncuda_event e = from->event;

    *i = *from;
    i->next = NULL;
    i->args = args_copy(from);
    if (!e)
        return i;
    (void)pthread_mutex_lock(&e->lock);
    if (i->kind == ITEM_RECORD) {
        emu_point_release(e->point);
        e->point = emu_point_create();
    }
    i->point = emu_point_retain(e->point);
    (void)pthread_mutex_unlock(&e->lock);
    return i;
}

tncuda_result emu_graph_launch(tncuda_graph_exec exec, tncuda_stream stream)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_graph_launch, &c);
    emu_item *first = NULL, **last = &first;

    if (result || stream->capture)
        return result ? result : 900;
    for (uint32_t k = 0; k < exec->count; k++) {
        emu_item *i = item_make(&exec->items[k]);

        if (i->kind == ITEM_WAIT && !i->point) {
            free(i);
            continue;
        }
        *last = i;
        last = &i->next;
    }
    emu_queue(stream, first);
    return 0;
}
