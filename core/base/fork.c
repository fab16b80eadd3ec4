/*
 * fork(): the child has one thread, so no other thread may be in the middle of something then.
 *
 * Each thread counts what it holds: locks, and rights such as the one to load plugins. A thread that holds
 * nothing yet waits at the gate while somebody forks, one that holds something goes on until it holds
 * nothing. So whoever forks needs to know no lock by name, and takes none; what its own thread holds stays as
 * it is, in the parent and in the child.
 *
 * A count is written by its thread only, with plain stores: the barrier between counting oneself and looking
 * at the gate is asked of the kernel by the forking thread, for all threads at once.
 */
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"

#define BARRIER_NS 1000000u   /* without the kernel's help: what was stored so long ago is seen by all */
#define TURN_NS 1000000u      /* a waiter looks this often whether it is its turn to fork */
#define LET_IN_NS 1000000000u /* those who waited at the gate during one fork come in before the next one */

enum { FORKS_NOT, FORKS_OUTSIDE, FORKS_INSIDE }; /* a callback */

_Alignas(64) atomic_uint tni_fork_gate;
TN_THREAD_LOCAL_FAST tni_holder *tni_holder_mine;
static _Alignas(64) _Atomic(tni_holder *) holders;
static tni_holder spare;    /* of threads for which there was no memory: nobody waits for them */
static atomic_uint waiting; /* threads at the gate */
static atomic_uint turn;    /* 1: somebody forks */
static atomic_uint urgent;  /* threads inside a callback that wait for their turn */
static pthread_key_t leave_key;
static pthread_once_t leave_once = PTHREAD_ONCE_INIT;
static bool leave_key_valid;

/* ---- words to sleep on ----------------------------------------------------------------------------- */

bool tni_word_wait(atomic_uint *word, unsigned value, uint64_t deadline_ns)
{
    struct timespec at = {.tv_sec = (time_t)(deadline_ns / 1000000000u),
                          .tv_nsec = (long)(deadline_ns % 1000000000u)};

    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, deadline_ns ? &at : NULL, NULL,
                   FUTEX_BITSET_MATCH_ANY) == 0 ||
           !deadline_ns || tni_clock_ns() < deadline_ns;
}

void tni_word_wake(atomic_uint *word, int count)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

/* ---- holders --------------------------------------------------------------------------------------- */

static void holder_leave(void *holder)
{
    tni_holder *h = holder;

    tni_holder_mine = NULL;
    h->passes = 0;
    atomic_store(&h->holds, 0u);
    atomic_store(&h->used, false);
}

static void leave_key_make(void)
{
    leave_key_valid = pthread_key_create(&leave_key, holder_leave) == 0;
}

tni_holder *tni_holder_enter(void)
{
    tni_holder *h;
    bool used;

    for (h = atomic_load(&holders); h; h = h->next)
        if (used = false, atomic_compare_exchange_strong(&h->used, &used, true))
            break;
    if (!h && (h = aligned_alloc(_Alignof(tni_holder), sizeof *h))) {
        memset(h, 0, sizeof *h);
        atomic_init(&h->used, true);
        h->next = atomic_load(&holders);
        while (!atomic_compare_exchange_weak(&holders, &h->next, h))
            ;
    }
    tni_holder_mine = h ? h : &spare;
    (void)pthread_once(&leave_once, leave_key_make);
    if (h && leave_key_valid)
        (void)pthread_setspecific(leave_key, h); /* refused: it stays behind, holding nothing */
    return tni_holder_mine;
}

static tni_holder *mine(void)
{
    return tni_holder_mine ? tni_holder_mine : tni_holder_enter();
}

static bool closed_to(const tni_holder *h, unsigned *gate)
{
    *gate = atomic_load(&tni_fork_gate);
    return *gate > (h->passes ? 1u : 0u) && !atomic_load(&h->forks) && h != &spare;
}

void tni_hold_wait(tni_holder *h)
{
    unsigned gate;

    if (!closed_to(h, &gate))
        return;
    atomic_fetch_add(&waiting, 1u);
    do {
        atomic_store(&h->holds, 0u);
        (void)tni_word_wait(&tni_fork_gate, gate, 0);
        atomic_store(&h->holds, 1u);
    } while (closed_to(h, &gate));
    atomic_fetch_sub(&waiting, 1u);
}

void tni_hold_pass(bool on)
{
    mine()->passes += on ? 1u : -1u;
}

bool tni_hold_waits(void)
{
    unsigned gate;

    return !atomic_load_explicit(&mine()->holds, memory_order_relaxed) && closed_to(mine(), &gate);
}

/* ---- who forks ------------------------------------------------------------------------------------- */

void tni_everywhere(void)
{
    if (!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) ||
        (!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) &&
         !syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0)))
        return;
    tni_sleep_ns(BARRIER_NS);
}

void tni_fork_close(unsigned level)
{
    const unsigned before = atomic_load(&tni_fork_gate);
    const uint64_t until = tni_clock_ns() + LET_IN_NS;

    while (!before && level && atomic_load(&waiting) && tni_clock_ns() < until)
        tni_sleep_ns(BARRIER_NS / 20);
    atomic_store(&tni_fork_gate, level);
    if (level > before)
        tni_everywhere();
    if (level < before)
        tni_word_wake(&tni_fork_gate, INT32_MAX);
}

void tni_fork_begin(bool first)
{
    unsigned none = 0;

    atomic_store(&mine()->forks, first ? FORKS_INSIDE : FORKS_OUTSIDE);
    atomic_fetch_add(&urgent, first);
    while ((!first && atomic_load(&urgent)) || !atomic_compare_exchange_strong(&turn, &none, 1u)) {
        none = 0;
        (void)tni_word_wait(&turn, 1u, tni_clock_ns() + TURN_NS);
    }
    atomic_fetch_sub(&urgent, first);
}

bool tni_fork_urgent(void)
{
    return atomic_load(&urgent) != 0;
}

void tni_fork_pause(void)
{
    tni_fork_close(0);
    atomic_store(&turn, 0u);
    tni_word_wake(&turn, INT32_MAX);
}

/* What a callback's thread holds may be variables of an engine: the child of a thread that drained would wait
 * for them for ever, where that of another callback has dead engines anyway. */
bool tni_fork_alone(bool drained)
{
    for (const tni_holder *h = atomic_load(&holders); h; h = h->next) {
        const unsigned forks = atomic_load(&h->forks);

        if (h != tni_holder_mine && atomic_load(&h->holds) && (!forks || (drained && forks == FORKS_INSIDE)))
            return false;
    }
    return true;
}

void tni_fork_end(bool child)
{
    for (tni_holder *h = atomic_load(&holders); child && h; h = h->next)
        if (h != tni_holder_mine) {
            atomic_store(&h->holds, 0u);
            atomic_store(&h->forks, FORKS_NOT);
            h->passes = 0;
            atomic_store(&h->used, false);
        }
    if (child) {
        atomic_store(&waiting, 0u);
        atomic_store(&urgent, 0u);
    }
    atomic_store(&mine()->forks, FORKS_NOT);
    tni_fork_pause();
}
