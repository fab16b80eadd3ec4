/*
 * A net as a graph: the symbol it is exported as and the program that a hybridized net runs.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static tn_status layers_symbol(tn_app *app, const tn_net *net, tn_symbol **x)
{
    tn_status st = TN_OK;

    for (size_t i = 0; !st && i < net->layer_count; i++) {
        const tnn_layer *layer = net->layers[i];
        tn_symbol *out = NULL;

        if (layer->child) {
            st = layers_symbol(app, layer->child, x);
            continue;
        }
        if (!(st = tnn_layer_symbol(app, layer, *x, &out))) {
            tn_symbol_release(*x);
            *x = out;
        }
    }
    return st;
}

tn_status tnn_net_symbol(tn_net *net, tn_symbol **out)
{
    tn_app *app = tnn_net_app(net);
    tn_symbol *x = NULL;
    tn_status st;

    if (!app)
        return TN_E_STATE;
    if (net->graph) {
        tn_symbol_retain(net->graph);
        *out = net->graph;
        return TN_OK;
    }
    if (!tn_net_layers(net))
        return tnn_fail(app, TN_E_STATE, "net %s has no layers", net->path);
    st = tn_symbol_variable(app->ctx, "data", &x);
    if (!st)
        st = layers_symbol(app, net, &x);
    if (st) {
        tn_symbol_release(x);
        return tnn_check(app, st, "net %s", net->path);
    }
    *out = x;
    return TN_OK;
}

tn_symbol *tn_net_symbol(tn_net *net)
{
    tn_symbol *symbol = NULL;

    if (!tnn_net_app(net))
        return NULL;
    if (!net->model)
        return tnn_net_symbol(net, &symbol) ? NULL : symbol;
    tn_symbol_retain(symbol = tnn_model_symbol(net->model));
    return symbol;
}

const char *tn_net_input(const tn_net *net)
{
    if (!tnn_net_app(net))
        return NULL;
    return net->model ? tnn_model_input(net->model) : net->graph ? net->data_name : "data";
}

/* ---- the program ---- */

void tnn_net_uncache(tn_net *net)
{
    tn_cached_op_release(net->cached);
    net->cached = NULL;
    free(net->cached_params);
    free(net->cached_in);
    net->cached_params = NULL;
    net->cached_in = NULL;
    net->cached_count = 0;
}

/* Which parameter is input `name`; NULL: the data. */
static tnn_param *input_param(const tn_net *net, const char *name)
{
    for (size_t i = 0; i < net->param_count; i++)
        if (!strcmp(net->params[i]->full, name))
            return net->params[i];
    return NULL;
}

/* Also the names of those that are parameters, NULL-ended: the caller's to free, in front of `*names`. */
static tn_status cached_inputs(tn_app *app, tn_net *net, tn_symbol *symbol, char ***names_out,
                               const char ***params)
{
    char **names = NULL;
    size_t count = 0, known = 0;
    tn_status st = tn_symbol_list(symbol, TN_LIST_INPUTS, &count, &names);

    if (st)
        return tnn_check(app, st, "net %s", net->path);
    if (!(net->cached_params = tnn_alloc(app, count, sizeof(tnn_param *))) ||
        !(net->cached_in = tnn_alloc(app, count, sizeof(tn_array *))) ||
        !(*params = tnn_alloc(app, count + 1, sizeof(**params))))
        st = TN_E_NOMEM;
    net->cached_count = st ? 0 : count;
    for (size_t i = 0; i < net->cached_count; i++)
        if ((net->cached_params[i] = input_param(net, names[i])) != NULL)
            (*params)[known++] = names[i];
    *names_out = names;
    return st;
}

