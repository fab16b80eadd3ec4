/* Kernels of Activation and LeakyReLU: an attribute chooses the loop. */
#include "tenon/plugin/op/activation.h"
#include "loops.h"

/* In the order of the definition's choices. */
static const tncpu_point activation_rows[] = {
    {"Activation", TNCPU_RELU, 1, TNCPU_NO_SCALAR},     {"Activation", TNCPU_SIGMOID, 1, TNCPU_NO_SCALAR},
    {"Activation", TNCPU_TANH, 1, TNCPU_NO_SCALAR},     {"Activation", TNCPU_SOFTRELU, 1, TNCPU_NO_SCALAR},
    {"Activation", TNCPU_SOFTSIGN, 1, TNCPU_NO_SCALAR},
};
static const tncpu_point activation_back_rows[] = {
    {"_backward_Activation", TNCPU_STEP_BACK, 2, TNCPU_NO_SCALAR},
    {"_backward_Activation", TNCPU_SIGMOID_BACK, 2, TNCPU_NO_SCALAR},
    {"_backward_Activation", TNCPU_TANH_BACK, 2, TNCPU_NO_SCALAR},
    {"_backward_Activation", TNCPU_SOFTRELU_BACK, 2, TNCPU_NO_SCALAR},
    {"_backward_Activation", TNCPU_SOFTSIGN_Y_BACK, 2, TNCPU_NO_SCALAR},
};

static tn_status activation_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tncpu_point *rows = node->in_count == 1 ? activation_rows : activation_back_rows;

    return tncpu_point_prepare(&rows[node->attrs[TN_Activation_act_type]], 1, plugin, node, plan, err);
}

/* ---- LeakyReLU -------------------------------------------------------------------------------- */

static const tncpu_point leaky_rows[] = {
    {"LeakyReLU", TNCPU_LEAKY, 1, TNCPU_NO_SCALAR}, {"LeakyReLU", TNCPU_LEAKY, 1, TNCPU_NO_SCALAR},
    {"LeakyReLU", TNCPU_PRELU, 2, TNCPU_NO_SCALAR}, {"LeakyReLU", TNCPU_ELU, 1, TNCPU_NO_SCALAR},
    {"LeakyReLU", TNCPU_SELU, 1, TNCPU_NO_SCALAR},  {"LeakyReLU", TNCPU_GELU, 1, TNCPU_NO_SCALAR},
};
static const tncpu_point leaky_back_rows[] = {
    {"_backward_LeakyReLU", TNCPU_LEAKY_BACK, 2, TNCPU_NO_SCALAR},
    {"_backward_LeakyReLU", TNCPU_LEAKY_BACK, 2, TNCPU_NO_SCALAR},
    {"_backward_LeakyReLU", TNCPU_PRELU_BACK, 3, TNCPU_NO_SCALAR},
    {"_backward_LeakyReLU", TNCPU_ELU_BACK, 2, TNCPU_NO_SCALAR},
    {"_backward_LeakyReLU", TNCPU_SELU_BACK, 2, TNCPU_NO_SCALAR},
    {"_backward_LeakyReLU", TNCPU_GELU_BACK, 2, TNCPU_NO_SCALAR},
};

/* gamma as a tensor of data's dimensions: its elements lie along axis 1. */
static void gamma_view(const tn_tensor *gamma, const tn_tensor *data, int64_t *dims, tn_tensor *view)
{
    for (int32_t d = 0; d < data->ndim; d++) {
        dims[d] = 1;
        dims[TN_NDIM_MAX + d] = 0;
    }
    if (data->ndim > 1) {
        dims[1] = gamma->shape[0];
        dims[TN_NDIM_MAX + 1] = gamma->stride[0];
    }
    *view = *gamma;
    view->ndim = data->ndim;
    view->shape = dims;
    view->stride = dims + TN_NDIM_MAX;
}

