/*
 * Group load: init and fini, once, again, on hosts that offer little, and where memory fails.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"

#define FIRST_LIMIT_NS 1000000000u /* of the first, on a machine that does other work too */
#define FIRST_TRIES 3
#define TRIES 5
#define ALLOCATIONS_MAX 4096u
#define CYCLES 8

/* How long this thread would have run but had no processor; 0: the system does not say. */
static uint64_t kept_ns(void)
{
    unsigned long long ran, kept = 0;
    FILE *f = fopen("/proc/thread-self/schedstat", "re");

    if (f && fscanf(f, "%llu %llu", &ran, &kept) != 2)
        kept = 0;
    if (f)
        (void)fclose(f);
    return kept;
}

/* Where a stretch of a thread's time began. */
typedef struct stretch {
    uint64_t all, ran, kept;
} stretch;

/* The clock is read outside of the rest here and in stretch_ns: what comes between counts, so no stretch is
 * taken for a shorter one. */
static stretch stretch_begin(void)
{
    stretch s;

    s.all = chk_clock_ns(CLOCK_MONOTONIC);
    s.ran = chk_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    s.kept = kept_ns();
    return s;
}

/* What it took, without what the machine or a sanitizer adds. */
static uint64_t stretch_ns(const stretch *s)
{
    const uint64_t kept = kept_ns() - s->kept, ran = chk_clock_ns(CLOCK_THREAD_CPUTIME_ID) - s->ran,
                   all = chk_clock_ns(CLOCK_MONOTONIC) - s->all;

    return (all > ran + kept ? all - ran - kept : 0) + ran / chk_patience();
}

uint64_t chk_init_ns(chk_env *env, chk_host *host, tn_status *st, tn_err *err)
{
    chk_plugin p = {.descriptor = chk_descriptor(env), .host = host};
    const stretch began = stretch_begin();
    uint64_t took;

    *st = chk_plugin_init(env, &p, err);
    took = stretch_ns(&began);
    if (*st)
        chk_host_accounts(host);
    else
        (void)chk_plugin_close(env, &p);
    return took;
}

static uint64_t open_ns(chk_env *env)
{
    stretch began;
    uint64_t took;
    chk_plugin p;

    (void)chk_descriptor(env);
    began = stretch_begin();
    (void)chk_plugin_open(env, CHK_HOST_EXACT, &p);
    took = stretch_ns(&began);
    (void)chk_plugin_close(env, &p);
    chk_count(env);
    return took;
}

/* The first init of a process of its own; 0: it does not tell, or a debugger is to see it: the case's own
 * process will. */
static uint64_t first_ns(chk_env *env)
{
    uint64_t took = 0;
    int ends[2];
    pid_t pid;

    if (chk_case_of(env)->pipe < 0)
        return 0;
    if (pipe2(ends, O_CLOEXEC) || (pid = fork()) < 0)
        chk_fail(env, "kit", "no process could be started");
    if (!pid) {
        took = open_ns(env);
        (void)!write(ends[1], &took, sizeof took);
        _exit(0);
    }
    (void)close(ends[1]);
    if (read(ends[0], &took, sizeof took) != sizeof took)
        took = 0;
    (void)close(ends[0]);
    (void)waitpid(pid, NULL, 0);
    return took;
}

/* On a busy machine an init may take long by no fault of its own: the fastest of some counts. So it does for
 * the first one of a process, which may take as long as nothing but waiting takes. */
void chk_load_init_time(chk_env *env)
{
    uint64_t fastest = UINT64_MAX, first = UINT64_MAX;

    for (int i = 0; i < FIRST_TRIES && first > FIRST_LIMIT_NS; i++) {
        const uint64_t took = first_ns(env);

        first = took < first ? took : first;
    }
    for (int i = 0; i < TRIES && fastest > CHK_INIT_LIMIT_NS; i++) {
        const uint64_t took = open_ns(env);

        first = first ? first : took;
        fastest = took < fastest ? took : fastest;
    }
    if (fastest > CHK_INIT_LIMIT_NS || first > FIRST_LIMIT_NS)
        chk_fail(
            env, "R8",
            "init takes %llu ms, the first time %llu ms; 100 are allowed: devices, sockets and large files "
            "are opened later",
            (unsigned long long)(fastest / 1000000u), (unsigned long long)(first / 1000000u));
}

