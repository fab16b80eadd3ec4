/* Family insert: NumPy's insert and delete. Results that have a value are NumPy's. */
#include "support/op_case.h"

#define TABLE "f32[2,3] 1 2 3 4 5 6"
#define NO TN_CASE_NO_GRAD

static const tn_op_case scalars[] = {
    {"number", "int_ind=1 val=9", .in = {TABLE}, .out = {"f32[7] 1 9 2 3 4 5 6"}, .flags = NO},
    {"column", "int_ind=1 axis=1", .in = {TABLE, "f32[2] 8 9"}, .out = {"f32[2,4] 1 8 2 3 4 9 5 6"},
     .flags = NO},
    {"columns", "int_ind=-3 axis=1", .in = {TABLE, "f64[2,2] 7 8 9 10"},
     .out = {"f32[2,5] 7 9 1 2 3 8 10 4 5 6"}, .flags = NO},
    {"behind", "int_ind=2 axis=0", .in = {TABLE, "i32[1] 7"}, .out = {"f32[3,3] 1 2 3 4 5 6 7 7 7"},
     .flags = NO},
    {"to integers", "int_ind=0", .in = {"i32[1] 1", "f32[2] 2.75 -2.75"}, .out = {"i32[3] 2 -2 1"},
     .flags = NO},
    {"into nothing", "int_ind=0", .in = {"f32[0]", "f32[2] 1 2"}, .out = {"f32[2] 1 2"}, .flags = NO},
    {"many", "int_ind=3 axis=1 val=1", .in = {"f16[40,30,50] random"}, .flags = NO},
    {"index", "int_ind=4 axis=1 val=1", .in = {TABLE}, .status = TN_E_SHAPE, .message = "index 4"},
    {"no index", "val=1", .in = {TABLE}, .status = TN_E_ATTR, .message = "int_ind"},
    {"axis", "int_ind=0 axis=2 val=1", .in = {TABLE}, .status = TN_E_SHAPE, .message = "axis 2"},
    {"values", "int_ind=0 axis=1", .in = {TABLE, "f32[3] 1 2 3"}, .status = TN_E_SHAPE, .message = "values"},
    {"dimensions", "int_ind=0 axis=0", .in = {TABLE, "f32[2,1,3] 1 2 3 4 5 6"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(scalar, "_npi_insert_scalar", scalars)

static const tn_op_case slices[] = {
    {"each second", "start=0 stop=5 step=2 axis=1", .in = {TABLE, "f32[2,2] 7 8 9 10"},
     .out = {"f32[2,5] 7 1 2 8 3 9 4 5 10 6"}, .flags = NO},
    {"backwards", "step=-2 axis=1", .in = {TABLE, "f32[2] 7 8"}, .out = {"f32[2,5] 8 1 2 7 3 8 4 5 7 6"},
     .flags = NO},
    {"stretched", "step=1 val=0", .in = {"f32[2] 1 2"}, .out = {"f32[4] 0 1 0 2"}, .flags = NO},
    {"none", "start=2 stop=1 step=1 val=0", .in = {"f32[2] 1 2"}, .out = {"f32[2] 1 2"}, .flags = NO},
    {"one index, many values", "start=1 stop=2 step=1 axis=1", .in = {TABLE, "f32[2,2] 7 8 9 10"},
     .out = {"f32[2,5] 1 7 8 2 3 4 9 10 5 6"}, .flags = NO},
    {"far", "start=-9223372036854775807 stop=9223372036854775807 step=9223372036854775807 val=5",
     .in = {"f32[2] 1 2"}, .out = {"f32[3] 5 1 2"}, .flags = NO},
    {"step", "step=0 val=1", .in = {TABLE}, .status = TN_E_ATTR, .message = "step"},
    {"values", "step=1 axis=1", .in = {TABLE, "f32[2] 7 8"}, .status = TN_E_SHAPE, .message = "values"},
};
TN_OP_TESTS(slice, "_npi_insert_slice", slices)

static const tn_op_case tensors[] = {
    {"in any order", "axis=1", .in = {TABLE, "f32[3] 7 8 9", "i64[3] 3 0 0"},
     .out = {"f32[2,6] 8 9 1 2 3 7 8 9 4 5 6 7"}, .flags = NO},
    {"from the end", "val=9", .in = {"f32[3] 1 2 3", "i64[2] -1 -3"}, .out = {"f32[5] 9 1 2 9 3"},
     .flags = NO},
    {"one", "axis=0", .in = {TABLE, "f32[2,3] 1 2 3 4 5 6", "i64[1] 1"},
     .out = {"f32[4,3] 1 2 3 1 2 3 4 5 6 4 5 6"}, .flags = NO},
    {"a number", "axis=1", .in = {TABLE, "f32[2] 8 9", "i64[] 1"}, .out = {"f32[2,4] 1 8 2 3 4 9 5 6"},
     .flags = NO | TN_CASE_NP_SHAPE},
    {"none", "val=1", .in = {"f32[2] 1 2", "i64[0]"}, .out = {"f32[2] 1 2"}, .flags = NO},
    {"indices' type", "val=1", .in = {"f32[2] 1 2", "i32[1] 0"}, .status = TN_E_DTYPE},
    {"indices' shape", "val=1", .in = {"f32[2] 1 2", "i64[1,1] 0"}, .status = TN_E_SHAPE},
    {"values", "axis=1", .in = {TABLE, "f32[2] 1 2", "i64[3] 0 0 0"}, .status = TN_E_SHAPE,
     .message = "values"},
};
TN_OP_TESTS(tensor, "_npi_insert_tensor", tensors)

static const tn_op_case deletes[] = {
    {"row", "int_ind=0 axis=0", .in = {TABLE}, .out = {"f32[1,3] 4 5 6"}, .flags = NO},
    {"element", "int_ind=-1", .in = {TABLE}, .out = {"f32[5] 1 2 3 4 5"}, .flags = NO},
    {"range", "start=0 step=2 axis=1", .in = {TABLE}, .out = {"f32[2,1] 2 5"}, .flags = NO},
    {"backwards", "stop=0 step=-1", .in = {TABLE}, .out = {"f32[1] 1"}, .flags = NO},
    {"all", "step=1", .in = {TABLE}, .out = {"f32[0]"}, .flags = NO},
    {"index", "int_ind=2 axis=0", .in = {TABLE}, .status = TN_E_SHAPE, .message = "index 2"},
    {"of nothing", "int_ind=0", .in = {"f32[0]"}, .status = TN_E_SHAPE, .message = "index 0"},
    {"step", "step=0", .in = {TABLE}, .status = TN_E_ATTR, .message = "step"},
    {"axis", "step=1 axis=-3", .in = {TABLE}, .status = TN_E_SHAPE, .message = "axis -3"},
};
TN_OP_TESTS(delete_, "_npi_delete", deletes)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(scalar), TN_OP_TEST(slice), TN_OP_TEST(tensor),
                                       TN_OP_TEST(delete_)};

    return tn_op_main(tests);
}
