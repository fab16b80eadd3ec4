/*
 * All cases of one file. This process never opens the plugin: a first child names the subjects, then children
 * run the cases, `jobs` at a time: one each, or some of one test, one after the other. A child sends each
 * verdict through a pipe; a case without one crashed, one that is late is killed with its child and tried
 * once more. Behind a case that failed, crashed or was late a new child goes on. Results are handed out in
 * the order of the table.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "internal.h"

#define JOBS_MAX 64u
#define CASES_MAX 1000000u
#define NAMES_LIMIT_S 180u
#define WATCH_MS 300 /* of one look at a case's time to the next */
#define SLOW 3u      /* a slow machine takes so many times as long as tests.list says */
#define KEPT_BYTES (32 << 20)
#define BATCH_MAX 48u      /* cases of one child, */
#define BATCH_DEVICE 160u  /* or where a driver's context has to be made for each child */
#define OUTPUT_BYTES 2048u /* of what a case writes: its last lines */
#define NAME_BYTES 256u

typedef struct one_case {
    const chk_test *test;
    char *subject;
    bool taken, late, done; /* by a child; ran into its limit once; by the end */
    chk_case_result result;
    char *message, *output, *rule;
} one_case;

typedef struct job {
    pid_t pid;
    int pipe, output;
    double began, limit;
    one_case *what; /* the case that runs, */
    size_t left;    /* and how many the child has with it */
    size_t got;
    chk_told told;    /* of the case, `got` bytes of it */
    uint64_t written; /* output of the cases before */
    bool late;
} job;

typedef struct run {
    const chk_options *options;
    chk_summary *summary;
    char folder[64], group[NAME_BYTES], name[NAME_BYTES];
    const char *subject; /* of `only`; NULL: all */
    chk_near near;       /* subjects that are not it */
    one_case *cases;
    size_t count, room, reported;
    job jobs[JOBS_MAX];
    size_t job_count;
} run;

static double now_s(void)
{
    return 1e-9 * (double)chk_clock_ns(CLOCK_MONOTONIC);
}

static tn_status refuse(run *r, tn_status st, const char *text, const char *more)
{
    (void)snprintf(r->summary->message, sizeof r->summary->message, "%s%s", text, more);
    return st;
}

/* ---- `only` ---- */

static tn_status only_read(run *r)
{
    const char *only = r->options->only, *slash;
    bool known = false;

    if (!only || !*only)
        return TN_OK;
    slash = strchr(only, '/');
    (void)snprintf(r->group, sizeof r->group, "%.*s", (int)(slash ? slash - only : (ptrdiff_t)strlen(only)),
                   only);
    if (slash) {
        const char *name = slash + 1;

        slash = strchr(name, '/');
        (void)snprintf(r->name, sizeof r->name, "%.*s", (int)(slash ? slash - name : (ptrdiff_t)strlen(name)),
                       name);
        r->subject = slash && slash[1] ? slash + 1 : NULL;
    }
    for (const chk_test *t = chk_tests; t->name; t++)
        known |= strcmp(t->group, r->group) == 0 && (!*r->name || strcmp(t->name, r->name) == 0);
    return known ? TN_OK : refuse(r, TN_E_KEY, "the kit has no test ", only);
}

/* ---- children ---- */

/* In the child: its own group of processes, no core file, output into a file in memory,
 * gone with the parent. */
static void child_settle(int output)
{
    const struct rlimit none = {0, 0};
    int in = open("/dev/null", O_RDONLY);

    (void)setpgid(0, 0);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)mallopt(M_MMAP_THRESHOLD, KEPT_BYTES / 4); /* memory that comes and goes stays */
    (void)mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    (void)mallopt(M_TOP_PAD, KEPT_BYTES / 64);
    (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* which pages become large ones is chance */
    if (in >= 0) {
        (void)dup2(in, 0);
        (void)close(in);
    }
    (void)dup2(output, 1);
    (void)dup2(output, 2);
    (void)close(output);
}

