/*
 * The parameter store over several processes, without any transport, thread or clock: three machines that
 * turn (state, message, now) into messages.
 *
 * A host owns a machine, calls its functions one at a time, hands it what arrives (`receive`), calls `tick`
 * at the earliest time that `tick` and every `receive` since have named, and sends what the machine hands to
 * `tni_kv_host.send`.
 * Messages may be lost, doubled, damaged, delayed and reordered as they like. `tests/kv/sim` and transports
 * are hosts.
 *
 * Nodes. Number = role << 14 | rank. The scheduler gives each process that says HELLO a rank, which stays,
 * and an incarnation, which only grows. The job's number (`job`) is known to all processes from their
 * launcher.
 *   1. A message of another job, to another node, or of an incarnation that the view does not name has no
 *      effect.
 *   2. The scheduler alone changes the view. It writes each view to its journal before anybody hears of it.
 *      Nodes name their view in every beat, and get the view again as long as that is an old one.
 *   3. Whoever is silent for `dead_ns` is dead: by policy the job fails, waits for a process with the same
 *      rank, or goes on without it. A process that says HELLO for a rank takes it at once; the one before it
 *      is fenced and is told so when it speaks.
 *
 * Parts. An array is cut into parts (plan.h). For each part a worker has one request under way. It repeats
 * it, with the same bytes and the same sequence, until it is answered, and begins the next one then. So
 * (worker, key, round) names a push, and a server needs to know of each worker only the last round that it
 * applied.
 *   4. Round r of a part is complete when each worker that has a round r has pushed it. Servers count
 *      workers, not messages. `sync` sums in order of ranks: rank i is added when all below i are in, and
 *      waits in memory until then (at most `landing_bytes`, beyond which the server says BUSY: that push is
 *      not under way any more, so that others, which may be what the server waits for, have its credit). Then
 *      `apply` runs, once.
 *      A worker that has ended says so of each key that it pushed less often than others (LAST).
 *   5. HELD: the push has arrived. Only APPLIED, or the value, completes it. The worker asks again what is
 *      held, so a server that lost it gets it again.
 *   6. `async`: round r of worker w is applied when it arrives, if r is above the last applied round of w. A
 *      pull waits until the slowest worker is within `staleness` rounds. A server that came back without its
 *      last rounds credits a worker in another's place with the lost ones (late.c), and tells it that there
 *      may be some (LOST): that worker goes on from the rounds of other parts, and does not push them again.
 *      Of keys that are a round ahead of others its first push is that round again, which has no effect; keys
 *      that have only such parts go on in the step of the others.
 *   7. A broken step: the worker says of each key whose round it never sent that it will not come (BROKEN).
 *      The round is void for all parts of the key, as no part can be complete without that worker. All
 *      workers get the same error, break what they have not pushed either, and refuse pushes until `resume`.
 *   8. Fences (command, snapshot, barrier, end, bye) begin when all requests before them are complete, and
 *      those behind them begin after; of a snapshot, once all servers have copied what they hold (HELD),
 *      which they write then. So a snapshot of rank 0 at the end of step s is the same cut on all servers.
 *      They keep two. Before one that another process of rank 0 asks for, a server says in its beats that it
 *      leaves its newest one out, and drops it unless the scheduler answers that all hold it: so it keeps one
 *      that all hold. The scheduler's journal has that step before anybody hears of it, but the
 *      cut, which is in the next view.
 *   9. A server that comes back holds the steps that it wrote. The scheduler takes the last one that all
 *      servers hold (0: none, empty stores) and begins a new epoch: all servers load it, messages of older
 *      views have no effect, and each worker sends again, step by step, what it pushed and commanded since
 *      then (replay.c): the servers come to the same bits, and no program notices. A worker that does not
 *      have all of it gets TN_E_STATE with the step from which to go on. `async`: the others stay; worker 0
 *      gives the one that came back first values and commands that its snapshot lacks, before it takes
 *      gradients of others. If it has no snapshot of this epoch and worker 0 not all of them, all begin
 *      empty.
 *  10. Each request has a deadline. Its error names key, part, round, and who is silent or missing.
 */
