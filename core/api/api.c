/* Checks of arguments that all files of the room share. */
#include <string.h>

#include "api/api.h"

tn_status api_null(const char *function, const char *what)
{
    return tni_error(TN_E_ARG, "%s: %s is NULL", function, what);
}

tn_status api_options(const char *function, const void *in, void *out, uint32_t bytes)
{
    const unsigned char *from = in;
    uint32_t size;

    memcpy(&size, in, sizeof size);
    if (size < 2 * sizeof size)
        return tni_error(TN_E_ARG, "%s: struct_size is %u; set it to TN_SIZE of the struct", function, size);
    if (size > 4096)
        return tni_error(TN_E_ARG, "%s: struct_size is %u, at most 4096 makes sense", function, size);
    for (uint32_t i = bytes; i < size; i++)
        if (from[i])
            return tni_error(TN_E_UNSUPPORTED,
                             "%s: the options hold something that this version does not know", function);
    memset(out, 0, bytes);
    memcpy(out, in, size < bytes ? size : bytes);
    return TN_OK;
}

tn_status api_info(const char *function, const void *from, void *out, uint32_t bytes)
{
    uint32_t size;

    memcpy(&size, out, sizeof size);
    if (size < 2 * sizeof size || size > 4096)
        return tni_error(TN_E_ARG, "%s: struct_size is %u; set it to TN_SIZE of the struct", function, size);
    if (size > bytes)
        memset((unsigned char *)out + bytes, 0, size - bytes);
    memcpy((unsigned char *)out + sizeof size, (const unsigned char *)from + sizeof size,
           (size < bytes ? size : bytes) - sizeof size);
    return TN_OK;
}

tn_status api_device(tni_context *c, const void *device, tni_device **out)
{
    const tni_device *d = device;

    if (!d)
        return tni_default_device(c, out);
    if (d->set != c->devices)
        return tni_error(TN_E_ARG, "device %s:%d belongs to another context", d->type, d->index);
    *out = (tni_device *)d;
    return TN_OK;
}

tn_status api_arrays(const char *function, const tni_context *c, uint32_t count, tni_array *const *arrays)
{
    if (count && !arrays)
        return api_null(function, "a list of arrays");
    for (uint32_t i = 0; i < count; i++)
        if (arrays[i] && arrays[i]->storage->space != c->space)
            return tni_error(TN_E_ARG, "%s: array %u belongs to another context", function, i);
    return TN_OK;
}

tn_status api_attrs_read(const char *function, const char *const *pairs, api_attrs *out)
{
    out->count = 0;
    for (size_t i = 0; pairs && pairs[i]; i += 2) {
        if (!pairs[i + 1])
            return tni_error(TN_E_ARG, "%s: attribute %.80s has no text; attributes are pairs", function,
                             pairs[i]);
        if (out->count == API_ATTRS_MAX)
            return tni_error(TN_E_ATTR, "%s: more than %d attributes", function, API_ATTRS_MAX);
        out->names[out->count] = pairs[i];
        out->texts[out->count++] = pairs[i + 1];
    }
    return TN_OK;
}
