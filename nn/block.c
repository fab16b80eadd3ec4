/*
 * A symbol's file as a net that functions call: MXNet's SymbolBlock. Its function runs the nodes one by one
 * over values, so it is traced, trained and exported with the net around it. A parameter has the
 * name of the file's variable; the end of that name says what it is: a weight, a bias, a mean ….
 */
#include "run.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 65536 };

typedef struct block {
    tnn_object object;
    tn_symbol *symbol;
    tn_params *params; /* NULL: values come from tn_net_init */
    json_t *root;
    const json_t *nodes;
    size_t count, total;
    uint32_t *first;          /* per node: its first value; `count` of them, then `total` */
    tnn_shape *shapes;        /* per node that is a variable, once they are known */
    tnn_variable **variables; /* per node; NULL: it says nothing of how it begins and is trained */
    bool shaped;
} block;

static void block_destroy(tnn_object *object)
{
    block *b = (block *)object;

    tn_symbol_release(b->symbol);
    tn_params_destroy(b->params);
    json_decref(b->root);
    for (size_t i = 0; b->variables && i < b->count; i++)
        free(b->variables[i]);
    free(b->variables);
    free(b->first);
    free(b->shapes);
    free(b);
}

static const char *text_of(const json_t *node, const char *key)
{
    const char *text = json_string_value(json_object_get(node, key));

    return text ? text : "";
}

static size_t whole_at(const json_t *list, size_t i)
{
    return (size_t)json_integer_value(json_array_get(list, i));
}

/* ---- making ---- */

/* How many values of each node are read, and where they lie. */
static tn_status values_number(tn_app *app, block *b)
{
    const json_t *heads = json_object_get(b->root, "heads"), *entry;
    size_t i, k;

    if (!(b->first = tnn_alloc(app, b->count + 1, sizeof *b->first)) ||
        !(b->shapes = tnn_alloc(app, b->count + 1, sizeof *b->shapes)))
        return app->status;
    for (i = 0; i <= b->count; i++)
        json_array_foreach(i < b->count ? json_object_get(json_array_get(b->nodes, i), "inputs") : heads, k,
                           entry)
        {
            const size_t from = whole_at(entry, 0), output = whole_at(entry, 1);

            if (from >= b->count || output >= TNN_LAYER_VALUES)
                return tnn_fail(app, TN_E_UNSUPPORTED, "a node of the graph has %zu outputs", output + 1);
            if (b->first[from] < output + 1)
                b->first[from] = (uint32_t)output + 1;
        }
    for (i = 0; i <= b->count; i++) {
        const uint32_t values = b->first[i];

        b->first[i] = (uint32_t)b->total;
        b->total += i < b->count && !values ? 1 : values;
    }
    return TN_OK;
}

static const char *attr_of(const json_t *node, const char *key)
{
    return text_of(json_object_get(node, "attrs"), key);
}

static tn_status variables_read(tn_app *app, block *b)
{
    if (!(b->variables = tnn_alloc(app, b->count + 1, sizeof(tnn_variable *))))
        return app->status;
    for (size_t i = 0; i < b->count && !app->status; i++) {
        const json_t *node = json_array_get(b->nodes, i);
        const char *lr = attr_of(node, "__lr_mult__"), *wd = attr_of(node, "__wd_mult__"),
                   *init = attr_of(node, "__init__");

        if ((*lr || *wd || *init) && !strcmp(text_of(node, "op"), "null") &&
            (b->variables[i] = tnn_alloc(app, 1, sizeof(tnn_variable))))
            tnn_variable_read(app, text_of(node, "name"), lr, wd, init, b->variables[i]);
    }
    return app->status;
}

static tn_status graph_read(tn_app *app, block *b, const char *json)
{
    char *text = NULL;

    if (tnn_symbol_take(app, json, &b->symbol) ||
        tnn_check(app, tn_symbol_to_json(b->symbol, &text), "%s", json))
        return app->status;
    b->root = json_loads(text, 0, NULL);
    tn_free(text);
    b->nodes = json_object_get(b->root, "nodes");
    b->count = json_array_size(b->nodes);
    if (!b->root)
        return tnn_no_memory(app);
    if (b->count > NODES_MAX)
        return tnn_fail(app, TN_E_UNSUPPORTED, "%s has %zu nodes, at most %d are played", json, b->count,
                        NODES_MAX);
    return values_number(app, b) ? app->status : variables_read(app, b);
}

