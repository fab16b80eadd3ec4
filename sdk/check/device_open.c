/*
 * Opening a device for a test, and its calls with their statuses checked.
 */
#include "device.h"

#include <string.h>

#define NOTICE_S 15u   /* a notification that takes longer never comes; */
#define STILL_MS 3000u /* nor where nobody has done anything for so long */

void chk_device_said(chk_device *d, const char *call, tn_status st, const tn_err *err)
{
    if (st < TN_OK || st > TN_E_INTERNAL)
        chk_fail(d->env, "R1", "%s gives %d, which is no status", call, (int)st);
    if (st && !memchr(err->message, '\0', sizeof err->message))
        chk_fail(d->env, "R1", "the text of %s has no end", call);
}

_Thread_local tn_err chk_err;

void chk_device_must(chk_device *d, const char *call, tn_status st)
{
    chk_count(d->env);
    chk_device_said(d, call, st, &chk_err);
    chk_fail_if(d->env, st, NULL, "%s fails with %s: %s", call, tn_status_name(st), chk_err.message);
    chk_err.message[0] = '\0';
}

static void *made_check(chk_device *d, const char *call, void *made)
{
    chk_fail_if(d->env, !made, NULL, "%s gives TN_OK and nothing", call);
    return made;
}

void chk_device_begin(chk_device *d, chk_env *env, chk_host_kind kind)
{
    int32_t count = -1;

    *d = (chk_device){.env = env, .ops = chk_capability(env, TN_KIND_DEVICE, env->subject, NULL)};
    chk_fail_if(env, !d->ops, "kit", "the plugin has no device called \"%s\"", env->subject);
    chk_fault_rules(env, "D-bounds", "D-bounds", "the device");
    (void)chk_plugin_open(env, kind, &d->plugin);
    if (d->ops->count(d->plugin.self, &count, &chk_err) == TN_E_DEVICE && *chk_err.message)
        chk_skip(env, "%s", chk_err.message);
    CHK_MUST(d, count, d->plugin.self, &count);
    chk_fail_if(env, count < 0, NULL, "count says %d devices", (int)count);
    d->count = count;
}

void chk_device_open(chk_device *d, chk_env *env, chk_host_kind kind)
{
    chk_device_begin(d, env, kind);
    if (!d->count)
        chk_skip(env, "no device of this type is here");
    CHK_MUST(d, open, d->plugin.self, 0, &d->handle);
    d->info.struct_size = (uint32_t)TN_END(tn_device_info, alignment);
    CHK_MUST(d, info, d->handle, &d->info);
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

    CHK_MUST(d, stream_create, d->handle, 0, &made);
    return made_check(d, "stream_create", made);
}

tn_event *chk_device_event(chk_device *d)
{
    tn_event *made = NULL;

    CHK_MUST(d, event_create, d->handle, &made);
    return made_check(d, "event_create", made);
}

void *chk_device_alloc(chk_device *d, int32_t memory, uint64_t bytes)
{
    void *made = NULL;

    CHK_MUST(d, alloc, d->handle, memory, bytes, &made);
    return made_check(d, "alloc", made);
}

void chk_device_wait(chk_device *d, tn_stream *s)
{
    CHK_MUST(d, stream_wait, s);
}

void chk_device_call(chk_device *d, tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg)
{
    CHK_MUST(d, stream_call, s, fn, arg);
}

void chk_device_copy(chk_device *d, tn_stream *s, const tn_place *to, const tn_place *from, uint64_t bytes)
{
    CHK_MUST(d, copy, s, to, from, bytes);
}

static void notified(void *arg, tn_status status, const tn_err *err)
{
    chk_notice *n = arg;

    (void)err;
    atomic_store(&n->status, status);
    chk_fail_if(n->env, atomic_fetch_add(&n->calls, 1) > 0, "D-notify", "one notification is called twice");
}

void chk_device_notify(chk_device *d, tn_event *e, chk_notice *notice)
{
    *notice = (chk_notice){.env = d->env};
    CHK_MUST(d, event_notify, e, notified, notice);
}

void chk_notice_wait(chk_device *d, chk_notice *notice)
{
    const struct timespec end = chk_deadline(NOTICE_S * 1000);
    chk_stillness still = {0};

    while (!atomic_load(&notice->calls))
        if ((!chk_pause(&end) || chk_is_over(&still, STILL_MS)) && !atomic_load(&notice->calls))
            chk_fail(d->env, "D-notify", "a notification did not come");
}
