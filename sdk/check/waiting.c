/*
 * Time that does not take a busy machine for a plugin that hangs. It goes on by the clock while all threads
 * that are waited for sleep, and by what they ran while one of them runs or would; where none comes to run,
 * slowly. Where the system shows no states of threads it is the clock's.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "internal.h"

#define SLOWLY 64u /* times as slow */
#define STEP_US 1000u
#define WATCH_STEP_S 1.0 /* at most, of one look to the next: more is a halt of the one that looks */

uint64_t chk_clock_ns(clockid_t clock)
{
    struct timespec t = {0};

    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What follows the name in a line like /proc/self/stat: "S 1 2 3 ..."; "": it is gone. */
static const char *stat_read(int folder, const char *path, char line[512])
{
    const int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, line, 511);
    const char *end;

    if (fd >= 0)
        (void)close(fd);
    line[n > 0 ? n : 0] = '\0';
    end = strrchr(line, ')');
    return end && end[1] ? end + 2 : "";
}

/* One of the threads in a folder like /proc/self/task, but for number `except`, has one of these states. */
static bool has_state(const char *path, const char *states, long except)
{
    DIR *folder = opendir(path);
    bool has = false;

    for (const struct dirent *e; folder && !has && (e = readdir(folder));) {
        char name[300], line[512];
        const char *state;

        if (e->d_name[0] == '.' || atol(e->d_name) == except)
            continue;
        (void)snprintf(name, sizeof name, "%s/stat", e->d_name);
        state = stat_read(dirfd(folder), name, line);
        has = *state && strchr(states, *state);
    }
    if (folder)
        (void)closedir(folder);
    return has;
}

/* ---- threads of this process ---- */

void chk_sleep_us(uint32_t us)
{
    const struct timespec pause = {.tv_sec = us / 1000000u, .tv_nsec = (long)(us % 1000000u) * 1000};

    (void)nanosleep(&pause, NULL);
}

void chk_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t how;

    (void)pthread_condattr_init(&how);
    (void)pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &how);
    (void)pthread_condattr_destroy(&how);
}

struct timespec chk_until(uint32_t us)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += (long)(us % 1000000u) * 1000;
    t.tv_sec += us / 1000000u + t.tv_nsec / 1000000000L;
    t.tv_nsec %= 1000000000L;
    return t;
}

/* What all threads but the caller's ran. */
static uint64_t others_ran_us(void)
{
    const uint64_t all = chk_clock_ns(CLOCK_PROCESS_CPUTIME_ID), own = chk_clock_ns(CLOCK_THREAD_CPUTIME_ID);

    return all > own ? (all - own) / 1000u : 0;
}

void chk_time_begin(chk_time *t)
{
    *t = (chk_time){.ran_us = others_ran_us()};
}

uint64_t chk_time_add(chk_time *t, uint32_t us)
{
    const bool busy = has_state("/proc/self/task", "RDW", syscall(SYS_gettid));
    const uint64_t ran_us = others_ran_us(), ran = ran_us > t->ran_us ? ran_us - t->ran_us : 0;
    const uint64_t least = us / SLOWLY + 1;

    t->ran_us = ran_us;
    if (!busy || (ran > us && !t->asleep))
        t->had_us += us;
    else
        t->had_us += ran > least && !t->asleep ? ran : least;
    return t->had_us;
}

uint64_t chk_time_sleep(chk_time *t, uint32_t us)
{
    chk_sleep_us(us);
    return chk_time_add(t, us);
}

void chk_quiet_us(uint32_t us)
{
    const uint32_t step = us < STEP_US ? us : STEP_US;
    chk_time t;

    chk_time_begin(&t);
    while (chk_time_sleep(&t, step) < us)
        ;
}

/* ---- another group of processes ---- */

static double seconds_now(void)
{
    return 1e-9 * (double)chk_clock_ns(CLOCK_MONOTONIC);
}

/* What the group's processes ran, in seconds; whether one of their threads runs or would. */
static double group_look(pid_t group, bool *busy)
{
    DIR *folder = opendir("/proc");
    unsigned long long user, kernel, sum = 0;

    *busy = false;
    for (const struct dirent *e; folder && (e = readdir(folder));) {
        char name[300], line[512];
        int of = 0;

        if (e->d_name[0] < '1' || e->d_name[0] > '9')
            continue;
        (void)snprintf(name, sizeof name, "%s/stat", e->d_name);
        if (sscanf(stat_read(dirfd(folder), name, line), /* NOLINT: what is no number is no process */
                   "%*c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &of, &user, &kernel) != 3 ||
            of != group)
            continue;
        sum += user + kernel;
        (void)snprintf(name, sizeof name, "/proc/%.20s/task", e->d_name);
        *busy |= has_state(name, "RW", 0);
    }
    if (folder)
        (void)closedir(folder);
    return (double)sum / (double)sysconf(_SC_CLK_TCK);
}

void chk_watch_begin(chk_watch *w, pid_t group)
{
    *w = (chk_watch){.group = group, .at = seconds_now()};
}

double chk_watch_had(chk_watch *w)
{
    const double now = seconds_now();
    double step = now - w->at, ran;
    bool busy;

    if (step < CHK_WATCH_S)
        return w->had;
    ran = group_look(w->group, &busy);
    step = step > WATCH_STEP_S ? WATCH_STEP_S : step;
    if (busy && ran - w->ran < step)
        w->had += ran - w->ran > step / SLOWLY ? ran - w->ran : step / SLOWLY;
    else
        w->had += step;
    w->ran = ran;
    w->at = now;
    return w->had;
}
