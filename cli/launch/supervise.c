/*
 * Runs the processes of a job: one loop over their guards' messages, their output, and signals.
 *
 * The first failure decides. It is told before anything else, with the last lines of its process; then the
 * others are stopped in order, workers before servers before the scheduler, each within a bound. All messages
 * go the way of the processes' output, so that none gets into a line of it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervise.h"

#define ADDRESS_MS 10                         /* between looks for the scheduler's address */
#define ADDRESS_WAIT_NS (60000ll * LAUNCH_MS) /* for it */
#define LINGER_NS (2000ll * LAUNCH_MS)        /* servers end by themselves when the workers have */
#define TWICE_NS (200ll * LAUNCH_MS)          /* wrappers send a signal twice */

/* Workers that are through end the job; servers have a while to end by themselves. Of a rank of another
 * launcher's job only this one knows. */
static void workers_look(launch_run *r, int64_t now)
{
    const int64_t grace = r->job->grace_ns;

    if (r->job->how == LAUNCH_RANK || r->stopping || r->telling || r->next < r->count ||
        launch_workers_left(r))
        return;
    r->linger_until = now + (grace < LINGER_NS ? grace : LINGER_NS);
    launch_stop_begin(r, SIGTERM, 1);
}

static void child_over(launch_run *r, launch_child *c)
{
    (void)close(c->channel);
    c->channel = -1;
    if (c->in >= 0)
        (void)close(c->in);
    c->in = -1;
    (void)waitpid(c->guard, NULL, 0);
    r->living--;
    if (c->log.error && !r->code) {
        char name[160];

        launch_sink_say(&r->err, "tenon: the log of %s: %s\n", launch_child_name(c, name),
                        strerror(c->log.error));
        r->code = CLI_EXIT_FAILED;
    }
}

/* Takes what a guard says. One that is gone without a word was killed: so is its process, and what that left
 * behind is ours. */
static void said_take(launch_run *r, launch_child *c)
{
    launch_said said;
    const ssize_t n = read(c->channel, &said, sizeof said);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == (ssize_t)sizeof said && said.kind == LAUNCH_STARTED) {
        c->process = said.value;
        return;
    }
    if (n != (ssize_t)sizeof said) {
        if (c->process > 0)
            (void)kill(-c->process, SIGKILL);
        said = (launch_said){LAUNCH_ENDED, SIGKILL, launch_now()};
    }
    c->end = said;
    child_over(r, c);
    c->owed = !launch_ended_well(r, c) && !r->failed;
}

/* Starts what may be started now. */
static void start_some(launch_run *r, int64_t now)
{
    launch_job *job = r->job;

    while (!r->stopping && !r->telling && r->next < r->count) {
        launch_child *c = &r->children[r->next];
        const bool sync = c->role == LAUNCH_OTHER && c->host, first = r->next > 0;

        if (!sync && first && c[-1].role == LAUNCH_OTHER && r->living)
            return; /* all hosts have the files before anything runs */
        if (c->role != LAUNCH_SCHEDULER && !sync && *job->address && job->port == LAUNCH_ANY_PORT &&
            !launch_folder_address(job)) {
            if (now < r->address_until)
                return;
            launch_sink_say(&r->err, "tenon: the scheduler has told no address for %d s\n",
                            (int)(ADDRESS_WAIT_NS / LAUNCH_MS / 1000));
        } else if (launch_child_start(r, c)) {
            r->next++;
            if (c->role == LAUNCH_SCHEDULER)
                r->address_until = now + ADDRESS_WAIT_NS;
            continue;
        }
        r->failed = true;
        r->code = CLI_EXIT_FAILED;
        launch_stop_begin(r, SIGTERM, 0);
    }
}

static void signal_take(launch_run *r, int64_t now)
{
    struct signalfd_siginfo info;

    if (read(r->signals, &info, sizeof info) != (ssize_t)sizeof info)
        return;
    if (info.ssi_signo == SIGUSR1 || info.ssi_signo == SIGUSR2) {
        (void)launch_level_signal(r, 0, (int)info.ssi_signo, false);
    } else if (info.ssi_signo == SIGTSTP) {
        for (int level = 0; level <= 2; level++)
            (void)launch_level_signal(r, level, SIGTSTP, false);
        (void)raise(SIGSTOP);
        for (int level = 0; level <= 2; level++)
            (void)launch_level_signal(r, level, SIGCONT, false);
    } else if (!r->requested) {
        r->requested = true;
        r->asked_at = now;
        r->linger_until = now;
        if (r->stopping)
            return; /* it is under way */
        if (r->job->how != LAUNCH_RANK)
            launch_sink_say(&r->err, "tenon: stopping on request; a second signal ends all at once\n");
        launch_stop_begin(r, (int)info.ssi_signo, 0);
    } else if (now - r->asked_at >= TWICE_NS) {
        launch_kill_all(r);
    }
}

