/*
 * A store over a collective. Its thread opens the communicator, makes all calls of it and waits in `poll`; an
 * asynchronous operation of the engine hands it a call when the arrays are there, and ends with it.
 *
 * A worker whose gradient failed, or that has no memory, will not come to a call that the others wait for: it
 * aborts, and all end with its error. A group that has failed stays so.
 */
#include "kv/group.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kv/wire.h"
#include "tenon/plugin/collective.h"

#define POLL_NS 1000000000u
#define NAME_BYTES 120u
#define EVENTS 8u

typedef struct call { /* of a collective; an operation of the engine */
    struct call *next;
    tni_kv_group *group;
    tni_operation *op;
    tn_collective_call call;
    uint64_t number;
    bool started;
    uint32_t count;
    tni_array **from; /* count; retained, as those behind */
    char name[NAME_BYTES];
    tn_collective_part *parts;
    tni_array *into[];
} call;

typedef struct group_thread {
    const tn_collective_ops *ops;
    void *plugin;
    tn_collective_config config;
    uint64_t timeout_ns, control_ns, part_bytes;
    tn_communicator *c; /* of the thread; others call `wake` once it is ready */
    tni_context *ctx;
    tni_thread *thread;
    tni_array *turn; /* calls read it, a barrier writes it */
    tni_mutex lock;
    tni_cond changed;
    call *first;              /* guarded: handed over */
    uint32_t waking;          /* guarded: threads that call `wake`, after which it may be closed */
    bool ready, stop, broken; /* guarded; broken: this worker gives up */
    tn_status status;         /* guarded: of the group */
    tn_err error;             /* guarded: with it */
    call *waiting;            /* of the thread: by number, and started ones */
    uint64_t next;            /* of the thread: number of the call to start */
    uint32_t rank, ranks;
    uint64_t count_max;
} group_thread;

/* [locked], and unlocks: what was written shall be seen. No plugin is called with a lock held. */
static void wake_unlock(group_thread *t) TN_RELEASE(t->lock)
{
    t->waking++;
    tni_cond_broadcast(&t->changed);
    tni_mutex_unlock(&t->lock);
    t->ops->wake(t->c);
    tni_mutex_lock(&t->lock);
    t->waking--;
    tni_cond_broadcast(&t->changed);
    tni_mutex_unlock(&t->lock);
}

/* ---- the thread --------------------------------------------------------------------------------------- */

static void failed(group_thread *t, tn_status st, const char *text)
{
    tni_mutex_lock(&t->lock);
    if (!t->status) {
        tni_err_format(&t->error, st, "%s", text);
        t->status = st;
    }
    tni_mutex_unlock(&t->lock);
}

static void call_end(call *c, tn_status st, const char *text)
{
    tn_err err;

    if (st)
        tni_err_format(&err, st, "%s", text);
    tni_engine_complete(c->op, st, st ? &err : NULL); /* c is gone */
}

/* Everything that waits ends with the group's failure. */
static void all_fail(group_thread *t)
{
    while (t->waiting) {
        call *c = t->waiting;

        t->waiting = c->next;
        call_end(c, t->status, t->error.message);
    }
}

static void calls_start(group_thread *t)
{
    for (call *c = t->waiting; c; c = c->next) {
        tn_err err = {0};
        tn_status st;

        if (c->started)
            continue;
        if (c->number != t->next)
            return;
        t->next++;
        c->call.struct_size = (uint32_t)sizeof c->call;
        c->call.parts = c->parts;
        c->call.cookie = (uint64_t)(uintptr_t)c;
        c->call.name = c->name;
        c->started = true;
        if ((st = t->ops->start(t->c, &c->call, &err))) {
            t->ops->abort(t->c, err.message);
            failed(t, st, err.message);
            return;
        }
    }
}

