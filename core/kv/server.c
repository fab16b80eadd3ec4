/* A server: registers, holds parts, answers workers. What happens to a part is in part.c. */
#include <string.h>

#include "kv/server.h"
#include "kv/update.h"

void tni_kv_server_stop(tni_kv_server *s, tn_status st)
{
    if (s->status)
        return;
    s->status = st;
    tni_error_get(&s->error);
}

static void hello_send(tni_kv_server *s)
{
    tni_kv_node_hello(&s->node, TNI_KV_SERVER, &s->start, s->token);
    s->hello_ns = s->node.now + TNI_KV_HELLO_NS;
}

static void beat_send(tni_kv_server *s)
{
    tni_kv_header h = {.type = TNI_KV_BEAT, .sequence = ++s->beats};
    uint8_t body[24];

    tni_kv_put(body, s->steps[s->left_out != 0], 8);
    tni_kv_put(body + 8, s->left_out ? 0 : s->steps[1], 8);
    tni_kv_put(body + 16, s->left_out ? s->steps[0] : 0, 8);
    tni_kv_node_send(&s->node, TNI_KV_SCHEDULER_NODE, &h, body, sizeof body);
    s->beat_ns = s->node.now + tni_kv_beat_ns(s->node.settings);
}

/* A server whose scheduler is not there, or whose job is over without a word, does not stay for ever. */
static bool deserted(tni_kv_server *s)
{
    const uint64_t limit =
        s->node.incarnation ? s->node.settings->timeout_ns : s->node.settings->control_timeout_ns;
    const uint64_t heard = tni_kv_node_peer(&s->node, TNI_KV_SCHEDULER_NODE)->heard_ns;

    if (!s->begun_ns)
        s->begun_ns = s->node.now + 1;
    if (s->node.now < limit + (heard > s->begun_ns ? heard : s->begun_ns))
        return false;
    tni_kv_server_stop(s,
                       tni_error(TN_E_TIMEOUT, "no word from the scheduler for %.1f s", (double)limit / 1e9));
    return true;
}

static void command_errors_clear(tni_kv_server *s)
{
    for (uint32_t w = 0; s->command_errors && w < s->node.settings->workers; w++) {
        tni_free(s->command_errors[w]);
        s->command_errors[w] = NULL;
    }
}

/* Step 0: empty. */
static tn_status load(tni_kv_server *s, uint64_t step)
{
    const void *text = NULL;
    uint64_t bytes = 0;
    tn_status st = TN_OK;

    tni_kv_parts_clear(s);
    command_errors_clear(s);
    memset(s->commands, 0, s->node.settings->workers * sizeof *s->commands);
    s->saving = s->common = s->left_out = 0;
    s->lasts = s->loading = s->back = s->waits = false;
    if (s->snapshots.read)
        st = s->snapshots.read(s->snapshots.arg, step, &text, &bytes);
    else if (step)
        st = tni_error(TN_E_STATE, "this server keeps no snapshots");
    if (!st && step)
        st = tni_kv_snapshot_read(s, text, bytes);
    else if (!st && s->update.load)
        st = s->update.load(s->update.arg, NULL, 0);
    s->steps[1] = s->steps[0] == step ? s->steps[1] : 0; /* what was written after it is of no use */
    s->steps[0] = step;
    return st;
}

static void needed_count(tni_kv_server *s)
{
    const tni_kv_view *v = &s->node.view;

    s->all_needed = !s->lasts;
    for (uint32_t w = 0; w < v->workers; w++)
        s->all_needed = s->all_needed && tni_kv_member_needed(&v->members[w], UINT32_MAX);
}

/* Rule 9, and who is needed in rounds. */
static void view_changed(tni_kv_server *s)
{
    const tni_kv_view *v = &s->node.view;
    tn_status st = TN_OK;

    if (s->node.fenced)
        st = tni_error(TN_E_PEER, "another process has taken the place of this server");
    else if (v->flags & TNI_KV_JOB_FAILED)
        st = tni_kv_view_failure(&s->node.view);
    else if (v->epoch_view > s->loaded_epoch)
        st = load(s, v->cut);
    if (st == TN_PENDING) {
        s->loading = true; /* `saved` comes here again; meanwhile it beats, and takes nothing */
        return;
    }
    if (st) {
        tni_kv_server_stop(s, st);
        return;
    }
    s->loaded_epoch = v->epoch_view;
    needed_count(s);
    for (uint64_t i = 0; i < s->table_size; i++)
        for (tni_kv_store_part *p = s->table[i]; p && !s->status; p = p->next)
            tni_kv_part_view(s, p);
    beat_send(s);
}

