/*
 * The pool `segment`: few large pieces of device memory, cut into chunks that are split and merged again.
 *
 * Free chunks lie in bins by size, 16 to each power of two, with a bitmap over them; the smallest bin that
 * surely fits is found with two bit scans, after a short look into the bin of the size itself. Neighbours in
 * memory are linked, so a freed chunk merges at once. Small and large requests have segments of their own: a
 * small block that lives long then never splits a large one. A segment is a sixteenth of what the pool has
 * already, within limits, so that a small net does not pay for a large one's habits; before the pool grows it
 * gives up idle segments that are too small for the request.
 *
 * A chunk freed on a stream belongs to that stream until its mark is done. Merging two chunks of one stream
 * keeps the later mark; merging with an idle chunk hands that to the stream for the while.
 *
 * Where the host runs far ahead of the streams, marks stay open for long. The pool then grows until it has
 * cached about as much as is live, and from there on makes streams wait for each other's blocks instead.
 *
 * Invariants: no two neighbours are free and mergeable at the same time, apart from those whose marks have
 * become done since; the chunks of a segment cover it without gaps; the descriptors lie in host memory, never
 * in the device's. `free` allocates nothing.
 */
#include "segment.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define SMALL_MAX (32u << 10)    /* larger requests use the large segments */
#define SMALL_UNIT 64u           /* sizes are multiples of this or of the source's alignment */
#define LARGE_UNIT 512u          /* the same for large requests */
#define SEGMENT_UNIT (64u << 10) /* segments are multiples of this */
#define SEGMENT_MIN (256u << 10)
#define SEGMENT_MAX (32u << 20) /* of a segment that is larger than its first request */
#define GROWTH 16u              /* a new segment is 1/16 of what there is */
#define PROBE_MAX 16u           /* chunks looked at in the bin of the size itself */
#define POLL_MAX 32u            /* marks of other streams asked for before the full sweep */
#define WAIT_SLACK (1u << 20)   /* cached beyond what is live before streams wait for each other's blocks */
#define STREAM_MEMO 8u          /* streams a sweep remembers as not done yet */

static segment_pool *segment_of(tn_pool *pool)
{
    assert(pool->ops == &tnpool_segment);
    return (segment_pool *)pool;
}

/* ---- marks --------------------------------------------------------------------------------------- */

static void pending_add(segment_pool *p, chunk *c)
{
    c->pending_before = p->pending_last;
    c->pending_after = NULL;
    if (p->pending_last)
        p->pending_last->pending_after = c;
    else
        p->pending_first = c;
    p->pending_last = c;
}

static void pending_remove(segment_pool *p, chunk *c)
{
    if (c->pending_before)
        c->pending_before->pending_after = c->pending_after;
    else
        p->pending_first = c->pending_after;
    if (c->pending_after)
        c->pending_after->pending_before = c->pending_before;
    else
        p->pending_last = c->pending_before;
    c->pending_before = c->pending_after = NULL;
}

/* Makes a chunk idle: no stream has a claim on it any more. */
static void claim_drop(segment_pool *p, chunk *c)
{
    if (!c->stream)
        return;
    pending_remove(p, c);
    tnpool_mark_release(&p->device, c->mark);
    c->mark = NULL;
    c->stream = NULL;
}

static bool claim_is_over(segment_pool *p, chunk *c)
{
    if (c->stream && c->mark && tnpool_mark_done(&p->device, c->mark)) {
        claim_drop(p, c);
        c->segment->dirty = true;
    }
    return !c->stream;
}

/* ---- splitting and merging ----------------------------------------------------------------------- */

/* May a and its neighbour b become one chunk? Both are free. */
static bool may_merge(segment_pool *p, chunk *a, chunk *b)
{
    if (!a->stream || !b->stream || a->stream == b->stream)
        return true;
    return claim_is_over(p, a) || claim_is_over(p, b);
}

