/*
 * Errors. Each thread has one tn_err of 512 bytes; the first function that knows what is wrong writes it,
 * callers pass the status on. Nothing here allocates, so that "out of memory" can be reported too. A message
 * is one line: control characters, whoever brought them, become spaces.
 */
#include <string.h>

#include "base/base.h"

static _Thread_local tn_err current;

static const char *const names[] = {
    "TN_OK",     "TN_E_ARG",       "TN_E_SHAPE", "TN_E_DTYPE",    "TN_E_ATTR",        "TN_E_KEY",
    "TN_E_IO",   "TN_E_FORMAT",    "TN_E_NOMEM", "TN_E_DEVICE",   "TN_E_UNSUPPORTED", "TN_E_TIMEOUT",
    "TN_E_PEER", "TN_E_CANCELLED", "TN_E_STATE", "TN_E_INTERNAL",
};

/* Ends the text and keeps it on one line; a message cut inside a UTF-8 character loses that character. */
static void message_clean(char *message, size_t size)
{
    size_t length = strnlen(message, size - 1);

    if (length == size - 1) {
        size_t start = length;

        while (start > 0 && length - start < 4 && ((unsigned char)message[start - 1] & 0xc0) == 0x80)
            start--;
        if (start > 0 && ((unsigned char)message[start - 1] & 0xc0) == 0xc0)
            length = start - 1;
    }
    message[length] = '\0';
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)message[i] < 0x20 || message[i] == 0x7f)
            message[i] = ' ';
}

static tn_status code_of(tn_status code)
{
    return code > TN_OK && code <= TN_E_INTERNAL ? code : TN_E_INTERNAL;
}

static void TN_PRINTF(4, 0)
    err_fill(tn_err *out, uint32_t number, tn_status code, const char *format, va_list args)
{
    tn_err next = {.code = code_of(code), .number = number};

    vsnprintf(next.message, sizeof next.message, format, args); /* arguments may lie in *out */
    message_clean(next.message, sizeof next.message);
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
    current = *err;
    message_clean(current.message, sizeof current.message);
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
