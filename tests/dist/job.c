#include "dist/job.h"

#include <stdio.h>

#include "kv/process.h"
#include "kv/update.h"

#define CALLS_MAX 4096u

typedef enum call_kind {
    CALL_REQUEST,
    CALL_KEY,
    CALL_BREAK,
    CALL_FAIL,
    CALL_RESUME,
    CALL_AGAIN,
    CALL_END
} call_kind;

typedef struct call { /* that a thread asks of the carrier */
    struct call *next;
    struct tni_kv_process *p;
    call_kind kind;
    tni_kv_request r;
    tni_kv_called called;
    void *arg;
    uint32_t key;
    uint8_t dtype;
    uint64_t elements, element_bytes;
    bool *done; /* NULL: nobody waits; else it and what follows are set, and the call is the waiter's */
    tn_status st;
    tn_err err;
} call;

typedef struct asked { /* a request under way, by cookie */
    tni_kv_called called;
    void *arg;
} asked;

typedef struct message {
    struct message *next;
    uint32_t to; /* node */
    uint8_t header[TNI_KV_HEADER_BYTES];
    uint64_t bytes;
    uint8_t payload[];
} message;

struct tni_kv_process { /* a node */
    struct job *job;
    uint32_t role, rank;
    uint64_t birth, next_ns;
    tni_kv_scheduler *scheduler;
    tni_kv_server *server;
    tni_kv_worker *worker;
    tni_kv_updates *updates;
    tn_ctx *ctx; /* a server's */
    asked asked[CALLS_MAX];
    uint32_t cookie;
    bool ready, left, lost; /* lost: it says nothing when it leaves, and nobody hears of it */
    bool gone;              /* without a word, and its links are lost */
    uint32_t behind;        /* barriers of others when it came again */
};

typedef struct job {
    job_options o;
    tni_kv_settings settings;
    tni_kv_process *nodes; /* scheduler, servers, workers */
    uint32_t count;
    tni_mutex lock;
    tni_cond wake, changed;
    call *first, **last;
    message *head, **tail;
    bool stop;
    atomic_uint_fast64_t bytes, snapshots, snapshot_step;
    atomic_uint failures;
    char failure[1024];
    pthread_barrier_t meeting;
    void (*fn)(worker *w);
} job;

static job *running;
static _Thread_local uint32_t my_rank;

uint64_t job_payload_bytes(void)
{
    return atomic_load(&running->bytes);
}

uint64_t job_snapshots(uint64_t *last)
{
    *last = atomic_load(&running->snapshot_step);
    return atomic_load(&running->snapshots);
}

static tn_status snapshot_write(void *arg, uint64_t step, tni_str *text)
{
    job *j = arg;

    if (!text->text || !text->length)
        return tni_error(TN_E_INTERNAL, "an empty snapshot");
    atomic_store(&j->snapshot_step, step);
    atomic_fetch_add(&j->snapshots, 1);
    return TN_OK;
}

/* ---- messages: on the carrier's thread ---- */

static void send_to(job *j, uint32_t to, const uint8_t *header, const void *payload, uint64_t bytes)
{
    message *m = malloc(sizeof *m + bytes);

    assert_non_null(m);
    m->next = NULL;
    m->to = to;
    memcpy(m->header, header, sizeof m->header);
    m->bytes = bytes;
    if (bytes)
        memcpy(m->payload, payload, bytes);
    *j->tail = m;
    j->tail = &m->next;
}

static uint32_t index_of(const job *j, uint16_t node)
{
    const uint32_t role = TNI_KV_ROLE(node), rank = TNI_KV_RANK(node);

    return role == TNI_KV_SCHEDULER ? 0 : 1 + rank + (role == TNI_KV_WORKER ? j->settings.servers : 0);
}

static void node_send(void *arg, uint16_t to, const uint8_t header[TNI_KV_HEADER_BYTES], const void *payload,
                      uint64_t bytes, uint32_t priority)
{
    const tni_kv_process *from = arg;
    job *j = from->job;
    const uint64_t birth = tni_kv_get(header + 32, 8);

    (void)priority;
    if (from->role == TNI_KV_WORKER && TNI_KV_ROLE(to) == TNI_KV_SERVER)
        atomic_fetch_add(&j->bytes, bytes);
    for (uint32_t i = 0; i < j->count; i++)
        if (to == TNI_KV_UNKNOWN ? j->nodes[i].birth == birth : i == index_of(j, to))
            send_to(j, i, header, payload, bytes);
}

static void request_done(void *arg, uint64_t cookie, tn_status st)
{
    tni_kv_process *p = arg;
    const asked a = p->asked[cookie];

    p->asked[cookie] = (asked){0};
    a.called(a.arg, st);
}

