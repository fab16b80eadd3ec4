/* sort, argsort, topk and the gradients of two: kernels/order.cu. */
#include "tenon/plugin/op/order.h"
#include "../common/move.h"
#include "launch.h"

#define ENTRY_BYTES TNCUDA_ENTRY_BYTES

typedef struct order_want {
    const tn_tensor *values, *indices, *mask; /* those to be written are not NULL */
    bool descending;
    int64_t k; /* 0: all */
} order_want;

/* All three operators have the axis first. */
static void rows_of(const tn_tensor *data, tn_value given, tncuda_call_args *a)
{
    const int64_t *asked = tn_value_pointer(given);
    const int32_t axis = asked ? tnb_axis(*asked, data->ndim) : 0;

    tncuda_call_rows(data, axis, asked ? axis + 1 : data->ndim, a);
}

static tn_status order_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    plan->workspace_bytes = 2 * ENTRY_BYTES * (uint64_t)(tn_tensor_count(node->in[0]) + 1);
    return st;
}

tn_status tncuda_order_merge(const tn_exec *x, int64_t count, int64_t size, void **entries, void **spare,
                             tn_err *err)
{
    tncuda_call_args a = {.count = count, .size = size};
    tn_status st = TN_OK;

    for (a.n[2] = 1; a.n[2] < size && !st; a.n[2] *= 2) {
        void *next = *entries;

        a.in[1].data = *entries;
        a.out[1].data = *spare;
        st = tncuda_launch(x, "order", "order_merge", count, &a, err);
        *entries = *spare;
        *spare = next;
    }
    return st;
}

static tncuda_array array_of(const tn_tensor *t)
{
    return t ? (tncuda_array){t->data, t->dtype, TN_MODE_WRITE} : (tncuda_array){NULL, 0, 0};
}

static tn_status order_run(const tn_plan *plan, const tn_exec *x, const order_want *w, tn_err *err)
{
    const int64_t count = tn_tensor_count(x->in[0]);
    tncuda_call_args a = {.count = count, .room = x->workspace};
    void *at = x->workspace, *other = (char *)at + count * ENTRY_BYTES;
    tn_status st = w->mask ? tnb_move_zero(plan, x, w->mask, err) : TN_OK;

    rows_of(x->in[0], x->attrs[TN_sort_axis], &a);
    a.n[0] = w->descending;
    a.n[1] = w->k > 0 ? w->k : a.size;
    a.n[3] = (int64_t)tn_dtype_bytes(x->in[0]->dtype);
    a.n[4] = w->indices && w->indices->dtype == TN_U8 ? UINT8_MAX : INT64_MAX; /* MXNet's wrap round */
    a.in[0] = array_of(x->in[0]);
    if (st || !count || (st = tncuda_launch(x, "order", "order_load", count, &a, err)))
        return st;
    st = tncuda_order_merge(x, count, a.size, &at, &other, err);
    if (st)
        return st;
    a.in[1].data = at;
    a.out[0] = array_of(w->values);
    a.out[2] = array_of(w->indices);
    a.out[3] = array_of(w->mask);
    a.count = a.outer * a.inner * a.n[1];
    return tncuda_launch(x, "order", "order_write", a.count, &a, err);
}

/* NULL: nobody reads it. */
static const tn_tensor *wanted(const tn_exec *x, uint32_t output)
{
    return x->modes[output] == TN_MODE_NONE ? NULL : x->out[output];
}

static tn_status sort_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const order_want w = {.values = wanted(x, 0),
                          .indices = wanted(x, 1),
                          .descending = !tn_value_int(x->attrs[TN_sort_is_ascend])};

    return order_run(plan, x, &w, err);
}

static tn_status argsort_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const order_want w = {.indices = x->out[0], .descending = !tn_value_int(x->attrs[TN_argsort_is_ascend])};

    return order_run(plan, x, &w, err);
}

static tn_status topk_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t what = tn_value_int(x->attrs[TN_topk_ret_typ]);
    order_want w = {.descending = !tn_value_int(x->attrs[TN_topk_is_ascend]),
                    .k = tn_value_int(x->attrs[TN_topk_k])};

    if (what == TN_topk_ret_typ_mask)
        w.mask = x->out[0];
    else if (what == TN_topk_ret_typ_indices)
        w.indices = x->out[0];
    else
        w.values = wanted(x, 0), w.indices = wanted(x, 1);
    return order_run(plan, x, &w, err);
}

/* in: dy, data, indices */
static tn_status back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    return tncuda_state(plugin, node, plan, 0, err);
}

static tn_status back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->in[0])};
    const tn_status st = tnb_move_zero(plan, x, x->out[0], err);

    rows_of(x->out[0], x->attrs[TN_sort_axis], &a);
    if (st || !a.count || !a.size)
        return st;
    tncuda_call_arrays(x, 3, 1, &a);
    a.n[1] = a.count / (a.outer * a.inner);
    a.n[3] = (int64_t)tn_dtype_bytes(x->out[0]->dtype);
    return tncuda_launch(x, "order", "order_back", a.count, &a, err);
}

static const char *const any_types[] = {"*:" TNCUDA_ALL, NULL};
static const char *const back_sort_types[] = {"dy:" TNCUDA_ALL, "data:=dy", "indices:i32", "*:=dy", NULL};
static const char *const back_topk_types[] = {"dy:" TNCUDA_ALL, "data:=dy", "indices:f32,f64,f16,u8,i32,i64",
                                              "*:=dy", NULL};

const tn_kernel *const tncuda_family_order[] = {
    TNCUDA_ROW("sort", any_types, 0, order_prepare, sort_run),
    TNCUDA_ROW("argsort", any_types, 0, order_prepare, argsort_run),
    TNCUDA_ROW("topk", any_types, 0, order_prepare, topk_run),
    TNCUDA_ROW("_backward_sort", back_sort_types, 0, back_prepare, back_run),
    TNCUDA_ROW("_backward_topk", back_topk_types, 0, back_prepare, back_run),
    NULL,
};
