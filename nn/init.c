/*
 * First values of parameters: weights as the initialiser says, biases, betas and running means 0, gammas and
 * running variances 1, as MXNet's. Element k of parameter number i is a function of seed, i and k.
 */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const initialisers[] = {"xavier", "msraprelu",  "normal",   "uniform",  "constant", "zero",
                                           "one",    "orthogonal", "bilinear", "lstmbias", "fusedrnn", NULL};
const char *const tnn_init_factors[] = {"avg", "in", "out", NULL};
const char *const tnn_init_distributions[] = {"uniform", "gaussian", "normal", NULL};

/* The name in small letters, also of MXNet's other names; one that is none stays as it is. */
static const char *known_name(const char *text)
{
    if (!strcasecmp(text, "zeros") || !strcasecmp(text, "ones"))
        return text[0] == 'z' || text[0] == 'Z' ? "zero" : "one";
    for (size_t i = 0; initialisers[i]; i++)
        if (!strcasecmp(text, initialisers[i]))
            return initialisers[i];
    return text;
}

static tn_status options_check(tn_app *app, const tn_init_options *o)
{
    if (!tnn_one_of(o->with, initialisers))
        return tnn_unknown(app, "initialiser", o->with, initialisers);
    if (!tnn_one_of(o->factor, tnn_init_factors))
        return tnn_unknown(app, "initialiser's factor", o->factor, tnn_init_factors);
    if (!tnn_one_of(o->distribution, tnn_init_distributions))
        return tnn_unknown(app, "initialiser's distribution", o->distribution, tnn_init_distributions);
    if (!isfinite(o->magnitude) || o->magnitude < 0)
        return tnn_fail(app, TN_E_ARG, "initialiser %s: .magnitude is %g, it must be above 0", o->with,
                        o->magnitude);
    if (!isfinite(o->scale) || !isfinite(o->slope) || (o->scale < 0 && strcmp(o->with, "constant")))
        return tnn_fail(app, TN_E_ARG, "initialiser %s: .scale is %g", o->with, o->scale);
    if (strcmp(o->with, TNN_INIT_RNN) != 0)
        return TN_OK;
    if (o->weights && !tnn_one_of(o->weights, initialisers))
        return tnn_unknown(app, "initialiser", o->weights, initialisers);
    return tnn_init_rnn_check(app, o);
}

/* Whole names: texts of the caller are not kept. */
static const char *kept(const char *text, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(text, *names))
            return *names;
    return NULL;
}

static void options_fill(tn_init_options *o, const tn_init_options *options)
{
    tnn_options_copy(o, sizeof *o, options);
    o->with = o->with ? known_name(o->with) : "xavier";
    o->factor = o->factor ? o->factor : "avg";
    o->distribution = o->distribution ? o->distribution : "uniform";
    o->weights = o->weights ? known_name(o->weights) : NULL;
    o->mode = o->mode ? o->mode : tnn_init_rnn_modes[0];
}

tn_status tnn_init_take(tn_app *app, const tn_init_options *given, tn_init_options *out)
{
    tn_init_options o = *given;

    options_fill(&o, &(const tn_init_options){0});
    if (options_check(app, &o))
        return app->status;
    o.with = kept(o.with, initialisers);
    o.factor = kept(o.factor, tnn_init_factors);
    o.distribution = kept(o.distribution, tnn_init_distributions);
    o.weights = o.weights ? kept(o.weights, initialisers) : NULL;
    o.mode = kept(o.mode, tnn_init_rnn_modes);
    o.file = NULL;
    o.mixed = NULL;
    o.load = NULL;
    *out = o;
    return TN_OK;
}

static tn_status shape_read(tn_app *app, const tn_init_options *o, const int64_t *dims, tnn_shape *out)
{
    int32_t ndim = 0;

    while (ndim < TNN_NDIM_MAX && dims[ndim])
        ndim++;
    for (int32_t i = 0; i < TNN_NDIM_MAX; i++)
        if (dims[i] < 0 || (i >= ndim && dims[i]))
            return tnn_fail(app, TN_E_ARG, "tn_net_init at %s:%d: .shape has a dimension below 1",
                            o->file ? o->file : "?", o->line);
    *out = tnn_shape_of(ndim, dims);
    return TN_OK;
}

