/*
 * Group device: events, notifications, errors of streams, many threads, memory that fails.
 */
#include "device.h"

#include <stdlib.h>
#include <string.h>

#define PAIRS 40u
#define HELDS 2u      /* of these */
#define HELD_US 5000u /* for what does not wait */
#define HELD_MS 100u  /* for who waits in the call itself */
#define NOTICES 200u
#define THREADS 6u
#define NOTES 60u /* of each thread */

/* ---- events ---- */

typedef struct flag {
    atomic_uint set;
    chk_env *env;
    uint32_t pause_us;
    chk_hold *hold; /* NULL: only the pause */
} flag;

static tn_status flag_set(void *arg, tn_err *err)
{
    flag *f = arg;

    (void)err;
    if (f->hold)
        chk_hold_wait(f->hold);
    chk_sleep_us(f->pause_us);
    atomic_store(&f->set, 1);
    return TN_OK;
}

static tn_status flag_asked(void *arg, tn_err *err)
{
    flag *f = arg;

    (void)err;
    if (!atomic_load(&f->set))
        chk_fail(f->env, "D-event", "a stream that waits for an event goes on before the event is reached");
    return TN_OK;
}

/* What stream `b` does behind event_wait comes after what stream `a` did before event_record. `hold`: until
 * `b` had its time. */
static void pair(chk_device *d, tn_stream *a, tn_stream *b, tn_event *e, flag *f, chk_hold *hold)
{
    tn_status st;

    *f = (flag){.env = d->env, .pause_us = (uint32_t)(chk_random(d->env) % 500), .hold = hold};
    if (hold)
        chk_hold_begin(hold, HELD_MS);
    chk_device_call(d, a, flag_set, f);
    CHK_MUST(d, event_record, e, a);
    CHK_MUST(d, event_wait, b, e);
    st = d->ops->event_query(e, &chk_err);
    chk_fail_if(d->env, st != TN_OK && st != TN_PENDING, NULL, "event_query gives %s", tn_status_name(st));
    if (st == TN_OK && !atomic_load(&f->set))
        chk_fail(d->env, NULL, "event_query says reached, but the work before it is not done");
    chk_device_call(d, b, flag_asked, f);
    if (hold) {
        chk_quiet_us(HELD_US);
        chk_hold_end(hold);
    }
    chk_count(d->env);
}

void chk_device_events(chk_env *env)
{
    static flag flags[PAIRS];
    static chk_hold holds[HELDS];
    chk_device d;
    tn_stream *a, *b;
    tn_event *e;

    chk_device_open(&d, env, CHK_HOST_EXACT);
    a = chk_device_stream(&d);
    b = chk_device_stream(&d);
    e = chk_device_event(&d);
    for (uint32_t i = 0; i < PAIRS; i++)
        pair(&d, i % 2 ? b : a, i % 2 ? a : b, e, &flags[i], i < HELDS ? &holds[i] : NULL);
    chk_device_wait(&d, a);
    chk_device_wait(&d, b);
    if (d.ops->event_query(e, &chk_err) != TN_OK)
        chk_fail(env, NULL, "all work is done, and event_query does not say so");
    chk_device_unblocked(&d, a, b, e);
    d.ops->stream_destroy(a); /* before the event that it was recorded on */
    d.ops->event_destroy(e);
    d.ops->stream_destroy(b);
    chk_device_close(&d);
}

/* ---- notifications ---- */

/* Two notifications of one point, and a third one of the next point of the same event. */
static void several(chk_device *d, tn_stream *s, tn_event *const *events)
{
    static chk_notice notices[3];
    static flag flags[2];

    for (uint32_t i = 0; i < 3; i++) {
        if (i != 1) {
            flags[i / 2] = (flag){.env = d->env, .pause_us = 3000};
            chk_device_call(d, s, flag_set, &flags[i / 2]);
            CHK_MUST(d, event_record, events[0], s);
        }
        chk_device_notify(d, events[0], &notices[i]);
    }
    for (uint32_t i = 0; i < 3; i++) {
        chk_notice_wait(d, &notices[i]);
        if (!atomic_load(&flags[i / 2].set))
            chk_fail(d->env, NULL, "a notification comes before the work before it is done");
    }
    chk_device_wait(d, s);
}

