/*
 * A training on the fake device, whose streams and completions come late and out of order, ends with the bits
 * of the same training on the CPU; with the waits for events dropped in the engine it does not. Where a test
 * says what must have been late, one stream of the device stands still until then, so that it holds on any
 * machine. TENON_RUNS is the number of seeds (default 20).
 */
#include "support/runs.h"
#include "training.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 12 };

/* Why a wait cannot be dropped in this build. */
#if !defined(TN_TEST_SWITCHES)
#define WHY_NOT "this build has no TN_TEST_SWITCHES"
#elif defined(__SANITIZE_THREAD__)
#define WHY_NOT "a dropped wait is a data race, at which the thread sanitizer ends the program"
#else
#define WHY_NOT (const char *)NULL
#endif

/* A number of the device's statistics. */
static int64_t counted(tni_context *c, const char *name)
{
    char key[64];
    tni_device *d;
    const char *at;

    assert_ok(tni_default_device(c, &d));
    assert_non_null(d->ops);
    snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(d->ops->statistics(d->handle), key);
    assert_non_null(at);
    return strtoll(at + strlen(key), NULL, 10);
}

typedef struct outcome {
    float values[TRAINING_FLOATS];
    bool finite;
    int64_t out_of_order;
} outcome;

/* ---- a stream that stands still ------------------------------------------------------------------------ */

typedef enum stall { STALL_NONE, STALL_COPIES, STALL_KERNELS } stall;

typedef struct stalled { /* the stream, and what the other one has reached */
    atomic_uint begun, open, reached;
} stalled;

typedef tn_status (*stream_fn)(void *arg, tn_err *err);

typedef struct stream_call {
    stream_fn fn;
    stalled *arg;
} stream_call;

static tn_status stand_still(void *arg, tn_err *err)
{
    stalled *s = arg;

    (void)err;
    atomic_store(&s->begun, 1u);
    while (!atomic_load(&s->open))
        tni_sleep_ns(50000);
    return TN_OK;
}

static tn_status reach(void *arg, tn_err *err)
{
    (void)err;
    atomic_store(&((stalled *)arg)->reached, 1u);
    return TN_OK;
}

static tn_status stream_call_run(void *payload, tni_run *run)
{
    const stream_call *call = payload;
    tn_err err = {0};
    const tn_status st = run->device->ops->stream_call(run->stream, call->fn, call->arg, &err);

    return st ? tni_error_take(st, &err, "fake") : TN_OK;
}

/* On the stream of copies or of kernels, behind what is there; `t`: and behind all its steps. */
static void stream_push(tni_context *c, bool copies, stream_fn fn, stalled *arg, training *t)
{
    const stream_call call = {fn, arg};
    tni_var *vars[TRAINING_PARAMS];
    tni_device *d;
    tni_task task = {.run = stream_call_run,
                     .payload = &call,
                     .payload_bytes = sizeof call,
                     .lane = copies ? TNI_LANE_IN : TNI_LANE_COMPUTE,
                     .reads = vars,
                     .name = "stream"};

    assert_ok(tni_default_device(c, &d));
    task.device = d;
    if (t)
        task.read_count = training_vars(t, vars);
    assert_ok(tni_engine_push(c->engine, &task));
}

static uint64_t event_waits(tni_context *c)
{
    tni_engine_stats stats;

    tni_engine_stats_get(c->engine, &stats);
    return stats.event_waits;
}

/* The steps while one stream stands still, until the other one has done what it may: kernels all that there
 * is if they wait for no copy, copies all that there is. */
static void steps_stalled(tni_context *c, training *t, stall which, uint32_t steps)
{
    const bool copies = which == STALL_COPIES;
    stalled s = {0};
    uint64_t waits;

    assert_ok(tni_engine_wait_all(c->engine));
    waits = event_waits(c);
    stream_push(c, copies, stand_still, &s, NULL);
    while (!atomic_load(&s.begun))
        tni_sleep_ns(50000);
    for (uint32_t i = 0; i < steps; i++)
        training_step(t, i % TRAINING_BATCHES, 0, 0.1);
    stream_push(c, !copies, reach, &s, copies ? t : NULL);
    while (!atomic_load(&s.reached) && !(copies && event_waits(c) > waits))
        tni_sleep_ns(50000);
    atomic_store(&s.open, 1u);
    assert_ok(tni_engine_wait_all(c->engine));
}

static void train(const char *const *settings, const char *fault, stall which, uint32_t steps, outcome *out)
{
    tni_context *c = test_context(settings);
    tni_device *d;
    training *t = training_create(c, "sgd_update", 1);

    if (fault)
        tni_engine_plant(c->engine, fault);
    if (which != STALL_NONE)
        steps_stalled(c, t, which, steps);
    for (uint32_t i = 0; which == STALL_NONE && i < steps; i++)
        training_step(t, i % TRAINING_BATCHES, 0, 0.1);
    out->finite = training_read(t, out->values);
    assert_ok(tni_default_device(c, &d));
    out->out_of_order = d->ops ? counted(c, "out_of_order") : 0;
    training_destroy(t);
    test_context_close(c);
}

static void train_fake(uint32_t seed, const char *fault, stall which, outcome *out)
{
    char text[64];
    const char *settings[] = {"device.default=fake:0",     "plugin.fake.reorder=1",
                              "plugin.fake.delay_us=60",   text,
                              "run.deterministic=threads", NULL};

    snprintf(text, sizeof text, "plugin.fake.seed=%u", seed);
    train(settings, fault, which, STEPS, out);
}

static void train_cpu(outcome *out)
{
    const char *settings[] = {"kernel.prefer=cpu", "run.deterministic=threads", NULL};

    train(settings, NULL, STALL_NONE, STEPS, out);
    assert_true(out->finite);
}

static void same_bits(void **state)
{
    outcome cpu, fake;
    const uint32_t seeds = (uint32_t)test_runs(20);

    (void)state;
    train_cpu(&cpu);
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        train_fake(seed, NULL, STALL_NONE, &fake);
        if (memcmp(fake.values, cpu.values, sizeof cpu.values)) {
            print_error("plugin.fake.seed=%u: other bits than on the CPU\n", seed);
            fail();
        }
    }
}

static void dropped_wait_is_seen(void **state)
{
    outcome cpu, fake;
    const uint32_t seeds = (uint32_t)test_runs(20);
    uint32_t wrong = 0;

    (void)state;
    if (WHY_NOT) {
        print_message("skipped: %s\n", WHY_NOT);
        skip();
    }
    train_cpu(&cpu);
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        train_fake(seed, "drop_event_wait", STALL_COPIES, &fake);
        wrong += memcmp(fake.values, cpu.values, sizeof cpu.values) != 0;
    }
    print_message("without waits for events %u of %u seeds give other bits\n", wrong, seeds);
    assert_int_equal(wrong, seeds);
}

/* Without this the tests above would prove little: the device does reorder what the engine lets it
 * reorder. */
static void reorders(void **state)
{
    outcome cpu, fake;
    int64_t sum = 0;

    (void)state;
    train_cpu(&cpu);
    for (uint32_t seed = 1; sum <= 1000 && seed <= 1000; seed++) {
        train_fake(seed, NULL, STALL_KERNELS, &fake);
        assert_memory_equal(fake.values, cpu.values, sizeof cpu.values);
        assert_true(fake.out_of_order >= 2 * STEPS); /* each batch, its images and its labels */
        sum += fake.out_of_order;
    }
    print_message("%lld out-of-order completions\n", (long long)sum);
    assert_true(sum > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(dropped_wait_is_seen),
        cmocka_unit_test(reorders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
