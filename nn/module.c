/*
 * Modules: buckets of symbols over one list of parameters. A net without layers holds the parameters, so that
 * initialisers, trainers and files are those of nets.
 */
#include "module.h"

#include <stdlib.h>
#include <string.h>

tn_app *tnn_module_app(const tn_module *m)
{
    return m && tnn_ok(m->object.app) ? m->object.app : NULL;
}

/* ---- buckets ---------------------------------------------------------------------------------- */

static void bucket_destroy(tnn_bucket *b)
{
    if (!b)
        return;
    tn_free(b->names);
    tn_free(b->aux);
    free(b->out_axes);
    tn_symbol_release(b->symbol);
    free(b);
}

static bool is_input(const tn_module *m, const char *name)
{
    return tnn_is_listed(m->inputs, m->data_count + m->label_count, name);
}

/* Where N is; -1: nowhere. NULL: 0 */
static int32_t layout_axis(const char *layout)
{
    const char *n = layout ? strchr(layout, 'N') : NULL;

    return n ? (int32_t)(n - layout) : layout ? -1 : 0;
}

/* As MXNet's attribute says; 0 without it. */
static tn_status out_axes_read(tn_app *app, tnn_bucket *b)
{
    tn_status st = TN_OK;

    b->out_count = tn_symbol_output_count(b->symbol);
    if (!(b->out_axes = tnn_alloc(app, b->out_count, sizeof *b->out_axes)))
        return app->status;
    for (size_t i = 0; i < b->out_count && !st; i++) {
        const char *layout = NULL;
        tn_symbol *one = NULL;

        if (!(st = tn_symbol_output(b->symbol, (uint32_t)i, &one)) &&
            !(st = tn_symbol_attr_get(one, "__layout__", &layout)))
            b->out_axes[i] = layout_axis(layout);
        tn_symbol_release(one); /* whose text it is */
    }
    return st;
}

/* [takes] `symbol` */
static tnn_bucket *bucket_add(tn_app *app, tn_module *m, int64_t key, tn_symbol *symbol)
{
    tnn_bucket *b = m->bucket_count < TNN_BUCKETS_MAX ? tnn_alloc(app, 1, sizeof *b) : NULL;
    tn_status st;

    if (!b) {
        tn_symbol_release(symbol);
        (void)tnn_fail(app, TN_E_STATE, "module %s has more than %d buckets", m->name, TNN_BUCKETS_MAX);
        return NULL;
    }
    b->key = key;
    b->symbol = symbol;
    m->buckets[m->bucket_count++] = b;
    if (!(st = tn_symbol_list(symbol, TN_LIST_INPUTS, &b->count, &b->names)))
        st = tn_symbol_list(symbol, TN_LIST_AUX, &b->aux_count, &b->aux);
    if (!st)
        st = out_axes_read(app, b);
    return tnn_check(app, st, "module %s", m->name) ? NULL : b;
}

static tn_symbol *bucket_symbol(tn_app *app, tn_module *m, int64_t key)
{
    tn_symbol *s = m->generate(m->arg, app, key);

    if (!s)
        (void)tnn_fail(app, TN_E_ARG, "module %s: no symbol came for key %lld", m->name, (long long)key);
    return s;
}

void tn_module_switch(tn_module *m, int64_t key)
{
    tn_app *app = tnn_module_app(m);
    tnn_bucket *b = NULL;
    tn_symbol *s;

    if (!app)
        return;
    for (size_t i = 0; i < m->bucket_count; i++)
        if (m->buckets[i]->key == key) {
            m->bucket = m->buckets[i];
            return;
        }
    if (!m->generate) {
        (void)tnn_fail(app, TN_E_KEY, "module %s has one symbol: key %lld has none", m->name, (long long)key);
        return;
    }
    if (!(s = bucket_symbol(app, m, key)) || !(b = bucket_add(app, m, key, s)))
        return;
    for (size_t i = 0; i < b->count; i++)
        if (!is_input(m, b->names[i]) &&
            !tnn_is_listed(m->buckets[0]->names, m->buckets[0]->count, b->names[i])) {
            (void)tnn_fail(app, TN_E_KEY,
                           "module %s: parameter \"%.80s\" of key %lld is not among those of key %lld",
                           m->name, b->names[i], (long long)key, (long long)m->buckets[0]->key);
            return;
        }
    m->bucket = b;
}

