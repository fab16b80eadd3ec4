/*
 * A whole training: what `tenon train` and the examples run.
 *
 * All that decides the weights is in a checkpoint: parameters, states of the optimizer, random numbers'
 * position, step and place in the data. Orders of samples and learning rates are functions of seed and step.
 * So a resumed training makes the same steps as one that was never broken off, bit for bit; sums of the
 * meters are kept too, so it also reports the same numbers.
 */
#include "train.h"
#include "data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static tn_app *train_app(const tn_train *t)
{
    return t && t->usable && tnn_ok(t->object.app) ? t->object.app : NULL;
}

static void train_destroy(tnn_object *object)
{
    tn_train *t = (tn_train *)object;

    for (size_t i = 0; i < TNN_STEPS_AHEAD; i++)
        tn_array_release(t->ahead[i]);
    tnn_fit_destroy(t->fit);
    free(t->model);
    free(t->data_name);
    free(t->valid_name);
    free(t->folder);
    free(t->config_hash);
    free(t->checkpoint);
    free(t->best_prefix);
    free(t->best_file);
    free(t->losses);
    tnn_job_close(t);
    free(t);
}

/* ---- making ---- */

static void number_from(tn_app *app, const char *key, double *value)
{
    if (*value < 0)
        *value = 0; /* none was asked */
    else if (*value == 0)
        (void)tnn_check(app, tn_ctx_option_float(app->ctx, key, value), "%s", "");
}

static void whole_from(tn_app *app, const char *key, int64_t *value)
{
    if (*value < 0)
        *value = 0;
    else if (*value == 0)
        (void)tnn_check(app, tn_ctx_option_int(app->ctx, key, value), "%s", "");
}

static bool switch_from(tn_app *app, const char *key, int32_t no)
{
    int64_t on = 0;

    (void)tnn_check(app, tn_ctx_option_int(app->ctx, key, &on), "%s", "");
    return on && !no;
}

