/*
 * A recorded trace: the allocations of eager LeNet training, layer by layer, with a batch size that varies as
 * it does with bucketed data and a short last batch. `segment` must need less memory than `round`, and from
 * the second epoch on almost every request must come from the cache.
 */
#include "source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define EVENTS_MAX 262144u
#define SLOTS_MAX 1024u
#define EPOCHS 4u

typedef struct event {
    uint64_t bytes; /* 0: the slot is freed */
    uint32_t slot, epoch;
} event;

typedef struct trace {
    event *events;
    uint32_t count, slot_count, epoch;
    uint64_t live_bytes, live_peak;
    uint64_t slot_bytes[SLOTS_MAX];
    uint32_t unused[SLOTS_MAX], unused_count;
} trace;

static uint32_t trace_alloc(trace *t, uint64_t bytes)
{
    uint32_t slot = t->unused_count ? t->unused[--t->unused_count] : t->slot_count++;

    assert_true(slot < SLOTS_MAX && t->count < EVENTS_MAX);
    t->events[t->count++] = (event){bytes, slot, t->epoch};
    t->slot_bytes[slot] = bytes;
    t->live_bytes += bytes;
    if (t->live_bytes > t->live_peak)
        t->live_peak = t->live_bytes;
    return slot;
}

static void trace_free(trace *t, uint32_t slot)
{
    assert_true(t->count < EVENTS_MAX);
    t->events[t->count++] = (event){0, slot, t->epoch};
    t->live_bytes -= t->slot_bytes[slot];
    t->unused[t->unused_count++] = slot;
}

/* Floats per sample of each layer's output, of its workspace; floats of its parameters. */
typedef struct layer {
    uint64_t out, work, weights, bias;
} layer;

static const layer lenet28[] = {
    {20 * 28 * 28, 25 * 28 * 28, 20 * 25, 20},
    {20 * 28 * 28, 0, 0, 0},
    {20 * 14 * 14, 0, 0, 0},
    {50 * 14 * 14, 500 * 14 * 14, 50 * 500, 50},
    {50 * 14 * 14, 0, 0, 0},
    {50 * 7 * 7, 0, 0, 0},
    {500, 0, 500 * 2450, 500},
    {500, 0, 0, 0},
    {10, 0, 5000, 10},
    {10, 0, 0, 0},
    {1, 0, 0, 0},
};

static const layer lenet8[] = {
    {20 * 64, 25 * 64, 500, 20}, {20 * 64, 0, 0, 0}, {20 * 16, 0, 0, 0},    {50 * 16, 500 * 16, 25000, 50},
    {50 * 16, 0, 0, 0},          {50 * 4, 0, 0, 0},  {500, 0, 100000, 500}, {500, 0, 0, 0},
    {10, 0, 5000, 10},           {10, 0, 0, 0},      {1, 0, 0, 0},
};
#define LAYERS 11u

/* Forward keeps each output for backward; backward makes and frees gradients layer by layer. */
static void trace_step(trace *t, const layer *net, uint64_t batch, uint64_t sample)
{
    uint32_t out[LAYERS], data = trace_alloc(t, batch * sample * 4), label = trace_alloc(t, batch * 4), dy,
                          dx;

    for (uint32_t i = 0; i < LAYERS; i++) {
        uint32_t work = net[i].work ? trace_alloc(t, net[i].work * 4 * 4) : UINT32_MAX;

        out[i] = trace_alloc(t, batch * net[i].out * 4);
        if (work != UINT32_MAX)
            trace_free(t, work);
    }
    dy = trace_alloc(t, batch * net[LAYERS - 1].out * 4);
    for (uint32_t i = LAYERS; i-- > 0;) {
        uint32_t work = net[i].work ? trace_alloc(t, net[i].work * 4 * 4) : UINT32_MAX;

        dx = trace_alloc(t, batch * (i ? net[i - 1].out : sample) * 4);
        if (net[i].weights) {
            trace_free(t, trace_alloc(t, net[i].weights * 4));
            trace_free(t, trace_alloc(t, net[i].bias * 4));
        }
        if (work != UINT32_MAX)
            trace_free(t, work);
        trace_free(t, dy);
        trace_free(t, out[i]);
        dy = dx;
    }
    trace_free(t, dy);
    trace_free(t, data);
    trace_free(t, label);
}

