/*
 * Old and new together: kernels older than their operator's definition, kernels for a device that runs those
 * of another plugin, plugin binaries of the first commit that had an SDK, and what is said of a refused file.
 */
#include "api/support.h"

#include <stdio.h>
#include <unistd.h>

#include "tenon/plugin/attr.h"
#include "tenon/plugin/util.h"

/* ---- an operator that grew; each kernel adds a number of its own, which tells who ran
 * ----------------------- */

static const tn_attr_def grown_attrs[] = {
    TN_ATTR_FLOAT("amount", "1.0", "of version 1"),
    TN_ATTR_ROW_SINCE(2, "twice", TN_ATTR_T_BOOL, 0, NULL, "False", 1, 0, "of version 2"),
    TN_ATTR_ROW_SINCE(3, "pads", TN_ATTR_T_TUPLE, 0, NULL, "(1, 2)", 1, 0, "of version 3"),
    TN_ATTR_END,
};
static const tn_attr_def live_attrs[] = {
    TN_ATTR_ROW_SINCE(2, "gain", TN_ATTR_T_FLOAT, TN_ATTR_F_RUNTIME, NULL, "1.0", 1, 0, "of version 2"),
    TN_ATTR_END,
};

static tn_status same_shape(tn_infer *i)
{
    return tn_infer_same_shape(i);
}

static tn_status same_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32));
}

static const char *const data_name[] = {"data", NULL}, *const output_name[] = {"output", NULL};
static const char *const types[] = {"*:f32", NULL};

#define DEFINITION(name_, version_, attrs_)                                                                  \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_op, gradient), .version = version_, .name = name_, .doc = "test", \
        .attrs = attrs_, .inputs = data_name, .outputs = output_name, .shape = same_shape,                   \
        .dtype = same_dtype,                                                                                 \
    }

static const tn_op definitions[] = {
    DEFINITION("test_grown", 3, grown_attrs),
    DEFINITION("test_live", 2, live_attrs),
};
static const tn_op *const ops[] = {&definitions[0], &definitions[1], NULL};
static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "grown"),
                                     .ops = ops};

#define RUN(number)                                                                                          \
    static tn_status run_##number(const tn_plan *plan, const tn_exec *x, tn_err *err)                        \
    {                                                                                                        \
        const float *in = x->in[0]->data;                                                                    \
        float *out = x->out[0]->data;                                                                        \
                                                                                                             \
        (void)plan;                                                                                          \
        (void)err;                                                                                           \
        for (int64_t i = 0; i < tn_exec_count(x, 0); i++)                                                    \
            out[i] = in[i] + number;                                                                         \
        return TN_OK;                                                                                        \
    }
RUN(1)
RUN(2)
RUN(3)
RUN(4)
RUN(5)

#define KERNEL(op_, number, device_, rank_, min, max)                                                        \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = rank_, .op = op_,                       \
        .name = op_ "." #number, .device = device_, .isa = "", .op_version_min = min, .op_version_max = max, \
        .flags = TN_KERNEL_DETERMINISTIC, .types = types, .run = run_##number,                               \
    }

static const tn_kernel all[] = {
    KERNEL("test_grown", 1, "cpu", 192, 1, 1), KERNEL("test_grown", 2, "cpu", 128, 1, 2),
    KERNEL("test_grown", 3, "cpu", 64, 3, 3),  KERNEL("test_grown", 4, "cpu", 255, 4, 9),
    KERNEL("test_live", 1, "cpu", 64, 1, 1),   KERNEL("test_grown", 5, "fake", 1, 3, 3),
};
static const tn_kernel *const on_cpu[] = {&all[0], &all[1], &all[2], &all[3], &all[4], NULL};
static const tn_kernel *const on_fake[] = {&all[5], NULL};
static const tn_kernel_table cpu_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = on_cpu};
static const tn_kernel_table fake_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "fake"), .kernels = on_fake};
static const tn_capability *const capabilities[] = {&op_table.head, &cpu_table.head, &fake_table.head, NULL};
static const tn_plugin grown = {.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                                .magic = TN_MAGIC,
                                .abi_major = TN_ABI_MAJOR,
                                .abi_minor = TN_ABI_TARGET,
                                .abi_minor_min = TN_ABI_MIN,
                                .name = "grown",
                                .version = "3.0.0",
                                .vendor = "test",
                                .license = "Apache-2.0",
                                .summary = "an operator of version 3",
                                .capabilities = capabilities};

static void runs(tn_ctx *ctx, const char *const *attrs, float expected)
{
    const float zeros[2] = {0, 0}, all_of_it[2] = {expected, expected};
    tn_array *x = test_array(ctx, 1, (int64_t[]){2}, zeros), *y = test_op(ctx, "test_grown", attrs, 1, &x);

    test_values(y, all_of_it, 2, 0);
    tn_array_release(x);
    tn_array_release(y);
}

