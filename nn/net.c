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
    tnn_run_destroy(net->run);
    if (!net->graph_file)
        tnn_net_uncollect(net);
    for (size_t i = 0; i < net->layer_count; i++)
        tnn_layer_destroy(net->layers[i]);
    for (size_t i = 0; i < net->scope_count; i++)
        free(net->scopes[i].path);
    for (size_t i = 0; i < TNN_VALUES_MAX; i++) {
        free(net->input_names[i]);
        free(net->output_names[i]);
    }
    free(net->keys);
    free(net->hooks);
    free(net->scopes);
    free(net->uses);
    tnn_model_destroy(net->model);
    tnn_mixed_destroy(net->mixed);
    tnn_names_destroy(net->names);
    for (size_t i = 0; net->graph_file && i < net->param_count; i++)
        tnn_param_destroy(net->params[i]);
    tn_symbol_release(net->graph);
    tn_symbol_release(net->graph_file);
    free(net->layers);
    free(net->params);
    free(net->name);
    free(net->path);
    free(net->prefix);
    free(net->structure);
    free(net);
}

void tnn_net_uncollect(tn_net *net)
{
    for (size_t i = 0; net->param_names && i < net->param_count; i++)
        free(net->param_names[i]);
    free(net->param_names);
    free(net->params);
    net->param_names = NULL;
    net->params = NULL;
    net->param_count = 0;
}

void tnn_net_grown(tn_net *net)
{
    for (; net; net = net->parent)
        tnn_net_uncollect(net);
}

void tnn_net_changed(tn_net *net)
{
    for (; net; net = net->parent) {
        tnn_net_uncache(net);
        tnn_net_uncollect(net);
        net->in[0].ndim = -1;
        net->filled = false;
    }
}

tn_status tnn_net_whole(tn_net *net)
{
    tn_app *app = net->object.app;

    if (!*net->by_hand)
        return app->status;
    return tnn_fail(
        app, TN_E_STATE,
        "net %s: its part %s was run by hand, and what was computed around it is not in this chain: "
        "write the net as a function (tn_net_function)",
        net->path, net->by_hand);
}

tn_net *tnn_net_create(tn_app *app, tn_net *parent, const char *name, const char *structural)
{
    tn_net *net = tnn_alloc(app, 1, sizeof *net);

    if (!net)
        return NULL;
    tnn_object_add(app, &net->object, net_destroy);
    net->parent = parent;
    net->depth = parent ? parent->depth + 1 : 0;
    net->dtype = parent ? parent->dtype : TN_F32;
    net->input_count = net->output_count = 1;
    for (size_t i = 0; i < TNN_VALUES_MAX; i++)
        net->in[i].ndim = net->out[i].ndim = -1;
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
    tnn_spec spec = {.stem = "sequential"};
    tnn_layer *layer;
    char *structural;

    tnn_options_copy(&o, sizeof o, options);
    if (!app)
        return NULL;
    spec.name = o.name;
    spec.file = o.file;
    spec.line = o.line;
    if (net->depth + 1 >= TNN_DEPTH_MAX) {
        (void)tnn_fail(app, TN_E_ARG, "nets are nested more than %d deep", TNN_DEPTH_MAX);
        return NULL;
    }
    if (!(layer = tnn_layer_add(net, &spec)))
        return NULL;
    if (!(structural = tnn_format(app, "%s%zu.", net->structure, net->layer_count - 1)))
        return NULL;
    layer->child = tnn_net_create(app, net, layer->name, structural);
    free(structural);
    return layer->child;
}

static const char *add_refused(const tn_net *net, const tn_net *function)
{
    if (!function)
        return "the function is NULL";
    if (function->object.app != net->object.app)
        return "a net of another app";
    if (!function->function || function->input_count != 1 || function->output_count != 1)
        return "a function with one input and one output is needed";
    if (function->parent || function->layer_count || function->call)
        return "the function was added, or called, before";
    return NULL;
}

