/* Family norm: values computed by hand from the definitions (Python, 17 digits), gradients by differences. */
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

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(batch_norm), TN_OP_TEST(layer_norm)};

    return tn_op_main(tests);
}
