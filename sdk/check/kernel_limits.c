/*
 * Memory that comes back, memory that is not there, data types and sizes that a kernel never said it takes,
 * what it leaves behind in the process, hosts older and newer than it.
 */
#include <string.h>
#include <unistd.h>

#include "lab.h"
#include "waiting.h"

#define LATER_MS 2000u /* for what a device frees a little later */

static const chk_form plain_form = {.mode = TN_MODE_WRITE, .fill = 0x3c};

/* ---- memory comes back ------------------------------------------------------------------------------- */

typedef struct leak {
    uint32_t left, rounds;
} leak;

/* What the process wrote to, here or swapped out; pages of files come and go. */
static uint64_t own_pages(void)
{
    unsigned long long kib, sum = 0;
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "RssAnon: %llu", &kib) == 1 || sscanf(line, "VmSwap: %llu", &kib) == 1)
            sum += kib;
    if (f)
        (void)fclose(f);
    return sum * 1024 / (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Blocks that the plugin holds. A device may free what a stream is through with a little later, so more than
 * `most` are looked at again. */
static uint64_t blocks_held(chk_lab *lab, uint64_t most, uint64_t *bytes)
{
    const struct timespec end = chk_deadline(LATER_MS);
    uint64_t blocks;

    do
        blocks = chk_host_memory(lab->plugin.host, bytes);
    while (lab->device && blocks > most && chk_pause(&end));
    return blocks;
}

static void rounds_run(chk_lab *lab, const chk_problem *p, uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        const chk_mark mark = chk_mark_set(&lab->arena);
        chk_node *n = chk_take(&lab->arena, sizeof *n);

        if (chk_node_open(lab, &lab->side, p, &plain_form, n) == TN_OK)
            (void)chk_node_run(n);
        chk_node_close(n);
        chk_mark_back(&lab->arena, mark);
    }
}

static bool leak_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    leak *l = arg;
    uint64_t bytes[2], blocks[2], pages;

    if (!chk_host_would_run(lab, p))
        return true;
    rounds_run(lab, p, 20); /* what is made once is made */
    blocks[0] = chk_host_memory(lab->plugin.host, &bytes[0]);
    pages = own_pages();
    rounds_run(lab, p, l->rounds);
    blocks[1] = blocks_held(lab, blocks[0], &bytes[1]);
    if (blocks[1] > blocks[0])
        chk_fail(lab->env, NULL,
                 "%u times prepare, run and release leave %llu blocks with %lld bytes more than before (%s)",
                 l->rounds, (unsigned long long)(blocks[1] - blocks[0]), (long long)(bytes[1] - bytes[0]),
                 p->text);
    if (own_pages() > pages + 512 + l->rounds / 2)
        chk_fail(lab->env, NULL, "%u times prepare, run and release make the process %llu pages larger (%s)",
                 l->rounds, (unsigned long long)(own_pages() - pages), p->text);
    chk_count(lab->env);
    return --l->left > 0;
}

static bool once_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    (void)arg;
    if (chk_host_would_run(lab, p))
        rounds_run(lab, p, 1);
    return true;
}

static void once_each(chk_lab *lab)
{
    chk_problems(lab, CHK_PROBLEMS_FEW, once_visit, NULL);
    chk_problems(lab, CHK_PROBLEMS_BROAD, once_visit, NULL);
}

/* What went through all problems once keeps nothing of another time. */
static void passes_check(chk_lab *lab, void (*pass)(chk_lab *lab), const char *what)
{
    uint64_t bytes[2], blocks[2];

    pass(lab);
    blocks[0] = chk_host_memory(lab->plugin.host, &bytes[0]);
    pass(lab);
    blocks[1] = blocks_held(lab, blocks[0], &bytes[1]);
    if (blocks[1] > blocks[0])
        chk_fail(lab->env, "K-leak", "%s leaves %llu blocks with %lld bytes more than before", what,
                 (unsigned long long)(blocks[1] - blocks[0]), (long long)(bytes[1] - bytes[0]));
}

void chk_kernel_leak(chk_env *env)
{
    leak l = {.left = env->sizes ? 10 : 1, .rounds = env->sizes ? 1000 : 250};
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    chk_problems(&lab, CHK_PROBLEMS_FEW, leak_visit, &l);
    passes_check(&lab, once_each, "prepare, run and release, once for each problem,");
    chk_lab_close(&lab);
}

/* ---- memory that is not there ------------------------------------------------------------------------ */

#define NTH_MAX 200

