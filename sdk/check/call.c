/*
 * One running call as the kit's host serves it: scratch memory, outputs whose shape comes at run time,
 * completion. Everything here may be called from any thread of the plugin.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "call.h"
#include "space.h"
#include "waiting.h"

#define COMPLETE_S 20

static chk_call *of(tn_call *call)
{
    return (chk_call *)(void *)call;
}

/* 64-byte aligned, freed at the end of the call; NULL: this is the one that fails. */
static const chk_block *call_block(chk_call *c, uint64_t bytes)
{
    chk_call_block *b = NULL;

    (void)pthread_mutex_lock(&c->lock);
    c->node->allocs++;
    if (c->node->allocs != c->node->form.nomem_at && bytes < ((uint64_t)1 << 32) &&
        (b = calloc(1, sizeof *b))) {
        c->node->side->space->ops->make(c->node, bytes, 64, 0, CHK_BLOCK_SHARED, &b->b);
        memset(b->b.memory, c->node->form.fill, (size_t)bytes);
        b->next = c->blocks;
        c->blocks = b;
    }
    (void)pthread_mutex_unlock(&c->lock);
    return b ? &b->b : NULL;
}

static tn_status call_alloc(tn_call *call, uint64_t bytes, void **out, tn_err *err)
{
    chk_call *c = of(call);
    const chk_block *b;

    if (!c || !out)
        return tn_fail(err, TN_E_ARG, "no call, or no place for the block");
    if (!(b = call_block(c, bytes)))
        return tn_fail(err, TN_E_NOMEM, "no memory for scratch (planned by the kit)");
    *out = b->data;
    return TN_OK;
}

static tn_status call_resize(tn_call *call, uint32_t out, int32_t ndim, const int64_t *shape,
                             const tn_tensor **tensor, tn_err *err)
{
    chk_call *c = of(call);
    chk_node *n = c->node;
    tn_shape s = {.ndim = ndim};
    const chk_block *b;
    chk_operand *o;
    int64_t count, step = 1;

    if (out >= n->p->f.args.out_count || ndim < 0 || ndim > TN_NDIM_MAX || (ndim && !shape))
        chk_fail(n->lab->env, "K-resize", "resize is called for output %u with %d dimensions (%s)", out, ndim,
                 n->p->text);
    if (tn_shape_known(&n->p->f.shape[chk_out(&n->p->f, out)]))
        chk_fail(n->lab->env, "K-resize", "resize is called for output %u, whose shape is known (%s)", out,
                 n->p->text);
    if (!(n->plan->flags & TN_PLAN_RESIZES))
        chk_fail(n->lab->env, "K-resize", "resize is called by a plan without TN_PLAN_RESIZES (%s)",
                 n->p->text);
    for (int32_t d = 0; d < ndim; d++)
        s.dim[d] = shape[d];
    if ((count = chk_shape_elements(&s, (int64_t)1 << 30)) < 0)
        return tn_fail(err, TN_E_SHAPE, "a dimension is negative, or the output too large");
    o = &n->out[out];
    if (!(b = call_block(c, tn_dtype_size(o->t.dtype, (uint64_t)(count ? count : 1)))))
        return tn_fail(err, TN_E_NOMEM, "no memory for an output (planned by the kit)");
    o->block = *b;
    o->block.borrowed = true;
    memcpy(o->shape, s.dim, sizeof o->shape);
    for (int32_t d = ndim; d-- > 0;) {
        o->stride[d] = step;
        step *= s.dim[d];
    }
    o->t.ndim = ndim;
    o->t.data = o->block.data;
    o->t.bytes = tn_dtype_size(o->t.dtype, (uint64_t)count);
    *tensor = &o->t;
    return TN_OK;
}

