/*
 * The kinds of layers: from options to a specification (operator, attributes as text, parameters). A chain
 * adds it as its next layer, a function of values runs it at once; layers.list makes both calls of each kind.
 */
#include "internal.h"

#include <string.h>

/* Sides of which all but the first may be left out. */
static void sides_set(const tnn_window *w, int32_t *out, const int32_t *in, int32_t first_default)
{
    for (int32_t i = 0; i < w->axes; i++)
        out[i] = in[i] ? in[i] : i ? out[0] : first_default;
}

/* "3, 3" */
static const char *sides_text(const tnn_window *w, const int32_t *sides, char out[64])
{
    int used = 0;

    for (int32_t i = 0; i < w->axes; i++)
        used += snprintf(out + used, 64 - (size_t)used, "%s%d", i ? ", " : "", sides[i]);
    return out;
}

/* Checks them, and makes "(3, 3)" of them. */
static void sides_attr(tnn_spec *s, const char *name, const int32_t *sides, int32_t least)
{
    const tnn_window *w = &s->window;
    char text[64];

    (void)sides_text(w, sides, text);
    for (int32_t i = 0; i < w->axes; i++)
        if (sides[i] < least || sides[i] > 1 << 24)
            tnn_spec_wrong(s, ".%s is {%s}, at least %d is needed", name, text, least);
    tnn_spec_attr(s, name, w->axes == 1 ? "(%s,)" : "(%s)", text);
}

static void layout_attr(tnn_spec *s)
{
    static const char *const layouts[] = {"NCW", "NCHW", "NCDHW"};

    tnn_spec_attr(s, "layout", "%s", layouts[s->window.axes - 1]);
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

static void conv_set(tnn_spec *s, int32_t axes, const tn_conv_options *o)
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
    w->axes = axes;
    w->channels = o->channels;
    sides_set(w, w->kernel, o->kernel, 0);
    sides_set(w, w->stride, o->stride, 1);
    sides_set(w, w->dilate, o->dilate, 1);
    memcpy(w->pad, o->pad, sizeof w->pad);
    sides_attr(s, "kernel", w->kernel, 1);
    sides_attr(s, "stride", w->stride, 1);
    sides_attr(s, "pad", w->pad, 0);
    sides_attr(s, "dilate", w->dilate, 1);
    tnn_spec_attr(s, "num_filter", "%lld", (long long)o->channels);
    tnn_spec_attr(s, "num_group", "%d", groups);
    layout_attr(s);
    tnn_spec_attr(s, "no_bias", o->no_bias ? "True" : "False");
    s->activation = o->activation;
    weight = param_add(s, TNN_WEIGHT, "weight", false, o->input ? 2 + axes : 0);
    weight[0] = o->channels;
    weight[1] = groups > 0 ? o->input / groups : 0;
    for (int32_t i = 0; i < axes; i++)
        weight[2 + i] = w->kernel[i];
    weight_bias(s, o->weight, !o->no_bias, o->bias);
}

/* The same windows the other way: from C channels to `channels` larger planes. */
static void transpose_set(tnn_spec *s, int32_t axes, const tn_convtranspose_options *o)
{
    const tn_conv_options as = {.channels = o->channels,
                                .kernel = {o->kernel[0], o->kernel[1], o->kernel[2]},
                                .stride = {o->stride[0], o->stride[1], o->stride[2]},
                                .pad = {o->pad[0], o->pad[1], o->pad[2]},
                                .dilate = {o->dilate[0], o->dilate[1], o->dilate[2]},
                                .groups = o->groups,
                                .no_bias = o->no_bias,
                                .activation = o->activation,
                                .input = o->input,
                                .share = o->share,
                                .weight = o->weight,
                                .bias = o->bias};
    int64_t *weight = s->params[0].shape;

    conv_set(s, axes, &as);
    s->op = "Deconvolution";
    sides_attr(s, "adj", o->adjust, 0);
    weight[0] = o->input;
    weight[1] = o->groups > 1 ? o->channels / o->groups : o->channels;
    s->window.used = false; /* nothing shrinks */
}

