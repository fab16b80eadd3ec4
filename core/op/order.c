/*
 * Sorting: sort, argsort, topk. Elements that compare equal keep their order, ascending and descending; NaN
 * is larger than every number. MXNet leaves both open. `axis` None sorts the whole array as a flat one.
 * `sort`, and `topk` with its values, leave the positions of the chosen elements for backward, which puts dy
 * there.
 */
#include "tenon/plugin/op/order.h"
#include "op/infer_help.h"

/* ---- table -------------------------------------------------------------------------------------------- */

#define TOPK_INDICES " indices?ret_typ=value+both~ret_typ=both:output"

const tn_op *const tni_family_order[] = {
    TNI_ROW("sort", .doc = "The elements in order along an axis; equal ones keep theirs, NaN is the largest.",
            .aliases = TNI_NAMES("_npi_sort"), .attrs = TNI_ATTRS(sort),
            .shapes = "[axis=None] data:(D..) -> output:(#D) indices~:(#D)"
                      " | data:(A..,D@axis,B..) -> output:data indices~:data",
            .gradients = "once: dy data indices -> data", .types = "indices:i32"),
    TNI_ROW("argsort", .doc = "Where the elements stand that sort brings to each place.",
            .aliases = TNI_NAMES("_npi_argsort"), .attrs = TNI_ATTRS(argsort), .flags = TN_OP_ZERO_GRADIENT,
            .shapes = "[axis=None] data:(D..) -> output:(#D) | data:(A..,D@axis,B..) -> output:data",
            .types = "data:D; output:attr(dtype):index"),
    TNI_ROW("topk", .doc = "The k largest or smallest elements along an axis, in order.",
            .aliases = TNI_NAMES("_npx_topk"), .attrs = TNI_ATTRS(topk),
            .shapes = "[ret_typ=mask&axis=None] data:(D..) -> output:data" TOPK_INDICES
                      " | [ret_typ=mask] data:(A..,N:elements@axis,B..) -> output:data" TOPK_INDICES
                      " | [axis=None] data:(D..) -> output:(or(k,#D))" TOPK_INDICES
                      " | data:(A..,N:elements@axis,B..) -> output:(A..,or(k,N),B..)" TOPK_INDICES
                      " ; L=N-or(k,N) ; M=#D-or(k,#D)", /* so many are not chosen */
            .types = "I:attr(dtype):index; [ret_typ=indices] output:I; indices:i32; [ret_typ=both] indices:I",
            .gradients = "once: [ret_typ=indices+mask] 0 | dy ~data indices -> data"),
    NULL,
};
