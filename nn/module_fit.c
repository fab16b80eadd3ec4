/* Whole trainings of modules, scores, and their files. */
#include "module.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"

#define EPOCH_MAX 1000000

/* ---- data ------------------------------------------------------------------------------------- */

tn_status tnn_module_fields(tn_app *app, const tn_module *m, const tn_data *data, int *fields)
{
    for (uint32_t i = 0; i < m->data_count + m->label_count; i++) {
        fields[i] = tnn_data_find(data, m->inputs[i]);
        if (fields[i] < 0 && tnn_data_field_shape(data, i))
            fields[i] = (int)i;
        if (fields[i] < 0 && i < m->data_count)
            return tnn_fail(app, TN_E_KEY, "module %s: data \"%s\" has no field \"%s\", and no %uth one",
                            m->name, tn_data_name(data), m->inputs[i], i + 1);
    }
    return TN_OK;
}

/* Binds to the shapes of a batch, and does what else was not done yet. */
static tn_status module_ready(tn_app *app, tn_module *m, const tn_data *data, const int *fields, bool train)
{
    tn_module_bind_options o = {.struct_size = (uint32_t)sizeof o, .predict = !train};
    const uint32_t count = m->data_count + m->label_count;

    for (uint32_t i = 0; i < count && !m->bound; i++) {
        const tnn_shape *s = fields[i] < 0 ? NULL : tnn_data_field_shape(data, (size_t)fields[i]);
        int64_t *to = i < m->data_count ? o.shapes[i] : o.label_shapes[i - m->data_count];
        const int32_t axis = tnn_data_axis(data);

        for (int32_t d = 0; s && d < s->ndim; d++)
            to[d] = d == axis ? tnn_data_batch(data) : s->dims[d ? d : axis];
        *(i < m->data_count ? &o.layouts[i] : &o.label_layouts[i - m->data_count]) = axis ? "TN" : NULL;
    }
    if (!m->bound && m->generate && tnn_data_longest(data)) /* whose shapes these are */
        tn_module_switch(m, tnn_data_longest(data));
    if (!m->bound)
        tn_module_bind_(m, &o);
    if (!app->status && !m->valued && train)
        tn_module_init_params(m, .with = NULL);
    if (!app->status && train && !m->trainer)
        tn_module_init_optimizer(m, .optimizer = NULL);
    return app->status;
}

/* Forward over the running batch, through its bucket; the labels, or NULL. */
static tn_array *batch_forward(tn_module *m, const tn_data *data, const int *fields, bool train)
{
    tn_array *arrays[TNN_VALUES_MAX] = {NULL};
    int32_t axes[TNN_VALUES_MAX] = {0};
    size_t count = 0;

    if (m->generate && tn_data_bucket(data))
        tn_module_switch(m, tn_data_bucket(data));
    while (count < m->data_count + m->label_count && fields[count] >= 0) {
        arrays[count] = tnn_data_now(data, (size_t)fields[count]);
        axes[count++] = tnn_data_axis(data);
    }
    tnn_module_forward(m, train, count, arrays, axes);
    return m->label_count && count > m->data_count ? arrays[m->data_count] : NULL;
}

/* The running batch: output 0 with the labels, of a module without labels with the data's second field. Of
 * as many outputs as labels all, in their order. */
static void batch_measure(tn_module *m, tn_meter *meter, const tn_data *data, const int *fields,
                          tn_array *labels, const tn_data *filled)
{
    const size_t pairs = tn_module_output_count(m) == m->label_count ? m->label_count : 1;

    if (!labels && !m->label_count)
        labels = tnn_data_now(data, m->data_count);
    tnn_module_measure(m, 0, meter, labels, filled);
    tnn_meter_join(meter, true);
    for (size_t i = 1; labels && i < pairs && fields[m->data_count + i] >= 0; i++)
        tnn_module_measure(m, i, meter, tnn_data_now(data, (size_t)fields[m->data_count + i]), filled);
    tnn_meter_join(meter, false);
}

/* ---- fit, score, predict ---------------------------------------------------------------------- */

static double score_over(tn_app *app, tn_module *m, tn_data *data, const int *fields, tn_meter *meter)
{
    tn_batch batch;

    tn_meter_reset(meter);
    while (!app->status && tn_data_next(data, &batch)) {
        tn_array *labels = batch_forward(m, data, fields, false);

        batch_measure(m, meter, data, fields, labels, data);
    }
    return tn_meter_value(meter);
}

