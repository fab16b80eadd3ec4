/* What the files of the simulator share. */
#ifndef TN_TESTS_KV_SIM_INTERNAL_H
#define TN_TESTS_KV_SIM_INTERNAL_H

#include "kv/rows.h"
#include "kv/sim/sim.h"

#define SIM_KEYS_MAX 6u
#define SIM_ROUNDS_MAX 32u
#define SIM_PARTS_MAX 16u     /* with a shadow; in runs that are timed there are more */
#define SIM_ELEMENTS_MAX 320u /* of a key, unless options say more */
#define SIM_ELEMENTS_MOST 4096u
#define SIM_WORKERS_MAX 1024u
#define SIM_REPLAY_ENOUGH (1u << 22) /* bytes: more than any run pushes */
#define SIM_LATE_STEP 3u
#define SIM_DISK_TYPE 0u    /* in place of a message's type: a snapshot is on the disk */
#define SIM_PROCS_EXTRA 64u /* processes that come after others */

typedef struct sim sim;

typedef struct sim_blob { /* a snapshot on a disk */
    uint64_t step, bytes;
    uint8_t *text;
} sim_blob;

typedef struct sim_disk { /* of a rank of servers, or of the scheduler */
    sim_blob blobs[3];
    uint32_t writer; /* process that blobs[2] is of */
    bool told;       /* in the server's memory: the command has come */
    tni_str journal;
} sim_disk;

/* What was applied to a part of which the server of this rank holds the value. */
typedef struct sim_shadow {
    uint32_t applied[SIM_ROUNDS_MAX + 2]; /* sync: 1 if round was applied */
} sim_shadow;

typedef enum sim_stage {
    SIM_BEGIN,
    SIM_INIT,
    SIM_TELL, /* a command, without which servers may take no gradient */
    SIM_BARRIER,
    SIM_LATE,
    SIM_STEP,
    SIM_REPAIR,
    SIM_SAVE,
    SIM_END,
    SIM_FINAL,
    SIM_LAST,
    SIM_BYE,
    SIM_OVER
} sim_stage;

typedef struct sim_app { /* a worker's program */
    sim_stage stage;
    uint32_t step, waiting, epochs, last, broken_at;
    uint64_t asked_ns[SIM_KEYS_MAX + 1]; /* of the request under way; 0: none */
    uint32_t asked_round[SIM_KEYS_MAX + 1];
    uint32_t epoch;                                                 /* of its view, and 1; 0: none yet */
    bool pushed[SIM_KEYS_MAX + 1], pulls[SIM_KEYS_MAX + 1], broken; /* pulls: the push came first */
    bool made, met;             /* the late key; the first barrier is behind it */
    bool goes_on[SIM_KEYS_MAX]; /* the round was pushed before: the value alone is asked for */
    float *gradient[SIM_KEYS_MAX], *value[SIM_KEYS_MAX];
    tni_kv_cut *cuts[SIM_KEYS_MAX]; /* of rows that are pushed, or asked for */
    tn_status status;
    tn_err error;
} sim_app;

typedef struct sim_proc {
    sim *world;
    uint32_t role, rank, index;
    uint64_t birth, begun_ns, tick_ns, slow_ns, resume_ns; /* resume: paused until then */
    uint32_t side;                                         /* of a cut */
    uint16_t id;                                           /* as far as known */
    bool alive, gone;                                      /* gone: ended by itself */
    bool dying;                                            /* killed within a call: sends nothing more */
    uint64_t received, sent;
    uint64_t out_ns, in_ns; /* until then its link is busy */
    void *lent;             /* the payload that is being received, until the machine keeps it */
    tni_kv_scheduler *scheduler;
    tni_kv_server *server;
    tni_kv_worker *worker;
    sim_app *app;
} sim_proc;

typedef struct sim_event sim_event;

