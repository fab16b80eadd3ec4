/* Copies the first MiB of what is longer. */
#include "healthy_device.h"

static tn_status copy(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes, tn_err *err)
{
    return stream_copy(s, dst, src, bytes > 1u << 20 ? 1u << 20 : bytes, err);
}

DEFECT_DEVICE("defect-device-copy-short", .open = device_open, .stream_wait = stream_wait,
              .event_destroy = event_destroy, .event_notify = event_notify, .copy = copy);
