/* Files of an optimizer's states: a .params file of "state:K:KEY", "steps:KEY" and "optimizer:NAME". */
#include "kv/kv.h"

#include "io/io.h"
#include "kv/dist.h"

#include <inttypes.h>

static tn_status state_of(tni_kv *kv, tni_kv_key *key, uint32_t index, tni_array **out)
{
    uint32_t count;
    tn_status st;

    if (!kv->optimizer)
        return tni_error(TN_E_STATE, "the store has no optimizer");
    if (index >= (count = tni_kv_optimizer_states(kv->optimizer, key->value->dtype)))
        return tni_error(TN_E_ARG, "state %u of optimizer %s, which has %u", index,
                         tni_kv_optimizer_name(kv->optimizer), count);
    if (!(st = tni_kv_param_states(kv->optimizer, &key->slot, key->value)))
        tni_array_retain(*out = key->slot.states[index]);
    return st;
}

/* What servers keep of a key comes into its slot. */
static tn_status state_fetch(tni_kv *kv, tni_kv_key *key)
{
    return kv->dist && kv->optimizer ? tni_kv_dist_fetch(kv->dist, key) : TN_OK;
}

tn_status tni_kv_state_get(tni_kv *kv, const tn_kv_item *item, uint32_t index, tni_array **out,
                           uint64_t *steps)
{
    tni_kv_key *key;
    tn_status st;

    if ((st = tni_kv_find(kv, item, &key)) || (st = state_fetch(kv, key)) ||
        (st = state_of(kv, key, index, out)))
        return st;
    if (steps)
        *steps = key->slot.steps;
    return TN_OK;
}

tn_status tni_kv_state_set(tni_kv *kv, const tn_kv_item *item, uint64_t steps)
{
    tni_kv_key *key;
    uint32_t wanted;
    tn_status st;

    if (!kv->optimizer)
        return tni_error(TN_E_STATE, "the store has no optimizer that would take states");
    if ((st = tni_kv_find(kv, item, &key)))
        return st;
    wanted = tni_kv_optimizer_states(kv->optimizer, key->value->dtype);
    if (item->value_count != wanted)
        return tni_error(TN_E_ARG, "%u states for optimizer %s, which has %u", item->value_count,
                         tni_kv_optimizer_name(kv->optimizer), wanted);
    if ((st = tni_kv_param_states(kv->optimizer, &key->slot, key->value)))
        return st;
    for (uint32_t k = 0; k < wanted; k++) {
        const tni_array *to = key->slot.states[k];

        if ((st = tni_array_shape_wait(item->values[k])))
            return st;
        if (item->values[k]->storage_type != TN_STORAGE_DENSE ||
            !tni_array_has_shape(to, item->values[k]->ndim, item->values[k]->shape))
            return tni_error(TN_E_SHAPE, "state %u is of another shape than its key's value", k);
    }
    for (uint32_t k = 0; k < wanted && !st; k++)
        if (item->values[k] != key->slot.states[k])
            st = tni_array_copy(item->values[k], key->slot.states[k]);
    key->slot.steps = st ? key->slot.steps : steps;
    return st || !kv->dist ? st : tni_kv_dist_return(kv->dist, key);
}

/* "state:0:KEY", or with another word; -1: no number. */
static tn_status entry_name(const char *word, int64_t index, const char *key, tni_str *out)
{
    tni_str_init(out, TN_NAME_MAX + 64);
    return index < 0 ? tni_str_addf(out, "%s:%s", word, key)
                     : tni_str_addf(out, "%s:%" PRId64 ":%s", word, index, key);
}

static tn_status entry_add(tni_params *p, const char *word, int64_t index, const char *key, tni_array *a)
{
    tni_str name;
    tn_status st = entry_name(word, index, key, &name);

    if (!st)
        st = tni_params_add(p, name.text, a);
    tni_str_fini(&name);
    return st;
}

static tn_status number_add(tni_kv *kv, tni_params *p, const char *word, const char *key, uint64_t number)
{
    const int64_t one = 1, value = (int64_t)number;
    tni_array *a = NULL;
    tni_device *cpu;
    tn_status st;

    if (!(st = tni_device_get(kv->ctx->devices, "cpu", 0, &cpu)) &&
        !(st = tni_array_create(kv->ctx->space, cpu, TN_I64, 1, &one, "kvstore", &a)) &&
        !(st = tni_array_first_write(a, &value, sizeof value)))
        st = entry_add(p, word, -1, key, a);
    tni_array_release(a);
    return st;
}

