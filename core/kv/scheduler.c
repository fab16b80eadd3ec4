/*
 * The scheduler: gives ranks and incarnations, says who is dead, releases barriers, ends the job.
 *
 * All it decides is in the view. A change is written to the journal first, then announced (`commit`), so
 * that a scheduler that is started again on its journal knows all that it ever said. What it must not forget
 * but did not decide (who is at a barrier, which snapshots servers hold) is told again by those who know it.
 */
#include <string.h>

#include "kv/scheduler.h"

#define COMMIT_NS 20000000u    /* between two views: many leave at once */
#define COMMIT_NODE_NS 250000u /* and for each node that has to hear of it */

static void view_send(tni_kv_scheduler *s, uint32_t index, const char *text, uint64_t bytes)
{
    tni_kv_header h = {.type = TNI_KV_VIEW};

    tni_kv_node_send(&s->node, tni_kv_view_node(&s->node.view, index), &h, text, bytes);
}

#define HEAD_BYTES 16u    /* of a journal's record, in front of the view: the job, and `told` */
#define JOURNAL_TIMES 16u /* a journal of so many records: one, which says all, takes its place */

static tn_status journal_write(tni_kv_scheduler *s, const tni_str *text)
{
    const tni_kv_journal *j = &s->journal;
    tni_str record;
    tn_status st;
    bool whole;

    tni_str_init(&record, TN_TEXT_MAX);
    st = tni_kv_journal_record(text->text, text->length, &record);
    whole = j->replace && s->journal_bytes > JOURNAL_TIMES * record.length;
    if (!st && j->append)
        st = (whole ? j->replace : j->append)(j->arg, record.text, record.length);
    if (st)
        s->journal_bytes = UINT64_MAX;
    else
        s->journal_bytes = record.length + (whole ? 0 : s->journal_bytes);
    tni_str_fini(&record);
    return st;
}

/* Of the view and `told`. `record` is to be freed, whatever comes. */
static tn_status record_write(tni_kv_scheduler *s, uint64_t told, tni_str *record)
{
    tn_status st;

    tni_str_init(record, TN_TEXT_MAX);
    tni_kv_write(record, s->node.settings->job, 8);
    tni_kv_write(record, told, 8);
    tni_kv_view_write(&s->node.view, record);
    st = record->status ? record->status : journal_write(s, record);
    if (st == TN_E_PEER)
        tni_error_get(&s->error);
    return st;
}

/* Journal, then everybody. Before all have come only newcomers are told. */
static void commit(tni_kv_scheduler *s)
{
    tni_kv_view *v = &s->node.view;
    tni_str text;
    tn_status st;

    if (!s->changed || s->error.code || s->node.now < s->commit_ns)
        return;
    s->commit_ns = s->node.now + COMMIT_NS + (uint64_t)s->count * COMMIT_NODE_NS;
    v->number++;
    if ((st = record_write(s, s->told, &text))) {
        tni_str_fini(&text);
        v->number--;
        tni_logf(s->node.host.log, TN_LOG_WARNING, "scheduler: view %u is not written: %s", v->number + 1,
                 tni_error_message());
        return;
    }
    s->changed = false;
    TNI_KV_POINT_IF(v->flags & TNI_KV_STARTED, view_synced);
    for (uint32_t i = 0; v->flags & (TNI_KV_STARTED | TNI_KV_JOB_FAILED) && i < s->count; i++)
        if (tni_kv_member_speaks(&v->members[i])) {
            view_send(s, i, text.text + HEAD_BYTES, text.length - HEAD_BYTES);
            TNI_KV_POINT_IF(v->flags & TNI_KV_JOB_DONE && i + 1 < s->count, shutdown_half);
        }
    TNI_KV_POINT_IF(v->epoch_view == v->number, plan_sent);
    tni_str_fini(&text);
}

static void job_fail(tni_kv_scheduler *s, uint32_t index)
{
    tni_kv_view *v = &s->node.view;
    char name[24];

    if (v->flags & TNI_KV_JOB_FAILED)
        return;
    v->flags |= TNI_KV_JOB_FAILED;
    v->failed = tni_kv_view_node(v, index);
    v->silent_ms = (uint32_t)((s->node.now - s->seats[index].heard_ns) / 1000000u);
    s->over_ns = s->node.now;
    s->changed = true;
    tni_logf(s->node.host.log, TN_LOG_ERROR, "scheduler: %s is dead, silent for %u ms: the job fails",
             tni_kv_node_name(v->failed, name), v->silent_ms);
}

