/*
 * Buckets of equal blocks: what MXNet's Naive and Round have in common. A rounding rule maps a request to a
 * block size; freed blocks of one size lie on one stack, last in first out; nothing is split or merged.
 *
 * A block that was freed on a stream keeps a mark of that stream's end. The same stream may take it at once;
 * for another one the mark must be done, or that stream is made to wait for it. Blocks whose mark is open are
 * not given back to the device before destroy: the device may still write to them.
 *
 * Invariant: each block knows its bucket, and a bucket lives as long as a block of it does; so `free`
 * allocates nothing and looks nothing up.
 */
#include "mempool.h"

#include <assert.h>
#include <inttypes.h>

#define TABLE_START 64u /* chains at first; doubles when there are as many buckets */
#define PROBE_MAX 8u    /* blocks of a stack that are tried before a stream is made to wait */

struct tnpool_block {
    tnpool_block *next;           /* on its bucket's stack */
    tnpool_block *before, *after; /* of all blocks */
    tnpool_bucket *bucket;
    void *data, *mark;
    tn_stream *stream; /* freed there; NULL: idle everywhere */
    bool live;
};

struct tnpool_bucket {
    tnpool_bucket *next; /* in its chain */
    tnpool_block *top;
    uint64_t bytes, block_count;
};

static tnpool_cache *cache_of(tn_pool *pool)
{
    assert(pool->ops == &tnpool_naive || pool->ops == &tnpool_round);
    return (tnpool_cache *)pool;
}

/* ---- buckets ------------------------------------------------------------------------------------- */

static uint64_t chain_of(uint64_t bytes, uint64_t count)
{
    return (bytes * 0x9e3779b97f4a7c15u >> 32) & (count - 1);
}

/* A table that cannot grow stays as it is: chains get longer, nothing fails. */
static void table_grow(tnpool_cache *c)
{
    uint64_t count = c->table_count * 2;
    tnpool_bucket **table = tnpool_new(c->device.plugin, count * sizeof *table);

    if (!table)
        return;
    for (uint64_t i = 0; i < c->table_count; i++)
        for (tnpool_bucket *b = c->table[i], *next; b; b = next) {
            uint64_t chain = chain_of(b->bytes, count);

            next = b->next;
            b->next = table[chain];
            table[chain] = b;
        }
    tnpool_delete(c->device.plugin, c->table);
    c->table = table;
    c->table_count = count;
}

static tnpool_bucket *bucket_find(const tnpool_cache *c, uint64_t bytes)
{
    tnpool_bucket *b = c->table[chain_of(bytes, c->table_count)];

    while (b && b->bytes != bytes)
        b = b->next;
    return b;
}

static tnpool_bucket *bucket_create(tnpool_cache *c, uint64_t bytes)
{
    tnpool_bucket *b = tnpool_new(c->device.plugin, sizeof *b);
    uint64_t chain;

    if (!b)
        return NULL;
    if (c->bucket_count >= c->table_count)
        table_grow(c);
    chain = chain_of(bytes, c->table_count);
    b->bytes = bytes;
    b->next = c->table[chain];
    c->table[chain] = b;
    c->bucket_count++;
    return b;
}

static void bucket_drop_if_unused(tnpool_cache *c, tnpool_bucket *b)
{
    tnpool_bucket **at;

    if (b->block_count)
        return;
    for (at = &c->table[chain_of(b->bytes, c->table_count)]; *at != b; at = &(*at)->next)
        ;
    *at = b->next;
    c->bucket_count--;
    tnpool_delete(c->device.plugin, b);
}

/* ---- blocks -------------------------------------------------------------------------------------- */

static void block_to_device(tnpool_cache *c, tnpool_block *b)
{
    tnpool_bucket *bucket = b->bucket;

    tnpool_mark_release(&c->device, b->mark);
    tnpool_device_give(&c->device, b->data, bucket->bytes);
    if (b->before)
        b->before->after = b->after;
    else
        c->all = b->after;
    if (b->after)
        b->after->before = b->before;
    bucket->block_count--;
    tnpool_delete(c->device.plugin, b);
}

/* True once nothing on the device can touch the block any more. Forgets a mark that is done. */
static bool block_is_idle(tnpool_cache *c, tnpool_block *b)
{
    if (b->mark && tnpool_mark_done(&c->device, b->mark)) {
        tnpool_mark_release(&c->device, b->mark);
        b->mark = NULL;
        b->stream = NULL;
    }
    return !b->stream;
}

/* Takes a block that `stream` may use now, or else the top one after making `stream` wait for it. */
static tnpool_block *bucket_pop(tnpool_cache *c, tnpool_bucket *bucket, tn_stream *stream)
{
    tnpool_block **at = &bucket->top, *b;

    for (uint32_t probes = 0; *at && probes < PROBE_MAX; at = &(*at)->next, probes++)
        if (!(*at)->stream || (*at)->stream == stream || block_is_idle(c, *at))
            break;
    if (!*at || ((*at)->stream && (*at)->stream != stream)) {
        at = &bucket->top;
        if (!*at || !(*at)->mark || !tnpool_mark_wait(&c->device, (*at)->mark, stream))
            return NULL;
    }
    b = *at;
    *at = b->next;
    b->next = NULL;
    tnpool_mark_release(&c->device, b->mark);
    b->mark = NULL;
    return b;
}

