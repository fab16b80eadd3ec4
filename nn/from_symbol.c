/*
 * Nets from symbol files, to be trained: the file's graph up to the class scores. A softmax at its head is
 * taken off, because the loss has it; what is exported has it again. Every argument but the data is a
 * parameter, known by the end of its name as MXNet's initialisers do.
 */
#include "internal.h"

#include <jansson.h>
#include <sha256.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a file's graph says of itself ---- */

static const char *attr_of(const json_t *node, const char *key)
{
    const char *text = json_string_value(json_object_get(json_object_get(node, "attrs"), key));

    return text ? text : "";
}

static bool is_set(const char *text)
{
    return !strcmp(text, "True") || !strcmp(text, "true") || !strcmp(text, "1");
}

/* Along the classes of (N, classes)? */
static bool along_classes(const json_t *node)
{
    const char *axis = attr_of(node, "axis");

    return !*axis || !strcmp(axis, "-1") || !strcmp(axis, "1");
}

/* What an output layer gives, and whether its gradient is that of softmax cross-entropy. */
static tnn_head head_kind(const json_t *node)
{
    static const struct {
        const char *op;
        tnn_head head;
    } rows[] = {
        {"SoftmaxOutput", TNN_HEAD_OUTPUT},
        {"Softmax", TNN_HEAD_OUTPUT},
        {"softmax", TNN_HEAD_SOFTMAX},
        {"SoftmaxActivation", TNN_HEAD_SOFTMAX},
        {"log_softmax", TNN_HEAD_LOG_SOFTMAX},
        {"LinearRegressionOutput", TNN_HEAD_OTHER},
        {"LogisticRegressionOutput", TNN_HEAD_OTHER},
        {"MAERegressionOutput", TNN_HEAD_OTHER},
        {"SVMOutput", TNN_HEAD_OTHER},
        {"MakeLoss", TNN_HEAD_OTHER},
        {"make_loss", TNN_HEAD_OTHER},
    };
    const char *op = json_string_value(json_object_get(node, "op"));
    tnn_head head = TNN_HEAD_SCORES;

    for (size_t i = 0; op && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(op, rows[i].op))
            head = rows[i].head;
    if ((head == TNN_HEAD_SOFTMAX || head == TNN_HEAD_LOG_SOFTMAX) && !along_classes(node))
        head = TNN_HEAD_OTHER;
    return head;
}

/* Attributes of SoftmaxOutput that change its gradient. */
static const char *unlike_loss(const json_t *node)
{
    static const char *const switches[] = {"multi_output", "use_ignore", "preserve_shape", "out_grad"};
    const char *scale = attr_of(node, "grad_scale"), *smooth = attr_of(node, "smooth_alpha");

    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        if (is_set(attr_of(node, switches[i])))
            return switches[i];
    if (*scale && strtod(scale, NULL) != 1)
        return "grad_scale";
    return *smooth && strtod(smooth, NULL) != 0 ? "smooth_alpha" : NULL;
}

/* Borrowed from `root`; NULL: several heads. */
static const json_t *head_node(const json_t *root)
{
    const json_t *heads = json_object_get(root, "heads");
    const json_t *at = json_array_get(json_array_get(heads, 0), 0);

    if (json_array_size(heads) != 1)
        return NULL;
    return json_array_get(json_object_get(root, "nodes"), (size_t)json_integer_value(at));
}

static json_t *graph_json(tn_app *app, tn_symbol *symbol)
{
    char *text = NULL;
    json_t *root = NULL;

    if (tnn_check(app, tn_symbol_to_json(symbol, &text), "%s", ""))
        return NULL;
    if (!(root = json_loads(text, 0, NULL)))
        (void)tnn_no_memory(app);
    tn_free(text);
    return root;
}

/* Of one head among several: class scores are those of a net with one output. */
static tnn_head head_among(const json_t *root, const json_t *entry, size_t count)
{
    const size_t index = (size_t)json_integer_value(json_array_get(entry, 0));
    const json_t *node = json_array_get(json_object_get(root, "nodes"), index);
    const tnn_head head = head_kind(node);

    if (json_integer_value(json_array_get(entry, 1)) != 0)
        return TNN_HEAD_OTHER;
    return count > 1 && head == TNN_HEAD_SCORES ? TNN_HEAD_OTHER : head;
}

tn_status tnn_heads_of(tn_app *app, tn_symbol *symbol, size_t count, tnn_head *heads)
{
    json_t *root = graph_json(app, symbol);
    const json_t *list = json_object_get(root, "heads");

    for (size_t i = 0; i < count; i++)
        heads[i] = root ? head_among(root, json_array_get(list, i), count) : TNN_HEAD_OTHER;
    json_decref(root);
    return app->status;
}

