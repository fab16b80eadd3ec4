/*
 * Nodes: tensors laid out as a form asks, a plan, runs. The structs that a kernel gets are those of the
 * plugin's host: exact, or cut at a guard page, or longer and poisoned.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "call.h"
#include "internal.h"
#include "space.h"

/* ---- operands ---------------------------------------------------------------------------------------- */

/* Where argument `index` (inputs, then outputs) lies: some kernels want a few in host memory. */
static chk_space *space_of(const chk_node *n, uint32_t index)
{
    const tn_kernel *k = n->side->kernel;
    const uint32_t ins = n->p->f.args.in_count, bit = index < ins ? index : index - ins;

    return bit < 32 && (index < ins ? k->host_in : k->host_out) >> bit & 1u ? &chk_space_host
                                                                            : n->side->space;
}

static bool is_input(const chk_node *n, const chk_operand *o)
{
    return o >= n->in && o < n->in + n->p->f.args.in_count;
}

/* For what a fault beside it says. */
static void operand_name(const chk_node *n, const chk_operand *o)
{
    const bool in = is_input(n, o);
    const uint32_t index = (uint32_t)(in ? o - n->in : o - n->out + n->p->f.args.in_count);

    chk_buffer_owner(o->block.buffer, in ? "input " : "output ",
                     chk_argument_name(n->p->op, &n->p->f.args, index), n->p->text);
}

/* Of argument `index`; `o` holds zeros. */
static void operand_make(chk_node *n, chk_operand *o, uint32_t index)
{
    static const tn_shape pending = {.ndim = 1, .dim = {-1}};
    const tn_shape *s = &n->p->f.shape[index];
    const int32_t dtype = n->p->f.dtype[index], storage = n->p->f.storage[index];
    const chk_space *space = space_of(n, index);
    const uint64_t size = tn_dtype_bytes(dtype);
    const bool known = tn_shape_known(s);

    if (!known)
        s = &pending;
    memcpy(o->shape, s->dim, sizeof o->shape);
    o->t = (tn_tensor){.ndim = s->ndim,
                       .dtype = dtype,
                       .shape = o->shape,
                       .stride = o->stride,
                       .memory = (uint16_t)space->ops->memory,
                       .storage = (uint16_t)storage,
                       .version = 1};
    if (!known)
        return;
    if (storage != TN_STORAGE_DENSE) { /* an output's memory comes with its size */
        chk_operand_strides(o, CHK_LAYOUT_DENSE);
        if (is_input(n, o))
            chk_sparse_make(n, o, s, -1);
        return;
    }
    chk_operand_strides(o, tn_dtype_bits(dtype) < 8 ? CHK_LAYOUT_DENSE : n->form.layout);
    if (n->form.broadcast && o == &n->in[n->form.broadcast - 1] && n->form.broadcast_axis < s->ndim)
        o->stride[n->form.broadcast_axis] = 0;
    o->t.bytes = tn_dtype_size(dtype, (uint64_t)chk_operand_extent(o));
    if (n->form.metadata)
        return;
    space->ops->make(n, o->t.bytes, 64, n->form.offset * size, n->form.guard & ~CHK_READ_ONLY, &o->block);
    o->t.data = o->block.data;
    if (o->block.buffer)
        operand_name(n, o);
}

/* ---- preparing --------------------------------------------------------------------------------------- */

static void *scratch(void *arg, uint64_t bytes)
{
    chk_node *n = arg;

    return bytes < ((uint64_t)1 << 30) ? chk_take(&n->lab->arena, bytes) : NULL;
}

static chk_host_kind kind_of(const chk_node *n)
{
    return n->side == &n->lab->side ? chk_host_kind_of(n->lab->plugin.host) : CHK_HOST_EXACT;
}

#define MADE(n, T, last, value)                                                                              \
    (kind_of(n) == CHK_HOST_EXACT                                                                            \
         ? (T *)&(value)                                                                                     \
         : (T *)chk_struct_make((n)->lab->env, kind_of(n), &(value), CHK_SIZES(T, last)))

static void made_free(const chk_node *n, void *made)
{
    if (kind_of(n) == CHK_HOST_EXACT)
        return;
    if (!chk_struct_intact(made))
        chk_fail(n->lab->env, "R2", "writes beyond the struct_size of a struct (%s)", n->p->text);
    chk_struct_free(made);
}

