/* A store of several processes: what store.c and states.c ask of it. */
#ifndef TN_KV_DIST_H
#define TN_KV_DIST_H

#include "kv/kv.h"
#include "kv/process.h"

typedef struct tni_kv_dist {
    tni_kv *kv;
    tni_kv_process *process;
    tni_kv_settings settings;
    uint32_t rank, next; /* next: number for a key */
    bool ranked;         /* keys have priorities */
    tni_var turn;        /* pushes read it, what comes between pushes writes it */
    tni_kv_key *drift;   /* by which drift.c exchanges numbers; NULL: it has not so far */
    tni_str changes;     /* rows of a command "set" that servers do not have yet */
    uint64_t first_step; /* that the servers held when this process came */
    uint64_t steps;      /* pushes of the key that was pushed most often */
    uint64_t kept;       /* steps at the last snapshot that was asked for */
    uint32_t barriers;   /* that this program has passed */
    uint8_t told;        /* parameters of all keys, a bit each, of which servers have what is here */
    uint8_t knows;      /* `told` of a new optimizer or key: all; none where they may keep another worker's */
    uint32_t epochs;    /* times that servers had gone back when `told` was true */
    bool fresh;         /* no snapshot has its newest keys, or its optimizer, yet */
    bool torn;          /* it is in another's place, and has not pushed the step yet that was torn */
    atomic_bool broken; /* a step of this job failed, and no value was assigned since */
} tni_kv_dist;

extern const uint8_t tni_kv_nothing[4096]; /* what abstains: enough for an array of 8 TiB */

/* Joins the job. Statuses of tni_kv_process_join. */
tn_status tni_kv_dist_open(tni_kv *kv);
void tni_kv_dist_close(tni_kv_dist *d); /* waits for what is queued; NULL is fine */

/* All workers call it. Numbers for keys that have their first value here; servers get that of worker 0. */
tn_status tni_kv_dist_init(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys);
/* Behind what is queued: pushes are taken again, if a step was broken. */
tn_status tni_kv_dist_resume(tni_kv_dist *d);
/* Queues what makes the value of worker 0, which `key->value` is there, the value of all. */
tn_status tni_kv_dist_assign(tni_kv_dist *d, tni_kv_key *key, int32_t priority);
tn_status tni_kv_dist_assigned(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys); /* behind them */
/* Queues a push of `grad` (dense, row-major, on the host; coded for `what` other than 0, TNI_KV_ROWS:
 * row_sparse), with `pull` into key->value, or `grad` itself if the key is `in_place`. A failure of it is one
 * of key->value, and breaks the step. */
tn_status tni_kv_dist_push(tni_kv_dist *d, tni_kv_key *key, tni_array *grad, uint8_t what, int32_t priority,
                           bool pull);
tn_status tni_kv_dist_pull(tni_kv_dist *d, tni_kv_key *key,
                           int32_t priority); /* queues it, into key->value */
/* Queues that `rows` gets those of the value that `ids`, rising, name; they are not kept. */
tn_status tni_kv_dist_pull_rows(tni_kv_dist *d, tni_kv_key *key, const int64_t *ids, uint64_t count,
                                tni_array *rows, int32_t priority);
tn_status tni_kv_dist_plan(const tni_kv_dist *d, const tni_kv_key *key, tni_kv_plan *out);
/* Queues the changes before what is pushed from here on. */
tn_status tni_kv_dist_flush(tni_kv_dist *d);
/* Before a push of these keys: a snapshot, if a step ends here that is due for one; without rounds also if
 * there are keys that none has yet. */
tn_status tni_kv_dist_step(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys);
void tni_kv_dist_pushed(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys); /* behind it */
/* Waits for what is queued. */
tn_status tni_kv_dist_wait(tni_kv_dist *d);
tn_status tni_kv_dist_barrier(tni_kv_dist *d);
/* This worker pushes no more; until all have said so. */
tn_status tni_kv_dist_end(tni_kv_dist *d);
/* All servers have it when the call returns. */
tn_status tni_kv_dist_command(tni_kv_dist *d, const tni_str *words);
/* A command of the program. */
tn_status tni_kv_dist_program(tni_kv_dist *d, int32_t head, const char *body);
/* A command of all workers, whose words worker 0 sends: `params` pairs or NULL. */
tn_status tni_kv_dist_agree(tni_kv_dist *d, const char *which, const char *name, const char *const *params);
/* A row of "set"; key NULL: of all. In rounds only worker 0's counts, without them each one's. `same`: it is
 * as it was here, so nothing is sent where servers have it. */
tn_status tni_kv_dist_change(tni_kv_dist *d, tni_kv_key *key, const char *param, double value, bool same);
/* TN_E_UNSUPPORTED: `key` is cut, and this optimizer takes whole arrays; NULL: any of the store, the longest
 * is named. */
tn_status tni_kv_dist_whole(const tni_kv_dist *d, const tni_kv_optimizer *o, const tni_kv_key *key);
/* Of a worker in another's place, with rounds: values as they were behind the last step that all parts have
 * made come into key->value, and pushes go on from there. *steps: how many those were; as it was: this is
 * no such worker, and nothing was done. */
tn_status tni_kv_dist_rejoin(tni_kv_dist *d, uint32_t count, tni_kv_key *const *keys, uint64_t *steps);
/* The optimizer's states and steps of a key, from servers into its slot; and worker 0's back, by all workers.
 * Both wait. */
tn_status tni_kv_dist_fetch(tni_kv_dist *d, tni_kv_key *key);
tn_status tni_kv_dist_return(tni_kv_dist *d, tni_kv_key *key);

#endif
