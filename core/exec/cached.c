/*
 * Cached operators: a symbol compiled once per signature of its inputs, called like one operator.
 *
 * For a recorded call the program keeps the entries that the gradient will read; its frame belongs to the
 * tape until backward is done and then comes back. A call that nobody recorded gives its frame back as soon
 * as it is queued if the pool is full, since a frame's own variable orders its calls; else when it is done,
 * so that callers on several threads run side by side.
 */
#include "exec/internal.h"

#include <string.h>

#define HEADS_MAX 64 /* outputs of a net */
#define FRAMES_MAX 8 /* frames of one entry made for concurrent callers; recorded calls may need more */

tn_status tni_cached_op_create(tni_context *c, tni_symbol *s, const tni_cached_flags *flags,
                               tni_cached_op **out)
{
    tni_cached_op *op = tni_zalloc(sizeof *op);
    tn_status st;

    if (!op)
        return TN_E_NOMEM;
    if (tni_mutex_init(&op->lock)) {
        tni_free(op);
        return TN_E_NOMEM;
    }
    tni_ref_init(&op->refs);
    op->ctx = c;
    op->symbol = s;
    tni_symbol_retain(s);
    if (flags)
        op->flags = *flags;
    if ((st = tni_graph_of(s, &op->graph))) {
        tni_cached_op_release(op);
        return st;
    }
    *out = op;
    return TN_OK;
}

void tni_cached_op_retain(tni_cached_op *op)
{
    tni_ref_retain(&op->refs);
}

void tni_cached_entry_retain(tni_cached_entry *e)
{
    tni_ref_retain(&e->refs);
}

void tni_cached_entry_release(tni_cached_entry *e)
{
    if (!e || !tni_ref_release(&e->refs))
        return;
    while (e->frames) {
        tni_frame *next = e->frames->next;

        tni_frame_release(e->frames);
        e->frames = next;
    }
    tni_program_release(e->program);
    tni_bynode_destroy(e->bynode);
    tni_graph_destroy(e->graph);
    tni_mutex_fini(&e->lock);
    tni_free(e->keep);
    tni_free(e);
}

void tni_cached_op_release(tni_cached_op *op)
{
    if (!op || !tni_ref_release(&op->refs))
        return;
    while (op->entries) {
        tni_cached_entry *next = op->entries->next;

        tni_cached_entry_release(op->entries);
        op->entries = next;
    }
    tni_graph_destroy(op->graph);
    tni_symbol_release(op->symbol);
    tni_mutex_fini(&op->lock);
    tni_free(op);
}

/* ---- entries ----------------------------------------------------------------------------------------- */

typedef struct cached_key {
    tni_array *const *in;
    uint32_t in_count, flags;
    tni_device *device;
    uint64_t generation;
    bool recorded;
} cached_key;

static bool tracked(const tni_array *a)
{
    return a->grad_entry || (a->grad && a->grad_req != TN_MODE_NONE);
}

static bool entry_matches(const tni_cached_entry *e, const cached_key *k)
{
    if (e->flags != k->flags || e->device != k->device || e->generation != k->generation ||
        e->recorded != k->recorded)
        return false;
    for (uint32_t i = 0; i < k->in_count; i++) {
        const tni_array *a = k->in[i];
        const tn_shape *shape = &e->graph->shapes[e->graph->nodes[e->graph->variables[i]].first_entry];
        const int32_t dtype = e->graph->dtypes[e->graph->nodes[e->graph->variables[i]].first_entry];

        if (dtype != a->dtype || !tni_array_has_shape(a, shape->ndim, shape->dim) ||
            (k->recorded && e->wanted[i] != tracked(a)))
            return false;
    }
    return true;
}

static tn_status graph_for(tni_cached_op *op, const cached_key *k, tni_graph **out)
{
    tni_graph *g = NULL;
    tn_status st = tni_graph_copy(op->graph, &g);

    for (uint32_t i = 0; !st && i < k->in_count; i++) {
        tn_shape shape = {.ndim = k->in[i]->ndim};

        memcpy(shape.dim, k->in[i]->shape, (size_t)shape.ndim * sizeof *shape.dim);
        st = tni_graph_preset(g, i, &shape, k->in[i]->dtype, TN_STORAGE_DENSE);
    }
    if (!st) {
        g->np_shape = op->graph->np_shape || (k->flags & TN_NODE_NP_SHAPE);
        g->train = (k->flags & TN_NODE_TRAIN) != 0;
        st = tni_graph_infer(g, false);
    }
    if (st)
        tni_graph_destroy(g);
    else
        *out = g;
    return st;
}

