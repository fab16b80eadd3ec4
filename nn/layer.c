/*
 * One layer: an operator with its attributes as text, its parameters, perhaps an activation behind it. It can
 * be called at once (a site), or be put into a symbol; both read the same attributes, so both mean the same.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static const char *const activations[] = {"relu", "sigmoid", "tanh", "softrelu", "softsign", NULL};

/* ---- specifications ---- */

void tnn_spec_begin(tnn_spec *spec, const char *stem, const char *op)
{
    spec->stem = stem;
    spec->op = op;
}

void tnn_spec_wrong(tnn_spec *spec, const char *format, ...)
{
    va_list args;

    if (*spec->wrong)
        return;
    va_start(args, format);
    (void)vsnprintf(spec->wrong, sizeof spec->wrong, format, args);
    va_end(args);
}

void tnn_spec_attr(tnn_spec *spec, const char *name, const char *format, ...)
{
    char *text = spec->text + spec->text_used;
    const size_t room = sizeof spec->text - spec->text_used;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(text, room, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= room || spec->attr_count + 2 >= TNN_ATTRS) {
        tnn_spec_wrong(spec, "too many attributes, at \"%.40s\"", name);
        return;
    }
    spec->text_used += (size_t)length + 1;
    spec->attrs[spec->attr_count++] = name;
    spec->attrs[spec->attr_count++] = text;
}

void tnn_spec_number(tnn_spec *spec, const char *name, int digits, double x)
{
    char text[TNN_NUMBER_TEXT];

    tnn_number_text(text, digits, x);
    tnn_spec_attr(spec, name, "%s", text);
}

tn_status tnn_spec_check(tn_app *app, const tnn_spec *spec, const char *path)
{
    const char *file = spec->file ? spec->file : "?";
    const char *refusal = spec->synced ? tnn_synced_refusal(app) : NULL;
    char what[512];

    if (*spec->wrong)
        return tnn_fail(app, TN_E_ARG, "%s in %s (%s), called at %s:%d", spec->wrong, path, spec->op, file,
                        spec->line);
    if (refusal)
        return tnn_fail(app, TN_E_UNSUPPORTED,
                        "%s (%s), called at %s:%d: its %zu devices need each other's numbers, and %s", path,
                        spec->op, file, spec->line, app->device_count, refusal);
    if (!spec->activation || tnn_one_of(spec->activation, activations))
        return app->status;
    (void)snprintf(what, sizeof what, "activation of %s, called at %s:%d:", path, file, spec->line);
    return tnn_unknown(app, what, spec->activation, activations);
}

/* ---- making ---- */

void tnn_param_destroy(tnn_param *param)
{
    if (!param)
        return;
    tn_array_release(param->array);
    tnn_param_copies_drop(param);
    free(param->init);
    free(param->values);
    free(param->name);
    free(param->full);
    free(param);
}

static void attrs_clear(tnn_layer *layer)
{
    for (size_t i = 0; i < TNN_ATTRS; i++)
        free(layer->attrs[i]);
    memset(layer->attrs, 0, sizeof layer->attrs);
    layer->attr_count = 0;
    tn_site_release(layer->site);
    layer->site = NULL;
}

void tnn_layer_destroy(tnn_layer *layer)
{
    if (!layer)
        return;
    attrs_clear(layer);
    for (uint32_t i = 0; i < layer->param_count; i++)
        if (!layer->tied[i])
            tnn_param_destroy(layer->params[i]);
    tn_site_release(layer->activation_site);
    free(layer->name);
    free(layer->path);
    free(layer->prefix);
    free(layer->file);
    free(layer);
}

/* Behind those of the specification, and not counted: a call does not say them. Nets may have the same name,
 * so the key has a number. */
static tn_status synced_add(tn_app *app, tnn_layer *layer)
{
    char **at = layer->attrs + layer->attr_count;

    (void)((at[0] = tnn_strdup(app, "ndev")) && (at[1] = tnn_format(app, "%zu", app->device_count)) &&
           (at[2] = tnn_strdup(app, "key")) &&
           (at[3] = tnn_format(app, "%s#%u", layer->path, ++app->synced)));
    return app->status;
}

tn_status tnn_layer_attrs(tn_app *app, tnn_layer *layer, const tnn_spec *spec)
{
    attrs_clear(layer);
    layer->window = spec->window;
    for (; layer->attr_count < spec->attr_count; layer->attr_count++)
        if (!(layer->attrs[layer->attr_count] = tnn_strdup(app, spec->attrs[layer->attr_count])))
            return app->status;
    return spec->synced ? synced_add(app, layer) : TN_OK;
}

/* Name within a chain: the given one, or the stem with the number of such layers so far. */
static char *layer_name(tn_app *app, const tn_net *net, const tnn_spec *spec)
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
    return TN_OK;
}

