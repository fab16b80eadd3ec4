/*
 * Threads, locks, conditions. Conditions are words that are slept on by the monotonic clock, so setting the
 * wall clock disturbs no wait, and a child needs to make none anew. What a thread wants undone at its end
 * hangs on a list of its own, run by one thread-specific key.
 */
#include <gnu/lib-names.h>

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/base.h"

struct tni_thread {
    pthread_t native;
    tni_thread_fn fn;
    void *arg;
    char name[16];
};

typedef struct exit_hook {
    tni_thread_fn fn;
    void *arg;
    struct exit_hook *next;
} exit_hook;

static atomic_uint made;
static atomic_ullong last_id;
static TN_THREAD_LOCAL_FAST uint64_t own_id;
static pthread_key_t hooks_key;
static pthread_once_t hooks_once = PTHREAD_ONCE_INIT, unwinder_once = PTHREAD_ONCE_INIT;
static int hooks_error;

void tni_spin_slow(atomic_uint *lock)
{
    for (uint32_t spins = 1; atomic_load_explicit(lock, memory_order_relaxed); spins++)
        if (spins % 64 == 0)
            (void)sched_yield(); /* its holder may have lost the processor */
        else
            tni_pause();
}

tn_status tni_mutex_init(tni_mutex *m)
{
    return pthread_mutex_init(&m->native, NULL) ? tni_error(TN_E_NOMEM, "no memory for a lock") : TN_OK;
}

void tni_mutex_fini(tni_mutex *m)
{
    pthread_mutex_destroy(&m->native);
}

TN_NO_THREAD_CHECK void tni_mutex_lock(tni_mutex *m)
{
    tni_hold();
    pthread_mutex_lock(&m->native);
}

TN_NO_THREAD_CHECK bool tni_mutex_trylock(tni_mutex *m)
{
    tni_hold();
    if (pthread_mutex_trylock(&m->native) == 0)
        return true;
    tni_unhold();
    return false;
}

TN_NO_THREAD_CHECK void tni_mutex_unlock(tni_mutex *m)
{
    pthread_mutex_unlock(&m->native);
    tni_unhold();
}

tn_status tni_cond_init(tni_cond *c)
{
    atomic_init(&c->signals, 0u);
    atomic_init(&c->sleepers, 0u);
    return TN_OK;
}

void tni_cond_fini(tni_cond *c)
{
    (void)c;
}

/* The sleeper counts itself, then takes the number of signals;
 * who signals moves it, then looks for sleepers. */
TN_NO_THREAD_CHECK bool tni_cond_wait_until(tni_cond *c, tni_mutex *m, uint64_t deadline_ns)
{
    unsigned signals;
    bool in_time;

    atomic_fetch_add(&c->sleepers, 1u);
    signals = atomic_load(&c->signals);
    tni_mutex_unlock(m);
    in_time = tni_word_wait(&c->signals, signals, deadline_ns);
    atomic_fetch_sub(&c->sleepers, 1u);
    tni_mutex_lock(m);
    return in_time;
}

void tni_cond_wait(tni_cond *c, tni_mutex *m)
{
    (void)tni_cond_wait_until(c, m, 0);
}

static void cond_wake(tni_cond *c, int count)
{
    atomic_fetch_add(&c->signals, 1u);
    if (atomic_load(&c->sleepers))
        tni_word_wake(&c->signals, count);
}

void tni_cond_signal(tni_cond *c)
{
    cond_wake(c, 1);
}

void tni_cond_broadcast(tni_cond *c)
{
    cond_wake(c, INT32_MAX);
}

/* pthread_exit and pthread_cancel, which libraries of plugins call, load libgcc_s and abort the process where
 * they cannot. So it is loaded, for good, while there is room for it. */
static void unwinder_load(void)
{
    (void)dlopen(LIBGCC_S_SO, RTLD_NOW);
}

static void *thread_main(void *arg)
{
    tni_thread *thread = arg;

    pthread_setname_np(pthread_self(), thread->name);
    thread->fn(thread->arg);
    return NULL;
}

tn_status tni_thread_create(const char *name, tni_thread_fn fn, void *arg, tni_thread **out)
{
    tni_thread *thread = tni_zalloc(sizeof *thread);
    sigset_t all, before;
    int error;

    if (!thread)
        return TN_E_NOMEM;
    (void)pthread_once(&unwinder_once, unwinder_load);
    thread->fn = fn;
    thread->arg = arg;
    memcpy(thread->name, name, strnlen(name, sizeof thread->name - 1));
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread->native, NULL, thread_main, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        tni_error(error == EAGAIN ? TN_E_NOMEM : TN_E_IO, "cannot start thread %s: %s", thread->name,
                  error == EAGAIN ? "the system's limit of threads or memory is reached"
                                  : "refused by the system");
        tni_free(thread);
        return error == EAGAIN ? TN_E_NOMEM : TN_E_IO;
    }
    atomic_fetch_add(&made, 1);
    *out = thread;
    return TN_OK;
}

void tni_thread_join(tni_thread *thread)
{
    if (!thread)
        return;
    pthread_join(thread->native, NULL);
    atomic_fetch_sub(&made, 1);
    tni_free(thread);
}

uint64_t tni_thread_id(void)
{
    if (TN_UNLIKELY(!own_id))
        own_id = atomic_fetch_add(&last_id, 1) + 1;
    return own_id;
}

uint32_t tni_thread_count(void)
{
    return atomic_load(&made);
}

static void hooks_run(void *list)
{
    exit_hook *hook = list;

    while (hook) {
        exit_hook *next = hook->next;

        hook->fn(hook->arg);
        tni_free(hook);
        hook = next;
    }
}

static void hooks_make(void)
{
    hooks_error = pthread_key_create(&hooks_key, hooks_run);
}

tn_status tni_thread_on_exit(tni_thread_fn fn, void *arg)
{
    exit_hook *hook;

    pthread_once(&hooks_once, hooks_make);
    if (hooks_error)
        return tni_error(TN_E_NOMEM, "no thread-specific key is left");
    hook = tni_alloc(sizeof *hook);
    if (!hook)
        return TN_E_NOMEM;
    *hook = (exit_hook){.fn = fn, .arg = arg, .next = pthread_getspecific(hooks_key)};
    if (pthread_setspecific(hooks_key, hook)) {
        tni_free(hook);
        return tni_error(TN_E_NOMEM, "out of memory for a thread-specific value");
    }
    return TN_OK;
}
