/*
 * What the core's sources that the kit is built with need of the room base, for programs that hide the core:
 * errors of a thread, and memory.
 */
#include <stdarg.h>
#include <stdlib.h>

#include "image.h"

static _Thread_local tn_err current;

tn_status tni_refuse(uint32_t code, tn_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(current.message, sizeof current.message, format, args);
    va_end(args);
    current.code = status;
    current.number = TNI_REFUSAL_BASE + code;
    return status;
}

void tni_error_get(tn_err *out)
{
    *out = current;
}

void tni_error_set(const tn_err *err)
{
    current = *err;
}

void tni_error_clear(void)
{
    current = (tn_err){.code = TN_OK};
}

const char *tni_error_message(void)
{
    return current.message;
}

void *tni_alloc(size_t bytes)
{
    return malloc(bytes);
}

void tni_free(void *memory)
{
    free(memory);
}
