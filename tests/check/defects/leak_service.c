/* fini forgets a block of the memory service. */
#include "healthy.h"

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    const tn_memory_service *memory = tn_host_service(host, TN_SERVICE_MEMORY);

    if (!memory)
        return TN_OK;
    *plugin = memory->alloc(host, 100, 64);
    return *plugin ? TN_OK : tn_fail(err, TN_E_NOMEM, "out of host memory");
}

HEALTHY_POOL("defect-leak-service", init, NULL);
