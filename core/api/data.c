/* tenon/data.h */
#include "tenon/data.h"
#include "api/api.h"

tn_status tn_idx_load(tn_ctx *ctx, const char *path, tn_array **out)
{
    if (!ctx || !path || !out)
        return api_null(__func__, "ctx, path or out");
    return tni_idx_load(ctx->space, path, out);
}

tn_status tn_idx_load_pair(tn_ctx *ctx, const char *images, const char *labels, tn_array **out_images,
                           tn_array **out_labels)
{
    if (!ctx || !images || !labels || !out_images || !out_labels)
        return api_null(__func__, "ctx, images, labels, out_images or out_labels");
    return tni_idx_load_pair(ctx->space, images, labels, out_images, out_labels);
}

tn_status tn_npy_load(tn_ctx *ctx, const char *path, tn_array **out)
{
    if (!ctx || !path || !out)
        return api_null(__func__, "ctx, path or out");
    return tni_npy_load(ctx->space, path, out);
}

tn_status tn_npy_save(tn_array *a, const char *path)
{
    if (!a || !path)
        return api_null(__func__, "a or path");
    return tni_npy_save(a, path);
}

tn_status tn_csv_load(tn_ctx *ctx, const char *path, tn_array **out)
{
    if (!ctx || !path || !out)
        return api_null(__func__, "ctx, path or out");
    return tni_csv_load(ctx->space, path, out);
}

/* Shares are counted from 0. */
static tn_status share_check(const char *function, uint32_t part, uint32_t parts)
{
    return part < parts ? TN_OK
                        : tni_error(TN_E_ARG, "%s: share %u of %u, counted from 0", function, part, parts);
}

tn_status tn_csv_load_part(tn_ctx *ctx, const char *path, uint32_t part, uint32_t parts, uint64_t *before,
                           tn_array **out)
{
    if (!ctx || !path || !out)
        return api_null(__func__, "ctx, path or out");
    if (share_check(__func__, part, parts))
        return TN_E_ARG;
    return tni_csv_load_part(ctx->space, path, part, parts, before, out);
}

tn_status tn_csv_from_memory(tn_ctx *ctx, const void *text, uint64_t bytes, const char *name, tn_array **out)
{
    if (!ctx || !text || !name || !out)
        return api_null(__func__, "ctx, text, name or out");
    return tni_csv_load_memory(ctx->space, text, bytes, name, out);
}

tn_status tn_csv_load_words(tn_ctx *ctx, const char *path, const void *text, uint64_t bytes,
                            tn_csv_words *words, tn_array **out)
{
    if (!ctx || !path || !words || !out || (words->column >= 0 && !words->word))
        return api_null(__func__, "ctx, path, words, word() or out");
    if (words->struct_size < sizeof *words)
        return tni_error(TN_E_ARG, "%s: struct_size is %u", __func__, words->struct_size);
    return tni_csv_load_words(ctx->space, path, text, bytes, words, out);
}

tn_status tn_libsvm_load_part(tn_ctx *ctx, const tn_libsvm_share *share, tn_array **data, tn_array **labels,
                              uint64_t *before)
{
    tn_libsvm_share s;
    tn_status st;

    if (!ctx || !share || !data || !labels)
        return api_null(__func__, "ctx, share, data or labels");
    if ((st = api_options(__func__, share, &s, (uint32_t)sizeof s)) ||
        (st = share_check(__func__, s.part, s.parts ? s.parts : 1)))
        return st;
    if (!s.path || s.columns < 0 || s.reserved)
        return tni_error(TN_E_ARG, "%s: %s", __func__,
                         !s.path      ? "no path"
                         : s.reserved ? "`reserved` is not 0"
                                      : "columns below 0");
    return tni_libsvm_load_part(ctx->space, &(const tni_libsvm_share){s.path, s.columns, s.part, s.parts},
                                data, labels, before);
}

tn_status tn_libsvm_load(tn_ctx *ctx, const char *path, int64_t columns, tn_array **data, tn_array **labels)
{
    if (!ctx || !path || !data || !labels)
        return api_null(__func__, "ctx, path, data or labels");
    if (columns < 0)
        return tni_error(TN_E_ARG, "%s: %lld columns", __func__, (long long)columns);
    return tni_libsvm_load(ctx->space, path, columns, data, labels);
}

tn_status tn_data_find(tn_ctx *ctx, const char *name, char **path)
{
    if (!ctx || !name || !path)
        return api_null(__func__, "ctx, name or path");
    return tni_data_find(ctx->options, name, path);
}
