/*
 * What a worker's program does: initial values, a barrier, steps that push and pull each key, snapshots, the
 * end of its data, the final values. A process that comes later, or is rolled back, goes on from what the
 * servers say.
 */
#include <string.h>

#include "kv/sim/internal.h"
#include "kv/worker.h"

static bool exact(const sim *s)
{
    return s->mode == SIM_SYNC;
}

static void ask(sim *s, sim_proc *p, uint32_t slot, tni_kv_request *r)
{
    sim_app *a = p->app;
    tn_status st;

    r->cookie = slot;
    r->priority = slot < s->o.keys ? 100 - slot : 255;
    a->waiting++;
    a->asked_ns[slot] = s->now;
    st = tni_kv_worker_request(p->worker, r, s->now);
    if (!st) {
        a->asked_round[slot] = slot < s->o.keys ? tni_kv_worker_round(p->worker, slot) : 0;
        return;
    }
    sim_app_done(p, slot, st);
}

static uint64_t hash_of(const float *value, uint32_t count)
{
    return tni_hash_bytes(1, value, count * sizeof *value) | 1u;
}

/* I2 and I3, of a value that came for a round. */
static void value_check(sim *s, sim_proc *p, uint32_t key, uint32_t round)
{
    const float *value = p->app->value[key];
    uint64_t *seen, hash = hash_of(value, s->elements[key]);

    if (round > SIM_ROUNDS_MAX || s->mode == SIM_ASYNC)
        return;
    seen = &s->seen[key][round];
    if (*seen && *seen != hash)
        sim_violation(s, "I2: worker %u sees another value of key %u in round %u than others", p->rank, key,
                      round);
    *seen = hash;
    if (!exact(s) || (s->o.byte_ns && p->rank % 100))
        return;
    sim_reference(s, key, round);
    if (memcmp(value, s->reference[key], s->elements[key] * sizeof *value) != 0)
        sim_violation(s, "I3: key %u after round %u is not that of a sequential run (worker %u)", key, round,
                      p->rank);
}

/* I1 and I5: what was acknowledged is there, and who is far behind is waited for. */
static void applied_check(sim *s, sim_proc *p, uint32_t key, uint32_t round, bool pulled)
{
    const tni_kv_plan_options o = {s->settings.servers, s->settings.bound, s->settings.part_bytes};
    tni_kv_plan plan;

    if (s->killed || s->mode == SIM_SHRINK ||
        tni_kv_plan_make(&o, key, s->elements[key], sizeof(float), &plan))
        return;
    for (uint32_t i = 0; i < plan.parts; i++) {
        const tni_kv_part part = tni_kv_plan_part(&plan, i);
        const sim_proc *server = sim_server(s, part.server);

        if (!server || server->gone)
            continue;
        if (tni_kv_server_applied(server->server, part.key, p->rank) < round)
            sim_violation(s, "I1: key %u part %u round %u of worker %u was acknowledged, but is not applied",
                          key, i, round, p->rank);
        for (uint32_t w = 0; pulled && s->mode == SIM_ASYNC && w < s->settings.workers; w++)
            if (round > s->settings.staleness && round - s->settings.staleness <= s->last_round[w] &&
                !sim_before(s, key) &&
                tni_kv_server_applied(server->server, part.key, w) < round - s->settings.staleness)
                sim_violation(s, "I5: worker %u reads key %u at clock %u, worker %u is at %u", p->rank, key,
                              round, w, tni_kv_server_applied(server->server, part.key, w));
    }
}

static void pushed(sim *s, sim_proc *p, uint32_t key);

/* Of a job whose servers go back: who was there from the beginning and keeps enough does not hear of it. */
static bool goes_on(const sim *s, const sim_proc *p)
{
    const tni_kv_view *v = tni_kv_worker_view(p->worker);

    return s->mode == SIM_SYNC && s->settings.replay_bytes == SIM_REPLAY_ENOUGH &&
           v->members[p->rank].incarnation <= v->workers + v->servers;
}

/* Some worker 0 has taken the place of another: its program may not have given all again yet. One that keeps
 * too little cannot. */
static bool another_0(const sim *s)
{
    for (uint32_t i = s->base_count; i < s->proc_count; i++)
        if (s->procs[i].role == TNI_KV_WORKER && !s->procs[i].rank)
            return true;
    return false;
}