static void node_start(tni_kv_process *p)
{
    const tni_kv_host host = {.arg = p, .send = node_send};
    const tni_kv_start start = {.rank = (int32_t)p->rank, .birth = p->birth};
    const uint64_t now = tni_clock_ns();
    job *j = p->job;
    tni_kv_update table;

    p->next_ns = 0;
    if (p->role == TNI_KV_SCHEDULER) {
        const tni_kv_journal none = {0};

        assert_int_equal(tni_kv_scheduler_create(&j->settings, &host, &none, NULL, 0, now, &p->scheduler),
                         TN_OK);
    } else if (p->role == TNI_KV_SERVER) {
        const tni_kv_snapshots counted = {.arg = j, .write = snapshot_write};

        assert_int_equal(
            tni_kv_updates_create(p->ctx, j->settings.async, j->o.command, j->o.arg, &p->updates), TN_OK);
        table = tni_kv_updates_table(p->updates);
        assert_int_equal(tni_kv_server_create(&j->settings, &host, &start, &table, &counted, &p->server),
                         TN_OK);
    } else {
        assert_int_equal(tni_kv_worker_create(&j->settings, &host, &start, request_done, &p->worker), TN_OK);
    }
}

static void node_tick(tni_kv_process *p, uint64_t now)
{
    if (p->scheduler)
        p->next_ns = tni_kv_scheduler_tick(p->scheduler, now);
    else if (p->server)
        p->next_ns = tni_kv_server_tick(p->server, now);
    else if (p->worker)
        p->next_ns = tni_kv_worker_tick(p->worker, now);
    else /* it has ended */
        p->next_ns = UINT64_MAX;
}

static void deliver(job *j, const message *m)
{
    tni_kv_process *p = &j->nodes[m->to];
    const uint64_t now = tni_clock_ns();
    uint64_t next = UINT64_MAX;

    if (p->scheduler)
        next = tni_kv_scheduler_receive(p->scheduler, m->header, m->payload, m->bytes, now);
    else if (p->server)
        next = tni_kv_server_receive(p->server, m->header, m->payload, m->bytes, now);
    else if (p->worker)
        next = tni_kv_worker_receive(p->worker, m->header, m->payload, m->bytes, now);
    if (next < p->next_ns) /* who is sent to each second ticks none the less */
        p->next_ns = next;
}

/* ---- calls ---- */

static void request_begin(tni_kv_process *p, call *c)
{
    uint32_t tries = 0;
    tn_status st;

    do {
        p->cookie = (p->cookie + 1) % CALLS_MAX;
        assert_true(++tries <= CALLS_MAX);
    } while (p->asked[p->cookie].called);
    p->asked[p->cookie] = (asked){c->called, c->arg};
    c->r.cookie = p->cookie;
    st = tni_kv_worker_request(p->worker, &c->r, tni_clock_ns());
    if (st)
        request_done(p, c->r.cookie, st);
}

static void call_run(call *c)
{
    const uint64_t now = tni_clock_ns();
    tni_kv_worker *w = c->p->worker;

    switch (c->kind) {
    case CALL_REQUEST:
        request_begin(c->p, c);
        break;
    case CALL_KEY:
        c->st = tni_kv_worker_key(w, c->key, c->dtype, c->elements, c->element_bytes);
        break;
    case CALL_BREAK:
        c->st = tni_kv_worker_break(w, c->key, now);
        break;
    case CALL_FAIL:
        c->st = tni_kv_worker_break(w, tni_kv_worker_round(w, c->key) + 1, now);
        break;
    case CALL_RESUME:
        tni_kv_worker_resume(w);
        break;
    case CALL_AGAIN: /* as another process */
        tni_kv_worker_destroy(w);
        c->p->birth += 1000;
        c->p->behind = tni_kv_scheduler_view(c->p->job->nodes[0].scheduler)->released;
        node_start(c->p);
        w = c->p->worker;
        break;
    case CALL_END:
        tni_kv_worker_destroy(w);
        c->p->worker = w = NULL;
        c->p->gone = true;
        c->p->job->nodes[0].next_ns = 0;
        break;
    }
    if (c->st)
        tni_error_get(&c->err);
    if (w)
        c->p->next_ns = tni_kv_worker_tick(w, now);
}

