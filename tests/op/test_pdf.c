/* Family pdf: values by hand, shapes, gradients by differences; MXNet's numbers are tests/mxnet's. */
#include "support/op_case.h"

static const tn_op_case uniform_cases[] = {
    {"density", "", .in = {"f64[2,2] 1 2 3 4", "f64[2] 0 1", "f64[2] 4 3"},
     .out = {"f64[2,2] 0.25 0.25 0.5 0.5"}, .no_grad_inputs = 1},
    {"logarithm", "is_log=1", .in = {"f64[2] 1 2", "f64[2] 0 1", "f64[2] 1 2"}, .out = {"f64[2] 0 0"},
     .no_grad_inputs = 1},
};
TN_OP_TESTS(uniform, "_random_pdf_uniform", uniform_cases)

#define SHAPES(id, op, density, logarithm)                                                                   \
    static const tn_op_case id##_cases[] = {                                                                 \
        {"one", "", .in = {"f64[1] 1", "f64[1] 1.5", "f64[1] 0.5"}, .out = {"f64[1] " density},              \
         .tolerance = 1e-7},                                                                                 \
        {"logarithm", "is_log=1", .in = {"f64[1] 1", "f64[1] 1.5", "f64[1] 0.5"},                            \
         .out = {"f64[1] " logarithm}, .tolerance = 1e-7},                                                   \
        {"samples of each", "is_log=1",                                                                      \
         .in = {"f64[2,3,4] random:1:4", "f64[2] random:1:2", "f64[2] random:0.2:0.8"}},                     \
        {"densities of each", "",                                                                            \
         .in = {"f64[2,3,4] random:1:4", "f64[2,3] random:1:2", "f64[2,3] random:0.2:0.8"}},                 \
        {"many", "", .in = {"f64[2,1300] random:1:4", "f64[2] 1.5 2", "f64[2] 0.5 0.25"},                    \
         .flags = TN_CASE_NO_GRAD},                                                                          \
        {"short", "", .in = {"bf16[2,3] random:1:4", "bf16[2] 1.5 2", "bf16[2] 0.5 0.25"}},                  \
        {"no sample", "", .in = {"f64[2,0] ", "f64[2] 1.5 2", "f64[2] 0.5 0.25"}, .out = {"f64[2,0]"}},      \
        {"no dimension", "", .in = {"f64[] 1", "f64[] 1.5", "f64[] 0.5"}, .out = {"f64[] " density},         \
         .flags = TN_CASE_NP_SHAPE, .tolerance = 1e-7},                                                      \
        {"shapes", "", .in = {"f64[2,3] range", "f64[3] range", "f64[3] range"}, .status = TN_E_SHAPE},      \
        {"parameters", "", .in = {"f64[2,3] range", "f64[2] range", "f64[1] range"}, .status = TN_E_SHAPE},  \
        {"too many", "", .in = {"f64[2] range", "f64[2,1] range", "f64[2,1] range"}, .status = TN_E_SHAPE},  \
        {"types", "", .in = {"f64[2] range", "f32[2] range", "f64[2] range"}, .status = TN_E_DTYPE},         \
        {"integers", "", .in = {"i32[2] range", "i32[2] range", "i32[2] range"}, .status = TN_E_DTYPE},      \
        {"choice", "is_log=maybe", .in = {"f64[2] range", "f64[2] range", "f64[2] range"},                   \
         .status = TN_E_ATTR},                                                                               \
    };                                                                                                       \
    TN_OP_TESTS(id, op, id##_cases)
SHAPES(normal, "_random_pdf_normal", "0.48394144904", "-0.72579135264473")
SHAPES(gamma, "_random_pdf_gamma", "0.24197072452", "-1.4189385332046727")

static const tn_op_case exponential_cases[] = {
    {"density", "", .in = {"f64[1] 2", "f64[1] 0.5"}, .out = {"f64[1] 0.18393972058572117"}},
    {"gradient", "is_log=1", .in = {"f64[3,5] random", "f64[3] random:1:2"}},
    {"of nothing", "", .in = {"f32[0,5]", "f32[0]"}, .out = {"f32[0,5]"}},
    {"0", "", .in = {"f32[1] 0", "f32[1] 0"}, .out = {"f32[1] 0"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(exponential, "_random_pdf_exponential", exponential_cases)

static const tn_op_case poisson_cases[] = {
    {"probability", "", .in = {"f64[4] 0 1 2 3", "f64[4] 1 1 1 1"},
     .out = {"f64[4] 0.36787944117144233 0.36787944117144233 0.18393972058572117 0.06131324019524039"},
     .no_grad_inputs = 1},
    {"gradient", "is_log=1", .in = {"f64[3,2] 0 1 2 3 4 5", "f64[3] random:1:2"}, .no_grad_inputs = 1},
};
TN_OP_TESTS(poisson, "_random_pdf_poisson", poisson_cases)

static const tn_op_case negative_cases[] = {
    {"probability", "", .in = {"f64[1,4] 1 2 3 4", "f64[1] 1", "f64[1] 0.5"},
     .out = {"f64[1,4] 0.25 0.125 0.0625 0.03125"}, .no_grad_inputs = 1},
    {"gradient", "is_log=1", .in = {"f64[3,2] 0 1 2 3 4 5", "f64[3] 0.5 1 2.5", "f64[3] 0.5 0.25 0.75"},
     .no_grad_inputs = 1},
};
TN_OP_TESTS(negative, "_random_pdf_negative_binomial", negative_cases)

static const tn_op_case dispersed_cases[] = {
    {"probability", "", .in = {"f64[1,4] 1 2 3 4", "f64[1] 1", "f64[1] 1"},
     .out = {"f64[1,4] 0.25 0.125 0.0625 0.03125"}, .no_grad_inputs = 1},
    {"gradient", "", .in = {"f64[3,2] 0 1 2 3 4 5", "f64[3] 0.5 1 2.5", "f64[3] 0.5 0.25 0.75"},
     .no_grad_inputs = 1},
};
TN_OP_TESTS(dispersed, "_random_pdf_generalized_negative_binomial", dispersed_cases)

static const tn_op_case dirichlet_cases[] = {
    {"vector", "", .in = {"f64[2] 0.25 0.75", "f64[2] 1 2"}, .out = {"f64[1] 1.5"}},
    {"vector of NumPy's", "", .in = {"f64[2] 0.25 0.75", "f64[2] 1 2"}, .out = {"f64[] 1.5"},
     .flags = TN_CASE_NP_SHAPE},
    {"samples", "is_log=1", .in = {"f64[2,3,4] random:0.1:0.9", "f64[4] random:0.5:3"}},
    {"samples of each", "", .in = {"f64[2,3,4] random:0.1:0.9", "f64[2,4] random:0.5:3"}},
    {"short", "", .in = {"f16[3,2] random:0.1:0.9", "f16[2] 1 2"}},
    {"no sample", "", .in = {"f64[0,2]", "f64[2] 1 2"}, .out = {"f64[0]"}},
    {"no part", "is_log=1", .in = {"f64[3,0]", "f64[0]"}, .flags = TN_CASE_NO_GRAD},
    {"parts", "", .in = {"f64[3,2] range", "f64[3] range"}, .status = TN_E_SHAPE},
    {"leading", "", .in = {"f64[3,2,2] range", "f64[2,2] range"}, .status = TN_E_SHAPE},
    {"no dimension", "", .in = {"f64[] 1", "f64[] 1"}, .flags = TN_CASE_NP_SHAPE, .status = TN_E_SHAPE},
    {"too many", "", .in = {"f64[2] range", "f64[1,2] range"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(dirichlet, "_random_pdf_dirichlet", dirichlet_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(uniform),     TN_OP_TEST(normal),   TN_OP_TEST(gamma),
                                       TN_OP_TEST(exponential), TN_OP_TEST(poisson),  TN_OP_TEST(negative),
                                       TN_OP_TEST(dispersed),   TN_OP_TEST(dirichlet)};

    return tn_op_main(tests);
}
