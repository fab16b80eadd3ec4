/* What the kernel of ordered sums (plugins/cuda/kernels/collective.cu) is given by plugins of collectives. */
#ifndef TNB_COLLECTIVE_H
#define TNB_COLLECTIVE_H

#include <stdint.h>

#define TNB_COLLECTIVE_KERNEL "collective_sum"
#define TNB_COLLECTIVE_THREADS 256 /* of a block */

/* `ranks` shares of `count` elements lie one behind the other. The first becomes the sum of all, in their
 * order, each addition rounded once. */
typedef struct tnb_collective_args {
    void *shares;
    int64_t count;
    int32_t ranks, dtype; /* TN_F32 … */
} tnb_collective_args;

#endif
