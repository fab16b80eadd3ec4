/*
 * A program's own operators that break their promises: what comes out is a status with the operator's name
 * and a reason, and the same one whether the call is eager or compiled.
 */
#include "api/support.h"

#include <stdio.h>

#include "tenon/plugin/util.h"

#define COUNT 3

static struct {
    tn_status prepare, run;
    const char *text; /* NULL: the function says nothing */
    uint32_t workspace_align;
    uint64_t workspace_bytes;
} does;

static const char *const data[] = {"data", NULL}, *const output[] = {"output", NULL};

static tn_status same(tn_infer *i)
{
    return tn_infer_same_shape(i);
}

static tn_status more(tn_infer *i)
{
    i->out_shape[0]->ndim = 1;
    i->out_shape[0]->dim[0] = 100;
    return TN_OK;
}

static tn_status open_size(tn_infer *i)
{
    i->out_shape[0]->ndim = 1;
    i->out_shape[0]->dim[0] = TN_DIM_UNKNOWN;
    return TN_OK;
}

static tn_status open_rank(tn_infer *i)
{
    (void)i;
    return TN_OK;
}

static tn_status wide(tn_infer *i)
{
    i->out_dtype[0] = TN_F64;
    return TN_OK;
}

#define OP(name_, shape_, ...)                                                                               \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_op, gradient), .version = 1, .name = name_, .doc = "test",        \
        .inputs = data, .outputs = output, .shape = shape_, __VA_ARGS__                                      \
    }
static const tn_op defs[] = {
    OP("own_plain", same, .flags = 0),
    OP("own_more", more, .flags = TN_OP_VIEW),
    OP("own_wide", same, .flags = TN_OP_VIEW, .dtype = wide),
    OP("own_open", open_size, .flags = 0),
    OP("own_rank", open_rank, .flags = 0),
};

static tn_status prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin;
    (void)node;
    if (does.workspace_bytes) {
        plan->workspace_bytes = does.workspace_bytes;
        plan->workspace_align = does.workspace_align;
    }
    return does.prepare && does.text ? tn_fail(err, does.prepare, does.text) : does.prepare;
}

static tn_status run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    if (plan->workspace_bytes && (uintptr_t)x->workspace % does.workspace_align)
        return tn_fail(err, TN_E_INTERNAL, "the workspace does not begin where it should");
    if (plan->workspace_bytes)
        memset(x->workspace, 0xab, plan->workspace_bytes);
    memcpy(x->out[0]->data, x->in[0]->data, x->in[0]->bytes);
    return does.run && does.text ? tn_fail(err, does.run, does.text) : does.run;
}

static const char *const types[] = {"*:f32", NULL};
#define KERNEL(op_)                                                                                          \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = op_, .name = op_ ".k",        \
        .device = "cpu", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC, .types = types, .prepare = prepare, .run = run,                    \
    }
static const tn_kernel plain = KERNEL("own_plain"), open_kernel = KERNEL("own_open"),
                       rank_kernel = KERNEL("own_rank");
static const tn_kernel *const kernels[] = {&plain, &open_kernel, &rank_kernel, NULL};
static const tn_kernel_table table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "cpu"), .kernels = kernels};
static const tn_capability *const capabilities[] = {&table.head, NULL};
static const tn_plugin own = {.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                              .magic = TN_MAGIC,
                              .abi_major = TN_ABI_MAJOR,
                              .abi_minor = TN_ABI_TARGET,
                              .abi_minor_min = TN_ABI_MIN,
                              .name = "own",
                              .version = "1.0.0",
                              .vendor = "test",
                              .license = "Apache-2.0",
                              .summary = "kernels that fail as they are told",
                              .capabilities = capabilities};

static tn_ctx *open_own(void)
{
    tn_ctx *ctx = test_open(NULL);

    memset(&does, 0, sizeof does);
    for (size_t i = 0; i < sizeof defs / sizeof *defs; i++)
        assert_ok(tn_op_register(ctx, &defs[i]));
    assert_ok(tn_plugin_add(ctx, &own));
    return ctx;
}

/* One call and its wait; the text of a failure is that of the thread. */
static tn_status eager(tn_ctx *ctx, const char *op)
{
    tn_array *x = test_array(ctx, 1, (int64_t[]){COUNT}, (const float[COUNT]){1, 2, 3}), *y = NULL;
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = op, .in_count = 1, .in = &x};
    tn_status st = tn_invoke_text(ctx, &call, 1, &y, NULL);

    if (!st)
        st = tn_array_wait(y);
    tn_array_release(y);
    tn_array_release(x);
    return st;
}

