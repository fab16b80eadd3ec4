/*
 * A trainer over several devices, or workers: a parameter store sums the gradients. It updates the values
 * itself, where it has the optimizer, or the trainer does so on the first device; either way the values of
 * all devices, and of workers that go in step, are the same behind a step.
 */
#include "trainer.h"

#include <stdlib.h>
#include <string.h>

/* A store is asked for by name, needed by several devices, or by others whom the option names. */
static const char *type_of(tn_app *app, const tn_trainer_options *o)
{
    const char *type = o->kvstore ? o->kvstore : tn_ctx_option(app->ctx, "kvstore.type");
    const bool alone = app->device_count == 1 && type && (!strcmp(type, "local") || !strcmp(type, "device"));

    return !o->kvstore && alone ? NULL : type;
}

static tn_status compress(tn_app *app, tn_trainer *t)
{
    const char *type = t->o.compression ? t->o.compression : tn_ctx_option(app->ctx, "kvstore.compress");
    double threshold = t->o.compression_threshold;
    char text[32];
    const char *const params[] = {"type", type, "threshold", text, NULL};

    if (!type || !strcmp(type, "none"))
        return TN_OK;
    if (threshold == 0 &&
        tnn_check(app, tn_ctx_option_float(app->ctx, "kvstore.compress_threshold", &threshold), "trainer"))
        return app->status;
    tnn_number_text(text, 9, threshold);
    return tnn_check(app, tn_kv_set_compression(t->kv, params), "trainer");
}

/* The optimizer by name and numbers. TN_E_KEY: the store has none of this name. */
static tn_status optimizer_set(tn_trainer *t)
{
    char numbers[TNN_RULE_ATTRS + 2][32];
    const char *params[2 * TNN_RULE_ATTRS + 8], *when = tnn_rule_when(t->rule);
    size_t n = tnn_rule_attrs(t->rule, &t->o, numbers, params);

    if (t->o.multi_precision) {
        params[n++] = "multi_precision";
        params[n++] = "1";
    }
    tnn_number_text(numbers[TNN_RULE_ATTRS], 17, t->o.clip > 0 ? t->o.clip : -1);
    tnn_number_text(numbers[TNN_RULE_ATTRS + 1], 17,
                    when && !strcmp(when, "momentum") ? t->o.momentum : (double)t->o.centered);
    params[n++] = "clip_gradient";
    params[n++] = numbers[TNN_RULE_ATTRS];
    if (when) {
        params[n++] = when;
        params[n++] = numbers[TNN_RULE_ATTRS + 1];
    }
    params[n] = NULL;
    return tn_kv_set_optimizer(t->kv, t->rule->name, params);
}

/* Servers do what has no operator, too; devices of one process do not compute it twice. */
static bool stores(const tn_trainer *t)
{
    return t->rule->op || (t->far && t->rule->attrs[0]);
}

/* Whether the store updates: asked for here, or by the option where it can. */
static tn_status updates_where(tn_app *app, tn_trainer *t)
{
    const bool asked = t->o.update_on_kvstore > 0;
    int64_t wanted = asked;
    tn_status st;

    if (!t->o.update_on_kvstore &&
        tnn_check(app, tn_ctx_option_int(app->ctx, "kvstore.update", &wanted), "trainer"))
        return app->status;
    if (t->async && (!wanted || t->o.clip_norm > 0 || !stores(t)))
        return tnn_fail(app, TN_E_UNSUPPORTED,
                        "trainer: without rounds servers update the parameters, one gradient at a time: not "
                        "with optimizer %s, .clip_norm or .update_on_kvstore = -1",
                        t->rule->name);
    if (!wanted)
        return TN_OK;
    if (asked && t->o.clip_norm > 0)
        return tnn_fail(app, TN_E_ARG,
                        "trainer: .clip_norm needs the sums of all gradients before the update: "
                        "not with .update_on_kvstore = 1");
    if (t->o.clip_norm > 0 || !stores(t))
        st = asked ? tnn_fail(app, TN_E_UNSUPPORTED, "trainer: a store has no optimizer %s", t->rule->name)
                   : TN_OK;
    else if (!(st = tnn_check(app, optimizer_set(t), "trainer")))
        t->on_store = true;
    return st;
}

/* The value of slot `i`, once it differs from what the store has. */
static tn_status value_send(tn_app *app, tn_trainer *t, size_t i)
{
    const tnn_param *p = t->slots[i].param;
    tn_kv_item item = t->items[i];

    if (t->versions[i] == p->version)
        return TN_OK;
    item.value_count = 1;
    item.values = &p->array;
    item.out_count = 0;
    t->versions[i] = p->version;
    return tnn_check(app, tn_kv_assign(t->kv, 1, &item), "parameter %s", p->full);
}

