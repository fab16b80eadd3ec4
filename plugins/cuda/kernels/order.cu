/*
 * Sorting, stable: each element becomes a key that orders as wanted, beside its position; runs of 1, 2, 4 …
 * elements are merged, each element finding its place in the other run by bisection. (outer, size, inner), n:
 * descending, k first of each row, elements of a run; room: two places for all entries, row after row.
 */
#include "order.h"

TNCUDA_INLINE uint64_t order_key(const tncuda_array *t, int64_t i)
{
    return order_element_key(t->data, t->dtype, i);
}

/* Where element k of row r lies. */
TNCUDA_INLINE int64_t order_at(const tncuda_call_args *call, int64_t r, int64_t k, int64_t size)
{
    return (r / call->inner * size + k) * call->inner + r % call->inner;
}

TNCUDA_KERNEL(order_load, FREE, tncuda_call_args)
{
    order_entry *to = (order_entry *)call->room;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t r = i / call->size, k = i % call->size;
        const uint64_t key = order_key(&call->in[0], order_at(call, r, k, call->size));

        to[i].key = call->n[0] ? ~key : key;
        to[i].index = k;
    }
}

/* How many of the n sorted entries come before `key`; `equal`: those that are equal do, too. */
TNCUDA_INLINE int64_t order_before(const order_entry *run, int64_t n, uint64_t key, int32_t equal)
{
    int64_t low = 0;

    while (n > 0) {
        const int64_t half = n / 2;
        const int32_t before = run[low + half].key < key || (equal && run[low + half].key == key);

        low = before ? low + half + 1 : low;
        n = before ? n - half - 1 : half;
    }
    return low;
}

/* Runs of n[2] elements from in[1] become runs of twice as many in out[1]. */
TNCUDA_KERNEL(order_merge, FREE, tncuda_call_args)
{
    const order_entry *from = (const order_entry *)call->in[1].data;
    order_entry *to = (order_entry *)call->out[1].data;
    const int64_t width = call->n[2];

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t row = i / call->size * call->size, at = i - row, pair = at / (2 * width) * (2 * width);
        const int32_t second = at - pair >= width;
        const int64_t other = second ? pair : pair + width;
        int64_t length = call->size - other;

        length = length < 0 ? 0 : length < width ? length : width;
        to[row + pair + (at - pair - (second ? width : 0)) +
           order_before(from + row + other, length, from[i].key, second)] = from[i];
    }
}

/* The first n[1] of each row: out[0] values, out[2] positions, out[3] 1 where an element was chosen. n[3]:
 * bytes of an element; n[4]: what positions keep of their bits. */
TNCUDA_KERNEL(order_write, FREE, tncuda_call_args)
{
    const order_entry *from = (const order_entry *)call->in[1].data;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t r = i / call->n[1], k = i % call->n[1], index = from[r * call->size + k].index;
        const int64_t to = order_at(call, r, k, call->n[1]), in = order_at(call, r, index, call->size);
        const tncuda_array *positions = &call->out[2], *mask = &call->out[3];

        if (call->out[0].data)
            element_move(call->out[0].data, to, call->in[0].data, in, call->n[3]);
        if (positions->data && element_is_float(positions->dtype))
            element_set_number(positions->data, positions->dtype, to, (double)(index & call->n[4]));
        else if (positions->data)
            element_set_whole(positions->data, positions->dtype, to, index & call->n[4]);
        if (mask->data)
            element_set_number(mask->data, mask->dtype, in, 1.0);
    }
}

/* in: dy, data, indices; dx, which is 0, takes dy where its element was chosen from. n[1]: chosen of a row;
 * an index outside is left out. */
TNCUDA_KERNEL(order_back, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t outer = i / (call->n[1] * call->inner);
        const int64_t at =
            element_is_float(call->in[2].dtype) ? tnb_i64_of_double(NUMBER_IN(2, i)) : WHOLE_IN(2, i);

        if (at >= 0 && at < call->size)
            element_move(call->out[0].data, (outer * call->size + at) * call->inner + i % call->inner,
                         call->in[0].data, i, call->n[3]);
    }
}
