/* NumPy's where, nan_to_num, around, full_like and share_memory. */
#include <float.h>
#include <math.h>

#include "../../common/index.h"
#include "loops.h"
#include "rows.h"
#include "tenon/plugin/op/select.h"

/* ---- where -------------------------------------------------------------------------------------- */

/* One of both sides: elements of an input, or a number of the output's type. */
typedef struct side {
    const char *data;
    int64_t stride[TN_NDIM_MAX];
    uint64_t number;
} side;

typedef struct where_call {
    const tn_tensor *y;
    const tncpu_convert *condition;
    side at[3]; /* the condition, then where it is not 0, then where it is */
} where_call;

static void side_of(const tn_tensor *t, const tn_tensor *y, side *out)
{
    const int32_t lead = y->ndim - t->ndim;

    out->data = t->data;
    for (int32_t d = 0; d < y->ndim; d++)
        out->stride[d] = d < lead || t->shape[d - lead] == 1 ? 0 : t->stride[d - lead];
}

static void side_number(double value, const tn_tensor *y, side *out)
{
    tncpu_converts[y->dtype].store_f(&value, &out->number, 1, 1);
    out->data = (const char *)&out->number;
    memset(out->stride, 0, sizeof out->stride);
}

/* Elements `begin` … of one row of the output, at most a tile. */
static void where_row(const where_call *c, int64_t begin, int64_t n)
{
    const int32_t last = c->y->ndim - 1;
    const int64_t bytes = (int64_t)tn_dtype_bytes(c->y->dtype);
    const int64_t step[3] = {0, last < 0 ? 0 : c->at[1].stride[last] * bytes,
                             last < 0 ? 0 : c->at[2].stride[last] * bytes};
    const char *from[3];
    char *to = (char *)c->y->data + begin * bytes;
    tncpu_tile flags;
    const void *const in[] = {&flags};

    for (int k = 0; k < 3; k++)
        from[k] = c->at[k].data + tnb_offset(c->y->ndim, c->y->shape, c->at[k].stride, begin) *
                                      (k ? bytes : c->condition->bytes);
    c->condition->load(from[0], last < 0 ? 0 : c->at[0].stride[last], &flags, n);
    tncpu_loops[TNCPU_NOT][c->condition->kind](&flags, in, n, NULL); /* 1 where it is 0; NaN is true */
    for (int64_t i = 0; i < n; i++) {
        const int k = (c->condition->kind_bytes == 4 ? flags.i32[i] != 0 : flags.i64[i] != 0) ? 2 : 1;

        tncpu_row_copy(to + i * bytes, from[k] + i * step[k], bytes);
    }
}

static void where_part(void *arg, int64_t begin, int64_t end)
{
    const where_call *c = arg;
    const int64_t row = c->y->ndim > 0 ? c->y->shape[c->y->ndim - 1] : 1;

    for (int64_t at = begin, n; at < end; at += n) {
        n = tncpu_min(tncpu_min(row - at % row, end - at), TNCPU_TILE);
        where_row(c, at, n);
    }
}

TNCPU_PREPARE(where_prepare, tncpu_plan_work(node, plan, 20 + 3.0 * (double)tn_tensor_count(node->out[0])))

static void where_sides(const tn_plan *plan, const tn_exec *x, const tn_tensor *yes, const tn_tensor *no)
{
    where_call c = {.y = x->out[0], .condition = &tncpu_converts[x->in[0]->dtype]};

    side_of(x->in[0], c.y, &c.at[0]);
    if (yes)
        side_of(yes, c.y, &c.at[1]);
    else
        side_number(tn_value_float(x->attrs[0]), c.y, &c.at[1]);
    if (no)
        side_of(no, c.y, &c.at[2]);
    else
        side_number(tn_value_float(x->attrs[yes ? 0 : 1]), c.y, &c.at[2]);
    tncpu_for(plan, x, tn_tensor_count(c.y), TNCPU_TILE, where_part, &c);
}

TNCPU_RUN(where_both_run, where_sides(plan, x, x->in[1], x->in[2]))
TNCPU_RUN(where_lscalar_run, where_sides(plan, x, NULL, x->in[1]))
TNCPU_RUN(where_rscalar_run, where_sides(plan, x, x->in[1], NULL))
TNCPU_RUN(where_scalar2_run, where_sides(plan, x, NULL, NULL))

/* ---- nan_to_num --------------------------------------------------------------------------------- */

