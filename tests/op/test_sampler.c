/* Family sampler: values by hand, or from MXNet (tests/mxnet); gradients by differences. */
#include "support/op_case.h"

static const tn_op_case sampler[] = {
    {"corner and middle", "", .in = {"f32[1,1,2,2] 1 2 3 4", "f32[1,2,1,3] -1 0 1 -1 0 1"},
     .out = {"f32[1,1,1,3] 1 2.5 4"}, .flags = TN_CASE_NO_GRAD},
    {"outside", "", .in = {"f32[1,1,1,2] 2 4", "f32[1,2,1,4] -2 3 nan inf 0 0 0 0"},
     .out = {"f32[1,1,1,4] 1 0 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"places", "", .in = {"f64[2,3,4,5] random", "f64[2,2,3,4] random:-1.2:1.2"}, .tolerance = 1e-7},
    {"bf16", "", .in = {"bf16[1,1,1,2] 2 4", "bf16[1,2,1,1] 0 0"}, .out = {"bf16[1,1,1,1] 3"},
     .flags = TN_CASE_NO_GRAD},
    {"no pixel", "", .in = {"f32[1,1,0,2]", "f32[1,2,1,1] 0 0"}, .out = {"f32[1,1,1,1] 0"},
     .flags = TN_CASE_NO_GRAD},
    {"no place", "", .in = {"f32[1,1,2,2] range", "f32[1,2,0,1]"}, .out = {"f32[1,1,0,1]"},
     .flags = TN_CASE_NO_GRAD},
    {"images", "", .in = {"f32[2,1,2,2] range", "f32[1,2,1,1] 0 0"}, .status = TN_E_SHAPE},
    {"grid", "", .in = {"f32[1,1,2,2] range", "f32[1,3,1,1] 0 0 0"}, .status = TN_E_SHAPE},
    {"integers", "", .in = {"i32[1,1,2,2] range", "i32[1,2,1,1] 0 0"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(sampler, "BilinearSampler", sampler)

static const tn_op_case grid[] = {
    {"identity", "transform_type=affine target_shape=(2,3)", .in = {"f32[1,6] 1 0 0 0 1 0"},
     .out = {"f32[1,2,2,3] -1 0 1 -1 0 1 -1 -1 -1 1 1 1"}},
    {"matrices", "transform_type=affine target_shape=(3,4)", .in = {"f64[3,6] random"}},
    {"one row", "transform_type=affine target_shape=(1,2)", .in = {"f32[1,6] 1 0 0 0 1 0"},
     .out = {"f32[1,2,1,2] -1 1 -1 -1"}},
    {"shifts", "transform_type=warp", .in = {"f64[2,2,3,4] random"}},
    {"still", "transform_type=warp", .in = {"f32[1,2,2,2] 0 0 0 0 0 0 0 1"},
     .out = {"f32[1,2,2,2] -1 1 -1 1 -1 -1 1 3"}},
    {"no image", "transform_type=warp", .in = {"f32[0,2,2,2]"}, .out = {"f32[0,2,2,2]"},
     .flags = TN_CASE_NO_GRAD},
    {"no target", "transform_type=affine", .in = {"f32[1,6] range"}, .status = TN_E_ATTR,
     .message = "target_shape"},
    {"items", "transform_type=affine target_shape=(2,2,2)", .in = {"f32[1,6] range"}, .status = TN_E_ATTR},
    {"seven", "transform_type=affine target_shape=(2,2)", .in = {"f32[1,7] range"}, .status = TN_E_SHAPE},
    {"type", "transform_type=cubic", .in = {"f32[1,6] range"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(grid, "GridGenerator", grid)

#define AFFINE "transform_type=affine sampler_type=bilinear "
static const tn_op_case transformer[] = {
    {"identity", AFFINE "target_shape=(2,2)", .in = {"f32[1,1,2,2] 1 2 3 4", "f32[1,6] 1 0 0 0 1 0"},
     .out = {"f32[1,1,2,2] 1 2 3 4", NULL}, .flags = TN_CASE_NO_GRAD},
    {"turn", AFFINE "target_shape=(3,5)", .in = {"f64[2,2,4,3] random", "f64[2,6] random"},
     .tolerance = 1e-7},
    {"no target", AFFINE, .in = {"f32[1,1,2,2] range", "f32[1,6] range"}, .status = TN_E_ATTR},
    {"no type", "target_shape=(2,2)", .in = {"f32[1,1,2,2] range", "f32[1,6] range"}, .status = TN_E_ATTR},
    {"images", AFFINE "target_shape=(2,2)", .in = {"f32[1,1,2,2] range", "f32[2,6] range"},
     .status = TN_E_SHAPE},
    {"rank", AFFINE "target_shape=(2,2)", .in = {"f32[2,2] range", "f32[1,6] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(transformer, "SpatialTransformer", transformer)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(sampler), TN_OP_TEST(grid), TN_OP_TEST(transformer)};

    return tn_op_main(tests);
}
