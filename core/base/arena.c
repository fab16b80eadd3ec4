/* Blocks of growing size, filled from the front and freed together. Memory is zeroed and 16-byte aligned. */
#include <string.h>

#include "base/base.h"

#define BLOCK_FIRST 4096u
#define BLOCK_LAST (1u << 20)

typedef struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) unsigned char data[];
} arena_block;

struct tni_arena {
    arena_block *block; /* the newest: the only one that is filled */
    size_t bytes, max_bytes, block_bytes;
};

tn_status tni_arena_create(size_t max_bytes, tni_arena **out)
{
    tni_arena *a = tni_zalloc(sizeof *a);

    if (!a)
        return TN_E_NOMEM;
    a->max_bytes = max_bytes;
    a->block_bytes = BLOCK_FIRST;
    *out = a;
    return TN_OK;
}

void tni_arena_destroy(tni_arena *a)
{
    if (!a)
        return;
    while (a->block) {
        arena_block *next = a->block->next;

        tni_free(a->block);
        a->block = next;
    }
    tni_free(a);
}

static bool block_add(tni_arena *a, size_t bytes)
{
    size_t size = bytes > a->block_bytes ? bytes : a->block_bytes;
    arena_block *block = tni_zalloc(sizeof *block + size);

    if (!block)
        return false;
    block->size = size;
    block->next = a->block;
    a->block = block;
    if (a->block_bytes < BLOCK_LAST)
        a->block_bytes *= 2;
    return true;
}

void *tni_arena_alloc(tni_arena *a, size_t bytes)
{
    uint64_t size;
    void *p;

    if (!tni_size_align(bytes ? bytes : 1, 16, &size) || size > a->max_bytes - a->bytes) {
        tni_error(TN_E_NOMEM, "%zu bytes more than the limit of %zu allows", bytes, a->max_bytes);
        return NULL;
    }
    if ((!a->block || a->block->size - a->block->used < size) && !block_add(a, size))
        return NULL;
    p = a->block->data + a->block->used;
    a->block->used += size;
    a->bytes += size;
    return p;
}

char *tni_arena_strdup(tni_arena *a, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = tni_arena_alloc(a, size);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}
