/*
 * A store whose values lie in each process alike, and whose sums go through a collective of a plugin: type
 * mpi. All workers make the same calls in the same order; what one of them queues has a number, and its
 * thread starts calls of the collective in the order of the numbers, whichever gradient is there first.
 * Type nccl is the same where values lie on devices: the collective is given their memory there.
 */
#ifndef TN_KV_GROUP_H
#define TN_KV_GROUP_H

#include "kv/kv.h"

typedef struct tni_kv_group {
    uint32_t rank, ranks;
    uint64_t queued; /* calls so far; [owner] */
    struct group_thread *thread;
} tni_kv_group;

/* Joins the job, by the collective `id`. Its statuses; TN_E_UNSUPPORTED: no plugin has it, or an option asks
 * for what a store without servers does not do · TN_E_ATTR: the launcher's variables contradict each other */
tn_status tni_kv_group_open(tni_context *c, const char *id, tni_kv_group **out);
void tni_kv_group_close(tni_kv_group *g); /* waits for what is queued; NULL is fine */
/* Queues into[i] = the sum of all workers' from[i], or with `from` NULL: worker 0's into[i]. Dense, in rows.
 * They travel from the last on, small ones of one type together. With a failure some may be queued: those of
 * a gathering are not (tni_engine_gather_end), and its owner sets `queued` back; any other caller breaks the
 * group. */
tn_status tni_kv_group_queue(tni_kv_group *g, uint32_t count, tni_kv_key *const *keys, tni_array *const *from,
                             tni_array *const *into);
/* All workers call it with the same number; else the group fails. Waits. */
tn_status tni_kv_group_agree(tni_kv_group *g, const char *what, uint64_t number);
tn_status tni_kv_group_barrier(tni_kv_group *g); /* waits for what is queued, too */
/* This worker cannot go on: nor can the others. With this thread's error. */
void tni_kv_group_break(tni_kv_group *g);

/* ---- rendezvous.c -------------------------------------------------------------------------------------- */

/* This process's place in the job, as the option kvstore.rendezvous has it read from variables. */
typedef struct tni_kv_place {
    int64_t rank, ranks; /* -1: not said */
    char root[320];      /* HOST:PORT; "": not said */
} tni_kv_place;
tn_status tni_kv_rendezvous(const tni_options *o, tni_kv_place *out); /* TN_E_ATTR names two variables */

/* The same of dist types, where a launcher started workers alone: where their scheduler is to be. */
typedef struct tni_kv_meeting {
    uint32_t rank, ranks; /* ranks 0: no launcher, or a scheduler of its own */
    char host[256];
    uint64_t port;
} tni_kv_meeting;
tn_status tni_kv_meet(const tni_options *o, tni_kv_meeting *out); /* TN_E_ATTR: no place can be found, why */

#endif
