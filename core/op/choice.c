/*
 * Operators that draw positions: of rows of probabilities, of one list of them, of classes that become
 * rarer, and the order of a shuffle.
 */
#include "tenon/plugin/op/choice.h"
#include "op/infer_help.h"
#include "op/shape_attr.h"

#define ROWS_MAX (INT64_C(1) << 24) /* of unique draws: each has a part of the draw's counters of its own */

/* Appends the items of a tuple to a shape. */
static tn_status shape_append(tn_infer *i, tn_shape *s, const tn_tuple *t)
{
    if (s->ndim + tni_tuple_count(t) > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the output has %lld dimensions, at most %d are allowed",
                              (long long)(s->ndim + t->count), TN_NDIM_MAX);
    for (int64_t k = 0; k < tni_tuple_count(t); k++)
        s->dim[s->ndim++] = t->item[k];
    return TN_OK;
}

/* ---- rows of probabilities ---------------------------------------------------------------------------- */

static tn_status multinomial_args(tn_infer *i)
{
    i->out_count = i->visible_count = tni_attr_bool(i->attrs, TN_sample_multinomial_get_prob) ? 2 : 1;
    return TN_OK;
}

/* data (A.., K) -> (A.., shape..) */
static tn_status multinomial_shape(tn_infer *i)
{
    const tn_shape *data = i->in_shape[0];
    tn_shape y = *data;
    tn_status st;

    if (data->ndim < 0)
        return TN_OK;
    if (data->ndim == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "data has no dimensions, at least 1 is needed");
    y.ndim--;
    st = shape_append(i, &y, tni_attr_tuple(i->attrs, TN_sample_multinomial_shape));
    if (!st && data->dim[data->ndim - 1] == 0 && tn_shape_known(&y) && tn_shape_count(&y) > 0)
        return tni_infer_fail(i, TN_E_SHAPE, "data has rows without elements: there is nothing to draw");
    return st ? st : tni_outputs_assign(i, &y);
}

/* ---- one list of probabilities ------------------------------------------------------------------------ */

static tn_status counts_args(tn_infer *i)
{
    i->in_count = tn_value_pointer(i->attrs[TN_npi_multinomial_pvals]) ? 0 : 1;
    return TN_OK;
}

/* (size.., K) */
static tn_status counts_shape(tn_infer *i)
{
    const tn_floats *pvals = tn_value_pointer(i->attrs[TN_npi_multinomial_pvals]);
    tn_shape y = {.ndim = 0}, list = {.ndim = 1, .dim = {TN_DIM_UNKNOWN}};
    tn_status st = shape_append(i, &y, tni_attr_tuple(i->attrs, TN_npi_multinomial_size));

    if (!st && !pvals)
        st = tn_shape_unify(i, i->in_shape[0], &list);
    if (!st && y.ndim == TN_NDIM_MAX)
        st = tni_infer_fail(i, TN_E_SHAPE, "size has %d items: there is no room for the outcomes", y.ndim);
    if (st)
        return st;
    y.dim[y.ndim++] = pvals ? pvals->count : list.dim[0];
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status choice_args(tn_infer *i)
{
    i->in_count = !tni_attr_opt_int(i->attrs, TN_npi_choice_a);
    i->in_count += tni_attr_bool(i->attrs, TN_npi_choice_weighted);
    return TN_OK;
}

/* There is enough to choose from; as many weights. */
static tn_status choice_check(tn_infer *i, int64_t wanted)
{
    const int64_t *a = tni_attr_opt_int(i->attrs, TN_npi_choice_a);
    const tn_shape *weights = i->in_shape[a ? 0 : 1];
    const bool weighted = tni_attr_bool(i->attrs, TN_npi_choice_weighted);
    int64_t count;

    if ((!a && !tn_shape_known(i->in_shape[0])) || (weighted && !tn_shape_known(weights)))
        return TN_OK;
    count = a ? *a : tn_shape_count(i->in_shape[0]);
    if (weighted && tn_shape_count(weights) != count)
        return tni_infer_fail(i, TN_E_SHAPE, "%lld probabilities for %lld positions",
                              (long long)tn_shape_count(weights), (long long)count);
    if (wanted > (count && tni_attr_bool(i->attrs, TN_npi_choice_replace) ? INT64_MAX : count))
        return tni_infer_fail(i, TN_E_SHAPE, "%lld of %lld positions cannot be chosen", (long long)wanted,
                              (long long)count);
    return TN_OK;
}

static tn_status choice_shape(tn_infer *i)
{
    tn_shape y = {.ndim = 0};
    tn_status st = shape_append(i, &y, tni_attr_tuple(i->attrs, TN_npi_choice_size));

    if (st || (st = choice_check(i, tn_shape_count(&y))))
        return st;
    return tni_outputs_assign(i, &y);
}

/* ---- different classes -------------------------------------------------------------------------------- */

static tn_status zipfian_shape(tn_infer *i)
{
    tn_shape y = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}}, rows = {.ndim = 1};
    tn_status st = tni_shape_attr(i, TN_sample_unique_zipfian_shape, i->out_shape[0]);

    if (st || (st = tn_shape_unify(i, i->out_shape[0], &y)))
        return st;
    if (y.dim[0] > ROWS_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "%lld rows, at most %lld are allowed", (long long)y.dim[0],
                              (long long)ROWS_MAX);
    if (y.dim[1] > tni_attr_int(i->attrs, TN_sample_unique_zipfian_range_max))
        return tni_infer_fail(i, TN_E_SHAPE, "a row cannot have %lld different classes of %lld",
                              (long long)y.dim[1],
                              (long long)tni_attr_int(i->attrs, TN_sample_unique_zipfian_range_max));
    rows.dim[0] = y.dim[0];
    return tn_shape_unify(i, i->out_shape[1], &rows);
}