void chk_device_notified(chk_env *env)
{
    static chk_notice notices[NOTICES];
    static flag flags[NOTICES];
    tn_event *events[NOTICES];
    chk_device d;
    tn_stream *s;

    chk_device_open(&d, env, CHK_HOST_EXACT);
    s = chk_device_stream(&d);
    for (uint32_t i = 0; i < NOTICES; i++) {
        flags[i] = (flag){.env = env};
        events[i] = chk_device_event(&d);
        chk_device_call(&d, s, flag_set, &flags[i]);
        CHK_MUST(&d, event_record, events[i], s);
        chk_device_notify(&d, events[i], &notices[i]);
    }
    for (uint32_t i = 0; i < NOTICES; i++) {
        chk_notice_wait(&d, &notices[i]);
        if (atomic_load(&notices[i].status) || !atomic_load(&flags[i].set))
            chk_fail(env, NULL, "a notification says %s, and the work before it is %s",
                     tn_status_name(atomic_load(&notices[i].status)),
                     atomic_load(&flags[i].set) ? "done" : "not done");
    }
    chk_device_wait(&d, s);
    several(&d, s, events);
    /* An event that was reached is notified too. */
    chk_device_notify(&d, events[0], &notices[0]);
    chk_notice_wait(&d, &notices[0]);
    for (uint32_t i = 0; i < NOTICES; i++)
        d.ops->event_destroy(events[i]);
    d.ops->stream_destroy(s);
    chk_quiet_us(20000); /* a second call would come now */
    chk_device_close(&d);
}

/* ---- errors ---- */

static tn_status broken(void *arg, tn_err *err)
{
    (void)arg;
    return tn_fail(err, TN_E_INTERNAL, "broken on purpose");
}

static tn_status nothing(void *arg, tn_err *err)
{
    (void)arg;
    (void)err;
    return TN_OK;
}

/* A status of a call sticks to its stream, reaches waits and notifications, and no other stream. */
void chk_device_errors(chk_env *env)
{
    chk_device d;
    tn_stream *bad, *good;
    tn_event *e;
    chk_notice notice;
    bool recorded;
    tn_status st;

    chk_device_open(&d, env, CHK_HOST_EXACT);
    bad = chk_device_stream(&d);
    good = chk_device_stream(&d);
    e = chk_device_event(&d);
    chk_device_call(&d, bad, broken, NULL);
    st = d.ops->event_record(e, bad, &chk_err);
    recorded = st == TN_OK;
    if (recorded) { /* a device may refuse at once, or later */
        chk_device_notify(&d, e, &notice);
        chk_notice_wait(&d, &notice);
        if (!atomic_load(&notice.status))
            chk_fail(env, NULL, "a stream failed, and the notification behind says TN_OK");
    }
    for (int i = 0; i < 2; i++) {
        chk_err.message[0] = '\0';
        st = d.ops->stream_wait(bad, &chk_err);
        chk_device_said(&d, "stream_wait", st, &chk_err);
        chk_count(env);
        if (!st || !*chk_err.message)
            chk_fail(env, NULL, "a call of a stream failed, and stream_wait number %d gives %s: %s", i + 1,
                     tn_status_name(st), chk_err.message);
    }
    if (recorded && (st = d.ops->event_query(e, &chk_err)) <= TN_OK)
        chk_fail(env, NULL, "a stream failed, and event_query of an event behind gives %s",
                 tn_status_name(st));
    chk_device_call(&d, good, nothing, NULL);
    chk_device_wait(&d, good);
    d.ops->event_destroy(e);
    d.ops->stream_destroy(bad);
    d.ops->stream_destroy(good);
    chk_device_close(&d);
}

/* ---- threads ---- */

typedef struct worker {
    chk_device *device;
    pthread_t id;
    atomic_uint calls;
    uint32_t number;
} worker;

static tn_status count_call(void *arg, tn_err *err)
{
    (void)err;
    atomic_fetch_add(&((worker *)arg)->calls, 1);
    return TN_OK;
}

static void *work(void *arg)
{
    worker *w = arg;
    chk_device *d = w->device;
    tn_stream *s = chk_device_stream(d);
    unsigned char *there = chk_device_alloc(d, TN_MEMORY_DEVICE, 5000);
    static chk_notice notices[THREADS][NOTES]; /* a second call may come to any of them */
    unsigned char here[5000], back[5000];
    const tn_place to = chk_device_place(d, there);
    const tn_place from = chk_host_place(here), home = chk_host_place(back);

    for (uint32_t i = 0; i < NOTES; i++) {
        chk_notice *notice = &notices[w->number][i];
        tn_event *e = chk_device_event(d);

        memset(here, (int)(i + w->number * 31), sizeof here);
        chk_device_copy(d, s, &to, &from, sizeof here);
        chk_device_call(d, s, count_call, w);
        chk_device_copy(d, s, &home, &to, sizeof here);
        CHK_MUST(d, event_record, e, s);
        chk_device_notify(d, e, notice);
        chk_notice_wait(d, notice);
        if (memcmp(here, back, sizeof here) != 0 || atomic_load(&w->calls) != i + 1)
            chk_fail(d->env, NULL, "a copy or a call got lost between threads");
        d->ops->event_destroy(e);
    }
    d->ops->free(d->handle, TN_MEMORY_DEVICE, there);
    d->ops->stream_destroy(s);
    return NULL;
}

