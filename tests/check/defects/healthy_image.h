/*
 * A format of images that is well: "ACPX", two bytes each for width and height, one for the channels, the
 * pixels, one byte that is their sum.
 */
#ifndef TN_DEFECTS_HEALTHY_IMAGE_H
#define TN_DEFECTS_HEALTHY_IMAGE_H

#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/image.h"

#define HEAD_BYTES 9u

static inline int32_t healthy_probe(void *plugin, const void *head, uint64_t bytes)
{
    (void)plugin;
    return bytes >= 4 && !memcmp(head, "ACPX", 4);
}

static inline tn_status healthy_info(void *plugin, const void *data, uint64_t bytes, tn_image_info *out,
                                     tn_err *err)
{
    const uint8_t *head = data;

    if (bytes < HEAD_BYTES || !healthy_probe(plugin, data, bytes))
        return tn_fail(err, TN_E_FORMAT, "no image, or its head ends early");
    out->width = head[4] | head[5] << 8;
    out->height = head[6] | head[7] << 8;
    out->channels = head[8];
    out->bits = 8;
    out->shift_max = 0;
    out->orientation = 0;
    if (!out->width || !out->height || (out->channels != 1 && out->channels != 3))
        return tn_fail(err, TN_E_FORMAT, "an image of no such size");
    return TN_OK;
}

static inline tn_status body_check(const uint8_t *data, uint64_t bytes, const tn_image_info *i, tn_err *err)
{
    const uint64_t size = (uint64_t)i->width * (uint64_t)i->height * (uint64_t)i->channels;
    uint8_t sum = 0;

    if (bytes < HEAD_BYTES + size + 1)
        return tn_fail(err, TN_E_FORMAT, "the image ends early");
    for (uint64_t k = 0; k < size; k++)
        sum = (uint8_t)(sum + data[HEAD_BYTES + k]);
    return sum == data[HEAD_BYTES + size] ? TN_OK : tn_fail(err, TN_E_FORMAT, "another sum");
}

static inline tn_status part_check(const tn_image_part *p, const tn_image_info *i, tn_err *err)
{
    if (p->shift || p->x < 0 || p->y < 0 || p->width < 1 || p->height < 1 || p->x > i->width - p->width ||
        p->y > i->height - p->height || (p->channels != 1 && p->channels != 3 && p->channels != 4) ||
        p->stride < (int64_t)p->width * p->channels)
        return tn_fail(err, TN_E_ARG, "no such part");
    return TN_OK;
}

static inline tn_status healthy_decode(void *plugin, const void *data, uint64_t bytes, const tn_image_part *p,
                                       tn_err *err)
{
    const uint8_t *pixels = (const uint8_t *)data + HEAD_BYTES;
    tn_image_info i = {.struct_size = sizeof i};
    tn_status st;

    if ((st = healthy_info(plugin, data, bytes, &i, err)) || (st = body_check(data, bytes, &i, err)) ||
        (st = part_check(p, &i, err)))
        return st;
    for (int32_t y = 0; y < p->height; y++)
        for (int32_t x = 0; x < p->width; x++) {
            const uint8_t *from = pixels + ((p->y + y) * i.width + p->x + x) * i.channels;
            uint8_t *to = p->out + y * p->stride + x * p->channels;

            for (int32_t c = 0; c < p->channels; c++)
                to[c] = c == 3 ? 255 : from[i.channels == 1 ? 0 : c];
        }
    return TN_OK;
}

static inline tn_status healthy_encode(void *plugin, const tn_image_output *to, tn_err *err)
{
    const size_t row = (size_t)(to->width * to->channels), size = row * (size_t)to->height;
    uint8_t *file = malloc(HEAD_BYTES + size + 1), *at = file;
    tn_status st;

    (void)plugin;
    if (!file)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    memcpy(at, "ACPX", 4);
    at[4] = (uint8_t)to->width;
    at[5] = (uint8_t)(to->width >> 8);
    at[6] = (uint8_t)to->height;
    at[7] = (uint8_t)(to->height >> 8);
    at[8] = (uint8_t)to->channels;
    at += HEAD_BYTES;
    for (int32_t y = 0; y < to->height; y++)
        memcpy(at + (size_t)y * row, to->data + y * to->stride, row);
    at[size] = 0;
    for (size_t k = 0; k < size; k++)
        at[size] = (uint8_t)(at[size] + at[k]);
    st = to->write(to->self, file, HEAD_BYTES + size + 1, err);
    free(file);
    return st;
}

/* An image format that is well but for the functions given. */
#define IMAGE(NAME, ...)                                                                                     \
    static const char *const extensions[] = {"acpx", NULL};                                                  \
    static const tn_image_ops image_ops = {.head =                                                           \
                                               TN_CAPABILITY(tn_image_ops, encode, TN_KIND_IMAGE, "acme"),   \
                                           .extensions = extensions,                                         \
                                           .probe = healthy_probe,                                           \
                                           __VA_ARGS__};                                                     \
    static const tn_capability *const tables[] = {&image_ops.head, NULL};                                    \
    TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "images", "", "image:acme", NULL, NULL, NULL,      \
                     tables)

#endif
