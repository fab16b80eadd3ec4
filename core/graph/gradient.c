/*
 * Reverse mode on the flat graph. From the last node to the first: what arrived at a node's outputs is
 * summed, its gradient function makes further nodes at the end of the graph, what it sets becomes one term of
 * its inputs' sums. Terms are added one by one in the order in which they arrive, that is the last user first
 * by order of creation. Only nodes between a head and a wanted variable are visited, and none behind a node
 * that lets no gradient through. A failure cuts the graph back to what it was.
 */
#include <string.h>

#include "graph/walk.h"

#define ADD_CAP 8u /* MXNET_EXEC_INPLACE_GRAD_SUM_CAP */

typedef struct term { /* one summand of an entry's gradient; lists by entry, in order of arrival */
    uint32_t entry, next;
} term;

typedef struct sums {     /* per entry of the forward graph */
    uint32_t first, last; /* terms, TNI_NONE */
    uint32_t total;       /* entry of their sum once made, TNI_NONE */
} sums;

typedef struct gradient {
    tni_graph *g;
    const tni_gradient_spec *spec;
    uint32_t node_count, entry_count; /* before anything was added */
    sums *sums;
    tni_vec terms;
    uint8_t *wanted;  /* per node: a gradient that arrives is wanted, or reaches a wanted entry */
    uint8_t *passes;  /* per node: it reaches one further on */
    uint8_t *is_head; /* per node: one of its outputs is a head */
    uint32_t add_cap;
    const tni_opdef *add_n, *grad_add;
} gradient;

typedef struct call { /* one call of a gradient function */
    gradient *x;
    uint32_t node;
    uint32_t emitted;
    uint32_t *set; /* per input: entry, TNI_NONE */
} call;

/* ---- nodes --------------------------------------------------------------------------------------- */

static tn_status node_add(gradient *x, const tni_opdef *def, tni_attrs *attrs, const char *base,
                          const char *suffix, uint32_t number, uint32_t count, const uint32_t *inputs,
                          uint32_t *node)
{
    tni_str name;
    tn_status st;

    tni_str_init(&name, 2 * TN_NAME_MAX);
    tni_str_addf(&name, "%s%s", base, suffix);
    if (number)
        tni_str_addf(&name, "%u", number);
    st = name.status;
    if (!st)
        st = tni_graph_add_node(x->g, def, attrs, name.text, count, inputs, node);
    if (!st)
        x->g->nodes[*node].flags |= TNI_GNODE_BACKWARD;
    tni_str_fini(&name);
    return st;
}

/* Gradients are made where what they belong to is made. */
static tni_device *device_at(const gradient *x, uint32_t entry)
{
    return x->g->nodes[x->g->entry_node[entry]].device;
}

/* A node without attributes of its own, such as zeros_like. */
static tn_status plain_add(gradient *x, const char *op, const char *base, const char *suffix, uint32_t input,
                           uint32_t *entry)
{
    const tni_opdef *def = NULL;
    tni_attrs *attrs = NULL;
    uint32_t node = 0;
    tn_status st;

    if ((st = tni_opset_find(x->g->ops, op, &def)) || (st = tni_attrs_parse(def, 0, NULL, NULL, &attrs)))
        return st;
    st = node_add(x, def, attrs, base, suffix, 0, 1, &input, &node);
    tni_attrs_release(attrs);
    if (st)
        return st;
    *entry = x->g->nodes[node].first_entry;
    x->g->like[*entry] = input;
    x->g->nodes[node].device = device_at(x, input);
    return TN_OK;
}

static tn_status count_attrs(const tni_opdef *def, uint32_t count, tni_attrs **out)
{
    char text[16];
    const char *texts[1] = {text}, *names[1];

    if (def->count_attr < 0)
        return tni_attrs_parse(def, 0, NULL, NULL, out);
    snprintf(text, sizeof text, "%u", count);
    names[0] = def->op->attrs[def->count_attr].name;
    return tni_attrs_parse(def, 1, names, texts, out);
}

