/*
 * _npi_norm: norms of vectors, of matrices, or of all elements, in double. One output is one thread's. A norm
 * of vectors is taken in units of the largest element, so that no power runs over; elements that are 0 count
 * for none of them, as in MXNet.
 */
#include <math.h>

#include "../../common/axes.h"
#include "decompose.h"
#include "rows.h"
#include "tenon/plugin/op/linalg.h"

typedef enum norm_kind { VECTOR, COLUMNS, ROWS, SINGULAR, NUCLEAR } norm_kind;

/* Matrices (m, n) with these strides, of input `of`: a vector is one row. */
typedef struct norm_plan {
    norm_kind kind;
    double ord;
    tnb_axes kept;
    int64_t m, n, row, col;
} norm_plan;

typedef struct norm_call {
    const norm_plan *p;
    const tn_exec *x;
} norm_call;

/* The axes of data by attribute; all of them are one axis for flag -2. */
static void axes_read(const tn_node *node, const tn_tensor *data, norm_plan *p)
{
    const tn_value axis = node->attrs[TN_npi_norm_axis];
    const int64_t given = tncpu_tuple_count(axis), fallback = tncpu_min(data->ndim, 2),
                  count = given ? given : fallback;
    const int32_t first = tncpu_axis(tncpu_tuple_item(axis, 0, -count), data->ndim),
                  last = tncpu_axis(tncpu_tuple_item(axis, count - 1, -1), data->ndim);
    const bool whole = tn_value_int(node->attrs[TN_npi_norm_flag]) == -2;
    tnb_axes reduced;

    tnb_axes_split(data, whole ? UINT32_MAX : 1u << first | 1u << last, &p->kept, &reduced);
    p->m = p->row = p->col = 1;
    p->n = tn_tensor_count(data);
    if (whole)
        return;
    p->m = count > 1 ? data->shape[first] : 1;
    p->row = data->stride[first];
    p->n = data->shape[last];
    p->col = data->stride[last];
    if (count > 1 && p->kind == VECTOR)
        return; /* Frobenius: all elements of the matrix */
    p->kind = count > 1 ? p->kind : VECTOR;
}

static norm_kind kind_of(double ord, int64_t flag)
{
    return flag == 2                 ? NUCLEAR
           : flag == 1 || flag == -2 ? VECTOR
           : fabs(ord) == 2          ? SINGULAR
           : fabs(ord) == 1          ? COLUMNS
                                     : ROWS;
}

static tn_status norm_plan_make(void *plugin, const tn_node *node, tn_plan *plan, const tn_tensor *data,
                                tn_err *err)
{
    const int64_t flag = tn_value_int(node->attrs[TN_npi_norm_flag]);
    const tn_status st = tncpu_state(plugin, plan, sizeof(norm_plan), err);
    norm_plan *p = plan->state;
    int64_t few, many;

    if (st)
        return st;
    p->ord = tn_value_float(node->attrs[TN_npi_norm_ord]);
    p->kind = kind_of(p->ord, flag);
    axes_read(node, data, p);
    if (p->kind == VECTOR && (flag == -2 || flag == 1))
        p->ord = 2;
    few = tncpu_min(p->m, p->n);
    many = tncpu_max(p->m, p->n);
    tncpu_plan_tasks(node, plan, 50 + (double)p->kept.count * (50 + (double)p->m * (double)p->n * 10),
                     p->kept.count);
    if (tn_tensor_count(data) && p->kind != VECTOR) /* the matrix, ut, singular values, or sums */
        tncpu_plan_workspace(plan, (uint64_t)(2 * few * many + few * few + 2 * many) * sizeof(double));
    return TN_OK;
}

static tn_status norm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return norm_plan_make(plugin, node, plan, node->in[0], err);
}

/* in: dy, data */
static tn_status backward_norm_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return norm_plan_make(plugin, node, plan, node->in[1], err);
}

/* ---- vectors ------------------------------------------------------------------------------------- */

/* What of the elements: the largest and smallest size, or a sum of powers of them in units of `unit`. */
typedef struct vector_sum {
    double most, least, unit, ord, sum;
} vector_sum;

static void vector_add(vector_sum *v, const double *tile, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double size = fabs(tile[i]);

        v->most = size > v->most || isnan(size) ? size : v->most;
        v->least = size < v->least || isnan(size) ? size : v->least;
        if (v->unit > 0 && size != 0)
            v->sum += v->ord == 0   ? 1
                      : v->ord == 1 ? size / v->unit
                      : v->ord == 2 ? size / v->unit * (size / v->unit)
                                    : pow(size / v->unit, v->ord);
    }
}

