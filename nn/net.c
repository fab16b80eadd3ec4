/*
 * Nets: a tree of layers. A net runs layer by layer, each through its call site, or as one compiled program
 * once it is hybridized; both take their shapes, attributes and random draws from the same layers in the same
 * order.
 *
 * Parameters belong to their layers. A net lists those of all layers below it; the list and the program are
 * dropped in the net and in all above it when a layer is added.
 */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

tn_app *tnn_net_app(const tn_net *net)
{
    return net && tnn_ok(net->object.app) ? net->object.app : NULL;
}

static void net_destroy(tnn_object *object)
{
    tn_net *net = (tn_net *)object;

    tnn_net_uncache(net);
    for (size_t i = 0; i < net->layer_count; i++)
        tnn_layer_destroy(net->layers[i]);
    tnn_model_destroy(net->model);
    tnn_names_destroy(net->names);
    for (size_t i = 0; net->graph_file && i < net->param_count; i++)
        tnn_param_destroy(net->params[i]);
    tn_symbol_release(net->graph);
    tn_symbol_release(net->graph_file);
    free(net->data_name);
    free(net->layers);
    free(net->params);
    free(net->name);
    free(net->path);
    free(net->prefix);
    free(net->structure);
    free(net);
}

void tnn_net_changed(tn_net *net)
{
    for (; net; net = net->parent) {
        tnn_net_uncache(net);
        free(net->params);
        net->params = NULL;
        net->param_count = 0;
        net->in_ndim = -1;
        net->filled = false;
    }
}

tn_net *tnn_net_create(tn_app *app, tn_net *parent, const char *name, const char *structural)
{
    tn_net *net = tnn_alloc(app, 1, sizeof *net);

    if (!net)
        return NULL;
    tnn_object_add(app, &net->object, net_destroy);
    net->parent = parent;
    net->depth = parent ? parent->depth + 1 : 0;
    net->in_ndim = net->out_ndim = -1;
    net->name = tnn_strdup(app, name);
    net->structure = tnn_strdup(app, structural);
    if (net->name) {
        net->path = parent ? tnn_format(app, "%s.%s", parent->path, name) : tnn_strdup(app, name);
        net->prefix = parent ? tnn_format(app, "%s_%s", parent->prefix, name) : tnn_strdup(app, name);
    }
    return net->name && net->structure && net->path && net->prefix ? net : NULL;
}

tn_net *tn_net_new_(tn_app *app, const tn_net_options *options)
{
    tn_net_options o = {0};

    tnn_options_copy(&o, sizeof o, options);
    if (!tnn_ok(app))
        return NULL;
    if (o.name && (!*o.name || strlen(o.name) > 128)) {
        (void)tnn_fail(app, TN_E_ARG, "a net's name has %zu bytes, 1 to 128 are allowed", strlen(o.name));
        return NULL;
    }
    return tnn_net_create(app, NULL, o.name ? o.name : "net", "");
}

tn_net *tn_net_sequential_(tn_net *net, const tn_net_options *options)
{
    tn_app *app = tnn_net_app(net);
    tn_net_options o = {0};
    tnn_layer *layer;
    char *structural;

    tnn_options_copy(&o, sizeof o, options);
    if (!app)
        return NULL;
    if (net->depth + 1 >= TNN_DEPTH_MAX) {
        (void)tnn_fail(app, TN_E_ARG, "nets are nested more than %d deep", TNN_DEPTH_MAX);
        return NULL;
    }
    if (!(layer = tnn_layer_add(net, &(tnn_layer_spec){"sequential", NULL, o.name, o.file, o.line})))
        return NULL;
    if (!(structural = tnn_format(app, "%s%zu.", net->structure, net->layer_count - 1)))
        return NULL;
    layer->child = tnn_net_create(app, net, layer->name, structural);
    free(structural);
    return layer->child;
}

/* ---- parameters ---- */

static size_t params_count(const tn_net *net)
{
    size_t count = 0;

    for (size_t i = 0; i < net->layer_count; i++)
        count += net->layers[i]->child ? params_count(net->layers[i]->child) : net->layers[i]->param_count;
    return count;
}

static void params_list(const tn_net *net, tnn_param **out, size_t *at)
{
    for (size_t i = 0; i < net->layer_count; i++) {
        const tnn_layer *layer = net->layers[i];

        if (layer->child)
            params_list(layer->child, out, at);
        for (uint32_t k = 0; k < layer->param_count; k++)
            out[(*at)++] = layer->params[k];
    }
}

tn_status tnn_net_collect(tn_net *net)
{
    size_t at = 0;

    if (net->params)
        return TN_OK;
    net->param_count = params_count(net);
    if (!(net->params = tnn_alloc(net->object.app, net->param_count, sizeof(tnn_param *)))) {
        net->param_count = 0;
        return TN_E_NOMEM;
    }
    params_list(net, net->params, &at);
    return TN_OK;
}

