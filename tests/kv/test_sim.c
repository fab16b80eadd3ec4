/*
 * The parameter store under faults: `test_sim` runs TENON_RUNS seeds from TENON_SEED on; `test_sim --seed N
 * [--verbose]` runs one. With --async all are of dist_async, whose gradients are whole numbers: what a server
 * holds at the end is the exact sum of what was pushed, each push once. With --storm all have
 * faults in a row, each while members recover from the one before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kv/sim/sim.h"
#include "support/runs.h"

#ifdef __SANITIZE_ADDRESS__
#define USUAL 2000u
#else
#define USUAL (test_short() ? 150u : 400u)
#endif

/* Seeds at which a campaign found a fault, which was mended. */
static const struct {
    uint64_t seed;
    int32_t mode; /* -1: by the seed */
    bool storm;
} found[] = {
    {2000610, -1, false},  /* the round of a late push was broken meanwhile: its error named nobody */
    {4007104, -1, false},  /* pushes for which a server had no room kept the credit of those it waited for */
    {434507, -1, true},    /* a round that the process before a worker had pushed: its pull had that one */
    {20005409, -1, false}, /* keys on a server without its last rounds, and all workers in others' places */
    {5108297, SIM_ASYNC, false}, /* the same */
    {473135, -1, true}, /* one round of a key lost on one server, and its worker: two waited for each other */
    {9001633, -1, true}, /* all were away at once, to come again: the simulator took the job for ended */
    {9619262, SIM_ASYNC, true}, /* another worker 0 counted anew: its snapshots were not the newest */
    {38006365, -1, true}, /* worker 0 pushed to a server of which it did not know that it had come back */
    {37002525, -1, true}, /* what was sent again after a rollback left the order of its steps */
    {71043618, -1, true}, /* a gradient in whose place values had come was pushed again as those */
    {81032603, -1, true}, /* the simulator asked for a key that worker 0 had not given again */
    {71026012, -1, true}, /* another worker 0 asked for a snapshot before all servers had the last one */
    {81027659, -1, true}, /* the same */
    {50001357, -1, true}, /* the next scheduler did not know of a step that servers knew all held */
    {51047743, -1, true}, /* another worker 0, whose first gradient was behind the end of the data */
    {28003082, -1, true}, /* servers went back behind a step that workers had been told all held, late */
};

static bool one(uint64_t seed, int32_t mode, bool storm, bool verbose, sim_result *r)
{
    const sim_options o = {.seed = seed,
                           .faults = SIM_ALL_FAULTS,
                           .mode = mode,
                           .workers = mode == SIM_ASYNC ? 4 : 0,
                           .storm = storm,
                           .verbose = verbose};

    if (sim_run(&o, r))
        return true;
    printf("seed %llu: %s\n  replay: test_sim%s%s --seed %llu --verbose\n", (unsigned long long)seed,
           r->violation, mode == SIM_ASYNC ? " --async" : "", storm ? " --storm" : "",
           (unsigned long long)seed);
    return false;
}

int main(int argc, char **argv)
{
    const char *first = getenv("TENON_SEED");
    uint64_t seed = first ? strtoull(first, NULL, 10) : 1, runs = test_runs(USUAL);
    uint64_t all, bad = 0, messages = 0, faults = 0, begun = tni_clock_ns();
    uint32_t rejoins = 0, compacted = 0, resumed = 0;
    bool verbose = false, async = false, storm = false;
    double minutes;

    for (int i = 1; i < argc; i++) {
        verbose = verbose || strcmp(argv[i], "--verbose") == 0;
        async = async || strcmp(argv[i], "--async") == 0;
        storm = storm || strcmp(argv[i], "--storm") == 0;
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
            seed = strtoull(argv[++i], NULL, 10);
            runs = 1;
        }
    }
    for (size_t i = 0; runs > 1 && !async && !storm && i < sizeof found / sizeof *found; i++) {
        sim_result r;

        bad += !one(found[i].seed, found[i].mode, found[i].storm, verbose, &r);
    }
    all =
        runs + (async || storm || runs < 4 ? 0 : 2 * (runs / 4)); /* shares of asynchronous ones and storms */
    for (uint64_t i = 0; i < all; i++) {
        const bool alone = async || (i >= runs && i < runs + runs / 4);
        sim_result r;

        bad += !one(seed + i % runs, alone ? SIM_ASYNC : -1, storm || i >= runs + runs / 4, verbose, &r);
        messages += r.messages;
        faults += r.faults;
        rejoins += r.rejoins;
        compacted += r.compacted;
        resumed += r.resumed;
    }
    runs = all;
    minutes = (double)(tni_clock_ns() - begun) / 60e9;
    printf("count %llu\n%llu seeds, %llu violations, %llu messages, %llu faults, %u replaced, %u journals "
           "compacted, %u times gone on after a rollback, %.0f seeds a minute\n",
           (unsigned long long)runs, (unsigned long long)runs, (unsigned long long)bad,
           (unsigned long long)messages, (unsigned long long)faults, rejoins, compacted, resumed,
           (double)runs / minutes);
    return bad != 0 || (runs >= 100 && (!compacted || (!async && !resumed)));
}
