/* Of insert.c and filter.c: values and what they are written into. */
#ifndef TNCUDA_HOST_EDIT_H
#define TNCUDA_HOST_EDIT_H

#include "launch.h"

/* The arrays of a run, output 0 written from input 0. */
static inline void tncuda_edit_arrays(const tn_exec *x, tncuda_edit_args *a)
{
    a->x = tncuda_array_of(x->in[0], TN_MODE_NONE);
    a->out = tncuda_array_of(x->out[0], x->modes[0]);
    a->count = tn_tensor_count(x->out[0]);
    a->bytes = (int32_t)tn_dtype_bytes(x->out[0]->dtype);
    a->room = x->workspace;
}

#endif
