/* Families activation and softmax, and the gradients of the loss layers. */
#include "support/op_case.h"

#define N TN_CASE_NO_GRAD

static const tn_op_case activation[] = {
    {"relu", "act_type=relu", .in = {"f32[2,2] -2 0 1 4"}, .out = {"f32[2,2] 0 0 1 4"}, .flags = N},
    {"relu, smooth", "act_type=relu", .in = {"f64[3,3] random:0.1:2"}, .flags = TN_CASE_GRAD2},
    {"sigmoid", "act_type=sigmoid", .in = {"f64[3] 0 1 -1"},
     .out = {"f64[3] 0.5 0.731058578630005 0.268941421369995"}, .flags = TN_CASE_GRAD2},
    {"tanh", "act_type=tanh", .in = {"f64[2] 0.5 -2"}, .out = {"f64[2] 0.462117157260010 -0.964027580075817"},
     .flags = TN_CASE_GRAD2},
    {"softrelu", "act_type=softrelu", .in = {"f32[5] 0 1 -30 100 -100"},
     .out = {"f32[5] 0.6931472 1.3132617 9.3576e-14 100 0"}},
    {"softrelu, second", "act_type=softrelu", .in = {"f64[4] 0.2 1 -3 2"}, .flags = TN_CASE_GRAD2},
    {"softsign", "act_type=softsign", .in = {"f64[3] 0.3 -3 1"},
     .out = {"f64[3] 0.230769230769231 -0.75 0.5"}, .flags = TN_CASE_GRAD2},
    {"scalar", "act_type=relu", .in = {"f32[] 3"}, .out = {"f32[] 3"}},
    {"empty", "act_type=tanh", .in = {"f32[0,3]"}, .out = {"f32[0,3]"}},
    {"nan", "act_type=relu", .in = {"f32[1] nan"}, .out = {"f32[1] nan"}, .flags = N},
    {"large", "act_type=tanh", .in = {"f32[300,300] random:-4:4"}, .flags = N},
    {"no choice", "act_type=gelu", .in = {"f32[1] 0"}, .status = TN_E_ATTR, .message = "relu|sigmoid"},
    {"missing", "", .in = {"f32[1] 0"}, .status = TN_E_ATTR, .message = "act_type is missing"},
    {"bad dtype", "act_type=relu", .in = {"bool[1] 0"}, .status = TN_E_DTYPE},
};
static const tn_op_case leaky[] = {
    {"leaky", "", .in = {"f32[3] -4 0.5 8"}, .out = {"f32[3] -1 0.5 8"}},
    {"slope", "act_type=leaky slope=0.1", .in = {"f64[4] random"}, .flags = TN_CASE_GRAD2},
    {"elu, second", "act_type=elu slope=0.7", .in = {"f64[5] -1.5 1 -0.5 0.2 -3"}, .flags = TN_CASE_GRAD2},
    {"selu, second", "act_type=selu", .in = {"f64[4] -1.5 1 -0.5 2"}, .flags = TN_CASE_GRAD2},
    {"elu", "act_type=elu slope=2", .in = {"f64[3] -1 1 -0.5"},
     .out = {"f64[3] -1.264241117657115 1 -0.786938680574733"}},
    {"selu", "act_type=selu", .in = {"f64[2] -1 1"}, .out = {"f64[2] -1.111330737812563 1.050700987355480"}},
    {"gelu", "act_type=gelu", .in = {"f64[3] -1 1 0.5"},
     .out = {"f64[3] -0.158655253931457 0.841344746068543 0.345731230635"}},
    {"gelu f32", "act_type=gelu", .in = {"f32[600] random:-4:4"}, .flags = N},
    {"prelu", "act_type=prelu", .in = {"f64[2,3] -1 2 -3 4 -5 6", "f64[3] 0.1 0.2 0.3"},
     .out = {"f64[2,3] -0.1 2 -0.9 4 -1 6"}},
    {"prelu, one slope", "act_type=prelu", .in = {"f64[2,3] -1 2 -3 4 -5 6", "f64[1] 0.5"},
     .out = {"f64[2,3] -0.5 2 -1.5 4 -2.5 6"}},
    {"prelu, image", "act_type=prelu", .in = {"f32[2,3,4,5] random", "f32[3] 0.1 0.2 0.3"}},
    {"prelu, vector", "act_type=prelu", .in = {"f32[4] random", "f32[1] 0.1"}},
    {"rrelu at rest", "act_type=rrelu lower_bound=0.1 upper_bound=0.3", .in = {"f32[2] -1 1"},
     .out = {"f32[2] -0.2 1"}},
    {"gamma too long", "act_type=prelu", .in = {"f32[2,3] random", "f32[2] 1 2"}, .status = TN_E_SHAPE},
    {"gamma missing", "act_type=prelu", .in = {"f32[2,3] random"}, .status = TN_E_ARG},
};
static const tn_op_case softmax[] = {
    {"rows", "", .in = {"f64[2,3] 1 2 3 1 1 1"},
     .out = {"f64[2,3] 0.0900305731703805 0.244728471054798 0.665240955774822 0.333333333333333 "
             "0.333333333333333 "
             "0.333333333333333"},
     .flags = TN_CASE_GRAD2},
    {"f32", "", .in = {"f32[1,4] 1000 1000 -1000 0"}, .out = {"f32[1,4] 0.5 0.5 0 0"}, .flags = N},
    {"axis 0", "axis=0", .in = {"f64[3,2] 1 1 2 1 3 1"},
     .out = {"f64[3,2] 0.0900305731703805 0.333333333333333 0.244728471054798 0.333333333333333 "
             "0.665240955774822 "
             "0.333333333333333"},
     .flags = TN_CASE_GRAD2},
    {"channels", "axis=1", .in = {"f32[2,5,7,11] random"}},
    {"many", "axis=1", .in = {"f32[300,500] random:-5:5"}, .flags = N},
    {"strips", "axis=1", .in = {"f64[2,3,150] random"}, .flags = N},
    {"temperature", "temperature=2", .in = {"f64[1,3] 2 4 6"},
     .out = {"f64[1,3] 0.0900305731703805 0.244728471054798 0.665240955774822"}, .flags = TN_CASE_GRAD2},
    {"f16 to f32", "dtype=float32", .in = {"f16[1,2] 0 0"}, .out = {"f32[1,2] 0.5 0.5"}, .flags = N},
    {"f32 to f64", "dtype=float64", .in = {"f32[1,2] 0 0"}, .out = {"f64[1,2] 0.5 0.5"}},
    {"f16", "", .in = {"f16[2,30] random"}, .flags = N},
    {"length", "use_length=True", .in = {"f64[2,3] 1 2 3 1 1 1", "i32[2] 2 0"},
     .out = {"f64[2,3] 0.268941421369995 0.731058578630005 0 0 0 0"}},
    {"length, axis 0", "use_length=True axis=0", .in = {"f32[3,2] 1 1 2 1 3 1", "i64[2] 1 9"},
     .out = {"f32[3,2] 1 0.33333333 0 0.33333333 0 0.33333333"}},
    {"length of another shape", "use_length=True", .in = {"f32[2,3] random", "i32[3] 1 1 1"},
     .status = TN_E_SHAPE},
    {"empty", "", .in = {"f32[2,0]"}, .out = {"f32[2,0]"}, .flags = N},
    {"nan", "", .in = {"f32[1,2] nan 1"}, .out = {"f32[1,2] nan nan"}, .flags = N},
    {"no such axis", "axis=2", .in = {"f32[2,2] 1 2 3 4"}, .status = TN_E_SHAPE},
    {"integers", "", .in = {"i32[2] 1 2"}, .status = TN_E_DTYPE},
};
static const tn_op_case log_softmax[] = {
    {"rows", "", .in = {"f64[1,3] 1 2 3"},
     .out = {"f64[1,3] -2.40760596444438 -1.40760596444438 -0.407605964444380"}, .flags = TN_CASE_GRAD2},
    {"f32", "", .in = {"f32[1,3] 1000 1000 0"}, .out = {"f32[1,3] -0.6931472 -0.6931472 -1000.6931"},
     .flags = N},
    {"channels", "axis=1", .in = {"f64[2,3,4] random"}},
    {"temperature", "temperature=0.5 axis=0", .in = {"f64[3,2] random"}, .flags = TN_CASE_GRAD2},
    {"long", "", .in = {"f32[3,1000] random"}, .flags = N},
    {"length", "use_length=True", .in = {"f32[1,3] 1 2 3"}, .status = TN_E_UNSUPPORTED},
};
static const tn_op_case softmin[] = {
    {"rows", "", .in = {"f64[1,3] -1 -2 -3"},
     .out = {"f64[1,3] 0.0900305731703805 0.244728471054798 0.665240955774822"}},
    {"temperature", "temperature=3 axis=0", .in = {"f64[3,4] random"}, .flags = TN_CASE_GRAD2},
};
static const tn_op_case softmax_activation[] = {
    {"instance", "", .in = {"f64[2,3] 1 2 3 1 1 1"},
     .out = {"f64[2,3] 0.0900305731703805 0.244728471054798 0.665240955774822 0.333333333333333 "
             "0.333333333333333 "
             "0.333333333333333"}},
    {"channel", "mode=channel", .in = {"f64[2,3,4] random"}, .flags = TN_CASE_GRAD2},
    {"instance, second", "", .in = {"f64[2,3,4] random"}, .flags = TN_CASE_GRAD2},
};

