/** Attributes of the operators of the family softmax. */
#ifndef TENON_PLUGIN_OP_SOFTMAX_H
#define TENON_PLUGIN_OP_SOFTMAX_H

#include "../attr.h"

/* softmax, log_softmax, softmin */
#define TN_softmax_ATTRS(X)                                                                                  \
    X(softmax, INT, axis, "-1", TN_ANY, "axis along which the outputs sum to 1")                             \
    X(softmax, OPT_FLOAT, temperature, "None", TN_ANY, "the input is divided by this; None: 1")              \
    X(softmax, DTYPE, dtype, "None", TN_ANY, "type of the output; None: the input's")                        \
    X(softmax, OPT_BOOL, use_length, "False", TN_ANY,                                                        \
      "take the number of valid elements along the axis from a second input")
TN_ATTRS(softmax);

#define TN_SoftmaxActivation_mode_CHOICES(C, op, name) C(op, name, instance) C(op, name, channel)
#define TN_SoftmaxActivation_ATTRS(X)                                                                        \
    X(SoftmaxActivation, CHOICE, mode, "instance", TN_ANY, "over all of an example, or over axis 1")
TN_ATTRS(SoftmaxActivation);
TN_CHOICES(SoftmaxActivation, mode);

#define TN_SoftmaxOutput_normalization_CHOICES(C, op, name)                                                  \
    C(op, name, batch) C(op, name, null) C(op, name, valid)
#define TN_SoftmaxOutput_ATTRS(X)                                                                            \
    X(SoftmaxOutput, FLOAT, grad_scale, "1", TN_ANY, "factor of the gradient")                               \
    X(SoftmaxOutput, FLOAT, ignore_label, "-1", TN_ANY,                                                      \
      "with use_ignore: examples of this label give no gradient")                                            \
    X(SoftmaxOutput, BOOL, multi_output, "False", TN_ANY,                                                    \
      "classes are axis 1, one label for each position of the other axes")                                   \
    X(SoftmaxOutput, BOOL, use_ignore, "False", TN_ANY, "mind ignore_label")                                 \
    X(SoftmaxOutput, BOOL, preserve_shape, "False", TN_ANY, "classes are the last axis")                     \
    X(SoftmaxOutput, CHOICE, normalization, "null", TN_ANY,                                                  \
      "what the gradient is divided by: examples, 1, examples that are not ignored")                         \
    X(SoftmaxOutput, BOOL, out_grad, "False", TN_ANY, "multiply by the gradient that arrives")               \
    X(SoftmaxOutput, FLOAT, smooth_alpha, "0", TN_IN(0, 1),                                                  \
      "label smoothing: probability moved to the other classes")
TN_ATTRS(SoftmaxOutput);
TN_CHOICES(SoftmaxOutput, normalization);

#endif
