/* Takes memory of any device for its own. */
#include "healthy_device.h"

static tn_status copy(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes, tn_err *err)
{
    tn_place to = *dst, from = *src;

    to.type = from.type = NULL;
    return stream_copy(s, &to, &from, bytes, err);
}

DEFECT_DEVICE("defect-device-copy-foreign", .open = device_open, .stream_wait = stream_wait,
              .event_destroy = event_destroy, .event_notify = event_notify, .copy = copy);
