/*
 * Devices by name, pools and their way out of full memory, owners, limits, and blocks that a stream still
 * uses. The device "slab" of this test has a memory of 1 MiB and events that the test completes by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "device/internal.h"
#include "support/scratch.h"

#define SLAB_BYTES ((uint64_t)1 << 20)

struct tn_device_handle {
    int32_t index;
};
struct tn_event {
    bool reached;
};
struct tn_stream {
    int unused;
};

static uint64_t slab_used, slab_calls, events_live, opened;
static struct tn_event *last_recorded;

static tn_status slab_count(void *plugin, int32_t *out, tn_err *err)
{
    (void)plugin;
    (void)err;
    *out = 2;
    return TN_OK;
}

static tn_status slab_open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    (void)plugin;
    if (index == 1)
        return tn_fail(err, TN_E_DEVICE, "this one is broken");
    if (!(*out = calloc(1, sizeof **out)))
        return tn_fail(err, TN_E_NOMEM, "no memory");
    opened++;
    return TN_OK;
}

static void slab_close(tn_device_handle *d)
{
    opened--;
    free(d);
}

static uint32_t slab_flags = TN_DEVICE_F_HOST_ADDRESSABLE;

static tn_status slab_info(tn_device_handle *d, tn_device_info *out, tn_err *err)
{
    (void)d;
    (void)err;
    out->flags = slab_flags;
    out->memory_total = SLAB_BYTES;
    out->memory_free = SLAB_BYTES - slab_used;
    out->alignment = 256;
    return TN_OK;
}

static tn_status slab_alloc(tn_device_handle *d, int32_t memory, uint64_t bytes, void **out, tn_err *err)
{
    uint64_t *block;

    (void)d;
    (void)memory;
    slab_calls++;
    if (bytes > SLAB_BYTES - slab_used || !(block = malloc(bytes + 16)))
        return tn_fail(err, TN_E_NOMEM, "the slab is full");
    slab_used += bytes;
    block[0] = bytes;
    *out = block + 2;
    return TN_OK;
}

static void slab_free(tn_device_handle *d, int32_t memory, void *data)
{
    uint64_t *block = (uint64_t *)data - 2;

    (void)d;
    (void)memory;
    slab_used -= block[0];
    free(block);
}

static tn_status stream_create(tn_device_handle *d, int32_t priority, tn_stream **out, tn_err *err)
{
    (void)d;
    (void)priority;
    (void)out;
    return tn_fail(err, TN_E_UNSUPPORTED, "the test makes its own");
}

static void stream_destroy(tn_stream *s)
{
    (void)s;
}

static tn_status stream_wait(tn_stream *s, tn_err *err)
{
    (void)s;
    (void)err;
    return TN_OK;
}

static tn_status event_create(tn_device_handle *d, tn_event **out, tn_err *err)
{
    (void)d;
    if (!(*out = calloc(1, sizeof **out)))
        return tn_fail(err, TN_E_NOMEM, "no memory");
    events_live++;
    return TN_OK;
}

static void event_destroy(tn_event *e)
{
    events_live--;
    free(e);
}

static tn_status event_record(tn_event *e, tn_stream *s, tn_err *err)
{
    (void)s;
    (void)err;
    e->reached = false;
    last_recorded = e;
    return TN_OK;
}

static tn_status event_wait(tn_stream *s, tn_event *e, tn_err *err)
{
    (void)s;
    (void)e;
    (void)err;
    return TN_OK;
}

static tn_status event_query(tn_event *e, tn_err *err)
{
    (void)err;
    return e->reached ? TN_OK : TN_PENDING;
}

static tn_status event_notify(tn_event *e, void (*fn)(void *, tn_status, const tn_err *), void *arg,
                              tn_err *err)
{
    (void)e;
    (void)err;
    fn(arg, TN_OK, NULL);
    return TN_OK;
}

static tn_status slab_copy(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes,
                           tn_err *err)
{
    (void)s;
    (void)dst;
    (void)src;
    (void)bytes;
    return tn_fail(err, TN_E_UNSUPPORTED, "not mine");
}

static const tn_device_ops slab_ops = {
    .head = TN_CAPABILITY(tn_device_ops, copy, TN_KIND_DEVICE, "slab"),
    .count = slab_count,
    .open = slab_open,
    .close = slab_close,
    .info = slab_info,
    .alloc = slab_alloc,
    .free = slab_free,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_wait = stream_wait,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_query = event_query,
    .event_notify = event_notify,
    .copy = slab_copy,
};
static const tn_device_ops half_ops = {
    /* lacks what it must have */
    .head = TN_CAPABILITY(tn_device_ops, copy, TN_KIND_DEVICE, "half"),
    .count = slab_count,
    .open = slab_open,
};