tn_status tnn_net_cached(tn_net *net)
{
    tn_app *app = tnn_net_app(net);
    tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options)};
    tn_symbol *symbol = NULL;
    char **names = NULL;
    const char **params = NULL;
    tn_status st;

    if (!app)
        return TN_E_STATE;
    if (net->cached)
        return TN_OK;
    o.static_alloc = net->hybrid_options.static_alloc != 0;
    o.static_shape = net->hybrid_options.static_shape != 0;
    o.forward_bulk = (uint32_t)net->hybrid_options.forward_bulk;
    o.backward_bulk = (uint32_t)net->hybrid_options.backward_bulk;
    o.inline_limit = (uint32_t)net->hybrid_options.inline_limit;
    if (net->graph && !net->hybrid)
        o.inline_limit = UINT32_MAX; /* a graph is a program, or run operator by operator */
    if (!(st = tnn_net_collect(net)) && !(st = tnn_net_symbol(net, &symbol)) &&
        !(st = cached_inputs(app, net, symbol, &names, &params))) {
        o.params = params;
        st = tnn_check(app, tn_cached_op_create(app->ctx, symbol, &o, &net->cached), "net %s", net->path);
    }
    free(params);
    tn_free(names);
    tn_symbol_release(symbol);
    if (st)
        tnn_net_uncache(net);
    return st;
}

void tn_net_hybridize_(tn_net *net, const tn_hybridize_options *options)
{
    tn_app *app = tnn_net_app(net);
    tn_hybridize_options o = {0};

    tnn_options_copy(&o, sizeof o, options);
    if (!app || net->model)
        return; /* a loaded one is a program already */
    if (o.static_shape && !o.static_alloc) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_hybridize at %s:%d: .static_shape needs .static_alloc",
                       o.file ? o.file : "?", o.line);
        return;
    }
    if (o.inline_limit < 0 || o.forward_bulk < 0 || o.backward_bulk < 0) {
        (void)tnn_fail(app, TN_E_ARG,
                       "tn_net_hybridize at %s:%d: .inline_limit, .forward_bulk and "
                       ".backward_bulk are counts",
                       o.file ? o.file : "?", o.line);
        return;
    }
    tnn_net_uncache(net);
    net->hybrid = !o.off;
    net->hybrid_options = o;
}

/* ---- files ---- */

/* MXNet's order: as the symbol lists them, arguments first. */
static tn_status full_list(tn_app *app, tn_net *net, tn_params *params)
{
    tn_symbol *symbol = NULL;
    tn_status st = tnn_net_symbol(net, &symbol);

    for (int32_t what = TN_LIST_ARGUMENTS; !st && what <= TN_LIST_AUX; what++) {
        char **names = NULL;
        size_t count = 0;

        st = tn_symbol_list(symbol, what, &count, &names);
        for (size_t i = 0; !st && i < count; i++) {
            const tnn_param *p = input_param(net, names[i]);
            char *name;

            if (!p)
                continue;
            name = tnn_format(app, "%s:%s", what == TN_LIST_AUX ? "aux" : "arg", p->full);
            st = name ? tn_params_add(params, name, p->array) : TN_E_NOMEM;
            free(name);
        }
        tn_free(names);
    }
    tn_symbol_release(symbol);
    return st;
}

tn_status tnn_net_params(tn_net *net, bool full_names, tn_params **out)
{
    tn_app *app = tnn_net_app(net);
    tn_params *params = NULL;
    tn_status st;

    if (!app)
        return TN_E_STATE;
    if (tnn_net_valued(net))
        return app->status;
    st = tn_params_create(&params);
    if (!st && full_names)
        st = full_list(app, net, params);
    for (size_t i = 0; !st && !full_names && i < net->param_count; i++)
        st = tn_params_add(params, net->params[i]->name, net->params[i]->array);
    if (st) {
        tn_params_destroy(params);
        return tnn_check(app, st, "net %s", net->path);
    }
    *out = params;
    return TN_OK;
}

