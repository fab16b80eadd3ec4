/*
 * The store within a process: keys, and what calls do with them. A call looks at its whole list before it
 * queues anything, so a wrong item leaves all as it was.
 * Of dist types a key's value here is what this worker saw last of the servers' value.
 */
#include "kv/store.h"

#include "kv/dist.h"
#include "kv/group.h"
#include "kv/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tni_kv_store_type types[] = {
    {"local", NULL, false, false},          {"device", NULL, true, false},
    {"nccl", "nccl", true, false},          {"mpi", "mpi", false, false},
    {"dist_sync", NULL, false, true},       {"dist_async", NULL, false, true},
    {"dist_sync_device", NULL, true, true}, {"dist_async_device", NULL, true, true},
};
enum { TYPES = sizeof types / sizeof *types };

static tn_status type_find(const char *name, const tni_kv_store_type **out)
{
    const char *names[TYPES + 1] = {NULL};
    char near[192];

    for (size_t i = 0; i < TYPES; i++) {
        names[i] = types[i].name;
        *out = &types[i];
        if (!strcmp(names[i], name))
            return TN_OK;
    }
    tni_suggest_text(name, names, near, sizeof near);
    return tni_error(
        TN_E_KEY,
        "no store of type \"%.80s\"%s; there are local, device, nccl, mpi, dist_sync, dist_async and, "
        "with sums on devices, dist_sync_device, dist_async_device",
        name, near);
}

tn_status tni_kv_create(tni_context *c, const char *type, tni_kv **out)
{
    const tni_kv_store_type *t;
    tni_kv *kv;
    tn_status st;

    if ((st = type_find(type ? type : tni_option_text(c->options, "kvstore.type"), &t)))
        return st;
    if (!(kv = tni_zalloc(sizeof *kv)))
        return TN_E_NOMEM;
    kv->ctx = c;
    kv->type = t;
    if (!(st = tni_map_create(TNI_KV_KEYS_MAX, &kv->keys)) &&
        ((t->dist && (st = tni_kv_dist_open(kv))) ||
         (t->plugin && (st = tni_kv_group_open(c, t->plugin, &kv->group)))))
        tni_map_destroy(kv->keys);
    if (st)
        tni_free(kv);
    else
        *out = kv;
    return st;
}

static void residuals_drop(tni_kv_key *key)
{
    for (uint32_t i = 0; i < key->residual_count; i++)
        tni_array_release(key->residuals[i]);
    key->residual_count = 0;
}

void tni_kv_key_destroy(tni_kv_key *key)
{
    if (!key)
        return;
    residuals_drop(key);
    tni_free((void *)key->residuals);
    tni_array_release(key->value);
    tni_array_release(key->merged);
    tni_array_release(key->landing);
    tni_array_release(key->coded);
    tni_kv_destination_release(key->destination);
    tni_kv_param_fini(&key->slot);
    tni_free(key->name);
    tni_free(key);
}

void tni_kv_destroy(tni_kv *kv)
{
    size_t cursor = 0;
    void *key;

    if (!kv)
        return;
    tni_kv_dist_close(kv->dist);
    tni_kv_group_close(kv->group);
    while (tni_map_next(kv->keys, &cursor, NULL, &key))
        tni_kv_key_destroy(key);
    tni_map_destroy(kv->keys);
    tni_kv_optimizer_destroy(kv->optimizer);
    tni_free(kv);
}

/* ---- keys -------------------------------------------------------------------------------------------- */

typedef struct key_text {
    char digits[24];
    const char *text; /* in the map */
} key_text;

static void text_of(const tn_kv_item *item, key_text *out)
{
    (void)snprintf(out->digits, sizeof out->digits, "%" PRId64, item->number);
    out->text = item->name ? item->name : out->digits;
}

tn_status tni_kv_find(const tni_kv *kv, const tn_kv_item *item, tni_kv_key **out)
{
    key_text t;
    void *key = NULL;

    text_of(item, &t);
    if (kv->naming && (kv->naming == TNI_KV_TEXTS) != (item->name != NULL))
        return tni_error(TN_E_KEY, "key %.200s is a %s; all keys of this store are %s", t.text,
                         item->name ? "text" : "number", item->name ? "numbers" : "texts");
    if (!tni_map_get(kv->keys, t.text, &key))
        return tni_error(TN_E_KEY, "key %.200s has no value: init comes before", t.text);
    *out = key;
    return TN_OK;
}

