/* init fails with a text that has no end. */
#include <string.h>

#include "healthy.h"

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    memset(err->message, 'x', sizeof err->message);
    return TN_E_DEVICE;
}

HEALTHY_POOL("defect-init-text", init, NULL);
