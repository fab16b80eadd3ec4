/* NumPy's insert and delete: kernels/insert.cu. */
#include "../common/insert.h"
#include "edit.h"

static tn_status edit_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, sizeof(tnb_edit), err);

    if (!st)
        tnb_edit_of(node, plan->state);
    return st;
}

static void edit_args(const tnb_edit *e, const tn_exec *x, tncuda_edit_args *a)
{
    tncuda_edit_arrays(x, a);
    a->outer = e->outer;
    a->size = e->size;
    a->inner = e->inner;
    a->axis = e->axis;
    a->ndim = e->ndim;
}

/* ---- insert -------------------------------------------------------------------------------------------- */

static tn_status insert_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = edit_prepare(plugin, node, plan, err);
    const tnb_edit *e = plan->state;

    if (!st)
        plan->workspace_bytes =
            2 * TNCUDA_ENTRY_BYTES * (uint64_t)(node->out[0]->shape[e->axis] - e->size + 1);
    return st;
}

/* in: the array, values unless they are a number, indices if they are a tensor */
static tn_status insert_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tnb_edit *e = plan->state;
    const double *number = (const double *)tn_value_pointer(x->attrs[TN_npi_insert_val]);
    tncuda_edit_args a = {.number = number ? *number : 0};
    int64_t given;
    void *spare;
    tn_status st;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    edit_args(e, x, &a);
    a.added = x->out[0]->shape[e->axis] - e->size;
    for (int32_t d = 0; d < e->ndim; d++)
        a.shape[d] = x->out[0]->shape[d];
    if (!number) {
        a.values = tncuda_array_of(x->in[1], TN_MODE_NONE);
        tnb_edit_steps(e, x->in[1], a.along);
    }
    if (e->tensor)
        a.places = tncuda_array_of(x->in[number ? 1 : 2], TN_MODE_NONE);
    given =
        e->tensor ? tn_tensor_count(x->in[number ? 1 : 2]) : tnb_edit_range(e, x->attrs, &a.first, &a.step);
    a.one = given == 1;
    spare = (char *)a.room + (uint64_t)a.added * TNCUDA_ENTRY_BYTES;
    if ((st = tncuda_launch(x, "insert", "insert_places", a.added, &a, err)))
        return st;
    if (!a.one && (e->tensor || a.step < 0) &&
        (st = tncuda_order_merge(x, a.added, a.added, &a.room, &spare, err)))
        return st;
    return tncuda_launch(x, "insert", "insert_put", a.count, &a, err);
}

/* ---- delete -------------------------------------------------------------------------------------------- */

static tn_status delete_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    if (node->in_count > 1)
        return tn_fail(err, TN_E_UNSUPPORTED, "how many elements are left follows from the indices' values");
    return edit_prepare(plugin, node, plan, err);
}

static tn_status delete_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tnb_edit *e = plan->state;
    tncuda_edit_args a = {.count = 0};

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    edit_args(e, x, &a);
    a.added = tnb_edit_range(e, x->attrs, &a.first, &a.step);
    a.first += a.first < 0 ? a.size : 0;
    if (a.step < 0) { /* the same slices, the other way round */
        a.first += (a.added - 1) * a.step;
        a.step = -a.step;
    }
    return tncuda_launch(x, "insert", "delete_range", a.count, &a, err);
}

static const char *const insert_types[] = {"arr:" TNCUDA_ALL, "values:" TNCUDA_ALL, "out:=arr", NULL};
static const char *const tensor_types[] = {"arr:" TNCUDA_ALL, "values:" TNCUDA_ALL, "obj:i64", "out:=arr",
                                           NULL};
static const char *const delete_types[] = {"arr:" TNCUDA_ALL, "*:=arr", NULL};

const tn_kernel *const tncuda_family_insert[] = {
    TNCUDA_ROW("_npi_insert_scalar", insert_types, 0, insert_prepare, insert_run),
    TNCUDA_ROW("_npi_insert_slice", insert_types, 0, insert_prepare, insert_run),
    TNCUDA_ROW("_npi_insert_tensor", tensor_types, 0, insert_prepare, insert_run),
    TNCUDA_ROW("_npi_delete", delete_types, 0, delete_prepare, delete_run),
    NULL,
};
