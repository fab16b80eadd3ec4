/*
 * What a node-by-node pass made becomes the gradients: one operation for all leaves, so that lack of memory
 * changes all or none of them. Like a program, it fails as a whole if one of its inputs did.
 */
#include "autograd/walk.h"

static tn_status put_run(void *payload, tni_run *run)
{
    tni_moves *m = *(tni_moves **)payload;
    const tn_status st = tni_moves_reserve(m, run);

    return st ? st : tni_moves_run(m, run);
}

static void put_done(void *payload, tni_engine *engine, tn_status status)
{
    (void)engine;
    (void)status;
    tni_moves_destroy(*(tni_moves **)payload);
}

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

/* Fills in variables and flags of `task` for each move. */
static tn_status put_leaf(tni_task *task, tni_moves **m, uint32_t most, tni_array *made, tni_array *grad,
                          bool add)
{
    tni_var **writes = (tni_var **)(uintptr_t)task->writes, **reads = (tni_var **)(uintptr_t)task->reads;

    writes[task->write_count++] = tni_array_var(grad);
    if (made)
        reads[task->read_count++] = tni_array_var(made);
    if (!grad->storage->device->host || (made && !made->storage->device->host))
        task->device = grad->storage->device->host ? made->storage->device : grad->storage->device;
    if (add || tni_array_bytes(grad) != grad->storage->bytes)
        task->flags = 0;
    return tni_moves_add(m, most, made, grad, add);
}

tn_status tni_gradients_put(const tni_tape_walk *w, uint32_t count, tni_array *const *made,
                            tni_array *const *grads, const uint8_t *modes)
{
    const tni_device *d = w->heads[0]->storage->device;
    tni_var **vars = tni_calloc(2ull * count + 1, sizeof(*vars));
    tni_moves *m = NULL;
    tni_task task = {.run = put_run,
                     .done = put_done,
                     .payload = &m,
                     .payload_bytes = sizeof(tni_moves *),
                     .reads = vars,
                     .writes = vars + count,
                     .flags = TNI_TASK_CLEARS,
                     .name = "gradients of a pass"};
    tn_status st = vars ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < count && !st; i++) {
        const bool add = modes[i] == TN_MODE_ADD;

        if (modes[i] == TN_MODE_NONE || (!made[i] && (add || !tni_gradient_near(d, grads[i]))))
            continue;
        if (!(st = put_check(d, made[i], grads[i])))
            st = put_leaf(&task, &m, count, made[i], grads[i], add);
    }
    if (!st && m)
        st = tni_engine_push(w->ctx->engine, &task);
    if (st)
        tni_moves_destroy(m);
    tni_free(vars);
    return st;
}
