/*
 * Linear algebra on matrices that the last two axes hold, one for each index of the others: products,
 * triangular systems, decompositions, determinants, and NumPy's functions of the same kind. They take float32
 * and float64; NumPy's take integers, too, and compute them as float64.
 *
 * Gradients are made of other operators where that is short. Their formulas are those of Seeger et al.,
 * "Auto-Differentiating Linear Algebra" (arXiv 1710.08717), which MXNet follows.
 */
#include "tenon/plugin/op/linalg.h"

#include <math.h>

#include "op/cost.h"
#include "op/infer_help.h"

static const tn_attr_def trmm_attrs[] = TN_ATTR_TABLE(linalg_trmm);
static const tn_attr_def potrf_attrs[] = TN_ATTR_TABLE(linalg_potrf);
static const tn_attr_def diag_attrs[] = TN_ATTR_TABLE(linalg_diag);
static const tn_attr_def trian_attrs[] = TN_ATTR_TABLE(linalg_trian);
static const tn_attr_def eigh_attrs[] = TN_ATTR_TABLE(npi_eigh);

/* ---- data types --------------------------------------------------------------------------------- */

static tn_status matrix_dtype(tn_infer *i)
{
    const tn_status st = tni_dtype_same(i);
    const int32_t dtype = i->in_dtype[0];

    if (!st && dtype >= 0 && dtype != TN_F32 && dtype != TN_F64)
        return tni_infer_fail(i, TN_E_DTYPE, "%s is neither float32 nor float64, cast it first",
                              tni_dtype_name(dtype));
    return st;
}

/* What NumPy's functions compute with: float32 where all of the first `count` inputs are, else float64. */
static tn_status computed_dtype(tn_infer *i, uint32_t count)
{
    bool wide = false;
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < count; k++) {
        const int32_t dtype = i->in_dtype[k];

        if (dtype < 0)
            return TN_OK;
        if (dtype == TN_F16 || dtype == TN_BOOL)
            return tni_infer_fail(i, TN_E_DTYPE, "%s is not served, cast it first", tni_dtype_name(dtype));
        wide = wide || dtype != TN_F32;
    }
    for (uint32_t o = 0; o < i->out_count && !st; o++)
        st = tni_dtype_assign(i, &i->out_dtype[o], wide ? TN_F64 : TN_F32);
    return st;
}

static tn_status numpy_dtype(tn_infer *i)
{
    return computed_dtype(i, i->in_count);
}

static tn_status pinv_dtype(tn_infer *i)
{
    const int32_t rcond = i->in_dtype[1];

    if (rcond >= 0 && rcond != TN_F32 && rcond != TN_F64)
        return tni_infer_fail(i, TN_E_DTYPE, "rcond is %s, but float32 and float64 are served",
                              tni_dtype_name(rcond));
    return computed_dtype(i, 1);
}

/* ---- shapes ------------------------------------------------------------------------------------- */

/* The axis of the rows; negative: there is no such. */
static int32_t gemm_axis(const tn_infer *i)
{
    const int64_t axis = tni_attr_int(i->attrs, i->in_count > 2 ? TN_linalg_gemm_axis : TN_linalg_gemm2_axis);
    const int32_t ndim = i->in_shape[0]->ndim;

    return axis < -ndim || axis >= ndim - 1 || axis == -1 ? -1 : (int32_t)(axis < 0 ? axis + ndim : axis);
}

/* (..., m, ..., k) by (..., k, ..., n): rows stand at `axis`, columns last. */
static tn_status gemm_shape(tn_infer *i)
{
    const bool mac = i->in_count > 2, ta = tni_attr_bool(i->attrs, TN_linalg_gemm_transpose_a),
               tb = tni_attr_bool(i->attrs, TN_linalg_gemm_transpose_b);
    tn_shape *a = i->in_shape[0], *b = i->in_shape[1], y;
    int32_t last, axis;
    tn_status st;

    if (a->ndim < 0 || b->ndim < 0)
        return TN_OK;
    if (a->ndim < 2 || a->ndim != b->ndim)
        return tni_infer_fail(i, TN_E_SHAPE, "A has %d dimensions and B %d: as many, at least 2, are needed",
                              a->ndim, b->ndim);
    last = a->ndim - 1;
    if ((axis = gemm_axis(i)) < 0)
        return tni_infer_fail(i, TN_E_SHAPE, "axis: rows of %d dimensions stand at one of the axes 0 to %d",
                              a->ndim, last - 1);
    for (int32_t d = 0; d < last; d++)
        if (d != axis && (st = tni_dim_unify(i, &a->dim[d], &b->dim[d])))
            return st;
    if ((st = tni_dim_unify(i, &a->dim[ta ? axis : last], &b->dim[tb ? last : axis])))
        return st;
    y = *a;
    y.dim[axis] = a->dim[ta ? last : axis];
    y.dim[last] = b->dim[tb ? axis : last];
    st = tn_shape_unify(i, i->out_shape[0], &y);
    return !st && mac ? tn_shape_unify(i, i->in_shape[2], &y) : st;
}

