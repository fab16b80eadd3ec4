/*
 * FullyConnected: y = x · weight' + bias. `flatten`: x is (N, rest taken together), else the last axis is
 * transformed. The weight (num_hidden, inputs) follows from the data, and the data's inputs from the weight.
 */
#include "tenon/plugin/op/dense.h"
#include "op/layers.h"

const tn_op *const tni_family_dense[] = {
    TNI_ROW("FullyConnected", .doc = "A dense layer: data · weight' + bias.",
            .aliases = TNI_NAMES("_npx_fully_connected", "_sparse_FullyConnected"),
            .attrs = TNI_ATTRS(FullyConnected),
            .shapes = "[flatten] " TNI_DENSE_FLAT_INPUTS " -> output:(N,num_hidden) | " TNI_DENSE_INPUTS
                      " -> output:(B..,num_hidden)",
            .gradients = "bilinear: dy data weight -> data weight bias", .types = "T:float",
            .cost = tni_cost_filters),
    NULL,
};
