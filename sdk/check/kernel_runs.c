/*
 * Many runs of one plan: no state between them, none shared by threads, the same bits where a kernel says so,
 * run-time attributes read at run, saved blocks handed to the backward.
 */
#include <string.h>

#include "lab.h"

#define THREADS 4
#define ROUNDS 6
#define ROUNDS_LARGE 3 /* long runs overlap from the first one on */

static bool is_exact(const chk_lab *lab)
{
    return (lab->side.kernel->flags & TN_KERNEL_DETERMINISTIC) != 0;
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
    if (!chk_host_would_run(lab, p) || !chk_node_first(lab, p, &plain_form, a))
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

typedef struct threads_test {
    uint32_t left, rounds;
} threads_test;

typedef struct thread_work {
    chk_node *node;
    uint32_t rounds;
} thread_work;

static void thread_run(void *arg)
{
    const thread_work *work = arg;
    chk_node *n = work->node;
    tn_status st = TN_OK;

    for (uint32_t round = 0; round < work->rounds && !st; round++)
        st = chk_node_run(n);
    if (st)
        chk_fail(n->lab->env, NULL, "on several threads run gives %s: %s (%s)", tn_status_name(st),
                 n->err.message, n->p->text);
}

static bool threads_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_outputs *alone = chk_take(&lab->arena, THREADS * sizeof *alone);
    chk_node *n = chk_take(&lab->arena, THREADS * sizeof *n);
    thread_work work[THREADS];
    void *args[THREADS];
    threads_test *t = arg;
    uint32_t count = 1;

    if (!chk_host_would_run(lab, p) || !chk_node_first(lab, p, &plain_form, &n[0]))
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
    for (uint32_t k = 0; k < THREADS; k++) {
        work[k] = (thread_work){&n[k], t->rounds};
        args[k] = &work[k];
    }
    if (chk_together(THREADS, thread_run, args) < THREADS)
        chk_fail(lab->env, "kit", "%d threads could not be started", THREADS);
    for (uint32_t k = 0; k < THREADS; k++)
        chk_same(&n[k], &alone[k], is_exact(lab), "one plan run by 4 threads at once");
    while (count-- > 0)
        chk_node_close(&n[count]);
    return --t->left > 0;
}

void chk_kernel_threads(chk_env *env)
{
    threads_test few = {.left = env->sizes ? 100 : 10, .rounds = ROUNDS};
    threads_test large = {.left = 2, .rounds = ROUNDS_LARGE};
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_FEW, threads_visit, &few);
    chk_problems(&lab, CHK_PROBLEMS_LARGE, threads_visit, &large);
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

    if (!chk_host_would_run(lab, p) || !chk_node_first(lab, p, &form, n))
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

#define VALUES_MAX 8 /* tried for one attribute */
#define ROWS_MAX 128

typedef struct runtime {
    chk_lab *lab;
    const chk_problem *p;
    uint32_t turn; /* which of its other values each attribute gets */
    uint32_t ran, index[ROWS_MAX], count[ROWS_MAX], attrs;
    tn_value values[ROWS_MAX][VALUES_MAX];
} runtime;

static void runtime_values(runtime *r)
{
    const chk_attrs *attrs = &r->p->attrs;

    r->attrs = 0;
    for (uint32_t i = 0; i < attrs->count && r->attrs < ROWS_MAX; i++) {
        const tn_attr_def *def = &r->p->op->attrs[i];

        if (!(def->flags & TN_ATTR_F_RUNTIME))
            continue;
        r->index[r->attrs] = i;
        r->count[r->attrs] =
            chk_attr_others(&r->lab->arena, def, attrs->values[i], r->values[r->attrs], VALUES_MAX);
        r->attrs += r->count[r->attrs] > 0;
    }
}

/* A plan is for shapes and data types: attributes that decide them change with the plan. */
static bool infers_the_same(chk_lab *lab, const chk_problem *p, const chk_attrs *attrs)
{
    chk_facts *f = chk_take(&lab->arena, sizeof *f);
    chk_args args;
    tn_err err;

    f->args = p->f.args;
    chk_facts_unknown(f);
    for (uint32_t i = 0; i < f->args.in_count; i++) {
        f->in_shape[i] = p->f.in_shape[i];
        f->in_dtype[i] = p->f.in_dtype[i];
    }
    return !chk_infer_args(p->op, attrs, f->args.in_count, &args, &err) &&
           args.in_count == f->args.in_count && args.out_count == f->args.out_count &&
           !chk_infer_dtypes(p->op, attrs, f, &err) &&
           !chk_infer_shapes(p->op, attrs, p->flags & TN_NODE_TRAIN ? TN_INFER_TRAIN : 0, f, &err) &&
           chk_facts_equal(f, &p->f);
}

/* With other values of the attributes from number `first` to `last`; false: the operator does not take
 * them. */
static bool runtime_change(runtime *r, uint32_t first, uint32_t last)
{
    chk_lab *lab = r->lab;
    chk_problem *changed = chk_take(&lab->arena, sizeof *changed);
    chk_outputs *want = chk_take(&lab->arena, sizeof *want);
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    tn_value *values = chk_take(&lab->arena, (r->p->attrs.count + 1u) * sizeof *values);
    const char *names = "";
    chk_form form = plain_form;

    memcpy(values, r->p->attrs.values, r->p->attrs.count * sizeof *values);
    for (uint32_t k = first; k <= last; k++) {
        values[r->index[k]] = r->values[k][r->turn % r->count[k]];
        names = chk_text(&lab->arena, "%s%s%s", names, *names ? ", " : "", r->p->op->attrs[r->index[k]].name);
    }
    *changed = *r->p;
    changed->attrs.values = values;
    if (!infers_the_same(lab, r->p, &changed->attrs) || !chk_node_first(lab, changed, &form, n))
        return false;
    chk_outputs_take(n, want);
    chk_node_close(n);
    form.run_attrs = values;
    if (chk_node_try(lab, r->p, &form, n)) {
        chk_same(n, want, is_exact(lab), chk_text(&lab->arena, "%s changed after prepare", names));
        chk_node_close(n);
        r->ran++;
    }
    return true;
}

/* All at once, and where that makes no sense one after the other. */
static bool runtime_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    runtime *r = arg;

    if (!chk_host_would_run(lab, p))
        return true;
    r->lab = lab;
    r->p = p;
    runtime_values(r);
    for (uint32_t round = 0; r->attrs && round < 2; round++, r->turn++)
        if (!runtime_change(r, 0, r->attrs - 1))
            for (uint32_t k = 0; r->attrs > 1 && k < r->attrs; k++)
                (void)runtime_change(r, k, k);
    return true;
}

void chk_kernel_runtime_attrs(chk_env *env)
{
    runtime r = {.ran = 0};
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_FEW, runtime_visit, &r);
    if (!r.ran)
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

    if (!p->forward || !chk_host_would_run(lab, p) || !chk_side_beside(lab, p->forward, &side))
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
