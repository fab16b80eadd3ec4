/*
 * Optimizer steps: one sweep over the weights of a call, a part of one weight at a time. A part is computed
 * in float32 or float64, where its elements are of that type in their own memory, else in copies: float16 and
 * bfloat16 are rounded where MXNet's operators round. The new weight may take the weight's own place, so
 * every loop reads element i before it writes element i, and nothing else.
 */
#include <math.h>

#include "rows.h"
#include "tenon/plugin/op/optimizer.h"

#define RUN 16384 /* elements of a task */
#define PART 1024 /* elements that are computed at once */
#define ATTRS_MAX 8
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

#define MIXED 1u     /* the last state is the weight in float32, which is computed with */
#define MULTI 2u     /* any number of weights; lr and wd are lists */
#define PRELOADED 4u /* the lists are the last inputs */

typedef struct form {
    const char *op;
    int which;
    uint32_t states, numbers; /* of one weight; attributes of the operator for one weight */
    uint32_t flags;
} form;

static const form forms[] = {
    {"sgd_update", SGD, 0, 4, 0},
    {"sgd_mom_update", SGD_MOM, 1, 5, 0},
    {"nag_mom_update", NAG, 1, 5, 0},
    {"signsgd_update", SIGNSGD, 0, 4, 0},
    {"signum_update", SIGNUM, 1, 6, 0},
    {"adam_update", ADAM, 2, 7, 0},
    {"rmsprop_update", RMSPROP, 1, 7, 0},
    {"rmspropalex_update", RMSPROPALEX, 3, 8, 0},
    {"mp_sgd_update", SGD, 1, 4, MIXED},
    {"mp_sgd_mom_update", SGD_MOM, 2, 5, MIXED},
    {"multi_sgd_update", SGD, 0, 4, MULTI},
    {"multi_sgd_mom_update", SGD_MOM, 1, 5, MULTI},
    {"multi_mp_sgd_update", SGD, 1, 4, MULTI | MIXED},
    {"multi_mp_sgd_mom_update", SGD_MOM, 2, 5, MULTI | MIXED},
    {"preloaded_multi_sgd_update", SGD, 0, 4, MULTI | PRELOADED},
    {"preloaded_multi_sgd_mom_update", SGD_MOM, 1, 5, MULTI | PRELOADED},
    {"preloaded_multi_mp_sgd_update", SGD, 1, 4, MULTI | PRELOADED | MIXED},
    {"preloaded_multi_mp_sgd_mom_update", SGD_MOM, 2, 5, MULTI | PRELOADED | MIXED},
};

/* A sweep is cut into runs, which threads share. */
typedef struct sweep_run {
    uint32_t weight;
    int64_t begin;
} sweep_run;

typedef struct sweep {
    const form *form;
    uint32_t weights;
    int64_t count;
    sweep_run runs[];
} sweep;

static tn_status sweep_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const form *f = tncpu_form_of(forms, sizeof *forms, node->op);
    const uint32_t each = 2 + f->states;
    const uint32_t weights =
        f->flags & MULTI ? (node->in_count - (f->flags & PRELOADED ? 2u : 0u)) / each : 1;
    int64_t runs = 0, elements = 0;
    sweep *s;
    tn_status st;

    for (uint32_t w = 0; w < weights; w++) {
        elements += tn_tensor_count(node->in[w * each]);
        runs += tncpu_ceil_div(tn_tensor_count(node->in[w * each]), RUN);
    }
    tncpu_plan_work(node, plan, 20 + 10 * (double)weights + 0.5 * (double)elements);
    if ((st = tncpu_state(plugin, plan, sizeof *s + (uint64_t)runs * sizeof *s->runs, err)))
        return st;
    s = plan->state;
    s->form = f;
    s->weights = weights;
    for (uint32_t w = 0; w < weights; w++) {
        plan->inplace[w] = (int32_t)(w * each);
        for (int64_t i = 0; i < tn_tensor_count(node->in[w * each]); i += RUN)
            s->runs[s->count++] = (sweep_run){w, i};
    }
    return TN_OK;
}

