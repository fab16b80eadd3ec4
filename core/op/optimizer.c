/*
 * Optimizer steps: output 0 is the new weight (it may be the weight's own memory), states are mutated inputs.
 *
 * lr, wd, rescale_grad and the clip bounds are run-time attributes: a schedule changes them at every step,
 * and no plan is made anew for it.
 */
#include "tenon/plugin/op/optimizer.h"

#include <string.h>

#include "op/infer_help.h"

static const tn_attr_def sgd_attrs[] = TN_ATTR_TABLE(sgd_update);
static const tn_attr_def sgd_mom_attrs[] = TN_ATTR_TABLE(sgd_mom_update);
static const tn_attr_def nag_attrs[] = TN_ATTR_TABLE(nag_mom_update);
static const tn_attr_def adamw_attrs[] = TN_ATTR_TABLE(adamw_update);
static const tn_attr_def lamb1_attrs[] = TN_ATTR_TABLE(lamb_update_phase1);
static const tn_attr_def lamb2_attrs[] = TN_ATTR_TABLE(lamb_update_phase2);

/* Weight and gradient in one type, states in float32. */
static tn_status mixed_dtype(tn_infer *i)
{
    tn_status st = tni_dtype_unify(i, &i->in_dtype[0], &i->in_dtype[1]);

    for (uint32_t k = 2; !st && k < i->in_count; k++)
        st = tni_dtype_assign(i, &i->in_dtype[k], TN_F32);
    return st ? st : tni_dtype_unify(i, &i->out_dtype[0], &i->in_dtype[0]);
}

/* The history of the first axis: one number for each of its indices. */
static tn_status group_shape(tn_infer *i)
{
    const tn_shape *weight;
    tn_infer same = *i;
    tn_shape rows;
    tn_status st;

    same.in_count = 2;
    if ((st = tni_shape_same(&same)))
        return st;
    weight = i->in_shape[0];
    if (weight->ndim == 0)
        return tni_infer_fail(i, TN_E_SHAPE, "the weight has no rows");
    if (weight->ndim < 0)
        return TN_OK;
    rows = *weight;
    for (int32_t k = 1; k < rows.ndim; k++)
        rows.dim[k] = 1;
    return tni_shape_assign(i, i->in_shape[2], &rows);
}

/* ---- numbers as inputs ------------------------------------------------------------------------------- */

/* Inputs of one element behind the first `first`: all of its dimensions are 1, as many as there are. */
static tn_status single_shapes(tn_infer *i, uint32_t first, uint32_t end)
{
    for (uint32_t k = first; k < end; k++)
        for (int32_t d = 0; d < i->in_shape[k]->ndim; d++) {
            int64_t one = 1;
            tn_status st = tni_dim_unify(i, &i->in_shape[k]->dim[d], &one);

            if (st)
                return st;
        }
    return TN_OK;
}

/* Weight, gradient and states, then the scale. */
static tn_status adamw_shape(tn_infer *i)
{
    const uint32_t last = i->in_count - 1;
    tn_infer same = *i;
    tn_status st;

    same.in_count = last;
    st = tni_shape_same(&same);
    return st ? st : single_shapes(i, last, i->in_count);
}

#define ADAMW_DOC "Adam, the weight decays apart; nothing is done where rescale_grad is 0 or not finite."

/* Weight and what it moves along, the norms of both, the copy. */
static tn_status lamb2_shape(tn_infer *i)
{
    tn_shape *arrays[] = {i->in_shape[0], i->in_shape[1], i->in_shape[i->in_count - 1]};
    tn_infer same = *i;
    tn_status st;

    same.in_shape = arrays;
    same.in_count = i->in_count > 4 ? 3 : 2;
    st = tni_shape_same(&same);
    return st ? st : single_shapes(i, 2, 4);
}

/* ---- any number of parameters at once ---------------------------------------------------------------- */

/* The last attribute counts the parameters, of which each has the inputs whose names repeat. The preloaded
 * forms have rates and decays as two arrays behind them, AdamW its scale; attributes that are lists have an
 * item for each parameter. */
static const tn_attr_def multi_sgd_attrs[] = TN_ATTR_TABLE(multi_sgd_update);
static const tn_attr_def multi_sgd_mom_attrs[] = TN_ATTR_TABLE(multi_sgd_mom_update);
static const tn_attr_def preloaded_sgd_attrs[] = TN_ATTR_TABLE(preloaded_multi_sgd_update);
static const tn_attr_def preloaded_sgd_mom_attrs[] = TN_ATTR_TABLE(preloaded_multi_sgd_mom_update);
static const tn_attr_def multi_adamw_attrs[] = TN_ATTR_TABLE(multi_adamw_update);
static const tn_attr_def multi_lamb_attrs[] = TN_ATTR_TABLE(multi_lamb_update);

