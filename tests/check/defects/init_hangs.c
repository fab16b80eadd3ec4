/* Waits in init for what never comes. */
#include "healthy.h"

#include <unistd.h>

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    (void)err;
    for (;;)
        (void)pause();
    return TN_OK;
}

HEALTHY_POOL("defect-init-hangs", init, NULL);
