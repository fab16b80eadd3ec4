/* tenon/image.h */
#include "tenon/image.h"
#include "api/api.h"

tn_status tn_image_look(tn_ctx *ctx, const void *data, uint64_t bytes, tn_image_about *out)
{
    tn_image_about about;
    tn_status st;

    if (!ctx || !data || !out)
        return api_null(__func__, "ctx, data or out");
    if ((st = tni_image_look(ctx->plugins, data, bytes, &about)))
        return st;
    return api_info(__func__, &about, out, sizeof about);
}

static tn_status options_take(const char *function, const tn_image_options *options, tn_image_options *out)
{
    *out = (tn_image_options){.struct_size = (uint32_t)sizeof *out};
    return options ? api_options(function, options, out, sizeof *out) : TN_OK;
}

tn_status tn_image_read(tn_ctx *ctx, const void *data, uint64_t bytes, const tn_image_options *options,
                        void *out, uint64_t room, int64_t stride)
{
    tn_image_options o;
    tn_status st;

    if (!ctx || !data || !out)
        return api_null(__func__, "ctx, data or out");
    if ((st = options_take(__func__, options, &o)))
        return st;
    return tni_image_read(ctx->plugins, data, bytes, &o, out, room, stride);
}

tn_status tn_image_decode(tn_ctx *ctx, const void *data, uint64_t bytes, const tn_image_options *options,
                          tn_array **out)
{
    tn_image_options o;
    tn_status st;

    if (!ctx || !data || !out)
        return api_null(__func__, "ctx, data or out");
    if ((st = options_take(__func__, options, &o)))
        return st;
    return tni_image_decode(ctx->space, ctx->plugins, data, bytes, &o, out);
}

tn_status tn_image_encode(tn_ctx *ctx, tn_array *pixels, const char *format, int32_t quality, void **data,
                          uint64_t *bytes)
{
    if (!ctx || !pixels || !format || !data || !bytes)
        return api_null(__func__, "ctx, pixels, format, data or bytes");
    return tni_image_encode(ctx->plugins, pixels, format, quality, data, bytes);
}
