/*
 * Kernels: each instruction gets the one that serves it, its workspace, and the block that a forward leaves
 * for its backward.
 */
#include "compile/code.h"

#define CONSTANT_DEPTH 6u  /* instructions looked through: pass fold leaves three */
#define CONSTANT_INPUTS 6u /* of one of them */

/* What the forward of a backward node runs on, and where its block lies. */
typedef struct forward {
    tni_prepared *prepared; /* NULL: not known */
    uint32_t saved;         /* value; TNI_NONE: outside */
    uint32_t node;
} forward;

static tn_status lent_block(tni_code *c, const tni_instruction *theirs, uint32_t *out)
{
    const tni_value *v = &c->spec->lender->values[theirs->saved];
    tn_status st;

    if (!tni_value_crosses(c->spec->lender, theirs->saved))
        return tni_error(TN_E_INTERNAL, "the block that %s saved was not kept", theirs->def->op->name);
    if ((st = tni_code_block_add(c, v->device, v->tensor.bytes, out)))
        return st;
    tni_code_value(c, *out)->place = TNI_PLACE_LENT;
    tni_code_value(c, *out)->arena = v->arena;
    tni_code_value(c, *out)->offset = v->offset;
    return TN_OK;
}

static forward forward_of(const tni_code *c, const tni_instruction *in)
{
    const tni_program *lender = c->spec->lender;
    const tni_gnode *node = c->p->graph ? &c->p->graph->nodes[in->node] : NULL;
    forward f = {.prepared = c->spec->call_forward, .saved = TNI_NONE, .node = TNI_NONE};

    if (!node)
        return f;
    if (!(node->flags & TNI_GNODE_BACKWARD) || node->forward == TNI_NONE || in->flags & TNI_CODE_HELPER)
        return f;
    f.node = node->forward;
    if (f.node >= c->spec->first_node) {
        if (c->code_of[f.node] != TNI_NONE) {
            f.prepared = tni_code_at(c, c->code_of[f.node])->prepared;
            f.saved = tni_code_at(c, c->code_of[f.node])->saved;
        }
    } else if (lender) {
        f.prepared =
            lender->code_of[f.node] == TNI_NONE ? NULL : lender->code[lender->code_of[f.node]].prepared;
    } else {
        f.prepared = c->spec->forward ? c->spec->forward[f.node] : NULL;
    }
    return f;
}

/* The block that a backward reads: of its forward here, of the lender, or an array. */
static tn_status saved_read(tni_code *c, tni_instruction *in, const forward *f)
{
    const uint64_t bytes = tni_prepared_reads(in->prepared);
    uint32_t saved = f->saved;
    tn_status st = TN_OK;

    if (!bytes)
        return TN_OK;
    if (saved == TNI_NONE && c->spec->lender)
        st = lent_block(c, &c->spec->lender->code[c->spec->lender->code_of[f->node]], &saved);
    else if (saved == TNI_NONE && !(st = tni_code_block_add(c, tni_code_device(c, in), bytes, &saved)))
        st = tni_code_port_add(c, TNI_PORT_SAVED, f->node, saved, TN_MODE_WRITE);
    in->saved = saved;
    in->flags |= TNI_CODE_READS_SAVED;
    return st;
}

static tn_status blocks_make(tni_code *c, uint32_t index, const forward *f)
{
    tni_instruction *in = tni_code_at(c, index);
    const tn_plan *plan = &in->prepared->plan;
    tni_device *d = tni_code_device(c, in);
    tn_status st = saved_read(c, in, f);

    if (!st && plan->workspace_bytes &&
        !(st = tni_code_block_add(c, d, tni_workspace_bytes(plan), &in->workspace)))
        tni_code_value(c, in->workspace)->def = index;
    if (!st && plan->saved_bytes && !(st = tni_code_block_add(c, d, plan->saved_bytes, &in->saved)))
        tni_code_value(c, in->saved)->def = index;
    if (!st && plan->saved_bytes && !c->p->graph) /* of one call: the tape holds it */
        st = tni_code_port_add(c, TNI_PORT_SAVED, 0, in->saved, TN_MODE_WRITE);
    return st;
}

/* It follows from constants alone, as far as can be told before pass constants: through a few instructions,
 * such as those that pass fold leaves. */
static bool is_constant(const tni_code *c, uint32_t value, uint32_t depth)
{
    const tni_value *v = tni_code_value(c, tni_code_root(c, value));
    const tni_instruction *in = v->def == TNI_NONE ? NULL : tni_code_at(c, v->def);
    const tni_port *port = v->place == TNI_PLACE_PORT ? tni_vec_at(&c->ports, v->port) : NULL;
    bool constant = in && depth && in->in_count && in->in_count <= CONSTANT_INPUTS &&
                    in->kind == TN_EXEC_KERNEL && !in->def->op->effects && !in->def->op->mutates;

    if (port)
        return port->kind == TNI_PORT_INPUT && c->spec->constants[port->index];
    for (uint32_t i = 0; constant && i < in->in_count; i++)
        constant = is_constant(c, tni_code_operands(c, in)[i], depth - 1);
    return constant;
}

