/** Attributes of the operators of the family detection. */
#ifndef TENON_PLUGIN_OP_DETECTION_H
#define TENON_PLUGIN_OP_DETECTION_H

#include "../attr.h"

#define TN_contrib_MultiBoxPrior_ATTRS(X)                                                                    \
    X(contrib_MultiBoxPrior, FLOATS, sizes, "[1]", TN_ANY, "of boxes; the first one has all ratios")         \
    X(contrib_MultiBoxPrior, FLOATS, ratios, "[1]", TN_ANY, "of width and height; the first: of all sizes")  \
    X(contrib_MultiBoxPrior, BOOL, clip, "0", TN_ANY, "boxes are cut to the image")                          \
    X(contrib_MultiBoxPrior, FLOATS, steps, "[-1,-1]", TN_ANY,                                               \
      "(y, x) from place to place; below 0: by size")                                                        \
    X(contrib_MultiBoxPrior, FLOATS, offsets, "[0.5,0.5]", TN_ANY, "(y, x) of a box within its place")
TN_ATTRS(contrib_MultiBoxPrior);

#define TN_contrib_MultiBoxTarget_ATTRS(X)                                                                   \
    X(contrib_MultiBoxTarget, FLOAT, overlap_threshold, "0.5", TN_ANY,                                       \
      "from here on anchors have an object")                                                                 \
    X(contrib_MultiBoxTarget, FLOAT, ignore_label, "-1", TN_ANY, "class of anchors that do not count")       \
    X(contrib_MultiBoxTarget, FLOAT, negative_mining_ratio, "-1", TN_ANY,                                    \
      "negative anchors for a positive one")                                                                 \
    X(contrib_MultiBoxTarget, FLOAT, negative_mining_thresh, "0.5", TN_ANY, "negative ones overlap less")    \
    X(contrib_MultiBoxTarget, INT, minimum_negative_samples, "0", TN_ANY, "not read, as in MXNet")           \
    X(contrib_MultiBoxTarget, FLOATS, variances, "[0.1,0.1,0.2,0.2]", TN_ANY, "that offsets are divided by")
TN_ATTRS(contrib_MultiBoxTarget);

#define TN_contrib_MultiBoxDetection_ATTRS(X)                                                                \
    X(contrib_MultiBoxDetection, BOOL, clip, "1", TN_ANY, "boxes are cut to the image")                      \
    X(contrib_MultiBoxDetection, FLOAT, threshold, "0.00999999978", TN_ANY, "least probability")             \
    X(contrib_MultiBoxDetection, INT, background_id, "0", TN_ANY, "not read, as in MXNet: it is 0")          \
    X(contrib_MultiBoxDetection, FLOAT, nms_threshold, "0.5", TN_ANY, "overlap that suppresses a box")       \
    X(contrib_MultiBoxDetection, BOOL, force_suppress, "0", TN_ANY, "boxes of other classes, too")           \
    X(contrib_MultiBoxDetection, FLOATS, variances, "[0.1,0.1,0.2,0.2]", TN_ANY,                             \
      "that offsets are multiplied by")                                                                      \
    X(contrib_MultiBoxDetection, INT, nms_topk, "-1", TN_ANY, "boxes that are looked at; below 1: all")
TN_ATTRS(contrib_MultiBoxDetection);

#define TN_BOX_FORMATS(C, op, name) C(op, name, center) C(op, name, corner)
#define TN_contrib_box_iou_format_CHOICES(C, op, name) TN_BOX_FORMATS(C, op, name)
#define TN_contrib_box_iou_ATTRS(X)                                                                          \
    X(contrib_box_iou, CHOICE, format, "corner", TN_ANY, "(x1, y1, x2, y2), or (x, y, width, height)")
TN_ATTRS(contrib_box_iou);
TN_CHOICES(contrib_box_iou, format);

