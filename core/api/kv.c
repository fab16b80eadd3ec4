/* tenon/kv.h. A tn_kv is the struct of room kv. */
#include "tenon/kv.h"

#include <string.h>

#include "api/api.h"
#include "kv/kv.h"

tn_status tn_kv_create(tn_ctx *ctx, const char *type, tn_kv **out)
{
    return ctx && out ? tni_kv_create(ctx, type, out) : api_null(__func__, "ctx or out");
}

void tn_kv_destroy(tn_kv *kv)
{
    tni_kv_destroy(kv);
}

/* ---- values -------------------------------------------------------------------------------------- */

static tn_status list_check(const char *function, const tn_kv *kv, uint32_t count, tn_array *const *arrays)
{
    if (count > TNI_KV_VALUES_MAX)
        return tni_error(TN_E_ARG, "%s: %u arrays for a key, at most %u", function, count, TNI_KV_VALUES_MAX);
    for (uint32_t i = 0; i < count && arrays; i++)
        if (!arrays[i])
            return api_null(function, "an array");
    return api_arrays(function, kv->ctx, count, arrays);
}

#define VALUES 1u
#define OUTS 2u

/* `lists`: which of the two items may have. */
static tn_status items_check(const char *function, const tn_kv *kv, uint32_t count, const tn_kv_item *items,
                             uint32_t lists)
{
    tn_status st = TN_OK;

    if (!kv || (count && !items))
        return api_null(function, "kv or items");
    if (count > TNI_KV_KEYS_MAX)
        return tni_error(TN_E_ARG, "%s: %u keys, at most %u", function, count, TNI_KV_KEYS_MAX);
    for (uint32_t i = 0; i < count && !st; i++) {
        const tn_kv_item *it = &items[i];

        if (it->reserved || (it->value_count && !(lists & VALUES)) || (it->out_count && !(lists & OUTS)))
            return tni_error(TN_E_ARG, "%s: item %u has arrays that this call does not take", function, i);
        if (!(st = list_check(function, kv, it->value_count, it->values)))
            st = list_check(function, kv, it->out_count, it->outs);
    }
    return st;
}

tn_status tn_kv_init(tn_kv *kv, uint32_t count, const tn_kv_item *items)
{
    const tn_status st = items_check(__func__, kv, count, items, VALUES);

    return st ? st : tni_kv_init(kv, count, items);
}

tn_status tn_kv_assign(tn_kv *kv, uint32_t count, const tn_kv_item *items)
{
    const tn_status st = items_check(__func__, kv, count, items, VALUES);

    return st ? st : tni_kv_assign(kv, count, items);
}

tn_status tn_kv_push(tn_kv *kv, uint32_t count, const tn_kv_item *items)
{
    const tn_status st = items_check(__func__, kv, count, items, VALUES);

    return st ? st : tni_kv_push(kv, count, items);
}

tn_status tn_kv_pull(tn_kv *kv, uint32_t flags, uint32_t count, const tn_kv_item *items)
{
    const tn_status st = items_check(__func__, kv, count, items, OUTS);

    if (st)
        return st;
    if (flags & ~TN_KV_SPARSE)
        return tni_error(TN_E_ARG, "%s: unknown flags 0x%x", __func__, flags);
    return tni_kv_pull(kv, flags & TN_KV_SPARSE, count, items);
}

tn_status tn_kv_rejoin(tn_kv *kv, uint32_t count, const tn_kv_item *items, uint64_t *steps)
{
    const tn_status st = items_check(__func__, kv, count, items, OUTS);

    if (st)
        return st;
    return steps ? tni_kv_rejoin(kv, count, items, steps) : api_null(__func__, "steps");
}

tn_status tn_kv_pushpull(tn_kv *kv, uint32_t count, const tn_kv_item *items)
{
    const tn_status st = items_check(__func__, kv, count, items, VALUES | OUTS);

    return st ? st : tni_kv_pushpull(kv, count, items);
}

tn_status tn_kv_broadcast(tn_kv *kv, uint32_t count, const tn_kv_item *items)
{
    const tn_status st = items_check(__func__, kv, count, items, VALUES | OUTS);

    return st ? st : tni_kv_broadcast(kv, count, items);
}

tn_status tn_kv_row_sparse_pull(tn_kv *kv, uint32_t count, const tn_kv_item *items, tn_array **out)
{
    const tn_status st = items_check(__func__, kv, count, items, VALUES);

    if (st)
        return st;
    return out ? tni_kv_rows(kv, count, items, out) : api_null(__func__, "out");
}

/* ---- updates ------------------------------------------------------------------------------------- */

tn_status tn_kv_set_optimizer(tn_kv *kv, const char *name, const char *const *params)
{
    return kv ? tni_kv_optimizer_take(kv, name, params) : api_null(__func__, "kv");
}