/* A problem in one form. A forward that it needs was opened before: its allocations do not count. */
typedef struct nomem {
    chk_lab *lab;
    const chk_problem *p;
    chk_form form;
    chk_outputs want; /* with all the memory there is */
} nomem;

static void status_check(const nomem *t, tn_status st, const char *what, uint64_t nth)
{
    if (st != TN_E_NOMEM && st != TN_OK)
        chk_fail(t->lab->env, NULL, "allocation %llu fails, and %s gives %s, not TN_E_NOMEM (%s)",
                 (unsigned long long)nth, what, tn_status_name(st), t->p->text);
}

static void balance_check(const nomem *t, uint64_t before, uint64_t nth, const char *what)
{
    const uint64_t blocks = blocks_held(t->lab, before, NULL);

    if (blocks > before)
        chk_fail(t->lab->env, NULL, "allocation %llu fails in %s, and %llu blocks are lost (%s)",
                 (unsigned long long)nth, what, (unsigned long long)(blocks - before), t->p->text);
}

/* What went well although an allocation failed must be right. */
static void result_check(const nomem *t, chk_node *n, uint64_t nth)
{
    chk_same(n, &t->want, false,
             chk_text(&n->lab->arena, "allocation %llu failed, and run says TN_OK", (unsigned long long)nth));
}

static bool nomem_prepare(const nomem *t, uint64_t nth)
{
    chk_host *host = t->lab->plugin.host;
    chk_node *n = chk_take(&t->lab->arena, sizeof *n);
    uint64_t before;
    bool reached;
    tn_status st;

    before = chk_host_memory(host, NULL);
    chk_host_fail_at(host, nth);
    st = chk_node_open(t->lab, &t->lab->side, t->p, &t->form, n);
    reached = chk_host_failed(host);
    chk_host_fail_at(host, 0);
    if (reached)
        status_check(t, st, "prepare", nth);
    if (st == TN_OK && reached && chk_node_run(n) == TN_OK)
        result_check(t, n, nth);
    chk_node_close(n);
    if (reached)
        balance_check(t, before, nth, "prepare");
    chk_count(t->lab->env);
    return reached;
}

/* `own`: the plugin's own allocations fail; else those asked of the call. */
static bool nomem_run(const nomem *t, uint64_t nth, bool own)
{
    chk_host *host = t->lab->plugin.host;
    chk_node *n = chk_take(&t->lab->arena, sizeof *n);
    chk_form form = t->form;
    uint64_t before;
    bool reached = false;
    tn_status st;

    form.nomem_at = own ? 0 : nth;
    if (chk_node_open(t->lab, &t->lab->side, t->p, &form, n) == TN_OK) {
        chk_node_reset(n);
        before = chk_host_memory(host, NULL);
        chk_host_fail_at(host, own ? nth : 0);
        st = chk_node_call(n);
        reached = own ? chk_host_failed(host) : n->allocs >= nth;
        chk_host_fail_at(host, 0);
        if (reached) {
            status_check(t, st, "run", nth);
            balance_check(t, before, nth, "run");
            if (st == TN_OK)
                result_check(t, n, nth);
        }
    }
    chk_node_close(n);
    chk_count(t->lab->env);
    return reached;
}

static tn_status nomem_outputs(const nomem *t, chk_outputs *out, tn_err *err)
{
    chk_node *n = chk_take(&t->lab->arena, sizeof *n);
    tn_status st = chk_node_open(t->lab, &t->lab->side, t->p, &t->form, n);

    if (!st && !(st = chk_node_run(n)))
        chk_outputs_take(n, out);
    *err = n->err;
    chk_node_close(n);
    return st;
}

/* False: the kernel does not take the problem in this form. */
static bool nomem_form(nomem *t)
{
    chk_outputs *again = chk_take(&t->lab->arena, sizeof *again);
    tn_err err;

    if (nomem_outputs(t, &t->want, &err))
        return false;
    for (uint64_t nth = 1; nth <= NTH_MAX && nomem_prepare(t, nth);)
        nth++;
    for (uint64_t nth = 1; nth <= NTH_MAX && nomem_run(t, nth, true);)
        nth++;
    for (uint64_t nth = 1; nth <= NTH_MAX && nomem_run(t, nth, false);)
        nth++;
    if (nomem_outputs(t, again, &err))
        chk_fail(t->lab->env, NULL, "after failed allocations it no longer works: %s (%s)", err.message,
                 t->p->text);
    return true;
}