void chk_load_init_quiet(chk_env *env)
{
    chk_process *before;
    const char *changed;
    chk_plugin p;

    (void)chk_descriptor(env);
    before = chk_process_snapshot(env);
    (void)chk_plugin_open(env, CHK_HOST_EXACT, &p);
    chk_count(env);
    if ((changed = chk_process_changed(before, CHK_PROCESS_THREADS)))
        chk_fail(env, "R8", "init %s", changed);
    (void)chk_plugin_close(env, &p);
    if ((changed = chk_process_changed(before, CHK_PROCESS_THREADS)))
        chk_fail(env, "R8", "fini %s", changed);
    if ((changed = chk_process_changed(before, 0)))
        chk_fail(env, "R9", "fini %s", changed);
    chk_process_free(before);
}

/* What is opened by dlopen itself: constructors that open, start or change something. */
void chk_load_open_quiet(chk_env *env)
{
    chk_process *before = chk_process_snapshot(env);
    const char *changed;

    (void)chk_descriptor(env);
    chk_count(env);
    if ((changed = chk_process_changed(before, CHK_PROCESS_FILES)))
        chk_fail(env, "R8", "opening the file %s", changed);
    chk_process_free(before);
}

void chk_load_init_again(chk_env *env)
{
    chk_plugin first, second;

    for (int i = 0; i < 3; i++) {
        tn_err err;
        tn_status st = chk_plugin_try(env, CHK_HOST_EXACT, &first, &err);

        if (st)
            chk_fail(env, "R9", "init number %d fails with %s: %s", i + 1, tn_status_name(st), err.message);
        (void)chk_plugin_close(env, &first);
        chk_count(env);
    }
    /* Two hosts in one process: two contexts of one program. */
    (void)chk_plugin_open(env, CHK_HOST_EXACT, &first);
    (void)chk_plugin_open(env, CHK_HOST_EXACT, &second);
    (void)chk_plugin_close(env, &first);
    (void)chk_plugin_close(env, &second);
}

void chk_load_no_services(chk_env *env)
{
    chk_plugin p;
    tn_err err;
    tn_status st = chk_plugin_try(env, CHK_HOST_BARE, &p, &err);

    chk_count(env);
    if (st && !*err.message)
        chk_fail(env, "R3", "init refuses a host without optional services (%s) and does not say why",
                 tn_status_name(st));
    if (st)
        chk_skip(env, "init needs a service: %s", err.message);
    (void)chk_plugin_close(env, &p);
}

/* ---- memory ---- */

void chk_load_init_memory(chk_env *env)
{
    (void)chk_descriptor(env);
    for (uint64_t nth = 1; nth < ALLOCATIONS_MAX; nth++) {
        uint64_t bytes, before, after;
        chk_plugin p = {.descriptor = chk_descriptor(env), .host = chk_host_create(env, CHK_HOST_EXACT)};
        tn_err err;
        tn_status st;
        bool reached;

        chk_host_memory(p.host, &bytes, &before);
        chk_host_fail_at(p.host, nth);
        st = chk_plugin_init(env, &p, &err);
        reached = chk_host_failed(p.host);
        chk_host_fail_at(p.host, 0);
        chk_count(env);
        if (st && !reached)
            chk_fail(env, NULL, "init fails with %s: %s", tn_status_name(st), err.message);
        if (st && st != TN_E_NOMEM)
            chk_fail(env, NULL, "where allocation %llu fails, init gives %s instead of TN_E_NOMEM",
                     (unsigned long long)nth, tn_status_name(st));
        if (!st)
            (void)chk_plugin_close(env, &p);
        else
            chk_host_accounts(p.host);
        chk_host_memory(p.host, &bytes, &after);
        if (after > before && st)
            chk_fail(env, "M-leak", "init that failed for memory leaves %llu blocks behind",
                     (unsigned long long)(after - before));
        if (!reached)
            return;
    }
    chk_fail(env, NULL, "init allocates over %u times", ALLOCATIONS_MAX);
}

/* What each cycle leaves behind; what the first one leaves may be a table made once. */
void chk_memory_lifecycle(chk_env *env)
{
    uint64_t bytes = 0, blocks = 0, now_bytes = 0, now_blocks = 0;
    chk_plugin p;

    for (int i = 0; i < CYCLES; i++) {
        (void)chk_plugin_open(env, CHK_HOST_EXACT, &p);
        (void)chk_plugin_close(env, &p);
        chk_host_memory(p.host, &now_bytes, &now_blocks);
        if (!i) {
            bytes = now_bytes;
            blocks = now_blocks;
        }
        chk_count(env);
    }
    if (now_blocks > blocks)
        chk_fail(env, NULL, "%d times init and fini leave %llu blocks with %llu bytes behind", CYCLES - 1,
                 (unsigned long long)(now_blocks - blocks), (unsigned long long)(now_bytes - bytes));
}
