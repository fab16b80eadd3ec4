/*
 * Whether a net takes an input of some shape, and what comes out of it: by inference over its graph and the
 * shapes of its parameters. Nothing runs.
 */
#include "about.h"

#include <stdlib.h>
#include <string.h>

typedef struct question {
    tn_symbol *symbol;
    tn_known *known;
    size_t count;
} question;

static tn_status known_add(question *q, const char *name, tn_array *array)
{
    tn_known *k = &q->known[q->count++];

    *k = (tn_known){.name = name, .dtype = tn_array_dtype(array)};
    return tn_array_shape(array, &k->ndim, &k->shape);
}

/* Of a loaded model: variables of the graph that the file has values for. Further arrays of it are passed
 * over. */
static tn_status model_add(question *q, const tn_params *params)
{
    tn_status st = TN_OK;

    for (int32_t what = TN_LIST_ARGUMENTS; !st && what <= TN_LIST_AUX; what++) {
        char **names = NULL;
        size_t count = 0;

        st = tn_symbol_list(q->symbol, what, &count, &names);
        for (size_t i = 0; !st && i < tn_params_count(params); i++) {
            const char *name = tnn_plain_name(tn_params_name(params, i));
            tn_array *array = NULL;

            if (!tnn_is_listed(names, count, name) || (st = tn_params_at(params, i, &array)) || !array)
                continue;
            st = known_add(q, name, array);
            tn_array_release(array); /* the list keeps it */
        }
        tn_free(names);
    }
    return st;
}

static tn_status layers_add(question *q, const tn_net *net)
{
    tn_status st = TN_OK;

    for (size_t i = 0; !st && i < net->param_count; i++)
        if (net->params[i]->array)
            st = known_add(q, net->params[i]->full, net->params[i]->array);
    return st;
}

static tn_status ask(const question *q, size_t output, int32_t *out_ndim, int64_t *out_shape)
{
    tn_inferred *found = NULL;
    tn_known row;
    tn_status st = tn_symbol_infer(q->symbol, q->count, q->known, TN_SYMBOL_PARTIAL, &found);

    *out_ndim = -1;
    if (!st && !(st = tn_inferred_at(found, TN_LIST_OUTPUTS, output, &row)) && row.ndim >= 0 &&
        row.ndim <= TNN_NDIM_MAX) {
        *out_ndim = row.ndim;
        memcpy(out_shape, row.shape, (size_t)row.ndim * sizeof *out_shape);
    }
    tn_inferred_destroy(found);
    return st;
}

/* A function is asked by tracing it. Its error is not the app's. */
static int function_ask(tn_app *app, tn_net *net, size_t index, const tnn_shape *shape, tnn_shape *out)
{
    tnn_shape in[TNN_VALUES_MAX], kept_in[TNN_VALUES_MAX], kept_out[TNN_VALUES_MAX];
    void (*on_error)(void *, const char *) = app->options.on_error;
    const bool recording = app->recording;
    bool known = true;
    tn_status st;

    memcpy(in, net->in, sizeof in);
    in[0] = *shape;
    for (size_t i = 0; i < net->input_count; i++)
        known = known && in[i].ndim > 0;
    if (!known)
        return 0;
    memcpy(kept_in, net->in, sizeof in);
    memcpy(kept_out, net->out, sizeof in);
    app->options.on_error = NULL;
    app->recording = false;
    st = tnn_net_trace(net, in, NULL);
    *out = net->out[index];
    app->options.on_error = on_error;
    app->recording = recording;
    tn_app_clear(app);
    memcpy(net->in, kept_in, sizeof in);
    memcpy(net->out, kept_out, sizeof in);
    return !st;
}

/* What output `index` of an input of this shape is; 1: the net takes it. */
static int output_ask(tn_net *net, size_t index, const tnn_shape *in, int32_t *out_ndim, int64_t *out_shape)
{
    tn_app *app = net->object.app;
    question q = {0};
    tn_status st = TN_E_NOMEM;
    size_t most;

    if (*net->by_hand || (!net->model && tnn_net_collect(net)))
        return 0;
    if (!net->model && tnn_net_by_shapes(net)) {
        tnn_shape out = {.ndim = -1};
        const int takes = function_ask(app, net, index, in, &out);

        *out_ndim = takes ? out.ndim : -1;
        memcpy(out_shape, out.dims, takes && out.ndim > 0 ? (size_t)out.ndim * sizeof *out_shape : 0);
        return takes;
    }
    most = 2 * (net->model ? tn_params_count(tnn_model_params(net->model)) : net->param_count) +
           net->input_count;
    if ((q.symbol = tn_net_symbol(net)) && (q.known = tnn_alloc(app, most, sizeof *q.known))) {
        q.known[q.count++] =
            (tn_known){.name = tn_net_input(net), .shape = in->dims, .ndim = in->ndim, .dtype = in->dtype};
        for (size_t i = 1; i < net->input_count; i++) /* of a model: as in the last call */
            if (net->in[i].ndim > 0)
                q.known[q.count++] = (tn_known){.name = tnn_net_input_name(net, i),
                                                .shape = net->in[i].dims,
                                                .ndim = net->in[i].ndim,
                                                .dtype = net->in[i].dtype};
        if (!(st = net->model ? model_add(&q, tnn_model_params(net->model)) : layers_add(&q, net)))
            st = ask(&q, index, out_ndim, out_shape);
    }
    free(q.known);
    tn_symbol_release(q.symbol);
    return !st;
}

