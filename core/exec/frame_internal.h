/* What the files of frames share; nobody else includes this. */
#ifndef TN_EXEC_FRAME_INTERNAL_H
#define TN_EXEC_FRAME_INTERNAL_H

#include "exec/frame.h"
#include "exec/internal.h"

/* One instruction, ready to run: two cache lines, read in order. */
typedef struct frame_step {
    tn_status (*run)(const tn_plan *plan, const tn_exec *x, tn_err *err);
    const tn_plan *plan;
    tn_exec x;
} frame_step;

/* A segment: the payload of its operation points here, and kernels get it as their tn_call. */
typedef struct frame_segment {
    tni_frame *frame;
    uint32_t index;
    tni_run run;                      /* of the running operation */
    tni_moves *before, *after;        /* between strided arrays and their dense stand-ins; mostly NULL */
    tni_vec scratch;                  /* tni_block: what kernels asked for */
    int64_t (*dims)[2 * TN_NDIM_MAX]; /* per output: shape and strides of a size that the run told, of what
                                         nobody reads; NULL: none yet */
    const tn_stream *stream;          /* that the steps know */
    bool captured;                    /* its kernels are recorded: nothing is given free before the launch */
    uint32_t first_var;               /* its variables: in frame->vars, reads before writes */
    size_t room_at, room_bytes;       /* of frame->room: the engine's list of them */
} frame_segment;

typedef struct frame_block frame_block; /* memory that phase ONCE filled; constants.c */

typedef struct frame_phase { /* one running call of a phase */
    tni_array **arrays;      /* per port, as the segments see them; retained; NULL: not touched */
    tni_array **given;       /* per port, as the caller gave them, who may fill it in here; borrowed: held by
                                `arrays` or the moves */
    tni_var *const *vars;    /* as in tni_launch; while it is queued */
    tni_block *scratch;      /* per arena */
    tn_stream **scratch_on;  /* per arena: where the block was taken; NULL on hosts */
    const void **bound;      /* per arena: address of the scratch, or the constants, that the tensors know */
    const void **lent;       /* per arena of the lender: the address that they know */
    atomic_uint left;        /* segments that are not done */
    bool standins;           /* some array has one: nothing is released early */
    uint64_t moved_bytes;
    tni_frame *lender;
    tni_attrs *attrs;
    tni_attrs **held; /* held_count: values of sources that the instructions point to; room for all links */
    uint32_t held_count;
} frame_phase;

struct tni_frame {
    tni_refcount refs;
    tni_context *ctx;
    tni_program *program;
    tni_frame_pool *pool;
    uint64_t bytes;             /* of the frame and its tables */
    tn_tensor *tensors;         /* per slot */
    const tn_tensor **operands; /* per operand */
    frame_step *steps;          /* per instruction */
    tn_rng *rngs;               /* of the random ones */
    uint32_t rng_count;
    tn_value *values; /* attributes of instructions with links */
    uint64_t draw;
    uint64_t *step;       /* where kernels read it: it is `draw`, or lies in `step_block` */
    tni_block step_block; /* pinned memory of a device other than the host */
    uint64_t *seen; /* per port that backward computes something again from: the version that forward found */
    uint32_t under; /* as in tni_launch */
    frame_segment *segments;
    tni_var *done; /* per segment: written when it is done */
    tni_var **vars;
    void *room;
    tni_task *tasks;         /* per segment */
    tni_block *kept;         /* per arena */
    frame_block **constants; /* per arena: what the running call reads of phase ONCE; NULL: not yet */
    const void **kept_bound; /* per arena: the address that the tensors know */
    tn_stream **kept_stream; /* per arena: where the block was taken; NULL on hosts */
    frame_phase phases[TNI_PHASES];
    bool recorded;
    bool gated;           /* taken when many were in flight: all its segments write `done` */
    bool counted;         /* it is one of pool->busy */
    atomic_uint launched; /* the phase that was queued last; TNI_PHASES: none since it was taken */
    atomic_bool spoiled;  /* some of `done` is poisoned */
    atomic_bool lent;     /* variants read what it keeps: its own backward must not write there any more */
    tni_mutex lock;       /* memory of devices with streams */
    struct tni_frame *next, *prev; /* in the pool: free, or in flight */
};