static tn_status array_check(const tni_kv_key *key, const tn_kv_item *item, tni_array *a, uint32_t flags)
{
    key_text t;
    tn_status st;

    text_of(item, &t);
    if ((st = tni_array_shape_wait(a)))
        return st;
    if (a->storage_type != TN_STORAGE_DENSE &&
        !(flags & TNI_KV_MAY_BE_SPARSE && key->sparse && a->storage_type == TN_STORAGE_ROW_SPARSE))
        return tni_error(TN_E_UNSUPPORTED, "key %.200s: a %s array, where %s is wanted", t.text,
                         tni_storage_type_name(a->storage_type),
                         key->sparse ? "row_sparse or dense" : "dense");
    if (!tni_array_has_shape(key->value, a->ndim, a->shape))
        return tni_error(TN_E_SHAPE, "key %.200s: an array of another shape than its value", t.text);
    if (flags & TNI_KV_SAME_TYPE && a->dtype != key->value->dtype)
        return tni_error(TN_E_DTYPE, "key %.200s is %s, not %s", t.text, tni_dtype_name(key->value->dtype),
                         tni_dtype_name(a->dtype));
    return TN_OK;
}

/* Finds the key of each item, which must fit. `keys`: room for `count`, or NULL. */
tn_status tni_kv_keys_take(tni_kv *kv, uint32_t count, const tn_kv_item *items, bool outs, uint32_t flags,
                           tni_kv_key **keys)
{
    const uint64_t call = ++kv->calls;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < count && !st; i++) {
        const uint32_t arrays = outs ? items[i].out_count : items[i].value_count;
        tni_kv_key *key;
        key_text t;

        text_of(&items[i], &t);
        if ((st = tni_kv_find(kv, &items[i], &key)))
            break;
        if (key->mark == call)
            return tni_error(TN_E_KEY, "key %.200s is listed twice", t.text);
        key->mark = call;
        if (keys)
            keys[i] = key;
        if (!arrays || (flags & TNI_KV_ONE && arrays > 1))
            return tni_error(TN_E_ARG, "key %.200s: %u arrays, %s is wanted", t.text, arrays,
                             flags & TNI_KV_ONE ? "one" : "one or more");
        for (uint32_t k = 0; k < arrays && !st; k++)
            st = array_check(key, &items[i], outs ? items[i].outs[k] : items[i].values[k], flags);
    }
    return st;
}

tni_kv_quiet tni_kv_quiet_begin(void)
{
    const tni_kv_quiet q = {tni_scope_get()->recording};

    tni_scope_get()->recording = false;
    return q;
}

tn_status tni_kv_quiet_end(tni_kv_quiet q, tn_status st)
{
    tni_scope_get()->recording = q.recording;
    return st;
}

/* value = a, whatever its storage type; a failure of the value is forgotten, unless it is `held`. */
tn_status tni_kv_value_write(tni_kv *kv, tni_kv_key *key, tni_array *a, int32_t priority, bool held)
{
    tni_array *dense = NULL;
    tn_status st;

    if (a->storage_type == TN_STORAGE_DENSE)
        tni_array_retain(dense = a);
    else if ((st = tni_dense_give(kv->ctx, a, &dense)))
        return st;
    st = tni_kv_sum(key->value, 1, &dense, priority, held);
    tni_array_release(dense);
    return st;
}

/* ---- init, assign ------------------------------------------------------------------------------------ */

