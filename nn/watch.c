/*
 * What a training watches: numbers that are finite, the best epoch so far, whether it is still getting
 * better.
 *
 * Losses are looked at when they are waited for anyway, a few steps late, but always before anything is
 * written; and what is written has finite weights. So a checkpoint that is there is a good one. What decides
 * about the end (best values, epochs without a better one) is in the checkpoint.
 */
#include "train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXPLODED 20 /* times the first loss */
#define ROSE 1.5    /* times the first loss, and that of guessing */

static const char *const early_kinds[] = {"none", "val_loss", "val_accuracy", NULL};
static const char *const nan_kinds[] = {"stop", "ignore", NULL};

tn_status tnn_watch_options(tn_app *app, tn_train *t)
{
    tn_train_options *o = &t->o;
    double delta = o->min_delta;

    o->early_stop = o->early_stop ? o->early_stop : tn_ctx_option(app->ctx, "train.early_stop");
    o->on_nan = o->on_nan ? o->on_nan : tn_ctx_option(app->ctx, "train.on_nan");
    if (!o->patience)
        (void)tnn_check(app, tn_ctx_option_int(app->ctx, "train.patience", &o->patience), "%s", "");
    if (delta == 0)
        (void)tnn_check(app, tn_ctx_option_float(app->ctx, "train.min_delta", &delta), "%s", "");
    if (app->status)
        return app->status;
    if (!tnn_one_of(o->early_stop, early_kinds))
        return tnn_unknown(app, "early_stop", o->early_stop ? o->early_stop : "", early_kinds);
    if (!tnn_one_of(o->on_nan, nan_kinds))
        return tnn_unknown(app, "on_nan", o->on_nan ? o->on_nan : "", nan_kinds);
    if (o->patience < 1 || !(delta >= 0))
        return tnn_fail(app, TN_E_ARG, "early_stop with a patience of %lld epochs and a min_delta of %g",
                        (long long)o->patience, delta);
    t->early = !strcmp(o->early_stop, "none")       ? TNN_EARLY_NONE
               : !strcmp(o->early_stop, "val_loss") ? TNN_EARLY_LOSS
                                                    : TNN_EARLY_ACCURACY;
    t->nan_stops = !strcmp(o->on_nan, "stop");
    t->min_delta = delta > 0 ? delta : 0;
    o->early_stop = o->on_nan = NULL; /* the caller's */
    return TN_OK;
}

/* ---- finite, and not rising ---- */

#define LOWER_RATE "take a lower learning rate (--lr, train.lr), or limit the gradients (train.clip_norm = 1)"
#define OTHER_RATE "take another learning rate (--lr, train.lr), or more epochs (--epochs, train.epochs)"

static int64_t epoch_of(const tn_train *t, int64_t step)
{
    return (step - 1) / t->batches + 1;
}

static tn_status diverged(tn_app *app, const tn_train *t, int64_t step, const char *what)
{
    char good[1024] = "no checkpoint was written before";

    if (t->checkpoint)
        (void)snprintf(good, sizeof good, "the last good checkpoint is %.900s, of step %lld", t->checkpoint,
                       (long long)t->saved_step);
    return tnn_fail(
        app, TN_E_STATE,
        "step %lld (epoch %lld, lr %g): %s: the training has diverged; %s; take a lower learning rate "
        "(--lr, train.lr), limit the gradients (train.clip_norm = 1), or look for damaged samples; "
        "train.on_nan = ignore goes on all the same",
        (long long)step, (long long)epoch_of(t, step), t->lr, what, good);
}

/* A loss so far above the first one that nothing comes back from there. Converged nets begin near 0. */
static bool has_exploded(const tn_train *t, double loss)
{
    return t->first_loss == t->first_loss && loss > EXPLODED * fmax(t->first_loss, 1);
}

/* The mean of a batch: the first is remembered, one that has exploded is told of once. */
static void mean_check(tn_app *app, tn_train *t, double mean, int64_t step)
{
    t->mean_loss = mean;
    if (isnan(t->first_loss))
        t->first_loss = mean;
    if (t->diverged_epoch || !has_exploded(t, mean))
        return;
    t->diverged_epoch = epoch_of(t, step);
    tnn_warn(app,
             "step %lld (epoch %lld): the loss is %.4g, and was %.4g at the first step: the training "
             "diverges; " LOWER_RATE,
             (long long)step, (long long)t->diverged_epoch, mean, t->first_loss);
}

static tn_status loss_check(tn_app *app, tn_train *t, tn_array *loss, int64_t step)
{
    const size_t count = tn_array_count(loss);
    double sum = 0;
    char what[96];

    if (count > t->loss_room) {
        float *grown = realloc(t->losses, count * sizeof *grown);

        if (!grown)
            return tnn_no_memory(app);
        t->losses = grown;
        t->loss_room = count;
    }
    if (!tn_app_read(app, loss, count, t->losses))
        return app->status;
    for (size_t i = 0; i < count; i++) {
        sum += (double)t->losses[i];
        if (!isfinite(t->losses[i])) {
            (void)snprintf(what, sizeof what, "the loss of sample %zu of the batch is %g", i,
                           (double)t->losses[i]);
            return diverged(app, t, step, what);
        }
    }
    if (count)
        mean_check(app, t, sum / (double)count, step);
    return TN_OK;
}

/* The loss of one that has learned nothing, NaN: not known. It takes every class for as likely, ln(classes);
 * of numbers it says the mean. */
static double guess_of(const tn_train *t)
{
    return t->fit ? tnn_fit_guess(t) : log(fmax(2, (double)tn_data_classes(t->data)));
}

