/*
 * Positions that are drawn, as plugins/cpu/plain/choice.c draws them: sums of probabilities are double
 * and added from first to last. A list whose probabilities are not allowed gives its last position.
 */
#include "../../common/distribution.h"
#include "../../common/zipfian.h"
#include "order.h"

#define SUMS ((double *)call->room)

TNCUDA_INLINE tn_draw choice_draw(const tncuda_random_args *call)
{
    tn_draw draw;

    draw.key = call->draw.key;
    draw.number = *call->draw.step + call->draw.step_add; /* as it is when this runs */
    return draw;
}

/* room: sums of rows of in[0], (outer, size); f: them, where there is no array. A thread makes a row. */
TNCUDA_KERNEL(choice_sums, FREE, tncuda_call_args)
{
    for (int64_t r = TNCUDA_FIRST; r < call->outer; r += TNCUDA_STEP) {
        double sum = 0;

        for (int64_t i = 0; i < call->size; i++) {
            sum += call->in[0].data ? NUMBER_IN(0, r * call->size + i) : call->f[i];
            SUMS[r * call->size + i] = sum;
        }
    }
}

/* The first position whose sum is above `u` times the last one. */
TNCUDA_INLINE int64_t choice_find(const double *sums, int64_t count, double u)
{
    const double last = sums[count - 1], v = u * last < last ? u * last : nextafter(last, 0.0);
    int64_t low = 0, high = count - 1;

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (sums[middle] > v)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* source[0].data: sums of rows of `low` positions; out: position, its logarithm (source[1].data has the
 * probabilities). high: draws of a row. */
TNCUDA_KERNEL(choice_again, FREE, tncuda_random_args)
{
    const tn_draw draw = choice_draw(call);
    const tncuda_source *p = &call->source[1];

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t first = i / call->high * call->low;
        const int64_t at = call->source[0].data
                               ? choice_find((const double *)call->source[0].data + first, call->low,
                                             tn_draw_unit(&draw, (uint64_t)i))
                               : (int64_t)tnb_draw_below(&draw, (uint64_t)i, (uint64_t)call->low);

        if (call->out[0].mode)
            element_set_number(call->out[0].data, call->out[0].dtype, i, (double)at);
        if (call->out[1].mode)
            element_set_number(call->out[1].data, call->out[1].dtype, i,
                               log(element_number(p->data, p->dtype, first + at)));
    }
}

/* in: dy of the logarithms, data (outer, size), positions (outer, inner); room: sums. A thread makes a
 * row. */
TNCUDA_KERNEL(choice_again_back, FREE, tncuda_call_args)
{
    for (int64_t r = TNCUDA_FIRST; r < call->outer; r += TNCUDA_STEP) {
        double *sums = SUMS + r * call->size;

        for (int64_t i = 0; i < call->size; i++)
            sums[i] = 0;
        for (int64_t k = r * call->inner; k < (r + 1) * call->inner; k++) {
            const double position = NUMBER_IN(2, k);
            const int64_t at =
                position >= 0 && position < (double)call->size ? (int64_t)position : call->size - 1;

            sums[at] += NUMBER_IN(0, k) / NUMBER_IN(1, r * call->size + at);
        }
        for (int64_t i = 0; i < call->size; i++)
            NUMBER_OUT(0, r * call->size + i, sums[i]);
    }
}

/* One outcome after the other: how many of `high` experiments have it. source[0].data: sums of `low`
 * probabilities. A thread makes a row. */
TNCUDA_KERNEL(choice_counts, FREE, tncuda_random_args)
{
    const tn_draw draw = choice_draw(call);
    const double *sums = (const double *)call->source[0].data;
    const int64_t count = call->low;
    const double all = count > 1 && sums[count - 2] > 1 ? sums[count - 2] : 1;

    for (int64_t r = TNCUDA_FIRST; r < call->count; r += TNCUDA_STEP) {
        int64_t left = call->high;

        for (int64_t i = 0; i < count; i++) {
            const double passed = i ? sums[i - 1] : 0, p = (i < count - 1 ? sums[i] : all) - passed,
                         rest = all - passed;
            const int64_t n =
                i == count - 1 || !(rest > 0)
                    ? left
                    : tnb_draw_binomial(&draw, (uint64_t)(r * count + i), left, fmin(p / rest, 1.0));

            ELEMENT_SET(int64_t, call->out[0].data, r * count + i, n);
            left -= n;
        }
    }
}

