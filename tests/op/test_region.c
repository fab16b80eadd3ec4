/* Family region: values by hand, or from MXNet (tests/mxnet); gradients by differences. */
#include "support/op_case.h"

#define REGIONS "f64[3,5] 0 0.3 0.5 3.2 3.7 1 1 1 4 5 0 2 2 1 1"

static const tn_op_case pooling[] = {
    {"whole", "pooled_size=(1,1) spatial_scale=1", .in = {"f32[1,1,2,2] 1 2 4 3", "f32[1,5] 0 0 0 1 1"},
     .out = {"f32[1,1,1,1] 4", "i64[1,1,1,1] 2"}, .flags = TN_CASE_NO_GRAD},
    {"parts", "pooled_size=(2,3) spatial_scale=1", .in = {"f64[2,2,6,5] random", REGIONS},
     .no_grad_inputs = 2},
    {"images that are not there", "pooled_size=(1,1) spatial_scale=1",
     .in = {"f32[1,1,1,1] 3", "f32[4,5] -1 0 0 1 1 1 0 0 1 1 nan 0 0 1 1 1e30 0 0 1 1"},
     .out = {"f32[4,1,1,1] 0 0 0 0", NULL}, .flags = TN_CASE_NO_GRAD},
    {"far away", "pooled_size=(1,1) spatial_scale=1",
     .in = {"f32[1,1,1,1] 3", "f32[3,5] 0 50 50 60 60 0 -1e30 -1e30 1e30 1e30 0 nan nan nan nan"},
     .out = {"f32[3,1,1,1] 0 3 0", NULL}, .flags = TN_CASE_NO_GRAD},
    {"f16", "pooled_size=(1,1) spatial_scale=1", .in = {"f16[1,1,1,2] 3 5", "f16[1,5] 0 0 0 1 0"},
     .out = {"f16[1,1,1,1] 5", NULL}, .flags = TN_CASE_NO_GRAD},
    {"no region", "pooled_size=(1,1) spatial_scale=1", .in = {"f32[1,1,1,1] 3", "f32[0,5]"},
     .out = {"f32[0,1,1,1]", NULL}, .flags = TN_CASE_NO_GRAD},
    {"no image", "pooled_size=(1,1) spatial_scale=1", .in = {"f32[0,1,1,1]", "f32[1,5] 0 0 0 1 1"},
     .out = {"f32[1,1,1,1] 0", NULL}, .flags = TN_CASE_NO_GRAD},
    {"four", "pooled_size=(1,1) spatial_scale=1", .in = {"f32[1,1,1,1] 3", "f32[1,4] 0 0 0 1"},
     .status = TN_E_SHAPE},
    {"size", "pooled_size=2 spatial_scale=1", .in = {"f32[1,1,1,1] 3", "f32[1,5] range"}, .status = TN_E_ATTR,
     .message = "pooled_size"},
    {"rank", "pooled_size=(1,1) spatial_scale=1", .in = {"f32[1,1,1] 3", "f32[1,5] range"},
     .status = TN_E_SHAPE},
    {"types", "pooled_size=(1,1) spatial_scale=1", .in = {"f32[1,1,1,1] 3", "f64[1,5] range"},
     .status = TN_E_DTYPE},
};
TN_OP_TESTS(pooling, "ROIPooling", pooling)