static tn_status sum_add(gradient *x, const tni_opdef *def, const char *base, uint32_t number, uint32_t count,
                         const uint32_t *entries, uint32_t *out)
{
    tni_attrs *attrs = NULL;
    uint32_t node = 0;
    tn_status st = count_attrs(def, count, &attrs);

    if (!st)
        st = node_add(x, def, attrs, base, "_sum_grad", number, count, entries, &node);
    tni_attrs_release(attrs);
    if (!st)
        *out = x->g->nodes[node].first_entry;
    return st;
}

/* ---- sums ---------------------------------------------------------------------------------------- */

static tn_status term_push(gradient *x, uint32_t entry, uint32_t grad)
{
    const term t = {grad, TNI_NONE};
    sums *s = &x->sums[entry];
    tn_status st = tni_vec_push(&x->terms, &t);

    if (st)
        return st;
    if (s->first == TNI_NONE)
        s->first = (uint32_t)x->terms.count - 1;
    else
        ((term *)tni_vec_at(&x->terms, s->last))->next = (uint32_t)x->terms.count - 1;
    s->last = (uint32_t)x->terms.count - 1;
    if (x->g->like[grad] == TNI_NONE && grad >= x->entry_count && grad != entry)
        x->g->like[grad] = entry;
    return TN_OK;
}

static bool is_zeros(const gradient *x, uint32_t entry)
{
    const tni_opdef *def = x->g->nodes[x->g->entry_node[entry]].def;

    return def && (strcmp(def->op->name, "zeros_like") == 0 || strcmp(def->op->name, "_zeros") == 0);
}

/* The terms of an entry without zeros, in `list`; all zeros: one of them stays. */
static uint32_t terms_collect(const gradient *x, const sums *s, uint32_t *list)
{
    uint32_t count = 0, zero = TNI_NONE;

    for (uint32_t i = s->first; i != TNI_NONE;) {
        const term *t = tni_vec_at(&x->terms, i);

        if (is_zeros(x, t->entry))
            zero = t->entry;
        else
            list[count++] = t->entry;
        i = t->next;
    }
    if (count == 0 && zero != TNI_NONE)
        list[count++] = zero;
    return count;
}

/* Does add_n round once what a chain rounds after each addition? It adds in a wider type. */
static bool add_n_differs(int32_t dtype)
{
    return dtype >= 0 && tni_dtype_is_float(dtype) && tn_dtype_bytes(dtype) < sizeof(float);
}

/* One add_n while there are few terms, with the bits of a chain; else a chain, which needs no more memory
 * than one of them. */
static tn_status terms_add(gradient *x, uint32_t entry, uint32_t count, const uint32_t *list, uint32_t *out)
{
    const char *base = x->g->nodes[x->g->entry_node[entry]].name;
    uint32_t total = list[0];
    tn_status st;

    if (count < x->add_cap && !add_n_differs(x->g->dtypes[entry])) {
        if (!x->add_n && (st = tni_opset_find(x->g->ops, "add_n", &x->add_n)))
            return st;
        if (!(st = sum_add(x, x->add_n, base, 0, count, list, out)))
            x->g->nodes[x->g->entry_node[*out]].device = device_at(x, entry);
        return st;
    }
    if (!x->grad_add && (st = tni_opset_find(x->g->ops, "_grad_add", &x->grad_add)))
        return st;
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t pair[2] = {total, list[i]};

        if ((st = sum_add(x, x->grad_add, base, i, 2, pair, &total)))
            return st;
        x->g->nodes[x->g->entry_node[total]].device = device_at(x, entry);
    }
    *out = total;
    return TN_OK;
}

