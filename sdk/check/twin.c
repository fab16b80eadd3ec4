/*
 * Cases in two processes. They part before either has a context, a thread or the plugin, and then run the
 * same cases, one after the other. The second one does what the test tells it, leaves notes in memory that
 * both have at the same address, and writes a byte into a pipe when it is through with a case; the first one
 * waits for that and reads them. The second one ends with the first case that fails in it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"

#define ROOM_BYTES ((uint64_t)16 << 20)
#define NOTES_MAX 16u

/* What the second process says of one case. */
typedef struct notes {
    uint32_t count;
    struct {
        uint32_t name;
        const void *what;
    } note[NOTES_MAX];
    uint64_t used;
    _Alignas(16) char room[ROOM_BYTES];
} notes;

typedef struct shared {
    chk_verdict verdict; /* of the second process, if a case fails in it */
    notes cases[CHK_TWIN_CASES];
} shared;

/* Each process has its own. */
struct chk_twin {
    shared *both;
    pid_t pid;      /* of the second, as the first knows it */
    int pipe;       /* the first reads, the second writes: a byte for each case */
    uint32_t at;    /* number of the case */
    uint32_t ended; /* cases that the second is through with, as the first knows it */
    bool second;
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
    shared *both;
    int ends[2];

    if (env->twin) { /* the next case */
        chk_fail_if(env, ++env->twin->at == CHK_TWIN_CASES, "kit", "too many cases for two processes");
        return;
    }
    both =
        mmap(NULL, sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    chk_fail_if(env, both == MAP_FAILED || pipe2(ends, O_CLOEXEC), "kit", "out of memory");
    (void)fflush(NULL);
    twin = (chk_twin){.both = both, .pid = fork()};
    chk_fail_if(env, twin.pid < 0, "kit", "no process could be started");
    env->twin = &twin;
    twin.second = !twin.pid;
    twin.pipe = ends[twin.second];
    (void)close(ends[!twin.second]);
    if (twin.second)
        second_settle(chk_case_of(env), &both->verdict, first);
}

void chk_twin_end(chk_env *env)
{
    if (!chk_twin_is_second(env))
        return;
    if (chk_case_of(env)->verdict.result == CHK_FAIL || write(env->twin->pipe, "", 1) < 1)
        _exit(0);
}

bool chk_twin_is_second(const chk_env *env)
{
    return env->twin && env->twin->second;
}

void *chk_twin_take(chk_env *env, uint64_t bytes)
{
    notes *n = &env->twin->both->cases[env->twin->at];
    const uint64_t at = n->used;

    if (bytes > ROOM_BYTES - at - 16)
        return NULL;
    n->used += (bytes + 15) / 16 * 16;
    return n->room + at;
}

void chk_twin_note(chk_env *env, uint32_t name, const void *what)
{
    notes *n = &env->twin->both->cases[env->twin->at];

    if (n->count < NOTES_MAX) {
        n->note[n->count].name = name;
        n->note[n->count++].what = what;
    }
}

/* False: the second process ended before it was through with the case. */
static bool second_is_through(chk_twin *t)
{
    char byte;
    ssize_t n;

    while (t->ended <= t->at) {
        n = read(t->pipe, &byte, 1);
        if (!n || (n < 0 && errno != EINTR))
            return false;
        t->ended += n > 0;
    }
    return true;
}

/* How it ended. */
static int second_status(const chk_twin *t)
{
    int status = 0;

    while (waitpid(t->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

void chk_twin_join(chk_env *env)
{
    if (env->twin && !env->twin->second)
        (void)second_status(env->twin);
}

void chk_twin_await(chk_env *env)
{
    static const char *const who = "another process, with the problems in another order,";
    chk_twin *t = env->twin;
    int status;

    if (!t || t->second || second_is_through(t))
        return;
    status = second_status(t);
    if (WIFSIGNALED(status))
        chk_fail(env, NULL, "%s died of signal %d (%s)", who, WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (t->both->verdict.result == CHK_FAIL)
        chk_fail(env, t->both->verdict.rule, "in another process, with the problems in another order: %.700s",
                 t->both->verdict.message);
    chk_fail(env, NULL, "%s was ended with code %d", who, WEXITSTATUS(status));
}

const void *chk_twin_read(chk_env *env, uint32_t name)
{
    const notes *n = &env->twin->both->cases[env->twin->at];

    chk_twin_await(env);
    for (uint32_t i = 0; i < n->count; i++)
        if (n->note[i].name == name)
            return n->note[i].what;
    return NULL;
}
