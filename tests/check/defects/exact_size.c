/* Takes a host of exactly its own size only: not one with a minor more. */
#include "healthy.h"

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)plugin;
    return host->struct_size == sizeof *host
               ? TN_OK
               : tn_fail(err, TN_E_UNSUPPORTED, "this host is of another version");
}

HEALTHY_POOL("defect-exact-size", init, NULL);
