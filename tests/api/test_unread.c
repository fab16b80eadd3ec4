/*
 * What a net does not read. An operator with outputs whose sizes only a run tells, beside one of known shape:
 * a net that reads one of them alone has the values of the call that reads all; an array is taken for the
 * output of known shape, and for no other. Values that are read for their shape alone: what refuses to
 * compute them fails the net, as it fails the operators called by themselves.
 */
#include "api/later.h"
#include "support/symbols.h"

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

/* With x = -1, which potrf refuses: as an input, or as a constant of a program. */
static void shape_of_refused(void **state)
{
    tn_ctx *ctx = test_open((const char *const[]){*state, NULL});
    tn_array *x = test_array(ctx, 2, (int64_t[]){1, 1}, (const float[]){-1}), *y = NULL;
    tn_symbol *v = NULL, *net;
    tn_cached_op *op = NULL;
    tn_params *params = NULL;
    tn_program *p = NULL;

    assert_ok(tn_symbol_variable(ctx, "x", &v));
    net = symbol_node(ctx, "_linalg_potrf", NULL, NULL, v, NULL);
    net = symbol_node(ctx, "_linalg_potri", NULL, NULL, net, NULL);
    net = symbol_node(ctx, "_random_normal_like", NULL, NULL, net, NULL);
    assert_ok(tn_cached_op_create(ctx, net, NULL, &op));
    assert_ok(tn_cached_op_call(op, 1, &x, 1, &y));
    assert_fails(tn_array_wait(y), TN_E_ARG);
    tn_array_release(y);
    tn_cached_op_release(op);
    assert_ok(tn_params_create(&params));
    assert_ok(tn_params_add(params, "x", x));
    assert_ok(tn_program_create(ctx, net, params, &p));
    y = NULL;
    assert_ok(tn_program_run(p, 0, NULL, 1, &y));
    assert_fails(tn_array_wait(y), TN_E_ARG);
    tn_array_release(y);
    tn_program_destroy(p);
    tn_params_destroy(params);
    tn_symbol_release(net);
    tn_array_release(x);
    assert_ok(tn_close(ctx));
}

/* A number that a run refuses, on another device than the reader of the shape. */
static void shape_of_refused_elsewhere(void **state)
{
    tn_ctx *ctx = test_open((const char *const[]){*state, NULL});
    const tn_cached_options flags = {.struct_size = TN_SIZE(tn_cached_options), .static_alloc = 1};
    tn_symbol *net = symbol_node(ctx, "_random_exponential", NULL, LIST("lam", "-1"), NULL, NULL);
    tn_cached_op *op = NULL;
    tn_array *y = NULL;

    net = symbol_node(ctx, "_CrossDeviceCopy", NULL, NULL, net, NULL);
    net = symbol_node(ctx, "_random_gamma_like", NULL, NULL, net, NULL);
    assert_ok(tn_cached_op_create(ctx, net, &flags, &op));
    assert_ok(tn_cached_op_call(op, 0, NULL, 1, &y));
    assert_fails(tn_array_wait(y), TN_E_ATTR);
    tn_array_release(y);
    tn_cached_op_release(op);
    tn_symbol_release(net);
    assert_ok(tn_close(ctx));
}

int main(void)
{
#define TEST(f, e)                                                                                           \
    {                                                                                                        \
#f, f, NULL, NULL, (void *)(uintptr_t)later_engines[e]                                               \
    }
    const struct CMUnitTest tests[] = {TEST(read_alone, 0),
                                       TEST(read_alone, 1),
                                       TEST(read_alone, 2),
                                       TEST(given, 0),
                                       TEST(given, 1),
                                       TEST(given, 2),
                                       TEST(shape_of_refused, 0),
                                       TEST(shape_of_refused_elsewhere, 0)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
