/*
 * The interface of room exec: what a context consists of, switches of threads, random draws. Eager calls,
 * frames, hybridized nets and the tape have headers of their own.
 */
#ifndef TN_EXEC_H
#define TN_EXEC_H

#include "exec/cached.h"
#include "exec/invoke.h"
#include "exec/tape.h"

typedef struct tni_exec tni_exec;

/* Everything one user opened; the public tn_ctx. Room context makes it; rooms below get only the parts they
 * need. */
struct tn_ctx {
    tni_refcount refs;
    tni_log log;
    tni_options *options;
    tni_registry *plugins;
    tni_device_set *devices;
    tni_engine *engine;
    tni_space *space;
    tni_opset *ops;
    tni_selector *selector;
    tni_exec *exec;
};

/* ---- exec.c ------------------------------------------------------------------------------------------- */

tn_status tni_exec_create(tni_context *c, tni_exec **out);
void tni_exec_destroy(tni_exec *x);
void tni_exec_forked(tni_exec *x);                  /* a child has one thread */
uint32_t tni_exec_threads(const tni_context *c);    /* budget of a kernel */
uint16_t tni_exec_node_flags(const tni_context *c); /* TN_NODE_… that run.deterministic asks for */
void tni_exec_program_made(tni_context *c);         /* one more was compiled */
/* What room autograd keeps here: made by `make` at the first call. NULL: out of memory. */
void *tni_exec_upper(tni_context *c, void *(*make)(void));
void *tni_exec_upper_take(tni_context *c); /* NULL if there is none */

typedef struct tni_exec_stats {
    uint64_t hits, misses, fast_path, signatures, programs, frames, cuts;
    uint64_t graphs, graph_launches, graph_updates;
} tni_exec_stats;
void tni_exec_stats_get(tni_context *c, tni_exec_stats *out);

/* ---- scope.c: thread-local switches, captured when a call is made ------------------------------------ */

typedef struct tni_scope {
    bool recording, training, np_shape, no_cache;
    bool called;          /* in the forward of a program's function, or in its end */
    tni_device *device;   /* default of new arrays; NULL: device.default */
    const char *origin;   /* of operations, for error messages; NULL */
    const uint64_t *draw; /* that the next random operator uses, already taken; NULL: it takes one */
} tni_scope;
tni_scope *tni_scope_get(void); /* of this thread */
tn_status tni_default_device(tni_context *c, tni_device **out);

/* ---- random.c: draw counters ------------------------------------------------------------------------- */

tn_status tni_random_seed(tni_context *c, uint64_t seed, tni_device *d); /* d NULL: all; counters go to 0 */
uint64_t tni_random_take(tni_context *c, tni_device *d, uint64_t count); /* first of `count` draws */
uint64_t tni_random_key(tni_context *c, tni_device *d);
uint64_t tni_random_position(tni_context *c, tni_device *d); /* for checkpoints */
tn_status tni_random_restore(tni_context *c, tni_device *d, uint64_t key, uint64_t position);

#endif
