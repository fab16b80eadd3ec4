/*
 * Optimizer steps: output 0 is the new weight (it may be the weight's own memory), states are mutated inputs.
 *
 * lr, wd, rescale_grad and the clip bounds are run-time attributes: a schedule changes them at every step,
 * and no plan is made anew for it.
 */
#include "tenon/plugin/op/optimizer.h"
#include "op/infer_help.h"

static const tn_attr_def sgd_attrs[] = TN_ATTR_TABLE(sgd_update);
static const tn_attr_def sgd_mom_attrs[] = TN_ATTR_TABLE(sgd_mom_update);
static const tn_attr_def nag_attrs[] = TN_ATTR_TABLE(nag_mom_update);
static const tn_attr_def signsgd_attrs[] = TN_ATTR_TABLE(signsgd_update);
static const tn_attr_def signum_attrs[] = TN_ATTR_TABLE(signum_update);
static const tn_attr_def adam_attrs[] = TN_ATTR_TABLE(adam_update);
static const tn_attr_def rmsprop_attrs[] = TN_ATTR_TABLE(rmsprop_update);
static const tn_attr_def rmspropalex_attrs[] = TN_ATTR_TABLE(rmspropalex_update);

/* Weight and gradient in one type, states in float32. */
static tn_status mixed_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_unify(i, &i->in_dtype[0], &i->in_dtype[1]);

    for (uint32_t k = 2; !st && k < i->in_count; k++)
        st = tni_dtype_assign(i, &i->in_dtype[k], TN_F32);
    return st ? st : tni_dtype_unify(i, &i->out_dtype[0], &i->in_dtype[0]);
}

static const tn_op sgd =
    TNI_OP("sgd_update", .doc = "Gradient descent.", .aliases = TNI_NAMES("_sparse_sgd_update"),
           .attrs = sgd_attrs, .mutates = 0, .flags = TN_OP_POINTWISE, .inputs = TNI_NAMES("weight", "grad"),
           .outputs = TNI_NAMES("output"), .shape = tni_shape_same, .dtype = tni_dtype_same_float);

static const tn_op sgd_mom =
    TNI_OP("sgd_mom_update", .doc = "Gradient descent with momentum.",
           .aliases = TNI_NAMES("_sparse_sgd_mom_update"), .attrs = sgd_mom_attrs, .mutates = 1u << 2,
           .flags = TN_OP_POINTWISE, .inputs = TNI_NAMES("weight", "grad", "mom"),
           .outputs = TNI_NAMES("output"), .shape = tni_shape_same, .dtype = tni_dtype_same_float);

static const tn_op mp_sgd =
    TNI_OP("mp_sgd_update", .doc = "Gradient descent on a float32 copy of the weight.", .attrs = sgd_attrs,
           .mutates = 1u << 2, .flags = TN_OP_POINTWISE, .inputs = TNI_NAMES("weight", "grad", "weight32"),
           .outputs = TNI_NAMES("output"), .shape = tni_shape_same, .dtype = mixed_dtype);

static const tn_op mp_sgd_mom =
    TNI_OP("mp_sgd_mom_update", .doc = "Gradient descent with momentum on a float32 copy of the weight.",
           .attrs = sgd_mom_attrs, .mutates = 1u << 2 | 1u << 3, .flags = TN_OP_POINTWISE,
           .inputs = TNI_NAMES("weight", "grad", "mom", "weight32"), .outputs = TNI_NAMES("output"),
           .shape = tni_shape_same, .dtype = mixed_dtype);

static const tn_op nag =
    TNI_OP("nag_mom_update", .doc = "Nesterov's accelerated gradient.", .attrs = nag_attrs,
           .mutates = 1u << 2, .flags = TN_OP_POINTWISE, .inputs = TNI_NAMES("weight", "grad", "mom"),
           .outputs = TNI_NAMES("output"), .shape = tni_shape_same, .dtype = tni_dtype_same_float);

static const tn_op signsgd =
    TNI_OP("signsgd_update", .doc = "A step along the gradient's sign.", .attrs = signsgd_attrs, .mutates = 0,
           .flags = TN_OP_POINTWISE, .inputs = TNI_NAMES("weight", "grad"), .outputs = TNI_NAMES("output"),
           .shape = tni_shape_same, .dtype = tni_dtype_same_float);

static const tn_op signum =
    TNI_OP("signum_update", .doc = "A step along the momentum's sign.", .attrs = signum_attrs,
           .mutates = 1u << 2, .flags = TN_OP_POINTWISE, .inputs = TNI_NAMES("weight", "grad", "mom"),
           .outputs = TNI_NAMES("output"), .shape = tni_shape_same, .dtype = tni_dtype_same_float);

static const tn_op adam =
    TNI_OP("adam_update", .doc = "Adam, without correction of the bias: the caller puts it into lr.",
           .aliases = TNI_NAMES("_sparse_adam_update"), .attrs = adam_attrs, .mutates = 1u << 2 | 1u << 3,
           .flags = TN_OP_POINTWISE, .inputs = TNI_NAMES("weight", "grad", "mean", "var"),
           .outputs = TNI_NAMES("output"), .shape = tni_shape_same, .dtype = tni_dtype_same_float);

static const tn_op rmsprop =
    TNI_OP("rmsprop_update", .doc = "RMSProp as Hinton has it.", .attrs = rmsprop_attrs, .mutates = 1u << 2,
           .flags = TN_OP_POINTWISE, .inputs = TNI_NAMES("weight", "grad", "n"),
           .outputs = TNI_NAMES("output"), .shape = tni_shape_same, .dtype = tni_dtype_same_float);

static const tn_op rmspropalex =
    TNI_OP("rmspropalex_update", .doc = "RMSProp as Graves has it.", .attrs = rmspropalex_attrs,
           .mutates = 1u << 2 | 1u << 3 | 1u << 4, .flags = TN_OP_POINTWISE,
           .inputs = TNI_NAMES("weight", "grad", "n", "g", "delta"), .outputs = TNI_NAMES("output"),
           .shape = tni_shape_same, .dtype = tni_dtype_same_float);

const tn_op *const tni_family_optimizer[] = {
    &sgd, &sgd_mom, &mp_sgd, &mp_sgd_mom, &nag, &signsgd, &signum, &adam, &rmsprop, &rmspropalex, NULL,
};
