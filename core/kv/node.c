/*
 * What scheduler, servers and workers have in common: whom they know, what they send and what they let in.
 *
 * Small messages to one peer are gathered and leave as one batch when the machine has ended its call.
 */
#include <string.h>

#include "kv/protocol.h"

#ifdef TN_TEST_SWITCHES
int tni_kv_bug;
_Thread_local tni_kv_at tni_kv_half;

#define FAILPOINT(role, name, failpoint, what, remark) [TNI_KV_AT_##name] = failpoint,
static void point_default(tni_kv_at at)
{
    static const char *const names[] = {TNI_KV_POINTS(FAILPOINT)};

    (void)tni_failpoint(names[at]);
}

void (*tni_kv_point)(tni_kv_at at) = point_default;

/* Between the messages to two nodes. */
static void point_half(const tni_kv_node *n, uint32_t sent)
{
    if (tni_kv_half && sent && sent < n->dirty_count)
        tni_kv_point(tni_kv_half);
    if (sent == n->dirty_count)
        tni_kv_half = TNI_KV_AT_NONE;
}
#else
#define point_half(n, sent) ((void)0)
#endif

tn_status tni_kv_node_init(tni_kv_node *n, const tni_kv_settings *s, const tni_kv_host *host, uint16_t id)
{
    tn_status st = tni_kv_view_init(&n->view, s->workers, s->servers);

    if (st)
        return st;
    n->settings = s;
    n->async = s->async;
    n->host = *host;
    n->id = id;
    n->late_ns = TNI_KV_NEVER;
    n->peer_count = 1 + s->servers + s->workers;
    n->peers = tni_calloc(n->peer_count, sizeof *n->peers);
    n->dirty = tni_calloc(n->peer_count, sizeof *n->dirty);
    if (!n->peers || !n->dirty) {
        tni_kv_node_fini(n);
        return TN_E_NOMEM;
    }
    for (uint32_t i = 0; i < n->peer_count; i++)
        tni_str_init(&n->peers[i].batch, TNI_KV_BATCH_MAX + 1);
    return TN_OK;
}

void tni_kv_node_fini(tni_kv_node *n)
{
    for (uint32_t i = 0; n->peers && i < n->peer_count; i++)
        tni_str_fini(&n->peers[i].batch);
    for (uint32_t i = 0; i < TNI_KV_TIME_COUNT; i++)
        tni_kv_histogram_fini(&n->metrics.times[i]);
    tni_free(n->peers);
    tni_free(n->dirty);
    n->peers = NULL;
    n->dirty = NULL;
    tni_kv_view_fini(&n->view);
}

static uint32_t peer_index(const tni_kv_node *n, uint16_t id)
{
    static const uint8_t behind[4] = {0, 1, 1, 0};
    const uint32_t role = TNI_KV_ROLE(id), rank = TNI_KV_RANK(id);
    const uint32_t counts[4] = {1, n->settings->servers, n->settings->workers, 0};

    return rank < counts[role] ? rank + behind[role] + (role == TNI_KV_WORKER ? counts[1] : 0) : UINT32_MAX;
}

tni_kv_peer *tni_kv_node_peer(tni_kv_node *n, uint16_t id)
{
    const uint32_t index = peer_index(n, id);

    return index == UINT32_MAX ? NULL : &n->peers[index];
}

static void message_send(tni_kv_node *n, uint16_t to, tni_kv_header *h, const void *payload, uint64_t bytes)
{
    uint8_t text[TNI_KV_HEADER_BYTES];

    h->bytes = bytes;
    if (bytes && (n->settings->checked || h->flags & TNI_KV_RETRY || h->type == TNI_KV_BATCH ||
                  h->type <= TNI_KV_BEAT || h->type == TNI_KV_REPORT))
        h->flags |= TNI_KV_CHECKED;
    tni_kv_encode(h, payload, text);
    ++*tni_kv_number(n, TNI_KV_N_SENT);
    *tni_kv_number(n, TNI_KV_N_SENT_BYTES) += TNI_KV_HEADER_BYTES + bytes;
    n->host.send(n->host.arg, to, text, payload, bytes, h->priority);
}