double tn_module_score_by(tn_module *m, tn_data *data, tn_meter *meter)
{
    tn_app *app = tnn_module_app(m);
    int fields[TNN_VALUES_MAX];

    if (!app || !data || !meter || tnn_module_fields(app, m, data, fields) ||
        module_ready(app, m, data, fields, false))
        return NAN;
    return score_over(app, m, data, fields, meter);
}

double tn_module_score(tn_module *m, tn_data *data, const char *metric)
{
    tn_app *app = tnn_module_app(m);

    return app && data ? tn_module_score_by(m, data, tn_meter_new(app, metric ? metric : "accuracy")) : NAN;
}

tn_status tnn_module_join(tn_app *app, uint32_t count, tn_array *const *parts, int32_t axis, tn_array **out)
{
    char args[24], dim[24];
    const char *const attrs[] = {"dim", dim, "num_args", args, NULL};
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                             .op = "Concat",
                             .attrs = attrs,
                             .in_count = count,
                             .in = (tn_array **)(uintptr_t)parts};

    (void)snprintf(args, sizeof args, "%u", count);
    (void)snprintf(dim, sizeof dim, "%d", axis);
    return tnn_check(app, tn_invoke_text(app->ctx, &call, 1, out, NULL), "tn_module_predict");
}

tn_array *tn_module_predict(tn_module *m, tn_data *data, size_t index)
{
    tn_app *app = tnn_module_app(m);
    int fields[TNN_VALUES_MAX];
    tn_array **parts = NULL, *out = NULL, *y = NULL;
    uint32_t count = 0;
    tn_batch batch;

    if (!app || !data || tnn_module_fields(app, m, data, fields) || module_ready(app, m, data, fields, false))
        return NULL;
    if (!(parts = tnn_alloc(app, (size_t)tn_data_batches(data) + 1, sizeof(*parts))))
        return NULL;
    while (!app->status && count < tn_data_batches(data) && tn_data_next(data, &batch)) {
        (void)batch_forward(m, data, fields, false);
        if (!app->status && !(y = tn_module_output(m, index)))
            (void)tnn_fail(app, TN_E_ARG, "module %s has no output %zu", m->name, index);
        else if (!app->status)
            (void)tnn_check(app, tn_array_to(app->ctx, tnn_data_real(data, y), NULL, &parts[count++]),
                            "tn_module_predict");
    }
    while (!app->status && tn_data_next(data, &batch)) /* to the end of the epoch */
        ;
    if (!app->status && count)
        (void)tnn_module_join(app, count, parts, 0, &out);
    for (uint32_t i = 0; i < count; i++)
        tn_array_release(parts[i]);
    free(parts);
    return app->status ? NULL : tn_app_own(app, out);
}

typedef struct course { /* of a training */
    tn_module_fit_options o;
    tn_data *data;
    tn_meter *meter, *valid_meter;
    int fields[TNN_VALUES_MAX], valid_fields[TNN_VALUES_MAX];
    bool stopped;
} course;

static void event_tell(tn_module *m, course *c, int64_t epoch, int64_t batch, double valid)
{
    if (c->o.event &&
        c->o.event(c->o.arg, m, epoch, batch, batch < 0 ? tn_meter_value(c->meter) : NAN, valid))
        c->stopped = true;
}

static void epoch_run(tn_app *app, tn_module *m, course *c, int64_t epoch)
{
    double valid = NAN;
    tn_batch batch;

    tn_meter_reset(c->meter);
    while (!app->status && !c->stopped && tn_data_next(c->data, &batch)) {
        tn_array *labels = batch_forward(m, c->data, c->fields, true);

        tn_module_backward(m, NULL);
        tn_module_update(m);
        batch_measure(m, c->meter, c->data, c->fields, labels, NULL);
        if (!app->status)
            event_tell(m, c, epoch, batch.index, NAN);
    }
    if (app->status || c->stopped)
        return;
    if (c->o.valid)
        valid = score_over(app, m, c->o.valid, c->valid_fields, c->valid_meter);
    if (c->o.prefix && (epoch + 1) % (c->o.every ? c->o.every : 1) == 0)
        tn_module_save(m, c->o.prefix, epoch + 1, 1);
    if (!app->status)
        event_tell(m, c, epoch, -1, valid);
}

/* Lists that share a metric share the last one. */
static bool meters_shared(tn_meter *a, tn_meter *b)
{
    const size_t last = tn_meter_count(a), other = tn_meter_count(b);

    return last && other && tn_meter_at(a, last - 1) == tn_meter_at(b, other - 1);
}