static const tn_op_case align[] = {
    {"middle", "pooled_size=(1,1) spatial_scale=1", .in = {"f32[1,1,2,2] 1 2 3 4", "f32[1,5] 0 0 0 1 1"},
     .out = {"f32[1,1,1,1] 2.5"}, .flags = TN_CASE_NO_GRAD},
    {"parts", "pooled_size=(2,3) spatial_scale=1", .in = {"f64[2,2,6,5] random", REGIONS},
     .no_grad_inputs = 2},
    {"samples", "pooled_size=(2,2) spatial_scale=0.5 sample_ratio=3 aligned=1",
     .in = {"f64[1,2,6,7] random", "f64[2,5] 0 1 3 11 9 0 2 0 7 8"}, .no_grad_inputs = 2},
    {"own channels", "pooled_size=(2,2) spatial_scale=1 position_sensitive=1",
     .in = {"f64[2,8,6,5] random", REGIONS}, .no_grad_inputs = 2},
    {"very large", "pooled_size=(1,1) spatial_scale=1",
     .in = {"f32[1,1,1,1] 1", "f32[2,5] 0 -1e30 -1e30 1e30 1e30 0 nan nan nan nan"}, .out = {NULL},
     .flags = TN_CASE_NO_GRAD},
    {"nothing", "pooled_size=(1,1) spatial_scale=1 aligned=1", .in = {"f32[1,1,1,1] 1", "f32[1,5] 0 3 3 2 2"},
     .out = {"f32[1,1,1,1] 0"}, .flags = TN_CASE_NO_GRAD},
    {"no image", "pooled_size=(1,1) spatial_scale=1",
     .in = {"f32[1,1,1,1] 1", "f32[2,5] -1 0 0 1 1 1 0 0 1 1"}, .out = {"f32[2,1,1,1] 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"no pixel", "pooled_size=(1,1) spatial_scale=1", .in = {"f32[1,1,0,1]", "f32[1,5] 0 0 0 1 1"},
     .out = {"f32[1,1,1,1] 0"}, .flags = TN_CASE_NO_GRAD},
    {"channels", "pooled_size=(2,2) spatial_scale=1 position_sensitive=1",
     .in = {"f32[1,3,1,1] range", "f32[1,5] range"}, .status = TN_E_SHAPE},
    {"ratio", "pooled_size=(1,1) spatial_scale=1 sample_ratio=100000",
     .in = {"f32[1,1,1,1] 1", "f32[1,5] range"}, .status = TN_E_ATTR},
};
TN_OP_TESTS(align, "_contrib_ROIAlign", align)

static const tn_op_case psroi[] = {
    {"own channels", "spatial_scale=1 output_dim=1 pooled_size=2",
     .in = {"f32[1,4,2,2] range", "f32[1,5] 0 0 0 1 1"}, .out = {"f32[1,1,2,2] 0 5 10 15"},
     .flags = TN_CASE_NO_GRAD},
    {"parts", "spatial_scale=0.5 output_dim=2 pooled_size=3 group_size=2",
     .in = {"f64[2,8,6,5] random", "f64[2,5] 0 1 3 11 9 1 2 0 7 8"}, .no_grad_inputs = 2},
    {"far away", "spatial_scale=1 output_dim=1 pooled_size=1",
     .in = {"f32[1,1,1,1] 3", "f32[4,5] 0 50 50 60 60 0 -1e30 -1e30 1e30 1e30 nan 0 0 1 1 0 nan 0 0 0"},
     .out = {"f32[4,1,1,1] 0 3 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"channels", "spatial_scale=1 output_dim=2 pooled_size=2", .in = {"f32[1,7,2,2] range", "f32[1,5] range"},
     .status = TN_E_SHAPE, .message = "channels"},
    {"size", "spatial_scale=1 output_dim=2 pooled_size=0", .in = {"f32[1,8,2,2] range", "f32[1,5] range"},
     .status = TN_E_ATTR},
};
TN_OP_TESTS(psroi, "_contrib_PSROIPooling", psroi)

static const tn_op_case correlation[] = {
    {"one", "max_displacement=0", .in = {"f32[1,2,1,2] 1 2 3 4", "f32[1,2,1,2] 5 6 7 8"},
     .out = {"f32[1,1,1,2] 13 22"}, .flags = TN_CASE_NO_GRAD},
    {"displacements", "max_displacement=1 pad_size=1", .in = {"f64[2,3,4,5] random", "f64[2,3,4,5] random"}},
    {"patches", "kernel_size=3 max_displacement=2 stride1=2 stride2=2 pad_size=3",
     .in = {"f64[1,2,7,6] random", "f64[1,2,7,6] random"}},
    {"differences", "is_multiply=0 max_displacement=1 pad_size=2",
     .in = {"f64[1,2,4,3] random", "f64[1,2,4,3] random"}, .tolerance = 1e-7},
    {"no image", "", .in = {"f32[0,1,4,4]", "f32[0,1,4,4]"}, .out = {"f32[0,9,2,2]"},
     .flags = TN_CASE_NO_GRAD},
    {"even", "kernel_size=2", .in = {"f32[1,1,4,4] range", "f32[1,1,4,4] range"}, .status = TN_E_ATTR},
    {"too far", "max_displacement=2", .in = {"f32[1,1,4,4] range", "f32[1,1,4,4] range"},
     .status = TN_E_SHAPE},
    {"shapes", "", .in = {"f32[1,1,4,4] range", "f32[1,1,4,3] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(correlation, "Correlation", correlation)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(pooling), TN_OP_TEST(align), TN_OP_TEST(psroi),
                                       TN_OP_TEST(correlation)};

    return tn_op_main(tests);
}
