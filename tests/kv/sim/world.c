/* Clock, network and processes of a simulated job. */
#include <stdlib.h>
#include <string.h>

#include "kv/sim/internal.h"

static const char *const roles[] = {"scheduler", "server", "worker"};

uint64_t sim_random(sim *s)
{
    uint64_t z = s->random += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t sim_below(sim *s, uint64_t n)
{
    return n ? sim_random(s) % n : 0;
}

bool sim_chance(sim *s, uint32_t per_mille)
{
    return per_mille && sim_random(s) % 1000 < per_mille;
}

void sim_say(const sim *s, const char *format, ...)
{
    va_list args;

    if (!s->o.verbose)
        return;
    printf("%10.3f ", (double)s->now / 1e9);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

void sim_violation(sim *s, const char *format, ...)
{
    va_list args;

    if (s->violated)
        return;
    s->violated = true;
    va_start(args, format);
    (void)vsnprintf(s->result->violation, sizeof s->result->violation, format, args);
    va_end(args);
    sim_say(s, "VIOLATION %s", s->result->violation);
}

/* ---- events ---- */

static bool earlier(const sim_event *a, const sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void event_put(sim *s, sim_event *e, uint64_t at)
{
    size_t i;

    e->at = at;
    e->order = s->order++;
    for (i = s->heap_count++; i > 0 && earlier(e, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
}

#define EVENT_ROOM 512u /* of those that are used again */

sim_event *sim_event_add(sim *s, sim_kind kind, uint64_t at, uint64_t bytes)
{
    sim_event *e = bytes <= EVENT_ROOM ? s->free_events : NULL;

    if (s->heap_count == s->heap_room) {
        const size_t room = s->heap_room ? 2 * s->heap_room : 256;
        sim_event **grown = realloc(s->heap, room * sizeof *grown);

        if (!grown)
            return NULL;
        s->heap = grown;
        s->heap_room = room;
    }
    if (e)
        s->free_events = e->next;
    else if ((e = malloc(sizeof *e + (bytes > EVENT_ROOM ? bytes : EVENT_ROOM))) != NULL)
        e->room = bytes > EVENT_ROOM ? bytes : EVENT_ROOM;
    else
        return NULL;
    e->next = NULL;
    e->kind = kind;
    e->what = 0;
    e->bytes = bytes;
    event_put(s, e, at);
    return e;
}

static sim_event *event_next(sim *s)
{
    sim_event *top, *last;
    size_t i = 0;

    if (!s->heap_count)
        return NULL;
    top = s->heap[0];
    last = s->heap[--s->heap_count];
    for (size_t down; (down = 2 * i + 1) < s->heap_count; i = down) {
        down += down + 1 < s->heap_count && earlier(s->heap[down + 1], s->heap[down]);
        if (!earlier(s->heap[down], last))
            break;
        s->heap[i] = s->heap[down];
    }
    s->heap[i] = last;
    return top;
}

static void event_free(sim *s, sim_event *e)
{
    if (e->room == EVENT_ROOM) {
        e->next = s->free_events;
        s->free_events = e;
    } else {
        free(e);
    }
}

/* ---- network ---- */

static uint64_t delay_of(sim *s, const sim_proc *from, const sim_proc *to)
{
    uint64_t ns = s->delay_ns / 4 + sim_below(s, s->delay_ns);

    if (s->now < s->faults_end_ns && sim_chance(s, s->reorder))
        ns += sim_below(s, 20 * s->delay_ns);
    return ns + from->slow_ns + to->slow_ns;
}

/* Any bytes, with checksums that are right. */
static void forge(sim *s, sim_event *e)
{
    for (uint64_t n = 1 + sim_below(s, 4); n > 0; n--) {
        const uint64_t at = sim_below(s, 2) ? 3 + sim_below(s, 5) : sim_below(s, 56 + e->bytes);

        if (at >= 8 && at < 16) /* the job stays */
            continue;
        *(at < 56 ? &e->header[at] : &e->payload[at - 56]) = (uint8_t)sim_random(s);
    }
    tni_kv_put(e->header + 48, e->bytes, 8);
    tni_kv_put(e->header + 56, tni_kv_payload_sum(e->payload, e->bytes), 4);
    tni_kv_put(e->header + 60, tni_crc32(0, e->header, 60), 4);
}

/* When a message reaches the link of its receiver. Each link carries one byte after the other, both ways at
 * once. */
static uint64_t arrival(sim *s, sim_proc *from, const sim_proc *to, uint64_t bytes)
{
    const uint64_t at = s->now > from->out_ns ? s->now : from->out_ns, delay = delay_of(s, from, to);

    const uint64_t stopped = from->resume_ns > s->now ? from->resume_ns - s->now : 0; /* within its call */

    if (!bytes || !s->o.byte_ns)
        return s->now + delay + stopped;
    from->out_ns = at + bytes * s->o.byte_ns;
    return at + delay;
}

/* A message of another job, made from one of this; it may come before. */
static void stale_send(sim *s, const sim_event *e)
{
    sim_event *other = sim_event_add(s, SIM_DELIVER, s->now + sim_below(s, 2 * s->delay_ns), e->bytes);
    uint8_t *payload;

    if (!other)
        return;
    payload = other->payload;
    other->proc = e->proc;
    other->arg = e->arg;
    memcpy(other->header, e->header, TNI_KV_HEADER_BYTES);
    memcpy(payload, e->payload, e->bytes);
    tni_kv_put(other->header + 8, s->settings.job ^ 0xff, 8);
    for (uint64_t i = TNI_KV_ENTRY_BYTES; i < e->bytes; i++)
        payload[i] ^= 1;
    tni_kv_put(other->header + 56, tni_kv_payload_sum(payload, e->bytes), 4);
    tni_kv_put(other->header + 60, tni_crc32(0, other->header, 60), 4);
}

static void packet_to(sim *s, sim_proc *from, const sim_proc *to, const uint8_t *header, const void *payload,
                      uint64_t bytes)
{
    const bool faults = s->now < s->faults_end_ns,
               data = header[3] == TNI_KV_PUSH || header[3] == TNI_KV_VALUE;
    uint32_t copies = 1;
    sim_event *e;

    if (faults && (sim_chance(s, s->loss) || (s->cut && from->side != to->side)))
        copies = 0;
    else if (faults && sim_chance(s, s->doubled))
        copies = 2;
    for (; copies > 0; copies--) {
        e = sim_event_add(s, SIM_DELIVER, arrival(s, from, to, data ? bytes : 0), bytes);
        if (!e)
            return;
        e->proc = to->index;
        e->arg = to->birth;
        e->what = data && s->o.byte_ns;
        memcpy(e->header, header, TNI_KV_HEADER_BYTES);
        if (bytes)
            memcpy(e->payload, payload, bytes);
        if (faults && s->faults & SIM_STALE && sim_chance(s, 60))
            stale_send(s, e);
        if (faults && s->o.hostile && sim_chance(s, 100))
            forge(s, e);
        if (faults && sim_chance(s, s->damage)) {
            const uint64_t at = sim_below(s, bytes + TNI_KV_HEADER_BYTES);

            *(at < TNI_KV_HEADER_BYTES ? &e->header[at] : &e->payload[at - TNI_KV_HEADER_BYTES]) ^=
                (uint8_t)(1 + sim_below(s, 255));
        }
    }
}

static uint16_t id_of(const sim_proc *p)
{
    return p->role == TNI_KV_SCHEDULER ? 0 : TNI_KV_NODE(p->role, p->rank);
}

/* True: this is the message at which the process ends or stops. */
static bool sim_point_met(sim *s, sim_proc *p, sim_point how, uint8_t type)
{
    const bool sends = how == SIM_AT_SEND;

    if (!s->o.point || s->result->reached || p->role != s->o.point_role || p->rank != s->o.point_rank ||
        sends != (s->o.how == SIM_AT_SEND) || ++*(sends ? &p->sent : &p->received) != s->o.point)
        return false;
    s->result->reached = true;
    s->result->point_type = type;
    sim_point_time(s, p->role);
    sim_say(s, "point %u: type %u", s->o.point, type);
    return true;
}

/* To each process that had this number: one that was replaced hears too. */
static void sim_send(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                     uint64_t bytes, uint32_t priority)
{
    sim_proc *from = arg;
    sim *s = from->world;
    const uint64_t birth = tni_kv_get(header + 32, 8);
    const uint32_t role = TNI_KV_ROLE(to), rank = TNI_KV_RANK(to);
    uint32_t base =
        role == TNI_KV_SCHEDULER ? 0 : 1 + rank + (role == TNI_KV_WORKER ? s->settings.servers : 0);

    (void)priority;
    if (sim_point_met(s, from, SIM_AT_SEND, header[3]))
        from->dying = true;
    if (from->dying)
        return;
    s->result->messages++;
    s->result->batches += header[3] == TNI_KV_BATCH;
    if (to != TNI_KV_UNKNOWN && base < s->base_count && s->procs[base].alive)
        packet_to(s, from, &s->procs[base], header, payload, bytes);
    for (uint32_t i = to == TNI_KV_UNKNOWN ? 0 : s->base_count; i < s->proc_count; i++) {
        sim_proc *p = &s->procs[i];

        if (p->alive && (to == TNI_KV_UNKNOWN ? p->birth == birth : id_of(p) == to))
            packet_to(s, from, p, header, payload, bytes);
    }
}

/* ---- disks ---- */

static void snapshot_saved(sim *s, sim_proc *p, uint64_t step)
{
    sim_disk *d = &s->disks[1 + p->rank];
    bool third = false;

    if (p->alive && p->server && sim_point_met(s, p, SIM_AT_RECEIVE, SIM_DISK_TYPE)) {
        sim_point_do(s, p);
        return;
    }
    if (!p->alive || !p->server || d->blobs[2].step != step || p != sim_server(s, p->rank))
        return;
    TNI_KV_POINT(synced);
    if (p->dying)
        return;
    if (s->mode == SIM_ASYNC && step <= d->blobs[0].step)
        sim_violation(s, "I1: server %u writes step %llu, which the next process would pass over for %llu",
                      p->rank, (unsigned long long)step, (unsigned long long)d->blobs[0].step);
    if (d->blobs[0].step == step) { /* again, after going back */
        free(d->blobs[0].text);
    } else {
        third = d->blobs[1].text != NULL;
        free(d->blobs[1].text);
        d->blobs[1] = d->blobs[0];
    }
    sim_say(s, "server %u has step %llu on its disk", p->rank, (unsigned long long)step);
    d->blobs[0] = d->blobs[2];
    d->blobs[2] = (sim_blob){0};
    TNI_KV_POINT(renamed);
    TNI_KV_POINT_IF(third && !p->dying, trimmed);
    if (!p->dying)
        tni_kv_server_saved(p->server, step, TN_OK, s->now);
}

/* ---- processes ---- */

sim_proc *sim_server(const sim *s, uint32_t rank)
{
    for (uint32_t i = s->proc_count; i-- > 0;)
        if (s->procs[i].role == TNI_KV_SERVER && s->procs[i].rank == rank && s->procs[i].alive)
            return &s->procs[i];
    return NULL;
}

void sim_wake(sim *s, sim_proc *p, uint64_t at)
{
    sim_event *e;

    if (at <= s->now)
        at = s->now + SIM_MS; /* of an error that is switched on */
    if (at == TNI_KV_NEVER || at >= p->tick_ns)
        return;
    e = sim_event_add(s, SIM_TICK, at, 0);
    if (!e)
        return;
    e->proc = p->index;
    e->arg = p->birth;
    p->tick_ns = at;
}

static uint64_t machine_tick(sim *s, sim_proc *p)
{
    if (p->scheduler)
        return tni_kv_scheduler_tick(p->scheduler, s->now);
    if (p->server)
        return tni_kv_server_tick(p->server, s->now);
    return tni_kv_worker_tick(p->worker, s->now);
}

/* The bytes that a crash left half written are cut first, as protocol.h asks. */
static tn_status scheduler_start(sim *s, sim_proc *p, const tni_kv_host *host)
{
    const tni_kv_journal j = sim_journal(p);
    tni_str *text = &s->disks[0].journal;

    text->length = tni_kv_journal_whole(text->text, text->length);
    return tni_kv_scheduler_create(&s->settings, host, &j, text->text, text->length, s->now, &p->scheduler);
}

static tn_status server_start(sim *s, sim_proc *p, const tni_kv_host *host, tni_kv_start *start)
{
    const tni_kv_snapshots snapshots = sim_snapshots(p);
    tni_kv_update update = sim_update;

    update.arg = p;
    start->steps[0] = s->disks[1 + p->rank].blobs[0].step;
    start->steps[1] = s->disks[1 + p->rank].blobs[1].step;
    return tni_kv_server_create(&s->settings, host, start, &update, &snapshots, &p->server);
}

static tn_status worker_start(sim *s, sim_proc *p, const tni_kv_host *host, const tni_kv_start *start)
{
    tn_status st;

    p->app = tni_zalloc(sizeof *p->app);
    for (uint32_t k = 0; p->app && k < s->o.keys; k++) {
        p->app->gradient[k] = tni_calloc(2ull * s->elements[k], sizeof(float));
        if (!p->app->gradient[k])
            return TN_E_NOMEM;
        p->app->value[k] = p->app->gradient[k] + s->elements[k];
    }
    st = p->app ? tni_kv_worker_create(&s->settings, host, start, sim_app_done, &p->worker) : TN_E_NOMEM;
    for (uint32_t k = 0; !st && k < s->o.keys; k++)
        st = tni_kv_worker_key(p->worker, k, 0, s->elements[k], sizeof(float));
    return st;
}

/* A server's payloads, by half of the seeds, are blocks that it may keep; what it has not kept or has given
 * back is overwritten. A batch is no payload of its own. */
static void *sim_keep(void *arg, uint64_t bytes)
{
    sim_proc *p = arg;
    void *lent = p->lent;

    (void)bytes;
    p->lent = NULL;
    return lent;
}

static void sim_give(void *arg, void *kept, uint64_t bytes)
{
    (void)arg;
    memset(kept, 0xdb, bytes);
    free(kept);
}

tn_status sim_proc_start(sim *s, uint32_t role, uint32_t rank, sim_proc **out)
{
    sim_proc *p = &s->procs[s->proc_count];
    const tni_kv_host host = {.arg = p, .send = sim_send, .keep = sim_keep, .give = sim_give};
    tni_kv_start start = {.rank = (int32_t)rank, .birth = sim_random(s) | 1u};
    tn_status st;

    if (s->proc_count == s->proc_room)
        return tni_error(TN_E_NOMEM, "no room for another process");
    *p = (sim_proc){.world = s,
                    .role = role,
                    .rank = rank,
                    .index = s->proc_count,
                    .birth = start.birth,
                    .begun_ns = s->now,
                    .tick_ns = TNI_KV_NEVER,
                    .alive = true};
    s->proc_count++;
    s->acting = p;
    if (role == TNI_KV_SCHEDULER)
        st = scheduler_start(s, p, &host);
    else
        st = role == TNI_KV_SERVER ? server_start(s, p, &host, &start) : worker_start(s, p, &host, &start);
    sim_say(s, "start %s %u (process %u)", roles[role], rank, p->index);
    s->acting = NULL;
    sim_wake(s, p, s->now + (s->proc_count <= s->base_count ? sim_below(s, 20 * SIM_MS) : 0));
    if (out)
        *out = p;
    return st;
}

static void proc_free(sim_proc *p)
{
    tni_kv_scheduler_destroy(p->scheduler);
    tni_kv_server_destroy(p->server);
    tni_kv_worker_destroy(p->worker);
    for (uint32_t k = 0; p->app && k < SIM_KEYS_MAX; k++) {
        tni_free(p->app->gradient[k]);
        tni_free(p->app->cuts[k]);
    }
    tni_free(p->app);
    p->scheduler = NULL;
    p->server = NULL;
    p->worker = NULL;
    p->app = NULL;
}

void sim_proc_kill(sim *s, sim_proc *p)
{
    if (!p->alive)
        return;
    sim_say(s, "kill %s %u (process %u)", roles[p->role], p->rank, p->index);
    p->alive = false;
    if (p->role == TNI_KV_SERVER && p == &s->procs[p->index]) { /* what was not on the disk is gone */
        free(s->disks[1 + p->rank].blobs[2].text);
        s->disks[1 + p->rank].blobs[2] = (sim_blob){0};
    }
    proc_free(p);
}

/* What a process does when it has ended by itself: fenced ones are started anew, as a launcher would. */
static void proc_look(sim *s, sim_proc *p)
{
    bool over = false;

    if (p->server && tni_kv_server_status(p->server)) {
        sim_say(s, "server %u stops: %s", p->rank, tni_error_message());
        over = true;
    }
    over = over || (p->server && tni_kv_server_finished(p->server)) ||
           (p->scheduler && tni_kv_scheduler_finished(p->scheduler));
    if (over)
        p->gone = true;
    if (p->server && tni_kv_server_status(p->server))
        sim_replace(s, p);
}

void sim_point_do(sim *s, sim_proc *p)
{
    if (s->o.how == SIM_STOP) {
        p->resume_ns = s->now + 12 * SIM_S;
        return;
    }
    sim_restart_later(s, p, 200 * SIM_MS);
    sim_proc_kill(s, p);
}

static uint64_t server_receive(sim *s, sim_proc *p, const sim_event *e)
{
    const bool lends = s->o.seed % 2 && e->bytes && e->header[3] != TNI_KV_BATCH;
    uint8_t *payload = lends ? malloc(e->bytes) : NULL;
    uint64_t next;

    if (!payload)
        return tni_kv_server_receive(p->server, e->header, e->payload, e->bytes, s->now);
    memcpy(payload, e->payload, e->bytes);
    p->lent = payload;
    next = tni_kv_server_receive(p->server, e->header, payload, e->bytes, s->now);
    if (p->lent)
        sim_give(p, p->lent, e->bytes);
    p->lent = NULL;
    return next;
}

static void deliver_say(const sim *s, const sim_proc *p, const sim_event *e)
{
    const uint8_t *payload;
    tni_kv_header h, of;
    uint64_t at = 0;

    if (!s->o.verbose || e->header[3] == TNI_KV_BEAT)
        return;
    sim_say(s, "%s %u gets type %u from %04x round %u key %llx seq %llx what %u", roles[p->role], p->rank,
            e->header[3], (unsigned)tni_kv_get(e->header + 16, 2), (unsigned)tni_kv_get(e->header + 28, 4),
            (unsigned long long)tni_kv_get(e->header + 40, 8),
            (unsigned long long)tni_kv_get(e->header + 32, 8), e->header[6]);
    if (e->header[3] != TNI_KV_BATCH || tni_kv_decode(e->header, e->payload, e->bytes, &h))
        return;
    while (at < e->bytes && !tni_kv_entry_get(&h, e->payload, &at, &of, &payload))
        sim_say(s, "    type %u round %u key %llx seq %llx what %u flags %x bytes %llu", of.type, of.round,
                (unsigned long long)of.key, (unsigned long long)of.sequence, of.what, of.flags,
                (unsigned long long)of.bytes);
}

static void deliver(sim *s, sim_event *e)
{
    sim_proc *p = &s->procs[e->proc];
    uint64_t next;

    if (!p->alive || p->birth != e->arg || p->gone)
        return;
    if (sim_point_met(s, p, SIM_AT_RECEIVE, e->header[3])) {
        sim_point_do(s, p);
        return;
    }
    deliver_say(s, p, e);
    if (p->scheduler)
        next = tni_kv_scheduler_receive(p->scheduler, e->header, e->payload, e->bytes, s->now);
    else if (p->server)
        next = server_receive(s, p, e);
    else
        next = tni_kv_worker_receive(p->worker, e->header, e->payload, e->bytes, s->now);
    sim_wake(s, p, next);
    proc_look(s, p);
    if (p->worker) {
        sim_app_step(s, p);
        if (p->worker)
            sim_wake(s, p, machine_tick(s, p));
    }
}

static void tick(sim *s, const sim_event *e)
{
    sim_proc *p = &s->procs[e->proc];

    if (!p->alive || p->birth != e->arg || p->gone || e->at != p->tick_ns)
        return;
    p->tick_ns = TNI_KV_NEVER;
    sim_wake(s, p, machine_tick(s, p));
    proc_look(s, p);
    if (!p->worker)
        return;
    sim_app_step(s, p);
    if (p->worker) {
        sim_app_check(s, p);
        sim_wake(s, p, machine_tick(s, p));
    }
}

/* True: it was for a paused process, and comes again when that goes on. */
static bool postponed(sim *s, sim_event *e)
{
    const sim_proc *p = &s->procs[e->proc];
    sim_event *later;

    if (e->kind == SIM_FAULT || e->kind == SIM_RESTART || !p->alive || p->resume_ns <= s->now)
        return false;
    later = sim_event_add(s, e->kind, p->resume_ns, e->bytes);
    if (!later)
        return false;
    later->proc = e->proc;
    later->arg = e->arg;
    if (e->kind == SIM_TICK)
        s->procs[e->proc].tick_ns = p->resume_ns;
    memcpy(later->header, e->header, sizeof e->header);
    memcpy(later->payload, e->payload, e->bytes);
    return true;
}

bool sim_scheduler_gone(const sim *s)
{
    bool gone = false;

    for (uint32_t i = 0; i < s->proc_count; i++)
        if (s->procs[i].role == TNI_KV_SCHEDULER)
            gone = s->procs[i].gone;
    return gone;
}

static bool all_over(const sim *s)
{
    const bool gone = sim_scheduler_gone(s);

    if (s->restarts && !gone)
        return false; /* all may be away at once */
    for (uint32_t i = 0; i < s->proc_count; i++)
        if (s->procs[i].alive && !s->procs[i].gone && (s->procs[i].app || (s->mode != SIM_HANG && !gone)) &&
            !(s->procs[i].app && s->procs[i].app->stage == SIM_OVER))
            return false;
    return true;
}

static void stages_say(sim *s)
{
    char text[256] = "";
    size_t at = 0;

    for (uint32_t i = 0; i < s->proc_count && at < sizeof text - 32; i++)
        if (s->procs[i].alive && s->procs[i].app)
            at += (size_t)snprintf(text + at, sizeof text - at, ", worker %u stage %d step %u",
                                   s->procs[i].rank, (int)s->procs[i].app->stage, s->procs[i].app->step);
    sim_violation(s, "I8: the job has not ended %.0f s after the last fault%s",
                  (double)(s->now - s->faults_end_ns) / 1e9, text);
}

static void loop(sim *s)
{
    sim_event *e;

    while (!s->violated && !s->told_at_once && (e = event_next(s)) != NULL) {
        s->now = e->at;
        s->result->events++;
        if (e->kind == SIM_DELIVER && e->what) { /* through the receiver's link */
            sim_proc *to = &s->procs[e->proc];

            to->in_ns = (s->now > to->in_ns ? s->now : to->in_ns) + e->bytes * s->o.byte_ns;
            e->what = 0;
            event_put(s, e, to->in_ns);
            continue;
        }
        if (!postponed(s, e)) {
            s->acting = e->kind <= SIM_TICK || e->kind == SIM_SAVED ? &s->procs[e->proc] : NULL;
            if (e->kind == SIM_DELIVER)
                deliver(s, e);
            else if (e->kind == SIM_TICK)
                tick(s, e);
            else if (e->kind == SIM_SAVED)
                snapshot_saved(s, &s->procs[e->proc], e->arg);
            else
                sim_fault(s, e);
            if (!s->struck && e->kind <= SIM_TICK && s->procs[e->proc].dying && s->procs[e->proc].alive)
                sim_point_do(s, &s->procs[e->proc]);
            s->acting = NULL;
            sim_strike(s);
        }
        event_free(s, e);
        if (s->now > s->deadline_ns) {
            stages_say(s);
            break;
        }
        if ((s->result->events & 15) == 0 && all_over(s))
            break;
    }
    if (!s->violated && !s->told_at_once && !all_over(s))
        sim_violation(s, "I8: nothing moves any more");
}

static void free_all(sim *s)
{
    sim_event *e;

    for (uint32_t i = 0; s->procs && i < s->proc_count; i++)
        proc_free(&s->procs[i]);
    while ((e = event_next(s)) != NULL)
        free(e);
    while ((e = s->free_events) != NULL) {
        s->free_events = e->next;
        free(e);
    }
    free(s->heap);
    for (uint32_t i = 0; s->disks && i <= s->settings.servers; i++) {
        for (int b = 0; b < 3; b++)
            free(s->disks[i].blobs[b].text);
        tni_str_fini(&s->disks[i].journal);
    }
    free(s->disks);
    free(s->procs);
    free(s->shadows);
}

bool sim_run(const sim_options *o, sim_result *out)
{
    sim *s = calloc(1, sizeof *s);
    tni_mem_stats before, after;
    tn_status st = TN_OK;

    *out = (sim_result){0};
    if (!s)
        return false;
    tni_mem_stats_get(&before);
    s->o = *o;
    s->result = out;
    sim_faults_plan(s);
    s->base_count = 1 + s->settings.servers + s->settings.workers;
    s->proc_room = s->base_count + SIM_PROCS_EXTRA;
    s->procs = calloc(s->proc_room, sizeof *s->procs);
    s->disks = calloc(1 + s->settings.servers, sizeof *s->disks);
    s->shadows = calloc((size_t)SIM_KEYS_MAX * SIM_PARTS_MAX * s->settings.workers, sizeof *s->shadows);
    if (s->procs && s->disks && s->shadows) {
        for (uint32_t i = 0; i <= s->settings.servers; i++)
            tni_str_init(&s->disks[i].journal, TN_TEXT_MAX);
        sim_at_begin(s);
        st = sim_proc_start(s, TNI_KV_SCHEDULER, 0, NULL);
        for (uint32_t i = 0; !st && i < s->settings.servers; i++)
            st = sim_proc_start(s, TNI_KV_SERVER, i, NULL);
        for (uint32_t i = 0; !st && i < s->settings.workers; i++)
            st = sim_proc_start(s, TNI_KV_WORKER, i, NULL);
        if (st)
            sim_violation(s, "a process does not start: %s", tni_error_message());
        loop(s);
        if (!s->violated && !s->told_at_once)
            sim_app_final(s);
        sim_at_end();
    }
    out->time_ns = s->now;
    free_all(s);
    free(s);
    tni_mem_stats_get(&after);
    if (after.live_bytes != before.live_bytes && !out->violation[0])
        (void)snprintf(out->violation, sizeof out->violation, "I6: %llu bytes are not freed",
                       (unsigned long long)(after.live_bytes - before.live_bytes));
    return !out->violation[0];
}
