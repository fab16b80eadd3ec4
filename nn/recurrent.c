/*
 * Recurrent layers over whole sequences: the operator RNN. Parameters have Gluon's names
 * (lstm0.l0_i2h_weight, lstm0.r1_h2h_bias) and are joined in the operator's order, all weights before all
 * biases; first states that are not given are zeros, whatever the batch's size.
 */
#include "run.h"

#include <string.h>

typedef struct recurrent {
    tn_rnn_options o;
    const char *what, *mode;
    const char *file;
    int64_t gates, width;
    int32_t layers, directions;
    uint32_t state_count;
    bool by_sequence; /* NTC */
} recurrent;

static tnn_spec spec_of(const recurrent *r, const char *stem, const char *op)
{
    tnn_spec s;

    memset(&s, 0, sizeof s);
    s.stem = stem;
    s.op = op;
    s.file = r->file;
    s.line = r->o.line;
    return s;
}

static tn_status wrong(tn_app *app, const recurrent *r, const char *what)
{
    return tnn_fail(app, TN_E_ARG, "%s, called at %s:%d: %s", r->what, r->file, r->o.line, what);
}

#define UNITS_MAX (1 << 30)

static tn_status options_check(tn_app *app, const recurrent *r, tn_x x)
{
    const tn_rnn_options *o = &r->o;

    if (!o->name)
        return wrong(app, r, "a .name is needed");
    if (o->units < 1 || o->projection < 0)
        return wrong(app, r, o->units < 1 ? ".units is below 1" : ".projection is below 0");
    if (o->units > UNITS_MAX || o->projection > UNITS_MAX)
        return wrong(app, r, ".units or .projection is above 2^30");
    if (r->layers < 1 || r->layers > TNN_LAYER_VALUES ||
        r->layers * r->directions * (o->projection ? 5 : 4) > TNN_LAYER_VALUES)
        return wrong(
            app, r,
            "1 to 16 .layers are allowed, half as many in both directions, 12 and 6 with a projection");
    if (!(o->dropout >= 0 && o->dropout < 1))
        return wrong(app, r, ".dropout is not within 0 and 1");
    if (o->projection && strcmp(r->mode, "lstm") != 0)
        return wrong(app, r, "only an LSTM has a .projection");
    if (o->layout && strcmp(o->layout, "TNC") != 0 && !r->by_sequence)
        return wrong(app, r, ".layout is neither TNC nor NTC");
    if (!strcmp(r->mode, "?"))
        return wrong(app, r, ".activation is neither relu nor tanh");
    return tnn_value_shape(x)->ndim == 3 ? app->status
                                         : wrong(app, r, "x needs three axes: steps, samples, width");
}

static void param_add(tnn_spec *s, tnn_role role, const char *suffix, int64_t rows, int64_t columns)
{
    const uint32_t i = s->param_count++;

    s->params[i].role = role;
    s->params[i].suffix = suffix;
    s->params[i].ndim = columns ? 2 : 1;
    s->params[i].shape[0] = rows;
    s->params[i].shape[1] = columns;
}

/* The parameters of one layer and direction: weights, then biases. */
static bool params_make(recurrent *r, tn_x x, int32_t layer, int32_t direction, tn_x *out)
{
    tnn_spec s = spec_of(r, "recurrent", "RNN");
    char name[16];

    (void)snprintf(name, sizeof name, "%c%d", direction ? 'r' : 'l', layer);
    s.name = name;
    s.joined = true;
    param_add(&s, TNN_WEIGHT, "i2h_weight", r->gates,
              layer ? r->directions * r->width : tnn_value_shape(x)->dims[2]);
    param_add(&s, TNN_WEIGHT, "h2h_weight", r->gates, r->width);
    if (r->o.projection)
        param_add(&s, TNN_WEIGHT, "h2r_weight", r->width, r->o.units);
    param_add(&s, TNN_BIAS, "i2h_bias", r->gates, 0);
    param_add(&s, TNN_BIAS, "h2h_bias", r->gates, 0);
    return tnn_value_params(&s, x, out);
}

/* All parameters as one vector. */
static tn_x params_join(recurrent *r, tn_x x)
{
    const int32_t weights = r->o.projection ? 3 : 2, each = weights + 2, rows = r->layers * r->directions;
    const int64_t flat = -1;
    tn_x all[TNN_LAYER_VALUES], in[TNN_LAYER_VALUES];
    tnn_spec s = spec_of(r, "param_concat", "_rnn_param_concat");
    uint32_t count = 0;

    for (int32_t i = 0; i < rows; i++)
        if (!params_make(r, x, i / r->directions, i % r->directions, all + i * each))
            return NULL;
    for (int32_t bias = 0; bias < 2; bias++)
        for (int32_t i = 0; i < rows; i++)
            for (int32_t k = bias ? weights : 0; k < (bias ? each : weights); k++)
                in[count++] = tn_reshape_(all[i * each + k], 1, &flat, r->file, r->o.line);
    s.plain = true;
    tnn_spec_attr(&s, "dim", "0");
    tnn_spec_attr(&s, "num_args", "%u", count);
    return tnn_value_layer(&s, count, in, NULL, 0);
}