static tn_status leaky_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    bool back = strcmp(node->op, "LeakyReLU") != 0;
    const tncpu_point *rows = back ? leaky_back_rows : leaky_rows;
    double low = tn_value_float(node->attrs[TN_LeakyReLU_lower_bound]),
           high = tn_value_float(node->attrs[TN_LeakyReLU_upper_bound]);
    uint64_t type = node->attrs[TN_LeakyReLU_act_type];
    int64_t dims[2 * TN_NDIM_MAX];
    const tn_tensor *in[3] = {node->in[0], node->in_count > 1 ? node->in[1] : NULL, NULL};
    tn_tensor view;
    tn_node seen = *node;
    tn_status st;

    if (type == TN_LeakyReLU_act_type_rrelu && (node->flags & TN_NODE_TRAIN))
        return tn_fail(err, TN_E_UNSUPPORTED,
                       "act_type rrelu with random slopes (training) is not there yet");
    if (type == TN_LeakyReLU_act_type_prelu) {
        gamma_view(node->in[node->in_count - 1], node->in[0], dims, &view);
        in[node->in_count - 1] = &view;
        seen.in = in;
    }
    st = tncpu_point_prepare(&rows[type], 1, plugin, &seen, plan, err);
    if (!st && type != TN_LeakyReLU_act_type_prelu)
        tncpu_point_number(plan, type == TN_LeakyReLU_act_type_rrelu
                                     ? (low + high) / 2
                                     : tn_value_float(node->attrs[TN_LeakyReLU_slope]));
    return st;
}

/* ---- the gradient of gamma: the sum of dy x where x is negative ------------------------------- */

typedef struct gamma_plan {
    int64_t examples, channels, inner;
} gamma_plan;

static tn_status gamma_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *x = node->in[1];
    gamma_plan *p;
    tn_status st = tncpu_state(plugin, plan, sizeof *p, err);

    if (st)
        return st;
    p = plan->state;
    p->channels = node->out[0]->shape[0];
    p->examples = p->channels > 1 || x->ndim > 1 ? x->shape[0] : 1;
    if (p->channels == 1)
        p->examples = 1;
    p->inner = p->channels && p->examples ? tn_tensor_count(x) / p->channels / p->examples : 0;
    tncpu_plan_work(node, plan, 20.0 + (double)tn_tensor_count(x) * 1.5);
    return TN_OK;
}

static void gamma_part(void *arg, int64_t begin, int64_t end)
{
    const tn_exec *x = ((const tn_exec *const *)arg)[0];
    const gamma_plan *p = ((const gamma_plan *const *)arg)[1];
    double dy[TNCPU_TILE], data[TNCPU_TILE];

    for (int64_t k = begin; k < end; k++) {
        double sum = 0;

        for (int64_t at = 0, n; at < p->examples * p->inner; at += n) {
            const int64_t within = at % p->inner,
                          offset = (at / p->inner * p->channels + k) * p->inner + within;

            n = tncpu_min(TNCPU_TILE, p->inner - within);
            tncpu_numbers(x->in[0], offset, 1, n, dy);
            tncpu_numbers(x->in[1], offset, 1, n, data);
            for (int64_t i = 0; i < n; i++)
                sum += data[i] > 0 ? 0 : dy[i] * data[i];
        }
        tncpu_numbers_store(x->out[0], k, 1, 1, &sum);
    }
}

static tn_status gamma_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const gamma_plan *p = plan->state;
    const void *arg[] = {x, p};

    (void)err;
    if (x->modes[0] != TN_MODE_NONE)
        tncpu_for(plan, x, p->channels, 1, gamma_part, arg);
    return TN_OK;
}

#define FLAGS TNCPU_POINT_FLAGS

/* clang-format off */
const tn_kernel *const tncpu_family_activation[] = {
    TNCPU_ROW("Activation", tncpu_floats, FLAGS, activation_prepare, tncpu_point_run),
    TNCPU_ROW("_backward_Activation", tncpu_floats, FLAGS, activation_prepare, tncpu_point_run),
    TNCPU_ROW("LeakyReLU", tncpu_floats, FLAGS, leaky_prepare, tncpu_point_run),
    TNCPU_ROW("_backward_LeakyReLU", tncpu_floats, FLAGS, leaky_prepare, tncpu_point_run),
    TNCPU_ROW("_backward_prelu_gamma", tncpu_floats, 0, gamma_prepare, gamma_run),
    NULL,
};
/* clang-format on */
