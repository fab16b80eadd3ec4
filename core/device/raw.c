/*
 * The sizes of the raw blocks that a pool took from its device: an open-addressing table from address to
 * bytes.
 *
 * Pools give raw memory back by address only. The table makes the core's count of a device's memory and its
 * limit independent of what a pool's own statistics say, and gives back what a pool forgot.
 */
#include "device/internal.h"

#define RAW_FIRST 64
#define RAW_MAX ((size_t)1 << 26) /* raw blocks of one pool: 64 million blocks of the smallest size */
#define RAW_REMOVED ((uintptr_t)1)

static size_t raw_slot(const raw_table *t, uintptr_t key)
{
    return (size_t)((key >> 4) * 0x9e3779b97f4a7c15u >> 20) & (t->capacity - 1);
}

static void raw_insert(raw_table *t, uintptr_t key, uint64_t bytes)
{
    size_t i = raw_slot(t, key);

    while (t->blocks[i].key > RAW_REMOVED)
        i = (i + 1) & (t->capacity - 1);
    t->filled += t->blocks[i].key == 0;
    t->blocks[i].key = key;
    t->blocks[i].bytes = bytes;
    t->used++;
}

tn_status tni_raw_reserve(raw_table *t)
{
    raw_table next = {0};

    if ((t->filled + 1) * 4 <= t->capacity * 3)
        return TN_OK;
    next.capacity = RAW_FIRST;
    while (next.capacity < (t->used + 1) * 2)
        next.capacity *= 2;
    if (next.capacity > RAW_MAX)
        return tni_error(TN_E_NOMEM, "a pool holds %zu raw blocks, its limit", t->used);
    if (!(next.blocks = tni_calloc(next.capacity, sizeof *next.blocks)))
        return TN_E_NOMEM;
    for (size_t i = 0; i < t->capacity; i++)
        if (t->blocks[i].key > RAW_REMOVED)
            raw_insert(&next, t->blocks[i].key, t->blocks[i].bytes);
    next.bytes = t->bytes;
    tni_free(t->blocks);
    *t = next;
    return TN_OK;
}

void tni_raw_add(raw_table *t, void *data, uint64_t bytes)
{
    raw_insert(t, (uintptr_t)data, bytes);
    t->bytes += bytes;
}

bool tni_raw_remove(raw_table *t, void *data, uint64_t *bytes)
{
    size_t i;

    if (!t->capacity)
        return false;
    for (i = raw_slot(t, (uintptr_t)data); t->blocks[i].key; i = (i + 1) & (t->capacity - 1))
        if (t->blocks[i].key == (uintptr_t)data) {
            *bytes = t->blocks[i].bytes;
            t->bytes -= *bytes;
            t->blocks[i].key = RAW_REMOVED;
            t->used--;
            return true;
        }
    return false;
}

bool tni_raw_any(const raw_table *t, void **data, uint64_t *bytes)
{
    for (size_t i = 0; i < t->capacity; i++)
        if (t->blocks[i].key > RAW_REMOVED) {
            *data = (void *)t->blocks[i].key;
            *bytes = t->blocks[i].bytes;
            return true;
        }
    return false;
}

void tni_raw_fini(raw_table *t)
{
    tni_free(t->blocks);
    *t = (raw_table){0};
}
