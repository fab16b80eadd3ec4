/*
 * A recorded call of a cached operator becomes its operators on the tape, for gradients of gradients: these
 * go through values inside the net, which a call's node does not show.
 *
 * Nothing runs again: arrays inside are copies of what the frame keeps for its backward, inputs and outputs
 * those of the call. What is not kept stays out, and a gradient that reads it is refused. Operators that
 * depend on nothing recorded get no node, as in calls one by one.
 */
#include "exec/internal.h"

#include <string.h>

typedef struct made_node {
    tni_tape_node *node;
    uint32_t gnode, first_in; /* gnode: TNI_NONE: a copy; first_in: of its inputs' slots, in `ins` */
} made_node;

typedef struct unroll { /* slots: the entries of the graph, then copies of entries on other devices */
    tni_tape_node *n;
    const tni_compiled *e;
    const tni_graph *g;
    uint32_t slot_count;
    tni_array **like;      /* per slot: an array that looks like it */
    tni_array **value;     /* per slot: what it holds; NULL: nobody kept it */
    tni_tape_entry **made; /* per slot: where it comes from; borrowed; NULL: a leaf or a constant */
    tni_array **leaf;      /* per slot: the leaf that it is; borrowed */
    uint32_t *copy_of;     /* per slot behind the entries: the entry */
    uint8_t *needed;       /* per slot: a gradient may read it */
    tni_vec nodes;         /* made_node, in their order on the tape */
    tni_vec ins;           /* uint32_t */
    uint32_t *last;        /* per root value: the last instruction of the forward that writes it, and 1 */
    uint32_t *kept;        /* slots that come from the frame, or are computed again */
    uint32_t kept_count;
} unroll;

/* ---- what the entries look like ------------------------------------------------------------------------ */

static uint32_t variable_entry(const unroll *u, uint32_t v)
{
    return u->g->nodes[u->g->variables[v]].first_entry;
}

static tn_status tables_make(unroll *u)
{
    const uint64_t entries = u->g->entry_count + (uint64_t)u->g->input_total + 1;

    u->slot_count = u->g->entry_count;
    tni_vec_init(&u->nodes, sizeof(made_node), 4u * TN_GRAPH_NODES_MAX);
    tni_vec_init(&u->ins, sizeof(uint32_t), UINT32_MAX / 2);

    u->like = tni_calloc(entries, sizeof(*u->like));
    u->value = tni_calloc(entries, sizeof(*u->value));
    u->made = tni_calloc(entries, sizeof(*u->made));
    u->leaf = tni_calloc(entries, sizeof(*u->leaf));
    u->needed = tni_calloc(entries, 1);
    u->kept = tni_calloc(entries, sizeof *u->kept);
    u->last = tni_calloc(u->e->program->value_count + 1u, sizeof *u->last);
    u->copy_of = tni_calloc(entries, sizeof *u->copy_of);
    return u->like && u->value && u->made && u->leaf && u->needed && u->kept && u->last && u->copy_of
               ? TN_OK
               : TN_E_NOMEM;
}

/* Arrays without memory, since nobody touches them. */
static tn_status like_make(const unroll *u, tni_device *d, uint32_t entry, tni_array **out)
{
    const tn_shape *shape = &u->g->shapes[entry];

    return tn_shape_known(shape) ? tni_array_create(u->e->ctx->space, d, u->g->dtypes[entry], shape->ndim,
                                                    shape->dim, "array", out)
                                 : tni_array_create_pending(u->e->ctx->space, d, u->g->dtypes[entry], out);
}

static tn_status likes_make(unroll *u)
{
    const tni_program *p = u->e->program;
    tn_status st = TN_OK;

    for (uint32_t e = 0; e < u->g->entry_count && !st; e++)
        st = like_make(u, p->values[p->value_of[e]].device, e, &u->like[e]);
    return st;
}

