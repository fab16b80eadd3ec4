/*
 * Gather and scatter. A kernel finds the row of each index where it needs it (kernels/index.cu). What is put
 * twice to one place has the last one; what is added has the sum in the order of the indices.
 */
#include "tenon/plugin/op/index.h"
#include "../common/move.h"
#include "launch.h"

#include <string.h>

/* Rows are gathered from input `data` to the output, or go from input 0 (`into`: 1) to the output. */
typedef struct form {
    const char *op, *kernel;
    void (*find)(const tn_value *attrs, const tn_tensor *data, const tn_tensor *indices, tncuda_call_args *a);
    uint32_t data, indices; /* inputs */
    bool gathers, into;
} form;

typedef struct index_state {
    const form *form;
    tncuda_call_args args;
} index_state;

/* Data (outer, size, inner), of which indices choose along size. */
static void axis_find(const tn_tensor *data, const tn_tensor *indices, int32_t axis, int64_t mode,
                      tncuda_call_args *a)
{
    tncuda_call_rows(data, axis, axis + 1, a);
    a->n[TNCUDA_INDEX_MANY] = tn_tensor_count(indices);
    a->n[TNCUDA_INDEX_MODE] = mode;
}

static void take_find(const tn_value *attrs, const tn_tensor *data, const tn_tensor *indices,
                      tncuda_call_args *a)
{
    axis_find(data, indices, tnb_axis(tn_value_int(attrs[TN_take_axis]), data->ndim),
              tn_value_int(attrs[TN_take_mode]) == TN_take_mode_wrap ? TNCUDA_INDEX_WRAP : TNCUDA_INDEX_CLIP,
              a);
}

static void embedding_find(const tn_value *attrs, const tn_tensor *data, const tn_tensor *indices,
                           tncuda_call_args *a)
{
    (void)attrs;
    axis_find(data, indices, 0, TNCUDA_INDEX_CLIP, a);
}

/* One index for each (outer, inner). */
static void pick_find(const tn_value *attrs, const tn_tensor *data, const tn_tensor *indices,
                      tncuda_call_args *a)
{
    const int64_t *asked = tn_value_pointer(attrs[TN_pick_axis]);

    axis_find(data, indices, tnb_axis(asked ? *asked : 0, data->ndim),
              tn_value_int(attrs[TN_pick_mode]) == TN_pick_mode_wrap ? TNCUDA_INDEX_WRAP : TNCUDA_INDEX_CLIP,
              a);
}

static void batch_find(const tn_value *attrs, const tn_tensor *data, const tn_tensor *indices,
                       tncuda_call_args *a)
{
    (void)attrs;
    axis_find(data, indices, 1, TNCUDA_INDEX_CLIP, a);
}

/* Columns of indices (axes, many): places among the rows of the data's first axes. */
static void coordinates_find(const tn_value *attrs, const tn_tensor *data, const tn_tensor *indices,
                             tncuda_call_args *a)
{
    const int64_t axes = indices->shape[0];

    (void)attrs;
    a->outer = 1;
    a->size = tnb_dims(data, 0, (int32_t)axes);
    a->inner = tnb_dims(data, (int32_t)axes, data->ndim);
    a->n[TNCUDA_INDEX_MANY] = axes ? tn_tensor_count(indices) / axes : 0;
    a->n[TNCUDA_INDEX_MODE] = TNCUDA_INDEX_COORDINATES;
    a->n[TNCUDA_INDEX_AXES] = axes;
    for (int64_t k = 0; k < axes; k++)
        a->n[TNCUDA_INDEX_SHAPE + k] = data->shape[k];
}

static const form forms[] = {
    {"take", "index_gather", take_find, 0, 1, true, false},
    {"Embedding", "index_gather", embedding_find, 1, 0, true, false},
    {"gather_nd", "index_gather", coordinates_find, 0, 1, true, false},
    {"pick", "index_pick", pick_find, 0, 1, true, false},
    {"batch_take", "index_pick", batch_find, 0, 1, true, false},
    {"_backward_pick", "index_unpick", pick_find, 0, 2, false, false},
    {"_backward_batch_take", "index_unpick", batch_find, 0, 2, false, false},
    {"_backward_take", "index_add", take_find, 0, 2, false, false},
    {"_backward_Embedding", "index_add", embedding_find, 0, 2, false, false},
    {"_backward_gather_nd", "index_add", coordinates_find, 0, 2, false, false},
    {"scatter_nd", "index_put", coordinates_find, 0, 1, false, false},
    {"_scatter_set_nd", "index_put", coordinates_find, 0, 2, false, true},
};

static tn_status index_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const form *f = forms;
    const tn_tensor *data;
    index_state *s;
    tn_status st;

    while (strcmp(f->op, node->op) != 0)
        f++;
    if (f->find == take_find && tn_value_int(node->attrs[TN_take_mode]) == TN_take_mode_raise)
        return tn_fail(err, TN_E_UNSUPPORTED,
                       "mode raise looks at indices on the host; clip and wrap do not");
    if (f->find == pick_find && !tn_value_pointer(node->attrs[TN_pick_axis]))
        return tn_fail(err, TN_E_UNSUPPORTED, "pick without an axis is not there yet");
    if ((st = tncuda_state(plugin, node, plan, sizeof(index_state), err)))
        return st;
    s = plan->state;
    s->form = f;
    data = f->gathers ? node->in[f->data] : node->out[0];
    f->find(node->attrs, data, node->in[f->indices], &s->args);
    s->args.n[TNCUDA_INDEX_BYTES] = (int64_t)tn_dtype_bytes(data->dtype);
    return TN_OK;
}

