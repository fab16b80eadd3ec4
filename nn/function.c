/*
 * Nets that are functions over values: making them, and what a function calls beside its layers: scopes,
 * other nets, sizes.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

/* ---- making ---- */

static tn_status names_take(tn_app *app, const tn_function_options *o, const char *const *given,
                            const char *what, char **names, size_t *count)
{
    size_t n = 0;

    while (n < TNN_VALUES_MAX && given[n])
        n++;
    for (size_t i = 0; i < n; i++) {
        if (!tnn_name_ok(given[i]))
            return tnn_fail(app, TN_E_ARG,
                            "tn_net_function at %s:%d: %s \"%.130s\": 1 to 128 letters, digits, _ and - are "
                            "allowed",
                            o->file ? o->file : "?", o->line, what, given[i]);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(given[i], given[k]))
                return tnn_fail(app, TN_E_KEY, "tn_net_function at %s:%d: two of the %s are called \"%s\"",
                                o->file ? o->file : "?", o->line, what, given[i]);
        if (!(names[i] = tnn_strdup(app, given[i])))
            return app->status;
    }
    *count = n ? n : 1;
    return TN_OK;
}

static tn_net *function_make(tn_app *app, const tn_function_options *options, bool given)
{
    tn_function_options o = {0};
    tn_net *net;

    tnn_options_copy(&o, sizeof o, options);
    if (!tnn_ok(app))
        return NULL;
    if (!given || (o.name && !tnn_name_ok(o.name))) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_function at %s:%d: %s%.130s", o.file ? o.file : "?", o.line,
                       given ? "1 to 128 letters, digits, _ and - are allowed in a name, not "
                             : "the function is NULL",
                       given ? o.name : "");
        return NULL;
    }
    if (!(net = tnn_net_create(app, NULL, o.name ? o.name : "net", "")))
        return NULL;
    net->function = true;
    net->arg = o.arg;
    if (names_take(app, &o, o.inputs, "inputs", net->input_names, &net->input_count) ||
        names_take(app, &o, o.outputs, "outputs", net->output_names, &net->output_count))
        return NULL;
    return net;
}

tn_net *tn_net_function_(tn_app *app, tn_x (*function)(tn_x x), const tn_function_options *options)
{
    tn_net *net = function_make(app, options, function != NULL);

    if (!net)
        return NULL;
    if (net->input_count > 1 || net->output_count > 1) {
        (void)tnn_fail(app, TN_E_ARG,
                       "net %s: a function of one value is given; tn_net_functions() takes several",
                       net->path);
        return NULL;
    }
    net->one = function;
    return net;
}

tn_net *tn_net_functions_(tn_app *app, void (*function)(const tn_x *in, tn_x *out),
                          const tn_function_options *options)
{
    tn_net *net = function_make(app, options, function != NULL);

    if (net)
        net->many = function;
    return net;
}

size_t tn_net_input_count(const tn_net *net)
{
    return tnn_net_app(net) ? net->input_count : 0;
}

void tn_net_retrace(tn_net *net)
{
    if (tnn_net_app(net))
        tnn_net_uncache(net);
}

/* ---- within a function ---- */

int32_t tn_ndim_(tn_x x, const char *file, int32_t line)
{
    return tnn_value_app(x, "tn_ndim", file, line) ? x->shape.ndim : 0;
}

int64_t tn_dim_(tn_x x, int32_t axis, const char *file, int32_t line)
{
    tn_app *app = tnn_value_app(x, "tn_dim", file = file ? file : "?", line);
    const int32_t at = app && axis < 0 ? axis + x->shape.ndim : axis;

    if (!app)
        return 0;
    if (x->shape.ndim < 0) {
        (void)tnn_fail(app, TN_E_STATE, "tn_dim, called at %s:%d: shapes are not known here", file, line);
        return 0;
    }
    if (at < 0 || at >= x->shape.ndim) {
        (void)tnn_fail(app, TN_E_ARG, "tn_dim, called at %s:%d: axis %d, but x has %d dimensions", file, line,
                       axis, x->shape.ndim);
        return 0;
    }
    return x->shape.dims[at];
}

