/** Attributes of the operators of the family regression. */
#ifndef TENON_PLUGIN_OP_REGRESSION_H
#define TENON_PLUGIN_OP_REGRESSION_H

#include "../attr.h"

/* LinearRegressionOutput, LogisticRegressionOutput, MAERegressionOutput */
#define TN_regression_ATTRS(X)                                                                               \
    X(regression, FLOAT, grad_scale, "1", TN_ANY, "what the gradient is multiplied by")
TN_ATTRS(regression);

#endif
