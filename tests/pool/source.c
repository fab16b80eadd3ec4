/* The device and the host that a pool under test sees. See source.h. */
#include "source.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static tn_status source_alloc(void *arg, uint64_t bytes, void **out, tn_err *err)
{
    source *s = arg;
    uint32_t i = 0;

    s->alloc_calls++;
    if (s->fail_at && s->alloc_calls == (uint64_t)s->fail_at)
        return tn_fail(err, TN_E_NOMEM, "injected");
    if (s->total_bytes && (bytes > s->total_bytes || s->given_bytes > s->total_bytes - bytes))
        return tn_fail(err, TN_E_NOMEM, "the test's device is full");
    while (s->blocks[i].data)
        assert_true(++i < SOURCE_BLOCKS_MAX);
    if (s->real) {
        s->blocks[i].data = aligned_alloc(
            s->ops.alignment, (size_t)((bytes + s->ops.alignment - 1) & ~(uint64_t)(s->ops.alignment - 1)));
        assert_non_null(s->blocks[i].data);
    } else {
        s->blocks[i].data = (void *)(uintptr_t)s->next_address;
        s->next_address += ((bytes + 4095) & ~(uint64_t)4095) + 4096;
    }
    s->blocks[i].bytes = bytes;
    s->given_bytes += bytes;
    s->given_count++;
    if (s->given_bytes > s->peak_bytes)
        s->peak_bytes = s->given_bytes;
    *out = s->blocks[i].data;
    return TN_OK;
}

static void source_free(void *arg, void *data)
{
    source *s = arg;
    uint32_t i = 0;

    s->free_calls++;
    while (s->blocks[i].data != data)
        assert_true(++i < SOURCE_BLOCKS_MAX); /* not ours, or given back twice */
    if (s->on_give)
        s->on_give(s->on_give_arg, data, s->blocks[i].bytes);
    s->given_bytes -= s->blocks[i].bytes;
    s->given_count--;
    s->blocks[i].data = NULL;
    if (s->real)
        free(data);
}

static tn_status source_info(void *arg, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const source *s = arg;

    if (!s->total_bytes)
        return TN_E_UNSUPPORTED;
    *free_bytes = s->total_bytes - s->given_bytes;
    *total_bytes = s->total_bytes;
    return TN_OK;
}

static const char *source_option_text(void *arg, const char *key)
{
    const source *s = arg;

    for (uint32_t i = 0; i < SOURCE_OPTIONS_MAX && s->options[i][0]; i++)
        if (!strcmp(s->options[i][0], key))
            return s->options[i][1];
    return NULL;
}

void source_option(source *s, const char *key, const char *text)
{
    uint32_t i = 0;

    while (i < SOURCE_OPTIONS_MAX && s->options[i][0] && strcmp(s->options[i][0], key))
        i++;
    assert_true(i < SOURCE_OPTIONS_MAX);
    s->options[i][0] = key;
    s->options[i][1] = text;
}

static tn_status mark_record(void *arg, tn_stream *stream, void **out)
{
    source *s = arg;
    source_mark *m;

    if (s->marks_fail)
        return TN_E_DEVICE;
    m = malloc(sizeof *m);
    assert_non_null(m);
    m->stream = (source_stream *)stream;
    m->at = ++m->stream->queued;
    s->marks++;
    *out = m;
    return TN_OK;
}

static int32_t mark_done(void *arg, void *mark)
{
    const source_mark *m = mark;

    (void)arg;
    return m->stream->reached >= m->at;
}

static tn_status mark_wait(void *arg, void *mark, tn_stream *stream)
{
    source *s = arg;
    const source_mark *m = mark;
    source_stream *waiter = (source_stream *)stream;
    uint64_t *seen = &s->seen[waiter - s->streams][m->stream - s->streams];

    if (*seen < m->at)
        *seen = m->at;
    waiter->waits++;
    return TN_OK;
}

static void mark_release(void *arg, void *mark)
{
    source *s = arg;

    s->marks--;
    free(mark);
}

/* ---- the host's memory service ------------------------------------------------------------------- */

static void *memory_alloc(const tn_host *host, uint64_t bytes, uint64_t align)
{
    source *s = host->self;

    assert_true(align <= 16);
    s->memory_calls++;
    if (s->memory_fail_at && s->memory_calls >= (uint64_t)s->memory_fail_at)
        return NULL;
    s->memory_live++;
    return malloc((size_t)bytes);
}

