/*
 * Pushes. A push of several keys moves all of their values or none: its operations are queued as a group, so
 * that no memory for a later key is missing once an earlier one has moved, and a gate stands between the
 * gradients and the values (tni_kv_gate): what fails before it leaves the values unmoved, and marked as
 * failed.
 *
 * Of dist types each key leaves by itself, when its gradient is there: all or none is each key's, and the
 * servers' (dist.c).
 */
#include "kv/store.h"

#include "kv/dist.h"
#include "kv/group.h"
#include "kv/rows.h"
#include "kv/update.h"

typedef struct step { /* of one push */
    tni_kv *kv;
    uint32_t count, gated; /* gated: in the first part of `gate` */
    const tn_kv_item *items;
    tni_kv_key **keys;
    tni_array **sums; /* one reference each; NULL: the values go into the stored one at once */
    tni_array **gate; /* what must not have failed, then the stored values */
} step;

static tn_status codable(const step *s)
{
    for (uint32_t i = 0; i < s->count && s->kv->codec.bits; i++)
        if (s->keys[i]->value->dtype != TN_F32 || s->keys[i]->sparse)
            return tni_error(TN_E_UNSUPPORTED, "compression is for dense float32, not for %s %s",
                             s->keys[i]->sparse ? "row_sparse" : "dense",
                             tni_dtype_name(s->keys[i]->value->dtype));
    return TN_OK;
}

static tn_status merged_make(tni_array **merged, tni_array *like, tni_device *device)
{
    return *merged ? TN_OK
                   : tni_array_create(like->storage->space, device, like->dtype, like->ndim, like->shape,
                                      "kvstore", merged);
}

static tni_array **merged_on_host(tni_kv_key *key)
{
    return key->value->storage->device->host ? &key->merged : &key->landing;
}

/* What stays with a key from its first push on is made before anything of the push is queued. */
static tn_status key_ready(const step *s, uint32_t i)
{
    tni_kv *kv = s->kv;
    tni_kv_key *key = s->keys[i];
    tni_array **host = merged_on_host(key);
    tni_device *cpu;
    tn_status st = TN_OK;

    if (kv->codec.bits && ((st = tni_device_get(kv->ctx->devices, "cpu", 0, &cpu)) ||
                           (st = merged_make(host, key->value, cpu)) ||
                           (st = merged_make(&key->merged, key->value, key->value->storage->device)) ||
                           (st = tni_kv_residuals_make(key, *host, s->items[i].value_count))))
        return st;
    if (kv->group && (st = merged_make(&key->merged, key->value, key->value->storage->device)))
        return st;
    return kv->optimizer ? tni_kv_param_ready(kv->optimizer, &key->slot, key->value) : TN_OK;
}

/* In fewer bits, each by itself: even one value is rounded. */
static tn_status sum_coded(const step *s, uint32_t i)
{
    tni_kv_key *key = s->keys[i];
    const tn_kv_item *item = &s->items[i];
    tni_array **host = merged_on_host(key);
    tn_status st =
        tni_kv_sum_coded(&s->kv->codec, key, *host, item->value_count, item->values, item->priority);

    if (st)
        return st;
    if (host == &key->landing)
        st = tni_array_copy(*host, key->merged);
    tni_array_retain(s->sums[i] = key->merged);
    return st;
}

static tn_status sum_sparse(const step *s, uint32_t i)
{
    const tn_kv_item *item = &s->items[i];

    if (item->value_count > 1)
        return tni_invoke_text(s->kv->ctx, "add_n", item->value_count, item->values, 0, NULL, NULL, 1,
                               &s->sums[i], NULL);
    tni_array_retain(s->sums[i] = item->values[0]);
    return TN_OK;
}

/* A sparse gradient travels as a dense one. */
static tn_status sum_dense(const step *s, uint32_t i)
{
    tni_array *dense = NULL;
    tn_status st = sum_sparse(s, i);

    if (st || (st = tni_dense_give(s->kv->ctx, s->sums[i], &dense)))
        return st;
    tni_array_release(s->sums[i]);
    s->sums[i] = dense;
    return TN_OK;
}