/* A pool that sets a `reserved` of its blocks, when it is told to. */
static uint64_t mark;
typedef struct marking {
    tn_pool pool;
    const tn_pool_source *source;
    int64_t out;
} marking;

static tn_status marking_create(void *plugin, const tn_pool_source *source, tn_pool **out, tn_err *err);

static tn_status marking_alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err)
{
    marking *m = (marking *)(void *)pool;

    *out = (tn_memory){.bytes = bytes, .block_bytes = bytes, .stream = stream, .reserved = {0, 0, mark}};
    m->out++;
    return m->source->alloc(m->source->arg, bytes, &out->data, err);
}

static void marking_free(tn_pool *pool, const tn_memory *memory, tn_stream *stream)
{
    marking *m = (marking *)(void *)pool;

    (void)stream;
    m->out--;
    m->source->free(m->source->arg, memory->data);
}

static void marking_trim(tn_pool *pool, uint64_t keep_bytes)
{
    (void)pool;
    (void)keep_bytes;
}

static void marking_stats(tn_pool *pool, tn_pool_stats *out)
{
    out->live_blocks = (uint64_t)((marking *)(void *)pool)->out;
}

static void marking_destroy(tn_pool *pool)
{
    free(pool);
}

static const tn_pool_ops marking_ops = {
    .head = TN_CAPABILITY(tn_pool_ops, destroy, TN_KIND_POOL, "marking"),
    .create = marking_create,
    .alloc = marking_alloc,
    .free = marking_free,
    .trim = marking_trim,
    .stats = marking_stats,
    .destroy = marking_destroy,
};

static tn_status marking_create(void *plugin, const tn_pool_source *source, tn_pool **out, tn_err *err)
{
    marking *m = calloc(1, sizeof *m);

    (void)plugin;
    if (!m)
        return tn_fail(err, TN_E_NOMEM, "no memory");
    *m = (marking){{&marking_ops}, source, 0};
    *out = &m->pool;
    return TN_OK;
}

static const tn_capability *const capabilities[] = {&slab_ops.head, &half_ops.head, &marking_ops.head, NULL};
static const tn_plugin slab_plugin = {
    .struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
    .magic = TN_MAGIC,
    .abi_major = TN_ABI_MAJOR,
    .abi_minor = TN_ABI_MINOR,
    .name = "slab",
    .version = "1.0.0",
    .vendor = "tests",
    .license = "Apache-2.0",
    .summary = "a device of the tests",
    .capabilities = capabilities,
};

typedef struct rooms {
    tni_options *options;
    tni_registry *registry;
    tni_device_set *set;
} rooms;

static void rooms_open(rooms *r, const char *const *settings)
{
    assert_int_equal(tni_options_create(NULL, &r->options), TN_OK);
    assert_int_equal(tni_registry_create(r->options, NULL, &r->registry), TN_OK);
    assert_int_equal(tni_registry_add_static(r->registry, &slab_plugin, NULL), TN_OK);
    for (size_t i = 0; settings && settings[i]; i++)
        assert_int_equal(tni_options_set(r->options, settings[i]), TN_OK);
    assert_int_equal(tni_device_set_create(r->options, r->registry, NULL, &r->set), TN_OK);
}

static void rooms_close(rooms *r)
{
    tni_device_set_destroy(r->set);
    tni_registry_destroy(r->registry);
    tni_options_destroy(r->options);
}

static void expect(tn_status st, tn_status wanted, const char *text)
{
    if (st != wanted || (text && !strstr(tni_error_message(), text)))
        fail_msg("status %d '%s', expected %d '%s'", st, tni_error_message(), wanted, text ? text : "");
}

/* ---- names ----------------------------------------------------------------------------------------- */