void tn_net_add(tn_net *net, tn_net *function)
{
    tn_app *app = tnn_net_app(net);
    tnn_spec spec = {.stem = "function"};
    const char *why;
    tnn_layer *layer;
    char *path, *prefix, *structure;

    if (!app)
        return;
    if ((why = add_refused(net, function))) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_add to %s: %s", net->path, why);
        return;
    }
    if (!(layer = tnn_layer_add(net, &spec)))
        return;
    path = tnn_format(app, "%s.%s", net->path, layer->name);
    prefix = tnn_strdup(app, layer->prefix);
    structure = tnn_format(app, "%s%zu.", net->structure, net->layer_count - 1);
    free(function->path);
    free(function->prefix);
    free(function->structure);
    function->path = path;
    function->prefix = prefix;
    function->structure = structure;
    function->parent = net;
    layer->child = function;
    if (net->dtype != TN_F32 && !app->status)
        (void)tnn_net_cast(app, function, net->dtype);
}

bool tnn_net_by_shapes(const tn_net *net)
{
    bool found = net->function;

    for (size_t i = 0; !found && i < net->layer_count; i++)
        found = net->layers[i]->child && tnn_net_by_shapes(net->layers[i]->child);
    return found;
}

/* ---- parameters ---- */

static bool uses_nets(const tn_net *net)
{
    bool found = net->use_count > 0;

    for (size_t i = 0; !found && i < net->layer_count; i++)
        found = net->layers[i]->child && uses_nets(net->layers[i]->child);
    return found;
}

static size_t params_count(const tn_net *net)
{
    size_t count = 0; /* at most: those of other layers are listed there */

    for (size_t i = 0; i < net->layer_count; i++)
        count += net->layers[i]->child ? params_count(net->layers[i]->child) : net->layers[i]->param_count;
    for (size_t i = 0; i < net->use_count; i++)
        count += params_count(net->uses[i]);
    return count;
}

/* `prefix`: in front of the structural names; NULL: they are the parameters' own. */
static tn_status params_list(tn_app *app, tn_net *net, const tn_net *from, const char *prefix)
{
    for (size_t i = 0; i < from->layer_count; i++) {
        const tnn_layer *layer = from->layers[i];

        if (layer->child)
            (void)params_list(app, net, layer->child, prefix);
        for (uint32_t k = 0; k < layer->param_count; k++) {
            if (layer->tied[k])
                continue;
            if (net->param_names)
                net->param_names[net->param_count] =
                    tnn_format(app, "%s%s", prefix ? prefix : "", layer->params[k]->name);
            net->params[net->param_count++] = layer->params[k];
        }
    }
    for (size_t i = 0; i < from->use_count; i++) {
        char *within = tnn_format(app, "%s%s%s.", prefix ? prefix : "", from->structure, from->uses[i]->name);

        if (within)
            (void)params_list(app, net, from->uses[i], within);
        free(within);
    }
    return app->status;
}

/* Two nets of one name cannot be told apart in a file; a net that is used in two places is there once. */
static tn_status params_unique(tn_app *app, tn_net *net)
{
    size_t kept = 0;

    for (size_t i = 0; i < net->param_count; i++) {
        tnn_param *p = net->params[i];
        size_t k = 0;

        while (k < kept && net->params[k] != p && strcmp(net->params[k]->full, p->full))
            k++;
        if (k < kept && net->params[k] != p)
            return tnn_fail(app, TN_E_KEY,
                            "net %s uses two nets that are called %s: give one of them another .name",
                            net->path, p->net->name);
        if (k < kept) {
            free(net->param_names[i]);
            continue;
        }
        net->param_names[kept] = net->param_names[i];
        net->params[kept++] = p;
    }
    net->param_count = kept;
    return TN_OK;
}

tn_status tnn_net_collect(tn_net *net)
{
    tn_app *app = net->object.app;
    const size_t count = net->params ? 0 : params_count(net);

    if (net->params)
        return TN_OK;
    if (!(net->params = tnn_alloc(app, count, sizeof(tnn_param *))) ||
        (uses_nets(net) && !(net->param_names = tnn_alloc(app, count, sizeof(char *)))) ||
        params_list(app, net, net, NULL) || (net->param_names && params_unique(app, net))) {
        tnn_net_uncollect(net);
        return app->status;
    }
    return TN_OK;
}

