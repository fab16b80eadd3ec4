/* Differences, polynomials and histograms: kernels/scan.cu. */
#include "tenon/plugin/op/scan.h"
#include "../common/move.h"
#include "launch.h"
#include "tenon/plugin/op/statistics.h"

static bool is_whole(const tn_tensor *t)
{
    return !tncuda_is_float(t->dtype);
}

/* ---- diff ---------------------------------------------------------------------------------------------- */

/* Two places for all numbers of the longer side. */
static tn_status diff_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);
    const int64_t a = tn_tensor_count(node->in[0]), b = tn_tensor_count(node->out[0]);

    plan->workspace_bytes = 2 * (uint64_t)((a > b ? a : b) + 1) * sizeof(int64_t);
    return st;
}

/* n differences, or (`back`) as many transposed steps; `wide`: the longer side. */
static tn_status diff(const tn_plan *plan, const tn_exec *x, const tn_tensor *wide, bool back, tn_err *err)
{
    const int32_t axis = tnb_axis(tn_value_int(x->attrs[TN_npi_diff_axis]), wide->ndim);
    const int64_t n = tn_value_int(x->attrs[TN_npi_diff_n]);
    tncuda_call_args a = {.n = {is_whole(wide), 0, back}};
    tn_status st;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_rows(wide, axis, axis + 1, &a);
    if (n >= a.size) /* there are no differences */
        return back ? tnb_move_zero(plan, x, x->out[0], err) : TN_OK;
    tncuda_call_arrays(x, 1, 1, &a);
    a.n[1] = back ? a.size - n : a.size;
    a.count = a.outer * a.inner * a.n[1];
    a.out[1].data = x->workspace;
    a.in[1].data = (int64_t *)x->workspace + a.outer * a.size * a.inner;
    st = tncuda_launch(x, "scan", "scan_load", a.count, &a, err);
    for (int64_t k = 0; k < n && !st; k++) {
        void *next = a.in[1].data;

        a.in[1].data = a.out[1].data;
        a.out[1].data = next;
        a.n[1] += back ? 1 : -1;
        a.count = a.outer * a.inner * a.n[1];
        st = tncuda_launch(x, "scan", "scan_diff", a.count, &a, err);
    }
    a.in[1].data = a.out[1].data;
    return st ? st : tncuda_launch(x, "scan", "scan_store", a.count, &a, err);
}

static tn_status diff_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return diff(plan, x, x->in[0], false, err);
}

/* in: dy, a */
static tn_status diff_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    return diff(plan, x, x->out[0], true, err);
}

/* ---- ediff1d ------------------------------------------------------------------------------------------- */

/* Elements of one dense array into another of the same type. */
static tn_status part_copy(const tn_plan *plan, const tn_exec *x, const tn_tensor *from, int64_t first,
                           const tn_tensor *to, int64_t at, int64_t count, tn_err *err)
{
    const int64_t bytes = (int64_t)tn_dtype_bytes(to->dtype);
    tnb_move m;

    tnb_move_begin(&m, to->dtype);
    tnb_move_add(&m, count, 1, 1);
    return tnb_move_run(plan, x, &m, (const char *)from->data + first * bytes, (char *)to->data + at * bytes,
                        err);
}

/* A copy of input `k`, if there is one, or a number, from `*at` on, which moves. */
static tn_status ediff_end(const tn_plan *plan, const tn_exec *x, uint32_t given, uint32_t scalar, uint32_t k,
                           int64_t *at, tn_err *err)
{
    const double *value = (const double *)tn_value_pointer(x->attrs[scalar]);
    tncuda_call_args a = {.n = {0, *at}, .f = {value ? *value : 0}};
    const int64_t begin = *at;

    if (tn_value_int(x->attrs[given])) {
        *at += tn_tensor_count(x->in[k]);
        return part_copy(plan, x, x->in[k], 0, x->out[0], begin, *at - begin, err);
    }
    if (!value)
        return TN_OK;
    (*at)++;
    tncuda_call_arrays(x, 0, 1, &a);
    return tncuda_launch(x, "scan", "scan_number_at", 1, &a, err);
}

static tn_status ediff_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool begins = tn_value_int(x->attrs[TN_npi_ediff1d_to_begin_arr_given]) != 0;
    tncuda_call_args a = {.count = tn_tensor_count(x->in[0]) - 1, .n = {is_whole(x->in[0])}};
    int64_t at = 0;
    tn_status st;

    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    if ((st = ediff_end(plan, x, TN_npi_ediff1d_to_begin_arr_given, TN_npi_ediff1d_to_begin_scalar, 1, &at,
                        err)))
        return st;
    a.n[1] = at;
    at += a.count > 0 ? a.count : 0;
    tncuda_call_arrays(x, 1, 1, &a);
    st = tncuda_launch(x, "scan", "scan_ediff", a.count, &a, err);
    return st ? st
              : ediff_end(plan, x, TN_npi_ediff1d_to_end_arr_given, TN_npi_ediff1d_to_end_scalar, 1 + begins,
                          &at, err);
}

