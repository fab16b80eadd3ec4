/* The codes of Reshape, apart from its table. */
#ifndef TN_OP_RESHAPE_H
#define TN_OP_RESHAPE_H

#include "op/op.h"

typedef enum tni_reshape_codes {
    TNI_RESHAPE_CLASSIC, /* 0 keep, -1 the rest, -2 keep all that follow, -3 merge two, -4 a b split one */
    TNI_RESHAPE_NUMPY,   /* -1 the rest, -2 keep, -3 drop a 1, -4 keep all that follow, -5 merge, -6 split */
} tni_reshape_codes;

/* The shape that `codes` make of `x` (rank known); of what splits, one size may be -1. What depends on an
 * unknown dimension is unknown. */
tn_status tni_reshape(tn_infer *i, const tn_shape *x, const tn_tuple *codes, tni_reshape_codes which,
                      bool reverse, tn_shape *out);

/* MXNet's old form: 0 is the rest, `keep_highest` takes the first dimension over. */
tn_status tni_reshape_target(tn_infer *i, const tn_shape *x, const tn_tuple *target, bool keep_highest,
                             tn_shape *out);

/* If `y` is known and one dimension of `x` is not, it follows. */
void tni_reshape_back(tn_shape *x, const tn_shape *y);

/* TN_E_SHAPE where both shapes are known and have different numbers of elements. */
tn_status tni_reshape_counts(tn_infer *i, const tn_shape *x, const tn_shape *y);

#endif
