/*
 * A job in one process, for tests of the store: the real machines of the protocol, with the real updates of
 * servers, and in place of transports and processes one thread that carries messages from one to the other.
 * It has the functions of kv/process.h, so a store of type dist_… opened on a thread of job_run() joins it.
 */
#ifndef TN_TEST_DIST_JOB_H
#define TN_TEST_DIST_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tenon/kv.h"
#include "tenon/tenon.h"

#define JOB_WORKERS_MAX 8u

typedef struct job_options {
    uint32_t workers, servers;
    uint64_t part_bytes, bound;  /* 0: 4 MiB; by part_bytes */
    uint32_t uneven;             /* tni_kv_uneven */
    uint64_t snapshot_steps;     /* 0: none are written */
    bool async;                  /* also by the type of the store */
    bool waits;                  /* for workers of job_lose; others that go without a word end the job */
    const char *const *settings; /* of all contexts; NULL: none */
    void (*command)(void *arg, int32_t head, const char *body); /* of servers */
    void *arg;
} job_options;

typedef struct worker { /* one thread, with a context and a store of its own */
    uint32_t rank, workers;
    tn_ctx *ctx;
    tn_kv *kv;
    void *arg;
} worker;

/* Runs `fn` on a thread for each worker, with a store of this type. A failed check ends the test. */
void job_run(const job_options *o, const char *type, void (*fn)(worker *w), void *arg);
/* Waits until all workers are here: a barrier of the test, not of the store. */
void job_meet(worker *w);
/* The worker's process is gone without a word, once its calls are done; its thread may open a store anew. */
void job_lose(worker *w);
uint64_t job_snapshots(uint64_t *last); /* that servers wrote, and the step of the last one */
uint64_t job_payload_bytes(void);       /* of messages from workers to servers so far */

/* Checks on a worker's thread: cmocka's may only fail on the test's. */
void worker_fail(const worker *w, const char *file, int line, const char *format, ...);
#define WORKER_OK(w, call) worker_status((w), (call), TN_OK, #call, __FILE__, __LINE__)
#define WORKER_FAILS(w, call, st) worker_status((w), (call), (st), #call, __FILE__, __LINE__)
void worker_status(const worker *w, tn_status got, tn_status wanted, const char *what, const char *file,
                   int line);
#define WORKER_TRUE(w, condition)                                                                            \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            worker_fail((w), __FILE__, __LINE__, "%s is false: %s", #condition, tn_error_text());            \
    } while (0)

/* ---- workers.c ---- */

#define SMALL 6
#define BIG 17000 /* of float32: more than a part of 4096 bytes, and than what is copied on its way */
extern const int64_t small_shape[2], big_shape[1];

tn_array *worker_array(worker *w, int32_t dtype, int32_t ndim, const int64_t *shape, double fill);
/* One array that goes in, one that comes out; NULL: none. */
tn_kv_item worker_item(const char *name, tn_array *const *in, tn_array *const *out);
void worker_init(worker *w, const char *name, int32_t dtype, int32_t ndim, const int64_t *shape, double fill);
void worker_push(worker *w, const char *name, tn_array *a);
/* Checks each element of the key's value. */
void worker_value(worker *w, const char *name, int32_t ndim, const int64_t *shape, double wanted);

#endif
