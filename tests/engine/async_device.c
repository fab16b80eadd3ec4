/*
 * The device "late". A stream is a thread with a list of commands: a call, a record, a wait. Waits bind to
 * the point that was recorded when they were queued. Notifications are delivered by one more thread per
 * device, which picks any of those that are due. A call that fails makes its stream refuse all later calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "async_device.h"
#include "tenon/plugin/device.h"

#define COMMAND_CALL 0
#define COMMAND_RECORD 1
#define COMMAND_WAIT 2
#define DEVICES 2
#define DUE_MAX 16u /* notifications to choose from */

typedef struct command {
    struct command *next;
    int kind;
    tn_status (*fn)(void *arg, tn_err *err);
    void *arg;
    tn_event *event;
    uint64_t point;
} command;

typedef struct notice {
    struct notice *next;
    tn_event *event;
    uint64_t point, number;
    tn_status status;
    tn_err err;
    void (*fn)(void *arg, tn_status status, const tn_err *err);
    void *arg;
} notice;

struct tn_event {
    tn_device_handle *device;
    uint64_t recorded, reached;
    tn_status status;
    tn_err err;
};

struct tn_stream {
    tn_device_handle *device;
    pthread_t thread;
    command *head, **tail;
    bool busy, quit;
    tn_status status;
    tn_err err;
};