static tn_status key_make(tni_kv *kv, const tn_kv_item *item, tni_kv_key **out)
{
    tni_array *a = item->values[0];
    tni_device *device = a->storage->device;
    tni_kv_key *key = tni_zalloc(sizeof *key);
    tn_status st = key ? TN_OK : TN_E_NOMEM;

    if (st)
        return st;
    key->number = item->number;
    key->slot = (tni_kv_param_slot){.lr_mult = 1, .wd_mult = 1};
    key->sparse = a->storage_type == TN_STORAGE_ROW_SPARSE;
    if (item->name && !(key->name = tni_strdup(item->name)))
        st = TN_E_NOMEM;
    if (!st && (kv->dist || !kv->type->device || device->host))
        st = tni_device_get(kv->ctx->devices, "cpu", 0, &device);
    if (!st &&
        !(st = tni_array_create(kv->ctx->space, device, a->dtype, a->ndim, a->shape, "kvstore", &key->value)))
        st = tni_kv_value_write(kv, key, a, item->priority, false);
    if (st)
        tni_kv_key_destroy(key);
    else
        *out = key;
    return st;
}

static tn_status init_check(const tni_kv *kv, const tn_kv_item *item, int32_t naming)
{
    key_text t;
    tn_status st;

    text_of(item, &t);
    if (item->value_count != 1 || !item->values[0])
        return tni_error(TN_E_ARG, "key %.200s: %u first values, one is wanted", t.text, item->value_count);
    if ((kv->naming ? kv->naming : naming) != (item->name ? TNI_KV_TEXTS : TNI_KV_NUMBERS))
        return tni_error(TN_E_KEY, "key %.200s: texts and numbers as keys of one store", t.text);
    if (tni_map_get(kv->keys, t.text, NULL))
        return tni_error(TN_E_KEY, "key %.200s has a value already, or is listed twice", t.text);
    if (strlen(t.text) > TN_NAME_MAX)
        return tni_error(TN_E_KEY, "a key of more than %d bytes", TN_NAME_MAX);
    if ((st = tni_array_shape_wait(item->values[0])))
        return st;
    return item->values[0]->storage_type == TN_STORAGE_CSR
               ? tni_error(TN_E_UNSUPPORTED, "key %.200s: csr arrays are not stored", t.text)
               : TN_OK;
}

static void keys_remove(tni_kv *kv, uint32_t count, const tn_kv_item *items)
{
    for (uint32_t i = 0; i < count; i++) {
        void *key = NULL;
        key_text t;

        text_of(&items[i], &t);
        (void)tni_map_get(kv->keys, t.text, &key);
        (void)tni_map_remove(kv->keys, t.text);
        tni_kv_key_destroy(key);
    }
}

static int by_name(const void *a, const void *b)
{
    const tni_kv_key *x = *(tni_kv_key *const *)a, *y = *(tni_kv_key *const *)b;

    return x->name && y->name ? strcmp(x->name, y->name) : (x->number > y->number) - (x->number < y->number);
}

/* Worker 0's values of keys are those of all. */
static tn_status values_spread(tni_kv *kv, uint32_t count, tni_kv_key *const *keys)
{
    tni_array **values = tni_calloc((uint64_t)count + 1, sizeof(*values));
    tn_status st = values ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < count && !st; i++)
        values[i] = keys[i]->value;
    if (!st)
        st = tni_kv_group_queue(kv->group, count, keys, NULL, values);
    if (st)
        tni_kv_group_break(kv->group); /* the others come to all calls, and some are under way */
    tni_free((void *)values);
    return st;
}

/* The same of first values, of keys that all have; they are in the order of names. */
static tn_status group_init(tni_kv *kv, uint32_t count, tni_kv_key *const *keys)
{
    uint64_t hash = count;
    tn_status st;

    for (uint32_t i = 0; i < count; i++) {
        const tni_array *v = keys[i]->value;
        const int64_t head[] = {keys[i]->number, v->dtype, v->ndim};

        hash = tni_hash_bytes(hash, head, sizeof head);
        hash = tni_hash_bytes(hash, v->shape, (uint64_t)v->ndim * sizeof *v->shape);
        if (keys[i]->name)
            hash = tni_hash_bytes(hash, keys[i]->name, strlen(keys[i]->name));
    }
    st = tni_kv_group_agree(kv->group, "keys to init", hash);
    return st ? st : values_spread(kv, count, keys);
}

