/* Moments and averages over axes, in double: plugins/cpu/plain/statistics.c says what they are. */
#include "block.h"
#include "order.h"
#include "over.h"

#define OVER_NUMBER(first, k) element_number(call->over.x, call->over.dtype, over_at(&call->over, first, k))
#define GIVE(array, i, v)                                                                                    \
    do {                                                                                                     \
        if ((array).mode)                                                                                    \
            element_set_number((array).data, (array).dtype, i, v);                                           \
    } while (0)

TNCUDA_INLINE double average_weight(const tncuda_moments_args *call, int64_t first, int64_t k)
{
    return !call->w.data
               ? 1
               : element_number(call->w.data, call->w.dtype, call->line ? k : over_at(&call->over, first, k));
}

#define BODY "statistics.inc"
#include "sums.h"

/* The gradient that arrives at output o, over the sum of its weights. */
TNCUDA_INLINE double average_part(const tncuda_moments_args *call, int64_t o)
{
    return element_number(call->dy.data, call->dy.dtype, o) /
           element_number(call->var.data, call->var.dtype, o);
}

/* da = dy w / sum; dw = dy (a - average) / sum. `mean` and `var`: the forward's outputs. */
TNCUDA_KERNEL(average_back, FREE, tncuda_moments_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->over.outer * call->over.inner; i += TNCUDA_STEP) {
        const int64_t o = i / call->over.inner, k = i % call->over.inner, first = over_first(&call->over, o),
                      at = over_at(&call->over, first, k);
        const double part = average_part(call, o);

        GIVE(call->dx, at, average_weight(call, first, k) * part);
        if (!call->line)
            GIVE(call->dw, at,
                 part * (OVER_NUMBER(first, k) - element_number(call->mean.data, call->mean.dtype, o)));
    }
}

/* dw of one weight for each index: over all outputs in order. */
TNCUDA_KERNEL(average_line, FREE, tncuda_moments_args)
{
    for (int64_t k = TNCUDA_FIRST; k < call->over.inner; k += TNCUDA_STEP) {
        double sum = 0;

        for (int64_t o = 0; o < call->over.outer; o++)
            sum += average_part(call, o) * (OVER_NUMBER(over_first(&call->over, o), k) -
                                            element_number(call->mean.data, call->mean.dtype, o));
        GIVE(call->dw, k, sum);
    }
}

/* ---- percentile ---------------------------------------------------------------------------------------- */

TNCUDA_KERNEL(percentile_load, FREE, tncuda_percentile_args)
{
    order_entry *entry = (order_entry *)call->room;

    for (int64_t i = TNCUDA_FIRST; i < call->over.outer * call->over.inner; i += TNCUDA_STEP) {
        const int64_t row = i / call->over.inner, k = i % call->over.inner;

        entry[i].key = order_float_key(OVER_NUMBER(over_first(&call->over, row), k));
        entry[i].index = k;
    }
}

/* Below `q` of 100 elements: what stands at q / 100 of the way through n sorted ones. */
TNCUDA_INLINE double percentile_of(const order_entry *sorted, int64_t n, double q, int32_t between)
{
    const double at = q / 100 * (double)(n - 1), low = floor(at), part = at - low;
    const int64_t i = tnb_whole(low, 0, n - 1), next = i + 1 < n ? i + 1 : i;
    const double a = order_key_float(sorted[i].key), b = order_key_float(sorted[next].key);

    if (!(q >= 0 && q <= 100) || sorted[n - 1].key == UINT64_MAX) /* the largest is NaN */
        return order_key_float(UINT64_MAX);
    if (between == TNCUDA_BETWEEN_NEAREST) /* halves to even */
        return order_key_float(sorted[tnb_whole(rint(at), 0, n - 1)].key);
    if (between == TNCUDA_BETWEEN_LINEAR)
        return a + (b - a) * part;
    return between == TNCUDA_BETWEEN_LOWER || !(part > 0) ? a
           : between == TNCUDA_BETWEEN_HIGHER             ? b
                                                          : (a + b) / 2;
}

TNCUDA_KERNEL(percentile_pick, FREE, tncuda_percentile_args)
{
    const order_entry *entry = (const order_entry *)call->room;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t row = i % call->over.outer, k = i / call->over.outer, n = call->over.inner;
        const double q = call->q.data ? element_number(call->q.data, call->q.dtype, k) : call->only;

        element_set_number(call->out.data, call->out.dtype, i,
                           n > 0 ? percentile_of(entry + row * n, n, q, call->between)
                                 : order_key_float(UINT64_MAX));
    }
}