/* Joins b, the neighbour after a, into a. Neither is in a bin. */
static void merge(segment_pool *p, chunk *a, chunk *b)
{
    if (b->stream && (!a->stream || b->freed > a->freed)) { /* b's claim is the later one: it moves to a */
        tn_stream *stream = b->stream;
        void *mark = b->mark;

        claim_drop(p, a);
        b->mark = NULL;
        claim_drop(p, b);
        a->stream = stream;
        a->mark = mark;
        a->freed = b->freed;
        pending_add(p, a);
    }
    claim_drop(p, b);
    a->bytes += b->bytes;
    a->after = b->after;
    if (b->after)
        b->after->before = a;
    tnpool_chunk_recycle(p, b);
    p->device.stats.cached_blocks--;
}

/* Merges a free chunk, in no bin, with its free neighbours, and files the result. */
static chunk *settle(segment_pool *p, chunk *c)
{
    segment_heap *heap = c->segment->heap;

    if (c->after && !c->after->live && may_merge(p, c, c->after)) {
        tnpool_bin_remove(heap, c->after);
        merge(p, c, c->after);
    }
    if (c->before && !c->before->live && may_merge(p, c->before, c)) {
        c = c->before;
        tnpool_bin_remove(heap, c);
        merge(p, c, c->after);
    }
    tnpool_bin_insert(heap, c);
    return c;
}

/* Merges what has become idle in a segment. */
static void segment_settle(segment_pool *p, segment *s)
{
    for (chunk *c = s->first; c; c = c->after)
        while (!c->live && c->after && !c->after->live && may_merge(p, c, c->after)) {
            tnpool_bin_remove(s->heap, c);
            tnpool_bin_remove(s->heap, c->after);
            merge(p, c, c->after);
            tnpool_bin_insert(s->heap, c);
        }
    s->dirty = false;
}

/* Polls the open marks, oldest first, and merges what became idle. True: something did, now or since the last
 * sweep. */
static bool sweep(segment_pool *p)
{
    tn_stream *busy[STREAM_MEMO];
    uint32_t busy_count = 0;
    bool found = false;

    for (chunk *c = p->pending_first, *next; c; c = next) {
        uint32_t i = 0;

        next = c->pending_after;
        while (i < busy_count && busy[i] != c->stream)
            i++;
        if (i == busy_count && c->mark && !claim_is_over(p, c) && busy_count < STREAM_MEMO)
            busy[busy_count++] = c->stream;
    }
    for (segment *s = p->segments; s; s = s->after)
        if (s->dirty) {
            segment_settle(p, s);
            found = true;
        }
    return found;
}

/* ---- finding a chunk ----------------------------------------------------------------------------- */

/* What is looked for. `polls` bounds the marks of other streams that are asked for on the way. */
typedef struct request {
    uint64_t bytes;
    tn_stream *stream;
    uint32_t polls;
} request;

static bool usable(segment_pool *p, chunk *c, request *r)
{
    if (c->bytes < r->bytes)
        return false;
    if (!c->stream || c->stream == r->stream)
        return true;
    if (!r->polls)
        return false;
    r->polls--;
    return claim_is_over(p, c);
}

static char *chunk_data(const chunk *c)
{
    return (char *)c->segment->data + c->offset;
}

/* The smallest usable chunk among the first few of a bin. Of several for a stream the one that lies lowest:
 * so steps that are alike take turns with fewer blocks, which graphs of a device know by their addresses. */
static chunk *bin_best(segment_pool *p, chunk *first, request *r)
{
    chunk *best = NULL;
    uint32_t probes = 0;

    for (chunk *c = first; c && probes < PROBE_MAX; c = c->bin_after, probes++) {
        if (best && (c->bytes > best->bytes || (c->bytes == best->bytes && chunk_data(c) > chunk_data(best))))
            continue;
        if (!usable(p, c, r))
            continue;
        best = c;
        if (c->bytes == r->bytes && !r->stream)
            break;
    }
    return best;
}

