/* Padding, and its gradient: kernels/pad.cu. */
#include "tenon/plugin/op/pad.h"
#include "launch.h"

#include <string.h>

_Static_assert((int)TN_npi_pad_mode_maximum == TNCUDA_PAD_MAXIMUM, "kernels know it by number");

static bool is_numpy(const char *op)
{
    return strstr(op, "npi_pad") != NULL;
}

/* Both operators number their modes alike. */
static tn_status pad_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool numpy = is_numpy(node->op), back = strncmp(node->op, "_backward_", 10) == 0;
    const tn_tuple *width =
        tn_value_pointer(node->attrs[numpy ? (int)TN_npi_pad_pad_width : (int)TN_Pad_pad_width]);
    const tn_tensor *x = back ? node->out[0] : node->in[0], *y = back ? node->in[0] : node->out[0];
    const int64_t mode = tn_value_int(node->attrs[numpy ? (int)TN_npi_pad_mode : (int)TN_Pad_mode]);
    tncuda_pad_args *a;
    tn_status st;

    if (back && mode >= TN_npi_pad_mode_maximum)
        return tn_fail(err, TN_E_UNSUPPORTED, "padding with maxima or minima has no gradient");
    if ((st = tncuda_state(plugin, node, plan, sizeof *a + sizeof(int64_t), err)))
        return st;
    a = plan->state;
    a->ndim = x->ndim;
    a->mode = (int32_t)mode;
    a->dtype = x->dtype;
    a->bytes = (int32_t)tn_dtype_bytes(x->dtype);
    for (int32_t d = 0; d < x->ndim; d++) {
        a->in[d] = x->shape[d];
        a->out[d] = y->shape[d];
        a->before[d] = width->item[2 * d];
        a->behind[d] = width->item[2 * d + 1];
    }
    *(int64_t *)(a + 1) = numpy ? TN_npi_pad_constant_value : TN_Pad_constant_value;
    return TN_OK;
}

static tn_status pad_launch(const tn_plan *plan, const tn_exec *x, const char *kernel, tn_err *err)
{
    tncuda_pad_args a = *(const tncuda_pad_args *)plan->state;

    a.count = tn_tensor_count(x->out[0]);
    a.constant = tn_value_float(x->attrs[*(const int64_t *)((const tncuda_pad_args *)plan->state + 1)]);
    a.x = x->in[0]->data;
    a.y = x->out[0]->data;
    return tncuda_launch(x, "pad", kernel, a.count, &a, err);
}

static tn_status pad_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int32_t mode = ((const tncuda_pad_args *)plan->state)->mode;

    return pad_launch(plan, x, mode >= TN_npi_pad_mode_maximum ? "pad_best_y" : "pad_y", err);
}

static tn_status pad_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return pad_launch(plan, x, "pad_dx", err);
}

static const char *const all[] = {"*:" TNCUDA_ALL, NULL};
static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};

const tn_kernel *const tncuda_family_pad[] = {
    TNCUDA_ROW("Pad", all, 0, pad_prepare, pad_run),
    TNCUDA_ROW("_npi_pad", all, 0, pad_prepare, pad_run),
    TNCUDA_ROW("_backward_Pad", floats, 0, pad_prepare, pad_back_run),
    TNCUDA_ROW("_backward_npi_pad", floats, 0, pad_prepare, pad_back_run),
    NULL,
};
