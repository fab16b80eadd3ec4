/*
 * Chunks, segments and bins of the pool `segment`: the data and the operations on bins, without any policy.
 */
#ifndef TNPOOL_SEGMENT_H
#define TNPOOL_SEGMENT_H

#include "mempool.h"

#define BIN_SHIFT 4u   /* 2^4 bins to each power of two */
#define BIN_LOG_MIN 6u /* smallest chunk: 64 bytes */
#define BIN_COUNT ((64u - BIN_LOG_MIN) << BIN_SHIFT)
#define BIN_WORDS ((BIN_COUNT + 63u) / 64u)
#define HEAP_COUNT 2u /* small and large requests */

typedef struct chunk chunk;
typedef struct segment segment;

struct chunk {
    segment *segment;
    chunk *before, *after;                 /* neighbours in memory */
    chunk *bin_before, *bin_after;         /* free only; bin_after also links unused descriptors */
    chunk *pending_before, *pending_after; /* free with a claim only */
    uint64_t offset, bytes;
    uint64_t freed;    /* number of the free that made the claim */
    tn_stream *stream; /* free only: who has the claim; NULL: idle */
    void *mark;
    bool live;
};

typedef struct segment_heap {
    uint64_t words;          /* bit w: map[w] is not 0 */
    uint64_t map[BIN_WORDS]; /* bit b: bin b is not empty */
    chunk *bin[BIN_COUNT];
} segment_heap;

struct segment {
    segment *before, *after;
    segment_heap *heap;
    chunk *first;
    void *data;
    uint64_t bytes;
    bool dirty; /* a claim ended here, so neighbours may be mergeable */
};

typedef struct chunk_slab chunk_slab;

typedef struct segment_pool {
    tn_pool head;
    tnpool_device device;
    segment_heap heap[HEAP_COUNT];
    segment *segments;
    chunk *pending_first, *pending_last; /* free chunks with a claim */
    chunk *unused;                       /* descriptors */
    chunk_slab *slabs;
    uint64_t small_unit, large_unit, frees;
} segment_pool;

chunk *tnpool_chunk_new(segment_pool *p); /* zeroed; NULL: out of memory */
void tnpool_chunk_recycle(segment_pool *p, chunk *c);
void tnpool_chunks_delete(segment_pool *p);

uint32_t tnpool_bin_of(uint64_t bytes); /* the bin that holds chunks of this size */
uint32_t tnpool_bin_next(const segment_heap *heap,
                         uint32_t bin);           /* first non-empty one from `bin` on, or BIN_COUNT */
chunk *tnpool_bin_last(const segment_heap *heap); /* first chunk of the bin of the largest ones */
void tnpool_bin_insert(segment_heap *heap, chunk *c);
void tnpool_bin_remove(segment_heap *heap, chunk *c);

#endif
