/* init sets a timer of the process. */
#include <unistd.h>

#include "healthy.h"

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host, (void)plugin, (void)err;
    (void)alarm(10000);
    return TN_OK;
}

HEALTHY_POOL("defect-init-timer", init, NULL);