static void test_names(void **state)
{
    static const struct {
        const char *text, *type;
        int32_t index;
        tn_status status;
        const char *message;
    } cases[] = {
        {"cpu", "cpu", 0, TN_OK, NULL},
        {"cpu:1", "cpu", 1, TN_OK, NULL},
        {"cpu(7)", "cpu", 7, TN_OK, NULL},
        {"slab", "slab", 0, TN_OK, NULL},
        {"cpu:1023", "cpu", 1023, TN_OK, NULL},
        {"slab:1", NULL, 0, TN_E_DEVICE, "this one is broken"},
        {"slab:2", NULL, 0, TN_E_DEVICE, "there are 2"},
        {"half", NULL, 0, TN_E_DEVICE, "lacks a function"},
        {"warp:0", NULL, 0, TN_E_DEVICE, "there are cpu, slab"},
        {"cpu:1024", NULL, 0, TN_E_ARG, "indices are 0 to 1023"},
        {"cpu:99999999999999999999", NULL, 0, TN_E_ARG, "indices"},
        {"", NULL, 0, TN_E_ARG, "no device"},
        {"cpu:", NULL, 0, TN_E_ARG, "no device"},
        {"cpu:-1", NULL, 0, TN_E_ARG, "no device"},
        {"cpu(1", NULL, 0, TN_E_ARG, "no device"},
        {"cpu(1)x", NULL, 0, TN_E_ARG, "no device"},
        {"cpu:1)", NULL, 0, TN_E_ARG, "no device"},
        {"CPU", NULL, 0, TN_E_ARG, "no device"},
        {" cpu", NULL, 0, TN_E_ARG, "no device"},
        {"a_type_with_a_name_that_is_far_too_long:0", NULL, 0, TN_E_ARG, "no device"},
        {NULL, NULL, 0, TN_E_ARG, "no device"},
    };
    rooms r;

    (void)state;
    rooms_open(&r, NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tni_device *d = NULL, *again = NULL;

        expect(tni_device_parse(r.set, cases[i].text, &d), cases[i].status, cases[i].message);
        if (cases[i].status) {
            assert_null(d);
            continue;
        }
        assert_string_equal(d->type, cases[i].type);
        assert_int_equal(d->index, cases[i].index);
        assert_int_equal(tni_device_parse(r.set, cases[i].text, &again), TN_OK);
        assert_ptr_equal(d, again);
        assert_ptr_equal(tni_device_at(r.set, d->ordinal), d);
    }
    assert_int_equal(tni_device_count(r.set), 5);
    assert_null(tni_device_at(r.set, 5));
    rooms_close(&r);
    assert_int_equal(opened, 0);
}

static void test_counts(void **state)
{
    rooms r;
    int32_t count = -1;
    tn_device_handle *handle;
    tni_device *d;

    (void)state;
    rooms_open(&r, NULL);
    assert_int_equal(tni_device_type_count(r.set, "slab", &count), TN_OK);
    assert_int_equal(count, 2);
    assert_int_equal(tni_device_count(r.set), 0); /* nothing was opened */
    assert_int_equal(tni_device_type_count(r.set, "cpu", &count), TN_OK);
    expect(tni_device_type_count(r.set, "warp", &count), TN_E_DEVICE, "no plugin provides device 'warp'");
    assert_int_equal(tni_device_get(r.set, "slab", 0, &d), TN_OK);
    assert_true(d->host_addressable);
    assert_false(d->host);
    handle = d->handle;
    tni_device_set_forked(r.set);
    expect(tni_device_get(r.set, "slab", 0, &d), TN_E_STATE, "after fork");
    expect(tni_device_type_count(r.set, "slab", &count), TN_E_STATE, "after fork");
    assert_int_equal(tni_device_get(r.set, "cpu", 3, &d), TN_OK);
    rooms_close(&r);
    assert_int_equal(opened, 1); /* a child leaves the parent's device alone */
    slab_close(handle);
}

/* ---- blocks ---------------------------------------------------------------------------------------- */

