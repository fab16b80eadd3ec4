/* Forgets on which stream a block was used. */
#include "healthy.h"

DEFECT_CREATE

static void give(tn_pool *pool, const tn_memory *memory, tn_stream *stream)
{
    (void)stream;
    pool_free(pool, memory, NULL);
}

DEFECT_POOL("defect-pool-streams", .create = create, .alloc = pool_alloc, .free = give, .trim = pool_trim,
            .stats = pool_stats, .destroy = pool_destroy);