/* A variable that goes with `entry`, called as its node is and `suffix`. */
static tn_status like_variable(gradient *x, uint32_t entry, const char *suffix, uint32_t flags,
                               uint32_t *node)
{
    tni_graph *g = x->g;
    uint32_t source = g->entry_node[entry];
    tni_str name;
    tn_status st;

    tni_str_init(&name, 2 * TN_NAME_MAX);
    tni_str_addf(&name, "%s%s", g->nodes[source].name, suffix);
    if (entry != g->nodes[source].first_entry)
        tni_str_addf(&name, "%u", entry - g->nodes[source].first_entry);
    st = name.status ? name.status : tni_graph_add_variable(g, name.text, node);
    tni_str_fini(&name);
    if (st)
        return st;
    g->nodes[*node].flags |= flags | TNI_GNODE_BACKWARD;
    g->nodes[*node].device = g->nodes[source].device;
    g->like[g->nodes[*node].first_entry] = entry;
    return TN_OK;
}

/* The gradient of an entry: TNI_NONE if nothing arrives. `old`: where the variable goes that a sum of several
 * terms begins with; NULL: none. */
static tn_status total_of(gradient *x, uint32_t entry, uint32_t *old, uint32_t *out)
{
    sums *s = &x->sums[entry];
    uint32_t *list, count = 1; /* room for the old value */
    tn_status st = TN_OK;

    *out = s->total;
    if (s->total != TNI_NONE || s->first == TNI_NONE)
        return TN_OK;
    for (uint32_t i = s->first; i != TNI_NONE; i = ((term *)tni_vec_at(&x->terms, i))->next)
        count++;
    list = tni_calloc(count, sizeof *list);
    if (!list)
        return TN_E_NOMEM;
    count = terms_collect(x, s, list + 1);
    s->total = list[1];
    if (count > 1 && old && !(st = like_variable(x, entry, "_old_grad", TNI_GNODE_OLD_GRADIENT, old)))
        list[0] = x->g->nodes[*old].first_entry;
    if (count > 1 && !st) {
        st = terms_add(x, entry, count + (old != NULL), old ? list : list + 1, &s->total);
        if (!st && x->g->like[s->total] == TNI_NONE)
            x->g->like[s->total] = entry;
    }
    tni_free(list);
    *out = s->total;
    return st;
}

/* ---- the table that gradient functions call ------------------------------------------------------ */

static tn_edge edge_of(uint32_t node, uint32_t index)
{
    return (tn_edge){.node = (void *)(uintptr_t)((uint64_t)node + 1), .index = index};
}

static tn_edge entry_edge(const tni_graph *g, uint32_t entry)
{
    uint32_t node = g->entry_node[entry];

    return edge_of(node, entry - g->nodes[node].first_entry);
}

static tn_status edge_entry(const tni_graph *g, tn_edge edge, uint32_t *entry)
{
    uint64_t node = (uint64_t)(uintptr_t)edge.node - 1;

    if (node >= g->node_count || edge.index >= g->nodes[node].output_count || edge.reserved)
        return tni_error(TN_E_INTERNAL, "a gradient function handed over an edge that does not exist");
    *entry = g->nodes[node].first_entry + edge.index;
    return TN_OK;
}

static tn_edge call_input(tn_grad *grad, uint32_t index)
{
    const call *c = grad->self;
    const tni_graph *g = c->x->g;

    if (index >= g->nodes[c->node].input_count)
        return (tn_edge){NULL, UINT32_MAX, 0};
    return entry_edge(g, tni_graph_input(g, &g->nodes[c->node], index));
}

static tn_edge call_output(tn_grad *grad, uint32_t index)
{
    const call *c = grad->self;

    return edge_of(c->node, index);
}

static tn_edge call_head(tn_grad *grad, uint32_t index)
{
    const call *c = grad->self;
    const tni_gnode *n = &c->x->g->nodes[c->node];
    uint32_t total = index < n->output_count ? c->x->sums[n->first_entry + index].total : TNI_NONE;

    return total == TNI_NONE ? (tn_edge){NULL, index, 0} : entry_edge(c->x->g, total);
}

