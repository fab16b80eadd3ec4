/*
 * A nest: programs that one asynchronous operation runs inside of itself. They are queued as one group with
 * an end behind them, and the end completes the operation. So no thread waits for them.
 */
#ifndef TN_EXEC_NEST_H
#define TN_EXEC_NEST_H

#include "exec/exec.h"

typedef struct tni_nest {
    tni_context *ctx;
    struct tni_nest *self; /* the payload of the end */
    tni_vec launches;      /* tni_launch: frames and lists of arrays are the nest's */
    tni_vec vars;          /* tni_var *: of all arrays that they touch */
    tni_vec moves;         /* nest_move: copies and zeros, made before them */
    const tni_task *task;  /* between them and the end: what it touches, they touch; NULL: none */
    atomic_uint left;      /* of: the end is done, the push has returned */
    tn_status status;      /* of the end */
    tn_err err;
    /* When all is done, once: with the first failure, or TN_OK. It may free the nest. Maybe before the push
     * returns. [worker] or the pusher */
    void (*done)(void *arg, tn_status status, const tn_err *err);
    void *arg;
} tni_nest;
void tni_nest_init(tni_nest *n, tni_context *c);
void tni_nest_fini(tni_nest *n);
/* [takes] l->frame, l->arrays and l->vars, also on failure. */
tn_status tni_nest_add(tni_nest *n, const tni_launch *l);
/* One more variable that the end waits for. */
tn_status tni_nest_hold(tni_nest *n, tni_var *v);
/* `dst` becomes `src`, or zeros where that is NULL, before anything else is done: in this order. */
tn_status tni_nest_move(tni_nest *n, tni_array *src, tni_array *dst);
/* On failure nothing was queued, and `done` is not called; else the nest is its own. Every array lives until
 * `done`. */
tn_status tni_nest_push(tni_nest *n, tni_device *d, const char *name);

#endif
