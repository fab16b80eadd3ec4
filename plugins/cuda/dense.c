/*
 * FullyConnected, its gradients, and _fused_dense, which has an addend and a ReLU behind it: by the product
 * of kernels/dense.inc or by cuBLASLt.
 */
#include "tenon/plugin/op/dense.h"
#include "../common/move.h"
#include "lt.h"
#include "tenon/plugin/op/fused.h"

typedef struct dense_state {
    int64_t m, n, k;  /* rows of data, outputs, inputs of the layer */
    bool bias, apart; /* apart: the library adds a product to rows of the bias */
    int32_t dtype;
    uint32_t addend;  /* of _fused_dense: which input; 0: none */
    bool relu, sums;  /* sums: the bias' gradient comes with that of the weight */
    tncuda_lt *lt[2]; /* of the outputs but the bias; NULL: plain kernels */
} dense_state;

static bool is_back(const tn_node *node)
{
    return node->in_count == 3 && node->out_count > 1;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static tn_status dense_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = is_back(node);
    const tn_tensor *weight = node->in[back ? 2 : 1], *y = back ? node->in[0] : node->out[0];
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(dense_state), err);
    dense_state *s = plan->state;

    if (st)
        return st;
    s->dtype = y->dtype;
    s->n = weight->shape[0];
    s->k = weight->shape[1];
    s->m = s->n ? tn_tensor_count(y) / s->n : 0;
    s->bias = back ? node->out_count > 2 : node->in_count > 2;
    plan->workspace_bytes = back ? most(tncuda_product_room(s->m, s->k, s->n, 1, s->dtype),
                                        tncuda_product_room(s->n, s->k, s->m, 1, s->dtype))
                                 : tncuda_product_room(s->m, s->n, s->k, 1, s->dtype);
    if (back && s->bias)
        plan->workspace_bytes = most(plan->workspace_bytes, tncuda_bias_back_room(s->m, s->n, 1, s->dtype));
    return TN_OK;
}

/* y (m, n) = data (m, k) · weight (n, k)' */
static tncuda_product_args forward_args(const dense_state *s)
{
    return (tncuda_product_args){.m = s->m,
                                 .n = s->n,
                                 .k = s->k,
                                 .batch = 1,
                                 .a_row = s->k,
                                 .a_col = 1,
                                 .b_row = 1,
                                 .b_col = s->k,
                                 .c_row = s->n,
                                 .c_col = 1,
                                 .dtype = s->dtype};
}

/* ddata (m, k) = dy (m, n) · weight (n, k) */
static tncuda_product_args data_args(const dense_state *s)
{
    return (tncuda_product_args){.m = s->m,
                                 .n = s->k,
                                 .k = s->n,
                                 .batch = 1,
                                 .a_row = s->n,
                                 .a_col = 1,
                                 .b_row = s->k,
                                 .b_col = 1,
                                 .c_row = s->k,
                                 .c_col = 1,
                                 .dtype = s->dtype};
}

/* dweight (n, k) = dy (m, n)' · data (m, k) */
static tncuda_product_args weight_args(const dense_state *s)
{
    return (tncuda_product_args){.m = s->n,
                                 .n = s->k,
                                 .k = s->m,
                                 .batch = 1,
                                 .a_row = 1,
                                 .a_col = s->n,
                                 .b_row = s->k,
                                 .b_col = 1,
                                 .c_row = s->k,
                                 .c_col = 1,
                                 .dtype = s->dtype};
}

/* Each row of y becomes the bias. */
static tn_status rows_fill(const dense_state *s, const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tnb_move m;

    tnb_move_begin(&m, s->dtype);
    tnb_move_add(&m, s->m, 0, s->n);
    tnb_move_add(&m, s->n, 1, 1);
    return tnb_move_run(plan, x, &m, x->in[2]->data, x->out[0]->data, err);
}

static tn_status dense_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const dense_state *s = plan->state;
    tncuda_product_args a = forward_args(s);
    tn_status st;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.a = x->in[0]->data;
    a.b = x->in[1]->data;
    a.bias = s->bias ? x->in[2]->data : NULL;
    a.c = x->out[0]->data;
    a.add = x->modes[0] == TN_MODE_ADD;
    if (s->apart && !a.add) {
        if ((st = rows_fill(s, plan, x, err)))
            return st;
        a.bias = NULL;
        a.add = 1;
    }
    return tncuda_product(x, s->apart && a.bias ? NULL : s->lt[0], &a, x->workspace, err);
}