/* ---- parameters ------------------------------------------------------------------------------- */

static bool is_fixed(const char *const *fixed, const char *name)
{
    for (; fixed && *fixed; fixed++)
        if (tnn_ends_with(name, *fixed))
            return true;
    return false;
}

/* A name that is written wrong would train what was to stay. */
static tn_status fixed_check(tn_app *app, const tn_module *m, const char *const *fixed)
{
    for (; fixed && *fixed; fixed++) {
        size_t i = 0;

        while (i < m->net->param_count && !tnn_ends_with(m->net->params[i]->full, *fixed))
            i++;
        if (i == m->net->param_count)
            return tnn_fail(app, TN_E_KEY,
                            "module %s: no parameter's name ends with \"%.80s\", as .fixed says", m->name,
                            *fixed);
    }
    return TN_OK;
}

static tn_status params_make(tn_app *app, tn_module *m, const char *const *fixed)
{
    const tnn_bucket *b = m->buckets[0];
    tn_net *net = tnn_net_create(app, NULL, m->name, "");
    tn_symbol *internals = NULL;

    if (!net)
        return app->status;
    m->net = net;
    tn_symbol_retain(net->graph = b->symbol);
    tn_symbol_retain(net->graph_file = b->symbol);
    if (!(net->params = tnn_alloc(app, b->count + 1, sizeof(tnn_param *))) ||
        tnn_check(app, tn_symbol_internals(b->symbol, &internals), "module %s", m->name))
        return app->status;
    for (size_t i = 0; i < b->count && !app->status; i++) {
        tnn_param *p;

        if (is_input(m, b->names[i]))
            continue;
        if (tnn_graph_param(app, net, internals, b->names[i],
                            tnn_is_listed(b->aux, b->aux_count, b->names[i])))
            break;
        p = net->params[net->param_count - 1];
        p->fixed |= is_fixed(fixed, p->full);
        if (!tnn_ends_with(p->full, "_weight") && !tnn_ends_with(p->full, "_gamma") &&
            !tnn_variable_has(internals, b->names[i], "__wd_mult__"))
            p->wd_factor = 0; /* as MXNet's Module */
    }
    tn_symbol_release(internals);
    return app->status ? app->status : fixed_check(app, m, fixed);
}

static tn_status names_take(tn_app *app, tn_module *m, const char *const *names, uint32_t *count)
{
    for (; *names; names++) {
        const uint32_t at = m->data_count + m->label_count;

        if (at == TNN_VALUES_MAX)
            return tnn_fail(app, TN_E_ARG, "module %s has more than %d inputs and labels", m->name,
                            TNN_VALUES_MAX);
        if (is_input(m, *names))
            return tnn_fail(app, TN_E_KEY, "module %s: \"%.80s\" is named twice", m->name, *names);
        if (!tnn_is_listed(m->buckets[0]->names, m->buckets[0]->count, *names))
            return tnn_fail(app, TN_E_KEY, "the symbol of module %s has no input \"%.80s\"", m->name, *names);
        if (!(m->inputs[at] = tnn_strdup(app, *names)))
            return app->status;
        ++*count;
    }
    return TN_OK;
}

static tn_status inputs_take(tn_app *app, tn_module *m, const tn_module_options *o)
{
    static const char *const data[] = {"data", NULL}, *const label[] = {"softmax_label", NULL};
    const tnn_bucket *b = m->buckets[0];

    if (names_take(app, m, o->data ? o->data : data, &m->data_count))
        return app->status;
    if (!m->data_count)
        return tnn_fail(app, TN_E_ARG, "module %s has no input", m->name);
    if (o->labels || tnn_is_listed(b->names, b->count, *label))
        return names_take(app, m, o->labels ? o->labels : label, &m->label_count);
    return TN_OK;
}

