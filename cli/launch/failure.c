/*
 * Failures: which one was the first, what it leads to, and how it is told: before all else, with the last
 * lines of its process.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "supervise.h"

static void failure_say(launch_run *r, const launch_child *c)
{
    const char *state = c->starts > 1 && r->job->on_fail == LAUNCH_RESTART ? " again" : "";
    const int code = launch_exit_of(c), sig = code > 128 && code < 128 + NSIG ? code - 128 : 0;
    const bool tail = c->log.tail_used && !c->out.raw; /* what passes output on for others told theirs */
    char name[160], why[128];

    if (c->end.kind == LAUNCH_REFUSED)
        (void)snprintf(why, sizeof why, "cannot run %s: %s", c->program, strerror(c->end.value));
    else if (sig)
        (void)snprintf(why, sizeof why, "failed%s: signal %d (%s)", state, sig, strsignal(sig));
    else
        (void)snprintf(why, sizeof why, "failed%s: exit code %d", state, code);
    launch_sink_say(&r->err, "tenon: %s %s%s\n", launch_child_name(c, name), why,
                    tail ? "; its last lines:" : "");
    if (tail)
        launch_log_show(&c->log, &r->err);
    if (r->job->args->value[OPT_JSON]) {
        json_t *event = json_pack("{s:s, s:s, s:I, s:s, s:i, s:i, s:o}", "event", "failed", "role",
                                  launch_role_names[c->role], "rank", (json_int_t)c->rank, "host",
                                  *c->place ? c->place : "localhost", "exit", code, "signal", sig, "last",
                                  launch_log_lines(&c->log));
        char *text = event ? json_dumps(event, JSON_COMPACT) : NULL;

        if (text)
            launch_sink_say(&r->out, "%s\n", text);
        free(text);
        json_decref(event);
    }
}

/* Slurm ends the processes of all ranks itself, not only those that it started. */
static bool taken_down(const launch_run *r, const launch_child *c)
{
    return r->job->how == LAUNCH_RANK && c->end.kind == LAUNCH_ENDED && c->end.value == SIGTERM;
}

bool launch_ended_well(const launch_run *r, const launch_child *c)
{
    const int code = launch_exit_of(c);

    if (!code)
        return true;
    if (c->end.kind == LAUNCH_REFUSED || (!c->asked && !taken_down(r, c)))
        return false;
    return code == CLI_EXIT_STOPPED || code == 128 + SIGTERM || code == 128 + SIGKILL ||
           code == 128 + r->stop_signal || r->failed;
}

/* What a failure leads to. */
static int verdict_of(const launch_run *r, const launch_child *c)
{
    const launch_job *job = r->job;
    bool others = launch_workers_left(r) > 0;

    for (size_t i = 0; i < r->next && !others; i++)
        others = r->children[i].role == LAUNCH_WORKER && launch_ended(&r->children[i]) &&
                 !launch_exit_of(&r->children[i]);
    if (r->stopping || c->role == LAUNCH_SCHEDULER || c->end.kind != LAUNCH_ENDED)
        return END_STOPS;
    if (job->on_fail == LAUNCH_RESTART && c->starts <= job->restarts_max)
        return END_AGAIN;
    return job->on_fail == LAUNCH_SHRINK && c->role == LAUNCH_WORKER && others ? END_WITHOUT : END_STOPS;
}

/* The output of `c` is complete. */
static void failure_settle(launch_run *r, launch_child *c)
{
    char name[160];

    failure_say(r, c);
    if (r->verdict == END_AGAIN) {
        launch_sink_say(&r->err, "tenon: %s is started again, restart %u of %u\n", launch_child_name(c, name),
                        c->starts, r->job->restarts_max);
        c->log.tail_used = 0;
        if (launch_child_start(r, c))
            return;
        r->failed = true;
        r->code = launch_exit_of(c);
        launch_stop_begin(r, SIGTERM, 0);
    } else if (r->verdict == END_WITHOUT) {
        launch_sink_say(&r->err, "tenon: the job goes on with %zu worker%s\n", launch_workers_left(r),
                        launch_workers_left(r) == 1 ? "" : "s");
    } else if (r->living) {
        launch_sink_say(&r->err, "tenon: stopping %zu other process%s\n", r->living,
                        r->living == 1 ? "" : "es");
    }
}

/* The failure that comes first: lost peers are a consequence of another one. */
static bool before(const launch_child *a, const launch_child *b)
{
    const bool peer_a = launch_exit_of(a) == 6, peer_b = launch_exit_of(b) == 6;

    return peer_a != peer_b ? peer_b : a->end.at_ns < b->end.at_ns;
}

/* The first of the failures that are not told; the job ends at once, and the telling waits for its output. */
static launch_child *failure_next(launch_run *r)
{
    launch_child *first = NULL;

    for (size_t i = 0; i < r->next; i++) {
        launch_child *c = &r->children[i];

        c->owed = c->owed && !r->failed; /* all others are a consequence */
        if (c->owed && (!first || before(c, first)))
            first = c;
    }
    if (!first)
        return NULL;
    first->owed = false;
    r->verdict = verdict_of(r, first);
    if (r->verdict == END_STOPS) {
        r->failed = true;
        r->code = launch_exit_of(first);
        launch_stop_begin(r, SIGTERM, 0);
    }
    return first;
}

void launch_failures_look(launch_run *r)
{
    while (r->telling || (r->telling = failure_next(r))) {
        launch_child *c = r->telling;

        launch_sink_release(&r->out);
        launch_sink_release(&r->err);
        if (!launch_settled(c))
            return;
        r->telling = NULL;
        failure_settle(r, c);
    }
}