/* Of the weight; `*summed`: the bias' gradient came with it. */
static tn_status weight_back(const dense_state *s, const tn_exec *x, const tncuda_product_args *a,
                             bool *summed, tn_err *err)
{
    const tncuda_lt_call call = {
        .a = a->a, .b = a->b, .bias = x->out[2]->data, .d = a->c, .add = a->add != 0};
    tn_status st = TN_E_UNSUPPORTED;

    if (x->modes[2] == TN_MODE_WRITE)
        st = tncuda_lt_run(s->lt[1], x, &call, err);
    *summed = !st;
    return st == TN_E_UNSUPPORTED ? tncuda_product(x, NULL, a, x->workspace, err) : st;
}

/* in: dy, data, weight; out: gradients of data, weight and the bias, which is Σ dy */
static tn_status dense_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const dense_state *s = plan->state;
    tncuda_product_args part[] = {data_args(s), weight_args(s)};
    bool summed = false;
    tn_status st = TN_OK;

    for (uint32_t o = 0; o < 2 && !st; o++) {
        part[o].a = x->in[0]->data;
        part[o].b = x->in[o ? 1 : 2]->data;
        part[o].c = x->out[o]->data;
        part[o].add = x->modes[o] == TN_MODE_ADD;
        if (x->modes[o] != TN_MODE_NONE)
            st = o && s->sums ? weight_back(s, x, &part[o], &summed, err)
                              : tncuda_product(x, s->lt[o], &part[o], x->workspace, err);
    }
    return st || !s->bias || summed ? st : tncuda_bias_back(x, 2, s->m, s->n, 1, err);
}

/* ---- by cuBLASLt --------------------------------------------------------------------------------------- */

/* Where it has no product with a bias of this type, it adds to rows that are the bias. */
static tn_status forward_lt(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    static const char any = 0;
    dense_state *s = plan->state;
    tncuda_lt_shape shape = {.of = forward_args(s), .alpha = 1};
    tn_status st;

    shape.of.bias = s->bias ? &any : NULL;
    st = tncuda_lt_make(plugin, node, plan, &shape, &s->lt[0], err);
    if (st != TN_E_UNSUPPORTED || !s->bias || node->modes[0] == TN_MODE_ADD ||
        (err && err->code == TN_E_DEVICE))
        return st;
    s->apart = true;
    shape.of.bias = NULL;
    return tncuda_lt_make(plugin, node, plan, &shape, &s->lt[0], err);
}

/* In half precision, where it costs the library nothing. */
static bool sums_fit(const dense_state *s, const tn_node *node)
{
    return tncuda_is_short(s->dtype) && s->bias && node->modes[1] != TN_MODE_NONE &&
           node->modes[2] == TN_MODE_WRITE;
}

static tn_status back_lt(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    static const char any = 0;
    dense_state *s = plan->state;
    const tncuda_lt_shape shapes[] = {{.of = data_args(s), .alpha = 1}, {.of = weight_args(s), .alpha = 1}};
    tncuda_lt_shape summed = shapes[1];
    tn_status st = TN_OK;

    summed.of.bias = &any;
    summed.sums = true;
    s->sums = sums_fit(s, node) && !tncuda_lt_make(plugin, node, plan, &summed, &s->lt[1], NULL);
    for (uint32_t o = 0; o < 2 && !st; o++)
        if (node->modes[o] != TN_MODE_NONE && !s->lt[o])
            st = tncuda_lt_make(plugin, node, plan, &shapes[o], &s->lt[o], err);
    if (!st && !s->lt[0] && !s->lt[1])
        st = tn_fail(err, TN_E_UNSUPPORTED, "no product is wanted");
    return st;
}

static tn_status dense_lt_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    tn_status st = dense_prepare(plugin, node, plan, err);

    if (st)
        return st;
    if ((st = (is_back(node) ? back_lt : forward_lt)(plugin, node, plan, err)))
        tncuda_release(plan);
    else
        tncuda_lt_room(plan);
    return st;
}

/* ---- with what follows --------------------------------------------------------------------------------- */

