/* pick and its gradient. */
#include "tenon/plugin/op/index.h"
#include "launch.h"

#include <string.h>

typedef struct index_state {
    bool back;
    tncuda_index_args args;
} index_state;

static tn_status pick_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const bool back = strcmp(node->op, "pick") != 0;
    const tn_tensor *data = back ? node->out[0] : node->in[0];
    const int64_t *asked = tn_value_pointer(node->attrs[TN_pick_axis]);
    const int64_t axis = !asked ? 0 : *asked < 0 ? *asked + data->ndim : *asked;
    index_state *s;
    tn_status st;

    if (!asked)
        return tn_fail(err, TN_E_UNSUPPORTED, "pick without an axis is not there yet");
    if ((st = tncuda_state(plugin, node, plan, sizeof(index_state), err)))
        return st;
    s = plan->state;
    s->back = back;
    s->args.outer = tnb_dims(data, 0, (int32_t)axis);
    s->args.size = data->shape[axis];
    s->args.inner = tnb_dims(data, (int32_t)axis + 1, data->ndim);
    s->args.count = tn_tensor_count(data);
    s->args.wrap = tn_value_int(node->attrs[TN_pick_mode]) == TN_pick_mode_wrap;
    s->args.dtype = data->dtype;
    s->args.index_dtype = node->in[node->in_count - 1]->dtype;
    return TN_OK;
}

static tn_status pick_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const index_state *s = plan->state;
    tncuda_index_args a = s->args;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    a.x = x->in[0]->data;
    a.index = x->in[s->back ? 2 : 1]->data;
    a.to = x->out[0]->data;
    return tncuda_launch(x, "index", s->back ? "index_unpick" : "index_pick",
                         s->back   ? a.count
                         : a.count ? a.outer * a.inner
                                   : 0,
                         &a, err);
}

static const char *const types[] = {"data:" TNCUDA_ALL, "index:" TNCUDA_ALL, "output:=data", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_ALL, "index:" TNCUDA_ALL, "*:=dy", NULL};

const tn_kernel *const tncuda_family_index[] = {
    TNCUDA_ROW("pick", types, 0, pick_prepare, pick_run),
    TNCUDA_ROW("_backward_pick", back_types, 0, pick_prepare, pick_run),
    NULL,
};
