/*
 * What repeats costs nothing new: steps of an optimizer under a changing learning rate and steps of a
 * training find their signatures and programs, and their memory; memory stays flat. TENON_RUNS is the number
 * of optimizer steps (default 20,000).
 */
#include "support/runs.h"
#include "training.h"

enum { SLACK_BLOCKS = 64, SLACK_BYTES = 256 << 10 };

typedef struct held { /* what a context holds */
    tni_mem_stats host;
    tni_memory_stats pool;
    tni_exec_stats exec;
    uint64_t arrays;
} held;

static held held_now(tni_context *c)
{
    tni_device *d;
    held h;

    assert_ok(tni_engine_wait_all(c->engine));
    assert_ok(tni_default_device(c, &d));
    assert_ok(tni_device_memory(d, TN_MEMORY_DEVICE, &h.pool));
    tni_mem_stats_get(&h.host);
    tni_exec_stats_get(c, &h.exec);
    tni_space_live(c->space, &h.arrays, NULL);
    return h;
}

/* Without what the pool keeps: how many pieces it has depends on how many arrays were alive at once. */
static held held_trimmed(tni_context *c)
{
    tni_device *d;

    assert_ok(tni_engine_wait_all(c->engine));
    assert_ok(tni_default_device(c, &d));
    tni_device_trim(d, 0);
    return held_now(c);
}

static void flat(const held *before, const held *after)
{
    assert_int_equal(after->exec.misses, before->exec.misses);
    assert_int_equal(after->exec.signatures, before->exec.signatures);
    assert_int_equal(after->exec.programs, before->exec.programs);
    assert_int_equal(after->arrays, before->arrays);
    /* What is kept for reuse depends a little on what threads free first: some blocks more or less, however
     * many the steps. A block lost at each step is more than that. */
    assert_in_range(after->host.live_count + SLACK_BLOCKS, before->host.live_count,
                    before->host.live_count + 2 * SLACK_BLOCKS);
    assert_in_range(after->host.live_bytes + SLACK_BYTES, before->host.live_bytes,
                    before->host.live_bytes + 2 * SLACK_BYTES);
    assert_int_equal(after->pool.live, before->pool.live);
}

static double rate(uint64_t step) /* of a schedule: another number at each step */
{
    return 0.001 / (1.0 + 1e-6 * (double)step);
}

static void adam_steps(void **state)
{
    enum { COUNT = 64, WARM_UP = 256, PENDING = 64 };
    tni_context *c = test_context(NULL);
    float values[COUNT], end[COUNT];
    tni_array *in[4], *out;
    tni_site *site = NULL;
    const uint64_t steps = test_runs(20000);
    held before, after;

    (void)state;
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(i - 20) / 10.0f;
    in[0] = test_vector(c, COUNT, values);
    in[1] = test_vector(c, COUNT, values);
    for (int i = 0; i < COUNT; i++)
        values[i] = 0.0f;
    in[2] = test_vector(c, COUNT, values);
    in[3] = test_vector(c, COUNT, values);
    assert_ok(tni_site_create(c, "adam_update", 1, (const char *[]){"lr"}, (const char *[]){"0"}, &site));
    for (uint64_t step = 0; step < steps + WARM_UP; step++) {
        if (step == WARM_UP)
            before = held_trimmed(c);
        assert_ok(tni_site_set(site, 0, tn_value_of_float(rate(step))));
        out = in[0];
        assert_ok(tni_invoke(site, 4, in, 1, &out));
        assert_ptr_equal(out, in[0]);
        if (step % PENDING == 0) /* as a training does; a queue that grows without bound is no repetition */
            assert_int_equal(held_now(c).exec.misses, 1);
    }
    after = held_trimmed(c);
    assert_int_equal(after.exec.misses, 1);
    flat(&before, &after);
    assert_ok(tni_array_read(in[0], end, sizeof end));
    assert_true(end[0] > -2.0f && end[COUNT - 1] < 4.3f); /* against the gradients, whose signs they have */
    for (int i = 0; i < 4; i++)
        tni_array_release(in[i]);
    tni_site_release(site);
    test_context_close(c);
}

/* Batches as they come: whole ones and a short last one. */
static void epoch_queue(training *t, uint32_t number)
{
    for (uint32_t b = 0; b < TRAINING_BATCHES; b++)
        training_step(t, b, b == TRAINING_BATCHES - 1 ? 5 : 0, rate(number * TRAINING_BATCHES + b));
}

static void epoch(tni_context *c, training *t, uint32_t number)
{
    epoch_queue(t, number);
    assert_ok(tni_engine_wait_all(c->engine));
}

static atomic_uint opened;

static tn_status until_open(void *payload, tni_run *run)
{
    (void)payload;
    (void)run;
    while (!atomic_load(&opened))
        tni_sleep_ns(20000);
    return TN_OK;
}