/* Machines and messages are the carrier's alone; calls come under the lock. */
static void *carrier(void *arg)
{
    job *j = arg;

    tni_mutex_lock(&j->lock);
    while (!j->stop) {
        uint64_t next = UINT64_MAX, now;
        call *calls = j->first, *c;
        message *m;

        j->first = NULL;
        j->last = &j->first;
        tni_mutex_unlock(&j->lock);
        while ((c = calls) != NULL) {
            calls = c->next;
            call_run(c);
            if (!c->done) {
                free(c);
                continue;
            }
            tni_mutex_lock(&j->lock);
            *c->done = true;
            tni_cond_broadcast(&j->changed);
            tni_mutex_unlock(&j->lock);
        }
        while ((m = j->head) != NULL) {
            if (!(j->head = m->next))
                j->tail = &j->head;
            deliver(j, m);
            free(m);
        }
        now = tni_clock_ns();
        for (uint32_t i = 0; i < j->count; i++) {
            if (j->nodes[i].gone) /* behind what it had sent */
                tni_kv_scheduler_lost(j->nodes[0].scheduler, TNI_KV_NODE(j->nodes[i].role, j->nodes[i].rank),
                                      0);
        }
        for (uint32_t i = 0; i < j->count; i++) {
            if (j->nodes[i].next_ns <= now)
                node_tick(&j->nodes[i], now);
            next = j->nodes[i].next_ns < next ? j->nodes[i].next_ns : next;
        }
        tni_mutex_lock(&j->lock);
        for (uint32_t i = 0; i < j->count; i++)
            j->nodes[i].ready = j->nodes[i].worker && tni_kv_worker_ready(j->nodes[i].worker);
        tni_cond_broadcast(&j->changed);
        if (!j->first && !j->head && !j->stop)
            (void)tni_cond_wait_until(&j->wake, &j->lock, next);
    }
    tni_mutex_unlock(&j->lock);
    return NULL;
}

static tn_status call_queue(call *c)
{
    job *j = c->p->job;

    tni_mutex_lock(&j->lock);
    *j->last = c;
    j->last = &c->next;
    tni_cond_signal(&j->wake);
    tni_mutex_unlock(&j->lock);
    return TN_OK;
}

static call *call_new(tni_kv_process *p, call_kind kind)
{
    call *c = calloc(1, sizeof *c);

    assert_non_null(c);
    c->p = p;
    c->kind = kind;
    return c;
}

static tn_status call_wait(call *c)
{
    job *j = c->p->job;
    bool done = false;
    tn_status st;

    c->done = &done;
    (void)call_queue(c);
    tni_mutex_lock(&j->lock);
    while (!done)
        tni_cond_wait(&j->changed, &j->lock);
    tni_mutex_unlock(&j->lock);
    st = c->st;
    if (st)
        tni_error_set(&c->err);
    free(c);
    return st;
}

/* ---- kv/process.h ---- */

const tni_kv_settings *tni_kv_process_settings(const tni_kv_process *p)
{
    return &p->job->settings;
}

tn_status tni_kv_process_join(tni_context *c, bool async, tni_kv_process **out)
{
    job *j = running;
    tni_kv_process *p = &j->nodes[1 + j->settings.servers + my_rank];

    (void)c;
    if (async != j->settings.async)
        return tni_error(TN_E_INTERNAL, "a job of another type");
    if (p->left)
        (void)call_wait(call_new(p, CALL_AGAIN));
    p->left = p->lost = false;
    tni_mutex_lock(&j->lock);
    while (!p->ready)
        tni_cond_wait(&j->changed, &j->lock);
    tni_mutex_unlock(&j->lock);
    *out = p;
    return TN_OK;
}

tn_status tni_kv_process_leave(tni_kv_process *p)
{
    const tni_kv_request bye = {.kind = TNI_KV_DO_BYE};

    if (!p)
        return TN_OK;
    p->left = true;
    return p->lost ? TN_OK : tni_kv_process_call(p, &bye);
}

void tni_kv_process_end(tni_kv_process *p)
{
    p->left = true;
    if (!p->lost)
        (void)call_wait(call_new(p, CALL_END));
}

void job_lose(worker *w)
{
    running->nodes[1 + running->settings.servers + w->rank].lost = true;
    tn_kv_destroy(w->kv);
    w->kv = NULL;
}

uint32_t tni_kv_process_rank(const tni_kv_process *p)
{
    return p->rank;
}

uint32_t tni_kv_process_workers(const tni_kv_process *p)
{
    return p->job->settings.workers;
}

uint32_t tni_kv_process_servers(const tni_kv_process *p)
{
    return p->job->settings.servers;
}

uint32_t tni_kv_process_dead(const tni_kv_process *p, uint32_t role)
{
    (void)p;
    (void)role;
    return 0;
}

uint32_t tni_kv_process_behind(const tni_kv_process *p)
{
    return p->behind;
}

