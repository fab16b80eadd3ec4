/*
 * Strided copies: transposes, slices, joins, tiles and flips are one of these with other strides. shape.inc,
 * slice.inc, join.inc and rearrange.inc plan them for every plugin, which includes them, and writes the
 * functions below itself.
 */
#ifndef TNB_MOVE_H
#define TNB_MOVE_H

#include "node.h"

#define TNB_MOVE_DIMS (2 * TN_NDIM_MAX) /* tile and repeat split each dimension in two */

/* Element (i0, i1 …) goes from src + Σ i·src_step to dst + Σ i·dst_step; steps in elements, any sign, 0
 * allowed in src_step. */
typedef struct tnb_move {
    int32_t ndim, size; /* size: bytes of an element: 1, 2, 4 or 8 */
    int64_t extent[TNB_MOVE_DIMS], src_step[TNB_MOVE_DIMS], dst_step[TNB_MOVE_DIMS];
} tnb_move;

static inline void tnb_move_begin(tnb_move *m, int32_t dtype)
{
    m->ndim = 0;
    m->size = (int32_t)tn_dtype_bytes(dtype);
}

/* Appends a dimension; those of extent 1 are left out, those that continue the last one are merged. */
static inline void tnb_move_add(tnb_move *m, int64_t extent, int64_t src_step, int64_t dst_step)
{
    const int32_t last = m->ndim - 1;
    int64_t joined;

    if (extent == 1)
        return;
    /* beside an extent of 0 the product of the others may be too large */
    if (last >= 0 && m->src_step[last] == src_step * extent && m->dst_step[last] == dst_step * extent &&
        !__builtin_mul_overflow(m->extent[last], extent, &joined)) {
        m->extent[last] = joined;
        m->src_step[last] = src_step;
        m->dst_step[last] = dst_step;
        return;
    }
    m->extent[m->ndim] = extent;
    m->src_step[m->ndim] = src_step;
    m->dst_step[m->ndim] = dst_step;
    m->ndim++;
}

/* Row-major steps of a shape. */
static inline void tnb_move_steps(const int64_t *shape, int32_t ndim, int64_t *step)
{
    int64_t n = 1;

    for (int32_t k = ndim; k-- > 0; n *= shape[k])
        step[k] = n;
}

/* ---- what a plugin writes ------------------------------------------------------------------------------ */

/* Plans a kernel that moves `count` elements, with `bytes` of zeroed state. */
tn_status tnb_move_prepare(void *plugin, const tn_node *node, tn_plan *plan, int64_t count, uint64_t bytes,
                           tn_err *err);
/* Nothing happens where an extent is 0. */
tn_status tnb_move_run(const tn_plan *plan, const tn_exec *x, const tnb_move *m, const void *src, void *dst,
                       tn_err *err);
/* The elements at dst become `number`. */
tn_status tnb_move_number(const tn_plan *plan, const tn_exec *x, const tnb_move *m, int32_t dtype,
                          double number, void *dst, tn_err *err);

/* All of an array as one run. */
static inline void tnb_move_all(tnb_move *m, const tn_tensor *t)
{
    tnb_move_begin(m, t->dtype);
    tnb_move_add(m, tn_tensor_count(t), 1, 1);
}

static inline tn_status tnb_move_zero(const tn_plan *plan, const tn_exec *x, const tn_tensor *t, tn_err *err)
{
    tnb_move m;

    tnb_move_all(&m, t);
    return tnb_move_number(plan, x, &m, t->dtype, 0, t->data, err);
}

/* `to` takes the elements of `from`, which has as many, in their order. */
static inline tn_status tnb_move_copy(const tn_plan *plan, const tn_exec *x, const tn_tensor *from,
                                      const tn_tensor *to, tn_err *err)
{
    tnb_move m;

    if (from->data == to->data)
        return TN_OK;
    tnb_move_all(&m, to);
    return tnb_move_run(plan, x, &m, from->data, to->data, err);
}

#endif
