/*
 * Normalisation, in double: a block makes the sums of a channel or a row. plugins/cpu/plain/norm.c says what
 * inputs, outputs and the formulas are.
 */
#include "block.h"

#define EACH_BLOCK(i, count) for (int64_t i = TNCUDA_BLOCK; i < (count); i += TNCUDA_BLOCKS)
#define EACH_THREAD(i, count) for (int64_t i = TNCUDA_THREAD; i < (count); i += TNCUDA_BLOCK_THREADS)
/* Element k of channel c of (outer, size, inner), k counting outer and inner. */
#define CHANNEL_AT(c, k) (((k) / call->inner * call->size + (c)) * call->inner + (k) % call->inner)
/* Element k of row r of (outer, size, inner). */
#define ROW_AT(r, k) (((r) / call->inner * call->size + (k)) * call->inner + (r) % call->inner)
#define STORE(o, i, v)                                                                                       \
    do {                                                                                                     \
        if (call->out[o].mode)                                                                               \
            NUMBER_OUT(o, i, v);                                                                             \
    } while (0)

/* ---- BatchNorm: n[0] training, n[1] gamma counts as 1, n[2] relu; f: eps, momentum; room: scale, bias, factor
 * of each channel */

#define ROOM(k, c) (((double *)call->room)[(k)*call->size + (c)])

TNCUDA_KERNEL(norm_batch, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    const int64_t each = call->outer * call->inner;

    EACH_BLOCK(c, call->size) {
        double mean = 0, var = 0;

        if (call->n[0]) {
            double sum = 0;

            EACH_THREAD(k, each)
                sum += NUMBER_IN(0, CHANNEL_AT(c, k));
            mean = block_sum(part, sum);
            mean = each > 0 ? mean / (double)each : 0;
            sum = 0;
            EACH_THREAD(k, each) {
                const double d = NUMBER_IN(0, CHANNEL_AT(c, k)) - mean;

                sum += d * d;
            }
            var = block_sum(part, sum);
            var = each > 0 ? var / (double)each : 0;
        }
        if (TNCUDA_THREAD == 0) {
            const double old_mean = element_number(call->out[3].data, call->out[3].dtype, c),
                         old_var = element_number(call->out[4].data, call->out[4].dtype, c);
            double inverse, scale;

            if (call->n[0]) {
                NUMBER_OUT(3, c, old_mean * call->f[1] + mean * (1 - call->f[1]));
                NUMBER_OUT(4, c, old_var * call->f[1] + var * (1 - call->f[1]));
            } else {
                mean = old_mean;
                var = old_var;
            }
            inverse = 1 / sqrt(var + call->f[0]);
            scale = call->n[1] ? inverse : inverse * NUMBER_IN(1, c);
            ROOM(0, c) = scale;
            ROOM(1, c) = NUMBER_IN(2, c) - mean * scale;
            STORE(1, c, mean);
            STORE(2, c, inverse);
        }
    }
}

TNCUDA_KERNEL(norm_batch_back, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    const int64_t each = call->outer * call->inner;

    EACH_BLOCK(c, call->size) {
        const double mean = NUMBER_IN(3, c), inverse = NUMBER_IN(4, c);
        const double scale = call->n[1] ? inverse : inverse * NUMBER_IN(2, c);
        double sum = 0, product = 0;

        EACH_THREAD(k, each) {
            const double dy = NUMBER_IN(0, CHANNEL_AT(c, k));

            sum += dy;
            product += dy * (NUMBER_IN(1, CHANNEL_AT(c, k)) - mean);
        }
        sum = block_sum(part, sum);
        product = block_sum(part, product);
        if (TNCUDA_THREAD == 0) {
            const int32_t train = call->n[0] && each > 0;
            const double factor = train ? -scale * inverse * inverse * product / (double)each : 0;

            ROOM(0, c) = scale;
            ROOM(1, c) = train ? -scale * sum / (double)each - factor * mean : 0;
            ROOM(2, c) = factor;
            STORE(1, c, call->n[1] ? 0.0 : product * inverse);
            STORE(2, c, sum);
        }
    }
}

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

/* ---- rows: count of them; n[0] groups, n[1] the variance is kept, n[2] has gamma; f: eps ---------------- */

