/*
 * Family choice: shapes, certain outcomes, gradients and what is refused; how often what is drawn is
 * tests/api/test_distributions.c's.
 */
#include "support/op_case.h"

static const tn_op_case multinomial_cases[] = {
    {"certain", "", .in = {"f32[3,3] 0 1 0 1 0 0 0 0 2"}, .out = {"i32[3] 1 0 2"}, .flags = TN_CASE_NO_GRAD},
    {"with logarithms", "get_prob=1 shape=2 dtype=float16", .in = {"f64[2,2] 0.5 0 0 0.25"},
     .out = {"f16[2,2] 0 0 1 1",
             "f64[2,2] -0.6931471805599453 -0.6931471805599453 -1.3862943611198906 -1.3862943611198906"},
     .flags = TN_CASE_NO_GRAD},
    {"gradient", "get_prob=1 shape=(5,2)", .in = {"f64[3,4] random:0.1:1"}},
    {"one row", "", .in = {"f32[2] 0 1"}, .out = {"i32[1] 1"}, .flags = TN_CASE_NO_GRAD},
    {"one row of NumPy's", "", .in = {"f32[2] 0 1"}, .out = {"i32[] 1"},
     .flags = TN_CASE_NO_GRAD | TN_CASE_NP_SHAPE},
    {"one row, several", "shape=(2,2)", .in = {"f32[2] 0 1"}, .out = {"i32[2,2] 1 1 1 1"},
     .flags = TN_CASE_NO_GRAD},
    {"gradient of one", "get_prob=1", .in = {"f64[4] random:0.1:1"}},
    {"many", "shape=700", .in = {"bf16[101,7] random:0.1:1"}, .flags = TN_CASE_NO_GRAD},
    {"no row", "", .in = {"f32[0,3]"}, .out = {"i32[0]"}, .flags = TN_CASE_NO_GRAD},
    {"no draw", "shape=0 get_prob=1", .in = {"f64[2,3] random:0.1:1"}, .out = {"i32[2,0]", "f64[2,0]"},
     .grad = {"f64[2,3] 0 0 0 0 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"nothing to draw", "", .in = {"f32[2,0]"}, .status = TN_E_SHAPE, .message = "nothing to draw"},
    {"bytes", "dtype=uint8 shape=300", .in = {"f32[256] fill:1"}, .flags = TN_CASE_NO_GRAD},
    {"no dimension", "", .in = {"f32[] 1"}, .flags = TN_CASE_NP_SHAPE, .status = TN_E_SHAPE},
    {"integers", "", .in = {"i32[2] 0 1"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(multinomial, "_sample_multinomial", multinomial_cases)

static const tn_op_case counts_cases[] = {
    {"certain", "n=5 pvals=(0,1,0)", .out = {"i64[3] 0 5 0"}, .flags = TN_CASE_NO_GRAD},
    {"what is left", "n=5 pvals=(0,0)", .out = {"i64[2] 0 5"}, .flags = TN_CASE_NO_GRAD},
    {"input", "n=3 size=(2,2)", .in = {"f32[2] 1 0"}, .out = {"i64[2,2,2] 3 0 3 0 3 0 3 0"},
     .flags = TN_CASE_NO_GRAD},
    {"tenths", "n=3 size=70", .in = {"f32[10] fill:0.1"}, .flags = TN_CASE_NO_GRAD},
    {"very many", "n=2147483647 size=3 pvals=(1e-9,0.25,0.5,0.2)", .flags = TN_CASE_NO_GRAD},
    {"no experiment", "n=0 size=2", .in = {"f32[2] 1 0"}, .out = {"i64[2,2] 0 0 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"no outcome", "n=3 size=2", .in = {"f32[0]"}, .out = {"i64[2,0]"}, .flags = TN_CASE_NO_GRAD},
    {"matrix", "n=3", .in = {"f32[1,2] 1 0"}, .status = TN_E_SHAPE},
    {"negative", "n=-1", .in = {"f32[2] 1 0"}, .status = TN_E_ATTR},
    {"dimensions", "n=1 size=(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)",
     .in = {"f32[2] 1 0"}, .status = TN_E_SHAPE},
};
TN_OP_TESTS(counts, "_npi_multinomial", counts_cases)

static const tn_op_case choice_cases[] = {
    {"one", "a=1 size=(2,2)", .out = {"i64[2,2] 0 0 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"many", "a=100 size=70000", .flags = TN_CASE_NO_GRAD},
    {"of an input", "a=None size=None", .in = {"f32[1] 7"}, .out = {"i64[1] 0"}, .flags = TN_CASE_NO_GRAD},
    {"without size", "a=1 size=None", .out = {"i64[] 0"}, .flags = TN_CASE_NO_GRAD | TN_CASE_NP_SHAPE},
    {"weighted", "a=3 size=2 weighted=1", .in = {"f32[3] 0 0 4"}, .out = {"i64[2] 2 2"},
     .flags = TN_CASE_NO_GRAD},
    {"of an input, weighted", "a=None size=2 weighted=1", .in = {"i32[3] 7 8 9", "f16[3] 0 1 0"},
     .out = {"i64[2] 1 1"}, .flags = TN_CASE_NO_GRAD},
    {"all", "a=300 size=300 replace=0", .flags = TN_CASE_NO_GRAD},
    {"all of one", "a=None size=1 replace=0 weighted=1", .in = {"f32[3] 1 2 3", "f32[3] 0 1 0"},
     .out = {"i64[1] 1"}, .flags = TN_CASE_NO_GRAD},
    {"a few of very many", "a=9000000000000000 size=30 replace=0", .flags = TN_CASE_NO_GRAD},
    {"many weighted", "a=None size=200 replace=0 weighted=1",
     .in = {"f32[300] range", "f64[300] random:0.1:1"}, .flags = TN_CASE_NO_GRAD},
    {"nothing of nothing", "a=0 size=0", .out = {"i64[0]"}, .flags = TN_CASE_NO_GRAD},
    {"of nothing", "a=0 size=1", .status = TN_E_SHAPE, .message = "1 of 0"},
    {"too many", "a=3 size=4 replace=0", .status = TN_E_SHAPE, .message = "4 of 3"},
    {"weights", "a=3 size=2 weighted=1", .in = {"f32[2] 1 1"}, .status = TN_E_SHAPE,
     .message = "2 probabilities"},
    {"missing", "size=2", .status = TN_E_ATTR, .message = "a"},
    {"negative", "a=-1 size=2", .status = TN_E_ATTR},
};
TN_OP_TESTS(choice, "_npi_choice", choice_cases)

static const tn_op_case zipfian_cases[] = {
    {"one", "range_max=1 shape=(3,1)", .out = {"i64[3,1] 0 0 0", "i64[3] 1 1 1"}, .flags = TN_CASE_NO_GRAD},
    {"many", "range_max=100000 shape=(5,300)", .flags = TN_CASE_NO_GRAD},
    {"all", "range_max=200 shape=(2,200)", .flags = TN_CASE_NO_GRAD},
    {"largest", "range_max=2147483647 shape=(2,3)", .flags = TN_CASE_NO_GRAD},
    {"none", "range_max=3 shape=(2,0)", .out = {"i64[2,0]", "i64[2] 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"no row", "range_max=3 shape=(0,2)", .out = {"i64[0,2]", "i64[0]"}, .flags = TN_CASE_NO_GRAD},
    {"too many", "range_max=3 shape=(2,4)", .status = TN_E_SHAPE, .message = "4 different classes of 3"},
    {"rows", "range_max=3 shape=(16777217,1)", .status = TN_E_SHAPE, .message = "rows"},
    {"vector", "range_max=3 shape=(2,)", .status = TN_E_SHAPE},
    {"no class", "range_max=0 shape=(2,1)", .status = TN_E_ATTR},
};
TN_OP_TESTS(zipfian, "_sample_unique_zipfian", zipfian_cases)

static const tn_op_case shuffle_cases[] = {
    {"equal rows", "", .in = {"f32[3,2] 1 2 1 2 1 2"}, .out = {"f32[3,2] 1 2 1 2 1 2"},
     .flags = TN_CASE_NO_GRAD},
    {"many", "", .in = {"i64[7001,3] random"}, .flags = TN_CASE_NO_GRAD},
    {"flags", "", .in = {"bool[70] random"}, .flags = TN_CASE_NO_GRAD},
    {"number", "", .in = {"f16[] 3"}, .out = {"f16[] 3"}, .flags = TN_CASE_NO_GRAD | TN_CASE_NP_SHAPE},
    {"no row", "", .in = {"f32[0,2]"}, .out = {"f32[0,2]"}, .flags = TN_CASE_NO_GRAD},
    {"empty rows", "", .in = {"f32[3,0]"}, .out = {"f32[3,0]"}, .flags = TN_CASE_NO_GRAD},
};
TN_OP_TESTS(shuffle, "_shuffle", shuffle_cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(multinomial), TN_OP_TEST(counts), TN_OP_TEST(choice),
                                       TN_OP_TEST(zipfian), TN_OP_TEST(shuffle)};

    return tn_op_main(tests);
}
