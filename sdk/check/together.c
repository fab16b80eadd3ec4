/*
 * Threads that begin at one moment.
 */
#include <pthread.h>

#include "lab.h"

#define TEAM_MAX 8u

/* What they wait for: that all of them are there, or that there are too few. */
typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    bool open, all;
} gate;

typedef struct member {
    pthread_t id;
    gate *gate;
    void (*run)(void *arg);
    void *arg;
} member;

static void *member_main(void *arg)
{
    member *m = arg;
    bool all;

    (void)pthread_mutex_lock(&m->gate->lock);
    while (!m->gate->open)
        (void)pthread_cond_wait(&m->gate->opened, &m->gate->lock);
    all = m->gate->all;
    (void)pthread_mutex_unlock(&m->gate->lock);
    if (all)
        m->run(m->arg);
    return NULL;
}

uint32_t chk_together(uint32_t count, void (*run)(void *arg), void *const *args)
{
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};
    member members[TEAM_MAX];
    uint32_t started = 0;

    for (; started < count && started < TEAM_MAX; started++) {
        members[started] = (member){.gate = &g, .run = run, .arg = args[started]};
        if (pthread_create(&members[started].id, NULL, member_main, &members[started]))
            break;
    }
    (void)pthread_mutex_lock(&g.lock);
    g.open = true;
    g.all = started == count;
    (void)pthread_cond_broadcast(&g.opened);
    (void)pthread_mutex_unlock(&g.lock);
    for (uint32_t i = 0; i < started; i++)
        (void)pthread_join(members[i].id, NULL);
    (void)pthread_cond_destroy(&g.opened);
    (void)pthread_mutex_destroy(&g.lock);
    return started;
}
