/*
 * The optimizer's states of a key, from servers and back: pieces of each part, as pulls and pushes. And where
 * a worker in another's place goes on.
 */
#include "kv/dist.h"

#include <inttypes.h>
#include <string.h>

#include "kv/update.h"

static uint64_t element_bytes(const tni_array *a)
{
    return tn_dtype_bytes(a->dtype);
}

/* Pieces that cover what is kept of each part, and one of them, of the whole key. */
typedef struct pieces {
    tni_kv_plan plan;
    uint32_t count, states;
    uint8_t *data;
    tni_kv_param_slot slot; /* of a part: views of the key's states */
} pieces;

static tn_status pieces_begin(tni_kv_dist *d, tni_kv_key *key, pieces *p)
{
    uint64_t kept = sizeof(uint64_t), last, count;
    tn_status st;

    memset(p, 0, sizeof *p);
    if ((st = tni_kv_dist_plan(d, key, &p->plan)) ||
        (st = tni_kv_param_states(d->kv->optimizer, &key->slot, key->value)))
        return st;
    p->states = tni_kv_optimizer_states(d->kv->optimizer, key->value->dtype);
    for (uint32_t k = 0; k < p->states; k++) {
        if ((st = tni_array_wait(key->slot.states[k])))
            return st;
        kept += p->plan.bytes / element_bytes(key->value) * element_bytes(key->slot.states[k]);
    }
    last = tni_kv_plan_part(&p->plan, p->plan.parts - 1).bytes; /* the shortest */
    count = last ? kept / p->plan.bytes + sizeof(uint64_t) / last + 2 : 0;
    if (count > TNI_KV_STATES_END - TNI_KV_STATE)
        return tni_error(TN_E_UNSUPPORTED, "states of an array of %" PRIu64 " bytes", p->plan.bytes);
    p->count = (uint32_t)count;
    return (p->data = tni_alloc(p->plan.bytes)) ? TN_OK : TN_E_NOMEM;
}

/* Copies piece `index` of each part out of the states, or with `put` into them. */
static tn_status piece_copy(tni_kv_key *key, pieces *p, uint32_t index, uint64_t *steps, bool put)
{
    const uint64_t each = element_bytes(key->value);
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < p->plan.parts && !st; i++) {
        const tni_kv_part part = tni_kv_plan_part(&p->plan, i);
        const int64_t length = (int64_t)(part.bytes / each);
        tni_kv_param_slot s = {.steps = *steps};

        for (uint32_t k = 0; k < p->states && !st; k++) {
            tni_array *whole = key->slot.states[k];

            st = tni_array_wrap(whole->storage->space, whole->storage->device,
                                (char *)tni_array_data(whole) + part.offset / each * element_bytes(whole),
                                (uint64_t)length * element_bytes(whole), whole->dtype, 1, &length, NULL, NULL,
                                NULL, &s.states[k]);
        }
        if (!st)
            tni_kv_states_copy(&s, p->states, (uint64_t)index * part.bytes, p->data + part.offset, part.bytes,
                               put);
        *steps = i == 0 ? s.steps : *steps;
        tni_kv_param_fini(&s);
    }
    return st;
}

tn_status tni_kv_dist_fetch(tni_kv_dist *d, tni_kv_key *key)
{
    uint64_t steps = 0;
    pieces p;
    tn_status st;

    if ((st = tni_kv_dist_flush(d)) || (st = tni_kv_dist_wait(d)))
        return st;
    st = pieces_begin(d, key, &p);
    for (uint32_t i = 0; i < p.count && !st; i++) {
        const tni_kv_request r = {.kind = TNI_KV_DO_PULL,
                                  .key = key->wire,
                                  .out = p.data,
                                  .what = (uint8_t)(TNI_KV_STATE + i),
                                  .any = true};

        if (!(st = tni_kv_process_call(d->process, &r)))
            st = piece_copy(key, &p, i, &steps, true);
    }
    if (!st)
        key->slot.steps = steps;
    tni_free(p.data);
    return st;
}

