/*
 * Gradients that no backward has filled in since the last step: an error, or, where the trainer is told to
 * ignore them, parameters that the step leaves as they are. Where no gradient at all comes from a backward,
 * the program has written them, or a module's executors have, and all count.
 */
#include "trainer.h"

/* All of its arrays are asked: to be asked is to be of the past. */
static bool filled(const tn_app *app, const tnn_param *p)
{
    bool all = tn_array_grad_fresh(p->array) != 0;

    for (size_t k = 1; p->copies && k < app->device_count; k++)
        if (p->copies[k - 1] && !tn_array_grad_fresh(p->copies[k - 1]))
            all = false;
    return all;
}

tn_status tnn_stale_check(tn_trainer *t)
{
    tn_app *app = t->object.app;
    const slot *stale = NULL;
    size_t fresh = 0;

    for (size_t i = 0; i < t->slot_count; i++) {
        t->slots[i].stale = !filled(app, t->slots[i].param);
        fresh += !t->slots[i].stale;
        if (t->slots[i].stale && !stale)
            stale = &t->slots[i];
    }
    for (size_t i = 0; !fresh && i < t->slot_count; i++)
        t->slots[i].stale = false;
    if (!fresh || !stale || t->o.ignore_stale_grad)
        return TN_OK;
    return tnn_fail(app, TN_E_STATE,
                    "no backward has reached parameter %s since the last step: its gradient is an old one\n"
                    "   help: .ignore_stale_grad = 1 of the trainer leaves such parameters as they are, "
                    "tn_net_set(net, \"%s\", .grad = \"none\") this one for good",
                    stale->param->full, stale->param->name);
}
