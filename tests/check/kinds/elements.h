/*
 * Elements of dense tensors of float32 and float64, for the kernels of the kinds.
 */
#ifndef TN_KINDS_ELEMENTS_H
#define TN_KINDS_ELEMENTS_H

#include "tenon/plugin/util.h"

static inline double element_get(const tn_tensor *t, int64_t at)
{
    return t->dtype == TN_F64 ? ((const double *)t->data)[at] : (double)((const float *)t->data)[at];
}

static inline void element_set(const tn_tensor *t, int64_t at, double v)
{
    if (t->dtype == TN_F64)
        ((double *)t->data)[at] = v;
    else
        ((float *)t->data)[at] = (float)v;
}

#endif
