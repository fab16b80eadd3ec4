/*
 * Many runs of one plan: no state between them, none shared by threads, the same bits where a kernel says so,
 * run-time attributes read at run, saved blocks handed to the backward.
 */
#include <pthread.h>
#include <string.h>

#include "lab.h"

#define THREADS 4
#define ROUNDS 6

static bool is_exact(const chk_lab *lab)
{
    return (lab->side.kernel->flags & TN_KERNEL_DETERMINISTIC) != 0;
}

static bool is_runnable(const chk_lab *lab, const chk_problem *p)
{
    return chk_host_would_run(lab, p) && (is_exact(lab) || !(p->op->effects & TN_EFFECT_RANDOM));
}

static const chk_form plain_form = {.mode = TN_MODE_WRITE, .fill = 0x3c};

/* The same problem with other elements. Backwards keep to theirs: they belong together. */
static const chk_problem *other_values(chk_lab *lab, const chk_problem *p, uint64_t seed)
{
    chk_problem *other = chk_take(&lab->arena, sizeof *other);

    *other = *p;
    if (p->forward)
        for (uint32_t i = 0; i < p->f.args.in_count; i++) { /* a gradient that arrives may be any */
            const int64_t count = chk_shape_elements(&p->f.in_shape[i], INT64_MAX / 16);

            if (i > 0 || !chk_is_float(p->f.in_dtype[i]))
                continue;
            other->in_data[i] = chk_take(&lab->arena, (uint64_t)count * 8 + 1);
            for (int64_t k = 0; k < count; k++)
                chk_set(other->in_data[i], p->f.in_dtype[i], k,
                        -0.5 * chk_get(p->in_data[i], p->f.in_dtype[i], k));
        }
    else
        chk_problem_values(lab, other, lab->env->seed + seed);
    return other;
}

/* ---- state between runs ------------------------------------------------------------------------------ */

static bool state_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_outputs *first = chk_take(&lab->arena, 3 * sizeof *first), *second = first + 1, *fresh = first + 2;
    chk_node *a = chk_take(&lab->arena, 3 * sizeof *a), *b = a + 1, *alone = a + 2;
    const chk_problem *other;

    (void)arg;
    if (!is_runnable(lab, p) || !chk_node_first(lab, p, &plain_form, a))
        return true;
    chk_outputs_take(a, first);
    other = other_values(lab, p, 17);
    chk_node_share(a, other, 1, b);
    if (chk_node_run(b) == TN_OK) {
        chk_outputs_take(b, second);
        if (chk_node_try(lab, other, &plain_form, alone)) {
            chk_outputs_take(alone, fresh);
            chk_same(b, fresh, is_exact(lab), "after a run with other inputs, against a new plan");
            chk_node_close(alone);
        }
    }
    for (uint32_t round = 0; round < 3; round++)
        if (chk_node_run(a) == TN_OK)
            chk_same(a, first, is_exact(lab), "the same inputs again");
    chk_node_close(b);
    chk_node_close(a);
    return true;
}

void chk_kernel_state(chk_env *env)
{
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_FEW, state_visit, NULL);
    chk_lab_close(&lab);
}

/* ---- several threads at once ------------------------------------------------------------------------- */

static pthread_barrier_t review_start;
static void *thread_run(void *arg)
{
    chk_node *n = arg;
    tn_status st = TN_OK;

    (void)pthread_barrier_wait(&review_start);
    for (uint32_t round = 0; round < ROUNDS && !st; round++)
        st = chk_node_run(n);
    if (st)
        chk_fail(n->lab->env, NULL, "on several threads run gives %s: %s (%s)", tn_status_name(st),
                 n->err.message, n->p->text);
    return NULL;
}

