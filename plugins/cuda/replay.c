/*
 * The device's own kernels as graphs: what a run gives its stream is recorded by the driver's capture once;
 * later runs give it to nobody, it is compared with what the graph has. Where only arguments, addresses or
 * numbers, are others, they are set in the graph; else it is recorded anew. So a run that moved nothing is
 * one launch.
 *
 * Steps that are under way together take turns with a few sets of buffers. So a graph has several forms: the
 * driver's launchable copies of it, each with the arguments that it was launched with last. A run takes the
 * form that has its arguments; nodes are set where there is none.
 *
 * A call of a library is an entry, too, with as many nodes as it made. Nobody but the library knows what of
 * its nodes follows from which argument: if one moved, the call is captured by itself in a stream at the
 * side, and its nodes' arguments are taken from there. Where it makes other nodes then, or too many, all is
 * recorded anew, and the driver changes the graph that it has. So does each run where a node is none of an
 * entry.
 */
#include "internal.h"

#include <string.h>

#define ROOM_LEAST 64u
#define HEAD_BYTES 16u /* in front of an entry's arguments: the blocks of its grid */

/* ---- entries ------------------------------------------------------------------------------------------- */

/* Room for `more` things of `size` behind the first `used`. */
static tn_status grow(const tncuda_plugin *p, void **data, uint64_t size, uint64_t used, uint64_t more,
                      uint64_t *room, tn_err *err)
{
    const uint64_t least = 2 * used + more + ROOM_LEAST;
    void *made;

    if (*room - used >= more)
        return TN_OK;
    if (!(made = tncuda_new(p, least * size)))
        return tncuda_nomem(err, "what a graph was given");
    if (used)
        memcpy(made, *data, used * size);
    tncuda_delete(p, *data);
    *data = made;
    *room = least;
    return TN_OK;
}

void tncuda_graph_forget(tn_device_graph *graph)
{
    const tncuda_plugin *p = graph->device->plugin;

    tncuda_delete(p, graph->entries);
    tncuda_delete(p, graph->args);
    tncuda_delete(p, graph->given);
    for (uint32_t i = 1; i < graph->form_count; i++)
        tncuda_delete(p, graph->forms[i].args);
}

static void blocks_set(char *args, const tncuda_entry *e, uint32_t blocks)
{
    memcpy(args + e->at - HEAD_BYTES, &blocks, sizeof blocks);
}

static uint32_t blocks_of(const char *args, const tncuda_entry *e)
{
    uint32_t blocks;

    memcpy(&blocks, args + e->at - HEAD_BYTES, sizeof blocks);
    return blocks;
}

bool tncuda_graph_compared(tn_stream *stream, tncuda_function function, uint32_t blocks, const void *args,
                           uint32_t bytes)
{
    tn_device_graph *g = stream->recording;
    tncuda_entry *e;

    if (!g || !g->compares)
        return false;
    if (!bytes || g->next_entry == g->entry_count) {
        g->differs = true;
        return true;
    }
    e = &g->entries[g->next_entry++];
    if (e->function != function || e->bytes != bytes) {
        g->differs = true;
        return true;
    }
    blocks_set(g->given, e, blocks);
    memcpy(g->given + e->at, args, bytes);
    return true;
}

bool tncuda_graph_compares(tn_stream *stream)
{
    bool compares;

    pthread_mutex_lock(&stream->lock);
    compares = stream->recording && stream->recording->compares;
    pthread_mutex_unlock(&stream->lock);
    return compares;
}

/* An entry with a copy of its arguments, all but the node. */
static tn_status entry_add(tn_device_graph *g, const tncuda_entry *like, uint32_t blocks, const void *args,
                           tn_err *err)
{
    const tncuda_plugin *p = g->device->plugin;
    const uint64_t room = HEAD_BYTES + ((like->bytes + 15u) & ~15u);
    void *entries = g->entries, *all = g->args;
    tn_status st = grow(p, &entries, sizeof *g->entries, g->entry_count, 1, &g->entry_room, err);
    tncuda_entry *e;

    g->entries = entries;
    if (!st)
        st = grow(p, &all, 1, g->args_bytes, room, &g->args_room, err);
    g->args = all;
    if (st)
        return st;
    e = &g->entries[g->entry_count++];
    *e = *like;
    e->at = g->args_bytes + HEAD_BYTES;
    blocks_set(g->args, e, blocks);
    memcpy(g->args + e->at, args, like->bytes);
    g->args_bytes += room;
    return TN_OK;
}

