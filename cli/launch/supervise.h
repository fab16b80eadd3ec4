/*
 * What the files that run a job share: its processes, and the state of the whole.
 */
#ifndef TN_CLI_LAUNCH_SUPERVISE_H
#define TN_CLI_LAUNCH_SUPERVISE_H

#include "launch.h"

#define LAUNCH_KILLED_WAIT_NS (10000ll * LAUNCH_MS) /* for a process that was killed to be gone */

/* One process, its guard, its output. */
typedef struct launch_child {
    launch_role role;
    uint32_t rank, starts;
    const launch_host *host; /* NULL: this one */
    const char *place;       /* its host for messages; "": this one, and nobody asks */
    const char *what;        /* of LAUNCH_OTHER */
    pid_t guard, process;
    int channel, in; /* -1: closed; in: to a process on another host */
    launch_stream out, err;
    launch_log log;
    char prefix[96], program[64];
    launch_said end;
    bool asked; /* by us to stop */
    bool owed;  /* it failed, and that is not told yet */
} launch_child;

typedef struct launch_run {
    launch_job *job;
    launch_child *children;
    size_t count, living, next; /* next: the first that was never started */
    launch_sink out, err;
    char here[256];      /* name of this host */
    struct rlimit files; /* limit as it was */
    sigset_t mask;       /* as it was */
    int signals;
    launch_child *telling; /* a failure whose output is still read; all other output waits */
    int verdict;           /* END_… of that failure */
    bool failed;
    int code; /* of the first failure */
    int64_t address_until, linger_until, beat_at, asked_at;
    /* stopping, role by role from the last to the first */
    bool stopping, requested;
    int stop_signal, stop_level, stop_stage; /* stage 0: to be asked, 1: asked, 2: killed, 3: given up */
    int64_t stop_until;
} launch_run;

enum { END_STOPS, END_AGAIN, END_WITHOUT };

/* ---- child.c ---- */

bool launch_child_start(launch_run *r, launch_child *c); /* false: said */
const char *launch_child_name(const launch_child *c, char text[160]);
void launch_child_signal(launch_child *c, int sig);
bool launch_ended(const launch_child *c);
bool launch_settled(const launch_child *c); /* all its output is read */
int launch_exit_of(const launch_child *c);

/* ---- stop.c ---- */

int launch_level_of(const launch_child *c);
/* Whether there are any. Signal 0: none is sent; `ask`: their end is asked for. */
bool launch_level_signal(launch_run *r, int level, int sig, bool ask);
size_t launch_workers_left(const launch_run *r);
void launch_stop_begin(launch_run *r, int sig, int level);
void launch_stop_advance(launch_run *r, int64_t now);
void launch_kill_all(launch_run *r);

/* ---- failure.c ---- */

/* Whether it ended as it should: with 0, or as we asked it to. */
bool launch_ended_well(const launch_run *r, const launch_child *c);
void launch_failures_look(launch_run *r);

#endif