/* ---- parameters ---- */

static const struct {
    const char *suffix;
    tnn_role role;
} suffixes[] = {
    {"weight", TNN_WEIGHT},    {"bias", TNN_BIAS},          {"gamma", TNN_GAMMA},     {"beta", TNN_BETA},
    {"moving_mean", TNN_MEAN}, {"running_mean", TNN_MEAN},  {"moving_avg", TNN_MEAN}, {"moving_var", TNN_VAR},
    {"running_var", TNN_VAR},  {"moving_inv_var", TNN_VAR},
};

const char *tnn_role_of(const char *name, tnn_role *role)
{
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (tnn_ends_with(name, suffixes[i].suffix)) {
            *role = suffixes[i].role;
            return name + strlen(name) - strlen(suffixes[i].suffix);
        }
    return NULL;
}

bool tnn_variable_has(tn_symbol *internals, const char *name, const char *key)
{
    const char *text = NULL;
    tn_symbol *variable = NULL;
    uint32_t index = 0;
    bool has;

    if (!tn_symbol_find(internals, name, &index) && !tn_symbol_output(internals, index, &variable))
        (void)tn_symbol_attr_get(variable, key, &text);
    has = text && *text;
    tn_symbol_release(variable); /* whose text it is */
    return has;
}

const char *const tnn_parameter_keys[] = {"__lr_mult__", "__init__", NULL};

static bool is_parameter(tn_symbol *internals, const char *name)
{
    const char *const *key = tnn_parameter_keys;

    while (*key && !tnn_variable_has(internals, name, *key))
        key++;
    return *key;
}

/* As MXNet writes it. */
static double factor_of(const char *text)
{
    const double factor = text && *text ? strtod(text, NULL) : 1;

    return factor >= 0 && factor <= 1e6 ? factor : 1;
}

void tnn_variable_read(tn_app *app, const char *name, const char *lr, const char *wd, const char *init,
                       tnn_variable *out)
{
    static const char constant[] = "Constant_"; /* Gluon's, whose values are in the file alone */

    memset(out, 0, sizeof *out);
    out->lr_factor = factor_of(lr);
    out->wd_factor = factor_of(wd);
    if (!init || !*init)
        return;
    out->begins = tnn_init_parse(init, &out->init);
    out->strange = !out->begins;
    if (out->strange && strncmp(init, constant, sizeof constant - 1) != 0)
        tnn_warn(app, "variable %.80s: its initialiser %.100s is none that is here", name, init);
}

static tn_status variable_take(tn_app *app, tnn_param *p, tn_symbol *symbol, bool *strange)
{
    static const char *const keys[] = {"__lr_mult__", "__wd_mult__", "__init__"};
    const char *texts[3] = {NULL};
    tnn_variable variable;

    for (size_t i = 0; i < 3; i++)
        if (tn_symbol_attr_get(symbol, keys[i], &texts[i]))
            texts[i] = NULL;
    tnn_variable_read(app, p->full, texts[0], texts[1], texts[2], &variable);
    p->lr_factor = variable.lr_factor;
    p->wd_factor = variable.wd_factor;
    *strange = variable.strange;
    if (variable.begins && (p->init = tnn_alloc(app, 1, sizeof *p->init)))
        *p->init = variable.init;
    return app->status;
}

tn_status tnn_graph_param(tn_app *app, tn_net *net, tn_symbol *internals, const char *name, bool aux)
{
    tn_symbol *variable = NULL;
    bool strange = false;
    uint32_t index = 0;
    tnn_param *p;
    tn_status st;

    if (!(p = tnn_alloc(app, 1, sizeof *p)))
        return TN_E_NOMEM;
    net->params[net->param_count++] = p;
    p->aux = p->fixed = aux;
    p->lr_factor = p->wd_factor = 1;
    p->mode = TN_MODE_WRITE;
    p->ndim = -1;
    if (!(p->name = tnn_strdup(app, name)) || !(p->full = tnn_strdup(app, name)))
        return TN_E_NOMEM;
    if (!(st = tn_symbol_find(internals, name, &index)) &&
        !(st = tn_symbol_output(internals, index, &variable)))
        (void)variable_take(app, p, variable, &strange);
    tn_symbol_release(variable);
    if (app->status)
        return app->status;
    if (!tnn_role_of(name, &p->role))
        p->role = is_parameter(internals, name) && !strange ? TNN_WEIGHT : TNN_ROLE_UNKNOWN;
    return tnn_check(app, st, "%s", net->path);
}