void chk_device_threads(chk_env *env)
{
    static worker workers[THREADS];
    chk_device d;

    chk_device_open(&d, env, CHK_HOST_EXACT);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i].device = &d;
        workers[i].number = i;
        chk_fail_if(env, pthread_create(&workers[i].id, NULL, work, &workers[i]), "kit", "no thread");
    }
    for (uint32_t i = 0; i < THREADS; i++)
        (void)pthread_join(workers[i].id, NULL);
    chk_device_close(&d);
}

/* ---- where memory fails ---- */

#define FRAGILE_MS 10000u /* for notifications */

typedef struct fragile {
    tn_stream *stream;
    tn_event *event;
    void *memory;
    atomic_uint calls, notes;
} fragile;

static tn_status fragile_call(void *arg, tn_err *err)
{
    (void)err;
    atomic_fetch_add(&((fragile *)arg)->calls, 1);
    return TN_OK;
}

static void fragile_note(void *arg, tn_status status, const tn_err *err)
{
    (void)status;
    (void)err;
    atomic_fetch_add(&((fragile *)arg)->notes, 1);
}

/* `made`: where the call was to leave what it made. */
static bool nomem(chk_device *d, const char *call, tn_status st, const void *made)
{
    const void *pointer;

    memcpy(&pointer, made, sizeof pointer);
    chk_fail_if(d->env, !st && !pointer, NULL, "where an allocation fails, %s gives TN_OK and nothing", call);
    if (st && st != TN_E_NOMEM)
        chk_fail(d->env, NULL, "where an allocation fails, %s gives %s instead of TN_E_NOMEM", call,
                 tn_status_name(st));
    return st != TN_OK;
}

/* As far as memory goes; what was promised with TN_OK is done. */
static void fragile_life(chk_device *d, fragile *f)
{
    uint32_t calls = 0, notes = 0;
    struct timespec end;

    if (nomem(d, "open", d->ops->open(d->plugin.self, 0, &d->handle, &chk_err), &d->handle))
        d->handle = NULL;
    if (!d->handle ||
        nomem(d, "stream_create", d->ops->stream_create(d->handle, 0, &f->stream, &chk_err), &f->stream))
        return;
    if (nomem(d, "alloc", d->ops->alloc(d->handle, TN_MEMORY_DEVICE, 1000, &f->memory, &chk_err), &f->memory))
        f->memory = NULL;
    calls += !nomem(d, "stream_call", d->ops->stream_call(f->stream, fragile_call, f, &chk_err), &f);
    if (nomem(d, "event_create", d->ops->event_create(d->handle, &f->event, &chk_err), &f->event))
        f->event = NULL;
    if (f->event && !nomem(d, "event_record", d->ops->event_record(f->event, f->stream, &chk_err), &f))
        notes += !nomem(d, "event_notify", d->ops->event_notify(f->event, fragile_note, f, &chk_err), &f);
    chk_host_fail_at(d->plugin.host, 0);
    if (d->ops->stream_wait(f->stream, &chk_err))
        chk_fail(d->env, NULL, "a stream failed because a call was refused: %s", chk_err.message);
    end = chk_deadline(FRAGILE_MS);
    while (atomic_load(&f->notes) < notes && chk_pause(&end))
        ;
    if (atomic_load(&f->calls) != calls)
        chk_fail(d->env, "D-order", "%u calls were promised, %u came", (unsigned)calls,
                 (unsigned)atomic_load(&f->calls));
    if (atomic_load(&f->notes) != notes)
        chk_fail(d->env, "D-notify", "%u notifications were promised, %u came", (unsigned)notes,
                 (unsigned)atomic_load(&f->notes));
}

void chk_device_nomem(chk_env *env)
{
    for (uint64_t nth = 1, over = 0; !over && nth < 500; nth++) {
        uint64_t before;
        chk_device d;
        fragile f = {0};

        chk_device_begin(&d, env, CHK_HOST_EXACT);
        if (!d.count)
            chk_skip(env, "no device of this type is here");
        before = chk_host_memory(d.plugin.host, NULL);
        chk_host_fail_at(d.plugin.host, nth);
        fragile_life(&d, &f);
        over = !chk_host_failed(d.plugin.host) && f.memory && f.event;
        chk_host_fail_at(d.plugin.host, 0);
        if (f.event)
            d.ops->event_destroy(f.event);
        if (f.memory)
            d.ops->free(d.handle, TN_MEMORY_DEVICE, f.memory);
        if (f.stream)
            d.ops->stream_destroy(f.stream);
        if (d.handle)
            d.ops->close(d.handle);
        d.handle = NULL;
        chk_host_left(d.plugin.host, before, "where allocation %llu fails, after close",
                      (unsigned long long)nth);
        chk_device_close(&d);
        chk_count(env);
    }
}