/* Inputs of one parameter, and those behind all of them. */
static void multi_names(const tn_infer *i, uint32_t *each, uint32_t *tail)
{
    *each = *tail = 0;
    for (uint32_t k = 0; i->op->inputs[k]; k++)
        ++*(strchr(i->op->inputs[k], '*') ? each : tail);
}

static tn_status multi_args(tn_infer *i)
{
    const int64_t count = tni_attr_int(i->attrs, i->attr_count - 1);
    uint32_t each, tail;

    multi_names(i, &each, &tail);
    if (count < 1 || count > (TN_NODE_INPUTS_MAX - tail) / each)
        return tni_infer_fail(i, TN_E_ATTR, "%s is %lld, 1 to %u are possible",
                              i->op->attrs[i->attr_count - 1].name, (long long)count,
                              (TN_NODE_INPUTS_MAX - tail) / each);
    for (uint32_t k = 0; k < i->attr_count; k++) {
        const uint32_t type = i->op->attrs[k].type;
        const bool list = type == TN_ATTR_T_FLOATS || type == TN_ATTR_T_TUPLE;
        const tn_tuple *items = list ? tni_attr_tuple(i->attrs, k) : NULL; /* counts of both are alike */
        const int64_t have = list ? tni_tuple_count(items) : count;

        if (have != count)
            return tni_infer_fail(i, TN_E_ATTR, "%s has %lld items for %lld weights", i->op->attrs[k].name,
                                  (long long)have, (long long)count);
    }
    i->in_count = (uint32_t)count * each + tail;
    i->out_count = i->visible_count = (uint32_t)count;
    return TN_OK;
}

static tn_status multi_shape(tn_infer *i)
{
    tn_shape numbers = {.ndim = 1, .dim = {i->out_count}};
    uint32_t each, tail;
    tn_status st = TN_OK;

    multi_names(i, &each, &tail);
    for (uint32_t w = 0; w < i->out_count && !st; w++) {
        tn_infer one = *i;

        one.in_shape += (size_t)w * each;
        one.in_count = each;
        one.out_shape += w;
        one.out_count = 1;
        st = tni_shape_same(&one);
    }
    if (!st && tail == 1)
        return single_shapes(i, i->in_count - 1, i->in_count);
    for (uint32_t k = i->in_count - tail; k < i->in_count && !st; k++)
        st = tni_shape_assign(i, i->in_shape[k], &numbers);
    return st;
}

/* The weights have one type, with their gradients and states, and AdamW's scale; rates in arrays, and all
 * that mixed forms have beside weight and gradient, are float32. */
static tn_status multi_dtype(tn_infer *i)
{
    const bool mixed = strstr(i->op->name, "_mp_") != NULL;
    uint32_t each, tail;
    tn_status st = TN_OK;

    multi_names(i, &each, &tail);
    for (uint32_t pass = 0; pass < 2; pass++) /* the second carries back what later ones knew */
        for (uint32_t k = 0; k < i->in_count + i->out_count && !st; k++) {
            int32_t *dtype = k < i->in_count ? &i->in_dtype[k] : &i->out_dtype[k - i->in_count];
            const bool behind = k >= i->in_count - tail && (mixed || tail > 1);
            const bool single = k < i->in_count && (behind || (mixed && k % each > 1));

            st = single ? tni_dtype_assign(i, dtype, TN_F32) : tni_dtype_unify(i, &i->in_dtype[0], dtype);
        }
    return st;
}

#define MULTI_INPUTS_SGD "weight_*", "grad_*"
#define MULTI_INPUTS_SGD_MOM "weight_*", "grad_*", "mom_*"
#define MULTI_INPUTS_MP_SGD "weight_*", "grad_*", "weight32_*"
#define MULTI_INPUTS_MP_SGD_MOM "weight_*", "grad_*", "mom_*", "weight32_*"
#define MULTI_INPUTS_ADAM "weight_*", "grad_*", "mean_*", "var_*"
#define MULTI_INPUTS_MP_ADAM MULTI_INPUTS_ADAM, "weight32_*"
#define MULTI(name_, attrs_, doc_, mutates_, period, tail, ...)                                              \
    TNI_ROW(name_, .doc = doc_, .attrs = attrs_, .mutates = mutates_, .mutates_period = period,              \
            .mutates_tail = tail, .inputs = TNI_NAMES(__VA_ARGS__), .outputs = TNI_NAMES("output*"),         \
            .args = multi_args, .shape = multi_shape, .dtype = multi_dtype)

