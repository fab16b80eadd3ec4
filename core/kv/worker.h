/* Of the worker alone: requests (request.c) and life (worker.c). */
#ifndef TN_KV_WORKER_H
#define TN_KV_WORKER_H

#include "kv/protocol.h"

typedef struct tni_kv_op {             /* a request */
    struct tni_kv_op *next, *previous; /* all, in order */
    struct tni_kv_op *after;           /* of the same key */
    struct tni_kv_lot *lot;
    tni_kv_request r;
    uint64_t deadline_ns, begun_ns;
    uint64_t sequence; /* of its first piece; 0: it has not begun. A command keeps it when it begins anew */
    uint32_t round;
    bool started, silent; /* silent: nobody is told of its end */
    bool own;             /* `in` lies in the copy */
    bool again;           /* async: a server lost it */
    bool lost;            /* async, in the log: a command behind it is not kept */
    bool released;        /* a snapshot that servers still write: `saves` alone has it */
    void *copy;           /* of what `in` has, for the log; NULL: none yet */
    uint64_t copied;      /* bytes that it takes of `log_bytes` */
    uint64_t ended;  /* in the log, and while it is sent again: place among those that have ended; or 0 */
    uint64_t behind; /* it was asked for, or began, behind this many of them */
    uint64_t rest_behind; /* at most the least `behind` of it and of those that follow it: that only grows */
} tni_kv_op;

typedef enum tni_kv_flight { TNI_KV_IDLE, TNI_KV_QUEUED, TNI_KV_SENT, TNI_KV_WAITS } tni_kv_flight;

/* What a piece sent last. A push goes out once; then the server is asked whether it came. */
enum { TNI_KV_SEND_NONE, TNI_KV_SEND_ALL, TNI_KV_SEND_PROBE };

typedef struct tni_kv_piece { /* a part's share of the request under way */
    uint64_t sequence, sent_ns, retry_ns, cost;
    uint32_t tries, missing, flight; /* flight: place in `flights` */
    uint16_t who;                    /* is missing */
    uint8_t state, last;             /* TNI_KV_SEND_… */
    bool stalled;                    /* it has waited for credit */
} tni_kv_piece;

/* A key, or all servers, or the scheduler: what has one request under way. */
typedef struct tni_kv_lot {
    tni_kv_plan plan;
    tni_kv_op *first, *last;
    tni_kv_piece *pieces;
    uint32_t round, left, got; /* pushed so far; pieces to come; what their answers say */
    uint32_t least, most;      /* rounds in their answers; least: of parts that lost none, if there are */
    tni_kv_row cost;           /* of its pushes and pulls */
    uint8_t dtype;
    bool known, control, sure; /* sure: `least` is of parts that lost none */
    bool assigned;             /* without rounds: it was pushed before the worker's first gradient */
} tni_kv_lot;

typedef struct tni_kv_queued {
    tni_kv_lot *lot;
    uint64_t order, sequence;
    uint32_t piece, priority;
} tni_kv_queued;

typedef struct tni_kv_lane {       /* to a server */
    tni_vec heap;                  /* tni_kv_queued: highest priority, then lowest order, first */
    uint64_t in_flight, answer_ns; /* bytes; what an answer takes */
    uint64_t value_ns;             /* when a value came last */
    uint32_t incarnation;          /* of the server, in the last view */
} tni_kv_lane;
/* lane.c. TN_E_NOMEM: nothing was queued. */
tn_status tni_kv_lane_push(tni_kv_lane *lane, const tni_kv_queued *q);
void tni_kv_lane_pop(tni_kv_lane *lane); /* takes off the one on top: heap.data[0] */

struct tni_kv_worker {
    tni_kv_node node;
    tni_kv_start start;
    tni_kv_done done;
    tni_kv_lot **keys; /* by number */
    uint32_t key_count, op_count;
    tni_kv_lot servers, scheduler, saves; /* saves: servers again, for snapshots */
    tni_kv_lane *lanes;
    tni_kv_op *first, *last;
    tni_vec flights; /* pieces that are SENT or WAIT: tni_kv_queued */
    uint64_t counter, order, token, beats;
    uint64_t value_bytes; /* of all keys */
    uint64_t sending;     /* cookie of the request whose payload is being sent */
    uint64_t begun_ns, hello_ns, beat_ns, retry_ns, deadline_ns; /* when the next is due */
    uint32_t fences, barriers, epoch, epochs, end_round;
    uint32_t break_round;       /* up to which there is still to break, for want of memory; 0: none */
    bool broken, over, starved; /* over: `status` holds; starved: there was no memory to send, later */
    bool logs, lacks;           /* it keeps what it sends again; async: but not all of it */
    bool pushed;                /* a gradient, since it came or was rolled back */
    bool given;                 /* its program has given all values: tni_kv_log_given */
    tni_kv_op *log, *log_last;  /* replay.c: they are kept */
    uint64_t ended;             /* requests that the log has had */
    uint64_t log_bytes;         /* of its requests with their copies, and of copies that others have */
    tn_status status;
    tn_err error;
};

typedef struct tni_kv_kind_row {
    uint8_t type, flags;
    bool fence, pushes, scheduler, value; /* value: an answer brings one */
    const char *name;
    uint8_t time; /* TNI_KV_T_… + 1; 0: none */
} tni_kv_kind_row;

