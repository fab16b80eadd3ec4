/*
 * CTCLoss in the logarithms of probabilities, in double: a sequence is one thread's. Its states are the
 * blank, the first label, the blank, the second label …; alpha is what leads to a state, its own step among
 * it, beta what leads from there to the end.
 */
#include <math.h>

#include "index.h"
#include "rows.h"

#include "tenon/plugin/op/ctc.h"
#include "tenon/plugin/util.h"

/* One call. `labels`, `lengths` (steps) and `label_lengths` lie in the workspace. */
typedef struct ctc_call {
    const tn_exec *x;
    int64_t steps, sequences, symbols, width; /* width: labels of a row */
    int64_t blank;
    int64_t *labels, *lengths, *label_lengths;
    bool graded;
} ctc_call;

/* One sequence: a thread's room. */
typedef struct ctc_walk {
    const ctc_call *c;
    const int64_t *label;
    int64_t n, steps, states;
    double *row, *out;    /* C: a step's log-probabilities; sums of states by symbol, then the gradient */
    double *beta, *alpha; /* states; steps times states, or two steps */
} ctc_walk;

/* log(e^a + e^b) */
static double log_add(double a, double b)
{
    const double most = a > b ? a : b;

    return a == -INFINITY ? b : b == -INFINITY ? a : most + log1p(exp(-fabs(a - b)));
}

static int64_t symbol_of(const ctc_walk *w, int64_t state)
{
    return state % 2 ? w->label[state / 2] : w->c->blank;
}

/* A state may follow the one before the last: a label that is no blank and does not repeat. */
static bool skips(const ctc_walk *w, int64_t state)
{
    return state % 2 && state > 1 && symbol_of(w, state) != w->c->blank &&
           symbol_of(w, state) != symbol_of(w, state - 2);
}

static double *alpha_at(const ctc_walk *w, int64_t t)
{
    return w->alpha + (w->c->graded ? t : t % 2) * w->states;
}

/* The logarithms of softmax. */
static void row_load(const ctc_walk *w, int64_t t)
{
    const ctc_call *c = w->c;
    double most = -INFINITY, sum = 0;

    tncpu_numbers(c->x->in[0], (t * c->sequences + w->n) * c->symbols, 1, c->symbols, w->row);
    for (int64_t k = 0; k < c->symbols; k++)
        most = w->row[k] > most || w->row[k] != w->row[k] ? w->row[k] : most;
    for (int64_t k = 0; k < c->symbols; k++)
        sum += exp(w->row[k] - most);
    for (int64_t k = 0; k < c->symbols; k++)
        w->row[k] -= most + log(sum);
}

static void alpha_step(const ctc_walk *w, int64_t t)
{
    const double *before = alpha_at(w, t - 1);
    double *alpha = alpha_at(w, t);

    for (int64_t s = 0; s < w->states; s++) {
        double sum = before[s];

        if (s > 0)
            sum = log_add(sum, before[s - 1]);
        if (skips(w, s))
            sum = log_add(sum, before[s - 2]);
        alpha[s] = sum + w->row[symbol_of(w, s)];
    }
}

/* The logarithm of the label's probability. */
static double likelihood(const ctc_walk *w)
{
    const double *last;

    for (int64_t t = 0; t < w->steps; t++) {
        row_load(w, t);
        if (t) {
            alpha_step(w, t);
            continue;
        }
        for (int64_t s = 0; s < w->states; s++)
            alpha_at(w, 0)[s] = s < 2 ? w->row[symbol_of(w, s)] : -INFINITY;
    }
    last = alpha_at(w, w->steps - 1) + w->states - 1;
    return w->states > 1 ? log_add(last[0], last[-1]) : last[0];
}

/* The gradient of one step: what softmax gives each symbol, less its share of the label's alignments. */
static void step_gradient(const ctc_walk *w, int64_t t, double whole)
{
    const ctc_call *c = w->c;
    const double *alpha = alpha_at(w, t);

    for (int64_t k = 0; k < c->symbols; k++)
        w->out[k] = -INFINITY;
    for (int64_t s = 0; s < w->states; s++) {
        double *out = &w->out[symbol_of(w, s)];

        *out = log_add(*out, alpha[s] + w->beta[s]);
    }
    for (int64_t k = 0; k < c->symbols; k++)
        w->out[k] = exp(w->row[k]) - (w->out[k] == -INFINITY ? 0 : exp(w->out[k] - whole));
    tncpu_numbers_store(c->x->out[1], (t * c->sequences + w->n) * c->symbols, 1, c->symbols, w->out);
}

/* Beta of the step before, from this one's. */
static void beta_step(const ctc_walk *w)
{
    for (int64_t s = 0; s < w->states; s++)
        w->beta[s] += w->row[symbol_of(w, s)];
    for (int64_t s = 0; s < w->states; s++) {
        if (s + 1 < w->states)
            w->beta[s] = log_add(w->beta[s], w->beta[s + 1]);
        if (s + 2 < w->states && skips(w, s + 2))
            w->beta[s] = log_add(w->beta[s], w->beta[s + 2]);
    }
}

static void gradient(const ctc_walk *w, double whole)
{
    for (int64_t s = 0; s < w->states; s++)
        w->beta[s] = s + 2 < w->states ? -INFINITY : 0;
    for (int64_t t = w->steps; t-- > 0;) {
        row_load(w, t);
        step_gradient(w, t, whole);
        beta_step(w);
    }
}

