/*
 * Small operators: functions of elements and losses in double, a tile or a row at a time; Fourier transforms;
 * copies of rows.
 */
#include <math.h>

#include "../../common/contrib.h"
#include "forms.h"
#include "tenon/plugin/op/contrib.h"

/* ---- tiles ------------------------------------------------------------------------------------------- */

static int64_t tiles(const tn_node *node)
{
    return tncpu_ceil_div(tn_tensor_count(node->out[0]), TNCPU_TILE);
}

static int64_t one_task(const tn_node *node)
{
    (void)node;
    return 1;
}

/* Elements of a tile: how many there are, from *at on. */
static int64_t tile_of(const tn_tensor *t, int64_t tile, int64_t *at)
{
    *at = tile * TNCPU_TILE;
    return tncpu_min(TNCPU_TILE, tn_tensor_count(t) - *at);
}

/* Whole numbers are divided by what is whole of the root. */
static void div_sqrt_dim(const void *call, int64_t tile, double *room)
{
    const tn_exec *x = call;
    const tn_tensor *t = x->in[0];
    const double root = sqrt((double)t->shape[t->ndim - 1]),
                 by = tncpu_is_float(t->dtype) ? root : floor(root);
    double v[TNCPU_TILE];
    int64_t at, n = tile_of(t, tile, &at);

    (void)room;
    tncpu_numbers(t, at, 1, n, v);
    for (int64_t i = 0; i < n; i++)
        v[i] /= by;
    tncpu_numbers_store(x->out[0], at, 1, n, v);
}

static void quadratic(const void *call, int64_t tile, double *room)
{
    const tn_exec *x = call;
    const double a = tn_value_float(x->attrs[TN_contrib_quadratic_a]),
                 b = tn_value_float(x->attrs[TN_contrib_quadratic_b]),
                 c = tn_value_float(x->attrs[TN_contrib_quadratic_c]);
    double v[TNCPU_TILE];
    int64_t at, n = tile_of(x->in[0], tile, &at);

    (void)room;
    tncpu_numbers(x->in[0], at, 1, n, v);
    for (int64_t i = 0; i < n; i++)
        v[i] = tnb_quadratic(v[i], a, b, c);
    tncpu_numbers_store(x->out[0], at, 1, n, v);
}

static void copy(const void *call, int64_t task, double *room)
{
    const tn_exec *x = call;

    (void)room, (void)task;
    tncpu_copy(x->in[0], x->out[0]);
}

static void allclose(const void *call, int64_t task, double *room)
{
    const tn_exec *x = call;
    const double rtol = tn_value_float(x->attrs[TN_contrib_allclose_rtol]),
                 atol = tn_value_float(x->attrs[TN_contrib_allclose_atol]);
    const bool nans = tn_value_int(x->attrs[TN_contrib_allclose_equal_nan]) != 0;
    const int64_t count = tn_tensor_count(x->in[0]);
    double a[TNCPU_TILE], b[TNCPU_TILE];
    bool close = true;

    (void)room, (void)task;
    for (int64_t at = 0; at < count && close; at += TNCPU_TILE) {
        const int64_t n = tncpu_min(TNCPU_TILE, count - at);

        tncpu_numbers(x->in[0], at, 1, n, a);
        tncpu_numbers(x->in[1], at, 1, n, b);
        for (int64_t i = 0; i < n; i++)
            close = close && tnb_is_close(a[i], b[i], rtol, atol, nans);
    }
    *(uint8_t *)x->out[0]->data = close;
}

/* ---- csr --------------------------------------------------------------------------------------------- */

/* aux: row starts, columns */
static void getnnz(const void *call, int64_t task, double *room)
{
    const tn_exec *x = call;
    const tn_tensor *data = x->in[0];
    const int64_t *axis = (const int64_t *)tn_value_pointer(x->attrs[TN_contrib_getnnz_axis]);
    const int64_t *starts = data->aux[0]->data, *columns = data->aux[1]->data;
    int64_t *to = x->out[0]->data;

    (void)room, (void)task;
    memset(to, 0, sizeof *to * (size_t)tn_tensor_count(x->out[0]));
    if (!axis)
        *to = starts[data->shape[0]];
    else if (*axis == 1)
        for (int64_t i = 0; i < data->shape[0]; i++)
            to[i] = starts[i + 1] - starts[i];
    else
        for (int64_t i = 0; i < starts[data->shape[0]]; i++)
            to[columns[i]]++;
}

