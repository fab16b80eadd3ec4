/*
 * Arrays out of nothing, for every data type: values are made as doubles and converted, a part at a time.
 */
#include <math.h>

#include "convert.h"
#include "tenon/plugin/op/init.h"

#define PART 512 /* elements made at a time */

TNCPU_PREPARE(make_prepare, tncpu_plan_tasks(node, plan, 20 + (double)tn_tensor_count(node->out[0]), 1))

TNCPU_RUN(zeros_run, tncpu_fill(x->out[0], 0))
TNCPU_RUN(ones_run, tncpu_fill(x->out[0], 1))
TNCPU_RUN(full_run, tncpu_fill(x->out[0], tn_value_float(x->attrs[TN_full_value])))
TNCPU_RUN(set_value_run, tncpu_fill(x->out[0], tn_value_float(x->attrs[TN_set_value_src])))

/* Element number `i` of an array. */
typedef double element_of(const tn_exec *x, int64_t i);

static void elements_make(const tn_exec *x, element_of *element)
{
    const int64_t count = tn_tensor_count(x->out[0]);
    double values[PART];

    for (int64_t i = 0; i < count; i += PART) {
        const int64_t n = count - i < PART ? count - i : PART;

        for (int64_t k = 0; k < n; k++)
            values[k] = element(x, i + k);
        tncpu_numbers_store(x->out[0], i, 1, n, values);
    }
}

static double arange_element(const tn_exec *x, int64_t i)
{
    const int from_zero =
        !tn_value_pointer(x->attrs[TN_arange_stop]) && !tn_value_int(x->attrs[TN_arange_infer_range]);

    return (from_zero ? 0 : tn_value_float(x->attrs[TN_arange_start])) +
           (double)(i / tn_value_int(x->attrs[TN_arange_repeat])) * tn_value_float(x->attrs[TN_arange_step]);
}

static double arange_like_element(const tn_exec *x, int64_t i)
{
    return tn_value_float(x->attrs[TN_arange_like_start]) +
           (double)(i / tn_value_int(x->attrs[TN_arange_like_repeat])) *
               tn_value_float(x->attrs[TN_arange_like_step]);
}

static double linspace_element(const tn_exec *x, int64_t i)
{
    const double start = tn_value_float(x->attrs[TN_linspace_start]),
                 stop = tn_value_float(x->attrs[TN_linspace_stop]);
    const int64_t num = tn_value_int(x->attrs[TN_linspace_num]),
                  steps = tn_value_int(x->attrs[TN_linspace_endpoint]) ? num - 1 : num;

    return steps > 0 ? start + (double)i * ((stop - start) / (double)steps) : start;
}

static double logspace_element(const tn_exec *x, int64_t i)
{
    return pow(tn_value_float(x->attrs[TN_npi_logspace_base]), linspace_element(x, i));
}

/* a - b cos(t) + c cos(2 t), where t runs from 0 to 2 pi. */
static double window_element(const tn_exec *x, int64_t i, double a, double b, double c)
{
    const int64_t count = x->out[0]->shape[0];
    const double t = 6.283185307179586 * (double)i / (double)(count - 1);

    return count == 1 ? 1 : a - b * cos(t) + c * cos(2 * t);
}

#define WINDOW(name, a, b, c)                                                                                \
    static double name##_element(const tn_exec *x, int64_t i)                                                \
    {                                                                                                        \
        return window_element(x, i, a, b, c);                                                                \
    }
WINDOW(hamming, 0.54, 0.46, 0)
WINDOW(hanning, 0.5, 0.5, 0)
WINDOW(blackman, 0.42, 0.5, 0.08)

/* Axis k of point p, where i = k · points + p. */
static double indices_element(const tn_exec *x, int64_t i)
{
    const tn_tensor *y = x->out[0];
    const int64_t points = tn_tensor_count(y) / y->shape[0], axis = i / points;

    return (double)(i % points / tncpu_dims(y, (int32_t)axis + 2, y->ndim) % y->shape[axis + 1]);
}

static double diag_indices_element(const tn_exec *x, int64_t i)
{
    return (double)(i % x->out[0]->shape[1]);
}

/* The last axis has the indices of the element that the others choose. */
static double index_array_element(const tn_exec *x, int64_t i)
{
    const tn_tensor *data = x->in[0];
    const tn_value axes = x->attrs[TN_index_array_axes];
    const int64_t count = x->out[0]->shape[x->out[0]->ndim - 1], at = i / count;
    const int32_t axis = tncpu_axis(tncpu_tuple_item(axes, i % count, i % count), data->ndim);

    return (double)(at / tncpu_dims(data, axis + 1, data->ndim) % data->shape[axis]);
}

#define ELEMENTS(name) TNCPU_RUN(name##_run, elements_make(x, name##_element))
ELEMENTS(arange)
ELEMENTS(arange_like)
ELEMENTS(linspace)
ELEMENTS(logspace)
ELEMENTS(hamming)
ELEMENTS(hanning)
ELEMENTS(blackman)
ELEMENTS(indices)
ELEMENTS(diag_indices)
ELEMENTS(index_array)

static void diagonal_fill(const tn_tensor *y, int64_t k)
{
    const int64_t rows = y->shape[0], columns = y->shape[1];
    const double one = 1;

    tncpu_fill(y, 0);
    if (k >= columns || k <= -rows)
        return;
    for (int64_t i = k < 0 ? -k : 0; i < rows && i + k < columns; i++)
        tncpu_numbers_store(y, i * columns + i + k, 1, 1, &one);
}

_Static_assert((int)TN_eye_k == TN_npi_eye_k, "_eye and _npi_eye have k at the same place");

TNCPU_RUN(eye_run, diagonal_fill(x->out[0], tn_value_int(x->attrs[TN_eye_k])))
TNCPU_RUN(identity_run, diagonal_fill(x->out[0], 0))

#include "../../common/make_rows.inc"

#define MAKE(op, run) TNCPU_ROW(op, tncpu_all, 0, make_prepare, run)

const tn_kernel *const tncpu_family_init[] = {
    MAKE_ROWS(MAKE),
    NULL,
};
