/*
 * Named points of the code (kv/point.h). A process that is killed within a call has no effect after the
 * point: it sends and writes nothing more, and ends when the call has. One that is stopped there sends the
 * rest when it goes on. For another process the point is when it is killed or stopped.
 */
#include "kv/sim/internal.h"

#ifdef TN_TEST_SWITCHES
static sim *running;
static void (*outside)(tni_kv_at at);

static void met(tni_kv_at at)
{
    sim *s = running;
    sim_proc *p = s->acting;

    if (at != s->o.at || s->result->reached || !p || p->gone || p->dying || ++s->at_count != s->o.nth)
        return;
    s->result->reached = s->struck = true;
    sim_say(s, "point %u of process %u", (unsigned)at, p->index);
    if (p->role != s->o.strike)
        return;
    if (s->o.how == SIM_STOP)
        p->resume_ns = s->now + 12 * SIM_S;
    else
        p->dying = true;
}

void sim_at_begin(sim *s)
{
    if (!s->o.at)
        return;
    running = s;
    outside = tni_kv_point;
    tni_kv_point = met;
}

void sim_at_end(void)
{
    if (running)
        tni_kv_point = outside;
    running = NULL;
}
#else
void sim_at_begin(sim *s)
{
    (void)s;
}

void sim_at_end(void)
{
}
#endif

/* The process that is there, or the newest one of rank 0 that has the role. */
static sim_proc *victim(sim *s)
{
    sim_proc *found = NULL;

    for (uint32_t i = 0; i < s->proc_count; i++) {
        sim_proc *p = &s->procs[i];

        if (!p->alive || p->role != s->o.strike)
            continue;
        if (p->dying || (s->o.how == SIM_STOP && p->resume_ns > s->now))
            return p;
        if (p->rank == 0 && !p->gone)
            found = p;
    }
    return found;
}

void sim_point_time(sim *s, uint32_t role)
{
    const uint64_t end = s->now + 16 * SIM_S;

    s->killed = s->killed || role == TNI_KV_SERVER;
    s->faults_end_ns = s->faults_end_ns > end ? s->faults_end_ns : end;
    s->deadline_ns = s->faults_end_ns + 140 * SIM_S;
}

void sim_strike(sim *s)
{
    sim_proc *p;

    if (!s->struck)
        return;
    s->struck = false;
    sim_point_time(s, s->o.strike);
    p = victim(s);
    if (p && !(p->app && p->app->stage == SIM_OVER)) /* else it had ended before */
        sim_point_do(s, p);
}
