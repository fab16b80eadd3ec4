/*
 * The simulator sees what goes wrong: each error that ps-lite and BytePS are known for, switched on, breaks
 * an invariant within a thousand seeds; the same seeds without it break none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kv/sim/sim.h"

typedef struct row {
    int bug;
    const char *name, *expected; /* invariants that may see it */
    sim_options o;
    uint32_t seeds;
} row;

#define NETWORK (SIM_LOSS | SIM_DOUBLE | SIM_REORDER)
#ifdef TN_TEST_SWITCHES
#define ROW(bug, expected, mode_, faults_, ...)                                                              \
    {                                                                                                        \
        TNI_KV_BUG_##bug, #bug, expected, {.mode = mode_, .faults = faults_, .exactly = true, __VA_ARGS__},  \
            1000                                                                                             \
    }

static const row rows[] = {
    ROW(COUNT_MESSAGES, "I1I2I3", SIM_SYNC, SIM_DOUBLE, .workers = 3),
    ROW(ACK_EARLY, "I1", SIM_SYNC, SIM_LOSS, .workers = 3),
    ROW(DEDUP_LOST, "I1I8", SIM_ASYNC, NETWORK | SIM_KILL_SERVER, .workers = 4, .save = 1, .rounds = 24),
    ROW(DEDUP_GROWS, "I6", SIM_SYNC, NETWORK, .rounds = 10),
    ROW(BARRIER_COUNT, "I2", SIM_SYNC, SIM_DOUBLE | SIM_SLOW, .workers = 3),
    ROW(NO_DEADLINE, "I4", SIM_HANG, 0, .workers = 3),
    ROW(ID_WRAP, "I1I2I3I8", SIM_SYNC, 0, .workers = 258, .servers = 1, .keys = 1, .rounds = 1),
    ROW(LIVE_BUFFER, "I1I2I3", SIM_SYNC, SIM_LOSS, .workers = 3),
    ROW(GIVE_UP, "I8", SIM_SYNC, SIM_LOSS | SIM_CUT, .workers = 3),
    ROW(NO_BEAT, "I4I8", SIM_FAIL, 0, .workers = 3),
    ROW(REJOIN_IGNORED, "I8", SIM_SYNC, SIM_KILL_WORKER, .workers = 2),
    ROW(NO_JOB, "I1I2I3I7I8", SIM_SYNC, SIM_STALE, .workers = 3),
    ROW(NO_FENCE, "I1I2I3I7I8", SIM_SYNC, SIM_PAUSE | SIM_KILL_SERVER | SIM_REORDER, .workers = 3),
    ROW(EXIT_STOPS, "I1I2I3I8", SIM_SYNC, NETWORK, .workers = 3),
    ROW(PULL_LATEST, "I1I2I3I5", SIM_SYNC, NETWORK, .workers = 3),
    ROW(NO_LEAVE, "I8", SIM_SYNC, 0, .workers = 3),
    ROW(CONTROL_ONCE, "I8", SIM_SYNC, NETWORK, .workers = 3),
    ROW(NO_CHECKSUM, "I1I2I3I8", SIM_SYNC, SIM_DAMAGE, .workers = 3),
    ROW(HALF_ROUND, "I1I2I3", SIM_SYNC, SIM_BREAK, .workers = 3),
    ROW(OVERWRITE, "I2I3", SIM_SYNC, NETWORK, .workers = 3),
    ROW(REPLAY_LATE, "I2I3", SIM_SYNC, NETWORK | SIM_KILL_SERVER, .workers = 2, .servers = 3, .keys = 2),
    ROW(REPLAY_TRIM, "I1I3I8", SIM_SYNC, NETWORK | SIM_KILL_SERVER, .workers = 2, .save = 2, .rounds = 10),
};

/* Seeds until an invariant breaks; 0: none does. */
static uint32_t seeds_until(const row *r, uint32_t seeds, sim_result *result)
{
    sim_options o = r->o;

    for (uint32_t seed = 1; seed <= seeds; seed++) {
        o.seed = seed;
        if (!sim_run(&o, result))
            return seed;
    }
    return 0;
}

static void each_bug_is_seen(void **unused)
{
    (void)unused;
    assert_int_equal(sizeof rows / sizeof *rows, TNI_KV_BUG_END - 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char invariant[3] = "";
        sim_result result;
        uint32_t seed;

        tni_kv_bug = rows[i].bug;
        seed = seeds_until(&rows[i], rows[i].seeds, &result);
        tni_kv_bug = TNI_KV_BUG_NONE;
        memcpy(invariant, result.violation, 2);
        print_message("%-15s seed %u: %s\n", rows[i].name, seed, result.violation);
        if (!seed || !strstr(rows[i].expected, invariant))
            fail_msg("%s is not seen as %s", rows[i].name, rows[i].expected);
        if (seeds_until(&rows[i], seed < 20 ? seed : 20, &result))
            fail_msg("without %s: %s", rows[i].name, result.violation);
    }
}
#else
static void each_bug_is_seen(void **unused)
{
    (void)unused;
    print_message("skipped: this build has no switches that break the core\n");
    skip();
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_bug_is_seen)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
