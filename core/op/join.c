/*
 * Concat, stack, SliceChannel (split), and the operators that lay out copies: tile, repeat, reverse.
 */
#include <stdio.h>

#include "op/join.h"
#include "tenon/plugin/op/join.h"

static const tn_attr_def concat_attrs[] = TN_ATTR_TABLE(Concat);
static const tn_attr_def stack_attrs[] = TN_ATTR_TABLE(stack);
static const tn_attr_def slice_channel_attrs[] = TN_ATTR_TABLE(SliceChannel);
static const tn_attr_def tile_attrs[] = TN_ATTR_TABLE(tile);
static const tn_attr_def repeat_attrs[] = TN_ATTR_TABLE(repeat);
static const tn_attr_def reverse_attrs[] = TN_ATTR_TABLE(reverse);

static tn_status number_text(char *text, size_t size, int64_t n)
{
    return snprintf(text, size, "%lld", (long long)n) > 0 ? TN_OK : TN_E_INTERNAL;
}

/* ---- Concat ------------------------------------------------------------------------------------------- */

/* The rank that anyone knows, -1: nobody. */
static int32_t known_rank(tn_shape *const *in, uint32_t count, const tn_shape *out)
{
    int32_t ndim = out->ndim;

    for (uint32_t k = 0; k < count && ndim < 0; k++)
        ndim = in[k]->ndim;
    return ndim;
}

/* Extents along `axis` add up to the output's: the sum, or the one that is missing. */
static tn_status extents_add(tn_infer *i, int32_t axis, uint32_t count, tn_shape *const *in, tn_shape *out)
{
    int64_t sum = 0, *open = NULL;
    uint32_t missing = 0;

    for (uint32_t k = 0; k < count; k++) {
        if (in[k]->dim[axis] < 0)
            missing++, open = &in[k]->dim[axis];
        else if (__builtin_add_overflow(sum, in[k]->dim[axis], &sum))
            return tni_infer_fail(i, TN_E_SHAPE, "the output is too large");
    }
    if (missing == 0)
        return tni_dim_unify(i, &out->dim[axis], &sum);
    if (missing == 1 && out->dim[axis] >= sum)
        *open = out->dim[axis] - sum;
    return TN_OK;
}

static tn_status concat_unify(tn_infer *i, uint32_t count, tn_shape *const *in, tn_shape *out)
{
    const int32_t ndim = known_rank(in, count, out);
    tn_shape common;
    int32_t axis = 0;
    tn_status st;

    if (count == 0)
        return tni_infer_fail(i, TN_E_ARG, "at least one input is needed");
    if (ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_Concat_dim), ndim, &axis)))
        return st;
    common.ndim = ndim;
    for (int32_t k = 0; k < ndim; k++)
        common.dim[k] = TN_DIM_UNKNOWN;
    for (uint32_t pass = 0; pass < 2; pass++) /* the second carries back what later ones knew */
        for (uint32_t k = 0; k <= count; k++) {
            tn_shape *s = k < count ? in[k] : out;
            int64_t own = s->ndim > axis ? s->dim[axis] : TN_DIM_UNKNOWN;

            common.dim[axis] = own;
            if ((st = tn_shape_unify(i, s, &common)))
                return st;
        }
    return extents_add(i, axis, count, in, out);
}

static tn_status concat_shape(tn_infer *i)
{
    return concat_unify(i, i->in_count, i->in_shape, i->out_shape[0]);
}

/* dy, then the inputs: their gradients. */
static tn_status backward_concat_args(tn_infer *i)
{
    if (i->in_count < 2)
        return tni_infer_fail(i, TN_E_ARG, "dy and at least one input are needed");
    i->out_count = i->in_count - 1;
    return TN_OK;
}

static tn_status backward_concat_shape(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; !st && k < i->out_count; k++)
        st = tn_shape_unify(i, i->in_shape[k + 1], i->out_shape[k]);
    return st ? st : concat_unify(i, i->out_count, i->in_shape + 1, i->in_shape[0]);
}

