/*
 * What a classifier is worth: accuracy, loss and who is taken for whom, over a data set.
 *
 * Sums are formed here in double, from what the net gives: class scores, probabilities or their logarithms,
 * as the last operator of a loaded graph says. Whether model and data fit is found out by inference, before
 * anything runs.
 */
#include "data.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CONFUSION_MAX 2048 /* classes: a table of 32 MiB */

typedef struct table { /* lives as long as the app */
    tnn_object object;
    int64_t counts[];
} table;

typedef struct sums {
    double loss;
    int64_t right, samples, classes;
    int64_t *counts; /* NULL: too many classes */
    float *x;
    size_t room;
    tnn_head head;
} sums;

static void table_destroy(tnn_object *object)
{
    free(object);
}

/* ---- one sample ---- */

static double scores_loss(const float *x, int64_t classes, int64_t label)
{
    double most = (double)x[0], sum = 0;

    for (int64_t k = 1; k < classes; k++)
        most = fmax(most, (double)x[k]);
    for (int64_t k = 0; k < classes; k++)
        sum += exp((double)x[k] - most);
    return log(sum) - ((double)x[label] - most);
}

static double loss_of(tnn_head head, const float *x, int64_t classes, int64_t label)
{
    switch (head) {
    case TNN_HEAD_SCORES:
        return scores_loss(x, classes, label);
    case TNN_HEAD_SOFTMAX:
    case TNN_HEAD_OUTPUT:
        return x[label] > FLT_MIN ? -log((double)x[label]) : isnan(x[label]) ? NAN : -log(FLT_MIN);
    case TNN_HEAD_LOG_SOFTMAX:
        return -(double)x[label];
    case TNN_HEAD_OTHER:
        break;
    }
    return NAN;
}

/* The first of equal scores counts, as in argmax. */
static int64_t said_of(const float *x, int64_t classes)
{
    int64_t best = 0;

    for (int64_t k = 1; k < classes; k++)
        if (x[k] > x[best])
            best = k;
    return best;
}

/* `real`: rows that are no filler. */
static tn_status batch_add(tn_app *app, sums *s, tn_array *y, const tn_batch *b, int64_t real)
{
    const size_t count = (size_t)(b->n * s->classes), need = count + (size_t)b->n;

    if (app->status)
        return app->status;
    if (s->room < need) {
        float *grown = realloc(s->x, need * sizeof *grown);

        if (!grown)
            return tnn_no_memory(app);
        s->x = grown;
        s->room = need;
    }
    if (!tn_app_read(app, y, count, s->x) || !tn_app_read(app, b->y, (size_t)b->n, s->x + count))
        return app->status;
    for (int64_t i = 0; i < real; i++) {
        const float *x = s->x + i * s->classes;
        const int64_t label = (int64_t)s->x[count + (size_t)i], said = said_of(x, s->classes);

        s->loss += loss_of(s->head, x, s->classes, label);
        s->right += said == label;
        if (s->counts)
            s->counts[label * s->classes + said]++;
    }
    s->samples += real;
    return TN_OK;
}

/* ---- a regression ---- */

typedef struct errors {
    double squares, absolutes; /* of differences */
    double mean, spread;       /* of labels: by Welford's sums, so that those of equal labels are 0 */
    int64_t numbers, samples;
} errors;

static tn_status numbers_add(tn_app *app, errors *e, tn_array *y, const tn_batch *b, int64_t real,
                             size_t each)
{
    const size_t count = (size_t)b->n * each;
    float *x = app->status ? NULL : tnn_alloc(app, 2 * count, sizeof *x);

    if (x && tn_app_read(app, y, count, x) && tn_app_read(app, b->y, count, x + count))
        for (size_t i = 0; i < (size_t)real * each; i++) {
            const double label = (double)x[count + i], d = (double)x[i] - label, off = label - e->mean;

            e->squares += d * d;
            e->absolutes += fabs(d);
            e->mean += off / (double)++e->numbers;
            e->spread += off * (label - e->mean);
        }
    e->samples += real;
    free(x);
    return app->status;
}

/* In the units of the file. */
static tn_status numbers_run(tn_app *app, tn_net *net, tn_data *data, tn_evaluation *out)
{
    const size_t each = data->field_count > 1 ? data->fields[1].sample : 0;
    int64_t epoch, index;
    errors e = {0};
    double unit;
    tn_batch b;

    if (!each)
        return tnn_fail(app, TN_E_ARG, "data \"%s\" has no labels", data->name);
    tn_data_units(data, NULL, &unit);
    tn_app_pause(app);
    tn_data_tell(data, &epoch, &index);
    tn_data_seek(data, epoch, 0);
    while (tn_data_next(data, &b))
        if (numbers_add(app, &e, tnn_net_first_of(net, data), &b, b.n - tn_data_filler(data), each))
            break;
    tn_data_seek(data, epoch, index);
    if (!e.numbers || app->status)
        return app->status;
    out->samples = e.samples;
    out->rmse = sqrt(e.squares / (double)e.numbers) * unit;
    out->mae = e.absolutes / (double)e.numbers * unit;
    out->r2 = e.spread > 0 ? 1 - e.squares / e.spread : NAN;
    out->loss = e.squares / (double)e.numbers / 2;
    return TN_OK;
}

