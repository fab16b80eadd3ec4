/*
 * Cached operators: a symbol compiled once per signature of its inputs, called like one operator.
 *
 * The signature of a recorded call says what is done to the gradient of each input, and which inputs are one
 * and the same array: their uses are uses of one variable, as they are on a tape.
 */
#include "exec/internal.h"

#include <string.h>

#define HEADS_MAX 64        /* outputs of a net */
#define TWINS_ON_STACK 512u /* slots of the table that finds equal inputs */

tn_status tni_cached_op_of_graph(tni_context *c, tni_graph *g, tni_cached_op **out)
{
    tni_cached_op *op = tni_zalloc(sizeof *op);
    tn_status st;

    if (!op || tni_mutex_init(&op->lock)) {
        tni_free(op);
        tni_graph_destroy(g);
        return TN_E_NOMEM;
    }
    tni_ref_init(&op->refs);
    op->ctx = c;
    op->graph = g;
    op->placed = tni_graph_placed(g);
    if ((st = tni_parts_create(c, g, &op->parts)))
        tni_cached_op_release(op);
    else
        *out = op;
    return st;
}

tn_status tni_cached_op_create(tni_context *c, tni_symbol *s, const tni_cached_flags *flags,
                               tni_cached_op **out)
{
    tni_graph *g = NULL;
    tn_status st;

    if ((st = tni_graph_of(s, &g)) || (st = tni_cached_op_of_graph(c, g, out)))
        return st;
    if (flags)
        (*out)->flags = *flags;
    if (flags && (*out)->parts)
        tni_parts_flags((*out)->parts, flags);
    return TN_OK;
}

tn_status tni_cached_op_constant(tni_cached_op *op, uint32_t index)
{
    if (!op->constants && !(op->constants = tni_calloc(op->graph->variable_count + 1u, 1)))
        return TN_E_NOMEM;
    op->constants[index] = 1;
    return op->parts ? tni_parts_constant(op->parts, index) : TN_OK;
}

tn_status tni_cached_op_groups(tni_cached_op *op, const char *const *pairs)
{
    tn_status st;

    if (op->parts)
        return tni_error(TN_E_UNSUPPORTED, "a net with functions of the program takes no groups of devices");
    st = tni_groups_create(op->ctx, op->graph, pairs, &op->groups);
    op->placed |= op->groups != NULL;
    return st;
}

void tni_cached_op_watch(tni_cached_op *op, tni_watch_fn fn, void *arg)
{
    op->watch = (tni_watch){fn, arg};
}

void tni_cached_op_retain(tni_cached_op *op)
{
    tni_ref_retain(&op->refs);
}

void tni_specialization_release(tni_specialization *e)
{
    if (!e || !tni_ref_release(&e->refs))
        return;
    tni_split_destroy(e->split);
    tni_inlined_destroy(e->inlined);
    if (!e->compiled)
        tni_graph_destroy(e->graph);
    tni_compiled_release(e->compiled);
    tni_free(e);
}

void tni_cached_op_release(tni_cached_op *op)
{
    if (!op || !tni_ref_release(&op->refs))
        return;
    while (op->entries) {
        tni_specialization *next = op->entries->next;

        tni_specialization_release(op->entries);
        op->entries = next;
    }
    tni_parts_destroy(op->parts);
    tni_graph_destroy(op->graph);
    tni_groups_destroy(op->groups);
    tni_free(op->constants);
    tni_mutex_fini(&op->lock);
    tni_free(op);
}

/* ---- the signature ----------------------------------------------------------------------------------- */

static bool tracked(const tni_array *a)
{
    return a->grad_entry || (a->grad && a->grad_req != TN_MODE_NONE);
}

/* What a backward does to the gradient of input `i`: its own mode if it is a leaf. */
uint8_t tni_cached_mode(const tni_cached_key *k, uint32_t i)
{
    const tni_array *a = k->in[i];

    if (k->modes)
        return k->modes[i];
    if (!tracked(a))
        return TN_MODE_NONE;
    return a->grad_entry ? TN_MODE_WRITE : (uint8_t)a->grad_req;
}

