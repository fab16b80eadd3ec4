/*
 * A thousand nodes, and what a round takes on links of one speed. Servers on k machines of their own, n
 * workers with M bytes each: max(M/B, nM/(kB)), as pushes and pulls go opposite ways at once. Parts of 128
 * bytes stand for long ones: the model counts payloads alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kv/sim/sim.h"
#include "support/runs.h"

#define BYTE_NS 50000u
#define ELEMENTS_OF_PART 32u

static double ratio(uint32_t workers, uint32_t servers, uint32_t parts, uint32_t rounds)
{
    const sim_options o = {.seed = 5,
                           .mode = SIM_SYNC,
                           .exactly = true,
                           .workers = workers,
                           .servers = servers,
                           .keys = 1,
                           .rounds = rounds,
                           .elements = ELEMENTS_OF_PART * parts,
                           .byte_ns = BYTE_NS};
    const double bytes = 4.0 * ELEMENTS_OF_PART * parts, share = (double)workers / servers;
    const double best = bytes * BYTE_NS * (share > 1 ? share : 1) * rounds;
    sim_result result;
    double r;

    if (!sim_run(&o, &result))
        fail_msg("%u workers, %u servers: %s", workers, servers, result.violation);
    r = (double)result.steps_ns / best;
    print_message("%u workers, %u servers, %u parts: %.3f of the best time, %llu messages\n", workers,
                  servers, parts, r, (unsigned long long)result.messages);
    return r;
}

static void rounds_take_what_links_allow(void **unused)
{
    (void)unused;
    assert_true(ratio(8, 4, 64, 4) < 1.10);
    assert_true(ratio(16, 2, 96, 4) < 1.10);
    assert_true(ratio(4, 4, 128, 4) < 1.10);
}

static void a_thousand_nodes(void **unused)
{
    (void)unused;
    if (test_short()) {
        print_message("skipped: too long under a sanitizer; the debug build runs it\n");
        skip();
    }
    /* A value leaves when the last gradient of its part has come, so a round is longer by the time of one
     * part: of one on each server, it is twice the best. */
    assert_true(ratio(990, 9, 9, 1) < 1.10 * 2);
    assert_true(ratio(96, 9, 117, 1) < 1.10);
    if (!test_runs(0))
        return;
    assert_true(ratio(990, 9, 117, 1) < 1.10); /* a campaign: 1.5 million messages */
    print_message("count 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rounds_take_what_links_allow),
                                       cmocka_unit_test(a_thousand_nodes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
