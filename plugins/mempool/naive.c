/*
 * The pool `naive`, as MXNet's Naive: sizes are rounded up to pages, above `large_alloc_round_size` (2 MiB)
 * to multiples of that; a freed block serves requests of exactly its rounded size. Best where few sizes come
 * back often.
 */
#include "mempool.h"

static uint64_t naive_block(const tnpool_cache *c, uint64_t bytes)
{
    uint64_t block = tnpool_round_up(bytes, c->page_bytes);

    return block > c->large_bytes ? tnpool_round_up(block, c->large_bytes) : block;
}

static tn_status naive_create(void *plugin, const tn_pool_source *source, tn_pool **out, tn_err *err)
{
    const uint64_t high = (uint64_t)1 << 40;
    uint64_t page, large;
    tnpool_cache *c;
    tn_status st;

    if ((st = tnpool_option(source, "page_size", (tnpool_range){4096, 32, high}, &page, err)) ||
        (st = tnpool_option(source, "large_alloc_round_size", (tnpool_range){2u << 20, 1, high}, &large,
                            err)) ||
        (st = tnpool_cache_create(plugin, source, &tnpool_naive, &c, err)))
        return st;
    c->rounding = naive_block;
    c->page_bytes = page;
    c->large_bytes = large;
    *out = &c->head;
    return TN_OK;
}

const tn_pool_ops tnpool_naive = {
    .head = TN_CAPABILITY(tn_pool_ops, destroy, TN_KIND_POOL, "naive"),
    .create = naive_create,
    .alloc = tnpool_cache_alloc,
    .free = tnpool_cache_free,
    .trim = tnpool_cache_trim,
    .stats = tnpool_cache_stats,
    .destroy = tnpool_cache_destroy,
};
