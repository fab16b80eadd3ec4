/** Attributes of the operators of the family rnn. */
#ifndef TENON_PLUGIN_OP_RNN_H
#define TENON_PLUGIN_OP_RNN_H

#include "../attr.h"

#define TN_RNN_mode_CHOICES(C, op, name)                                                                     \
    C(op, name, gru) C(op, name, lstm) C(op, name, rnn_relu) C(op, name, rnn_tanh)
#define TN_RNN_ATTRS(X)                                                                                      \
    X(RNN, INT, state_size, TN_REQUIRED, TN_IN(1, 1e9), "units of a layer")                                  \
    X(RNN, INT, num_layers, TN_REQUIRED, TN_IN(1, 1e6), "layers, each on the outputs of the one before")     \
    X(RNN, BOOL, bidirectional, "0", TN_ANY, "each layer runs from both ends")                               \
    X(RNN, CHOICE, mode, TN_REQUIRED, TN_ANY, "the cell")                                                    \
    X(RNN, FLOAT, p, "0", TN_IN(0, 1), "share of the inputs of layers but the first that training drops")    \
    X(RNN, BOOL, state_outputs, "0", TN_ANY, "the last states are outputs")                                  \
    X(RNN, OPT_INT, projection_size, "None", TN_IN(1, 1e9), "of an LSTM's projected state")                  \
    X(RNN, OPT_FLOAT, lstm_state_clip_min, "None", TN_ANY, "least value of an LSTM's cell")                  \
    X(RNN, OPT_FLOAT, lstm_state_clip_max, "None", TN_ANY, "largest value of an LSTM's cell")                \
    X(RNN, BOOL, lstm_state_clip_nan, "0", TN_ANY, "a cell that is NaN becomes the least value")             \
    X(RNN, BOOL, use_sequence_length, "0", TN_ANY, "there is an input sequence_length")
TN_ATTRS(RNN);
TN_CHOICES(RNN, mode);

#endif
