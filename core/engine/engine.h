/*
 * The interface of room engine: variables, and operations that run when their variables allow it.
 *
 * An operation names the variables that it reads and writes. It runs when all earlier operations that
 * conflict with it have released them; writes to one variable keep the order of their pushes, and pushes of
 * several threads never deadlock (all variables of a push are entered at once). A variable is embedded in
 * what it guards; whoever pushes keeps it alive until the operation's `done`.
 *
 * On a device with streams an operation is *issued* when its run returned and *complete* when the event
 * recorded behind it was reached. Operations of the same plugin follow an issued one by a stream wait; all
 * others follow its completion, which comes by event_notify: no worker ever blocks on an event.
 */
#ifndef TN_ENGINE_H
#define TN_ENGINE_H

#include "device/device.h"
#include "tenon/plugin/op.h"

typedef struct tni_engine tni_engine;
typedef struct tni_operation tni_operation; /* one pushed operation */

/* What a variable remembers of a failure; shared by all that it poisoned. */
typedef struct tni_poison {
    tni_refcount refs;
    atomic_bool reported;
    uint64_t order; /* of its operation's push */
    tn_err err;     /* code, message with the operation's name and origin */
} tni_poison;

/* Treat as opaque outside room engine; defined here so that storages embed it. Zero bytes are a valid new
 * variable. */
typedef struct tni_var {
    _Atomic uint64_t state;        /* lock bit, writer bit, readers, "has queue" bit */
    uint64_t version;              /* completed writes; see tni_var_version */
    void *queue_head, *queue_tail; /* waiting operations, under the lock bit */
    void *write_token;             /* completion of the last issued write, NULL if complete */
    void *read_tokens;             /* completions of issued reads behind it */
    tni_poison *poison;            /* NULL: fine */
    const tni_engine *owner;       /* its engine, as room api checks it; NULL: any */
} tni_var;

void tni_var_init(tni_var *v);
void tni_var_fini(tni_var *v); /* no operation may use it; drops poison and tokens */
/* A new one in a block that was used before; the version is the caller's. */
static inline void tni_var_begin(tni_var *v, const tni_engine *owner)
{
    atomic_store_explicit(&v->state, 0, memory_order_relaxed);
    v->queue_head = v->queue_tail = v->write_token = v->read_tokens = NULL;
    v->poison = NULL;
    v->owner = owner;
}
static inline bool tni_var_is_plain(const tni_var *v) /* there is nothing that fini would drop */
{
    return !v->poison && !v->write_token && !v->read_tokens;
}
static inline uint64_t tni_var_version(const tni_var *v)
{
    return __atomic_load_n(&v->version, __ATOMIC_RELAXED);
}

/* [worker] By an operation that was granted `v` for reading. If no other one is, nor still at it on a stream,
 * *word becomes NULL and its old value is returned, else NULL is. Whoever is granted `v` later finds NULL
 * there. */
void *tni_var_take(tni_var *v, void **word);
static inline void tni_var_written(
    tni_var *v) /* counts a write, by an operation or by the host after it waited */
{
    __atomic_store_n(&v->version, v->version + 1, __ATOMIC_RELAXED);
}

typedef struct tni_slot tni_slot; /* what a plugin keeps for a stream */

typedef struct tni_run { /* what a running operation is told */
    tni_engine *engine;
    tni_operation *op; /* for tni_engine_complete */
    tni_device *device;
    tn_stream *stream;            /* NULL on the host */
    tni_slot **slots;             /* of the stream */
    uint32_t threads;             /* budget */
    struct engine_worker *worker; /* the engine's */
    tn_status skipped; /* TNI_TASK_ALWAYS only: TN_E_CANCELLED.. status of a poisoned input, else TN_OK */
} tni_run;

/* run may return TN_PENDING; tni_engine_complete follows exactly once, from any thread */
#define TNI_TASK_ASYNC 1u
#define TNI_TASK_ALWAYS 2u /* runs even if an input is poisoned (frees, waits); does not spread the poison */
#define TNI_TASK_PARALLEL 8u /* uses an OpenMP region: never inline on the caller */
#define TNI_TASK_CLEARS                                                                                      \
    16u /* overwrites its outputs whole: old poison of written variables does not stop it */
#define TNI_TASK_HOST_CALL 32u /* host callback: runs on callback threads that may push and wait */
#define TNI_TASK_ARRIVED 64u   /* begins when what it reads is there, not behind it in the stream */
/* It runs on a host and takes a few microseconds; neither it nor its `done` waits. The thread that pushes it
 * alone, in no list, runs it at once if it can begin. The thread that completes a short operation ends it at
 * once, and runs the short ones behind it. */
#define TNI_TASK_SHORT 128u

/* Lanes: each that is used has a queue of its device, and a stream where there are streams. The host serves
 * IN and OUT with one queue. */
#define TNI_LANE_COMPUTE 0u
#define TNI_LANE_IN 1u   /* copies to the device */
#define TNI_LANE_OUT 2u  /* copies from it */
#define TNI_LANE_COMM 3u /* collectives and the parameter store */
#define TNI_LANES 4u