tn_status tn_kv_set_param(tn_kv *kv, const tn_kv_item *key, const char *param, double value)
{
    if (!kv || !param)
        return api_null(__func__, "kv or param");
    return tni_kv_param(kv, key, param, value);
}

tn_status tn_kv_set_updater(tn_kv *kv, tn_kv_updater_fn fn, void *arg)
{
    if (!kv)
        return api_null(__func__, "kv");
    if (kv->optimizer)
        return tni_error(TN_E_STATE, "%s: the store has an optimizer", __func__);
    if (fn && kv->dist)
        return tni_error(TN_E_UNSUPPORTED, "%s: servers of a store of type %s take no code", __func__,
                         kv->type->name);
    kv->updater = fn;
    kv->updater_arg = arg;
    return TN_OK;
}

tn_status tn_kv_save_states(tn_kv *kv, const char *path)
{
    return kv && path ? tni_kv_save(kv, path) : api_null(__func__, "kv or path");
}

tn_status tn_kv_load_states(tn_kv *kv, const char *path)
{
    return kv && path ? tni_kv_load(kv, path) : api_null(__func__, "kv or path");
}

tn_status tn_kv_state(tn_kv *kv, const tn_kv_item *key, uint32_t index, tn_array **out, uint64_t *steps)
{
    return kv && key && out ? tni_kv_state_get(kv, key, index, out, steps)
                            : api_null(__func__, "kv, key or out");
}

tn_status tn_kv_set_state(tn_kv *kv, const tn_kv_item *key, uint64_t steps)
{
    const tn_status st = key ? items_check(__func__, kv, 1, key, VALUES) : api_null(__func__, "key");

    return st ? st : tni_kv_state_set(kv, key, steps);
}

tn_status tn_kv_set_compression(tn_kv *kv, const char *const *params)
{
    return kv && params ? tni_kv_compress(kv, params) : api_null(__func__, "kv or params");
}

/* ---- the others ---------------------------------------------------------------------------------- */

tn_status tn_kv_info_get(tn_kv *kv, tn_kv_info *out)
{
    tn_kv_info info = {.workers = 1};

    if (!kv || !out)
        return api_null(__func__, "kv or out");
    tni_kv_sizes(kv, &info.rank, &info.workers, &info.servers);
    info.keys = tni_map_count(kv->keys);
    info.type = kv->type->name;
    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

tn_status tn_kv_dead_nodes(tn_kv *kv, uint32_t groups, uint32_t timeout_ms, uint32_t *count)
{
    (void)timeout_ms; /* a process alone is never silent */
    if (!kv || !count)
        return api_null(__func__, "kv or count");
    if (groups & ~(TN_KV_SCHEDULER | TN_KV_SERVERS | TN_KV_WORKERS))
        return tni_error(TN_E_ARG, "%s: unknown groups 0x%x", __func__, groups);
    *count = tni_kv_dead(kv, groups);
    return TN_OK;
}

tn_status tn_kv_barrier(tn_kv *kv)
{
    return kv ? tni_kv_barrier(kv) : api_null(__func__, "kv");
}

tn_status tn_kv_end(tn_kv *kv)
{
    return kv ? tni_kv_end(kv) : api_null(__func__, "kv");
}

tn_status tn_kv_check_drift(tn_kv *kv, uint64_t round, uint32_t count, const tn_kv_item *items)
{
    const tn_status st = items_check(__func__, kv, count, items, VALUES);

    return st ? st : tni_kv_drift(kv, round, count, items);
}

#define COMMAND_BYTES_MAX 65536u

tn_status tn_kv_command(tn_kv *kv, int32_t head, const char *body)
{
    if (!kv || !body)
        return api_null(__func__, "kv or body");
    if (head < 0 || strlen(body) > COMMAND_BYTES_MAX)
        return tni_error(TN_E_ARG, "%s: head %d with %zu bytes; 0 or more, with at most %u", __func__, head,
                         strlen(body), COMMAND_BYTES_MAX);
    return tni_kv_program(kv, head, body);
}

tn_status tn_kv_run_role(tn_ctx *ctx, tn_kv_command_fn fn, void *arg, int32_t *ran)
{
    return ctx && ran ? tni_kv_run_role(ctx, fn, arg, ran) : api_null(__func__, "ctx or ran");
}

tn_status tn_kv_report(tn_ctx *ctx, uint32_t timeout_ms, char **json)
{
    tni_str text;
    tn_status st;

    if (!ctx || !json)
        return api_null(__func__, "ctx or json");
    tni_str_init(&text, TN_JSON_BYTES_MAX);
    if (!(st = tni_kv_ask(ctx, timeout_ms, &text)))
        st = tni_str_take(&text, json);
    tni_str_fini(&text);
    return st;
}