static chunk *find(segment_pool *p, segment_heap *heap, uint64_t bytes, tn_stream *stream)
{
    request r = {bytes, stream, POLL_MAX};
    uint32_t bin = tnpool_bin_of(bytes);
    chunk *c = NULL;

    while (!c && (bin = tnpool_bin_next(heap, bin)) < BIN_COUNT)
        c = bin_best(p, heap->bin[bin++], &r);
    return c;
}

/* The smallest chunk of any other stream that fits; `stream` is made to wait for its mark. */
static chunk *find_waiting(segment_pool *p, uint64_t bytes, tn_stream *stream)
{
    chunk *best = NULL;

    for (chunk *c = p->pending_first; c; c = c->pending_after)
        if (c->bytes >= bytes && c->mark && (!best || c->bytes < best->bytes))
            best = c;
    return best && tnpool_mark_wait(&p->device, best->mark, stream) ? best : NULL;
}

/* The last resort: a chunk of either heap and of any stream. */
static chunk *find_anywhere(segment_pool *p, uint64_t bytes, tn_stream *stream)
{
    chunk *best = NULL;

    for (uint32_t h = 0; h < HEAP_COUNT && !best; h++)
        best = find(p, &p->heap[h], bytes, stream);
    return best ? best : find_waiting(p, bytes, stream);
}

/* ---- segments ------------------------------------------------------------------------------------ */

static bool segment_is_idle(segment_pool *p, segment *s)
{
    return !s->first->live && !s->first->after && claim_is_over(p, s->first);
}

static void segment_give(segment_pool *p, segment *s, bool forced)
{
    assert(forced || (!s->first->live && !s->first->after));
    if (!forced)
        tnpool_bin_remove(s->heap, s->first);
    while (s->first) {
        chunk *c = s->first;

        s->first = c->after;
        if (c->live)
            tnpool_device_cached(&p->device, c->bytes);
        else
            claim_drop(p, c);
        if (s->first)
            p->device.stats.cached_blocks--;
        tnpool_chunk_recycle(p, c);
    }
    tnpool_device_give(&p->device, s->data, s->bytes);
    if (s->before)
        s->before->after = s->after;
    else
        p->segments = s->after;
    if (s->after)
        s->after->before = s->before;
    tnpool_delete(p->device.plugin, s);
}

/* Gives idle segments back, the largest first, while more than `keep_bytes` are cached and `goal` is not
 * reached. */
static void segments_release(segment_pool *p, uint64_t keep_bytes, uint64_t below, uint64_t goal)
{
    uint64_t given = 0;

    while (given < goal && p->device.stats.cached_bytes > keep_bytes) {
        segment *best = NULL;

        for (segment *s = p->segments; s; s = s->after)
            if (s->bytes < below && (!best || s->bytes > best->bytes) && segment_is_idle(p, s))
                best = s;
        if (!best)
            return;
        given += best->bytes;
        segment_give(p, best, false);
    }
}

static void release_idle(void *pool)
{
    sweep(pool);
    segments_release(pool, 0, UINT64_MAX, UINT64_MAX);
}

static tn_status segment_create(segment_pool *p, segment_heap *heap, uint64_t bytes, segment **out,
                                tn_err *err)
{
    segment *s = tnpool_new(p->device.plugin, sizeof *s);
    chunk *c = tnpool_chunk_new(p);
    tn_status st;

    if (!s || !c) {
        st = tn_fail(err, TN_E_NOMEM, "out of host memory for the pool's own bookkeeping");
        goto cleanup;
    }
    if ((st = tnpool_device_take(&p->device, bytes, &s->data, err)))
        goto cleanup;
    s->heap = heap;
    s->bytes = c->bytes = bytes;
    s->first = c;
    c->segment = s;
    s->after = p->segments;
    if (p->segments)
        p->segments->before = s;
    p->segments = s;
    tnpool_bin_insert(heap, c);
    *out = s;
    return TN_OK;

cleanup:
    tnpool_delete(p->device.plugin, s);
    if (c)
        tnpool_chunk_recycle(p, c);
    return st;
}

