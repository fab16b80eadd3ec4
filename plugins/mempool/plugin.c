/* The plugin `mempool`: three ways to keep freed memory. It opens nothing and starts no thread. */
#include "mempool.h"

#include <stdlib.h>

static tn_status mempool_init(const tn_host *host, void **plugin, tn_err *err)
{
    const tn_memory_service *memory = tn_host_service(host, TN_SERVICE_MEMORY);
    const tnpool_plugin made = {host, memory};
    tnpool_plugin *p;

    if (memory &&
        (!TN_OFFERS(memory, tn_memory_service, alloc) || !TN_OFFERS(memory, tn_memory_service, free)))
        return tn_fail(err, TN_E_UNSUPPORTED, "the host's memory service lacks alloc or free");
    p = tnpool_new(&made, sizeof *p);
    if (!p)
        return tn_fail(err, TN_E_NOMEM, "out of host memory");
    *p = made;
    *plugin = p;
    return TN_OK;
}

static void mempool_fini(void *plugin)
{
    tnpool_plugin *p = plugin;

    if (p) {
        const tnpool_plugin made = *p;

        tnpool_delete(&made, p);
    }
}

static const tn_capability *const capabilities[] = {
    &tnpool_naive.head,
    &tnpool_round.head,
    &tnpool_segment.head,
    NULL,
};

TN_PLUGIN_DEFINE("mempool", "0.1.0", "Tenon", "Apache-2.0", "memory pools: naive, round, segment", "",
                 "pool:naive pool:round pool:segment", mempool_init, mempool_fini, NULL, capabilities);