/* The attributes of the operator for one weight. */
static void numbers_of(const sweep *s, const tn_exec *x, uint32_t weight, double *v)
{
    const form *f = s->form;
    const uint32_t lists = s->weights * (2 + f->states), momentum = f->which == SGD_MOM, lr = 0,
                   wd = lr + momentum + 1;
    const tn_value *at = x->attrs + (f->flags & PRELOADED ? 0 : 2);

    for (uint32_t i = 0; i < f->numbers && !(f->flags & MULTI); i++)
        v[i] = tn_value_float(x->attrs[i]);
    if (!(f->flags & MULTI))
        return;
    if (f->flags & PRELOADED) {
        v[lr] = tncpu_number(x->in[lists], weight);
        v[wd] = tncpu_number(x->in[lists + 1], weight);
    } else {
        v[lr] = ((const tn_floats *)tn_value_pointer(x->attrs[0]))->item[weight];
        v[wd] = ((const tn_floats *)tn_value_pointer(x->attrs[1]))->item[weight];
    }
    if (momentum)
        v[TN_sgd_mom_update_momentum] = tn_value_float(*at++);
    v[wd + 1] = tn_value_float(at[0]); /* rescale_grad, clip_gradient */
    v[wd + 2] = tn_value_float(at[1]);
}

_Static_assert((int)TN_sgd_update_wd == 1 && (int)TN_sgd_mom_update_wd == 2 &&
                   (int)TN_sgd_mom_update_momentum == 1 && (int)TN_sgd_update_clip_gradient == 3 &&
                   (int)TN_sgd_mom_update_clip_gradient == 4,
               "numbers_of knows the order of the attributes");

/* ---- one part ------------------------------------------------------------------------------------ */

static void *element(const tn_tensor *t, int64_t at)
{
    return (char *)t->data + at * (int64_t)tn_dtype_bytes(t->dtype);
}

/* Elements in their own memory, or loaded into `room`. */
static void *operand(const tn_tensor *t, int64_t begin, int64_t n, void *room)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];

    if (c->native)
        return element(t, begin);
    c->load(element(t, begin), 1, room, n);
    return room;
}

/* Elements begin … begin + n-1 of weight number `weight`; n above PART only where all lie in their own
 * memory. */
static void part_step(const sweep *s, const tn_exec *x, uint32_t weight, const double *v, int64_t begin,
                      int64_t n)
{
    const form *f = s->form;
    const tn_tensor *const *in = x->in + weight * (2 + f->states), *out = x->out[weight];
    const tn_tensor *const *states = x->out + s->weights + weight * f->states;
    const bool mixed = f->flags & MIXED, wanted = x->modes[weight] != TN_MODE_NONE;
    const uint32_t own = f->states - mixed;
    float w[PART], g[PART], room[STATES_MAX][PART];
    double made[PART];
    step t = {operand(mixed ? states[own] : in[0], begin, n, w), operand(in[1], begin, n, g), {NULL}, made};

    for (uint32_t k = 0; k < own; k++)
        t.state[k] = operand(states[k], begin, n, room[k]);
    if (mixed)
        t.out = element(states[own], begin);
    else if (wanted && tncpu_converts[out->dtype].native)
        t.out = element(out, begin);
    (in[0]->dtype == TN_F64 ? updates_f64 : updates_f32)[f->which](&t, v, n);
    for (uint32_t k = 0; k < own; k++)
        if (t.state[k] == room[k])
            tncpu_converts[states[k]->dtype].store(room[k], element(states[k], begin), 1, n);
    if (wanted && t.out != element(out, begin))
        tncpu_converts[out->dtype].store(t.out, element(out, begin), 1, n);
}

typedef struct sweep_call {
    const sweep *s;
    const tn_exec *x;
} sweep_call;

static void run_step(const void *arg, int64_t run, double *room)
{
    const sweep *s = ((const sweep_call *)arg)->s;
    const tn_exec *x = ((const sweep_call *)arg)->x;
    const uint32_t weight = s->runs[run].weight;
    const tn_tensor *w = x->in[weight * (2 + s->form->states)];
    const int64_t begin = s->runs[run].begin, end = tncpu_min(begin + RUN, tn_tensor_count(w));
    const int64_t part = tncpu_converts[w->dtype].native && x->modes[weight] ? RUN : PART;
    double v[ATTRS_MAX];

    (void)room;
    numbers_of(s, x, weight, v);
    for (int64_t i = begin; i < end; i += part)
        part_step(s, x, weight, v, i, tncpu_min(part, end - i));
}

