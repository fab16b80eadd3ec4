/*
 * Storage types through the public interface: arrays out of parts and their parts, casts, rows that are kept;
 * operators on what is stored, on dense copies, told of or refused; nets and gradients with sparse inputs.
 * Numbers of MXNet are in tests/mxnet.
 */
#include "api/support.h"

#include <stdio.h>

#include "support/heard.h"

enum { ROWS = 4, COLUMNS = 3 };

static const int64_t shape[] = {ROWS, COLUMNS};
static const float matrix[] = {1, 0, 2, 0, 0, 0, 0, -3, 0, 4, 5, 6};
static const char copies[] = "runs on dense copies of sparse arrays";
static heard told = HEARD(TN_LOG_DEBUG); /* by the context opened last */

static tn_ctx *open_with(const char *setting)
{
    char plugins[4096];
    const char *const settings[] = {plugins, "plugins.trust=off", setting, NULL};
    const tn_open_options o = {
        .struct_size = TN_SIZE(tn_open_options), .settings = settings, .log = heard_take, .log_arg = &told};
    tn_ctx *ctx = NULL;

    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    assert_ok(tn_open(&o, &ctx));
    heard_clear(&told);
    return ctx;
}

static tn_array *sparse_of(tn_ctx *ctx, int32_t storage)
{
    tn_array *dense = test_array(ctx, 2, shape, matrix), *a = NULL;

    assert_ok(tn_array_to_storage(ctx, dense, storage, &a));
    tn_array_release(dense);
    assert_int_equal(tn_array_storage(a), storage);
    return a;
}

static tn_status invoke(tn_ctx *ctx, const char *op, const char *attr, const char *text, uint32_t count,
                        tn_array *const *in, tn_array **out)
{
    const char *const attrs[] = {attr, text, NULL};
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                             .in_count = count,
                             .op = op,
                             .attrs = attr ? attrs : NULL,
                             .in = in};

    return tn_invoke_text(ctx, &call, 1, out, NULL);
}

static void says(const char *why)
{
    if (!strstr(tn_error_text(), why))
        fail_msg("\"%s\" has no \"%s\" in it", tn_error_text(), why);
}

static void dense_is(tn_ctx *ctx, tn_array *a, const float *want)
{
    tn_array *dense = NULL;

    assert_ok(tn_array_to_storage(ctx, a, TN_STORAGE_DENSE, &dense));
    test_values(dense, want, ROWS * COLUMNS, 1e-6f);
    tn_array_release(dense);
}

static void indices_are(tn_array *a, uint32_t which, size_t count, const int64_t *want)
{
    tn_array *part = NULL;
    int64_t have[16];

    assert_ok(tn_array_aux(a, which, &part));
    assert_ok(tn_array_wait(part));
    assert_int_equal(tn_array_count(part), count);
    assert_ok(tn_array_read(part, have, count * sizeof *have));
    assert_memory_equal(have, want, count * sizeof *have);
    tn_array_release(part);
}

/* ---- casts --------------------------------------------------------------------------------------------- */

static void parts_are_read(void **state)
{
    tn_ctx *ctx = open_with(NULL);
    tn_array *rows = sparse_of(ctx, TN_STORAGE_ROW_SPARSE), *csr = sparse_of(ctx, TN_STORAGE_CSR),
             *part = NULL;

    (void)state;
    indices_are(rows, 0, 3, (const int64_t[]){0, 2, 3});
    assert_ok(tn_array_values(rows, &part));
    test_values(part, (const float[]){1, 0, 2, 0, -3, 0, 4, 5, 6}, 9, 0);
    tn_array_release(part);
    indices_are(csr, 0, 5, (const int64_t[]){0, 2, 2, 3, 6});
    indices_are(csr, 1, 6, (const int64_t[]){0, 2, 1, 0, 1, 2});
    assert_ok(tn_array_values(csr, &part));
    test_values(part, (const float[]){1, 2, -3, 4, 5, 6}, 6, 0);
    tn_array_release(part);
    dense_is(ctx, rows, matrix);
    dense_is(ctx, csr, matrix);
    for (int32_t to = TN_STORAGE_DENSE; to <= TN_STORAGE_CSR;
         to++) { /* from one to the other, by way of dense */
        tn_array *a = NULL, *b = NULL;

        assert_ok(tn_array_to_storage(ctx, rows, to, &a));
        assert_ok(tn_array_to_storage(ctx, csr, to, &b));
        assert_true(tn_array_storage(a) == to && tn_array_storage(b) == to);
        dense_is(ctx, a, matrix);
        dense_is(ctx, b, matrix);
        tn_array_release(a);
        tn_array_release(b);
    }
    assert_int_equal(heard_times(&told, copies), 0);
    tn_array_release(rows);
    tn_array_release(csr);
    test_close(ctx);
}

