/* Family sequence: values and gradients as MXNet 1.9.1 gives them; lengths of every kind and outside of the
 * array. */
#include "support/op_case.h"

#define X "f32[3,2,2] 1 2 3 4 5 6 7 8 9 10 11 12"
#define Y "f64[3,2,2] 1 2 3 4 5 6 7 8 9 10 11 12"
#define ON "use_sequence_length=True "

static const tn_op_case mask_cases[] = {
    {"off", "value=3", .in = {X}, .out = {X}},
    {"value", ON "value=-1", .in = {X, "f32[2] 1 2"},
     .out = {"f32[3,2,2] 1 2 3 4 -1 -1 7 8 -1 -1 -1 -1"}, .no_grad_inputs = 2},
    {"axis 1", ON "value=-1 axis=1", .in = {X, "f32[3] 1 2 0"},
     .out = {"f32[3,2,2] 1 2 -1 -1 5 6 7 8 -1 -1 -1 -1"}, .no_grad_inputs = 2},
    {"f64", ON, .in = {Y, "f64[2] 1 2"}, .out = {"f64[3,2,2] 1 2 3 4 0 0 7 8 0 0 0 0"}, .no_grad_inputs = 2},
    {"value is f64", ON "value=0.1", .in = {"f64[1,2] 1 2", "i64[2] 1 0"}, .out = {"f64[1,2] 1 0.1"},
     .no_grad_inputs = 2},
    {"rank 2", ON "value=9", .in = {"f32[3,2] range", "i32[2] 1 2"}, .out = {"f32[3,2] 0 1 9 3 9 9"},
     .no_grad_inputs = 2},
    {"rank 5", ON "axis=1", .in = {"f64[2,3,2,1,2] range", "u8[2] 1 3"},
     .out = {"f64[2,3,2,1,2] 0 1 2 3 0 0 0 0 0 0 0 0 12 13 14 15 16 17 18 19 20 21 22 23"},
     .no_grad_inputs = 2},
    {"outside", ON "value=5", .in = {X, "i8[2] 0 7"}, .out = {"f32[3,2,2] 5 5 3 4 5 5 7 8 5 5 11 12"},
     .no_grad_inputs = 2},
    {"below, fraction", ON "value=5", .in = {X, "f32[2] -2 2.9"},
     .out = {"f32[3,2,2] 5 5 3 4 5 5 7 8 5 5 5 5"}, .no_grad_inputs = 2},
    {"around 0", ON "value=5", .in = {X, "f16[2] -0.5 0.5"},
     .out = {"f32[3,2,2] 5 5 5 5 5 5 5 5 5 5 5 5"}, .no_grad_inputs = 2},
    {"not a number", ON "value=5", .in = {X, "f32[2] nan inf"},
     .out = {"f32[3,2,2] 5 5 3 4 5 5 7 8 5 5 11 12"}, .flags = TN_CASE_NO_GRAD},
    {"large", ON, .in = {"f32[1,2] 1 2", "u64[2] 18446744073709551615 0"}, .out = {"f32[1,2] 1 0"},
     .no_grad_inputs = 2},
    {"bytes", ON "value=7", .in = {"u8[2,2] 1 2 3 4", "i32[2] 1 2"}, .out = {"u8[2,2] 1 2 7 4"},
     .flags = TN_CASE_NO_GRAD},
    {"gradient", ON "value=4", .in = {"f64[4,3,5] random", "i64[3] 2 0 4"}, .flags = TN_CASE_GRAD2,
     .no_grad_inputs = 2},
    {"gradient of lengths", ON "value=4 axis=1", .in = {"f64[2,3,2] random", "f64[2] 1.5 2.5"}},
    {"threads", ON "value=2", .in = {"f64[40,30,70] random", "i64[30] random"}, .no_grad_inputs = 2,
     .flags = TN_CASE_NO_GRAD},
    {"no steps", ON, .in = {"f32[0,2,3]", "f32[2] 1 1"}, .out = {"f32[0,2,3]"}, .flags = TN_CASE_NO_GRAD},
    {"no sequences", ON, .in = {"f32[2,0,3]", "f32[0]"}, .out = {"f32[2,0,3]"}, .flags = TN_CASE_NO_GRAD},
    {"nothing in a row", "", .in = {"f32[2,2,0]"}, .out = {"f32[2,2,0]"}, .flags = TN_CASE_NO_GRAD},
    {"rank 1", "", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"axis", "axis=2", .in = {X}, .status = TN_E_ATTR, .message = "axis"},
    {"negative axis", "axis=-1", .in = {X}, .status = TN_E_ATTR, .message = "axis"},
    {"lengths", ON, .in = {X, "f32[3] 1 1 1"}, .status = TN_E_SHAPE, .message = "sequence_length"},
    {"lengths of rank 2", ON, .in = {X, "f32[1,2] 1 1"}, .status = TN_E_SHAPE, .message = "sequence_length"},
    {"lengths, off", "", .in = {X, "f32[2] 1 1"}, .status = TN_E_ARG},
    {"no lengths", ON, .in = {X}, .status = TN_E_ARG},
};
TN_OP_TESTS(mask, "SequenceMask", mask_cases)

