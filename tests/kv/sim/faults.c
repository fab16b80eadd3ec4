/* What a seed stands for: the job, its network, and what goes wrong when. */
#include <string.h>

#include "kv/sim/internal.h"

typedef enum action { ACT_KILL, ACT_PAUSE, ACT_CUT, ACT_JOIN, ACT_SLOW } action;

static void act(sim *s, action what, uint64_t at, uint32_t proc, uint64_t ns)
{
    sim_event *e = sim_event_add(s, SIM_FAULT, at, 0);

    if (!e)
        return;
    e->what = what;
    e->proc = proc;
    e->arg = ns;
    if (at + ns > s->faults_end_ns)
        s->faults_end_ns = at + ns;
}

static void settings_plan(sim *s)
{
    tni_kv_settings *o = &s->settings;
    const uint32_t policy = (uint32_t)sim_below(s, 3);

    *o = (tni_kv_settings){.job = sim_random(s) | 1u,
                           .workers = s->o.workers ? s->o.workers : 1 + (uint32_t)sim_below(s, 4),
                           .servers = s->o.servers ? s->o.servers : 1 + (uint32_t)sim_below(s, 3),
                           .beat_ns = SIM_S,
                           .suspect_ns = 3 * SIM_S,
                           .dead_ns = s->mode == SIM_HANG ? 0 : 10 * SIM_S,
                           .timeout_ns = s->mode == SIM_HANG ? 5 * SIM_S : 150 * SIM_S,
                           .control_timeout_ns = (s->mode == SIM_HANG   ? 5
                                                  : s->mode >= SIM_FAIL ? 40
                                                                        : 100) *
                                                 SIM_S,
                           .bound = 64,
                           .part_bytes = 256,
                           .credit_bytes = sim_below(s, 2) ? 1u << 20 : 600,
                           .landing_bytes = sim_below(s, 2) ? 1u << 20 : 700,
                           .staleness = sim_below(s, 3) ? (uint32_t)sim_below(s, 4) : UINT32_MAX,
                           .async = s->mode == SIM_ASYNC,
                           .checked = true,
                           .uneven = (tni_kv_uneven)policy,
                           .worker_loss = TNI_KV_LOSS_WAIT,
                           .server_loss = TNI_KV_LOSS_WAIT,
                           .worker_wait_ns = 90 * SIM_S,
                           .server_wait_ns = 90 * SIM_S,
                           .workers_min = 1,
                           .snapshot_steps = 1,
                           .replay_bytes = s->o.seed % 6 == 0   ? 0
                                           : s->o.seed % 6 == 1 ? 1500
                                                                : SIM_REPLAY_ENOUGH,
                           .late_ns = s->o.exactly || s->o.seed % 2 ? 0 : SIM_S / 200};
    if (s->o.byte_ns) { /* a network that loses nothing: no retries, and each part goes alone */
        o->retry_ns = 100 * SIM_S;
        o->timeout_ns = o->control_timeout_ns = 3600 * SIM_S;
        o->part_bytes = 128;
        o->bound = 1;
        o->batch_bytes = 64;
        o->credit_bytes = o->landing_bytes = 1u << 30;
    }
    if (s->mode >= SIM_FAIL && o->workers < 2)
        o->workers = 2;
    if (s->mode == SIM_FAIL)
        o->worker_loss = o->server_loss = TNI_KV_LOSS_FAIL;
    if (s->mode == SIM_SHRINK)
        o->worker_loss = TNI_KV_LOSS_SHRINK;
}