static void casts_refused(void **state)
{
    tn_ctx *ctx = open_with(NULL);
    const int64_t cube[] = {2, 2, 3}, flat[] = {12};
    tn_array *dense = test_array(ctx, 2, shape, matrix), *three = test_array(ctx, 3, cube, matrix);
    tn_array *line = test_array(ctx, 1, flat, matrix), *a = NULL;

    (void)state;
    assert_fails(tn_array_to_storage(ctx, dense, 3, &a), TN_E_ARG);
    assert_fails(tn_array_to_storage(ctx, dense, -1, &a), TN_E_ARG);
    assert_fails(tn_array_to_storage(NULL, dense, 0, &a), TN_E_ARG);
    assert_fails(tn_array_to_storage(ctx, NULL, 0, &a), TN_E_ARG);
    assert_fails(tn_array_to_storage(ctx, dense, 0, NULL), TN_E_ARG);
    assert_fails(tn_array_to_storage(ctx, three, TN_STORAGE_CSR, &a), TN_E_SHAPE);
    says("an array of 3 dimensions cannot be csr");
    assert_fails(tn_array_to_storage(ctx, line, TN_STORAGE_CSR, &a), TN_E_SHAPE);
    assert_fails(invoke(ctx, "cast_storage", "stype", "coo", 1, &dense, &a), TN_E_ATTR);
    assert_fails(invoke(ctx, "cast_storage", NULL, NULL, 1, &dense, &a), TN_E_ATTR);
    assert_null(a);
    assert_ok(tn_array_to_storage(ctx, three, TN_STORAGE_ROW_SPARSE, &a));
    indices_are(a, 0, 2, (const int64_t[]){0, 1});
    tn_array_release(a);
    tn_array_release(dense);
    tn_array_release(three);
    tn_array_release(line);
    test_close(ctx);
}

/* Nothing stored, no rows at all, and -0, which is 0. */
static void empty_ones(void **state)
{
    tn_ctx *ctx = open_with(NULL);
    const float zeros[ROWS * COLUMNS] = {0, -0.0f};
    const int64_t none[] = {0, 3};
    tn_array *dense = test_array(ctx, 2, shape, zeros), *nothing = NULL, *a = NULL, *b = NULL;

    (void)state;
    for (int32_t to = TN_STORAGE_ROW_SPARSE; to <= TN_STORAGE_CSR; to++) {
        tn_array *in[2];

        assert_ok(tn_array_to_storage(ctx, dense, to, &a));
        indices_are(a, to == TN_STORAGE_CSR, 0, NULL);
        in[0] = in[1] = a;
        assert_ok(invoke(ctx, "elemwise_add", NULL, NULL, 2, in, &b));
        dense_is(ctx, b, (const float[ROWS * COLUMNS]){0});
        tn_array_release(b);
        b = NULL;
        assert_ok(invoke(ctx, "square", NULL, NULL, 1, in, &b));
        dense_is(ctx, b, (const float[ROWS * COLUMNS]){0});
        tn_array_release(b);
        b = NULL;
        assert_ok(invoke(ctx, "norm", NULL, NULL, 1, in, &b));
        test_values(b, (const float[]){0}, 1, 0);
        tn_array_release(a);
        tn_array_release(b);
        a = b = NULL;
    }
    (void)tn_np_shape_set(1);
    assert_ok(tn_array_from(ctx, TN_F32, 2, none, NULL, &nothing));
    assert_ok(tn_array_to_storage(ctx, nothing, TN_STORAGE_CSR, &a));
    indices_are(a, 0, 1, (const int64_t[]){0});
    assert_ok(tn_array_to_storage(ctx, a, TN_STORAGE_DENSE, &b));
    assert_int_equal(tn_array_count(b), 0);
    (void)tn_np_shape_set(0);
    tn_array_release(a);
    tn_array_release(b);
    tn_array_release(nothing);
    tn_array_release(dense);
    test_close(ctx);
}