/* The arrays of slot `i` may be new ones since the last step. */
static tn_status lists_fill(tn_app *app, tn_trainer *t, size_t i)
{
    const size_t devices = app->device_count;
    tn_array **grads = t->lists + 2 * devices * i, **arrays = grads + devices;

    for (size_t k = 0; k < devices; k++)
        if (!(arrays[k] = tnn_param_on(app, t->slots[i].param, k)) || !(grads[k] = tn_array_grad(arrays[k])))
            return app->status ? app->status
                               : tnn_fail(app, TN_E_STATE, "parameter %s has no gradient on device %zu",
                                          t->slots[i].param->full, k);
    for (size_t k = 0; t->slots[i].param->rows && k < devices; k++)
        if (!(grads[k] = tnn_rows_on(app, grads[k], 0))) /* rows are summed where the first device is */
            return app->status;
    t->items[i].values = grads;
    t->items[i].outs = t->on_store ? arrays : grads;
    t->items[i].value_count = t->items[i].out_count = (uint32_t)devices;
    return TN_OK;
}

/* Factors of slot `i`, once they differ from what the store has. */
static tn_status factors_send(tn_app *app, tn_trainer *t, size_t i)
{
    static const char *const names[] = {"lr_mult", "wd_mult"};
    const tnn_param *p = t->slots[i].param;
    const double now[] = {p->lr_factor, p->wd_factor};

    for (size_t k = 0; k < 2; k++) {
        double *sent = &t->factors[2 * i + k];

        if (*sent == now[k])
            continue;
        if (tnn_check(app, tn_kv_set_param(t->kv, &t->items[i], names[k], now[k]), "parameter %s", p->full))
            return app->status;
        *sent = now[k];
    }
    return TN_OK;
}

static tn_status store_take(tn_app *app, tn_trainer *t)
{
    tn_kv_info info = {.struct_size = TN_SIZE(tn_kv_info)};
    const char *type = type_of(app, &t->o);

    if (t->o.store)
        t->kv = t->o.store;
    else if (!type || tnn_check(app, tn_kv_create(app->ctx, type, &t->kv), "trainer"))
        return app->status;
    if (tnn_check(app, tn_kv_info_get(t->kv, &info), "trainer"))
        return app->status;
    t->far = tnn_kv_far(info.type);
    t->async = t->far && strstr(info.type, "async");
    t->rank = info.rank;
    t->workers = info.workers;
    return TN_OK;
}

tn_status tnn_store_open(tn_trainer *t)
{
    tn_app *app = t->object.app;

    if (t->kv || store_take(app, t) || !t->kv || compress(app, t))
        return app->status;
    return updates_where(app, t);
}

/* First values of all parameters, of workers those of worker 0, which then lie on all devices. */
static tn_status values_spread(tn_app *app, tn_trainer *t, tn_array **firsts)
{
    const size_t devices = app->device_count;

    for (size_t i = 0; i < t->slot_count; i++) {
        tnn_param *p = t->slots[i].param;
        tn_array **outs = t->lists + 2 * devices * i;

        for (size_t k = 0; k < devices; k++)
            if (!(outs[k] = tnn_param_on(app, p, k)))
                return app->status;
        if (p->rows &&
            tnn_check(app, tn_array_to_storage(app->ctx, outs[0], TN_STORAGE_ROW_SPARSE, &firsts[i]),
                      "parameter %s", p->full))
            return app->status;
        t->items[i].value_count = 1;
        t->items[i].values = p->rows ? &firsts[i] : outs; /* row_sparse: the store takes its gradients */
        t->items[i].out_count = t->far ? (uint32_t)devices : 0;
        t->items[i].outs = outs;
        t->versions[i] = p->version;
    }
    return tnn_check(app,
                     t->far ? tn_kv_broadcast(t->kv, (uint32_t)t->slot_count, t->items)
                            : tn_kv_init(t->kv, (uint32_t)t->slot_count, t->items),
                     "first values of the store");
}

tn_status tnn_store_make(tn_trainer *t)
{
    tn_app *app = t->object.app;
    tn_array **firsts;
    tn_status st;

    if (tnn_store_open(t) || !t->kv)
        return app->status;
    if (!(t->items = tnn_alloc(app, t->slot_count, sizeof *t->items)) ||
        !(t->lists = tnn_alloc(app, 2 * t->slot_count * app->device_count, sizeof(*t->lists))) ||
        !(t->versions = tnn_alloc(app, t->slot_count, sizeof *t->versions)) ||
        !(t->factors = tnn_alloc(app, 2 * t->slot_count, sizeof *t->factors)))
        return app->status;
    for (size_t i = 0; i < t->slot_count; i++) {
        t->items[i].name = t->slots[i].param->full;
        t->items[i].priority = -(int32_t)i;
        t->factors[2 * i] = t->factors[2 * i + 1] = -1;
    }
    if (!(firsts = tnn_alloc(app, t->slot_count, sizeof(*firsts))))
        return app->status;
    st = values_spread(app, t, firsts);
    for (size_t i = 0; i < t->slot_count; i++)
        tn_array_release(firsts[i]);
    free(firsts);
    if (st)
        return st;
    for (size_t i = 0; i < t->slot_count && t->on_store; i++)
        if (factors_send(app, t, i))
            return app->status;
    return TN_OK;
}

