/* What operators of two operands share: families elemwise (equal shapes), broadcast and numpy. */
#ifndef TN_OP_BINARY_H
#define TN_OP_BINARY_H

#include "op/infer_help.h"

/* Gradients, behind "composed: " or "broadcast: ". */
#define TNI_GRAD_add "lhs = dy ; rhs = dy"
#define TNI_GRAD_sub "lhs = dy ; rhs = -dy"
#define TNI_GRAD_mul "lhs = dy*rhs ; rhs = dy*lhs"
#define TNI_GRAD_div "lhs = dy/rhs ; rhs = -(dy*output/rhs)"
#define TNI_GRAD_mod "lhs = dy ; rhs = -(dy*floor(lhs/rhs))"
#define TNI_GRAD_power "lhs = dy*(rhs*lhs^(rhs-1)) ; rhs = dy*(output*log(lhs))"
#define TNI_GRAD_maximum "lhs = dy*(lhs>=rhs) ; rhs = dy*(lhs<rhs)"
#define TNI_GRAD_minimum "lhs = dy*(lhs<=rhs) ; rhs = dy*(lhs>rhs)"
#define TNI_GRAD_hypot "lhs = dy*(lhs/output) ; rhs = dy*(rhs/output)"

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
