/* tenon/op.h: the vocabulary, and eager calls. A tn_site is the struct of room exec. */
#include <string.h>

#include "api/api.h"
#include "tenon/op.h"

#define ITEMS_FEW 16u /* of a tuple that is set without memory of the context */

/* ---- the vocabulary ------------------------------------------------------------------------------ */

static tn_status op_give(const char *function, const tni_opdef *def, tn_op_info *out)
{
    static const char *const none[] = {NULL};
    const tn_op *op = def->op;
    const tn_op_info info = {.attr_count = def->attr_count,
                             .name = op->name,
                             .doc = op->doc ? op->doc : "",
                             .plugin = def->plugin ? def->plugin->note.body.name : "",
                             .aliases = op->aliases ? op->aliases : none,
                             .attrs = op->attrs,
                             .inputs = op->inputs ? op->inputs : none,
                             .outputs = op->outputs ? op->outputs : none,
                             .mutates = op->mutates,
                             .version = op->version,
                             .visible = op->visible,
                             .differentiable = tni_function_differentiable(def) || op->gradient ||
                                               (op->flags & TN_OP_ZERO_GRADIENT),
                             .random = (op->effects & TN_EFFECT_RANDOM) != 0,
                             .definition = op,
                             .family = def->family ? def->family : ""};

    return api_info(function, &info, out, (uint32_t)sizeof info);
}

tn_status tn_op_count(tn_ctx *ctx, size_t *count)
{
    if (!ctx || !count)
        return api_null(__func__, "ctx or count");
    tni_opset_refresh(ctx->ops);
    *count = tni_opset_count(ctx->ops);
    return TN_OK;
}

tn_status tn_op_at(tn_ctx *ctx, size_t index, tn_op_info *out)
{
    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if (index >= tni_opset_count(ctx->ops))
        return tni_error(TN_E_ARG, "operator %zu of %zu", index, tni_opset_count(ctx->ops));
    return op_give(__func__, tni_opset_at(ctx->ops, index), out);
}

tn_status tn_op_find(tn_ctx *ctx, const char *name, tn_op_info *out)
{
    const tni_opdef *def;
    tn_status st;

    if (!ctx || !name || !out)
        return api_null(__func__, "ctx, name or out");
    if ((st = tni_opset_find(ctx->ops, name, &def)))
        return st;
    return op_give(__func__, def, out);
}

tn_status tn_op_register(tn_ctx *ctx, const struct tn_op *op)
{
    if (!ctx || !op)
        return api_null(__func__, "ctx or op");
    return tni_opset_add(ctx->ops, op, NULL);
}

/* ---- sites --------------------------------------------------------------------------------------- */

tn_status tn_site_create(tn_ctx *ctx, const char *op, const char *const *attrs, tn_site **out)
{
    api_attrs list;
    tn_status st;

    if (!ctx || !op || !out)
        return api_null(__func__, "ctx, op or out");
    if ((st = api_attrs_read(__func__, attrs, &list)))
        return st;
    return tni_site_create(ctx, op, list.count, list.names, list.texts, out);
}

tn_status tn_site_attr(const tn_site *site, const char *name, uint32_t *index)
{
    int32_t at;

    if (!site || !name || !index)
        return api_null(__func__, "site, name or index");
    if ((at = tni_attr_index(site->def, name)) < 0)
        return tni_error(TN_E_ATTR, "operator %s has no attribute %.80s", site->def->op->name, name);
    *index = (uint32_t)at;
    return TN_OK;
}

static tn_status attr_of(const tn_site *site, uint32_t index, const tn_attr_def **out)
{
    const tn_attr_def *a;

    if (index >= site->def->attr_count)
        return tni_error(TN_E_ATTR, "operator %s has no attribute number %u", site->def->op->name, index);
    a = &site->def->op->attrs[index];
    if (!(a->flags & TN_ATTR_F_RUNTIME))
        return tni_error(TN_E_ATTR, "operator %s: %s decides how the call is prepared; make another site",
                         site->def->op->name, a->name);
    *out = a;
    return TN_OK;
}

