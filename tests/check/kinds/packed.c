/*
 * An operator whose weights take four bits each: the dot product of data with each row of a matrix, times a
 * scale of the row. Rows follow each other without a gap, so that one of odd length ends within a byte.
 * PLANTED says what is wrong with it, NAME what it is called: the build gives both.
 */
#include "elements.h"

enum {
    HEALTHY,
    HIGH_FIRST,   /* the first of two weights lies in the high half of its byte */
    ROWS_ALIGNED, /* each row begins at a byte */
    READS_TWICE,  /* a byte for each weight */
    NO_SIGN,      /* a signed weight is read without its sign */
};

static tn_status rows_shape(tn_infer *i)
{
    tn_shape weight = {.ndim = 2, .dim = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN}};
    tn_shape rows = {.ndim = 1, .dim = {TN_DIM_UNKNOWN}}, columns = rows;
    tn_status st = TN_OK;

    for (int32_t round = 0; round < 2 && !st; round++)
        if (!(st = tn_shape_unify(i, i->in_shape[0], &weight)) &&
            !(st = tn_shape_unify(i, i->in_shape[1], &columns)) &&
            !(st = tn_shape_unify(i, i->in_shape[2], &rows)) &&
            !(st = tn_shape_unify(i, i->out_shape[0], &rows))) {
            columns.dim[0] = columns.dim[0] < 0 ? weight.dim[1] : columns.dim[0];
            rows.dim[0] = rows.dim[0] < 0 ? weight.dim[0] : rows.dim[0];
            weight.dim[0] = rows.dim[0];
            weight.dim[1] = columns.dim[0];
        }
    for (int32_t k = 0; k < 3 && !st; k++)
        st = tn_shape_unify(i, i->in_shape[k], k == 0 ? &weight : k == 1 ? &columns : &rows);
    return st ? st : tn_shape_unify(i, i->out_shape[0], &rows);
}

/* The weights may be anything of this kind; they say nothing of the rest. */
static tn_status rows_dtype(tn_infer *i)
{
    const int32_t weight = i->in_dtype[0];
    int32_t value = TN_DTYPE_UNKNOWN;

    if (weight >= 0 && weight != TN_I4 && weight != TN_U4 && weight != TN_I8 && weight != TN_U8)
        return tn_fail(i->err, TN_E_DTYPE, "weights are int4, uint4, int8 or uint8");
    for (uint32_t k = 0; k < 3; k++) {
        const int32_t one = k == 0 ? i->in_dtype[1] : k == 1 ? i->in_dtype[2] : i->out_dtype[0];

        if (one >= 0 && one != TN_F32 && one != TN_F64)
            return tn_fail(i->err, TN_E_DTYPE, "data and scales are float32 or float64");
        if (one >= 0 && value >= 0 && one != value)
            return tn_fail(i->err, TN_E_DTYPE, "data and scales have one data type");
        value = one >= 0 ? one : value;
    }
    i->in_dtype[1] = i->in_dtype[2] = i->out_dtype[0] = value;
    return TN_OK;
}

static const char *const rows_in[] = {"weight", "data", "scale", NULL}, *const rows_out[] = {"output", NULL};
static const tn_op rows_op = {
    .struct_size = (uint32_t)TN_END(tn_op, gradient),
    .version = 1,
    .name = "kind_packed_rows",
    .doc = "scale[r] * sum of data[k] * weight[r][k], with weights of four bits.",
    .inputs = rows_in,
    .outputs = rows_out,
    .shape = rows_shape,
    .dtype = rows_dtype,
};
static const tn_op_table op_table = TN_OPS(NAME, &rows_op);

static tn_status rows_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)node, (void)err;
    plan->flags = TN_PLAN_THREAD_INVARIANT;
    plan->threads = 1;
    return TN_OK;
}

static int32_t weight_get(const tn_tensor *w, int64_t row, int64_t column)
{
    const int64_t columns = w->shape[1], at = row * columns + column;

    if (w->dtype == TN_I8)
        return ((const int8_t *)w->data)[at];
    if (w->dtype == TN_U8)
        return ((const uint8_t *)w->data)[at];
    if (PLANTED == READS_TWICE)
        return ((const uint8_t *)w->data)[at] & 15;
    if (PLANTED == ROWS_ALIGNED)
        return tn_packed_get((const uint8_t *)w->data + row * ((columns + 1) / 2), w->dtype, column);
    return tn_packed_get(w->data, PLANTED == NO_SIGN ? TN_U4 : w->dtype, PLANTED == HIGH_FIRST ? at ^ 1 : at);
}

static tn_status rows_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *w = x->in[0], *y = x->out[0];

    (void)plan, (void)err;
    for (int64_t r = 0; r < w->shape[0] && x->modes[0] != TN_MODE_NONE; r++) {
        double sum = 0;

        for (int64_t k = 0; k < w->shape[1]; k++)
            sum += element_get(x->in[1], k) * weight_get(w, r, k);
        sum *= element_get(x->in[2], r);
        element_set(y, r, sum);
    }
    return TN_OK;
}

static const char *const types[] = {"weight:i4,u4,i8,u8", "data:f32,f64", "*:=data", NULL};
static const tn_kernel rows_kernel = TN_KERNEL("kind_packed_rows", "cpu", types, rows_prepare, rows_run);
static const tn_kernel_table kernel_table = TN_KERNELS("cpu", &rows_kernel);

static const tn_capability *const capabilities[] = {&op_table.head, &kernel_table.head, NULL};

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "an operator with weights of four bits", "",
                 "op:kind_packed_rows kernels@cpu", NULL, NULL, NULL, capabilities);
