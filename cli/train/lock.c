/*
 * The lock of a run folder.
 *
 * flock decides between processes of one machine, the text inside where flock cannot (a file system without
 * it) and for whoever reads the file. A pid alone is no owner: the number comes again, so the start of the
 * process is compared, too.
 */
#include "train/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEXT_MAX_BYTES 256
#define TRIES 8        /* the owner may let go at this very moment */
#define LOOKS_MAX 3000 /* times 20 ms: somebody who only looks at the file may be held up */

/* Field 22 of /proc/PID/stat; 0: there is no such process, or it has ended and only its parent has not asked
 * for it (states Z and X): no signal helps against that. */
static unsigned long long start_of(long pid)
{
    char path[64], text[1024];
    const char *at;
    FILE *file;
    size_t n;

    (void)snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (!(file = fopen(path, "re")))
        return 0;
    n = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[n] = '\0';
    at = strrchr(text, ')'); /* the name in front may hold anything */
    if (at && (!strncmp(at, ") Z", 3) || !strncmp(at, ") X", 3)))
        return 0;
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

static void host_name(char host[65])
{
    if (gethostname(host, 65))
        host[0] = '\0';
    host[64] = '\0';
    for (char *c = host; *c; c++)
        if (*c <= ' ')
            *c = '_';
    if (!*host)
        memcpy(host, "?", 2);
}

/* What the file says; pid 0 if it says nothing that we wrote. */
static void owner_read(int fd, cli_lock_owner *owner)
{
    char text[TEXT_MAX_BYTES];
    ssize_t n = pread(fd, text, sizeof text - 1, 0);

    memset(owner, 0, sizeof *owner);
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "pid %ld\nstart %llu\nhost %64s\n", &owner->pid, &owner->start, owner->host) != 3 ||
        owner->pid < 1)
        memset(owner, 0, sizeof *owner);
}

static cli_lock_state owner_state(const cli_lock_owner *owner)
{
    char host[65];

    host_name(host);
    if (!owner->pid)
        return CLI_LOCK_STALE;
    if (strcmp(host, owner->host))
        return CLI_LOCK_FOREIGN;
    if (!owner->start) /* written where there is no /proc */
        return !kill((pid_t)owner->pid, 0) || errno == EPERM ? CLI_LOCK_LIVE : CLI_LOCK_STALE;
    return start_of(owner->pid) == owner->start ? CLI_LOCK_LIVE : CLI_LOCK_STALE;
}

cli_lock_state cli_lock_look(const char *path, cli_lock_owner *owner)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    cli_lock_owner found;
    cli_lock_state state;
    bool held;

    memset(&found, 0, sizeof found);
    if (fd < 0) {
        state = errno == ENOENT || errno == ENOTDIR ? CLI_LOCK_FREE : CLI_LOCK_STALE;
    } else {
        owner_read(fd, &found);
        held = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
        state = held ? CLI_LOCK_LIVE : owner_state(&found);
        (void)close(fd);
    }
    if (owner)
        *owner = found;
    return state;
}

void cli_lock_refuse(tn_app *app, const char *path, const cli_lock_owner *owner, cli_lock_state state)
{
    char *text =
        !owner->pid ? cli_format("%s: the run is in use by another process; wait until it ends", path)
        : state == CLI_LOCK_FOREIGN
            ? cli_format("%s: the run is in use by process %ld on host %s; if that one is gone, remove the "
                         "file",
                         path, owner->pid, owner->host)
            : cli_format("%s: the run is in use by process %ld; wait until it ends, or stop it with  kill "
                         "-TERM %ld",
                         path, owner->pid, owner->pid);

    (void)tn_app_fail(app, TN_E_STATE, text ? text : "the run is in use");
    free(text);
}

/* Whether `fd` is still what lies at `path`: its last owner may just have removed it. */
static bool is_current(int fd, const char *path)
{
    struct stat open_file, there;

    return !fstat(fd, &open_file) && !lstat(path, &there) && open_file.st_ino == there.st_ino &&
           open_file.st_dev == there.st_dev;
}

static bool owner_write(int fd)
{
    char text[TEXT_MAX_BYTES], host[65];
    int n;

    host_name(host);
    n = snprintf(text, sizeof text, "pid %ld\nstart %llu\nhost %s\n", (long)getpid(),
                 start_of((long)getpid()), host);
    return !ftruncate(fd, 0) && pwrite(fd, text, (size_t)n, 0) == n;
}

/* 1: ours · 0: try again · -1: no, and the app has failed. `looked_at`: to try again costs nobody's patience,
 * as those who hold the file only look at it, or it is another one by now. */
static int take_once(cli_lock *lock, tn_app *app, cli_lock_owner *found, bool *looked_at)
{
    int fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    cli_lock_state state;
    bool held;

    if (fd < 0) {
        (void)cli_failed_at(app, lock->path);
        return -1;
    }
    owner_read(fd, found);
    held = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    *looked_at = !held || !flock(fd, LOCK_SH | LOCK_NB);
    if (held || !is_current(fd, lock->path)) {
        (void)close(fd);
        return 0;
    }
    owner_read(fd, found);
    state = owner_state(found);
    if (state == CLI_LOCK_LIVE || state == CLI_LOCK_FOREIGN) {
        (void)close(fd);
        cli_lock_refuse(app, lock->path, found, state);
        return -1;
    }
    if (!owner_write(fd)) {
        (void)cli_failed_at(app, lock->path);
        (void)unlink(lock->path);
        (void)close(fd);
        return -1;
    }
    lock->fd = fd;
    return 1;
}

bool cli_lock_take(cli_lock *lock, tn_app *app, const char *folder, cli_lock_owner *found)
{
    const struct timespec moment = {0, 20000000};
    int taken = 0, tries = 0;
    bool looked_at = false;

    errno = 0;
    lock->fd = -1;
    if (!(lock->path = cli_path(folder, CLI_LOCK_NAME)))
        return !tn_app_fail(app, TN_E_NOMEM, "out of memory");
    for (int i = 0; i < LOOKS_MAX && tries < TRIES && !taken; i++) {
        taken = take_once(lock, app, found, &looked_at);
        tries += !looked_at;
        if (!taken)
            (void)nanosleep(&moment, NULL);
    }
    if (!taken)
        cli_lock_refuse(app, lock->path, found, CLI_LOCK_LIVE);
    if (taken != 1) {
        free(lock->path);
        lock->path = NULL;
    }
    return taken == 1;
}

void cli_lock_drop(cli_lock *lock)
{
    if (lock->path && lock->fd >= 0) {
        (void)unlink(lock->path); /* before it is free: nobody may take what is going away */
        (void)close(lock->fd);
    }
    free(lock->path);
    *lock = (cli_lock){-1, NULL};
}
