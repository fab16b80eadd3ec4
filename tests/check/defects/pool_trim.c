/* trim keeps everything. */
#include "healthy.h"

DEFECT_CREATE

static void trim(tn_pool *pool, uint64_t keep_bytes)
{
    (void)pool;
    (void)keep_bytes;
}

DEFECT_POOL("defect-pool-trim", .create = create, .alloc = pool_alloc, .free = pool_free, .trim = trim,
            .stats = pool_stats, .destroy = pool_destroy);
