/*
 * Optimizer steps: output 0 is the new weight (it may be the weight's own memory), states are mutated inputs.
 *
 * lr, wd, rescale_grad and the clip bounds are run-time attributes: a schedule changes them at every step,
 * and no plan is made anew for it.
 */
#include "op/infer_help.h"
#include "tenon/plugin/indices.h"

#define LR TN_ATTR_FLOAT_RUN("lr", TN_REQUIRED, "learning rate")
#define WD TN_ATTR_FLOAT_RUN("wd", "0", "weight decay")
#define RESCALE TN_ATTR_FLOAT_RUN("rescale_grad", "1", "what the gradient is multiplied by first")
#define CLIP TN_ATTR_FLOAT_RUN("clip_gradient", "-1", "gradients are cut to this magnitude; below 0: not")
#define CLIP_WEIGHTS                                                                                         \
    TN_ATTR_FLOAT_RUN("clip_weights", "-1", "weights are cut to this magnitude; below 0: not")
#define MOMENTUM TN_ATTR_FLOAT("momentum", "0", "how much of the last step is kept")
#define LAZY TN_ATTR_BOOL("lazy_update", "1", "with row_sparse gradients: touch only their rows")
#define EPSILON TN_ATTR_FLOAT("epsilon", "9.99999994e-09", "keeps divisors from zero")

static const tn_attr_def sgd_attrs[] = {
    [TN_SGD_UPDATE_LR] = LR,
    [TN_SGD_UPDATE_WD] = WD,
    [TN_SGD_UPDATE_RESCALE_GRAD] = RESCALE,
    [TN_SGD_UPDATE_CLIP_GRADIENT] = CLIP,
    [TN_SGD_UPDATE_LAZY_UPDATE] = LAZY,
    TN_ATTR_END,
};

static const tn_attr_def sgd_mom_attrs[] = {
    [TN_SGD_MOM_UPDATE_LR] = LR,
    [TN_SGD_MOM_UPDATE_MOMENTUM] = MOMENTUM,
    [TN_SGD_MOM_UPDATE_WD] = WD,
    [TN_SGD_MOM_UPDATE_RESCALE_GRAD] = RESCALE,
    [TN_SGD_MOM_UPDATE_CLIP_GRADIENT] = CLIP,
    [TN_SGD_MOM_UPDATE_LAZY_UPDATE] = LAZY,
    TN_ATTR_END,
};

static const tn_attr_def nag_attrs[] = {
    [TN_NAG_MOM_UPDATE_LR] = LR,
    [TN_NAG_MOM_UPDATE_MOMENTUM] = MOMENTUM,
    [TN_NAG_MOM_UPDATE_WD] = WD,
    [TN_NAG_MOM_UPDATE_RESCALE_GRAD] = RESCALE,
    [TN_NAG_MOM_UPDATE_CLIP_GRADIENT] = CLIP,
    TN_ATTR_END,
};

static const tn_attr_def signsgd_attrs[] = {
    [TN_SIGNSGD_UPDATE_LR] = LR,
    [TN_SIGNSGD_UPDATE_WD] = WD,
    [TN_SIGNSGD_UPDATE_RESCALE_GRAD] = RESCALE,
    [TN_SIGNSGD_UPDATE_CLIP_GRADIENT] = CLIP,
    TN_ATTR_END,
};

static const tn_attr_def signum_attrs[] = {
    [TN_SIGNUM_UPDATE_LR] = LR,
    [TN_SIGNUM_UPDATE_MOMENTUM] = MOMENTUM,
    [TN_SIGNUM_UPDATE_WD] = WD,
    [TN_SIGNUM_UPDATE_RESCALE_GRAD] = RESCALE,
    [TN_SIGNUM_UPDATE_CLIP_GRADIENT] = CLIP,
    [TN_SIGNUM_UPDATE_WD_LH] = TN_ATTR_FLOAT_RUN("wd_lh", "0", "weight decay apart from the gradient"),
    TN_ATTR_END,
};

static const tn_attr_def adam_attrs[] = {
    [TN_ADAM_UPDATE_LR] = LR,
    [TN_ADAM_UPDATE_BETA1] = TN_ATTR_FLOAT("beta1", "0.899999976", "decay of the first moment"),
    [TN_ADAM_UPDATE_BETA2] = TN_ATTR_FLOAT("beta2", "0.999000013", "decay of the second moment"),
    [TN_ADAM_UPDATE_EPSILON] = EPSILON,
    [TN_ADAM_UPDATE_WD] = WD,
    [TN_ADAM_UPDATE_RESCALE_GRAD] = RESCALE,
    [TN_ADAM_UPDATE_CLIP_GRADIENT] = CLIP,
    [TN_ADAM_UPDATE_LAZY_UPDATE] = LAZY,
    TN_ATTR_END,
};

static const tn_attr_def rmsprop_attrs[] = {
    [TN_RMSPROP_UPDATE_LR] = LR,
    [TN_RMSPROP_UPDATE_GAMMA1] = TN_ATTR_FLOAT("gamma1", "0.949999988", "decay of the mean square"),
    [TN_RMSPROP_UPDATE_EPSILON] = EPSILON,
    [TN_RMSPROP_UPDATE_WD] = WD,
    [TN_RMSPROP_UPDATE_RESCALE_GRAD] = RESCALE,
    [TN_RMSPROP_UPDATE_CLIP_GRADIENT] = CLIP,
    [TN_RMSPROP_UPDATE_CLIP_WEIGHTS] = CLIP_WEIGHTS,
    TN_ATTR_END,
};

static const tn_attr_def rmspropalex_attrs[] = {
    [TN_RMSPROPALEX_UPDATE_LR] = LR,
    [TN_RMSPROPALEX_UPDATE_GAMMA1] = TN_ATTR_FLOAT("gamma1", "0.949999988", "decay of the means"),
    [TN_RMSPROPALEX_UPDATE_GAMMA2] =
        TN_ATTR_FLOAT("gamma2", "0.899999976", "how much of the last step is kept"),
    [TN_RMSPROPALEX_UPDATE_EPSILON] = EPSILON,
    [TN_RMSPROPALEX_UPDATE_WD] = WD,
    [TN_RMSPROPALEX_UPDATE_RESCALE_GRAD] = RESCALE,
    [TN_RMSPROPALEX_UPDATE_CLIP_GRADIENT] = CLIP,
    [TN_RMSPROPALEX_UPDATE_CLIP_WEIGHTS] = CLIP_WEIGHTS,
    TN_ATTR_END,
};

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
