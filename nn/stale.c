/*
 * Old gradients: those that no backward has filled in since the last step. They are an error, or, where the
 * trainer is told to ignore them, belong to parameters that the step leaves as they are. A trainer none of
 * whose arrays a backward has ever reached has gradients that the program writes, or a module's executors do:
 * all of them count.
 */
#include "trainer.h"

/* NULL: the parameter is not on that device yet. */
static tn_array *array_at(const tnn_param *p, size_t device)
{
    return !device ? p->array : p->copies ? p->copies[device - 1] : NULL;
}

/* Number `a` of a backward comes after number `b`. */
static bool later(uint32_t a, uint32_t b)
{
    return a && (!b || (int32_t)(a - b) > 0);
}

/* The last backward that has reached one of its arrays; 0: none has. */
static uint32_t turn_of(const tn_app *app, const tnn_param *p)
{
    uint32_t last = 0;

    for (size_t k = 0; k < app->device_count; k++) {
        const uint32_t turn = tn_array_grad_turn(array_at(p, k));

        if (later(turn, last))
            last = turn;
    }
    return last;
}

/* On one device is enough: it makes the sum of all devices an old one. */
static bool is_old(const tn_app *app, const slot *s)
{
    size_t k = 0;

    while (k < app->device_count && later(tn_array_grad_turn(array_at(s->param, k)), s->used))
        k++;
    return k < app->device_count;
}

/* Whether a backward has ever reached one of the parameters. */
static bool any_reached(const tn_trainer *t)
{
    size_t i = 0;

    while (i < t->slot_count && !turn_of(t->object.app, t->slots[i].param))
        i++;
    return i < t->slot_count;
}

/* A store that updates takes what all workers push in a round, an old gradient of one of them, too: to stop
 * there would leave the others waiting. */
static bool is_stale(const tn_trainer *t, const slot *s)
{
    if (t->on_store)
        return !t->o.ignore_stale_grad && !turn_of(t->object.app, s->param);
    return is_old(t->object.app, s);
}

tn_status tnn_stale_check(tn_trainer *t)
{
    const bool reached = any_reached(t);
    const slot *stale = NULL;

    for (size_t i = 0; i < t->slot_count; i++) {
        t->slots[i].stale = reached && is_stale(t, &t->slots[i]);
        if (t->slots[i].stale && !stale)
            stale = &t->slots[i];
    }
    if (!stale || t->o.ignore_stale_grad)
        return TN_OK;
    return tnn_fail(
        t->object.app, TN_E_STATE,
        "no backward has reached parameter %s since the last step%s: its gradient is an old one\n"
        "   help: .ignore_stale_grad = 1 of the trainer, or of tn_fit, leaves such parameters as they are; "
        "tn_net_set(net, \"%s\", .grad = \"none\") before the first step, this one for good; "
        "tn_array_grad_touch() says that the program has written the gradient",
        stale->param->full, t->object.app->device_count > 1 ? " on every device" : "", stale->param->name);
}

void tnn_stale_done(tn_trainer *t)
{
    for (size_t i = 0; i < t->slot_count; i++)
        if (t->slots[i].stale)
            t->slots[i].skipped++;
        else
            t->slots[i].used = turn_of(t->object.app, t->slots[i].param);
    t->steps++;
}

int64_t tnn_trainer_updates(const tn_trainer *t, bool now)
{
    int64_t most = t->slot_count ? 0 : t->steps;

    for (size_t i = 0; i < t->slot_count; i++) {
        const int64_t own = t->steps - t->slots[i].skipped - (now && t->slots[i].stale);

        if (own > most)
            most = own;
    }
    return most;
}
