/*
 * Kernels that ask for private layouts: what a node gives with its inputs and outputs in the layouts that its
 * plan names, brought there and back by the plugin's own `_reorder`, is what the plain kernels give on rows.
 * Memory is full of numbers that are none before every run. Fused layers are compared with the layer's plain
 * kernel and what follows it, done here.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/layout_job.h"

static double relu(double x)
{
    return x > 0 ? x : 0;
}

static double clipped(double x)
{
    return x < -0.25 ? -0.25 : x > 0.5 ? 0.5 : x;
}

static double leaky(double x)
{
    return x > 0 ? x : 0.1 * x;
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double softrelu(double x)
{
    return log1p(exp(x));
}

#define BLOCKS "f32[2,32,9,7] random"
#define ODD "f32[2,24,9,7] random"
#define STATS "f32[32] random", "f32[32] random", "f32[32] random", "f32[32] random:0.5:2"
#define KERNEL3 "kernel=(3,3) pad=(1,1) num_filter=32 "
#define FROM32 "kernel=(3,3) pad=(1,1) num_filter=32 no_bias=1"
#define FROM24 "kernel=(1,1) num_filter=24 no_bias=1"
#define WEIGHT3 "f32[32,32,3,3] random"

static const layout_case cases[] = {
    {"Convolution", KERNEL3, .in = {BLOCKS, WEIGHT3, "f32[32] random"}},
    {"Convolution", "kernel=(1,1) num_filter=64 no_bias=1", .in = {BLOCKS, "f32[64,32,1,1] random"}, FROM32},
    {"Convolution", "kernel=(7,7) stride=(2,2) pad=(3,3) num_filter=64 no_bias=1",
     .in = {"f32[1,3,33,31] random", "f32[64,3,7,7] random"}},
    {"Convolution", "kernel=(3,3) num_filter=20", .in = {ODD, "f32[20,24,3,3] random", "f32[20] random"},
     FROM24},
    {"Convolution", KERNEL3 "num_group=32 no_bias=1", .in = {BLOCKS, "f32[32,1,3,3] random"}, FROM32},
    {"Convolution", "kernel=(3,3) num_filter=24 num_group=24",
     .in = {ODD, "f32[24,1,3,3] random", "f32[24] random"}},
    {"Convolution", "kernel=(3,3) num_filter=64 num_group=2",
     .in = {BLOCKS, "f32[64,16,3,3] random", "f32[64] random"}},
    {"Convolution", "kernel=(5,) num_filter=16 no_bias=1",
     .in = {"f32[2,16,40] random", "f32[16,16,5] random"}},
    {"Convolution", "kernel=(2,3,2) num_filter=16 no_bias=1 dilate=(1,2,1)",
     .in = {"f32[1,16,6,9,7] random", "f32[16,16,2,3,2] random"}},
    {"Convolution", "kernel=(3,3) num_filter=16 no_bias=1 layout=NHWC",
     .in = {"f32[2,9,7,16] random", "f32[16,3,3,16] random"}},
    {"Convolution", KERNEL3 "no_bias=1", .in = {"f32[2,32,56,56] random", WEIGHT3}, FROM32},
    {"_backward_Convolution", KERNEL3, .in = {BLOCKS, BLOCKS, WEIGHT3}},
    {"Convolution", KERNEL3, .in = {"f32[1,32,17,15] random", WEIGHT3, "f32[32] random"},
     FROM32}, /* Winograd */
    {"_backward_Convolution", KERNEL3 "no_bias=1", .in = {BLOCKS, BLOCKS, WEIGHT3}, FROM32},
    {"_backward_Convolution", "kernel=(3,3) stride=(2,2) num_filter=20 no_bias=1",
     .in = {"f32[2,20,4,3] random", ODD, "f32[20,24,3,3] random"}},
    {"_backward_Convolution", KERNEL3 "num_group=32", .in = {BLOCKS, BLOCKS, "f32[32,1,3,3] random"}},
    /* With AVX2 the data's gradient reads dy as rows, by matrix products, and the weight's in blocks. */
    {"_backward_Convolution", "kernel=(7,7) stride=(2,2) pad=(3,3) num_filter=64 no_bias=1",
     .in = {"f32[2,64,16,15] random", "f32[2,3,32,30] random", "f32[64,3,7,7] random"}},
    /* From 256 output pixels on, the halves of an even batch are summed apart. */
    {"_backward_Convolution", KERNEL3, .in = {"f32[2,32,17,15] random", "f32[2,32,17,15] random", WEIGHT3},
     FROM32},
    {"_backward_Convolution", KERNEL3 "no_bias=1",
     .in = {"f32[4,32,9,15] random", "f32[4,32,9,15] random", WEIGHT3}},
    {"_backward_Convolution", "kernel=(1,1) num_filter=20",
     .in = {"f32[2,20,13,13] random", "f32[2,24,13,13] random", "f32[20,24,1,1] random"}},
    {"_backward_Convolution", KERNEL3 "num_group=32 no_bias=1",
     .in = {"f32[2,32,16,16] random", "f32[2,32,16,16] random", "f32[32,1,3,3] random"}},
    {"_backward_Convolution", "kernel=(3,3) num_filter=16 layout=NHWC",
     .in = {"f32[2,14,14,16] random", "f32[2,16,16,16] random", "f32[16,3,3,16] random"}},
    {"FullyConnected", "num_hidden=40", .in = {"f32[5,70] random", "f32[40,70] random", "f32[40] random"}},
    {"FullyConnected", "num_hidden=400 no_bias=1", .in = {"f32[1,700] random", "f32[400,700] random"}},
    {"_backward_FullyConnected", "num_hidden=40",
     .in = {"f32[5,40] random", "f32[5,70] random", "f32[40,70] random"}},
    {"Pooling", "kernel=(3,3) stride=(2,2) pad=(1,1)", .in = {BLOCKS}, FROM32},
    {"Pooling", "kernel=(2,2) stride=(2,2) pooling_convention=full", .in = {BLOCKS}, FROM32},
    {"Pooling", "kernel=(3,3) pool_type=avg pad=(1,1)", .in = {BLOCKS}, FROM32},
    {"Pooling", "kernel=(3,3) pool_type=avg pad=(1,1) count_include_pad=0", .in = {BLOCKS}, FROM32},
    {"Pooling", "kernel=(1,1) pool_type=avg global_pool=1", .in = {BLOCKS}, FROM32},
    {"Pooling", "kernel=(3,3)", .in = {ODD}, FROM24},
    {"Pooling", "kernel=(3,3) pool_type=avg", .in = {BLOCKS}},
    {"_backward_Pooling", "kernel=(3,3) stride=(2,2) pad=(1,1)", .in = {"f32[2,32,5,4] random", BLOCKS},
     FROM32},
    {"_backward_Pooling", "kernel=(3,3) pool_type=avg", .in = {"f32[2,32,7,5] random", BLOCKS}, FROM32},
    {"BatchNorm", "fix_gamma=0", .in = {BLOCKS, STATS}, FROM32},
    {"BatchNorm", "", .in = {BLOCKS, STATS}, FROM32, .train = true},
    {"BatchNorm", "fix_gamma=0 axis=-1", .in = {"f32[2,9,7,32] random", STATS}, .train = true},
    {"_backward_BatchNorm", "fix_gamma=0",
     .in = {BLOCKS, BLOCKS, "f32[32] random", "f32[32] random", "f32[32] random:0.5:2"}, .train = true},
    {"Concat", "num_args=2 dim=1", .in = {BLOCKS, "f32[2,16,9,7] random"}, FROM32},
    {"Concat", "num_args=3 dim=1", .in = {BLOCKS, BLOCKS, "f32[2,3,9,7] random"}, FROM32},
    {"Concat", "num_args=2 dim=1", .in = {ODD, ODD}, FROM24},
    {"Concat", "num_args=2 dim=0", .in = {BLOCKS, BLOCKS}, FROM32},
    {"_fused_conv", KERNEL3 "act_type=relu", .in = {BLOCKS, WEIGHT3, "f32[32] random"}, FROM32, "Convolution",
     relu},
    {"_fused_conv", KERNEL3 "act_type=relu", .in = {"f32[1,32,17,15] random", WEIGHT3, "f32[32] random"},
     FROM32, "Convolution", relu}, /* Winograd */
    {"_fused_conv", KERNEL3 "no_bias=1 with_sum=1",
     .in = {"f32[1,32,17,15] random", WEIGHT3, "f32[1,32,17,15] random"}, FROM32, "Convolution", NULL, true},
    {"_fused_conv", KERNEL3 "act_type=relu with_sum=1", .in = {BLOCKS, WEIGHT3, "f32[32] random", BLOCKS},
     FROM32, "Convolution", relu, true},
    {"_fused_conv", KERNEL3 "with_sum=1 no_bias=1", .in = {BLOCKS, WEIGHT3, BLOCKS}, NULL, "Convolution",
     NULL, true},
    {"_fused_conv", "kernel=(1,1) num_filter=24 no_bias=1 act_type=clip a_min=-0.25 a_max=0.5 with_sum=1",
     .in = {ODD, "f32[24,24,1,1] random", ODD}, FROM24, "Convolution", clipped, true},
    {"_fused_conv", "kernel=(3,3) pad=(1,1) num_filter=24 num_group=24 act_type=leaky slope=0.1",
     .in = {ODD, "f32[24,1,3,3] random", "f32[24] random"}, FROM24, "Convolution", leaky},
    {"_fused_conv", KERNEL3 "act_type=sigmoid", .in = {BLOCKS, WEIGHT3, "f32[32] random"}, NULL,
     "Convolution", sigmoid},
    {"_fused_conv", "kernel=(3,3) num_filter=16 no_bias=1 layout=NHWC act_type=tanh with_sum=1",
     .in = {"f32[2,9,7,16] random", "f32[16,3,3,16] random", "f32[2,7,5,16] random"}, NULL, "Convolution",
     tanh, true},
    {"_fused_dense", "num_hidden=40 act_type=relu with_sum=1",
     .in = {"f32[5,70] random", "f32[40,70] random", "f32[40] random", "f32[5,40] random"}, NULL,
     "FullyConnected", relu, true},
    {"_fused_dense", "num_hidden=40 act_type=softrelu no_bias=1",
     .in = {"f32[5,70] random", "f32[40,70] random"}, NULL, "FullyConnected", softrelu},
};

