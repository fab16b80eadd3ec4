/*
 * The data type of a net's parameters. Those of BatchNorm stay in float32, as Gluon's cast() has it.
 */
#include "internal.h"

#include <string.h>

static const struct {
    const char *name;
    int32_t dtype;
} types[] = {{"float32", TN_F32}, {"float64", TN_F64}, {"float16", TN_F16}, {"bfloat16", TN_BF16}};
enum { TYPES = sizeof types / sizeof *types };

int32_t tnn_dtype_of(const char *op, int32_t dtype)
{
    return strstr(op, "BatchNorm") && (dtype == TN_F16 || dtype == TN_BF16) ? TN_F32 : dtype;
}

static tn_status param_cast(tn_app *app, tnn_param *p, int32_t dtype)
{
    tn_array *before = p->array;

    if (p->dtype == dtype)
        return TN_OK;
    p->dtype = dtype;
    if (!before)
        return TN_OK;
    p->array = NULL;
    if (!tnn_param_make(app, p, NULL))
        (void)tnn_check(app, tn_array_copy(before, p->array), "parameter %s", p->full);
    tn_array_release(before);
    return app->status;
}

tn_status tnn_net_cast(tn_app *app, tn_net *net, int32_t dtype)
{
    net->dtype = dtype;
    for (size_t i = 0; i < net->layer_count && !app->status; i++) {
        tnn_layer *layer = net->layers[i];

        if (layer->child)
            (void)tnn_net_cast(app, layer->child, dtype);
        for (uint32_t k = 0; k < layer->param_count && !app->status; k++)
            (void)(layer->tied[k] ? TN_OK
                                  : param_cast(app, layer->params[k], tnn_dtype_of(layer->op, dtype)));
    }
    for (size_t i = 0; i < net->use_count && !app->status; i++)
        (void)tnn_net_cast(app, net->uses[i], dtype);
    return app->status;
}

void tn_net_cast(tn_net *net, const char *dtype)
{
    const char *names[TYPES + 1] = {NULL};
    tn_app *app = tnn_net_app(net);
    size_t i = 0;

    if (!app)
        return;
    for (; i < TYPES; i++)
        names[i] = types[i].name;
    for (i = 0; i < TYPES && (!dtype || strcmp(types[i].name, dtype) != 0);)
        i++;
    if (i == TYPES)
        (void)tnn_unknown(app, "data type of a net", dtype ? dtype : "", names);
    else if (net->model || net->graph)
        (void)tnn_fail(app, TN_E_UNSUPPORTED, "net %s was loaded: its parameters have the types of its file",
                       net->path);
    else if (!tnn_net_cast(app, net, types[i].dtype))
        tnn_net_changed(net);
}
