/*
 * The pool `round`, as MXNet's Round: powers of two from the page size to 2^cutoff (option
 * `round_linear_cutoff`, 20 to 34, default 24), above that multiples of 2^cutoff. Nearby sizes share a
 * bucket, at the price of up to half a block. MXNet indexes a vector that ends at 16 GiB; here buckets are
 * hashed by size and any 64-bit size has one.
 */
#include "mempool.h"

static uint64_t round_block(const tnpool_cache *c, uint64_t bytes)
{
    const uint64_t cutoff = (uint64_t)1 << c->cutoff;

    if (bytes <= c->page_bytes)
        return c->page_bytes;
    if (bytes > cutoff)
        return tnpool_round_up(bytes, cutoff);
    return (uint64_t)1 << (64 - __builtin_clzll(bytes - 1)); /* bytes - 1 > 0: pages have at least 32 bytes */
}

static tn_status round_create(void *plugin, const tn_pool_source *source, tn_pool **out, tn_err *err)
{
    uint64_t page, cutoff;
    tnpool_cache *c;
    tn_status st;

    if ((st = tnpool_option(source, "round_linear_cutoff", (tnpool_range){24, 20, 34}, &cutoff, err)) ||
        (st =
             tnpool_option(source, "page_size", (tnpool_range){4096, 32, (uint64_t)1 << cutoff}, &page, err)))
        return st;
    if (page & (page - 1))
        return tnpool_fail(err, TN_E_ARG, "page_size is %llu, but the pool round needs a power of two",
                           (unsigned long long)page);
    if ((st = tnpool_cache_create(plugin, source, &tnpool_round, &c, err)))
        return st;
    c->rounding = round_block;
    c->page_bytes = page;
    c->cutoff = (uint32_t)cutoff;
    *out = &c->head;
    return TN_OK;
}

const tn_pool_ops tnpool_round = {
    .head = TN_CAPABILITY(tn_pool_ops, destroy, TN_KIND_POOL, "round"),
    .create = round_create,
    .alloc = tnpool_cache_alloc,
    .free = tnpool_cache_free,
    .trim = tnpool_cache_trim,
    .stats = tnpool_cache_stats,
    .destroy = tnpool_cache_destroy,
};
