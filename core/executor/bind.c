/* Binding: arrays for all variables, given, made, or shared with another executor. */
#include "executor/executor.h"

#include <string.h>

static const tni_gnode *variable_at(const tni_graph *g, uint32_t v)
{
    return &g->nodes[g->variables[v]];
}

static bool is_state(const tni_graph *g, uint32_t v)
{
    return (variable_at(g, v)->flags & TNI_GNODE_AUX) != 0;
}

void tni_executor_destroy(tni_executor *e)
{
    if (!e)
        return;
    for (uint32_t v = 0; e->graph && v < e->graph->variable_count; v++) {
        tni_array_release(e->values ? e->values[v] : NULL);
        tni_array_release(e->inputs ? e->inputs[v] : NULL);
    }
    for (uint32_t o = 0; e->outputs && o < e->graph->head_count; o++)
        tni_array_release(e->outputs[o]);
    tni_cached_op_release(e->op);
    tni_cached_op_release(e->watched);
    tni_graph_destroy(e->graph);
    tni_free(e->values);
    tni_free(e->inputs);
    tni_free(e->outputs);
    tni_free(e->heads);
    tni_free(e->pairs);
    if (e->symbol)
        tni_symbol_release(e->symbol);
    tni_free(e);
}

tn_status tni_executor_find(const tni_executor *e, const char *name, uint32_t *out)
{
    for (uint32_t v = 0; v < e->graph->variable_count; v++)
        if (!strcmp(variable_at(e->graph, v)->name, name)) {
            *out = v;
            return TN_OK;
        }
    return tni_error(TN_E_KEY, "the executor has no argument or state \"%.200s\"", name);
}

uint32_t tni_executor_mode(const tni_executor *e, uint32_t variable)
{
    return e->inputs[variable]->grad ? e->inputs[variable]->grad_req : TN_MODE_NONE;
}

/* ---- from arrays that are all there ---------------------------------------------------------- */

/* The texts of `pairs` in one block, behind their pointers. */
static tn_status pairs_copy(const char *const *pairs, char ***out)
{
    size_t count = 0, bytes = 0;
    char **copy, *at;

    while (pairs[count])
        bytes += strlen(pairs[count++]) + 1;
    if (!(copy = tni_zalloc((count + 1) * sizeof(*copy) + bytes)))
        return TN_E_NOMEM;
    at = (char *)(copy + count + 1);
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(pairs[i]) + 1;

        copy[i] = memcpy(at, pairs[i], length);
        at += length;
    }
    *out = copy;
    return TN_OK;
}

static tn_status outputs_make(tni_executor *e, tni_device *device)
{
    const tni_graph *g = e->graph;
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < g->head_count && !st; o++) {
        const uint32_t entry = g->heads[o];
        tni_device *d = g->nodes[g->entry_node[entry]].device;

        if (tn_shape_known(&g->shapes[entry]) && g->storages[entry] <= TN_STORAGE_DENSE)
            st = tni_array_create(e->ctx->space, d ? d : device, g->dtypes[entry], g->shapes[entry].ndim,
                                  g->shapes[entry].dim, "output", &e->outputs[o]);
    }
    return st;
}

/* What calls are given is a view: the caller's array keeps its own gradient, and its place on a tape. */
static tn_status input_make(tni_executor *e, uint32_t v, const tni_bound *b)
{
    tn_status st;

    tni_array_retain(e->values[v] = b->value);
    if (!b->grad && b->value->storage_type != TN_STORAGE_DENSE) {
        tni_array_retain(e->inputs[v] = b->value); /* which has no gradient */
        return TN_OK;
    }
    if (!b->grad)
        return tni_array_detach(b->value, &e->inputs[v]);
    if (b->grad->dtype != b->value->dtype || !tni_array_has_shape(b->grad, b->value->ndim, b->value->shape))
        return tni_error(TN_E_SHAPE, "the gradient of \"%.200s\" has another shape or dtype than its value",
                         variable_at(e->graph, v)->name);
    if (!(st = tni_array_detach(b->value, &e->inputs[v])))
        st = tni_grad_attach(e->ctx, e->inputs[v], b->mode, b->grad);
    return st;
}