static void inputs_note(unroll *u)
{
    for (uint32_t v = 0; v < u->g->variable_count; v++) {
        const uint32_t e = variable_entry(u, v);

        u->made[e] = u->n->in_entries[v];
        u->leaf[e] = u->n->call.leaves[v];
        if ((u->value[e] = u->n->call.in[v] ? u->n->call.in[v] : u->n->call.leaves[v]))
            tni_array_retain(u->value[e]);
    }
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

static tn_status signature_of(const unroll *u, const tni_opdef *def, tni_attrs *attrs, tni_device *d,
                              uint32_t count, const uint32_t *slots, tni_signature **out)
{
    tni_array *small[16], **in = small;
    tni_call_key k = {.def = def,
                      .attrs = attrs,
                      .device = d,
                      .flags = (u->e->flags & TN_NODE_TRAIN) | (u->g->np_shape ? TN_NODE_NP_SHAPE : 0u),
                      .generation = tni_exec_generation(u->e->ctx),
                      .in_count = count};
    tn_status st;

    if (count > 16 && !(in = tni_calloc(count, sizeof(*in))))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        in[i] = u->like[slots[i]];
    k.in = in;
    st = tni_signature_find(u->e->ctx, &k, out);
    if (in != small)
        tni_free(in);
    return st;
}

/* One tape node behind those that are there, with its edges. */
static tn_status node_add(unroll *u, uint32_t gnode, const tni_opdef *def, tni_attrs *attrs, tni_device *d,
                          uint32_t count, const uint32_t *slots, tni_tape_node **out)
{
    made_node made = {NULL, gnode, (uint32_t)u->ins.count};
    tni_signature *sig = NULL;
    tn_status st = signature_of(u, def, attrs, d, count, slots, &sig);

    if (!st)
        st = tni_tape_node_at(u->e->ctx, u->n, (uint32_t)u->nodes.count, sig, attrs, &made.node);
    tni_signature_release(sig);
    if (st)
        return st;
    if ((st = tni_vec_push(&u->nodes, &made))) {
        tni_tape_node_release(made.node);
        return st;
    }
    *out = made.node;
    for (uint32_t i = 0; i < count && !st; i++) {
        if ((made.node->in_entries[i] = u->made[slots[i]]))
            tni_tape_node_retain(made.node->in_entries[i]->node);
        else if ((made.node->call.leaves[i] = u->leaf[slots[i]]))
            tni_array_retain(made.node->call.leaves[i]);
        u->needed[slots[i]] |= i >= 64 || made.node->signature->need_in[0] >> i & 1u;
        st = tni_vec_push(&u->ins, &slots[i]);
    }
    return st;
}

static bool tracked(const unroll *u, const uint32_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (u->made[slots[i]] || u->leaf[slots[i]])
            return true;
    return false;
}

/* The slot of an entry on a device: of its copy there, where it lies elsewhere. Gradients know nothing of the
 * copy: they go to the entry, one by one in the order of its uses, as on one device. */
static tn_status slot_on(unroll *u, uint32_t entry, tni_device *d, uint32_t *out)
{
    tn_status st;

    *out = entry;
    if (u->like[entry]->storage->device == d)
        return TN_OK;
    for (*out = u->g->entry_count; *out < u->slot_count; ++*out)
        if (u->copy_of[*out] == entry && u->like[*out]->storage->device == d)
            return TN_OK;
    if ((st = like_make(u, d, entry, &u->like[*out])))
        return st;
    u->copy_of[u->slot_count++] = entry;
    u->made[*out] = u->made[entry];
    u->leaf[*out] = u->leaf[entry];
    return TN_OK;
}

static tn_status graph_node_add(unroll *u, uint32_t index)
{
    const tni_gnode *g = &u->g->nodes[index];
    uint32_t *slots = tni_calloc(g->input_count + 1u, sizeof *slots);
    tni_device *d = u->like[g->first_entry]->storage->device;
    tni_tape_node *node = NULL;
    tn_status st = slots ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < g->input_count && !st; i++)
        if (g->def->op->exec == TN_EXEC_COPY)
            slots[i] = tni_graph_input(u->g, g, i);
        else
            st = slot_on(u, tni_graph_input(u->g, g, i), d, &slots[i]);
    if (!st)
        st = node_add(u, index, g->def, g->attrs, d, g->input_count, slots, &node);
    for (uint32_t o = 0; o < g->output_count && !st; o++) {
        u->made[g->first_entry + o] = &node->entries[o];
        u->needed[g->first_entry + o] |= o >= 64 || node->signature->need_out[0] >> o & 1u;
    }
    tni_free(slots);
    return st;
}

static tn_status nodes_make(unroll *u)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < u->g->node_count && !st; k++) {
        const tni_gnode *node = &u->g->nodes[k];

        if (node->def && tracked(u, u->g->inputs + node->first_input, node->input_count))
            st = graph_node_add(u, k);
    }
    for (uint32_t s = u->g->entry_count; s < u->slot_count; s++)
        u->needed[u->copy_of[s]] |= u->needed[s];
    return st;
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* It lies in its input. On another device it is a copy of that. */
static bool is_view(const unroll *u, uint32_t entry)
{
    const tni_gnode *node = &u->g->nodes[u->g->entry_node[entry]];

    return node->def && node->def->op->flags & TN_OP_VIEW &&
           u->like[tni_graph_input(u->g, node, 0)]->storage->device == u->like[entry]->storage->device;
}

static void writers_note(const unroll *u)
{
    const tni_program *p = u->e->program;

    for (uint32_t v = 0; v < p->value_count; v++) {
        const tni_value *value = &p->values[v];

        if (value->def != TNI_NONE && !tni_instruction_backward(&p->code[value->def]) &&
            u->last[value->root] < value->def + 1)
            u->last[value->root] = value->def + 1;
    }
}

