/*
 * Waiting, and time that a busy machine does not shorten: see waiting.c.
 */
#ifndef TN_CHECK_WAITING_H
#define TN_CHECK_WAITING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

uint64_t chk_clock_ns(clockid_t clock);
void chk_sleep_us(uint32_t us);
/* A condition whose waits end by the monotonic clock, and the end of one that begins now. */
void chk_condition_init(pthread_cond_t *condition);
struct timespec chk_until(uint32_t us);
/* Time as the other threads of the process had it: by the clock while they sleep, else what they ran. So a
 * thread that is kept from running, for however long, is not late. */
typedef struct chk_time {
    uint64_t had_us, ran_us;
    bool asleep; /* what they ran counts slowly, too: it is to be known whether they are blocked */
} chk_time;
void chk_time_begin(chk_time *t);
uint64_t chk_time_add(chk_time *t, uint32_t us);   /* the caller waited for so long; the sum up to now */
uint64_t chk_time_sleep(chk_time *t, uint32_t us); /* waits, and the same */
/* Until the other threads had so much time: what they may do without the caller is done then. */
void chk_quiet_us(uint32_t us);
/* The same time of another group of processes. */
typedef struct chk_watch {
    pid_t group;
    double had, at, ran; /* seconds */
} chk_watch;
#define CHK_WATCH_S 0.25 /* between two looks */
void chk_watch_begin(chk_watch *w, pid_t group);
double chk_watch_had(chk_watch *w); /* in seconds; looks if it is time to */

#endif
