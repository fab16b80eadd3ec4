/*
 * Streams and events. A stream is a queue and a thread that carries items out in order, each after a random
 * delay, so streams overtake each other. Copies from and to memory that is not pinned behave as the driver
 * says: small ones are read at once, others make the caller wait (CUDA Driver API, "API synchronization
 * behavior").
 */
#include "emulator.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HELD_US 200000u     /* how late work is that nobody waits for, by a fault */
#define STAGED_BYTES 65536u /* copies up to here read their source when they are asked for */

/* ---- points ------------------------------------------------------------------------------------------ */

emu_point *emu_point_create(void)
{
    emu_point *p = emu_new(sizeof *p);

    atomic_store(&p->refs, 1u);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, NULL);
    return p;
}

emu_point *emu_point_retain(emu_point *point)
{
    if (point)
        atomic_fetch_add(&point->refs, 1u);
    return point;
}

void emu_point_release(emu_point *point)
{
    if (!point || atomic_fetch_sub(&point->refs, 1u) != 1)
        return;
    (void)pthread_cond_destroy(&point->changed);
    (void)pthread_mutex_destroy(&point->lock);
    free(point);
}

static void point_reach(emu_point *p)
{
    (void)pthread_mutex_lock(&p->lock);
    p->reached = true;
    (void)pthread_cond_broadcast(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
}

static void point_await(emu_point *p)
{
    (void)pthread_mutex_lock(&p->lock);
    while (!p->reached)
        (void)pthread_cond_wait(&p->changed, &p->lock);
    (void)pthread_mutex_unlock(&p->lock);
}

/* ---- carrying out ------------------------------------------------------------------------------------ */

static void late(uint32_t us)
{
    const struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};

    if (us)
        (void)nanosleep(&t, NULL);
}

static void *end_of(const tncuda_copy_end *e)
{
    return e->type == TNCUDA_MEMORY_HOST ? e->host : (void *)(uintptr_t)e->device;
}

static void kernel_do(tncuda_stream s, const emu_item *i)
{
    const tncuda_result due = emu_due(EMU_KERNEL);

    if (due)
        emu_context_fail(s->context, due);
    else
        emu_kernel_run(i->kernel, i->grid, i->block, i->args, emu_random(s->number, s->done));
}

/* Behind a failure the driver makes callbacks alone; points are reached, so that all ends. */
static void carry_out(tncuda_stream s, emu_item *i)
{
    const tncuda_result failed = atomic_load(&s->context->failed);

    if (i->kind == ITEM_RECORD)
        point_reach(i->point);
    else if (i->kind == ITEM_WAIT)
        point_await(i->point);
    else if (i->kind == ITEM_CALLBACK || (i->kind == ITEM_FUNCTION && !failed)) {
        emu_in_function = true;
        if (i->kind == ITEM_CALLBACK)
            i->callback(s, failed, i->arg);
        else
            i->fn(i->arg);
        emu_in_function = false;
    } else if (i->kind == ITEM_COPY && !failed)
        memmove(end_of(&i->copy.dst), i->staged ? i->staged : end_of(&i->copy.src), i->copy.bytes);
    else if (i->kind == ITEM_KERNEL && !failed)
        kernel_do(s, i);
}

static void item_free(emu_item *i)
{
    emu_point_release(i->point);
    free(i->staged);
    free(i->args);
    free(i);
}

/* Whether the first kernel has still to wait for items behind it. */
static bool lags_locked(struct CUstream_st *s)
{
    s->goes = s->goes || s->closing || s->submitted - s->done >= emu_hold();
    return !s->goes && s->first && s->first->kind == ITEM_KERNEL;
}