static tn_status child_start(run *r, job *j, pid_t *pid)
{
    int ends[2];

    j->output = memfd_create("check-output", MFD_CLOEXEC);
    if (j->output < 0 || pipe2(ends, O_CLOEXEC)) {
        if (j->output >= 0)
            (void)close(j->output);
        return refuse(r, TN_E_IO, "no pipe for a case: ", strerror(errno));
    }
    (void)fflush(NULL);
    *pid = fork();
    if (*pid < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)close(j->output);
        return refuse(r, TN_E_IO, "no process for a case: ", strerror(errno));
    }
    if (*pid == 0) {
        (void)close(ends[0]);
        child_settle(j->output);
        j->pipe = ends[1];
        return TN_OK;
    }
    (void)setpgid(*pid, *pid);
    (void)close(ends[1]);
    j->pipe = ends[0];
    j->pid = *pid;
    j->began = now_s();
    return TN_OK;
}

static void env_fill(const run *r, chk_env *env, chk_case *c, const char *subject)
{
    *env = (chk_env){.file = r->options->file,
                     .subject = subject,
                     .seed = r->options->seed ? r->options->seed : 1,
                     .folder = r->folder,
                     .sizes = r->options->sizes,
                     .internal = c};
}

/* ---- naming the subjects ---- */

void chk_name_add(chk_names *names, const char *subject)
{
    (void)fprintf(names->file, "%u %.*s%c", names->test, (int)NAME_BYTES - 1, subject, '\0');
}

static tn_status case_add(run *r, uint32_t test, const char *subject)
{
    one_case *c;

    if (r->count == r->room) {
        size_t room = r->room ? r->room * 2 : 256;
        one_case *cases = room > CASES_MAX ? NULL : realloc(r->cases, room * sizeof *cases);

        if (!cases)
            return refuse(r, TN_E_NOMEM, "out of memory", "");
        r->cases = cases;
        r->room = room;
    }
    c = &r->cases[r->count];
    *c = (one_case){.test = &chk_tests[test], .subject = strdup(subject)};
    if (!c->subject)
        return refuse(r, TN_E_NOMEM, "out of memory", "");
    if (r->subject && strcmp(r->subject, c->subject) != 0) {
        chk_near_add(&r->near, r->subject, c->subject);
        free(c->subject);
    } else {
        r->count++;
    }
    return TN_OK;
}

/* The child's verdict; false: it ended without one, or is late. */
static bool verdict_read(job *j)
{
    while (j->got < sizeof j->told && now_s() - j->began < j->limit) {
        struct pollfd p = {.fd = j->pipe, .events = POLLIN};
        ssize_t n;

        if (poll(&p, 1, WATCH_MS) <= 0)
            continue;
        n = read(j->pipe, (char *)&j->told + j->got, sizeof j->told - j->got);
        if (n <= 0)
            return false;
        j->got += (size_t)n;
    }
    return j->got == sizeof j->told;
}

static tn_status names_read(run *r, FILE *names)
{
    char *text = NULL;
    size_t room = 0;
    tn_status st = TN_OK;

    rewind(names);
    while (!st && getdelim(&text, &room, '\0', names) > 0) {
        const char *subject = strchr(text, ' ');

        st = case_add(r, (uint32_t)strtoul(text, NULL, 10), subject ? subject + 1 : "");
    }
    free(text);
    return st;
}

