/*
 * Optimizer steps: one sweep over the weights of a call, a part of one weight at a time. A part is computed
 * in float32 or float64, where its elements are of that type in their own memory, else in copies: float16 and
 * bfloat16 are rounded where MXNet's operators round. The new weight may take the weight's own place, so
 * every loop reads element i before it writes element i, and nothing else.
 */
#include <math.h>

#include "../../common/contrib.h"
#include "../../common/functions.h"
#include "rows.h"
#include "tenon/plugin/op/optimizer.h"

#define RUN 16384 /* elements of a task */
#define PART 1024 /* elements that are computed at once */
#define NUMBERS_MAX 9
#define STATES_MAX 3

enum {
#define UPDATE0(id, ...) id,
#define UPDATE1 UPDATE0
#define UPDATE2 UPDATE0
#define UPDATE3 UPDATE0
#include "../../common/updates.list"
#undef UPDATE0
#undef UPDATE1
#undef UPDATE2
#undef UPDATE3
};

/* What is no attribute of the operator that a step is named after. */
enum {
    TN_adamw_update_rescale_grad = TN_adamw_update_clip_gradient + 1,
    TN_lamb_update_phase1_rate = TN_lamb_update_phase1_clip_gradient + 1,
    TN_lamb_update_phase2_r1 = TN_lamb_update_phase2_upper_bound + 1,
    TN_lamb_update_phase2_r2
};

/* What an update reads and writes, all of one type; `out` may be `w`. */
typedef struct step {
    const void *w, *g;
    void *state[STATES_MAX], *out;
} step;
typedef void update(const step *s, const double *v, int64_t count);

#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

#define WORDS_F32
#include "optimizer.inc"
#define WORDS_F64
#include "optimizer.inc"

/* ---- operators ----------------------------------------------------------------------------------- */

#define MIXED 1u
#define MASTER 2u
#define SKIPS 4u

/* The numbers: see ../../common/update_forms.list. */
typedef struct form {
    const char *op;
    int which;
    uint32_t states; /* of one weight */
    uint32_t flags;
    const char *numbers;
} form;

static const form forms[] = {
#define UPDATE_FORM(op, step, states, flags, numbers) {op, step, states, flags, numbers},
#include "../../common/update_forms.list"
#undef UPDATE_FORM
};

_Static_assert((int)TN_sgd_update_wd == 1 && (int)TN_sgd_update_clip_gradient == 3 &&
                   (int)TN_sgd_mom_update_momentum == 1 && (int)TN_sgd_mom_update_wd == 2 &&
                   (int)TN_multi_sgd_mom_update_momentum == 2 && (int)TN_multi_adamw_update_etas == 5 &&
                   (int)TN_lamb_update_phase1_t == 3 && (int)TN_lamb_update_phase1_clip_gradient == 7 &&
                   (int)TN_multi_lamb_update_step_count == 10 && (int)TN_multi_lamb_update_wds == 4,
               "the numbers of a form know the order of attributes");

/* A sweep is cut into runs of RUN elements, which threads share. */
typedef struct sweep {
    const form *form;
    uint32_t weights, each, tail; /* weights; inputs of one; where the inputs behind all of them begin */
    int64_t count;                /* runs */
    int64_t first[];              /* run of each weight; `count` behind the last one */
} sweep;

/* The weight that `run` belongs to. */
static uint32_t run_weight(const sweep *s, int64_t run)
{
    uint32_t low = 0, high = s->weights;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;

        if (s->first[middle] <= run)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int64_t run_begin(const sweep *s, uint32_t weight, int64_t run)
{
    return (run - s->first[weight]) * RUN;
}

/* Weights are visible outputs; states stand behind them. */
static uint32_t weights_of(const tn_node *node, const form *f)
{
    return node->out_count / (1 + f->states);
}

static tn_status sweep_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const form *f = tncpu_form_of(forms, sizeof *forms, node->op);
    const uint32_t weights = weights_of(node, f), each = 2 + f->states;
    int64_t elements = 0;
    sweep *s;
    tn_status st;

    if ((st = tncpu_state(plugin, plan, sizeof *s + (weights + 1) * sizeof *s->first, err)))
        return st;
    s = plan->state;
    s->form = f;
    s->weights = weights;
    s->each = each;
    s->tail = weights * each;
    for (uint32_t w = 0; w < weights; w++) {
        const int64_t count = tn_tensor_count(node->in[w * each]);

        if (node->out[w]->dtype == node->in[w * each]->dtype)
            plan->inplace[w] = (int32_t)(w * each);
        s->first[w] = s->count;
        s->count += tncpu_ceil_div(count, RUN);
        elements += count;
    }
    s->first[weights] = s->count;
    tncpu_plan_work(node, plan, 20 + 10 * (double)weights + 0.5 * (double)elements);
    if (f->which == LAMB_BOTH)
        plan->workspace_bytes = (uint64_t)(s->count + weights) * 2 * sizeof(double);
    return TN_OK;
}

