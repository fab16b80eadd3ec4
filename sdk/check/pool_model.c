/*
 * The source and the oracle. The source's memory comes in mappings of their own; what lies around a region is
 * filled with a pattern. The oracle knows every block that is out, so a block that overlaps another one, lies
 * outside what the source gave, or is still in use on another stream, is seen at the moment the pool gives
 * it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pool.h"

#define EDGE_BYTES 4096u /* of a large block, so much of its start and end is filled and compared */

/* ---- the source ---- */

static chk_region *region_of(chk_pool *p, const void *data)
{
    for (size_t i = 0; i < p->region_count; i++)
        if (p->regions[i].data == data)
            return &p->regions[i];
    return NULL;
}

static tn_status source_alloc(void *arg, uint64_t bytes, void **out, tn_err *err)
{
    chk_pool *p = arg;
    uint64_t need = bytes + p->alignment;
    chk_region r = {.bytes = bytes};

    chk_fail_if(p->env, !bytes, "P-source", "asks the device for 0 bytes");
    p->failed |= p->fail_at == 1;
    if (p->fail_at && !--p->fail_at)
        return tn_fail(err, TN_E_NOMEM, "the device is made to fail");
    if (need < bytes || need > (uint64_t)1 << 46 || (p->limit && p->given + bytes > p->limit) ||
        p->region_count == CHK_REGIONS_MAX)
        return tn_fail(err, TN_E_NOMEM, "the device has no more memory");
    r.map_bytes = need;
    r.map = mmap(NULL, need, p->untouchable ? PROT_NONE : PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r.map == MAP_FAILED)
        return tn_fail(err, TN_E_NOMEM, "the host has no more memory");
    r.data = r.map + (p->alignment - (uintptr_t)r.map % p->alignment) % p->alignment;
    if (p->untouchable)
        (void)chk_guard_add(p->env, r.map, r.map_bytes, CHK_GUARD_BOUNDS, "memory of the device");
    p->regions[p->region_count++] = r;
    p->given += bytes;
    p->given_peak = p->given > p->given_peak ? p->given : p->given_peak;
    p->gives++;
    *out = r.data;
    return TN_OK;
}

static void source_free(void *arg, void *data)
{
    chk_pool *p = arg;
    chk_region *r = region_of(p, data);

    if (!r)
        chk_fail(p->env, "P-source", "gives memory back to the device that did not come from it, or twice");
    for (size_t i = 0; i < p->freed_count; i++)
        if (p->pool && !p->marks[p->freed[i].mark].done && p->freed[i].data >= r->data &&
            p->freed[i].data < r->data + r->bytes)
            chk_fail(p->env, "P-streams", "gives memory back to the device that a stream still uses");
    p->given -= r->bytes;
    p->takes++;
    (void)munmap(r->map, r->map_bytes);
    *r = p->regions[--p->region_count];
}

static tn_status source_info(void *arg, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const chk_pool *p = arg;

    *total_bytes = p->limit ? p->limit : (uint64_t)1 << 40;
    *free_bytes = *total_bytes - (p->given < *total_bytes ? p->given : *total_bytes);
    return TN_OK;
}

static const char *source_option(void *arg, const char *key)
{
    const chk_pool *p = arg;

    return key && p->option_key && strcmp(key, p->option_key) == 0 ? p->option_value : NULL;
}

/* Marks are 1 + index, as pointers. */
static chk_mark *mark_of(chk_pool *p, void *mark)
{
    size_t index = (uintptr_t)mark;

    if (!index || index > p->mark_count || p->marks[index - 1].released)
        chk_fail(p->env, "P-streams", "uses a mark that there is not, or that it released");
    return &p->marks[index - 1];
}

/* The present end of a stream. */
static size_t mark_add(chk_pool *p, uintptr_t stream)
{
    size_t at = stream % CHK_STREAMS;

    if (p->mark_count == CHK_MARKS_MAX)
        chk_fail(p->env, "P-streams", "makes over %u marks", CHK_MARKS_MAX / 2);
    p->clock[at][at]++;
    p->marks[p->mark_count] = (chk_mark){.stream = at};
    memcpy(p->marks[p->mark_count].clock, p->clock[at], sizeof p->clock[at]);
    return p->mark_count++;
}

