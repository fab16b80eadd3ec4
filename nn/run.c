/*
 * A call of a net: values, on arrays or traced, and the layers that its function calls.
 *
 * A run belongs to the net that was called from outside; nets that the function calls are frames of it, and
 * so are open scopes. A layer is found by its path: the scopes and its name, or kind and number. The first
 * call makes it; later ones must ask for the same thing. Values live in memory of the run that is used again
 * in the next call but one: a value of the call before is recognised by its number.
 *
 * Which run goes on is known per thread, as recording is.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

static _Thread_local tnn_run *running;

tnn_run *tnn_running(void)
{
    return running;
}

/* ---- values ---- */

tn_x tnn_value_make(tnn_run *r)
{
    const size_t block = r->value_count / TNN_VALUE_BLOCK;
    struct tn_value_handle **values = r->values[r->serial % 2];
    tn_x v;

    if (block == TNN_VALUE_BLOCKS) {
        (void)tnn_fail(r->app, TN_E_ARG, "net %s: a call makes more than %d values", r->net->path,
                       TNN_VALUE_BLOCK * TNN_VALUE_BLOCKS);
        return NULL;
    }
    if (!values[block] &&
        !(values[block] = tnn_alloc(r->app, TNN_VALUE_BLOCK, sizeof(struct tn_value_handle))))
        return NULL;
    v = &values[block][r->value_count % TNN_VALUE_BLOCK];
    memset(v, 0, sizeof *v);
    v->run = r;
    v->serial = r->serial;
    v->order = ++r->value_count;
    v->shape.ndim = -1;
    return v;
}

static void values_release(tnn_run *r)
{
    for (size_t i = 0; i < r->value_count; i++) {
        tn_x v = &r->values[r->serial % 2][i / TNN_VALUE_BLOCK][i % TNN_VALUE_BLOCK];

        tn_array_release(v->array);
        v->array = NULL;
        v->serial = 0;
    }
    r->value_count = 0;
}

void tnn_run_destroy(tnn_run *r)
{
    if (!r)
        return;
    values_release(r);
    for (size_t i = 0; i < TNN_VALUE_BLOCKS; i++) {
        free(r->values[0][i]);
        free(r->values[1][i]);
    }
    tnn_trace_destroy(r->trace);
    free(r->numbers.items);
    free(r->bare.items);
    free(r->numbered);
    free(r);
}

/* Which app a value hangs on that is no value of the running call. */
static tn_status foreign(tn_x x, const char *what, const char *file, int32_t line)
{
    tn_app *app = running ? running->app : x->run->app;

    if (!running)
        return tnn_fail(app, TN_E_STATE, "%s, called at %s:%d: no net's function is running", what, file,
                        line);
    if (x->run->app != app)
        return tnn_fail(app, TN_E_ARG, "%s, called at %s:%d: a value of another app", what, file, line);
    return tnn_fail(app, TN_E_ARG,
                    "%s, called at %s:%d: a value of another call; values end with their net's call", what,
                    file, line);
}

tn_app *tnn_value_app(tn_x x, const char *what, const char *file, int32_t line)
{
    file = file ? file : "?";
    if (!x) {
        if (running)
            (void)tnn_fail(running->app, TN_E_ARG, "%s, called at %s:%d: a value is NULL", what, file, line);
        return NULL;
    }
    if (x->run != running || x->serial != running->serial) {
        (void)foreign(x, what, file, line);
        return NULL;
    }
    return tnn_ok(running->app) ? running->app : NULL;
}

const tnn_shape *tnn_value_shape(tn_x x)
{
    return &x->shape;
}

tnn_param *tnn_value_param(tn_x x)
{
    return x->param;
}

static const char *made_by(tn_x x)
{
    return x->from ? x->from->path : "the input";
}

/* ---- frames ---- */

tn_status tnn_frame_push(tnn_run *r, tn_net *net, uint32_t scope, const char *file, int32_t line)
{
    tnn_frame *f = &r->frames[r->depth];

    if (r->depth == TNN_FRAMES_MAX)
        return tnn_fail(r->app, TN_E_ARG, "net %s: scopes and nets are more than %d deep, at %s:%d",
                        net->path, TNN_FRAMES_MAX, file, line);
    *f = (tnn_frame){.net = net, .scope = scope, .file = file, .line = line};
    f->counters = r->numbers.count;
    f->numbered = r->numbered_count;
    r->depth++;
    return TN_OK;
}

