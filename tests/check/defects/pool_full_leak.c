/* An allocation that the device refuses loses the block's own record. */
#include <stdlib.h>

#include "healthy.h"

DEFECT_CREATE

static tn_status alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err)
{
    static void *volatile lost;
    tn_status st = pool_alloc(pool, bytes, stream, out, err);

    if (st)
        lost = malloc(40);
    (void)lost;
    return st;
}

DEFECT_POOL("defect-pool-full-leak", .create = create, .alloc = alloc, .free = pool_free, .trim = pool_trim,
            .stats = pool_stats, .destroy = pool_destroy);
