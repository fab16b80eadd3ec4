/*
 * What the files of room engine share.
 *
 * The way of an operation: pushed (written into the submission list, the only thing that pushers share) →
 * entered by whoever holds the sequencer (a worker that is awake, else a waiter), in push order, one variable
 * after the other → ready when the last variable was granted → dispatched by a worker of its queue →
 * finished: variables released, done called, block recycled. Pushers do not touch variables, so that a
 * variable's cache line stays with the worker.
 */
#ifndef TN_ENGINE_INTERNAL_H
#define TN_ENGINE_INTERNAL_H

#include <sched.h>
#include <string.h>

#include "engine/engine.h"

#define OP_VARS_INLINE 8u
#define OP_DATA_BYTES (TNI_PAYLOAD_MAX + OP_VARS_INLINE * 8u)
#define OP_VARS_MAX (1u << 20) /* variables of one operation: far above any segment */
#define SLAB_OPS 64u           /* operations made at a time */
#define MAG_OPS 62u            /* operations that change hands at a time */
#define CHUNK_OPS 254u         /* pointers in one piece of the submission list */
#define CHUNKS_USED 64u        /* of such pieces, emptied, that are kept */
#define DRAIN_BATCH 8u         /* entered at a time: few of them wait for each other yet */
#define RUN_BATCH 32u          /* run before completions and new operations are looked at */
#define ERAS 64u               /* wait_all calls under way that can be told apart */
#define POISONS_MAX 1024u      /* failures kept for wait_all; later ones are only at their variables */
#define CALL_THREADS_MAX 16u   /* threads for host callbacks */
#define WORKERS_MAX 64u        /* worker threads of one queue */
#define INLINE_DEPTH_MAX 8u    /* operations that run inside each other on the caller's stack */
#define SPIN_NS 20000u         /* looked for work, or for the end of a wait, before sleeping */
#define ORDER_TIE_BITS 20      /* failures on callers between two pushes that can be told apart */
#define GROUP_MAX (1u << 20)   /* operations pushed at once */
#define WATCH_EVERY 32u        /* operations issued between two notifications that nobody waits for */
#define TOKENS_KEPT 1024u      /* of a stream, with their events, for reuse */
#define LINE_BYTES 64

/* state of a variable */
#define VAR_LOCK 1u
#define VAR_WRITER 2u
#define VAR_QUEUED 4u
#define VAR_TOKENS 8u
#define VAR_POISON 16u
#define VAR_CHECK (VAR_TOKENS | VAR_POISON) /* an operation that is granted it must look closer */
#define VAR_READER 256u
#define VAR_READERS (~(uint64_t)255)

/* internal flags of an operation, above the TNI_TASK_ ones */
#define OP_SIGNAL 0x100u /* a waiter's: nothing runs, its owner is woken */
#define OP_STACK 0x200u  /* lives on its owner's stack */
#define OP_ROOM 0x400u   /* its variable list lies in memory of the pusher */
#define OP_FLAGS_TASK 0xffu

/* phase of an operation */
#define PHASE_FREE 0u
#define PHASE_PUSHED 1u
#define PHASE_ISSUED 2u
#define PHASE_DONE 4u
#define PHASE_LEFT 8u /* its variables were given free: they may be gone */

typedef struct engine_queue engine_queue;
typedef struct engine_worker engine_worker;
typedef struct engine_token engine_token;

typedef struct op_link { /* place of an operation in the queue of one variable */
    struct op_link *next;
    tni_operation *op;
} op_link;

typedef struct engine_park { /* something that waits for a token to retire */
    struct engine_park *next;
    void (*resume)(struct engine_park *park);
} engine_park;

struct tni_operation {
    /* line 0: written by the pusher */
    tn_status (*run)(void *payload, tni_run *run);
    void (*done)(void *payload, tni_engine *engine, tn_status status);
    engine_queue *queue;
    const char *name, *origin;
    tni_var **vars; /* distinct, the written ones first; in `data`, or in a block of their own: op_links */
    uint32_t var_count, write_count;
    int32_t priority;
    uint16_t flags;
    uint8_t era, reserved;
    /* line 1: written by workers, the last four by the pusher */
    _Alignas(LINE_BYTES) tni_operation *next; /* in a ready list */
    uint64_t order;
    atomic_uint wait; /* variables not granted yet */
    atomic_uint phase;
    atomic_uint check; /* a granted variable has tokens or poison */
    atomic_uint pend;  /* TN_PENDING: 1 returned, 2 completed */
    tni_poison *poison;
    struct op_async *async; /* of operations issued to a stream */
    uint32_t named;         /* reads and writes of the task, with repetitions: positions */
    uint32_t places, left;  /* of at most OP_VARS_INLINE positions, 4 bits each: see op_place, op_left */
    uint32_t released;      /* variables given free early */
    /* lines 2 and 3 */
    op_link links[OP_VARS_INLINE];
    /* lines 4 to 7: variables, then the payload */
    _Alignas(LINE_BYTES) unsigned char data[OP_DATA_BYTES];
};