static void calls_take(group_thread *t)
{
    call *list, **at;
    bool broken;

    tni_mutex_lock(&t->lock);
    list = t->first;
    t->first = NULL;
    broken = t->broken;
    t->broken = false;
    tni_mutex_unlock(&t->lock);
    while (list) {
        call *c = list;

        list = c->next;
        for (at = &t->waiting; *at && (*at)->number < c->number;)
            at = &(*at)->next;
        c->next = *at;
        *at = c;
    }
    if (broken)
        t->ops->abort(t->c, t->error.message);
}

static void ended(group_thread *t, const tn_collective_event *e)
{
    for (call **at = &t->waiting; *at; at = &(*at)->next) {
        call *c = *at;

        if ((uint64_t)(uintptr_t)c != e->cookie || !c->started)
            continue;
        if (e->status)
            failed(t, e->status, e->text ? e->text : "the collective failed");
        *at = c->next;
        call_end(c, e->status, e->text ? e->text : "the collective failed");
        return;
    }
}

static bool stops(group_thread *t)
{
    bool stop;

    tni_mutex_lock(&t->lock);
    stop = t->stop;
    tni_mutex_unlock(&t->lock);
    return stop;
}

/* After a failure the communicator is asked for nothing but its end: it has handed back all calls. */
static void serve_failed(group_thread *t)
{
    bool stop = false;

    while (!stop) {
        calls_take(t);
        all_fail(t);
        tni_mutex_lock(&t->lock);
        while (!t->first && !t->stop && !t->broken)
            tni_cond_wait(&t->changed, &t->lock);
        stop = t->stop && !t->first;
        tni_mutex_unlock(&t->lock);
    }
}

static void serve(group_thread *t)
{
    tn_collective_event events[EVENTS];
    tn_status st = TN_OK;

    while (!st && (!stops(t) || t->waiting)) {
        uint32_t count = EVENTS;
        tn_err err = {0};

        calls_take(t);
        calls_start(t);
        for (uint32_t i = 0; i < EVENTS; i++)
            events[i] = (tn_collective_event){.struct_size = (uint32_t)sizeof events[i]};
        if ((st = t->ops->poll(t->c, events, &count, POLL_NS, &err)))
            failed(t, st, err.message);
        for (uint32_t i = 0; i < count && !st; i++)
            ended(t, &events[i]);
    }
    if (st)
        serve_failed(t);
    else
        calls_take(t); /* it may have given up at last */
}

static void run(void *arg)
{
    group_thread *t = arg;
    tn_collective_info info = {.struct_size = (uint32_t)sizeof info};
    tn_err err = {0};
    const tn_status st = t->ops->open(t->plugin, &t->config, &t->c, &err);

    if (!st)
        t->ops->info(t->c, &info);
    tni_mutex_lock(&t->lock);
    t->status = st;
    if (st)
        tni_err_format(&t->error, st, "%s", err.message);
    t->rank = info.rank;
    t->ranks = info.ranks;
    t->count_max = info.count_max;
    t->ready = true;
    tni_cond_broadcast(&t->changed);
    tni_mutex_unlock(&t->lock);
    if (st)
        return;
    serve(t);
    tni_mutex_lock(&t->lock);
    while (t->waking)
        tni_cond_wait(&t->changed, &t->lock);
    tni_mutex_unlock(&t->lock);
    t->ops->close(t->c, t->control_ns);
}

/* ---- calls -------------------------------------------------------------------------------------------- */

static void call_free(call *c)
{
    for (uint32_t i = 0; i < c->count; i++) {
        tni_array_release(c->into[i]);
        tni_array_release(c->from ? c->from[i] : NULL);
    }
    tni_free(c);
}

static void call_done(void *payload, tni_engine *engine, tn_status status)
{
    (void)engine;
    (void)status;
    call_free(*(call **)payload);
}

void tni_kv_group_break(tni_kv_group *g)
{
    group_thread *t = g->thread;

    tni_mutex_lock(&t->lock);
    if (!t->status) {
        tni_error_get(&t->error);
        t->status = TN_E_PEER;
        t->broken = true;
    }
    wake_unlock(t);
}

