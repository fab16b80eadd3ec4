/*
 * The lock of a run folder, checkpoints/run.lock: one process at a time trains there.
 *
 * The file names its owner (pid, start of that process in ticks since boot, host) and is held with flock, so
 * two that take over a dead owner's lock at once cannot both get it. It is removed when the training leaves;
 * after a kill it stays and is stale.
 */
#ifndef TN_CLI_LOCK_H
#define TN_CLI_LOCK_H

#include "cli.h"

#define CLI_LOCK_NAME "run.lock" /* in the folder of checkpoints */

typedef enum cli_lock_state {
    CLI_LOCK_FREE,    /* there is no such file */
    CLI_LOCK_LIVE,    /* its owner runs */
    CLI_LOCK_STALE,   /* its owner is gone, or the file says nothing */
    CLI_LOCK_FOREIGN, /* its owner was on another host: nobody here can tell */
} cli_lock_state;

typedef struct cli_lock_owner {
    long pid; /* 0: not known */
    unsigned long long start;
    char host[65];
} cli_lock_owner;

typedef struct cli_lock {
    int fd;     /* -1 while it is not held */
    char *path; /* owned */
} cli_lock;

/* Looks without changing anything; `owner` may be NULL. */
cli_lock_state cli_lock_look(const char *path, cli_lock_owner *owner);
/* The app's error about a file with such an owner. */
void cli_lock_refuse(tn_app *app, const char *path, const cli_lock_owner *owner, cli_lock_state state);
/* Takes FOLDER/run.lock; the folder is there. `found`: who had left one behind (pid 0: nobody). A live owner,
 * or one on another host, is the app's error and false. `lock` is {-1, NULL} at first. */
bool cli_lock_take(cli_lock *lock, tn_app *app, const char *folder, cli_lock_owner *found);
/* Removes the file and lets go; nothing if it is not held. */
void cli_lock_drop(cli_lock *lock);

#endif
