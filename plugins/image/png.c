/*
 * PNG by libpng, read as OpenCV reads it: palettes become colours, 16 bits the upper 8, and alpha that is not
 * asked for is left out. Rows above a part are decompressed and thrown away, rows below are not read, but of
 * an interlaced image, which is read whole.
 */
#include "image.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#define LEVEL_DEFAULT 3
#define CHUNK_BYTES_MAX (8u << 20) /* of one that is no pixels */
#define CHUNKS_MAX 100

typedef struct coder {
    tnimage_call call;
    png_structp png;
    png_infop info;
    uint64_t memory;
} coder;

/* ---- errors, memory, bytes --------------------------------------------------------------------------- */

static PNG_FUNCTION(void, png_failed, (png_structp png, png_const_charp text), PNG_NORETURN)
{
    coder *c = png_get_error_ptr(png);

    if (!c->call.status)
        c->call.status = strcmp(text, "Out of memory") != 0 ? TN_E_FORMAT : TN_E_NOMEM;
    if (c->call.to)
        tnimage_leave(&c->call, tn_failf(c->call.err, c->call.status, "PNG: %.200s", text));
    tnimage_leave(&c->call,
                  tn_failf(c->call.err, c->call.status, "PNG, at byte %llu of %llu: %.200s",
                           (unsigned long long)c->call.at, (unsigned long long)c->call.bytes, text));
}

