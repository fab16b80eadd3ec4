/*
 * Calls on several devices that need each other's numbers meet here: a kernel with TN_KERNEL_ASYNC leaves an
 * arrival and answers TN_PENDING; the last one that is expected finds all of them, in the order of devices,
 * and completes the others. A meeting that is not complete in time ends with an error for all that came.
 */
#ifndef TNCPU_MEET_H
#define TNCPU_MEET_H

#include "plain.h"

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
    const char *name, *key; /* of what meets: the operator, and which of its calls; live until complete */
    int64_t ndev, channels; /* must be the same of all */
    int64_t device;
    uint64_t round; /* 0: the oldest meeting that lacks this device, which says its number here */
    double count;   /* of elements of a channel */
    double *own;    /* (2, channels), what this device found */
    /* The meeting's. */
    struct tncpu_arrival *next;  /* of the same meeting, by device */
    struct tncpu_arrival *later; /* the next meeting: of the first that came, which stands for it */
    struct tncpu_arrival *first; /* of those that came, by device */
    uint64_t asked, number, end_ns;
    int64_t come;
} tncpu_arrival;

/* NULL: the host gives no threads, or there is no memory. */
tncpu_meetings *tncpu_meetings_open(const tn_host *host);
void tncpu_meetings_close(tncpu_meetings *m);
void tncpu_meetings_fork(tncpu_meetings *m, uint32_t phase);

/*
 * TN_OK: all came, *all is the first by device; `a` is one of them, and tncpu_meet_end follows. TN_PENDING:
 * others are to come, `a` belongs to them. Else the meeting has ended with that error, `a` is not in it.
 */
tn_status tncpu_meet(tncpu_meetings *m, tncpu_arrival *a, tncpu_arrival **all, tn_err *err);
/* Completes all but `mine`, whose run returns. */
void tncpu_meet_end(tncpu_arrival *all, const tncpu_arrival *mine, tn_status st, const tn_err *err);

#endif