static tn_status subjects_find(run *r)
{
    job j = {.limit = NAMES_LIMIT_S * chk_patience()};
    FILE *names = fdopen(memfd_create("check-names", MFD_CLOEXEC), "w+");
    char end[64];
    int status = 0;
    pid_t pid;
    tn_status st =
        names ? child_start(r, &j, &pid) : refuse(r, TN_E_IO, "no file for names: ", strerror(errno));

    if (st)
        goto cleanup;
    if (pid == 0) {
        chk_names into = {.file = names};
        chk_case c;
        chk_env env;

        chk_case_init(&c, chk_tests, j.pipe);
        env_fill(r, &env, &c, "");
        chk_case_subjects(&env, &into, r->options, r->group, r->name);
        _exit(0);
    }
    if (verdict_read(&j))
        st = j.told.verdict.result == CHK_PASS ? names_read(r, names)
                                               : refuse(r, TN_E_DEVICE, j.told.verdict.message, "");
    (void)kill(-pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    (void)close(j.pipe);
    (void)close(j.output);
    (void)snprintf(end, sizeof end, WIFSIGNALED(status) ? "signal %d" : "exit code %d",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (j.got < sizeof j.told)
        st = refuse(r, TN_E_DEVICE, "the process ends while it opens the file: ", end);

cleanup:
    if (names)
        (void)fclose(names);
    return st;
}

/* ---- cases ---- */

static bool is_good(chk_result result)
{
    return result == CHK_PASS || result == CHK_SKIP;
}

static double limit_of(const chk_test *test)
{
    return test->limit_s * SLOW * chk_patience();
}

/* In the child: one case after the other, until one fails. What that left behind is nobody else's. */
static _Noreturn void job_run(run *r, const job *j)
{
    chk_case c;
    chk_env env;

    chk_case_init(&c, j->what->test, j->pipe);
    env_fill(r, &env, &c, "");
    (void)snprintf(r->folder + strlen(r->folder), sizeof r->folder - strlen(r->folder), "/%ld",
                   (long)getpid());
    (void)mkdir(r->folder, 0700);
    for (size_t i = 0; i < j->left && is_good(c.verdict.result); i++) {
        if (i)
            chk_case_next(&c, j->what[i].test);
        env.subject = j->what[i].subject;
        chk_case_run(&env, r->options);
    }
    if (is_good(c.verdict.result))
        chk_twin_join(&env);
    _exit(0);
}

/* Cases of one test that none has run yet, as many as may share a process. */
static size_t batch_of(const run *r, size_t first)
{
    const chk_test *test = r->cases[first].test;
    const bool device = strchr(r->cases[first].subject, '@') != NULL; /* OPERATOR/KERNEL@DEVICE */
    const size_t most = test->twin ? CHK_TWIN_CASES : device ? BATCH_DEVICE : BATCH_MAX;
    size_t count = 1;

    while (test->many && count < most && first + count < r->count && r->cases[first + count].test == test &&
           !r->cases[first + count].taken)
        count++;
    return count;
}

static tn_status job_start(run *r, size_t first)
{
    job *j = &r->jobs[r->job_count];
    pid_t pid;
    tn_status st;

    *j = (job){.what = &r->cases[first], .left = batch_of(r, first)};
    st = child_start(r, j, &pid);
    if (st)
        return st;
    if (pid == 0)
        job_run(r, j);
    for (size_t i = 0; i < j->left; i++)
        j->what[i].taken = true;
    j->limit = limit_of(j->what->test);
    r->job_count++;
    return TN_OK;
}

/* The last lines of what the case wrote, behind those before it. */
static char *output_of(const job *j)
{
    struct stat info;
    off_t from;
    ssize_t n = 0;
    char *text = calloc(1, OUTPUT_BYTES + 1);

    if (text && !fstat(j->output, &info) && info.st_size > 0) {
        const off_t end = j->got == sizeof j->told ? (off_t)j->told.written : info.st_size;

        from = end - (off_t)j->written > (off_t)OUTPUT_BYTES ? end - (off_t)OUTPUT_BYTES : (off_t)j->written;
        n = end > from ? pread(j->output, text, (size_t)(end - from), from) : 0;
        while (n > 0 && text[n - 1] == '\n')
            n--;
        text[n < 0 ? 0 : n] = '\0';
    }
    return text;
}

static void crash_say(one_case *what, const job *j, int status)
{
    const char *how = "the process ended with exit code %d before the test did";
    char text[CHK_MESSAGE_BYTES];
    int number = WEXITSTATUS(status);

    if (j->late) {
        how = "still running after its limit of %d s";
        number = (int)limit_of(what->test);
    } else if (WIFSIGNALED(status)) {
        number = what->result.signal = WTERMSIG(status);
        how = "the process died of signal %d";
    }
    what->result.result = CHK_CRASH;
    (void)snprintf(text, sizeof text, how, number); /* NOLINT: one of the three above */
    if (!j->late && WIFSIGNALED(status))
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), " (%s)", strsignal(number));
    what->message = strdup(text);
    what->rule = strdup(what->test->rule);
}

