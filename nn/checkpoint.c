/*
 * Checkpoints of a training. Arrays: parameters under their structural names ("0.weight"), states of the
 * optimizer ("state:0:0.weight"). JSON: where the training stands, and the configuration that a resumed one
 * must share.
 */
#include "train.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FORMAT 1 /* raise it when a reader of the old one would be wrong */

/* What decides the weights. Epochs count where the schedule looks at the end. */
static json_t *config_json(tn_app *app, tn_train *t)
{
    const bool cosine = !strcmp(t->o.schedule, "cosine");
    json_t *c;

    if (!*t->data_hash && !tn_data_sha256(t->data, t->data_hash))
        return NULL;
    c = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:s}", "model",
        t->model, "data", t->data_name, "data_sha256", t->data_hash, "schedule", t->o.schedule, "epochs",
        (json_int_t)(cosine ? t->o.epochs : 0), "batch", (json_int_t)t->o.batch, "seed", (json_int_t)t->seed,
        "shuffle", (int)t->shuffle, "optimizer", t->o.optimizer, "lr", t->o.lr, "momentum", t->o.momentum,
        "wd", t->o.wd, "clip", t->o.clip, "clip_norm", t->o.clip_norm, "warmup", t->o.warmup,
        "schedule_factor", t->o.schedule_factor, "schedule_every", t->o.schedule_every, "config_hash",
        t->config_hash ? t->config_hash : "");
    if (c && t->net->graph_file) /* the file may not have changed */
        (void)json_object_set_new(c, "graph", json_string(t->net->graph_hash));
    if (!c)
        (void)tnn_no_memory(app);
    return c;
}

static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *meter_json(tn_meter *m)
{
    double sum = 0;
    int64_t count = 0;

    return tnn_meter_get(m, &sum, &count) ? NULL : json_pack("[o, I]", number(sum), (json_int_t)count);
}

static json_t *metrics_json(tn_train *t)
{
    json_t *list = json_array();

    for (size_t i = 0; i < tnn_fit_metrics(t->fit); i++) {
        double train, valid;
        tn_meter *meter = NULL;

        (void)tnn_fit_metric(t->fit, i, &train, &valid, &meter);
        (void)json_array_append_new(list, meter_json(meter));
    }
    return list;
}

static char *state_text(tn_app *app, tn_train *t)
{
    uint64_t seed = 0, position = 0;
    int64_t epoch = 0, index = 0;
    json_t *config, *root;
    char *text = NULL;

    if (tnn_check(app, tn_random_save(app->ctx, NULL, &seed, &position), "%s", "") ||
        !(config = config_json(app, t)))
        return NULL;
    tn_data_tell(t->data, &epoch, &index);
    index = t->own_batches == t->batches ? index : t->at;
    root = json_pack("{s:s, s:i, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "kind",
                     "tenon training", "format", FORMAT, "step", (json_int_t)tn_trainer_steps(t->trainer),
                     "epoch", (json_int_t)epoch, "index", (json_int_t)index, "random_seed", (json_int_t)seed,
                     "random_position", (json_int_t)position, "loss", meter_json(t->loss), "accuracy",
                     meter_json(t->accuracy), "valid_loss", number(t->valid_loss), "valid_accuracy",
                     number(t->valid_accuracy), "best_accuracy", number(t->best), "config", config);
    if (t->fit)
        (void)json_object_set_new(root, "metrics", metrics_json(t));
    (void)json_object_set_new(root, "best_value", number(t->best_value));
    (void)json_object_set_new(root, "best_epoch", json_integer((json_int_t)t->best_epoch));
    (void)json_object_set_new(root, "watched", number(t->watched));
    (void)json_object_set_new(root, "waited", json_integer((json_int_t)t->waited));
    if (!root || !(text = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(17))))
        (void)tnn_no_memory(app);
    json_decref(root);
    return text;
}

