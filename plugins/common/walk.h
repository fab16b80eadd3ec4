/*
 * Sums of products of arrays, as a walk over the indices of the output and, within them, over those that are
 * summed. On the host.
 */
#ifndef TNB_WALK_H
#define TNB_WALK_H

#include "node.h"
#include "tenon/plugin/op/products.h"

#include <stdbool.h>

/* An index of the walk, with the step of each array along it. */
typedef struct tnb_walk_axis {
    int64_t extent, step[TN_EINSUM_INPUTS_MAX + 1];
} tnb_walk_axis;

typedef struct tnb_walk {
    int32_t inputs, outer, all; /* axes: those of the output, then those that are summed */
    tnb_walk_axis axis[TN_EINSUM_LABELS_MAX];
    int64_t count[TN_EINSUM_INPUTS_MAX + 1]; /* elements of each array */
    int64_t outputs, summed;                 /* how many of both there are */
    bool whole;                              /* the includer says so: integers */
} tnb_walk;

/* Adds what axis `d` of array `k` says of its label. */
static inline void tnb_label_take(const tn_tensor *t, int32_t d, int64_t step, int32_t k, tnb_walk_axis *a)
{
    if (t->shape[d] == 1)
        return;
    a->extent = t->shape[d];
    a->step[k] += step;
}

static inline void tnb_array_take(const tn_tensor *t, const tn_einsum *e, int32_t k, tnb_walk_axis *labels)
{
    int64_t step = 1;

    for (int32_t d = e->ndim[k]; d-- > 0; step *= t->shape[d])
        tnb_label_take(t, d, step, k, &labels[e->label[k][d]]);
}

/* `in`: the inputs, `out`: what has the output's shape. */
static inline void tnb_einsum_walk(const tn_node *node, const tn_tensor *const *in, int32_t count,
                                   const tn_tensor *out, tnb_walk *w)
{
    const char *text = tn_value_pointer(node->attrs[TN_npi_einsum_subscripts]);
    tnb_walk_axis labels[TN_EINSUM_LABELS_MAX] = {{0}};
    bool used[TN_EINSUM_LABELS_MAX] = {false};
    int32_t ndim[TN_EINSUM_INPUTS_MAX];
    tn_einsum e = {.ndim = {0}};

    for (int32_t k = 0; k < count; k++)
        ndim[k] = in[k]->ndim;
    (void)tn_einsum_read(text ? text : "", count, ndim, &e); /* inference has read it */
    *w = (tnb_walk){.inputs = count, .outputs = tn_tensor_count(out), .summed = 1};
    for (int32_t l = 0; l < TN_EINSUM_LABELS_MAX; l++)
        labels[l].extent = 1;
    for (int32_t k = 0; k < count; k++) {
        tnb_array_take(in[k], &e, k, labels);
        w->count[k] = tn_tensor_count(in[k]);
    }
    if (e.ndim[count])
        tnb_array_take(out, &e, count, labels);
    w->count[count] = w->outputs;
    for (int32_t d = 0; d < e.ndim[count]; d++) {
        used[e.label[count][d]] = true;
        w->axis[w->all++] = labels[e.label[count][d]];
    }
    w->outer = w->all;
    for (int32_t k = 0; k < count; k++)
        for (int32_t d = 0; d < e.ndim[k]; d++) {
            const uint8_t l = e.label[k][d];

            if (used[l])
                continue;
            used[l] = true;
            w->axis[w->all++] = labels[l];
            w->summed *= labels[l].extent;
        }
}

#endif
