/*
 * Moving elements: a strided copy in any number of dimensions, for any element size. Transposes, slices,
 * joins, tiles and flips are one of these with other strides.
 */
#ifndef TNCPU_MOVE_H
#define TNCPU_MOVE_H

#include "../common/cpu.h"
#include "plain.h"

#define TNCPU_MOVE_DIMS (2 * TN_NDIM_MAX) /* tile and repeat split each dimension in two */

/** Element (i0, i1 …) goes from src + Σ i·src_step to dst + Σ i·dst_step; steps in elements, any sign, 0
 * allowed in src_step. */
typedef struct tncpu_move {
    int32_t ndim, size; /* size: bytes of an element: 1, 2, 4 or 8 */
    int64_t extent[TNCPU_MOVE_DIMS], src_step[TNCPU_MOVE_DIMS], dst_step[TNCPU_MOVE_DIMS];
} tncpu_move;

/** Appends a dimension; those of extent 1 are left out,
 * those that continue the last one are merged into it. */
void tncpu_move_add(tncpu_move *m, int64_t extent, int64_t src_step, int64_t dst_step);

void tncpu_move_run(const tncpu_move *m, const void *src, void *dst, int threads);

/** Row-major steps of a shape. */
void tncpu_move_steps(const int64_t *shape, int32_t ndim, int64_t *step);

/** The plan of a kernel that moves `count` elements. */
tn_status tncpu_move_plan(const tn_node *node, tn_plan *plan, int64_t count);

#endif
