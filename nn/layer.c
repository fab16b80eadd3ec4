/*
 * One layer: an operator with its attributes as text, its parameters, perhaps an activation behind it. It can
 * be called at once (a site), or be put into a symbol; both read the same attributes, so both mean the same.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static const char *const activations[] = {"relu", "sigmoid", "tanh", "softrelu", "softsign", NULL};

/* ---- making ---- */

void tnn_param_destroy(tnn_param *param)
{
    if (!param)
        return;
    tn_array_release(param->array);
    free(param->name);
    free(param->full);
    free(param);
}

void tnn_layer_destroy(tnn_layer *layer)
{
    if (!layer)
        return;
    for (size_t i = 1; i < layer->attr_count; i += 2)
        free(layer->attrs[i]);
    for (uint32_t i = 0; i < layer->param_count; i++)
        tnn_param_destroy(layer->params[i]);
    tn_site_release(layer->site);
    tn_site_release(layer->activation_site);
    free(layer->name);
    free(layer->path);
    free(layer->prefix);
    free(layer->file);
    free(layer->activation);
    free(layer);
}

/* Name within the net: the given one, or the stem with the number of such layers so far. */
static char *layer_name(tn_app *app, const tn_net *net, const tnn_layer_spec *spec)
{
    size_t number = 0;
    char *name;

    for (size_t i = 0; i < net->layer_count; i++)
        number += !strcmp(net->layers[i]->stem, spec->stem);
    name = spec->name ? tnn_strdup(app, spec->name) : tnn_format(app, "%s%zu", spec->stem, number);
    if (!name)
        return NULL;
    if (!*name || strlen(name) > 128) {
        (void)tnn_fail(app, TN_E_ARG, "a layer's name has %zu bytes, 1 to 128 are allowed", strlen(name));
        free(name);
        return NULL;
    }
    for (size_t i = 0; i < net->layer_count; i++)
        if (!strcmp(net->layers[i]->name, name)) {
            (void)tnn_fail(app, TN_E_KEY, "net %s has a layer \"%s\" already, called at %s:%d", net->path,
                           name, spec->file ? spec->file : "?", spec->line);
            free(name);
            return NULL;
        }
    return name;
}

static tn_status layer_append(tn_app *app, tn_net *net, tnn_layer *layer)
{
    if (net->model || net->graph_file)
        return tnn_fail(app, TN_E_STATE, "net %s was loaded: it takes no further layers", net->path);
    if (net->layer_count == TNN_LAYERS_MAX)
        return tnn_fail(app, TN_E_ARG, "net %s has %d layers, the most there may be", net->path,
                        TNN_LAYERS_MAX);
    if (net->layer_count == net->layer_capacity) {
        size_t more = net->layer_capacity ? 2 * net->layer_capacity : 8;
        tnn_layer **grown = realloc(net->layers, more * sizeof *grown);

        if (!grown)
            return tnn_no_memory(app);
        net->layers = grown;
        net->layer_capacity = more;
    }
    net->layers[net->layer_count++] = layer;
    tnn_net_changed(net);
    return TN_OK;
}

tnn_layer *tnn_layer_add(tn_net *net, const tnn_layer_spec *spec)
{
    tn_app *app = tnn_net_app(net);
    tnn_layer *layer;

    if (!app || !(layer = tnn_alloc(app, 1, sizeof *layer)))
        return NULL;
    layer->op = spec->op;
    layer->stem = spec->stem;
    layer->line = spec->line;
    layer->out_ndim = -1;
    if (!(layer->name = layer_name(app, net, spec)) ||
        !(layer->path = tnn_format(app, "%s.%s", net->path, layer->name)) ||
        !(layer->prefix = tnn_format(app, "%s_%s", net->prefix, layer->name)) ||
        !(layer->file = tnn_strdup(app, spec->file ? spec->file : "?")) || layer_append(app, net, layer)) {
        tnn_layer_destroy(layer);
        return NULL;
    }
    return layer;
}

tn_status tnn_layer_attr(tn_app *app, tnn_layer *layer, const char *name, const char *format, ...)
{
    char text[128];
    va_list args;

    if (app->status)
        return app->status;
    if (layer->attr_count + 2 >= sizeof layer->attrs / sizeof *layer->attrs)
        return tnn_fail(app, TN_E_INTERNAL, "%s: too many attributes", layer->path);
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!(layer->attrs[layer->attr_count + 1] = tnn_strdup(app, text)))
        return app->status;
    layer->attrs[layer->attr_count] = (char *)(uintptr_t)name; /* a literal */
    layer->attr_count += 2;
    return TN_OK;
}