extern const tni_kv_kind_row tni_kv_kinds[]; /* by tni_kv_kind */
static inline const tni_kv_kind_row *tni_kv_op_kind(const tni_kv_op *op)
{
    return &tni_kv_kinds[op->r.kind];
}
static inline bool tni_kv_op_sends(const tni_kv_op *op) /* it has a value or a gradient */
{
    return op->r.kind == TNI_KV_DO_INIT || op->r.kind == TNI_KV_DO_PUSH || op->r.kind == TNI_KV_DO_PUSHPULL;
}
uint16_t tni_kv_op_target(const tni_kv_worker *w, const tni_kv_lot *l, uint32_t piece);

/* timed.c: `op` is complete; `time`: TNI_KV_T_… */
void tni_kv_op_timed(tni_kv_worker *w, const tni_kv_op *op, const char *name, uint32_t time);
void tni_kv_op_span(char phase, const tni_kv_op *op, const char *name);

/* waits.c: "push of key 1 part 2 round 3"; the error of one that is late names the first piece that is not
 * there, and for whom it waits. */
void tni_kv_op_name(const tni_kv_op *op, uint32_t part, char out[96]);
void tni_kv_op_late(tni_kv_worker *w, const tni_kv_op *op);
/* What a server says that FAILED: the status, with the thread's error. */
tn_status tni_kv_op_refused(const tni_kv_lot *l, uint32_t piece, const tni_kv_header *h,
                            const uint8_t *payload);
/* A piece is due again: later, while values come over its lane. `lane`: NULL: it has none. */
void tni_kv_value_await(const tni_kv_worker *w, const tni_kv_lane *lane, const tni_kv_op *op,
                        tni_kv_piece *p);
#define TNI_KV_ASK_NS 1000000000u /* how often one asks for what is held */

#ifdef TN_TEST_SWITCHES
void tni_kv_op_sent(const tni_kv_lot *l); /* a piece of it: points of tests */
#else
#define tni_kv_op_sent(l) ((void)0)
#endif

/* queue.c */
void tni_kv_op_link(tni_kv_worker *w, tni_kv_op *op);        /* [takes] op, as the last one */
void tni_kv_op_leave(tni_kv_worker *w, const tni_kv_op *op); /* nothing waits for it any more */
void tni_kv_op_unlink(tni_kv_worker *w, tni_kv_op *op);

/* replay.c */
void tni_kv_op_free(tni_kv_worker *w, tni_kv_op *op);
void tni_kv_log_begin(tni_kv_worker *w); /* it has joined */
void tni_kv_log_clear(tni_kv_worker *w);
void tni_kv_log_mark(tni_kv_worker *w, uint64_t step); /* nothing is under way */
void tni_kv_log_trim(tni_kv_worker *w, uint64_t step); /* all servers hold it */
/* Its memory is about to change. False: there is none for a copy, so that has to wait. */
bool tni_kv_log_copy(tni_kv_worker *w, tni_kv_op *op);
void tni_kv_log_use(tni_kv_op *op);                                  /* the copy takes the place of `in` */
void tni_kv_log_take(tni_kv_worker *w, tni_kv_op *op, tn_status st); /* [takes] op, which has ended */
/* Servers went back to `step`: what they lack is asked for again. False: the log does not reach so far. */
bool tni_kv_log_back(tni_kv_worker *w, uint64_t step);
bool tni_kv_log_whole(const tni_kv_worker *w); /* it has all since the job, or this worker, began */
/* Async, of worker 0: a server came back by itself, and gets what it may lack. */
void tni_kv_log_again(tni_kv_worker *w);
/* Before each request; a push behind the end of the data counts as the end. The program of a worker 0 in
 * another's place has given all values when it asks for a snapshot, pushes a gradient, or ends: servers that
 * wait for them hear of it by a snapshot. */
void tni_kv_log_given(tni_kv_worker *w, const tni_kv_request *r);

/* Before each push, with its key and code. The first gradient begins the step that the process before this
 * one tore, and sets rounds of keys accordingly. `pushes` is not looked at for a gradient. */
void tni_kv_step_again(tni_kv_worker *w, tni_kv_lot *pushes, uint8_t what);

#define TNI_KV_OPS_MAX (1u << 20)

bool tni_kv_ready(const tni_kv_worker *w);
/* An answer to a piece says `round`, and whether rounds may be lost there; the piece is still in `left`. */
void tni_kv_lot_got(tni_kv_lot *l, uint32_t round, bool lost, bool async);
void tni_kv_ops_start(tni_kv_worker *w);              /* what may begin now */
void tni_kv_ops_fail(tni_kv_worker *w, tn_status st); /* all of them, with the thread's error */
/* [takes] a list, which goes before all others; all begin anew. */
void tni_kv_ops_again(tni_kv_worker *w, tni_kv_op *before);
void tni_kv_ops_end(tni_kv_worker *w); /* those of rounds that will not be */
void tni_kv_ops_answer(tni_kv_worker *w, const tni_kv_header *h, const uint8_t *payload);
void tni_kv_ops_tick(tni_kv_worker *w);
void tni_kv_ops_report(tni_kv_worker *w, const tni_kv_header *ask); /* answers with what is waited for */
void tni_kv_ops_free(tni_kv_worker *w);

#endif
