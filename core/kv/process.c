/*
 * A worker's process: calls of any thread go through a queue to the thread that owns machine and transport.
 *
 * A call is one block, made by its caller, so nothing is lost in the middle for want of memory. Its `called`
 * comes when the machine has ended it and the transport has given back each of its payloads; a link that
 * keeps one for longer than SENT_NS, or beyond the end of a call that failed, is closed.
 */
#include <string.h>
#include <unistd.h>

#include "kv/call.h"

#define SENT_NS 2000000000u
#define FLUSH_NS 1000000000u
#define GRACE_BEATS 5u           /* that the scheduler's word may come late */
#define JOIN_TELL_NS 5000000000u /* that a user is left without a word while others are waited for */

/* ---- calls ---- */

/* Of a scheduler that never answered, also what its link said. */
static void error_take(tni_kv_process *p, tn_status st)
{
    const char *why = tni_kv_post_why(p->post);
    tn_err error;

    tni_error_get(&error);
    if (!p->ready && st == TN_E_TIMEOUT)
        (void)tni_error(st, "scheduler %.100s: %.250s%s%.100s", p->setup.scheduler, error.message,
                        *why ? "; " : "", why);
    tni_error_get(&p->error);
}

/* What other threads read. */
static void news_publish(tni_kv_process *p)
{
    const tni_kv_view *v = tni_kv_worker_view(p->worker);
    const tn_status st = tni_kv_worker_status(p->worker);
    const bool ready = tni_kv_worker_ready(p->worker);
    uint32_t epochs;
    const uint64_t cut = tni_kv_worker_cut(p->worker, &epochs);

    tni_mutex_lock(&p->lock);
    p->heard_ns = tni_kv_worker_heard(p->worker, TNI_KV_SCHEDULER_NODE);
    if (st != p->status || ready != p->ready || v->number != p->view || epochs != p->epochs) {
        if (st && !p->status)
            error_take(p, st);
        p->status = st;
        p->view = v->number;
        p->rank = tni_kv_worker_rank(p->worker);
        if (ready && !p->ready && tni_kv_late_comer(v, v->members[p->rank].incarnation))
            p->behind = v->released;
        p->ready = ready;
        p->cut = cut;
        p->epochs = epochs;
        memset(p->gone, 0, sizeof p->gone);
        for (uint32_t i = 0; i < v->workers + v->servers; i++)
            p->gone[TNI_KV_ROLE(tni_kv_view_node(v, i))] +=
                v->members[i].state == TNI_KV_DEAD || v->members[i].state == TNI_KV_GONE;
        tni_cond_broadcast(&p->changed);
    }
    tni_mutex_unlock(&p->lock);
}

/* The machine has ended it, with the thread's error. Whoever hears of a failure finds what it came from. */
static void call_end(tni_kv_process *p, tni_kv_call *c, tn_status st)
{
    c->ended_ns = p->setup.clock();
    c->status = st;
    if (st && (c->error = tni_alloc(sizeof *c->error)))
        tni_error_get(c->error);
    if (st)
        news_publish(p);
    c->hold.ended = true;
    if (!c->hold.count)
        tni_kv_call_finish(&c->hold);
    else if (st)
        tni_kv_post_drop(p->post, &c->hold);
}

static void request_done(void *arg, uint64_t cookie, tn_status st)
{
    tni_kv_call *c = (tni_kv_call *)(uintptr_t)cookie;

    (void)arg;
    call_end(c->process, c, st);
}

static void request_run(tni_kv_process *p, tni_kv_call *c, uint64_t now)
{
    tn_status st;

    c->r.cookie = (uint64_t)(uintptr_t)c;
    if (!p->setup.priority)
        c->r.priority = 0;
    c->next = p->running;
    if (c->next)
        c->next->link = &c->next;
    c->link = &p->running;
    p->running = c;
    st = tni_kv_worker_request(p->worker, &c->r, now);
    if (st)
        call_end(p, c, st);
}

static void call_run(tni_kv_process *p, tni_kv_call *c, uint64_t now)
{
    tn_status st = TN_OK;

    switch (c->kind) {
    case CALL_REQUEST:
        request_run(p, c, now);
        return;
    case CALL_KEY:
        st = tni_kv_worker_key(p->worker, c->r.key, c->dtype, c->elements, c->element_bytes);
        break;
    case CALL_BREAK:
        st = tni_kv_worker_break(p->worker, (uint32_t)c->r.step, now);
        break;
    case CALL_RESUME:
        tni_kv_worker_resume(p->worker);
        break;
    }
    call_end(p, c, st);
}

