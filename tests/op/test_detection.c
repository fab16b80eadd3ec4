/* Family detection: values by hand, or from MXNet (tests/mxnet). */
#include "support/op_case.h"

static const tn_op_case prior[] = {
    {"one", "", .in = {"f32[1,1,1,1] 0"}, .out = {"f32[1,1,4] 0 0 1 1"}},
    {"clip", "sizes=(2.0,) clip=1", .in = {"f32[1,1,1,1] 0"}, .out = {"f32[1,1,4] 0 0 1 1"}},
    {"no image", "", .in = {"f32[0,3,1,1]"}, .out = {"f32[1,1,4] 0 0 1 1"}},
    {"f16", "sizes=(0.5,) ratios=(1.0,4.0)", .in = {"f16[1,1,1,1] 0"},
     .out = {"f16[1,2,4] 0.25 0.25 0.75 0.75 0 0.375 1 0.625"}},
    {"no pixel", "", .in = {"f32[1,3,0,1]"}, .status = TN_E_SHAPE},
    {"no size", "sizes=()", .in = {"f32[1,1,1,1] 0"}, .status = TN_E_ATTR},
    {"offsets", "offsets=(0.5,2.0)", .in = {"f32[1,1,1,1] 0"}, .status = TN_E_ATTR},
    {"steps", "steps=(0.5,-1.0)", .in = {"f32[1,1,1,1] 0"}, .status = TN_E_ATTR},
    {"rank", "", .in = {"f32[1,1,1] 0"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(prior, "_contrib_MultiBoxPrior", prior)

static const tn_op_case target[] = {
    {"match", "",
     .in = {"f32[1,2,4] 0 0 0.5 0.5 0.5 0.5 1 1", "f32[1,1,5] 3 0 0 0.5 0.5", "f32[1,2,2] range"},
     .out = {"f32[1,8] 0 0 0 0 0 0 0 0", "f32[1,8] 1 1 1 1 0 0 0 0", "f32[1,2] 4 0"}},
    {"no object", "ignore_label=-7",
     .in = {"f32[1,1,4] 0 0 1 1", "f32[1,1,5] -1 -1 -1 -1 -1", "f32[1,2,1] range"},
     .out = {"f32[1,4] 0 0 0 0", "f32[1,4] 0 0 0 0", "f32[1,1] -7"}},
    {"mining", "negative_mining_ratio=1",
     .in = {"f64[1,3,4] 0 0 0.5 0.5 0.5 0.5 1 1 0.6 0 1 0.3", "f64[1,1,5] 0 0 0 0.5 0.5",
            "f64[1,2,3] 0 3 1 0 0 0"},
     .out = {NULL, NULL, "f64[1,3] 1 -1 0"}},
    {"no numbers", "",
     .in = {"f32[1,2,4] nan nan nan nan inf inf inf inf", "f32[1,1,5] nan nan nan nan nan",
            "f32[1,2,2] nan nan nan nan"},
     .out = {NULL, NULL, NULL}},
    {"no image", "", .in = {"f32[1,1,4] 0 0 1 1", "f32[0,1,5]", "f32[0,2,1]"},
     .out = {"f32[0,4]", "f32[0,4]", "f32[0,1]"}},
    {"label", "", .in = {"f32[1,1,4] 0 0 1 1", "f32[1,1,4] range", "f32[1,2,1] range"}, .status = TN_E_SHAPE},
    {"anchors", "", .in = {"f32[1,2,4] range", "f32[1,1,5] range", "f32[1,2,1] range"}, .status = TN_E_SHAPE},
    {"variances", "variances=(1.0,)", .in = {"f32[1,1,4] range", "f32[1,1,5] range", "f32[1,2,1] range"},
     .status = TN_E_ATTR},
};
TN_OP_TESTS(target, "_contrib_MultiBoxTarget", target)

static const tn_op_case detection[] = {
    {"one of two", "",
     .in = {"f32[1,2,2] 0.1 0.2 0.9 0.8", "f32[1,8] 0 0 0 0 0 0 0 0", "f32[1,2,4] 0 0 0.5 0.5 0 0 0.5 0.5"},
     .out = {"f32[1,2,6] 0 0.9 0 0 0.5 0.5 -1 0.8 0 0 0.5 0.5"}},
    {"none", "threshold=0.95", .in = {"f32[1,2,1] 0.1 0.9", "f32[1,4] 0 0 0 0", "f32[1,1,4] 0 0 0.5 0.5"},
     .out = {"f32[1,1,6] -1 -1 -1 -1 -1 -1"}},
    {"no numbers", "", .in = {"f32[1,2,1] nan nan", "f32[1,4] nan inf nan inf", "f32[1,1,4] nan nan inf inf"},
     .out = {NULL}},
    {"classes", "", .in = {"f32[1,1,1] 1", "f32[1,4] range", "f32[1,1,4] range"},
     .out = {"f32[1,1,6] -1 -1 -1 -1 -1 -1"}},
    {"offsets", "", .in = {"f32[1,2,1] range", "f32[1,5] range", "f32[1,1,4] range"}, .status = TN_E_SHAPE},
    {"no anchor", "", .in = {"f32[1,2,0]", "f32[1,0]", "f32[1,0,4]"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(detection, "_contrib_MultiBoxDetection", detection)

static const tn_op_case iou[] = {
    {"half", "", .in = {"f32[1,4] 0 0 2 1", "f32[2,4] 0 0 1 1 5 5 6 6"}, .out = {"f32[1,2] 0.5 0"}},
    {"centres", "format=center", .in = {"f32[4] 1 0.5 2 1", "f32[1,4] 0.5 0.5 1 1"}, .out = {"f32[1] 0.5"}},
    {"no size", "", .in = {"f32[1,4] 1 1 1 1", "f32[1,4] 1 1 1 1"}, .out = {"f32[1,1] 0"}},
    {"none", "", .in = {"f32[0,4]", "f32[2,4] range"}, .out = {"f32[0,2]"}},
    {"three", "", .in = {"f32[1,3] range", "f32[2,4] range"}, .status = TN_E_SHAPE},
    {"format", "format=edge", .in = {"f32[1,4] range", "f32[2,4] range"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(iou, "_contrib_box_iou", iou)

static const tn_op_case nms[] = {
    {"one of two", "", .in = {"f32[2,6] 0 0.5 0 0 1 1 0 0.9 0 0 1 1"},
     .out = {"f32[2,6] 0 0.9 0 0 1 1 -1 -1 -1 -1 -1 -1", "i64[2,1] 1 -1"}},
    {"classes", "id_index=0", .in = {"f64[1,2,6] 0 0.5 0 0 1 1 1 0.9 0 0 1 1"},
     .out = {"f64[1,2,6] 1 0.9 0 0 1 1 0 0.5 0 0 1 1", "i64[1,2,1] 1 0"}, .flags = TN_CASE_NO_GRAD},
    {"no look", "topk=0", .in = {"f32[1,6] 0 0.5 0 0 1 1"}, .out = {"f32[1,6] 0 0.5 0 0 1 1", "i64[1,1] 0"},
     .flags = TN_CASE_NO_GRAD},
    {"gradient", "overlap_thresh=0.3", .in = {"f64[2,5,6] random:0.1:1"}, .out = {NULL, NULL},
     .flags = TN_CASE_NO_GRAD},
    {"nan", "valid_thresh=-1", .in = {"f32[2,6] 0 nan 0 0 1 1 nan 0.9 nan inf 1 1"}, .out = {NULL, NULL},
     .flags = TN_CASE_NO_GRAD},
    {"none", "", .in = {"f32[2,0,6]"}, .out = {"f32[2,0,6]", "i64[2,0,1]"}, .flags = TN_CASE_NO_GRAD},
    {"narrow", "", .in = {"f32[2,5] range"}, .status = TN_E_SHAPE},
    {"same place", "score_index=3", .in = {"f32[2,6] range"}, .status = TN_E_ATTR},
    {"class", "id_index=1", .in = {"f32[2,6] range"}, .status = TN_E_ATTR},
    {"rank", "", .in = {"f32[6] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(nms, "_contrib_box_nms", nms)

#define STATS "f32[4] 0 0 0 0", "f32[4] 1 1 1 1"
static const tn_op_case encode[] = {
    {"same", "", .in = {"f32[1,1] 1", "f32[1,1] 0", "f32[1,1,4] 0 0 1 1", "f32[1,1,4] 0 0 1 1", STATS},
     .out = {"f32[1,1,4] 0 0 0 0", "f32[1,1,4] 1 1 1 1"}},
    {"negative", "", .in = {"f32[1,1] -1", "f32[1,1] 0", "f32[1,1,4] 0 0 1 1", "f32[1,1,4] 0 0 2 1", STATS},
     .out = {"f32[1,1,4] 0 0 0 0", "f32[1,1,4] 0 0 0 0"}},
    {"not there", "",
     .in = {"f32[1,3] 1 1 1", "f32[1,3] -1 1 nan", "f32[1,3,4] range", "f32[1,1,4] 0 0 2 1", STATS},
     .out = {"f32[1,3,4] fill:0", "f32[1,3,4] fill:0"}},
    {"no box", "", .in = {"f32[1,1] 1", "f32[1,1] 0", "f32[1,1,4] 0 0 1 1", "f32[1,0,4]", STATS},
     .out = {"f32[1,1,4] fill:0", "f32[1,1,4] fill:0"}},
    {"images", "", .in = {"f32[1,1] 1", "f32[1,1] 0", "f32[2,1,4] range", "f32[1,1,4] range", STATS},
     .status = TN_E_SHAPE},
};
TN_OP_TESTS(encode, "_contrib_box_encode", encode)

static const tn_op_case decode[] = {
    {"same", "", .in = {"f32[1,1,4] 0 0 0 0", "f32[1,1,4] 1 1 2 4"}, .out = {"f32[1,1,4] 0 -1 2 3"}},
    {"corners", "format=corner clip=0.1", .in = {"f32[2,1,4] 0 0 0 0 0 0 0 0", "f32[1,1,4] 0 -1 2 3"},
     .out = {"f32[2,1,4] 0 -1 2 3 0 -1 2 3"}},
    {"anchors", "", .in = {"f32[1,2,4] range", "f32[1,1,4] range"}, .status = TN_E_SHAPE},
    {"none", "", .in = {"f32[0,2,4]", "f32[1,2,4] range"}, .out = {"f32[0,2,4]"}},
};
TN_OP_TESTS(decode, "_contrib_box_decode", decode)

static const tn_op_case matching[] = {
    {"pairs", "threshold=0", .in = {"f32[2,2] 0.9 0.8 0.7 0.1"}, .out = {"f32[2] 0 1", "f32[2] 0 1"}},
    {"ascending", "threshold=1 is_ascend=1", .in = {"f32[1,1,2] 0.9 0.8"},
     .out = {"f32[1,1] 1", "f32[1,2] -1 0"}},
    {"nan", "threshold=0", .in = {"f32[1,2] nan 0.8"}, .out = {"f32[1] 1", "f32[2] -1 0"}},
    {"no column", "threshold=0", .in = {"f32[2,0]"}, .out = {"f32[2] -1 -1", "f32[0]"}},
    {"no threshold", "", .in = {"f32[2,2] range"}, .status = TN_E_ATTR},
    {"rank", "threshold=0", .in = {"f32[2] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(matching, "_contrib_bipartite_matching", matching)

#define ONE                                                                                                  \
    "feature_stride=16 scales=(1.0,) ratios=(1.0,) rpn_min_size=1 rpn_post_nms_top_n=2 output_score=1 "
static const tn_op_case proposal[] = {
    {"again", ONE, .in = {"f32[1,2,1,1] 0.1 0.9", "f32[1,4,1,1] 0 0 0 0", "f32[1,3] 16 16 1"},
     .out = {"f32[2,5] 0 0 0 15 15 0 0 0 15 15", "f32[2,1] 0.9 0.9"}},
    {"no numbers", ONE,
     .in = {"f32[1,2,1,1] nan nan", "f32[1,4,1,1] nan inf -inf inf", "f32[1,3] nan inf nan"},
     .out = {NULL, NULL}},
    {"images", ONE, .in = {"f32[2,2,1,1] range", "f32[2,4,1,1] range", "f32[2,3] range"},
     .status = TN_E_SHAPE},
    {"anchors", "", .in = {"f32[1,2,1,1] range", "f32[1,4,1,1] range", "f32[1,3] range"},
     .status = TN_E_SHAPE},
    {"none", "rpn_post_nms_top_n=0", .in = {"f32[1,24,1,1] range", "f32[1,48,1,1] range", "f32[1,3] range"},
     .status = TN_E_ATTR},
    {"no place", ONE, .in = {"f32[1,2,0,1]", "f32[1,4,0,1]", "f32[1,3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(proposal, "_contrib_Proposal", proposal)

static const tn_op_case multi_proposal[] = {
    {"two images", ONE,
     .in = {"f32[2,2,1,1] 0.1 0.9 0.2 0.8", "f32[2,4,1,1] fill:0", "f32[2,3] 16 16 1 8 8 1"},
     .out = {"f32[4,5] 0 0 0 15 15 0 0 0 15 15 1 0 0 7 7 1 0 0 7 7", "f32[4,1] 0.9 0.9 -1 -1"}},
    {"no image", ONE, .in = {"f32[0,2,1,1]", "f32[0,4,1,1]", "f32[0,3]"}, .out = {"f32[0,5]", "f32[0,1]"}},
};
TN_OP_TESTS(multi_proposal, "_contrib_MultiProposal", multi_proposal)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(prior),         TN_OP_TEST(target),   TN_OP_TEST(detection),
                                       TN_OP_TEST(iou),           TN_OP_TEST(nms),      TN_OP_TEST(encode),
                                       TN_OP_TEST(decode),        TN_OP_TEST(matching), TN_OP_TEST(proposal),
                                       TN_OP_TEST(multi_proposal)};

    return tn_op_main(tests);
}