/* All workers give the keys of a call the same numbers, whatever their order in the list. */
static tn_status init_everywhere(tni_kv *kv, uint32_t count, const tn_kv_item *items)
{
    tni_kv_key **keys = tni_calloc((uint64_t)count + 1, sizeof(*keys));
    tn_status st = keys ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < count && !st; i++)
        st = tni_kv_find(kv, &items[i], &keys[i]);
    if (!st) {
        qsort((void *)keys, count, sizeof(*keys), by_name);
        st = kv->dist ? tni_kv_dist_init(kv->dist, count, keys) : group_init(kv, count, keys);
    }
    tni_free((void *)keys);
    return st;
}

tn_status tni_kv_init(tni_kv *kv, uint32_t count, const tn_kv_item *items)
{
    const int32_t naming = count && items[0].name ? TNI_KV_TEXTS : TNI_KV_NUMBERS;
    const tni_kv_quiet q = tni_kv_quiet_begin();
    tn_status st = TN_OK;
    uint32_t made = 0;

    for (; made < count && !st; made += !st) {
        tni_kv_key *key = NULL;
        key_text t;

        text_of(&items[made], &t);
        if ((st = init_check(kv, &items[made], naming)) || (st = key_make(kv, &items[made], &key)))
            break;
        if ((st = tni_map_set(kv->keys, t.text, key)))
            tni_kv_key_destroy(key);
    }
    if (!st && (kv->dist || kv->group))
        st = init_everywhere(kv, count, items);
    if (st)
        keys_remove(kv, made, items);
    else if (count)
        kv->naming = naming;
    return tni_kv_quiet_end(q, st);
}

uint32_t tni_kv_states_count(const tni_kv_key *key)
{
    uint32_t count = 0;

    while (count < TNI_KV_STATES && key->slot.states[count])
        count++;
    return count;
}

/* States that a failed step has left as they were are good again. Of dist types worker 0's values count. */
static tn_status assign_one(tni_kv *kv, tni_kv_key *key, const tn_kv_item *item)
{
    tn_status st;

    residuals_drop(key);
    if ((st = tni_kv_gate(kv->ctx, 0, tni_kv_states_count(key), key->slot.states)))
        return st;
    if (!kv->dist && (st = tni_kv_value_write(kv, key, item->values[0], item->priority, false)))
        return st;
    if (!kv->dist)
        return tni_kv_param_assigned(kv->optimizer, &key->slot, key->value);
    st = kv->dist->rank == 0 ? tni_kv_value_write(kv, key, item->values[0], item->priority, false)
                             : tni_kv_gate(kv->ctx, 0, 1, &key->value);
    return st ? st : tni_kv_dist_assign(kv->dist, key, item->priority);
}

tn_status tni_kv_assign(tni_kv *kv, uint32_t count, const tn_kv_item *items)
{
    const uint32_t flags = TNI_KV_SAME_TYPE | TNI_KV_ONE | TNI_KV_MAY_BE_SPARSE;
    tni_kv_key **keys = tni_calloc((uint64_t)count + 1, sizeof(*keys));
    const tni_kv_quiet q = tni_kv_quiet_begin();
    tn_status st = keys ? tni_kv_keys_take(kv, count, items, false, flags, keys) : TN_E_NOMEM;

    if (!st && kv->dist && !(st = tni_kv_dist_flush(kv->dist)))
        st = tni_kv_dist_resume(kv->dist);
    for (uint32_t i = 0; i < count && !st; i++)
        st = assign_one(kv, keys[i], &items[i]);
    if (!st && kv->dist)
        st = tni_kv_dist_assigned(kv->dist, count, keys);
    if (!st && kv->group)
        st = values_spread(kv, count, keys);
    tni_free((void *)keys);
    return tni_kv_quiet_end(q, st);
}

/* ---- pull -------------------------------------------------------------------------------------------- */

bool tni_kv_out_whole(const tni_kv_key *key, const tni_array *out)
{
    return out->flags & TNI_ARRAY_CONTIGUOUS && out->dtype == key->value->dtype &&
           out->storage->device->host && key->value->storage->device->host &&
           tni_array_bytes(out) == out->storage->bytes;
}