/* The same; the name is to say what it is. */
static tn_status param_add(tn_app *app, tn_net *net, tn_symbol *internals, const char *name, bool aux)
{
    if (tnn_graph_param(app, net, internals, name, aux) ||
        net->params[net->param_count - 1]->role != TNN_ROLE_UNKNOWN || is_parameter(internals, name))
        return app->status;
    return tnn_fail(app, TN_E_UNSUPPORTED,
                    "%s: by its name the argument \"%.80s\" is no input, and none of the parameters that can "
                    "be trained (…_weight, …_bias, …_gamma, …_beta, …_moving_mean, …_moving_var)%s",
                    net->path, name,
                    tnn_ends_with(name, "label") ? "; the training brings loss and labels itself: end the "
                                                   "graph in class scores or in SoftmaxOutput"
                                                 : "");
}

/* Every argument is an input that is no parameter, and whose name is neither a parameter's nor a label's. */
static bool is_input(tn_symbol *internals, const char *name)
{
    static const char *const others[] = {"label", "parameters", "alpha"};
    tnn_role role;

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (tnn_ends_with(name, others[i]))
            return false;
    return !tnn_role_of(name, &role) && !is_parameter(internals, name);
}

/* In order of appearance, as a net of layers has them: its number decides a parameter's first values. */
static tn_status params_make(tn_app *app, tn_net *net)
{
    tn_symbol *internals = NULL;
    char **all = NULL, **aux = NULL;
    size_t count = 0, aux_count = 0;
    tn_status st = tn_symbol_list(net->graph, TN_LIST_INPUTS, &count, &all);

    if (!st)
        st = tn_symbol_list(net->graph, TN_LIST_AUX, &aux_count, &aux);
    if (!st)
        st = tn_symbol_internals(net->graph, &internals);
    if (tnn_check(app, st, "%s", net->path))
        goto cleanup;
    if (!(net->params = tnn_alloc(app, count + 1, sizeof(tnn_param *))))
        st = TN_E_NOMEM;
    net->input_count = 0;
    for (size_t i = 0; !st && i < count; i++) {
        if (tnn_is_listed(aux, aux_count, all[i]) || !is_input(internals, all[i]))
            st = param_add(app, net, internals, all[i], tnn_is_listed(aux, aux_count, all[i]));
        else if (net->input_count < TNN_VALUES_MAX)
            st = (net->input_names[net->input_count++] = tnn_strdup(app, all[i])) ? TN_OK : TN_E_NOMEM;
        else
            st = tnn_fail(app, TN_E_UNSUPPORTED, "%s has more than %d inputs", net->path, TNN_VALUES_MAX);
    }
    if (!st && !net->input_count)
        st = tnn_fail(app, TN_E_FORMAT, "%s has no input for data", net->path);

cleanup:
    tn_symbol_release(internals);
    tn_free(all);
    tn_free(aux);
    return st;
}

/* ---- the head ---- */

static tn_status head_take_off(tn_app *app, tn_net *net, const json_t *node)
{
    const char *op = json_string_value(json_object_get(node, "op")), *unlike;
    tn_symbol *inputs = NULL;
    tn_status st;

    net->head = head_kind(node);
    if (net->head == TNN_HEAD_OTHER || !op)
        return tnn_fail(app, TN_E_UNSUPPORTED,
                        "%s ends in %s: only class scores, softmax or SoftmaxOutput can be trained",
                        net->path, op ? op : "nothing");
    if (net->head == TNN_HEAD_OUTPUT && (unlike = unlike_loss(node)))
        return tnn_fail(app, TN_E_UNSUPPORTED,
                        "%s: SoftmaxOutput with %s=%s has another gradient than the loss", net->path, unlike,
                        attr_of(node, unlike));
    if (net->head == TNN_HEAD_SCORES) {
        tn_symbol_retain(net->graph_file);
        net->graph = net->graph_file;
        return TN_OK;
    }
    if (!(st = tn_symbol_children(net->graph_file, &inputs)))
        st = inputs ? tn_symbol_output(inputs, 0, &net->graph) : TN_E_FORMAT;
    tn_symbol_release(inputs);
    return tnn_check(app, st, "%s", net->path);
}

static tn_status graph_hash(tn_app *app, tn_net *net)
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    char *text = NULL;
    SHA256_CTX sha;

    if (tnn_symbol_text(app, net->graph_file, net->path, &text))
        return app->status;
    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)text, strlen(text));
    SHA256Final(digest, &sha);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
        (void)snprintf(net->graph_hash + 2 * i, 3, "%02x", digest[i]);
    tn_free(text);
    return TN_OK;
}

