/* destroy keeps everything. */
#include "healthy.h"

DEFECT_CREATE

static void destroy(tn_pool *pool)
{
    (void)pool;
}

DEFECT_POOL("defect-pool-leak", .create = create, .alloc = pool_alloc, .free = pool_free, .trim = pool_trim,
            .stats = pool_stats, .destroy = destroy);
