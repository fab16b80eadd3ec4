/*
 * A kernel that takes float64 and computes in float32 gives numbers that look right, and where no other
 * kernel serves the operator nobody tells what they should be. But float32 does not hold a change of 1e-9:
 * every input is moved by such a part of itself, and the outputs must follow as they follow larger changes.
 *
 * How an element follows is told by larger changes, which float32 holds. Where these disagree the operator
 * has a step or a kink (comparisons, rounding, indices), and nothing is said; likewise where the element
 * hardly follows at all. Long sums in float32 are too rough for that. So a second look: elements that follow
 * their inputs, and are all numbers of exactly 24 bits.
 *
 * In the same way attributes that are floats are moved: a kernel may lose float64 in those alone.
 */
#include <math.h>
#include <string.h>

#include "generate.h"

#define SMALL 1e-9 /* a hundredth of what float32 tells apart, a million times what float64 does */
#define MIDDLE 8e-6
#define LARGE 5e-4
#define LARGER 1e-3
#define POINTS 5          /* where the inputs are, and after each change */
#define FOLLOWS 5e-3      /* change of an element, in parts of it, for a change of all inputs by themselves */
#define FOLLOWS_WELL 0.05 /* so much that float32 shows it after the middle change, too */
#define PROBLEMS_MAX 40
#define ROUNDS_MAX 6 /* of one problem, for outputs of few elements */
#define TOLD_MIN 8   /* elements, before anything is said of an output */

typedef struct tally {
    uint64_t told, lost;         /* elements that follow large changes, and not the small one */
    uint64_t seen, narrow, full; /* numbers, those that float32 holds, those that need all of its bits */
} tally;

typedef struct precision {
    uint32_t problems;
    tally all[CHK_ARGS_MAX]; /* by output */
} precision;

/* Steps on a float32 copy of the weight compute in float32. */
static bool has_wide(const chk_problem *p)
{
    bool in = false, out = p->mutated_count > 0;

    for (uint32_t i = 0; i < chk_all(&p->f); i++)
        *(i < p->f.args.in_count ? &in : &out) |= p->f.dtype[i] == TN_F64;
    for (uint32_t k = 0; k < p->mutated_count; k++)
        if (p->f.dtype[p->mutated[k]] == TN_F32)
            return false;
    return in && out && !p->resizes;
}

/* What is moved: all inputs, or one attribute. */
typedef struct moving {
    const tn_attr_def *attr; /* NULL: inputs */
    uint32_t index;          /* of the attribute */
    uint32_t round;
} moving;

/* Nearer to 0 by a part of itself. */
static bool attribute_moved(chk_lab *lab, const chk_problem *p, const moving *m, double part,
                            chk_problem *moved)
{
    tn_value value;

    if (!chk_attr_scaled(&lab->arena, m->attr, p->attrs.values[m->index], 1 - 0.75 * part, 0, &value))
        return false;
    chk_attrs_with(&lab->arena, &p->attrs, m->index, value, NULL, NULL, &moved->attrs);
    return chk_infers_the_same(lab, p, &moved->attrs);
}

/* Each element nearer to 0 by half of `part` of itself up to all of it: signs and ranges stay. */
static void inputs_moved(chk_lab *lab, const chk_problem *p, uint32_t round, double part, chk_problem *moved)
{
    for (uint32_t i = 0; i < p->f.args.in_count; i++) {
        const int64_t count = chk_elements(p, i);
        const double *from = p->in_data[i];
        double *to;

        if (p->f.dtype[i] != TN_F64)
            continue;
        moved->in_data[i] = to = chk_take(&lab->arena, (uint64_t)count * sizeof *to + 1);
        for (int64_t k = 0; k < count; k++) {
            const uint64_t bits = chk_mix(lab->env->seed + round * 104729u + i * 7919u + (uint64_t)k);

            to[k] = from[k] * (1 - part * (0.5 + (double)(bits >> 11) / 18014398509481984.0));
        }
    }
}

static bool outputs_moved(chk_lab *lab, const chk_problem *p, const moving *m, double part, chk_outputs *out)
{
    chk_problem *moved = chk_take(&lab->arena, sizeof *moved);
    tn_err err;

    *moved = *p;
    if (!m->attr)
        inputs_moved(lab, p, m->round, 0.01 * m->round + part, moved);
    else if (!attribute_moved(lab, p, m, part, moved))
        return false;
    return chk_outputs_of(lab, &lab->side, moved, out, &err) == TN_OK;
}

static void number_look(double v, tally *t)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    t->seen++;
    t->narrow += (double)(float)v == v;
    t->full += (double)(float)v == v && (bits >> 29 & 1u);
}