static int32_t call_needs(tn_grad *grad, uint32_t index)
{
    const call *c = grad->self;
    const tni_graph *g = c->x->g;
    const tni_gnode *n = &g->nodes[c->node];

    return index < n->input_count && c->x->wanted[g->entry_node[tni_graph_input(g, n, index)]];
}

/* An edge without a node is a head that nothing arrives at: zeros like that output. */
static tn_status emit_input(call *c, tn_edge edge, uint32_t *entry)
{
    gradient *x = c->x;
    const tni_gnode *n = &x->g->nodes[c->node];
    uint32_t output = n->first_entry + edge.index;
    tn_status st;

    if (edge.node)
        return edge_entry(x->g, edge, entry);
    if (edge.index >= n->output_count)
        return tni_error(TN_E_INTERNAL, "a gradient function handed over an edge that does not exist");
    st = plain_add(x, "zeros_like", n->name, "_head_zeros", output, entry);
    if (!st)
        x->sums[output].total = *entry; /* made once */
    return st;
}

static tn_status emit_attrs(const tni_opdef *def, const tni_gnode *n, const tn_emit *e, tni_attrs **out)
{
    const char *names[128], *texts[128];

    if (e->attr_count > 128)
        return tni_error(TN_E_ATTR, "%s: %u attributes, at most 128 are allowed", def->op->name,
                         e->attr_count);
    /* Values of the forward's call would come in the place of the text. */
    for (uint32_t i = 0; e->flags & TN_EMIT_INHERIT && i < e->attr_count; i++) {
        const int32_t at = e->attrs[i].name ? tni_attr_index(def, e->attrs[i].name) : -1;

        if (at >= 0 && def->op->attrs[at].flags & TN_ATTR_F_RUNTIME)
            return tni_error(TN_E_UNSUPPORTED, "the gradient of %s inherits %s of %s, and gives it as text",
                             n->def->op->name, e->attrs[i].name, def->op->name);
    }
    if ((e->flags & TN_EMIT_INHERIT) && n->attrs)
        return tni_attrs_inherit(def, n->attrs, e->attr_count, e->attrs, out);
    for (uint32_t i = 0; i < e->attr_count; i++) {
        names[i] = e->attrs[i].name;
        texts[i] = e->attrs[i].text;
    }
    return tni_attrs_parse(def, e->attr_count, names, texts, out);
}

static tn_status emit_node(call *c, const tn_emit *e, tn_edge *out)
{
    tni_graph *g = c->x->g;
    uint32_t *inputs = tni_calloc(e->in_count, sizeof *inputs);
    const tni_opdef *def = NULL;
    tni_attrs *attrs = NULL;
    uint32_t node = 0;
    tn_status st = inputs ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < e->in_count && !st; i++)
        st = emit_input(c, e->in[i], &inputs[i]);
    if (st || (st = tni_opset_find(g->ops, e->op, &def)) ||
        (st = emit_attrs(def, &g->nodes[c->node], e, &attrs)) ||
        (st = node_add(c->x, def, attrs, g->nodes[c->node].name, "_backward", c->emitted, e->in_count, inputs,
                       &node)))
        goto cleanup;
    c->emitted++;
    g->nodes[node].device = g->nodes[c->node].device;
    if (e->flags & TN_EMIT_INHERIT)
        g->nodes[node].attr_source = g->nodes[c->node].attr_source;
    if (e->flags & TN_EMIT_BACKWARD) {
        g->nodes[node].forward = c->node;
        g->nodes[node].subgraphs = g->nodes[c->node].subgraphs;
        g->nodes[node].subgraph_count = g->nodes[c->node].subgraph_count;
    }
    *out = edge_of(node, 0);

cleanup:
    tni_attrs_release(attrs);
    tni_free(inputs);
    return st;
}

