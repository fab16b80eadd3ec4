/* Which products of matrices dot, batch_dot, _linalg_gemm, _linalg_gemm2 and _linalg_syrk are. On the
 * host. */
#ifndef TNB_PRODUCT_H
#define TNB_PRODUCT_H

#include "node.h"
#include "tenon/plugin/op/linalg.h"
#include "tenon/plugin/op/matrix.h"

#include <stdbool.h>

/* a (m, k), b (k, n), y (m, n), `batch` times, with the steps of one matrix. */
typedef struct tnb_product {
    int64_t batch, m, n, k;
    int64_t a_row, a_col, b_row, b_col;
    int32_t dtype;
} tnb_product;

static inline tnb_product tnb_dot_product(const tn_value *attrs, const tn_tensor *a, const tn_tensor *b)
{
    const int ta = tn_value_int(attrs[TN_dot_transpose_a]) != 0,
              tb = tn_value_int(attrs[TN_dot_transpose_b]) != 0;
    tnb_product p = {.batch = 1, .dtype = a->dtype};

    p.k = a->shape[ta ? 0 : a->ndim - 1];
    p.m = ta ? tnb_dims(a, 1, a->ndim) : tnb_dims(a, 0, a->ndim - 1);
    p.n = tb ? tnb_dims(b, 0, b->ndim - 1) : tnb_dims(b, 1, b->ndim);
    p.a_row = ta ? 1 : p.k, p.a_col = ta ? p.m : 1;
    p.b_row = tb ? 1 : p.n, p.b_col = tb ? p.k : 1;
    return p;
}

static inline tnb_product tnb_batch_product(const tn_value *attrs, const tn_tensor *a, const tn_tensor *b)
{
    const int ta = tn_value_int(attrs[TN_dot_transpose_a]) != 0,
              tb = tn_value_int(attrs[TN_dot_transpose_b]) != 0;
    const int32_t n = a->ndim;
    tnb_product p = {.batch = tnb_dims(a, 0, n - 2), .dtype = a->dtype};

    p.m = a->shape[ta ? n - 1 : n - 2];
    p.k = a->shape[ta ? n - 2 : n - 1];
    p.n = b->shape[tb ? n - 2 : n - 1];
    p.a_row = ta ? 1 : p.k, p.a_col = ta ? p.m : 1;
    p.b_row = tb ? 1 : p.n, p.b_col = tb ? p.k : 1;
    return p;
}

/* alpha op(a) op(b) + beta c, where rows stand at any axis but the last one: (outer, rows, inner,
 * columns). */
typedef struct tnb_axis_product {
    int64_t outer, inner, m, n, k;
    int64_t a_row, a_col, b_row, b_col, c_row;
    int64_t a_batch, a_inner, b_batch, b_inner, c_batch, c_inner; /* from matrix to matrix */
    double alpha, beta;
    bool symmetric; /* of y the upper triangle is the lower one */
} tnb_axis_product;

static inline tnb_axis_product tnb_axis_product_of(const tn_tensor *a, const tn_tensor *b, const tn_tensor *y,
                                                   int32_t axis, bool ta, bool tb)
{
    const int32_t last = a->ndim - 1;
    const int64_t a_row = tnb_dims(a, axis + 1, a->ndim), b_row = tnb_dims(b, axis + 1, b->ndim);
    tnb_axis_product p = {.outer = tnb_dims(a, 0, axis), .inner = tnb_dims(a, axis + 1, last)};

    p.m = a->shape[ta ? last : axis];
    p.k = a->shape[ta ? axis : last];
    p.n = b->shape[tb ? axis : last];
    p.a_row = ta ? 1 : a_row, p.a_col = ta ? a_row : 1;
    p.b_row = tb ? 1 : b_row, p.b_col = tb ? b_row : 1;
    p.c_row = tnb_dims(y, axis + 1, y->ndim);
    p.a_batch = a->shape[axis] * a_row, p.a_inner = a->shape[last];
    p.b_batch = b->shape[axis] * b_row, p.b_inner = b->shape[last];
    p.c_batch = y->shape[axis] * p.c_row, p.c_inner = y->shape[last];
    return p;
}

static inline tnb_axis_product tnb_gemm_product(const tn_value *attrs, const tn_tensor *const *in,
                                                const tn_tensor *y)
{
    tnb_axis_product p =
        tnb_axis_product_of(in[0], in[1], y, tnb_axis(tn_value_int(attrs[TN_linalg_gemm_axis]), y->ndim),
                            tn_value_int(attrs[TN_linalg_gemm_transpose_a]) != 0,
                            tn_value_int(attrs[TN_linalg_gemm_transpose_b]) != 0);

    p.alpha = tn_value_float(attrs[TN_linalg_gemm_alpha]);
    p.beta = tn_value_float(attrs[TN_linalg_gemm_beta]);
    return p;
}

static inline tnb_axis_product tnb_gemm2_product(const tn_value *attrs, const tn_tensor *const *in,
                                                 const tn_tensor *y)
{
    tnb_axis_product p =
        tnb_axis_product_of(in[0], in[1], y, tnb_axis(tn_value_int(attrs[TN_linalg_gemm2_axis]), y->ndim),
                            tn_value_int(attrs[TN_linalg_gemm2_transpose_a]) != 0,
                            tn_value_int(attrs[TN_linalg_gemm2_transpose_b]) != 0);

    p.alpha = tn_value_float(attrs[TN_linalg_gemm2_alpha]);
    return p;
}

static inline tnb_axis_product tnb_syrk_product(const tn_value *attrs, const tn_tensor *const *in,
                                                const tn_tensor *y)
{
    const bool transpose = tn_value_int(attrs[TN_linalg_syrk_transpose]) != 0;
    tnb_axis_product p = tnb_axis_product_of(in[0], in[0], y, y->ndim - 2, transpose, !transpose);

    p.alpha = tn_value_float(attrs[TN_linalg_syrk_alpha]);
    p.symmetric = true;
    return p;
}

#endif
