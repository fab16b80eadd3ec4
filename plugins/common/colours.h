/* Changes of colours: which there are, and what MXNet's grey and light are. In C and CUDA. */
#ifndef TNB_COLOURS_H
#define TNB_COLOURS_H

#include <float.h>
#include <math.h>

#include "storage.h"

enum { TNB_BRIGHTNESS, TNB_CONTRAST, TNB_SATURATION, TNB_HUE, TNB_LIGHTING };

/* A change of one image's colours: a factor, or three summands. */
typedef struct tnb_change {
    int32_t kind, reserved;
    double alpha, add[3];
} tnb_change;

/* What red, green and blue count for in grey. */
TNB_INLINE float tnb_grey(int32_t channel)
{
    return channel == 0 ? 0.299f : channel == 1 ? 0.587f : 0.114f;
}

/* What multiples of the eigenvectors of ImageNet's colours, times their eigenvalues, add. */
TNB_INLINE void tnb_light(const double *alpha, double *add)
{
    add[0] = 55.46 * -0.5675 * alpha[0] + 4.794 * 0.7192 * alpha[1] + 1.148 * 0.4009 * alpha[2];
    add[1] = 55.46 * -0.5808 * alpha[0] + 4.794 * -0.0045 * alpha[1] + 1.148 * -0.8140 * alpha[2];
    add[2] = 55.46 * -0.5836 * alpha[0] + 4.794 * -0.6948 * alpha[1] + 1.148 * 0.4203 * alpha[2];
}

/* Box and Muller, of two numbers in [0, 1). */
TNB_INLINE double tnb_light_normal(double deviation, double u, double v)
{
    return deviation * sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

/* Rows of the family's table. */
#define IMAGE_ROWS(FLIP, COLOURS)                                                                            \
    FLIP("flip_left_right", left_right_run), FLIP("flip_top_bottom", top_bottom_run),                        \
        FLIP("random_flip_left_right", random_left_right_run),                                               \
        FLIP("random_flip_top_bottom", random_top_bottom_run),                                               \
        COLOURS("adjust_lighting", adjust_lighting_run), COLOURS("random_brightness", brightness_run),       \
        COLOURS("random_contrast", contrast_run), COLOURS("random_saturation", saturation_run),              \
        COLOURS("random_hue", hue_run), COLOURS("random_color_jitter", jitter_run),                          \
        COLOURS("random_lighting", random_lighting_run)

#endif