static tn_status block_create(tnpool_cache *c, tnpool_bucket *bucket, tnpool_block **out, tn_err *err)
{
    tnpool_block *b = tnpool_new(c->device.plugin, sizeof *b);
    tn_status st;

    if (!b)
        return tn_fail(err, TN_E_NOMEM, "out of host memory for the pool's own bookkeeping");
    bucket->block_count++; /* keeps the bucket when the cache is released */
    if ((st = tnpool_device_take(&c->device, bucket->bytes, &b->data, err))) {
        bucket->block_count--;
        tnpool_delete(c->device.plugin, b);
        return st;
    }
    b->bucket = bucket;
    b->after = c->all;
    if (c->all)
        c->all->before = b;
    c->all = b;
    *out = b;
    return TN_OK;
}

/* ---- the pool ------------------------------------------------------------------------------------ */

static void release_idle(void *pool)
{
    tnpool_cache_trim(pool, 0);
}

tn_status tnpool_cache_create(void *plugin, const tn_pool_source *source, const tn_pool_ops *ops,
                              tnpool_cache **out, tn_err *err)
{
    tnpool_cache *c = tnpool_new(plugin, sizeof *c);
    tn_status st;

    if (!c)
        return tn_fail(err, TN_E_NOMEM, "out of host memory for the pool");
    c->head.ops = ops;
    if ((st = tnpool_device_init(&c->device, plugin, source, err)))
        goto cleanup;
    c->device.pool = c;
    c->device.release = release_idle;
    c->table_count = TABLE_START;
    c->table = tnpool_new(plugin, TABLE_START * sizeof(tnpool_bucket *));
    if (!c->table) {
        st = tn_fail(err, TN_E_NOMEM, "out of host memory for the pool");
        goto cleanup;
    }
    *out = c;
    c = NULL;

cleanup:
    tnpool_delete(plugin, c);
    return st;
}

tn_status tnpool_cache_alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err)
{
    tnpool_cache *c = cache_of(pool);
    uint64_t block_bytes = bytes ? c->rounding(c, bytes) : 0;
    tnpool_bucket *bucket;
    tnpool_block *b;
    tn_status st;

    if (!block_bytes)
        return tnpool_fail(err, bytes ? TN_E_NOMEM : TN_E_ARG, "no block can hold %" PRIu64 " bytes", bytes);
    bucket = bucket_find(c, block_bytes);
    if (!bucket && !(bucket = bucket_create(c, block_bytes)))
        return tn_fail(err, TN_E_NOMEM, "out of host memory for the pool's own bookkeeping");
    b = bucket_pop(c, bucket, stream);
    if (b) {
        c->device.stats.hits++;
    } else {
        if ((st = block_create(c, bucket, &b, err))) {
            bucket_drop_if_unused(c, bucket);
            return st;
        }
        c->device.stats.misses++;
    }
    b->live = true;
    b->stream = stream;
    tnpool_device_live(&c->device, block_bytes);
    *out =
        (tn_memory){.data = b->data, .bytes = bytes, .block_bytes = block_bytes, .tag = b, .stream = stream};
    return TN_OK;
}

void tnpool_cache_free(tn_pool *pool, const tn_memory *memory, tn_stream *stream)
{
    tnpool_cache *c = cache_of(pool);
    tnpool_block *b = memory->tag;

    assert(b && b->live && b->data == memory->data);
    b->live = false;
    /* Without a mark the block stays with its stream: a stream that cannot be marked has failed. */
    b->stream = !tnpool_mark_record(&c->device, stream, &b->mark) || b->mark ? stream : NULL;
    b->next = b->bucket->top;
    b->bucket->top = b;
    tnpool_device_cached(&c->device, b->bucket->bytes);
}

void tnpool_cache_trim(tn_pool *pool, uint64_t keep_bytes)
{
    tnpool_cache *c = cache_of(pool);

    for (uint64_t i = 0; i < c->table_count; i++)
        for (tnpool_bucket *bucket = c->table[i], *next; bucket; bucket = next) {
            next = bucket->next;
            for (tnpool_block **at = &bucket->top; *at && c->device.stats.cached_bytes > keep_bytes;) {
                tnpool_block *b = *at;

                if (!block_is_idle(c, b)) {
                    at = &b->next;
                    continue;
                }
                *at = b->next;
                block_to_device(c, b);
            }
            bucket_drop_if_unused(c, bucket);
        }
}

void tnpool_cache_stats(tn_pool *pool, tn_pool_stats *out)
{
    tnpool_cache *c = cache_of(pool);
    uint64_t largest = 0;

    for (uint64_t i = 0; i < c->table_count; i++)
        for (const tnpool_bucket *b = c->table[i]; b; b = b->next)
            if (b->top && b->bytes > largest)
                largest = b->bytes;
    c->device.stats.largest_free = largest;
    tnpool_stats_copy(&c->device.stats, out);
}

void tnpool_cache_destroy(tn_pool *pool)
{
    tnpool_cache *c = pool ? cache_of(pool) : NULL;
    const tnpool_plugin *plugin;

    if (!c)
        return;
    plugin = c->device.plugin;
    for (tnpool_block *b = c->all, *after; b; b = after) {
        after = b->after;
        if (b->live)
            tnpool_device_cached(&c->device, b->bucket->bytes);
        block_to_device(c, b);
    }
    for (uint64_t i = 0; i < c->table_count; i++)
        for (tnpool_bucket *b = c->table[i], *next; b; b = next) {
            next = b->next;
            tnpool_delete(plugin, b);
        }
    tnpool_delete(plugin, c->table);
    tnpool_delete(plugin, c);
}