static void vector_walk(const norm_plan *p, const tn_tensor *data, int64_t base, vector_sum *v)
{
    double tile[TNCPU_TILE];

    for (int64_t i = 0; i < p->m; i++)
        for (int64_t at = 0; at < p->n; at += TNCPU_TILE) {
            const int64_t n = tncpu_min(TNCPU_TILE, p->n - at);

            tncpu_numbers(data, base + i * p->row + at * p->col, p->col, n, tile);
            vector_add(v, tile, n);
        }
}

static double vector_norm(const norm_plan *p, const tn_tensor *data, int64_t base)
{
    vector_sum v = {.least = INFINITY, .ord = p->ord};

    vector_walk(p, data, base, &v);
    if (isinf(p->ord) || !isfinite(v.most) || (v.most == 0 && p->ord != 0))
        return p->ord < 0 && isinf(p->ord) ? (p->n ? v.least : 0) : v.most;
    v.unit = v.most == 0 ? 1 : v.most;
    vector_walk(p, data, base, &v);
    return p->ord == 0   ? v.sum
           : p->ord == 1 ? v.unit * v.sum
           : p->ord == 2 ? v.unit * sqrt(v.sum)
                         : v.unit * pow(v.sum, 1 / p->ord);
}

static double sign_of(double v)
{
    return (v > 0) - (v < 0);
}

/* The derivative of the norm `y` by an element. */
static double vector_slope(double ord, double v, double y)
{
    if (isinf(ord))
        return fabs(v) == y ? sign_of(v) : 0;
    return ord == 0 ? 0 : ord == 1 ? sign_of(v) : ord == 2 ? v / y : pow(fabs(v) / y, ord - 1) * sign_of(v);
}

static void vector_backward(const norm_plan *p, const tn_exec *x, int64_t base, double dy, double y)
{
    double tile[TNCPU_TILE];

    for (int64_t i = 0; i < p->m; i++)
        for (int64_t at = 0; at < p->n; at += TNCPU_TILE) {
            const int64_t n = tncpu_min(TNCPU_TILE, p->n - at), first = base + i * p->row + at * p->col;

            tncpu_numbers(x->in[1], first, p->col, n, tile);
            for (int64_t k = 0; k < n; k++)
                tile[k] = dy * vector_slope(p->ord, tile[k], y);
            tncpu_numbers_store(x->out[0], first, p->col, n, tile);
        }
}

/* ---- matrices ------------------------------------------------------------------------------------ */

/* Row-major (m, n), or its transpose. */
static void matrix_load(const norm_plan *p, const tn_tensor *data, int64_t base, bool turned, double *a)
{
    for (int64_t i = 0; i < (turned ? p->n : p->m); i++)
        tncpu_numbers(data, base + i * (turned ? p->col : p->row), turned ? p->row : p->col,
                      turned ? p->m : p->n, a + i * (turned ? p->m : p->n));
}

static void matrix_store(const norm_plan *p, const tn_tensor *data, int64_t base, bool turned,
                         const double *a)
{
    for (int64_t i = 0; i < (turned ? p->n : p->m); i++)
        tncpu_numbers_store(data, base + i * (turned ? p->col : p->row), turned ? p->row : p->col,
                            turned ? p->m : p->n, a + i * (turned ? p->m : p->n));
}

/* Sums of sizes along the columns, or along the rows: how many. */
static int64_t sums_make(const norm_plan *p, const double *a, double *sums)
{
    const bool columns = p->kind == COLUMNS;
    const int64_t count = columns ? p->n : p->m, length = columns ? p->m : p->n;

    for (int64_t k = 0; k < count; k++) {
        sums[k] = 0;
        for (int64_t l = 0; l < length; l++)
            sums[k] += fabs(columns ? a[l * p->n + k] : a[k * p->n + l]);
    }
    return count;
}

/* The largest or, with a negative order, the smallest. */
static double extreme(const double *v, int64_t count, double ord)
{
    double y = v[0];

    for (int64_t k = 1; k < count; k++)
        y = isnan(v[k]) || (ord > 0 ? v[k] > y : v[k] < y) ? v[k] : y;
    return y;
}

/* `a`, the matrix or its transpose, that which is wide, becomes V; behind it lie UT and the singular values,
 * whose place is returned. NULL: there are none. */
