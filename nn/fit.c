/*
 * A training with losses, metrics and fields of the program: a net around the one that is trained. Its inputs
 * are those of that net and the labels, its outputs the loss and the metrics, so that all of a step's forward
 * is one function, on arrays or as one program.
 */
#include "data.h"
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct tnn_fit {
    tn_net *step;
    size_t in_count, label_count, metric_count;
    int64_t classes[TNN_VALUES_MAX];  /* of each label, of both */
    size_t fields[2][TNN_VALUES_MAX]; /* of the data, of the data to validate on: per input of `step` */
    char *names[TNN_METRICS_MAX];
    tn_metric metrics[TNN_METRICS_MAX];
    tn_x (*loss)(const tn_x *out, const tn_x *labels);
    bool numbers; /* metrics are `measures` */
    tn_meter *meters[2][TNN_METRICS_MAX];
    double now[2][TNN_METRICS_MAX];
};

static tn_x softmax_ce(const tn_x *out, const tn_x *labels)
{
    return tn_softmax_ce(out[0], labels[0]);
}

/* ---- regression: what a training measures if the program says nothing ---- */

static tn_x half_square(const tn_x *out, const tn_x *labels)
{
    return tn_l2(out[0], labels[0]);
}

static tn_x square(const tn_x *out, const tn_x *labels)
{
    return tn_loss(out[0], labels[0], "l2", .weight = 2);
}

static tn_x absolute(const tn_x *out, const tn_x *labels)
{
    return tn_l1(out[0], labels[0]);
}

/* Whether the data alone says that numbers are learned; their metrics are those of `measures`. */
static bool learns_numbers(const tn_train *t)
{
    return !t->o.loss && !t->o.metrics[0].function && tn_data_task(t->data) == TN_TASK_NUMBERS;
}

/* r2 in front: what is better is larger, as early_stop and the best epoch take it. */
static const struct {
    char name[8];
    tn_x (*function)(const tn_x *out, const tn_x *labels);
} measures[] = {{"r2", square}, {"rmse", square}, {"mae", absolute}};

/* A mean of scaled labels in the units of the file. */
static double measure_of(const tn_data *d, size_t index, double mean)
{
    const double spread = d->label_deviation;
    double unit;

    tn_data_units(d, NULL, &unit);
    return index == 0   ? (spread > 0 ? 1 - mean / (spread * spread) : NAN)
           : index == 1 ? sqrt(mean) * unit
                        : mean * unit;
}

double tnn_fit_guess(const tn_train *t)
{
    const double spread = t->data->label_deviation;

    return t->fit->numbers && spread > 0 ? spread * spread / 2 : NAN;
}

static bool per_sample(tn_app *app, tn_x value, tn_x x, const char *what)
{
    const tnn_shape *s = value ? tnn_value_shape(value) : NULL;
    char text[TNN_SHAPE_TEXT];

    if (!s || app->status)
        return false;
    if (s->ndim == 1 && s->dims[0] == tnn_value_shape(x)->dims[0])
        return true;
    (void)tnn_fail(app, TN_E_SHAPE, "%s gives %s, one number per sample is needed: (%lld)", what,
                   tnn_shape_text(s->ndim, s->dims, text), (long long)tnn_value_shape(x)->dims[0]);
    return false;
}

/* The function of the net around. */
static void step_function(tn_net *net, const tn_x *in, tn_x *out)
{
    const tn_train *t = net->arg;
    const struct tnn_fit *f = t->fit;
    tn_app *app = net->object.app;
    const tnn_known known = {in + f->in_count, f->classes, f->label_count};
    tn_x y[TNN_VALUES_MAX] = {NULL}, held[TNN_VALUES_MAX] = {NULL};
    char what[192];

    tn_net_call_all(t->net, in, y);
    if (app->status)
        return;
    app->known = &known;
    out[0] = f->loss(y, in + f->in_count);
    app->known = NULL;
    if (!per_sample(app, out[0], in[0], "the loss"))
        return;
    for (size_t i = 0; f->metric_count && i < t->net->output_count; i++)
        held[i] = tn_stop(y[i]);
    for (size_t i = 0; i < f->metric_count; i++) {
        (void)snprintf(what, sizeof what, "metric %.128s", f->names[i]);
        out[1 + i] = f->metrics[i].function(held, in + f->in_count);
        if (!per_sample(app, out[1 + i], in[0], what))
            return;
    }
}

/* ---- making ---- */

