/*
 * Threads that begin at one moment. They are started once and wait for the next call: a test runs many small
 * problems, and starting threads would be most of what they cost.
 */
#include <pthread.h>

#include "lab.h"

#define TEAM_MAX 8u

typedef struct member {
    pthread_t id;
    uint32_t index;
    uint64_t seen; /* the last round that it need not run */
} member;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t begins, ended;
    member members[TEAM_MAX];
    uint32_t count;        /* threads that were started */
    uint32_t wanted, left; /* of this round: threads, and those that still run */
    uint64_t round;
    bool ends;
    void (*run)(void *arg);
    void *const *args;
} team = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .begins = PTHREAD_COND_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

static void *member_main(void *arg)
{
    member *m = arg;

    (void)pthread_mutex_lock(&team.lock);
    while (!team.ends) {
        if (m->seen == team.round) {
            (void)pthread_cond_wait(&team.begins, &team.lock);
            continue;
        }
        m->seen = team.round;
        if (m->index >= team.wanted)
            continue;
        (void)pthread_mutex_unlock(&team.lock);
        team.run(team.args[m->index]);
        (void)pthread_mutex_lock(&team.lock);
        if (!--team.left)
            (void)pthread_cond_signal(&team.ended);
    }
    (void)pthread_mutex_unlock(&team.lock);
    return NULL;
}

uint32_t chk_together(uint32_t count, void (*run)(void *arg), void *const *args)
{
    uint32_t started;

    (void)pthread_mutex_lock(&team.lock);
    for (; team.count < count && team.count < TEAM_MAX; team.count++) {
        member *m = &team.members[team.count];

        m->index = team.count;
        m->seen = team.round;
        if (pthread_create(&m->id, NULL, member_main, m))
            break;
    }
    started = team.count < count ? team.count : count;
    if (count && started == count) {
        team.run = run;
        team.args = args;
        team.wanted = team.left = count;
        team.round++;
        (void)pthread_cond_broadcast(&team.begins);
        while (team.left)
            (void)pthread_cond_wait(&team.ended, &team.lock);
    }
    (void)pthread_mutex_unlock(&team.lock);
    return started;
}

void chk_together_end(void)
{
    (void)pthread_mutex_lock(&team.lock);
    team.ends = true;
    (void)pthread_cond_broadcast(&team.begins);
    (void)pthread_mutex_unlock(&team.lock);
    for (; team.count; team.count--)
        (void)pthread_join(team.members[team.count - 1].id, NULL);
    team.ends = false;
}