/* Gradients are y - label, by hand: y of (0, ln 3) is (1/4, 3/4). */
#define X2 "f64[2,2] 0 1.0986122886681098 0 1.0986122886681098"
static const tn_op_case softmax_output[] = {
    {"labels", "", .in = {X2, "f64[2] 0 1"}, .out = {"f64[2,2] 0.25 0.75 0.25 0.75"},
     .grad = {"f64[2,2] -0.75 0.75 0.25 -0.25"}},
    {"scale", "grad_scale=2", .in = {X2, "f64[2] 0 1"}, .grad = {"f64[2,2] -1.5 1.5 0.5 -0.5"}},
    {"batch", "normalization=batch", .in = {X2, "f64[2] 0 1"},
     .grad = {"f64[2,2] -0.375 0.375 0.125 -0.125"}},
    {"ignore", "use_ignore=True ignore_label=1", .in = {X2, "f64[2] 0 1"},
     .grad = {"f64[2,2] -0.75 0.75 0 0"}},
    {"valid", "use_ignore=True ignore_label=1 normalization=valid grad_scale=3", .in = {X2, "f64[2] 0 0"},
     .grad = {"f64[2,2] -1.125 1.125 -1.125 1.125"}},
    {"smooth", "smooth_alpha=0.2", .in = {X2, "f64[2] 0 1"}, .grad = {"f64[2,2] -0.55 0.55 0.05 -0.05"}},
    {"probabilities", "", .in = {X2, "f64[2,2] 0.5 0.5 0 1"}, .grad = {"f64[2,2] -0.25 0.25 0.25 -0.25"}},
    {"i32 labels", "", .in = {"f32[1,2] 0 1.0986123", "i32[1] 1"}, .grad = {"f32[1,2] 0.25 -0.25"}},
    {"multi_output", "multi_output=True",
     .in = {"f64[1,2,2] 0 0 1.0986122886681098 1.0986122886681098", "f64[1,2] 0 1"},
     .out = {"f64[1,2,2] 0.25 0.25 0.75 0.75"}, .grad = {"f64[1,2,2] -0.375 0.125 0.375 -0.125"}},
    {"preserve_shape", "preserve_shape=True",
     .in = {"f64[1,2,2] 0 1.0986122886681098 0 1.0986122886681098", "f64[1,2] 0 1"},
     .out = {"f64[1,2,2] 0.25 0.75 0.25 0.75"}, .grad = {"f64[1,2,2] -0.75 0.75 0.25 -0.25"}},
    {"f16", "", .in = {"f16[2,3] random", "f16[2] 0 2"}},
    {"labels of another shape", "", .in = {X2, "f64[3] 0 1 1"}, .status = TN_E_SHAPE},
};
static const tn_op_case cross_entropy[] = {
    {"two rows", "", .in = {X2, "f64[2] 0 1"}, .out = {"f64[1] 1.67397643357167"}, .no_grad_inputs = 2},
    {"second", "", .in = {"f64[3,4] random", "f64[3] 2 0 3"}, .no_grad_inputs = 2, .flags = TN_CASE_GRAD2},
    {"three axes", "", .in = {"f32[1,1,1] 1", "f32[1] 0"}, .status = TN_E_SHAPE},
};
static const tn_op_case make_loss[] = {
    {"ones", "", .in = {"f32[2] 5 6"}, .out = {"f32[2] 5 6"}, .grad = {"f32[2] 1 1"}},
};
static const tn_op_case MakeLoss[] = {
    {"scale", "grad_scale=3", .in = {"f32[2] 5 6"}, .out = {"f32[2] 5 6"}, .grad = {"f32[2] 3 3"}},
    {"batch", "normalization=batch", .in = {"f32[2,2] 5 6 7 8"}, .grad = {"f32[2,2] 0.5 0.5 0.5 0.5"}},
    {"valid", "normalization=valid valid_thresh=6", .in = {"f32[2,2] 5 6 7 8"},
     .grad = {"f32[2,2] 0.5 0.5 0.5 0.5"}},
};

