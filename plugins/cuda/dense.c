/* FullyConnected and its gradients, by the product of kernels/dense.inc. */
#include "tenon/plugin/op/dense.h"
#include "launch.h"

typedef struct dense_state {
    int64_t m, n, k; /* rows of data, outputs, inputs of the layer */
    bool bias;
    int32_t dtype;
} dense_state;

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static tn_status dense_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = node->in_count == 3 && node->out_count > 1;
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
    return TN_OK;
}

/* y (m, n) = data (m, k) · weight (n, k)' + bias */
static tn_status dense_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const dense_state *s = plan->state;
    tncuda_product_args a = {.m = s->m,
                             .n = s->n,
                             .k = s->k,
                             .batch = 1,
                             .a_row = s->k,
                             .a_col = 1,
                             .b_row = 1,
                             .b_col = s->k,
                             .c_row = s->n,
                             .c_col = 1,
                             .a = x->in[0]->data,
                             .b = x->in[1]->data,
                             .bias = s->bias ? x->in[2]->data : NULL,
                             .c = x->out[0]->data,
                             .dtype = s->dtype,
                             .add = x->modes[0] == TN_MODE_ADD};

    return x->modes[0] == TN_MODE_NONE ? TN_OK : tncuda_product(x, &a, x->workspace, err);
}

/* dy (m, n), data (m, k), weight (n, k) -> ddata = dy · weight, dweight = dy' · data, dbias = Σ dy */
static tn_status dense_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const dense_state *s = plan->state;
    const void *dy = x->in[0]->data;
    tncuda_product_args data = {.m = s->m,
                                .n = s->k,
                                .k = s->n,
                                .batch = 1,
                                .a_row = s->n,
                                .a_col = 1,
                                .b_row = s->k,
                                .b_col = 1,
                                .c_row = s->k,
                                .c_col = 1,
                                .a = dy,
                                .b = x->in[2]->data,
                                .c = x->out[0]->data,
                                .dtype = s->dtype,
                                .add = x->modes[0] == TN_MODE_ADD};
    tncuda_product_args weight = {.m = s->n,
                                  .n = s->k,
                                  .k = s->m,
                                  .batch = 1,
                                  .a_row = 1,
                                  .a_col = s->n,
                                  .b_row = s->k,
                                  .b_col = 1,
                                  .c_row = s->k,
                                  .c_col = 1,
                                  .a = dy,
                                  .b = x->in[1]->data,
                                  .c = x->out[1]->data,
                                  .dtype = s->dtype,
                                  .add = x->modes[1] == TN_MODE_ADD};
    tn_status st = TN_OK;

    if (x->modes[0] != TN_MODE_NONE)
        st = tncuda_product(x, &data, x->workspace, err);
    if (!st && x->modes[1] != TN_MODE_NONE)
        st = tncuda_product(x, &weight, x->workspace, err);
    if (!st && s->bias && x->modes[2] != TN_MODE_NONE) {
        const tncuda_columns_args bias = {.outer = s->m,
                                          .n = s->n,
                                          .inner = 1,
                                          .x = dy,
                                          .y = x->out[2]->data,
                                          .dtype = s->dtype,
                                          .add = x->modes[2] == TN_MODE_ADD};

        st = tncuda_columns(x, &bias, err);
    }
    return st;
}

static const char *const types[] = {"data:" TNCUDA_FLOATS, "*:=data", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_FLOATS, "*:=dy", NULL};

#define FLAGS (TN_KERNEL_ADD_TO | TN_KERNEL_EMPTY_OK)
const tn_kernel *const tncuda_family_dense[] = {
    TNCUDA_ROW("FullyConnected", types, FLAGS, dense_prepare, dense_run),
    TNCUDA_ROW("_backward_FullyConnected", back_types, FLAGS, dense_prepare, dense_back_run),
    NULL,
};
