/* Which norms _npi_norm takes, of what. On the host; norms.inc computes them. */
#ifndef TNB_NORMS_H
#define TNB_NORMS_H

#include "axes.h"
#include "norms_kinds.h"
#include "tenon/plugin/op/linalg.h"

#include <math.h>

typedef struct tnb_norm_plan {
    tnb_norm what;
    tnb_axes kept;
} tnb_norm_plan;

/* The axes of data by attribute; all of them are one axis for flag -2. */
static inline void tnb_norm_axes(const tn_node *node, const tn_tensor *data, tnb_norm_plan *plan)
{
    const tn_value axis = node->attrs[TN_npi_norm_axis];
    const int64_t given = tnb_tuple_count(axis), fallback = tnb_least(data->ndim, 2),
                  count = given ? given : fallback;
    const int32_t first = tnb_axis(tnb_tuple_item(axis, 0, -count), data->ndim),
                  last = tnb_axis(tnb_tuple_item(axis, count - 1, -1), data->ndim);
    const bool whole = tn_value_int(node->attrs[TN_npi_norm_flag]) == -2;
    tnb_norm *p = &plan->what;
    tnb_axes reduced;

    tnb_axes_split(data, whole ? UINT32_MAX : 1u << first | 1u << last, &plan->kept, &reduced);
    p->m = p->row = p->col = 1;
    p->n = tn_tensor_count(data);
    if (whole)
        return;
    p->m = count > 1 ? data->shape[first] : 1;
    p->row = data->stride[first];
    p->n = data->shape[last];
    p->col = data->stride[last];
    if (count > 1 && p->kind == TNB_NORM_VECTOR)
        return; /* Frobenius: all elements of the matrix */
    p->kind = count > 1 ? p->kind : TNB_NORM_VECTOR;
}

static inline int32_t tnb_norm_kind(double ord, int64_t flag)
{
    return flag == 2                     ? TNB_NORM_NUCLEAR
           : flag == 1 || flag == -2     ? TNB_NORM_VECTOR
           : (ord < 0 ? -ord : ord) == 2 ? TNB_NORM_SINGULAR
           : (ord < 0 ? -ord : ord) == 1 ? TNB_NORM_COLUMNS
                                         : TNB_NORM_ROWS;
}

static inline tnb_norm_plan tnb_norm_of(const tn_node *node, const tn_tensor *data)
{
    const int64_t flag = tn_value_int(node->attrs[TN_npi_norm_flag]);
    tnb_norm_plan p = {.what = {.ord = tn_value_float(node->attrs[TN_npi_norm_ord])}};

    p.what.kind = tnb_norm_kind(p.what.ord, flag);
    tnb_norm_axes(node, data, &p);
    if (p.what.kind == TNB_NORM_VECTOR && (flag == -2 || flag == 1))
        p.what.ord = 2;
    return p;
}

/* Numbers of room for a norm of matrices: the matrix, ut, singular values, or sums, and a gradient. */
static inline int64_t tnb_norm_room(const tnb_norm *p)
{
    const int64_t few = tnb_least(p->m, p->n), many = p->m + p->n - few;

    return p->kind == TNB_NORM_VECTOR ? 0 : 2 * few * many + few * few + 2 * many;
}

#endif
