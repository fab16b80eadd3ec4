/*
 * tenon/program.h: cached operators, and programs for serving.
 *
 * A program is a cached operator whose weights are bound once: a run fills in the free inputs and calls it.
 * It is never changed after it was made, so any number of threads may run it; each call takes a frame of its
 * own.
 */
#include <string.h>

#include "api/api.h"
#include "tenon/program.h"
#include "tenon/view.h"

#define INPUTS_ON_STACK 256 /* inputs and weights of a run that needs no memory for its list */

/* ---- cached operators ---------------------------------------------------------------------------- */

tn_status api_param_find(const tni_graph *g, const char *name, uint32_t *out)
{
    for (uint32_t i = 0; i < g->variable_count; i++)
        if (!strcmp(g->nodes[g->variables[i]].name, name)) {
            *out = i;
            return TN_OK;
        }
    return tni_error(TN_E_KEY, "params: the net has no input \"%.200s\"", name);
}

static tn_status param_note(tni_cached_op *op, const char *name)
{
    uint32_t index;
    const tn_status st = api_param_find(op->graph, name, &index);

    return st ? st : tni_cached_op_constant(op, index);
}

tn_status tn_cached_op_create(tn_ctx *ctx, tn_symbol *symbol, const tn_cached_options *options,
                              tn_cached_op **out)
{
    tn_cached_options o = {0};
    tni_cached_op *op = NULL;
    tn_status st;

    if (!ctx || !symbol || !out)
        return api_null(__func__, "ctx, symbol or out");
    if (symbol->ops != ctx->ops)
        return tni_error(TN_E_ARG, "the symbol belongs to another context");
    if (options && (st = api_options(__func__, options, &o, (uint32_t)sizeof o)))
        return st;
    if (o.static_shape && !o.static_alloc)
        return tni_error(TN_E_ARG, "static_shape needs static_alloc");
    const tni_cached_flags flags = {.static_alloc = o.static_alloc != 0,
                                    .static_shape = o.static_shape != 0,
                                    .inline_limit = o.inline_limit,
                                    .forward_bulk = o.forward_bulk,
                                    .backward_bulk = o.backward_bulk};

    if (!(st = tni_cached_op_create(ctx, symbol, &flags, &op)) && o.group2ctx)
        st = tni_cached_op_groups(op, o.group2ctx);
    for (size_t i = 0; !st && o.params && o.params[i]; i++)
        st = param_note(op, o.params[i]);
    if (st)
        tni_cached_op_release(op);
    else
        *out = op;
    return st;
}

void tn_cached_op_release(tn_cached_op *op)
{
    tni_cached_op_release(op);
}

tn_status tn_cached_op_call(tn_cached_op *op, uint32_t in_count, tn_array *const *in, uint32_t out_count,
                            tn_array **out)
{
    tn_status st;

    if (!op || !out)
        return api_null(__func__, "op or out");
    if (in_count != op->graph->variable_count)
        return tni_error(TN_E_ARG, "the net takes %u inputs with its parameters, got %u",
                         op->graph->variable_count, in_count);
    if ((st = api_arrays(__func__, op->ctx, in_count, in)) ||
        (st = api_arrays(__func__, op->ctx, out_count < op->graph->head_count ? 0 : op->graph->head_count,
                         out)))
        return st;
    return tni_cached_op_call(op, in_count, in, out_count, out);
}

tn_status tn_cached_op_memory(tn_cached_op *op, uint64_t *planned, uint64_t *bound)
{
    if (!op || !planned || !bound)
        return api_null(__func__, "op, planned or bound");
    return tni_cached_op_memory(op, planned, bound);
}

/* ---- programs ------------------------------------------------------------------------------------ */

struct tn_program {
    tni_context *ctx;
    tni_cached_op *op;
    char **names, **outputs; /* of all inputs and of the outputs; one block each */
    tni_array **arrays;      /* per input; NULL: a free one */
    uint32_t *open;          /* the free ones, in order */
    uint32_t count, open_count, output_count;
};