static tn_status welcome(tni_kv_server *s, const tni_kv_header *h, const uint8_t *payload)
{
    tn_status st;
    bool back;

    if (!tni_kv_node_welcome(&s->node, h, payload, &s->start, &s->token)) {
        if (s->token && !s->node.incarnation)
            hello_send(s);
        return TN_OK;
    }
    s->loaded_epoch = s->node.view.epoch_view;
    s->came = s->node.view.number;
    needed_count(s);
    st = s->snapshots.claim ? s->snapshots.claim(s->snapshots.arg, s->steps) : TN_OK;
    if (s->node.async && tni_kv_step_past(&s->node.view, s->steps[0]))
        s->steps[0] = s->steps[1] = 0;
    back = s->node.async && (s->node.view.flags & TNI_KV_RECOVERING ||
                             (s->steps[0] && tni_kv_late_comer(&s->node.view, s->node.incarnation)));
    if (!st && s->node.async && (s->steps[0] || back))
        st = load(s, s->steps[0]);
    s->back = s->waits = back;
    if (st)
        tni_kv_server_stop(s, st);
    beat_send(s);
    TNI_KV_POINT(registered);
    return st;
}

static tn_status value_check(const tni_kv_server *s, const tni_kv_store_part *p, const tni_kv_header *h)
{
    const uint64_t element = tn_dtype_bytes(h->dtype);

    if (p && (p->bytes != h->bytes || p->dtype != h->dtype))
        return tni_error(TN_E_SHAPE,
                         "key %llu has %llu bytes of type %u here, but %llu of type %u there: workers, or a "
                         "snapshot and they, differ in its shape, kvstore.part_bytes or "
                         "kvstore.bigarray_bound",
                         (unsigned long long)(h->key >> 16), (unsigned long long)p->bytes, p->dtype,
                         (unsigned long long)h->bytes, h->dtype);
    if (!element || (h->bytes && s->update.payload_bytes(s->update.arg, h->dtype, 0, h->bytes) != h->bytes))
        return tni_error(TN_E_DTYPE, "key %llu: a server takes no values of data type %u",
                         (unsigned long long)(h->key >> 16), h->dtype);
    if (h->bytes % element)
        return tni_error(TN_E_SHAPE, "key %llu: %llu bytes are no elements of %llu",
                         (unsigned long long)(h->key >> 16), (unsigned long long)h->bytes,
                         (unsigned long long)element);
    return TN_OK;
}

static tn_status init_handle(tni_kv_server *s, const tni_kv_header *h, const uint8_t *payload)
{
    tni_kv_store_part *p = tni_kv_part_find(s, h->key);
    tni_kv_header of = *h;
    tn_status st = value_check(s, p, h);

    TNI_KV_POINT(init_in);
    if (!p && !st) {
        st = tni_kv_part_create(s, h->key, h->dtype, h->bytes, &p);
        if (!st)
            memcpy(p->value, payload, h->bytes);
        if (!st && (s->waits || h->flags & TNI_KV_LOST))
            tni_kv_part_unheard(s, p);
    }
    if (st) {
        tni_kv_node_answer_failed(&s->node, h, st);
        return st;
    }
    if (!(h->flags & TNI_KV_LOST)) /* else it says nothing of where its worker is */
        tni_kv_part_heard(s, p, TNI_KV_RANK(h->from));
    of.flags = 0;
    TNI_KV_POINT(init_stored);
    tni_kv_part_says(s, p, h, &of);
    tni_kv_node_answer(&s->node, &of, TNI_KV_APPLIED, 0, 0);
    return TN_OK;
}

/* Exactly once: sequences of a worker only grow, over its incarnations too. A command that failed is answered
 * with the same error when it is asked for again. */
static void command_handle(tni_kv_server *s, const tni_kv_header *h, const uint8_t *payload)
{
    uint64_t *last = &s->commands[TNI_KV_RANK(h->from)];
    tn_err **error = &s->command_errors[TNI_KV_RANK(h->from)];
    tn_status st = TN_OK;

    if (h->sequence > *last) {
        st = s->update.command ? s->update.command(s->update.arg, (const char *)payload, h->bytes)
                               : tni_error(TN_E_UNSUPPORTED, "this server takes no commands");
        tni_free(*error);
        *error = NULL;
        if (st && (*error = tni_alloc(sizeof **error)))
            tni_error_get(*error);
        if (!st || *error)
            *last = h->sequence;
    } else if (h->sequence == *last && *error) {
        st = (*error)->code;
        tni_error_set(*error);
    }
    if (st)
        tni_kv_node_answer_failed(&s->node, h, st);
    else
        tni_kv_node_answer(&s->node, h, TNI_KV_APPLIED, 0, 0);
}