static tn_status range_check(const tn_site *site, const tn_attr_def *a, double value)
{
    if (a->min <= a->max && !(value >= a->min && value <= a->max))
        return tni_error(TN_E_ATTR, "operator %s: %s is %g, must be %g to %g", site->def->op->name, a->name,
                         value, a->min, a->max);
    return TN_OK;
}

tn_status tn_site_set_float(tn_site *site, uint32_t index, double value)
{
    const tn_attr_def *a;
    tn_status st;

    if (!site)
        return api_null(__func__, "site");
    if ((st = attr_of(site, index, &a)) || (st = range_check(site, a, value)))
        return st;
    if (a->type == TN_ATTR_T_FLOAT)
        return tni_site_set(site, index, tn_value_of_float(value));
    if (a->type == TN_ATTR_T_OPT_FLOAT)
        return tni_site_set(site, index, (tn_value)(uintptr_t)&value);
    return tni_error(TN_E_ATTR, "operator %s: %s is no float", site->def->op->name, a->name);
}

tn_status tn_site_set_int(tn_site *site, uint32_t index, int64_t value)
{
    const tn_attr_def *a;
    tn_status st;

    if (!site)
        return api_null(__func__, "site");
    if ((st = attr_of(site, index, &a)) || (st = range_check(site, a, (double)value)))
        return st;
    if (a->type == TN_ATTR_T_INT || (a->type == TN_ATTR_T_BOOL && (value == 0 || value == 1)))
        return tni_site_set(site, index, (tn_value)value);
    if (a->type == TN_ATTR_T_OPT_INT)
        return tni_site_set(site, index, (tn_value)(uintptr_t)&value);
    return tni_error(TN_E_ATTR, "operator %s: %s does not take the integer %lld", site->def->op->name,
                     a->name, (long long)value);
}

/* A tuple of `count` words. The site copies it. */
static tn_status items_set(tn_site *site, uint32_t index, uint32_t count, const void *items)
{
    int64_t few[1 + ITEMS_FEW], *words = few;
    tn_status st;

    if (count > ITEMS_FEW &&
        !(words = tni_keep_take(site->ctx->space->keep, (1 + (uint64_t)count) * sizeof *words)))
        return TN_E_NOMEM;
    words[0] = count;
    if (count)
        memcpy(words + 1, items, count * sizeof *words);
    st = tni_site_set(site, index, (tn_value)(uintptr_t)words);
    if (words != few)
        tni_keep_give(site->ctx->space->keep, words);
    return st;
}

static tn_status items_check(const char *function, const tn_site *site, const tn_attr_def *a, uint32_t count,
                             const void *items)
{
    if (count > TNI_ATTR_ITEMS_MAX)
        return tni_error(TN_E_ATTR, "operator %s: %s with %u items, at most %d are possible",
                         site->def->op->name, a->name, count, TNI_ATTR_ITEMS_MAX);
    return count && !items ? api_null(function, "items") : TN_OK;
}

tn_status tn_site_set_tuple(tn_site *site, uint32_t index, uint32_t count, const int64_t *items)
{
    const tn_attr_def *a;
    tn_status st;

    if (!site)
        return api_null(__func__, "site");
    if ((st = attr_of(site, index, &a)))
        return st;
    if (a->type != TN_ATTR_T_TUPLE && a->type != TN_ATTR_T_OPT_TUPLE)
        return tni_error(TN_E_ATTR, "operator %s: %s is no tuple of integers", site->def->op->name, a->name);
    if ((st = items_check(__func__, site, a, count, items)))
        return st;
    for (uint32_t i = 0; i < count; i++) {
        if (items[i] != TN_NONE_ITEM)
            st = range_check(site, a, (double)items[i]);
        else if (a->type != TN_ATTR_T_OPT_TUPLE)
            st = tni_error(TN_E_ATTR, "operator %s: item %u of %s is None", site->def->op->name, i, a->name);
        if (st)
            return st;
    }
    return items_set(site, index, count, items);
}

