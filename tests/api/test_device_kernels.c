/*
 * Kernels of a device whose memory the host does not reach (tests/check/defects/healthy_kernels.h): eager,
 * differentiated, compiled; what only the host could do for them is refused, by name.
 */
#include "api/support.h"

#include <math.h>
#include <stdio.h>

#define COUNT 3

static const char *const engines[][2] = {{"engine.type=threaded", NULL}, {"engine.type=naive", NULL}};
static const float values[COUNT] = {1, -2, 0.3f};
static const char *const half[] = {"scalar", "0.5", NULL};

static tn_ctx *far_open(const char *const *settings)
{
    tn_ctx *ctx = test_open(settings);
    const tn_device *device;
    char path[4096];
    size_t index;

    (void)snprintf(path, sizeof path, "%s/tests/check/defects/defect-kernels-healthy.so",
                   getenv("TENON_TEST_BUILD"));
    assert_ok(tn_plugin_open(ctx, path, &index));
    assert_ok(tn_device_get(ctx, "far:0", &device));
    (void)tn_device_use(device);
    return ctx;
}

static tn_array *vector(tn_ctx *ctx)
{
    return test_array(ctx, 1, (const int64_t[]){COUNT}, values);
}

static void far_close(tn_ctx *ctx)
{
    (void)tn_device_use(NULL);
    test_close(ctx);
}

static void eager(void **state)
{
    tn_ctx *ctx = far_open(*state);
    tn_array *x = vector(ctx);

    for (int round = 0; round < 20; round++) { /* the streams are late by chance */
        tn_array *scaled = test_op(ctx, "_mul_scalar", half, 1, &x),
                 *square = test_op(ctx, "square", NULL, 1, &scaled);

        test_values(scaled, (const float[]){0.5f, -1, 0.15f}, COUNT, 1e-6f);
        test_values(square, (const float[]){0.25f, 1, 0.0225f}, COUNT, 1e-6f);
        tn_array_release(scaled);
        tn_array_release(square);
    }
    tn_array_release(x);
    far_close(ctx);
}

/* y = tanh(x) / 2. The forward saves a block. */
static void differentiated(void **state)
{
    tn_ctx *ctx = far_open(*state);
    tn_array *x = vector(ctx);
    float slope[COUNT];

    for (int i = 0; i < COUNT; i++)
        slope[i] = 0.5f * (1 - tanhf(values[i]) * tanhf(values[i]));
    assert_ok(tn_attach_grad(ctx, x, TN_MODE_WRITE, NULL));
    for (int round = 0; round < 6; round++) {
        tn_array *y, *scaled;

        tn_record_set(1);
        y = test_op(ctx, "tanh", NULL, 1, &x);
        scaled = test_op(ctx, "_mul_scalar", half, 1, &y);
        tn_record_set(0);
        assert_ok(tn_backward(ctx, 1, &scaled, NULL, 0));
        test_values(tn_array_grad(x), slope, COUNT, 1e-6f);
        tn_array_release(y);
        tn_array_release(scaled);
    }
    tn_array_release(x);
    far_close(ctx);
}

static tn_symbol *symbol_op(tn_ctx *ctx, const char *op, const char *const *attrs, tn_symbol *in)
{
    tn_symbol *out = NULL;

    assert_ok(tn_symbol_op(
        ctx,
        &(tn_symbol_call){
            .struct_size = TN_SIZE(tn_symbol_call), .op = op, .attrs = attrs, .in_count = 1, .in = &in},
        &out));
    tn_symbol_release(in);
    return out;
}

static void compiled(void **state)
{
    tn_ctx *ctx = far_open(*state);
    tn_array *x = vector(ctx), *y = NULL;
    tn_symbol *s = NULL;
    tn_cached_op *program = NULL;

    assert_ok(tn_symbol_variable(ctx, "x", &s));
    s = symbol_op(ctx, "_mul_scalar", half,
                  symbol_op(ctx, "tanh", NULL, symbol_op(ctx, "_mul_scalar", half, s)));
    assert_ok(tn_cached_op_create(ctx, s, NULL, &program));
    for (int round = 0; round < 6; round++) {
        assert_ok(tn_cached_op_call(program, 1, &x, 1, &y));
        test_values(y, (const float[]){0.5f * tanhf(0.5f), 0.5f * tanhf(-1), 0.5f * tanhf(0.15f)}, COUNT,
                    1e-6f);
        tn_array_release(y);
        y = NULL;
    }
    tn_cached_op_release(program);
    tn_symbol_release(s);
    tn_array_release(x);
    far_close(ctx);
}

/* Strided inputs for a kernel that takes dense ones: the host would have to touch the device's memory. Sums
 * for one that overwrites, on a device that has no copy to add them by. */
static void refused(void **state)
{
    tn_ctx *ctx = far_open(*state);
    tn_array *x = vector(ctx), *view = NULL, *out = NULL;
    tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = "square", .in_count = 1, .in = &view};

    assert_ok(tn_array_view(x, 0, 1, (const int64_t[]){2}, (const int64_t[]){2}, &view));
    assert_fails(tn_invoke_text(ctx, &call, 1, &out, NULL), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tn_error_text(), "does not reach"));
    assert_ok(tn_attach_grad(ctx, x, TN_MODE_ADD, NULL));
    tn_record_set(1);
    out = test_op(ctx, "tanh", NULL, 1, &x);
    tn_record_set(0);
    assert_fails(tn_backward(ctx, 1, &out, NULL, 0), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tn_error_text(), "operator _copy has no kernel on device far"));
    tn_array_release(out);
    tn_array_release(view);
    tn_array_release(x);
    far_close(ctx);
}

/* An output where its input lies, of a kernel that does not work in place: it is written aside. */
static void overlapping(void **state)
{
    tn_ctx *ctx = far_open(*state);
    tn_array *x = vector(ctx);
    tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = "tanh", .in_count = 1, .in = &x};

    assert_ok(tn_invoke_text(ctx, &call, 1, &x, NULL));
    test_values(x, (const float[]){tanhf(values[0]), tanhf(values[1]), tanhf(values[2])}, COUNT, 1e-6f);
    tn_array_release(x);
    far_close(ctx);
}

int main(void)
{
    int failed = 0;

    for (size_t e = 0; e < sizeof engines / sizeof *engines; e++) {
        void *settings = (void *)(uintptr_t)engines[e];
        const struct CMUnitTest tests[] = {
            cmocka_unit_test_prestate(eager, settings),
            cmocka_unit_test_prestate(differentiated, settings),
            cmocka_unit_test_prestate(compiled, settings),
            cmocka_unit_test_prestate(refused, settings),
            cmocka_unit_test_prestate(overlapping, settings),
        };

        failed += cmocka_run_group_tests_name(engines[e][0], tests, NULL, NULL);
    }
    return failed;
}