static void peer_flush(tni_kv_node *n, uint16_t to, tni_kv_peer *p)
{
    tni_kv_header h = {.type = TNI_KV_BATCH,
                       .from = n->id,
                       .to = to,
                       .view = n->view.number,
                       .incarnation = n->incarnation,
                       .job = n->settings->job};

    if (p->batch.length == 0)
        return;
    ++*tni_kv_number(n, TNI_KV_N_BATCHES);
    message_send(n, to, &h, p->batch.text, p->batch.length);
    p->batch.length = 0;
}

/* False: it does not fit, or there is no memory for it. */
static bool batch_add(tni_kv_node *n, uint16_t to, const tni_kv_header *h, const void *payload)
{
    const uint64_t bytes = tni_kv_entry_bytes(h->bytes);
    uint8_t entry[TNI_KV_ENTRY_BYTES + TNI_KV_SMALL_MAX];
    tni_kv_peer *p = tni_kv_node_peer(n, to);

    if (!p)
        return false;
    if (p->batch.length + bytes > TNI_KV_BATCH_MAX)
        peer_flush(n, to, p);
    tni_kv_entry_put(h, payload, entry);
    if (tni_str_add_bytes(&p->batch, entry, bytes))
        return false;
    p->late_ns = 0;
    if (!p->dirty) {
        p->dirty = true;
        n->dirty[n->dirty_count++] = to;
    }
    return true;
}

void tni_kv_node_send(tni_kv_node *n, uint16_t to, tni_kv_header *h, const void *payload, uint64_t bytes)
{
    h->from = n->id;
    h->to = to;
    h->view = n->view.number;
    h->incarnation = n->incarnation;
    h->job = n->settings->job;
    h->bytes = bytes;
    if (bytes > (n->settings->batch_bytes ? n->settings->batch_bytes : TNI_KV_SMALL_MAX) ||
        h->type < TNI_KV_INIT || h->type > TNI_KV_BATCH || to == TNI_KV_UNKNOWN || h->alone ||
        !batch_add(n, to, h, payload))
        message_send(n, to, h, payload, bytes);
}

void tni_kv_node_answer(tni_kv_node *n, const tni_kv_header *h, uint8_t state, uint16_t who, uint32_t count)
{
    tni_kv_header answer = {.type = TNI_KV_ACK,
                            .flags = h->flags & TNI_KV_LOST,
                            .what = state,
                            .priority = h->priority,
                            .round = h->round,
                            .sequence = h->sequence,
                            .key = h->key};
    uint8_t body[8] = {0};

    tni_kv_put(body, who, 2);
    tni_kv_put(body + 4, count, 4);
    tni_kv_node_send(n, h->from, &answer, body, count ? sizeof body : 0);
}

void tni_kv_node_answer_late(tni_kv_node *n, const tni_kv_header *h, uint8_t state, uint16_t who,
                             uint32_t count)
{
    tni_kv_peer *p = tni_kv_node_peer(n, h->from);
    const bool alone = p && (!p->batch.length || p->late_ns);
    const uint64_t due = p && p->late_ns ? p->late_ns : n->now + n->settings->late_ns;

    tni_kv_node_answer(n, h, state, who, count);
    if (alone && n->settings->late_ns)
        p->late_ns = due;
}

void tni_kv_node_answer_failed(tni_kv_node *n, const tni_kv_header *h, tn_status st)
{
    tni_kv_header answer = {
        .type = TNI_KV_ACK, .what = TNI_KV_FAILED, .sequence = h->sequence, .key = h->key};
    char text[TNI_KV_SMALL_MAX / 2];

    tni_kv_put((uint8_t *)text, (uint32_t)st, 4);
    (void)snprintf(text + 4, sizeof text - 4, "%s", tni_error_message());
    tni_kv_node_send(n, h->from, &answer, text, 4 + strlen(text + 4));
}

void tni_kv_node_flush(tni_kv_node *n)
{
    uint32_t kept = 0;

    n->late_ns = TNI_KV_NEVER;
    for (uint32_t i = 0; i < n->dirty_count; i++) {
        const uint16_t to = n->dirty[i];
        tni_kv_peer *p = tni_kv_node_peer(n, to);

        if (p->late_ns > n->now) {
            n->late_ns = p->late_ns < n->late_ns ? p->late_ns : n->late_ns;
            n->dirty[kept++] = to;
            continue;
        }
        p->dirty = false;
        p->late_ns = 0;
        peer_flush(n, to, p);
        point_half(n, i + 1);
    }
    n->dirty_count = kept;
}