/* All layers of the scope that are known by their number must have run: else numbers have moved. */
static tn_status scope_whole(tnn_run *r, const tnn_frame *f)
{
    tn_net *net = f->net;

    if (!net->function || r->app->status)
        return r->app->status;
    for (size_t i = 0; net->scopes[f->scope].complete && i < net->layer_count; i++) {
        const tnn_layer *l = net->layers[i];

        if (l->scope == f->scope && l->call != net->call && tnn_numbered(l))
            return tnn_fail(
                r->app, TN_E_STATE,
                "%s (%s) ran in the first call, from %s:%d, but not in this one: give layers that "
                "are called conditionally a .name, or a scope",
                l->path, l->op, l->file, l->line);
    }
    net->scopes[f->scope].complete = true;
    return TN_OK;
}

tn_status tnn_frame_pop(tnn_run *r)
{
    const tnn_frame *f = &r->frames[--r->depth];

    r->numbers.count = f->counters;
    r->numbered_count = f->numbered;
    return scope_whole(r, f);
}

tn_status tnn_scope_find(tn_app *app, tn_net *net, const char *path, uint32_t *index)
{
    tnn_scope_row *grown;

    for (*index = 0; *index < net->scope_count; ++*index)
        if (!strcmp(net->scopes[*index].path, path))
            return TN_OK;
    if (net->scope_count == TNN_LAYERS_MAX)
        return tnn_fail(app, TN_E_ARG, "net %s has more than %d scopes", net->path, TNN_LAYERS_MAX);
    if (!(grown = realloc(net->scopes, (net->scope_count + 1) * sizeof *grown)))
        return tnn_no_memory(app);
    net->scopes = grown;
    grown[*index] = (tnn_scope_row){.path = tnn_strdup(app, path)};
    if (!grown[*index].path)
        return app->status;
    net->scope_count++;
    return TN_OK;
}

/* ---- layers by path ---- */

bool tnn_numbered(const tnn_layer *l)
{
    return l->unnamed && (l->param_count || l->random);
}

bool tnn_name_ok(const char *name)
{
    return *name && strlen(name) <= 128 &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") == strlen(name);
}

static tn_status counter_next(tn_app *app, tnn_counters *c, size_t from, const tnn_counter *like,
                              uint32_t *number)
{
    for (size_t i = from; i < c->count; i++)
        if (c->items[i].net == like->net && c->items[i].scope == like->scope &&
            !strcmp(c->items[i].stem, like->stem)) {
            *number = c->items[i].used++;
            return TN_OK;
        }
    if (c->count == c->capacity) {
        const size_t more = c->capacity ? 2 * c->capacity : 64;
        tnn_counter *grown = realloc(c->items, more * sizeof *grown);

        if (!grown)
            return tnn_no_memory(app);
        c->items = grown;
        c->capacity = more;
    }
    c->items[c->count] = *like;
    c->items[c->count++].used = 1;
    *number = 0;
    return TN_OK;
}

/* How many layers of this kind the scope has called, since it was opened. Those that keep nothing are counted
 * through the whole run: each has a row of its own in it, so a trace may point to it. */
static tn_status number_next(tnn_run *r, const tnn_frame *f, const tnn_spec *s, uint32_t *number)
{
    const bool keeps = s->param_count || s->random;
    const tnn_counter like = {f->net, f->scope, 0, s->stem};

    return counter_next(r->app, keeps ? &r->numbers : &r->bare, keeps ? f->counters : 0, &like, number);
}

static tnn_layer *layer_find(tn_net *net, uint32_t scope, const char *name)
{
    for (size_t i = 0; i < net->layer_count; i++) { /* most often the one behind the last one */
        const size_t at = (net->call_at + i) % net->layer_count;

        if (net->layers[at]->scope == scope && !strcmp(net->layers[at]->name, name)) {
            net->call_at = at + 1;
            return net->layers[at];
        }
    }
    return NULL;
}

