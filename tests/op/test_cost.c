/* What definitions say of the cost of a run: products, operations, bytes; by themselves, by their meaning, of
 * backward operators that follow from rules, and where a size is beyond any number. */
#include <string.h>

#include "support/op_case.h"
#include "support/op_run.h"

#define UNKNOWN TN_COST_UNKNOWN

typedef struct shape_text {
    int32_t ndim;
    int64_t dim[4];
} shape_text;

typedef struct cost_case {
    const char *op, *attrs[7]; /* pairs of name and text */
    uint32_t in_count;
    shape_text in[5];
    uint64_t macs, flops, bytes; /* float32 */
} cost_case;

static const cost_case cases[] = {
    {"exp", {NULL}, 1, {{2, {3, 5}}}, 0, 15, 120},
    {"_npi_exp", {NULL}, 1, {{2, {3, 5}}}, 0, 15, 120},
    {"broadcast_add", {NULL}, 2, {{2, {3, 1}}, {2, {1, 5}}}, 0, 15, 4 * (3 + 5 + 15)},
    {"_npi_add", {NULL}, 2, {{2, {3, 1}}, {2, {1, 5}}}, 0, 15, 4 * (3 + 5 + 15)},
    {"_plus_scalar", {"scalar", "2"}, 1, {{1, {7}}}, 0, 7, 56},
    {"sum", {"axis", "1"}, 1, {{2, {3, 5}}}, 0, 15, 4 * (15 + 3)},
    {"softmax", {NULL}, 1, {{2, {3, 5}}}, 0, 60, 120},
    {"Reshape", {"shape", "(-1,)"}, 1, {{2, {3, 5}}}, 0, 0, 0},
    {"transpose", {NULL}, 1, {{2, {3, 5}}}, 0, UNKNOWN, 120},
    {"FullyConnected",
     {"num_hidden", "4", "no_bias", "1"},
     2,
     {{2, {2, 3}}, {2, {4, 3}}},
     24,
     48,
     4 * (6 + 12 + 8)},
    {"_backward_FullyConnected",
     {"num_hidden", "4", "no_bias", "1"},
     3,
     {{2, {2, 4}}, {2, {2, 3}}, {2, {4, 3}}},
     48,
     96,
     4 * (8 + 6 + 12 + 6 + 12)},
    {"Convolution",
     {"kernel", "(3,3)", "num_filter", "8", "num_group", "2"},
     3,
     {{4, {1, 4, 5, 5}}, {4, {8, 2, 3, 3}}, {1, {8}}},
     1296,
     2592,
     4 * (100 + 144 + 8 + 72)},
    {"Pooling", {"kernel", "(2,2)", "stride", "(2,2)"}, 1, {{4, {1, 1, 4, 4}}}, 0, 16, 80},
    {"Pooling", {"global_pool", "1"}, 1, {{4, {1, 1, 4, 4}}}, 0, 16, 68},
    {"dot", {NULL}, 2, {{2, {2, 3}}, {2, {3, 4}}}, 24, 48, 4 * (6 + 12 + 8)},
    {"dot", {"transpose_a", "1"}, 2, {{2, {3, 2}}, {2, {3, 4}}}, 24, 48, 4 * (6 + 12 + 8)},
    {"dot", {NULL}, 2, {{2, {2, 0}}, {2, {0, 4}}}, 0, 0, 32},
    {"batch_dot", {"transpose_a", "1"}, 2, {{3, {5, 3, 2}}, {3, {5, 3, 4}}}, 120, 240, 4 * (30 + 60 + 40)},
    {"_backward_dot", {NULL}, 3, {{2, {2, 4}}, {2, {2, 3}}, {2, {3, 4}}}, 48, 96, 4 * (8 + 6 + 12 + 6 + 12)},
    {"broadcast_add",
     {NULL},
     2,
     {{2, {1, INT64_C(1) << 29}}, {2, {INT64_C(1) << 29, 1}}},
     0,
     UINT64_C(1) << 58,
     4 * (((uint64_t)1 << 58) + ((uint64_t)2 << 29))},
    {"dot",
     {NULL},
     2,
     {{2, {INT64_C(1) << 30, INT64_C(1) << 28}}, {2, {INT64_C(1) << 28, INT64_C(1) << 29}}},
     UNKNOWN,
     UNKNOWN,
     4 * (((uint64_t)1 << 58) + ((uint64_t)1 << 57) + ((uint64_t)1 << 59))},
};

static void costs(void **state)
{
    tni_opset *ops;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const cost_case *c = &cases[k];
        const char *names[3], *texts[3];
        tn_shape in[5] = {{0}}, out[5], *in_at[5], *out_at[5];
        int32_t in_dtype[5], out_dtype[5];
        const tni_opdef *def;
        tni_attrs *attrs;
        tni_args args;
        size_t count = 0;
        tn_cost cost;

        print_message("%s\n", c->op);
        for (; count < 3 && c->attrs[2 * count]; count++) {
            names[count] = c->attrs[2 * count];
            texts[count] = c->attrs[2 * count + 1];
        }
        assert_int_equal(tni_opset_find(ops, c->op, &def), TN_OK);
        assert_int_equal(tni_attrs_parse(def, count, names, texts, &attrs), TN_OK);
        assert_int_equal(tni_op_args(def, attrs, c->in_count, &args), TN_OK);
        assert_true(args.in_count == c->in_count && args.out_count <= 5);
        for (uint32_t i = 0; i < 5; i++) {
            in[i].ndim = c->in[i].ndim;
            memcpy(in[i].dim, c->in[i].dim, sizeof c->in[i].dim);
            out[i].ndim = TN_NDIM_UNKNOWN;
            in_dtype[i] = TN_F32;
            out_dtype[i] = -1;
            in_at[i] = &in[i];
            out_at[i] = &out[i];
        }
        assert_int_equal(op_infer(def, attrs, &args, 0, in, out, in_dtype, out_dtype), TN_OK);
        tni_op_cost(def, attrs, &args, in_at, out_at, in_dtype, out_dtype, &cost);
        assert_int_equal(cost.macs, c->macs);
        assert_int_equal(cost.flops, c->flops);
        assert_int_equal(cost.bytes, c->bytes);
        tni_attrs_release(attrs);
    }
    tni_opset_destroy(ops);
}

static void times(void **state)
{
    (void)state;
    assert_int_equal(tn_cost_times(0, UNKNOWN), 0);
    assert_int_equal(tn_cost_times(UNKNOWN, 1), UNKNOWN);
    assert_int_equal(tn_cost_times(1, UNKNOWN), UNKNOWN);
    assert_int_equal(tn_cost_times(UINT64_C(1) << 32, UINT64_C(1) << 32), UNKNOWN);
    assert_int_equal(tn_cost_times(UNKNOWN - 1, 1), UNKNOWN - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(costs), cmocka_unit_test(times)};

    return tn_op_main(tests);
}
