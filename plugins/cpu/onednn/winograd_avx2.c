/*
 * Winograd's convolution F(side x side, 3 x 3): tiles of the data and the weight are transformed, multiplied
 * element by element (a matrix product over channels for each), and transformed back.
 *
 * Lavin, Gray: Fast Algorithms for Convolutional Neural Networks, 2016. The points of side 4 are 0, 5/8,
 * -5/8, 3/2, -3/2 and infinity: rounding errors are half of those of 0, 1, -1, 2, -2. Each sum has one order
 * whatever the number of threads and of tiles at a time.
 *
 * Data (channel block, element, tile, 8 channels), products (filter block, element, tile, 8 filters), weight
 * (chunk, element, panel, channel, 16 filters).
 */
#include <immintrin.h>
#include <string.h>

#include "../common/cpu.h"
#include "winograd.h"

#define BLOCK TNDNN_WINO_BLOCK
#define PANEL TNDNN_WINO_PANEL
#define CHUNK TNDNN_WINO_CHUNK
#define EDGE_MAX 6
#define ROWS 6 /* tiles in registers at a time */
#define A 0.625f
#define B 1.5f

/* ---- transforms of one dimension ----------------------------------------------------------------------- */

typedef void transform(const float *x, int64_t x_step, float *y, int64_t y_step);

static inline __m256 scaled(float by, __m256 x)
{
    return _mm256_mul_ps(_mm256_set1_ps(by), x);
}

static inline __m256 added(float by, __m256 x, __m256 to) /* by * x + to */
{
    return _mm256_fmadd_ps(_mm256_set1_ps(by), x, to);
}

static inline void data_4(const float *x, int64_t x_step, float *y, int64_t y_step)
{
    const __m256 d1 = _mm256_loadu_ps(x + x_step), d2 = _mm256_loadu_ps(x + 2 * x_step);

    _mm256_store_ps(y, _mm256_sub_ps(_mm256_loadu_ps(x), d2));
    _mm256_store_ps(y + y_step, _mm256_add_ps(d1, d2));
    _mm256_store_ps(y + 2 * y_step, _mm256_sub_ps(d2, d1));
    _mm256_store_ps(y + 3 * y_step, _mm256_sub_ps(_mm256_loadu_ps(x + 3 * x_step), d1));
}

static inline void output_4(const float *x, int64_t x_step, float *y, int64_t y_step)
{
    const __m256 m1 = _mm256_loadu_ps(x + x_step), m2 = _mm256_loadu_ps(x + 2 * x_step);

    _mm256_store_ps(y, _mm256_add_ps(_mm256_loadu_ps(x), _mm256_add_ps(m1, m2)));
    _mm256_store_ps(y + y_step, _mm256_add_ps(_mm256_sub_ps(m1, m2), _mm256_loadu_ps(x + 3 * x_step)));
}

static inline void data_6(const float *x, int64_t x_step, float *y, int64_t y_step)
{
    const __m256 d1 = _mm256_loadu_ps(x + x_step), d2 = _mm256_loadu_ps(x + 2 * x_step),
                 d3 = _mm256_loadu_ps(x + 3 * x_step), d4 = _mm256_loadu_ps(x + 4 * x_step);
    const __m256 a_even = added(-B * B, d2, d4), a_odd = added(-B * B, d1, d3),
                 b_even = added(-A * A, d2, d4), b_odd = added(-A * A, d1, d3);

    _mm256_store_ps(y, added(A * A * B * B, _mm256_loadu_ps(x), added(-A * A - B * B, d2, d4)));
    _mm256_store_ps(y + y_step, added(A, a_odd, a_even));
    _mm256_store_ps(y + 2 * y_step, added(-A, a_odd, a_even));
    _mm256_store_ps(y + 3 * y_step, added(B, b_odd, b_even));
    _mm256_store_ps(y + 4 * y_step, added(-B, b_odd, b_even));
    _mm256_store_ps(y + 5 * y_step,
                    added(A * A * B * B, d1, added(-A * A - B * B, d3, _mm256_loadu_ps(x + 5 * x_step))));
}