/* The first attribute that differs; its name. */
static const char *attr_unlike(const tnn_layer *l, const tnn_spec *s, const char **then, const char **now)
{
    for (size_t i = 0; i < l->attr_count || i < s->attr_count; i += 2) {
        *then = i < l->attr_count ? l->attrs[i + 1] : "unset";
        *now = i < s->attr_count ? s->attrs[i + 1] : "unset";
        if (i >= l->attr_count || i >= s->attr_count || strcmp(l->attrs[i], s->attrs[i]) ||
            strcmp(*then, *now))
            return i < s->attr_count ? s->attrs[i] : l->attrs[i];
    }
    *then = l->activation ? l->activation : "none";
    *now = s->activation && !s->itself ? s->activation : "none";
    return strcmp(*then, *now) ? "activation" : NULL;
}

/* Where a layer that keeps nothing was called last. */
static tn_status place_take(tn_app *app, tnn_layer *l, const tnn_spec *s)
{
    const char *file = s->file ? s->file : "?";

    l->line = s->line;
    if (!strcmp(l->file, file))
        return TN_OK;
    free(l->file);
    return (l->file = tnn_strdup(app, file)) ? TN_OK : app->status;
}

/* Its parameters are its own, or those of the same layers as before. */
static tn_status ties_same(tn_app *app, const tnn_layer *l, const tnn_spec *s)
{
    for (uint32_t i = 0; i < l->param_count && i < s->param_count; i++)
        if (l->tied[i] != (s->params[i].tied != NULL) ||
            (l->tied[i] && l->params[i] != s->params[i].tied->param))
            return tnn_fail(app, TN_E_STATE, "%s: .%s is %s at %s:%d, %s in the first call, from %s:%d",
                            l->path, s->params[i].suffix,
                            s->params[i].tied ? s->params[i].tied->param->name : "its own",
                            s->file ? s->file : "?", s->line, l->tied[i] ? l->params[i]->name : "its own",
                            l->file, l->line);
    return TN_OK;
}

/* A layer that is there must be what is asked for. */
static tn_status layer_same(tn_app *app, tnn_layer *l, const tnn_spec *s)
{
    const char *file = s->file ? s->file : "?", *then, *now, *what;
    const bool other = strcmp(l->op, s->op) != 0, bare = l->unnamed && !tnn_numbered(l); /* keeps nothing */

    if (other && !bare)
        return tnn_fail(
            app, TN_E_STATE,
            "%s: %s at %s:%d, %s at %s:%d in the first call; name layers that are called conditionally",
            l->path, s->op, file, s->line, l->op, l->file, l->line);
    if (l->call == l->net->call && !(l->share && s->share))
        return tnn_fail(
            app, TN_E_KEY,
            "%s is called twice in one call of the net, at %s:%d and %s:%d: give one another name, or "
            "both .share = 1",
            l->path, l->file, l->line, file, s->line);
    if (bare && place_take(app, l, s))
        return app->status;
    if (!(what = attr_unlike(l, s, &then, &now)) && !other)
        return ties_same(app, l, s);
    l->op = s->op; /* sums of equal shapes are another operator than others */
    if (bare)
        return tnn_spec_check(app, s, l->path) ? app->status : tnn_layer_attrs(app, l, s);
    return tnn_fail(
        app, TN_E_STATE,
        "%s: %s %s at %s:%d, %s at %s:%d in the first call; name layers that are called conditionally",
        l->path, what, now, file, s->line, then, l->file, l->line);
}

static tnn_layer *layer_new(tnn_run *r, const tnn_frame *f, const tnn_spec *s, const char *name)
{
    tn_net *net = f->net;
    tnn_layer *l;

    if (!s->name && (s->param_count || s->random) && net->scopes[f->scope].complete) {
        (void)tnn_fail(r->app, TN_E_STATE,
                       "%s.%s%s (%s) at %s:%d did not run in the first call: give layers that are called "
                       "conditionally a .name, or a scope",
                       net->path, net->scopes[f->scope].path, name, s->op, s->file ? s->file : "?", s->line);
        return NULL;
    }
    if ((l = tnn_layer_make(net, s, f->scope, name)) && l->param_count)
        tnn_net_grown(net);
    return l;
}

