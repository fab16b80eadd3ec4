/* Family image: values by hand, or from MXNet (tests/mxnet); gradients by differences. */
#include "support/op_case.h"

static const tn_op_case crop[] = {
    {"one", "x=1 y=0 width=1 height=2", .in = {"u8[2,2,1] 1 2 3 4"}, .out = {"u8[2,1,1] 2 4"}},
    {"many", "x=1 y=2 width=3 height=2", .in = {"f64[2,5,4,3] random"}, .flags = TN_CASE_GRAD2},
    {"no image", "x=0 y=0 width=1 height=1", .in = {"f32[0,2,2,3]"}, .out = {"f32[0,1,1,3]"},
     .flags = TN_CASE_NO_GRAD},
    {"wide", "x=1 y=0 width=2 height=1", .in = {"f32[2,2,1] range"}, .status = TN_E_SHAPE},
    {"high", "x=0 y=2 width=1 height=1", .in = {"f32[2,2,1] range"}, .status = TN_E_SHAPE},
    {"nothing", "x=0 y=0 width=0 height=1", .in = {"f32[2,2,1] range"}, .status = TN_E_ATTR},
    {"left", "x=-1 y=0 width=1 height=1", .in = {"f32[2,2,1] range"}, .status = TN_E_ATTR},
    {"rank", "x=0 y=0 width=1 height=1", .in = {"f32[2,2] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(crop, "_image_crop", crop)

static const tn_op_case left_right[] = {
    {"three", "", .in = {"u8[1,3,1] 1 2 3"}, .out = {"u8[1,3,1] 3 2 1"}},
    {"colours", "", .in = {"f64[3,2,3] random"}, .flags = TN_CASE_GRAD2},
    {"no pixel", "", .in = {"f32[0,2,3]"}, .out = {"f32[0,2,3]"}, .flags = TN_CASE_NO_GRAD},
    {"two channels", "", .in = {"f32[1,2,2] range"}, .status = TN_E_SHAPE},
    {"rank", "", .in = {"f32[1,1,2,3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(left_right, "_image_flip_left_right", left_right)

static const tn_op_case top_bottom[] = {
    {"three", "", .in = {"bool[3,1,1] 1 0 0"}, .out = {"bool[3,1,1] 0 0 1"}},
    {"colours", "", .in = {"f64[3,2,1] random"}, .flags = TN_CASE_GRAD2},
};
TN_OP_TESTS(top_bottom, "_image_flip_top_bottom", top_bottom)

static const tn_op_case normalize[] = {
    {"channels", "mean=(1.0,2.0,3.0) std=(1.0,2.0,4.0)", .in = {"f32[3,1,1] 2 4 -1"},
     .out = {"f32[3,1,1] 1 1 -1"}},
    {"one for all", "mean=(1.0,) std=(0.5,)", .in = {"f64[2,3,2,2] random"}},
    {"whole", "std=(2.0,)", .in = {"i32[1,1,2] 3 -3"}, .out = {"i32[1,1,2] 1 -1"}},
    {"empty", "", .in = {"f32[3,0,2]"}, .out = {"f32[3,0,2]"}, .flags = TN_CASE_NO_GRAD},
    {"items", "mean=(1.0,2.0)", .in = {"f32[3,1,1] range"}, .status = TN_E_SHAPE, .message = "mean"},
    {"rank", "", .in = {"f32[3,1] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(normalize, "_image_normalize", normalize)

static const tn_op_case to_tensor[] = {
    {"bytes", "", .in = {"u8[1,2,3] 0 51 255 102 0 0"}, .out = {"f32[3,1,2] 0 0.4 0.2 0 1 0"}},
    {"many", "", .in = {"f32[2,3,4,3] random"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "", .in = {"u8[0,3,4,1]"}, .out = {"f32[0,1,3,4]"}},
    {"rank", "", .in = {"u8[3,4] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(to_tensor, "_image_to_tensor", to_tensor)

static const tn_op_case resize[] = {
    {"nearest", "size=(4,1) interp=0", .in = {"u8[1,2,1] 1 2"}, .out = {"u8[1,4,1] 1 1 2 2"}},
    {"linear", "size=(4,1)", .in = {"f32[1,2,1] 0 4"}, .out = {"f32[1,4,1] 0 1 3 4"}},
    {"half", "size=1", .in = {"u8[2,2,1] 1 2 3 4"}, .out = {"u8[1,1,1] 3"}},
    {"area", "size=(1,2) interp=3", .in = {"f32[4,3,1] range"}, .out = {"f32[2,1,1] 2.5 8.5"}},
    {"cubic", "size=(3,1) interp=2", .in = {"f32[1,3,1] 1 2 4"}, .out = {"f32[1,3,1] 1 2 4"}},
    {"short edge", "size=2 keep_ratio=1", .in = {"f32[1,6,4,3] random"}},
    {"long edge", "size=2 keep_ratio=1 interp=3", .in = {"f64[2,4,6,1] random"}},
    {"i16", "size=(1,2)", .in = {"i16[1,1,1] -7"}, .out = {"i16[2,1,1] -7 -7"}},
    {"no image", "size=2", .in = {"f32[0,3,3,1]"}, .out = {"f32[0,2,2,1]"}},
    {"no pixel", "size=2", .in = {"f32[0,3,1]"}, .status = TN_E_SHAPE},
    {"no size", "", .in = {"f32[3,3,1] range"}, .status = TN_E_ATTR, .message = "size"},
    {"three sizes", "size=(1,2,3)", .in = {"f32[3,3,1] range"}, .status = TN_E_ATTR},
    {"way", "size=2 interp=4", .in = {"f32[3,3,1] range"}, .status = TN_E_ATTR},
    {"rank", "size=2", .in = {"f32[3,3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(resize, "_image_resize", resize)

static const tn_op_case adjust_lighting[] = {
    {"nothing", "alpha=(0.0,0.0,0.0)", .in = {"f64[2,2,3] random"}, .flags = TN_CASE_NO_GRAD},
    {"grey", "alpha=(1.0,1.0,1.0)", .in = {"f32[1,2,1] 3 4"}, .out = {"f32[1,2,1] 3 4"},
     .flags = TN_CASE_NO_GRAD},
    {"bytes", "alpha=(10.0,0.0,0.0)", .in = {"u8[1,1,3] 255 0 9"}, .out = {"u8[1,1,3] 0 0 0"}},
    {"items", "alpha=(1.0,)", .in = {"f32[1,2,1] 3 4"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(adjust_lighting, "_image_adjust_lighting", adjust_lighting)

/* One factor that is drawn from a range of one number. */
static const tn_op_case brightness[] = {
    {"bytes", "min_factor=2 max_factor=2", .in = {"u8[1,1,3] 10 100 200"}, .out = {"u8[1,1,3] 20 200 255"}},
    {"factor", "min_factor=-1 max_factor=2", .in = {"u8[1,1,3] 10 100 200"}, .status = TN_E_ATTR},
    {"empty", "min_factor=1 max_factor=2", .in = {"f32[0,2,3]"}, .out = {"f32[0,2,3]"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(brightness, "_image_random_brightness", brightness)

static const tn_op_case contrast[] = {
    {"grey", "min_factor=0 max_factor=0", .in = {"f32[1,2,1] 1 3"}, .out = {"f32[1,2,1] 2 2"},
     .flags = TN_CASE_NO_GRAD},
    {"none", "", .in = {"f32[1,2,1] 1 3"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(contrast, "_image_random_contrast", contrast)

static const tn_op_case saturation[] = {
    {"same", "min_factor=1 max_factor=1", .in = {"f32[1,2,3] range"}, .out = {"f32[1,2,3] range"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(saturation, "_image_random_saturation", saturation)

static const tn_op_case hue[] = {
    {"third", "min_factor=0.33333334 max_factor=0.33333334", .in = {"f32[1,1,3] 255 0 0"},
     .out = {"f32[1,1,3] 0 255 0"}, .flags = TN_CASE_NO_GRAD, .tolerance = 1e-4},
    {"wild", "min_factor=1e30 max_factor=1e30", .in = {"f32[1,3,3] nan inf -inf 1e30 -1e30 0 0 0 0"},
     .out = {NULL}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(hue, "_image_random_hue", hue)

static const tn_op_case jitter[] = {
    {"nothing", "brightness=0 contrast=0 saturation=0 hue=0", .in = {"u8[1,1,3] 10 100 200"},
     .out = {"u8[1,1,3] 10 100 200"}},
    {"all", "brightness=0.5 contrast=0.5 saturation=0.5 hue=0.5", .in = {"f32[20,20,3] random"},
     .out = {NULL}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(jitter, "_image_random_color_jitter", jitter)

static const tn_op_case lighting[] = {
    {"nothing", "alpha_std=0", .in = {"f32[1,2,3] range"}, .out = {"f32[1,2,3] range"},
     .flags = TN_CASE_NO_GRAD},
    {"deviation", "alpha_std=-1", .in = {"f32[1,2,3] range"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(lighting, "_image_random_lighting", lighting)

static const tn_op_case random_flip[] = {
    {"equal", "", .in = {"u8[2,2,1] 5 5 5 5"}, .out = {"u8[2,2,1] 5 5 5 5"}},
    {"no pixel", "", .in = {"f32[2,0,3]"}, .out = {"f32[2,0,3]"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(random_left_right, "_image_random_flip_left_right", random_flip)
TN_OP_TESTS(random_top_bottom, "_image_random_flip_top_bottom", random_flip)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(crop),
                                       TN_OP_TEST(left_right),
                                       TN_OP_TEST(top_bottom),
                                       TN_OP_TEST(normalize),
                                       TN_OP_TEST(to_tensor),
                                       TN_OP_TEST(resize),
                                       TN_OP_TEST(adjust_lighting),
                                       TN_OP_TEST(brightness),
                                       TN_OP_TEST(contrast),
                                       TN_OP_TEST(saturation),
                                       TN_OP_TEST(hue),
                                       TN_OP_TEST(jitter),
                                       TN_OP_TEST(lighting),
                                       TN_OP_TEST(random_left_right),
                                       TN_OP_TEST(random_top_bottom)};

    return tn_op_main(tests);
}
