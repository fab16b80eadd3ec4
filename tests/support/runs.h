/* How often a random test runs. */
#ifndef TN_TESTS_RUNS_H
#define TN_TESTS_RUNS_H

#include <stdint.h>

/* TENON_RUNS, else `usual`. */
uint64_t test_runs(uint64_t usual);

#endif
