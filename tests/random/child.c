/*
 * Work in a child process, so that a crash, a leak or a hang is a finding like any other. What runs at the
 * moment stands in shared memory.
 */
#include "driver.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define RUN_SECONDS_MAX 60    /* of processor time for one case, under sanitizers; others may hold it up */
#define WAIT_SECONDS_MAX 240u /* one that waits, by the clock: below the time limit of the tests */
#define FOUND 3               /* exit status: a finding was written down */

__attribute__((visibility("default"))) const char *__ubsan_default_options(void);
__attribute__((visibility("default"))) const char *__asan_default_options(void);

/* The runtime of gcc's undefined behaviour sanitizer ends the process only if it is told to. */
const char *__ubsan_default_options(void)
{
    return "halt_on_error=1";
}

/* A case uses what it freed soon or never, and fresh memory costs a fault for each page. Attributes ask for
 * sizes that no allocator has. Stacks of allocations are short: a finding is replayed with longer ones. The
 * runtime of gcc 12 guesses where the thread-local memory of a library that was opened lies, and ends where
 * the guess is wrong; without the guess the search for leaks looks at less memory, so it finds no less. */
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=16:allocator_may_return_null=1:malloc_context_size=2:"
           "intercept_tls_get_addr=0";
}

/* Operators that run graphs are nodes of nets alone; mxnet.control and exec.subgraph call them so. */
bool fuzz_op_drawn(const tn_op *op)
{
    return !(op->flags & (TN_OP_BACKWARD | TN_OP_INTERNAL)) && op->exec != TN_EXEC_SUBGRAPH;
}

static const fuzz_maker *maker_of(const tn_ctx *ctx)
{
    static const tni_opdef *ops[TN_OPERATORS_MAX];
    static fuzz_maker m;
    const size_t count = tni_opset_count(ctx->ops);

    m = (fuzz_maker){.ops = ops};
    for (size_t i = 0; i < count; i++)
        if (fuzz_op_drawn(tni_opset_at(ctx->ops, i)->op))
            ops[m.op_count++] = tni_opset_at(ctx->ops, i);
    return &m;
}

void fuzz_case_make(const fuzz_work *w, const tn_ctx *ctx, uint64_t number, fuzz_case *c)
{
    fuzz_rng r;

    fuzz_case_init(c, w->seed, number, &r);
    c->mode = w->mode;
    w->program->make(maker_of(ctx), c, &r);
}

static void count(const fuzz_work *w, const tn_ctx *ctx, const fuzz_case *c, bool accepted)
{
    bool live[FUZZ_NODES_MAX];

    fuzz_case_live(c, live);
    for (uint32_t n = 0; n < c->node_count; n++) {
        const tni_opdef *def;

        if (!live[n] || tni_opset_find(ctx->ops, fuzz_text_at(c, c->nodes[n].op), &def))
            continue;
        w->shared->tried_of[def->id]++;
        w->shared->accepted_of[def->id] += accepted;
    }
    w->shared->done++;
    w->shared->accepted += accepted;
}

static void limit(bool on)
{
    const struct itimerval time = {.it_value = {.tv_sec = on ? RUN_SECONDS_MAX : 0}};

    alarm(on ? WAIT_SECONDS_MAX : 0);
    (void)setitimer(ITIMER_PROF, &time, NULL);
}

static int work(const fuzz_work *w)
{
    fuzz_case *c = malloc(sizeof *c);
    fuzz_bench b;
    int found = 0;

    if (!c)
        return 1;
#ifdef TN_TEST_SWITCHES
    tni_cache_keep_nothing(true);
#endif
    fuzz_bench_open(&b, w->mode, !w->program->all_ways && w->mode < 2);
    for (uint64_t n = w->first; n < w->last && !found; n++) {
        fuzz_verdict *v = &w->shared->last[w->job];

        w->shared->current[w->job] = n;
        limit(true);
        if (w->only)
            memcpy(c, w->only, sizeof *c);
        else
            fuzz_case_make(w, b.ctx[0], n, c);
        if (!fuzz_run(&b, c, w->program->all_ways || w->only, v))
            found = FOUND;
        if (!w->only)
            count(w, b.ctx[0], c, v->accepted);
    }
    limit(false);
    if (!found)
        w->shared->current[w->job] = w->last;
    fuzz_bench_close(&b);
    free(c);
    return found;
}

static void died(const fuzz_work *w, int status)
{
    const bool at_end = w->shared->current[w->job] == w->last;
    const int sign = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const char *what = at_end ? "end" : sign == SIGPROF || sign == SIGALRM ? "slow" : "crash";
    fuzz_verdict *v = &w->shared->last[w->job];

    *v = (fuzz_verdict){.accepted = false};
    snprintf(v->kind, sizeof v->kind, "%s", what);
    if (sign)
        snprintf(v->text, sizeof v->text, "%s: the process got signal %d", what, sign);
    else
        snprintf(v->text, sizeof v->text, "%s: the process ended with status %d", what, WEXITSTATUS(status));
}

bool fuzz_child(const fuzz_work *w)
{
    pid_t pid;
    int status = 0;

    w->shared->current[w->job] = w->first;
    fflush(NULL);
    if (!(pid = fork())) {
        if (w->quiet) {
            const int null = open("/dev/null", O_WRONLY);

            (void)dup2(null, STDOUT_FILENO);
            (void)dup2(null, STDERR_FILENO);
        }
        exit(work(w));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        abort();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != FOUND)
        died(w, status);
    return false;
}
