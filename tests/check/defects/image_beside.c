/* Writes one pixel behind each row. */
#include "healthy_image.h"

static tn_status decode(void *plugin, const void *data, uint64_t bytes, const tn_image_part *p, tn_err *err)
{
    const tn_status st = healthy_decode(plugin, data, bytes, p, err);

    for (int32_t y = 0; !st && y < p->height; y++)
        if (p->stride > (int64_t)p->width * p->channels)
            p->out[y * p->stride + p->width * p->channels] = 0;
    return st;
}

IMAGE("defect-image-beside", .info = healthy_info, .decode = decode, .encode = healthy_encode);