static inline void output_6(const float *x, int64_t x_step, float *y, int64_t y_step)
{
    const __m256 m1 = _mm256_loadu_ps(x + x_step), m2 = _mm256_loadu_ps(x + 2 * x_step),
                 m3 = _mm256_loadu_ps(x + 3 * x_step), m4 = _mm256_loadu_ps(x + 4 * x_step);
    const __m256 a_even = _mm256_add_ps(m1, m2), a_odd = _mm256_sub_ps(m1, m2),
                 b_even = _mm256_add_ps(m3, m4), b_odd = _mm256_sub_ps(m3, m4);

    _mm256_store_ps(y, _mm256_add_ps(_mm256_loadu_ps(x), _mm256_add_ps(a_even, b_even)));
    _mm256_store_ps(y + y_step, added(B, b_odd, scaled(A, a_odd)));
    _mm256_store_ps(y + 2 * y_step, added(B * B, b_even, scaled(A * A, a_even)));
    _mm256_store_ps(y + 3 * y_step,
                    added(B * B * B, b_odd, added(A * A * A, a_odd, _mm256_loadu_ps(x + 5 * x_step))));
}

/* ---- data ---------------------------------------------------------------------------------------------- */

typedef struct tile {
    int64_t image, row, col; /* first output pixel */
} tile;

static inline tile tile_at(const tndnn_wino *w, int64_t index)
{
    const int64_t of_image = w->high * w->wide, in_image = index % of_image;

    return (tile){index / of_image, in_image / w->wide * w->side, in_image % w->wide * w->side};
}

/* The pixels that a tile reads; those of the padding are zeros in `patch`. */
static const float *pixels_of(const tndnn_wino *w, const float *image, tile t, float *patch,
                              int64_t *row_step)
{
    const int64_t edge = w->side + 2, y = t.row - w->pad[0], x = t.col - w->pad[1];
    const int64_t left = tncpu_max(0, -x), right = tncpu_min(edge, w->in[1] - x);

    *row_step = w->in[1] * BLOCK;
    if (y >= 0 && x >= 0 && y + edge <= w->in[0] && x + edge <= w->in[1])
        return image + y * *row_step + x * BLOCK;
    memset(patch, 0, (size_t)(edge * edge * BLOCK) * sizeof *patch);
    for (int64_t i = tncpu_max(0, -y); i < tncpu_min(edge, w->in[0] - y) && left < right; i++)
        memcpy(patch + (i * edge + left) * BLOCK, image + (y + i) * *row_step + (x + left) * BLOCK,
               (size_t)((right - left) * BLOCK) * sizeof *patch);
    *row_step = edge * BLOCK;
    return patch;
}

/* Tiles first … first + count - 1 of one block of channels, transformed. */
static inline __attribute__((always_inline)) void data_transform(const tndnn_wino *w, const float *data,
                                                                 int64_t first, int64_t count,
                                                                 int64_t channel_block, float *to,
                                                                 int64_t edge, transform *f)
{
    const int64_t blocks = w->channels / BLOCK, pixels = w->in[0] * w->in[1];
    const int64_t step = tndnn_wino_stride(w) * BLOCK;
    float patch[EDGE_MAX * EDGE_MAX * BLOCK] __attribute__((aligned(32))),
        half[EDGE_MAX * EDGE_MAX * BLOCK] __attribute__((aligned(32)));

    for (int64_t i = 0; i < count; i++, to += BLOCK) {
        const tile t = tile_at(w, first + i);
        int64_t row_step;
        const float *from =
            pixels_of(w, data + (t.image * blocks + channel_block) * pixels * BLOCK, t, patch, &row_step);

        for (int64_t k = 0; k < edge; k++)
            f(from + k * BLOCK, row_step, half + k * BLOCK, edge * BLOCK);
        for (int64_t k = 0; k < edge; k++)
            f(half + k * edge * BLOCK, BLOCK, to + k * edge * step, step);
    }
}