/* ---- losses ------------------------------------------------------------------------------------------ */

static int64_t rows(const tn_node *node)
{
    return tncpu_dims(node->out[0], 0, node->out[0]->ndim - 1);
}

/* in: y, label; out: the gradient of the loss of one example */
static void svm_row(const void *call, int64_t row, double *room)
{
    const tn_exec *x = call;
    const int64_t size = x->in[0]->shape[x->in[0]->ndim - 1];
    const double margin = tn_value_float(x->attrs[TN_SVMOutput_margin]),
                 factor = tn_value_float(x->attrs[TN_SVMOutput_regularization_coefficient]),
                 label = trunc(tncpu_number(x->in[1], row));
    const bool hinge = tn_value_int(x->attrs[TN_SVMOutput_use_linear]) != 0;
    double v[TNCPU_TILE];

    (void)room;
    for (int64_t at = 0; at < size; at += TNCPU_TILE) {
        const int64_t n = tncpu_min(TNCPU_TILE, size - at);

        tncpu_numbers(x->in[0], row * size + at, 1, n, v);
        for (int64_t i = 0; i < n; i++)
            v[i] = tnb_svm_slope(v[i], (double)(at + i) == label, margin, factor, hinge);
        tncpu_numbers_store(x->out[0], row * size + at, 1, n, v);
    }
}

#define UNITS 128

/* Some units are the task, for all examples. */
static int64_t units(const tn_node *node)
{
    return tncpu_ceil_div(node->out[0]->shape[1], UNITS);
}

typedef struct sparse_reg_call {
    const tn_exec *x;
    bool train;
} sparse_reg_call;

/* in: data, moving_avg; out: output, average, moving_avg */
static void sparse_reg_units(const void *arg, int64_t task, double *room)
{
    const tn_exec *x = ((const sparse_reg_call *)arg)->x;
    const tn_tensor *data = x->in[0], *moving = x->out[2];
    const int64_t n = data->shape[0], size = data->shape[1], first = task * UNITS,
                  wide = tncpu_min(UNITS, size - first);
    const double keep = tn_value_float(x->attrs[TN_IdentityAttachKLSparseReg_momentum]);
    const size_t bytes = tn_dtype_bytes(data->dtype);
    const bool copies = x->modes[0] && x->out[0]->data != data->data;
    const bool train = ((const sparse_reg_call *)arg)->train;
    double average[UNITS], sum[UNITS] = {0}, v[UNITS];

    (void)room;
    for (int64_t i = 0; i < n && (train || copies); i++) {
        const size_t at = (size_t)(i * size + first) * bytes;

        if (copies)
            memcpy((char *)x->out[0]->data + at, (const char *)data->data + at, (size_t)wide * bytes);
        if (!train)
            continue;
        tncpu_numbers(data, i * size + first, 1, wide, v);
        for (int64_t k = 0; k < wide; k++)
            sum[k] += v[k];
    }
    tncpu_numbers(moving, first, 1, wide, average);
    if (train && n) {
        for (int64_t k = 0; k < wide; k++)
            average[k] = average[k] * keep + (1 - keep) * (sum[k] / (double)n);
        tncpu_numbers_store(moving, first, 1, wide, average);
    }
    if (x->modes[1])
        tncpu_numbers_store(x->out[1], first, 1, wide, average);
}

static tn_status sparse_reg_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncpu_state(plugin, plan, sizeof(bool), err);

    if (st)
        return st;
    *(bool *)plan->state = (node->flags & TN_NODE_TRAIN) != 0;
    tncpu_plan_tasks(node, plan, 50 + 8 * (double)tn_tensor_count(node->in[0]), units(node));
    return TN_OK;
}

static tn_status sparse_reg_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const sparse_reg_call call = {x, *(const bool *)plan->state};

    (void)err;
    tncpu_rows_run(plan, x, tncpu_ceil_div(x->in[0]->shape[1], UNITS), 0, sparse_reg_units, &call);
    return TN_OK;
}

