/* Out of memory is called a wrong image. */
#include "healthy_image.h"

static tn_status encode(void *plugin, const tn_image_output *to, tn_err *err)
{
    const tn_status st = healthy_encode(plugin, to, err);

    return st == TN_E_NOMEM ? tn_fail(err, TN_E_ARG, "no such image") : st;
}

IMAGE("defect-image-memory", .info = healthy_info, .decode = healthy_decode, .encode = encode);
