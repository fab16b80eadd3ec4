/* tenon/base.h: data types. Its other functions are about this library itself and stand in base/build.c. */
#include "api/api.h"

const char *tn_dtype_name(int32_t dtype)
{
    return tni_dtype_name(dtype);
}

tn_status tn_dtype_parse(const char *text, int32_t *dtype)
{
    int32_t found;

    if (!text || !dtype)
        return api_null(__func__, "text or dtype");
    if (!tni_dtype_parse(text, &found))
        return tni_error(TN_E_DTYPE, "\"%.60s\" is no data type; float32, float64, float16, int32 … are",
                         text);
    *dtype = found;
    return TN_OK;
}