static void spec_conv1d(tnn_spec *s, const tn_conv_options *o)
{
    conv_set(s, 1, o);
}

static void spec_conv3d(tnn_spec *s, const tn_conv_options *o)
{
    conv_set(s, 3, o);
}

static void spec_conv2d(tnn_spec *s, const tn_conv2d_options *o)
{
    const tn_conv_options wide = {.channels = o->channels,
                                  .kernel = {o->kernel[0], o->kernel[1]},
                                  .stride = {o->stride[0], o->stride[1]},
                                  .pad = {o->pad[0], o->pad[1]},
                                  .dilate = {o->dilate[0], o->dilate[1]},
                                  .groups = o->groups,
                                  .no_bias = o->no_bias,
                                  .activation = o->activation,
                                  .input = o->input,
                                  .share = o->share,
                                  .weight = o->weight,
                                  .bias = o->bias};

    conv_set(s, 2, &wide);
}

static void pool_set(tnn_spec *s, int32_t axes, const char *type, const tn_pool_options *o)
{
    tnn_window *w = &s->window;

    tnn_spec_begin(s, "pool", "Pooling");
    w->used = true;
    w->axes = axes;
    w->ceil = o->ceil != 0;
    sides_set(w, w->kernel, o->kernel, 2);
    sides_set(w, w->stride, o->stride[0] || o->stride[1] || o->stride[2] ? o->stride : w->kernel, 1);
    w->dilate[0] = w->dilate[1] = w->dilate[2] = 1;
    memcpy(w->pad, o->pad, sizeof w->pad);
    sides_attr(s, "kernel", w->kernel, 1);
    sides_attr(s, "stride", w->stride, 1);
    sides_attr(s, "pad", w->pad, 0);
    tnn_spec_attr(s, "global_pool", "False");
    tnn_spec_attr(s, "pool_type", "%s", type);
    tnn_spec_attr(s, "pooling_convention", o->ceil ? "full" : "valid");
    layout_attr(s);
    if (!strcmp(type, "avg"))
        tnn_spec_attr(s, "count_include_pad", o->exclude_pad ? "False" : "True");
}

static void pool2d_set(tnn_spec *s, const char *type, const tn_pool2d_options *o)
{
    const tn_pool_options wide = {.kernel = {o->kernel[0], o->kernel[1]},
                                  .stride = {o->stride[0], o->stride[1]},
                                  .pad = {o->pad[0], o->pad[1]},
                                  .ceil = o->ceil,
                                  .exclude_pad = o->exclude_pad};

    pool_set(s, 2, type, &wide);
}

static void global_set(tnn_spec *s, int32_t axes, const char *type)
{
    static const int32_t ones[3] = {1, 1, 1}, zeros[3] = {0, 0, 0};

    tnn_spec_begin(s, "pool", "Pooling");
    s->window.axes = axes;
    sides_attr(s, "kernel", ones, 1);
    sides_attr(s, "stride", ones, 1);
    sides_attr(s, "pad", zeros, 0);
    tnn_spec_attr(s, "global_pool", "True");
    tnn_spec_attr(s, "pool_type", "%s", type);
    tnn_spec_attr(s, "pooling_convention", "full");
    layout_attr(s);
}

#define SPEC_OF(kind, options, call)                                                                         \
    static void spec_##kind(tnn_spec *s, const options *o)                                                   \
    {                                                                                                        \
        (void)o;                                                                                             \
        call;                                                                                                \
    }

