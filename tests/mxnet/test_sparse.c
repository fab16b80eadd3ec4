/*
 * Operators with sparse arrays give what MXNet 1.9.1 gives, in the same storage type, without dense copies
 * unless it falls back to some. Sparse arrays of its files are read, and those written here are
 * what `tests/oracle/sparse.py --check` reads (TENON_SPARSE_SAVED=FOLDER keeps them).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mxnet/recording.h"

static tn_ctx *ctx, *both[2]; /* of the call; refusing dense copies, and making them */

static int setup(void **state)
{
    static const char *const ways[] = {"exec.storage_fallback=error", "exec.storage_fallback=silent"};
    const char *folder = getenv("TENON_TEST_PLUGINS");
    char path[4096];

    (void)state;
    assert_non_null(folder);
    (void)snprintf(path, sizeof path, "plugins.path=%s", folder);
    for (int i = 0; i < 2; i++) {
        const char *const settings[] = {path, ways[i], NULL};
        const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};

        if (tn_open(&o, &both[i]))
            return 1;
    }
    ctx = both[0];
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return tn_close(both[0]) || tn_close(both[1]);
}

static const char *path_of(const char *name)
{
    static char path[4096];
    const char *source = getenv("TENON_TEST_SOURCE");

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/sparse/%s", source ? source : ".", name);
    return path;
}

/* ---- arrays -------------------------------------------------------------------------------------------- */

static int32_t storage_named(const char *name, size_t length)
{
    return !length                                ? TN_STORAGE_DENSE
           : !strncmp(name, "row_sparse", length) ? TN_STORAGE_ROW_SPARSE
           : !strncmp(name, "csr", length)        ? TN_STORAGE_CSR
                                                  : TN_STORAGE_DENSE;
}

static tn_array *array_of(const recorded *r, int32_t storage)
{
    tn_array *wide = NULL, *dense = NULL, *a = NULL;

    assert_int_equal(tn_array_from(ctx, TN_F64, r->ndim, r->shape, r->values, &wide), TN_OK);
    assert_int_equal(tn_array_cast(ctx, wide, r->dtype, &dense), TN_OK);
    tn_array_release(wide);
    if (storage == TN_STORAGE_DENSE)
        return dense;
    assert_int_equal(tn_array_to_storage(ctx, dense, storage, &a), TN_OK);
    tn_array_release(dense);
    return a;
}