tnn_param *tnn_layer_param(tn_net *net, tnn_layer *layer, tnn_role role, const char *suffix)
{
    tn_app *app = tnn_net_app(net);
    tnn_param *p;

    if (!app || !(p = tnn_alloc(app, 1, sizeof *p)))
        return NULL;
    p->role = role;
    p->aux = role == TNN_MEAN || role == TNN_VAR;
    p->fixed = p->aux;
    p->lr_factor = p->wd_factor = 1;
    p->ndim = -1;
    layer->params[layer->param_count++] = p;
    p->name = tnn_format(app, "%s%zu.%s", net->structure, net->layer_count - 1, suffix);
    p->full = tnn_format(app, "%s_%s", layer->prefix, suffix);
    return p->name && p->full ? p : NULL;
}

/* ---- what all layers check ---- */

static tn_status bad_option(tn_app *app, const tnn_layer *layer, const char *format, ...) TNN_PRINTF(3, 4);
static tn_status bad_option(tn_app *app, const tnn_layer *layer, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tnn_fail(app, TN_E_ARG, "%s in %s (%s), called at %s:%d", text, layer->path, layer->op,
                    layer->file, layer->line);
}

static tn_status activation_set(tn_app *app, tnn_layer *layer, const char *activation)
{
    char what[512];

    if (!activation || app->status)
        return app->status;
    if (!tnn_one_of(activation, activations)) {
        (void)snprintf(what, sizeof what, "activation of %s, called at %s:%d:", layer->path, layer->file,
                       layer->line);
        return tnn_unknown(app, what, activation, activations);
    }
    layer->activation = tnn_strdup(app, activation);
    return app->status;
}

/* A pair of which the second may be left out. */
static void pair_set(int32_t out[2], const int32_t in[2], int32_t first_default)
{
    out[0] = in[0] ? in[0] : first_default;
    out[1] = in[1] ? in[1] : in[0] ? in[0] : first_default;
}

static tn_status pair_check(tn_app *app, const tnn_layer *layer, const char *what, const int32_t pair[2],
                            int32_t least)
{
    for (int i = 0; i < 2; i++)
        if (pair[i] < least || pair[i] > 1 << 24)
            return bad_option(app, layer, "%s is {%d, %d}, at least %d is needed", what, pair[0], pair[1],
                              least);
    return app->status;
}

static tn_status window_attrs(tn_app *app, tnn_layer *layer)
{
    layer->window = true;
    (void)pair_check(app, layer, ".kernel", layer->kernel, 1);
    (void)pair_check(app, layer, ".stride", layer->stride, 1);
    (void)pair_check(app, layer, ".pad", layer->pad, 0);
    (void)pair_check(app, layer, ".dilate", layer->dilate, 1);
    (void)tnn_layer_attr(app, layer, "kernel", "(%d, %d)", layer->kernel[0], layer->kernel[1]);
    (void)tnn_layer_attr(app, layer, "stride", "(%d, %d)", layer->stride[0], layer->stride[1]);
    return tnn_layer_attr(app, layer, "pad", "(%d, %d)", layer->pad[0], layer->pad[1]);
}

/* ---- the layers ---- */

#define COPY_OPTIONS(type, options)                                                                          \
    type o;                                                                                                  \
    tnn_layer *layer;                                                                                        \
    tn_app *app = tnn_net_app(net);                                                                          \
    memset(&o, 0, sizeof o);                                                                                 \
    tnn_options_copy(&o, sizeof o, options)

static tnn_layer *begin(tn_net *net, const char *stem, const char *op, const char *name, const char *file,
                        int32_t line)
{
    return tnn_layer_add(net, &(tnn_layer_spec){stem, op, name, file, line});
}

void tn_net_dense_(tn_net *net, const tn_dense_options *options)
{
    COPY_OPTIONS(tn_dense_options, options);
    tnn_param *weight;

    if (!app || !(layer = begin(net, "dense", "FullyConnected", o.name, o.file, o.line)))
        return;
    if (o.units < 1)
        (void)bad_option(app, layer, ".units is %lld, at least 1 is needed", (long long)o.units);
    if (o.input < 0)
        (void)bad_option(app, layer, ".input is %lld, below 0", (long long)o.input);
    (void)tnn_layer_attr(app, layer, "num_hidden", "%lld", (long long)o.units);
    (void)tnn_layer_attr(app, layer, "no_bias", o.no_bias ? "True" : "False");
    (void)tnn_layer_attr(app, layer, "flatten", o.keep_axes ? "False" : "True");
    (void)activation_set(app, layer, o.activation);
    if ((weight = tnn_layer_param(net, layer, TNN_WEIGHT, "weight")) && o.input) {
        weight->given = true;
        weight->ndim = 2;
        weight->shape[0] = o.units;
        weight->shape[1] = o.input;
    }
    if (!o.no_bias)
        (void)tnn_layer_param(net, layer, TNN_BIAS, "bias");
}