static uint32_t workers_in(const tni_kv_view *v, uint32_t states)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < v->workers; i++)
        count += states >> v->members[i].state & 1u;
    return count;
}

#define IN(state) (1u << (state))
#define OUT (IN(TNI_KV_GONE) | IN(TNI_KV_LEFT))

/* Has no further data, or is out. */
static bool ended(const tni_kv_member *m)
{
    return OUT >> m->state & 1u || m->last_round != UINT32_MAX;
}

static void ends_check(tni_kv_scheduler *s)
{
    tni_kv_view *v = &s->node.view;
    uint32_t last = 0;

    if (workers_in(v, OUT) == v->workers && !(v->flags & TNI_KV_JOB_DONE)) {
        v->flags |= TNI_KV_JOB_DONE;
        s->changed = true;
    }
    if (v->flags & TNI_KV_ALL_ENDED || !(v->flags & TNI_KV_STARTED))
        return;
    for (uint32_t i = 0; i < v->workers; i++)
        if (!ended(&v->members[i]))
            return;
    for (uint32_t i = 0; i < v->workers; i++)
        if (v->members[i].state != TNI_KV_GONE && v->members[i].last_round != UINT32_MAX &&
            v->members[i].last_round > last)
            last = v->members[i].last_round;
    v->flags |= TNI_KV_ALL_ENDED;
    v->end_round = last < v->end_round ? last : v->end_round;
    s->changed = true;
}

/* The first worker that is not at the barrier; UINT32_MAX: all are. */
static uint32_t barrier_missing(const tni_kv_scheduler *s, uint32_t *count)
{
    const tni_kv_view *v = &s->node.view;
    uint32_t first = UINT32_MAX;

    *count = 0;
    for (uint32_t i = v->workers; i-- > 0;)
        if (!(OUT >> v->members[i].state & 1u) && s->seats[i].barrier <= v->released) {
            first = i;
            ++*count;
        }
    return first;
}

static void barrier_check(tni_kv_scheduler *s)
{
    tni_kv_view *v = &s->node.view;
    uint32_t count;

    if (!(v->flags & TNI_KV_STARTED) || workers_in(v, OUT) == v->workers)
        return;
    if (barrier_missing(s, &count) != UINT32_MAX &&
        !(TNI_KV_BUG(BARRIER_COUNT) && s->barrier_messages >= v->workers))
        return;
    s->barrier_messages = 0;
    v->released++;
    s->changed = true;
}

static void welcome_send(tni_kv_scheduler *s, uint32_t index)
{
    const tni_kv_view *v = &s->node.view;
    const uint64_t now = s->node.now, late = s->node.host.clock ? s->node.host.clock() - now : 0;
    tni_kv_header h = {.type = TNI_KV_WELCOME, .what = 1, .sequence = v->members[index].birth, .key = now};
    tni_str text;

    h.round = late / 1000 < UINT32_MAX ? (uint32_t)(late / 1000) : 0; /* what the journal took */
    tni_str_init(&text, TN_TEXT_MAX);
    tni_kv_write(&text, tni_kv_view_node(v, index), 2);
    tni_kv_write(&text, v->members[index].incarnation, 4);
    tni_kv_view_write(v, &text);
    if (!text.status)
        tni_kv_node_send(&s->node, TNI_KV_UNKNOWN, &h, text.text, text.length);
    tni_str_fini(&text);
}

static inline bool welcome_waits(const tni_kv_scheduler *s, uint32_t index)
{
    while (index < s->count && !s->seats[index].welcome)
        index++;
    return index < s->count;
}

static bool live_servers_know(const tni_kv_scheduler *s, uint32_t view)
{
    for (uint32_t i = s->node.view.workers; i < s->count; i++)
        if (s->node.view.members[i].state == TNI_KV_ALIVE && s->seats[i].view < view)
            return false;
    return true;
}

/* Answers held requests whose time has come; only what is in the journal is said. A replacement worker is
 * welcomed once all live servers know the view that fences the one before it: then no further part of a push
 * of that one is taken while the replacement asks what servers have. */
