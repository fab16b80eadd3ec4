/*
 * A cell over the steps of a sequence. With lengths of their own, samples that end earlier give zeros behind
 * their end, and their last states are those of their own last step: as Gluon's cell.unroll().
 */
#include "run.h"

#include <string.h>

enum { STATES_MAX = 8 };

typedef struct unroll {
    tn_unroll_options o;
    tn_x kept[STATES_MAX][TNN_LAYER_VALUES]; /* states of all steps, where there are lengths */
    tn_x out[TNN_LAYER_VALUES];
    uint32_t states;
    size_t steps;
    bool by_sequence; /* NTC */
} unroll;

static const char *wrong(const unroll *u, tn_x x, const tn_x *states, bool cell)
{
    const tn_unroll_options *o = &u->o;

    if (!cell || !states)
        return cell ? "no states" : "the cell is NULL";
    if (o->states < 1 || o->states > STATES_MAX)
        return "1 to 8 .states are allowed";
    if (o->layout && strcmp(o->layout, "TNC") != 0 && !u->by_sequence)
        return ".layout is neither TNC nor NTC";
    if (tnn_value_shape(x)->ndim < 3)
        return "x needs at least three axes: steps, samples, width";
    if (u->steps < 1 || u->steps > TNN_LAYER_VALUES)
        return "1 to 64 steps are allowed: tn_lstm() and its like take more";
    return NULL;
}

/* SequenceReverse, SequenceMask, SequenceLast: over the steps, (T, N, …). */
static tn_x sequence(const unroll *u, const char *op, tn_x x)
{
    const tn_op_options o = {.struct_size = sizeof o,
                             .line = u->o.line,
                             .file = u->o.file,
                             .attrs = {"use_sequence_length", u->o.lengths ? "True" : "False"},
                             .with = {u->o.lengths}};

    return tn_op_(x, op, &o);
}

/* One value per step, behind each other along a new first axis. */
static tn_x stack(const unroll *u, tn_x *values)
{
    tnn_spec s;

    memset(&s, 0, sizeof s);
    s.stem = s.op = "stack";
    s.file = u->o.file;
    s.line = u->o.line;
    s.plain = true;
    tnn_spec_attr(&s, "axis", "0");
    tnn_spec_attr(&s, "num_args", "%zu", u->steps);
    return tnn_value_layer(&s, (uint32_t)u->steps, values, NULL, 0);
}

/* The first two axes change places, of `ndim`. */
static tn_x turned(const unroll *u, tn_x x, int32_t ndim)
{
    int64_t axes[TNN_NDIM_MAX] = {1, 0};

    for (int32_t i = 2; i < ndim; i++)
        axes[i] = i;
    return x ? tn_transpose_(x, (size_t)ndim, axes, u->o.file, u->o.line) : NULL;
}

static bool steps_run(unroll *u, tn_x x, tn_x *states, tn_x (*cell)(tn_x x, tn_x *states, void *arg))
{
    const tn_op_options squeeze = {
        .struct_size = sizeof squeeze, .line = u->o.line, .file = u->o.file, .attrs = {"axis", "0"}};

    for (size_t t = 0; t < u->steps; t++) {
        const tn_slice_options one = {.struct_size = sizeof one,
                                      .line = u->o.line,
                                      .file = u->o.file,
                                      .begin = (int64_t)t,
                                      .end = (int64_t)t + 1};
        const tn_x step = tn_slice_(x, &one);

        if (!step || !(u->out[t] = cell(tn_op_(step, "squeeze", &squeeze), states, u->o.arg)))
            return false;
        for (uint32_t i = 0; i < u->states; i++)
            u->kept[i][t] = states[i];
    }
    return true;
}

tn_x tn_unroll_(tn_x x, tn_x *states, tn_x (*cell)(tn_x x, tn_x *states, void *arg),
                const tn_unroll_options *options)
{
    const char *why;
    unroll u;
    tn_app *app;
    int32_t ndim;
    tn_x y;

    memset(&u, 0, sizeof u);
    tnn_options_copy(&u.o, sizeof u.o, options);
    if (!(app = tnn_value_app(x, "tn_unroll", u.o.file, u.o.line)))
        return NULL;
    u.by_sequence = u.o.layout && !strcmp(u.o.layout, "NTC");
    u.states = (uint32_t)u.o.states;
    ndim = tnn_value_shape(x)->ndim;
    u.steps = ndim > 2 ? (size_t)tnn_value_shape(x)->dims[u.by_sequence] : 0;
    if ((why = wrong(&u, x, states, cell != NULL))) {
        (void)tnn_fail(app, TN_E_ARG, "tn_unroll, called at %s:%d: %s", u.o.file ? u.o.file : "?", u.o.line,
                       why);
        return NULL;
    }
    x = u.by_sequence ? turned(&u, x, ndim) : x;
    x = u.o.reverse ? sequence(&u, "SequenceReverse", x) : x;
    if (!x || !steps_run(&u, x, states, cell) || !(y = stack(&u, u.out)))
        return NULL;
    if (u.o.lengths)
        y = sequence(&u, "SequenceMask", y);
    for (uint32_t i = 0; u.o.lengths && i < u.states; i++)
        states[i] = sequence(&u, "SequenceLast", stack(&u, u.kept[i]));
    y = u.o.reverse ? sequence(&u, "SequenceReverse", y) : y;
    return u.by_sequence && y ? turned(&u, y, tnn_value_shape(y)->ndim) : y;
}
