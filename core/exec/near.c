/*
 * Kernels of a device that take some arguments in host memory. What such an input holds is copied there, and
 * the kernel begins when it has arrived; what such an output holds is copied back by one operation behind the
 * kernel. Nothing of the caller's arrays changes before that one.
 */
#include "exec/call.h"

/* A host array in place of `a`; retained like an array that stays where it is. */
static tn_status near_of(tni_context *c, tni_device *host, bool near, tni_array *a, tni_array **out)
{
    if (near)
        return tni_array_create(c->space, host, a->dtype, a->ndim, a->shape, "copy", out);
    tni_array_retain(*out = a);
    return TN_OK;
}

typedef struct near_call {
    tni_array **in, **out; /* what the kernel gets; retained */
    tni_moves *back;
} near_call;

static tn_status arguments_make(tni_context *c, const tni_signature *sig, tni_array *const *in,
                                tni_array *const *out, near_call *n)
{
    const tn_kernel *k = sig->prepared->kernel;
    const uint64_t mutates = sig->def->op->mutates;
    const uint32_t outs = sig->out_count + sig->mutated_count;
    tni_device *host;
    tn_status st = tni_device_get(c->devices, "cpu", 0, &host);

    for (uint32_t i = 0; i < sig->in_count && !st; i++) {
        const bool near = tni_kernel_near(k, mutates, sig->in_count, outs, i);

        if (!(st = near_of(c, host, near, in[i], &n->in[i])) && near &&
            !(st = tni_array_copy(in[i], n->in[i])) && i < 64 && mutates >> i & 1u)
            st = tni_moves_add(&n->back, outs, n->in[i], in[i], false);
    }
    for (uint32_t i = 0; i < sig->out_count && !st; i++) {
        const bool near = tni_kernel_near(k, mutates, sig->in_count, outs, sig->in_count + i);

        if (!(st = near_of(c, host, near, out[i], &n->out[i])) && near)
            st = tni_moves_add(&n->back, outs, n->out[i], out[i], false);
    }
    return st;
}

tn_status tni_call_near(tni_context *c, tni_signature *sig, tni_attrs *attrs, tni_array *const *in,
                        tni_array *const *out, const tni_call_with *with)
{
    near_call n = {.in = tni_calloc(sig->in_count + sig->out_count + 1u, sizeof *n.in)};
    tn_status st;

    if (!n.in)
        return TN_E_NOMEM;
    n.out = n.in + sig->in_count;
    if (!(st = arguments_make(c, sig, in, out, &n)) &&
        !(st = tni_call_push(c, sig, attrs, n.in, n.out, with)) && n.back) {
        st = tni_moves_push(n.back, sig->device, "_copy");
        n.back = NULL;
    }
    tni_moves_destroy(n.back);
    for (uint32_t i = 0; i < sig->in_count + sig->out_count; i++)
        tni_array_release(n.in[i]);
    tni_free(n.in);
    return st;
}
