/** Attributes of the operators of the family control. */
#ifndef TENON_PLUGIN_OP_CONTROL_H
#define TENON_PLUGIN_OP_CONTROL_H

#include "../attr.h"

#define TN_CONTROL_LOCS_ TN_IN(0, 4095)

#define TN_foreach_ATTRS(X)                                                                                  \
    X(foreach, INT, num_args, TN_REQUIRED, TN_IN(1, 4096), "number of inputs, the graph among them")         \
    X(foreach, INT, num_outputs, TN_REQUIRED, TN_IN(1, 4096), "number of outputs of the graph")              \
    X(foreach, INT, num_out_data, TN_REQUIRED, TN_IN(0, 4096), "how many of them are put together")          \
    X(foreach, TUPLE, in_state_locs, TN_REQUIRED, TN_CONTROL_LOCS_, "which inputs of the graph are states")  \
    X(foreach, TUPLE, in_data_locs, TN_REQUIRED, TN_CONTROL_LOCS_, "which are elements of data")             \
    X(foreach, TUPLE, remain_locs, TN_REQUIRED, TN_CONTROL_LOCS_, "which are the others")
TN_ATTRS(foreach);

#define TN_while_loop_ATTRS(X)                                                                               \
    X(while_loop, INT, num_args, TN_REQUIRED, TN_IN(2, 4096), "number of inputs, both graphs among them")    \
    X(while_loop, INT, num_outputs, TN_REQUIRED, TN_IN(1, 4096), "number of outputs of func")                \
    X(while_loop, INT, num_out_data, TN_REQUIRED, TN_IN(0, 4096), "how many of them are put together")       \
    X(while_loop, INT, max_iterations, TN_REQUIRED, TN_IN(1, 1e9), "longest that the loop runs")             \
    X(while_loop, TUPLE, cond_input_locs, TN_REQUIRED, TN_CONTROL_LOCS_, "which inputs cond reads")          \
    X(while_loop, TUPLE, func_input_locs, TN_REQUIRED, TN_CONTROL_LOCS_, "which inputs func reads")          \
    X(while_loop, TUPLE, func_var_locs, TN_REQUIRED, TN_CONTROL_LOCS_, "inputs of func that are variables")
TN_ATTRS(while_loop);

#define TN_cond_ATTRS(X)                                                                                     \
    X(cond, INT, num_args, TN_REQUIRED, TN_IN(3, 4096), "number of inputs, the three graphs among them")     \
    X(cond, INT, num_outputs, TN_REQUIRED, TN_IN(1, 4096), "number of outputs of each branch")               \
    X(cond, TUPLE, cond_input_locs, TN_REQUIRED, TN_CONTROL_LOCS_, "which inputs cond reads")                \
    X(cond, TUPLE, then_input_locs, TN_REQUIRED, TN_CONTROL_LOCS_, "which inputs then_branch reads")         \
    X(cond, TUPLE, else_input_locs, TN_REQUIRED, TN_CONTROL_LOCS_, "which inputs else_branch reads")
TN_ATTRS(cond);

#endif
