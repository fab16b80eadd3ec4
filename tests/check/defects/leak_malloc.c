/* fini forgets what init took by malloc. */
#include "healthy.h"

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    *plugin = malloc(100);
    return *plugin ? TN_OK : tn_fail(err, TN_E_NOMEM, "out of host memory");
}

HEALTHY_POOL("defect-leak-malloc", init, NULL);
