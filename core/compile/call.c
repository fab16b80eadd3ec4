/*
 * The program of one eager call: one instruction, every operand a port. The arrays of later calls have the
 * shapes and strides that it was made for.
 */
#include "compile/code.h"

static tn_status operand_add(tni_code *c, const tn_tensor *t, uint32_t kind, uint32_t index, uint32_t mode,
                             uint32_t *out)
{
    int64_t *dims = tni_arena_alloc(c->p->memory, (size_t)(t->ndim > 0 ? 2 * t->ndim : 1) * sizeof *dims);
    tni_value like = {.device = c->spec->device, .tensor = *t};
    tni_value *v;
    tn_status st;

    if (!dims)
        return TN_E_NOMEM;
    like.tensor.data = NULL;
    like.tensor.shape = dims;
    for (int32_t d = 0; d < t->ndim; d++)
        dims[d] = t->shape[d];
    if ((st = tni_code_value_add(c, &like, out)))
        return st;
    v = tni_code_value(c, *out);
    if (kind == TNI_PORT_INPUT && t->ndim > 0) {
        for (int32_t d = 0; d < t->ndim; d++)
            dims[t->ndim + d] = t->stride[d];
        v->tensor.stride = dims + t->ndim;
        v->tensor.bytes = t->bytes;
    }
    return tni_code_port_add(c, kind, index, *out, mode);
}

static tn_status call_lower(tni_code *c, const tni_request *r, uint32_t random)
{
    tni_instruction in = {.def = r->def,
                          .random = random,
                          .workspace = TNI_NONE,
                          .saved = TNI_NONE,
                          .in_count = r->in_count,
                          .out_count = r->out_count,
                          .kind = r->def->op->exec};
    uint32_t value = 0, mutated = 0, outs;
    tn_status st = TN_OK;

    for (uint32_t i = 0; r->def->op->mutates && i < r->in_count; i++)
        mutated += (uint32_t)tn_op_mutates(r->def->op, r->in_count, i);
    outs = r->out_count - mutated;
    for (uint32_t i = 0; i < r->in_count && !st; i++)
        if (!(st = operand_add(c, r->in[i], TNI_PORT_INPUT, i, TN_MODE_WRITE, &value)))
            st = tni_code_operand_push(c, value, TN_MODE_NONE);
    for (uint32_t o = 0; o < outs && !st; o++)
        if (!(st = operand_add(c, r->out[o], TNI_PORT_OUTPUT, o, r->modes[o], &value)))
            st = tni_code_operand_push(c, value, r->modes[o]);
    for (uint32_t i = 0; mutated && i < r->in_count && !st; i++)
        if (tn_op_mutates(r->def->op, r->in_count, i))
            st = tni_code_operand_push(c, i, TN_MODE_WRITE);
    if (st)
        return st;
    c->p->input_count = r->in_count;
    c->p->output_count = outs;
    in.attrs = tni_attrs_retain((tni_attrs *)r->attrs);
    if ((st = tni_vec_push(&c->code, &in)))
        tni_attrs_release(in.attrs);
    else
        tni_code_index(c);
    return st;
}

static tn_status call_make(tni_code *c, void *arg)
{
    const tni_call_request *q = arg;

    return call_lower(c, q->request, q->random ? 0 : TNI_NONE);
}

/* Arguments that the kernel takes as they are. */
static void strided_note(tni_program *p, const tni_instruction *in)
{
    for (uint32_t i = 0; i < p->input_count; i++)
        p->ports[i].strided = tni_prepared_strides(in->prepared, in->def, i);
}

tn_status tni_program_of_call(tni_selector *s, const tni_request *r, tni_program **out)
{
    const tni_call_request q = {r, (r->def->op->effects & TN_EFFECT_RANDOM) != 0};
    tni_program_spec spec = {.device = r->device,
                             .threads = r->threads,
                             .flags = r->flags,
                             .backward_node = 1,
                             .call_forward = r->forward};
    tn_status st = tni_program_make(s, &spec, call_make, (void *)&q, out);
    tni_program *p = *out;

    if (st)
        return st;
    p->random_count = q.random;
    for (uint32_t i = 0; i < p->code_count; i++)
        if (!(p->code[i].flags & TNI_CODE_HELPER))
            p->main_code = i;
    strided_note(p, &p->code[p->main_code]);
    return TN_OK;
}