/* `batches`: the sizes that come in turn; weights, gradients and momenta stay for the whole run. */
static void trace_make(trace *t, const layer *net, uint64_t sample, const uint64_t *batches,
                       uint32_t batch_count)
{
    memset(t, 0, sizeof *t);
    t->events = malloc(EVENTS_MAX * sizeof *t->events);
    assert_non_null(t->events);
    for (uint32_t i = 0; i < LAYERS; i++)
        for (uint32_t copy = 0; copy < 3 && net[i].weights; copy++) {
            trace_alloc(t, net[i].weights * 4);
            trace_alloc(t, net[i].bias * 4);
        }
    for (t->epoch = 0; t->epoch < EPOCHS; t->epoch++)
        for (uint32_t i = 0; i < 23; i++)
            trace_step(t, net, i == 22 ? 29 : batches[i * 7 % batch_count], sample);
}

typedef struct outcome {
    uint64_t peak, calls_first, hits_later, calls_later;
    double ns;
} outcome;

static outcome replay(const trace *t, const char *id)
{
    static source s;
    static tn_memory slots[SLOTS_MAX];
    outcome o = {0};
    struct timespec a, b;
    tn_pool *pool;

    source_init(&s, false);
    s.ops.alignment = 64;
    pool = source_pool(&s, id);
    memset(slots, 0, sizeof slots);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (uint32_t i = 0; i < t->count; i++) {
        const event *e = &t->events[i];
        uint64_t misses = s.alloc_calls;

        if (!e->bytes) {
            pool->ops->free(pool, &slots[e->slot], NULL);
            continue;
        }
        slots[e->slot] = pool_get(pool, e->bytes, NULL);
        if (e->epoch) {
            o.calls_later++;
            o.hits_later += misses == s.alloc_calls;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    o.ns = ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / t->count;
    o.peak = pool_stats(pool).peak_bytes;
    assert_int_equal(pool_stats(pool).live_blocks, t->slot_count - t->unused_count);
    pool->ops->destroy(pool);
    source_fini(&s);
    return o;
}

static void compare(const char *name, const layer *net, uint64_t sample, const uint64_t *batches,
                    uint32_t count)
{
    static const char *const ids[] = {"naive", "round", "segment"};
    static trace t;
    outcome o[3];

    trace_make(&t, net, sample, batches, count);
    for (uint32_t k = 0; k < 3; k++) {
        o[k] = replay(&t, ids[k]);
        print_message("%-22s %-8s peak %6.2f MiB = %.3f x live, hits after epoch 1 %.4f, %.0f ns per call\n",
                      name, ids[k], (double)o[k].peak / 1048576, (double)o[k].peak / (double)t.live_peak,
                      (double)o[k].hits_later / (double)o[k].calls_later, o[k].ns);
        assert_true(o[k].hits_later * 100 >= o[k].calls_later * 99);
    }
    assert_true(o[2].peak < o[1].peak);
    assert_true((double)o[2].peak < 1.4 * (double)t.live_peak);
    free(t.events);
}

static void test_traces(void **state)
{
    static const uint64_t fixed[] = {64}, buckets[] = {16, 32, 48, 64, 96, 128},
                          odd[] = {31, 57, 64, 77, 93, 111};

    (void)state;
    compare("lenet 28x28 fixed", lenet28, 784, fixed, 1);
    compare("lenet 28x28 buckets", lenet28, 784, buckets, 6);
    compare("lenet 28x28 odd", lenet28, 784, odd, 6);
    compare("lenet 8x8 fixed", lenet8, 64, fixed, 1);
    compare("lenet 8x8 buckets", lenet8, 64, buckets, 6);
    compare("lenet 8x8 odd", lenet8, 64, odd, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_traces)};

    return cmocka_run_group_tests_name("pool.trace", tests, NULL, NULL);
}
