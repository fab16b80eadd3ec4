/* Family unary: values against the C library, gradients of first and second order by differences. */
#include <math.h>
#include <stdio.h>

#include "support/op_case.h"

typedef struct domain {
    const char *op, *attrs, *in; /* random numbers where the function is smooth */
    uint32_t flags;
} domain;

static const domain smooth[] = {
    {"relu", "", "random:0.1:2", TN_CASE_GRAD2},
    {"relu", "", "random:-2:-0.1", TN_CASE_GRAD2},
    {"sigmoid", "", "random:-4:4", TN_CASE_GRAD2},
    {"softsign", "", "random:0.1:4", TN_CASE_GRAD2},
    {"softsign", "", "random:-4:-0.1", TN_CASE_GRAD2},
    {"tanh", "", "random:-3:3", TN_CASE_GRAD2},
    {"exp", "", "random:-3:2", TN_CASE_GRAD2},
    {"expm1", "", "random:-2:2", TN_CASE_GRAD2},
    {"log", "", "random:0.2:3", TN_CASE_GRAD2},
    {"log2", "", "random:0.2:3", TN_CASE_GRAD2},
    {"log10", "", "random:0.2:3", TN_CASE_GRAD2},
    {"log1p", "", "random:-0.5:3", TN_CASE_GRAD2},
    {"sqrt", "", "random:0.2:3", TN_CASE_GRAD2},
    {"rsqrt", "", "random:0.3:3", TN_CASE_GRAD2},
    {"cbrt", "", "random:0.3:3", TN_CASE_GRAD2},
    {"rcbrt", "", "random:0.3:3", TN_CASE_GRAD2},
    {"reciprocal", "", "random:0.4:3", TN_CASE_GRAD2},
    {"square", "", "random", TN_CASE_GRAD2},
    {"abs", "", "random:0.1:2", TN_CASE_GRAD2},
    {"abs", "", "random:-2:-0.1", TN_CASE_GRAD2},
    {"negative", "", "random", TN_CASE_GRAD2},
    {"erf", "", "random:-2:2", TN_CASE_GRAD2},
    {"erfinv", "", "random:-0.9:0.9", TN_CASE_GRAD2},
    {"sin", "", "random:-3:3", TN_CASE_GRAD2},
    {"cos", "", "random:-3:3", TN_CASE_GRAD2},
    {"tan", "", "random:-1:1", TN_CASE_GRAD2},
    {"arcsin", "", "random:-0.8:0.8", TN_CASE_GRAD2},
    {"arccos", "", "random:-0.8:0.8", TN_CASE_GRAD2},
    {"arctan", "", "random:-3:3", TN_CASE_GRAD2},
    {"sinh", "", "random:-2:2", TN_CASE_GRAD2},
    {"cosh", "", "random:-2:2", TN_CASE_GRAD2},
    {"arcsinh", "", "random:-2:2", TN_CASE_GRAD2},
    {"arccosh", "", "random:1.3:3", TN_CASE_GRAD2},
    {"arctanh", "", "random:-0.8:0.8", TN_CASE_GRAD2},
    {"gamma", "", "random:0.6:3", 0},
    {"gammaln", "", "random:0.6:3", 0},
    {"degrees", "", "random", TN_CASE_GRAD2},
    {"radians", "", "random", TN_CASE_GRAD2},
    {"clip", "a_min=-0.3 a_max=0.4", "random", TN_CASE_GRAD2},
    {"hard_sigmoid", "", "random", TN_CASE_GRAD2},
    {"smooth_l1", "scalar=1.5", "random", 0},
    {"sign", "", "random", 0},
    {"floor", "", "random", 0},
    {"_contrib_round_ste", "", "random", TN_CASE_NO_GRAD},
    {"_contrib_sign_ste", "", "random", TN_CASE_NO_GRAD},
    {"logical_not", "", "random", 0},
};

/* Each function on each floating point type, dense, strided, added, in place;
 * large enough for several tiles. */
static void test_smooth(void **state)
{
    static const char *const shapes[] = {"f64[3,4]", "f32[3,4]", "f32[2,700]", "f16[2,300]",
                                         "bf16[5]",  "f32[]",    "f32[0,3]"};

    (void)state;
    for (size_t i = 0; i < sizeof smooth / sizeof smooth[0]; i++)
        for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
            char in[100];
            tn_op_case c = {smooth[i].op, smooth[i].attrs, .in = {in},
                            .flags = k == 0 ? smooth[i].flags : (uint32_t)TN_CASE_NO_GRAD};

            snprintf(in, sizeof in, "%s %s", shapes[k], smooth[i].in);
            tn_op_cases_run(smooth[i].op, &c, 1);
        }
}

