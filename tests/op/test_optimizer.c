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
    {"doubles, rounded", "lr=0.5", .in = {"f64[2] 1 2", "f64[2] 1 1.0000000001", "f32[2] 0.75 2"},
     .out = {"f64[2] 0.25 1.5", "f32[2] 0.25 1.5"}, .flags = TN_CASE_NO_GRAD},
    {"states", "lr=0.5", .in = {"f16[2] 1 2", "f16[2] 1 -1", "f16[2] 1 2"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(mp_sgd, "mp_sgd_update", mixed)

ONE(mixed_mom[]) = {
    {"halves", "lr=0.5 momentum=0.5", .in = {"bf16[2] 1 2", "bf16[2] 1 -1", "f32[2] 1 1", "f32[2] 1 2"},
     .out = {"bf16[2] 1 3", "f32[2] 0 1", "f32[2] 1 3"}, .flags = TN_CASE_NO_GRAD},
    {"many doubles", "lr=0.5 momentum=0.5 wd=0.25",
     .in = {"f64[3000] fill:7", "f64[3000] fill:2", "f32[3000] fill:1", "f32[3000] fill:4"},
     .out = {"f64[3000] fill:3", "f32[3000] fill:-1", "f32[3000] fill:3"}, .flags = TN_CASE_NO_GRAD},
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

/* ---- AdamW, LAMB and others ---- */

#define M "f64[2] 0.1 0.1"
#define V "f64[2] 0.2 0.2"

ONE(mp_nag_[]) = {
    {"halves", "lr=0.5 momentum=0.5 wd=1", .in = {"f16[2] 7 7", "f16[2] 1 -1", "f32[2] 1 1", "f32[2] 1 2"},
     .out = {"f16[2] -0.25 1.5", "f32[2] -0.5 0", "f32[2] -0.25 1.5"}, .flags = TN_CASE_NO_GRAD},
};

ONE(ftrl_[]) = {
    {"step", "lr=0.1 lamda1=0.5 wd=0.01", .in = {W, G, "f64[2] 0.3 -4", V},
     .out = {"f64[2] 0.05599094144796974 -0.45146091936496224", "f64[2] -1.43606797749979 9.9646303902074855",
             "f64[2] 0.45 1.2"},
     .flags = TN_CASE_NO_GRAD},
    {"within lamda1", "lr=1 lamda1=2", .in = {W, "f64[2] 0 0", "f64[2] 2 -2", "f64[2] 1 1"},
     .out = {"f64[2] 0 0", "f64[2] 2 -2", "f64[2] 1 1"}, .flags = TN_CASE_NO_GRAD},
    {"states", "lr=1", .in = {W, G, V, "f64[3] 1 1 1"}, .status = TN_E_SHAPE},
};

ONE(ftml_[]) = {
    {"step", "lr=0.1 beta1=0.6 beta2=0.99 epsilon=1e-8 t=2 wd=0.01",
     .in = {W, G, "f64[2] 0.3 0.4", V, "f64[2] 0.1 -0.1"},
     .out = {"f64[2] 0.97814941915459386 -1.9928403726272719", "f64[2] 20.319825964413493 20.671466864846323",
             "f64[2] 0.200601 0.207604", "f64[2] -19.875825964413494 41.19493372969265"},
     .flags = TN_CASE_NO_GRAD},
    {"no t", "lr=0.1", .in = {W, G, V, V, V}, .status = TN_E_ATTR, .message = "t"},
    {"decay", "lr=0.1 t=1 beta1=1.5", .in = {W, G, V, V, V}, .status = TN_E_ATTR, .message = "beta1"},
};

ONE(adagrad_[]) = {
    {"step", "lr=0.1 epsilon=1e-7 wd=0.01", .in = {W, G, "f64[2] 0.3 0.4"},
     .out = {"f64[2] 0.93158001988276462 -2.0825154224544438", "f64[2] 0.55 1.4"}, .flags = TN_CASE_NO_GRAD},
};

ONE(group[]) = {
    {"rows", "lr=0.1 epsilon=1e-5", .in = {"f64[2,2] 1 -2 3 4", "f64[2,2] 0.5 1 0 -2", "f64[2,1] 0.5 0.25"},
     .out = {"f64[2,2] 0.9528597574326204 -2.094280485134759 3 4.133333037038025", "f64[2,1] 1.125 2.25"},
     .flags = TN_CASE_NO_GRAD},
    {"clip", "lr=1 epsilon=0 rescale_grad=2 clip_gradient=1",
     .in = {"f64[1,2] 1 2", "f64[1,2] 4 0", "f64[1,1] 3.5"}, .out = {"f64[1,2] 0.5 2", "f64[1,1] 4"},
     .flags = TN_CASE_NO_GRAD},
    {"wide rows", "lr=0.1", .in = {"f32[3,2500] random", "f32[3,2500] random", "f32[3,1] 1 2 3"},
     .flags = TN_CASE_NO_GRAD},
    {"no rows", "lr=1", .in = {"f64[0,2]", "f64[0,2]", "f64[0,1]"}, .out = {"f64[0,2]", "f64[0,1]"},
     .flags = TN_CASE_NO_GRAD},
    {"history", "lr=1", .in = {"f64[2,2] 1 2 3 4", "f64[2,2] 1 2 3 4", "f64[2,2] 1 2 3 4"},
     .status = TN_E_SHAPE},
    {"scalar", "lr=1", .in = {"f64[] 1", "f64[] 1", "f64[] 1"}, .status = TN_E_SHAPE, .message = "rows"},
};

#define ADAMW "lr=0.01 beta1=0.9 beta2=0.99 wd=0.1 eta=2"
ONE(adamw_[]) = {
    {"step", ADAMW, .in = {W, G, M, V, "f32[1] 0.5"},
     .out = {"f64[2] 0.7948392731727929 -1.6062531786031189", "f64[2] 0.115 0.14", "f64[2] 0.198625 0.2005"},
     .flags = TN_CASE_NO_GRAD},
    {"scale without dimensions", ADAMW, .in = {W, G, M, V, "f32[] 0.5"},
     .out = {"f64[2] 0.7948392731727929 -1.6062531786031189", "f64[2] 0.115 0.14", "f64[2] 0.198625 0.2005"},
     .flags = TN_CASE_NO_GRAD},
    {"scale 0", ADAMW, .in = {W, G, M, V, "f32[1] 0"}, .out = {W, M, V}, .flags = TN_CASE_NO_GRAD},
    {"scale infinite", ADAMW, .in = {W, G, M, V, "f32[1] inf"}, .out = {W, M, V}, .flags = TN_CASE_NO_GRAD},
    {"scale nan", ADAMW, .in = {W, G, M, V, "f32[1] nan"}, .out = {W, M, V}, .flags = TN_CASE_NO_GRAD},
    {"two scales", ADAMW, .in = {W, G, M, V, "f32[2] 1 1"}, .status = TN_E_SHAPE},
    {"scale's type", ADAMW, .in = {W, G, M, V, "f64[1] 1"}, .status = TN_E_DTYPE},
    {"no eta", "lr=1", .in = {W, G, M, V, "f32[1] 1"}, .status = TN_E_ATTR, .message = "eta"},
};

ONE(mp_adamw_[]) = {
    {"halves", "lr=0.5 beta1=0.5 beta2=0.5 epsilon=0 eta=1",
     .in = {"f16[1] 7", "f16[1] 2", "f32[1] 0", "f32[1] 0", "f32[1] 4", "f32[1] 1"},
     .out = {"f16[1] 3.646484375", "f32[1] 1", "f32[1] 2", "f32[1] 3.6464466094"}, .flags = TN_CASE_NO_GRAD},
    {"scale 0", ADAMW, .in = {"f16[1] 7", "f16[1] 2", "f32[1] 1", "f32[1] 2", "f32[1] 4", "f32[1] 0"},
     .out = {"f16[1] 7", "f32[1] 1", "f32[1] 2", "f32[1] 4"}, .flags = TN_CASE_NO_GRAD},
};

#define ADAMW2 "lrs=(0.01,0.01) wds=(0.1,0.1) etas=(2,2) beta1=0.9 beta2=0.99 num_weights=2"
ONE(multi_adamw[]) = {
    {"two", ADAMW2, .in = {W, G, M, V, "f64[0]", "f64[0]", "f64[0]", "f64[0]", "f64[1] 0.5"},
     .out = {"f64[2] 0.7948392731727929 -1.6062531786031189", "f64[0]", "f64[2] 0.115 0.14",
             "f64[2] 0.198625 0.2005", "f64[0]", "f64[0]"},
     .flags = TN_CASE_NO_GRAD},
    {"scale 0", "lrs=(1,) wds=(1,) etas=(1,)", .in = {W, G, M, V, "f64[1] 0"}, .out = {W, M, V},
     .flags = TN_CASE_NO_GRAD},
    {"etas", "lrs=(1,) wds=(1,) etas=(1,2)", .in = {W, G, M, V, "f64[1] 1"}, .status = TN_E_ATTR,
     .message = "etas"},
    {"two scales", "lrs=(1,) wds=(1,) etas=(1,)", .in = {W, G, M, V, "f64[2] 1 1"}, .status = TN_E_SHAPE},
    {"too many", "lrs=(1,) wds=(1,) etas=(1,) num_weights=1024", .in = {W, G, M, V, "f64[1] 1"},
     .status = TN_E_ATTR, .message = "1023"},
};

ONE(multi_mp_adamw[]) = {
    {"halves", "lrs=(0.5,) wds=(0,) etas=(1,) beta1=0.5 beta2=0.5 epsilon=0",
     .in = {"bf16[1] 7", "bf16[1] 2", "f32[1] 0", "f32[1] 0", "f32[1] 4", "f32[1] 1"},
     .out = {"bf16[1] 3.640625", "f32[1] 1", "f32[1] 2", "f32[1] 3.6464466094"}, .flags = TN_CASE_NO_GRAD},
    {"scale's type", "lrs=(1,) wds=(1,) etas=(1,)",
     .in = {"f16[1] 7", "f16[1] 2", "f32[1] 0", "f32[1] 0", "f32[1] 4", "f16[1] 1"}, .status = TN_E_DTYPE},
};

#define LAMB "beta1=0.9 beta2=0.99 epsilon=1e-6"
#define LAMB_STATES "f64[2] 0.14 0.19", "f64[2] 0.2005 0.208"
ONE(lamb1[]) = {
    {"step", LAMB " t=3 wd=0.1", .in = {W, G, M, V},
     .out = {"f64[2] 0.29883229487403018 0.064934193880736957", LAMB_STATES}, .flags = TN_CASE_NO_GRAD},
    {"biased", "t=3 wd=0 bias_correction=0 beta1=0.5 beta2=0.5 epsilon=0",
     .in = {W, G, "f64[2] 0.5 1", "f64[2] 0.25 1"}, .out = {"f64[2] 1 1", "f64[2] 0.5 1", "f64[2] 0.25 1"},
     .flags = TN_CASE_NO_GRAD},
    {"no wd", "t=3", .in = {W, G, M, V}, .status = TN_E_ATTR, .message = "wd"},
};

ONE(mp_lamb1[]) = {
    {"the copy decays", "t=3 wd=1 bias_correction=0 beta1=0.5 beta2=0.5 epsilon=0",
     .in = {"f16[1] 7", "f16[1] 0.5", "f32[1] 0.5", "f32[1] 0.25", "f32[1] 3"},
     .out = {"f32[1] 4", "f32[1] 0.5", "f32[1] 0.25"}, .flags = TN_CASE_NO_GRAD},
};

ONE(lamb2[]) = {
    {"step", "lr=0.1", .in = {W, G, "f64[1] 2", "f64[1] 0.5"}, .out = {"f64[2] 0.8 -2.4"},
     .flags = TN_CASE_NO_GRAD},
    {"norm 0", "lr=0.1", .in = {W, G, "f64[] 0", "f64[] 0.5"}, .out = {"f64[2] 0.95 -2.1"},
     .flags = TN_CASE_NO_GRAD},
    {"bounds", "lr=0.1 lower_bound=1 upper_bound=2", .in = {W, G, "f64[1] 7", "f64[1] 0.5"},
     .out = {"f64[2] 0.8 -2.4"}, .flags = TN_CASE_NO_GRAD},
    {"two norms", "lr=0.1", .in = {W, G, "f64[2] 1 1", "f64[1] 1"}, .status = TN_E_SHAPE},
};

ONE(mp_lamb2[]) = {
    {"the copy moves", "lr=0.1", .in = {"f16[1] 7", "f32[1] 1", "f32[1] 2", "f32[1] 0.5", "f32[1] 3"},
     .out = {"f16[1] 2.599609375", "f32[1] 2.6"}, .flags = TN_CASE_NO_GRAD},
};

ONE(multi_lamb[]) = {
    {"two", "learning_rates=(0.1,0.1) wds=(0.1,0.1) step_count=(3,1) num_tensors=2 " LAMB,
     .in = {W, G, M, V, "f64[0]", "f64[0]", "f64[0]", "f64[0]"},
     .out = {"f64[2] 0.78149226874298172 -2.0474802209442062", "f64[0]", LAMB_STATES, "f64[0]", "f64[0]"},
     .flags = TN_CASE_NO_GRAD},
    {"many", "learning_rates=(0.1,) wds=(0.1,) step_count=(3,)",
     .in = {"f32[70000] random", "f32[70000] random", "f32[70000] random", "f32[70000] random:0.1:2"},
     .flags = TN_CASE_NO_GRAD},
    {"counts", "learning_rates=(1,) wds=(1,) step_count=(1,1)", .in = {W, G, M, V}, .status = TN_E_ATTR,
     .message = "step_count"},
    {"no counts", "learning_rates=(1,) wds=(1,)", .in = {W, G, M, V}, .status = TN_E_ATTR,
     .message = "step_count"},
};

ONE(multi_mp_lamb[]) = {
    {"the copy moves",
     "learning_rates=(0.5,) wds=(0,) step_count=(1,) bias_correction=0 beta1=0.5 beta2=0.5 epsilon=0",
     .in = {"f16[1] 2", "f16[1] 0.5", "f32[1] 0.5", "f32[1] 0.25", "f32[1] 3"},
     .out = {"f16[1] 2", "f32[1] 0.5", "f32[1] 0.25", "f32[1] 2"}, .flags = TN_CASE_NO_GRAD},
    {"doubles",
     "learning_rates=(0.5,) wds=(0,) step_count=(1,) bias_correction=0 beta1=0.5 beta2=0.5 epsilon=0",
     .in = {"f64[1] 2", "f64[1] 0.5", "f32[1] 0.5", "f32[1] 0.25", "f32[1] 3"},
     .out = {"f64[1] 2", "f32[1] 0.5", "f32[1] 0.25", "f32[1] 2"}, .flags = TN_CASE_NO_GRAD},
};

ONE(finite_[]) = {
    {"all", "", .in = {"f32[2] 1 -3e38"}, .out = {"f32[1] 1"}, .flags = TN_CASE_NO_GRAD},
    {"infinite", "", .in = {"f16[3] 1 inf 2"}, .out = {"f32[1] 0"}, .flags = TN_CASE_NO_GRAD},
    {"in float32", "", .in = {"f64[1] 1e300"}, .out = {"f32[1] 0"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "", .in = {"f32[0]"}, .out = {"f32[1] 1"}, .flags = TN_CASE_NO_GRAD},
    {"at the end", "", .in = {"bf16[1100] fill:nan"}, .out = {"f32[1] 0"}, .flags = TN_CASE_NO_GRAD},
    {"integers", "", .in = {"i32[1] 1"}, .status = TN_E_DTYPE},
    {"none given", "init_output=False", .in = {"f32[1] 1"}, .out = {"f32[1] 1"}, .flags = TN_CASE_NO_GRAD},
};

ONE(multi_finite[]) = {
    {"all", "num_arrays=2", .in = {"f32[2] 1 2", "f32[0]"}, .out = {"f32[1] 1"}, .flags = TN_CASE_NO_GRAD},
    {"one is not", "num_arrays=3", .in = {"f64[2] 1 2", "f64[1] nan", "f64[1] 1"}, .out = {"f32[1] 0"},
     .flags = TN_CASE_NO_GRAD},
    {"none", "num_arrays=0", .in = {NULL}, .status = TN_E_ATTR, .message = "num_arrays"},
    {"types", "num_arrays=2", .in = {"f32[1] 1", "f64[1] 1"}, .status = TN_E_DTYPE},
    {"none given", "init_output=False", .in = {"f32[1] 1"}, .out = {"f32[1] 1"}, .flags = TN_CASE_NO_GRAD},
};

ONE(resets[]) = {
    {"two", "num_arrays=2", .in = {"f32[2] 1 2", "i8[1,2] 3 4"}, .out = {"f32[2] 0 0", "i8[1,2] 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"none", "num_arrays=0", .in = {NULL}, .status = TN_E_ATTR, .message = "num_arrays"},
};

TN_OP_TESTS(all_finite, "all_finite", finite_)
TN_OP_TESTS(multi_all_finite, "multi_all_finite", multi_finite)
TN_OP_TESTS(reset_arrays, "reset_arrays", resets)
TN_OP_TESTS(mp_nag, "mp_nag_mom_update", mp_nag_)
TN_OP_TESTS(ftrl, "ftrl_update", ftrl_)
TN_OP_TESTS(ftml, "ftml_update", ftml_)
TN_OP_TESTS(adagrad, "_sparse_adagrad_update", adagrad_)
TN_OP_TESTS(group_adagrad, "_contrib_group_adagrad_update", group)
TN_OP_TESTS(adamw, "_adamw_update", adamw_)
TN_OP_TESTS(mp_adamw, "_mp_adamw_update", mp_adamw_)
TN_OP_TESTS(multi_adamw_update, "_multi_adamw_update", multi_adamw)
TN_OP_TESTS(multi_mp_adamw_update, "_multi_mp_adamw_update", multi_mp_adamw)
TN_OP_TESTS(lamb_phase1, "lamb_update_phase1", lamb1)
TN_OP_TESTS(mp_lamb_phase1, "mp_lamb_update_phase1", mp_lamb1)
TN_OP_TESTS(lamb_phase2, "lamb_update_phase2", lamb2)
TN_OP_TESTS(mp_lamb_phase2, "mp_lamb_update_phase2", mp_lamb2)
TN_OP_TESTS(multi_lamb_update, "_multi_lamb_update", multi_lamb)
TN_OP_TESTS(multi_mp_lamb_update, "_multi_mp_lamb_update", multi_mp_lamb)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(sgd),
        TN_OP_TEST(sgd_mom),
        TN_OP_TEST(nag),
        TN_OP_TEST(adam),
        TN_OP_TEST(signsgd),
        TN_OP_TEST(signum),
        TN_OP_TEST(rmsprop),
        TN_OP_TEST(rmspropalex),
        TN_OP_TEST(mp_sgd),
        TN_OP_TEST(mp_sgd_mom),
        TN_OP_TEST(multi_sgd),
        TN_OP_TEST(multi_sgd_mom),
        TN_OP_TEST(multi_mp_sgd),
        TN_OP_TEST(multi_mp_sgd_mom),
        TN_OP_TEST(preloaded_sgd),
        TN_OP_TEST(preloaded_sgd_mom),
        TN_OP_TEST(multi_sum_sq),
        TN_OP_TEST(multi_lars),
        TN_OP_TEST(all_finite),
        TN_OP_TEST(multi_all_finite),
        TN_OP_TEST(reset_arrays),
        TN_OP_TEST(mp_nag),
        TN_OP_TEST(ftrl),
        TN_OP_TEST(ftml),
        TN_OP_TEST(adagrad),
        TN_OP_TEST(group_adagrad),
        TN_OP_TEST(adamw),
        TN_OP_TEST(mp_adamw),
        TN_OP_TEST(multi_adamw_update),
        TN_OP_TEST(multi_mp_adamw_update),
        TN_OP_TEST(lamb_phase1),
        TN_OP_TEST(mp_lamb_phase1),
        TN_OP_TEST(lamb_phase2),
        TN_OP_TEST(mp_lamb_phase2),
        TN_OP_TEST(multi_lamb_update),
        TN_OP_TEST(multi_mp_lamb_update),
    };

    return tn_op_main(tests);
}