static tn_status call_emit(tn_grad *grad, const tn_emit *e, tn_edge *out)
{
    tn_status st;

    if (!e || !out || e->struct_size < TN_END(tn_emit, attr_count) || !e->op ||
        e->in_count > TN_NODE_INPUTS_MAX || (e->in_count && !e->in) || (e->attr_count && !e->attrs))
        return tni_error(TN_E_INTERNAL, "a gradient function emits a node that is not filled in");
    if (e->flags & ~TN_EMIT_KNOWN)
        return tni_error(TN_E_UNSUPPORTED,
                         "a gradient function emits %.80s with the flags %#x, which are not known", e->op,
                         e->flags & ~TN_EMIT_KNOWN);
    st = emit_node(grad->self, e, out);
    if (st && grad->err->code == TN_OK)
        tni_error_get(grad->err);
    return st;
}

static tn_status call_set(tn_grad *grad, uint32_t input, tn_edge edge)
{
    call *c = grad->self;

    if (input >= c->x->g->nodes[c->node].input_count)
        return tni_error(TN_E_INTERNAL, "a gradient function sets the gradient of input %u of %u", input,
                         c->x->g->nodes[c->node].input_count);
    c->set[input] = TNI_NONE;
    return edge.node ? edge_entry(c->x->g, edge, &c->set[input]) : TN_OK;
}

static const tn_grad_ops grad_ops = {
    .struct_size = sizeof(tn_grad_ops),
    .input = call_input,
    .output = call_output,
    .head = call_head,
    .needs = call_needs,
    .emit = call_emit,
    .set = call_set,
};

/* ---- one node ------------------------------------------------------------------------------------ */

static tn_status gradient_failed(const tni_gnode *n, tn_status st, const tn_err *err)
{
    tn_err last;

    tni_error_get(&last);
    return tni_error(st, "gradient of node \"%.80s\" (%s): %.300s", n->name, n->def->op->name,
                     err->message[0]   ? err->message
                     : last.code == st ? last.message
                                       : "its function failed");
}

static tn_status node_call(gradient *x, uint32_t node, uint32_t *set)
{
    const tni_gnode n = x->g->nodes[node]; /* a copy: the array grows */
    call c = {.x = x, .node = node, .set = set};
    tn_err err = {.code = TN_OK};
    tn_grad grad = {.struct_size = sizeof grad,
                    .flags = x->g->train || n.flags & TNI_GNODE_TRAIN ? TN_GRAD_TRAIN : 0u,
                    .op = tni_op_argument(n.def, TNI_OF_GRADIENT),
                    .attrs = n.attrs ? n.attrs->values : n.def->defaults,
                    .attr_count = n.def->attr_count,
                    .in_count = n.input_count,
                    .out_count = n.output_count,
                    .err = &err,
                    .ops = &grad_ops,
                    .self = &c};
    tn_status st;

    for (uint32_t i = 0; i < n.input_count; i++)
        set[i] = TNI_NONE;
    tni_error_clear();
    st = n.def->op->gradient(&grad);
    if (st)
        return gradient_failed(&n, st, &err);
    for (uint32_t i = 0; i < n.input_count && !st; i++) {
        uint32_t e = tni_graph_input(x->g, &n, i);

        if (set[i] != TNI_NONE && x->wanted[x->g->entry_node[e]])
            st = term_push(x, e, set[i]);
    }
    return st;
}

static tn_status node_visit(gradient *x, uint32_t node)
{
    const tni_gnode *n = &x->g->nodes[node];
    uint32_t first = n->first_entry, count = n->output_count, inputs = n->input_count;
    bool arrives = x->is_head[node] && (n->def->op->flags & TN_OP_IGNORE_HEAD);
    uint32_t *set;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < count && !st; i++) {
        uint32_t total = TNI_NONE;

        st = total_of(x, first + i, NULL, &total);
        arrives = arrives || total != TNI_NONE;
    }
    if (st || !arrives)
        return st;
    n = &x->g->nodes[node]; /* sums may have moved it */
    if (!n->def->op->gradient)
        return tni_error(TN_E_UNSUPPORTED,
                         "operator %s (node \"%.80s\") has no gradient; stop it there with BlockGrad",
                         n->def->op->name, n->name);
    set = tni_calloc(inputs, sizeof *set);
    if (!set)
        return TN_E_NOMEM;
    st = node_call(x, node, set);
    tni_free(set);
    return st;
}

