/** Attributes of the operators of the family activation. */
#ifndef TENON_PLUGIN_OP_ACTIVATION_H
#define TENON_PLUGIN_OP_ACTIVATION_H

#include "../attr.h"

#define TN_Activation_act_type_CHOICES(C, op, name)                                                          \
    C(op, name, relu) C(op, name, sigmoid) C(op, name, tanh) C(op, name, softrelu) C(op, name, softsign)
#define TN_Activation_ATTRS(X) X(Activation, CHOICE, act_type, TN_REQUIRED, TN_ANY, "the function")
TN_ATTRS(Activation);
TN_CHOICES(Activation, act_type);

#define TN_LeakyReLU_act_type_CHOICES(C, op, name)                                                           \
    C(op, name, rrelu)                                                                                       \
    C(op, name, leaky) C(op, name, prelu) C(op, name, elu) C(op, name, selu) C(op, name, gelu)
#define TN_LeakyReLU_ATTRS(X)                                                                                \
    X(LeakyReLU, CHOICE, act_type, "leaky", TN_ANY, "the function")                                          \
    X(LeakyReLU, FLOAT, slope, "0.25", TN_ANY, "leaky: slope below 0; elu: limit below 0, negated")          \
    X(LeakyReLU, FLOAT, lower_bound, "0.125", TN_ANY, "rrelu: smallest slope")                               \
    X(LeakyReLU, FLOAT, upper_bound, "0.334", TN_ANY, "rrelu: largest slope")
TN_ATTRS(LeakyReLU);
TN_CHOICES(LeakyReLU, act_type);

#endif