static tn_status params_add(tn_app *app, tn_train *t, tn_params *params)
{
    if (tnn_net_collect(t->net))
        return app->status;
    for (size_t i = 0; i < t->net->param_count; i++) {
        const tnn_param *p = t->net->params[i];

        if (tnn_check(app, tn_params_add(params, tnn_param_name(t->net, i), p->array), "checkpoint"))
            return app->status;
    }
    return tnn_trainer_export(t->trainer, params);
}

tn_status tnn_train_checkpoint(tn_train *t)
{
    tn_app *app = t->object.app;
    tn_params *params = NULL;
    char *text = NULL, *path = NULL, *kept;

    if (!tnn_check(app, tn_params_create(&params), "checkpoint") && !params_add(app, t, params) &&
        (text = state_text(app, t)) &&
        !tnn_check(app, tn_checkpoint_save(t->folder, text, params, (uint32_t)t->o.checkpoint_keep, &path),
                   "checkpoint in %s", t->folder) &&
        (kept = tnn_strdup(app, path))) {
        free(t->checkpoint);
        t->checkpoint = kept;
    }
    tn_free(path);
    free(text);
    tn_params_destroy(params);
    return app->status;
}

/* ---- going back ---- */

static void epochs_say(tn_app *app, const tn_train *t, const json_t *root, int64_t before)
{
    if ((int64_t)json_integer_value(json_object_get(root, "step")) < t->steps)
        tnn_warn(
            app,
            "the run was begun for %lld epochs and is for %lld now: the cosine schedule is another one from "
            "here on, and the numbers are not those of an unbroken run",
            (long long)before, (long long)t->o.epochs);
}

static tn_status config_compare(tn_app *app, tn_train *t, const json_t *root, const char *path)
{
    json_t *wanted = config_json(app, t), *have = json_object_get(root, "config"), *value;
    const char *key;

    if (!wanted)
        return app->status;
    json_object_foreach(wanted, key, value)
    {
        const json_t *other = json_object_get(have, key);
        char *now, *then;

        if (json_equal(value, (json_t *)(uintptr_t)other) || (t->rank && !strcmp(key, "data_sha256")))
            continue; /* it is worker 0's, whose part of the data is another one */
        if (!strcmp(key, "epochs") && json_is_integer(other)) { /* more, or fewer: asked for */
            epochs_say(app, t, root, (int64_t)json_integer_value(other));
            continue;
        }
        if (!strcmp(key, "data_sha256")) {
            (void)tnn_fail(
                app, TN_E_ARG,
                "%s was made when %s held other samples: put the old ones back, or begin a new run", path,
                t->data_name);
            break;
        }
        now = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        then = other ? json_dumps(other, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) : NULL;
        (void)tnn_fail(app, TN_E_ARG,
                       "%s was made with %s %s, now it is %s: a resumed training must be configured "
                       "as it was begun",
                       path, key, then ? then : "unknown", now ? now : "?");
        free(now);
        free(then);
        break;
    }
    json_decref(wanted);
    return app->status;
}

