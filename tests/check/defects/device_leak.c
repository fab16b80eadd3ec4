/* Keeps the memory of events. */
#include "healthy_device.h"

static void destroy(tn_event *e)
{
    (void)e;
}

DEFECT_DEVICE("defect-device-leak", .open = device_open, .stream_wait = stream_wait, .event_destroy = destroy,
              .event_notify = event_notify, .copy = stream_copy);