#ifndef TN_KV_PROTOCOL_H
#define TN_KV_PROTOCOL_H

#include "kv/metrics.h"
#include "kv/plan.h"
#include "kv/wire.h"

#define TNI_KV_SCHEDULER 0u
#define TNI_KV_SERVER 1u
#define TNI_KV_WORKER 2u
#define TNI_KV_RANKS_MAX 16383u
#define TNI_KV_NODE(role, rank) ((uint16_t)((role) << 14 | (rank)))
#define TNI_KV_ROLE(node) ((uint32_t)(node) >> 14)
#define TNI_KV_RANK(node) ((uint32_t)(node)&0x3fffu)
#define TNI_KV_SCHEDULER_NODE TNI_KV_NODE(TNI_KV_SCHEDULER, 0)
#define TNI_KV_ADDRESS_MAX 256u /* bytes of what a transport's `listen` gave */
#define TNI_KV_NEVER UINT64_MAX

typedef enum tni_kv_loss { TNI_KV_LOSS_FAIL, TNI_KV_LOSS_WAIT, TNI_KV_LOSS_SHRINK } tni_kv_loss;
typedef enum tni_kv_uneven { TNI_KV_PAD, TNI_KV_DROP, TNI_KV_JOIN } tni_kv_uneven;

/* What the options kvstore.* say; alike in all processes of a job. Times in ns. */
typedef struct tni_kv_settings {
    uint64_t job;
    uint32_t workers, servers;
    uint64_t beat_ns, suspect_ns, dead_ns;             /* dead 0: nobody is */
    uint64_t timeout_ns, control_timeout_ns, retry_ns; /* retry 0: by what answers take */
    uint64_t bound, part_bytes, credit_bytes, landing_bytes;
    uint64_t server_bytes; /* of values, sums and what parts take beside them; 0: no limit */
    uint32_t staleness;    /* async; UINT32_MAX: no bound */
    bool async;            /* a worker's; servers and the scheduler follow it */
    bool checked;          /* a checksum of each payload, else of those sent again */
    bool any_order;        /* gradients are added as they come, not in order of ranks */
    tni_kv_uneven uneven;
    tni_kv_loss worker_loss, server_loss; /* servers: fail or wait */
    uint64_t worker_wait_ns, server_wait_ns;
    uint32_t batch_bytes;    /* longer messages go alone; 0: TNI_KV_SMALL_MAX, the most */
    uint32_t workers_min;    /* shrink: fewer fail the job */
    uint32_t verbose;        /* 1: servers tell of workers that come last */
    uint64_t snapshot_steps; /* between two snapshots; 0: none are written */
    uint64_t replay_bytes;   /* of what a worker keeps to send again after the loss of a server; 0: nothing */
    uint64_t late_ns;        /* how long HELD of a short part waits for what else its worker gets; 0: not */
} tni_kv_settings;

/* What a machine asks of its process. */
typedef struct tni_kv_host {
    void *arg;
    /* Never blocks. `payload` lives for the call; a push's until its request is done. To TNI_KV_UNKNOWN: to
     * the process whose birth is the message's sequence. */
    void (*send)(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                 uint64_t bytes, uint32_t priority);
    const tni_log *log; /* NULL: none */
    /* A message that was let in: `payload` is its own. NULL: nobody asks. */
    void (*heard)(void *arg, const tni_kv_header *h, const uint8_t *payload);
    /* Within `receive`: the memory of the payload is the machine's until it calls `give`. NULL: the payload
     * lives for the call. NULL for both: it always does. */
    void *(*keep)(void *arg, uint64_t bytes);
    void (*give)(void *arg, void *kept, uint64_t bytes);
    uint64_t (*clock)(void);    /* what `apply` takes; NULL: nobody measures it */
    const uint64_t *links_lost; /* connections that ended; NULL: nobody counts them */
} tni_kv_host;

typedef enum tni_kv_member_state {
    TNI_KV_MISSING, /* has not come yet */
    TNI_KV_ALIVE,
    TNI_KV_DEAD,  /* is waited for */
    TNI_KV_ENDED, /* a worker without further data */
    TNI_KV_GONE,  /* dead, the job goes on without it */
    TNI_KV_LEFT
} tni_kv_member_state;

