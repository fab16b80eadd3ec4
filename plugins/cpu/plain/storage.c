/*
 * Sparse arrays: casts between storage types, rows that are kept, products of csr matrices. Casts move bytes,
 * so they serve every type; what is 0 is not stored, nor is -0. Index arrays were checked.
 */
#include "tenon/plugin/op/storage.h"
#include "tenon/plugin/op/matrix.h"
#include "tenon/plugin/op/reduce.h"
#include "tenon/plugin/op/slice.h"

#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "index.h"
#include "rows.h"
#include "tenon/plugin/util.h"

static int64_t place(const tn_tensor *t, int64_t at)
{
    return t->dtype == TN_I64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
}

/* Sizes of sparse outputs are told by the run. */
static tn_status storage_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 50 + (double)tn_tensor_count(node->in[0]), 1);
    if (node->out[0]->storage != TN_STORAGE_DENSE)
        plan->flags |= TN_PLAN_RESIZES;
    return TN_OK;
}

/* Scratch, zeroed. */
static tn_status scratch(const tn_exec *x, int64_t count, uint64_t size, void *out, tn_err *err)
{
    uint64_t bytes;
    void *p = NULL;
    tn_status st;

    if (!x->ops)
        return tn_fail(err, TN_E_UNSUPPORTED, "the host gives no memory within a call");
    if (__builtin_mul_overflow((uint64_t)count + 1, size, &bytes))
        return tn_fail(err, TN_E_NOMEM, "more places than any memory holds");
    if (!(st = x->ops->alloc(x->call, bytes, &p, err)))
        memset(p, 0, (size_t)bytes);
    memcpy(out, &p, sizeof p);
    return st;
}

/* Bytes of a row's elements; `bytes` of a tensor may span more than its own. */
static uint64_t row_bytes(const tn_tensor *t)
{
    uint64_t bytes = tn_dtype_bytes(t->dtype);

    for (int32_t d = 1; d < t->ndim; d++)
        bytes *= (uint64_t)t->shape[d];
    return bytes;
}

static void zero(const tn_tensor *t, uint64_t bytes)
{
    if (bytes)
        memset(t->data, 0, (size_t)bytes);
}

static uint64_t dense_bytes(const tn_tensor *t)
{
    return (uint64_t)tn_tensor_count(t) * tn_dtype_bytes(t->dtype);
}

/* ---- cast_storage -------------------------------------------------------------------------------------- */

/* Bits that may be set in 0: the sign of floating point. */
static bool is_zero(const unsigned char *at, uint64_t size, bool is_float)
{
    for (uint64_t i = 0; i < size; i++)
        if (at[i] &
            (is_float && i + 1 == size ? 0x7f : 0xff)) /* little-endian: the sign is in the last byte */
            return false;
    return true;
}

typedef struct matrix { /* dense elements as rows */
    const unsigned char *data;
    int64_t rows, across;
    uint64_t size; /* bytes of an element */
    bool is_float;
} matrix;

static matrix matrix_of(const tn_tensor *t)
{
    const int64_t across = t->shape[0] ? tn_tensor_count(t) / t->shape[0] : 0;

    return (matrix){t->data, across ? t->shape[0] : 0, across, /* rows of nothing are many at times */
                    tn_dtype_bytes(t->dtype),
                    t->dtype == TN_F32 || t->dtype == TN_F64 || t->dtype == TN_F16 || t->dtype == TN_BF16};
}

static const unsigned char *element(const matrix *m, int64_t row, int64_t i)
{
    return m->data + (uint64_t)(row * m->across + i) * m->size;
}

static bool row_stored(const matrix *m, int64_t row)
{
    for (int64_t i = 0; i < m->across; i++)
        if (!is_zero(element(m, row, i), m->size, m->is_float))
            return true;
    return false;
}

static tn_status to_rows(const tn_exec *x, tn_err *err)
{
    const matrix m = matrix_of(x->in[0]);
    const uint64_t bytes = (uint64_t)m.across * m.size;
    const tn_tensor *y;
    int64_t stored = 0;
    tn_status st;

    for (int64_t r = 0; r < m.rows; r++)
        stored += row_stored(&m, r);
    if ((st = x->ops->resize_sparse(x->call, 0, stored, &y, err)))
        return st;
    for (int64_t r = 0, k = 0; r < m.rows; r++)
        if (row_stored(&m, r)) {
            if (bytes)
                memcpy((char *)y->data + (uint64_t)k * bytes, element(&m, r, 0), (size_t)bytes);
            ((int64_t *)y->aux[0]->data)[k++] = r;
        }
    return TN_OK;
}

