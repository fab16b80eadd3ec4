/*
 * Elements in other places: roll, rot90, tril, and arrays of a least number of dimensions. The gradient of
 * what moves moves back.
 */
#include "tenon/plugin/op/rearrange.h"
#include "op/infer_help.h"

static const tn_attr_def atleast_attrs[] = TN_ATTR_TABLE(np_atleast);

/* One shift for each axis, or one for all; for the flat array one. */
static tn_status roll_shape(tn_infer *i)
{
    const tn_tuple *shift = tni_attr_tuple(i->attrs, TN_np_roll_shift),
                   *axes = tni_attr_tuple(i->attrs, TN_np_roll_axis);
    const int32_t ndim = i->in_shape[0]->ndim;
    tn_status st;

    if (tni_tuple_count(shift) == 0 || (shift->count != 1 && shift->count != tni_tuple_count(axes)))
        return tni_infer_fail(i, TN_E_ATTR, "shift has %lld items, axis %lld",
                              (long long)tni_tuple_count(shift), (long long)tni_tuple_count(axes));
    for (int64_t k = 0; ndim >= 0 && k < tni_tuple_count(axes); k++) {
        int32_t axis = 0;

        if ((st = tni_axis(i, axes->item[k], ndim, &axis)))
            return st;
    }
    return tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status rot90_shape(tn_infer *i)
{
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_npi_rot90_axes);
    tn_shape y = *i->in_shape[0];
    int32_t a = 0, b = 0;
    tn_status st;

    if (tni_tuple_count(axes) != 2)
        return tni_infer_fail(i, TN_E_ATTR, "axes has %lld items, 2 are needed",
                              (long long)tni_tuple_count(axes));
    if (y.ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, axes->item[0], y.ndim, &a)) || (st = tni_axis(i, axes->item[1], y.ndim, &b)))
        return st;
    if (a == b)
        return tni_infer_fail(i, TN_E_ATTR, "axis %d is there twice", a);
    if (tni_attr_int(i->attrs, TN_npi_rot90_k) % 2 != 0) {
        y.dim[a] = i->in_shape[0]->dim[b];
        y.dim[b] = i->in_shape[0]->dim[a];
    }
    return tn_shape_unify(i, i->out_shape[0], &y);
}

/* A vector stands in each row of a square matrix. */
static tn_status tril_shape(tn_infer *i)
{
    const tn_shape *x = i->in_shape[0];
    const tn_shape square = {.ndim = 2, .dim = {x->dim[0], x->dim[0]}};

    if (x->ndim < 0)
        return TN_OK;
    if (x->ndim == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "the input has no dimensions, at least 1 is needed");
    return tni_shape_assign(i, i->out_shape[0], x->ndim == 1 ? &square : x);
}

/* ---- atleast ------------------------------------------------------------------------------------ */

static tn_status atleast_args(tn_infer *i)
{
    i->out_count = i->visible_count = i->in_count;
    return TN_OK;
}

/* Of 3 dimensions, vectors run along the second and matrices along the first two. */
static tn_status atleast_shape(tn_infer *i)
{
    const int32_t least = i->op->name[sizeof "_np_atleast_" - 1] - '0';
    tn_status st = TN_OK;

    for (uint32_t k = 0; !st && k < i->in_count; k++) {
        const tn_shape *x = i->in_shape[k];
        tn_shape y = *x;

        if (x->ndim < 0)
            continue;
        for (int32_t d = 0; d < least && x->ndim < least; d++)
            y.dim[d] = 1;
        if (x->ndim < least) {
            const int32_t first = x->ndim == 1 && least > 1 ? 1 : 0;

            y.ndim = least;
            for (int32_t d = 0; d < x->ndim; d++)
                y.dim[first + d] = x->dim[d];
        }
        st = tn_shape_unify(i, i->out_shape[k], &y);
    }
    return st;
}

/* ---- the family --------------------------------------------------------------------------------- */

#define MOVE(name_, ...)                                                                                     \
    TNI_ROW(name_, .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("out"),                                 \
            .gradients = "linear: dy ~data -> data", __VA_ARGS__)
#define ATLEAST(n)                                                                                           \
    TNI_ROW("_np_atleast_" #n "d", .doc = "Inputs with " #n " dimensions at least.", .attrs = atleast_attrs, \
            .inputs = TNI_NAMES("arys*"), .outputs = TNI_NAMES("out*"), .args = atleast_args,                \
            .shape = atleast_shape, .flags = TN_OP_ZERO_GRADIENT)

/* clang-format off */
const tn_op *const tni_family_rearrange[] = {
    MOVE("_np_roll", .doc = "Elements moved along axes; what leaves at the end comes in at the beginning.",
         .attrs = TNI_ATTRS(np_roll), .shape = roll_shape),
    MOVE("_npi_rot90", .doc = "Quarter turns in the plane of two axes.", .attrs = TNI_ATTRS(npi_rot90),
         .shape = rot90_shape),
    MOVE("_npi_tril", .doc = "The lower triangles of matrices; above them zeros.",
         .attrs = TNI_ATTRS(npi_tril), .shape = tril_shape),
    ATLEAST(1), ATLEAST(2), ATLEAST(3),
    NULL,
};
/* clang-format on */