/* What it needs has failed: the others shall not wait for it. */
static tn_status call_skip(call *c, tn_status st, bool skipped)
{
    tn_err err = {.code = st};

    for (uint32_t i = 0; i < c->count && skipped; i++)
        if (tni_var_failure(tni_array_var(c->from ? c->from[i] : c->into[i]), &err))
            break;
    if (skipped)
        tni_error_set(&err);
    tni_kv_group_break(c->group);
    return st;
}

static tn_status call_run(void *payload, tni_run *run)
{
    call *c = *(call **)payload;
    group_thread *t = c->group->thread;
    tn_status st = run->skipped;

    for (uint32_t i = 0; i < c->count && !st; i++) {
        if ((c->from && (st = tni_storage_touch(c->from[i]->storage, NULL))) ||
            (st = tni_storage_allocate(c->into[i]->storage, NULL)))
            break;
        c->parts[i] = (tn_collective_part){.in = tni_array_data(c->from ? c->from[i] : c->into[i]),
                                           .out = tni_array_data(c->into[i]),
                                           .count = tni_array_count(c->into[i])};
    }
    if (st)
        return call_skip(c, st, run->skipped != TN_OK);
    c->op = run->op;
    tni_mutex_lock(&t->lock);
    c->next = t->first;
    t->first = c;
    wake_unlock(t);
    return TN_PENDING;
}

static call *call_make(tni_kv_group *g, uint32_t kind, uint32_t count, bool sums)
{
    call *c = tni_zalloc(sizeof *c + count * (2 * sizeof(tni_array *) + sizeof *c->parts));

    if (!c)
        return NULL;
    c->group = g;
    c->number = g->queued;
    c->call.kind = kind;
    c->call.timeout_ns = count ? g->thread->timeout_ns : g->thread->control_ns;
    c->from = sums ? c->into + count : NULL;
    c->parts = (tn_collective_part *)(void *)(c->into + 2 * count);
    return c;
}

/* [takes] c */
static tn_status call_push(call *c)
{
    tni_kv_group *g = c->group;
    tni_var **vars = tni_calloc(2 * (uint64_t)c->count + 1, sizeof(*vars));
    uint32_t reads = 0, writes = 0;
    tni_task task = {.run = call_run,
                     .done = call_done,
                     .payload = &c,
                     .payload_bytes = sizeof c,
                     .reads = vars,
                     .flags = TNI_TASK_ASYNC | TNI_TASK_ALWAYS,
                     .name = "kvstore collective",
                     .lane = TNI_LANE_COMM};
    tn_status st = vars ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < c->count && !st && c->from; i++)
        vars[reads++] = tni_array_var(c->from[i]);
    if (!st && c->count)
        vars[reads++] = tni_array_var(g->thread->turn);
    task.writes = vars + reads;
    for (uint32_t i = 0; i < c->count && !st; i++)
        vars[reads + writes++] = tni_array_var(c->into[i]);
    if (!st && !c->count)
        vars[reads + writes++] = tni_array_var(g->thread->turn);
    task.read_count = reads;
    task.write_count = writes;
    if (!st)
        st = tni_engine_push(g->thread->ctx->engine, &task);
    if (st)
        call_free(c);
    else
        g->queued++;
    tni_free((void *)vars);
    return st;
}

/* How many from `end` down go together: of one type, a part's bytes. */
static uint32_t bucket_count(const group_thread *t, uint32_t end, tni_array *const *into)
{
    const int32_t dtype = into[end - 1]->dtype;
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (count < end && into[end - 1 - count]->dtype == dtype) {
        const tni_array *a = into[end - 1 - count];
        const uint64_t more = tni_array_count(a) * tn_dtype_bytes(dtype);

        if (count && bytes + more > t->part_bytes)
            break;
        bytes += more;
        count++;
    }
    return count;
}

