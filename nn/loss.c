/* Losses on arrays: a few operators on the tape, one number per sample. */
#include "internal.h"

#include <stdlib.h>

enum { LOG_SOFTMAX, PICK, NEGATIVE, MEAN, SUBTRACT, SQUARE, ABSOLUTE, HALVE, SITES };

struct tnn_sites {
    tn_site *site[SITES];
};

static const struct {
    const char *op;
    const char *attrs[7];
} calls[SITES] = {
    [LOG_SOFTMAX] = {"log_softmax", {"axis", "-1", NULL}},
    [PICK] = {"pick", {"axis", "-1", "keepdims", "True", NULL}},
    [NEGATIVE] = {"negative", {NULL}},
    [MEAN] = {"mean", {"axis", "(0,)", "exclude", "True", NULL}},
    [SUBTRACT] = {"elemwise_sub", {NULL}},
    [SQUARE] = {"square", {NULL}},
    [ABSOLUTE] = {"abs", {NULL}},
    [HALVE] = {"_mul_scalar", {"scalar", "0.5", NULL}},
};

void tnn_sites_destroy(struct tnn_sites *sites)
{
    for (int i = 0; sites && i < SITES; i++)
        tn_site_release(sites->site[i]);
    free(sites);
}

/* Runs call `which`; [takes] *a, whose place the result takes. */
static tn_status step(tn_app *app, int which, tn_array **a, tn_array *b)
{
    tn_array *in[] = {*a, b}, *out = NULL;
    tn_status st = TN_OK;

    if (!app->sites && !(app->sites = tnn_alloc(app, 1, sizeof *app->sites)))
        return TN_E_NOMEM;
    if (!app->sites->site[which])
        st = tn_site_create(app->ctx, calls[which].op, calls[which].attrs, &app->sites->site[which]);
    if (!st)
        st = tn_invoke(app->sites->site[which], b ? 2 : 1, in, 1, &out);
    if (st)
        return st;
    tn_array_release(*a);
    *a = out;
    return TN_OK;
}

static tn_array *finish(tn_app *app, tn_status st, tn_array *a, const char *what)
{
    if (!tnn_check(app, st, "%s", what))
        return tn_app_own(app, a);
    tn_array_release(a);
    return NULL;
}

tn_status tnn_classes_fit(tn_app *app, int64_t classes, int64_t width, const char *what)
{
    return classes > width ? tnn_fail(app, TN_E_SHAPE, "%s: label %lld, but the net gives %lld classes", what,
                                      (long long)classes - 1, (long long)width)
                           : TN_OK;
}

/* x is (N, …, classes). */
static tn_status labels_fit(tn_app *app, tn_array *x, const tn_array *labels)
{
    const int64_t *shape = NULL, classes = tnn_data_classes_of(app, labels);
    int32_t ndim = 0;

    return classes && !tn_array_shape(x, &ndim, &shape) && ndim > 0
               ? tnn_classes_fit(app, classes, shape[ndim - 1], "tn_loss_softmax_ce")
               : TN_OK;
}

tn_array *tn_loss_softmax_ce(tn_app *app, tn_array *x, tn_array *labels)
{
    tn_array *a = x;
    tn_status st;

    if (!tnn_ok(app) || !x || !labels || labels_fit(app, x, labels))
        return NULL;
    tn_array_retain(a);
    if (!(st = step(app, LOG_SOFTMAX, &a, NULL)) && !(st = step(app, PICK, &a, labels)) &&
        !(st = step(app, NEGATIVE, &a, NULL)))
        st = step(app, MEAN, &a, NULL);
    return finish(app, st, a, "tn_loss_softmax_ce");
}

/* Labels in the shape of x: a view. */
static tn_status like(tn_array *labels, tn_array *x, tn_array **out)
{
    const int64_t *shape = NULL;
    int32_t ndim = 0;
    tn_status st = tn_array_shape(x, &ndim, &shape);

    return st ? st : tn_array_reshape(labels, ndim, shape, out);
}

static tn_array *difference(tn_app *app, tn_array *x, tn_array *labels, bool square, const char *what)
{
    tn_array *a = x, *view = NULL;
    tn_status st;

    if (!tnn_ok(app) || !x || !labels)
        return NULL;
    tn_array_retain(a);
    if (!(st = like(labels, x, &view)) && !(st = step(app, SUBTRACT, &a, view)) &&
        !(st = step(app, square ? SQUARE : ABSOLUTE, &a, NULL)) &&
        (!square || !(st = step(app, HALVE, &a, NULL))))
        st = step(app, MEAN, &a, NULL);
    tn_array_release(view);
    return finish(app, st, a, what);
}

tn_array *tn_loss_l2(tn_app *app, tn_array *x, tn_array *labels)
{
    return difference(app, x, labels, true, "tn_loss_l2");
}

tn_array *tn_loss_l1(tn_app *app, tn_array *x, tn_array *labels)
{
    return difference(app, x, labels, false, "tn_loss_l1");
}