/* ---- rows that are kept -------------------------------------------------------------------------------- */

static void rows_kept(void **state)
{
    tn_ctx *ctx = open_with(NULL);
    tn_array *a = sparse_of(ctx, TN_STORAGE_ROW_SPARSE), *csr = sparse_of(ctx, TN_STORAGE_CSR), *y = NULL;
    const float wanted[] = {3, 1, 3, 0}, wrong[] = {0, 4}, below[] = {-1};
    const int64_t four = 4, two = 2, one = 1;
    tn_array *ids = test_array(ctx, 1, &four, wanted), *bad = test_array(ctx, 1, &two, wrong);
    tn_array *negative = test_array(ctx, 1, &one, below);

    (void)state;
    assert_ok(tn_array_retain_rows(ctx, a, ids, &y)); /* in any order, one of them twice */
    indices_are(y, 0, 3, (const int64_t[]){0, 1, 3});
    dense_is(ctx, y, (const float[]){1, 0, 2, 0, 0, 0, 0, 0, 0, 4, 5, 6});
    tn_array_release(y);
    y = NULL;
    assert_fails(tn_array_retain_rows(ctx, csr, ids, &y), TN_E_ARG);
    says("not of csr ones");
    assert_fails(tn_array_retain_rows(ctx, a, a, &y), TN_E_SHAPE);
    assert_fails(tn_array_retain_rows(ctx, a, NULL, &y), TN_E_ARG);
    assert_null(y);
    assert_ok(tn_array_retain_rows(ctx, a, bad, &y));
    assert_fails(tn_array_wait(y), TN_E_ARG);
    says("row 4 is asked for, of 4 rows");
    tn_array_release(y);
    y = NULL;
    assert_ok(tn_array_retain_rows(ctx, a, negative, &y));
    assert_fails(tn_array_wait(y), TN_E_ARG);
    tn_array_release(y);
    tn_array_release(a);
    tn_array_release(csr);
    tn_array_release(ids);
    tn_array_release(bad);
    tn_array_release(negative);
    (void)tn_wait_all(ctx);
    assert_ok(tn_close(ctx));
}

/* ---- dense copies -------------------------------------------------------------------------------------- */

static void copies_are_told(void **state)
{
    static const struct {
        const char *setting;
        size_t told;
        tn_status status;
    } rows[] = {{"exec.storage_fallback=warn", 1, TN_OK},
                {"exec.storage_fallback=silent", 0, TN_OK},
                {"exec.storage_fallback=error", 0, TN_E_UNSUPPORTED}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_ctx *ctx = open_with(rows[i].setting);
        tn_array *a = sparse_of(ctx, TN_STORAGE_CSR), *dense = test_array(ctx, 2, shape, matrix), *y = NULL,
                 *z = NULL;

        if (invoke(ctx, "softmax", NULL, NULL, 1, &a, &y) != rows[i].status)
            fail_msg("%s: %s", rows[i].setting, tn_error_text());
        assert_int_equal(heard_times(&told, copies), rows[i].told);
        if (y) {
            float have[ROWS * COLUMNS];

            assert_ok(invoke(ctx, "softmax", NULL, NULL, 1, &dense, &z));
            assert_ok(tn_array_read(z, have, sizeof have));
            test_values(y, have, ROWS * COLUMNS, 0);
        } else {
            says("operator softmax: input 0 is sparse (csr)");
        }
        if (y) { /* once for each operator */
            tn_array_release(y);
            y = NULL;
            assert_ok(invoke(ctx, "softmax", NULL, NULL, 1, &a, &y));
            assert_int_equal(heard_times(&told, copies), rows[i].told);
        }
        assert_int_equal(heard_times(&told, "operator softmax runs on dense copies of"), rows[i].told);
        tn_array_release(a);
        tn_array_release(dense);
        tn_array_release(y);
        tn_array_release(z);
        test_close(ctx);
    }
}