tn_status tnn_store_rejoin(tn_trainer *t)
{
    tn_app *app = t->object.app;
    uint64_t steps = 0;

    for (size_t i = 0; i < t->slot_count; i++)
        t->items[i].value_count = 0;
    if (tnn_check(app, tn_kv_rejoin(t->kv, (uint32_t)t->slot_count, t->items, &steps), "place in the store"))
        return app->status;
    if (steps) {
        t->steps = (int64_t)steps;
        t->rejoined = true;
    }
    return TN_OK;
}

tn_status tnn_store_taken(const tn_trainer *t)
{
    return tnn_fail(t->object.app, TN_E_STATE,
                    TNN_IN_PLACE ": it goes on behind step %lld, and loads no states, which the others would "
                                 "have to load, too",
                    (long long)t->rank, (long long)t->steps);
}

void tnn_store_clear(tn_trainer *t)
{
    if (!t->o.store)
        tn_kv_destroy(t->kv);
    t->kv = NULL;
    t->on_store = false;
    free(t->items);
    free(t->lists);
    free(t->versions);
    free(t->factors);
    t->items = NULL;
    t->lists = NULL;
    t->versions = NULL;
    t->factors = NULL;
}

tn_status tnn_store_state(tn_trainer *t, size_t i)
{
    tn_status st = TN_OK;

    for (uint32_t k = 0; k < tnn_states_of(t, &t->slots[i]) && !st; k++) {
        tn_array *state = NULL;

        if ((st = tn_kv_state(t->kv, &t->items[i], k, &state, NULL)))
            break;
        tn_array_release(t->slots[i].states[k]);
        t->slots[i].states[k] = state;
    }
    return tnn_check(t->object.app, st, "optimizer %s", t->o.optimizer);
}

tn_status tnn_store_return(tn_trainer *t, size_t i)
{
    tn_kv_item item = t->items[i];

    if (t->slots[i].half && value_send(t->object.app, t, i)) /* it would begin the copy anew later */
        return t->object.app->status;
    item.value_count = tnn_states_of(t, &t->slots[i]);
    item.values = t->slots[i].states;
    item.out_count = 0;
    return tnn_check(t->object.app, tn_kv_set_state(t->kv, &item, (uint64_t)t->steps), "optimizer %s",
                     t->o.optimizer);
}

/* ---- the drift check ---------------------------------------------------------------------------------- */

/* In rounds that kvstore.drift_check divides: values at rest, before the step, on all workers and devices. A
 * program that has just set a value of a store that updates sends that first. */
static tn_status drift_check(tn_app *app, tn_trainer *t)
{
    const size_t devices = app->device_count;
    int64_t every = 0;

    if (tnn_check(app, tn_ctx_option_int(app->ctx, "kvstore.drift_check", &every), "trainer"))
        return app->status;
    if (!every || t->steps % every)
        return TN_OK;
    for (size_t i = 0; i < t->slot_count; i++) {
        tn_array **arrays = t->lists + 2 * devices * i + devices;

        if (t->on_store && t->versions[i] != t->slots[i].param->version)
            return TN_OK;
        for (size_t k = 0; k < devices; k++)
            if (!(arrays[k] = tnn_param_on(app, t->slots[i].param, k)))
                return app->status;
        t->items[i].values = arrays;
        t->items[i].value_count = (uint32_t)devices;
        t->items[i].out_count = 0;
    }
    return tnn_check(app, tn_kv_check_drift(t->kv, (uint64_t)t->steps, (uint32_t)t->slot_count, t->items),
                     "step of the store");
}

/* ---- a step ------------------------------------------------------------------------------------------- */

/* A row_sparse sum becomes the gradient on the first device, with the rows of all. */
static tn_status rows_take(tn_app *app, tn_trainer *t, size_t i, tn_array *sum)
{
    const tnn_param *p = t->slots[i].param;

    return tnn_check(app, tn_attach_grad(app->ctx, p->array, p->mode, sum), "gradient of %s", p->full);
}