typedef struct value {
    const char *op;
    double (*f)(double x);
    double low, high;
} value;

static double f_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double f_rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double f_digits(double x)
{
    return x * 180 / acos(-1);
}

static const value values[] = {
    {"exp", exp, -90, 89},        {"log", log, 0, 1e30},
    {"tanh", tanh, -12, 12},      {"sigmoid", f_sigmoid, -100, 100},
    {"tanh", tanh, -1e-3, 1e-3},  {"log", log, 0.9, 1.1},
    {"expm1", expm1, -1, 1},      {"log2", log2, 0, 9},
    {"log10", log10, 0, 9},       {"log1p", log1p, -0.9, 9},
    {"sqrt", sqrt, 0, 9},         {"rsqrt", f_rsqrt, 0.1, 9},
    {"cbrt", cbrt, -9, 9},        {"erf", erf, -3, 3},
    {"sin", sin, -30, 30},        {"cos", cos, -30, 30},
    {"tan", tan, -1.5, 1.5},      {"arcsin", asin, -1, 1},
    {"arccos", acos, -1, 1},      {"arctan", atan, -30, 30},
    {"sinh", sinh, -9, 9},        {"cosh", cosh, -9, 9},
    {"arcsinh", asinh, -9, 9},    {"arccosh", acosh, 1, 9},
    {"arctanh", atanh, -0.9, .9}, {"gamma", tgamma, -3.9, 9},
    {"gammaln", lgamma, 0.1, 90}, {"degrees", f_digits, -9, 9},
    {"floor", floor, -9, 9},      {"ceil", ceil, -9, 9},
    {"round", round, -9, 9},      {"trunc", trunc, -9, 9},
    {"fix", trunc, -9, 9},        {"abs", fabs, -9, 9},
};

/* 200 points of each function; f32 may be off by its rounding. */
static void test_values(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        for (int wide = 0; wide < 2; wide++) {
            static char in[8000], out[8000];
            size_t a = (size_t)snprintf(in, sizeof in, "f%d[200]", wide ? 64 : 32), b = a;
            tn_op_case c = {values[i].op,
                            "",
                            .in = {in},
                            .out = {out},
                            .tolerance = wide ? 1e-14 : 1.3e-7,
                            .flags = TN_CASE_NO_GRAD | TN_CASE_ONE_FORM};

            snprintf(out, sizeof out, "%s", in);
            for (int k = 0; k < 200; k++) {
                double x = values[i].low + (values[i].high - values[i].low) * (k + 0.37) / 200;

                x = wide ? x : (double)(float)x;
                a += (size_t)snprintf(in + a, sizeof in - a, " %.17g", x);
                b += (size_t)snprintf(out + b, sizeof out - b, " %.17g", values[i].f(x));
            }
            tn_op_cases_run(values[i].op, &c, 1);
        }
}

