/*
 * Sequences of different lengths in one array: SequenceMask, SequenceLast, SequenceReverse. Steps are along
 * `axis`, sequences along the other one of the first two. Lengths may be of any data type, fractions are cut
 * off; MXNet reads and writes outside of the array where they do not fit, here they are brought to 0 … steps
 * (1 … steps where the last step is asked for). They have no gradient: zeros, where somebody asks.
 */
#include "tenon/plugin/op/sequence.h"
#include "op/infer_help.h"

static const tn_attr_def mask_attrs[] = TN_ATTR_TABLE(SequenceMask);

static const tn_attr_def last_attrs[] = TN_ATTR_TABLE(SequenceLast);

static const tn_attr_def reverse_attrs[] = TN_ATTR_TABLE(SequenceReverse);

/* Of operators whose gradient is one of themselves: `op` with the same lengths and attributes but `zero`. */
static tn_status sequence_grad(tn_grad *g, const char *zero)
{
    const tn_edge in[] = {tn_grad_of(g, 0), g->in_count > 1 ? tn_grad_input(g, 1) : tn_grad_of(g, 0)};
    const tn_attr_text attr = {zero, "0"};
    const tn_emit e = {(uint32_t)TN_END(tn_emit, attr_count),
                       TN_EMIT_INHERIT,
                       g->op->name,
                       in,
                       &attr,
                       g->in_count,
                       zero != NULL};
    tn_edge dx = {NULL, 0, 0};
    tn_status st = TN_OK;

    if (!in[0].node)
        return TN_OK;
    if (g->ops->needs(g, 0) && (st = g->ops->emit(g, &e, &dx)) == TN_OK)
        st = g->ops->set(g, 0, dx);
    if (!st && g->in_count > 1 && g->ops->needs(g, 1))
        st = tni_grad_set(g, &st, 1, tni_grad_op1(g, &st, "zeros_like", in[1]));
    return st;
}

static tn_status mask_grad(tn_grad *g)
{
    return sequence_grad(g, "value");
}

static tn_status reverse_grad(tn_grad *g)
{
    return sequence_grad(g, NULL);
}

static const tn_op mask = TNI_OP(
    "SequenceMask", .doc = "Sets what is behind the end of each sequence to a value.",
    .aliases = TNI_NAMES("_npx_sequence_mask"), .attrs = mask_attrs,
    .shapes = "[axis=1] data:(N:sequences,T,R..) sequence_length?use_sequence_length:(N) -> output:data "
              "| data:(T,N,R..) sequence_length?use_sequence_length:(N) -> output:data",
    .types = "sequence_length:or(T)", .gradient = mask_grad);

static const tn_op last = TNI_OP(
    "SequenceLast", .doc = "The last step of each sequence.", .attrs = last_attrs,
    .shapes = "[axis=1] data:(N:sequences,T,R..) sequence_length?use_sequence_length:(N) -> output:(N,R..) "
              "| data:(T,N,R..) sequence_length?use_sequence_length:(N) -> output:(N,R..) "
              "; L=T-1", /* there is a last step */
    .gradients = "linear: dy data sequence_length -> data", .types = "sequence_length:or(T)");

static const tn_op reverse = TNI_OP(
    "SequenceReverse", .doc = "The steps of each sequence from its end to its begin.", .attrs = reverse_attrs,
    .shapes = "data:(T,N:sequences,R..) sequence_length?use_sequence_length:(N) -> output:data",
    .types = "sequence_length:or(T)", .gradient = reverse_grad);

const tn_op *const tni_family_sequence[] = {&mask, &last, &reverse, NULL};