typedef struct tni_kv_member {
    uint64_t birth; /* of its process */
    uint32_t incarnation, last_round;
    uint8_t state;
    uint16_t address_bytes;
    uint8_t *address;
} tni_kv_member;

#define TNI_KV_STARTED 1u /* everybody has come */
#define TNI_KV_JOB_FAILED 2u
#define TNI_KV_ALL_ENDED 4u
#define TNI_KV_JOB_DONE 8u    /* all workers have left */
#define TNI_KV_RECOVERING 16u /* a server came back; its epoch begins when all servers said what they hold */

#define TNI_KV_MODE_KNOWN 64u /* a worker has come: ASYNC, or not, is what they are */
#define TNI_KV_ASYNC 128u

#define TNI_KV_CLOSED 32u /* a server was lost after a worker had left: there are no values any more */

typedef struct tni_kv_view {
    uint32_t number, scheduler, epoch_view, flags; /* scheduler: its incarnation */
    uint32_t end_round;                            /* no round behind it counts; UINT32_MAX: no end */
    uint32_t released;                             /* barriers */
    uint32_t incarnations;                         /* given so far */
    uint32_t silent_ms;                            /* JOB_FAILED: of `failed` */
    uint16_t failed;
    uint64_t cut; /* step of the epoch */
    uint32_t workers, servers;
    tni_kv_member *members; /* workers, then servers */
} tni_kv_view;

tn_status tni_kv_view_init(tni_kv_view *v, uint32_t workers, uint32_t servers);
void tni_kv_view_fini(tni_kv_view *v);
tni_kv_member *tni_kv_view_member(const tni_kv_view *v, uint16_t node); /* NULL: the view has none */
uint16_t tni_kv_view_node(const tni_kv_view *v, uint32_t index);        /* of members[index] */
void tni_kv_view_write(const tni_kv_view *v, tni_str *out);
/* TN_E_FORMAT: no view of that many nodes; `v` stays as it was. */
tn_status tni_kv_view_read(tni_kv_view *v, const uint8_t *text, uint64_t bytes);
bool tni_kv_view_servers_live(const tni_kv_view *v); /* all of them */
/* A process with this incarnation has taken another's place: the first ones of a job have the lowest. */
static inline bool tni_kv_late_comer(const tni_kv_view *v, uint32_t incarnation)
{
    return incarnation > v->workers + v->servers;
}
/* True if round `round` of a part needs this worker. */
static inline bool tni_kv_member_needed(const tni_kv_member *m, uint32_t round)
{
    return m->state <= TNI_KV_ENDED && round <= m->last_round;
}

/* Without rounds the number of a snapshot begins with its epoch. True: this one is of an epoch that is over:
 * its server did not live to hear of the next one. */
static inline bool tni_kv_step_past(const tni_kv_view *v, uint64_t step)
{
    return step >> 32 < v->epoch_view;
}

/* How a process comes. */
typedef struct tni_kv_start {
    int32_t rank;      /* -1: the scheduler chooses */
    uint64_t birth;    /* a random number of this process, not 0 */
    uint64_t steps[2]; /* server: snapshots that there are; 0: none */
    const void *address;
    uint32_t address_bytes;
} tni_kv_start;

/* ---- node.c: what all machines have ---- */

typedef struct tni_kv_peer {
    tni_str batch;
    uint64_t heard_ns;
    uint64_t late_ns; /* when the batch leaves, at the latest; 0: at the next flush */
    bool dirty;
} tni_kv_peer;

typedef struct tni_kv_node {
    const tni_kv_settings *settings;
    tni_kv_host host;
    tni_kv_view view;
    uint16_t id;
    uint32_t incarnation;
    uint64_t asked_ns;  /* when it said HELLO, last */
    bool fenced;        /* another process has this one's rank */
    bool async;         /* a worker's: of its settings; else of the view */
    tni_kv_peer *peers; /* scheduler, servers, workers */
    uint32_t peer_count, dirty_count;
    uint16_t *dirty;
    uint64_t now, late_ns; /* late_ns: when to flush again */
    tni_kv_metrics metrics;
    tn_status (*handle)(struct tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload);
} tni_kv_node;