/* Of the type that the net was cast to. */
static tnn_shape shape_for(const tn_net *net, int32_t ndim, const int64_t *shape)
{
    tnn_shape s = tnn_shape_of(ndim, shape);

    s.dtype = net->dtype;
    return s;
}

int tn_net_takes(tn_net *net, int32_t ndim, const int64_t *shape, int32_t *out_ndim, int64_t out_shape[8])
{
    tnn_shape in;

    if (!tnn_net_app(net) || !shape || !out_ndim || !out_shape || ndim < 0 || ndim > TNN_NDIM_MAX)
        return 0;
    in = shape_for(net, ndim, shape);
    return output_ask(net, 0, &in, out_ndim, out_shape);
}

int tnn_net_takes_data(tn_net *net, const tn_data *data, int32_t *out_ndim, int64_t *out_shape)
{
    tnn_shape kept[TNN_VALUES_MAX], in[TNN_VALUES_MAX];
    int takes;

    if (tnn_net_shapes(net, data, in))
        return 0;
    memcpy(kept, net->in, sizeof kept);
    memcpy(net->in, in, net->input_count * sizeof *in);
    takes = output_ask(net, 0, in, out_ndim, out_shape);
    memcpy(net->in, kept, sizeof kept);
    return takes;
}

static int32_t gives_of(tnn_head head)
{
    static const int32_t kinds[] = {
        [TNN_HEAD_SCORES] = TN_GIVES_SCORES,        [TNN_HEAD_SOFTMAX] = TN_GIVES_PROBABILITIES,
        [TNN_HEAD_OUTPUT] = TN_GIVES_PROBABILITIES, [TNN_HEAD_LOG_SOFTMAX] = TN_GIVES_LOGARITHMS,
        [TNN_HEAD_OTHER] = TN_GIVES_OTHER,
    };

    return kinds[head];
}

int32_t tn_net_gives(const tn_net *net)
{
    if (!tnn_net_app(net))
        return TN_GIVES_OTHER;
    return gives_of(net->model ? tnn_model_head(net->model) : TNN_HEAD_SCORES);
}

/* ---- several outputs ----------------------------------------------------------------------------- */

size_t tn_net_output_count(const tn_net *net)
{
    if (!tnn_net_app(net))
        return 0;
    return net->model ? tnn_model_outputs(net->model) : net->output_count;
}

int tn_net_output_at(tn_net *net, size_t index, int32_t ndim, const int64_t *shape, tn_net_output *out)
{
    tn_net_output o = {.name = "output", .ndim = -1};
    tnn_head head = TNN_HEAD_SCORES;
    tnn_shape in;

    if (index >= tn_net_output_count(net) || !out || out->struct_size < 2 * sizeof o.struct_size ||
        (shape && (ndim < 0 || ndim > TNN_NDIM_MAX)))
        return 0;
    if (net->model)
        o.name = tnn_model_output(net->model, (uint32_t)index, &head);
    else if (net->output_names[index])
        o.name = net->output_names[index];
    o.gives = gives_of(head);
    if (shape)
        in = shape_for(net, ndim, shape);
    if (shape && !output_ask(net, index, &in, &o.ndim, o.shape))
        return 0;
    o.struct_size = out->struct_size < sizeof o ? out->struct_size : (uint32_t)sizeof o;
    memcpy(out, &o, o.struct_size);
    return 1;
}

int tn_net_forward_all(tn_net *net, tn_array *x, size_t count, tn_array **out)
{
    tn_app *app = tnn_net_app(net);
    const size_t have = tn_net_output_count(net);

    if (!app || !x)
        return 0;
    if (count != have || !out)
        return !tnn_fail(app, TN_E_ARG, "net %s: room for %zu outputs, it has %zu", net->path,
                         out ? count : 0, have);
    return tn_net_run(net, 1, &x, count, out);
}

int tn_net_name_classes(tn_net *net, const char *path)
{
    tn_app *app = tnn_net_app(net);
    struct tnn_names *names = NULL;

    if (!app || !path || tnn_names_read(app, path, &names))
        return 0;
    tnn_names_destroy(net->names);
    net->names = names;
    return 1;
}

const char *tn_net_class_name(const tn_net *net, int64_t index)
{
    return tnn_net_app(net) ? tnn_names_at(net->names, index) : NULL;
}

int tn_net_about(tn_net *net, const char *path)
{
    tn_app *app = tnn_net_app(net);
    tnn_about *a = app && path ? tnn_about_read(app, path) : NULL;
    struct tnn_names *names = NULL;

    if (!a)
        return 0;
    net->regression = a->task == TN_TASK_NUMBERS;
    net->unit_mean = a->mean;
    net->unit_deviation = a->deviation;
    if (a->names.count && !tnn_names_make(app, (const char *const *)a->names.at, a->names.count, &names)) {
        tnn_names_destroy(net->names);
        net->names = names;
    }
    tnn_about_drop(a);
    return tnn_ok(app);
}

int tn_net_units(const tn_net *net, double *mean, double *deviation)
{
    const bool known = tnn_net_app(net) && net->regression;

    if (mean)
        *mean = known ? net->unit_mean : 0;
    if (deviation)
        *deviation = known ? net->unit_deviation : 1;
    return known;
}
