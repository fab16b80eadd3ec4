/*
 * For defects that keep in one place what each run needs for itself: two runs meet there, however many
 * processors there are and whatever they do meanwhile.
 */
#ifndef TN_DEFECTS_MEET_H
#define TN_DEFECTS_MEET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MEET_MS 40000 /* nobody else comes: against hanging */

/* Called behind the first half of a run, which wrote there. It comes back when another run has written there,
 * too: so of the two that meet first, one at least reads what is the other one's. On the process's first
 * thread, where the kit runs one after the other, and from the first two on, it does nothing. */
static inline void meet(void)
{
    static atomic_uint wrote;
    static atomic_bool met;
    uint32_t own;

    if (syscall(SYS_gettid) == getpid())
        return;
    own = atomic_fetch_add(&wrote, 1) + 1;
    for (int i = 0; i < MEET_MS && !atomic_load(&met) && atomic_load(&wrote) == own; i++)
        (void)usleep(1000);
    atomic_store(&met, true);
}

#endif
