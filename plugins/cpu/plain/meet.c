/*
 * See meet.h. Open meetings are a list, oldest first, under one lock; the first arrival stands for its
 * meeting. The host is never called with that lock held, so a fork may take it.
 *
 * One thread of the plugin, the watcher, ends meetings whose time is over. It sleeps until the end of the
 * oldest one: all wait equally long, so that is the next to end. Each call makes sure that it is there before
 * it joins a meeting, so none is open without it.
 */
#include "meet.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "../common/memory.h"

struct tncpu_meetings {
    const tn_host *host;
    const tn_threads_service *threads;
    uint64_t timeout_ms, number; /* number: of the last meeting */
    pthread_mutex_t lock;
    pthread_cond_t changed; /* there is a meeting, or `closing` */
    tncpu_arrival *oldest;
    bool closing;
    pthread_mutex_t making; /* held while the watcher is made: others wait for the outcome */
    void *watcher;          /* NULL: there is none yet */
};

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sync_init(tncpu_meetings *m)
{
    pthread_condattr_t attr;

    (void)pthread_mutex_init(&m->lock, NULL);
    (void)pthread_mutex_init(&m->making, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&m->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
}

tn_status tncpu_meetings_open(const tn_host *host, tncpu_meetings **out, tn_err *err)
{
    const tn_threads_service *threads = tn_host_service(host, TN_SERVICE_THREADS);
    const tn_options_service *options = tn_host_service(host, TN_SERVICE_OPTIONS);
    int64_t ms = TNCPU_MEET_TIMEOUT_MS;
    tncpu_meetings *m;

    *out = NULL;
    if (!threads || !TN_OFFERS(threads, tn_threads_service, join))
        return TN_OK;
    if (!(m = tncpu_block_alloc(host, sizeof *m)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    if (options && TN_OFFERS(options, tn_options_service, integer) &&
        (options->integer(host, "sync_timeout", TNCPU_MEET_TIMEOUT_MS, &ms) || ms < 1))
        ms = TNCPU_MEET_TIMEOUT_MS;
    m->host = host;
    m->threads = threads;
    m->timeout_ms = (uint64_t)ms;
    sync_init(m);
    *out = m;
    return TN_OK;
}

void tncpu_meetings_close(tncpu_meetings *m)
{
    if (!m)
        return;
    (void)pthread_mutex_lock(&m->lock);
    m->closing = true;
    (void)pthread_cond_signal(&m->changed);
    (void)pthread_mutex_unlock(&m->lock);
    if (m->watcher)
        m->threads->join(m->host, m->watcher);
    (void)pthread_cond_destroy(&m->changed);
    (void)pthread_mutex_destroy(&m->lock);
    (void)pthread_mutex_destroy(&m->making);
    tncpu_block_free(m);
}

/* In a child there is neither the watcher nor anybody who will come. */
void tncpu_meetings_fork(tncpu_meetings *m, uint32_t phase)
{
    if (!m)
        return;
    if (phase == TN_FORK_PREPARE) {
        (void)pthread_mutex_lock(&m->lock);
    } else if (phase == TN_FORK_PARENT) {
        (void)pthread_mutex_unlock(&m->lock);
    } else {
        (void)pthread_mutex_unlock(&m->lock); /* this thread's; what others held begins anew */
        m->watcher = NULL;
        m->oldest = NULL;
        sync_init(m);
    }
}

/* ---- the end of meetings ------------------------------------------------------------------------------ */

void tncpu_meet_end(tncpu_arrival *all, const tncpu_arrival *mine, tn_status st, const tn_err *err)
{
    for (tncpu_arrival *a = all, *next; a; a = next) {
        next = a->next; /* it is gone once it is complete */
        if (a != mine)
            a->x->ops->complete(a->x->call, st, err);
    }
}

/* Takes a meeting out of the list; the lock is held. */
static tncpu_arrival *taken(tncpu_arrival **at)
{
    tncpu_arrival *meeting = *at;

    *at = meeting->later;
    return meeting->first;
}

static tn_status missing(const tncpu_meetings *m, const tncpu_arrival *all, tn_err *err)
{
    char came[160];
    size_t used = 0;
    int64_t count = 0;

    for (const tncpu_arrival *a = all; a; a = a->next, count++)
        if (used < sizeof came - 24)
            used += (size_t)snprintf(came + used, sizeof came - used, "%s%lld", used ? ", " : "",
                                     (long long)a->device);
    return tn_failf(err, TN_E_TIMEOUT,
                    "key=%.64s: only %lld of %lld devices arrived within %llu ms (plugin.cpu.sync_timeout): "
                    "cpu %s; the others failed before, do not make this call, or engine.type is naive",
                    all->key, (long long)count, (long long)all->ndev, (unsigned long long)m->timeout_ms,
                    came);
}

static void watcher_run(void *arg)
{
    tncpu_meetings *m = arg;

    (void)pthread_mutex_lock(&m->lock);
    while (!m->closing) {
        const uint64_t end = m->oldest ? m->oldest->end_ns : 0;
        const struct timespec until = {(time_t)(end / 1000000000u), (long)(end % 1000000000u)};
        tncpu_arrival *all;
        tn_err err;

        if (!end) {
            (void)pthread_cond_wait(&m->changed, &m->lock);
        } else if (now_ns() < end) {
            (void)pthread_cond_timedwait(&m->changed, &m->lock, &until);
        } else {
            all = taken(&m->oldest);
            (void)pthread_mutex_unlock(&m->lock);
            tncpu_meet_end(all, NULL, missing(m, all, &err), &err);
            (void)pthread_mutex_lock(&m->lock);
        }
    }
    (void)pthread_mutex_unlock(&m->lock);
}

/* ---- meeting ------------------------------------------------------------------------------------------ */

static bool has_device(const tncpu_arrival *meeting, int64_t device)
{
    const tncpu_arrival *a = meeting->first;

    while (a && a->device != device)
        a = a->next;
    return a != NULL;
}

static tncpu_arrival **meeting_of(tncpu_meetings *m, const tncpu_arrival *a)
{
    tncpu_arrival **at = &m->oldest;

    while (*at && ((*at)->asked != a->asked || strcmp((*at)->name, a->name) != 0 ||
                   strcmp((*at)->key, a->key) != 0 || has_device(*at, a->device)))
        at = &(*at)->later;
    return at;
}

/* Makes the watcher, unless there is one. Without the lock. */
static tn_status watch(tncpu_meetings *m, tn_err *err)
{
    bool watched;

    (void)pthread_mutex_lock(&m->making);
    if (!m->watcher && m->threads->create(m->host, "tenon-sync", watcher_run, m, &m->watcher))
        m->watcher = NULL;
    watched = m->watcher != NULL;
    (void)pthread_mutex_unlock(&m->making);
    return watched
               ? TN_OK
               : tn_fail(err, TN_E_NOMEM, "the thread that ends the wait for other devices cannot be made");
}

/* By the first arrival. `at` is the end of the list. */
static void meeting_open(tncpu_meetings *m, tncpu_arrival **at, tncpu_arrival *a)
{
    a->end_ns = now_ns() + m->timeout_ms * 1000000u;
    a->number = ++m->number;
    a->come = 0;
    a->first = a->later = NULL;
    *at = a;
    (void)pthread_cond_signal(&m->changed);
}

static void join_in(tncpu_arrival *meeting, tncpu_arrival *a)
{
    tncpu_arrival **at = &meeting->first;

    while (*at && (*at)->device < a->device)
        at = &(*at)->next;
    a->next = *at;
    *at = a;
    a->round = meeting->number;
    meeting->come++;
}

static tn_status unlike(const tncpu_arrival *a, const tncpu_arrival *b, tn_err *err)
{
    if (a->device > b->device)
        return unlike(b, a, err);
    return tn_failf(err, TN_E_ARG,
                    "key=%.64s: cpu %lld has ndev=%lld and %lld channels, cpu %lld has ndev=%lld and %lld",
                    a->key, (long long)a->device, (long long)a->ndev, (long long)a->channels,
                    (long long)b->device, (long long)b->ndev, (long long)b->channels);
}

tn_status tncpu_meet(tncpu_meetings *m, tncpu_arrival *a, tncpu_arrival **all, tn_err *err)
{
    tncpu_arrival **at, *ended = NULL;
    tn_status st = a->ndev > 1 ? watch(m, err) : TN_OK;

    if (st)
        return st;
    a->asked = a->round;
    (void)pthread_mutex_lock(&m->lock);
    at = meeting_of(m, a);
    if (!*at)
        meeting_open(m, at, a);
    if ((*at)->ndev != a->ndev || (*at)->channels != a->channels) {
        st = unlike(a, *at, err);
        ended = taken(at);
    } else {
        join_in(*at, a);
        *all = (*at)->come == a->ndev ? taken(at) : NULL;
        st = *all ? TN_OK : TN_PENDING;
    }
    (void)pthread_mutex_unlock(&m->lock);
    tncpu_meet_end(ended, NULL, st, err);
    return st;
}