/* ---- one case ------------------------------------------------------------------------------------------ */

static uint32_t case_run(const layout_case *c, uint32_t planned, uint32_t threads, uint32_t flags)
{
    const layout_run r = {planned, threads, flags, TOLERANCE};
    layout_job expected;
    uint32_t failures;

    layout_expected(c, &expected);
    failures = layout_kernel_run(c, ONEDNN, &r, &expected, NULL);
    layout_job_free(&expected);
    return failures;
}

static void onednn_or_skip(void)
{
    op_kernel found;

    if (!layout_kernel_of("_reorder", ONEDNN, &found)) {
        print_message("skipped: cpu-onednn was not built\n");
        skip();
    }
}

/* What of the plugin needs AVX-512: the kernels of Pooling, and those of convolutions called brgconv. */
static bool has_avx512(void)
{
    return tni_isa_present("x86-64-v4");
}

static bool case_fits(const layout_case *c)
{
    return has_avx512() || (strcmp(c->op, "Pooling") != 0 && strcmp(c->op, "_backward_Pooling") != 0);
}

static void layouts(void **state)
{
    uint32_t failures = 0, ran = 0;

    (void)state;
    onednn_or_skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (!case_fits(&cases[i]))
            continue;
        ran++;
        failures += case_run(&cases[i], 1, 1, 0);
        failures += case_run(&cases[i], THREADS, THREADS, 0);
        failures += case_run(&cases[i], THREADS, 1, 0);
        failures += case_run(&cases[i], 1, 1, TN_NODE_CONSTANT_WEIGHT);
        failures += case_run(&cases[i], THREADS, 1, TN_NODE_CONSTANT_WEIGHT);
    }
    assert_int_equal(failures, 0);
    assert_true(layout_declined || layout_asked > 5 * ran); /* on the average one for each run */
    print_message("%u of %zu cases: the others need AVX-512\n", ran, sizeof cases / sizeof *cases);
}

