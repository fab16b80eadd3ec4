/*
 * Events and the driver thread.
 *
 * Each record makes a new point; the event names the latest one, and waits, queries and notifications hold on
 * to the point that was the latest when they were made. So an event may be recorded again while older points
 * are open.
 *
 * A point is reached by its stream's thread. Its notifications then go to the device's driver thread, which
 * calls them late and, with reorder = 1, not in the order in which they came in: each exactly once, none
 * before its point.
 */
#include "fake.h"

#include <inttypes.h>

/* ---- points -------------------------------------------------------------------------------------- */

tnfake_point *tnfake_point_create(tnfake_plugin *plugin)
{
    tnfake_point *point = tnfake_new(plugin, sizeof *point);

    if (!point)
        return NULL;
    point->plugin = plugin;
    atomic_init(&point->refs, 1u);
    pthread_mutex_init(&point->lock, NULL);
    pthread_cond_init(&point->changed, NULL);
    return point;
}

tnfake_point *tnfake_point_retain(tnfake_point *point)
{
    if (point)
        atomic_fetch_add_explicit(&point->refs, 1u, memory_order_relaxed);
    return point;
}

void tnfake_point_release(tnfake_point *point)
{
    if (!point || atomic_fetch_sub_explicit(&point->refs, 1u, memory_order_acq_rel) != 1u)
        return;
    pthread_cond_destroy(&point->changed);
    pthread_mutex_destroy(&point->lock);
    tnfake_delete(point->plugin, point);
}

static void driver_add(tnfake_note *note)
{
    tnfake_driver *driver = &note->device->driver;

    note->next = NULL;
    pthread_mutex_lock(&driver->lock);
    *driver->last = note;
    driver->last = &note->next;
    driver->count++;
    pthread_cond_signal(&driver->changed);
    pthread_mutex_unlock(&driver->lock);
}

void tnfake_point_reach(tnfake_point *point, const tn_err *err)
{
    tnfake_note *notes;

    pthread_mutex_lock(&point->lock);
    point->reached = true;
    point->err = *err;
    notes = point->notes;
    point->notes = NULL;
    pthread_cond_broadcast(&point->changed);
    pthread_mutex_unlock(&point->lock);
    while (notes) {
        tnfake_note *note = notes;

        notes = note->next;
        note->err = *err;
        driver_add(note);
    }
}

bool tnfake_point_wait(tnfake_point *point, atomic_ullong *blocked, tn_err *err)
{
    pthread_mutex_lock(&point->lock);
    if (!point->reached)
        atomic_fetch_add_explicit(blocked, 1u, memory_order_relaxed);
    while (!point->reached)
        pthread_cond_wait(&point->changed, &point->lock);
    *err = point->err;
    pthread_mutex_unlock(&point->lock);
    return err->code == TN_OK;
}

/* ---- the driver thread --------------------------------------------------------------------------- */

/* Takes the first note, or with reorder = 1 any of them. The lock is held. */
static tnfake_note *driver_pick_locked(tn_device_handle *device)
{
    tnfake_driver *driver = &device->driver;
    tnfake_note **at = &driver->first, *note;
    uint64_t skip = 0;

    if (device->plugin->reorder)
        skip = tnfake_random(device->plugin->seed, UINT64_MAX - (uint64_t)device->index, driver->drawn++) %
               driver->count;
    if (skip)
        atomic_fetch_add_explicit(&device->count.notifications_reordered, 1u, memory_order_relaxed);
    while (skip--)
        at = &(*at)->next;
    note = *at;
    *at = note->next;
    if (!note->next)
        driver->last = at;
    driver->count--;
    return note;
}

static void driver_main(void *arg)
{
    tn_device_handle *device = arg;
    tnfake_driver *driver = &device->driver;
    const tnfake_plugin *p = device->plugin;

    pthread_mutex_lock(&driver->lock);
    for (;;) {
        tnfake_note *note;
        uint64_t random;

        while (!driver->count && !driver->closing)
            pthread_cond_wait(&driver->changed, &driver->lock);
        if (!driver->count)
            break;
        random = tnfake_random(p->seed, UINT64_MAX / 2 - (uint64_t)device->index, driver->drawn++);
        if (!driver->closing && random % 4 == 0) { /* a quarter is late; meanwhile others come in */
            pthread_mutex_unlock(&driver->lock);
            tnfake_sleep((uint32_t)((random >> 8) % ((uint64_t)p->delay_us + 1)));
            pthread_mutex_lock(&driver->lock);
        }
        note = driver_pick_locked(device);
        pthread_mutex_unlock(&driver->lock);
        atomic_fetch_add_explicit(&device->count.notifications, 1u, memory_order_relaxed);
        note->fn(note->arg, note->err.code, note->err.code ? &note->err : NULL);
        tnfake_delete(device->plugin, note);
        pthread_mutex_lock(&driver->lock);
    }
    pthread_mutex_unlock(&driver->lock);
}

tn_status tnfake_driver_start(tn_device_handle *device, tn_err *err)
{
    tnfake_driver *driver = &device->driver;
    tn_status st;

    pthread_mutex_init(&driver->lock, NULL);
    pthread_cond_init(&driver->changed, NULL);
    driver->last = &driver->first;
    st = tnfake_thread_start(device->plugin, "tn-fake-driver", driver_main, device, &driver->thread);
    return st ? tn_fail(err, st, "no thread for the device's notifications") : TN_OK;
}

