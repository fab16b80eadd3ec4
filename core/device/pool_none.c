/*
 * The built-in pool `none`: every block comes from the device and goes back at once, or, where a stream may
 * still use it, as soon as that stream has passed the point of the free. It keeps nothing, so each miss is
 * the rule.
 */
#include "device/internal.h"

typedef struct late_free { /* made with the block, so that free cannot fail */
    void *data, *mark;
    uint64_t bytes;
    struct late_free *next, **at; /* in `late`, or in `live` */
} late_free;

typedef struct none_pool {
    tn_pool pool;
    const tn_pool_source *source;
    bool streams;
    late_free *late, *live;
    tn_pool_stats stats;
} none_pool;

static tn_status none_create(void *plugin, const tn_pool_source *source, tn_pool **out, tn_err *err)
{
    none_pool *p = tni_zalloc(sizeof *p);

    (void)plugin;
    if (!p)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    p->pool.ops = &tni_pool_none;
    p->source = source;
    p->streams = !((tni_pool *)source->arg)->device->host;
    p->stats.struct_size = (uint32_t)TN_END(tn_pool_stats, releases);
    *out = &p->pool;
    return TN_OK;
}

static void none_release(none_pool *p, void *data, uint64_t bytes)
{
    p->source->free(p->source->arg, data);
    p->stats.releases++;
    p->stats.cached_bytes -= bytes;
    p->stats.cached_blocks--;
}

static void late_link(late_free **list, late_free *f)
{
    if ((f->next = *list))
        f->next->at = &f->next;
    f->at = list;
    *list = f;
}

static void late_unlink(late_free *f)
{
    if ((*f->at = f->next))
        f->next->at = f->at;
}

static void none_sweep(none_pool *p, bool all)
{
    for (late_free *f = p->late, *next; f; f = next) {
        next = f->next;
        if (!all && !p->source->mark_done(p->source->arg, f->mark))
            continue;
        late_unlink(f);
        p->source->mark_release(p->source->arg, f->mark);
        none_release(p, f->data, f->bytes);
        tni_free(f);
    }
}

static tn_status none_alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err)
{
    none_pool *p = (none_pool *)pool;
    late_free *late = NULL;
    void *data;
    tn_status st;

    if (p->late)
        none_sweep(p, false);
    if (p->streams && !(late = tni_zalloc(sizeof *late)))
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    if ((st = p->source->alloc(p->source->arg, bytes, &data, err))) {
        tni_free(late);
        return st;
    }
    *out = (tn_memory){.data = data, .bytes = bytes, .block_bytes = bytes, .tag = late, .stream = stream};
    if (late)
        late_link(&p->live, late);
    p->stats.misses++;
    p->stats.live_blocks++;
    p->stats.live_bytes += bytes;
    if (p->stats.live_bytes + p->stats.cached_bytes > p->stats.peak_bytes)
        p->stats.peak_bytes = p->stats.live_bytes + p->stats.cached_bytes;
    return TN_OK;
}

static void none_free(tn_pool *pool, const tn_memory *memory, tn_stream *stream)
{
    none_pool *p = (none_pool *)pool;
    late_free *late = memory->tag;
    void *mark = NULL;

    p->stats.live_blocks--;
    p->stats.live_bytes -= memory->block_bytes;
    p->stats.cached_blocks++;
    p->stats.cached_bytes += memory->block_bytes;
    if (late)
        late_unlink(late);
    if (late && !p->source->mark_record(p->source->arg, stream, &mark) && mark) {
        late->data = memory->data;
        late->mark = mark;
        late->bytes = memory->block_bytes;
        late_link(&p->late, late);
        return;
    }
    tni_free(late);
    none_release(p, memory->data, memory->block_bytes);
}

static void none_trim(tn_pool *pool, uint64_t keep_bytes)
{
    (void)keep_bytes;
    none_sweep((none_pool *)pool, false);
}

static void none_stats(tn_pool *pool, tn_pool_stats *out)
{
    const tn_pool_stats *stats = &((none_pool *)pool)->stats;
    uint32_t size = out->struct_size;

    if (size < TN_END(tn_pool_stats, releases))
        return; /* the core always asks for all */
    *out = *stats;
    out->struct_size = size;
}

static void none_destroy(tn_pool *pool)
{
    none_pool *p = (none_pool *)pool;

    none_sweep(p, true);                               /* streams are gone by now */
    for (late_free *f = p->live, *next; f; f = next) { /* never freed: the core gives their memory back */
        next = f->next;
        tni_free(f);
    }
    tni_free(p);
}

const tn_pool_ops tni_pool_none = {
    .head = TN_CAPABILITY(tn_pool_ops, destroy, TN_KIND_POOL, "none"),
    .create = none_create,
    .alloc = none_alloc,
    .free = none_free,
    .trim = none_trim,
    .stats = none_stats,
    .destroy = none_destroy,
};