uint64_t tni_kv_process_cut(const tni_kv_process *p, uint32_t *epochs)
{
    (void)p;
    if (epochs)
        *epochs = 0;
    return 0;
}

tn_status tni_kv_process_status(const tni_kv_process *p)
{
    (void)p;
    return TN_OK;
}

tn_status tni_kv_process_request(tni_kv_process *p, const tni_kv_request *r, tni_kv_called called, void *arg)
{
    call *c = call_new(p, CALL_REQUEST);

    c->r = *r;
    c->called = called;
    c->arg = arg;
    return call_queue(c);
}

tn_status tni_kv_process_key(tni_kv_process *p, uint32_t key, uint8_t dtype, uint64_t elements,
                             uint64_t element_bytes)
{
    call *c = call_new(p, CALL_KEY);

    c->key = key;
    c->dtype = dtype;
    c->elements = elements;
    c->element_bytes = element_bytes;
    return call_wait(c);
}

tn_status tni_kv_process_break(tni_kv_process *p, uint32_t round)
{
    call *c = call_new(p, CALL_BREAK);

    c->key = round;
    return call_wait(c);
}

void tni_kv_process_fail(tni_kv_process *p, uint32_t key)
{
    call *c = call_new(p, CALL_FAIL);

    c->key = key;
    (void)call_queue(c);
}

tn_status tni_kv_process_resume(tni_kv_process *p)
{
    return call_wait(call_new(p, CALL_RESUME));
}

typedef struct waiter {
    job *j;
    bool done;
    tn_status st;
    tn_err err;
} waiter;

static void waiter_called(void *arg, tn_status st)
{
    waiter *w = arg;

    tni_mutex_lock(&w->j->lock);
    w->st = st;
    if (st)
        tni_error_get(&w->err);
    w->done = true;
    tni_cond_broadcast(&w->j->changed);
    tni_mutex_unlock(&w->j->lock);
}

tn_status tni_kv_process_call(tni_kv_process *p, const tni_kv_request *r)
{
    waiter w = {.j = p->job};

    (void)tni_kv_process_request(p, r, waiter_called, &w);
    tni_mutex_lock(&w.j->lock);
    while (!w.done)
        tni_cond_wait(&w.j->changed, &w.j->lock);
    tni_mutex_unlock(&w.j->lock);
    if (w.st)
        tni_error_set(&w.err);
    return w.st;
}

tn_status tni_kv_process_serve(tni_context *c, tn_kv_command_fn fn, void *arg)
{
    (void)c;
    (void)fn;
    (void)arg;
    return tni_error(TN_E_UNSUPPORTED, "servers of a test are run by job_run");
}

tn_status tni_kv_process_schedule(tni_context *c, tn_kv_command_fn fn, void *arg)
{
    (void)c;
    (void)fn;
    (void)arg;
    return tni_error(TN_E_UNSUPPORTED, "the scheduler of a test is run by job_run");
}

/* ---- jobs ---- */

void worker_fail(const worker *w, const char *file, int line, const char *format, ...)
{
    va_list args;
    int n;

    if (atomic_fetch_add(&running->failures, 1))
        return;
    n = snprintf(running->failure, sizeof running->failure, "worker %u at %s:%d: ", w->rank, file, line);
    va_start(args, format);
    (void)vsnprintf(running->failure + n, sizeof running->failure - (size_t)n, format, args);
    va_end(args);
    print_error("%s\n", running->failure); /* a job in which one worker stops may not end */
    abort();
}

void worker_status(const worker *w, tn_status got, tn_status wanted, const char *what, const char *file,
                   int line)
{
    if (got != wanted || (wanted && !tn_error_text()[0]))
        worker_fail(w, file, line, "%s gave %s (%s), wanted %s", what, tn_status_name(got), tn_error_text(),
                    tn_status_name(wanted));
}

void job_meet(worker *w)
{
    (void)w;
    (void)pthread_barrier_wait(&running->meeting);
}

static tn_ctx *context_open(const job *j)
{
    const char *settings[32] = {"plugins.trust=off", "engine.threads=1"};
    const char *folder = getenv("TENON_TEST_PLUGINS");
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM};
    tn_ctx *ctx = NULL;
    char path[4096];
    size_t count = 2;

    if (folder) {
        (void)snprintf(path, sizeof path, "plugins.path=%s", folder);
        settings[count++] = path;
    }
    for (const char *const *s = j->o.settings; s && *s; s++)
        settings[count++] = *s;
    o.settings = settings;
    if (tn_open(&o, &ctx)) {
        print_error("tn_open: %s\n", tn_error_text());
        abort();
    }
    return ctx;
}

