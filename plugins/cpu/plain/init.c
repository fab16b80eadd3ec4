/*
 * Arrays out of nothing, for every data type: values are made as doubles and converted, a part at a time.
 */
#include "tenon/plugin/op/init.h"
#include "convert.h"

#define PART 512 /* elements made at a time */

static tn_status make_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_work(node, plan, 20 + (double)tn_tensor_count(node->out[0]));
    plan->threads = 1;
    plan->flags &= ~TN_PLAN_PARALLEL;
    return TN_OK;
}

static tn_status zeros_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    tncpu_fill(x->out[0], 0);
    return TN_OK;
}

static tn_status ones_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    tncpu_fill(x->out[0], 1);
    return TN_OK;
}

static tn_status full_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    tncpu_fill(x->out[0], tn_value_float(x->attrs[TN_full_value]));
    return TN_OK;
}

static tn_status arange_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    const double *stop = (const double *)tn_value_pointer(x->attrs[TN_arange_stop]);
    const int from_zero = !stop && !tn_value_int(x->attrs[TN_arange_infer_range]);
    const double start = from_zero ? 0 : tn_value_float(x->attrs[TN_arange_start]);
    const double step = tn_value_float(x->attrs[TN_arange_step]);
    const int64_t count = tn_tensor_count(y), repeat = tn_value_int(x->attrs[TN_arange_repeat]);
    double values[PART];

    (void)plan, (void)err;
    for (int64_t i = 0; i < count; i += PART) {
        const int64_t n = count - i < PART ? count - i : PART;

        for (int64_t k = 0; k < n; k++)
            values[k] = start + (double)((i + k) / repeat) * step;
        tncpu_numbers_store(y, i, 1, n, values);
    }
    return TN_OK;
}

static tn_status eye_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    const int64_t k = tn_value_int(x->attrs[TN_eye_k]), rows = y->shape[0], columns = y->shape[1];
    const double one = 1;

    (void)plan, (void)err;
    tncpu_fill(y, 0);
    if (k >= columns || k <= -rows)
        return TN_OK;
    for (int64_t i = k < 0 ? -k : 0; i < rows && i + k < columns; i++)
        tncpu_numbers_store(y, i * columns + i + k, 1, 1, &one);
    return TN_OK;
}

static const char *const all_types[] = {"*:" TNCPU_ALL, NULL};

const tn_kernel *const tncpu_family_init[] = {
    TNCPU_ROW("_zeros", all_types, 0, make_prepare, zeros_run),
    TNCPU_ROW("_ones", all_types, 0, make_prepare, ones_run),
    TNCPU_ROW("_full", all_types, 0, make_prepare, full_run),
    TNCPU_ROW("_arange", all_types, 0, make_prepare, arange_run),
    TNCPU_ROW("_eye", all_types, 0, make_prepare, eye_run),
    NULL,
};
