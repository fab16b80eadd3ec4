/*
 * Kernels of a device: the work belongs into the stream that they are given. Earlier work of that stream, the
 * copies of the inputs among it, is held back until the kernel was called, and garbage lies where the inputs
 * are to come. What goes another way reads the garbage, or leaves it.
 *
 * What such a kernel computes is a matter of chance, so the other tests look here first and are skipped.
 */
#include <string.h>

#include "lab.h"

#define ROUNDS 3

typedef struct look {
    uint32_t left, ran;
    const char *broken; /* how a stream was not followed; NULL: all is well */
} look;

static const char *outputs_differ(chk_lab *lab, const chk_outputs *got, const chk_outputs *want)
{
    const char *differs = NULL;

    for (uint32_t o = 0; o < got->count && !differs; o++)
        differs = chk_values_differ(&lab->arena, got->data[o], got->dtype[o], want->data[o], want->dtype[o],
                                    want->elements[o], 1);
    return differs;
}

/* The outputs of a run at a pace; false: it fails. */
static bool run_at(chk_node *n, uint32_t pace, chk_outputs *out)
{
    n->form.pace = pace;
    n->early = false;
    if (chk_node_run(n))
        return false;
    chk_outputs_take(n, out);
    return true;
}

/* `rounds` times a stream that is behind; a kernel that never gives the same twice is another test's. */
static void node_look(chk_node *n, uint32_t rounds, look *l)
{
    chk_lab *lab = n->lab;
    chk_outputs *quiet = chk_take(&lab->arena, 3 * sizeof *quiet), *again = quiet + 1, *late = quiet + 2;
    const char *differs;

    if (!run_at(n, CHK_PACE_QUIET, quiet) || !run_at(n, CHK_PACE_QUIET, again) ||
        outputs_differ(lab, quiet, again))
        return;
    l->ran++;
    for (uint32_t round = 0; round < rounds && !l->broken; round++)
        if (!run_at(n, CHK_PACE_LATE, late))
            l->broken = chk_text(&lab->arena, "run fails while its stream is behind: %s (%s)", n->err.message,
                                 n->p->text);
        else if (n->early)
            l->broken = chk_text(
                &lab->arena, "complete is called before earlier work of the stream is done (%s)", n->p->text);
        else if ((differs = outputs_differ(lab, late, quiet)))
            l->broken = chk_text(&lab->arena,
                                 "it does not wait for earlier work of its stream, or its stream not for it: "
                                 "%s (%s)",
                                 differs, n->p->text);
}

static bool can_look(const chk_lab *lab, const chk_problem *p)
{
    return p->f.args.in_count && !(p->op->effects & TN_EFFECT_RANDOM) && chk_host_would_run(lab, p);
}

static bool probe_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const chk_form form = {.mode = TN_MODE_WRITE, .fill = 0x3c};
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    look *l = arg;

    if (!can_look(lab, p))
        return true;
    if (!chk_node_open(lab, &lab->side, p, &form, n))
        node_look(n, 1, l);
    chk_node_close(n);
    return !l->ran && --l->left > 0;
}

bool chk_stream_followed(chk_lab *lab)
{
    look l = {.left = 5};

    chk_problems(lab, CHK_PROBLEMS_FEW, probe_visit, &l);
    return !l.broken;
}

static bool stream_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const chk_form form = {.mode = TN_MODE_WRITE, .fill = 0x3c, .pace = CHK_PACE_QUIET};
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    look *l = arg;

    if (!can_look(lab, p) || !chk_node_first(lab, p, &form, n))
        return true;
    node_look(n, ROUNDS, l);
    if (l->broken)
        chk_fail(lab->env, NULL, "%s", l->broken);
    chk_node_close(n);
    return --l->left > 0;
}

void chk_kernel_stream(chk_env *env)
{
    look l = {.left = env->sizes ? 40 : 8};
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_FEW, stream_visit, &l);
    chk_lab_close(&lab);
}