static bool is_parameter(const json_t *node)
{
    const char *const *key = tnn_parameter_keys;

    while (*key && !*attr_of(node, *key))
        key++;
    return *key;
}

/* Which input of the net a variable is; input_count: none. */
static size_t input_of(const tn_net *net, const char *name)
{
    size_t i = 0;

    while (i < net->input_count && strcmp(net->input_names[i], name) != 0)
        i++;
    return i;
}

static bool has_variable(const block *b, const char *name)
{
    for (size_t i = 0; i < b->count; i++) {
        const json_t *node = json_array_get(b->nodes, i);

        if (!strcmp(text_of(node, "op"), "null") && !strcmp(text_of(node, "name"), name))
            return true;
    }
    return false;
}

/* The names of its inputs: the given ones, or the variables whose names are no parameters'. */
static tn_status inputs_take(tn_app *app, block *b, tn_net *net, const tn_block_options *o)
{
    size_t given = 0;
    tnn_role role;

    while (given < TNN_VALUES_MAX && o->inputs[given])
        given++;
    for (size_t i = 0; i < given; i++)
        if (!(net->input_names[i] = tnn_strdup(app, o->inputs[i])))
            return app->status;
    net->input_count = given;
    for (size_t i = 0; i < b->count && !given; i++) {
        const json_t *node = json_array_get(b->nodes, i);

        if (strcmp(text_of(node, "op"), "null") != 0 || tnn_role_of(text_of(node, "name"), &role) ||
            is_parameter(node))
            continue;
        if (net->input_count == TNN_VALUES_MAX)
            return tnn_fail(app, TN_E_UNSUPPORTED, "%s has more than %d inputs", net->path, TNN_VALUES_MAX);
        if (!(net->input_names[net->input_count++] = tnn_strdup(app, text_of(node, "name"))))
            return app->status;
    }
    for (size_t i = 0; i < given; i++) {
        if (input_of(net, o->inputs[i]) < i)
            return tnn_fail(app, TN_E_KEY, "%s: input \"%.80s\" is given twice", net->path, o->inputs[i]);
        if (!has_variable(b, o->inputs[i]))
            return tnn_fail(app, TN_E_KEY, "%s has no variable \"%.80s\"", net->path, o->inputs[i]);
    }
    return net->input_count ? TN_OK : tnn_fail(app, TN_E_FORMAT, "%s has no input", net->path);
}

/* ---- a call ---- */

static void shape_take(block *b, const tn_known *row)
{
    for (size_t i = 0; i < b->count; i++)
        if (!strcmp(text_of(json_array_get(b->nodes, i), "name"), row->name) && row->ndim <= TNN_NDIM_MAX)
            b->shapes[i] = tnn_shape_of(row->ndim, row->shape);
}

/* Shapes of the parameters, from those of the first inputs. */
static tn_status shapes_find(tn_app *app, block *b, const tn_net *net, const tn_x *in)
{
    static const int32_t lists[] = {TN_LIST_ARGUMENTS, TN_LIST_AUX};
    tn_known known[TNN_VALUES_MAX], row;
    tn_inferred *found = NULL;

    for (size_t i = 0; i < net->input_count; i++) {
        const tnn_shape *s = tnn_value_shape(in[i]);

        known[i] =
            (tn_known){.name = net->input_names[i], .shape = s->dims, .ndim = s->ndim, .dtype = s->dtype};
    }
    if (tnn_check(app, tn_symbol_infer(b->symbol, net->input_count, known, 0, &found), "%s", net->path))
        return app->status;
    for (size_t list = 0; list < 2; list++)
        for (size_t i = 0; !tn_inferred_at(found, lists[list], i, &row); i++)
            shape_take(b, &row);
    tn_error_clear();
    tn_inferred_destroy(found);
    b->shaped = true;
    return TN_OK;
}