tn_status tnn_net_valued(tn_net *net)
{
    tn_app *app = net->object.app;

    if (tnn_net_collect(net))
        return app->status;
    for (size_t i = 0; i < net->param_count; i++)
        if (!net->params[i]->array)
            return tnn_fail(
                app, TN_E_STATE,
                "parameter %s has no values yet: give tn_net_init() a .shape, or run the net once",
                net->params[i]->full);
    return TN_OK;
}

static size_t layers_count(const tn_net *net)
{
    size_t count = 0;

    for (size_t i = 0; i < net->layer_count; i++)
        count += net->layers[i]->child ? layers_count(net->layers[i]->child) : 1;
    return count;
}

size_t tn_net_layers(const tn_net *net)
{
    return tnn_net_app(net) ? layers_count(net) : 0;
}

size_t tn_net_param_count(const tn_net *net)
{
    if (!tnn_net_app(net))
        return 0;
    if (net->model)
        return tn_params_count(tnn_model_params(net->model));
    return net->graph ? net->param_count : params_count(net);
}

const char *tn_net_param_name(const tn_net *net, size_t index)
{
    tn_net *n = (tn_net *)(uintptr_t)net; /* the list is filled in at first use */

    if (!tnn_net_app(net))
        return NULL;
    if (net->model)
        return tn_params_name(tnn_model_params(net->model), index);
    return !tnn_net_collect(n) && index < n->param_count ? n->params[index]->name : NULL;
}

static tnn_param *param_find(tn_net *net, const char *name)
{
    tn_app *app = tnn_net_app(net);

    if (!app || !name || net->model || tnn_net_collect(net))
        return NULL;
    for (size_t i = 0; i < net->param_count; i++)
        if (!strcmp(net->params[i]->name, name) || !strcmp(net->params[i]->full, name))
            return net->params[i];
    (void)tnn_fail(app, TN_E_KEY, "net %s has no parameter \"%s\"%s%s", net->path, name,
                   net->param_count ? "; the first is " : "", net->param_count ? net->params[0]->name : "");
    return NULL;
}

tn_array *tn_net_param(tn_net *net, const char *name)
{
    tn_app *app = tnn_net_app(net);
    tn_array *array = NULL;
    tnn_param *p;

    if (app && net->model && name) {
        (void)tnn_check(app, tn_params_get(tnn_model_params(net->model), name, &array), "net %s", net->path);
        return tn_app_own(app, array);
    }
    p = param_find(net, name);
    return p ? p->array : NULL;
}

tn_array *tn_net_param_grad(tn_net *net, const char *name)
{
    const tnn_param *p = param_find(net, name);

    return p && p->array ? tn_array_grad(p->array) : NULL;
}

int64_t tn_net_param_elements(const tn_net *net)
{
    tn_net *n = (tn_net *)(uintptr_t)net;
    int64_t total = 0;

    if (!tnn_net_app(net) || net->model || tnn_net_collect(n))
        return 0;
    for (size_t i = 0; i < n->param_count; i++) {
        const tnn_param *p = n->params[i];
        int64_t elements = 1;

        if (p->ndim < 0)
            return 0;
        for (int32_t k = 0; k < p->ndim; k++)
            elements *= p->shape[k];
        total += elements;
    }
    return total;
}

void tn_net_multiply(tn_net *net, const char *suffix, double lr_factor, double wd_factor)
{
    tn_app *app = tnn_net_app(net);
    bool found = false;

    if (!app || tnn_net_collect(net))
        return;
    if (!suffix || !isfinite(lr_factor) || !isfinite(wd_factor) || lr_factor < 0 || wd_factor < 0) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_multiply: factors %g and %g, both must be 0 or more", lr_factor,
                       wd_factor);
        return;
    }
    for (size_t i = 0; i < net->param_count; i++)
        if (tnn_ends_with(net->params[i]->name, suffix)) {
            net->params[i]->lr_factor = lr_factor;
            net->params[i]->wd_factor = wd_factor;
            found = true;
        }
    if (!found)
        (void)tnn_fail(app, TN_E_KEY, "no parameter of net %s ends with \"%s\"", net->path, suffix);
}

/* ---- forward ---- */

static tn_status sites_make(tn_app *app, tnn_layer *layer)
{
    const char *attrs[sizeof layer->attrs / sizeof *layer->attrs];
    const char *act[] = {"act_type", layer->activation, NULL};
    tn_status st = TN_OK;

    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
        attrs[i] = layer->attrs[i];
    if (!layer->site)
        st = tn_site_create(app->ctx, layer->op, attrs, &layer->site);
    if (!st && layer->activation && !layer->activation_site)
        st = tn_site_create(app->ctx, "Activation", act, &layer->activation_site);
    return st;
}

