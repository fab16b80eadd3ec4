/*
 * insert and delete. Places are sorted first, equal ones in their order; value r of them stands at its place
 * + r, which ascends with r, so that each element of the output finds by bisection what it is.
 */
#include "edit.h"
#include "order.h"

TNCUDA_KERNEL(insert_places, FREE, tncuda_edit_args)
{
    order_entry *entry = (order_entry *)call->room;

    for (int64_t k = TNCUDA_FIRST; k < call->added; k += TNCUDA_STEP) {
        const int64_t number = call->one ? 0 : k;
        int64_t at = call->places.data ? element_whole(call->places.data, call->places.dtype, number)
                                       : call->first + number * call->step;

        at = at < 0 ? at + call->size : at; /* outside of the axis: its ends */
        at = at < 0 ? 0 : at > call->size ? call->size : at;
        entry[k].key = (uint64_t)at;
        entry[k].index = k;
    }
}

/* How many values stand in front of slice `at` of the output. */
TNCUDA_INLINE int64_t insert_before(const order_entry *entry, int64_t n, int64_t at)
{
    int64_t low = 0;

    while (n > 0) {
        const int64_t half = n / 2, before = (int64_t)entry[low + half].key + low + half < at;

        low = before ? low + half + 1 : low;
        n = before ? n - half - 1 : half;
    }
    return low;
}

TNCUDA_KERNEL(insert_put, FREE, tncuda_edit_args)
{
    const order_entry *entry = (const order_entry *)call->room;
    const int64_t slices = call->size + call->added;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t inner = i % call->inner, at = i / call->inner % slices,
                      outer = i / call->inner / slices;
        const int64_t r = insert_before(entry, call->added, at);

        if (r < call->added && (int64_t)entry[r].key + r == at)
            edit_value(call, i, outer, entry[r].index, inner);
        else
            element_move(call->out.data, i, call->x.data, (outer * call->size + at - r) * call->inner + inner,
                         call->bytes);
    }
}

/* Slices first, first + step … are left out, `added` of them. */
TNCUDA_KERNEL(delete_range, FREE, tncuda_edit_args)
{
    const int64_t kept = call->step - 1, between = (call->added - 1) * kept,
                  slices = call->size - call->added;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t inner = i % call->inner, at = i / call->inner % slices,
                      outer = i / call->inner / slices;
        const int64_t behind = at - call->first;
        const int64_t from = call->added == 0 || behind < 0 ? at
                             : behind < between ? call->first + behind / kept * call->step + 1 + behind % kept
                                                : at + call->added;

        element_move(call->out.data, i, call->x.data, (outer * call->size + from) * call->inner + inner,
                     call->bytes);
    }
}