static void held_answer(tni_kv_scheduler *s)
{
    const tni_kv_view *v = &s->node.view;

    for (uint32_t i = 0; !s->changed && i < s->count; i++) {
        tni_kv_header h = {.from = tni_kv_view_node(v, i), .sequence = s->seats[i].bye_sequence};

        if (s->seats[i].welcome && i < v->workers && !live_servers_know(s, s->seats[i].taken))
            continue;
        if (s->seats[i].welcome) {
            TNI_KV_POINT(assigned);
            welcome_send(s, i);
            TNI_KV_POINT_IF(welcome_waits(s, i + 1), assigned_half);
        }
        if (h.sequence)
            tni_kv_node_answer(&s->node, &h, TNI_KV_APPLIED, 0, 0);
        s->seats[i].welcome = false;
        s->seats[i].bye_sequence = 0;
    }
    for (uint32_t i = 0; !s->changed && i < v->workers; i++) {
        tni_kv_seat *w = &s->seats[i];
        tni_kv_header h = {.from = tni_kv_view_node(v, i), .round = v->released, .priority = 255};

        if (w->barrier_sequence && w->barrier <= v->released) {
            h.sequence = w->barrier_sequence;
            w->barrier_sequence = 0;
            tni_kv_node_answer(&s->node, &h, TNI_KV_APPLIED, 0, 0);
            TNI_KV_POINT_HALF(release_half);
        }
        if (w->end_sequence && v->flags & TNI_KV_ALL_ENDED) {
            h.sequence = w->end_sequence;
            w->end_sequence = 0;
            tni_kv_node_answer(&s->node, &h, TNI_KV_APPLIED, 0, 0);
        }
    }
}

static void member_lost(tni_kv_scheduler *s, uint32_t index)
{
    const tni_kv_settings *o = s->node.settings;
    tni_kv_view *v = &s->node.view;
    tni_kv_member *m = &v->members[index];
    const bool worker = index < v->workers;
    const tni_kv_loss loss = worker ? o->worker_loss : o->server_loss;
    const uint64_t wait_ns = worker ? o->worker_wait_ns : o->server_wait_ns;
    char name[24];

    s->changed = true;
    if (v->flags & TNI_KV_JOB_DONE) {
        m->state = TNI_KV_LEFT;
    } else if (loss == TNI_KV_LOSS_WAIT) {
        m->state = TNI_KV_DEAD;
        s->seats[index].wait_until_ns = s->node.now + wait_ns;
        tni_logf(s->node.host.log, TN_LOG_WARNING,
                 "scheduler: %s is dead: the job waits %.0f s for one in its place",
                 tni_kv_node_name(tni_kv_view_node(v, index), name), (double)wait_ns / 1e9);
    } else if (loss == TNI_KV_LOSS_SHRINK && worker &&
               workers_in(v, ~(uint32_t)OUT) > (o->workers_min ? o->workers_min : 1)) {
        m->state = TNI_KV_GONE;
    } else {
        job_fail(s, index);
    }
    ends_check(s);
    barrier_check(s);
    TNI_KV_POINT(node_dead);
}

/* ---- registration ---- */

/* Who has left may come again where lost workers are waited for: a program that ends with an error of its own
 * leaves as one that is through, and is started again. */
static bool may_come(const tni_kv_scheduler *s, uint32_t index)
{
    const uint8_t state = s->node.view.members[index].state;
    const bool again = index < s->node.view.workers && s->node.settings->worker_loss == TNI_KV_LOSS_WAIT;

    return !(OUT >> state & 1u) || (state == TNI_KV_LEFT && again);
}

/* Index of the member that a process is or may become; UINT32_MAX: there is no room. */
static uint32_t seat_find(const tni_kv_scheduler *s, const tni_kv_hello *h)
{
    const tni_kv_view *v = &s->node.view;
    const uint32_t first = h->role == TNI_KV_WORKER ? 0 : v->workers;
    const uint32_t end = h->role == TNI_KV_WORKER ? v->workers : s->count;
    uint32_t missing = UINT32_MAX, dead = UINT32_MAX;

    for (uint32_t i = first; i < end; i++) {
        if (v->members[i].birth == h->birth)
            return i;
        if (v->members[i].state == TNI_KV_MISSING && missing == UINT32_MAX)
            missing = i;
        if (v->members[i].state == TNI_KV_DEAD && dead == UINT32_MAX)
            dead = i;
    }
    if (h->rank == UINT32_MAX)
        return missing != UINT32_MAX ? missing : dead;
    return h->rank < end - first && may_come(s, first + h->rank) ? first + h->rank : UINT32_MAX;
}

