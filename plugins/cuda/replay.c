/*
 * The device's own kernels as graphs: what a run gives its stream is recorded by the driver's capture; later
 * runs give it to nobody, it is compared with what was recorded. So a run like one before is one launch.
 *
 * Steps that are under way together take turns with a few sets of buffers: frames, outputs, gradients. A
 * graph has a form for each combination of them: a graph of its own, recorded by a run, with the arguments
 * that its nodes have. A run is a launch of the form that has its arguments. If none has them:
 *
 * - where a form has the same addresses, and other numbers alone (a learning rate, a scale), these are set
 *   in its nodes, however many: numbers that change with each step take no forms;
 * - else it is recorded into a further form, and where there is no room, into the place of the one that was
 *   launched least recently;
 * - where there is no room, and only a few kernels or copies were given others, these are set in the form
 *   that is nearest;
 * - where recording was in vain too often (`credit`), kernels and copies are set, however many; and where a
 *   library's call was given others, whose nodes nobody but the library knows, the run is plain.
 *
 * What has nodes of nobody's entry is recorded by each run, until that was in vain too often as well.
 */
#include "internal.h"

#include <string.h>

#define ROOM_LEAST 64u
#define RECORDING_RUNS 64u /* runs that pay for one recording */
#define CREDIT_MOST (2 * TNCUDA_FORMS * RECORDING_RUNS)
#define FORMS_LEAST 16u
#define NODES_MOST 8192u /* of all forms, where there are more than the least */
#define FEW 16u          /* and one in 16 entries: setting them is cheaper than to record all */
#define FEW_OF 16u
#define FREE_LEAST (64ull << 20) /* memory of the device that is left to others */

/* In front of an entry's arguments. */
typedef struct entry_head {
    tncuda_function function; /* NULL: a copy, whose arguments are a tncuda_copied; of a library: its plan */
    uint32_t blocks, bytes;
} entry_head;

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
    const tncuda_turns *t = &graph->turns;

    tncuda_delete(p, graph->entries);
    tncuda_delete(p, graph->args);
    if (t->found + t->set + t->recorded + t->plain)
        tncuda_log(
            p, TN_LEVEL_DEBUG,
            "a segment's graph ends: of its runs %llu found their form, %llu set nodes, %llu were recorded, "
            "%llu plain",
            (unsigned long long)t->found, (unsigned long long)t->set, (unsigned long long)t->recorded,
            (unsigned long long)t->plain);
}

/* Padding is zero: arguments are compared as bytes. */
static tn_status args_add(tn_device_graph *g, const entry_head *head, const void *args, uint64_t *at,
                          tn_err *err)
{
    const uint64_t bytes = (head->bytes + 15ull) & ~15ull;
    void *all = g->args;
    tn_status st = grow(g->device->plugin, &all, 1, g->args_bytes, sizeof *head + bytes, &g->args_room, err);

    g->args = all;
    if (st)
        return st;
    memcpy(g->args + g->args_bytes, head, sizeof *head);
    *at = g->args_bytes + sizeof *head;
    memcpy(g->args + *at, args, head->bytes);
    memset(g->args + *at + head->bytes, 0, bytes - head->bytes);
    g->args_bytes = *at + bytes;
    return TN_OK;
}

static entry_head head_of(const char *args, const tncuda_entry *e)
{
    entry_head head;

    memcpy(&head, args + e->at - sizeof head, sizeof head);
    return head;
}