/* Calls that no kernel serves; the text says why. */
static void unserved(tn_ctx *ctx, const char *op, const char *says)
{
    tn_array *x = test_array(ctx, 1, (int64_t[]){1}, (const float[]){0}), *y = NULL;
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = op, .in_count = 1, .in = &x};

    assert_fails(tn_invoke_text(ctx, &call, 1, &y, NULL), TN_E_UNSUPPORTED);
    if (!strstr(tn_error_text(), says))
        fail_msg("\"%s\" is not in: %s", says, tn_error_text());
    tn_array_release(x);
}

/* An operator that there is none of; the text says why. */
static void unserved_name(tn_ctx *ctx, const char *op, const char *says)
{
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = op};
    tn_array *y = NULL;

    assert_fails(tn_invoke_text(ctx, &call, 1, &y, NULL), TN_E_KEY);
    if (!strstr(tn_error_text(), says))
        fail_msg("\"%s\" is not in: %s", says, tn_error_text());
}

static void old_kernels(void **state)
{
    tn_ctx *ctx = test_open(NULL);

    (void)state;
    assert_ok(tn_plugin_add(ctx, &grown));
    runs(ctx, NULL, 1);
    runs(ctx, (const char *const[]){"amount", "7", NULL}, 1); /* known to version 1 */
    runs(ctx, (const char *const[]){"twice", "False", "pads", "(1, 2)", NULL}, 1);
    runs(ctx, (const char *const[]){"twice", "True", NULL}, 2);
    runs(ctx, (const char *const[]){"pads", "(2, 2)", NULL}, 3);
    runs(ctx, (const char *const[]){"pads", "(1, 2, 0)", "twice", "True", NULL}, 3);
    unserved(ctx, "test_live", "gain came with version 2");
    test_close(ctx);
}

static void versions_of_attributes(void **state)
{
    static const tn_op ahead = DEFINITION("test_ahead", 1, live_attrs);
    tn_ctx *ctx = test_open(NULL);

    (void)state;
    assert_fails(tn_op_register(ctx, &ahead), TN_E_ARG);
    assert_non_null(strstr(tn_error_text(), "gain"));
    test_close(ctx);
}

static void kernels_for_fake(void **state)
{
    tn_ctx *ctx = test_open((const char *const[]){"device.default=fake:0", NULL});

    (void)state;
    assert_ok(tn_plugin_add(ctx, &grown));
    runs(ctx, NULL, 5);
    runs(ctx, (const char *const[]){"pads", "(2, 2)", NULL}, 5);
    unserved(ctx, "test_live", "runs the kernels of cpu");
    test_close(ctx);
}

/* ---- binaries of an earlier day
 * ------------------------------------------------------------------------------ */

#if defined(__x86_64__)

static tn_ctx *open_old(const char *more)
{
    char path[8192];
    const char *settings[] = {path, more, NULL};
    const char *plugins = getenv("TENON_TEST_PLUGINS"), *source = getenv("TENON_TEST_SOURCE");

    assert_non_null(plugins);
    (void)snprintf(path, sizeof path, "plugins.path=%s,%s/tests/golden/plugins", plugins,
                   source ? source : ".");
    return test_open(settings);
}

static void old_operator(void **state)
{
    static const char *const attrs[] = {"scale", "-2", "shift", "0.5", NULL};
    const float values[] = {1, 2, 3}, expected[] = {-1.5f, -3.5f, -5.5f}, slope[] = {-2, -2, -2};
    tn_plugin_info info = {.struct_size = TN_SIZE(tn_plugin_info)};
    tn_ctx *ctx = open_old(NULL);
    tn_array *x = test_array(ctx, 1, (int64_t[]){3}, values), *y, *out = NULL;
    tn_symbol *variable = NULL, *symbol = NULL;
    tn_cached_op *op = NULL;
    size_t count, i = 0;

    (void)state;
    assert_ok(tn_attach_grad(ctx, x, TN_MODE_WRITE, NULL));
    (void)tn_record_set(1);
    y = test_op(ctx, "acme_scale_shift", attrs, 1, &x); /* found by its note */
    (void)tn_record_set(0);
    test_values(y, expected, 3, 0);
    assert_ok(tn_backward(ctx, 1, &y, NULL, 0));
    test_values(tn_array_grad(x), slope, 3, 0);
    assert_ok(tn_symbol_variable(ctx, "x", &variable));
    const tn_symbol_call node = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .op = "acme_scale_shift",
                                 .attrs = attrs,
                                 .in_count = 1,
                                 .in = &variable};
    assert_ok(tn_symbol_op(ctx, &node, &symbol));
    assert_ok(tn_cached_op_create(ctx, symbol, NULL, &op));
    assert_ok(tn_cached_op_call(op, 1, &x, 1, &out));
    test_values(out, expected, 3, 0);
    assert_ok(tn_plugin_count(ctx, &count));
    do
        assert_ok(tn_plugin_at(ctx, i, &info));
    while (strcmp(info.name, "acme-operator") && ++i < count);
    assert_int_equal(info.state, TN_PLUGIN_LOADED);
    assert_string_equal(info.version, "1.0.0");
    tn_cached_op_release(op);
    tn_symbol_release(symbol);
    tn_symbol_release(variable);
    tn_array_release(out);
    tn_array_release(y);
    tn_array_release(x);
    test_close(ctx);
}