/* Only of operations that were issued to a stream, and of those that wait for one. */
typedef struct op_async {
    engine_park park; /* waiting to be dispatched */
    tni_operation *op;
    atomic_uint tokens;                           /* not retired, and 1 until the run is over */
    uint32_t dep_count, dep_closed, dep_capacity; /* the first `dep_closed` have retired, and are gone */
    engine_token **deps;                          /* tokens whose failure is ours; retained */
    tni_poison *inherited;                        /* the oldest failure of those that have retired */
    tni_poison *poison;                           /* first failure of a token or of the run; the worker's */
    struct op_async *next;                        /* for reuse */
} op_async;

typedef struct engine_note { /* to the worker of a token's stream */
    struct engine_note *next;
    engine_token *token;
} engine_note;

struct engine_token {
    tni_refcount refs;
    atomic_uint lock; /* waiters, retired */
    bool retired;
    atomic_bool asked; /* for a notification of its own */
    engine_park park;  /* at the tokens that this one depends on */
    engine_park *waiters;
    engine_queue *queue;
    tn_stream *stream;
    tn_event *event; /* the token's, for all its lives */
    tni_operation *op;
    uint64_t number; /* in the order of its stream, from 1 */
    uint32_t only;   /* index of the one variable of an early release; UINT32_MAX: all that were not released
                        early */
    tn_status status;
    tn_err *err;                   /* what the driver said; may be NULL in spite of a failure */
    tni_poison *poison;            /* set when retired */
    atomic_uint_fast64_t depended; /* order of the operation that noted it last as one that it depends on */
    engine_token *next;            /* in the order of its stream, or free */
    engine_note resumed;           /* what it depended on has retired */
    engine_note notified;          /* by the driver, with these two: */
    tn_status notified_status;
    tn_err *notified_err;
};

/* tni_var.read_tokens: NULL, one token with READS_ONE added, or a set. */
#define READS_ONE 1u

typedef struct engine_token_set {
    uint32_t count, capacity;
    engine_token *items[];
} engine_token_set;

typedef struct engine_mag {
    struct engine_mag *next;
    uint64_t count;
    tni_operation *ops[MAG_OPS];
} engine_mag;

typedef struct engine_chunk {
    struct engine_chunk *next;
    uint64_t used; /* in `chunk_used`: it and those behind it */
    tni_operation *ops[CHUNK_OPS];
} engine_chunk;

typedef struct engine_slab {
    struct engine_slab *next;
    _Alignas(LINE_BYTES) tni_operation ops[SLAB_OPS];
} engine_slab;

typedef struct engine_list {
    tni_operation *head, *tail;
} engine_list;

#define QUEUE_CALL ((int)TNI_LANES) /* kind of the queue of host callbacks; other kinds are lanes */

struct engine_worker {
    engine_queue *queue;
    tn_stream *stream;
    tni_slot *slots; /* of the stream */
    tni_thread *thread;
    engine_list local;                     /* ready, of a queue with one worker */
    engine_mag *mag;                       /* recycled operations */
    uint64_t finished;                     /* not yet told to the engine */
    uint64_t failed, skipped, event_waits; /* since the last flush */
    uint8_t era;
    uint64_t issued;                     /* tokens not retired */
    uint64_t number;                     /* of the newest one */
    engine_token *open_head, *open_tail; /* not known to be reached, in stream order */
    atomic_uint watching;                /* notifications under way */
    atomic_uint_fast64_t asked;          /* the highest number one was asked for */
    uint64_t *followed; /* by index of a queue: the highest of its numbers this stream waits for */
    uint32_t followed_count;
};

