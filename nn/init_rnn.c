/*
 * First values of an RNN's parameters as one vector, as mxnet.initializer.FusedRNN: the operator RNN has all
 * weights, then all biases, of each layer and direction those of the input, then those of the state, gate by
 * gate. Each gate's weights are a matrix by itself; biases are 0, those of an LSTM's forget gates are not.
 */
#include "internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define UNITS_MAX ((int64_t)1 << 30)
#define LAYERS_MAX 65536
#define GATES_MAX 4

const char *const tnn_init_rnn_modes[] = {"lstm", "gru", "rnn_relu", "rnn_tanh", NULL};

/* In the order of the modes; the names are MXNet's. */
static const char *const gates[][GATES_MAX + 1] = {
    {"_i", "_f", "_c", "_o", NULL}, {"_r", "_z", "_o", NULL}, {"", NULL}, {"", NULL}};

typedef struct rnn {
    const tn_init_options *o;
    const char *const *gates;
    int64_t gate_count, units, layers, directions, width; /* width: of the input */
    bool lstm;
} rnn;

const char *tnn_init_rnn_wrong(const tn_init_options *o)
{
    if (o->weights && !strcmp(o->weights, TNN_INIT_RNN))
        return ".weights is itself";
    if (o->units < 1 || o->units > UNITS_MAX)
        return ".units is missing or above 2^30";
    if (o->layers < 0 || o->layers > LAYERS_MAX)
        return ".layers is below 0 or above 65536";
    return isfinite(o->forget_bias) ? NULL : ".forget_bias is not finite";
}

tn_status tnn_init_rnn_check(tn_app *app, const tn_init_options *o)
{
    const char *wrong = tnn_init_rnn_wrong(o);

    if (!tnn_one_of(o->mode, tnn_init_rnn_modes))
        return tnn_unknown(app, "initialiser's mode", o->mode, tnn_init_rnn_modes);
    return wrong ? tnn_fail(app, TN_E_ARG, "initialiser %s: %s", o->with, wrong) : TN_OK;
}

/* The width of the input follows from the number of elements. */
static tn_status rnn_take(tn_app *app, const tn_init_options *o, const tnn_filling *f, rnn *r)
{
    size_t mode = 0;
    int64_t unit;

    while (strcmp(tnn_init_rnn_modes[mode], o->mode) != 0)
        mode++;
    *r = (rnn){.o = o,
               .gates = gates[mode],
               .units = o->units,
               .layers = o->layers ? o->layers : 1,
               .directions = o->bidirectional ? 2 : 1,
               .lstm = !mode};
    while (r->gates[r->gate_count])
        r->gate_count++;
    unit = r->directions * r->gate_count * r->units;
    r->width =
        (int64_t)f->count / unit - (r->layers - 1) * (r->units + r->directions * r->units + 2) - r->units - 2;
    if (f->ndim == 1 && (int64_t)f->count % unit == 0 && r->width > 0)
        return TN_OK;
    return tnn_fail(app, TN_E_SHAPE,
                    "parameter %s: %llu elements in %d dimensions are no vector of an RNN (%s, %lld units, "
                    "%lld layers%s)",
                    f->name, (unsigned long long)f->count, f->ndim, o->mode, (long long)r->units,
                    (long long)r->layers, r->directions > 1 ? ", in both directions" : "");
}

/* "l0_i2h_f_weight", the name that MXNet's patterns see. */
static void name_write(char out[64], const rnn *r, int64_t row, bool state, int64_t gate, const char *what)
{
    (void)snprintf(out, 64, "%c%lld_%s%s_%s", row % r->directions ? 'r' : 'l',
                   (long long)(row / r->directions), state ? "h2h" : "i2h", r->gates[gate], what);
}

static tn_status weights_fill(tn_app *app, const tn_net *net, const rnn *r, const char *name,
                              const tnn_filling *f)
{
    tn_init_options own = *r->o;
    const tn_init_options *init = &own;

    own.with = r->o->weights ? r->o->weights : "xavier";
    if (!r->o->weights && net->initialised && !(init = tnn_mixed_init(app, net, name)))
        return app->status;
    if (strcmp(init->with, TNN_INIT_RNN) != 0)
        return tnn_init_weights(app, init, f);
    return tnn_fail(app, TN_E_ARG, "parameter %s, gate %s: no initialiser of the weights is given (.weights)",
                    f->name, name);
}

tn_status tnn_init_rnn(tn_app *app, const tn_net *net, const tn_init_options *o, const tnn_filling *f)
{
    const double forget = o->no_forget_bias ? 0 : o->forget_bias != 0 ? o->forget_bias : 1;
    tnn_filling part = *f;
    float *at = f->values;
    rnn r;

    if (rnn_take(app, o, f, &r))
        return app->status;
    part.ndim = 2;
    for (int64_t i = 0; i < r.layers * r.directions * 2 * r.gate_count; i++) {
        const int64_t row = i / (2 * r.gate_count), gate = i % r.gate_count;
        const bool state = i / r.gate_count % 2;
        const int64_t shape[] = {r.units, state                ? r.units
                                          : row < r.directions ? r.width
                                                               : r.directions * r.units};
        char name[64];

        name_write(name, &r, row, state, gate, "weight");
        part.shape = shape;
        part.count = (uint64_t)(shape[0] * shape[1]);
        part.base = (uint64_t)(at - f->values);
        part.values = at;
        if (weights_fill(app, net, &r, name, &part))
            return app->status;
        at += part.count;
    }
    for (int64_t k = 0; at < f->values + f->count; k++)
        *at++ = r.lstm && k / r.units % r.gate_count == 1 ? (float)forget : 0;
    return TN_OK;
}
