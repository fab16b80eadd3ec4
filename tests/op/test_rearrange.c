/* Family rearrange: elements in other places, and arrays of more dimensions. */
#include "support/op_case.h"

#define N TN_CASE_NO_GRAD
#define NP TN_CASE_NP_SHAPE
#define G TN_CASE_GRAD2

static const tn_op_case roll[] = {
    {"flat", "shift=1", .in = {"f32[2,2] 1 2 3 4"}, .out = {"f32[2,2] 4 1 2 3"}},
    {"axis", "shift=-1 axis=1", .in = {"f64[2,3] random"}, .flags = G},
    {"axes", "shift=(7,-5) axis=(0,-1)", .in = {"f64[3,2,4] random"}, .flags = G},
    {"one axis twice", "shift=(1,1) axis=(0,0)", .in = {"u8[3] 1 2 3"}, .out = {"u8[3] 2 3 1"}, .flags = N},
    {"scalar", "shift=3", .in = {"f64[] 2"}, .out = {"f64[] 2"}, .flags = NP},
    {"empty", "shift=3 axis=0", .in = {"f32[0,2]"}, .out = {"f32[0,2]"}},
    {"many", "shift=(13,700) axis=(0,1)", .in = {"f32[40,999] random"}, .flags = N},
    {"no shift", "axis=0", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR, .message = "shift"},
    {"counts", "shift=(1,2) axis=(0,)", .in = {"f32[2] 1 2"}, .status = TN_E_ATTR},
    {"beyond", "shift=1 axis=1", .in = {"f32[2] 1 2"}, .status = TN_E_SHAPE, .message = "axis 1"},
};
static const tn_op_case rot90[] = {
    {"once", "axes=(0,1)", .in = {"i32[2,2] 1 2 3 4"}, .out = {"i32[2,2] 2 4 1 3"}},
    {"the other way", "k=-1 axes=(0,2)", .in = {"f64[2,3,4] random"}, .flags = G},
    {"twice", "k=2 axes=(1,0)", .in = {"f64[2,3] random"}, .flags = G},
    {"three times", "k=7 axes=(2,-2)", .in = {"f64[2,3,2] random"}, .flags = G},
    {"not", "k=4 axes=(0,1)", .in = {"f64[2,3] random"}, .flags = G},
    {"empty", "axes=(0,1)", .in = {"f32[0,2]"}, .out = {"f32[2,0]"}},
    {"one axis", "axes=(0,-2)", .in = {"f32[2,2] random"}, .status = TN_E_ATTR, .message = "twice"},
    {"no axes", "k=1", .in = {"f32[2,2] random"}, .status = TN_E_ATTR, .message = "axes"},
};
static const tn_op_case tril[] = {
    {"matrices", "k=-1", .in = {"f64[2,3,4] random"}, .flags = G},
    {"value", "", .in = {"i8[2,3] 1 2 3 4 5 6"}, .out = {"i8[2,3] 1 0 0 4 5 0"}, .flags = N},
    {"vector", "k=1", .in = {"f64[3] random"}, .flags = G},
    {"all", "k=100", .in = {"f64[2,2] random"}},
    {"nothing", "k=-100", .in = {"f64[2,2] random"}},
    {"empty", "", .in = {"f32[0,3]"}, .out = {"f32[0,3]"}},
    {"scalar", "", .in = {"f32[] 1"}, .status = TN_E_SHAPE, .flags = NP},
};
static const tn_op_case atleast_2d[] = {
    {"ranks", "num_args=3", .in = {"f32[] 5", "f32[2] 1 2", "f32[1,1,1] 7"},
     .out = {"f32[1,1] 5", "f32[1,2] 1 2", "f32[1,1,1] 7"}, .flags = NP | N},
};
static const tn_op_case atleast_3d[] = {
    {"ranks", "num_args=3", .in = {"i64[] 5", "i64[2] 1 2", "i64[2,1] 3 4"},
     .out = {"i64[1,1,1] 5", "i64[1,2,1] 1 2", "i64[2,1,1] 3 4"}, .flags = NP | N},
    {"empty", "num_args=1", .in = {"f32[0]"}, .out = {"f32[1,0,1]"}, .flags = NP | N},
};

/* clang-format off */
TN_OP_TESTS(roll, "_np_roll", roll)
TN_OP_TESTS(rot90, "_npi_rot90", rot90)
TN_OP_TESTS(tril, "_npi_tril", tril)
TN_OP_TESTS(atleast_2d, "_np_atleast_2d", atleast_2d)
TN_OP_TESTS(atleast_3d, "_np_atleast_3d", atleast_3d)
/* clang-format on */

int main(void)
{
    const struct CMUnitTest tests[] = {
        TN_OP_TEST(roll), TN_OP_TEST(rot90), TN_OP_TEST(tril), TN_OP_TEST(atleast_2d), TN_OP_TEST(atleast_3d),
    };

    return tn_op_main(tests);
}