static void old_pool(void **state)
{
    tn_ctx *ctx = open_old("memory.cpu.pool=first-fit");
    tn_memory_stats stats = {.struct_size = TN_SIZE(tn_memory_stats)};
    const tn_device *cpu = NULL;

    (void)state;
    assert_ok(tn_device_get(ctx, "cpu", &cpu));
    for (int i = 0; i < 100; i++) {
        tn_array *a = NULL;

        assert_ok(tn_array_create(ctx, TN_F32, 1, (int64_t[]){1 + i * 37}, cpu, &a));
        assert_ok(tn_array_fill(a, i));
        tn_array_release(a);
    }
    assert_ok(tn_wait_all(ctx));
    assert_ok(tn_device_memory(ctx, cpu, TN_MEMORY_DEVICE, &stats));
    assert_true(stats.hits > 90 && stats.live == 0 && stats.cached >= 1u << 20);
    test_close(ctx);
}

#endif

/* ---- binaries of draft 1
 * -------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)

static void draft_refused(tn_ctx *ctx, const char *name)
{
    tn_plugin_info info = {.struct_size = TN_SIZE(tn_plugin_info)};
    size_t count, i = 0;

    assert_ok(tn_plugin_count(ctx, &count));
    do
        assert_ok(tn_plugin_at(ctx, i, &info));
    while (strcmp(info.name, name) && ++i < count);
    assert_string_equal(info.name, name);
    assert_int_equal(info.state, TN_PLUGIN_REFUSED);
    assert_int_equal(info.refusal, 5);
    assert_non_null(strstr(info.reason, "is built for ABI 1 draft 1, this core provides ABI 1 draft 2"));
}

static void draft1_refused(void **state)
{
    char path[4096], file[4200];
    const char *settings[] = {path, NULL}, *source = getenv("TENON_TEST_SOURCE");
    tn_ctx *ctx;
    size_t index;

    (void)state;
    (void)snprintf(path, sizeof path, "plugins.path=%s/tests/golden/plugins/draft1", source ? source : ".");
    ctx = test_open(settings);
    draft_refused(ctx, "acme-operator");
    draft_refused(ctx, "acme-pool");
    unserved_name(ctx, "acme_scale_shift", "acme-operator was refused");
    (void)snprintf(file, sizeof file, "%s/acme-pool.so", strchr(path, '=') + 1);
    assert_fails(tn_plugin_open(ctx, file, &index), TN_E_UNSUPPORTED);
    assert_int_equal(tn_error_number(), 3005);
    test_close(ctx);
}

#endif

/* ---- refusals
 * ------------------------------------------------------------------------------------------------ */

static void refused_by_name(void **state)
{
    char folder[] = "/tmp/tenon-versions-XXXXXX", path[64], setting[96];
    const char *settings[] = {setting, NULL};
    FILE *f;
    tn_ctx *ctx;

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "%s/no-plugin.so", folder);
    (void)snprintf(setting, sizeof setting, "plugins.path=%s", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    (void)fputs("this is no shared object", f);
    assert_int_equal(fclose(f), 0);
    ctx = test_open(settings);
    assert_fails(tn_plugin_load(ctx, "no-plugin"), TN_E_DEVICE);
    assert_non_null(strstr(tn_error_text(), "L03"));
    assert_non_null(strstr(tn_error_text(), path));
    assert_fails(tn_plugin_load(ctx, "no-plugi"), TN_E_KEY);
    assert_fails(tn_plugin_load(ctx, "plugin"), TN_E_KEY);
    assert_fails(tn_plugin_load(ctx, ""), TN_E_KEY);
    test_close(ctx);
    (void)unlink(path);
    (void)rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_kernels),
        cmocka_unit_test(versions_of_attributes),
        cmocka_unit_test(kernels_for_fake),
#if defined(__x86_64__)
        cmocka_unit_test(old_operator),
        cmocka_unit_test(old_pool),
        cmocka_unit_test(draft1_refused),
#endif
        cmocka_unit_test(refused_by_name),
    };

    return cmocka_run_group_tests_name("api.versions", tests, NULL, NULL);
}
