/* Sets a variable of the environment in init. */
#include "healthy.h"

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    (void)err;
    (void)setenv("ACME_POOL_READY", "1", 1);
    return TN_OK;
}

HEALTHY_POOL("defect-init-setenv", init, NULL);