static const tn_op_case last_cases[] = {
    {"off", "", .in = {X}, .out = {"f32[2,2] 9 10 11 12"}},
    {"off, axis 1", "axis=1", .in = {Y}, .out = {"f64[3,2] 3 4 7 8 11 12"}},
    {"lengths", ON, .in = {X, "f32[2] 1 2"}, .out = {"f32[2,2] 1 2 7 8"}, .no_grad_inputs = 2},
    {"axis 1", ON "axis=1", .in = {Y, "i64[3] 1 2 1"}, .out = {"f64[3,2] 1 2 7 8 9 10"}, .no_grad_inputs = 2},
    {"fractions", ON, .in = {X, "f64[2] 1.9 2.5"}, .out = {"f32[2,2] 1 2 7 8"}, .no_grad_inputs = 2},
    {"rank 2", ON, .in = {"f32[2,3] 1 2 3 4 5 6", "i32[3] 1 2 2"}, .out = {"f32[3] 1 5 6"},
     .no_grad_inputs = 2},
    {"rank 5", ON "axis=1", .in = {"f64[2,3,2,1,2] range", "u8[2] 1 3"},
     .out = {"f64[2,2,1,2] 0 1 2 3 20 21 22 23"}, .no_grad_inputs = 2},
    {"outside", ON, .in = {X, "i64[2] 0 7"}, .out = {"f32[2,2] 1 2 11 12"}, .no_grad_inputs = 2},
    {"far outside", ON, .in = {X, "f32[2] -inf inf"}, .out = {"f32[2,2] 1 2 11 12"},
     .flags = TN_CASE_NO_GRAD},
    {"least", ON, .in = {X, "i64[2] -9223372036854775808 9223372036854775807"},
     .out = {"f32[2,2] 1 2 11 12"}, .no_grad_inputs = 2},
    {"bytes", ON, .in = {"u8[2,2] 1 2 3 4", "i32[2] 1 2"}, .out = {"u8[2] 1 4"}, .flags = TN_CASE_NO_GRAD},
    {"gradient", ON, .in = {"f64[4,3,5] random", "i64[3] 2 0 4"}, .flags = TN_CASE_GRAD2,
     .no_grad_inputs = 2},
    {"gradient, off", "axis=1", .in = {"f64[2,3,2] random"}, .flags = TN_CASE_GRAD2},
    {"gradient of lengths", ON "axis=1", .in = {"f64[2,3,2] random", "f64[2] 1.5 2.5"}},
    {"no steps", ON, .in = {"f32[0,2,3]", "f32[2] 1 1"}, .status = TN_E_SHAPE},
    {"no sequences", ON, .in = {"f32[2,0,3]", "f32[0]"}, .out = {"f32[0,3]"}, .flags = TN_CASE_NO_GRAD},
    {"nothing in a row", "", .in = {"f32[2,2,0]"}, .out = {"f32[2,0]"}, .flags = TN_CASE_NO_GRAD},
    {"rank 1", "", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"axis", "axis=2", .in = {X}, .status = TN_E_ATTR, .message = "axis"},
    {"lengths", ON, .in = {X, "f32[3] 1 1 1"}, .status = TN_E_SHAPE, .message = "sequence_length"},
    {"lengths, off", "", .in = {X, "f32[2] 1 1"}, .status = TN_E_ARG},
};
TN_OP_TESTS(last, "SequenceLast", last_cases)