/* What is known of the job's case is its result; `status`: of the child, where it said none. */
static void case_end(const run *r, const job *j, int status)
{
    one_case *what = j->what;

    what->result = (chk_case_result){.group = what->test->group,
                                     .test = what->test->name,
                                     .subject = what->subject,
                                     .seed = r->options->seed ? r->options->seed : 1,
                                     .seconds = now_s() - j->began};
    if (j->got == sizeof j->told) {
        const chk_verdict *verdict = &j->told.verdict;

        what->result.counted = j->told.counted;
        what->result.result = verdict->result;
        what->message = strdup(verdict->message);
        what->rule = strdup(*verdict->rule ? verdict->rule : what->test->rule);
    } else {
        crash_say(what, j, status);
    }
    what->output = output_of(j);
    what->done = true;
}

/* The child is through, or has to be. Cases that it did not come to are for another one; so is one that is
 * late for the first time. */
static void job_end(run *r, size_t at)
{
    job *j = &r->jobs[at];
    const bool again = j->late && !j->what->late;
    int status = 0;

    (void)kill(-j->pid, SIGKILL);
    (void)waitpid(j->pid, &status, 0);
    if (again)
        j->what->late = true;
    else
        case_end(r, j, status);
    for (size_t i = again ? 0 : 1; i < j->left; i++)
        j->what[i].taken = false;
    (void)close(j->pipe);
    (void)close(j->output);
    r->jobs[at] = r->jobs[--r->job_count];
}

/* The child said what a case came to. False: it has no other one, or none that would find a sound process. */
static bool job_next(const run *r, job *j)
{
    if (j->left == 1 || !is_good(j->told.verdict.result))
        return false;
    case_end(r, j, 0);
    j->written = j->told.written;
    j->got = 0;
    j->what++;
    j->left--;
    j->began = now_s();
    return true;
}

static void report(run *r)
{
    uint32_t *const totals[] = {[CHK_PASS] = &r->summary->passed,
                                [CHK_FAIL] = &r->summary->failed,
                                [CHK_CRASH] = &r->summary->crashed,
                                [CHK_SKIP] = &r->summary->skipped};

    for (; r->reported < r->count && r->cases[r->reported].done; r->reported++) {
        one_case *c = &r->cases[r->reported];

        c->result.message = c->message ? c->message : "";
        c->result.rule = c->rule ? c->rule : c->test->rule;
        c->result.output = c->output ? c->output : "";
        c->result.index = r->reported;
        c->result.count = r->count;
        (*totals[c->result.result])++;
        if (r->options->done)
            r->options->done(r->options->arg, &c->result);
    }
}

/* One round: waits for bytes, ends and limits. */
static void jobs_wait(run *r)
{
    struct pollfd p[JOBS_MAX];

    for (size_t i = 0; i < r->job_count; i++)
        p[i] = (struct pollfd){.fd = r->jobs[i].pipe, .events = POLLIN};
    if (poll(p, r->job_count, WATCH_MS) < 0)
        return;
    for (size_t i = r->job_count; i-- > 0;) {
        job *j = &r->jobs[i];
        bool ended = false;

        if (p[i].revents) {
            ssize_t n = read(j->pipe, (char *)&j->told + j->got, sizeof j->told - j->got);

            j->got += n > 0 ? (size_t)n : 0;
            ended = n <= 0 || (j->got == sizeof j->told && !job_next(r, j));
        } else if (now_s() - j->began >= j->limit) {
            j->late = ended = true;
        }
        if (ended)
            job_end(r, i);
    }
}

static tn_status cases_run(run *r)
{
    uint32_t jobs = r->options->jobs;
    cpu_set_t set;
    tn_status st = TN_OK;

    if (!jobs)
        jobs = sched_getaffinity(0, sizeof set, &set) ? 1u : (uint32_t)CPU_COUNT(&set);
    jobs = jobs > JOBS_MAX ? JOBS_MAX : jobs;
    while (r->reported < r->count) {
        for (size_t next = r->reported; !st && next < r->count && r->job_count < jobs; next++)
            if (!r->cases[next].taken)
                st = job_start(r, next);
        if (!r->job_count)
            break;
        jobs_wait(r);
        report(r);
    }
    return st;
}

