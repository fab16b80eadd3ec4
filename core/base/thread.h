/*
 * Locks, conditions and threads: POSIX threads under names that clang's -Wthread-safety understands. Included
 * by base.h, which declares the three types.
 */
#ifndef TN_BASE_THREAD_H
#define TN_BASE_THREAD_H

#include <pthread.h>

/*
 * On a member: which lock guards it. Said to the reader only: in C, clang before version 19 cannot name one
 * member of a struct in an attribute of another. The function attributes below are checked; they stand behind
 * a prototype.
 */
#define TN_GUARDED_BY(x)

#if defined(__clang__)
#define TN_CAPABILITY_TYPE(name) __attribute__((capability(name)))
#define TN_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define TN_EXCLUDES(...) __attribute__((locks_excluded(__VA_ARGS__)))
#define TN_ACQUIRE(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define TN_RELEASE(...) __attribute__((release_capability(__VA_ARGS__)))
#define TN_TRY_ACQUIRE(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define TN_NO_THREAD_CHECK __attribute__((no_thread_safety_analysis))
#else
#define TN_CAPABILITY_TYPE(name)
#define TN_REQUIRES(...)
#define TN_EXCLUDES(...)
#define TN_ACQUIRE(...)
#define TN_RELEASE(...)
#define TN_TRY_ACQUIRE(...)
#define TN_NO_THREAD_CHECK
#endif

/*
 * A thread-local of a few bytes on a hot path: one instruction instead of a call. A library that is opened at
 * run time shares some 500 bytes of such memory with all others, so nothing larger than a few words uses it.
 */
#define TN_THREAD_LOCAL_FAST _Thread_local __attribute__((tls_model("initial-exec")))

struct TN_CAPABILITY_TYPE("mutex") tni_mutex {
    pthread_mutex_t native;
};
#define TNI_MUTEX_INIT                                                                                       \
    {                                                                                                        \
        PTHREAD_MUTEX_INITIALIZER                                                                            \
    }

/* A word that moves with each signal: no lock of its own, so that fork() cannot leave one taken. */
struct tni_cond {
    atomic_uint signals, sleepers;
};

/*
 * fork.c: what a thread holds. Every lock counts, and so does every right that a child must not find taken.
 * The first thing held waits while somebody forks, further ones never do: nobody waits at the gate holding
 * something. A spin lock under which a tni_mutex may be taken stands inside a tni_hold.
 */
typedef struct tni_holder {
    _Alignas(64) atomic_uint holds; /* written by its thread */
    unsigned passes;                /* its thread's */
    atomic_uint forks;              /* FORKS_…: inside fork(), or waiting for its turn: it stands still */
    atomic_bool used;
    struct tni_holder *next; /* set once */
} tni_holder;

/* 0: open. 1: somebody forks; who does the work that the fork waits for passes. 2: closed to all. */
extern atomic_uint tni_fork_gate;
extern TN_THREAD_LOCAL_FAST tni_holder *tni_holder_mine;
tni_holder *tni_holder_enter(void);
void tni_hold_wait(tni_holder *h);

static inline void tni_hold(void)
{
    tni_holder *h = TN_LIKELY(tni_holder_mine != NULL) ? tni_holder_mine : tni_holder_enter();
    const unsigned before = atomic_load_explicit(&h->holds, memory_order_relaxed);

    atomic_store_explicit(&h->holds, before + 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* whoever forks supplies the other half: membarrier */
    if (TN_UNLIKELY(atomic_load_explicit(&tni_fork_gate, memory_order_relaxed)) && !before)
        tni_hold_wait(h);
}

static inline void tni_unhold(void) /* by the thread that called tni_hold */
{
    tni_holder *h = tni_holder_mine;

    atomic_store_explicit(&h->holds, atomic_load_explicit(&h->holds, memory_order_relaxed) - 1,
                          memory_order_release);
}

static inline void tni_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* A lock for a few instructions is a word, 0 while it is free. It stands inside a tni_hold. */
void tni_spin_slow(atomic_uint *lock); /* waits until it looks free */

static inline bool tni_spin_try(atomic_uint *lock)
{
    return !atomic_load_explicit(lock, memory_order_relaxed) &&
           !atomic_exchange_explicit(lock, 1u, memory_order_acquire);
}

static inline void tni_spin_lock(atomic_uint *lock)
{
    while (TN_UNLIKELY(atomic_exchange_explicit(lock, 1u, memory_order_acquire)))
        tni_spin_slow(lock);
}

static inline void tni_spin_unlock(atomic_uint *lock)
{
    atomic_store_explicit(lock, 0u, memory_order_release);
}

void tni_hold_pass(bool on);         /* the thread passes gate 1 from now on: a fork may wait for it. Nests */
bool tni_hold_waits(void);           /* whether tni_hold would wait now */
void tni_fork_begin(bool first);     /* waits for its turn; `first`: before those that drain */
void tni_fork_close(unsigned level); /* the gate; by whose turn it is, as all of these */
/* No other thread holds anything but, unless `drained`, those that are to fork from inside a callback. */
bool tni_fork_alone(bool drained);
bool tni_fork_urgent(void);    /* somebody waits who comes first */
void tni_fork_pause(void);     /* opens the gate and gives the turn away: begin again */
void tni_fork_end(bool child); /* the same, and the thread is outside of fork() */
/* What any thread stored before is seen by us, and what we stored by any thread that goes on: a barrier that
 * common paths need not have. */
void tni_everywhere(void);
/* Sleeps while `*word` is `value`, until it is woken, or for nothing.
 * False: the deadline passed (0: none). */
bool tni_word_wait(atomic_uint *word, unsigned value, uint64_t deadline_ns);
void tni_word_wake(atomic_uint *word, int count);

tn_status tni_mutex_init(tni_mutex *m); /* TN_OK or TN_E_NOMEM */
void tni_mutex_fini(tni_mutex *m);
void tni_mutex_lock(tni_mutex *m) TN_ACQUIRE(m);
bool tni_mutex_trylock(tni_mutex *m) TN_TRY_ACQUIRE(true, m);
void tni_mutex_unlock(tni_mutex *m) TN_RELEASE(m);

tn_status tni_cond_init(tni_cond *c); /* TN_OK */
void tni_cond_fini(tni_cond *c);
void tni_cond_wait(tni_cond *c, tni_mutex *m) TN_REQUIRES(m);
/* False: the deadline (tni_clock_ns) passed. True: woken, maybe for nothing: test the condition again. */
bool tni_cond_wait_until(tni_cond *c, tni_mutex *m, uint64_t deadline_ns) TN_REQUIRES(m);
void tni_cond_signal(tni_cond *c); /* with the mutex held */
void tni_cond_broadcast(tni_cond *c);

/*
 * A thread runs `fn(arg)` with all signals blocked, so that the program's handlers stay on the program's
 * threads. `name` is cut to 15 bytes. Each thread is joined exactly once; join frees it.
 */
typedef void (*tni_thread_fn)(void *arg);
tn_status tni_thread_create(const char *name, tni_thread_fn fn, void *arg, tni_thread **out);
void tni_thread_join(tni_thread *thread); /* takes NULL */
uint64_t tni_thread_id(void);             /* of the calling thread: from 1, never used twice in a process */
uint32_t tni_thread_count(void);          /* threads made here and not joined yet */
/* Calls fn(arg) when the calling thread ends, last registered first; on any thread but the process's last. */
tn_status tni_thread_on_exit(tni_thread_fn fn, void *arg);

#endif
