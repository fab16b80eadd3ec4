/* Calls the core by a symbol instead of through its tables. */
#include "healthy.h"

const char *tn_version(void);

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    return tn_version()[0] ? TN_OK : tn_fail(err, TN_E_STATE, "no version");
}

HEALTHY_POOL("defect-core-symbol", init, NULL);