/* Threads: an element of what is gathered, of the picked, of rows that are put, of data. */
static tn_status index_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const index_state *s = plan->state;
    const form *f = s->form;
    tncuda_call_args a = s->args;
    const tn_tensor *rows = f->gathers ? x->out[0] : x->in[f->into];
    tn_status st = TN_OK;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if (f->gathers && !tn_tensor_count(x->in[f->data]) && tn_tensor_count(rows))
        return tn_fail(err, TN_E_ARG, "an index lies outside of the data, which has no elements");
    if (!f->gathers && !tn_tensor_count(x->out[0]))
        return TN_OK;
    tncuda_call_arrays(x, 0, 1, &a);
    a.in[0] = (tncuda_array){f->gathers ? x->in[f->data]->data : rows->data, rows->dtype, 0};
    a.in[1] = (tncuda_array){x->in[f->indices]->data, x->in[f->indices]->dtype, 0};
    a.count = tn_tensor_count(strcmp(f->kernel, "index_unpick") == 0 ? x->out[0] : rows);
    if (f->into)
        st = tnb_move_copy(plan, x, x->in[0], x->out[0], err);
    else if (!f->gathers && strcmp(f->kernel, "index_unpick") != 0)
        st = tnb_move_zero(plan, x, x->out[0], err);
    return st ? st : tncuda_launch(x, "index", f->kernel, a.count, &a, err);
}

static tn_status one_hot_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    tncuda_call_args a = {
        .count = tn_tensor_count(y),
        .size = y->shape[y->ndim - 1],
        .f = {tn_value_float(x->attrs[TN_one_hot_on_value]), tn_value_float(x->attrs[TN_one_hot_off_value])}};

    (void)plan;
    tncuda_call_arrays(x, 1, 1, &a);
    a.in[1] = a.in[0];
    return tncuda_launch(x, "index", "index_one_hot", a.count, &a, err);
}

/* Places in an array of a shape: from coordinates (axes, many), and to them. */
static tn_status ravel(const tn_exec *x, const tn_tensor *coordinates, const tn_tensor *many,
                       const char *kernel, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(many), .size = coordinates->shape[0]};

    if (a.size > TN_NDIM_MAX)
        return tn_fail(err, TN_E_UNSUPPORTED, "more axes than an array has");
    for (int64_t k = 0; k < a.size; k++)
        a.n[k] = tnb_tuple_item(x->attrs[TN_ravel_shape], k, 1);
    tncuda_call_arrays(x, 1, 1, &a);
    a.in[1] = a.in[0];
    return tncuda_launch(x, "index", kernel, a.count, &a, err);
}

static tn_status ravel_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return ravel(x, x->in[0], x->out[0], "index_ravel", err);
}

static tn_status unravel_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan;
    return ravel(x, x->out[0], x->in[0], "index_unravel", err);
}

static const char *const take_types[] = {"a:" TNCUDA_ALL, "indices:" TNCUDA_ALL, "output:=a", NULL};
static const char *const embedding_types[] = {"data:" TNCUDA_ALL, "weight:" TNCUDA_ALL, "output:=weight",
                                              NULL};
static const char *const pick_types[] = {"data:" TNCUDA_ALL, "index:" TNCUDA_ALL, "output:=data", NULL};
static const char *const back_pick_types[] = {"dy:" TNCUDA_ALL, "index:" TNCUDA_ALL, "*:=dy", NULL};
static const char *const gather_types[] = {"data:" TNCUDA_ALL, "indices:" TNCUDA_ALL, "output:=data", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_FLOATS, "indices:" TNCUDA_ALL, "*:=dy", NULL};
static const char *const back_embedding_types[] = {"dy:" TNCUDA_FLOATS, "data:" TNCUDA_ALL, "*:=dy", NULL};
static const char *const batch_types[] = {"a:" TNCUDA_ALL, "indices:u8,i32,i8,i64,bool,i16,u16,u32,u64",
                                          "output:=a", NULL};
static const char *const back_batch_types[] = {"dy:" TNCUDA_ALL, "indices:u8,i32,i8,i64,bool,i16,u16,u32,u64",
                                               "*:=dy", NULL};
static const char *const set_types[] = {"lhs:" TNCUDA_ALL, "indices:" TNCUDA_ALL, "*:=lhs", NULL};
static const char *const all[] = {"*:" TNCUDA_ALL, NULL};
static const char *const ravel_types[] = {"*:" TNCUDA_NUMBERS ",u64", NULL};

#define INDEX(op, types, flags) TNCUDA_ROW(op, types, flags, index_prepare, index_run)
const tn_kernel *const tncuda_family_index[] = {
    INDEX("take", take_types, 0),
    INDEX("Embedding", embedding_types, 0),
    INDEX("gather_nd", gather_types, 0),
    INDEX("pick", pick_types, 0),
    INDEX("batch_take", batch_types, 0),
    INDEX("scatter_nd", gather_types, TN_KERNEL_EMPTY_OK),
    INDEX("_scatter_set_nd", set_types, 0),
    INDEX("_backward_pick", back_pick_types, TN_KERNEL_EMPTY_OK),
    INDEX("_backward_batch_take", back_batch_types, TN_KERNEL_EMPTY_OK),
    INDEX("_backward_take", back_types, TN_KERNEL_EMPTY_OK),
    INDEX("_backward_Embedding", back_embedding_types, TN_KERNEL_EMPTY_OK),
    INDEX("_backward_gather_nd", back_types, TN_KERNEL_EMPTY_OK),
    TNCUDA_ROW("one_hot", all, 0, tncuda_plain_prepare, one_hot_run),
    TNCUDA_ROW("_ravel_multi_index", ravel_types, 0, tncuda_plain_prepare, ravel_run),
    TNCUDA_ROW("_unravel_index", ravel_types, 0, tncuda_plain_prepare, unravel_run),
    NULL,
};
