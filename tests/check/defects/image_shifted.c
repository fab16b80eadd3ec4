/* A part begins one column further to the right, where there is one. */
#include "healthy_image.h"

static tn_status decode(void *plugin, const void *data, uint64_t bytes, const tn_image_part *p, tn_err *err)
{
    tn_image_info i = {.struct_size = sizeof i};
    tn_image_part other = *p;

    if (!healthy_info(plugin, data, bytes, &i, err) && p->x > 0 && p->x + p->width < i.width)
        other.x++;
    return healthy_decode(plugin, data, bytes, &other, err);
}

IMAGE("defect-image-shifted", .info = healthy_info, .decode = decode, .encode = healthy_encode);
