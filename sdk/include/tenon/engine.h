/**
 * The engine: own work among that of arrays, and what was counted.
 *
 * Work names the variables that it reads and writes; it runs, on a thread of the engine, when all earlier
 * work that conflicts with it is done. An array's variable is the array itself.
 */
#ifndef TENON_ENGINE_H
#define TENON_ENGINE_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_var tn_var;

/** A variable of the program. @threads any @since 0.1 */
TN_API tn_status tn_var_create(tn_ctx *ctx, tn_var **out);

/** Frees a variable of the program once the work that uses it is done; does not wait. NULL is fine. One of
 * another context is not freed: tn_error_code() is TN_E_ARG then. @threads owner @since 0.1 */
TN_API void tn_var_destroy(tn_ctx *ctx, tn_var *var);

/** The variable of an array, borrowed: lives as long as the array's memory. NULL for NULL. @threads any
 * @since 0.1 */
TN_API tn_var *tn_array_var(tn_array *a);

/** Waits until all work queued so far that writes the variable is done; its error comes out. TN_E_ARG: the
 * variable belongs to another context. @threads any @since 0.1 */
TN_API tn_status tn_var_wait(tn_ctx *ctx, tn_var *var);

/* Lanes of a device: work of several lanes runs side by side, each lane on a thread, and a stream, of its
 * own. A host has one for IN and OUT together. */
#define TN_LANE_COMPUTE 0u /* first come, first served; what has a priority is served by COMM */
#define TN_LANE_IN 1u      /* copies to the device; as OUT and COMM the highest priority first */
#define TN_LANE_OUT 2u     /* copies from it */
#define TN_LANE_COMM 3u    /* communication with others */

/** The work runs on a callback thread, where it may push and wait; it holds no worker. It may not wait for
 * its own end, nor for that of everything (tn_wait_all). Up to 16 run at once, the others wait for their
 * turn. */
#define TN_TASK_HOST 1u

/** Work to queue. Variables of the program live until tn_var_destroy. When `done` runs the variables are free
 * again, so later work may be running by then. */
typedef struct tn_task {
    uint32_t struct_size;                      /* TN_SIZE(tn_task) */
    int32_t priority;                          /* higher first among ready work */
    tn_status (*run)(void *arg);               /* [worker] may not wait for the engine; TN_TASK_HOST may */
    void (*done)(void *arg, tn_status status); /* once, also if skipped or cancelled; may be NULL */
    void *arg;
    tn_var *const *reads, *const *writes;
    uint32_t read_count, write_count;
    const char *name;        /* for messages; lives until `done`; NULL: "task" */
    const tn_device *device; /* whose worker runs it; NULL: cpu:0 */
    uint64_t est_ns;         /* 0: not known; short work may run on the caller */
    uint32_t flags;          /* TN_TASK_… */
    uint32_t lane;           /* TN_LANE_…; 0 with TN_TASK_HOST */
    /** In place of `run`, for work that ends later. May return TN_PENDING: the task is done when
     * tn_task_complete is called for `handle`, before or after this returned. Otherwise what it returns
     * counts, unless the task was completed first. [worker] as `run` */
    tn_status (*begin)(void *arg, uint64_t handle);
} tn_task;

/** Queues work. Waits while the queue is full. A failure of the work poisons what it writes, and all that
 * depends on it. In the naive engine it returns when the work is done, so another thread completes it.
 * TN_E_ARG: not exactly one of `run` and `begin`, an unknown flag or lane, a lane or another device than a
 * host with TN_TASK_HOST, a variable that is NULL or of another context. TN_E_STATE: a million tasks with
 * `begin` are under way.
 * @threads any @since 0.1 */
TN_API tn_status tn_engine_push(tn_ctx *ctx, const tn_task *task);

/**
 * Ends a task whose `begin` was called, exactly once.
 *
 * What waits for a task that nobody completes waits for ever: tn_close, tn_wait_all, a fork. A task that was
 * begun is not cancelled; tn_close_within names it.
 *
 * @param handle  what `begin` was given
 * @param status  TN_OK, or the failure that poisons what the task writes
 * @param text    what went wrong, borrowed, one line; NULL: only the status is told
 * @return TN_E_ARG: no task that has begun has this handle; `status` is no status: the task goes on ·
 *         TN_E_STATE: it is complete already, or the process is a child that was forked inside a callback
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_task_complete(uint64_t handle, tn_status status, const char *text);

/* ---- counters ------------------------------------------------------------------------------------ */

/** Counters of a context since it was opened. */
typedef struct tn_stats {
    uint32_t struct_size;     /* set by the caller: TN_SIZE(tn_stats) */
    uint32_t threads;         /* thread budget of a host device */
    uint64_t pushed, done;    /* work queued, finished */
    uint64_t inlined;         /* run at once on the calling thread */
    uint64_t failed, skipped; /* skipped: an input was poisoned */
    uint64_t over_limit;      /* pushes that went over engine.queue_max */
    uint64_t event_waits;     /* waits of one stream for another */
    uint64_t queue_peak;
    uint64_t hits, misses;                 /* plans found in the table, made; a site remembers its own */
    uint64_t fast_path;                    /* calls run without the queue */
    uint64_t signatures, programs, frames; /* that exist; compiled; made */
    uint64_t arrays, storages;             /* that exist */
    uint64_t host_bytes, host_blocks, host_allocations; /* of the library, in the whole process */
    uint64_t cuts; /* places where calls of nets, and backward passes, were cut into several operations
                      (tn_graph_breaks) */
    uint64_t graphs, graph_launches, graph_updates; /* segments of nets that a device recorded; how often it
                      launched them; and with which update before */
} tn_stats;

/** Reads the counters. TN_E_ARG: struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_ctx_stats(tn_ctx *ctx, tn_stats *out);

/** All pending work with its variables, one line each, yours (tn_free). @threads any @since 0.1 */
TN_API tn_status tn_engine_dump(tn_ctx *ctx, char **text);

/* ---- trace --------------------------------------------------------------------------------------- */

/** Begins to keep at least the last `events_max` events of the process: operations of all engines, and calls
 * that ran at once on their thread (category "caller"). A second start begins anew. TN_E_ARG: 0 events;
 * TN_E_NOMEM.
 * @threads any @since 0.1 */
TN_API tn_status tn_trace_start(uint32_t events_max);

/** Stops; events stay until the next start. A context with profiler.autostart goes on recording for its own
 * file. @threads any @since 0.1 */
TN_API void tn_trace_stop(void);

/** The events since the start, up to the stop, as Chrome's trace format, JSON, yours (tn_free). Without any
 * start: what contexts with profiler.autostart record. @threads any @since 0.1 */
TN_API tn_status tn_trace_json(char **text);

#ifdef __cplusplus
}
#endif

#endif
