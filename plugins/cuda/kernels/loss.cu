/* Gradients of loss layers, and softmax_cross_entropy: plugins/cpu/plain/loss.c has the formulas. */
#include "block.h"

#define ROOM ((double *)call->room)

/* room[0] = f[0] over how many elements of in[0] count, at least 1: those other than f[1], or above it. */
TNCUDA_KERNEL(loss_valid, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    double valid = 0;

    for (int64_t i = TNCUDA_THREAD; i < call->count; i += TNCUDA_BLOCK_THREADS) {
        const double v = NUMBER_IN(0, i);

        valid += call->n[0] ? v > call->f[1] : v != call->f[1];
    }
    valid = block_sum(part, valid);
    if (TNCUDA_THREAD == 0)
        ROOM[0] = call->f[0] / (valid > 0 ? valid : 1);
}

/* in: label, y (outer, size, inner). n: labels are probabilities, one label is ignored, the scale is in the
 * room; f: scale, ignored label, alpha. */
TNCUDA_KERNEL(loss_softmax, FREE, tncuda_call_args)
{
    const double scale = call->n[2] ? ROOM[0] : call->f[0];
    const double rest = call->size > 1 ? call->f[2] / (double)(call->size - 1) : 0;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t row = i / call->inner / call->size * call->inner + i % call->inner,
                      k = i / call->inner % call->size;
        const double label = NUMBER_IN(0, call->n[0] ? i : row), y = NUMBER_IN(1, i);

        if (call->n[0])
            NUMBER_OUT(0, i, (y - label) * scale);
        else if (call->n[1] && label == call->f[1])
            NUMBER_OUT(0, i, 0.0);
        else
            NUMBER_OUT(0, i, (y - ((double)k == trunc(label) ? 1 - call->f[2] : rest)) * scale);
    }
}

TNCUDA_KERNEL(loss_fill, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i, ROOM[0]);
}

TNCUDA_INLINE double entropy_top(const tncuda_array *data, int64_t first, int64_t size)
{
    double top = -INFINITY;

    for (int64_t k = 0; k < size; k++) {
        const double v = element_number(data->data, data->dtype, first + k);

        top = v > top ? v : top;
    }
    return top;
}

TNCUDA_INLINE double entropy_sum(const tncuda_array *data, int64_t first, int64_t size, double top)
{
    double sum = 0;

    for (int64_t k = 0; k < size; k++)
        sum += exp(element_number(data->data, data->dtype, first + k) - top);
    return sum;
}

/* in: data (outer, size), label; the sum of all rows' losses, by one block. */
TNCUDA_KERNEL(loss_entropy, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    double loss = 0;

    for (int64_t n = TNCUDA_THREAD; n < call->outer; n += TNCUDA_BLOCK_THREADS) {
        const double at = trunc(NUMBER_IN(1, n)), top = entropy_top(&call->in[0], n * call->size, call->size);
        const double sum = entropy_sum(&call->in[0], n * call->size, call->size, top);
        const double p = at >= 0 && at < (double)call->size
                             ? exp(NUMBER_IN(0, n * call->size + (int64_t)at) - top) / sum
                             : 0;

        loss -= log(p > 1e-8 ? p : 1e-8);
    }
    loss = block_sum(part, loss);
    if (TNCUDA_THREAD == 0)
        NUMBER_OUT(0, 0, loss);
}

/* in: dy, data, label; a thread for each row */
TNCUDA_KERNEL(loss_entropy_back, FREE, tncuda_call_args)
{
    for (int64_t n = TNCUDA_FIRST; n < call->outer; n += TNCUDA_STEP) {
        const int64_t first = n * call->size;
        const double at = trunc(NUMBER_IN(2, n)), top = entropy_top(&call->in[1], first, call->size);
        const double sum = entropy_sum(&call->in[1], first, call->size, top);

        for (int64_t k = 0; k < call->size; k++)
            NUMBER_OUT(0, first + k,
                       (exp(NUMBER_IN(1, first + k) - top) / sum - ((double)k == at)) * NUMBER_IN(0, 0));
    }
}
