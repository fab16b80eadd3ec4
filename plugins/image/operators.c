/*
 * The operators _cvimdecode, _cvimread, _cvimresize and _cvcopyMakeBorder, as MXNet 1.9.1 has them by OpenCV:
 * a file becomes pixels, pixels become others. Images are uint8, (height, width, channels). The size of a
 * decoded image is known after the run, so those kernels give their output its shape.
 */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/pixels.h"
#include "tenon/plugin/attr.h"

#define CHANNELS_FILLED 4 /* of an image, that colours of a border are given for */

/* ---- arguments -------------------------------------------------------------------------------------- */

#define TN_cvimdecode_ATTRS(X)                                                                               \
    X(cvimdecode, INT, flag, "1", TN_IN(0, 1), "0: one channel, grey; 1: three, colours")                    \
    X(cvimdecode, BOOL, to_rgb, "1", TN_ANY, "red, green, blue; False: blue, green, red")
TN_ATTRS(cvimdecode);
#define TN_cvimread_ATTRS(X)                                                                                 \
    X(cvimread, TEXT, filename, TN_REQUIRED, TN_ANY, "the file")                                             \
    X(cvimread, INT, flag, "1", TN_IN(0, 1), "0: one channel, grey; 1: three, colours")                      \
    X(cvimread, BOOL, to_rgb, "1", TN_ANY, "red, green, blue; False: blue, green, red")
TN_ATTRS(cvimread);
#define TN_cvimresize_ATTRS(X)                                                                               \
    X(cvimresize, INT, w, TN_REQUIRED, TN_IN(1, INT32_MAX), "columns of the result")                         \
    X(cvimresize, INT, h, TN_REQUIRED, TN_IN(1, INT32_MAX), "rows of the result")                            \
    X(cvimresize, INT, interp, "1", TN_IN(0, 4), "0 nearest, 1 linear, 2 cubic, 3 means of areas, 4 Lanczos")
TN_ATTRS(cvimresize);
#define TN_cvcopyMakeBorder_ATTRS(X)                                                                         \
    X(cvcopyMakeBorder, INT, top, TN_REQUIRED, TN_IN(0, INT32_MAX), "rows above")                            \
    X(cvcopyMakeBorder, INT, bot, TN_REQUIRED, TN_IN(0, INT32_MAX), "rows below")                            \
    X(cvcopyMakeBorder, INT, left, TN_REQUIRED, TN_IN(0, INT32_MAX), "columns to the left")                  \
    X(cvcopyMakeBorder, INT, right, TN_REQUIRED, TN_IN(0, INT32_MAX), "columns to the right")                \
    X(cvcopyMakeBorder, INT, type, "0", TN_IN(0, 4),                                                         \
      "0 a colour, 1 the edge again, 2 mirrored with the edge, 3 the other side, 4 mirrored without the "    \
      "edge")                                                                                                \
    X(cvcopyMakeBorder, FLOAT, value, "0", TN_ANY,                                                           \
      "type 0: of the first three channels, where values is ()")                                             \
    X(cvcopyMakeBorder, FLOATS, values, "()", TN_ANY, "type 0: of each channel")
TN_ATTRS(cvcopyMakeBorder);

static const tn_attr_def decode_attrs[] = TN_ATTR_TABLE(cvimdecode);
static const tn_attr_def read_attrs[] = TN_ATTR_TABLE(cvimread);
static const tn_attr_def resize_attrs[] = TN_ATTR_TABLE(cvimresize);
static const tn_attr_def border_attrs[] = TN_ATTR_TABLE(cvcopyMakeBorder);

/* ---- inference -------------------------------------------------------------------------------------- */

