/* Family optimizer: one step each, against the formulas in double (Python, 17 digits). */
#include "support/op_case.h"

#define W "f64[2] 1 -2"
#define G "f64[2] 0.5 1"
#define ONE(...) static const tn_op_case __VA_ARGS__

ONE(sgd[]) = {
    {"step", "lr=0.1 wd=0.01", .in = {W, G}, .out = {"f64[2] 0.949 -2.098"}, .flags = TN_CASE_NO_GRAD},
    {"clip", "lr=0.1 rescale_grad=2 clip_gradient=1.5", .in = {W, G}, .out = {"f64[2] 0.9 -2.15"},
     .flags = TN_CASE_NO_GRAD},
    {"clip to 0", "lr=0.1 clip_gradient=0", .in = {W, G}, .out = {W}, .flags = TN_CASE_NO_GRAD},
    {"many", "lr=0.1 wd=0.1", .in = {"f32[70000] random", "f32[70000] random"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "lr=0.1", .in = {"f32[0]", "f32[0]"}, .out = {"f32[0]"}, .flags = TN_CASE_NO_GRAD},
    {"no lr", "", .in = {W, G}, .status = TN_E_ATTR, .message = "lr"},
    {"shapes", "lr=1", .in = {W, "f64[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"integers", "lr=1", .in = {"i32[1] 1", "i32[1] 1"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(sgd, "sgd_update", sgd)

ONE(mom[]) = {
    {"step", "lr=0.1 momentum=0.9 wd=0.01", .in = {W, G, "f64[2] 0.3 0.4"},
     .out = {"f64[2] 1.219 -1.738", "f64[2] 0.219 0.262"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(sgd_mom, "sgd_mom_update", mom)

ONE(nag[]) = {
    {"step", "lr=0.1 momentum=0.9 wd=0.01", .in = {W, G, "f64[2] 0.3 0.4"},
     .out = {"f64[2] 1.1461 -1.8622", "f64[2] 0.219 0.262"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(nag, "nag_mom_update", nag)

ONE(adam[]) = {
    {"step", "lr=0.01 beta1=0.9 beta2=0.99 epsilon=1e-8 wd=0.1",
     .in = {W, G, "f64[2] 0.1 0.1", "f64[2] 0.2 0.2"},
     .out = {"f64[2] 0.9966592345504994 -2.003760178536062", "f64[2] 0.15 0.17", "f64[2] 0.2016 0.2044"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(adam, "adam_update", adam)

ONE(sign[]) = {
    {"step", "lr=0.1 wd=0.5", .in = {"f64[3] 1 -2 3", "f64[3] 0.5 -1 0"}, .out = {"f64[3] 0.85 -1.8 2.85"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(signsgd, "signsgd_update", sign)

ONE(signum_[]) = {
    {"step", "lr=0.1 momentum=0.9 wd_lh=0.5", .in = {W, G, "f64[2] 0.01 1"},
     .out = {"f64[2] 0.85 -1.8", "f64[2] -0.041 0.8"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(signum, "signum_update", signum_)

ONE(rms[]) = {
    {"step", "lr=0.1 gamma1=0.9 epsilon=1e-8", .in = {W, G, "f64[2] 0.3 0.4"},
     .out = {"f64[2] 0.9079425397704636 -2.147441954552267", "f64[2] 0.295 0.46"}, .flags = TN_CASE_NO_GRAD},
    {"clip weights", "lr=0.1 gamma1=0.9 epsilon=1e-8 clip_weights=0.5", .in = {W, G, "f64[2] 0.3 0.4"},
     .out = {"f64[2] 0.5 -0.5", "f64[2] 0.295 0.46"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(rmsprop, "rmsprop_update", rms)

ONE(alex[]) = {
    {"step", "lr=0.1 gamma1=0.95 gamma2=0.9 epsilon=1e-8",
     .in = {"f64[1] 1", "f64[1] 0.5", "f64[1] 0.3", "f64[1] 0.1", "f64[1] 0.2"},
     .out = {"f64[1] 1.0860276555316697", "f64[1] 0.2975", "f64[1] 0.12", "f64[1] 0.0860276555316696"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(rmspropalex, "rmspropalex_update", alex)

ONE(mixed[]) = {
    {"halves", "lr=0.5", .in = {"f16[2] 1 2", "f16[2] 1 -1", "f32[2] 1.0001 2"},
     .out = {"f16[2] 0.5 2.5", "f32[2] 0.5001 2.5"}, .flags = TN_CASE_NO_GRAD},
    {"states", "lr=0.5", .in = {"f16[2] 1 2", "f16[2] 1 -1", "f16[2] 1 2"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(mp_sgd, "mp_sgd_update", mixed)

ONE(mixed_mom[]) = {
    {"halves", "lr=0.5 momentum=0.5", .in = {"bf16[2] 1 2", "bf16[2] 1 -1", "f32[2] 1 1", "f32[2] 1 2"},
     .out = {"bf16[2] 1 3", "f32[2] 0 1", "f32[2] 1 3"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(mp_sgd_mom, "mp_sgd_mom_update", mixed_mom)

/* ---- many weights at once ---- */

#define W2 "f64[1] 4"
#define G2 "f64[1] 2"
#define RATES "lrs=(0.1,0.5) wds=(0.01,0.1) num_weights=2"

ONE(multi[]) = {
    {"two", RATES, .in = {W, G, W2, G2}, .out = {"f64[2] 0.949 -2.098", "f64[1] 2.8"},
     .flags = TN_CASE_NO_GRAD},
    {"one", "lrs=(0.1,) wds=(0.01,)", .in = {W, G}, .out = {"f64[2] 0.949 -2.098"}, .flags = TN_CASE_NO_GRAD},
    {"clip", "lrs=(0.1,) wds=(0,) rescale_grad=2 clip_gradient=1.5", .in = {W, G},
     .out = {"f64[2] 0.9 -2.15"}, .flags = TN_CASE_NO_GRAD},
    {"many", RATES, .in = {"f32[70000] random", "f32[70000] random", "f32[3,7] random", "f32[3,7] random"},
     .flags = TN_CASE_NO_GRAD},
    {"halves", RATES, .in = {"f16[40000] random", "f16[40000] random", "f16[2] 1 2", "f16[2] 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"one of them empty", RATES, .in = {"f32[0]", "f32[0]", "f32[1] 1", "f32[1] 0"},
     .out = {"f32[0]", "f32[1] 0.95"}, .flags = TN_CASE_NO_GRAD},
    {"all empty", "lrs=(1,) wds=(0,)", .in = {"f32[0]", "f32[0]"}, .out = {"f32[0]"},
     .flags = TN_CASE_NO_GRAD},
    {"rates", "lrs=(1,) wds=(1,1) num_weights=2", .in = {W, G, W, G}, .status = TN_E_ATTR, .message = "lrs"},
    {"decays", "lrs=(1,1) wds=(1,) num_weights=2", .in = {W, G, W, G}, .status = TN_E_ATTR, .message = "wds"},
    {"no rates", "lrs=None wds=(1,)", .in = {W, G}, .status = TN_E_ATTR, .message = "lrs"},
    {"none", "lrs=() wds=() num_weights=0", .in = {NULL}, .status = TN_E_ATTR, .message = "num_weights"},
    {"too many", "lrs=(1,) wds=(1,) num_weights=2049", .in = {W, G}, .status = TN_E_ATTR, .message = "2048"},
    {"shapes", "lrs=(1,) wds=(0,)", .in = {W, "f64[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"types", RATES, .in = {W, G, "f32[1] 1", "f32[1] 1"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(multi_sgd, "multi_sgd_update", multi)

ONE(multi_mom[]) = {
    {"two", RATES " momentum=0.9", .in = {W, G, "f64[2] 0.3 0.4", W2, G2, "f64[1] 1"},
     .out = {"f64[2] 1.219 -1.738", "f64[1] 3.7", "f64[2] 0.219 0.262", "f64[1] -0.3"},
     .flags = TN_CASE_NO_GRAD},
    {"inputs", RATES, .in = {W, G, W, W2, G2}, .status = TN_E_ARG},
};
TN_OP_TESTS(multi_sgd_mom, "multi_sgd_mom_update", multi_mom)

ONE(multi_mixed[]) = {
    {"halves", "lrs=(0.5,) wds=(0,)", .in = {"f16[2] 1 2", "f16[2] 1 -1", "f32[2] 1.0001 2"},
     .out = {"f16[2] 0.5 2.5", "f32[2] 0.5001 2.5"}, .flags = TN_CASE_NO_GRAD},
    {"the copy is the weight of float32, too", "lrs=(0.5,) wds=(0,)",
     .in = {"f32[1] 1", "f32[1] 1", "f32[1] 7"}, .out = {"f32[1] 6.5", "f32[1] 6.5"},
     .flags = TN_CASE_NO_GRAD},
    {"copies", "lrs=(0.5,) wds=(0,)", .in = {"f16[2] 1 2", "f16[2] 1 -1", "f16[2] 1 2"},
     .status = TN_E_DTYPE},
};
TN_OP_TESTS(multi_mp_sgd, "multi_mp_sgd_update", multi_mixed)

ONE(multi_mixed_mom[]) = {
    {"halves", "lrs=(0.5,1) wds=(0,0) momentum=0.5 num_weights=2",
     .in = {"bf16[2] 1 2", "bf16[2] 1 -1", "f32[2] 1 1", "f32[2] 1 2", "bf16[1] 0", "bf16[1] 2", "f32[1] 0",
            "f32[1] 8"},
     .out = {"bf16[2] 1 3", "bf16[1] 6", "f32[2] 0 1", "f32[2] 1 3", "f32[1] -2", "f32[1] 6"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(multi_mp_sgd_mom, "multi_mp_sgd_mom_update", multi_mixed_mom)

ONE(preloaded[]) = {
    {"two", "num_weights=2", .in = {W, G, W2, G2, "f32[2] 0.125 0.5", "f32[2] 0.5 0.25"},
     .out = {"f64[2] 0.875 -2", "f64[1] 2.5"}, .flags = TN_CASE_NO_GRAD},
    {"rates", "num_weights=2", .in = {W, G, W2, G2, "f32[1] 1", "f32[2] 1 1"}, .status = TN_E_SHAPE},
    {"types", "num_weights=1", .in = {W, G, "f64[1] 1", "f32[1] 1"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(preloaded_sgd, "preloaded_multi_sgd_update", preloaded)

ONE(preloaded_mom[]) = {
    {"one", "momentum=0.5", .in = {W, G, "f64[2] 2 4", "f32[1] 0.5", "f32[1] 0"},
     .out = {"f64[2] 1.75 -0.5", "f64[2] 0.75 1.5"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(preloaded_sgd_mom, "preloaded_multi_sgd_mom_update", preloaded_mom)

ONE(sums[]) = {
    {"three", "num_arrays=3", .in = {W, "f64[2,2] 1 2 3 4", "f64[0]"}, .out = {"f32[3] 5 30 0"},
     .flags = TN_CASE_NO_GRAD},
    {"none", "num_arrays=0", .in = {NULL}, .status = TN_E_ATTR},
};
TN_OP_TESTS(multi_sum_sq, "multi_sum_sq", sums)

ONE(lars_[]) = {
    {"rates", "eta=0.5 eps=0.25", .in = {"f32[3] 2 2 2", "f32[3] 4 0 4", "f32[3] 16 4 0", "f32[3] 0.125 1 1"},
     .out = {"f32[3] 0.4444444477558136 2 2"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(multi_lars, "multi_lars", lars_)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(sgd),           TN_OP_TEST(sgd_mom),
        TN_OP_TEST(nag),           TN_OP_TEST(adam),
        TN_OP_TEST(signsgd),       TN_OP_TEST(signum),
        TN_OP_TEST(rmsprop),       TN_OP_TEST(rmspropalex),
        TN_OP_TEST(mp_sgd),        TN_OP_TEST(mp_sgd_mom),
        TN_OP_TEST(multi_sgd),     TN_OP_TEST(multi_sgd_mom),
        TN_OP_TEST(multi_mp_sgd),  TN_OP_TEST(multi_mp_sgd_mom),
        TN_OP_TEST(preloaded_sgd), TN_OP_TEST(preloaded_sgd_mom),
        TN_OP_TEST(multi_sum_sq),  TN_OP_TEST(multi_lars),
    };

    return tn_op_main(tests);
}
