/* Opens a socket in init and keeps it. */
#include "healthy.h"

#include <sys/socket.h>
#include <unistd.h>

static int number = -1;

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)plugin;
    (void)err;
    number = socket(AF_UNIX, SOCK_STREAM, 0);
    return TN_OK;
}

static void fini(void *plugin)
{
    (void)plugin;
    (void)close(number);
}

HEALTHY_POOL("defect-init-socket", init, fini);
