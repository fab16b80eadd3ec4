#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal.h"

#define QUIET_MS 5000u /* at most, where the other threads do not come to run */
#define SLACK_US 20u   /* two clocks are read one after the other: their difference is no exact one */

uint64_t chk_clock_ns(clockid_t clock)
{
    struct timespec t = {0};

    (void)clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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

struct timespec chk_deadline(uint32_t ms)
{
    const uint64_t end = chk_clock_ns(CLOCK_MONOTONIC) + (uint64_t)ms * chk_patience() * 1000000u;

    return (struct timespec){.tv_sec = (time_t)(end / 1000000000u), .tv_nsec = (long)(end % 1000000000u)};
}

bool chk_pause(const struct timespec *deadline)
{
    struct timespec now = {0};

    chk_sleep_us(1000);
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec < deadline->tv_sec ||
           (now.tv_sec == deadline->tv_sec && now.tv_nsec < deadline->tv_nsec);
}

/* Another thread runs, or would; by the letter that the system shows for its state. */
static bool others_busy(void)
{
    DIR *tasks = opendir("/proc/self/task");
    bool busy = false;

    for (const struct dirent *e; tasks && !busy && (e = readdir(tasks));) {
        char path[300], line[512];
        const char *name_end;
        ssize_t n;
        int fd;

        if (e->d_name[0] == '.' || atol(e->d_name) == syscall(SYS_gettid))
            continue;
        (void)snprintf(path, sizeof path, "%s/stat", e->d_name);
        fd = openat(dirfd(tasks), path, O_RDONLY | O_CLOEXEC);
        n = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
        if (fd >= 0)
            (void)close(fd);
        line[n > 0 ? n : 0] = '\0';
        name_end = strrchr(line, ')');
        busy = name_end && name_end[1] && strchr("RD", name_end[2]);
    }
    if (tasks)
        (void)closedir(tasks);
    return busy;
}

static uint64_t others_ran_us(void)
{
    const uint64_t all = chk_clock_ns(CLOCK_PROCESS_CPUTIME_ID), own = chk_clock_ns(CLOCK_THREAD_CPUTIME_ID);

    return all > own ? (all - own) / 1000u : 0;
}

bool chk_is_over(chk_stillness *s, uint32_t ms)
{
    const uint64_t ran = others_ran_us(), now = chk_clock_ns(CLOCK_MONOTONIC);

    if (!s->since_ns || ran > s->ran_us + SLACK_US || (now - s->since_ns > ms * 1000000ull && others_busy()))
        *s = (chk_stillness){.ran_us = ran, .since_ns = now};
    return now - s->since_ns > ms * 1000000ull;
}

void chk_quiet_us(uint32_t us)
{
    const struct timespec end = chk_deadline(QUIET_MS);
    const uint64_t enough = others_ran_us() + us;

    chk_sleep_us(us);
    while (others_busy() && others_ran_us() < enough && chk_pause(&end))
        ;
}