typedef struct frame_graph frame_graph; /* capture.c's: what a device recorded of a segment */

typedef struct frame_bodies frame_bodies; /* subgraph.c's: what an instruction runs inside of itself */

typedef struct frame_constants { /* of one device: what phase ONCE made there last */
    tni_mutex lock;
    frame_block *current; /* NULL: nothing yet */
} frame_constants;

struct tni_frame_pool {
    tni_refcount refs; /* the owner's, and one of each frame */
    tni_context *ctx;
    tni_program *program;
    tni_mutex lock;
    tni_frame *free, *busy, *busy_last; /* busy: in the order of their calls; of recorded ones those whose
                                           backward is queued, where a device records */
    uint32_t free_count, busy_count, busy_max;
    bool closed;
    bool own;                   /* its device records kernels of its own */
    bool keeps;                 /* frames keep their memory between calls */
    bool passes;                /* it goes back to its stream behind the run, not at the end of the call */
    frame_constants *constants; /* per arena; NULL: the program has no phase ONCE */
    frame_graph *graphs;        /* per segment; NULL: no device of the program records */
    frame_bodies *bodies;       /* per instruction; NULL: none has graphs of its own */
};

/* frame.c */
/* Memory of the arenas for a phase: of hosts when a call is queued (`run` NULL), of a device with streams by
 * the first segment that runs there. */
tn_status tni_frame_memory(tni_frame *f, uint32_t phase, const tni_run *run);
void tni_frame_phase_free(tni_frame *f, uint32_t phase); /* its scratch */
void tni_frame_launched(tni_frame *f, uint32_t phase);   /* that phase is about to be queued */
/* Where the draws of the next call begin. */
void tni_frame_draw(tni_frame *f, uint64_t draw);
/* Writes `base` into the tensors of one part of one arena, workspaces and saved blocks included. */
void tni_frame_part_bind(tni_frame *f, uint32_t place, uint32_t arena, uint32_t phase, void *base);

/* capture.c */
tn_status tni_captures_create(const tni_program *p, frame_graph **out); /* NULL: nothing is captured */
void tni_captures_destroy(const tni_program *p, frame_graph *graphs);
/* [worker] `fn(s)` in stream order: a call of the stream, recorded and launched where the device records. */
tn_status tni_capture_run(frame_segment *s, tn_status (*fn)(void *arg, tn_err *err), tn_err *err);

/* subgraph.c */
tn_status tni_bodies_create(tni_context *c, const tni_program *p, frame_bodies **out); /* NULL: no need */
void tni_bodies_destroy(const tni_program *p, frame_bodies *bodies);
/* [worker] of host callbacks: begins what the one instruction of the segment runs; TN_PENDING. */
tn_status tni_subgraph_run(frame_segment *s, tn_err *err);

/* constants.c */
tn_status tni_constants_create(const tni_program *p, frame_constants **out); /* NULL: there are none */
void tni_constants_destroy(const tni_program *p, frame_constants *constants);
void tni_constants_leave(tni_frame *f); /* the call is done with them */
/* [worker] Before the first instruction of a segment that reads constants of its device: runs phase ONCE if
 * something that it reads was written since. */
tn_status tni_constants_refresh(frame_segment *s, tn_err *err);
/* [worker] Phase ONCE reads port `port` no more: memory that can be filled again goes, if nobody else reads
 * it. */
void tni_constants_spent(const frame_segment *s, uint32_t port);
static inline bool tni_port_once(const tni_port *port) /* nothing but phase ONCE touches it */
{
    return port->used == 1u << TNI_ONCE;
}

/* replay.c */
extern const tn_call_ops tni_frame_call_ops;
/* What the engine runs for a segment; payload: frame_segment * */
tn_status tni_segment_run(void *payload, tni_run *run);
/* The instructions of a segment of kernels, on `s->run`; its ports lie in the arrays of phase `phase`. */
tn_status tni_segment_kernels(frame_segment *s, uint32_t phase, tn_err *err);

#endif
