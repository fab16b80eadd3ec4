/*
 * Types of under a byte: arrays, casts, an operator of a plugin that takes them (tests/check/kinds/packed.c),
 * called and in a net, and what is refused by name.
 */
#include "api/support.h"

#include <stdio.h>

enum { ROWS = 3, COLUMNS = 3 };

static const int8_t weights[ROWS * COLUMNS] = {-8, 7, 1, 0, -1, 2, 3, -4, 5};
static const float data[COLUMNS] = {1, 2, -3}, scales[ROWS] = {1, 0.5f, -2};
/* -8 + 14 - 3, (-2 - 6) / 2, -2 * (3 - 8 - 15) */
static const float products[ROWS] = {3, -4, 40};
static const int64_t shape[] = {ROWS, COLUMNS};

static tn_array *packed(tn_ctx *ctx, int32_t dtype)
{
    tn_array *bytes = NULL, *a = NULL;

    assert_ok(tn_array_from(ctx, TN_I8, 2, shape, weights, &bytes));
    assert_ok(tn_array_cast(ctx, bytes, dtype, &a));
    tn_array_release(bytes);
    return a;
}

static void says(const char *why)
{
    if (!strstr(tn_error_text(), why))
        fail_msg("\"%s\" has no \"%s\" in it", tn_error_text(), why);
}

static void arrays(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    static const uint8_t want[] = {0x78, 0x01, 0x2f, 0xc3, 0x05};
    uint8_t raw[5] = {0};
    int8_t back[ROWS * COLUMNS];
    tn_array *a = packed(ctx, TN_I4), *b = NULL, *view = NULL;
    int32_t dtype;

    (void)state;
    assert_string_equal(tn_dtype_name(TN_U4), "uint4");
    assert_ok(tn_dtype_parse("int4", &dtype));
    assert_int_equal(dtype, TN_I4);
    assert_int_equal(tn_array_count(a), 9);
    assert_int_equal(tn_array_bytes(a), 5);
    assert_ok(tn_array_read(a, raw, sizeof raw));
    assert_memory_equal(raw, want, sizeof raw);
    assert_fails(tn_array_read(a, raw, 9), TN_E_ARG);
    assert_ok(tn_array_from(ctx, TN_I4, 2, shape, want, &b));
    assert_ok(tn_array_copy(b, a));
    assert_ok(tn_array_reshape(a, 1, (const int64_t[]){9}, &view));
    tn_array_release(b);
    assert_ok(tn_array_cast(ctx, view, TN_I8, &b));
    assert_ok(tn_array_read(b, back, sizeof back));
    assert_memory_equal(back, weights, sizeof back);
    assert_ok(tn_array_fill(view, -3));
    assert_ok(tn_array_read(a, raw, sizeof raw));
    assert_memory_equal(raw, ((uint8_t[]){0xdd, 0xdd, 0xdd, 0xdd, 0x0d}), sizeof raw);
    tn_array_release(view);
    tn_array_release(b);
    tn_array_release(a);
    test_close(ctx);
}

/* Strided on the other side; the operator Cast gives what tn_array_cast does. */
static void casts(void **state)
{
    static const float floats[] = {1, 100, -100, 2.9f, -0.5f, 7, 3, 0, -8};
    static const float saturated[] = {1, 2, 3, 7, 0, 0, -8, 7, -8}; /* turned */
    static const char *const to_packed[] = {"dtype", "int4", NULL}, *const to_float[] = {"dtype", "float32",
                                                                                         NULL};
    tn_ctx *ctx = test_open(NULL);
    tn_array *x = test_array(ctx, 2, shape, floats), *turned = NULL, *a = NULL, *y, *p;

    (void)state;
    assert_ok(tn_array_view(x, 0, 2, shape, (const int64_t[]){1, COLUMNS}, &turned));
    assert_ok(tn_array_cast(ctx, turned, TN_I4, &a));
    y = test_op(ctx, "Cast", to_float, 1, &a);
    test_values(y, saturated, ROWS * COLUMNS, 0);
    tn_array_release(y);
    p = test_op(ctx, "Cast", to_packed, 1, &x);
    y = test_op(ctx, "Cast", to_float, 1, &p);
    test_values(y, (const float[]){1, 7, -8, 2, 0, 7, 3, 0, -8}, ROWS * COLUMNS, 0);
    assert_ok(tn_array_copy(a, turned)); /* and back into what has strides */
    test_values(x, (const float[]){1, 7, -8, 2, 0, 7, 3, 0, -8}, ROWS * COLUMNS, 0);
    tn_array_release(p);
    tn_array_release(y);
    tn_array_release(a);
    tn_array_release(turned);
    tn_array_release(x);
    test_close(ctx);
}

