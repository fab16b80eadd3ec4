/* Gradients of operators of two operands, shared by the families elemwise (equal shapes) and broadcast. */
#ifndef TN_OP_BINARY_H
#define TN_OP_BINARY_H

#include "op/infer_help.h"

tn_status tni_binary_grad_elemwise(tn_grad *g);  /* of elemwise_mul, _power … */
tn_status tni_binary_grad_broadcast(tn_grad *g); /* of broadcast_mul …: sums back to the operand's shape */
tn_status tni_binary_grad_numpy(tn_grad *g);     /* of what computes those: back to the operand's type, too */

/* Two operands whose dimensions of size 1 stretch to the other's. */
tn_status tni_shape_pair(tn_infer *i);

#endif