static void failed(sim *s, sim_proc *p, tn_status st)
{
    sim_app *a = p->app;
    uint32_t epochs;

    (void)tni_kv_worker_cut(p->worker, &epochs);
    sim_say(s, "worker %u: status %d: %s", p->rank, st, tni_error_message());
    s->closed = s->closed || (st == TN_E_PEER && strstr(tni_error_message(), "values are gone"));
    if (st == TN_E_PEER ||
        (st == TN_E_TIMEOUT && (s->mode == SIM_HANG || s->closed || sim_scheduler_gone(s)))) {
        if (a->status)
            return;
        a->status = st;
        tni_error_get(&a->error);
    } else if (st == TN_E_STATE && epochs != a->epochs) {
        if (goes_on(s, p))
            sim_violation(s, "I8: worker %u does not go on by itself: %s", p->rank, tni_error_message());
        a->stage = SIM_BEGIN;
    } else if (st == TN_E_STATE && (another_0(s) || s->settings.replay_bytes != SIM_REPLAY_ENOUGH) &&
               strstr(tni_error_message(), "came back without")) {
        s->told_at_once = true; /* the job ends with this error */
    } else if (st == TN_E_STATE && s->broke) {
        a->broken = true;
        for (uint32_t k = 0; k < s->o.keys; k++)
            s->voided[k] = s->voided[k] || !a->pushed[k];
    } else if (st == TN_E_CANCELLED) {
        a->last = tni_kv_worker_view(p->worker)->end_round;
    } else {
        sim_violation(s, "%s: worker %u: %s", st == TN_E_TIMEOUT ? "I8" : "I1", p->rank, tni_error_message());
    }
}

/* The round of a value that has come: the one that was asked for; or a later one, if the process before this
 * one had pushed it and it became complete meanwhile. */
static uint32_t round_had(const sim *s, const sim_proc *p, uint32_t key)
{
    const uint32_t asked = p->app->asked_round[key], known = tni_kv_worker_round(p->worker, key);

    return p->index >= s->base_count && known > asked ? known : asked;
}

static uint32_t epoch_of(const sim_proc *p)
{
    return tni_kv_worker_view(p->worker)->epoch_view + 1;
}

void sim_app_done(void *arg, uint64_t cookie, tn_status st)
{
    sim_proc *p = arg;
    sim *s = p->world;
    sim_app *a = p->app;
    const uint32_t slot = (uint32_t)cookie;
    const uint64_t took = s->now - a->asked_ns[slot];

    if (p->dying)
        return;
    if (!a->asked_ns[slot]) {
        sim_violation(s, "I4: worker %u: request %u ended twice", p->rank, slot);
        return;
    }
    a->asked_ns[slot] = 0;
    a->waiting--;
    if (took > s->settings.timeout_ns + 2 * SIM_S && p->resume_ns + 2 * SIM_S < s->now)
        sim_violation(s, "I4: worker %u: request %u took %.1f s", p->rank, slot, (double)took / 1e9);
    if (st) {
        failed(s, p, st);
        return;
    }
    for (uint32_t w = 0; a->stage == SIM_BARRIER && w < s->settings.workers; w++)
        if (!s->came[w] && s->mode != SIM_SHRINK)
            sim_violation(s, "I2: worker %u is behind the barrier, but worker %u has not come", p->rank, w);
    if (slot >= s->o.keys)
        return;
    if (a->stage == SIM_LATE) {
        a->made = true;
        s->late_given = epoch_of(p);
    }
    if (a->stage == SIM_STEP) {
        s->result->steps_ns = s->now - s->step_ns;
        if (!s->o.byte_ns)
            applied_check(s, p, slot, a->asked_round[slot], !a->pulls[slot]);
        if (a->pulls[slot]) {
            pushed(s, p, slot);
            return;
        }
        if (!TNI_KV_BUG(LIVE_BUFFER)) /* it tells before the value is there */
            value_check(s, p, slot, round_had(s, p, slot));
        memset(a->gradient[slot], 0x5a,
               s->elements[slot] * sizeof(float)); /* the program uses its buffer again */
    } else if (a->stage == SIM_FINAL) {
        value_check(s, p, slot, tni_kv_worker_view(p->worker)->end_round);
    }
}