static bool nomem_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    nomem *t = chk_take(&lab->arena, sizeof *t);
    uint32_t *left = arg;
    chk_node *forward;
    bool served;

    if (!chk_host_would_run(lab, p))
        return true;
    *t = (nomem){.lab = lab, .p = p, .form = plain_form};
    t->form.alone = true;
    served = nomem_form(t);
    forward = chk_node_forward(lab, p);
    if (forward && (!served || forward->plan->saved_bytes)) {
        t->form.forward = forward;
        served |= nomem_form(t);
    }
    if (forward)
        chk_node_close(forward);
    return !served || --*left > 0;
}

void chk_kernel_nomem(chk_env *env)
{
    uint32_t left = env->sizes ? 40 : 6;

    chk_lab_visit(env, CHK_PROBLEMS_FEW, nomem_visit, &left);
}

/* ---- what it never said it takes --------------------------------------------------------------------- */

/* Prepares with metadata alone. Any status will do. */
static void metadata_prepare(chk_lab *lab, const chk_problem *p)
{
    const chk_form form = {.mode = TN_MODE_WRITE, .metadata = true, .threads = 2};
    const chk_mark mark = chk_mark_set(&lab->arena);
    chk_node *n = chk_take(&lab->arena, sizeof *n);

    (void)chk_node_open(lab, &lab->side, p, &form, n);
    chk_node_close(n);
    chk_mark_back(&lab->arena, mark);
    chk_count(lab->env);
}

static bool dtypes_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_problem *other = chk_take(&lab->arena, sizeof *other);
    uint32_t *left = arg;

    for (uint32_t i = 0; i < chk_all(&p->f); i++)
        for (int32_t d = 0; d < TN_DTYPE_LIMIT; d++) {
            *other = *p;
            other->f.dtype[i] = d;
            metadata_prepare(lab, other);
        }
    for (int32_t d = 0; d < TN_DTYPE_LIMIT; d++) { /* all of them of a type that it may not take */
        *other = *p;
        for (uint32_t i = 0; i < CHK_ARGS_MAX; i++)
            other->f.dtype[i] = d;
        metadata_prepare(lab, other);
    }
    return --*left > 0;
}

static bool huge_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    (void)arg;
    metadata_prepare(lab, p);
    return true;
}

/* ---- sizes beyond 32 bits ---------------------------------------------------------------------------- */

#define DOUBLINGS 6u                       /* from 2^28 elements to 2^33 */
#define SIZED_MAX 32u                      /* problems */
#define STEADY_BYTES ((uint64_t)100 << 20) /* below it a kernel may change its method */
#define BYTES_MAX (INT64_MAX / 2)

/* What prepare asked for at half the size. */
typedef struct sized {
    uint32_t at;
    struct {
        int64_t rows, each; /* of the first input; elements of a row */
        uint64_t workspace, saved;
    } half[SIZED_MAX];
} sized;

static void size_check(chk_lab *lab, const chk_problem *p, const char *what, uint64_t bytes, uint64_t half)
{
    if (bytes > BYTES_MAX)
        chk_fail(lab->env, "K-sizes", "asks for %llu bytes of %s, which is a negative number (%s)",
                 (unsigned long long)bytes, what, p->text);
    if (half > STEADY_BYTES && bytes < half)
        chk_fail(lab->env, "K-sizes", "asks for %llu bytes of %s, and at half the size for %llu (%s)",
                 (unsigned long long)bytes, what, (unsigned long long)half, p->text);
}

static bool sizes_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const chk_form form = {.mode = TN_MODE_WRITE, .metadata = true, .recorded = true, .threads = 2};
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    sized *s = arg;
    const int64_t rows = p->f.args.in_count ? p->f.shape[0].dim[0] : 0,
                  each = rows > 0 ? chk_elements(p, 0) / rows : 0;

    if (!chk_node_open(lab, &lab->side, p, &form, n)) {
        const uint32_t at = s->at;

        const bool doubled = s->half[at].rows * 2 == rows && s->half[at].each == each;

        size_check(lab, p, "workspace", n->plan->workspace_bytes, doubled ? s->half[at].workspace : 0);
        size_check(lab, p, "saved block", n->plan->saved_bytes, doubled ? s->half[at].saved : 0);
        s->half[at].rows = rows;
        s->half[at].each = each;
        s->half[at].workspace = n->plan->workspace_bytes;
        s->half[at].saved = n->plan->saved_bytes;
        chk_count(lab->env);
    }
    chk_node_close(n);
    return ++s->at < SIZED_MAX;
}