/* The first input that is the same array as input `i`, if a gradient of it is wanted; else `i`. */
static uint32_t twin_of(const tni_cached_key *k, uint32_t i)
{
    for (uint32_t j = 0; k->twins && j < i && tni_cached_mode(k, i) != TN_MODE_NONE; j++)
        if (k->in[j] == k->in[i])
            return j;
    return i;
}

static bool entry_matches(const tni_specialization *e, const tni_cached_key *k)
{
    const tni_graph *g = e->graph;

    if (e->flags != k->flags || e->device != k->device || e->generation != k->generation ||
        e->recorded != k->recorded || e->twins != k->twins || e->rows != k->rows || e->several != k->several)
        return false;
    for (uint32_t i = 0; i < k->in_count; i++) {
        const tni_array *a = k->in[i];
        const uint32_t entry = g->nodes[g->variables[i]].first_entry;
        const tn_shape *shape = &g->shapes[entry];

        if (g->dtypes[entry] != a->dtype || g->storages[entry] != a->storage_type ||
            !tni_array_has_shape(a, shape->ndim, shape->dim))
            return false;
        if (k->several && g->nodes[g->variables[i]].device != a->storage->device)
            return false;
        if (k->twins && e->twin[i] != twin_of(k, i))
            return false;
        if (k->recorded && e->twin[i] == i && e->modes[i] != tni_cached_mode(k, i))
            return false;
    }
    return true;
}

static tn_status graph_for(tni_cached_op *op, const tni_cached_key *k, tni_graph **out)
{
    tni_graph *g = NULL;
    tn_status st = tni_graph_copy(op->graph, &g);

    for (uint32_t i = 0; !st && i < k->in_count; i++) {
        tn_shape shape = {.ndim = k->in[i]->ndim};

        memcpy(shape.dim, k->in[i]->shape, (size_t)shape.ndim * sizeof *shape.dim);
        st = tni_graph_preset(g, i, &shape, k->in[i]->dtype, k->in[i]->storage_type);
    }
    if (!st) {
        g->np_shape = op->graph->np_shape || (k->flags & TN_NODE_NP_SHAPE);
        g->train = (k->flags & TN_NODE_TRAIN) != 0;
        st = tni_graph_infer(g, false);
    }
    if (!st && k->several)
        st = tni_graph_place(op->ctx, g, k->in, op->groups, k->device);
    if (st)
        tni_graph_destroy(g);
    else
        *out = g;
    return st;
}

/* Uses of an input that is there twice become uses of its first place. */
static void twins_join(tni_graph *g, const tni_specialization *e)
{
    for (uint32_t i = 0; i < g->input_total; i++) {
        const tni_gnode *node = &g->nodes[g->entry_node[g->inputs[i]]];

        if (!node->def)
            g->inputs[i] = g->nodes[g->variables[e->twin[node->variable]]].first_entry;
    }
    for (uint32_t h = 0; h < g->head_count; h++) {
        const tni_gnode *node = &g->nodes[g->entry_node[g->heads[h]]];

        if (!node->def)
            g->heads[h] = g->nodes[g->variables[e->twin[node->variable]]].first_entry;
    }
}

static tni_specialization *entry_alloc(const tni_cached_key *k)
{
    tni_specialization *e = tni_zalloc(sizeof *e + k->in_count * (sizeof *e->twin + 1u) + 1u);

    if (!e)
        return NULL;
    tni_ref_init(&e->refs);
    e->twin = (uint32_t *)(e + 1);
    e->modes = (uint8_t *)(e->twin + k->in_count);
    e->device = k->device;
    e->flags = k->flags;
    e->recorded = k->recorded;
    e->twins = k->twins;
    e->rows = k->rows;
    e->several = k->several;
    for (uint32_t i = 0; i < k->in_count; i++) {
        e->twin[i] = twin_of(k, i);
        e->modes[i] = e->twin[i] == i ? tni_cached_mode(k, i) : TN_MODE_NONE;
    }
    return e;
}

/* Programs hold dense arrays alone: nets with others, of row_sparse gradients too, are called operator by
 * operator. */
