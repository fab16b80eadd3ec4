/*
 * Running sums, differences and polynomials. Numbers are doubles, or 64-bit integers that wrap; a row, or an
 * element, is one thread's.
 */
#include "tenon/plugin/op/scan.h"
#include "rows.h"

/* ---- numbers of both kinds ---------------------------------------------------------------------- */

typedef union number {
    double f;
    int64_t i;
} number;

static number plus(bool whole, number a, number b)
{
    return whole ? (number){.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i)} : (number){.f = a.f + b.f};
}

static number minus(bool whole, number a, number b)
{
    return whole ? (number){.i = (int64_t)((uint64_t)a.i - (uint64_t)b.i)} : (number){.f = a.f - b.f};
}

static bool is_whole(const tn_tensor *t)
{
    return !tncpu_is_float(t->dtype);
}

/* Elements at, at + stride … as integers, or as doubles. */
static void numbers_load(const tn_tensor *t, bool whole, int64_t at, int64_t stride, int64_t n, number *to)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];
    tncpu_tile tile;

    if (!whole || tncpu_is_float(t->dtype)) {
        tncpu_numbers(t, at, stride, n, &to->f);
        for (int64_t i = 0; whole && i < n; i++)
            tncpu_converts[TN_I64].store_f(&to[i].f, &to[i].i, 1, 1);
        return;
    }
    for (int64_t i = 0; i < n; i += TNCPU_TILE) {
        const int64_t part = tncpu_min(TNCPU_TILE, n - i);

        c->load((const char *)t->data + (at + i * stride) * c->bytes, stride, &tile, part);
        for (int64_t k = 0; k < part; k++)
            to[i + k].i = c->kind == TNCPU_K_I64 ? tile.i64[k] : tile.i32[k];
    }
}

static void numbers_store(const tn_tensor *t, bool whole, int64_t at, int64_t stride, int64_t n,
                          const number *from)
{
    const tncpu_convert *c = &tncpu_converts[t->dtype];

    if (whole)
        c->store_i(&from->i, (char *)t->data + at * c->bytes, stride, n);
    else
        tncpu_numbers_store(t, at, stride, n, &from->f);
}

/* ---- cumsum ------------------------------------------------------------------------------------- */

typedef struct scan_call {
    const tn_exec *x;
    tncpu_rows rows; /* of the input */
    int64_t n;       /* differences: how often */
    bool whole, back;
} scan_call;

static void rows_plan(const tn_node *node, tn_plan *plan, int64_t size, double each)
{
    const int64_t count = tn_tensor_count(node->in[0]) + tn_tensor_count(node->out[0]);

    tncpu_plan_tasks(node, plan, 50 + each * (double)count, size > 0 ? count / size + 1 : 1);
    tncpu_plan_workspace(plan, (uint64_t)(size + 1) * sizeof(number));
}

static tncpu_rows cumsum_rows(const tn_value *attrs, const tn_tensor *in)
{
    const int64_t *axis = (const int64_t *)tn_value_pointer(attrs[TN_np_cumsum_axis]);
    const int32_t a = axis ? tncpu_axis(*axis, in->ndim) : 0;

    return tncpu_rows_of(in, a, axis ? a + 1 : in->ndim);
}

TNCPU_PREPARE(cumsum_prepare, rows_plan(node, plan, TNCPU_TILE, 3))

static void cumsum_row(const void *arg, int64_t row, double *room)
{
    const scan_call *c = arg;
    const int64_t first = tncpu_row_at(&c->rows, row);
    number *tile = (number *)(void *)room, sum = {.i = 0};

    for (int64_t i = 0, n; i < c->rows.size; i += n) {
        n = tncpu_min(TNCPU_TILE, c->rows.size - i);
        numbers_load(c->x->in[0], c->whole, first + i * c->rows.inner, c->rows.inner, n, tile);
        for (int64_t k = 0; k < n; k++)
            tile[k] = sum = plus(c->whole, sum, tile[k]);
        numbers_store(c->x->out[0], c->whole, first + i * c->rows.inner, c->rows.inner, n, tile);
    }
}

static tn_status cumsum_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const scan_call call = {.x = x, .rows = cumsum_rows(x->attrs, x->in[0]), .whole = is_whole(x->out[0])};

    (void)err;
    tncpu_rows_run(plan, x, call.rows.outer * call.rows.inner, 0, cumsum_row, &call);
    return TN_OK;
}

/* ---- diff --------------------------------------------------------------------------------------- */

static tncpu_rows diff_rows(const tn_value *attrs, const tn_tensor *a)
{
    const int32_t axis = tncpu_axis(tn_value_int(attrs[TN_npi_diff_axis]), a->ndim);

    return tncpu_rows_of(a, axis, axis + 1);
}

