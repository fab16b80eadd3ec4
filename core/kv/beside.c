/*
 * A launcher that knows no scheduler has started workers alone (rendezvous.c). Worker 0 then has the
 * scheduler, and worker i the servers i, i + workers and so on, each on a thread of its own. All of them end
 * with the job: a worker that has one leaves last.
 */
#include "kv/post.h"

typedef struct seat {
    struct tni_kv_beside *of;
    tni_thread *thread;
    int32_t rank; /* of a server */
} seat;

typedef struct tni_kv_beside {
    tni_context *ctx;
    tni_mutex lock;
    tni_cond changed;
    bool listens, ended; /* guarded: of the scheduler */
    tn_status status;    /* guarded: of the scheduler */
    tn_err error;        /* guarded */
    uint32_t count;
    seat seats[];
} beside;

static void told(void *arg, int32_t head, const char *body)
{
    beside *b = arg;

    (void)body;
    if (head != TN_KV_LISTENS)
        return;
    tni_mutex_lock(&b->lock);
    b->listens = true;
    tni_cond_broadcast(&b->changed);
    tni_mutex_unlock(&b->lock);
}

static void scheduler_thread(void *arg)
{
    beside *b = arg;
    const tn_status st = tni_kv_schedule(b->ctx, told, b);

    tni_mutex_lock(&b->lock);
    b->ended = true;
    b->status = st;
    tni_error_get(&b->error);
    tni_cond_broadcast(&b->changed);
    tni_mutex_unlock(&b->lock);
}

static void server_thread(void *arg)
{
    const seat *s = arg;

    if (tni_kv_serve(s->of->ctx, s->rank, NULL, NULL))
        tni_logf(&s->of->ctx->log, TN_LOG_WARNING, "kvstore: server %d, of this process: %s", s->rank,
                 tni_error_message());
}

void tni_kv_beside_end(struct tni_kv_beside *b)
{
    if (!b)
        return;
    for (uint32_t i = 0; i < b->count; i++)
        tni_thread_join(b->seats[i].thread);
    tni_cond_fini(&b->changed);
    tni_mutex_fini(&b->lock);
    tni_free(b);
}

/* Before others look for it: who cannot listen says so at once. */
static tn_status scheduler_start(beside *b)
{
    tn_status st = tni_thread_create("tenon-kv-sched", scheduler_thread, b, &b->seats[0].thread);

    if (st)
        return st;
    b->count++;
    tni_mutex_lock(&b->lock);
    while (!b->listens && !b->ended)
        tni_cond_wait(&b->changed, &b->lock);
    if (b->ended && (st = b->status))
        tni_error_set(&b->error);
    tni_mutex_unlock(&b->lock);
    return st;
}

tn_status tni_kv_beside_start(tni_context *c, const tni_kv_setup *worker, struct tni_kv_beside **out)
{
    const uint32_t rank = (uint32_t)worker->rank, workers = worker->settings.workers,
                   most = worker->settings.servers;
    beside *b = tni_zalloc(sizeof *b + (1 + (size_t)most) * sizeof *b->seats);
    tn_status st;

    if (!b)
        return TN_E_NOMEM;
    if ((st = tni_mutex_init(&b->lock))) {
        tni_free(b);
        return st;
    }
    (void)tni_cond_init(&b->changed);
    b->ctx = c;
    if (!rank)
        st = scheduler_start(b);
    for (uint32_t i = rank; !st && i < most; i += workers) {
        seat *s = &b->seats[b->count];

        *s = (seat){.of = b, .rank = (int32_t)i};
        if (!(st = tni_thread_create("tenon-kv-serve", server_thread, s, &s->thread)))
            b->count++;
    }
    if (st)
        tni_kv_beside_end(b);
    else
        *out = b;
    return st;
}
