/*
 * Optimizers: a step is one call for all parameters of a device where the optimizer has an operator for many
 * of them, at most optimizer.aggregate_num in a call; else a call for each parameter. Each call has a site of
 * its own, so that only run-time attributes change from step to step.
 */
#include "trainer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const stores[] = {
    "local", "device", "nccl", "mpi", "dist_sync", "dist_async", "dist_sync_device", "dist_async_device",
    NULL};
static const char *const compressions[] = {"none", "1bit", "2bit", NULL};
static const char *const schedules[] = {"constant", "factor", "multifactor", "poly", "cosine", NULL};

#define INPUTS_MAX 4096              /* of one call: tn_invoke */
#define STEPS_MAX ((int64_t)1 << 60) /* of a file: they are counted on */

/* ---- making ---- */

static void slots_clear(tn_trainer *t)
{
    for (size_t i = 0; i < t->update_count; i++) {
        tn_site_release(t->updates[i].site);
        free(t->updates[i].rates);
        free(t->updates[i].arrays);
    }
    free(t->updates);
    free(t->order);
    t->updates = NULL;
    t->order = NULL;
    t->update_count = 0;
    tnn_calls_clear(&t->calls);
    for (size_t i = 0; i < t->slot_count; i++) {
        for (size_t k = 0; k <= TNN_RULE_STATES; k++)
            tn_array_release(t->slots[i].states[k]);
        tn_array_release(t->slots[i].grad);
    }
    tnn_store_clear(t);
    free(t->slots);
    t->slots = NULL;
    t->slot_count = 0;
}

static void trainer_destroy(tnn_object *object)
{
    tn_trainer *t = (tn_trainer *)object;

    slots_clear(t);
    free(t);
}

tn_app *tnn_trainer_app(const tn_trainer *t)
{
    return t && tnn_ok(t->object.app) ? t->object.app : NULL;
}

static bool between(double x, double least, double most)
{
    return x >= least && x <= most; /* not for NaN */
}

static tn_status schedule_check(tn_app *app, const tn_trainer_options *o)
{
    const char *file = o->file ? o->file : "?";

    if ((!strcmp(o->schedule, "cosine") || !strcmp(o->schedule, "poly")) && o->steps < 1)
        return tnn_fail(app, TN_E_ARG, "trainer at %s:%d: schedule %s needs .steps", file, o->line,
                        o->schedule);
    if (!strcmp(o->schedule, "multifactor") && o->milestones[0] < 1)
        return tnn_fail(app, TN_E_ARG, "trainer at %s:%d: schedule multifactor needs .milestones", file,
                        o->line);
    for (size_t i = 1; i < TNN_MILESTONES && o->milestones[i]; i++)
        if (o->milestones[i] <= o->milestones[i - 1])
            return tnn_fail(app, TN_E_ARG, "trainer at %s:%d: .milestones are not rising, at %lld", file,
                            o->line, (long long)o->milestones[i]);
    return TN_OK;
}

