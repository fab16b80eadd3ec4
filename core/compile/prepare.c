/*
 * A candidate becomes a prepared kernel: what the core does for it is settled (dense copies, sums, arguments
 * in host memory), `prepare` is asked, and the plan that it gives is checked.
 */
#include "compile/tuning.h"

#include <string.h>

void tni_prepared_retain(tni_prepared *p)
{
    tni_ref_retain(&p->refs);
}

void tni_prepared_release(tni_prepared *p)
{
    if (!p || !tni_ref_release(&p->refs))
        return;
    if (p->kernel->release)
        p->kernel->release(&p->plan);
    if (p->plan.tuning.release)
        p->plan.tuning.release(p->plan.tuning.data);
    tni_prepared_release(p->forward);
    tni_free(p->plan.inplace);
    tni_free((void *)p->plan.in_layout);
    tni_free((void *)p->plan.out_layout);
    tni_free(p);
}

/* Kernels compute narrow types in a wider one and would round a sum once; the core rounds what is added
 * first, as a kernel that writes does, unless the sum is a program's own. */
static bool rounds_late(const tni_request *r, const tn_kernel *k)
{
    if (r->moves || (r->flags & TN_NODE_ADD_SHORT && k->flags & TN_KERNEL_ADD_SHORT))
        return false;
    for (uint32_t o = 0; o < r->out_count; o++)
        if (r->out[o]->dtype == TN_F16 || r->out[o]->dtype == TN_BF16)
            return true;
    return false;
}

static bool any_added(const tni_request *r)
{
    for (uint32_t o = 0; o < r->out_count; o++)
        if (r->modes[o] == TN_MODE_ADD)
            return true;
    return false;
}

static tn_status prepared_create(const tni_request *r, const tni_candidate *c, tni_prepared **out)
{
    tni_prepared *p = tni_zalloc(sizeof *p);

    if (!p)
        return TN_E_NOMEM;
    tni_ref_init(&p->refs);
    p->kernel = c->kernel;
    p->table = c->table;
    p->plugin = c->plugin;
    p->in_count = r->in_count;
    p->out_count = r->out_count;
    p->on_host = !r->device->host && (c->kernel->host_in | c->kernel->host_out);
    p->adds =
        (c->kernel->flags & TN_KERNEL_ADD_TO) && !rounds_late(r, c->kernel) && !(p->on_host && any_added(r));
    p->plan.struct_size = (uint32_t)TN_END(tn_plan, tuning);
    p->plan.threads = 1;
    p->plan.workspace_align = p->plan.saved_align = 64;
    p->plan.inplace = tni_calloc(r->out_count + 1u, sizeof *p->plan.inplace);
    p->plan.in_layout = tni_calloc(r->in_count + 1u, sizeof *p->plan.in_layout);
    p->plan.out_layout = tni_calloc(r->out_count + 1u, sizeof *p->plan.out_layout);
    if (!p->plan.inplace || !p->plan.in_layout || !p->plan.out_layout) {
        tni_free(p->plan.inplace);
        tni_free((void *)p->plan.in_layout);
        tni_free((void *)p->plan.out_layout);
        tni_free(p);
        return TN_E_NOMEM;
    }
    for (uint32_t i = 0; i < r->out_count; i++)
        p->plan.inplace[i] = -1;
    *out = p;
    return TN_OK;
}

/* A tensor as if it were row-major; `stride` has room for ndim. */
static void tensor_dense(const tn_tensor *t, tn_tensor *out, int64_t *stride)
{
    *out = *t;
    out->stride = stride;
    out->bytes = tn_dtype_size(t->dtype, (uint64_t)tni_row_major(t->ndim, t->shape, stride));
}

static bool host_bit(uint32_t bits, uint32_t at)
{
    return at < 32 && bits >> at & 1u;
}

