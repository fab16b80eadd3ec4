/* Strided copies of elements of 1, 2, 4 and 8 bytes; rolls and lower triangles. */
#include "element.h"

typedef struct move_spot {
    int64_t src, dst;
} move_spot;

/* Of element i. */
TNCUDA_INLINE move_spot move_spot_of(const tncuda_move_args *call, int64_t i)
{
    uint32_t rest = (uint32_t)i;
    int32_t src = 0, dst = 0;
    move_spot s;

    if (call->ndim == 1 || !call->narrow) {
        s.src =
            call->ndim == 1 ? i * call->src_step[0] : tnb_offset(call->ndim, call->extent, call->src_step, i);
        s.dst =
            call->ndim == 1 ? i * call->dst_step[0] : tnb_offset(call->ndim, call->extent, call->dst_step, i);
        return s;
    }
    TNCUDA_ROLLED
    for (int32_t d = call->ndim; d-- > 0;) {
        const uint32_t above = d ? divided(&call->split[d], rest) : 0;
        const int32_t digit = (int32_t)(rest - above * call->split[d].by);

        src += digit * (int32_t)call->src_step[d];
        dst += digit * (int32_t)call->dst_step[d];
        rest = above;
    }
    s.src = src;
    s.dst = dst;
    return s;
}

/* The tiles of a matrix, of which there are many: rows along `from`, columns along the last dimension. */
typedef struct move_tile {
    int64_t row, col, src, dst; /* its first row and column, and where the matrix begins */
} move_tile;

TNCUDA_INLINE move_tile move_tile_of(const tncuda_move_args *call, int64_t tile)
{
    const int32_t last = call->ndim - 1;
    const int64_t across = (call->extent[last] + TNCUDA_TURN - 1) / TNCUDA_TURN,
                  down = (call->extent[call->from] + TNCUDA_TURN - 1) / TNCUDA_TURN;
    int64_t rest = tile / across / down;
    move_tile t;

    t.col = tile % across * TNCUDA_TURN;
    t.row = tile / across % down * TNCUDA_TURN;
    t.src = t.dst = 0;
    for (int32_t d = last; d-- > 0;)
        if (d != call->from) {
            t.src += rest % call->extent[d] * call->src_step[d];
            t.dst += rest % call->extent[d] * call->dst_step[d];
            rest /= call->extent[d];
        }
    return t;
}

typedef struct move_pack {
    uint32_t v[4];
} TNCUDA_ALIGNED(16) move_pack;

#define MOVE_STEP(bytes, type)                                                                               \
    TNCUDA_KERNEL(move_##bytes, FREE, tncuda_move_args)                                                      \
    {                                                                                                        \
        for (int64_t base = TNCUDA_FIRST; base < call->count; base += 4 * TNCUDA_STEP) {                     \
            move_spot s[4];                                                                                  \
            type v[4];                                                                                       \
                                                                                                             \
            TNCUDA_UNROLL                                                                                    \
            for (int32_t u = 0; u < 4; u++)                                                                  \
                if (base + u * TNCUDA_STEP < call->count) {                                                  \
                    s[u] = move_spot_of(call, base + u * TNCUDA_STEP);                                       \
                    v[u] = ELEMENT_AT(type, call->src, s[u].src);                                            \
                }                                                                                            \
            TNCUDA_UNROLL                                                                                    \
            for (int32_t u = 0; u < 4; u++)                                                                  \
                if (base + u * TNCUDA_STEP < call->count)                                                    \
                    ((type *)call->dst)[s[u].dst] = v[u];                                                    \
        }                                                                                                    \
    }
MOVE_STEP(16, move_pack)

#define MOVE(bytes, type)                                                                                    \
    MOVE_STEP(bytes, type)                                                                                   \
    /* by tiles in shared memory, read along one dimension and written along another */                      \
    TNCUDA_KERNEL(turn_##bytes, SYNC, tncuda_move_args)                                                      \
    {                                                                                                        \
        TNCUDA_SHARED(type, part, TNCUDA_TURN *(TNCUDA_TURN + 1));                                           \
        const int32_t last = call->ndim - 1, lane = TNCUDA_THREAD % TNCUDA_TURN;                             \
        const int32_t first = TNCUDA_THREAD / TNCUDA_TURN, step = TNCUDA_BLOCK_THREADS / TNCUDA_TURN;        \
        const int64_t rows = call->extent[call->from], cols = call->extent[last];                            \
                                                                                                             \
        for (int64_t b = TNCUDA_BLOCK; b < call->count; b += TNCUDA_BLOCKS) {                                \
            const move_tile t = move_tile_of(call, b);                                                       \
                                                                                                             \
            TNCUDA_UNROLL                                                                                    \
            for (int32_t k = 0; k < TNCUDA_TURN; k += TNCUDA_BLOCK_THREADS / TNCUDA_TURN)                    \
                if (t.row + lane < rows && t.col + k + first < cols)                                         \
                    TNCUDA_PUT(                                                                              \
                        part, (k + first) * (TNCUDA_TURN + 1) + lane,                                        \
                        ELEMENT_AT(type, call->src,                                                          \
                                   t.src + t.row + lane + (t.col + k + first) * call->src_step[last]));      \
            TNCUDA_SYNC();                                                                                   \
            for (int32_t k = first; k < TNCUDA_TURN; k += step)                                              \
                if (t.row + k < rows && t.col + lane < cols)                                                 \
                    ELEMENT_SET(type, call->dst,                                                             \
                                t.dst + t.col + lane + (t.row + k) * call->dst_step[call->from],             \
                                TNCUDA_GET(part, lane * (TNCUDA_TURN + 1) + k));                             \
            TNCUDA_SYNC();                                                                                   \
        }                                                                                                    \
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
