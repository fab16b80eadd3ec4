/*
 * Recurrent cells as functions over values: one step from an input and states to an output and the next
 * states. Parameters lie in a scope of the cell's name, as Gluon has them: lstm0.i2h.weight,
 * lstm0.h2h.bias; every step uses the same.
 */
#include "run.h"

#include <string.h>

enum { GATES_MAX = 4 };

typedef struct step {
    tn_cell_options o;
    const char *what;
    tn_x i[GATES_MAX], h[GATES_MAX]; /* what the input and the state give to each gate */
} step;

static tn_x dense(const step *s, tn_x x, const char *name, int64_t gates)
{
    const tn_dense_options o = {.struct_size = sizeof o,
                                .line = s->o.line,
                                .file = s->o.file,
                                .name = name,
                                .units = gates * s->o.units,
                                .share = 1};

    return tn_dense_(x, &o);
}

#define ADD(a, b) tn_add_(a, b, s->o.file, s->o.line)
#define MUL(a, b) tn_mul_(a, b, s->o.file, s->o.line)
#define SIGMOID(x) tn_sigmoid_(x, s->o.file, s->o.line)
#define TANH(x) tn_tanh_(x, s->o.file, s->o.line)

/* Fills in the step; false: failed. `apart`: the gates of input and state are not added at once. */
static bool begin(step *s, const char *what, tn_x x, const tn_x *states, size_t state_count,
                  const tn_cell_options *options, uint32_t gates, bool apart)
{
    const char *file;
    tn_app *app;
    tn_x a, b;

    memset(s, 0, sizeof *s);
    tnn_options_copy(&s->o, sizeof s->o, options);
    file = s->o.file ? s->o.file : "?";
    if (!(app = tnn_value_app(x, what, file, s->o.line)))
        return false;
    for (size_t i = 0; !states || i < state_count; i++)
        if (!states || !tnn_value_app(states[i], what, file, s->o.line))
            return states ? false
                          : !tnn_fail(app, TN_E_ARG, "%s, called at %s:%d: no states", what, file, s->o.line);
    if (!s->o.name || s->o.units < 1)
        return !tnn_fail(app, TN_E_ARG, "%s, called at %s:%d: %s", what, file, s->o.line,
                         s->o.name ? ".units is below 1" : "a .name is needed, which its steps share");
    if (s->o.projection < 0 || (s->o.projection && state_count < 2))
        return !tnn_fail(app, TN_E_ARG, "%s, called at %s:%d: %s", what, file, s->o.line,
                         s->o.projection < 0 ? ".projection is below 0" : "only an LSTM has a .projection");
    tn_scope_begin_(x, s->o.file, s->o.line, "%s", s->o.name);
    a = dense(s, x, "i2h", gates);
    b = dense(s, states[0], "h2h", gates);
    tn_scope_end_(x, s->o.file, s->o.line);
    if (!apart)
        a = ADD(a, b);
    (void)(gates > 1 ? tn_split_(a, gates, 1, s->i, s->o.file, s->o.line) : (s->i[0] = a));
    if (apart)
        (void)tn_split_(b, gates, 1, s->h, s->o.file, s->o.line);
    return tnn_ok(app);
}

tn_x tn_rnn_cell_(tn_x x, tn_x *states, const tn_cell_options *options)
{
    step made_step, *s = &made_step;
    tn_activation_options o = {.struct_size = sizeof o, .activation = "tanh"};

    if (!begin(s, "tn_rnn_cell", x, states, 1, options, 1, false))
        return NULL;
    o.line = s->o.line;
    o.file = s->o.file;
    o.activation = s->o.activation ? s->o.activation : o.activation;
    return states[0] = tn_activation_(s->i[0], &o);
}

/* The output of an LSTM times h2r.weight. */
static tn_x project(const step *s, tn_x x)
{
    const tn_dense_options o = {.struct_size = sizeof o,
                                .line = s->o.line,
                                .file = s->o.file,
                                .name = "h2r",
                                .units = s->o.projection,
                                .no_bias = 1,
                                .share = 1};

    tn_scope_begin_(x, s->o.file, s->o.line, "%s", s->o.name);
    x = tn_dense_(x, &o);
    tn_scope_end_(x, s->o.file, s->o.line);
    return x;
}

/* Gates: input, forget, new, output; states: output, cell. */
tn_x tn_lstm_cell_(tn_x x, tn_x *states, const tn_cell_options *options)
{
    step made_step, *s = &made_step;
    tn_x kept, made;

    if (!begin(s, "tn_lstm_cell", x, states, 2, options, 4, false))
        return NULL;
    kept = MUL(SIGMOID(s->i[1]), states[1]);
    made = SIGMOID(s->i[0]);
    made = MUL(made, TANH(s->i[2]));
    states[1] = ADD(kept, made);
    made = SIGMOID(s->i[3]);
    made = MUL(made, TANH(states[1]));
    return states[0] = s->o.projection ? project(s, made) : made;
}

/* Gates: reset, update, new. */
tn_x tn_gru_cell_(tn_x x, tn_x *states, const tn_cell_options *options)
{
    step made_step, *s = &made_step;
    tn_x reset, update, made;

    if (!begin(s, "tn_gru_cell", x, states, 1, options, 3, true))
        return NULL;
    reset = SIGMOID(ADD(s->i[0], s->h[0]));
    update = SIGMOID(ADD(s->i[1], s->h[1]));
    made = TANH(ADD(s->i[2], MUL(reset, s->h[2])));
    made = MUL(tn_shift_(tn_scale_(update, -1, s->o.file, s->o.line), 1, s->o.file, s->o.line), made);
    return states[0] = ADD(made, MUL(update, states[0]));
}
