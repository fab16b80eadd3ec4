/*
 * All open contexts stand in one list for fork(): before it the engines drain and park, after it the parent
 * goes on and the child gets fresh workers with one thread each and host devices only.
 */
#include "context/internal.h"

#include <pthread.h>

#define FORK_LOOK_NS 50000u         /* who forks looks so often whether it may */
#define FORK_SLICE_NS 5000000u      /* at one engine */
#define FORK_GAP_NS 100000000u      /* between two tries, at most */
#define FORK_PATIENCE_NS 125000000u /* of the first try; each further one has twice as much */
#define FORK_DRAIN_NS 32000000000u  /* of the last one, by a thread that can drain the engines */
#define FORK_INSIDE_NS 4000000000u  /* by one inside a callback */

static tni_mutex contexts_lock = TNI_MUTEX_INIT;
static tni_opened *contexts; /* newest first */
static tni_opened *oldest;   /* from prepare to parent or child, as the next two */
static bool fork_drained, fork_still;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* Adds up what the engines have done; a context is not closed while one of them is waited for. */
static bool engines_drain(uint64_t *done)
{
    bool drained = true;

    *done = 0;
    tni_mutex_lock(&contexts_lock);
    for (tni_opened *c = contexts; c; c = c->next) {
        c->pinned = true;
        tni_mutex_unlock(&contexts_lock);
        drained &= tni_engine_fork_drain(c->context.engine, tni_clock_ns() + FORK_SLICE_NS, done);
        tni_mutex_lock(&contexts_lock);
        c->pinned = false;
    }
    tni_mutex_unlock(&contexts_lock);
    return drained;
}

static void engines_unlock(tni_opened *from)
{
    for (tni_opened *c = from; c; c = c->before)
        tni_engine_fork_unlock(c->context.engine);
}

/* The gate is closed to all. Engines are locked from the newest on and given back from the oldest on, so that
 * no lock is taken below one that it stands above. True: it may be forked, and the list's lock is held. */
static bool all_lock(bool drain) TN_NO_THREAD_CHECK
{
    bool locked = true;

    tni_mutex_lock(&contexts_lock);
    oldest = NULL;
    for (tni_opened *c = contexts; c && drain && (locked = tni_engine_fork_lock(c->context.engine));
         c = c->next)
        oldest = c;
    if (locked && tni_fork_alone(drain))
        return true;
    engines_unlock(oldest);
    tni_mutex_unlock(&contexts_lock);
    return false;
}

/* One try. False: something holds on for longer than `patience` without anything having been done meanwhile,
 * or *urgent: another thread is to fork first, since it sits in what we drain. */
static bool fork_try(uint64_t patience, bool drain, bool *urgent)
{
    const unsigned level = drain ? 1 : 2;
    uint64_t until = tni_clock_ns() + patience, before = 0, done = 0;

    tni_fork_close(level);
    while (!(*urgent = drain && tni_fork_urgent()) && tni_clock_ns() < until) {
        const bool drained = !drain || engines_drain(&done);

        until = done == before ? until : tni_clock_ns() + patience;
        before = done;
        if (drained && tni_fork_alone(drain)) {
            tni_fork_close(2);
            if (all_lock(drain))
                return true;
            tni_fork_close(level);
        }
        tni_sleep_ns(FORK_LOOK_NS);
    }
    return false;
}

/* Between tries all others go on: what a thread holds may hang on one that waits at the gate. A wait that
 * nothing ends has its own end: then the child is left with what it finds, and its engines are dead. */
static void fork_prepare(void) TN_NO_THREAD_CHECK
{
    const bool drain = !tni_engine_inside();
    const uint64_t most = drain ? FORK_DRAIN_NS : FORK_INSIDE_NS;
    uint64_t patience = FORK_PATIENCE_NS;
    bool still = false, urgent;

    while (tni_fork_begin(!drain), patience <= most && !(still = fork_try(patience, drain, &urgent))) {
        tni_fork_pause();
        tni_sleep_ns(patience / 4 < FORK_GAP_NS ? patience / 4 : FORK_GAP_NS);
        patience = urgent ? patience : 2 * patience;
    }
    fork_drained = still && drain;
    fork_still = still;
    if (!still) {
        tni_fork_close(2);
        tni_mutex_lock(&contexts_lock);
    }
    for (tni_opened *c = contexts; c; c = c->next) {
        if (still)
            tni_registry_fork(c->context.plugins, TN_FORK_PREPARE);
        oldest = c;
    }
}

static void fork_after(uint32_t phase) TN_NO_THREAD_CHECK
{
    for (tni_opened *c = oldest; c; c = c->before) {
        if (phase == TN_FORK_CHILD)
            tni_engine_forked(c->context.engine, fork_drained);
        if (phase == TN_FORK_CHILD && c->context.exec)
            tni_exec_forked(c->context.exec);
        if (fork_drained)
            tni_engine_fork_unlock(c->context.engine);
    }
    for (tni_opened *c = oldest; c && fork_still; c = c->before)
        tni_registry_fork(c->context.plugins, phase);
    oldest = NULL;
    tni_mutex_unlock(&contexts_lock);
    tni_fork_end(phase == TN_FORK_CHILD);
}

static void fork_parent(void)
{
    fork_after(TN_FORK_PARENT);
}

static void fork_child(void)
{
    fork_after(TN_FORK_CHILD);
}

static void fork_register(void)
{
    (void)pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void tni_opened_add(tni_opened *c)
{
    (void)pthread_once(&fork_once, fork_register);
    tni_mutex_lock(&contexts_lock);
    c->next = contexts;
    if (contexts)
        contexts->before = c;
    contexts = c;
    tni_mutex_unlock(&contexts_lock);
}

void tni_opened_remove(tni_opened *c)
{
    tni_mutex_lock(&contexts_lock);
    while (c->pinned) {
        tni_mutex_unlock(&contexts_lock);
        tni_sleep_ns(FORK_LOOK_NS);
        tni_mutex_lock(&contexts_lock);
    }
    if (c->next)
        c->next->before = c->before;
    if (c->before)
        c->before->next = c->next;
    else
        contexts = c->next;
    tni_mutex_unlock(&contexts_lock);
}
