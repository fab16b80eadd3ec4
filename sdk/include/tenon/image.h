/**
 * Images in files: JPEG and PNG, by plugins that know the format (tenon/plugin/image.h). Pixels are uint8,
 * row by row, (height, width, channels): 1 channel is grey, 3 are red, green, blue, 4 have alpha behind them.
 *
 * Without the plugin a call is TN_E_UNSUPPORTED with TN-1304. A file that is damaged or ends early is
 * TN_E_FORMAT with the place. No call turns an image by EXIF's orientation, as MXNet does not;
 * tn_image_look() gives it.
 */
#ifndef TENON_IMAGE_H
#define TENON_IMAGE_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_image_about {
    uint32_t struct_size; /* TN_SIZE(tn_image_about) */
    int32_t width, height;
    int32_t channels; /* as stored: 1 grey, 2 with alpha, 3 colours, 4 with alpha, or CMYK */
    int32_t bits;
    int32_t shift_max;   /* the largest `shift` that the format has */
    int32_t orientation; /* EXIF's, 1 to 8; 0: none */
    int32_t reserved;
    const char *format; /* "jpeg", "png": of the plugin */
} tn_image_about;

/** What is decoded; NULL: all of it as three channels. */
typedef struct tn_image_options {
    uint32_t struct_size;  /* TN_SIZE(tn_image_options) */
    int32_t channels;      /* 1, 3 or 4; 0: 3. Alpha that the file lacks is 255 */
    int32_t shift;         /* the image has ceil(width / 2^shift) x ceil(height / 2^shift) pixels, */
    int32_t x, y;          /* of which the part from here on is decoded, */
    int32_t width, height; /* so large; 0: up to the edge */
    int32_t reserved;
} tn_image_options;

/**
 * Reads the head of an image.
 * @return TN_E_FORMAT: no plugin knows these bytes, or they are damaged · TN_E_UNSUPPORTED · TN_E_NOMEM: over
 * the limits of the plugin's options
 * @threads any @since 0.1
 */
TN_API tn_status tn_image_look(tn_ctx *ctx, const void *data, uint64_t bytes, tn_image_about *out);

/**
 * Decodes into memory of the program's: rows of pixels, `stride` bytes apart. What a part does not need of
 * the file is not decoded, and not checked.
 *
 * @param room bytes of `out`; TN_E_ARG: the part does not fit, or does not lie in the image
 * @return as tn_image_look()
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_image_read(tn_ctx *ctx, const void *data, uint64_t bytes, const tn_image_options *options,
                               void *out, uint64_t room, int64_t stride);

/** The same as a uint8 array on the host, (height, width, channels), yours. @threads any @since 0.1 */
TN_API tn_status tn_image_decode(tn_ctx *ctx, const void *data, uint64_t bytes,
                                 const tn_image_options *options, tn_array **out);

/**
 * Encodes a uint8 array (height, width, channels) or (height, width).
 *
 * @param format  "jpeg", "png", or an extension of it: "jpg"
 * @param quality JPEG: 1 to 100, PNG: zlib's level, 1 to 9; 0: 95, and 3
 * @param data    yours (tn_free)
 * @return TN_E_ARG: a quality or format that there is not · TN_E_SHAPE · TN_E_DTYPE · TN_E_UNSUPPORTED
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_image_encode(tn_ctx *ctx, tn_array *pixels, const char *format, int32_t quality,
                                 void **data, uint64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