/* dy counts from 1 as MXNet's did. */
static const tn_op_case last_back_cases[] = {
    {"lengths", ON, .in = {"f32[2,2] 1 2 3 4", X, "i32[2] 1 2"},
     .out = {"f32[3,2,2] 1 2 0 0 0 0 3 4 0 0 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"axis 1", ON "axis=1", .in = {"f64[3,2] 1 2 3 4 5 6", Y, "f32[3] 1 2 1"},
     .out = {"f64[3,2,2] 1 2 0 0 0 0 3 4 5 6 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"off", "", .in = {"f32[2,2] 1 2 3 4", X}, .out = {"f32[3,2,2] 0 0 0 0 0 0 0 0 1 2 3 4"},
     .flags = TN_CASE_NO_GRAD},
    {"outside", ON, .in = {"f32[2,2] 1 2 3 4", X, "i32[2] -1 9"},
     .out = {"f32[3,2,2] 1 2 0 0 0 0 0 0 0 0 3 4"}, .flags = TN_CASE_NO_GRAD},
    {"dy", "", .in = {"f32[3,2] range", X}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(last_back, "_backward_SequenceLast", last_back_cases)

static const tn_op_case reverse_cases[] = {
    {"off", "", .in = {X}, .out = {"f32[3,2,2] 9 10 11 12 5 6 7 8 1 2 3 4"}},
    {"lengths", ON, .in = {X, "f32[2] 1 2"}, .out = {"f32[3,2,2] 1 2 7 8 5 6 3 4 9 10 11 12"},
     .no_grad_inputs = 2},
    {"f64", ON, .in = {Y, "i32[2] 3 2"}, .out = {"f64[3,2,2] 9 10 7 8 5 6 3 4 1 2 11 12"},
     .no_grad_inputs = 2},
    {"0, fraction", ON, .in = {X, "f32[2] 0 2.9"}, .out = {"f32[3,2,2] 1 2 7 8 5 6 3 4 9 10 11 12"},
     .no_grad_inputs = 2},
    {"below", ON, .in = {X, "i8[2] -1 2"}, .out = {"f32[3,2,2] 1 2 7 8 5 6 3 4 9 10 11 12"},
     .no_grad_inputs = 2},
    {"above", ON, .in = {X, "u8[2] 255 2"}, .out = {"f32[3,2,2] 9 10 7 8 5 6 3 4 1 2 11 12"},
     .no_grad_inputs = 2},
    {"not a number", ON, .in = {X, "f16[2] nan inf"}, .out = {"f32[3,2,2] 1 2 11 12 5 6 7 8 9 10 3 4"},
     .flags = TN_CASE_NO_GRAD},
    {"rank 2", ON, .in = {"f32[2,3] 1 2 3 4 5 6", "i64[3] 1 2 2"}, .out = {"f32[2,3] 1 5 6 4 2 3"},
     .no_grad_inputs = 2},
    {"rank 5", "", .in = {"f64[2,1,2,1,2] range"}, .out = {"f64[2,1,2,1,2] 4 5 6 7 0 1 2 3"}},
    {"bytes", ON, .in = {"u8[2,2] 1 2 3 4", "i32[2] 1 2"}, .out = {"u8[2,2] 1 4 3 2"},
     .flags = TN_CASE_NO_GRAD},
    {"gradient", ON, .in = {"f64[4,3,5] random", "i64[3] 2 0 4"}, .flags = TN_CASE_GRAD2,
     .no_grad_inputs = 2},
    {"gradient of lengths", ON, .in = {"f64[3,2,2] random", "f64[2] 1.5 2.5"}},
    {"no steps", ON, .in = {"f32[0,2,3]", "f32[2] 1 1"}, .out = {"f32[0,2,3]"}, .flags = TN_CASE_NO_GRAD},
    {"no sequences", ON, .in = {"f32[2,0,3]", "f32[0]"}, .out = {"f32[2,0,3]"}, .flags = TN_CASE_NO_GRAD},
    {"rank 1", "", .in = {"f32[3] 1 2 3"}, .status = TN_E_SHAPE},
    {"axis", "axis=1", .in = {X}, .status = TN_E_ATTR, .message = "axis"},
    {"lengths", ON, .in = {X, "f32[3] 1 1 1"}, .status = TN_E_SHAPE, .message = "sequence_length"},
};
TN_OP_TESTS(reverse, "SequenceReverse", reverse_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(mask), TN_OP_TEST(last), TN_OP_TEST(last_back),
                                       TN_OP_TEST(reverse)};

    return tn_op_main(tests);
}