static void *stream_main(void *arg)
{
    tncuda_stream s = arg;

    (void)pthread_mutex_lock(&s->lock);
    for (;;) {
        emu_item *i;
        uint32_t wait_us;

        while ((!s->first && !s->closing) || lags_locked(s))
            (void)pthread_cond_wait(&s->changed, &s->lock);
        if (!(i = s->first))
            break;
        wait_us = s->closing ? 0 : i->delay_us + s->held_us;
        s->held_us = 0;
        s->begun = s->done + 1;
        (void)pthread_mutex_unlock(&s->lock);
        late(wait_us);
        carry_out(s, i);
        (void)pthread_mutex_lock(&s->lock);
        if (!(s->first = i->next))
            s->last = &s->first;
        s->done++;
        (void)pthread_cond_broadcast(&s->changed);
        item_free(i);
    }
    (void)pthread_mutex_unlock(&s->lock);
    emu_block_end();
    return NULL;
}

/* ---- queueing ---------------------------------------------------------------------------------------- */

static uint32_t delay_locked(tncuda_stream s, const emu_item *i)
{
    const uint64_t random = emu_random(s->number + 1000, s->drawn++);

    if (i->kind == ITEM_RECORD || i->kind == ITEM_WAIT || random & 3u)
        return 0;
    return (uint32_t)((random >> 8) % ((uint64_t)emu_delay_us() + 1));
}

void emu_queue(tncuda_stream stream, emu_item *first)
{
    (void)pthread_mutex_lock(&stream->lock);
    while (first) {
        emu_item *i = first;

        first = i->next;
        i->next = NULL;
        i->delay_us = delay_locked(stream, i);
        *stream->last = i;
        stream->last = &i->next;
        stream->submitted++;
        if (i->kind == ITEM_RECORD) {
            i->point->stream = stream;
            i->point->work = stream->work;
        } else if (i->kind != ITEM_WAIT)
            stream->work = stream->submitted;
    }
    emu_queued(stream->submitted - stream->done);
    (void)pthread_cond_broadcast(&stream->changed);
    (void)pthread_mutex_unlock(&stream->lock);
}

tncuda_result emu_submit(tncuda_stream stream, const emu_item *like)
{
    emu_item *i;

    if (stream->capture && stream->capture_broken) {
        free(like->args);
        return 901; /* STREAM_CAPTURE_INVALIDATED */
    }
    if (stream->capture) {
        emu_capture(stream->capture, like);
        return 0;
    }
    i = emu_new(sizeof *i);
    *i = *like;
    emu_queue(stream, i);
    return 0;
}

void emu_stream_drain(tncuda_stream stream)
{
    uint64_t until;

    (void)pthread_mutex_lock(&stream->lock);
    until = stream->submitted;
    stream->goes = true;
    (void)pthread_cond_broadcast(&stream->changed);
    while (stream->done < until)
        (void)pthread_cond_wait(&stream->changed, &stream->lock);
    (void)pthread_mutex_unlock(&stream->lock);
}

/* ---- the driver's functions -------------------------------------------------------------------------- */

tncuda_result emu_stream_create(tncuda_stream *out, uint32_t flags, int32_t priority)
{
    static atomic_ullong numbers;
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_stream_create, &c);
    tncuda_stream s;

    if (result || flags != TNCUDA_STREAM_NON_BLOCKING || priority > 0)
        return result ? result : TNCUDA_INVALID_VALUE;
    s = emu_new(sizeof *s);
    s->context = c;
    s->number = atomic_fetch_add(&numbers, 1u);
    s->last = &s->first;
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    if (pthread_create(&s->thread, NULL, stream_main, s)) {
        free(s);
        return 304; /* OPERATING_SYSTEM */
    }
    (void)pthread_mutex_lock(&c->lock);
    s->next = c->streams;
    c->streams = s;
    (void)pthread_mutex_unlock(&c->lock);
    *out = s;
    return 0;
}

