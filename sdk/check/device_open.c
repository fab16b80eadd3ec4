/*
 * Opening a device for a test, and its calls with their statuses checked.
 */
#include "device.h"

#include <string.h>

#define NOTICE_STEP_US 1000u
#define NOTICE_S 5u /* a notification that takes longer never comes */

void chk_device_said(chk_device *d, const char *call, tn_status st, const tn_err *err)
{
    if (st < TN_OK || st > TN_E_INTERNAL)
        chk_fail(d->env, "R1", "%s gives %d, which is no status", call, (int)st);
    if (st && !memchr(err->message, '\0', sizeof err->message))
        chk_fail(d->env, "R1", "the text of %s has no end", call);
}

static void must(chk_device *d, const char *call, tn_status st, const tn_err *err)
{
    chk_count(d->env);
    chk_device_said(d, call, st, err);
    if (st)
        chk_fail(d->env, NULL, "%s fails with %s: %s", call, tn_status_name(st), err->message);
}

void chk_device_begin(chk_device *d, chk_env *env, chk_host_kind kind)
{
    tn_err err = {0};
    int32_t count = -1;

    *d = (chk_device){.env = env, .ops = chk_capability(env, TN_KIND_DEVICE, env->subject, NULL)};
    if (!d->ops)
        chk_fail(env, "kit", "the plugin has no device called \"%s\"", env->subject);
    chk_fault_rules(env, "D-bounds", "D-bounds", "the device");
    (void)chk_plugin_open(env, kind, &d->plugin);
    must(d, "count", d->ops->count(d->plugin.self, &count, &err), &err);
    if (count < 0)
        chk_fail(env, NULL, "count says %d devices", (int)count);
    d->count = count;
}

void chk_device_open(chk_device *d, chk_env *env, chk_host_kind kind)
{
    tn_err err = {0};

    chk_device_begin(d, env, kind);
    if (!d->count)
        chk_skip(env, "no device of this type is here");
    must(d, "open", d->ops->open(d->plugin.self, 0, &d->handle, &err), &err);
    d->info.struct_size = (uint32_t)TN_END(tn_device_info, alignment);
    must(d, "info", d->ops->info(d->handle, &d->info, &err), &err);
}

void chk_device_close(chk_device *d)
{
    if (d->handle)
        d->ops->close(d->handle);
    d->handle = NULL;
    (void)chk_plugin_close(d->env, &d->plugin);
}

tn_stream *chk_device_stream(chk_device *d)
{
    tn_stream *made = NULL;
    tn_err err = {0};

    must(d, "stream_create", d->ops->stream_create(d->handle, 0, &made, &err), &err);
    if (!made)
        chk_fail(d->env, NULL, "stream_create gives TN_OK and no stream");
    return made;
}

tn_event *chk_device_event(chk_device *d)
{
    tn_event *made = NULL;
    tn_err err = {0};

    must(d, "event_create", d->ops->event_create(d->handle, &made, &err), &err);
    if (!made)
        chk_fail(d->env, NULL, "event_create gives TN_OK and no event");
    return made;
}

void *chk_device_alloc(chk_device *d, int32_t memory, uint64_t bytes)
{
    void *made = NULL;
    tn_err err = {0};

    must(d, "alloc", d->ops->alloc(d->handle, memory, bytes, &made, &err), &err);
    if (!made)
        chk_fail(d->env, NULL, "alloc gives TN_OK and no memory");
    return made;
}

void chk_device_wait(chk_device *d, tn_stream *s)
{
    tn_err err = {0};

    must(d, "stream_wait", d->ops->stream_wait(s, &err), &err);
}

void chk_device_call(chk_device *d, tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg)
{
    tn_err err = {0};

    must(d, "stream_call", d->ops->stream_call(s, fn, arg, &err), &err);
}

void chk_device_copy(chk_device *d, tn_stream *s, const tn_place *to, const tn_place *from, uint64_t bytes)
{
    tn_err err = {0};

    must(d, "copy", d->ops->copy(s, to, from, bytes, &err), &err);
}

static void notified(void *arg, tn_status status, const tn_err *err)
{
    chk_notice *n = arg;

    (void)err;
    atomic_store(&n->status, status);
    if (atomic_fetch_add(&n->calls, 1) > 0)
        chk_fail(n->env, "D-notify", "one notification is called twice");
}

void chk_device_notify(chk_device *d, tn_event *e, chk_notice *notice)
{
    tn_err err = {0};

    *notice = (chk_notice){.env = d->env};
    must(d, "event_notify", d->ops->event_notify(e, notified, notice, &err), &err);
}

void chk_notice_wait(chk_device *d, chk_notice *notice)
{
    const uint64_t limit_s = NOTICE_S * chk_patience();
    chk_time t;

    chk_time_begin(&t);
    while (!atomic_load(&notice->calls))
        if (chk_time_sleep(&t, NOTICE_STEP_US) > limit_s * 1000000u && !atomic_load(&notice->calls))
            chk_fail(d->env, "D-notify", "a notification did not come within %llu s",
                     (unsigned long long)limit_s);
}