/* ---- do they fit? ---- */

tn_status tnn_net_fits(tn_net *net, const tn_data *data, int64_t *classes)
{
    tnn_shape in[TNN_VALUES_MAX];
    tn_app *app = tnn_net_app(net);
    int64_t out[TNN_NDIM_MAX];
    char text[TNN_SHAPE_TEXT];
    int32_t out_ndim = -1;

    if (!app)
        return TN_E_STATE;
    if (tnn_net_whole(net))
        return app->status;
    *classes = -1;
    if (tnn_net_shapes(net, data, in))
        return app->status;
    if (net->model) {
        if (!tnn_net_takes_data(net, data, &out_ndim, out))
            (void)tnn_check(app, tn_error_code(), "%s with an input of %s", net->path,
                            tnn_shape_text(in[0].ndim, in[0].dims, text));
        else if (out_ndim == 2)
            *classes = out[1];
    } else if (!tnn_net_infer_all(net, in)) {
        *classes = tnn_net_width(net);
    }
    if (!app->status && *classes < 1)
        return tnn_fail(app, TN_E_SHAPE, "net %s: its output is not (N, classes)", net->path);
    return app->status;
}

static tn_status fit_check(tn_app *app, tn_net *net, const tn_data *data, int64_t *classes)
{
    if (tnn_data_app(data) != app || !tn_data_classes(data))
        return tnn_fail(app, TN_E_ARG,
                        "net %s: data \"%s\" has no labels that are numbers of classes, from 0 on", net->path,
                        tn_data_name(data));
    if (tnn_net_fits(net, data, classes))
        return app->status;
    if (tn_data_classes(data) > *classes)
        return tnn_fail(app, TN_E_SHAPE,
                        "net %s tells %lld classes apart, but data \"%s\" has labels 0 to %lld", net->path,
                        (long long)*classes, tn_data_name(data), (long long)tn_data_classes(data) - 1);
    return TN_OK;
}

static void run(tn_app *app, tn_net *net, tn_data *data, sums *s)
{
    int64_t epoch, index;
    tn_batch b;

    tn_app_pause(app);
    tn_data_tell(data, &epoch, &index);
    tn_data_seek(data, epoch, 0);
    while (tn_data_next(data, &b))
        if (batch_add(app, s, tnn_net_first_of(net, data), &b, b.n - tn_data_filler(data)))
            break;
    tn_data_seek(data, epoch, index);
}

int tn_net_evaluate(tn_net *net, tn_data *data, tn_evaluation *out)
{
    tn_app *app = tnn_net_app(net);
    tn_evaluation e = {
        .struct_size = sizeof e, .accuracy = NAN, .loss = NAN, .rmse = NAN, .mae = NAN, .r2 = NAN};
    sums s = {0};
    table *t = NULL;

    if (!app || !data || !out)
        return 0;
    if (out->struct_size < sizeof e.struct_size) {
        (void)tnn_fail(app, TN_E_ARG, "tn_net_evaluate: struct_size is %u", out->struct_size);
        return 0;
    }
    if (tn_data_task(data) == TN_TASK_NUMBERS) {
        if (numbers_run(app, net, data, &e))
            return 0;
        goto done;
    }
    if (fit_check(app, net, data, &s.classes))
        return 0;
    if (s.classes <= CONFUSION_MAX) {
        if (!(t = tnn_alloc(app, 1, sizeof *t + (size_t)(s.classes * s.classes) * sizeof(int64_t))))
            return 0;
        tnn_object_add(app, &t->object, table_destroy);
        s.counts = t->counts;
    }
    s.head = net->model ? tnn_model_head(net->model) : TNN_HEAD_SCORES;
    run(app, net, data, &s);
    free(s.x);
    if (app->status)
        return 0;
    e.samples = s.samples;
    e.classes = s.classes;
    e.right = s.right;
    e.confusion = s.counts;
    e.accuracy = s.samples ? (double)s.right / (double)s.samples : NAN;
    e.loss = s.samples ? s.loss / (double)s.samples : NAN;

done:
    e.struct_size = out->struct_size < sizeof e ? out->struct_size : (uint32_t)sizeof e;
    memcpy(out, &e, e.struct_size);
    return 1;
}
