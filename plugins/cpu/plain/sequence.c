/*
 * Rows of sequences: what one step of one sequence holds. Each row of the output is a row of the input or a
 * constant, as the sequence's length says; threads take rows.
 */
#include "index.h"
#include "rows.h"

#include "tenon/plugin/op/sequence.h"

#define TILE 256 /* elements of a constant */

enum { MASK, REVERSE, LAST, LAST_BACK };

/* Rows of input or output. */
typedef struct layout {
    int64_t steps, sequences, bytes; /* bytes: of a row */
    bool steps_first;
} layout;

static char *row_at(const layout *r, const void *data, int64_t step, int64_t sequence)
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

/* What a family member does, where its lengths are and its attributes. */
typedef struct form {
    const char *op;
    int kind;
    uint32_t lengths, use, axis; /* an input; attributes */
} form;

static const form forms[] = {
    {"SequenceMask", MASK, 1, TN_SequenceMask_use_sequence_length, TN_SequenceMask_axis},
    {"SequenceReverse", REVERSE, 1, TN_SequenceReverse_use_sequence_length, TN_SequenceReverse_axis},
    {"SequenceLast", LAST, 1, TN_SequenceLast_use_sequence_length, TN_SequenceLast_axis},
    {"_backward_SequenceLast", LAST_BACK, 2, TN_SequenceLast_use_sequence_length, TN_SequenceLast_axis},
};

typedef struct sequence_call {
    const tn_exec *x;
    const int64_t *length; /* of each sequence; NULL: all steps */
    int64_t steps;
    int kind;
    layout from, to;
    int64_t tile_bytes;
    char tile[TILE * 8]; /* of the constant */
} sequence_call;

static void sequence_row(const sequence_call *c, int64_t t, int64_t n)
{
    const int64_t s = source(c->kind, t, c->length ? c->length[n] : c->steps);
    char *to = row_at(&c->to, c->x->out[0]->data, t, n);

    if (s >= 0)
        tncpu_row_copy(to, row_at(&c->from, c->x->in[0]->data, s, n), c->to.bytes);
    else
        fill(to, c->to.bytes, c->tile, c->tile_bytes);
}

static void sequence_part(void *arg, int64_t begin, int64_t end)
{
    const sequence_call *c = arg;
    const bool steps_first = c->to.steps_first;
    const int64_t inner = steps_first ? c->to.sequences : c->to.steps;
    int64_t outer = begin / inner, i = begin % inner;

    for (int64_t row = begin; row < end; row++) {
        sequence_row(c, steps_first ? outer : i, steps_first ? i : outer);
        if (++i == inner)
            outer++, i = 0;
    }
}

/* Workspace holds the lengths. */
static tn_status sequence_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const int64_t count = tn_tensor_count(node->out[0]);
    const form *f = tncpu_form_of(forms, sizeof *forms, node->op), **state;
    tn_status st = tncpu_state(plugin, plan, sizeof *state, err);

    if (st)
        return st;
    state = plan->state;
    *state = f;
    tncpu_plan_tasks(node, plan, 300 + (double)count, count / 1024 + 1);
    if (node->in_count > f->lengths)
        plan->workspace_bytes = (uint64_t)(tn_tensor_count(node->in[f->lengths]) + 1) * sizeof(int64_t);
    plan->workspace_align = TNCPU_ALIGN;
    return TN_OK;
}

static tn_status sequence_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const form *f = *(const form *const *)plan->state;
    const tn_tensor *all = f->kind == LAST_BACK ? x->out[0] : x->in[0];
    const tncpu_convert *c = &tncpu_converts[all->dtype];
    const int64_t axis = tn_value_int(x->attrs[f->axis]), sequences = all->shape[1 - axis];
    const layout rows = {all->shape[axis], sequences, tncpu_dims(all, 2, all->ndim) * (int64_t)c->bytes,
                         axis == 0};
    sequence_call call = {.x = x, .steps = rows.steps, .kind = f->kind, .from = rows, .to = rows};
    const double value = f->kind == MASK ? tn_value_float(x->attrs[TN_SequenceMask_value]) : 0;
    const tn_tensor tile = {.data = call.tile, .shape = &(int64_t){TILE}, .ndim = 1, .dtype = all->dtype};
    int64_t *length = x->workspace;

    (void)err;
    call.tile_bytes = TILE * (int64_t)c->bytes;
    tncpu_fill(&tile, value);
    if (f->kind == LAST)
        call.to.steps = 1;
    if (f->kind == LAST_BACK)
        call.from.steps = 1;
    if (x->attrs[f->use]) {
        tncpu_indices_load(x->in[f->lengths], length);
        for (int64_t n = 0; n < sequences; n++)
            length[n] = length[n] > rows.steps ? rows.steps : length[n] < 0 ? 0 : length[n];
        call.length = length;
    }
    tncpu_for(plan, x, call.to.steps * sequences, 1, sequence_part, &call);
    return TN_OK;
}

static const char *const types[] = {"data:" TNCPU_ALL, "sequence_length:" TNCPU_ALL, "output:=data", NULL};
static const char *const back_types[] = {"dy:" TNCPU_ALL, "data:=dy", "sequence_length:" TNCPU_ALL,
                                         "d_data:=dy", NULL};

#define SEQUENCE(op, types) TNCPU_ROW(op, types, 0, sequence_prepare, sequence_run)

const tn_kernel *const tncpu_family_sequence[] = {
    SEQUENCE("SequenceMask", types),
    SEQUENCE("SequenceReverse", types),
    SEQUENCE("SequenceLast", types),
    SEQUENCE("_backward_SequenceLast", back_types),
    NULL,
};
