/* tenon/device.h: devices, their memory, waiting for all work. A tn_device is a tni_device. */
#include "tenon/device.h"
#include "api/api.h"

static const tni_device *of(const tn_device *d)
{
    return (const void *)d;
}

tn_status tn_device_get(tn_ctx *ctx, const char *name, const tn_device **out)
{
    tni_device *d;
    tn_status st;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if ((st = name ? tni_device_parse(ctx->devices, name, &d) : tni_default_device(ctx, &d)))
        return st;
    *out = (const void *)d;
    return TN_OK;
}

const char *tn_device_type(const tn_device *device)
{
    return device ? of(device)->type : "";
}

int32_t tn_device_index(const tn_device *device)
{
    return device ? of(device)->index : -1;
}

const tn_device *tn_device_use(const tn_device *device)
{
    tni_scope *scope = tni_scope_get();
    const void *before = scope->device;

    scope->device = (tni_device *)of(device);
    return before;
}

tn_status tn_device_count(tn_ctx *ctx, size_t *count)
{
    if (!ctx || !count)
        return api_null(__func__, "ctx or count");
    *count = tni_device_count(ctx->devices);
    return TN_OK;
}

tn_status tn_device_at(tn_ctx *ctx, size_t index, const tn_device **out)
{
    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if (index >= tni_device_count(ctx->devices))
        return tni_error(TN_E_ARG, "device %zu of %zu", index, tni_device_count(ctx->devices));
    *out = (const void *)tni_device_at(ctx->devices, index);
    return TN_OK;
}

tn_status tn_device_available(tn_ctx *ctx, const char *type, int32_t *count)
{
    if (!ctx || !type || !count)
        return api_null(__func__, "ctx, type or count");
    return tni_device_type_count(ctx->devices, type, count);
}

tn_status tn_device_memory(tn_ctx *ctx, const tn_device *device, int32_t kind, tn_memory_stats *out)
{
    tni_memory_stats stats = {0};
    tni_device *d;
    tn_status st;

    if (!ctx || !out)
        return api_null(__func__, "ctx or out");
    if (kind != TN_MEMORY_DEVICE && kind != TN_MEMORY_PINNED)
        return tni_error(TN_E_ARG, "%d is no kind of memory that is counted", kind);
    if ((st = api_device(ctx, device, &d)) || (st = tni_device_memory(d, kind, &stats)))
        return st;
    const tn_memory_stats info = {.free = stats.free,
                                  .total = stats.total,
                                  .live = stats.live,
                                  .cached = stats.cached,
                                  .peak = stats.peak,
                                  .largest_free = stats.largest_free,
                                  .hits = stats.hits,
                                  .misses = stats.misses};

    return api_info(__func__, &info, out, (uint32_t)sizeof info);
}

tn_status tn_device_trim(tn_ctx *ctx, const tn_device *device, uint64_t keep_bytes)
{
    tni_device *d;
    tn_status st;

    if (!ctx)
        return api_null(__func__, "ctx");
    if (!(st = api_device(ctx, device, &d)))
        tni_device_trim(d, keep_bytes);
    return st;
}

tn_status tn_wait_all(tn_ctx *ctx)
{
    return ctx ? tni_engine_wait_all(ctx->engine) : api_null(__func__, "ctx");
}
