/*
 * A pool under test: a source whose memory tells, and an oracle that knows every block that is out.
 */
#ifndef TN_CHECK_POOL_H
#define TN_CHECK_POOL_H

#include "internal.h"

#define CHK_REGIONS_MAX 8192u /* pieces of memory that the source has given */
#define CHK_BLOCKS_MAX 4096u  /* blocks that are out */
#define CHK_MARKS_MAX 65536u
#define CHK_STREAMS 8u

typedef struct chk_region {
    unsigned char *map, *data;
    uint64_t map_bytes, bytes;
} chk_region;

/* A block that is out, or, `freed`, one that lies in the pool with the mark of its stream. */
typedef struct chk_block {
    tn_memory memory;
    uint64_t seed; /* of the pattern in it */
} chk_block;

/* The end of a stream at a moment. Streams are numbers from 1, as pointers. `clock`: of each stream, how many
 * of its marks lie before this one, since streams are in order and wait for each other. */
typedef struct chk_mark {
    uintptr_t stream;
    uint32_t clock[CHK_STREAMS];
    bool done, released;
} chk_mark;

typedef struct chk_pool {
    chk_env *env;
    chk_plugin plugin;
    const tn_pool_ops *ops;
    tn_pool *pool;
    tn_pool_source *source;
    tn_pool_stats *stats; /* in the host's length */
    chk_host_kind kind;
    /* the source */
    bool untouchable; /* its memory may not be touched by anybody */
    bool streams;     /* marks are made; else there are no streams */
    uint32_t alignment;
    uint64_t limit, given, given_peak, gives; /* bytes; gives: allocations up to now */
    uint64_t takes;                           /* regions given back */
    uint32_t marks_fail, marks_asked;         /* each so-manieth mark cannot be had; 0: all can */
    uint64_t fail_at; /* allocation `fail_at` of the source fails, counted down; 0: none */
    bool failed;
    chk_region *regions;
    size_t region_count;
    chk_mark *marks;
    size_t mark_count, marks_open;
    uint32_t clock[CHK_STREAMS][CHK_STREAMS]; /* clock[s]: the marks that the work of stream s lies behind */
    const char *option_key, *option_value;
    /* the oracle */
    chk_block *blocks;
    size_t block_count;
    uint64_t allocs; /* that went well */
    /* of blocks freed with an open mark: where they lie */
    struct {
        unsigned char *data;
        uint64_t bytes;
        size_t mark;
    } * freed;
    size_t freed_count;
} chk_pool;

/* Opens env's plugin and makes a pool of the table called env->subject; fails the case if that fails.
 * Settings of the source come from `as` (NULL: alignment 64, no limit, no streams). */
void chk_pool_open(chk_pool *p, chk_env *env, chk_host_kind kind, const chk_pool *as);
/* The same in two steps: the pool's create may fail. */
void chk_pool_begin(chk_pool *p, chk_env *env, chk_host_kind kind, const chk_pool *as);
tn_status chk_pool_create(chk_pool *p, tn_err *err);
/* destroy, then the accounts of the source, then the plugin. */
void chk_pool_close(chk_pool *p);
/* An allocation; what is wrong with the block fails the case. NULL: the status says why (and was checked). */
chk_block *chk_pool_take(chk_pool *p, uint64_t bytes, uintptr_t stream, tn_status *st);
/* The same, and it must go well. */
chk_block *chk_pool_must(chk_pool *p, uint64_t bytes);
/* Checks the bytes in the block, then frees it. The block with the last index takes its place. */
void chk_pool_give(chk_pool *p, chk_block *block, uintptr_t stream);
void chk_pool_give_all(chk_pool *p);
/* Compares the pool's numbers with the source's and the oracle's. */
void chk_pool_stats_check(chk_pool *p);
void chk_pool_mark_done(chk_pool *p, size_t index); /* and all marks that lie before it */
void chk_pool_marks_finish(chk_pool *p);            /* all streams come to their ends */

#endif
