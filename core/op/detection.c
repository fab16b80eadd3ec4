/*
 * Boxes of object detection: anchors, targets and detections of SSD, proposals of Faster R-CNN, overlaps,
 * matching and suppression. A box is (x1, y1, x2, y2) or (x, y, width, height). Where MXNet gives zeros as a
 * gradient, or what is left of dy, this does.
 */
#include <string.h>

#include "op/cost.h"
#include "op/infer_help.h"
#include "tenon/plugin/op/detection.h"

static const tn_attr_def proposal_attrs[] = TN_ATTR_TABLE(contrib_Proposal);

static const tn_floats *floats_of(const tn_infer *i, uint32_t index)
{
    return (const tn_floats *)tn_value_pointer(i->attrs[index]);
}

static int64_t floats_count(const tn_infer *i, uint32_t index)
{
    const tn_floats *f = floats_of(i, index);

    return f ? f->count : 0;
}

/* The attribute has `count` numbers, or with 0 at least one. */
static tn_status floats_check(tn_infer *i, uint32_t index, int64_t count)
{
    const int64_t n = floats_count(i, index);

    return (count ? n == count : n > 0)
               ? TN_OK
               : tni_infer_fail(i, TN_E_ATTR,
                                count ? "%s has %lld items, %lld are needed" : "%s has %lld items",
                                i->op->attrs[index].name, (long long)n, (long long)count);
}

static tn_status prior_shape(tn_infer *i)
{
    const tn_floats *steps = floats_of(i, TN_contrib_MultiBoxPrior_steps),
                    *offsets = floats_of(i, TN_contrib_MultiBoxPrior_offsets);
    const tn_shape *x = i->in_shape[0];
    tn_shape y = {.ndim = 3, .dim = {1, TN_DIM_UNKNOWN, 4}};
    tn_status st;

    if ((st = floats_check(i, TN_contrib_MultiBoxPrior_sizes, 0)) ||
        (st = floats_check(i, TN_contrib_MultiBoxPrior_ratios, 0)) ||
        (st = floats_check(i, TN_contrib_MultiBoxPrior_steps, 2)) ||
        (st = floats_check(i, TN_contrib_MultiBoxPrior_offsets, 2)))
        return st;
    for (int k = 0; k < 2; k++)
        if (!(offsets->item[k] >= 0 && offsets->item[k] <= 1) || !(steps->item[0] * steps->item[1] >= 0))
            return tni_infer_fail(i, TN_E_ATTR, "offsets lie in 0 ... 1, steps have one sign");
    if (x->ndim >= 0 && x->ndim != 4)
        return tni_infer_fail(i, TN_E_SHAPE, "data has %d dimensions, 4 are needed: (N, C, H, W)", x->ndim);
    if (x->ndim == 4 && (x->dim[2] == 0 || x->dim[3] == 0))
        return tni_infer_fail(i, TN_E_SHAPE, "data has no pixel");
    if (x->ndim == 4 && x->dim[2] > 0 && x->dim[3] > 0 &&
        (__builtin_mul_overflow(x->dim[2], x->dim[3], &y.dim[1]) ||
         __builtin_mul_overflow(y.dim[1],
                                floats_count(i, TN_contrib_MultiBoxPrior_sizes) +
                                    floats_count(i, TN_contrib_MultiBoxPrior_ratios) - 1,
                                &y.dim[1])))
        return tni_infer_fail(i, TN_E_SHAPE, "there would be too many anchors");
    return tni_shape_assign(i, i->out_shape[0], &y);
}

/* Two shapes, of which some dimensions stand in both. */
static tn_status shapes_assign(tn_infer *i, tn_shape *s, int64_t a, int64_t b, int64_t c)
{
    const tn_shape known = {.ndim = c ? 3 : 2, .dim = {a, b, c}};

    return tni_shape_assign(i, s, &known);
}

#define UNKNOWN TN_DIM_UNKNOWN

