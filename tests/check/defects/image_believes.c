/* Rows that the file lacks are taken for black. */
#include "healthy_image.h"

static tn_status decode(void *plugin, const void *data, uint64_t bytes, const tn_image_part *p, tn_err *err)
{
    tn_image_info i = {.struct_size = sizeof i};
    tn_status st = healthy_info(plugin, data, bytes, &i, err);

    if (st || (st = part_check(p, &i, err)))
        return st;
    if (!body_check(data, bytes, &i, NULL))
        return healthy_decode(plugin, data, bytes, p, err);
    for (int32_t y = 0; y < p->height; y++)
        memset(p->out + y * p->stride, 0, (size_t)(p->width * p->channels));
    return TN_OK;
}

IMAGE("defect-image-believes", .info = healthy_info, .decode = decode, .encode = healthy_encode);
