/* CTCLoss: ../../common/ctc.inc; a sequence is one thread's. */
#include <math.h>

#include "index.h"
#include "rows.h"

#include "../../common/ctc.h"
#include "tenon/plugin/op/ctc.h"
#include "tenon/plugin/util.h"

#define CTC_LOAD(at, n, to) tncpu_numbers(((const tn_exec *)c->arg)->in[0], at, 1, n, to)
#define CTC_STORE(at, n, from) tncpu_numbers_store(((const tn_exec *)c->arg)->out[1], at, 1, n, from)
#include "../../common/ctc.inc"

/* One call. `labels`, `lengths` (steps) and `label_lengths` lie in the workspace. */
typedef struct ctc_call {
    tnb_ctc c;
    const tn_exec *x;
    int64_t *labels, *lengths, *label_lengths;
} ctc_call;

/* ---- the call ----------------------------------------------------------------------------------------- */

static void sequence_run(const void *arg, int64_t n, double *room)
{
    const ctc_call *c = arg;
    const double loss =
        ctc_sequence(&c->c, n, c->lengths[n], c->labels + n * c->c.width, c->label_lengths[n], room);

    if (c->x->modes[0])
        tncpu_numbers_store(c->x->out[0], n, 1, 1, &loss);
}

/* How many labels a row has: up to the first padding, or as it is told. */
static void lengths_read(const ctc_call *c, const tn_tensor *data_lengths, const tn_tensor *label_lengths)
{
    if (data_lengths)
        tncpu_indices_load(data_lengths, c->lengths);
    if (label_lengths)
        tncpu_indices_load(label_lengths, c->label_lengths);
    for (int64_t n = 0; n < c->c.sequences; n++) {
        c->lengths[n] = data_lengths ? ctc_steps(&c->c, c->lengths[n]) : c->c.steps;
        c->label_lengths[n] =
            ctc_labels(&c->c, c->labels + n * c->c.width, label_lengths != NULL, c->label_lengths[n]);
    }
}

static tn_status labels_check(const ctc_call *c, tn_err *err)
{
    for (int64_t n = 0; n < c->c.sequences; n++) {
        const int64_t *label = c->labels + n * c->c.width, labels = c->label_lengths[n],
                      k = ctc_wrong(&c->c, label, labels);

        if (k < labels)
            return tn_failf(err, TN_E_ARG, "label %lld of sequence %lld is none of %lld symbols",
                            (long long)label[k], (long long)n, (long long)c->c.symbols);
    }
    return TN_OK;
}

static uint64_t shared_bytes(const tn_tensor *label)
{
    return (uint64_t)(tn_tensor_count(label) + 2 * label->shape[0]) * sizeof(int64_t);
}

static tn_status ctc_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *data = node->in[0], *label = node->in[1];
    const int64_t steps = node->modes[1] ? data->shape[0] : 2,
                  room = tnb_ctc_room(steps, label->shape[1], data->shape[2]);

    (void)plugin;
    if (room < 0)
        return tn_fail(err, TN_E_NOMEM, "the states of all steps are more than any memory holds");
    tncpu_plan_tasks(node, plan,
                     100 + (double)data->shape[0] * (double)data->shape[1] *
                               (20 * (double)data->shape[2] + 60 * (2 * (double)label->shape[1] + 1)),
                     data->shape[1]);
    plan->workspace_bytes = shared_bytes(label);
    tncpu_plan_workspace(plan, (uint64_t)room * sizeof(double));
    return TN_OK;
}

static tn_status ctc_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0], *label = x->in[1];
    const bool timed = x->attrs[TN_CTCLoss_use_data_lengths] != 0,
               counted = x->attrs[TN_CTCLoss_use_label_lengths] != 0;
    const bool last = tn_value_int(x->attrs[TN_CTCLoss_blank_label]) == TN_CTCLoss_blank_label_last;
    ctc_call c = {.x = x,
                  .c = {.arg = x,
                        .steps = data->shape[0],
                        .sequences = data->shape[1],
                        .symbols = data->shape[2],
                        .width = label->shape[1],
                        .blank = last ? data->shape[2] - 1 : 0,
                        .graded = x->modes[1] != 0},
                  .labels = x->workspace};
    tn_status st;

    c.lengths = c.labels + tn_tensor_count(label);
    c.label_lengths = c.lengths + c.c.sequences;
    tncpu_indices_load(label, c.labels);
    lengths_read(&c, timed ? x->in[2] : NULL, counted ? x->in[2 + timed] : NULL);
    if ((st = labels_check(&c, err)))
        return st;
    tncpu_rows_run(plan, x, c.c.sequences, shared_bytes(label), sequence_run, &c);
    return TN_OK;
}

/* ---- backward: dy and the forward's gradient ---------------------------------------------------------- */

static void backward_row(const void *arg, int64_t row, double *room)
{
    const tn_exec *x = arg;
    const int64_t sequences = x->in[1]->shape[1], symbols = x->in[1]->shape[2];
    const double dy = tncpu_number(x->in[0], row % sequences);

    tncpu_numbers(x->in[1], row * symbols, 1, symbols, room);
    for (int64_t k = 0; k < symbols; k++)
        room[k] *= dy;
    tncpu_numbers_store(x->out[0], row * symbols, 1, symbols, room);
}

static tn_status backward_ctc_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *grad = node->in[1];

    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 50 + 2 * (double)tn_tensor_count(grad), tncpu_dims(grad, 0, 2));
    tncpu_plan_workspace(plan, (uint64_t)(grad->shape[2] + 1) * sizeof(double));
    return TN_OK;
}

static tn_status backward_ctc_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    tncpu_rows_run(plan, x, tncpu_dims(x->in[1], 0, 2), 0, backward_row, x);
    return TN_OK;
}

static const char *const ctc_types[] = {"data:" TNCPU_FLOATS,
                                        "label:" TNCPU_NUMBERS,
                                        "data_lengths:" TNCPU_NUMBERS,
                                        "label_lengths:" TNCPU_NUMBERS,
                                        "*:=data",
                                        NULL};
static const char *const backward_ctc_types[] = {"dy:" TNCPU_FLOATS, "*:=dy", NULL};

const tn_kernel *const tncpu_family_ctc[] = {
    TNCPU_ROW("CTCLoss", ctc_types, 0, ctc_prepare, ctc_run),
    TNCPU_ROW("_backward_CTCLoss", backward_ctc_types, 0, backward_ctc_prepare, backward_ctc_run),
    NULL,
};
