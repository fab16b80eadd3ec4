/*
 * The template of an operator, driven through its tables without the core: values in each type, and the
 * gradient by central differences. Its definition is text, which the program that comes with it tries.
 */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tenon/plugin/op.h"

#define COUNT 6

static const tn_capability *capability(uint32_t kind)
{
    static const tn_plugin *plugin;
    const tn_capability *const *at;

    if (!plugin) {
        const char *folder = getenv("TENON_TEST_BUILD");
        char path[4096];
        void *file;

        if (!folder ||
            snprintf(path, sizeof path, "%s/templates/acme-operator.so", folder) >= (int)sizeof path)
            fail_msg("TENON_TEST_BUILD must name the folder of templates/acme-operator.so");
        file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!file)
            fail_msg("%s", dlerror());
        plugin = dlsym(file, "tn_plugin_v1");
        assert_non_null(plugin);
    }
    for (at = plugin->capabilities; *at && (*at)->kind != kind;)
        at++;
    assert_non_null(*at);
    return *at;
}

static const tn_kernel *kernel_find(const char *op)
{
    const tn_kernel *const *at =
        ((const tn_kernel_table *)(const void *)capability(TN_KIND_KERNELS))->kernels;

    while (*at && strcmp((*at)->op, op))
        at++;
    assert_non_null(*at);
    return *at;
}

/* ---- kernels ------------------------------------------------------------------------------------- */

static void kernel_run(const char *op, int32_t dtype, void *in, void *out, double scale, double shift,
                       uint8_t mode)
{
    static const int64_t shape[] = {2, 3}, stride[] = {3, 1};
    const tn_kernel *kernel = kernel_find(op);
    const tn_value attrs[] = {tn_value_of_float(scale), tn_value_of_float(shift)};
    const uint64_t bytes = COUNT * tn_dtype_bytes(dtype);
    const tn_tensor x = {
        .data = in, .shape = shape, .stride = stride, .bytes = bytes, .ndim = 2, .dtype = dtype};
    const tn_tensor y = {
        .data = out, .shape = shape, .stride = stride, .bytes = bytes, .ndim = 2, .dtype = dtype};
    const tn_tensor *const ins[] = {&x}, *const outs[] = {&y};
    int32_t inplace = -1;
    const tn_node node = {.struct_size = (uint32_t)TN_END(tn_node, host),
                          .op_version = 1,
                          .op = op,
                          .attrs = attrs,
                          .attr_count = 2,
                          .in_count = 1,
                          .out_count = 1,
                          .threads = 1,
                          .in = ins,
                          .out = outs,
                          .modes = &mode};
    tn_plan plan = {.struct_size = (uint32_t)TN_END(tn_plan, tuning), .inplace = &inplace};
    const tn_exec exec = {.struct_size = (uint32_t)TN_END(tn_exec, ops),
                          .threads = 1,
                          .in = ins,
                          .out = outs,
                          .modes = &mode,
                          .attrs = attrs};
    tn_err err = {0};

    assert_int_equal(kernel->prepare(NULL, &node, &plan, &err), TN_OK);
    assert_int_equal(inplace, 0);
    assert_int_equal(kernel->run(&plan, &exec, &err), TN_OK);
}

static void test_values(void **state)
{
    double x[COUNT] = {-2, -1, 0, 0.5, 1, 1e300}, y[COUNT];
    float xf[COUNT] = {-2, -1, 0, 0.5f, 1, 3}, yf[COUNT] = {9, 9, 9, 9, 9, 9};

    (void)state;
    kernel_run("acme_scale_shift", TN_F64, x, y, 3, 0.25, TN_MODE_WRITE);
    for (int i = 0; i < COUNT; i++)
        assert_true(y[i] == 3 * x[i] + 0.25);
    kernel_run("acme_scale_shift", TN_F32, xf, yf, 2, 1, TN_MODE_NONE);
    assert_true(yf[0] == 9);
    kernel_run("acme_scale_shift", TN_F32, xf, yf, 2, 1, TN_MODE_WRITE);
    for (int i = 0; i < COUNT; i++)
        assert_true(yf[i] == 2 * xf[i] + 1);
    kernel_run("acme_scale_shift", TN_F32, xf, xf, 2, 1, TN_MODE_WRITE); /* in place */
    assert_memory_equal(xf, yf, sizeof xf);
}

/* Subnormal, largest, infinite; a half of the last place goes to the even one. */
static void test_narrow(void **state)
{
    uint16_t half[COUNT] = {0x3c00, 0xc000, 0x0001, 0x7bff, 0x7c00, 0x8000}, half_y[COUNT];
    uint16_t brain[COUNT] = {0x3f80, 0xc000, 0x0001, 0x7f7f, 0xff80, 0x3f81}, brain_y[COUNT];
    static const uint16_t half_twice[COUNT] = {0x4000, 0xc400, 0x0002, 0x7c00, 0x7c00, 0x8000};
    static const uint16_t brain_more[COUNT] = {0x3f80, 0xc000, 0x3b80, 0x7f7f, 0xff80, 0x3f82};

    (void)state;
    kernel_run("acme_scale_shift", TN_F16, half, half_y, 2, -0.0, TN_MODE_WRITE);
    assert_memory_equal(half_y, half_twice, sizeof half_y);
    kernel_run("acme_scale_shift", TN_BF16, brain, brain_y, 1, 0.00390625, TN_MODE_WRITE);
    assert_memory_equal(brain_y, brain_more, sizeof brain_y);
}

/* dx against (f(x + h) - f(x - h)) / 2h, weighted with dy. */
static void test_central_differences(void **state)
{
    const double scale = -1.75, shift = 0.5, h = 1e-4;
    double x[COUNT] = {-2, -1, 0.1, 0.5, 1, 3}, dy[COUNT] = {1, -2, 0.5, 3, -1, 0.25}, dx[COUNT];

    (void)state;
    kernel_run("_backward_acme_scale_shift", TN_F64, dy, dx, scale, shift, TN_MODE_WRITE);
    for (int i = 0; i < COUNT; i++) {
        double keep = x[i], up[COUNT], down[COUNT], slope = 0;

        x[i] = keep + h;
        kernel_run("acme_scale_shift", TN_F64, x, up, scale, shift, TN_MODE_WRITE);
        x[i] = keep - h;
        kernel_run("acme_scale_shift", TN_F64, x, down, scale, shift, TN_MODE_WRITE);
        x[i] = keep;
        for (int k = 0; k < COUNT; k++)
            slope += dy[k] * (up[k] - down[k]) / (2 * h);
        assert_true(fabs(slope - dx[i]) < 1e-8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_narrow),
                                       cmocka_unit_test(test_central_differences)};

    return cmocka_run_group_tests_name("template.operator", tests, NULL, NULL);
}