void tn_net_conv2d_(tn_net *net, const tn_conv2d_options *options)
{
    COPY_OPTIONS(tn_conv2d_options, options);
    tnn_param *weight;

    if (!app || !(layer = begin(net, "conv", "Convolution", o.name, o.file, o.line)))
        return;
    if (!o.groups)
        o.groups = 1;
    if (o.channels < 1)
        (void)bad_option(app, layer, ".channels is %lld, at least 1 is needed", (long long)o.channels);
    if (o.groups < 1 || o.channels % o.groups)
        (void)bad_option(app, layer, ".groups is %d, but %lld channels", o.groups, (long long)o.channels);
    if (o.input < 0 || (o.groups > 0 && o.input % o.groups))
        (void)bad_option(app, layer, ".input is %lld, with %d groups", (long long)o.input, o.groups);
    pair_set(layer->kernel, o.kernel, 0);
    pair_set(layer->stride, o.stride, 1);
    pair_set(layer->dilate, o.dilate, 1);
    memcpy(layer->pad, o.pad, sizeof layer->pad);
    layer->channels = o.channels;
    (void)window_attrs(app, layer);
    (void)tnn_layer_attr(app, layer, "dilate", "(%d, %d)", layer->dilate[0], layer->dilate[1]);
    (void)tnn_layer_attr(app, layer, "num_filter", "%lld", (long long)o.channels);
    (void)tnn_layer_attr(app, layer, "num_group", "%d", o.groups);
    (void)tnn_layer_attr(app, layer, "no_bias", o.no_bias ? "True" : "False");
    (void)activation_set(app, layer, o.activation);
    if ((weight = tnn_layer_param(net, layer, TNN_WEIGHT, "weight")) && o.input && !app->status) {
        weight->given = true;
        weight->ndim = 4;
        weight->shape[0] = o.channels;
        weight->shape[1] = o.input / o.groups;
        weight->shape[2] = o.kernel[0];
        weight->shape[3] = layer->kernel[1];
    }
    if (!o.no_bias)
        (void)tnn_layer_param(net, layer, TNN_BIAS, "bias");
}

static void pool_add(tn_net *net, const char *type, const tn_pool2d_options *options)
{
    COPY_OPTIONS(tn_pool2d_options, options);

    if (!app || !(layer = begin(net, "pool", "Pooling", o.name, o.file, o.line)))
        return;
    pair_set(layer->kernel, o.kernel, 2);
    pair_set(layer->stride, o.stride[0] || o.stride[1] ? o.stride : layer->kernel, 1);
    layer->dilate[0] = layer->dilate[1] = 1;
    memcpy(layer->pad, o.pad, sizeof layer->pad);
    layer->ceil = o.ceil != 0;
    (void)window_attrs(app, layer);
    (void)tnn_layer_attr(app, layer, "pool_type", "%s", type);
    (void)tnn_layer_attr(app, layer, "pooling_convention", o.ceil ? "full" : "valid");
    if (!strcmp(type, "avg"))
        (void)tnn_layer_attr(app, layer, "count_include_pad", o.exclude_pad ? "False" : "True");
}

void tn_net_maxpool2d_(tn_net *net, const tn_pool2d_options *options)
{
    pool_add(net, "max", options);
}

void tn_net_avgpool2d_(tn_net *net, const tn_pool2d_options *options)
{
    pool_add(net, "avg", options);
}

void tn_net_globalavgpool2d_(tn_net *net, const tn_net_options *options)
{
    COPY_OPTIONS(tn_net_options, options);

    if (!app || !(layer = begin(net, "pool", "Pooling", o.name, o.file, o.line)))
        return;
    (void)tnn_layer_attr(app, layer, "kernel", "(1, 1)");
    (void)tnn_layer_attr(app, layer, "global_pool", "True");
    (void)tnn_layer_attr(app, layer, "pool_type", "avg");
}

