/* Rows of different classes, drawn by Zipf's law: small ones more often than large ones. In C and CUDA. */
#ifndef TNB_ZIPFIAN_H
#define TNB_ZIPFIAN_H

#include "functions.h"
#include "tenon/plugin/random.h"

#define TNB_ZIPFIAN_TRIES_BITS 40 /* of a draw's counter; the row has the others */

/* Places of a table for `entries` of them: a power of two, at most half full. */
TNB_INLINE uint64_t tnb_table_slots(int64_t entries)
{
    uint64_t slots = 16;

    while (slots < 2 * (uint64_t)entries)
        slots *= 2;
    return slots;
}

/* 0: the class is there already. */
TNB_INLINE int32_t tnb_zipfian_add(int32_t *table, uint64_t slots, int32_t id)
{
    uint64_t at = (uint32_t)id * (uint64_t)0x9E3779B97F4A7C15u >> 20 & (slots - 1);

    for (; table[at] >= 0; at = (at + 1) & (slots - 1))
        if (table[at] == id)
            return 0;
    table[at] = id;
    return 1;
}

/* After so many draws a row that lacks a class has a probability of less than e^-40: it gets the smallest
 * ones that it lacks. */
TNB_INLINE int64_t tnb_zipfian_tries(int64_t range, int64_t each)
{
    const int64_t limit = (int64_t)1 << TNB_ZIPFIAN_TRIES_BITS;
    const double l = log((double)range), most = (double)each + 2 * (double)range * l * (l + 40);

    return most < (double)limit ? (int64_t)most : limit;
}

/* Row `row` of `each` classes below `range`, in the order in which they were drawn; `to` NULL: not wanted.
 * Returns how many were drawn. `table`: room for tnb_table_slots(each). */
TNB_INLINE int64_t tnb_zipfian_row(const tn_draw *draw, int64_t row, int64_t range, int64_t each,
                                   int32_t *table, int64_t *to)
{
    const double logarithm = log((double)range);
    const int64_t most = tnb_zipfian_tries(range, each);
    const uint64_t slots = tnb_table_slots(each);
    int64_t found = 0, tries = 0;

    for (uint64_t i = 0; i < slots; i++)
        table[i] = -1;
    for (int64_t rest = 0; found < each;) {
        int64_t id = rest;

        if (tries < most) {
            const uint64_t at = (uint64_t)row << TNB_ZIPFIAN_TRIES_BITS | (uint64_t)tries++;

            id = (int64_t)floor(exp(tn_draw_unit(draw, at) * logarithm) + 0.5);
            id = (id < range ? id : range) - 1;
        } else {
            rest++;
        }
        if (!tnb_zipfian_add(table, slots, (int32_t)id))
            continue;
        if (to)
            to[found] = id;
        found++;
    }
    return tries;
}

#endif
