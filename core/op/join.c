/*
 * Concat, stack, SliceChannel (split), and the operators that lay out copies: tile, repeat, reverse.
 */
#include "tenon/plugin/op/join.h"

#include <string.h>

#include "op/infer_help.h"

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
    tn_status st;

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
    return tni_outputs_assign(i, &y);
}

static tn_status slice_channel_view(const tn_infer *i, tn_view *v)
{
    const tn_shape *x = i->in_shape[0];
    const int64_t given = tni_attr_int(i->attrs, TN_SliceChannel_axis),
                  axis = given < 0 ? given + x->ndim : given;
    int32_t n = 0;

    for (int32_t k = 0; k < x->ndim; k++)
        if (k != axis || !tni_attr_bool(i->attrs, TN_SliceChannel_squeeze_axis))
            v->stride[n++] = v->in_stride[k];
    v->offset = x->dim[axis] / i->out_count * v->output * v->in_stride[axis];
    return TN_OK;
}

/* ---- tile, repeat, reverse --------------------------------------------------------------------------- */

static tn_status tile_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
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
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status repeat_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
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
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status reverse_shape(tn_infer *i)
{
    uint32_t mask = 0;
    tn_status st = TN_OK;

    if (i->in_shape[0]->ndim >= 0)
        st = tni_axes_mask(i, tni_attr_tuple(i->attrs, TN_reverse_axis), false, i->in_shape[0]->ndim, &mask);
    return st ? st : tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

/* ---- NumPy's stacks: Concat of inputs that have got more dimensions ------------------------------------ */

/* Inputs get `least` dimensions, of which those of a vector stand from `first` on. */
static const struct stacking {
    const char *op;
    int32_t least, first, axis; /* axis: where they are joined; -1: axis 0 of vectors, else 1 */
} stackings[] = {
    {"_npi_hstack", 1, 0, -1},
    {"_npi_vstack", 2, 1, 0},
    {"_npi_dstack", 3, 1, 2},
    {"_npi_column_stack", 2, 0, 1},
};

/* Input `x` as it is stacked, along `*axis`. */
static tn_shape stacked(const tn_shape *x, const struct stacking *how, int32_t *axis)
{
    const int32_t first = x->ndim == 1 ? how->first : 0;
    tn_shape y = *x;

    if (x->ndim < how->least) {
        y.ndim = how->least;
        for (int32_t d = 0; d < y.ndim; d++)
            y.dim[d] = d >= first && d < first + x->ndim ? x->dim[d - first] : 1;
    }
    *axis = how->axis < 0 ? y.ndim > 1 : how->axis;
    return y;
}

static tn_status stacks_shape(tn_infer *i)
{
    const struct stacking *how = stackings;
    tn_shape y = {.ndim = TN_NDIM_UNKNOWN};
    int64_t total = 0;
    int32_t axis = 0;
    tn_status st;

    if (i->in_count == 0)
        return tni_infer_fail(i, TN_E_ARG, "at least one input is needed");
    while (strcmp(how->op, i->op->name) != 0)
        how++;
    for (uint32_t k = 0; k < i->in_count; k++) {
        tn_shape part;

        if (i->in_shape[k]->ndim < 0)
            return TN_OK;
        part = stacked(i->in_shape[k], how, &axis);
        if (total >= 0 && (part.dim[axis] < 0 || __builtin_add_overflow(total, part.dim[axis], &total)))
            total = TN_DIM_UNKNOWN;
        part.dim[axis] = TN_DIM_UNKNOWN;
        if ((st = tn_shape_unify(i, &y, &part)))
            return st;
    }
    y.dim[axis] = total;
    return tn_shape_unify(i, i->out_shape[0], &y);
}

/* ---- parts that begin at indices, or are as many as sections ------------------------------------------- */

static tn_status split_args(tn_infer *i)
{
    const int64_t sections = tni_attr_int(i->attrs, TN_split_v2_sections);

    i->out_count = i->visible_count =
        (uint32_t)(sections ? sections : tni_tuple_count(tni_attr_tuple(i->attrs, TN_split_v2_indices)));
    if (i->out_count == 0)
        return tni_infer_fail(i, TN_E_ATTR, "there are neither indices nor sections");
    return TN_OK;
}

/* Part `k` of `size` elements begins at `*begin`. */
static tn_status part_find(tn_infer *i, int64_t size, uint32_t k, int64_t *begin, int64_t *length)
{
    const tn_tuple *indices = tni_attr_tuple(i->attrs, TN_split_v2_indices);
    const int64_t sections = tni_attr_int(i->attrs, TN_split_v2_sections);
    int64_t end;

    if (sections && size % sections)
        return tni_infer_fail(i, TN_E_SHAPE, "%lld elements do not give %lld equal parts", (long long)size,
                              (long long)sections);
    *begin = sections ? size / sections * k : indices->item[k];
    end = sections ? *begin + size / sections : k + 1 < i->out_count ? indices->item[k + 1] : size;
    if ((k == 0 && *begin != 0) || *begin > end || end > size)
        return tni_infer_fail(i, TN_E_SHAPE, "indices must begin with 0, ascend and lie in the axis");
    *length = end - *begin;
    return TN_OK;
}

static tn_status parts_shape(tn_infer *i, int64_t along)
{
    const bool squeeze = tni_attr_bool(i->attrs, TN_split_v2_squeeze_axis);
    const tn_shape *x = i->in_shape[0];
    int32_t axis = 0;
    tn_status st;

    if (x->ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, along, x->ndim, &axis)))
        return st;
    for (uint32_t k = 0; k < i->out_count; k++) {
        tn_shape y = *x;
        int64_t begin = 0;

        if (x->dim[axis] >= 0 && (st = part_find(i, x->dim[axis], k, &begin, &y.dim[axis])))
            return st;
        if (squeeze && y.dim[axis] >= 0 && y.dim[axis] != 1)
            return tni_infer_fail(i, TN_E_SHAPE, "a part of size %lld cannot lose its axis",
                                  (long long)y.dim[axis]);
        if (squeeze)
            tni_shape_reduce(x, 1u << axis, false, i->flags & TN_INFER_NP_SHAPE, &y);
        if ((st = tn_shape_unify(i, i->out_shape[k], &y)))
            return st;
    }
    return TN_OK;
}