static tn_status numbers_check(tn_app *app, const tn_trainer_options *o)
{
    const struct {
        const char *name;
        double value, least, most;
    } rows[] = {
        {"lr", o->lr, 0, 1e6},
        {"momentum", o->momentum, 0, 1},
        {"wd", o->wd, 0, 1e6},
        {"beta1", o->beta1, 0, 1},
        {"beta2", o->beta2, 0, 1},
        {"epsilon", o->epsilon, 0, 1},
        {"gamma1", o->gamma1, 0, 1},
        {"gamma2", o->gamma2, 0, 1},
        {"clip_weights", o->clip_weights, 0, 1e30},
        {"wd_lh", o->wd_lh, 0, 1e6},
        {"rho", o->rho, 0, 1},
        {"schedule_decay", o->schedule_decay, 0, 1e6},
        {"lamda", o->lamda, 0, 1e6},
        {"lamda1", o->lamda1, 0, 1e6},
        {"beta", o->beta, 0, 1e6},
        {"eta", o->eta, 0, 1e6},
        {"lower_bound", o->lower_bound, 0, 1e30},
        {"upper_bound", o->upper_bound, 0, 1e30},
        {"batch_scale", (double)o->batch_scale, 0, 1e9},
        {"warmup_epochs", (double)o->warmup_epochs, 0, 1e9},
        {"epoch_updates", (double)o->epoch_updates, 0, 1e9},
        {"power", o->power, 0, 1e3},
        {"clip", o->clip, 0, 1e30},
        {"clip_norm", o->clip_norm, 0, 1e30},
        {"lr_begin", o->lr_begin, 0, 1e6},
        {"lr_end", o->lr_end, 0, 1e6},
        {"factor", o->factor, 0, 1},
        {"steps", (double)o->steps, 0, 1e18},
        {"warmup", (double)o->warmup, 0, 1e18},
        {"every", (double)o->every, 0, 1e18},
        {"update_on_kvstore", o->update_on_kvstore, -1, 1},
        {"compression_threshold", o->compression_threshold, -1e30, 1e30},
        {"rescale_grad", o->rescale_grad, -1e30, 1e30},
        {"begin_num_update", (double)o->begin_num_update, 0, 1e18},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!between(rows[i].value, rows[i].least, rows[i].most))
            return tnn_fail(app, TN_E_ARG, "trainer at %s:%d: .%s is %g, %g to %g is allowed",
                            o->file ? o->file : "?", o->line, rows[i].name, rows[i].value, rows[i].least,
                            rows[i].most);
    return schedule_check(app, o);
}

static const char *kept(const char *text, const char *const *names)
{
    while (*names && strcmp(text, *names))
        names++;
    return *names;
}

static tn_status options_set(tn_app *app, tn_trainer *t)
{
    tn_trainer_options *o = &t->o;

    if (o->kvstore && !tnn_one_of(o->kvstore, stores))
        return tnn_unknown(app, "type of a store", o->kvstore, stores);
    if (o->compression && !tnn_one_of(o->compression, compressions))
        return tnn_unknown(app, "compression", o->compression, compressions);
    o->kvstore = o->kvstore ? kept(o->kvstore, stores) : NULL;
    o->compression = o->compression ? kept(o->compression, compressions) : NULL;
    o->optimizer = o->optimizer ? o->optimizer : "sgd";
    o->schedule = o->schedule ? o->schedule : "constant";
    if (!tnn_one_of(o->schedule, schedules))
        return tnn_unknown(app, "schedule", o->schedule, schedules);
    o->schedule = kept(o->schedule, schedules);
    if (numbers_check(app, o) || !(t->rule = tnn_rule_of(app, o)))
        return app->status;
    o->file = NULL;
    t->steps = o->begin_num_update;
    return TN_OK;
}

tn_trainer *tn_trainer_new_(tn_net *net, const tn_trainer_options *options)
{
    tn_app *app = tnn_net_app(net);
    tn_trainer *t;

    if (!app)
        return NULL;
    if (net->model) {
        (void)tnn_fail(app, TN_E_UNSUPPORTED,
                       "net %s was loaded for inference: it cannot be trained; "
                       "tn_net_from_symbol() makes one that can",
                       net->path);
        return NULL;
    }
    if (!(t = tnn_alloc(app, 1, sizeof *t)))
        return NULL;
    tnn_object_add(app, &t->object, trainer_destroy);
    t->net = net;
    tnn_options_copy(&t->o, sizeof t->o, options);
    return options_set(app, t) || tnn_store_open(t) ? NULL : t;
}

/* ---- states ---- */

/* "(0,0,…)": the rates before the first step. */
static char *zeros_text(tn_app *app, size_t count)
{
    char *text = tnn_alloc(app, 1, 2 * count + 2);

    for (size_t i = 0; text && i < count; i++)
        memcpy(text + 2 * i, i ? ",0" : "(0", 2);
    if (text)
        memcpy(text + 2 * count, ")", 2);
    return text;
}

