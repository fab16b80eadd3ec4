/* Pooling and its gradient, as kernels/pool.inc computes them. */
#include "tenon/plugin/op/pool.h"
#include "launch.h"

#include <stdio.h>

typedef struct pool_state {
    char kernel[TNCUDA_NAME_BYTES];
    bool back, reads_y;
    tncuda_window_args args;
} pool_state;

static void geometry(tncuda_window_args *a, const tn_value *attrs, const tn_tensor *x, const tn_tensor *y)
{
    const bool global = tn_value_int(attrs[TN_Pooling_global_pool]) != 0;
    const int32_t space = x->ndim - 2;
    int32_t first;

    a->last = tn_value_int(attrs[TN_Pooling_layout]) >= TN_Pooling_layout_NDHWC;
    a->channels = x->shape[a->last ? x->ndim - 1 : 1];
    first = a->last ? 1 : 2;
    for (int32_t i = 0; i < TNCUDA_SPACE; i++) {
        const int32_t from = i - (TNCUDA_SPACE - space);
        const bool given = from >= 0;

        a->in[i] = given ? x->shape[first + from] : 1;
        a->out[i] = given ? y->shape[first + from] : 1;
        a->kernel[i] = !given ? 1 : global ? a->in[i] : tnb_tuple_item(attrs[TN_Pooling_kernel], from, 1);
        a->stride[i] = given && !global ? tnb_tuple_item(attrs[TN_Pooling_stride], from, 1) : 1;
        a->pad[i] = given && !global ? tnb_tuple_item(attrs[TN_Pooling_pad], from, 0) : 0;
    }
}

static tn_status pool_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = node->in_count > 1;
    const tn_tensor *data = node->in[back ? 1 : 0], *y = back ? node->in[0] : node->out[0];
    const int64_t *count = tn_value_pointer(node->attrs[TN_Pooling_count_include_pad]);
    const int64_t *p = tn_value_pointer(node->attrs[TN_Pooling_p_value]);
    pool_state *s;
    tn_status st;

    if (data->ndim < 3 || data->ndim > 5)
        return tn_fail(err, TN_E_UNSUPPORTED, "space has 1 to 3 dimensions here");
    if ((st = tncuda_state(plugin, node, plan, sizeof(pool_state), err)))
        return st;
    s = plan->state;
    s->back = back;
    s->reads_y = node->in_count > 2;
    geometry(&s->args, node->attrs, data, y);
    s->args.type = (int32_t)tn_value_int(node->attrs[TN_Pooling_pool_type]);
    s->args.count_pad = !count || *count;
    s->args.power = p ? (int32_t)*p : 1;
    s->args.dtype = data->dtype;
    (void)snprintf(s->kernel, sizeof s->kernel, "pool_%s_%s", back ? "dx" : "y", tncuda_suffix(data->dtype));
    return TN_OK;
}

static tn_status pool_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const pool_state *s = plan->state;
    tncuda_window_args a = s->args;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.x = x->in[s->back ? 1 : 0]->data;
    a.dy = s->back ? x->in[0]->data : NULL;
    a.y = s->reads_y ? x->in[2]->data : NULL;
    a.to = x->out[0]->data;
    a.count = tn_tensor_count(x->out[0]);
    a.add = x->modes[0] == TN_MODE_ADD;
    return tncuda_launch(x, "pool", s->kernel, a.count, &a, err);
}

static const char *const types[] = {"data:" TNCUDA_FLOATS, "*:=data", NULL};

const tn_kernel *const tncuda_family_pool[] = {
    TNCUDA_ROW("Pooling", types, TN_KERNEL_ADD_TO, pool_prepare, pool_run),
    TNCUDA_ROW("_backward_Pooling", types, TN_KERNEL_ADD_TO, pool_prepare, pool_run),
    NULL,
};
