/*
 * The zoo: nets by name. Their parameters are the options model.*, read from the app; one that the net does
 * not know is an error, so that a misspelt name does not pass for a default.
 */
#include "zoo.h"

#include <stdlib.h>
#include <string.h>

#define CHAINS 2 /* the first names; all others are functions */

#define ZOO_NET(name, ...) name,
static const char *const names[] = {"lenet", "mlp",
#include "zoo.list"
                                    NULL};
#undef ZOO_NET

#define ZOO_NET(name, family, variant, ...) {TNN_##family, variant, {__VA_ARGS__}, true},
static const struct {
    uint8_t family, variant, numbers[5];
    bool images; /* takes (channels, height, width) alone */
} rows[] = {
    /* of names[] */
    {TNN_LENET, 0, {0}, true},
    {TNN_MLP, 0, {0}, false},
#include "zoo.list"
};
#undef ZOO_NET

#define OF(family) (1u << TNN_##family)

static const struct {
    char name[12];
    uint16_t families;
} known[] = {
    {"activation", OF(LENET) | OF(MLP)},
    {"batch_norm", OF(VGG)},
    {"bn_size", OF(DENSENET)},
    {"classes", UINT16_MAX},
    {"dropout", OF(ALEXNET) | OF(DENSENET) | OF(INCEPTION) | OF(SQUEEZENET) | OF(VGG)},
    {"pad", OF(LENET)},
    {"thumbnail", OF(RESNET)},
};
#define KNOWN (sizeof known / sizeof *known)

/* ---- options ---- */

static const char *text_of(tn_app *app, const char *name)
{
    char key[64];
    const char *text;

    (void)snprintf(key, sizeof key, "model.%s", name);
    text = tn_ctx_option(app->ctx, key);
    return text && *text ? text : NULL;
}

/* A whole number from model.NAME. */
static int64_t option(tn_app *app, const char *name, int64_t otherwise, int64_t least, int64_t most)
{
    const char *text = text_of(app, name);
    char *end = NULL;
    long long value;

    if (!text)
        return app->outputs && !strcmp(name, "classes") ? app->outputs : otherwise;
    value = strtoll(text, &end, 10);
    if (*end || value < least || value > most)
        (void)tnn_fail(app, TN_E_ARG,
                       "option model.%s is \"%.64s\", a whole number from %lld to %lld is needed", name, text,
                       (long long)least, (long long)most);
    return value;
}

/* model.dropout: "0", "0.5"; the same in every locale. */
static double rate(tn_app *app, double otherwise)
{
    const char *text = text_of(app, "dropout"), *c = text;
    double value = 0, unit = 1;

    if (!text)
        return otherwise;
    if (*c == '0' && *++c == '.')
        for (c++; *c >= '0' && *c <= '9' && unit < 1e9; unit *= 10)
            value = value * 10 + (*c++ - '0');
    if (*c || c == text)
        (void)tnn_fail(app, TN_E_ARG, "option model.dropout is \"%.64s\", a rate such as 0.5 is needed",
                       text);
    return value / unit;
}

/* No option in [model] but those of the family. */
static tn_status options_check(tn_app *app, uint8_t family)
{
    const char *own[KNOWN + 1] = {NULL};
    size_t count = 0, own_count = 0;

    for (size_t i = 0; i < KNOWN; i++)
        if (known[i].families & 1u << family)
            own[own_count++] = known[i].name;
    if (tnn_check(app, tn_ctx_option_count(app->ctx, &count), "%s", ""))
        return app->status;
    for (size_t i = 0; i < count; i++) {
        tn_option_info row = {.struct_size = sizeof row};

        if (tnn_check(app, tn_ctx_option_at(app->ctx, i, &row), "%s", ""))
            return app->status;
        if (!strncmp(row.key, "model.", 6) && strcmp(row.key, "model.*") && !tnn_one_of(row.key + 6, own))
            return tnn_unknown(app, "option in [model]", row.key + 6, own);
    }
    return TN_OK;
}

/* ---- nets ---- */

/*
 * LeNet (LeCun, Bottou, Bengio, Haffner: "Gradient-based learning applied to document recognition", 1998) as
 * MXNet's example has it, for any image of 8×8 or more: with pad 2 the convolutions keep the size.
 */
