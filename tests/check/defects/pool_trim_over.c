/* trim gives back everything, whatever is to be kept. */
#include "healthy.h"

DEFECT_CREATE

static void trim(tn_pool *pool, uint64_t keep_bytes)
{
    (void)keep_bytes;
    pool_trim(pool, 0);
}

DEFECT_POOL("defect-pool-trim-over", .create = create, .alloc = pool_alloc, .free = pool_free, .trim = trim,
            .stats = pool_stats, .destroy = pool_destroy);