static tn_status init_now(tn_app *app, tn_net *net, const tn_init_options *o)
{
    tnn_shape in[TNN_VALUES_MAX] = {{0}};
    size_t given = 0;

    for (size_t i = 0; i < net->input_count; i++) {
        const int64_t *dims = !i && !o->shapes[0][0] ? o->shape : o->shapes[i];

        if (shape_read(app, o, dims, &in[i]))
            return app->status;
        in[i].dtype = net->dtype;
        given += in[i].ndim > 0;
    }
    if (!given)
        return TN_OK;
    if (given < net->input_count)
        return tnn_fail(app, TN_E_ARG, "tn_net_init at %s:%d: net %s has %zu inputs, shapes of %zu are given",
                        o->file ? o->file : "?", o->line, net->path, net->input_count, given);
    if (tnn_net_infer_all(net, in))
        return app->status;
    return tnn_net_fill(net);
}

void tn_net_init_(tn_net *net, const tn_init_options *options)
{
    tn_app *app = tnn_net_app(net);
    tn_init_options o = {0}, taken;
    struct tnn_mixed *mixed = NULL;

    if (!app)
        return;
    options_fill(&o, options);
    if (net->model) {
        (void)tnn_fail(app, TN_E_STATE, "net %s was loaded: it has its values", net->path);
        return;
    }
    if (tnn_init_take(app, &o, &taken) || tnn_mixed_create(app, &o, &mixed) ||
        tnn_seed(app, o.seed, &net->init_seed) || tnn_net_collect(net)) {
        tnn_mixed_destroy(mixed);
        return;
    }
    net->init = taken;
    tnn_mixed_destroy(net->mixed);
    net->mixed = mixed;
    net->initialised = true;
    for (size_t i = 0; i < net->param_count; i++) { /* again: with new values */
        tn_array_release(net->params[i]->array);
        net->params[i]->array = NULL;
        tnn_param_copies_drop(net->params[i]);
    }
    net->in[0].ndim = -1;
    net->filled = false;
    (void)init_now(app, net, &o);
}

/* ---- values ---- */

typedef struct draw {
    enum { CONSTANT, UNIFORM, NORMAL, ORTHOGONAL, BILINEAR, LSTM_BIAS, FUSED_RNN } kind;
    double scale;
    bool of_normal; /* ORTHOGONAL: of numbers so distributed */
} draw;

static draw xavier(const tn_init_options *o, const tnn_filling *f, bool gaussian, double magnitude)
{
    double inner = 1, in, out, mean;

    for (int32_t i = 2; i < f->ndim; i++)
        inner *= (double)f->shape[i];
    in = f->ndim > 1 ? (double)f->shape[1] * inner : 1;
    out = f->ndim > 0 ? (double)f->shape[0] * inner : 1;
    mean = !strcmp(o->factor, "in") ? in : !strcmp(o->factor, "out") ? out : (in + out) / 2;
    return (draw){gaussian ? NORMAL : UNIFORM, sqrt(magnitude / (mean > 0 ? mean : 1)), false};
}

/* Whatever the parameter is. */
static draw draw_with(const tn_init_options *o, const tnn_filling *f)
{
    const double slope = o->slope != 0 ? o->slope : 0.25;
    const bool normal = strcmp(o->distribution, "uniform") != 0;

    if (!strcmp(o->with, "xavier"))
        return xavier(o, f, normal, o->magnitude > 0 ? o->magnitude : 3);
    if (!strcmp(o->with, "msraprelu"))
        return xavier(o, f, true, 2 / (1 + slope * slope));
    if (!strcmp(o->with, "normal"))
        return (draw){NORMAL, o->scale > 0 ? o->scale : 0.01, false};
    if (!strcmp(o->with, "uniform"))
        return (draw){UNIFORM, o->scale > 0 ? o->scale : 0.07, false};
    if (!strcmp(o->with, "orthogonal"))
        return (draw){ORTHOGONAL, o->scale > 0 ? o->scale : 1.414, normal};
    if (!strcmp(o->with, "bilinear"))
        return (draw){BILINEAR, 1, false};
    if (!strcmp(o->with, "lstmbias"))
        return (draw){LSTM_BIAS, o->scale != 0 ? o->scale : 1, false};
    if (!strcmp(o->with, TNN_INIT_RNN))
        return (draw){FUSED_RNN, 0, false};
    return (draw){CONSTANT, !strcmp(o->with, "constant") ? o->scale : !strcmp(o->with, "one"), false};
}

