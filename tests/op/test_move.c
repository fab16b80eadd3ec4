/* Family move: what room tensor calls on a device.
 * Other shapes, types and strides: tests/exec/test_moving.c. */
#include "support/op_case.h"

#define FILL(dtype)                                                                                          \
    {                                                                                                        \
        "fill " #dtype, "value=1", .in = {#dtype "[2,3] fill:0"}, .out = {#dtype "[2,3] fill:1"},            \
                                   .flags = TN_CASE_NO_GRAD                                                  \
    }
static const tn_op_case fill_cases[] = {
    FILL(f32),
    FILL(f64),
    FILL(f16),
    FILL(bf16),
    FILL(u8),
    FILL(i8),
    FILL(i16),
    FILL(u16),
    FILL(i32),
    FILL(u32),
    FILL(i64),
    FILL(u64),
    FILL(bool),
    {"empty", "value=-2.5", .in = {"f32[2,0,3]"}, .out = {"f32[2,0,3]"}, .flags = TN_CASE_NO_GRAD},
    {"scalar", "value=-2.5", .in = {"f64[] 1"}, .out = {"f64[] -2.5"},
     .flags = TN_CASE_NO_GRAD | TN_CASE_NP_SHAPE},
    {"zero", "", .in = {"i64[5] range"}, .out = {"i64[5] fill:0"}, .flags = TN_CASE_NO_GRAD},
    {"beyond", "value=-1e30", .in = {"i8[2] range"}, .out = {"i8[2] fill:-128"}, .flags = TN_CASE_NO_GRAD},
    {"no number", "value=much", .in = {"f32[1] 1"}, .status = TN_E_ATTR},
    {"no input", "", .status = TN_E_ARG},
};
TN_OP_TESTS(fill, "_fill", fill_cases)

#define SAME(dtype)                                                                                          \
    {                                                                                                        \
#dtype, "",                                                                                          \
            .in = {#dtype "[2,3] 1 0 1 1 0 1" }, .out = {#dtype "[2,3] 1 0 1 1 0 1" },                       \
                                                         .flags = TN_CASE_NO_GRAD                            \
    }
static const tn_op_case move_cases[] = {
    SAME(f32),
    SAME(f64),
    SAME(f16),
    SAME(bf16),
    SAME(u8),
    SAME(i8),
    SAME(i16),
    SAME(u16),
    SAME(i32),
    SAME(u32),
    SAME(i64),
    SAME(u64),
    SAME(bool),
    {"empty", "", .in = {"f32[2,0]"}, .out = {"f32[2,0]"}, .flags = TN_CASE_NO_GRAD},
    {"five dimensions", "", .in = {"f32[3,5,7,2,9] random"}, .flags = TN_CASE_NO_GRAD},
    {"longer than a tile", "", .in = {"f16[3,1300] random"}, .flags = TN_CASE_NO_GRAD},
    {"two inputs", "", .in = {"f32[2,3] range", "f32[2,3] range"}, .status = TN_E_ARG},
};
TN_OP_TESTS(move, "_move", move_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(fill), TN_OP_TEST(move)};

    return tn_op_main(tests);
}
