/*
 * The order in which a job ends: workers, then servers, then the scheduler; each is asked, and after a while
 * killed.
 */
#include <signal.h>
#include <unistd.h>

#include "supervise.h"

int launch_level_of(const launch_child *c)
{
    return c->role == LAUNCH_SCHEDULER ? 2 : c->role == LAUNCH_SERVER ? 1 : 0;
}

bool launch_level_signal(launch_run *r, int level, int sig, bool ask)
{
    bool any = false;

    for (size_t i = 0; i < r->next; i++) {
        launch_child *c = &r->children[i];

        if (launch_level_of(c) != level || c->channel < 0)
            continue;
        any = true;
        c->asked = c->asked || ask;
        if (sig)
            launch_child_signal(c, sig);
    }
    return any;
}

void launch_stop_begin(launch_run *r, int sig, int level)
{
    if (r->stopping)
        return;
    r->stopping = true;
    r->stop_signal = sig;
    r->stop_level = level;
    r->stop_stage = 0;
}

void launch_kill_all(launch_run *r)
{
    for (int level = 0; level <= 2; level++)
        (void)launch_level_signal(r, level, SIGKILL, true);
    r->stopping = true;
    r->stop_level = 3;
    r->stop_until = launch_now() + LAUNCH_KILLED_WAIT_NS;
}

/* A process that not even SIGKILL ends hangs in the kernel. */
static void given_up(launch_run *r)
{
    char name[160];

    for (size_t i = 0; i < r->next; i++) {
        launch_child *c = &r->children[i];

        if (c->channel < 0)
            continue;
        launch_sink_say(&r->err, "tenon: %s (process %d) does not end\n", launch_child_name(c, name),
                        (int)c->process);
        (void)close(c->channel);
        c->channel = -1;
        launch_stream_close(&c->out);
        launch_stream_close(&c->err);
        r->living--;
    }
}

void launch_stop_advance(launch_run *r, int64_t now)
{
    bool alone; /* the tool's own scheduler, which stays a while for servers that ask again: there are none */

    while (r->stopping && r->stop_level <= 2 && !launch_level_signal(r, r->stop_level, 0, false)) {
        r->stop_level++;
        r->stop_stage = 0;
    }
    if (!r->stopping || (r->stop_level > 2 && !r->living))
        return;
    alone = r->stop_level == 2 && launch_serves_itself(r->job, LAUNCH_SCHEDULER);
    if (r->stop_level > 2 && now >= r->stop_until) {
        given_up(r);
    } else if (r->stop_level <= 2 && r->stop_stage == 0 && (now >= r->linger_until || alone)) {
        (void)launch_level_signal(r, r->stop_level, r->stop_level ? SIGTERM : r->stop_signal, true);
        r->stop_stage = 1;
        r->stop_until = now + r->job->grace_ns;
    } else if (r->stop_level <= 2 && r->stop_stage == 1 && now >= r->stop_until) {
        (void)launch_level_signal(r, r->stop_level, SIGKILL, true);
        r->stop_stage = 2;
        r->stop_until = now + LAUNCH_KILLED_WAIT_NS;
    } else if (r->stop_level <= 2 && r->stop_stage == 2 && now >= r->stop_until) {
        given_up(r);
    }
}

size_t launch_workers_left(const launch_run *r)
{
    size_t left = 0;

    for (size_t i = 0; i < r->next; i++)
        left += launch_level_of(&r->children[i]) == 0 && r->children[i].channel >= 0;
    return left;
}
