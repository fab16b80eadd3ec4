/* Regions of images: which pixels a part of one has. In C and CUDA. */
#ifndef TNB_REGION_H
#define TNB_REGION_H

#include "storage.h"

/* Pixels first … end-1 of both axes; nothing where end <= first. */
typedef struct tnb_part {
    int64_t first[2], end[2];
} tnb_part;

TNB_INLINE int64_t tnb_within(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* Cut to the image. */
TNB_INLINE tnb_part tnb_part_cut(tnb_part p, const int64_t *size)
{
    for (int32_t k = 0; k < 2; k++) {
        p.first[k] = tnb_within(p.first[k], 0, size[k]);
        p.end[k] = tnb_within(p.end[k], 0, size[k]);
    }
    return p;
}

TNB_INLINE int32_t tnb_part_empty(const tnb_part *p)
{
    return p->end[0] <= p->first[0] || p->end[1] <= p->first[1];
}

TNB_INLINE int64_t tnb_part_count(const tnb_part *p)
{
    return (p->end[0] - p->first[0]) * (p->end[1] - p->first[1]);
}

/* Far outside of every image, and small enough for sums of them. */
#define TNB_FAR ((int64_t)1 << 40)

/* The image of a region, -1: none. */
TNB_INLINE int64_t tnb_image_of(double number, int64_t count)
{
    const int64_t n = tnb_whole(number, -1, count);

    return number < 0 || n >= count ? -1 : n;
}

/* The channel of PSROIPooling that part (h, w) of output channel `c` has; `given`: the group's size, 0: it is
 * that of the parts. */
TNB_INLINE int64_t tnb_group_channel(int64_t pooled, int64_t given, int64_t c, int64_t h, int64_t w)
{
    const int64_t group = given ? given : pooled;

    return (c * group + h * group / pooled) * group + w * group / pooled;
}

/* Patches of Correlation: y1 = oy * stride1 + reach - pad …, y2 = y1 + dy. */
typedef struct tnb_patches {
    int64_t kernel, stride, from, steps, step, radius;
    int32_t multiply;
} tnb_patches;

/* What ROIAlign is asked for. */
typedef struct tnb_roi_align {
    double scale;
    int64_t asked; /* samples each way, 0: as many as pixels */
    int32_t aligned;
} tnb_roi_align;

#endif