static tn_status bytes_dtype(tn_infer *i)
{
    for (uint32_t k = 0; k < i->in_count + i->out_count; k++) {
        int32_t *dtype = k < i->in_count ? &i->in_dtype[k] : &i->out_dtype[k - i->in_count];

        if (*dtype != TN_DTYPE_UNKNOWN && *dtype != TN_U8)
            return tn_fail(i->err, TN_E_DTYPE, "images and files are arrays of uint8");
        *dtype = TN_U8;
    }
    return TN_OK;
}

static tn_status decoded_shape(tn_infer *i)
{
    const uint32_t flag = i->in_count ? (uint32_t)TN_cvimdecode_flag : (uint32_t)TN_cvimread_flag;
    tn_shape y = {.ndim = 3, .dim = {TN_DIM_UNKNOWN, TN_DIM_UNKNOWN, tn_attrs_int(i->attrs, flag) ? 3 : 1}};

    return tn_shape_unify(i, i->out_shape[0], &y);
}

/* `src` becomes `rows` x `columns`, or grows by them. */
static tn_status image_shape(tn_infer *i, int64_t rows, int64_t columns, bool grows)
{
    const tn_shape *x = i->in_shape[0];
    tn_shape y = {.ndim = 3, .dim = {rows, columns, TN_DIM_UNKNOWN}};

    if (x->ndim < 0)
        return TN_OK;
    if (x->ndim != 3)
        return tn_failf(i->err, TN_E_SHAPE, "src has %d dimensions, an image is (height, width, channels)",
                        (int)x->ndim);
    for (int d = 0; d < 3; d++) {
        if (x->dim[d] == 0 || x->dim[d] > INT32_MAX)
            return tn_failf(i->err, TN_E_SHAPE, "src is %lld long along axis %d, an image has 1 to %d",
                            (long long)x->dim[d], d, INT32_MAX);
        if (x->dim[d] > 0 && (d == 2 || grows))
            y.dim[d] = (d == 2 ? 0 : y.dim[d]) + x->dim[d];
        else if (x->dim[d] < 0 && (d == 2 || grows))
            y.dim[d] = TN_DIM_UNKNOWN;
    }
    return tn_shape_unify(i, i->out_shape[0], &y);
}

static tn_status resize_shape(tn_infer *i)
{
    return image_shape(i, tn_attrs_int(i->attrs, TN_cvimresize_h), tn_attrs_int(i->attrs, TN_cvimresize_w),
                       false);
}

static tn_status border_shape(tn_infer *i)
{
    const tn_value *a = i->attrs;

    return image_shape(i, tn_attrs_int(a, TN_cvcopyMakeBorder_top) + tn_attrs_int(a, TN_cvcopyMakeBorder_bot),
                       tn_attrs_int(a, TN_cvcopyMakeBorder_left) + tn_attrs_int(a, TN_cvcopyMakeBorder_right),
                       true);
}

/* ---- decoding --------------------------------------------------------------------------------------- */

static tn_status decode_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)node, (void)err;
    plan->state = plugin;
    plan->flags |= TN_PLAN_RESIZES;
    return TN_OK;
}

/* Blue, green, red. */
static void colours_turn(uint8_t *at, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++, at += 3) {
        const uint8_t red = at[0];

        at[0] = at[2];
        at[2] = red;
    }
}

static tn_status file_decode(void *plugin, const tn_exec *x, const void *data, uint64_t bytes,
                             const int64_t flags[2], tn_err *err)
{
    static const tn_image_ops *const formats[] = {&tnimage_jpeg, &tnimage_png};
    const int64_t channels = flags[0] ? 3 : 1;
    tn_image_info info = {.struct_size = (uint32_t)sizeof info};
    const tn_image_ops *format = NULL;
    const tn_tensor *y = NULL;
    tn_image_part part;
    tn_status st;

    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        if (bytes && formats[k]->probe(plugin, data, bytes < 64 ? bytes : 64))
            format = formats[k];
    if (!format)
        return tn_failf(err, TN_E_FORMAT, "%llu bytes that are no image: the plugin image reads JPEG and PNG",
                        (unsigned long long)bytes);
    if ((st = format->info(plugin, data, bytes, &info, err)) ||
        (st = x->ops->resize(x->call, 0, 3, (const int64_t[]){info.height, info.width, channels}, &y, err)))
        return st;
    part = (tn_image_part){.struct_size = (uint32_t)sizeof part,
                           .channels = (int32_t)channels,
                           .width = info.width,
                           .height = info.height,
                           .out = y->data,
                           .stride = info.width * channels};
    if (!(st = format->decode(plugin, data, bytes, &part, err)) && channels == 3 && !flags[1])
        colours_turn(y->data, (int64_t)info.width * info.height);
    return st;
}

