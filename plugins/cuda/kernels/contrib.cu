/* Small operators, in double: ../../common/contrib.h has their formulas. */
#include "../../common/contrib.h"
#include "block.h"

/* By the root of `size`; whole numbers by what is whole of it (n). */
TNCUDA_KERNEL(contrib_divide, FREE, tncuda_call_args)
{
    const double root = sqrt((double)call->size), by = call->n[0] ? floor(root) : root;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i, NUMBER_IN(0, i) / by);
}

TNCUDA_KERNEL(contrib_quadratic, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i, tnb_quadratic(NUMBER_IN(0, i), call->f[0], call->f[1], call->f[2]));
}

/* One block. f: rtol, atol; n: NaN equals NaN. */
TNCUDA_KERNEL(contrib_allclose, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    double apart = 0;

    for (int64_t i = TNCUDA_THREAD; i < call->count; i += TNCUDA_THREADS)
        apart += !tnb_is_close(NUMBER_IN(0, i), NUMBER_IN(1, i), call->f[0],
                               call->f[1], (int32_t)call->n[0]);
    apart = block_sum(part, apart);
    if (TNCUDA_THREAD == 0)
        ELEMENT_SET(uint8_t, call->out[0].data, 0, apart == 0);
}

/* in: y (…, size), label; f: margin, factor; n: linear */
TNCUDA_KERNEL(contrib_svm, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int32_t own = (double)(i % call->size) == trunc(NUMBER_IN(1, i / call->size));

        NUMBER_OUT(0, i, tnb_svm_slope(NUMBER_IN(0, i), own, call->f[0], call->f[1], (int32_t)call->n[0]));
    }
}

/* in: data (outer, size); out: output, average, moving average. A thread makes a unit. n: training; f:
 * momentum. */
TNCUDA_KERNEL(contrib_sparse_reg, FREE, tncuda_call_args)
{
    for (int64_t k = TNCUDA_FIRST; k < call->size; k += TNCUDA_STEP) {
        double average = element_number(call->out[2].data, call->out[2].dtype, k), sum = 0;

        for (int64_t i = k; i < call->outer * call->size; i += call->size) {
            sum += NUMBER_IN(0, i);
            if (call->out[0].mode)
                NUMBER_OUT(0, i, NUMBER_IN(0, i));
        }
        if (call->n[0] && call->outer) {
            average = average * call->f[0] + (1 - call->f[0]) * (sum / (double)call->outer);
            NUMBER_OUT(2, k, average);
        }
        if (call->out[1].mode)
            NUMBER_OUT(1, k, average);
    }
}

/* in: dy, average; f: target, penalty */
TNCUDA_KERNEL(contrib_sparse_reg_back, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i,
                   NUMBER_IN(0, i) + tnb_sparse_slope(NUMBER_IN(1, i % call->size), call->f[0], call->f[1]));
}

/* ---- Fourier transforms -------------------------------------------------------------------------------- */

/* room: the roots of 1, `size` complex numbers. f: sign. */
TNCUDA_KERNEL(contrib_roots, FREE, tncuda_call_args)
{
    for (int64_t k = TNCUDA_FIRST; k < call->size; k += TNCUDA_STEP) {
        const double angle = call->f[0] * 6.283185307179586476925287 * (double)k / (double)call->size;

        ((double *)call->room)[2 * k] = cos(angle);
        ((double *)call->room)[2 * k + 1] = sin(angle);
    }
}

/* Rows of `size` numbers become complex; n: they are. out[1]: double */
TNCUDA_KERNEL(contrib_complex, FREE, tncuda_call_args)
{
    double *to = (double *)call->out[1].data;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        to[2 * i] = NUMBER_IN(0, call->n[0] ? 2 * i : i);
        to[2 * i + 1] = call->n[0] ? NUMBER_IN(0, 2 * i + 1) : 0;
    }
}

/*
 * in[1] to out[1]: n: p, the transforms so far of m numbers each, m. A row holds size / m transforms,
 * number s is of the numbers s, s + size / m …; p of them become one of p · m numbers.
 */
TNCUDA_KERNEL(contrib_fft, FREE, tncuda_call_args)
{
    const double *from = (const double *)call->in[1].data, *roots = (const double *)call->room;
    double *to = (double *)call->out[1].data;
    const int64_t p = call->n[0], m = call->n[1], length = p * m, lists = call->size / length;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t row = i / call->size * call->size, s = i % call->size / length, k = i % length;
        double re = 0, im = 0;

        for (int64_t r = 0; r < p; r++) {
            const double *v = from + 2 * (row + (s + r * lists) * m + k % m),
                         *w = roots + 2 * (r * k % length * lists);

            re += v[0] * w[0] - v[1] * w[1];
            im += v[0] * w[1] + v[1] * w[0];
        }
        to[2 * i] = re;
        to[2 * i + 1] = im;
    }
}

/* Of rows of complex numbers, in[1]; n: the real parts alone. */
TNCUDA_KERNEL(contrib_plain, FREE, tncuda_call_args)
{
    const double *from = (const double *)call->in[1].data;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i, from[call->n[0] ? 2 * i : i]);
}

/* ---- index_copy: in: old or dy (rows, size), index, new ------------------------------------------------ */

/* room: for each row the last position of the index that names it, -1. n: positions */
TNCUDA_KERNEL(contrib_index_last, FREE, tncuda_call_args)
{
    for (int64_t r = TNCUDA_FIRST; r < call->count; r += TNCUDA_STEP) {
        int64_t k = call->n[0] - 1;

        while (k >= 0 && trunc(NUMBER_IN(1, k)) != (double)r)
            k--;
        ((int64_t *)call->room)[r] = k;
    }
}

/* n[1]: bytes of an element; n[2]: rows that are named become 0. */
TNCUDA_KERNEL(contrib_index_copy, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t k = ((const int64_t *)call->room)[i / call->size];

        if (k >= 0 && call->n[2])
            element_zero(call->out[0].data, i, call->n[1]);
        else
            element_move(call->out[0].data, i, call->in[k < 0 ? 0 : 2].data,
                         k < 0 ? i : k * call->size + i % call->size, call->n[1]);
    }
}

/* out[1]: the rows that are named, of `outer` ones; others are 0 */
TNCUDA_KERNEL(contrib_index_rows, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double row = trunc(NUMBER_IN(1, i / call->size));

        if (row >= 0 && row < (double)call->outer)
            element_move(call->out[1].data, i, call->in[0].data, (int64_t)row * call->size + i % call->size,
                         call->n[1]);
        else
            element_zero(call->out[1].data, i, call->n[1]);
    }
}
