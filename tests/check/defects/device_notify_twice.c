/* Tells twice that an event was reached. */
#include "healthy_device.h"

static tn_status notify(tn_event *e, void (*fn)(void *arg, tn_status status, const tn_err *err), void *arg,
                        tn_err *err)
{
    tn_status st = event_notify(e, fn, arg, err);

    return st ? st : event_notify(e, fn, arg, err);
}

DEFECT_DEVICE("defect-device-notify-twice", .open = device_open, .stream_wait = stream_wait,
              .event_destroy = event_destroy, .event_notify = notify, .copy = stream_copy);