static void refuse(tni_kv_scheduler *s, const tni_kv_header *h, const tni_kv_hello *who, const char *text)
{
    tni_kv_header answer = {.type = TNI_KV_REFUSED, .what = TNI_KV_FULL, .sequence = who->birth};

    tni_kv_node_send(&s->node, h->from, &answer, text, strlen(text));
}

/* Known to a process that lives now and speaks of this seat as it is now: no late HELLO has it. */
static uint64_t seat_token(const tni_kv_scheduler *s, uint32_t index, uint64_t birth)
{
    const uint64_t text[4] = {birth, index, s->node.view.members[index].incarnation, s->node.incarnation};

    return tni_hash_bytes(s->node.settings->job, text, sizeof text) | 1u;
}

static tn_status seat_take(tni_kv_scheduler *s, uint32_t index, const tni_kv_hello *who)
{
    tni_kv_view *v = &s->node.view;
    tni_kv_member *m = &v->members[index];
    uint8_t *address = tni_alloc(who->address_bytes);
    char name[24];

    if (!address)
        return TN_E_NOMEM;
    if (who->address_bytes)
        memcpy(address, who->address, who->address_bytes);
    if (m->incarnation)
        tni_logf(s->node.host.log, TN_LOG_INFO, "scheduler: another process is %s",
                 tni_kv_node_name(tni_kv_view_node(v, index), name));
    if (index >= v->workers && v->flags & TNI_KV_STARTED && workers_in(v, IN(TNI_KV_LEFT))) {
        v->flags |= TNI_KV_CLOSED;
    } else if (index >= v->workers && v->flags & TNI_KV_STARTED && !(s->node.async && who->steps[0])) {
        v->flags |= TNI_KV_RECOVERING;
        s->recovering_view = v->number + 1;
    }
    tni_free(m->address);
    m->address = address;
    m->address_bytes = (uint16_t)who->address_bytes;
    m->birth = who->birth;
    s->seats[index].taken = m->incarnation && v->flags & TNI_KV_STARTED ? v->number + 1 : 0;
    m->incarnation = ++v->incarnations;
    m->state = TNI_KV_ALIVE;
    m->last_round = UINT32_MAX;
    if (index < v->workers) {
        v->flags |= TNI_KV_MODE_KNOWN | (who->async ? TNI_KV_ASYNC : 0);
        s->node.async = who->async;
    }
    memcpy(s->seats[index].steps, (const uint64_t[3]){who->steps[0], who->steps[1]}, sizeof s->seats->steps);
    s->seats[index].view = 0;
    s->seats[index].beat = 0;
    s->seats[index].barrier_sequence = s->seats[index].end_sequence = 0;
    s->seats[index].barrier = v->released;
    s->changed = true;
    if (!(v->flags & TNI_KV_STARTED)) {
        bool all = true;

        for (uint32_t i = 0; i < s->count; i++)
            all = all && v->members[i].state != TNI_KV_MISSING;
        v->flags |= all ? TNI_KV_STARTED : 0;
    }
    return TN_OK;
}