/* `*x` is replaced by the layer's output; both are references of the caller. */
static tn_status layer_forward(tn_app *app, tnn_layer *layer, tn_array **x, const char *from)
{
    tn_array *in[1 + TNN_LAYER_PARAMS] = {*x}, *out = NULL, *active = NULL;
    const int64_t *shape = NULL;
    int32_t ndim = -1;
    tn_status st = sites_make(app, layer);

    for (uint32_t i = 0; i < layer->param_count; i++)
        in[i + 1] = layer->params[i]->array;
    if (!st)
        st = tn_invoke(layer->site, 1 + layer->param_count, in, 1, &out);
    if (!st && layer->activation)
        st = tn_invoke(layer->activation_site, 1, &out, 1, &active);
    if (st) {
        /* The error's text is of this thread: it must not be lost to a further call that fails. */
        if (!tn_array_shape(*x, &ndim, &shape))
            (void)tnn_layer_fail(app, layer, st, ndim, shape, from);
        (void)tnn_check(app, st, "%s", layer->path);
        tn_array_release(out);
        return st;
    }
    if (active) {
        tn_array_release(out);
        out = active;
    }
    tn_array_release(*x);
    *x = out;
    return TN_OK;
}

static tn_status layers_forward(tn_app *app, tn_net *net, tn_array **x, const char **from)
{
    tn_status st = TN_OK;

    for (size_t i = 0; !st && i < net->layer_count; i++) {
        tnn_layer *layer = net->layers[i];

        if (layer->child) {
            st = layers_forward(app, layer->child, x, from);
            continue;
        }
        st = layer_forward(app, layer, x, *from);
        *from = layer->path;
    }
    return st;
}

static tn_array *cached_forward(tn_app *app, tn_net *net, tn_array *x)
{
    tn_array *out = NULL;
    tn_status st;

    if (tnn_net_cached(net))
        return NULL;
    for (size_t i = 0; i < net->cached_count; i++)
        net->cached_in[i] = net->cached_params[i] ? net->cached_params[i]->array : x;
    st = tn_cached_op_call(net->cached, (uint32_t)net->cached_count, net->cached_in, 1, &out);
    return tnn_check(app, st, "net %s", net->path) ? NULL : out;
}

/* Shapes are checked, and deferred parameters made, whenever another shape than last time comes (but for the
 * batch's size, which no layer minds). */
static tn_status ready(tn_app *app, tn_net *net, tn_array *x)
{
    const int64_t *shape = NULL;
    int32_t ndim = -1;
    tn_status st = tn_array_shape(x, &ndim, &shape);

    if (st)
        return tnn_check(app, st, "net %s", net->path);
    if (net->filled && ndim == net->in_ndim && ndim > 0 &&
        !memcmp(shape + 1, net->in_shape + 1, (size_t)(ndim - 1) * sizeof *shape))
        return TN_OK;
    if ((st = tnn_net_infer(net, ndim, shape)))
        return st;
    return tnn_net_fill(net);
}

tn_array *tn_net_forward(tn_net *net, tn_array *x)
{
    tn_app *app = tnn_net_app(net);
    const char *from = "the input";
    tn_array *out;

    if (!app || !x)
        return NULL;
    if (net->model)
        return tn_app_own(app, tnn_model_forward(net, x));
    if (ready(app, net, x))
        return NULL;
    if (net->graph || (net->hybrid && net->layer_count))
        return tn_app_own(app, cached_forward(app, net, x));
    tn_array_retain(x);
    out = x;
    if (layers_forward(app, net, &out, &from)) {
        tn_array_release(out);
        return NULL;
    }
    return tn_app_own(app, out);
}

double tn_net_eval(tn_net *net, tn_data *data, const char *metric)
{
    static const char *const metrics[] = {"accuracy", "loss", "l1", "l2", NULL};
    tn_app *app = tnn_net_app(net);
    const bool accuracy = metric && !strcmp(metric, "accuracy");
    int64_t epoch, index;
    tn_meter *meter;
    tn_batch b;
    double value;

    if (!app || !data)
        return NAN;
    if (!tnn_one_of(metric, metrics)) {
        (void)tnn_unknown(app, "metric", metric ? metric : "", metrics);
        return NAN;
    }
    if (net->model && (accuracy || !strcmp(metric, "loss"))) { /* it may give probabilities */
        tn_evaluation e = {.struct_size = sizeof e};

        return !tn_net_evaluate(net, data, &e) ? NAN : accuracy ? e.accuracy : e.loss;
    }
    tn_app_pause(app);
    if (!(meter = tn_meter_new(app, accuracy ? "accuracy" : "loss")))
        return NAN;
    tn_data_tell(data, &epoch, &index);
    tn_data_seek(data, epoch, 0);
    while (tn_data_next(data, &b)) {
        tn_array *y = tn_net_forward(net, b.x);

        if (accuracy)
            tn_meter_add(meter, y, b.y);
        else
            tn_meter_add(meter,
                         !strcmp(metric, "loss") ? tn_loss_softmax_ce(app, y, b.y)
                         : !strcmp(metric, "l2") ? tn_loss_l2(app, y, b.y)
                                                 : tn_loss_l1(app, y, b.y),
                         NULL);
    }
    tn_data_seek(data, epoch, index);
    value = tn_meter_value(meter);
    tnn_object_drop((tnn_object *)meter);
    return value;
}
