/*
 * From a flat graph to the first form of a program: one value per entry, one instruction per computed node,
 * ports for all that lies outside.
 *
 * Views (Reshape, Flatten …) make no instruction: their value lies in that of their input. A head, or a
 * gradient, that is no fresh result of an instruction is copied right after it is there.
 */
#include <string.h>

#include "compile/code.h"

#define CODE_MAX (2u * TN_GRAPH_NODES_MAX)
#define OPERANDS_MAX (8u * TN_GRAPH_NODES_MAX)

/* ---- parts --------------------------------------------------------------------------------------- */

tn_status tni_code_operand_push(tni_code *c, uint32_t value, uint8_t mode)
{
    tn_status st = tni_vec_push(&c->operands, &value);

    return st ? st : tni_vec_push(&c->modes, &mode);
}

tn_status tni_code_value_add(tni_code *c, const tni_value *like, uint32_t *out)
{
    tni_value v = *like;
    int64_t *stride =
        tni_arena_alloc(c->p->memory, (size_t)(v.tensor.ndim > 0 ? v.tensor.ndim : 1) * sizeof *stride);
    tn_status st;

    if (!stride)
        return TN_E_NOMEM;
    v.tensor.stride = stride;
    if (v.tensor.ndim >= 0)
        v.tensor.bytes =
            tn_dtype_size(v.tensor.dtype, (uint64_t)tni_row_major(v.tensor.ndim, v.tensor.shape, stride));
    v.root = (uint32_t)c->values.count;
    v.def = v.first = v.last = v.port = v.arena = v.again = TNI_NONE;
    v.place = TNI_PLACE_NONE;
    v.flags = 0;
    v.delta = v.offset = 0;
    if ((st = tni_vec_push(&c->values, &v)))
        return st;
    *out = v.root;
    return TN_OK;
}

void tni_code_window_like(const tni_code *c, uint32_t value, const tni_value *like)
{
    tni_value *v = tni_code_value(c, value);

    if (!(like->flags & TNI_VALUE_WINDOW))
        return;
    v->flags |= TNI_VALUE_WINDOW;
    for (int32_t d = 0; d < v->tensor.ndim; d++)
        ((int64_t *)v->tensor.stride)[d] = like->tensor.stride[d];
}

tn_status tni_code_block_add(tni_code *c, tni_device *d, uint64_t bytes, uint32_t *out)
{
    int64_t *shape = tni_arena_alloc(c->p->memory, sizeof *shape);
    tni_value like = {.device = d};
    tn_status st;

    if (!shape)
        return TN_E_NOMEM;
    *shape = (int64_t)bytes;
    like.tensor = (tn_tensor){.shape = shape, .ndim = 1, .dtype = TN_U8, .device = d->index};
    if (!(st = tni_code_value_add(c, &like, out)))
        tni_code_value(c, *out)->flags = TNI_VALUE_BLOCK;
    return st;
}

const char *tni_code_name(const tni_code *c, const tni_instruction *in)
{
    return c->p->graph ? c->p->graph->nodes[in->node].name : in->def->op->name;
}

static bool node_computed(const tni_code *c, uint32_t node)
{
    return node >= c->spec->first_node && c->p->graph->nodes[node].def;
}

/* ---- values -------------------------------------------------------------------------------------- */

static bool is_view(const tni_code *c, uint32_t node)
{
    return node_computed(c, node) && c->p->graph->nodes[node].def->op->flags & TN_OP_VIEW;
}

static tni_device *device_for(const tni_code *c, uint32_t entry)
{
    const tni_gnode *node = &c->p->graph->nodes[c->p->graph->entry_node[entry]];

    return node->device ? node->device : c->spec->device;
}

/* A view lies where its input lies; on another device it is a copy. */
static bool shows(const tni_code *c, uint32_t entry)
{
    const tni_graph *g = c->p->graph;
    const tni_gnode *node = &g->nodes[g->entry_node[entry]];

    return is_view(c, g->entry_node[entry]) && node->first_entry == entry &&
           tni_code_value(c, c->value_of[tni_graph_input(g, node, 0)])->device == device_for(c, entry);
}