/* What an updater sees of one value is that array, as it is, where it lies with what is stored. */
static tn_status sum_queue(const step *s, uint32_t i, bool updates)
{
    tni_kv_key *key = s->keys[i];
    const tn_kv_item *item = &s->items[i];
    const tni_array *first = item->values[0];
    tn_status st;

    if (s->kv->codec.bits)
        return sum_coded(s, i);
    if (first->storage_type != TN_STORAGE_DENSE)
        return s->kv->group ? sum_dense(s, i) : sum_sparse(s, i);
    if (!updates)
        return TN_OK;
    if (item->value_count == 1 && first->storage->device == key->value->storage->device &&
        (!s->kv->group || first->flags & TNI_ARRAY_CONTIGUOUS)) {
        tni_array_retain(s->sums[i] = item->values[0]);
        return TN_OK;
    }
    if ((st = merged_make(&key->merged, key->value, key->value->storage->device)))
        return st;
    tni_array_retain(s->sums[i] = key->merged);
    return tni_kv_sum(key->merged, item->value_count, item->values, item->priority, false);
}

/* A step writes states by operators of their own: what fails before must keep them, too. */
static bool apart(const tni_kv *kv, const tni_kv_key *key)
{
    return kv->optimizer && (tni_kv_optimizer_lines(kv->optimizer) ||
                             tni_kv_optimizer_widens(kv->optimizer, key->value->dtype));
}

/* States that are written apart from the value are written by the gate, else read. */
static tn_status step_gate(step *s)
{
    uint64_t room = s->count;
    uint32_t all;

    for (uint32_t i = 0; i < s->count; i++)
        room += (s->sums[i] ? 1 : s->items[i].value_count) + tni_kv_states_count(s->keys[i]);
    if (room > UINT32_MAX)
        return tni_error(TN_E_ARG, "a push of too many arrays");
    if (!(s->gate = tni_calloc(room, sizeof(*s->gate))))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < s->count; i++) {
        for (uint32_t k = 0; !apart(s->kv, s->keys[i]) && k < tni_kv_states_count(s->keys[i]); k++)
            s->gate[s->gated++] = s->keys[i]->slot.states[k];
        for (uint32_t k = 0; k < s->items[i].value_count && !s->sums[i]; k++)
            s->gate[s->gated++] = s->items[i].values[k];
        if (s->sums[i])
            s->gate[s->gated++] = s->sums[i];
    }
    all = s->gated;
    for (uint32_t i = 0; i < s->count; i++) {
        s->gate[all++] = s->keys[i]->value;
        for (uint32_t k = 0; apart(s->kv, s->keys[i]) && k < tni_kv_states_count(s->keys[i]); k++)
            s->gate[all++] = s->keys[i]->slot.states[k];
    }
    return tni_kv_gate(s->kv->ctx, s->gated, all - s->gated, s->gate);
}

static tn_status step_apply(const step *s, uint32_t i)
{
    const tn_kv_item *item = &s->items[i];
    tni_kv_key *key = s->keys[i];
    tni_kv *kv = s->kv;

    if (kv->optimizer)
        return tni_kv_optimizer_step(kv->optimizer, &key->slot, key->value, s->sums[i]);
    if (kv->updater) {
        const tn_kv_item id = {.name = key->name, .number = key->number};

        return kv->updater(kv->updater_arg, &id, s->sums[i], key->value);
    }
    if (s->sums[i])
        return tni_kv_value_write(kv, key, s->sums[i], item->priority, true);
    return tni_kv_sum(key->value, item->value_count, item->values, item->priority, true);
}

/* Sums that are sparse are queued before: their shapes are looked at, so they have to be under way. */
static tn_status sums_queue(const step *s, bool sparse)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < s->count && !st; i++)
        if ((s->items[i].values[0]->storage_type != TN_STORAGE_DENSE) == sparse)
            st = sum_queue(s, i, s->kv->optimizer || s->kv->updater || s->kv->group);
    return st;
}

/* With other processes: this one's sums leave, and those of all come into `merged`. */
static tn_status sums_merge(const step *s)
{
    tni_array **into = tni_calloc((uint64_t)s->count + 1, sizeof(*into));
    tn_status st = into ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < s->count && !st; i++)
        into[i] = s->keys[i]->merged;
    if (!st && !(st = tni_kv_group_queue(s->kv->group, s->count, s->keys, s->sums, into)))
        for (uint32_t i = 0; i < s->count; i++) {
            tni_array_release(s->sums[i]);
            tni_array_retain(s->sums[i] = into[i]);
        }
    tni_free((void *)into);
    return st;
}