/* No call runs before all are queued: none of the epochs to come, however threads are scheduled, has more
 * under way at once. */
static void epoch_held(tni_context *c, training *t, uint32_t number)
{
    tni_var *vars[TRAINING_PARAMS];
    const tni_task hold = {
        .run = until_open, .writes = vars, .write_count = training_vars(t, vars), .name = "hold"};

    atomic_store(&opened, 0u);
    assert_ok(tni_engine_push(c->engine, &hold));
    epoch_queue(t, number);
    atomic_store(&opened, 1u);
    assert_ok(tni_engine_wait_all(c->engine));
}

static void training_steps(void **state)
{
    enum { WARM_UP = 8, EPOCHS = 160 };                      /* 608 steps between the looks */
    const char *settings[] = {"engine.type=threaded", NULL}; /* the naive one would wait for what opens it */
    tni_context *c = test_context(settings);
    training *t = training_create(c, "adam_update", 1);
    held first, before, after;

    (void)state;
    epoch(c, t, 0);
    first = held_now(c);
    for (uint32_t e = 1; e < WARM_UP; e++)
        epoch_held(c, t, e);
    before = held_trimmed(c);
    for (uint32_t e = WARM_UP; e < EPOCHS; e++)
        epoch(c, t, e);
    after = held_trimmed(c);
    assert_int_equal(after.exec.misses, first.exec.misses);
    flat(&before, &after);
    training_destroy(t);
    test_context_close(c);
}

/* Peak and hit rate after the first epoch of one training, with a pool; one thread, so always the same
 * requests. */
static uint64_t pooled(const char *pool, double *hit_rate)
{
    enum { EPOCHS = 30 };
    char text[64];
    /* a machine short of memory would give its cache back at each miss */
    const char *settings[] = {"engine.type=naive", text, "memory.cpu.reserve=0", NULL};
    tni_context *c;
    training *t;
    held first, last;
    uint64_t hits, misses;

    snprintf(text, sizeof text, "memory.cpu.pool=%s", pool);
    c = test_context(settings);
    t = training_create(c, "sgd_update", 4);
    epoch(c, t, 0);
    first = held_now(c);
    for (uint32_t e = 1; e < EPOCHS; e++)
        epoch(c, t, e);
    last = held_now(c);
    hits = last.pool.hits - first.pool.hits;
    misses = last.pool.misses - first.pool.misses;
    assert_true(hits + misses > 1000);
    *hit_rate = (double)hits / (double)(hits + misses);
    print_message("%-8s peak %8llu bytes, %.2f %% of %llu requests from the cache\n", pool,
                  (unsigned long long)last.pool.peak, 100.0 * *hit_rate, (unsigned long long)(hits + misses));
    training_destroy(t);
    test_context_close(c);
    return last.pool.peak;
}

static void pools(void **state)
{
    double naive_rate, round_rate, segment_rate;
    uint64_t naive, round, segment;

    (void)state;
    naive = pooled("naive", &naive_rate);
    round = pooled("round", &round_rate);
    segment = pooled("segment", &segment_rate);
    assert_true(naive_rate >= 0.99 && round_rate >= 0.99 && segment_rate >= 0.99);
    assert_true(segment < round);
    assert_true(segment < naive);
}

/* The first memory of a device opens a pool, and with it a plugin; a net that was compiled before stays. */
static void memory_comes_late(void **state)
{
    tni_context *c = test_context((const char *[]){"memory.cpu.pool=segment", NULL});
    tni_symbol *x = NULL, *open = NULL, *s = NULL;
    tni_cached_op *op = NULL;
    tni_exec_stats first, second;

    (void)state;
    assert_ok(tni_symbol_variable(c->ops, "x", &x));
    assert_ok(tni_symbol_atomic(c->ops, "sin", 0, NULL, NULL, NULL, &open));
    assert_ok(tni_symbol_compose(open, NULL, 1, NULL, &x, &s));
    assert_ok(tni_cached_op_create(c, s, NULL, &op));
    for (int turn = 0; turn < 2; turn++) {
        tni_array *in = test_vector(c, 1024, NULL), *out = NULL; /* no memory yet */

        assert_ok(tni_cached_op_call(op, 1, &in, 1, &out));
        assert_ok(tni_array_wait(out));
        tni_exec_stats_get(c, turn ? &second : &first);
        tni_array_release(in);
        tni_array_release(out);
    }
    assert_int_equal(second.programs, first.programs);
    tni_cached_op_release(op);
    tni_symbol_release(s);
    tni_symbol_release(open);
    tni_symbol_release(x);
    test_context_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam_steps),
        cmocka_unit_test(training_steps),
        cmocka_unit_test(pools),
        cmocka_unit_test(memory_comes_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
