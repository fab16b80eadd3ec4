/*
 * A job in one thread: the real scheduler, servers and workers over a network, disks and a clock that a seed
 * decides.
 *
 * What goes wrong in a run, and when, follows from the seed alone, so a seed replays a run. Faults end at a
 * time; after that the job has to end by itself. Invariants (kv.md 8.1) are looked at in every step:
 *   I1 each push applied once · I2 all workers see one value in a round · I3 the value is that of a
 *   sequential run, to the bit · I4 each request ends by its deadline · I5 staleness is bounded · I6 memory
 *   is bounded · I7 other jobs and fenced processes have no effect (seen through I1 to I3) · I8 the job ends
 *   when faults do
 */
#ifndef TN_TESTS_KV_SIM_H
#define TN_TESTS_KV_SIM_H

#include <stdint.h>

#include "kv/protocol.h"

#define SIM_MS 1000000ull
#define SIM_S 1000000000ull

/* Faults of a run. */
#define SIM_LOSS 1u
#define SIM_DOUBLE 2u
#define SIM_REORDER 4u
#define SIM_DAMAGE 8u
#define SIM_CUT 16u /* the network falls into two parts for a while */
#define SIM_KILL_WORKER 32u
#define SIM_KILL_SERVER 64u
#define SIM_KILL_SCHEDULER 128u
#define SIM_PAUSE 256u  /* a process stops for a while, like SIGSTOP */
#define SIM_SLOW 512u   /* a process, or its network, is slow */
#define SIM_STALE 1024u /* messages of another job */
#define SIM_BREAK 2048u /* a step fails on a worker */
#define SIM_ALL_FAULTS 4095u

typedef enum sim_point {
    SIM_AT_RECEIVE, /* killed before it sees the message */
    SIM_AT_SEND,    /* killed while it sends: this one and what follows is not sent */
    SIM_STOP        /* stopped for longer than the dead time before it sees the message */
} sim_point;

typedef struct sim_options {
    uint64_t seed;
    uint32_t workers, servers, keys, rounds, save; /* 0: by the seed; save: steps between snapshots */
    uint32_t elements;                             /* of key 0; 0: by the seed */
    uint64_t byte_ns; /* what a byte of a payload takes on each link, both ways at once; 0: nothing */
    uint32_t faults;  /* of these, some, by the seed */
    int32_t mode;     /* -1: by the seed; else a sim_mode */
    bool exactly;     /* all of `faults` */
    bool verbose;
    bool hostile; /* members send what they like, well signed: nothing may crash, hang or grow */
    /* A process ends, or stops, at a point: the `point`th message that it gets or sends (or snapshot that is
     * on its disk). It comes back a little later. 0: none. */
    uint32_t point, point_role, point_rank;
    sim_point how;
    /* The same at a named point of the code, the `nth` time that a process gets there, for the process that
     * is there (strike: its role), or another one of rank 0. SIM_AT_RECEIVE: killed. Of the test build. */
    tni_kv_at at;
    uint32_t nth, strike;
    bool lose; /* server 1 is lost in step 2, for longer than the dead time */
    /* Faults come in a row, each while members recover from the one before: members are stopped, and the
     * scheduler is killed while another one is replaced. Disks are slow. Modes sync and async. */
    bool storm;
} sim_options;

typedef enum sim_mode {
    SIM_SYNC,   /* who dies is waited for */
    SIM_ASYNC,  /* the same */
    SIM_FAIL,   /* a death fails the job, by name */
    SIM_SHRINK, /* the job goes on without who died */
    SIM_HANG,   /* nobody is declared dead: deadlines speak */
    SIM_MODES
} sim_mode;

typedef struct sim_result {
    char violation[512]; /* "": none */
    uint64_t messages, events, time_ns, faults, batches;
    uint32_t rejoins;
    uint32_t resumed;   /* times that a worker went on by itself after a rollback */
    uint32_t compacted; /* journals of the scheduler */
    uint64_t steps_ns;  /* from the first push to the last value */
    bool reached;       /* the point */
    uint8_t point_type; /* of its message */
} sim_result;

/* False: an invariant does not hold. */
bool sim_run(const sim_options *o, sim_result *out);

#endif
