/*
 * Rule K-state: what a kernel gives follows from what it is handed, and not from what it did before. A plan
 * runs again, with other inputs between; other plans are prepared and live beside it; and a second process
 * comes to the same problems by another way: other attributes and the last one first, each after other inputs
 * of the same shapes. Rule K-mutates: inputs that are declared as changed do change.
 */
#include <string.h>

#include "lab.h"

#define TURNED 8  /* problems that the second process runs */
#define BESIDE 24 /* plans that are made while the first one lives */

static const chk_form plain_form = {.mode = TN_MODE_WRITE, .fill = 0x3c};

bool chk_is_exact(const chk_lab *lab)
{
    return (lab->side.kernel->flags & TN_KERNEL_DETERMINISTIC) != 0;
}

const chk_problem *chk_problem_other(chk_lab *lab, const chk_problem *p, uint64_t seed)
{
    chk_problem *other = chk_problem_copy(lab, p);
    const double factor = -0.5 * (double)(1 + seed % 4);
    const int32_t dtype = p->f.dtype[0];

    if (!p->forward)
        chk_problem_values(lab, other, lab->env->seed + seed);
    else if (p->f.args.in_count && chk_is_float(dtype)) /* a gradient that arrives may be any */
        for (int64_t k = 0; k < chk_elements(p, 0); k++)
            chk_set(other->in_data[0], dtype, k, factor * chk_get(p->in_data[0], dtype, k));
    return other;
}

/* ---- outputs as a note ------------------------------------------------------------------------------- */

static void outputs_note(chk_env *env, uint32_t name, const chk_outputs *from)
{
    chk_outputs *to = chk_twin_take(env, sizeof *to);

    if (!to)
        return;
    *to = *from;
    for (uint32_t i = 0; i < from->count; i++) {
        const uint64_t bytes = (uint64_t)from->elements[i] * tn_dtype_bytes(from->dtype[i]);

        if (!(to->data[i] = chk_twin_take(env, bytes + 1)))
            return;
        memcpy(to->data[i], from->data[i], (size_t)bytes);
    }
    chk_twin_note(env, name, to);
}

/* ---- the second process ------------------------------------------------------------------------------ */

typedef struct turn {
    uint32_t at, wanted;
    uint32_t varied; /* the last one with attributes of its own */
} turn;

static bool count_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    turn *t = arg;

    (void)lab;
    if (*p->attrs.text)
        t->varied = t->at;
    t->at++;
    return true;
}

static bool turned_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_outputs *first = chk_take(&lab->arena, sizeof *first);
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    turn *t = arg;

    if (t->at++ < t->wanted)
        return true;
    if (!chk_host_would_run(lab, p))
        return false;
    if (chk_node_first(lab, chk_problem_other(lab, p, 29), &plain_form, n))
        chk_node_close(n);
    if (chk_node_first(lab, p, &plain_form, n)) {
        chk_outputs_take(n, first);
        outputs_note(lab->env, t->wanted, first);
        chk_node_close(n);
    }
    return false;
}

static void turned_run(chk_lab *lab, uint32_t wanted)
{
    turn t = {.wanted = wanted};

    chk_problems(lab, CHK_PROBLEMS_FEW, turned_visit, &t);
}

static void turned(chk_lab *lab)
{
    turn all = {.varied = UINT32_MAX};
    uint32_t before;

    chk_problems(lab, CHK_PROBLEMS_FEW, count_visit, &all);
    before = all.at;
    if (all.varied < all.at)
        turned_run(lab, all.varied);
    for (uint32_t k = TURNED; k-- > 0 && all.at;) {
        const uint32_t wanted = k * (all.at - 1) / (TURNED - 1);

        if (wanted < before && wanted != all.varied)
            turned_run(lab, wanted);
        before = wanted; /* there may be fewer than TURNED */
    }
}

/* ---- the first one ----------------------------------------------------------------------------------- */

typedef struct state {
    uint32_t at;
    bool beside; /* the first problem was run beside others */
} state;

typedef struct beside {
    chk_node *node;
    const chk_outputs *want;
    uint32_t left;
} beside;

/* Another plan lives, and has run. */
static bool beside_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    beside *b = arg;

    if (!chk_host_would_run(lab, p) || !chk_node_first(lab, p, &plain_form, n))
        return true;
    if (chk_node_run(b->node) == TN_OK)
        chk_same(b->node, b->want, chk_is_exact(lab),
                 chk_text(&lab->arena, "while a plan for (%.200s) lives", p->text));
    chk_node_close(n);
    return --b->left > 0;
}