/* "conv0" of "conv0_weight"; 0: the name is no parameter's. */
static size_t stem_length(const char *name, const char **suffix, tnn_role *role)
{
    const char *at = tnn_role_of(name, role);

    *suffix = at;
    return at && at > name + 1 && at[-1] == '_' && at - name <= 128 ? (size_t)(at - name) - 1 : 0;
}

static tn_status param_add(tn_app *app, const block *b, const tn_net *net, tnn_spec *s, size_t at,
                           const char *suffix, tnn_role role)
{
    const tnn_variable *variable = b->variables[at];
    const tnn_shape *shape = &b->shapes[at];
    const uint32_t k = s->param_count++;

    if (shape->ndim < 1 || shape->ndim > TNN_NDIM_MAX)
        return tnn_fail(app, TN_E_SHAPE, "%s: parameter %s has %d dimensions, 1 to %d are allowed", net->path,
                        text_of(json_array_get(b->nodes, at), "name"), shape->ndim, TNN_NDIM_MAX);
    s->params[k].variable = variable;
    s->params[k].role = !suffix && variable && variable->strange ? TNN_ROLE_UNKNOWN : role;
    s->params[k].suffix = suffix;
    s->params[k].fixed = role == TNN_MEAN || role == TNN_VAR;
    s->params[k].ndim = shape->ndim;
    memcpy(s->params[k].shape, shape->dims, (size_t)shape->ndim * sizeof *shape->dims);
    return TN_OK;
}

/* A parameter whose name does not say what it is. */
static tn_status own_run(tn_app *app, const block *b, const tn_net *net, size_t at, tn_x x, tn_x *value)
{
    tnn_spec s = {.stem = TNN_OP_OWN,
                  .op = TNN_OP_OWN,
                  .file = net->path,
                  .line = (int32_t)at,
                  .name = text_of(json_array_get(b->nodes, at), "name")};

    if (!param_add(app, b, net, &s, at, NULL, TNN_WEIGHT))
        (void)tnn_value_params(&s, x, value);
    return app->status;
}

/* A variable, with all whose names begin as its own: they are one layer's. */
static tn_status params_run(tn_app *app, const block *b, const tn_net *net, size_t at, tn_x x, tn_x *values)
{
    const char *name = text_of(json_array_get(b->nodes, at), "name"), *suffix;
    tnn_spec s = {
        .stem = "variable", .op = "variable", .file = net->path, .line = (int32_t)at, .joined = true};
    size_t nodes[TNN_LAYER_PARAMS];
    tn_x made[TNN_LAYER_PARAMS];
    char stem[160];
    tnn_role role;
    const size_t length = stem_length(name, &suffix, &role);

    if (!length && is_parameter(json_array_get(b->nodes, at)))
        return own_run(app, b, net, at, x, &values[b->first[at]]);
    if (!length)
        return tnn_fail(app, TN_E_UNSUPPORTED,
                        "%s: variable \"%.80s\" is neither an input nor a parameter by its name (…_weight, "
                        "…_bias, …_gamma, …_beta, …_moving_mean, …_moving_var)",
                        net->path, name);
    (void)snprintf(stem, sizeof stem, "%.*s", (int)length, name);
    s.name = stem;
    for (size_t i = at; i < b->count && s.param_count < TNN_LAYER_PARAMS; i++) {
        const json_t *node = json_array_get(b->nodes, i);
        const char *other = text_of(node, "name");

        if (strcmp(text_of(node, "op"), "null") != 0 || stem_length(other, &suffix, &role) != length ||
            strncmp(other, name, length) != 0 || input_of(net, other) < net->input_count)
            continue;
        nodes[s.param_count] = i;
        if (param_add(app, b, net, &s, i, suffix, role))
            return app->status;
    }
    if (tnn_value_params(&s, x, made))
        for (uint32_t k = 0; k < s.param_count; k++)
            values[b->first[nodes[k]]] = made[k];
    return app->status;
}