#define N TN_CASE_NO_GRAD
static const tn_op_case relu[] = {
    {"signs", "", .in = {"f32[5] -2 -0 0 nan inf"}, .out = {"f32[5] 0 0 0 nan inf"}, .flags = N},
    {"i8", "", .in = {"i8[3] -2 0 3"}, .out = {"i8[3] 0 0 3"}, .flags = N},
    {"u8", "", .in = {"u8[2] 200 0"}, .out = {"u8[2] 200 0"}, .flags = N},
    {"i64", "", .in = {"i64[2] -9007199254740993 5"}, .out = {"i64[2] 0 5"}, .flags = N},
    {"no attribute", "slope=1", .in = {"f32[1] 0"}, .status = TN_E_ATTR, .message = "has no attribute"},
};
static const tn_op_case square[] = {
    {"wraps", "", .in = {"i32[2] 65536 3"}, .out = {"i32[2] 0 9"}, .flags = N},
    {"f16", "", .in = {"f16[3] 0.1 300 -2"}, .out = {"f16[3] 0.01 inf 4"}, .flags = N},
};
static const tn_op_case edges_exp[] = {
    {"edges", "", .in = {"f32[7] nan inf -inf 0 -0 89 -104"}, .out = {"f32[7] nan inf 0 1 1 inf 0"},
     .flags = N},
    {"integers", "", .in = {"u8[3] 0 1 5"}, .out = {"u8[3] 1 2 148"}, .flags = N},
    {"beyond the type", "", .in = {"i64[3] -40 20 50"}, .out = {"i64[3] 0 485165195 9223372036854775807"},
     .flags = N | TN_CASE_ONE_FORM},
    {"bool", "", .in = {"bool[1] 1"}, .status = TN_E_DTYPE, .message = "no number"},
};
static const tn_op_case edges_log[] = {
    {"beyond the type", "", .in = {"i8[4] -1 0 1 100"}, .out = {"i8[4] 0 -128 0 4"},
     .flags = N | TN_CASE_ONE_FORM},
    {"edges", "", .in = {"f32[6] nan inf -1 0 1 1e-45"}, .out = {"f32[6] nan inf nan -inf 0 -103.278929903"},
     .flags = N},
};
static const tn_op_case edges_tanh[] = {
    {"edges", "", .in = {"f32[6] nan inf -inf 0 1e-30 -1e-9"}, .out = {"f32[6] nan 1 -1 0 1e-30 -1e-9"},
     .flags = N},
};
static const tn_op_case sign[] = {
    {"signs", "", .in = {"f32[5] -3 0 -0 7 nan"}, .out = {"f32[5] -1 0 0 1 0"}, .flags = N},
    {"integers", "", .in = {"i64[3] -3 0 9"}, .out = {"i64[3] -1 0 1"}, .flags = N},
};
static const tn_op_case rint_cases[] = {
    {"halves go down", "", .in = {"f32[6] -1.5 1.5 -1.9 1.9 2.1 nan"}, .out = {"f32[6] -2 1 -2 2 2 nan"}},
};
static const tn_op_case round_cases[] = {
    {"halves go out", "", .in = {"f32[6] -1.5 1.5 -1.9 1.9 2.1 nan"}, .out = {"f32[6] -2 2 -2 2 2 nan"}},
    {"integers", "", .in = {"i32[2] -7 9"}, .out = {"i32[2] -7 9"}},
};
static const tn_op_case logical_not[] = {
    {"numbers", "", .in = {"f32[4] 0 -0 2 nan"}, .out = {"f32[4] 1 1 0 0"}},
    {"bool", "", .in = {"bool[2] 0 1"}, .out = {"bool[2] 1 0"}},
};
static const tn_op_case clip[] = {
    {"f32", "a_min=-1 a_max=1", .in = {"f32[5] -3 -1 0.5 9 nan"}, .out = {"f32[5] -1 -1 0.5 1 nan"},
     .flags = N},
    {"u8", "a_min=-5 a_max=100.7", .in = {"u8[3] 0 99 200"}, .out = {"u8[3] 0 99 100"}, .flags = N},
    {"missing", "a_min=1", .in = {"f32[1] 0"}, .status = TN_E_ATTR, .message = "a_max"},
    {"words", "a_min=low a_max=1", .in = {"f32[1] 0"}, .status = TN_E_ATTR, .message = "expected a number"},
};
static const tn_op_case smooth_l1[] = {
    {"sigma", "scalar=2", .in = {"f32[4] -1 0.1 0.25 3"}, .out = {"f32[4] 0.875 0.02 0.125 2.875"},
     .flags = N},
};
static const tn_op_case erfinv[] = {
    {"edges", "", .in = {"f64[6] -1 1 0 0.5 1.1 0.999999"},
     .out = {"f64[6] -inf inf 0 0.47693627620446987 nan 3.4589107372795"}, .flags = N},
};

/* clang-format off */
TN_OP_TESTS(relu, "relu", relu)
TN_OP_TESTS(relu_alias, "_sparse_relu", relu)
TN_OP_TESTS(square, "square", square)
TN_OP_TESTS(exp, "exp", edges_exp)
TN_OP_TESTS(log, "log", edges_log)
TN_OP_TESTS(tanh, "tanh", edges_tanh)
TN_OP_TESTS(sign, "sign", sign)
TN_OP_TESTS(rint, "rint", rint_cases)
TN_OP_TESTS(round, "round", round_cases)
TN_OP_TESTS(logical_not, "logical_not", logical_not)
TN_OP_TESTS(clip, "clip", clip)
TN_OP_TESTS(smooth_l1, "smooth_l1", smooth_l1)
TN_OP_TESTS(erfinv, "erfinv", erfinv)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smooth),
        cmocka_unit_test(test_values),
        TN_OP_TEST(relu),
        TN_OP_TEST(relu_alias),
        TN_OP_TEST(square),
        TN_OP_TEST(exp),
        TN_OP_TEST(log),
        TN_OP_TEST(tanh),
        TN_OP_TEST(sign),
        TN_OP_TEST(rint),
        TN_OP_TEST(round),
        TN_OP_TEST(logical_not),
        TN_OP_TEST(clip),
        TN_OP_TEST(smooth_l1),
        TN_OP_TEST(erfinv),
    };

    return tn_op_main(tests);
}
