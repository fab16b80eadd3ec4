/*
 * Operators by which room tensor fills, copies, casts and adds arrays on a device. They have no gradient, and
 * no call, symbol or file can name them (TN_OP_INTERNAL). Kernels take strides on both sides.
 */
#include "tenon/plugin/op/move.h"
#include "op/infer_help.h"

const tn_op *const tni_family_move[] = {
    TNI_ROW("_fill", .doc = "One value in every element of an array like data, which is not read.",
            .attrs = TNI_ATTRS(fill), .flags = TN_OP_INTERNAL, .shapes = "data:(S..) -> output:data"),
    TNI_ROW("_move",
            .doc = "The same numbers in an array of any type, as Cast makes them: their bits where the type "
                   "is the same.",
            .flags = TN_OP_INTERNAL, .shapes = "data:(S..) -> output:data", .types = "output:or(T)"),
    NULL,
};