/* An idle segment of the other heap that is large enough; a small request takes no large segment. */
static chunk *adopt(segment_pool *p, segment_heap *heap, uint64_t bytes)
{
    const uint64_t most = heap == &p->heap[0] ? SEGMENT_MIN : UINT64_MAX;
    segment *best = NULL;

    for (segment *s = p->segments; s; s = s->after)
        if (s->heap != heap && s->bytes >= bytes && s->bytes <= most && (!best || s->bytes < best->bytes) &&
            segment_is_idle(p, s))
            best = s;
    if (!best)
        return NULL;
    tnpool_bin_remove(best->heap, best->first);
    best->heap = heap;
    tnpool_bin_insert(heap, best->first);
    return best->first;
}

/* A new segment for `bytes`: of the usual size, else just large enough. */
static tn_status grow(segment_pool *p, segment_heap *heap, uint64_t bytes, chunk **out, tn_err *err)
{
    const uint64_t total = p->device.stats.live_bytes + p->device.stats.cached_bytes;
    uint64_t usual = total / GROWTH, exact = tnpool_round_up(bytes, SEGMENT_UNIT);
    segment *s;
    tn_status st;

    if (!exact)
        return tnpool_fail(err, TN_E_NOMEM, "no segment can hold %" PRIu64 " bytes", bytes);
    usual = usual < SEGMENT_MIN ? SEGMENT_MIN : usual > SEGMENT_MAX ? SEGMENT_MAX : usual;
    usual = tnpool_round_up(usual, SEGMENT_UNIT);
    segments_release(p, 0, exact, usual > exact ? usual : exact);
    st = TN_E_NOMEM;
    if (usual > exact)
        st = segment_create(p, heap, usual, &s, err);
    if (st == TN_E_NOMEM)
        st = segment_create(p, heap, exact, &s, err);
    if (!st) {
        if (err)
            tn_fail(err, TN_OK, "");
        *out = s->first;
    }
    return st;
}

/* ---- the pool ------------------------------------------------------------------------------------ */

static tn_status segment_pool_create(void *plugin, const tn_pool_source *source, tn_pool **out, tn_err *err)
{
    segment_pool *p = tnpool_new(plugin, sizeof *p);
    tn_status st;

    if (!p)
        return tn_fail(err, TN_E_NOMEM, "out of host memory for the pool");
    p->head.ops = &tnpool_segment;
    if ((st = tnpool_device_init(&p->device, plugin, source, err))) {
        tnpool_delete(plugin, p);
        return st;
    }
    p->device.pool = p;
    p->device.release = release_idle;
    p->small_unit = source->alignment > SMALL_UNIT ? source->alignment : SMALL_UNIT;
    p->large_unit = source->alignment > LARGE_UNIT ? source->alignment : LARGE_UNIT;
    *out = &p->head;
    return TN_OK;
}

/* Takes `bytes` from the start of a free chunk that is in its bin. The rest stays free, with the chunk's
 * claim. */
static chunk *chunk_take(segment_pool *p, chunk *c, uint64_t bytes)
{
    segment_heap *heap = c->segment->heap;
    chunk *rest = c->bytes - bytes >= p->small_unit ? tnpool_chunk_new(p) : NULL;

    tnpool_bin_remove(heap, c);
    if (rest) { /* without a descriptor the block just stays larger than asked for */
        rest->segment = c->segment;
        rest->offset = c->offset + bytes;
        rest->bytes = c->bytes - bytes;
        rest->before = c;
        rest->after = c->after;
        if (c->after)
            c->after->before = rest;
        c->after = rest;
        c->bytes = bytes;
        if (c->stream) {
            rest->stream = c->stream;
            rest->mark = c->mark;
            rest->freed = c->freed;
            c->mark = NULL;
            pending_add(p, rest);
        }
        tnpool_bin_insert(heap, rest);
        p->device.stats.cached_blocks++;
    }
    claim_drop(p, c);
    c->live = true;
    tnpool_device_live(&p->device, c->bytes);
    return c;
}