/* ---- heads --------------------------------------------------------------------------------------- */

static tn_status head_start(gradient *x, uint32_t entry, uint32_t *head_var)
{
    uint32_t node = x->g->entry_node[entry], made = 0, grad = TNI_NONE;
    const tni_gnode *n = &x->g->nodes[node];
    tn_status st;

    *head_var = TNI_NONE;
    x->is_head[node] = 1;
    if (!x->wanted[node] || (n->def && (n->def->op->flags & TN_OP_IGNORE_HEAD)))
        return TN_OK;
    if (x->spec->ones)
        return (st = plain_add(x, "ones_like", n->name, "_head_ones", entry, &grad))
                   ? st
                   : term_push(x, entry, grad);
    st = like_variable(x, entry, "_head_grad", TNI_GNODE_HEAD_GRADIENT, &made);
    if (st)
        return st;
    *head_var = made;
    return term_push(x, entry, x->g->nodes[made].first_entry);
}

static tn_status spec_check(const tni_graph *g, const tni_gradient_spec *spec)
{
    for (uint32_t i = 0; spec->heads && i < spec->head_count; i++)
        if (spec->heads[i] >= g->entry_count)
            return tni_error(TN_E_ARG, "head %u is entry %u of %u", i, spec->heads[i], g->entry_count);
    for (uint32_t i = 0; i < spec->wanted_count; i++)
        if (spec->entries ? spec->entries[i] >= g->entry_count
                          : spec->wanted[i] >= g->node_count || g->nodes[spec->wanted[i]].def)
            return tni_error(TN_E_ARG, "the gradient of node %u is asked for, which is no variable",
                             spec->entries ? spec->entries[i] : spec->wanted[i]);
    return TN_OK;
}

static tn_status gradient_init(gradient *x, tni_graph *g, const tni_gradient_spec *spec)
{
    *x = (gradient){.g = g,
                    .spec = spec,
                    .node_count = g->node_count,
                    .entry_count = g->entry_count,
                    .add_cap = spec->add_cap ? spec->add_cap : ADD_CAP};
    tni_vec_init(&x->terms, sizeof(term), UINT32_MAX / 2);
    x->sums = tni_calloc(g->entry_count, sizeof *x->sums);
    x->wanted = tni_calloc(g->node_count, 1);
    x->passes = tni_calloc(g->node_count, 1);
    x->is_head = tni_calloc(g->node_count, 1);
    if (!x->sums || !x->wanted || !x->passes || !x->is_head)
        return TN_E_NOMEM;
    for (uint32_t e = 0; e < g->entry_count; e++)
        x->sums[e] = (sums){TNI_NONE, TNI_NONE, TNI_NONE};
    for (uint32_t i = 0; i < spec->wanted_count; i++)
        x->wanted[spec->entries ? g->entry_node[spec->entries[i]] : spec->wanted[i]] = 1;
    for (uint32_t n = 0; n < g->node_count; n++) {
        if (g->nodes[n].def && (g->nodes[n].def->op->flags & TN_OP_ZERO_GRADIENT))
            continue;
        for (uint32_t i = 0; i < g->nodes[n].input_count && !x->passes[n]; i++)
            x->passes[n] = x->wanted[g->entry_node[tni_graph_input(g, &g->nodes[n], i)]];
        x->wanted[n] |= x->passes[n];
    }
    return TN_OK;
}