typedef struct tni_task {
    tn_status (*run)(void *payload, tni_run *run); /* [worker] error text by tni_error */
    void (*done)(void *payload, tni_engine *engine,
                 tn_status status); /* once, after completion or skip; may be NULL */
    const void *payload;            /* copied into the operation */
    uint32_t payload_bytes;         /* at most TNI_PAYLOAD_MAX */
    uint32_t flags;
    tni_var *const *reads, *const *writes; /* may repeat and overlap: a variable in both is written */
    uint32_t read_count, write_count;
    void *room;         /* for the variable list, aligned as by malloc; borrowed until `done` was called */
    size_t room_bytes;  /* less than tni_engine_room_bytes: the list is allocated */
    tni_device *device; /* NULL: cpu(0) */
    const char *name, *origin; /* live until done; origin: "conv1" or a source line, may be NULL */
    uint64_t est_ns;           /* 0: not known */
    uint32_t lane;             /* TNI_LANE_... */
    int32_t priority; /* higher first, among the ready ones of a lane; COMPUTE is first in, first out:
                         its operations with a priority are served by COMM, PARALLEL ones apart */
} tni_task;
#define TNI_PAYLOAD_MAX 192

typedef struct tni_engine_options {
    const char *type;      /* "threaded" "naive" "stepped" */
    uint32_t threads;      /* thread budget of each host device; 0: tni_cpu_count() */
    uint32_t workers;      /* worker threads of a device; 0: 1 */
    uint64_t queue_max;    /* operations pushed and not done */
    uint64_t inline_ns;    /* est_ns at most this: may run on the caller */
    uint64_t wait_warn_ms; /* watchdog; 0: off */
    uint64_t seed;         /* stepped: order of choices */
} tni_engine_options;

tn_status tni_engine_create(const tni_engine_options *options, tni_device_set *devices, const tni_log *log,
                            tni_engine **out);
/* From the next wait on; 0: never. */
void tni_engine_wait_warn(tni_engine *e, uint64_t ms);
/* Cancels what has not begun (its done gets TN_E_CANCELLED), waits for what runs, joins all threads. */
void tni_engine_destroy(tni_engine *e);

/* Queues `task`. Blocks while the queue is full, unless the caller is inside a callback of the engine. On
 * failure nothing was queued and `done` is not called. */
tn_status tni_engine_push(tni_engine *e, const tni_task *task);
/* Queues all tasks or none; no other push comes between them. A group waits for room as a whole; one of more
 * than three quarters of engine.queue_max goes when at most a quarter is pending. On failure nothing was
 * queued and no `done` is called. */
tn_status tni_engine_push_group(tni_engine *e, const tni_task *tasks, uint32_t count);
/*
 * Keeps back what this thread pushes, so that calls which push a task each become a group: nothing begins
 * before `end`. It queues all of it; or nothing, if `st` is not TN_OK or no memory is left: all `done` get
 * that status then. Nothing that is kept back may be waited for. One at a time, outside of callbacks.
 */
typedef struct tni_gathering {
    tni_engine *engine;
    tni_operation *head, *tail;
    uint32_t count;
    uint64_t queues; /* of them, a bit for each */
} tni_gathering;
void tni_engine_gather_begin(tni_engine *e, tni_gathering *g);
tn_status tni_engine_gather_end(tni_gathering *g, tn_status st);
/* Memory (tni_task.room) with which the push of such an operation allocates nothing; 0: it needs none. */
size_t tni_engine_room_bytes(uint32_t reads, uint32_t writes);

/* The short way for small host operations: takes all variables if they are free right now, in order and
 * unpoisoned. True: the caller runs its body at once and calls leave; false: nothing happened, push instead.
 * Distinct variables. Always false if the engine may not run inline. `status` other than TN_OK poisons the
 * written variables with the thread's error text. */
bool tni_engine_enter(tni_engine *e, tni_var *const *reads, uint32_t read_count, tni_var *const *writes,
                      uint32_t write_count);
void tni_engine_leave(tni_engine *e, tni_var *const *reads, uint32_t read_count, tni_var *const *writes,
                      uint32_t write_count, tn_status status, const char *name);
/* Poisons variables that nobody else knows yet, as leave does those that it was told of. */
void tni_engine_spoil(tni_engine *e, tni_var *const *vars, uint32_t count, tn_status status,
                      const char *name);
uint64_t tni_engine_inline_ns(const tni_engine *e);
uint32_t tni_engine_threads(const tni_engine *e);
bool tni_engine_is_naive(const tni_engine *e);

void tni_engine_complete(tni_operation *op, tn_status status,
                         const tn_err *err); /* ASYNC operations; [any] */
/*
 * Numbers for the operations that a program completes: taken before the push, bound to the operation in its
 * run, ended by its completion, by a run that did not return TN_PENDING, or by `done`. Each ends once: `end`
 * is false if it has already. complete: TN_E_STATE if it has ended, TN_E_ARG for what is no handle of an
 * operation that was begun. [any]
 */
