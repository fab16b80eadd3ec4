/*
 * Blocks of cases are run by a few jobs at a time, each block in a process and a context of its own. A
 * finding is run again alone, made smaller, and printed with the command that replays it.
 */
#include "driver.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct session {
    const fuzz_program *p;
    const char *path; /* of this program */
    fuzz_shared *shared;
    uint64_t seed, runs, first;
    uint32_t jobs, findings_max;
    bool verbose, replay;
} session;

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : fallback;
}

/* ---- jobs ---------------------------------------------------------------------------------------------- */

static fuzz_work work_of(const session *s, uint32_t job, uint64_t first, uint64_t last)
{
    return (fuzz_work){.program = s->p,
                       .shared = s->shared,
                       .seed = s->seed,
                       .first = first,
                       .last = last,
                       .job = job,
                       .mode = (uint32_t)(first / s->p->block % fuzz_mode_count)};
}

static void finding_note(const session *s, uint32_t job, uint64_t number)
{
    const uint32_t at = s->shared->finding_count++;

    if (at < FUZZ_FINDINGS_MAX)
        s->shared->findings[at] = (fuzz_finding){number, s->shared->last[job]};
}

/* What comes to light at the end of a process, such as a leak, belongs to one of its cases; it comes again,
 * unless it was the search for leaks that failed ("LeakSanitizer has encountered a fatal error"). */
static void narrow(const session *s, uint32_t job, uint64_t first, uint64_t last)
{
    const fuzz_work whole = work_of(s, job, first, last);

    if (fuzz_child(&whole))
        return;
    while (last - first > 1) {
        const uint64_t middle = first + (last - first) / 2;
        fuzz_work half = work_of(s, job, first, middle);

        half.quiet = true;
        *(fuzz_child(&half) ? &first : &last) = middle;
    }
    finding_note(s, job, first);
}

static void block_run(const session *s, uint32_t job, uint64_t first, uint64_t last)
{
    while (first < last && s->shared->finding_count < s->findings_max) {
        const fuzz_work w = work_of(s, job, first, last);

        if (fuzz_child(&w))
            return;
        if (s->shared->current[job] >= last) {
            narrow(s, job, first, last);
            return;
        }
        finding_note(s, job, s->shared->current[job]);
        first = s->shared->current[job] + 1;
    }
}

/* False: a job ended early, or was not begun. */
static bool jobs_run(const session *s)
{
    const uint64_t end = s->first + s->runs, block = s->p->block;
    uint32_t done = 0;
    int status;

    fflush(NULL);
    for (uint32_t job = 0; job < s->jobs; job++) {
        if (fork())
            continue;
        for (uint64_t b = s->first / block + job; b * block < end; b += s->jobs)
            block_run(s, job, b * block < s->first ? s->first : b * block,
                      (b + 1) * block < end ? (b + 1) * block : end);
        _exit(0);
    }
    while (wait(&status) > 0)
        done += status == 0;
    return done == s->jobs;
}

/* ---- findings ------------------------------------------------------------------------------------------ */

typedef struct search { /* for a smaller case that fails alike */
    const session *s;
    const char *kind;
} search;

static bool fails_alike(const fuzz_case *c, void *arg)
{
    const search *a = arg;
    fuzz_work w = work_of(a->s, 0, 0, 1);

    w.only = c;
    w.mode = c->mode;
    w.quiet = true;
    return !fuzz_child(&w) && !strcmp(a->s->shared->last[0].kind, a->kind);
}

static void case_print(const fuzz_case *c)
{
    tni_str text;

    tni_str_init(&text, 1 << 20);
    fuzz_case_write(c, &text);
    printf("%s", text.text ? text.text : "");
    tni_str_fini(&text);
}

/* Contexts leave threads behind, which a fork would not take along: the case is made by a process
 * that ends. */
static bool case_fetch(const session *s, uint64_t number, fuzz_case *c)
{
    const pid_t pid = fork();
    int status = 0;

    if (!pid) {
        fuzz_work w = work_of(s, 0, number, number + 1);
        fuzz_bench b;

        fuzz_bench_open(&b, w.mode, true);
        fuzz_case_make(&w, b.ctx[0], number, c);
        _exit(0);
    }
    return waitpid(pid, &status, 0) == pid && !status;
}

static void finding_tell(const session *s, const fuzz_finding *f, fuzz_case *c)
{
    search a = {s, f->verdict.kind};
    fuzz_work again;

    printf("%s: finding in case %" PRIu64 " of seed %" PRIu64 ": %s\n", s->p->name, f->number, s->seed,
           f->verdict.text);
    printf("  replay: ASAN_OPTIONS=malloc_context_size=30 TENON_TEST_PLUGINS=%s TENON_SEED=%" PRIu64
           " %s --only %" PRIu64 "\n",
           getenv("TENON_TEST_PLUGINS"), s->seed, s->path, f->number);
    if (!case_fetch(s, f->number, c))
        return;
    if (!strcmp(a.kind, "slow")) { /* each try would take as long */
        case_print(c);
        return;
    }
    if (!fails_alike(c, &a)) {
        const uint64_t first = f->number - f->number % s->p->block;

        printf("  alone it goes well; with the cases before it: --first %" PRIu64 " --count %" PRIu64 "\n",
               first, f->number - first + 1);
        case_print(c);
        return;
    }
    fuzz_shrink(c, fails_alike, &a);
    again = work_of(s, 0, 0, 1);
    again.only = c;
    again.mode = c->mode;
    printf("shrunk to:\n");
    case_print(c);
    (void)fuzz_child(&again); /* with what a sanitizer says */
    printf("  %s\n", s->shared->last[0].text);
}