static draw draw_of(const tn_init_options *o, const tnn_param *p, const tnn_filling *f)
{
    static const double fixed[] = {[TNN_BIAS] = 0, [TNN_BETA] = 0,     [TNN_MEAN] = 0,  [TNN_GAMMA] = 1,
                                   [TNN_VAR] = 1,  [TNN_ALPHA] = 0.25, [TNN_OFFSET] = 0};

    return p->role == TNN_WEIGHT ? draw_with(o, f) : (draw){CONSTANT, fixed[p->role], false};
}

/* Weights of a transposed convolution that scales an image up: hats over each plane. */
static void bilinear(const tnn_filling *to)
{
    const int64_t rows = to->ndim > 2 ? to->shape[to->ndim - 2] : 1, columns = to->shape[to->ndim - 1];
    const double f = ceil((double)columns / 2), c = (2 * f - 1 - fmod(f, 2)) / (2 * f);

    for (uint64_t k = 0; k < to->count; k++) {
        const double x = (double)(k % (uint64_t)columns),
                     y = (double)(k / (uint64_t)columns % (uint64_t)rows);

        to->values[k] = (float)((1 - fabs(x / f - c)) * (1 - fabs(y / f - c)));
    }
}

/* Gates are input, forget, new, output. */
static void lstm_bias(double forget, const tnn_filling *f)
{
    const uint64_t quarter = f->count / 4;

    for (uint64_t k = 0; k < f->count; k++)
        f->values[k] = k >= quarter && k < 2 * quarter ? (float)forget : 0;
}

/* In [-1, 1), or of a normal distribution. */
static double random_at(const tnn_filling *f, bool normal, uint64_t k)
{
    return normal ? tnn_random_normal(f->key, f->index, f->base + k)
                  : 2 * tnn_random_unit(f->key, f->index, f->base + k) - 1;
}

/* Rows, or columns where there are fewer, that are orthogonal and of length `scale`: random ones, each
 * without its part along those before it (twice, for the rounding). */
static tn_status orthogonal(tn_app *app, const draw *d, const tnn_filling *f)
{
    const uint64_t rows = f->ndim > 0 ? (uint64_t)f->shape[0] : 1;
    uint64_t columns = 1, count, length;
    double *q;

    for (int32_t i = 1; i < f->ndim; i++)
        columns *= (uint64_t)f->shape[i];
    count = rows < columns ? rows : columns;
    length = rows < columns ? columns : rows;
    if (!(q = tnn_alloc(app, count * length, sizeof *q)))
        return app->status;
    for (uint64_t i = 0; i < count; i++) {
        double *v = q + i * length, norm = 0;

        for (uint64_t k = 0; k < length; k++)
            v[k] = random_at(f, d->of_normal, i * length + k);
        for (uint64_t pass = 0; pass < 2 * i; pass++) {
            const double *u = q + pass % i * length;
            double dot = 0;

            for (uint64_t k = 0; k < length; k++)
                dot += u[k] * v[k];
            for (uint64_t k = 0; k < length; k++)
                v[k] -= dot * u[k];
        }
        for (uint64_t k = 0; k < length; k++)
            norm += v[k] * v[k];
        for (uint64_t k = 0; k < length; k++)
            v[k] /= sqrt(norm);
    }
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t k = 0; k < columns; k++)
            f->values[r * columns + k] =
                (float)(d->scale * (rows < columns ? q[r * length + k] : q[k * length + r]));
    free(q);
    return TN_OK;
}

static tn_status values_draw(tn_app *app, draw d, const tnn_filling *f)
{
    if (d.kind == ORTHOGONAL)
        return orthogonal(app, &d, f);
    if (d.kind == BILINEAR)
        bilinear(f);
    else if (d.kind == LSTM_BIAS)
        lstm_bias(d.scale, f);
    else
        for (uint64_t k = 0; k < f->count; k++)
            f->values[k] =
                (float)(d.kind == CONSTANT ? d.scale : random_at(f, d.kind == NORMAL, k) * d.scale);
    return TN_OK;
}

tn_status tnn_init_weights(tn_app *app, const tn_init_options *o, const tnn_filling *f)
{
    return values_draw(app, draw_with(o, f), f);
}

