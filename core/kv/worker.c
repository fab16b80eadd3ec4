/* A worker: registers, knows its keys, hears the scheduler. Its requests are in request.c. */
#include <string.h>

#include "kv/update.h"
#include "kv/worker.h"

bool tni_kv_ready(const tni_kv_worker *w)
{
    return w->node.incarnation && w->node.view.flags & TNI_KV_STARTED && !w->over;
}

bool tni_kv_worker_ready(const tni_kv_worker *w)
{
    return tni_kv_ready(w);
}

void tni_kv_worker_stop(tni_kv_worker *w, tn_status st)
{
    if (w->over)
        return;
    w->over = true;
    w->status = st;
    tni_error_get(&w->error);
    tni_kv_ops_fail(w, st);
}

static void hello_send(tni_kv_worker *w)
{
    tni_kv_node_hello(&w->node, TNI_KV_WORKER, &w->start, w->token);
    w->hello_ns = w->node.now + TNI_KV_HELLO_NS;
}

/* Nobody waits for ever for a scheduler that is not there. */
static void hello_tick(tni_kv_worker *w)
{
    if (!w->begun_ns)
        w->begun_ns = w->node.now + 1;
    if (w->node.now >= w->begun_ns + w->node.settings->control_timeout_ns && !TNI_KV_BUG(NO_DEADLINE))
        tni_kv_worker_stop(w, tni_error(TN_E_TIMEOUT, "no answer from the scheduler for %.1f s",
                                        (double)(w->node.now - w->begun_ns) / 1e9));
    else if (w->node.now >= w->hello_ns)
        hello_send(w);
}

static void beat_send(tni_kv_worker *w)
{
    tni_kv_header h = {.type = TNI_KV_BEAT, .what = tni_kv_log_whole(w), .sequence = ++w->beats};

    tni_kv_node_send(&w->node, TNI_KV_SCHEDULER_NODE, &h, NULL, 0);
    w->beat_ns = w->node.now + tni_kv_beat_ns(w->node.settings);
}

static void roll_back(tni_kv_worker *w)
{
    w->epoch = w->node.view.epoch_view;
    if (tni_kv_log_back(w, w->node.view.cut)) {
        tni_logf(w->node.host.log, TN_LOG_WARNING,
                 "kvstore: a server came back with step %llu: what was pushed since then is sent again",
                 (unsigned long long)w->node.view.cut);
        return;
    }
    w->epochs++;
    w->broken = w->pushed = false;
    w->break_round = 0;
    for (uint32_t i = 0; i < w->key_count; i++)
        if (w->keys[i])
            w->keys[i]->known = w->keys[i]->assigned = false;
    (void)tni_error(TN_E_STATE,
                    "a server came back: the store is rolled back to step %llu, and what was pushed since "
                    "then is not kept (kvstore.durability, kvstore.replay_bytes)",
                    (unsigned long long)w->node.view.cut);
    tni_kv_ops_fail(w, TN_E_STATE);
}

/* True: a server of a job that has begun is another process than in the last view. */
static bool server_came(tni_kv_worker *w)
{
    const tni_kv_view *v = &w->node.view;
    bool came = false;

    for (uint32_t i = 0; i < v->servers; i++) {
        const uint32_t now = v->members[v->workers + i].incarnation;

        came = came || (w->lanes[i].incarnation && w->lanes[i].incarnation != now);
        w->lanes[i].incarnation = v->flags & TNI_KV_STARTED ? now : 0;
    }
    return came;
}

static void view_changed(tni_kv_worker *w)
{
    const tni_kv_view *v = &w->node.view;
    const bool came = server_came(w);

    if (w->node.fenced) {
        tni_kv_worker_stop(w, tni_error(TN_E_PEER, "another process has taken the place of this worker"));
    } else if (v->flags & TNI_KV_JOB_FAILED) {
        tni_kv_worker_stop(w, tni_kv_view_failure(&w->node.view));
    } else {
        if (v->epoch_view > w->epoch)
            roll_back(w);
        else if (came && w->node.async && !tni_kv_worker_rank(w))
            tni_kv_log_again(w);
        if (w->node.async && v->flags & TNI_KV_RECOVERING)
            beat_send(w); /* the scheduler wants to know whether we can do without an epoch */
        if (v->end_round < w->end_round)
            tni_kv_ops_end(w);
        w->end_round = v->end_round;
        tni_kv_ops_start(w);
    }
}