/* in: dy, input1 and the others that there are */
static tn_status ediff_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool begins = tn_value_int(x->attrs[TN_npi_ediff1d_to_begin_arr_given]) != 0,
               ends = tn_value_int(x->attrs[TN_npi_ediff1d_to_end_arr_given]) != 0;
    const int64_t first = begins ? tn_tensor_count(x->out[1])
                                 : tn_value_pointer(x->attrs[TN_npi_ediff1d_to_begin_scalar]) != NULL;
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]), .n = {0, first}};
    tn_status st = TN_OK;

    tncuda_call_arrays(x, 1, 1, &a);
    if (x->modes[0] != TN_MODE_NONE)
        st = tncuda_launch(x, "scan", "scan_ediff_back", a.count, &a, err);
    if (!st && begins && x->modes[1] != TN_MODE_NONE)
        st = part_copy(plan, x, x->in[0], 0, x->out[1], 0, first, err);
    if (!st && ends && x->modes[1 + begins] != TN_MODE_NONE)
        st = part_copy(plan, x, x->in[0], first + (a.count > 0 ? a.count - 1 : 0), x->out[1 + begins], 0,
                       tn_tensor_count(x->out[1 + begins]), err);
    return st;
}

/* ---- polyval ------------------------------------------------------------------------------------------- */

static tn_status polyval_back_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    plan->workspace_bytes = (uint64_t)(tn_tensor_count(node->in[2]) + 1) * sizeof(double);
    return st;
}

static tn_status polyval_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {
        .count = tn_tensor_count(x->in[1]), .size = tn_tensor_count(x->in[0]), .n = {is_whole(x->in[0])}};

    (void)plan;
    if (x->modes[0] == TN_MODE_NONE)
        return TN_OK;
    tncuda_call_arrays(x, 2, 1, &a);
    return tncuda_launch(x, "scan", "scan_polyval", a.count, &a, err);
}

/* in: dy, p, x */
static tn_status polyval_back_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tncuda_call_args a = {.count = tn_tensor_count(x->in[2]), .size = tn_tensor_count(x->in[1])};
    tn_status st = TN_OK;

    (void)plan;
    tncuda_call_arrays(x, 3, 2, &a);
    if (x->modes[1] != TN_MODE_NONE)
        st = tncuda_launch(x, "scan", "scan_polyval_dx", a.count, &a, err);
    if (st || x->modes[0] == TN_MODE_NONE)
        return st;
    return tncuda_launch_blocks(x, "scan", "scan_polyval_dp", 1, &a, err);
}

/* ---- histogram ----------------------------------------------------------------------------------------- */

static tn_status histogram_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tn_status st = tncuda_state(plugin, node, plan, 0, err);

    plan->workspace_bytes = 2 * TNCUDA_ENTRY_BYTES * (uint64_t)(tn_tensor_count(node->in[0]) + 1);
    return st;
}

static tn_status histogram_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const bool wanted = tn_value_pointer(x->attrs[TN_histogram_bin_cnt]) != NULL;
    tncuda_call_args a = {.count = tn_tensor_count(x->in[0]), .size = tn_tensor_count(x->in[0])};
    void *spare;
    tn_status st;

    (void)plan;
    if (wanted)
        (void)tncuda_call_numbers(x->attrs, TN_histogram_range, 0, &a);
    tncuda_call_arrays(x, wanted ? 1 : 2, 2, &a);
    a.n[1] = x->out[0]->shape[0];
    spare = (char *)a.room + (uint64_t)a.count * TNCUDA_ENTRY_BYTES;
    if ((st = tncuda_launch(x, "scan", "scan_bins", a.count, &a, err)) ||
        (st = tncuda_order_merge(x, a.count, a.size, &a.room, &spare, err)))
        return st;
    a.count = a.n[1] + 1;
    return tncuda_launch(x, "scan", "scan_counts", a.count, &a, err);
}

static const char *const all[] = {"*:" TNCUDA_ALL, NULL};
static const char *const numbers[] = {"*:" TNCUDA_NUMBERS, NULL};
static const char *const most[] = {"*:" TNCUDA_MOST, NULL};
static const char *const floats[] = {"*:" TNCUDA_FLOATS, NULL};

const tn_kernel *const tncuda_family_scan[] = {
    TNCUDA_ROW("_npi_diff", most, 0, diff_prepare, diff_run),
    TNCUDA_ROW("_backward__npi_diff", floats, TN_KERNEL_EMPTY_OK, diff_prepare, diff_back_run),
    TNCUDA_ROW("_npi_ediff1d", most, 0, tncuda_plain_prepare, ediff_run),
    TNCUDA_ROW("_backward__npi_ediff1d", floats, TN_KERNEL_EMPTY_OK, tncuda_plain_prepare, ediff_back_run),
    TNCUDA_ROW("_npi_polyval", numbers, 0, tncuda_plain_prepare, polyval_run),
    TNCUDA_ROW("_backward__npi_polyval", floats, TN_KERNEL_EMPTY_OK, polyval_back_prepare, polyval_back_run),
    TNCUDA_ROW("_histogram", all, TN_KERNEL_EMPTY_OK, histogram_prepare, histogram_run),
    NULL,
};