/* What is queued runs out, as the driver's streams do behind the call. */
tncuda_result emu_stream_destroy(tncuda_stream stream)
{
    tncuda_context c = stream->context, now;
    tncuda_result result = emu_enter(EMU_stream_destroy, &now);

    (void)pthread_mutex_lock(&stream->lock);
    stream->closing = true;
    (void)pthread_cond_broadcast(&stream->changed);
    (void)pthread_mutex_unlock(&stream->lock);
    (void)pthread_join(stream->thread, NULL);
    (void)pthread_mutex_lock(&c->lock);
    for (tncuda_stream *at = &c->streams; *at; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    (void)pthread_mutex_unlock(&c->lock);
    (void)pthread_cond_destroy(&stream->changed);
    (void)pthread_mutex_destroy(&stream->lock);
    free(stream);
    return result;
}

tncuda_result emu_stream_wait(tncuda_stream stream)
{
    tncuda_context c;
    tncuda_result result = emu_enter(EMU_stream_wait, &c);

    if (result || (result = emu_capture_breaks(stream)))
        return result;
    emu_stream_drain(stream);
    return atomic_load(&c->failed);
}

/* A stream may be made or destroyed meanwhile: each is found anew. */
tncuda_result emu_context_wait(void)
{
    tncuda_context c;
    tncuda_result result = emu_enter(EMU_context_wait, &c);
    uint32_t count = 0;

    if (result)
        return result;
    (void)pthread_mutex_lock(&c->lock);
    for (tncuda_stream s = c->streams; s; s = s->next, count++)
        if (!result) /* the context encompasses its streams */
            result = emu_capture_breaks(s);
    if (result) {
        (void)pthread_mutex_unlock(&c->lock);
        return result;
    }
    for (uint32_t round = 0; round < count; round++) /* one may queue work in another one */
        for (tncuda_stream s = c->streams; s; s = s->next)
            emu_stream_drain(s);
    (void)pthread_mutex_unlock(&c->lock);
    return atomic_load(&c->failed);
}

tncuda_result emu_stream_function(tncuda_stream stream, void (*fn)(void *arg), void *arg)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_stream_function, &c);

    return result ? result : emu_submit(stream, &(emu_item){.kind = ITEM_FUNCTION, .fn = fn, .arg = arg});
}

tncuda_result emu_stream_callback(tncuda_stream stream,
                                  void (*fn)(tncuda_stream stream, tncuda_result status, void *arg),
                                  void *arg, uint32_t flags)
{
    tncuda_context c;
    tncuda_result result = emu_enter(EMU_stream_callback, &c);

    if (result || flags || (result = emu_capture_breaks(stream)))
        return result ? result : TNCUDA_INVALID_VALUE;
    return emu_submit(stream, &(emu_item){.kind = ITEM_CALLBACK, .callback = fn, .arg = arg});
}

/* ---- copies ------------------------------------------------------------------------------------------ */

static tncuda_copy_end end_make(tncuda_address at, int32_t kind)
{
    tncuda_copy_end e = {.type = kind == 1 ? 2u : TNCUDA_MEMORY_HOST};

    if (kind == 1)
        e.device = at;
    else
        e.host = (void *)(uintptr_t)at;
    return e;
}

static tncuda_result copy_do(tncuda_stream s, tncuda_address dst, tncuda_address src, size_t bytes)
{
    const int32_t to = emu_memory_kind(dst, bytes), from = emu_memory_kind(src, bytes);
    emu_item i = {.kind = ITEM_COPY,
                  .copy = {.src = end_make(src, from), .dst = end_make(dst, to), .bytes = bytes}};
    bool waits = !s->capture && (to == 0 || (from == 0 && bytes > STAGED_BYTES));

    if (to < 0 || from < 0 || !dst || !src)
        return TNCUDA_INVALID_VALUE;
    i.copy.height = i.copy.depth = 1;
    if (from == 0 && to == 1 && bytes <= STAGED_BYTES && !s->capture) {
        i.staged = emu_new(bytes);
        memcpy(i.staged, (const void *)(uintptr_t)src, bytes);
    }
    (void)emu_submit(s, &i);
    if (waits)
        emu_stream_drain(s);
    return 0;
}

