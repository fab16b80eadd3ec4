/**
 * A pool plugin: keeps freed memory of one (device, memory kind) for the next allocation.
 *
 * A pool has the state that `create` makes and starts with `const tn_pool_ops *ops`. The core calls a pool
 * with its own lock held, one call at a time, and passes memory blocks back exactly as they were given out.
 */
#ifndef TENON_PLUGIN_POOL_H
#define TENON_PLUGIN_POOL_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_pool_ops tn_pool_ops;

/** The start of every pool. */
typedef struct tn_pool {
    const tn_pool_ops *ops;
} tn_pool;

/** One allocation. `stream` is that of the last allocation or free; NULL on the host. */
typedef struct tn_memory {
    void *data;
    uint64_t bytes;       /* asked for */
    uint64_t block_bytes; /* what it takes from the pool */
    void *tag;            /* the pool's */
    tn_stream *stream;
    uint64_t reserved[3];
} tn_memory;

typedef struct tn_pool_stats {
    uint32_t struct_size, reserved;
    uint64_t live_bytes, live_blocks;     /* given out, in block_bytes */
    uint64_t cached_bytes, cached_blocks; /* kept for later */
    uint64_t peak_bytes;                  /* highest live + cached: what the device had to give */
    uint64_t largest_free;                /* bytes of the largest cached block */
    uint64_t hits, misses, releases; /* answered from the cache; from the device; blocks given back to it */
} tn_pool_stats;

/** Where a pool gets its memory from; the core's. Valid until destroy. All functions [any]. */
typedef struct tn_pool_source {
    uint32_t struct_size;
    uint32_t alignment; /* of raw memory, a power of two */
    void *arg;
    tn_status (*alloc)(void *arg, uint64_t bytes, void **out, tn_err *err);
    void (*free)(void *arg, void *data);
    /** Bytes free and in all on the device, as far as it knows. */
    tn_status (*info)(void *arg, uint64_t *free_bytes, uint64_t *total_bytes);
    /** An option of [memory.D]: "reserve", "round_linear_cutoff", "page_size", "limit"; NULL if unset. */
    const char *(*option)(void *arg, const char *key);
    /**
     * Marks the present end of `stream`; `*out` is NULL where there are no streams. A block freed on one
     * stream may be reused on another only once its mark is done, or after `mark_wait` made that stream wait
     * for it.
     */
    tn_status (*mark_record)(void *arg, tn_stream *stream, void **out);
    int32_t (*mark_done)(void *arg, void *mark); /* 1: reached */
    tn_status (*mark_wait)(void *arg, void *mark, tn_stream *stream);
    void (*mark_release)(void *arg, void *mark);
} tn_pool_source;

struct tn_pool_ops {
    tn_capability head; /* kind TN_KIND_POOL, id: "round" */
    tn_status (*create)(void *plugin, const tn_pool_source *source, tn_pool **out, tn_err *err);
    /** `bytes` > 0; memory aligned to source->alignment; fills `out` whole. TN_E_NOMEM: the pool did all it
     * can. */
    tn_status (*alloc)(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err);
    /** `stream`: where the block was used last. */
    void (*free)(tn_pool *pool, const tn_memory *memory, tn_stream *stream);
    /** Gives cached blocks back to the device until at most `keep_bytes` are cached. */
    void (*trim)(tn_pool *pool, uint64_t keep_bytes);
    void (*stats)(tn_pool *pool, tn_pool_stats *out);
    /** Gives back everything cached; live blocks are a mistake of the caller and are given back too. */
    void (*destroy)(tn_pool *pool);
};

#ifdef __cplusplus
}
#endif

#endif
