/*
 * Models from files: a symbol with its weights, for inference. One input is the data; other free variables
 * (labels of a loss layer) are filled in by the program.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

struct tnn_model {
    tn_symbol *symbol;
    tn_params *params;
    tn_program *program;
    char *input;
    tn_array **in; /* one per input of the program */
    uint32_t in_count, data;
    tnn_head head;
};

void tnn_model_destroy(struct tnn_model *model)
{
    if (!model)
        return;
    tn_program_destroy(model->program);
    tn_params_destroy(model->params);
    tn_symbol_release(model->symbol);
    free(model->input);
    free(model->in);
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

const char *tnn_model_input(const struct tnn_model *model)
{
    return model->input;
}

tnn_head tnn_model_head(const struct tnn_model *model)
{
    return model->head;
}

/* The one input that is no label by its name; NULL: none, or several. */
static const char *only_input(const struct tnn_model *m)
{
    const char *found = NULL;

    for (uint32_t i = 0; i < m->in_count; i++) {
        const char *name = tn_program_input(m->program, i);

        if (!strcmp(name, "data"))
            return name;
        if (tnn_ends_with(name, "label"))
            continue;
        if (found)
            return NULL;
        found = name;
    }
    return found;
}

/* Which of the program's inputs the data is: the one asked for, "data", or the only one. */
static tn_status input_find(tn_app *app, struct tnn_model *m, const char *json, const char *input)
{
    const char *name = input;

    m->in_count = tn_program_input_count(m->program);
    if (!(m->in = tnn_alloc(app, m->in_count, sizeof *m->in)))
        return TN_E_NOMEM;
    if (!name && !(name = only_input(m)))
        name = "data";
    if (!(m->input = tnn_strdup(app, name)))
        return TN_E_NOMEM;
    for (m->data = 0; m->data < m->in_count; m->data++)
        if (!strcmp(tn_program_input(m->program, m->data), m->input))
            return TN_OK;
    return tnn_fail(app, TN_E_KEY, "%s has no free input \"%s\"%s%s", json, m->input,
                    m->in_count ? "; it has " : "", m->in_count ? tn_program_input(m->program, 0) : "");
}

/* Other inputs without values must be labels: names that end so, as MXNet's. */
static tn_status labels_check(tn_app *app, const struct tnn_model *m, const char *params)
{
    for (uint32_t i = 0; i < m->in_count; i++) {
        const char *name = tn_program_input(m->program, i);

        if (i != m->data && !tnn_ends_with(name, "label"))
            return tnn_fail(app, TN_E_FORMAT, "%s has no array for \"%s\"", params, name);
    }
    return TN_OK;
}

/* classes.txt in the folder of the graph. */
static tn_status names_find(tn_app *app, const char *json, struct tnn_names **out)
{
    const char *slash = strrchr(json, '/');
    char *folder = slash ? tnn_format(app, "%.*s", (int)(slash - json), json) : tnn_strdup(app, ".");

    if (folder)
        (void)tnn_names_beside(app, *folder ? folder : "/", out);
    free(folder);
    return app->status;
}

tn_net *tn_net_load_files(tn_app *app, const char *json, const char *params, const char *input)
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
    if (tnn_check(app, tn_symbol_load(app->ctx, json, &m->symbol), "%s", json) ||
        tnn_check(app, tn_params_load(app->ctx, params, NULL, &m->params), "%s", params) ||
        tnn_check(app, tn_program_create(app->ctx, m->symbol, m->params, &m->program), "%s", json) ||
        input_find(app, m, json, input) || labels_check(app, m, params))
        return NULL;
    m->head = tnn_head_of(app, m->symbol);
    (void)names_find(app, json, &net->names);
    return app->status ? NULL : net;
}

tn_net *tn_net_load(tn_app *app, const char *prefix)
{
    char *json, *params;
    tn_net *net = NULL;

    if (!tnn_ok(app) || !prefix)
        return NULL;
    json = tnn_format(app, "%s-symbol.json", prefix);
    params = tnn_format(app, "%s-0000.params", prefix);
    if (json && params)
        net = tn_net_load_files(app, json, params, NULL);
    free(json);
    free(params);
    return net;
}

tn_array *tnn_model_forward(tn_net *net, tn_array *x)
{
    tn_app *app = net->object.app;
    struct tnn_model *m = net->model;
    const uint32_t count = tn_program_output_count(m->program);
    tn_array **out = tnn_alloc(app, count, sizeof *out), *first = NULL;

    if (!out)
        return NULL;
    m->in[m->data] = x;
    if (!tnn_check(app, tn_program_run(m->program, m->in_count, m->in, count, out), "net %s", net->path) &&
        count) {
        first = out[0];
        for (uint32_t i = 1; i < count; i++)
            tn_array_release(out[i]);
    }
    m->in[m->data] = NULL;
    free(out);
    return first;
}
