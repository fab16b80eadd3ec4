/*
 * Pointwise operators: the rows of plugins/common/points.h, each a kernel for each of four compute types.
 * plugins/cpu/plain/pointwise.c plans hosts by the same rules: the widest type of the operands and the output
 * computes, or double where a function means nothing on integers.
 */
#include "../common/index.h"
#include "../common/points.h"
#include "launch.h"
#include "tenon/plugin/op/activation.h"
#include "tenon/plugin/op/regression.h"

#include <stdio.h>
#include <string.h>

enum { K_F32, K_F64, K_I32, K_I64 };

#define IN_FLOATS 1u
#define IN_WHOLE 2u

static const struct {
    const char *name;
    uint8_t kinds, numbers; /* IN_…; how many attributes are numbers of it */
} loops[] = {
#define LOOP1(id, ns, expression) {#id, KINDS, 0},
#define LOOP2 LOOP1
#define LOOP3 LOOP1
#define LOOP1S(id, ns, expression) {#id, KINDS, 1},
#define LOOP2S LOOP1S
#define LOOP1SS(id, ns, expression) {#id, KINDS, 2},
#define LOOP2SS LOOP1SS
#define KINDS (IN_FLOATS | IN_WHOLE)
#include "../common/loops.list"
#undef KINDS
#define KINDS IN_FLOATS
#include "../common/loops_float.list"
#undef KINDS
#define KINDS IN_WHOLE
#include "../common/loops_int.list"
#undef KINDS
};

static const uint8_t kinds[TN_DTYPE_LIMIT] = {
    [TN_F32] = K_F32, [TN_F64] = K_F64, [TN_F16] = K_F32,  [TN_U8] = K_I32,  [TN_I32] = K_I32,
    [TN_I8] = K_I32,  [TN_I64] = K_I64, [TN_BOOL] = K_I32, [TN_I16] = K_I32, [TN_U16] = K_I32,
    [TN_U32] = K_I64, [TN_U64] = K_I64, [TN_BF16] = K_F32};

typedef struct point_state {
    char kernel[TNCUDA_NAME_BYTES], family[16];
    uint32_t in_count, numbers;
    bool own_number;
    tncuda_point_args args; /* all but where the arrays lie and the numbers of a run */
} point_state;

/* ---- planning ------------------------------------------------------------------------------------------ */

static int64_t *operand_plan(tncuda_operand *o, const tn_tensor *t, const tn_tensor *out)
{
    o->dtype = t->dtype;
    tnb_steps(t->ndim, t->shape, t->stride, out->ndim, o->stride);
    return o->stride;
}

static uint32_t wider(uint32_t a, uint32_t b)
{
    static const uint8_t order[] = {[K_I32] = 0, [K_I64] = 1, [K_F32] = 2, [K_F64] = 3};

    return order[a] >= order[b] ? a : b;
}

/* How what is computed as `kind` is stored. */
static int32_t store_of(uint32_t kind, int32_t dtype)
{
    return dtype == TN_BOOL       ? TNCUDA_STORE_TRUTH
           : kinds[dtype] == kind ? TNCUDA_STORE_SAME
                                  : TNCUDA_STORE_CUT;
}

static bool is_whole(uint32_t kind)
{
    return kind == K_I32 || kind == K_I64;
}

static bool has_loop(const tncuda_point_row *row, uint32_t kind)
{
    return loops[row->loop].kinds & (is_whole(kind) ? IN_WHOLE : IN_FLOATS);
}

/* A number with a point is compared as such, whatever it is compared to; one that fills an array is
 * converted once. */
static uint32_t kind_of(const tncuda_point_row *row, uint32_t in_count, const tn_node *node)
{
    uint32_t kind = in_count || row->loop != TNCUDA_COPY ? kinds[node->out[0]->dtype] : K_F64;

    for (uint32_t k = 0; k < in_count; k++)
        kind = wider(kind, kinds[node->in[k]->dtype]);
    if (row->scalar >= 0 && node->attr_count > 1 && node->out[0]->dtype == TN_BOOL && is_whole(kind) &&
        !tn_value_int(node->attrs[1]))
        kind = K_F64;
    return is_whole(kind) && !has_loop(row, kind) ? K_F64 : kind;
}