void tn_program_destroy(tn_program *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; p->arrays && i < p->count; i++)
        tni_array_release(p->arrays[i]);
    tni_free(p->arrays);
    tni_free(p->open);
    tni_free(p->names);
    tni_free(p->outputs);
    tni_cached_op_release(p->op);
    tni_free(p);
}

static tn_status weights_bind(tn_program *p, const tn_params *params)
{
    const tni_graph *g = p->op->graph;

    for (uint32_t i = 0; i < p->count; i++) {
        const tn_status st = tni_params_get(params, p->names[i], &p->arrays[i]);

        if (!st) {
            tni_array_retain(p->arrays[i]);
            if (tni_cached_op_constant(p->op, i))
                return TN_E_NOMEM;
            continue;
        }
        p->arrays[i] = NULL;
        if (st != TN_E_KEY)
            return st;
        if (g->nodes[g->variables[i]].flags & TNI_GNODE_AUX)
            return tni_error(TN_E_KEY, "there is no array for the state %.200s", p->names[i]);
        tni_error_clear();
        p->open[p->open_count++] = i;
    }
    return api_arrays("tn_program_create", p->ctx, p->count, p->arrays);
}

tn_status tn_program_create(tn_ctx *ctx, tn_symbol *symbol, const tn_params *params, tn_program **out)
{
    tn_program *p;
    size_t count, outputs;
    tn_status st;

    if (!ctx || !symbol || !params || !out)
        return api_null(__func__, "ctx, symbol, params or out");
    if (symbol->ops != ctx->ops)
        return tni_error(TN_E_ARG, "the symbol belongs to another context");
    if (!(p = tni_zalloc(sizeof *p)))
        return TN_E_NOMEM;
    p->ctx = ctx;
    if ((st = tni_cached_op_create(ctx, symbol, NULL, &p->op)) ||
        (st = tni_symbol_list(symbol, TNI_LIST_INPUTS, &count, &p->names)) ||
        (st = tni_symbol_list(symbol, TNI_LIST_OUTPUTS, &outputs, &p->outputs)))
        goto cleanup;
    p->count = (uint32_t)count;
    p->output_count = (uint32_t)outputs;
    p->arrays = tni_calloc(count + 1, sizeof(*p->arrays));
    p->open = tni_calloc(count + 1, sizeof *p->open);
    if (!p->arrays || !p->open) {
        st = TN_E_NOMEM;
        goto cleanup;
    }
    if ((st = weights_bind(p, params)))
        goto cleanup;
    *out = p; /* moved */
    p = NULL;

cleanup:
    tn_program_destroy(p);
    return st;
}

tn_status tn_program_load(tn_ctx *ctx, const char *symbol_path, const char *params_path,
                          const tn_device *device, tn_program **out)
{
    tni_symbol *symbol = NULL;
    tni_params *params = NULL;
    tni_device *d;
    tn_status st;

    if (!ctx || !symbol_path || !params_path || !out)
        return api_null(__func__, "ctx, symbol_path, params_path or out");
    if ((st = api_device(ctx, device, &d)) || (st = tni_symbol_load(ctx->ops, symbol_path, &symbol)) ||
        (st = tni_params_load_held(ctx->space, d, params_path, &params)))
        goto cleanup;
    st = tn_program_create(ctx, symbol, params, out);

cleanup:
    tni_params_destroy(params);
    tn_symbol_release(symbol);
    return st;
}

uint32_t tn_program_input_count(const tn_program *p)
{
    return p ? p->open_count : 0;
}

const char *tn_program_input(const tn_program *p, uint32_t index)
{
    return p && index < p->open_count ? p->names[p->open[index]] : NULL;
}

uint32_t tn_program_output_count(const tn_program *p)
{
    return p ? p->output_count : 0;
}

const char *tn_program_output(const tn_program *p, uint32_t index)
{
    return p && index < p->output_count ? p->outputs[index] : NULL;
}

static tn_status zeros_make(const tn_program *p, tni_device *d, const tni_graph *g, uint32_t input,
                            tni_array **out)
{
    const uint32_t entry = g->nodes[g->variables[input]].first_entry;
    const tn_shape *shape = &g->shapes[entry];
    tni_array *a = NULL;
    tn_status st;

    if ((st = tni_array_create(p->ctx->space, d, g->dtypes[entry], shape->ndim, shape->dim, "array", &a)))
        return st;
    if ((st = tni_array_fill(a, 0.0)))
        tni_array_release(a);
    else
        *out = a;
    return st;
}

