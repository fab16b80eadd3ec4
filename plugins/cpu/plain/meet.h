/*
 * Calls on several devices that need each other's numbers meet here: a kernel with TN_KERNEL_ASYNC leaves an
 * arrival and answers TN_PENDING; the last one that is expected finds all of them, in the order of devices,
 * and completes the others. A meeting that is not complete in time ends with an error for all that came.
 */
#ifndef TNCPU_MEET_H
#define TNCPU_MEET_H

#include "plain.h"

/* Of the option sync_timeout, as a number and as its text. */
#define TNCPU_MEET_TIMEOUT_MS 60000
#define TNCPU_MEET_TIMEOUT_TEXT "60s"

typedef struct tncpu_meetings tncpu_meetings;

typedef struct tncpu_plugin { /* the plugin's own pointer */
    const tn_host *host;
    tncpu_meetings *meetings; /* NULL where the host gives no threads */
} tncpu_plugin;

/* One call. It lies in the call's workspace, which lasts until the call is complete. */
typedef struct tncpu_arrival {
    /* The caller's. */
    const tn_plan *plan;
    const tn_exec *x;
    const char *name, *key; /* calls of one operator and one key meet; both texts live until complete */
    int64_t ndev, channels; /* must be the same of all */
    int64_t device;
    uint64_t round; /* the number of the meeting to join; 0: the oldest that lacks this device. Then that of
                       the meeting that was joined */
    double count;   /* of elements of a channel */
    double *own;    /* (2, channels), what this device found */
    /* The meeting's. */
    struct tncpu_arrival *next; /* of the same meeting, by device */
    /* Of the first arrival, which stands for its meeting: */
    struct tncpu_arrival *later; /* the next meeting */
    struct tncpu_arrival *first; /* all arrivals, by device */
    uint64_t asked, number, end_ns;
    int64_t come;
} tncpu_arrival;

/* *out is NULL where the host gives no threads. TN_E_NOMEM. */
tn_status tncpu_meetings_open(const tn_host *host, tncpu_meetings **out, tn_err *err);
void tncpu_meetings_close(tncpu_meetings *m);
void tncpu_meetings_fork(tncpu_meetings *m, uint32_t phase);

/*
 * TN_OK: all came, *all is the first by device; `a` is one of them, and tncpu_meet_end follows. TN_PENDING:
 * others are to come, `a` belongs to them. TN_E_ARG: `a` and the meeting differ, which has ended with that
 * error. TN_E_NOMEM: there is no thread that would end the wait; meetings go on. In both, `a` is in none.
 */
tn_status tncpu_meet(tncpu_meetings *m, tncpu_arrival *a, tncpu_arrival **all, tn_err *err);
/* Completes all but `mine`, whose run returns. */
void tncpu_meet_end(tncpu_arrival *all, const tncpu_arrival *mine, tn_status st, const tn_err *err);

#endif