/* in: data, weight, [bias], [addend]; without a library nothing is fused. */
static tn_status fused_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    static const char any = 0;
    const int64_t act = tn_value_int(node->attrs[TN_fused_dense_act_type]);
    tn_status st;
    dense_state *s;
    tncuda_lt_shape shape;

    if (act != TN_fused_dense_act_type_None && act != TN_fused_dense_act_type_relu)
        return tn_fail(err, TN_E_UNSUPPORTED, "a function that is not relu");
    if ((st = tncuda_state(plugin, node, plan, sizeof(dense_state), err)))
        return st;
    s = plan->state;
    s->dtype = node->out[0]->dtype;
    s->n = node->in[1]->shape[0];
    s->k = node->in[1]->shape[1];
    s->m = s->n ? tn_tensor_count(node->out[0]) / s->n : 0;
    s->addend = tn_value_int(node->attrs[TN_fused_dense_with_sum]) ? node->in_count - 1 : 0;
    s->bias = node->in_count > (s->addend ? 3u : 2u);
    s->relu = act == TN_fused_dense_act_type_relu;
    shape = (tncuda_lt_shape){.of = forward_args(s), .alpha = 1, .beta = 1, .relu = s->relu};
    shape.of.bias = s->bias ? &any : NULL;
    if ((st = tncuda_lt_make(plugin, node, plan, &shape, &s->lt[0], err)))
        tncuda_release(plan);
    else
        tncuda_lt_room(plan);
    return st;
}

tn_status tncuda_relu(const tn_exec *x, const tn_tensor *to, tn_err *err)
{
    const tncuda_operand y = {.data = to->data, .dtype = to->dtype, .stride = {1}};
    const int64_t count = tn_tensor_count(to);
    const tncuda_point_args a = {.count = count,
                                 .ndim = 1,
                                 .store = TNCUDA_STORE_SAME,
                                 .scalar = -1,
                                 .shape = {count},
                                 .in = {y},
                                 .out = y};

    return to->dtype == TN_F64 ? tncuda_launch(x, "point_f64", "point_RELU_f64", count, &a, err)
                               : tncuda_launch(x, "point_f32", "point_RELU_f32", count, &a, err);
}

/* By plain kernels, where the library refuses. */
static tn_status fused_plain(const dense_state *s, const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_product_args a = forward_args(s);
    tn_status st = s->addend ? tnb_move_copy(plan, x, x->in[s->addend], x->out[0], err) : TN_OK;

    a.a = x->in[0]->data;
    a.b = x->in[1]->data;
    a.bias = s->bias ? x->in[2]->data : NULL;
    a.c = x->out[0]->data;
    a.add = s->addend != 0;
    if (!st)
        st = tncuda_product(x, NULL, &a, NULL, err);
    return st || !s->relu ? st : tncuda_relu(x, x->out[0], err);
}

static tn_status fused_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const dense_state *s = plan->state;
    const tncuda_lt_call call = {.a = x->in[0]->data,
                                 .b = x->in[1]->data,
                                 .bias = s->bias ? x->in[2]->data : NULL,
                                 .c = s->addend ? x->in[s->addend]->data : NULL,
                                 .d = x->out[0]->data};
    tn_status st = TN_OK;

    if (x->modes[0] != TN_MODE_NONE)
        st = tncuda_lt_run(s->lt[0], x, &call, err);
    return st == TN_E_UNSUPPORTED ? fused_plain(s, plan, x, err) : st;
}

static const char *const types[] = {"data:" TNCUDA_FLOATS, "*:=data", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_FLOATS, "*:=dy", NULL};

#define FLAGS (TN_KERNEL_ADD_TO | TN_KERNEL_ADD_SHORT | TN_KERNEL_EMPTY_OK)
const tn_kernel *const tncuda_family_dense[] = {
    TNCUDA_ROW("FullyConnected", types, FLAGS, dense_prepare, dense_run),
    TNCUDA_ROW("_backward_FullyConnected", back_types, FLAGS, dense_prepare, dense_back_run),
    TNCUDA_LT_ROW("FullyConnected", types, FLAGS, dense_lt_prepare, dense_run),
    TNCUDA_LT_ROW("_backward_FullyConnected", back_types, FLAGS, dense_lt_prepare, dense_back_run),
    TNCUDA_LT_ROW("_fused_dense", types, TN_KERNEL_EMPTY_OK, fused_prepare, fused_run),
    NULL,
};