static tn_status node_run(tn_app *app, const block *b, const tn_net *net, size_t at, tn_x *values)
{
    const json_t *node = json_array_get(b->nodes, at), *inputs = json_object_get(node, "inputs"), *text;
    const uint32_t wanted = b->first[at + 1] - b->first[at];
    tn_op_info info = {.struct_size = sizeof info};
    tn_x in[TNN_LAYER_VALUES];
    const char *key;
    tnn_spec s = {.file = net->path, .line = (int32_t)at, .marked = true};
    const size_t count = json_array_size(inputs);

    if (json_object_get(node, "subgraphs") || !count || count > TNN_LAYER_VALUES)
        return tnn_fail(app, TN_E_UNSUPPORTED, "%s: node %s (%s) has %zu inputs%s", net->path,
                        text_of(node, "name"), text_of(node, "op"), count,
                        json_object_get(node, "subgraphs") ? ", and graphs of its own" : "");
    if (tnn_check(app, tn_op_find(app->ctx, text_of(node, "op"), &info), "%s", net->path))
        return app->status;
    tnn_spec_begin(&s, info.name, info.name);
    s.plain = true;
    s.random = info.random != 0;
    json_object_foreach(json_object_get((json_t *)(uintptr_t)node, "attrs"), key, text)
    {
        if (strncmp(key, "__", 2) != 0 && json_string_value(text))
            tnn_spec_attr(&s, key, "%s", json_string_value(text));
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *entry = json_array_get(inputs, i);

        in[i] = values[b->first[whole_at(entry, 0)] + whole_at(entry, 1)];
    }
    if (wanted > 1)
        (void)tnn_value_layer(&s, (uint32_t)count, in, values + b->first[at], wanted);
    else
        values[b->first[at]] = tnn_value_layer(&s, (uint32_t)count, in, NULL, 0);
    return app->status;
}

static void block_run(tn_net *net, const tn_x *in, tn_x *out)
{
    tn_app *app = net->object.app;
    block *b = net->arg;
    tn_x *values;

    if ((!b->shaped && shapes_find(app, b, net, in)) ||
        !(values = tnn_alloc(app, b->total + 1, sizeof(tn_x))))
        return;
    for (size_t i = 0; i < b->count && !app->status; i++) {
        const json_t *node = json_array_get(b->nodes, i);
        const size_t input = input_of(net, text_of(node, "name"));

        if (strcmp(text_of(node, "op"), "null") != 0)
            (void)node_run(app, b, net, i, values);
        else if (input < net->input_count)
            values[b->first[i]] = in[input];
        else if (!values[b->first[i]])
            (void)params_run(app, b, net, i, in[0], values);
    }
    for (size_t i = 0; i < net->output_count && !app->status; i++) {
        const json_t *entry = json_array_get(json_object_get(b->root, "heads"), i);

        out[i] = values[b->first[whole_at(entry, 0)] + whole_at(entry, 1)];
    }
    free(values);
}

tn_net *tn_net_block_(tn_app *app, const char *json, const tn_block_options *options)
{
    tn_block_options o = {0};
    tn_net *net;
    block *b;

    tnn_options_copy(&o, sizeof o, options);
    if (!tnn_ok(app))
        return NULL;
    if (!json || (o.name && !tnn_name_ok(o.name))) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_block at %s:%d: %s", o.file ? o.file : "?", o.line,
                       json ? "a name has 1 to 128 letters, digits, _ and -" : "a file's name is missing");
        return NULL;
    }
    if (!(b = tnn_alloc(app, 1, sizeof *b)))
        return NULL;
    tnn_object_add(app, &b->object, block_destroy);
    if (graph_read(app, b, json) || !(net = tnn_net_create(app, NULL, o.name ? o.name : "block", "")) ||
        (o.params && tnn_check(app, tn_params_load(app->ctx, o.params, NULL, &b->params), "%s", o.params)))
        return NULL;
    net->function = true;
    net->inner = block_run;
    net->arg = b;
    net->values = b->params;
    net->output_count = json_array_size(json_object_get(b->root, "heads"));
    if (net->output_count > TNN_VALUES_MAX) {
        (void)tnn_fail(app, TN_E_UNSUPPORTED, "%s has %zu outputs, at most %d are given", json,
                       net->output_count, TNN_VALUES_MAX);
        return NULL;
    }
    return inputs_take(app, b, net, &o) ? NULL : net;
}
