/* The second init fails: what fini leaves is not as it was. */
#include "healthy.h"

static int count;

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    return count++ ? tn_fail(err, TN_E_STATE, "was initialised before") : TN_OK;
}

HEALTHY_POOL("defect-init-once", init, NULL);