static void again_check(chk_lab *lab, const chk_problem *p, chk_node *a, const chk_outputs *first)
{
    chk_outputs *second = chk_take(&lab->arena, 2 * sizeof *second), *fresh = second + 1;
    chk_node *b = chk_take(&lab->arena, 2 * sizeof *b), *alone = b + 1;
    chk_form drawn = plain_form;
    const chk_problem *other = chk_problem_other(lab, p, 17);

    chk_node_share(a, other, 1, b);
    b->form.draw = drawn.draw = 11; /* another one than all nodes get at first */
    if (chk_node_run(b) == TN_OK) {
        chk_outputs_take(b, second);
        if (chk_node_try(lab, other, &drawn, alone)) {
            chk_outputs_take(alone, fresh);
            chk_same(b, fresh, chk_is_exact(lab),
                     "after a run with other inputs and draw, against a new plan");
            chk_node_close(alone);
        }
    }
    for (uint32_t round = 0; round < 3; round++)
        if (chk_node_run(a) == TN_OK)
            chk_same(a, first, chk_is_exact(lab), "the same inputs again");
    chk_node_close(b);
}

static bool state_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_outputs *first = chk_take(&lab->arena, sizeof *first);
    const chk_outputs *turned;
    chk_node *a = chk_take(&lab->arena, sizeof *a);
    state *s = arg;
    const uint32_t index = s->at++;

    if (!chk_host_would_run(lab, p) || !chk_node_first(lab, p, &plain_form, a))
        return true;
    chk_outputs_take(a, first);
    again_check(lab, p, a, first);
    if ((turned = chk_twin_read(lab->env, index)))
        chk_same(a, turned, chk_is_exact(lab), "against another process, where other problems came first");
    if (!s->beside) {
        beside b = {.node = a, .want = first, .left = BESIDE};

        s->beside = true;
        chk_problems(lab, CHK_PROBLEMS_FEW, beside_visit, &b);
    }
    chk_node_close(a);
    return true;
}

void chk_kernel_state(chk_env *env)
{
    state s = {.at = 0};
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    if (chk_twin_is_second(env))
        turned(&lab);
    else
        chk_problems(&lab, CHK_PROBLEMS_FEW, state_visit, &s);
    if (!chk_twin_is_second(env) && lab.declined && !s.beside)
        chk_skip(env, "declines all sizes that two processes compare");
    chk_lab_close(&lab);
}

/* ---- inputs that change ------------------------------------------------------------------------------- */

typedef struct mutation {
    uint32_t seen[CHK_ARGS_MAX], changed[CHK_ARGS_MAX]; /* runs, by the order of the mutated inputs */
    uint32_t count;
    const char *name[CHK_ARGS_MAX];
} mutation;

static bool mutation_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_outputs *got = chk_take(&lab->arena, sizeof *got);
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    mutation *m = arg;

    if ((p->op->flags & TN_OP_MUTATES_TRAINING && !(p->flags & TN_NODE_TRAIN)) || !p->mutated_count ||
        !chk_host_would_run(lab, p) || !chk_node_first(lab, p, &plain_form, n))
        return true;
    chk_outputs_take(n, got);
    for (uint32_t k = 0; k < p->mutated_count; k++) {
        const uint32_t o = p->f.args.out_count + k, i = p->mutated[k];
        const uint64_t bytes = (uint64_t)got->elements[o] * tn_dtype_bytes(got->dtype[o]);

        m->seen[k] += got->elements[o] > 0;
        m->changed[k] += memcmp(got->data[o], p->in_data[i], (size_t)bytes) != 0;
        m->name[k] = chk_argument_name(p->op, &p->f.args, i);
        m->count = k < m->count ? m->count : k + 1;
    }
    chk_node_close(n);
    return true;
}

void chk_kernel_mutates(chk_env *env)
{
    mutation m = {.count = 0};

    chk_lab_visit(env, CHK_PROBLEMS_FEW, mutation_visit, &m);
    if (!m.count)
        chk_skip(env, "its operator changes no input");
    for (uint32_t k = 0; k < m.count; k++)
        if (m.seen[k] && !m.changed[k])
            chk_fail(env, "K-mutates",
                     "never changes input %s, the declared one number %u: in %u runs it is as it was",
                     m.name[k], k, m.seen[k]);
}
