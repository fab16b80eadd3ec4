/** Attributes of the operators of the family sequence. */
#ifndef TENON_PLUGIN_OP_SEQUENCE_H
#define TENON_PLUGIN_OP_SEQUENCE_H

#include "../attr.h"

#define TN_SEQUENCE_ROW(X, op)                                                                               \
    X(op, BOOL, use_sequence_length, "0", TN_ANY, "there is an input sequence_length")

#define TN_SequenceMask_ATTRS(X)                                                                             \
    TN_SEQUENCE_ROW(X, SequenceMask)                                                                         \
    X(SequenceMask, FLOAT, value, "0", TN_ANY, "behind the end of a sequence")                               \
    X(SequenceMask, INT, axis, "0", TN_IN(0, 1), "of the steps")
TN_ATTRS(SequenceMask);

#define TN_SequenceLast_ATTRS(X)                                                                             \
    TN_SEQUENCE_ROW(X, SequenceLast)                                                                         \
    X(SequenceLast, INT, axis, "0", TN_IN(0, 1), "of the steps")
TN_ATTRS(SequenceLast);

#define TN_SequenceReverse_ATTRS(X)                                                                          \
    TN_SEQUENCE_ROW(X, SequenceReverse)                                                                      \
    X(SequenceReverse, INT, axis, "0", TN_IN(0, 0), "of the steps")
TN_ATTRS(SequenceReverse);

#endif