static tn_status mark_record(void *arg, tn_stream *stream, void **out)
{
    chk_pool *p = arg;

    *out = NULL;
    if (!p->streams || !stream)
        return TN_OK;
    if (p->marks_fail && ++p->marks_asked % p->marks_fail == 0)
        return TN_E_DEVICE;
    (void)mark_add(p, (uintptr_t)stream);
    p->marks_open++;
    *out = (void *)(uintptr_t)p->mark_count;
    return TN_OK;
}

static int32_t mark_done(void *arg, void *mark)
{
    return mark_of(arg, mark)->done;
}

static tn_status mark_wait(void *arg, void *mark, tn_stream *stream)
{
    chk_pool *p = arg;
    uint32_t *clock = p->clock[(uintptr_t)stream % CHK_STREAMS];
    const chk_mark *m = mark_of(p, mark);

    for (size_t s = 0; s < CHK_STREAMS; s++)
        clock[s] = m->clock[s] > clock[s] ? m->clock[s] : clock[s];
    return TN_OK;
}

static void mark_release(void *arg, void *mark)
{
    chk_pool *p = arg;

    if (!mark)
        return;
    mark_of(p, mark)->released = true;
    p->marks_open--;
}

void chk_pool_mark_done(chk_pool *p, size_t index)
{
    const chk_mark *last = &p->marks[index];

    for (size_t i = 0; i <= index && !last->done; i++) {
        chk_mark *m = &p->marks[i];

        m->done |= m->clock[m->stream] <= last->clock[m->stream];
    }
}

void chk_pool_marks_finish(chk_pool *p)
{
    for (size_t i = 0; i < p->mark_count; i++)
        p->marks[i].done = true;
    p->freed_count = 0;
}

/* ---- opening and closing ---- */

static void *zeros(chk_env *env, size_t count, size_t bytes)
{
    void *made = calloc(count, bytes);

    chk_fail_if(env, !made, "kit", "out of memory");
    return made;
}

void chk_pool_begin(chk_pool *p, chk_env *env, chk_host_kind kind, const chk_pool *as)
{
    tn_pool_source source = {.struct_size = (uint32_t)TN_END(tn_pool_source, mark_release),
                             .arg = p,
                             .alloc = source_alloc,
                             .free = source_free,
                             .info = source_info,
                             .option = source_option,
                             .mark_record = mark_record,
                             .mark_done = mark_done,
                             .mark_wait = mark_wait,
                             .mark_release = mark_release};
    const tn_pool_stats stats = {.struct_size = (uint32_t)TN_END(tn_pool_stats, releases)};

    memset(p, 0, sizeof *p);
    if (as)
        *p = *as;
    p->env = env;
    p->kind = kind;
    p->alignment = p->alignment ? p->alignment : 64;
    source.alignment = p->alignment;
    p->regions = zeros(env, CHK_REGIONS_MAX, sizeof *p->regions);
    p->blocks = zeros(env, CHK_BLOCKS_MAX, sizeof *p->blocks);
    p->marks = zeros(env, CHK_MARKS_MAX, sizeof *p->marks);
    p->freed = zeros(env, CHK_MARKS_MAX, sizeof *p->freed);
    p->ops = chk_capability(env, TN_KIND_POOL, env->subject, NULL);
    chk_fail_if(env, !p->ops, "kit", "the plugin has no pool called \"%s\"", env->subject);
    chk_fault_rules(env, "P-untouched", "P-untouched", "the pool");
    (void)chk_plugin_open(env, kind, &p->plugin);
    p->source = chk_struct_make(env, kind, &source, CHK_SIZES(tn_pool_source, mark_release));
    p->stats = chk_struct_make(env, kind, &stats, CHK_SIZES(tn_pool_stats, releases));
}

tn_status chk_pool_create(chk_pool *p, tn_err *err)
{
    tn_status st;

    memset(err, 0, sizeof *err);
    p->pool = NULL;
    st = p->ops->create(p->plugin.self, p->source, &p->pool, err);
    if (!st && (!p->pool || p->pool->ops != p->ops))
        chk_fail(p->env, "P-block", "create gives no pool, or one whose `ops` is another table");
    return st;
}

void chk_pool_open(chk_pool *p, chk_env *env, chk_host_kind kind, const chk_pool *as)
{
    tn_err err;
    tn_status st;

    chk_pool_begin(p, env, kind, as);
    st = chk_pool_create(p, &err);
    chk_fail_if(env, st, NULL, "create fails with %s: %s", tn_status_name(st), err.message);
}