static tn_status bucket_queue(tni_kv_group *g, uint32_t count, tni_kv_key *const *keys,
                              tni_array *const *from, tni_array *const *into)
{
    call *c = call_make(g, from ? TN_COLLECTIVE_SUM : TN_COLLECTIVE_BROADCAST, count, from != NULL);
    char number[24], more[32] = "";

    if (!c)
        return TN_E_NOMEM;
    c->call.dtype = into[0]->dtype;
    c->call.part_count = c->count = count;
    c->call.flags =
        from && tni_option_bool(g->thread->ctx->options, "kvstore.deterministic") ? TN_COLLECTIVE_ORDERED : 0;
    (void)snprintf(number, sizeof number, "%" PRId64, keys ? keys[0]->number : 0);
    if (count > 1)
        (void)snprintf(more, sizeof more, " and %u more", count - 1);
    (void)snprintf(c->name, sizeof c->name, "bucket %" PRIu64 " (%.60s%s)", g->queued,
                   !keys           ? "what all agree on"
                   : keys[0]->name ? keys[0]->name
                                   : number,
                   more);
    for (uint32_t i = 0; i < count; i++) {
        tni_array_retain(c->into[i] = into[i]);
        if (from)
            tni_array_retain(c->from[i] = from[i]);
    }
    return call_push(c);
}

tn_status tni_kv_group_queue(tni_kv_group *g, uint32_t count, tni_kv_key *const *keys, tni_array *const *from,
                             tni_array *const *into)
{
    tn_status st = TN_OK;

    for (uint32_t end = count; end && !st;) {
        const uint32_t n = bucket_count(g->thread, end, into), at = end - n;

        if (tni_array_count(into[at]) > g->thread->count_max)
            st =
                tni_error(TN_E_UNSUPPORTED, "an array of %" PRIu64 " elements; the collective takes %" PRIu64,
                          tni_array_count(into[at]), g->thread->count_max);
        else
            st = bucket_queue(g, n, keys + at, from ? from + at : NULL, into + at);
        end = at;
    }
    return st;
}

tn_status tni_kv_group_barrier(tni_kv_group *g)
{
    call *c = call_make(g, TN_COLLECTIVE_BARRIER, 0, false);
    tn_status st;

    if (!c)
        return TN_E_NOMEM;
    (void)snprintf(c->name, sizeof c->name, "%" PRIu64, g->queued);
    return (st = call_push(c)) ? st : tni_array_wait_write(g->thread->turn);
}

tn_status tni_kv_group_agree(tni_kv_group *g, const char *what, uint64_t number)
{
    tni_context *c = g->thread->ctx;
    uint64_t first = number;
    tni_device *cpu = NULL;
    tni_array *a = NULL;
    const int64_t one = 1;
    tn_status st;

    if ((st = tni_device_get(c->devices, "cpu", 0, &cpu)) ||
        (st = tni_array_create(c->space, cpu, TN_I64, 1, &one, "kvstore", &a)))
        return st;
    if (!(st = tni_array_first_write(a, &number, sizeof number)) &&
        !(st = bucket_queue(g, 1, NULL, NULL, &a)))
        st = tni_array_read(a, &first, sizeof first);
    tni_array_release(a);
    if (!st && first != number)
        st = tni_error(TN_E_PEER, "worker %u has other %s than worker 0", g->rank, what);
    if (st)
        tni_kv_group_break(g);
    return st;
}

/* ---- the group ---------------------------------------------------------------------------------------- */

static void add(int32_t dtype, uint64_t count, const void *from, void *into)
{
    tni_kv_bytes_add((uint8_t)dtype, into, into, from, count * tn_dtype_bytes(dtype));
}

