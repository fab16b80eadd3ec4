/*
 * Memory that is freed to a mark. Running out of it ends the process: the runner reports that as a crash.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"

#define BLOCK_BYTES ((size_t)1 << 17)

typedef struct chk_arena_block {
    struct chk_arena_block *before;
    size_t size, used;
} chk_arena_block;

#define HEAD_BYTES ((sizeof(chk_arena_block) + 63) / 64 * 64)

void *chk_take(chk_arena *a, uint64_t bytes)
{
    size_t need = ((size_t)bytes + 63) / 64 * 64;
    chk_arena_block *b = a->last;
    void *memory;

    if ((!b || b->size - b->used < need) && a->spare && a->spare->size >= need) {
        b = a->spare;
        a->spare = NULL;
        b->before = a->last;
        b->used = 0;
        a->last = b;
    }
    if (!b || b->size - b->used < need) {
        size_t size = need > BLOCK_BYTES ? need : BLOCK_BYTES;

        if (!(b = aligned_alloc(64, HEAD_BYTES + size)))
            abort();
        b->before = a->last;
        b->size = size;
        b->used = 0;
        a->last = b;
    }
    memory = (char *)b + HEAD_BYTES + b->used;
    b->used += need;
    memset(memory, 0, need);
    return memory;
}

char *chk_text(chk_arena *a, const char *format, ...)
{
    char text[600], *copy;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    copy = chk_take(a, strlen(text) + 1);
    memcpy(copy, text, strlen(text) + 1);
    return copy;
}

chk_mark chk_mark_set(chk_arena *a)
{
    return (chk_mark){a->last, a->last ? a->last->used : 0};
}

void chk_mark_back(chk_arena *a, chk_mark m)
{
    while (a->last != m.block) {
        chk_arena_block *before = a->last->before;

        if (!a->spare && a->last->size == BLOCK_BYTES)
            a->spare = a->last;
        else
            free(a->last);
        a->last = before;
    }
    if (a->last)
        a->last->used = m.used;
}

void chk_arena_free(chk_arena *a)
{
    chk_mark_back(a, (chk_mark){NULL, 0});
    free(a->spare);
    a->spare = NULL;
}
