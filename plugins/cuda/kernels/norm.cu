/*
 * Normalisation, in double: a block makes the sums of a channel or a row. plugins/cpu/plain/norm.c says what
 * inputs, outputs and the formulas are.
 */
#include "block.h"

/* Element k of channel c of (outer, size, inner), k counting outer and inner. */
#define CHANNEL_AT(c, k) (((k) / call->inner * call->size + (c)) * call->inner + (k) % call->inner)
/* Element k of row r of (outer, size, inner). */
#define ROW_AT(r, k) (((r) / call->inner * call->size + (k)) * call->inner + (r) % call->inner)
#define STORE(o, i, v)                                                                                       \
    do {                                                                                                     \
        if (call->out[o].mode)                                                                               \
            NUMBER_OUT(o, i, v);                                                                             \
    } while (0)

/* ---- BatchNorm: n[0] training, n[1] gamma counts as 1, n[2] relu, n[3] z; f: eps, momentum; room: scale,
 * bias, factor of each channel */

#define ROOM(k, c) (((double *)call->room)[(k)*call->size + (c)])

#define GAMMA_AT(r, k) (call->n[0] ? (r) % call->n[0] : (k))

TNCUDA_INLINE double norm_deviation(const tncuda_call_args *call, int64_t r)
{
    const double kept = NUMBER_IN(4, r);

    return call->n[1] ? sqrt(kept + call->f[0]) : kept;
}

#define BODY "norm.inc"
#include "sums.h"

/* y = x scale + bias, or with a second input z: + z factor. */
TNCUDA_KERNEL(norm_batch_map, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t c = i / call->inner % call->size;
        double y;

        if (call->out[0].dtype == ELEMENT_F64) {
            y = NUMBER_IN(0, i) * ROOM(0, c) + ROOM(1, c);
            y = call->n[3] ? y + NUMBER_IN(1, i) * ROOM(2, c) : y;
        } else {
            float v = (float)NUMBER_IN(0, i) * (float)ROOM(0, c) + (float)ROOM(1, c);

            v = call->n[3] ? v + (float)NUMBER_IN(1, i) * (float)ROOM(2, c) : v;
            y = (double)v;
        }
        NUMBER_OUT(0, i, call->n[2] && y < 0 ? 0.0 : y);
    }
}

/* ---- rows: count of them; n[0] groups, n[1] the variance is kept; f: eps */

/* dgamma and dbeta of each element, over all rows in order. */
TNCUDA_KERNEL(norm_elements, FREE, tncuda_call_args)
{
    const int64_t rows = call->outer * call->inner;

    for (int64_t i = TNCUDA_FIRST; i < call->size; i += TNCUDA_STEP) {
        double sum = 0, product = 0;

        for (int64_t r = 0; r < rows; r++) {
            const double dy = NUMBER_IN(0, ROW_AT(r, i));

            sum += dy;
            product += dy * ((NUMBER_IN(1, ROW_AT(r, i)) - NUMBER_IN(3, r)) / norm_deviation(call, r));
        }
        STORE(1, i, product);
        STORE(2, i, sum);
    }
}

/* dgamma and dbeta of each group, over its rows in order. */
TNCUDA_KERNEL(norm_groups, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);

    EACH_BLOCK(g, call->n[0])
    {
        double sum = 0, product = 0;

        for (int64_t r = g; r < (call->size ? call->outer : 0); r += call->n[0]) {
            const double mean = NUMBER_IN(3, r), dev = norm_deviation(call, r);

            EACH_THREAD(k, call->size)
            {
                const double dy = NUMBER_IN(0, ROW_AT(r, k));

                sum += dy;
                product += dy * (NUMBER_IN(1, ROW_AT(r, k)) - mean) / dev;
            }
        }
        sum = block_sum(part, sum);
        product = block_sum(part, product);
        if (TNCUDA_THREAD == 0) {
            STORE(1, g, product);
            STORE(2, g, sum);
        }
    }
}

/* in: data; out: y, norm. in: dy, data, norm; out: dx. */
/* ---- LRN: (outer, size channels, inner); n[0] channels to each side; f: alpha / nsize, beta, knorm */

#define LRN_WINDOW(i, j)                                                                                     \
    const int64_t c = (i) / call->inner % call->size;                                                        \
    const int64_t first = c > call->n[0] ? -call->n[0] : -c;                                                 \
    const int64_t last = c + call->n[0] < call->size ? call->n[0] : call->size - 1 - c;                      \
    for (int64_t j = (i) + first * call->inner; j <= (i) + last * call->inner; j += call->inner)

TNCUDA_KERNEL(norm_lrn, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        double norm = 0;

        LRN_WINDOW(i, j)
        norm += NUMBER_IN(0, j) * NUMBER_IN(0, j);
        norm = call->f[2] + call->f[0] * norm;
        STORE(0, i, NUMBER_IN(0, i) * pow(norm, -call->f[1]));
        STORE(1, i, norm);
    }
}

/* in: dy, data, y, norm */
TNCUDA_KERNEL(norm_lrn_back, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        double sum = 0;

        LRN_WINDOW(i, j)
        sum += NUMBER_IN(0, j) * NUMBER_IN(2, j) / NUMBER_IN(3, j);
        STORE(0, i,
              NUMBER_IN(0, i) * pow(NUMBER_IN(3, i), -call->f[1]) -
                  2 * call->f[1] * call->f[0] * NUMBER_IN(1, i) * sum);
    }
}