/* Nodes stand in topological order, so the input of a view has its root already. */
static tn_status values_make(tni_code *c)
{
    const tni_graph *g = c->p->graph;
    bool several = false;
    tn_status st = TN_OK;

    for (uint32_t e = 0; e < g->entry_count && !st; e++) {
        const tni_gnode *node = &g->nodes[g->entry_node[e]];
        tni_value like = {.device = device_for(c, e)};
        uint32_t made = 0;

        if (node->def && g->storages[e] > TN_STORAGE_DENSE)
            return tni_error(
                TN_E_UNSUPPORTED,
                "node \"%.80s\" (%s): output %u is sparse (%s), and a program holds dense arrays", node->name,
                node->def->op->name, e - node->first_entry, tni_storage_type_name(g->storages[e]));
        several |= like.device != c->spec->device;
        like.tensor = (tn_tensor){.shape = g->shapes[e].dim,
                                  .ndim = g->shapes[e].ndim,
                                  .dtype = g->dtypes[e],
                                  .device = like.device->index,
                                  .storage = g->storages[e] > 0 ? (uint16_t)g->storages[e] : 0};
        if ((st = tni_code_value_add(c, &like, &made)))
            break;
        c->value_of[e] = made;
        if (shows(c, e))
            tni_code_value(c, made)->root = tni_code_root(c, c->value_of[tni_graph_input(g, node, 0)]);
    }
    if (!st && several && !(c->border_of = tni_calloc(g->entry_count + 1u, sizeof *c->border_of)))
        return TN_E_NOMEM;
    if (!st && several && c->p->random_count)
        return tni_error(TN_E_UNSUPPORTED, "a net over several devices has random operators, whose draws "
                                           "each device counts for itself; call it on one device");
    return st;
}

/* ---- ports --------------------------------------------------------------------------------------- */

static tn_status port_push(tni_code *c, uint32_t kind, uint32_t index, const tni_value *like, uint32_t mode)
{
    tni_port port = {.kind = kind,
                     .index = index,
                     .value = TNI_NONE,
                     .dtype = like->tensor.dtype,
                     .shape = {.ndim = like->tensor.ndim},
                     .device = like->device,
                     .mode = mode};

    for (int32_t d = 0; d < like->tensor.ndim; d++)
        port.shape.dim[d] = like->tensor.shape[d];
    return tni_vec_push(&c->ports, &port);
}

static void port_bind(tni_code *c, uint32_t port, uint32_t value)
{
    tni_value *v = tni_code_value(c, value);

    ((tni_port *)tni_vec_at(&c->ports, port))->value = value;
    v->place = TNI_PLACE_PORT;
    v->port = port;
}

tn_status tni_code_port_add(tni_code *c, uint32_t kind, uint32_t index, uint32_t value, uint32_t mode)
{
    tn_status st = port_push(c, kind, index, tni_code_value(c, value), mode);

    if (!st)
        port_bind(c, (uint32_t)c->ports.count - 1, value);
    return st;
}

/* All variables and heads come first, in order, whether they are used or not: callers count on it. */
static tn_status first_ports_add(tni_code *c)
{
    const tni_graph *g = c->p->graph;
    const tni_program_spec *s = c->spec;
    tn_status st = TN_OK;

    for (uint32_t v = 0; s->first_node == 0 && v < g->variable_count && !st; v++) {
        const tni_gnode *node = &g->nodes[g->variables[v]];

        if (node->flags & (TNI_GNODE_HEAD_GRADIENT | TNI_GNODE_OLD_GRADIENT))
            continue;
        st = tni_code_port_add(c, TNI_PORT_INPUT, v, c->value_of[node->first_entry], TN_MODE_WRITE);
        c->p->input_count++;
    }
    for (uint32_t h = 0; s->first_node == 0 && h < g->head_count && !st; h++) {
        st = port_push(c, TNI_PORT_OUTPUT, h, tni_code_value(c, c->value_of[g->heads[h]]),
                       s->modes ? s->modes[h] : TN_MODE_WRITE);
        c->p->output_count++;
    }
    return st;
}

