/* Costs that several families have: for `cost` of their definitions. */
#ifndef TN_OP_COST_H
#define TN_OP_COST_H

#include "tenon/plugin/op.h"

/* Elements of a known shape; those of its dimensions from `from` on. */
uint64_t tni_cost_elements(const tn_shape *s, int32_t from);
/* Multiply-adds, and two operations for each of them. */
void tni_cost_products(tn_cost *c, uint64_t macs);

void tni_cost_each_output(const tn_infer *i, tn_cost *c); /* an operation for each element of output 0 */
void tni_cost_each_input(const tn_infer *i, tn_cost *c);  /* of input 0: sums, maxima */
void tni_cost_normalise(const tn_infer *i, tn_cost *c);   /* four for each of input 0 */
/* Each element of output 0 is a sum of products with one filter, or one row, of input 1. */
void tni_cost_filters(const tn_infer *i, tn_cost *c);

#endif
