/* Forgets one notification of a hundred. */
#include "healthy_device.h"

static int count;

static tn_status notify(tn_event *e, void (*fn)(void *arg, tn_status status, const tn_err *err), void *arg,
                        tn_err *err)
{
    return ++count % 100 ? event_notify(e, fn, arg, err) : TN_OK;
}

DEFECT_DEVICE("defect-device-notify-never", .open = device_open, .stream_wait = stream_wait,
              .event_destroy = event_destroy, .event_notify = notify, .copy = stream_copy);