/* The file has nothing of what `only` names: said in the summary's message, which else is empty. */
static void nothing_say(run *r)
{
    char *text = r->summary->message;
    const size_t bytes = sizeof r->summary->message;

    (void)snprintf(text, bytes, "has no case %s", r->options->only);
    for (uint32_t i = 0; i < CHK_NEAR && *r->near.name[i]; i++)
        (void)snprintf(text + strlen(text), bytes - strlen(text), "%s%s/%s/%s",
                       i ? ", " : "; near: ", r->group, r->name, r->near.name[i]);
}

/* ---- one case, here ---- */

static void cases_free(run *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->cases[i].subject);
        free(r->cases[i].message);
        free(r->cases[i].output);
        free(r->cases[i].rule);
    }
    free(r->cases);
    r->cases = NULL;
    r->count = r->room = 0;
}

/* A case leaves what it made to the end of its process; a leak checker would tell that of this one. */
static void leaks_ignore(void)
{
    union {
        void *symbol;
        void (*call)(void);
    } disable = {.symbol = dlsym(RTLD_DEFAULT, "__lsan_disable")};

    if (disable.symbol)
        disable.call();
}

static tn_status reproduce(run *r)
{
    const chk_test *test = chk_tests;
    one_case what = {0};
    chk_case c;
    chk_env env;
    tn_status st;

    while (test->name && (strcmp(test->group, r->group) != 0 || strcmp(test->name, r->name) != 0))
        test++;
    if (!test->name)
        return refuse(r, TN_E_KEY, "a case has the form group/test/subject; the kit has no test ",
                      r->options->only);
    if ((st = subjects_find(r)))
        return st;
    if (r->count && r->cases[0].test->subjects != test->subjects)
        return refuse(r, TN_E_DEVICE, "the core refuses the file; see --only ", "load/accepted");
    cases_free(r);
    chk_case_init(&c, test, -1);
    env_fill(r, &env, &c, r->subject ? r->subject : "");
    leaks_ignore();
    chk_case_run(&env, r->options);
    if (chk_twin_is_second(&env))
        _exit(0);
    what.test = test;
    what.result = (chk_case_result){.group = test->group,
                                    .test = test->name,
                                    .subject = env.subject,
                                    .seed = env.seed,
                                    .counted = atomic_load(&c.counted),
                                    .result = c.verdict.result};
    what.message = c.verdict.message;
    what.rule = *c.verdict.rule ? c.verdict.rule : (char *)(uintptr_t)test->rule;
    what.done = true;
    r->cases = &what;
    r->count = 1;
    report(r);
    r->cases = NULL;
    r->count = 0;
    return TN_OK;
}

/* ---- the whole ---- */

static int removed(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

static void run_free(run *r)
{
    cases_free(r);
    (void)nftw(r->folder, removed, 8, FTW_DEPTH | FTW_PHYS);
    free(r);
}

tn_status chk_run(const chk_options *options, chk_summary *out)
{
    const char *temporary = getenv("TMPDIR");
    run *r = calloc(1, sizeof *r);
    tn_status st;

    memset(out, 0, sizeof *out);
    if (!r)
        return TN_E_NOMEM;
    r->options = options;
    r->summary = out;
    if (!temporary || strlen(temporary) > 32)
        temporary = "/tmp";
    (void)snprintf(r->folder, sizeof r->folder, "%s/tenon-check-XXXXXX", temporary);
    if (!mkdtemp(r->folder)) {
        free(r);
        (void)snprintf(out->message, sizeof out->message, "no temporary folder: %s", strerror(errno));
        return TN_E_IO;
    }
    st = only_read(r);
    if (!st && options->reproduce)
        st = reproduce(r);
    else if (!st && !(st = subjects_find(r)) && !(st = cases_run(r)) && !r->count && *r->group)
        nothing_say(r);
    run_free(r);
    return st;
}
