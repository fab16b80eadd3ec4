/* Family norm: values computed by hand from the definitions (Python, 17 digits) or by MXNet, gradients by
 * MXNet and by differences. */
#include "support/op_case.h"

#define STATS "f64[2] 2 3", "f64[2] 10 20", "f64[2] 1 1", "f64[2] 2 2"

static const tn_op_case batch_cases[] = {
    {"train", "fix_gamma=False output_mean_var=True momentum=0.9 eps=0.001",
     .in = {"f64[2,2,2] 1 2 3 4 5 6 7 8", STATS},
     .out = {"f64[2,2,2] 7.5749290353225796 8.544957421193548 16.362393552983868 17.81743613179032 "
             "11.455042578806452 "
             "12.42507096467742 22.18256386820968 23.637606447016132",
             "f64[2] 3.5 5.5", "f64[2] 0.4850141929354842 0.4850141929354842", "f64[2] 1.25 1.45",
             "f64[2] 2.225 2.225"},
     .flags = TN_CASE_TRAIN | TN_CASE_NO_GRAD},
    {"evaluate", "fix_gamma=False eps=0",
     .in = {"f64[1,2] 3 5", "f64[2] 2 3", "f64[2] 10 20", "f64[2] 1 1", "f64[2] 4 1"},
     .out = {"f64[1,2] 12 32", NULL, NULL, "f64[2] 1 1", "f64[2] 4 1"}, .no_grad_inputs = 0x18},
    {"fixed gamma", "eps=0", .in = {"f64[1,2] 3 5", "f64[2] 2 3", "f64[2] 10 20", "f64[2] 1 1", "f64[2] 4 1"},
     .out = {"f64[1,2] 11 24", NULL, NULL, "f64[2] 1 1", "f64[2] 4 1"}, .no_grad_inputs = 0x18},
    {"global in training", "fix_gamma=0 use_global_stats=1 eps=0",
     .in = {"f64[1,2] 3 5", "f64[2] 2 3", "f64[2] 10 20", "f64[2] 1 1", "f64[2] 4 1"},
     .out = {"f64[1,2] 12 32", NULL, NULL, "f64[2] 1 1", "f64[2] 4 1"}, .flags = TN_CASE_TRAIN,
     .no_grad_inputs = 0x18},
    {"images", "fix_gamma=0",
     .in = {"f64[3,5,4,3] random", "f64[5] random", "f64[5] random", "f64[5] random", "f64[5] random:0.5:2"},
     .flags = TN_CASE_TRAIN, .no_grad_inputs = 0x18, .tolerance = 1e-7},
    {"images, fixed", "",
     .in = {"f64[3,5,4,3] random", "f64[5] fill:1", "f64[5] random", "f64[5] random", "f64[5] random:0.5:2"},
     .flags = TN_CASE_TRAIN, .no_grad_inputs = 0x1a, .tolerance = 1e-7},
    {"channels last", "fix_gamma=0 axis=-1",
     .in = {"f64[3,4,3,21] random", "f64[21] random", "f64[21] random", "f64[21] random",
            "f64[21] random:0.5:2"},
     .flags = TN_CASE_TRAIN, .no_grad_inputs = 0x18, .tolerance = 1e-7},
    {"second, images", "fix_gamma=0",
     .in = {"f64[3,2,4,3] random", "f64[2] random", "f64[2] random", "f64[2] random", "f64[2] random:0.5:2"},
     .flags = TN_CASE_TRAIN | TN_CASE_GRAD2, .no_grad_inputs = 0x18, .tolerance = 1e-7},
    {"second, fixed", "axis=-1 eps=0.1",
     .in = {"f64[4,3] random", "f64[3] fill:1", "f64[3] random", "f64[3] random", "f64[3] random:0.5:2"},
     .flags = TN_CASE_TRAIN | TN_CASE_GRAD2, .no_grad_inputs = 0x1a, .tolerance = 1e-7},
    {"second, global", "fix_gamma=0 use_global_stats=1",
     .in = {"f64[3,2,4] random", "f64[2] random", "f64[2] random", "f64[2] random", "f64[2] random:0.5:2"},
     .flags = TN_CASE_TRAIN | TN_CASE_GRAD2, .no_grad_inputs = 0x18, .tolerance = 1e-7},
    {"second, evaluate", "fix_gamma=0",
     .in = {"f64[3,2,4] random", "f64[2] random", "f64[2] random", "f64[2] random", "f64[2] random:0.5:2"},
     .flags = TN_CASE_GRAD2, .no_grad_inputs = 0x18, .tolerance = 1e-7},
    {"many", "fix_gamma=0",
     .in = {"f32[8,40,13,11] random", "f32[40] random", "f32[40] random", "f32[40] random",
            "f32[40] random:0.5:2"},
     .flags = TN_CASE_TRAIN | TN_CASE_NO_GRAD},
    {"nothing, very often", "fix_gamma=0 momentum=0.5",
     .in = {"f32[4398046511104,2,0]", "f32[2] 2 3", "f32[2] 10 20", "f32[2] 2 4", "f32[2] 1 4"},
     .out = {"f32[4398046511104,2,0]", NULL, NULL, "f32[2] 1 2", "f32[2] 0.5 2"},
     .grad = {NULL, "f32[2] 0 0", "f32[2] 0 0"}, .flags = TN_CASE_TRAIN | TN_CASE_NO_GRAD},
    {"channels", "", .in = {"f64[2,3] range", STATS}, .status = TN_E_SHAPE},
    {"axis", "axis=2", .in = {"f64[2,2] range", STATS}, .status = TN_E_SHAPE, .message = "axis"},
    {"eps", "eps=-1", .in = {"f64[2,2] range", STATS}, .status = TN_E_ATTR},
    {"types", "", .in = {"f32[2,2] range", STATS}, .status = TN_E_DTYPE},
    {"integers", "", .in = {"i32[2,2] range", "i32[2] 1 1", "i32[2] 1 1", "i32[2] 1 1", "i32[2] 1 1"},
     .status = TN_E_DTYPE},
};
TN_OP_TESTS(batch_norm, "BatchNorm", batch_cases)

