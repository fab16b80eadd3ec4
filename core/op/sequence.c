/*
 * Sequences of different lengths in one array: SequenceMask, SequenceLast, SequenceReverse. Steps are along
 * `axis`, sequences along the other one of the first two. Lengths may be of any data type, fractions are cut
 * off; MXNet reads and writes outside of the array where they do not fit, here they are brought to 0 … steps
 * (1 … steps where the last step is asked for). They have no gradient: zeros, where somebody asks.
 */
#include "tenon/plugin/op/sequence.h"
#include "op/infer_help.h"

const tn_op *const tni_family_sequence[] = {
    TNI_ROW("SequenceMask", .doc = "Sets what is behind the end of each sequence to a value.",
            .aliases = TNI_NAMES("_npx_sequence_mask"), .attrs = TNI_ATTRS(SequenceMask),
            .shapes =
                "[axis=1] data:(N:sequences,T,R..) sequence_length?use_sequence_length:(N) -> output:data "
                "| data:(T,N,R..) sequence_length?use_sequence_length:(N) -> output:data",
            .types = "sequence_length:or(T)",
            .gradients = "composed: data = SequenceMask!(dy, sequence_length, value=0) ; sequence_length = "
                         "zeros_like(~sequence_length)"),
    TNI_ROW("SequenceLast", .doc = "The last step of each sequence.", .attrs = TNI_ATTRS(SequenceLast),
            .shapes =
                "[axis=1] data:(N:sequences,T,R..) sequence_length?use_sequence_length:(N) -> output:(N,R..) "
                "| data:(T,N,R..) sequence_length?use_sequence_length:(N) -> output:(N,R..) "
                "; L=T-1", /* there is a last step */
            .gradients = "linear: dy ~data sequence_length -> data", .types = "sequence_length:or(T)"),
    TNI_ROW("SequenceReverse", .doc = "The steps of each sequence from its end to its begin.",
            .attrs = TNI_ATTRS(SequenceReverse),
            .shapes = "data:(T,N:sequences,R..) sequence_length?use_sequence_length:(N) -> output:data",
            .types = "sequence_length:or(T)",
            .gradients = "composed: data = SequenceReverse!(dy, sequence_length) ; sequence_length = "
                         "zeros_like(~sequence_length)"),
    NULL,
};