tn_status tni_gradient_keep(const tni_graph *g, const uint8_t *of, uint32_t **keep, uint32_t *count)
{
    tni_gradient_spec spec = {0};
    tni_graph *copy = NULL;
    uint32_t *wanted = tni_calloc(g->variable_count + 1u, sizeof *wanted);
    uint32_t *grads = tni_calloc(g->variable_count + 1u, sizeof *grads);
    uint32_t *head_vars = tni_calloc(g->head_count + 1u, sizeof *head_vars);
    uint8_t *read = tni_calloc(g->entry_count + 1u, 1);
    uint32_t *list = tni_calloc(g->entry_count + 1u, sizeof *list), found = 0;
    tn_status st = TN_E_NOMEM;

    if (!wanted || !grads || !head_vars || !read || !list || (st = tni_graph_copy(g, &copy)))
        goto cleanup;
    for (uint32_t i = 0; i < g->variable_count; i++)
        if (of[i])
            wanted[spec.wanted_count++] = g->variables[i];
    spec.wanted = wanted;
    if ((st = tni_graph_gradient(copy, &spec, head_vars, grads)))
        goto cleanup;
    for (uint32_t n = g->node_count; n < copy->node_count; n++)
        for (uint32_t i = 0; i < copy->nodes[n].input_count; i++) {
            const uint32_t entry = tni_graph_input(copy, &copy->nodes[n], i);

            if (entry < g->entry_count && g->nodes[g->entry_node[entry]].def)
                read[entry] = 1;
        }
    for (uint32_t i = 0; i < g->entry_count; i++)
        if (read[i])
            list[found++] = i;
    *keep = list; /* moved */
    *count = found;
    list = NULL;

cleanup:
    tni_graph_destroy(copy);
    tni_free(wanted);
    tni_free(grads);
    tni_free(head_vars);
    tni_free(read);
    tni_free(list);
    return st;
}

static tn_status entry_compile(tni_context *c, const cached_key *k, tni_cached_entry *e)
{
    tni_program_spec spec = {.device = k->device, .threads = c->exec->threads};
    tn_status st;

    if ((k->recorded && (st = tni_gradient_keep(e->graph, e->wanted, &e->keep, &e->keep_count))) ||
        (st = tni_graph_copy(e->graph, &spec.graph)))
        return st;
    spec.keep = e->keep;
    spec.keep_count = e->keep_count;
    spec.flags = (uint16_t)(k->flags | c->exec->node_flags | (k->recorded ? TN_NODE_RECORDED : 0u));
    if ((st = tni_program_create(c->selector, &spec, &e->program)))
        return st;
    tni_exec_program_made(c);
    return TN_OK;
}

/* After a refusal: node by node if that is possible, else the refusal stands. */
static tn_status entry_by_node(tni_cached_op *op, const cached_key *k, tni_cached_entry *e)
{
    const tni_bynode_spec spec = {
        .graph = e->graph, .device = k->device, .flags = (uint16_t)(k->flags | op->ctx->exec->node_flags)};
    tn_err refusal;
    tn_status st;

    tni_error_get(&refusal);
    st = tni_bynode_create(op->ctx, &spec, &e->bynode);
    if (st == TN_E_UNSUPPORTED)
        tni_error_set(&refusal);
    if (st)
        return st;
    tni_error_clear();
    if (!op->told)
        tni_bynode_tell(op->ctx, e->bynode, "a net runs");
    op->told = true;
    return TN_OK;
}

static tn_status entry_create(tni_cached_op *op, const cached_key *k, tni_cached_entry **out)
{
    static atomic_uint_fast64_t ids;
    tni_context *c = op->ctx;
    tni_cached_entry *e = tni_zalloc(sizeof *e + k->in_count + 1u);
    tn_status st;

    if (!e)
        return TN_E_NOMEM;
    if (tni_mutex_init(&e->lock)) {
        tni_free(e);
        return TN_E_NOMEM;
    }
    tni_ref_init(&e->refs);
    e->wanted = (uint8_t *)(e + 1);
    for (uint32_t i = 0; i < k->in_count; i++)
        e->wanted[i] = k->recorded && tracked(k->in[i]);
    e->id = atomic_fetch_add(&ids, 1) + 1;
    e->device = k->device;
    e->flags = k->flags;
    e->recorded = k->recorded;
    if ((st = tni_kernels_load(c->plugins, k->device)))
        goto cleanup;
    e->generation = tni_exec_generation(c); /* what was loaded just now counts: the next call finds this */
    if ((st = graph_for(op, k, &e->graph)))
        goto cleanup;
    st = entry_compile(c, k, e);
    if (st == TN_E_UNSUPPORTED)
        st = entry_by_node(op, k, e);
    if (st)
        goto cleanup;
    *out = e;
    e = NULL;

cleanup:
    tni_cached_entry_release(e);
    return st;
}