/* A number that 0 does not survive, other shapes, an output that is given, a state that is sparse. */
static void other_ways(void **state)
{
    tn_ctx *ctx = open_with("exec.storage_fallback=error");
    const int64_t other[] = {3, 4};
    tn_array *csr = sparse_of(ctx, TN_STORAGE_CSR), *rows = sparse_of(ctx, TN_STORAGE_ROW_SPARSE);
    tn_array *turned = test_array(ctx, 2, other, matrix), *more = NULL, *y = NULL, *in[4];

    (void)state;
    assert_fails(invoke(ctx, "_greater_scalar", "scalar", "-1", 1, &csr, &y), TN_E_UNSUPPORTED);
    assert_ok(invoke(ctx, "_greater_scalar", "scalar", "1.5", 1, &csr, &y));
    dense_is(ctx, y, (const float[]){0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1});
    assert_fails(invoke(ctx, "_greater_scalar", "scalar", "1.5", 1, &csr, &y),
                 TN_E_UNSUPPORTED); /* y is given */
    tn_array_release(y);
    y = NULL;
    assert_ok(tn_array_to_storage(ctx, turned, TN_STORAGE_CSR, &more));
    in[0] = csr;
    in[1] = more;
    assert_fails(invoke(ctx, "elemwise_add", NULL, NULL, 2, in, &y), TN_E_SHAPE);
    in[1] = rows;
    assert_fails(invoke(ctx, "elemwise_add", NULL, NULL, 2, in, &y),
                 TN_E_UNSUPPORTED); /* csr and row_sparse */
    in[0] = rows;
    assert_fails(invoke(ctx, "sgd_update", "lr", "0.1", 2, in, &y),
                 TN_E_UNSUPPORTED); /* the weight is sparse */
    assert_null(y);
    tn_array_release(csr);
    tn_array_release(rows);
    tn_array_release(turned);
    tn_array_release(more);
    test_close(ctx);
}

/* ---- updates, nets, gradients -------------------------------------------------------------------------- */

