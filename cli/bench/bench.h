/* What the files of `tenon bench` share. */
#ifndef TN_CLI_BENCH_H
#define TN_CLI_BENCH_H

#include "tenon/plugin/plugin.h"

#define CLI_BENCH_TOUCH "bench_touch" /* y = a + 0 b + 1, arrays of one element */

extern const tn_plugin cli_bench_plugin; /* brings it, with a kernel for cpu */

#endif