static void test_host_blocks(void **state)
{
    static const uint64_t sizes[] = {1, 63, 64, 4097, 1 << 20, (2 << 20) + 1, 5 << 20};
    rooms r;
    tni_device *d;
    tni_memory_stats stats;

    (void)state;
    rooms_open(&r, NULL);
    assert_int_equal(tni_device_get(r.set, "cpu", 0, &d), TN_OK);
    for (int32_t memory = TN_MEMORY_DEVICE; memory <= TNI_MEMORY_APART; memory++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            tni_block b;

            assert_int_equal(tni_block_alloc(d, memory, sizes[i], NULL, "test", &b), TN_OK);
            assert_int_equal((uintptr_t)b.memory.data % 64, 0);
            memset(b.memory.data, 1, sizes[i]);
            tni_block_free(&b, NULL);
            assert_null(b.pool);
            tni_block_free(&b, NULL); /* nothing */
        }
    {
        tni_block b = {.owner = "kept"};

        assert_int_equal(tni_block_alloc(d, TN_MEMORY_DEVICE, 0, NULL, NULL, &b), TN_OK);
        assert_null(b.memory.data);
        tni_block_free(&b, NULL);
        expect(tni_block_alloc(d, 9, 1, NULL, NULL, &b), TN_E_ARG, "memory kind 9");
        expect(tni_block_alloc(d, 0, UINT64_MAX, NULL, "huge", &b), TN_E_NOMEM, NULL);
        expect(tni_block_alloc(d, 0, (uint64_t)1 << 60, NULL, "huge", &b), TN_E_NOMEM, "'huge'");
    }
    assert_int_equal(tni_device_memory(d, TN_MEMORY_DEVICE, &stats), TN_OK);
    assert_int_equal(stats.live, 0);
    assert_true(stats.total > 0 && stats.free > 0 && stats.free <= stats.total);
    rooms_close(&r);
}

/* Blocks apart are counted with the others, and their pages are gone when they are freed. */
static void test_apart(void **state)
{
    static const uint64_t sizes[] = {1, 4097, (2 << 20) + 1, 5 << 20};
    rooms r;
    tni_device *d;
    tni_memory_stats before, stats;

    (void)state;
    rooms_open(&r, NULL);
    assert_int_equal(tni_device_get(r.set, "cpu", 0, &d), TN_OK);
    assert_int_equal(tni_device_memory(d, TN_MEMORY_DEVICE, &before), TN_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char there;
        tni_block b;
        void *data;

        assert_int_equal(tni_block_alloc(d, TNI_MEMORY_APART, sizes[i], NULL, "test", &b), TN_OK);
        data = b.memory.data;
        memset(data, 1, sizes[i]);
        assert_int_equal(tni_device_memory(d, TN_MEMORY_DEVICE, &stats), TN_OK);
        assert_true(stats.live >= before.live + sizes[i]);
        assert_int_equal(mincore(data, 1, &there), 0);
        tni_block_free(&b, NULL);
        assert_int_equal(mincore(data, 1, &there), -1);
    }
    assert_int_equal(tni_device_memory(d, TN_MEMORY_DEVICE, &stats), TN_OK);
    assert_int_equal(stats.live, before.live);
    rooms_close(&r);
}

static tni_block held[4];
static tni_device *slab;

static bool relief_frees(void *arg)
{
    int *calls = arg;

    ++*calls;
    tni_block_free(&held[0], NULL);
    return true;
}

static void test_exhausted(void **state)
{
    rooms r;
    tni_block b;
    int calls = 0;

    (void)state;
    rooms_open(&r, NULL);
    assert_int_equal(tni_device_get(r.set, "slab", 0, &slab), TN_OK);
    assert_int_equal(tni_block_alloc(slab, 0, 600000, NULL, "frames", &held[0]), TN_OK);
    assert_int_equal(tni_block_alloc(slab, 0, 300000, NULL, "params", &held[1]), TN_OK);
    expect(tni_block_alloc(slab, 0, 500000, NULL, "batch", &b), TN_E_NOMEM,
           "slab:0 has no 488.2 KiB for 'batch': live 878.9 KiB (frames 585.9 KiB, params 292.9 KiB)");
    tni_device_set_relief(r.set, relief_frees, &calls);
    assert_int_equal(tni_block_alloc(slab, 0, 500000, NULL, "batch", &b), TN_OK);
    assert_int_equal(calls, 1);
    expect(tni_block_alloc(slab, 0, SLAB_BYTES, NULL, "more", &held[2]), TN_E_NOMEM, "'more'");
    assert_int_equal(calls, 2); /* asked once per failure */
    tni_block_free(&b, NULL);
    tni_block_free(&held[1], NULL);
    assert_int_equal(slab_used, 0);
    rooms_close(&r);
}