bool tncuda_graph_compared(tn_stream *stream, tncuda_function function, uint32_t blocks, const void *args,
                           uint32_t bytes)
{
    tn_device_graph *g = stream->recording;
    uint64_t at;

    if (!g || !g->compares)
        return false;
    if (!bytes || args_add(g, &(entry_head){function, blocks, bytes}, args, &at, NULL))
        g->differs = true;
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

static tn_status entry_add(tn_device_graph *g, const tncuda_entry *like, const entry_head *head,
                           const void *args, tn_err *err)
{
    void *entries = g->entries;
    tn_status st =
        grow(g->device->plugin, &entries, sizeof *g->entries, g->entry_count, 1, &g->entry_room, err);

    g->entries = entries;
    if (st)
        return st;
    g->entries[g->entry_count] = *like;
    if (!(st = args_add(g, head, args, &g->entries[g->entry_count].at, err)))
        g->entry_count++;
    return st;
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
    return entry_add(g, &(tncuda_entry){.node = last[0], .nodes = 1}, &(entry_head){function, blocks, bytes},
                     args, err);
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

tn_status tncuda_graph_note_library(tn_stream *stream, const void *state, uint64_t nodes, const void *args,
                                    uint32_t bytes, tn_err *err)
{
    const entry_head head = {.function = (tncuda_function)(uintptr_t)state, .bytes = bytes};

    if (!stream->recording)
        return TN_OK;
    return entry_add(stream->recording, &(tncuda_entry){.nodes = nodes, .library = true}, &head, args, err);
}

/* ---- forms --------------------------------------------------------------------------------------------- */

void tncuda_graph_forms_free(tn_device_graph *graph)
{
    for (uint32_t i = 0; i < graph->form_count; i++)
        tncuda_graph_free(graph->forms[i]);
    graph->form_count = 0;
}

static void form_drop(tn_device_graph *g, uint32_t at)
{
    tncuda_graph_free(g->forms[at]);
    g->forms[at] = g->forms[--g->form_count];
    g->form_last = 0;
}

/* Whether one form more may be: few of a large graph, and as the device's memory is now. The driver is asked
 * last. */
static bool form_fits(const tn_device_graph *g)
{
    tn_device_handle *d = g->device;
    const uint64_t nodes = g->form_count ? g->forms[0]->node_count + 1 : 1,
                   some = NODES_MOST / nodes > FORMS_LEAST ? NODES_MOST / nodes : FORMS_LEAST;
    size_t free_bytes = 0, total = 0;
    bool tight;

    if (g->form_count >= (some < TNCUDA_FORMS ? some : TNCUDA_FORMS))
        return false;
    if (!g->form_count || tncuda_enter(d, NULL))
        return true;
    tight = !d->driver->memory_info(&free_bytes, &total) && free_bytes < FREE_LEAST;
    tncuda_leave(d);
    return !tight;
}

/* Takes the place of the one that was launched least recently, where there is no room. */
static void form_keep(tn_device_graph *g, tn_device_graph *form)
{
    uint32_t oldest = 0;

    for (uint32_t i = 1; i < g->form_count; i++)
        if (g->forms[i]->used < g->forms[oldest]->used)
            oldest = i;
    if (form_fits(g))
        oldest = g->form_count++;
    else
        tncuda_graph_free(g->forms[oldest]);
    g->forms[oldest] = form;
    g->form_last = oldest;
}

/* The form that has the arguments given. Steps take turns: the next one is tried first. */
static tn_device_graph *form_find(tn_device_graph *g)
{
    for (uint32_t i = 1; i <= g->form_count; i++) {
        const uint32_t at = (g->form_last + i) % g->form_count;
        tn_device_graph *f = g->forms[at];

        if (f->args_bytes == g->args_bytes && !memcmp(f->args, g->args, g->args_bytes)) {
            g->form_last = at;
            return f;
        }
    }
    return NULL;
}

/* A form, and what of it was given others. */
typedef struct form_lack {
    uint32_t at;
    uint64_t entries, calls, first; /* all, and those of libraries; the first of them */
    uint64_t places;                /* those of which an address is another */
} form_lack;

static bool moved(const tn_device_graph *g, const tn_device_graph *f, const tncuda_entry *e)
{
    return memcmp(f->args + e->at, g->args + e->at, head_of(f->args, e).bytes) != 0 ||
           head_of(f->args, e).blocks != head_of(g->args, e).blocks;
}

/* Kernels are given addresses and numbers in words of their own: a word is an address if it lies within the
 * device's blocks, as it was or as it is. A number that looks like one costs a form, or a node to set. */
static bool place_moved(const tn_device_graph *g, const tn_device_graph *f, const tncuda_entry *e)
{
    const uint64_t from = atomic_load_explicit(&g->device->lowest, memory_order_relaxed),
                   size = atomic_load_explicit(&g->device->behind, memory_order_relaxed) - from;
    const entry_head head = head_of(f->args, e);
    bool moved = !head.function || e->library;
    uint64_t was, is;

    for (uint32_t i = 0; i < head.bytes && !moved; i += sizeof was) {
        memcpy(&was, f->args + e->at + i, sizeof was);
        memcpy(&is, g->args + e->at + i, sizeof is);
        moved = was != is && (was - from < size || is - from < size);
    }
    return moved;
}

/* False: something else was given. */
static bool lack_of(const tn_device_graph *g, uint32_t at, form_lack *out)
{
    const tn_device_graph *f = g->forms[at];
    bool like = f->args_bytes == g->args_bytes;

    *out = (form_lack){.at = at, .first = f->entry_count};
    for (uint64_t k = 0; k < f->entry_count && like; k++) {
        const tncuda_entry *e = &f->entries[k];
        const entry_head was = head_of(f->args, e), is = head_of(g->args, e);

        like = was.function == is.function && was.bytes == is.bytes;
        if (!like || !moved(g, f, e))
            continue;
        out->first = out->entries++ ? out->first : k;
        out->calls += e->library;
        out->places += place_moved(g, f, e);
    }
    return like;
}

/* The form that lacks the fewest calls of libraries, then addresses, then entries, and was launched least
 * recently. False: none is alike. */
static bool form_nearest(const tn_device_graph *g, form_lack *best)
{
    bool any = false;

    for (uint32_t i = 0; i < g->form_count; i++) {
        form_lack l;

        if (!lack_of(g, i, &l))
            continue;
        if (any && (l.calls != best->calls       ? l.calls > best->calls
                    : l.places != best->places   ? l.places > best->places
                    : l.entries != best->entries ? l.entries > best->entries
                                                 : g->forms[i]->used > g->forms[best->at]->used))
            continue;
        *best = l;
        any = true;
    }
    return any;
}

/* ---- changes ------------------------------------------------------------------------------------------- */

static tn_status kernel_set(tn_device_graph *f, const tncuda_entry *e, tn_err *err)
{
    tn_device_handle *d = f->device;
    const entry_head head = head_of(f->args, e);
    void *params[] = {f->args + e->at};
    const tncuda_kernel_node node = {.function = head.function,
                                     .grid = {head.blocks, 1, 1},
                                     .block = {TNCUDA_THREADS, 1, 1},
                                     .params = params};

    return tncuda_check(d, d->driver->graph_set_kernel(f->exec, e->node, &node),
                        "cuGraphExecKernelNodeSetParams", err);
}

static tn_status copy_set(tn_device_graph *f, const tncuda_entry *e, tn_err *err)
{
    tn_device_handle *d = f->device;
    tncuda_copied to;
    tncuda_copy_node node;
    tn_status st;

    memcpy(&to, f->args + e->at, sizeof to);
    if ((st = tncuda_check(d, d->driver->graph_copy(e->node, &node), "cuGraphMemcpyNodeGetParams", err)))
        return st;
    node.dst.device = to.dst;
    node.src.device = to.src;
    node.bytes = (size_t)to.bytes;
    return tncuda_check(d, d->driver->graph_set_copy(f->exec, e->node, &node, d->context),
                        "cuGraphExecMemcpyNodeSetParams", err);
}

/* Kernels and copies of a form get what was given. */
static tn_status form_set(tn_device_graph *g, tn_device_graph *f, uint32_t *count, tn_err *err)
{
    tn_status st = tncuda_enter(g->device, err);

    if (st)
        return st;
    for (uint64_t i = 0; i < f->entry_count && !st; i++) {
        const tncuda_entry *e = &f->entries[i];
        const entry_head head = head_of(g->args, e);

        if (!moved(g, f, e))
            continue;
        memcpy(f->args + e->at - sizeof head, g->args + e->at - sizeof head, sizeof head + head.bytes);
        st = (head.function ? kernel_set : copy_set)(f, e, err);
        ++*count;
    }
    tncuda_leave(g->device);
    return st;
}

/* ---- runs ---------------------------------------------------------------------------------------------- */

static tn_status form_launch(tn_device_graph *g, tn_device_graph *f, tn_stream *s, tn_err *err)
{
    f->used = ++g->clock;
    return tncuda_graph_launch(f, s, err);
}

/* The log is told once of each way, and of what the way was taken for. */
static void told(tn_device_graph *g, uint32_t bit, const char *how, bool like, const form_lack *lack)
{
    const tn_device_graph *f = g->form_count ? g->forms[like ? lack->at : g->form_last] : NULL;

    if (!f || g->told & 1u << bit)
        return;
    g->told |= 1u << bit;
    tncuda_log(
        g->device->plugin, TN_LEVEL_DEBUG,
        "a segment's graph of %llu entries, %llu nodes (%llu kernels, %llu copies, %llu fills, %llu "
        "functions), %u forms: a run %s; %s %llu entries, %llu of libraries, from entry %llu (%s of %llu "
        "nodes) on",
        (unsigned long long)f->entry_count, (unsigned long long)f->node_count,
        (unsigned long long)f->types[TNCUDA_NODE_KERNEL], (unsigned long long)f->types[TNCUDA_NODE_COPY],
        (unsigned long long)f->types[TNCUDA_NODE_FILL], (unsigned long long)f->types[TNCUDA_NODE_HOST],
        (unsigned)g->form_count, how,
        like ? "the nearest form lacks" : "no form is alike:", (unsigned long long)lack->entries,
        (unsigned long long)lack->calls, (unsigned long long)lack->first,
        !like || lack->first >= f->entry_count                ? "none"
        : f->entries[lack->first].library                     ? "a library's call"
        : head_of(f->args, &f->entries[lack->first]).function ? "a kernel"
                                                              : "a copy",
        (unsigned long long)(like && lack->first < f->entry_count ? f->entries[lack->first].nodes : 0));
}

/* What the run gives its stream, into g->args. */
static tn_status compare(tn_device_graph *g, tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg,
                         tn_err *err)
{
    tn_status st;

    pthread_mutex_lock(&s->lock);
    if (!(st = s->recording ? tn_fail(err, TN_E_STATE, "the stream is recording")
                            : tncuda_stream_failed(s, err))) {
        s->recording = g;
        g->compares = true;
        g->differs = false;
        g->args_bytes = 0;
    }
    pthread_mutex_unlock(&s->lock);
    if (st)
        return st;
    st = fn(arg, err);
    pthread_mutex_lock(&s->lock);
    s->recording = NULL;
    g->compares = false;
    pthread_mutex_unlock(&s->lock);
    return st;
}

static uint64_t entries_nodes(const tn_device_graph *g)
{
    uint64_t nodes = 0;

    for (uint64_t i = 0; i < g->entry_count; i++)
        nodes += g->entries[i].nodes;
    return nodes;
}

/* Records a run, launches that, and keeps it as a form. */
static tn_status recorded_run(tn_device_graph *g, tn_stream *s, tn_status (*fn)(void *arg, tn_err *err),
                              void *arg, tn_err *err)
{
    tn_device_graph *made = NULL;
    tn_status st = tncuda_graph_begin(s, err), ended;

    if (st)
        return st;
    st = fn(arg, err);
    ended = tncuda_graph_end(s, 0, NULL, NULL, st ? NULL : &made, st ? NULL : err);
    if (st || ended)
        return st ? st : ended;
    g->turns.recorded++;
    g->credit -= RECORDING_RUNS;
    g->whole = !made->calls && !made->marks && entries_nodes(made) == made->node_count;
    st = form_launch(g, made, s, err);
    if (!g->whole) {
        if (!(g->told & 1u))
            tncuda_log(g->device->plugin, TN_LEVEL_DEBUG,
                       "a segment's graph of %llu nodes is recorded by each run: %llu of them are of entries",
                       (unsigned long long)made->node_count, (unsigned long long)entries_nodes(made));
        g->told |= 1u;
        tncuda_graph_free(made);
    } else
        form_keep(g, made);
    return st;
}

/* A run that was compared, and which no form fits. `record`: it is to be recorded. */
static tn_status other_run(tn_device_graph *g, tn_stream *s, bool *record, uint32_t *count, tn_err *err)
{
    form_lack lack = {0};
    const bool like = !g->differs && form_nearest(g, &lack), settable = like && !lack.calls;
    const tn_device_graph *f = like ? g->forms[lack.at] : NULL;
    const bool few = settable && lack.entries <= FEW + f->entry_count / FEW_OF;

    *record = g->credit >= RECORDING_RUNS && !(settable && !lack.places) && (!few || form_fits(g));
    if (!*record && settable) {
        told(g, 1, "sets nodes", like, &lack);
        if (!form_set(g, g->forms[lack.at], count, NULL)) {
            g->turns.set++;
            g->form_last = lack.at;
            tncuda_count(&g->device->count.graph_updates);
            return form_launch(g, g->forms[lack.at], s, err);
        }
        form_drop(g, lack.at); /* some of it was changed, some not */
        *count = 0;
        *record = g->credit >= RECORDING_RUNS;
        return TN_PENDING;
    }
    told(g, *record ? 2 : 3, *record ? "is recorded" : "is plain, too many were recorded in vain", like,
         &lack);
    return TN_PENDING;
}

static tn_status any_run(tn_device_graph *g, tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg,
                         uint32_t *count, tn_err *err)
{
    bool record = g->credit >= RECORDING_RUNS;
    tn_device_graph *f;
    tn_status st;

    g->credit += g->credit < CREDIT_MOST;
    if (g->whole) {
        if ((st = compare(g, s, fn, arg, err)))
            return st;
        if (!g->differs && (f = form_find(g))) {
            g->turns.found++;
            return form_launch(g, f, s, err);
        }
        if ((st = other_run(g, s, &record, count, err)) != TN_PENDING)
            return st;
    } else if (!record) /* for good */
        return tn_fail(err, TN_E_UNSUPPORTED, "a graph that is recorded by each run");
    if (!record) {
        g->turns.plain++;
        return fn(arg, err);
    }
    *count = UINT32_MAX;
    return recorded_run(g, s, fn, arg, err);
}

static bool works(tn_device_handle *d)
{
    const bool works = !tncuda_enter(d, NULL);

    if (works)
        tncuda_leave(d);
    return works;
}

static tn_status graph_new(tn_device_handle *d, tn_device_graph **out, tn_err *err)
{
    tn_device_graph *g = tncuda_new(d->plugin, sizeof *g);

    if (!g)
        return tncuda_nomem(err, "a graph");
    g->device = d;
    g->credit = CREDIT_MOST;
    atomic_store_explicit(&g->refs, 1u, memory_order_relaxed);
    *out = g;
    return TN_OK;
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
    if (!*graph && (st = graph_new(stream->device, graph, err)))
        return st;
    st = any_run(*graph, stream, fn, arg, moved, err);
    if (st && !(*graph)->form_count && !(*graph)->turns.recorded) {
        tncuda_graph_free(*graph);
        *graph = NULL;
    }
    return st && *moved && works(stream->device) ? TN_E_UNSUPPORTED : st;
}