void chk_pool_close(chk_pool *p)
{
    tn_pool *pool = p->pool;

    p->pool = NULL;
    if (pool)
        p->ops->destroy(pool);
    if (p->given)
        chk_fail(p->env, "P-leak", "destroy keeps %llu bytes of the device in %zu pieces",
                 (unsigned long long)p->given, p->region_count);
    chk_fail_if(p->env, p->marks_open, "P-leak", "destroy leaves %zu marks unreleased", p->marks_open);
    (void)chk_plugin_close(p->env, &p->plugin);
    chk_struct_free(p->source);
    chk_struct_free(p->stats);
    free(p->regions);
    free(p->blocks);
    free(p->marks);
    free(p->freed);
}

/* ---- blocks ---- */

/* Fills the block, or compares: its start and its end where it is large. */
static bool pattern(const chk_pool *p, const chk_block *b, bool fill)
{
    unsigned char *data = b->memory.data;
    uint64_t bytes = b->memory.bytes;
    bool same = true;

    for (uint64_t i = 0; i < bytes && !p->untouchable; i++) {
        unsigned char want = (unsigned char)((b->seed + i) * 0x9E3779B97F4A7C15ULL >> 56);

        if (i == EDGE_BYTES && bytes > 2 * (uint64_t)EDGE_BYTES)
            i = bytes - EDGE_BYTES;
        if (fill)
            data[i] = want;
        else
            same &= data[i] == want;
    }
    return same;
}

static bool overlap(const unsigned char *a, uint64_t a_bytes, const unsigned char *b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static void freed_check(chk_pool *p, const tn_memory *m, uintptr_t stream)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->freed_count; i++) {
        const chk_mark *mark = &p->marks[p->freed[i].mark];

        if (!overlap(m->data, m->block_bytes, p->freed[i].data, p->freed[i].bytes)) {
            p->freed[kept++] = p->freed[i];
            continue;
        }
        if (!mark->done && p->clock[stream % CHK_STREAMS][mark->stream] < mark->clock[mark->stream])
            chk_fail(p->env, "P-streams",
                     "gives memory to stream %d that was freed on stream %d, whose work is not done, without "
                     "a wait",
                     (int)stream, (int)mark->stream);
    }
    p->freed_count = kept;
}

static void block_check(chk_pool *p, const tn_memory *m, uint64_t bytes, uintptr_t stream)
{
    const unsigned char *data = m->data;
    bool inside = false;

    if (!data || (uintptr_t)data % p->alignment)
        chk_fail(p->env, "P-align", "a block of %llu bytes lies at %p; the alignment is %u",
                 (unsigned long long)bytes, m->data, (unsigned)p->alignment);
    for (size_t i = 0; i < p->block_count; i++)
        if (overlap(data, bytes, p->blocks[i].memory.data, p->blocks[i].memory.bytes))
            chk_fail(p->env, "P-overlap",
                     "a block of %llu bytes overlaps one of %llu bytes that is still out",
                     (unsigned long long)bytes, (unsigned long long)p->blocks[i].memory.bytes);
    for (size_t i = 0; i < p->region_count && !inside; i++)
        inside =
            data >= p->regions[i].data && data + m->block_bytes <= p->regions[i].data + p->regions[i].bytes;
    if (!inside)
        chk_fail(p->env, "P-block", "a block of %llu bytes does not lie within what the device gave",
                 (unsigned long long)m->block_bytes);
    if (m->bytes != bytes || m->block_bytes < bytes)
        chk_fail(p->env, "P-block", "asked for %llu bytes, it says bytes %llu and block_bytes %llu",
                 (unsigned long long)bytes, (unsigned long long)m->bytes, (unsigned long long)m->block_bytes);
    if (m->stream != (tn_stream *)stream)
        chk_fail(p->env, "P-block", "the block's stream is not the one that it was asked for on");
    if (m->reserved[0] | m->reserved[1] | m->reserved[2])
        chk_fail(p->env, "P-block", "`reserved` of the block is not 0");
    freed_check(p, m, stream);
}