static int timeout_of(const launch_run *r, int64_t now)
{
    int64_t until = r->beat_at;

    if (r->stopping && r->stop_stage == 0 && r->stop_level <= 2 && r->linger_until < until)
        until = r->linger_until;
    else if (r->stopping && r->stop_until < until)
        until = r->stop_until;
    if (!r->stopping && r->next < r->count && now + ADDRESS_MS * LAUNCH_MS < until)
        until = now + ADDRESS_MS * LAUNCH_MS;
    return until <= now ? 0 : (int)((until - now) / LAUNCH_MS) + 1;
}

static void beat(launch_run *r, int64_t now)
{
    if (now < r->beat_at)
        return;
    r->beat_at = now + LAUNCH_BEAT_NS;
    for (size_t i = 0; i < r->next; i++)
        if (r->children[i].in >= 0)
            launch_child_signal(&r->children[i], LAUNCH_BEAT);
}

/* A stream's turn; false: it has none now. */
static bool stream_listens(const launch_run *r, const launch_child *c, const launch_stream *s)
{
    return launch_stream_ready(s) && (!r->telling || r->telling == c);
}

static size_t fds_fill(const launch_run *r, struct pollfd *fds)
{
    size_t n = 0;

    fds[n++] = (struct pollfd){r->signals, POLLIN, 0};
    fds[n++] = (struct pollfd){launch_sink_pending(&r->out) ? r->out.fd : -1, POLLOUT, 0};
    fds[n++] = (struct pollfd){launch_sink_pending(&r->err) ? r->err.fd : -1, POLLOUT, 0};
    for (size_t i = 0; i < r->next; i++) {
        const launch_child *c = &r->children[i];

        fds[n++] = (struct pollfd){c->channel, POLLIN, 0};
        fds[n++] = (struct pollfd){stream_listens(r, c, &c->out) ? c->out.fd : -1, POLLIN, 0};
        fds[n++] = (struct pollfd){stream_listens(r, c, &c->err) ? c->err.fd : -1, POLLIN, 0};
    }
    return n;
}

/* Output first: what a process wrote stands before the news of its end. */
static void fds_serve(launch_run *r, const struct pollfd *fds, int64_t now)
{
    const size_t known = r->next;

    for (size_t i = 0; i < known; i++) {
        launch_child *c = &r->children[i];
        const bool last = launch_ended(c);

        if ((fds[4 + 3 * i].revents || last) && stream_listens(r, c, &c->out))
            launch_stream_read(&c->out, last);
        if ((fds[5 + 3 * i].revents || last) && stream_listens(r, c, &c->err))
            launch_stream_read(&c->err, last);
        if (fds[3 + 3 * i].revents && c->channel >= 0)
            said_take(r, c);
    }
    if (fds[0].revents)
        signal_take(r, now);
}

static bool done(const launch_run *r)
{
    if (r->living || (r->next < r->count && !r->stopping))
        return false;
    for (size_t i = 0; i < r->next; i++)
        if (!launch_settled(&r->children[i]))
            return false;
    return true;
}

/* Whether some stream is behind its process's end, so that poll() must not wait. */
static bool behind(const launch_run *r)
{
    for (size_t i = 0; i < r->next; i++) {
        const launch_child *c = &r->children[i];

        if (launch_ended(c) && (stream_listens(r, c, &c->out) || stream_listens(r, c, &c->err)))
            return true;
    }
    return false;
}

static void loop(launch_run *r, struct pollfd *fds)
{
    int64_t now = launch_now();

    r->beat_at = now + LAUNCH_BEAT_NS;
    for (start_some(r, now); !done(r) || r->telling; start_some(r, now)) {
        const size_t n = fds_fill(r, fds);

        (void)poll(fds, n, behind(r) ? 0 : timeout_of(r, now));
        now = launch_now();
        fds_serve(r, fds, now);
        launch_failures_look(r);
        workers_look(r, now);
        launch_stop_advance(r, now);
        beat(r, now);
        launch_sink_flush(&r->out);
        launch_sink_flush(&r->err);
    }
}

/* ---- the whole ---- */

static void child_add(launch_run *r, launch_role role, uint32_t rank, const launch_host *host,
                      const char *what)
{
    r->children[r->count++] = (launch_child){.role = role,
                                             .rank = rank,
                                             .host = host,
                                             .place = host ? launch_host_bare(host) : r->here,
                                             .what = what,
                                             .channel = -1,
                                             .in = -1,
                                             .out.fd = -1,
                                             .err.fd = -1,
                                             .log.fd = -1};
}