static tn_status site_make(tn_app *app, tn_trainer *t, update *u)
{
    const char *const lr = u->many ? "lrs" : "lr", *const wd = u->many ? "wds" : "wd";
    char numbers[TNN_RULE_ATTRS][32], count[24], clip[32],
        *zeros = u->many ? zeros_text(app, u->count) : NULL;
    const char *rates = u->many ? zeros : "0";
    const char *attrs[9 + 2 * TNN_RULE_ATTRS] = {lr,   rates,         wd,   rates, "clip_gradient",
                                                 clip, "num_weights", count};
    size_t n = u->many ? 8 : 6;
    tn_status st;

    if (!rates)
        return app->status;
    tnn_number_text(clip, 17, t->o.clip > 0 ? t->o.clip : -1);
    (void)snprintf(count, sizeof count, "%zu", u->count);
    n += tnn_rule_attrs(t->rule, &t->o, numbers, attrs + n);
    attrs[n] = NULL;
    u->rescale_now = 1;
    if (!(st = tn_site_create(app->ctx, u->many ? t->rule->many : t->rule->op, attrs, &u->site)) &&
        !(st = tn_site_attr(u->site, lr, &u->lr)) && !(st = tn_site_attr(u->site, wd, &u->wd)))
        st = tn_site_attr(u->site, "rescale_grad", &u->rescale);
    free(zeros);
    return tnn_check(app, st, "optimizer %s", t->o.optimizer);
}

/* Number `i` of those that a call updates. */
static slot *slot_of(const tn_trainer *t, const update *u, size_t i)
{
    return &t->slots[t->order[u->first + i]];
}

/* Whether one call may update both. */
static bool go_together(const slot *a, const slot *b)
{
    return !a->param->rows && !b->param->rows && a->half == b->half && a->param->dtype == b->param->dtype &&
           tn_array_device(a->param->array) == tn_array_device(b->param->array);
}

/* Slot `from` and those behind it that may go with it and are in no call yet, up to `most` of them. */
static void update_fill(tn_trainer *t, update *u, size_t from, size_t most, bool *taken)
{
    for (size_t i = from; i < t->slot_count && u->count < most; i++)
        if (i == from || (!taken[i] && go_together(&t->slots[from], &t->slots[i]))) {
            taken[i] = true;
            t->order[u->first + u->count++] = i;
        }
}

/* Parameters of one kind on one device, as many as a call takes, wherever they lie among the others. */
static tn_status updates_make(tn_app *app, tn_trainer *t)
{
    const size_t each = 2 + t->rule->states;
    int64_t most = 1;
    tn_status st = TN_OK;
    bool *taken;

    if (tnn_check(app, tn_ctx_option_int(app->ctx, "optimizer.aggregate_num", &most), "trainer") ||
        !(t->updates = tnn_alloc(app, t->slot_count, sizeof *t->updates)) ||
        !(t->order = tnn_alloc(app, t->slot_count, sizeof *t->order)) ||
        !(taken = tnn_alloc(app, t->slot_count, sizeof *taken)))
        return app->status;
    if (t->o.ignore_stale_grad) /* each may be left out */
        most = 1;
    if (most > (int64_t)(INPUTS_MAX / each))
        most = (int64_t)(INPUTS_MAX / each);
    for (size_t i = 0, done = 0; i < t->slot_count && !st; i++) {
        update *u = &t->updates[t->update_count];

        if (taken[i])
            continue;
        t->update_count++;
        *u = (update){.first = done, .many = t->rule->many && most > 1 && !t->slots[i].param->rows};
        update_fill(t, u, i, u->many ? (size_t)most : 1, taken);
        done += u->count;
        if (!(u->rates = tnn_alloc(app, 2 * u->count, sizeof *u->rates)) ||
            !(u->arrays = tnn_alloc(app, (each + 1) * u->count, sizeof(tn_array *))) ||
            (t->rule->op && site_make(app, t, u)))
            st = app->status;
    }
    free(taken);
    return st;
}

