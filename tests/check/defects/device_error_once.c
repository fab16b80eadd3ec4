/* A stream forgets its error once it has told it. */
#include "healthy_device.h"

static tn_status wait(tn_stream *s, tn_err *err)
{
    tn_status st = stream_wait(s, err);

    s->failed.code = TN_OK;
    return st;
}

DEFECT_DEVICE("defect-device-error-once", .open = device_open, .stream_wait = wait,
              .event_destroy = event_destroy, .event_notify = event_notify, .copy = stream_copy);
