/* ../common/join.inc; and the gradients of tile and repeat, sums over the copies of each element. */
#include "../common/move.h"
#include "launch.h"

#include <string.h>

#define ALL_TYPES TNCUDA_ALL
#include "../common/join.inc"

/* `m` walks dy from end to end; an element of dx stays where it is along what was copied. */
static tn_status copies_sum(const tnb_move *m, const tn_exec *x, tn_err *err)
{
    tncuda_reduce_args a = {.outer = 1,
                            .inner = 1,
                            .dtype = x->in[0]->dtype,
                            .out_dtype = x->out[0]->dtype,
                            .x = x->in[0]->data,
                            .y = x->out[0]->data,
                            .divide = 1};

    for (int32_t k = 0; k < m->ndim; k++) {
        const bool copies = m->dst_step[k] == 0;
        int32_t *ndim = copies ? &a.inner_ndim : &a.outer_ndim;

        (copies ? a.inner_shape : a.outer_shape)[*ndim] = m->extent[k];
        (copies ? a.inner_stride : a.outer_stride)[(*ndim)++] = m->src_step[k];
        *(copies ? &a.inner : &a.outer) *= m->extent[k];
    }
    return tncuda_reduce_launch(x, "SUM", &a, err);
}

static tn_status backward_tile_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tnb_move m;

    if (!tn_tensor_count(x->in[0]))
        return tnb_move_zero(plan, x, x->out[0], err);
    tile_move(x->attrs, x->out[0], x->in[0], 1, &m);
    return copies_sum(&m, x, err);
}

static tn_status backward_repeat_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tnb_move m;

    if (!tn_tensor_count(x->in[0]))
        return tnb_move_zero(plan, x, x->out[0], err);
    repeat_move(x->attrs, x->out[0], 1, &m);
    return copies_sum(&m, x, err);
}

static const char *const sum_types[] = {"dy:" TNCUDA_FLOATS, "*:=dy", NULL};

const tn_kernel *const tncuda_family_join[] = {
    JOIN_ROWS(TNCUDA_ROW),
    TNCUDA_ROW("_backward_tile", sum_types, TN_KERNEL_EMPTY_OK, join_prepare, backward_tile_run),
    TNCUDA_ROW("_backward_repeat", sum_types, TN_KERNEL_EMPTY_OK, join_prepare, backward_repeat_run),
    NULL,
};
