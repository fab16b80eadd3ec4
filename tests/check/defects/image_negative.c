/* Decodes the negative. */
#include "healthy_image.h"

static tn_status decode(void *plugin, const void *data, uint64_t bytes, const tn_image_part *p, tn_err *err)
{
    const tn_status st = healthy_decode(plugin, data, bytes, p, err);

    for (int32_t y = 0; !st && y < p->height; y++)
        for (int32_t i = 0; i < p->width * p->channels; i++)
            p->out[y * p->stride + i] ^= 255;
    return st;
}

IMAGE("defect-image-negative", .info = healthy_info, .decode = decode, .encode = healthy_encode);
