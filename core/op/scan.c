/* Along an axis: running sums, differences; polynomials. */
#include "tenon/plugin/op/scan.h"
#include "op/cost.h"
#include "op/infer_help.h"

static tn_status diff_shape(tn_infer *i)
{
    const int64_t n = tni_attr_int(i->attrs, TN_npi_diff_n);
    tn_shape y = *i->in_shape[0];
    int32_t axis = 0;
    tn_status st;

    if (y.ndim < 0)
        return TN_OK;
    if ((st = tni_axis(i, tni_attr_int(i->attrs, TN_npi_diff_axis), y.ndim, &axis)))
        return st;
    if (y.dim[axis] >= 0)
        y.dim[axis] = y.dim[axis] > n ? y.dim[axis] - n : 0;
    return tn_shape_unify(i, i->out_shape[0], &y);
}

/* Sums from the end: what arrives at an element is what arrives at all behind it. */
#define FROM_END(axis)                                                                                       \
    "reverse(_np_cumsum(reverse(_backward_cast(dy, ~a), axis=" axis "), axis=" axis "), axis=" axis ")"

/* How many stand before and behind the differences. */
#define PART(arr, scalar, inputs) "if(" arr "," inputs ",if(!" scalar "=None,1,0))"

const tn_op *const tni_family_scan[] = {
    TNI_ROW("_np_cumsum", .doc = "Running sums along an axis.", .aliases = TNI_NAMES("cumsum"),
            .attrs = TNI_ATTRS(np_cumsum),
            .shapes = "[axis=None] a:(D..) -> out:(#D) | a:(A..,D@axis,B..) -> out:a",
            .types = "out:attr(dtype,sumof(T))", .cost = tni_cost_each_input,
            .gradients = "composed: [axis=None] a = _backward_reshape(" FROM_END("0") ", ~a) | a = " FROM_END(
                "@axis")),
    TNI_ROW("_npi_diff", .doc = "Differences of neighbours along an axis, taken n times.",
            .attrs = TNI_ATTRS(npi_diff), .inputs = TNI_NAMES("a"), .outputs = TNI_NAMES("out"),
            .shape = diff_shape, .gradients = "linear: dy ~a -> a"),
    TNI_ROW(
        "_npi_ediff1d",
        .doc = "Differences of neighbours in the flat array, with something before and behind them.",
        .attrs = TNI_ATTRS(npi_ediff1d),
        .shapes =
            "input1:(D..) input2?to_begin_arr_given:(B..) input3?to_end_arr_given:(E..) -> out:(#D-1+" PART(
                "to_begin_arr_given", "to_begin_scalar", "#B") "+" PART("to_end_arr_given", "to_end_scalar",
                                                                        "#E") ")",
        .gradients = "once: dy ~input1 ~input2 ~input3 -> input1 input2 input3"),
    TNI_ROW("_npi_polyval", .doc = "The polynomial with coefficients p, the highest first, at each x.",
            .shapes = "p:(N) x:(D..) -> out:x", .types = "T:number", .gradients = "once: dy p x -> p x"),
    NULL,
};
