/*
 * One process of a job: how it is started, and what it is called.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervise.h"

#define GENTLE_MS 5000

extern char **environ;

const char *const launch_role_names[] = {"scheduler", "server", "worker", "process"};

bool launch_ended(const launch_child *c)
{
    return c->starts && c->channel < 0;
}

bool launch_settled(const launch_child *c)
{
    return c->out.fd < 0 && c->err.fd < 0;
}

/* 128 + signal also where a far end, a shell or mpirun says so. */
int launch_exit_of(const launch_child *c)
{
    return c->end.kind == LAUNCH_REFUSED ? (c->end.value == ENOENT ? 127 : 126)
                                         : launch_code_of(c->end.value);
}

const char *launch_child_name(const launch_child *c, char text[160])
{
    if (c->role == LAUNCH_OTHER)
        (void)snprintf(text, 160, "%.30s", c->program);
    else if (c->role == LAUNCH_SCHEDULER)
        (void)snprintf(text, 160, "scheduler");
    else
        (void)snprintf(text, 160, "%s %u", launch_role_names[c->role], c->rank);
    if (*c->place)
        (void)snprintf(text + strlen(text), 160 - strlen(text), " on %.100s", c->place);
    return text;
}

/* ---- starting ---- */

static void stream_init(launch_run *r, launch_child *c, launch_stream *s, int fd, bool results)
{
    const bool worker = c->role == LAUNCH_WORKER, json = r->job->args->value[OPT_JSON];
    const bool passed_on = c->role == LAUNCH_OTHER && !c->host; /* rank by rank it is done below mpirun */

    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    *s = (launch_stream){.fd = fd, .log = &c->log, .prefix = c->prefix, .rank = LAUNCH_NO_RANK};
    s->sink = results && (worker || passed_on) ? &r->out : &r->err;
    s->raw = passed_on;
    if (results && worker) {
        s->rank = c->rank;
        s->only_json = json;
    }
}

static void prefix_make(launch_child *c)
{
    static const char letters[] = "-sw-";

    if (c->role == LAUNCH_SCHEDULER || c->role == LAUNCH_OTHER)
        (void)snprintf(c->prefix, sizeof c->prefix, "[%.20s%s%.60s] ", c->what ? c->what : "sched",
                       *c->place ? " " : "", c->place);
    else
        (void)snprintf(c->prefix, sizeof c->prefix, "[%c%u%s%.60s] ", letters[c->role], c->rank,
                       *c->place ? " " : "", c->place);
}

/* A log of an earlier start of the same process goes on. False: said. */
static bool log_open(const launch_run *r, launch_child *c)
{
    const char *folder = r->job->args->value[OPT_LOG_DIR];
    char *path;

    if (!folder || c->log.fd >= 0)
        return true;
    path = c->role == LAUNCH_SCHEDULER || c->role == LAUNCH_OTHER
               ? cli_format("%s/%s.log", folder, c->what ? c->what : launch_role_names[c->role])
               : cli_format("%s/%s-%u.log", folder, launch_role_names[c->role], c->rank);
    c->log.fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (path && c->log.fd < 0)
        cli_error("%s: %s", path, strerror(errno));
    free(path);
    return c->log.fd >= 0;
}

static void words_of(const launch_run *r, const launch_child *c, const launch_list *own, launch_list *words)
{
    if (c->role == LAUNCH_OTHER && c->host)
        launch_sync_command(r->job, c->host, words);
    else if (c->role == LAUNCH_OTHER)
        launch_submit_command(r->job, own, words);
    else if (c->host)
        launch_remote_command(r->job, c->host, words);
    else
        launch_command_of(r->job, c->role, words);
}