/* Zeros for the inputs that are not given, in the shapes that follow from the others. They are put into
 * `all`, and noted in `made` by position, so that the caller releases them. */
static tn_status zeros_fill(const tn_program *p, tni_array **all, uint8_t *made)
{
    tni_device *d = NULL;
    tni_graph *g = NULL;
    tn_status st = tni_graph_copy(p->op->graph, &g);

    for (uint32_t i = 0; !st && i < p->count; i++) {
        tn_shape shape;

        if (!all[i] || (st = tni_array_shape_wait(all[i])))
            continue;
        d = d ? d : all[i]->storage->device;
        shape.ndim = all[i]->ndim;
        memcpy(shape.dim, all[i]->shape, (size_t)shape.ndim * sizeof *shape.dim);
        st = tni_graph_preset(g, i, &shape, all[i]->dtype, TN_STORAGE_DENSE);
    }
    if (!st && !d)
        st = tni_default_device(p->ctx, &d);
    if (!st) {
        g->np_shape = p->op->graph->np_shape || tni_scope_get()->np_shape;
        st = tni_graph_infer(g, false);
    }
    for (uint32_t i = 0; !st && i < p->count; i++)
        if (!all[i] && !(st = zeros_make(p, d, g, i, &all[i])))
            made[i] = 1;
    tni_graph_destroy(g);
    return st;
}

/* Outside of recording and training, whatever the thread does. */
static tn_status run_plain(const tn_program *p, tni_array *const *all, uint32_t out_count, tni_array **out)
{
    tni_scope *scope = tni_scope_get();
    const tni_scope before = *scope;
    tn_status st;

    scope->recording = scope->training = false;
    st = tni_cached_op_call(p->op, p->count, all, out_count, out);
    *scope = before;
    return st;
}

static tn_status run_with_zeros(const tn_program *p, tni_array **all, uint32_t out_count, tni_array **out)
{
    uint8_t *made = tni_calloc(p->count + 1u, 1);
    tn_status st = made ? zeros_fill(p, all, made) : TN_E_NOMEM;

    if (!st)
        st = run_plain(p, all, out_count, out);
    for (uint32_t i = 0; made && i < p->count; i++)
        if (made[i])
            tni_array_release(all[i]);
    tni_free(made);
    return st;
}

tn_status tn_program_run(tn_program *p, uint32_t in_count, tn_array *const *in, uint32_t out_count,
                         tn_array **out)
{
    tni_array *stack[INPUTS_ON_STACK], **all = stack;
    bool zeros = false;
    tn_status st;

    if (!p || !out)
        return api_null(__func__, "p or out");
    if (in_count != p->open_count || out_count < p->output_count)
        return tni_error(TN_E_ARG,
                         "the program takes %u inputs and gives %u outputs; %u and room for %u are given",
                         p->open_count, p->output_count, in_count, out_count);
    if ((st = api_arrays(__func__, p->ctx, in_count, in)) ||
        (st = api_arrays(__func__, p->ctx, p->output_count, out)))
        return st;
    if (p->count > INPUTS_ON_STACK && !(all = tni_calloc(p->count, sizeof(*all))))
        return TN_E_NOMEM;
    memcpy(all, p->arrays, p->count * sizeof(*all));
    for (uint32_t i = 0; i < in_count; i++) {
        all[p->open[i]] = in[i];
        zeros |= !in[i];
    }
    st = zeros ? run_with_zeros(p, all, out_count, out) : run_plain(p, all, out_count, out);
    if (all != stack)
        tni_free(all);
    return st;
}

tn_status tn_program_memory(tn_program *p, uint64_t *planned, uint64_t *bound)
{
    if (!p || !planned || !bound)
        return api_null(__func__, "p, planned or bound");
    return tni_cached_op_memory(p->op, planned, bound);
}

tn_status tn_program_view_create(tn_program *p, tn_program_view **out)
{
    return p && out ? api_view_cached(p->op, out) : api_null(__func__, "p or out");
}
