/**
 * A plugin that decodes and encodes images: bytes of a file to rows of pixels and back.
 *
 * Pixels are uint8, row by row, (height, width, channels): 1 channel is grey, 3 are red, green, blue, 4 have
 * alpha behind them. The host may ask for a part of the image, at a half, a quarter or an eighth of its size
 * where the format has that cheaply. A part has the same pixels as the whole image has there.
 *
 * No size in a file is trusted: the plugin has limits for pixels and memory, and refuses a damaged file with
 * the place of the damage. Data is the host's memory, and stays until the function returns. All functions are
 * [any]: several threads may decode at once.
 */
#ifndef TENON_PLUGIN_IMAGE_H
#define TENON_PLUGIN_IMAGE_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the head of a file says. */
typedef struct tn_image_info {
    uint32_t struct_size;
    int32_t width, height;
    int32_t channels;    /* as stored: 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha, or CMYK */
    int32_t bits;        /* of a channel, as stored */
    int32_t shift_max;   /* decode gives 1/2^shift of the size, up to this one */
    int32_t orientation; /* EXIF's, 1 to 8; 0: the file has none. decode does not turn the image */
    int32_t reserved;
} tn_image_info;

/** What is decoded, and where it goes. Alpha that is not asked for is left out; where the file has none it is
 * 255. */
typedef struct tn_image_part {
    uint32_t struct_size;
    int32_t channels;            /* 1, 3 or 4 */
    int32_t shift;               /* the image has ceil(width / 2^shift) x ceil(height / 2^shift) pixels */
    int32_t x, y, width, height; /* a part of that, which lies in it, not empty */
    int32_t reserved;
    uint8_t *out;
    int64_t
        stride; /* bytes from a row to the next, at least width * channels; those between stay as they are */
} tn_image_part;

/** An image that is encoded, and the host's file for it. */
typedef struct tn_image_output {
    uint32_t struct_size;
    int32_t width, height, channels; /* 1, 3, or 4 where the format has alpha */
    int32_t quality;                 /* 0: the format's own; JPEG: 1 to 100, PNG: zlib's level, 1 to 9 */
    int32_t reserved;
    const uint8_t *data;
    int64_t stride;
    void *self;
    /** Appends to the file. */
    tn_status (*write)(void *self, const void *data, uint64_t bytes, tn_err *err);
} tn_image_output;

typedef struct tn_image_ops {
    tn_capability head;            /* kind TN_KIND_IMAGE, id: the format, "jpeg" */
    const char *const *extensions; /* "jpg", "jpeg": in lower case, without a dot; NULL-ended */
    /** 1: a file that begins with these bytes (at most 64) may be one. */
    int32_t (*probe)(void *plugin, const void *head, uint64_t bytes);
    /** Reads the head alone. TN_E_FORMAT: damaged · TN_E_NOMEM: over a limit. */
    tn_status (*info)(void *plugin, const void *data, uint64_t bytes, tn_image_info *out, tn_err *err);
    /** TN_E_ARG: no such part · TN_E_FORMAT: damaged, as far as the part needs the file: all of it if the
     * part has the last row · TN_E_UNSUPPORTED: a form of the format that is not known · TN_E_NOMEM: over a
     * limit. What was written to `out` before a failure means nothing. */
    tn_status (*decode)(void *plugin, const void *data, uint64_t bytes, const tn_image_part *part,
                        tn_err *err);
    /** TN_E_ARG: no such image, channels or quality; a failure of `write` is the call's. */
    tn_status (*encode)(void *plugin, const tn_image_output *to, tn_err *err);
} tn_image_ops;

#ifdef __cplusplus
}
#endif

#endif
