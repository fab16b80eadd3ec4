/* A device with a flag that means nothing. */
#include "healthy_device.h"

static tn_status info(tn_device_handle *device, tn_device_info *out, tn_err *err)
{
    const tn_status st = device_info(device, out, err);

    out->flags |= 64u;
    return st;
}

#define device_info info
DEFECT_DEVICE("defect-device-unknown-flag", .open = device_open, .stream_wait = stream_wait,
              .event_destroy = event_destroy, .event_notify = event_notify, .copy = stream_copy);