static void module_destroy(tnn_object *object)
{
    tn_module *m = (tn_module *)object;

    tnn_module_unbind(m);
    for (size_t i = 0; i < m->bucket_count; i++)
        bucket_destroy(m->buckets[i]);
    for (size_t i = 0; i < TNN_VALUES_MAX; i++)
        free(m->inputs[i]);
    free(m->states);
    free(m->name);
    free(m);
}

/* One symbol, from where the options say. */
static tn_symbol *symbol_take(tn_app *app, tn_module *m, const tn_module_options *o)
{
    tn_symbol *s = NULL;

    if ((o->symbol != NULL) + (o->json != NULL) + (o->bucket != NULL) != 1)
        (void)tnn_fail(app, TN_E_ARG, "module at %s:%d: one of .symbol, .json and .bucket is needed",
                       o->file ? o->file : "?", o->line);
    else if (o->bucket)
        return bucket_symbol(app, m, o->key);
    else if (o->json)
        (void)tnn_symbol_take(app, o->json, &s);
    else
        tn_symbol_retain(s = o->symbol);
    return s;
}

tn_module *tn_module_new_(tn_app *app, const tn_module_options *options)
{
    tn_module_options o = {0};
    tn_module *m;
    tn_symbol *s;

    if (!tnn_ok(app) || !(m = tnn_alloc(app, 1, sizeof *m)))
        return NULL;
    tnn_options_copy(&o, sizeof o, options);
    tnn_object_add(app, &m->object, module_destroy);
    m->generate = o.bucket;
    m->arg = o.arg;
    m->mode = TN_MODE_WRITE;
    if (!(m->name = tnn_strdup(app, o.name ? o.name : "module")) || !(s = symbol_take(app, m, &o)) ||
        !(m->bucket = bucket_add(app, m, o.key, s)) || inputs_take(app, m, &o) ||
        params_make(app, m, o.fixed))
        return NULL;
    return m;
}

/* ---- shapes ----------------------------------------------------------------------------------- */

static tn_status param_shape(tn_app *app, tn_module *m, const tn_known *found)
{
    tnn_param *p = tnn_module_param(m, found->name);
    char have[TNN_SHAPE_TEXT], want[TNN_SHAPE_TEXT];

    if (!p)
        return TN_OK; /* an input */
    if (found->ndim < 0 || found->ndim > TNN_NDIM_MAX)
        return tnn_fail(app, TN_E_SHAPE, "module %s: parameter %s has %d dimensions, at most %d are possible",
                        m->name, p->full, found->ndim, TNN_NDIM_MAX);
    if (found->dtype != TN_F32)
        return tnn_fail(app, TN_E_DTYPE, "module %s: parameter %s is %s; float32 is trained", m->name,
                        p->full, tn_dtype_name(found->dtype));
    if (p->array &&
        (p->ndim != found->ndim || memcmp(p->shape, found->shape, (size_t)p->ndim * sizeof *p->shape)))
        return tnn_fail(app, TN_E_SHAPE, "module %s: parameter %s is %s, these inputs want %s", m->name,
                        p->full, tnn_shape_text(p->ndim, p->shape, have),
                        tnn_shape_text(found->ndim, found->shape, want));
    p->ndim = found->ndim;
    memcpy(p->shape, found->shape, (size_t)found->ndim * sizeof *p->shape);
    return TN_OK;
}