#define CHOICE(name_, ...) TNI_ROW(name_, .effects = TN_EFFECT_RANDOM, __VA_ARGS__)

/* clang-format off */
const tn_op *const tni_family_choice[] = {
    CHOICE("_sample_multinomial",
           .doc = "Positions drawn by the probabilities in each row of data, which are divided by their sum.",
           .aliases = TNI_NAMES("sample_multinomial"), .attrs = TNI_ATTRS(sample_multinomial),
           .inputs = TNI_NAMES("data"),
           .outputs = TNI_NAMES("output", "log_prob"), .args = multinomial_args, .shape = multinomial_shape,
           .flags = TN_OP_CHECKS_VALUES, .types = "data:D:float; output:attr(dtype); log_prob:D",
           .gradients = "once: [get_prob] dy1 data output -> data | 0"),
    CHOICE("_npi_multinomial", .doc = "How often each outcome was drawn in n experiments.",
           .attrs = TNI_ATTRS(npi_multinomial), .inputs = TNI_NAMES("a"), .outputs = TNI_NAMES("output"),
           .args = counts_args,
           .shape = counts_shape, .flags = TN_OP_CHECKS_VALUES | TN_OP_ZERO_GRADIENT, .types = "output:i64"),
    CHOICE("_npi_choice", .doc = "Positions drawn from a list, with or without those that were drawn.",
           .attrs = TNI_ATTRS(npi_choice), .inputs = TNI_NAMES("input1", "input2"),
           .outputs = TNI_NAMES("output"),
           .args = choice_args, .shape = choice_shape, .flags = TN_OP_CHECKS_VALUES | TN_OP_ZERO_GRADIENT,
           .types = "input1:A; input2:B; output:i64"),
    CHOICE("_sample_unique_zipfian",
           .doc = "Different classes in each row, small numbers more often, and how many draws a row took.",
           .attrs = TNI_ATTRS(sample_unique_zipfian), .outputs = TNI_NAMES("output", "tries"),
           .shape = zipfian_shape, .types = "output,tries:i64"),
    CHOICE("_shuffle", .doc = "Rows along the first axis in another order.",
           .aliases = TNI_NAMES("_npi_shuffle", "shuffle"), .shapes = "data:(S..) -> output:data"),
    NULL,
};
/* clang-format on */