static tn_status to_csr(const tn_exec *x, tn_err *err)
{
    const matrix m = matrix_of(x->in[0]);
    const tn_tensor *y;
    int64_t stored = 0, k = 0;
    tn_status st;

    for (int64_t i = 0; i < m.rows * m.across; i++)
        stored += !is_zero(element(&m, 0, i), m.size, m.is_float);
    if ((st = x->ops->resize_sparse(x->call, 0, stored, &y, err)))
        return st;
    ((int64_t *)y->aux[0]->data)[0] = 0;
    for (int64_t r = 0; r < x->in[0]->shape[0]; r++) {
        for (int64_t i = 0; i < m.across; i++)
            if (!is_zero(element(&m, r, i), m.size, m.is_float)) {
                memcpy((char *)y->data + (uint64_t)k * m.size, element(&m, r, i), (size_t)m.size);
                ((int64_t *)y->aux[1]->data)[k++] = i;
            }
        ((int64_t *)y->aux[0]->data)[r + 1] = k;
    }
    return TN_OK;
}

static void from_rows(const tn_tensor *in, const tn_tensor *out)
{
    const uint64_t bytes = row_bytes(in);

    for (int64_t k = 0; bytes && k < in->aux[0]->shape[0]; k++)
        memcpy((char *)out->data + (uint64_t)place(in->aux[0], k) * bytes,
               (const char *)in->data + (uint64_t)k * bytes, (size_t)bytes);
}

static void from_csr(const tn_tensor *in, const tn_tensor *out)
{
    const uint64_t size = tn_dtype_bytes(in->dtype);

    for (int64_t r = 0; r < in->shape[0]; r++)
        for (int64_t k = place(in->aux[0], r); k < place(in->aux[0], r + 1); k++)
            memcpy((char *)out->data + (uint64_t)(r * in->shape[1] + place(in->aux[1], k)) * size,
                   (const char *)in->data + (uint64_t)k * size, (size_t)size);
}

/* The same storage type again. */
static tn_status copied(const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *y = x->out[0];
    const bool csr = in->storage == TN_STORAGE_CSR;
    uint64_t bytes = dense_bytes(in);

    if (in->storage != TN_STORAGE_DENSE) {
        const int64_t stored = in->aux[csr]->shape[0];
        const tn_status st = x->ops->resize_sparse(x->call, 0, stored, &y, err);

        if (st)
            return st;
        bytes = (uint64_t)stored * (csr ? tn_dtype_bytes(in->dtype) : row_bytes(in));
    }
    if (bytes)
        memcpy(y->data, in->data, (size_t)bytes);
    for (uint32_t a = 0; in->storage != TN_STORAGE_DENSE && a <= csr; a++)
        for (int64_t k = 0; k < in->aux[a]->shape[0]; k++)
            ((int64_t *)y->aux[a]->data)[k] = place(in->aux[a], k);
    return TN_OK;
}

static tn_status cast_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *out = x->out[0];

    (void)plan;
    if (in->storage == out->storage)
        return copied(x, err);
    if (out->storage != TN_STORAGE_DENSE)
        return out->storage == TN_STORAGE_CSR ? to_csr(x, err) : to_rows(x, err);
    zero(out, dense_bytes(out));
    if (in->storage == TN_STORAGE_CSR)
        from_csr(in, out);
    else
        from_rows(in, out);
    return TN_OK;
}

/* ---- _sparse_retain ------------------------------------------------------------------------------------ */

/* The rows that are asked for, ascending, each once. */
static tn_status wanted_rows(const tn_exec *x, int64_t **out, int64_t *count, tn_err *err)
{
    const int64_t n = tn_tensor_count(x->in[1]), rows = x->in[0]->shape[0];
    int64_t *ids = NULL, kept;
    const tn_status st = scratch(x, n, sizeof *ids, &ids, err);

    if (st)
        return st;
    if (n)
        tncpu_indices_load(x->in[1], ids);
    kept = tncpu_indices_distinct(ids, n);
    if (kept && (ids[0] < 0 || ids[kept - 1] >= rows))
        return tn_failf(err, TN_E_ARG, "row %lld is asked for, of %lld rows",
                        (long long)(ids[0] < 0 ? ids[0] : ids[kept - 1]), (long long)rows);
    *out = ids;
    *count = kept;
    return TN_OK;
}

