/*
 * Sums over many pixels, of numbers that are not around 0: BatchNorm's statistics and gradients in each order
 * of memory are as the plain kernels', which add in double, have them. Sums in float, one after the other,
 * are outside the bound here.
 */
#include <string.h>

#include "op/layout_job.h"

#define NEAR 3e-6 /* part of the largest value */
#define DATA "f32[2,16,150,149] random:1:3"
#define CHANNELS(n)                                                                                          \
    "f32[" n "] random", "f32[" n "] random", "f32[" n "] random:1:3", "f32[" n "] random:0.5:2"
#define GIVEN(n) "f32[" n "] random", "f32[" n "] random:1.99:2.01", "f32[" n "] random:0.5:2"
#define FROM(n) "kernel=(1,1) num_filter=" n " no_bias=1"

static const layout_case cases[] = {
    {"BatchNorm", "fix_gamma=0", .in = {DATA, CHANNELS("16")}, .train = true},
    {"BatchNorm", "fix_gamma=0", .in = {DATA, CHANNELS("16")}, FROM("16"), .train = true},
    {"BatchNorm", "", .in = {"f32[3,20,90,31] random:1:3", CHANNELS("20")}, FROM("20"), .train = true},
    {"BatchNorm", "fix_gamma=0 axis=-1", .in = {"f32[2,90,91,20] random:1:3", CHANNELS("20")}, .train = true},
    {"BatchNorm", "", .in = {"f32[5000,37] random:1:3", CHANNELS("37")}, .train = true},
    {"_backward_BatchNorm", "fix_gamma=0", .in = {DATA, DATA, GIVEN("16")}, .train = true},
    {"_backward_BatchNorm", "fix_gamma=0", .in = {DATA, DATA, GIVEN("16")}, FROM("16"), .train = true},
    {"_backward_BatchNorm", "fix_gamma=0", .in = {DATA, DATA, GIVEN("16")}, FROM("16")},
    {"_backward_BatchNorm", "",
     .in = {"f32[3,20,90,31] random:1:3", "f32[3,20,90,31] random:1:3", GIVEN("20")}, FROM("20"),
     .train = true},
    {"_backward_BatchNorm", "fix_gamma=0 axis=-1",
     .in = {"f32[2,90,91,20] random:1:3", "f32[2,90,91,20] random:1:3", GIVEN("20")}, .train = true},
    {"_backward_BatchNorm", "fix_gamma=0",
     .in = {"f32[5000,37] random:1:3", "f32[5000,37] random:1:3", GIVEN("37")}, .train = true},
};

static void onednn_or_skip(void)
{
    op_kernel found;

    if (!layout_kernel_of("BatchNorm", ONEDNN, &found)) {
        print_message("skipped: cpu-onednn was not built\n");
        skip();
    }
}

static void as_in_double(void **state)
{
    static const layout_run one = {1, 1, 0, NEAR}, more[] = {{3, 3, 0, 0}, {THREADS, 1, 0, 0}};
    uint32_t failures = 0;

    (void)state;
    onednn_or_skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bool back = !strncmp(cases[i].op, "_backward", 9);
        layout_job expected, j;

        layout_expected(&cases[i], &expected);
        failures += layout_kernel_run(&cases[i], ONEDNN, &one, &expected, &j);
        for (size_t k = 0; back && k < sizeof more / sizeof *more; k++) /* the same bits */
            failures += layout_kernel_run(&cases[i], ONEDNN, &more[k], &j, NULL);
        layout_job_free(&expected);
        layout_job_free(&j);
    }
    assert_int_equal(failures, 0);
    assert_int_equal(layout_declined, 0);
}

/* The gradient of a weight over more than 2^14 pixels of one sample is somebody else's. */
static void declined(void **state)
{
    static const struct {
        const char *dy, *data;
        tn_status status;
    } sizes[] = {
        {"f32[2,8,128,128] random", "f32[2,8,128,128] random", TN_OK},
        {"f32[2,8,129,128] random", "f32[2,8,129,128] random", TN_E_UNSUPPORTED},
    };

    (void)state;
    onednn_or_skip();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const layout_case c = {"_backward_Convolution", "kernel=(3,3) pad=(1,1) num_filter=8 no_bias=1",
                               .in = {sizes[i].dy, sizes[i].data, "f32[8,8,3,3] random"}};
        layout_job j;

        layout_job_open(&j, &c, c.op, ONEDNN);
        assert_int_equal(layout_job_prepare(&j, 1), sizes[i].status);
        layout_job_free(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_in_double), cmocka_unit_test(declined)};

    return tn_op_main(tests);
}