tn_status tni_kv_outs_write(tni_kv_key *key, const tn_kv_item *item)
{
    tni_kv_destination *d = key->destination;
    tn_status st = TN_OK;

    key->destination = NULL;
    for (uint32_t k = 0; k < item->out_count && !st && !key->in_place; k++) {
        tni_array *out = item->outs[k];

        if (!tni_array_writable(out))
            st = tni_error(TN_E_STATE, "the array is memory of others that is read only");
        else if (!tni_kv_out_whole(key, out))
            st = tni_array_copy(key->value, out);
        else if (d && item->out_count == 1)
            st = tni_kv_destination_push(d, out, item->priority);
        else
            st = tni_kv_sum(out, 1, (tni_array *const *)&key->value, item->priority, false);
    }
    key->in_place = false;
    tni_kv_destination_release(d);
    return st;
}

tn_status tni_kv_pull(tni_kv *kv, bool sparse, uint32_t count, const tn_kv_item *items)
{
    tni_kv_key **keys = tni_calloc((uint64_t)count + 1, sizeof(*keys));
    tn_status st = keys ? tni_kv_keys_take(kv, count, items, true, 0, keys) : TN_E_NOMEM;

    for (uint32_t i = 0; i < count && !st; i++)
        if ((sparse || !keys[i]->sparse) &&
            (!kv->dist || !(st = tni_kv_dist_pull(kv->dist, keys[i], items[i].priority))))
            st = tni_kv_outs_write(keys[i], &items[i]);
    tni_free((void *)keys);
    return st;
}

/* What came with the answers to a push, or to first values. */
static tn_status outs_all(tni_kv *kv, uint32_t count, const tn_kv_item *items)
{
    tni_kv_key *key = NULL;
    tn_status st = TN_OK;

    if (!kv->dist)
        return tni_kv_pull(kv, true, count, items);
    for (uint32_t i = 0; i < count && !st; i++)
        if (!(st = tni_kv_find(kv, &items[i], &key)))
            st = tni_kv_outs_write(key, &items[i]);
    return st;
}

tn_status tni_kv_pushpull(tni_kv *kv, uint32_t count, const tn_kv_item *items)
{
    tn_status st;

    if ((st = tni_kv_pull_check(kv, count, items)))
        return tni_kv_push_failed(kv, st);
    if ((st = tni_kv_push_all(kv, count, items, true)))
        return st;
    return outs_all(kv, count, items);
}

tn_status tni_kv_pull_check(tni_kv *kv, uint32_t count, const tn_kv_item *items)
{
    return tni_kv_keys_take(kv, count, items, true, 0, NULL);
}

tn_status tni_kv_rejoin(tni_kv *kv, uint32_t count, const tn_kv_item *items, uint64_t *steps)
{
    tni_kv_key **keys = tni_calloc((uint64_t)count + 1, sizeof(*keys));
    tn_status st = keys ? tni_kv_keys_take(kv, count, items, true, 0, keys) : TN_E_NOMEM;
    uint64_t made = TNI_KV_NEVER;

    if (!st && kv->dist)
        st = tni_kv_dist_rejoin(kv->dist, count, keys, &made);
    for (uint32_t i = 0; i < count && !st && made != TNI_KV_NEVER; i++)
        st = tni_kv_outs_write(keys[i], &items[i]);
    tni_free((void *)keys);
    if (!st)
        *steps = made == TNI_KV_NEVER ? 0 : made;
    return st;
}

tn_status tni_kv_broadcast(tni_kv *kv, uint32_t count, const tn_kv_item *items)
{
    const int32_t naming = kv->naming;
    tn_status st = tni_kv_init(kv, count, items);

    if (st)
        return st;
    if (!(st = tni_kv_pull_check(kv, count, items)))
        return outs_all(kv, count, items);
    keys_remove(kv, count, items);
    kv->naming = naming;
    return st;
}

