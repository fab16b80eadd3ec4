/*
 * Parameters of a function's own, beside those of its layers: what Gluon's params.get() and get_constant()
 * make. Each is a layer without an operator, so that it is found by its path, checked and kept as layers are.
 */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#define ELEMENTS_MAX ((int64_t)1 << 40) /* above any memory, and its bytes can be counted */

static void shape_set(tnn_spec *s, const int64_t *shape)
{
    char text[TNN_SHAPE_TEXT];
    int64_t count = 1;
    int32_t ndim = 0;

    while (ndim < TNN_NDIM_MAX && shape[ndim])
        ndim++;
    for (int32_t i = 0; i < TNN_NDIM_MAX; i++) {
        if (shape[i] < 0 || (i >= ndim && shape[i]) || (shape[i] && count > ELEMENTS_MAX / shape[i])) {
            tnn_spec_wrong(s, ".shape has %lld as dimension %d", (long long)shape[i], i);
            return;
        }
        count *= shape[i] ? shape[i] : 1;
    }
    memcpy(s->params[0].shape, shape, (size_t)ndim * sizeof *shape);
    s->params[0].shape[0] = ndim ? shape[0] : 1;
    s->params[0].ndim = ndim ? ndim : 1;
    tnn_spec_attr(s, ".shape", "%s", tnn_shape_text(s->params[0].ndim, s->params[0].shape, text));
}

/* By the end of the name; a function's own parameter is no running statistic. */
static tnn_role role_of(const char *name)
{
    tnn_role role;

    return !tnn_role_of(name, &role) || role == TNN_MEAN || role == TNN_VAR ? TNN_WEIGHT : role;
}

/* `init` stays as long as the specification. */
static tn_status init_set(tn_app *app, tnn_spec *s, const tn_weight_options *o, tn_init_options *init)
{
    const tn_init_options given = {.struct_size = sizeof given, .with = o->init, .scale = o->scale};

    if (o->values && o->init)
        tnn_spec_wrong(s, "both .values and .init are given");
    if (o->scale != 0 && !o->init)
        tnn_spec_wrong(s, ".scale is that of an .init, which is missing");
    tnn_spec_attr(s, ".init", "%s", o->values ? "constant" : o->init ? o->init : "none");
    tnn_spec_number(s, ".scale", 17, o->scale);
    if (!o->init)
        return TN_OK;
    s->params[0].init = init;
    return tnn_init_take(app, &given, init);
}

tn_x tn_weight_(tn_x x, const char *name, const tn_weight_options *options)
{
    tn_weight_options o = {0};
    tn_init_options init;
    tn_app *app;
    tn_x out[TNN_LAYER_PARAMS] = {NULL};
    tnn_spec s;

    tnn_options_copy(&o, sizeof o, options);
    if (!(app = tnn_value_app(x, "tn_weight", o.file, o.line)))
        return NULL;
    if (!name) {
        (void)tnn_fail(app, TN_E_ARG, "tn_weight, called at %s:%d: the name is NULL", o.file ? o.file : "?",
                       o.line);
        return NULL;
    }
    memset(&s, 0, sizeof s);
    tnn_spec_begin(&s, TNN_OP_OWN, TNN_OP_OWN);
    s.name = name;
    s.file = o.file;
    s.line = o.line;
    s.share = o.share != 0;
    s.param_count = 1;
    s.params[0].role = role_of(name);
    s.params[0].fixed = o.fixed || o.values;
    s.params[0].values = o.values;
    shape_set(&s, o.shape);
    if (init_set(app, &s, &o, &init))
        return NULL;
    if (*s.wrong) {
        (void)tnn_fail(app, TN_E_ARG, "tn_weight \"%.128s\", called at %s:%d: %s", name,
                       o.file ? o.file : "?", o.line, s.wrong);
        return NULL;
    }
    return tnn_value_params(&s, x, out) ? out[0] : NULL;
}