const char *tnn_param_name(const tn_net *net, size_t index)
{
    return net->param_names ? net->param_names[index] : net->params[index]->name;
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
    return tnn_net_collect((tn_net *)(uintptr_t)net) ? 0 : net->param_count;
}

const char *tn_net_param_name(const tn_net *net, size_t index)
{
    tn_net *n = (tn_net *)(uintptr_t)net; /* the list is filled in at first use */

    if (!tnn_net_app(net))
        return NULL;
    if (net->model)
        return tn_params_name(tnn_model_params(net->model), index);
    return !tnn_net_collect(n) && index < n->param_count ? tnn_param_name(n, index) : NULL;
}

static tnn_param *param_find(tn_net *net, const char *name)
{
    tn_app *app = tnn_net_app(net);

    if (!app || !name || net->model || tnn_net_collect(net))
        return NULL;
    for (size_t i = 0; i < net->param_count; i++)
        if (!strcmp(tnn_param_name(net, i), name) || !strcmp(net->params[i]->full, name))
            return net->params[i];
    (void)tnn_fail(app, TN_E_KEY, "net %s has no parameter \"%s\"%s%s", net->path, name,
                   net->param_count ? "; the first is " : "", net->param_count ? tnn_param_name(net, 0) : "");
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
        if (tnn_ends_with(tnn_param_name(net, i), suffix)) {
            net->params[i]->lr_factor = lr_factor;
            net->params[i]->wd_factor = wd_factor;
            found = true;
        }
    if (!found)
        (void)tnn_fail(app, TN_E_KEY, "no parameter of net %s ends with \"%s\"", net->path, suffix);
}

/* ---- forward ---- */

/* Shapes of a chain are checked, and deferred parameters made, whenever another shape than last time comes
 * (but for the batch's size, which no layer minds). */
static tn_status ready(tn_app *app, tn_net *net, tn_array *const *in)
{
    tnn_shape shapes[TNN_VALUES_MAX];
    bool same = net->filled;

    for (size_t i = 0; i < net->input_count; i++) {
        const tnn_shape *now = &shapes[i], *then = &net->in[i];

        if (tnn_shape_take(app, in[i], net->path, &shapes[i]))
            return app->status;
        same = same && now->ndim == then->ndim && now->ndim > 0 && now->dtype == then->dtype &&
               !memcmp(now->dims + 1, then->dims + 1, (size_t)(now->ndim - 1) * sizeof *now->dims);
    }
    if (same)
        return TN_OK;
    return tnn_net_infer_all(net, shapes) ? app->status : tnn_net_fill(net);
}

/* Whatever stands around a part that is run by itself is not in the nets above it. */
void tnn_net_by_hand(tn_net *net)
{
    for (tn_net *above = net->parent; above; above = above->parent)
        if (!*above->by_hand)
            (void)snprintf(above->by_hand, sizeof above->by_hand, "%.190s", net->path);
}

static tn_status run_here(tn_app *app, tn_net *net, tn_array *const *in, tn_array **out)
{
    if (!net->function && ready(app, net, in))
        return app->status;
    tnn_net_by_hand(net);
    if (net->graph || (net->hybrid && (net->function || net->layer_count)))
        return tnn_net_program_run(net, in, out);
    return tnn_net_call_arrays(net, in, out);
}

static tn_status net_run(tn_app *app, tn_net *net, tn_array *const *in, tn_array **out)
{
    const size_t device = tnn_device_index(app, in[0]);

    return device ? tnn_net_run_on(device, run_here, net, in, out) : run_here(app, net, in, out);
}