/* Entries by the time at which each of `count` positions arrives; out[0]: entries, source[0]: weights. */
TNCUDA_KERNEL(choice_times, FREE, tncuda_random_args)
{
    const tn_draw draw = choice_draw(call);
    order_entry *entry = (order_entry *)call->out[0].data;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const double w = element_number(call->source[0].data, call->source[0].dtype, i);

        entry[i].index = i;
        entry[i].key = w > 0 ? order_float_key(-log(1 - tn_draw_unit(&draw, (uint64_t)i)) / w) : ORDER_OUT;
    }
}

/* in[0]: entries; out[0]: their indices */
TNCUDA_KERNEL(choice_first, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        ELEMENT_SET(int64_t, call->out[0].data, i, ((const order_entry *)call->in[0].data)[i].index);
}

/* out[0]: for each of `count` steps of Fisher and Yates the place to exchange with. `high` 0: place i with
 * one not behind it, in a list of `count`; else with one not before it, in a list of `low`. */
TNCUDA_KERNEL(choice_places, FREE, tncuda_random_args)
{
    const tn_draw draw = choice_draw(call);

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const uint64_t below = call->high ? (uint64_t)(call->low - i) : (uint64_t)i + 1;
        const int64_t at = !call->high && i == 0 ? 0 : (int64_t)tnb_draw_below(&draw, (uint64_t)i, below);

        ELEMENT_SET(int64_t, call->out[0].data, i, call->high ? i + at : at);
    }
}

/* One thread: in[0]: places, room: the list that becomes an order, of `size`; `count` steps from the end, or
 * (n) from the beginning. */
TNCUDA_KERNEL(choice_exchange, FREE, tncuda_call_args)
{
    const int64_t *place = (const int64_t *)call->in[0].data;
    int64_t *order = (int64_t *)call->room;

    if (TNCUDA_FIRST != 0)
        return;
    for (int64_t i = 0; i < call->size; i++)
        order[i] = i;
    for (int64_t k = 0; k < call->count; k++) {
        const int64_t i = call->n[0] ? k : call->count - 1 - k, kept = order[i];

        order[i] = order[place[i]];
        order[place[i]] = kept;
    }
}

/* Rows of `size` elements of n[0] bytes, in the order of the room; in[0] NULL: the order itself. */
TNCUDA_KERNEL(choice_rows, FREE, tncuda_call_args)
{
    const int64_t *order = (const int64_t *)call->room;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        if (call->in[0].data)
            element_move(call->out[0].data, i, call->in[0].data,
                         order[i / call->size] * call->size + i % call->size, call->n[0]);
        else
            ELEMENT_SET(int64_t, call->out[0].data, i, order[i]);
}

/* ---- unique classes ------------------------------------------------------------------------------------ */

/* A thread makes a row of `low` classes below `high`; source[0].data: a table of `interval` slots for
 * each. out: classes, how many were drawn. */
TNCUDA_KERNEL(choice_zipfian, FREE, tncuda_random_args)
{
    const tn_draw draw = choice_draw(call);

    for (int64_t r = TNCUDA_FIRST; r < call->count; r += TNCUDA_STEP) {
        int32_t *table = (int32_t *)(uintptr_t)call->source[0].data + r * call->interval;
        int64_t *to = call->out[0].mode ? (int64_t *)call->out[0].data + r * call->low : (int64_t *)0;
        const int64_t tries = tnb_zipfian_row(&draw, r, call->high, call->low, table, to);

        if (call->out[1].mode)
            ELEMENT_SET(int64_t, call->out[1].data, r, tries);
    }
}