SPEC_OF(maxpool1d, tn_pool_options, pool_set(s, 1, "max", o))
SPEC_OF(maxpool2d, tn_pool2d_options, pool2d_set(s, "max", o))
SPEC_OF(maxpool3d, tn_pool_options, pool_set(s, 3, "max", o))
SPEC_OF(avgpool1d, tn_pool_options, pool_set(s, 1, "avg", o))
SPEC_OF(avgpool2d, tn_pool2d_options, pool2d_set(s, "avg", o))
SPEC_OF(avgpool3d, tn_pool_options, pool_set(s, 3, "avg", o))
SPEC_OF(globalmaxpool1d, tn_net_options, global_set(s, 1, "max"))
SPEC_OF(globalmaxpool2d, tn_net_options, global_set(s, 2, "max"))
SPEC_OF(globalmaxpool3d, tn_net_options, global_set(s, 3, "max"))
SPEC_OF(globalavgpool1d, tn_net_options, global_set(s, 1, "avg"))
SPEC_OF(globalavgpool2d, tn_net_options, global_set(s, 2, "avg"))
SPEC_OF(globalavgpool3d, tn_net_options, global_set(s, 3, "avg"))

static void batchnorm_set(tnn_spec *s, const char *stem, const char *op, const tn_batchnorm_options *o)
{
    tnn_spec_begin(s, stem, op);
    s->share = o->share != 0;
    if (!(o->momentum >= 0 && o->momentum <= 1))
        tnn_spec_wrong(s, ".momentum is %g, not within 0 and 1", o->momentum);
    if (!(o->epsilon >= 0 && o->epsilon <= 1))
        tnn_spec_wrong(s, ".epsilon is %g, not within 0 and 1", o->epsilon);
    tnn_spec_number(s, "eps", 9, o->epsilon > 0 ? o->epsilon : 1e-5);
    tnn_spec_number(s, "momentum", 9, o->momentum > 0 ? o->momentum : 0.9);
    tnn_spec_attr(s, "fix_gamma", o->no_scale ? "True" : "False");
    tnn_spec_attr(s, "use_global_stats", o->use_global ? "True" : "False");
    if (!s->synced) /* SyncBatchNorm has no axis */
        tnn_spec_attr(s, "axis", "%d", o->axis ? o->axis : 1);
    else if (o->axis != 0 && o->axis != 1)
        tnn_spec_wrong(s, ".axis is %d, 1 is allowed", o->axis);
    (void)param_add(s, TNN_GAMMA, "gamma", o->no_scale != 0, 0);
    (void)param_add(s, TNN_BETA, "beta", o->no_center != 0, 0);
    (void)param_add(s, TNN_MEAN, "running_mean", true, 0);
    (void)param_add(s, TNN_VAR, "running_var", true, 0);
}

SPEC_OF(batchnorm, tn_batchnorm_options, batchnorm_set(s, "batchnorm", "BatchNorm", o))
SPEC_OF(batchnormrelu, tn_batchnorm_options,
        batchnorm_set(s, "batchnormrelu", "_contrib_BatchNormWithReLU", o))

static void spec_syncbatchnorm(tnn_spec *s, const tn_batchnorm_options *o)
{
    s->synced = true;
    batchnorm_set(s, "syncbatchnorm", "_contrib_SyncBatchNorm", o);
}

/* `kept`: gamma, beta stay as they are. */
static void norm_set(tnn_spec *s, const char *stem, const char *op, double epsilon, int32_t share,
                     const int32_t kept[2])
{
    tnn_spec_begin(s, stem, op);
    s->share = share != 0;
    if (!(epsilon >= 0 && epsilon <= 1))
        tnn_spec_wrong(s, ".epsilon is %g, not within 0 and 1", epsilon);
    tnn_spec_number(s, "eps", 9, epsilon > 0 ? epsilon : 1e-5);
    (void)param_add(s, TNN_GAMMA, "gamma", kept[0] != 0, 0);
    (void)param_add(s, TNN_BETA, "beta", kept[1] != 0, 0);
}

static void spec_layernorm(tnn_spec *s, const tn_layernorm_options *o)
{
    norm_set(s, "layernorm", "LayerNorm", o->epsilon, o->share, (const int32_t[]){o->no_scale, o->no_center});
    tnn_spec_attr(s, "axis", "%d", o->axis ? o->axis : -1);
}

static void spec_instancenorm(tnn_spec *s, const tn_instancenorm_options *o)
{
    norm_set(s, "instancenorm", "InstanceNorm", o->epsilon, o->share,
             (const int32_t[]){!o->scale, o->no_center});
}

