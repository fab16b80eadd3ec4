/* Which products of matrices dot and batch_dot are. On the host. */
#ifndef TNB_PRODUCT_H
#define TNB_PRODUCT_H

#include "node.h"
#include "tenon/plugin/op/matrix.h"

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

#endif
