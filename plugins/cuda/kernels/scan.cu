/*
 * Differences, polynomials and counts. Numbers are doubles, or 64-bit integers that wrap (n[0]):
 * the words of plugins/cpu/plain/scan.c.
 */
#include "block.h"
#include "order.h"

#define WHOLE (call->n[0])

typedef union scan_number {
    double f;
    int64_t i;
} scan_number;

TNCUDA_INLINE scan_number scan_read(const tncuda_call_args *call, int32_t k, int64_t at)
{
    const tncuda_array *t = &call->in[k];
    scan_number v;

    v.i = 0;
    if (!WHOLE)
        v.f = element_number(t->data, t->dtype, at);
    else
        v.i = element_is_float(t->dtype) ? tnb_i64_of_double(element_number(t->data, t->dtype, at))
                                         : element_whole(t->data, t->dtype, at);
    return v;
}

TNCUDA_INLINE void scan_write(const tncuda_call_args *call, int32_t k, int64_t at, scan_number v)
{
    if (WHOLE)
        element_set_whole(call->out[k].data, call->out[k].dtype, at, v.i);
    else
        NUMBER_OUT(k, at, v.f);
}

TNCUDA_INLINE scan_number scan_minus(const tncuda_call_args *call, scan_number a, scan_number b)
{
    if (WHOLE)
        a.i = (int64_t)((uint64_t)a.i - (uint64_t)b.i);
    else
        a.f -= b.f;
    return a;
}

/* Rows (outer, size, inner) of in[0], of which there are n[1] numbers, into the room: out[1] */
TNCUDA_KERNEL(scan_load, FREE, tncuda_call_args)
{
    scan_number *to = (scan_number *)call->out[1].data;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t row = i / (call->n[1] * call->inner), within = i % (call->n[1] * call->inner);

        to[row * call->size * call->inner + within] = scan_read(call, 0, i);
    }
}

/* in[1] to out[1]: n[1] differences of neighbours, or (n[2]) the transposed step, from one number less. */
TNCUDA_KERNEL(scan_diff, FREE, tncuda_call_args)
{
    const scan_number *from = (const scan_number *)call->in[1].data;
    scan_number *to = (scan_number *)call->out[1].data;
    const int64_t length = call->n[1], inner = call->inner;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t k = i / inner % length, at = (i / inner / length * call->size + k) * inner + i % inner;
        scan_number zero, before, here;

        zero.i = 0;
        before = call->n[2] ? (k > 0 ? from[at - inner] : zero) : from[at + inner];
        here = call->n[2] && k == length - 1 ? zero : from[at];
        to[at] = scan_minus(call, before, here);
    }
}

TNCUDA_KERNEL(scan_store, FREE, tncuda_call_args)
{
    const scan_number *from = (const scan_number *)call->in[1].data;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t row = i / (call->n[1] * call->inner), within = i % (call->n[1] * call->inner);

        scan_write(call, 0, i, from[row * call->size * call->inner + within]);
    }
}

/* `count` differences of in[0], from element n[1] of the output on. */
TNCUDA_KERNEL(scan_ediff, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        scan_write(call, 0, call->n[1] + i,
                   scan_minus(call, scan_read(call, 0, i + 1), scan_read(call, 0, i)));
}

/* in[0]: dy, of which the differences begin at n[1] */
TNCUDA_KERNEL(scan_ediff_back, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        NUMBER_OUT(0, i,
                   (i > 0 ? NUMBER_IN(0, call->n[1] + i - 1) : 0) -
                       (i + 1 < call->count ? NUMBER_IN(0, call->n[1] + i) : 0));
}

/* Element n[1] of the output is f[0]. */
TNCUDA_KERNEL(scan_number_at, FREE, tncuda_call_args)
{
    if (TNCUDA_FIRST == 0)
        NUMBER_OUT(0, call->n[1], call->f[0]);
}

/* in: p of `size` terms, x */
TNCUDA_KERNEL(scan_polyval, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const scan_number x = scan_read(call, 1, i);
        scan_number sum;

        sum.i = 0;
        for (int64_t k = 0; k < call->size; k++) {
            const scan_number c = scan_read(call, 0, k);

            if (WHOLE)
                sum.i = (int64_t)((uint64_t)sum.i * (uint64_t)x.i + (uint64_t)c.i);
            else
                sum.f = sum.f * x.f + c.f;
        }
        scan_write(call, 0, i, sum);
    }
}

/* in: dy, p, x; out[1]: dx */
TNCUDA_KERNEL(scan_polyval_dx, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        double slope = 0;

        for (int64_t k = 0; k + 1 < call->size; k++)
            slope = slope * NUMBER_IN(2, i) + NUMBER_IN(1, k) * (double)(call->size - 1 - k);
        NUMBER_OUT(1, i, slope * NUMBER_IN(0, i));
    }
}

/* in: dy, p, x; out[0]: dp, each the sum of dy times a power, which the room has for each x. One block. */
TNCUDA_KERNEL(scan_polyval_dp, SYNC, tncuda_call_args)
{
    TNCUDA_SHARED(double, part, TNCUDA_BLOCK_THREADS);
    double *power = (double *)call->room;

    for (int64_t i = TNCUDA_THREAD; i < call->count; i += TNCUDA_THREADS)
        power[i] = NUMBER_IN(0, i);
    for (int64_t k = call->size - 1; k >= 0; k--) {
        double sum = 0;

        for (int64_t i = TNCUDA_THREAD; i < call->count; i += TNCUDA_THREADS) {
            sum += power[i];
            power[i] *= NUMBER_IN(2, i);
        }
        sum = block_sum(part, sum);
        if (TNCUDA_THREAD == 0)
            NUMBER_OUT(0, k, sum);
    }
}

/* ---- histogram: in: data, edges (NULL: as far from each other); n[1]: bins; f: first, last ------------- */

TNCUDA_INLINE double scan_edge(const tncuda_call_args *call, int64_t k)
{
    const tncuda_array *e = &call->in[1];

    if (!e->data)
        return call->f[0] + (double)k * (call->f[1] - call->f[0]) / (double)call->n[1];
    return element_number(e->data, e->dtype, k);
}

/* The bin of each element, the last edge belonging to the last bin. */
TNCUDA_KERNEL(scan_bins, FREE, tncuda_call_args)
{
    order_entry *entry = (order_entry *)call->room;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double v = NUMBER_IN(0, i);
        int64_t low = 0, high = call->n[1];

        entry[i].index = i;
        entry[i].key = ORDER_OUT;
        if (!(v >= scan_edge(call, 0) && v <= scan_edge(call, high)))
            continue;
        while (high - low > 1) {
            const int64_t middle = low + (high - low) / 2;

            if (v >= scan_edge(call, middle))
                low = middle;
            else
                high = middle;
        }
        entry[i].key = (uint64_t)low;
    }
}

/* room: sorted entries, `size` of them; out: counts, edges */
TNCUDA_KERNEL(scan_counts, FREE, tncuda_call_args)
{
    const order_entry *entry = (const order_entry *)call->room;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        if (call->out[0].mode && i < call->n[1])
            ELEMENT_SET(int64_t, call->out[0].data, i,
                        order_below(entry, call->size, (uint64_t)i + 1) -
                            order_below(entry, call->size, (uint64_t)i));
        if (call->out[1].mode)
            NUMBER_OUT(1, i, scan_edge(call, i));
    }
}
