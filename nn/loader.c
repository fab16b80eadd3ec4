/*
 * Batches that threads make. The program's thread takes numbers from the sampler and lays them into a ring
 * of slots; a thread takes the oldest slot that nobody has, makes its samples one after the other and
 * stacks them in plain memory; the program's thread waits for the slot whose turn it is. So the order is
 * the sampler's, however the threads run, and no more than `prefetch` batches lie ready.
 *
 * Under the lock: the slots' states, `stop`, `filled`, `taken`. A BUSY slot belongs to its thread, any other
 * one to the program's thread. A loader's thread never touches the app.
 */
#include "data.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/nn_data.h"

#define WORKERS_MAX 256
#define PREFETCH_MAX 4096
#define FIELDS 8

enum { FREE, READY, BUSY, DONE };

typedef struct stack { /* samples of one field, behind each other */
    unsigned char *data;
    int32_t dtype, ndim;
    int64_t shape[TN_NDIM_MAX]; /* with their number in front */
} stack;

typedef struct slot {
    int state;
    int64_t count, *numbers;
    size_t field_count;
    stack fields[FIELDS];
    tn_status status;
    char text[640];
} slot;

struct tn_loader {
    tnn_object object;
    tn_ctx *ctx;
    tn_sampler *sampler;
    tn_loader_options o;
    size_t slots_count;
    slot *slots;
    uint64_t filled, taken, given; /* batches: laid in, taken by threads, given to the program */
    bool failed, ended, stop;
    bool has_lock;
    pthread_mutex_t lock;
    pthread_cond_t change;
    pthread_t threads[WORKERS_MAX];
    int32_t started;
};

/* ---- one batch, on any thread -------------------------------------------------------------------------- */

static tn_status slot_fail(slot *s, tn_status st, const char *text)
{
    s->status = st ? st : TN_E_INTERNAL;
    (void)snprintf(s->text, sizeof s->text, "%s", text);
    return s->status;
}

/* Whether the sample fits to those before; the stack grows to the largest. */
static tn_status field_fit(const tn_loader *l, slot *s, size_t index, tn_array *a, bool first)
{
    stack *to = &s->fields[index];
    const int64_t *shape = NULL;
    int32_t ndim = 0;
    tn_status st = tn_array_shape(a, &ndim, &shape);

    if (st)
        return slot_fail(s, st, tn_error_text());
    if (first) {
        to->dtype = tn_array_dtype(a);
        to->ndim = ndim + 1;
        to->shape[0] = s->count;
    }
    if (ndim >= TN_NDIM_MAX || tn_array_storage(a) != TN_STORAGE_DENSE) {
        return slot_fail(s, TN_E_SHAPE, "an array has too many dimensions, or is sparse");
    } else if (to->dtype != tn_array_dtype(a) || to->ndim != ndim + 1) {
        return slot_fail(s, TN_E_SHAPE,
                         "an array has another type or number of dimensions than in the samples before");
    }
    for (int32_t d = 0; d < ndim; d++) {
        if (!first && !l->o.pad && shape[d] != to->shape[d + 1])
            return slot_fail(s, TN_E_SHAPE,
                             "an array has another size than in the samples before; .pad fills it up");
        if (first || shape[d] > to->shape[d + 1])
            to->shape[d + 1] = shape[d];
    }
    return TN_OK;
}

/* Rows of `from`, one after the other, into the corner of `to`. */
static void corner_copy(unsigned char *to, const unsigned char *from, int32_t ndim, const int64_t *size,
                        const int64_t *room, size_t element)
{
    size_t from_step = element, to_step = element;

    if (ndim <= 1) {
        memcpy(to, from, (ndim ? (size_t)size[0] : 1) * element);
        return;
    }
    for (int32_t d = 1; d < ndim; d++) {
        from_step *= (size_t)size[d];
        to_step *= (size_t)room[d];
    }
    for (int64_t i = 0; i < size[0]; i++)
        corner_copy(to + (size_t)i * to_step, from + (size_t)i * from_step, ndim - 1, size + 1, room + 1,
                    element);
}

/* The bytes of `fill` as one element of the type. */
static tn_status fill_make(const tn_loader *l, int32_t dtype, unsigned char out[8])
{
    tn_array *a = NULL;
    tn_status st = tn_array_zeros(l->ctx, dtype, 0, NULL, NULL, &a);

    if (!st && !(st = tn_array_fill(a, l->o.fill)))
        st = tn_array_read(a, out, tn_dtype_bytes(dtype));
    tn_array_release(a);
    return st;
}