#define TN_contrib_box_nms_in_format_CHOICES(C, op, name) TN_BOX_FORMATS(C, op, name)
#define TN_contrib_box_nms_out_format_CHOICES(C, op, name) TN_BOX_FORMATS(C, op, name)
#define TN_contrib_box_nms_ATTRS(X)                                                                          \
    X(contrib_box_nms, FLOAT, overlap_thresh, "0.5", TN_ANY, "overlap that suppresses a box")                \
    X(contrib_box_nms, FLOAT, valid_thresh, "0", TN_ANY, "scores must be above it")                          \
    X(contrib_box_nms, INT, topk, "-1", TN_ANY, "boxes that are looked at; below 0: all")                    \
    X(contrib_box_nms, INT, coord_start, "2", TN_IN(0, 1e9), "where the four coordinates stand")             \
    X(contrib_box_nms, INT, score_index, "1", TN_IN(0, 1e9), "where the score stands")                       \
    X(contrib_box_nms, INT, id_index, "-1", TN_IN(-1, 1e9), "where the class stands; -1: nowhere")           \
    X(contrib_box_nms, INT, background_id, "-1", TN_ANY, "a class that is left out")                         \
    X(contrib_box_nms, BOOL, force_suppress, "0", TN_ANY, "boxes of other classes, too")                     \
    X(contrib_box_nms, CHOICE, in_format, "corner", TN_ANY, "(x1, y1, x2, y2), or (x, y, width, height)")    \
    X(contrib_box_nms, CHOICE, out_format, "corner", TN_ANY, "(x1, y1, x2, y2), or (x, y, width, height)")
TN_ATTRS(contrib_box_nms);
TN_CHOICES(contrib_box_nms, in_format);
TN_CHOICES(contrib_box_nms, out_format);

#define TN_contrib_box_decode_format_CHOICES(C, op, name) TN_BOX_FORMATS(C, op, name)
#define TN_contrib_box_decode_ATTRS(X)                                                                       \
    X(contrib_box_decode, FLOAT, std0, "1", TN_ANY, "of x")                                                  \
    X(contrib_box_decode, FLOAT, std1, "1", TN_ANY, "of y")                                                  \
    X(contrib_box_decode, FLOAT, std2, "1", TN_ANY, "of the width")                                          \
    X(contrib_box_decode, FLOAT, std3, "1", TN_ANY, "of the height")                                         \
    X(contrib_box_decode, FLOAT, clip, "-1", TN_ANY,                                                         \
      "most that sizes grow by, as a logarithm; below 0: any")                                               \
    X(contrib_box_decode, CHOICE, format, "center", TN_ANY, "of anchors")
TN_ATTRS(contrib_box_decode);
TN_CHOICES(contrib_box_decode, format);

#define TN_contrib_bipartite_matching_ATTRS(X)                                                               \
    X(contrib_bipartite_matching, BOOL, is_ascend, "0", TN_ANY, "small scores are better")                   \
    X(contrib_bipartite_matching, FLOAT, threshold, TN_REQUIRED, TN_ANY, "scores that match are better")     \
    X(contrib_bipartite_matching, INT, topk, "-1", TN_ANY, "matches but one; below 1: any number")
TN_ATTRS(contrib_bipartite_matching);

/* _contrib_Proposal and _contrib_MultiProposal */
#define TN_contrib_Proposal_ATTRS(X)                                                                         \
    X(contrib_Proposal, INT, rpn_pre_nms_top_n, "6000", TN_ANY, "boxes that are looked at; below 1: all")    \
    X(contrib_Proposal, INT, rpn_post_nms_top_n, "300", TN_IN(1, 1e9), "boxes of an image in the output")    \
    X(contrib_Proposal, FLOAT, threshold, "0.699999988", TN_ANY, "overlap that suppresses a box")            \
    X(contrib_Proposal, INT, rpn_min_size, "16", TN_ANY, "least width and height in the original image")     \
    X(contrib_Proposal, FLOATS, scales, "[4,8,16,32]", TN_ANY, "of anchors")                                 \
    X(contrib_Proposal, FLOATS, ratios, "[0.5,1,2]", TN_ANY, "of anchors: height by width")                  \
    X(contrib_Proposal, INT, feature_stride, "16", TN_IN(1, 1e6), "pixels from place to place")              \
    X(contrib_Proposal, BOOL, output_score, "0", TN_ANY, "scores are an output")                             \
    X(contrib_Proposal, BOOL, iou_loss, "0", TN_ANY, "bbox_pred are shifts of corners")
TN_ATTRS(contrib_Proposal);

#endif