static tn_status hello_handle(tni_kv_scheduler *s, const tni_kv_header *h, const uint8_t *payload)
{
    tni_kv_header answer = {.type = TNI_KV_WELCOME};
    tni_kv_view *v = &s->node.view;
    const char *wrong;
    uint32_t index;
    tni_kv_hello who;

    if (!tni_kv_hello_read(payload, h->bytes, &who) || h->from != TNI_KV_UNKNOWN)
        return tni_error(TN_E_FORMAT, "hello that says no role, birth or address");
    if ((wrong = tni_kv_view_mode_wrong(v, &who)) != NULL) {
        refuse(s, h, &who, wrong);
        return TN_OK;
    }
    index = seat_find(s, &who);
    if (index == UINT32_MAX || v->flags & (TNI_KV_JOB_DONE | TNI_KV_JOB_FAILED)) {
        refuse(s, h, &who,
               v->flags & (TNI_KV_JOB_DONE | TNI_KV_JOB_FAILED) ? "the job has ended"
                                                                : "the job has no such rank, or it has left");
        return TN_OK;
    }
    if (TNI_KV_BUG(REJOIN_IGNORED) && v->members[index].state == TNI_KV_ALIVE &&
        v->members[index].birth != who.birth)
        return TN_OK;
    answer.sequence = who.birth;
    if (s->node.async && tni_kv_step_past(v, who.steps[0]))
        who.steps[0] = 0;
    if (v->members[index].birth != who.birth) {
        answer.key = seat_token(s, index, who.birth);
        if (answer.key != who.token) {
            tni_kv_node_send(&s->node, h->from, &answer, NULL, 0);
            return TN_OK;
        }
        TNI_KV_POINT(peer_known);
        if (seat_take(s, index, &who))
            return TN_E_NOMEM;
        TNI_KV_POINT(recorded);
    }
    s->seats[index].heard_ns = s->node.now;
    s->seats[index].lost_ns = 0;
    s->seats[index].welcome = true;
    return TN_OK;
}

/* One that it leaves out it holds if it was told that all do. */
static bool seat_holds(const tni_kv_scheduler *s, const tni_kv_seat *of, uint64_t step)
{
    return of->steps[0] == step || of->steps[1] == step || (of->steps[2] == step && step <= s->told);
}

/* The last step that all servers hold; 0: none. */
static uint64_t common_step(const tni_kv_scheduler *s)
{
    const tni_kv_view *v = &s->node.view;
    uint64_t best = 0;

    for (uint32_t k = 0; k < 3; k++) {
        const uint64_t step = s->seats[v->workers].steps[k];
        bool all = step > best;

        for (uint32_t i = v->workers; all && i < s->count; i++)
            all = seat_holds(s, &s->seats[i], step);
        best = all ? step : best;
    }
    return best;
}

/* Without rounds a server that came back with no snapshot goes on with what worker 0 gives it, if that one
 * knows of it and has all, and all workers know their own rounds: then the others stay. */
static bool given_check(const tni_kv_scheduler *s, bool *gives)
{
    const tni_kv_view *v = &s->node.view;
    bool may = s->node.async && !(v->flags & TNI_KV_ALL_ENDED);

    for (uint32_t i = 0; i < v->workers; i++)
        may = may && !((OUT | IN(TNI_KV_DEAD)) >> v->members[i].state & 1u) &&
              !tni_kv_late_comer(v, v->members[i].incarnation);
    *gives = may && s->seats[0].gives;
    return !may || s->seats[0].view >= s->recovering_view;
}

/* From here on workers hear of no step behind the cut: they forget what lies before the one they hear of. */
static void recover_check(tni_kv_scheduler *s)
{
    tni_kv_view *v = &s->node.view;
    bool gives;

    if (!(v->flags & TNI_KV_RECOVERING) || !tni_kv_view_servers_live(v) ||
        !live_servers_know(s, s->recovering_view) || !given_check(s, &gives))
        return;
    v->flags &= ~TNI_KV_RECOVERING;
    s->changed = true;
    if (gives)
        return;
    v->epoch_view = v->number + 1;
    v->cut = s->told = common_step(s);
    v->flags &= ~TNI_KV_ALL_ENDED;
    v->end_round = UINT32_MAX;
    for (uint32_t i = 0; i < s->count; i++) { /* what workers asked for before has failed */
        memcpy(s->seats[i].steps, (const uint64_t[3]){v->cut}, sizeof s->seats[i].steps);
        s->seats[i].barrier = v->released;
        s->seats[i].barrier_sequence = s->seats[i].end_sequence = 0;
        v->members[i].last_round = UINT32_MAX;
        if (v->members[i].state == TNI_KV_ENDED)
            v->members[i].state = TNI_KV_ALIVE;
    }
    tni_logf(s->node.host.log, TN_LOG_WARNING, "scheduler: a server came back: all go on from step %llu",
             (unsigned long long)v->cut);
}

/* Servers hear of it once the journal has it: one that leaves it out keeps it then, and the next scheduler
 * counts on that. */