static tn_ctx *open_kind(void)
{
    tn_ctx *ctx = test_open(NULL);
    char path[4096];
    size_t index;

    (void)snprintf(path, sizeof path, "%s/tests/check/kinds/kind-packed-healthy.so",
                   getenv("TENON_TEST_BUILD"));
    assert_ok(tn_plugin_open(ctx, path, &index));
    return ctx;
}

static void called(void **state)
{
    tn_ctx *ctx = open_kind();
    tn_array *in[] = {packed(ctx, TN_I4), test_array(ctx, 1, shape, data), test_array(ctx, 1, shape, scales)};
    tn_array *y = test_op(ctx, "kind_packed_rows", NULL, 3, in), *out = NULL, *scaled;
    tn_symbol *v[3], *rows = NULL, *net = NULL;
    tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .in_count = 3, .op = "kind_packed_rows", .in = v};
    tn_cached_op *op = NULL;

    (void)state;
    test_values(y, products, ROWS, 0);
    tn_array_release(y);
    for (int i = 0; i < 3; i++)
        assert_ok(tn_symbol_variable(ctx, ((const char *const[]){"weight", "data", "scale"})[i], &v[i]));
    assert_ok(tn_symbol_op(ctx, &call, &rows));
    call =
        (tn_symbol_call){.struct_size = TN_SIZE(tn_symbol_call), .in_count = 1, .op = "square", .in = &rows};
    assert_ok(tn_symbol_op(ctx, &call, &net));
    assert_ok(tn_cached_op_create(ctx, net, NULL, &op));
    assert_ok(tn_cached_op_call(op, 3, in, 1, &out));
    test_values(out, (const float[]){9, 16, 1600}, ROWS, 0);
    tn_array_release(out);
    assert_ok(tn_attach_grad(ctx, in[2], TN_MODE_WRITE, NULL)); /* a recorded call keeps its packed input */
    (void)tn_record_set(1);
    scaled = test_op(ctx, "square", NULL, 1, &in[2]);
    (void)tn_record_set(0);
    assert_ok(tn_backward(ctx, 1, &scaled, NULL, 0));
    tn_array_release(scaled);
    for (int i = 0; i < 3; i++) {
        tn_symbol_release(v[i]);
        tn_array_release(in[i]);
    }
    tn_symbol_release(rows);
    tn_symbol_release(net);
    tn_cached_op_release(op);
    test_close(ctx);
}

static void refused(void **state)
{
    tn_ctx *ctx = test_open(NULL);
    tn_array *a = packed(ctx, TN_U4), *out = NULL;
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .in_count = 1, .op = "relu", .in = &a};
    tn_array_memory m = {.struct_size = TN_SIZE(tn_array_memory),
                         .dtype = TN_U4,
                         .ndim = 2,
                         .shape = shape,
                         .stride = (const int64_t[]){1, 3},
                         .bytes = 5};
    uint8_t five[5] = {0};
    tn_params *p = NULL;
    uint64_t bytes;
    void *file = NULL;

    (void)state;
    assert_true(tn_invoke_text(ctx, &call, 1, &out, NULL) != TN_OK);
    says("uint4");
    assert_fails(tn_array_slice(a, 0, 1, &out), TN_E_UNSUPPORTED);
    says("uint4 shares its bytes: there are no views of parts");
    assert_fails(tn_array_at(a, 0, &out), TN_E_UNSUPPORTED);
    assert_fails(tn_array_view(a, 0, 2, shape, (const int64_t[]){1, 3}, &out), TN_E_UNSUPPORTED);
    m.data = five;
    assert_fails(tn_array_wrap(ctx, &m, &out), TN_E_UNSUPPORTED);
    m.stride = NULL;
    m.bytes = 4;
    assert_fails(tn_array_wrap(ctx, &m, &out), TN_E_ARG);
    m.bytes = 5;
    assert_ok(tn_array_wrap(ctx, &m, &out));
    tn_array_release(out);
    out = NULL;
    assert_ok(tn_params_create(&p));
    assert_ok(tn_params_add(p, "w", a));
    assert_fails(tn_params_to_memory(p, &file, &bytes), TN_E_UNSUPPORTED);
    says("a .params file has no type for uint4");
    assert_fails(tn_npy_save(a, "/dev/null/x.npy"), TN_E_UNSUPPORTED);
    says("uint4");
    tn_params_destroy(p);
    tn_array_release(a);
    test_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays),
        cmocka_unit_test(casts),
        cmocka_unit_test(called),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