static bool broadcasts(const tn_tensor *in, const tn_tensor *out)
{
    if (in->ndim > out->ndim)
        return false;
    for (int32_t d = 0; d < in->ndim; d++)
        if (in->shape[d] != 1 && in->shape[d] != out->shape[d + out->ndim - in->ndim])
            return false;
    return true;
}

static tn_status node_check(const tncuda_point_row *row, uint32_t in_count, const tn_node *node, tn_err *err)
{
    const uint32_t kind = kind_of(row, in_count, node), out = kinds[node->out[0]->dtype];

    if (in_count + (row->scalar >= 0) != row->operands || node->out_count < 1)
        return tn_fail(err, TN_E_UNSUPPORTED, "not an operator of this kernel");
    if (!has_loop(row, kind))
        return tn_fail(err, TN_E_UNSUPPORTED, "no loop for this data type");
    if (kind != out && node->out[0]->dtype != TN_BOOL && has_loop(row, out) && row->loop != TNCUDA_COPY)
        return tn_fail(err, TN_E_UNSUPPORTED, "an output of a narrower data type than an input");
    for (uint32_t k = 0; k < in_count; k++)
        if (!broadcasts(node->in[k], node->out[0]))
            return tn_fail(err, TN_E_SHAPE, "an input does not broadcast to the output");
    return TN_OK;
}

/* An input of the same places and type as the output. */
static bool same_places(const tn_tensor *in, const tn_tensor *out)
{
    bool same = in->dtype == out->dtype && in->ndim == out->ndim;

    for (int32_t d = 0; d < out->ndim && same; d++)
        same = in->shape[d] == out->shape[d] && (in->shape[d] == 1 || in->stride[d] == out->stride[d]);
    return same;
}

tn_status tncuda_point_plan(const tncuda_point_row *row, uint32_t in_count, void *plugin, const tn_node *node,
                            tn_plan *plan, tn_err *err)
{
    static const char *const suffixes[] = {"f32", "f64", "i32", "i64"};
    const tn_tensor *out = node->out[0];
    int64_t *steps[4];
    point_state *s;
    uint32_t kind;
    tn_status st;

    if ((st = node_check(row, in_count, node, err)) ||
        (st = tncuda_state(plugin, node, plan, sizeof(point_state), err)))
        return st;
    s = plan->state;
    kind = kind_of(row, in_count, node);
    (void)snprintf(s->kernel, sizeof s->kernel, "point_%s_%s", loops[row->loop].name, suffixes[kind]);
    (void)snprintf(s->family, sizeof s->family, "point_%s", suffixes[kind]);
    s->in_count = in_count;
    s->numbers = loops[row->loop].numbers;
    s->args.count = tn_tensor_count(out);
    s->args.scalar = row->scalar;
    s->args.store = store_of(kind, out->dtype);
    steps[0] = operand_plan(&s->args.out, out, out);
    for (uint32_t k = 0; k < in_count; k++) {
        steps[k + 1] = operand_plan(&s->args.in[k], node->in[k], out);
        if (same_places(node->in[k], out) && plan->inplace[0] < 0)
            plan->inplace[0] = (int32_t)k;
    }
    s->args.ndim = tnb_join(out->ndim, out->shape, in_count + 1, steps, s->args.shape);
    return TN_OK;
}

void tncuda_point_number(tn_plan *plan, double number)
{
    point_state *s = plan->state;

    s->own_number = true;
    s->args.s = number;
}

tn_status tncuda_point_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const point_state *s = plan->state;
    tncuda_point_args args = s->args;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    args.add = x->modes[0] == TN_MODE_ADD;
    args.out.data = x->out[0]->data;
    for (uint32_t k = 0; k < s->in_count; k++)
        args.in[k].data = x->in[k]->data;
    if (args.scalar >= 0)
        args.number = tn_value_float(x->attrs[0]);
    if (s->numbers > 0 && !s->own_number)
        args.s = tn_value_float(x->attrs[0]);
    if (s->numbers > 1)
        args.s2 = tn_value_float(x->attrs[1]);
    return tncuda_launch(x, s->family, s->kernel, args.count, &args, err);
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