/* Rows that the gradient does not store keep weight and momentum, and a new weight may be asked for. */
static void lazy_rows(void **state)
{
    tn_ctx *ctx = open_with("exec.storage_fallback=error");
    const float ones[ROWS * COLUMNS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const float stepped[] = {0, 1, -1, 1, 1, 1, 1, 4, 1, -3, -4, -5};
    tn_array *w = test_array(ctx, 2, shape, ones), *g = sparse_of(ctx, TN_STORAGE_ROW_SPARSE), *in[] = {w, g};
    tn_array *y = NULL;

    (void)state;
    assert_ok(invoke(ctx, "sgd_update", "lr", "1", 2, in, &y));
    test_values(y, stepped, ROWS * COLUMNS, 1e-6f);
    test_values(w, ones, ROWS * COLUMNS, 0);
    tn_array_release(y);
    y = w;
    assert_ok(invoke(ctx, "sgd_update", "lr", "1", 2, in, &y));
    assert_ptr_equal(y, w);
    test_values(w, stepped, ROWS * COLUMNS, 1e-6f);
    tn_array_release(w);
    tn_array_release(g);
    test_close(ctx);
}

static const char net_text[] =
    "{\"nodes\":[{\"op\":\"null\",\"name\":\"a\",\"attrs\":{\"__storage_type__\":\"2\"},\"inputs\":[]},"
    "{\"op\":\"null\",\"name\":\"b\",\"inputs\":[]},{\"op\":\"square\",\"name\":\"s\",\"inputs\":[[0,0]]},"
    "{\"op\":\"dot\",\"name\":\"d\",\"inputs\":[[2,0],[1,0]]},{\"op\":\"tanh\",\"name\":\"t\",\"inputs\":[[3,"
    "0]]}],"
    "\"arg_nodes\":[0,1],\"heads\":[[4,0]]}";

/* square keeps csr, dot reads it, tanh is dense. Recorded, the gradient of b is that of a dense net. */
static void nets_with_csr(void **state)
{
    tn_ctx *ctx = open_with(NULL);
    const int64_t tall[] = {COLUMNS, 1};
    const float b_values[] = {0.125f, -0.0625f, 0.25f};
    tn_array *csr = sparse_of(ctx, TN_STORAGE_CSR), *b = test_array(ctx, 2, tall, b_values), *y[2] = {NULL};
    tn_array *dense = test_array(ctx, 2, shape, matrix), *in[] = {csr, b};
    float want[ROWS], gradient[COLUMNS];
    tn_cached_op *net = NULL;
    tn_symbol *s = NULL;

    (void)state;
    assert_ok(tn_symbol_from_json(ctx, net_text, sizeof net_text - 1, &s));
    assert_ok(tn_cached_op_create(ctx, s, NULL, &net));
    assert_ok(tn_attach_grad(ctx, b, TN_MODE_WRITE, NULL));
    for (int turn = 0; turn < 2; turn++) {
        in[0] = turn ? csr : dense;
        (void)tn_record_set(1);
        assert_ok(tn_cached_op_call(net, 2, in, 1, &y[turn]));
        (void)tn_record_set(0);
        assert_ok(tn_backward(ctx, 1, &y[turn], NULL, 0));
        if (turn == 0) {
            assert_ok(tn_array_read(y[0], want, sizeof want));
            assert_ok(tn_array_read(tn_array_grad(b), gradient, sizeof gradient));
        }
    }
    test_values(y[1], want, ROWS, 1e-6f);
    test_values(tn_array_grad(b), gradient, COLUMNS, 1e-6f);
    tn_array_release(y[0]);
    tn_array_release(y[1]);
    y[1] = NULL;
    heard_clear(&told);
    assert_ok(tn_cached_op_call(net, 2, in, 1, &y[1])); /* not recorded: on what is stored */
    test_values(y[1], want, ROWS, 1e-6f);
    assert_int_equal(heard_times(&told, copies), 0);
    tn_array_release(y[1]);
    tn_array_release(csr);
    tn_array_release(dense);
    tn_array_release(b);
    tn_cached_op_release(net);
    tn_symbol_release(s);
    test_close(ctx);
}

/* ---- row_sparse gradients ------------------------------------------------------------------------------ */

static tn_array *looked_up(tn_ctx *ctx, tn_array *weight, size_t count, const float *ids)
{
    const char *const attrs[] = {"input_dim", "4", "output_dim", "3", "sparse_grad", "1", NULL};
    tn_array *in[] = {test_array(ctx, 1, (int64_t[]){(int64_t)count}, ids), weight}, *y = NULL;
    const tn_op_call call = {
        .struct_size = TN_SIZE(tn_op_call), .in_count = 2, .op = "Embedding", .attrs = attrs, .in = in};

    assert_ok(tn_invoke_text(ctx, &call, 1, &y, NULL));
    tn_array_release(in[0]);
    return y;
}

/* Several uses are added; one that is dense stores every row it gives; what nothing reaches stores none. */
static void rows_are_summed(void **state)
{
    tn_ctx *ctx = open_with("exec.storage_fallback=error");
    tn_array *w = test_array(ctx, 2, shape, matrix), *other = test_array(ctx, 2, shape, matrix);
    tn_array *y[3] = {NULL};
    const tn_array_sparse none = {.struct_size = TN_SIZE(tn_array_sparse),
                                  .storage = TN_STORAGE_ROW_SPARSE,
                                  .dtype = TN_F32,
                                  .ndim = 2,
                                  .shape = shape};
    tn_array *empty = NULL, *made = NULL;
    const tn_gradient_call ask = {.struct_size = TN_SIZE(tn_gradient_call),
                                  .head_count = 1,
                                  .heads = y,
                                  .variable_count = 1,
                                  .variables = &w};

    (void)state;
    assert_ok(tn_array_sparse_from(ctx, &none, &empty));
    assert_ok(tn_attach_grad(ctx, w, TN_MODE_WRITE, empty));
    assert_ok(tn_attach_grad(ctx, other, TN_MODE_WRITE, empty));
    for (int way = 0; way < 3; way++) { /* looked up twice; used whole, too; a gradient of its own */
        (void)tn_record_set(1);
        y[0] = looked_up(ctx, w, 2, (const float[]){2, 0});
        y[1] = looked_up(ctx, way == 1 ? w : other, 2, (const float[]){2, 9});
        if (way == 1)
            assert_ok(invoke(ctx, "_mul_scalar", "scalar", "2", 1, &w, &y[2]));
        (void)tn_record_set(0);
        if (way == 2) {
            assert_ok(tn_gradients(ctx, &ask, &made));
            assert_int_equal(tn_array_storage(made), TN_STORAGE_DENSE);
            test_values(made, (const float[]){1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0}, ROWS * COLUMNS, 0);
        } else {
            assert_ok(tn_backward(ctx, way ? 3 : 2, y, NULL, 0));
            indices_are(tn_array_grad(w), 0, way ? 4 : 2, (const int64_t[]){0, way ? 1 : 2, 2, 3});
        }
        if (way == 0) {
            indices_are(tn_array_grad(other), 0, 2, (const int64_t[]){2, 3});
            dense_is(ctx, tn_array_grad(w), (const float[]){1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0});
        }
        if (way == 1)
            dense_is(ctx, tn_array_grad(w), (const float[]){3, 3, 3, 2, 2, 2, 4, 4, 4, 3, 3, 3});
        for (int i = 0; i < 3; i++) {
            tn_array_release(y[i]);
            y[i] = NULL;
        }
    }
    (void)tn_record_set(1); /* a net of operators that give nothing back */
    y[0] = looked_up(ctx, w, 1, (const float[]){1});
    assert_ok(invoke(ctx, "BlockGrad", NULL, NULL, 1, y, &y[1]));
    (void)tn_record_set(0);
    assert_ok(tn_backward(ctx, 1, &y[1], NULL, 0));
    indices_are(tn_array_grad(w), 0, 0, NULL);
    tn_array_release(y[0]);
    tn_array_release(y[1]);
    tn_array_release(made);
    tn_array_release(empty);
    tn_array_release(w);
    tn_array_release(other);
    test_close(ctx);
}

/* A weight that is row_sparse; a cast on the way; arrays that stand for the result. */
static void sparse_on_the_tape(void **state)
{
    tn_ctx *ctx = open_with("exec.storage_fallback=error");
    tn_array *w = sparse_of(ctx, TN_STORAGE_ROW_SPARSE), *x = test_array(ctx, 2, shape, matrix), *csr = NULL;
    tn_array *y = NULL, *square = NULL, *given = test_array(ctx, 2, shape, matrix);

    (void)state;
    assert_ok(tn_attach_grad(ctx, w, TN_MODE_WRITE, NULL));
    indices_are(tn_array_grad(w), 0, 0, NULL);
    assert_ok(tn_attach_grad(ctx, x, TN_MODE_WRITE, NULL));
    (void)tn_record_set(1);
    assert_ok(invoke(ctx, "cast_storage", "stype", "csr", 1, &x, &csr));
    assert_ok(invoke(ctx, "cast_storage", "stype", "default", 1, &csr, &y));
    assert_ok(invoke(ctx, "square", NULL, NULL, 1, &y, &square));
    (void)tn_record_set(0);
    assert_int_equal(tn_array_storage(csr), TN_STORAGE_CSR);
    assert_ok(tn_backward(ctx, 1, &square, NULL, 0));
    dense_is(ctx, tn_array_grad(x), (const float[]){2, 0, 4, 0, 0, 0, 0, -6, 0, 8, 10, 12});
    tn_array_release(csr);
    csr = NULL;
    assert_ok(invoke(ctx, "cast_storage", "stype", "csr", 1, &w, &given));
    test_values(given, matrix, ROWS * COLUMNS, 0); /* dense, as it was given */
    tn_array_release(y);
    tn_array_release(square);
    tn_array_release(given);
    tn_array_release(w);
    tn_array_release(x);
    test_close(ctx);
}

/* Sums of squares of an array that stores no row, along either axis, and their gradients. */
static void squares_of_nothing(void **state)
{
    static const char *const axes[] = {"0", "1", "-1"};
    tn_ctx *ctx = open_with("exec.storage_fallback=error");
    const tn_array_sparse none = {.struct_size = TN_SIZE(tn_array_sparse),
                                  .storage = TN_STORAGE_ROW_SPARSE,
                                  .dtype = TN_F32,
                                  .ndim = 2,
                                  .shape = shape};
    tn_array *x = NULL, *y = NULL;

    (void)state;
    assert_ok(tn_array_sparse_from(ctx, &none, &x));
    assert_ok(tn_attach_grad(ctx, x, TN_MODE_WRITE, NULL));
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        (void)tn_record_set(1);
        assert_ok(invoke(ctx, "_square_sum", "axis", axes[i], 1, &x, &y));
        (void)tn_record_set(0);
        test_values(y, (const float[ROWS]){0}, i ? ROWS : COLUMNS, 0);
        assert_ok(tn_backward(ctx, 1, &y, NULL, 0));
        indices_are(tn_array_grad(x), 0, 0, NULL);
        tn_array_release(y);
        y = NULL;
    }
    tn_array_release(x);
    test_close(ctx);
}

