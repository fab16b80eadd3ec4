/*
 * Each of the 44 named points (core/kv/point.h): the process that gets there, or one of the other two
 * roles, is killed, or stopped for longer than the dead time. The job ends with the same bits (I3), or with
 * an error that names who is gone. A point that is never reached is a failure. TENON_RUNS: seeds of each, at
 * the first, second, ... time that it is reached.
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

#ifdef TN_TEST_SWITCHES
typedef struct point_row {
    uint32_t role;
    const char *name, *what, *remark;
} point_row;

#define ROW(role, name, failpoint, what, remark) [TNI_KV_AT_##name] = {TNI_KV_##role, #name, what, remark},
static const point_row points[TNI_KV_AT_END] = {TNI_KV_POINTS(ROW)};

/* Points that need a lost server first, and how often one passes where nothing has begun yet. */
static const bool loses[TNI_KV_AT_END] = {[TNI_KV_AT_node_dead] = true, [TNI_KV_AT_plan_sent] = true};
static const uint32_t earlier[TNI_KV_AT_END] = {[TNI_KV_AT_view_written] = 2};

static bool strike(uint64_t seed, tni_kv_at at, uint32_t role, sim_point how, uint64_t nth)
{
    const sim_options o = {.seed = seed,
                           .mode = SIM_SYNC,
                           .exactly = true,
                           .workers = 2,
                           .servers = 2,
                           .keys = 2,
                           .rounds = 8,
                           .save = 2,
                           .at = at,
                           .nth = (uint32_t)nth + earlier[at],
                           .strike = role,
                           .how = how,
                           .lose = loses[at]};
    sim_result result;

    if (!sim_run(&o, &result))
        fail_msg("seed %llu, point %s (%s), %s of role %u, time %llu: %s", (unsigned long long)seed,
                 points[at].name, points[at].what, how == SIM_STOP ? "stop" : "kill", role,
                 (unsigned long long)nth, result.violation);
    return result.reached;
}

static void each_point(void **unused)
{
    const char *text = getenv("TENON_SEED");
    const uint64_t seeds = test_runs(2), first = text ? strtoull(text, NULL, 10) : 1;
    uint64_t count = 0;

    (void)unused;
    for (uint32_t i = 0; i < 6 * (TNI_KV_AT_END - 1); i++) {
        const tni_kv_at at = (tni_kv_at)(1 + i / 6);
        uint64_t reached = 0;

        for (uint64_t k = 0; k < seeds; k++)
            reached += strike(first + k, at, i / 2 % 3, i % 2 ? SIM_STOP : SIM_AT_RECEIVE, 1 + k % 8);
        if (!reached)
            fail_msg("point %s (%s) is never reached", points[at].name, points[at].what);
        count += reached;
    }
    print_message("count %llu\n", (unsigned long long)count);
}

/* Every step of the list has a name; what stands for a step that is not there says so. */
static void the_list(void **unused)
{
    uint32_t of_role[3] = {0};

    (void)unused;
    for (tni_kv_at at = TNI_KV_AT_NONE + 1; at < TNI_KV_AT_END; at++) {
        of_role[points[at].role]++;
        print_message("%-14s %-36s %s\n", points[at].name, points[at].what, points[at].remark);
    }
    assert_int_equal(of_role[TNI_KV_SCHEDULER], 12);
    assert_int_equal(of_role[TNI_KV_SERVER], 18);
    assert_int_equal(of_role[TNI_KV_WORKER], 14);
}
#else
static void each_point(void **unused)
{
    (void)unused;
    print_message("skipped: this build has no points\n");
    skip();
}
#define the_list each_point
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_list), cmocka_unit_test(each_point)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