/* `y`: at each of the points. */
static void element_look(const double y[POINTS], tally *t)
{
    const double small = (y[1] - y[0]) / SMALL, middle = (y[2] - y[0]) / MIDDLE,
                 large = (y[3] - y[0]) / LARGE, larger = (y[4] - y[0]) / LARGER;

    if (!isfinite(small) || !isfinite(middle) || !isfinite(large) || !isfinite(larger) ||
        fabs(large) < FOLLOWS * fabs(y[0]) || fabs(large) < 1e-30 || fabs(larger - large) > 0.2 * fabs(large))
        return;
    for (uint32_t k = 0; k < POINTS; k++)
        if (k != 1) /* mostly the same number as before the change */
            number_look(y[k], t);
    if (fabs(large) < FOLLOWS_WELL * fabs(y[0]) || fabs(large - middle) > 0.2 * fabs(large))
        return;
    t->told++;
    t->lost += fabs(small - middle) > 0.03 * fabs(middle);
}

static void tally_add(tally *to, const tally *t)
{
    to->told += t->told;
    to->lost += t->lost;
    to->seen += t->seen;
    to->narrow += t->narrow;
    to->full += t->full;
}

static void tally_check(chk_lab *lab, const chk_problem *p, uint32_t o, const tally *t, const moving *m)
{
    const uint32_t own = p->f.args.out_count;
    const char *name =
        chk_argument_name(p->op, &p->f.args, o < own ? p->f.args.in_count + o : p->mutated[o - own]);

    if (t->told >= TOLD_MIN && t->lost * 4 >= t->told * 3)
        chk_fail(
            lab->env, NULL,
            "output %s: %llu of %llu elements do not follow a change of %s by 1e-9 as they follow larger "
            "ones: float64 is lost on the way (%s)",
            name, (unsigned long long)t->lost, (unsigned long long)t->told,
            m->attr ? chk_text(&lab->arena, "attribute %s", m->attr->name) : "the inputs", p->text);
    if (!m->attr && t->seen >= TOLD_MIN && t->narrow == t->seen && t->full * 8 >= t->seen)
        chk_fail(lab->env, NULL,
                 "output %s: follows its inputs, but all of %llu numbers are those of float32 (%s)", name,
                 (unsigned long long)t->seen, p->text);
}

/* False: the kernel does not take these inputs. `few`: an output has too few elements to be judged by. */
static bool round_run(chk_lab *lab, const chk_problem *p, const moving *m, precision *c, bool *few)
{
    static const double parts[POINTS] = {0, SMALL, MIDDLE, LARGE, LARGER};
    chk_outputs *y = chk_take(&lab->arena, POINTS * sizeof *y);

    for (uint32_t k = 0; k < POINTS; k++)
        if (!outputs_moved(lab, p, m, parts[k], &y[k]))
            return false;
    *few = false;
    for (uint32_t o = 0; o < y->count; o++) {
        tally one = {.told = 0};

        if (y->dtype[o] != TN_F64)
            continue;
        for (int64_t e = 0; e < y->elements[o]; e++) {
            double values[POINTS];

            for (uint32_t k = 0; k < POINTS; k++)
                values[k] = ((const double *)y[k].data[o])[e];
            element_look(values, &one);
        }
        *few |= y->elements[o] > 0 && y->elements[o] < TOLD_MIN;
        tally_check(lab, p, o, &one, m);
        if (m->attr)
            continue;
        tally_add(&c->all[o], &one);
        tally_check(lab, p, o, &c->all[o], m);
    }
    return true;
}

static bool precision_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    precision *c = arg;
    bool few = true;
    moving m = {.attr = NULL};

    if (!has_wide(p) || !chk_host_would_run(lab, p))
        return true;
    while (few && m.round < ROUNDS_MAX && round_run(lab, p, &m, c, &few))
        m.round++;
    if (!m.round)
        return true;
    for (m.index = 0; m.index < p->attrs.count; m.index++) {
        m.attr = &p->op->attrs[m.index];
        if (m.attr->type == TN_ATTR_T_FLOAT || m.attr->type == TN_ATTR_T_OPT_FLOAT ||
            m.attr->type == TN_ATTR_T_FLOATS)
            (void)round_run(lab, p, &m, c, &few);
    }
    chk_count(lab->env);
    return ++c->problems < PROBLEMS_MAX || lab->env->sizes;
}

static bool is_followed(const chk_lab *lab)
{
    return !(lab->op->flags & TN_OP_ZERO_GRADIENT);
}

void chk_kernel_precision(chk_env *env)
{
    precision c = {.problems = 0};

    chk_lab_need(env, is_followed, "its operator's gradient is zero: it need not follow its inputs");
    chk_lab_visit(env, CHK_PROBLEMS_WIDE, precision_visit, &c);
    if (!c.problems)
        chk_skip(env, "no problem with float64 in and out");
}