void tni_kv_server_saved(tni_kv_server *s, uint64_t step, tn_status st, uint64_t now)
{
    s->node.now = now;
    if (s->loading)
        view_changed(s);
    if (step != s->saving)
        return; /* of an epoch that is over */
    s->saving = 0;
    if (st) {
        tni_kv_node_answer_failed(&s->node, &s->save_asked, st);
    } else {
        s->steps[1] = s->steps[0];
        s->steps[0] = step;
        TNI_KV_POINT(log_synced);
        tni_kv_node_answer(&s->node, &s->save_asked, TNI_KV_APPLIED, 0, 0);
    }
    tni_kv_node_flush(&s->node);
}

/* Who takes worker 0's place may ask for a step while another server still writes the one before it, or never
 * heard of that: with one more this server would drop the last step that all hold. So it leaves its newest
 * one out first, and drops that unless the scheduler has told that all hold it. */
static bool others_write(tni_kv_server *s, const tni_kv_header *h)
{
    const uint64_t before = s->save_asked.sequence >> 32;

    if (s->node.async || !before || before == h->sequence >> 32 || !s->steps[1] || s->common >= s->steps[0])
        return false;
    if (!s->left_out) {
        s->left_out = s->beats + 1;
        beat_send(s);
    }
    return true;
}

/* What all hold once they hold until the next epoch: an earlier word of it counts, too. */
static void common_heard(tni_kv_server *s, const tni_kv_header *h)
{
    const void *text;
    uint64_t bytes;
    tn_status st;

    if (h->view < s->node.view.epoch_view)
        return;
    s->common = h->key;
    if (s->common >= s->steps[0])
        s->left_out = 0;
    if (!s->left_out || h->sequence < s->left_out)
        return;
    s->left_out = 0;
    if ((st = s->snapshots.read(s->snapshots.arg, s->steps[1], &text, &bytes)))
        tni_kv_server_stop(s, st);
    s->steps[0] = s->steps[1];
    s->steps[1] = 0;
}

/* Worker 0 asks for it; of others it is a mark of theirs. One at a time, and each step once. A request that
 * is older than the last one of its worker was answered: a late copy of it would write what is here now as an
 * earlier step. Without rounds each request is written: another worker 0 may count from the beginning, so its
 * step becomes one behind the newest, which is what a server that comes back loads, and one of this epoch. */
static void snapshot_handle(tni_kv_server *s, const tni_kv_header *asked)
{
    const bool known = asked->from == s->save_asked.from;
    const bool again = known && asked->sequence == s->save_asked.sequence;
    const uint64_t begun = (uint64_t)s->loaded_epoch << 32, last = begun > s->steps[0] ? begun : s->steps[0];
    tni_kv_header of = *asked, *h = &of;
    tni_str text;
    tn_status st;

    if (known && h->sequence < s->save_asked.sequence)
        return;
    if (s->node.async && again)
        of.key = s->save_asked.key;
    else if (s->node.async && h->key && h->key <= last)
        of.key = last + 1;
    if (h->key && (TNI_KV_RANK(h->from) || h->key == s->steps[0] || h->key == s->steps[1])) {
        tni_kv_node_answer(&s->node, h, TNI_KV_APPLIED, 0, 0);
        return;
    }
    if (!s->snapshots.write || !h->key) {
        st = tni_error(TN_E_UNSUPPORTED, "this server writes no snapshot of step %llu",
                       (unsigned long long)h->key);
        tni_kv_node_answer_failed(&s->node, h, st);
        return;
    }
    if ((s->saving && (s->saving != h->key || (s->node.async && !again))) ||
        (!s->saving && others_write(s, h))) {
        tni_kv_node_answer(&s->node, h, TNI_KV_BUSY, s->save_asked.from, 1);
        return;
    }
    s->save_asked = *h;
    tni_str_init(&text, (size_t)1 << 40);
    st = s->saving ? TN_PENDING : tni_kv_snapshot_write(s, &text);
    if (!st) {
        TNI_KV_POINT(logged);
        s->saving = h->key;
        st = s->snapshots.write(s->snapshots.arg, h->key, &text);
    }
    tni_str_fini(&text);
    if (st == TN_PENDING)
        tni_kv_node_answer(&s->node, h, TNI_KV_HELD, 0, 0);
    else if (s->saving)
        tni_kv_server_saved(s, h->key, st, s->node.now);
    else
        tni_kv_node_answer_failed(&s->node, h, st);
}

