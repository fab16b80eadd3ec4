/* NumPy's insert and delete: the array along its axis, and which of its indices are meant. On the host. */
#ifndef TNB_INSERT_H
#define TNB_INSERT_H

#include "node.h"
#include "tenon/plugin/op/insert.h"
#include "tenon/plugin/util.h"

#include <stdbool.h>
#include <string.h>

_Static_assert(TN_npi_insert_axis - TN_npi_insert_start == (int)TN_npi_delete_axis &&
                   TN_npi_insert_int_ind - TN_npi_insert_start == (int)TN_npi_delete_int_ind,
               "both have the same attributes in the same order");

/* The array with its axis; without one all its elements are a row. */
typedef struct tnb_edit {
    uint32_t attrs;             /* where start, stop, step, int_ind and axis begin */
    int32_t axis, ndim;         /* of what the rows are of; 0, 1: of all elements */
    int64_t outer, size, inner; /* the array's rows */
    bool tensor, alone;         /* indices are the last input; there is one, which is no list */
} tnb_edit;

static inline const int64_t *tnb_edit_given(const tnb_edit *e, const tn_value *attrs, uint32_t index)
{
    return (const int64_t *)tn_value_pointer(attrs[e->attrs + index]);
}

static inline void tnb_edit_of(const tn_node *node, tnb_edit *e)
{
    const bool removes = strcmp(node->op, "_npi_delete") == 0;
    const tn_tensor *x = node->in[0];
    const int64_t *axis;

    e->attrs = removes ? 0 : (uint32_t)TN_npi_insert_start;
    axis = tnb_edit_given(e, node->attrs, TN_npi_delete_axis);
    e->axis = axis ? tnb_axis(*axis, x->ndim) : 0;
    e->ndim = axis ? x->ndim : 1;
    e->outer = tnb_dims(x, 0, e->axis);
    e->size = axis ? x->shape[e->axis] : tn_tensor_count(x);
    e->inner = axis ? tnb_dims(x, e->axis + 1, x->ndim) : 1;
    e->tensor = strcmp(node->op, "_npi_insert_tensor") == 0 || (removes && node->in_count > 1);
    e->alone =
        strcmp(node->op, "_npi_insert_scalar") == 0 || (e->tensor && node->in[node->in_count - 1]->ndim == 0);
}

/* Without a tensor: indices first, first + step …; how many. The only index may be negative. */
static inline int64_t tnb_edit_range(const tnb_edit *e, const tn_value *attrs, int64_t *first, int64_t *step)
{
    const int64_t *given = tnb_edit_given(e, attrs, TN_npi_delete_step),
                  *one = tnb_edit_given(e, attrs, TN_npi_delete_int_ind);

    *step = given ? *given : 1;
    if (e->alone || (!given && one)) {
        *first = *one;
        return 1;
    }
    return tn_range_cut(e->size, tnb_edit_given(e, attrs, TN_npi_delete_start),
                        tnb_edit_given(e, attrs, TN_npi_delete_stop), *step, first);
}

/* Steps of inserted values by axis of the output; dimensions of size 1 stretch. */
static inline void tnb_edit_steps(const tnb_edit *e, const tn_tensor *values, int64_t *step)
{
    const int32_t lead = e->ndim - values->ndim;
    int64_t n = 1, first;

    for (int32_t d = e->ndim; d-- > 0;) {
        const int64_t size = d < lead ? 1 : values->shape[d - lead];

        step[d] = size == 1 ? 0 : n;
        n *= size;
    }
    if (!e->alone)
        return;
    first = step[0];
    for (int32_t d = 0; d < e->axis; d++)
        step[d] = step[d + 1];
    step[e->axis] = first;
}

#endif