static tn_status worker_handle(tni_kv_node *n, const tni_kv_header *h, const uint8_t *payload)
{
    tni_kv_worker *w = (tni_kv_worker *)n;

    switch (h->type) {
    case TNI_KV_WELCOME:
        if (tni_kv_node_welcome(n, h, payload, &w->start, &w->token)) {
            w->epoch = n->view.epoch_view;
            tni_kv_log_begin(w);
            view_changed(w);
            beat_send(w);
            TNI_KV_POINT(joined);
        } else if (w->token && !n->incarnation) {
            hello_send(w);
        }
        return TN_OK;
    case TNI_KV_VIEW:
        if (tni_kv_node_view(n, h, payload))
            view_changed(w);
        return TN_OK;
    case TNI_KV_BEAT:
        if (h->from == TNI_KV_SCHEDULER_NODE && !n->async && h->view >= n->view.epoch_view)
            tni_kv_log_trim(w, h->key);
        return TN_OK;
    case TNI_KV_ASK:
        tni_kv_ops_report(w, h);
        return TN_OK;
    case TNI_KV_REFUSED:
        if (tni_kv_node_refusal(n, h, payload, w->start.birth))
            tni_kv_worker_stop(w, TN_E_PEER);
        return TN_OK;
    case TNI_KV_ACK:
    case TNI_KV_VALUE:
        if (TNI_KV_ROLE(h->from) == TNI_KV_WORKER)
            break;
        tni_kv_ops_answer(w, h, payload);
        return TN_OK;
    default:
        break;
    }
    return tni_error(TN_E_FORMAT, "a worker takes no message of type %u from there", h->type);
}

static uint64_t next_tick(const tni_kv_worker *w)
{
    uint64_t next = w->node.incarnation ? w->beat_ns : w->hello_ns;

    if (w->over)
        return TNI_KV_NEVER;
    next = w->retry_ns < next ? w->retry_ns : next;
    return w->deadline_ns < next ? w->deadline_ns : next;
}

uint64_t tni_kv_worker_receive(tni_kv_worker *w, const uint8_t *header, const void *payload, uint64_t bytes,
                               uint64_t now)
{
    if (!w->over) {
        tni_kv_node_receive(&w->node, header, payload, bytes, now);
        tni_kv_node_flush(&w->node);
    }
    return next_tick(w);
}

uint64_t tni_kv_worker_tick(tni_kv_worker *w, uint64_t now)
{
    w->node.now = now;
    if (w->over)
        return TNI_KV_NEVER;
    if (!w->node.incarnation)
        hello_tick(w);
    if (w->node.incarnation && now >= w->beat_ns)
        beat_send(w);
    tni_kv_ops_tick(w);
    tni_kv_node_flush(&w->node);
    return next_tick(w);
}

static tn_status lot_init(tni_kv_lot *l, uint32_t parts)
{
    l->control = true;
    l->known = true;
    l->plan = (tni_kv_plan){.parts = parts, .servers = parts};
    l->pieces = tni_calloc(parts, sizeof *l->pieces);
    return l->pieces ? TN_OK : TN_E_NOMEM;
}

tn_status tni_kv_worker_create(const tni_kv_settings *s, const tni_kv_host *host, const tni_kv_start *start,
                               tni_kv_done done, tni_kv_worker **out)
{
    tni_kv_worker *w = tni_zalloc(sizeof *w);
    tn_status st;

    if (!w)
        return TN_E_NOMEM;
    st = tni_kv_node_init(&w->node, s, host, TNI_KV_UNKNOWN);
    if (!st) {
        w->node.handle = worker_handle;
        w->start = *start;
        w->done = done;
        w->retry_ns = w->deadline_ns = TNI_KV_NEVER;
        w->end_round = UINT32_MAX;
        tni_vec_init(&w->flights, sizeof(tni_kv_queued), SIZE_MAX / sizeof(tni_kv_queued));
        w->lanes = tni_calloc(s->servers, sizeof *w->lanes);
        st = w->lanes ? lot_init(&w->servers, s->servers) : TN_E_NOMEM;
        if (!st)
            st = lot_init(&w->scheduler, 1);
        if (!st)
            st = lot_init(&w->saves, s->servers);
    }
    if (st) {
        tni_kv_worker_destroy(w);
        return st;
    }
    for (uint32_t i = 0; i < s->servers; i++)
        tni_vec_init(&w->lanes[i].heap, sizeof(tni_kv_queued), SIZE_MAX / sizeof(tni_kv_queued));
    *out = w;
    return TN_OK;
}

void tni_kv_worker_destroy(tni_kv_worker *w)
{
    if (!w)
        return;
    tni_kv_ops_free(w);
    for (uint32_t i = 0; i < w->key_count; i++)
        if (w->keys[i]) {
            tni_free(w->keys[i]->pieces);
            tni_free(w->keys[i]);
        }
    tni_free(w->keys);
    for (uint32_t i = 0; w->lanes && i < w->node.settings->servers; i++)
        tni_vec_fini(&w->lanes[i].heap);
    tni_free(w->lanes);
    tni_free(w->servers.pieces);
    tni_free(w->scheduler.pieces);
    tni_free(w->saves.pieces);
    tni_vec_fini(&w->flights);
    tni_kv_node_fini(&w->node);
    tni_free(w);
}

/* A process that ended within a round has pushed it to some parts: the one in its place pushes that round to
 * all of them, so it goes on from the least. Without rounds, parts on a server that came back may lack more
 * (LOST), or as little: they do not say how far that process was, if others do. To push lost rounds again
 * would make the other workers wait meanwhile, on all parts, or for ever, if this one waits for them: so it
 * goes on from the rounds that were not lost, and the server credits it with the others (late.c). */