/* Without rounds a server that came back may lack first values and commands, among them the optimizer: it
 * takes no gradients of others until worker 0 has given them again, and of that one nothing from before it
 * knew of this server. Its snapshot or gradient says that these were all (replay.c). */
static bool waits_for_first(tni_kv_server *s, const tni_kv_header *h)
{
    const bool gradient = h->type == TNI_KV_PUSH && tni_kv_is_gradient(h->what);

    if (!TNI_KV_RANK(h->from)) {
        s->waits = h->view < s->came || !(gradient || h->type == TNI_KV_SNAPSHOT);
        return h->view < s->came;
    }
    return gradient && !(h->flags & (TNI_KV_BROKEN | TNI_KV_LAST)) &&
           s->node.view.members[0].state <= TNI_KV_ENDED;
}

/* Of a part that is not here: it comes; or nobody has it any more. */
static void absent_answer(tni_kv_server *s, const tni_kv_header *h)
{
    char name[24];
    tn_status st;

    if (!s->back || (s->waits && s->node.view.members[0].state <= TNI_KV_ENDED)) {
        tni_kv_node_answer(&s->node, h, TNI_KV_ABSENT, 0, 0);
        return;
    }
    st = tni_error(TN_E_STATE,
                   "%s came back without key %llu: no snapshot had it, and worker 0 does not keep it "
                   "(kvstore.replay_bytes)",
                   tni_kv_node_name(s->node.id, name), (unsigned long long)(h->key >> 16));
    tni_kv_node_answer_failed(&s->node, h, st);
}

static tn_status data_handle(tni_kv_server *s, const tni_kv_header *h, const uint8_t *payload)
{
    tni_kv_store_part *p;
    tn_status st;

    if (TNI_KV_ROLE(h->from) != TNI_KV_WORKER || !h->sequence || s->loading ||
        s->node.view.flags & TNI_KV_RECOVERING)
        return tni_error(TN_E_STATE, "message of type %u at a bad time", h->type);
    if (s->node.view.flags & TNI_KV_CLOSED) {
        st = tni_error(TN_E_PEER, "a worker has left and a server was lost then: its values are gone");
        tni_kv_node_answer_failed(&s->node, h, st);
        return st;
    }
    if (s->waits && waits_for_first(s, h)) {
        tni_kv_node_answer(&s->node, h, TNI_KV_BUSY, TNI_KV_NODE(TNI_KV_WORKER, 0), 1);
        return TN_OK;
    }
    s->landing_bytes += TNI_KV_BUG(DEDUP_GROWS) ? 64 : 0;
    switch (h->type) {
    case TNI_KV_INIT:
        return init_handle(s, h, payload);
    case TNI_KV_COMMAND:
        command_handle(s, h, payload);
        return TN_OK;
    case TNI_KV_SNAPSHOT:
        snapshot_handle(s, h);
        return TN_OK;
    case TNI_KV_PUSH:
    case TNI_KV_PULL:
        break;
    default:
        return tni_error(TN_E_FORMAT, "a server takes no message of type %u", h->type);
    }
    TNI_KV_POINT_IF(h->type == TNI_KV_PUSH, push_header);
    p = tni_kv_part_find(s, h->key);
    if (!p) {
        absent_answer(s, h);
        return TN_OK;
    }
    return h->type == TNI_KV_PULL ? tni_kv_part_pull(s, p, h, payload) : tni_kv_part_push(s, p, h, payload);
}

static void report(tni_kv_server *s, const tni_kv_header *ask)
{
    tni_kv_report r;

    if (ask->from != TNI_KV_SCHEDULER_NODE)
        return;
    tni_kv_node_report(&s->node, &r);
    tni_kv_parts_report(s, &r);
    tni_kv_node_report_send(&s->node, ask, &r, NULL);
}

static tn_status server_handle(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload)
{
    tni_kv_server *s = (tni_kv_server *)n;

    if (s->status)
        return s->status; /* stopped by an entry before this one */
    switch (h->type) {
    case TNI_KV_WELCOME:
        return welcome(s, h, payload);
    case TNI_KV_VIEW:
        if (tni_kv_node_view(n, h, payload))
            view_changed(s);
        return TN_OK;
    case TNI_KV_BEAT:
        if (h->from == TNI_KV_SCHEDULER_NODE)
            common_heard(s, h);
        return TN_OK;
    case TNI_KV_ASK:
        report(s, h);
        return TN_OK;
    case TNI_KV_REFUSED:
        if (tni_kv_node_refusal(n, h, payload, s->start.birth))
            tni_kv_server_stop(s, TN_E_PEER);
        return TN_OK;
    case TNI_KV_ACK:
        s->finished = s->finished || h->from == TNI_KV_SCHEDULER_NODE;
        return TN_OK;
    default:
        return data_handle(s, h, payload);
    }
}