/* A layout of somebody else is declined by _reorder, and layers ask for what they want in its place. */
static void foreign(void **state)
{
    static const uint64_t bytes = 7;
    static const tn_layout other = {sizeof other, 0, "acme", &bytes, sizeof bytes, 4 * 2 * 32 * 9 * 7};
    static const layout_case conv = {"Convolution", KERNEL3, .in = {BLOCKS, WEIGHT3, "f32[32] random"}};
    static const layout_case reorder = {"_reorder", "", .in = {BLOCKS}};
    layout_job j;

    (void)state;
    onednn_or_skip();
    layout_job_open(&j, &reorder, "_reorder", ONEDNN);
    j.flags |= TN_NODE_LAYOUTS;
    j.in[0].t.layout = &other;
    assert_int_equal(layout_job_prepare(&j, 1), TN_E_UNSUPPORTED);
    j.in[0].t.layout = NULL;
    j.out[0].t.layout = &other;
    assert_int_equal(layout_job_prepare(&j, 1), TN_E_UNSUPPORTED);
    layout_job_free(&j);
    layout_job_open(&j, &conv, "Convolution", ONEDNN);
    j.flags |= TN_NODE_LAYOUTS;
    j.in[0].t.layout = &other;
    layout_must(layout_job_prepare(&j, 1), "a foreign layout");
    assert_false(layouts_equal(j.in_layout[0], &other));
    layout_job_free(&j);
}

