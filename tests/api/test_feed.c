/*
 * Feeding: the arrays of the next batch are made while the steps before are queued. The engine "stepped" runs
 * queued work only where somebody waits: work that is done while a batch is made is a wait of the feeder.
 */
#include "api/support.h"
#include "support/list.h"

#include <stdbool.h>

#define BATCH 64
#define PIXELS (28 * 28)
#define STEPS 8

static tn_stats stats_of(tn_ctx *ctx)
{
    tn_stats s = {.struct_size = TN_SIZE(tn_stats)};

    assert_ok(tn_ctx_stats(ctx, &s));
    return s;
}

/* Images that are all `step`, and their labels. The buffers are the caller's again at once. */
static void batch_make(tn_ctx *ctx, int step, tn_array **x, tn_array **y)
{
    static const int64_t images[] = {BATCH, 1, 28, 28}, labels[] = {BATCH};
    static float buffer[BATCH * PIXELS];

    for (size_t i = 0; i < BATCH * PIXELS; i++)
        buffer[i] = (float)step;
    assert_ok(tn_array_from(ctx, TN_F32, 4, images, buffer, x));
    assert_ok(tn_array_from(ctx, TN_F32, 1, labels, buffer, y));
    memset(buffer, 0xff, sizeof buffer);
}

static void feed(const char *const *settings)
{
    tn_ctx *ctx = test_open(settings);
    tn_array *x[STEPS], *y[STEPS], *square[STEPS], *sum[STEPS];

    for (int i = 0; i < STEPS; i++) {
        const uint64_t done = stats_of(ctx).done;

        batch_make(ctx, i, &x[i], &y[i]);
        assert_int_equal(stats_of(ctx).done, done);
        square[i] = test_op(ctx, "square", NULL, 1, &x[i]);
        sum[i] = test_op(ctx, "sum", NULL, 1, &square[i]);
        assert_true(stats_of(ctx).pushed > stats_of(ctx).done); /* the step is queued */
    }
    for (int i = 0; i < STEPS; i++) {
        float labels[BATCH];

        test_values(sum[i], &(float){(float)(i * i) * BATCH * PIXELS}, 1, 0);
        assert_ok(tn_array_read(y[i], labels, sizeof labels));
        for (size_t k = 0; k < BATCH; k++)
            assert_float_equal(labels[k], (float)i, 0);
        tn_array_release(x[i]);
        tn_array_release(y[i]);
        tn_array_release(square[i]);
        tn_array_release(sum[i]);
    }
    test_close(ctx);
}

static void never_waits(void **state)
{
    (void)state;
    feed(LIST("engine.type=stepped", "engine.workers=1"));
}

static void never_waits_for_a_device(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    const tn_device *device;
    const bool there = !tn_device_get(ctx, "fake:0", &device);

    (void)state;
    assert_ok(tn_close(ctx));
    if (!there) {
        print_message("skipped: no device fake\n");
        skip();
    }
    feed(LIST("engine.type=stepped", "engine.workers=1", "device.default=fake:0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_waits),
        cmocka_unit_test(never_waits_for_a_device),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
