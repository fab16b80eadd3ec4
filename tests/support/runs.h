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
/* TENON_FULL is 1: all cases, where a usual run takes some of them. */
bool test_full(void);
/* Which of `parts` parts a test looks at that leaves out the others: TENON_TEST_ROTATION, the number of
 * commits as the script of all tests says it, so that every part has its turn; 0 without it. */
uint64_t test_rotation(uint64_t parts);
/* Of allocations that fail one after the other, the one behind `nth`: the first `each` all follow one
 * another. Behind them a build that makes all runs tries each, the others one of 11, the thread sanitizer one
 * of 51, others with each commit. */
uint64_t test_failure_next(uint64_t nth, uint64_t each);

#endif