/* ---- kernels that measure ------------------------------------------------------------------------------ */

#define SCRATCH_MAX 64
#define BLOB_WAY 1 /* byte of cpu-onednn's blob; behind it stands the library's version */

typedef struct measuring {
    void *blocks[SCRATCH_MAX];
    uint32_t count; /* of the blocks that were asked for */
    unsigned char blob[64];
    uint64_t bytes; /* 0: none was left */
} measuring;

static void *scratch_take(void *arg, uint64_t bytes)
{
    measuring *m = arg;
    void *block = NULL;

    assert_true(m->count < SCRATCH_MAX);
    assert_int_equal(posix_memalign(&block, 64, (size_t)bytes), 0);
    memset(block, 0xff, (size_t)bytes);
    return m->blocks[m->count++] = block;
}

/* One node, prepared with `tuned` (NULL: nothing was stored), for as long as it takes;
 * its result is checked. */
static uint32_t measured_run(const layout_case *c, uint32_t flags, const measuring *tuned, measuring *out)
{
    layout_job expected, offers, j;
    const tn_layout *offered;
    const tn_prepare_ops host = {.struct_size = TN_END(tn_prepare_ops, tuned_bytes),
                                 .arg = out,
                                 .tuning_budget_ns = (uint64_t)1 << 50,
                                 .scratch = scratch_take,
                                 .tuned = tuned ? tuned->blob : NULL,
                                 .tuned_bytes = tuned ? tuned->bytes : 0};
    uint32_t failures;

    memset(out, 0, sizeof *out);
    layout_expected(c, &expected);
    layout_job_open(&j, c, c->op, ONEDNN);
    j.flags |= TN_NODE_LAYOUTS | flags;
    if ((offered = layout_offered(c, &offers)) != NULL)
        layout_bring(&j.in[0], offered);
    j.host = &host;
    layout_must(layout_job_prepare(&j, THREADS), c->attrs);
    j.host = NULL;
    for (uint32_t i = 0; i < out->count; i++)
        free(out->blocks[i]);
    out->bytes = j.plan.tuning.bytes;
    assert_true(out->bytes <= sizeof out->blob);
    if (out->bytes)
        memcpy(out->blob, j.plan.tuning.data, (size_t)out->bytes);
    failures = layout_served_run(&j, THREADS, &expected, TOLERANCE, c->attrs);
    layout_job_free(&j);
    layout_job_free(&expected);
    if (offers.def)
        layout_job_free(&offers);
    return failures;
}

