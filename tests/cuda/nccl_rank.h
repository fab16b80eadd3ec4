/* A rank as a process of its own: the plugin kv-nccl as a file, driven through its table. See nccl_rank.c. */
#ifndef TEST_CUDA_NCCL_RANK_H
#define TEST_CUDA_NCCL_RANK_H

#include <stdint.h>

/* What the ranks of a job do, by `script`:
 *   sums     sums, ordered or not, broadcasts and barriers of all types, on the device and on the host;
 *            a wrong one is said
 *   buckets  six sums, "bucket 1 (w1)" …, one after the other
 *   absent   the same, but the last rank only waits, from bucket 3 on
 *   swapped  the same, but the last rank starts buckets 3 and 4 the other way
 *   leaves   the same, but the last rank closes before bucket 3
 *   opens    nothing more
 * The last line that a rank writes is "ok", or the text of the failure. Returns the process' exit code. */
int nccl_rank_main(const char *script, uint32_t rank, uint32_t ranks, const char *root, uint32_t timeout_ms);

#endif
