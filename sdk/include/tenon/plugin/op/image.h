/** Attributes of the operators of the family image. */
#ifndef TENON_PLUGIN_OP_IMAGE_H
#define TENON_PLUGIN_OP_IMAGE_H

#include "../attr.h"

#define TN_image_crop_ATTRS(X)                                                                               \
    X(image_crop, INT, x, TN_REQUIRED, TN_IN(0, 1e9), "first column")                                        \
    X(image_crop, INT, y, TN_REQUIRED, TN_IN(0, 1e9), "first row")                                           \
    X(image_crop, INT, width, TN_REQUIRED, TN_IN(1, 1e9), "columns")                                         \
    X(image_crop, INT, height, TN_REQUIRED, TN_IN(1, 1e9), "rows")
TN_ATTRS(image_crop);

#define TN_image_normalize_ATTRS(X)                                                                          \
    X(image_normalize, FLOATS, mean, "[0,0,0,0]", TN_ANY, "of each channel, or one for all")                 \
    X(image_normalize, FLOATS, std, "[1,1,1,1]", TN_ANY, "of each channel, or one for all")
TN_ATTRS(image_normalize);

#define TN_image_resize_ATTRS(X)                                                                             \
    X(image_resize, TUPLE, size, "[]", TN_IN(1, 1e9), "(width, height), or one for both")                    \
    X(image_resize, BOOL, keep_ratio, "0", TN_ANY, "of one size: it is that of the short edge")              \
    X(image_resize, INT, interp, "1", TN_IN(0, 3), "0 nearest, 1 linear, 2 cubic, 3 means of areas")
TN_ATTRS(image_resize);

#define TN_image_adjust_lighting_ATTRS(X)                                                                    \
    X(image_adjust_lighting, FLOATS, alpha, TN_REQUIRED, TN_ANY, "three: of the principal colours")
TN_ATTRS(image_adjust_lighting);

/* _image_random_brightness, _contrast, _saturation, _hue */
#define TN_image_random_ATTRS(X)                                                                             \
    X(image_random, FLOAT, min_factor, TN_REQUIRED, TN_IN(0, 1e30), "least factor")                          \
    X(image_random, FLOAT, max_factor, TN_REQUIRED, TN_IN(0, 1e30), "largest factor")
TN_ATTRS(image_random);

#define TN_image_random_color_jitter_ATTRS(X)                                                                \
    X(image_random_color_jitter, FLOAT, brightness, TN_REQUIRED, TN_ANY, "how far the factor may be from 1") \
    X(image_random_color_jitter, FLOAT, contrast, TN_REQUIRED, TN_ANY, "how far the factor may be from 1")   \
    X(image_random_color_jitter, FLOAT, saturation, TN_REQUIRED, TN_ANY, "how far the factor may be from 1") \
    X(image_random_color_jitter, FLOAT, hue, TN_REQUIRED, TN_ANY, "how far the turn may be from 0")
TN_ATTRS(image_random_color_jitter);

#define TN_image_random_lighting_ATTRS(X)                                                                    \
    X(image_random_lighting, FLOAT, alpha_std, "0.0500000007", TN_IN(0, 1e30), "deviation of the three")
TN_ATTRS(image_random_lighting);

#endif