/* A stored way is obeyed without measuring, and whatever the blob says, results are right. */
static uint32_t ways_run(const layout_case *c, uint32_t flags)
{
    measuring first, stored, then;
    uint32_t failures = measured_run(c, flags, NULL, &first);

    assert_true(first.count > 0);
    assert_true(first.bytes > BLOB_WAY);
    failures += measured_run(c, flags, &first, &then);
    assert_int_equal(then.count, 0);
    assert_int_equal(then.bytes, 0);
    for (unsigned way = 0; way < 7; way++) {
        stored = first;
        stored.blob[BLOB_WAY] = (unsigned char)(way < 6 ? way : 255);
        failures += measured_run(c, flags, &stored, &then);
        assert_true(way < 5 || then.count > 0); /* there are four, and code of our own for AVX2 */
    }
    return failures;
}

/* A blob of another size, format or version of the library is as good as none. */
static uint32_t blobs_run(const layout_case *c)
{
    measuring first, stored, then;
    uint32_t failures = measured_run(c, 0, NULL, &first);

    stored = first;
    stored.bytes--;
    failures += measured_run(c, 0, &stored, &then);
    assert_true(then.count > 0);
    for (uint64_t i = 0; i < first.bytes; i++) {
        stored = first;
        stored.blob[i] ^= 0x80;
        failures += measured_run(c, 0, &stored, &then);
        assert_true(then.count > 0);
    }
    return failures;
}

static void measured(void **state)
{
    uint32_t failures;

    (void)state;
    onednn_or_skip();
    failures = blobs_run(&cases[0]);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(cases[i].op, "Convolution") || !strcmp(cases[i].op, "_fused_conv")) {
            failures += ways_run(&cases[i], 0);
            failures += ways_run(&cases[i], TN_NODE_CONSTANT_WEIGHT);
        }
    assert_int_equal(failures, 0);
}

/* Windows without a pixel of the data are declined where the library's code for them is wrong. */
static void missed(void **state)
{
    static const layout_case missing[] = {
        {"_fused_conv", "kernel=(1,1) pad=(2,0) num_filter=2 no_bias=1 act_type=relu with_sum=1",
         .in = {"f32[1,2,3,5] random", "f32[2,2,1,1] random", "f32[1,2,7,5] random"}},
        {"_fused_conv", "kernel=(2,2) dilate=(4,1) pad=(3,0) num_filter=2 no_bias=1 act_type=relu",
         .in = {"f32[1,2,2,5] random", "f32[2,2,2,2] random"}},
    };

    (void)state;
    onednn_or_skip();
    if (!has_avx512()) {
        print_message("skipped: oneDNN has no such code for processors without AVX-512\n");
        skip();
    }
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        layout_job j;

        layout_job_open(&j, &missing[i], "_fused_conv", ONEDNN);
        assert_int_equal(layout_job_prepare(&j, 1), TN_E_UNSUPPORTED);
        assert_string_equal(op_error()->message, "a window that misses the data");
        layout_job_free(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layouts), cmocka_unit_test(foreign),
                                       cmocka_unit_test(measured), cmocka_unit_test(missed)};

    return tn_op_main(tests);
}