/* Behind the operands stand tensors that nobody may touch. */
static void operands_end(chk_node *n)
{
    static const void *page;

    if (!page)
        page = chk_page_closed(n->lab->env, "K-bounds",
                               "an input or output behind the last one of its operator (of a backward "
                               "operator, those that its gradient rule names)");
    for (uint32_t i = n->p->f.args.in_count; i < CHK_ARGS_MAX; i++)
        n->list.in[i] = page;
    for (uint32_t o = n->out_count; o < CHK_ARGS_MAX; o++)
        n->list.out[o] = page;
}

static void operands_make(chk_node *n)
{
    const chk_facts *f = &n->p->f;

    n->in = chk_take(&n->lab->arena, chk_all(f) * sizeof *n->in);
    n->out = n->in + f->args.in_count;
    n->out_count = f->args.out_count;
    for (uint32_t i = 0; i < f->args.in_count; i++) {
        operand_make(n, &n->in[i], i);
        n->list.in[i] = &n->in[i].t;
    }
    for (uint32_t o = 0; o < f->args.out_count; o++) {
        operand_make(n, &n->out[o], chk_out(f, o));
        n->list.out[o] = &n->out[o].t;
        n->modes[o] = n->form.modes ? n->form.modes[o] : n->form.mode;
        n->inplace[o] = -1;
    }
    for (uint32_t m = 0; m < n->p->mutated_count; m++) { /* shares the input's memory */
        n->modes[n->out_count] = TN_MODE_WRITE;
        n->inplace[n->out_count] = -1;
        n->list.out[n->out_count++] = &n->in[n->p->mutated[m]].t;
    }
    operands_end(n);
}

#define WORKSPACE_ALIGN_MAX 4096u
#define SAVED_ALIGN_MAX 64u
#define NOT_YOURS INT32_MIN /* behind the items that a kernel may set */

static void plan_preset(chk_node *n, tn_plan *plan)
{
    memset(plan, 0, sizeof *plan);
    plan->struct_size = (uint32_t)TN_END(tn_plan, tuning);
    plan->threads = 1;
    plan->workspace_align = plan->saved_align = 64;
    plan->inplace = n->inplace;
    for (uint32_t o = n->out_count; o < CHK_ARGS_MAX; o++)
        n->inplace[o] = NOT_YOURS;
    plan->in_layout = n->in_layout;
    plan->out_layout = n->out_layout;
}

/* What crosses the border: a status of the list, a text with an end. */
static void answer_check(chk_node *n, tn_status st, const char *what)
{
    if (st < TN_OK || st > TN_E_INTERNAL)
        chk_fail(n->lab->env, "R1", "%s gives %d, which is no status (%s)", what, (int)st, n->p->text);
    if (n->err.message[sizeof n->err.message - 1])
        chk_fail(n->lab->env, "R1", "%s gives %s and a text without an end (%s)", what, tn_status_name(st),
                 n->p->text);
}

