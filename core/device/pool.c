/*
 * Blocks of memory: a lock, owners and the way out of an exhausted pool around each plugin's tn_pool.
 *
 * A pool belongs to one (device, memory kind) and is made at its first block. Its lock is held in every call
 * of it and never while waiting. Out of memory: trim the device's pools, try again, ask for relief (room
 * engine waits for pending work), trim and try once more, then say who owns what.
 */
#include <string.h>

#include "device/internal.h"

#define POOL_NAME_BYTES 64
#define OWNERS_TOLD 4

/* ---- which pool ------------------------------------------------------------------------------------ */

static const tn_pool_ops *pool_find(tni_device_set *s, const char *name, tni_plugin **plugin)
{
    const tn_capability *table;

    *plugin = NULL;
    if (!strcmp(name, "none"))
        return &tni_pool_none;
    for (size_t i = 0; s->registry && tni_registry_capability(s->registry, TN_KIND_POOL, i, &table, plugin);
         i++) {
        const tn_pool_ops *ops = (const tn_pool_ops *)(const void *)table;

        if (!strcmp(table->id, name) && table->struct_size >= TN_END(tn_pool_ops, destroy) && ops->create &&
            ops->alloc && ops->free && ops->trim && ops->stats && ops->destroy)
            return ops;
    }
    *plugin = NULL;
    return NULL;
}

static tn_status pool_unknown(tni_device_set *s, const char *type, const char *name)
{
    char list[256] = "none";
    const tn_capability *table;
    tni_plugin *plugin;
    size_t used = strlen(list);

    (void)tni_registry_load_providers(s->registry, "pool", NULL); /* to name what there is */
    for (size_t i = 0; tni_registry_capability(s->registry, TN_KIND_POOL, i, &table, &plugin); i++)
        if (!strcmp(table->id, name))
            return tni_error(TN_E_DEVICE, "the table of pool '%s' lacks a function it must have", name);
        else if (used + strlen(table->id) + 3 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, ", %s", table->id);
    return tni_error(TN_E_KEY, "memory.%s.pool is '%s', but the installed pools are: %s", type, name, list);
}

/* `auto` is segment where a plugin provides it, else none. */
static tn_status pool_choose(tni_device *d, const char *wanted, const tn_pool_ops **ops, tni_plugin **plugin)
{
    tni_device_set *s = d->set;
    bool any = !wanted || !strcmp(wanted, "auto");
    const char *name = any ? "segment" : wanted;
    tn_status st;

    if (s->registry && strcmp(name, "none") &&
        (st = tni_registry_load_providers(s->registry, "pool", name)) && !any)
        return st;
    if (!(*ops = pool_find(s, name, plugin)) && any)
        *ops = pool_find(s, "none", plugin);
    if (*ops)
        return TN_OK;
    return s->registry
               ? pool_unknown(s, d->type, name)
               : tni_error(TN_E_KEY, "memory.%s.pool is '%s', but no plugins are loaded", d->type, name);
}

static tn_status pool_create(tni_device *d, int32_t memory, tni_pool **out)
{
    tni_pool *p = tni_zalloc(sizeof *p);
    tni_plugin *plugin = NULL;
    const char *wanted;
    tn_err err = {0};
    tn_status st = TN_E_NOMEM;

    if (!p)
        return TN_E_NOMEM;
    p->device = d;
    p->memory = memory;
    if ((st = tni_mutex_init(&p->lock)) || (st = tni_mutex_init(&p->raw_lock)) ||
        (st = tni_pool_source_init(p)))
        goto cleanup;
    wanted = memory == TN_MEMORY_SHARED || memory == TNI_MEMORY_APART ? "none" : p->source.option(p, "pool");
    if ((st = pool_choose(d, wanted, &p->ops, &plugin)))
        goto cleanup;
    p->name = p->ops->head.id;
    if ((st = p->ops->create(plugin ? plugin->self : NULL, &p->source, &p->impl, &err))) {
        st = tni_error_take(st, &err, p->name);
        goto cleanup;
    }
    *out = p;
    return TN_OK;

cleanup:
    tni_free(p);
    return st;
}

tn_status tni_pool_open(tni_device *d, int32_t memory, tni_pool **out)
{
    tni_pool *p;
    uint32_t before;
    tn_status st = TN_OK;

    if (memory < 0 || memory >= (d->host ? TNI_MEMORY_KINDS : TNI_MEMORY_APART))
        return tni_error(TN_E_ARG, "memory kind %d, but kinds are 0 to %d", memory, TN_MEMORY_HOST);
    if (d->host && (memory == TN_MEMORY_HOST || memory == TN_MEMORY_PINNED))
        memory = TN_MEMORY_DEVICE; /* one and the same on the host */
    if (!d->host && memory == TN_MEMORY_HOST) {
        if ((st = tni_device_get(d->set, "cpu", 0, &d)))
            return st;
        memory = TN_MEMORY_DEVICE;
    }
    if ((p = __atomic_load_n(&d->pools[memory], __ATOMIC_ACQUIRE))) {
        *out = p;
        return TN_OK;
    }
    if ((st = tni_device_opening_begin(d->set, OPENING_POOL, d->type, &before)))
        return st;
    if (!(p = d->pools[memory]) && !(st = pool_create(d, memory, &p)))
        __atomic_store_n(&d->pools[memory], p, __ATOMIC_RELEASE);
    tni_device_opening_end(d->set, before);
    if (!st)
        *out = p;
    return st;
}