/* The old value of a gradient lies where the new one will be written. */
static tn_status old_add(tni_code *c, uint32_t gradient, uint32_t value)
{
    tn_status st = port_push(c, TNI_PORT_GRADIENT, c->spec->gradient_index[gradient],
                             tni_code_value(c, value), TN_MODE_WRITE);

    if (st)
        return st;
    c->gradient_port[gradient] = (uint32_t)c->ports.count - 1;
    port_bind(c, c->gradient_port[gradient], value);
    return TN_OK;
}

/* The entry that a view, or a view of it, shows. */
static uint32_t shown_entry(const tni_code *c, uint32_t entry)
{
    const tni_graph *g = c->p->graph;

    while (node_computed(c, g->entry_node[entry]) &&
           tni_code_root(c, c->value_of[entry]) != c->value_of[entry])
        entry = tni_graph_input(g, &g->nodes[g->entry_node[entry]], 0);
    return entry;
}

tn_status tni_code_outside(tni_code *c, uint32_t operand)
{
    const tni_graph *g = c->p->graph;
    const uint32_t entry = shown_entry(c, operand), value = c->value_of[entry], node = g->entry_node[entry];

    if (node_computed(c, node) || tni_code_value(c, value)->place != TNI_PLACE_NONE ||
        tni_code_root(c, value) != value) /* computed again */
        return TN_OK;
    if (g->nodes[node].flags & TNI_GNODE_HEAD_GRADIENT)
        return tni_code_port_add(c, TNI_PORT_HEAD_GRADIENT, c->spec->head_of[g->nodes[node].variable], value,
                                 TN_MODE_WRITE);
    if (g->nodes[node].flags & TNI_GNODE_OLD_GRADIENT)
        return old_add(c, c->spec->head_of[g->nodes[node].variable], value);
    return c->spec->lender ? tni_code_lent(c, entry)
                           : tni_code_port_add(c, TNI_PORT_ENTRY, entry, value, TN_MODE_WRITE);
}

/* ---- instructions -------------------------------------------------------------------------------- */

/* An instruction without a node of its own that takes `from` to `to`: it serves `node`. */
static tn_status copy_add(tni_code *c, uint32_t node, uint32_t from, uint32_t to, uint32_t mode,
                          bool backward)
{
    const bool between = tni_code_value(c, from)->device != tni_code_value(c, to)->device;
    tni_instruction made = {.node = node,
                            .device = tni_code_value(c, to)->device,
                            .random = TNI_NONE,
                            .workspace = TNI_NONE,
                            .saved = TNI_NONE,
                            .in_count = 1,
                            .out_count = 1,
                            .first_operand = (uint32_t)c->operands.count,
                            .first_link = (uint32_t)c->links.count,
                            .flags = (uint16_t)(TNI_CODE_HELPER | (backward ? TNI_CODE_BACKWARD : 0u))};
    tn_status st;

    if ((st = tni_opset_find(c->p->graph->ops, "_copy", &made.def)) ||
        (st = tni_code_operand_push(c, from, TN_MODE_NONE)) ||
        (st = tni_code_operand_push(c, to, (uint8_t)mode)) ||
        (st = tni_attrs_parse(made.def, 0, NULL, NULL, &made.attrs)))
        return st;
    made.kind = between ? TN_EXEC_COPY : made.def->op->exec;
    tni_code_value(c, to)->def = (uint32_t)c->code.count;
    if ((st = tni_vec_push(&c->code, &made)))
        tni_attrs_release(made.attrs);
    return st;
}

static tn_status border_push(tni_code *c, uint32_t entry, uint32_t value)
{
    const tni_border b = {tni_code_value(c, value)->device, entry, value, c->border_of[entry]};
    const tn_status st = tni_vec_push(&c->borders, &b);

    if (!st)
        c->border_of[entry] = (uint32_t)c->borders.count;
    return st;
}

