/*
 * Sorting: sort, argsort, topk. Elements that compare equal keep their order, ascending and descending; NaN
 * is larger than every number. MXNet leaves both open. `axis` None sorts the whole array as a flat one.
 * `sort`, and `topk` with its values, leave the positions of the chosen elements for backward, which puts dy
 * there.
 */
#include "tenon/plugin/op/order.h"
#include "op/infer_help.h"

static const tn_attr_def sort_attrs[] = TN_ATTR_TABLE(sort);

static const tn_attr_def argsort_attrs[] = TN_ATTR_TABLE(argsort);

static const tn_attr_def topk_attrs[] = TN_ATTR_TABLE(topk);

/* ---- table -------------------------------------------------------------------------------------------- */

static const tn_op sort =
    TNI_OP("sort", .doc = "The elements in order along an axis; equal ones keep theirs, NaN is the largest.",
           .aliases = TNI_NAMES("_npi_sort"), .attrs = sort_attrs,
           .shapes = "[axis=None] data:(D..) -> output:(#D) indices~:(#D)"
                     " | data:(A..,D@axis,B..) -> output:data indices~:data",
           .gradients = "once: dy data indices -> data", .types = "indices:i32");

static const tn_op argsort =
    TNI_OP("argsort", .doc = "Where the elements stand that sort brings to each place.",
           .aliases = TNI_NAMES("_npi_argsort"), .attrs = argsort_attrs, .flags = TN_OP_ZERO_GRADIENT,
           .shapes = "[axis=None] data:(D..) -> output:(#D) | data:(A..,D@axis,B..) -> output:data",
           .types = "data:D; output:attr(dtype):index");

#define TOPK_INDICES " indices?ret_typ=value+both~ret_typ=both:output"

static const tn_op topk =
    TNI_OP("topk", .doc = "The k largest or smallest elements along an axis, in order.",
           .aliases = TNI_NAMES("_npx_topk"), .attrs = topk_attrs,
           .shapes = "[ret_typ=mask&axis=None] data:(D..) -> output:data" TOPK_INDICES
                     " | [ret_typ=mask] data:(A..,N:elements@axis,B..) -> output:data" TOPK_INDICES
                     " | [axis=None] data:(D..) -> output:(or(k,#D))" TOPK_INDICES
                     " | data:(A..,N:elements@axis,B..) -> output:(A..,or(k,N),B..)" TOPK_INDICES
                     " ; L=N-or(k,N) ; M=#D-or(k,#D)", /* so many are not chosen */
           .types = "I:attr(dtype):index; [ret_typ=indices] output:I; indices:i32; [ret_typ=both] indices:I",
           .gradients = "once: [ret_typ=indices+mask] 0 | dy ~data indices -> data");

const tn_op *const tni_family_order[] = {&sort, &argsort, &topk, NULL};