static tn_status call_resize_sparse(tn_call *call, uint32_t out, int64_t stored, const tn_tensor **tensor,
                                    tn_err *err)
{
    chk_call *c = of(call);
    chk_node *n = c->node;
    chk_operand *o = &n->out[out];

    if (out >= n->p->f.args.out_count || n->p->f.storage[chk_out(&n->p->f, out)] == TN_STORAGE_DENSE ||
        !(n->plan->flags & TN_PLAN_RESIZES) || o->t.aux[0])
        chk_fail(
            n->lab->env, "K-resize",
            "resize_sparse is called for output %u, which is dense or has its size, or by a plan without "
            "TN_PLAN_RESIZES (%s)",
            out, n->p->text);
    if (stored < 0 || stored > tn_shape_count(&n->p->f.shape[chk_out(&n->p->f, out)]) ||
        (o->t.storage == TN_STORAGE_ROW_SPARSE && stored > o->shape[0]))
        return tn_fail(err, TN_E_SHAPE, "more is stored than the shape holds");
    if (++n->allocs == n->form.nomem_at)
        return tn_fail(err, TN_E_NOMEM, "no memory for an output (planned by the kit)");
    chk_sparse_make(n, o, &n->p->f.shape[chk_out(&n->p->f, out)], stored);
    for (uint32_t k = 0; k < 2; k++)
        if (o->aux_block[k].memory)
            memset(o->aux_block[k].memory, n->form.fill, (size_t)o->aux[k].bytes);
    memset(o->block.memory, n->form.fill, (size_t)o->t.bytes);
    *tensor = &o->t;
    return TN_OK;
}

static void call_complete(tn_call *call, tn_status status, const tn_err *err)
{
    chk_call *c = of(call);

    (void)pthread_mutex_lock(&c->lock);
    if (c->completions++ == 0) {
        c->status = status;
        if (err)
            c->node->err = *err;
    }
    (void)pthread_cond_broadcast(&c->changed);
    (void)pthread_mutex_unlock(&c->lock);
}

const tn_call_ops chk_call_ops = {.struct_size = (uint32_t)TN_END(tn_call_ops, resize_sparse),
                                  .resize = call_resize,
                                  .alloc = call_alloc,
                                  .complete = call_complete,
                                  .resize_sparse = call_resize_sparse};

void chk_call_init(chk_call *c, chk_node *n)
{
    memset(c, 0, sizeof *c);
    c->node = n;
    (void)pthread_mutex_init(&c->lock, NULL);
    chk_condition_init(&c->changed);
}

void chk_call_begin(chk_call *c)
{
    while (c->blocks) {
        chk_call_block *next = c->blocks->next;

        chk_block_drop(&c->blocks->b);
        free(c->blocks);
        c->blocks = next;
    }
    c->completions = 0;
    c->node->allocs = 0;
}

tn_status chk_call_wait(chk_call *c, tn_status st)
{
    chk_env *env = c->node->lab->env;
    const char *text = c->node->p->text;
    const struct timespec end = chk_deadline(COMPLETE_S * 1000);
    uint32_t completions;
    bool late = false;

    (void)pthread_mutex_lock(&c->lock);
    while (st == TN_PENDING && !c->completions && !late)
        late = pthread_cond_timedwait(&c->changed, &c->lock, &end) == ETIMEDOUT;
    completions = c->completions;
    (void)pthread_mutex_unlock(&c->lock);
    if (st == TN_PENDING && !completions)
        chk_fail(env, "K-complete", "run says TN_PENDING, and complete was not called within %d s (%s)",
                 COMPLETE_S, text);
    if (st != TN_PENDING && completions)
        chk_fail(env, "K-complete", "run returns %s and yet calls complete (%s)", tn_status_name(st), text);
    if (st == TN_PENDING && !(c->node->side->kernel->flags & TN_KERNEL_ASYNC))
        chk_fail(env, "K-complete", "run says TN_PENDING without TN_KERNEL_ASYNC (%s)", text);
    return st == TN_PENDING ? c->status : st;
}

void chk_call_fini(chk_call *c)
{
    chk_call_begin(c);
    (void)pthread_cond_destroy(&c->changed);
    (void)pthread_mutex_destroy(&c->lock);
}