tncuda_result emu_copy(tncuda_address dst, tncuda_address src, size_t bytes, tncuda_stream stream)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_copy, &c);

    return result ? result : copy_do(stream, dst, src, bytes);
}

tncuda_result emu_copy_peer(tncuda_address dst, tncuda_context dst_context, tncuda_address src,
                            tncuda_context src_context, size_t bytes, tncuda_stream stream)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_copy_peer, &c);

    if (result || !dst_context || !src_context || dst_context == src_context)
        return result ? result : TNCUDA_INVALID_VALUE;
    return emu_memory_kind(dst, bytes) == 1 && emu_memory_kind(src, bytes) == 1
               ? copy_do(stream, dst, src, bytes)
               : TNCUDA_INVALID_VALUE;
}

/* ---- events ------------------------------------------------------------------------------------------ */

tncuda_result emu_event_create(tncuda_event *out, uint32_t flags)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_event_create, &c);

    if (result || flags != TNCUDA_EVENT_NO_TIMING)
        return result ? result : TNCUDA_INVALID_VALUE;
    *out = emu_new(sizeof **out);
    (void)pthread_mutex_init(&(*out)->lock, NULL);
    return 0;
}

tncuda_result emu_event_destroy(tncuda_event event)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_event_destroy, &c);

    emu_point_release(event->point);
    (void)pthread_mutex_destroy(&event->lock);
    free(event);
    return result;
}

tncuda_result emu_event_record(tncuda_event event, tncuda_stream stream, uint32_t flags)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_event_record, &c);
    emu_point *made;

    if (result || (flags != 0) != (stream->capture != NULL))
        return result ? result : TNCUDA_INVALID_VALUE;
    if (stream->capture)
        return emu_submit(stream, &(emu_item){.kind = ITEM_RECORD, .event = event});
    made = emu_point_create();
    (void)pthread_mutex_lock(&event->lock);
    emu_point_release(event->point);
    event->point = emu_point_retain(made);
    (void)pthread_mutex_unlock(&event->lock);
    return emu_submit(stream, &(emu_item){.kind = ITEM_RECORD, .point = made});
}

/* Whether a wait is left out: of those alone whose work is not begun. That work is late, then. */
static bool edge_dropped(tncuda_stream by, emu_point *p)
{
    tncuda_stream s = p->stream;
    bool dropped = false;

    (void)pthread_mutex_lock(&p->lock);
    if (!p->reached && s != by) { /* so it is not gone */
        (void)pthread_mutex_lock(&s->lock);
        dropped = s->begun < p->work && emu_due(EMU_EDGE);
        if (dropped)
            s->held_us = HELD_US;
        (void)pthread_mutex_unlock(&s->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return dropped;
}

tncuda_result emu_stream_event(tncuda_stream stream, tncuda_event event, uint32_t flags)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_stream_event, &c);
    emu_point *p;

    if (result || (flags != 0) != (stream->capture != NULL))
        return result ? result : TNCUDA_INVALID_VALUE;
    if (stream->capture)
        return emu_submit(stream, &(emu_item){.kind = ITEM_WAIT, .event = event});
    (void)pthread_mutex_lock(&event->lock);
    p = emu_point_retain(event->point);
    (void)pthread_mutex_unlock(&event->lock);
    if (!p || !edge_dropped(stream, p))
        return p ? emu_submit(stream, &(emu_item){.kind = ITEM_WAIT, .point = p}) : 0;
    emu_point_release(p);
    return 0;
}

tncuda_result emu_event_query(tncuda_event event)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_event_query, &c);
    bool reached = true;

    if (result)
        return result;
    (void)pthread_mutex_lock(&event->lock);
    if (event->point) {
        (void)pthread_mutex_lock(&event->point->lock);
        reached = event->point->reached;
        (void)pthread_mutex_unlock(&event->point->lock);
    }
    (void)pthread_mutex_unlock(&event->lock);
    return reached ? atomic_load(&c->failed) : TNCUDA_NOT_READY;
}
