/* Writes to memory that it did not get. */
#include "healthy.h"

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    int *made = malloc(sizeof *made);

    (void)host;
    (void)err;
    *(volatile int *)made = 1;
    *plugin = made;
    return TN_OK;
}

static void fini(void *plugin)
{
    free(plugin);
}

HEALTHY_POOL("defect-nomem-crash", init, fini);
