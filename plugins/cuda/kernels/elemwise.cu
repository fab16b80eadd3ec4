/* Sums of many arrays; choices by condition; arrays out of nothing. */
#include "element.h"

/* ((a + b) + c) + … for each element, then what is there. */
#define SUM_MANY(suffix, T, LOAD, STORE, PLUS)                                                               \
    TNCUDA_KERNEL(GLUE(sum_many_, suffix), FREE, tncuda_many_args)                                           \
    {                                                                                                        \
        for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {                                  \
            T sum = LOAD(call->in[0], call->dtype, i);                                                       \
                                                                                                             \
            for (int32_t k = 1; k < call->many; k++)                                                         \
                sum = PLUS(sum, LOAD(call->in[k], call->dtype, i));                                          \
            if (call->add)                                                                                   \
                sum = PLUS(LOAD(call->to, call->dtype, i), sum);                                             \
            STORE(call->to, call->dtype, i, sum);                                                            \
        }                                                                                                    \
    }
#define FLOAT_PLUS(a, b) ((a) + (b))
#define WHOLE_PLUS(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
SUM_MANY(f32, float, element_f32, element_set_f32, FLOAT_PLUS)
SUM_MANY(f64, double, element_f64, element_set_f64, FLOAT_PLUS)
SUM_MANY(whole, int64_t, element_whole, element_set_whole, WHOLE_PLUS)

/* in: condition, where it is not 0, where it is; NULL: zeros. n: bytes of an element; how many elements share
 * one of the condition. */
TNCUDA_KERNEL(choose, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int32_t yes = element_truth(call->in[0].data, call->in[0].dtype, i / call->n[1]);
        const void *from = call->in[yes ? 1 : 2].data;

        if (from)
            element_move(call->out[0].data, i, from, i, call->n[0]);
        else
            element_zero(call->out[0].data, i, call->n[0]);
    }
}

/* f[0] + f[1] (i / n[0]); as an exponent of f[2], where n[1] is 1. */
TNCUDA_KERNEL(steps, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double v = call->f[0] + (double)(i / call->n[0]) * call->f[1];

        NUMBER_OUT(0, i, call->n[1] ? pow(call->f[2], v) : v);
    }
}

/* f[0] - f[1] cos(t) + f[2] cos(2 t), where t runs from 0 to 2 pi. */
TNCUDA_KERNEL(cosines, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double t = 6.283185307179586 * (double)i / (double)(call->count - 1);

        NUMBER_OUT(0, i, call->count == 1 ? 1 : call->f[0] - call->f[1] * cos(t) + call->f[2] * cos(2 * t));
    }
}

/* Element i is coordinate `axis` of a point: point / n[2 axis] mod n[2 axis + 1]. `size` points for one axis
 * after the other; where `inner` is not 0, all axes of one point first, inner of them. */
TNCUDA_KERNEL(coordinates, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t axis = call->inner ? i % call->inner : i / call->size,
                      point = call->inner ? i / call->inner : i % call->size;

        NUMBER_OUT(0, i, (double)(point / call->n[2 * axis] % call->n[2 * axis + 1]));
    }
}

/* 1 on diagonal n[0] of rows of `size`. */
TNCUDA_KERNEL(diagonal, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i, i % call->size - i / call->size == call->n[0] ? 1.0 : 0.0);
}

/* in: condition, where it is not 0, where it is; each broadcasts. Without data: the numbers s and s2. */
TNCUDA_KERNEL(choose_stretched, FREE, tncuda_point_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t at = tnb_offset(call->ndim, call->shape, call->in[0].stride, i);
        const int32_t k = element_truth(call->in[0].data, call->in[0].dtype, at) ? 1 : 2;

        if (call->in[k].data)
            element_convert(call->out.data, call->out.dtype, i, call->in[k].data, call->in[k].dtype,
                            tnb_offset(call->ndim, call->shape, call->in[k].stride, i));
        else
            element_set_number(call->out.data, call->out.dtype, i, k == 1 ? call->s : call->s2);
    }
}

/* f: in the place of NaN, infinity, -infinity. */
TNCUDA_KERNEL(nan_to_num, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double v = NUMBER_IN(0, i);

        NUMBER_OUT(0, i, v != v ? call->f[0] : !isinf(v) ? v : v > 0 ? call->f[1] : call->f[2]);
    }
}
