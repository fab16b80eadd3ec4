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

/* What one of both gives to all gates: a product, or a convolution where there is a kernel. */
static tn_x part(const step *s, tn_x x, const char *name, int64_t gates, bool state)
{
    const tn_dense_options dense = {.struct_size = sizeof dense,
                                    .line = s->o.line,
                                    .file = s->o.file,
                                    .name = name,
                                    .units = gates * s->o.units,
                                    .share = 1};
    tn_conv_options conv = {.struct_size = sizeof conv,
                            .line = s->o.line,
                            .file = s->o.file,
                            .name = name,
                            .channels = gates * s->o.units,
                            .share = 1};
    tn_conv2d_options flat = {.struct_size = sizeof flat,
                              .line = s->o.line,
                              .file = s->o.file,
                              .name = name,
                              .channels = gates * s->o.units,
                              .share = 1};
    const int32_t ndim = x ? tnn_value_shape(x)->ndim : 0;

    if (!s->o.kernel[0])
        return tn_dense_(x, &dense);
    for (int i = 0; i < 3; i++) {
        conv.kernel[i] = state ? s->o.state_kernel[i] : s->o.kernel[i];
        conv.dilate[i] = state ? s->o.state_dilate[i] : s->o.dilate[i];
        conv.dilate[i] = conv.dilate[i] || !i ? conv.dilate[i] : conv.dilate[0];
        conv.dilate[i] = conv.dilate[i] ? conv.dilate[i] : 1;
        conv.pad[i] =
            state ? conv.dilate[i] * (conv.kernel[i] / 2) : s->o.pad[i]; /* states keep their size */
    }
    memcpy(flat.kernel, conv.kernel, sizeof flat.kernel);
    memcpy(flat.pad, conv.pad, sizeof flat.pad);
    memcpy(flat.dilate, conv.dilate, sizeof flat.dilate);
    return ndim == 4 ? tn_conv2d_(x, &flat) : ndim == 3 ? tn_conv1d_(x, &conv) : tn_conv3d_(x, &conv);
}

/* First states that are not given: zeros of the size of a gate. */
static void states_fill(const step *s, tn_x gates, tn_x *states, size_t count)
{
    tn_slice_options one = {
        .struct_size = sizeof one, .line = s->o.line, .file = s->o.file, .axis = 1, .end = s->o.units};
    const tn_op_options zeros = {.struct_size = sizeof zeros, .line = s->o.line, .file = s->o.file};

    for (size_t i = 0; gates && i < count; i++) {
        one.end = i == 0 && s->o.projection ? s->o.projection : s->o.units;
        if (!states[i])
            states[i] = tn_op_(tn_slice_(gates, &one), "zeros_like", &zeros);
    }
}

/* What is wrong with the options; NULL: nothing. */
static const char *wrong(const step *s, size_t state_count, uint32_t gates)
{
    const tn_cell_options *o = &s->o;

    if (!o->name)
        return "a .name is needed, which its steps share";
    if (o->units < 1)
        return ".units is below 1";
    if (o->projection < 0 || o->projection > o->units)
        return ".projection is below 0, or above .units";
    if (o->projection && (state_count < 2 || o->kernel[0]))
        return "only an LSTM without a .kernel has a .projection";
    for (int i = 0; i < 3; i++) {
        if (o->kernel[0] && o->state_kernel[i] && o->state_kernel[i] % 2 == 0)
            return ".state_kernel is even";
        if (o->state_kernel[i] < 0 || o->state_kernel[i] > 1024)
            return ".state_kernel is below 0, or above 1024";
        if (o->dilate[i] < 0 || o->state_dilate[i] < 0 || o->state_dilate[i] > 1024)
            return "a dilation is below 1, or that of the state above 1024";
    }
    if (gates == 3 && o->activation && !o->kernel[0])
        return "gates of a GRU without a .kernel have no .activation";
    if (o->recurrent_activation && (state_count < 2 || o->kernel[0]))
        return "only an LSTM without a .kernel has a .recurrent_activation";
    return NULL;
}

static tn_x activated(const step *s, tn_x x, const char *activation)
{
    const tn_activation_options o = {
        .struct_size = sizeof o, .line = s->o.line, .file = s->o.file, .activation = activation};

    return tn_activation_(x, &o);
}

/* What the new values go through. */
static tn_x activate(const step *s, tn_x x)
{
    return s->o.activation ? activated(s, x, s->o.activation) : tn_tanh_(x, s->o.file, s->o.line);
}

/* What a gate of an LSTM goes through. */
static tn_x gate(const step *s, tn_x x)
{
    return s->o.recurrent_activation ? activated(s, x, s->o.recurrent_activation)
                                     : tn_sigmoid_(x, s->o.file, s->o.line);
}

#define ADD(a, b) tn_add_(a, b, s->o.file, s->o.line)
#define MUL(a, b) tn_mul_(a, b, s->o.file, s->o.line)
#define SIGMOID(x) tn_sigmoid_(x, s->o.file, s->o.line)

/* Fills in the step; false: failed. `apart`: the gates of input and state are not added at once. */
static bool begin(step *s, const char *what, tn_x x, tn_x *states, size_t state_count,
                  const tn_cell_options *options, uint32_t gates, bool apart)
{
    const char *file, *why;
    tn_app *app;
    tn_x a, b;

    memset(s, 0, sizeof *s);
    tnn_options_copy(&s->o, sizeof s->o, options);
    file = s->o.file ? s->o.file : "?";
    if (!(app = tnn_value_app(x, what, file, s->o.line)))
        return false;
    for (size_t i = 0; states && i < state_count; i++)
        if (states[i] && !tnn_value_app(states[i], what, file, s->o.line))
            return false;
    if ((why = states ? wrong(s, state_count, gates) : "no states"))
        return !tnn_fail(app, TN_E_ARG, "%s, called at %s:%d: %s", what, file, s->o.line, why);
    tn_scope_begin_(x, s->o.file, s->o.line, "%s", s->o.name);
    a = part(s, x, "i2h", gates, false);
    states_fill(s, a, states, state_count);
    b = part(s, states[0], "h2h", gates, true);
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

    if (!begin(s, "tn_rnn_cell", x, states, 1, options, 1, false))
        return NULL;
    return states[0] = activated(s, s->i[0], s->o.activation ? s->o.activation : "tanh");
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
    kept = MUL(gate(s, s->i[1]), states[1]);
    made = gate(s, s->i[0]);
    made = MUL(made, activate(s, s->i[2]));
    states[1] = ADD(kept, made);
    made = gate(s, s->i[3]);
    made = MUL(made, activate(s, states[1]));
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
    made = activate(s, ADD(s->i[2], MUL(reset, s->h[2])));
    made = MUL(tn_shift_(tn_scale_(update, -1, s->o.file, s->o.line), 1, s->o.file, s->o.line), made);
    return states[0] = ADD(made, MUL(update, states[0]));
}
