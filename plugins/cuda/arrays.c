/* Operators over whole arrays: sums of squares, finite or not, running sums, LARS's rates, PReLU's gamma. */
#include "../common/move.h"
#include "launch.h"
#include "tenon/plugin/op/optimizer.h"
#include "tenon/plugin/op/scan.h"

static tn_status counting_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(uint32_t), err);

    if (!st)
        *(uint32_t *)plan->state = node->in_count;
    return st;
}

/* A block for each input; `n`: its number, or whether it is the first. */
static tn_status inputs_each(const tn_plan *plan, const tn_exec *x, const char *kernel, bool first,
                             tn_err *err)
{
    tncuda_call_args a = {.out = {{x->out[0]->data, x->out[0]->dtype, TN_MODE_WRITE}}};
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < *(const uint32_t *)plan->state && !st; k++) {
        a.count = tn_tensor_count(x->in[k]);
        a.n[0] = first ? k == 0 : k;
        a.in[0] = (tncuda_array){x->in[k]->data, x->in[k]->dtype, TN_MODE_NONE};
        st = tncuda_launch_blocks(x, "reduce", kernel, 1, &a, err);
    }
    return st;
}

static tn_status sum_sq_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return inputs_each(plan, x, "squares_of", false, err);
}

static tn_status finite_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return inputs_each(plan, x, "finite_all", true, err);
}

static tn_status reset_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < *(const uint32_t *)plan->state && !st; k++)
        st = tnb_move_zero(plan, x, x->out[k], err);
    return st;
}

static tn_status lars_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]),
                          .f = {tn_value_float(x->attrs[TN_multi_lars_eta]),
                                tn_value_float(x->attrs[TN_multi_lars_eps]),
                                tn_value_float(x->attrs[TN_multi_lars_rescale_grad])}};

    (void)plan;
    tncuda_call_arrays(x, 4, 1, &a);
    return tncuda_launch(x, "reduce", "lars_rates", a.count, &a, err);
}

static tn_status cumsum_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t *axis = tn_value_pointer(x->attrs[TN_np_cumsum_axis]);
    const tn_tensor *in = x->in[0];
    const int32_t first = axis ? tnb_axis(*axis, in->ndim) : 0;
    tncuda_call_args a = {.count = tn_tensor_count(in)};

    (void)plan;
    tncuda_call_rows(in, first, axis ? first + 1 : in->ndim, &a);
    tncuda_call_arrays(x, 1, 1, &a);
    return tncuda_launch(x, "reduce", tncuda_is_float(x->out[0]->dtype) ? "running_float" : "running_whole",
                         a.count ? a.outer * a.inner : 0, &a, err);
}

/* in: dy, data; a gamma for each channel, or for all. */
static tn_status gamma_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[1];
    tncuda_call_args a = {.outer = 1, .size = x->out[0]->shape[0]};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (a.size > 1)
        a.outer = data->shape[0];
    a.inner = a.size && a.outer ? tn_tensor_count(data) / a.size / a.outer : 0;
    tncuda_call_arrays(x, 2, 1, &a);
    return tncuda_launch_blocks(x, "reduce", "prelu_gamma", tnb_least(a.size, 65535), &a, err);
}

static const char *const sum_sq_types[] = {"array_*:" TNCUDA_FLOATS, "output:f32", NULL};
static const char *const finite_types[] = {"data:" TNCUDA_FLOATS, "output:f32", NULL};
static const char *const all[] = {"*:" TNCUDA_ALL, NULL};
static const char *const most[] = {"*:" TNCUDA_MOST, NULL};
static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};
static const char *const lars_types[] = {"lrs:" TNCUDA_FLOATS, "*:=lrs", NULL};

const tn_kernel *const tncuda_family_arrays[] = {
    TNCUDA_ROW("multi_sum_sq", sum_sq_types, TN_KERNEL_EMPTY_OK, counting_prepare, sum_sq_run),
    TNCUDA_ROW("all_finite", finite_types, 0, counting_prepare, finite_run),
    TNCUDA_ROW("multi_all_finite", sum_sq_types, 0, counting_prepare, finite_run),
    TNCUDA_ROW("reset_arrays", all, 0, counting_prepare, reset_run),
    TNCUDA_ROW("multi_lars", lars_types, 0, counting_prepare, lars_run),
    TNCUDA_ROW("_np_cumsum", most, 0, counting_prepare, cumsum_run),
    TNCUDA_ROW("_backward_prelu_gamma", floats, 0, counting_prepare, gamma_run),
    NULL,
};
