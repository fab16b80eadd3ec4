/* What the registry asks of derived.c. */
#ifndef TN_OP_DERIVED_H
#define TN_OP_DERIVED_H

#include "op/op.h"

/* It says whose kernels serve it. */
bool tni_op_is_derived(const tn_op *op);
/* `*out`: `op` with all that it leaves out taken from the definition that it computes; `*borrowed`: TNI_OF_…
 * of the functions taken. TN_E_ARG where the two do not fit. */
tn_status tni_op_derive(const tn_op *op, const tni_opdef *from, tn_op *out, uint32_t *borrowed);

#endif
