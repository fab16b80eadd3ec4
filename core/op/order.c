/*
 * Sorting: sort, argsort, topk. Elements that compare equal keep their order, ascending and descending; NaN
 * is larger than every number. MXNet leaves both open. `axis` None sorts the whole array as a flat one.
 * `sort`, and `topk` with its values, leave the positions of the chosen elements for backward, which puts dy
 * there.
 */
#include "op/infer_help.h"
#include "tenon/plugin/indices.h"

#define INDEX_TYPES "float16, float32, float64, uint8, int32 or int64"

static const tn_attr_def sort_attrs[] = {
    [TN_SORT_AXIS] = TN_ATTR_OPT_INT("axis", "-1", "along which is sorted; None: the input counts as flat"),
    [TN_SORT_IS_ASCEND] = TN_ATTR_BOOL("is_ascend", "1", "the smallest first"),
    TN_ATTR_END,
};

static const tn_attr_def argsort_attrs[] = {
    [TN_ARGSORT_AXIS] =
        TN_ATTR_OPT_INT("axis", "-1", "along which is sorted; None: the input counts as flat"),
    [TN_ARGSORT_IS_ASCEND] = TN_ATTR_BOOL("is_ascend", "1", "the smallest first"),
    [TN_ARGSORT_DTYPE] = TN_ATTR_DTYPE("dtype", "float32", "of the indices: " INDEX_TYPES),
    TN_ATTR_END,
};

static const tn_attr_def topk_attrs[] = {
    [TN_TOPK_AXIS] = TN_ATTR_OPT_INT("axis", "-1", "along which is chosen; None: the input counts as flat"),
    [TN_TOPK_K] = TN_ATTR_INT("k", "1", "how many are chosen; 0 or below: all"),
    [TN_TOPK_RET_TYP] = TN_ATTR_CHOICE("ret_typ", "indices", "both|indices|mask|value",
                                       "what comes out; mask: 1 at what is chosen, else 0"),
    [TN_TOPK_IS_ASCEND] = TN_ATTR_BOOL("is_ascend", "0", "the smallest instead of the largest"),
    [TN_TOPK_DTYPE] = TN_ATTR_DTYPE("dtype", "float32", "of the indices: " INDEX_TYPES),
    TN_ATTR_END,
};

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