static tn_status decode_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t flags[] = {tn_attrs_int(x->attrs, TN_cvimdecode_flag),
                             tn_attrs_int(x->attrs, TN_cvimdecode_to_rgb)};

    return file_decode(plan->state, x, x->in[0]->data, (uint64_t)tn_tensor_count(x->in[0]), flags, err);
}

/* The bytes of an ordinary file that is open; yours (free). */
static tn_status file_bytes(const tnimage_plugin *plugin, int file, const char *name, uint8_t **out,
                            uint64_t *bytes, tn_err *err)
{
    struct stat about;
    uint8_t *data;
    size_t at = 0;
    ssize_t got = 1;

    if (fstat(file, &about) || !S_ISREG(about.st_mode))
        return tn_failf(err, TN_E_IO, "%.300s is not an ordinary file", name);
    if (about.st_size > plugin->memory_max)
        return tn_failf(err, TN_E_NOMEM, "%.300s has %lld bytes, [plugin.image] memory_max permits %lld",
                        name, (long long)about.st_size, (long long)plugin->memory_max);
    if (!(data = malloc((size_t)about.st_size + 1)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    while (at < (size_t)about.st_size && got > 0)
        if ((got = read(file, data + at, (size_t)about.st_size - at)) > 0)
            at += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    if (got < 0) {
        free(data);
        return tn_failf(err, TN_E_IO, "%.300s cannot be read: %s", name, strerror(errno));
    }
    *out = data;
    *bytes = at; /* of a file that became shorter meanwhile: what there is */
    return TN_OK;
}

static tn_status read_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const int64_t flags[] = {tn_attrs_int(x->attrs, TN_cvimread_flag),
                             tn_attrs_int(x->attrs, TN_cvimread_to_rgb)};
    const char *name = tn_attrs_text(x->attrs, TN_cvimread_filename);
    const int file =
        open(name ? name : "", O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe is no reason to wait */
    uint8_t *data = NULL;
    uint64_t bytes = 0;
    tn_status st;

    if (file < 0)
        return tn_failf(err, TN_E_IO, "%.300s cannot be opened: %s", name ? name : "None", strerror(errno));
    st = file_bytes(plan->state, file, name, &data, &bytes, err);
    (void)close(file);
    if (!st)
        st = file_decode(plan->state, x, data, bytes, flags, err);
    free(data);
    return st;
}

/* ---- resizing --------------------------------------------------------------------------------------- */

static int64_t row_bytes(const tn_tensor *t)
{
    return t->shape[1] * t->shape[2];
}

static tnb_pixels whole_of(const tn_tensor *t)
{
    const int32_t height = (int32_t)t->shape[0], width = (int32_t)t->shape[1];

    return (tnb_pixels){t->data, row_bytes(t), (int32_t)t->shape[2], width, height, {0, 0, width, height}};
}

/* What is asked for stays within the limits of the plugin's options, and of 32 bits along an axis. */
static tn_status images_check(const tnimage_plugin *plugin, const tn_node *node, tn_err *err)
{
    for (int k = 0; k < 2; k++) {
        const tn_tensor *t = k ? node->out[0] : node->in[0];

        if (t->shape[0] > INT32_MAX || t->shape[1] > INT32_MAX || row_bytes(t) > INT32_MAX ||
            t->shape[0] > plugin->pixels_max / t->shape[1])
            return tn_failf(err, TN_E_NOMEM,
                            "an image of %lld x %lld pixels, [plugin.image] pixels_max permits %lld",
                            (long long)t->shape[1], (long long)t->shape[0], (long long)plugin->pixels_max);
    }
    return TN_OK;
}

static tn_status resize_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    const tnimage_plugin *p = plugin;
    const tn_tensor *y = node->out[0];
    tn_status st = images_check(p, node, err);

    (void)plan;
    if (!st && tnb_resize_bytes((int32_t)y->shape[1], (int32_t)y->shape[2]) > (uint64_t)p->memory_max)
        return tn_fail(err, TN_E_NOMEM, "resizing takes more than [plugin.image] memory_max");
    return st;
}

static tn_status resize_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tnb_pixels from = whole_of(x->in[0]), to = whole_of(x->out[0]);
    const tnb_resize r = {
        {from.width, from.height}, {to.width, to.height}, (int)tn_attrs_int(x->attrs, TN_cvimresize_interp)};

    (void)plan;
    if (from.width == to.width && from.height == to.height) {
        memcpy(to.data, from.data, (size_t)(to.stride * to.height));
        return TN_OK;
    }
    return tnb_resize_run(&r, &from, &to) ? TN_OK : tn_fail(err, TN_E_NOMEM, "out of memory");
}

