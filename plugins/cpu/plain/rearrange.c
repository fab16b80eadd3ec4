/* ../../common/rearrange.inc; roll, tril and their gradients. */
#include "convert.h"
#include "move.h"

#define ALL_TYPES TNCPU_ALL
#include "../../common/rearrange.inc"

TNCPU_PREPARE(move_prepare,
              tncpu_move_plan(node, plan, tn_tensor_count(node->in[0]) + tn_tensor_count(node->out[0])))

/* ---- roll --------------------------------------------------------------------------------------- */

typedef struct roll {
    int32_t ndim;
    int64_t shape[TN_NDIM_MAX], shift[TN_NDIM_MAX]; /* shift: 0 … shape-1 */
} roll;

static roll roll_of(const tn_exec *x, bool back)
{
    const tn_value shift = x->attrs[TN_np_roll_shift], axis = x->attrs[TN_np_roll_axis];
    const int64_t shifts = tncpu_tuple_count(shift);
    const bool flat = !tn_value_pointer(axis);
    roll r = {.ndim = flat ? 1 : x->in[0]->ndim};

    for (int32_t d = 0; d < r.ndim; d++)
        r.shape[d] = flat ? tn_tensor_count(x->in[0]) : x->in[0]->shape[d];
    for (int64_t k = 0; k < (flat ? 1 : tncpu_tuple_count(axis)); k++) {
        const int32_t d = flat ? 0 : tncpu_axis(tncpu_tuple_item(axis, k, 0), r.ndim);
        const int64_t size = r.shape[d], by = tncpu_tuple_item(shift, shifts > 1 ? k : 0, 0) % size;

        r.shift[d] = (r.shift[d] + (back ? size - by : size + by)) % size;
    }
    return r;
}

/* Each row is two runs; a row's place follows from its indices. */
static void roll_run(const tn_exec *x, bool back)
{
    const int64_t bytes = (int64_t)tn_dtype_bytes(x->in[0]->dtype);
    const char *from = x->in[0]->data;
    roll r;

    if (tn_tensor_count(x->in[0]) == 0)
        return;
    r = roll_of(x, back);
    if (r.ndim == 0) {
        memcpy(x->out[0]->data, from, (size_t)bytes);
        return;
    }
    const int64_t row = r.shape[r.ndim - 1], shift = r.shift[r.ndim - 1];

    for (int64_t k = 0; k < tn_tensor_count(x->in[0]) / row; k++) {
        int64_t rest = k, to = 0, step = 1;

        for (int32_t d = r.ndim - 1; d-- > 0; rest /= r.shape[d], step *= r.shape[d])
            to += (rest % r.shape[d] + r.shift[d]) % r.shape[d] * step;
        memcpy((char *)x->out[0]->data + (to * row + shift) * bytes, from + k * row * bytes,
               (size_t)((row - shift) * bytes));
        memcpy((char *)x->out[0]->data + to * row * bytes, from + (k * row + row - shift) * bytes,
               (size_t)(shift * bytes));
    }
}

TNCPU_RUN(roll_forward, roll_run(x, false))
TNCPU_RUN(roll_backward, roll_run(x, true))

/* ---- tril --------------------------------------------------------------------------------------- */

/* Elements of row `r` that stay. */
static int64_t kept(int64_t r, int64_t k, int64_t columns)
{
    return tncpu_max(0, tncpu_min(columns, r + k + 1));
}

static tn_status tril_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *in = x->in[0], *out = x->out[0];
    const int64_t bytes = (int64_t)tn_dtype_bytes(in->dtype), k = tn_value_int(x->attrs[TN_npi_tril_k]);
    const int64_t rows = out->shape[out->ndim - 2], columns = out->shape[out->ndim - 1];
    const int64_t all = tn_tensor_count(out) ? tn_tensor_count(out) / columns : 0;

    (void)plan, (void)err;
    for (int64_t r = 0; r < all; r++) {
        const size_t size = (size_t)(kept(r % rows, k, columns) * bytes);
        char *to = (char *)out->data + r * columns * bytes;

        memcpy(to, (const char *)in->data + (in->ndim == 1 ? 0 : r * columns * bytes), size);
        memset(to + size, 0, (size_t)(columns * bytes) - size);
    }
    return TN_OK;
}

/* in: dy, data. Of a vector: the sums of columns. */
static tn_status backward_tril_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *dy = x->in[0], *dx = x->out[0];
    const int64_t k = tn_value_int(x->attrs[TN_npi_tril_k]), n = dx->ndim == 1 ? dx->shape[0] : 0;

    if (dx->ndim > 1)
        return tril_run(plan, x, err);
    for (int64_t c = 0; c < n; c++) {
        double sum = 0;

        for (int64_t r = tncpu_max(0, c - k); r < n; r++)
            sum += tncpu_number(dy, r * n + c);
        tncpu_numbers_store(dx, c, 1, 1, &sum);
    }
    return TN_OK;
}

const tn_kernel *const tncpu_family_rearrange[] = {
    REARRANGE_ROWS(TNCPU_ROW),
    TNCPU_ROW("_np_roll", turn_types, 0, move_prepare, roll_forward),
    TNCPU_ROW("_backward__np_roll", turn_back_types, 0, move_prepare, roll_backward),
    TNCPU_ROW("_npi_tril", turn_types, 0, move_prepare, tril_run),
    TNCPU_ROW("_backward__npi_tril", turn_back_types, 0, move_prepare, backward_tril_run),
    NULL,
};
