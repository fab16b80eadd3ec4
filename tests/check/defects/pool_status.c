/* Where the device has no memory, it says that something is wrong inside. */
#include "healthy.h"

DEFECT_CREATE

static tn_status alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err)
{
    tn_status st = pool_alloc(pool, bytes, stream, out, err);

    return st == TN_E_NOMEM ? tn_fail(err, TN_E_INTERNAL, "no memory") : st;
}

DEFECT_POOL("defect-pool-status", .create = create, .alloc = alloc, .free = pool_free, .trim = pool_trim,
            .stats = pool_stats, .destroy = pool_destroy);
