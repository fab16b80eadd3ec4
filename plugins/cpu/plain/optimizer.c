/*
 * Optimizer steps: one pass over weight, gradient and states. The new weight may take the weight's own place,
 * so every loop reads element i before it writes element i, and nothing else.
 */
#include <math.h>

#include "convert.h"
#include "plain.h"
#include "short.h"
#include "tenon/plugin/op/optimizer.h"

#define RUN 16384 /* elements of a task */
#define ATTRS_MAX 8
#define PART 1024 /* elements that are converted at once, or thrown away */

enum { SGD, SGD_MOM, NAG, SIGNSGD, SIGNUM, ADAM, RMSPROP, RMSPROPALEX };

typedef struct method {
    int which;
    uint32_t states, numbers; /* mutated inputs; attributes that are read, all of them floats */
} method;

#define T float
#define FN(name) name##_f32
#define SQRT sqrtf
#include "optimizer.inc"
#undef T
#undef FN
#undef SQRT
#define T double
#define FN(name) name##_f64
#define SQRT sqrt
#include "optimizer.inc"
#undef T
#undef FN
#undef SQRT

static tn_status update_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_work(node, plan, 20 + 0.5 * (double)tn_tensor_count(node->in[0]));
    plan->inplace[0] = 0;
    return TN_OK;
}

static tn_status update(const tn_plan *plan, const tn_exec *x, const method *m)
{
    double v[ATTRS_MAX];

    for (uint32_t i = 0; i < m->numbers; i++)
        v[i] = tn_value_float(x->attrs[i]);
    if (x->in[0]->dtype == TN_F32)
        run_f32(x, m, v, (int)tncpu_threads(plan, x));
    else
        run_f64(x, m, v, (int)tncpu_threads(plan, x));
    return TN_OK;
}

/* The weight in a short type with a float32 copy: states are (mom,) weight32. */
static tn_status update_mixed(const tn_exec *x, const method *m)
{
    const tncpu_convert *c = &tncpu_converts[x->in[0]->dtype];
    const int64_t count = tn_tensor_count(x->in[0]), size = (int64_t)c->bytes;
    float g[PART], *w32 = x->out[m->states]->data, *mom = m->states > 1 ? x->out[1]->data : NULL;
    double v[ATTRS_MAX];

    for (uint32_t i = 0; i < m->numbers; i++)
        v[i] = tn_value_float(x->attrs[i]);
    for (int64_t i = 0; i < count; i += PART) {
        const int64_t n = count - i < PART ? count - i : PART;
        const step_f32 s = {w32 + i, g, mom ? mom + i : NULL, NULL, NULL, w32 + i};

        c->load((const char *)x->in[1]->data + i * size, 1, g, n);
        updates_f32[m->which](&s, v, 0, n);
        c->store(w32 + i, (char *)x->out[0]->data + i * size, 1, n);
    }
    return TN_OK;
}

static tn_status update_mixed_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    plan->est_ns = 20 + (uint64_t)tn_tensor_count(node->in[0]);
    plan->flags |= TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    plan->inplace[0] = 0;
    return TN_OK;
}