static void init_ask(sim *s, sim_proc *p)
{
    sim_app *a = p->app;

    (void)tni_kv_worker_cut(p->worker, &a->epochs);
    a->stage = SIM_INIT;
    a->broken = a->made = false;
    s->late_given = p->rank ? s->late_given : 0;
    for (uint32_t k = 0; k < s->o.keys - s->late; k++) {
        tni_kv_request r = {.kind = TNI_KV_DO_INIT, .key = k, .in = a->value[k]};

        for (uint32_t i = 0; i < s->elements[k]; i++)
            a->value[k][i] = sim_first_value(k, i);
        ask(s, p, k, &r);
    }
}

/* Instead of the whole of a key: rows that are pushed, or a pull of all rows. */
static void rows_ask(sim *s, const sim_proc *p, uint32_t key, tni_kv_request *r)
{
    const tni_kv_plan_options o = {s->settings.servers, s->settings.bound, s->settings.part_bytes};
    const bool pushes = r->kind != TNI_KV_DO_PULL;
    const uint32_t round = tni_kv_worker_round(p->worker, key) + 1;
    int64_t ids[SIM_ELEMENTS_MOST];
    float values[SIM_ELEMENTS_MOST];
    tni_kv_cut **cuts = &p->app->cuts[key];
    uint64_t count = 0;
    tni_kv_plan plan;

    for (uint32_t i = 0; i < s->elements[key]; i++) {
        if (pushes && !sim_row_named(s, p->rank, key, round, i))
            continue;
        values[count] = sim_gradient(s, p->rank, key, round, i);
        ids[count++] = i;
    }
    tni_free(*cuts);
    *cuts = NULL;
    if (tni_kv_plan_make(&o, key, s->elements[key], sizeof(float), &plan) ||
        tni_kv_rows_write(&plan, sizeof(float), ids, count, pushes ? values : NULL, cuts))
        return; /* the whole, then */
    r->what = TNI_KV_ROWS;
    r->row_bytes = sizeof(float);
    r->cuts = *cuts;
    r->in = tni_kv_rows_payload(*cuts, plan.parts);
}

static void push_ask(sim *s, sim_proc *p, uint32_t key)
{
    sim_app *a = p->app;
    float *gradient = s->in_place && !s->apart ? a->value[key] : a->gradient[key];
    tni_kv_request r = {.kind = TNI_KV_DO_PUSHPULL, .key = key, .in = gradient, .out = a->value[key]};

    tni_kv_step_again(p->worker, NULL, 0); /* the gradient is that of the round in which it will be pushed */
    for (uint32_t i = 0; i < s->elements[key]; i++)
        gradient[i] = sim_gradient(s, p->rank, key, tni_kv_worker_round(p->worker, key) + 1, i);
    a->pushed[key] = true;
    a->goes_on[key] = false;
    a->pulls[key] = s->apart;
    if (s->apart)
        r.kind = TNI_KV_DO_PUSH;
    if (s->rows[key])
        rows_ask(s, p, key, &r);
    ask(s, p, key, &r);
}

/* A push without a value is complete: the pull follows. */
static void pushed(sim *s, sim_proc *p, uint32_t key)
{
    sim_app *a = p->app;
    tni_kv_request r = {.kind = TNI_KV_DO_PULL, .key = key, .out = a->value[key]};

    a->pulls[key] = false;
    memset(a->gradient[key], 0x5a, s->elements[key] * sizeof(float)); /* the program uses its buffer again */
    if (s->rows[key])
        rows_ask(s, p, key, &r);
    if (!a->broken)
        ask(s, p, key, &r);
}

/* Without rounds a program that comes later does not look at them, as a training does: its steps push every
 * key, also those that the servers have more of. */
static bool anew(const sim *s, const sim_proc *p)
{
    return s->mode == SIM_ASYNC && p->index >= s->base_count && s->o.seed % 4;
}

/* Pushes of a key as of one that was there from the beginning. */
static uint32_t round_of(const sim *s, const sim_proc *p, uint32_t key)
{
    return tni_kv_worker_round(p->worker, key) + sim_before(s, key);
}