static tn_status sweep_run_all(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const sweep *s = plan->state;
    const sweep_call call = {s, x};

    for (uint32_t k = 0; k < 2 && (s->form->flags & (MULTI | PRELOADED)) == MULTI; k++)
        if (!x->attrs[k] || ((const tn_floats *)tn_value_pointer(x->attrs[k]))->count != (int64_t)s->weights)
            return tn_fail(err, TN_E_ATTR, "lrs and wds have one item for each weight");
    tncpu_rows_run(plan, x, s->count, 0, run_step, &call);
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
        double part = 0;

        tncpu_numbers(t, i, 1, n, numbers);
        for (int64_t k = 0; k < n; k++)
            part += numbers[k] * numbers[k];
        sum += part;
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

/* in: lrs, weights_sum_sq, grads_sum_sq, wds */
static tn_status lars_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double eta = tn_value_float(x->attrs[TN_multi_lars_eta]),
                 eps = tn_value_float(x->attrs[TN_multi_lars_eps]),
                 scale = tn_value_float(x->attrs[TN_multi_lars_rescale_grad]);

    (void)plan, (void)err;
    for (int64_t i = 0; i < tn_tensor_count(x->out[0]); i++) {
        const double norm = sqrt(tncpu_number(x->in[1], i)), grad = sqrt(tncpu_number(x->in[2], i));
        const double lr = tncpu_number(x->in[0], i), wd = tncpu_number(x->in[3], i);
        const double made = norm > 0 && grad > 0 ? lr * eta * norm / (grad * scale + wd * norm + eps) : lr;

        tncpu_numbers_store(x->out[0], i, 1, 1, &made);
    }
    return TN_OK;
}

static const char *const float_types[] = {"weight:" TNCPU_FLOATS, "*:=weight", NULL};
static const char *const mixed_types[] = {"weight:f16,bf16,f32", "grad:=weight", "output:=weight", "*:f32",
                                          NULL};
static const char *const multi_types[] = {"weight_*:" TNCPU_FLOATS, "*:=weight_*", NULL};
static const char *const preloaded_types[] = {"weight_*:" TNCPU_FLOATS, "lrs:f32", "wds:f32", "*:=weight_*",
                                              NULL};
static const char *const multi_mixed_types[] = {"weight_*:f16,bf16,f32", "grad_*:=weight_*",
                                                "output*:=weight_*", "*:f32", NULL};
static const char *const sum_sq_types[] = {"array_*:" TNCPU_FLOATS, "output:f32", NULL};
static const char *const lars_types[] = {"lrs:" TNCPU_FLOATS, "*:=lrs", NULL};

#define SWEEP(op, types) TNCPU_ROW(op, types, 0, sweep_prepare, sweep_run_all)

const tn_kernel *const tncpu_family_optimizer[] = {
    SWEEP("sgd_update", float_types),
    SWEEP("sgd_mom_update", float_types),
    SWEEP("nag_mom_update", float_types),
    SWEEP("signsgd_update", float_types),
    SWEEP("signum_update", float_types),
    SWEEP("adam_update", float_types),
    SWEEP("rmsprop_update", float_types),
    SWEEP("rmspropalex_update", float_types),
    SWEEP("mp_sgd_update", mixed_types),
    SWEEP("mp_sgd_mom_update", mixed_types),
    SWEEP("multi_sgd_update", multi_types),
    SWEEP("multi_sgd_mom_update", multi_types),
    SWEEP("multi_mp_sgd_update", multi_mixed_types),
    SWEEP("multi_mp_sgd_mom_update", multi_mixed_types),
    SWEEP("preloaded_multi_sgd_update", preloaded_types),
    SWEEP("preloaded_multi_sgd_mom_update", preloaded_types),
    SWEEP("preloaded_multi_mp_sgd_update", multi_mixed_types),
    SWEEP("preloaded_multi_mp_sgd_mom_update", multi_mixed_types),
    TNCPU_ROW("multi_sum_sq", sum_sq_types, TN_KERNEL_EMPTY_OK, serial_prepare, sum_sq_run),
    TNCPU_ROW("multi_lars", lars_types, 0, serial_prepare, lars_run),
    NULL,
};