/* A mutated input and its output are one memory: if either is to lie there, both do. */
bool tni_kernel_on_host(const tn_kernel *k, const tn_op *op, uint32_t in_count, uint32_t out_count,
                        uint32_t index)
{
    uint32_t at = in_count + out_count;

    for (uint32_t i = op->mutates ? in_count : 0; i-- > 0;)
        if (tn_op_mutates(op, in_count, i) && --at >= in_count && (index == i || index == at))
            return host_bit(k->host_in, i) || host_bit(k->host_out, at - in_count);
    return index < in_count ? host_bit(k->host_in, index) : host_bit(k->host_out, index - in_count);
}

static bool argument_on_host(const tni_request *r, const tni_prepared *p, uint32_t index)
{
    return p->on_host && tni_kernel_on_host(p->kernel, r->def->op, r->in_count, r->out_count, index);
}

typedef struct dense_copy { /* what a kernel without STRIDED is shown */
    tn_tensor *tensors;
    const tn_tensor **in, **out;
    int64_t *strides;
    uint8_t *modes;
} dense_copy;

static void dense_fini(dense_copy *d)
{
    tni_free(d->tensors);
    tni_free((void *)d->in);
    tni_free(d->strides);
    tni_free(d->modes);
}

static tn_status dense_init(const tni_request *r, const tni_prepared *p, bool layouts, dense_copy *d)
{
    const bool strided = (p->kernel->flags & TN_KERNEL_STRIDED) != 0;
    uint32_t count = r->in_count + r->out_count;

    d->tensors = tni_calloc(count + 1u, sizeof *d->tensors);
    d->in = tni_calloc(count + 1u, sizeof *d->in);
    d->strides = tni_calloc((uint64_t)count + 1u, TN_NDIM_MAX * sizeof *d->strides);
    d->modes = tni_calloc(r->out_count + 1u, 1);
    if (!d->tensors || !d->in || !d->strides || !d->modes)
        return TN_E_NOMEM;
    d->out = d->in + r->in_count;
    for (uint32_t i = 0; i < count; i++) {
        const tn_tensor *t = i < r->in_count ? r->in[i] : r->out[i - r->in_count];

        const bool on_host = argument_on_host(r, p, i);

        if (t->ndim < 0 || (strided && !on_host))
            d->tensors[i] = *t;
        else
            tensor_dense(t, &d->tensors[i], d->strides + (size_t)i * TN_NDIM_MAX);
        if (on_host)
            d->tensors[i].memory = TN_MEMORY_HOST;
        if (!layouts)
            d->tensors[i].layout = NULL; /* it comes dense */
        d->in[i] = &d->tensors[i];
    }
    for (uint32_t i = 0; i < r->out_count; i++)
        d->modes[i] = r->modes[i] == TN_MODE_ADD && !p->adds ? TN_MODE_WRITE : r->modes[i];
    return TN_OK;
}

static bool any_strided(const tni_request *r, const tni_prepared *p)
{
    for (uint32_t i = 0; i < r->in_count + r->out_count; i++) {
        const tn_tensor *t = i < r->in_count ? r->in[i] : r->out[i - r->in_count];

        if (!tni_is_row_major(t->ndim, t->shape, t->stride) && !argument_on_host(r, p, i))
            return true;
    }
    return false;
}

#define SAVED_ALIGN_MAX 64  /* where blocks of their own begin */
#define WORK_ALIGN_MAX 4096 /* a page; the block grows by it */

/* What the core would do for the kernel, if it could touch the device's memory; NULL: nothing. */
static const char *needs_reach(const tni_request *r, const tni_prepared *p)
{
    return p->dense && !r->device->host_addressable
               ? "takes dense tensors only, and the host does not reach this device's memory to make them so"
               : NULL;
}

static bool size_open(const tni_request *r)
{
    for (uint32_t o = 0; o < r->out_count; o++) {
        if (r->out[o]->ndim < 0)
            return true;
        for (int32_t k = 0; k < r->out[o]->ndim; k++)
            if (r->out[o]->shape[k] < 0)
                return true;
    }
    return false;
}