static tnn_layer *layer_of(tnn_run *r, const tnn_spec *s)
{
    const tnn_frame *f = &r->frames[r->depth - 1];
    char made[160];
    const char *name = s->name;
    uint32_t number = 0;
    tnn_layer *l;

    if (tnn_hooks_run(r, s->stem, s->file, s->line))
        return NULL;
    if (name && !tnn_name_ok(name)) {
        (void)tnn_fail(r->app, TN_E_ARG,
                       "a layer is called \"%.130s\" at %s:%d: 1 to 128 letters, digits, _ and - are allowed",
                       name, s->file ? s->file : "?", s->line);
        return NULL;
    }
    if (!name) {
        if (number_next(r, f, s, &number))
            return NULL;
        (void)snprintf(made, sizeof made, "%.100s%u", s->stem, number);
        name = made;
    }
    if (!(l = layer_find(f->net, f->scope, name)))
        l = layer_new(r, f, s, name);
    else if (layer_same(r->app, l, s))
        return NULL;
    if (l)
        l->call = f->net->call;
    return l;
}

/* ---- the order of arguments ---- */

void tn_arguments_(const char *file, int32_t line)
{
    tnn_run *r = running;

    if (r && file && r->mark_count < TNN_MARKS_MAX)
        r->marks[r->mark_count++] = (tnn_mark){file, line, r->value_count, r->depth};
}

/* Puts down that a layer with a number of its own gave value number `order`. */
static tn_status numbered_add(tnn_run *r, uint64_t order)
{
    if (r->numbered_count == r->numbered_capacity) {
        const size_t more = r->numbered_capacity ? 2 * r->numbered_capacity : 64;
        uint64_t *grown = realloc(r->numbered, more * sizeof *grown);

        if (!grown)
            return tnn_no_memory(r->app);
        r->numbered = grown;
        r->numbered_capacity = more;
    }
    r->numbered[r->numbered_count++] = order;
    return TN_OK;
}

static bool numbered_between(const tnn_run *r, uint64_t after, uint64_t last)
{
    for (size_t i = r->numbered_count; i-- > 0 && r->numbered[i] > after;)
        if (r->numbered[i] <= last)
            return true;
    return false;
}

/* Values that arguments of this call have made came up one argument after the other: if two of them called
 * layers that get numbers, which one was first is the compiler's choice. */
static tn_status order_check(tnn_run *r, const tnn_spec *s, uint32_t count, const tn_x *in)
{
    const tnn_mark *m = r->mark_count ? &r->marks[r->mark_count - 1] : NULL;
    uint64_t after;
    int arguments = 0;

    if (!s->marked || !m || m->line != s->line || !s->file || strcmp(m->file, s->file) ||
        m->depth != r->depth)
        return TN_OK;
    after = m->value_count;
    r->mark_count--;
    for (uint32_t k = 0; k < count; k++) { /* in the order in which they were made */
        uint64_t next = UINT64_MAX;

        for (uint32_t i = 0; i < count; i++)
            if (in[i]->order > after && in[i]->order < next)
                next = in[i]->order;
        if (next == UINT64_MAX)
            break;
        arguments += numbered_between(r, after, next);
        after = next;
    }
    if (arguments < 2)
        return TN_OK;
    return tnn_fail(
        r->app, TN_E_STATE,
        "%s in net %s, called at %s:%d: several of its arguments call layers without names, and "
        "compilers differ in which argument they run first: put all but one into variables before "
        "it, or give .name to their layers",
        s->stem, r->net->path, s->file, s->line);
}

tn_app *tnn_value_pair(tn_x a, tn_x b, const char *what, const char *file, int32_t line)
{
    const tn_x in[2] = {a, b};
    const tnn_spec s = {.stem = what, .file = file, .line = line, .marked = true};
    tn_app *app = tnn_value_app(a, what, file, line);

    return app && tnn_value_app(b, what, file, line) && !order_check(running, &s, 2, in) ? app : NULL;
}

/* ---- running a layer ---- */

static tn_x traced(tnn_run *r, tnn_layer *l, uint32_t count, const tn_x *in, tn_x *out, uint32_t out_count)
{
    tnn_ref refs[TNN_LAYER_VALUES];
    tnn_shape shapes[TNN_LAYER_VALUES];
    tnn_outputs found;
    int32_t index = 0;
    tn_x first = NULL;

    found.count = 1;
    found.shape[0].ndim = -1;
    for (uint32_t i = 0; i < count; i++) {
        refs[i] = in[i]->ref;
        shapes[i] = in[i]->shape;
    }
    if ((in[0]->shape.ndim >= 0 && tnn_layer_infer(r->app, l, count, shapes, made_by(in[0]), &found)) ||
        tnn_trace_add(r->app, &r->trace, l, count, refs, &index))
        return NULL;
    for (uint32_t i = 0; i < found.count && (!i || i < out_count); i++) {
        tn_x v = tnn_value_make(r);

        if (!v)
            return NULL;
        v->ref = (tnn_ref){index, i};
        v->shape = found.shape[i];
        v->from = l;
        first = i ? first : v;
        if (i < out_count)
            out[i] = v;
    }
    return found.count < out_count ? tnn_value_few(r, l, found.count, out_count) : first;
}

