/* fini leaves a thread running. */
#include "healthy.h"

#include <pthread.h>
#include <unistd.h>

static void *work(void *arg)
{
    (void)arg;
    for (;;)
        (void)pause();
    return NULL;
}

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    pthread_t id;

    (void)host;
    (void)plugin;
    return pthread_create(&id, NULL, work, NULL) ? tn_fail(err, TN_E_NOMEM, "no thread") : TN_OK;
}

HEALTHY_POOL("defect-thread-left", init, NULL);
