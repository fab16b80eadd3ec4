/* tenon/checkpoint.h. A tn_checkpoint is the struct of room io. */
#include "tenon/checkpoint.h"
#include "api/api.h"

tn_status tn_checkpoint_save(const char *folder, const char *json, const tn_params *params, uint32_t keep,
                             char **path)
{
    if (!folder || !json || !params)
        return api_null(__func__, "folder, json or params");
    if (keep > TNI_CHECKPOINT_KEEP_MAX)
        return tni_error(TN_E_ARG, "%u checkpoints to keep, at most %u", keep, TNI_CHECKPOINT_KEEP_MAX);
    return tni_checkpoint_save(folder, json, params, keep, path);
}

tn_status tn_checkpoint_load(tn_ctx *ctx, const char *folder, const tn_device *device, tn_checkpoint **out)
{
    tni_device *d;
    tn_status st;

    if (!ctx || !folder || !out)
        return api_null(__func__, "ctx, folder or out");
    if ((st = api_device(ctx, device, &d)))
        return st;
    return tni_checkpoint_load_latest(ctx->space, d, folder, out);
}

tn_status tn_checkpoint_load_file(tn_ctx *ctx, const char *path, const tn_device *device, tn_checkpoint **out)
{
    tni_device *d;
    tn_status st;

    if (!ctx || !path || !out)
        return api_null(__func__, "ctx, path or out");
    if ((st = api_device(ctx, device, &d)))
        return st;
    return tni_checkpoint_load(ctx->space, d, path, out);
}

void tn_checkpoint_destroy(tn_checkpoint *c)
{
    tni_checkpoint_destroy(c);
}

const char *tn_checkpoint_json(const tn_checkpoint *c)
{
    return c && c->json ? c->json : "";
}

const char *tn_checkpoint_path(const tn_checkpoint *c)
{
    return c && c->path ? c->path : "";
}

const char *tn_checkpoint_skipped(const tn_checkpoint *c)
{
    return c && c->skipped ? c->skipped : "";
}

uint32_t tn_checkpoint_number(const tn_checkpoint *c)
{
    return c ? c->number : 0;
}

const tn_params *tn_checkpoint_params(const tn_checkpoint *c)
{
    return c ? c->params : NULL;
}