/* Whether its bytes are there when the forward is done: nobody wrote over them since. */
static bool intact(const unroll *u, uint32_t entry)
{
    const tni_program *p = u->e->program;
    const tni_value *value;

    while (is_view(u, entry))
        entry = tni_graph_input(u->g, &u->g->nodes[u->g->entry_node[entry]], 0);
    value = &p->values[p->value_of[entry]];
    if (value->flags & TNI_VALUE_WINDOW)
        value = &p->values[value->root];
    return u->last[value->root] == (value->def == TNI_NONE ? 0 : value->def + 1);
}

/* The array at the port that an entry lies in. */
static tni_array *port_array(const unroll *u, const tni_port *port)
{
    if (port->kind == TNI_PORT_INPUT)
        return u->value[variable_entry(u, port->index)];
    return port->kind == TNI_PORT_OUTPUT ? u->n->call.out[port->index] : NULL;
}

/* The array in the shape of an entry. */
static tn_status array_as(const unroll *u, tni_array *a, uint32_t entry, tni_array **out)
{
    const tn_shape *shape = &u->g->shapes[entry];

    if (tn_shape_known(shape) && !tni_array_has_shape(a, shape->ndim, shape->dim))
        return tni_array_shaped(a, shape->ndim, shape->dim, out);
    tni_array_retain(*out = a);
    return TN_OK;
}

static tn_status value_find(unroll *u, uint32_t entry)
{
    const tni_program *p = u->e->program;
    const tni_value *v = &p->values[p->value_of[entry]], *root = &p->values[v->root];
    tni_array *a;

    if (u->value[entry] || !u->needed[entry] || (v->again == TNI_NONE && !intact(u, entry)))
        return TN_OK;
    if (v->flags & TNI_VALUE_WINDOW && v->again == TNI_NONE &&
        (root->place == TNI_PLACE_PORT ||
         !tni_is_row_major(v->tensor.ndim, v->tensor.shape, v->tensor.stride)))
        return TN_OK; /* backward reads no such window */
    if (v->again != TNI_NONE || tni_value_crosses(p, p->value_of[entry]))
        u->kept[u->kept_count++] = entry;
    if (root->place != TNI_PLACE_PORT || v->delta || !(a = port_array(u, &p->ports[root->port])))
        return TN_OK;
    return array_as(u, a, entry, &u->value[entry]);
}

/* A copy on another device may be kept where what it was made of is not. */
static void border_find(unroll *u, uint32_t slot)
{
    const tni_program *p = u->e->program;

    for (uint32_t i = 0; i < p->border_count; i++) {
        const tni_border *b = &p->borders[i];
        const tni_value *v = &p->values[b->value];

        if (b->entry != u->copy_of[slot] || b->device != u->like[slot]->storage->device ||
            !tni_value_crosses(p, b->value) || v->tensor.layout || u->last[v->root] != v->def + 1)
            continue;
        u->kept[u->kept_count++] = slot;
        return;
    }
}

static tn_status values_make(unroll *u)
{
    tni_array **arrays;
    tn_status st = TN_OK;

    writers_note(u);
    for (uint32_t e = 0; e < u->g->entry_count && !st; e++)
        st = value_find(u, e);
    for (uint32_t s = u->g->entry_count; s < u->slot_count; s++)
        if (u->needed[s])
            border_find(u, s);
    if (st || !u->kept_count)
        return st;
    if (!(arrays = tni_calloc(u->kept_count, sizeof(*arrays))))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < u->kept_count; i++)
        tni_array_retain(arrays[i] = u->value[u->kept[i]] = u->like[u->kept[i]]);
    for (uint32_t i = 0; i < u->kept_count; i++)
        u->kept[i] = u->kept[i] < u->g->entry_count ? u->kept[i] : u->copy_of[u->kept[i]];
    st = tni_compiled_values(u->n->call.cached, u->kept_count, u->kept, u->n->call.frame, u->n->call.in,
                             arrays);
    tni_free(arrays);
    return st;
}

/* On other devices, what is there here. */
static tn_status copies_make(unroll *u)
{
    tn_status st = TN_OK;

    for (uint32_t s = u->g->entry_count; s < u->slot_count && !st; s++) {
        tni_array *from = u->value[u->copy_of[s]];

        if (!from || !u->needed[s] || u->value[s])
            continue;
        tni_array_retain(u->value[s] = u->like[s]);
        st = tni_array_copy(from, u->value[s]);
    }
    return st;
}

