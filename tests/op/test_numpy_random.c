/*
 * Family numpy_random: forms, shapes, gradients and what is refused; the numbers themselves are
 * tests/api/test_distributions.c's.
 */
#include "support/op_case.h"

static const tn_op_case normal_cases[] = {
    {"numbers", "loc=1 scale=2 size=70000", .flags = TN_CASE_NO_GRAD},
    {"tensors", "loc=None scale=None", .in = {"f64[2,1,3] random", "f64[4,1] random:0.5:1"},
     .flags = TN_CASE_NO_GRAD},
    {"gradient", "loc=None scale=None dtype=float64", .in = {"f64[2,1,3] random", "f64[4,1] random:0.5:1"}},
    {"size", "loc=None scale=None size=(5,2,3) dtype=float64",
     .in = {"f64[2,1] random", "f64[3] random:0.5:1"}},
    {"one input", "loc=None scale=0.5 dtype=float64", .in = {"f64[2,3] random"}},
    {"the other", "loc=2 scale=None dtype=float64 size=(4,3)", .in = {"f64[3] random:0.5:1"}},
    {"types", "loc=None scale=None", .in = {"i32[3] 1 2 3", "f16[3] 1 1 1"}, .flags = TN_CASE_NO_GRAD},
    {"point", "loc=None scale=0", .in = {"f32[3] 1 2 3"}, .out = {"f32[3] 1 2 3", NULL},
     .flags = TN_CASE_NO_GRAD},
    {"short", "loc=1 scale=0 size=(2,) dtype=bfloat16", .out = {"bf16[2] 1 1", NULL},
     .flags = TN_CASE_NO_GRAD},
    {"one number", "loc=2 scale=0", .out = {"f32[] 2", NULL}, .flags = TN_CASE_NO_GRAD | TN_CASE_NP_SHAPE},
    {"one number of old", "loc=2 scale=0", .out = {"f32[1] 2", NULL}, .flags = TN_CASE_NO_GRAD},
    {"empty", "loc=None scale=1", .in = {"f32[0,3]"}, .out = {"f32[0,3]", "f32[0,3]"},
     .flags = TN_CASE_NO_GRAD},
    {"not a number", "loc=None scale=None", .in = {"f32[2] nan 1", "f32[2] 1 nan"},
     .out = {"f32[2] nan nan", "f32[2] nan nan"}, .flags = TN_CASE_NO_GRAD},
    {"too large", "loc=None scale=1 size=(2,)", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"too many", "loc=None scale=1 size=(3,)", .in = {"f32[1,3] 1 2 3"}, .status = TN_E_SHAPE},
    {"size of 1", "loc=None scale=1 size=(1,)", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"shapes", "loc=None scale=None", .in = {"f32[3] 1 2 3", "f32[2] 1 2"}, .status = TN_E_SHAPE},
    {"missing", "scale=1", .status = TN_E_ATTR, .message = "loc"},
    {"whole numbers", "loc=0 scale=1 dtype=int32", .status = TN_E_DTYPE},
};
TN_OP_TESTS(normal, "_npi_normal", normal_cases)

static const tn_op_case normal_n_cases[] = {
    {"behind", "loc=None scale=None size=(2,) dtype=float64",
     .in = {"f64[3,1] random", "f64[2] random:0.5:1"}},
    {"point", "loc=None scale=0 size=(2,)", .in = {"f32[3] 1 2 3"}, .out = {"f32[2,3] 1 2 3 1 2 3", NULL},
     .flags = TN_CASE_NO_GRAD},
    {"no size", "loc=None scale=0", .in = {"f32[3] 1 2 3"}, .out = {"f32[3] 1 2 3", NULL},
     .flags = TN_CASE_NO_GRAD},
    {"numbers", "loc=1 scale=0 size=(2,)", .out = {"f32[2] 1 1", NULL}, .flags = TN_CASE_NO_GRAD},
    {"dimensions", "loc=None scale=1 size=(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)",
     .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE, .message = "33 dimensions"},
};
TN_OP_TESTS(normal_n, "_npi_normal_n", normal_n_cases)

