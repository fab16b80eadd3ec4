/*
 * A pool under test: the plugin as a file, loaded with dlopen, over a device that the test controls: how much
 * memory there is, which allocation fails, when a stream's work is done.
 */
#ifndef TEST_POOL_SOURCE_H
#define TEST_POOL_SOURCE_H

#include "tenon/plugin/pool.h"

#include <stdbool.h>

#define SOURCE_BLOCKS_MAX 65536u
#define SOURCE_STREAMS 4u
#define SOURCE_OPTIONS_MAX 8u

/* A stream is a clock: `queued` rises with each mark, `reached` is what the test lets happen. */
typedef struct source_stream {
    uint64_t queued, reached;
    uint64_t waits;
} source_stream;

typedef struct source_mark {
    source_stream *stream;
    uint64_t at;
} source_mark;

typedef struct source {
    tn_pool_source ops;
    source_stream streams[SOURCE_STREAMS];
    const char *options[SOURCE_OPTIONS_MAX][2]; /* key, text */
    bool real;                                  /* memory that may be written to; else only addresses */
    uint64_t total_bytes;                       /* of the device; 0: without end */
    uint64_t given_bytes, given_count, alloc_calls, free_calls;
    uint64_t peak_bytes, marks;
    int64_t fail_at; /* the alloc call (from 1) that fails; 0: none */
    bool marks_fail;
    uint64_t seen[SOURCE_STREAMS][SOURCE_STREAMS];          /* [t][s]: t waits for s up to here */
    void (*on_give)(void *arg, void *data, uint64_t bytes); /* before memory goes back */
    void *on_give_arg;
    uint64_t next_address;
    struct {
        void *data;
        uint64_t bytes;
    } blocks[SOURCE_BLOCKS_MAX];
    /* host memory, as the plugin sees it */
    tn_host host;
    tn_memory_service memory;
    uint64_t memory_calls, memory_live;
    int64_t memory_fail_at; /* this call and all later ones fail; 0: none */
    void *plugin;
} source;

void source_init(source *s, bool real); /* loads the plugin too */
void source_fini(source *s);            /* asserts that everything came back */
void source_option(source *s, const char *key, const char *text);
/* Of the plugin mempool; "first-fit" is that of the template in sdk/template/pool. */
const tn_pool_ops *source_pool_ops(const char *id);
tn_pool *source_pool(source *s, const char *id);
tn_stream *source_stream_at(source *s, uint32_t index);
void source_reach_all(source *s);

tn_memory pool_get(tn_pool *pool, uint64_t bytes, tn_stream *stream); /* asserts success */
tn_pool_stats pool_stats(tn_pool *pool);

/* A small generator for tests: the same numbers everywhere. */
uint64_t test_random(uint64_t *state);

#endif
