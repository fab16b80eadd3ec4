/*
 * Batches ahead of the program: a ring of slots, one batch each, whose samples threads make one by one. The
 * program's thread alone knows orders: it lays the rows of the next batches into free slots and takes them
 * out in turn. Another place in the data empties the ring.
 *
 * Under the lock: `first`, `filled`, `stop`, and of each slot `begun` and `done`. A filled slot that is not
 * done belongs to the threads.
 */
#include "ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 256

typedef struct slot {
    int64_t epoch, index, count, filler;
    uint32_t *rows;
    float *fields[TNN_VALUES_MAX];
    int64_t begun, done; /* samples */
    tn_status status;
    char text[512];
} slot;

struct tnn_ahead {
    tnn_maker maker;
    size_t field_count, samples[TNN_VALUES_MAX];
    size_t slot_count;
    slot *slots;
    uint64_t first,
        filled; /* batches, counted since the beginning: the program's, behind the last one begun */
    bool stop, has_lock;
    pthread_mutex_t lock;
    pthread_cond_t change;
    pthread_t threads[THREADS_MAX];
    int32_t started;
};

typedef struct worker {
    struct tnn_ahead *ahead;
    int32_t number;
} worker;

static slot *slot_at(const struct tnn_ahead *a, uint64_t number)
{
    return &a->slots[number % a->slot_count];
}

/* Into memory of the slot that is the sample's alone; the status is the caller's to keep. */
static tn_status sample_make(struct tnn_ahead *a, int32_t number, const slot *s, int64_t i, char *why,
                             size_t bytes)
{
    float *out[TNN_VALUES_MAX];

    for (size_t f = 0; f < a->field_count; f++)
        out[f] = s->fields[f] + (size_t)i * a->samples[f];
    return a->maker.make(a->maker.self, number, s->rows[i], s->epoch, out, why, bytes);
}

static void sample_end(slot *s, tn_status st, const char *why)
{
    s->done++;
    if (st && !s->status) {
        s->status = st;
        (void)snprintf(s->text, sizeof s->text, "%s", why);
    }
}

/* The oldest slot with a sample that nobody has begun; NULL: none. */
static slot *work_find(struct tnn_ahead *a)
{
    for (uint64_t n = a->first; n < a->filled; n++)
        if (slot_at(a, n)->begun < slot_at(a, n)->count)
            return slot_at(a, n);
    return NULL;
}

static void *work(void *arg)
{
    const worker w = *(worker *)arg;
    struct tnn_ahead *a = w.ahead;

    free(arg);
    (void)pthread_mutex_lock(&a->lock);
    while (!a->stop) {
        slot *s = work_find(a);
        char why[sizeof s->text] = "";
        tn_status st;
        int64_t i;

        if (!s) {
            (void)pthread_cond_wait(&a->change, &a->lock);
            continue;
        }
        i = s->begun++;
        (void)pthread_mutex_unlock(&a->lock);
        st = sample_make(a, w.number, s, i, why, sizeof why);
        (void)pthread_mutex_lock(&a->lock);
        sample_end(s, st, why);
        if (s->done == s->begun)
            (void)pthread_cond_broadcast(&a->change);
    }
    (void)pthread_mutex_unlock(&a->lock);
    return NULL;
}

/* ---- the program's thread ---- */

void tnn_ahead_destroy(struct tnn_ahead *a)
{
    if (!a)
        return;
    if (a->has_lock) {
        (void)pthread_mutex_lock(&a->lock);
        a->stop = true;
        (void)pthread_cond_broadcast(&a->change);
        (void)pthread_mutex_unlock(&a->lock);
        for (int32_t i = 0; i < a->started; i++)
            (void)pthread_join(a->threads[i], NULL);
        (void)pthread_cond_destroy(&a->change);
        (void)pthread_mutex_destroy(&a->lock);
    }
    for (size_t i = 0; a->slots && i < a->slot_count; i++) {
        free(a->slots[i].rows);
        for (size_t f = 0; f < a->field_count; f++)
            free(a->slots[i].fields[f]);
    }
    free(a->slots);
    free(a);
}

static tn_status slots_make(tn_app *app, struct tnn_ahead *a, size_t batch)
{
    if (!(a->slots = tnn_alloc(app, a->slot_count, sizeof *a->slots)))
        return app->status;
    for (size_t i = 0; i < a->slot_count; i++) {
        if (!(a->slots[i].rows = tnn_alloc(app, batch, sizeof *a->slots[i].rows)))
            return app->status;
        for (size_t f = 0; f < a->field_count; f++)
            if (!(a->slots[i].fields[f] = tnn_alloc(app, batch * a->samples[f], sizeof(float))))
                return app->status;
    }
    return TN_OK;
}

