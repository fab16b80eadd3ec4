/* Entries that the family order sorts, for kernels of any family. */
#ifndef TNCUDA_ORDER_H
#define TNCUDA_ORDER_H

#include "element.h"

typedef struct order_entry {
    uint64_t key;
    int64_t index;
} order_entry;

/* Orders as numbers do: 0 and -0 are equal, NaN is the largest. */
TNCUDA_INLINE uint64_t order_float_key(double v)
{
    const uint64_t bits = tnb_double_bits(v == 0 ? 0.0 : v);

    if (v != v)
        return UINT64_MAX;
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* Of an element of any type; keys of one type alone can be compared. */
TNCUDA_INLINE uint64_t order_element_key(const void *data, int32_t dtype, int64_t i)
{
    if (element_is_float(dtype))
        return order_float_key(element_number(data, dtype, i));
    return (uint64_t)element_whole(data, dtype, i) ^ (dtype == ELEMENT_U64 ? 0 : (uint64_t)1 << 63);
}

/* The number of a key. */
TNCUDA_INLINE double order_key_float(uint64_t key)
{
    return tnb_bits_double(key == UINT64_MAX ? key : key >> 63 ? key & ~((uint64_t)1 << 63) : ~key);
}

/* The largest number first, then NaN; ORDER_OUT comes last, for entries that are left out. */
#define ORDER_OUT UINT64_MAX
TNCUDA_INLINE uint64_t order_best_key(double v)
{
    return v != v ? ORDER_OUT - 1 : ~order_float_key(v);
}

/* How many of n sorted entries are not left out. */
TNCUDA_INLINE int64_t order_count(const order_entry *entry, int64_t n)
{
    int64_t low = 0;

    while (n > 0) {
        const int64_t half = n / 2, in = entry[low + half].key != ORDER_OUT;

        low = in ? low + half + 1 : low;
        n = in ? n - half - 1 : half;
    }
    return low;
}

/* How many of n sorted entries have a key below this one. */
TNCUDA_INLINE int64_t order_below(const order_entry *entry, int64_t n, uint64_t key)
{
    int64_t low = 0;

    while (n > 0) {
        const int64_t half = n / 2, in = entry[low + half].key < key;

        low = in ? low + half + 1 : low;
        n = in ? n - half - 1 : half;
    }
    return low;
}

#endif