#define METHOD(name, which, states, numbers)                                                                 \
    static tn_status name##_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                          \
    {                                                                                                        \
        static const method m = {which, states, numbers};                                                    \
                                                                                                             \
        (void)err;                                                                                           \
        return update(plan, x, &m);                                                                          \
    }                                                                                                        \
    TNCPU_SHORT_KERNEL(name, #name "_update", float_types, 0, update_prepare, name##_run)

#define MIXED_METHOD(name, which, states, numbers, types)                                                    \
    static tn_status name##_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                          \
    {                                                                                                        \
        static const method m = {which, states, numbers};                                                    \
                                                                                                             \
        (void)plan, (void)err;                                                                               \
        return update_mixed(x, &m);                                                                          \
    }                                                                                                        \
    static const tn_kernel name = TNCPU_KERNEL(#name "_update", types, 0, update_mixed_prepare, name##_run);

static const char *const float_types[] = {"weight:" TNCPU_FLOATS, "*:=weight", NULL};
static const char *const mixed_types[] = {"weight:f16,bf16,f32", "grad:=weight", "output:=weight", "*:f32",
                                          NULL};

METHOD(sgd, SGD, 0, 4)
METHOD(sgd_mom, SGD_MOM, 1, 5)
METHOD(nag_mom, NAG, 1, 5)
METHOD(signsgd, SIGNSGD, 0, 4)
METHOD(signum, SIGNUM, 1, 6)
METHOD(adam, ADAM, 2, 7)
METHOD(rmsprop, RMSPROP, 1, 7)
METHOD(rmspropalex, RMSPROPALEX, 3, 8)
MIXED_METHOD(mp_sgd, SGD, 1, 4, mixed_types)
MIXED_METHOD(mp_sgd_mom, SGD_MOM, 2, 5, mixed_types)

/* ---- any number of weights at once --------------------------------------------------------------- */

/* Each weight is cut into runs, which threads share. A float type computes in itself, a short one in float32;
 * both round where the operators for one weight do. */

typedef struct multi_run {
    uint32_t weight;
    int64_t begin;
} multi_run;

typedef struct multi_state {
    int64_t count;
    multi_run runs[];
} multi_state;

typedef struct multi {
    int which;     /* SGD or SGD_MOM */
    uint32_t each; /* inputs of one weight */
    int mixed, preloaded;
} multi;

/* The operands of one weight: its values, gradient, momentum, the new values, the float32 copy. */
typedef struct multi_operands {
    const tn_tensor *weight, *grad, *mom, *out, *copy;
} multi_operands;

static const tn_tensor none = {.data = NULL};

static multi_operands multi_of(const tn_exec *x, const multi *m, uint32_t weight, uint32_t count)
{
    const uint32_t states = m->each - 2;
    const tn_tensor *const *state = x->out + count + weight * states;

    return (multi_operands){
        .weight = x->in[weight * m->each],
        .grad = x->in[weight * m->each + 1],
        .mom = m->which == SGD_MOM ? state[0] : &none,
        .out = x->modes[weight] == TN_MODE_NONE ? &none : x->out[weight],
        .copy = m->mixed ? state[states - 1] : &none,
    };
}

/* The attributes of the operator for one weight. */
static void multi_numbers(const tn_exec *x, const multi *m, uint32_t weight, uint32_t inputs, double *v)
{
    const tn_floats *lrs = tn_value_pointer(x->attrs[0]), *wds = tn_value_pointer(x->attrs[1]);
    const tn_value *at = x->attrs + (m->preloaded ? 0 : 2);
    const double momentum = m->which == SGD_MOM ? tn_value_float(*at++) : 0;
    const double lr = m->preloaded ? (double)((const float *)x->in[inputs]->data)[weight] : lrs->item[weight];
    const double wd =
        m->preloaded ? (double)((const float *)x->in[inputs + 1]->data)[weight] : wds->item[weight];

    if (m->which == SGD_MOM) {
        v[TN_sgd_mom_update_lr] = lr;
        v[TN_sgd_mom_update_momentum] = momentum;
        v[TN_sgd_mom_update_wd] = wd;
        v[TN_sgd_mom_update_rescale_grad] = tn_value_float(at[0]);
        v[TN_sgd_mom_update_clip_gradient] = tn_value_float(at[1]);
    } else {
        v[TN_sgd_update_lr] = lr;
        v[TN_sgd_update_wd] = wd;
        v[TN_sgd_update_rescale_grad] = tn_value_float(at[0]);
        v[TN_sgd_update_clip_gradient] = tn_value_float(at[1]);
    }
}

static void *at_element(const tn_tensor *t, int64_t i)
{
    return t->data ? (char *)t->data + i * (int64_t)tn_dtype_bytes(t->dtype) : NULL;
}

/* A part of a weight that is not computed in its own memory. */
static void multi_part(const multi_operands *o, const multi *m, const double *v, int64_t begin, int64_t n)
{
    const tncpu_convert *c = &tncpu_converts[o->weight->dtype];
    const int own = !m->mixed && o->mom->data; /* the momentum is of the weight's type */
    float w[PART], g[PART], mom[PART], *w32 = m->mixed ? (float *)o->copy->data + begin : w;
    const step_f32 s = {w32, g, own ? mom : at_element(o->mom, begin), NULL, NULL, w32};

    c->load(at_element(o->grad, begin), 1, g, n);
    if (!m->mixed)
        c->load(at_element(o->weight, begin), 1, w, n);
    if (own)
        c->load(at_element(o->mom, begin), 1, mom, n);
    updates_f32[m->which](&s, v, 0, n);
    if (own)
        c->store(mom, at_element(o->mom, begin), 1, n);
    if (o->out->data)
        c->store(w32, at_element(o->out, begin), 1, n);
}

static void multi_step(const multi_operands *o, const multi *m, const double *v, int64_t begin, int64_t end)
{
    const method one = {m->which, 0, 0};

    if (o->weight->dtype == TN_F32 && !m->mixed) {
        const step_f32 s = {o->weight->data, o->grad->data, o->mom->data, NULL, NULL, o->out->data};

        multi_f32(&s, &one, v, begin, end);
    } else if (o->weight->dtype == TN_F64) {
        const step_f64 s = {o->weight->data, o->grad->data, o->mom->data, NULL, NULL, o->out->data};

        multi_f64(&s, &one, v, begin, end);
    } else {
        for (; begin < end; begin += PART)
            multi_part(o, m, v, begin, end - begin < PART ? end - begin : PART);
    }
}

static tn_status multi_run_all(const tn_plan *plan, const tn_exec *x, const multi *m, tn_err *err)
{
    const multi_state *s = plan->state;
    const uint32_t count = (uint32_t)tn_value_int(x->attrs[(m->preloaded ? 2 : 4) + (m->which == SGD_MOM)]);
    const int threads = (int)tncpu_threads(plan, x);

    for (uint32_t k = 0; k < 2 && !m->preloaded; k++)
        if (!x->attrs[k] || ((const tn_floats *)tn_value_pointer(x->attrs[k]))->count != (int64_t)count)
            return tn_fail(err, TN_E_ATTR, "lrs and wds have one item for each weight");
    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t r = 0; r < s->count; r++) {
        const multi_operands o = multi_of(x, m, s->runs[r].weight, count);
        const int64_t begin = s->runs[r].begin, all = tn_tensor_count(o.weight);
        double v[ATTRS_MAX];

        multi_numbers(x, m, s->runs[r].weight, count * m->each, v);
        multi_step(&o, m, v, begin, begin + RUN < all ? begin + RUN : all);
    }
    return TN_OK;
}

static tn_status multi_prepare_all(void *plugin, const tn_node *node, tn_plan *plan, const multi *m,
                                   tn_err *err)
{
    const uint32_t count = (node->in_count - (m->preloaded ? 2u : 0u)) / m->each;
    int64_t runs = 0, elements = 0;
    multi_state *s;
    tn_status st;

    for (uint32_t w = 0; w < count; w++) {
        elements += tn_tensor_count(node->in[w * m->each]);
        runs += (tn_tensor_count(node->in[w * m->each]) + RUN - 1) / RUN;
    }
    tncpu_plan_work(node, plan, 20 + 10 * (double)count + 0.5 * (double)elements);
    if ((st = tncpu_state(plugin, plan, sizeof *s + (uint64_t)runs * sizeof *s->runs, err)))
        return st;
    s = plan->state;
    for (uint32_t w = 0; w < count; w++) {
        plan->inplace[w] = (int32_t)(w * m->each);
        for (int64_t i = 0; i < tn_tensor_count(node->in[w * m->each]); i += RUN)
            s->runs[s->count++] = (multi_run){w, i};
    }
    return TN_OK;
}

#define MULTI(id, types_, which, each, mixed, preloaded)                                                     \
    static const multi id##_form = {which, each, mixed, preloaded};                                          \
                                                                                                             \
    static tn_status id##_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)             \
    {                                                                                                        \
        return multi_prepare_all(plugin, node, plan, &id##_form, err);                                       \
    }                                                                                                        \
                                                                                                             \
    static tn_status id##_run(const tn_plan *plan, const tn_exec *x, tn_err *err)                            \
    {                                                                                                        \
        return multi_run_all(plan, x, &id##_form, err);                                                      \
    }                                                                                                        \
                                                                                                             \
    static const tn_kernel id = TNCPU_KERNEL(#id "_update", types_, 0, id##_prepare, id##_run);

static const char *const multi_types[] = {"weight_*:" TNCPU_FLOATS, "*:=weight_*", NULL};
static const char *const preloaded_types[] = {"weight_*:" TNCPU_FLOATS, "lrs:f32", "wds:f32", "*:=weight_*",
                                              NULL};
static const char *const multi_mixed_types[] = {"weight_*:f16,bf16,f32", "grad_*:=weight_*",
                                                "output*:=weight_*", "*:f32", NULL};

MULTI(multi_sgd, multi_types, SGD, 2, 0, 0)
MULTI(multi_sgd_mom, multi_types, SGD_MOM, 3, 0, 0)
MULTI(multi_mp_sgd, multi_mixed_types, SGD, 3, 1, 0)
MULTI(multi_mp_sgd_mom, multi_mixed_types, SGD_MOM, 4, 1, 0)
MULTI(preloaded_multi_sgd, preloaded_types, SGD, 2, 0, 1)
MULTI(preloaded_multi_sgd_mom, preloaded_types, SGD_MOM, 3, 0, 1)
MULTI(preloaded_multi_mp_sgd, multi_mixed_types, SGD, 3, 1, 1)
MULTI(preloaded_multi_mp_sgd_mom, multi_mixed_types, SGD_MOM, 4, 1, 1)

/* ---- LARS ---------------------------------------------------------------------------------------- */

static tn_status sum_sq_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    int64_t elements = 0;

    (void)plugin, (void)err;
    for (uint32_t i = 0; i < node->in_count; i++)
        elements += tn_tensor_count(node->in[i]);
    plan->est_ns = 20 + 2 * (uint64_t)elements;
    plan->flags |= TN_PLAN_THREAD_INVARIANT;
    return TN_OK;
}

static double squares(const tn_tensor *t)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];
    const int64_t count = tn_tensor_count(t);
    double sum = 0;

    for (int64_t i = 0; i < count; i += PART) {
        const int64_t n = count - i < PART ? count - i : PART;
        double wide[PART], part = 0;
        float narrow[PART];

        c->load(at_element(t, i), 1, c->kind == TNCPU_K_F64 ? (void *)wide : (void *)narrow, n);
        for (int64_t k = 0; k < n; k++) {
            const double e = c->kind == TNCPU_K_F64 ? wide[k] : (double)narrow[k];

            part += e * e;
        }
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

static tn_status lars_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const double eta = tn_value_float(x->attrs[TN_multi_lars_eta]),
                 eps = tn_value_float(x->attrs[TN_multi_lars_eps]),
                 scale = tn_value_float(x->attrs[TN_multi_lars_rescale_grad]);

    (void)err;
    if (x->in[0]->dtype == TN_F32)
        lars_f32(x, (float)eta, (float)eps, (float)scale, (int)tncpu_threads(plan, x));
    else
        lars_f64(x, eta, eps, scale, (int)tncpu_threads(plan, x));
    return TN_OK;
}

static const char *const sum_sq_types[] = {"array_*:" TNCPU_FLOATS, "output:f32", NULL};
static const char *const lars_types[] = {"lrs:" TNCPU_FLOATS, "*:=lrs", NULL};
TNCPU_SHORT_KERNEL(lars, "multi_lars", lars_types, 0, update_prepare, lars_run)

const tn_kernel *const tncpu_family_optimizer[] = {
    &multi_sgd,
    &multi_sgd_mom,
    &multi_mp_sgd,
    &multi_mp_sgd_mom,
    &preloaded_multi_sgd,
    &preloaded_multi_sgd_mom,
    &preloaded_multi_mp_sgd,
    &preloaded_multi_mp_sgd_mom,
    TNCPU_ROW("multi_sum_sq", sum_sq_types, TN_KERNEL_EMPTY_OK, sum_sq_prepare, sum_sq_run),
    &lars,
    &sgd,
    &sgd_mom,
    &nag_mom,
    &signsgd,
    &signum,
    &adam,
    &rmsprop,
    &rmspropalex,
    &mp_sgd,
    &mp_sgd_mom,
    NULL,
};
