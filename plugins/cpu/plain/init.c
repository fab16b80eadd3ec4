/*
 * Arrays out of nothing, for every data type: values are made as doubles and converted, a part at a time.
 */
#include <math.h>

#include "convert.h"
#include "plain.h"
#include "tenon/plugin/op/init.h"

#define PART 512 /* elements made at a time */

static tn_status make_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plugin, (void)err;
    tncpu_plan_work(node, plan, 20 + (double)tn_tensor_count(node->out[0]));
    plan->threads = 1;
    plan->flags &= ~TN_PLAN_PARALLEL;
    return TN_OK;
}

static tn_status fill_with(const tn_exec *x, double value)
{
    const tn_tensor *y = x->out[0];
    const uint64_t size = tn_dtype_bytes(y->dtype);
    const int64_t count = tn_tensor_count(y);
    double values[PART];

    for (int64_t i = 0; i < PART; i++)
        values[i] = value;
    if (value == 0 && !signbit(value))
        memset(y->data, 0, (size_t)count * size);
    else
        for (int64_t i = 0; i < count; i += PART)
            tncpu_converts[y->dtype].store_f(values, (char *)y->data + (uint64_t)i * size, 1,
                                             count - i < PART ? count - i : PART);
    return TN_OK;
}

static tn_status zeros_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    return fill_with(x, 0);
}

static tn_status ones_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    return fill_with(x, 1);
}

static tn_status full_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    (void)plan, (void)err;
    return fill_with(x, tn_value_float(x->attrs[TN_full_value]));
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
        tncpu_converts[y->dtype].store_f(values, (char *)y->data + (uint64_t)i * tn_dtype_bytes(y->dtype), 1,
                                         n);
    }
    return TN_OK;
}

static tn_status eye_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tn_tensor *y = x->out[0];
    const int64_t k = tn_value_int(x->attrs[TN_eye_k]), rows = y->shape[0], columns = y->shape[1];
    const uint64_t size = tn_dtype_bytes(y->dtype);
    const double one = 1;

    (void)plan, (void)err;
    memset(y->data, 0, (size_t)(rows * columns) * size);
    if (k >= columns || k <= -rows)
        return TN_OK;
    for (int64_t i = k < 0 ? -k : 0; i < rows && i + k < columns; i++)
        tncpu_converts[y->dtype].store_f(&one, (char *)y->data + (uint64_t)(i * columns + i + k) * size, 1,
                                         1);
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
