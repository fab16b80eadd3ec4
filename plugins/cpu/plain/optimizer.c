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
    enum { PART = 1024 };
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

const tn_kernel *const tncpu_family_optimizer[] = {
    &sgd, &sgd_mom, &nag_mom, &signsgd, &signum, &adam, &rmsprop, &rmspropalex, &mp_sgd, &mp_sgd_mom, NULL,
};