static const tn_op_case layer_cases[] = {
    {"row", "output_mean_var=1", .in = {"f64[1,4] 1 2 3 6", "f64[4] 1 2 3 4", "f64[4] 0 1 0 1"},
     .out = {"f64[1,4] -1.0690434404458735 -0.06904344044587352 0 7.414260642675241", "f64[1,1] 3",
             "f64[1,1] 1.870831365997481"},
     .tolerance = 1e-7, .flags = TN_CASE_NO_GRAD},
    {"rows", "", .in = {"f64[3,4,7] random", "f64[7] random", "f64[7] random"}, .tolerance = 1e-7,
     .flags = TN_CASE_GRAD2},
    {"axis", "axis=1 eps=0.1", .in = {"f64[3,5,4] random", "f64[5] random", "f64[5] random"},
     .tolerance = 1e-7, .flags = TN_CASE_GRAD2},
    {"second, one row", "eps=0.1", .in = {"f64[7] random", "f64[7] random", "f64[7] random"},
     .tolerance = 1e-7, .flags = TN_CASE_GRAD2},
    {"many", "", .in = {"f32[60,300] random", "f32[300] random", "f32[300] random"},
     .flags = TN_CASE_NO_GRAD},
    {"nothing, very often", "", .in = {"f32[4398046511104,0,2]", "f32[2] 1 2", "f32[2] 1 2"},
     .out = {"f32[4398046511104,0,2]"}, .grad = {NULL, "f32[2] 0 0", "f32[2] 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"gamma", "", .in = {"f64[3,7] random", "f64[6] random", "f64[7] random"}, .status = TN_E_SHAPE},
    {"far", "axis=2", .in = {"f64[3,7] random", "f64[7] random", "f64[7] random"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(layer_norm, "LayerNorm", layer_cases)

/* ---- values and gradients by MXNet 1.9.1 ---------------------------------------------------------------
 *
 * Outputs of `mx.nd.X` and what `autograd.backward` with the head gradients of the table gives, on a CPU.
 * Hidden inputs of the backward operators (means, variances, norms) are by NumPy in float64. */

static const tn_op_case instance_norm_cases[] = {
    {"three", "",
     .in = {"f32[2,2,3] -0.89 2.35 -0.97 2.59 0.44 1.06 1.83 0.59 -0.52 -1.06 -1.6 1.69", "f32[2] 0.21 -1.21",
            "f32[2] 2.4 -0.63"},
     .out = {"f32[2,2,3] 2.257002 2.6968567 2.2461414 -2.2716806 0.60572195 -0.2240406 2.6616638 2.3905249 "
             "2.147812 -0.011406183 0.4420426 -2.3206363"}},
    {"images", "eps=0.5",
     .in = {"f32[2,3,2,2] 2.8 -1.06 -1.88 -0.98 1.5 1.9 -1.89 0.89 -1.99 0.58 1.2 2.93 -0.7 2.01 2.35 2.61 "
            "-1.99 0.35 2.91 -0.01 2.07 0.73 1.85 0.42",
            "f32[3] -1.85 -1.57 -1.44", "f32[3] -0.74 2.82 1.16"},
     .out = {"f32[2,3,2,2] -3.6683342 0.001591146 0.7812127 -0.07446945 1.9594458 1.5769774 5.2008667 "
             "2.5427103 3.1813545 1.2357061 0.7663279 -0.5433887 2.0509334 -1.2846476 -1.7031336 -2.0231526 "
             "4.7438116 2.7907882 0.65414715 3.0912533 0.0030218363 1.9349232 0.3201995 2.381856"}},
    {"volumes", "",
     .in = {"f32[1,2,2,2,3] 2.22 -0.27 -1.5 -0.08 0.55 2.81 -0.14 -1.94 2.3 -1.44 0.39 2.25 0.57 0.23 2 -1.9 "
            "0.86 0.06 2.93 2.01 -1.73 -1.05 0.26 1.51",
            "f32[2] -0.34 -0.2", "f32[2] 2.61 2.77"},
     .out = {"f32[1,2,2,2,3] 2.2224426 2.7613077 3.0274942 2.7201896 2.5838501 2.0947597 2.7331743 3.1227152 "
             "2.2051296 3.0145094 2.618476 2.2159503 2.7574277 2.804487 2.5595024 3.099299 2.717289 "
             "2.8280165 2.4307816 2.5581183 3.0757694 2.981651 2.8003347 2.627323"}},
    {"second, images", "", .in = {"f64[3,2,4,3] random", "f64[2] random", "f64[2] random"}, .tolerance = 1e-7,
     .flags = TN_CASE_GRAD2},
    {"second, one dimension", "eps=0.1", .in = {"f64[2,3,5] random", "f64[3] random", "f64[3] random"},
     .tolerance = 1e-7, .flags = TN_CASE_GRAD2},
    {"many", "", .in = {"f32[6,40,13,11] random", "f32[40] random", "f32[40] random"},
     .flags = TN_CASE_NO_GRAD},
    {"no examples", "", .in = {"f32[0,2,3]", "f32[2] 1 2", "f32[2] 1 2"}, .out = {"f32[0,2,3]"},
     .flags = TN_CASE_NO_GRAD},
    {"no channels", "", .in = {"f32[2,0,3]", "f32[0]", "f32[0]"}, .out = {"f32[2,0,3]"},
     .flags = TN_CASE_NO_GRAD},
    {"no elements", "", .in = {"f32[2,2,0]", "f32[2] 1 2", "f32[2] 1 2"}, .out = {"f32[2,2,0]"},
     .flags = TN_CASE_NO_GRAD},
    {"matrix", "", .in = {"f32[2,3] range", "f32[3] range", "f32[3] range"}, .status = TN_E_SHAPE,
     .message = "3"},
    {"gamma", "", .in = {"f32[2,3,2] range", "f32[2] range", "f32[3] range"}, .status = TN_E_SHAPE,
     .message = "gamma"},
    {"eps", "eps=-1", .in = {"f32[2,3,2] range", "f32[3] range", "f32[3] range"}, .status = TN_E_ATTR},
    {"integers", "", .in = {"i32[2,3,2] range", "i32[3] range", "i32[3] range"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(instance_norm, "InstanceNorm", instance_norm_cases)

static const tn_op_case backward_instance_norm_cases[] = {
    {"three", "",
     .in = {"f32[2,2,3] -0.34 -0.82 0.52 0.32 0.4 -0.94 -0.86 -0.99 -0.69 -1.42 -1.34 1.86",
            "f32[2,2,3] -0.89 2.35 -0.97 2.59 0.44 1.06 1.83 0.59 -0.52 -1.06 -1.6 1.69", "f32[2] 0.21 -1.21",
            "f32[2,2] 0.16333333 1.3633333 0.6333333 -0.32333332",
            "f32[2,2] 2.3918223 0.8164222 0.92135555 2.0753555"},
     .out = {"f32[2,2,3] -0.057520177 0.0013514496 0.05616874 -0.31999338 -0.788847 1.1088405 0.015092567 "
             "-0.031993434 0.016900867 0.29482797 -0.2456375 -0.04919061",
             "f32[2] -1.5069034 4.853037", "f32[2] -3.18 -1.12"},
     .flags = TN_CASE_NO_GRAD},
    {"images", "eps=0.5",
     .in = {"f32[2,3,2,2] 1.27 0.26 0.54 1.25 1.71 1.65 1.3 -1.62 -0.56 -1.86 0.19 1.18 -1.8 -1.25 -0.54 "
            "-1.02 1.18 -0.59 0.56 -0.03 0.33 1.76 1.77 -1.55",
            "f32[2,3,2,2] 2.8 -1.06 -1.88 -0.98 1.5 1.9 -1.89 0.89 -1.99 0.58 1.2 2.93 -0.7 2.01 2.35 2.61 "
            "-1.99 0.35 2.91 -0.01 2.07 0.73 1.85 0.42",
            "f32[3] -1.85 -1.57 -1.44", "f32[2,3] -0.28 0.6 0.68 1.5675 0.315 1.2675",
            "f32[2,3] 3.2862 2.19605 3.11795 1.7591188 3.038475 0.49761876"},
     .out =
         {"f32[2,3,2,2] -0.03746122 0.44547743 0.07786417 -0.48588008 -0.9101821 -0.8536204 -0.5112988 "
          "2.2751012 -0.3942345 1.186205 -0.22192638 -0.57004416 0.16614771 0.24311149 -0.53619754 "
          "0.12693894 -0.57751024 0.72348726 -0.42919555 0.2832185 0.8391247 -2.0278664 -1.3691674 2.5579095",
          "f32[3] 2.3712246 -0.69306874 3.9971037", "f32[3] -1.29 4.16 1.26"},
     .flags = TN_CASE_NO_GRAD},
    {"volumes", "",
     .in = {"f32[1,2,2,2,3] -0.37 1.59 -0.68 -1.67 0.11 0.64 1.57 1.86 1.08 1.04 0.84 0.81 1.07 1.9 -0.51 "
            "-1.67 -1.04 -1.11 -0.55 1.24 -1.76 -0.2 1.25 -0.94",
            "f32[1,2,2,2,3] 2.22 -0.27 -1.5 -0.08 0.55 2.81 -0.14 -1.94 2.3 -1.44 0.39 2.25 0.57 0.23 2 -1.9 "
            "0.86 0.06 2.93 2.01 -1.73 -1.05 0.26 1.51",
            "f32[2] -0.34 -0.2", "f32[1,2] 0.42916667 0.47916666", "f32[1,2] 2.4672909 2.086991"},
     .out = {"f32[1,2,2,2,3] 0.17877072 -0.21161528 0.29632628 0.49130923 0.0975494 -0.047809407 -0.2090507 "
             "-0.24739017 -0.13611157 -0.07671586 -0.058260486 -0.07700209 -0.17165005 -0.29853487 "
             "0.09752852 0.12037897 0.13063343 0.112075016 0.13590212 -0.14433493 0.1388383 -0.05307038 "
             "-0.20750947 0.13974324",
             "f32[2] -1.1818733 4.4234734", "f32[2] 6.82 -2.32"},
     .flags = TN_CASE_NO_GRAD},
    {"no elements", "", .in = {"f32[2,2,0]", "f32[2,2,0]", "f32[2] 1 2", "f32[2,2] range", "f32[2,2] fill:1"},
     .out = {"f32[2,2,0]", "f32[2] 0 0", "f32[2] 0 0"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(backward_instance_norm, "_backward_InstanceNorm", backward_instance_norm_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(batch_norm), TN_OP_TEST(layer_norm),
                                       TN_OP_TEST(instance_norm), TN_OP_TEST(backward_instance_norm)};

    return tn_op_main(tests);
}