void tni_pool_close(tni_pool *p)
{
    tn_pool_stats stats = {.struct_size = (uint32_t)TN_END(tn_pool_stats, releases)};
    void *data;
    uint64_t bytes;

    if (!p)
        return;
    tni_pool_stats(p, &stats);
    if (stats.live_blocks)
        tni_logf(p->device->set->log, TN_LOG_WARNING, "%llu blocks of %s:%d, %llu bytes, were never freed",
                 (unsigned long long)stats.live_blocks, p->device->type, p->device->index,
                 (unsigned long long)stats.live_bytes);
    p->ops->destroy(p->impl);
    while (tni_raw_any(&p->raw, &data, &bytes))
        p->source.free(p, data);
    tni_raw_fini(&p->raw);
    tni_mutex_fini(&p->raw_lock);
    tni_mutex_fini(&p->lock);
    tni_free(p);
}

/* ---- owners ---------------------------------------------------------------------------------------- */

static pool_owner *owner_find(tni_pool *p, const char *name)
{
    for (uint32_t i = 0; i < p->owner_count; i++)
        if (p->owners[i].name == name || !strcmp(p->owners[i].name, name))
            return &p->owners[i];
    if (p->owner_count == TNI_OWNERS_MAX)
        return &p->owners[TNI_OWNERS_MAX - 1];
    p->owners[p->owner_count].name = p->owner_count == TNI_OWNERS_MAX - 1 ? "other" : name;
    p->owners[p->owner_count].bytes = 0;
    return &p->owners[p->owner_count++];
}

static void size_text(uint64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    uint64_t tenths = bytes * 10;
    size_t u = 0;

    if (bytes > UINT64_MAX / 16)
        tenths = UINT64_MAX;
    for (; tenths >= 10240 && u < 4; u++)
        tenths /= 1024;
    if (u == 0)
        (void)snprintf(out, size, "%llu B", (unsigned long long)bytes);
    else
        (void)snprintf(out, size, "%llu.%llu %s", (unsigned long long)(tenths / 10),
                       (unsigned long long)(tenths % 10), units[u]);
}

static void owners_text(tni_pool *p, char *out, size_t size)
{
    bool listed[TNI_OWNERS_MAX] = {false};
    size_t used = 0;

    out[0] = '\0';
    for (int round = 0; round < OWNERS_TOLD; round++) {
        uint32_t best = TNI_OWNERS_MAX;
        char text[32];

        for (uint32_t i = 0; i < p->owner_count; i++)
            if (!listed[i] && p->owners[i].bytes &&
                (best == TNI_OWNERS_MAX || p->owners[i].bytes > p->owners[best].bytes))
                best = i;
        if (best == TNI_OWNERS_MAX || used >= size)
            return;
        listed[best] = true;
        size_text(p->owners[best].bytes, text, sizeof text);
        used += (size_t)snprintf(out + used, size - used, "%s%.40s %s", round ? ", " : " (",
                                 p->owners[best].name, text);
    }
}

/* ---- allocation ------------------------------------------------------------------------------------ */

static tn_status block_try(tni_pool *p, uint64_t bytes, tn_stream *stream, tni_block *out)
{
    tn_err err;
    tn_status st;

    err.native = 0;
    err.number = 0;
    err.message[0] = '\0';
    tni_mutex_lock(&p->lock);
    st = p->ops->alloc(p->impl, bytes, stream, &out->memory, &err);
    if (!st && !out->memory.data)
        st = tn_fail(&err, TN_E_INTERNAL, "gave no memory, but reported success");
    if (!st && (out->memory.reserved[0] | out->memory.reserved[1] | out->memory.reserved[2])) {
        p->ops->free(p->impl, &out->memory, stream);
        st = tn_fail(&err, TN_E_UNSUPPORTED, "sets `reserved` of tn_memory, which has no meaning yet");
    }
    if (!st)
        owner_find(p, out->owner)->bytes += out->memory.block_bytes;
    tni_mutex_unlock(&p->lock);
    return st ? tni_error_take(st, &err, p->name) : TN_OK;
}

