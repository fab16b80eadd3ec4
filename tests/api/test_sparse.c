/*
 * Sparse arrays from a program to a plugin's operators and back (tests/check/kinds/sparse.c): calls, nets,
 * files, and everything that is refused.
 */
#include "api/support.h"

#include <stdio.h>

enum { ROWS = 4, COLUMNS = 3, STORED = 4 };

static const int64_t shape[] = {ROWS, COLUMNS}, starts[] = {0, 2, 2, 3, 4}, columns[] = {0, 2, 1, 2};
static const float csr_values[] = {1, 2, 4, -8}, csr_sums[] = {3, 0, 4, -8};
static const float matrix[] = {1, 2, 3, -1, 5, 6, 0.5f, 8, 9, -2, 11, 12};

static tn_ctx *open_set(const char *plugin, const char *setting)
{
    tn_ctx *ctx = test_open((const char *const[]){setting, NULL});
    char path[4096];
    size_t index;

    (void)snprintf(path, sizeof path, "%s/tests/check/kinds/kind-sparse-%s.so", getenv("TENON_TEST_BUILD"),
                   plugin);
    assert_ok(tn_plugin_open(ctx, path, &index));
    return ctx;
}

static tn_ctx *open_with(const char *plugin)
{
    return open_set(plugin, NULL);
}

static tn_array_sparse csr_of(void)
{
    return (tn_array_sparse){.struct_size = TN_SIZE(tn_array_sparse),
                             .storage = TN_STORAGE_CSR,
                             .dtype = TN_F32,
                             .ndim = 2,
                             .shape = shape,
                             .stored = STORED,
                             .values = csr_values,
                             .indices = columns,
                             .indptr = starts};
}

static tn_status invoke(tn_ctx *ctx, const char *op, const char *above, tn_array *in, tn_array **out)
{
    const char *const attrs[] = {"above", above, NULL};
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                             .in_count = 1,
                             .op = op,
                             .attrs = above ? attrs : NULL,
                             .in = &in};

    return tn_invoke_text(ctx, &call, 1, out, NULL);
}

static void says(const char *why)
{
    if (!strstr(tn_error_text(), why))
        fail_msg("\"%s\" has no \"%s\" in it", tn_error_text(), why);
}

/* ---- calls ------------------------------------------------------------------------------------------- */

static void csr_read(void **state)
{
    tn_ctx *ctx = open_with("healthy");
    const tn_array_sparse from = csr_of();
    tn_array *a = NULL, *y = NULL, *part = NULL;

    (void)state;
    assert_ok(tn_array_sparse_from(ctx, &from, &a));
    assert_int_equal(tn_array_storage(a), TN_STORAGE_CSR);
    for (int turn = 0; turn < 2; turn++) { /* the second time by the signature of the first */
        assert_ok(invoke(ctx, "kind_csr_sums", NULL, a, &y));
        test_values(y, csr_sums, ROWS, 0);
        tn_array_release(y);
        y = NULL;
    }
    assert_ok(tn_array_values(a, &part));
    assert_ok(tn_array_write(part, (const float[]){1, 1, 1, 1}, sizeof(float[4])));
    tn_array_release(part);
    assert_ok(invoke(ctx, "kind_csr_sums", NULL, a, &y));
    test_values(y, (const float[]){2, 0, 1, 1}, ROWS, 0);
    tn_array_release(y);
    assert_ok(tn_array_aux(a, 1, &part)); /* what was checked stays */
    assert_fails(tn_array_write(part, columns, sizeof columns), TN_E_STATE);
    assert_fails(tn_array_fill(part, 7), TN_E_STATE);
    tn_array_release(part);
    tn_array_release(a);
    test_close(ctx);
}

static void rows_are(tn_array *y, int64_t count, const int64_t *ids, const float *values)
{
    tn_array *part = NULL;
    int64_t got[ROWS];
    const int64_t *dims;
    int32_t ndim;

    assert_int_equal(tn_array_storage(y), TN_STORAGE_ROW_SPARSE);
    assert_ok(tn_array_shape(y, &ndim, &dims));
    assert_true(ndim == 2 && dims[0] == ROWS && dims[1] == COLUMNS);
    assert_ok(tn_array_values(y, &part));
    assert_ok(tn_array_shape(part, &ndim, &dims));
    assert_true(ndim == 2 && dims[0] == count && dims[1] == COLUMNS);
    test_values(part, values, (size_t)count * COLUMNS, 0);
    tn_array_release(part);
    assert_ok(tn_array_aux(y, 0, &part));
    assert_int_equal(tn_array_count(part), count);
    assert_ok(tn_array_read(part, got, (uint64_t)count * sizeof *got));
    assert_memory_equal(got, ids, (size_t)count * sizeof *got);
    tn_array_release(part);
}