static tn_status thread_start(group_thread *t)
{
    tni_device *cpu = NULL;
    const int64_t none = 0;
    tn_status st;

    if ((st = tni_device_get(t->ctx->devices, "cpu", 0, &cpu)) ||
        (st = tni_array_create(t->ctx->space, cpu, TN_U8, 1, &none, "kvstore", &t->turn)) ||
        (st = tni_thread_create("tenon-kv", run, t, &t->thread)))
        return st;
    tni_mutex_lock(&t->lock);
    while (!t->ready)
        tni_cond_wait(&t->changed, &t->lock);
    st = t->status;
    tni_mutex_unlock(&t->lock);
    if (st)
        tni_error_set(&t->error);
    return st;
}

static void thread_destroy(group_thread *t)
{
    tni_thread_join(t->thread);
    tni_array_release(t->turn);
    tni_cond_fini(&t->changed);
    tni_mutex_fini(&t->lock);
    tni_free(t);
}

static tn_status options_read(group_thread *t, const char *id, tni_kv_place *place)
{
    const tni_options *o = t->ctx->options;
    const char *transport = tni_option_text(o, "kvstore.transport");
    const uint32_t alone = *id == 'n'; /* nccl: nobody says that there are others; of mpi its launcher may */
    const tn_capability *table;
    tni_plugin *plugin;
    bool unknown; /* there are others, and nobody says which one this is */
    tn_status st;

    if (!strcmp(tni_option_text(o, "kvstore.uneven"), "join"))
        return tni_error(TN_E_UNSUPPORTED, "kvstore.uneven is join, but a sum of all workers has no worker "
                                           "that ended: pad or drop");
    if ((st = tni_kv_rendezvous(o, place)) ||
        (st = tni_registry_table(t->ctx->plugins, TN_KIND_COLLECTIVE,
                                 strcmp(transport, "auto") != 0 ? transport : id, &table, &plugin)))
        return st;
    unknown = place->rank < 0 && place->ranks > 1;
    t->ops = (const tn_collective_ops *)(const void *)table; /* whole: tni_refuse_collective */
    t->plugin = plugin->self;
    t->timeout_ns = (uint64_t)tni_option_int(o, "kvstore.timeout") * 1000000u;
    t->control_ns = (uint64_t)tni_option_int(o, "kvstore.control_timeout") * 1000000u;
    t->part_bytes = (uint64_t)tni_option_int(o, "kvstore.part_bytes");
    t->config = (tn_collective_config){
        .struct_size = (uint32_t)sizeof t->config,
        .rank = place->rank < 0 && !unknown ? 0 : (uint32_t)place->rank,
        .ranks = place->ranks < 0 || (place->rank < 0 && !unknown) ? alone : (uint32_t)place->ranks,
        .job = tni_option_text(o, "kvstore.job"),
        .root = *place->root ? place->root : NULL,
        .timeout_ns = t->control_ns,
        .add = add};
    return TN_OK;
}

tn_status tni_kv_group_open(tni_context *c, const char *id, tni_kv_group **out)
{
    tni_kv_group *g = tni_zalloc(sizeof *g);
    group_thread *t = tni_zalloc(sizeof *t);
    tni_kv_place place;
    tn_status st = TN_E_NOMEM;

    if (!g || !t || (st = tni_mutex_init(&t->lock))) {
        tni_free(g);
        tni_free(t);
        return st;
    }
    t->ctx = c;
    g->thread = t;
    if ((st = tni_cond_init(&t->changed)) || (st = options_read(t, id, &place)) || (st = thread_start(t))) {
        thread_destroy(t);
        tni_free(g);
        return st;
    }
    g->rank = t->rank;
    g->ranks = t->ranks;
    *out = g;
    return TN_OK;
}

void tni_kv_group_close(tni_kv_group *g)
{
    group_thread *t;
    tn_err err;

    if (!g)
        return;
    t = g->thread;
    tni_error_get(&err); /* of whoever closes for it */
    (void)tni_array_wait_write(t->turn);
    tni_mutex_lock(&t->lock);
    t->stop = true;
    wake_unlock(t);
    thread_destroy(t);
    tni_free(g);
    tni_error_set(&err);
}
