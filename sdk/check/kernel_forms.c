/*
 * The same problem in other forms: strides, alignment, nothing in it, in place, modes, guards around memory,
 * other garbage before. Each form is held against the plain one; empty problems against the reference.
 */
#include <string.h>

#include "lab.h"

/* ---- one form after the other ------------------------------------------------------------------------ */

/* A test: each problem in the plain form, then in others, which give the same. */
typedef struct forms {
    chk_form plain, form[4];
    const char *what[4];
    uint32_t count, ran;
    uint32_t again; /* runs of the plain form's node */
    bool exact;     /* for deterministic kernels: bit for bit */
    bool in_place;  /* of plans that let an output take over an input */
    uint32_t says;  /* of plans that say this (TN_PLAN_…): bit for bit */
    bool in_turn;   /* one of the other forms for each problem */
    uint32_t turn;
} forms;

static bool is_judged(const forms *f, const chk_node *n)
{
    bool any = !f->in_place;

    for (uint32_t o = 0; o < n->p->f.args.out_count; o++)
        any |= n->inplace[o] >= 0;
    return any && (n->plan->flags & f->says) == f->says;
}

/* False: the host would not call it, it cannot mean the problem, or says nothing that is to be tested. */
static bool plain_outputs(chk_lab *lab, const chk_problem *p, const forms *f, chk_outputs *out)
{
    chk_form plain = f->plain;
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    bool judged;

    plain.mode = TN_MODE_WRITE;
    if (!chk_host_would_run(lab, p) || !chk_node_first(lab, p, &plain, n))
        return false;
    chk_outputs_take(n, out);
    for (uint32_t i = 0; i < f->again; i++)
        if (chk_node_run(n) == TN_OK)
            chk_same(n, out, true, "says it is deterministic; run again");
    judged = f->in_place || is_judged(f, n);
    chk_node_close(n);
    return judged;
}

static bool forms_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    forms *f = arg;
    chk_outputs *plain = chk_take(&lab->arena, sizeof *plain);
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    bool alone = false; /* of most threads it took one */

    if (!plain_outputs(lab, p, f, plain))
        return true;
    f->turn++;
    f->ran += f->again > 0;
    for (uint32_t i = f->in_turn ? f->turn % f->count : 0; i < f->count && !alone;
         i += f->in_turn ? f->count : 1) {
        if (!chk_node_try(lab, p, &f->form[i], n))
            continue;
        chk_node_guards(n);
        if (is_judged(f, n)) {
            chk_same(n, plain, f->says || (f->exact && chk_is_exact(lab)), f->what[i]);
            f->ran++;
        }
        alone = f->says && !f->in_turn && n->plan->threads < 2;
        chk_node_close(n);
    }
    return true;
}

static void forms_run(chk_env *env, forms *f, uint32_t what, const char *none)
{
    chk_lab_visit(env, what, forms_visit, f);
    if (!f->ran)
        chk_skip(env, "%s", none);
}

#define NO_PROBLEM "no problem for this test"

void chk_kernel_misaligned(chk_env *env)
{
    forms f = {.form = {{.mode = TN_MODE_WRITE, .offset = 1}},
               .what = {"bases aligned to elements only"},
               .count = 1};

    forms_run(env, &f, CHK_PROBLEMS_ALL, NO_PROBLEM);
}

void chk_kernel_bounds(chk_env *env)
{
    forms f = {.form = {{.mode = TN_MODE_WRITE, .guard = CHK_GUARD_END, .lock = true, .recorded = true},
                        {.mode = TN_MODE_WRITE, .guard = CHK_GUARD_START, .lock = true, .recorded = true}},
               .what = {"with guards close behind", "with guards close before"},
               .count = 2};

    forms_run(env, &f, env->sizes ? CHK_PROBLEMS_ALL : CHK_PROBLEMS_FEW, NO_PROBLEM);
    if (!env->sizes) { /* each data type and rank, at one of the two ends */
        f.count = 1;
        forms_run(env, &f, CHK_PROBLEMS_ALL, NO_PROBLEM);
    }
}

void chk_kernel_uninitialised(chk_env *env)
{
    forms f = {.form = {{.mode = TN_MODE_WRITE, .fill = 0xff}, {.mode = TN_MODE_WRITE, .fill = 0xa5}},
               .what = {"outputs and workspace held 0xff before, not 0",
                        "outputs and workspace held 0xa5 before, not 0"},
               .count = 2,
               .exact = true};

    forms_run(env, &f, CHK_PROBLEMS_ALL, NO_PROBLEM);
}

void chk_kernel_inplace(chk_env *env)
{
    forms f = {.form = {{.mode = TN_MODE_WRITE, .in_place = true}},
               .what = {"in place"},
               .count = 1,
               .in_place = true};

    forms_run(env, &f, CHK_PROBLEMS_ALL, "no plan lets an output take over an input");
}