/* The lender may keep a copy there, and not what it was made of. */
static tn_status border_lent(tni_code *c, uint32_t entry, const tni_value *like, uint32_t *out)
{
    const tni_program *from = c->spec->lender;
    tn_status st;

    for (uint32_t i = 0; from && i < from->border_count; i++) {
        const tni_value *theirs = &from->values[from->borders[i].value];

        if (from->borders[i].entry != entry || theirs->device != like->device ||
            !tni_value_crosses(from, from->borders[i].value))
            continue;
        if ((st = tni_code_value_add(c, like, out)))
            return st;
        tni_code_lend(tni_code_value(c, *out), theirs, &from->values[theirs->root]);
        return border_push(c, entry, *out);
    }
    return TN_OK;
}

/* The copy of an entry on a device that is there, or that the lender keeps; TNI_NONE: none. */
static tn_status border_find(tni_code *c, uint32_t entry, tni_device *d, uint32_t *out)
{
    const uint32_t shown = shown_entry(c, entry);
    tni_value like = *tni_code_value(c, c->value_of[entry]);

    *out = TNI_NONE;
    for (uint32_t at = c->border_of[entry]; at;) {
        const tni_border *b = tni_vec_at(&c->borders, at - 1);

        if (b->device == d) {
            *out = b->value;
            return TN_OK;
        }
        at = b->next;
    }
    if (shown != entry || node_computed(c, c->p->graph->entry_node[entry]))
        return TN_OK;
    like.device = d;
    like.tensor.device = d->index;
    return border_lent(c, entry, &like, out);
}

/* The value of an entry where an instruction wants it: copied there once. What a node changes is copied each
 * time. */
static tn_status value_on(tni_code *c, uint32_t entry, tni_device *d, uint32_t node, uint32_t *out)
{
    const tni_graph *g = c->p->graph;
    tni_value like = *tni_code_value(c, c->value_of[entry]);
    const bool local = like.device == d || !c->border_of;
    tn_status st;

    *out = TNI_NONE;
    if ((!local && (st = border_find(c, entry, d, out))) || *out != TNI_NONE)
        return *out == TNI_NONE ? st : TN_OK;
    *out = c->value_of[entry];
    if ((st = tni_code_outside(c, entry)) || local)
        return st;
    like.device = d;
    like.tensor.device = d->index;
    if ((st = tni_code_value_add(c, &like, out)) ||
        (st = copy_add(c, node, c->value_of[entry], *out, TN_MODE_WRITE, node >= c->spec->backward_node)))
        return st;
    return g->nodes[g->entry_node[entry]].flags & TNI_GNODE_AUX ? TN_OK : border_push(c, entry, *out);
}

static tn_status links_make(tni_code *c, tni_instruction *in, const tni_gnode *node, uint32_t index)
{
    const tni_gnode *source;
    tn_status st = TN_OK;

    in->first_link = (uint32_t)c->links.count;
    if (node->attr_source == TNI_NONE || node->attr_source == index)
        return TN_OK;
    source = &c->p->graph->nodes[node->attr_source];
    for (uint32_t a = 0; !st && source->def && a < node->def->attr_count; a++) {
        const tn_attr_def *to = &node->def->op->attrs[a];
        const tni_attr_link link = {node->attr_source, (uint32_t)tni_attr_index(source->def, to->name), a};

        if (!(to->flags & TN_ATTR_F_RUNTIME) || link.from == (uint32_t)-1 ||
            source->def->op->attrs[link.from].type != to->type)
            continue;
        st = tni_vec_push(&c->links, &link);
        in->link_count++;
    }
    return st;
}

static bool mutates(const tni_code *c, const tni_opdef *def)
{
    return !(def->op->flags & TN_OP_MUTATES_TRAINING) || c->spec->flags & TN_NODE_TRAIN;
}

