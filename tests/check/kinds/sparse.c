/*
 * Operators over sparse arrays: one reads csr and gives the sum of each row; one writes the rows of a matrix
 * whose first element is above a limit as row_sparse, whose number it knows when it runs. PLANTED says what
 * is wrong with it, NAME what it is called: the build gives both.
 */
#include "tenon/plugin/attr.h"

#include "elements.h"

enum {
    HEALTHY,
    READS_DENSE,   /* takes the values of a csr array for all of its elements */
    ROWS_REVERSED, /* row ids descend */
    ROWS_ONE_MORE, /* tells one row more than it writes */
    NO_RESIZE,     /* never says how many rows are stored */
    NAN_UNCOUNTED, /* writes a row of nan that it has not told of */
};

/* ---- definitions ------------------------------------------------------------------------------------- */

static tn_status sums_shape(tn_infer *i)
{
    tn_shape matrix = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}};
    tn_shape rows = {.ndim = 1, .dim = {TN_DIM_UNKNOWN}};
    tn_status st;

    if ((st = tn_shape_unify(i, i->in_shape[0], &matrix)) || (st = tn_shape_unify(i, i->out_shape[0], &rows)))
        return st;
    rows.dim[0] = i->in_shape[0]->dim[0];
    if ((st = tn_shape_unify(i, i->out_shape[0], &rows)))
        return st;
    i->in_shape[0]->dim[0] = i->out_shape[0]->dim[0];
    return TN_OK;
}

static tn_status rows_shape(tn_infer *i)
{
    tn_shape matrix = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}};
    tn_status st = tn_shape_unify(i, i->in_shape[0], &matrix);

    return st ? st : tn_shape_unify(i, i->in_shape[0], i->out_shape[0]);
}

static tn_status float_dtype(tn_infer *i)
{
    return tn_infer_same_dtype(i, TN_DTYPE_BIT(TN_F32) | TN_DTYPE_BIT(TN_F64));
}

static tn_status sums_storage(tn_infer *i)
{
    i->in_storage[0] = TN_STORAGE_CSR;
    i->out_storage[0] = TN_STORAGE_DENSE;
    return TN_OK;
}

static tn_status rows_storage(tn_infer *i)
{
    i->in_storage[0] = TN_STORAGE_DENSE;
    i->out_storage[0] = TN_STORAGE_ROW_SPARSE;
    return TN_OK;
}

static const tn_attr_def rows_attrs[] = {
    TN_ATTR_FLOAT("above", "0.0", "rows whose first element is above this are kept"),
    TN_ATTR_END,
};
static const char *const data[] = {"data", NULL}, *const output[] = {"output", NULL};
static const tn_op sums_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "kind_csr_sums",
    .doc = "The sum of each row of a csr matrix.",
    .inputs = data,
    .outputs = output,
    .shape = sums_shape,
    .dtype = float_dtype,
    .storage = sums_storage,
};
static const tn_op rows_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "kind_rows_above",
    .doc = "The rows whose first element is above a limit, row_sparse.",
    .attrs = rows_attrs,
    .inputs = data,
    .outputs = output,
    .shape = rows_shape,
    .dtype = float_dtype,
    .storage = rows_storage,
};
static const tn_op_table op_table = TN_OPS(NAME, &sums_op, &rows_op);

/* ---- kernels ----------------------------------------------------------------------------------------- */

static int64_t index_get(const tn_tensor *t, int64_t at)
{
    return t->dtype == TN_I64 ? ((const int64_t *)t->data)[at] : ((const int32_t *)t->data)[at];
}

static tn_status sums_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    return TN_OK;
}

static tn_status sums_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0];

    (void)plan, (void)err;
    for (int64_t r = 0; r < in->shape[0] && x->modes[0] != TN_MODE_NONE; r++) {
        const int64_t first = PLANTED == READS_DENSE ? 0 : index_get(in->aux[0], r);
        const int64_t end = PLANTED == READS_DENSE ? in->shape[1] : index_get(in->aux[0], r + 1);
        double sum = 0;

        for (int64_t k = first; k < end; k++)
            sum += element_get(in, k);
        element_set(x->out[0], r, sum);
    }
    return TN_OK;
}

static tn_status rows_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT | TN_PLAN_RESIZES;
    plan->threads = 1;
    return TN_OK;
}

static tn_status rows_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *out;
    const int64_t rows = in->shape[0], columns = in->shape[1];
    const double above = tn_attrs_float(x->attrs, 0);
    int64_t kept = 0, at = 0;
    tn_status st;

    (void)plan;
    for (int64_t r = 0; r < rows && columns; r++)
        kept += element_get(in, r * columns) > above;
    if (PLANTED == NO_RESIZE)
        return TN_OK;
    if (!TN_HAS(x->ops, tn_call_ops, resize_sparse))
        return tn_fail(err, TN_E_UNSUPPORTED, "the host has no resize_sparse");
    if ((st = x->ops->resize_sparse(x->call, 0, kept + (PLANTED == ROWS_ONE_MORE && kept < rows), &out, err)))
        return st;
    for (int64_t r = 0; r < rows && columns; r++) {
        if (PLANTED == NAN_UNCOUNTED ? element_get(in, r * columns) <= above
                                     : !(element_get(in, r * columns) > above))
            continue;
        for (int64_t k = 0; k < columns; k++)
            element_set(out, at * columns + k, element_get(in, r * columns + k));
        ((int64_t *)out->aux[0]->data)[at++] = r;
    }
    for (int64_t k = 0; PLANTED == ROWS_REVERSED && k < kept; k++)
        ((int64_t *)out->aux[0]->data)[k] = kept - 1 - k;
    return TN_OK;
}

static const char *const sums_types[] = {"data:csr,f32,f64", "*:=data", NULL};
static const char *const rows_types[] = {"data:f32,f64", "output:row_sparse,=data", NULL};
static const tn_kernel sums_kernel = TN_KERNEL("kind_csr_sums", "cpu", sums_types, sums_prepare, sums_run);
static const tn_kernel rows_kernel = TN_KERNEL("kind_rows_above", "cpu", rows_types, rows_prepare, rows_run);
static const tn_kernel_table kernel_table = TN_KERNELS("cpu", &sums_kernel, &rows_kernel);

static const tn_capability *const capabilities[] = {&op_table.head, &kernel_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "operators over sparse arrays", "",
                 "op:kind_csr_sums op:kind_rows_above kernels@cpu", NULL, NULL, NULL, capabilities);