/* ---- borders ---------------------------------------------------------------------------------------- */

enum { COLOUR, EDGE, MIRROR, OTHER_SIDE, MIRROR_INNER };

static tn_status border_prepare(void *plugin, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)plan;
    if (tn_attrs_int(node->attrs, TN_cvcopyMakeBorder_type) == COLOUR &&
        node->in[0]->shape[2] > CHANNELS_FILLED)
        return tn_failf(err, TN_E_SHAPE, "src has %lld channels, a border of one colour takes at most %d",
                        (long long)node->in[0]->shape[2], CHANNELS_FILLED);
    return images_check(plugin, node, err);
}

/* The pixel of an axis of `size` that stands at `at`, which may lie outside; -1: none, a colour does. */
static int64_t border_from(int64_t at, int64_t size, int64_t type)
{
    const int64_t period = type == OTHER_SIDE ? size
                           : type == MIRROR   ? 2 * size
                           : size > 1         ? 2 * size - 2
                                              : 1;

    if (at >= 0 && at < size)
        return at;
    if (type == COLOUR)
        return -1;
    if (type == EDGE)
        return at < 0 ? 0 : size - 1;
    at = (at % period + period) % period;
    return at < size ? at : type == MIRROR ? period - 1 - at : period - at;
}

static uint8_t byte_near(double v)
{
    return v > 0 ? v < 255 ? (uint8_t)lrint(v) : 255 : 0; /* NaN: 0 */
}

static void colour_of(const tn_value *attrs, uint8_t out[CHANNELS_FILLED])
{
    const double value = tn_attrs_float(attrs, TN_cvcopyMakeBorder_value);
    const tn_floats *values = tn_value_pointer(attrs[TN_cvcopyMakeBorder_values]);

    for (int c = 0; c < CHANNELS_FILLED; c++)
        out[c] = byte_near(values && values->count ? c < values->count ? values->item[c] : 0
                           : c < 3                 ? value
                                                   : 0);
}

/* Pixel `at` of the row `from` of `size` pixels, or the colour. */
static const uint8_t *pixel_at(const uint8_t *from, const uint8_t *colour, int64_t at, int64_t channels)
{
    return from && at >= 0 ? from + at * channels : colour;
}