tn_status tni_handle_take(const tni_engine *e, uint64_t *out);
void tni_handle_begin(uint64_t handle, tni_operation *op);
bool tni_handle_end(uint64_t handle);
tn_status tni_handle_complete(uint64_t handle, tn_status status, const tn_err *err);
/* Gives free, with success, the variable at position `at` of the task's lists as they were given: reads
 * first, then writes. One that was named several times is given free by as many releases, or when the
 * operation ends. Final: what fails later in the operation poisons only what is not released. On a stream:
 * behind what was issued so far. [worker], inside `run` */
void tni_engine_release_at(tni_run *run, uint32_t at);

/* What completes operations from outside and can be served by a thread that waits for them, in place of its
 * sleep: `run` returns when `over` says so, after at most `ns`, or behind `kick` [any]; false: not now. One
 * of an engine; NULL: `of`, which gave it, takes it back, and nobody is in it any more. */
typedef struct tni_engine_loop {
    bool (*run)(void *arg, bool (*over)(void *of), void *of, uint64_t ns);
    void (*kick)(void *arg);
    void *arg;
} tni_engine_loop;
void tni_engine_serve(tni_engine *e, const tni_engine_loop *outside, const void *of);

/* Waits until everything pushed before is complete. A poisoned variable gives its error each time, until
 * rewritten or cleared. TN_E_STATE on a worker. `timeout_ms` 0: no limit but the watchdog's report. */
tn_status tni_engine_wait_read(tni_engine *e, tni_var *v, uint64_t timeout_ms);  /* its value may be read */
tn_status tni_engine_wait_write(tni_engine *e, tni_var *v, uint64_t timeout_ms); /* it may be overwritten */
/* As wait_read, but a failure is nobody's business here: whoever else waits is still told of it. */
tn_status tni_engine_wait_quiet(tni_engine *e, tni_var *v, uint64_t timeout_ms);
/* Some operation was begun that is completed from outside, perhaps by this very thread, later. `issued`: or a
 * device has one on its streams. */
bool tni_engine_outstanding(const tni_engine *e, bool issued);
tn_status tni_engine_wait_all(tni_engine *e); /* oldest unreported error */
/* Until nothing is pending, for at most so long; TN_E_TIMEOUT names what is. 0: no limit. */
tn_status tni_engine_wait_idle(tni_engine *e, uint64_t timeout_ms);
void tni_engine_clear(tni_engine *e, tni_var *v); /* forgets poison */
/* The failure that is left in a variable which nobody uses; its finder passes it on, so it counts as told.
 * TN_OK: there is none. [any] */
tn_status tni_var_failure(const tni_var *v, tn_err *out);
bool tni_engine_on_worker(void); /* true inside a run, done or driver callback */
bool tni_engine_thread(void);    /* this is a thread of an engine's own, which waits for no variable */
bool tni_var_ready(tni_var *v);  /* no write is pending: non-blocking */

/* Stepped: operations that could run now, and running one of them. Naive and threaded: 0, TN_E_STATE. */
size_t tni_engine_ready_count(tni_engine *e);
tn_status tni_engine_step(tni_engine *e, size_t which);

typedef struct tni_engine_stats {
    uint64_t pushed, done, inlined, failed, skipped, over_limit, event_waits, queue_peak;
    uint64_t notifications; /* asked of devices */
} tni_engine_stats;
void tni_engine_stats_get(tni_engine *e, tni_engine_stats *out);
/* All pending operations with their variables, one line each (watchdog and tests). */
tn_status tni_engine_dump(tni_engine *e, tni_str *out);

/*
 * fork(), while the gate is closed to threads that hold nothing: drain waits until all is done, and adds up
 * what was; lock takes the locks, if there is nothing to do and every worker sleeps; unlock gives them back.
 * A child calls forked before, and gets fresh workers with one thread each; `drained` false: forked from
 * inside a callback, the engine is of no more use to it.
 */
bool tni_engine_fork_drain(tni_engine *e, uint64_t deadline, uint64_t *done);
bool tni_engine_fork_lock(tni_engine *e);
void tni_engine_fork_unlock(tni_engine *e);
void tni_engine_forked(tni_engine *e, bool drained);
bool tni_engine_inside(void); /* the thread is inside something that a drain would wait for */

/* Switches of the test build (TN_TEST_SWITCHES): a fault that tests plant in place of the last one, by its
 * name: "drop_event_wait", "hold_ends" (no operation ends whose variables are free); "" is none. */
void tni_engine_plant(tni_engine *e, const char *fault);

/* ---- slot.c ------------------------------------------------------------------------------------------ */

/* The pointer that the plugin keeps for the run's stream, for tn_exec.stream_slot; NULL without a stream. It
 * lasts as long as the stream; the table's stream_detach then frees what it holds. [worker] */
tn_status tni_slot_get(const tni_run *run, const tni_plugin *plugin, const tn_kernel_table *table,
                       void ***out);

#endif
