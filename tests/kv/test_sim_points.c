/*
 * Each role is killed, or stopped, at each message that it gets, and killed within each message that it
 * sends, once: the job ends with the same bits (I3), whatever the point. Which messages that were is
 * counted: a point that no run reaches is a failure.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kv/sim/sim.h"
#include "support/runs.h"

#define POINTS_MAX 2000u

static uint32_t seen[3][3][TNI_KV_TYPE_END]; /* how, role, type */

/* Runs until the job ends without reaching the point; the number of points. */
static uint32_t sweep(uint64_t seed, sim_mode mode, uint32_t role, sim_point how, uint32_t step)
{
    sim_options o = {.seed = seed,
                     .mode = (int32_t)mode,
                     .exactly = true,
                     .workers = 2,
                     .servers = 2,
                     .keys = 2,
                     .rounds = 4,
                     .save = 2,
                     .point_role = role,
                     .how = how};
    sim_result result;

    for (o.point = 1; o.point < POINTS_MAX; o.point += step) {
        if (!sim_run(&o, &result))
            fail_msg("seed %llu, mode %d, role %u, how %d, point %u: %s", (unsigned long long)seed, (int)mode,
                     role, (int)how, o.point, result.violation);
        if (!result.reached)
            break;
        seen[how][role][result.point_type]++;
    }
    return o.point - 1;
}

static void each_point(void **unused)
{
    const char *text = getenv("TENON_SEED");
    const uint32_t step = test_short() ? 5 : 1;
    const uint64_t seeds = test_runs(3), first = text ? strtoull(text, NULL, 10) : 11;
    uint32_t all = 0;

    (void)unused;
    for (uint64_t seed = first; seed < first + seeds; seed++)
        for (uint32_t i = 0; i < 2 * 3 * 3; i++) {
            const sim_mode mode = i % 2 ? SIM_ASYNC : SIM_SYNC;
            const uint32_t points = sweep(seed, mode, i / 2 % 3, (sim_point)(i / 6), step);

            assert_true(points > 8 && points < POINTS_MAX - step);
            all += points / step;
        }
    print_message("count %u\n", all);
}

static void points_are_reached(void **unused)
{
    static const uint8_t gets[3][4] = {{TNI_KV_HELLO, TNI_KV_BEAT, TNI_KV_BATCH},
                                       {TNI_KV_WELCOME, TNI_KV_VIEW, TNI_KV_BATCH, 0},
                                       {TNI_KV_WELCOME, TNI_KV_VIEW, TNI_KV_BATCH}};

    (void)unused;
    if (test_short()) {
        print_message("skipped: too long under a sanitizer; the debug build runs it\n");
        skip();
    }
    for (uint32_t role = 0; role < 3; role++)
        for (uint32_t i = 0; i < 4; i++) {
            if (!gets[role][i] && role != TNI_KV_SERVER)
                continue;
            assert_true(seen[SIM_AT_RECEIVE][role][gets[role][i]] > 0);
            assert_true(seen[SIM_STOP][role][gets[role][i]] > 0);
        }
    for (uint32_t role = 0; role < 3; role++)
        assert_true(seen[SIM_AT_SEND][role][TNI_KV_BATCH] > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_point), cmocka_unit_test(points_are_reached)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