static void test_late_free(void **state) /* what a stream still uses comes back when it is through */
{
    struct tn_stream stream = {0};
    rooms r;
    tni_block b;
    tni_memory_stats stats;

    (void)state;
    rooms_open(&r, (const char *const[]){"memory.slab.pool=none", NULL});
    assert_int_equal(tni_device_get(r.set, "slab", 0, &slab), TN_OK);
    assert_int_equal(tni_block_alloc(slab, 0, 700000, &stream, "x", &b), TN_OK);
    tni_block_free(&b, &stream);
    assert_int_equal(slab_used, 700000);
    expect(tni_block_alloc(slab, 0, 700000, &stream, "y", &b), TN_E_NOMEM, "cached 683.5 KiB");
    last_recorded->reached = true;
    assert_int_equal(tni_block_alloc(slab, 0, 700000, &stream, "y", &b), TN_OK);
    assert_int_equal(slab_used, 700000);
    tni_block_free(&b, NULL); /* no stream used it: back at once */
    assert_int_equal(slab_used, 0);
    assert_int_equal(tni_device_memory(slab, 0, &stats), TN_OK);
    assert_int_equal(stats.total, SLAB_BYTES);
    assert_int_equal(stats.free, SLAB_BYTES);
    assert_int_equal(stats.peak, 700000);
    rooms_close(&r);
    assert_int_equal(events_live, 0);
}

static void test_forgotten(void **state) /* blocks that nobody freed go back with their pool */
{
    rooms r;
    tni_block b;

    (void)state;
    rooms_open(&r, NULL);
    assert_int_equal(tni_device_get(r.set, "slab", 0, &slab), TN_OK);
    for (int i = 0; i < 300; i++)
        assert_int_equal(tni_block_alloc(slab, 0, 1000, NULL, "lost", &b), TN_OK);
    rooms_close(&r);
    assert_int_equal(slab_used, 0);
}

static void test_pool_names(void **state)
{
    rooms r;
    tni_device *d;
    tni_block b;

    (void)state;
    rooms_open(&r, (const char *const[]){"memory.slab.pool=rund", NULL});
    assert_int_equal(tni_device_get(r.set, "slab", 0, &d), TN_OK);
    expect(tni_block_alloc(d, 0, 10, NULL, "x", &b), TN_E_KEY, "memory.slab.pool is 'rund'");
    assert_int_equal(tni_options_set(r.options, "memory.slab.pool=none"), TN_OK);
    assert_int_equal(tni_block_alloc(d, 0, 10, NULL, "x", &b), TN_OK); /* the refusal left nothing behind */
    tni_block_free(&b, NULL);
    rooms_close(&r);
}

/* What has no meaning yet in what devices and pools fill in. */
static void test_unknown(void **state)
{
    rooms r;
    tni_device *d;
    tni_block b = {.pool = NULL};

    (void)state;
    rooms_open(&r, (const char *const[]){"memory.slab.pool=marking", NULL});
    slab_flags = TN_DEVICE_F_HOST_ADDRESSABLE | 8u;
    expect(tni_device_get(r.set, "slab", 0, &d), TN_E_UNSUPPORTED, "device slab:0 has the flags 0x8");
    assert_int_equal(opened, 0);
    slab_flags = TN_DEVICE_F_HOST_ADDRESSABLE;
    assert_int_equal(tni_device_get(r.set, "slab", 0, &d), TN_OK);
    mark = 1;
    expect(tni_block_alloc(d, 0, 10, NULL, "x", &b), TN_E_UNSUPPORTED, "`reserved`");
    assert_int_equal(slab_used, 0); /* the block went back */
    mark = 0;
    assert_int_equal(tni_block_alloc(d, 0, 10, NULL, "x", &b), TN_OK);
    tni_block_free(&b, NULL);
    rooms_close(&r);
}

static void test_limit(void **state)
{
    rooms r;
    tni_device *d;
    tni_block a, b;
    tni_memory_stats stats;

    (void)state;
    rooms_open(&r, (const char *const[]){"memory.slab.pool=none", "memory.slab.limit=100K", NULL});
    assert_int_equal(tni_device_get(r.set, "slab", 0, &d), TN_OK);
    assert_int_equal(tni_block_alloc(d, 0, 60000, NULL, "a", &a), TN_OK);
    expect(tni_block_alloc(d, 0, 60000, NULL, "b", &b), TN_E_NOMEM, "'b'");
    assert_int_equal(tni_device_memory(d, 0, &stats), TN_OK);
    assert_int_equal(stats.total, 102400);
    assert_int_equal(stats.free, 42400);
    tni_block_free(&a, NULL);
    assert_int_equal(tni_block_alloc(d, 0, 60000, NULL, "b", &b), TN_OK);
    tni_block_free(&b, NULL);
    rooms_close(&r);
}