/* What eager calls would have kept, as far as it is there. */
static void values_give(const unroll *u)
{
    for (size_t k = 0; k < u->nodes.count; k++) {
        const made_node *m = tni_vec_at(&u->nodes, k);
        const tni_signature *sig = m->node->signature;
        const uint32_t first = m->gnode == TNI_NONE ? 0 : u->g->nodes[m->gnode].first_entry;

        for (uint32_t i = 0; i < sig->in_count; i++)
            if ((i >= 64 || sig->need_in[0] >> i & 1u) &&
                (m->node->call.in[i] = u->value[*(uint32_t *)tni_vec_at(&u->ins, m->first_in + i)]))
                tni_array_retain(m->node->call.in[i]);
        for (uint32_t o = 0; m->gnode != TNI_NONE && o < sig->out_count; o++)
            if ((o >= 64 || sig->need_out[0] >> o & 1u) && (m->node->call.out[o] = u->value[first + o]))
                tni_array_retain(m->node->call.out[o]);
    }
}

/* ---- outputs ------------------------------------------------------------------------------------------- */

/* A head that is an input gets a copy's node, so that it has an entry of its own. */
static tn_status heads_make(unroll *u, tni_tape_entry **out)
{
    const tni_opdef *copy = NULL;
    tni_attrs *attrs = NULL;
    tn_status st = tni_opset_find(u->g->ops, "_copy", &copy);

    if (!st)
        st = tni_attrs_parse(copy, 0, NULL, NULL, &attrs);
    for (uint32_t h = 0; h < u->g->head_count && !st; h++) {
        const uint32_t e = u->g->heads[h];
        tni_tape_node *node = NULL;

        if (!u->g->nodes[u->g->entry_node[e]].def && tracked(u, &e, 1) &&
            !(st = node_add(u, TNI_NONE, copy, attrs, u->like[e]->storage->device, 1, &e, &node)))
            out[h] = &node->entries[0];
        else
            out[h] = u->made[e];
        if (out[h])
            tni_tape_node_retain(out[h]->node);
    }
    tni_attrs_release(attrs);
    return st;
}

static void unroll_fini(unroll *u)
{
    for (size_t k = 0; k < u->nodes.count; k++)
        tni_tape_node_release(((made_node *)tni_vec_at(&u->nodes, k))->node);
    for (uint32_t s = 0; s < u->slot_count; s++) {
        tni_array_release(u->like ? u->like[s] : NULL);
        tni_array_release(u->value ? u->value[s] : NULL);
    }
    tni_vec_fini(&u->nodes);
    tni_vec_fini(&u->ins);
    tni_free(u->like);
    tni_free(u->value);
    tni_free(u->made);
    tni_free(u->leaf);
    tni_free(u->needed);
    tni_free(u->kept);
    tni_free(u->last);
    tni_free(u->copy_of);
}

/* The entries that stand for the outputs of one net's call. The caller keeps it from being consumed. */
static tn_status net_unroll(tni_tape_node *n, tni_tape_entry ***out)
{
    unroll u = {.n = n, .e = n->call.cached, .g = n->call.cached->graph};
    tni_tape_entry **heads = tni_calloc(n->call.out_count + 1u, sizeof(*heads));
    tn_status st = heads ? tables_make(&u) : TN_E_NOMEM;

    if (!st && !(st = likes_make(&u))) {
        inputs_note(&u);
        if (!(st = nodes_make(&u)) && !(st = values_make(&u)) && !(st = copies_make(&u)) &&
            !(st = heads_make(&u, heads)))
            values_give(&u);
    }
    unroll_fini(&u);
    if (st)
        tni_tape_unrolled_free(heads, n->call.out_count);
    else
        *out = heads;
    return st;
}

/* From now on walks see the operators. The frame goes unless somebody else runs in it. */
static void unrolled_set(tni_tape_node *n, tni_mutex *lock, tni_tape_entry **unrolled)
{
    tni_frame *frame = NULL;
    tni_tape_entry **spare = unrolled;

    tni_mutex_lock(lock);
    if (!n->unrolled) {
        n->unrolled = unrolled;
        spare = NULL;
    }
    if (n->walkers == 1) {
        frame = n->call.frame;
        n->call.frame = NULL;
    }
    tni_mutex_unlock(lock);
    tni_tape_unrolled_free(spare, n->call.out_count);
    tni_frame_release(frame);
}

tn_status tni_tape_unroll(const tni_tape_walk *w, tni_mutex *lock)
{
    tn_status st = TN_OK;

    for (size_t i = 0; i < w->nodes.count && !st; i++) {
        tni_tape_node *n = tni_tape_node_of(tni_tape_at(w, i));
        tni_tape_entry **unrolled = NULL;

        if (n->call.cached && !(st = net_unroll(n, &unrolled)))
            unrolled_set(n, lock, unrolled);
    }
    return st;
}