static void step_ask(sim *s, sim_proc *p)
{
    sim_app *a = p->app;
    const bool breaks =
        s->faults & SIM_BREAK && !s->broke && p->rank == s->break_worker && a->step == s->break_step;
    const uint32_t keys = breaks ? (uint32_t)sim_below(s, s->o.keys) : s->o.keys;

    s->step_ns = s->step_ns ? s->step_ns : s->now;
    if (a->step == 2)
        sim_lose(s);
    TNI_KV_POINT(forward);
    memset(a->pushed, 0, sizeof a->pushed);
    for (uint32_t k = 0; k < s->o.keys; k++)
        a->pushed[k] = round_of(s, p, k) >= a->step;
    for (uint32_t k = 0; k < keys && !a->broken && a->stage == SIM_STEP; k++) {
        tni_kv_request r = {.kind = TNI_KV_DO_PULL, .key = k, .out = a->value[k]};

        if (sim_before(s, k) && !a->made)
            continue;
        a->goes_on[k] = true;
        if (round_of(s, p, k) < (anew(s, p) ? a->last : a->step))
            push_ask(s, p, k);
        else
            ask(s, p, k, &r);
    }
    TNI_KV_POINT(backward);
    if (!breaks)
        return;
    sim_say(s, "worker %u breaks step %u after %u keys", p->rank, a->step, keys);
    s->broke = true;
    a->broken = true;
    for (uint32_t k = 0; k < s->o.keys; k++)
        s->voided[k] = s->voided[k] || !a->pushed[k];
    if (tni_kv_worker_break(p->worker, a->step, s->now))
        sim_violation(s, "break fails: %s", tni_error_message());
}

static void control_ask(sim *s, sim_proc *p, tni_kv_kind kind, uint64_t step, sim_stage stage)
{
    tni_kv_request r = {.kind = kind, .step = step};

    p->app->stage = stage;
    ask(s, p, s->o.keys, &r);
}

static void pull_ask(sim *s, sim_proc *p, sim_stage stage)
{
    p->app->stage = stage;
    for (uint32_t k = 0; k < s->o.keys; k++) {
        tni_kv_request r = {.kind = TNI_KV_DO_PULL, .key = k, .out = p->app->value[k], .any = true};

        if (!sim_before(s, k) || p->app->made)
            ask(s, p, k, &r);
    }
}

/* Worker 0 gives the first value; others ask for it later. */
static void late_ask(sim *s, sim_proc *p)
{
    const uint32_t k = s->o.keys - 1;
    float *value = p->app->value[k];
    uint32_t epochs;
    tni_kv_request r = {.kind = TNI_KV_DO_PULL, .key = k, .out = value, .any = true};

    (void)tni_kv_worker_cut(p->worker, &epochs);
    p->app->stage = epochs == p->app->epochs ? SIM_LATE : SIM_BEGIN; /* no request was there to be told */
    if (epochs != p->app->epochs)
        return;
    for (uint32_t i = 0; i < s->elements[k] && !p->rank; i++)
        value[i] = sim_first_value(k, i);
    if (!p->rank)
        r = (tni_kv_request){.kind = TNI_KV_DO_INIT, .key = k, .in = value};
    ask(s, p, k, &r);
}

/* The next step that some key has not had. */
static void next_step(sim *s, sim_proc *p)
{
    sim_app *a = p->app;
    uint32_t least = UINT32_MAX;

    for (uint32_t k = 0; k < s->o.keys; k++)
        if ((!sim_before(s, k) || a->made) && round_of(s, p, k) < least)
            least = round_of(s, p, k);
    a->step = least + 1;
    a->last = s->last_round[p->rank] < a->last ? s->last_round[p->rank] : a->last;
    if (s->late && !a->made &&
        (p->rank ? s->late_given == epoch_of(p) && (a->step >= SIM_LATE_STEP || p->index >= s->base_count)
                 : a->step >= SIM_LATE_STEP)) {
        late_ask(s, p);
        return;
    }
    if (a->step > a->last) {
        control_ask(s, p, TNI_KV_DO_END, least < a->last ? least : a->last, SIM_END);
        return;
    }
    a->stage = SIM_STEP;
    step_ask(s, p);
}

/* Without rounds worker 0 has new keys written before their first gradient. */
static void steps_begin(sim *s, sim_proc *p)
{
    if (s->mode == SIM_ASYNC && s->save_every && p->rank == 0 && (s->o.seed & 5) == 4)
        control_ask(s, p, TNI_KV_DO_SNAPSHOT, 1, SIM_SAVE);
    else
        next_step(s, p);
}

