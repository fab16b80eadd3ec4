/*
 * Shapes of one layer: what comes out of it, and what its parameters must be, from its inputs. An error names
 * the layer, its input, what made it, and the line of the program that asked for it.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

tnn_shape tnn_shape_of(int32_t ndim, const int64_t *shape)
{
    tnn_shape s = {.ndim = ndim, .dtype = TN_F32};

    if (ndim > 0 && ndim <= TNN_NDIM_MAX)
        memcpy(s.dims, shape, (size_t)ndim * sizeof *shape);
    return s;
}

tn_status tnn_shape_take(tn_app *app, tn_array *array, const char *what, tnn_shape *out)
{
    const int64_t *shape = NULL;
    int32_t ndim = -1;
    tn_status st = tn_array_shape(array, &ndim, &shape);

    if (st)
        return tnn_check(app, st, "%s", what);
    if (ndim > TNN_NDIM_MAX)
        return tnn_fail(app, TN_E_SHAPE, "%s has %d dimensions, at most %d are allowed", what, ndim,
                        TNN_NDIM_MAX);
    *out = tnn_shape_of(ndim, shape);
    out->dtype = tn_array_dtype(array);
    return TN_OK;
}

tn_status tnn_layer_fail(tn_app *app, const tnn_layer *layer, tn_status status, const tnn_shape *in,
                         const char *from)
{
    char text[TNN_SHAPE_TEXT];

    if (app->status)
        return app->status;
    (void)tnn_check(app, status, "%s (%s), called at %s:%d", layer->path, layer->op, layer->file,
                    layer->line);
    if (status != TN_E_NOMEM && in->ndim >= 0) {
        size_t used = strlen(app->error);

        (void)snprintf(app->error + used, sizeof app->error - used, "\n   input %s (from %s)",
                       tnn_shape_text(in->ndim, in->dims, text), from);
    }
    return status;
}

/* ---- windows ---- */

/* Length of a window layer's output along one side; below 1: nothing is left. */
static int64_t window_length(const tnn_window *w, int i, int64_t in)
{
    const int64_t reach = (int64_t)w->dilate[i] * (w->kernel[i] - 1) + 1;
    const int64_t room = in + 2 * (int64_t)w->pad[i] - reach;

    if (room < 0)
        return 0;
    return (w->ceil ? room + w->stride[i] - 1 : room) / w->stride[i] + 1;
}

/* "3×3" */
static const char *sides_text(const tnn_window *w, const int32_t *sides, char out[TNN_SHAPE_TEXT])
{
    int64_t wide[3] = {sides[0], sides[1], sides[2]};

    return tnn_shape_text(w->axes, wide, out);
}

static tn_status window_fail(tn_app *app, const tnn_layer *layer, const tnn_shape *shape, const char *from,
                             const int64_t *after)
{
    const tnn_window *w = &layer->window;
    char in[TNN_SHAPE_TEXT], out[TNN_SHAPE_TEXT], kernel[TNN_SHAPE_TEXT], stride[TNN_SHAPE_TEXT],
        pad[TNN_SHAPE_TEXT], help[64];
    int used = 0;

    for (int32_t i = 0; i < w->axes; i++)
        used += snprintf(help + used, sizeof help - (size_t)used, "%s%d", i ? ", " : "", w->kernel[i] / 2);
    return tnn_fail(app, TN_E_SHAPE,
                    "no output left in %s (%s), called at %s:%d\n"
                    "   input %s (from %s) · kernel %s · stride %s · pad %s → %s\n"
                    "   help: add .pad = {%s}, take a smaller .kernel, or remove a pooling layer",
                    layer->path, layer->op, layer->file, layer->line,
                    tnn_shape_text(shape->ndim, shape->dims, in), from, sides_text(w, w->kernel, kernel),
                    sides_text(w, w->stride, stride), sides_text(w, w->pad, pad),
                    tnn_shape_text(shape->ndim, after, out), help);
}

tn_status tnn_window_check(tn_app *app, const tnn_layer *layer, const tnn_shape *shape, const char *from)
{
    static const char *const kinds[] = {"", "sequences (N, C, W)", "images (N, C, H, W)",
                                        "volumes (N, C, D, H, W)"};
    const tnn_window *w = &layer->window;
    int64_t after[TNN_NDIM_MAX];
    char in[TNN_SHAPE_TEXT];
    bool left = true;

    if (!w->used || shape->ndim < 0)
        return app->status;
    if (shape->ndim != 2 + w->axes)
        return tnn_fail(app, TN_E_SHAPE, "%s (%s) needs %s, called at %s:%d\n   input %s (from %s)",
                        layer->path, layer->op, kinds[w->axes], layer->file, layer->line,
                        tnn_shape_text(shape->ndim, shape->dims, in), from);
    memcpy(after, shape->dims, sizeof after);
    for (int32_t i = 0; i < w->axes; i++) {
        after[2 + i] = window_length(w, i, after[2 + i]);
        left = left && after[2 + i] > 0;
    }
    if (w->channels)
        after[1] = w->channels;
    return left ? app->status : window_fail(app, layer, shape, from, after);
}