tn_status tnn_module_infer(tn_module *m, const tnn_shape *in)
{
    static const int32_t lists[] = {TN_LIST_ARGUMENTS, TN_LIST_AUX};
    tn_app *app = m->object.app;
    tn_known known[TNN_VALUES_MAX], row;
    tn_inferred *found = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->data_count + m->label_count; i++)
        if (in[i].ndim >= 0)
            known[count++] = (tn_known){
                .name = m->inputs[i], .shape = in[i].dims, .ndim = in[i].ndim, .dtype = TN_DTYPE_UNKNOWN};
    if (tnn_check(app, tn_symbol_infer(m->bucket->symbol, count, known, 0, &found), "module %s", m->name))
        return app->status;
    for (size_t list = 0; list < 2; list++)
        for (size_t i = 0;
             !app->status && i < m->bucket->count && !tn_inferred_at(found, lists[list], i, &row); i++)
            (void)param_shape(app, m, &row);
    tn_inferred_destroy(found);
    tn_error_clear(); /* the ends of the lists */
    return app->status;
}

/* Of shapes the axes, too. */
static tn_status shapes_read(tn_app *app, const tn_module *m, const tn_module_bind_options *o, tnn_shape *in,
                             int32_t *axes)
{
    for (uint32_t i = 0; i < m->data_count + m->label_count; i++) {
        const bool label = i >= m->data_count;
        const int64_t *dims = label ? o->label_shapes[i - m->data_count] : o->shapes[i];
        const char *layout = label ? o->label_layouts[i - m->data_count] : o->layouts[i];

        in[i] = (tnn_shape){.ndim = 0};
        while (in[i].ndim < TNN_NDIM_MAX && dims[in[i].ndim]) {
            if (dims[in[i].ndim] < 0)
                return tnn_fail(app, TN_E_SHAPE, "module %s: dimension %d of \"%s\" is %lld", m->name,
                                in[i].ndim, m->inputs[i], (long long)dims[in[i].ndim]);
            in[i].dims[in[i].ndim] = dims[in[i].ndim];
            in[i].ndim++;
        }
        if (!in[i].ndim && !label)
            return tnn_fail(app, TN_E_ARG, "module %s: the shape of \"%s\" is missing", m->name,
                            m->inputs[i]);
        axes[i] = layout_axis(layout);
        if (layout && in[i].ndim && axes[i] >= in[i].ndim)
            return tnn_fail(app, TN_E_ARG, "module %s: layout %.40s of \"%s\", whose shape has %d dimensions",
                            m->name, layout, m->inputs[i], in[i].ndim);
        if (!in[i].ndim)
            in[i].ndim = -1;
    }
    return TN_OK;
}

void tn_module_bind_(tn_module *m, const tn_module_bind_options *options)
{
    tn_app *app = tnn_module_app(m);
    tn_module_bind_options o = {0};
    tnn_shape in[TNN_VALUES_MAX];
    int32_t axes[TNN_VALUES_MAX];

    if (!app)
        return;
    tnn_options_copy(&o, sizeof o, options);
    if (o.predict && (o.input_grads || o.add_grads)) {
        (void)tnn_fail(app, TN_E_ARG, "module %s: .predict has no gradients", m->name);
        return;
    }
    tnn_module_unbind(m);
    if (shapes_read(app, m, &o, in, axes) || tnn_module_infer(m, in))
        return;
    memcpy(m->axes, axes, (m->data_count + m->label_count) * sizeof *axes);
    m->bound = true;
    m->predict = o.predict != 0;
    m->input_grads = o.input_grads != 0;
    m->mode = o.add_grads ? TN_MODE_ADD : TN_MODE_WRITE;
}

/* ---- values ----------------------------------------------------------------------------------- */

static tn_status bound_check(tn_app *app, const tn_module *m, const char *what)
{
    return m->bound ? TN_OK
                    : tnn_fail(app, TN_E_STATE, "module %s: tn_module_bind() comes before %s", m->name, what);
}