struct sim {
    sim_options o;
    sim_result *result;
    tni_kv_settings settings;
    sim_mode mode;
    uint64_t random, now, order, faults_end_ns, deadline_ns;
    uint32_t faults, loss, doubled, reorder, damage; /* per 1,000 */
    uint64_t delay_ns, step_ns;                      /* step: when the first one began */
    sim_event **heap;
    size_t heap_count, heap_room;
    sim_event *free_events;
    sim_proc *procs;
    uint32_t proc_count, proc_room, base_count;
    sim_disk *disks; /* scheduler, then servers */
    uint32_t elements[SIM_KEYS_MAX], last_round[SIM_WORKERS_MAX], save_every;
    sim_shadow *shadows; /* [key][part], of the servers' memory; async: [key][part][worker] */
    float reference[SIM_KEYS_MAX][SIM_ELEMENTS_MOST]; /* scratch */
    uint64_t seen[SIM_KEYS_MAX][SIM_ROUNDS_MAX + 2];
    uint32_t break_worker, break_step;
    bool came[SIM_WORKERS_MAX]; /* to the first barrier */
    bool closed;       /* a worker had left when a server was lost: the others end with an error, by name */
    bool apart, hurry; /* push and pull are two requests; workers leave without a barrier */
    bool rows[SIM_KEYS_MAX]; /* gradients of this key are rows of one element */
    bool in_place;           /* the value comes to where the gradient is */
    bool tells;              /* async: worker 0 commands something before the first gradient */
    bool told_at_once;       /* async: a worker, of a key that nobody has any more */
    bool late;               /* async: the last key is made by SIM_LATE_STEP */
    uint32_t late_given;     /* epoch, and 1, in which worker 0 has given its value; 0: it has not */
    bool broke, cut, violated, killed, voided[SIM_KEYS_MAX]; /* voided: in the step that was broken */
    uint16_t victim;
    uint64_t victim_ns;
    sim_proc *acting;            /* whose code runs */
    uint32_t at_count, restarts; /* restarts: processes that are to come again */
    bool struck;                 /* a named point was met: its victim is still to be killed or stopped */
};

uint64_t sim_random(sim *s);
uint64_t sim_below(sim *s, uint64_t n);
bool sim_chance(sim *s, uint32_t per_mille);
void sim_violation(sim *s, const char *format, ...) TN_PRINTF(2, 3);
void sim_say(const sim *s, const char *format, ...) TN_PRINTF(2, 3);

/* world.c */
tn_status sim_proc_start(sim *s, uint32_t role, uint32_t rank, sim_proc **out);
void sim_proc_kill(sim *s, sim_proc *p);
void sim_at_begin(sim *s); /* named points of this thread's simulation are looked at, if options say so */
void sim_at_end(void);
void sim_strike(sim *s); /* kills or stops whom a point is for */
void sim_point_do(sim *s, sim_proc *p);
void sim_point_time(sim *s, uint32_t role); /* time to recover */
void sim_restart_later(sim *s, const sim_proc *p, uint64_t ns);
void sim_wake(sim *s, sim_proc *p, uint64_t at);
bool sim_scheduler_gone(const sim *s);             /* the job is over */
sim_proc *sim_server(const sim *s, uint32_t rank); /* the newest process of it that lives; NULL: none */
typedef enum sim_kind { SIM_DELIVER, SIM_TICK, SIM_FAULT, SIM_SAVED, SIM_RESTART } sim_kind;
struct sim_event {
    sim_event *next;
    uint64_t at, order, bytes, room;
    sim_kind kind;
    uint32_t proc, what;
    uint64_t arg;
    uint8_t header[TNI_KV_HEADER_BYTES];
    uint8_t payload[];
};
sim_event *sim_event_add(sim *s, sim_kind kind, uint64_t at, uint64_t bytes); /* NULL: no memory */

/* disk.c */
tni_kv_journal sim_journal(sim_proc *p);
tni_kv_snapshots sim_snapshots(sim_proc *p);

/* app.c */
void sim_app_step(sim *s, sim_proc *p); /* begins what can begin */
void sim_app_done(void *arg, uint64_t cookie, tn_status st);
void sim_app_check(sim *s, sim_proc *p);
void sim_app_final(sim *s); /* when all have ended */

/* update.c: what servers do, with a shadow of what was applied */
extern const tni_kv_update sim_update;
sim_shadow *sim_shadow_of(sim *s, uint32_t key, uint32_t part, uint32_t worker);
float sim_gradient(const sim *s, uint32_t worker, uint32_t key, uint32_t round, uint32_t i);
bool sim_row_named(const sim *s, uint32_t worker, uint32_t key, uint32_t round, uint32_t i);
float sim_first_value(uint32_t key, uint32_t i);
/* Value of `key` after `round`, by adding one after the other what every worker pushed. */
void sim_reference(sim *s, uint32_t key, uint32_t round);
uint32_t sim_parts(const sim *s, uint32_t key);
/* Steps in front of the first one in which it is pushed. */
static inline uint32_t sim_before(const sim *s, uint32_t key)
{
    return s->late && key == s->o.keys - 1 ? SIM_LATE_STEP - 1 : 0;
}

/* faults.c */
void sim_faults_plan(sim *s);
void sim_fault(sim *s, const sim_event *e);
void sim_lose(sim *s);                 /* what the option says, once */
void sim_replace(sim *s, sim_proc *p); /* it has ended with an error: another one takes its place */

#endif
