/*
 * A plugin with one memory pool, `first-fit`: the first free piece that is large enough, in order of address.
 *
 * Device memory comes in regions of at least 1 MiB, which are cut into pieces; a piece knows the next one of
 * its region. Nothing is ever written to the memory itself: it may be a device's. The host calls a pool under
 * its own lock.
 */
#include "tenon/plugin/pool.h"

#include <stdlib.h>

#define REGION_BYTES ((uint64_t)1 << 20)

typedef struct piece {
    struct piece *next; /* the neighbour above; NULL: the last of its region */
    char *data;
    uint64_t bytes;
    int32_t used;
    tn_stream *stream; /* freed there and perhaps still in use by it; NULL: idle */
    void *mark;
} piece;

typedef struct region {
    struct region *next;
    piece *first;
    uint64_t bytes;
} region;

typedef struct own_pool {
    tn_pool head; /* must be the first */
    const tn_pool_source *source;
    region *regions;
    tn_pool_stats stats;
} own_pool;

static uint64_t round_up(uint64_t bytes, uint64_t step)
{
    return bytes > UINT64_MAX - step ? 0 : (bytes + step - 1) / step * step;
}

/* ---- pieces -------------------------------------------------------------------------------------- */

/* Forgets who used a piece, once that is over. */
static int32_t piece_idle(own_pool *p, piece *at)
{
    if (at->mark && p->source->mark_done(p->source->arg, at->mark)) {
        p->source->mark_release(p->source->arg, at->mark);
        at->mark = NULL;
        at->stream = NULL;
    }
    return !at->used && !at->stream;
}

/* Merges every two neighbours that are idle. */
static void region_merge(own_pool *p, region *r)
{
    for (piece *at = r->first; at; at = at->next)
        while (at->next && piece_idle(p, at) && piece_idle(p, at->next)) {
            piece *gone = at->next;

            at->bytes += gone->bytes;
            at->next = gone->next;
            p->stats.cached_blocks--;
            free(gone);
        }
}

static piece *piece_find(own_pool *p, uint64_t bytes, tn_stream *stream)
{
    for (region *r = p->regions; r; r = r->next) {
        region_merge(p, r);
        for (piece *at = r->first; at; at = at->next)
            if (!at->used && at->bytes >= bytes && (piece_idle(p, at) || at->stream == stream))
                return at;
    }
    return NULL;
}

/* Cuts what is too much off a piece. Without memory for a descriptor the piece stays larger than
 * asked for. */
static void piece_split(own_pool *p, piece *at, uint64_t bytes)
{
    piece *rest = at->bytes > bytes && !at->stream ? calloc(1, sizeof *rest) : NULL;

    if (!rest)
        return;
    rest->next = at->next;
    rest->data = at->data + bytes;
    rest->bytes = at->bytes - bytes;
    at->next = rest;
    at->bytes = bytes;
    p->stats.cached_blocks++;
}

/* ---- regions ------------------------------------------------------------------------------------- */

static tn_status region_add(own_pool *p, uint64_t bytes, piece **out, tn_err *err)
{
    region *r = calloc(1, sizeof *r);
    piece *first = calloc(1, sizeof *first);
    void *data = NULL;
    tn_status st = TN_E_NOMEM;

    if (!r || !first)
        tn_fail(err, st, "out of host memory for the pool's own bookkeeping");
    else
        st = p->source->alloc(p->source->arg, bytes, &data, err);
    if (st) {
        free(r);
        free(first);
        return st;
    }
    first->data = data;
    first->bytes = r->bytes = bytes;
    r->first = first;
    r->next = p->regions;
    p->regions = r;
    p->stats.cached_bytes += bytes;
    p->stats.cached_blocks++;
    if (p->stats.live_bytes + p->stats.cached_bytes > p->stats.peak_bytes)
        p->stats.peak_bytes = p->stats.live_bytes + p->stats.cached_bytes;
    *out = first;
    return TN_OK;
}

static void region_give(own_pool *p, region *r)
{
    p->source->free(p->source->arg, r->first->data);
    for (piece *at = r->first, *next; at; at = next) {
        next = at->next;
        if (at->mark)
            p->source->mark_release(p->source->arg, at->mark);
        *(at->used ? &p->stats.live_bytes : &p->stats.cached_bytes) -= at->bytes;
        *(at->used ? &p->stats.live_blocks : &p->stats.cached_blocks) -= 1;
        free(at);
    }
    p->stats.releases++;
    free(r);
}

