/* Its blocks lie 8 bytes behind a boundary. */
#include "healthy.h"

DEFECT_CREATE

static tn_status alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err)
{
    tn_status st = bytes > UINT64_MAX - 8 ? tn_fail(err, TN_E_NOMEM, "too large")
                                          : pool_alloc(pool, bytes + 8, stream, out, err);

    if (st)
        return st;
    out->data = (char *)out->data + 8;
    out->bytes = bytes;
    out->block_bytes -= 8;
    return TN_OK;
}

DEFECT_POOL("defect-pool-misaligned", .create = create, .alloc = alloc, .free = pool_free, .trim = pool_trim,
            .stats = pool_stats, .destroy = pool_destroy);
