/*
 * The device behind a pool. A pool never calls its source for memory directly: here the reserve is kept, the
 * limit honoured, the cache released and the allocation tried again before it fails, and every byte is
 * counted once.
 *
 * Invariant: live_bytes + cached_bytes = what the source gave and did not get back.
 */
#include "mempool.h"

#include "tenon/plugin/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *tnpool_new(const tnpool_plugin *plugin, uint64_t bytes)
{
    void *memory;

    if (!plugin->memory)
        return calloc(1, (size_t)bytes);
    memory = plugin->memory->alloc(plugin->host, bytes, 16);
    if (memory)
        memset(memory, 0, (size_t)bytes);
    return memory;
}

void tnpool_delete(const tnpool_plugin *plugin, void *memory)
{
    if (!memory)
        return;
    if (plugin->memory)
        plugin->memory->free(plugin->host, memory);
    else
        free(memory);
}

tn_status tnpool_fail(tn_err *err, tn_status code, const char *format, ...)
{
    va_list args;

    if (!err)
        return code;
    tn_fail(err, code, "");
    va_start(args, format);
    (void)vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

tn_status tnpool_option(const tn_pool_source *source, const char *key, tnpool_range range, uint64_t *out,
                        tn_err *err)
{
    const char *text = TN_HAS(source, tn_pool_source, option) ? source->option(source->arg, key) : NULL;
    uint64_t value = range.fallback;

    if (text && (tn_text_bytes(text, &value) || value < range.low || value > range.high))
        return tnpool_fail(err, TN_E_ARG, "%s is '%.40s', but must be a number from %" PRIu64 " to %" PRIu64,
                           key, text, range.low, range.high);
    *out = value;
    return TN_OK;
}

tn_status tnpool_device_init(tnpool_device *d, const tnpool_plugin *plugin, const tn_pool_source *source,
                             tn_err *err)
{
    tn_status st;

    if (!TN_HAS(source, tn_pool_source, alloc) || !TN_HAS(source, tn_pool_source, free) ||
        !source->alignment || (source->alignment & (source->alignment - 1)))
        return tn_fail(err, TN_E_ARG,
                       "the source has no alloc, no free or an alignment that is no power of two");
    d->plugin = plugin;
    d->source = source;
    d->stats.struct_size = (uint32_t)TN_END(tn_pool_stats, releases);
    st = tnpool_option(source, "reserve", (tnpool_range){5, 0, 100}, &d->reserve_percent, err);
    return st ? st : tnpool_option(source, "limit", (tnpool_range){0, 0, UINT64_MAX}, &d->limit_bytes, err);
}

static uint64_t taken(const tnpool_device *d)
{
    return d->stats.live_bytes + d->stats.cached_bytes;
}

static bool over_limit(const tnpool_device *d, uint64_t bytes)
{
    return d->limit_bytes && (bytes > d->limit_bytes || taken(d) > d->limit_bytes - bytes);
}

/* MXNet's test: is so little free that the reserve would be touched? */
static bool is_short(const tnpool_device *d, uint64_t bytes)
{
    const tn_pool_source *s = d->source;
    uint64_t free_bytes, total, reserve;

    if (over_limit(d, bytes))
        return true;
    if (!TN_HAS(s, tn_pool_source, info) || s->info(s->arg, &free_bytes, &total))
        return false;
    reserve = total / 100 * d->reserve_percent + total % 100 * d->reserve_percent / 100;
    return free_bytes <= reserve || bytes > free_bytes - reserve;
}

tn_status tnpool_device_take(tnpool_device *d, uint64_t bytes, void **out, tn_err *err)
{
    const tn_pool_source *s = d->source;
    void *data = NULL;
    tn_status st;

    if (d->stats.cached_bytes && is_short(d, bytes))
        d->release(d->pool);
    if (over_limit(d, bytes))
        return tnpool_fail(err, TN_E_NOMEM,
                           "%" PRIu64 " bytes more would pass the pool's limit of %" PRIu64 " (%" PRIu64
                           " live, %" PRIu64 " cached)",
                           bytes, d->limit_bytes, d->stats.live_bytes, d->stats.cached_bytes);
    st = s->alloc(s->arg, bytes, &data, err);
    if (st == TN_E_NOMEM && d->stats.cached_bytes) {
        d->release(d->pool);
        st = s->alloc(s->arg, bytes, &data, err);
    }
    if (st)
        return st;
    if (!data)
        return tn_fail(err, TN_E_INTERNAL, "the device gave no memory, but reported success");
    if (err)
        tn_fail(err, TN_OK, ""); /* the first try may have left its text */
    d->stats.cached_bytes += bytes;
    d->stats.cached_blocks++;
    if (taken(d) > d->stats.peak_bytes)
        d->stats.peak_bytes = taken(d);
    *out = data;
    return TN_OK;
}

void tnpool_device_give(tnpool_device *d, void *data, uint64_t bytes)
{
    d->source->free(d->source->arg, data);
    d->stats.cached_bytes -= bytes;
    d->stats.cached_blocks--;
    d->stats.releases++;
}

void tnpool_device_live(tnpool_device *d, uint64_t bytes)
{
    d->stats.cached_bytes -= bytes;
    d->stats.cached_blocks--;
    d->stats.live_bytes += bytes;
    d->stats.live_blocks++;
}

void tnpool_device_cached(tnpool_device *d, uint64_t bytes)
{
    d->stats.live_bytes -= bytes;
    d->stats.live_blocks--;
    d->stats.cached_bytes += bytes;
    d->stats.cached_blocks++;
}

bool tnpool_mark_record(const tnpool_device *d, tn_stream *stream, void **out)
{
    const tn_pool_source *s = d->source;

    *out = NULL;
    if (!stream || !TN_HAS(s, tn_pool_source, mark_record))
        return true;
    return s->mark_record(s->arg, stream, out) == TN_OK;
}

bool tnpool_mark_done(const tnpool_device *d, void *mark)
{
    return d->source->mark_done(d->source->arg, mark) != 0;
}

bool tnpool_mark_wait(const tnpool_device *d, void *mark, tn_stream *stream)
{
    return stream && d->source->mark_wait(d->source->arg, mark, stream) == TN_OK;
}

void tnpool_mark_release(const tnpool_device *d, void *mark)
{
    if (mark)
        d->source->mark_release(d->source->arg, mark);
}

void tnpool_stats_copy(const tn_pool_stats *from, tn_pool_stats *out)
{
    uint32_t bytes = out->struct_size < from->struct_size ? out->struct_size : from->struct_size;
    const uint32_t head = (uint32_t)offsetof(tn_pool_stats, live_bytes);

    if (bytes > head)
        memcpy((char *)out + head, (const char *)from + head, bytes - head);
}