static void same_numbers(const call *c, const char *what, tn_array *got, const recorded *want)
{
    tn_array *dense = NULL, *wide = NULL;
    double *values = calloc(want->count + 1, sizeof *values), largest = 0;

    assert_non_null(values);
    if (tn_array_to_storage(ctx, got, TN_STORAGE_DENSE, &dense) || tn_array_cast(ctx, dense, TN_F64, &wide))
        fail_msg("%s: %s", c->text, tn_error_text());
    assert_int_equal(tn_array_dtype(got), want->dtype);
    if (tn_array_read(wide, values, want->count * sizeof *values))
        fail_msg("%s: %s: %s", c->text, what, tn_error_text());
    for (size_t i = 0; i < want->count; i++)
        largest = fmax(largest, fabs(want->values[i]));
    for (size_t i = 0; i < want->count; i++)
        if (!(fabs(values[i] - want->values[i]) <=
              (want->dtype == TN_F16 ? 2e-3 : 1e-5) * fabs(want->values[i]) + 1e-6 * largest) &&
            !(isnan(values[i]) && isnan(want->values[i])))
            fail_msg("%s: element %zu of %s is %.9g, MXNet gives %.9g", c->text, i, what, values[i],
                     want->values[i]);
    free(values);
    tn_array_release(dense);
    tn_array_release(wide);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* Takes NAME=… out of the attributes. */
static const char *pseudo(call *c, const char *name)
{
    size_t at = 0;
    const char *text;

    while (c->attrs[at] && strcmp(c->attrs[at], name))
        at += 2;
    assert_non_null(c->attrs[at]);
    text = c->attrs[at + 1];
    for (; c->attrs[at]; at += 2)
        c->attrs[at] = c->attrs[at + 2], c->attrs[at + 1] = c->attrs[at] ? c->attrs[at + 3] : NULL;
    return text;
}

static bool is_update(const call *c)
{
    const char *end = strrchr(c->op, '_');

    return end && !strcmp(end, "_update");
}

/* Without dense copies, which MXNet makes. */
static bool serves(const call *c, const char *kinds)
{
    return strstr(kinds, "csr") && (!strcmp(c->op, "FullyConnected") || !strcmp(c->op, "dot"));
}

static void call_replay(call *c)
{
    const char *kinds = pseudo(c, "_in"), *out = pseudo(c, "_out");
    tn_array *in[ARRAYS_MAX] = {NULL}, *y[1] = {NULL};
    const tn_op_call o = {.struct_size = TN_SIZE(tn_op_call),
                          .op = c->op,
                          .attrs = c->attrs,
                          .in_count = c->counts[IN],
                          .in = in};

    ctx = both[strcmp(out, "fallback") == 0 && !serves(c, kinds)];
    for (uint32_t i = 0; i < c->counts[IN]; i++, kinds += strcspn(kinds, ","), kinds += *kinds == ',')
        in[i] = array_of(&c->parts[IN][i], storage_named(kinds, strcspn(kinds, ",")));
    y[0] = is_update(c) ? in[0] : NULL;
    if (tn_invoke_text(ctx, &o, 1, y, NULL) || tn_array_wait(y[0]))
        fail_msg("%s: %s", c->text, tn_error_text());
    if (strcmp(out, "fallback") != 0 && tn_array_storage(y[0]) != storage_named(out, strlen(out)))
        fail_msg("%s: the output's storage type is %d, MXNet gives %s", c->text, tn_array_storage(y[0]), out);
    same_numbers(c, "the output", y[0], &c->parts[OUT][0]);
    for (uint32_t i = 0; i < c->counts[NOW]; i++)
        same_numbers(c, "what is changed", in[c->parts[NOW][i].input], &c->parts[NOW][i]);
    for (uint32_t i = 0; i < c->counts[IN]; i++)
        tn_array_release(in[i]);
    if (!is_update(c))
        tn_array_release(y[0]);
}

static void replayed(void **state)
{
    recording r;

    (void)state;
    assert_true(recording_open(path_of("calls.txt.gz"), &r));
    assert_true(r.count > 180);
    for (size_t i = 0; i < r.count; i++)
        call_replay(&r.calls[i]);
    recording_close(&r);
}

/* ---- gradients ----------------------------------------------------------------------------------------- */

/* Eager or as a net. */
static void forward_of(const call *c, bool net, tn_array *const *in, tn_array **y)
{
    const uint32_t count = c->counts[IN] - 1;
    const tn_op_call o = {
        .struct_size = TN_SIZE(tn_op_call), .op = c->op, .attrs = c->attrs, .in_count = count, .in = in};
    static const char *const names[] = {"a", "b", "c"};
    tn_symbol *x[3] = {NULL}, *made = NULL;
    const tn_symbol_call s = {
        .struct_size = TN_SIZE(tn_symbol_call), .op = c->op, .attrs = c->attrs, .in_count = count, .in = x};
    tn_cached_op *op = NULL;

    if (!net) {
        assert_int_equal(tn_invoke_text(ctx, &o, 1, y, NULL), TN_OK);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(tn_symbol_variable(ctx, names[i], &x[i]), TN_OK);
    assert_int_equal(tn_symbol_op(ctx, &s, &made), TN_OK);
    assert_int_equal(tn_cached_op_create(ctx, made, NULL, &op), TN_OK);
    if (tn_cached_op_call(op, count, in, 1, y))
        fail_msg("%s: %s", c->text, tn_error_text());
    tn_cached_op_release(op);
    tn_symbol_release(made);
    for (uint32_t i = 0; i < count; i++)
        tn_symbol_release(x[i]);
}

/* The rows that are stored are those that MXNet stores; `times` the gradient. */
static void gradient_is(const call *c, tn_array *g, double times)
{
    recorded want = c->parts[NOW][0];
    tn_array *ids = NULL;
    int64_t have[8];

    want.values = malloc(want.count * sizeof *want.values);
    assert_non_null(want.values);
    for (size_t i = 0; i < want.count; i++)
        want.values[i] = times * c->parts[NOW][0].values[i];
    same_numbers(c, "the gradient", g, &want);
    free(want.values);
    if (c->counts[NOW] < 2)
        return;
    assert_int_equal(tn_array_storage(g), TN_STORAGE_ROW_SPARSE);
    assert_int_equal(tn_array_aux(g, 0, &ids), TN_OK);
    assert_int_equal(tn_array_read(ids, have, c->parts[NOW][1].count * sizeof *have), TN_OK);
    for (size_t i = 0; i < c->parts[NOW][1].count; i++)
        assert_int_equal(have[i], (int64_t)c->parts[NOW][1].values[i]);
    tn_array_release(ids);
}

static tn_array *none_stored(tn_array *like)
{
    tn_array_sparse none = {.struct_size = TN_SIZE(tn_array_sparse),
                            .storage = TN_STORAGE_ROW_SPARSE,
                            .dtype = tn_array_dtype(like)};
    tn_array *made = NULL;

    assert_int_equal(tn_array_shape(like, &none.ndim, &none.shape), TN_OK);
    assert_int_equal(tn_array_sparse_from(ctx, &none, &made), TN_OK);
    return made;
}

static void gradient_replay(const call *c, const char *kinds, uint32_t of, bool rows, bool net, uint32_t mode)
{
    tn_array *in[4] = {NULL}, *y = NULL, *grad = NULL;

    for (uint32_t i = 0; i < c->counts[IN]; i++, kinds += strcspn(kinds, ","), kinds += *kinds == ',')
        in[i] = array_of(&c->parts[IN][i], storage_named(kinds, strcspn(kinds, ",")));
    grad = rows ? none_stored(in[of]) : NULL;
    assert_int_equal(tn_attach_grad(ctx, in[of], mode, grad), TN_OK);
    for (int times = 1; times <= 2; times++) {
        (void)tn_record_set(1);
        forward_of(c, net, in, &y);
        (void)tn_record_set(0);
        same_numbers(c, "the output", y, &c->parts[OUT][0]);
        if (tn_backward(ctx, 1, &y, &in[c->counts[IN] - 1], 0))
            fail_msg("%s: %s", c->text, tn_error_text());
        gradient_is(c, tn_array_grad(in[of]), mode == TN_MODE_ADD ? times : 1);
        tn_array_release(y);
        y = NULL;
    }
    for (uint32_t i = 0; i < c->counts[IN]; i++)
        tn_array_release(in[i]);
    tn_array_release(grad);
}

static void gradients(void **state)
{
    recording r;

    (void)state;
    ctx = both[0];
    assert_true(recording_open(path_of("gradients.txt.gz"), &r));
    assert_true(r.count >= 25);
    for (size_t i = 0; i < r.count; i++) {
        const char *kinds = pseudo(&r.calls[i], "_in");
        const bool rows = !strcmp(pseudo(&r.calls[i], "_grad"), "row_sparse");
        const uint32_t of = (uint32_t)atoi(pseudo(&r.calls[i], "_of"));

        for (int way = 0; way < 4; way++)
            gradient_replay(&r.calls[i], kinds, of, rows, way & 1, way & 2 ? TN_MODE_ADD : TN_MODE_WRITE);
    }
    recording_close(&r);
}

/* ---- drawn numbers ------------------------------------------------------------------------------------- */

/* Into an array of which row 1 alone is stored: the rows that MXNet stores, mean and deviation as near to its
 * own as chance lets them be. */
static void drawn_replay(const call *c)
{
    const recorded *stat = &c->parts[STAT][0], *ids = &c->parts[NOW][0];
    const int64_t row[] = {1};
    const float zeros[40] = {0};
    const tn_array_sparse from = {.struct_size = TN_SIZE(tn_array_sparse),
                                  .storage = TN_STORAGE_ROW_SPARSE,
                                  .dtype = TN_F32,
                                  .ndim = stat->ndim,
                                  .shape = stat->shape,
                                  .stored = 1,
                                  .values = zeros,
                                  .indices = row};
    const tn_op_call o = {.struct_size = TN_SIZE(tn_op_call), .op = c->op, .attrs = c->attrs};
    const double near = 6 * stat->values[1] / sqrt(60 * 40);
    tn_array *y = NULL, *same, *rows = NULL, *values = NULL;
    double sum = 0, squares = 0;
    int64_t have[60];
    float v[60 * 40];

    assert_int_equal(tn_array_sparse_from(ctx, &from, &y), TN_OK);
    same = y;
    if (tn_invoke_text(ctx, &o, 1, &y, NULL))
        fail_msg("%s: %s", c->text, tn_error_text());
    assert_ptr_equal(y, same);
    assert_int_equal(tn_array_storage(y), TN_STORAGE_ROW_SPARSE);
    assert_int_equal(tn_array_aux(y, 0, &rows), TN_OK);
    assert_int_equal(tn_array_count(rows), ids->count);
    assert_int_equal(tn_array_read(rows, have, sizeof have), TN_OK);
    for (size_t i = 0; i < ids->count; i++)
        assert_int_equal(have[i], (int64_t)ids->values[i]);
    assert_int_equal(tn_array_values(y, &values), TN_OK);
    assert_int_equal(tn_array_read(values, v, sizeof v), TN_OK);
    for (int i = 0; i < 60 * 40; i++)
        sum += v[i], squares += (double)v[i] * v[i];
    sum /= 60 * 40;
    if (!(fabs(sum - stat->values[0]) < 2 * near) ||
        !(fabs(sqrt(squares / (60 * 40) - sum * sum) / stat->values[1] - 1) < 0.25))
        fail_msg("%s: mean %g, MXNet's is %g", c->text, sum, stat->values[0]);
    tn_array_release(values);
    tn_array_release(rows);
    tn_array_release(y);
}

static void drawn_into_rows(void **state)
{
    tn_array_sparse none = {.struct_size = TN_SIZE(tn_array_sparse),
                            .storage = TN_STORAGE_ROW_SPARSE,
                            .dtype = TN_F32,
                            .ndim = 2,
                            .shape = (int64_t[]){3, 2}};
    const char *const attrs[] = {"shape", "(2,2)", NULL};
    const tn_op_call o = {.struct_size = TN_SIZE(tn_op_call), .op = "_random_uniform", .attrs = attrs};
    tn_array *y = NULL;
    recording r;

    (void)state;
    ctx = both[0];
    assert_true(recording_open(path_of("random.txt.gz"), &r));
    assert_true(r.count >= 7);
    for (size_t i = 0; i < r.count; i++)
        drawn_replay(&r.calls[i]);
    recording_close(&r);
    assert_int_equal(tn_array_sparse_from(ctx, &none, &y), TN_OK);
    assert_int_equal(tn_invoke_text(ctx, &o, 1, &y, NULL), TN_E_SHAPE);
    tn_array_release(y);
}

/* ---- files --------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    int32_t storage, dtype;
} saved[] = {
    {"rows", TN_STORAGE_ROW_SPARSE, TN_F32}, {"csr", TN_STORAGE_CSR, TN_F32},
    {"dense", TN_STORAGE_DENSE, TN_F32},     {"wide", TN_STORAGE_ROW_SPARSE, TN_F64},
    {"empty", TN_STORAGE_CSR, TN_F32},       {"none", TN_STORAGE_ROW_SPARSE, TN_F32},
    {"half", TN_STORAGE_CSR, TN_F16},
};

static void files_read(void **state)
{
    const char *folder = getenv("TENON_SPARSE_SAVED");
    tn_params *p = NULL;
    tn_array *rows = NULL, *dense = NULL, *whole = NULL;
    float a[15], b[15];
    char path[4096];

    (void)state;
    if (tn_params_load(ctx, path_of("arrays.params"), NULL, &p))
        fail_msg("%s", tn_error_text());
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) {
        tn_array *x = NULL;

        assert_int_equal(tn_params_get(p, saved[i].name, &x), TN_OK);
        assert_int_equal(tn_array_storage(x), saved[i].storage);
        assert_int_equal(tn_array_dtype(x), saved[i].dtype);
        tn_array_release(x);
    }
    assert_int_equal(tn_params_get(p, "rows", &rows), TN_OK);
    assert_int_equal(tn_params_get(p, "dense", &dense), TN_OK);
    assert_int_equal(tn_array_to_storage(ctx, rows, TN_STORAGE_DENSE, &whole), TN_OK);
    assert_int_equal(tn_array_read(whole, a, sizeof a), TN_OK);
    assert_int_equal(tn_array_read(dense, b, sizeof b), TN_OK);
    assert_memory_equal(a, b, sizeof a);
    if (folder) {
        (void)snprintf(path, sizeof path, "%s/arrays.params", folder);
        assert_int_equal(tn_params_save(p, path), TN_OK);
    }
    tn_array_release(rows);
    tn_array_release(dense);
    tn_array_release(whole);
    tn_params_destroy(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(replayed), cmocka_unit_test(gradients),
                                       cmocka_unit_test(drawn_into_rows), cmocka_unit_test(files_read)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