/* ---- the pool ------------------------------------------------------------------------------------ */

static const tn_pool_ops pool_ops;

static tn_status pool_create(void *plugin, const tn_pool_source *source, tn_pool **out, tn_err *err)
{
    own_pool *p = calloc(1, sizeof *p);

    (void)plugin;
    if (!p)
        return tn_fail(err, TN_E_NOMEM, "out of host memory for the pool");
    p->head.ops = &pool_ops;
    p->source = source;
    *out = &p->head;
    return TN_OK;
}

static void pool_trim(tn_pool *pool, uint64_t keep_bytes)
{
    own_pool *p = (own_pool *)pool;

    for (region **at = &p->regions; *at && p->stats.cached_bytes > keep_bytes;) {
        region *r = *at;

        region_merge(p, r);
        if (r->first->next || !piece_idle(p, r->first)) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        region_give(p, r);
    }
}

static tn_status pool_alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err)
{
    own_pool *p = (own_pool *)pool;
    const uint64_t need = round_up(bytes, p->source->alignment);
    piece *at = need ? piece_find(p, need, stream) : NULL;
    tn_status st;

    if (!need)
        return tn_fail(err, bytes ? TN_E_NOMEM : TN_E_ARG, "no block can have this size");
    if (at) {
        p->stats.hits++;
    } else {
        const uint64_t region_bytes =
            need > REGION_BYTES ? need : round_up(REGION_BYTES, p->source->alignment);

        st = region_add(p, region_bytes, &at, err);
        if (st == TN_E_NOMEM) {
            pool_trim(pool, 0);
            st = region_add(p, need, &at, err);
        }
        if (st)
            return st;
        p->stats.misses++;
    }
    piece_split(p, at, need);
    if (at->mark)
        p->source->mark_release(p->source->arg, at->mark);
    at->mark = NULL;
    at->stream = NULL;
    at->used = 1;
    p->stats.cached_bytes -= at->bytes;
    p->stats.cached_blocks--;
    p->stats.live_bytes += at->bytes;
    p->stats.live_blocks++;
    *out =
        (tn_memory){.data = at->data, .bytes = bytes, .block_bytes = at->bytes, .tag = at, .stream = stream};
    return TN_OK;
}

/* On a device the block stays its stream's until the mark is done. */
static void pool_free(tn_pool *pool, const tn_memory *memory, tn_stream *stream)
{
    own_pool *p = (own_pool *)pool;
    piece *at = memory->tag;

    at->used = 0;
    p->stats.live_bytes -= at->bytes;
    p->stats.live_blocks--;
    p->stats.cached_bytes += at->bytes;
    p->stats.cached_blocks++;
    if (stream && TN_HAS(p->source, tn_pool_source, mark_record) &&
        (p->source->mark_record(p->source->arg, stream, &at->mark) || at->mark))
        at->stream = stream;
}

static void pool_stats(tn_pool *pool, tn_pool_stats *out)
{
    own_pool *p = (own_pool *)pool;
    const uint32_t size = out->struct_size;

    if (size < (uint32_t)TN_END(tn_pool_stats, releases))
        return; /* an older host's struct; there is none yet */
    p->stats.largest_free = 0;
    for (const region *r = p->regions; r; r = r->next)
        for (const piece *at = r->first; at; at = at->next)
            if (!at->used && at->bytes > p->stats.largest_free)
                p->stats.largest_free = at->bytes;
    *out = p->stats;
    out->struct_size = size;
}

static void pool_destroy(tn_pool *pool)
{
    own_pool *p = (own_pool *)pool;

    while (p && p->regions) {
        region *r = p->regions;

        p->regions = r->next;
        region_give(p, r);
    }
    free(p);
}

static const tn_pool_ops pool_ops = {
    .head = TN_CAPABILITY(tn_pool_ops, destroy, TN_KIND_POOL, "first-fit"),
    .create = pool_create,
    .alloc = pool_alloc,
    .free = pool_free,
    .trim = pool_trim,
    .stats = pool_stats,
    .destroy = pool_destroy,
};

static const tn_capability *const capabilities[] = {&pool_ops.head, NULL};

TN_PLUGIN_DEFINE("acme-pool", "1.0.0", "Acme", "Apache-2.0", "a memory pool", "", "pool:first-fit", NULL,
                 NULL, NULL, capabilities);