/* Of one process it needs no store. */
static tn_status rows_sum(tn_app *app, tn_trainer *t, size_t i)
{
    const tn_kv_item *item = &t->items[i];
    tn_op_call call = {
        .struct_size = TN_SIZE(tn_op_call), .in_count = item->value_count, .op = "add_n", .in = item->values};
    tn_array *sum = NULL;

    if (item->value_count > 1 && !tnn_check(app, tn_invoke_text(app->ctx, &call, 1, &sum, NULL),
                                            "gradient of %s", t->slots[i].param->full))
        (void)rows_take(app, t, i, sum);
    tn_array_release(sum);
    return app->status;
}

/* The sum of all workers comes as a dense array. */
static tn_status rows_receive(tn_app *app, tn_trainer *t, size_t i, tn_array *dense)
{
    tn_array *sum = NULL;

    if (!tnn_check(app, tn_array_to_storage(app->ctx, dense, TN_STORAGE_ROW_SPARSE, &sum), "gradient of %s",
                   t->slots[i].param->full))
        (void)rows_take(app, t, i, sum);
    tn_array_release(sum);
    return app->status;
}

/* What the store sums: dense gradients, and of several processes all. */
static uint32_t sums_fill(tn_app *app, tn_trainer *t, tn_kv_item *items, tn_array **dense)
{
    uint32_t count = 0;

    for (size_t i = 0; i < t->slot_count && !app->status; i++) {
        const tnn_param *p = t->slots[i].param;

        if (lists_fill(app, t, i))
            break;
        if (p->rows && !t->far) {
            (void)rows_sum(app, t, i);
            continue;
        }
        items[count] = t->items[i];
        if (p->rows &&
            !tnn_check(app, tn_array_zeros(app->ctx, p->dtype, p->ndim, p->shape, app->devices[0], &dense[i]),
                       "gradient of %s", p->full)) {
            items[count].outs = &dense[i];
            items[count].out_count = 1;
        }
        count++;
    }
    return count;
}

tn_status tnn_store_sum(tn_trainer *t)
{
    tn_app *app = t->object.app;
    tn_kv_item *items = NULL;
    tn_array **dense = NULL;
    uint32_t count;

    if (drift_check(app, t))
        return app->status;
    if ((items = tnn_alloc(app, t->slot_count, sizeof *items)) &&
        (dense = tnn_alloc(app, t->slot_count, sizeof(*dense)))) {
        count = sums_fill(app, t, items, dense);
        if (!app->status && count)
            (void)tnn_check(app, tn_kv_pushpull(t->kv, count, items), "sums of gradients");
    }
    for (size_t i = 0; dense && i < t->slot_count; i++) {
        if (dense[i] && !app->status)
            (void)rows_receive(app, t, i, dense[i]);
        tn_array_release(dense[i]);
    }
    free(items);
    free(dense);
    return app->status;
}

static tn_status pushed_pulled(tn_app *app, tn_trainer *t, double lr, double rescale)
{
    tn_status st;

    if (!(st = tn_kv_set_param(t->kv, NULL, "lr", lr)) &&
        !(st = tn_kv_set_param(t->kv, NULL, "wd", t->o.wd)) &&
        !(st = tn_kv_set_param(t->kv, NULL, "rescale_grad", rescale)))
        st = tn_kv_pushpull(t->kv, (uint32_t)t->slot_count, t->items);
    return tnn_check(app, st, "step of the store");
}

tn_status tnn_store_step(tn_trainer *t, double lr, double rescale)
{
    tn_app *app = t->object.app;

    if (drift_check(app, t))
        return app->status;
    for (size_t i = 0; i < t->slot_count; i++)
        if (value_send(app, t, i) || factors_send(app, t, i) || lists_fill(app, t, i))
            return app->status;
    return pushed_pulled(app, t, lr, rescale);
}

tn_status tnn_store_end(tn_trainer *t)
{
    tn_app *app = t->object.app;

    if (tnn_check(app, tn_kv_end(t->kv), "end of the data"))
        return app->status;
    for (size_t i = 0; i < t->slot_count && t->on_store; i++) {
        tn_kv_item item;

        if (lists_fill(app, t, i))
            return app->status;
        item = t->items[i];
        item.value_count = 0;
        if (tnn_check(app, tn_kv_pull(t->kv, TN_KV_SPARSE, 1, &item), "parameter %s",
                      t->slots[i].param->full))
            return app->status;
    }
    return TN_OK;
}

tn_status tnn_store_spread(tn_trainer *t)
{
    tn_app *app = t->object.app;

    for (size_t i = 0; i < t->slot_count; i++)
        for (size_t k = 1; k < app->device_count; k++) {
            tn_array *copy = tnn_param_on(app, t->slots[i].param, k);

            if (!copy || tnn_check(app, tn_array_copy(t->slots[i].param->array, copy), "parameter %s",
                                   t->slots[i].param->full))
                return app->status;
        }
    return TN_OK;
}
