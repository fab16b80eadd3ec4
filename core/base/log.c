/* Log lines go to the function the program gave; without one they are dropped. A line never holds a line
 * break, nor anything else that steers a terminal. */
#include "base/base.h"

#define LOG_LINE_BYTES 2048

void tni_logf(const tni_log *log, int32_t level, const char *format, ...)
{
    char line[LOG_LINE_BYTES], text[LOG_LINE_BYTES + 8]; /* a character at the end is whole, or left out */
    va_list args;

    if (!log || !log->fn ||
        level > atomic_load_explicit(log->as ? &log->as->level : &log->level, memory_order_relaxed))
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    tni_text_escape(line, sizeof line, text);
    log->fn(log->arg, level, line);
}