static tn_status slot_make(tn_app *app, tn_trainer *t, slot *s)
{
    const int64_t rows[] = {s->param->shape[0], 1}, *shape = t->rule->rows ? rows : s->param->shape;
    const tn_device *device = tn_array_device(s->param->array);
    const int32_t dtype = s->half ? TN_F32 : s->param->dtype;
    tn_status st = TN_OK;

    if (t->rule->rows && (s->param->ndim != 2 || t->o.wd != 0))
        return tnn_fail(app, TN_E_UNSUPPORTED,
                        "optimizer %s takes matrices and no weight decay: %s has %d dimensions, .wd is %g",
                        t->rule->name, s->param->full, s->param->ndim, t->o.wd);
    for (size_t k = 0; !st && k < t->rule->states && !t->on_store; k++)
        if (!(st = tn_array_zeros(app->ctx, dtype, s->param->ndim, shape, device, &s->states[k])) &&
            t->rule->first)
            st = tn_array_copy(s->param->array, s->states[k]);
    if (!st && s->half && !s->param->rows)
        st = tn_array_zeros(app->ctx, dtype, s->param->ndim, s->param->shape, device, &s->grad);
    if (!st && s->half)
        st = tn_array_cast(app->ctx, s->param->array, dtype, &s->states[t->rule->states]);
    s->version = s->param->version;
    return tnn_check(app, st, "optimizer %s", t->o.optimizer);
}

static bool is_half(const tnn_param *p)
{
    return p->dtype == TN_F16 || p->dtype == TN_BF16;
}

uint32_t tnn_states_of(const tn_trainer *t, const slot *s)
{
    return t->rule->states + s->half;
}

/* The store counts on from .begin_num_update. */
static tn_status store_begin(tn_app *app, tn_trainer *t)
{
    if (t->far)
        return tnn_fail(app, TN_E_UNSUPPORTED,
                        "the optimizer is that of other processes: there is no .begin_num_update");
    for (size_t i = 0; i < t->slot_count; i++)
        if (tnn_store_return(t, i))
            return app->status;
    return TN_OK;
}

/* In this order: whether the store updates decides where the states are. */
static tn_status slots_fill(tn_app *app, tn_trainer *t)
{
    if (tnn_store_make(t))
        return app->status;
    for (size_t i = 0; i < t->slot_count; i++)
        if (t->on_store ? !t->far && tnn_store_state(t, i) : slot_make(app, t, &t->slots[i]))
            return app->status;
    return t->on_store ? TN_OK : updates_make(app, t);
}

/* Which parameters are trained, as at the first step. */
static tn_status same_trained(tn_app *app, const tn_trainer *t)
{
    const tn_net *net = t->net;
    size_t trained = 0;

    for (size_t i = 0; i < net->param_count; i++)
        if (!net->params[i]->fixed &&
            (trained == t->slot_count || t->slots[trained++].param != net->params[i]))
            return tnn_fail(app, TN_E_STATE, "parameter %s was not trained at its trainer's first step",
                            net->params[i]->full);
    return trained == t->slot_count
               ? TN_OK
               : tnn_fail(app, TN_E_STATE, "parameter %s was trained at its trainer's first step",
                          t->slots[trained].param->full);
}

tn_status tnn_trainer_ready(tn_trainer *t)
{
    tn_app *app = t->object.app;
    tn_net *net = t->net;

    if (tnn_net_collect(net))
        return app->status;
    if (t->made && t->param_count != net->param_count)
        return tnn_fail(app, TN_E_STATE, "net %s has got parameters since its trainer made the first step",
                        net->path);
    if (t->made)
        return same_trained(app, t);
    if (tnn_net_valued(net))
        return app->status;
    if (!(t->slots = tnn_alloc(app, net->param_count, sizeof *t->slots)))
        return TN_E_NOMEM;
    for (size_t i = 0; i < net->param_count; i++) {
        if (net->params[i]->fixed)
            continue;
        t->slots[t->slot_count].half = t->o.multi_precision && is_half(net->params[i]);
        t->slots[t->slot_count].param = net->params[i];
        t->slots[t->slot_count++].index = i;
    }
    if (slots_fill(app, t) || (t->on_store && t->steps && store_begin(app, t)) ||
        (t->far && !t->async && tnn_store_rejoin(t))) {
        slots_clear(t);
        return app->status;
    }
    t->param_count = net->param_count;
    t->made = true;
    return TN_OK;
}

