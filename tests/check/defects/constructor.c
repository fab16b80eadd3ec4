/* Does work before init. */
#include "healthy.h"

static volatile int ready; /* a compiler must not do it beforehand */

__attribute__((constructor)) static void early(void)
{
    ready = 1;
}

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    return ready ? TN_OK : tn_fail(err, TN_E_STATE, "not ready");
}

HEALTHY_POOL("defect-constructor", init, NULL);