#define POINT_1(op, id) {#op, TNCUDA_##id, 1, -1},
#define POINT_2(op, id) {#op, TNCUDA_##id, 2, -1},
#define POINT_SCALAR(op, id) {#op, TNCUDA_##id, 2, 1},

#define CASTS(X) X(_move, COPY) X(Cast, COPY) X(amp_cast, COPY) X(_backward_cast, COPY)

static const tncuda_point_row rows[] = {
    TNB_ELEMWISE_2(POINT_2) TNB_ELEMWISE_1(POINT_1) TNB_UNARY_NUMBERS(POINT_1) TNB_UNARY_FLOATS(POINT_1)
        TNB_UNARY_MOST(POINT_1) TNB_UNARY_BACK_FLOATS(POINT_2) TNB_UNARY_BACK_MOST(POINT_2)
            TNB_SCALAR(POINT_SCALAR) TNB_SCALAR_BACK(POINT_2) TNB_BROADCAST_2(POINT_2)
                TNB_BROADCAST_1(POINT_1) TNB_BROADCAST_LIKE(POINT_1) TNB_NUMPY_QUESTIONS(POINT_1)
                    TNB_NUMPY_FLOATS(POINT_2) TNB_NUMPY_NUMBERS(POINT_2) TNB_NUMPY_INTEGERS(POINT_2)
                        TNB_NUMPY_SCALARS(POINT_SCALAR) TNB_NUMPY_INTEGER_SCALARS(POINT_SCALAR)
                            TNB_NUMPY_NOTS(POINT_1) CASTS(POINT_1){"_fill", TNCUDA_COPY, 1, 0},
};

/* The bits of a bool: one that has others beside the first would be another true. */
static const tncuda_point_row bool_rows[] = {
    {"_npi_bitwise_not", TNCUDA_NOT, 1, -1},     {"_npi_bitwise_and_scalar", TNCUDA_AND, 2, 1},
    {"_npi_bitwise_or_scalar", TNCUDA_OR, 2, 1}, {"_npi_bitwise_xor_scalar", TNCUDA_XOR, 2, 1},
    {"_npi_lcm_scalar", TNCUDA_AND, 2, 1},
};

static tn_status point_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    for (size_t i = 0; i < sizeof bool_rows / sizeof *bool_rows && node->out[0]->dtype == TN_BOOL; i++)
        if (!strcmp(bool_rows[i].op, node->op))
            return tncuda_point_plan(&bool_rows[i], node->in_count, plugin, node, plan, err);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].op, node->op))
            return tncuda_point_plan(&rows[i], (uint32_t)(rows[i].operands - (rows[i].scalar >= 0)), plugin,
                                     node, plan, err);
    return tn_fail(err, TN_E_UNSUPPORTED, "not an operator of this kernel");
}

tn_status tncuda_cast(const tn_exec *x, const tn_tensor *from, const tn_tensor *to, bool add, tn_err *err)
{
    static const char *const suffixes[] = {"f32", "f64", "i32", "i64"};
    const uint32_t kind = wider(kinds[from->dtype], kinds[to->dtype]);
    char kernel[TNCUDA_NAME_BYTES], family[16];
    tncuda_point_args a = {.count = tn_tensor_count(to),
                           .ndim = 1,
                           .store = store_of(kind, to->dtype),
                           .add = add,
                           .scalar = -1,
                           .in = {{.data = from->data, .dtype = from->dtype}},
                           .out = {.data = to->data, .dtype = to->dtype}};

    a.shape[0] = a.count;
    a.in[0].stride[0] = a.out.stride[0] = 1;
    (void)snprintf(kernel, sizeof kernel, "point_COPY_%s", suffixes[kind]);
    (void)snprintf(family, sizeof family, "point_%s", suffixes[kind]);
    return tncuda_launch(x, family, kernel, a.count, &a, err);
}

