/* tenon/autograd.h */
#include "tenon/autograd.h"
#include "api/api.h"

int32_t tn_record_set(int32_t on)
{
    tni_scope *scope = tni_scope_get();
    const bool before = scope->recording;

    scope->recording = on != 0;
    return before;
}

int32_t tn_train_set(int32_t on)
{
    tni_scope *scope = tni_scope_get();
    const bool before = scope->training;

    scope->training = on != 0;
    return before;
}

int32_t tn_np_shape_set(int32_t on)
{
    tni_scope *scope = tni_scope_get();
    const bool before = scope->np_shape;

    scope->np_shape = on != 0;
    return before;
}

int32_t tn_recording(void)
{
    return tni_scope_get()->recording;
}

int32_t tn_training(void)
{
    return tni_scope_get()->training;
}

tn_status tn_attach_grad(tn_ctx *ctx, tn_array *a, uint32_t mode, tn_array *grad)
{
    tn_array *const both[] = {a, grad};
    tn_status st;

    if (!ctx || !a)
        return api_null(__func__, "ctx or a");
    if ((st = api_arrays(__func__, ctx, 2, both)))
        return st;
    if (grad == a)
        return tni_error(TN_E_ARG, "an array cannot be its own gradient");
    if (grad && grad->storage->device != a->storage->device)
        return tni_error(TN_E_DEVICE, "the gradient given is on %s:%d, the array on %s:%d",
                         grad->storage->device->type, grad->storage->device->index, a->storage->device->type,
                         a->storage->device->index);
    return tni_grad_attach(ctx, a, mode, grad);
}

void tn_detach_grad(tn_array *a)
{
    if (a)
        tni_grad_detach(a);
}

tn_array *tn_array_grad(const tn_array *a)
{
    return a ? tni_grad_get(a) : NULL;
}

uint32_t tn_array_grad_mode(const tn_array *a)
{
    return a && a->grad ? a->grad_req : TN_MODE_NONE;
}

uint32_t tn_array_grad_turn(const tn_array *a)
{
    return a ? a->grad_turn : 0;
}

void tn_array_grad_touch(tn_array *a)
{
    if (a)
        a->grad_turn = tni_grad_turn();
}

static tn_status heads_check(const char *function, const tn_ctx *ctx, uint32_t count, tn_array *const *heads,
                             tn_array *const *head_grads)
{
    if (!count)
        return tni_error(TN_E_ARG, "%s: no heads", function);
    for (uint32_t i = 0; heads && i < count; i++)
        if (!heads[i])
            return tni_error(TN_E_ARG, "%s: head %u is NULL", function, i);
    return api_arrays(function, ctx, count, heads) ||
                   (head_grads && api_arrays(function, ctx, count, head_grads))
               ? TN_E_ARG
               : TN_OK;
}

static tn_status flags_read(const char *function, uint32_t known, uint32_t flags, tni_backward_options *out)
{
    if (flags & ~known)
        return tni_error(TN_E_ARG, "%s: flags 0x%x are not known", function, flags & ~known);
    out->create = (flags & TN_BACKWARD_CREATE) != 0;
    out->retain = (flags & TN_BACKWARD_RETAIN) != 0;
    out->predict = (flags & TN_BACKWARD_PREDICT) != 0;
    return TN_OK;
}

tn_status tn_backward(tn_ctx *ctx, uint32_t count, tn_array *const *heads, tn_array *const *head_grads,
                      uint32_t flags)
{
    tni_backward_options o;
    tn_status st;

    if (!ctx || !heads)
        return api_null(__func__, "ctx or heads");
    if ((st = heads_check(__func__, ctx, count, heads, head_grads)) ||
        (st = flags_read(__func__, TN_BACKWARD_RETAIN | TN_BACKWARD_PREDICT, flags, &o)))
        return st;
    return tni_backward(ctx, count, heads, head_grads, &o);
}

tn_status tn_gradients(tn_ctx *ctx, const tn_gradient_call *call, tn_array **out)
{
    tni_backward_options o;
    tn_gradient_call k;
    tn_status st;

    if (!ctx || !call || !out)
        return api_null(__func__, "ctx, call or out");
    if ((st = api_options(__func__, call, &k, (uint32_t)sizeof k)) ||
        (st = flags_read(__func__, TN_BACKWARD_RETAIN | TN_BACKWARD_PREDICT | TN_BACKWARD_CREATE, k.flags,
                         &o)))
        return st;
    if (!k.heads || !k.variables || !k.variable_count)
        return api_null(__func__, "heads or variables");
    for (uint32_t i = 0; i < k.variable_count; i++)
        if (!k.variables[i])
            return tni_error(TN_E_ARG, "%s: variable %u is NULL", __func__, i);
    if ((st = heads_check(__func__, ctx, k.head_count, k.heads, k.head_grads)) ||
        (st = api_arrays(__func__, ctx, k.variable_count, k.variables)))
        return st;
    return tni_grad(ctx, k.head_count, k.heads, k.head_grads, k.variable_count, k.variables, &o, out);
}
