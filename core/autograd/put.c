/*
 * What a node-by-node pass made becomes the gradients: one operation for all leaves, so that lack of memory
 * changes all or none of them. Like a program, it fails as a whole if one of its inputs did.
 */
#include "autograd/walk.h"

bool tni_gradient_near(const tni_device *d, const tni_array *grad)
{
    return grad->storage->device == d || grad->storage->device->host;
}

static tn_status put_check(const tni_device *d, tni_array *made, const tni_array *grad)
{
    tn_status st;

    if (!tni_array_writable(grad))
        return tni_error(TN_E_STATE, "the gradient is memory that may only be read");
    if (!tni_gradient_near(d, grad))
        return tni_error(TN_E_DEVICE, "a gradient is on %s:%d, the pass runs on %s:%d",
                         grad->storage->device->type, grad->storage->device->index, d->type, d->index);
    if (!made)
        return TN_OK;
    if ((st = tni_array_shape_wait(made)))
        return st;
    if (made->dtype != grad->dtype || !tni_array_has_shape(grad, made->ndim, made->shape))
        return tni_error(TN_E_INTERNAL, "a gradient came out in another shape or dtype than its array");
    return TN_OK;
}

tn_status tni_gradients_put(const tni_tape_walk *w, uint32_t count, tni_array *const *made,
                            tni_array *const *grads, const uint8_t *modes)
{
    tni_device *d = w->heads[0]->storage->device;
    tni_moves *m = NULL;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < count && !st; i++) {
        const bool add = modes[i] == TN_MODE_ADD;

        if (modes[i] == TN_MODE_NONE || (!made[i] && (add || !tni_gradient_near(d, grads[i]))))
            continue;
        if (!(st = put_check(d, made[i], grads[i])))
            st = tni_moves_add(&m, count, made[i], grads[i], add);
    }
    if (!st && m)
        return tni_moves_push(m, d, "gradients of a pass");
    tni_moves_destroy(m);
    return st;
}
