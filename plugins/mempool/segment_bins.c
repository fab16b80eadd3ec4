/*
 * Bins by size and the store of descriptors for the pool `segment`.
 *
 * Bin of a size: its highest bit and the four bits below it. A bitmap of bins and one word over the bitmap's
 * words find the next non-empty bin in two bit scans. Descriptors come in slabs that are kept until the pool
 * goes.
 */
#include "segment.h"

#include <assert.h>
#include <string.h>

#define SLAB_CHUNKS 128u

_Static_assert(BIN_WORDS <= 64, "one word must cover the bitmap");

struct chunk_slab {
    chunk_slab *next;
    chunk chunks[SLAB_CHUNKS];
};

chunk *tnpool_chunk_new(segment_pool *p)
{
    chunk *c = p->unused;

    if (!c) {
        chunk_slab *slab = tnpool_new(p->device.plugin, sizeof *slab);

        if (!slab)
            return NULL;
        slab->next = p->slabs;
        p->slabs = slab;
        for (uint32_t i = 0; i < SLAB_CHUNKS; i++) {
            slab->chunks[i].bin_after = p->unused;
            p->unused = &slab->chunks[i];
        }
        c = p->unused;
    }
    p->unused = c->bin_after;
    c->bin_after = NULL;
    return c;
}

void tnpool_chunk_recycle(segment_pool *p, chunk *c)
{
    memset(c, 0, sizeof *c);
    c->bin_after = p->unused;
    p->unused = c;
}

void tnpool_chunks_delete(segment_pool *p)
{
    for (chunk_slab *s = p->slabs, *next; s; s = next) {
        next = s->next;
        tnpool_delete(p->device.plugin, s);
    }
    p->slabs = NULL;
}

uint32_t tnpool_bin_of(uint64_t bytes)
{
    uint32_t log = 63u - (uint32_t)__builtin_clzll(bytes | 1u);

    if (log < BIN_LOG_MIN)
        return 0;
    return ((log - BIN_LOG_MIN) << BIN_SHIFT) |
           (uint32_t)(bytes >> (log - BIN_SHIFT) & ((1u << BIN_SHIFT) - 1u));
}

uint32_t tnpool_bin_next(const segment_heap *heap, uint32_t bin)
{
    uint32_t word = bin / 64u;
    uint64_t bits;

    if (bin >= BIN_COUNT)
        return BIN_COUNT;
    bits = heap->map[word] & (UINT64_MAX << bin % 64u);
    if (!bits) {
        uint64_t words = word + 1u < BIN_WORDS ? heap->words & (UINT64_MAX << (word + 1u)) : 0;

        if (!words)
            return BIN_COUNT;
        word = (uint32_t)__builtin_ctzll(words);
        bits = heap->map[word];
    }
    return word * 64u + (uint32_t)__builtin_ctzll(bits);
}

chunk *tnpool_bin_last(const segment_heap *heap)
{
    uint32_t word;

    if (!heap->words)
        return NULL;
    word = 63u - (uint32_t)__builtin_clzll(heap->words);
    return heap->bin[word * 64u + 63u - (uint32_t)__builtin_clzll(heap->map[word])];
}

void tnpool_bin_insert(segment_heap *heap, chunk *c)
{
    uint32_t bin = tnpool_bin_of(c->bytes);

    assert(!c->live && !c->bin_before && !c->bin_after);
    c->bin_after = heap->bin[bin];
    if (c->bin_after)
        c->bin_after->bin_before = c;
    heap->bin[bin] = c;
    heap->map[bin / 64u] |= (uint64_t)1 << bin % 64u;
    heap->words |= (uint64_t)1 << bin / 64u;
}

void tnpool_bin_remove(segment_heap *heap, chunk *c)
{
    uint32_t bin = tnpool_bin_of(c->bytes);

    if (c->bin_before)
        c->bin_before->bin_after = c->bin_after;
    else
        heap->bin[bin] = c->bin_after;
    if (c->bin_after)
        c->bin_after->bin_before = c->bin_before;
    c->bin_before = c->bin_after = NULL;
    if (!heap->bin[bin]) {
        heap->map[bin / 64u] &= ~((uint64_t)1 << bin % 64u);
        if (!heap->map[bin / 64u])
            heap->words &= ~((uint64_t)1 << bin / 64u);
    }
}