struct engine_queue {
    tni_engine *engine;
    tni_device *device;
    int kind; /* TNI_LANE_... or QUEUE_CALL */
    bool async, single, by_priority;
    uint32_t worker_max, index;            /* of all queues of the engine */
    atomic_uint threads, worker_count;     /* wanted, there */
    engine_queue *next;                    /* all queues of the engine */
    _Alignas(LINE_BYTES) atomic_uint lock; /* the lists */
    atomic_bool filled;                    /* one of them has something */
    engine_list ready;                     /* first in, first out */
    tni_operation *heap;                   /* by priority: pairing heap over `next` and `links[0]` */
    engine_note *note_head, *note_tail;    /* about tokens of its stream */
    engine_token *free_tokens;             /* with their events */
    uint32_t free_count;
    engine_list completed; /* TN_PENDING ones whose completion came */
    _Alignas(LINE_BYTES) atomic_uint sleepers;
    uint32_t waking; /* sleepers that a signal is on its way to; under `mutex` */
    tni_mutex mutex;
    tni_cond cond;
    engine_worker workers[WORKERS_MAX];
};

typedef struct engine_device { /* what tni_device.engine_data points to */
    engine_queue *lanes[TNI_LANES];
} engine_device;

typedef struct engine_room { /* of a pusher that waits */
    tni_engine *engine;
    uint32_t count; /* operations that it pushes at once */
    uint64_t since; /* completions when it began to wait */
} engine_room;

typedef struct engine_era { /* operations between two calls of wait_all */
    atomic_uint_fast64_t pushed, done, number;
} engine_era;

#define ENGINE_THREADED 0
#define ENGINE_NAIVE 1
#define ENGINE_STEPPED 2

struct tni_engine {
    int type;
    uint32_t threads, worker_max;
    uint64_t queue_max, inline_ns, seed;
    atomic_uint_fast64_t wait_warn_ns; /* 0: never; may change at any time */
    tni_device_set *devices;
    const tni_log *log;
    tni_device *host; /* cpu(0) */
    tni_poison *no_memory, *cancelled;
    tni_mutex start_mutex; /* queues, threads */
    engine_queue *queues, *calls;
    uint32_t queue_count;
    atomic_bool stopping;                   /* nothing new begins */
    atomic_bool quit;                       /* workers leave */
    atomic_bool forked, dead;               /* dead: forked inside a callback, nothing works in this child */
    atomic_bool drop_event_wait, hold_ends; /* planted faults */
    atomic_bool dumping;                    /* somebody reads the texts of pending operations: see dump.c */
    tni_mutex dump_mutex;
    atomic_uint_fast64_t ties;
    atomic_uint_fast64_t inlined, over_limit, failed, skipped, event_waits, asked, queue_peak;
    atomic_uint watching; /* notifications of all streams under way */

    /* pushers */
    _Alignas(LINE_BYTES) atomic_uint push_lock;
    engine_chunk *push_chunk;
    uint32_t push_at;
    uint8_t era; /* era_number modulo ERAS */
    engine_mag *push_mag;
    uint64_t done_seen;
    uint64_t era_number;
    uint64_t signals; /* operations of waiters, not counted for people */
    engine_chunk *chunk_spare;
    _Alignas(LINE_BYTES) atomic_uint_fast64_t pushed;

    /* the sequencer */
    _Alignas(LINE_BYTES) atomic_uint seq_lock;
    engine_chunk *seq_chunk;
    uint32_t seq_at;
    atomic_uint_fast64_t entered;
    _Atomic(engine_chunk *) chunk_used; /* the sequencer puts one on top; a pusher takes all */

    /* completion */
    _Alignas(LINE_BYTES) atomic_uint_fast64_t done;
    engine_era eras[ERAS];
    atomic_uint waiters;            /* threads at `progress` */
    atomic_uint_fast64_t wake_done; /* they want to be woken at so many completions */
    atomic_uint inside;             /* threads in a wait, or blocked in a push */
    atomic_uint waits;              /* waits for one variable, which hold it at their end */
    tni_mutex progress_mutex;
    tni_cond progress;
    tni_engine_loop outside; /* under progress_mutex */
    uint32_t outsiders;      /* threads in it */

    /* recycling */
    _Alignas(LINE_BYTES) atomic_uint depot_lock;
    engine_mag *full, *empty;
    tni_operation *loose;
    engine_slab *slabs;
    uint64_t slab_count, mag_count; /* mag_count: without the workers' own */
    atomic_uint worker_mags;
    op_async *asyncs;