static tn_status metrics_take(tn_app *app, tn_train *t, struct tnn_fit *f)
{
    for (size_t i = 0; f->numbers && i < sizeof measures / sizeof *measures; i++)
        t->o.metrics[i] = (tn_metric){measures[i].name, measures[i].function};
    for (size_t i = 0; i < TNN_METRICS_MAX && t->o.metrics[i].function; i++) {
        const char *name = t->o.metrics[i].name;

        if (!name || !tnn_name_ok(name))
            return tnn_fail(app, TN_E_ARG, "metric %zu: its name needs 1 to 128 letters, digits, _ and -", i);
        f->metrics[i] = t->o.metrics[i];
        if (!(f->names[i] = tnn_strdup(app, name)))
            return app->status;
        f->now[0][i] = f->now[1][i] = NAN;
        f->metric_count++;
        f->meters[0][i] = tn_meter_new(app, "loss");
        f->meters[1][i] = tn_meter_new(app, "loss");
    }
    return app->status;
}

/* Which field of the data is input `name` of the net, or label `name`; the only input may have any name. */
static tn_status field_of(tn_app *app, const tn_data *d, const char *name, int otherwise, size_t *out)
{
    int index = tnn_data_find(d, name);

    if (index < 0 && otherwise >= 0 && tnn_data_field_shape(d, (size_t)otherwise))
        index = otherwise;
    if (index < 0)
        return tnn_fail(app, TN_E_KEY, "data \"%s\" has no field \"%s\"", tn_data_name(d), name);
    *out = (size_t)index;
    return TN_OK;
}

/* The most of both, of a training's data and of that to validate on. */
static void classes_find(struct tnn_fit *f, const tn_data *d, const size_t *fields)
{
    for (size_t i = 0; d && i < f->label_count; i++) {
        const int64_t classes = tnn_data_field_classes(d, fields[f->in_count + i]);

        f->classes[i] = classes > f->classes[i] ? classes : f->classes[i];
    }
}

static tn_status fields_find(tn_app *app, const tn_train *t, struct tnn_fit *f, const tn_data *d,
                             size_t *fields)
{
    const size_t inputs = t->net->input_count;

    if (d && tnn_data_rows_first(d, "a training"))
        return app->status;
    for (size_t i = 0; d && i < f->in_count; i++)
        if (field_of(app, d, tnn_net_input_name(t->net, i), inputs == 1 ? 0 : -1, &fields[i]))
            return app->status;
    for (size_t i = 0; d && i < f->label_count; i++)
        if (field_of(app, d, t->o.labels[0] ? t->o.labels[i] : "label", t->o.labels[0] ? -1 : 1,
                     &fields[f->in_count + i]))
            return app->status;
    return TN_OK;
}

static tn_status step_net(tn_app *app, tn_train *t, struct tnn_fit *f)
{
    tn_net *net = tnn_net_create(app, NULL, "step", "");

    if (!net)
        return app->status;
    f->step = net;
    net->function = true;
    net->inner = step_function;
    net->arg = t;
    net->input_count = f->in_count + f->label_count;
    net->output_count = 1 + f->metric_count;
    for (size_t i = 0; i < net->input_count; i++)
        if (!(net->input_names[i] = tnn_format(app, "in%zu", i)))
            return app->status;
    if (t->hybridize)
        tn_net_hybridize(net, .static_alloc = 1, .static_shape = t->net->hybrid_options.static_shape);
    return app->status;
}

static void shapes_of(const tn_data *d, const size_t *fields, size_t count, int64_t n, tnn_shape *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = *tnn_data_field_shape(d, fields[i]);
        out[i].dims[0] = n;
    }
}

/* One call without numbers: whether all fits, and sizes of the parameters. */
static tn_status step_try(tn_app *app, struct tnn_fit *f, const tn_data *d, int valid)
{
    tnn_shape in[TNN_VALUES_MAX];

    if (!d)
        return TN_OK;
    shapes_of(d, f->fields[valid], f->step->input_count, tnn_data_batch(d), in);
    if (tnn_net_infer_all(f->step, in))
        return app->status;
    for (size_t i = 0; i < f->step->layer_count; i++)
        if (f->step->layers[i]->param_count)
            return tnn_fail(
                app, TN_E_ARG,
                "a loss or metric calls %s, called at %s:%d, whose parameters nobody trains: they belong "
                "into the net",
                f->step->layers[i]->path, f->step->layers[i]->file, f->step->layers[i]->line);
    return TN_OK;
}

bool tnn_fit_wanted(const tn_train *t)
{
    return learns_numbers(t) || t->o.loss || t->o.labels[0] || t->o.metrics[0].function ||
           (!t->net->graph && t->net->input_count > 1) || t->net->output_count > 1;
}

