/** Attributes of the operators of the family ctc. */
#ifndef TENON_PLUGIN_OP_CTC_H
#define TENON_PLUGIN_OP_CTC_H

#include "../attr.h"

#define TN_CTCLoss_blank_label_CHOICES(C, op, name) C(op, name, first) C(op, name, last)
#define TN_CTCLoss_ATTRS(X)                                                                                  \
    X(CTCLoss, BOOL, use_data_lengths, "0", TN_ANY, "there is an input data_lengths")                        \
    X(CTCLoss, BOOL, use_label_lengths, "0", TN_ANY,                                                         \
      "there is an input label_lengths; else labels are padded")                                             \
    X(CTCLoss, CHOICE, blank_label, "first", TN_ANY, "the symbol that stands for none")
TN_ATTRS(CTCLoss);
TN_CHOICES(CTCLoss, blank_label);

#endif