    /* naive and stepped: one runner at a time */
    uint64_t step_owner;                /* tni_thread_id of its holder, 0: free; under progress_mutex */
    uint32_t step_nested, step_running; /* the owner's: entries, operations on its stack */
    uint64_t step_draws;
    atomic_uint outstanding; /* operations begun that something outside completes */
    atomic_uint issued;      /* tokens that are not retired: their devices complete those */

    tni_mutex poison_mutex;
    uint32_t poison_count;
    tni_poison *poisons[POISONS_MAX];
};

/* ---- small things ---------------------------------------------------------------------------------- */

typedef struct engine_tls {
    uint32_t depth;          /* callbacks of the engine on this stack: waiting is refused */
    uint32_t inside;         /* as depth, host callbacks too: pushing never blocks */
    uint32_t held;           /* between enter and leave: nothing may be waited for */
    const tni_engine *calls; /* whose host callback this stack is in, the innermost one */
    engine_worker *worker;
    tni_gathering *gathering; /* that pushes go to; NULL: to the engine */
    engine_list *here;   /* short operations that got ready and that this thread runs; NULL: workers do */
    const void *outside; /* what this thread waits for within tni_engine_loop.run */
} engine_tls;
extern TN_THREAD_LOCAL_FAST engine_tls tni_engine_tls;

static inline void tni_list_add(engine_list *l, tni_operation *op)
{
    op->next = NULL;
    if (l->tail)
        l->tail->next = op;
    else
        l->head = op;
    l->tail = op;
}

static inline tni_operation *tni_list_pop(engine_list *l)
{
    tni_operation *op = l->head;

    if (op && !(l->head = op->next))
        l->tail = NULL;
    return op;
}

static inline bool op_is_write(const tni_operation *op, uint32_t i)
{
    return i < op->write_count;
}

/*
 * An operation that names more than OP_VARS_INLINE variables has them in a block: `named` pointers, as many
 * links, as many counts of how often a variable is named and not yet released, as many places of positions.
 */
#define OP_VAR_BYTES (sizeof(tni_var *) + sizeof(op_link) + 2 * sizeof(uint32_t))

static inline op_link *op_links(tni_operation *op)
{
    return op->named <= OP_VARS_INLINE ? op->links : (op_link *)(void *)(op->vars + op->named);
}

static inline uint32_t *op_lefts(tni_operation *op) /* only of a block */
{
    return (uint32_t *)(void *)((op_link *)(void *)(op->vars + op->named) + op->named);
}

static inline void *op_payload(tni_operation *op)
{
    uint32_t n = op->named <= OP_VARS_INLINE ? op->var_count : 0;

    return op->data + ((n * 8u + 15u) & ~15u);
}

/* Index of the variable that position `at` of the task's reads and writes names. */
static inline uint32_t op_place(tni_operation *op, uint32_t at)
{
    if (op->named > OP_VARS_INLINE)
        return op_lefts(op)[op->named + at];
    if (op->named != op->var_count)
        return op->places >> 4 * at & 15u;
    return at < op->named - op->write_count ? op->write_count + at : at - (op->named - op->write_count);
}

/* How often variable `i` is named and was not released; 0: it was given free early. */
static inline uint32_t op_left(tni_operation *op, uint32_t i)
{
    return op->named <= OP_VARS_INLINE ? op->left >> 4 * i & 15u : op_lefts(op)[i];
}

static inline void op_left_add(tni_operation *op, uint32_t i, int32_t by)
{
    if (op->named <= OP_VARS_INLINE)
        op->left += (uint32_t)by << 4 * i;
    else
        op_lefts(op)[i] += (uint32_t)by;
}

static inline bool op_released(tni_operation *op, uint32_t i)
{
    return op->released && !op_left(op, i);
}

/* Place in the order of pushes. What ran on a caller comes after what was pushed before it (a tie is never
 * 0), by its failure. */
static inline uint64_t tni_order_entered(uint64_t index)
{
    return (index + 1) << ORDER_TIE_BITS;
}

static inline uint64_t tni_order_inline(tni_engine *e, uint64_t pushed)
{
    return pushed << ORDER_TIE_BITS | (atomic_fetch_add(&e->ties, 1u) % ((1u << ORDER_TIE_BITS) - 1) + 1u);
}

static inline bool tni_submit_empty(tni_engine *e) /* sequentially consistent: pairs with going to sleep */
{
    return atomic_load(&e->pushed) == atomic_load(&e->entered);
}