static tn_status diff_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_tensor *a = strncmp(node->op, "_backward_", 10) ? node->in[0] : node->out[0];

    (void)plugin, (void)err;
    rows_plan(node, plan, diff_rows(node->attrs, a).size, 4);
    return TN_OK;
}

/* A row of n + size elements becomes one of size, or (`back`) the other way round by the transposed steps. */
static void diff_row(const void *arg, int64_t row, double *room)
{
    const scan_call *c = arg;
    const int64_t inner = c->rows.inner, size = c->rows.size, left = size - c->n;
    const int64_t wide = tncpu_row_at(&c->rows, row), small = row / inner * left * inner + row % inner;
    number *all = (number *)(void *)room;

    numbers_load(c->x->in[0], c->whole, c->back ? small : wide, inner, c->back ? left : size, all);
    for (int64_t k = 0; k < c->n && !c->back; k++)
        for (int64_t i = 0; i + k + 1 < size; i++)
            all[i] = minus(c->whole, all[i + 1], all[i]);
    for (int64_t length = left; c->back && length < size; length++)
        for (int64_t i = length; i >= 0; i--) {
            const number zero = {.i = 0}, before = i > 0 ? all[i - 1] : zero,
                         here = i < length ? all[i] : zero;

            all[i] = minus(c->whole, before, here);
        }
    numbers_store(c->x->out[0], c->whole, c->back ? wide : small, inner, c->back ? size : left, all);
}

static void diff_rows_run(const tn_plan *plan, const tn_exec *x, const tn_tensor *a, bool back)
{
    const int64_t n = tn_value_int(x->attrs[TN_npi_diff_n]);
    const scan_call call = {
        .x = x, .rows = diff_rows(x->attrs, a), .n = n, .whole = is_whole(a), .back = back};

    if (n >= call.rows.size) { /* there are no differences */
        if (back)
            tncpu_fill(x->out[0], 0);
        return;
    }
    tncpu_rows_run(plan, x, call.rows.outer * call.rows.inner, 0, diff_row, &call);
}

TNCPU_RUN(diff_run, diff_rows_run(plan, x, x->in[0], false))

/* in: dy, a */
TNCPU_RUN(backward_diff_run, diff_rows_run(plan, x, x->out[0], true))

/* ---- ediff1d ------------------------------------------------------------------------------------ */

TNCPU_PREPARE(tiles_prepare, tncpu_plan_tasks(node, plan, 50 + 3 * (double)tn_tensor_count(node->out[0]), 1))

/* A copy of input `k`, if there is one, or a number: how many elements. */
static int64_t ediff1d_end(const tn_exec *x, uint32_t arr_given, uint32_t scalar, uint32_t k, int64_t to)
{
    const tn_tensor *y = x->out[0];
    const double *value = (const double *)tn_value_pointer(x->attrs[scalar]);

    if (tn_value_int(x->attrs[arr_given])) {
        memcpy((char *)y->data + to * (int64_t)tn_dtype_bytes(y->dtype), x->in[k]->data,
               (size_t)tn_tensor_count(x->in[k]) * tn_dtype_bytes(y->dtype));
        return tn_tensor_count(x->in[k]);
    }
    if (value)
        tncpu_numbers_store(y, to, 1, 1, value);
    return value != NULL;
}

static tn_status ediff1d_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *a = x->in[0];
    const bool whole = is_whole(a), begins = tn_value_int(x->attrs[TN_npi_ediff1d_to_begin_arr_given]) != 0;
    const int64_t count = tn_tensor_count(a) - 1;
    int64_t at = ediff1d_end(x, TN_npi_ediff1d_to_begin_arr_given, TN_npi_ediff1d_to_begin_scalar, 1, 0);
    number tile[TNCPU_TILE + 1];

    (void)plan, (void)err;
    for (int64_t i = 0, n; i < count; i += n) {
        n = tncpu_min(TNCPU_TILE, count - i);
        numbers_load(a, whole, i, 1, n + 1, tile);
        for (int64_t k = 0; k < n; k++)
            tile[k] = minus(whole, tile[k + 1], tile[k]);
        numbers_store(x->out[0], whole, at + i, 1, n, tile);
    }
    at += tncpu_max(count, 0);
    (void)ediff1d_end(x, TN_npi_ediff1d_to_end_arr_given, TN_npi_ediff1d_to_end_scalar, 1 + begins, at);
    return TN_OK;
}