/* Tells who speaks with an old incarnation, so that it ends. */
static void fenced_send(tni_kv_node *n, const tni_kv_header *h)
{
    tni_kv_header answer = {.type = TNI_KV_REFUSED, .what = TNI_KV_FENCED, .round = h->incarnation};

    tni_kv_node_send(n, h->from, &answer, NULL, 0);
}

/* Rule 1. Scheduler's messages: of its newest incarnation, and what fences this process. */
static bool admitted(tni_kv_node *n, const tni_kv_header *h)
{
    const bool of_epoch = h->type >= TNI_KV_INIT && h->type < TNI_KV_ASK && h->type != TNI_KV_REFUSED;
    const bool question = h->type == TNI_KV_ASK && h->from == TNI_KV_UNKNOWN;
    const tni_kv_member *m;

    if ((h->job != n->settings->job && !TNI_KV_BUG(NO_JOB) && !(question && !h->job)) || n->fenced)
        return false;
    if (h->type == TNI_KV_HELLO || question)
        return n->id == TNI_KV_SCHEDULER_NODE;
    if (h->to != n->id)
        return false;
    if (h->from == TNI_KV_SCHEDULER_NODE)
        return n->id != h->from && h->incarnation >= n->view.scheduler;
    m = tni_kv_view_member(&n->view, h->from);
    if (!m || !h->incarnation)
        return false;
    if (TNI_KV_BUG(NO_FENCE))
        return true;
    if (m->incarnation != h->incarnation || m->state == TNI_KV_DEAD || m->state == TNI_KV_GONE) {
        if (h->incarnation <= m->incarnation && n->id == TNI_KV_SCHEDULER_NODE)
            fenced_send(n, h);
        return false;
    }
    return !of_epoch || h->view >= n->view.epoch_view;
}

/* Of another build: the scheduler refuses who says HELLO, a process the scheduler that welcomes it. */
static bool other_version(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload)
{
    const bool hello = h->type == TNI_KV_HELLO;
    const uint32_t said = h->what ? h->what : 1, theirs = hello ? said : h->version;
    tni_kv_header answer = {.type = TNI_KV_REFUSED, .what = TNI_KV_FULL, .version = 1};
    tni_kv_hello who;
    char text[160];

    if (theirs == TNI_KV_WIRE_VERSION)
        return false;
    (void)snprintf(text, sizeof text,
                   "it speaks version %u of the protocol, this process version %u; all processes of a job "
                   "run one version of Tenon",
                   hello ? TNI_KV_WIRE_VERSION : theirs, hello ? theirs : TNI_KV_WIRE_VERSION);
    if (!hello) {
        answer.from = h->from;
        answer.sequence = h->sequence;
        answer.bytes = strlen(text);
        (void)n->handle(n, &answer, (const uint8_t *)text);
    } else if (tni_kv_hello_read(payload, h->bytes, &who)) {
        answer.sequence = who.birth;
        tni_kv_node_send(n, TNI_KV_UNKNOWN, &answer, text, strlen(text));
    }
    return true;
}

#define BY_SCHEDULER (1u << TNI_KV_SCHEDULER)
#define BY_SERVER (1u << TNI_KV_SERVER)
#define BY_WORKER (1u << TNI_KV_WORKER)
#define BY_STRANGER 8u /* who has no number */

/* Who may send what. */
static const uint8_t senders[TNI_KV_TYPE_END] = {
    [TNI_KV_HELLO] = BY_STRANGER,
    [TNI_KV_WELCOME] = BY_SCHEDULER,
    [TNI_KV_VIEW] = BY_SCHEDULER,
    [TNI_KV_BEAT] = BY_SCHEDULER | BY_SERVER | BY_WORKER,
    [TNI_KV_INIT] = BY_WORKER,
    [TNI_KV_PUSH] = BY_WORKER,
    [TNI_KV_PULL] = BY_WORKER,
    [TNI_KV_ACK] = BY_SCHEDULER | BY_SERVER,
    [TNI_KV_VALUE] = BY_SERVER,
    [TNI_KV_COMMAND] = BY_WORKER,
    [TNI_KV_SNAPSHOT] = BY_WORKER,
    [TNI_KV_BARRIER] = BY_WORKER,
    [TNI_KV_END] = BY_WORKER,
    [TNI_KV_BYE] = BY_SERVER | BY_WORKER,
    [TNI_KV_REFUSED] = BY_SCHEDULER,
    [TNI_KV_ASK] = BY_SCHEDULER | BY_STRANGER,
    [TNI_KV_REPORT] = BY_SERVER | BY_WORKER,
};

