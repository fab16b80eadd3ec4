/* Gives a block out a second time while it is still out. */
#include "healthy.h"

DEFECT_CREATE

/* Of each thread, so that one thread's pool does not give what is another one's. */
static _Thread_local tn_memory before;
static _Thread_local int count;

static tn_status alloc(tn_pool *pool, uint64_t bytes, tn_stream *stream, tn_memory *out, tn_err *err)
{
    tn_status st;

    if (++count % 9 == 0 && before.data && before.block_bytes >= bytes) {
        *out = before;
        out->bytes = bytes;
        out->stream = stream;
        return TN_OK;
    }
    st = pool_alloc(pool, bytes, stream, out, err);
    if (!st)
        before = *out;
    return st;
}

static void give(tn_pool *pool, const tn_memory *memory, tn_stream *stream)
{
    if (memory->data == before.data)
        before.data = NULL;
    pool_free(pool, memory, stream);
}

DEFECT_POOL("defect-pool-overlap", .create = create, .alloc = alloc, .free = give, .trim = pool_trim,
            .stats = pool_stats, .destroy = pool_destroy);