/* ---- numbers ------------------------------------------------------------------------------------- */

static uint32_t number_index(const char *number)
{
    return (uint32_t)(number[1] >= 'a' ? number[1] - 'a' + 10 : number[1] - '0');
}

static double number_of(const sweep *s, const tn_exec *x, uint32_t weight, const char *number)
{
    const uint32_t at = number_index(number);

    switch (number[0]) {
    case 'f':
        return tn_value_float(x->attrs[at]);
    case 'i':
        return (double)tn_value_int(x->attrs[at]);
    case 'l':
        return ((const tn_floats *)tn_value_pointer(x->attrs[at]))->item[weight];
    case 't':
        return (double)((const tn_tuple *)tn_value_pointer(x->attrs[at]))->item[weight];
    case 'p':
        return tncpu_number(x->in[s->tail + at], weight);
    case 's':
        return tncpu_number(x->in[s->tail + at], 0);
    default:
        return tncpu_number(x->in[at], 0);
    }
}

static void numbers_of(const sweep *s, const tn_exec *x, uint32_t weight, double *v)
{
    for (const char *number = s->form->numbers; *number; number += 2)
        *v++ = number_of(s, x, weight, number);
}

/* Lists are run-time attributes: today's have an item for each weight. */
static tn_status lists_check(const sweep *s, const tn_exec *x, tn_err *err)
{
    for (const char *number = s->form->numbers; *number; number += 2) {
        const void *list =
            *number == 'l' || *number == 't' ? tn_value_pointer(x->attrs[number_index(number)]) : NULL;
        const int64_t have = !list            ? 0
                             : *number == 'l' ? ((const tn_floats *)list)->count
                                              : ((const tn_tuple *)list)->count;

        if ((*number == 'l' || *number == 't') && have != (int64_t)s->weights)
            return tn_fail(err, TN_E_ATTR, "each list of numbers has one item for each weight");
    }
    return TN_OK;
}

/* ---- one part ------------------------------------------------------------------------------------ */

static void *element(const tn_tensor *t, int64_t at)
{
    return (char *)t->data + at * (int64_t)tn_dtype_bytes(t->dtype);
}

/* float64 beside a float32 copy of the weight, which is computed in. */
static bool is_rounded(const tn_tensor *t, bool wide)
{
    return t->dtype == TN_F64 && !wide;
}

static bool is_own(const tn_tensor *t, bool wide)
{
    return tncpu_converts[t->dtype].native && !is_rounded(t, wide);
}

/* Elements in their own memory, or loaded into `room`. */
static void *operand(const tn_tensor *t, int64_t begin, int64_t n, bool wide, float *room)
{
    const double *from = element(t, begin);

    if (is_own(t, wide))
        return element(t, begin);
    if (is_rounded(t, wide))
        for (int64_t i = 0; i < n; i++)
            room[i] = (float)from[i];
    else
        tncpu_converts[t->dtype].load(from, 1, room, n);
    return room;
}

/* The way back; `from` is float32. */
static void operand_store(const tn_tensor *t, int64_t begin, int64_t n, const float *from)
{
    if (t->dtype == TN_F64)
        tncpu_widen[TNCPU_K_F32][TNCPU_K_F64](from, element(t, begin), n);
    else
        tncpu_converts[t->dtype].store(from, element(t, begin), 1, n);
}

/* One weight of a sweep, and a step for it. */
typedef struct task {
    const sweep *s;
    const tn_exec *x;
    uint32_t weight;
    int which;
    double v[NUMBERS_MAX];
} task;

/* Elements begin … begin + n-1; n above PART only where all lie in their own memory. With `kept`, of PART
 * elements, what the step makes of the weight is left there, and no weight is changed. */
