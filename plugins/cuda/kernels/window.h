/* Where elements of (batch, channels, d, h, w) lie, channels second or last; a space is d, h, w. */
#ifndef TNCUDA_WINDOW_H
#define TNCUDA_WINDOW_H

#include "element.h"

#define SPACE_SIZE(extent) ((extent)[0] * (extent)[1] * (extent)[2])

/* The first element of channel `c` of image `n`, and how far the next one of its space is. */
#define PLANE_AT(n, c, channels, space)                                                                      \
    (call->last ? (n) * (space) * (channels) + (c) : ((n) * (channels) + (c)) * (space))
#define PLANE_STEP(channels) (call->last ? (channels) : 1)

/* Of element i: image, channel, and the place p in space. */
typedef struct window_spot {
    int64_t n, c, p[TNCUDA_SPACE];
} window_spot;

TNCUDA_INLINE window_spot window_spot_of(int32_t last, int64_t i, int64_t channels, const int64_t *extent)
{
    const int64_t space = SPACE_SIZE(extent), within = last ? i / channels % space : i % space;
    window_spot s;

    s.n = i / channels / space;
    s.c = last ? i % channels : i / space % channels;
    s.p[0] = within / extent[2] / extent[1];
    s.p[1] = within / extent[2] % extent[1];
    s.p[2] = within % extent[2];
    return s;
}

/* Where tap `k` of window `o` reads along one axis, below 0: outside; the window whose tap `k` reads at `at`,
 * -1: there is none. */
TNCUDA_INLINE int64_t window_tap(const tncuda_window_args *call, int32_t axis, int64_t o, int64_t k)
{
    const int64_t at = o * call->stride[axis] - call->pad[axis] + k * call->dilate[axis];

    return at < call->in[axis] ? at : -1; /* below 0 in front */
}

TNCUDA_INLINE int64_t window_back(const tncuda_window_args *call, int32_t axis, int64_t at, int64_t k)
{
    const int64_t from = at + call->pad[axis] - k * call->dilate[axis], o = from / call->stride[axis];

    return from < 0 || o >= call->out[axis] || o * call->stride[axis] != from ? -1 : o;
}

TNCUDA_INLINE int64_t window_of_tap(const tncuda_window_args *call, int32_t axis, int64_t k, int64_t o)
{
    return window_tap(call, axis, o, k);
}

/* Three loops, whose first two leave rows out that do not exist. */
#define EACH_ROW(extent, p, find, along, q)                                                                  \
    for ((p)[0] = 0; (p)[0] < (extent)[0]; (p)[0]++)                                                         \
        if (((q)[0] = find(call, 0, (along)[0], (p)[0])) >= 0)                                               \
            for ((p)[1] = 0; (p)[1] < (extent)[1]; (p)[1]++)                                                 \
                if (((q)[1] = find(call, 1, (along)[1], (p)[1])) >= 0)
#define ROW_OF(extent, p) (((p)[0] * (extent)[1] + (p)[1]) * (extent)[2])

#endif
