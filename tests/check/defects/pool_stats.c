/* Counts a block that is out for what was asked, not for what it takes. */
#include "healthy.h"

DEFECT_CREATE

static void stats(tn_pool *pool, tn_pool_stats *out)
{
    pool_stats(pool, out);
    out->live_bytes -= out->live_bytes / 8;
}

DEFECT_POOL("defect-pool-stats", .create = create, .alloc = pool_alloc, .free = pool_free, .trim = pool_trim,
            .stats = stats, .destroy = pool_destroy);