/* All of it is queued or nothing. An updater is called behind: it may wait for what it is given. */
static tn_status step_queue(step *s)
{
    const bool updater = s->kv->updater != NULL;
    const uint64_t queued = s->kv->group ? s->kv->group->queued : 0;
    uint32_t applied = 0;
    tni_gathering g;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < s->count && !st; i++)
        st = key_ready(s, i);
    if (st || (st = sums_queue(s, true)))
        return st;
    tni_engine_gather_begin(s->kv->ctx->engine, &g);
    if (!(st = sums_queue(s, false)) && s->count && (!s->kv->group || !(st = sums_merge(s))))
        st = step_gate(s);
    for (; applied < s->count && !st && !updater; applied += !st)
        st = step_apply(s, applied);
    st = tni_engine_gather_end(&g, st);
    if (st && s->kv->group)
        s->kv->group->queued = queued;
    for (uint32_t i = 0; i < applied && st && s->kv->optimizer; i++)
        s->keys[i]->slot.steps--;
    for (uint32_t i = 0; i < s->count && !st && updater; i++)
        st = step_apply(s, i);
    return st;
}

/* ---- of dist types ----------------------------------------------------------------------------------- */

static tn_status remade(tni_array **a, tni_array *like, tni_device *device)
{
    if (*a && (*a)->storage->device != device) {
        tni_array_release(*a);
        *a = NULL;
    }
    return merged_make(a, like, device);
}

/* What the sum of key `i` passes through on its way out: on the device of its values, on the host, coded. */
static tn_status dist_ready(const step *s, uint32_t i)
{
    const tn_kv_item *item = &s->items[i];
    tni_kv_key *key = s->keys[i];
    tni_device *host = key->value->storage->device, *from = item->values[0]->storage->device;
    const bool away = s->kv->type->device && !from->host;
    int64_t bytes;
    tn_status st;

    if (item->values[0]->storage_type != TN_STORAGE_DENSE)
        return TN_OK;
    if ((st = remade(&key->merged, key->value, away ? from : host)) ||
        (away && (st = merged_make(&key->landing, key->value, host))))
        return st;
    if (!s->kv->codec.bits)
        return TN_OK;
    bytes = (int64_t)tni_kv_codec_bytes(&s->kv->codec, tni_array_count(key->value));
    if (!key->coded &&
        (st = tni_array_create(s->kv->ctx->space, host, TN_U8, 1, &bytes, "kvstore", &key->coded)))
        return st;
    return tni_kv_residuals_make(key, key->value, 1);
}

/* The sum of this worker's values, on the host. One value that lies there is what it is. */
static tn_status dist_sum(const step *s, uint32_t i)
{
    const tn_kv_item *item = &s->items[i];
    tni_kv_key *key = s->keys[i];
    tni_array *first = item->values[0];
    tn_status st;

    if (item->value_count == 1 && first->storage->device->host && first->flags & TNI_ARRAY_CONTIGUOUS) {
        tni_array_retain(s->sums[i] = first);
        return TN_OK;
    }
    if ((st = tni_kv_sum(key->merged, item->value_count, item->values, item->priority, false)))
        return st;
    if (key->merged->storage->device->host) {
        tni_array_retain(s->sums[i] = key->merged);
        return TN_OK;
    }
    tni_array_retain(s->sums[i] = key->landing);
    return tni_array_copy(key->merged, key->landing);
}

/* What is pushed is what is pulled: a value of which the worker has no other array. */
static bool gradient_becomes_value(const step *s, uint32_t i)
{
    const tn_kv_item *item = &s->items[i];
    const tni_array *a = s->sums[i];

    return item->value_count == 1 && item->out_count == 1 && item->values[0] == a && item->outs[0] == a &&
           tni_kv_out_whole(s->keys[i], a) && tni_array_writable(a) && !s->kv->codec.bits;
}