static void name_param(tn_app *app, tnn_param *p, const tnn_layer *layer, const tnn_spec *spec, uint32_t i,
                       const char *structural)
{
    const char *suffix = spec->params[i].suffix, *between = !suffix ? "" : spec->joined ? "_" : ".";

    suffix = suffix ? suffix : "";
    p->name = tnn_format(app, "%s%s%s%s", layer->net->structure, structural, between, suffix);
    p->full = tnn_format(app, "%s%s%s", layer->prefix, *suffix ? "_" : "", suffix);
}

/* What a parameter of the function's own begins with. */
static tn_status own_values(tn_app *app, tnn_param *p, const tn_init_options *init, const float *values)
{
    size_t count = 1;

    for (int32_t i = 0; values && i < p->ndim; i++)
        count *= (size_t)p->shape[i];
    if (init && (p->init = tnn_alloc(app, 1, sizeof *p->init)))
        *p->init = *init;
    if (values && (p->values = tnn_alloc(app, count, sizeof *values)))
        memcpy(p->values, values, count * sizeof *values);
    return app->status;
}

static tn_status params_make(tn_app *app, tnn_layer *layer, const tnn_spec *spec, const char *structural)
{
    for (uint32_t i = 0; i < spec->param_count; i++) {
        const bool tied = spec->params[i].tied != NULL;
        const tnn_variable *variable = spec->params[i].variable;
        tnn_param *p = tied ? tnn_value_param(spec->params[i].tied) : tnn_alloc(app, 1, sizeof *p);

        if (!p)
            return app->status;
        layer->tied[layer->param_count] = tied;
        layer->params[layer->param_count++] = p;
        if (tied)
            continue;
        p->net = layer->net;
        p->role = spec->params[i].role;
        p->aux = p->role == TNN_MEAN || p->role == TNN_VAR;
        p->fixed = spec->params[i].fixed;
        p->own = !spec->params[i].suffix;
        p->never = p->fixed && (!p->own || spec->params[i].values);
        p->rows = spec->params[i].rows;
        p->lr_factor = variable ? variable->lr_factor : 1;
        p->wd_factor = variable ? variable->wd_factor : 1;
        p->mode = TN_MODE_WRITE;
        p->dtype = tnn_dtype_of(layer->op, layer->net->dtype);
        p->given = spec->params[i].ndim > 0;
        p->ndim = p->given ? spec->params[i].ndim : -1;
        memcpy(p->shape, spec->params[i].shape, sizeof spec->params[i].shape);
        name_param(app, p, layer, spec, i, structural);
        if (own_values(app, p, variable && variable->begins ? &variable->init : spec->params[i].init,
                       spec->params[i].values))
            return app->status;
    }
    return app->status;
}

static const char *kept_activation(const char *text)
{
    for (size_t i = 0; text && activations[i]; i++)
        if (!strcmp(text, activations[i]))
            return activations[i];
    return NULL;
}

/* What is in front of a function's layer: "stage1.", for graphs "stage1_". */
static char *prefix_of(tn_app *app, const tn_net *net, const char *scope, const char *name)
{
    char *text = tnn_format(app, "%s_%s%s", net->prefix, scope, name);

    for (char *c = text ? text + strlen(net->prefix) : NULL; c && c[strlen(name)]; c++)
        if (*c == '.')
            *c = '_';
    return text;
}

tnn_layer *tnn_layer_make(tn_net *net, const tnn_spec *spec, uint32_t scope, const char *name)
{
    tn_app *app = net->object.app;
    const char *opened = net->scope_count ? net->scopes[scope].path : "";
    tnn_layer *layer = tnn_alloc(app, 1, sizeof *layer);
    char *structural = NULL;

    if (!layer)
        return NULL;
    layer->op = spec->op;
    layer->stem = spec->stem;
    layer->net = net;
    layer->line = spec->line;
    layer->scope = scope;
    layer->unnamed = !spec->name;
    layer->share = spec->share;
    layer->random = spec->random;
    layer->plain = spec->plain;
    layer->out_ndim = -1;
    if ((layer->name = tnn_strdup(app, name)) &&
        (layer->path = tnn_format(app, "%s.%s%s", net->path, opened, name)) &&
        (layer->prefix = prefix_of(app, net, opened, name)) &&
        (layer->file = tnn_strdup(app, spec->file ? spec->file : "?")) &&
        !tnn_spec_check(app, spec, layer->path) && !tnn_layer_attrs(app, layer, spec) &&
        (structural = *net->place     ? tnn_strdup(app, net->place)
                      : net->function ? tnn_format(app, "%s%s", opened, name)
                                      : tnn_format(app, "%zu", net->layer_count)) &&
        !params_make(app, layer, spec, structural) && !layer_append(app, net, layer)) {
        layer->activation = spec->itself ? NULL : kept_activation(spec->activation);
        free(structural);
        return layer;
    }
    free(structural);
    tnn_layer_destroy(layer);
    return NULL;
}

