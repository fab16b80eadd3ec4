/*
 * A training on the fake device, whose streams and completions come late and out of order, ends with the bits
 * of the same training on the CPU; with one wait for an event dropped in the engine it does not. TENON_RUNS
 * is the number of seeds (default 20).
 */
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

static uint32_t runs(uint32_t fallback)
{
    const char *text = getenv("TENON_RUNS");

    return text && *text ? (uint32_t)strtoul(text, NULL, 10) : fallback;
}

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

static void train(const char *const *settings, const char *fault, uint32_t steps, outcome *out)
{
    tni_context *c = test_context(settings);
    tni_device *d;
    training *t = training_create(c, "sgd_update", 1);

    if (fault)
        tni_engine_plant(c->engine, fault);
    for (uint32_t i = 0; i < steps; i++)
        training_step(t, i % TRAINING_BATCHES, 0, 0.1);
    out->finite = training_read(t, out->values);
    assert_ok(tni_default_device(c, &d));
    out->out_of_order = d->ops ? counted(c, "out_of_order") : 0;
    training_destroy(t);
    test_context_close(c);
}

static void train_fake(uint32_t seed, const char *fault, uint32_t steps, outcome *out)
{
    char text[64];
    const char *settings[] = {"device.default=fake:0",     "plugin.fake.reorder=1",
                              "plugin.fake.delay_us=60",   text,
                              "run.deterministic=threads", NULL};

    snprintf(text, sizeof text, "plugin.fake.seed=%u", seed);
    train(settings, fault, steps, out);
}

static void train_cpu(uint32_t steps, outcome *out)
{
    const char *settings[] = {"kernel.prefer=cpu", "run.deterministic=threads", NULL};

    train(settings, NULL, steps, out);
    assert_true(out->finite);
}

static void same_bits(void **state)
{
    outcome cpu, fake;
    const uint32_t seeds = runs(20);

    (void)state;
    train_cpu(STEPS, &cpu);
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        train_fake(seed, NULL, STEPS, &fake);
        if (memcmp(fake.values, cpu.values, sizeof cpu.values)) {
            print_error("plugin.fake.seed=%u: other bits than on the CPU\n", seed);
            fail();
        }
    }
}

static void dropped_wait_is_seen(void **state)
{
    outcome cpu, fake;
    const uint32_t seeds = runs(20);
    uint32_t wrong = 0;

    (void)state;
    if (WHY_NOT) {
        print_message("%s\n", WHY_NOT);
        skip();
    }
    train_cpu(STEPS, &cpu);
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        train_fake(seed, "drop_event_wait", STEPS, &fake);
        wrong += memcmp(fake.values, cpu.values, sizeof cpu.values) != 0;
    }
    print_message("without waits for events %u of %u seeds give other bits\n", wrong, seeds);
    assert_true(wrong > 0);
}

/* Without this the tests above would prove little: the device does reorder what the engine lets it reorder.
 */
static void reorders(void **state)
{
    outcome cpu, fake;
    int64_t sum = 0;

    (void)state;
    train_cpu(STEPS, &cpu);
    for (uint32_t seed = 1; sum <= 1000 && seed <= 1000; seed++) {
        train_fake(seed, NULL, STEPS, &fake);
        assert_memory_equal(fake.values, cpu.values, sizeof cpu.values);
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
