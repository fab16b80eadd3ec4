/* What operators cost at least, from their shapes and data types. */
#include "op/cost.h"

#include "op/op.h"

uint64_t tni_cost_elements(const tn_shape *s, int32_t from)
{
    uint64_t n = 1;

    for (int32_t d = from; d < s->ndim; d++)
        n = tn_cost_times(n, (uint64_t)s->dim[d]);
    return n;
}

void tni_cost_products(tn_cost *c, uint64_t macs)
{
    c->macs = macs;
    c->flops = tn_cost_times(2, macs);
}

void tni_cost_each_output(const tn_infer *i, tn_cost *c)
{
    c->flops = i->out_count ? tni_cost_elements(i->out_shape[0], 0) : TN_COST_UNKNOWN;
}

void tni_cost_each_input(const tn_infer *i, tn_cost *c)
{
    c->flops = tni_cost_elements(i->in_shape[0], 0);
}

void tni_cost_normalise(const tn_infer *i, tn_cost *c)
{
    c->flops = tn_cost_times(4, tni_cost_elements(i->in_shape[0], 0));
}

void tni_cost_filters(const tn_infer *i, tn_cost *c)
{
    tni_cost_products(
        c, tn_cost_times(tni_cost_elements(i->out_shape[0], 0), tni_cost_elements(i->in_shape[1], 1)));
}

static uint64_t bytes_of(uint32_t count, tn_shape *const *shape, const int32_t *dtype)
{
    uint64_t sum = 0;

    for (uint32_t k = 0; k < count && sum != TN_COST_UNKNOWN; k++) {
        const uint64_t elements = tni_cost_elements(shape[k], 0);
        const uint64_t bytes = tn_dtype_bits(dtype[k]) < 8 && elements != TN_COST_UNKNOWN
                                   ? tn_dtype_size(dtype[k], elements)
                                   : tn_cost_times(elements, tn_dtype_bytes(dtype[k]));

        sum = bytes > TN_COST_UNKNOWN - 1 - sum ? TN_COST_UNKNOWN : sum + bytes;
    }
    return sum;
}

void tni_op_cost(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args, tn_shape *const *in,
                 tn_shape *const *out, int32_t *in_dtype, int32_t *out_dtype, tn_cost *cost)
{
    const tn_op *op = def->op;
    tn_err err;
    tn_infer i = tni_infer_of(def, TNI_OF_COST, attrs, args, 0, &err);
    uint64_t more;

    i.in_shape = in;
    i.out_shape = out;
    i.in_dtype = in_dtype;
    i.out_dtype = out_dtype;
    /* The library's definitions say where there are products. */
    *cost = (tn_cost){.struct_size = sizeof *cost, .macs = def->family ? 0 : TN_COST_UNKNOWN};
    if (op->flags & TN_OP_VIEW)
        return;
    cost->flops = TN_COST_UNKNOWN;
    cost->bytes = bytes_of(args->in_count, in, in_dtype);
    more = bytes_of(args->visible_count, out, out_dtype);
    cost->bytes = more > TN_COST_UNKNOWN - 1 - cost->bytes ? TN_COST_UNKNOWN : cost->bytes + more;
    if (op->struct_size >= TN_END(tn_op, cost) && op->cost)
        op->cost(&i, cost);
    else if (op->flags & TN_OP_POINTWISE)
        tni_cost_each_output(&i, cost);
    if (cost->reserved) /* it speaks of what this version does not know */
        cost->macs = cost->flops = cost->bytes = TN_COST_UNKNOWN;
}