int tn_net_run(tn_net *net, size_t in_count, tn_array *const *in, size_t out_count, tn_array **out)
{
    tn_array *made[TNN_VALUES_MAX] = {NULL};
    tn_app *app = tnn_net_app(net);
    bool given = in && out;

    for (size_t i = 0; given && app && i < in_count && i < net->input_count; i++)
        given = in[i] != NULL;
    if (!app || !given)
        return 0;
    if (in_count != net->input_count || out_count != tn_net_output_count(net))
        return !tnn_fail(app, TN_E_ARG, "net %s: %zu inputs and room for %zu outputs, it has %zu and %zu",
                         net->path, in_count, out_count, net->input_count, tn_net_output_count(net));
    for (size_t i = 0; net->model && i < out_count; i++)
        out[i] = NULL; /* the program makes them */
    if (net->model ? tnn_model_run(net, in, out) : net_run(app, net, in, made))
        return 0;
    for (size_t i = 0; i < out_count; i++)
        out[i] = tn_app_own(app, net->model ? out[i] : made[i]);
    return tnn_ok(app);
}

tn_array *tn_net_forward(tn_net *net, tn_array *x)
{
    tn_app *app = tnn_net_app(net);

    if (!app || !x)
        return NULL;
    if (net->input_count != 1) {
        (void)tnn_fail(app, TN_E_ARG, "net %s has %zu inputs: tn_net_run() takes them, the first is %s",
                       net->path, net->input_count, tnn_net_input_name(net, 0));
        return NULL;
    }
    return tnn_net_first(net, &x);
}

tn_array *tnn_net_first(tn_net *net, tn_array *const *in)
{
    tn_app *app = net->object.app;
    tn_array *made[TNN_VALUES_MAX] = {NULL};

    if (net->model)
        return tn_app_own(app, tnn_model_forward(net, in));
    if (net_run(app, net, in, made))
        return NULL;
    for (size_t i = 1; i < net->output_count; i++)
        tn_array_release(made[i]);
    return tn_app_own(app, made[0]);
}

/* The field of input `i`. -1: there is none, and the app has failed. */
static int field_of(const tn_net *net, const tn_data *data, size_t i)
{
    const int at = tnn_data_meant(data, net->input_count, tnn_net_input_name(net, i));
    char names[512];
    size_t used = 0;

    if (at >= 0)
        return at;
    names[0] = '\0';
    for (size_t k = 0; k < net->input_count && used < sizeof names; k++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%.40s", k ? ", " : "",
                                 tnn_net_input_name(net, k));
    (void)tnn_fail(
        net->object.app, TN_E_KEY,
        "data \"%s\" has no array \"%s\", an input of %s; an .npz with an array for each input has "
        "all of them: %s",
        tn_data_name(data), tnn_net_input_name(net, i), net->path, names);
    return -1;
}

int tn_net_field(const tn_net *net, const tn_data *data, size_t input, tn_field_info *out)
{
    int at;

    if (!net || !data || input >= net->input_count)
        return 0;
    at = field_of(net, data, input);
    return at >= 0 && tn_data_field_at(data, (size_t)at, out);
}

tn_status tnn_net_inputs(const tn_net *net, const tn_data *data, tn_array **in)
{
    for (size_t i = 0; i < net->input_count; i++) {
        const int at = field_of(net, data, i);

        if (at < 0 || !(in[i] = tnn_data_now(data, (size_t)at)))
            return net->object.app->status ? net->object.app->status : TN_E_STATE;
    }
    return TN_OK;
}

tn_status tnn_net_shapes(const tn_net *net, const tn_data *data, tnn_shape *in)
{
    for (size_t i = 0; i < net->input_count; i++) {
        const int at = field_of(net, data, i);

        if (at < 0)
            return net->object.app->status;
        in[i] = *tnn_data_field_shape(data, (size_t)at);
        in[i].dims[0] = tnn_data_batch(data);
    }
    return TN_OK;
}

tn_array *tnn_net_first_of(tn_net *net, const tn_data *data)
{
    tn_array *in[TNN_VALUES_MAX] = {NULL};

    return tnn_ok(net->object.app) && !tnn_net_inputs(net, data, in) ? tnn_net_first(net, in) : NULL;
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

    if (!app || !data || tnn_net_whole(net))
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
        tn_array *y = tnn_data_real(data, tnn_net_first_of(net, data));

        b.y = tnn_data_real(data, b.y);
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
