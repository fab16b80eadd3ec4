/* Family select: NumPy's where and its relatives. */
#include "support/op_case.h"

#define N TN_CASE_NO_GRAD
#define NP TN_CASE_NP_SHAPE
#define G TN_CASE_GRAD2
#define CONDITION .no_grad_inputs = 1

static const tn_op_case where[] = {
    {"same", "", .in = {"f64[2,3] 1 0 0 1 0 1", "f64[2,3] random", "f64[2,3] random"}, .flags = G, CONDITION},
    {"stretched", "", .in = {"f64[2,1] 1 0", "f64[1,3] random", "f64[2,3] random"}, .flags = G, CONDITION},
    {"a wide condition", "", .in = {"f64[2,3] 1 0 0 1 0 1", "f64[] 2", "f64[3] random"}, .flags = G | NP,
     CONDITION},
    {"types", "", .in = {"f32[4] nan -0 0.5 0", "i64[4] 1 2 3 4611686018427387905", "i64[] 9"},
     .out = {"i64[4] 1 9 3 9"}, .flags = N | NP},
    {"bool", "", .in = {"bool[2] 0 1", "u8[1] 7", "u8[2] 1 2"}, .out = {"u8[2] 1 7"}, .flags = N},
    {"long", "", .in = {"u8[3,700] random", "f16[700] random", "f16[3,1] random"}, .flags = N},
    {"empty", "", .in = {"f32[0,2]", "f32[2] 1 2", "f32[1] 1"}, .out = {"f32[0,2]"}, .flags = N},
    {"shapes", "", .in = {"f32[2] 1 0", "f32[3] random", "f32[1] 1"}, .status = TN_E_SHAPE},
    {"mixed", "", .in = {"f32[1] 1", "f32[1] 1", "f64[1] 1"}, .status = TN_E_DTYPE},
};
static const tn_op_case lscalar[] = {
    {"value", "scalar=9", .in = {"i32[2] 1 0", "f32[2] 1 2"}, .out = {"f32[2] 9 2"}, .flags = N},
    {"gradient", "scalar=9", .in = {"f64[2,1] 1 0", "f64[3] random"}, .flags = G, CONDITION},
};
static const tn_op_case rscalar[] = {
    {"value", "scalar=9", .in = {"i32[2] 1 0", "f32[2] 1 2"}, .out = {"f32[2] 1 9"}, .flags = N},
    {"gradient", "scalar=9", .in = {"f64[2,1] 1 0", "f64[3] random"}, .flags = G, CONDITION},
};
static const tn_op_case scalar2[] = {
    {"value", "x=1.5 y=-1", .in = {"bool[3] 1 0 1"}, .out = {"f32[3] 1.5 -1 1.5"}, .flags = N},
};
static const tn_op_case nan_to_num[] = {
    {"f16", "", .in = {"f16[4] nan inf -inf 2"}, .out = {"f16[4] 0 65504 -65504 2"}, .flags = N},
    {"given", "nan=1 posinf=2 neginf=3", .in = {"f64[3] nan inf -inf"}, .out = {"f64[3] 1 2 3"}, .flags = N},
    {"bf16", "", .in = {"bf16[2] inf 1"}, .out = {"bf16[2] 3.3895313892515355e38 1"}, .flags = N},
    {"integers", "", .in = {"i64[2] 4611686018427387905 -1"}, .out = {"i64[2] 4611686018427387905 -1"},
     .flags = N},
    {"gradient", "", .in = {"f64[2,3] random"}, .flags = G},
    {"empty", "", .in = {"f32[0]"}, .out = {"f32[0]"}},
};
static const tn_op_case around[] = {
    {"halves", "", .in = {"f32[4] 0.5 1.5 -2.5 2.6"}, .out = {"f32[4] 0 2 -2 3"}, .flags = N},
    {"tens", "decimals=-1", .in = {"f64[3] 15 25 -26"}, .out = {"f64[3] 20 20 -30"}, .flags = N},
    {"integers", "decimals=-1", .in = {"i32[3] 15 25 -26"}, .out = {"i32[3] 10 20 -20"}, .flags = N},
    {"all digits", "decimals=-30", .in = {"i8[2] 15 -128"}, .out = {"i8[2] 0 0"}, .flags = N},
    {"bad", "decimals=1.5", .in = {"f32[1] 1"}, .status = TN_E_ATTR},
};
static const tn_op_case full_like[] = {
    {"type", "fill_value=2.5 dtype=int32", .in = {"f32[2] 1 2"}, .out = {"i32[2] 2 2"}, .flags = N},
    {"same", "fill_value=-1", .in = {"f16[2] 1 2"}, .out = {"f16[2] -1 -1"}, .flags = N},
    {"no value", "", .in = {"f32[1] 1"}, .status = TN_E_ATTR},
};
static const tn_op_case share_memory[] = {
    {"apart", "", .in = {"f32[2] 1 2", "i8[3] 1 2 3"}, .out = {"bool[] 0"}, .flags = N | NP},
    {"empty", "", .in = {"f32[0]", "i8[3] 1 2 3"}, .out = {"bool[] 0"}, .flags = N | NP},
};

/* clang-format off */
TN_OP_TESTS(where, "_npi_where", where)
TN_OP_TESTS(lscalar, "_npi_where_lscalar", lscalar)
TN_OP_TESTS(rscalar, "_npi_where_rscalar", rscalar)
TN_OP_TESTS(scalar2, "_npi_where_scalar2", scalar2)
TN_OP_TESTS(nan_to_num, "_npi_nan_to_num", nan_to_num)
TN_OP_TESTS(around, "_npi_around", around)
TN_OP_TESTS(full_like, "_npi_full_like", full_like)
TN_OP_TESTS(share_memory, "_npi_share_memory", share_memory)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(where),      TN_OP_TEST(lscalar), TN_OP_TEST(rscalar),   TN_OP_TEST(scalar2),
        TN_OP_TEST(nan_to_num), TN_OP_TEST(around),  TN_OP_TEST(full_like), TN_OP_TEST(share_memory),
    };

    return tn_op_main(tests);
}