static tn_status threads_start(tn_app *app, struct tnn_ahead *a)
{
    if (pthread_mutex_init(&a->lock, NULL))
        return tnn_no_memory(app);
    if (pthread_cond_init(&a->change, NULL)) {
        (void)pthread_mutex_destroy(&a->lock);
        return tnn_no_memory(app);
    }
    a->has_lock = true;
    for (; a->started < a->maker.threads; a->started++) {
        worker *w = tnn_alloc(app, 1, sizeof *w);

        if (!w)
            return app->status;
        *w = (worker){a, a->started};
        if (pthread_create(&a->threads[a->started], NULL, work, w)) {
            free(w);
            return tnn_fail(app, TN_E_NOMEM, "thread %d of %d for images does not start", (int)a->started + 1,
                            (int)a->maker.threads);
        }
    }
    return TN_OK;
}

tn_status tnn_ahead_create(tn_app *app, const tnn_maker *maker, const tn_data *d, struct tnn_ahead **out)
{
    struct tnn_ahead *a;

    if (maker->threads < 0 || maker->threads > THREADS_MAX || maker->prefetch < 1 || maker->prefetch > 4096)
        return tnn_fail(app, TN_E_ARG, "data \"%s\": threads are -1 to %d, prefetch 1 to 4096", d->name,
                        THREADS_MAX);
    if (!(a = tnn_alloc(app, 1, sizeof *a)))
        return app->status;
    *out = a;
    a->maker = *maker;
    a->field_count = d->field_count;
    a->slot_count = maker->threads ? (size_t)maker->prefetch + 1 : 1;
    for (size_t f = 0; f < d->field_count; f++)
        a->samples[f] = d->fields[f].sample;
    if (slots_make(app, a, (size_t)d->order.batch))
        return app->status;
    return threads_start(app, a);
}

/* Rows of the next batches of the epoch into slots that are free. */
static void slots_fill(struct tnn_ahead *a, tn_data *d, int64_t epoch, int64_t index)
{
    for (uint64_t n = a->first; n < a->first + a->slot_count; n++) {
        slot *s = slot_at(a, n);

        if (index >= tnn_order_batches(&d->order, epoch))
            return;
        if (n >= a->filled) {
            s->count = tnn_order_rows(&d->order, epoch, index);
            memcpy(s->rows, d->order.rows, (size_t)s->count * sizeof *s->rows);
            s->filler = d->order.filler;
            s->epoch = epoch;
            s->index = index;
            s->status = TN_OK;
            (void)pthread_mutex_lock(&a->lock);
            s->begun = s->done = 0;
            a->filled = n + 1;
            (void)pthread_cond_broadcast(&a->change);
            (void)pthread_mutex_unlock(&a->lock);
        }
        index++;
    }
}

/* Until every sample of the batch is done. */
static void slot_wait(struct tnn_ahead *a, slot *s)
{
    while (!a->maker.threads && s->begun < s->count) {
        char why[sizeof s->text] = "";
        const tn_status st = sample_make(a, 0, s, s->begun++, why, sizeof why);

        sample_end(s, st, why);
    }
    (void)pthread_mutex_lock(&a->lock);
    while (s->done < s->count)
        (void)pthread_cond_wait(&a->change, &a->lock);
    (void)pthread_mutex_unlock(&a->lock);
}

/* Samples that threads are at are waited for; no others are begun. */
static void ring_empty(struct tnn_ahead *a)
{
    (void)pthread_mutex_lock(&a->lock);
    for (uint64_t n = a->first; n < a->filled; n++)
        slot_at(a, n)->count = slot_at(a, n)->begun;
    for (uint64_t n = a->first; n < a->filled; n++)
        while (slot_at(a, n)->done < slot_at(a, n)->begun)
            (void)pthread_cond_wait(&a->change, &a->lock);
    a->filled = a->first;
    (void)pthread_mutex_unlock(&a->lock);
}

int64_t tnn_ahead_next(tn_app *app, struct tnn_ahead *a, tn_data *d)
{
    slot *s = slot_at(a, a->first);
    int64_t filler;

    if (a->filled > a->first) { /* the batch that the program had, or one that it passed over */
        if (s->epoch != d->epoch || s->index != d->index) {
            (void)pthread_mutex_lock(&a->lock);
            a->first += s->done == s->count;
            (void)pthread_mutex_unlock(&a->lock);
            s = slot_at(a, a->first);
        }
        if (a->filled > a->first && (s->epoch != d->epoch || s->index != d->index)) {
            ring_empty(a);
            s = slot_at(a, a->first);
        }
    }
    slots_fill(a, d, d->epoch, d->index);
    filler = s->filler;
    slot_wait(a, s);
    d->order.filler = filler;
    if (s->status) {
        (void)tnn_fail(app, s->status, "data \"%s\": %s", d->name, s->text);
        return 0;
    }
    return s->count;
}

const float *tnn_ahead_field(const struct tnn_ahead *a, size_t field)
{
    return slot_at(a, a->first)->fields[field];
}
