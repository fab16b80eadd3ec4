/** Attributes of the operators of the family filter. */
#ifndef TENON_PLUGIN_OP_FILTER_H
#define TENON_PLUGIN_OP_FILTER_H

#include "../attr.h"

#define TN_boolean_mask_ATTRS(X) X(boolean_mask, INT, axis, "0", TN_ANY, "along which elements are chosen")
TN_ATTRS(boolean_mask);

#define TN_npi_unique_ATTRS(X)                                                                               \
    X(npi_unique, BOOL, return_index, "0", TN_ANY, "where each stands for the first time")                   \
    X(npi_unique, BOOL, return_inverse, "0", TN_ANY, "which of them each element is")                        \
    X(npi_unique, BOOL, return_counts, "0", TN_ANY, "how often each is there")                               \
    X(npi_unique, OPT_INT, axis, "None", TN_ANY, "whose slices are compared; None: elements")
TN_ATTRS(npi_unique);

#define TN_mask_assign_scalar_ATTRS(X)                                                                       \
    X(mask_assign_scalar, FLOAT_RUN, value, TN_REQUIRED, TN_ANY, "where the mask is not 0")                  \
    X(mask_assign_scalar, INT, start_axis, TN_REQUIRED, TN_ANY, "of the data, where the mask's axes begin")
TN_ATTRS(mask_assign_scalar);

#define TN_mask_assign_tensor_ATTRS(X)                                                                       \
    X(mask_assign_tensor, INT, start_axis, TN_REQUIRED, TN_ANY, "of the data, where the mask's axes begin")
TN_ATTRS(mask_assign_tensor);

#endif