/* ---- var.c --------------------------------------------------------------------------------------------- */

uint64_t tni_var_lock(tni_var *v);                 /* returns the state without the lock bit */
void tni_var_unlock(tni_var *v, uint64_t state);   /* recomputes the flags of tokens and poison */
bool tni_var_enter(tni_operation *op, uint32_t i); /* granted at once; else queued */
/* Gives variable `i` of `op` free. poison: NULL or what a written variable gets. token: NULL or the
 * completion. */
void tni_var_release(tni_operation *op, uint32_t i, tni_poison *poison, engine_token *token);
void tni_var_give(tni_operation *op, uint32_t i, tni_poison *poison,
                  engine_token *token);                                       /* the write was counted */
void tni_var_leave(tni_var *v, bool write, bool written, tni_poison *poison); /* after tni_var_try */
void tni_var_spoil(tni_var *v, tni_poison *poison);                           /* NULL: forgets its poison */

/* Granted, free of everything. */
static inline bool tni_var_try(tni_var *v, bool write)
{
    uint64_t s = 0;

    if (write)
        return atomic_compare_exchange_strong(&v->state, &s, VAR_WRITER);
    do {
        if (s & ~VAR_READERS)
            return false;
    } while (!atomic_compare_exchange_weak(&v->state, &s, s + VAR_READER));
    return true;
}

/* The common case: it is ours alone, nobody waits. */
static inline void tni_var_leave_quick(tni_var *v, bool write)
{
    uint64_t s = write ? VAR_WRITER : VAR_READER;

    if (TN_UNLIKELY(!atomic_compare_exchange_strong_explicit(&v->state, &s, 0, memory_order_release,
                                                             memory_order_relaxed)))
        tni_var_leave(v, write, false, NULL);
}

/* The common cases of entering and giving free: nobody waits,
 * there is nothing to note or to look closer at. */
static inline bool tni_var_enter_quick(tni_operation *op, uint32_t i)
{
    tni_var *v = op->vars[i];
    const bool write = op_is_write(op, i);
    uint64_t s = atomic_load_explicit(&v->state, memory_order_relaxed);

    return !(s & ~(write ? 0 : VAR_READERS)) &&
           atomic_compare_exchange_strong_explicit(&v->state, &s, write ? VAR_WRITER : s + VAR_READER,
                                                   memory_order_acquire, memory_order_relaxed);
}

static inline void tni_var_release_quick(tni_operation *op, uint32_t i)
{
    tni_var *v = op->vars[i];
    const bool write = op_is_write(op, i);
    uint64_t s = atomic_load_explicit(&v->state, memory_order_relaxed);

    if (write)
        tni_var_written(v);
    if ((s & ~(write ? 0 : VAR_READERS)) != (write ? VAR_WRITER : 0) ||
        !atomic_compare_exchange_strong_explicit(&v->state, &s, write ? 0 : s - VAR_READER,
                                                 memory_order_release, memory_order_relaxed))
        tni_var_give(op, i, NULL, NULL);
}
bool tni_var_abandon(
    tni_operation *op); /* takes a waiter out of its variable's queue; false: it was granted */

/* ---- op.c ------------------------------------------------------------------------------------------ */

tn_status tni_operation_check(const tni_engine *e, const tni_task *task);
engine_mag *tni_operation_mag(void); /* an empty one; NULL: out of memory */
/* Blocks for `count` operations beyond those that are pending, whatever magazines keep back; under push_lock.
 * False: out of memory. */
bool tni_operation_provide_locked(tni_engine *e, uint32_t count);
tni_operation *tni_operation_take(tni_engine *e);               /* under push_lock; NULL: out of memory */
void tni_operation_give_back(tni_engine *e, tni_operation *op); /* nothing was pushed */
tn_status tni_operation_fill(tni_operation *op, const tni_task *task, engine_queue *q);
void tni_operation_recycle(tni_engine *e, tni_operation *op);
void tni_operation_fini(tni_operation *op); /* what fill allocated */
void tni_operation_depot_fini(tni_engine *e);

/* ---- poison.c -------------------------------------------------------------------------------------- */

tni_poison *tni_poison_create(tni_engine *e, uint64_t order, const char *name, const char *origin,
                              tn_status status, const tn_err *err); /* never NULL */