static bool is_sparse(const tni_graph *g)
{
    for (uint32_t e = 0; e < g->entry_count; e++)
        if (g->storages[e] > TN_STORAGE_DENSE)
            return true;
    return false;
}

/* Nodes that name a device may all name this one. */
static bool is_on(const tni_graph *g, const tni_device *d)
{
    for (uint32_t n = 0; n < g->node_count; n++)
        if (g->nodes[n].device && g->nodes[n].device != d)
            return false;
    return true;
}

/* As MXNet: memory that stays bound needs a program. */
static bool inlines(const tni_cached_op *op, const tni_cached_key *k, const tni_graph *g)
{
    if (k->rows || is_sparse(g))
        return (!k->several || is_on(g, k->device)) && tni_inlines(op->graph, UINT32_MAX);
    return !op->flags.static_alloc && !k->several && tni_inlines(op->graph, op->flags.inline_limit);
}

static tn_status entry_create(tni_cached_op *op, const tni_cached_key *k, tni_specialization **out)
{
    tni_context *c = op->ctx;
    tni_specialization *e = entry_alloc(k);
    tni_compiled_spec spec = {.ctx = c,
                              .device = k->device,
                              .flags = (uint16_t)k->flags,
                              .bulk = {op->flags.forward_bulk, op->flags.backward_bulk},
                              .keeps = op->flags.static_alloc};
    tn_status st;

    if (!e)
        return TN_E_NOMEM;
    spec.modes = k->recorded ? e->modes : NULL;
    spec.constants = k->recorded || k->flags & TN_NODE_TRAIN ? NULL : op->constants;
    if ((st = tni_kernels_load(c->plugins, k->device)) || (st = graph_for(op, k, &e->graph)))
        goto cleanup;
    e->generation = tni_exec_generation(c); /* what was loaded just now counts: the next call finds this */
    if (inlines(op, k, e->graph)) {
        if ((st = tni_inlined_create(c, e->graph, k->device, &op->watch, &e->inlined)))
            goto cleanup;
    } else if ((st = tni_split_create(c, e->graph, &e->split))) {
        goto cleanup;
    }
    if (!e->split && !e->inlined) {
        if (k->twins)
            twins_join(e->graph, e);
        spec.graph = e->graph; /* moved */
        e->graph = NULL;
        if ((st = tni_compiled_create(&spec, &e->compiled)))
            goto cleanup;
        e->graph = e->compiled->graph;
    }
    *out = e;
    e = NULL;

cleanup:
    tni_specialization_release(e);
    return st;
}

/* Do two entries differ in the shapes of their inputs only? */
static bool alike(const tni_specialization *a, const tni_specialization *b)
{
    return a->flags == b->flags && a->device == b->device && a->recorded == b->recorded &&
           a->several == b->several;
}

/* Entries behind the first one go: the least recent of too many; with static_shape those for other shapes. */
static void entries_limit_locked(tni_cached_op *op)
{
    uint32_t kept = 1;

    for (tni_specialization **at = op->entries ? &op->entries->next : NULL; at && *at;) {
        tni_specialization *e = *at;

        if (kept < TNI_CACHED_ENTRIES_MAX && !(op->flags.static_shape && alike(e, op->entries))) {
            kept++;
            at = &e->next;
            continue;
        }
        *at = e->next;
        op->entry_count--;
        tni_specialization_release(e);
    }
}

/* The entry for this signature, retained: the most recent comes first. */
tn_status tni_specialization_find(tni_cached_op *op, const tni_cached_key *k, tni_specialization **out)
{
    tni_specialization **at, *e;
    tn_status st = TN_OK;

    tni_mutex_lock(&op->lock);
    for (at = &op->entries; (e = *at) != NULL && !entry_matches(e, k); at = &e->next)
        ;
    if (e)
        *at = e->next;
    else if (!(st = entry_create(op, k, &e)))
        op->entry_count++;
    if (!st) {
        e->next = op->entries;
        op->entries = e;
        tni_ref_retain(&(*out = e)->refs);
    }
    entries_limit_locked(op);
    tni_mutex_unlock(&op->lock);
    return st;
}