/* ---- rows -------------------------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* The ids as they are asked for, each once, in rising order. [waits] */
static tn_status ids_read(const tni_kv_key *key, tni_array *ids, int64_t **out, int64_t *count)
{
    const int64_t rows = key->value->ndim ? key->value->shape[0] : 0;
    tni_array *whole = NULL;
    int64_t *list = NULL, kept = 0, all;
    tn_status st;

    if ((st = tni_array_shape_wait(ids)))
        return st;
    if (ids->ndim != 1 || ids->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED, "ids of rows are a dense vector");
    all = ids->shape[0];
    if (!(list = tni_calloc((uint64_t)all + 1, sizeof *list)))
        return TN_E_NOMEM;
    if (!(st = tni_array_create(ids->storage->space, ids->storage->device, TN_I64, 1, &all, "kvstore",
                                &whole)) &&
        !(st = tni_array_copy(ids, whole)))
        st = tni_array_read(whole, list, (uint64_t)all * sizeof *list);
    tni_array_release(whole);
    qsort(list, (size_t)all, sizeof *list, by_number);
    if (!st && all && (list[0] < 0 || list[all - 1] >= rows))
        st = tni_error(TN_E_ARG, "row %" PRId64 " of %" PRId64, list[0] < 0 ? list[0] : list[all - 1], rows);
    for (int64_t i = 0; i < all && !st; i++)
        if (!kept || list[kept - 1] != list[i])
            list[kept++] = list[i];
    *count = kept;
    if (st)
        tni_free(list);
    else
        *out = list;
    return st;
}

/* Of dist types these rows come from servers; else out of the value, by way of the host. With an error there
 * may be an `out`, too. */
static tn_status rows_take(tni_kv *kv, tni_kv_key *key, tni_array *ids, int32_t priority, tni_array **out)
{
    tni_array *v = key->value, *host = NULL, *rows = NULL;
    int64_t *list = NULL, count = 0;
    tni_device *cpu = NULL;
    tn_status st;

    if ((st = tni_device_get(v->storage->space->devices, "cpu", 0, &cpu)) ||
        (st = ids_read(key, ids, &list, &count)))
        return st;
    if (v->storage->device->host)
        tni_array_retain(host = v);
    else if (!(st = tni_array_create(v->storage->space, cpu, v->dtype, v->ndim, v->shape, "kvstore", &host)))
        st = tni_array_copy(v, host);
    if (!st && !(st = tni_kv_rows_of(host, list, count, kv->dist ? &rows : NULL, out)) && kv->dist)
        st = tni_kv_dist_pull_rows(kv->dist, key, list, (uint64_t)count, rows, priority);
    tni_array_release(rows);
    tni_array_release(host);
    tni_free(list);
    return st;
}

tn_status tni_kv_rows(tni_kv *kv, uint32_t count, const tn_kv_item *items, tni_array **out)
{
    tni_array **made;
    uint64_t all = 0, at = 0;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < count; i++)
        all += items[i].value_count;
    if (!(made = tni_calloc(all + 1, sizeof(*made))))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < count && !st; i++) {
        tni_kv_key *key = NULL;

        if (!(st = tni_kv_find(kv, &items[i], &key)) && !key->sparse)
            st = tni_error(TN_E_UNSUPPORTED, "rows of a key whose value is dense");
        for (uint32_t k = 0; k < items[i].value_count && !st; k++, at += !st)
            st = rows_take(kv, key, items[i].values[k], items[i].priority, &made[at]);
    }
    for (uint64_t i = 0; i < all; i++)
        if (st)
            tni_array_release(made[i]);
        else
            out[i] = made[i];
    tni_free((void *)made);
    return st;
}

/* ---- updates ----------------------------------------------------------------------------------------- */

tn_status tni_kv_optimizer_take(tni_kv *kv, const char *name, const char *const *params)
{
    tni_kv_optimizer *made = NULL;
    size_t cursor = 0;
    void *found;
    tn_status st;

    if (kv->updater)
        return tni_error(TN_E_STATE, "the store has an updater");
    if (name && (st = tni_kv_optimizer_create(kv->ctx, name, params, &made)))
        return st;
    if (kv->dist && ((st = tni_kv_dist_whole(kv->dist, made, NULL)) ||
                     (st = tni_kv_dist_agree(kv->dist, "optimizer", name ? name : "", params)))) {
        tni_kv_optimizer_destroy(made);
        return st;
    }
    tni_kv_optimizer_destroy(kv->optimizer);
    kv->optimizer = made;
    if (kv->dist)
        kv->dist->told = kv->dist->knows;
    while (tni_map_next(kv->keys, &cursor, NULL, &found)) {
        tni_kv_key *key = found;

        tni_kv_param_fini(&key->slot);
        key->told = kv->dist ? kv->dist->knows : 0;
    }
    return TN_OK;
}

