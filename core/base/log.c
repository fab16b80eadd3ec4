/* Log lines go to the function the program gave; without one they are dropped. A line never holds a line
 * break. */
#include "base/base.h"

#define LOG_LINE_BYTES 2048

void tni_logf(const tni_log *log, int32_t level, const char *format, ...)
{
    char line[LOG_LINE_BYTES];
    va_list args;

    if (!log || !log->fn ||
        level > atomic_load_explicit(log->as ? &log->as->level : &log->level, memory_order_relaxed))
        return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *c = line; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    log->fn(log->arg, level, line);
}