static bool threads_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_outputs *alone = chk_take(&lab->arena, THREADS * sizeof *alone);
    chk_node *n = chk_take(&lab->arena, THREADS * sizeof *n);
    pthread_t threads[THREADS];
    uint32_t *left = arg, count = 1, started = 0;

    if (!is_runnable(lab, p) || !chk_node_first(lab, p, &plain_form, &n[0]))
        return true;
    chk_outputs_take(&n[0], &alone[0]);
    for (; count < THREADS; count++) {
        chk_node_share(&n[0], other_values(lab, p, count), count, &n[count]);
        if (chk_node_run(&n[count])) { /* these values are none for it: once more the first */
            chk_node_close(&n[count]);
            chk_node_share(&n[0], p, count, &n[count]);
            (void)chk_node_run(&n[count]);
        }
        chk_outputs_take(&n[count], &alone[count]);
    }
    pthread_barrier_init(&review_start, NULL, THREADS);
    while (started < THREADS && !pthread_create(&threads[started], NULL, thread_run, &n[started]))
        started++;
    for (uint32_t t = 0; t < started; t++)
        (void)pthread_join(threads[t], NULL);
    for (uint32_t t = 0; t < THREADS; t++)
        chk_same(&n[t], &alone[t], is_exact(lab), "one plan run by 4 threads at once");
    while (count-- > 0)
        chk_node_close(&n[count]);
    return --*left > 0;
}

void chk_kernel_threads(chk_env *env)
{
    uint32_t left = env->sizes ? 100 : 10;
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_FEW, threads_visit, &left);
    left = 2;
    chk_problems(&lab, CHK_PROBLEMS_LARGE, threads_visit, &left);
    chk_lab_close(&lab);
}

/* ---- the same bits ----------------------------------------------------------------------------------- */

static bool repeat_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const uint32_t *threads = arg;
    const chk_form form = {.mode = TN_MODE_WRITE, .threads = *threads};
    chk_outputs *first = chk_take(&lab->arena, sizeof *first);
    chk_node *n = chk_take(&lab->arena, 2 * sizeof *n);

    if (!chk_host_would_run(lab, p) || !chk_node_first(lab, p, &form, n))
        return true;
    chk_outputs_take(n, first);
    for (uint32_t round = *threads > 1 ? 3 : 0; round < 4; round++)
        if (chk_node_run(n) == TN_OK)
            chk_same(n, first, true, "says it is deterministic; run again");
    chk_node_close(n);
    if (*threads == 1 && chk_node_try(lab, p, &form, n + 1)) {
        chk_same(n + 1, first, true, "says it is deterministic; with a new plan");
        chk_node_close(n + 1);
    }
    return true;
}

void chk_kernel_deterministic(chk_env *env)
{
    uint32_t one = 1, several = 3;
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    if (!is_exact(&lab))
        chk_skip(env, "does not say TN_KERNEL_DETERMINISTIC");
    chk_problems(&lab, CHK_PROBLEMS_FEW, repeat_visit, &one);
    chk_problems(&lab, CHK_PROBLEMS_LARGE, repeat_visit, &several);
    chk_lab_close(&lab);
}

static bool invariant_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    static const uint32_t budgets[] = {2, 3, 8};
    chk_form form = {.mode = TN_MODE_WRITE};
    chk_outputs *one = chk_take(&lab->arena, sizeof *one);
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    uint32_t *ran = arg;

    if (!is_runnable(lab, p) || !chk_node_first(lab, p, &form, n))
        return true;
    if (n->plan->flags & TN_PLAN_THREAD_INVARIANT) {
        chk_outputs_take(n, one);
        ++*ran;
    } else {
        one->count = 0;
    }
    chk_node_close(n);
    for (uint32_t i = 0; one->count && i < 3; i++) {
        form.threads = budgets[i];
        if (!chk_node_try(lab, p, &form, n))
            continue;
        if (n->plan->flags & TN_PLAN_THREAD_INVARIANT)
            chk_same(n, one, true,
                     chk_text(&lab->arena, "says it does not depend on the number of threads; %u, not 1",
                              budgets[i]));
        chk_node_close(n);
    }
    return true;
}

void chk_kernel_thread_invariant(chk_env *env)
{
    uint32_t ran = 0;
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_FEW, invariant_visit, &ran);
    chk_problems(&lab, CHK_PROBLEMS_LARGE, invariant_visit, &ran);
    if (!ran)
        chk_skip(env, "no plan says TN_PLAN_THREAD_INVARIANT");
    chk_lab_close(&lab);
}