static void spec_groupnorm(tnn_spec *s, const tn_groupnorm_options *o)
{
    norm_set(s, "groupnorm", "GroupNorm", o->epsilon, o->share, (const int32_t[]){o->no_scale, o->no_center});
    if (o->groups < 0)
        tnn_spec_wrong(s, ".groups is %d, at least 1 is needed", o->groups);
    tnn_spec_attr(s, "num_groups", "%d", o->groups ? o->groups : 1);
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
    s->params[0].rows = o->sparse_grad != 0;
    if (o->sparse_grad)
        tnn_spec_attr(s, "sparse_grad", "%s", "True");
    s->params[0].tied = o->weight;
}

static void spec_dropout(tnn_spec *s, const tn_dropout_options *o)
{
    tnn_spec_begin(s, "dropout", "Dropout");
    s->random = true;
    if (!(o->rate >= 0 && o->rate < 1))
        tnn_spec_wrong(s, ".rate is %g, 0 to below 1 is allowed", o->rate);
    tnn_spec_number(s, "p", 9, o->rate);
    if (o->axes && (strspn(o->axes, "0123456789, ") != strlen(o->axes) || strlen(o->axes) > 64))
        tnn_spec_wrong(s, ".axes is \"%.80s\", numbers with commas between them are allowed", o->axes);
    else
        tnn_spec_attr(s, "axes", o->axes ? "(%s,)" : "()", o->axes);
    tnn_spec_attr(s, "cudnn_off", "False");
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

static void relu_set(tnn_spec *s, const char *stem, const char *type)
{
    tnn_spec_begin(s, stem, "LeakyReLU");
    tnn_spec_attr(s, "act_type", "%s", type);
}

static void spec_leakyrelu(tnn_spec *s, const tn_leakyrelu_options *o)
{
    relu_set(s, "leakyrelu", "leaky");
    tnn_spec_number(s, "slope", 9, o->slope != 0 ? o->slope : 0.25);
}

static void spec_reflectionpad2d(tnn_spec *s, const tn_reflectionpad_options *o)
{
    const int32_t *sides = o->sides, all = o->pad;

    tnn_spec_begin(s, "reflectionpad", "Pad");
    for (int32_t i = 0; i < 4; i++)
        if (sides[i] < 0 || all < 0 || (sides[i] && all))
            tnn_spec_wrong(s, ".pad is %d and .sides {%d, %d, %d, %d}; one of them is given, from 0 on", all,
                           sides[0], sides[1], sides[2], sides[3]);
    tnn_spec_attr(s, "mode", "reflect");
    tnn_spec_attr(s, "pad_width", "(0,0,0,0,%d,%d,%d,%d)", all + sides[0], all + sides[1], all + sides[2],
                  all + sides[3]);
}

static void spec_elu(tnn_spec *s, const tn_elu_options *o)
{
    relu_set(s, "elu", "elu");
    tnn_spec_number(s, "slope", 9, o->alpha != 0 ? o->alpha : 1);
}

static void spec_prelu(tnn_spec *s, const tn_prelu_options *o)
{
    relu_set(s, "prelu", "prelu");
    s->share = o->share != 0;
    if (o->channels < 0)
        tnn_spec_wrong(s, ".channels is %lld, at least 1 is needed", (long long)o->channels);
    *param_add(s, TNN_ALPHA, "alpha", false, 1) = o->channels ? o->channels : 1;
}

SPEC_OF(selu, tn_net_options, relu_set(s, "selu", "selu"))
SPEC_OF(gelu, tn_net_options, relu_set(s, "gelu", "gelu"))

SPEC_OF(conv1dtranspose, tn_convtranspose_options, transpose_set(s, 1, o))
SPEC_OF(conv2dtranspose, tn_convtranspose_options, transpose_set(s, 2, o))
SPEC_OF(conv3dtranspose, tn_convtranspose_options, transpose_set(s, 3, o))

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
