/*
 * Shared by the pools of this plugin: counted host memory, the device behind a pool, option texts.
 *
 * tnpool_device is what MXNet calls step M: it asks the device for memory, keeps a reserve free, honours a
 * limit, and has the pool release its cache before it gives up. All numbers of tn_pool_stats are kept here
 * too.
 */
#ifndef TNPOOL_MEMPOOL_H
#define TNPOOL_MEMPOOL_H

#include "tenon/plugin/pool.h"

#include <stdbool.h>

/* What init makes: where bookkeeping memory comes from. Lives until fini; every pool points to it. */
typedef struct tnpool_plugin {
    const tn_host *host;
    const tn_memory_service *memory;
} tnpool_plugin;

extern const tn_pool_ops tnpool_naive, tnpool_round, tnpool_segment;

void *tnpool_new(const tnpool_plugin *plugin, uint64_t bytes); /* zeroed; NULL: out of memory */
void tnpool_delete(const tnpool_plugin *plugin, void *memory);

__attribute__((format(printf, 3, 4))) tn_status tnpool_fail(tn_err *err, tn_status code, const char *format,
                                                            ...);

/* Reads option `key` ("65536", "2MiB"); unset: `fallback`. TN_E_ARG: no number, or outside [low,
 * high]. */
typedef struct tnpool_range {
    uint64_t fallback, low, high;
} tnpool_range;
tn_status tnpool_option(const tn_pool_source *source, const char *key, tnpool_range range, uint64_t *out,
                        tn_err *err);

/* Rounds up to a multiple of `step` > 0; 0: does not fit in 64 bits. */
static inline uint64_t tnpool_round_up(uint64_t bytes, uint64_t step)
{
    uint64_t rest = bytes % step;

    if (!rest)
        return bytes;
    return bytes > UINT64_MAX - (step - rest) ? 0 : bytes + (step - rest);
}

/* ---- device.c: the device behind a pool ---------------------------------------------------------- */

typedef struct tnpool_device {
    const tnpool_plugin *plugin;
    const tn_pool_source *source;
    uint64_t reserve_percent, limit_bytes; /* limit 0: none */
    tn_pool_stats stats;                   /* largest_free is filled in by the pool when asked */
    void (*release)(void *pool);           /* gives every idle cached block back */
    void *pool;
} tnpool_device;

tn_status tnpool_device_init(tnpool_device *d, const tnpool_plugin *plugin, const tn_pool_source *source,
                             tn_err *err);
/* Memory of exactly `bytes`, counted as cached. Releases the pool's cache when the device is short.
 * TN_E_NOMEM. */
tn_status tnpool_device_take(tnpool_device *d, uint64_t bytes, void **out, tn_err *err);
void tnpool_device_give(tnpool_device *d, void *data, uint64_t bytes);
/* Moves a block between cached and live. */
void tnpool_device_live(tnpool_device *d, uint64_t bytes);
void tnpool_device_cached(tnpool_device *d, uint64_t bytes);

/* Marks: NULL where nothing has to be waited for. */
bool tnpool_mark_record(const tnpool_device *d, tn_stream *stream,
                        void **out); /* false: could not be marked */
bool tnpool_mark_done(const tnpool_device *d, void *mark);
bool tnpool_mark_wait(const tnpool_device *d, void *mark, tn_stream *stream);
void tnpool_mark_release(const tnpool_device *d, void *mark);

/* ---- cache.c: buckets of equal blocks, shared by naive and round --------------------------------- */

typedef struct tnpool_cache tnpool_cache;

/* A rounding rule: the block that `bytes` takes; 0: too large for 64 bits. */
typedef uint64_t (*tnpool_rounding)(const tnpool_cache *cache, uint64_t bytes);

typedef struct tnpool_block tnpool_block;
typedef struct tnpool_bucket tnpool_bucket;

struct tnpool_cache {
    tn_pool head;
    tnpool_device device;
    tnpool_rounding rounding;
    uint64_t page_bytes, large_bytes; /* naive: steps; round: smallest block */
    uint32_t cutoff;                  /* round: log2 of the largest power of two */
    tnpool_bucket **table;            /* hash of block bytes, chained */
    uint64_t table_count, bucket_count;
    tnpool_block *all; /* every block, live or cached */
};

tn_status tnpool_cache_create(void *plugin, const tn_pool_source *source, const tn_pool_ops *ops,
                              tnpool_cache **out, tn_err *err);
tn_status tnpool_cache_alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err);
void tnpool_cache_free(tn_pool *pool, const tn_memory *memory, tn_stream *stream);
void tnpool_cache_trim(tn_pool *pool, uint64_t keep_bytes);
void tnpool_cache_stats(tn_pool *pool, tn_pool_stats *out);
void tnpool_cache_destroy(tn_pool *pool);

/* Copies as much of `from` as the caller's struct has room for. */
void tnpool_stats_copy(const tn_pool_stats *from, tn_pool_stats *out);

#endif
