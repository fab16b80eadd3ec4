/* Installs a signal handler in init. */
#include "healthy.h"

#include <signal.h>

static void handler(int number)
{
    (void)number;
}

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    (void)err;
    (void)signal(SIGUSR2, handler);
    return TN_OK;
}

HEALTHY_POOL("defect-init-signal", init, NULL);
