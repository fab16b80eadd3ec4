/*
 * The table of a net: what each layer is, what comes out of it, how many parameters and multiply-adds it has.
 */
#include "internal.h"

#include <string.h>

typedef struct totals {
    int64_t params, macs;
    size_t row;
} totals;

static int64_t product(int32_t from, int32_t ndim, const int64_t *shape)
{
    int64_t p = 1;

    for (int32_t i = from; i < ndim; i++)
        p *= shape[i];
    return p;
}

/* Each element of the output is a sum over one filter, or one row, of the weight. */
static int64_t macs_of(const tnn_layer *layer)
{
    const tnn_param *w = layer->param_count ? layer->params[0] : NULL;

    if (!w || w->role != TNN_WEIGHT || !strcmp(layer->op, TNN_OP_OWN))
        return 0;
    return product(1, layer->out_ndim, layer->out_shape) * product(1, w->ndim, w->shape);
}

static const char *attr_of(const tnn_layer *layer, const char *name)
{
    for (size_t i = 0; i < layer->attr_count; i += 2)
        if (!strcmp(layer->attrs[i], name))
            return layer->attrs[i + 1];
    return "";
}

static void row_write(FILE *out, const tnn_layer *layer, totals *t)
{
    const char *more = layer->activation               ? layer->activation
                       : !strcmp(layer->op, "Pooling") ? attr_of(layer, "pool_type")
                                                       : attr_of(layer, "act_type");
    char shape[TNN_SHAPE_TEXT], op[64];
    int64_t params = 0, macs = macs_of(layer);
    int pad;

    for (uint32_t i = 0; i < layer->param_count; i++)
        params += layer->tied[i] ? 0 : product(0, layer->params[i]->ndim, layer->params[i]->shape);
    (void)snprintf(op, sizeof op, "%s%s%s", layer->op, *more ? " " : "", more);
    (void)tnn_shape_text(layer->out_ndim, layer->out_shape, shape);
    pad = 18 + (layer->out_ndim > 1 ? layer->out_ndim - 1 : 0); /* "×" has two bytes */
    (void)fprintf(out, "%3zu  %-22s %-20s %-*s %11lld %13lld\n", ++t->row, layer->path, op, pad, shape,
                  (long long)params, (long long)macs);
    t->params += params;
    t->macs += macs;
}

static void rows_write(FILE *out, const tn_net *net, totals *t)
{
    for (size_t i = 0; i < net->layer_count; i++) {
        if (net->layers[i]->child)
            rows_write(out, net->layers[i]->child, t);
        else
            row_write(out, net->layers[i], t);
    }
    for (size_t i = 0; i < net->use_count; i++)
        rows_write(out, net->uses[i], t);
}

/* The graph of a file: every output of every node. */
static void model_write(tn_app *app, tn_net *net, FILE *out, int32_t ndim, const int64_t *shape)
{
    tn_known known = {.name = tn_net_input(net), .shape = shape, .ndim = ndim, .dtype = TN_F32};
    tn_symbol *symbol = tn_net_symbol(net), *all = NULL;
    tn_inferred *found = NULL;
    tn_known row;
    char text[TNN_SHAPE_TEXT];
    tn_status st = tn_symbol_internals(symbol, &all);

    if (!st && !(st = tn_symbol_infer(all, 1, &known, TN_SYMBOL_PARTIAL, &found)))
        for (size_t i = 0;
             i < tn_symbol_output_count(all) && !tn_inferred_at(found, TN_LIST_OUTPUTS, i, &row); i++)
            (void)fprintf(out, "%3zu  %-40s %s\n", i + 1, row.name,
                          tnn_shape_text(row.ndim, row.shape, text));
    (void)tnn_check(app, st, "net %s", net->path);
    tn_inferred_destroy(found);
    tn_symbol_release(all);
    tn_symbol_release(symbol);
}

void tn_net_summary(tn_net *net, FILE *out, int32_t ndim, const int64_t *shape)
{
    tn_app *app = tnn_net_app(net);
    totals t = {0, 0, 0};
    tnn_shape in[TNN_VALUES_MAX];

    if (!app || !out)
        return;
    memcpy(in, net->in, sizeof in);
    if (shape && net->input_count == 1)
        in[0] = tnn_shape_of(ndim, shape), in[0].dtype = net->dtype;
    ndim = in[0].ndim;
    shape = in[0].dims;
    if (ndim < 1 || ndim > TNN_NDIM_MAX) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_summary of %s: give the input's shape, or run the net first",
                       net->path);
        return;
    }
    if (net->model || net->graph) {
        model_write(app, net, out, ndim, shape);
        return;
    }
    if (tnn_net_whole(net) || tnn_net_infer_all(net, in))
        return;
    (void)fprintf(out, "  #  %-22s %-20s %-18s %11s %13s\n", "layer", "operator", "output", "parameters",
                  "MAC/sample");
    rows_write(out, net, &t);
    (void)fprintf(out, "     %-22s %-20s %-18s %11lld %13lld\n", "total", "", "", (long long)t.params,
                  (long long)t.macs);
}
