/* Registers a function that runs when the process ends. */
#include "healthy.h"

static void late(void)
{
}

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    (void)err;
    return atexit(late) ? TN_E_NOMEM : TN_OK;
}

HEALTHY_POOL("defect-init-atexit", init, NULL);