/* ---- the thread ---- */

/* Nodes that have not come, and the first of them. */
static uint32_t missing_count(const tni_kv_view *v, char first[24])
{
    uint32_t count = 0;

    for (uint32_t i = v->workers + v->servers; i-- > 0;)
        if (v->members[i].state == TNI_KV_MISSING) {
            (void)tni_kv_node_name(tni_kv_view_node(v, i), first);
            count++;
        }
    return count;
}

static void join_tell(tni_kv_process *p)
{
    const tni_kv_view *v = tni_kv_worker_view(p->worker);
    const char *why = tni_kv_post_why(p->post);
    char first[24] = "nobody";
    const uint32_t missing = missing_count(v, first);

    p->told = true;
    if (v->number)
        tni_logf(p->setup.log, TN_LOG_WARNING, "kvstore: waits for %s and %u more to join", first,
                 missing ? missing - 1 : 0);
    else
        tni_logf(p->setup.log, TN_LOG_WARNING,
                 "kvstore: waits for the scheduler at %.100s, at most %.0f s%s%.100s", p->setup.scheduler,
                 (double)p->setup.settings.control_timeout_ns / 1e9, *why ? ": " : "", why);
}

/* The scheduler fails a job whose nodes do not come; this is for one that is gone itself. */
static void join_check(tni_kv_process *p, uint64_t now)
{
    const tni_kv_settings *s = &p->setup.settings;
    const uint64_t most = s->control_timeout_ns + GRACE_BEATS * tni_kv_beat_ns(s);
    char first[24] = "nobody";
    uint32_t missing;

    if (p->ready || tni_kv_worker_status(p->worker))
        return;
    if (!p->told && now >= p->begun_ns + JOIN_TELL_NS)
        join_tell(p);
    if (now < p->begun_ns + most)
        return;
    missing = missing_count(tni_kv_worker_view(p->worker), first);
    tni_kv_worker_stop(p->worker, tni_error(TN_E_TIMEOUT,
                                            "the job has not begun after %.1f s: %s is missing, and %u more",
                                            (double)most / 1e9, first, missing ? missing - 1 : 0));
}

/* When to look again at calls whose payloads the transport keeps. */
static uint64_t sent_check(tni_kv_process *p, uint64_t now)
{
    uint64_t next = TNI_KV_NEVER;

    for (tni_kv_call *c = p->running, *after; c; c = after) {
        const uint64_t due = c->ended_ns + SENT_NS;

        after = c->next;
        if (!c->ended_ns)
            continue;
        if (now >= due) {
            c->ended_ns = now;
            tni_kv_post_drop(p->post, &c->hold);
            return now; /* the list may have changed */
        }
        next = due < next ? due : next;
    }
    return next;
}

/* Of a guest: unless the own thread is called. That one leaves the loop when nothing is under way. */
static tni_kv_call *queue_take(tni_kv_process *p)
{
    tni_kv_call *first = NULL;

    tni_mutex_lock(&p->lock);
    p->over = p->stop || (p->guest ? !p->away : p->brisk && !p->calls);
    if (!p->guest || !p->over) {
        first = p->first;
        p->first = NULL;
        p->last = &p->first;
    }
    tni_mutex_unlock(&p->lock);
    return first;
}

static void failed_take(tni_kv_process *p, uint64_t now)
{
    uint32_t key;
    bool failing;

    tni_mutex_lock(&p->lock);
    key = p->failed;
    failing = p->failing;
    p->failing = false;
    tni_mutex_unlock(&p->lock);
    if (failing)
        (void)tni_kv_worker_break(p->worker, tni_kv_worker_round(p->worker, key) + 1, now);
}

static uint64_t worker_step(void *arg, uint64_t now)
{
    tni_kv_process *p = arg;
    uint64_t next, sent;

    failed_take(p, now);
    for (tni_kv_call *c = queue_take(p), *after; c; c = after) {
        after = c->next;
        call_run(p, c, now);
    }
    next = tni_kv_worker_tick(p->worker, now);
    join_check(p, now);
    news_publish(p);
    sent = sent_check(p, now);
    next = sent < next ? sent : next;
    return p->guest && p->until_ns < next ? p->until_ns : next;
}

static uint64_t worker_receive(void *arg, const uint8_t *header, const void *payload, uint64_t bytes,
                               uint64_t now)
{
    return tni_kv_worker_receive(((tni_kv_process *)arg)->worker, header, payload, bytes, now);
}

