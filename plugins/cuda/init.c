/* Arrays out of nothing: plugins/cpu/plain/init.c says what each holds. */
#include "tenon/plugin/op/init.h"
#include "../common/move.h"
#include "launch.h"

static tn_status make_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tncuda_state(plugin, node, plan, 0, err);
}

static tn_status fill(const tn_plan *plan, const tn_exec *x, double number, tn_err *err)
{
    tnb_move m;

    tnb_move_all(&m, x->out[0]);
    return tnb_move_number(plan, x, &m, x->out[0]->dtype, number, x->out[0]->data, err);
}

static tn_status zeros_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return fill(plan, x, 0, err);
}

static tn_status ones_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return fill(plan, x, 1, err);
}

static tn_status full_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return fill(plan, x, tn_value_float(x->attrs[TN_full_value]), err);
}

static tn_status set_value_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return fill(plan, x, tn_value_float(x->attrs[TN_set_value_src]), err);
}

static tn_status make(const tn_exec *x, const char *kernel, tncuda_call_args *a, tn_err *err)
{
    a->count = tn_tensor_count(x->out[0]);
    tncuda_call_arrays(x, 0, 1, a);
    return tncuda_launch(x, "elemwise", kernel, a->count, a, err);
}

static tn_status arange_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool from_zero =
        !tn_value_pointer(x->attrs[TN_arange_stop]) && !tn_value_int(x->attrs[TN_arange_infer_range]);
    tncuda_call_args a = {.n = {tn_value_int(x->attrs[TN_arange_repeat])},
                          .f = {from_zero ? 0 : tn_value_float(x->attrs[TN_arange_start]),
                                tn_value_float(x->attrs[TN_arange_step])}};

    (void)plan;
    return make(x, "steps", &a, err);
}

static tn_status arange_like_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {
        .n = {tn_value_int(x->attrs[TN_arange_like_repeat])},
        .f = {tn_value_float(x->attrs[TN_arange_like_start]), tn_value_float(x->attrs[TN_arange_like_step])}};

    (void)plan;
    return make(x, "steps", &a, err);
}

static tn_status linspace(const tn_exec *x, bool power, double base, tn_err *err)
{
    const double start = tn_value_float(x->attrs[TN_linspace_start]),
                 stop = tn_value_float(x->attrs[TN_linspace_stop]);
    const int64_t num = tn_value_int(x->attrs[TN_linspace_num]),
                  steps = tn_value_int(x->attrs[TN_linspace_endpoint]) ? num - 1 : num;
    tncuda_call_args a = {.n = {1, power},
                          .f = {start, steps > 0 ? (stop - start) / (double)steps : 0, base}};

    return make(x, "steps", &a, err);
}

static tn_status linspace_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return linspace(x, false, 0, err);
}

static tn_status logspace_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return linspace(x, true, tn_value_float(x->attrs[TN_npi_logspace_base]), err);
}

#define COSINES(name, a0, a1, a2)                                                                            \
    static tn_status name##_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                          \
    {                                                                                                        \
        tncuda_call_args a = {.f = {a0, a1, a2}};                                                            \
                                                                                                             \
        (void)plan;                                                                                          \
        return make(x, "cosines", &a, err);                                                                  \
    }
COSINES(hamming, 0.54, 0.46, 0)
COSINES(hanning, 0.5, 0.5, 0)
COSINES(blackman, 0.42, 0.5, 0.08)

static tn_status indices_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    tncuda_call_args a = {.size = y->shape[0] ? tn_tensor_count(y) / y->shape[0] : 0};

    (void)plan;
    for (int32_t d = 0; d + 1 < y->ndim; d++) {
        a.n[2 * d] = tnb_dims(y, d + 2, y->ndim);
        a.n[2 * d + 1] = y->shape[d + 1];
    }
    return make(x, "coordinates", &a, err);
}

/* The last axis has the indices of the element that the others choose. */
static tn_status index_array_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0], *y = x->out[0];
    const tn_value axes = x->attrs[TN_index_array_axes];
    tncuda_call_args a = {.inner = y->shape[y->ndim - 1]};

    (void)plan;
    if (2 * a.inner > TNCUDA_CALL_WHOLE)
        return tn_fail(err, TN_E_UNSUPPORTED, "at most 36 axes");
    for (int64_t k = 0; k < a.inner; k++) {
        const int32_t axis = tnb_axis(tnb_tuple_item(axes, k, k), data->ndim);

        a.n[2 * k] = tnb_dims(data, axis + 1, data->ndim);
        a.n[2 * k + 1] = data->shape[axis];
    }
    return make(x, "coordinates", &a, err);
}

/* Each axis alike: the places of a diagonal. */
static tn_status diag_indices_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    tncuda_call_args a = {.size = y->shape[1]};

    (void)plan;
    if (y->shape[0] > TN_NDIM_MAX)
        return tn_fail(err, TN_E_UNSUPPORTED, "more axes than an array has");
    for (int64_t k = 0; k < y->shape[0]; k++) {
        a.n[2 * k] = 1;
        a.n[2 * k + 1] = a.size;
    }
    return make(x, "coordinates", &a, err);
}

static tn_status eye_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.size = x->out[0]->shape[1], .n = {tn_value_int(x->attrs[TN_eye_k])}};

    (void)plan;
    return make(x, "diagonal", &a, err);
}

static tn_status identity_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.size = x->out[0]->shape[1]};

    (void)plan;
    return make(x, "diagonal", &a, err);
}

static const char *const all[] = {"*:" TNCUDA_ALL, NULL};

#include "../common/make_rows.inc"

#define MAKES(op, run) TNCUDA_ROW(op, all, 0, make_prepare, run)
const tn_kernel *const tncuda_family_init[] = {
    MAKE_ROWS(MAKES),
    NULL,
};