/* The stream's last node is the one that it was given just now: one stream is captured, so one is last. */
tn_status tncuda_graph_note(tn_stream *stream, tncuda_function function, uint32_t blocks, const void *args,
                            uint32_t bytes, tn_err *err)
{
    tn_device_graph *g = stream->recording;
    tn_device_handle *d = stream->device;
    const tncuda_graph_node *last = NULL;
    size_t last_count = 0;
    int32_t state = 0;
    tn_status st;

    if (!g)
        return TN_OK;
    if ((st = tncuda_check(d, d->driver->capture_info(stream->handle, &state, NULL, NULL, &last, &last_count),
                           "cuStreamGetCaptureInfo", err)))
        return st;
    if (last_count != 1)
        return tn_fail(err, TN_E_UNSUPPORTED, "the capture of a stream has no last node");
    return entry_add(g, &(tncuda_entry){.node = last[0], .nodes = 1, .function = function, .bytes = bytes},
                     blocks, args, err);
}

tn_status tncuda_graph_nodes(tn_stream *stream, uint64_t *out, tn_err *err)
{
    tn_device_handle *d = stream->device;
    tncuda_graph graph = NULL;
    size_t count = 0;
    int32_t state = 0;
    tn_status st = TN_OK;

    if (stream->recording &&
        !(st = tncuda_check(d, d->driver->capture_info(stream->handle, &state, NULL, &graph, NULL, NULL),
                            "cuStreamGetCaptureInfo", err)))
        st = graph ? tncuda_check(d, d->driver->graph_nodes(graph, NULL, &count), "cuGraphGetNodes", err)
                   : tn_fail(err, TN_E_UNSUPPORTED, "the capture of a stream was broken off");
    *out = count;
    return st;
}

/* The last `count` nodes of a stream's capture; false: they do not follow each other. In the context. */
static bool chain_find(tn_device_handle *d, tncuda_stream stream, uint64_t count, tncuda_graph_node *out)
{
    const tncuda_graph_node *last = NULL;
    size_t lasts = 0;
    int32_t state = 0;

    if (!count || count > TNCUDA_LIBRARY_NODES ||
        d->driver->capture_info(stream, &state, NULL, NULL, &last, &lasts) || lasts != 1)
        return false;
    out[0] = last[0];
    for (uint64_t i = 1; i < count; i++) {
        size_t before = 0;

        if (d->driver->graph_before(out[i - 1], NULL, &before) || before != 1 ||
            d->driver->graph_before(out[i - 1], &out[i], &before))
            return false;
    }
    return true;
}

tn_status tncuda_graph_note_library(tn_stream *stream, const tncuda_entry *entry, const void *args,
                                    tn_err *err)
{
    tncuda_entry e = *entry;

    if (!stream->recording)
        return TN_OK;
    e.chained = chain_find(stream->device, stream->handle, e.nodes, e.chain);
    return entry_add(stream->recording, &e, 0, args, err);
}

/* ---- changes ------------------------------------------------------------------------------------------- */

static tn_status kernel_set(tn_device_graph *g, const tncuda_entry *e, tn_err *err)
{
    tn_device_handle *d = g->device;
    void *params[] = {g->given + e->at};
    const tncuda_kernel_node node = {.function = e->function,
                                     .grid = {blocks_of(g->given, e), 1, 1},
                                     .block = {TNCUDA_THREADS, 1, 1},
                                     .params = params};

    return tncuda_check(d, d->driver->graph_set_kernel(g->exec, e->node, &node),
                        "cuGraphExecKernelNodeSetParams", err);
}

