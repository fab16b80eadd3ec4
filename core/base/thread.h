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

struct tni_cond {
    pthread_cond_t native; /* on the monotonic clock: made by tni_cond_init only */
};

tn_status tni_mutex_init(tni_mutex *m); /* TN_OK or TN_E_NOMEM */
void tni_mutex_fini(tni_mutex *m);
void tni_mutex_lock(tni_mutex *m) TN_ACQUIRE(m);
bool tni_mutex_trylock(tni_mutex *m) TN_TRY_ACQUIRE(true, m);
void tni_mutex_unlock(tni_mutex *m) TN_RELEASE(m);

tn_status tni_cond_init(tni_cond *c);
void tni_cond_fini(tni_cond *c);
void tni_cond_wait(tni_cond *c, tni_mutex *m) TN_REQUIRES(m);
/* False: the deadline (tni_clock_ns) passed. True: woken, maybe for nothing: test the condition again. */
bool tni_cond_wait_until(tni_cond *c, tni_mutex *m, uint64_t deadline_ns) TN_REQUIRES(m);
void tni_cond_signal(tni_cond *c);
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