tn_status tni_kv_dist_return(tni_kv_dist *d, tni_kv_key *key)
{
    uint64_t steps = key->slot.steps;
    pieces p;
    tn_status st;

    if ((st = tni_kv_dist_flush(d)) || (st = tni_kv_dist_wait(d)))
        return st;
    st = pieces_begin(d, key, &p);
    d->fresh = true;
    for (uint32_t i = 0; i < p.count && !st; i++) {
        const bool first = d->rank == 0;
        const tni_kv_request r = {.kind = TNI_KV_DO_PUSH,
                                  .key = key->wire,
                                  .in = first ? p.data : tni_kv_nothing,
                                  .what = (uint8_t)(first ? TNI_KV_STATE + i : TNI_KV_ABSTAIN),
                                  .shrink_log2 = first ? 0 : TNI_KV_ABSTAIN_LOG2};

        if (!first || !(st = piece_copy(key, &p, i, &steps, false)))
            st = tni_kv_process_call(d->process, &r);
        if (!st)
            atomic_fetch_add(&key->rounds, 1);
    }
    tni_free(p.data);
    return st;
}

/* The least and the largest number of steps that a part of the key has made. */
static tn_status steps_look(tni_kv_dist *d, const tni_kv_key *key, uint32_t *least, uint32_t *most)
{
    uint8_t *data = tni_alloc(tni_array_bytes(key->value));
    const tni_kv_request r = {
        .kind = TNI_KV_DO_PULL, .key = key->wire, .out = data, .what = TNI_KV_STATE, .any = true};
    tni_kv_plan plan = {0};
    uint32_t steps;
    tn_status st = data ? tni_kv_dist_plan(d, key, &plan) : TN_E_NOMEM;

    if (!st)
        st = tni_kv_process_call(d->process, &r);
    for (uint32_t i = 0; i < plan.parts && !st; i++) {
        const tni_kv_part part = tni_kv_plan_part(&plan, i);

        if (!part.bytes)
            continue;
        if (part.bytes < sizeof steps) {
            st =
                tni_error(TN_E_UNSUPPORTED, "a part of %" PRIu64 " bytes does not say its steps", part.bytes);
            break;
        }
        memcpy(&steps, data + part.offset, sizeof steps);
        *least = steps < *least ? steps : *least;
        *most = steps > *most ? steps : *most;
    }
    tni_free(data);
    return st;
}

/* What the lost worker alone had, or what another exchange than a push has torn. */
static tn_status rejoin_check(const tni_kv_dist *d, uint32_t least, uint32_t most)
{
    const tni_kv *kv = d->kv;
    const char *lost = !kv->optimizer   ? ", and with it the parameters: the servers have no optimizer"
                       : kv->codec.bits ? ", and with it what compression has left over of its gradients"
                       : tni_option_int(kv->ctx->options, "kvstore.drift_check")
                           ? ": with kvstore.drift_check the others may wait for its numbers"
                           : NULL;

    if (lost)
        return tni_error(TN_E_UNSUPPORTED,
                         "worker %u is in the place of another, which is lost behind step %u%s", d->rank,
                         least, lost);
    if (most > least + 1)
        return tni_error(TN_E_STATE,
                         "worker %u is in the place of another: keys are at steps %u to %u, which is no step",
                         d->rank, least, most);
    return TN_OK;
}

/* Nothing moves by more than one step before this worker has pushed: each part is at the least step, or one
 * behind it, if the worker that is gone had pushed so far. */
tn_status tni_kv_dist_rejoin(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys, uint64_t *steps)
{
    uint32_t least = UINT32_MAX, most = 0;
    tn_status st = TN_OK;

    if (d->settings.async || !tni_kv_process_behind(d->process))
        return TN_OK;
    d->torn = true;
    for (uint32_t i = 0; i < count && !st; i++)
        if (!(st = tni_array_wait_write(keys[i]->value)))
            st = steps_look(d, keys[i], &least, &most);
    if (st || least == UINT32_MAX || (!most && !d->kv->optimizer) ||
        (most && (st = rejoin_check(d, least, most))))
        return st;
    for (uint32_t i = 0; i < count && !st; i++) {
        const tni_kv_request r = {.kind = TNI_KV_DO_PULL,
                                  .key = keys[i]->wire,
                                  .out = tni_array_data(keys[i]->value),
                                  .what = (uint8_t)(TNI_KV_EVEN | (least & 1)),
                                  .any = true};

        st = tni_kv_process_call(d->process, &r);
    }
    *steps = least;
    return st;
}