tni_poison *tni_poison_retain(tni_poison *p);
void tni_poison_release(tni_poison *p);
tn_status tni_poison_report(tni_poison *p); /* sets the thread's error; TN_OK if NULL */

/* ---- submit.c -------------------------------------------------------------------------------------- */

tn_status tni_submit_chunks_locked(tni_engine *e, uint32_t count); /* so that so many more find a place */
void tni_submit_next_locked(tni_engine *e);                        /* goes on to the next chunk */

static inline tn_status tni_submit_reserve_locked(tni_engine *e, uint32_t count) /* places for so many more */
{
    if (TN_LIKELY(e->push_chunk && e->push_at + (uint64_t)count <= CHUNK_OPS))
        return TN_OK;
    return tni_submit_chunks_locked(e, count);
}

static inline void tni_submit_put_locked(tni_engine *e, tni_operation *op) /* into a reserved place */
{
    if (TN_UNLIKELY(!e->push_chunk || e->push_at == CHUNK_OPS))
        tni_submit_next_locked(e);
    e->push_chunk->ops[e->push_at++] = op;
}

/* Those that were put. Sequentially consistent, as going to sleep is: either we see the sleeper or it sees
 * this operation. */
static inline void tni_submit_publish_locked(tni_engine *e, uint32_t count)
{
    atomic_fetch_add(&e->pushed, count);
}

size_t tni_submit_drain(tni_engine *e, size_t limit);
void tni_submit_fini(tni_engine *e);
void tni_submit_help(tni_engine *e, uint64_t upto); /* by waiters: returns once so many were entered */

/* ---- queue.c --------------------------------------------------------------------------------------- */

tn_status tni_queue_for(tni_engine *e, tni_device *d, const tni_task *task, engine_queue **out);
tn_status tni_queue_start(engine_queue *q);                   /* at least one worker */
void tni_queue_push(engine_queue *q, tni_operation *op);      /* ready */
void tni_queue_completed(engine_queue *q, tni_operation *op); /* its completion came */
void tni_queue_note(engine_queue *q, engine_note *n);
void tni_queue_wake(engine_queue *q);
bool tni_queue_complete_some(engine_queue *q, engine_worker *w); /* handles what came back */
tni_operation *tni_queue_take(engine_queue *q, engine_worker *w);
void tni_queue_destroy(engine_queue *q);
tn_status tni_worker_open(engine_worker *w); /* its stream */
void tni_worker_flush(engine_worker *w);

/* ---- dispatch.c ------------------------------------------------------------------------------------ */

void tni_operation_ready(tni_operation *op);
void tni_operation_dispatch(engine_worker *w, tni_operation *op);
void tni_operation_finish(engine_worker *w, tni_operation *op, tn_status status,
                          tni_poison *poison); /* moves poison */
/* One of the run and the tokens of `op` is over; the last one ends it: done, counted, recycled.
 * Moves poison. */
void tni_operation_let_go(engine_worker *w, tni_operation *op, tn_status status, tni_poison *poison);
void tni_operation_pending_finish(engine_worker *w, tni_operation *op);
/* Short operations on this thread, which holds: `ended`, whose completion came, and those that are ready
 * then; NULL: those that the submission list has. */
void tni_operation_here(tni_engine *e, tni_operation *ended);
tn_status tni_operation_run_inline(tni_engine *e, tni_operation *op); /* granted, on the stack */

/* ---- token.c: completions of what was issued ------------------------------------------------------- */

engine_token *tni_token_retain(engine_token *t);
void tni_token_release(engine_token *t);
bool tni_token_retired(engine_token *t);
void tni_token_issue(engine_worker *w, tni_operation *op);
/* Gives one variable free behind what was issued so far;
 * false: the stream failed and it is not given free. */
bool tni_token_issue_one(engine_worker *w, tni_operation *op, uint32_t i);
void tni_token_noted(engine_worker *w, engine_note *n);
/* Asks to be told of the newest token, if there is one and no notification of the stream is under way. */
void tni_token_ask_newest(engine_worker *w);
void tni_token_host_wait(engine_token *t); /* blocks until its stream is there */
/* Calls `park` when `t` retires, and asks to be told of `t`; false: it has retired. */
bool tni_token_park(engine_token *t, engine_park *park);
bool tni_token_unpark(engine_token *t, engine_park *park); /* false: it is being resumed */
void tni_tokens_free(engine_queue *q); /* those for reuse; in a child without a word to the device */