struct tn_device_handle {
    pthread_t driver;
    notice *notices; /* not delivered */
    uint64_t notice_count, delivered_last, random;
    bool quit, newest_first; /* the next one that is delivered */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static tn_device_handle *opened[DEVICES]; /* under `lock`, as is `held` */
static bool held;
static atomic_bool refuses;
static atomic_uint delay_us, refused;
static atomic_uint_fast64_t reordered;

void test_async_delay(uint32_t most_us)
{
    atomic_store(&delay_us, most_us);
}

void test_async_refuse(bool on)
{
    atomic_store(&refused, 0u);
    atomic_store(&refuses, on);
}

uint32_t test_async_refused(void)
{
    return atomic_load(&refused);
}

/* Counts what would have to wait for a stream that records. */
static tn_status refuse(tn_status st, tn_err *err)
{
    if (!atomic_load(&refuses))
        return TN_OK;
    atomic_fetch_add(&refused, 1u);
    return tn_fail(err, st, "the stream records");
}

uint64_t test_async_reordered(void)
{
    return atomic_load(&reordered);
}

uint32_t test_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static void delay(uint64_t *random)
{
    uint32_t most = atomic_load(&delay_us);

    if (most && test_random(random) % 4 == 0)
        tni_sleep_ns((uint64_t)(test_random(random) % most) * 1000u);
}

/* ---- device ---------------------------------------------------------------------------------------- */

static size_t notices_due(tn_device_handle *d, notice **due[DUE_MAX]) /* newest first; locked */
{
    size_t n = 0;

    for (notice **at = &d->notices; *at && n < DUE_MAX; at = &(*at)->next)
        if ((*at)->event->reached >= (*at)->point)
            due[n++] = at;
    return n;
}

static bool any_due(size_t wanted) /* locked */
{
    notice **due[DUE_MAX];
    bool found = !wanted;

    for (int i = 0; i < DEVICES; i++)
        found |= opened[i] && notices_due(opened[i], due) >= wanted;
    return found;
}

void test_async_hold(bool on, uint32_t due)
{
    pthread_mutex_lock(&lock);
    while (!on && !any_due(due))
        pthread_cond_wait(&changed, &lock);
    held = on;
    for (int i = 0; i < DEVICES; i++)
        if (opened[i])
            opened[i]->newest_first = !on;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static notice *notice_pick(tn_device_handle *d, uint64_t draw)
{
    notice **due[DUE_MAX];
    size_t n = held ? 0 : notices_due(d, due);
    notice *found;

    if (!n)
        return NULL;
    draw = d->newest_first ? 0 : draw % n;
    d->newest_first = false;
    found = *due[draw];
    *due[draw] = found->next;
    return found;
}

static void *driver_main(void *arg)
{
    tn_device_handle *d = arg;
    uint64_t random = d->random;

    pthread_mutex_lock(&lock);
    for (;;) {
        notice *n = notice_pick(d, test_random(&random));

        if (!n) {
            if (d->quit)
                break;
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        n->status = n->event->status;
        n->err = n->event->err;
        if (n->number < d->delivered_last)
            atomic_fetch_add(&reordered, 1u);
        d->delivered_last = n->number > d->delivered_last ? n->number : d->delivered_last;
        pthread_mutex_unlock(&lock);
        delay(&random);
        n->fn(n->arg, n->status, &n->err);
        free(n);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static tn_status late_count(void *plugin, int32_t *out, tn_err *err)
{
    (void)plugin;
    (void)err;
    *out = DEVICES;
    return TN_OK;
}

static tn_status late_open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    tn_device_handle *d = calloc(1, sizeof *d);

    (void)plugin;
    if (!d)
        return tn_fail(err, TN_E_NOMEM, "no memory");
    d->random = (uint64_t)index + 7;
    pthread_mutex_lock(&lock);
    opened[index] = d;
    pthread_mutex_unlock(&lock);
    pthread_create(&d->driver, NULL, driver_main, d);
    *out = d;
    return TN_OK;
}

static void late_close(tn_device_handle *d)
{
    pthread_mutex_lock(&lock);
    d->quit = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(d->driver, NULL);
    pthread_mutex_lock(&lock);
    for (int i = 0; i < DEVICES; i++)
        opened[i] = opened[i] == d ? NULL : opened[i];
    pthread_mutex_unlock(&lock);
    free(d);
}

static tn_status late_info(tn_device_handle *d, tn_device_info *out, tn_err *err)
{
    (void)d;
    (void)err;
    out->flags = TN_DEVICE_F_HOST_ADDRESSABLE;
    out->memory_total = out->memory_free = (uint64_t)1 << 30;
    out->alignment = 256;
    return TN_OK;
}

static tn_status late_alloc(tn_device_handle *d, int32_t memory, uint64_t bytes, void **out, tn_err *err)
{
    (void)d;
    (void)memory;
    *out = bytes < (uint64_t)1 << 30 ? aligned_alloc(256, (bytes + 255) & ~(uint64_t)255) : NULL;
    return *out ? TN_OK : tn_fail(err, TN_E_NOMEM, "device memory is full");
}

static void late_free(tn_device_handle *d, int32_t memory, void *data)
{
    (void)d;
    (void)memory;
    free(data);
}

/* ---- streams --------------------------------------------------------------------------------------- */

static void command_run(tn_stream *s, command *c, uint64_t *random) /* locked */
{
    tn_err err = {0};
    tn_status st;

    if (c->kind == COMMAND_CALL && !s->status) {
        pthread_mutex_unlock(&lock);
        delay(random);
        st = c->fn(c->arg, &err);
        pthread_mutex_lock(&lock);
        if (st) {
            s->status = st;
            s->err = err;
        }
    }
    if (c->kind == COMMAND_RECORD) {
        c->event->reached = c->point;
        c->event->status = s->status;
        c->event->err = s->err;
    }
    while (c->kind == COMMAND_WAIT && c->event->reached < c->point)
        pthread_cond_wait(&changed, &lock);
}

static void *stream_main(void *arg)
{
    tn_stream *s = arg;
    uint64_t random = (uint64_t)(uintptr_t)s;

    pthread_mutex_lock(&lock);
    for (;;) {
        command *c = s->head;

        if (!c) {
            if (s->quit)
                break;
            pthread_cond_wait(&changed, &lock);
            continue;
        }
        if (!(s->head = c->next))
            s->tail = &s->head;
        s->busy = true;
        command_run(s, c, &random);
        s->busy = false;
        free(c);
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

static tn_status late_stream_create(tn_device_handle *d, int32_t priority, tn_stream **out, tn_err *err)
{
    tn_stream *s = calloc(1, sizeof *s);

    (void)priority;
    if (!s)
        return tn_fail(err, TN_E_NOMEM, "no memory");
    s->device = d;
    s->tail = &s->head;
    pthread_create(&s->thread, NULL, stream_main, s);
    *out = s;
    return TN_OK;
}

static void late_stream_destroy(tn_stream *s)
{
    pthread_mutex_lock(&lock);
    s->quit = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(s->thread, NULL);
    free(s);
}

static void stream_add(tn_stream *s, command with) /* locked */
{
    command *c = malloc(sizeof *c);

    assert_non_null(c);
    *c = with;
    c->next = NULL;
    *s->tail = c;
    s->tail = &c->next;
    pthread_cond_broadcast(&changed);
}

static tn_status late_stream_wait(tn_stream *s, tn_err *err)
{
    tn_status st = refuse(TN_E_STATE, err);

    if (st)
        return st;
    pthread_mutex_lock(&lock);
    while (s->head || s->busy)
        pthread_cond_wait(&changed, &lock);
    if ((st = s->status))
        *err = s->err;
    pthread_mutex_unlock(&lock);
    return st;
}

static tn_status late_stream_call(tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg,
                                  tn_err *err)
{
    (void)err;
    pthread_mutex_lock(&lock);
    stream_add(s, (command){.kind = COMMAND_CALL, .fn = fn, .arg = arg});
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

/* ---- events ---------------------------------------------------------------------------------------- */

static tn_status late_event_create(tn_device_handle *d, tn_event **out, tn_err *err)
{
    tn_event *e = calloc(1, sizeof *e);

    if (!e)
        return tn_fail(err, TN_E_NOMEM, "no memory");
    e->device = d;
    *out = e;
    return TN_OK;
}

static void late_event_destroy(tn_event *e)
{
    free(e);
}

static tn_status late_event_record(tn_event *e, tn_stream *s, tn_err *err)
{
    (void)err;
    pthread_mutex_lock(&lock);
    e->status = TN_OK;
    stream_add(s, (command){.kind = COMMAND_RECORD, .event = e, .point = ++e->recorded});
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

static tn_status late_event_wait(tn_stream *s, tn_event *e, tn_err *err)
{
    (void)err;
    pthread_mutex_lock(&lock);
    stream_add(s, (command){.kind = COMMAND_WAIT, .event = e, .point = e->recorded});
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

static tn_status late_event_query(tn_event *e, tn_err *err)
{
    tn_status st;

    pthread_mutex_lock(&lock);
    st = e->reached < e->recorded ? TN_PENDING : e->status;
    if (st > 0)
        *err = e->err;
    pthread_mutex_unlock(&lock);
    if (st == TN_PENDING && atomic_load(&refuses))
        atomic_fetch_add(&refused, 1u);
    return st;
}

static tn_status late_event_notify(tn_event *e, void (*fn)(void *arg, tn_status status, const tn_err *err),
                                   void *arg, tn_err *err)
{
    notice *n = atomic_load(&refuses) ? NULL : calloc(1, sizeof *n);
    tn_device_handle *d = e->device;

    if (!n)
        return tn_fail(err, TN_E_NOMEM, "no memory");
    pthread_mutex_lock(&lock);
    *n = (notice){.next = d->notices,
                  .event = e,
                  .point = e->recorded,
                  .number = ++d->notice_count,
                  .fn = fn,
                  .arg = arg};
    d->notices = n;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return TN_OK;
}

static tn_status late_copy(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes,
                           tn_err *err)
{
    (void)s;
    (void)dst;
    (void)src;
    (void)bytes;
    return tn_fail(err, TN_E_UNSUPPORTED, "not mine to copy");
}

static const tn_device_ops late_ops = {
    .head = TN_CAPABILITY(tn_device_ops, copy, TN_KIND_DEVICE, "late"),
    .count = late_count,
    .open = late_open,
    .close = late_close,
    .info = late_info,
    .alloc = late_alloc,
    .free = late_free,
    .stream_create = late_stream_create,
    .stream_destroy = late_stream_destroy,
    .stream_wait = late_stream_wait,
    .stream_call = late_stream_call,
    .event_create = late_event_create,
    .event_destroy = late_event_destroy,
    .event_record = late_event_record,
    .event_wait = late_event_wait,
    .event_query = late_event_query,
    .event_notify = late_event_notify,
    .copy = late_copy,
};
static const tn_capability *const capabilities[] = {&late_ops.head, NULL};
const tn_plugin test_async_plugin = {
    .struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
    .magic = TN_MAGIC,
    .abi_major = TN_ABI_MAJOR,
    .abi_minor = TN_ABI_MINOR,
    .name = "late",
    .version = "1.0.0",
    .vendor = "tests",
    .license = "Apache-2.0",
    .summary = "an asynchronous device of the tests",
    .capabilities = capabilities,
};

/* ---- the engine of a test -------------------------------------------------------------------------- */

void test_engine_open(test_engine *t, tni_engine_options options)
{
    memset(t, 0, sizeof *t);
    t->logged = (heard)HEARD(TN_LOG_INFO);
    t->log = (tni_log){.fn = heard_take, .arg = &t->logged, .level = TN_LOG_INFO};
    if (!options.queue_max)
        options.queue_max = 65536;
    if (!options.threads)
        options.threads = 2;
    assert_int_equal(tni_options_create(NULL, &t->options), TN_OK);
    assert_int_equal(tni_registry_create(t->options, NULL, &t->registry), TN_OK);
    assert_int_equal(tni_registry_add_static(t->registry, &test_async_plugin, NULL), TN_OK);
    assert_int_equal(tni_device_set_create(t->options, t->registry, NULL, &t->devices), TN_OK);
    assert_int_equal(tni_engine_create(&options, t->devices, &t->log, &t->engine), TN_OK);
}

void test_engine_close(test_engine *t)
{
    tni_engine_destroy(t->engine);
    tni_device_set_destroy(t->devices);
    tni_registry_destroy(t->registry);
    tni_options_destroy(t->options);
}

uint64_t test_seed(void)
{
    const char *text = getenv("TENON_SEED");
    uint64_t seed;

    return text && tni_parse_u64(text, &seed) ? seed : 1;
}
