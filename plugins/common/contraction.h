/*
 * Contractions of two arrays: the axes of each are its batch, those that it has alone (`outer`: rows of a,
 * columns of b) and those that are summed over. On the host.
 */
#ifndef TNB_CONTRACTION_H
#define TNB_CONTRACTION_H

#include "move.h"
#include "tenon/plugin/op/products.h"

#include <stdbool.h>
#include <string.h>

typedef struct tnb_group {
    int32_t ndim;
    int64_t count, extent[TN_NDIM_MAX], step[TN_NDIM_MAX];
} tnb_group;

/* One operand: `outer` are the rows of a, the columns of b. */
typedef struct tnb_operand {
    tnb_group batch, outer, summed;
    int64_t row, col; /* for the includer: steps of the matrix outer × summed where it lies, or is brought */
    bool packed;      /* for the includer: it is brought into this order */
} tnb_operand;

typedef struct tnb_contraction {
    tnb_operand a, b;
    int64_t batches, batch_ndim, batch_extent[TN_NDIM_MAX]; /* of the output */
    int64_t m, n, k;
    int32_t dtype;
} tnb_contraction;

static inline void tnb_group_add(tnb_group *g, int64_t extent, int64_t step)
{
    g->extent[g->ndim] = extent;
    g->step[g->ndim++] = step;
    g->count *= extent;
}

/* Axes of `t` in groups: the first `batch` of them, those of `summed` in its order, the others. */
static inline void tnb_operand_of(const tn_tensor *t, int32_t batch, const int32_t *summed, int32_t count,
                                  tnb_operand *o)
{
    int64_t step[TN_NDIM_MAX];
    uint32_t gone = 0;

    *o = (tnb_operand){.batch = {.count = 1}, .outer = {.count = 1}, .summed = {.count = 1}};
    tnb_move_steps(t->shape, t->ndim, step);
    for (int32_t k = 0; k < count; k++) {
        tnb_group_add(&o->summed, t->shape[summed[k]], step[summed[k]]);
        gone |= 1u << summed[k];
    }
    for (int32_t d = 0; d < t->ndim; d++)
        if (d < batch)
            tnb_group_add(&o->batch, t->shape[d], step[d]);
        else if (!(gone >> d & 1u))
            tnb_group_add(&o->outer, t->shape[d], step[d]);
}

static inline void tnb_tensordot_of(const tn_node *node, const tn_tensor *a, const tn_tensor *b,
                                    tnb_contraction *c)
{
    const tn_value left = node->attrs[TN_npi_tensordot_a_axes_summed],
                   right = node->attrs[TN_npi_tensordot_b_axes_summed];
    const int32_t count = (int32_t)tnb_tuple_count(left);
    int32_t in_a[TN_NDIM_MAX], in_b[TN_NDIM_MAX];

    for (int32_t k = 0; k < count; k++) {
        in_a[k] = tnb_axis(tnb_tuple_item(left, k, 0), a->ndim);
        in_b[k] = tnb_axis(tnb_tuple_item(right, k, 0), b->ndim);
    }
    tnb_operand_of(a, 0, in_a, count, &c->a);
    tnb_operand_of(b, 0, in_b, count, &c->b);
}

static inline void tnb_int_axes_of(const tn_node *node, const tn_tensor *a, const tn_tensor *b,
                                   tnb_contraction *c)
{
    const int32_t count = (int32_t)tn_value_int(node->attrs[TN_npi_tensordot_int_axes_axes]);
    int32_t in_a[TN_NDIM_MAX], in_b[TN_NDIM_MAX];

    for (int32_t k = 0; k < count; k++) {
        in_a[k] = a->ndim - count + k;
        in_b[k] = k;
    }
    tnb_operand_of(a, 0, in_a, count, &c->a);
    tnb_operand_of(b, 0, in_b, count, &c->b);
}

/* dot has no batch; an operand without dimensions multiplies all of the other. */
static inline void tnb_pair_of(const tn_tensor *a, const tn_tensor *b, bool batch, tnb_contraction *c)
{
    const int32_t in_a = a->ndim - 1, in_b = b->ndim > 1 ? b->ndim - 2 : 0;
    const int32_t count = a->ndim > 0 && b->ndim > 0;

    tnb_operand_of(a, batch && a->ndim > 2 ? a->ndim - 2 : 0, &in_a, count, &c->a);
    tnb_operand_of(b, batch && b->ndim > 2 ? b->ndim - 2 : 0, &in_b, count, &c->b);
}

static inline void tnb_batches_of(tnb_contraction *c)
{
    const tnb_group *a = &c->a.batch, *b = &c->b.batch;

    c->batch_ndim = a->ndim > b->ndim ? a->ndim : b->ndim;
    c->batches = 1;
    for (int64_t d = 0; d < c->batch_ndim; d++) {
        const int64_t x = d + a->ndim - c->batch_ndim, y = d + b->ndim - c->batch_ndim;
        const int64_t in_a = x < 0 ? 1 : a->extent[x], in_b = y < 0 ? 1 : b->extent[y];

        c->batch_extent[d] = in_a == 1 ? in_b : in_a;
        c->batches *= c->batch_extent[d];
    }
}

static inline tnb_contraction tnb_contraction_of(const tn_node *node, const tn_tensor *a, const tn_tensor *b)
{
    const char *op = node->op + (strncmp(node->op, "_backward_", 10) ? 0 : 10);
    tnb_contraction c = {.dtype = a->dtype};

    if (strcmp(op, "_npi_tensordot") == 0)
        tnb_tensordot_of(node, a, b, &c);
    else if (strcmp(op, "_npi_tensordot_int_axes") == 0)
        tnb_int_axes_of(node, a, b, &c);
    else
        tnb_pair_of(a, b, strcmp(op, "_npi_matmul") == 0, &c);
    tnb_batches_of(&c);
    c.m = c.a.outer.count;
    c.n = c.b.outer.count;
    c.k = c.a.summed.count;
    return c;
}

#endif
