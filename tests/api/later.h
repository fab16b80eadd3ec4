/* Tasks that end later, and somebody who completes them: shared by the tests of tasks. */
#ifndef TN_TEST_API_LATER_H
#define TN_TEST_API_LATER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "api/support.h"

extern const char *const later_engines[3]; /* settings: threaded, naive, stepped */

enum { IN_BEGIN, BEFORE_RETURN, AFTER_RETURN, NEVER }; /* when somebody completes */

typedef struct later {
    tn_ctx *ctx;
    int when;
    tn_status status;   /* of the completion */
    const char *text;   /* of the completion */
    tn_status returned; /* by begin */
    atomic_ullong handle;
    atomic_uint begun, done;
    tn_status seen;   /* by done */
    tn_status answer; /* of tn_task_complete */
    pthread_t thread;
    bool started;
} later;

void later_push(later *l, tn_var *reads, tn_var *writes); /* each may be NULL */
tn_status later_begin(void *arg, uint64_t handle);
void later_done(void *arg, tn_status status);
void later_complete(later *l);
void later_until_returned(later *l); /* until the engine has taken note of TN_PENDING */
void later_end(later *l);            /* after all is done: it was done once */

tn_status count_run(void *arg); /* adds one to an atomic_uint */
void count_push(tn_ctx *ctx, atomic_uint *count, tn_var *reads, tn_var *writes);

#endif