static tn_status retain_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *y;
    const int64_t stored = in->aux[0]->shape[0];
    const uint64_t bytes = row_bytes(in);
    int64_t *ids = NULL, count = 0;
    tn_status st;

    (void)plan;
    if ((st = wanted_rows(x, &ids, &count, err)) || (st = x->ops->resize_sparse(x->call, 0, count, &y, err)))
        return st;
    zero(y, (uint64_t)count * bytes);
    for (int64_t k = 0, at = 0; k < count; k++) {
        ((int64_t *)y->aux[0]->data)[k] = ids[k];
        while (at < stored && place(in->aux[0], at) < ids[k])
            at++;
        if (bytes && at < stored && place(in->aux[0], at) == ids[k])
            memcpy((char *)y->data + (uint64_t)k * bytes, (const char *)in->data + (uint64_t)at * bytes,
                   (size_t)bytes);
    }
    return TN_OK;
}

/* ---- dot ----------------------------------------------------------------------------------------------- */

/* Of a csr matrix and a dense array: see storage.inc. */
typedef struct product {
    const tn_tensor *csr;
    const void *dense;
    int64_t down, right, n; /* of the dense one; elements of a row of y */
    const int64_t *at;      /* where a row, or column, of y lies */
    void *y;
    bool back; /* the csr one is transposed */
} product;

#define BODY "../plain/storage.inc"
#include "../common/floats.inc"

/* The dense operand, as it lies a matrix of `rows`. */
static void dense_set(const tn_tensor *t, int64_t rows, bool transposed, product *p)
{
    const int64_t across = rows ? tn_tensor_count(t) / rows : 0;

    p->dense = t->data;
    p->down = transposed ? 1 : across;
    p->right = transposed ? across : 1;
}

/* Marks the rows, or columns, that something is stored in; their number. */
static int64_t places_mark(const tn_tensor *csr, bool rows, int64_t *at)
{
    int64_t stored = 0;

    for (int64_t r = 0; r < csr->shape[0]; r++)
        for (int64_t k = place(csr->aux[0], r); k < place(csr->aux[0], r + 1); k++)
            at[rows ? r : place(csr->aux[1], k)] = 1;
    for (int64_t i = 0; i < csr->shape[!rows]; i++)
        stored += at[i];
    return stored;
}

/* Each mark becomes the number of its place among the marked ones, which `ids` lists; NULL: of all. */
static void places_number(int64_t *at, int64_t n, int64_t *ids)
{
    for (int64_t i = 0, k = 0; i < n; i++) {
        const int64_t stored = at[i];

        if (ids && stored)
            ids[k] = i;
        at[i] = ids ? k : i;
        k += stored;
    }
}

static tn_status dot_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool ta = node->attrs[TN_dot_transpose_a] != 0, tb = node->attrs[TN_dot_transpose_b] != 0;
    const tn_status st = storage_prepare(plugin, node, plan, err);

    if (node->in[0]->ndim != 2 || node->in[1]->ndim < 1 || (tb && node->in[1]->ndim != 2))
        return tn_fail(err, TN_E_UNSUPPORTED, "of a csr matrix, and of a matrix where it is transposed");
    if (!st && !ta)
        tncpu_plan_tasks(node, plan, 50 + (double)tn_tensor_count(node->out[0]), node->in[0]->shape[0]);
    return st;
}

static void dot_run(const tn_plan *plan, const tn_exec *x, const product *p)
{
    zero(x->out[0], dense_bytes(x->out[0]));
    tncpu_rows_run(plan, x, p->csr->shape[0], 0, p->csr->dtype == TN_F32 ? csr_row_f32 : csr_row_f64, p);
}