tn_status tnn_rows_none(tn_app *app, const tnn_param *p, tn_array **out)
{
    const tn_array_sparse none = {.struct_size = TN_SIZE(tn_array_sparse),
                                  .storage = TN_STORAGE_ROW_SPARSE,
                                  .dtype = p->dtype,
                                  .ndim = p->ndim,
                                  .shape = p->shape};

    return tn_array_sparse_from(app->ctx, &none, out);
}

tn_status tnn_param_make(tn_app *app, tnn_param *p, const float *values)
{
    tn_array *array = NULL, *rows = NULL, *wide = NULL;
    tn_status st = values ? tn_array_from(app->ctx, TN_F32, p->ndim, p->shape, values, &array)
                          : tn_array_zeros(app->ctx, p->dtype, p->ndim, p->shape, NULL, &array);

    if (!st && tn_array_dtype(array) != p->dtype) {
        wide = array;
        array = NULL;
        st = tn_array_cast(app->ctx, wide, p->dtype, &array);
        tn_array_release(wide);
    }
    if (!st && p->rows)
        st = tnn_rows_none(app, p, &rows);
    if (!st && !p->fixed)
        st = tn_attach_grad(app->ctx, array, p->mode, rows);
    tn_array_release(rows);
    if (st) {
        tn_array_release(array);
        return tnn_check(app, st, "parameter %s", p->full);
    }
    tn_array_release(p->array);
    tnn_param_copies_drop(p);
    p->array = array;
    p->version++;
    return TN_OK;
}

/* The net, or the nearest above it, that tn_net_init was called for. */
static tn_net *initialised(tn_net *net)
{
    while (net && !net->initialised)
        net = net->parent;
    return net;
}

/* Which row of random numbers is a parameter's: its place in a chain, its name in a function. */
static uint64_t row_of(const tn_net *source, const tnn_param *p)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    size_t index = 0;

    if (!source->function) {
        while (index < source->param_count && source->params[index] != p)
            index++;
        return index;
    }
    for (const char *c = p->name; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
    return hash;
}

/* `any`: by the initialiser, whatever the parameter is. */
static tn_status param_fill(tn_app *app, const tn_net *net, tnn_param *p, const tn_init_options *o, bool any)
{
    tnn_filling f = {.name = p->full,
                     .shape = p->shape,
                     .ndim = p->ndim,
                     .count = 1,
                     .key = tnn_random_mix(net->init_seed, TNN_PURPOSE_INIT),
                     .index = row_of(net, p)};
    const draw d = any ? draw_with(o, &f) : draw_of(o, p, &f);
    tn_status st;

    for (int32_t i = 0; i < p->ndim; i++)
        f.count *= (uint64_t)p->shape[i]; /* inference has checked that it fits */
    if (!(f.values = tnn_alloc(app, f.count, sizeof *f.values)))
        return TN_E_NOMEM;
    st = d.kind == FUSED_RNN ? tnn_init_rnn(app, net, o, &f) : values_draw(app, d, &f);
    if (!st)
        st = tnn_param_make(app, p, f.values);
    free(f.values);
    return st;
}

/* From the file that its net came with. */
static tn_status preset(tn_app *app, tnn_param *p)
{
    tn_array *array = NULL;

    if (!tnn_check(app, tn_params_get(p->net->values, p->name + strlen(p->net->structure), &array),
                   "parameter %s", p->full) &&
        !tnn_param_make(app, p, NULL))
        (void)tnn_check(app, tn_array_copy(array, p->array), "parameter %s", p->full);
    tn_array_release(array);
    return app->status;
}

/* `outer`: stands in for a net that was not initialised itself. */
static tn_status fill_one(tn_app *app, tnn_param *p, tn_net *outer)
{
    tn_net *source = p->net ? initialised(p->net) : NULL;
    const tn_init_options *init;
    tn_array *loaded = NULL;

    if (p->net && p->net->values)
        return preset(app, p);
    source = source ? source : initialised(outer);
    if (source &&
        ((!source->function && tnn_net_collect(source)) || tnn_mixed_value(app, source, p, &loaded)))
        return app->status;
    if (loaded) {
        if (!tnn_param_make(app, p, NULL))
            (void)tnn_check(app, tn_array_copy(loaded, p->array), "parameter %s", p->full);
        tn_array_release(loaded);
        return app->status;
    }
    if (p->values)
        return tnn_param_make(app, p, p->values);
    if (p->role == TNN_ROLE_UNKNOWN)
        return tnn_fail(
            app, TN_E_STATE,
            "parameter %s: its name does not say how it is filled (…weight, …bias, …gamma, …beta, "
            "…moving_mean, …moving_var), so give it values",
            p->full);
    if (!source)
        return tnn_fail(app, TN_E_STATE, "parameter %s has no values: call tn_net_init(), or load them",
                        p->full);
    if (!(init = p->init ? p->init : tnn_mixed_init(app, source, tnn_mixed_name(source, p))))
        return app->status;
    return param_fill(app, source, p, init, p->init != NULL);
}

