/*
 * Parameters by patterns of their names, and gradients by hand.
 */
#include "internal.h"

#include <math.h>
#include <regex.h>
#include <string.h>

#define PATTERN_MAX 504 /* bytes: names have 128 in each part */

static const char *const modes[] = {"write", "add", "none", NULL};

/* TN_OK: `out` is to be freed. */
static tn_status pattern_take(tn_app *app, const char *call, const char *pattern, regex_t *out)
{
    char why[128];
    int error;

    if (!pattern || strlen(pattern) > PATTERN_MAX)
        return tnn_fail(app, TN_E_ARG, "%s: the pattern is %s", call, pattern ? "too long" : "NULL");
    if (!(error = regcomp(out, pattern, REG_EXTENDED)))
        return TN_OK;
    (void)regerror(error, out, why, sizeof why);
    return tnn_fail(app, TN_E_ARG, "%s: pattern \"%.200s\": %s", call, pattern, why);
}

static bool fits(const tn_net *net, const regex_t *pattern, size_t index)
{
    regmatch_t at; /* the first of all that fit */

    return regexec(pattern, tnn_param_name(net, index), 1, &at, 0) == 0 && at.rm_so == 0;
}

size_t tn_net_match(tn_net *net, const char *pattern, size_t from)
{
    const size_t count = tn_net_param_count(net);
    tn_app *app = tnn_net_app(net);
    regex_t compiled;

    if (!app || net->model || pattern_take(app, "tn_net_match", pattern, &compiled))
        return count;
    while (from < count && !fits(net, &compiled, from))
        from++;
    regfree(&compiled);
    return from < count ? from : count;
}

/* The gradient of one array of a parameter: a new one, or none. */
static tn_status grad_attach(tn_app *app, const tnn_param *p, tn_array *array)
{
    const tn_device *before;
    tn_array *rows = NULL;
    tn_status st = TN_OK;

    if (p->fixed) {
        tn_detach_grad(array);
        return TN_OK;
    }
    if (p->rows) {
        before = tn_device_use(tn_array_device(array));
        st = tnn_rows_none(app, p, &rows);
        (void)tn_device_use(before);
    }
    if (!st)
        st = tn_attach_grad(app->ctx, array, p->mode, rows);
    tn_array_release(rows);
    return tnn_check(app, st, "parameter %s", p->full);
}

static tn_status each_array(tn_app *app, tnn_param *p,
                            tn_status (*function)(tn_app *app, const tnn_param *p, tn_array *array))
{
    if (p->array && function(app, p, p->array))
        return app->status;
    for (size_t k = 1; p->copies && k < app->device_count; k++)
        if (p->copies[k - 1] && function(app, p, p->copies[k - 1]))
            return app->status;
    return TN_OK;
}

static tn_status param_change(tn_app *app, tnn_param *p, const tn_param_options *o)
{
    if (o->lr_mult != 0)
        p->lr_factor = fmax(o->lr_mult, 0);
    if (o->wd_mult != 0)
        p->wd_factor = fmax(o->wd_mult, 0);
    if (!o->grad || p->aux || p->never)
        return TN_OK;
    p->fixed = !strcmp(o->grad, "none");
    p->mode = strcmp(o->grad, "add") ? TN_MODE_WRITE : TN_MODE_ADD;
    return each_array(app, p, grad_attach);
}

size_t tn_net_set_(tn_net *net, const char *pattern, const tn_param_options *options)
{
    tn_app *app = tnn_net_app(net);
    tn_param_options o = {0};
    regex_t compiled;
    size_t count = 0;

    tnn_options_copy(&o, sizeof o, options);
    if (!app || tnn_net_collect(net))
        return 0;
    if (net->model || !isfinite(o.lr_mult) || !isfinite(o.wd_mult)) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_set at %s:%d: %s", o.file ? o.file : "?", o.line,
                       net->model ? "the net was loaded for inference" : "a factor is not finite");
        return 0;
    }
    if (o.grad && !tnn_one_of(o.grad, modes)) {
        (void)tnn_unknown(app, "way of a gradient", o.grad, modes);
        return 0;
    }
    if (pattern_take(app, "tn_net_set", pattern, &compiled))
        return 0;
    for (size_t i = 0; i < net->param_count && !app->status; i++)
        if (fits(net, &compiled, i)) {
            count++;
            (void)param_change(app, net->params[i], &o);
        }
    regfree(&compiled);
    if (!count && !app->status)
        (void)tnn_fail(app, TN_E_KEY, "tn_net_set: no parameter of net %s fits \"%.200s\"", net->path,
                       pattern);
    return app->status ? 0 : count;
}