static void part_step(const task *p, int64_t begin, int64_t n, double *kept)
{
    const sweep *s = p->s;
    const form *f = s->form;
    const tn_tensor *const *in = p->x->in + p->weight * s->each, *out = p->x->out[p->weight];
    const tn_tensor *const *states = p->x->out + s->weights + p->weight * f->states;
    const bool mixed = f->flags & MIXED, wanted = !kept && p->x->modes[p->weight] != TN_MODE_NONE;
    const uint32_t own = f->states - mixed;
    const tn_tensor *weight = mixed ? states[own] : f->flags & MASTER ? in[s->each] : in[0];
    const bool wide = weight->dtype == TN_F64;
    float w[PART], g[PART], room[STATES_MAX][PART];
    double made[PART];
    step t = {
        operand(weight, begin, n, wide, w), operand(in[1], begin, n, wide, g), {NULL}, kept ? kept : made};

    for (uint32_t k = 0; k < own; k++)
        t.state[k] = operand(states[k], begin, n, wide, room[k]);
    if (mixed && !kept)
        t.out = element(states[own], begin);
    else if (wanted && is_own(out, wide))
        t.out = element(out, begin);
    (wide ? updates_f64 : updates_f32)[p->which](&t, p->v, n);
    for (uint32_t k = 0; k < own; k++)
        if (t.state[k] == room[k])
            operand_store(states[k], begin, n, room[k]);
    if (wanted && t.out != element(out, begin))
        operand_store(out, begin, n, t.out);
}

/* ---- sweeps -------------------------------------------------------------------------------------- */

typedef struct sweep_call {
    const sweep *s;
    const tn_exec *x;
    double *squares; /* LAMB: of each run, then of each weight: of the weight, of what it moves along */
} sweep_call;

static void run_step(const void *arg, int64_t run, double *room)
{
    const sweep_call *c = arg;
    const sweep *s = c->s;
    task p = {s, c->x, run_weight(s, run), s->form->which, {0}};
    const tn_tensor *w = c->x->in[p.weight * s->each];
    const int64_t begin = run_begin(s, p.weight, run), end = tncpu_min(begin + RUN, tn_tensor_count(w));
    const bool own = is_own(w, !(s->form->flags & MIXED)) && c->x->modes[p.weight];
    const int64_t part = own ? RUN : PART;

    (void)room;
    numbers_of(s, c->x, p.weight, p.v);
    if (p.which == LAMB_BOTH)
        p.v[TN_lamb_update_phase1_rate] = c->squares[2 * (s->count + p.weight)];
    for (int64_t i = begin; i < end; i += part)
        part_step(&p, i, tncpu_min(part, end - i), NULL);
}

/* The weights as they are: of a step that is skipped. */
static void weights_keep(const sweep *s, const tn_exec *x)
{
    for (uint32_t w = 0; w < s->weights; w++)
        if (x->modes[w] != TN_MODE_NONE)
            tncpu_copy(x->in[w * s->each], x->out[w]);
}

static tn_status sweep_run_all(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const sweep *s = plan->state;
    const sweep_call call = {s, x, NULL};
    tn_status st = lists_check(s, x, err);

    if (st)
        return st;
    if (s->form->flags & SKIPS) {
        const double scale = tncpu_number(x->in[s->tail], 0);

        if (!isfinite(scale) || scale == 0) {
            weights_keep(s, x);
            return TN_OK;
        }
    }
    tncpu_rows_run(plan, x, s->count, 0, run_step, &call);
    return TN_OK;
}

/* ---- LAMB of many weights ------------------------------------------------------------------------ */

/* What numbers of compute type f64 or f32 have as sum of their squares. */
static double part_squares(const void *numbers, bool wide, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        const double x = wide ? ((const double *)numbers)[i] : (double)((const float *)numbers)[i];

        sum += x * x;
    }
    return sum;
}

/* Moves the moments of a run, and sums the squares of the weight and of what it will move along. */
static void run_along(const void *arg, int64_t run, double *room)
{
    const sweep_call *c = arg;
    const sweep *s = c->s;
    task p = {s, c->x, run_weight(s, run), LAMB_ALONG, {0}};
    const tn_tensor *w = c->x->in[p.weight * s->each];
    const int64_t begin = run_begin(s, p.weight, run), end = tncpu_min(begin + RUN, tn_tensor_count(w));
    double *sums = c->squares + 2 * run, made[PART], own[PART];

    (void)room;
    numbers_of(s, c->x, p.weight, p.v);
    sums[0] = sums[1] = 0;
    for (int64_t i = begin; i < end; i += PART) {
        const int64_t n = tncpu_min(PART, end - i);

        tncpu_numbers(w, i, 1, n, own);
        sums[0] += part_squares(own, true, n);
        part_step(&p, i, n, made);
        sums[1] += part_squares(made, w->dtype == TN_F64 && !(s->form->flags & MIXED), n);
    }
}

