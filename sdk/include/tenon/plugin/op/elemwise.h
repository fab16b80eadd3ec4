/** Attributes of the operators of the family elemwise. */
#ifndef TENON_PLUGIN_OP_ELEMWISE_H
#define TENON_PLUGIN_OP_ELEMWISE_H

#include "../attr.h"

#define TN_MakeLoss_normalization_CHOICES(C, op, name) C(op, name, batch) C(op, name, null) C(op, name, valid)
#define TN_MakeLoss_ATTRS(X)                                                                                 \
    X(MakeLoss, FLOAT, grad_scale, "1", TN_ANY, "factor of the gradient")                                    \
    X(MakeLoss, FLOAT, valid_thresh, "0", TN_ANY, "with normalization=valid: elements above this count")     \
    X(MakeLoss, CHOICE, normalization, "null", TN_ANY,                                                       \
      "what the gradient is divided by: the batch size, 1, the number of valid elements")
TN_ATTRS(MakeLoss);
TN_CHOICES(MakeLoss, normalization);

/* _copyto */
#define TN_copyto_ATTRS(X) X(copyto, TEXT, ctx, "", TN_ANY, "device of the copy; none: where the input is")
TN_ATTRS(copyto);

#define TN_add_n_ATTRS(X) X(add_n, COUNT, num_args, TN_REQUIRED, TN_IN(0, 4096), "number of inputs")
TN_ATTRS(add_n);

/* Cast, amp_cast */
#define TN_Cast_ATTRS(X) X(Cast, DTYPE, dtype, TN_REQUIRED, TN_ANY, "type of the output")
TN_ATTRS(Cast);

#define TN_amp_multicast_ATTRS(X)                                                                            \
    X(amp_multicast, INT, num_outputs, TN_REQUIRED, TN_IN(1, 4096), "arrays that are cast")                  \
    X(amp_multicast, BOOL, cast_narrow, "0", TN_ANY, "to the narrowest type, not the widest")
TN_ATTRS(amp_multicast);

#endif
