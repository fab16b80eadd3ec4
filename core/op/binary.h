/* What operators of two operands share: families elemwise (equal shapes), broadcast, scalar and numpy. */
#ifndef TN_OP_BINARY_H
#define TN_OP_BINARY_H

#include "op/infer_help.h"

extern const tn_attr_def tni_scalar_attrs[]; /* scalar.c: of an array and a number */

/* Gradients, behind "composed: ", "broadcast: " or "numpy: "; y: the name of the output. */
#define TNI_GRAD_add(y) "lhs = dy ; rhs = dy"
#define TNI_GRAD_sub(y) "lhs = dy ; rhs = -dy"
#define TNI_GRAD_mul(y) "lhs = dy*rhs ; rhs = dy*lhs"
#define TNI_GRAD_div(y) "lhs = dy/rhs ; rhs = -(dy*" y "/rhs)"
#define TNI_GRAD_mod(y) "lhs = dy ; rhs = -(dy*floor(lhs/rhs))"
#define TNI_GRAD_power(y) "lhs = dy*(rhs*lhs^(rhs-1)) ; rhs = dy*(" y "*log(lhs))"
#define TNI_GRAD_maximum(y) "lhs = dy*(lhs>=rhs) ; rhs = dy*(lhs<rhs)"
#define TNI_GRAD_minimum(y) "lhs = dy*(lhs<=rhs) ; rhs = dy*(lhs>rhs)"
#define TNI_GRAD_hypot(y) "lhs = dy*(lhs/" y ") ; rhs = dy*(rhs/" y ")"

/* Two operands whose dimensions of size 1 stretch to the other's. */
static inline tn_status tni_shape_pair(tn_infer *i)
{
    tn_shape out;
    tn_status st;

    if (i->in_shape[0]->ndim < 0 || i->in_shape[1]->ndim < 0)
        return TN_OK;
    if ((st = tni_shape_broadcast(i, i->in_shape[0], i->in_shape[1], &out)))
        return st;
    return tn_shape_unify(i, i->out_shape[0], &out);
}

#endif
