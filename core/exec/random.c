/*
 * Random numbers: a key and a draw counter per device. A draw is taken when a call is made, on the calling
 * thread, so the numbers depend on the order of calls only; element k of a draw uses counter k of the
 * generator.
 */
#include "exec/internal.h"

tn_status tni_random_seed(tni_context *c, uint64_t seed, tni_device *d)
{
    for (uint32_t i = 0; i < TN_DEVICES_MAX; i++) {
        tni_draws *draws = &c->exec->draws[i];

        if (d && d->ordinal != i)
            continue;
        atomic_store(&draws->key, seed);
        atomic_store(&draws->next, 0);
    }
    return TN_OK;
}

uint64_t tni_random_take(tni_context *c, tni_device *d, uint64_t count)
{
    return atomic_fetch_add(&c->exec->draws[d->ordinal].next, count);
}

uint64_t tni_random_key(tni_context *c, tni_device *d)
{
    return atomic_load(&c->exec->draws[d->ordinal].key);
}

uint64_t tni_random_position(tni_context *c, tni_device *d)
{
    return atomic_load(&c->exec->draws[d->ordinal].next);
}

tn_status tni_random_restore(tni_context *c, tni_device *d, uint64_t key, uint64_t position)
{
    atomic_store(&c->exec->draws[d->ordinal].key, key);
    atomic_store(&c->exec->draws[d->ordinal].next, position);
    return TN_OK;
}
