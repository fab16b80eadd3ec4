/*
 * Many runs of one plan: none shared by threads, run-time attributes read at run, saved blocks handed to the
 * backward.
 */
#include <string.h>

#include "lab.h"
#include "waiting.h"

#define THREADS 4
#define ROUNDS 6
#define THREADS_LARGE 2 /* of these two meet as well as four do, */
#define ROUNDS_LARGE 2  /* and overlap from the first round on */
#define TIMED 1         /* problems that are run for a time, of the small ones */
#define TIMED_SUM 0.1   /* seconds of a thread that the kernels of a plugin share, for one problem each */
#define TIMED_LEAST 0.0003
#define TIMED_MOST 0.01
#define TIMED_WAIT 12 /* times as long by the clock: a thread may wait for a device */

static const chk_form plain_form = {.mode = TN_MODE_WRITE, .fill = 0x3c};

/* Another draw of the generator than the one that all nodes get at first. */
#define OTHER_DRAW 11

/* ---- several threads at once ------------------------------------------------------------------------- */

typedef struct threads_test {
    uint32_t left, rounds, timed; /* problems that draw are beside these */
    uint32_t threads;
    double seconds; /* of each of the first `timed` problems */
} threads_test;

typedef struct thread_work {
    chk_node *node;
    const chk_outputs *alone; /* what a plan of its own gave, with no other thread */
    uint32_t rounds;          /* at least */
    double seconds;           /* and as many more as fit into so much of its own time */
    bool exact;
    chk_arena arena;
    tn_status st;
    const char *differs;
} thread_work;

static double seconds_of(clockid_t clock)
{
    return 1e-9 * (double)chk_clock_ns(clock);
}

static void thread_run(void *arg)
{
    thread_work *work = arg;
    const double own = seconds_of(CLOCK_THREAD_CPUTIME_ID) + work->seconds;
    const double end = seconds_of(CLOCK_MONOTONIC) + TIMED_WAIT * work->seconds;

    for (uint32_t round = 0;
         round < work->rounds || (work->seconds > 0 && seconds_of(CLOCK_THREAD_CPUTIME_ID) < own &&
                                  seconds_of(CLOCK_MONOTONIC) < end);
         round++) {
        const chk_mark mark = chk_mark_set(&work->arena);

        work->st = chk_node_run(work->node);
        work->differs =
            work->st ? NULL : chk_outputs_differ(work->node, &work->arena, work->alone, work->exact);
        if (work->st || work->differs)
            return;
        chk_mark_back(&work->arena, mark);
    }
}

/* The same problem with the `k`th other values of its run-time attributes; `p` where there are none. */
static const chk_problem *runtime_other(chk_lab *lab, const chk_problem *p, uint32_t k)
{
    chk_problem *other = chk_take(&lab->arena, sizeof *other);
    tn_value *values = chk_take(&lab->arena, (p->attrs.count + 1u) * sizeof *values), others[THREADS];
    bool any = false;

    memcpy(values, p->attrs.values, p->attrs.count * sizeof *values);
    for (uint32_t i = 0; i < p->attrs.count; i++) {
        const tn_attr_def *def = &p->op->attrs[i];
        const uint32_t count = def->flags & TN_ATTR_F_RUNTIME
                                   ? chk_attr_others(&lab->arena, def, values[i], others, THREADS)
                                   : 0;

        if (count)
            values[i] = others[k % count];
        any |= count > 0;
    }
    *other = *p;
    other->attrs.values = values;
    return any && chk_infers_the_same(lab, p, &other->attrs) ? other : p;
}

/* What one thread sees already is no matter of several. */
static void runtime_alone(chk_node *n, const chk_outputs *want)
{
    const char *differs = chk_outputs_differ(n, &n->lab->arena, want, chk_is_exact(n->lab));

    if (differs)
        chk_fail(n->lab->env, "K-runtime-attrs", "run-time attributes changed after prepare: %s (%s)",
                 differs, n->p->text);
}

/* Number `k` of the nodes that share the plan of n[0], with inputs, run-time attributes and a draw of its
 * own, and what a new plan gives for them. */
static void thread_prepare(chk_lab *lab, const chk_problem *p, chk_node *n, uint32_t k, chk_outputs *alone)
{
    const chk_problem *other = k ? runtime_other(lab, chk_problem_other(lab, p, k), k) : p;
    chk_form form = n->form;
    chk_node *fresh = chk_take(&lab->arena, sizeof *fresh);
    tn_status st;

    form.draw = k ? OTHER_DRAW + k : 0;
    form.forward = NULL;
    form.run_attrs = NULL; /* those of the problem */
    st = chk_node_open(lab, &lab->side, other, &form, fresh);
    if (!st)
        st = chk_node_run(fresh);
    if (st) { /* these values are none for it: once more the first */
        chk_node_close(fresh);
        other = p;
        if (!chk_node_try(lab, p, &form, fresh))
            chk_fail(lab->env, NULL, "prepare takes a problem once only (%s)", p->text);
    }
    chk_outputs_take(fresh, alone);
    chk_node_close(fresh);
    if (k)
        chk_node_share(n, other, k, &n[k]);
    n[k].form.draw = form.draw;
    n[k].form.run_attrs = other->attrs.values;
    if (other->attrs.values != p->attrs.values && chk_node_run(&n[k]) == TN_OK)
        runtime_alone(&n[k], alone);
}

