/* ../common/rearrange.inc; roll, tril and their gradients. */
#include "../common/move.h"
#include "launch.h"

#include <stdio.h>
#include <string.h>

#define ALL_TYPES TNCUDA_ALL
#include "../common/rearrange.inc"

static tn_status sized_launch(const tn_exec *x, const char *id, const tncuda_move_args *a, tn_err *err)
{
    char kernel[TNCUDA_NAME_BYTES];

    (void)snprintf(kernel, sizeof kernel, "%s_%d", id, (int)tn_dtype_bytes(x->out[0]->dtype));
    return tncuda_launch(x, "move", kernel, a->count, a, err);
}

static tn_status roll(const tn_exec *x, bool back, tn_err *err)
{
    const tn_value shift = x->attrs[TN_np_roll_shift], axis = x->attrs[TN_np_roll_axis];
    const int64_t shifts = tnb_tuple_count(shift);
    const bool flat = !tn_value_pointer(axis);
    tncuda_move_args a = {.count = tn_tensor_count(x->in[0]),
                          .ndim = flat ? 1 : x->in[0]->ndim,
                          .src = x->in[0]->data,
                          .dst = x->out[0]->data};

    if (!a.count)
        return TN_OK;
    for (int32_t d = 0; d < a.ndim; d++)
        a.extent[d] = flat ? a.count : x->in[0]->shape[d];
    for (int64_t k = 0; k < (flat ? 1 : tnb_tuple_count(axis)); k++) {
        const int32_t d = flat ? 0 : tnb_axis(tnb_tuple_item(axis, k, 0), a.ndim);
        const int64_t size = a.extent[d], by = tnb_tuple_item(shift, shifts > 1 ? k : 0, 0) % size;

        a.shift[d] = (a.shift[d] + (back ? size - by : size + by)) % size;
    }
    return sized_launch(x, "roll", &a, err);
}

static tn_status roll_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return roll(x, false, err);
}

static tn_status backward_roll_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return roll(x, true, err);
}

static tn_status tril_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *out = x->out[0];
    tncuda_move_args a = {.count = tn_tensor_count(out), .ndim = 2, .src = in->data, .dst = out->data};

    (void)plan;
    a.extent[0] = out->shape[out->ndim - 2];
    a.extent[1] = out->shape[out->ndim - 1];
    a.src_step[0] = in->ndim == 1 ? 0 : a.extent[1];
    a.shift[0] = tn_value_int(x->attrs[TN_npi_tril_k]);
    return sized_launch(x, "tril", &a, err);
}

/* in: dy, data. Of a vector: the sums of columns. */
static tn_status backward_tril_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *dx = x->out[0];
    tncuda_reduce_args a = {.outer = tn_tensor_count(dx),
                            .dtype = x->in[0]->dtype,
                            .out_dtype = dx->dtype,
                            .inner_shape = {tn_value_int(x->attrs[TN_npi_tril_k])},
                            .x = x->in[0]->data,
                            .y = dx->data};

    return dx->ndim > 1 ? tril_run(plan, x, err) : tncuda_launch(x, "move", "tril_sum", a.outer, &a, err);
}

const tn_kernel *const tncuda_family_rearrange[] = {
    REARRANGE_ROWS(TNCUDA_ROW),
    TNCUDA_ROW("_np_roll", turn_types, 0, turn_prepare, roll_run),
    TNCUDA_ROW("_backward__np_roll", turn_back_types, 0, turn_prepare, backward_roll_run),
    TNCUDA_ROW("_npi_tril", turn_types, 0, turn_prepare, tril_run),
    TNCUDA_ROW("_backward__npi_tril", turn_back_types, 0, turn_prepare, backward_tril_run),
    NULL,
};
