/* How often a random test runs. */
#ifndef TN_TESTS_RUNS_H
#define TN_TESTS_RUNS_H

#include <stdbool.h>
#include <stdint.h>

/* TENON_RUNS, else `usual`. */
uint64_t test_runs(uint64_t usual);
/* TENON_TEST_SHORT is 1: all takes many times as long in this build, or it sees little that another does
 * not. */
bool test_short(void);

#endif