static tn_status prepare(chk_node *n)
{
    const chk_problem *p = n->p;
    const chk_facts *f = &p->f;
    tn_tensor blind[2 * CHK_ARGS_MAX];
    chk_operands list = n->list;
    static const unsigned char of_a_file[] = "a file may hold anything";
    const bool tuned = !(p->flags & TN_NODE_DETERMINISTIC);
    tn_prepare_ops ops = {.struct_size = (uint32_t)TN_END(tn_prepare_ops, tuned_bytes),
                          .host = n->side->host,
                          .arg = n,
                          .scratch = scratch,
                          .stream = n->lane->stream,
                          .tuned = tuned ? of_a_file : NULL,
                          .tuned_bytes = tuned ? sizeof of_a_file : 0};
    tn_node node = {.struct_size = (uint32_t)TN_END(tn_node, host),
                    .op_version = p->op->version,
                    .flags = (uint16_t)(p->flags | (n->form.recorded ? TN_NODE_RECORDED : 0u) |
                                        (n->form.mode == TN_MODE_ADD ? TN_NODE_ADD_SHORT : 0u)),
                    .op = p->op->name,
                    .attrs = p->attrs.values,
                    .attr_count = p->attrs.count,
                    .in_count = f->args.in_count,
                    .out_count = n->out_count,
                    .threads = n->form.threads,
                    .in = list.in,
                    .out = list.out,
                    .modes = n->modes,
                    .forward = n->form.forward ? n->form.forward->plan : NULL};
    tn_prepare_ops *made_ops = MADE(n, tn_prepare_ops, tuned_bytes, ops);
    tn_node *made;
    tn_status st;

    for (uint32_t i = 0; i < f->args.in_count + n->out_count; i++) { /* data is not known yet */
        blind[i] = i < f->args.in_count ? *n->list.in[i] : *n->list.out[i - f->args.in_count];
        blind[i].data = NULL;
        if (i < f->args.in_count)
            list.in[i] = &blind[i];
        else
            list.out[i - f->args.in_count] = &blind[i];
    }
    node.host = made_ops;
    made = MADE(n, tn_node, host, node);
    st = n->side->kernel->prepare ? n->side->kernel->prepare(n->side->self, made, n->plan, &n->err) : TN_OK;
    made_free(n, made);
    made_free(n, made_ops);
    answer_check(n, st, "prepare");
    n->lab->declined |= st == TN_E_UNSUPPORTED;
    if (st == TN_E_UNSUPPORTED && n->err.code == TN_E_DEVICE)
        (void)snprintf(n->lab->absent, sizeof n->lab->absent, "%.150s", n->err.message);
    for (uint32_t o = n->out_count; o < CHK_ARGS_MAX; o++)
        if (n->inplace[o] != NOT_YOURS)
            chk_fail(n->lab->env, "K-bounds", "prepare writes behind the %u items of inplace (%s)",
                     n->out_count, p->text);
    return st;
}

static bool plan_fits(const chk_node *n)
{
    for (uint32_t i = 0; i < CHK_ARGS_MAX; i++)
        if (n->in_layout[i] || n->out_layout[i])
            return false;
    return n->plan->workspace_bytes < ((uint64_t)1 << 32) && n->plan->saved_bytes < ((uint64_t)1 << 32);
}

static void inplace_apply(chk_node *n)
{
    bool taken[CHK_ARGS_MAX] = {false};

    for (uint32_t o = 0; o < n->p->f.args.out_count; o++) {
        const int32_t i = n->inplace[o];

        if (i >= (int32_t)n->p->f.args.in_count || i < -1)
            chk_fail(n->lab->env, "K-inplace", "inplace[%u] is %d, there are %u inputs (%s)", o, i,
                     n->p->f.args.in_count, n->p->text);
        if (i < 0 || !n->form.in_place || taken[i] ||
            tn_op_mutates(n->p->op, n->p->f.args.in_count, (uint32_t)i) ||
            n->in[i].t.bytes != n->out[o].t.bytes)
            continue;
        taken[i] = true;
        chk_block_drop(&n->out[o].block);
        n->out[o].block = n->in[i].block;
        n->out[o].block.borrowed = true;
        n->out[o].t.data = n->in[i].t.data;
    }
}

static void block_make(chk_node *n, uint64_t bytes, uint32_t align, chk_block *out)
{
    const uint32_t guard = bytes % 64 == 0 ? n->form.guard : CHK_GUARD_START;

    if (bytes)
        n->side->space->ops->make(n, bytes, align, 0, n->form.guard ? guard : 0, out);
}

static void blocks_make(chk_node *n)
{
    block_make(n, n->plan->workspace_bytes, n->plan->workspace_align, &n->workspace);
    if (n->workspace.buffer)
        chk_buffer_owner(n->workspace.buffer, "its workspace", "", n->p->text);
    if (n->form.forward && n->form.forward->plan) {
        n->saved = n->form.forward->saved;
        n->saved.borrowed = true;
    } else {
        block_make(n, n->plan->saved_bytes, n->plan->saved_align, &n->saved);
        if (n->saved.buffer)
            chk_buffer_owner(n->saved.buffer, "its saved block", "", n->p->text);
    }
}