static bool threads_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_outputs *alone = chk_take(&lab->arena, THREADS * sizeof *alone);
    chk_node *n = chk_take(&lab->arena, THREADS * sizeof *n);
    thread_work work[THREADS];
    void *args[THREADS];
    threads_test *t = arg;
    const bool drawn = (p->flags & TN_NODE_TRAIN) && (lab->op->effects & TN_EFFECT_RANDOM);

    if ((!t->left && !drawn) || !chk_host_would_run(lab, p) || !chk_node_first(lab, p, &plain_form, &n[0]))
        return true;
    for (uint32_t k = 0; k < t->threads; k++) {
        thread_prepare(lab, p, n, k, &alone[k]);
        work[k] = (thread_work){.node = &n[k],
                                .alone = &alone[k],
                                .rounds = t->rounds,
                                .seconds = t->timed || drawn ? t->seconds : 0,
                                .exact = chk_is_exact(lab)};
        args[k] = &work[k];
    }
    if (chk_together(t->threads, thread_run, args) < t->threads)
        chk_fail(lab->env, "kit", "%u threads could not be started", t->threads);
    for (uint32_t k = 0; k < t->threads; k++) {
        if (work[k].st)
            chk_fail(lab->env, NULL, "on several threads run gives %s: %s (%s)", tn_status_name(work[k].st),
                     n[k].err.message, p->text);
        if (work[k].differs)
            chk_fail(lab->env, NULL, "one plan run by %u threads at once: %s (%s)", t->threads,
                     work[k].differs, p->text);
        chk_arena_free(&work[k].arena);
    }
    for (uint32_t k = t->threads; k-- > 0;)
        chk_node_close(&n[k]);
    t->timed -= t->timed > 0;
    t->left -= t->left > 0;
    return t->left || (lab->op->effects & TN_EFFECT_RANDOM); /* training comes last, and draws more */
}

/* Some seconds are for all kernels of a plugin: where there are few, each gets more. */
static double seconds_share(chk_env *env)
{
    double share = TIMED_MOST;
    const uint32_t kernels = chk_kernels_count(env);

    if (kernels)
        share = TIMED_SUM / kernels;
    if (env->sizes)
        share = TIMED_MOST;
    return share > TIMED_MOST ? TIMED_MOST : share < TIMED_LEAST ? TIMED_LEAST : share;
}

void chk_kernel_threads(chk_env *env)
{
    threads_test few = {.left = env->sizes ? 100 : 6, .rounds = ROUNDS, .timed = TIMED, .threads = THREADS};
    threads_test large = {
        .left = env->sizes ? 2 : 1, .rounds = ROUNDS_LARGE, .timed = 1, .threads = THREADS_LARGE};
    chk_lab lab;

    few.seconds = large.seconds = seconds_share(env);
    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_FEW, threads_visit, &few);
    chk_problems(&lab, CHK_PROBLEMS_LARGE, threads_visit, &large);
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
    if (!chk_infers_the_same(lab, r->p, &changed->attrs) || !chk_node_first(lab, changed, &form, n))
        return false;
    chk_outputs_take(n, want);
    chk_node_close(n);
    form.run_attrs = values;
    if (chk_node_try(lab, r->p, &form, n)) {
        chk_same(n, want, chk_is_exact(lab), chk_text(&lab->arena, "%s changed after prepare", names));
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

    chk_lab_visit(env, CHK_PROBLEMS_FEW, runtime_visit, &r);
    if (!r.ran)
        chk_skip(env, "its operator has no run-time attributes");
}

/* ---- saved blocks ------------------------------------------------------------------------------------ */

/* NULL: nothing was saved. */
static void *saved_copy(chk_lab *lab, chk_node *forward)
{
    const uint64_t bytes = forward->plan->saved_bytes;

    return bytes && forward->saved.memory
               ? memcpy(chk_take(&lab->arena, bytes), forward->saved.memory, (size_t)bytes)
               : NULL;
}

static bool saved_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const chk_form recorded = {
        .mode = TN_MODE_WRITE, .recorded = true, .guard = CHK_GUARD_START, .fill = 0x3c};
    chk_form back = {.mode = TN_MODE_WRITE, .guard = CHK_GUARD_START, .fill = 0x3c};
    chk_outputs *outputs = chk_take(&lab->arena, 2 * sizeof *outputs), *want = outputs + 1;
    chk_node *n = chk_take(&lab->arena, 3 * sizeof *n), *forward = n + 1, *between = n + 2;
    const void *before;
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
    chk_node_share(forward, chk_problem_other(lab, p->forward, 23), 1, between); /* has a block of its own */
    between->form.draw = OTHER_DRAW;
    (void)chk_node_run(between);
    back.forward = forward;
    before = saved_copy(lab, forward);
    if (chk_node_first(lab, p, &back, n)) {
        chk_outputs_take(n, outputs);
        chk_node_guards(forward);
        if (before && memcmp(before, forward->saved.memory, (size_t)forward->plan->saved_bytes))
            chk_fail(lab->env, NULL, "backward writes to the saved block, which it may only read (%s)",
                     p->text);
        if (chk_reference_outputs(lab, p, want) || chk_outputs_of(lab, &lab->side, p, want, &err) == TN_OK)
            chk_reference_compare(lab, p, outputs, want);
        chk_node_close(n);
        ++*ran;
    }
    chk_node_close(between);
    chk_node_close(forward);
    return true;
}

static bool is_backward(const chk_lab *lab)
{
    return (lab->op->flags & TN_OP_BACKWARD) != 0;
}

void chk_kernel_saved(chk_env *env)
{
    uint32_t ran = 0;

    chk_fault_rules(env, "K-saved", "K-readonly", env->subject);
    chk_lab_need(env, is_backward, "not a backward operator");
    chk_lab_visit(env, CHK_PROBLEMS_FEW, saved_visit, &ran);
    if (!ran)
        chk_skip(env, "the plugin has no kernel for its forward");
}