static void rows_written(void **state)
{
    tn_ctx *ctx = open_with("healthy");
    tn_array *x = test_array(ctx, 2, shape, matrix), *y = NULL;

    (void)state;
    assert_ok(invoke(ctx, "kind_rows_above", "0", x, &y));
    rows_are(y, 2, (const int64_t[]){0, 2}, (const float[]){1, 2, 3, 0.5f, 8, 9});
    assert_fails(invoke(ctx, "kind_rows_above", "0", x, &y), TN_E_UNSUPPORTED); /* y is given */
    says("number of stored elements");
    tn_array_release(y);
    y = NULL;
    assert_ok(invoke(ctx, "kind_rows_above", "100", x, &y));
    rows_are(y, 0, NULL, NULL);
    tn_array_release(y);
    tn_array_release(x);
    test_close(ctx);
}

/* Saved and loaded again, straight from a call that may still run. */
static void saved(void **state)
{
    tn_ctx *ctx = open_with("healthy");
    tn_array *x = test_array(ctx, 2, shape, matrix), *y = NULL, *again = NULL;
    tn_params *p = NULL, *read = NULL;
    uint64_t bytes = 0;
    void *file = NULL;

    (void)state;
    assert_ok(invoke(ctx, "kind_rows_above", "0", x, &y));
    assert_ok(tn_params_create(&p));
    assert_ok(tn_params_add(p, "rows", y));
    assert_ok(tn_params_to_memory(p, &file, &bytes));
    assert_ok(tn_params_from_memory(ctx, file, bytes, NULL, &read));
    assert_ok(tn_params_get(read, "rows", &again));
    rows_are(again, 2, (const int64_t[]){0, 2}, (const float[]){1, 2, 3, 0.5f, 8, 9});
    tn_free(file);
    tn_array_release(again);
    tn_params_destroy(p);
    tn_params_destroy(read);
    tn_array_release(y);
    tn_array_release(x);
    test_close(ctx);
}

/* A net over sparse arrays is called operator by operator. */
static void nets(void **state)
{
    tn_ctx *ctx = open_with("healthy");
    const tn_array_sparse from = csr_of();
    tn_symbol *v = NULL, *sums = NULL, *square = NULL;
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call), .in_count = 1, .op = "kind_csr_sums"};
    tn_cached_op *op = NULL;
    tn_array *a = NULL, *dense, *y = NULL;

    (void)state;
    assert_ok(tn_array_sparse_from(ctx, &from, &a));
    assert_ok(tn_symbol_variable(ctx, "x", &v));
    call.in = &v;
    assert_ok(tn_symbol_op(ctx, &call, &sums));
    call.op = "square";
    call.in = &sums;
    assert_ok(tn_symbol_op(ctx, &call, &square));
    assert_ok(tn_cached_op_create(ctx, square, NULL, &op));
    assert_ok(tn_cached_op_call(op, 1, &a, 1, &y));
    test_values(y, (const float[]){9, 0, 16, 64}, ROWS, 0);
    tn_array_release(y);
    y = NULL;
    dense = test_array(ctx, 2, shape, matrix);
    assert_fails(tn_cached_op_call(op, 1, &dense, 1, &y), TN_E_UNSUPPORTED);
    tn_array_release(dense);
    tn_array_release(a);
    tn_cached_op_release(op);
    tn_symbol_release(v);
    tn_symbol_release(sums);
    tn_symbol_release(square);
    test_close(ctx);
}

/* ---- refusals ---------------------------------------------------------------------------------------- */

static void calls_refused(void **state)
{
    tn_ctx *ctx = open_set("healthy", "exec.storage_fallback=error");
    const tn_array_sparse from = csr_of();
    tn_array *x = test_array(ctx, 2, shape, matrix), *a = NULL, *y = NULL;

    (void)state;
    assert_ok(tn_array_sparse_from(ctx, &from, &a));
    assert_fails(invoke(ctx, "kind_csr_sums", NULL, x, &y), TN_E_UNSUPPORTED);
    says("operator kind_csr_sums: input 0 is dense, not csr");
    assert_fails(invoke(ctx, "kind_rows_above", NULL, a, &y), TN_E_UNSUPPORTED);
    says("operator kind_rows_above: input 0 is csr, not dense");
    assert_fails(invoke(ctx, "exp", NULL, a, &y), TN_E_UNSUPPORTED);
    says("operator exp: input 0 is sparse (csr)");
    assert_fails(tn_attach_grad(ctx, a, TN_MODE_WRITE, NULL), TN_E_UNSUPPORTED);
    says("a csr array takes no gradient");
    assert_fails(tn_attach_grad(ctx, x, TN_MODE_WRITE, a), TN_E_UNSUPPORTED);
    assert_null(y);
    tn_array_release(a);
    tn_array_release(x);
    test_close(ctx);
}

/* What a kernel does wrong comes out at the wait, by its name, before anybody trusts it. */
static void kernels_found(void **state)
{
    static const struct {
        const char *plugin, *why;
        tn_status status;
    } rows[] = {{"rows-reversed", "wrote output 0 (row_sparse) with a row id out of order", TN_E_INTERNAL},
                {"rows-one-more", "wrote output 0 (row_sparse) with a row id out of order", TN_E_INTERNAL},
                {"no-resize", "gave output 0 no size", TN_E_INTERNAL}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_ctx *ctx = open_with(rows[i].plugin);
        tn_array *x = test_array(ctx, 2, shape, matrix), *y = NULL, *part = NULL;

        assert_ok(invoke(ctx, "kind_rows_above", "0", x, &y));
        assert_fails(tn_array_wait(y), rows[i].status);
        says(rows[i].why);
        assert_true(tn_array_values(y, &part) || tn_array_wait(part));
        tn_array_release(part);
        tn_array_release(y);
        tn_array_release(x);
        (void)tn_wait_all(ctx); /* tells it once more */
        assert_ok(tn_close(ctx));
    }
}