static tn_net *lenet(tn_app *app, const char *activation, int64_t classes)
{
    const int32_t pad = (int32_t)option(app, "pad", 2, 0, 16);
    tn_net *net = tn_net_new(app, .name = "lenet");

    tn_net_conv2d(net, .channels = 20, .kernel = {5, 5}, .pad = {pad, pad}, .activation = activation);
    tn_net_maxpool2d(net, .kernel = {2, 2}, .stride = {2, 2});
    tn_net_conv2d(net, .channels = 50, .kernel = {5, 5}, .pad = {pad, pad}, .activation = activation);
    tn_net_maxpool2d(net, .kernel = {2, 2}, .stride = {2, 2});
    tn_net_flatten(net);
    tn_net_dense(net, .units = 500, .activation = activation);
    tn_net_dense(net, .units = classes);
    return net;
}

/* Two hidden layers, as MXNet's example has them, for samples of any shape. */
static tn_net *mlp(tn_app *app, const char *activation, int64_t classes)
{
    tn_net *net = tn_net_new(app, .name = "mlp");

    tn_net_flatten(net);
    tn_net_dense(net, .units = 128, .activation = activation);
    tn_net_dense(net, .units = 64, .activation = activation);
    tn_net_dense(net, .units = classes);
    return net;
}

static tn_net *chain_net(tn_app *app, bool is_lenet)
{
    const int64_t classes = option(app, "classes", 10, 1, 1 << 20);
    const char *given = text_of(app, "activation");

    return is_lenet ? lenet(app, given ? given : "tanh", classes) : mlp(app, given ? given : "relu", classes);
}

static void zoo_destroy(tnn_object *object)
{
    free(object);
}

static tn_net *function_net(tn_app *app, size_t row)
{
    tnn_zoo *z = tnn_alloc(app, 1, sizeof *z);
    char name[24];
    tn_net *net;

    if (!z)
        return NULL;
    tnn_object_add(app, &z->object, zoo_destroy);
    z->family = rows[row].family;
    memcpy(z->numbers, rows[row].numbers, sizeof z->numbers);
    z->variant = rows[row].variant;
    if (z->family == TNN_VGG)
        z->variant = (uint8_t)option(app, "batch_norm", z->variant, 0, 1);
    z->classes = option(app, "classes", 1000, 1, 1 << 20);
    z->bottleneck = (int32_t)option(app, "bn_size", 4, 1, 64);
    z->thumbnail = option(app, "thumbnail", 0, 0, 1) != 0;
    z->dropout = rate(app, z->family == TNN_DENSENET ? 0 : 0.5);
    (void)snprintf(name, sizeof name, "%s", names[row]);
    for (char *dot = name; (dot = strchr(dot, '.'));)
        *dot = '_';
    if (!tnn_ok(app) || !(net = tnn_net_create(app, NULL, name, "")))
        return NULL;
    net->function = net->shapeless = true;
    net->inner = tnn_zoo_run;
    net->arg = z;
    return net;
}

const char *const *tn_net_zoo_names(void)
{
    return names;
}

/* The next letter or digit, small; dots, lines and capitals make no difference. */
static char letter(const char **text)
{
    char c;

    *text += strspn(*text, "._-");
    c = **text;
    *text += c != '\0';
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* Whether `name` is `full`, or its short form, which leaves out "_v1" or "1.0" at the end. */
static bool same_name(const char *name, const char *full)
{
    char c;

    do {
        const char *rest = full;

        c = letter(&name);
        if (c != letter(&full))
            return !c && (!strcmp(rest, "_v1") || !strcmp(rest, "1.0") || !strcmp(rest, "_1.0"));
    } while (c);
    return true;
}

const char *tn_net_zoo_find(const char *name)
{
    if (name && !strncmp(name, "zoo:", 4))
        name += 4;
    for (size_t i = 0; name && names[i]; i++)
        if (same_name(name, names[i]))
            return names[i];
    return NULL;
}

bool tnn_zoo_takes_images(const char *name)
{
    const char *found = tn_net_zoo_find(name);
    size_t row = 0;

    while (names[row] && names[row] != found)
        row++;
    return names[row] && rows[row].images;
}

tn_net *tn_net_zoo(tn_app *app, const char *name)
{
    const char *found = tn_net_zoo_find(name);
    tn_net *net = NULL;
    size_t row = 0;

    if (!tnn_ok(app))
        return NULL;
    if (!found) {
        (void)tnn_unknown(app, "net of the zoo", name ? name + 4 * !strncmp(name, "zoo:", 4) : "", names);
        return NULL;
    }
    while (names[row] != found)
        row++;
    if (!options_check(app, rows[row].family))
        net = row < CHAINS ? chain_net(app, !row) : function_net(app, row);
    return tnn_ok(app) ? net : NULL;
}
