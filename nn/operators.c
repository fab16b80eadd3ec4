/*
 * Operators of values: those of operators.list, those with arguments of their own, and what is composed of
 * them.
 */
#include "formula.h"
#include "run.h"

#include <string.h>

static tnn_spec spec_of(const char *stem, const char *op, const char *file, int32_t line)
{
    tnn_spec s;

    memset(&s, 0, sizeof s);
    s.stem = stem;
    s.op = op;
    s.file = file;
    s.line = line;
    s.plain = true;
    return s;
}

/* One value in, one out, one attribute at most. */
static tn_x one(tn_x x, const char *stem, const char *op, const char *attr, const char *text,
                const char *file, int32_t line)
{
    tnn_spec s = spec_of(stem, op, file, line);

    if (*attr)
        tnn_spec_attr(&s, attr, "%s", text);
    return tnn_value_layer(&s, 1, &x, NULL, 0);
}

#define ONE(name, op, attr, text)                                                                            \
    tn_x tn_##name##_(tn_x x, const char *file, int32_t line)                                                \
    {                                                                                                        \
        return one(x, #name, op, attr, text, file, line);                                                    \
    }
#define TWO(name, op, stretched, stem)                                                                       \
    tn_x tn_##name##_(tn_x a, tn_x b, const char *file, int32_t line)                                        \
    {                                                                                                        \
        tnn_spec s = spec_of(stem, op, file, line);                                                          \
        s.marked = true;                                                                                     \
        return two(a, b, &s, stretched);                                                                     \
    }

static bool same_dims(tn_x a, tn_x b)
{
    const tnn_shape *s = tnn_value_shape(a), *t = tnn_value_shape(b);

    return s->ndim == t->ndim &&
           (s->ndim <= 0 || !memcmp(s->dims, t->dims, (size_t)s->ndim * sizeof *s->dims));
}

static tn_x two(tn_x a, tn_x b, tnn_spec *s, const char *stretched)
{
    const tn_x in[2] = {a, b};

    if (a && b && !same_dims(a, b))
        s->op = stretched;
    return tnn_value_layer(s, 2, in, NULL, 0);
}

#include "operators.list"

/* ---- with arguments ---- */

tn_x tn_scale_(tn_x x, double by, const char *file, int32_t line)
{
    tnn_spec s = spec_of("mulscalar", "_mul_scalar", file, line);

    tnn_spec_number(&s, "scalar", 17, by);
    return tnn_value_layer(&s, 1, &x, NULL, 0);
}

tn_x tn_shift_(tn_x x, double by, const char *file, int32_t line)
{
    tnn_spec s = spec_of("plusscalar", "_plus_scalar", file, line);

    tnn_spec_number(&s, "scalar", 17, by);
    return tnn_value_layer(&s, 1, &x, NULL, 0);
}

tn_x tn_swish_(tn_x x, double beta, const char *file, int32_t line)
{
    tnn_spec s = spec_of("mul", "elemwise_mul", file, line);
    const tn_x in[2] = {x, tn_sigmoid_(beta == 1 ? x : tn_scale_(x, beta, file, line), file, line)};

    return tnn_value_layer(&s, 2, in, NULL, 0);
}

/* "(2, -1)" of several numbers. */
static void tuple_attr(tnn_spec *s, const char *name, size_t count, const int64_t *items)
{
    char text[TNN_SHAPE_TEXT];
    size_t used = 0;

    if (!items || count < 1 || count > TNN_NDIM_MAX) {
        tnn_spec_wrong(s, "%zu dimensions, 1 to %d are allowed", items ? count : 0, TNN_NDIM_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%lld", i ? ", " : "(", (long long)items[i]);
    tnn_spec_attr(s, name, "%s%s", text, count == 1 ? ",)" : ")");
}

tn_x tn_reshape_(tn_x x, size_t count, const int64_t *shape, const char *file, int32_t line)
{
    tnn_spec s = spec_of("reshape", "Reshape", file, line);

    tuple_attr(&s, "shape", count, shape);
    return tnn_value_layer(&s, 1, &x, NULL, 0);
}

tn_x tn_transpose_(tn_x x, size_t count, const int64_t *axes, const char *file, int32_t line)
{
    tnn_spec s = spec_of("transpose", "transpose", file, line);

    tuple_attr(&s, "axes", count, axes);
    return tnn_value_layer(&s, 1, &x, NULL, 0);
}

/* Channels go to space: (N, C f…, D…) to (N, C, D f…), by Reshape's codes, so that sizes may change. */
tn_x tn_pixelshuffle_(tn_x x, const tn_pixelshuffle_options *options)
{
    static const char *const orders[] = {"(0, 1, 3, 2)", "(0, 1, 4, 2, 5, 3)", "(0, 1, 5, 2, 6, 3, 7, 4)"};
    static const char *const joined[] = {"(0, 0, -3)", "(0, 0, -3, -3)", "(0, 0, -3, -3, -3)"};
    tn_pixelshuffle_options o = {0};
    int64_t factors = 1;
    char text[160];
    tnn_spec s;
    int32_t axes;

    tnn_options_copy(&o, sizeof o, options);
    if (!tnn_value_app(x, "tn_pixelshuffle", o.file ? o.file : "?", o.line))
        return NULL;
    axes = tnn_value_shape(x)->ndim - 2;
    s = spec_of("pixelshuffle", "Reshape", o.file, o.line);
    for (int i = 0; i < 3; i++) {
        o.factor[i] = o.factor[i] || i == 0 ? o.factor[i] : o.factor[0];
        if (o.factor[i] < 1 || o.factor[i] > 1024)
            tnn_spec_wrong(&s, ".factor is %d, 1 to 1024 is allowed", o.factor[i]);
        factors *= i < axes ? o.factor[i] : 1;
    }
    if (axes < 1 || axes > 3)
        tnn_spec_wrong(&s, "an input of %d dimensions, 3 to 5 are needed", axes + 2);
    tnn_spec_attr(&s, "shape", "(0, -4, -1, %lld, -2)", (long long)factors);
    x = tnn_value_layer(&s, 1, &x, NULL, 0);
    for (int i = 0; x && i + 1 < axes; i++) {
        factors /= o.factor[i];
        (void)snprintf(text, sizeof text, "(0, 0, %s-4, %d, %lld, -2)", i ? "0, " : "", o.factor[i],
                       (long long)factors);
        x = one(x, "reshape", "Reshape", "shape", text, o.file, o.line);
    }
    x = x ? one(x, "transpose", "transpose", "axes", orders[axes - 1], o.file, o.line) : NULL;
    return x ? one(x, "reshape", "Reshape", "shape", joined[axes - 1], o.file, o.line) : NULL;
}

tn_x tn_dropout_mask_(tn_x like, double rate, const char *file, int32_t line)
{
    const tn_dropout_options o = {.struct_size = sizeof o, .line = line, .file = file, .rate = rate};

    return tn_dropout_(one(like, "ones_like", "ones_like", "", "", file, line), &o);
}

tn_x tn_zoneout_(tn_x now, tn_x before, double rate, const char *file, int32_t line)
{
    tnn_spec s = spec_of("where", "where", file, line);
    tn_x in[3];

    if (before && !tnn_value_pair(now, before, "tn_zoneout", file, line))
        return NULL;
    in[0] = tn_dropout_mask_(now, rate, file, line);
    in[1] = now;
    in[2] = before ? before : one(now, "zeros_like", "zeros_like", "", "", file, line);
    return tnn_value_layer(&s, 3, in, NULL, 0);
}

tn_x tn_slice_(tn_x x, const tn_slice_options *options)
{
    tn_slice_options o = {0};
    tnn_spec s;

    tnn_options_copy(&o, sizeof o, options);
    s = spec_of("slice", "slice_axis", o.file, o.line);
    tnn_spec_attr(&s, "axis", "%d", o.axis);
    tnn_spec_attr(&s, "begin", "%lld", (long long)o.begin);
    tnn_spec_attr(&s, "end", o.end ? "%lld" : "None", (long long)o.end);
    return tnn_value_layer(&s, 1, &x, NULL, 0);
}

static bool count_bad(tnn_spec *s, size_t count, const void *list)
{
    if (list && count >= 1 && count <= TNN_LAYER_VALUES)
        return false;
    tnn_spec_wrong(s, "%zu values, 1 to %d are allowed", list ? count : 0, TNN_LAYER_VALUES);
    return true;
}

tn_x tn_concat_(int32_t axis, size_t count, const tn_x *values, const char *file, int32_t line)
{
    tnn_spec s = spec_of("concat", "Concat", file, line);
    tnn_run *r = tnn_running();

    if (count_bad(&s, count, values)) {
        (void)(r && tnn_spec_check(r->app, &s, "tn_concat"));
        return NULL;
    }
    s.marked = true;
    tnn_spec_attr(&s, "num_args", "%zu", count);
    tnn_spec_attr(&s, "dim", "%d", axis);
    return tnn_value_layer(&s, (uint32_t)count, values, NULL, 0);
}

tn_x tn_split_(tn_x x, size_t count, int32_t axis, tn_x *out, const char *file, int32_t line)
{
    tnn_spec s = spec_of("split", "SliceChannel", file, line);
    tnn_run *r = tnn_running();

    if (count_bad(&s, count, out)) {
        (void)(r && tnn_spec_check(r->app, &s, "tn_split"));
        return NULL;
    }
    tnn_spec_attr(&s, "num_outputs", "%zu", count);
    tnn_spec_attr(&s, "axis", "%d", axis);
    return tnn_value_layer(&s, 1, &x, out, (uint32_t)count);
}

tn_x tn_op_(tn_x x, const char *op, const tn_op_options *options)
{
    tn_op_info info = {.struct_size = sizeof info};
    tn_op_options o = {0};
    tn_x in[1 + TNN_VALUES_MAX] = {x};
    uint32_t count = 1;
    tn_app *app;
    tnn_spec s;

    tnn_options_copy(&o, sizeof o, options);
    if (!(app = tnn_value_app(x, "tn_op", o.file, o.line)))
        return NULL;
    if (!op || o.out_count < 0 || o.out_count > TNN_LAYER_VALUES || (o.out_count && !o.out)) {
        (void)tnn_fail(app, TN_E_ARG, "tn_op, called at %s:%d: %s", o.file ? o.file : "?", o.line,
                       op ? ".out and .out_count do not fit" : "the operator's name is missing");
        return NULL;
    }
    if (tnn_check(app, tn_op_find(app->ctx, op, &info), "tn_op, called at %s:%d", o.file ? o.file : "?",
                  o.line))
        return NULL;
    s = spec_of(info.name, info.name, o.file, o.line); /* names of operators live as long as the app */
    s.name = o.name;
    s.marked = true;
    s.random = info.random != 0;
    for (size_t i = 0; i + 1 < sizeof o.attrs / sizeof *o.attrs && o.attrs[i] && o.attrs[i + 1]; i += 2)
        tnn_spec_attr(&s, o.attrs[i], "%s", o.attrs[i + 1]);
    while (count <= TNN_VALUES_MAX && o.with[count - 1]) {
        in[count] = o.with[count - 1];
        count++;
    }
    return tnn_value_layer(&s, count, in, o.out, (uint32_t)o.out_count);
}

/* ---- losses and metrics: one number per sample ---- */

tn_x tn_mean_(tn_x x, const char *file, int32_t line)
{
    tnn_spec s = spec_of("mean", "mean", file, line);

    tnn_spec_attr(&s, "axis", "(0,)");
    tnn_spec_attr(&s, "exclude", "True");
    return tnn_value_layer(&s, 1, &x, NULL, 0);
}

tn_x tnn_value_like(tn_x labels, tn_x x, const char *file, int32_t line)
{
    tnn_shape s;

    if (!labels || !x || same_dims(labels, x) || tnn_value_shape(x)->ndim < 1)
        return labels;
    s = *tnn_value_shape(x);
    s.dims[0] = -1; /* whatever the batch's size is */
    return tn_reshape_(labels, (size_t)s.ndim, s.dims, file, line);
}

void *tnn_value_step(void *place, const tnn_step *step)
{
    static const char *const pairs[][3] = {
        {"add", "elemwise_add", "broadcast_add"}, {"sub", "elemwise_sub", "broadcast_sub"},
        {"mul", "elemwise_mul", "broadcast_mul"}, {"div", "elemwise_div", "broadcast_div"},
        {"greater", NULL, "broadcast_greater"},   {"equal", NULL, "broadcast_equal"},
        {"maximum", NULL, "broadcast_maximum"},   {"minimum", NULL, "broadcast_minimum"},
    };
    const tnn_place *at = place;
    tnn_spec s = spec_of(step->op, step->op, at->file, at->line);
    tn_x in[3] = {NULL};

    for (uint32_t i = 0; i < step->count; i++)
        in[i] = step->in[i];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!strcmp(step->op, pairs[i][0]))
            s.op = pairs[i][1] && same_dims(in[0], in[1]) ? pairs[i][1] : pairs[i][2];
    for (int i = 0; step->attrs && i < 4 && step->attrs[i]; i += 2)
        tnn_spec_attr(&s, step->attrs[i], "%s", step->attrs[i + 1]);
    if (step->scalar)
        tnn_spec_number(&s, "scalar", 17, *step->scalar);
    return tnn_value_layer(&s, step->count, in, NULL, 0);
}

/* The axis of the classes, as a metric of arrays has it. */
static const char *classes_axis(tn_x x, tn_x labels)
{
    const tnn_shape *s = tnn_value_shape(x), *t = tnn_value_shape(labels);
    size_t count = 1;

    for (int32_t i = 0; i < t->ndim; i++)
        count *= (size_t)t->dims[i];
    return tnn_classes_second(s->ndim, s->dims, count) ? "1" : "-1";
}

tn_x tn_accuracy_(tn_x x, tn_x labels, const char *file, int32_t line)
{
    tnn_spec s = spec_of("equal", "broadcast_equal", file, line);
    tn_x in[2];

    if (!tnn_value_pair(x, labels, "accuracy", file, line))
        return NULL;
    in[0] = one(x, "argmax", "argmax", "axis", classes_axis(x, labels), file, line);
    in[1] = tnn_value_like(labels, in[0], file, line);
    return tnn_value_layer(&s, 2, in, NULL, 0);
}

/* Zeros for each sample of x, whatever the batch's size: made of x itself. */
tn_x tn_state_(tn_x x, int64_t units, const char *file, int32_t line)
{
    tnn_spec stretch = spec_of("broadcast_axis", "broadcast_axis", file, line);
    const tn_slice_options first = {
        .struct_size = sizeof first, .line = line, .file = file, .axis = 1, .end = 1};
    const int64_t flat[2] = {0, -1};

    if (units < 1)
        tnn_spec_wrong(&stretch, "%lld units, at least 1 is needed", (long long)units);
    tnn_spec_attr(&stretch, "axis", "1");
    tnn_spec_attr(&stretch, "size", "%lld", (long long)units);
    x = one(tn_slice_(tn_reshape_(x, 2, flat, file, line), &first), "zeros_like", "zeros_like", "", "", file,
            line);
    return tnn_value_layer(&stretch, 1, &x, NULL, 0);
}
