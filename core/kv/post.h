/*
 * Between a machine and a transport, the same for all roles: links by node, dialing, what waits for credit,
 * and payloads that are sent without a copy.
 *
 * Workers dial the scheduler and the servers, servers dial the scheduler. Answers to a node leave on the link
 * on which its last valid message came. What cannot be sent is dropped: machines repeat.
 */
#ifndef TN_KV_POST_H
#define TN_KV_POST_H

#include "kv/kv.h"
#include "kv/near.h"
#include "kv/protocol.h"
#include "tenon/plugin/transport.h"

/* What the options of a context say about a process; texts are the options'. */
typedef struct tni_kv_setup {
    tni_kv_settings settings;
    const tn_transport_ops *ops;
    void *plugin; /* `carriers` if ops is tni_kv_near_ops */
    tni_kv_carriers carriers;
    char scheduler[TN_TRANSPORT_ADDRESS_MAX]; /* "HOST:PORT" */
    char listen[TN_TRANSPORT_ADDRESS_MAX];    /* of this process; a worker does not */
    uint8_t secret[TN_TRANSPORT_SECRET_BYTES];
    bool secured, insecure; /* there is a secret; there may be none on any address */
    bool priority;
    uint32_t lanes, verbose, drop; /* drop: of a million messages that come */
    int32_t rank;                  /* -1: the scheduler chooses */
    bool launched;                 /* by a launcher that knows no scheduler: beside.c */
    const char *folder;            /* of snapshots and journal; "": none */
    const tni_log *log;
    uint64_t (*clock)(void);
} tni_kv_setup;
/* `role`: TNI_KV_… Status as tni_kv_settings_read; TN_E_UNSUPPORTED: no plugin for the transport. */
tn_status tni_kv_setup_read(tni_context *c, uint32_t role, bool async, tni_kv_setup *out);
void tni_kv_setup_job(tni_kv_setup *s, const char *name); /* "": what the scheduler's address makes */

#ifdef TN_TEST_SWITCHES
extern uint64_t (*tni_kv_clock)(void);           /* what processes of contexts take for the time */
extern void (*tni_kv_disk_busy)(int32_t change); /* 1: a thread that writes a snapshot begins; -1: it ends */
#endif

typedef struct tni_kv_post tni_kv_post;

/* The role of a process, as the loop calls it. */
typedef struct tni_kv_role {
    void *arg;
    uint64_t (*receive)(void *arg, const uint8_t *header, const void *payload, uint64_t bytes, uint64_t now);
    uint64_t (*step)(void *arg, uint64_t now); /* all that is due; when to call it again */
    const tni_kv_view *(*view)(void *arg);
    bool (*over)(void *arg);
    tni_kv_hold *(*hold)(void *arg); /* of what is being sent; NULL: it lives for the call. May be NULL */
    /* The link on which it spoke last; TNI_KV_UNKNOWN: it has said its birth alone. May be NULL. */
    void (*lost)(void *arg, uint16_t node, uint64_t birth);
} tni_kv_role;

/* Opens the transport; a server or scheduler listens, and setup.listen becomes its address. `setup` stays. */
tn_status tni_kv_post_open(tni_kv_setup *setup, uint32_t role, tni_kv_post **out);
void tni_kv_post_host(tni_kv_post *p, tni_kv_host *out);
void tni_kv_post_address(const tni_kv_post *p, const void **out,
                         uint32_t *bytes); /* that others connect to */
/* Until the role is over. TN_E_IO: the transport is of no use any more. */
tn_status tni_kv_post_run(tni_kv_post *p, const tni_kv_role *role);
uint64_t tni_kv_post_step(tni_kv_post *p); /* the role's step alone, between two runs; what it answers */
void tni_kv_post_wake(tni_kv_post *p);     /* [any] step is called soon */
/* Messages of this hold are given up, with the links they are on: its count is 0 soon. */
void tni_kv_post_drop(tni_kv_post *p, const tni_kv_hold *hold);
const char *tni_kv_post_why(const tni_kv_post *p); /* what was wrong with the scheduler's link last; "" */
uint64_t tni_kv_post_bytes(const tni_kv_post *p);  /* of messages that wait for credit */
/* Sends what waits for at most `flush_ns`. Holds that are under way have count 0 then. NULL is fine. */
void tni_kv_post_close(tni_kv_post *p, uint64_t flush_ns);

/* ---- process.c, role.c: with a setup that the caller made, a test's, too ---- */

struct tni_kv_process;
uint64_t tni_kv_birth(void); /* a random number, not 0 */
tn_status tni_kv_process_start(const tni_kv_setup *setup, struct tni_kv_process **out);
tn_status tni_kv_process_joined(struct tni_kv_process *p); /* waits for it */
bool tni_kv_process_ready(struct tni_kv_process *p);       /* it has come, or its status says why not */
tn_status tni_kv_serve_with(tni_kv_setup *setup, const tni_kv_start *start, const tni_kv_update *update,
                            const tni_kv_snapshots *snapshots);
/* [takes] post, which is open; `journal` and its text as in tni_kv_scheduler_create. */
tn_status tni_kv_schedule_with(tni_kv_setup *setup, tni_kv_post *post, const tni_kv_journal *journal,
                               const void *text, uint64_t bytes);

/* What tn_kv_run_role does in these roles. `rank`: -1: kvstore.rank says it, or the scheduler chooses. */
tn_status tni_kv_schedule(tni_context *c, tn_kv_command_fn fn, void *arg);
tn_status tni_kv_serve(tni_context *c, int32_t rank, tn_kv_command_fn fn, void *arg);

/* ---- beside.c: scheduler and servers of a job whose launcher started workers alone ---- */

struct tni_kv_beside;
/* Starts those that are this worker's, by its rank, as threads. TN_E_…: the scheduler cannot listen. */
tn_status tni_kv_beside_start(tni_context *c, const tni_kv_setup *worker, struct tni_kv_beside **out);
void tni_kv_beside_end(struct tni_kv_beside *b); /* waits for the job's end; NULL is fine */

#endif