void tni_kv_lot_got(tni_kv_lot *l, uint32_t round, bool lost, bool async)
{
    const bool first = l->left == l->plan.parts, sure = !async || !lost;

    if (first || (sure && !l->sure) || (sure == l->sure && round < l->least)) {
        l->least = round;
        l->sure = sure;
    }
    l->most = first || round > l->most ? round : l->most;
    l->got = async && l->most > l->least + 1 ? l->most : l->least;
}

static bool tells_step(const tni_kv_lot *l)
{
    return l && l->known && l->sure && !l->assigned;
}

/* Without rounds. A process that ended within a step had pushed some keys of it: those are one round ahead of
 * the others. The process in its place sets them back: it pushes the whole step again, and servers drop what
 * they have. If it did not, keys would drift apart: after two such ends some would be two rounds ahead and
 * wait for other workers, which wait for the keys behind.
 * - Why a key is behind cannot be seen. If its layer was frozen for one step, nothing was torn, and the first
 *   gradient of each key that is set back is lost: the log says how many keys that may be.
 * - Servers would drop a value that is assigned, too: a key that had one first stays where it is.
 * - A key whose parts may all lack rounds (not `sure`) goes on from where the others are, if those are all in
 *   one step, and otherwise from where it is. */
void tni_kv_step_again(tni_kv_worker *w, tni_kv_lot *pushes, uint8_t what)
{
    uint32_t most = 0, least = UINT32_MAX, back = 0;
    bool torn = false;

    if (!w->node.async || w->pushed)
        return;
    w->pushed = tni_kv_is_gradient(what);
    if (!w->pushed) {
        pushes->assigned = true;
        return;
    }
    for (uint32_t i = 0; i < w->key_count; i++) {
        const tni_kv_lot *l = w->keys[i];

        if (!tells_step(l))
            continue;
        most = l->round > most ? l->round : most;
        least = l->round < least ? l->round : least;
    }
    for (uint32_t i = 0; i < w->key_count; i++)
        torn = torn || (tells_step(w->keys[i]) && w->keys[i]->round + 1 == most);
    most -= torn;
    for (uint32_t i = 0; i < w->key_count; i++) {
        tni_kv_lot *l = w->keys[i];

        if (!l || !l->known || l->assigned || !(l->sure ? l->round > most : l->round < most && least >= most))
            continue;
        back += l->sure;
        l->round = most;
    }
    if (back)
        tni_logf(w->node.host.log, TN_LOG_INFO,
                 "kvstore: servers have %u keys of the first step, and drop its gradients", back);
}

tn_status tni_kv_worker_key(tni_kv_worker *w, uint32_t key, uint8_t dtype, uint64_t elements,
                            uint64_t element_bytes)
{
    const tni_kv_settings *s = w->node.settings;
    const tni_kv_plan_options o = {s->servers, s->bound, s->part_bytes};
    tni_kv_plan plan;
    tni_kv_lot *l, **keys;
    tn_status st = tni_kv_plan_make(&o, key, elements, element_bytes, &plan);

    if (st)
        return st;
    if (key < w->key_count && w->keys[key])
        return tni_error(TN_E_KEY, "key %u is there already", key);
    if (key >= w->key_count) {
        keys = tni_realloc(w->keys, ((uint64_t)key + 1) * sizeof *keys);
        if (!keys)
            return TN_E_NOMEM;
        memset(keys + w->key_count, 0, (key + 1 - w->key_count) * sizeof *keys);
        w->keys = keys;
        w->key_count = key + 1;
    }
    l = tni_zalloc(sizeof *l);
    if (!l || lot_init(l, plan.parts)) {
        tni_free(l);
        return TN_E_NOMEM;
    }
    l->plan = plan;
    l->dtype = dtype;
    l->control = l->known = false;
    w->value_bytes += plan.bytes;
    w->keys[key] = l;
    return TN_OK;
}

void tni_kv_worker_resume(tni_kv_worker *w)
{
    w->broken = false;
}

uint32_t tni_kv_worker_rank(const tni_kv_worker *w)
{
    return TNI_KV_RANK(w->node.id);
}

const tni_kv_view *tni_kv_worker_view(const tni_kv_worker *w)
{
    return &w->node.view;
}

uint64_t tni_kv_worker_heard(tni_kv_worker *w, uint16_t node)
{
    const tni_kv_peer *p = tni_kv_node_peer(&w->node, node);

    return p ? p->heard_ns : 0;
}

uint64_t tni_kv_worker_sending(const tni_kv_worker *w)
{
    return w->sending;
}

uint32_t tni_kv_worker_round(const tni_kv_worker *w, uint32_t key)
{
    return key < w->key_count && w->keys[key] ? w->keys[key]->round : 0;
}

uint64_t tni_kv_worker_cut(const tni_kv_worker *w, uint32_t *epochs)
{
    if (epochs)
        *epochs = w->epochs;
    return w->node.view.cut;
}

tn_status tni_kv_worker_status(const tni_kv_worker *w)
{
    if (w->over)
        tni_error_set(&w->error);
    return w->over ? w->status : TN_OK;
}