/* A parameter of all keys. */
static tn_status param_all(tni_kv *kv, const char *param, double value)
{
    const double before = tni_kv_optimizer_get(kv->optimizer, param);
    const tn_status st = tni_kv_optimizer_set(kv->optimizer, param, value);

    return st || !kv->dist ? st : tni_kv_dist_change(kv->dist, NULL, param, value, value == before);
}

tn_status tni_kv_param(tni_kv *kv, const tn_kv_item *item, const char *param, double value)
{
    const bool steps = !strcmp(param, "steps");
    tni_kv_key *key = NULL;
    double lr, wd;
    tn_status st;

    if (!kv->optimizer)
        return tni_error(TN_E_STATE, "the store has no optimizer");
    if (!item)
        return param_all(kv, param, value);
    if ((st = tni_kv_find(kv, item, &key)))
        return st;
    lr = key->slot.lr_mult;
    wd = key->slot.wd_mult;
    if (!steps && (st = tni_kv_factor_set(param, value, &key->slot.lr_mult, &key->slot.wd_mult)))
        return st;
    if (steps && !(value >= 0 && value <= 9007199254740992.0))
        return tni_error(TN_E_ATTR, "steps is %g, a number from 0 to 2^53 is needed", value);
    if (steps)
        key->slot.steps = (uint64_t)value;
    return kv->dist ? tni_kv_dist_change(kv->dist, key, param, value,
                                         !steps && lr == key->slot.lr_mult && wd == key->slot.wd_mult)
                    : TN_OK;
}

tn_status tni_kv_compress(tni_kv *kv, const char *const *params)
{
    tni_kv_codec codec;
    tn_status st;

    if (!kv->type->device && !kv->dist)
        return tni_error(TN_E_UNSUPPORTED, "a store of type %s does not compress; type device does",
                         kv->type->name);
    if (kv->codec.bits)
        return tni_error(TN_E_STATE, "compression is set already");
    if ((st = tni_kv_codec_parse(params, &codec)) ||
        (kv->dist && (st = tni_kv_dist_agree(kv->dist, "compress", NULL, params))))
        return st;
    kv->codec = codec;
    return TN_OK;
}

/* ---- the others -------------------------------------------------------------------------------------- */

tn_status tni_kv_barrier(tni_kv *kv)
{
    return kv->dist ? tni_kv_dist_barrier(kv->dist) : kv->group ? tni_kv_group_barrier(kv->group) : TN_OK;
}

tn_status tni_kv_end(tni_kv *kv)
{
    return kv->dist ? tni_kv_dist_end(kv->dist) : tni_kv_barrier(kv);
}

tn_status tni_kv_program(tni_kv *kv, int32_t head, const char *body)
{
    return kv->dist ? tni_kv_dist_program(kv->dist, head, body) : TN_OK;
}

void tni_kv_sizes(const tni_kv *kv, uint32_t *rank, uint32_t *workers, uint32_t *servers)
{
    if (kv->group) {
        *rank = kv->group->rank;
        *workers = kv->group->ranks;
    }
    if (!kv->dist)
        return;
    *rank = kv->dist->rank;
    *workers = tni_kv_process_workers(kv->dist->process);
    *servers = tni_kv_process_servers(kv->dist->process);
}

uint32_t tni_kv_dead(const tni_kv *kv, uint32_t groups)
{
    uint32_t count = 0;

    for (uint32_t role = TNI_KV_SCHEDULER; kv->dist && role <= TNI_KV_WORKER; role++)
        if (groups & 1u << role)
            count += tni_kv_process_dead(kv->dist->process, role);
    return count;
}
