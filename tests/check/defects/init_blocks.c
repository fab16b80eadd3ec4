/* Sleeps in init. */
#include "healthy.h"

#include <time.h>

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    const struct timespec pause = {.tv_nsec = 140000000};

    (void)host;
    (void)plugin;
    (void)err;
    (void)nanosleep(&pause, NULL);
    return TN_OK;
}

HEALTHY_POOL("defect-init-blocks", init, NULL);