tn_status tni_kv_node_init(tni_kv_node *n, const tni_kv_settings *s, const tni_kv_host *host, uint16_t id);
void tni_kv_node_fini(tni_kv_node *n);
tni_kv_peer *tni_kv_node_peer(tni_kv_node *n, uint16_t id); /* NULL: there is no such node */
/* Fills in who sends; small messages wait for `tni_kv_node_flush`. */
void tni_kv_node_send(tni_kv_node *n, uint16_t to, tni_kv_header *h, const void *payload, uint64_t bytes);
void tni_kv_node_flush(tni_kv_node *n);
/* Checks a message and hands it, or each entry of it, to `handle`. What is not good has no effect and is
 * counted. */
void tni_kv_node_receive(tni_kv_node *n, const uint8_t *header, const void *payload, uint64_t bytes,
                         uint64_t now);
/* Takes a newer view in; true if it is one. */
bool tni_kv_node_view(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload);
/* A server's or worker's way into the job. `welcome`: true once it has a rank; else `token` says how to ask
 * on. */
void tni_kv_node_hello(tni_kv_node *n, uint32_t role, const tni_kv_start *start, uint64_t token);
/* What the scheduler reads in it; the address lies in `payload`. False: it is no good one. */
typedef struct tni_kv_hello {
    uint32_t role, rank;
    bool async;
    uint64_t birth, token, steps[2];
    const uint8_t *address;
    uint64_t address_bytes;
} tni_kv_hello;
bool tni_kv_hello_read(const uint8_t *payload, uint64_t bytes, tni_kv_hello *out);
/* The first worker says how all of them push. NULL: so does this one; else why it is refused. */
const char *tni_kv_view_mode_wrong(const tni_kv_view *v, const tni_kv_hello *who);
bool tni_kv_node_welcome(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload,
                         const tni_kv_start *start, uint64_t *token);
/* True: this process is out, and the thread's error says why. */
bool tni_kv_node_refusal(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload, uint64_t birth);
tn_status tni_kv_view_failure(const tni_kv_view *v); /* TN_E_PEER: why the job failed */
#define TNI_KV_HELLO_NS 500000000u                   /* between two questions for a rank */
static inline uint64_t tni_kv_beat_ns(const tni_kv_settings *s)
{
    return s->beat_ns ? s->beat_ns : 60000000000u;
}
const char *tni_kv_node_name(uint16_t id, char out[24]);               /* "worker 2" */
static inline uint64_t *tni_kv_number(tni_kv_node *n, uint32_t number) /* TNI_KV_N_… */
{
    return &n->metrics.numbers[number];
}
/* spans.c: events of traces, where one is recorded. Phase b, e: a span; B, E: one of this thread. `key`: of a
 * part; with TNI_KV_WHOLE of all its parts; UINT64_MAX: of none. */
#define TNI_KV_WHOLE ((uint64_t)1 << 63)
void tni_kv_span_write(char phase, const char *what, uint64_t key, uint32_t round);
static inline void tni_kv_span(char phase, const char *what, uint64_t key, uint32_t round)
{
    if (atomic_load_explicit(&tni_trace_on, memory_order_relaxed))
        tni_kv_span_write(phase, what, key, round);
}
/* Who this process is, and what the scheduler's clock shows more than its own, give or take `error_ns`. */
void tni_kv_trace_own(uint64_t job, uint16_t id, uint32_t incarnation, int64_t ahead_ns, uint64_t error_ns);
/* How long ago, in ms, at most UINT32_MAX. */
static inline uint32_t tni_kv_ago_ms(const tni_kv_node *n, uint64_t ns)
{
    const uint64_t ms = n->now > ns ? (n->now - ns) / 1000000u : 0;

    return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}
/* What the node itself knows; then its machine adds to it, and sends it to who asked. */
void tni_kv_node_report(tni_kv_node *n, tni_kv_report *out);
void tni_kv_node_report_send(tni_kv_node *n, const tni_kv_header *ask, const tni_kv_report *r,
                             const tni_str *more);