static void told_raise(tni_kv_scheduler *s)
{
    const uint64_t step = common_step(s);
    tni_str record;

    if (step <= s->told || s->changed || s->node.now < s->commit_ns)
        return;
    if (!record_write(s, step, &record)) {
        s->told = step;
    } else {
        s->commit_ns = s->node.now + COMMIT_NS + (uint64_t)s->count * COMMIT_NODE_NS;
        tni_logf(s->node.host.log, TN_LOG_WARNING, "scheduler: step %llu is not written: %s",
                 (unsigned long long)step, tni_error_message());
    }
    tni_str_fini(&record);
}

/* One that comes behind a later one says what was. */
static void beat_handle(tni_kv_scheduler *s, const tni_kv_header *h, uint32_t index, const uint8_t *payload)
{
    tni_kv_header answer = {.type = TNI_KV_BEAT};
    tni_kv_seat *w = &s->seats[index];
    tni_str text;
    tni_kv_reader r = {payload, h->bytes, false};
    const uint64_t first = tni_kv_read(&r, 8), second = tni_kv_read(&r, 8);
    const uint64_t third = h->bytes > 16 ? tni_kv_read(&r, 8) : 0; /* 16: of an older build */

    if (h->sequence && h->sequence <= w->beat)
        return;
    w->beat = h->sequence;
    /* Else the server goes back, and loses what it says; or said it to the scheduler before this one. */
    if (!r.bad && h->view >= s->node.view.epoch_view && h->view >= s->first_view)
        memcpy(w->steps, (const uint64_t[3]){first, second, third}, sizeof w->steps);
    w->view = h->view;
    w->gives = h->what;
    recover_check(s);
    told_raise(s);
    answer.key = s->told;
    answer.sequence = live_servers_know(s, s->first_view) ? h->sequence : 0;
    if (h->view < s->node.view.number && !s->changed && !TNI_KV_BUG(CONTROL_ONCE)) {
        tni_str_init(&text, TN_TEXT_MAX);
        tni_kv_view_write(&s->node.view, &text);
        if (!text.status)
            view_send(s, index, text.text, text.length);
        tni_str_fini(&text);
    }
    tni_kv_node_send(&s->node, h->from, &answer, NULL, 0);
}

static void barrier_handle(tni_kv_scheduler *s, const tni_kv_header *h, uint32_t index)
{
    tni_kv_seat *w = &s->seats[index];
    uint32_t count, missing;

    s->barrier_messages++;
    w->barrier = h->round > w->barrier ? h->round : w->barrier;
    w->barrier_sequence = h->sequence;
    barrier_check(s);
    commit(s);
    missing = barrier_missing(s, &count);
    if (w->barrier > s->node.view.released && missing != UINT32_MAX)
        tni_kv_node_answer(&s->node, h, TNI_KV_HELD, tni_kv_view_node(&s->node.view, missing), count);
    TNI_KV_POINT_IF(w->barrier > s->node.view.released && count == 1, barrier_short);
}

static void end_handle(tni_kv_scheduler *s, const tni_kv_header *h, uint32_t index)
{
    tni_kv_view *v = &s->node.view;
    tni_kv_member *m = &v->members[index];
    uint32_t missing = 0, count = 0;

    s->seats[index].end_sequence = h->sequence;
    if (m->state == TNI_KV_ALIVE) {
        m->state = TNI_KV_ENDED;
        m->last_round = h->round;
        if (s->node.settings->uneven == TNI_KV_DROP && h->round < v->end_round)
            v->end_round = h->round;
        s->changed = true;
        ends_check(s);
    }
    for (uint32_t i = v->workers; !(v->flags & TNI_KV_ALL_ENDED) && i-- > 0;)
        if (!ended(&v->members[i])) {
            missing = i;
            count++;
        }
    if (count)
        tni_kv_node_answer(&s->node, h, TNI_KV_HELD, tni_kv_view_node(v, missing), count);
}

static void bye_handle(tni_kv_scheduler *s, const tni_kv_header *h, uint32_t index)
{
    tni_kv_view *v = &s->node.view;

    if (v->flags & TNI_KV_RECOVERING)
        return; /* it has to go back with the others first */
    if (v->members[index].state != TNI_KV_LEFT) {
        v->members[index].state = TNI_KV_LEFT;
        s->changed = true;
        if (TNI_KV_BUG(EXIT_STOPS) && index == 0)
            v->flags |= TNI_KV_JOB_DONE;
        ends_check(s);
        barrier_check(s);
    }
    s->seats[index].bye_sequence = h->sequence;
}

