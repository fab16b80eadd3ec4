/*
 * Table-driven tests of operators: definition and kernels, without an engine.
 *
 *     static const tn_op_case cases[] = {
 *         {"relu",  "act_type=relu", .in = {"f32[2,2] -2 0 1 4"}, .out = {"f32[2,2] 0 0 1 4"}},
 *         {"big",   "act_type=tanh", .in = {"f64[40,40] random"}},
 *         {"kink",  "act_type=relu", .in = {"f32[1] 0"}, .out = {"f32[1] 0"}, .flags = TN_CASE_NO_GRAD},
 *         {"dtype", "act_type=relu", .in = {"i32[1] 0"}, .status = TN_E_DTYPE},
 *     };
 *     TN_OP_TESTS(activation, "Activation", cases)
 *
 *     int main(void) { const struct CMUnitTest tests[] = {TN_OP_TEST(activation)}; return tn_op_main(tests);
 * }
 *
 * A tensor is "dtype[d0,d1,…] values", row-major; dtypes are f32 f64 f16 bf16 i8 … u64 bool. Instead of
 * values: "random" (uniform in -1 … 1, whole numbers 0 … 9 for integers; a seed of its own for each input),
 * "random:low:high", "range", "fill:v". No values and a shape with 0 is an empty tensor. Attributes are
 * name=value, divided by spaces outside brackets.
 *
 * Each case is run on every kernel of every plugin in TENON_TEST_PLUGINS that takes it, in these forms:
 * plain; outputs added (ADD_TO); strided inputs and outputs (STRIDED); in place where the plan allows it;
 * node threads 2 and 4. All forms must give the bits of the plain one, which must match `.out`: the
 * operator's outputs, then the mutated inputs as they are afterwards. An output that is NULL is not compared.
 * Then, unless told otherwise, the gradient of all inputs is compared with central differences, everything
 * cast to f64. `.grad` are expected gradients (NULL: not compared) for head gradients of ones, for operators
 * that ignore their head. Tolerances are relative and absolute: f64 1e-9, f32 1e-5, f16 2e-3, bf16 2e-2, or
 * `.tolerance`.
 */
#ifndef TN_TESTS_OP_CASE_H
#define TN_TESTS_OP_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tenon/plugin/op.h"

#define TN_CASE_NO_GRAD 1u /* no central differences: a kink, a random operator, no gradient */
#define TN_CASE_TRAIN 2u   /* node flag TRAIN, inference flag TRAIN */
#define TN_CASE_NP_SHAPE 4u
#define TN_CASE_GRAD2 8u     /* the gradient's gradient too */
#define TN_CASE_ONE_FORM 16u /* plain form only */
#define TN_CASE_OUT_ANY 32u  /* integer input specs stay integers: informational */

typedef struct tn_op_case {
    const char *name, *attrs;
    const char *in[16], *out[16];
    const char *grad[16];
    tn_status status; /* expected of parsing, inference or preparing */
    uint32_t flags;
    double tolerance;
    uint64_t no_grad_inputs; /* bit i: central differences leave input i out (labels, indices) */
    const char *message;     /* a part of the expected error text */
} tn_op_case;

/* Runs all cases; fails the cmocka test with every message printed. */
void tn_op_cases_run(const char *op, const tn_op_case *cases, size_t count);

#define TN_OP_TESTS(id, op, cases)                                                                           \
    static void op_test_##id(void **state)                                                                   \
    {                                                                                                        \
        (void)state;                                                                                         \
        tn_op_cases_run(op, cases, sizeof(cases) / sizeof((cases)[0]));                                      \
    }
#define TN_OP_TEST(id) cmocka_unit_test(op_test_##id)

/* Opens the definitions and plugins, runs, closes; prints a summary of what was run. TENON_CASE=name runs one
 * case. */
#define tn_op_main(tests) (tn_op_open(), tn_op_close(cmocka_run_group_tests(tests, NULL, NULL)))
int tn_op_open(void);
int tn_op_close(int failed);

#endif