/* ---- LARS -------------------------------------------------------------------------------------------- */

static tn_status sum_sq_args(tn_infer *i)
{
    const int64_t count = tni_attr_int(i->attrs, 0);

    if (count < 1 || count > TN_NODE_INPUTS_MAX)
        return tni_infer_fail(i, TN_E_ATTR, "num_arrays is %lld, 1 to %d are possible", (long long)count,
                              TN_NODE_INPUTS_MAX);
    i->in_count = (uint32_t)count;
    i->out_count = i->visible_count = 1;
    return TN_OK;
}

static tn_status sum_sq_shape(tn_infer *i)
{
    const tn_shape sums = {.ndim = 1, .dim = {i->in_count}};

    return tni_shape_assign(i, i->out_shape[0], &sums);
}

static tn_status sum_sq_dtype(tn_infer *i)
{
    tn_status st = TN_OK;

    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t k = 1; k < i->in_count && !st; k++)
            st = tni_dtype_unify(i, &i->in_dtype[0], &i->in_dtype[k]);
    return st ? st : tni_dtype_assign(i, &i->out_dtype[0], TN_F32);
}

/* ---- of all arrays at once --------------------------------------------------------------------------- */

/* What init_output=False means is the caller's matter: tni_op_keeps. */
static tn_status finite_shape(tn_infer *i)
{
    const tn_shape one = {.ndim = 1, .dim = {1}};

    return tni_shape_assign(i, i->out_shape[0], &one);
}

static tn_status reset_args(tn_infer *i)
{
    tn_status st = sum_sq_args(i);

    i->out_count = i->visible_count = 0;
    return st;
}

static tn_status reset_any(tn_infer *i)
{
    (void)i;
    return TN_OK;
}

/* init_output is the last attribute. */
bool tni_op_keeps(const tni_opdef *def, const tni_attrs *attrs)
{
    return def->op->shape == finite_shape && !attrs->values[def->attr_count - 1];
}

/* A step of one weight: output 0 has the type of the weight, and so have the states, or they are float32. */
#define STEP_OF(dtype_, name_, ...)                                                                          \
    TNI_ROW(name_, .flags = TN_OP_POINTWISE, .outputs = TNI_NAMES("output"), .shape = tni_shape_same,        \
            .dtype = dtype_, __VA_ARGS__)
#define STEP(...) STEP_OF(tni_dtype_same_float, __VA_ARGS__)
#define MIXED(...) STEP_OF(mixed_dtype, __VA_ARGS__)