/* An answer to `h`: its key, round and sequence stand; HELD, VOID: `who` is missing, `count` are, or broke
 * it. */
void tni_kv_node_answer(tni_kv_node *n, const tni_kv_header *h, uint8_t state, uint16_t who, uint32_t count);
/* Of which nothing depends: it leaves with the next message of its batch, or after `late_ns`. */
void tni_kv_node_answer_late(tni_kv_node *n, const tni_kv_header *h, uint8_t state, uint16_t who,
                             uint32_t count);
/* FAILED, with the status and the thread's error. */
void tni_kv_node_answer_failed(tni_kv_node *n, const tni_kv_header *h, tn_status st);

/* ---- scheduler ---- */

typedef struct tni_kv_scheduler tni_kv_scheduler;
typedef struct tni_kv_journal {
    void *arg;
    /* Appends and syncs. A failure: the view is not announced, and is tried again; TN_E_PEER, here and of
     * `replace`, ends the scheduler. */
    tn_status (*append)(void *arg, const void *record, uint64_t bytes);
    /* Puts `record` in place of the whole journal and syncs; a crash leaves one of the two (another file,
     * renamed). Follows a failed `append` and a torn end, too. NULL: the journal only grows, and a failed
     * `append` leaves nothing of its record. */
    tn_status (*replace)(void *arg, const void *record, uint64_t bytes);
} tni_kv_journal;

/* `journal_text`: what an earlier process wrote, NULL for none. TN_E_FORMAT: it is no journal of this job. */
tn_status tni_kv_scheduler_create(const tni_kv_settings *s, const tni_kv_host *host, const tni_kv_journal *j,
                                  const void *journal_text, uint64_t journal_bytes, uint64_t now,
                                  tni_kv_scheduler **out);
void tni_kv_scheduler_destroy(tni_kv_scheduler *s);
uint64_t tni_kv_scheduler_receive(tni_kv_scheduler *s, const uint8_t *header, const void *payload,
                                  uint64_t bytes, uint64_t now);
/* The link of `node` is lost, or, TNI_KV_UNKNOWN, of the member of that birth. If nothing comes on another
 * one within `suspect_ns`, it is dead; a process that lives connects again. */
void tni_kv_scheduler_lost(tni_kv_scheduler *s, uint16_t node, uint64_t birth);
uint64_t tni_kv_scheduler_tick(tni_kv_scheduler *s, uint64_t now); /* when to call it again, at the latest */
bool tni_kv_scheduler_finished(const tni_kv_scheduler *s); /* the job is over, or this process is out */
/* TN_E_PEER: it is out, the journal is another process's; the thread's error says why. */
tn_status tni_kv_scheduler_status(const tni_kv_scheduler *s);
const tni_kv_view *tni_kv_scheduler_view(const tni_kv_scheduler *s);

/* journal.c: a record is length, checksum, bytes. What a crash left half written at the end is passed over.
 * */
tn_status tni_kv_journal_record(const void *bytes, uint64_t count, tni_str *out);
bool tni_kv_journal_next(tni_kv_reader *r, const uint8_t **record, uint64_t *bytes);
uint64_t tni_kv_journal_whole(const void *text, uint64_t bytes); /* what to keep before appending to it */

/* ---- server ---- */

typedef struct tni_kv_server tni_kv_server;

/* Memory of a payload that is under way without a copy. */
typedef struct tni_kv_hold {
    uint32_t count;                         /* of messages */
    bool ended;                             /* its owner needs it no more: `free` at count 0 */
    void (*free)(struct tni_kv_hold *hold); /* may send */
} tni_kv_hold;