static double largest(int32_t dtype)
{
    static const double values[] = {
        [TN_F32] = FLT_MAX, [TN_F64] = DBL_MAX, [TN_F16] = 65504, [TN_BF16] = 3.3895313892515355e38};

    return values[dtype];
}

static void nan_to_num_part(void *arg, int64_t begin, int64_t end)
{
    const tn_exec *x = arg;
    const double *high = (const double *)tn_value_pointer(x->attrs[TN_npi_nan_to_num_posinf]),
                 *low = (const double *)tn_value_pointer(x->attrs[TN_npi_nan_to_num_neginf]);
    const double nan = tn_value_float(x->attrs[TN_npi_nan_to_num_nan]), end_of = largest(x->in[0]->dtype);
    double tile[TNCPU_TILE];

    for (int64_t at = begin, n; at < end; at += n) {
        n = tncpu_min(TNCPU_TILE, end - at);
        tncpu_numbers(x->in[0], at, 1, n, tile);
        for (int64_t i = 0; i < n; i++) {
            const double v = tile[i];

            tile[i] = v != v ? nan : !isinf(v) ? v : v > 0 ? (high ? *high : end_of) : low ? *low : -end_of;
        }
        tncpu_numbers_store(x->out[0], at, 1, n, tile);
    }
}

static tn_status nan_to_num_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tn_exec call = *x;

    (void)err;
    if (tncpu_is_float(x->in[0]->dtype))
        tncpu_for(plan, x, tn_tensor_count(x->in[0]), TNCPU_TILE, nan_to_num_part, &call);
    else
        tncpu_copy(x->in[0], x->out[0]);
    return TN_OK;
}

/* ---- around, full_like, share_memory ------------------------------------------------------------- */

static const tncpu_point rows[] = {{"_npi_around", TNCPU_AROUND, 1, TNCPU_NO_SCALAR}};

/* Integers are cut to multiples of a power of 10, if that is above 1. */
static tn_status around_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const double decimals = (double)tn_value_int(node->attrs[TN_npi_around_decimals]);
    tn_status st = tncpu_point_prepare(rows, 1, plugin, node, plan, err);

    if (!st)
        tncpu_point_number(plan, tncpu_is_float(node->in[0]->dtype) ? pow(10, decimals)
                                                                    : pow(10, decimals < 0 ? -decimals : 0));
    return st;
}

TNCPU_RUN(full_like_run, tncpu_fill(x->out[0], tn_value_float(x->attrs[TN_npi_full_like_fill_value])))

/* The bytes from the first element to the last. */
static void span_of(const tn_tensor *t, uintptr_t *begin, uintptr_t *end)
{
    int64_t first = 0, last = 0;

    for (int32_t d = 0; d < t->ndim; d++)
        *(t->stride[d] < 0 ? &first : &last) += (t->shape[d] - 1) * t->stride[d];
    *begin = (uintptr_t)t->data + (uintptr_t)first * tn_dtype_bytes(t->dtype);
    *end = (uintptr_t)t->data + (uintptr_t)(last + 1) * tn_dtype_bytes(t->dtype);
}

static tn_status share_memory_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    uintptr_t a, a_end, b, b_end;
    double shared = 0;

    (void)plan, (void)err;
    if (tn_tensor_count(x->in[0]) && tn_tensor_count(x->in[1])) {
        span_of(x->in[0], &a, &a_end);
        span_of(x->in[1], &b, &b_end);
        shared = a < b_end && b < a_end;
    }
    tncpu_fill(x->out[0], shared);
    return TN_OK;
}

const tn_kernel *const tncpu_family_select[] = {
    TNCPU_ROW("_npi_where", tncpu_all, 0, where_prepare, where_both_run),
    TNCPU_ROW("_npi_where_lscalar", tncpu_all, 0, where_prepare, where_lscalar_run),
    TNCPU_ROW("_npi_where_rscalar", tncpu_all, 0, where_prepare, where_rscalar_run),
    TNCPU_ROW("_npi_where_scalar2", tncpu_all, 0, where_prepare, where_scalar2_run),
    TNCPU_ROW("_npi_nan_to_num", tncpu_all, 0, where_prepare, nan_to_num_run),
    TNCPU_ROW("_npi_around", tncpu_most, TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, around_prepare,
              tncpu_point_run),
    TNCPU_ROW("_npi_full_like", tncpu_all, 0, where_prepare, full_like_run),
    TNCPU_ROW("_npi_share_memory", tncpu_all, TN_KERNEL_EMPTY_OK | TN_KERNEL_STRIDED, where_prepare,
              share_memory_run),
    NULL,
};