static uint32_t findings_tell(const session *s)
{
    const uint32_t count = s->shared->finding_count;
    fuzz_case *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    for (uint32_t i = 0; c != MAP_FAILED && i < count && i < FUZZ_FINDINGS_MAX; i++)
        finding_tell(s, &s->shared->findings[i], c);
    if (c != MAP_FAILED)
        munmap(c, sizeof *c);
    return count;
}

/* ---- operators ----------------------------------------------------------------------------------------- */

static bool excepted(const fuzz_program *p, const char *op)
{
    for (const fuzz_exception *e = p->exceptions; e && e->op; e++)
        if (!strcmp(e->op, op))
            return true;
    return false;
}

/* What only gradients are made of cannot be called by name. */
static bool is_closed(tn_ctx *ctx, const char *op)
{
    tn_site *site = NULL;
    const tn_status st = tn_site_create(ctx, op, NULL, &site);

    tn_site_release(site);
    return st == TN_E_UNSUPPORTED;
}

/* How many operators were never accepted, though none of the exceptions. */
static uint32_t operators_tell(const session *s, bool must)
{
    uint32_t missed = 0;
    fuzz_bench b;

    fuzz_bench_open(&b, 0, true);
    for (size_t i = 0; i < tni_opset_count(b.ctx[0]->ops); i++) {
        const tn_op *op = tni_opset_at(b.ctx[0]->ops, i)->op;
        const uint32_t tried = s->shared->tried_of[i], accepted = s->shared->accepted_of[i];

        if (op->flags & (TN_OP_BACKWARD | TN_OP_INTERNAL)) {
            if (!is_closed(b.ctx[0], op->name)) {
                printf("%s: operator %s can be called by name\n", s->p->name, op->name);
                missed++;
            }
            continue;
        }
        if (s->verbose)
            printf("  %-32s tried %8u  accepted %8u\n", op->name, tried, accepted);
        if (must && fuzz_op_drawn(op) && !accepted && !excepted(s->p, op->name)) {
            printf("%s: operator %s was never accepted, tried %u times\n", s->p->name, op->name, tried);
            missed++;
        }
    }
    fuzz_bench_close(&b);
    return missed;
}

/* ---- the program --------------------------------------------------------------------------------------- */

static bool arguments_read(session *s, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const uint64_t value = i + 1 < argc ? strtoull(argv[i + 1], NULL, 10) : 0;

        if (!strcmp(argv[i], "--verbose")) {
            s->verbose = true;
            continue;
        }
        if (i + 1 == argc)
            return false;
        if (!strcmp(argv[i], "--only")) {
            s->first = value;
            s->runs = 1;
            s->replay = true;
        } else if (!strcmp(argv[i], "--first")) {
            s->first = value;
            s->replay = true;
        } else if (!strcmp(argv[i], "--count")) {
            s->runs = value;
        } else if (!strcmp(argv[i], "--findings")) {
            s->findings_max = value < FUZZ_FINDINGS_MAX ? (uint32_t)value : FUZZ_FINDINGS_MAX;
        } else {
            return false;
        }
        i++;
    }
    return true;
}

int fuzz_main(const fuzz_program *p, int argc, char **argv)
{
    session s = {.p = p, .path = argv[0], .jobs = 2, .findings_max = 1};
    uint32_t findings, missed;
    bool whole;

    setvbuf(stdout, NULL, _IOLBF, 0);
    s.seed = number_of("TENON_SEED", 1);
    s.runs = number_of("TENON_RUNS", p->runs);
    s.shared = mmap(NULL, sizeof *s.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s.shared == MAP_FAILED)
        return 1;
    if (!arguments_read(&s, argc, argv)) {
        fprintf(stderr, "usage: %s [--verbose] [--only N | --first N --count N] [--findings N]\n", argv[0]);
        return 2;
    }
    if (!getenv("TENON_TEST_PLUGINS")) {
        fprintf(stderr, "%s: TENON_TEST_PLUGINS must name the folder of the built plugins\n", p->name);
        return 2;
    }
    if (s.replay)
        s.jobs = 1;
    if (!(whole = jobs_run(&s)))
        printf("%s: a job ended early, or was not begun\n", p->name);
    printf("%s: %" PRIu64 " %s, %" PRIu64 " accepted, seed %" PRIu64 "\n", p->name, (uint64_t)s.shared->done,
           p->unit, (uint64_t)s.shared->accepted, s.seed);
    printf("count %" PRIu64 "\n", (uint64_t)s.shared->done);
    findings = findings_tell(&s);
    missed = operators_tell(&s, p->reaches_all && !s.replay && s.runs >= p->runs);
    munmap(s.shared, sizeof *s.shared);
    return findings || missed || !whole ? 1 : 0;
}