tn_status tnn_layer_fill(tn_app *app, tnn_layer *layer, tn_net *outer)
{
    for (uint32_t i = 0; !app->status && i < layer->param_count; i++)
        if (!layer->params[i]->array)
            (void)fill_one(app, layer->params[i], outer);
    return app->status;
}

tn_status tnn_net_fill(tn_net *net)
{
    tn_app *app = tnn_net_app(net);

    if (!app)
        return TN_E_STATE;
    if (tnn_net_collect(net))
        return app->status;
    for (size_t i = 0; i < net->param_count; i++)
        if (!net->params[i]->array && fill_one(app, net->params[i], net))
            return app->status;
    net->filled = true;
    return TN_OK;
}

void tn_net_init_where_(tn_net *net, const char *suffix, const tn_init_options *options)
{
    tn_app *app = tnn_net_app(net);
    tn_init_options o = {0};
    bool found = false;

    if (!app)
        return;
    options_fill(&o, options);
    if (!suffix || net->model) {
        (void)tnn_fail(app, suffix ? TN_E_STATE : TN_E_ARG, "tn_net_init_where at %s:%d: %s",
                       o.file ? o.file : "?", o.line,
                       suffix ? "the net was loaded: it has its values" : "the suffix is NULL");
        return;
    }
    if (o.mixed || o.load) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_init_where at %s:%d: .mixed and .load are tn_net_init's",
                       o.file ? o.file : "?", o.line);
        return;
    }
    if (options_check(app, &o) || tnn_net_valued(net))
        return;
    if (o.seed || !net->initialised)
        (void)tnn_seed(app, o.seed, &net->init_seed);
    for (size_t i = 0; !app->status && i < net->param_count; i++)
        if (tnn_ends_with(tnn_param_name(net, i), suffix)) {
            (void)param_fill(app, net, net->params[i], &o, true);
            found = true;
        }
    if (!found && !app->status)
        (void)tnn_fail(app, TN_E_KEY, "no parameter of net %s ends with \"%s\"", net->path, suffix);
}

tn_status tnn_param_fits(tn_app *app, const tnn_param *p, tn_array *values)
{
    const int64_t *shape = NULL;
    char want[TNN_SHAPE_TEXT], have[TNN_SHAPE_TEXT];
    int32_t ndim = -1;
    tn_status st = values ? tn_array_shape(values, &ndim, &shape) : TN_E_FORMAT;

    if (!values)
        return tnn_fail(app, TN_E_FORMAT, "parameter %s has no values in the file", p->name);
    if (st)
        return tnn_check(app, st, "parameter %s", p->name);
    if (ndim > TNN_NDIM_MAX ||
        (p->ndim >= 0 && (p->ndim != ndim || memcmp(p->shape, shape, (size_t)ndim * sizeof *shape))))
        return tnn_fail(app, TN_E_SHAPE, "parameter %s is %s, the file holds %s", p->name,
                        tnn_shape_text(p->ndim, p->shape, want), tnn_shape_text(ndim, shape, have));
    return TN_OK;
}

tn_status tnn_param_set(tn_app *app, tnn_param *p, tn_array *values)
{
    const int64_t *shape = NULL;
    int32_t ndim = -1;

    if (tnn_param_fits(app, p, values) ||
        tnn_check(app, tn_array_shape(values, &ndim, &shape), "%s", p->name))
        return app->status;
    p->ndim = ndim;
    memcpy(p->shape, shape, (size_t)ndim * sizeof *shape);
    if (!p->array && tnn_param_make(app, p, NULL))
        return app->status;
    p->version++;
    if (tnn_check(app, tn_array_copy(values, p->array), "parameter %s", p->name))
        return app->status;
    for (size_t k = 1; p->copies && k < app->device_count; k++)
        if (p->copies[k - 1] &&
            tnn_check(app, tn_array_copy(p->array, p->copies[k - 1]), "parameter %s", p->name))
            return app->status;
    return TN_OK;
}
