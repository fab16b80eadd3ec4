/*
 * Random numbers come from the host's generator: the same draw gives the same numbers, whichever plan runs
 * and however its number is told; another seed, device or draw gives others.
 */
#include <string.h>

#include "internal.h"
#include "lab.h"

/* ---- the draw of a node --------------------------------------------------------------------------- */

const tn_rng *chk_no_rng(chk_env *env)
{
    static const tn_rng *page;

    if (!page)
        page = chk_page_closed(env, "K-random", "tn_exec.rng, but its operator declares no draw");
    return page;
}

tn_rng chk_rng_of(chk_node *n)
{
    tn_rng rng = {.seed = n->lab->env->seed};

    if (n->form.rng)
        rng = *n->form.rng;
    *n->step = n->form.rng ? *n->form.rng->step : n->form.draw ? n->form.draw : 7;
    rng.struct_size = (uint32_t)TN_END(tn_rng, step_add);
    rng.step = n->step;
    return rng;
}

/* ---- the test -------------------------------------------------------------------------------------- */

static const uint64_t seven = 7, five = 5, eight = 8;

typedef struct other_draw {
    const char *what;
    uint64_t seed_xor, stream, step_add;
    const uint64_t *step;
} other_draw;

/* The draw that nodes get else is number 7 of device 0. */
static const other_draw others[] = {
    {"another seed", 0x5851f42d4c957f2d, 0, 0, &seven},
    {"another device (tn_rng.stream)", 0, 1, 0, &seven},
    {"another draw (tn_rng.step)", 0, 0, 0, &eight},
    {"another draw of a program (tn_rng.step_add)", 0, 0, 1, &seven},
};
#define OTHERS (sizeof others / sizeof others[0])
#define TRIES 8 /* seeds that are tried for each: a draw may have two outcomes only */

typedef struct draws {
    uint32_t ran;
    bool differs[OTHERS];
} draws;

static void same_draw(chk_lab *lab, const chk_problem *p, chk_node *n, const chk_outputs *first)
{
    const bool exact = chk_is_exact(lab);
    const tn_rng sum = {.seed = lab->env->seed, .step = &five, .step_add = 2};
    chk_node *fresh = chk_take(&lab->arena, sizeof *fresh);
    const chk_form form = n->form;

    if (chk_node_run(n) == TN_OK)
        chk_same(n, first, exact, "the same draw again");
    n->form.rng = &sum;
    if (chk_node_run(n) == TN_OK)
        chk_same(n, first, exact, "the same draw, its number told as step 5 and step_add 2");
    if (chk_node_try(lab, p, &form, fresh)) {
        chk_same(fresh, first, exact, "the same draw with a new plan");
        chk_node_close(fresh);
    }
}

static bool outputs_equal(chk_lab *lab, chk_node *n, const chk_outputs *first)
{
    chk_outputs *now = chk_take(&lab->arena, sizeof *now);

    chk_outputs_take(n, now);
    for (uint32_t o = 0; o < now->count; o++)
        if (now->elements[o] != first->elements[o] ||
            memcmp(now->data[o], first->data[o],
                   (size_t)((uint64_t)now->elements[o] * tn_dtype_bytes(now->dtype[o]))))
            return false;
    return true;
}

/* A draw of device 0 beside another one. */
static bool draw_differs(chk_lab *lab, chk_node *n, const other_draw *o, uint64_t seed)
{
    const tn_rng usual = {.seed = seed, .step = &seven}, other = {.seed = seed ^ o->seed_xor,
                                                                  .stream = o->stream,
                                                                  .step = o->step,
                                                                  .step_add = o->step_add};
    chk_outputs *first = chk_take(&lab->arena, sizeof *first);

    n->form.rng = &usual;
    if (chk_node_run(n))
        return false;
    chk_outputs_take(n, first);
    n->form.rng = &other;
    return chk_node_run(n) == TN_OK && !outputs_equal(lab, n, first);
}

static bool random_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const chk_form form = {.mode = TN_MODE_WRITE, .fill = 0x3c};
    chk_outputs *first = chk_take(&lab->arena, sizeof *first);
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    draws *d = arg;

    if (!chk_host_would_run(lab, p) || !chk_node_first(lab, p, &form, n))
        return true;
    chk_outputs_take(n, first);
    d->ran++;
    same_draw(lab, p, n, first);
    for (uint32_t k = 0; k < OTHERS; k++)
        for (uint64_t t = 0; t < TRIES && !d->differs[k]; t++)
            d->differs[k] = draw_differs(lab, n, &others[k], lab->env->seed + d->ran * TRIES + t);
    chk_node_close(n);
    return true;
}

static bool is_random(const chk_lab *lab)
{
    return (lab->op->effects & TN_EFFECT_RANDOM) != 0;
}

/* An operator may need no numbers for some attributes, or outside of training: one problem that shows a
 * difference is enough. */
void chk_kernel_random(chk_env *env)
{
    draws d = {.ran = 0};

    chk_lab_need(env, is_random, "its operator takes no draw");
    chk_lab_visit(env, CHK_PROBLEMS_FEW, random_visit, &d);
    for (uint32_t k = 0; d.ran && k < OTHERS; k++)
        if (!d.differs[k])
            chk_fail(env, NULL, "%s gives the same numbers in all of %u problems", others[k].what, d.ran);
}