/* How gradients become values. A status other than TN_OK goes to the workers of the round. */
typedef struct tni_kv_update {
    void *arg;
    /* Bytes that a payload of `what` has for a part of `bytes`; 0: there is no such code. */
    uint64_t (*payload_bytes)(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes);
    /* sum = payload if `first`, else base + payload; `bytes`: of the part. `base` may be `sum`, and so may
     * the payload of a first one. */
    tn_status (*add)(void *arg, const tni_kv_header *h, bool first, const void *base, void *sum,
                     const void *payload, uint64_t bytes);
    /* Moves `value` by the sum of `count` of `members` workers; of one, that is 1 of 1. */
    tn_status (*apply)(void *arg, const tni_kv_header *h, void *value, const void *sum, uint64_t bytes,
                       uint32_t count, uint32_t members);
    /* True: the value becomes the sum. They change places; `apply` gets one memory for both. NULL: never. */
    bool (*replaces)(void *arg, const tni_kv_header *h);
    tn_status (*command)(void *arg, const char *text, uint64_t bytes);
    /* States of the optimizer, all parts in one text; may be NULL. */
    tn_status (*save)(void *arg, tni_str *out);
    tn_status (*load)(void *arg, const void *text, uint64_t bytes); /* 0 bytes: the state at the start */
    /* What a pull with the code `h->what`, not 0, wants of a part: as many bytes as it has. NULL: values.
     * TN_PENDING: they are of the round before. */
    tn_status (*read)(void *arg, const tni_kv_header *h, uint8_t dtype, void *value, void *out,
                      uint64_t bytes);
} tni_kv_update;

/* Where snapshots go. At least the newest two that are complete are kept. */
typedef struct tni_kv_snapshots {
    void *arg;
    /* Seals the text and writes it; it may take its memory and leave an empty one. TN_PENDING: `saved`
     * follows, and workers go on until then. */
    tn_status (*write)(void *arg, uint64_t step, tni_str *text);
    /* Borrowed until the next. What lies behind this step is over; step 0: all is, and there is no text.
     * TN_PENDING: one is still being written; `saved` follows, and then it is asked again. */
    tn_status (*read)(void *arg, uint64_t step, const void **text, uint64_t *bytes);
    /* What `write` left pending, once it is over. NULL: the host knows by itself. */
    bool (*over)(void *arg, uint64_t *step, tn_status *st);
    void (*wakes)(void *arg, void (*wake)(void *),
                  void *wake_arg); /* when there is something; NULL: waits for it */
    /* Once, when the server has its place and before all else: whoever had it before writes no more. `steps`:
     * of the newest two there are then. NULL: nobody else can have them. */
    tn_status (*claim)(void *arg, uint64_t steps[2]);
} tni_kv_snapshots;

void tni_kv_snapshot_seal(void *text, uint64_t bytes); /* its checksum, which takes as long as a copy */

tn_status tni_kv_server_create(const tni_kv_settings *s, const tni_kv_host *host, const tni_kv_start *start,
                               const tni_kv_update *update, const tni_kv_snapshots *snapshots,
                               tni_kv_server **out);
void tni_kv_server_destroy(tni_kv_server *s);
uint64_t tni_kv_server_receive(tni_kv_server *s, const uint8_t *header, const void *payload, uint64_t bytes,
                               uint64_t now);
uint64_t tni_kv_server_tick(tni_kv_server *s, uint64_t now);
void tni_kv_server_saved(tni_kv_server *s, uint64_t step, tn_status st, uint64_t now);
tn_status tni_kv_server_status(const tni_kv_server *s); /* TN_E_…: it stopped, the thread's error says why */
bool tni_kv_server_finished(const tni_kv_server *s);
uint64_t tni_kv_server_bytes(const tni_kv_server *s); /* of values, sums and landings */
/* For tests and tools: part `key`; NULL: not here. `applied` of worker `rank`: last applied round. */
const void *tni_kv_server_value(const tni_kv_server *s, uint64_t key, uint32_t *version);
uint32_t tni_kv_server_applied(const tni_kv_server *s, uint64_t key, uint32_t rank);
uint16_t tni_kv_server_id(const tni_kv_server *s);
/* Within `send`: what holds the payload; NULL: it lives for the call. Nobody writes what is held. */
tni_kv_hold *tni_kv_server_sending(const tni_kv_server *s);
const tni_kv_view *tni_kv_server_view(const tni_kv_server *s);

/* ---- worker ---- */

typedef struct tni_kv_worker tni_kv_worker;

/* A request is complete. `st` other than TN_OK: the thread's error says why. It may begin further requests.
 * */
typedef void (*tni_kv_done)(void *arg, uint64_t cookie, tn_status st);

