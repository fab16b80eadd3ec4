/*
 * An operator with outputs whose sizes only a run tells, beside one of known shape. A net that reads one of
 * them alone has the values of the call that reads all; an array is taken for the output of known shape, and
 * for no other.
 */
#include "api/later.h"

enum { OUTPUTS = 4, INVERSE = 2, ELEMENTS_MAX = 16 };

static const char *const attrs[] = {
    "return_index", "1", "return_inverse", "1", "return_counts", "1", NULL,
};
static const int64_t dims[][3] = {{7}, {3, 4}, {1}, {0}, {2, 0}};
static const int32_t ndims[] = {1, 2, 0, 1, 2};

static tn_array *numbers(tn_ctx *ctx, size_t k)
{
    static const float values[ELEMENTS_MAX] = {3, -1, 3, 0, 7, 7, -1, 2, 2, 2, 5, 0};

    return test_array(ctx, ndims[k], dims[k], values);
}

static tn_status unique(tn_ctx *ctx, tn_array *x, tn_array **out)
{
    const tn_op_call call = {
        .struct_size = TN_SIZE(tn_op_call), .in_count = 1, .op = "_npi_unique", .attrs = attrs, .in = &x};

    return tn_invoke_text(ctx, &call, OUTPUTS, out, NULL);
}

static void same(tn_array *got, tn_array *want)
{
    char bytes[2][8 * ELEMENTS_MAX] = {{0}};

    assert_ok(tn_array_wait(got));
    assert_ok(tn_array_wait(want));
    assert_int_equal(tn_array_bytes(got), tn_array_bytes(want));
    assert_ok(tn_array_read(got, bytes[0], tn_array_bytes(got)));
    assert_ok(tn_array_read(want, bytes[1], tn_array_bytes(want)));
    assert_memory_equal(bytes[0], bytes[1], sizeof bytes[0]);
}

/* Twice: the second call finds the program and its memory made. */
static void one_read(tn_ctx *ctx, uint32_t output, tn_array *x, tn_array *want)
{
    tn_symbol *v = NULL, *all = NULL, *one = NULL;
    tn_cached_op *op = NULL;

    assert_ok(tn_symbol_variable(ctx, "x", &v));
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .in_count = 1,
                                 .op = "_npi_unique",
                                 .name = "unique",
                                 .attrs = attrs,
                                 .in = &v};

    assert_ok(tn_symbol_op(ctx, &call, &all));
    assert_ok(tn_symbol_output(all, output, &one));
    assert_ok(tn_cached_op_create(ctx, one, NULL, &op));
    for (int turn = 0; turn < 2; turn++) {
        tn_array *got = NULL;

        assert_ok(tn_cached_op_call(op, 1, &x, 1, &got));
        same(got, want);
        tn_array_release(got);
    }
    tn_cached_op_release(op);
    tn_symbol_release(one);
    tn_symbol_release(all);
    tn_symbol_release(v);
}

static void read_alone(void **state)
{
    tn_ctx *ctx = test_open((const char *const[]){*state, NULL});

    for (size_t k = 0; k < sizeof ndims / sizeof *ndims; k++) {
        tn_array *x = numbers(ctx, k), *want[OUTPUTS] = {NULL};

        assert_ok(unique(ctx, x, want));
        for (uint32_t o = 0; o < OUTPUTS; o++)
            one_read(ctx, o, x, want[o]);
        for (uint32_t o = 0; o < OUTPUTS; o++)
            tn_array_release(want[o]);
        tn_array_release(x);
    }
    test_close(ctx);
}

static void given(void **state)
{
    tn_ctx *ctx = test_open((const char *const[]){*state, NULL});
    tn_array *x = numbers(ctx, 0), *want[OUTPUTS] = {NULL}, *place = NULL;

    assert_ok(unique(ctx, x, want));
    assert_ok(tn_array_create(ctx, TN_I64, 1, dims[0], NULL, &place));
    for (uint32_t o = 0; o < OUTPUTS; o++) {
        tn_array *out[OUTPUTS] = {NULL};

        out[o] = o ? place : x;
        if (o != INVERSE) {
            assert_fails(unique(ctx, x, out), TN_E_UNSUPPORTED);
            continue;
        }
        assert_ok(unique(ctx, x, out));
        assert_ptr_equal(out[o], place);
        for (uint32_t i = 0; i < OUTPUTS; i++) {
            same(out[i], want[i]);
            if (i != o)
                tn_array_release(out[i]);
        }
    }
    tn_array_release(place);
    for (uint32_t o = 0; o < OUTPUTS; o++)
        tn_array_release(want[o]);
    tn_array_release(x);
    test_close(ctx);
}

int main(void)
{
#define TEST(f, e)                                                                                           \
    {                                                                                                        \
#f, f, NULL, NULL, (void *)(uintptr_t)later_engines[e]                                               \
    }
    const struct CMUnitTest tests[] = {TEST(read_alone, 0), TEST(read_alone, 1), TEST(read_alone, 2),
                                       TEST(given, 0),      TEST(given, 1),      TEST(given, 2)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