/* Chooses and prepares the kernel of `in`. */
static tn_status kernel_find(tni_code *c, tni_instruction *in, const uint32_t *operands, const uint8_t *modes,
                             tni_prepared *of)
{
    const uint32_t count = in->in_count + in->out_count;
    const tn_tensor **t = tni_calloc(count + 1u, sizeof *t);
    tni_request r = {.def = in->def, .attrs = in->attrs, .device = tni_code_device(c, in), .forward = of};
    tn_status st;

    if (!t)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        t[i] = &tni_code_value(c, operands[i])->tensor;
    r.in = t;
    r.out = t + in->in_count;
    r.modes = modes + in->in_count;
    r.in_count = in->in_count;
    r.out_count = in->out_count;
    r.threads = c->p->threads;
    r.flags = (uint16_t)(tni_instruction_backward(in) ? c->spec->flags & ~TN_NODE_RECORDED : c->spec->flags);
    r.flags |=
        (c->layouts ? TN_NODE_LAYOUTS : 0u) | (in->flags & TNI_CODE_ADD_SHORT ? TN_NODE_ADD_SHORT : 0u);
    if (c->constants && c->spec->constants && in->in_count > 1 && is_constant(c, operands[1], CONSTANT_DEPTH))
        r.flags |= TN_NODE_CONSTANT_WEIGHT;
    st = tni_select(c->selector, &r, &in->prepared);
    tni_free((void *)t);
    return st;
}

/* What no kernel needs to see. */
static void empty_note(const tni_code *c, tni_instruction *in, const uint32_t *operands)
{
    bool empty = !(in->prepared->kernel->flags & TN_KERNEL_EMPTY_OK);

    for (uint32_t o = 0; o < in->out_count; o++) {
        const tn_tensor *t = &tni_code_value(c, operands[in->in_count + o])->tensor;

        empty = empty && t->ndim >= 0 && tn_tensor_count(t) == 0;
    }
    in->flags |= empty ? TNI_CODE_SKIP_EMPTY : 0u;
}

tn_status tni_code_prepare(tni_code *c, tni_instruction *in, const uint32_t *operands, const uint8_t *modes)
{
    tn_status st;

    in->device = tni_code_value(c, operands[0])->device; /* of a copy between devices: this side of it */
    st = kernel_find(c, in, operands, modes, NULL);

    if (st)
        return st;
    empty_note(c, in, operands);
    if (!in->prepared->plan.workspace_bytes)
        return TN_OK;
    return tni_code_block_add(c, tni_code_device(c, in), tni_workspace_bytes(&in->prepared->plan),
                              &in->workspace);
}

tn_status tni_code_servable(tni_code *c, const tni_instruction *in, const uint32_t *operands,
                            const uint8_t *modes)
{
    tni_instruction asked = *in;
    tn_status st;

    asked.prepared = NULL;
    st = kernel_find(c, &asked, operands, modes, NULL);
    if (!st && asked.prepared->plan.saved_bytes)
        st = TN_E_UNSUPPORTED; /* for a backward of its own, which nobody calls */
    tni_prepared_release(asked.prepared);
    return st;
}

tn_status tni_code_choose(tni_code *c, uint32_t index, tni_prepared **out)
{
    tni_instruction asked = *tni_code_at(c, index);
    const tn_status st = kernel_find(c, &asked, tni_code_operands(c, &asked), tni_code_modes(c, &asked),
                                     forward_of(c, &asked).prepared);

    *out = st ? NULL : asked.prepared;
    return st;
}

/* A call of one operator: what is not row-major comes to a kernel that takes dense tensors as a dense one,
 * and so does what is copied to the host for it. */
static void operands_densify(const tni_code *c, const tni_instruction *in)
{
    for (uint32_t i = 0; !c->p->graph && i < in->in_count; i++) {
        tn_tensor *t = &tni_code_value(c, tni_code_operands(c, in)[i])->tensor;

        if (tni_prepared_strides(in->prepared, in->def, i))
            continue;
        t->bytes = tn_dtype_size(t->dtype, (uint64_t)tni_row_major(t->ndim, t->shape, (int64_t *)t->stride));
    }
}

/* Results with memory of their own that nothing else lies in keep the layout that their kernel gives them. */
static void layouts_give(const tni_code *c, const tni_instruction *in, const uint8_t *viewed)
{
    for (uint32_t o = 0; in->prepared->layouts && o < in->out_count; o++) {
        const uint32_t value = tni_code_operands(c, in)[in->in_count + o];
        tni_value *v = tni_code_value(c, value);

        if (v->root == value && !viewed[value] && v->place == TNI_PLACE_NONE &&
            v->def == (uint32_t)(in - tni_code_at(c, 0)))
            v->tensor.layout = in->prepared->plan.out_layout[o];
    }
}

static uint8_t *viewed_find(const tni_code *c)
{
    uint8_t *viewed = tni_calloc(c->values.count + 1, 1);

    for (uint32_t v = 0; viewed && v < c->values.count; v++)
        viewed[tni_code_root(c, v)] |= tni_code_root(c, v) != v;
    return viewed;
}

/* What no kernel runs. */
static tn_status kind_check(const tni_code *c, const tni_instruction *in)
{
    if (in->kind == TN_EXEC_COPY || in->kind == TN_EXEC_SUBGRAPH)
        return TN_OK;
    return tni_error(TN_E_UNSUPPORTED, "node \"%.80s\" (%s): nothing runs operators of kind %u yet",
                     tni_code_name(c, in), in->def->op->name, in->kind);
}

tn_status tni_pass_select(tni_code *c)
{
    uint8_t *viewed = viewed_find(c);
    tn_status st = viewed ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < c->code.count && !st; i++) {
        tni_instruction *in = tni_code_at(c, i);
        forward f;

        if (in->prepared) /* computed again, as it was */
            continue;
        if (in->kind != TN_EXEC_KERNEL && in->kind != TN_EXEC_HOST) {
            st = kind_check(c, in);
            continue;
        }
        f = forward_of(c, in);
        if ((st = kernel_find(c, in, tni_code_operands(c, in), tni_code_modes(c, in), f.prepared)))
            break;
        empty_note(c, in, tni_code_operands(c, in));
        operands_densify(c, in);
        layouts_give(c, in, viewed);
        st = blocks_make(c, i, &f);
    }
    tni_free(viewed);
    return st;
}