static tn_status field_stack(const tn_loader *l, slot *s, size_t index, tn_array *const *samples)
{
    stack *to = &s->fields[index];
    const size_t element = (size_t)tn_dtype_bytes(to->dtype);
    unsigned char fill[8] = {0}, *own = NULL;
    size_t each = element, all;
    tn_status st = l->o.pad ? fill_make(l, to->dtype, fill) : TN_OK;

    for (int32_t d = 1; d < to->ndim; d++)
        if (__builtin_mul_overflow(each, (size_t)to->shape[d], &each))
            return slot_fail(s, TN_E_SHAPE, "the batch has too many elements");
    if (__builtin_mul_overflow(each, (size_t)s->count, &all) || all == SIZE_MAX)
        return slot_fail(s, TN_E_SHAPE, "the batch has too many elements");
    to->data = malloc(all + 1);
    own = malloc(each + 1);
    if (!to->data || !own) {
        free(own);
        return slot_fail(s, TN_E_NOMEM, "out of memory");
    }
    for (int64_t i = 0; !st && i < s->count; i++) {
        tn_array *a = samples[i * FIELDS + (int64_t)index];
        unsigned char *at = to->data + (size_t)i * each;
        const uint64_t bytes = tn_array_bytes(a);
        const int64_t *shape = NULL;
        int32_t ndim = 0;

        if (bytes == each) {
            st = each ? tn_array_read(a, at, each) : TN_OK;
            continue;
        }
        for (size_t k = 0; k < each; k += element)
            memcpy(at + k, fill, element);
        if (bytes && !(st = tn_array_read(a, own, bytes)) && !(st = tn_array_shape(a, &ndim, &shape)))
            corner_copy(at, own, ndim, shape, to->shape + 1, element);
    }
    free(own);
    return st ? slot_fail(s, st, tn_error_text()) : TN_OK;
}

static size_t arrays_count(tn_array *const *sample)
{
    size_t count = 0;

    while (count < FIELDS && sample[count])
        count++;
    return count;
}

static void batch_make(const tn_loader *l, slot *s)
{
    tn_array **samples = calloc((size_t)s->count * FIELDS, sizeof *samples);
    int64_t i = 0;

    s->status = samples ? TN_OK : slot_fail(s, TN_E_NOMEM, "out of memory");
    for (; !s->status && i < s->count; i++) {
        tn_array **sample = samples + i * FIELDS;
        tn_status st;
        size_t count;

        tn_error_clear(); /* the text of another error says nothing of this sample */
        st = l->o.sample(l->o.arg, s->numbers[i], sample);
        count = arrays_count(sample);
        if (i == 0)
            s->field_count = count;
        if (st)
            (void)slot_fail(s, st, *tn_error_text() ? tn_error_text() : tn_status_name(st));
        else if (!count || count != s->field_count)
            (void)slot_fail(s, TN_E_ARG,
                            count ? "another number of arrays than before" : "no array was made");
        for (size_t f = 0; !s->status && f < count; f++)
            (void)field_fit(l, s, f, sample[f], i == 0);
    }
    if (s->status && samples) {
        char text[600];

        (void)snprintf(text, sizeof text, "sample %lld: %.540s", (long long)s->numbers[i ? i - 1 : 0],
                       s->text);
        (void)slot_fail(s, s->status, text);
    }
    for (size_t f = 0; !s->status && f < s->field_count; f++)
        (void)field_stack(l, s, f, samples);
    for (int64_t k = 0; samples && k < s->count * FIELDS; k++)
        tn_array_release(samples[k]);
    free(samples);
}