void tnfake_driver_stop(tn_device_handle *device)
{
    tnfake_driver *driver = &device->driver;

    pthread_mutex_lock(&driver->lock);
    driver->closing = true;
    pthread_cond_signal(&driver->changed);
    pthread_mutex_unlock(&driver->lock);
    tnfake_thread_join(device->plugin, driver->thread);
    pthread_cond_destroy(&driver->changed);
    pthread_mutex_destroy(&driver->lock);
}

/* ---- events -------------------------------------------------------------------------------------- */

tn_status tnfake_event_create(tn_device_handle *device, tn_event **out, tn_err *err)
{
    tn_event *event;

    if (!device || !out)
        return tn_fail(err, TN_E_ARG, "no device");
    event = tnfake_new(device->plugin, sizeof *event);
    if (!event)
        return tn_fail(err, TN_E_NOMEM, "out of host memory for an event");
    event->device = device;
    pthread_mutex_init(&event->lock, NULL);
    *out = event;
    return TN_OK;
}

/* What waits for the event's points goes on waiting: points live as long as somebody holds them. */
void tnfake_event_destroy(tn_event *event)
{
    tnfake_plugin *plugin;

    if (!event)
        return;
    plugin = event->device->plugin;
    if (tnfake_forked(plugin, NULL))
        return;
    tnfake_point_release(event->point);
    pthread_mutex_destroy(&event->lock);
    tnfake_delete(plugin, event);
}

tnfake_point *tnfake_event_point(tn_event *event)
{
    tnfake_point *point;

    pthread_mutex_lock(&event->lock);
    point = tnfake_point_retain(event->point);
    pthread_mutex_unlock(&event->lock);
    return point;
}

void tnfake_event_move(tn_event *event, tnfake_point *point)
{
    tnfake_point *old;

    pthread_mutex_lock(&event->lock);
    old = event->point;
    event->point = point;
    pthread_mutex_unlock(&event->lock);
    tnfake_point_release(old);
}

static bool records(tn_stream *stream)
{
    bool recording;

    pthread_mutex_lock(&stream->lock);
    recording = stream->recording != NULL;
    pthread_mutex_unlock(&stream->lock);
    return recording;
}

tn_status tnfake_event_record(tn_event *event, tn_stream *stream, tn_err *err)
{
    tnfake_point *point;
    tn_status st;

    if (!event || !stream)
        return tn_fail(err, TN_E_ARG, "a record needs an event and a stream");
    if (records(stream))
        return tnfake_submit(stream, &(tnfake_item){.kind = TNFAKE_RECORD, .event = event}, err);
    point = tnfake_point_create(event->device->plugin);
    if (!point)
        return tn_fail(err, TN_E_NOMEM, "out of host memory for an event");
    (void)tnfake_point_retain(point); /* one for the event, one for the queue */
    if ((st = tnfake_submit(stream, &(tnfake_item){.kind = TNFAKE_RECORD, .point = point}, err))) {
        tnfake_point_release(point);
        tnfake_point_release(point);
        return st;
    }
    tnfake_event_move(event, point);
    return TN_OK;
}

/* An event that was never recorded is no reason to wait. */
tn_status tnfake_event_wait(tn_stream *stream, tn_event *event, tn_err *err)
{
    tnfake_point *point;
    tn_status st;

    if (!event || !stream)
        return tn_fail(err, TN_E_ARG, "a wait needs a stream and an event");
    if (records(stream))
        return tnfake_submit(stream, &(tnfake_item){.kind = TNFAKE_WAIT, .event = event}, err);
    point = tnfake_event_point(event);
    if (!point)
        return TN_OK;
    if ((st = tnfake_submit(stream, &(tnfake_item){.kind = TNFAKE_WAIT, .point = point}, err)))
        tnfake_point_release(point);
    return st;
}

tn_status tnfake_event_query(tn_event *event, tn_err *err)
{
    tnfake_point *point;
    tn_status st = TN_OK;

    if (!event)
        return tn_fail(err, TN_E_ARG, "no event");
    if ((st = tnfake_forked(event->device->plugin, err)))
        return st;
    point = tnfake_event_point(event);
    if (!point)
        return TN_OK;
    pthread_mutex_lock(&point->lock);
    st = point->reached ? point->err.code : TN_PENDING;
    if (st > 0 && err)
        *err = point->err;
    pthread_mutex_unlock(&point->lock);
    tnfake_point_release(point);
    return st;
}

tn_status tnfake_event_notify(tn_event *event, void (*fn)(void *arg, tn_status status, const tn_err *err),
                              void *arg, tn_err *err)
{
    tnfake_point *point;
    tnfake_note *note;
    tn_status st;
    bool now = true;

    if (!event || !fn)
        return tn_fail(err, TN_E_ARG, "a notification needs an event and a function");
    if ((st = tnfake_forked(event->device->plugin, err)))
        return st;
    note = tnfake_new(event->device->plugin, sizeof *note);
    if (!note)
        return tn_fail(err, TN_E_NOMEM, "out of host memory for a notification");
    note->device = event->device;
    note->fn = fn;
    note->arg = arg;
    point = tnfake_event_point(event);
    if (point) {
        pthread_mutex_lock(&point->lock);
        now = point->reached;
        note->err = point->err;
        if (!now) {
            note->next = point->notes;
            point->notes = note;
        }
        pthread_mutex_unlock(&point->lock);
        tnfake_point_release(point);
    }
    if (now)
        driver_add(note);
    return TN_OK;
}