static tn_status copy_set(tn_device_graph *g, const tncuda_entry *e, tn_err *err)
{
    tn_device_handle *d = g->device;
    tncuda_copied to;
    tncuda_copy_node node;
    tn_status st;

    memcpy(&to, g->given + e->at, sizeof to);
    if ((st = tncuda_check(d, d->driver->graph_copy(e->node, &node), "cuGraphMemcpyNodeGetParams", err)))
        return st;
    node.dst.device = to.dst;
    node.src.device = to.src;
    node.bytes = (size_t)to.bytes;
    return tncuda_check(d, d->driver->graph_set_copy(g->exec, e->node, &node, d->context),
                        "cuGraphExecMemcpyNodeSetParams", err);
}

/* One node of the graph takes over what a node of the same type does. */
static tncuda_result node_take(tn_device_graph *g, tncuda_graph_node to, tncuda_graph_node from)
{
    const tncuda_driver *d = g->device->driver;
    int32_t types[2] = {-1, -1};
    tncuda_kernel_node kernel;
    tncuda_host_node function;
    tncuda_result result;

    if ((result = d->graph_node_type(to, &types[0])) || (result = d->graph_node_type(from, &types[1])))
        return result;
    if (types[0] == TNCUDA_NODE_KERNEL && types[1] == TNCUDA_NODE_KERNEL)
        return (result = d->graph_kernel(from, &kernel)) ? result : d->graph_set_kernel(g->exec, to, &kernel);
    if (types[0] == TNCUDA_NODE_HOST && types[1] == TNCUDA_NODE_HOST)
        return (result = d->graph_host(from, &function)) ? result : d->graph_set_host(g->exec, to, &function);
    return TNCUDA_NOT_SUPPORTED;
}

static tn_status captured_aside(tn_device_graph *g, const tncuda_entry *e, tncuda_graph *made,
                                tncuda_graph_node *chain, tn_err *err)
{
    tn_device_handle *d = g->device;
    tncuda_graph graph = NULL;
    size_t count = 0;
    int32_t state = 0;
    bool found = false;
    tn_status st, ended;

    if (!g->side && (st = tncuda_check(d, d->driver->stream_create(&g->side, TNCUDA_STREAM_NON_BLOCKING, 0),
                                       "cuStreamCreateWithPriority", err)))
        return st;
    if ((st = tncuda_check(d, d->driver->capture_begin(g->side, TNCUDA_CAPTURE_RELAXED),
                           "cuStreamBeginCapture", err)))
        return st;
    if (!(st = e->call((const void *)(uintptr_t)e->function, g->given + e->at, g->side, err)))
        found = !d->driver->capture_info(g->side, &state, NULL, &graph, NULL, NULL) && graph &&
                !d->driver->graph_nodes(graph, NULL, &count) && count == e->nodes &&
                chain_find(d, g->side, count, chain);
    ended = tncuda_check(d, d->driver->capture_end(g->side, made), "cuStreamEndCapture", err);
    return st ? st : ended ? ended : found ? TN_OK : TN_E_UNSUPPORTED;
}

static tn_status library_set(tn_device_graph *g, const tncuda_entry *e, tn_err *err)
{
    tn_device_handle *d = g->device;
    tncuda_graph_node chain[TNCUDA_LIBRARY_NODES];
    tncuda_graph made = NULL;
    tn_status st = captured_aside(g, e, &made, chain, err);

    for (uint64_t i = 0; i < e->nodes && !st; i++)
        if (node_take(g, e->chain[i], chain[i]))
            st = TN_E_UNSUPPORTED;
    if (made)
        (void)d->driver->graph_destroy(made);
    return st;
}

static bool moved(const tn_device_graph *g, const char *args, const tncuda_entry *e)
{
    return memcmp(args + e->at - HEAD_BYTES, g->given + e->at - HEAD_BYTES, HEAD_BYTES + e->bytes) != 0;
}

/* The form that has the arguments given; else the one that lacks the fewest, and `*lacks` is how many. */
static tncuda_form *form_nearest(tn_device_graph *g, uint64_t *lacks)
{
    tncuda_form *best = NULL;

    *lacks = 0;
    for (uint32_t i = 0; i < g->form_count; i++)
        if (!memcmp(g->forms[i].args, g->given, g->args_bytes))
            return &g->forms[i];
    for (uint32_t i = 0; i < g->form_count; i++) {
        uint64_t count = 0;

        for (uint64_t k = 0; k < g->entry_count; k++)
            count += moved(g, g->forms[i].args, &g->entries[k]);
        if (!best || count < *lacks) {
            best = &g->forms[i];
            *lacks = count;
        }
    }
    return best;
}

