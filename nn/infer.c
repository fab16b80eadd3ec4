/*
 * Shapes: layer by layer from the input, so that an error names the layer where it arises, its input and the
 * line of the program that asked for it.
 */
#include "internal.h"

#include <string.h>

tn_status tnn_layer_fail(tn_app *app, const tnn_layer *layer, tn_status status, int32_t ndim,
                         const int64_t *shape, const char *from)
{
    char text[TNN_SHAPE_TEXT];

    if (app->status)
        return app->status;
    (void)tnn_check(app, status, "%s (%s), called at %s:%d", layer->path, layer->op, layer->file,
                    layer->line);
    if (status != TN_E_NOMEM) {
        size_t used = strlen(app->error);

        (void)snprintf(app->error + used, sizeof app->error - used, "\n   input %s (from %s)",
                       tnn_shape_text(ndim, shape, text), from);
    }
    return status;
}

/* Length of a window layer's output along one side; below 1: nothing is left. */
static int64_t window_length(const tnn_layer *layer, int i, int64_t in)
{
    const int64_t reach = (int64_t)layer->dilate[i] * (layer->kernel[i] - 1) + 1;
    const int64_t room = in + 2 * (int64_t)layer->pad[i] - reach;

    if (room < 0)
        return 0;
    return (layer->ceil ? room + layer->stride[i] - 1 : room) / layer->stride[i] + 1;
}

static tn_status window_check(tn_app *app, const tnn_layer *layer, int32_t ndim, const int64_t *shape,
                              const char *from)
{
    char in[TNN_SHAPE_TEXT], out[TNN_SHAPE_TEXT];
    int64_t after[4];

    if (ndim != 4)
        return tnn_fail(
            app, TN_E_SHAPE, "%s (%s) needs images (N, C, H, W), called at %s:%d\n   input %s (from %s)",
            layer->path, layer->op, layer->file, layer->line, tnn_shape_text(ndim, shape, in), from);
    memcpy(after, shape, sizeof after);
    after[2] = window_length(layer, 0, shape[2]);
    after[3] = window_length(layer, 1, shape[3]);
    if (layer->channels)
        after[1] = layer->channels;
    if (after[2] > 0 && after[3] > 0)
        return TN_OK;
    return tnn_fail(app, TN_E_SHAPE,
                    "no output left in %s (%s), called at %s:%d\n"
                    "   input %s (from %s) · kernel %d×%d · stride %d×%d · pad %d×%d → %s\n"
                    "   help: add .pad = {%d, %d}, take a smaller .kernel, or remove a pooling layer",
                    layer->path, layer->op, layer->file, layer->line, tnn_shape_text(ndim, shape, in), from,
                    layer->kernel[0], layer->kernel[1], layer->stride[0], layer->stride[1], layer->pad[0],
                    layer->pad[1], tnn_shape_text(4, after, out), layer->kernel[0] / 2, layer->kernel[1] / 2);
}

/* Shapes that inference found, into parameters and the layer. */
static tn_status found_take(const tn_inferred *found, tnn_layer *layer)
{
    uint32_t argument = 1, aux = 0;
    tn_known known;
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < layer->param_count; i++) {
        tnn_param *p = layer->params[i];

        st = tn_inferred_at(found, p->aux ? TN_LIST_AUX : TN_LIST_ARGUMENTS, p->aux ? aux++ : argument++,
                            &known);
        if (!st && known.ndim >= 0 && known.ndim <= TNN_NDIM_MAX) {
            p->ndim = known.ndim;
            memcpy(p->shape, known.shape, (size_t)known.ndim * sizeof *p->shape);
        }
    }
    if (!st)
        st = tn_inferred_at(found, TN_LIST_OUTPUTS, 0, &known);
    if (!st && known.ndim >= 0 && known.ndim <= TNN_NDIM_MAX) {
        layer->out_ndim = known.ndim;
        memcpy(layer->out_shape, known.shape, (size_t)known.ndim * sizeof *layer->out_shape);
    }
    return st;
}

static tn_status layer_infer(tn_app *app, tnn_layer *layer, int32_t ndim, const int64_t *shape,
                             const char *from)
{
    tn_known known[1 + TNN_LAYER_PARAMS] = {{.name = "data", .shape = shape, .ndim = ndim, .dtype = TN_F32}};
    tn_symbol *data = NULL, *symbol = NULL;
    tn_inferred *found = NULL;
    size_t count = 1;
    tn_status st;

    if (layer->window && (st = window_check(app, layer, ndim, shape, from)))
        return st;
    for (uint32_t i = 0; i < layer->param_count; i++)
        if (layer->params[i]->array || layer->params[i]->given) /* else it follows from this input */
            known[count++] = (tn_known){.name = layer->params[i]->full,
                                        .shape = layer->params[i]->shape,
                                        .ndim = layer->params[i]->ndim,
                                        .dtype = TN_F32};
    st = tn_symbol_variable(app->ctx, "data", &data);
    if (!st)
        st = tnn_layer_symbol(app, layer, data, &symbol);
    if (!st)
        st = tn_symbol_infer(symbol, count, known, 0, &found);
    if (!st)
        st = found_take(found, layer);
    if (st)
        (void)tnn_layer_fail(app, layer, st, ndim, shape, from);
    tn_inferred_destroy(found);
    tn_symbol_release(symbol);
    tn_symbol_release(data);
    return st;
}

/* `*from`: path of the layer whose output `shape` is. */
static tn_status net_infer(tn_app *app, tn_net *net, int32_t *ndim, int64_t *shape, const char **from)
{
    tn_status st = TN_OK;

    for (size_t i = 0; !st && i < net->layer_count; i++) {
        tnn_layer *layer = net->layers[i];

        if (layer->child) {
            st = net_infer(app, layer->child, ndim, shape, from);
            continue;
        }
        if ((st = layer_infer(app, layer, *ndim, shape, *from)))
            break;
        *ndim = layer->out_ndim;
        memcpy(shape, layer->out_shape, sizeof layer->out_shape);
        *from = layer->path;
    }
    return st;
}

tn_status tnn_net_infer(tn_net *net, int32_t ndim, const int64_t *shape)
{
    tn_app *app = tnn_net_app(net);
    int64_t running[TNN_NDIM_MAX] = {0};
    int32_t running_ndim = ndim;
    const char *from = "the input";
    tn_status st;

    if (!app)
        return TN_E_STATE;
    if (ndim < 1 || ndim > TNN_NDIM_MAX)
        return tnn_fail(app, TN_E_SHAPE, "net %s: an input has %d dimensions, 1 to %d are allowed", net->path,
                        ndim, TNN_NDIM_MAX);
    memcpy(running, shape, (size_t)ndim * sizeof *shape);
    if (!(st = net->graph ? tnn_graph_infer(net, ndim, shape)
                          : net_infer(app, net, &running_ndim, running, &from))) {
        net->in_ndim = ndim;
        memcpy(net->in_shape, shape, (size_t)ndim * sizeof *shape);
    }
    return st;
}
