/*
 * Winograd's form in cpu-onednn's own code: values beside the plain kernels' over shapes whose tiles,
 * panels and paddings are cut off, the same bits on any number of threads, and what is declined.
 *
 * Sums are made about 1 large, so the bound is 3e-5 of the largest output (issue 10's for nets; measured
 * 4e-6).
 */
#include <string.h>

#include "op/layout_job.h"

#define SMALL " random:-0.1:0.1"
#define BIAS "f32[64] random"
#define W64 "f32[64,64,3,3]" SMALL
#define K64 "kernel=(3,3) pad=(1,1) num_filter=64 "
#define FUSED "_fused_conv", K64

static double relu(double x)
{
    return x > 0 ? x : 0;
}

static double clipped(double x)
{
    return x < -0.25 ? -0.25 : x > 0.5 ? 0.5 : x;
}

static const layout_case cases[] = {
    {"Convolution", "kernel=(3,3) num_filter=64", .in = {"f32[1,64,15,21] random", W64, BIAS}},
    {"Convolution", K64 "no_bias=1", .in = {"f32[3,64,14,14] random", W64}}, /* a multiple of no block */
    {"Convolution", "kernel=(3,3) pad=(2,2) num_filter=88",                  /* half a panel, two chunks */
     .in = {"f32[2,40,13,10] random", "f32[88,40,3,3]" SMALL, "f32[88] random"}},
    {"Convolution", "kernel=(3,3) pad=(0,2) num_filter=136 no_bias=1",
     .in = {"f32[1,72,33,3] random", "f32[136,72,3,3]" SMALL}},
    {"Convolution", "kernel=(3,3) pad=(1,1) num_filter=256", /* tiles of side 2 */
     .in = {"f32[1,256,7,7] random", "f32[256,256,3,3] random:-0.05:0.05", "f32[256] random"}},
    {"Convolution", "kernel=(3,3) pad=(6,5) num_filter=64 no_bias=1", /* tiles without a pixel */
     .in = {"f32[3,64,2,1] random", W64}},
    {FUSED "act_type=relu with_sum=1", .in = {"f32[2,64,11,17] random", W64, BIAS, "f32[2,64,11,17] random"},
     .layer = "Convolution", .act = relu, .with_sum = true},
    {FUSED "no_bias=1 act_type=clip a_min=-0.25 a_max=0.5", .in = {"f32[1,64,18,30] random", W64},
     .layer = "Convolution", .act = clipped},
    {FUSED "no_bias=1 with_sum=1", .in = {"f32[1,64,18,30] random", W64, "f32[1,64,18,30] random"},
     .layer = "Convolution", .with_sum = true},
};

/* Nodes of another kind, those without layouts, and those that no faster code is there for. */
static const struct {
    const char *op, *attrs, *data, *weight;
    uint32_t lacks, has; /* flags */
} declined[] = {
    {"Convolution", K64 "no_bias=1", "f32[1,64,18,30] random", W64, TN_NODE_CONSTANT_WEIGHT, 0},
    {"Convolution", K64 "no_bias=1", "f32[1,64,18,30] random", W64, TN_NODE_LAYOUTS, 0},
    {"Convolution", K64 "no_bias=1", "f32[1,64,18,30] random", W64, 0, TN_NODE_THREAD_INVARIANT},
    {"Convolution", K64 "no_bias=1 stride=(1,2)", "f32[1,64,18,60] random", W64, 0, 0},
    {"Convolution", K64 "no_bias=1 dilate=(2,1)", "f32[1,64,18,30] random", W64, 0, 0},
    {"Convolution", "kernel=(3,1) num_filter=64 no_bias=1", "f32[1,64,18,30] random", "f32[64,64,3,1] random",
     0, 0},
    {"Convolution", K64 "no_bias=1 num_group=2", "f32[1,64,18,30] random", "f32[64,32,3,3] random", 0, 0},
    {"Convolution", K64 "no_bias=1 layout=NHWC", "f32[1,18,30,64] random", "f32[64,3,3,64] random", 0, 0},
    {"Convolution", K64 "no_bias=1", "f32[1,60,18,30] random", "f32[64,60,3,3] random", 0, 0},
    {"Convolution", "kernel=(3,3) num_filter=60 no_bias=1", "f32[1,64,18,30] random", "f32[60,64,3,3] random",
     0, 0},
    {"Convolution", "kernel=(3,) num_filter=64 no_bias=1", "f32[1,64,540] random", "f32[64,64,3] random", 0,
     0},
    {"Convolution", K64 "no_bias=1", "f32[1,64,2,2] random", W64, 0, 0},
    {FUSED "no_bias=1 act_type=sigmoid", "f32[1,64,18,30] random", W64, 0, 0},
    {FUSED "no_bias=1 act_type=leaky", "f32[1,64,18,30] random", W64, 0, 0},
};

