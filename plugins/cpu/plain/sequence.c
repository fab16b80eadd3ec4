/*
 * Rows of sequences: what one step of one sequence holds. Each row of the output is a row of the input or a
 * constant, as the sequence's length says; threads take rows.
 */
#include "convert.h"
#include "index.h"

#include "tenon/plugin/op/sequence.h"

#define TILE 256 /* elements of a constant */

enum { MASK, REVERSE, LAST, LAST_BACK };

typedef struct rows {
    int64_t steps, sequences, bytes; /* bytes: of a row */
    bool steps_first;
} rows;

static char *row_at(const rows *r, const void *data, int64_t step, int64_t sequence)
{
    const int64_t row = r->steps_first ? step * r->sequences + sequence : sequence * r->steps + step;

    return (char *)(uintptr_t)data + row * r->bytes;
}

/* The input's step that becomes `step` of the output; -1: none. `length` is 0 … steps. */
static int64_t source(int kind, int64_t step, int64_t length)
{
    const int64_t last = length > 0 ? length - 1 : 0;

    switch (kind) {
    case MASK:
        return step < length ? step : -1;
    case REVERSE:
        return step < length ? length - 1 - step : step;
    case LAST:
        return last;
    default:
        return step == last ? 0 : -1;
    }
}

static void fill(char *to, int64_t bytes, const char *tile, int64_t tile_bytes)
{
    for (int64_t b = 0; b < bytes; b += tile_bytes)
        memcpy(to + b, tile, (size_t)tncpu_min(tile_bytes, bytes - b));
}

/* `lengths` NULL: all steps of every sequence. */
static void rows_move(const tn_plan *plan, const tn_exec *x, int kind, const tn_tensor *lengths, int64_t axis,
                      double value)
{
    const tn_tensor *all = kind == LAST_BACK ? x->out[0] : x->in[0];
    const tncpu_convert *c = &tncpu_converts[all->dtype];
    const int64_t steps = all->shape[axis], sequences = all->shape[1 - axis];
    rows from = {steps, sequences, tncpu_dims(all, 2, all->ndim) * (int64_t)c->bytes, axis == 0}, to = from;
    int64_t *length = lengths ? x->workspace : NULL;
    const int threads = tncpu_run_threads(plan, x);
    double values[TILE];
    char tile[TILE * 8];

    (void)threads;
    for (int64_t n = 0; n < TILE; n++)
        values[n] = value;
    c->store_f(values, tile, 1, TILE);
    if (length)
        tncpu_indices_load(lengths, length);
    for (int64_t n = 0; length && n < sequences; n++)
        length[n] = length[n] > steps ? steps : length[n] < 0 ? 0 : length[n];
    if (kind == LAST)
        to.steps = 1;
    if (kind == LAST_BACK)
        from.steps = 1;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t r = 0; r < to.steps * sequences; r++) {
        const int64_t n = to.steps_first ? r % sequences : r / to.steps;
        const int64_t t = to.steps_first ? r / sequences : r % to.steps;
        const int64_t s = source(kind, t, length ? length[n] : steps);

        if (s >= 0)
            memcpy(row_at(&to, x->out[0]->data, t, n), row_at(&from, x->in[0]->data, s, n), (size_t)to.bytes);
        else
            fill(row_at(&to, x->out[0]->data, t, n), to.bytes, tile, TILE * (int64_t)c->bytes);
    }
}

/* Workspace holds the lengths, input number `at`. */
static tn_status plan_rows(const tn_node *node, tn_plan *plan, uint32_t at)
{
    const int64_t count = tn_tensor_count(node->out[0]);

    tncpu_plan_tasks(node, plan, 300 + (double)count, count / 1024 + 1);
    if (node->in_count > at)
        plan->workspace_bytes = (uint64_t)(tn_tensor_count(node->in[at]) + 1) * sizeof(int64_t);
    plan->workspace_align = TNCPU_ALIGN;
    return TN_OK;
}

/* ---- SequenceMask ------------------------------------------------------------------------------------- */

static tn_status sequence_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    return plan_rows(node, plan, 1);
}

static tn_status mask_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    rows_move(plan, x, MASK, x->attrs[TN_SequenceMask_use_sequence_length] ? x->in[1] : NULL,
              tn_value_int(x->attrs[TN_SequenceMask_axis]), tn_value_float(x->attrs[TN_SequenceMask_value]));
    return TN_OK;
}

/* ---- SequenceReverse ---------------------------------------------------------------------------------- */

static tn_status reverse_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    rows_move(plan, x, REVERSE, x->attrs[TN_SequenceReverse_use_sequence_length] ? x->in[1] : NULL, 0, 0);
    return TN_OK;
}

/* ---- SequenceLast ------------------------------------------------------------------------------------- */

static tn_status last_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    rows_move(plan, x, LAST, x->attrs[TN_SequenceLast_use_sequence_length] ? x->in[1] : NULL,
              tn_value_int(x->attrs[TN_SequenceLast_axis]), 0);
    return TN_OK;
}

/* in: dy, data, sequence_length */
static tn_status backward_last_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    return plan_rows(node, plan, 2);
}

static tn_status backward_last_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)err;
    rows_move(plan, x, LAST_BACK, x->attrs[TN_SequenceLast_use_sequence_length] ? x->in[2] : NULL,
              tn_value_int(x->attrs[TN_SequenceLast_axis]), 0);
    return TN_OK;
}

static const char *const types[] = {"data:" TNCPU_ALL, "sequence_length:" TNCPU_ALL, "output:=data", NULL};
static const char *const back_types[] = {"dy:" TNCPU_ALL, "data:=dy", "sequence_length:" TNCPU_ALL,
                                         "d_data:=dy", NULL};

const tn_kernel *const tncpu_family_sequence[] = {
    TNCPU_ROW("SequenceMask", types, 0, sequence_prepare, mask_run),
    TNCPU_ROW("SequenceReverse", types, 0, sequence_prepare, reverse_run),
    TNCPU_ROW("SequenceLast", types, 0, sequence_prepare, last_run),
    TNCPU_ROW("_backward_SequenceLast", back_types, 0, backward_last_prepare, backward_last_run),
    NULL,
};
