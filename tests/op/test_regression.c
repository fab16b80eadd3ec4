/* Family regression: outputs and gradients by hand, from the formulas at the head of core/op/regression.c. */
#include "support/op_case.h"

#define X "f64[2,2] 1 -2 0 3"
#define L "f64[2,2] 0 -1 0 5"

static const tn_op_case linear_cases[] = {
    {"squared", "", .in = {X, L}, .out = {X}, .grad = {"f64[2,2] 0.5 -0.5 0 -1"}, .flags = TN_CASE_NO_GRAD},
    {"scaled", "grad_scale=4", .in = {X, L}, .grad = {"f64[2,2] 2 -2 0 -4"}, .flags = TN_CASE_NO_GRAD},
    {"flat labels", "", .in = {"f32[3,1] 1 2 3", "f32[3] 0 0 0"}, .out = {"f32[3,1] 1 2 3"},
     .grad = {"f32[3,1] 1 2 3"}, .flags = TN_CASE_NO_GRAD},
    {"labels", "", .in = {X, "f64[2] 1 2"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(linear, "LinearRegressionOutput", linear_cases)

static const tn_op_case logistic_cases[] = {
    {"entropy", "", .in = {"f64[2,1] 0 100", "f64[2,1] 1 1"}, .out = {"f64[2,1] 0.5 1"},
     .grad = {"f64[2,1] -0.5 0"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(logistic, "LogisticRegressionOutput", logistic_cases)

static const tn_op_case mae_cases[] = {
    {"absolute", "", .in = {X, L}, .out = {X}, .grad = {"f64[2,2] 0.5 -0.5 0 -0.5"},
     .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(mae, "MAERegressionOutput", mae_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(linear), TN_OP_TEST(logistic), TN_OP_TEST(mae)};

    return tn_op_main(tests);
}