/* What a plan may ask for and this version does not give; NULL: nothing. */
static const char *asks_too_much(const tni_request *r, const tni_prepared *p)
{
    if (p->plan.flags & ~TN_PLAN_KNOWN || p->plan.reserved)
        return "gives a plan with flags, or with a `reserved`, that are not known";
    if (p->on_host && p->plan.flags & TN_PLAN_RESIZES)
        return "decides on the size of its outputs and takes arguments in host memory";
    if (p->plan.saved_bytes && p->plan.saved_align > SAVED_ALIGN_MAX)
        return "asks for a saved block aligned to more than 64 bytes";
    if (p->plan.workspace_align > WORK_ALIGN_MAX || p->plan.workspace_align & (p->plan.workspace_align - 1))
        return "asks for a workspace whose alignment is no power of two up to 4096";
    if (!(p->plan.flags & TN_PLAN_RESIZES) && size_open(r))
        return "does not say that it gives its outputs their size, which the operator leaves open";
    if (p->plan.saved_bytes && tni_prepared_reads(p))
        return "asks for a saved block although it reads its forward's";
    if (p->plan.workspace_bytes > TN_SIZE_MAX / 2)
        return "asks for a workspace that no memory holds";
    return p->plan.saved_bytes > TN_SIZE_MAX / 2 ? "asks for a saved block that no memory holds" : NULL;
}

tn_status tni_candidate_prepare(tni_selector *s, const tni_request *r, const tni_candidate *c, bool measure,
                                tni_prepared **out, tn_err *err)
{
    const bool strided = (c->kernel->flags & TN_KERNEL_STRIDED) != 0,
               layouts = tni_layouts_given(tni_selector_layouts(s), r, c);
    dense_copy dense = {0};
    tni_prepared *p = NULL;
    tn_node node = {.struct_size = (uint32_t)TN_END(tn_node, host)};
    tni_tuned tuned;
    const char *why;
    tn_status st;

    tni_tuned_init(&tuned, tni_selector_tuning(s), r, c, measure);
    if ((st = prepared_create(r, c, &p)) || (st = dense_init(r, p, layouts, &dense)))
        goto cleanup;
    p->dense = !strided && any_strided(r, p);
    node.op_version = r->def->op->version;
    node.flags = layouts ? r->flags : (uint16_t)(r->flags & ~TN_NODE_LAYOUTS);
    node.op = r->def->op->name;
    node.attrs = r->attrs->values;
    node.attr_count = r->def->attr_count;
    node.in_count = r->in_count;
    node.out_count = r->out_count;
    node.threads = r->threads;
    node.in = dense.in;
    node.out = dense.out;
    node.modes = dense.modes;
    if (r->forward && r->forward->plugin == c->plugin) {
        p->forward = r->forward;
        tni_prepared_retain(p->forward);
        node.forward = &p->forward->plan;
    }
    node.host = &tuned.ops;
    if (c->kernel->prepare && (st = c->kernel->prepare(c->plugin->self, &node, &p->plan, err)))
        goto cleanup;
    why = tni_layouts_take(tni_selector_layouts(s), r, p, &st);
    if (st)
        goto cleanup;
    if (why || (why = asks_too_much(r, p)) != NULL || (why = tni_moves_not(r, p)) != NULL ||
        (why = needs_reach(r, p)) != NULL) {
        st = tn_fail(err, TN_E_UNSUPPORTED, why);
        goto cleanup;
    }
    if ((r->flags & TN_NODE_THREAD_INVARIANT) && !(p->plan.flags & TN_PLAN_THREAD_INVARIANT)) {
        st = tn_fail(err, TN_E_UNSUPPORTED, "its bits depend on the number of threads");
        goto cleanup;
    }
    p->est_ns = p->plan.est_ns;
    if (!p->est_ns && (st = tni_guess_ns(r, &p->est_ns)))
        goto cleanup;
    tni_tuned_take(&tuned, &p->plan);
    *out = p;
    p = NULL;

cleanup:
    tni_tuned_fini(&tuned);
    tni_prepared_release(p);
    dense_fini(&dense);
    return st;
}
