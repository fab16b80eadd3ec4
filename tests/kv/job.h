/* A job of threads over a loop: its setup, its processes, and requests that the test does not wait for. */
#ifndef TN_TESTS_KV_JOB_H
#define TN_TESTS_KV_JOB_H

#include "kv/loop.h"
#include "kv/process.h"

#define JOB_NODES 16u
#define JOB_STEPS_MAX 8u

typedef struct job_disk { /* of a server, or of the scheduler */
    uint64_t steps[2], bytes[2];
    uint8_t *texts[2];
    tni_str journal;
} job_disk;

typedef struct job_node { /* a server or the scheduler */
    tni_kv_setup setup;
    uint32_t role, rank, index; /* index: of its transport in the loop */
    tni_thread *thread;
    tn_status status;
    tn_err error;
    job_disk *disk;
} job_node;

typedef struct job {
    tni_kv_setup setup;
    job_disk disks[JOB_NODES]; /* the scheduler's, then the servers' */
    job_node nodes[JOB_NODES];
    uint32_t node_count, opened;
    tni_kv_process *workers[JOB_NODES];
} job;

/* An answer that is waited for by loop_until. */
typedef struct answer {
    atomic_bool done;
    tn_status status;
    tn_err error;
} answer;

void job_begin(job *j, uint32_t workers,
               uint32_t servers); /* setup of 1 s beats, sync, wait:60 for servers */
job_node *job_schedule(job *j);
job_node *job_serve(job *j, uint32_t rank);
tni_kv_process *job_work(job *j, uint32_t rank); /* joins; not waited for */
void job_start(job *j);                          /* all of them, until everybody has come */
void job_end(job *j);                            /* workers leave, all ends; checks that nothing is left */
tn_status job_node_join(job_node *n);            /* its thread has ended: what it said */

void job_ask(tni_kv_process *p, const tni_kv_request *r, answer *a);
bool job_answered(void *answers_ended_by_null); /* answer *const * */
/* Until it is answered; its status. */
tn_status job_wait(answer *a);
tn_status job_do(tni_kv_process *p, const tni_kv_request *r);

#endif
