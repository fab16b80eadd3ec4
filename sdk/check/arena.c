/*
 * Memory that is freed to a mark. Running out of it ends the process: the runner reports that as a crash.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"

#define BLOCK_BYTES ((uint64_t)1 << 17)
#define LINE 64u

typedef struct chk_arena_block {
    struct chk_arena_block *before;
    uint64_t size, used;
    _Alignas(LINE) char data[];
} chk_arena_block;

void *chk_take(chk_arena *a, uint64_t bytes)
{
    const uint64_t need = (bytes + LINE - 1) / LINE * LINE;
    chk_arena_block *b = a->last;

    if (!b || b->size - b->used < need) {
        const uint64_t size = need > BLOCK_BYTES ? need : BLOCK_BYTES;

        if (!(b = aligned_alloc(LINE, sizeof *b + size)))
            abort();
        *b = (chk_arena_block){.before = a->last, .size = size};
        a->last = b;
    }
    b->used += need;
    return memset(b->data + b->used - need, 0, need);
}

char *chk_text(chk_arena *a, const char *format, ...)
{
    char text[600];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return strcpy(chk_take(a, strlen(text) + 1), text);
}

chk_mark chk_mark_set(chk_arena *a)
{
    return (chk_mark){a->last, a->last ? a->last->used : 0};
}

void chk_mark_back(chk_arena *a, chk_mark m)
{
    while (a->last != m.block) {
        chk_arena_block *before = a->last->before;

        free(a->last);
        a->last = before;
    }
    if (a->last)
        a->last->used = m.used;
}

void chk_arena_free(chk_arena *a)
{
    chk_mark_back(a, (chk_mark){NULL, 0});
}