static tn_status entry_find(tni_cached_op *op, const cached_key *k, tni_cached_entry **out)
{
    tni_cached_entry **at, *e;
    tn_status st = TN_OK;

    tni_mutex_lock(&op->lock);
    for (at = &op->entries; (e = *at) != NULL && !entry_matches(e, k); at = &e->next)
        ;
    if (e) { /* most recent first */
        *at = e->next;
    } else if (!(st = entry_create(op, k, &e))) {
        op->entry_count++;
    }
    if (!st) {
        e->next = op->entries;
        op->entries = e;
        tni_cached_entry_retain(e);
        *out = e;
    }
    for (at = &op->entries; op->entry_count > TNI_CACHED_ENTRIES_MAX && (*at)->next; at = &(*at)->next)
        if (!(*at)->next->next) { /* the least recent goes */
            tni_cached_entry_release((*at)->next);
            (*at)->next = NULL;
            op->entry_count--;
            break;
        }
    tni_mutex_unlock(&op->lock);
    return st;
}

/* ---- frames ------------------------------------------------------------------------------------------ */

static tn_status frame_take(tni_context *c, tni_cached_entry *e, bool recorded, tni_frame **out)
{
    tni_frame *f, **at;
    bool full;

    tni_mutex_lock(&e->lock);
    for (at = &e->frames; *at && !recorded && (*at)->next && atomic_load(&(*at)->queued); at = &(*at)->next)
        ;
    full = e->frame_count >= FRAMES_MAX;
    f = *at;
    if (f && (recorded || full || !atomic_load(&f->queued)))
        *at = f->next;
    else
        f = NULL;
    e->frame_count += !f;
    tni_mutex_unlock(&e->lock);
    if (f) {
        *out = f;
        return TN_OK;
    }
    return tni_frame_create(c, e->program, out);
}

void tni_cached_give_back(tni_cached_entry *e, tni_frame *f)
{
    tni_frame **at;

    tni_mutex_lock(&e->lock);
    for (at = &e->frames; *at; at = &(*at)->next)
        ;
    f->next = NULL;
    *at = f;
    tni_mutex_unlock(&e->lock);
}

/* ---- the call ---------------------------------------------------------------------------------------- */

static tn_status key_make(tni_cached_op *op, uint32_t in_count, tni_array *const *in, cached_key *k)
{
    const tni_scope *scope = tni_scope_get();
    tn_status st = TN_OK;

    if (in_count != op->graph->variable_count)
        return tni_error(TN_E_ARG, "the net takes %u inputs with its parameters, got %u",
                         op->graph->variable_count, in_count);
    memset(k, 0, sizeof *k);
    for (uint32_t i = 0; i < in_count && !st; i++) {
        if (!in[i])
            st = tni_error(TN_E_ARG, "input %u (%s) of the net is NULL", i,
                           op->graph->nodes[op->graph->variables[i]].name);
        else if (in[i]->pending)
            st = tni_array_shape_wait(in[i]);
        if (!st && k->device && in[i]->storage->device != k->device)
            st = tni_error(TN_E_DEVICE, "input %u (%s) of the net is on %s:%d, the others are on %s:%d", i,
                           op->graph->nodes[op->graph->variables[i]].name, in[i]->storage->device->type,
                           in[i]->storage->device->index, k->device->type, k->device->index);
        if (!st)
            k->device = in[i]->storage->device;
    }
    if (st || (!k->device && (st = tni_default_device(op->ctx, &k->device))))
        return st;
    k->in = in;
    k->in_count = in_count;
    k->flags = (scope->training ? TN_NODE_TRAIN : 0u) | (scope->np_shape ? TN_NODE_NP_SHAPE : 0u);
    k->generation = tni_exec_generation(op->ctx);
    k->recorded = scope->recording && tni_tape_tracks(in_count, in);
    return TN_OK;
}

static tn_status outputs_make(tni_context *c, const tni_program *p, tni_array **out, uint64_t *made)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->output_count && !st; i++) {
        const tni_port *port = &p->outputs[i];

        if (out[i])
            continue;
        st = tni_array_create(c->space, p->device, port->dtype, port->shape.ndim, port->shape.dim, "array",
                              &out[i]);
        if (!st && i < 64)
            *made |= (uint64_t)1 << i;
    }
    return st;
}