void tn_net_save(tn_net *net, const char *path)
{
    tn_app *app = tnn_net_app(net);
    tn_params *params = NULL;

    if (!app)
        return;
    if (net->model)
        (void)tnn_check(app, tn_params_save(tnn_model_params(net->model), path), "%s", path);
    else if (!tnn_net_params(net, false, &params))
        (void)tnn_check(app, tn_params_save(params, path), "%s", path);
    tn_params_destroy(params);
}

tn_status tnn_net_take(tn_net *net, const tn_params *params, const char *what)
{
    tn_app *app = tnn_net_app(net);

    if (!app)
        return TN_E_STATE;
    if (tnn_net_collect(net))
        return app->status;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < net->param_count; i++) {
            tnn_param *p = net->params[i];
            tn_array *array = NULL;

            if (tn_params_get(params, p->name, &array) ==
                TN_E_KEY) /* an exported file has the graph's names */
                (void)tnn_check(app, tn_params_get(params, p->full, &array), "%s", what);
            if (app->status)
                return app->status;
            (void)(pass ? tnn_param_set(app, p, array) : tnn_param_fits(app, p, array));
            tn_array_release(array);
            if (app->status)
                return app->status;
        }
    return TN_OK;
}

static tn_status params_take(tn_app *app, tn_net *net, const tn_params *params, const char *path)
{
    if (tnn_net_collect(net))
        return app->status;
    if (tn_params_count(params) != net->param_count)
        return tnn_fail(app, TN_E_FORMAT, "%s holds %zu arrays, net %s has %zu parameters", path,
                        tn_params_count(params), net->path, net->param_count);
    return tnn_net_take(net, params, path);
}

void tn_net_load_params(tn_net *net, const char *path)
{
    tn_app *app = tnn_net_app(net);
    tn_params *params = NULL;

    if (!app)
        return;
    if (net->model)
        (void)tnn_fail(app, TN_E_STATE, "net %s was loaded: it has its values", net->path);
    else if (!tnn_check(app, tn_params_load(app->ctx, path, NULL, &params), "%s", path))
        (void)params_take(app, net, params, path);
    tn_params_destroy(params);
}

void tn_net_export(tn_net *net, const char *prefix)
{
    tn_app *app = tnn_net_app(net);
    char *json = NULL, *file = NULL;
    tn_params *params = NULL;
    tn_symbol *symbol = NULL;

    if (!app)
        return;
    if (!prefix) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_export: the files' prefix is missing");
        return;
    }
    if (!(json = tnn_format(app, "%s-symbol.json", prefix)) ||
        !(file = tnn_format(app, "%s-0000.params", prefix)))
        goto cleanup;
    if (!net->model && (tnn_net_symbol(net, &symbol) || tnn_net_params(net, true, &params)))
        goto cleanup;
    if (net->graph_file) {
        tn_symbol_release(symbol);
        tn_symbol_retain(symbol = net->graph_file);
    }
    if (!tnn_check(app, tn_symbol_save(symbol ? symbol : tnn_model_symbol(net->model), json), "%s", json))
        (void)tnn_check(app, tn_params_save(params ? params : tnn_model_params(net->model), file), "%s",
                        file);

cleanup:
    tn_symbol_release(symbol);
    tn_params_destroy(params);
    free(json);
    free(file);
}

int tn_net_sha256(tn_net *net, char out_hex[65])
{
    tn_app *app = tnn_net_app(net);
    tn_params *params = NULL;
    tn_status st = TN_E_STATE;

    if (out_hex)
        out_hex[0] = '\0';
    if (!app)
        return 0;
    if (!out_hex)
        return !tnn_fail(app, TN_E_ARG, "tn_net_sha256: out_hex is NULL");
    if (net->model)
        st = tnn_check(app, tn_params_sha256(tnn_model_params(net->model), out_hex), "net %s", net->path);
    else if (!(st = tnn_net_params(net, true, &params)))
        st = tnn_check(app, tn_params_sha256(params, out_hex), "net %s", net->path);
    tn_params_destroy(params);
    return !st;
}