tn_status tni_kv_save(tni_kv *kv, const char *path)
{
    tni_params *p = NULL;
    size_t cursor = 0;
    const char *name;
    void *found;
    tn_status st;

    if (!kv->optimizer)
        return tni_error(TN_E_STATE, "the store has no optimizer whose states could be saved");
    if (!(st = tni_params_create(&p)))
        st = number_add(kv, p, "optimizer", tni_kv_optimizer_name(kv->optimizer), 1);
    while (!st && tni_map_next(kv->keys, &cursor, &name, &found)) {
        tni_kv_key *key = found;

        if ((st = state_fetch(kv, key)))
            break;
        st = number_add(kv, p, "steps", name, key->slot.steps);
        for (uint32_t k = 0; k < tni_kv_optimizer_states(kv->optimizer, key->value->dtype) && !st; k++) {
            tni_array *a = NULL;

            if (!(st = state_of(kv, key, k, &a)))
                st = entry_add(p, "state", k, name, a);
            tni_array_release(a);
        }
    }
    if (!st)
        st = tni_params_save(p, path);
    tni_params_destroy(p);
    return st;
}

/* The entry, borrowed. */
static tn_status entry_get(const tni_params *p, const char *word, int64_t index, const char *key,
                           tni_array **out)
{
    tni_str name;
    tn_status st = entry_name(word, index, key, &name);

    if (!st && tni_params_get(p, name.text, out))
        st = tni_error(TN_E_FORMAT, "the file has no entry %.200s", name.text);
    tni_str_fini(&name);
    return st;
}

static tn_status steps_get(const tni_params *p, const char *key, int64_t *out)
{
    tni_array *a;
    tn_status st = entry_get(p, "steps", -1, key, &a);

    if (!st && (a->dtype != TN_I64 || tni_array_count(a) != 1 || a->storage_type != TN_STORAGE_DENSE))
        st = tni_error(TN_E_FORMAT, "steps:%.200s is no int64", key);
    if (!st && !(st = tni_array_read(a, out, sizeof *out)) && *out < 0)
        st = tni_error(TN_E_FORMAT, "steps:%.200s is %" PRId64, key, *out);
    return st;
}

/* `take` false: looks; true: copies. */
static tn_status key_load(tni_kv *kv, const tni_params *p, const char *name, tni_kv_key *key, bool take)
{
    int64_t steps = 0;
    tn_status st = steps_get(p, name, &steps);

    for (uint32_t k = 0; k < tni_kv_optimizer_states(kv->optimizer, key->value->dtype) && !st; k++) {
        tni_array *from, *to = NULL;

        if ((st = entry_get(p, "state", k, name, &from)) || (st = state_of(kv, key, k, &to)))
            break;
        if (from->storage_type != TN_STORAGE_DENSE || !tni_array_has_shape(to, from->ndim, from->shape))
            st = tni_error(TN_E_FORMAT, "state:%u:%.200s is of another shape than the key's value", k, name);
        else if (take)
            st = tni_array_copy(from, to);
        tni_array_release(to);
    }
    if (st || !take)
        return st;
    key->slot.steps = (uint64_t)steps;
    return kv->dist ? tni_kv_dist_return(kv->dist, key) : TN_OK;
}

tn_status tni_kv_load(tni_kv *kv, const char *path)
{
    tni_params *p = NULL;
    tni_device *cpu;
    tni_array *a;
    tn_status st;

    if (!kv->optimizer)
        return tni_error(TN_E_STATE, "the store has no optimizer that would take states");
    if (!(st = tni_device_get(kv->ctx->devices, "cpu", 0, &cpu)) &&
        !(st = tni_params_load(kv->ctx->space, cpu, path, &p)))
        st = entry_get(p, "optimizer", -1, tni_kv_optimizer_name(kv->optimizer), &a);
    for (int pass = 0; pass < 2; pass++) {
        size_t cursor = 0;
        const char *name;
        void *key;

        while (!st && tni_map_next(kv->keys, &cursor, &name, &key))
            st = key_load(kv, p, name, key, pass == 1);
    }
    tni_params_destroy(p);
    return st;
}
