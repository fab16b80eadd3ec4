/*
 * Images in files. A plugin knows the format; which one, the first bytes say, or a name.
 */
#include "tenon/plugin/image.h"
#include "io/internal.h"
#include "tenon/image.h"

#define HEAD_BYTES 64u

typedef struct found {
    const tn_image_ops *ops;
    tni_plugin *plugin;
} found;

static bool named(const tn_image_ops *o, const char *format)
{
    if (!strcmp(o->head.id, format))
        return true;
    for (const char *const *e = o->extensions; *e; e++)
        if (!strcmp(*e, format))
            return true;
    return false;
}

/* By name, or by what the file begins with. */
static tn_status kind_find(tni_registry *r, const char *format, const void *data, uint64_t bytes, found *out)
{
    const uint64_t head = bytes < HEAD_BYTES ? bytes : HEAD_BYTES;
    char why[TNI_PLUGIN_WHY_BYTES] = "";
    const tn_capability *table;
    tn_status st = tni_registry_load_providers(r, "image", NULL);
    bool any = false;

    if (st)
        return st;
    for (size_t i = 0; tni_registry_capability(r, TN_KIND_IMAGE, i, &table, &out->plugin); i++) {
        out->ops = (const tn_image_ops *)(const void *)table;
        any = true;
        if (format ? named(out->ops, format) : out->ops->probe(out->plugin->self, data, head) == 1)
            return TN_OK;
    }
    if (any && format)
        return tni_error(TN_E_ARG, "no plugin writes images as \"%.40s\"; jpeg and png are usual", format);
    if (any)
        return tni_error(TN_E_FORMAT, "this is no image of a known format: JPEG and PNG are");
    (void)tni_registry_lacks(r, "image", why);
    return tni_error_number(1304, TN_E_UNSUPPORTED, "images need the plugin image; %s", why);
}

static tn_status info_get(const found *kind, const void *data, uint64_t bytes, tn_image_about *out)
{
    tn_image_info i = {.struct_size = (uint32_t)sizeof i};
    tn_err err = {0};
    tn_status st = kind->ops->info(kind->plugin->self, data, bytes, &i, &err);

    if (st)
        return tni_error_take(st, &err, kind->ops->head.id);
    if (i.width < 1 || i.height < 1 || i.shift_max < 0 || i.shift_max > 16)
        return tni_error(TN_E_INTERNAL, "%s says that an image has %d x %d pixels", kind->ops->head.id,
                         (int)i.width, (int)i.height);
    *out = (tn_image_about){.struct_size = (uint32_t)sizeof *out,
                            .width = i.width,
                            .height = i.height,
                            .channels = i.channels,
                            .bits = i.bits,
                            .shift_max = i.shift_max,
                            .orientation = i.orientation,
                            .format = kind->ops->head.id};
    return TN_OK;
}

tn_status tni_image_look(tni_registry *r, const void *data, uint64_t bytes, tn_image_about *out)
{
    found kind;
    tn_status st = kind_find(r, NULL, data, bytes, &kind);

    return st ? st : info_get(&kind, data, bytes, out);
}

/* Sizes that are left open become those of the image. */
static tn_status part_fill(const found *kind, const void *data, uint64_t bytes, tn_image_part *p)
{
    tn_image_about a;
    tn_status st;

    if (!p->channels)
        p->channels = 3;
    if (p->width && p->height)
        return TN_OK;
    if ((st = info_get(kind, data, bytes, &a)))
        return st;
    if (p->shift < 0 || p->shift > a.shift_max)
        return tni_error(TN_E_ARG, "a scale of 1/2^%d, %s has 0 to %d", (int)p->shift, a.format,
                         (int)a.shift_max);
    if (!p->width)
        p->width = (int32_t)(((int64_t)a.width + (1 << p->shift) - 1) >> p->shift) - p->x;
    if (!p->height)
        p->height = (int32_t)(((int64_t)a.height + (1 << p->shift) - 1) >> p->shift) - p->y;
    return TN_OK;
}

static tn_status part_take(const found *kind, const void *data, uint64_t bytes, const tn_image_options *o,
                           tn_image_part *p)
{
    tn_status st;

    *p = (tn_image_part){.struct_size = (uint32_t)sizeof *p,
                         .channels = o->channels,
                         .shift = o->shift,
                         .x = o->x,
                         .y = o->y,
                         .width = o->width,
                         .height = o->height};
    if (p->x < 0 || p->y < 0 || p->width < 0 || p->height < 0)
        return tni_error(TN_E_ARG, "an image has no part of %d x %d pixels from (%d, %d) on", (int)p->width,
                         (int)p->height, (int)p->x, (int)p->y);
    if ((st = part_fill(kind, data, bytes, p)))
        return st;
    if (p->width < 1 || p->height < 1 || (p->channels != 1 && p->channels != 3 && p->channels != 4))
        return tni_error(TN_E_ARG, "%d x %d pixels from (%d, %d) on of %d channels are no part of an image",
                         (int)p->width, (int)p->height, (int)p->x, (int)p->y, (int)p->channels);
    return TN_OK;
}

