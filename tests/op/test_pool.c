/* Family pool: values from a plain loop over each window (in Python, inputs counting up from 0), gradients by
 * differences. */
#include "support/op_case.h"

static const tn_op_case cases[] = {
    {"max", "kernel=(2,2) stride=(2,2)", .in = {"f32[1,1,4,5] range"}, .out = {"f32[1,1,2,2] 6 8 16 18"}},
    {"max full", "kernel=(2,2) stride=(2,2) pooling_convention=full", .in = {"f32[1,1,4,5] range"},
     .out = {"f32[1,1,2,3] 6 8 9 16 18 19"}},
    {"avg", "kernel=(3,3) stride=(2,2) pad=(1,1) pool_type=avg", .in = {"f32[1,1,4,5] range"},
     .out = {"f32[1,1,2,3] 1.33333333 3 2.66666667 7 12 9"}},
    {"avg inside", "kernel=(3,3) stride=(2,2) pad=(1,1) pool_type=avg count_include_pad=False",
     .in = {"f32[1,1,4,5] range"}, .out = {"f32[1,1,2,3] 3 4.5 6 10.5 12 13.5"}},
    {"avg full", "kernel=(2,3) stride=(3,2) pad=(0,1) pool_type=avg pooling_convention=full",
     .in = {"f32[1,1,4,5] range"}, .out = {"f32[1,1,2,3] 2 4.5 4 10.3333333 17 12.3333333"}},
    {"sum same", "kernel=(2,2) stride=(2,2) pool_type=sum pooling_convention=same",
     .in = {"f32[1,1,4,5] range"}, .out = {"f32[1,1,2,3] 12 20 13 52 60 33"}},
    {"lp", "kernel=(2,2) stride=(1,2) pool_type=lp p_value=2", .in = {"f32[1,1,4,5] range"},
     .out = {"f32[1,1,3,2] 7.87400787 11.2249722 16.7928556 20.6397674 26.4952826 30.4302481"}},
    {"global", "global_pool=True pool_type=avg", .in = {"f64[1,2,2,2] range"},
     .out = {"f64[1,2,1,1] 1.5 5.5"}},
    {"global max last", "global_pool=True layout=NWC", .in = {"f64[1,3,2] 1 9 5 2 3 4"},
     .out = {"f64[1,1,2] 5 9"}},
    {"nan", "kernel=(2,2) stride=(2,2)", .in = {"f32[1,1,2,2] 1 nan 3 2"}, .out = {"f32[1,1,1,1] nan"},
     .flags = TN_CASE_NO_GRAD},
    {"nan by rows", "kernel=(3,1)", .in = {"f32[1,1,3,2] 1 2 nan 1 3 5"}, .out = {"f32[1,1,1,2] nan 5"},
     .flags = TN_CASE_NO_GRAD},
    {"infinite", "kernel=(2,2)", .in = {"f32[1,1,2,2] -inf -inf -inf -inf"},
     .out = {"f32[1,1,1,1] -3.4028234663852886e38"}, .flags = TN_CASE_NO_GRAD},
    {"equal", "kernel=(2,2) stride=(2,2)", .in = {"f64[1,1,2,2] 3 3 3 3"}, .grad = {"f64[1,1,2,2] 1 0 0 0"},
     .flags = TN_CASE_NO_GRAD},
    {"equal, odd", "kernel=(2,2) stride=(1,1)", .in = {"f64[1,1,2,3] 3 3 3 3 3 3"},
     .grad = {"f64[1,1,2,3] 1 1 0 0 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"batch 2x2", "kernel=(2,2) stride=(2,2)", .in = {"f64[3,4,7,6] random"}, .flags = TN_CASE_GRAD2},
    {"overlap", "kernel=(3,2) stride=(2,1) pad=(1,1)", .in = {"f64[2,3,5,6] random"}, .flags = TN_CASE_GRAD2},
    {"overlap last", "kernel=(3,2) stride=(2,1) pad=(1,1) layout=NHWC", .in = {"f64[2,5,6,3] random"},
     .flags = TN_CASE_GRAD2},
    {"avg last", "kernel=(3,2) stride=(2,2) pad=(1,0) layout=NHWC pool_type=avg",
     .in = {"f64[2,5,6,3] random"}, .flags = TN_CASE_GRAD2},
    {"sum three", "kernel=(2,2,3) stride=(1,2,1) pool_type=sum", .in = {"f64[1,2,3,4,5] random"},
     .flags = TN_CASE_GRAD2},
    {"avg three last", "kernel=(2,2,2) pool_type=avg layout=NDHWC", .in = {"f64[1,3,3,3,2] random"},
     .flags = TN_CASE_GRAD2},
    {"max one", "kernel=3 stride=2 pad=1", .in = {"f64[2,2,9] random"}, .flags = TN_CASE_GRAD2},
    {"lp 3", "kernel=(2,2) pool_type=lp p_value=3", .in = {"f64[1,2,3,4] random:0.5:2"}},
    {"lp 1", "kernel=(2,2) pool_type=lp p_value=1", .in = {"f64[1,2,3,4] random:0.5:2"}},
    {"many", "kernel=(3,3) stride=(2,2)", .in = {"f32[4,16,33,35] random"}, .flags = TN_CASE_NO_GRAD},
    {"no image", "kernel=(2,2)", .in = {"f32[0,1,4,4]"}, .out = {"f32[0,1,3,3]"}, .flags = TN_CASE_NO_GRAD},
    {"nothing, very often", "global_pool=True pool_type=sum", .in = {"f32[1,2,4398046511104,0]"},
     .out = {"f32[1,2,1,1] 0 0"}, .flags = TN_CASE_NO_GRAD},
    {"nothing, very wide", "global_pool=True", .in = {"f32[1,1,0,4398046511104]"},
     .out = {"f32[1,1,1,1] -3.4028234663852886e38"}, .flags = TN_CASE_NO_GRAD},
    {"no kernel", "", .in = {"f32[1,1,4,4] range"}, .status = TN_E_ATTR},
    {"large", "kernel=(5,5)", .in = {"f32[1,1,4,4] range"}, .status = TN_E_SHAPE},
    {"pad", "kernel=(2,2) pad=(2,2)", .in = {"f32[1,1,4,4] range"}, .status = TN_E_ATTR, .message = "pad"},
    {"p", "kernel=(2,2) pool_type=lp", .in = {"f32[1,1,4,4] range"}, .status = TN_E_ATTR,
     .message = "p_value"},
    {"type", "kernel=(2,2) pool_type=min", .in = {"f32[1,1,4,4] range"}, .status = TN_E_ATTR},
    {"layout", "kernel=(2,2) layout=NCW", .in = {"f32[1,1,4,4] range"}, .status = TN_E_SHAPE},
    {"matrix", "global_pool=1", .in = {"f32[4,4] range"}, .status = TN_E_SHAPE},
    {"integers", "kernel=(2,2)", .in = {"i32[1,1,4,4] range"}, .status = TN_E_DTYPE},
};
TN_OP_TESTS(pooling, "Pooling", cases)

int main(void)
{
    const struct CMUnitTest tests[] = {TN_OP_TEST(pooling)};

    return tn_op_main(tests);
}
