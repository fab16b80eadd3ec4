/*
 * Between (batch, channels, space) and (batch, space, channels): matrices are turned by tiles in shared
 * memory, which are read along their rows and written along their columns.
 */
#include "element.h"

typedef struct last_tile { /* its first row and column, and where its matrix begins */
    int32_t row, col;
    int64_t at;
} last_tile;

TNCUDA_INLINE last_tile last_tile_of(const tncuda_last_args *call, int64_t tile)
{
    const uint32_t matrix = divided(&call->each, (uint32_t)tile),
                   rest = (uint32_t)tile - matrix * call->each.by, down = divided(&call->across, rest);
    last_tile t;

    t.row = (int32_t)down * call->tile_rows;
    t.col = (int32_t)(rest - down * call->across.by) * call->tile_cols;
    t.at = (int64_t)matrix * call->rows * call->cols;
    return t;
}

#define WORDS (TNCUDA_LAST_TILE / 2)                 /* of a row of a tile: two elements each */
#define WARPS (TNCUDA_BLOCK_THREADS / WORDS)         /* rows that a block reads at once */
#define EACH_READ (TNCUDA_LAST_TILE / WARPS)         /* words that a thread reads */
#define SLOT(row) (((row) >> 1) + ((row)&1) * WORDS) /* even rows first: neighbours lie in other banks */

/* Elements of 2 bytes, two at a time: rows and columns are even. */
TNCUDA_KERNEL(last_pairs, SYNC, tncuda_last_args)
{
    TNCUDA_SHARED(uint32_t, part, TNCUDA_LAST_TILE * (WORDS + 1));
    const int32_t lane = TNCUDA_THREAD % WORDS, first = TNCUDA_THREAD / WORDS;

    for (int64_t b = TNCUDA_BLOCK; b < call->tiles; b += TNCUDA_BLOCKS) {
        const last_tile t = last_tile_of(call, b);
        const uint32_t *from = (const uint32_t *)(const void *)((const uint16_t *)call->from + t.at);
        uint32_t *to = (uint32_t *)(void *)((uint16_t *)call->to + t.at);
        uint32_t v[EACH_READ];

        TNCUDA_UNROLL
        for (int32_t k = 0; k < EACH_READ; k++) {
            const int32_t r = k * WARPS + first;

            v[k] = 0;
            if (t.row + r < call->rows && t.col + 2 * lane < call->cols)
                v[k] = from[((int64_t)(t.row + r) * call->cols + t.col) / 2 + lane];
        }
        TNCUDA_UNROLL
        for (int32_t k = 0; k < EACH_READ; k++)
            TNCUDA_PUT(part, SLOT(k * WARPS + first) * (WORDS + 1) + lane, v[k]);
        TNCUDA_SYNC();
        TNCUDA_UNROLL
        for (int32_t k = 0; k < EACH_READ / 2; k++) {
            const int32_t pair = k * WARPS + first, c = t.col + 2 * pair;

            if (c < call->cols && t.row + 2 * lane < call->rows) {
                const uint32_t above = TNCUDA_GET(part, lane * (WORDS + 1) + pair),
                               below = TNCUDA_GET(part, (WORDS + lane) * (WORDS + 1) + pair);
                const int64_t at = ((int64_t)c * call->rows + t.row) / 2 + lane;

                to[at] = (above & 0xffffu) | below << 16;
                to[at + call->rows / 2] = above >> 16 | (below & 0xffff0000u);
            }
        }
        TNCUDA_SYNC();
    }
}

/* Any matrix: the tiles of one with few rows are wide, of one with few columns high. */
#define LAST_STRIP(bytes, type)                                                                              \
    TNCUDA_KERNEL(last_strip_##bytes, SYNC, tncuda_last_args)                                                \
    {                                                                                                        \
        TNCUDA_SHARED(type, part, TNCUDA_LAST_ROOM);                                                         \
        const int32_t count = call->tile_rows * call->tile_cols;                                             \
                                                                                                             \
        for (int64_t b = TNCUDA_BLOCK; b < call->tiles; b += TNCUDA_BLOCKS) {                                \
            const last_tile t = last_tile_of(call, b);                                                       \
            const type *from = (const type *)call->from + t.at;                                              \
            type *to = (type *)call->to + t.at;                                                              \
                                                                                                             \
            TNCUDA_UNROLL_4                                                                                  \
            for (int32_t e = TNCUDA_THREAD; e < count; e += TNCUDA_BLOCK_THREADS) {                          \
                const int32_t r = (int32_t)divided(&call->by_cols, (uint32_t)e),                             \
                              c = e - r * call->tile_cols;                                                   \
                                                                                                             \
                if (t.row + r < call->rows && t.col + c < call->cols)                                        \
                    TNCUDA_PUT(part, r * call->pitch + c,                                                    \
                               from[(int64_t)(t.row + r) * call->cols + t.col + c]);                         \
            }                                                                                                \
            TNCUDA_SYNC();                                                                                   \
            TNCUDA_UNROLL_4                                                                                  \
            for (int32_t e = TNCUDA_THREAD; e < count; e += TNCUDA_BLOCK_THREADS) {                          \
                const int32_t c = (int32_t)divided(&call->by_rows, (uint32_t)e),                             \
                              r = e - c * call->tile_rows;                                                   \
                                                                                                             \
                if (t.row + r < call->rows && t.col + c < call->cols)                                        \
                    to[(int64_t)(t.col + c) * call->rows + t.row + r] =                                      \
                        TNCUDA_GET(part, r * call->pitch + c);                                               \
            }                                                                                                \
            TNCUDA_SYNC();                                                                                   \
        }                                                                                                    \
    }
LAST_STRIP(2, uint16_t)
LAST_STRIP(4, uint32_t)