static tn_status part_decode(const found *kind, const void *data, uint64_t bytes, const tn_image_part *p)
{
    tn_err err = {0};
    tn_status st = kind->ops->decode(kind->plugin->self, data, bytes, p, &err);

    return st ? tni_error_take(st, &err, kind->ops->head.id) : TN_OK;
}

tn_status tni_image_read(tni_registry *r, const void *data, uint64_t bytes, const tn_image_options *options,
                         void *out, uint64_t room, int64_t stride)
{
    tn_image_part p;
    found kind;
    int64_t row;
    tn_status st;

    if ((st = kind_find(r, NULL, data, bytes, &kind)) || (st = part_take(&kind, data, bytes, options, &p)))
        return st;
    row = (int64_t)p.width * p.channels;
    if (stride < row || stride > INT32_MAX || (uint64_t)((p.height - 1) * stride + row) > room)
        return tni_error(TN_E_ARG, "%d rows of %lld bytes, %lld bytes apart, do not fit into %llu bytes",
                         (int)p.height, (long long)row, (long long)stride, (unsigned long long)room);
    p.out = out;
    p.stride = stride;
    return part_decode(&kind, data, bytes, &p);
}

tn_status tni_image_decode(tni_space *space, tni_registry *r, const void *data, uint64_t bytes,
                           const tn_image_options *options, tni_array **out)
{
    tn_image_part p;
    tni_device *host;
    tni_array *a = NULL;
    found kind;
    tn_status st;

    if ((st = kind_find(r, NULL, data, bytes, &kind)) || (st = part_take(&kind, data, bytes, options, &p)) ||
        (st = tni_device_get(space->devices, "cpu", 0, &host)))
        return st;
    if (!(st =
              tni_array_fresh(space, host, TN_U8, 3, (const int64_t[]){p.height, p.width, p.channels}, &a))) {
        p.out = tni_array_data(a);
        p.stride = (int64_t)p.width * p.channels;
        st = part_decode(&kind, data, bytes, &p);
    }
    if (st)
        tni_array_release(a);
    else
        *out = a;
    return st;
}

/* ---- encoding ---- */

static tn_status text_append(void *self, const void *data, uint64_t bytes, tn_err *err)
{
    tn_status st = tni_str_add_bytes(self, data, bytes);

    if (st)
        tni_error_get(err);
    return st;
}

static tn_status shape_take(const tni_array *a, tn_image_output *to)
{
    const int32_t ndim = a->ndim;
    const int64_t *shape = a->shape;

    if (a->dtype != TN_U8)
        return tni_error(TN_E_DTYPE, "an image is encoded from uint8, not %s", tn_dtype_name(a->dtype));
    if (ndim < 2 || ndim > 3 || shape[0] < 1 || shape[1] < 1 || shape[0] > INT32_MAX ||
        shape[1] > INT32_MAX || (ndim == 3 && (shape[2] < 1 || shape[2] > 4)))
        return tni_error(TN_E_SHAPE, "an image is encoded from (height, width, channels)");
    to->height = (int32_t)shape[0];
    to->width = (int32_t)shape[1];
    to->channels = ndim == 3 ? (int32_t)shape[2] : 1;
    to->stride = (int64_t)to->width * to->channels;
    return TN_OK;
}

tn_status tni_image_encode(tni_registry *r, tni_array *pixels, const char *format, int32_t quality,
                           void **data, uint64_t *bytes)
{
    tn_image_output to = {.struct_size = (uint32_t)sizeof to, .quality = quality, .write = text_append};
    const void *from = NULL;
    void *copy = NULL;
    char *taken = NULL;
    uint64_t length;
    tn_err err = {0};
    tni_str text;
    found kind;
    tn_status st;

    tni_str_init(&text, INT32_MAX);
    if ((st = tni_array_borrow(pixels, &from, &copy)) || (st = shape_take(pixels, &to)) ||
        (st = kind_find(r, format, NULL, 0, &kind)))
        goto cleanup;
    to.data = from;
    to.self = &text;
    if ((st = kind.ops->encode(kind.plugin->self, &to, &err)))
        st = tni_error_take(st, &err, kind.ops->head.id);
    length = text.length;
    if (!st && !(st = tni_str_take(&text, &taken))) {
        *data = taken;
        *bytes = length;
    }

cleanup:
    tni_free(copy);
    tni_str_fini(&text);
    return st;
}