/* The rate of each weight, out of the sums of its runs. */
static void lamb_rates(const sweep *s, const tn_exec *x, double *squares)
{
    double *rates = squares + 2 * s->count;
    const double lower = tn_value_float(x->attrs[TN_multi_lamb_update_lower_bound]),
                 upper = tn_value_float(x->attrs[TN_multi_lamb_update_upper_bound]);
    const tn_floats *lrs = tn_value_pointer(x->attrs[TN_multi_lamb_update_learning_rates]);

    for (uint32_t w = 0; w < s->weights; w++) {
        double sum[2] = {0, 0};

        for (int64_t run = s->first[w]; run < s->first[w + 1]; run++)
            for (uint32_t k = 0; k < 2; k++)
                sum[k] += squares[2 * run + k];
        rates[2 * w] = tnb_lamb_rate(lrs->item[w], sqrt(sum[0]), sqrt(sum[1]), lower, upper);
    }
}

static tn_status lamb_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const sweep *s = plan->state;
    const sweep_call call = {s, x, x->workspace};
    const uint64_t shared = plan->workspace_bytes;
    tn_status st = lists_check(s, x, err);

    if (st)
        return st;
    tncpu_rows_run(plan, x, s->count, shared, run_along, &call);
    lamb_rates(s, x, call.squares);
    tncpu_rows_run(plan, x, s->count, shared, run_step, &call);
    return TN_OK;
}

/* ---- one history for each row -------------------------------------------------------------------- */

static tn_status group_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_work(node, plan, 20 + 3 * (double)tn_tensor_count(node->in[0]));
    plan->inplace[0] = 0;
    return TN_OK;
}

static double group_gradient(const tn_exec *x, int64_t at, int64_t n, double *g)
{
    const double scale = tn_value_float(x->attrs[TN_group_adagrad_update_rescale_grad]),
                 bound = tn_value_float(x->attrs[TN_group_adagrad_update_clip_gradient]);

    tncpu_numbers(x->in[1], at, 1, n, g);
    for (int64_t i = 0; i < n; i++)
        g[i] = tnb_bounded(g[i], scale, bound);
    return part_squares(g, true, n);
}

/* in: weight, grad; out: the new weight, history */
static void group_row(const void *arg, int64_t row, double *room)
{
    const tn_exec *x = arg;
    const int64_t size = tncpu_dims(x->in[0], 1, x->in[0]->ndim), at = row * size;
    const double lr = tn_value_float(x->attrs[TN_group_adagrad_update_lr]),
                 epsilon = tn_value_float(x->attrs[TN_group_adagrad_update_epsilon]);
    double g[PART], w[PART], sum = 0, history = tncpu_number(x->out[1], row), root;

    (void)room;
    for (int64_t i = 0; i < size; i += PART)
        sum += group_gradient(x, at + i, tncpu_min(PART, size - i), g);
    history += sum / (double)size;
    tncpu_numbers_store(x->out[1], row, 1, 1, &history);
    root = sqrt(history + epsilon);
    for (int64_t i = 0; i < size && x->modes[0] != TN_MODE_NONE; i += PART) {
        const int64_t n = tncpu_min(PART, size - i);

        if (size > PART) /* else it is still there */
            (void)group_gradient(x, at + i, n, g);
        tncpu_numbers(x->in[0], at + i, 1, n, w);
        for (int64_t k = 0; k < n; k++)
            w[k] -= lr * g[k] / root;
        tncpu_numbers_store(x->out[0], at + i, 1, n, w);
    }
}

static tn_status group_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    tncpu_rows_run(plan, x, tn_tensor_count(x->out[1]), 0, group_row, x);
    return TN_OK;
}

/* ---- LARS ---------------------------------------------------------------------------------------- */

static tn_status serial_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    double elements = 0;

    (void)plugin, (void)err;
    for (uint32_t i = 0; i < node->in_count; i++)
        elements += (double)tn_tensor_count(node->in[i]);
    tncpu_plan_tasks(node, plan, 20 + 2 * elements, 1);
    return TN_OK;
}