/* What follows on a stage whose requests have all ended. */
static void advance(sim *s, sim_proc *p)
{
    sim_app *a = p->app;
    const tni_kv_view *v = tni_kv_worker_view(p->worker);
    tni_kv_request r;

    if (a->broken && a->stage == SIM_STEP) {
        a->broken = false;
        pull_ask(s, p, SIM_REPAIR);
        return;
    }
    switch (a->stage) {
    case SIM_BEGIN:
        a->last = UINT32_MAX;
        init_ask(s, p);
        break;
    case SIM_INIT:
        if (s->tells && p->rank == 0) {
            r = (tni_kv_request){.kind = TNI_KV_DO_COMMAND, .in = "go", .bytes = 2};
            a->stage = SIM_TELL;
            ask(s, p, s->o.keys, &r);
            break;
        }
        /* fall through */
    case SIM_TELL:
        s->came[p->rank] = true;
        if (v->released == 0 && !a->met)
            control_ask(s, p, TNI_KV_DO_BARRIER, 0, SIM_BARRIER);
        else
            steps_begin(s, p);
        break;
    case SIM_BARRIER:
        a->met = true;
        steps_begin(s, p);
        break;
    case SIM_STEP:
        if (s->save_every && a->step % s->save_every == 0 && a->step <= a->last)
            control_ask(s, p, TNI_KV_DO_SNAPSHOT, a->step, SIM_SAVE);
        else
            next_step(s, p);
        break;
    case SIM_REPAIR:
        tni_kv_worker_resume(p->worker);
        next_step(s, p);
        break;
    case SIM_END:
        pull_ask(s, p, SIM_FINAL);
        break;
    case SIM_FINAL: /* nobody leaves before all have their values */
        if (s->hurry)
            control_ask(s, p, TNI_KV_DO_BYE, 0, SIM_BYE);
        else
            control_ask(s, p, TNI_KV_DO_BARRIER, 0, SIM_LAST);
        break;
    case SIM_LAST:
        control_ask(s, p, TNI_KV_DO_BYE, 0, SIM_BYE);
        break;
    case SIM_BYE:
        sim_say(s, "worker %u has left", p->rank);
        a->stage = SIM_OVER;
        break;
    default:
        next_step(s, p);
    }
}

void sim_app_step(sim *s, sim_proc *p)
{
    sim_app *a = p->app;
    const tn_status st = tni_kv_worker_status(p->worker);
    const uint32_t epoch = epoch_of(p);
    uint32_t epochs;

    (void)tni_kv_worker_cut(p->worker, &epochs);
    s->result->resumed += a->epoch && epoch != a->epoch && epochs == a->epochs;
    a->epoch = epoch;
    if (st && !a->status)
        failed(s, p, st);
    for (int i = 0; i < 8 && !p->dying && a->stage != SIM_OVER && !a->status && a->waiting == 0; i++) {
        if (a->stage == SIM_BEGIN && !tni_kv_worker_ready(p->worker))
            break;
        advance(s, p);
    }
    if (a->status && a->stage != SIM_OVER) {
        a->stage = SIM_OVER;
        sim_replace(s, p);
    }
}

void sim_app_check(sim *s, sim_proc *p)
{
    const uint32_t excuses =
        SIM_LOSS | SIM_DAMAGE | SIM_CUT | SIM_PAUSE | SIM_SLOW | SIM_KILL_SCHEDULER | SIM_KILL_SERVER;
    const sim_app *a = p->app;

    if (!tni_kv_worker_view(p->worker)->number && s->now > p->begun_ns + 3 * SIM_S &&
        !(s->faults & excuses) && !s->o.point && !s->o.at)
        sim_violation(s, "I8: worker %u has no rank after 3 s", p->rank);

    for (uint32_t k = 0; k <= s->o.keys; k++)
        if (a->asked_ns[k] && s->now - a->asked_ns[k] > s->settings.timeout_ns + 3 * SIM_S &&
            p->resume_ns + 3 * SIM_S < s->now)
            sim_violation(s, "I4: worker %u waits for %.1f s", p->rank,
                          (double)(s->now - a->asked_ns[k]) / 1e9);
    for (uint32_t i = 0; !s->o.byte_ns && i < s->settings.servers; i++) {
        const sim_proc *server = sim_server(s, i);
        const uint64_t all =
            2ull * SIM_KEYS_MAX * SIM_ELEMENTS_MAX * sizeof(float) + s->settings.landing_bytes;

        if (server && tni_kv_server_bytes(server->server) > all)
            sim_violation(s, "I6: server %u holds %llu bytes", i,
                          (unsigned long long)tni_kv_server_bytes(server->server));
    }
}