/* One form more, as the graph was recorded: the first one is, as long as there is room for more. NULL: there
 * is no room, or no memory, or a library's call cannot be changed by itself. In the context. */
static tncuda_form *form_add(tn_device_graph *g)
{
    tn_device_handle *d = g->device;
    tncuda_form *f = &g->forms[g->form_count];

    for (uint64_t i = 0; i < g->entry_count; i++)
        if (g->entries[i].library && !g->entries[i].chained)
            return NULL;
    if (g->taken_over || g->form_count == TNCUDA_FORMS || !(f->args = tncuda_new(d->plugin, g->args_bytes)))
        return NULL;
    if (tncuda_check(d, d->driver->graph_make(&f->exec, g->graph, 0), "cuGraphInstantiate", NULL)) {
        tncuda_delete(d->plugin, f->args);
        return NULL;
    }
    memcpy(f->args, g->args, g->args_bytes);
    g->form_count++;
    return f;
}

/* Changes a form, or a further one, to what was given, and makes it the one that is launched. In the context.
 */
static tn_status form_change(tn_device_graph *g, tncuda_form *f, uint32_t *count, tn_err *err)
{
    tncuda_form *more = form_add(g);
    tn_status st = TN_OK;

    f = more ? more : f;
    g->exec = f->exec;
    for (uint64_t i = 0; i < g->entry_count && !st; i++) {
        tncuda_entry *e = &g->entries[i];

        if (!moved(g, f->args, e))
            continue;
        st = e->library && !e->chained ? TN_E_UNSUPPORTED
                                       : (e->library    ? library_set
                                          : e->function ? kernel_set
                                                        : copy_set)(g, e, err);
        *count += !st;
        if (st)
            e->chained = false; /* of a library: from now on it is recorded anew */
    }
    if (st)
        memset(f->args, 0xff, g->args_bytes); /* no grid has so many blocks: all is set next time */
    else
        memcpy(f->args, g->given, g->args_bytes);
    return st;
}

static tn_status form_choose(tn_device_graph *g, uint32_t *count, tn_err *err)
{
    uint64_t lacks = 0;
    tncuda_form *f = form_nearest(g, &lacks);
    tn_status st;

    g->exec = f->exec;
    if (!lacks)
        return TN_OK;
    if ((st = tncuda_enter(g->device, err)))
        return st;
    st = form_change(g, f, count, err);
    tncuda_leave(g->device);
    return st;
}

/* TN_PENDING: it is to be recorded anew. */
static tn_status compared_run(tn_device_graph *g, tn_stream *s, tn_status (*fn)(void *arg, tn_err *err),
                              void *arg, uint32_t *moved, tn_err *err)
{
    tn_status st;

    pthread_mutex_lock(&s->lock);
    if (!(st = s->recording ? tn_fail(err, TN_E_STATE, "the stream is recording")
                            : tncuda_stream_failed(s, err))) {
        s->recording = g;
        g->compares = true;
        g->differs = false;
        g->next_entry = 0;
    }
    pthread_mutex_unlock(&s->lock);
    if (st)
        return st;
    st = fn(arg, err);
    pthread_mutex_lock(&s->lock);
    s->recording = NULL;
    g->compares = false;
    pthread_mutex_unlock(&s->lock);
    if (st)
        return st;
    if (g->differs || g->next_entry != g->entry_count)
        return TN_PENDING;
    if (form_choose(g, moved, NULL))
        return TN_PENDING;
    if (*moved)
        tncuda_count(&g->device->count.graph_updates);
    return tncuda_graph_launch(g, s, err);
}

/* ---- recording ----------------------------------------------------------------------------------------- */

/* The driver makes what `g` launches that of `fresh`, where the two have the same nodes and edges. The nodes
 * that name what is to be changed are still those that `g` was made of. In the context. */