/* An attribute chooses the loop: in the order of the definition's choices. */
static tn_status activation_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    static const tncuda_point_row forward[] = {POINT_1(Activation, RELU) POINT_1(Activation, SIGMOID) POINT_1(
        Activation, TANH) POINT_1(Activation, SOFTRELU) POINT_1(Activation, SOFTSIGN)};
    static const tncuda_point_row back[] = {
        POINT_2(_backward_Activation, STEP_BACK) POINT_2(_backward_Activation, SIGMOID_BACK)
            POINT_2(_backward_Activation, TANH_BACK) POINT_2(_backward_Activation, SOFTRELU_BACK)
                POINT_2(_backward_Activation, SOFTSIGN_Y_BACK)};

    return tncuda_point_plan(&(node->in_count == 1 ? forward : back)[node->attrs[TN_Activation_act_type]],
                             node->in_count, plugin, node, plan, err);
}

/* gamma as a tensor of data's dimensions: its elements lie along axis 1. */
static void gamma_view(const tn_tensor *gamma, const tn_tensor *data, int64_t *dims, tn_tensor *view)
{
    for (int32_t d = 0; d < data->ndim; d++) {
        dims[d] = d == 1 ? gamma->shape[0] : 1;
        dims[TN_NDIM_MAX + d] = d == 1 ? gamma->stride[0] : 0;
    }
    *view = *gamma;
    view->ndim = data->ndim;
    view->shape = dims;
    view->stride = dims + TN_NDIM_MAX;
}

static tn_status leaky_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    static const tncuda_point_row forward[] = {POINT_1(LeakyReLU, LEAKY) POINT_1(LeakyReLU, LEAKY) POINT_2(
        LeakyReLU, PRELU) POINT_1(LeakyReLU, ELU) POINT_1(LeakyReLU, SELU) POINT_1(LeakyReLU, GELU)};
    static const tncuda_point_row back[] = {
        POINT_2(_backward_LeakyReLU, LEAKY_BACK)
            POINT_2(_backward_LeakyReLU, LEAKY_BACK){"_backward_LeakyReLU", TNCUDA_PRELU_BACK, 3, -1},
        POINT_2(_backward_LeakyReLU, ELU_BACK) POINT_2(_backward_LeakyReLU, SELU_BACK)
            POINT_2(_backward_LeakyReLU, GELU_BACK)};
    const int64_t type = tn_value_int(node->attrs[TN_LeakyReLU_act_type]);
    const tncuda_point_row *row = &(strcmp(node->op, "LeakyReLU") == 0 ? forward : back)[type];
    const double low = tn_value_float(node->attrs[TN_LeakyReLU_lower_bound]),
                 high = tn_value_float(node->attrs[TN_LeakyReLU_upper_bound]);
    const tn_tensor *in[3] = {node->in[0], node->in_count > 1 ? node->in[1] : NULL, NULL};
    int64_t dims[2 * TN_NDIM_MAX];
    tn_node seen = *node;
    tn_tensor view;
    tn_status st;

    if (type == TN_LeakyReLU_act_type_rrelu && (node->flags & TN_NODE_TRAIN))
        return tn_fail(err, TN_E_UNSUPPORTED,
                       "act_type rrelu with random slopes (training) is not there yet");
    if (type == TN_LeakyReLU_act_type_prelu) {
        gamma_view(node->in[node->in_count - 1], node->in[0], dims, &view);
        in[node->in_count - 1] = &view;
        seen.in = in;
    }
    st = tncuda_point_plan(row, row->operands, plugin, &seen, plan, err);
    if (!st && type != TN_LeakyReLU_act_type_prelu)
        tncuda_point_number(plan, type == TN_LeakyReLU_act_type_rrelu
                                      ? (low + high) / 2
                                      : tn_value_float(node->attrs[TN_LeakyReLU_slope]));
    return st;
}