tn_status tni_kv_worker_create(const tni_kv_settings *s, const tni_kv_host *host, const tni_kv_start *start,
                               tni_kv_done done, tni_kv_worker **out);
void tni_kv_worker_destroy(tni_kv_worker *w); /* requests end without `done` */
uint64_t tni_kv_worker_receive(tni_kv_worker *w, const uint8_t *header, const void *payload, uint64_t bytes,
                               uint64_t now);
uint64_t tni_kv_worker_tick(tni_kv_worker *w, uint64_t now); /* sends what waits */
tn_status tni_kv_worker_status(const tni_kv_worker *w); /* TN_E_…: it is out, the thread's error says why */
bool tni_kv_worker_ready(const tni_kv_worker *w);       /* has a rank, and everybody has come */
uint32_t tni_kv_worker_rank(const tni_kv_worker *w);
const tni_kv_view *tni_kv_worker_view(const tni_kv_worker *w);
uint64_t tni_kv_worker_heard(tni_kv_worker *w, uint16_t node); /* when, last; 0: never */
/* Within `send`: cookie of the request whose `in` the payload is; 0: it lives for the call. */
uint64_t tni_kv_worker_sending(const tni_kv_worker *w);
void tni_kv_worker_stop(tni_kv_worker *w, tn_status st); /* it is out, with the thread's error */

typedef enum tni_kv_kind {
    TNI_KV_DO_INIT,     /* in: value */
    TNI_KV_DO_PUSH,     /* in: gradient */
    TNI_KV_DO_PULL,     /* out: value */
    TNI_KV_DO_PUSHPULL, /* both */
    TNI_KV_DO_COMMAND,  /* in: text of `bytes` */
    TNI_KV_DO_SNAPSHOT, /* step */
    TNI_KV_DO_BARRIER,  /* step: which one; 0: the next one of the job */
    TNI_KV_DO_END,      /* step: the last one; complete when all workers have ended */
    TNI_KV_DO_BYE,
    TNI_KV_DO_BREAK, /* a push that never comes; by tni_kv_worker_break */
    TNI_KV_DO_LAST   /* no push of this key comes any more; by END, of keys that are pushed seldom */
} tni_kv_kind;

/* `in` stays as it is, and `out` belongs to the machine, until `done`. */
typedef struct tni_kv_request {
    tni_kv_kind kind;
    uint32_t key, priority; /* priority 0 to 255: higher ones go first */
    const void *in;
    void *out;
    uint64_t bytes, step, cookie;
    const struct tni_kv_cut
        *cuts; /* rows.h: of `in`, whose parts are rows, or ask for them; NULL: they are not */
    uint32_t row_bytes;
    uint8_t what, shrink_log2; /* code of `in`, which has bytes >> shrink_log2; of a pull: what is wanted */
    bool any;                  /* pull: what there is, also after a broken step */
    bool brief;                /* host's: a short value, for which its caller may wait in the host's loop */
    void *(*land)(void *arg);  /* asked when a value begins to come: where to, NULL: `out`. May be NULL */
    void *land_arg;
} tni_kv_request;

tn_status tni_kv_worker_key(tni_kv_worker *w, uint32_t key, uint8_t dtype, uint64_t elements,
                            uint64_t element_bytes);
/* TN_E_KEY: no such key · TN_E_STATE: the round is not known (pull or init first), the step is broken, or
 * the job has ended · TN_E_NOMEM. Nothing was queued then. */
tn_status tni_kv_worker_request(tni_kv_worker *w, const tni_kv_request *r, uint64_t now);
/* This worker's step `round` fails: each key with fewer rounds is broken up to it. */
tn_status tni_kv_worker_break(tni_kv_worker *w, uint32_t round, uint64_t now);
void tni_kv_worker_resume(tni_kv_worker *w);                        /* pushes are taken again */
uint32_t tni_kv_worker_round(const tni_kv_worker *w, uint32_t key); /* pushed or broken so far */
/* The step from which to go on after TN_E_STATE "rolled back"; counts epochs. */
uint64_t tni_kv_worker_cut(const tni_kv_worker *w, uint32_t *epochs);

#endif