static bool taken_over(tn_device_graph *g, tn_device_graph *fresh)
{
    const tn_device_graph was = *g;
    tncuda_graph_difference difference = {0};
    bool same = true;

    if (g->calls || g->marks || fresh->calls || fresh->marks || g->entry_count != fresh->entry_count ||
        g->form_count > 1 || g->device->driver->graph_exec_update(g->exec, fresh->graph, &difference))
        return false;
    g->taken_over = true;
    g->entries = fresh->entries;
    g->args = g->forms[0].args = fresh->args;
    g->given = fresh->given;
    g->entry_room = fresh->entry_room;
    g->args_bytes = fresh->args_bytes;
    g->args_room = fresh->args_room;
    fresh->entries = was.entries;
    fresh->args = was.args;
    fresh->given = was.given;
    for (uint64_t i = 0; i < g->entry_count; i++) {
        tncuda_entry *e = &g->entries[i];

        e->node = was.entries[i].node;
        same = same && e->nodes == was.entries[i].nodes;
        e->chained = e->chained && same && was.entries[i].chained;
        memcpy(e->chain, was.entries[i].chain, sizeof e->chain);
    }
    return true;
}

/* What could not be changed by itself before cannot be now. */
static void chains_keep(const tn_device_graph *was, tn_device_graph *fresh)
{
    for (uint64_t i = 0; i < fresh->entry_count && fresh->entry_count == was->entry_count; i++)
        fresh->entries[i].chained = fresh->entries[i].chained && was->entries[i].chained;
}

static uint64_t entries_nodes(const tn_device_graph *g)
{
    uint64_t nodes = 0;

    for (uint64_t i = 0; i < g->entry_count; i++)
        nodes += g->entries[i].nodes;
    return nodes;
}

static tn_status recorded_run(tn_device_graph **graph, tn_stream *s, tn_status (*fn)(void *arg, tn_err *err),
                              void *arg, uint32_t *moved, tn_err *err)
{
    tn_device_handle *d = s->device;
    tn_device_graph *made = NULL;
    tn_status st = tncuda_graph_begin(s, err), ended;
    bool changed = false;

    if (st)
        return st;
    st = fn(arg, err);
    ended = tncuda_graph_end(s, 0, NULL, NULL, st ? NULL : &made, st ? NULL : err);
    if (st || ended)
        return st ? st : ended;
    if (!(made->given = tncuda_new(d->plugin, made->args_bytes + HEAD_BYTES))) {
        tncuda_graph_free(made);
        return tncuda_nomem(err, "what a graph is given");
    }
    made->forms[0] = (tncuda_form){made->exec, made->args};
    made->form_count = 1;
    made->whole = !made->calls && !made->marks && entries_nodes(made) == made->node_count;
    if (*graph && (st = tncuda_enter(d, err))) {
        tncuda_graph_free(made);
        return st;
    }
    if (*graph) {
        changed = taken_over(*graph, made);
        tncuda_leave(d);
    }
    if (*graph && !changed)
        chains_keep(*graph, made);
    *moved = changed ? 1 : UINT32_MAX;
    if (changed)
        tncuda_count(&d->count.graph_updates);
    tncuda_graph_free(changed ? made : *graph);
    *graph = changed ? *graph : made;
    return tncuda_graph_launch(*graph, s, err);
}

static bool works(tn_device_handle *d)
{
    const bool works = !tncuda_enter(d, NULL);

    if (works)
        tncuda_leave(d);
    return works;
}

/* What fails while it is recorded may work by itself: TN_E_UNSUPPORTED then. */
tn_status tncuda_graph_run(tn_device_graph **graph, tn_stream *stream,
                           tn_status (*fn)(void *arg, tn_err *err), void *arg, uint32_t *moved, tn_err *err)
{
    tn_status st;

    if (!graph || !stream || !fn || !moved || (*graph && (*graph)->device != stream->device))
        return tn_fail(err, TN_E_ARG, "a run needs a stream, a function, and a place for its graph");
    if (!stream->device->plugin->graphs)
        return tn_fail(err, TN_E_UNSUPPORTED, "plugin.cuda.graphs is false");
    *moved = 0;
    if (*graph && (*graph)->whole && (st = compared_run(*graph, stream, fn, arg, moved, err)) != TN_PENDING)
        return st;
    st = recorded_run(graph, stream, fn, arg, moved, err);
    return st && works(stream->device) ? TN_E_UNSUPPORTED : st;
}