chk_block *chk_pool_take(chk_pool *p, uint64_t bytes, uintptr_t stream, tn_status *st)
{
    chk_block *b = &p->blocks[p->block_count];
    tn_memory memory;
    tn_err err = {0};

    chk_fail_if(p->env, p->block_count == CHK_BLOCKS_MAX, "kit", "over %u blocks", CHK_BLOCKS_MAX);
    memset(&memory, 0xA5, sizeof memory);
    *st = p->ops->alloc(p->pool, bytes, (tn_stream *)stream, &memory, &err);
    chk_count(p->env);
    if (*st && *st != TN_E_NOMEM)
        chk_fail(p->env, "P-nomem", "an allocation of %llu bytes fails with %s (%s) instead of TN_E_NOMEM",
                 (unsigned long long)bytes, tn_status_name(*st), err.message);
    chk_fail_if(p->env, *st && !*err.message, "P-nomem", "an allocation fails and does not say why");
    if (*st)
        return NULL;
    block_check(p, &memory, bytes, stream);
    p->allocs++;
    p->block_count++;
    *b = (chk_block){.memory = memory, .seed = p->allocs * 0x9E3779B97F4A7C15ULL};
    (void)pattern(p, b, true);
    return b;
}

chk_block *chk_pool_must(chk_pool *p, uint64_t bytes)
{
    tn_status st;
    chk_block *b = chk_pool_take(p, bytes, 0, &st);

    if (!b)
        chk_fail(p->env, NULL, "%llu bytes are refused with %s, though the device has them",
                 (unsigned long long)bytes, tn_status_name(st));
    return b;
}

/* The stream's work up to now is what the block waits for, whether the pool asks for a mark or not. */
void chk_pool_give(chk_pool *p, chk_block *block, uintptr_t stream)
{
    tn_memory memory = block->memory;

    if (!pattern(p, block, false))
        chk_fail(p->env, "P-untouched", "the contents of a block of %llu bytes changed while it was out",
                 (unsigned long long)memory.bytes);
    *block = p->blocks[--p->block_count];
    if (p->streams && stream) {
        p->freed[p->freed_count].data = memory.data;
        p->freed[p->freed_count].bytes = memory.block_bytes;
        p->freed[p->freed_count].mark = mark_add(p, stream);
        p->marks[p->freed[p->freed_count++].mark].released = true; /* it is ours */
    }
    p->ops->free(p->pool, &memory, (tn_stream *)stream);
}

void chk_pool_give_all(chk_pool *p)
{
    while (p->block_count)
        chk_pool_give(p, &p->blocks[p->block_count - 1], 0);
}

/* ---- numbers ---- */

static void number_check(chk_pool *p, const char *name, uint64_t said, uint64_t is)
{
    chk_count(p->env);
    if (said != is)
        chk_fail(p->env, "P-stats", "%s is %llu, but must be %llu", name, (unsigned long long)said,
                 (unsigned long long)is);
}

void chk_pool_stats_check(chk_pool *p)
{
    tn_pool_stats *s = p->stats;
    uint32_t size = s->struct_size;
    uint64_t live = 0;

    for (size_t i = 0; i < p->block_count; i++)
        live += p->blocks[i].memory.block_bytes;
    p->ops->stats(p->pool, s);
    if (s->struct_size != size || !chk_struct_intact(s))
        chk_fail(p->env, "R2", "stats changes struct_size, or writes behind it");
    number_check(p, "live_bytes", s->live_bytes, live);
    number_check(p, "live_blocks", s->live_blocks, p->block_count);
    number_check(p, "live_bytes + cached_bytes", s->live_bytes + s->cached_bytes, p->given);
    number_check(p, "peak_bytes", s->peak_bytes, p->given_peak);
    number_check(p, "hits + misses", s->hits + s->misses, p->allocs);
    number_check(p, "releases", s->releases, p->takes);
    if (s->largest_free > s->cached_bytes)
        chk_fail(p->env, "P-stats", "largest_free is %llu of %llu cached bytes",
                 (unsigned long long)s->largest_free, (unsigned long long)s->cached_bytes);
    if (s->largest_free * s->cached_blocks < s->cached_bytes ||
        (s->cached_blocks > 1 && s->largest_free == s->cached_bytes && s->cached_bytes))
        chk_fail(p->env, "P-stats", "largest_free is %llu, but %llu bytes are cached in %llu blocks",
                 (unsigned long long)s->largest_free, (unsigned long long)s->cached_bytes,
                 (unsigned long long)s->cached_blocks);
}
