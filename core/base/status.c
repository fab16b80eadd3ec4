/*
 * Errors. Each thread has one tn_err of 512 bytes; the first function that knows what is wrong writes it,
 * callers pass the status on. Nothing here allocates, so that "out of memory" can be reported too. A message
 * is one line of UTF-8 that steers no terminal, whatever names of files and arrays it repeats: other bytes
 * become \xNN (tni_text_escape).
 */
#include <string.h>

#include "base/base.h"

static _Thread_local tn_err current;

static const char *const names[] = {
    "TN_OK",     "TN_E_ARG",       "TN_E_SHAPE", "TN_E_DTYPE",    "TN_E_ATTR",        "TN_E_KEY",
    "TN_E_IO",   "TN_E_FORMAT",    "TN_E_NOMEM", "TN_E_DEVICE",   "TN_E_UNSUPPORTED", "TN_E_TIMEOUT",
    "TN_E_PEER", "TN_E_CANCELLED", "TN_E_STATE", "TN_E_INTERNAL",
};

#define CUT_ROOM 8u /* bytes read behind what a message holds, so that no character of it ends early */

static tn_status code_of(tn_status code)
{
    return code > TN_OK && code <= TN_E_INTERNAL ? code : TN_E_INTERNAL;
}

static void TN_PRINTF(4, 0)
    err_fill(tn_err *out, uint32_t number, tn_status code, const char *format, va_list args)
{
    tn_err next = {.code = code_of(code), .number = number};
    char text[sizeof next.message + CUT_ROOM];

    vsnprintf(text, sizeof text, format, args); /* arguments may lie in *out */
    tni_text_escape(next.message, sizeof next.message, text);
    *out = next;
}

tn_status tni_error(tn_status code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_fill(&current, 0, code, format, args);
    va_end(args);
    return current.code;
}

tn_status tni_error_number(uint32_t number, tn_status code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_fill(&current, number, code, format, args);
    va_end(args);
    return current.code;
}

void tni_err_format(tn_err *out, tn_status code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    err_fill(out, 0, code, format, args);
    va_end(args);
}

tn_status tni_error_take(tn_status st, const tn_err *err, const char *who)
{
    tn_err copy = *err;

    copy.message[sizeof copy.message - 1] = '\0';
    tni_error_number(copy.number, st, "%s: %s", who,
                     copy.message[0] ? copy.message : "failed without saying why");
    current.native = copy.native;
    return current.code;
}

void tni_error_clear(void)
{
    current.code = TN_OK;
    current.native = 0;
    current.number = 0;
    current.flags = 0;
    current.message[0] = '\0';
}

void tni_error_get(tn_err *out)
{
    *out = current;
}

void tni_error_set(const tn_err *err)
{
    const tn_err copy = *err; /* may be this thread's own */
    char text[sizeof copy.message];

    snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, copy.message);
    current = copy;
    tni_text_escape(current.message, sizeof current.message, text);
}

const char *tni_error_message(void)
{
    return current.message;
}

const char *tni_status_name(tn_status status)
{
    if (status == TN_PENDING)
        return "TN_PENDING";
    if (status < 0 || (size_t)status >= sizeof names / sizeof names[0])
        return "unknown status";
    return names[status];
}
