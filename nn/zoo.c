/*
 * The zoo: nets by name. Their parameters are the options model.*, read from the app; one that no net knows
 * is an error, so that a misspelt name does not pass for a default.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"lenet", NULL};
static const char *const lenet_options[] = {"activation", "classes", "pad", NULL};

/* A whole number from model.NAME. */
static int64_t option(tn_app *app, const char *name, int64_t otherwise, int64_t least, int64_t most)
{
    char key[64], *end = NULL;
    const char *text;
    long long value;

    (void)snprintf(key, sizeof key, "model.%s", name);
    text = tn_ctx_option(app->ctx, key);
    if (!text || !*text)
        return otherwise;
    value = strtoll(text, &end, 10);
    if (*end || value < least || value > most)
        (void)tnn_fail(app, TN_E_ARG, "option %s is \"%.64s\", a whole number from %lld to %lld is needed",
                       key, text, (long long)least, (long long)most);
    return value;
}

static tn_status options_check(tn_app *app, const char *const *known)
{
    size_t count = 0;

    if (tnn_check(app, tn_ctx_option_count(app->ctx, &count), "%s", ""))
        return app->status;
    for (size_t i = 0; i < count; i++) {
        tn_option_info row = {.struct_size = sizeof row};

        if (tnn_check(app, tn_ctx_option_at(app->ctx, i, &row), "%s", ""))
            return app->status;
        if (!strncmp(row.key, "model.", 6) && strcmp(row.key, "model.*") && !tnn_one_of(row.key + 6, known))
            return tnn_unknown(app, "option in [model]", row.key + 6, known);
    }
    return TN_OK;
}

/*
 * LeNet (LeCun, Bottou, Bengio, Haffner: "Gradient-based learning applied to document recognition", 1998) as
 * MXNet's example has it, for any image of 8×8 or more: with pad 2 the convolutions keep the size.
 */
static tn_net *lenet(tn_app *app)
{
    const int32_t pad = (int32_t)option(app, "pad", 2, 0, 16);
    const int64_t classes = option(app, "classes", 10, 1, 1 << 20);
    const char *activation = tn_ctx_option(app->ctx, "model.activation");
    tn_net *net;

    if (options_check(app, lenet_options))
        return NULL;
    if (!activation || !*activation)
        activation = "tanh";
    net = tn_net_new(app, .name = "lenet");
    tn_net_conv2d(net, .channels = 20, .kernel = {5, 5}, .pad = {pad, pad}, .activation = activation);
    tn_net_maxpool2d(net, .kernel = {2, 2}, .stride = {2, 2});
    tn_net_conv2d(net, .channels = 50, .kernel = {5, 5}, .pad = {pad, pad}, .activation = activation);
    tn_net_maxpool2d(net, .kernel = {2, 2}, .stride = {2, 2});
    tn_net_flatten(net);
    tn_net_dense(net, .units = 500, .activation = activation);
    tn_net_dense(net, .units = classes);
    return tnn_ok(app) ? net : NULL;
}

const char *const *tn_net_zoo_names(void)
{
    return names;
}

tn_net *tn_net_zoo(tn_app *app, const char *name)
{
    if (!tnn_ok(app))
        return NULL;
    if (name && !strncmp(name, "zoo:", 4))
        name += 4;
    if (!tnn_one_of(name, names)) {
        (void)tnn_unknown(app, "net of the zoo", name ? name : "", names);
        return NULL;
    }
    return lenet(app);
}