static tn_status compiled(tn_ctx *ctx, const char *op)
{
    tn_array *x = test_array(ctx, 1, (int64_t[]){COUNT}, (const float[COUNT]){1, 2, 3}), *y = NULL;
    tn_symbol *variable = NULL, *symbol = NULL;
    tn_cached_op *net = NULL;
    tn_status st;

    assert_ok(tn_symbol_variable(ctx, "x", &variable));
    assert_ok(tn_symbol_op(ctx,
                           &(tn_symbol_call){.struct_size = TN_SIZE(tn_symbol_call),
                                             .op = op,
                                             .name = "layer",
                                             .in_count = 1,
                                             .in = &variable},
                           &symbol));
    assert_ok(tn_cached_op_create(ctx, symbol, NULL, &net));
    st = tn_cached_op_call(net, 1, &x, 1, &y);
    if (!st)
        st = tn_array_wait(y);
    tn_array_release(y);
    tn_cached_op_release(net);
    tn_symbol_release(symbol);
    tn_symbol_release(variable);
    tn_array_release(x);
    return st;
}

static void says(const char *text)
{
    if (!strstr(tn_error_text(), text))
        fail_msg("\"%s\" is not in: %s", text, tn_error_text());
}

static void fails(tn_ctx *ctx, const char *op, tn_status status, const char *text)
{
    assert_fails(eager(ctx, op), status);
    says(text);
    assert_fails(compiled(ctx, op), status);
    says(text);
}

/* Nobody reads behind the end of an array because a definition says that its view is longer. */
static void views(void **state)
{
    tn_ctx *ctx = open_own();

    (void)state;
    fails(ctx, "own_more", TN_E_SHAPE, "a view has as many elements");
    fails(ctx, "own_wide", TN_E_DTYPE, "a view has the data type");
    test_close(ctx);
}

static void plans(void **state)
{
    tn_ctx *ctx = open_own();

    (void)state;
    fails(ctx, "own_open", TN_E_UNSUPPORTED, "which the operator leaves open");
    fails(ctx, "own_rank", TN_E_UNSUPPORTED, "which the operator leaves open");
    does.workspace_bytes = 8;
    does.workspace_align = 8192;
    fails(ctx, "own_plain", TN_E_UNSUPPORTED, "no power of two up to 4096");
    does.workspace_align = 48;
    fails(ctx, "own_plain", TN_E_UNSUPPORTED, "no power of two up to 4096");
    does.workspace_align = 4096;
    does.workspace_bytes = UINT64_MAX;
    fails(ctx, "own_plain", TN_E_UNSUPPORTED, "a workspace that no memory holds");
    test_close(ctx);
}

/* From one byte to a page, with a last byte that is the kernel's, too. */
static void workspaces(void **state)
{
    (void)state;
    for (uint32_t align = 1; align <= 4096; align *= 2) {
        tn_ctx *ctx = open_own();

        does.workspace_align = align;
        does.workspace_bytes = 100 + align % 7;
        assert_ok(eager(ctx, "own_plain"));
        assert_ok(compiled(ctx, "own_plain"));
        test_close(ctx);
    }
}

static void prepare_fails(void **state)
{
    (void)state;
    for (tn_status st = TN_E_ARG; st <= TN_E_INTERNAL; st++) {
        tn_ctx *ctx = open_own();

        does.prepare = st;
        fails(ctx, "own_plain", st, st == TN_E_NOMEM ? "out of memory" : "own_plain");
        does.text = "100%s of it\nis wrong";
        fails(ctx, "own_plain", st, "100%s of it\\x0ais wrong");
        test_close(ctx);
    }
}

static void run_fails(void **state)
{
    (void)state;
    for (tn_status st = TN_E_ARG; st <= TN_E_INTERNAL; st++) {
        tn_ctx *ctx = open_own();

        does.run = st;
        fails(ctx, "own_plain", st, "failed without saying why");
        does.text = "100%s of it\nis wrong";
        assert_fails(eager(ctx, "own_plain"), st);
        assert_string_equal(tn_error_text(), "own_plain: 100%s of it\\x0ais wrong");
        assert_fails(compiled(ctx, "own_plain"), st);
        assert_string_equal(tn_error_text(), "program: node \"layer\": 100%s of it\\x0ais wrong");
        does.run = 99; /* no status at all */
        fails(ctx, "own_plain", TN_E_INTERNAL, "100%s of it\\x0ais wrong");
        assert_ok(tn_close(ctx)); /* it counts what failed */
    }
}