int64_t tnn_trainer_state_elements(tn_trainer *t)
{
    int64_t elements = 0;

    for (size_t i = 0; i < t->net->param_count; i++) {
        const tnn_param *p = t->net->params[i];
        int64_t count = p->fixed ? 0 : t->rule->states;

        for (int32_t d = 0; d < (t->rule->rows ? 1 : p->ndim); d++)
            count *= p->shape[d];
        elements += count;
        count = !p->fixed && t->o.multi_precision && is_half(p);
        for (int32_t d = 0; d < p->ndim; d++)
            count *= p->shape[d];
        elements += count;
    }
    return elements;
}

/* ---- a step ---- */

/* Norm of all gradients together, each times `rescale`. Waits for them. */
static tn_status norm_of(tn_app *app, tn_trainer *t, double rescale, double *norm)
{
    double sum = 0;

    for (size_t i = 0; i < t->slot_count; i++) {
        tn_array *grad = tn_array_grad(t->slots[i].param->array);
        double value = 0;

        if (t->slots[i].stale)
            continue;
        if (tnn_check(app, tnn_norm(app, grad, &value), "norm of the gradient of %s",
                      t->slots[i].param->full))
            return app->status;
        sum += value * rescale * value * rescale;
    }
    *norm = sqrt(sum);
    return TN_OK;
}

/* Sets a number, or a list of them, where it is not what the site has. */
static tn_status rates_set(const tn_trainer *t, update *u, bool decays, double base)
{
    double *rates = u->rates + (decays ? u->count : 0);
    const uint32_t attr = decays ? u->wd : u->lr;
    bool same = true;

    for (size_t i = 0; i < u->count; i++) {
        const tnn_param *p = slot_of(t, u, i)->param;
        const double rate = base * (decays ? p->wd_factor : p->lr_factor);

        same = same && rate == rates[i];
        rates[i] = rate;
    }
    if (same)
        return TN_OK;
    return u->many ? tn_site_set_floats(u->site, attr, (uint32_t)u->count, rates)
                   : tn_site_set_float(u->site, attr, *rates);
}

static tn_status rescale_set(update *u, double rescale)
{
    const tn_status st = rescale == u->rescale_now ? TN_OK : tn_site_set_float(u->site, u->rescale, rescale);

    if (!st)
        u->rescale_now = rescale;
    return st;
}

/* Of rows, those that are there: each time another array. */
static tn_status grad_widen(tn_app *app, slot *s)
{
    tn_array *grad = tn_array_grad(s->param->array);
    const tn_op_call call = {.struct_size = TN_SIZE(tn_op_call),
                             .in_count = 1,
                             .op = "Cast",
                             .attrs = (const char *const[]){"dtype", "float32", NULL},
                             .in = &grad};

    if (!s->param->rows)
        return tn_array_copy(grad, s->grad);
    tn_array_release(s->grad);
    s->grad = NULL;
    return tn_invoke_text(app->ctx, &call, 1, &s->grad, NULL);
}

/* Gradients in float32; the copy, where the values were set since. */
static tn_status half_begin(tn_app *app, tn_trainer *t, slot *s)
{
    tn_status st = grad_widen(app, s);

    if (!st && s->version != s->param->version)
        st = tn_array_copy(s->param->array, s->states[t->rule->states]);
    s->version = s->param->version;
    return tnn_check(app, st, "gradient of %s", s->param->full);
}

static tn_array *updated(const tn_trainer *t, const slot *s)
{
    return s->half ? s->states[t->rule->states] : s->param->array;
}

static tn_array *grad_of(const slot *s)
{
    return s->half ? s->grad : tn_array_grad(s->param->array);
}