void *tn_arg(tn_x x)
{
    tn_app *app = tnn_value_app(x, "tn_arg", NULL, 0);

    return app ? x->run->frames[x->run->depth - 1].net->arg : NULL;
}

int tn_read_(tn_x x, size_t count, float *out, const char *file, int32_t line)
{
    tn_app *app = tnn_value_app(x, "tn_read", file = file ? file : "?", line);

    if (!app)
        return 0;
    if (!out)
        return !tnn_fail(app, TN_E_ARG, "tn_read, called at %s:%d: out is NULL", file, line);
    if (!x->array)
        return !tnn_fail(
            app, TN_E_STATE,
            "tn_read, called at %s:%d: the net is traced here, so there are no numbers yet; a net "
            "that reads some cannot be hybridized or exported",
            file, line);
    return tn_app_read(app, x->array, count, out);
}

/* "conv0.weight" within the open scopes, "/stage1.conv0.weight" within the net. */
static tnn_param *param_of(const tnn_frame *f, const char *path)
{
    const char *scope = *path == '/' ? "" : f->net->scopes[f->scope].path;
    const size_t length = strlen(scope), above = strlen(f->net->structure);

    path += *path == '/';
    for (size_t i = 0; i < f->net->layer_count; i++)
        for (uint32_t k = 0; k < f->net->layers[i]->param_count; k++) {
            tnn_param *p = f->net->layers[i]->params[k];
            const char *name = p->name + above;

            if (f->net->layers[i]->call == f->net->call && !strncmp(name, scope, length) &&
                !strcmp(name + length, path))
                return p;
        }
    return NULL;
}

tn_x tnn_value_of_param(tnn_run *r, tnn_param *p)
{
    tn_x v = tnn_value_make(r);

    if (!v)
        return NULL;
    v->param = p;
    v->shape = tnn_shape_of(p->ndim, p->shape);
    if (!r->traced)
        tn_array_retain(v->array = p->array);
    else if (tnn_trace_param(r->app, &r->trace, p, &v->ref))
        return NULL;
    return v;
}

tn_x tn_param_(tn_x x, const char *path, const char *file, int32_t line)
{
    tn_app *app = tnn_value_app(x, "tn_param", file = file ? file : "?", line);
    tnn_param *p;

    if (!app)
        return NULL;
    if (!path) {
        (void)tnn_fail(app, TN_E_ARG, "tn_param, called at %s:%d: the path is NULL", file, line);
        return NULL;
    }
    if (!(p = param_of(&x->run->frames[x->run->depth - 1], path))) {
        (void)tnn_fail(
            app, TN_E_KEY,
            "tn_param, called at %s:%d: net %s has run no layer with a parameter \"%.130s\" in this "
            "call\n   help: a layer that is an argument of the same call may run later: put its "
            "value into a variable before",
            file, line, x->run->frames[x->run->depth - 1].net->path, path);
        return NULL;
    }
    return tnn_value_of_param(x->run, p);
}

/* ---- scopes ---- */

