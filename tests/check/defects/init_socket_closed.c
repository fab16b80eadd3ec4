/* init asks the network something, and closes its socket again. */
#include <sys/socket.h>
#include <unistd.h>

#include "healthy.h"

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    const int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

    (void)host, (void)plugin, (void)err;
    if (fd >= 0)
        (void)close(fd);
    return TN_OK;
}

HEALTHY_POOL("defect-init-socket-closed", init, NULL);
