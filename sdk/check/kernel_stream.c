/*
 * Kernels of a device: the work belongs into the stream that they are given. Earlier work of that stream, the
 * copies of the inputs among it, is held back until the kernel was called, and garbage lies where the inputs
 * are to come. What goes another way reads the garbage, or leaves it.
 *
 * What such a kernel computes is a matter of chance, so the other tests look here first and are skipped.
 */
#include <string.h>

#include "lab.h"

/* How long a stream is held back, and how long one waits after a quiet run: what goes another way is through
 * by then, on a busy machine by the last. */
static const uint32_t holds_us[] = {500, 2000, 8000}, waits_us[] = {2000, 8000, 32000};
#define ROUNDS 3

typedef struct look {
    uint32_t left, ran;
    uint32_t seen, blind; /* problems that tell something of streams, and others */
    const char *broken;   /* how a stream was not followed; NULL: all is well */
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
static bool run_at(chk_node *n, uint32_t pace, uint32_t us, chk_outputs *out)
{
    n->form.pace = pace;
    n->hold_us = us;
    n->early = false;
    if (chk_node_run(n))
        return false;
    chk_outputs_take(n, out);
    return true;
}

/* What it computes when it has all the time that it may want; false: not the same twice, which is another
 * test's. */
static bool quiet_outputs(chk_node *n, chk_outputs *out)
{
    chk_outputs *again = chk_take(&n->lab->arena, sizeof *again);

    for (uint32_t round = 0; round < ROUNDS; round++)
        if (run_at(n, CHK_PACE_QUIET, waits_us[round], out) &&
            run_at(n, CHK_PACE_QUIET, waits_us[round], again) && !outputs_differ(n->lab, again, out))
            return true;
    return false;
}

/* Several times a stream that is behind. */
static void node_look(chk_node *n, look *l)
{
    chk_lab *lab = n->lab;
    chk_outputs *quiet = chk_take(&lab->arena, 2 * sizeof *quiet), *late = quiet + 1;
    const char *differs;

    if (!quiet_outputs(n, quiet))
        return;
    l->ran++;
    for (uint32_t round = 0; round < ROUNDS && !l->broken; round++)
        if (!run_at(n, CHK_PACE_LATE, holds_us[round], late))
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
        node_look(n, l);
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

    *(can_look(lab, p) ? &l->seen : &l->blind) += 1;
    if (!can_look(lab, p) || !chk_node_first(lab, p, &form, n))
        return true;
    node_look(n, l);
    chk_fail_if(lab->env, l->broken, NULL, "%s", l->broken);
    chk_node_close(n);
    return --l->left > 0;
}

void chk_kernel_stream(chk_env *env)
{
    look l = {.left = env->sizes ? 40 : 6};

    chk_lab_visit(env, CHK_PROBLEMS_FEW, stream_visit, &l);
    if (!l.seen && l.blind)
        chk_skip(env, "what it computes follows from no input: it draws, or has none");
}