chk_node *chk_node_forward(chk_lab *lab, const chk_problem *p)
{
    const chk_form recorded = {.mode = TN_MODE_WRITE, .recorded = true, .fill = 0x3c};
    chk_node *forward = chk_take(&lab->arena, sizeof *forward);
    chk_side *side = chk_take(&lab->arena, sizeof *side);

    if (!p->forward || !chk_side_beside(lab, p->forward, side))
        return NULL;
    if (!chk_node_open(lab, side, p->forward, &recorded, forward) && !chk_node_run(forward))
        return forward;
    chk_node_close(forward);
    return NULL;
}

/* A backward may want its forward's plan and what that saved. */
static bool forward_own(chk_node *n)
{
    if (n->side->kernel == n->lab->side.kernel)
        n->form.forward = n->own_forward = chk_node_forward(n->lab, n->p);
    return n->own_forward != NULL;
}

tn_status chk_node_open(chk_lab *lab, const chk_side *side, const chk_problem *p, const chk_form *form,
                        chk_node *n)
{
    tn_plan plan;
    tn_status st;

    memset(n, 0, sizeof *n);
    n->lab = lab;
    n->side = side;
    n->p = p;
    n->form = *form;
    n->form.threads = form->threads ? form->threads : 1;
    n->lane = side->space->ops->lane(n, 0);
    n->no_rng = p->op->effects & TN_EFFECT_RANDOM ? NULL : chk_no_rng(lab->env);
    n->side->space->ops->step_take(n);
    n->call = chk_take(&lab->arena, sizeof *n->call);
    chk_call_init(n->call, n);
    operands_make(n);
    plan_preset(n, &plan);
    if (kind_of(n) == CHK_HOST_EXACT) {
        n->plan = chk_take(&lab->arena, sizeof plan);
        *n->plan = plan;
    } else {
        n->plan = chk_struct_make(lab->env, kind_of(n), &plan, CHK_SIZES(tn_plan, tuning));
    }
    st = prepare(n);
    if (st == TN_E_UNSUPPORTED && !form->forward && !form->alone && !form->metadata && forward_own(n))
        st = prepare(n);
    if (st) {
        made_free(n, n->plan);
        n->plan = NULL;
        return st;
    }
    if (!form->metadata && !plan_fits(n))
        return tn_fail(&n->err, TN_E_UNSUPPORTED, "asks for a private layout, or for over 4 GiB");
    if (p->resizes && !form->metadata && !(n->plan->flags & TN_PLAN_RESIZES)) {
        if (p->f.args.in_count && !n->side->kernel->host_in &&
            !n->side->kernel->host_out) /* else attributes left the shape open, and no host would call it */
            chk_fail(lab->env, "K-resize",
                     "takes outputs of unknown shape, and its plan lacks TN_PLAN_RESIZES (%s)", p->text);
        return tn_fail(&n->err, TN_E_UNSUPPORTED, "does not say that it resizes its outputs");
    }
    if (n->plan->workspace_align & (n->plan->workspace_align - 1) ||
        n->plan->saved_align & (n->plan->saved_align - 1))
        chk_fail(lab->env, "K-plan", "an alignment that is no power of two: workspace %u, saved %u (%s)",
                 n->plan->workspace_align, n->plan->saved_align, p->text);
    if (n->plan->flags & ~TN_PLAN_KNOWN || n->plan->reserved)
        chk_fail(lab->env, "K-plan", "flags %#x or `reserved` %u of the plan have no meaning (%s)",
                 n->plan->flags & ~TN_PLAN_KNOWN, n->plan->reserved, p->text);
    if (n->plan->workspace_align > WORKSPACE_ALIGN_MAX || n->plan->saved_align > SAVED_ALIGN_MAX)
        chk_fail(lab->env, "K-plan", "an alignment above what hosts give: workspace %u, saved %u (%s)",
                 n->plan->workspace_align, n->plan->saved_align, p->text);
    if (n->plan->threads > n->form.threads)
        chk_fail(lab->env, "K-plan", "plans %u threads, granted were %u (%s)", n->plan->threads,
                 n->form.threads, p->text);
    if (form->metadata)
        return TN_OK;
    inplace_apply(n);
    blocks_make(n);
    return TN_OK;
}