/* ---- products ------------------------------------------------------------------------------------------ */

typedef struct strip { /* some tiles by one panel of filters, for one element */
    const float *data, *weight, *ahead;
    float *product;
    int64_t blocks, data_step, product_step; /* of channels; floats between blocks */
    int64_t ahead_step;                      /* floats that are fetched for each channel */
} strip;

static inline __attribute__((always_inline)) void strip_multiply(const strip *s, const int rows)
{
    const float *weight = s->weight, *ahead = s->ahead;
    __m256 sum[ROWS][2];

#pragma GCC unroll 6
    for (int r = 0; r < rows; r++)
        sum[r][0] = sum[r][1] = _mm256_setzero_ps();
    for (int64_t b = 0; b < s->blocks; b++) {
        const float *data = s->data + b * s->data_step;

#pragma GCC unroll 2
        for (int c = 0; c < BLOCK; c++, weight += PANEL, ahead += s->ahead_step) {
            const __m256 w0 = _mm256_loadu_ps(weight), w1 = _mm256_loadu_ps(weight + BLOCK);

            _mm_prefetch((const char *)ahead, _MM_HINT_T0);
#pragma GCC unroll 6
            for (int r = 0; r < rows; r++) {
                const __m256 d = _mm256_broadcast_ss(data + r * BLOCK + c);

                sum[r][0] = _mm256_fmadd_ps(d, w0, sum[r][0]);
                sum[r][1] = _mm256_fmadd_ps(d, w1, sum[r][1]);
            }
        }
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
        _mm256_store_ps(s->product + r * BLOCK, sum[r][0]);
        _mm256_store_ps(s->product + s->product_step + r * BLOCK, sum[r][1]);
    }
}

#define STRIP(rows)                                                                                          \
    static void strip_##rows(const strip *s)                                                                 \
    {                                                                                                        \
        strip_multiply(s, rows);                                                                             \
    }
STRIP(1)
STRIP(2)
STRIP(3)
STRIP(4)
STRIP(5)
STRIP(6)
static void (*const strips[])(const strip *s) = {NULL, strip_1, strip_2, strip_3, strip_4, strip_5, strip_6};

/* All elements of `count` tiles by the panels of a chunk. While a panel is used the next one is fetched. */
static void chunk_multiply(const tndnn_wino *w, const float *data, int64_t count, const float *weight,
                           int64_t panels, float *product)
{
    const int64_t elements = tndnn_wino_elements(w->side), step = tndnn_wino_stride(w) * BLOCK;
    const int64_t times = tncpu_ceil_div(count, ROWS), few = count / times, more = count % times;
    const int64_t panel_floats = w->channels * PANEL;
    strip s = {.blocks = w->channels / BLOCK,
               .data_step = elements * step,
               .product_step = elements * step,
               .ahead_step = tncpu_ceil_div(PANEL, times)};

    for (int64_t e = 0; e < elements; e++)
        for (int64_t p = 0; p < panels; p++, weight += panel_floats) {
            int64_t at = 0;

            s.weight = weight;
            for (int64_t k = 0; k < times; k++) {
                const int64_t rows = few + (k < more);

                s.ahead = weight + panel_floats + k * w->channels * s.ahead_step;
                s.data = data + e * step + at * BLOCK;
                s.product = product + (2 * p * elements + e) * step + at * BLOCK;
                strips[rows](&s);
                at += rows;
            }
        }
}

/* ---- output -------------------------------------------------------------------------------------------- */

typedef struct finish { /* what follows the sums of one block of filters */
    __m256 bias, low, high;
    const float *addend; /* as the output; may be NULL */
} finish;

/* Keeps what is not a number: it stands second. */
static inline __m256 limited(const finish *f, __m256 y)
{
    return _mm256_min_ps(f->high, _mm256_max_ps(f->low, y));
}