tn_status tni_concat_grad(tn_grad *g)
{
    char dim[24];
    const tn_attr_text attr = {"dim", dim};
    tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count),
                 TN_EMIT_INHERIT | TN_EMIT_BACKWARD,
                 "_backward_Concat",
                 NULL,
                 &attr,
                 g->in_count + 1,
                 1};
    tn_edge *in, dx = {0};
    tn_status st;

    if (!tn_grad_of(g, 0).node)
        return TN_OK;
    if ((st = number_text(dim, sizeof dim, tni_attr_int(g->attrs, TN_Concat_dim))))
        return st;
    if (!(in = tni_calloc((uint64_t)g->in_count + 1, sizeof *in)))
        return TN_E_NOMEM;
    in[0] = tn_grad_of(g, 0);
    for (uint32_t k = 0; k < g->in_count; k++)
        in[k + 1] = tn_grad_input(g, k);
    e.in = in;
    st = g->ops->emit(g, &e, &dx);
    for (; !st && dx.index < g->in_count; dx.index++)
        st = g->ops->set(g, dx.index, dx);
    tni_free(in);
    return st;
}

/* ---- stack and SliceChannel -------------------------------------------------------------------------- */

static tn_status stack_shape(tn_infer *i)
{
    tn_shape part, *out = i->out_shape[0], y;
    int32_t ndim, axis = 0;
    tn_status st = TN_OK;

    part.ndim = TN_NDIM_UNKNOWN;
    if (i->in_count == 0)
        return tni_infer_fail(i, TN_E_ARG, "at least one input is needed");
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; !st && k < i->in_count; k++)
            st = tn_shape_unify(i, &part, i->in_shape[k]);
    ndim = part.ndim >= 0 ? part.ndim + 1 : out->ndim;
    if (st || ndim < 0)
        return st;
    if (ndim > TN_NDIM_MAX || ndim < 1)
        return tni_infer_fail(i, TN_E_SHAPE, "the output would have %d dimensions", ndim);
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_stack_axis), ndim, &axis)))
        return st;
    y.ndim = ndim;
    for (int32_t k = 0; k < ndim; k++)
        y.dim[k] = k == axis       ? (int64_t)i->in_count
                   : part.ndim < 0 ? TN_DIM_UNKNOWN
                                   : part.dim[k < axis ? k : k - 1];
    if ((st = tn_shape_unify(i, &y, out)))
        return st;
    part.ndim = ndim - 1;
    for (int32_t k = 0; k < ndim - 1; k++)
        part.dim[k] = y.dim[k < axis ? k : k + 1];
    for (uint32_t k = 0; !st && k < i->in_count; k++)
        st = tn_shape_unify(i, i->in_shape[k], &part);
    return st;
}

/* Each input's gradient is a slice of dy: one SliceChannel. */
static tn_status stack_grad(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);
    char axis[24], count[24];
    const tn_attr_text attrs[] = {{"num_outputs", count}, {"axis", axis}, {"squeeze_axis", "1"}};
    tn_edge dx = {0};
    tn_status st;

    if (!dy.node)
        return TN_OK;
    if ((st = number_text(axis, sizeof axis, tni_attr_int(g->attrs, TN_stack_axis))) ||
        (st = number_text(count, sizeof count, g->in_count)) ||
        (st = tn_grad_node(g, "SliceChannel", 1, &dy, 3, attrs, &dx)))
        return st;
    for (uint32_t k = 0; !st && k < g->in_count; k++) {
        dx.index = k;
        st = g->ops->set(g, k, dx);
    }
    return st;
}

static tn_status slice_channel_args(tn_infer *i)
{
    i->out_count = i->visible_count = (uint32_t)tni_attr_int(i->attrs, TN_SliceChannel_num_outputs);
    return TN_OK;
}

static tn_status slice_channel_shape(tn_infer *i)
{
    const int64_t parts = i->out_count;
    const bool squeeze = tni_attr_bool(i->attrs, TN_SliceChannel_squeeze_axis);
    tn_shape *x = i->in_shape[0], y;
    int32_t axis = 0;
    tn_status st = TN_OK;

    if (x->ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_SliceChannel_axis), x->ndim, &axis)))
        return st;
    if (x->dim[axis] >= 0 && (x->dim[axis] % parts || (squeeze && x->dim[axis] != parts)))
        return tni_infer_fail(i, TN_E_SHAPE, "axis %d of size %lld does not give %lld parts%s", axis,
                              (long long)x->dim[axis], (long long)parts, squeeze ? " of size 1" : "");
    y.ndim = 0;
    for (int32_t k = 0; k < x->ndim; k++)
        if (k != axis)
            y.dim[y.ndim++] = x->dim[k];
        else if (!squeeze)
            y.dim[y.ndim++] = x->dim[k] < 0 ? TN_DIM_UNKNOWN : x->dim[k] / parts;
    if (y.ndim == 0 && !(i->flags & TN_INFER_NP_SHAPE))
        y.dim[y.ndim++] = 1;
    for (uint32_t k = 0; !st && k < i->out_count; k++)
        st = tni_shape_assign(i, i->out_shape[k], &y);
    return st;
}

