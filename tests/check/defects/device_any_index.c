/* Opens devices that there are not. */
#include "healthy_device.h"

static tn_status open(void *plugin, int32_t index, tn_device_handle **out, tn_err *err)
{
    return device_open(plugin, index < 0 ? index : 0, out, err);
}

DEFECT_DEVICE("defect-device-any-index", .open = open, .stream_wait = stream_wait,
              .event_destroy = event_destroy, .event_notify = event_notify, .copy = stream_copy);