/* Rows of the product of the transpose: those of columns that something is stored in. */
static tn_status dot_back_run(const tn_exec *x, product *p, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    const bool sparse = y->storage != TN_STORAGE_DENSE;
    int64_t *at = NULL, stored = 0;
    tn_status st = scratch(x, p->csr->shape[1], sizeof *at, &at, err);

    if (st)
        return st;
    stored = places_mark(p->csr, false, at);
    if (sparse && (st = x->ops->resize_sparse(x->call, 0, stored, &y, err)))
        return st;
    places_number(at, p->csr->shape[1], sparse ? y->aux[0]->data : NULL);
    zero(y, sparse ? (uint64_t)(stored * p->n) * tn_dtype_bytes(y->dtype) : dense_bytes(y));
    p->at = at;
    p->y = y->data;
    (p->csr->dtype == TN_F32 ? csr_back_f32 : csr_back_f64)(p);
    return TN_OK;
}

static tn_status dot_any_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool ta = x->attrs[TN_dot_transpose_a] != 0, tb = x->attrs[TN_dot_transpose_b] != 0;
    const tn_tensor *csr = x->in[0], *dense = x->in[1];
    const int64_t summed = csr->shape[!ta], out = csr->shape[ta];
    product p = {.csr = csr, .y = x->out[0]->data};

    p.n = tb ? dense->shape[0] : out ? tn_tensor_count(x->out[0]) / out : 0;
    dense_set(dense, tb ? p.n : summed, tb, &p);
    if (ta)
        return dot_back_run(x, &p, err);
    dot_run(plan, x, &p);
    return TN_OK;
}

/* ---- dot, the csr matrix behind ------------------------------------------------------------------------ */

static tn_status left_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool ta = node->attrs[TN_dot_transpose_a] != 0, tb = node->attrs[TN_dot_transpose_b] != 0;
    const tn_tensor *lhs = node->in[0], *rhs = node->in[1], *y = node->out[0];
    const tn_status st = storage_prepare(plugin, node, plan, err);
    const int64_t summed = rhs->shape[tb];

    if (lhs->ndim < 1 || (ta && lhs->ndim != 2) || (y->storage != TN_STORAGE_DENSE && y->ndim != 2))
        return tn_fail(err, TN_E_UNSUPPORTED, "of a matrix, where it is transposed or the product is csr");
    if (!st)
        tncpu_plan_tasks(node, plan, 50 + (double)tn_tensor_count(lhs),
                         summed ? tn_tensor_count(lhs) / summed : 1);
    return st;
}

/* Each row of a csr product stores the columns that may be other than 0. */
static tn_status left_resize(const tn_exec *x, int64_t rows, int64_t stored, const tn_tensor **y, tn_err *err)
{
    const tn_status st = x->ops->resize_sparse(x->call, 0, rows * stored, y, err);

    for (int64_t r = 0; !st && r <= rows; r++)
        ((int64_t *)(*y)->aux[0]->data)[r] = r * stored;
    return st;
}

static tn_status left_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool ta = x->attrs[TN_dot_transpose_a] != 0, tb = x->attrs[TN_dot_transpose_b] != 0;
    const tn_tensor *lhs = x->in[0], *csr = x->in[1], *y = x->out[0];
    const bool sparse = y->storage != TN_STORAGE_DENSE;
    const int64_t summed = csr->shape[tb], columns = csr->shape[!tb];
    const int64_t rows = ta ? lhs->shape[1] : tncpu_dims(lhs, 0, lhs->ndim - 1);
    int64_t *at = NULL, *ids = NULL, stored = columns;
    product p = {.csr = csr, .back = tb};
    tn_status st = scratch(x, columns, sizeof *at, &at, err);

    if (!st && sparse) {
        stored = places_mark(csr, tb, at);
        st = left_resize(x, rows, stored, &y, err);
    }
    if (st || !rows)
        return st;
    ids = sparse ? y->aux[1]->data : NULL;
    places_number(at, columns, stored ? ids : NULL);
    for (int64_t r = 1; ids && stored && r < rows; r++)
        memcpy(ids + r * stored, ids, (size_t)stored * sizeof *ids);
    zero(y, (uint64_t)(rows * stored) * tn_dtype_bytes(y->dtype));
    dense_set(lhs, ta ? summed : rows, ta, &p);
    p.n = stored;
    p.at = at;
    p.y = y->data;
    tncpu_rows_run(plan, x, rows, 0, y->dtype == TN_F32 ? dense_row_f32 : dense_row_f64, &p);
    return TN_OK;
}