/* anchor (1, A, 4), label (N, L, W), cls_pred (N, C, A) -> (N, 4 A), (N, 4 A), (N, A) */
static tn_status target_shape(tn_infer *i)
{
    tn_shape *anchor = i->in_shape[0], *label = i->in_shape[1], *pred = i->in_shape[2];
    int64_t n, a;
    tn_status st;

    if ((st = floats_check(i, TN_contrib_MultiBoxTarget_variances, 4)) ||
        (st = shapes_assign(i, anchor, 1, UNKNOWN, 4)) ||
        (st = shapes_assign(i, label, UNKNOWN, UNKNOWN, UNKNOWN)) ||
        (st = shapes_assign(i, pred, UNKNOWN, UNKNOWN, UNKNOWN)) ||
        (st = tni_dim_unify(i, &label->dim[0], &pred->dim[0])) ||
        (st = tni_dim_unify(i, &anchor->dim[1], &pred->dim[2])))
        return st;
    n = label->dim[0];
    a = anchor->dim[1];
    if (label->dim[1] == 0 || (label->dim[2] >= 0 && label->dim[2] < 5) || a == 0 || a > INT32_MAX ||
        pred->dim[1] == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "anchors, classes and labels of at least 5 numbers are needed");
    st = shapes_assign(i, i->out_shape[0], n, a < 0 ? a : 4 * a, 0);
    st = st ? st : shapes_assign(i, i->out_shape[1], n, a < 0 ? a : 4 * a, 0);
    return st ? st : shapes_assign(i, i->out_shape[2], n, a, 0);
}

/* cls_prob (N, C, A), loc_pred (N, 4 A), anchor (1, A, 4) -> (N, A, 6) */
static tn_status detection_shape(tn_infer *i)
{
    tn_shape *prob = i->in_shape[0], *anchor = i->in_shape[2];
    tn_status st;

    if ((st = floats_check(i, TN_contrib_MultiBoxDetection_variances, 4)) ||
        (st = shapes_assign(i, prob, UNKNOWN, UNKNOWN, UNKNOWN)) ||
        (st = shapes_assign(i, anchor, 1, UNKNOWN, 4)) ||
        (st = tni_dim_unify(i, &prob->dim[2], &anchor->dim[1])))
        return st;
    if (prob->dim[2] == 0 || prob->dim[2] > INT32_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "there are %lld anchors", (long long)prob->dim[2]);
    st = shapes_assign(i, i->in_shape[1], prob->dim[0], prob->dim[2] < 0 ? UNKNOWN : 4 * prob->dim[2], 0);
    return st ? st : shapes_assign(i, i->out_shape[0], prob->dim[0], prob->dim[2], 6);
}

static tn_status nms_shape(tn_infer *i)
{
    const int64_t start = tni_attr_int(i->attrs, TN_contrib_box_nms_coord_start),
                  score = tni_attr_int(i->attrs, TN_contrib_box_nms_score_index),
                  id = tni_attr_int(i->attrs, TN_contrib_box_nms_id_index);
    tn_status st = tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
    tn_shape y = *i->in_shape[0];
    int64_t last;

    if (st || y.ndim < 0)
        return st;
    if (y.ndim < 2)
        return tni_infer_fail(i, TN_E_SHAPE, "data has %d dimensions, at least 2 are needed", y.ndim);
    last = y.dim[y.ndim - 1];
    if (last >= 0 && (start + 4 > last || score >= last || id >= last))
        return tni_infer_fail(i, TN_E_SHAPE,
                              "a box has %lld numbers: coordinates, score or class stand behind them",
                              (long long)last);
    if ((score >= start && score < start + 4) || (id >= start && id < start + 4) || id == score)
        return tni_infer_fail(i, TN_E_ATTR, "coordinates, score and class stand in the same place");
    y.dim[y.ndim - 1] = 1;
    return tni_shape_assign(i, i->out_shape[1], &y);
}

/* cls_prob (N, 2 A, H, W), bbox_pred (N, 4 A, H, W), im_info (N, 3) -> (N top_n, 5), (N top_n, 1) */
static tn_status proposal_shape(tn_infer *i)
{
    const int64_t anchors =
        floats_count(i, TN_contrib_Proposal_scales) * floats_count(i, TN_contrib_Proposal_ratios);
    const bool one = strcmp(i->op->name, "_contrib_Proposal") == 0;
    tn_shape *prob = i->in_shape[0], *pred = i->in_shape[1], *info = i->in_shape[2];
    tn_shape boxes = {.ndim = 4, .dim = {one ? 1 : UNKNOWN, 2 * anchors, UNKNOWN, UNKNOWN}};
    int64_t rows;
    tn_status st;

    if ((st = floats_check(i, TN_contrib_Proposal_scales, 0)) ||
        (st = floats_check(i, TN_contrib_Proposal_ratios, 0)) || (st = tn_shape_unify(i, prob, &boxes)))
        return st;
    boxes.dim[1] = 4 * anchors;
    if ((st = tn_shape_unify(i, pred, &boxes)) || (st = shapes_assign(i, info, boxes.dim[0], 3, 0)))
        return st;
    if (boxes.dim[2] == 0 || boxes.dim[3] == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "there is no place for an anchor");
    rows = boxes.dim[0];
    if (rows > 0 &&
        __builtin_mul_overflow(rows, tni_attr_int(i->attrs, TN_contrib_Proposal_rpn_post_nms_top_n), &rows))
        return tni_infer_fail(i, TN_E_SHAPE, "there would be too many boxes");
    st = shapes_assign(i, i->out_shape[0], rows, 5, 0);
    return st ? st : shapes_assign(i, i->out_shape[1], rows, 1, 0);
}

