/*
 * The kinds of layers: from options to a specification (operator, attributes as text, parameters). A chain
 * adds it as its next layer, a function of values runs it at once; layers.list makes both calls of each kind.
 */
#include "internal.h"

#include <string.h>

/* A pair of which the second may be left out. */
static void pair_set(int32_t out[2], const int32_t in[2], int32_t first_default)
{
    out[0] = in[0] ? in[0] : first_default;
    out[1] = in[1] ? in[1] : in[0] ? in[0] : first_default;
}

static void pair_check(tnn_spec *s, const char *what, const int32_t pair[2], int32_t least)
{
    for (int i = 0; i < 2; i++)
        if (pair[i] < least || pair[i] > 1 << 24)
            tnn_spec_wrong(s, "%s is {%d, %d}, at least %d is needed", what, pair[0], pair[1], least);
}

static void window_attrs(tnn_spec *s)
{
    const tnn_window *w = &s->window;

    pair_check(s, ".kernel", w->kernel, 1);
    pair_check(s, ".stride", w->stride, 1);
    pair_check(s, ".pad", w->pad, 0);
    pair_check(s, ".dilate", w->dilate, 1);
    tnn_spec_attr(s, "kernel", "(%d, %d)", w->kernel[0], w->kernel[1]);
    tnn_spec_attr(s, "stride", "(%d, %d)", w->stride[0], w->stride[1]);
    tnn_spec_attr(s, "pad", "(%d, %d)", w->pad[0], w->pad[1]);
}

static int64_t *param_add(tnn_spec *s, tnn_role role, const char *suffix, bool fixed, int32_t ndim)
{
    s->params[s->param_count].role = role;
    s->params[s->param_count].suffix = suffix;
    s->params[s->param_count].fixed = fixed;
    s->params[s->param_count].ndim = ndim;
    return s->params[s->param_count++].shape;
}

static void weight_bias(tnn_spec *s, tn_x weight, bool has_bias, tn_x bias)
{
    s->params[0].tied = weight;
    if (has_bias) {
        (void)param_add(s, TNN_BIAS, "bias", false, 0);
        s->params[1].tied = bias;
    } else if (bias) {
        tnn_spec_wrong(s, ".bias and .no_bias are both given");
    }
}

static void spec_dense(tnn_spec *s, const tn_dense_options *o)
{
    int64_t *weight;

    tnn_spec_begin(s, "dense", "FullyConnected");
    s->share = o->share != 0;
    if (o->units < 1)
        tnn_spec_wrong(s, ".units is %lld, at least 1 is needed", (long long)o->units);
    if (o->input < 0)
        tnn_spec_wrong(s, ".input is %lld, below 0", (long long)o->input);
    tnn_spec_attr(s, "num_hidden", "%lld", (long long)o->units);
    tnn_spec_attr(s, "no_bias", o->no_bias ? "True" : "False");
    tnn_spec_attr(s, "flatten", o->keep_axes ? "False" : "True");
    s->activation = o->activation;
    weight = param_add(s, TNN_WEIGHT, "weight", false, o->input ? 2 : 0);
    weight[0] = o->units;
    weight[1] = o->input;
    weight_bias(s, o->weight, !o->no_bias, o->bias);
}

