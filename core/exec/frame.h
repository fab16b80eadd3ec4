/*
 * Frames: what a running call of a program needs, and queueing such calls. Frames are pooled; a call has one
 * to itself from its push until all its segments are done, a recorded one until its backward is done, too.
 */
#ifndef TN_EXEC_FRAME_H
#define TN_EXEC_FRAME_H

#include "compile/compile.h"

typedef struct tn_ctx tni_context;
typedef struct tni_frame tni_frame;
typedef struct tni_frame_pool tni_frame_pool;

/* The pool of one program. Close it instead of releasing it: frames in flight come to their end. */
tn_status tni_frame_pool_create(tni_context *c, tni_program *p, tni_frame_pool **out);
/* Before the first call: memory stays with the frames, so that nothing is taken in later calls and addresses
 * do not move. It goes when the pool is closed. */
void tni_frame_pool_keep(tni_frame_pool *pool);
void tni_frame_pool_close(tni_frame_pool *pool); /* NULL is fine */

/* A frame that nobody else uses, with one reference. `recorded`: a backward may follow. Waits for an earlier
 * call if very many are in flight and the caller may wait. */
tn_status tni_frame_take(tni_frame_pool *pool, bool recorded, tni_frame **out);
void tni_frame_retain(tni_frame *f);
void tni_frame_release(tni_frame *f); /* the last one gives it back; NULL is fine */
const tni_program *tni_frame_program(const tni_frame *f);
/* Room for the arrays of a call, by port: of its taker, until it queued that phase. */
tni_array **tni_frame_arrays(tni_frame *f, uint32_t phase);
bool tni_frame_lent(const tni_frame *f); /* some variant reads, or read, what it keeps */
void tni_frame_lend(tni_frame *f);       /* some variant is going to; before its own backward is chosen */

/* One phase of a frame, about to be queued. */
typedef struct tni_launch {
    tni_frame *frame;
    uint32_t phase;
    tni_array *const *arrays;        /* per port; NULL where the phase does not touch it */
    tni_var *const *vars;            /* per port: what stands for its array's variable; NULL: that itself */
    const tni_attrs *const *sources; /* per graph node: attributes that linked instructions read; NULL: as
                                        compiled */
    uint64_t draw;                   /* the first of the call's; of the forward phase */
    tni_frame *lender;               /* of a variant: the frame whose kept bytes it reads */
    const uint8_t *aside;            /* per port: 1: written aside and copied when all is read; NULL: none */
    const char *name;                /* of the operations; NULL: "program" */
    tni_attrs *attrs;                /* of a call of one operator: retained, its attributes */
    const tni_task *task;            /* an operation of its own, in place of a frame; NULL */
    uint32_t under;                  /* of a body: the draw that its own are counted under; 0: none */
} tni_launch;
typedef struct tni_launch_group {
    const tni_launch *launches;
    const tni_task *first, *last; /* tasks before them and behind them; NULL: none */
    uint32_t count, first_count, last_count;
} tni_launch_group;
/* Queues all of them, in this order, or nothing. Arrays are checked against the ports and held until the
 * phase is done. A frame's backward phase comes behind its forward. */
tn_status tni_launch_all(tni_context *c, const tni_launch_group *g);

#endif