void tn_net_batchnorm_(tn_net *net, const tn_batchnorm_options *options)
{
    COPY_OPTIONS(tn_batchnorm_options, options);
    tnn_param *gamma, *beta;

    if (!app || !(layer = begin(net, "batchnorm", "BatchNorm", o.name, o.file, o.line)))
        return;
    if (!(o.momentum >= 0 && o.momentum <= 1))
        (void)bad_option(app, layer, ".momentum is %g, not within 0 and 1", o.momentum);
    if (!(o.epsilon >= 0 && o.epsilon <= 1))
        (void)bad_option(app, layer, ".epsilon is %g, not within 0 and 1", o.epsilon);
    (void)tnn_layer_attr(app, layer, "eps", "%.9g", o.epsilon > 0 ? o.epsilon : 1e-5);
    (void)tnn_layer_attr(app, layer, "momentum", "%.9g", o.momentum > 0 ? o.momentum : 0.9);
    (void)tnn_layer_attr(app, layer, "fix_gamma", o.no_scale ? "True" : "False");
    (void)tnn_layer_attr(app, layer, "use_global_stats", o.use_global ? "True" : "False");
    (void)tnn_layer_attr(app, layer, "axis", "%d", o.axis ? o.axis : 1);
    if ((gamma = tnn_layer_param(net, layer, TNN_GAMMA, "gamma")))
        gamma->fixed = o.no_scale != 0;
    if ((beta = tnn_layer_param(net, layer, TNN_BETA, "beta")))
        beta->fixed = o.no_center != 0;
    (void)tnn_layer_param(net, layer, TNN_MEAN, "running_mean");
    (void)tnn_layer_param(net, layer, TNN_VAR, "running_var");
}

void tn_net_dropout_(tn_net *net, const tn_dropout_options *options)
{
    COPY_OPTIONS(tn_dropout_options, options);

    if (!app || !(layer = begin(net, "dropout", "Dropout", o.name, o.file, o.line)))
        return;
    if (!(o.rate >= 0 && o.rate < 1))
        (void)bad_option(app, layer, ".rate is %g, 0 to below 1 is allowed", o.rate);
    (void)tnn_layer_attr(app, layer, "p", "%.9g", o.rate);
}

void tn_net_flatten_(tn_net *net, const tn_net_options *options)
{
    COPY_OPTIONS(tn_net_options, options);

    if (app && (layer = begin(net, "flatten", "Flatten", o.name, o.file, o.line)))
        layer->attrs[0] = NULL;
}

void tn_net_activation_(tn_net *net, const tn_activation_options *options)
{
    COPY_OPTIONS(tn_activation_options, options);

    if (!app || !(layer = begin(net, "activation", "Activation", o.name, o.file, o.line)))
        return;
    if (!o.activation)
        (void)bad_option(app, layer, ".activation is missing");
    if (!activation_set(app, layer, o.activation) && layer->activation)
        (void)tnn_layer_attr(app, layer, "act_type", "%s", layer->activation);
    free(layer->activation); /* it is the operator itself */
    layer->activation = NULL;
}

void tn_net_leakyrelu_(tn_net *net, const tn_leakyrelu_options *options)
{
    COPY_OPTIONS(tn_leakyrelu_options, options);

    if (!app || !(layer = begin(net, "leakyrelu", "LeakyReLU", o.name, o.file, o.line)))
        return;
    (void)tnn_layer_attr(app, layer, "act_type", "leaky");
    (void)tnn_layer_attr(app, layer, "slope", "%.9g", o.slope != 0 ? o.slope : 0.25);
}

/* ---- as a symbol ---- */

static tn_status activation_symbol(tn_app *app, const tnn_layer *layer, tn_symbol *data, tn_symbol **out)
{
    const char *attrs[] = {"act_type", layer->activation, NULL};
    char *name = tnn_format(app, "%s_%s_fwd", layer->prefix, layer->activation);
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                           .in_count = 1,
                           .op = "Activation",
                           .name = name,
                           .attrs = attrs,
                           .in = &data};
    tn_status st = name ? tn_symbol_op(app->ctx, &call, out) : TN_E_NOMEM;

    free(name);
    return st;
}

tn_status tnn_layer_symbol(tn_app *app, const tnn_layer *layer, tn_symbol *data, tn_symbol **out)
{
    tn_symbol *in[1 + TNN_LAYER_PARAMS] = {data}, *result = NULL;
    char *name = tnn_format(app, "%s_fwd", layer->prefix);
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                           .in_count = 1 + layer->param_count,
                           .op = layer->op,
                           .name = name,
                           .in = in};
    const char *attrs[sizeof layer->attrs / sizeof *layer->attrs];
    tn_status st = name ? TN_OK : TN_E_NOMEM;

    for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++)
        attrs[i] = layer->attrs[i];
    call.attrs = attrs;
    for (uint32_t i = 0; !st && i < layer->param_count; i++)
        st = tn_symbol_variable(app->ctx, layer->params[i]->full, &in[i + 1]);
    if (!st)
        st = tn_symbol_op(app->ctx, &call, &result);
    if (!st && layer->activation)
        st = activation_symbol(app, layer, result, out);
    else if (!st) {
        *out = result;
        result = NULL;
    }
    tn_symbol_release(result);
    for (uint32_t i = 0; i < layer->param_count; i++)
        tn_symbol_release(in[i + 1]);
    free(name);
    return st;
}
