/* tenon/random.h */
#include "tenon/random.h"
#include "api/api.h"

tn_status tn_random_seed(tn_ctx *ctx, uint64_t seed, const tn_device *device)
{
    tni_device *d = NULL;
    tn_status st;

    if (!ctx)
        return api_null(__func__, "ctx");
    if (device && (st = api_device(ctx, device, &d)))
        return st;
    return tni_random_seed(ctx, seed, d);
}

tn_status tn_random_save(tn_ctx *ctx, const tn_device *device, uint64_t *seed, uint64_t *position)
{
    tni_device *d;
    tn_status st;

    if (!ctx || !seed || !position)
        return api_null(__func__, "ctx, seed or position");
    if ((st = api_device(ctx, device, &d)))
        return st;
    *seed = tni_random_key(ctx, d);
    *position = tni_random_position(ctx, d);
    return TN_OK;
}

tn_status tn_random_restore(tn_ctx *ctx, const tn_device *device, uint64_t seed, uint64_t position)
{
    tni_device *d;
    tn_status st;

    if (!ctx)
        return api_null(__func__, "ctx");
    if ((st = api_device(ctx, device, &d)))
        return st;
    return tni_random_restore(ctx, d, seed, position);
}