/* ---- sum, mean ----------------------------------------------------------------------------------------- */

static tn_status sum_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tuple *axis = (const tn_tuple *)tn_value_pointer(node->attrs[TN_reduce_axis]);

    if (node->in[0]->ndim != 2 || !axis || axis->count != 1)
        return tn_fail(err, TN_E_UNSUPPORTED, "along one axis of a matrix");
    if (__builtin_mul_overflow((uint64_t)tncpu_max(node->in[0]->shape[0], node->in[0]->shape[1]),
                               sizeof(double), &plan->workspace_bytes))
        return tn_fail(err, TN_E_NOMEM, "a sum of too many");
    return storage_prepare(plugin, node, plan, err);
}

/* Which axis is left: 0 rows, 1 columns. */
static bool columns_left(const tn_exec *x)
{
    const tn_tuple *axis = (const tn_tuple *)tn_value_pointer(x->attrs[TN_reduce_axis]);
    const bool columns = axis->item[0] == 0 || axis->item[0] == -2;

    return columns != (x->attrs[TN_reduce_exclude] != 0);
}

static void sum_by(const tn_exec *x, bool mean)
{
    const tn_tensor *in = x->in[0], *out = x->out[0];
    const bool columns = columns_left(x);
    const int64_t count = in->shape[columns];
    double *sums = x->workspace, each;

    if (count)
        memset(sums, 0, (size_t)count * sizeof *sums);
    for (int64_t r = 0; r < in->shape[0]; r++)
        for (int64_t k = place(in->aux[0], r); k < place(in->aux[0], r + 1); k++) {
            tncpu_numbers(in, k, 1, 1, &each);
            sums[columns ? place(in->aux[1], k) : r] += each;
        }
    for (int64_t i = 0; mean && i < count; i++)
        sums[i] /= (double)in->shape[!columns];
    tncpu_numbers_store(out, 0, 1, count, sums);
}

TNCPU_RUN(sum_run, sum_by(x, false))
TNCPU_RUN(mean_run, sum_by(x, true))

/* ---- sums of squares of rows --------------------------------------------------------------------------- */

static tn_status squares_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const uint64_t columns = node->in[0]->ndim == 2 ? (uint64_t)node->in[0]->shape[1] : 0;

    if (node->in[0]->ndim != 2)
        return tn_fail(err, TN_E_UNSUPPORTED, "of a matrix");
    if (__builtin_mul_overflow(2 * columns + 1, sizeof(double), &plan->workspace_bytes))
        return tn_fail(err, TN_E_NOMEM, "a sum of too many");
    return storage_prepare(plugin, node, plan, err);
}

static tn_status squares_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *y = x->out[0];
    const bool columns = columns_left(x), sparse = y->storage != TN_STORAGE_DENSE;
    const int64_t stored = in->aux[0]->shape[0], across = in->shape[1];
    double *row = x->workspace, *sums = row + across;
    tn_status st;

    (void)plan;
    if (sparse && (st = x->ops->resize_sparse(x->call, 0, stored, &y, err)))
        return st;
    if (!sparse)
        zero(y, dense_bytes(y));
    for (int64_t i = 0; i <= across; i++)
        sums[i] = 0;
    for (int64_t k = 0; k < stored; k++) {
        const int64_t at = place(in->aux[0], k);
        double sum = 0;

        tncpu_numbers(in, k * across, 1, across, row);
        for (int64_t i = 0; i < across; i++) {
            sums[i] += row[i] * row[i];
            sum += row[i] * row[i];
        }
        if (!columns)
            tncpu_numbers_store(y, sparse ? k : at, 1, 1, &sum);
        if (sparse)
            ((int64_t *)y->aux[0]->data)[k] = at;
    }
    if (columns)
        tncpu_numbers_store(y, 0, 1, across, sums);
    return TN_OK;
}

/* ---- slice --------------------------------------------------------------------------------------------- */

static tn_status slice_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    if (node->in[0]->ndim != 2)
        return tn_fail(err, TN_E_UNSUPPORTED, "of a matrix");
    return storage_prepare(plugin, node, plan, err);
}