tn_x tnn_value_few(tnn_run *r, const tnn_layer *l, uint32_t have, uint32_t wanted)
{
    (void)tnn_fail(r->app, TN_E_ARG, "%s (%s), called at %s:%d: %u outputs were asked for, it has %u",
                   l->path, l->op, l->file, l->line, wanted, have);
    return NULL;
}

/* Values of a layer's parameters, at its first call or after new ones were asked for. */
static tn_status layer_ready(tnn_run *r, tnn_layer *l, uint32_t count, const tn_x *in)
{
    tnn_shape shapes[TNN_LAYER_VALUES];
    tnn_outputs found;
    bool ready = true;

    for (uint32_t i = 0; i < l->param_count; i++)
        ready = ready && l->params[i]->array;
    if (ready)
        return tnn_window_check(r->app, l, &in[0]->shape, made_by(in[0]));
    for (uint32_t i = 0; i < count; i++)
        shapes[i] = in[i]->shape;
    if (tnn_layer_infer(r->app, l, count, shapes, made_by(in[0]), &found))
        return r->app->status;
    return tnn_layer_fill(r->app, l, r->net);
}

static tn_x eager(tnn_run *r, tnn_layer *l, uint32_t count, const tn_x *in, tn_x *out, uint32_t out_count)
{
    tn_array *arrays[TNN_LAYER_VALUES], *made[TNN_LAYER_VALUES] = {NULL};
    uint32_t made_count = 0;
    tn_x first = NULL;
    tn_status st;

    if (layer_ready(r, l, count, in))
        return NULL;
    for (uint32_t i = 0; i < count; i++)
        arrays[i] = in[i]->array;
    if ((st = tnn_layer_invoke(r->app, l, count, arrays, TNN_LAYER_VALUES, made, &made_count))) {
        (void)tnn_layer_fail(r->app, l, st, &in[0]->shape, made_by(in[0]));
        return NULL;
    }
    for (uint32_t i = 0; i < made_count; i++) {
        tn_x v = (!i || i < out_count) && !r->app->status ? tnn_value_make(r) : NULL;

        if (!v) {
            tn_array_release(made[i]);
            continue;
        }
        v->array = made[i];
        v->from = l;
        (void)tnn_shape_take(r->app, made[i], l->path, &v->shape);
        first = i ? first : v;
        if (i < out_count)
            out[i] = v;
    }
    if (r->app->status)
        return NULL;
    l->out_ndim = first->shape.ndim;
    memcpy(l->out_shape, first->shape.dims, sizeof l->out_shape);
    return made_count < out_count ? tnn_value_few(r, l, made_count, out_count) : first;
}

static tn_x layer_run(tnn_run *r, tnn_layer *l, uint32_t count, const tn_x *in, tn_x *out, uint32_t out_count)
{
    const bool hooked = r->app->hook_count && !r->traced;
    tn_x v;

    if (hooked)
        tnn_hooks_layer(r, l, count, in, NULL);
    if (r->app->status)
        return NULL;
    v = r->traced ? traced(r, l, count, in, out, out_count) : eager(r, l, count, in, out, out_count);
    if (v && hooked)
        tnn_hooks_layer(r, l, count, in, v);
    if (v && tnn_numbered(l) && numbered_add(r, v->order))
        return NULL;
    return v;
}