static tn_status block_exhausted(tni_pool *p, uint64_t bytes, const char *owner)
{
    tn_pool_stats stats = {.struct_size = (uint32_t)TN_END(tn_pool_stats, releases)};
    char wanted[32], live[32], cached[32], largest[32], left[32], owners[200];
    uint64_t free_bytes = 0, total_bytes = 0;

    tni_mutex_lock(&p->lock);
    p->ops->stats(p->impl, &stats);
    owners_text(p, owners, sizeof owners);
    tni_mutex_unlock(&p->lock);
    (void)p->source.info(p, &free_bytes, &total_bytes);
    size_text(bytes, wanted, sizeof wanted);
    size_text(stats.live_bytes, live, sizeof live);
    size_text(stats.cached_bytes, cached, sizeof cached);
    size_text(stats.largest_free, largest, sizeof largest);
    size_text(free_bytes, left, sizeof left);
    return tni_error(TN_E_NOMEM,
                     "%s:%d has no %s for '%.40s': live %s%s%s, cached %s, largest free block %s, "
                     "free on the device %s",
                     p->device->type, p->device->index, wanted, owner, live, owners, owners[0] ? ")" : "",
                     cached, largest, left);
}

/* The slow way: memory is short. */
static tn_status block_insist(tni_pool *p, uint64_t bytes, tn_stream *stream, tni_block *out)
{
    tni_device_set *s = p->device->set;
    tn_status st;

    tni_device_trim(p->device, 0);
    if ((st = block_try(p, bytes, stream, out)) != TN_E_NOMEM)
        return st;
    if (s->relief && s->relief(s->relief_arg)) {
        tni_device_trim(p->device, 0);
        if ((st = block_try(p, bytes, stream, out)) != TN_E_NOMEM)
            return st;
    }
    return block_exhausted(p, bytes, out->owner);
}

tn_status tni_block_alloc(tni_device *d, int32_t memory, uint64_t bytes, tn_stream *stream, const char *owner,
                          tni_block *out)
{
    tni_block block = {.owner = owner ? owner : "unnamed"};
    tni_pool *p = NULL;
    tn_status st;

    if (TN_LIKELY(memory == TN_MEMORY_DEVICE))
        p = __atomic_load_n(&d->pools[TN_MEMORY_DEVICE], __ATOMIC_ACQUIRE);
    if (TN_UNLIKELY(!p) && (st = tni_pool_open(d, memory, &p)))
        return st;
    if (TN_UNLIKELY(bytes == 0)) {
        block.pool = NULL;
        *out = block;
        return TN_OK;
    }
    if (TN_UNLIKELY(bytes > TN_SIZE_MAX))
        return tni_error(TN_E_NOMEM, "a block of %llu bytes is more than any may have",
                         (unsigned long long)bytes);
    if (!p->device->host && atomic_load_explicit(&p->device->set->forked, memory_order_relaxed))
        return tni_error(TN_E_STATE, "%s:%d cannot be used after fork", d->type, d->index);
    st = block_try(p, bytes, p->device->host ? NULL : stream, &block);
    if (TN_UNLIKELY(st == TN_E_NOMEM))
        st = block_insist(p, bytes, p->device->host ? NULL : stream, &block);
    if (st)
        return st;
    block.pool = p;
    *out = block;
    return TN_OK;
}

void tni_block_free(tni_block *b, tn_stream *stream)
{
    tni_pool *p = b->pool;

    if (p && (p->device->host || !atomic_load_explicit(&p->device->set->forked, memory_order_relaxed))) {
        tni_mutex_lock(&p->lock);
        owner_find(p, b->owner)->bytes -= b->memory.block_bytes;
        p->ops->free(p->impl, &b->memory, p->device->host ? NULL : stream);
        tni_mutex_unlock(&p->lock);
    }
    *b = (tni_block){.pool = NULL};
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

void tni_pool_stats(tni_pool *p, tn_pool_stats *out)
{
    tni_mutex_lock(&p->lock);
    p->ops->stats(p->impl, out);
    tni_mutex_unlock(&p->lock);
}

tn_status tni_device_memory(tni_device *d, int32_t memory, tni_memory_stats *out)
{
    tn_pool_stats stats = {.struct_size = (uint32_t)TN_END(tn_pool_stats, releases)};
    tni_memory_stats sum = {0};
    tni_pool *p;
    tn_status st;

    if ((st = tni_pool_open(d, memory, &p)) || (st = p->source.info(p, &sum.free, &sum.total)))
        return st;
    tni_pool_stats(p, &stats);
    sum.live = stats.live_bytes;
    sum.cached = stats.cached_bytes;
    sum.peak = stats.peak_bytes;
    sum.largest_free = stats.largest_free;
    sum.hits = stats.hits;
    sum.misses = stats.misses;
    if (d->host && (p = __atomic_load_n(&d->pools[TNI_MEMORY_APART], __ATOMIC_ACQUIRE))) {
        tni_pool_stats(p, &stats);
        sum.live += stats.live_bytes;
        sum.peak += stats.peak_bytes; /* at most: the two need not have come at once */
    }
    *out = sum;
    return TN_OK;
}

void tni_device_trim(tni_device *d, uint64_t keep_bytes)
{
    if (!d->host && atomic_load(&d->set->forked))
        return;
    for (int i = 0; i < TNI_MEMORY_KINDS; i++) {
        tni_pool *p = __atomic_load_n(&d->pools[i], __ATOMIC_ACQUIRE);

        if (!p)
            continue;
        tni_mutex_lock(&p->lock);
        p->ops->trim(p->impl, keep_bytes);
        tni_mutex_unlock(&p->lock);
    }
}