static void tile_write(const tndnn_wino *w, const finish *f, tile t, const float *from, float *output)
{
    const int64_t rows = tncpu_min(w->side, w->out[0] - t.row), cols = tncpu_min(w->side, w->out[1] - t.col);

    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = ((t.row + i) * w->out[1] + t.col) * BLOCK;

        for (int64_t j = 0; j < cols * BLOCK; j += BLOCK) {
            __m256 y = _mm256_add_ps(_mm256_loadu_ps(from + i * w->side * BLOCK + j), f->bias);

            if (f->addend)
                y = _mm256_add_ps(y, _mm256_loadu_ps(f->addend + at + j));
            _mm256_storeu_ps(output + at + j, limited(f, y));
        }
    }
}

static inline __attribute__((always_inline)) void output_transform(const tndnn_wino *w,
                                                                   const tndnn_wino_call *c, int64_t first,
                                                                   int64_t count, int64_t filter_block,
                                                                   const float *product, int64_t side,
                                                                   transform *f)
{
    const int64_t edge = side + 2, step = tndnn_wino_stride(w) * BLOCK;
    const int64_t blocks = w->filters / BLOCK, pixels = w->out[0] * w->out[1];
    float half[EDGE_MAX * EDGE_MAX * BLOCK] __attribute__((aligned(32))),
        made[EDGE_MAX * EDGE_MAX * BLOCK] __attribute__((aligned(32)));
    finish last = {.bias = c->bias ? _mm256_loadu_ps(c->bias + filter_block * BLOCK) : _mm256_setzero_ps(),
                   .low = _mm256_set1_ps(c->low),
                   .high = _mm256_set1_ps(c->high)};

    for (int64_t i = 0; i < count; i++, product += BLOCK) {
        const tile t = tile_at(w, first + i);
        const int64_t at = (t.image * blocks + filter_block) * pixels * BLOCK;

        for (int64_t k = 0; k < edge; k++)
            f(product + k * step, edge * step, half + k * BLOCK, edge * BLOCK);
        for (int64_t k = 0; k < side; k++)
            f(half + k * edge * BLOCK, BLOCK, made + k * side * BLOCK, BLOCK);
        last.addend = c->addend ? c->addend + at : NULL;
        tile_write(w, &last, t, made, c->output + at);
    }
}

/* ---- run ----------------------------------------------------------------------------------------------- */

static void data_task(const tndnn_wino *w, const tndnn_wino_call *c, int64_t first, int64_t count,
                      int64_t channel_block, float *to)
{
    to += channel_block * tndnn_wino_elements(w->side) * tndnn_wino_stride(w) * BLOCK;
    if (w->side == 4)
        data_transform(w, c->data, first, count, channel_block, to, 6, data_6);
    else
        data_transform(w, c->data, first, count, channel_block, to, 4, data_4);
}

static void chunk_task(const tndnn_wino *w, const tndnn_wino_call *c, int64_t first, int64_t count,
                       int64_t chunk, const float *data, float *product)
{
    const int64_t elements = tndnn_wino_elements(w->side);
    const int64_t panels = tncpu_min(CHUNK, tndnn_wino_panels(w->filters) - chunk * CHUNK);
    const int64_t block = chunk * CHUNK * PANEL / BLOCK,
                  blocks = tncpu_min(CHUNK * PANEL / BLOCK, w->filters / BLOCK - block);
    const int64_t block_floats = elements * tndnn_wino_stride(w) * BLOCK;

    chunk_multiply(w, data, count, c->weight + chunk * CHUNK * PANEL * elements * w->channels, panels,
                   product);
    for (int64_t b = 0; b < blocks; b++)
        if (w->side == 4)
            output_transform(w, c, first, count, block + b, product + b * block_floats, 4, output_6);
        else
            output_transform(w, c, first, count, block + b, product + b * block_floats, 2, output_4);
}

/* The part of tiles first … end - 1 that is group `group`. */
static int64_t group_cut(const tndnn_wino *w, int64_t first, int64_t group, int64_t *count)
{
    const int64_t left = tncpu_min(w->block * w->groups, w->tiles - first),
                  each = tncpu_ceil_div(left, w->groups), from = tncpu_min(left, group * each);

    *count = tncpu_min(each, left - from);
    return first + from;
}