/* A value without memory, for kernels that read the shape of an entry and nothing else. */
static tn_status shape_value(tni_code *c, uint32_t entry, tni_device *d, uint32_t *out)
{
    const uint32_t known = c->shape_of ? c->shape_of[entry] : 0;
    tni_value like = *tni_code_value(c, c->value_of[entry]);
    tn_status st;

    *out = known - 1;
    if (known && tni_code_value(c, *out)->device == d)
        return TN_OK;
    if (!c->shape_of && !(c->shape_of = tni_calloc(c->p->graph->entry_count + 1u, sizeof *c->shape_of)))
        return TN_E_NOMEM;
    like.device = d;
    like.tensor.device = d->index;
    if ((st = tni_code_value_add(c, &like, out)))
        return st;
    tni_code_value(c, *out)->place = TNI_PLACE_SHAPE;
    c->shape_of[entry] = *out + 1;
    return TN_OK;
}

/* The values that an instruction reads, where it runs; a copy of the core's takes its own. */
static tn_status inputs_find(tni_code *c, const tni_instruction *in, const tni_gnode *node, uint32_t *from)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < node->input_count; i++) {
        const uint32_t entry = tni_graph_input(c->p->graph, node, i), value = c->value_of[entry];

        if (in->kind == TN_EXEC_KERNEL && tn_op_shape_only(in->def->op, node->input_count, i) &&
            tn_shape_known(&c->p->graph->shapes[entry])) {
            st = shape_value(c, entry, tni_code_device(c, in), &from[i]);
            continue;
        }
        st = value_on(c, entry,
                      in->kind == TN_EXEC_COPY ? tni_code_value(c, value)->device : tni_code_device(c, in),
                      in->node, &from[i]);
    }
    return st;
}

static tn_status operands_make(tni_code *c, tni_instruction *in, const tni_gnode *node)
{
    const tni_graph *g = c->p->graph;
    uint32_t few[16], *from = few;
    tn_status st;

    if (node->input_count > 16 && !(from = tni_calloc(node->input_count, sizeof *from)))
        return TN_E_NOMEM;
    st = inputs_find(c, in, node, from);
    in->first_operand = (uint32_t)c->operands.count;
    in->in_count = node->input_count;
    for (uint32_t i = 0; !st && i < node->input_count; i++)
        st = tni_code_operand_push(c, from[i], TN_MODE_NONE);
    if (from != few)
        tni_free(from);
    for (uint32_t i = 0; !st && i < node->output_count; i++)
        st = tni_code_operand_push(c, c->value_of[node->first_entry + i], TN_MODE_WRITE);
    in->out_count = node->output_count;
    for (uint32_t i = 0; !st && i < node->input_count; i++)
        if (tn_op_mutates(node->def->op, node->input_count, i)) {
            st = tni_code_operand_push(c, c->value_of[tni_graph_input(g, node, i)],
                                       mutates(c, node->def) ? TN_MODE_WRITE : TN_MODE_NONE);
            in->out_count++;
        }
    return st;
}

static void defs_note(tni_code *c, const tni_instruction *in, uint32_t outputs)
{
    const uint32_t *operand = tni_code_operands(c, in);

    for (uint32_t o = 0; o < outputs; o++)
        tni_code_value(c, operand[in->in_count + o])->def = (uint32_t)c->code.count;
}

/* What reads nothing of its input but the shape, which is known here, reads nothing. */
static const char *filled(const tni_gnode *node)
{
    static const char *const pairs[][2] = {{"zeros_like", "_zeros"}, {"ones_like", "_ones"}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!strcmp(node->def->op->name, pairs[i][0]))
            return pairs[i][1];
    return NULL;
}

