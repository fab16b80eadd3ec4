/** Attributes of the operators of the family pad. */
#ifndef TENON_PLUGIN_OP_PAD_H
#define TENON_PLUGIN_OP_PAD_H

#include "../attr.h"

#define TN_Pad_mode_CHOICES(C, op, name) C(op, name, constant) C(op, name, edge) C(op, name, reflect)
#define TN_Pad_ATTRS(X)                                                                                      \
    X(Pad, CHOICE, mode, TN_REQUIRED, TN_ANY, "what stands in the padding")                                  \
    X(Pad, TUPLE, pad_width, TN_REQUIRED, TN_IN(0, 2147483647), "elements before and behind, of each axis")  \
    X(Pad, FLOAT_RUN, constant_value, "0", TN_ANY, "of mode constant")
TN_ATTRS(Pad);
TN_CHOICES(Pad, mode);

#define TN_npi_pad_mode_CHOICES(C, op, name)                                                                 \
    C(op, name, constant)                                                                                    \
    C(op, name, edge) C(op, name, reflect) C(op, name, symmetric) C(op, name, maximum) C(op, name, minimum)
#define TN_npi_pad_ATTRS(X)                                                                                  \
    X(npi_pad, PAIRS, pad_width, TN_REQUIRED, TN_IN(0, 2147483647),                                          \
      "elements before and behind, of each axis: ((1, 2), (0, 3))")                                          \
    X(npi_pad, CHOICE, mode, "constant", TN_ANY, "what stands in the padding")                               \
    X(npi_pad, FLOAT_RUN, constant_value, "0", TN_ANY, "of mode constant")                                   \
    X(npi_pad, TEXT, reflect_type, "even", TN_ANY, "even is there alone")
TN_ATTRS(npi_pad);
TN_CHOICES(npi_pad, mode);

#endif