/* Definitions whose names are taken are left out, each is told, and the others of the table are taken. */
static void taken(void **state)
{
    static const tn_op fresh = OP("own_fresh", same, .flags = 0), core = OP("exp", same, .flags = 0),
                       plain_again = OP("own_plain", same, .flags = 0);
    static const tn_op *const ops[] = {&core, &fresh, &fresh, &plain_again, NULL};
    static const tn_op_table op_table = {.head = TN_CAPABILITY(tn_op_table, ops, TN_KIND_OPS, "late"),
                                         .ops = ops};
    static const tn_capability *const tables[] = {&op_table.head, NULL};
    tn_plugin late = own;
    tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};
    tn_ctx *ctx = open_own();

    (void)state;
    late.name = "late";
    late.capabilities = tables;
    assert_ok(tn_plugin_add(ctx, &late));
    assert_fails(tn_op_find(ctx, "own_absent", &info), TN_E_KEY);
    says("plugin late: operator exp: the name exp is taken");
    says("plugin late: operator own_plain: the name own_plain is taken");
    assert_ok(tn_op_find(ctx, "own_fresh", &info));
    assert_ptr_equal(info.definition, &fresh);
    assert_ok(tn_op_find(ctx, "exp", &info));
    assert_ptr_not_equal(info.definition, &core);
    assert_ok(tn_close(ctx));
}

/* Neither a call, nor a site, nor a symbol may name it; x and v: an argument. */
static void assert_unnamed(tn_ctx *ctx, const char *op, uint32_t count, tn_array *x, tn_symbol *v)
{
    tn_array *const in[] = {x, x};
    tn_symbol *const symbols[] = {v, v};
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .op = op, .in_count = count, .in = in};
    const tn_symbol_call node = {
        .struct_size = TN_SIZE(tn_symbol_call), .op = op, .in_count = count, .in = symbols};
    tn_array *y = NULL;
    tn_symbol *s = NULL;
    tn_site *site = NULL;

    assert_fails(tn_invoke_text(ctx, &call, 1, &y, NULL), TN_E_UNSUPPORTED);
    assert_int_equal(tn_error_number(), 1303);
    assert_fails(tn_site_create(ctx, op, NULL, &site), TN_E_UNSUPPORTED);
    assert_int_equal(tn_error_number(), 1303);
    assert_fails(tn_symbol_op(ctx, &node, &s), TN_E_UNSUPPORTED);
    assert_int_equal(tn_error_number(), 1303);
    assert_true(!y && !site && !s);
}

/* What only gradients are made of cannot be called by name, whoever brought it; it can be described. */
static void parts_of_gradients(void **state)
{
    static const char *const aliases[] = {"own_back_too", NULL};
    static const tn_op own_back = OP("own_back", same, .flags = TN_OP_BACKWARD, .aliases = aliases);
    static const char *const names[] = {"_backward_slice_like", "_sum_like", "own_back", "own_back_too"};
    tn_ctx *ctx = open_own();
    tn_array *x = NULL;
    tn_symbol *v = NULL;

    (void)state;
    assert_ok(tn_op_register(ctx, &own_back));
    assert_ok(tn_array_from(ctx, TN_F32, 1, (const int64_t[]){1}, (const float[]){1}, &x));
    assert_ok(tn_symbol_variable(ctx, "x", &v));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};

        assert_unnamed(ctx, names[i], i < 2 ? 2 : 1, x, v);
        assert_ok(tn_op_find(ctx, names[i], &info));
        assert_true(info.definition->flags & TN_OP_BACKWARD);
    }
    tn_array_release(x);
    tn_symbol_release(v);
    assert_ok(tn_close(ctx));
}

/* What only passes make cannot be called by name either. */
static void parts_of_programs(void **state)
{
    static const char *const names[] = {"_reorder",   "_fused_conv", "_fused_dense", "_fold_weight",
                                        "_fold_bias", "_fill",       "_move"};
    tn_ctx *ctx = open_own();
    tn_array *x = NULL;
    tn_symbol *v = NULL;
    tn_site *site = NULL;

    (void)state;
    assert_ok(tn_array_from(ctx, TN_F32, 1, (const int64_t[]){1}, (const float[]){1}, &x));
    assert_ok(tn_symbol_variable(ctx, "x", &v));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tn_op_info info = {.struct_size = TN_SIZE(tn_op_info)};

        assert_unnamed(ctx, names[i], 1, x, v);
        assert_ok(tn_op_find(ctx, names[i], &info));
        assert_true(info.definition->flags & TN_OP_INTERNAL);
        assert_false(info.differentiable);
    }
    assert_fails(tn_site_create(ctx, "_reordr", NULL, &site), TN_E_KEY); /* nor is it suggested */
    assert_null(strstr(tn_error_text(), "_reorder"));
    tn_array_release(x);
    tn_symbol_release(v);
    assert_ok(tn_close(ctx));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views),
        cmocka_unit_test(plans),
        cmocka_unit_test(workspaces),
        cmocka_unit_test(prepare_fails),
        cmocka_unit_test(run_fails),
        cmocka_unit_test(taken),
        cmocka_unit_test(parts_of_gradients),
        cmocka_unit_test(parts_of_programs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