static tn_status entry_call(tni_context *c, tni_cached_entry *e, const cached_key *k, tni_array **out)
{
    tni_frame *f = NULL;
    uint64_t draw = 0, made = 0;
    tn_status st;

    if ((st = frame_take(c, e, k->recorded, &f)) || (st = outputs_make(c, e->program, out, &made)))
        goto cleanup;
    if (e->program->random_count)
        draw = tni_random_take(c, k->device, e->program->random_count);
    if ((st = tni_frame_run(f, k->in, out, NULL, draw, NULL)))
        goto cleanup;
    if (k->recorded &&
        !(st = tni_tape_record_cached(e, f, k->in_count, k->in, e->program->output_count, out)))
        f = NULL;

cleanup:
    for (uint32_t i = 0; st && i < e->program->output_count && i < 64; i++)
        if (made >> i & 1u) {
            tni_array_release(out[i]);
            out[i] = NULL;
        }
    if (f)
        tni_cached_give_back(e, f);
    return st;
}

static tn_status entry_dispatch(tni_cached_op *op, tni_cached_entry *e, const cached_key *k, tni_array **out)
{
    return e->program ? entry_call(op->ctx, e, k, out)
                      : tni_bynode_call(op->ctx, e->bynode, k->in, NULL, out);
}

/* Does a given output share its memory with an input? */
static bool outputs_overlap(const cached_key *k, uint32_t count, tni_array *const *out)
{
    for (uint32_t o = 0; o < count; o++)
        for (uint32_t i = 0; out[o] && i < k->in_count; i++)
            if (k->in[i]->storage == out[o]->storage)
                return true;
    return false;
}

/* Such an output is written behind everything that reads the input. */
static tn_status call_aside(tni_cached_op *op, tni_cached_entry *e, const cached_key *k, tni_array **out)
{
    const uint32_t count = op->graph->head_count;
    tni_array *made[HEADS_MAX] = {NULL};
    tn_status st;

    if (k->recorded)
        return tni_error(TN_E_STATE,
                         "an input of a net that is recorded cannot be overwritten by one of its outputs");
    st = entry_dispatch(op, e, k, made);
    for (uint32_t o = 0; o < count && !st; o++)
        if (out[o] &&
            (!tni_array_has_shape(out[o], made[o]->ndim, made[o]->shape) || out[o]->dtype != made[o]->dtype))
            st = tni_error(TN_E_SHAPE, "output %u of the net has another shape or dtype than the array given",
                           o);
    for (uint32_t o = 0; o < count && !st; o++)
        if (out[o])
            st = tni_array_copy(made[o], out[o]);
    for (uint32_t o = 0; o < count; o++)
        if (!st && !out[o])
            out[o] = made[o];
        else
            tni_array_release(made[o]);
    return st;
}

tn_status tni_cached_op_call(tni_cached_op *op, uint32_t in_count, tni_array *const *in, uint32_t out_count,
                             tni_array **out)
{
    tni_cached_entry *e = NULL;
    cached_key k;
    tn_status st;

    if (out_count < op->graph->head_count || op->graph->head_count > HEADS_MAX)
        return tni_error(TN_E_ARG, "the net has %u outputs, room for %u is given", op->graph->head_count,
                         out_count);
    if ((st = key_make(op, in_count, in, &k)) || (st = entry_find(op, &k, &e)))
        return st;
    st = outputs_overlap(&k, op->graph->head_count, out) ? call_aside(op, e, &k, out)
                                                         : entry_dispatch(op, e, &k, out);
    tni_cached_entry_release(e);
    return st;
}

tn_status tni_cached_op_recent(tni_cached_op *op, tni_cached_entry **out)
{
    tn_status st = TN_OK;

    tni_mutex_lock(&op->lock);
    if (op->entries && op->entries->program)
        tni_cached_entry_retain(*out = op->entries);
    else if (op->entries)
        st = tni_error(TN_E_STATE, "the net runs node by node: its graph breaks");
    else
        st = tni_error(TN_E_STATE, "the net has not been called yet");
    tni_mutex_unlock(&op->lock);
    return st;
}

tn_status tni_cached_op_memory(tni_cached_op *op, uint64_t *planned, uint64_t *bound)
{
    tni_cached_entry *e = NULL;
    tn_status st = tni_cached_op_recent(op, &e);

    if (st)
        return st;
    *planned = e->program->arena_bytes;
    *bound = e->program->arena_bound;
    tni_cached_entry_release(e);
    return TN_OK;
}