void chk_node_share(const chk_node *with, const chk_problem *p, uint32_t index, chk_node *n)
{
    memset(n, 0, sizeof *n);
    n->lab = with->lab;
    n->side = with->side;
    n->p = p;
    n->form = with->form;
    n->no_rng = with->no_rng;
    n->side->space->ops->step_take(n);
    n->plan = with->plan;
    n->shares_plan = true;
    n->lane = n->side->space->ops->lane(n, index);
    n->call = chk_take(&n->lab->arena, sizeof *n->call);
    chk_call_init(n->call, n);
    operands_make(n);
    blocks_make(n);
}

/* ---- running ----------------------------------------------------------------------------------------- */

/* Those that are the node's own. */
static void blocks_each(chk_node *n, void (*visit)(chk_node *n, const chk_block *b))
{
    for (uint32_t i = 0; i < n->p->f.args.in_count; i++)
        if (n->in[i].block.space)
            visit(n, &n->in[i].block);
    for (uint32_t o = 0; o < n->p->f.args.out_count; o++)
        if (n->out[o].block.space && !n->out[o].block.borrowed)
            visit(n, &n->out[o].block);
    if (n->workspace.space)
        visit(n, &n->workspace);
    if (n->saved.space && !n->saved.borrowed)
        visit(n, &n->saved);
}

void chk_outputs_pull(chk_node *n)
{
    for (uint32_t o = 0; o < n->p->f.args.out_count; o++)
        if (n->out[o].block.space)
            chk_block_pull(n, &n->out[o].block);
    for (uint32_t m = 0; m < n->p->mutated_count; m++)
        chk_block_pull(n, &n->in[n->p->mutated[m]].block);
}

/* Of an input whose shape alone is read the bytes may be gone. */
static bool is_poisoned(const chk_node *n, uint32_t i)
{
    return tn_op_shape_only(n->p->op, n->p->f.args.in_count, i) && n->in[i].t.storage == TN_STORAGE_DENSE;
}

void chk_node_reset(chk_node *n)
{
    const chk_facts *f = &n->p->f;

    for (uint32_t o = 0; o < f->args.out_count; o++) {
        if (f->storage[chk_out(f, o)] != TN_STORAGE_DENSE) {
            chk_block_drop(&n->out[o].block);
            chk_sparse_drop(&n->out[o]);
            n->out[o].t.data = NULL;
            continue;
        }
        if (!tn_shape_known(&f->shape[chk_out(f, o)]))
            n->out[o].block = (chk_block){0}; /* what the call before gave is gone */
        else if (n->out[o].block.memory)
            memset(n->out[o].block.memory, n->form.fill, (size_t)n->out[o].t.bytes);
        for (int64_t k = 0; n->modes[o] == TN_MODE_ADD && k < chk_operand_elements(&n->out[o]); k++)
            chk_set((char *)n->out[o].block.memory +
                        (uint64_t)chk_operand_offset(&n->out[o], k) * tn_dtype_bytes(n->out[o].t.dtype),
                    n->out[o].t.dtype, 0, (double)(k % 5));
    }
    for (uint32_t i = 0; i < f->args.in_count; i++) {
        const bool host = n->in[i].block.space == &chk_space_host;

        if (n->in[i].block.buffer && n->form.lock)
            chk_buffer_unlock(n->in[i].block.buffer);
        chk_operand_move(&n->in[i], n->p->in_data[i], true);
        if (is_poisoned(n, i))
            memset(n->in[i].block.memory, n->form.fill, (size_t)n->in[i].t.bytes);
        if (n->in[i].block.buffer && host && n->form.lock &&
            !tn_op_mutates(n->p->op, n->p->f.args.in_count, i))
            chk_buffer_lock(n->in[i].block.buffer);
    }
    if (n->workspace.memory)
        memset(n->workspace.memory, n->form.fill, (size_t)n->plan->workspace_bytes);
    if (n->saved.memory && !n->saved.borrowed)
        memset(n->saved.memory, n->form.fill, (size_t)n->plan->saved_bytes);
    if (n->form.pace == CHK_PACE_LATE && n->side->space->ops->delay)
        n->side->space->ops->delay(n);
    blocks_each(n, chk_block_push);
    if (n->form.pace == CHK_PACE_QUIET)
        (void)chk_node_settle(n);
}