static const tni_kv_view *worker_view(void *arg)
{
    return tni_kv_worker_view(((tni_kv_process *)arg)->worker);
}

static bool worker_over(void *arg)
{
    tni_kv_process *p = arg;

    return p->over || (p->guest && (p->enough(p->of) || p->setup.clock() >= p->until_ns));
}

static tni_kv_hold *worker_hold(void *arg)
{
    return (tni_kv_hold *)(uintptr_t)tni_kv_worker_sending(((tni_kv_process *)arg)->worker);
}

/* Without a transport calls are still answered, with its error. */
static void serve_dead(tni_kv_process *p)
{
    while (!p->over) {
        (void)worker_step(p, p->setup.clock());
        tni_mutex_lock(&p->lock);
        while (!p->first && !p->stop)
            tni_cond_wait(&p->changed, &p->lock);
        tni_mutex_unlock(&p->lock);
    }
}

static void calls_cancel(tni_kv_call *list)
{
    while (list) {
        tni_kv_call *c = list;

        list = c->next;
        c->link = NULL;
        if (!c->hold.ended) {
            c->status = tni_error(TN_E_CANCELLED, "the process has left the job");
            if ((c->error = tni_alloc(sizeof *c->error)))
                tni_error_get(c->error);
        }
        tni_kv_call_finish(&c->hold);
    }
}

static void worker_thread(void *arg)
{
    tni_kv_process *p = arg;
    tni_kv_call *left;
    tn_status st;

    tni_hold_pass(true); /* a fork waits for what comes here */
    tni_mutex_lock(&p->lock);
    p->owner = tni_thread_id();
    tni_mutex_unlock(&p->lock);
    do
        st = tni_kv_post_run(p->post, &p->role);
    while (!st && tni_kv_guests_let(p));
    tni_mutex_lock(&p->lock);
    p->dead = true;
    p->brisk = false;
    tni_mutex_unlock(&p->lock);
    if (st) {
        tni_kv_worker_stop(p->worker, st);
        serve_dead(p);
    }
    tni_kv_worker_destroy(p->worker);
    p->worker = NULL;
    for (tni_kv_call *c = p->running; c; c = c->next)
        c->hold.count++; /* closing frees none of them */
    tni_kv_post_close(p->post, FLUSH_NS);
    p->post = NULL;
    left = p->running;
    p->running = NULL;
    calls_cancel(left);
    calls_cancel(queue_take(p));
}

/* ---- joining ---- */

static void process_free(tni_kv_process *p)
{
    if (p->thread) {
        tni_thread_join(p->thread);
    } else {
        tni_kv_worker_destroy(p->worker);
        tni_kv_post_close(p->post, 0);
    }
    tni_cond_fini(&p->changed);
    tni_cond_fini(&p->back);
    tni_mutex_fini(&p->lock);
    memset(p->setup.secret, 0, sizeof p->setup.secret);
    tni_free(p);
}

void tni_kv_process_end(tni_kv_process *p)
{
    struct tni_kv_beside *beside;

    if (!p)
        return;
    beside = p->beside;
    tni_mutex_lock(&p->lock);
    p->stop = true;
    tni_mutex_unlock(&p->lock);
    tni_kv_guests_end(p);
    process_free(p);
    tni_kv_beside_end(beside);
}

bool tni_kv_process_ready(tni_kv_process *p)
{
    bool ready;

    tni_mutex_lock(&p->lock);
    ready = p->ready || p->status;
    tni_mutex_unlock(&p->lock);
    return ready;
}

tn_status tni_kv_process_joined(tni_kv_process *p)
{
    tn_status st;

    tni_mutex_lock(&p->lock);
    while (!p->ready && !p->status)
        tni_cond_wait(&p->changed, &p->lock);
    st = p->status;
    if (st)
        tni_error_set(&p->error);
    tni_mutex_unlock(&p->lock);
    return st;
}

