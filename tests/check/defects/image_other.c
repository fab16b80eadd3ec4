/* A host's file that fails is called a wrong image. */
#include "healthy_image.h"

static tn_status encode(void *plugin, const tn_image_output *to, tn_err *err)
{
    return healthy_encode(plugin, to, err) ? tn_fail(err, TN_E_ARG, "no such image") : TN_OK;
}

IMAGE("defect-image-other", .info = healthy_info, .decode = healthy_decode, .encode = encode);
