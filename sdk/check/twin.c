/*
 * A case in two processes. They part before either has a context, a thread or the plugin. The second one does
 * what the test tells it, writes notes and ends; the first one waits for that and reads them.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"

#define NOTES_BYTES ((size_t)16 << 20)

typedef struct note_head {
    uint32_t name, taken; /* taken: 0 behind the last note */
    uint64_t bytes;
} note_head;

/* Shared by both. */
struct chk_twin {
    pid_t pid;   /* of the second, as the first knows it */
    bool second; /* in the memory of each, see chk_twin_part */
    int status;
    bool ended;
    size_t used;
    unsigned char *notes;
    chk_verdict *verdict; /* of the second */
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

bool chk_twin_part(chk_env *env)
{
    static chk_twin twin;
    pid_t first;
    unsigned char *map = mmap(NULL, NOTES_BYTES + sizeof(chk_verdict), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (map == MAP_FAILED)
        chk_fail(env, "kit", "out of memory");
    twin = (chk_twin){.notes = map, .verdict = (chk_verdict *)(void *)(map + NOTES_BYTES)};
    env->twin = &twin;
    (void)fflush(NULL);
    first = getpid();
    twin.pid = fork();
    if (twin.pid < 0)
        chk_fail(env, "kit", "no process could be started");
    twin.second = twin.pid == 0;
    if (twin.second)
        second_settle(chk_case_of(env), twin.verdict, first);
    return twin.second;
}

bool chk_twin_is_second(const chk_env *env)
{
    return env->twin && env->twin->second;
}

void *chk_twin_note(chk_env *env, uint32_t name, uint64_t bytes)
{
    chk_twin *t = env->twin;
    const uint64_t room = (bytes + 15u) / 16u * 16u;
    note_head *head = (note_head *)(void *)(t->notes + t->used);

    if (room > NOTES_BYTES - t->used - 2 * sizeof *head)
        return NULL;
    *head = (note_head){name, 1, bytes};
    t->used += sizeof *head + (size_t)room;
    return head + 1;
}

void chk_twin_await(chk_env *env)
{
    chk_twin *t = env->twin;

    if (!t || t->second || t->ended)
        return;
    t->ended = true;
    while (waitpid(t->pid, &t->status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(t->status))
        chk_fail(env, NULL, "another process, with the problems in another order, died of signal %d (%s)",
                 WTERMSIG(t->status), strsignal(WTERMSIG(t->status)));
    if (WEXITSTATUS(t->status))
        chk_fail(env, NULL, "another process, with the problems in another order, was ended with code %d",
                 WEXITSTATUS(t->status));
    if (t->verdict->result == CHK_FAIL)
        chk_fail(env, t->verdict->rule, "in another process, with the problems in another order: %.700s",
                 t->verdict->message);
}

const void *chk_twin_read(chk_env *env, uint32_t name, uint64_t *bytes)
{
    const chk_twin *t = env->twin;

    chk_twin_await(env);
    for (size_t at = 0; at < NOTES_BYTES;) {
        const note_head *head = (const note_head *)(const void *)(t->notes + at);

        if (!head->taken)
            break;
        *bytes = head->bytes;
        if (head->name == name)
            return head + 1;
        at += sizeof *head + (size_t)((head->bytes + 15u) / 16u * 16u);
    }
    return NULL;
}