/* What the process itself inherits, and `own` over it. */
static void env_whole(const launch_list *own, launch_list *whole)
{
    static const char *const of_others[] = {"DMLC_ROLE", "DMLC_WORKER_ID", "DMLC_SERVER_ID", "DMLC_TASK_ID",
                                            NULL};

    for (char **e = environ; e && *e; e++)
        launch_list_add(whole, "%s", *e);
    for (const char *const *name = of_others; *name; name++)
        launch_list_unset(whole, *name);
    for (size_t i = 0; i < own->count; i++) {
        char *name = cli_format("%.*s", (int)launch_name(own->items[i]), own->items[i]);

        if (name)
            launch_list_set(whole, name, "%s", own->items[i] + strlen(name) + 1);
        whole->failed = whole->failed || !name;
        free(name);
    }
}

static void pipes_close(int pipes[3][2])
{
    for (int i = 0; i < 6; i++)
        if (pipes[i / 2][i % 2] >= 0)
            (void)close(pipes[i / 2][i % 2]);
}

/* The guard with all ends of pipes; those that are the process's are closed here afterwards. */
static bool guard_make(launch_run *r, launch_child *c, const launch_list *words, const launch_list *env,
                       bool far)
{
    int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    launch_start start = {.argv = words->items, .env = env->items, .files = &r->files, .mask = &r->mask};
    bool ok =
        (!far || !pipe2(pipes[0], O_CLOEXEC)) && !pipe2(pipes[1], O_CLOEXEC) && !pipe2(pipes[2], O_CLOEXEC);

    start.gentle_ms = c->role == LAUNCH_OTHER ? GENTLE_MS : 0;
    start.in = pipes[0][0];
    start.out = pipes[1][1];
    start.err = pipes[2][1];
    if (ok && (c->guard = launch_guard_start(&start, &c->channel)) < 0)
        ok = false;
    if (!ok) {
        const int why = errno;
        char name[160];

        launch_sink_say(&r->err, "tenon: cannot start %s: %s%s\n", launch_child_name(c, name), strerror(why),
                        why == EMFILE ? "; raise `ulimit -n`" : "");
        pipes_close(pipes);
        return false;
    }
    stream_init(r, c, &c->out, pipes[1][0], true);
    stream_init(r, c, &c->err, pipes[2][0], false);
    c->in = pipes[0][1];
    pipes[0][1] = pipes[1][0] = pipes[2][0] = -1;
    pipes_close(pipes);
    return true;
}

bool launch_child_start(launch_run *r, launch_child *c)
{
    launch_list own = {0}, words = {0}, whole = {0}, command = {0};
    const bool far = c->host && c->role != LAUNCH_OTHER;
    bool ok = false;

    prefix_make(c);
    launch_env_of(r->job, c->role, c->rank, c->host, c->starts, &own);
    words_of(r, c, &own, &words);
    (void)snprintf(c->program, sizeof c->program, "%.60s", words.count ? words.items[0] : "");
    env_whole(far ? &(launch_list){0} : &own, &whole);
    if (far)
        launch_command_of(r->job, c->role, &command);
    if (own.failed || words.failed || whole.failed || command.failed)
        cli_error("out of memory");
    else
        ok = log_open(r, c) && guard_make(r, c, &words, &whole, far);
    if (ok) {
        c->starts++;
        c->process = 0;
        c->asked = false;
        r->living++;
        if (far) {
            (void)fcntl(c->in, F_SETFL, O_NONBLOCK);
            if (!launch_remote_send(r->job, c->in, &own, &command)) {
                (void)close(c->in); /* the far end says what is missing */
                c->in = -1;
            }
        }
    }
    launch_list_fini(&own);
    launch_list_fini(&words);
    launch_list_fini(&whole);
    launch_list_fini(&command);
    return ok;
}

void launch_child_signal(launch_child *c, int sig)
{
    const unsigned char byte = (unsigned char)sig;

    if (c->channel < 0)
        return;
    if (sig == SIGKILL && c->in >= 0) {
        (void)close(c->in); /* the far end ends all that it started */
        c->in = -1;
    }
    if (c->in >= 0)
        (void)!write(c->in, &byte, 1);
    else
        launch_guard_signal(c->channel, sig);
}