static tn_status fill_lower(tni_code *c, uint32_t index, const char *op)
{
    const tni_gnode *node = &c->p->graph->nodes[index];
    tni_instruction in = {.node = index,
                          .device = node->device,
                          .random = TNI_NONE,
                          .workspace = TNI_NONE,
                          .saved = TNI_NONE,
                          .out_count = 1,
                          .first_operand = (uint32_t)c->operands.count,
                          .first_link = (uint32_t)c->links.count,
                          .flags = index >= c->spec->backward_node ? TNI_CODE_BACKWARD : 0};
    tn_status st;

    if ((st = tni_opset_find(c->p->graph->ops, op, &in.def)) ||
        (st = tni_code_operand_push(c, c->value_of[node->first_entry], TN_MODE_WRITE)) ||
        (st = tni_attrs_parse(in.def, 0, NULL, NULL, &in.attrs)))
        return st;
    defs_note(c, &in, 1);
    c->code_of[index] = (uint32_t)c->code.count;
    if ((st = tni_vec_push(&c->code, &in)))
        tni_attrs_release(in.attrs);
    return st;
}

static tn_status node_lower(tni_code *c, uint32_t index)
{
    const tni_gnode *node = &c->p->graph->nodes[index];
    tni_instruction in = {.def = tni_op_meaning(node->def),
                          .node = index,
                          .device = node->device,
                          .random = node->random,
                          .workspace = TNI_NONE,
                          .saved = TNI_NONE,
                          .kind = node->def->op->exec,
                          .flags = index >= c->spec->backward_node ? TNI_CODE_BACKWARD : 0};
    tn_status st;

    if (filled(node))
        return fill_lower(c, index, filled(node));
    if ((st = operands_make(c, &in, node)) || (st = links_make(c, &in, node, index)))
        return st;
    defs_note(c, &in, node->output_count);
    in.attrs = tni_attrs_retain(node->attrs);
    c->code_of[index] = (uint32_t)c->code.count;
    if ((st = tni_vec_push(&c->code, &in)))
        tni_attrs_release(in.attrs);
    return st;
}

/* A view of a value on another device: its bytes come here. */
static tn_status view_lower(tni_code *c, uint32_t index)
{
    const tni_gnode *node = &c->p->graph->nodes[index];
    const uint32_t from = tni_graph_input(c->p->graph, node, 0);
    const tn_status st = shows(c, node->first_entry) ? TN_OK : tni_code_outside(c, from);

    if (st || shows(c, node->first_entry))
        return st;
    return copy_add(c, index, c->value_of[from], c->value_of[node->first_entry], TN_MODE_WRITE,
                    index >= c->spec->backward_node);
}

/* ---- heads and gradients ------------------------------------------------------------------------- */

typedef struct want {                  /* a head or a gradient, in the list of its entry */
    uint32_t entry, mode, value, next; /* value: that lies at its port, once it is there */
    bool gradient;
} want;

typedef struct wants {
    want *list;        /* heads, then gradients */
    uint32_t *first;   /* per entry; TNI_NONE */
    uint32_t *readers; /* per entry: how often nodes read it */
    uint32_t heads;    /* in the list */
} wants;

static void wants_fini(wants *w)
{
    tni_free(w->list);
    tni_free(w->first);
    tni_free(w->readers);
}

static void want_set(wants *w, uint32_t at, uint32_t entry, uint32_t mode, bool gradient)
{
    w->list[at] = (want){entry, mode, TNI_NONE, TNI_NONE, gradient};
    if (entry == TNI_NONE)
        return;
    w->list[at].next = w->first[entry];
    w->first[entry] = at;
}