typedef struct hostile_row {
    const char *what;
    int32_t storage, ndim;
    int64_t stored, shape[2], indices[4], indptr[5];
    uint32_t missing; /* bits: values, indices, indptr, shape */
    tn_status status;
} hostile_row;

#define CSR TN_STORAGE_CSR, 2
#define ROW TN_STORAGE_ROW_SPARSE, 2
static const hostile_row hostile[] = {
    {"no values", CSR, 2, {2, 3}, {0, 1}, {0, 1, 2}, 1, TN_E_ARG},
    {"no indices", ROW, 2, {2, 3}, {0, 1}, {0}, 2, TN_E_ARG},
    {"no row starts", CSR, 2, {2, 3}, {0, 1}, {0, 1, 2}, 4, TN_E_ARG},
    {"no shape", CSR, 2, {2, 3}, {0, 1}, {0, 1, 2}, 8, TN_E_ARG},
    {"rows descend", ROW, 2, {4, 3}, {2, 1}, {0}, 0, TN_E_ARG},
    {"a row twice", ROW, 2, {4, 3}, {2, 2}, {0}, 0, TN_E_ARG},
    {"a row beyond", ROW, 1, {4, 3}, {4}, {0}, 0, TN_E_ARG},
    {"a negative row", ROW, 1, {4, 3}, {-1}, {0}, 0, TN_E_ARG},
    {"more rows than there are", ROW, 4, {3, 3}, {0, 1, 2, 3}, {0}, 0, TN_E_SHAPE},
    {"minus one row", ROW, -1, {3, 3}, {0}, {0}, 0, TN_E_SHAPE},
    {"starts beyond", CSR, 2, {2, 3}, {0, 1}, {0, 3, 2}, 0, TN_E_ARG},
    {"starts descend", CSR, 2, {3, 3}, {0, 1}, {0, 2, 1, 2}, 0, TN_E_ARG},
    {"starts from one", CSR, 2, {2, 3}, {0, 1}, {1, 1, 2}, 0, TN_E_ARG},
    {"starts end early", CSR, 2, {2, 3}, {0, 1}, {0, 1, 1}, 0, TN_E_ARG},
    {"a negative start", CSR, 2, {2, 3}, {0, 1}, {0, -1, 2}, 0, TN_E_ARG},
    {"a column beyond", CSR, 2, {2, 3}, {0, 3}, {0, 1, 2}, 0, TN_E_ARG},
    {"a negative column", CSR, 2, {2, 3}, {0, -1}, {0, 1, 2}, 0, TN_E_ARG},
    {"more than the shape", CSR, 3, {2, 1}, {0, 0, 0}, {0, 1, 3}, 0, TN_E_SHAPE},
    {"a negative shape", CSR, 0, {-1, 3}, {0}, {0}, 0, TN_E_SHAPE},
    {"a row of csr", TN_STORAGE_CSR, 1, 2, {2, 3}, {0, 1}, {0, 1, 2}, 0, TN_E_SHAPE},
    {"no dimensions", TN_STORAGE_ROW_SPARSE, 0, 0, {2, 3}, {0}, {0}, 0, TN_E_SHAPE},
    {"dense", TN_STORAGE_DENSE, 2, 2, {2, 3}, {0, 1}, {0}, 0, TN_E_SHAPE},
    {"an unknown storage", 7, 2, 2, {2, 3}, {0, 1}, {0}, 0, TN_E_SHAPE},
};

static void arrays_refused(void **state)
{
    tn_ctx *ctx = open_with("healthy");
    static const float values[12] = {0};
    tn_array *a = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        const hostile_row *r = &hostile[i];
        const tn_array_sparse from = {.struct_size = TN_SIZE(tn_array_sparse),
                                      .storage = r->storage,
                                      .dtype = TN_F32,
                                      .ndim = r->ndim,
                                      .stored = r->stored,
                                      .shape = r->missing & 8 ? NULL : r->shape,
                                      .values = r->missing & 1 ? NULL : values,
                                      .indices = r->missing & 2 ? NULL : r->indices,
                                      .indptr = r->missing & 4 ? NULL : r->indptr};
        const tn_status st = tn_array_sparse_from(ctx, &from, &a);

        if (st != r->status || a || !tn_error_text()[0])
            fail_msg("%s: %s: %s", r->what, tn_status_name(st), tn_error_text());
    }
    assert_fails(tn_array_sparse_from(NULL, NULL, &a), TN_E_ARG);
    test_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csr_read),       cmocka_unit_test(rows_written),  cmocka_unit_test(saved),
        cmocka_unit_test(nets),           cmocka_unit_test(calls_refused), cmocka_unit_test(kernels_found),
        cmocka_unit_test(arrays_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
