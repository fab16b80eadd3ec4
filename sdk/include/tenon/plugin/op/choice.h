/** Attributes of the operators of the family choice. */
#ifndef TENON_PLUGIN_OP_CHOICE_H
#define TENON_PLUGIN_OP_CHOICE_H

#include "../attr.h"

#define TN_sample_multinomial_ATTRS(X)                                                                       \
    X(sample_multinomial, TUPLE, shape, "[]", TN_IN(0, 9e15), "of the draws for each row of data")           \
    X(sample_multinomial, BOOL, get_prob, "0", TN_ANY, "gives the logarithms of their probabilities, too")   \
    X(sample_multinomial, DTYPE, dtype, "int32", TN_ANY, "of the positions")
TN_ATTRS(sample_multinomial);

#define TN_sample_unique_zipfian_ATTRS(X)                                                                    \
    X(sample_unique_zipfian, INT, range_max, TN_REQUIRED, TN_IN(1, 2147483647),                              \
      "how many classes there are")                                                                          \
    X(sample_unique_zipfian, TUPLE, shape, "None", TN_IN(0, 9e15), "(rows, different classes of each row)")
TN_ATTRS(sample_unique_zipfian);

#define TN_npi_choice_ATTRS(X)                                                                               \
    X(npi_choice, OPT_INT, a, TN_REQUIRED, TN_IN(0, 9e15), "positions to choose from; None: an input's")     \
    X(npi_choice, TUPLE, size, TN_REQUIRED, TN_IN(0, 9e15), "shape of the output; None: one position")       \
    X(npi_choice, TEXT, ctx, "cpu", TN_ANY, "device, read by whoever calls")                                 \
    X(npi_choice, BOOL, replace, "1", TN_ANY, "a position may be chosen again")                              \
    X(npi_choice, BOOL, weighted, "0", TN_ANY, "the last input has the probabilities")
TN_ATTRS(npi_choice);

#define TN_npi_multinomial_ATTRS(X)                                                                          \
    X(npi_multinomial, INT, n, TN_REQUIRED, TN_IN(0, 2147483647), "experiments")                             \
    X(npi_multinomial, FLOATS, pvals, "None", TN_ANY, "probabilities of the outcomes; None: an input")       \
    X(npi_multinomial, TUPLE, size, "None", TN_IN(0, 9e15), "how often; None: once")
TN_ATTRS(npi_multinomial);

#endif
