/* tenon/symbol.h. A tn_symbol is the struct of room graph. */
#include <string.h>

#include "api/api.h"
#include "tenon/symbol.h"

/* ---- composing ----------------------------------------------------------------------------------- */

tn_status tn_symbol_variable(tn_ctx *ctx, const char *name, tn_symbol **out)
{
    if (!ctx || !name || !out)
        return api_null(__func__, "ctx, name or out");
    if (!*name)
        return tni_error(TN_E_ARG, "a variable needs a name");
    return tni_symbol_variable(ctx->ops, name, out);
}

/* The number of inputs of an operator that takes any goes without saying. */
static tn_status count_fill(tn_ctx *ctx, const tn_symbol_call *k, api_attrs *list, char *count, size_t size)
{
    const tni_opdef *def;
    const char *name;
    tn_status st;

    if ((st = tni_opset_find_offered(ctx->ops, k->op, &def)))
        return st;
    if (def->count_attr < 0)
        return TN_OK;
    name = def->op->attrs[def->count_attr].name;
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(list->names[i], name))
            return TN_OK;
    snprintf(count, size, "%u", k->in_count);
    list->names[list->count] = name; /* one more than API_ATTRS_MAX fits */
    list->texts[list->count++] = count;
    return TN_OK;
}

tn_status tn_symbol_op(tn_ctx *ctx, const tn_symbol_call *call, tn_symbol **out)
{
    tni_symbol *atomic = NULL;
    tn_symbol_call k;
    api_attrs list;
    char count[16];
    tn_status st;

    if (!ctx || !call || !out)
        return api_null(__func__, "ctx, call or out");
    if ((st = api_options(__func__, call, &k, (uint32_t)sizeof k)))
        return st;
    if (!k.op || (k.in_count && !k.in) || (k.body_count && !k.bodies))
        return api_null(__func__, "op, in or bodies");
    if (k.in_count > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_ARG, "%u inputs, at most %u are possible", k.in_count, TN_NODE_INPUTS_MAX);
    if ((st = api_attrs_read(__func__, k.attrs, &list)) ||
        (st = count_fill(ctx, &k, &list, count, sizeof count)) ||
        (st = tni_symbol_atomic(ctx->ops, k.op, list.count, list.names, list.texts, k.name, &atomic)))
        return st;
    if (k.body_count)
        st = tni_symbol_bodies(atomic, k.body_count, k.bodies);
    if (!st)
        st = tni_symbol_compose(atomic, k.name, k.in_count, k.in_names, k.in, out);
    tni_symbol_release(atomic);
    return st;
}

tn_status tn_symbol_substitute(tn_symbol *s, size_t count, const char *const *names, tn_symbol *const *by,
                               tn_symbol **out)
{
    if (!s || !out || (count && (!names || !by)))
        return api_null(__func__, "s, names, by or out");
    if (s->output_count == 1 && s->outputs[0].node->def && !s->outputs[0].node->inputs && count)
        return tni_error(TN_E_KEY, "the symbol has no variables");
    return tni_symbol_compose(s, NULL, count, names, by, out);
}

tn_status tn_symbol_group(size_t count, tn_symbol *const *parts, tn_symbol **out)
{
    if (!parts || !out)
        return api_null(__func__, "parts or out");
    if (!count)
        return tni_error(TN_E_ARG, "a group of no symbols");
    for (size_t i = 0; i < count; i++)
        if (!parts[i])
            return tni_error(TN_E_ARG, "symbol %zu of the group is NULL", i);
    return tni_symbol_group(count, parts, out);
}

tn_status tn_symbol_internals(tn_symbol *s, tn_symbol **out)
{
    if (!s || !out)
        return api_null(__func__, "s or out");
    return tni_symbol_internals(s, out);
}

tn_status tn_symbol_children(tn_symbol *s, tn_symbol **out)
{
    if (!s || !out)
        return api_null(__func__, "s or out");
    return tni_symbol_children(s, out);
}

tn_status tn_symbol_output(tn_symbol *s, uint32_t index, tn_symbol **out)
{
    if (!s || !out)
        return api_null(__func__, "s or out");
    if (index >= s->output_count)
        return tni_error(TN_E_ARG, "output %u of %u", index, s->output_count);
    return tni_symbol_output(s, index, out);
}