static void png_warned(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static png_voidp png_take(png_structp png, png_alloc_size_t bytes)
{
    coder *c = png_get_mem_ptr(png);
    void *memory = NULL;

    if (bytes <= (uint64_t)c->call.plugin->memory_max)
        memory = malloc(bytes);
    if (!memory)
        c->call.status = TN_E_NOMEM; /* libpng goes on without it, or fails */
    return memory;
}

static void png_give_back(png_structp png, png_voidp memory)
{
    (void)png;
    free(memory);
}

static void bytes_read(png_structp png, png_bytep out, size_t bytes)
{
    coder *c = png_get_io_ptr(png);

    if (bytes > c->call.bytes - c->call.at)
        tnimage_leave(&c->call, tn_failf(c->call.err, TN_E_FORMAT, "the PNG ends early, at byte %llu",
                                         (unsigned long long)c->call.bytes));
    memcpy(out, c->call.data + c->call.at, bytes);
    c->call.at += bytes;
}

static void bytes_write(png_structp png, png_bytep data, size_t bytes)
{
    coder *c = png_get_io_ptr(png);
    const tn_status st = c->call.to->write(c->call.to->self, data, bytes, c->call.err);

    if (st)
        tnimage_leave(&c->call, st);
}

static void bytes_flush(png_structp png)
{
    (void)png;
}

/* ---- the head ---------------------------------------------------------------------------------------- */

static void head_read(coder *c)
{
    c->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, c, png_failed, png_warned, c, png_take,
                                      png_give_back);
    if (!c->png || !(c->info = png_create_info_struct(c->png)))
        tnimage_fail(&c->call, TN_E_NOMEM, "out of memory");
    png_set_read_fn(c->png, c, bytes_read);
    png_set_user_limits(c->png, TNIMAGE_SIDE_MAX, TNIMAGE_SIDE_MAX);
    png_set_chunk_cache_max(c->png, CHUNKS_MAX);
    png_set_chunk_malloc_max(c->png, CHUNK_BYTES_MAX);
    png_set_keep_unknown_chunks(c->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_read_info(c->png, c->info);
}

static void info_body(tnimage_call *call)
{
    coder *c = (coder *)call;
    int colours;

    head_read(c);
    colours = png_get_color_type(c->png, c->info);
    call->info->width = (int32_t)png_get_image_width(c->png, c->info);
    call->info->height = (int32_t)png_get_image_height(c->png, c->info);
    tnimage_size_check(call, call->info->width, call->info->height);
    call->info->channels = (colours & PNG_COLOR_MASK_COLOR ? 3 : 1) +
                           (colours & PNG_COLOR_MASK_ALPHA || png_get_valid(c->png, c->info, PNG_INFO_tRNS));
    call->info->bits = png_get_bit_depth(c->png, c->info);
    call->info->shift_max = 0;
    call->info->orientation = 0;
}

static tn_status reader_run(void *plugin, const void *data, uint64_t bytes, coder *c,
                            void (*body)(tnimage_call *))
{
    tn_status st;

    c->call.plugin = plugin;
    c->call.data = data;
    c->call.bytes = bytes;
    st = tnimage_guarded(&c->call, body);
    png_destroy_read_struct(&c->png, &c->info, NULL);
    return st;
}

static tn_status image_info(void *plugin, const void *data, uint64_t bytes, tn_image_info *out, tn_err *err)
{
    coder c = {.call = {.err = err, .info = out}};

    return reader_run(plugin, data, bytes, &c, info_body);
}

/* ---- decoding ---------------------------------------------------------------------------------------- */

/* Whatever the file has becomes bytes of so many channels. */
static void pixels_choose(coder *c, int32_t channels)
{
    const int colours = png_get_color_type(c->png, c->info);

    png_set_expand(c->png); /* palette, less than 8 bits, transparent colours */
    png_set_strip_16(c->png);
    if (channels != 4)
        png_set_strip_alpha(c->png);
    else if (!(colours & PNG_COLOR_MASK_ALPHA) && !png_get_valid(c->png, c->info, PNG_INFO_tRNS))
        png_set_add_alpha(c->png, 255, PNG_FILLER_AFTER);
    if (channels == 1 && colours & PNG_COLOR_MASK_COLOR)
        png_set_rgb_to_gray(c->png, 1, 0.299, 0.587);
    else if (channels != 1 && !(colours & PNG_COLOR_MASK_COLOR))
        png_set_gray_to_rgb(c->png);
}

static void row_copy(const tn_image_part *p, const uint8_t *row, int32_t i)
{
    memcpy(p->out + i * p->stride, row + (size_t)p->x * (size_t)p->channels,
           (size_t)p->width * (size_t)p->channels);
}

static void interlaced_read(coder *c, const tn_image_part *p, size_t row, int32_t height, int passes)
{
    uint8_t *image;

    if (row * (uint64_t)height > (uint64_t)c->call.plugin->memory_max)
        tnimage_fail(&c->call, TN_E_NOMEM, "decoding takes more than [plugin.image] memory_max");
    image = tnimage_room(&c->call, row * (size_t)height);
    while (passes--)
        for (int32_t i = 0; i < height; i++)
            png_read_row(c->png, image + row * (size_t)i, NULL);
    for (int32_t i = 0; i < p->height; i++)
        row_copy(p, image + row * (size_t)(p->y + i), i);
}

static void rows_read(coder *c, const tn_image_part *p, size_t row, int32_t width)
{
    uint8_t *room = p->width < width ? tnimage_room(&c->call, row) : NULL;

    for (int32_t i = 0; i < p->y; i++)
        png_read_row(c->png, NULL, NULL);
    for (int32_t i = 0; i < p->height; i++) {
        png_read_row(c->png, room ? room : p->out + i * p->stride, NULL);
        if (room)
            row_copy(p, room, i);
    }
}

static void decode_body(tnimage_call *call)
{
    coder *c = (coder *)call;
    const tn_image_part *p = call->part;
    int32_t width, height;
    size_t row;
    int passes;

    head_read(c);
    width = (int32_t)png_get_image_width(c->png, c->info);
    height = (int32_t)png_get_image_height(c->png, c->info);
    tnimage_part_check(call, width, height, 0);
    pixels_choose(c, p->channels);
    passes = png_set_interlace_handling(c->png);
    png_read_update_info(c->png, c->info);
    row = png_get_rowbytes(c->png, c->info);
    if (row != (size_t)width * (size_t)p->channels)
        tnimage_fail(call, TN_E_UNSUPPORTED, "this form of PNG is not known");
    if (passes > 1)
        interlaced_read(c, p, row, height, passes);
    else
        rows_read(c, p, row, width);
    if (p->y + p->height == height)
        png_read_end(c->png, NULL);
}

static tn_status image_decode(void *plugin, const void *data, uint64_t bytes, const tn_image_part *part,
                              tn_err *err)
{
    coder c = {.call = {.err = err, .part = part}};

    return reader_run(plugin, data, bytes, &c, decode_body);
}

/* ---- encoding ---------------------------------------------------------------------------------------- */

static void encode_body(tnimage_call *call)
{
    static const int colours[] = {
        [1] = PNG_COLOR_TYPE_GRAY, [3] = PNG_COLOR_TYPE_RGB, [4] = PNG_COLOR_TYPE_RGB_ALPHA};
    coder *c = (coder *)call;
    const tn_image_output *to = call->to;

    c->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, c, png_failed, png_warned, c, png_take,
                                       png_give_back);
    if (!c->png || !(c->info = png_create_info_struct(c->png)))
        tnimage_fail(call, TN_E_NOMEM, "out of memory");
    png_set_write_fn(c->png, c, bytes_write, bytes_flush);
    png_set_compression_level(c->png, to->quality ? to->quality : LEVEL_DEFAULT);
    png_set_IHDR(c->png, c->info, (png_uint_32)to->width, (png_uint_32)to->height, 8, colours[to->channels],
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(c->png, c->info);
    for (int32_t i = 0; i < to->height; i++)
        png_write_row(c->png, to->data + i * to->stride);
    png_write_end(c->png, c->info);
}

static tn_status image_encode(void *plugin, const tn_image_output *to, tn_err *err)
{
    coder c = {.call = {.err = err, .plugin = plugin, .to = to}};
    tn_status st = tnimage_output_check(to, 4, 9, err);

    if (st)
        return st;
    st = tnimage_guarded(&c.call, encode_body);
    png_destroy_write_struct(&c.png, &c.info);
    return st;
}

static int32_t image_probe(void *plugin, const void *head, uint64_t bytes)
{
    (void)plugin;
    return bytes >= 8 && !memcmp(head, "\x89PNG\r\n\x1a\n", 8);
}

static const char *const extensions[] = {"png", NULL};

const tn_image_ops tnimage_png = {
    .head = TN_CAPABILITY(tn_image_ops, encode, TN_KIND_IMAGE, "png"),
    .extensions = extensions,
    .probe = image_probe,
    .info = image_info,
    .decode = image_decode,
    .encode = image_encode,
};
