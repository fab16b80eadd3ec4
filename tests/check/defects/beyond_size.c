/* Reads a member that the host's table has not: struct_size is not looked at. */
#include "healthy.h"

typedef struct newer_host {
    tn_host host;
    const void *services_by_number;
} newer_host;

static const void *volatile seen;

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)plugin;
    (void)err;
    seen = ((const newer_host *)host)->services_by_number;
    return TN_OK;
}

HEALTHY_POOL("defect-beyond-size", init, NULL);