/* Rows of a csr array rise or not, but have no column twice. */
static void columns_twice(void **state)
{
    tn_ctx *ctx = open_with("exec.storage_fallback=error");
    tn_array_sparse from = {.struct_size = TN_SIZE(tn_array_sparse),
                            .storage = TN_STORAGE_CSR,
                            .dtype = TN_F32,
                            .ndim = 2,
                            .shape = shape,
                            .stored = 4,
                            .values = (const float[]){1, 2, 3, 4},
                            .indices = (const int64_t[]){2, 0, 1, 2},
                            .indptr = (const int64_t[]){0, 3, 3, 3, 4}};
    tn_array *a = NULL;

    (void)state;
    assert_ok(tn_array_sparse_from(ctx, &from, &a));
    dense_is(ctx, a, (const float[]){2, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 4});
    tn_array_release(a);
    a = NULL;
    from.indices = (const int64_t[]){2, 0, 2, 2};
    assert_fails(tn_array_sparse_from(ctx, &from, &a), TN_E_ARG);
    says("a row has a column twice: 2");
    assert_null(a);
    test_close(ctx);
}

/* A csr matrix that would be 4 MB dense, with memory for a fourth of that: products, and their gradients. */
static void products_without_copies(void **state)
{
    enum { WIDE = 1000 };
    static const char *const ops[] = {"dot", "dot", "FullyConnected"},
                             *const names[] = {NULL, "forward_stype", NULL},
                             *const texts[] = {NULL, "default", NULL};
    const int64_t wide[] = {WIDE, WIDE}, row[] = {1, WIDE};
    static int64_t starts[WIDE + 1];
    float values[] = {2, 3}, ones[WIDE], have[WIDE];
    tn_ctx *ctx = open_with("memory.cpu.limit=1MiB");
    const tn_array_sparse from = {.struct_size = TN_SIZE(tn_array_sparse),
                                  .storage = TN_STORAGE_CSR,
                                  .dtype = TN_F32,
                                  .ndim = 2,
                                  .shape = wide,
                                  .stored = 2,
                                  .values = values,
                                  .indices = (int64_t[]){5, 999},
                                  .indptr = starts};
    tn_array *x, *in[2] = {NULL};

    (void)state;
    for (int i = 0; i <= WIDE; i++)
        starts[i] = (i > 7) + (i > 900); /* (7, 5): 2; (900, 999): 3 */
    for (int i = 0; i < WIDE; i++)
        ones[i] = 1;
    assert_ok(tn_array_sparse_from(ctx, &from, &in[1]));
    in[0] = x = test_array(ctx, 2, row, ones);
    assert_ok(tn_attach_grad(ctx, x, TN_MODE_WRITE, NULL));
    for (int i = 0; i < 3; i++) {
        const char *const attrs[] = {i < 2 ? names[i] : "num_hidden", i < 2 ? texts[i] : "1000", "no_bias",
                                     "1", NULL};
        const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                                 .op = ops[i],
                                 .attrs = i == 0   ? NULL
                                          : i == 1 ? (const char *const[]){names[1], texts[1], NULL}
                                                   : attrs,
                                 .in_count = 2,
                                 .in = in};
        tn_array *y = NULL, *dense = NULL;

        (void)tn_record_set(1);
        assert_ok(tn_invoke_text(ctx, &call, 1, &y, NULL));
        (void)tn_record_set(0);
        assert_int_equal(tn_array_storage(y), i ? TN_STORAGE_DENSE : TN_STORAGE_CSR);
        assert_ok(tn_backward(ctx, 1, &y, NULL, 0));
        assert_ok(tn_array_to_storage(ctx, y, TN_STORAGE_DENSE, &dense));
        assert_ok(tn_array_read(dense, have, sizeof have));
        assert_true(have[i < 2 ? 5 : 7] == 2 && have[i < 2 ? 999 : 900] == 3 && have[6] == 0);
        assert_ok(tn_array_read(tn_array_grad(x), have, sizeof have));
        assert_true(have[i < 2 ? 7 : 5] == 2 && have[i < 2 ? 900 : 999] == 3 && have[6] == 0);
        tn_array_release(dense);
        tn_array_release(y);
    }
    assert_int_equal(heard_times(&told, copies), 0);
    tn_array_release(x);
    tn_array_release(in[1]);
    assert_ok(tn_close(ctx));
}