static tn_status formulas_run(tn_app *app, tn_trainer *t, const slot *s, double lr, double rescale)
{
    const tnn_param *p = s->param;
    const int64_t done = tnn_trainer_updates(t, true);
    const double before = done ? tn_schedule_lr(&t->o, done - 1) : 0;
    const bool corrects = !strcmp(t->rule->name, "lars") && before != 0; /* momentum by how the rate moves */
    tn_array *grad = grad_of(s), *dense = NULL;
    tnn_update u = {.weight = updated(t, s),
                    .grad = grad,
                    .states = s->states,
                    .lr = lr * p->lr_factor,
                    .wd = t->o.wd * p->wd_factor,
                    .rescale = rescale,
                    .momentum = t->o.momentum * (corrects ? lr / before : 1),
                    .adapts = p->role != TNN_BIAS && p->role != TNN_GAMMA && p->role != TNN_BETA,
                    .step = t->steps - s->skipped + 1};

    if (tn_array_storage(grad) != TN_STORAGE_DENSE) {
        if (tnn_check(app, tn_array_to_storage(app->ctx, grad, TN_STORAGE_DENSE, &dense), "gradient of %s",
                      p->full))
            return app->status;
        u.grad = dense;
    }
    (void)tnn_rule_apply(app, t->rule, &t->o, &t->calls, &u);
    tn_array_release(dense);
    return app->status;
}

static tn_status parameters_run(tn_app *app, tn_trainer *t, update *u, double lr, double rescale)
{
    const size_t each = 2 + t->rule->states;
    tn_array **out = u->arrays + each * u->count;
    const char *name = slot_of(t, u, 0)->param->full;
    tn_status st;

    if (t->rule->divides && lr * slot_of(t, u, 0)->param->lr_factor == 0) /* there is one: no form for many */
        return TN_OK;
    if (!t->rule->op)
        return formulas_run(app, t, slot_of(t, u, 0), lr, rescale);
    for (size_t i = 0; i < u->count; i++) {
        const slot *s = slot_of(t, u, i);
        tn_array **in = u->arrays + each * i;

        in[0] = out[i] = updated(t, s);
        in[1] = grad_of(s);
        memcpy(in + 2, s->states, t->rule->states * sizeof *in);
    }
    if (!(st = rates_set(t, u, false, lr)) && !(st = rates_set(t, u, true, t->o.wd)) &&
        !(st = rescale_set(u, rescale)))
        st = tn_invoke(u->site, (uint32_t)(each * u->count), u->arrays, (uint32_t)u->count, out);
    if (st && u->count > 1)
        return tnn_check(app, st, "update of %s and %zu others", name, u->count - 1);
    return tnn_check(app, st, "update of %s", name);
}

/* All of its parameters are updated, or none where a gradient failed. */
static tn_status update_run(tn_app *app, tn_trainer *t, update *u, double lr, double rescale)
{
    const slot *first = slot_of(t, u, 0);

    if (first->stale)
        return TN_OK;
    lr = tnn_rule_lr(t->rule, &t->o, lr, t->steps - first->skipped);
    for (size_t i = 0; i < u->count; i++)
        if (slot_of(t, u, i)->half && half_begin(app, t, slot_of(t, u, i)))
            return app->status;
    if (parameters_run(app, t, u, lr, rescale))
        return app->status;
    for (size_t i = 0; i < u->count; i++) {
        const slot *s = slot_of(t, u, i);

        if (s->half &&
            tnn_check(app, tn_array_copy(updated(t, s), s->param->array), "update of %s", s->param->full))
            return app->status;
    }
    return TN_OK;
}

static bool step_ready(tn_app *app, tn_trainer *t, const char *function, int64_t batch)
{
    if (batch < 1)
        return !tnn_fail(app, TN_E_ARG, "%s: a batch of %lld samples", function, (long long)batch);
    if (tnn_trainer_ready(t))
        return false;
    tn_app_pause(app);
    return true;
}