static tn_status scheduler_handle(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload)
{
    tni_kv_scheduler *s = (tni_kv_scheduler *)n;
    const uint32_t rank = TNI_KV_RANK(h->from);
    uint32_t index;

    if (h->type == TNI_KV_HELLO)
        return hello_handle(s, h, payload);
    if (h->type == TNI_KV_ASK)
        return tni_kv_asked(s, h);
    index = TNI_KV_ROLE(h->from) == TNI_KV_WORKER ? rank : n->view.workers + rank;
    s->seats[index].heard_ns = n->now;
    s->seats[index].suspected = false;
    s->seats[index].lost_ns = 0;
    if (h->type == TNI_KV_BYE) {
        bye_handle(s, h, index);
    } else if (h->type == TNI_KV_BEAT) {
        beat_handle(s, h, index, payload);
    } else if (h->type == TNI_KV_REPORT) {
        return tni_kv_asked_answer(s, h, payload);
    } else if (index < n->view.workers && h->type == TNI_KV_BARRIER) {
        barrier_handle(s, h, index);
    } else if (index < n->view.workers && h->type == TNI_KV_END) {
        end_handle(s, h, index);
    } else {
        return tni_error(TN_E_FORMAT, "the scheduler takes no message of type %u", h->type);
    }
    return TN_OK;
}

uint64_t tni_kv_scheduler_receive(tni_kv_scheduler *s, const uint8_t *header, const void *payload,
                                  uint64_t bytes, uint64_t now)
{
    tni_kv_node_receive(&s->node, header, payload, bytes, now);
    commit(s);
    held_answer(s);
    tni_kv_node_flush(&s->node);
    return s->changed ? s->commit_ns : now + tni_kv_beat_ns(s->node.settings);
}

static void silence_check(tni_kv_scheduler *s, uint32_t index)
{
    const tni_kv_settings *o = s->node.settings;
    const tni_kv_member *m = &s->node.view.members[index];
    tni_kv_seat *w = &s->seats[index];
    const uint64_t silent = s->node.now - w->heard_ns;
    const bool lost = w->lost_ns && s->node.now - w->lost_ns > o->suspect_ns;
    char name[24];

    if (m->state == TNI_KV_DEAD && s->node.now >= w->wait_until_ns)
        job_fail(s, index);
    if (m->state != TNI_KV_ALIVE && m->state != TNI_KV_ENDED)
        return;
    if (silent > o->suspect_ns && !w->suspected) {
        w->suspected = true;
        tni_logf(s->node.host.log, TN_LOG_WARNING, "scheduler: %s is silent for %llu ms",
                 tni_kv_node_name(tni_kv_view_node(&s->node.view, index), name),
                 (unsigned long long)(silent / 1000000u));
    }
    if (o->dead_ns && (lost || silent > o->dead_ns) && !TNI_KV_BUG(NO_BEAT))
        member_lost(s, index);
}

void tni_kv_scheduler_lost(tni_kv_scheduler *s, uint16_t node, uint64_t birth)
{
    const tni_kv_view *v = &s->node.view;

    for (uint32_t i = 0; i < s->count; i++)
        if (node == TNI_KV_UNKNOWN ? v->members[i].birth == birth : tni_kv_view_node(v, i) == node)
            s->seats[i].lost_ns = s->node.now;
}

/* Who has not come by its time fails the job. */
static void start_check(tni_kv_scheduler *s)
{
    const tni_kv_view *v = &s->node.view;

    if (v->flags & (TNI_KV_STARTED | TNI_KV_JOB_FAILED) ||
        s->node.now < s->begun_ns + s->node.settings->control_timeout_ns)
        return;
    for (uint32_t i = 0; i < s->count && !(v->flags & TNI_KV_JOB_FAILED); i++)
        if (v->members[i].state == TNI_KV_MISSING) {
            s->seats[i].heard_ns = s->begun_ns;
            job_fail(s, i);
        }
}

