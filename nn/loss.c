/*
 * Losses and meters. A loss is a few operators on the tape, one number per sample; a meter keeps arrays and
 * reads them later, so that adding a batch does not wait for the device.
 */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

tn_array *tn_loss_softmax_ce(tn_app *app, tn_array *x, tn_array *labels)
{
    tn_array *a = x;
    tn_status st;

    if (!tnn_ok(app) || !x || !labels)
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

/* ---- meters ---- */

#define PENDING_MAX 32 /* batches that a meter keeps before it reads the oldest */

struct tn_meter {
    tnn_object object;
    bool accuracy;
    double sum;
    int64_t count;
    struct {
        tn_array *x, *labels;
    } pending[PENDING_MAX];
    size_t first, pending_count;
    float *buffer;
    size_t buffer_count;
};

static void drop(tn_meter *m)
{
    tn_array_release(m->pending[m->first].x);
    tn_array_release(m->pending[m->first].labels);
    m->first = (m->first + 1) % PENDING_MAX;
    m->pending_count--;
}

static void meter_destroy(tnn_object *object)
{
    tn_meter *m = (tn_meter *)object;

    tn_meter_reset(m);
    free(m->buffer);
    free(m);
}

tn_meter *tn_meter_new(tn_app *app, const char *what)
{
    static const char *const kinds[] = {"accuracy", "loss", NULL};
    tn_meter *m;

    if (!tnn_ok(app))
        return NULL;
    if (!tnn_one_of(what, kinds)) {
        (void)tnn_unknown(app, "meter", what ? what : "", kinds);
        return NULL;
    }
    if (!(m = tnn_alloc(app, 1, sizeof *m)))
        return NULL;
    tnn_object_add(app, &m->object, meter_destroy);
    m->accuracy = !strcmp(what, "accuracy");
    return m;
}

void tn_meter_reset(tn_meter *m)
{
    while (m && m->pending_count)
        drop(m);
    if (m) {
        m->sum = 0;
        m->count = 0;
    }
}

/* The first of equal scores counts, as in argmax. */
static int64_t hits(const float *x, const float *labels, size_t rows, size_t classes)
{
    int64_t right = 0;

    for (size_t r = 0; r < rows; r++) {
        size_t best = 0;

        for (size_t k = 1; k < classes; k++)
            if (x[r * classes + k] > x[r * classes + best])
                best = k;
        right += (float)best == labels[r];
    }
    return right;
}

static tn_status drain_one(tn_meter *m)
{
    tn_app *app = m->object.app;
    tn_array *x = m->pending[m->first].x, *labels = m->pending[m->first].labels;
    const size_t count = tn_array_count(x), rows = labels ? tn_array_count(labels) : 0;

    if (m->buffer_count < count + rows) {
        float *grown = realloc(m->buffer, (count + rows) * sizeof *grown);

        if (!grown)
            return tnn_no_memory(app);
        m->buffer = grown;
        m->buffer_count = count + rows;
    }
    if (!tn_app_read(app, x, count, m->buffer))
        return app->status;
    if (!m->accuracy) {
        for (size_t i = 0; i < count; i++)
            m->sum += (double)m->buffer[i];
        m->count += (int64_t)count;
    } else {
        if (!rows || count % rows)
            return tnn_fail(app, TN_E_SHAPE, "accuracy of %zu numbers with %zu labels", count, rows);
        if (!tn_app_read(app, labels, rows, m->buffer + count))
            return app->status;
        m->sum += (double)hits(m->buffer, m->buffer + count, rows, count / rows);
        m->count += (int64_t)rows;
    }
    drop(m);
    return TN_OK;
}

void tn_meter_add(tn_meter *m, tn_array *x, tn_array *labels)
{
    size_t at;

    if (!m || !tnn_ok(m->object.app) || !x || (m->accuracy && !labels))
        return;
    if (m->pending_count == PENDING_MAX && drain_one(m))
        return;
    at = (m->first + m->pending_count++) % PENDING_MAX;
    tn_array_retain(x);
    m->pending[at].x = x;
    if (m->accuracy)
        tn_array_retain(labels);
    m->pending[at].labels = m->accuracy ? labels : NULL;
}

double tn_meter_value(tn_meter *m)
{
    if (!m || !tnn_ok(m->object.app))
        return NAN;
    while (m->pending_count)
        if (drain_one(m))
            return NAN;
    return m->count ? m->sum / (double)m->count : NAN;
}

tn_status tnn_meter_get(tn_meter *m, double *sum, int64_t *count)
{
    (void)tn_meter_value(m);
    *sum = m->sum;
    *count = m->count;
    return m->object.app->status;
}

void tnn_meter_set(tn_meter *m, double sum, int64_t count)
{
    tn_meter_reset(m);
    m->sum = sum;
    m->count = count;
}