#define FLAGS (TN_NODE_LAYOUTS | TN_NODE_CONSTANT_WEIGHT)

/* Other processors have the library's own Winograd, or none. */
static void winograd_or_skip(void)
{
    op_kernel found;

    if (!layout_kernel_of("Convolution", ONEDNN, &found)) {
        print_message("skipped: cpu-onednn was not built\n");
        skip();
    }
    if (!tni_isa_present("x86-64-v3") || tni_isa_present("x86-64-v4")) {
        print_message("skipped: the form is for processors with AVX2 and without AVX-512\n");
        skip();
    }
}

static bool served(const layout_job *j)
{
    return j->in_layout[1] && j->in_layout[1]->byte_count > 8 &&
           !memcmp(j->in_layout[1]->bytes, "winograd", 8);
}

static void values(void **state)
{
    static const layout_run one = {1, 1, TN_NODE_CONSTANT_WEIGHT, TOLERANCE},
                            more[] = {{THREADS, THREADS, TN_NODE_CONSTANT_WEIGHT, 0},
                                      {3, 3, TN_NODE_CONSTANT_WEIGHT, 0},
                                      {THREADS, 1, TN_NODE_CONSTANT_WEIGHT, 0}};
    uint32_t failures = 0;

    (void)state;
    winograd_or_skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        layout_job expected, j;

        layout_expected(&cases[i], &expected);
        failures += layout_kernel_run(&cases[i], ONEDNN, &one, &expected, &j);
        assert_true(served(&j));
        for (size_t k = 0; k < sizeof more / sizeof *more; k++)
            failures += layout_kernel_run(&cases[i], ONEDNN, &more[k], &j, NULL);
        layout_job_free(&expected);
        layout_job_free(&j);
    }
    assert_int_equal(failures, 0);
}

static void declines(void **state)
{
    (void)state;
    winograd_or_skip();
    for (size_t i = 0; i < sizeof declined / sizeof *declined; i++) {
        const layout_case c = {declined[i].op, declined[i].attrs,
                               .in = {declined[i].data, declined[i].weight}};
        layout_job j;
        tn_status st;

        layout_job_open(&j, &c, c.op, ONEDNN);
        j.flags |= (FLAGS & ~declined[i].lacks) | declined[i].has;
        st = layout_job_prepare(&j, THREADS);
        if (served(&j))
            fail_msg("case %zu, %s: status %d", i, c.attrs, (int)st);
        layout_job_free(&j);
    }
}

/* The weight's layout is made from rows of its shape alone, and nothing is made of it. */
static void reorders(void **state)
{
    static const layout_case same = {"_reorder", "", .in = {W64}},
                             other[] = {{"_reorder", "", .in = {"f32[64,63,3,3] random"}},
                                        {"_reorder", "", .in = {"f32[64,64,3] random"}}};
    layout_job layer, j;

    (void)state;
    winograd_or_skip();
    layout_job_open(&layer, &cases[1], "Convolution", ONEDNN);
    layer.flags |= FLAGS;
    layout_must(layout_job_prepare(&layer, 1), "Convolution");
    assert_true(served(&layer));
    for (size_t k = 0; k < 4; k++) {
        layout_job_open(&j, k < 2 ? &same : &other[k - 2], "_reorder", ONEDNN);
        j.flags |= TN_NODE_LAYOUTS;
        j.in[0].t.layout = k < 2 ? layer.in_layout[1] : NULL;
        j.out[0].t.layout = k == 0 ? NULL : k == 1 ? layer.in_layout[0] : layer.in_layout[1];
        assert_int_equal(layout_job_prepare(&j, 1), TN_E_UNSUPPORTED);
        layout_job_free(&j);
    }
    layout_job_free(&layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(declines),
                                       cmocka_unit_test(reorders)};

    return tn_op_main(tests);
}
