/* How operators without kernels for sparse arrays take them all the same: storage.c has the table. */
#ifndef TN_OP_STORED_H
#define TN_OP_STORED_H

#include "op/op.h"

typedef enum tni_stored_way {
    TNI_STORED_NONE,    /* nobody says how: dense copies are made, which is told */
    TNI_STORED_DENSE,   /* dense copies, as MXNet does without a word */
    TNI_STORED_VALUES,  /* on the values: 0 stays 0; the output has the places of the input */
    TNI_STORED_NUMBER,  /* on the values: the rest adds nothing to what comes out, which is dense */
    TNI_STORED_ALIGNED, /* on the values at the places of all inputs */
    TNI_STORED_MASKED,  /* on the values at the places of the first sparse input, of which others are read there */
    TNI_STORED_ROWS     /* an update of the rows that the gradient, input 1, stores */
} tni_stored_way;

/* Of a call whose inputs have these storage types, one of them sparse. `*out`: the type of output 0. */
tni_stored_way tni_op_stored(const tni_opdef *def, const tni_attrs *attrs, uint32_t in_count,
                             const int32_t *storage, int32_t *out);

#endif