/* Numbers of the optimizer; what is 0 is its own to say. */
static void hyper_from(tn_app *app, tn_trainer_options *o)
{
    static const struct {
        const char *key;
        size_t at;
    } rows[] = {
        {"train.beta1", offsetof(tn_trainer_options, beta1)},
        {"train.beta2", offsetof(tn_trainer_options, beta2)},
        {"train.epsilon", offsetof(tn_trainer_options, epsilon)},
        {"train.gamma1", offsetof(tn_trainer_options, gamma1)},
        {"train.gamma2", offsetof(tn_trainer_options, gamma2)},
        {"train.rho", offsetof(tn_trainer_options, rho)},
        {"train.clip_weights", offsetof(tn_trainer_options, clip_weights)},
        {"train.wd_lh", offsetof(tn_trainer_options, wd_lh)},
        {"train.schedule_decay", offsetof(tn_trainer_options, schedule_decay)},
        {"train.lamda", offsetof(tn_trainer_options, lamda)},
        {"train.lamda1", offsetof(tn_trainer_options, lamda1)},
        {"train.beta", offsetof(tn_trainer_options, beta)},
        {"train.lars_eta", offsetof(tn_trainer_options, eta)},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        number_from(app, rows[i].key, (double *)(void *)((char *)o + rows[i].at));
    o->centered = switch_from(app, "train.centered", 0);
    whole_from(app, "train.batch_scale", &o->batch_scale);
}

static tn_status options_fill(tn_app *app, tn_train *t)
{
    tn_train_options *o = &t->o;
    int64_t keep = o->checkpoint_keep;

    whole_from(app, "train.epochs", &o->epochs);
    if (o->train_data)
        o->batch = tnn_data_batch(o->train_data);
    whole_from(app, "train.batch", &o->batch);
    number_from(app, "train.lr", &o->lr);
    o->optimizer = o->optimizer ? o->optimizer : tn_ctx_option(app->ctx, "train.optimizer");
    if (o->lr == 0 && o->optimizer && (!strcasecmp(o->optimizer, "sgd") || !strcasecmp(o->optimizer, "nag")))
        o->lr = 0.05; /* as MXNet's example of MNIST; the others have what mxnet.optimizer has */
    number_from(app, "train.momentum", &o->momentum);
    number_from(app, "train.wd", &o->wd);
    number_from(app, "train.clip", &o->clip);
    number_from(app, "train.clip_norm", &o->clip_norm);
    number_from(app, "train.warmup", &o->warmup);
    number_from(app, "train.schedule_factor", &o->schedule_factor);
    number_from(app, "train.schedule_every", &o->schedule_every);
    number_from(app, "train.checkpoint_every", &o->checkpoint_every);
    whole_from(app, "train.checkpoint_keep", &keep);
    o->checkpoint_keep = (int32_t)(keep > 1000000 ? 1000000 : keep);
    o->schedule = o->schedule ? o->schedule : tn_ctx_option(app->ctx, "train.schedule");
    t->hybridize = switch_from(app, "train.hybridize", o->no_hybridize);
    t->shuffle = switch_from(app, "train.shuffle", o->no_shuffle);
    (void)tnn_seed(app, o->seed, &t->seed);
    (void)tnn_watch_options(app, t);
    if (app->status)
        return app->status;
    if (o->epochs < 1 || o->epochs > 1000000000 || o->batch < 1)
        return tnn_fail(app, TN_E_ARG, "a training of %lld epochs with batches of %lld", (long long)o->epochs,
                        (long long)o->batch);
    if (!o->model && !o->net)
        return tnn_fail(app, TN_E_ARG, "tn_train_open at %s:%d: neither a model nor a net is given",
                        o->file ? o->file : "?", o->line);
    return o->data || o->train_data ? TN_OK
                                    : tnn_fail(app, TN_E_ARG, "tn_train_open at %s:%d: no data is given",
                                               o->file ? o->file : "?", o->line);
}

static const char *text_from(tn_app *app, const char *key, const char *given)
{
    const char *text = given ? given : tn_ctx_option(app->ctx, key);

    return text && *text ? text : NULL;
}

/* Length of a data set's name without its part; all of it if it names none. */
static int part_of(const char *name)
{
    const char *colon = strrchr(name, ':');

    return colon && (!strcmp(colon, ":train") || !strcmp(colon, ":test")) ? (int)(colon - name)
                                                                          : (int)strlen(name);
}

/* Those of the program. */
static tn_status data_given(tn_app *app, tn_train *t)
{
    t->data = t->o.train_data;
    t->valid = t->o.valid_data;
    if (tnn_data_app(t->data) != app || (t->valid && tnn_data_app(t->valid) != app))
        return tnn_fail(app, TN_E_ARG,
                        "the data cannot be used: its opening failed, or it is of another app");
    t->data_name = tnn_strdup(app, tn_data_name(t->data));
    return app->status;
}

/* "digits" stands for digits:train and digits:test. */
static tn_status data_named(tn_app *app, tn_train *t)
{
    const char *valid = text_from(app, "train.valid", t->o.valid);
    const int length = part_of(t->o.data);

    t->data_name = t->o.data[length] ? tnn_strdup(app, t->o.data) : tnn_format(app, "%s:train", t->o.data);
    if (valid && !strcmp(valid, "none"))
        t->valid_name = NULL;
    else if (valid)
        t->valid_name = valid[part_of(valid)] ? tnn_strdup(app, valid) : tnn_format(app, "%s:test", valid);
    else
        t->valid_name = tnn_format(app, "%.*s:test", length, t->o.data);
    if (app->status)
        return app->status;
    for (int64_t k = 0, devices = (int64_t)app->device_count; k < devices; k++)
        t->shares[k] =
            tn_data_open(app, t->data_name, .batch = t->o.batch, .shuffle = t->shuffle, .seed = t->seed,
                         .parts = devices * t->workers, .part = t->rank * devices + k);
    t->data = t->shares[0];
    if (t->valid_name)
        t->valid = tn_data_open(app, t->valid_name, .batch = 256, .seed = t->seed, .like = t->data);
    return app->status;
}

static tn_status data_open(tn_app *app, tn_train *t)
{
    if (t->o.train_data ? data_given(app, t) : data_named(app, t))
        return app->status;
    if (!t->valid && t->early != TNN_EARLY_NONE)
        return tnn_fail(app, TN_E_ARG, "early_stop needs data to validate on, but valid is none");
    if (t->valid && tnn_data_same(t->data, t->valid))
        tnn_warn(
            app,
            "training and validation use the same samples (%.100s and %.100s): the figures of the validation "
            "say nothing about samples that the net has not seen; choose another part, or train.valid=none",
            t->data_name, tn_data_name(t->valid));
    if (tn_data_task(t->data) == TN_TASK_CLASSES && tn_data_classes(t->data) == 1)
        tnn_warn(app, "all samples of %.100s are of one class: there is nothing to tell apart", t->data_name);
    if (tnn_data_varies(t->data) || (t->valid && tnn_data_fills(t->valid)))
        return tnn_fail(
            app, TN_E_ARG,
            "a training needs epochs of as many batches each, and no filler in validation: .last of "
            "the data is to be keep or discard, of training data also pad");
    t->batches = tn_data_batches(t->data);
    if (app->status || tnn_job_agree(app, t))
        return app->status;
    if (t->o.epochs > INT64_MAX / 2 / t->batches)
        return tnn_fail(app, TN_E_ARG, "%lld epochs of %lld batches are too many", (long long)t->o.epochs,
                        (long long)t->batches);
    t->steps = t->o.epochs * t->batches;
    return TN_OK;
}

static int64_t steps_of(const tn_train *t, double epochs, int64_t least)
{
    const double steps = epochs * (double)t->batches;

    return steps >= 9e18 ? INT64_MAX : steps > (double)least ? (int64_t)(steps + 0.5) : least;
}

/* The labels must be classes that the net tells apart: an operator would take the nearest one it has. */
static tn_status classes_check(tn_app *app, const tn_train *t)
{
    const int64_t width = tnn_net_width(t->net);
    const tn_data *all[] = {t->data, t->valid};

    if (width < 1)
        return tnn_fail(app, TN_E_SHAPE, "%s: its output is not (N, classes)", t->model);
    for (int i = 0; i < 2; i++)
        if (all[i] && tn_data_classes(all[i]) > width)
            return tnn_fail(app, TN_E_SHAPE,
                            "%s tells %lld classes apart, but data \"%s\" has %lld (labels 0 to %lld)",
                            t->model, (long long)width, tn_data_name(all[i]),
                            (long long)tn_data_classes(all[i]), (long long)tn_data_classes(all[i]) - 1);
    return TN_OK;
}

/* An epoch is too late to find that out. */
static tn_status valid_check(tn_app *app, const tn_train *t)
{
    int64_t out[TNN_NDIM_MAX];
    int32_t ndim;

    if (!t->valid || app->status || tnn_net_takes_data(t->net, t->valid, &ndim, out))
        return app->status;
    return tnn_check(app, tn_error_code(), "data \"%s\" to validate on does not fit", tn_data_name(t->valid));
}

/* Outputs that the data needs: one for each class, or for each number of a regression. */
static int64_t outputs_of(const tn_train *t)
{
    const int64_t classes = tn_data_classes(t->data), more = tn_data_classes(t->valid);

    if (tn_data_task(t->data) == TN_TASK_NUMBERS && t->data->field_count > 1)
        return (int64_t)t->data->fields[1].sample;
    return classes > more ? classes : more;
}

static tn_net *net_of(tn_app *app, const tn_train *t)
{
    const tnn_shape *sample = &t->data->fields[0].shape;
    char text[TNN_SHAPE_TEXT];
    tn_net *net;

    if (!t->o.model)
        return t->o.net;
    if (tnn_ends_with(t->o.model, ".json"))
        return tn_net_from_symbol(app, t->o.model);
    app->outputs = outputs_of(t);
    net = tn_net_zoo(app, t->o.model);
    app->outputs = 0;
    if (net && sample->ndim != 4 && tnn_zoo_takes_images(t->o.model))
        (void)tnn_fail(
            app, TN_E_SHAPE,
            "%s takes images, a sample of %.100s is %s: take zoo:mlp, or give rows the shape of an image, "
            "such as data.shape=1x8x8",
            t->o.model, t->data_name, tnn_shape_text(sample->ndim - 1, sample->dims + 1, text));
    return net;
}

/* First values, and shapes, from the data's. */
static tn_status net_ready(tn_app *app, tn_train *t)
{
    tnn_shape in[TNN_VALUES_MAX];

    if (!tnn_net_shapes(t->net, t->data, in) && !tnn_net_infer_all(t->net, in))
        (void)tnn_net_fill(t->net);
    return app->status;
}

static void trainer_make(tn_app *app, tn_train *t)
{
    tn_trainer_options o = {.struct_size = sizeof o,
                            .optimizer = t->o.optimizer,
                            .lr = t->o.lr,
                            .momentum = t->o.momentum,
                            .wd = t->o.wd,
                            .clip = t->o.clip,
                            .clip_norm = t->o.clip_norm,
                            .schedule = t->o.schedule,
                            .steps = t->steps,
                            .warmup = steps_of(t, t->o.warmup, 0),
                            .factor = t->o.schedule_factor,
                            .store = t->store,
                            .ignore_stale_grad = t->o.ignore_stale_grad,
                            .every = steps_of(t, t->o.schedule_every, 1)};

    hyper_from(app, &o);
    t->trainer = tn_trainer_new_(t->net, &o);
}

static tn_status net_make(tn_app *app, tn_train *t)
{
    const char *params = text_from(app, "train.params", t->o.params);

    t->net = net_of(app, t);
    if (!t->net || t->net->object.app != app)
        return app->status ? app->status : tnn_fail(app, TN_E_ARG, "tn_train_open: the net is not usable");
    if (!t->net->initialised)
        tn_net_init(t->net, .seed = t->seed);
    if (app->status || (tnn_fit_wanted(t) ? tnn_fit_make(app, t) : net_ready(app, t)))
        return app->status;
    if (params && !t->o.resume)
        tn_net_load_params(t->net, params);
    if (app->status || (!t->fit && (classes_check(app, t) || valid_check(app, t))))
        return app->status;
    if (t->hybridize)
        tn_net_hybridize(t->net);
    trainer_make(app, t);
    if (t->store && (app->status || tnn_trainer_ready(t->trainer)))
        return app->status; /* the first gradients are of worker 0's values, too */
    t->loss = tn_meter_new(app, "loss");
    t->accuracy = tn_meter_new(app, "accuracy");
    return app->status;
}

/* Texts of the caller are not kept. */
static tn_status texts_keep(tn_app *app, tn_train *t)
{
    const tn_train_options *o = &t->o;

    if (!(t->model = tnn_strdup(app, o->model ? o->model : o->net->path)) ||
        (o->checkpoint && !(t->folder = tnn_strdup(app, o->checkpoint))) ||
        (o->config_hash && !(t->config_hash = tnn_strdup(app, o->config_hash))) ||
        (o->best && (!(t->best_prefix = tnn_strdup(app, o->best)) ||
                     !(t->best_file = tnn_format(app, "%s-best.params", o->best)))))
        return app->status;
    t->o.checkpoint = t->folder;
    t->o.best = t->best_prefix;
    t->o.config_hash = t->config_hash;
    t->o.file = NULL;
    return TN_OK;
}

tn_train *tn_train_open_(tn_app *app, const tn_train_options *options)
{
    tn_train *t;

    if (!tnn_ok(app) || !(t = tnn_alloc(app, 1, sizeof *t)))
        return NULL;
    tnn_object_add(app, &t->object, train_destroy);
    tnn_options_copy(&t->o, sizeof t->o, options);
    atomic_init(&t->stop, 0);
    t->last_loss = t->last_accuracy = t->valid_loss = t->valid_accuracy = t->best = t->lr = NAN;
    t->best_value = t->watched = t->first_loss = t->mean_loss = NAN;
    if (options_fill(app, t) || texts_keep(app, t) || tnn_job_open(app, t) || data_open(app, t) ||
        tnn_check(app, tn_random_seed(app->ctx, t->seed, NULL), "%s", "") || net_make(app, t))
        return NULL;
    t->o.optimizer = tnn_trainer_options(t->trainer)->optimizer;
    t->o.schedule = tnn_trainer_options(t->trainer)->schedule;
    t->o.lr = tnn_trainer_options(t->trainer)->lr;
    t->o.model = t->o.data = t->o.valid = t->o.params = NULL;
    t->usable = true;
    t->checkpoint_steps = t->folder ? steps_of(t, t->o.checkpoint_every, 0) : 0;
    if (t->o.checkpoint_every > 0 && !t->checkpoint_steps && t->folder)
        t->checkpoint_steps = 1;
    t->late = tn_trainer_steps(t->trainer) > 0;
    if (t->late ? tnn_job_rejoin(app, t) : t->o.resume && tnn_train_resume(t))
        t->usable = false;
    return t->usable ? t : NULL;
}

/* ---- running ---- */

/* The figures as of now; waits for the device. */
static void figures_read(tn_train *t)
{
    const double loss = tn_meter_value(t->loss), accuracy = tn_meter_value(t->accuracy);

    if (isnan(t->fit ? loss : accuracy))
        return; /* an epoch has just begun: the figures of the one before stay */
    t->last_loss = loss;
    t->last_accuracy = t->fit ? tnn_fit_read(t, 0) : accuracy;
}

static void event(tn_train *t, int32_t kind)
{
    if (t->o.event && tnn_ok(t->object.app) && t->o.event(t->o.arg, kind, t))
        tn_train_stop(t);
}

/* Waits for the forward pass of the step TNN_STEPS_AHEAD before; keeps `loss` to wait for later. */
static void ahead_bound(tn_train *t, tn_array *loss)
{
    const int64_t step = tn_trainer_steps(t->trainer);
    const size_t slot = (size_t)(step % TNN_STEPS_AHEAD);

    (void)tnn_watch_slot(t, slot);
    t->ahead[slot] = loss;
    t->ahead_step[slot] = step;
    tn_array_retain(loss);
}

tn_array *tnn_train_part(const tn_train *t, tn_array *array, size_t device)
{
    tn_app *app = t->object.app;

    if (app->device_count == 1)
        return array;
    return t->shares[0] ? tnn_on(app, array, device) : tn_app_part(app, array, device);
}

/* Forward and backward of a device's part of the batch; the loss. */
static tn_array *part_run(tn_app *app, tn_train *t, const tn_batch *b, size_t device)
{
    const tn_data *data = t->shares[device] ? t->shares[device] : t->data;
    tn_array *in[TNN_VALUES_MAX] = {NULL}, *labels = NULL, *y = NULL, *loss;

    if (!t->fit && !tnn_net_inputs(t->net, data, in)) {
        for (size_t i = 0; i < t->net->input_count; i++)
            in[i] = tnn_train_part(t, in[i], device);
        labels = tnn_train_part(t, b->y, device);
    }
    tn_app_record(app);
    y = t->fit || !tnn_ok(app) ? NULL : tnn_net_first(t->net, in);
    loss = t->fit ? tnn_fit_forward(t, 0, device) : tn_loss_softmax_ce(app, y, labels);
    tn_app_backward(app, loss);
    tn_meter_add(t->loss, loss, NULL);
    if (!t->fit)
        tn_meter_add(t->accuracy, y, labels);
    return loss;
}

/* With shares each device counts as much as the first one, whose last batch may have a sample less than
 * others; workers of a job know no more of each other. A batch that the first share does not have is left
 * out. */
tn_status tnn_train_step(tn_train *t, const tn_batch *b)
{
    tn_app *app = t->object.app;
    tn_batch part = *b;
    int64_t n = b->n;
    tn_array *loss;

    t->lr = tn_trainer_lr(t->trainer);
    loss = part_run(app, t, b, 0);
    for (size_t k = 1; k < app->device_count && !app->status; k++) {
        if (t->shares[k]) {
            tn_data_seek(t->shares[k], b->epoch, b->index);
            n += tn_data_next(t->shares[k], &part) ? part.n : 0;
        }
        if (!app->status)
            (void)part_run(app, t, &part, k);
    }
    if (t->late && tnn_job_rejoined(app, t))
        return app->status;
    tn_trainer_step(t->trainer, tnn_job_samples(t, b, n));
    if (loss)
        ahead_bound(t, loss);
    t->samples += n;
    return app->status;
}

static void validate(tn_app *app, tn_train *t)
{
    tn_meter *loss = t->valid_meters[0], *accuracy = t->valid_meters[1];
    tn_batch b;

    if (!t->valid || app->status)
        return;
    if (!loss) {
        loss = t->valid_meters[0] = tn_meter_new(app, "loss");
        accuracy = t->valid_meters[1] = tn_meter_new(app, "accuracy");
    }
    tn_meter_reset(loss);
    tn_meter_reset(accuracy);
    tnn_fit_reset(t->fit, 1);
    tn_data_seek(t->valid, 0, 0);
    while (tn_data_next(t->valid, &b)) {
        tn_array *y = t->fit ? NULL : tnn_net_first_of(t->net, t->valid);

        tn_meter_add(loss, t->fit ? tnn_fit_forward(t, 1, 0) : tn_loss_softmax_ce(app, y, b.y), NULL);
        tn_meter_add(accuracy, y, b.y);
    }
    t->valid_loss = tn_meter_value(loss);
    t->valid_accuracy = t->fit ? tnn_fit_read(t, 1) : tn_meter_value(accuracy);
    if (!(t->best >= t->valid_accuracy)) /* also the first */
        t->best = t->valid_accuracy;
}

void tn_train_save(tn_train *t)
{
    tn_app *app = train_app(t);

    if (app && t->folder && !t->rank && t->saved_step != tn_trainer_steps(t->trainer) &&
        !tnn_watch_finite(t) && !tnn_train_checkpoint(t)) {
        t->saved_step = tn_trainer_steps(t->trainer);
        event(t, TN_TRAIN_SAVED);
    }
}

/* What is due behind a step: figures at the end of an epoch, a checkpoint, the events. */
static void step_end(tn_app *app, tn_train *t, bool last_of_epoch)
{
    const int64_t step = tn_trainer_steps(t->trainer);

    event(t, TN_TRAIN_STEP);
    if (last_of_epoch) {
        figures_read(t);
        validate(app, t);
        t->epochs_done++;
        tnn_watch_epoch(t);
        tnn_watch_rise(t);
        tnn_fit_log(t);
        event(t, TN_TRAIN_EPOCH);
        tnn_watch_loss(t);
        tn_meter_reset(t->loss);
        tn_meter_reset(t->accuracy);
        tnn_fit_reset(t->fit, 0);
        t->epoch_began = tnn_now();
    }
    if (t->checkpoint_steps && step % t->checkpoint_steps == 0)
        tn_train_save(t);
}

/* Only at the end of an epoch: one that was resumed within the next one goes on to its end. */
static bool ends_early(const tn_train *t)
{
    return tnn_watch_ends(t) && t->batch == t->batches;
}

static void epoch_run(tn_app *app, tn_train *t)
{
    tn_batch b;

    for (;;) {
        double began = tnn_now();
        int more = tnn_job_next(t, &b);

        t->data_seconds += tnn_now() - began;
        if (!more || tnn_train_step(t, &b))
            return;
        t->batch = t->at;
        step_end(app, t, t->batch == t->batches);
        if (atomic_load(&t->stop) || ends_early(t))
            return;
    }
}

/* All that tn_train_run() does but forget that it was stopped. */
static int train_go(tn_app *app, tn_train *t)
{
    t->stopped = false;
    t->began = t->epoch_began = tnn_now();
    t->data_seconds = 0;
    t->samples = 0;
    t->ended_early = ends_early(t);
    event(t, TN_TRAIN_BEGIN);
    while (tnn_ok(app) && !atomic_load(&t->stop) && !ends_early(t) && tn_trainer_steps(t->trainer) < t->steps)
        epoch_run(app, t);
    if (!tnn_ok(app) || tnn_watch_finite(t) || tnn_job_end(t))
        return 0;
    t->ended_early = tn_trainer_steps(t->trainer) < t->steps && ends_early(t);
    t->stopped = tn_trainer_steps(t->trainer) < t->steps && !t->ended_early;
    if (t->stopped)
        figures_read(t);
    tn_train_save(t);
    event(t, TN_TRAIN_END);
    return tnn_ok(app) && !t->stopped;
}

/* Who asks to stop does not see whether the run has begun: so that is forgotten at a run's end, never at its
 * beginning. */
int tn_train_run(tn_train *t)
{
    tn_app *app = train_app(t);
    int done;

    if (!app)
        return 0;
    done = train_go(app, t);
    atomic_store(&t->stop, 0);
    return done;
}

void tn_train_stop(tn_train *t)
{
    if (t)
        atomic_store(&t->stop, 1);
}

void tn_train_info_get(tn_train *t, int32_t read, tn_train_info *out)
{
    tn_train_info i = {.struct_size = sizeof i};
    uint32_t size;

    if (!out) {
        (void)tnn_fail(train_app(t), TN_E_ARG, "tn_train_info_get: info is NULL");
        return;
    }
    size = out->struct_size < sizeof i ? out->struct_size : (uint32_t)sizeof i;
    if (train_app(t)) {
        if (read)
            figures_read(t);
        i.epochs = t->o.epochs;
        i.batches = t->batches;
        i.batch = t->batch;
        i.step = tn_trainer_steps(t->trainer);
        i.steps = t->steps;
        i.epoch = i.step ? (i.step - 1) / t->batches + 1 : 0;
        i.seconds = t->began > 0 ? tnn_now() - t->began : 0;
        i.epoch_seconds = t->began > 0 ? tnn_now() - t->epoch_began : 0;
        for (size_t k = 0; k < t->object.app->device_count; k++)
            i.train_count += t->shares[k] ? tn_data_count(t->shares[k]) : 0;
        if (!t->shares[0])
            i.train_count = tn_data_count(t->data);
        i.valid_count = tn_data_count(t->valid);
        i.param_elements = tn_net_param_elements(t->net);
        i.device = t->object.app->device_count > 1 ? tn_ctx_option(t->object.app->ctx, "device.default")
                                                   : tn_app_device(t->object.app);
    }
    if (t) {
        i.stopped = t->stopped;
        i.ended_early = t->ended_early;
        i.best_epoch = t->best_epoch;
        i.waited = t->waited;
        i.best_value = t->best_value;
        i.best = t->best_saved ? t->best_file : NULL;
        i.samples = t->samples;
        i.resumed_step = t->resumed_step;
        i.batch_size = t->o.batch;
        i.seed = t->seed;
        i.lr = t->lr;
        i.loss = t->last_loss;
        i.accuracy = t->last_accuracy;
        i.valid_loss = t->valid_loss;
        i.valid_accuracy = t->valid_accuracy;
        i.best_accuracy = t->best;
        i.data_seconds = t->data_seconds;
        i.model = t->model;
        i.checkpoint = t->checkpoint;
        i.optimizer = t->o.optimizer;
        i.schedule = t->o.schedule;
        i.diverged_epoch = t->diverged_epoch;
        i.rank = t->rank;
        i.workers = t->workers;
        i.state_elements = tnn_trainer_state_elements(t->trainer);
        i.metric_count = (int64_t)tnn_fit_metrics(t->fit);
        for (int64_t k = 0; k < i.metric_count; k++)
            i.metric_names[k] = tnn_fit_metric(t->fit, (size_t)k, &i.metrics[k], &i.valid_metrics[k], NULL);
    }
    i.struct_size = size;
    memcpy(out, &i, size);
}

tn_net *tn_train_net(tn_train *t)
{
    return train_app(t) ? t->net : NULL;
}

tn_data *tn_train_data(tn_train *t)
{
    return train_app(t) ? t->data : NULL;
}

tn_data *tn_train_valid(tn_train *t)
{
    return train_app(t) ? t->valid : NULL;
}

tn_trainer *tn_train_trainer(tn_train *t)
{
    return train_app(t) ? t->trainer : NULL;
}