static void job_plan(sim *s)
{
    const bool uneven = s->mode <= SIM_ASYNC && sim_below(s, 4) == 0 && !(s->faults & SIM_BREAK);
    uint32_t least;

    s->o.keys = s->o.keys ? s->o.keys : 1 + (uint32_t)sim_below(s, SIM_KEYS_MAX - 1);
    s->o.rounds = s->o.rounds ? s->o.rounds : 3 + (uint32_t)sim_below(s, 8);
    for (uint32_t k = 0; k < s->o.keys; k++)
        s->elements[k] =
            k == 1 ? 65 + (uint32_t)sim_below(s, SIM_ELEMENTS_MAX - 64) : 1 + (uint32_t)sim_below(s, 40);
    if (s->o.elements)
        s->elements[0] = s->o.elements;
    least = s->o.rounds;
    for (uint32_t w = 0; w < s->settings.workers && w < SIM_WORKERS_MAX; w++) {
        s->last_round[w] = uneven ? 1 + (uint32_t)sim_below(s, s->o.rounds) : s->o.rounds;
        least = s->last_round[w] < least ? s->last_round[w] : least;
    }
    if (s->settings.async && s->settings.uneven == TNI_KV_DROP)
        s->settings.uneven = TNI_KV_JOIN;
    for (uint32_t w = 0; s->settings.uneven == TNI_KV_DROP && w < s->settings.workers && w < SIM_WORKERS_MAX;
         w++)
        s->last_round[w] = s->mode == SIM_SYNC ? s->last_round[w] : least;
    s->save_every = s->mode <= SIM_ASYNC ? (uint32_t)sim_below(s, 4) : 0;
    s->save_every = s->o.save ? s->o.save : s->save_every;
    s->apart = sim_below(s, 2) && !s->o.byte_ns;
    for (uint32_t k = 0; k < s->o.keys; k++)
        s->rows[k] = s->o.seed % 5 < 2 && k % 2 == s->o.seed % 2 && !s->o.byte_ns;
    s->tells = s->mode == SIM_ASYNC && s->o.seed % 3 == 1;
    for (uint32_t w = 0; w < s->settings.workers && w < SIM_WORKERS_MAX; w++)
        least = s->last_round[w] < least ? s->last_round[w] : least;
    /* Bounded, a worker in another's place and others may wait for each other: decision 48. */
    s->late = s->mode == SIM_ASYNC && s->o.seed % 4 && s->settings.staleness == UINT32_MAX && s->o.keys > 1 &&
              least >= SIM_LATE_STEP;
    s->in_place = s->o.seed % 4 == 2 && !s->o.byte_ns;
    s->hurry = sim_below(s, 2) && !(s->faults & (SIM_KILL_WORKER | SIM_KILL_SERVER | SIM_PAUSE | SIM_CUT));
    s->break_worker = (uint32_t)sim_below(s, s->settings.workers);
    s->break_step = 1 + (uint32_t)sim_below(s, s->o.rounds);
}

static uint32_t any_of(sim *s, uint32_t role)
{
    if (role == TNI_KV_SCHEDULER)
        return 0;
    return role == TNI_KV_SERVER ? 1 + (uint32_t)sim_below(s, s->settings.servers)
                                 : 1 + s->settings.servers + (uint32_t)sim_below(s, s->settings.workers);
}

static void victim_plan(sim *s, uint64_t span)
{
    const bool server = s->mode == SIM_FAIL && sim_below(s, 3) == 0;
    const uint32_t proc = any_of(s, server ? TNI_KV_SERVER : TNI_KV_WORKER);

    s->victim = server ? TNI_KV_NODE(TNI_KV_SERVER, proc - 1)
                       : TNI_KV_NODE(TNI_KV_WORKER, proc - 1 - s->settings.servers);
    act(s, ACT_KILL, 40 * SIM_MS + sim_below(s, span), proc, 0);
}

static void kills_plan(sim *s, uint64_t span)
{
    static const uint32_t of_role[] = {SIM_KILL_SCHEDULER, SIM_KILL_SERVER, SIM_KILL_WORKER};

    for (uint32_t role = 0; role < 3; role++)
        for (uint64_t n = s->faults & of_role[role] ? 1 + sim_below(s, 2) : 0; n > 0; n--)
            act(s, ACT_KILL, sim_below(s, span), any_of(s, role), 50 * SIM_MS + sim_below(s, 12 * SIM_S));
    s->killed = s->faults & SIM_KILL_SERVER;
}