static double *singular(const norm_plan *p, const tn_tensor *data, int64_t base, double *a)
{
    const int64_t few = tncpu_min(p->m, p->n), many = tncpu_max(p->m, p->n);
    double *ut = a + few * many, *s = ut + few * few;

    matrix_load(p, data, base, p->m > p->n, a);
    for (int64_t k = 0; k < few * many; k++)
        if (!isfinite(a[k]))
            return NULL;
    return tncpu_la_svd(few, many, a, ut, s, NULL) ? NULL : s;
}

static double matrix_norm(const norm_plan *p, const tn_tensor *data, int64_t base, double *room)
{
    const int64_t few = tncpu_min(p->m, p->n);
    double sum = 0;
    const double *s;

    if (p->kind == COLUMNS || p->kind == ROWS) {
        matrix_load(p, data, base, false, room);
        return extreme(room + p->m * p->n, sums_make(p, room, room + p->m * p->n), p->ord);
    }
    if (!(s = singular(p, data, base, room)))
        return NAN;
    for (int64_t k = 0; k < few; k++)
        sum += s[k];
    return p->kind == NUCLEAR ? sum : extreme(s, few, p->ord);
}

/* The signs of the elements of sums that are the norm. */
static void sums_backward(const norm_plan *p, double *a, double *sums, double dy)
{
    const int64_t count = sums_make(p, a, sums);
    const double y = extreme(sums, count, p->ord);

    for (int64_t k = 0; k < p->m * p->n; k++)
        a[k] = sums[p->kind == COLUMNS ? k % p->n : k / p->n] == y ? dy * sign_of(a[k]) : 0;
}

static void matrix_backward(const norm_plan *p, const tn_exec *x, int64_t base, double dy, double *room)
{
    const int64_t few = tncpu_min(p->m, p->n), many = tncpu_max(p->m, p->n);
    double *ut = room + few * many, *y, *s;

    if (p->kind == COLUMNS || p->kind == ROWS) {
        matrix_load(p, x->in[1], base, false, room);
        sums_backward(p, room, ut, dy);
        matrix_store(p, x->out[0], base, false, room);
        return;
    }
    s = singular(p, x->in[1], base, room);
    y = ut + few * few + few; /* behind the singular values */
    for (int64_t i = 0; s && i < few; i++)
        for (int64_t j = 0; j < few; j++) {
            const bool counts = p->kind == NUCLEAR || s[j] == extreme(s, few, p->ord);

            ut[i * few + j] *= counts ? dy : 0;
        }
    if (s)
        tncpu_la_product(few, many, few, ut, false, room, false, y);
    for (int64_t k = 0; !s && k < few * many; k++)
        y[k] = NAN;
    matrix_store(p, x->out[0], base, p->m > p->n, y);
}

/* ---- runs ---------------------------------------------------------------------------------------- */

static void norm_part(const void *arg, int64_t k, double *room)
{
    const norm_call *c = arg;
    const norm_plan *p = c->p;
    const int64_t base = tnb_axes_offset(&p->kept, k);
    double y = 0;

    if (p->m && p->n)
        y = p->kind == VECTOR ? vector_norm(p, c->x->in[0], base) : matrix_norm(p, c->x->in[0], base, room);
    tncpu_numbers_store(c->x->out[0], k, 1, 1, &y);
}

static void backward_norm_part(const void *arg, int64_t k, double *room)
{
    const norm_call *c = arg;
    const norm_plan *p = c->p;
    const int64_t base = tnb_axes_offset(&p->kept, k);
    const double dy = tncpu_number(c->x->in[0], k);

    if (!p->m || !p->n)
        return;
    if (p->kind == VECTOR)
        vector_backward(p, c->x, base, dy, vector_norm(p, c->x->in[1], base));
    else
        matrix_backward(p, c->x, base, dy, room);
}

static tn_status norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const norm_call c = {plan->state, x};

    (void)err;
    tncpu_rows_run(plan, x, c.p->kept.count, 0, norm_part, &c);
    return TN_OK;
}

static tn_status backward_norm_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const norm_call c = {plan->state, x};

    (void)err;
    if (tn_tensor_count(x->out[0]))
        tncpu_rows_run(plan, x, c.p->kept.count, 0, backward_norm_part, &c);
    return TN_OK;
}

/* clang-format off */
const tn_kernel *const tncpu_family_matrix_norm[] = {
    TNCPU_ROW("_npi_norm", TNCPU_TYPES("data:" TNCPU_ALL, "*:=data"), TN_KERNEL_EMPTY_OK, norm_prepare,
              norm_run),
    TNCPU_ROW("_backward__npi_norm", TNCPU_TYPES("*:" TNCPU_FLOATS), TN_KERNEL_EMPTY_OK,
              backward_norm_prepare, backward_norm_run),
    NULL,
};
/* clang-format on */
