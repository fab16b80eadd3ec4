/*
 * The template of an operator, driven through its tables without the core: inference both ways, the
 * gradient's graph, values in f32 and f64, and the gradient by central differences.
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

static const tn_op *op_find(const char *name)
{
    const tn_op *const *at = ((const tn_op_table *)(const void *)capability(TN_KIND_OPS))->ops;

    while (*at && strcmp((*at)->name, name))
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

/* ---- inference ----------------------------------------------------------------------------------- */

typedef struct inference {
    tn_infer infer;
    tn_shape in, out;
    tn_shape *ins[1], *outs[1];
    int32_t in_dtype, out_dtype;
    tn_err err;
} inference;

static void inference_init(inference *i)
{
    memset(i, 0, sizeof *i);
    i->in.ndim = i->out.ndim = TN_NDIM_UNKNOWN;
    i->ins[0] = &i->in;
    i->outs[0] = &i->out;
    i->in_dtype = i->out_dtype = TN_DTYPE_UNKNOWN;
    i->infer = (tn_infer){.struct_size = (uint32_t)TN_END(tn_infer, err),
                          .in_count = 1,
                          .out_count = 1,
                          .in_shape = i->ins,
                          .out_shape = i->outs,
                          .in_dtype = &i->in_dtype,
                          .out_dtype = &i->out_dtype,
                          .err = &i->err};
}

static void test_inference(void **state)
{
    const tn_op *op = op_find("acme_scale_shift");
    inference i;

    (void)state;
    inference_init(&i);
    i.in = (tn_shape){.ndim = 2, .dim = {3, TN_DIM_UNKNOWN}};
    i.out = (tn_shape){.ndim = 2, .dim = {TN_DIM_UNKNOWN, 4}};
    assert_int_equal(op->shape(&i.infer), TN_OK);
    assert_int_equal(i.in.dim[1], 4);
    assert_int_equal(i.out.dim[0], 3);
    i.in.dim[0] = 5;
    assert_int_equal(op->shape(&i.infer), TN_E_SHAPE);
    inference_init(&i);
    assert_int_equal(op->shape(&i.infer), TN_OK);
    assert_int_equal(op->dtype(&i.infer), TN_OK);
    i.out_dtype = TN_F64;
    assert_int_equal(op->dtype(&i.infer), TN_OK);
    assert_int_equal(i.in_dtype, TN_F64);
    i.in_dtype = TN_F32;
    assert_int_equal(op->dtype(&i.infer), TN_E_DTYPE);
    i.in_dtype = i.out_dtype = TN_I32;
    assert_int_equal(op->dtype(&i.infer), TN_E_DTYPE);
    assert_true(i.err.message[0]);
}

/* ---- the gradient's graph ------------------------------------------------------------------------ */

typedef struct recorder {
    int arrives, emitted, set;
    char op[64];
    uint32_t flags;
} recorder;

static recorder seen;

static tn_edge head_edge(tn_grad *g, uint32_t index)
{
    (void)g;
    assert_int_equal(index, 0);
    return (tn_edge){seen.arrives ? &seen : NULL, 7, 0};
}

static tn_status emit_edge(tn_grad *g, const tn_emit *e, tn_edge *out)
{
    (void)g;
    assert_int_equal(e->in_count, 1);
    assert_int_equal(e->in[0].index, 7);
    seen.emitted++;
    seen.flags = e->flags;
    (void)snprintf(seen.op, sizeof seen.op, "%s", e->op);
    *out = (tn_edge){&seen.emitted, 0, 0};
    return TN_OK;
}

static tn_status set_edge(tn_grad *g, uint32_t input, tn_edge edge)
{
    (void)g;
    assert_int_equal(input, 0);
    assert_ptr_equal(edge.node, &seen.emitted);
    seen.set++;
    return TN_OK;
}

static void test_gradient_graph(void **state)
{
    static const char *const names[] = {"acme_scale_shift", "_backward_acme_scale_shift"};
    const tn_grad_ops ops = {.struct_size = (uint32_t)TN_END(tn_grad_ops, set),
                             .head = head_edge,
                             .emit = emit_edge,
                             .set = set_edge};

    (void)state;
    for (int k = 0; k < 2; k++) { /* the second derivative has the same form */
        tn_grad g = {
            .struct_size = (uint32_t)TN_END(tn_grad, self), .ops = &ops, .in_count = 1, .out_count = 1};

        memset(&seen, 0, sizeof seen);
        assert_int_equal(op_find(names[k])->gradient(&g), TN_OK);
        assert_int_equal(seen.emitted, 0);
        seen.arrives = 1;
        assert_int_equal(op_find(names[k])->gradient(&g), TN_OK);
        assert_int_equal(seen.set, 1);
        assert_string_equal(seen.op, "_backward_acme_scale_shift");
        assert_true(seen.flags & TN_EMIT_INHERIT);
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inference),
                                       cmocka_unit_test(test_gradient_graph), cmocka_unit_test(test_values),
                                       cmocka_unit_test(test_central_differences)};

    return cmocka_run_group_tests_name("template.operator", tests, NULL, NULL);
}