tn_status tnn_fit_make(tn_app *app, tn_train *t)
{
    struct tnn_fit *f = t->fit = tnn_alloc(app, 1, sizeof *f);

    if (!f)
        return TN_E_NOMEM;
    if (t->net->graph)
        return tnn_fail(app, TN_E_UNSUPPORTED,
                        "net %s is the graph of a file: it is trained with its own loss", t->net->path);
    f->numbers = learns_numbers(t);
    f->loss = t->o.loss ? t->o.loss : f->numbers ? half_square : softmax_ce;
    f->in_count = t->net->input_count;
    while (f->label_count < TNN_VALUES_MAX && t->o.labels[f->label_count])
        f->label_count++;
    f->label_count += !f->label_count;
    if (f->in_count + f->label_count > TNN_VALUES_MAX)
        return tnn_fail(app, TN_E_ARG, "net %s has %zu inputs, with %zu labels more than %d fields",
                        t->net->path, f->in_count, f->label_count, TNN_VALUES_MAX);
    if (metrics_take(app, t, f) || fields_find(app, t, f, t->data, f->fields[0]) ||
        fields_find(app, t, f, t->valid, f->fields[1]) || step_net(app, t, f))
        return app->status;
    classes_find(f, t->data, f->fields[0]);
    classes_find(f, t->valid, f->fields[1]);
    if (step_try(app, f, t->data, 0) || step_try(app, f, t->valid, 1))
        return app->status;
    return tnn_net_fill(t->net);
}

void tnn_fit_destroy(struct tnn_fit *f)
{
    for (size_t i = 0; f && i < TNN_METRICS_MAX; i++)
        free(f->names[i]);
    free(f);
}

/* ---- running ---- */

/* The net around, on the running batch; the loss. Metrics go into their meters. */
tn_array *tnn_fit_forward(tn_train *t, int valid, size_t device)
{
    const tn_data *data = valid ? t->valid : t->shares[device] ? t->shares[device] : t->data;
    struct tnn_fit *f = t->fit;
    tn_array *in[TNN_VALUES_MAX] = {NULL}, *out[TNN_VALUES_MAX] = {NULL};

    for (size_t i = 0; i < f->step->input_count; i++)
        if (!(in[i] = tnn_data_now(data, f->fields[valid][i])) || !valid)
            in[i] = tnn_train_part(t, in[i], device);
    if (!tn_net_run(f->step, f->step->input_count, in, f->step->output_count, out))
        return NULL;
    for (size_t i = 0; i < f->metric_count; i++)
        tn_meter_add(f->meters[valid][i], out[1 + i], NULL);
    return out[0];
}

void tnn_fit_reset(struct tnn_fit *f, int valid)
{
    for (size_t i = 0; f && i < f->metric_count; i++)
        tn_meter_reset(f->meters[valid][i]);
}

double tnn_fit_read(const tn_train *t, int valid)
{
    struct tnn_fit *f = t->fit;

    for (size_t i = 0; i < f->metric_count; i++) {
        f->now[valid][i] = tn_meter_value(f->meters[valid][i]);
        if (f->numbers)
            f->now[valid][i] = measure_of(valid ? t->valid : t->data, i, f->now[valid][i]);
    }
    return f->metric_count ? f->now[valid][0] : NAN;
}

size_t tnn_fit_metrics(const struct tnn_fit *f)
{
    return f ? f->metric_count : 0;
}

const char *tnn_fit_metric(const struct tnn_fit *f, size_t index, double *train, double *valid,
                           tn_meter **meter)
{
    *train = f->now[0][index];
    *valid = f->now[1][index];
    if (meter)
        *meter = f->meters[0][index];
    return f->names[index];
}

void tnn_fit_log(tn_train *t)
{
    FILE *out = t->o.log;
    double train, valid;

    if (!out || t->object.app->status)
        return;
    (void)fprintf(out, "epoch %2lld  loss %.4f", (long long)t->epochs_done, t->last_loss);
    if (!t->fit)
        (void)fprintf(out, "  accuracy %.4f", t->last_accuracy);
    for (size_t i = 0; i < tnn_fit_metrics(t->fit); i++) {
        const char *name = tnn_fit_metric(t->fit, i, &train, &valid, NULL);

        (void)fprintf(out, "  %s %.4f", name, train);
    }
    if (t->valid)
        (void)fprintf(out, "  valid: loss %.4f", t->valid_loss);
    if (t->valid && !t->fit)
        (void)fprintf(out, "  accuracy %.4f", t->valid_accuracy);
    for (size_t i = 0; t->valid && i < tnn_fit_metrics(t->fit); i++) {
        const char *name = tnn_fit_metric(t->fit, i, &train, &valid, NULL);

        (void)fprintf(out, "  %s %.4f", name, valid);
    }
    (void)fprintf(out, "\n");
    (void)fflush(out);
}

int tn_fit_(tn_net *net, tn_data *data, const tn_train_options *options)
{
    tn_app *app = tnn_net_app(net);
    tn_train_options o = {0};
    tn_train *t;

    tnn_options_copy(&o, sizeof o, options);
    if (!app)
        return 0;
    if (!data)
        return !tnn_fail(app, TN_E_ARG, "tn_fit at %s:%d: no data is given", o.file ? o.file : "?", o.line);
    o.struct_size = sizeof o;
    o.net = net;
    o.train_data = data;
    o.model = o.data = NULL;
    t = tn_train_open_(app, &o);
    return t ? tn_train_run(t) : 0;
}
