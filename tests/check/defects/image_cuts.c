/* A part that reaches over the right edge is cut instead of refused. */
#include "healthy_image.h"

static tn_status decode(void *plugin, const void *data, uint64_t bytes, const tn_image_part *p, tn_err *err)
{
    tn_image_info i = {.struct_size = sizeof i};
    tn_image_part cut = *p;

    if (!healthy_info(plugin, data, bytes, &i, err) && p->x > 0 && p->x < i.width &&
        p->width > i.width - p->x)
        cut.width = i.width - p->x;
    return healthy_decode(plugin, data, bytes, &cut, err);
}

IMAGE("defect-image-cuts", .info = healthy_info, .decode = decode, .encode = healthy_encode);