#define GAMMA_AT(r, k) (call->n[0] ? (r) % call->n[0] : (k))

TNCUDA_KERNEL(norm_row, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);

    EACH_BLOCK(r, call->count) {
        double sum = 0, mean, var, dev;

        EACH_THREAD(k, call->size)
            sum += NUMBER_IN(0, ROW_AT(r, k));
        mean = block_sum(part, sum) / (double)call->size;
        sum = 0;
        EACH_THREAD(k, call->size) {
            const double d = NUMBER_IN(0, ROW_AT(r, k)) - mean;

            sum += d * d;
        }
        var = block_sum(part, sum) / (double)call->size;
        dev = sqrt(var + call->f[0]);
        EACH_THREAD(k, call->size)
            STORE(0, ROW_AT(r, k),
                  (NUMBER_IN(0, ROW_AT(r, k)) - mean) / dev * NUMBER_IN(1, GAMMA_AT(r, k)) +
                      NUMBER_IN(2, GAMMA_AT(r, k)));
        if (TNCUDA_THREAD == 0) {
            STORE(1, r, mean);
            STORE(2, r, call->n[1] ? var : dev);
        }
    }
}

TNCUDA_INLINE double norm_deviation(const tncuda_call_args *call, int64_t r)
{
    const double kept = NUMBER_IN(4, r);

    return call->n[1] ? sqrt(kept + call->f[0]) : kept;
}

TNCUDA_KERNEL(norm_row_back, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);

    EACH_BLOCK(r, call->count) {
        const double mean = NUMBER_IN(3, r), dev = norm_deviation(call, r);
        double a = 0, b = 0;

        EACH_THREAD(k, call->size) {
            const double g = NUMBER_IN(0, ROW_AT(r, k)) * NUMBER_IN(2, GAMMA_AT(r, k));

            a += g;
            b += g * ((NUMBER_IN(1, ROW_AT(r, k)) - mean) / dev);
        }
        a = block_sum(part, a) / (double)call->size;
        b = block_sum(part, b) / (double)call->size;
        EACH_THREAD(k, call->size) {
            const double g = NUMBER_IN(0, ROW_AT(r, k)) * NUMBER_IN(2, GAMMA_AT(r, k)),
                         x = (NUMBER_IN(1, ROW_AT(r, k)) - mean) / dev;

            STORE(0, ROW_AT(r, k), (g - a - x * b) / dev);
        }
    }
}

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

    EACH_BLOCK(g, call->n[0]) {
        double sum = 0, product = 0;

        for (int64_t r = g; r < (call->size ? call->outer : 0); r += call->n[0]) {
            const double mean = NUMBER_IN(3, r), dev = norm_deviation(call, r);

            EACH_THREAD(k, call->size) {
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
TNCUDA_KERNEL(norm_l2, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);

    EACH_BLOCK(r, call->count) {
        double sum = 0, norm;

        EACH_THREAD(k, call->size) {
            const double x = NUMBER_IN(0, ROW_AT(r, k));

            sum += x * x;
        }
        norm = sqrt(block_sum(part, sum) + call->f[0]);
        EACH_THREAD(k, call->size)
            STORE(0, ROW_AT(r, k), NUMBER_IN(0, ROW_AT(r, k)) / norm);
        if (TNCUDA_THREAD == 0)
            STORE(1, r, norm);
    }
}

TNCUDA_KERNEL(norm_l2_back, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);

    EACH_BLOCK(r, call->count) {
        const double norm = NUMBER_IN(2, r);
        double sum = 0;

        EACH_THREAD(k, call->size)
            sum += NUMBER_IN(0, ROW_AT(r, k)) * (NUMBER_IN(1, ROW_AT(r, k)) / norm);
        sum = block_sum(part, sum);
        EACH_THREAD(k, call->size)
            STORE(0, ROW_AT(r, k),
                  (NUMBER_IN(0, ROW_AT(r, k)) - NUMBER_IN(1, ROW_AT(r, k)) / norm * sum) / norm);
    }
}

/* ---- LRN: (outer, size channels, inner); n[0] channels to each side; f: alpha / nsize, beta, knorm -------- */

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