/* Three to eight, of which every other kill is followed by one of the scheduler before its victim is back. */
static void storm_plan(sim *s, uint64_t span)
{
    uint64_t at = sim_below(s, span);

    for (uint64_t n = 3 + sim_below(s, 6); n > 0; n--) {
        const uint32_t role = (uint32_t)sim_below(s, 3), proc = any_of(s, role);
        const uint64_t ns = 50 * SIM_MS + sim_below(s, sim_below(s, 4) ? 4 * SIM_S : 16 * SIM_S);

        if (sim_below(s, 3) == 0) {
            act(s, ACT_PAUSE, at, proc, ns);
        } else {
            act(s, ACT_KILL, at, proc, ns);
            s->killed = s->killed || role == TNI_KV_SERVER;
            if (role != TNI_KV_SCHEDULER && sim_below(s, 2))
                act(s, ACT_KILL, at + sim_below(s, ns + SIM_S), 0, 50 * SIM_MS + sim_below(s, 2 * SIM_S));
        }
        at += sim_below(s, sim_below(s, 2) ? ns : 8 * SIM_S);
    }
}

void sim_faults_plan(sim *s)
{
    static const sim_mode modes[] = {SIM_SYNC,  SIM_SYNC, SIM_SYNC,   SIM_SYNC,  SIM_SYNC,
                                     SIM_SYNC,  SIM_SYNC, SIM_ASYNC,  SIM_ASYNC, SIM_ASYNC,
                                     SIM_ASYNC, SIM_FAIL, SIM_SHRINK, SIM_HANG};
    uint64_t span;

    s->random = s->o.seed * 0x9e3779b97f4a7c15u + 12345;
    for (int i = 0; i < 4; i++)
        (void)sim_random(s);
    s->mode = s->o.mode >= 0 ? (sim_mode)s->o.mode : modes[sim_below(s, sizeof modes / sizeof *modes)];
    s->faults = s->o.exactly
                    ? s->o.faults
                    : s->o.faults & (uint32_t)sim_random(s) & (uint32_t)(sim_random(s) | sim_random(s));
    if (s->mode >= SIM_FAIL)
        s->faults &= SIM_LOSS | SIM_DOUBLE | SIM_REORDER | SIM_DAMAGE | SIM_SLOW | SIM_STALE;
    if (s->mode == SIM_ASYNC)
        s->faults &= ~SIM_BREAK;
    s->o.storm = s->o.storm && s->mode < SIM_FAIL;
    if (s->o.storm)
        s->faults = (s->faults & ~(SIM_BREAK | SIM_CUT)) | SIM_KILL_WORKER | SIM_KILL_SERVER |
                    SIM_KILL_SCHEDULER | SIM_PAUSE;
    if (s->faults & SIM_BREAK)
        s->faults &= ~(SIM_KILL_SERVER | SIM_KILL_WORKER | SIM_PAUSE | SIM_CUT);
    settings_plan(s);
    job_plan(s);
    s->delay_ns = SIM_MS / 10 * (1 + sim_below(s, 50));
    span = s->delay_ns * 8 * (s->o.rounds + 4) + SIM_MS * 60;
    s->faults_end_ns = span;
    s->loss = s->faults & SIM_LOSS ? 1 + (uint32_t)sim_below(s, 300) : 0;
    s->doubled = s->faults & SIM_DOUBLE ? 1 + (uint32_t)sim_below(s, 300) : 0;
    s->reorder = s->faults & SIM_REORDER ? 1 + (uint32_t)sim_below(s, 300) : 0;
    s->damage = s->faults & SIM_DAMAGE ? 1 + (uint32_t)sim_below(s, 50) : 0;
    if (s->mode >= SIM_FAIL)
        victim_plan(s, span / 2);
    else if (s->o.storm)
        storm_plan(s, span);
    else
        kills_plan(s, span);
    if (s->faults & SIM_PAUSE)
        act(s, ACT_PAUSE, sim_below(s, span), any_of(s, (uint32_t)sim_below(s, 3)), sim_below(s, 16 * SIM_S));
    if (s->faults & SIM_CUT) {
        const uint64_t at = sim_below(s, span), ns = sim_below(s, 14 * SIM_S);

        act(s, ACT_CUT, at, 0, 0);
        act(s, ACT_JOIN, at + ns, 0, 0);
    }
    if (s->faults & SIM_SLOW)
        act(s, ACT_SLOW, sim_below(s, span), any_of(s, (uint32_t)sim_below(s, 3)), 0);
    s->deadline_ns = s->faults_end_ns + (s->o.byte_ns ? 3600 : 140) * SIM_S;
    if (s->loss || s->damage) /* a short end for kills that come after */
        s->faults_end_ns += SIM_S;
}

