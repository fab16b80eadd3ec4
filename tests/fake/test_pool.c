/*
 * Pools over the fake device: two threads with a stream each allocate from one pool, write, check and free,
 * all of it asynchronous, so that a block handed to the other stream too early is overwritten while it is in
 * use. The pool is called under one lock, as the core does. Under ThreadSanitizer an early block is a race.
 */
#include "fake.h"

#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tenon/plugin/pool.h"

#define THREADS 2u
#define ROUNDS 600u
#define WORDS_MAX 20000u

typedef struct arena {
    fake f;
    tn_pool_source source;
    tn_pool *pool;
    pthread_mutex_t lock;
    atomic_uint wrong;
} arena;

typedef struct work {
    arena *all;
    uint64_t *data, words, tag;
} work;

/* ---- the source: the fake device's memory, its events as marks ----------------------------------------- */

static tn_status source_alloc(void *arg, uint64_t bytes, void **out, tn_err *err)
{
    arena *a = arg;

    return a->f.ops->alloc(a->f.device, TN_MEMORY_DEVICE, bytes, out, err);
}

static void source_free(void *arg, void *data)
{
    arena *a = arg;

    a->f.ops->free(a->f.device, TN_MEMORY_DEVICE, data);
}

static tn_status mark_record(void *arg, tn_stream *stream, void **out)
{
    arena *a = arg;

    *out = fake_mark(&a->f, stream);
    return TN_OK;
}

static int32_t mark_done(void *arg, void *mark)
{
    arena *a = arg;

    return a->f.ops->event_query(mark, NULL) == TN_OK;
}

static tn_status mark_wait(void *arg, void *mark, tn_stream *stream)
{
    arena *a = arg;

    return a->f.ops->event_wait(stream, mark, NULL);
}

static void mark_release(void *arg, void *mark)
{
    arena *a = arg;

    a->f.ops->event_destroy(mark);
}

static const tn_plugin *mempool(void)
{
    char path[4096];
    void *file;

    (void)snprintf(path, sizeof path, "%s/mempool.so", getenv("TENON_TEST_PLUGINS"));
    file = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!file)
        fail_msg("%s", dlerror());
    return dlsym(file, "tn_plugin_v1");
}

/* ---- the work ------------------------------------------------------------------------------------ */

static tn_status work_write(void *arg, tn_err *err)
{
    const work *w = arg;

    (void)err;
    for (uint64_t i = 0; i < w->words; i++)
        w->data[i] = w->tag + i;
    return TN_OK;
}

static tn_status work_check(void *arg, tn_err *err)
{
    work *w = arg;

    (void)err;
    for (uint64_t i = 0; i < w->words; i++)
        if (w->data[i] != w->tag + i) {
            atomic_fetch_add(&w->all->wrong, 1u);
            break;
        }
    free(w);
    return TN_OK;
}

typedef struct runner {
    arena *all;
    tn_stream *mine, *other;
    uint64_t random;
    uint32_t failed;
} runner;

/* Writes on one stream and checks there, or on the other one after its wait; frees where the block was used
 * last. */
static bool round_run(runner *r, uint64_t tag)
{
    arena *a = r->all;
    const tn_device_ops *ops = a->f.ops;
    bool across = r->random >> 60 < 4;
    tn_stream *last = across ? r->other : r->mine;
    work *w = malloc(sizeof *w);
    tn_memory m = {0};
    tn_event *e;
    bool right;

    if (!w)
        return false;
    w->all = a;
    w->words = 1 + (r->random >> 33) % (r->random >> 62 ? 300 : WORDS_MAX);
    w->tag = tag;
    pthread_mutex_lock(&a->lock);
    right = a->pool->ops->alloc(a->pool, w->words * 8, r->mine, &m, NULL) == TN_OK;
    pthread_mutex_unlock(&a->lock);
    if (!right) {
        free(w);
        return false;
    }
    w->data = m.data;
    right = ops->stream_call(r->mine, work_write, w, NULL) == TN_OK;
    if (across) {
        e = fake_mark(&a->f, r->mine);
        right = right && ops->event_wait(r->other, e, NULL) == TN_OK;
        ops->event_destroy(e);
    }
    right = right && ops->stream_call(last, work_check, w, NULL) == TN_OK;
    pthread_mutex_lock(&a->lock);
    a->pool->ops->free(a->pool, &m, last);
    if (r->random >> 40 & 1 && tag % 97 == 0)
        a->pool->ops->trim(a->pool, 0);
    pthread_mutex_unlock(&a->lock);
    return right;
}

static void *runner_main(void *arg)
{
    runner *r = arg;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        r->random = r->random * 6364136223846793005u + 1442695040888963407u;
        r->failed += !round_run(r, i + ((uint64_t)(uintptr_t)r << 20));
    }
    return NULL;
}

static void race(const char *id, const tn_plugin *plugin)
{
    static arena a;
    const tn_capability *const *at = plugin->capabilities;
    tn_pool_stats stats = {.struct_size = (uint32_t)TN_END(tn_pool_stats, releases)};
    tn_stream *streams[THREADS];
    pthread_t threads[THREADS];
    runner runners[THREADS];
    void *self = NULL;

    fake_start(&a.f, (fake_options){.seed = 5, .delay_us = 20, .reorder = 1, .devices = 1, .memory = "8MiB"});
    a.source = (tn_pool_source){(uint32_t)TN_END(tn_pool_source, mark_release),
                                256,
                                &a,
                                source_alloc,
                                source_free,
                                NULL,
                                NULL,
                                mark_record,
                                mark_done,
                                mark_wait,
                                mark_release};
    pthread_mutex_init(&a.lock, NULL);
    atomic_store(&a.wrong, 0u);
    assert_int_equal(plugin->init(NULL, &self, NULL), TN_OK);
    while (*at && strcmp((*at)->id, id))
        at++;
    assert_non_null(*at);
    assert_int_equal(((const tn_pool_ops *)(const void *)*at)->create(self, &a.source, &a.pool, NULL), TN_OK);
    for (uint32_t i = 0; i < THREADS; i++)
        streams[i] = fake_stream(&a.f);
    for (uint32_t i = 0; i < THREADS; i++) {
        runners[i] = (runner){&a, streams[i], streams[(i + 1) % THREADS], 12345 + i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, runner_main, &runners[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(runners[i].failed, 0);
    }
    for (uint32_t i = 0; i < THREADS; i++)
        assert_int_equal(a.f.ops->stream_wait(streams[i], NULL), TN_OK);
    a.pool->ops->stats(a.pool, &stats);
    print_message("%-8s %llu hits, %llu misses, %lld overtakings, peak %llu KiB\n", id,
                  (unsigned long long)stats.hits, (unsigned long long)stats.misses,
                  (long long)fake_number(&a.f, "out_of_order"), (unsigned long long)stats.peak_bytes / 1024);
    assert_int_equal(atomic_load(&a.wrong), 0);
    assert_int_equal(stats.live_blocks, 0);
    assert_true(stats.hits > stats.misses);
    a.pool->ops->destroy(a.pool);
    plugin->fini(self);
    fake_stop(&a.f);
    pthread_mutex_destroy(&a.lock);
}

static void test_race(void **state)
{
    const tn_plugin *plugin = mempool();

    (void)state;
    race("naive", plugin);
    race("round", plugin);
    race("segment", plugin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_race)};

    return cmocka_run_group_tests_name("fake.pool", tests, NULL, NULL);
}