void chk_kernel_deterministic(chk_env *env)
{
    forms one = {.form = {{.mode = TN_MODE_WRITE}},
                 .what = {"says it is deterministic; with a new plan"},
                 .count = 1,
                 .again = 4,
                 .exact = true};
    forms several = {.plain = {.threads = 3}, .again = 1};

    chk_lab_need(env, chk_is_exact, "does not say TN_KERNEL_DETERMINISTIC");
    chk_lab_visit(env, CHK_PROBLEMS_FEW, forms_visit, &one);
    chk_lab_visit(env, CHK_PROBLEMS_LARGE, forms_visit, &several);
}

/* Where several threads have something to do each number of them is tried, else one in turn. */
void chk_kernel_thread_invariant(chk_env *env)
{
    forms f = {.form = {{.mode = TN_MODE_WRITE, .threads = 8},
                        {.mode = TN_MODE_WRITE, .threads = 2},
                        {.mode = TN_MODE_WRITE, .threads = 3}},
               .what = {"says it does not depend on the number of threads; 8, not 1",
                        "says it does not depend on the number of threads; 2, not 1",
                        "says it does not depend on the number of threads; 3, not 1"},
               .count = 3,
               .says = TN_PLAN_THREAD_INVARIANT,
               .in_turn = !env->sizes};

    chk_lab_visit(env, CHK_PROBLEMS_FEW, forms_visit, &f);
    f.in_turn = false;
    forms_run(env, &f, CHK_PROBLEMS_LARGE, "no plan says TN_PLAN_THREAD_INVARIANT");
}

/* ---- strides ----------------------------------------------------------------------------------------- */

/* The `turn`-th dimension of more than one; -1: there is none. */
static int32_t broadcast_axis(const tn_shape *s, uint32_t turn)
{
    int32_t axes[TN_NDIM_MAX];
    uint32_t count = 0;

    for (int32_t d = 0; d < s->ndim; d++)
        if (s->dim[d] > 1)
            axes[count++] = d;
    return count ? axes[turn % count] : -1;
}

/* The same problem with input `i` constant along dimension `axis`. */
static void broadcast_problem(chk_lab *lab, const chk_problem *p, uint32_t i, int32_t axis, chk_problem *out)
{
    const tn_shape *s = &p->f.shape[i];
    const int64_t count = chk_shape_elements(s, INT64_MAX / 16), length = s->dim[axis];
    uint64_t block = tn_dtype_bytes(p->f.dtype[i]);
    char *to = chk_take(&lab->arena, (uint64_t)count * block);

    *out = *p;
    out->in_data[i] = to;
    for (int32_t d = axis + 1; d < s->ndim; d++)
        block *= (uint64_t)s->dim[d];
    for (int64_t k = 0; block && k * (int64_t)block < count * (int64_t)tn_dtype_bytes(p->f.dtype[i]); k++)
        memcpy(to + (uint64_t)k * block, (const char *)p->in_data[i] + (uint64_t)(k - k % length) * block,
               (size_t)block);
}

static void strided_run(chk_lab *lab, const chk_problem *p, const chk_form *form, const char *what, forms *f)
{
    chk_outputs *plain = chk_take(&lab->arena, sizeof *plain);
    chk_node *n = chk_take(&lab->arena, sizeof *n);

    if (!plain_outputs(lab, p, f, plain) || !chk_node_try(lab, p, form, n))
        return;
    chk_same(n, plain, false, what);
    chk_node_close(n);
    f->ran++;
}

static bool strided_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    static const chk_form reversed = {.mode = TN_MODE_WRITE, .layout = CHK_LAYOUT_REVERSED},
                          gaps = {.mode = TN_MODE_WRITE, .layout = CHK_LAYOUT_GAPS};
    chk_problem *constant = chk_take(&lab->arena, sizeof *constant);
    forms *f = arg;

    strided_run(lab, p, &reversed, "the first dimension innermost", arg);
    strided_run(lab, p, &gaps, "every second element", arg);
    for (uint32_t i = 0; i < p->f.args.in_count; i++) {
        const int32_t axis = broadcast_axis(&p->f.shape[i], f->turn + i);
        const chk_form broadcast = {.mode = TN_MODE_WRITE, .broadcast = i + 1, .broadcast_axis = axis};

        if (axis < 0 || tn_op_mutates(p->op, p->f.args.in_count, i))
            continue;
        broadcast_problem(lab, p, i, axis, constant);
        strided_run(lab, constant, &broadcast,
                    chk_text(&lab->arena, "an input with a stride of 0 in dimension %d", axis), arg);
    }
    f->turn++;
    return true;
}

static bool is_strided(const chk_lab *lab)
{
    return (lab->side.kernel->flags & TN_KERNEL_STRIDED) != 0;
}

void chk_kernel_strided(chk_env *env)
{
    forms f = {.ran = 0};

    chk_lab_need(env, is_strided, "takes dense tensors only");
    chk_lab_visit(env, CHK_PROBLEMS_ALL, strided_visit, &f);
}

/* ---- nothing in it ----------------------------------------------------------------------------------- */

