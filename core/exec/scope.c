/* Thread-local switches. Calls capture what they need when they are made; workers never read them. */
#include "exec/internal.h"

static TN_THREAD_LOCAL_FAST tni_scope scope;

tni_scope *tni_scope_get(void)
{
    return &scope;
}

tn_status tni_default_device(tni_context *c, tni_device **out)
{
    tni_device *d = scope.device;

    if (d && d->set == c->devices) {
        *out = d;
        return TN_OK;
    }
    *out = c->exec->default_device;
    return TN_OK;
}