typedef struct seat {
    worker w;
    const char *type;
} seat;

static void *worker_main(void *arg)
{
    seat *s = arg;
    worker *w = &s->w;

    my_rank = w->rank;
    w->ctx = context_open(running);
    if (s->type)
        WORKER_OK(w, tn_kv_create(w->ctx, s->type, &w->kv));
    running->fn(w);
    tn_kv_destroy(w->kv);
    while (tn_wait_all(w->ctx)) /* failures that were planted, one at a time */
        ;
    WORKER_OK(w, tn_close(w->ctx));
    return NULL;
}

static void job_begin(job *j, const job_options *o, bool async)
{
    const uint64_t second = 1000000000u;

    j->o = *o;
    j->settings = (tni_kv_settings){.job = 7,
                                    .workers = o->workers,
                                    .servers = o->servers,
                                    .beat_ns = second,
                                    .timeout_ns = 600 * second,
                                    .control_timeout_ns = 600 * second,
                                    .retry_ns = 300 * second, /* nothing is lost */
                                    .bound = o->bound,
                                    .part_bytes = o->part_bytes ? o->part_bytes : 4194304,
                                    .credit_bytes = 16777216,
                                    .landing_bytes = (uint64_t)1 << 40,
                                    .staleness = UINT32_MAX,
                                    .async = async,
                                    .snapshot_steps = o->snapshot_steps,
                                    .worker_loss = o->waits ? TNI_KV_LOSS_WAIT : TNI_KV_LOSS_FAIL,
                                    .dead_ns = o->waits ? 600 * second : 0,
                                    .uneven = (tni_kv_uneven)o->uneven};
    j->count = 1 + o->servers + o->workers;
    j->nodes = calloc(j->count, sizeof *j->nodes);
    assert_non_null(j->nodes);
    assert_int_equal(tni_mutex_init(&j->lock), TN_OK);
    assert_int_equal(tni_cond_init(&j->wake), TN_OK);
    assert_int_equal(tni_cond_init(&j->changed), TN_OK);
    assert_int_equal(pthread_barrier_init(&j->meeting, NULL, o->workers), 0);
    j->last = &j->first;
    j->tail = &j->head;
    running = j;
    for (uint32_t i = 0; i < j->count; i++) {
        tni_kv_process *p = &j->nodes[i];

        p->job = j;
        p->role = !i ? TNI_KV_SCHEDULER : i <= o->servers ? TNI_KV_SERVER : TNI_KV_WORKER;
        p->rank = !i ? 0 : i <= o->servers ? i - 1 : i - 1 - o->servers;
        p->birth = 1000 + i;
        p->ctx = p->role == TNI_KV_SERVER ? context_open(j) : NULL;
        node_start(p);
    }
}

static void job_end(job *j)
{
    for (uint32_t i = 0; i < j->count; i++) {
        tni_kv_process *p = &j->nodes[i];

        tni_kv_scheduler_destroy(p->scheduler);
        tni_kv_server_destroy(p->server);
        tni_kv_worker_destroy(p->worker);
        tni_kv_updates_destroy(p->updates);
        if (p->ctx)
            assert_int_equal(tn_close(p->ctx), TN_OK);
    }
    for (message *m; (m = j->head) != NULL; free(m))
        j->head = m->next;
    free(j->nodes);
    tni_cond_fini(&j->wake);
    tni_cond_fini(&j->changed);
    tni_mutex_fini(&j->lock);
    (void)pthread_barrier_destroy(&j->meeting);
    running = NULL;
}

void job_run(const job_options *o, const char *type, void (*fn)(worker *w), void *arg)
{
    job j = {.fn = fn};
    pthread_t threads[JOB_WORKERS_MAX], carries;
    seat seats[JOB_WORKERS_MAX] = {0};

    assert_true(o->workers <= JOB_WORKERS_MAX);
    job_begin(&j, o, o->async || (type && strstr(type, "async")));
    assert_int_equal(pthread_create(&carries, NULL, carrier, &j), 0);
    for (uint32_t i = 0; i < o->workers; i++) {
        seats[i] = (seat){{.rank = i, .workers = o->workers, .arg = arg}, type};
        assert_int_equal(pthread_create(&threads[i], NULL, worker_main, &seats[i]), 0);
    }
    for (uint32_t i = 0; i < o->workers; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    tni_mutex_lock(&j.lock);
    j.stop = true;
    tni_cond_signal(&j.wake);
    tni_mutex_unlock(&j.lock);
    assert_int_equal(pthread_join(carries, NULL), 0);
    job_end(&j);
    assert_int_equal(atomic_load(&j.failures), 0);
}
