/* The attribute `shape` of operators without inputs. */
#ifndef TN_OP_SHAPE_ATTR_H
#define TN_OP_SHAPE_ATTR_H

#include "op/infer_help.h"

/* Says that `out` has the shape of attribute `index`; -1 in it is unknown, None (and () outside of np shape
 * mode) says nothing. */
static inline tn_status tni_shape_attr(tn_infer *i, uint32_t index, tn_shape *out)
{
    const tn_tuple *t = tni_attr_tuple(i->attrs, index);
    tn_shape s = {0};

    if (!t || (t->count == 0 && !(i->flags & TN_INFER_NP_SHAPE)))
        return TN_OK;
    if (t->count > TN_NDIM_MAX)
        return tni_infer_fail(i, TN_E_SHAPE, "shape has %lld dimensions, at most %d are allowed",
                              (long long)t->count, TN_NDIM_MAX);
    s.ndim = (int32_t)t->count;
    for (int32_t k = 0; k < s.ndim; k++)
        s.dim[k] = t->item[k];
    return tn_shape_unify(i, out, &s);
}

#endif
