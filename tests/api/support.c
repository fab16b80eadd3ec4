#include "api/support.h"

#include <math.h>
#include <stdio.h>

#include "support/symbols.h"

void test_status(tn_status got, tn_status want, const char *what, const char *file, int line)
{
    if (got == want && (got == TN_OK || (tn_error_code() == got && tn_error_text()[0])))
        return;
    print_error("%s:%d: %s gave %s (%s), wanted %s\n", file, line, what, tn_status_name(got), tn_error_text(),
                tn_status_name(want));
    _fail(file, line);
}

tn_status test_open_with(const char *const *more, tn_ctx **out)
{
    /* Nets are compared with calls to the last bit, so without the passes that only keep within bounds. */
    const char *settings[32] = {"plugins.trust=off", "compile.passes_off=fold,fuse,layout"};
    const char *folder = getenv("TENON_TEST_PLUGINS");
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM};
    char path[4096];
    size_t count = 2;

    if (folder) {
        (void)snprintf(path, sizeof path, "plugins.path=%s", folder);
        settings[count++] = path;
    }
    while (more && *more)
        settings[count++] = *more++;
    o.settings = settings;
    return tn_open(&o, out);
}

tn_ctx *test_open(const char *const *more)
{
    tn_ctx *ctx = NULL;

    assert_ok(test_open_with(more, &ctx));
    return ctx;
}

void test_close(tn_ctx *ctx)
{
    tn_stats stats = {.struct_size = TN_SIZE(tn_stats)};

    assert_ok(tn_wait_all(ctx));
    assert_ok(tn_ctx_stats(ctx, &stats));
    assert_int_equal(stats.failed, 0);
    assert_ok(tn_close(ctx));
}

tn_array *test_array(tn_ctx *ctx, int32_t ndim, const int64_t *shape, const float *values)
{
    tn_array *a = NULL;

    assert_ok(tn_array_from(ctx, TN_F32, ndim, shape, values, &a));
    return a;
}

void test_values(tn_array *a, const float *expected, size_t count, float tolerance)
{
    float *got = malloc((count ? count : 1) * sizeof *got);

    assert_non_null(got);
    assert_int_equal(tn_array_count(a), count);
    assert_ok(tn_array_read(a, got, count * sizeof *got));
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(got[i] - expected[i]) <= tolerance))
            fail_msg("element %zu is %g, wanted %g", i, (double)got[i], (double)expected[i]);
    free(got);
}

tn_array *test_op(tn_ctx *ctx, const char *op, const char *const *attrs, uint32_t in_count,
                  tn_array *const *in)
{
    const tn_op_call call = {
        .struct_size = TN_SIZE(tn_op_call), .in_count = in_count, .op = op, .attrs = attrs, .in = in};
    tn_array *out = NULL;
    uint32_t made = 0;

    assert_ok(tn_invoke_text(ctx, &call, 1, &out, &made));
    assert_int_equal(made, 1);
    return out;
}

tn_symbol *test_node(tn_ctx *ctx, const char *op, const char *name, const char *const *attrs, tn_symbol *in)
{
    return symbol_node(ctx, op, name, attrs, in, NULL);
}

void test_use(tn_ctx *ctx)
{
    tn_array *a = NULL, *b, *c;

    assert_ok(tn_array_zeros(ctx, TN_F32, 2, (int64_t[]){3, 3}, NULL, &a));
    assert_ok(tn_attach_grad(ctx, a, TN_MODE_ADD, NULL));
    tn_record_set(1);
    b = test_op(ctx, "dot", NULL, 2, (tn_array *[]){a, a});
    c = test_op(ctx, "sum", NULL, 1, &b);
    tn_record_set(0);
    assert_ok(tn_backward(ctx, 1, &c, NULL, 0));
    assert_ok(tn_array_wait(tn_array_grad(a)));
    tn_array_release(a);
    tn_array_release(b);
    tn_array_release(c);
}
