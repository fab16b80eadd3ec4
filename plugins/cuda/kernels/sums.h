/*
 * Includes BODY twice: for kernels in which a block sums a set of elements, and for those named …_short, in
 * which a thread does. The words: NAME(kernel), MODE, PART, EACH_SET(i, count), EACH_MEMBER(i, count),
 * SUM(v) of a set, FIRST_THREAD of it.
 */
#include "block.h"

#define NAME(kernel) kernel
#define MODE SYNC
#define PART TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
#define EACH_SET EACH_BLOCK
#define EACH_MEMBER EACH_THREAD
#define SUM(v) block_sum(part, v)
#define FIRST_THREAD (TNCUDA_THREAD == 0)
#include BODY
#undef NAME
#undef MODE
#undef PART
#undef EACH_SET
#undef EACH_MEMBER
#undef SUM
#undef FIRST_THREAD

#define NAME(kernel) kernel##_short
#define MODE FREE
#define PART
#define EACH_SET(i, count) for (int64_t i = TNCUDA_FIRST; i < (count); i += TNCUDA_STEP)
#define EACH_MEMBER(i, count) for (int64_t i = 0; i < (count); i++)
#define SUM(v) (v)
#define FIRST_THREAD 1
#include BODY