tn_status tni_kv_process_start(const tni_kv_setup *setup, tni_kv_process **out)
{
    tni_kv_process *p = tni_zalloc(sizeof *p);
    tni_kv_start start = {.rank = setup->rank};
    tni_kv_host host;
    tn_status st;

    if (!p)
        return TN_E_NOMEM;
    p->setup = *setup;
    p->last = &p->first;
    p->begun_ns = setup->clock();
    if ((st = tni_mutex_init(&p->lock))) {
        tni_free(p);
        return st;
    }
    (void)tni_cond_init(&p->changed);
    (void)tni_cond_init(&p->back);
    p->pid = getpid();
    p->role = (tni_kv_role){.arg = p,
                            .receive = worker_receive,
                            .step = worker_step,
                            .view = worker_view,
                            .over = worker_over,
                            .hold = worker_hold};
    start.birth = tni_kv_birth();
    if (!(st = tni_kv_post_open(&p->setup, TNI_KV_WORKER, &p->post))) {
        tni_kv_post_host(p->post, &host);
        st = tni_kv_worker_create(&p->setup.settings, &host, &start, request_done, &p->worker);
    }
    if (!st)
        st = tni_thread_create("tenon-kv", worker_thread, p, &p->thread);
    if (st)
        process_free(p);
    else
        *out = p;
    return st;
}

tn_status tni_kv_process_join(tni_context *c, bool async, tni_kv_process **out)
{
    struct tni_kv_beside *beside = NULL;
    tni_kv_process *p = NULL;
    tni_kv_setup setup;
    tn_status st;

    if ((st = tni_kv_setup_read(c, TNI_KV_WORKER, async, &setup)) ||
        (setup.launched && (st = tni_kv_beside_start(c, &setup, &beside))))
        return st;
    if (!(st = tni_kv_process_start(&setup, &p)) && (st = tni_kv_process_joined(p)))
        tni_kv_process_end(p);
    if (st) {
        tni_kv_beside_end(beside);
        return st;
    }
    p->beside = beside;
    tni_kv_guests_begin(p, c->engine);
    *out = p;
    return TN_OK;
}

tn_status tni_kv_process_leave(tni_kv_process *p)
{
    const tni_kv_request bye = {.kind = TNI_KV_DO_BYE};
    tn_status st;

    if (!p)
        return TN_OK;
    st = tni_kv_process_status(p);
    if (!st)
        st = tni_kv_process_call(p, &bye);
    tni_kv_process_end(p);
    return st;
}

/* ---- what it knows ---- */

uint32_t tni_kv_process_rank(const tni_kv_process *process)
{
    tni_kv_process *p = (tni_kv_process *)(uintptr_t)process; /* the lock is no part of what it says */
    uint32_t rank;

    tni_mutex_lock(&p->lock);
    rank = p->rank;
    tni_mutex_unlock(&p->lock);
    return rank;
}

const tni_kv_settings *tni_kv_process_settings(const tni_kv_process *p)
{
    return &p->setup.settings;
}

uint32_t tni_kv_process_workers(const tni_kv_process *p)
{
    return p->setup.settings.workers;
}

uint32_t tni_kv_process_servers(const tni_kv_process *p)
{
    return p->setup.settings.servers;
}

uint32_t tni_kv_process_dead(const tni_kv_process *process, uint32_t role)
{
    tni_kv_process *p = (tni_kv_process *)(uintptr_t)process;
    const uint64_t dead_ns = p->setup.settings.dead_ns, now = p->setup.clock();
    uint32_t count;

    tni_mutex_lock(&p->lock);
    if (role == TNI_KV_SCHEDULER)
        count = dead_ns && p->heard_ns && now > p->heard_ns && now - p->heard_ns > dead_ns;
    else
        count = role <= TNI_KV_WORKER ? p->gone[role] : 0;
    tni_mutex_unlock(&p->lock);
    return count;
}

uint32_t tni_kv_process_behind(const tni_kv_process *process)
{
    tni_kv_process *p = (tni_kv_process *)(uintptr_t)process;
    uint32_t behind;

    tni_mutex_lock(&p->lock);
    behind = p->behind;
    tni_mutex_unlock(&p->lock);
    return behind;
}

uint64_t tni_kv_process_cut(const tni_kv_process *process, uint32_t *epochs)
{
    tni_kv_process *p = (tni_kv_process *)(uintptr_t)process;
    uint64_t cut;

    tni_mutex_lock(&p->lock);
    cut = p->cut;
    if (epochs)
        *epochs = p->epochs;
    tni_mutex_unlock(&p->lock);
    return cut;
}

tn_status tni_kv_process_status(const tni_kv_process *process)
{
    tni_kv_process *p = (tni_kv_process *)(uintptr_t)process;
    tn_status st;

    tni_mutex_lock(&p->lock);
    st = p->status;
    if (st)
        tni_error_set(&p->error);
    tni_mutex_unlock(&p->lock);
    return st;
}
