/*
 * Clocks and waiting. Limits are the clock's and generous; what is found late is tried once more.
 */
#ifndef TN_CHECK_WAITING_H
#define TN_CHECK_WAITING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

uint64_t chk_clock_ns(clockid_t clock);
void chk_sleep_us(uint32_t us);
/* A condition whose waits end by the monotonic clock. */
void chk_condition_init(pthread_cond_t *condition);
/* The end of a wait that begins now; longer in builds with a sanitizer. */
struct timespec chk_deadline(uint32_t ms);
/* Sleeps a millisecond; false: the deadline is over. */
bool chk_pause(const struct timespec *deadline);
/* True: for so long no other thread of the process has run, and none would: what did not come will not. Asked
 * again and again, with zeros at first. */
typedef struct chk_stillness {
    uint64_t ran_us, since_ns;
} chk_stillness;
bool chk_is_over(chk_stillness *s, uint32_t ms);
/* What other threads of the process may do without the caller is done: they had so much time, or sleep. */
void chk_quiet_us(uint32_t us);

#endif