static void spec_conv2d(tnn_spec *s, const tn_conv2d_options *o)
{
    const int32_t groups = o->groups ? o->groups : 1;
    tnn_window *w = &s->window;
    int64_t *weight;

    tnn_spec_begin(s, "conv", "Convolution");
    s->share = o->share != 0;
    if (o->channels < 1)
        tnn_spec_wrong(s, ".channels is %lld, at least 1 is needed", (long long)o->channels);
    if (groups < 1 || o->channels % groups)
        tnn_spec_wrong(s, ".groups is %d, but %lld channels", groups, (long long)o->channels);
    if (o->input < 0 || (groups > 0 && o->input % groups))
        tnn_spec_wrong(s, ".input is %lld, with %d groups", (long long)o->input, groups);
    w->used = true;
    w->channels = o->channels;
    pair_set(w->kernel, o->kernel, 0);
    pair_set(w->stride, o->stride, 1);
    pair_set(w->dilate, o->dilate, 1);
    memcpy(w->pad, o->pad, sizeof w->pad);
    window_attrs(s);
    tnn_spec_attr(s, "dilate", "(%d, %d)", w->dilate[0], w->dilate[1]);
    tnn_spec_attr(s, "num_filter", "%lld", (long long)o->channels);
    tnn_spec_attr(s, "num_group", "%d", groups);
    tnn_spec_attr(s, "no_bias", o->no_bias ? "True" : "False");
    s->activation = o->activation;
    weight = param_add(s, TNN_WEIGHT, "weight", false, o->input ? 4 : 0);
    weight[0] = o->channels;
    weight[1] = groups > 0 ? o->input / groups : 0;
    weight[2] = w->kernel[0];
    weight[3] = w->kernel[1];
    weight_bias(s, o->weight, !o->no_bias, o->bias);
}

static void pool_set(tnn_spec *s, const char *type, const tn_pool2d_options *o)
{
    tnn_window *w = &s->window;

    tnn_spec_begin(s, "pool", "Pooling");
    w->used = true;
    w->ceil = o->ceil != 0;
    pair_set(w->kernel, o->kernel, 2);
    pair_set(w->stride, o->stride[0] || o->stride[1] ? o->stride : w->kernel, 1);
    w->dilate[0] = w->dilate[1] = 1;
    memcpy(w->pad, o->pad, sizeof w->pad);
    window_attrs(s);
    tnn_spec_attr(s, "pool_type", "%s", type);
    tnn_spec_attr(s, "pooling_convention", o->ceil ? "full" : "valid");
    if (!strcmp(type, "avg"))
        tnn_spec_attr(s, "count_include_pad", o->exclude_pad ? "False" : "True");
}

static void spec_maxpool2d(tnn_spec *s, const tn_pool2d_options *o)
{
    pool_set(s, "max", o);
}

static void spec_avgpool2d(tnn_spec *s, const tn_pool2d_options *o)
{
    pool_set(s, "avg", o);
}

static void spec_globalavgpool2d(tnn_spec *s, const tn_net_options *o)
{
    (void)o;
    tnn_spec_begin(s, "pool", "Pooling");
    tnn_spec_attr(s, "kernel", "(1, 1)");
    tnn_spec_attr(s, "global_pool", "True");
    tnn_spec_attr(s, "pool_type", "avg");
}

static void spec_batchnorm(tnn_spec *s, const tn_batchnorm_options *o)
{
    tnn_spec_begin(s, "batchnorm", "BatchNorm");
    s->share = o->share != 0;
    if (!(o->momentum >= 0 && o->momentum <= 1))
        tnn_spec_wrong(s, ".momentum is %g, not within 0 and 1", o->momentum);
    if (!(o->epsilon >= 0 && o->epsilon <= 1))
        tnn_spec_wrong(s, ".epsilon is %g, not within 0 and 1", o->epsilon);
    tnn_spec_attr(s, "eps", "%.9g", o->epsilon > 0 ? o->epsilon : 1e-5);
    tnn_spec_attr(s, "momentum", "%.9g", o->momentum > 0 ? o->momentum : 0.9);
    tnn_spec_attr(s, "fix_gamma", o->no_scale ? "True" : "False");
    tnn_spec_attr(s, "use_global_stats", o->use_global ? "True" : "False");
    tnn_spec_attr(s, "axis", "%d", o->axis ? o->axis : 1);
    (void)param_add(s, TNN_GAMMA, "gamma", o->no_scale != 0, 0);
    (void)param_add(s, TNN_BETA, "beta", o->no_center != 0, 0);
    (void)param_add(s, TNN_MEAN, "running_mean", true, 0);
    (void)param_add(s, TNN_VAR, "running_var", true, 0);
}

