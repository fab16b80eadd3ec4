/* Where elements of a padded axis come from, and where they went. In C and CUDA; modes as _npi_pad numbers
 * them. */
#ifndef TNB_PAD_H
#define TNB_PAD_H

#include "storage.h"
#include "tenon/plugin/op/pad.h"

#define TNB_NOWHERE (-1) /* the constant; a later pass has the largest or smallest of the line there */

TNB_INLINE int64_t tnb_pad_wrapped(int64_t at, int64_t period)
{
    return (at % period + period) % period;
}

/* What stands `at` an axis of `size`, counted from its first element. */
TNB_INLINE int64_t tnb_pad_source(int64_t mode, int64_t at, int64_t size)
{
    if (at >= 0 && at < size)
        return at;
    switch (mode) {
    case TN_npi_pad_mode_edge:
        return at < 0 ? 0 : size - 1;
    case TN_npi_pad_mode_reflect:
        at = size == 1 ? 0 : tnb_pad_wrapped(at, 2 * size - 2);
        return at < size ? at : 2 * size - 2 - at;
    case TN_npi_pad_mode_symmetric:
        at = tnb_pad_wrapped(at, 2 * size);
        return at < size ? at : 2 * size - 1 - at;
    default:
        return TNB_NOWHERE;
    }
}

/* Indices start, start + step, … of one axis, counted from the first element that is no padding. */
typedef struct tnb_places {
    int64_t start, step, count;
} tnb_places;

TNB_INLINE tnb_places tnb_places_set(int64_t start, int64_t step, int64_t count)
{
    tnb_places p;

    p.start = start;
    p.step = step;
    p.count = count;
    return p;
}

/* Those of -before … size + behind - 1 that are `rest` modulo `period`. */
TNB_INLINE tnb_places tnb_places_of(int64_t rest, int64_t period, int64_t before, int64_t end)
{
    const int64_t start = rest - (rest + before) / period * period;

    return tnb_places_set(start, period, start < end ? (end - 1 - start) / period + 1 : 0);
}

/* Where element `i` of an axis stands in the output: one or two series. */
TNB_INLINE void tnb_pad_copies(int64_t mode, int64_t before, int64_t behind, int64_t i, int64_t size,
                               tnb_places out[2])
{
    const int64_t end = size + behind;
    const int32_t reflect = mode == TN_npi_pad_mode_reflect && size > 1;
    const int64_t period = reflect ? 2 * size - 2 : 2 * size, other = period - i - !reflect;

    out[0] = tnb_places_set(i, 1, 1);
    out[1] = tnb_places_set(0, 1, 0);
    if (mode == TN_npi_pad_mode_constant)
        return;
    if (mode == TN_npi_pad_mode_edge || (mode == TN_npi_pad_mode_reflect && !reflect)) {
        const int64_t from = i == 0 ? -before : i;

        out[0] = tnb_places_set(from, 1, (i == size - 1 ? end : i + 1) - from);
        return;
    }
    out[0] = tnb_places_of(i, period, before, end);
    if (other % period != i)
        out[1] = tnb_places_of(other, period, before, end);
}

#endif
