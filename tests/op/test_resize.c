/* Family resize: values by hand, or from MXNet (tests/mxnet); gradients by differences. */
#include "support/op_case.h"

static const tn_op_case upsampling[] = {
    {"two", "scale=2 sample_type=nearest num_args=1", .in = {"f32[1,1,1,2] 1 2"},
     .out = {"f32[1,1,2,4] 1 1 2 2 1 1 2 2"}},
    {"several", "scale=2 sample_type=nearest num_args=3",
     .in = {"f64[2,2,4,2] random", "f64[2,1,2,4] random", "f64[2,3,8,1] random"}},
    {"sum", "scale=2 sample_type=nearest num_args=2 multi_input_mode=sum",
     .in = {"f64[1,2,2,2] random", "f64[1,2,1,4] random"}},
    {"bf16", "scale=2 sample_type=nearest num_args=1", .in = {"bf16[1,2,3,2] random"},
     .flags = TN_CASE_NO_GRAD},
    {"weight", "scale=2 sample_type=bilinear num_filter=3 num_args=2",
     .in = {"f64[2,3,3,4] random", "f64[3,1,4,4] random"}},
    {"weight f16", "scale=1 sample_type=bilinear num_filter=1 num_args=2",
     .in = {"f16[1,1,2,2] 1 2 3 4", "f16[1,1,1,1] 2"}, .out = {"f16[1,1,2,2] 2 4 6 8"},
     .flags = TN_CASE_NO_GRAD},
    {"no image", "scale=2 sample_type=nearest num_args=1", .in = {"f32[0,1,4,4]"}, .out = {"f32[0,1,8,8]"},
     .flags = TN_CASE_NO_GRAD},
    {"no channel", "scale=2 sample_type=nearest num_args=2", .in = {"f32[1,0,4,4]", "f32[1,1,1,1] 3"},
     .flags = TN_CASE_NO_GRAD},
    {"no pixel", "scale=2 sample_type=nearest num_args=1", .in = {"f32[1,1,4,0]"}, .status = TN_E_SHAPE},
    {"scale", "scale=0 sample_type=nearest num_args=1", .in = {"f32[1,1,4,4] range"}, .status = TN_E_ATTR},
    {"type", "scale=2 sample_type=cubic num_args=1", .in = {"f32[1,1,4,4] range"}, .status = TN_E_ATTR},
    {"matrix", "scale=2 sample_type=nearest num_args=1", .in = {"f32[4,4] range"}, .status = TN_E_SHAPE},
    {"three", "scale=2 sample_type=nearest num_args=2", .in = {"f32[1,1,4,4] range", "f32[1,1,3,3] range"},
     .status = TN_E_SHAPE, .message = "does not divide"},
    {"images", "scale=2 sample_type=nearest num_args=2", .in = {"f32[1,1,4,4] range", "f32[2,1,4,4] range"},
     .status = TN_E_SHAPE, .message = "images"},
    {"channels", "scale=2 sample_type=nearest num_args=2 multi_input_mode=sum",
     .in = {"f32[1,1,4,4] range", "f32[1,2,4,4] range"}, .status = TN_E_SHAPE, .message = "channels"},
    {"no weight", "scale=2 sample_type=bilinear num_filter=1 num_args=1", .in = {"f32[1,1,4,4] range"},
     .status = TN_E_ARG, .message = "data and weight"},
    {"filters", "scale=2 sample_type=bilinear num_filter=2 num_args=2",
     .in = {"f32[1,1,4,4] range", "f32[1,1,4,4] range"}, .status = TN_E_SHAPE, .message = "num_filter"},
    {"integers", "scale=2 sample_type=nearest num_args=1", .in = {"i32[1,1,4,4] range"},
     .status = TN_E_DTYPE},
};
TN_OP_TESTS(upsampling, "UpSampling", upsampling)

static const tn_op_case crop[] = {
    {"one", "num_args=1 h_w=(1,2) offset=(1,1)", .in = {"f32[1,1,3,3] range"}, .out = {"f32[1,1,1,2] 4 5"}},
    {"center", "num_args=1 h_w=(2,2) center_crop=1", .in = {"f64[2,2,5,4] random"}, .flags = TN_CASE_GRAD2},
    {"like", "num_args=2 offset=(1,0)", .in = {"f64[2,2,4,4] random", "f64[1,1,3,2] random"},
     .flags = TN_CASE_GRAD2},
    {"whole numbers", "num_args=1 h_w=(1,1) offset=(1,0)", .in = {"i8[1,1,2,2] range"},
     .out = {"i8[1,1,1,1] 2"}},
    {"no image", "num_args=1 h_w=(1,1)", .in = {"f32[0,2,3,3]"}, .out = {"f32[0,2,1,1]"},
     .flags = TN_CASE_NO_GRAD},
    {"far", "num_args=1 h_w=(2,2) offset=(2,0)", .in = {"f32[1,1,3,3] range"}, .status = TN_E_SHAPE},
    {"larger", "num_args=2 center_crop=1", .in = {"f32[1,1,3,3] range", "f32[1,1,4,1] range"},
     .status = TN_E_SHAPE},
    {"no size", "num_args=1", .in = {"f32[1,1,3,3] range"}, .status = TN_E_ATTR, .message = "h_w"},
    {"items", "num_args=1 h_w=(1,1,1)", .in = {"f32[1,1,3,3] range"}, .status = TN_E_ATTR},
    {"matrix", "num_args=1 h_w=(1,1)", .in = {"f32[3,3] range"}, .status = TN_E_SHAPE},
    {"three", "num_args=3", .in = {"f32[1,1,3,3] range", "f32[1,1,3,3] range", "f32[1,1,3,3] range"},
     .status = TN_E_ATTR},
};
TN_OP_TESTS(crop, "Crop", crop)