static void spec_layernorm(tnn_spec *s, const tn_layernorm_options *o)
{
    tnn_spec_begin(s, "layernorm", "LayerNorm");
    s->share = o->share != 0;
    if (!(o->epsilon >= 0 && o->epsilon <= 1))
        tnn_spec_wrong(s, ".epsilon is %g, not within 0 and 1", o->epsilon);
    tnn_spec_attr(s, "eps", "%.9g", o->epsilon > 0 ? o->epsilon : 1e-5);
    tnn_spec_attr(s, "axis", "%d", o->axis ? o->axis : -1);
    (void)param_add(s, TNN_GAMMA, "gamma", false, 0);
    (void)param_add(s, TNN_BETA, "beta", false, 0);
}

static void spec_embedding(tnn_spec *s, const tn_embedding_options *o)
{
    int64_t *weight;

    tnn_spec_begin(s, "embedding", "Embedding");
    s->share = o->share != 0;
    if (o->count < 1 || o->units < 1)
        tnn_spec_wrong(s, ".count is %lld and .units %lld, at least 1 is needed", (long long)o->count,
                       (long long)o->units);
    tnn_spec_attr(s, "input_dim", "%lld", (long long)o->count);
    tnn_spec_attr(s, "output_dim", "%lld", (long long)o->units);
    weight = param_add(s, TNN_WEIGHT, "weight", false, 2);
    weight[0] = o->count;
    weight[1] = o->units;
    s->params[0].tied = o->weight;
}

static void spec_dropout(tnn_spec *s, const tn_dropout_options *o)
{
    tnn_spec_begin(s, "dropout", "Dropout");
    s->random = true;
    if (!(o->rate >= 0 && o->rate < 1))
        tnn_spec_wrong(s, ".rate is %g, 0 to below 1 is allowed", o->rate);
    tnn_spec_attr(s, "p", "%.9g", o->rate);
}

static void spec_flatten(tnn_spec *s, const tn_net_options *o)
{
    (void)o;
    tnn_spec_begin(s, "flatten", "Flatten");
}

static void spec_activation(tnn_spec *s, const tn_activation_options *o)
{
    tnn_spec_begin(s, "activation", "Activation");
    if (!o->activation)
        tnn_spec_wrong(s, ".activation is missing");
    else
        tnn_spec_attr(s, "act_type", "%s", o->activation);
    s->activation = o->activation;
    s->itself = true;
}

static void spec_leakyrelu(tnn_spec *s, const tn_leakyrelu_options *o)
{
    tnn_spec_begin(s, "leakyrelu", "LeakyReLU");
    tnn_spec_attr(s, "act_type", "leaky");
    tnn_spec_attr(s, "slope", "%.9g", o->slope != 0 ? o->slope : 0.25);
}

/* ---- the two calls of each kind ---- */

#define SPEC(kind, type)                                                                                     \
    type o;                                                                                                  \
    tnn_spec s;                                                                                              \
    memset(&o, 0, sizeof o);                                                                                 \
    tnn_options_copy(&o, sizeof o, options);                                                                 \
    memset(&s, 0, sizeof s);                                                                                 \
    s.name = o.name;                                                                                         \
    s.file = o.file;                                                                                         \
    s.line = o.line;                                                                                         \
    spec_##kind(&s, &o)

#define LAYER(kind, type)                                                                                    \
    void tn_net_##kind##_(tn_net *net, const type *options)                                                  \
    {                                                                                                        \
        SPEC(kind, type);                                                                                    \
        (void)tnn_layer_add(net, &s);                                                                        \
    }                                                                                                        \
    tn_x tn_##kind##_(tn_x x, const type *options)                                                           \
    {                                                                                                        \
        SPEC(kind, type);                                                                                    \
        return tnn_value_layer(&s, 1, &x, NULL, 0);                                                          \
    }
#include "layers.list"
#undef LAYER