static tn_status grad_zero(tn_app *app, const tnn_param *p, tn_array *array)
{
    tn_array *grad = tn_array_grad(array);

    if (!grad || p->rows)
        return grad ? grad_attach(app, p, array) : TN_OK;
    return tnn_check(app, tn_array_fill(grad, 0), "gradient of %s", p->full);
}

void tn_net_zero_grad(tn_net *net)
{
    tn_app *app = tnn_net_app(net);

    if (!app || net->model || tnn_net_collect(net))
        return;
    for (size_t i = 0; i < net->param_count && !app->status; i++)
        (void)each_array(app, net->params[i], grad_zero);
}

void tn_net_apply(tn_net *net, void (*function)(void *arg, tn_net *net), void *arg)
{
    tn_app *app = tnn_net_app(net);

    if (!app)
        return;
    if (!function) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_apply: the function is NULL");
        return;
    }
    for (size_t i = 0; i < net->layer_count; i++)
        if (net->layers[i]->child)
            tn_net_apply(net->layers[i]->child, function, arg);
    for (size_t i = 0; i < net->use_count; i++)
        tn_net_apply(net->uses[i], function, arg);
    if (!app->status)
        function(arg, net);
}

const char *tn_net_path(const tn_net *net)
{
    return tnn_net_app(net) ? net->path : "";
}

/* ---- norms ---- */

tn_status tnn_norm(tn_app *app, tn_array *array, double *value)
{
    const int32_t dtype = tn_array_dtype(array);
    tn_array *wide = NULL, *in = array, *out = NULL;
    tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .in_count = 1, .op = "norm", .in = &in};
    tn_status st = TN_OK;

    if ((dtype == TN_F16 || dtype == TN_BF16) && !(st = tn_array_cast(app->ctx, array, TN_F32, &wide)))
        in = wide;
    if (!st && !(st = tn_invoke_text(app->ctx, &call, 1, &out, NULL)))
        st = tn_array_scalar(out, value);
    tn_array_release(out);
    tn_array_release(wide);
    return st;
}

/* In place; of a sparse one what is stored. */
static tn_status scale(tn_app *app, tn_array *array, double by)
{
    char text[TNN_NUMBER_TEXT];
    const char *const attrs[] = {"scalar", text, NULL};
    tn_array *values = NULL, *out;
    tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                       .in_count = 1,
                       .op = "_mul_scalar",
                       .attrs = attrs,
                       .in = &values};
    tn_status st = tn_array_values(array, &values);

    tnn_number_text(text, 17, by);
    out = values;
    if (!st && tn_array_count(values))
        st = tn_invoke_text(app->ctx, &call, 1, &out, NULL);
    tn_array_release(values);
    return st;
}

double tn_app_clip_norm(tn_app *app, size_t count, tn_array *const *arrays, double norm_max)
{
    double sum = 0, value = 0;
    bool given = arrays && count;

    if (!tnn_ok(app))
        return NAN;
    for (size_t i = 0; given && i < count; i++)
        given = arrays[i] != NULL;
    if (!given || !(norm_max > 0) || !isfinite(norm_max)) {
        (void)tnn_fail(app, TN_E_ARG, "tn_app_clip_norm: %s",
                       given ? "the norm is not above 0" : "no arrays, or one is NULL");
        return NAN;
    }
    for (size_t i = 0; i < count; i++) {
        if (tnn_check(app, tnn_norm(app, arrays[i], &value), "tn_app_clip_norm"))
            return NAN;
        sum += value * value;
    }
    sum = sqrt(sum);
    for (size_t i = 0; isfinite(sum) && sum > norm_max && i < count; i++)
        if (tnn_check(app, scale(app, arrays[i], norm_max / (sum + 1e-8)), "tn_app_clip_norm"))
            return NAN;
    return sum;
}