static tn_status split_shape(tn_infer *i)
{
    return parts_shape(i, tni_attr_int(i->attrs, TN_split_v2_axis));
}

static tn_status hsplit_shape(tn_infer *i)
{
    return parts_shape(i, i->in_shape[0]->ndim > 1 ? 1 : 0);
}

static tn_status dsplit_shape(tn_infer *i)
{
    return parts_shape(i, 2);
}

/* ---- the family --------------------------------------------------------------------------------------- */

#define JOIN(name_, inputs_, ...) TNI_ROW(name_, .inputs = TNI_NAMES(inputs_), __VA_ARGS__)

static const tn_attr_def hstack_attrs[] = TN_ATTR_TABLE(npi_hstack);
static const tn_attr_def vstack_attrs[] = TN_ATTR_TABLE(npi_vstack);
static const tn_attr_def split_attrs[] = TN_ATTR_TABLE(split_v2);

#define STACK(name_, attrs_, doc_)                                                                           \
    JOIN(name_, "data*", .doc = doc_, .attrs = attrs_, .outputs = TNI_NAMES("out"), .shape = stacks_shape,   \
         .gradients = "linear: dy ~data* -> data*")
#define SPLIT(name_, shape_, gradient, doc_, ...)                                                            \
    JOIN(name_, "data", .doc = doc_, .attrs = split_attrs, .outputs = TNI_NAMES("output*"),                  \
         .args = split_args, .shape = shape_, .gradients = "composed: " gradient, __VA_ARGS__)

/* clang-format off */
const tn_op *const tni_family_join[] = {
    TNI_ROW(
        "Concat", .doc = "Inputs one after the other along an axis.",
        .aliases = TNI_NAMES("_sparse_concat", "concat"), .attrs = TNI_ATTRS(Concat),
        .shapes = "arg*:(A..,D'@dim,B..) -> output:(A..,+D'@dim,B..)",
        .gradients = "linear: dy ~arg* -> arg*"),
    JOIN("stack", "arg*", .doc = "Inputs along a new axis.", .attrs = TNI_ATTRS(stack),
         .outputs = TNI_NAMES("output"), .shape = stack_shape,
         .gradients = "composed: arg* = SliceChannel(dy, num_outputs=#arg, axis=@axis, squeeze_axis=1)"),
    JOIN("SliceChannel", "data", .doc = "Equal parts along an axis.",
         .aliases = TNI_NAMES("split"), .attrs = TNI_ATTRS(SliceChannel), .outputs = TNI_NAMES("output*"),
         .args = slice_channel_args, .shape = slice_channel_shape, .view = slice_channel_view,
         .gradients = "composed: [squeeze_axis] data = stack(dy*, axis=@axis, num_args=#output)"
                      " | data = Concat(dy*, dim=@axis, num_args=#output)"),
    JOIN("tile", "data", .doc = "The input again and again along each axis.",
         .aliases = TNI_NAMES("_npi_tile"), .attrs = TNI_ATTRS(tile), .outputs = TNI_NAMES("output"),
         .shape = tile_shape, .gradients = "linear: dy ~data -> data"),
    JOIN("repeat", "data", .doc = "Each element several times.", .aliases = TNI_NAMES("_np_repeat"),
         .attrs = TNI_ATTRS(repeat), .outputs = TNI_NAMES("output"), .shape = repeat_shape,
         .gradients = "linear: dy ~data -> data"),
    JOIN("reverse", "data", .doc = "The order along some axes turned round.",
         .aliases = TNI_NAMES("flip"), .attrs = TNI_ATTRS(reverse), .outputs = TNI_NAMES("output"),
         .shape = reverse_shape, .gradients = "composed: data = reverse!(dy)"),
    STACK("_npi_hstack", hstack_attrs,
          "Inputs side by side: along the second axis, vectors along the first."),
    STACK("_npi_vstack", vstack_attrs,
          "Inputs one under the other: along the first axis, vectors as rows."),
    STACK("_npi_dstack", hstack_attrs, "Inputs one behind the other: along the third axis."),
    STACK("_npi_column_stack", vstack_attrs, "Inputs side by side, vectors as columns."),
    SPLIT("_split_v2", split_shape,
          "[squeeze_axis] data = stack(dy*, axis=@axis, num_args=#output)"
          " | data = Concat(dy*, dim=@axis, num_args=#output)",
          "Parts along an axis.", .aliases = TNI_NAMES("_npi_split")),
    SPLIT("_npi_hsplit", hsplit_shape, "data = _npi_hstack(dy*, num_args=#output)",
          "Parts along the second axis, of a vector along the first.", .aliases = NULL),
    SPLIT("_npi_dsplit", dsplit_shape, "data = _npi_dstack(dy*, num_args=#output)",
          "Parts along the third axis.", .aliases = NULL),
    /* Flat parameters of a recurrent net; the one whose size is not known follows from the others. */
    TNI_ROW("_rnn_param_concat", .doc = "Parameters of recurrent layers one after the other.",
            .aliases = TNI_NAMES("_npi_rnn_param_concat"), .computes = "Concat"),
    NULL,
};
/* clang-format on */