static bool empty_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const chk_form form = {.mode = TN_MODE_WRITE, .guard = CHK_GUARD_END, .lock = true};
    chk_outputs *outputs = chk_take(&lab->arena, 2 * sizeof *outputs);
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    uint32_t *ran = arg;
    tn_status st;

    if (!chk_host_would_run(lab, p) || p->resizes)
        return true;
    st = chk_node_open(lab, &lab->side, p, &form, n);
    if (!st && !(st = chk_node_run(n)))
        chk_node_guards(n);
    else if (st != TN_E_UNSUPPORTED && chk_reference_outputs(lab, p, outputs + 1))
        chk_fail(lab->env, NULL, "gives %s: %s (%s)", tn_status_name(st), n->err.message, p->text);
    if (!st) {
        chk_count(lab->env);
        ++*ran;
        chk_outputs_take(n, outputs);
        if (chk_reference_outputs(lab, p, outputs + 1))
            chk_reference_compare(lab, p, outputs, outputs + 1);
    }
    chk_node_close(n);
    return true;
}

void chk_kernel_empty(chk_env *env)
{
    uint32_t ran = 0;

    chk_fault_rules(env, "K-empty", "K-readonly", env->subject);
    chk_lab_visit(env, CHK_PROBLEMS_EMPTY, empty_visit, &ran);
    if (!ran)
        chk_skip(env, "the host would not call it for empty tensors");
}

/* ---- modes ------------------------------------------------------------------------------------------- */

#define UNTOUCHED 0x5a

static void mode_none(chk_lab *lab, const chk_problem *p, const chk_outputs *plain, uint32_t which)
{
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    uint8_t modes[CHK_ARGS_MAX];
    const chk_form form = {.modes = modes, .fill = UNTOUCHED, .guard = CHK_GUARD_END};

    for (uint32_t o = 0; o < CHK_ARGS_MAX; o++)
        modes[o] = o == which ? TN_MODE_NONE : TN_MODE_WRITE;
    if (!chk_node_try(lab, p, &form, n))
        return;
    for (uint32_t o = 0; o < p->f.args.out_count; o++) {
        const unsigned char *bytes = n->out[o].block.memory;
        int64_t count;
        const char *differs;

        for (uint64_t k = 0; o == which && k < n->out[o].t.bytes; k++)
            if (bytes[k] != UNTOUCHED)
                chk_fail(lab->env, NULL, "output %s has mode none, and its byte %llu was written (%s)",
                         chk_node_output_name(n, o), (unsigned long long)k, p->text);
        if (o == which)
            continue;
        differs = chk_values_differ(&lab->arena, chk_node_output(n, o, &count), plain->dtype[o],
                                    plain->data[o], plain->dtype[o], plain->elements[o], 1);
        if (differs)
            chk_fail(lab->env, NULL, "output %s, while output %u has mode none: %s (%s)",
                     chk_node_output_name(n, o), which, differs, p->text);
    }
    chk_node_guards(n);
    chk_node_close(n);
}

static void mode_add(chk_lab *lab, const chk_problem *p, const chk_outputs *plain)
{
    const chk_form form = {.mode = TN_MODE_ADD};
    chk_node *n = chk_take(&lab->arena, sizeof *n);

    for (uint32_t o = 0; o < p->f.args.out_count; o++)
        if (p->f.dtype[chk_out(&p->f, o)] == TN_BOOL)
            return;
    if (!chk_node_try(lab, p, &form, n))
        return;
    for (uint32_t o = 0; o < p->f.args.out_count; o++) {
        int64_t count;
        void *got = chk_node_output(n, o, &count);
        const uint64_t size = tn_dtype_bytes(plain->dtype[o]);
        const char *differs;

        for (int64_t k = 0; k < count; k++) {
            const double v = chk_get(plain->data[o], plain->dtype[o], k);

            if (chk_is_float(plain->dtype[o]) || (v < 9e15 && v > -9e15))
                chk_set(plain->data[o], plain->dtype[o], k, v + (double)(k % 5));
            else /* a double does not hold it */
                memcpy((char *)plain->data[o] + (uint64_t)k * size, (char *)got + (uint64_t)k * size,
                       (size_t)size);
        }
        differs =
            chk_values_differ(&lab->arena, got, plain->dtype[o], plain->data[o], plain->dtype[o], count, 2);
        if (differs)
            chk_fail(lab->env, NULL, "output %s in mode add: %s (%s)", chk_node_output_name(n, o), differs,
                     p->text);
    }
    chk_node_close(n);
}

static bool modes_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_outputs *plain = chk_take(&lab->arena, sizeof *plain);

    if (p->resizes || !plain_outputs(lab, p, &(forms){.count = 0}, plain))
        return true;
    ++*(uint32_t *)arg;
    for (uint32_t o = 0; p->f.args.out_count > 1 && o < p->f.args.out_count; o++)
        mode_none(lab, p, plain, o);
    if (lab->side.kernel->flags & TN_KERNEL_ADD_TO)
        mode_add(lab, p, plain);
    return true;
}

void chk_kernel_modes(chk_env *env)
{
    uint32_t ran = 0;

    chk_lab_visit(env, CHK_PROBLEMS_ALL, modes_visit, &ran);
    if (!ran)
        chk_skip(env, "no problem of which the outputs have a shape before run");
}
