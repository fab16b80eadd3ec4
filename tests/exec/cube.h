/*
 * The operator test_cube, y = x^3, and its backward, which gets dy alone and multiplies it by the block of
 * 3 x^2 that the forward saved. Each test brings the kernels that it is about.
 */
#ifndef TN_TEST_EXEC_CUBE_H
#define TN_TEST_EXEC_CUBE_H

#include "context.h"

extern const tn_op_table test_cube_ops;

/* TN_E_UNSUPPORTED without a forward that saved one float for each element. */
tn_status test_cube_backward_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err);
tn_status test_cube_backward_run(const tn_plan *plan, const tn_exec *x, tn_err *err);

#endif