static tn_status wants_init(const tni_code *c, const uint8_t *wanted, wants *w)
{
    const tni_graph *g = c->p->graph;
    const tni_program_spec *s = c->spec;
    const uint32_t heads = w->heads = s->first_node ? 0 : g->head_count;

    w->list = tni_calloc((uint64_t)g->head_count + s->gradient_count + 1, sizeof *w->list);
    w->first = tni_alloc((g->entry_count + 1ull) * sizeof *w->first);
    w->readers = tni_calloc(g->entry_count + 1u, sizeof *w->readers);
    if (!w->list || !w->first || !w->readers)
        return TN_E_NOMEM;
    memset(w->first, 0xff, (g->entry_count + 1ull) * sizeof *w->first);
    for (uint32_t i = s->gradient_count; i-- > 0;) /* the first of an entry comes to the front of its list */
        want_set(w, heads + i, s->gradients[i], s->gradient_modes[i], true);
    for (uint32_t i = heads; i-- > 0;)
        want_set(w, i, g->heads[i], s->modes ? s->modes[i] : TN_MODE_WRITE, false);
    for (uint32_t n = s->first_node; n < g->node_count; n++)
        for (uint32_t k = 0; wanted[n] && k < g->nodes[n].input_count; k++)
            w->readers[tni_graph_input(g, &g->nodes[n], k)]++;
    return TN_OK;
}

/* Where its array lies. */
static tni_device *want_device(const tni_code *c, const wants *w, uint32_t at)
{
    const want *one = &w->list[at];
    tni_device *const *devices = c->spec->gradient_devices;

    if (!one->gradient || !devices)
        return tni_code_value(c, c->value_of[one->entry])->device;
    return devices[at - w->heads] ? devices[at - w->heads] : c->spec->device;
}

/* No kernel makes it, so nothing but a copy behind it could add. */
static bool overwrites(const tni_opdef *def)
{
    return def->op->exec == TN_EXEC_COPY || def->op->exec == TN_EXEC_SUBGRAPH;
}

/* Is it written by its own instruction, right into its array? If it is to be added up, nobody else may read
 * it, since its memory then holds more than the result. */
static bool want_direct(const tni_code *c, const wants *w, uint32_t at)
{
    const want *one = &w->list[at];
    const uint32_t node = c->p->graph->entry_node[one->entry];

    if (!node_computed(c, node) || c->p->graph->nodes[node].def->op->flags & TN_OP_VIEW ||
        w->first[one->entry] != at ||
        want_device(c, w, at) != tni_code_value(c, c->value_of[one->entry])->device)
        return false;
    if (one->mode == TN_MODE_ADD && overwrites(c->p->graph->nodes[node].def))
        return false;
    return one->mode != TN_MODE_ADD || (!w->readers[one->entry] && one->next == TNI_NONE);
}

static void mode_set(const tni_code *c, uint32_t value, uint32_t mode)
{
    const tni_instruction *in = tni_code_at(c, tni_code_value(c, value)->def);

    for (uint32_t o = 0; o < in->out_count; o++)
        if (tni_code_operands(c, in)[in->in_count + o] == value)
            tni_code_modes(c, in)[in->in_count + o] = (uint8_t)mode;
}

/* A value of its own for the port of want `at`. From another device it comes by a copy, which cannot add. */
static tn_status want_copy(tni_code *c, wants *w, uint32_t at)
{
    want *one = &w->list[at];
    const uint32_t node = c->p->graph->entry_node[one->entry];
    uint32_t from = c->value_of[one->entry], local = TNI_NONE;
    tni_value like = *tni_code_value(c, from);
    tn_status st;

    like.device = want_device(c, w, at);
    like.tensor.device = like.device->index;
    if (c->border_of && like.device != tni_code_value(c, from)->device) {
        if ((st = border_find(c, one->entry, like.device, &local)))
            return st;
        from = local == TNI_NONE ? from : local;
    }
    if (local == TNI_NONE && (st = tni_code_outside(c, one->entry)))
        return st;
    if (one->mode == TN_MODE_ADD && like.device != tni_code_value(c, from)->device) {
        if ((st = tni_code_value_add(c, &like, &local)) ||
            (st = copy_add(c, node, from, local, TN_MODE_WRITE, one->gradient)))
            return st;
        from = local;
    }
    if ((st = tni_code_value_add(c, &like, &one->value)))
        return st;
    return copy_add(c, node, from, one->value, one->mode, one->gradient);
}

