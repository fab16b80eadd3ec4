/*
 * A case in two processes. They part before either has a context, a thread or the plugin. The second one does
 * what the test tells it, leaves notes in memory that both have at the same address, and ends; the first one
 * waits for that and reads them.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"

#define ROOM_BYTES ((uint64_t)16 << 20)
#define NOTES_MAX 16u

/* Of both: but for `second`, `ended` and `pid`, which each knows for itself. */
typedef struct shared {
    chk_verdict verdict; /* of the second */
    uint32_t count;
    struct {
        uint32_t name;
        const void *what;
    } notes[NOTES_MAX];
    uint64_t used;
    _Alignas(16) char room[ROOM_BYTES];
} shared;

struct chk_twin {
    shared *both;
    pid_t pid; /* of the second, as the first knows it */
    bool second, ended;
};

/* It ends with the first one, and holds nothing that tells the runner whether that one lives. */
static void second_settle(chk_case *c, chk_verdict *verdict, pid_t first)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != first)
        _exit(0);
    if (c->pipe >= 0)
        (void)close(c->pipe);
    c->pipe = -1;
    c->twin = verdict;
}

void chk_twin_part(chk_env *env)
{
    static chk_twin twin;
    const pid_t first = getpid();
    shared *both =
        mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    chk_fail_if(env, both == MAP_FAILED, "kit", "out of memory");
    (void)fflush(NULL);
    twin = (chk_twin){.both = both, .pid = fork()};
    chk_fail_if(env, twin.pid < 0, "kit", "no process could be started");
    env->twin = &twin;
    twin.second = !twin.pid;
    if (twin.second)
        second_settle(chk_case_of(env), &both->verdict, first);
}

bool chk_twin_is_second(const chk_env *env)
{
    return env->twin && env->twin->second;
}

void *chk_twin_take(chk_env *env, uint64_t bytes)
{
    shared *both = env->twin->both;
    const uint64_t at = both->used;

    if (bytes > ROOM_BYTES - at - 16)
        return NULL;
    both->used += (bytes + 15) / 16 * 16;
    return both->room + at;
}

void chk_twin_note(chk_env *env, uint32_t name, const void *what)
{
    shared *both = env->twin->both;

    if (both->count < NOTES_MAX) {
        both->notes[both->count].name = name;
        both->notes[both->count++].what = what;
    }
}

void chk_twin_await(chk_env *env)
{
    static const char *const who = "another process, with the problems in another order,";
    chk_twin *t = env->twin;
    int status = 0;

    if (!t || t->second || t->ended)
        return;
    t->ended = true;
    while (waitpid(t->pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status))
        chk_fail(env, NULL, "%s died of signal %d (%s)", who, WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status))
        chk_fail(env, NULL, "%s was ended with code %d", who, WEXITSTATUS(status));
    if (t->both->verdict.result == CHK_FAIL)
        chk_fail(env, t->both->verdict.rule, "in another process, with the problems in another order: %.700s",
                 t->both->verdict.message);
}

const void *chk_twin_read(chk_env *env, uint32_t name)
{
    const shared *both = env->twin->both;

    chk_twin_await(env);
    for (uint32_t i = 0; i < both->count; i++)
        if (both->notes[i].name == name)
            return both->notes[i].what;
    return NULL;
}