static void *work(void *arg)
{
    tn_loader *l = arg;

    (void)pthread_mutex_lock(&l->lock);
    while (!l->stop) {
        slot *s = &l->slots[l->taken % l->slots_count];

        if (l->taken == l->filled) {
            (void)pthread_cond_wait(&l->change, &l->lock);
            continue;
        }
        l->taken++;
        s->state = BUSY;
        (void)pthread_mutex_unlock(&l->lock);
        batch_make(l, s);
        (void)pthread_mutex_lock(&l->lock);
        s->state = DONE;
        l->stop |= s->status != TN_OK; /* nobody begins another one */
        (void)pthread_cond_broadcast(&l->change);
    }
    (void)pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- the program's thread ------------------------------------------------------------------------------ */

static void slot_clear(slot *s)
{
    for (size_t f = 0; f < FIELDS; f++) {
        free(s->fields[f].data);
        s->fields[f] = (stack){.data = NULL};
    }
    s->field_count = 0;
    s->state = FREE;
}

static void threads_end(tn_loader *l)
{
    if (!l->has_lock)
        return;
    (void)pthread_mutex_lock(&l->lock);
    l->stop = true;
    (void)pthread_cond_broadcast(&l->change);
    (void)pthread_mutex_unlock(&l->lock);
    for (int32_t i = 0; i < l->started; i++)
        (void)pthread_join(l->threads[i], NULL);
    l->started = 0;
}

static void loader_destroy(tnn_object *object)
{
    tn_loader *l = (tn_loader *)object;

    threads_end(l);
    for (size_t i = 0; l->slots && i < l->slots_count; i++) {
        slot_clear(&l->slots[i]);
        free(l->slots[i].numbers);
    }
    if (l->has_lock) {
        (void)pthread_cond_destroy(&l->change);
        (void)pthread_mutex_destroy(&l->lock);
    }
    free(l->slots);
    free(l);
}

static tn_status loader_start(tn_app *app, tn_loader *l)
{
    const size_t ahead = l->o.prefetch ? (size_t)l->o.prefetch : 2 * (size_t)l->o.workers;

    l->slots_count = l->o.workers && ahead ? ahead : 1;
    if (!(l->slots = tnn_alloc(app, l->slots_count, sizeof *l->slots)))
        return app->status;
    for (size_t i = 0; i < l->slots_count; i++)
        if (!(l->slots[i].numbers = tnn_alloc(app, (size_t)tnn_sampler_batch(l->sampler), sizeof(int64_t))))
            return app->status;
    if (pthread_mutex_init(&l->lock, NULL))
        return tnn_no_memory(app);
    if (pthread_cond_init(&l->change, NULL)) {
        (void)pthread_mutex_destroy(&l->lock);
        return tnn_no_memory(app);
    }
    l->has_lock = true;
    for (; l->started < l->o.workers; l->started++)
        if (pthread_create(&l->threads[l->started], NULL, work, l))
            return tnn_fail(app, TN_E_NOMEM, "a loader: thread %d of %d does not start", l->started,
                            l->o.workers);
    return TN_OK;
}

tn_loader *tn_loader_new_(tn_sampler *sampler, const tn_loader_options *options)
{
    tn_app *app = tnn_sampler_app(sampler);
    tn_loader_options o = {0};
    tn_loader *l;

    tnn_options_copy(&o, sizeof o, options);
    if (!app)
        return NULL;
    if (!o.sample || o.workers < 0 || o.workers > WORKERS_MAX || o.prefetch < 0 ||
        o.prefetch > PREFETCH_MAX) {
        (void)tnn_fail(app, TN_E_ARG,
                       "tn_loader_new at %.60s:%d: .sample is missing, or .workers (0 to %d) or "
                       ".prefetch (0 to %d) is out of range",
                       o.file ? o.file : "?", o.line, WORKERS_MAX, PREFETCH_MAX);
        return NULL;
    }
    if (!(l = tnn_alloc(app, 1, sizeof *l)))
        return NULL;
    l->ctx = app->ctx;
    l->sampler = sampler;
    l->o = o;
    tnn_object_add(app, &l->object, loader_destroy);
    l->failed = loader_start(app, l) != TN_OK;
    return l->failed ? NULL : l;
}

/* Lays batches into the ring as far as there is room and the epoch has some. */
static void slots_fill(tn_loader *l)
{
    const int64_t *numbers = NULL;

    while (!l->ended && l->filled - l->given < l->slots_count) {
        slot *s = &l->slots[l->filled % l->slots_count];

        s->count = tn_sampler_next(l->sampler, &numbers);
        if (!s->count) {
            l->ended = true;
            break;
        }
        memcpy(s->numbers, numbers, (size_t)s->count * sizeof *numbers);
        (void)pthread_mutex_lock(&l->lock);
        s->state = READY;
        l->filled++;
        (void)pthread_cond_broadcast(&l->change);
        (void)pthread_mutex_unlock(&l->lock);
    }
}

/* Waits until its thread is done. False: it never comes, since another one failed before it was begun. */
static bool slot_wait(tn_loader *l, slot *s)
{
    bool done;

    if (!l->o.workers) {
        if (s->state != DONE) /* it failed before */
            batch_make(l, s);
        s->state = DONE;
        return true;
    }
    (void)pthread_mutex_lock(&l->lock);
    while (s->state != DONE && !(l->stop && s->state == READY))
        (void)pthread_cond_wait(&l->change, &l->lock);
    done = s->state == DONE;
    (void)pthread_mutex_unlock(&l->lock);
    return done;
}

size_t tn_loader_next(tn_loader *l, tn_array *out[8])
{
    tn_app *app = l && !l->failed && tnn_ok(l->object.app) ? l->object.app : NULL;
    size_t count;
    slot *s;

    if (!app || !out)
        return 0;
    tnn_scope_end(app, l);
    slots_fill(l);
    if (l->given == l->filled) { /* the next call begins the next epoch */
        l->ended = false;
        return 0;
    }
    s = &l->slots[l->given % l->slots_count];
    if (!slot_wait(l, s))
        return (size_t)!tnn_fail(app, TN_E_STATE, "a loader: it has stopped");
    if (s->status)
        return (size_t)!tnn_fail(app, s->status, "%s", s->text);
    tnn_scope_begin(app, l);
    for (size_t f = 0; f < s->field_count && !app->status; f++) {
        out[f] = NULL;
        if (!tnn_check(app,
                       tn_array_from(app->ctx, s->fields[f].dtype, s->fields[f].ndim, s->fields[f].shape,
                                     s->fields[f].data, &out[f]),
                       "a loader"))
            out[f] = tn_app_own(app, out[f]);
    }
    count = app->status ? 0 : s->field_count;
    slot_clear(s);
    l->given++;
    slots_fill(l); /* before the program works with the batch */
    return count;
}

void tn_loader_close(tn_loader *l)
{
    if (l) {
        if (l->object.app)
            tnn_scope_end(l->object.app, l);
        tnn_object_drop(&l->object);
    }
}
