/* Uses a place in tn_memory that is reserved. */
#include "healthy.h"

DEFECT_CREATE

static tn_status alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err)
{
    const tn_status st = pool_alloc(pool, bytes, stream, out, err);

    out->reserved[1] = st ? 0 : 7;
    return st;
}

DEFECT_POOL("defect-pool-reserved", .create = create, .alloc = alloc, .free = pool_free, .trim = pool_trim,
            .stats = pool_stats, .destroy = pool_destroy);