static const tn_op_case bilinear[] = {
    {"corners", "height=1 width=3", .in = {"f32[1,1,1,2] 1 2"}, .out = {"f32[1,1,1,3] 1 1.5 2"}},
    {"pixels", "height=1 width=4 align_corners=0", .in = {"f32[1,1,1,2] 0 4"},
     .out = {"f32[1,1,1,4] 0 1 3 4"}},
    {"larger", "height=7 width=9", .in = {"f64[2,3,4,5] random"}, .flags = TN_CASE_GRAD2},
    {"smaller", "height=2 width=3 align_corners=0", .in = {"f64[2,3,4,5] random"}, .flags = TN_CASE_GRAD2},
    {"same", "height=2 width=2", .in = {"f32[1,1,2,2] inf 1 2 3"}, .out = {"f32[1,1,2,2] inf 1 2 3"},
     .flags = TN_CASE_NO_GRAD},
    {"like", "mode=like", .in = {"f64[1,2,4,5] random", "f64[2,1,2,3] random"}, .flags = TN_CASE_GRAD2},
    {"no image", "height=2 width=2", .in = {"f32[0,2,4,4]"}, .out = {"f32[0,2,2,2]"},
     .flags = TN_CASE_NO_GRAD},
    {"no pixel", "height=2 width=2", .in = {"f32[1,1,0,4]"}, .status = TN_E_SHAPE},
    {"no pixel to be like another one", "mode=like", .in = {"f32[1,1,0,4]", "f32[1,1,2,2] range"},
     .status = TN_E_SHAPE},
    {"no scale", "mode=odd_scale scale_height=2", .in = {"f32[1,1,3,4] range"}, .status = TN_E_ATTR},
    {"negative", "scale_height=2 scale_width=-1", .in = {"f32[1,1,3,4] range"}, .status = TN_E_ATTR},
    {"far too large", "scale_height=1e18 scale_width=1e18", .in = {"f32[1,1,3,4] range"},
     .status = TN_E_SHAPE},
    {"nothing left", "mode=to_even_down", .in = {"f32[1,1,1,4] range"}, .status = TN_E_SHAPE},
    {"height", "height=0", .in = {"f32[1,1,1,4] range"}, .status = TN_E_ATTR},
    {"matrix", "height=2", .in = {"f32[3,4] range"}, .status = TN_E_SHAPE},
    {"integers", "height=2", .in = {"u8[1,1,3,4] range"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(bilinear, "_contrib_BilinearResize2D", bilinear)

static const tn_op_case adaptive[] = {
    {"one", "", .in = {"f32[1,2,2,2] range"}, .out = {"f32[1,2,1,1] 1.5 5.5"}},
    {"parts overlap", "output_size=2", .in = {"f32[1,1,1,3] 1 2 3"}, .out = {"f32[1,1,2,2] 1.5 2.5 1.5 2.5"}},
    {"many", "output_size=(3,7)", .in = {"f64[2,2,5,4] random"}, .flags = TN_CASE_GRAD2},
    {"f16", "output_size=(2,1)", .in = {"f16[1,1,2,2] 1 2 3 4"}, .out = {"f16[1,1,2,1] 1.5 3.5"},
     .flags = TN_CASE_NO_GRAD},
    {"no image", "output_size=2", .in = {"f32[0,2,3,3]"}, .out = {"f32[0,2,2,2]"}, .flags = TN_CASE_NO_GRAD},
    {"no pixel", "", .in = {"f32[1,1,0,3]"}, .status = TN_E_SHAPE, .message = "no mean"},
    {"items", "output_size=(1,2,3)", .in = {"f32[1,1,3,3] range"}, .status = TN_E_ATTR},
    {"zero", "output_size=0", .in = {"f32[1,1,3,3] range"}, .status = TN_E_ATTR},
    {"matrix", "", .in = {"f32[3,3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(adaptive, "_contrib_AdaptiveAvgPooling2D", adaptive)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(upsampling), TN_OP_TEST(crop), TN_OP_TEST(bilinear),
                                       TN_OP_TEST(adaptive)};

    return tn_op_main(tests);
}