void sim_lose(sim *s)
{
    if (!s->o.lose)
        return;
    s->o.lose = false;
    s->killed = true;
    act(s, ACT_KILL, s->now, 2, s->settings.dead_ns + 2 * SIM_S);
    s->deadline_ns = s->faults_end_ns + 140 * SIM_S;
}

static sim_proc *newest(const sim *s, uint32_t role, uint32_t rank)
{
    for (uint32_t i = s->proc_count; i-- > 0;)
        if (s->procs[i].role == role && s->procs[i].rank == rank && s->procs[i].alive)
            return &s->procs[i];
    return NULL;
}

void sim_restart_later(sim *s, const sim_proc *p, uint64_t ns)
{
    sim_event *e = sim_event_add(s, SIM_RESTART, s->now + ns, 0);

    if (e) {
        e->what = p->role;
        e->arg = p->rank;
        s->restarts++;
    }
}

void sim_replace(sim *s, sim_proc *p)
{
    const bool last = newest(s, p->role, p->rank) == p;

    p->gone = true;
    if (s->mode >= SIM_FAIL || s->closed || sim_scheduler_gone(s) ||
        strstr(tni_error_message(), "has ended") || strstr(tni_error_message(), "has left"))
        return;
    s->result->rejoins++;
    if (p->role == TNI_KV_SERVER)
        s->killed = true;
    p->resume_ns = 0;
    p->side = 0;
    if (last)
        sim_restart_later(s, p, 100 * SIM_MS);
}

static void kill(sim *s, sim_proc *p, uint64_t restart_ns)
{
    if (p->app && p->app->stage == SIM_OVER)
        return; /* its work is done */
    if (p->gone)
        return;
    s->result->faults++;
    if (s->mode >= SIM_FAIL)
        s->victim_ns = s->now;
    else
        sim_restart_later(s, p, restart_ns);
    sim_proc_kill(s, p);
}

void sim_fault(sim *s, const sim_event *e)
{
    sim_proc *p;

    if (e->kind == SIM_RESTART) {
        s->restarts--;
        if (sim_scheduler_gone(s))
            return;
        if (!newest(s, e->what, (uint32_t)e->arg) || newest(s, e->what, (uint32_t)e->arg)->gone)
            if (sim_proc_start(s, e->what, (uint32_t)e->arg, NULL))
                sim_violation(s, "a process does not start again: %s", tni_error_message());
        return;
    }
    p = newest(s, s->procs[e->proc].role, s->procs[e->proc].rank);
    s->result->faults++;
    sim_say(s, "fault %u of process %u for %.3f s", e->what, e->proc, (double)e->arg / 1e9);
    if (e->what == ACT_KILL && p)
        kill(s, p, e->arg);
    else if (e->what == ACT_PAUSE && p)
        p->resume_ns = s->now + e->arg;
    else if (e->what == ACT_SLOW && p)
        p->slow_ns = sim_below(s, 300 * SIM_MS);
    for (uint32_t i = 0; e->what == ACT_CUT && i < s->proc_count; i++)
        s->procs[i].side = (uint32_t)sim_below(s, 2);
    if (e->what == ACT_CUT || e->what == ACT_JOIN)
        s->cut = e->what == ACT_CUT;
}