/* Parts that nothing arrives at count as zeros. */
static tn_status slice_channel_grad(tn_grad *g)
{
    const bool squeeze = tni_attr_bool(g->attrs, TN_SliceChannel_squeeze_axis);
    char axis[24], count[24];
    const tn_attr_text attrs[] = {{squeeze ? "axis" : "dim", axis}, {"num_args", count}};
    tn_edge *in, dx = {0};
    tn_status st;

    if (!tni_grad_arrives(g))
        return TN_OK;
    in = tni_calloc(g->out_count, sizeof *in);
    if (!in)
        return TN_E_NOMEM;
    for (uint32_t k = 0; k < g->out_count; k++)
        in[k] = tn_grad_of(g, k);
    if (!(st = number_text(axis, sizeof axis, tni_attr_int(g->attrs, TN_SliceChannel_axis))) &&
        !(st = number_text(count, sizeof count, g->out_count)))
        st = tn_grad_node(g, squeeze ? "stack" : "Concat", g->out_count, in, 2, attrs, &dx);
    tni_free(in);
    return tni_grad_set(g, &st, 0, dx);
}

/* ---- tile, repeat, reverse --------------------------------------------------------------------------- */

static tn_status tile_unify(tn_infer *i, const tn_shape *x, tn_shape *out)
{
    const tn_tuple *reps = tni_attr_tuple(i->attrs, TN_tile_reps);
    const int64_t n = tni_tuple_count(reps);
    tn_shape y;

    if (x->ndim < 0)
        return TN_OK;
    if (n > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "reps has %lld items", (long long)n);
    y.ndim = n > x->ndim ? (int32_t)n : x->ndim;
    for (int32_t k = 0; k < y.ndim; k++) {
        const int32_t from = k - (y.ndim - x->ndim);
        const int64_t at = k - (y.ndim - n), size = from >= 0 ? x->dim[from] : 1,
                      rep = at >= 0 ? reps->item[at] : 1;

        y.dim[k] = TN_DIM_UNKNOWN;
        if (size >= 0 && __builtin_mul_overflow(size, rep, &y.dim[k]))
            return tni_infer_fail(i, TN_E_SHAPE, "dimension %d of the output is too large", k);
    }
    return tn_shape_unify(i, out, &y);
}

static tn_status repeat_unify(tn_infer *i, const tn_shape *x, tn_shape *out)
{
    const int64_t *axis = tni_attr_opt_int(i->attrs, TN_repeat_axis);
    tn_shape y = *x;
    int32_t k = 0;
    tn_status st;

    if (x->ndim < 0 || (!axis && !tn_shape_known(x)))
        return TN_OK;
    if (!axis) {
        y.ndim = 1;
        y.dim[0] = 1;
        for (int32_t d = 0; d < x->ndim; d++)
            if (__builtin_mul_overflow(y.dim[0], x->dim[d], &y.dim[0]))
                return tni_infer_fail(i, TN_E_SHAPE, "the input is too large");
    } else if ((st = tni_axis(i, *axis, x->ndim, &k))) {
        return st;
    }
    if (y.dim[k] >= 0 &&
        __builtin_mul_overflow(y.dim[k], tni_attr_int(i->attrs, TN_repeat_repeats), &y.dim[k]))
        return tni_infer_fail(i, TN_E_SHAPE, "dimension %d of the output is too large", k);
    return tn_shape_unify(i, out, &y);
}

static tn_status tile_shape(tn_infer *i)
{
    return tile_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status repeat_shape(tn_infer *i)
{
    return repeat_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status backward_tile_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : tile_unify(i, i->in_shape[1], i->in_shape[0]);
}

static tn_status backward_repeat_shape(tn_infer *i)
{
    tn_status st = tn_shape_unify(i, i->in_shape[1], i->out_shape[0]);

    return st ? st : repeat_unify(i, i->in_shape[1], i->in_shape[0]);
}

static tn_status reverse_shape(tn_infer *i)
{
    uint32_t mask = 0;
    tn_status st = TN_OK;

    if (i->in_shape[0]->ndim >= 0)
        st = tni_axes_mask(i, tni_attr_tuple(i->attrs, TN_reverse_axis), false, i->in_shape[0]->ndim, &mask);
    return st ? st : tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status back_with_data(tn_grad *g, const char *op)
{
    const tn_edge in[] = {tn_grad_of(g, 0), tn_grad_input(g, 0)};

    return in[0].node ? tn_grad_emit(g, 0, op, 2, in) : TN_OK;
}

static tn_status tile_grad(tn_grad *g)
{
    return back_with_data(g, "_backward_tile");
}

static tn_status repeat_grad(tn_grad *g)
{
    return back_with_data(g, "_backward_repeat");
}

static tn_status reverse_grad(tn_grad *g)
{
    const tn_edge dy = tn_grad_of(g, 0);
    const tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count), TN_EMIT_INHERIT, "reverse", &dy, NULL, 1, 0};
    tn_edge dx = {0};
    tn_status st = dy.node ? g->ops->emit(g, &e, &dx) : TN_OK;

    return dy.node ? tni_grad_set(g, &st, 0, dx) : TN_OK;
}

