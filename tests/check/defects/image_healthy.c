/* What the defects of images are planted in. */
#include "healthy_image.h"

IMAGE("defect-image-healthy", .info = healthy_info, .decode = healthy_decode, .encode = healthy_encode);