static uint64_t next_tick(const tni_kv_server *s)
{
    uint64_t next = s->beat_ns;

    if (s->status || s->finished)
        return TNI_KV_NEVER;
    if (!s->node.incarnation)
        return s->hello_ns;
    if (s->node.view.flags & TNI_KV_JOB_DONE && s->bye_ns < next)
        next = s->bye_ns;
    return s->node.late_ns < next ? s->node.late_ns : next;
}

uint64_t tni_kv_server_receive(tni_kv_server *s, const uint8_t *header, const void *payload, uint64_t bytes,
                               uint64_t now)
{
    if (!s->status) {
        tni_kv_node_receive(&s->node, header, payload, bytes, now);
        tni_kv_node_flush(&s->node);
    }
    return next_tick(s);
}

uint64_t tni_kv_server_tick(tni_kv_server *s, uint64_t now)
{
    tni_kv_header bye = {.type = TNI_KV_BYE, .sequence = 1};

    s->node.now = now;
    if (s->status || s->finished || deserted(s))
        return TNI_KV_NEVER;
    if (!s->node.incarnation && now >= s->hello_ns)
        hello_send(s);
    if (s->node.incarnation && now >= s->beat_ns)
        beat_send(s);
    if (s->node.view.flags & TNI_KV_JOB_DONE && now >= s->bye_ns) {
        tni_kv_node_send(&s->node, TNI_KV_SCHEDULER_NODE, &bye, NULL, 0);
        s->bye_ns = now + TNI_KV_HELLO_NS;
    }
    tni_kv_node_flush(&s->node);
    return next_tick(s);
}

tn_status tni_kv_server_create(const tni_kv_settings *settings, const tni_kv_host *host,
                               const tni_kv_start *start, const tni_kv_update *update,
                               const tni_kv_snapshots *snapshots, tni_kv_server **out)
{
    tni_kv_server *s = tni_zalloc(sizeof *s);
    tn_status st;

    if (!s)
        return TN_E_NOMEM;
    st = tni_kv_node_init(&s->node, settings, host, TNI_KV_UNKNOWN);
    if (!st) {
        s->node.handle = server_handle;
        s->start = *start;
        s->steps[0] = start->steps[0];
        s->steps[1] = start->steps[1];
        s->update = *update;
        if (snapshots)
            s->snapshots = *snapshots;
        s->commands = tni_calloc(settings->workers, sizeof *s->commands);
        s->command_errors = tni_calloc(settings->workers, sizeof(*s->command_errors));
        s->late = tni_calloc(settings->workers, sizeof *s->late);
        st = s->commands && s->command_errors && s->late ? TN_OK : TN_E_NOMEM;
    }
    if (st) {
        tni_kv_server_destroy(s);
        return st;
    }
    *out = s;
    return TN_OK;
}

void tni_kv_server_destroy(tni_kv_server *s)
{
    if (!s)
        return;
    tni_kv_parts_clear(s);
    command_errors_clear(s);
    tni_kv_node_fini(&s->node);
    tni_free((void *)s->command_errors);
    tni_free(s->commands);
    tni_free(s->late);
    tni_free(s);
}

tn_status tni_kv_server_status(const tni_kv_server *s)
{
    if (s->status)
        tni_error_set(&s->error);
    return s->status;
}

bool tni_kv_server_finished(const tni_kv_server *s)
{
    return s->finished;
}

uint64_t tni_kv_server_bytes(const tni_kv_server *s)
{
    return s->bytes + s->landing_bytes;
}

const void *tni_kv_server_value(const tni_kv_server *s, uint64_t key, uint32_t *version)
{
    const tni_kv_store_part *p = tni_kv_part_find(s, key);

    if (p)
        *version = p->version;
    return p ? p->value : NULL;
}

uint32_t tni_kv_server_applied(const tni_kv_server *s, uint64_t key, uint32_t rank)
{
    const tni_kv_store_part *p = tni_kv_part_find(s, key);

    return !p ? 0 : s->node.async ? p->slots[rank].applied : p->version;
}

uint16_t tni_kv_server_id(const tni_kv_server *s)
{
    return s->node.incarnation ? s->node.id : TNI_KV_UNKNOWN;
}

tni_kv_hold *tni_kv_server_sending(const tni_kv_server *s)
{
    return s->sending;
}

const tni_kv_view *tni_kv_server_view(const tni_kv_server *s)
{
    return &s->node.view;
}
