/*
 * A device under test: opened by the kit, with the handles of its streams and events.
 */
#ifndef TN_CHECK_DEVICE_H
#define TN_CHECK_DEVICE_H

#include "internal.h"

typedef struct chk_device {
    chk_env *env;
    chk_plugin plugin;
    const tn_device_ops *ops;
    tn_device_handle *handle; /* of device 0 */
    int32_t count;
    tn_device_info info;
} chk_device;

/* A run of an event's notification. */
typedef struct chk_notice {
    atomic_uint calls;
    _Atomic tn_status status;
    chk_env *env;
} chk_notice;

/* Opens the plugin on a host of `kind`, device 0 of the table env->subject; skips the case if there is no
 * device. */
void chk_device_open(chk_device *d, chk_env *env, chk_host_kind kind);
/* The plugin alone, and the number of its devices. */
void chk_device_begin(chk_device *d, chk_env *env, chk_host_kind kind);
void chk_device_close(chk_device *d);
/* A call of the device's table, which must go well: the text of its error is chk_err of the thread. */
#define CHK_MUST(d, name, ...) chk_device_must(d, #name, (d)->ops->name(__VA_ARGS__, &chk_err))
extern _Thread_local tn_err chk_err;
void chk_device_must(chk_device *d, const char *call, tn_status st);
/* Each ends the case if the call fails. */
tn_stream *chk_device_stream(chk_device *d);
tn_event *chk_device_event(chk_device *d);
void *chk_device_alloc(chk_device *d, int32_t memory, uint64_t bytes);
void chk_device_wait(chk_device *d, tn_stream *s);
void chk_device_call(chk_device *d, tn_stream *s, tn_status (*fn)(void *arg, tn_err *err), void *arg);
static inline tn_place chk_host_place(void *data)
{
    return (tn_place){.data = data, .device = -1, .memory = TN_MEMORY_HOST};
}

/* Memory of device 0. */
static inline tn_place chk_device_place(const chk_device *d, void *data)
{
    return (tn_place){.data = data, .device = 0, .memory = TN_MEMORY_DEVICE, .type = d->ops->head.id};
}

void chk_device_copy(chk_device *d, tn_stream *s, const tn_place *to, const tn_place *from, uint64_t bytes);
void chk_device_notify(chk_device *d, tn_event *e, chk_notice *notice);
/* Until the notification came, or a generous limit: fails the case then. */
void chk_notice_wait(chk_device *d, chk_notice *notice);
/* What a call that failed must say. */
void chk_device_said(chk_device *d, const char *call, tn_status st, const tn_err *err);

/* ---- device_streams.c ---- */

/* Holds a call of a stream back until the host ends that, or blocks; not where the call is made on the host's
 * own thread. */
typedef struct chk_hold {
    uint32_t limit_ms;
    pthread_t host;
    atomic_uint open, late;
} chk_hold;
void chk_hold_begin(chk_hold *h, uint32_t limit_ms);
void chk_hold_end(chk_hold *h);
void chk_hold_wait(chk_hold *h);

/* Each fails the case. */

/* Copies stand in the order of the calls around them. */
void chk_device_mixed(chk_device *d, tn_stream *s);
/* Copies between devices 0 and 1, if there are two. */
void chk_device_peers(chk_device *d, tn_stream *s);
/* event_record and event_wait come back at once. */
void chk_device_unblocked(chk_device *d, tn_stream *a, tn_stream *b, tn_event *e);

#endif