/* Those of one node's outputs, now that they are there; gradients in the backward phase only. */
static tn_status wants_serve(tni_code *c, wants *w, uint32_t node, bool gradients)
{
    const tni_gnode *n = &c->p->graph->nodes[node];
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < n->output_count; o++)
        for (uint32_t at = w->first[n->first_entry + o]; at != TNI_NONE && !st; at = w->list[at].next) {
            want *one = &w->list[at];

            if (one->value != TNI_NONE || one->gradient != gradients)
                continue;
            if (!want_direct(c, w, at)) {
                st = want_copy(c, w, at);
                continue;
            }
            one->value = c->value_of[one->entry];
            mode_set(c, one->value, one->mode);
        }
    return st;
}

/* ---- the whole ----------------------------------------------------------------------------------- */

/* Gradients that are values of the forward part. */
static tn_status backward_begin(tni_code *c, wants *w)
{
    tn_status st = TN_OK;

    for (uint32_t n = 0; n < c->spec->backward_node && !st; n++)
        st = wants_serve(c, w, n, true);
    return st;
}

static tn_status nodes_lower(tni_code *c, wants *w, const uint8_t *wanted)
{
    const tni_graph *g = c->p->graph;
    const tni_program_spec *s = c->spec;
    tn_status st = TN_OK;

    for (uint32_t n = 0; n < g->node_count && !st; n++) {
        const bool backward = n >= s->backward_node;

        if (n == s->backward_node && (st = backward_begin(c, w)))
            break;
        if (node_computed(c, n) && wanted[n])
            st = is_view(c, n) ? view_lower(c, n) : node_lower(c, n);
        if (!st)
            st = wants_serve(c, w, n, backward);
        if (!st && backward)
            st = wants_serve(c, w, n, false);
    }
    if (!st && s->backward_node >= g->node_count)
        st = backward_begin(c, w);
    return st;
}

static tn_status last_ports_add(tni_code *c, const wants *w)
{
    const uint32_t heads = c->p->output_count;
    tn_status st = TN_OK;

    for (uint32_t h = 0; h < heads; h++)
        port_bind(c, c->p->input_count + h, w->list[h].value);
    for (uint32_t i = 0; i < c->spec->gradient_count && !st; i++) {
        const uint32_t value = w->list[heads + i].value;

        if (value != TNI_NONE && c->gradient_port[i] != TNI_NONE)
            port_bind(c, c->gradient_port[i], value);
        else if (value != TNI_NONE)
            st = tni_code_port_add(c, TNI_PORT_GRADIENT, c->spec->gradient_index[i], value,
                                   c->spec->gradient_modes[i]);
    }
    return st;
}

static void wanted_mark(const tni_code *c, uint8_t *wanted)
{
    const tni_graph *g = c->p->graph;

    for (uint32_t i = 0; i < c->spec->gradient_count; i++)
        if (c->spec->gradients[i] != TNI_NONE)
            wanted[g->entry_node[c->spec->gradients[i]]] = 1;
    tni_graph_wanted(g, c->spec->first_node, wanted);
}

/* Views of what is computed again lie in that, too. */
static void roots_settle(const tni_code *c)
{
    for (uint32_t v = 0; c->lent_of && v < c->values.count; v++) {
        tni_value *value = tni_code_value(c, v);
        const tni_value *in = tni_code_value(c, value->root);

        if (in->root == value->root)
            continue;
        value->root = in->root;
        value->delta += in->delta;
    }
}

tn_status tni_code_lower(tni_code *c)
{
    const tni_graph *g = c->p->graph;
    uint8_t *wanted = tni_calloc(g->node_count + 1u, 1);
    wants w = {0};
    tn_status st = wanted ? TN_OK : TN_E_NOMEM;

    if (!st && !(st = values_make(c)) && !(st = first_ports_add(c))) {
        wanted_mark(c, wanted);
        if (!(st = wants_init(c, wanted, &w)) && !(st = nodes_lower(c, &w, wanted)))
            st = last_ports_add(c, &w);
        roots_settle(c);
    }
    wants_fini(&w);
    tni_free(wanted);
    return st;
}