static tn_status executor_alloc(tni_context *c, tni_symbol *s, tni_graph *g, const char *const *pairs,
                                tni_executor **out)
{
    tni_executor *e = tni_zalloc(sizeof *e);
    tn_status st = TN_OK;

    if (!e) {
        tni_graph_destroy(g);
        return TN_E_NOMEM;
    }
    e->ctx = c;
    e->graph = g;
    e->values = tni_calloc(g->variable_count + 1u, sizeof(*e->values));
    e->inputs = tni_calloc(g->variable_count + 1u, sizeof(*e->inputs));
    e->outputs = tni_calloc(g->head_count + 1u, sizeof(*e->outputs));
    e->heads = tni_calloc(g->head_count + 1u, sizeof *e->heads);
    tni_symbol_retain(e->symbol = s);
    if (!e->values || !e->inputs || !e->outputs || !e->heads)
        st = TN_E_NOMEM;
    if (!st && pairs)
        st = pairs_copy(pairs, &e->pairs);
    if (!st && !(st = tni_cached_op_create(c, s, NULL, &e->op)) && pairs)
        st = tni_cached_op_groups(e->op, pairs);
    if (st)
        tni_executor_destroy(e);
    else
        *out = e;
    return st;
}

/* Its arrays are `bound`, for which its graph is inferred. [takes] `e` */
static tn_status bound_take(tni_executor *e, const tni_bound *bound, tni_executor **out)
{
    const uint32_t count = e->graph->variable_count;
    tni_device *device = NULL;
    bool several = e->op->placed;
    tn_status st = count ? TN_OK : tni_default_device(e->ctx, &device);

    for (uint32_t v = 0; !st && v < count; v++) {
        device = bound[0].value->storage->device;
        several |= bound[v].value->storage->device != device;
        st = input_make(e, v, &bound[v]);
    }
    if (!st && several)
        st = tni_graph_place(e->ctx, e->graph, e->values, e->op->groups, device);
    if (!st)
        st = outputs_make(e, device);
    if (st)
        tni_executor_destroy(e);
    else
        *out = e;
    return st;
}

tn_status tni_executor_bind(tni_context *c, tni_symbol *s, const char *const *pairs, const tni_bound *bound,
                            tni_executor **out)
{
    tni_executor *e = NULL;
    tni_graph *g = NULL;
    tn_status st = tni_graph_of(s, &g);

    for (uint32_t v = 0; !st && v < g->variable_count; v++) {
        tni_array *a = bound[v].value;
        tn_shape shape;

        if ((st = tni_array_shape_wait(a)))
            break;
        shape.ndim = a->ndim;
        memcpy(shape.dim, a->shape, (size_t)a->ndim * sizeof *shape.dim);
        st = tni_graph_preset(g, v, &shape, a->dtype, a->storage_type);
    }
    if (!st) {
        g->np_shape = s->np_shape || tni_scope_get()->np_shape;
        st = tni_graph_infer(g, false);
    }
    if (st) {
        tni_graph_destroy(g);
        return st;
    }
    return (st = executor_alloc(c, s, g, pairs, &e)) ? st : bound_take(e, bound, out);
}

/* ---- arrays that are made, or shared ---------------------------------------------------------- */

static tni_array *grad_of(const tni_executor *e, uint32_t v)
{
    return e->inputs[v]->grad;
}

/* The group of a variable is its own, or that of the first node that reads it. */
static tn_status variable_device(const tni_context *c, const tni_graph *g, const tni_bind_spec *spec,
                                 uint32_t v, tni_device **out)
{
    const uint32_t own = g->variables[v];
    void *name = NULL;

    *out = spec->device;
    if (!spec->pairs)
        return TN_OK;
    if (!g->nodes[own].dict || !tni_map_get(g->nodes[own].dict, "__ctx_group__", &name))
        for (uint32_t n = 0; n < g->node_count && !name; n++)
            for (uint32_t i = 0; i < g->nodes[n].input_count && !name; i++)
                if (g->entry_node[tni_graph_input(g, &g->nodes[n], i)] == own && g->nodes[n].dict)
                    (void)tni_map_get(g->nodes[n].dict, "__ctx_group__", &name);
    for (size_t i = 0; name && spec->pairs[i]; i += 2)
        if (!strcmp(spec->pairs[i], name))
            return tni_device_parse(c->devices, spec->pairs[i + 1], out);
    return TN_OK;
}

typedef struct wanted { /* what a variable's arrays are to look like */
    const char *name;
    const tn_shape *shape;
    int32_t dtype;
    tni_device *device;
    bool listed;
} wanted;

static tn_status zeros_make(const tni_context *c, const wanted *w, const char *owner, tni_array **out)
{
    tni_array *a = NULL;
    tn_status st = tni_array_create(c->space, w->device, w->dtype, w->shape->ndim, w->shape->dim, owner, &a);

    if (!st && (st = tni_array_fill(a, 0.0)))
        tni_array_release(a);
    else if (!st)
        *out = a;
    return st;
}