const tn_op *const tni_family_optimizer[] = {
    TNI_ROW("all_finite", .doc = "1 where no element is infinite or NaN, else 0.",
            .attrs = TNI_ATTRS(all_finite), .inputs = TNI_NAMES("data"), .outputs = TNI_NAMES("output"),
            .shape = finite_shape, .types = "T:float; output:f32"),
    TNI_ROW("multi_all_finite", .doc = "1 where no element of many arrays is infinite or NaN, else 0.",
            .attrs = TNI_ATTRS(multi_all_finite), .inputs = TNI_NAMES("array_*"),
            .outputs = TNI_NAMES("output"), .args = sum_sq_args, .shape = finite_shape,
            .dtype = sum_sq_dtype),
    TNI_ROW("reset_arrays", .doc = "Zeros in every element of many arrays.", .attrs = TNI_ATTRS(reset_arrays),
            .mutates = 1, .mutates_period = 1, .inputs = TNI_NAMES("array_*"), .outputs = TNI_NAMES(NULL),
            .args = reset_args, .shape = reset_any, .dtype = reset_any),
    STEP("sgd_update", .doc = "Gradient descent.", .aliases = TNI_NAMES("_sparse_sgd_update"),
         .attrs = sgd_attrs, .inputs = TNI_NAMES("weight", "grad")),
    STEP("sgd_mom_update", .doc = "Gradient descent with momentum.",
         .aliases = TNI_NAMES("_sparse_sgd_mom_update"), .attrs = sgd_mom_attrs, .mutates = 1u << 2,
         .inputs = TNI_NAMES("weight", "grad", "mom")),
    MIXED("mp_sgd_update", .doc = "Gradient descent on a float32 copy of the weight.", .attrs = sgd_attrs,
          .mutates = 1u << 2, .inputs = TNI_NAMES("weight", "grad", "weight32")),
    MIXED("mp_sgd_mom_update", .doc = "Gradient descent with momentum on a float32 copy of the weight.",
          .attrs = sgd_mom_attrs, .mutates = 1u << 2 | 1u << 3,
          .inputs = TNI_NAMES("weight", "grad", "mom", "weight32")),
    STEP("nag_mom_update", .doc = "Nesterov's accelerated gradient.", .attrs = nag_attrs, .mutates = 1u << 2,
         .inputs = TNI_NAMES("weight", "grad", "mom")),
    MIXED("mp_nag_mom_update", .doc = "Nesterov's accelerated gradient on a float32 copy of the weight.",
          .attrs = nag_attrs, .mutates = 1u << 2 | 1u << 3,
          .inputs = TNI_NAMES("weight", "grad", "mom", "weight32")),
    STEP("signsgd_update", .doc = "A step along the gradient's sign.", .attrs = TNI_ATTRS(signsgd_update),
         .inputs = TNI_NAMES("weight", "grad")),
    STEP("signum_update", .doc = "A step along the momentum's sign.", .attrs = TNI_ATTRS(signum_update),
         .mutates = 1u << 2, .inputs = TNI_NAMES("weight", "grad", "mom")),
    STEP("adam_update", .doc = "Adam, without correction of the bias: the caller puts it into lr.",
         .aliases = TNI_NAMES("_sparse_adam_update"), .attrs = TNI_ATTRS(adam_update),
         .mutates = 1u << 2 | 1u << 3, .inputs = TNI_NAMES("weight", "grad", "mean", "var")),
    STEP("rmsprop_update", .doc = "RMSProp as Hinton has it.", .attrs = TNI_ATTRS(rmsprop_update),
         .mutates = 1u << 2, .inputs = TNI_NAMES("weight", "grad", "n")),
    STEP("rmspropalex_update", .doc = "RMSProp as Graves has it.", .attrs = TNI_ATTRS(rmspropalex_update),
         .mutates = 1u << 2 | 1u << 3 | 1u << 4, .inputs = TNI_NAMES("weight", "grad", "n", "g", "delta")),
    STEP("ftrl_update", .doc = "Follows the regularized leader, with per-coordinate rates.",
         .aliases = TNI_NAMES("_sparse_ftrl_update"), .attrs = TNI_ATTRS(ftrl_update),
         .mutates = 1u << 2 | 1u << 3, .inputs = TNI_NAMES("weight", "grad", "z", "n")),
    STEP("ftml_update", .doc = "Follows the moving leader.", .attrs = TNI_ATTRS(ftml_update),
         .mutates = 1u << 2 | 1u << 3 | 1u << 4, .inputs = TNI_NAMES("weight", "grad", "d", "v", "z")),
    STEP("_sparse_adagrad_update", .doc = "AdaGrad: rates fall by the sum of squared gradients.",
         .attrs = TNI_ATTRS(adagrad_update), .mutates = 1u << 2,
         .inputs = TNI_NAMES("weight", "grad", "history")),
    TNI_ROW("_contrib_group_adagrad_update", .doc = "AdaGrad with one rate for each row of the weight.",
            .attrs = TNI_ATTRS(group_adagrad_update), .mutates = 1u << 2,
            .inputs = TNI_NAMES("weight", "grad", "history"), .outputs = TNI_NAMES("output"),
            .shape = group_shape, .dtype = tni_dtype_same_float),
    TNI_ROW("_adamw_update", .doc = ADAMW_DOC, .attrs = adamw_attrs, .mutates = 1u << 2 | 1u << 3,
            .inputs = TNI_NAMES("weight", "grad", "mean", "var", "rescale_grad"),
            .outputs = TNI_NAMES("output"), .shape = adamw_shape, .types = "T:float; rescale_grad:f32"),
    TNI_ROW("_mp_adamw_update", .doc = ADAMW_DOC " On a float32 copy of the weight.", .attrs = adamw_attrs,
            .mutates = 1u << 2 | 1u << 3 | 1u << 4,
            .inputs = TNI_NAMES("weight", "grad", "mean", "var", "weight32", "rescale_grad"),
            .outputs = TNI_NAMES("output"), .shape = adamw_shape, .dtype = mixed_dtype),
    STEP("lamb_update_phase1", .doc = "What LAMB moves the weight along.", .attrs = lamb1_attrs,
         .mutates = 1u << 2 | 1u << 3, .inputs = TNI_NAMES("weight", "grad", "mean", "var")),
    TNI_ROW("lamb_update_phase2", .doc = "LAMB's step, by the norms r1 of the weight and r2 of g.",
            .attrs = lamb2_attrs, .inputs = TNI_NAMES("weight", "g", "r1", "r2"),
            .outputs = TNI_NAMES("output"), .shape = lamb2_shape, .dtype = tni_dtype_same_float),
    TNI_ROW("mp_lamb_update_phase1", .doc = "What LAMB moves the float32 copy of the weight along.",
            .attrs = lamb1_attrs, .mutates = 1u << 2 | 1u << 3, .flags = TN_OP_POINTWISE,
            .inputs = TNI_NAMES("weight", "grad", "mean", "var", "weight32"), .outputs = TNI_NAMES("output"),
            .shape = tni_shape_same, .types = "weight,grad:W:float; T:f32"),
    TNI_ROW("mp_lamb_update_phase2", .doc = "LAMB's step on a float32 copy of the weight.",
            .attrs = lamb2_attrs, .mutates = 1u << 4,
            .inputs = TNI_NAMES("weight", "g", "r1", "r2", "weight32"), .outputs = TNI_NAMES("output"),
            .shape = lamb2_shape, .types = "weight,output:W:float; T:f32"),
    MULTI("multi_sgd_update", multi_sgd_attrs, "Gradient descent for many weights.", 0, 0, 0,
          MULTI_INPUTS_SGD),
    MULTI("multi_sgd_mom_update", multi_sgd_mom_attrs, "Gradient descent with momentum for many weights.", 4,
          3, 0, MULTI_INPUTS_SGD_MOM),
    MULTI("multi_mp_sgd_update", multi_sgd_attrs, "Gradient descent on float32 copies of many weights.", 4, 3,
          0, MULTI_INPUTS_MP_SGD),
    MULTI("multi_mp_sgd_mom_update", multi_sgd_mom_attrs,
          "Gradient descent with momentum on float32 copies of many weights.", 12, 4, 0,
          MULTI_INPUTS_MP_SGD_MOM),
    MULTI("preloaded_multi_sgd_update", preloaded_sgd_attrs,
          "Gradient descent for many weights, rates and decays being arrays.", 0, 0, 0, MULTI_INPUTS_SGD,
          "lrs", "wds"),
    MULTI("preloaded_multi_sgd_mom_update", preloaded_sgd_mom_attrs,
          "Gradient descent with momentum for many weights, rates and decays being arrays.", 4, 3, 2,
          MULTI_INPUTS_SGD_MOM, "lrs", "wds"),
    MULTI("preloaded_multi_mp_sgd_update", preloaded_sgd_attrs,
          "Gradient descent on float32 copies of many weights, rates and decays being arrays.", 4, 3, 2,
          MULTI_INPUTS_MP_SGD, "lrs", "wds"),
    MULTI("preloaded_multi_mp_sgd_mom_update", preloaded_sgd_mom_attrs,
          "Gradient descent with momentum on float32 copies of many weights, rates and decays being arrays.",
          12, 4, 2, MULTI_INPUTS_MP_SGD_MOM, "lrs", "wds"),
    MULTI("_multi_adamw_update", multi_adamw_attrs, ADAMW_DOC " Of many weights.", 12, 4, 1,
          MULTI_INPUTS_ADAM, "rescale_grad"),
    MULTI("_multi_mp_adamw_update", multi_adamw_attrs, ADAMW_DOC " On float32 copies of many weights.", 28, 5,
          1, MULTI_INPUTS_MP_ADAM, "rescale_grad"),
    MULTI("_multi_lamb_update", multi_lamb_attrs, "LAMB for many weights.", 12, 4, 0, MULTI_INPUTS_ADAM),
    MULTI("_multi_mp_lamb_update", multi_lamb_attrs, "LAMB on float32 copies of many weights.", 28, 5, 0,
          MULTI_INPUTS_MP_ADAM),
    TNI_ROW("multi_sum_sq", .doc = "The sums of the squares of many arrays.",
            .attrs = TNI_ATTRS(multi_sum_sq), .inputs = TNI_NAMES("array_*"), .outputs = TNI_NAMES("output"),
            .args = sum_sq_args, .shape = sum_sq_shape, .dtype = sum_sq_dtype),
    STEP("multi_lars", .doc = "The rates of LARS, from the sums of squares of weights and gradients.",
         .attrs = TNI_ATTRS(multi_lars), .inputs = TNI_NAMES("lrs", "weights_sum_sq", "grads_sum_sq", "wds")),
    NULL,
};
