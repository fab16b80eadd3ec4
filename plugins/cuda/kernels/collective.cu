/* Sums of several ranks' shares, for collectives: their plugins launch it (../../common/collective.h). */
#include "element.h"

#include "../../common/collective.h"

#define SUM(V, get, set)                                                                                     \
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)                                        \
        for (int32_t r = 1; r < call->ranks; r++) {                                                          \
            const V sum = (V)(get(call->shares, call->dtype, i) +                                            \
                              (V)get(call->shares, call->dtype, r * call->count + i));                       \
                                                                                                             \
            set(call->shares, call->dtype, i, sum);                                                          \
        }

TNCUDA_INLINE uint64_t whole_get(const void *data, int32_t dtype, int64_t i)
{
    return (uint64_t)element_whole(data, dtype, i);
}

TNCUDA_INLINE void whole_set(void *data, int32_t dtype, int64_t i, uint64_t v)
{
    element_set_whole(data, dtype, i, (int64_t)v);
}

/* The sum is stored behind each addition: short floats are rounded then. */
TNCUDA_KERNEL(collective_sum, FREE, tnb_collective_args)
{
    if (call->dtype == ELEMENT_F64) {
        SUM(double, element_f64, element_set_f64)
    } else if (element_is_float(call->dtype)) {
        SUM(float, element_f32, element_set_f32)
    } else {
        SUM(uint64_t, whole_get, whole_set)
    }
}