static bool children_make(launch_run *r)
{
    const launch_job *job = r->job;
    const launch_hosts *hosts = &job->hosts;
    const bool far = job->how == LAUNCH_SSH, here = far || job->how == LAUNCH_LOCAL;

    if (job->how == LAUNCH_RANK)
        (void)gethostname(r->here, sizeof r->here - 1);
    r->children = calloc(hosts->count + 2 + (size_t)job->servers + job->workers, sizeof *r->children);
    if (!r->children)
        return false;
    for (size_t i = 0; far && job->args->value[OPT_SYNC_DST_DIR] && i < hosts->count; i++)
        child_add(r, LAUNCH_OTHER, 0, &hosts->items[i], "rsync");
    if (*job->address && job->how != LAUNCH_RANK)
        child_add(r, LAUNCH_SCHEDULER, 0, NULL, NULL);
    for (uint32_t i = 0; here && i < job->servers; i++)
        child_add(r, LAUNCH_SERVER, i, far ? launch_hosts_at(hosts, i) : NULL, NULL);
    for (uint32_t i = 0; here && i < job->workers; i++)
        child_add(r, LAUNCH_WORKER, i, far ? launch_hosts_at(hosts, (uint64_t)job->servers + i) : NULL, NULL);
    if (job->how == LAUNCH_RANK)
        child_add(r, job->role, job->rank, NULL, NULL);
    else if (!here)
        child_add(r, LAUNCH_OTHER, 0, NULL, launch_how_names[job->how]);
    return true;
}

/* Each process takes three descriptors here, with a log four; they themselves get the limit as it was. */
static void limits_raise(launch_run *r)
{
    struct rlimit most;

    if (getrlimit(RLIMIT_NOFILE, &r->files))
        r->files = (struct rlimit){1024, 1024};
    most = (struct rlimit){r->files.rlim_max, r->files.rlim_max};
    (void)setrlimit(RLIMIT_NOFILE, &most);
}

static bool signals_take(launch_run *r)
{
    static const int ours[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP};
    struct sigaction before;
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) /* nohup ignores one: so it stays */
        if (sigaction(ours[i], NULL, &before) || before.sa_handler != SIG_IGN)
            (void)sigaddset(&set, ours[i]);
    (void)sigprocmask(SIG_BLOCK, &set, &r->mask);
    (void)signal(SIGCHLD, SIG_DFL); /* one that was started with it ignored could not wait for its own */
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    r->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (r->signals < 0)
        cli_error("no signals can be received: %s", strerror(errno));
    return r->signals >= 0;
}

static bool log_folder_make(const launch_job *job)
{
    const char *folder = job->args->value[OPT_LOG_DIR];

    if (!folder || cli_folders_make(folder))
        return true;
    cli_error("--log-dir %s: %s", folder, strerror(errno));
    return false;
}

static int code_finish(launch_run *r)
{
    /* One rank of a job is asked to stop because another has failed: that one's code must be the largest. */
    const int stopped = r->job->how == LAUNCH_RANK ? 0 : CLI_EXIT_STOPPED;
    int code = r->failed ? r->code : r->requested ? stopped : r->code;
    const int lost = r->out.error;

    if (lost && lost != EPIPE) {
        launch_sink_say(&r->err, "tenon: cannot write to standard output: %s\n", strerror(lost));
        code = code ? code : CLI_EXIT_FAILED;
    }
    launch_sink_end(&r->err);
    return code;
}

int launch_supervise(launch_job *job)
{
    launch_run r = {.job = job, .signals = -1};
    struct pollfd *fds = NULL;
    launch_pids not_ours;
    int keeper = -1, code = CLI_EXIT_FAILED;

    launch_children_note(&not_ours);
    launch_sink_init(&r.out, STDOUT_FILENO);
    launch_sink_init(&r.err, STDERR_FILENO);
    (void)fflush(NULL);
    if (!log_folder_make(job) || !signals_take(&r))
        goto cleanup;
    if (!children_make(&r) || !(fds = calloc(3 + 3 * r.count, sizeof *fds))) {
        cli_error("out of memory");
        code = CLI_EXIT_MEMORY;
        goto cleanup;
    }
    if (*job->address && job->how != LAUNCH_RANK && (code = launch_folder_open(job, &keeper)))
        goto cleanup;
    limits_raise(&r);
    loop(&r, fds);
    launch_sink_end(&r.out);
    code = code_finish(&r);

cleanup:
    launch_folder_close(job, keeper);
    launch_children_end(&not_ours);
    for (size_t i = 0; i < r.count; i++) {
        free(r.children[i].log.tail);
        if (r.children[i].log.fd >= 0)
            (void)close(r.children[i].log.fd);
    }
    if (r.signals >= 0)
        (void)close(r.signals);
    free(r.children);
    free(fds);
    return code;
}
