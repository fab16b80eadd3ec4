/* tenon/params.h. A tn_params is the struct of room io. */
#include "tenon/params.h"
#include "api/api.h"

tn_status tn_params_create(tn_params **out)
{
    return out ? tni_params_create(out) : api_null(__func__, "out");
}

void tn_params_destroy(tn_params *p)
{
    tni_params_destroy(p);
}

tn_status tn_params_add(tn_params *p, const char *name, tn_array *a)
{
    if (!p || !name || !a)
        return api_null(__func__, "p, name or a");
    return tni_params_add(p, name, a);
}

tn_status tn_params_get(const tn_params *p, const char *name, tn_array **out)
{
    tni_array *a;
    tn_status st;

    if (!p || !name || !out)
        return api_null(__func__, "p, name or out");
    if ((st = tni_params_get(p, name, &a)))
        return st;
    tni_array_retain(a);
    *out = a;
    return TN_OK;
}

size_t tn_params_count(const tn_params *p)
{
    return p ? p->count : 0;
}

const char *tn_params_name(const tn_params *p, size_t index)
{
    return p && index < p->count ? p->names[index] : NULL;
}

tn_status tn_params_at(const tn_params *p, size_t index, tn_array **out)
{
    if (!p || !out)
        return api_null(__func__, "p or out");
    if (index >= p->count)
        return tni_error(TN_E_ARG, "entry %zu of %zu", index, p->count);
    if (p->arrays[index])
        tni_array_retain(p->arrays[index]);
    *out = p->arrays[index];
    return TN_OK;
}

tn_status tn_params_load(tn_ctx *ctx, const char *path, const tn_device *device, tn_params **out)
{
    tni_device *d;
    tn_status st;

    if (!ctx || !path || !out)
        return api_null(__func__, "ctx, path or out");
    if ((st = api_device(ctx, device, &d)))
        return st;
    return tni_params_load(ctx->space, d, path, out);
}

tn_status tn_load(tn_ctx *ctx, const char *path, tn_params **out)
{
    if (!ctx || !path || !out)
        return api_null(__func__, "ctx, path or out");
    return tni_load(ctx->space, ctx->plugins, path, out);
}

tn_status tn_save(tn_ctx *ctx, const tn_params *p, const char *path)
{
    if (!ctx || !p || !path)
        return api_null(__func__, "ctx, p or path");
    return tni_save(ctx->plugins, p, path);
}

tn_status tn_params_from_memory(tn_ctx *ctx, const void *data, uint64_t bytes, const tn_device *device,
                                tn_params **out)
{
    tni_device *d;
    tn_status st;

    if (!ctx || (!data && bytes) || !out)
        return api_null(__func__, "ctx, data or out");
    if ((st = api_device(ctx, device, &d)))
        return st;
    return tni_params_load_memory(ctx->space, d, data ? data : "", bytes, out);
}

tn_status tn_params_save(const tn_params *p, const char *path)
{
    if (!p || !path)
        return api_null(__func__, "p or path");
    return tni_params_save(p, path);
}

tn_status tn_params_to_memory(const tn_params *p, void **data, uint64_t *bytes)
{
    if (!p || !data || !bytes)
        return api_null(__func__, "p, data or bytes");
    return tni_params_save_memory(p, data, bytes);
}

tn_status tn_params_sha256(const tn_params *p, char hex[65])
{
    if (!p || !hex)
        return api_null(__func__, "p or hex");
    return tni_params_sha256(p, hex);
}
