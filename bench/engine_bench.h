/* Measures of the engine alone, for `bench/engine` and for `tenon bench engine`. */
#ifndef TN_BENCH_ENGINE_H
#define TN_BENCH_ENGINE_H

#include "engine/engine.h"

/*
 * Nanoseconds per operation from the first push to the end of wait_all: `count` operations, each reading two
 * and writing one of 64 variables drawn by a fixed generator, one worker, nothing inline. The bodies add up
 * numbers.
 */
tn_status bench_engine_push_ns(uint64_t count, double *out);

/* Nanoseconds of one enter and leave with two reads and one write, uncontended. */
tn_status bench_engine_enter_ns(uint64_t count, double *out);

/* Microseconds from a push to the end of the wait for it, operation by operation. */
tn_status bench_engine_round_trip_us(uint64_t count, double *out);

#endif