static double rescale_of(const tn_trainer *t, int64_t batch)
{
    return (t->o.rescale_grad != 0 ? t->o.rescale_grad : 1) / (double)batch;
}

/* Behind the sums, where there are several devices: the first one's values change, and go to the others. */
static tn_status update_all(tn_app *app, tn_trainer *t, int64_t batch)
{
    double lr = tn_schedule_lr(&t->o, tnn_trainer_updates(t, true)), rescale = rescale_of(t, batch), norm = 0;

    if (t->o.clip_norm > 0) {
        if (norm_of(app, t, rescale, &norm))
            return app->status;
        if (norm > t->o.clip_norm)
            rescale *= t->o.clip_norm / norm;
    }
    for (size_t i = 0; i < t->update_count; i++)
        if (update_run(app, t, &t->updates[i], lr, rescale))
            return app->status;
    tnn_stale_done(t);
    return t->kv ? tnn_store_spread(t) : TN_OK;
}

void tn_trainer_step(tn_trainer *t, int64_t batch)
{
    tn_app *app = tnn_trainer_app(t);

    if (!app || !step_ready(app, t, __func__, batch) || tnn_stale_check(t))
        return;
    if (t->on_store && !tnn_store_step(t, tn_schedule_lr(&t->o, t->steps), rescale_of(t, batch)))
        tnn_stale_done(t);
    else if (!t->on_store && (!t->kv || !tnn_store_sum(t)))
        (void)update_all(app, t, batch);
}

/* The two halves of a step, for what is done to the sums between them. */
static bool half_ready(tn_app *app, tn_trainer *t, const char *function, int64_t batch)
{
    if (!step_ready(app, t, function, batch))
        return false;
    return !t->on_store || !tnn_fail(app, TN_E_STATE,
                                     "%s: the store updates the parameters; a trainer with "
                                     ".update_on_kvstore = -1 has the two halves of a step",
                                     function);
}

void tn_trainer_allreduce_grads(tn_trainer *t)
{
    tn_app *app = tnn_trainer_app(t);

    if (app && half_ready(app, t, __func__, 1) && t->kv)
        (void)tnn_store_sum(t);
}

void tn_trainer_update(tn_trainer *t, int64_t batch)
{
    tn_app *app = tnn_trainer_app(t);

    if (app && half_ready(app, t, __func__, batch) && !tnn_stale_check(t))
        (void)update_all(app, t, batch);
}

int64_t tn_trainer_steps(const tn_trainer *t)
{
    return tnn_trainer_app(t) ? t->steps : 0;
}

double tn_trainer_lr(const tn_trainer *t)
{
    return tnn_trainer_app(t) ? tn_schedule_lr(&t->o, tnn_trainer_updates(t, false)) : NAN;
}

void tn_trainer_set_lr(tn_trainer *t, double lr)
{
    tn_app *app = tnn_trainer_app(t);

    if (!app)
        return;
    if (!between(lr, 0, 1e6))
        (void)tnn_fail(app, TN_E_ARG, "tn_trainer_set_lr: %g", lr);
    else
        t->o.lr = lr;
}

/* ---- files ---- */

bool tnn_trainer_far(const tn_trainer *t)
{
    return t->far;
}

int64_t tnn_trainer_together(const tn_trainer *t)
{
    return t->kv && t->far && !t->async ? (int64_t)t->workers : 1;
}

tn_status tnn_trainer_end(tn_trainer *t)
{
    return t->far && t->made ? tnn_store_end(t) : TN_OK;
}

const tn_trainer_options *tnn_trainer_options(const tn_trainer *t)
{
    return &t->o;
}

static char *state_name(tn_trainer *t, const slot *s, size_t k)
{
    if (tnn_net_collect(t->net))
        return NULL;
    return tnn_format(t->object.app, "state:%zu:%s", k, tnn_param_name(t->net, s->index));
}