static const tn_op_case uniform_cases[] = {
    {"stretched", "low=None high=None size=(700,101)", .in = {"f32[101] random:0:1", "f32[1] 2"},
     .flags = TN_CASE_NO_GRAD},
    {"point", "low=None high=3 size=(2,2)", .in = {"f64[2] 3 3"}, .out = {"f32[2,2] 3 3 3 3"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(uniform, "_npi_uniform", uniform_cases)

static const tn_op_case gamma_cases[] = {
    {"tensors", "shape=None scale=None dtype=float64",
     .in = {"f64[700,1] random:0.01:9", "f64[101] random:1:2"}, .flags = TN_CASE_NO_GRAD},
    {"subnormal", "shape=None scale=1", .in = {"f64[3] 4.9e-324 1e-310 1e-100"}, .out = {"f32[3] 0 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"not a number", "shape=None scale=1", .in = {"f64[2] nan nan"}, .out = {"f32[2] nan nan"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(gamma, "_npi_gamma", gamma_cases)

#define GRADIENT(id, op, attr)                                                                               \
    static const tn_op_case id##_cases[] = {                                                                 \
        {"numbers", attr "=1.5 size=(7,5)", .flags = TN_CASE_NO_GRAD},                                       \
        {"many", attr "=None size=(700,101)", .in = {"f32[101] random:0.5:3"}, .flags = TN_CASE_NO_GRAD},    \
        {"whole numbers", attr "=None size=(2,3)", .in = {"i8[3] 1 2 3"}, .flags = TN_CASE_NO_GRAD},         \
        {"empty", attr "=None size=(0,3)", .in = {"f32[3] 1 2 3"}, .out = {"f32[0,3]", "f32[0,3]"},          \
         .flags = TN_CASE_NO_GRAD},                                                                          \
    };                                                                                                       \
    TN_OP_TESTS(id, op, id##_cases)
GRADIENT(exponential, "_npi_exponential", "scale")
GRADIENT(rayleigh, "_npi_rayleigh", "scale")
GRADIENT(pareto, "_npi_pareto", "a")
GRADIENT(weibull, "_npi_weibull", "a")

static const tn_op_case powerd_cases[] = {
    {"numbers", "a=1.5 size=(7,5)", .flags = TN_CASE_NO_GRAD},
    {"many", "a=None size=(700,101)", .in = {"f32[101] random:0.5:3"}, .flags = TN_CASE_NO_GRAD},
    {"whole numbers", "a=None size=(2,3)", .in = {"i8[3] 1 2 3"}, .flags = TN_CASE_NO_GRAD},
    {"empty", "a=None size=(0,3)", .in = {"f32[3] 1 2 3"}, .out = {"f32[0,3]"}, .flags = TN_CASE_NO_GRAD},
    {"larger", "a=None size=(2,)", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(powerd, "_npi_powerd", powerd_cases)

static const tn_op_case gumbel_cases[] = {
    {"tensors", "loc=None scale=None size=(700,101)", .in = {"f64[101] random", "f64[1] 2"},
     .flags = TN_CASE_NO_GRAD},
    {"point", "loc=None scale=0", .in = {"f32[3] 1 2 3"}, .out = {"f32[3] 1 2 3", NULL},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(gumbel, "_npi_gumbel", gumbel_cases)
TN_OP_TESTS(logistic, "_npi_logistic", gumbel_cases)

static const tn_op_case bernoulli_cases[] = {
    {"number", "prob=0.3 logit=None is_logit=0 size=70000", .flags = TN_CASE_NO_GRAD},
    {"sure", "prob=1 logit=None is_logit=0 size=3 dtype=int32", .out = {"i32[3] 1 1 1"},
     .flags = TN_CASE_NO_GRAD},
    {"never", "prob=0 logit=None is_logit=0 size=3 dtype=bool", .out = {"bool[3] 0 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"tensor", "prob=None logit=None is_logit=0 size=(2,3) dtype=uint8", .in = {"f32[3] 1 0 1"},
     .out = {"u8[2,3] 1 0 1 1 0 1"}, .flags = TN_CASE_NO_GRAD},
    {"logit", "prob=None logit=None is_logit=1", .in = {"f32[5] inf -inf 1000 -1000 nan"},
     .out = {"f32[5] 1 0 1 0 nan"}, .flags = TN_CASE_NO_GRAD},
    {"logit of all", "prob=None logit=1000 is_logit=0 size=2", .out = {"f32[2] 1 1"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(bernoulli, "_npi_bernoulli", bernoulli_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(normal), TN_OP_TEST(normal_n),    TN_OP_TEST(uniform),
                                       TN_OP_TEST(gamma),  TN_OP_TEST(exponential), TN_OP_TEST(rayleigh),
                                       TN_OP_TEST(powerd), TN_OP_TEST(pareto),      TN_OP_TEST(weibull),
                                       TN_OP_TEST(gumbel), TN_OP_TEST(logistic),    TN_OP_TEST(bernoulli)};

    return tn_op_main(tests);
}