/* ---- inference over the one layer ---- */

static tn_status known_of(const tn_known *known, tnn_shape *out)
{
    if (known->ndim < 0 || known->ndim > TNN_NDIM_MAX)
        return TN_E_SHAPE;
    *out = tnn_shape_of(known->ndim, known->shape);
    if (known->dtype >= 0)
        out->dtype = known->dtype;
    return TN_OK;
}

/* Shapes that inference found, into parameters and the layer. */
static tn_status found_take(const tn_inferred *found, tnn_layer *layer, uint32_t in_count, tnn_outputs *out)
{
    uint32_t argument = in_count, aux = 0;
    tn_known known;
    tnn_shape shape;
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < layer->param_count; i++) {
        tnn_param *p = layer->params[i];

        st = tn_inferred_at(found, p->aux ? TN_LIST_AUX : TN_LIST_ARGUMENTS, p->aux ? aux++ : argument++,
                            &known);
        if (!st && !known_of(&known, &shape)) {
            p->ndim = shape.ndim;
            memcpy(p->shape, shape.dims, sizeof p->shape);
        }
    }
    for (uint32_t i = 0; !st && i < out->count; i++)
        if (!(st = tn_inferred_at(found, TN_LIST_OUTPUTS, i, &known)))
            st = known_of(&known, &out->shape[i]);
    if (!st) {
        layer->out_ndim = out->shape[0].ndim;
        memcpy(layer->out_shape, out->shape[0].dims, sizeof layer->out_shape);
    }
    return st;
}

/* The layer alone, over variables that are called as messages of the core shall name them. */
static tn_status alone(tn_app *app, const tnn_layer *layer, uint32_t in_count, char (*names)[16],
                       tn_symbol **out)
{
    tn_symbol *in[TNN_LAYER_VALUES] = {NULL};
    char *name = tnn_format(app, "%s_fwd", layer->prefix);
    tn_status st = name ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; !st && i < in_count; i++)
        st = tn_symbol_variable(app->ctx, names[i], &in[i]);
    if (!st)
        st = tnn_layer_symbol(app, layer, in_count, in, name, out);
    for (uint32_t i = 0; i < in_count; i++)
        tn_symbol_release(in[i]);
    free(name);
    return st;
}

tn_status tnn_layer_infer(tn_app *app, tnn_layer *layer, uint32_t in_count, const tnn_shape *in,
                          const char *from, tnn_outputs *out)
{
    tn_known known[TNN_LAYER_INPUTS_MAX];
    char names[TNN_LAYER_VALUES][16];
    tn_symbol *symbol = NULL;
    tn_inferred *found = NULL;
    size_t count = 0;
    tn_status st;

    if (tnn_window_check(app, layer, &in[0], from))
        return app->status;
    for (; count < in_count; count++) {
        (void)snprintf(names[count], sizeof *names, in_count > 1 ? "data%zu" : "data", count);
        known[count] = (tn_known){
            .name = names[count], .shape = in[count].dims, .ndim = in[count].ndim, .dtype = in[count].dtype};
    }
    for (uint32_t i = 0; i < layer->param_count; i++)
        if (layer->params[i]->array || layer->params[i]->given ||
            layer->tied[i]) /* else it follows from this input */
            known[count++] = (tn_known){.name = layer->params[i]->full,
                                        .shape = layer->params[i]->shape,
                                        .ndim = layer->params[i]->ndim,
                                        .dtype = layer->params[i]->dtype};
    if (!(st = alone(app, layer, in_count, names, &symbol))) {
        out->count = tn_symbol_output_count(symbol);
        if (out->count > TNN_LAYER_VALUES)
            st = tnn_fail(app, TN_E_UNSUPPORTED,
                          "%s (%s) has %u outputs, at most %d are allowed, called at %s:%d", layer->path,
                          layer->op, out->count, TNN_LAYER_VALUES, layer->file, layer->line);
    }
    if (!st)
        st = tn_symbol_infer(symbol, count, known, 0, &found);
    if (!st)
        st = found_take(found, layer, in_count, out);
    if (st)
        (void)tnn_layer_fail(app, layer, st, &in[0], from);
    tn_inferred_destroy(found);
    tn_symbol_release(symbol);
    return st;
}