static void memory_free(const tn_host *host, void *memory)
{
    source *s = host->self;

    s->memory_live--;
    free(memory);
}

static const tn_service *host_service(const tn_host *host, const char *id)
{
    const source *s = host->self;

    return strcmp(id, TN_SERVICE_MEMORY) ? NULL : &s->memory.head;
}

/* ---- the plugin ---------------------------------------------------------------------------------- */

static const tn_plugin *plugin_load(const char *variable, const char *file)
{
    const char *folder = getenv(variable);
    char path[4096];
    void *loaded, *found;

    if (!folder || snprintf(path, sizeof path, "%s/%s", folder, file) >= (int)sizeof path)
        fail_msg("%s must name the folder of %s", variable, file);
    loaded = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!loaded)
        fail_msg("%s", dlerror());
    found = dlsym(loaded, "tn_plugin_v1");
    assert_non_null(found);
    return found;
}

static const tn_plugin *plugin_descriptor(void)
{
    static const tn_plugin *found;

    if (!found)
        found = plugin_load("TENON_TEST_PLUGINS", "mempool.so");
    return found;
}

const tn_pool_ops *source_pool_ops(const char *id)
{
    static const tn_plugin *template;
    const tn_capability *const *at;

    if (!strcmp(id, "first-fit") && !template)
        template = plugin_load("TENON_TEST_BUILD", "templates/acme-pool.so");
    at = strcmp(id, "first-fit") ? plugin_descriptor()->capabilities : template->capabilities;
    while (*at && ((*at)->kind != TN_KIND_POOL || strcmp((*at)->id, id)))
        at++;
    assert_non_null(*at);
    return (const tn_pool_ops *)(const void *)*at;
}

void source_init(source *s, bool real)
{
    const tn_plugin *descriptor = plugin_descriptor();
    tn_err err;

    memset(s, 0, sizeof *s);
    s->real = real;
    s->next_address = 4096;
    s->ops = (tn_pool_source){(uint32_t)TN_END(tn_pool_source, mark_release),
                              256,
                              s,
                              source_alloc,
                              source_free,
                              source_info,
                              source_option_text,
                              mark_record,
                              mark_done,
                              mark_wait,
                              mark_release};
    s->host =
        (tn_host){(uint32_t)TN_END(tn_host, service), TN_ABI_MAJOR, TN_ABI_MINOR, "test", s, host_service};
    s->memory = (tn_memory_service){
        {(uint32_t)TN_END(tn_memory_service, free), 0, TN_SERVICE_MEMORY}, memory_alloc, memory_free};
    assert_int_equal(descriptor->init(&s->host, &s->plugin, &err), TN_OK);
}

void source_fini(source *s)
{
    assert_int_equal(s->given_count, 0);
    assert_int_equal(s->marks, 0);
    plugin_descriptor()->fini(s->plugin);
    assert_int_equal(s->memory_live, 0);
}

tn_pool *source_pool(source *s, const char *id)
{
    tn_pool *pool = NULL;
    tn_err err = {0};

    if (source_pool_ops(id)->create(s->plugin, &s->ops, &pool, &err))
        fail_msg("%s: %s", id, err.message);
    assert_ptr_equal(pool->ops, source_pool_ops(id));
    return pool;
}

tn_stream *source_stream_at(source *s, uint32_t index)
{
    return (tn_stream *)&s->streams[index];
}

void source_reach_all(source *s)
{
    for (uint32_t i = 0; i < SOURCE_STREAMS; i++)
        s->streams[i].reached = s->streams[i].queued;
}

tn_memory pool_get(tn_pool *pool, uint64_t bytes, tn_stream *stream)
{
    tn_memory m = {0};
    tn_err err = {0};

    if (pool->ops->alloc(pool, bytes, stream, &m, &err))
        fail_msg("%llu bytes: %s", (unsigned long long)bytes, err.message);
    assert_int_equal(m.bytes, bytes);
    assert_true(m.block_bytes >= bytes);
    assert_non_null(m.data);
    return m;
}

tn_pool_stats pool_stats(tn_pool *pool)
{
    tn_pool_stats stats = {.struct_size = (uint32_t)TN_END(tn_pool_stats, releases)};

    pool->ops->stats(pool, &stats);
    return stats;
}
