/*
 * Deformable convolutions as functions over values: a convolution of the input finds where each tap reads,
 * and, if modulated, what it is multiplied by. Parameters, their names and their order are those of Gluon's
 * DeformableConvolution and ModulatedDeformableConvolution.
 */
#include "run.h"

#include <string.h>

enum { SIDE_MAX = 1024 };

typedef struct deformable {
    tn_deformable_options o;
    const char *what;
    bool modulated;
    int64_t taps; /* numbers that a tap and part has: 2 of its place, 1 of its factor */
} deformable;

static tn_status wrong(tn_app *app, const deformable *d, const char *what)
{
    return tnn_fail(app, TN_E_ARG, "%s, called at %s:%d: %s", d->what, d->o.file ? d->o.file : "?", d->o.line,
                    what);
}

/* Fills in what is left out. */
static tn_status options_fill(tn_app *app, deformable *d, tn_x x)
{
    tn_deformable_options *o = &d->o;
    int32_t *const sides[] = {o->kernel, o->stride, o->dilate, o->pad};

    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 2; i++) {
            sides[k][i] = sides[k][i] || k == 3 ? sides[k][i] : i ? sides[k][0] : 1;
            if (sides[k][i] < (k < 3) || sides[k][i] > SIDE_MAX)
                return wrong(app, d, ".kernel, .stride, .dilate or .pad is not within 1 (.pad: 0) and 1024");
        }
    o->groups = o->groups ? o->groups : 1;
    o->parts = o->parts ? o->parts : 1;
    if (o->channels < 1 || o->groups < 1 || o->parts < 1 || o->groups > SIDE_MAX || o->parts > SIDE_MAX)
        return wrong(app, d, ".channels, .groups or .parts is below 1, or one of the last two above 1024");
    if (tnn_value_shape(x)->ndim != 4)
        return wrong(app, d, "images (N, C, H, W) are needed");
    if (o->channels % o->groups || tnn_value_shape(x)->dims[1] % o->groups)
        return wrong(app, d, ".groups do not divide the channels");
    return TN_OK;
}

/* Of the convolution to the places, or of the one that reads there. */
static void attrs_set(const deformable *d, tnn_spec *s, bool reads)
{
    const tn_deformable_options *o = &d->o;

    tnn_spec_attr(s, "kernel", "(%d, %d)", o->kernel[0], o->kernel[1]);
    tnn_spec_attr(s, "stride", "(%d, %d)", o->stride[0], o->stride[1]);
    tnn_spec_attr(s, "dilate", "(%d, %d)", o->dilate[0], o->dilate[1]);
    tnn_spec_attr(s, "pad", "(%d, %d)", o->pad[0], o->pad[1]);
    tnn_spec_attr(s, "num_filter", "%lld", (long long)(reads ? o->channels : d->taps));
    tnn_spec_attr(s, "num_group", "%d", o->groups);
    tnn_spec_attr(s, "no_bias", (reads ? o->no_bias : o->offset_no_bias) ? "True" : "False");
    if (reads)
        tnn_spec_attr(s, "num_deformable_group", "%d", o->parts);
    tnn_spec_attr(s, "layout", "NCHW");
}

static tnn_spec spec_of(const deformable *d, const char *stem, const char *op)
{
    tnn_spec s;

    memset(&s, 0, sizeof s);
    s.stem = stem;
    s.op = op;
    s.file = d->o.file;
    s.line = d->o.line;
    s.plain = true;
    return s;
}

static void weight_add(const deformable *d, tnn_spec *s, tn_x x, bool reads)
{
    const uint32_t i = s->param_count++;
    const int64_t shape[] = {reads ? d->o.channels : d->taps, tnn_value_shape(x)->dims[1] / d->o.groups,
                             d->o.kernel[0], d->o.kernel[1]};

    s->params[i].role = reads ? TNN_WEIGHT : TNN_OFFSET;
    s->params[i].suffix = reads ? "deformable_conv_weight" : "offset_weight";
    s->params[i].ndim = 4;
    memcpy(s->params[i].shape, shape, sizeof shape);
    if (reads ? d->o.no_bias : d->o.offset_no_bias)
        return;
    s->params[s->param_count].role = TNN_BIAS;
    s->params[s->param_count].suffix = reads ? "deformable_conv_bias" : "offset_bias";
    s->params[s->param_count].ndim = 1;
    s->params[s->param_count++].shape[0] = *shape;
}

/* The parameters, then where those of the second convolution begin. */
static bool params_make(const deformable *d, tn_x x, tn_x *out, uint32_t first[2])
{
    tnn_spec s = spec_of(d, d->modulated ? "modulated_deformable_conv" : "deformable_conv", "Convolution");

    s.name = d->o.name;
    s.plain = false;
    s.share = d->o.share != 0;
    attrs_set(d, &s, true);
    for (int i = 0; i < 2; i++) {
        const bool reads = (i == 0) == d->modulated; /* Gluon's order */

        first[reads] = s.param_count;
        weight_add(d, &s, x, reads);
    }
    return tnn_value_params(&s, x, out);
}

static tn_x run(deformable *d, tn_x x, const tn_deformable_options *options)
{
    const char *op =
        d->modulated ? "_contrib_ModulatedDeformableConvolution" : "_contrib_DeformableConvolution";
    tn_x params[4], in[5] = {x}, places;
    tnn_spec find, read;
    uint32_t first[2], count = 1;
    tn_app *app;
    int64_t numbers;

    tnn_options_copy(&d->o, sizeof d->o, options);
    if (!(app = tnn_value_app(x, d->what, d->o.file, d->o.line)) || options_fill(app, d, x))
        return NULL;
    numbers = (int64_t)d->o.parts * d->o.kernel[0] * d->o.kernel[1];
    d->taps = (d->modulated ? 3 : 2) * numbers;
    if (!params_make(d, x, params, first))
        return NULL;
    find = spec_of(d, "places", "Convolution");
    attrs_set(d, &find, false);
    in[count++] = params[first[0]];
    if (!d->o.offset_no_bias)
        in[count++] = params[first[0] + 1];
    in[1] = places = tnn_value_layer(&find, count, in, NULL, 0);
    count = 2;
    if (d->modulated) {
        const tn_slice_options to = {
            .struct_size = sizeof to, .line = d->o.line, .file = d->o.file, .axis = 1, .end = 2 * numbers};
        const tn_slice_options from = {.struct_size = sizeof from,
                                       .line = d->o.line,
                                       .file = d->o.file,
                                       .axis = 1,
                                       .begin = 2 * numbers};

        in[1] = tn_slice_(places, &to);
        places = tn_sigmoid_(tn_slice_(places, &from), d->o.file, d->o.line);
        in[count++] = tn_scale_(places, 2, d->o.file, d->o.line);
    }
    read = spec_of(d, "deformed", op);
    read.activation = d->o.activation;
    attrs_set(d, &read, true);
    in[count++] = params[first[1]];
    if (!d->o.no_bias)
        in[count++] = params[first[1] + 1];
    return tnn_value_layer(&read, count, in, NULL, 0);
}

tn_x tn_deformableconv2d_(tn_x x, const tn_deformable_options *options)
{
    deformable d = {.what = "tn_deformableconv2d"};

    return run(&d, x, options);
}

tn_x tn_modulateddeformableconv2d_(tn_x x, const tn_deformable_options *options)
{
    deformable d = {.what = "tn_modulateddeformableconv2d", .modulated = true};

    return run(&d, x, options);
}
