/* tenon/dlpack.h */
#include "tenon/dlpack.h"
#include "api/api.h"

tn_status tn_array_to_dlpack(tn_array *a, int32_t writable, struct DLManagedTensorVersioned **out)
{
    if (!a || !out)
        return api_null(__func__, "a or out");
    return tni_dlpack_export(a, writable != 0, out);
}

tn_status tn_array_to_dlpack_legacy(tn_array *a, struct DLManagedTensor **out)
{
    if (!a || !out)
        return api_null(__func__, "a or out");
    return tni_dlpack_export_legacy(a, out);
}

tn_status tn_array_from_dlpack(tn_ctx *ctx, struct DLManagedTensorVersioned *tensor, tn_array **out)
{
    if (!ctx || !tensor || !out)
        return api_null(__func__, "ctx, tensor or out");
    return tni_dlpack_import(ctx->space, tensor, out);
}

tn_status tn_array_from_dlpack_legacy(tn_ctx *ctx, struct DLManagedTensor *tensor, tn_array **out)
{
    if (!ctx || !tensor || !out)
        return api_null(__func__, "ctx, tensor or out");
    return tni_dlpack_import_legacy(ctx->space, tensor, out);
}