uint32_t tn_symbol_output_count(const tn_symbol *s)
{
    return s ? s->output_count : 0;
}

tn_status tn_symbol_find(tn_symbol *s, const char *output, uint32_t *index)
{
    if (!s || !output || !index)
        return api_null(__func__, "s, output or index");
    return tni_symbol_find(s, output, index);
}

void tn_symbol_retain(tn_symbol *s)
{
    if (s)
        tni_symbol_retain(s);
}

void tn_symbol_release(tn_symbol *s)
{
    if (s)
        tni_symbol_release(s);
}

tn_status tn_symbol_prefix_push(const char *prefix)
{
    return prefix ? tni_symbol_prefix_push(prefix) : api_null(__func__, "prefix");
}

void tn_symbol_prefix_pop(void)
{
    tni_symbol_prefix_pop();
}

tn_status tn_symbol_list(tn_symbol *s, int32_t what, size_t *count, char ***names)
{
    if (!s || !count || !names)
        return api_null(__func__, "s, count or names");
    return tni_symbol_list(s, what, count, names);
}

tn_status tn_symbol_attr_get(tn_symbol *s, const char *key, const char **text)
{
    if (!s || !key || !text)
        return api_null(__func__, "s, key or text");
    return tni_symbol_attr_get(s, key, text);
}

tn_status tn_symbol_attr_set(tn_symbol *s, const char *key, const char *text)
{
    if (!s || !key || !text)
        return api_null(__func__, "s, key or text");
    return tni_symbol_attr_set(s, key, text);
}

/* ---- shapes and data types ----------------------------------------------------------------------- */

tn_status api_known_set(const char *function, tni_graph *g, const tn_known *k, uint32_t *variable)
{
    tn_shape shape = {.ndim = k->ndim};

    if (!k->name)
        return api_null(function, "a name");
    if (k->ndim < TN_NDIM_UNKNOWN || k->ndim > TN_NDIM_MAX)
        return tni_error(TN_E_SHAPE, "%.80s: %d dimensions, at most %d are possible", k->name, k->ndim,
                         TN_NDIM_MAX);
    if (k->ndim > 0 && !k->shape)
        return api_null(function, "a shape");
    if (k->dtype < TN_DTYPE_UNKNOWN || k->dtype >= TN_DTYPE_LIMIT)
        return tni_error(TN_E_DTYPE, "%.80s: %d is no data type", k->name, k->dtype);
    for (int32_t i = 0; i < k->ndim; i++) {
        if (k->shape[i] < TN_DIM_UNKNOWN)
            return tni_error(TN_E_SHAPE, "%.80s: dimension %d is %lld", k->name, i, (long long)k->shape[i]);
        shape.dim[i] = k->shape[i];
    }
    for (uint32_t i = 0; i < g->variable_count; i++)
        if (!strcmp(g->nodes[g->variables[i]].name, k->name)) {
            *variable = i;
            return tni_graph_preset(g, i, k->ndim < 0 ? NULL : &shape, k->dtype, TN_STORAGE_UNKNOWN);
        }
    return tni_error(TN_E_KEY, "the symbol has no variable %.80s", k->name);
}

static bool entry_known(const tni_graph *g, uint32_t entry)
{
    return tn_shape_known(&g->shapes[entry]) && g->dtypes[entry] >= 0;
}

static tn_status inferred_sort(tn_inferred *r)
{
    const tni_graph *g = r->graph;

    for (uint32_t k = 0; k < 2; k++)
        if (!(r->variables[k] = tni_calloc(g->variable_count + 1u, sizeof(uint32_t))))
            return TN_E_NOMEM;
    r->complete = true;
    for (uint32_t i = 0; i < g->variable_count; i++) {
        const uint32_t node = g->variables[i], k = (g->nodes[node].flags & TNI_GNODE_AUX) != 0;

        r->variables[k][r->count[k]++] = node;
        r->complete &= entry_known(g, g->nodes[node].first_entry);
    }
    for (uint32_t i = 0; i < g->head_count; i++)
        r->complete &= entry_known(g, g->heads[i]);
    return TN_OK;
}