tnn_layer *tnn_layer_add(tn_net *net, const tnn_spec *spec)
{
    tn_app *app = tnn_net_app(net);
    tnn_layer *layer;
    char *name;

    if (!app)
        return NULL;
    if (net->model || net->graph_file || net->function) {
        (void)tnn_fail(app, TN_E_STATE,
                       net->function ? "net %s is a function: its layers are made where it calls them"
                                     : "net %s was loaded: it takes no further layers",
                       net->path);
        return NULL;
    }
    for (uint32_t i = 0; i < spec->param_count; i++)
        if (spec->params[i].tied) {
            (void)tnn_fail(app, TN_E_ARG, "net %s is a chain: .%s at %s:%d is for functions", net->path,
                           spec->params[i].suffix, spec->file ? spec->file : "?", spec->line);
            return NULL;
        }
    if (!(name = layer_name(app, net, spec)))
        return NULL;
    layer = tnn_layer_make(net, spec, 0, name);
    free(name);
    if (layer)
        tnn_net_changed(net);
    return layer;
}

/* ---- calling ---- */

static tn_status sites_make(tn_app *app, tnn_layer *layer)
{
    const char *attrs[TNN_ATTRS];
    const char *act[] = {"act_type", layer->activation, NULL};
    tn_status st = TN_OK;

    for (size_t i = 0; i < TNN_ATTRS; i++)
        attrs[i] = layer->attrs[i];
    if (!layer->site)
        st = tn_site_create(app->ctx, layer->op, attrs, &layer->site);
    if (!st && layer->activation && !layer->activation_site)
        st = tn_site_create(app->ctx, "Activation", act, &layer->activation_site);
    return st;
}

tn_status tnn_layer_invoke(tn_app *app, tnn_layer *layer, uint32_t in_count, tn_array *const *in,
                           uint32_t room, tn_array **out, uint32_t *made)
{
    tn_array *all[TNN_LAYER_INPUTS_MAX], *active = NULL;
    uint32_t count = 0;
    tn_status st = sites_make(app, layer);

    while (count < in_count) {
        all[count] = in[count];
        count++;
    }
    for (uint32_t i = 0; i < layer->param_count; i++) {
        if (!st)
            st = tnn_param_spread(app, layer->params[i]);
        all[count++] = layer->params[i]->array;
    }
    if (!st)
        st = tn_invoke(layer->site, count, all, room, out);
    if (!st && layer->activation) {
        if ((st = tn_invoke(layer->activation_site, 1, out, 1, &active))) {
            tn_array_release(out[0]);
            out[0] = NULL;
        } else {
            tn_array_release(out[0]);
            out[0] = active;
        }
    }
    for (*made = 0; !st && *made < room && out[*made];)
        (*made)++;
    return st;
}

/* ---- as a symbol ---- */

static tn_status activation_symbol(tn_app *app, const tnn_layer *layer, const char *node, tn_symbol *data,
                                   tn_symbol **out)
{
    const char *attrs[] = {"act_type", layer->activation, NULL};
    const size_t length = strlen(layer->prefix); /* of NODE, "lenet_conv0_fwd", stays "_fwd" */
    char *name = tnn_format(app, "%s_%s%s", layer->prefix, layer->activation, node + length);
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

tn_status tnn_layer_symbol(tn_app *app, const tnn_layer *layer, uint32_t in_count, tn_symbol *const *in,
                           const char *name, tn_symbol **out)
{
    tn_symbol *all[TNN_LAYER_INPUTS_MAX] = {NULL}, *result = NULL;
    tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                           .in_count = in_count + layer->param_count,
                           .op = layer->op,
                           .name = name,
                           .in = all};
    const char *attrs[TNN_ATTRS];
    tn_status st = TN_OK;

    for (size_t i = 0; i < TNN_ATTRS; i++)
        attrs[i] = layer->attrs[i];
    call.attrs = attrs;
    for (uint32_t i = 0; i < in_count; i++)
        all[i] = in[i];
    for (uint32_t i = 0; !st && i < layer->param_count; i++) {
        tn_symbol_retain(all[in_count + i] = layer->params[i]->variable);
        if (!layer->params[i]->variable)
            st = tn_symbol_variable(app->ctx, layer->params[i]->full, &all[in_count + i]);
    }
    if (!st)
        st = tn_symbol_op(app->ctx, &call, &result);
    if (!st && layer->activation)
        st = activation_symbol(app, layer, name, result, out);
    else if (!st) {
        *out = result;
        result = NULL;
    }
    tn_symbol_release(result);
    for (uint32_t i = 0; i < layer->param_count; i++)
        tn_symbol_release(all[in_count + i]);
    return st;
}