/* tn_net_init() makes all arrays anew: those that have values get them back. */
void tn_module_init_params_(tn_module *m, const tn_init_options *options)
{
    tn_app *app = tnn_module_app(m);
    tn_array **kept;
    size_t count;

    if (!app || bound_check(app, m, "tn_module_init_params()"))
        return;
    count = m->net->param_count;
    if (!(kept = tnn_alloc(app, count + 1, sizeof(*kept))))
        return;
    for (size_t i = 0; i < count; i++)
        if ((kept[i] = m->net->params[i]->array) != NULL)
            tn_array_retain(kept[i]);
    tn_net_init_(m->net, options);
    for (size_t i = 0; i < count; i++)
        if (!m->net->params[i]->array)
            m->net->params[i]->array = kept[i]; /* moved */
        else
            tn_array_release(kept[i]);
    free(kept);
    if (!app->status && !tnn_net_fill(m->net))
        m->valued = true;
}

tnn_param *tnn_module_param(const tn_module *m, const char *name)
{
    for (size_t i = 0; i < m->net->param_count; i++)
        if (!strcmp(m->net->params[i]->full, name))
            return m->net->params[i];
    return NULL;
}

/* `pass` 0: looks; 1: copies. */
static tn_status param_take(tn_app *app, tn_module *m, const tn_params *params, size_t i, int32_t flags,
                            int pass)
{
    const char *name = tnn_plain_name(tn_params_name(params, i));
    tnn_param *p = tnn_module_param(m, name);
    tn_array *array = NULL;

    if (!p && flags & TN_PARAMS_EXTRA)
        return TN_OK;
    if (!p)
        return tnn_fail(app, TN_E_KEY, "module %s has no parameter \"%.80s\"", m->name, name);
    if (tnn_check(app, tn_params_at(params, i, &array), "module %s", m->name))
        return app->status;
    (void)(pass ? tnn_param_set(app, p, array) : tnn_param_fits(app, p, array));
    tn_array_release(array);
    return app->status;
}

void tn_module_set_params(tn_module *m, const tn_params *params, int32_t flags)
{
    tn_app *app = tnn_module_app(m);
    const size_t count = tn_params_count(params);

    if (!app)
        return;
    if (!params || flags & ~(TN_PARAMS_MISSING | TN_PARAMS_EXTRA)) {
        (void)tnn_fail(app, TN_E_ARG, "tn_module_set_params: %s",
                       params ? "flags that are not known" : "params is NULL");
        return;
    }
    for (size_t i = 0; !(flags & TN_PARAMS_MISSING) && i < m->net->param_count; i++) {
        const char *name = m->net->params[i]->full;
        size_t at = 0;

        while (at < count && strcmp(tnn_plain_name(tn_params_name(params, at)), name))
            at++;
        if (at == count) {
            (void)tnn_fail(app, TN_E_KEY, "module %s: the list has no parameter \"%.80s\"", m->name, name);
            return;
        }
    }
    for (int pass = 0; pass < 2 && !app->status; pass++)
        for (size_t i = 0; i < count && !app->status; i++)
            (void)param_take(app, m, params, i, flags, pass);
    m->valued = !app->status;
    for (size_t i = 0; i < m->net->param_count; i++)
        m->valued &= m->net->params[i]->array != NULL;
}

tn_params *tn_module_params(tn_module *m)
{
    tn_app *app = tnn_module_app(m);
    tn_params *params = NULL;

    return app && !tnn_net_params(m->net, true, &params) ? params : NULL;
}

/* ---- the optimizer ---------------------------------------------------------------------------- */

void tn_module_init_optimizer_(tn_module *m, const tn_trainer_options *options)
{
    tn_app *app = tnn_module_app(m);

    if (!app || bound_check(app, m, "tn_module_init_optimizer()"))
        return;
    if (m->predict)
        (void)tnn_fail(app, TN_E_STATE, "module %s is bound for prediction", m->name);
    else if ((m->trainer = tn_trainer_new_(m->net, options)) != NULL && m->valued &&
             tnn_trainer_far(m->trainer))
        (void)tnn_trainer_ready(m->trainer); /* worker 0's values are those of the first step */
    if (m->trainer && m->states && !app->status)
        tn_trainer_load(m->trainer, m->states);
}

tn_trainer *tn_module_trainer(tn_module *m)
{
    return tnn_module_app(m) ? m->trainer : NULL;
}
