/* Writes into a block that it got back: on a device that would be a fault. */
#include "healthy.h"

DEFECT_CREATE

static void give(tn_pool *pool, const tn_memory *memory, tn_stream *stream)
{
    *(volatile char *)memory->data = 0;
    pool_free(pool, memory, stream);
}

DEFECT_POOL("defect-pool-touches", .create = create, .alloc = pool_alloc, .free = give, .trim = pool_trim,
            .stats = pool_stats, .destroy = pool_destroy);