/* Each problem at twice the size that it had before: the bytes that prepare asks for do not become fewer. */
static void sizes_double(chk_lab *lab)
{
    sized s = {.at = 0};

    for (uint32_t k = 0; k < DOUBLINGS; k++) {
        s.at = 0;
        lab->grow = (int64_t)1 << k;
        (void)chk_problems_of(lab, lab->op, CHK_PROBLEMS_DOUBLED, sizes_visit, &s);
    }
    lab->grow = 0;
}

static void errors_pass(chk_lab *lab)
{
    uint32_t left = 4;

    chk_problems(lab, CHK_PROBLEMS_FEW, dtypes_visit, &left);
    if (!(lab->op->flags & TN_OP_BACKWARD)) /* the forward of a backward would have to be computed */
        chk_problems(lab, CHK_PROBLEMS_HUGE, huge_visit, NULL);
}

void chk_kernel_errors(chk_env *env)
{
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    passes_check(&lab, errors_pass, "prepare, with types and sizes that a kernel may refuse,");
    sizes_double(&lab);
    chk_lab_close(&lab);
}

/* ---- what it leaves behind --------------------------------------------------------------------------- */

static bool run_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    const uint32_t *threads = arg;
    const chk_form form = {.mode = TN_MODE_WRITE, .threads = *threads};
    chk_node *n = chk_take(&lab->arena, sizeof *n);

    if (!chk_host_would_run(lab, p) || !chk_node_first(lab, p, &form, n))
        return true;
    chk_node_close(n);
    return true;
}

void chk_kernel_process(chk_env *env)
{
    uint32_t one = 1, several = 3;
    chk_process *before;
    const char *changed;
    chk_lab lab;

    chk_lab_open(env, CHK_HOST_EXACT, &lab);
    before = chk_process_snapshot(env);
    chk_problems(&lab, CHK_PROBLEMS_FEW, run_visit, &one);
    chk_problems(&lab, env->sizes ? CHK_PROBLEMS_LARGE : CHK_PROBLEMS_FEW, run_visit, &several);
    changed = chk_process_changed(before, CHK_PROCESS_THREADS);
    chk_fail_if(env, changed, NULL, "prepare and run change the process: %s", changed);
    chk_process_free(before);
    chk_lab_close(&lab);
}

/* ---- older and newer hosts --------------------------------------------------------------------------- */

/* Hosts give tn_call_ops where a plan resizes or a kernel completes later, and not everywhere else: the
 * kernel does without, or says that it cannot. */
static void bare_run(chk_lab *lab, const chk_problem *p, const chk_outputs *want)
{
    const chk_form form = {.mode = TN_MODE_WRITE, .fill = 0x3c, .bare = true};
    chk_node *n = chk_take(&lab->arena, sizeof *n);

    if (!chk_node_open(lab, &lab->side, p, &form, n) && !(n->plan->flags & TN_PLAN_RESIZES) &&
        !chk_node_run(n) && !(p->op->effects & TN_EFFECT_RANDOM))
        chk_same(n, want, false, "where the host gives no tn_call_ops");
    chk_node_close(n);
}

static bool hosts_visit(chk_lab *lab, const chk_problem *p, void *arg)
{
    chk_outputs *got = chk_take(&lab->arena, 2 * sizeof *got), *want = got + 1;
    chk_node *n = chk_take(&lab->arena, sizeof *n);
    const bool *is_old = arg;

    if (!chk_host_would_run(lab, p) || !chk_node_first(lab, p, &plain_form, n))
        return true;
    chk_outputs_take(n, got);
    if (chk_reference_outputs(lab, p, want))
        chk_reference_compare(lab, p, got, want);
    chk_node_close(n);
    if (*is_old && !(lab->side.kernel->flags & TN_KERNEL_ASYNC))
        bare_run(lab, p, got);
    return true;
}

static void hosts_run(chk_env *env, chk_host_kind kind, const char *who)
{
    bool is_old = kind == CHK_HOST_OLD;
    chk_lab lab;

    chk_lab_open(env, kind, &lab);
    chk_fault_rules(env, "R3", "R3", who);
    chk_problems(&lab, CHK_PROBLEMS_FEW, hosts_visit, &is_old);
    chk_lab_close(&lab);
}

void chk_kernel_old_host(chk_env *env)
{
    hosts_run(env, CHK_HOST_OLD, "the kernel, given structs of an old host,");
}

void chk_kernel_future_host(chk_env *env)
{
    hosts_run(env, CHK_HOST_FUTURE, "the kernel, given structs of a later host,");
}
