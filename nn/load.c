/*
 * Models from files: a symbol with its weights, for inference. Free variables are inputs of the net, but for
 * labels of a loss layer, which the program fills in.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

struct tnn_model {
    tn_symbol *symbol;
    tn_params *params;
    tn_program *program;
    tn_array **in; /* one per input of the program */
    uint32_t in_count, out_count;
    uint32_t data[TNN_VALUES_MAX]; /* which of them each input of the net is */
    tnn_head *heads;               /* one per output */
};

void tnn_model_destroy(struct tnn_model *model)
{
    if (!model)
        return;
    tn_program_destroy(model->program);
    tn_params_destroy(model->params);
    tn_symbol_release(model->symbol);
    free(model->in);
    free(model->heads);
    free(model);
}

const tn_params *tnn_model_params(const struct tnn_model *model)
{
    return model->params;
}

tn_symbol *tnn_model_symbol(const struct tnn_model *model)
{
    return model->symbol;
}

tnn_head tnn_model_head(const struct tnn_model *model)
{
    return model->out_count == 1 ? model->heads[0] : TNN_HEAD_OTHER;
}

uint32_t tnn_model_outputs(const struct tnn_model *model)
{
    return model->out_count;
}

const char *tnn_model_output(const struct tnn_model *model, uint32_t index, tnn_head *head)
{
    *head = model->heads[index];
    return tn_program_output(model->program, index);
}

static bool is_label(const char *name)
{
    return tnn_ends_with(name, "label");
}

/* By its name what the file should have had an array for. */
static bool is_param(const char *name)
{
    static const char *const ends[] = {"weight",      "bias",        "gamma",      "beta",  "running_mean",
                                       "running_var", "moving_mean", "moving_var", "alpha", "parameters"};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (tnn_ends_with(name, ends[i]))
            return true;
    return false;
}

/* Input `name` of the program is the next one of the net. */
static tn_status input_add(tn_app *app, tn_net *net, const char *json, const char *name)
{
    struct tnn_model *m = net->model;
    uint32_t at = 0;

    while (at < m->in_count && strcmp(tn_program_input(m->program, at), name))
        at++;
    for (size_t i = 0; i < net->input_count; i++)
        if (at < m->in_count && m->data[i] == at)
            return tnn_fail(app, TN_E_KEY, "%s: input \"%.80s\" is named twice", json, name);
    if (at == m->in_count)
        return tnn_fail(app, TN_E_KEY, "%s has no free input \"%.80s\"%s%s", json, name,
                        m->in_count ? "; it has " : "", m->in_count ? tn_program_input(m->program, 0) : "");
    if (net->input_count == TNN_VALUES_MAX)
        return tnn_fail(app, TN_E_UNSUPPORTED, "%s has more than %d inputs", json, TNN_VALUES_MAX);
    m->data[net->input_count] = at;
    net->input_names[net->input_count] = tnn_strdup(app, name);
    net->input_count++;
    return app->status;
}

/* Those that are named, "a,b"; else all that are no labels. */
static tn_status inputs_find(tn_app *app, tn_net *net, const char *json, const char *names)
{
    struct tnn_model *m = net->model;
    char name[256];

    m->in_count = tn_program_input_count(m->program);
    net->input_count = 0;
    if (!(m->in = tnn_alloc(app, m->in_count, sizeof *m->in)))
        return TN_E_NOMEM;
    for (uint32_t i = 0; !names && !app->status && i < m->in_count; i++)
        if (!is_label(tn_program_input(m->program, i)) && !is_param(tn_program_input(m->program, i)))
            (void)input_add(app, net, json, tn_program_input(m->program, i));
    for (const char *at = names; at && !app->status; at = *at ? at + 1 : NULL) {
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        at += strcspn(at, ",");
        (void)input_add(app, net, json, name);
    }
    if (!net->input_count && !app->status)
        return input_add(app, net, json, "data"); /* says what there is */
    return app->status;
}

/* Inputs that are neither given nor labels have no values. */
static tn_status labels_check(tn_app *app, const tn_net *net, const char *params)
{
    const struct tnn_model *m = net->model;

    for (uint32_t i = 0; i < m->in_count; i++) {
        const char *name = tn_program_input(m->program, i);
        bool given = is_label(name);

        for (size_t k = 0; k < net->input_count; k++)
            given = given || m->data[k] == i;
        if (!given)
            return tnn_fail(app, TN_E_FORMAT, "%s has no array for \"%.80s\"", params, name);
    }
    return TN_OK;
}

/* classes.txt in the folder of the graph. */
static tn_status names_find(tn_app *app, const char *json, struct tnn_names **out)
{
    char *folder = tnn_path_folder(app, json);

    if (folder)
        (void)tnn_names_beside(app, folder, out);
    free(folder);
    return app->status;
}

#define MISSING_MAX 20 /* operators that are named one by one */

static size_t line_add(char *text, size_t used, const char *before, const char *line)
{
    used +=
        (size_t)snprintf(text + used, TNN_TEXT_MAX - used, "%s", before); /* short of the end: see below */
    return used + tn_text_escape(text + used, TNN_TEXT_MAX - used, line);
}