static tn_status dist_push(const step *s, uint32_t i, bool pull)
{
    const tni_kv_codec *codec = &s->kv->codec;
    const int32_t priority = s->items[i].priority;
    tni_kv_key *key = s->keys[i];
    tni_array *out = s->sums[i];
    tn_status st = TN_OK;

    key->in_place = pull && gradient_becomes_value(s, i);
    if (codec->bits && !(st = tni_kv_code(codec, s->sums[i], key->residuals[0], key->coded, priority)))
        out = key->coded;
    return st ? st
              : tni_kv_dist_push(s->kv->dist, key, out,
                                 codec->bits == 2    ? TNI_KV_2BIT
                                 : codec->bits == 1  ? TNI_KV_1BIT
                                 : out->storage_type ? TNI_KV_ROWS
                                                     : TNI_KV_PLAIN,
                                 priority, pull);
}

/* On the host, with ids as its sums have them, and rows of a size that a payload can say. */
static bool travels_as_rows(const step *s, uint32_t i)
{
    const tni_array *a = s->items[i].values[0], *value = s->keys[i]->value;

    return a->storage->device->host && a->aux[0]->dtype == TN_I64 && tni_array_bytes(value) &&
           tni_array_bytes(value) / (uint64_t)value->shape[0] <= UINT32_MAX;
}

/* All of it is queued, or nothing. */
static tn_status dist_queue(const step *s, bool pull)
{
    tni_gathering g;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < s->count && !st; i++)
        if (!(st = dist_ready(s, i)) && s->items[i].values[0]->storage_type != TN_STORAGE_DENSE)
            st = travels_as_rows(s, i) ? sum_sparse(s, i) : sum_dense(s, i);
    if (st || (st = tni_kv_dist_step(s->kv->dist, s->count, s->keys)) ||
        (st = tni_kv_dist_flush(s->kv->dist)))
        return st;
    tni_engine_gather_begin(s->kv->ctx->engine, &g);
    for (uint32_t i = 0; i < s->count && !st; i++)
        if (s->sums[i] || !(st = dist_sum(s, i)))
            st = dist_push(s, i, pull);
    if (!(st = tni_engine_gather_end(&g, st)))
        tni_kv_dist_pushed(s->kv->dist, s->count, s->keys);
    return st;
}

/* ---- all ---------------------------------------------------------------------------------------------- */

/* Values of one key are of one storage type. */
static tn_status alike(const step *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = 1; k < s->items[i].value_count; k++)
            if (s->items[i].values[k]->storage_type != s->items[i].values[0]->storage_type)
                return tni_error(TN_E_UNSUPPORTED, "a key's values are dense and sparse");
    return TN_OK;
}

/* Of a collective the others are on their way into the sums. */
tn_status tni_kv_push_failed(tni_kv *kv, tn_status st)
{
    if (st == TN_E_NOMEM && kv->group) {
        (void)tni_error(st, "no memory for a push");
        tni_kv_group_break(kv->group);
    }
    return st;
}

tn_status tni_kv_push_all(tni_kv *kv, uint32_t count, const tn_kv_item *items, bool pull)
{
    step s = {.kv = kv, .count = count, .items = items};
    const tni_kv_quiet q = tni_kv_quiet_begin();
    tn_status st = TN_OK;

    s.keys = tni_calloc((uint64_t)count + 1, sizeof(*s.keys));
    s.sums = tni_calloc((uint64_t)count + 1, sizeof(*s.sums));
    if (!s.keys || !s.sums)
        st = TN_E_NOMEM;
    if (!st)
        st = tni_kv_keys_take(kv, count, items, false, TNI_KV_SAME_TYPE | TNI_KV_MAY_BE_SPARSE, s.keys);
    if (!st && !(st = alike(&s)) && !(st = codable(&s)))
        st = kv->dist ? dist_queue(&s, pull) : step_queue(&s);
    for (uint32_t i = 0; s.sums && i < count; i++)
        tni_array_release(s.sums[i]);
    tni_free((void *)s.keys);
    tni_free((void *)s.sums);
    tni_free((void *)s.gate);
    return tni_kv_quiet_end(q, tni_kv_push_failed(kv, st));
}

tn_status tni_kv_push(tni_kv *kv, uint32_t count, const tn_kv_item *items)
{
    return tni_kv_push_all(kv, count, items, false);
}
