/* tenon/executor.h. A tn_executor is the struct of room executor. */
#include <string.h>

#include "api/api.h"
#include "executor/executor.h"
#include "tenon/executor.h"

static tn_status symbol_check(const char *function, const tn_ctx *ctx, const tn_symbol *s)
{
    return s->ops == ctx->ops ? TN_OK
                              : tni_error(TN_E_ARG, "%s: the symbol belongs to another context", function);
}

/* ---- bind ---------------------------------------------------------------------------------------- */

static tn_status binding_take(const tn_ctx *ctx, const tni_graph *g, const tn_binding *b, tni_bound *bound)
{
    uint32_t v;
    tn_status st;

    if (!b->name || !b->array)
        return api_null("tn_executor_bind", "a name or an array");
    if ((st = api_param_find(g, b->name, &v)) ||
        (st = api_arrays("tn_executor_bind", ctx, 2, (tn_array *const[]){b->array, b->grad})))
        return st;
    if (b->reserved || b->mode > TN_MODE_ADD || (b->mode == TN_MODE_NONE) != !b->grad)
        return tni_error(TN_E_ARG, "\"%.200s\": mode %u %s a gradient array", b->name, b->mode,
                         b->grad ? "with" : "without");
    if (b->grad && g->nodes[g->variables[v]].flags & TNI_GNODE_AUX)
        return tni_error(TN_E_ARG, "\"%.200s\" is a state, which has no gradient", b->name);
    if (bound[v].value)
        return tni_error(TN_E_KEY, "\"%.200s\" is bound twice", b->name);
    bound[v] = (tni_bound){b->array, b->grad, b->mode};
    return TN_OK;
}

static tn_status bound_fill(const tn_ctx *ctx, const tni_graph *g, const tn_bind_options *o, tni_bound *bound)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < o->count && !st; i++)
        st = binding_take(ctx, g, &o->bindings[i], bound);
    for (uint32_t v = 0; v < g->variable_count && !st; v++)
        if (!bound[v].value)
            st = tni_error(TN_E_KEY, "nothing is bound to \"%.200s\"", g->nodes[g->variables[v]].name);
    return st;
}

tn_status tn_executor_bind(tn_ctx *ctx, tn_symbol *symbol, const tn_bind_options *options, tn_executor **out)
{
    tn_bind_options o;
    tni_graph *g = NULL;
    tni_bound *bound;
    tn_status st;

    if (!ctx || !symbol || !options || !out)
        return api_null(__func__, "ctx, symbol, options or out");
    if ((st = symbol_check(__func__, ctx, symbol)) ||
        (st = api_options(__func__, options, &o, (uint32_t)sizeof o)))
        return st;
    if (o.count && !o.bindings)
        return api_null(__func__, "bindings");
    if ((st = tni_graph_of(symbol, &g)))
        return st;
    bound = tni_calloc(g->variable_count + 1u, sizeof *bound);
    if (!(st = bound ? bound_fill(ctx, g, &o, bound) : TN_E_NOMEM))
        st = tni_executor_bind(ctx, symbol, o.group2ctx, bound, out);
    tni_free(bound);
    tni_graph_destroy(g);
    return st;
}

/* ---- simple_bind, reshape -------------------------------------------------------------------------- */

typedef struct plan { /* per variable of a graph */
    tni_graph *graph;
    uint32_t *modes;
    uint8_t *listed;
} plan;

static void plan_fini(plan *p)
{
    tni_graph_destroy(p->graph);
    tni_free(p->modes);
    tni_free(p->listed);
}

/* Data and storage types that the program does not give are those of `from`, if that has the argument. */
static tn_status types_take(tni_graph *g, const tni_executor *from)
{
    tn_status st = TN_OK;

    for (uint32_t v = 0; from && v < g->variable_count && !st; v++) {
        const tni_gnode *n = &g->nodes[g->variables[v]];
        const tni_array *a;
        uint32_t index;

        if (tni_executor_find(from, n->name, &index)) {
            tni_error_clear();
            continue;
        }
        a = from->values[index];
        st = tni_graph_preset(g, v, NULL, g->dtypes[n->first_entry] < 0 ? a->dtype : -1, a->storage_type);
    }
    return st;
}