/* What run is handed as const: a plan that others run too, tensors, attributes. */
typedef struct handed {
    tn_plan plan;
    tn_tensor in[CHK_ARGS_MAX], out[CHK_ARGS_MAX];
} handed;

static void handed_take(const chk_node *n, handed *h)
{
    memcpy(&h->plan, n->plan, n->plan->struct_size < sizeof h->plan ? n->plan->struct_size : sizeof h->plan);
    for (uint32_t i = 0; i < n->p->f.args.in_count; i++)
        h->in[i] = n->in[i].t;
    for (uint32_t o = 0; o < n->p->f.args.out_count; o++)
        h->out[o] = n->out[o].t;
}

static bool tensor_same(const tn_tensor *a, const tn_tensor *b)
{
    return a->data == b->data && a->shape == b->shape && a->stride == b->stride && a->bytes == b->bytes &&
           a->version == b->version && a->ndim == b->ndim && a->dtype == b->dtype && a->device == b->device;
}

static void handed_check(const chk_node *n, const handed *h)
{
    const tn_plan *now = n->plan, *was = &h->plan;
    const chk_facts *f = &n->p->f;
    bool same = now->flags == was->flags && now->state == was->state && now->est_ns == was->est_ns &&
                now->workspace_bytes == was->workspace_bytes && now->saved_bytes == was->saved_bytes &&
                now->threads == was->threads && now->struct_size == was->struct_size;

    chk_fail_if(n->lab->env, !same, "K-plan", "run changes its plan, which other runs read (%s)", n->p->text);
    for (uint32_t i = 0; i < n->p->f.args.in_count; i++)
        same &= tensor_same(&n->in[i].t, &h->in[i]);
    for (uint32_t o = 0; o < n->p->f.args.out_count; o++)
        same &= !tn_shape_known(&f->shape[chk_out(f, o)]) || f->storage[chk_out(f, o)] != TN_STORAGE_DENSE ||
                tensor_same(&n->out[o].t, &h->out[o]);
    if (!same)
        chk_fail(n->lab->env, "K-readonly", "run changes a tn_tensor, which it may only read (%s)",
                 n->p->text);
}

tn_status chk_node_call(chk_node *n)
{
    handed before;
    tn_rng rng = chk_rng_of(n), *made_rng = n->no_rng ? NULL : MADE(n, tn_rng, step_add, rng);
    tn_call_ops ops = chk_call_ops, *made_ops = MADE(n, tn_call_ops, resize_sparse, ops);
    tn_exec x = {.struct_size = (uint32_t)TN_END(tn_exec, ops),
                 .threads = n->form.threads,
                 .in = n->list.in,
                 .out = n->list.out,
                 .modes = n->modes,
                 .attrs = n->form.run_attrs ? n->form.run_attrs : n->p->attrs.values,
                 .workspace = n->workspace.data,
                 .saved = n->saved.data,
                 .stream = n->lane->stream,
                 .stream_slot = n->lane->stream ? &n->lane->slot : NULL,
                 .rng = n->no_rng ? n->no_rng : made_rng,
                 .call = n->form.bare ? NULL : (tn_call *)(void *)n->call,
                 .ops = n->form.bare ? NULL : made_ops};
    tn_exec *made = MADE(n, tn_exec, ops, x);
    tn_status st;

    chk_call_begin(n->call);
    n->err.message[0] = '\0';
    handed_take(n, &before);
    st = n->side->space->ops->run(n, made);
    answer_check(n, st, "run");
    handed_check(n, &before);
    if (n->call->completions > 1)
        chk_fail(n->lab->env, "K-complete", "complete was called %u times (%s)", n->call->completions,
                 n->p->text);
    made_free(n, made);
    made_free(n, made_ops);
    if (made_rng)
        made_free(n, made_rng);
    return st;
}

tn_status chk_node_run(chk_node *n)
{
    chk_node_reset(n);
    return chk_node_call(n);
}