static void over_check(tni_kv_scheduler *s)
{
    const tni_kv_view *v = &s->node.view;

    if (s->over_ns || !(v->flags & TNI_KV_JOB_DONE) || s->changed)
        return;
    for (uint32_t i = v->workers; i < s->count; i++)
        if (v->members[i].state != TNI_KV_LEFT)
            return;
    s->over_ns = s->node.now;
}

uint64_t tni_kv_scheduler_tick(tni_kv_scheduler *s, uint64_t now)
{
    const uint64_t beat = tni_kv_beat_ns(s->node.settings), gap = now - s->tick_ns;

    s->node.now = now;
    s->tick_ns = now;
    for (uint32_t i = 0; i < s->count; i++) {
        if (gap > 2 * beat) /* this process was stopped, so the silence is not the others' */
            s->seats[i].heard_ns += gap < now - s->seats[i].heard_ns ? gap : now - s->seats[i].heard_ns;
        silence_check(s, i);
    }
    start_check(s);
    over_check(s);
    recover_check(s);
    commit(s);
    held_answer(s);
    tni_kv_node_flush(&s->node);
    return s->changed ? s->commit_ns : now + beat;
}

/* Time for all to hear of it. */
bool tni_kv_scheduler_finished(const tni_kv_scheduler *s)
{
    return s->error.code || (s->over_ns && s->node.now - s->over_ns > 3 * tni_kv_beat_ns(s->node.settings));
}

tn_status tni_kv_scheduler_status(const tni_kv_scheduler *s)
{
    if (s->error.code)
        tni_error_set(&s->error);
    return s->error.code;
}

const tni_kv_view *tni_kv_scheduler_view(const tni_kv_scheduler *s)
{
    return &s->node.view;
}

static tn_status journal_load(tni_kv_scheduler *s, const void *text, uint64_t bytes)
{
    tni_kv_reader r = {text, bytes, false};
    tni_kv_reader last = {NULL, 0, false};
    tn_status st;

    while (tni_kv_journal_next(&r, &last.at, &last.left))
        ;
    if (!last.at)
        return TN_OK;
    if (tni_kv_read(&last, 8) != s->node.settings->job)
        return tni_error(TN_E_FORMAT, "journal of another job");
    s->told = tni_kv_read(&last, 8);
    st = tni_kv_view_read(&s->node.view, last.at, last.left);
    s->node.async = s->node.view.flags & TNI_KV_ASYNC;
    return st;
}

tn_status tni_kv_scheduler_create(const tni_kv_settings *settings, const tni_kv_host *host,
                                  const tni_kv_journal *j, const void *journal_text, uint64_t journal_bytes,
                                  uint64_t now, tni_kv_scheduler **out)
{
    tni_kv_scheduler *s = tni_zalloc(sizeof *s);
    tn_status st;

    if (!s)
        return TN_E_NOMEM;
    st = tni_kv_node_init(&s->node, settings, host, TNI_KV_SCHEDULER_NODE);
    if (!st) {
        s->node.handle = scheduler_handle;
        s->node.now = s->tick_ns = s->begun_ns = now;
        s->journal = j ? *j : (tni_kv_journal){0};
        s->journal_bytes =
            tni_kv_journal_whole(journal_text, journal_bytes) == journal_bytes ? journal_bytes : UINT64_MAX;
        s->count = settings->workers + settings->servers;
        s->seats = tni_calloc(s->count, sizeof *s->seats);
        st = s->seats ? journal_load(s, journal_text, journal_bytes) : TN_E_NOMEM;
    }
    if (st) {
        tni_kv_scheduler_destroy(s);
        return st;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        s->seats[i].heard_ns = now;
        s->seats[i].taken = s->node.view.flags & TNI_KV_STARTED ? s->node.view.number + 1 : 0;
        s->seats[i].wait_until_ns =
            now + (i < settings->workers ? settings->worker_wait_ns : settings->server_wait_ns);
    }
    s->node.incarnation = ++s->node.view.scheduler;
    s->first_view = s->recovering_view = s->node.view.number + 1;
    s->changed = true;
    commit(s);
    *out = s;
    TNI_KV_POINT(bound);
    return TN_OK;
}

void tni_kv_scheduler_destroy(tni_kv_scheduler *s)
{
    if (!s)
        return;
    tni_kv_node_fini(&s->node);
    tni_free(s->seats);
    tni_free(s);
}