static tn_status plan_infer(const char *function, tni_symbol *s, uint32_t count, const tn_known *known,
                            const tni_executor *from, plan *p)
{
    tn_status st;
    uint32_t v;

    if (count && !known)
        return api_null(function, "known");
    if ((st = tni_graph_of(s, &p->graph)))
        return st;
    p->modes = tni_calloc(p->graph->variable_count + 1u, sizeof *p->modes);
    p->listed = tni_calloc(p->graph->variable_count + 1u, 1);
    if (!p->modes || !p->listed)
        return TN_E_NOMEM;
    p->graph->np_shape = s->np_shape || tni_scope_get()->np_shape;
    for (uint32_t i = 0; i < count; i++) {
        if ((st = api_known_set(function, p->graph, &known[i], &v)))
            return st;
        p->listed[v] |= known[i].ndim >= 0;
    }
    return (st = types_take(p->graph, from)) ? st : tni_graph_infer(p->graph, false);
}

static tn_status modes_read(const tn_simple_bind_options *o, const plan *p)
{
    const tni_graph *g = p->graph;
    tn_status st;
    uint32_t v;

    for (v = 0; v < g->variable_count; v++) {
        const tni_gnode *n = &g->nodes[g->variables[v]];

        if (!(n->flags & TNI_GNODE_AUX) && tni_dtype_is_float(g->dtypes[n->first_entry]))
            p->modes[v] = o->mode;
    }
    for (uint32_t i = 0; i < o->mode_count; i++) {
        const tn_grad_req *r = &o->modes[i];

        if (!r->name)
            return api_null("tn_executor_simple_bind", "a name");
        if ((st = api_param_find(g, r->name, &v)))
            return st;
        if (r->reserved || r->mode > TN_MODE_ADD ||
            (r->mode && g->nodes[g->variables[v]].flags & TNI_GNODE_AUX))
            return tni_error(TN_E_ARG, "\"%.200s\": %s", r->name,
                             r->mode > TN_MODE_ADD || r->reserved ? "the mode is none of null, write, add"
                                                                  : "a state has no gradient");
        if (r->mode && !tni_dtype_is_float(g->dtypes[g->nodes[g->variables[v]].first_entry]))
            return tni_error(TN_E_DTYPE, "\"%.200s\" is not of a floating type and has no gradient", r->name);
        p->modes[v] = r->mode;
    }
    return TN_OK;
}

tn_status tn_executor_simple_bind(tn_ctx *ctx, tn_symbol *symbol, const tn_simple_bind_options *options,
                                  tn_executor **out)
{
    tn_simple_bind_options o;
    tni_bind_spec spec = {.up = true};
    plan p = {0};
    tn_status st;

    if (!ctx || !symbol || !options || !out)
        return api_null(__func__, "ctx, symbol, options or out");
    if ((st = symbol_check(__func__, ctx, symbol)) ||
        (st = api_options(__func__, options, &o, (uint32_t)sizeof o)) ||
        (st = api_device(ctx, o.device, &spec.device)))
        return st;
    if (o.mode > TN_MODE_ADD)
        return tni_error(TN_E_ARG, "gradient mode %u is none of null, write, add", o.mode);
    if (o.shared && o.shared->ctx != ctx)
        return tni_error(TN_E_ARG, "%s: the executor to share with belongs to another context", __func__);
    if (o.mode_count && !o.modes)
        return api_null(__func__, "modes");
    if ((st = plan_infer(__func__, symbol, o.known_count, o.known, o.shared, &p)) ||
        (st = modes_read(&o, &p)))
        goto cleanup;
    spec.modes = p.modes;
    spec.listed = p.listed;
    spec.pairs = o.group2ctx;
    spec.from = o.shared;
    st = tni_executor_make(ctx, symbol, p.graph, &spec, out);
    p.graph = NULL; /* moved */

cleanup:
    plan_fini(&p);
    return st;
}

tn_status tn_executor_reshape(tn_executor *e, uint32_t flags, uint32_t known_count, const tn_known *known,
                              tn_executor **out)
{
    tni_bind_spec spec = {.partial = (flags & TN_RESHAPE_PARTIAL) != 0, .up = (flags & TN_RESHAPE_UP) != 0};
    plan p = {0};
    tn_status st;

    if (!e || !out)
        return api_null(__func__, "e or out");
    if (flags & ~(TN_RESHAPE_PARTIAL | TN_RESHAPE_UP))
        return tni_error(TN_E_ARG, "%s: flags 0x%x are not known", __func__, flags);
    if (!(st = plan_infer(__func__, e->symbol, known_count, known, e, &p))) {
        for (uint32_t v = 0; v < p.graph->variable_count; v++)
            p.modes[v] = tni_executor_mode(e, v);
        spec.modes = p.modes;
        spec.listed = p.listed;
        spec.pairs = (const char *const *)e->pairs;
        spec.from = e;
        st = tni_executor_make(e->ctx, e->symbol, p.graph, &spec, out);
        p.graph = NULL; /* moved */
    }
    plan_fini(&p);
    return st;
}

void tn_executor_destroy(tn_executor *e)
{
    tni_executor_destroy(e);
}