static uint32_t wanted_entry(const gradient *x, uint32_t i)
{
    return x->spec->entries ? x->spec->entries[i] : x->g->nodes[x->spec->wanted[i]].first_entry;
}

static void gradient_fini(gradient *x)
{
    tni_free(x->sums);
    tni_free(x->wanted);
    tni_free(x->passes);
    tni_free(x->is_head);
    tni_vec_fini(&x->terms);
}

tn_status tni_graph_gradient(tni_graph *g, const tni_gradient_spec *spec, uint32_t *head_vars,
                             uint32_t *grads)
{
    const uint32_t *heads = spec->heads ? spec->heads : g->heads;
    uint32_t head_count = spec->heads ? spec->head_count : g->head_count;
    const tni_graph_mark mark = tni_graph_mark_get(g);
    const uint32_t inferred = g->inferred;
    gradient x;
    tn_status st = spec_check(g, spec);

    if (st)
        return st;
    st = gradient_init(&x, g, spec);
    for (uint32_t i = 0; i < head_count && !st; i++)
        st = head_start(&x, heads[i], &head_vars[i]);
    for (uint32_t i = x.node_count; i-- > 0 && !st;)
        if (g->nodes[i].def && x.passes[i])
            st = node_visit(&x, i);
    for (uint32_t i = 0; i < spec->wanted_count && !st; i++) {
        uint32_t *old = spec->adds && spec->adds[i] ? &spec->olds[i] : NULL;

        if (old)
            *old = TNI_NONE;
        st = total_of(&x, wanted_entry(&x, i), old, &grads[i]);
    }
    if (st) {
        tni_graph_cut(g, mark);
        g->inferred = inferred;
    }
    gradient_fini(&x);
    return st;
}

/* ---- as training runs it ------------------------------------------------------------------------- */

/* Arguments that a gradient may be asked of: variables that nobody mutates, of a type that has one. */
static uint32_t trainable(const tni_graph *g, uint32_t *list)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < g->variable_count; i++) {
        const tni_gnode *n = &g->nodes[g->variables[i]];
        const int32_t dtype = g->dtypes[n->first_entry];

        if (!(n->flags & TNI_GNODE_AUX) && (dtype < 0 || tni_dtype_is_float(dtype)))
            list[count++] = g->variables[i];
    }
    return count;
}

/* `lists`: room for variables, their gradients, head variables, heads. */
static tn_status gradients_append(tni_graph *g, uint32_t *lists)
{
    uint32_t *wanted = lists, *grads = wanted + g->variable_count, *head_vars = grads + g->variable_count,
             *heads = head_vars + g->head_count, count = g->head_count;
    const tni_gradient_spec spec = {.wanted = wanted, .wanted_count = trainable(g, wanted)};
    const bool inferred = g->inferred != 0;
    tn_status st;

    memcpy(heads, g->heads, count * sizeof *heads);
    if ((st = tni_graph_gradient(g, &spec, head_vars, grads)))
        return st;
    for (uint32_t i = 0; i < spec.wanted_count; i++)
        if (grads[i] != TNI_NONE)
            heads[count++] = grads[i];
    if ((st = tni_graph_set_heads(g, count, heads)) || !(st = tni_graph_infer(g, true)))
        return st;
    if (inferred || st == TN_E_NOMEM)
        return st;
    tni_error_clear(); /* of what was never inferred, operators may refuse what they were not told yet */
    return TN_OK;
}

tn_status tni_graph_trained(const tni_graph *g, tni_graph **out)
{
    uint32_t *lists = tni_calloc(3ull * g->variable_count + 2ull * g->head_count + 1, sizeof *lists);
    tni_graph *made = NULL;
    tn_status st = lists ? tni_graph_copy(g, &made) : TN_E_NOMEM;

    if (!st && !(st = gradients_append(made, lists))) {
        *out = made; /* moved */
        made = NULL;
    }
    tni_graph_destroy(made);
    tni_free(lists);
    return st;
}