static double real_or_nan(const json_t *value)
{
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void meter_back(tn_meter *m, const json_t *state)
{
    if (json_array_size(state) == 2)
        tnn_meter_set(m, real_or_nan(json_array_get(state, 0)),
                      (int64_t)json_integer_value(json_array_get(state, 1)));
}

static tn_status state_take(tn_app *app, tn_train *t, const json_t *root, const tn_params *params,
                            const char *path)
{
    const int64_t step = (int64_t)json_integer_value(json_object_get(root, "step"));
    const int64_t epoch = (int64_t)json_integer_value(json_object_get(root, "epoch"));
    const int64_t index = (int64_t)json_integer_value(json_object_get(root, "index"));

    if (step < 0 || epoch < 0 || index < 0 || index > t->batches || epoch > step ||
        epoch * t->batches + index != step)
        return tnn_fail(app, TN_E_FORMAT, "%s: step %lld is not batch %lld of epoch %lld", path,
                        (long long)step, (long long)index, (long long)epoch);
    if (step > t->steps)
        return tnn_fail(
            app, TN_E_ARG,
            "%s has step %lld, but a training of epochs=%lld ends with step %lld: ask for more epochs", path,
            (long long)step, (long long)t->o.epochs, (long long)t->steps);
    if (tnn_net_take(t->net, params, path) || tnn_trainer_import(t->trainer, params, step))
        return app->status;
    tnn_job_seek(t, epoch, index);
    t->batch = index;
    t->epochs_done = index == t->batches ? epoch + 1 : epoch;
    t->resumed_step = t->saved_step = step;
    meter_back(t->loss, json_object_get(root, "loss"));
    meter_back(t->accuracy, json_object_get(root, "accuracy"));
    for (size_t i = 0; i < tnn_fit_metrics(t->fit); i++) {
        double train, valid;
        tn_meter *meter = NULL;

        (void)tnn_fit_metric(t->fit, i, &train, &valid, &meter);
        meter_back(meter, json_array_get(json_object_get(root, "metrics"), i));
    }
    t->valid_loss = real_or_nan(json_object_get(root, "valid_loss"));
    t->valid_accuracy = real_or_nan(json_object_get(root, "valid_accuracy"));
    t->best = real_or_nan(json_object_get(root, "best_accuracy"));
    t->best_value = real_or_nan(json_object_get(root, "best_value"));
    t->best_epoch = (int64_t)json_integer_value(json_object_get(root, "best_epoch"));
    t->watched = real_or_nan(json_object_get(root, "watched"));
    t->waited = (int64_t)json_integer_value(json_object_get(root, "waited"));
    t->best_saved = t->best_file && t->best_epoch > 0 && !access(t->best_file, F_OK);
    return tnn_check(
        app,
        tn_random_restore(app->ctx, NULL, (uint64_t)json_integer_value(json_object_get(root, "random_seed")),
                          (uint64_t)json_integer_value(json_object_get(root, "random_position"))),
        "%s", path);
}

/* A line for each newer file that was passed over: which one, and why. */
static void skipped_say(tn_app *app, const tn_checkpoint *c)
{
    for (const char *line = tn_checkpoint_skipped(c), *end; (end = strchr(line, '\n')); line = end + 1)
        tnn_warn(app, "%.*s; %.150s is used instead", (int)(end - line < 300 ? end - line : 300), line,
                 tn_checkpoint_path(c));
}

tn_status tnn_train_resume(tn_train *t)
{
    tn_app *app = t->object.app;
    tn_checkpoint *c = NULL;
    json_t *root = NULL;
    const char *path, *kind;

    if (!t->folder)
        return tnn_fail(app, TN_E_ARG, "a training without a folder for checkpoints cannot be resumed");
    if (tnn_check(app, tn_checkpoint_load(app->ctx, t->folder, NULL, &c), "resume"))
        return app->status;
    skipped_say(app, c);
    path = tn_checkpoint_path(c);
    root = json_loads(tn_checkpoint_json(c), 0, NULL);
    kind = json_string_value(json_object_get(root, "kind"));
    if (!kind || strcmp(kind, "tenon training"))
        (void)tnn_fail(app, TN_E_FORMAT, "%s is no checkpoint of a training", path);
    else if (json_integer_value(json_object_get(root, "format")) != FORMAT)
        (void)tnn_fail(app, TN_E_FORMAT, "%s has format %lld, this release reads %d", path,
                       (long long)json_integer_value(json_object_get(root, "format")), FORMAT);
    else if (!config_compare(app, t, root, path) && !state_take(app, t, root, tn_checkpoint_params(c), path))
        t->checkpoint = tnn_strdup(app, path);
    json_decref(root);
    tn_checkpoint_destroy(c);
    return app->status;
}