/* What does not fit is refused, whichever operand is csr. */
static void products_refused(void **state)
{
    tn_ctx *ctx = open_with(NULL);
    tn_array *csr = sparse_of(ctx, TN_STORAGE_CSR), *other = test_array(ctx, 2, (int64_t[]){2, 5}, matrix),
             *y = NULL;
    tn_array *pairs[][2] = {{csr, other}, {other, csr}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(invoke(ctx, "dot", NULL, NULL, 2, pairs[i], &y), TN_E_SHAPE);
        assert_null(y);
        assert_int_not_equal(invoke(ctx, "FullyConnected", "num_hidden", "4", 2, pairs[i], &y), TN_OK);
        assert_null(y);
    }
    tn_array_release(csr);
    tn_array_release(other);
    assert_ok(tn_close(ctx));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_read),   cmocka_unit_test(casts_refused),
        cmocka_unit_test(empty_ones),       cmocka_unit_test(rows_kept),
        cmocka_unit_test(copies_are_told),  cmocka_unit_test(other_ways),
        cmocka_unit_test(lazy_rows),        cmocka_unit_test(nets_with_csr),
        cmocka_unit_test(rows_are_summed),  cmocka_unit_test(sparse_on_the_tape),
        cmocka_unit_test(columns_twice),    cmocka_unit_test(products_without_copies),
        cmocka_unit_test(products_refused), cmocka_unit_test(squares_of_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