/* Linear in dy: the parts that arrive, one after the other. */
static tn_status backward_concat_grad(tn_grad *g)
{
    tn_emit e = {
        (uint32_t)TN_END(tn_emit, attr_count), TN_EMIT_INHERIT, "Concat", NULL, NULL, g->out_count, 0};
    tn_edge *in, made = {0};
    tn_status st;

    if (!tni_grad_arrives(g))
        return TN_OK;
    if (!(in = tni_calloc((uint64_t)g->out_count + 1, sizeof *in)))
        return TN_E_NOMEM;
    for (uint32_t k = 0; k < g->out_count; k++)
        in[k] = tn_grad_of(g, k);
    e.in = in;
    st = g->ops->emit(g, &e, &made);
    tni_free(in);
    return tni_grad_set(g, &st, 0, made);
}

static const tn_op concat = TNI_OP("Concat", .doc = "Inputs one after the other along an axis.",
                                   .aliases = TNI_NAMES("_sparse_concat", "concat"), .attrs = concat_attrs,
                                   .inputs = TNI_NAMES("arg*"), .outputs = TNI_NAMES("output"),
                                   .shape = concat_shape, .gradient = tni_concat_grad);

static const tn_op backward_concat =
    TNI_OP("_backward_Concat", .doc = "Gradients of Concat.", .attrs = concat_attrs, .flags = TN_OP_BACKWARD,
           .inputs = TNI_NAMES("dy", "arg*"), .outputs = TNI_NAMES("dx*"), .args = backward_concat_args,
           .shape = backward_concat_shape, .gradient = backward_concat_grad);

static const tn_op stack =
    TNI_OP("stack", .doc = "Inputs along a new axis.", .attrs = stack_attrs, .inputs = TNI_NAMES("arg*"),
           .outputs = TNI_NAMES("output"), .shape = stack_shape, .gradient = stack_grad);

static const tn_op slice_channel =
    TNI_OP("SliceChannel", .doc = "Equal parts along an axis.", .aliases = TNI_NAMES("split"),
           .attrs = slice_channel_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output*"),
           .args = slice_channel_args, .shape = slice_channel_shape, .gradient = slice_channel_grad);

static const tn_op tile =
    TNI_OP("tile", .doc = "The input again and again along each axis.", .aliases = TNI_NAMES("_npi_tile"),
           .attrs = tile_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
           .shape = tile_shape, .gradient = tile_grad);

static const tn_op backward_tile =
    TNI_OP("_backward_tile", .doc = "Gradient of tile.", .attrs = tile_attrs, .flags = TN_OP_BACKWARD,
           .inputs = TNI_NAMES("dy", "data"), .outputs = TNI_NAMES("dx"), .shape = backward_tile_shape,
           .gradient = tni_grad_of_linear);

static const tn_op repeat =
    TNI_OP("repeat", .doc = "Each element several times.", .aliases = TNI_NAMES("_np_repeat"),
           .attrs = repeat_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
           .shape = repeat_shape, .gradient = repeat_grad);

static const tn_op backward_repeat =
    TNI_OP("_backward_repeat", .doc = "Gradient of repeat.", .attrs = repeat_attrs, .flags = TN_OP_BACKWARD,
           .inputs = TNI_NAMES("dy", "data"), .outputs = TNI_NAMES("dx"), .shape = backward_repeat_shape,
           .gradient = tni_grad_of_linear);

static const tn_op reverse =
    TNI_OP("reverse", .doc = "The order along some axes turned round.", .aliases = TNI_NAMES("flip"),
           .attrs = reverse_attrs, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
           .shape = reverse_shape, .gradient = reverse_grad);

const tn_op *const tni_family_join[] = {
    &concat,        &backward_concat, &stack,           &slice_channel, &tile,
    &backward_tile, &repeat,          &backward_repeat, &reverse,       NULL,
};