/* Regression losses follow from the data alone; of their gradients, labels may be (N) beside data (N, 1). */
static tn_status loss_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    static const tncuda_point_row losses[] = {
        POINT_1(LinearRegressionOutput, COPY) POINT_1(LogisticRegressionOutput, SIGMOID)
            POINT_1(MAERegressionOutput, COPY) POINT_2(_backward_LinearRegressionOutput, ERROR)
                POINT_2(_backward_LogisticRegressionOutput, ERROR)
                    POINT_2(_backward_MAERegressionOutput, ERROR_SIGN)};
    const tn_tensor *label = node->in[1];
    const int64_t examples = label->ndim && label->shape[0] ? label->shape[0] : 1,
                  each = tn_tensor_count(label) / examples;
    const tncuda_point_row *row = losses;
    tn_tensor view = *node->out[0]; /* dense, as the label is */
    const tn_tensor *in[] = {node->in[0], &view};
    tn_node same = *node;
    tn_status st;

    while (strcmp(row->op, node->op) != 0)
        row++;
    view.dtype = label->dtype;
    same.in = in;
    st = tncuda_point_plan(row, row->operands, plugin, &same, plan, err);
    if (!st && row->operands == 2)
        tncuda_point_number(plan, tn_value_float(node->attrs[TN_regression_grad_scale]) /
                                      (double)(each > 1 ? each : 1));
    return st;
}

static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};
static const char *const numbers[] = {"*:" TNCUDA_NUMBERS, NULL};
static const char *const most[] = {"*:" TNCUDA_MOST, NULL};
static const char *const integers[] = {"*:u8,i32,i8,i64,bool,i16,u16,u32", NULL};
static const char *const all[] = {"*:" TNCUDA_ALL, NULL};

#define FLAGS (TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO)
#define ROW(op, types) TNCUDA_ROW(op, types, FLAGS, point_prepare, tncuda_point_run),
#define FLOATS(op, id) ROW(#op, floats)
#define NUMBERS(op, id) ROW(#op, numbers)
#define MOST(op, id) ROW(#op, most)
#define ALL(op, id) ROW(#op, all)
#define LOSS(op)                                                                                             \
    TNCUDA_ROW(op, floats, 0, loss_prepare, tncuda_point_run),                                               \
        TNCUDA_ROW("_backward_" op, floats, 0, loss_prepare, tncuda_point_run),
#define INTEGERS(op, id) ROW(#op, integers)

/* clang-format off */
const tn_kernel *const tncuda_family_point[] = {
    TNB_ELEMWISE_2(MOST) TNB_ELEMWISE_1(ALL) TNB_UNARY_NUMBERS(NUMBERS) TNB_UNARY_FLOATS(FLOATS)
    TNB_UNARY_MOST(MOST) TNB_UNARY_BACK_FLOATS(FLOATS) TNB_UNARY_BACK_MOST(MOST)
    TNB_SCALAR(MOST) TNB_SCALAR_BACK(FLOATS)
    TNB_BROADCAST_2(MOST) TNB_BROADCAST_1(ALL) TNB_BROADCAST_LIKE(ALL)
    TNB_NUMPY_QUESTIONS(MOST) TNB_NUMPY_FLOATS(FLOATS) TNB_NUMPY_NUMBERS(NUMBERS) TNB_NUMPY_INTEGERS(INTEGERS)
    TNB_NUMPY_SCALARS(MOST) TNB_NUMPY_INTEGER_SCALARS(INTEGERS) TNB_NUMPY_NOTS(INTEGERS)
    CASTS(ALL) ROW("_fill", all)
    TNCUDA_ROW("Activation", floats, FLAGS, activation_prepare, tncuda_point_run),
    TNCUDA_ROW("_backward_Activation", floats, FLAGS, activation_prepare, tncuda_point_run),
    TNCUDA_ROW("LeakyReLU", floats, FLAGS, leaky_prepare, tncuda_point_run),
    TNCUDA_ROW("_backward_LeakyReLU", floats, FLAGS, leaky_prepare, tncuda_point_run),
    LOSS("LinearRegressionOutput") LOSS("LogisticRegressionOutput") LOSS("MAERegressionOutput")
    NULL,
};
/* clang-format on */