/* ---- follow.c: tokens at variables, and what comes behind them ------------------------------------- */

void tni_reads_drop(tni_var *v);                                /* variable locked, or nobody else's */
bool tni_token_attach(tni_var *v, engine_token *t, bool write); /* variable locked; false: no memory */
void tni_token_detach(tni_var *v, engine_token *t, tni_poison *poison);
/* Before dispatch: stream waits, parking (false: dispatched later), poison. */
bool tni_token_gather(engine_worker *w, tni_operation *op, tni_poison **poison);
/* For a waiter that was granted its variable: parks behind an open token and retains it;
 * NULL: there is none. */
engine_token *tni_token_wait(tni_operation *op, engine_park *park);
tn_status tni_operation_async(tni_operation *op);
void tni_operation_async_end(tni_operation *op);

/* ---- wait.c, step.c, engine.c ---------------------------------------------------------------------- */

void tni_progress(tni_engine *e); /* wakes wait_all and blocked pushers */
/* Operations that may be pending when `count` more are pushed at once; a waiter asks for some distance. */
uint64_t tni_room_most(const tni_engine *e, uint32_t count, bool waiting);
bool tni_room_due(const engine_room *room, uint64_t pushed, uint64_t done);
void tni_wait_room(engine_room *room);                /* until the queue has room, or the engine stops */
void tni_wait_pushed(tni_engine *e);                  /* until all that was pushed before is complete */
bool tni_engine_idle(tni_engine *e);                  /* nothing is pending */
void tni_wait_idle(tni_engine *e, uint64_t deadline); /* until then; deadline 0: none */
void tni_count_done(tni_engine *e, uint8_t era, uint64_t n);
void tni_signal(tni_operation *op);
bool tni_step_enter(tni_engine *e, uint64_t deadline); /* false: the deadline passed (0: none) */
void tni_step_leave(tni_engine *e);
void tni_step_completions(tni_engine *e); /* retires what was completed */
bool tni_step_some(tni_engine *e);        /* runs one operation or completion; false: there was none */
void tni_step_pushed(tni_engine *e);      /* naive: runs what was pushed */
/* Naive and stepped: runs operations until it is reached. False: the deadline passed (0: none). */
bool tni_step_until(tni_engine *e, bool (*reached)(void *arg), void *arg, uint64_t deadline_ns);
tn_status tni_live_add(tni_engine *e);
void tni_live_remove(tni_engine *e);
void tni_dump_wait(tni_engine *e); /* until the dump under way is over */
/* Before its variables are given free, and before `done`: no dump looks at them from here on. */
static inline void tni_operation_mark(tni_operation *op, unsigned phase)
{
    tni_engine *e = op->queue->engine;

    atomic_store_explicit(&op->phase, phase, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst); /* the dump supplies the other half: tni_everywhere */
    if (TN_UNLIKELY(atomic_load_explicit(&e->dumping, memory_order_acquire)))
        tni_dump_wait(e);
}
void tni_dump_names(tni_engine *e, char *text, size_t bytes); /* of what is pending: as many as fit */
void tni_engine_report(tni_engine *e, uint64_t waited_ns);    /* the watchdog's lines */

/* Whether the calling thread is to wait while somebody forks: not if it holds what the fork waits for. */
static inline bool tni_fork_waits(void)
{
    return TN_UNLIKELY(atomic_load_explicit(&tni_fork_gate, memory_order_relaxed)) && tni_hold_waits();
}

static inline void tni_fork_let_by(void)
{
    tni_hold();
    tni_unhold();
}

static inline bool tni_fault_drop_event_wait(tni_engine *e)
{
    return atomic_load_explicit(&e->drop_event_wait, memory_order_relaxed);
}

#ifdef TN_TEST_SWITCHES
static inline void tni_fault_hold_ends(tni_engine *e) /* between giving variables free and `done` */
{
    while (TN_UNLIKELY(atomic_load_explicit(&e->hold_ends, memory_order_relaxed)))
        (void)sched_yield();
}
#else
static inline void tni_fault_hold_ends(tni_engine *e)
{
    (void)e;
}
#endif

/* ---- handle.c ---- */

void tni_handles_drop(const tni_engine *e); /* those that are left: of a child's dead engine */

/* ---- slot.c ---- */

void tni_slots_free(tni_slot *first); /* before the stream goes; NULL is fine */

#endif