static tn_status border_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    const tnb_pixels from = whole_of(x->in[0]), to = whole_of(x->out[0]);
    const int64_t type = tn_attrs_int(x->attrs, TN_cvcopyMakeBorder_type);
    const int64_t top = tn_attrs_int(x->attrs, TN_cvcopyMakeBorder_top);
    const int64_t left = tn_attrs_int(x->attrs, TN_cvcopyMakeBorder_left);
    const size_t bytes = (size_t)from.channels;
    uint8_t colour[CHANNELS_FILLED];

    (void)plan, (void)err;
    colour_of(x->attrs, colour);
    for (int64_t r = 0; r < to.height; r++) {
        const int64_t row = border_from(r - top, from.height, type);
        const uint8_t *in = row < 0 ? NULL : from.data + row * from.stride;
        uint8_t *out = to.data + r * to.stride;

        if (in)
            memcpy(out + left * from.channels, in, (size_t)from.stride);
        for (int64_t k = 0; k < to.width; k++) {
            if (in && k == left) /* the image itself */
                k += from.width;
            if (k < to.width)
                memcpy(out + k * from.channels,
                       pixel_at(in, colour, border_from(k - left, from.width, type), from.channels), bytes);
        }
    }
    return TN_OK;
}

/* ---- tables ----------------------------------------------------------------------------------------- */

static const char *const names_none[] = {NULL}, *const names_buf[] = {"buf", NULL},
                         *const names_src[] = {"src", NULL}, *const names_output[] = {"output", NULL};
static const char *const aliases_decode[] = {"_npi_cvimdecode", NULL},
                         *const aliases_read[] = {"_npi_cvimread", NULL},
                         *const aliases_resize[] = {"_npi_cvimresize", NULL};

#define OPERATOR(name_, doc_, ...)                                                                           \
    {                                                                                                        \
        .struct_size = (uint32_t)sizeof(tn_op), .version = 1, .name = (name_), .doc = (doc_),                \
        .outputs = names_output, .dtype = bytes_dtype, __VA_ARGS__                                           \
    }
static const tn_op op_decode = OPERATOR("_cvimdecode", "The image in a file's bytes, JPEG or PNG.",
                                        .aliases = aliases_decode, .attrs = decode_attrs, .inputs = names_buf,
                                        .flags = TN_OP_CHECKS_VALUES, .shape = decoded_shape);
static const tn_op op_read =
    OPERATOR("_cvimread", "The image in a file, JPEG or PNG.", .aliases = aliases_read, .attrs = read_attrs,
             .inputs = names_none, .flags = TN_OP_CHECKS_VALUES, .shape = decoded_shape);
static const tn_op op_resize = OPERATOR("_cvimresize", "An image of another size.", .aliases = aliases_resize,
                                        .attrs = resize_attrs, .inputs = names_src, .shape = resize_shape);
static const tn_op op_border = OPERATOR("_cvcopyMakeBorder", "An image with a border around it.",
                                        .attrs = border_attrs, .inputs = names_src, .shape = border_shape);

static const char *const types[] = {"*:u8", NULL};
#define DECODER(op_, run_)                                                                                   \
    {                                                                                                        \
        (uint32_t) TN_END(tn_kernel, release), 64, op_, op_ ".loop", "cpu", "", 1, 1,                        \
            TN_KERNEL_DETERMINISTIC | TN_KERNEL_EMPTY_OK, types, 0, 0, decode_prepare, run_, NULL            \
    }
static const tn_kernel kernel_decode = DECODER("_cvimdecode", decode_run);
static const tn_kernel kernel_read = DECODER("_cvimread", read_run);
static const tn_kernel kernel_resize = TN_KERNEL("_cvimresize", "cpu", types, resize_prepare, resize_run);
static const tn_kernel kernel_border =
    TN_KERNEL("_cvcopyMakeBorder", "cpu", types, border_prepare, border_run);

const tn_op_table tnimage_operators = TN_OPS("image", &op_decode, &op_read, &op_resize, &op_border);
const tn_kernel_table tnimage_kernels =
    TN_KERNELS("cpu", &kernel_decode, &kernel_read, &kernel_resize, &kernel_border);