tn_status tn_symbol_infer(tn_symbol *s, size_t count, const tn_known *known, uint32_t flags,
                          tn_inferred **out)
{
    tn_inferred *r;
    size_t outputs;
    uint32_t v;
    tn_status st;

    if (!s || (count && !known) || !out)
        return api_null(__func__, "s, known or out");
    if (flags & ~TN_SYMBOL_PARTIAL)
        return tni_error(TN_E_ARG, "tn_symbol_infer: flags 0x%x are not known", flags);
    if (!(r = tni_zalloc(sizeof *r)))
        return TN_E_NOMEM;
    if ((st = tni_graph_of(s, &r->graph)))
        goto cleanup;
    r->graph->np_shape = s->np_shape || tni_scope_get()->np_shape;
    for (size_t i = 0; i < count; i++)
        if ((st = api_known_set(__func__, r->graph, &known[i], &v)))
            goto cleanup;
    if ((st = tni_graph_infer(r->graph, (flags & TN_SYMBOL_PARTIAL) != 0)) || (st = inferred_sort(r)) ||
        (st = tni_symbol_list(s, TNI_LIST_OUTPUTS, &outputs, &r->outputs)))
        goto cleanup;
    *out = r; /* moved */
    r = NULL;

cleanup:
    tn_inferred_destroy(r);
    return st;
}

tn_status tn_inferred_at(const tn_inferred *i, int32_t what, size_t index, tn_known *out)
{
    const tni_graph *g;
    uint32_t count, entry;

    if (!i || !out)
        return api_null(__func__, "i or out");
    if (what < TN_LIST_ARGUMENTS || what > TN_LIST_INPUTS)
        return tni_error(TN_E_ARG, "%d is no kind of list", what);
    g = i->graph;
    count = what == TN_LIST_OUTPUTS  ? g->head_count
            : what == TN_LIST_INPUTS ? g->variable_count
                                     : i->count[what];
    if (index >= count)
        return tni_error(TN_E_ARG, "item %zu of %u", index, count);
    if (what == TN_LIST_OUTPUTS) {
        entry = g->heads[index];
        out->name = i->outputs[index];
    } else {
        const uint32_t node = what == TN_LIST_INPUTS ? g->variables[index] : i->variables[what][index];

        entry = g->nodes[node].first_entry;
        out->name = g->nodes[node].name;
    }
    out->ndim = g->shapes[entry].ndim;
    out->shape = g->shapes[entry].dim;
    out->dtype = g->dtypes[entry];
    return TN_OK;
}

int32_t tn_inferred_complete(const tn_inferred *i)
{
    return i && i->complete;
}

void tn_inferred_destroy(tn_inferred *i)
{
    if (!i)
        return;
    tni_graph_destroy(i->graph);
    tni_free(i->outputs);
    tni_free(i->variables[0]);
    tni_free(i->variables[1]);
    tni_free(i);
}

/* ---- files --------------------------------------------------------------------------------------- */

tn_status tn_symbol_load(tn_ctx *ctx, const char *path, tn_symbol **out)
{
    if (!ctx || !path || !out)
        return api_null(__func__, "ctx, path or out");
    return tni_symbol_load(ctx->ops, path, out);
}

tn_status tn_symbol_from_json(tn_ctx *ctx, const char *text, uint64_t bytes, tn_symbol **out)
{
    if (!ctx || !text || !out)
        return api_null(__func__, "ctx, text or out");
    return tni_symbol_from_json(ctx->ops, "symbol", text, bytes, out);
}

tn_status tn_symbol_save(tn_symbol *s, const char *path)
{
    if (!s || !path)
        return api_null(__func__, "s or path");
    return tni_symbol_save(s, path);
}

tn_status tn_symbol_to_json(tn_symbol *s, char **text)
{
    tni_str str;
    tn_status st;

    if (!s || !text)
        return api_null(__func__, "s or text");
    tni_str_init(&str, TN_TEXT_MAX);
    if (!(st = tni_symbol_to_json(s, &str)))
        st = tni_str_take(&str, text);
    tni_str_fini(&str);
    return st;
}
