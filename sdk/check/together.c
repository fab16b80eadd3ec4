/*
 * Threads that begin at one moment: each waits until as many wait as could be started.
 */
#include <pthread.h>
#include <stdlib.h>

#include "lab.h"

typedef struct start {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint32_t wanted, waiting, started;
    bool told; /* `started` is known */
    void (*run)(void *arg);
} start;

typedef struct starter {
    pthread_t id;
    start *s;
    void *arg;
} starter;

static void *wait_and_run(void *arg)
{
    const starter *t = arg;
    start *s = t->s;
    bool all;

    (void)pthread_mutex_lock(&s->lock);
    s->waiting++;
    (void)pthread_cond_broadcast(&s->changed);
    while (!s->told || s->waiting < s->started)
        (void)pthread_cond_wait(&s->changed, &s->lock);
    all = s->started == s->wanted;
    (void)pthread_mutex_unlock(&s->lock);
    if (all)
        s->run(t->arg);
    return NULL;
}

uint32_t chk_together(uint32_t count, void (*run)(void *arg), void *const *args)
{
    start s = {.wanted = count, .run = run};
    starter *threads = calloc(count, sizeof *threads);
    uint32_t started = 0;

    if (!threads)
        return 0;
    (void)pthread_mutex_init(&s.lock, NULL);
    (void)pthread_cond_init(&s.changed, NULL);
    for (; started < count; started++) {
        threads[started] = (starter){.s = &s, .arg = args[started]};
        if (pthread_create(&threads[started].id, NULL, wait_and_run, &threads[started]))
            break;
    }
    (void)pthread_mutex_lock(&s.lock);
    s.started = started;
    s.told = true;
    (void)pthread_cond_broadcast(&s.changed);
    (void)pthread_mutex_unlock(&s.lock);
    for (uint32_t k = 0; k < started; k++)
        (void)pthread_join(threads[k].id, NULL);
    (void)pthread_cond_destroy(&s.changed);
    (void)pthread_mutex_destroy(&s.lock);
    free(threads);
    return started;
}