/* Slow part of alloc: nothing usable lies in the bins. */
static tn_status find_or_grow(segment_pool *p, segment_heap *heap, uint64_t bytes, tn_stream *stream,
                              chunk **out, tn_err *err)
{
    chunk *c = NULL;
    tn_status st = TN_OK;

    if (p->pending_first && sweep(p))
        c = find(p, heap, bytes, stream);
    if (!c)
        c = adopt(p, heap, bytes);
    if (!c && p->device.stats.cached_bytes > p->device.stats.live_bytes + bytes + WAIT_SLACK)
        c = find_waiting(p, bytes, stream);
    if (!c && (st = grow(p, heap, bytes, &c, err)) == TN_OK) {
        p->device.stats.misses++;
    } else {
        if (!c && st == TN_E_NOMEM)
            c = find_anywhere(p, bytes, stream);
        if (!c)
            return st;
        p->device.stats.hits++;
    }
    *out = c;
    return TN_OK;
}

static tn_status segment_alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err)
{
    segment_pool *p = segment_of(pool);
    const bool small = bytes <= SMALL_MAX;
    uint64_t rounded = tnpool_round_up(bytes, small ? p->small_unit : p->large_unit);
    segment_heap *heap = &p->heap[small ? 0 : 1];
    chunk *c;
    tn_status st;

    if (!bytes || !rounded)
        return tnpool_fail(err, bytes ? TN_E_NOMEM : TN_E_ARG, "no block can hold %" PRIu64 " bytes", bytes);
    c = find(p, heap, rounded, stream);
    if (c)
        p->device.stats.hits++;
    else if ((st = find_or_grow(p, heap, rounded, stream, &c, err)))
        return st;
    c = chunk_take(p, c, rounded);
    *out = (tn_memory){.data = (char *)c->segment->data + c->offset,
                       .bytes = bytes,
                       .block_bytes = c->bytes,
                       .tag = c,
                       .stream = stream};
    return TN_OK;
}

static void segment_free(tn_pool *pool, const tn_memory *memory, tn_stream *stream)
{
    segment_pool *p = segment_of(pool);
    chunk *c = memory->tag;

    assert(c && c->live);
    c->live = false;
    tnpool_device_cached(&p->device, c->bytes);
    c->freed = ++p->frees;
    /* A stream that cannot be marked has failed: the chunk stays with it, without a mark. */
    if (!tnpool_mark_record(&p->device, stream, &c->mark) || c->mark) {
        c->stream = stream;
        pending_add(p, c);
    }
    settle(p, c);
}

static void segment_trim(tn_pool *pool, uint64_t keep_bytes)
{
    segment_pool *p = segment_of(pool);

    if (p->device.stats.cached_bytes <= keep_bytes)
        return;
    sweep(p);
    segments_release(p, keep_bytes, UINT64_MAX, UINT64_MAX);
}

static void segment_stats(tn_pool *pool, tn_pool_stats *out)
{
    segment_pool *p = segment_of(pool);
    uint64_t largest = 0;

    for (uint32_t h = 0; h < HEAP_COUNT; h++)
        for (const chunk *c = tnpool_bin_last(&p->heap[h]); c; c = c->bin_after)
            largest = c->bytes > largest ? c->bytes : largest;
    p->device.stats.largest_free = largest;
    tnpool_stats_copy(&p->device.stats, out);
}

static void segment_destroy(tn_pool *pool)
{
    segment_pool *p = pool ? segment_of(pool) : NULL;

    if (!p)
        return;
    while (p->segments)
        segment_give(p, p->segments, true);
    tnpool_chunks_delete(p);
    tnpool_delete(p->device.plugin, p);
}

const tn_pool_ops tnpool_segment = {
    .head = TN_CAPABILITY(tn_pool_ops, destroy, TN_KIND_POOL, "segment"),
    .create = segment_pool_create,
    .alloc = segment_alloc,
    .free = segment_free,
    .trim = segment_trim,
    .stats = segment_stats,
    .destroy = segment_destroy,
};
