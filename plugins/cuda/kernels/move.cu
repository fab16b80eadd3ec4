/* Strided copies of elements of 1, 2, 4 and 8 bytes; rolls and lower triangles. */
#include "element.h"

TNCUDA_INLINE int64_t move_at(const tncuda_move_args *call, const int64_t *step, int64_t i)
{
    return call->ndim == 1 ? i * step[0] : tnb_offset(call->ndim, call->extent, step, i);
}

#define MOVE(bytes, type)                                                                                    \
    TNCUDA_KERNEL(move_##bytes, FREE, tncuda_move_args)                                                      \
    {                                                                                                        \
        for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)                                    \
            ELEMENT_SET(type, call->dst, move_at(call, call->dst_step, i),                                   \
                        ELEMENT_AT(type, call->src, move_at(call, call->src_step, i)));                      \
    }                                                                                                        \
    /* element (i + shift) mod extent of each axis is element i of src */                                    \
    TNCUDA_KERNEL(roll_##bytes, FREE, tncuda_move_args)                                                      \
    {                                                                                                        \
        for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {                                  \
            int64_t to = 0, step = 1, rest = i;                                                              \
                                                                                                             \
            for (int32_t d = call->ndim; d-- > 0;) {                                                         \
                to += (rest % call->extent[d] + call->shift[d]) % call->extent[d] * step;                    \
                rest /= call->extent[d];                                                                     \
                step *= call->extent[d];                                                                     \
            }                                                                                                \
            ELEMENT_SET(type, call->dst, to, ELEMENT_AT(type, call->src, i));                                \
        }                                                                                                    \
    }                                                                                                        \
    /* extent: rows, columns; element (r, c) stays where c <= r + shift. src_step 0: one row for all */      \
    TNCUDA_KERNEL(tril_##bytes, FREE, tncuda_move_args)                                                      \
    {                                                                                                        \
        for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {                                  \
            const int64_t c = i % call->extent[1], r = i / call->extent[1];                                  \
            const int64_t from = r * call->src_step[0] + c;                                                  \
            const int32_t stays = c <= r % call->extent[0] + call->shift[0];                                 \
                                                                                                             \
            ELEMENT_SET(type, call->dst, i, stays ? ELEMENT_AT(type, call->src, from) : 0);                  \
        }                                                                                                    \
    }
MOVE(1, uint8_t)
MOVE(2, uint16_t)
MOVE(4, uint32_t)
MOVE(8, uint64_t)

/* y (n) of x (n, n): the sums of the columns' elements that tril of a vector copied. */
TNCUDA_KERNEL(tril_sum, FREE, tncuda_reduce_args)
{
    for (int64_t c = TNCUDA_FIRST; c < call->outer; c += TNCUDA_STEP) {
        const int64_t first = c - call->inner_shape[0];
        double sum = 0;

        for (int64_t r = first > 0 ? first : 0; r < call->outer; r++)
            sum += element_number(call->x, call->dtype, r * call->outer + c);
        element_set_number(call->y, call->out_dtype, c, sum);
    }
}

TNCUDA_KERNEL(words, FREE, tncuda_words_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP)
        ELEMENT_SET(int64_t, call->to, i, call->word[i]);
}