tn_status tnn_trainer_export(tn_trainer *t, tn_params *params)
{
    tn_app *app = tnn_trainer_app(t);

    if (!app)
        return TN_E_STATE;
    if (tnn_trainer_ready(t))
        return app->status;
    for (size_t i = 0; i < t->slot_count; i++) {
        if (t->far && t->on_store && tnn_store_state(t, i))
            return app->status;
        for (size_t k = 0; k < tnn_states_of(t, &t->slots[i]); k++) {
            char *name = state_name(t, &t->slots[i], k);
            tn_status st = name ? tn_params_add(params, name, t->slots[i].states[k]) : TN_E_NOMEM;

            free(name);
            if (st)
                return tnn_check(app, st, "state of %s", t->slots[i].param->full);
        }
    }
    return TN_OK;
}

static tn_status state_take(tn_app *app, tn_trainer *t, slot *s, size_t k, const tn_params *params)
{
    char *name = state_name(t, s, k);
    tn_array *array = NULL;
    tn_status st;

    if (!name)
        return TN_E_NOMEM;
    if (!(st = tn_params_get(params, name, &array)))
        st = array ? tn_array_copy(array, s->states[k]) : TN_E_FORMAT;
    (void)tnn_check(app, st, "%s", name);
    tn_array_release(array);
    free(name);
    return st;
}

tn_status tnn_trainer_import(tn_trainer *t, const tn_params *params, int64_t steps)
{
    tn_app *app = tnn_trainer_app(t);

    if (!app)
        return TN_E_STATE;
    if (tnn_trainer_ready(t))
        return app->status;
    if (steps < 0 || steps > STEPS_MAX)
        return tnn_fail(app, TN_E_FORMAT, "a trainer after %lld steps", (long long)steps);
    if (t->rejoined)
        return tnn_store_taken(t);
    for (size_t i = 0; i < t->slot_count; i++) {
        if (t->far && t->on_store && tnn_store_state(t, i))
            return app->status;
        t->slots[i].version = t->slots[i].param->version;
        t->slots[i].skipped = 0;
        for (size_t k = 0; k < tnn_states_of(t, &t->slots[i]); k++)
            if (state_take(app, t, &t->slots[i], k, params))
                return app->status;
    }
    t->steps = steps;
    for (size_t i = 0; i < t->slot_count && t->on_store; i++)
        if (tnn_store_return(t, i))
            return app->status;
    return TN_OK;
}

/* The step count travels as an array of one number, so that the file stays a .params file. */
void tn_trainer_save(tn_trainer *t, const char *path)
{
    tn_app *app = tnn_trainer_app(t);
    const int64_t one = 1;
    tn_params *params = NULL;
    tn_array *steps = NULL;

    if (!app || !path) {
        (void)tnn_fail(app, TN_E_ARG, "%s: the file's name is missing", __func__);
        return;
    }
    if (!tnn_check(app, tn_params_create(&params), "%s", path) && !tnn_trainer_export(t, params) &&
        !tnn_check(app, tn_array_from(app->ctx, TN_I64, 1, &one, &t->steps, &steps), "%s", path) &&
        !tnn_check(app, tn_params_add(params, "steps", steps), "%s", path))
        (void)tnn_check(app, tn_params_save(params, path), "%s", path);
    tn_array_release(steps);
    tn_params_destroy(params);
}

void tn_trainer_load(tn_trainer *t, const char *path)
{
    tn_app *app = tnn_trainer_app(t);
    tn_params *params = NULL;
    tn_array *steps = NULL;
    int64_t count = 0;

    if (!app || !path) {
        (void)tnn_fail(app, TN_E_ARG, "%s: the file's name is missing", __func__);
        return;
    }
    if (!tnn_check(app, tn_params_load(app->ctx, path, NULL, &params), "%s", path) &&
        !tnn_check(app, tn_params_get(params, "steps", &steps), "%s", path) &&
        !tnn_check(app, tn_array_read(steps, &count, sizeof count), "%s", path))
        (void)tnn_trainer_import(t, params, count);
    tn_array_release(steps);
    tn_params_destroy(params);
}