/* What .weight and .bias are: parameters of the net that asks. */
static tn_status ties_check(tnn_run *r, const tnn_spec *s)
{
    const tn_net *net = r->frames[r->depth - 1].net;
    const char *file = s->file ? s->file : "?";

    for (uint32_t i = 0; i < s->param_count; i++) {
        const tn_x tied = s->params[i].tied;

        if (!tied)
            continue;
        if (!tnn_value_app(tied, s->stem, file, s->line))
            return r->app->status;
        if (!tied->param || tied->param->aux)
            return tnn_fail(r->app, TN_E_ARG,
                            "%s, called at %s:%d: .%s is %s, tn_param() gives what it takes", s->stem, file,
                            s->line, s->params[i].suffix,
                            tied->param ? "a running statistic" : "a value, not a parameter");
        if (tied->param->net != net)
            return tnn_fail(r->app, TN_E_ARG,
                            "%s, called at %s:%d: .%s is %s of net %s, but the layer is one of net %s",
                            s->stem, file, s->line, s->params[i].suffix, tied->param->name,
                            tied->param->net->path, net->path);
    }
    return TN_OK;
}

tn_x tnn_value_layer(const tnn_spec *spec, uint32_t count, const tn_x *in, tn_x *out, uint32_t out_count)
{
    tn_app *app = running ? running->app : NULL;
    tnn_layer *l;

    for (uint32_t i = 0; i < out_count; i++)
        out[i] = NULL;
    for (uint32_t i = 0; i < count; i++)
        if (!(app = tnn_value_app(in[i], spec->stem, spec->file, spec->line)))
            return NULL;
    if (!app || order_check(running, spec, count, in) || ties_check(running, spec) ||
        !(l = layer_of(running, spec)))
        return NULL;
    return layer_run(running, l, count, in, out, out_count);
}

bool tnn_value_params(const tnn_spec *spec, tn_x x, tn_x *out)
{
    tn_app *app = tnn_value_app(x, spec->stem, spec->file, spec->line);
    tnn_layer *l = app ? layer_of(running, spec) : NULL;

    if (!l || (!running->traced && tnn_layer_fill(app, l, running->net)))
        return false;
    for (uint32_t i = 0; i < l->param_count; i++)
        if (!(out[i] = tnn_value_of_param(running, l->params[i])))
            return false;
    return true;
}

/* A chain within a chain. */
static tn_x chain_run(tn_net *net, tn_x x)
{
    tn_x y;

    tnn_hooks_net(running, net, &x, NULL);
    if ((y = tnn_chain_run(net, x)))
        tnn_hooks_net(running, net, &x, &y);
    return running->app->status ? NULL : y;
}

/* The array of a value that only the chain has goes at once. */
tn_x tnn_chain_run(tn_net *net, tn_x x)
{
    const tn_x given = x;

    for (size_t i = 0; x && i < net->layer_count; i++) {
        tnn_layer *l = net->layers[i];
        const tn_x before = x;

        x = !l->child                                     ? layer_run(running, l, 1, &before, NULL, 0)
            : !l->child->function                         ? chain_run(l->child, x)
            : tnn_run_net(running, l->child, &before, &x) ? NULL
                                                          : x;
        if (x && before != given && before != x) {
            tn_array_release(before->array);
            before->array = NULL;
        }
    }
    return x;
}

/* ---- a call ---- */

static tnn_run *run_begin(tn_net *net, bool is_traced)
{
    tn_app *app = tnn_net_app(net);
    tnn_run *r;

    if (!app)
        return NULL;
    if (net->running) {
        (void)tnn_fail(app, TN_E_STATE, "net %s is called by its own function", net->path);
        return NULL;
    }
    if (!net->run && !(net->run = tnn_alloc(app, 1, sizeof *net->run)))
        return NULL;
    r = net->run;
    r->app = app;
    r->net = net;
    r->outer = running;
    r->traced = is_traced;
    r->serial++;
    r->depth = 0;
    r->numbers.count = r->bare.count = r->numbered_count = r->mark_count = 0;
    tnn_trace_clear(r->trace);
    running = r;
    return r;
}

static void run_end(tnn_run *r)
{
    while (r->depth) /* after an error */
        r->frames[--r->depth].net->running = false;
    values_release(r);
    tnn_trace_clear(r->trace);
    running = r->outer;
}