static tn_status proposal_args(tn_infer *i)
{
    i->out_count = 2;
    i->visible_count = tni_attr_bool(i->attrs, TN_contrib_Proposal_output_score) ? 2 : 1;
    return TN_OK;
}

#define BOXES(name_, ...) TNI_ROW("_contrib_" name_, .cost = tni_cost_each_output, __VA_ARGS__)
#define FLOATS .types = "T:float", .flags = TN_OP_ZERO_GRADIENT
#define PROPOSAL(name_, doc_)                                                                                \
    BOXES(name_, .doc = doc_, .attrs = proposal_attrs, .args = proposal_args, .shape = proposal_shape,       \
          .inputs = TNI_NAMES("cls_prob", "bbox_pred", "im_info"), .outputs = TNI_NAMES("output", "score"),  \
          FLOATS)

/* clang-format off */
const tn_op *const tni_family_detection[] = {
    BOXES("MultiBoxPrior", .doc = "Anchors of all places of a feature map, in parts of the image.",
          .aliases = TNI_NAMES("_npx_multibox_prior"), .attrs = TNI_ATTRS(contrib_MultiBoxPrior),
          .inputs = TNI_NAMES("data"),
          .outputs = TNI_NAMES("output"), .shapes_only = 1, .shape = prior_shape, FLOATS),
    BOXES("MultiBoxTarget",
          .doc = "What a detector is trained for: offsets, which count, and classes of anchors.",
          .aliases = TNI_NAMES("_npx_multibox_target"), .attrs = TNI_ATTRS(contrib_MultiBoxTarget),
          .inputs = TNI_NAMES("anchor", "label", "cls_pred"),
          .outputs = TNI_NAMES("loc_target", "loc_mask", "cls_target"),
          .shape = target_shape, FLOATS),
    BOXES("MultiBoxDetection",
          .doc = "Boxes (class, probability, corners) that are left of all anchors.",
          .aliases = TNI_NAMES("_npx_multibox_detection"), .attrs = TNI_ATTRS(contrib_MultiBoxDetection),
          .inputs = TNI_NAMES("cls_prob", "loc_pred", "anchor"), .outputs = TNI_NAMES("output"),
          .shape = detection_shape, FLOATS),
    BOXES("box_iou", .doc = "Overlaps of all boxes with all others: intersection by union.",
          .attrs = TNI_ATTRS(contrib_box_iou),
          .shapes = "lhs:(A..,4) rhs:(B..,4) -> output:(A..,B..)", FLOATS),
    BOXES("box_nms", .doc = "Boxes by score, without those that overlap a better one; behind them -1.",
          .aliases = TNI_NAMES("_contrib_box_non_maximum_suppression"), .attrs = TNI_ATTRS(contrib_box_nms),
          .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output", "record"), .visible = 1,
          .shape = nms_shape, .types = "T:float; record:i64",
          .gradients = "once: dy record -> data"),
    BOXES("box_encode", .doc = "Offsets of anchors to the boxes that they match, and which count.",
          .shapes = "samples:(B,N) matches:(B,N) anchors:(B,N,4) refs:(B,M,4) means:(4) stds:(4)"
                    " -> output:(B,N,4) mask:(B,N,4)", FLOATS),
    BOXES("box_decode", .doc = "Boxes from anchors and offsets to them.",
          .attrs = TNI_ATTRS(contrib_box_decode),
          .shapes = "data:(B,N,4) anchors:(1,N,4) -> output:data", FLOATS),
    BOXES("bipartite_matching",
          .doc = "Pairs of rows and columns, the best score first; -1: no partner.",
          .attrs = TNI_ATTRS(contrib_bipartite_matching),
          .shapes = "data:(A..,R,C) -> rows:(A..,R) columns:(A..,C)", FLOATS),
    PROPOSAL("Proposal", "Boxes (0, corners) that a region proposal network finds in one image."),
    PROPOSAL("MultiProposal", "Boxes (image, corners) that a region proposal network finds."),
    NULL,
};
/* clang-format on */
