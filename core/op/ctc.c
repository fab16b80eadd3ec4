/*
 * CTCLoss: minus the logarithm of the probability that a sequence of symbols, each step drawn by the softmax
 * of data (T, N, C), gives the label once repeats are joined and blanks left out (Graves and others:
 * "Connectionist temporal classification", ICML 2006). Labels end at the first padding: 0 where the first
 * symbol is the blank, -1 where the last one is. `grad` is the loss's gradient, which the backward multiplies
 * by what arrives. A label that the steps are too few for has loss and gradient 0, as in MXNet.
 */
#include "tenon/plugin/op/ctc.h"
#include "op/cost.h"
#include "op/infer_help.h"

const tn_op *const tni_family_ctc[] = {
    TNI_ROW("CTCLoss", .doc = "Minus the logarithm of each label's probability over all alignments.",
            .aliases = TNI_NAMES("_contrib_CTCLoss", "_contrib_ctc_loss", "ctc_loss"),
            .attrs = TNI_ATTRS(CTCLoss), .flags = TN_OP_CHECKS_VALUES,
            .shapes = "data:(T,N:sequences,C) label:(N,L) data_lengths?use_data_lengths:(N)"
                      " label_lengths?use_label_lengths:(N) -> output:(N) grad~:data ; D=T-L ; B=C-1",
            .types = "T:float; label:or(T); data_lengths:or(T); label_lengths:or(label)",
            .gradients = "once: dy grad -> data", .cost = tni_cost_normalise),
    NULL,
};