/* in: dy, average */
static void backward_sparse_reg(const void *call, int64_t task, double *room)
{
    const tn_exec *x = call;
    const double target = tn_value_float(x->attrs[TN_IdentityAttachKLSparseReg_sparseness_target]),
                 penalty = tn_value_float(x->attrs[TN_IdentityAttachKLSparseReg_penalty]);
    const int64_t size = x->out[0]->shape[1], first = task * UNITS, wide = tncpu_min(UNITS, size - first);
    double more[UNITS], v[UNITS];

    (void)room;
    tncpu_numbers(x->in[1], first, 1, wide, more);
    for (int64_t k = 0; k < wide; k++)
        more[k] = tnb_sparse_slope(more[k], target, penalty);
    for (int64_t at = first; at < tn_tensor_count(x->out[0]); at += size) {
        tncpu_numbers(x->in[0], at, 1, wide, v);
        for (int64_t k = 0; k < wide; k++)
            v[k] += more[k];
        tncpu_numbers_store(x->out[0], at, 1, wide, v);
    }
}

/* ---- Fourier transforms: a row is the task ----------------------------------------------------------- */

static int64_t fft_length(const tn_node *node)
{
    const tn_tensor *t = node->in[0]->bytes < node->out[0]->bytes ? node->in[0] : node->out[0];

    return t->shape[t->ndim - 1];
}

/* Three rows of complex numbers and the roots of 1. */
static uint64_t fft_room(const tn_node *node)
{
    return 8 * (uint64_t)fft_length(node) * sizeof(double);
}

/* y = transform of the n numbers x, x + step …; `roots` of 1 of the whole length, `jump` n-th ones apart. The
 * smallest factor of n splits it; a prime n is summed directly. `spare` has room for n numbers. */
static void transform(const double *x, int64_t step, int64_t n, const double *roots, int64_t length,
                      double *y, double *spare)
{
    const int64_t jump = n ? length / n : 0;
    int64_t p = 2;

    while (p * p <= n && n % p)
        p++;
    p = p * p <= n ? p : n;
    for (int64_t r = 0; p < n && r < p; r++)
        transform(x + 2 * r * step, step * p, n / p, roots, length, spare + 2 * r * (n / p),
                  y + 2 * r * (n / p));
    for (int64_t k = 0; k < n; k++) {
        double re = 0, im = 0;

        for (int64_t r = 0; r < p; r++) {
            const double *v = p < n ? spare + 2 * (r * (n / p) + k % (n / p)) : x + 2 * r * step;
            const double *w = roots + 2 * (r * k % n * jump);

            re += v[0] * w[0] - v[1] * w[1];
            im += v[0] * w[1] + v[1] * w[0];
        }
        y[2 * k] = re;
        y[2 * k + 1] = im;
    }
}

static void roots_of_one(double *roots, int64_t n, double sign)
{
    for (int64_t k = 0; k < n; k++) {
        const double angle = sign * 6.283185307179586476925287 * (double)k / (double)n;

        roots[2 * k] = cos(angle);
        roots[2 * k + 1] = sin(angle);
    }
}

static void fft_row(const void *call, int64_t row, double *room)
{
    const tn_exec *x = call;
    const int64_t n = x->in[0]->shape[x->in[0]->ndim - 1];
    double *in = room, *out = room + 2 * n, *roots = room + 4 * n, *spare = room + 6 * n;

    roots_of_one(roots, n, -1);
    tncpu_numbers(x->in[0], row * n, 1, n, out);
    for (int64_t k = 0; k < n; k++) {
        in[2 * k] = out[k];
        in[2 * k + 1] = 0;
    }
    transform(in, 1, n, roots, n, out, spare);
    tncpu_numbers_store(x->out[0], row * 2 * n, 1, 2 * n, out);
}

static void ifft_row(const void *call, int64_t row, double *room)
{
    const tn_exec *x = call;
    const int64_t n = x->out[0]->shape[x->out[0]->ndim - 1];
    double *in = room, *out = room + 2 * n, *roots = room + 4 * n, *spare = room + 6 * n;

    roots_of_one(roots, n, 1);
    tncpu_numbers(x->in[0], row * 2 * n, 1, 2 * n, in);
    transform(in, 1, n, roots, n, out, spare);
    for (int64_t k = 0; k < n; k++)
        out[k] = out[2 * k];
    tncpu_numbers_store(x->out[0], row * n, 1, n, out);
}

/* ---- index_copy -------------------------------------------------------------------------------------- */