/* ---- what it holds ----------------------------------------------------------------------------------- */

tn_array *tn_executor_array(const tn_executor *e, int32_t what, const char *name)
{
    uint32_t v;

    if (!e || !name || (what != TN_EXECUTOR_VALUE && what != TN_EXECUTOR_GRAD))
        return NULL;
    if (tni_executor_find(e, name, &v)) {
        tni_error_clear();
        return NULL;
    }
    return what == TN_EXECUTOR_VALUE ? e->values[v] : e->inputs[v]->grad;
}

tn_symbol *tn_executor_symbol(const tn_executor *e)
{
    return e ? e->symbol : NULL;
}

uint32_t tn_executor_output_count(const tn_executor *e)
{
    return e ? e->graph->head_count : 0;
}

tn_array *tn_executor_output(const tn_executor *e, uint32_t index)
{
    return e && index < e->graph->head_count ? e->outputs[index] : NULL;
}

/* ---- running ------------------------------------------------------------------------------------------- */

typedef struct fill_list {
    uint32_t count;
    uint32_t *at;
    tni_array **arrays; /* borrowed, or retained by who filled them in */
} fill_list;

static tn_status fill_list_make(size_t count, fill_list *l)
{
    l->at = tni_calloc(count + 1u, sizeof *l->at);
    l->arrays = tni_calloc(count + 1u, sizeof(*l->arrays));
    return l->at && l->arrays ? TN_OK : TN_E_NOMEM;
}

static void fill_list_fini(fill_list *l)
{
    tni_free(l->at);
    tni_free((void *)l->arrays);
}

tn_status tn_executor_forward(tn_executor *e, int32_t train, uint32_t count, const tn_named_array *inputs)
{
    fill_list l = {.count = count};
    tn_status st;

    if (!e || (count && !inputs))
        return api_null(__func__, "e or inputs");
    if (count > e->graph->variable_count)
        return tni_error(TN_E_ARG, "%s: %u inputs, the executor has %u arguments and states", __func__, count,
                         e->graph->variable_count);
    st = fill_list_make(count, &l);
    for (uint32_t i = 0; i < count && !st; i++) {
        if (!inputs[i].name || !inputs[i].array)
            st = api_null(__func__, "a name or an array");
        else if (!(st = tni_executor_find(e, inputs[i].name, &l.at[i])))
            l.arrays[i] = inputs[i].array;
    }
    if (!st && !(st = api_arrays(__func__, e->ctx, count, l.arrays)) &&
        !(st = tni_executor_fill(e, count, l.at, l.arrays)))
        st = tni_executor_forward(e, train != 0);
    fill_list_fini(&l);
    return st;
}

tn_status tn_executor_backward(tn_executor *e, tn_array *const *head_grads)
{
    tn_status st;

    if (!e)
        return api_null(__func__, "e");
    if (head_grads && (st = api_arrays(__func__, e->ctx, e->graph->head_count, head_grads)))
        return st;
    return tni_executor_backward(e, head_grads);
}

tn_status tn_executor_copy_params(tn_executor *e, const tn_params *params, uint32_t flags)
{
    const size_t count = tn_params_count(params);
    fill_list l = {0};
    tn_status st;

    if (!e || !params)
        return api_null(__func__, "e or params");
    if (flags & ~TN_COPY_EXTRA)
        return tni_error(TN_E_ARG, "%s: flags 0x%x are not known", __func__, flags);
    st = fill_list_make(count, &l);
    for (size_t i = 0; i < count && !st; i++) {
        if (!(st = tni_executor_find(e, tni_params_plain_name(tn_params_name(params, i)), &l.at[l.count]))) {
            if (!(st = tn_params_at(params, i, &l.arrays[l.count])) && l.arrays[l.count])
                l.count++;
        } else if (flags & TN_COPY_EXTRA) {
            tni_error_clear();
            st = TN_OK;
        }
    }
    if (!st && !(st = api_arrays(__func__, e->ctx, l.count, l.arrays)))
        st = tni_executor_fill(e, l.count, l.at, l.arrays);
    for (uint32_t i = 0; l.arrays && i < l.count; i++)
        tni_array_release(l.arrays[i]);
    fill_list_fini(&l);
    return st;
}

tn_status tn_executor_monitor(tn_executor *e, tn_monitor_fn fn, void *arg, uint32_t flags)
{
    if (!e)
        return api_null(__func__, "e");
    if (flags & ~TN_MONITOR_INPUTS)
        return tni_error(TN_E_ARG, "%s: flags 0x%x are not known", __func__, flags);
    return tni_executor_monitor(e, fn, arg, (flags & TN_MONITOR_INPUTS) != 0);
}