static bool entry_handle(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload)
{
    char name[24];

    if (!(senders[h->type] >> TNI_KV_ROLE(h->from) & 1u))
        return !tni_error(TN_E_FORMAT, "%s may not send messages of type %u", tni_kv_node_name(h->from, name),
                          h->type);
    return n->handle(n, h, payload) == TN_OK;
}

void tni_kv_node_receive(tni_kv_node *n, const uint8_t *header, const void *payload, uint64_t bytes,
                         uint64_t now)
{
    tni_kv_header h, entry;
    const uint8_t *at_payload;
    uint64_t at = 0, *refused = tni_kv_number(n, TNI_KV_N_REFUSED);
    tni_kv_peer *p;
    bool damaged;

    n->now = now;
    ++*tni_kv_number(n, TNI_KV_N_RECEIVED);
    *tni_kv_number(n, TNI_KV_N_RECEIVED_BYTES) += TNI_KV_HEADER_BYTES + bytes;
    damaged = tni_kv_decode(header, payload, bytes, &h) != TN_OK;
    *tni_kv_number(n, TNI_KV_N_DAMAGED) += damaged;
    if (damaged || !admitted(n, &h)) {
        ++*refused;
        return;
    }
    if ((p = tni_kv_node_peer(n, h.from)) != NULL)
        p->heard_ns = now;
    if (n->host.heard)
        n->host.heard(n->host.arg, &h, payload);
    if (h.type <= TNI_KV_WELCOME && other_version(n, &h, payload)) {
        ++*refused;
    } else if (h.type != TNI_KV_BATCH) {
        *refused += !entry_handle(n, &h, payload);
    } else {
        while (at < h.bytes && !tni_kv_entry_get(&h, payload, &at, &entry, &at_payload)) {
            if (entry.type < TNI_KV_INIT)
                break;
            *refused += !entry_handle(n, &entry, at_payload);
        }
        *refused += at < h.bytes;
    }
}

bool tni_kv_node_view(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload)
{
    tni_kv_reader r = {payload, h->bytes, false};
    const uint32_t number = (uint32_t)tni_kv_read(&r, 4), scheduler = (uint32_t)tni_kv_read(&r, 4);
    const tni_kv_member *m;

    if (h->from != TNI_KV_SCHEDULER_NODE || r.bad || scheduler < n->view.scheduler ||
        number <= n->view.number || tni_kv_view_read(&n->view, payload, h->bytes))
        return false;
    n->async = n->view.flags & TNI_KV_ASYNC;
    ++*tni_kv_number(n, TNI_KV_N_VIEWS);
    m = tni_kv_view_member(&n->view, n->id);
    if (m && n->incarnation && (m->incarnation != n->incarnation || m->state == TNI_KV_GONE))
        n->fenced = true;
    return true;
}

void tni_kv_node_report(tni_kv_node *n, tni_kv_report *out)
{
    if (n->host.links_lost)
        *tni_kv_number(n, TNI_KV_N_LINKS_LOST) = *n->host.links_lost;
    tni_kv_report_numbers(&n->metrics, out);
}

void tni_kv_node_report_send(tni_kv_node *n, const tni_kv_header *ask, const tni_kv_report *r,
                             const tni_str *more)
{
    tni_kv_header h = {.type = TNI_KV_REPORT, .sequence = ask->sequence, .key = n->id, .priority = 255};
    tni_str text;

    tni_str_init(&text, TN_TEXT_MAX);
    tni_kv_report_write(r, &text);
    if (more)
        (void)tni_str_add_bytes(&text, more->text, more->length);
    if (!text.status)
        tni_kv_node_send(n, ask->from, &h, text.text, text.length);
    tni_str_fini(&text);
}

const char *tni_kv_node_name(uint16_t id, char out[24])
{
    static const char *const roles[4] = {"scheduler", "server", "worker", "node"};

    if (TNI_KV_ROLE(id) == TNI_KV_SCHEDULER)
        return roles[0];
    (void)snprintf(out, 24, "%s %u", roles[TNI_KV_ROLE(id)], TNI_KV_RANK(id));
    return out;
}

