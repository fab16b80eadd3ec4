/* largest_free is the sum of all cached blocks. */
#include "healthy.h"

DEFECT_CREATE

static void stats(tn_pool *pool, tn_pool_stats *out)
{
    pool_stats(pool, out);
    out->largest_free = out->cached_bytes;
}

DEFECT_POOL("defect-pool-largest", .create = create, .alloc = pool_alloc, .free = pool_free,
            .trim = pool_trim, .stats = stats, .destroy = pool_destroy);