/* ---- run-time attributes ----------------------------------------------------------------------------- */

static bool runtime_values(chk_lab *lab, const chk_problem *p, chk_problem *out)
{
    tn_value *values = chk_take(&lab->arena, (p->attrs.count + 1u) * sizeof *values);
    bool any = false;

    memcpy(values, p->attrs.values, p->attrs.count * sizeof *values);
    for (uint32_t i = 0; i < p->attrs.count; i++) {
        const tn_attr_def *def = &p->op->attrs[i];
        const double v = tn_value_float(values[i]) * 0.5 + 0.125;

        if (!(def->flags & TN_ATTR_F_RUNTIME) || def->type != TN_ATTR_T_FLOAT ||
            (def->min <= def->max && (v < def->min || v > def->max)))
            continue;
        values[i] = tn_value_of_float(v);
        any = true;
    }
    *out = *p;
    out->attrs.values = values;
    return any;
}

static bool runtime_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_problem *changed = chk_take(&lab->arena, sizeof *changed);
    chk_outputs *want = chk_take(&lab->arena, sizeof *want);
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    chk_form form = plain_form;
    uint32_t *ran = arg;

    if (!is_runnable(lab, p) || !runtime_values(lab, p, changed) || !chk_node_first(lab, changed, &form, n))
        return true;
    chk_outputs_take(n, want);
    chk_node_close(n);
    form.run_attrs = changed->attrs.values;
    if (chk_node_try(lab, p, &form, n)) {
        chk_same(n, want, is_exact(lab), "run-time attributes changed after prepare");
        chk_node_close(n);
        ++*ran;
    }
    return true;
}

void chk_kernel_runtime_attrs(chk_env *env)
{
    uint32_t ran = 0;
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_FEW, runtime_visit, &ran);
    if (!ran)
        chk_skip(env, "its operator has no run-time attributes");
    chk_lab_close(&lab);
}

/* ---- saved blocks ------------------------------------------------------------------------------------ */

static bool saved_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const chk_form recorded = {
        .mode = TN_MODE_WRITE, .recorded = true, .guard = CHK_GUARD_START, .fill = 0x3c};
    chk_form back = {.mode = TN_MODE_WRITE, .guard = CHK_GUARD_START, .fill = 0x3c};
    chk_outputs *outputs = chk_take(&lab->arena, 2 * sizeof *outputs), *want = outputs + 1;
    chk_node *n = chk_take(&lab->arena, 3 * sizeof *n), *forward = n + 1, *between = n + 2;
    chk_side side;
    uint32_t *ran = arg;
    tn_err err;

    if (!p->forward || !chk_host_would_run(lab, p) ||
        !chk_side_beside(lab, p->forward, &side))
        return true;
    if (chk_node_open(lab, &side, p->forward, &recorded, forward) || chk_node_run(forward)) {
        chk_node_close(forward);
        return true;
    }
    chk_node_guards(forward);
    chk_node_share(forward, other_values(lab, p->forward, 23), 1, between); /* has a block of its own */
    (void)chk_node_run(between);
    back.forward = forward;
    if (chk_node_first(lab, p, &back, n)) {
        chk_outputs_take(n, outputs);
        chk_node_guards(forward);
        if (chk_reference_outputs(lab, p, want) || chk_outputs_of(lab, &lab->side, p, want, &err) == TN_OK)
            chk_reference_compare(lab, p, outputs, want);
        chk_node_close(n);
        ++*ran;
    }
    chk_node_close(between);
    chk_node_close(forward);
    return true;
}

void chk_kernel_saved(chk_env *env)
{
    uint32_t ran = 0;
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_fault_rules(env, "K-saved", "K-readonly", env->subject);
    if (!(lab.op->flags & TN_OP_BACKWARD))
        chk_skip(env, "not a backward operator");
    chk_problems(&lab, CHK_PROBLEMS_FEW, saved_visit, &ran);
    if (!ran)
        chk_skip(env, "the plugin has no kernel for its forward");
    chk_lab_close(&lab);
}
