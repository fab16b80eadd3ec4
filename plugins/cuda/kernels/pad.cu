/* Padding, and its gradient: ../../common/pad.h. A thread makes an element. */
#include "../../common/pad.h"
#include "order.h"

TNCUDA_KERNEL(pad_y, FREE, tncuda_pad_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        int64_t rest = i, at = 0, step = 1;

        for (int32_t d = call->ndim; d-- > 0; step *= call->in[d]) {
            const int64_t from =
                tnb_pad_source(call->mode, rest % call->out[d] - call->before[d], call->in[d]);

            rest /= call->out[d];
            at = from == TNB_NOWHERE || at < 0 ? -1 : at + from * step;
        }
        if (at < 0)
            element_set_number(call->y, call->dtype, i, call->constant);
        else
            element_move(call->y, i, call->x, at, call->bytes);
    }
}

/* The place of the best of all elements of x that axes of y reach which stand outside of x; `at` has 0 for
 * these. -1: there is none. */
TNCUDA_INLINE int64_t pad_best(const tncuda_pad_args *call, int64_t at, int64_t combinations,
                               const int64_t *extent)
{
    uint64_t best_key = 0;
    int64_t best = -1;

    for (int64_t c = 0; c < combinations; c++) {
        int64_t left = c, from = at, step = 1;
        uint64_t key;

        for (int32_t d = call->ndim; d-- > 0; step *= call->in[d], left /= extent[d])
            from += left % extent[d] * step;
        key = order_element_key(call->x, call->dtype, from);
        if (best < 0 || (call->mode == TNCUDA_PAD_MAXIMUM ? key > best_key : key < best_key)) {
            best = from;
            best_key = key;
        }
    }
    return best;
}

/* By maxima or minima: outside of x along some axes, the best of all that lies along these. */
TNCUDA_KERNEL(pad_best_y, FREE, tncuda_pad_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        int64_t rest = i, at = 0, step = 1, combinations = 1, extent[TNCUDA_NDIM];

        for (int32_t d = call->ndim; d-- > 0; step *= call->in[d]) {
            const int64_t from = rest % call->out[d] - call->before[d];
            const int outside = from < 0 || from >= call->in[d];

            rest /= call->out[d];
            extent[d] = outside ? call->in[d] : 1;
            combinations *= extent[d];
            at += outside ? 0 : from * step;
        }
        at = pad_best(call, at, combinations, extent);
        if (at < 0)
            element_set_number(call->y, call->dtype, i, call->constant);
        else
            element_move(call->y, i, call->x, at, call->bytes);
    }
}

/* y = dx: the sum of x = dy over all places where the element stands. */
TNCUDA_KERNEL(pad_dx, FREE, tncuda_pad_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        tnb_places where[TNCUDA_NDIM][2];
        int64_t rest = i, combinations = 1;
        double sum = 0;

        for (int32_t d = call->ndim; d-- > 0; rest /= call->in[d]) {
            tnb_pad_copies(call->mode, call->before[d], call->behind[d], rest % call->in[d], call->in[d],
                           where[d]);
            combinations *= where[d][0].count + where[d][1].count;
        }
        for (int64_t c = 0; c < combinations; c++) {
            int64_t left = c, from = 0, step = 1;

            for (int32_t d = call->ndim; d-- > 0; step *= call->out[d]) {
                const int64_t first = where[d][0].count, copies = first + where[d][1].count,
                              k = left % copies;
                const tnb_places *s = &where[d][k >= first];

                from += (call->before[d] + s->start + (k >= first ? k - first : k) * s->step) * step;
                left /= copies;
            }
            sum += element_number(call->x, call->dtype, from);
        }
        element_set_number(call->y, call->dtype, i, sum);
    }
}