/* The error of a graph with operators that are not here: all of them, while tn_symbol_load() tells the first
 * one only. Each line is short enough that twenty and three fit. */
static void missing_tell(tn_app *app, const char *path, const tn_operators *list)
{
    const uint32_t count = tn_operators_missing(list);
    tn_operator_use u = {.struct_size = TN_SIZE(tn_operator_use)};
    char text[TNN_TEXT_MAX], line[160];
    uint32_t told = 0;
    size_t used = 0;

    (void)snprintf(line, sizeof line, "%.100s: %u node%s not here", path, count,
                   count > 1 ? "s have operators that are" : " has an operator that is");
    used = line_add(text, used, "", line);
    for (uint32_t i = 0; told < MISSING_MAX && !tn_operators_at(list, i, &u); i++)
        if (u.number && used + 4 * sizeof line < sizeof text && ++told) {
            (void)snprintf(line, sizeof line, "node %u \"%.40s\": %.90s", u.index, u.node, u.why);
            used = line_add(text, used, "\n   ", line);
        }
    if (count > told) {
        (void)snprintf(line, sizeof line, "and %u more", count - told);
        used = line_add(text, used, "\n   ", line);
    }
    (void)line_add(text, used, "\n   help: ",
                   "these operators may come with a plugin; `tenon plugins list` shows what is here");
    tnn_fail_text(app, TN_E_KEY, TNN_NO_OPERATOR, text);
}

tn_status tnn_symbol_load(tn_app *app, const char *path, tn_symbol **out)
{
    tn_operators *list = NULL;
    tn_status st = tn_symbol_load(app->ctx, path, out);

    if (st && tn_error_number() == TNN_NO_OPERATOR && !tn_operators_load(app->ctx, path, &list) &&
        tn_operators_missing(list))
        missing_tell(app, path, list);
    else
        (void)tnn_check(app, st, "%s", path);
    tn_operators_destroy(list);
    return st;
}

tn_symbol *tn_app_symbol(tn_app *app, const char *path)
{
    tn_symbol *s = NULL;

    if (!tnn_ok(app))
        return NULL;
    if (!path)
        (void)tnn_fail(app, TN_E_ARG, "tn_app_symbol: the file's name is missing");
    return path && !tnn_symbol_load(app, path, &s) ? s : NULL;
}

tn_net *tn_net_load_files(tn_app *app, const char *json, const char *params, const char *inputs)
{
    struct tnn_model *m;
    tn_net *net;

    if (!tnn_ok(app))
        return NULL;
    if (!json || !params) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_load: a file's name is missing");
        return NULL;
    }
    if (!(net = tnn_net_create(app, NULL, "model", "")) || !(m = tnn_alloc(app, 1, sizeof *m)))
        return NULL;
    net->model = m;
    if (tnn_symbol_load(app, json, &m->symbol) ||
        tnn_check(app, tn_params_load(app->ctx, params, NULL, &m->params), "%s", params) ||
        tnn_check(app, tn_program_create(app->ctx, m->symbol, m->params, &m->program), "%s", json) ||
        inputs_find(app, net, json, inputs) || labels_check(app, net, params))
        return NULL;
    m->out_count = tn_program_output_count(m->program);
    if ((m->heads = tnn_alloc(app, m->out_count, sizeof *m->heads)) &&
        !tnn_heads_of(app, m->symbol, m->out_count, m->heads))
        (void)names_find(app, json, &net->names);
    return app->status ? NULL : net;
}

tn_net *tn_net_load(tn_app *app, const char *prefix)
{
    char *json, *params;
    tn_net *net = NULL;

    if (!tnn_ok(app))
        return NULL;
    if (!prefix) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_load: the files' prefix is missing");
        return NULL;
    }
    if (tnn_ends_with(prefix, "-symbol.json")) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_load: %s: the files' prefix ends before -symbol.json", prefix);
        return NULL;
    }
    json = tnn_format(app, "%s-symbol.json", prefix);
    params = tnn_format(app, "%s-0000.params", prefix);
    if (json && params)
        net = tn_net_load_files(app, json, params, NULL);
    free(json);
    free(params);
    return net;
}

tn_status tnn_model_run(tn_net *net, tn_array *const *in, tn_array **out)
{
    tn_app *app = net->object.app;
    struct tnn_model *m = net->model;

    for (size_t i = 0; i < net->input_count; i++) {
        if (tnn_shape_take(app, in[i], net->path, &net->in[i]))
            return app->status;
        m->in[m->data[i]] = in[i];
    }
    (void)tnn_check(app, tn_program_run(m->program, m->in_count, m->in, m->out_count, out), "net %s",
                    net->path);
    for (size_t i = 0; i < net->input_count; i++)
        m->in[m->data[i]] = NULL;
    return app->status;
}

tn_array *tnn_model_forward(tn_net *net, tn_array *const *in)
{
    const uint32_t count = net->model->out_count;
    tn_array **out = tnn_alloc(net->object.app, count, sizeof *out), *first = NULL;

    if (out && !tnn_model_run(net, in, out) && count) {
        first = out[0];
        for (uint32_t i = 1; i < count; i++)
            tn_array_release(out[i]);
    }
    free(out);
    return first;
}