/* The net's function, or the rows of a chain, in a frame of its own. */
tn_status tnn_run_net(tnn_run *r, tn_net *net, const tn_x *in, tn_x *out)
{
    const uint32_t depth = r->depth;
    uint32_t scope = 0;

    if (net->function && tnn_scope_find(r->app, net, "", &scope))
        return r->app->status;
    if (tnn_frame_push(r, net, scope, "?", 0))
        return r->app->status;
    tnn_hooks_net(r, net, in, NULL);
    if (r->app->status)
        return r->app->status;
    net->running = true;
    net->call++;
    net->call_at = 0;
    if (net->one)
        out[0] = net->one(in[0]);
    else if (net->many)
        net->many(in, out);
    else if (net->inner)
        net->inner(net, in, out);
    else
        out[0] = tnn_chain_run(net, in[0]);
    net->running = false;
    if (r->app->status)
        return r->app->status;
    if (r->depth > depth + 1)
        return tnn_fail(r->app, TN_E_STATE,
                        "net %s: scope \"%.*s\", begun at %s:%d, is still open at the end", net->path,
                        (int)strlen(net->scopes[r->frames[r->depth - 1].scope].path) - 1,
                        net->scopes[r->frames[r->depth - 1].scope].path, r->frames[r->depth - 1].file,
                        r->frames[r->depth - 1].line);
    for (size_t i = 0; i < net->output_count; i++)
        if (!out[i] || out[i]->run != r || out[i]->serial != r->serial)
            return tnn_fail(r->app, TN_E_STATE, "net %s: its function gives %s for output %zu", net->path,
                            out[i] ? "a value of another call" : "nothing", i);
    for (size_t i = 0; i < net->input_count; i++)
        net->in[i] = in[i]->shape;
    for (size_t i = 0; i < net->output_count; i++)
        net->out[i] = out[i]->shape;
    tnn_hooks_net(r, net, in, out);
    return r->app->status ? r->app->status : tnn_frame_pop(r);
}

static tn_x input_value(tnn_run *r, size_t index, const tnn_shape *shape, tn_array *array)
{
    tn_x v = tnn_value_make(r);

    if (v) {
        v->shape = *shape;
        v->ref.node = -1 - (int32_t)index;
        tn_array_retain(v->array = array);
    }
    return v;
}

static tn_status run_all(tnn_run *r, const tnn_shape *shapes, tn_array *const *arrays, tn_x *out)
{
    tn_x in[TNN_VALUES_MAX] = {NULL};
    tn_net *net = r->net;

    for (size_t i = 0; i < net->input_count; i++)
        if (!(in[i] = input_value(r, i, &shapes[i], arrays ? arrays[i] : NULL)))
            return r->app->status;
    return tnn_run_net(r, net, in, out);
}

tn_status tnn_net_call_arrays(tn_net *net, tn_array *const *arrays, tn_array **out)
{
    tn_x values[TNN_VALUES_MAX] = {NULL};
    tnn_shape shapes[TNN_VALUES_MAX] = {{0}};
    tn_app *app = net->object.app;
    tnn_run *r;
    tn_status st;

    for (size_t i = 0; i < net->input_count; i++)
        if (tnn_shape_take(app, arrays[i], net->path, &shapes[i]))
            return app->status;
    if (!(r = run_begin(net, false)))
        return app->status ? app->status : TN_E_STATE;
    if (!(st = run_all(r, shapes, arrays, values)))
        for (size_t i = 0; i < net->output_count; i++)
            tn_array_retain(out[i] = values[i]->array);
    run_end(r);
    return st;
}

static tn_status trace(tn_net *net, const tnn_shape *in, tn_symbol **symbol, char **text)
{
    tn_x values[TNN_VALUES_MAX] = {NULL};
    tnn_ref refs[TNN_VALUES_MAX] = {{0}};
    tnn_run *r = run_begin(net, true);
    tn_status st;

    if (!r)
        return net->object.app->status ? net->object.app->status : TN_E_STATE;
    if (!(st = run_all(r, in, NULL, values)))
        for (size_t i = 0; i < net->output_count; i++)
            refs[i] = values[i]->ref;
    if (!st && symbol)
        st = tnn_trace_symbol(r->app, r->trace, net, refs, symbol);
    if (!st && text && !(*text = tnn_trace_text(r->app, r->trace, net->output_count, refs)))
        st = r->app->status;
    run_end(r);
    return st;
}

tn_status tnn_net_trace(tn_net *net, const tnn_shape *in, tn_symbol **symbol)
{
    return trace(net, in, symbol, NULL);
}

tn_status tnn_net_trace_text(tn_net *net, const tnn_shape *in, char **text)
{
    return trace(net, in, NULL, text);
}