void tndnn_wino_run(const tndnn_wino *w, const tndnn_wino_call *c, float *work, int threads)
{
    const int64_t data_floats = tndnn_wino_data_floats(w), blocks = w->channels / BLOCK,
                  chunks = tncpu_ceil_div(tndnn_wino_panels(w->filters), CHUNK);
    float *products = work + w->groups * data_floats;

#pragma omp parallel num_threads(threads) if (threads > 1)
    for (int64_t first = 0; first < w->tiles; first += w->block * w->groups) {
        float *product = products + tncpu_thread_id() * tndnn_wino_product_floats(w);

#pragma omp for schedule(static)
        for (int64_t i = 0; i < w->groups * blocks; i++) {
            int64_t count, from = group_cut(w, first, i / blocks, &count);

            data_task(w, c, from, count, i % blocks, work + i / blocks * data_floats);
        }
#pragma omp for schedule(static)
        for (int64_t i = 0; i < w->groups * chunks; i++) {
            int64_t count, from = group_cut(w, first, i / chunks, &count);

            if (count)
                chunk_task(w, c, from, count, i % chunks, work + i / chunks * data_floats, product);
        }
    }
}

/* ---- weight -------------------------------------------------------------------------------------------- */

/* G of side 2 and 4, by the points of the transforms above. */
static const double g_2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
#define POINT(x, n)                                                                                          \
    {                                                                                                        \
        1 / (n), (x) / (n), (x) * (x) / (n)                                                                  \
    }
#define A2 (0.625 * 0.625)
#define B2 (1.5 * 1.5)
static const double g_4[6][3] = {POINT(0, A2 *B2),
                                 POINT(0.625, 2 * A2 * (A2 - B2)),
                                 POINT(-0.625, 2 * A2 * (A2 - B2)),
                                 POINT(1.5, 2 * B2 * (B2 - A2)),
                                 POINT(-1.5, 2 * B2 * (B2 - A2)),
                                 {0, 0, 1}};

/* One channel of the filters of a panel; `to`: its place in element 0, `step` floats between elements. */
static void panel_transform(const double (*g)[3], int64_t edge, float (*taps)[PANEL], float *to, int64_t step)
{
    double half[EDGE_MAX][3][PANEL];

    for (int64_t i = 0; i < edge; i++)
        for (int64_t j = 0; j < 3; j++)
            for (int64_t f = 0; f < PANEL; f++)
                half[i][j][f] = g[i][0] * (double)taps[j][f] + g[i][1] * (double)taps[3 + j][f] +
                                g[i][2] * (double)taps[6 + j][f];
    for (int64_t i = 0; i < edge; i++)
        for (int64_t j = 0; j < edge; j++, to += step)
            for (int64_t f = 0; f < PANEL; f++)
                to[f] = (float)(g[j][0] * half[i][0][f] + g[j][1] * half[i][1][f] + g[j][2] * half[i][2][f]);
}

void tndnn_wino_weight(int64_t side, int64_t filters, int64_t channels, const float *from, float *to,
                       int threads)
{
    const int64_t panels = tndnn_wino_panels(filters), elements = tndnn_wino_elements(side);
    const double(*g)[3] = side == 4 ? g_4 : g_2;

#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t p = 0; p < panels; p++) {
        const int64_t first = p / CHUNK * CHUNK, wide = tncpu_min(CHUNK, panels - first);
        float *panel = to + (first * elements + p - first) * PANEL * channels;

        for (int64_t c = 0; c < channels; c++) {
            float taps[9][PANEL] = {{0}};

            for (int64_t f = 0; f < tncpu_min(PANEL, filters - p * PANEL); f++)
                for (int64_t k = 0; k < 9; k++)
                    taps[k][f] = from[((p * PANEL + f) * channels + c) * 9 + k];
            panel_transform(g, side + 2, taps, panel + c * PANEL, wide * PANEL * channels);
        }
    }
}