/* The batch's dimensions of matrices; for one matrix MXNet has (1). */
static tn_status sumlogdiag_shape(tn_infer *i)
{
    tn_shape *a = i->in_shape[0], y;
    tn_status st;

    if (a->ndim < 0)
        return TN_OK;
    if (a->ndim < 2)
        return tni_infer_fail(i, TN_E_SHAPE, "A has %d dimensions, at least 2 are needed", a->ndim);
    if ((st = tni_dim_unify(i, &a->dim[a->ndim - 1], &a->dim[a->ndim - 2])))
        return st;
    y = *a;
    y.ndim = a->ndim - 2;
    if (!y.ndim)
        y.dim[y.ndim++] = 1;
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static int64_t offset_of(const tn_infer *i)
{
    const int64_t offset = tni_attr_int(i->attrs, TN_linalg_diag_offset);

    return offset < 0 ? -offset : offset;
}

/* From (..., n, n); `*n`: the length of the diagonal, or -1. */
static tn_status extract_shape(tn_infer *i, tn_shape *y, int64_t *n)
{
    tn_shape *a = i->in_shape[0];
    tn_status st;

    *n = TN_DIM_UNKNOWN;
    if (a->ndim < 2)
        return tni_infer_fail(i, TN_E_SHAPE, "A has %d dimensions, at least 2 are needed", a->ndim);
    if ((st = tni_dim_unify(i, &a->dim[a->ndim - 1], &a->dim[a->ndim - 2])))
        return st;
    *y = *a;
    y->ndim--;
    if (a->dim[y->ndim] < 0)
        return TN_OK;
    *n = a->dim[y->ndim] - offset_of(i);
    if (*n < 0 || (*n == 0 && offset_of(i)))
        return tni_infer_fail(i, TN_E_SHAPE, "offset %lld is outside of matrices with %lld rows",
                              (long long)tni_attr_int(i->attrs, TN_linalg_diag_offset),
                              (long long)a->dim[y->ndim]);
    return TN_OK;
}

static tn_status extractdiag_shape(tn_infer *i)
{
    tn_shape y;
    int64_t n;
    tn_status st;

    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    if ((st = extract_shape(i, &y, &n)))
        return st;
    y.dim[y.ndim - 1] = n;
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status extracttrian_shape(tn_infer *i)
{
    tn_shape y;
    int64_t n, twice = 0;
    tn_status st;

    if (i->in_shape[0]->ndim < 0)
        return TN_OK;
    if ((st = extract_shape(i, &y, &n)))
        return st;
    if (n >= 0 && __builtin_mul_overflow(n, n + 1, &twice))
        return tni_infer_fail(i, TN_E_SHAPE, "a triangle of %lld rows is too large", (long long)n);
    y.dim[y.ndim - 1] = n < 0 ? TN_DIM_UNKNOWN : twice / 2;
    return tn_shape_unify(i, i->out_shape[0], &y);
}

/* To (..., n, n), n being `rows` and the offset. */
static tn_status make_shape(tn_infer *i, int64_t rows)
{
    const tn_shape *a = i->in_shape[0];
    tn_shape y = *a;

    if (a->ndim == TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the output would have more than %d dimensions", TN_NDIM_MAX);
    if (rows > INT64_MAX - offset_of(i))
        return tni_infer_fail(i, TN_E_SHAPE, "a matrix would have too many rows");
    y.dim[a->ndim - 1] = y.dim[a->ndim] = rows < 0 ? TN_DIM_UNKNOWN : rows + offset_of(i);
    y.ndim++;
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status scalar_refuse(tn_infer *i)
{
    return tni_infer_fail(i, TN_E_SHAPE, "A has no dimensions, at least 1 is needed");
}

static tn_status makediag_shape(tn_infer *i)
{
    const tn_shape *a = i->in_shape[0];

    if (a->ndim < 0)
        return TN_OK;
    return a->ndim ? make_shape(i, a->dim[a->ndim - 1]) : scalar_refuse(i);
}

#define ROWS_MAX 3037000498 /* whose triangle has a number of elements that fits */

static tn_status maketrian_shape(tn_infer *i)
{
    const tn_shape *a = i->in_shape[0];
    int64_t count, rows = 0, step = (int64_t)1 << 31;

    if (a->ndim < 0)
        return TN_OK;
    if (!a->ndim)
        return scalar_refuse(i);
    count = a->dim[a->ndim - 1];
    if (count < 0)
        return make_shape(i, TN_DIM_UNKNOWN);
    for (; step; step /= 2) /* the largest triangle with at most this many elements */
        if (rows + step <= ROWS_MAX && (rows + step) * (rows + step + 1) / 2 <= count)
            rows += step;
    if (rows * (rows + 1) / 2 != count)
        return tni_infer_fail(i, TN_E_SHAPE, "%lld elements do not make a triangle", (long long)count);
    return make_shape(i, rows);
}

/* ---- products and triangles --------------------------------------------------------------------- */

#define GEMM2(a, b, ...) "_linalg_gemm2(" a "," b ", " __VA_ARGS__ ")"
#define WITH_A "alpha=@alpha, axis=@axis"
#define TRANSPOSED(x) "SwapAxis(" x ", dim1=-2, dim2=-1)"
#define LOWER(x) "_linalg_maketrian(_linalg_extracttrian(" x "))"
#define TRIANGLE(x) "_linalg_maketrian(_linalg_extracttrian(" x ", lower=@lower), lower=@lower)"
/* The symmetric matrix with the lower triangle `t` of `x`. */
#define MIRRORED(t, x) t "+" TRANSPOSED(t) "-_linalg_makediag(_linalg_extractdiag(" x "))"

/* dA = alpha dy op(B)', dB = alpha op(A)' dy, or the transposes; `c`: one more step. */
#define GEMM_GRADIENTS(c)                                                                                    \
    "composed: [!transpose_a&!transpose_b] A = " GEMM2("dy", "B", "transpose_b=1," WITH_A) " ; B = " GEMM2(  \
        "A", "dy", "transpose_a=1," WITH_A) c                                                                \
        " | [transpose_a&!transpose_b] A = " GEMM2("B", "dy", "transpose_b=1," WITH_A) " ; B = " GEMM2(      \
            "A", "dy", WITH_A) c                                                                             \
        " | [!transpose_a&transpose_b] A = " GEMM2("dy", "B", WITH_A) " ; B = " GEMM2(                       \
            "dy", "A", "transpose_a=1," WITH_A) c                                                            \
        " | A = " GEMM2("B", "dy", "transpose_a=1, transpose_b=1," WITH_A) " ; B = " GEMM2(                  \
            "dy", "A", "transpose_a=1, transpose_b=1," WITH_A) c

static void gemm_cost(const tn_infer *i, tn_cost *c)
{
    const tn_shape *a = i->in_shape[0];
    const int32_t k = tni_attr_bool(i->attrs, TN_linalg_gemm_transpose_a) ? gemm_axis(i) : a->ndim - 1;

    tni_cost_products(c, tn_cost_times(tni_cost_elements(i->out_shape[0], 0), (uint64_t)a->dim[k]));
}

#define TRIANGLES "A:(S..,K,K) B:(S..,M,K)?rightside/(S..,K,N) -> output:B"
#define TRMM(x, t) "_linalg_trmm!(A, " x ", transpose=" t ")"
#define TRSM(x, t) "_linalg_trsm!(A, " x ", transpose=" t ", alpha=1)"
/* g = op(A)'^-1 dy, dB = alpha g, dA = -g X' or its transpose. */
#define TRSM_GRADIENTS(t, a, b, sides)                                                                       \
    "g = " TRSM("dy", t) " ; t = " GEMM2(a, b, sides "alpha=-1") " ; A = " TRIANGLE("t") " ; B = g*alpha"
#define TRMM_GRADIENTS(t, a, b, sides)                                                                       \
    "t = " GEMM2(a, b, sides "alpha=@alpha") " ; A = " TRIANGLE("t") " ; B = " TRMM("dy", t)

#define LINALG(name_, ...) TNI_ROW(name_, .dtype = matrix_dtype, __VA_ARGS__)
#define ALIAS(name) .aliases = TNI_NAMES(name)

/* ---- decompositions ----------------------------------------------------------------------------- */

#define SQUARE "A:(S..,N,N) -> "
/* dA = L^-T M L^-1 / 2, M being L' dL with its lower triangle mirrored. */
#define POTRF_GRADIENT(l, d)                                                                                 \
    "p = _linalg_trmm(" l ", " d ", transpose=1) ; t = " LOWER("p") " ; s = " MIRRORED(                      \
        "t", "p") " ; q = _linalg_trsm(" l ", s, transpose=1) ; A = _linalg_trsm(" l                         \
                  ", q, rightside=1, alpha=0.5)"
#define POTRI_PART                                                                                           \
    "t = " GEMM2("output", "dy", "alpha=-1") "+" GEMM2("output", "dy", "transpose_b=1, alpha=-1")

static const tn_op cholesky = {
    .struct_size = TN_END(tn_op, types), .name = "_npi_cholesky", .computes = "_linalg_potrf"};

/* ---- NumPy's ------------------------------------------------------------------------------------ */

/* B has a vector or a matrix of right sides for each matrix of A. */
static tn_status solve_shape(tn_infer *i)
{
    tn_shape *a = i->in_shape[0], *b = i->in_shape[1];
    tn_status st;

    if ((st = tn_shape_unify(i, i->out_shape[0], b)) || a->ndim < 0)
        return st;
    if (a->ndim < 2)
        return tni_infer_fail(i, TN_E_SHAPE, "A has %d dimensions, at least 2 are needed", a->ndim);
    if ((st = tni_dim_unify(i, &a->dim[a->ndim - 1], &a->dim[a->ndim - 2])) || b->ndim < 0)
        return st;
    if (b->ndim != a->ndim && b->ndim != a->ndim - 1)
        return tni_infer_fail(i, TN_E_SHAPE, "A has %d dimensions and B %d, %d or %d are needed", a->ndim,
                              b->ndim, a->ndim - 1, a->ndim);
    for (int32_t d = 0; d < a->ndim - 1 && !st; d++)
        st = tni_dim_unify(i, &a->dim[d], &b->dim[d]);
    return st ? st : tn_shape_unify(i, i->out_shape[0], b);
}

/* (..., m, n) to (..., n, m) */
static tn_status pinv_shape(tn_infer *i)
{
    const tn_shape *a = i->in_shape[0];
    tn_shape y = *a, batch = *a, both = {0};
    tn_status st;

    if (a->ndim < 0)
        return TN_OK;
    if (a->ndim < 2)
        return tni_infer_fail(i, TN_E_SHAPE, "A has %d dimensions, at least 2 are needed", a->ndim);
    y.dim[a->ndim - 1] = a->dim[a->ndim - 2];
    y.dim[a->ndim - 2] = a->dim[a->ndim - 1];
    if ((st = tn_shape_unify(i, i->out_shape[0], &y)) || i->in_count < 2 || i->in_shape[1]->ndim < 0)
        return st;
    batch.ndim = a->ndim - 2;
    if ((st = tni_shape_broadcast(i, &batch, i->in_shape[1], &both)))
        return st;
    if (both.ndim == 1 && batch.ndim == 0 && both.dim[0] == 1) /* without np_shape a number is (1) */
        return TN_OK;
    return tn_shape_unify(i, &both, &batch);
}

/* The first `ind` axes are the rows of one square matrix, the others its columns; both change places. */
static tn_status tensorinv_shape(tn_infer *i)
{
    const int64_t given = tni_attr_int(i->attrs, TN_npi_tensorinv_ind);
    const tn_shape *a = i->in_shape[0];
    tn_shape y = *a, rows = *a, columns = {0};
    const int32_t ind = (int32_t)(given < a->ndim ? given : a->ndim);

    if (!tn_shape_known(a))
        return TN_OK;
    if (a->ndim == 0)
        return scalar_refuse(i);
    rows.ndim = ind;
    for (int32_t d = 0; d < a->ndim; d++) {
        y.dim[(d + a->ndim - ind) % a->ndim] = a->dim[d];
        if (d >= ind)
            columns.dim[columns.ndim++] = a->dim[d];
    }
    if (tn_shape_count(&rows) != tn_shape_count(&columns) || tn_shape_count(&rows) == INT64_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "the first %d axes have %lld elements, the others %lld", ind,
                              (long long)tn_shape_count(&rows), (long long)tn_shape_count(&columns));
    if (tn_shape_count(&rows) == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "a matrix without elements has no inverse");
    return tn_shape_unify(i, i->out_shape[0], &y);
}

/* The shape of a with `axes` moved behind the others. */
static tn_status axes_moved(tn_infer *i, const tn_shape *a, tn_shape *out)
{
    const tn_tuple *axes = tni_attr_tuple(i->attrs, TN_npi_tensorsolve_a_axes);
    const int64_t count = tni_tuple_count(axes);
    uint32_t mask = 0;
    tn_status st;

    *out = *a;
    if (!count)
        return TN_OK;
    if ((st = tni_axes_mask(i, axes, false, a->ndim, &mask)))
        return st;
    out->ndim = 0;
    for (int32_t d = 0; d < a->ndim; d++)
        if (!(mask >> d & 1u))
            out->dim[out->ndim++] = a->dim[d];
    for (int64_t k = 0; k < count; k++)
        out->dim[out->ndim++] = a->dim[axes->item[k] < 0 ? axes->item[k] + a->ndim : axes->item[k]];
    return TN_OK;
}

/* a is one square matrix: its first axes are as many rows as b has elements, the others are the output's. */
static tn_status tensorsolve_shape(tn_infer *i)
{
    const tn_shape *a = i->in_shape[0], *b = i->in_shape[1];
    tn_shape moved, rows, y = {0};
    tn_status st;

    if (!tn_shape_known(a) || !tn_shape_known(b))
        return TN_OK;
    if ((st = axes_moved(i, a, &moved)))
        return st;
    rows = moved;
    rows.ndim = a->ndim == 0 || b->ndim == 0 ? 0 : a->ndim > b->ndim ? b->ndim : b->ndim - a->ndim;
    rows.ndim = rows.ndim < a->ndim ? rows.ndim : a->ndim;
    for (int32_t d = rows.ndim; d < a->ndim; d++)
        y.dim[y.ndim++] = moved.dim[d];
    if (tn_shape_count(&rows) != tn_shape_count(&y) || tn_shape_count(&y) != tn_shape_count(b) ||
        tn_shape_count(b) == INT64_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "a is a matrix (%lld, %lld), but b has %lld elements",
                              (long long)tn_shape_count(&rows), (long long)tn_shape_count(&y),
                              (long long)tn_shape_count(b));
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status norm_order_check(tn_infer *i, int64_t axes)
{
    const double ord = tni_attr_float(i->attrs, TN_npi_norm_ord);
    const int64_t flag = tni_attr_int(i->attrs, TN_npi_norm_flag);

    if (axes > 2)
        return tni_infer_fail(i, TN_E_ATTR, "axis has %lld items, 1 or 2 are needed", (long long)axes);
    if (axes == 1 && flag == 2)
        return tni_infer_fail(i, TN_E_ATTR, "vectors have no nuclear norm");
    if (isnan(ord) ||
        (axes == 2 && flag != 1 && flag != 2 && !isinf(ord) && fabs(ord) != 1 && fabs(ord) != 2))
        return tni_infer_fail(i, TN_E_ATTR, "ord %g is no order of %s", ord,
                              axes == 2 ? "a norm of matrices" : "a norm");
    return TN_OK;
}

/* Over all axes with flag -2, else over those that are given, or the last two, or the only one. */
static tn_status norm_shape(tn_infer *i)
{
    const tn_tuple *axis = tni_attr_tuple(i->attrs, TN_npi_norm_axis);
    const bool whole = tni_attr_int(i->attrs, TN_npi_norm_flag) == -2;
    const tn_shape *x = i->in_shape[0];
    const int64_t count = axis ? axis->count : x->ndim < 2 ? x->ndim : 2;
    uint32_t mask = UINT32_MAX;
    tn_shape y;
    tn_status st = TN_OK;

    if (whole && axis)
        return tni_infer_fail(i, TN_E_ATTR, "flag -2 is for all elements, axis must be None");
    if (x->ndim < 0)
        return TN_OK;
    if (!whole && count == 0)
        return tni_infer_fail(i, axis ? TN_E_ATTR : TN_E_SHAPE, "there is no axis to take the norm over");
    if (!whole &&
        ((st = norm_order_check(i, count)) || (axis && (st = tni_axes_mask(i, axis, false, x->ndim, &mask)))))
        return st;
    if (!whole && !axis)
        mask = (count == 2 ? 3u : 1u) << (x->ndim - (int32_t)count);
    tni_shape_reduce(x, mask, tni_attr_bool(i->attrs, TN_npi_norm_keepdims), i->flags & TN_INFER_NP_SHAPE,
                     &y);
    return tn_shape_unify(i, i->out_shape[0], &y);
}

#define NUMPY(name_, ...) TNI_ROW(name_, __VA_ARGS__)
#define EIGEN .dtype = numpy_dtype, .flags = TN_OP_CHECKS_VALUES | TN_OP_ZERO_GRADIENT

/* clang-format off */
const tn_op *const tni_family_linalg[] = {
    LINALG("_linalg_gemm", ALIAS("linalg_gemm"), .doc = "alpha A B + beta C, each a product of matrices.",
           .attrs = TNI_ATTRS(linalg_gemm), .inputs = TNI_NAMES("A", "B", "C"),
           .outputs = TNI_NAMES("output"),
           .shape = gemm_shape, .cost = gemm_cost, .gradients = GEMM_GRADIENTS(" ; C = dy*beta")),
    LINALG("_linalg_gemm2", ALIAS("linalg_gemm2"), .doc = "alpha A B, each a product of matrices.",
           .attrs = TNI_ATTRS(linalg_gemm2), .inputs = TNI_NAMES("A", "B"), .outputs = TNI_NAMES("output"),
           .shape = gemm_shape, .cost = gemm_cost, .gradients = GEMM_GRADIENTS("")),
    LINALG("_linalg_syrk", ALIAS("linalg_syrk"), .doc = "alpha A A', the product with the own transpose.",
           .attrs = TNI_ATTRS(linalg_syrk), .shapes = "A:(S..,M,K)?!transpose/(S..,K,M) -> output:(S..,M,M)",
           .gradients = "composed: [transpose] A = " GEMM2("A", "dy", "alpha=@alpha") "+"
                        GEMM2("A", "dy", "transpose_b=1, alpha=@alpha")
                        " | A = " GEMM2("dy", "A", "alpha=@alpha") "+"
                        GEMM2("dy", "A", "transpose_a=1, alpha=@alpha")),
    LINALG("_linalg_trmm", ALIAS("linalg_trmm"),
           .doc = "alpha A B with a triangular matrix A, or alpha B A.", .attrs = trmm_attrs,
           .shapes = TRIANGLES,
           .gradients = "composed: [!transpose&!rightside] " TRMM_GRADIENTS("1", "dy", "B", "transpose_b=1,")
                        " | [transpose&!rightside] " TRMM_GRADIENTS("0", "B", "dy", "transpose_b=1,")
                        " | [!transpose] " TRMM_GRADIENTS("1", "B", "dy", "transpose_a=1,")
                        " | " TRMM_GRADIENTS("0", "dy", "B", "transpose_a=1,")),
    LINALG("_linalg_trsm", ALIAS("linalg_trsm"),
           .doc = "The solution X of A X = alpha B with a triangular matrix A, or of X A = alpha B.",
           .attrs = trmm_attrs, .shapes = TRIANGLES,
           .gradients = "composed: [!transpose&!rightside] "
                        TRSM_GRADIENTS("1", "g", "output", "transpose_b=1,")
                        " | [transpose&!rightside] " TRSM_GRADIENTS("0", "output", "g", "transpose_b=1,")
                        " | [!transpose] " TRSM_GRADIENTS("1", "output", "g", "transpose_a=1,")
                        " | " TRSM_GRADIENTS("0", "g", "output", "transpose_a=1,")),
    LINALG("_linalg_sumlogdiag", ALIAS("linalg_sumlogdiag"),
           .doc = "The sum of the logarithms of the diagonal.", .inputs = TNI_NAMES("A"),
           .outputs = TNI_NAMES("output"), .shape = sumlogdiag_shape, .gradients = "once: dy A -> A"),
    LINALG("_linalg_extractdiag", ALIAS("linalg_extractdiag"), .doc = "A diagonal of each matrix.",
           .attrs = diag_attrs, .inputs = TNI_NAMES("A"), .outputs = TNI_NAMES("output"),
           .shape = extractdiag_shape, .gradients = "composed: A = _linalg_makediag!(dy)"),
    LINALG("_linalg_makediag", ALIAS("linalg_makediag"),
           .doc = "Matrices of zeros with this diagonal.", .attrs = diag_attrs, .inputs = TNI_NAMES("A"),
           .outputs = TNI_NAMES("output"), .shape = makediag_shape,
           .gradients = "composed: A = _linalg_extractdiag!(dy)"),
    LINALG("_linalg_extracttrian", ALIAS("linalg_extracttrian"),
           .doc = "A triangle of each matrix as a vector, row by row.", .attrs = trian_attrs,
           .inputs = TNI_NAMES("A"), .outputs = TNI_NAMES("output"), .shape = extracttrian_shape,
           .gradients = "composed: A = _linalg_maketrian!(dy)"),
    LINALG("_linalg_maketrian", ALIAS("linalg_maketrian"),
           .doc = "Matrices of zeros with this triangle.", .attrs = trian_attrs, .inputs = TNI_NAMES("A"),
           .outputs = TNI_NAMES("output"), .shape = maketrian_shape,
           .gradients = "composed: A = _linalg_extracttrian!(dy)"),
    LINALG("_linalg_potrf", ALIAS("linalg_potrf"),
           .doc = "Cholesky's triangular factor L of symmetric A = L L'; one triangle of A is read.",
           .attrs = potrf_attrs, .flags = TN_OP_CHECKS_VALUES, .shapes = SQUARE "output:A",
           .gradients = "composed: [lower] " POTRF_GRADIENT("output", "dy")
                        " | l = " TRANSPOSED("output") " ; d = " TRANSPOSED("dy") " ; "
                        POTRF_GRADIENT("l", "d")),
    LINALG("_linalg_potri", ALIAS("linalg_potri"),
           .doc = "The inverse of L L' with a triangular matrix L.",
           .attrs = potrf_attrs, .flags = TN_OP_CHECKS_VALUES, .shapes = SQUARE "output:A",
           .gradients = "composed: [lower] " POTRI_PART " ; s = _linalg_trsm(A, t, rightside=1, transpose=1)"
                        " ; A = " LOWER("s")
                        " | " POTRI_PART " ; s = _linalg_trsm(A, t, rightside=1, lower=0)"
                        " ; u = " LOWER("s") " ; A = " TRANSPOSED("u")),
    LINALG("_linalg_gelqf", ALIAS("linalg_gelqf"),
           .doc = "Q with orthonormal rows and a lower triangle L, A = L Q; A is no taller than wide.",
           .shapes = "A:(S..,M,N) -> Q:A L:(S..,M,M) ; D=N-M",
           .gradients = "composed: m = _linalg_trmm(L, dy1, transpose=1)-" GEMM2("dy", "Q", "transpose_b=1")
                        " ; t = " LOWER("m") " ; s = " MIRRORED("t", "m")
                        " ; A = _linalg_trsm(L, dy+" GEMM2("s", "Q", "alpha=1") ", transpose=1)"),
    LINALG("_linalg_syevd",
           .doc = "Eigenvectors as rows of U and ascending eigenvalues L of symmetric A = U' diag(L) U.",
           .shapes = SQUARE "U:A L:(S..,N)", .gradients = "once: dy dy1 U L -> A"),
    LINALG("_linalg_inverse", .aliases = TNI_NAMES("_npi_inv", "linalg_inverse"), .doc = "The inverse.",
           .flags = TN_OP_CHECKS_VALUES, .shapes = SQUARE "output:A",
           .gradients = "composed: t = " GEMM2("output", "dy", "transpose_a=1") " ; A = "
                        GEMM2("t", "output", "transpose_b=1, alpha=-1")),
    LINALG("_linalg_det", .aliases = TNI_NAMES("_npi_det", "linalg_det"),
           .doc = "The determinant; where it is 0, so is its gradient.", .shapes = SQUARE "output:(S..)",
           .gradients = "once: dy A output -> A"),
    LINALG("_linalg_slogdet", .aliases = TNI_NAMES("_npi_slogdet", "linalg_slogdet"),
           .doc = "Sign of the determinant and logarithm of its size; where it is 0, so is the gradient.",
           .shapes = SQUARE "sign:(S..) logabsdet:(S..)", .gradients = "once: dy1 A sign -> A"),
    &cholesky,
    NUMPY("_npi_eig", .doc = "Eigenvalues w and eigenvectors, columns of v; all must be real.", EIGEN,
          .shapes = SQUARE "w:(S..,N) v:A"),
    NUMPY("_npi_eigvals", .doc = "Eigenvalues, which must be real.", EIGEN, .shapes = SQUARE "w:(S..,N)"),
    NUMPY("_npi_eigh",
          .doc = "Ascending eigenvalues w, and eigenvectors as columns of v, of symmetric matrices.",
          EIGEN, .attrs = eigh_attrs, .shapes = SQUARE "w:(S..,N) v:A"),
    NUMPY("_npi_eigvalsh", .doc = "Ascending eigenvalues of symmetric matrices.", EIGEN,
          .attrs = eigh_attrs, .shapes = SQUARE "w:(S..,N)"),
    NUMPY("_npi_svd", .dtype = matrix_dtype,
          .doc = "A = UT diag(L) V with descending singular values L; A is no taller than wide.",
          .shapes = "A:(S..,M,N) -> UT:(S..,M,M) L:(S..,M) V:A ; D=N-M",
          .gradients = "once: dy dy1 dy2 UT L V -> A"),
    NUMPY("_npi_pinv",
          .doc = "The pseudo-inverse; singular values up to rcond of the largest one count as 0.",
          .attrs = TNI_ATTRS(npi_pinv), .flags = TN_OP_ZERO_GRADIENT, .inputs = TNI_NAMES("A", "rcond"),
          .outputs = TNI_NAMES("output"), .shape = pinv_shape, .dtype = pinv_dtype),
    NUMPY("_npi_pinv_scalar_rcond", .doc = "The pseudo-inverse.",
          .attrs = TNI_ATTRS(npi_pinv_scalar_rcond),
          .flags = TN_OP_ZERO_GRADIENT, .inputs = TNI_NAMES("A"), .outputs = TNI_NAMES("output"),
          .shape = pinv_shape, .dtype = numpy_dtype),
    NUMPY("_npi_solve", .doc = "The solution X of A X = B.", .flags = TN_OP_CHECKS_VALUES,
          .inputs = TNI_NAMES("A", "B"), .outputs = TNI_NAMES("output"), .shape = solve_shape,
          .dtype = numpy_dtype, .gradients = "once: dy A ~B output -> A B"),
    NUMPY("_npi_tensorinv", .doc = "The inverse of a matrix whose rows and columns are several axes.",
          .attrs = TNI_ATTRS(npi_tensorinv), .flags = TN_OP_CHECKS_VALUES, .inputs = TNI_NAMES("a"),
          .outputs = TNI_NAMES("output"), .shape = tensorinv_shape, .dtype = numpy_dtype,
          .gradients = "once: dy ~a output -> a"),
    NUMPY("_npi_tensorsolve",
          .doc = "The solution x of a x = b, a being a matrix whose rows and columns are several axes.",
          .attrs = TNI_ATTRS(npi_tensorsolve), .flags = TN_OP_CHECKS_VALUES, .inputs = TNI_NAMES("a", "b"),
          .outputs = TNI_NAMES("output"), .shape = tensorsolve_shape, .dtype = numpy_dtype,
          .gradients = "once: dy a ~b output -> a b"),
    NUMPY("_npi_norm", .doc = "Norms of vectors, of matrices, or of all elements.",
          .attrs = TNI_ATTRS(npi_norm),
          .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"), .shape = norm_shape,
          .gradients = "once: dy data -> data", .cost = tni_cost_each_input),
    NULL,
};
/* clang-format on */