tn_status tn_site_set_floats(tn_site *site, uint32_t index, uint32_t count, const double *items)
{
    const tn_attr_def *a;
    tn_status st;

    if (!site)
        return api_null(__func__, "site");
    if ((st = attr_of(site, index, &a)))
        return st;
    if (a->type != TN_ATTR_T_FLOATS)
        return tni_error(TN_E_ATTR, "operator %s: %s is no tuple of floats", site->def->op->name, a->name);
    if ((st = items_check(__func__, site, a, count, items)))
        return st;
    for (uint32_t i = 0; i < count; i++)
        if ((st = range_check(site, a, items[i])))
            return st;
    return items_set(site, index, count, items);
}

tn_status tn_site_set_none(tn_site *site, uint32_t index)
{
    const tn_attr_def *a;
    tn_status st;

    if (!site)
        return api_null(__func__, "site");
    if ((st = attr_of(site, index, &a)))
        return st;
    if (a->type < TN_ATTR_T_OPT_INT && a->type != TN_ATTR_T_TUPLE)
        return tni_error(TN_E_ATTR, "operator %s: %s cannot be None", site->def->op->name, a->name);
    return tni_site_set(site, index, 0);
}

void tn_site_release(tn_site *site)
{
    if (site)
        tni_site_release(site);
}

/* ---- calls --------------------------------------------------------------------------------------- */

static tn_status operands_check(const char *function, const tn_ctx *ctx, uint32_t in_count,
                                tn_array *const *in, uint32_t out_count, tn_array *const *out)
{
    tn_status st;

    if (!out)
        return api_null(function, "out");
    if (in_count > TN_NODE_INPUTS_MAX || out_count > TN_NODE_INPUTS_MAX)
        return tni_error(TN_E_ARG, "%s: %u inputs and room for %u outputs, at most %u are possible", function,
                         in_count, out_count, TN_NODE_INPUTS_MAX);
    if ((st = api_arrays(function, ctx, in_count, in)))
        return st;
    return api_arrays(function, ctx, out_count, out);
}

/* All is as it should be; what is not is looked for by operands_check. */
static inline bool operands_good(const tn_ctx *ctx, uint32_t count, tn_array *const *arrays)
{
    if (count > TN_NODE_INPUTS_MAX || (count && !arrays))
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (arrays[i] && arrays[i]->storage->space != ctx->space)
            return false;
    return true;
}

tn_status tn_invoke(tn_site *site, uint32_t in_count, tn_array *const *in, uint32_t out_count, tn_array **out)
{
    tn_status st;

    if (!site)
        return api_null(__func__, "site");
    if (TN_UNLIKELY(!out || !operands_good(site->ctx, in_count, in) ||
                    !operands_good(site->ctx, out_count, out)) &&
        (st = operands_check(__func__, site->ctx, in_count, in, out_count, out)))
        return st;
    return tni_invoke(site, in_count, in, out_count, out);
}

tn_status tn_invoke_text(tn_ctx *ctx, const tn_op_call *call, uint32_t out_count, tn_array **out,
                         uint32_t *made)
{
    api_attrs list;
    tn_op_call k;
    tn_status st;

    if (!ctx || !call)
        return api_null(__func__, "ctx or call");
    if ((st = api_options(__func__, call, &k, (uint32_t)sizeof k)))
        return st;
    if (!k.op)
        return api_null(__func__, "op");
    if ((st = api_attrs_read(__func__, k.attrs, &list)) ||
        (st = operands_check(__func__, ctx, k.in_count, k.in, out_count, out)))
        return st;
    return tni_invoke_text(ctx, k.op, k.in_count, k.in, list.count, list.names, list.texts, out_count, out,
                           made);
}