/* Is some tracked array there twice? A table of addresses. */
static bool twins_find(uint32_t count, tni_array *const *in)
{
    const tni_array *few[TWINS_ON_STACK] = {NULL};
    const uint32_t slots = TWINS_ON_STACK;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t at = (uint64_t)(uintptr_t)in[i] >> 4;

        if (!tracked(in[i]))
            continue;
        if (count > slots / 2) { /* very many: one by one */
            for (uint32_t j = 0; j < i; j++)
                if (in[j] == in[i])
                    return true;
            continue;
        }
        at = (at * 0x9e3779b97f4a7c15u >> 32) % slots;
        while (few[at] && few[at] != in[i])
            at = (at + 1) % slots;
        if (few[at])
            return true;
        few[at] = in[i];
    }
    return false;
}

static tn_status key_make(tni_cached_op *op, uint32_t in_count, tni_array *const *in, tni_cached_key *k)
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
        k->several |= !st && k->device && in[i]->storage->device != k->device;
        if (!st && !k->device)
            k->device = in[i]->storage->device;
    }
    if (st || (!k->device && (st = tni_default_device(op->ctx, &k->device))))
        return st;
    k->several |= op->placed;
    k->in = in;
    k->in_count = in_count;
    k->flags = (scope->training ? TN_NODE_TRAIN : 0u) | (scope->np_shape ? TN_NODE_NP_SHAPE : 0u) |
               tni_exec_node_flags(op->ctx);
    k->generation = tni_exec_generation(op->ctx);
    k->recorded = scope->recording && tni_tape_tracks(in_count, in);
    k->twins = k->recorded && twins_find(in_count, in);
    for (uint32_t i = 0; k->recorded && i < in_count; i++)
        k->rows |= tni_grad_is_rows(in[i]) && !in[i]->grad_entry;
    return TN_OK;
}

/* ---- the call ---------------------------------------------------------------------------------------- */

static tn_status outputs_make(tni_context *c, const tni_program *p, tni_array **out, uint64_t *made)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->output_count && !st; i++) {
        const tni_port *port = &p->ports[p->input_count + i];

        if (out[i])
            continue;
        st = tn_shape_known(&port->shape)
                 ? tni_array_create(c->space, port->device, port->dtype, port->shape.ndim, port->shape.dim,
                                    "array", &out[i])
                 : tni_array_create_pending(c->space, port->device, port->dtype, &out[i]);
        if (!st && i < 64)
            *made |= (uint64_t)1 << i;
    }
    return st;
}

/* Arrays by port: inputs, outputs; the rest belongs to a backward. */
static tn_status call_launch(tni_context *c, tni_frame *f, const tni_cached_key *k, tni_array *const *out)
{
    const tni_program *p = tni_frame_program(f);
    tni_array **arrays = tni_frame_arrays(f, TNI_FORWARD);
    tni_launch l = {.frame = f, .phase = TNI_FORWARD, .arrays = arrays};

    for (uint32_t i = 0; i < p->input_count; i++)
        arrays[i] = k->in[p->ports[i].index];
    for (uint32_t i = 0; i < p->output_count; i++)
        arrays[p->input_count + i] = out[i];
    if (p->random_count)
        l.draw =
            tni_scope_get()->draw ? *tni_scope_get()->draw : tni_random_take(c, k->device, p->random_count);
    return tni_launch_all(c, &(tni_launch_group){.launches = &l, .count = 1});
}

static tn_status compiled_call(tni_context *c, tni_compiled *e, const tni_cached_key *k, tni_array **out)
{
    tni_frame *f = NULL;
    uint64_t made = 0;
    tn_status st;

    if (!(st = tni_frame_take(e->pool, k->recorded, &f)) && !(st = outputs_make(c, e->program, out, &made)) &&
        !(st = call_launch(c, f, k, out)) && k->recorded)
        st = tni_tape_record_cached(e, f, k->in, out);
    for (uint32_t i = 0; st && i < e->program->output_count && i < 64; i++)
        if (made >> i & 1u) {
            tni_array_release(out[i]);
            out[i] = NULL;
        }
    tni_frame_release(f);
    return st;
}

