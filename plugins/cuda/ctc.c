/* CTCLoss: kernels/ctc.cu. */
#include "tenon/plugin/op/ctc.h"
#include "../common/ctc.h"
#include "launch.h"

static tn_status ctc_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *data = node->in[0], *label = node->in[1];
    const int64_t room = tnb_ctc_room(node->modes[1] ? data->shape[0] : 2, label->shape[1], data->shape[2]);
    uint64_t numbers;
    tn_status st;

    if (room < 0 ||
        __builtin_mul_overflow((uint64_t)(room + label->shape[1]), (uint64_t)data->shape[1], &numbers) ||
        numbers > INT64_MAX / 8)
        return tn_fail(err, TN_E_NOMEM, "the states of all steps are more than any memory holds");
    if ((st = tncuda_state(plugin, node, plan, sizeof room, err)))
        return st;
    *(int64_t *)plan->state = room;
    plan->workspace_bytes = numbers * sizeof(double);
    plan->workspace_align = sizeof(double);
    return TN_OK;
}

static tn_status ctc_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0];
    const uint32_t timed = x->attrs[TN_CTCLoss_use_data_lengths] != 0,
                   counted = x->attrs[TN_CTCLoss_use_label_lengths] != 0;
    const bool last = tn_value_int(x->attrs[TN_CTCLoss_blank_label]) == TN_CTCLoss_blank_label_last;
    tncuda_call_args a = {.outer = data->shape[0],
                          .count = data->shape[1],
                          .size = data->shape[2],
                          .n = {x->in[1]->shape[1], last ? data->shape[2] - 1 : 0, timed ? 2 : 0,
                                counted ? 2 + timed : 0, *(const int64_t *)plan->state}};

    tncuda_call_arrays(x, 2 + timed + counted, 2, &a);
    return tncuda_launch(x, "ctc", "ctc_loss", a.count, &a, err);
}

static tn_status backward_ctc_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tncuda_state(plugin, node, plan, 1, err);
}

/* in: dy, the forward's gradient */
static tn_status backward_ctc_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {
        .count = tn_tensor_count(x->out[0]), .outer = x->in[1]->shape[1], .inner = x->in[1]->shape[2]};

    (void)plan;
    tncuda_call_arrays(x, 2, 1, &a);
    return tncuda_launch(x, "ctc", "ctc_back", a.count, &a, err);
}

static const char *const types[] = {"data:" TNCUDA_FLOATS,
                                    "label:" TNCUDA_NUMBERS,
                                    "data_lengths:" TNCUDA_NUMBERS,
                                    "label_lengths:" TNCUDA_NUMBERS,
                                    "*:=data",
                                    NULL};
static const char *const back_types[] = {"dy:" TNCUDA_FLOATS, "*:=dy", NULL};

const tn_kernel *const tncuda_family_ctc[] = {
    TNCUDA_ROW("CTCLoss", types, 0, ctc_prepare, ctc_run),
    TNCUDA_ROW("_backward_CTCLoss", back_types, 0, backward_ctc_prepare, backward_ctc_run),
    NULL,
};