void chk_node_close(chk_node *n)
{
    chk_call_fini(n->call);
    for (uint32_t i = 0; i < chk_all(&n->p->f); i++) {
        chk_block_drop(&n->in[i].block); /* and those of outputs, which lie behind */
        chk_sparse_drop(&n->in[i]);
    }
    chk_block_drop(&n->workspace);
    chk_block_drop(&n->saved);
    n->side->space->ops->step_give(n);
    if (n->plan && !n->shares_plan) {
        if (n->side->kernel->release)
            n->side->kernel->release(n->plan);
        if (n->plan->tuning.release)
            n->plan->tuning.release(n->plan->tuning.data);
        made_free(n, n->plan);
    }
    n->plan = NULL;
    if (n->own_forward) /* after a refused prepare, too */
        chk_node_close(n->own_forward);
    n->own_forward = NULL;
}

/* ---- outputs ----------------------------------------------------------------------------------------- */

static chk_operand *output_operand(chk_node *n, uint32_t o)
{
    const uint32_t own = n->p->f.args.out_count;

    return o < own ? &n->out[o] : &n->in[n->p->mutated[o - own]];
}

const char *chk_node_output_name(const chk_node *n, uint32_t o)
{
    const chk_args *args = &n->p->f.args;

    return o < args->out_count ? chk_argument_name(n->p->op, args, args->in_count + o)
                               : chk_argument_name(n->p->op, args, n->p->mutated[o - args->out_count]);
}

static void *output_take(chk_node *n, chk_arena *a, uint32_t o, int64_t *count)
{
    chk_operand *from = output_operand(n, o);
    void *dense;

    *count = chk_operand_elements(from);
    if (o < n->p->f.args.out_count && !tn_shape_known(&n->p->f.shape[chk_out(&n->p->f, o)]) &&
        !from->block.memory)
        chk_fail(n->lab->env, "K-resize", "run gave output %u neither shape nor memory (%s)", o, n->p->text);
    if (from->t.storage != TN_STORAGE_DENSE)
        chk_sparse_check(n, from, chk_node_output_name(n, o));
    dense = chk_take(a, (uint64_t)*count * tn_dtype_bytes(from->t.dtype) + 1);
    chk_operand_move(from, dense, false);
    return dense;
}

void *chk_node_output(chk_node *n, uint32_t o, int64_t *count)
{
    return output_take(n, &n->lab->arena, o, count);
}

void chk_outputs_take(chk_node *n, chk_outputs *out)
{
    out->count = n->out_count;
    for (uint32_t o = 0; o < n->out_count; o++) {
        out->data[o] = chk_node_output(n, o, &out->elements[o]);
        out->dtype[o] = n->list.out[o]->dtype;
    }
}

/* On a device nothing faults: an input is looked at afterwards. */
static void input_unchanged(chk_node *n, uint32_t i)
{
    const chk_operand *o = &n->in[i];
    void *now;

    if (o->block.space == &chk_space_host || !n->form.lock || is_poisoned(n, i) ||
        tn_op_mutates(n->p->op, n->p->f.args.in_count, i))
        return;
    now = chk_take(&n->lab->arena, (uint64_t)chk_operand_elements(o) * tn_dtype_bytes(o->t.dtype) + 1);
    chk_operand_move(o, now, false);
    if (memcmp(now, n->p->in_data[i],
               (size_t)((uint64_t)chk_operand_elements(o) * tn_dtype_bytes(o->t.dtype))))
        chk_fail(n->lab->env, "K-readonly", "writes to input %s, which it may only read (%s)",
                 chk_argument_name(n->p->op, &n->p->f.args, i), n->p->text);
}

/* `of`: how many bytes it has, or "". */
static void intact_check(const chk_node *n, const chk_block *b, const char *what, const char *name,
                         const char *of)
{
    uint64_t at = 0;

    if (b->buffer && !b->borrowed && !chk_buffer_intact(b->buffer, &at))
        chk_fail(n->lab->env, "K-bounds", "writes %lld bytes from the start of %s%s%s (%s)", (long long)at,
                 what, name, of, n->p->text);
}