void tn_module_fit_(tn_module *m, tn_data *data, const tn_module_fit_options *options)
{
    tn_app *app = tnn_module_app(m);
    course c = {.data = data};

    if (!app)
        return;
    tnn_options_copy(&c.o, sizeof c.o, options);
    if (!data || c.o.epochs < 0 || c.o.epochs > EPOCH_MAX || c.o.first < 0 || c.o.first > EPOCH_MAX ||
        c.o.every < 0 || meters_shared(c.o.meter, c.o.valid_meter)) {
        (void)tnn_fail(app, TN_E_ARG, "tn_module_fit at %s:%d: %s", c.o.file ? c.o.file : "?", c.o.line,
                       !data ? "the data is NULL"
                       : meters_shared(c.o.meter, c.o.valid_meter)
                           ? ".meter and .valid_meter share a metric"
                           : ".epochs, .first or .every is out of range");
        return;
    }
    if (tnn_module_fields(app, m, data, c.fields) ||
        (c.o.valid && tnn_module_fields(app, m, c.o.valid, c.valid_fields)) ||
        module_ready(app, m, data, c.fields, true))
        return;
    if (m->predict) {
        (void)tnn_fail(app, TN_E_STATE, "module %s is bound for prediction", m->name);
        return;
    }
    c.meter = c.o.meter ? c.o.meter : tn_meter_new(app, c.o.metric ? c.o.metric : "accuracy");
    c.valid_meter = c.o.valid_meter ? c.o.valid_meter : tnn_meter_like(app, c.meter);
    m->meter = c.meter;
    for (int64_t e = c.o.first; !app->status && !c.stopped && e < (c.o.epochs ? c.o.epochs : 1); e++)
        epoch_run(app, m, &c, e);
    m->meter = NULL;
}

/* ---- files ------------------------------------------------------------------------------------ */

static char *file_name(tn_app *app, const char *prefix, int64_t epoch, const char *end)
{
    return tnn_format(app, "%s-%04lld.%s", prefix, (long long)epoch, end);
}

static tn_status names_check(tn_app *app, const char *function, const char *prefix, int64_t epoch)
{
    if (prefix && *prefix && epoch >= 0 && epoch <= EPOCH_MAX)
        return TN_OK;
    return tnn_fail(app, TN_E_ARG, "%s: %s", function,
                    prefix && *prefix ? "the epoch is out of range" : "the prefix is missing");
}

void tn_module_save(tn_module *m, const char *prefix, int64_t epoch, int32_t states)
{
    tn_app *app = tnn_module_app(m);
    char *json = NULL, *file = NULL, *state_file = NULL;
    tn_params *params = NULL;

    if (!app || names_check(app, __func__, prefix, epoch))
        return;
    if (states && !m->trainer) {
        (void)tnn_fail(app, TN_E_STATE, "module %s has no optimizer whose states could be saved", m->name);
        return;
    }
    if ((json = tnn_format(app, "%s-symbol.json", prefix)) &&
        (file = file_name(app, prefix, epoch, "params")) &&
        (state_file = file_name(app, prefix, epoch, "states")) && (params = tn_module_params(m)) &&
        !tnn_pair_save(app, m->buckets[0]->symbol, json, params, file) && states)
        tn_trainer_save(m->trainer, state_file);
    tn_params_destroy(params);
    free(json);
    free(file);
    free(state_file);
}

tn_module *tn_module_load_(tn_app *app, const char *prefix, int64_t epoch, int32_t states,
                           const tn_module_options *options)
{
    tn_module_options o = {0};
    tn_params *params = NULL;
    tn_module *m = NULL;
    char *json, *file;

    if (!tnn_ok(app) || names_check(app, __func__, prefix, epoch))
        return NULL;
    tnn_options_copy(&o, sizeof o, options);
    o.struct_size = (uint32_t)sizeof o;
    json = tnn_format(app, "%s-symbol.json", prefix);
    file = json ? file_name(app, prefix, epoch, "params") : NULL;
    if (file && !o.bucket)
        o.json = json;
    if (file && (m = tn_module_new_(app, &o)) != NULL &&
        !tnn_check(app, tn_params_load(app->ctx, file, NULL, &params), "%s", file))
        tn_module_set_params(m, params, 0);
    if (m && states && !app->status)
        m->states = file_name(app, prefix, epoch, "states");
    tn_params_destroy(params);
    free(json);
    free(file);
    return app->status ? NULL : m;
}