static tn_status whole_life(void *arg)
{
    tni_device_set *set = NULL;
    tni_device *d;
    tni_block blocks[3] = {{.pool = NULL}};
    tn_status st;

    (void)arg;
    if ((st = tni_device_set_create(NULL, NULL, NULL, &set)) || (st = tni_device_get(set, "cpu", 2, &d)))
        goto cleanup;
    for (int i = 0; i < 3 && !st; i++)
        st = tni_block_alloc(d, 0, 100000, NULL, "x", &blocks[i]);

cleanup:
    for (int i = 0; i < 3; i++)
        tni_block_free(&blocks[i], NULL);
    tni_device_set_destroy(set);
    return st;
}

/* A pool asks again after the first refusal, so that single failures are survived: here all fail
 * from one on. */
static void test_no_memory(void **state)
{
    tni_mem_stats before, after;
    bool failed = true;

    (void)state;
    for (uint64_t nth = 1; failed && nth < 100; nth++) {
        tn_status st;

        tni_mem_stats_get(&before);
        tni_mem_fail_at(nth, true, true);
        st = whole_life(NULL);
        tni_mem_fail_at(0, false, true);
        failed = tni_mem_failed();
        tni_mem_stats_get(&after);
        assert_int_equal(st, failed ? TN_E_NOMEM : TN_OK);
        assert_int_equal(after.live_count, before.live_count);
    }
    assert_false(failed);
}

/* ---- threads --------------------------------------------------------------------------------------- */

static void churn_main(void *arg)
{
    tni_device_set *set = arg;
    uint64_t random = tni_thread_id();

    for (int i = 0; i < 500; i++) {
        tni_device *d;
        tni_block b;
        bool host;

        random = random * 6364136223846793005u + 1442695040888963407u;
        host = random >> 40 & 1;
        if (tni_device_get(set, host ? "cpu" : "slab", host ? (int32_t)(random >> 33 & 7) : 0, &d) ||
            tni_block_alloc(d, 0, 1 + (random >> 50), NULL, "churn", &b))
            abort();
        memset(b.memory.data, 1, b.memory.bytes);
        tni_block_free(&b, NULL);
    }
}

static void test_threads(void **state)
{
    tni_thread *threads[3];
    rooms r;

    (void)state;
    rooms_open(&r, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tni_thread_create("churn", churn_main, r.set, &threads[i]), TN_OK);
    for (int i = 0; i < 3; i++)
        tni_thread_join(threads[i]);
    rooms_close(&r);
}

/* ---- what a cgroup leaves ------------------------------------------------------------------------------ */

static void cgroup_files(const char *max, const char *current, const char *stat)
{
    (void)scratch_write("memory.max", max, strlen(max));
    (void)scratch_write("memory.current", current, strlen(current));
    (void)scratch_write("memory.stat", stat, strlen(stat));
}

static void limit_is(uint64_t free_bytes, uint64_t total_bytes)
{
    uint64_t left = 5000000, total = 9000000;

    tni_host_limit(scratch_folder(), &left, &total);
    assert_int_equal(left, free_bytes);
    assert_int_equal(total, total_bytes);
}

/* A container that has read many files has little left by its count, and much by what it can have. */
static void test_cgroup(void **state)
{
    static const char stat[] = "anon 900000\nfile 3000000\nkernel 50000\ninactive_anon 900000\n"
                               "active_anon 10\ninactive_file 2000000\nactive_file 1000000\nslab 7\n";

    (void)state;
    limit_is(5000000, 9000000); /* none */
    cgroup_files("max\n", "3950000\n", stat);
    limit_is(5000000, 9000000);
    cgroup_files("4000000\n", "3950000\n", stat);
    limit_is(3050000, 4000000);
    cgroup_files("4000000\n", "3950000\n", "anon 3950000\n");
    limit_is(50000, 4000000);
    cgroup_files("4000000\n", "4100000\n", "anon 4100000\n");
    limit_is(0, 4000000);
    cgroup_files("4000000\n", "2000000\n", stat); /* read at different times */
    limit_is(4000000, 4000000);
    cgroup_files("40000000\n", "2000000\n", stat); /* more than the machine */
    limit_is(5000000, 9000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),       cmocka_unit_test(test_counts),
        cmocka_unit_test(test_host_blocks), cmocka_unit_test(test_apart),
        cmocka_unit_test(test_exhausted),   cmocka_unit_test(test_late_free),
        cmocka_unit_test(test_forgotten),   cmocka_unit_test(test_pool_names),
        cmocka_unit_test(test_limit),       cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_no_memory),   cmocka_unit_test(test_threads),
        cmocka_unit_test(test_cgroup),
    };

    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