/* The first row and column; TN_E_SHAPE: the output has another extent. */
static tn_status window_of(const tn_exec *x, int64_t *start, tn_err *err)
{
    for (int32_t d = 0; d < 2; d++) {
        int64_t step = 1, count = x->in[0]->shape[d];

        start[d] = 0;
        if (d < tn_attrs_tuple_count(x->attrs, TN_slice_begin))
            count = tn_range_of(x->in[0]->shape[d], tn_attrs_tuple_item(x->attrs, TN_slice_begin, d),
                                tn_attrs_tuple_item(x->attrs, TN_slice_end, d), 1, &start[d], &step);
        if (count != x->out[0]->shape[d])
            return tn_fail(err, TN_E_SHAPE, "begin and end do not give the extent of the window");
    }
    return TN_OK;
}

/* How many elements of the window are stored; with `y`, they are put there. */
static int64_t window_copy(const tn_tensor *in, const int64_t *start, const int64_t *shape,
                           const tn_tensor *y)
{
    const uint64_t size = tn_dtype_bytes(in->dtype);
    int64_t stored = 0;

    for (int64_t r = 0; r < shape[0]; r++) {
        for (int64_t k = place(in->aux[0], start[0] + r); k < place(in->aux[0], start[0] + r + 1); k++) {
            const int64_t column = place(in->aux[1], k) - start[1];

            if (column < 0 || column >= shape[1])
                continue;
            if (y) {
                memcpy((char *)y->data + (uint64_t)stored * size, (const char *)in->data + (uint64_t)k * size,
                       (size_t)size);
                ((int64_t *)y->aux[1]->data)[stored] = column;
            }
            stored++;
        }
        if (y)
            ((int64_t *)y->aux[0]->data)[r + 1] = stored;
    }
    return stored;
}

static tn_status slice_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *y;
    int64_t start[2];
    tn_status st;

    (void)plan;
    if ((st = window_of(x, start, err)) ||
        (st = x->ops->resize_sparse(x->call, 0, window_copy(in, start, x->out[0]->shape, NULL), &y, err)))
        return st;
    ((int64_t *)y->aux[0]->data)[0] = 0;
    (void)window_copy(in, start, y->shape, y);
    return TN_OK;
}

/* ---- the family ---------------------------------------------------------------------------------------- */

static const char *const cast_types[] = {"data:dense,row_sparse,csr," TNCPU_ALL,
                                         "output:dense,row_sparse,csr,=data", NULL};
static const char *const retain_types[] = {"data:row_sparse," TNCPU_ALL, "indices:" TNCPU_ALL,
                                           "output:row_sparse,=data", NULL};
static const char *const dot_types[] = {"lhs:csr,f32,f64", "rhs:=lhs", "output:dense,row_sparse,=lhs", NULL};
static const char *const left_types[] = {"lhs:f32,f64", "rhs:csr,=lhs", "output:dense,csr,=lhs", NULL};
static const char *const sum_types[] = {"data:csr,f32,f64,f16,bf16,u8,i8,i32", "output:=data", NULL};
static const char *const squares_types[] = {"data:row_sparse,f32,f64", "output:dense,row_sparse,=data", NULL};
static const char *const slice_types[] = {"data:csr," TNCPU_ALL, "output:csr,=data", NULL};

const tn_kernel *const tncpu_family_storage[] = {
    TNCPU_ROW("cast_storage", cast_types, TN_KERNEL_EMPTY_OK, storage_prepare, cast_run),
    TNCPU_ROW("_sparse_retain", retain_types, TN_KERNEL_EMPTY_OK, storage_prepare, retain_run),
    TNCPU_ROW_NAMED("dot", "csr", dot_types, TN_KERNEL_EMPTY_OK, dot_prepare, dot_any_run),
    TNCPU_ROW_NAMED("dot", "left", left_types, TN_KERNEL_EMPTY_OK, left_prepare, left_run),
    TNCPU_ROW_NAMED("sum", "csr", sum_types, TN_KERNEL_EMPTY_OK, sum_prepare, sum_run),
    TNCPU_ROW_NAMED("mean", "csr", sum_types, TN_KERNEL_EMPTY_OK, sum_prepare, mean_run),
    TNCPU_ROW_NAMED("_square_sum", "rows", squares_types, TN_KERNEL_EMPTY_OK, squares_prepare, squares_run),
    TNCPU_ROW_NAMED("slice", "csr", slice_types, TN_KERNEL_EMPTY_OK, slice_prepare, slice_run),
    NULL,
};