void tn_scope_begin_(tn_x x, const char *file, int32_t line, const char *format, ...)
{
    tn_app *app = tnn_value_app(x, "tn_scope_begin", file, line);
    char name[160] = "", path[TNN_PATH_MAX];
    const tnn_frame *f;
    uint32_t scope;
    va_list args;

    if (!app || tnn_hooks_run(x->run, "tn_scope_begin", file, line))
        return;
    va_start(args, format);
    if (format)
        (void)vsnprintf(name, sizeof name, format, args);
    va_end(args);
    f = &x->run->frames[x->run->depth - 1];
    if (!tnn_name_ok(name)) {
        (void)tnn_fail(app, TN_E_ARG,
                       "a scope is called \"%s\" at %s:%d: 1 to 128 letters, digits, _ and - are allowed",
                       name, file ? file : "?", line);
        return;
    }
    if (!f->net->function ||
        snprintf(path, sizeof path, "%s%s.", f->net->scopes[f->scope].path, name) >= (int)sizeof path) {
        (void)tnn_fail(app, TN_E_ARG, "scope \"%s\" at %s:%d: its path is too long", name, file, line);
        return;
    }
    if (!tnn_scope_find(app, f->net, path, &scope))
        (void)tnn_frame_push(x->run, f->net, scope, file ? file : "?", line);
}

void tn_scope_end_(tn_x x, const char *file, int32_t line)
{
    tnn_run *r = tnn_running();
    tn_app *app = x || r ? (x ? tnn_value_app(x, "tn_scope_end", file, line) : r->app) : NULL;
    const tnn_frame *f;

    if (!tnn_ok(app) || !r || tnn_hooks_run(r, "tn_scope_end", file, line))
        return;
    f = &r->frames[r->depth - 1];
    if (!*f->net->scopes[f->scope].path)
        (void)tnn_fail(app, TN_E_STATE, "tn_scope_end, called at %s:%d: no scope is open in net %s",
                       file ? file : "?", line, f->net->path);
    else
        (void)tnn_frame_pop(r);
}

/* ---- nets within nets ---- */

static tn_status use_add(tn_app *app, tn_net *by, tn_net *net)
{
    tn_net **grown;

    for (size_t i = 0; i < by->use_count; i++)
        if (by->uses[i] == net)
            return TN_OK;
    if (!(grown = realloc(by->uses, (by->use_count + 1) * sizeof *grown)))
        return tnn_no_memory(app);
    by->uses = grown;
    grown[by->use_count++] = net;
    tnn_net_grown(by);
    return !by->dtype || by->dtype == net->dtype ? TN_OK : tnn_net_cast(app, net, by->dtype);
}

void tn_net_call_all_(tn_net *net, const tn_x *in, tn_x *out, const char *file, int32_t line)
{
    tnn_run *r = tnn_running();
    tn_app *app = r && tnn_ok(r->app) ? r->app : NULL;
    tn_net *by;

    for (size_t i = 0; net && out && i < net->output_count; i++)
        out[i] = NULL;
    if (!app || tnn_hooks_run(r, "tn_net_call", file, line))
        return;
    if (!net || !in || !out || net->object.app != app || net->model || net->graph || net->running) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_call, called at %s:%d: %s", file ? file : "?", line,
                       !net || !in || !out        ? "a pointer is NULL"
                       : net->object.app != app   ? "a net of another app"
                       : net->model || net->graph ? "the net was loaded, it has no function"
                                                  : "the net is called by its own function");
        return;
    }
    for (size_t i = 0; i < net->input_count; i++)
        if (!tnn_value_app(in[i], "tn_net_call", file, line))
            return;
    by = r->frames[r->depth - 1].net;
    tnn_net_by_hand(net);
    if (!use_add(app, by, net) && tnn_run_net(r, net, in, out))
        for (size_t i = 0; i < net->output_count; i++)
            out[i] = NULL;
}

tn_x tn_net_call_(tn_net *net, tn_x x, const char *file, int32_t line)
{
    tn_x out[TNN_VALUES_MAX] = {NULL};
    tnn_run *r = tnn_running();

    if (r && net && (net->input_count > 1 || net->output_count > 1)) {
        (void)tnn_fail(
            r->app, TN_E_ARG,
            "tn_net_call of %s, called at %s:%d: it has several inputs or outputs, tn_net_call_all() "
            "takes them",
            net->path, file ? file : "?", line);
        return NULL;
    }
    tn_net_call_all_(net, &x, out, file, line);
    return out[0];
}