/* One warning for a training whose loss, over an epoch, is well above that of the first step and of guessing
 * (it may come down again, but to a poor net), or whose last epoch, planned or by early_stop, is no better
 * than guessing. */
void tnn_watch_rise(tn_train *t)
{
    tn_app *app = t->object.app;
    const double guess = guess_of(t), first = t->first_loss, loss = t->last_loss;
    const int64_t step = tn_trainer_steps(t->trainer);
    const bool rose = loss > ROSE * guess && loss > ROSE * first;
    const bool ends = step == t->steps || tnn_watch_ends(t);

    if (app->status || !t->nan_stops || t->diverged_epoch || isnan(first))
        return;
    if (!rose && !(ends && t->o.epochs > 1 && loss > guess))
        return;
    t->diverged_epoch = epoch_of(t, step);
    tnn_warn(app, "epoch %lld: the loss is %.4g, and was %.4g at the first step; guessing has %.4g: the %s",
             (long long)t->diverged_epoch, loss, first, guess,
             rose ? "training diverges; " LOWER_RATE : "net is no better than that; " OTHER_RATE);
}

/* An error only of classes: other losses may be large and right. */
void tnn_watch_loss(tn_train *t)
{
    tn_app *app = t->object.app;
    char what[96];

    if (app->status || !t->nan_stops)
        return;
    if (t->fit || !has_exploded(t, t->mean_loss) || !has_exploded(t, t->last_loss))
        return;
    (void)snprintf(what, sizeof what, "the loss is %.4g in this epoch, and was %.4g at the first step",
                   t->last_loss, t->first_loss);
    (void)diverged(app, t, tn_trainer_steps(t->trainer), what);
}

tn_status tnn_watch_slot(tn_train *t, size_t slot)
{
    tn_app *app = t->object.app;
    tn_array *loss = t->ahead[slot];

    t->ahead[slot] = NULL;
    if (loss && !app->status) {
        if (t->nan_stops)
            (void)loss_check(app, t, loss, t->ahead_step[slot]);
        else
            (void)tnn_check(app, tn_array_wait(loss), "%s", "");
    }
    tn_array_release(loss);
    return app->status;
}

static tn_status weight_check(tn_app *app, tn_train *t, const tnn_param *p)
{
    const size_t count = p->array ? tn_array_count(p->array) : 0;
    float *values = tnn_alloc(app, count, sizeof *values);
    char what[256];

    if (values && tn_app_read(app, p->array, count, values))
        for (size_t i = 0; i < count && !app->status; i++)
            if (!isfinite(values[i])) {
                (void)snprintf(what, sizeof what, "element %zu of parameter %.128s is %g", i, p->full,
                               (double)values[i]);
                (void)diverged(app, t, tn_trainer_steps(t->trainer), what);
            }
    free(values);
    return app->status;
}

tn_status tnn_watch_finite(tn_train *t)
{
    tn_app *app = t->object.app;
    const int64_t steps = tn_trainer_steps(t->trainer);

    for (int64_t i = 0; i < TNN_STEPS_AHEAD; i++) /* the oldest first */
        if (tnn_watch_slot(t, (size_t)((steps + i) % TNN_STEPS_AHEAD)))
            return app->status;
    if (!t->nan_stops || tnn_net_collect(t->net))
        return app->status;
    for (size_t i = 0; i < t->net->param_count && !app->status; i++)
        (void)weight_check(app, t, t->net->params[i]);
    return app->status;
}

/* ---- the best epoch, and the end ---- */

static void best_save(tn_app *app, tn_train *t)
{
    tn_params *params = NULL;
    tn_symbol *symbol = NULL;
    char *json = NULL;

    if (!t->best_file || t->rank || tnn_watch_finite(t) || tnn_net_params(t->net, true, &params))
        return;
    if (!t->best_saved && (json = tnn_format(app, "%s-symbol.json", t->best_prefix)) &&
        !(t->net->graph_file ? TN_OK : tnn_net_symbol(t->net, &symbol)))
        (void)tnn_symbol_save(app, symbol ? symbol : t->net->graph_file, json);
    if (!app->status && !tnn_check(app, tn_params_save(params, t->best_file), "%s", t->best_file))
        t->best_saved = true;
    tn_symbol_release(symbol);
    tn_params_destroy(params);
    free(json);
}

/* What decides: the accuracy, or the first metric; else the loss. */
static bool watches_loss(const tn_train *t)
{
    return t->early == TNN_EARLY_LOSS || (t->early == TNN_EARLY_NONE && t->fit && !tnn_fit_metrics(t->fit));
}

static bool is_better(const tn_train *t, double value, double than, double delta)
{
    if (!isfinite(value))
        return false;
    if (!isfinite(than))
        return true;
    return watches_loss(t) ? value < than - delta : value > than + delta;
}

void tnn_watch_epoch(tn_train *t)
{
    tn_app *app = t->object.app;
    const double value = watches_loss(t) ? t->valid_loss : t->valid_accuracy;

    if (!t->valid || app->status)
        return;
    if (is_better(t, value, t->best_value, 0)) {
        t->best_value = value;
        t->best_epoch = t->epochs_done;
        best_save(app, t);
    }
    if (t->early == TNN_EARLY_NONE)
        return;
    if (is_better(t, value, t->watched, t->min_delta)) {
        t->watched = value;
        t->waited = 0;
    } else {
        t->waited++;
    }
}

bool tnn_watch_ends(const tn_train *t)
{
    return t->early != TNN_EARLY_NONE && t->waited >= t->o.patience;
}
