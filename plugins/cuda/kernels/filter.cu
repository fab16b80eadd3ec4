/*
 * Elements written where a mask is not 0. room: for each element of the mask which of the chosen ones it is,
 * or -1; behind them the chosen ones of each part, which become those in front of it.
 */
#include "block.h"
#include "edit.h"

#define RANKS ((int64_t *)call->room)
#define PARTS (RANKS + call->size)

TNCUDA_INLINE int64_t filter_end(const tncuda_edit_args *call, int64_t part)
{
    const int64_t end = (part + 1) * TNCUDA_FILTER_PART;

    return end < call->size ? end : call->size;
}

/* count: of parts */
TNCUDA_KERNEL(filter_counts, FREE, tncuda_edit_args)
{
    for (int64_t part = TNCUDA_FIRST; part < call->count; part += TNCUDA_STEP) {
        int64_t found = 0;

        for (int64_t m = part * TNCUDA_FILTER_PART; m < filter_end(call, part); m++)
            found += element_truth(call->places.data, call->places.dtype, m);
        PARTS[part] = found;
    }
}

/* One block, each thread some parts that follow each other. */
TNCUDA_KERNEL(filter_starts, SYNC, tncuda_edit_args)
{
    TNCUDA_SHARED(int64_t, sums, TNCUDA_BLOCK_THREADS);
    const int64_t each = (call->count + TNCUDA_THREADS - 1) / TNCUDA_THREADS, first = TNCUDA_THREAD * each,
                  end = first + each < call->count ? first + each : call->count;
    int64_t sum = 0;

    for (int64_t part = first; part < end; part++)
        sum += PARTS[part];
    TNCUDA_PUT(sums, TNCUDA_THREAD, sum);
    TNCUDA_SYNC();
    sum = 0;
    for (int32_t t = 0; t < TNCUDA_THREAD; t++)
        sum += TNCUDA_GET(sums, t);
    for (int64_t part = first; part < end; part++) {
        const int64_t found = PARTS[part];

        PARTS[part] = sum;
        sum += found;
    }
}

TNCUDA_KERNEL(filter_ranks, FREE, tncuda_edit_args)
{
    for (int64_t part = TNCUDA_FIRST; part < call->count; part += TNCUDA_STEP) {
        int64_t found = PARTS[part];

        for (int64_t m = part * TNCUDA_FILTER_PART; m < filter_end(call, part); m++)
            RANKS[m] = element_truth(call->places.data, call->places.dtype, m) ? found++ : -1;
    }
}

/* Without values the mask alone decides; behind the last value along the axis stands the last one. */
TNCUDA_KERNEL(filter_put, FREE, tncuda_edit_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t inner = i % call->inner, m = i / call->inner % call->size,
                      outer = i / call->inner / call->size;
        int64_t rank = call->values.data
                           ? RANKS[m]
                           : (int64_t)element_truth(call->places.data, call->places.dtype, m) - 1;

        if (rank < 0)
            element_move(call->out.data, i, call->x.data, i, call->bytes);
        else
            edit_value(call, i, outer, rank < call->most ? rank : call->most - 1, inner);
    }
}
