/* Recorded work of devices: whether one records, who may give streams something meanwhile, and freeing it,
 * which no child does. */
#include "device/internal.h"

bool tni_device_graphs(const tni_device *d)
{
    const tn_device_ops *o = d->ops;

    return !d->host && TN_OFFERS(o, tn_device_ops, graph_free) && o->graph_begin && o->graph_end &&
           o->graph_update && o->graph_launch;
}

void tni_device_graph_free(tni_device *d, tn_device_graph *graph)
{
    if (graph && !atomic_load(&d->set->forked))
        d->ops->graph_free(graph);
}

void tni_device_recording_lock(tni_device *d)
{
    tni_mutex_lock(&tni_device_impl(d)->recording_lock);
}

void tni_device_recording_unlock(tni_device *d)
{
    tni_mutex_unlock(&tni_device_impl(d)->recording_lock);
}