/* May the shape of `a` become another one? */
static tn_status reshape_check(const tni_bind_spec *spec, const wanted *w, const tni_array *a, uint64_t count)
{
    if (!w->listed && !spec->partial)
        return tni_error(TN_E_SHAPE,
                         "\"%.200s\" would change its shape, and is none of the inputs given: "
                         "TN_RESHAPE_PARTIAL makes it a new array",
                         w->name);
    if (count > tni_array_count(a) && !spec->up)
        return tni_error(TN_E_SHAPE,
                         "\"%.200s\" would need more memory than it has: TN_RESHAPE_UP makes a new array",
                         w->name);
    return TN_OK;
}

/* An array like `w` out of `a` if that serves (NULL: it does not), else new. */
static tn_status array_take(const tni_context *c, const tni_bind_spec *spec, const wanted *w, tni_array *a,
                            const char *owner, tni_array **out)
{
    int64_t stride[TN_NDIM_MAX];
    uint64_t count;
    tn_status st;

    if (a && a->dtype != w->dtype)
        return tni_error(TN_E_DTYPE, "\"%.200s\" is %s there and %s here", w->name, tni_dtype_name(a->dtype),
                         tni_dtype_name(w->dtype));
    if (a && a->storage->device == w->device) {
        if (tni_array_has_shape(a, w->shape->ndim, w->shape->dim)) {
            tni_array_retain(*out = a);
            return TN_OK;
        }
        if (a->storage_type != TN_STORAGE_DENSE)
            return tni_error(TN_E_UNSUPPORTED, "\"%.200s\" is sparse: its shape stays", w->name);
        if ((st = tni_shape_check(w->dtype, w->shape->ndim, w->shape->dim, &count)) ||
            (st = reshape_check(spec, w, a, count)))
            return st;
        if (w->listed && count <= tni_array_count(a) && a->flags & TNI_ARRAY_CONTIGUOUS) {
            tni_row_major(w->shape->ndim, w->shape->dim, stride);
            return tni_array_view(a, 0, w->shape->ndim, w->shape->dim, stride, out);
        }
    }
    return zeros_make(c, w, owner, out);
}

static tn_status bound_make(const tni_context *c, const tni_graph *g, const tni_bind_spec *spec, uint32_t v,
                            tni_bound *b)
{
    const uint32_t entry = variable_at(g, v)->first_entry;
    wanted w = {.name = variable_at(g, v)->name,
                .shape = &g->shapes[entry],
                .dtype = g->dtypes[entry],
                .listed = spec->listed[v]};
    uint32_t from = TNI_NONE;
    tn_status st = variable_device(c, g, spec, v, &w.device);

    if (st)
        return st;
    if (spec->from && tni_executor_find(spec->from, w.name, &from)) {
        tni_error_clear();
        from = TNI_NONE;
    }
    if (from != TNI_NONE && !spec->device)
        w.device = spec->from->values[from]->storage->device;
    st = array_take(c, spec, &w, from == TNI_NONE ? NULL : spec->from->values[from], "argument", &b->value);
    b->mode = is_state(g, v) ? TN_MODE_NONE : spec->modes[v];
    if (!st && b->mode != TN_MODE_NONE)
        st = array_take(c, spec, &w, from == TNI_NONE ? NULL : grad_of(spec->from, from), "gradient",
                        &b->grad);
    return st;
}

tn_status tni_executor_make(tni_context *c, tni_symbol *s, tni_graph *g, const tni_bind_spec *spec,
                            tni_executor **out)
{
    const uint32_t count = g->variable_count;
    tni_bound *bound = NULL;
    tni_executor *e = NULL;
    tn_status st = executor_alloc(c, s, g, spec->pairs, &e); /* which looks at the pairs */

    if (st)
        return st;
    if (!(bound = tni_calloc(count + 1u, sizeof *bound)))
        st = TN_E_NOMEM;
    for (uint32_t v = 0; !st && v < count; v++)
        st = bound_make(c, g, spec, v, &bound[v]);
    if (st)
        tni_executor_destroy(e);
    else
        st = bound_take(e, bound, out);
    for (uint32_t v = 0; bound && v < count; v++) {
        tni_array_release(bound[v].value);
        tni_array_release(bound[v].grad);
    }
    tni_free(bound);
    return st;
}