static double squares(const tn_tensor *t)
{
    const int64_t count = tn_tensor_count(t);
    double sum = 0, numbers[PART];

    for (int64_t i = 0; i < count; i += PART) {
        const int64_t n = tncpu_min(PART, count - i);

        tncpu_numbers(t, i, 1, n, numbers);
        sum += part_squares(numbers, true, n);
    }
    return sum;
}

static tn_status sum_sq_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    float *sums = x->out[0]->data;

    (void)plan, (void)err;
    for (int64_t i = 0; i < tn_tensor_count(x->out[0]); i++)
        sums[i] = (float)squares(x->in[i]);
    return TN_OK;
}

static bool is_finite(const tn_tensor *t)
{
    const int64_t count = tn_tensor_count(t);
    double numbers[PART];

    for (int64_t i = 0; i < count; i += PART) {
        const int64_t n = tncpu_min(PART, count - i);

        tncpu_numbers(t, i, 1, n, numbers);
        for (int64_t k = 0; k < n; k++)
            if (!isfinite((float)numbers[k]))
                return false;
    }
    return true;
}

static tn_status finite_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = *(const int64_t *)plan->state;
    bool all = true;

    (void)err;
    for (int64_t i = 0; i < count && all; i++)
        all = is_finite(x->in[i]);
    tncpu_fill(x->out[0], all);
    return TN_OK;
}

/* So many inputs, or outputs. */
static tn_status counting_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = tncpu_state(plugin, plan, sizeof(int64_t), err);

    if (st)
        return st;
    *(int64_t *)plan->state = node->in_count;
    return serial_prepare(plugin, node, plan, err);
}

static tn_status reset_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t count = *(const int64_t *)plan->state;

    (void)err;
    for (int64_t i = 0; i < count; i++)
        tncpu_fill(x->out[i], 0);
    return TN_OK;
}

/* in: lrs, weights_sum_sq, grads_sum_sq, wds */
static tn_status lars_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double eta = tn_value_float(x->attrs[TN_multi_lars_eta]),
                 eps = tn_value_float(x->attrs[TN_multi_lars_eps]),
                 scale = tn_value_float(x->attrs[TN_multi_lars_rescale_grad]);

    (void)plan, (void)err;
    for (int64_t at = 0, n; at < tn_tensor_count(x->out[0]); at += n) {
        double v[4][TNCPU_TILE];

        n = tncpu_min(TNCPU_TILE, tn_tensor_count(x->out[0]) - at);
        for (int k = 0; k < 4; k++)
            tncpu_numbers(x->in[k], at, 1, n, v[k]);
        for (int64_t i = 0; i < n; i++) {
            const double lr = v[0][i], norm = sqrt(v[1][i]), grad = sqrt(v[2][i]), wd = v[3][i];

            v[0][i] = norm > 0 && grad > 0 ? lr * eta * norm / (grad * scale + wd * norm + eps) : lr;
        }
        tncpu_numbers_store(x->out[0], at, 1, n, v[0]);
    }
    return TN_OK;
}

#define FLOATS TNCPU_FLOATS
#include "../../common/update_rows.inc"

static const char *const sum_sq_types[] = {"array_*:" TNCPU_FLOATS, "output:f32", NULL};
static const char *const finite_types[] = {"data:" TNCPU_FLOATS, "output:f32", NULL};
static const char *const lars_types[] = {"lrs:" TNCPU_FLOATS, "*:=lrs", NULL};

#define SWEEP(op, types) TNCPU_ROW(op, types, 0, sweep_prepare, sweep_run_all)

const tn_kernel *const tncpu_family_optimizer[] = {
    UPDATE_ROWS(SWEEP, SWEEP),
    TNCPU_ROW("_multi_lamb_update", multi_types, 0, sweep_prepare, lamb_run),
    TNCPU_ROW("_multi_mp_lamb_update", multi_mixed_types, 0, sweep_prepare, lamb_run),
    TNCPU_ROW("_contrib_group_adagrad_update", float_types, 0, group_prepare, group_run),
    TNCPU_ROW("multi_sum_sq", sum_sq_types, TN_KERNEL_EMPTY_OK, serial_prepare, sum_sq_run),
    TNCPU_ROW("all_finite", finite_types, 0, counting_prepare, finite_run),
    TNCPU_ROW("multi_all_finite", sum_sq_types, 0, counting_prepare, finite_run),
    TNCPU_ROW("reset_arrays", tncpu_all, 0, counting_prepare, reset_run),
    TNCPU_ROW("multi_lars", lars_types, 0, serial_prepare, lars_run),
    NULL,
};