void tni_kv_node_hello(tni_kv_node *n, uint32_t role, const tni_kv_start *start, uint64_t token)
{
    tni_kv_header h = {.type = TNI_KV_HELLO, .version = 1, .what = TNI_KV_WIRE_VERSION};
    tni_str text;

    n->asked_ns = n->now;
    tni_str_init(&text, TN_TEXT_MAX);
    tni_kv_write(&text, role | (n->settings->async ? TNI_KV_HELLO_ASYNC : 0), 1);
    tni_kv_write(&text, (uint32_t)start->rank, 4);
    tni_kv_write(&text, start->birth, 8);
    tni_kv_write(&text, token, 8);
    tni_kv_write(&text, start->steps[0], 8);
    tni_kv_write(&text, start->steps[1], 8);
    if (!tni_str_add_bytes(&text, start->address, start->address_bytes))
        tni_kv_node_send(n, TNI_KV_SCHEDULER_NODE, &h, text.text, text.length);
    tni_str_fini(&text);
}

bool tni_kv_hello_read(const uint8_t *payload, uint64_t bytes, tni_kv_hello *out)
{
    tni_kv_reader r = {payload, bytes, false};

    out->role = (uint32_t)tni_kv_read(&r, 1);
    out->async = out->role & TNI_KV_HELLO_ASYNC;
    out->role &= ~TNI_KV_HELLO_ASYNC;
    out->rank = (uint32_t)tni_kv_read(&r, 4);
    out->birth = tni_kv_read(&r, 8);
    out->token = tni_kv_read(&r, 8);
    out->steps[0] = tni_kv_read(&r, 8);
    out->steps[1] = tni_kv_read(&r, 8);
    out->address_bytes = r.left;
    out->address = r.at;
    return !r.bad && out->birth && out->address_bytes <= TNI_KV_ADDRESS_MAX &&
           (out->role == TNI_KV_SERVER || out->role == TNI_KV_WORKER);
}

bool tni_kv_node_welcome(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload,
                         const tni_kv_start *start, uint64_t *token)
{
    tni_kv_reader r = {payload, h->bytes, false};
    const uint16_t id = (uint16_t)tni_kv_read(&r, 2);
    const uint32_t incarnation = (uint32_t)tni_kv_read(&r, 4);

    if (n->incarnation || h->sequence != start->birth)
        return false;
    if (h->what == 0) {
        *token = h->key;
        return false;
    }
    if (r.bad || !incarnation || !tni_kv_view_member(&n->view, id) ||
        tni_kv_view_read(&n->view, r.at, r.left))
        return false;
    n->id = id;
    n->incarnation = incarnation;
    n->async = n->view.flags & TNI_KV_ASYNC;
    if (n->host.clock) { /* the scheduler's showed `key` when it heard, `round` us before it answered */
        const uint64_t way = n->now - n->asked_ns, there = h->round * 1000ull;

        tni_kv_trace_own(n->settings->job, id, incarnation,
                         (int64_t)(h->key + there / 2 - (n->asked_ns + way / 2)),
                         way > there ? (way - there) / 2 : 0);
    }
    return true;
}

bool tni_kv_node_refusal(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload, uint64_t birth)
{
    char name[24];

    if (h->from != TNI_KV_SCHEDULER_NODE)
        return false;
    if (h->what == TNI_KV_FENCED && n->incarnation && h->round == n->incarnation) {
        n->fenced = true;
        (void)tni_error(TN_E_PEER, "%s was silent for too long: the job goes on without this process",
                        tni_kv_node_name(n->id, name));
        return true;
    }
    if (h->what != TNI_KV_FULL || n->incarnation || h->sequence != birth)
        return false;
    (void)tni_error(TN_E_PEER, "the scheduler refuses this process: %.*s",
                    (int)(h->bytes < 200 ? h->bytes : 200), (const char *)payload);
    return true;
}

tn_status tni_kv_view_failure(const tni_kv_view *v)
{
    char name[24];
    const tni_kv_member *m = tni_kv_view_member(v, v->failed);

    return tni_error(TN_E_PEER, "%s %s for %u.%u s in view %u", tni_kv_node_name(v->failed, name),
                     m && m->incarnation ? "died: silent" : "has not come", v->silent_ms / 1000,
                     v->silent_ms / 100 % 10, v->number);
}
