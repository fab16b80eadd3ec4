/*
 * A worker's process from within: calls, and whose thread is in the loop (call.c). All of it but what says
 * "guarded" belongs to that thread.
 */
#ifndef TN_KV_CALL_H
#define TN_KV_CALL_H

#include "engine/engine.h"
#include "kv/post.h"
#include "kv/process.h"

typedef enum call_kind { CALL_REQUEST, CALL_KEY, CALL_BREAK, CALL_RESUME } call_kind;

typedef struct tni_kv_call {
    tni_kv_hold hold;          /* first */
    struct tni_kv_call *next;  /* in the queue; then of those under way */
    struct tni_kv_call **link; /* what points to it, while it is under way; NULL: it is not */
    call_kind kind;
    tni_kv_request r;
    uint64_t elements, element_bytes; /* key */
    uint8_t dtype;
    tni_kv_called called;
    void *arg;
    tni_kv_process *process;
    uint64_t ended_ns; /* by the machine; 0: not yet */
    tn_status status;
    tn_err *error; /* NULL: only the status is known */
} tni_kv_call;

struct tni_kv_process {
    tni_kv_setup setup;
    tni_kv_post *post;
    tni_kv_worker *worker;
    tni_thread *thread;
    struct tni_kv_beside *beside; /* NULL: scheduler and servers are processes */
    tni_kv_call *running;         /* the machine has them, or the transport */
    uint64_t begun_ns;
    bool over, told; /* the loop ends for now; it was said who is waited for */
    tni_kv_role role;
    tni_engine *engine; /* NULL: none whose waits may serve the loop */
    bool guest;         /* the loop's thread is not the process's own; then until when it stays */
    bool (*enough)(void *of);
    void *of;
    uint64_t until_ns;
    pid_t pid;
    tni_mutex lock;
    tni_cond changed;
    tni_kv_call *first, **last;           /* guarded: what is queued */
    bool stop, ready, dead;               /* guarded; dead: the transport is of no use */
    bool failing;                         /* guarded: the next round of key `failed` never comes */
    uint32_t failed;                      /* guarded */
    tn_status status;                     /* guarded: of the machine */
    tn_err error;                         /* guarded */
    uint64_t cut, heard_ns;               /* guarded */
    uint32_t rank, epochs, view, gone[3]; /* guarded; gone: nodes by role */
    uint32_t behind;                      /* guarded */
    uint64_t owner;                       /* guarded: number of the thread in the loop; 0: none is */
    uint32_t calls, long_calls;           /* guarded: queued or under way; long: all that are not brief */
    bool away, deep; /* guarded: the own thread leaves the loop to guests; without a time */
    bool brisk;      /* guarded: it may */
    uint64_t guests, waited_ns,
        crowd_ns;  /* guarded: so many there were; when a wait began last; when one did while
                                             there was a guest */
    tni_cond back; /* of the own thread */
};

void tni_kv_call_finish(tni_kv_hold *hold); /* tells, and frees; with the call's error */
bool tni_kv_guests_let(tni_kv_process *p);  /* by its own thread, out of the loop; false: it ends */
void tni_kv_guests_begin(tni_kv_process *p, tni_engine *engine); /* waits of the engine may be guests */
#ifdef TN_TEST_SWITCHES
extern uint64_t tni_kv_brisk_ns; /* waits that follow each other so closely are guests */
#endif
void tni_kv_guests_end(tni_kv_process *p); /* none is in the loop any more */

#endif