/* Zeros (layers · directions, N, width), made of x itself. */
static tn_x zeros(const recurrent *r, tn_x x, int64_t width)
{
    const tn_slice_options step = {.struct_size = sizeof step, .line = r->o.line, .file = r->file, .end = 1},
                           unit = {.struct_size = sizeof unit,
                                   .line = r->o.line,
                                   .file = r->file,
                                   .axis = 2,
                                   .end = 1};
    tnn_spec zero = spec_of(r, "zeros_like", "zeros_like"),
             wide = spec_of(r, "broadcast_axis", "broadcast_axis");

    zero.plain = wide.plain = true;
    tnn_spec_attr(&wide, "axis", "(0, 2)");
    tnn_spec_attr(&wide, "size", "(%d, %lld)", r->layers * r->directions, (long long)width);
    x = tn_slice_(tn_slice_(x, &step), &unit);
    x = tnn_value_layer(&zero, 1, &x, NULL, 0);
    return tnn_value_layer(&wide, 1, &x, NULL, 0);
}

static void attrs_set(const recurrent *r, tnn_spec *s, bool states)
{
    const tn_rnn_options *o = &r->o;

    tnn_spec_attr(s, "state_size", "%lld", (long long)o->units);
    tnn_spec_attr(s, "num_layers", "%d", r->layers);
    tnn_spec_attr(s, "bidirectional", r->directions > 1 ? "True" : "False");
    tnn_spec_number(s, "p", 9, o->dropout);
    tnn_spec_attr(s, "state_outputs", states ? "True" : "False");
    tnn_spec_attr(s, "mode", "%s", r->mode);
    if (o->projection)
        tnn_spec_attr(s, "projection_size", "%lld", (long long)o->projection);
    if (o->lengths)
        tnn_spec_attr(s, "use_sequence_length", "True");
}

/* x is (T, N, C) here. */
static tn_x operator_run(recurrent *r, tn_x x, tn_x *states)
{
    const int64_t width[] = {r->width, r->o.units};
    tn_x in[5] = {x, params_join(r, x)}, out[3];
    tnn_spec s = spec_of(r, "recurrent", "RNN");
    uint32_t count = 2;

    for (uint32_t i = 0; i < r->state_count; i++)
        in[count++] = states && states[i] ? states[i] : zeros(r, x, width[i]);
    if (r->o.lengths)
        in[count++] = r->o.lengths;
    s.name = "rnn";
    s.random = true;
    attrs_set(r, &s, states != NULL);
    if (!tnn_value_layer(&s, count, in, out, 1 + (states ? r->state_count : 0)))
        return NULL;
    for (uint32_t i = 0; states && i < r->state_count; i++)
        states[i] = out[1 + i];
    return out[0];
}

static tn_x run(recurrent *r, tn_x x, tn_x *states, const tn_rnn_options *options)
{
    static const int64_t turned[] = {1, 0, 2};
    tn_app *app;
    tn_x y;

    tnn_options_copy(&r->o, sizeof r->o, options);
    r->file = r->o.file ? r->o.file : "?";
    r->layers = r->o.layers ? r->o.layers : 1;
    r->directions = r->o.bidirectional ? 2 : 1;
    r->width = r->o.projection ? r->o.projection : r->o.units;
    r->by_sequence = r->o.layout && !strcmp(r->o.layout, "NTC");
    if (!r->mode)
        r->mode = !r->o.activation || !strcmp(r->o.activation, "relu") ? "rnn_relu"
                  : !strcmp(r->o.activation, "tanh")                   ? "rnn_tanh"
                                                                       : "?";
    if (!(app = tnn_value_app(x, r->what, r->file, r->o.line)) || options_check(app, r, x))
        return NULL;
    r->gates *= r->o.units;
    if (r->by_sequence)
        x = tn_transpose_(x, 3, turned, r->file, r->o.line);
    tn_scope_begin_(x, r->file, r->o.line, "%s", r->o.name);
    y = tnn_ok(app) ? operator_run(r, x, states) : NULL;
    tn_scope_end_(x, r->file, r->o.line);
    return r->by_sequence ? tn_transpose_(y, 3, turned, r->file, r->o.line) : y;
}

tn_x tn_rnn_(tn_x x, tn_x *states, const tn_rnn_options *options)
{
    recurrent r = {.what = "tn_rnn", .gates = 1, .state_count = 1};

    return run(&r, x, states, options);
}

tn_x tn_lstm_(tn_x x, tn_x *states, const tn_rnn_options *options)
{
    recurrent r = {.what = "tn_lstm", .mode = "lstm", .gates = 4, .state_count = 2};

    return run(&r, x, states, options);
}

tn_x tn_gru_(tn_x x, tn_x *states, const tn_rnn_options *options)
{
    recurrent r = {.what = "tn_gru", .mode = "gru", .gates = 3, .state_count = 1};

    return run(&r, x, states, options);
}
