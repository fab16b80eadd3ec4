/* A block whose mark cannot be had is taken for idle. */
#include "healthy.h"

DEFECT_CREATE

static void free_block(tn_pool *pool, const tn_memory *memory, tn_stream *stream)
{
    const tn_pool_source *source = ((const own_pool *)(const void *)pool)->source;
    void *mark = NULL;

    if (stream && !source->mark_record(source->arg, stream, &mark)) {
        source->mark_release(source->arg, mark);
        pool_free(pool, memory, stream);
    } else {
        pool_free(pool, memory, NULL);
    }
}

DEFECT_POOL("defect-pool-unmarked", .create = create, .alloc = pool_alloc, .free = free_block,
            .trim = pool_trim, .stats = pool_stats, .destroy = pool_destroy);
