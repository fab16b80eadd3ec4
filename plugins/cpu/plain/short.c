/*
 * A call with float16, bfloat16 or int8 run by a kernel for float32, or float64 for int8. Its node, plan and
 * call are copies in which every argument of a short type is one of those; the copies of their elements lie
 * in the workspace, behind that of the kernel. An output in the memory of an input (changed, or taken over)
 * has that input's copy.
 */
#include "short.h"

#include "../common/memory.h"
#include "convert.h"

#define ARGS_MAX 16

typedef struct short_state {
    tn_plan plan;              /* of the kernel for float32 */
    uint64_t at[2 * ARGS_MAX]; /* inputs, then outputs: offset in the workspace */
    int32_t inplace[ARGS_MAX];
    uint32_t in_count, out_count;
} short_state;

static bool is_short(const tn_tensor *t)
{
    return t->dtype == TN_F16 || t->dtype == TN_BF16 || t->dtype == TN_I8;
}

/* Bytes of its copy. float64 holds sums of 2^39 products of int8 exactly. */
static uint64_t wide_bytes(const tn_tensor *t)
{
    return (uint64_t)tn_tensor_count(t) * (t->dtype == TN_I8 ? sizeof(double) : sizeof(float));
}

/* The same as float32 or float64. */
static void widen(const tn_tensor *t, tn_tensor *wide, const tn_tensor **pointer)
{
    *wide = *t;
    if (is_short(t)) {
        wide->dtype = t->dtype == TN_I8 ? TN_F64 : TN_F32;
        wide->bytes = wide_bytes(t);
    }
    *pointer = wide;
}

/* ---- preparing ---------------------------------------------------------------------------------- */

static tn_status wide_prepare(tncpu_prepare prepare, const tn_plan *forward, void *plugin,
                              const tn_node *node, short_state *s, tn_err *err)
{
    tn_tensor tensors[2 * ARGS_MAX];
    const tn_tensor *in[ARGS_MAX], *out[ARGS_MAX];
    tn_node wide = *node;
    tn_status st;

    for (uint32_t i = 0; i < node->in_count; i++)
        widen(node->in[i], &tensors[i], &in[i]);
    for (uint32_t o = 0; o < node->out_count; o++) {
        widen(node->out[o], &tensors[ARGS_MAX + o], &out[o]);
        s->inplace[o] = -1;
    }
    wide.in = in;
    wide.out = out;
    wide.forward = forward;
    s->plan.inplace = s->inplace;
    st = prepare(plugin, &wide, &s->plan, err);
    tncpu_block_head_of(s)->more = s->plan.state; /* they are freed together */
    return st;
}

static void room_plan(const tn_node *node, short_state *s, tn_plan *plan)
{
    uint64_t bytes = tncpu_aligned(s->plan.workspace_bytes);
    double elements = 0;

    for (uint32_t i = 0; i < node->in_count + node->out_count; i++) {
        const tn_tensor *t = i < node->in_count ? node->in[i] : node->out[i - node->in_count];

        s->at[i < node->in_count ? i : ARGS_MAX + i - node->in_count] = bytes;
        if (is_short(t)) {
            bytes += tncpu_aligned(wide_bytes(t));
            elements += (double)tn_tensor_count(t);
        }
    }
    plan->workspace_bytes = bytes ? bytes : TNCPU_ALIGN; /* arguments without elements have an address, too */
    plan->workspace_align = s->plan.workspace_align > TNCPU_ALIGN ? s->plan.workspace_align : TNCPU_ALIGN;
    plan->saved_bytes = s->plan.saved_bytes;
    plan->saved_align = s->plan.saved_align;
    plan->est_ns = s->plan.est_ns + (uint64_t)elements + 1;
    plan->threads = s->plan.threads;
    plan->flags = s->plan.flags;
    for (uint32_t o = 0; o < node->out_count; o++)
        plan->inplace[o] = s->inplace[o];
}

tn_status tncpu_short_prepare(const tncpu_short *wide, void *plugin, const tn_node *node, tn_plan *plan,
                              tn_err *err)
{
    const tn_plan *of_forward = NULL;
    short_state *s;
    tn_status st;

    if (!is_short(node->in[0]))
        return wide->prepare(plugin, node, plan, err);
    if (node->in_count > ARGS_MAX || node->out_count > ARGS_MAX)
        return tn_fail(err, TN_E_UNSUPPORTED, "more than 16 arguments");
    if ((st = tncpu_state(plugin, plan, sizeof *s, err)))
        return st;
    s = plan->state;
    s->in_count = node->in_count;
    s->out_count = node->out_count;
    s->plan = (tn_plan){.struct_size = plan->struct_size,
                        .workspace_align = TNCPU_ALIGN,
                        .saved_align = TNCPU_ALIGN,
                        .threads = 1};
    if (wide->forward && node->forward)
        of_forward = &((const short_state *)node->forward->state)->plan;
    st = wide_prepare(wide->prepare, of_forward, plugin, node, s, err);
    if (st)
        tncpu_release(plan);
    else
        room_plan(node, s, plan);
    return st;
}

/* ---- running ------------------------------------------------------------------------------------ */

static void load(const tn_tensor *t, void *wide)
{
    if (t->dtype == TN_I8)
        tncpu_numbers(t, 0, 1, tn_tensor_count(t), wide);
    else
        tncpu_converts[t->dtype].load(t->data, 1, wide, tn_tensor_count(t));
}

/* int8 saturates. */
static void store(const tn_tensor *t, const void *wide)
{
    if (t->dtype == TN_I8)
        tncpu_numbers_store(t, 0, 1, tn_tensor_count(t), wide);
    else
        tncpu_converts[t->dtype].store(wide, t->data, 1, tn_tensor_count(t));
}

/* Where the output's elements are made: in the copy of the input whose memory it has, else in its own. */
static void *result_room(const short_state *s, const tn_exec *x, const tn_tensor *in, uint32_t o)
{
    for (uint32_t i = 0; i < s->in_count; i++)
        if (x->in[i]->data == x->out[o]->data && x->in[i]->data && is_short(x->in[i]))
            return in[i].data;
    return (char *)x->workspace + s->at[ARGS_MAX + o];
}

tn_status tncpu_short_run(const tncpu_short *kernel, const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const short_state *s = plan->state;
    tn_tensor in[ARGS_MAX], out[ARGS_MAX];
    const tn_tensor *in_pointers[ARGS_MAX], *out_pointers[ARGS_MAX];
    tn_exec wide = *x;
    tn_status st;

    if (!is_short(x->in[0]))
        return kernel->run(plan, x, err);
    for (uint32_t i = 0; i < s->in_count; i++) {
        widen(x->in[i], &in[i], &in_pointers[i]);
        if (!is_short(x->in[i]) || kernel->unread >> i & 1u)
            continue;
        in[i].data = (char *)x->workspace + s->at[i];
        load(x->in[i], in[i].data);
    }
    for (uint32_t o = 0; o < s->out_count; o++) {
        widen(x->out[o], &out[o], &out_pointers[o]);
        if (is_short(x->out[o]))
            out[o].data = result_room(s, x, in, o);
    }
    wide.in = in_pointers;
    wide.out = out_pointers;
    if ((st = kernel->run(&s->plan, &wide, err)))
        return st;
    for (uint32_t o = 0; o < s->out_count; o++)
        if (is_short(x->out[o]) && x->modes[o])
            store(x->out[o], out[o].data);
    return TN_OK;
}