/* What their gradients are made of, with what no gradient hands over. */
static const tn_op_case softmax_back[] = {
    {"axis", "axis=9", .in = {"f32[2,3] range", "f32[2,3] range"}, .status = TN_E_SHAPE},
    {"largest axis", "axis=2147483647", .in = {"f32[2,3] range", "f32[2,3] range"}, .status = TN_E_SHAPE},
    {"least axis", "axis=-9223372036854775808", .in = {"f32[2] 1 2", "f32[2] 1 2"}, .status = TN_E_SHAPE},
};
static const tn_op_case gamma_back[] = {
    {"more", "", .in = {"f32[2,3] range", "f32[2,3] range", "f32[3,4] range"}, .status = TN_E_SHAPE,
     .message = "one for each channel"},
    {"longer", "", .in = {"f32[2,3] range", "f32[2,3] range", "f32[7] range"}, .status = TN_E_SHAPE},
    {"shared", "", .in = {"f32[2,2] 1 2 3 4", "f32[2,2] -1 2 -3 4", "f32[1] 0"}, .out = {"f32[1] -10"},
     .flags = TN_CASE_NO_GRAD},
};

/* clang-format off */
TN_OP_TESTS(softmax_back, "_backward_softmax", softmax_back)
TN_OP_TESTS(log_softmax_back, "_backward_log_softmax", softmax_back)
TN_OP_TESTS(softmin_back, "_backward_softmin", softmax_back)
TN_OP_TESTS(gamma_back, "_backward_prelu_gamma", gamma_back)
TN_OP_TESTS(activation, "Activation", activation)
TN_OP_TESTS(leaky, "LeakyReLU", leaky)
TN_OP_TESTS(softmax, "softmax", softmax)
TN_OP_TESTS(log_softmax, "log_softmax", log_softmax)
TN_OP_TESTS(softmin, "softmin", softmin)
TN_OP_TESTS(softmax_activation, "SoftmaxActivation", softmax_activation)
TN_OP_TESTS(softmax_output, "SoftmaxOutput", softmax_output)
TN_OP_TESTS(cross_entropy, "softmax_cross_entropy", cross_entropy)
TN_OP_TESTS(make_loss, "make_loss", make_loss)
TN_OP_TESTS(MakeLoss, "MakeLoss", MakeLoss)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(activation),    TN_OP_TEST(leaky),        TN_OP_TEST(softmax),
        TN_OP_TEST(log_softmax),   TN_OP_TEST(softmin),      TN_OP_TEST(softmax_output),
        TN_OP_TEST(cross_entropy), TN_OP_TEST(make_loss),    TN_OP_TEST(softmax_activation),
        TN_OP_TEST(MakeLoss),      TN_OP_TEST(softmax_back), TN_OP_TEST(log_softmax_back),
        TN_OP_TEST(softmin_back),  TN_OP_TEST(gamma_back),
    };

    return tn_op_main(tests);
}