static tn_status graph_take(tn_app *app, tn_net *net, const char *json)
{
    const json_t *node;
    json_t *root;

    if (tnn_symbol_take(app, json, &net->graph_file))
        return app->status;
    if (!(root = graph_json(app, net->graph_file)))
        return app->status;
    if (!(node = head_node(root)))
        (void)tnn_fail(app, TN_E_UNSUPPORTED, "%s has %zu outputs; one is trained", json,
                       json_array_size(json_object_get(root, "heads")));
    else if (!head_take_off(app, net, node) && !params_make(app, net))
        (void)graph_hash(app, net);
    json_decref(root);
    return app->status;
}

tn_net *tn_net_from_symbol(tn_app *app, const char *json)
{
    tn_net *net;

    if (!tnn_ok(app))
        return NULL;
    if (!json) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_from_symbol: a file's name is missing");
        return NULL;
    }
    if (!(net = tnn_net_create(app, NULL, "model", "")))
        return NULL;
    free(net->path);
    if (!(net->path = tnn_strdup(app, json)))
        return NULL;
    return graph_take(app, net, json) ? NULL : net;
}

/* ---- shapes ---- */

static tn_status known_list(tn_app *app, const tn_net *net, const tnn_shape *in, tn_known **out)
{
    tn_known *known = tnn_alloc(app, net->param_count + net->input_count, sizeof *known);

    if (!known)
        return TN_E_NOMEM;
    for (size_t i = 0; i < net->input_count; i++)
        known[i] = (tn_known){
            .name = tnn_net_input_name(net, i), .shape = in[i].dims, .ndim = in[i].ndim, .dtype = TN_F32};
    for (size_t i = 0; i < net->param_count; i++) {
        const tnn_param *p = net->params[i];

        known[net->input_count + i] =
            (tn_known){.name = p->full, .shape = p->shape, .ndim = p->array ? p->ndim : -1, .dtype = TN_F32};
    }
    *out = known;
    return TN_OK;
}

static tn_status param_take_shape(tn_app *app, tn_net *net, const tn_known *found)
{
    tnn_param *p = NULL;

    for (size_t i = 0; i < net->param_count && !p; i++)
        if (!strcmp(net->params[i]->full, found->name))
            p = net->params[i];
    if (!p)
        return TN_OK; /* the data */
    if (found->ndim < 0 || found->ndim > TNN_NDIM_MAX)
        return tnn_fail(app, TN_E_SHAPE, "%s: parameter %s has %d dimensions, at most %d are allowed",
                        net->path, p->full, found->ndim, TNN_NDIM_MAX);
    if (found->dtype != TN_F32 && found->dtype >= 0)
        return tnn_fail(app, TN_E_DTYPE, "%s: parameter %s is %s; float32 is trained", net->path, p->full,
                        tn_dtype_name(found->dtype));
    p->ndim = found->ndim;
    memcpy(p->shape, found->shape, (size_t)found->ndim * sizeof *p->shape);
    return TN_OK;
}

tn_status tnn_graph_infer(tn_net *net, const tnn_shape *in)
{
    static const int32_t lists[] = {TN_LIST_ARGUMENTS, TN_LIST_AUX};
    const size_t count = net->param_count + net->input_count;
    tn_app *app = net->object.app;
    tn_inferred *found = NULL;
    tn_known *known = NULL, row;
    char text[TNN_SHAPE_TEXT];

    if (known_list(app, net, in, &known))
        return app->status;
    if (!tnn_check(app, tn_symbol_infer(net->graph, count, known, 0, &found), "%s with an input of %s%s",
                   net->path, tnn_shape_text(in[0].ndim, in[0].dims, text),
                   net->input_count > 1 ? " and others" : "")) {
        for (size_t list = 0; list < 2; list++)
            for (size_t i = 0; !app->status && i < count && !tn_inferred_at(found, lists[list], i, &row); i++)
                (void)param_take_shape(app, net, &row);
        if (!app->status && !tn_inferred_at(found, TN_LIST_OUTPUTS, 0, &row) && row.ndim <= TNN_NDIM_MAX) {
            memcpy(net->in, in, net->input_count * sizeof *in);
            net->out[0] = tnn_shape_of(row.ndim, row.shape);
        }
    }
    tn_inferred_destroy(found);
    free(known);
    return app->status;
}

int64_t tnn_net_width(const tn_net *net)
{
    return net->out[0].ndim == 2 ? net->out[0].dims[1] : -1;
}