/* A process that ends within a round may leave parts of a key without it. */
static void each_once(sim *s, uint32_t key, uint32_t part, uint32_t worker)
{
    const sim_shadow *shadow = sim_shadow_of(s, key, part, worker);
    uint32_t torn = 0;

    for (uint32_t i = s->base_count; i < s->proc_count; i++)
        torn += s->procs[i].role == TNI_KV_WORKER && s->procs[i].rank == worker;
    for (uint32_t r = 1; r <= s->last_round[worker] && !sim_before(s, key); r++)
        if (shadow->applied[r] > 1 || (!shadow->applied[r] && !torn--))
            sim_violation(s, "I1: key %u part %u round %u of worker %u was applied %u times", key, part, r,
                          worker, shadow->applied[r]);
}

/* Sums of whole numbers are exact in any order: each value is the first one and what its shadow says. */
static void conserved(sim *s, const sim_proc *server)
{
    const tni_kv_plan_options o = {s->settings.servers, s->settings.bound, s->settings.part_bytes};

    for (uint32_t k = 0; k < s->o.keys; k++) {
        tni_kv_plan plan;

        if (tni_kv_plan_make(&o, k, s->elements[k], sizeof(float), &plan))
            return;
        for (uint32_t i = 0; i < plan.parts; i++) {
            const tni_kv_part part = tni_kv_plan_part(&plan, i);
            uint32_t version;
            const float *value =
                part.server == server->rank ? tni_kv_server_value(server->server, part.key, &version) : NULL;

            for (uint32_t e = 0; value && e < part.bytes / sizeof(float); e++) {
                const uint32_t at = e + (uint32_t)(part.offset / sizeof(float));
                float sum = sim_first_value(k, at);

                for (uint32_t w = 0; w < s->settings.workers; w++)
                    for (uint32_t r = 1; r <= SIM_ROUNDS_MAX; r++)
                        if (sim_shadow_of(s, k, i, w)->applied[r])
                            sum += sim_gradient(s, w, k, r, at);
                if (sum != value[e])
                    sim_violation(s, "I1: key %u part %u is %g, what was applied makes %g", k, i,
                                  (double)value[e], (double)sum);
            }
            for (uint32_t w = 0; value && !s->killed && w < s->settings.workers; w++)
                each_once(s, k, i, w);
        }
    }
}

/* The error of a job that failed names who died, in time. Before anybody knows of that it names who has not
 * pushed: where servers have little room these may be others, whose pushes wait for it. */
static void named(sim *s, const sim_proc *p)
{
    const bool room = s->mode == SIM_FAIL || s->settings.landing_bytes > 1000;
    char name[24];

    if (p->app->status != TN_E_PEER && (s->mode == SIM_FAIL || p->app->status != TN_E_TIMEOUT))
        sim_violation(s, "I4: worker %u was not told that a process died", p->rank);
    else if (!s->loss && !s->damage && s->settings.credit_bytes > 1000 && room &&
             !strstr(p->app->error.message, tni_kv_node_name(s->victim, name)))
        sim_violation(s, "I4: worker %u: the error does not name %s: %s", p->rank, name,
                      p->app->error.message);
}

/* One that another has replaced keeps values of its own time, also when that other one was killed. */
static bool last_of_rank(const sim *s, const sim_proc *p)
{
    for (uint32_t i = p->index + 1; i < s->proc_count; i++)
        if (s->procs[i].role == p->role && s->procs[i].rank == p->rank)
            return false;
    return true;
}

void sim_app_final(sim *s)
{
    for (uint32_t i = 0; i < s->proc_count; i++) {
        const sim_proc *p = &s->procs[i];

        if (p->alive && p->app && s->victim_ns && (s->mode == SIM_FAIL || s->mode == SIM_HANG) &&
            p->app->status)
            named(s, p);
        if (p->alive && p->server && s->mode == SIM_ASYNC && last_of_rank(s, p))
            conserved(s, p);
    }
}