void chk_node_guards(chk_node *n)
{
    const chk_args *args = &n->p->f.args;
    chk_arena *a = &n->lab->arena;
    tn_status st;

    blocks_each(n, chk_block_pull);
    if ((st = chk_node_settle(n)))
        chk_fail(n->lab->env, "D-copy", "after run, copies from the device give %s: %s (%s)",
                 tn_status_name(st), n->err.message, n->p->text);
    for (uint32_t i = 0; i < args->in_count; i++) {
        intact_check(n, &n->in[i].block, "input ", chk_argument_name(n->p->op, args, i), "");
        input_unchanged(n, i);
    }
    for (uint32_t i = 0; i < chk_all(&n->p->f); i++)
        for (uint32_t k = 0; k < 2; k++)
            intact_check(n, &n->in[i].aux_block[k], "the indices of an operand", "", "");
    for (uint32_t o = 0; o < args->out_count; o++)
        intact_check(n, &n->out[o].block, "output ", chk_node_output_name(n, o),
                     chk_text(a, ", which has %llu", (unsigned long long)n->out[o].t.bytes));
    for (const chk_call_block *b = n->call->blocks; b; b = b->next)
        intact_check(n, &b->b, "a block that run asked for", "", "");
    intact_check(n, &n->workspace, "its workspace", "",
                 chk_text(a, ", which has %llu as planned", (unsigned long long)n->plan->workspace_bytes));
    intact_check(n, &n->saved, "its saved block", "",
                 chk_text(a, ", which has %llu as planned", (unsigned long long)n->plan->saved_bytes));
}

/* ---- short ways -------------------------------------------------------------------------------------- */

bool chk_is_refusal(tn_status st)
{
    return st == TN_E_UNSUPPORTED || st == TN_E_ARG || st == TN_E_SHAPE || st == TN_E_DTYPE ||
           st == TN_E_ATTR;
}

bool chk_node_first(chk_lab *lab, const chk_problem *p, const chk_form *form, chk_node *n)
{
    tn_status st = chk_node_open(lab, &lab->side, p, form, n);

    if (!st)
        st = chk_node_run(n);
    if (chk_is_refusal(st)) {
        chk_node_close(n);
        return false;
    }
    chk_fail_if(lab->env, st, NULL, "gives %s: %s (%s)", tn_status_name(st), n->err.message, p->text);
    chk_count(lab->env);
    return true;
}

bool chk_node_try(chk_lab *lab, const chk_problem *p, const chk_form *form, chk_node *n)
{
    tn_status st = chk_node_open(lab, &lab->side, p, form, n);

    if (st == TN_E_UNSUPPORTED) {
        chk_node_close(n);
        return false;
    }
    chk_fail_if(lab->env, st, NULL, "prepare gives %s: %s (%s)", tn_status_name(st), n->err.message, p->text);
    if ((st = chk_node_run(n)))
        chk_fail(lab->env, NULL, "run gives %s: %s (%s)", tn_status_name(st), n->err.message, p->text);
    chk_count(lab->env);
    return true;
}

tn_status chk_outputs_of(chk_lab *lab, const chk_side *side, const chk_problem *p, chk_outputs *out,
                         tn_err *err)
{
    const chk_form form = {.mode = TN_MODE_WRITE};
    chk_node n;
    tn_status st = chk_node_open(lab, side, p, &form, &n);

    if (!st && !(st = chk_node_run(&n)))
        chk_outputs_take(&n, out);
    *err = n.err;
    chk_node_close(&n);
    return st;
}

const char *chk_outputs_differ(chk_node *n, chk_arena *a, const chk_outputs *want, bool exact)
{
    for (uint32_t o = 0; o < n->out_count; o++) {
        int64_t count;
        void *got = output_take(n, a, o, &count);
        const char *differs = NULL;

        if (count != want->elements[o])
            differs = "another number of elements";
        else if (!exact ||
                 memcmp(got, want->data[o], (size_t)((uint64_t)count * tn_dtype_bytes(want->dtype[o]))))
            differs = chk_values_differ(a, got, n->list.out[o]->dtype, want->data[o], want->dtype[o], count,
                                        exact ? 0 : 1);
        if (differs)
            return chk_text(a, "output %s: %s", chk_node_output_name(n, o), differs);
    }
    return NULL;
}

void chk_same(chk_node *n, const chk_outputs *want, bool exact, const char *what)
{
    const char *differs = chk_outputs_differ(n, &n->lab->arena, want, exact);

    chk_fail_if(n->lab->env, differs, NULL, "%s: %s (%s)", what, differs, n->p->text);
}
