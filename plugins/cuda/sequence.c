/* Rows of sequences: kernels/sequence.cu. */
#include "tenon/plugin/op/sequence.h"
#include "launch.h"

#include <string.h>

/* What a family member does, where its lengths are and its attributes. */
typedef struct form {
    const char *op;
    int64_t kind;
    uint32_t lengths, use, axis; /* an input; attributes */
} form;

static const form forms[] = {
    {"SequenceMask", TNCUDA_SEQUENCE_MASK, 1, TN_SequenceMask_use_sequence_length, TN_SequenceMask_axis},
    {"SequenceReverse", TNCUDA_SEQUENCE_REVERSE, 1, TN_SequenceReverse_use_sequence_length,
     TN_SequenceReverse_axis},
    {"SequenceLast", TNCUDA_SEQUENCE_LAST, 1, TN_SequenceLast_use_sequence_length, TN_SequenceLast_axis},
    {"_backward_SequenceLast", TNCUDA_SEQUENCE_BACK, 2, TN_SequenceLast_use_sequence_length,
     TN_SequenceLast_axis},
};

static tn_status sequence_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const form *f = forms;
    const tn_status st = tncuda_state(plugin, node, plan, sizeof f, err);

    if (st)
        return st;
    while (strcmp(f->op, node->op) != 0)
        f++;
    *(const form **)plan->state = f;
    return TN_OK;
}

static tn_status sequence_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const form *f = *(const form *const *)plan->state;
    const bool back = f->kind == TNCUDA_SEQUENCE_BACK;
    const tn_tensor *all = back ? x->out[0] : x->in[0];
    const int64_t axis = tn_value_int(x->attrs[f->axis]), steps = all->shape[axis];
    tncuda_call_args a = {.count = tn_tensor_count(x->out[0]),
                          .size = all->shape[1 - axis],
                          .inner = tnb_dims(all, 2, all->ndim),
                          .n = {f->kind, (int64_t)tn_dtype_bytes(all->dtype), axis == 0, back ? 1 : steps,
                                f->kind == TNCUDA_SEQUENCE_LAST ? 1 : steps, steps}};

    if (f->kind == TNCUDA_SEQUENCE_MASK)
        a.f[0] = tn_value_float(x->attrs[TN_SequenceMask_value]);
    tncuda_call_arrays(x, 1, 1, &a);
    if (x->attrs[f->use])
        a.in[1] = (tncuda_array){x->in[f->lengths]->data, x->in[f->lengths]->dtype, 0};
    return tncuda_launch(x, "sequence", "sequence_move", a.count, &a, err);
}

static const char *const types[] = {"data:" TNCUDA_ALL, "sequence_length:" TNCUDA_ALL, "output:=data", NULL};
static const char *const back_types[] = {"dy:" TNCUDA_ALL, "data:=dy", "sequence_length:" TNCUDA_ALL,
                                         "d_data:=dy", NULL};

#define SEQUENCE(op, types) TNCUDA_ROW(op, types, 0, sequence_prepare, sequence_run)
const tn_kernel *const tncuda_family_sequence[] = {
    SEQUENCE("SequenceMask", types),
    SEQUENCE("SequenceReverse", types),
    SEQUENCE("SequenceLast", types),
    SEQUENCE("_backward_SequenceLast", back_types),
    NULL,
};