/* Steps from `first` on have no gradient. */
static void zeros(const ctc_walk *w, int64_t first)
{
    const ctc_call *c = w->c;

    for (int64_t k = 0; k < c->symbols; k++)
        w->out[k] = 0;
    for (int64_t t = first; t < c->steps; t++)
        tncpu_numbers_store(c->x->out[1], (t * c->sequences + w->n) * c->symbols, 1, c->symbols, w->out);
}

/* A blank must part two equal labels. */
static bool fits(const ctc_walk *w, int64_t labels)
{
    int64_t needed = labels;

    for (int64_t k = 1; k < labels; k++)
        needed += w->label[k] == w->label[k - 1];
    return needed <= w->steps;
}

static void ctc_sequence(const void *arg, int64_t n, double *room)
{
    const ctc_call *c = arg;
    const int64_t labels = c->label_lengths[n];
    ctc_walk w = {.c = c,
                  .label = c->labels + n * c->width,
                  .n = n,
                  .steps = c->lengths[n],
                  .states = 2 * labels + 1,
                  .row = room,
                  .out = room + c->symbols,
                  .beta = room + 2 * c->symbols};
    double loss = 0;

    w.alpha = w.beta + w.states;
    if (w.steps && fits(&w, labels)) {
        const double whole = likelihood(&w);

        loss = -whole;
        if (c->graded)
            gradient(&w, whole);
    } else {
        w.steps = 0;
    }
    if (c->graded)
        zeros(&w, w.steps);
    if (c->x->modes[0])
        tncpu_numbers_store(c->x->out[0], n, 1, 1, &loss);
}

/* ---- the call ----------------------------------------------------------------------------------------- */

/* How many labels a row has: up to the first padding, or as it is told. */
static void lengths_read(const ctc_call *c, const tn_tensor *data_lengths, const tn_tensor *label_lengths)
{
    const int64_t padding = c->blank ? -1 : 0;

    if (data_lengths)
        tncpu_indices_load(data_lengths, c->lengths);
    if (label_lengths)
        tncpu_indices_load(label_lengths, c->label_lengths);
    for (int64_t n = 0; n < c->sequences; n++) {
        int64_t *steps = &c->lengths[n], *labels = &c->label_lengths[n];

        *steps = !data_lengths || *steps > c->steps ? c->steps : tncpu_max(*steps, 0);
        if (!label_lengths) {
            *labels = 0;
            while (*labels < c->width && c->labels[n * c->width + *labels] != padding)
                ++*labels;
        }
        *labels = tncpu_max(tncpu_min(*labels, c->width), 0);
    }
}

static tn_status labels_check(const ctc_call *c, tn_err *err)
{
    for (int64_t n = 0; n < c->sequences; n++)
        for (int64_t k = 0; k < c->label_lengths[n]; k++) {
            const int64_t label = c->labels[n * c->width + k];

            if (label < 0 || label >= c->symbols)
                return tn_failf(err, TN_E_ARG, "label %lld of sequence %lld is none of %lld symbols",
                                (long long)label, (long long)n, (long long)c->symbols);
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
    const int64_t steps = node->modes[1] ? data->shape[0] : 2, most = INT64_MAX / 64;
    int64_t states = 0, room;

    (void)plugin;
    if (label->shape[1] <= most)
        states = 2 * label->shape[1] + 1;
    if (tncpu_max(steps, tncpu_max(label->shape[1], data->shape[2])) > most ||
        __builtin_mul_overflow(steps + 1, states, &room) || room > most)
        return tn_fail(err, TN_E_NOMEM, "the states of all steps are more than any memory holds");
    tncpu_plan_tasks(node, plan,
                     100 + (double)data->shape[0] * (double)data->shape[1] *
                               (20 * (double)data->shape[2] + 60 * (double)states),
                     data->shape[1]);
    plan->workspace_bytes = shared_bytes(label);
    tncpu_plan_workspace(plan, (uint64_t)(room + 2 * data->shape[2]) * sizeof(double));
    return TN_OK;
}

static tn_status ctc_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *data = x->in[0], *label = x->in[1];
    const bool timed = x->attrs[TN_CTCLoss_use_data_lengths] != 0,
               counted = x->attrs[TN_CTCLoss_use_label_lengths] != 0;
    const bool last = tn_value_int(x->attrs[TN_CTCLoss_blank_label]) == TN_CTCLoss_blank_label_last;
    ctc_call c = {.x = x,
                  .steps = data->shape[0],
                  .sequences = data->shape[1],
                  .symbols = data->shape[2],
                  .width = label->shape[1],
                  .blank = last ? data->shape[2] - 1 : 0,
                  .labels = x->workspace,
                  .graded = x->modes[1] != 0};
    tn_status st;

    c.lengths = c.labels + tn_tensor_count(label);
    c.label_lengths = c.lengths + c.sequences;
    tncpu_indices_load(label, c.labels);
    lengths_read(&c, timed ? x->in[2] : NULL, counted ? x->in[2 + timed] : NULL);
    if ((st = labels_check(&c, err)))
        return st;
    tncpu_rows_run(plan, x, c.sequences, shared_bytes(label), ctc_sequence, &c);
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
