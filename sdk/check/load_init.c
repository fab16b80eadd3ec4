/*
 * Group load: init and fini, once, again, on hosts that offer little, and where memory fails.
 */
#include <string.h>

#include "internal.h"

#define FIRST_LIMIT_NS 2000000000u /* of the first, on a machine that does other work too */
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

/* The thread's time that is not its own: without a processor, and what a sanitizer adds. */
static uint64_t foreign_ns(void)
{
    const uint64_t ran = chk_clock_ns(CLOCK_THREAD_CPUTIME_ID);

    return kept_ns() + ran - ran / chk_patience();
}

typedef struct stretch {
    uint64_t all, foreign;
} stretch;

/* The clock is read outside of the rest here and in stretch_ns: what comes between counts, so no stretch is
 * taken for a shorter one. */
static stretch stretch_begin(void)
{
    stretch s = {.all = chk_clock_ns(CLOCK_MONOTONIC)};

    s.foreign = foreign_ns();
    return s;
}

static uint64_t stretch_ns(const stretch *s)
{
    const uint64_t foreign = foreign_ns() - s->foreign, all = chk_clock_ns(CLOCK_MONOTONIC) - s->all;

    return all > foreign ? all - foreign : 0;
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

/* The fastest of some counts, since the machine may be busy. The first may load what it needs once. */
void chk_load_init_time(chk_env *env)
{
    const uint64_t first = open_ns(env);
    uint64_t fastest = first;

    for (int i = 1; i < TRIES && fastest > CHK_INIT_LIMIT_NS; i++) {
        const uint64_t took = open_ns(env);

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
        chk_plugin p = {.descriptor = chk_descriptor(env), .host = chk_host_create(env, CHK_HOST_EXACT)};
        tn_err err;
        const uint64_t before = chk_host_memory(p.host, NULL);
        tn_status st;
        bool reached;

        chk_host_fail_at(p.host, nth);
        st = chk_plugin_init(env, &p, &err);
        reached = chk_host_failed(p.host);
        chk_host_fail_at(p.host, 0);
        chk_count(env);
        chk_fail_if(env, st && !reached, NULL, "init fails with %s: %s", tn_status_name(st), err.message);
        if (st && st != TN_E_NOMEM)
            chk_fail(env, NULL, "where allocation %llu fails, init gives %s instead of TN_E_NOMEM",
                     (unsigned long long)nth, tn_status_name(st));
        if (!st)
            (void)chk_plugin_close(env, &p);
        else
            chk_host_accounts(p.host);
        if (st)
            chk_host_left(p.host, before, "init that failed for memory");
        if (!reached)
            return;
    }
    chk_fail(env, NULL, "init allocates over %u times", ALLOCATIONS_MAX);
}

/* What each cycle leaves behind; what the first one leaves may be a table made once. */
void chk_memory_lifecycle(chk_env *env)
{
    uint64_t once = 0;
    chk_plugin p;

    for (int i = 0; i < CYCLES; i++) {
        (void)chk_plugin_open(env, CHK_HOST_EXACT, &p);
        (void)chk_plugin_close(env, &p);
        once = i ? once : chk_host_memory(p.host, NULL);
        chk_count(env);
    }
    chk_host_left(p.host, once, "%d times init and fini", CYCLES - 1);
}