/* in: dy, input1 and the others that there are */
static tn_status backward_ediff1d_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool begins = tn_value_int(x->attrs[TN_npi_ediff1d_to_begin_arr_given]) != 0,
               ends = tn_value_int(x->attrs[TN_npi_ediff1d_to_end_arr_given]) != 0;
    const tn_tensor *dy = x->in[0];
    const int64_t size = (int64_t)tn_dtype_bytes(dy->dtype), count = tn_tensor_count(x->out[0]);
    const int64_t first = begins ? tn_tensor_count(x->out[1])
                                 : tn_value_pointer(x->attrs[TN_npi_ediff1d_to_begin_scalar]) != NULL;

    (void)plan, (void)err;
    for (int64_t i = 0; x->modes[0] && i < count; i++) {
        const double sum =
            (i > 0 ? tncpu_number(dy, first + i - 1) : 0) - (i + 1 < count ? tncpu_number(dy, first + i) : 0);

        tncpu_numbers_store(x->out[0], i, 1, 1, &sum);
    }
    if (begins && x->modes[1])
        memcpy(x->out[1]->data, dy->data, (size_t)(first * size));
    if (ends && x->modes[1 + begins])
        memcpy(x->out[1 + begins]->data, (const char *)dy->data + (first + tncpu_max(count - 1, 0)) * size,
               (size_t)(tn_tensor_count(x->out[1 + begins]) * size));
    return TN_OK;
}

/* ---- polyval ------------------------------------------------------------------------------------ */

static tn_status polyval_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *p = x->in[0], *at = x->in[1];
    const int64_t terms = tn_tensor_count(p), count = tn_tensor_count(at);
    const bool whole = is_whole(p);
    number tile[TNCPU_TILE], sum[TNCPU_TILE], c;

    (void)plan, (void)err;
    for (int64_t i = 0, n; i < count; i += n) {
        n = tncpu_min(TNCPU_TILE, count - i);
        numbers_load(at, whole, i, 1, n, tile);
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (int64_t k = 0; k < terms; k++) {
            numbers_load(p, whole, k, 1, 1, &c);
            for (int64_t j = 0; j < n; j++)
                if (whole)
                    sum[j].i = (int64_t)((uint64_t)sum[j].i * (uint64_t)tile[j].i + (uint64_t)c.i);
                else
                    sum[j].f = sum[j].f * tile[j].f + c.f;
        }
        numbers_store(x->out[0], whole, i, 1, n, sum);
    }
    return TN_OK;
}

static tn_status backward_polyval_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t terms = tn_tensor_count(node->in[1]);

    (void)plugin, (void)err;
    tncpu_plan_tasks(node, plan, 50 + 4.0 * (double)terms * (double)tn_tensor_count(node->in[2]), 1);
    tncpu_plan_workspace(plan, (uint64_t)(2 * terms + 1) * sizeof(double));
    return TN_OK;
}

/* in: dy, p, x. dp is the sum of dy times each power, dx is dy times the derivative. */
static tn_status backward_polyval_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t terms = tn_tensor_count(x->in[1]), count = tn_tensor_count(x->in[2]);
    double *p = x->workspace, *dp = p + terms;

    (void)plan, (void)err;
    tncpu_numbers(x->in[1], 0, 1, terms, p);
    memset(dp, 0, (size_t)terms * sizeof *dp);
    for (int64_t i = 0; i < count; i++) {
        const double v = tncpu_number(x->in[2], i), dy = tncpu_number(x->in[0], i);
        double power = dy, slope = 0;

        for (int64_t k = terms; k-- > 0; power *= v)
            dp[k] += power;
        for (int64_t k = 0; k + 1 < terms; k++)
            slope = slope * v + p[k] * (double)(terms - 1 - k);
        slope *= dy;
        if (x->modes[1])
            tncpu_numbers_store(x->out[1], i, 1, 1, &slope);
    }
    if (x->modes[0])
        tncpu_numbers_store(x->out[0], 0, 1, terms, dp);
    return TN_OK;
}

const tn_kernel *const tncpu_family_scan[] = {
    TNCPU_ROW("_np_cumsum", tncpu_most, 0, cumsum_prepare, cumsum_run),
    TNCPU_ROW("_npi_diff", tncpu_most, 0, diff_prepare, diff_run),
    TNCPU_ROW("_backward__npi_diff", tncpu_floats, TN_KERNEL_EMPTY_OK, diff_prepare, backward_diff_run),
    TNCPU_ROW("_npi_ediff1d", tncpu_most, 0, tiles_prepare, ediff1d_run),
    TNCPU_ROW("_backward__npi_ediff1d", tncpu_floats, TN_KERNEL_EMPTY_OK, tiles_prepare,
              backward_ediff1d_run),
    TNCPU_ROW("_npi_polyval", tncpu_numeric, 0, tiles_prepare, polyval_run),
    TNCPU_ROW("_backward__npi_polyval", tncpu_floats, TN_KERNEL_EMPTY_OK, backward_polyval_prepare,
              backward_polyval_run),
    NULL,
};