TNCPU_PREPARE(index_copy_prepare, tncpu_plan_tasks(node, plan, 50 + (double)tn_tensor_count(node->out[0]), 1))

/* Where row number `k` goes, in bytes of `t`. */
static tn_status row_find(const tn_tensor *index, int64_t k, const tn_tensor *t, size_t each, size_t *at,
                          tn_err *err)
{
    const double row = trunc(tncpu_number(index, k));

    if (!(row >= 0 && row < (double)t->shape[0]))
        return tn_fail(err, TN_E_ARG, "an index lies outside of the rows of old_tensor");
    *at = (size_t)row * each;
    return TN_OK;
}

static size_t row_bytes(const tn_tensor *t)
{
    return (size_t)tncpu_dims(t, 1, t->ndim) * tn_dtype_bytes(t->dtype);
}

static tn_status index_copy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const size_t each = row_bytes(x->out[0]);
    tn_status st = TN_OK;
    size_t at = 0;

    (void)plan;
    tncpu_copy(x->in[0], x->out[0]);
    for (int64_t k = 0; k < x->in[1]->shape[0] && !st; k++)
        if (!(st = row_find(x->in[1], k, x->out[0], each, &at, err)))
            memcpy((char *)x->out[0]->data + at, (const char *)x->in[2]->data + (size_t)k * each, each);
    return st;
}

/* in: dy, index_vector, shape of new_tensor; out: gradients of old_tensor and new_tensor */
static tn_status backward_index_copy_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const size_t each = row_bytes(x->in[0]);
    tn_status st = TN_OK;
    size_t at = 0;

    (void)plan;
    if (x->modes[0])
        tncpu_copy(x->in[0], x->out[0]);
    for (int64_t k = 0; k < x->in[1]->shape[0] && !st; k++) {
        if ((st = row_find(x->in[1], k, x->in[0], each, &at, err)))
            break;
        if (x->modes[1])
            memcpy((char *)x->out[1]->data + (size_t)k * each, (const char *)x->in[0]->data + at, each);
        if (x->modes[0])
            memset((char *)x->out[0]->data + at, 0, each);
    }
    return st;
}

/* ---- kernels ----------------------------------------------------------------------------------------- */

static const char *const csr[] = {"data:csr," TNCPU_ALL, "output:i64", NULL};

#define CONTRIBS(X)                                                                                          \
    X("_contrib_div_sqrt_dim", tncpu_numeric, 0, contrib, tiles, div_sqrt_dim, NULL)                         \
    X("_contrib_quadratic", tncpu_numeric, 0, contrib, tiles, quadratic, NULL)                               \
    X("_contrib_gradientmultiplier", tncpu_all, 0, contrib, one_task, copy, NULL)                            \
    X("_contrib_allclose", tncpu_all, TN_KERNEL_EMPTY_OK, contrib, one_task, allclose, NULL)                 \
    X("_contrib_getnnz", csr, TN_KERNEL_EMPTY_OK, contrib, one_task, getnnz, NULL)                           \
    X("SVMOutput", tncpu_floats, 0, contrib, one_task, copy, NULL)                                           \
    X("_backward_SVMOutput", tncpu_floats, 0, contrib, rows, svm_row, NULL)                                  \
    X("_backward_IdentityAttachKLSparseReg", tncpu_floats, 0, contrib, units, backward_sparse_reg, NULL)     \
    X("_contrib_fft", tncpu_floats, 0, contrib, rows, fft_row, fft_room)                                     \
    X("_contrib_ifft", tncpu_floats, 0, contrib, rows, ifft_row, fft_room)

static const tncpu_form forms[] = {CONTRIBS(TNCPU_DOUBLE)};
TNCPU_DOUBLES(contrib, forms)

/* clang-format off */
const tn_kernel *const tncpu_family_contrib[] = {
    CONTRIBS(TNCPU_DOUBLE_ROW)
    TNCPU_ROW("IdentityAttachKLSparseReg", tncpu_floats, TN_KERNEL_EMPTY_OK, sparse_reg_prepare,
              sparse_reg_run),
    TNCPU_ROW("_contrib_index_copy", tncpu_all, 0, index_copy_prepare, index_copy_run),
    TNCPU_ROW("_backward__contrib_index_copy", tncpu_all, TN_KERNEL_EMPTY_OK, index_copy_prepare,
              backward_index_copy_run),
    NULL,
};
/* clang-format on */