/* Does a given output share its memory with an input? */
static bool outputs_overlap(const tni_cached_key *k, uint32_t count, tni_array *const *out)
{
    for (uint32_t o = 0; o < count; o++)
        for (uint32_t i = 0; out[o] && i < k->in_count; i++)
            if (k->in[i]->storage == out[o]->storage)
                return true;
    return false;
}

#define OVERWRITES "an input of a net that is recorded cannot be overwritten by one of its outputs"

/* Outputs that are given are written behind everything. */
static tn_status parts_call(const tni_cached_op *op, const tni_cached_key *k, tni_array **out)
{
    if (k->recorded && outputs_overlap(k, op->graph->head_count, out))
        return tni_error(TN_E_STATE, OVERWRITES);
    return tni_parts_call(op->parts, k->device, k->in, out);
}

static tn_status entry_call(tni_context *c, const tni_specialization *e, const tni_cached_key *k,
                            tni_array **out)
{
    if (e->compiled)
        return compiled_call(c, e->compiled, k, out);
    return e->split ? tni_split_call(e->split, k, out) : tni_inlined_call(c, e->inlined, k->in, out);
}

/* Such an output is written behind everything that reads the input. */
static tn_status call_aside(tni_cached_op *op, const tni_specialization *e, const tni_cached_key *k,
                            tni_array **out)
{
    const uint32_t count = op->graph->head_count;
    tni_array *made[HEADS_MAX] = {NULL};
    tn_status st;

    if (k->recorded)
        return tni_error(TN_E_STATE, OVERWRITES);
    st = entry_call(op->ctx, e, k, made);
    for (uint32_t o = 0; o < count && !st; o++)
        if (out[o] && !(st = tni_array_shape_wait(made[o])) &&
            (!tni_array_has_shape(out[o], made[o]->ndim, made[o]->shape) || out[o]->dtype != made[o]->dtype))
            st = tni_error(TN_E_SHAPE, "output %u of the net has another shape or dtype than the array given",
                           o);
    for (uint32_t o = 0; o < count && !st; o++)
        if (out[o])
            st = made[o]->storage_type == TN_STORAGE_DENSE ? tni_array_copy(made[o], out[o])
                                                           : tni_dense_give(op->ctx, made[o], &out[o]);
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
    tni_specialization *e = NULL;
    tni_cached_key k;
    tn_status st;

    if (out_count < op->graph->head_count || op->graph->head_count > HEADS_MAX)
        return tni_error(TN_E_ARG, "the net has %u outputs, room for %u is given", op->graph->head_count,
                         out_count);
    if ((st = key_make(op, in_count, in, &k)))
        return st;
    if (op->parts)
        return parts_call(op, &k, out);
    if ((st = tni_specialization_find(op, &k, &e)))
        return st;
    st = outputs_overlap(&k, op->graph->head_count, out) ? call_aside(op, e, &k, out)
                                                         : entry_call(op->ctx, e, &k, out);
    tni_specialization_release(e);
    return st;
}

tn_status tni_cached_op_recent(tni_cached_op *op, tni_compiled **out)
{
    tn_status st = TN_OK;

    tni_mutex_lock(&op->lock);
    if (op->entries && op->entries->compiled)
        tni_compiled_retain(*out = op->entries->compiled);
    else if (op->parts)
        st = tni_error(TN_E_STATE, "the net is called in parts: functions of the program are in it");
    else if (op->entries)
        st = tni_error(TN_E_STATE,
                       op->entries->split
                           ? "the net is called in parts: some sizes are known only after a kernel ran"
                           : "the net is called operator by operator: it has no program");
    else
        st = tni_error(TN_E_STATE, "the net has not been called yet");
    tni_mutex_unlock(&op->lock);
    return st;
}

tn_status tni_cached_op_memory(tni_cached_op *op, uint64_t *planned, uint64_t *bound)
{
    tni_compiled *e = NULL;
    tn_status st = tni_cached_op_recent(op, &e);

    if (st)
        return st;
    *planned = e->program->planned_bytes;
    *bound = e->program->bound_bytes;
    tni_compiled_release(e);
    return TN_OK;
}
