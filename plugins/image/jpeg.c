/*
 * JPEG by libjpeg-turbo's own interface: TurboJPEG's, in the version that Debian 12 has, decodes whole images
 * only. A part of the image costs the entropy decoding of the rows above it, no more: columns beside it and
 * rows above it are not transformed, rows below it are not read.
 */
#include "image.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

#define MARGIN 16 /* columns beside the part: upsampling of colours reads neighbours */
#define SCANS_MAX 200
#define SHIFT_MAX 3
#define QUALITY 95
#define SINK_BYTES 16384

typedef struct reader {
    tnimage_call call;
    struct jpeg_decompress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
} reader;

typedef struct writer {
    tnimage_call call;
    struct jpeg_compress_struct cinfo;
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr sink;
    JOCTET buffer[SINK_BYTES];
} writer;

/* ---- errors ------------------------------------------------------------------------------------------ */

static tn_status status_of(int code)
{
    switch (code) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
        return TN_E_NOMEM;
    case JERR_SOF_UNSUPPORTED:
    case JERR_BAD_PRECISION:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
        return TN_E_UNSUPPORTED;
    default:
        return TN_E_FORMAT;
    }
}

static _Noreturn void reader_leave(reader *r)
{
    const struct jpeg_source_mgr *src = r->cinfo.src;
    const uint64_t left = src ? src->bytes_in_buffer : r->call.bytes, bytes = r->call.bytes;
    char text[JMSG_LENGTH_MAX] = "";
    const tn_status st = status_of(r->errors.msg_code);

    (*r->errors.format_message)((j_common_ptr)&r->cinfo, text);
    if (r->errors.msg_code == JERR_NO_BACKING_STORE)
        tnimage_leave(&r->call,
                      tn_failf(r->call.err, st, "decoding takes more than [plugin.image] memory_max"));
    if (r->errors.msg_code == JWRN_JPEG_EOF || r->errors.msg_code == JERR_INPUT_EOF)
        tnimage_leave(&r->call,
                      tn_failf(r->call.err, st, "the JPEG ends early, at byte %llu, in row %u of %u",
                               (unsigned long long)bytes, r->cinfo.output_scanline, r->cinfo.output_height));
    tnimage_leave(&r->call, tn_failf(r->call.err, st, "JPEG, at byte %llu of %llu, row %u of %u: %.200s",
                                     (unsigned long long)(left < bytes ? bytes - left : bytes),
                                     (unsigned long long)bytes, r->cinfo.output_scanline,
                                     r->cinfo.output_height, text));
}

static void reader_error(j_common_ptr cinfo)
{
    reader_leave((reader *)cinfo->client_data);
}

/* Warnings (level -1) that mean lost pixels are errors; the others are of no consequence. */
static void reader_message(j_common_ptr cinfo, int level)
{
    reader *r = cinfo->client_data;

    if (level >= 0 || !r->call.plugin->strict)
        return;
    switch (cinfo->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_TOO_MUCH_DATA:
        return;
    default:
        reader_leave(r);
    }
}

static void silent(j_common_ptr cinfo)
{
    (void)cinfo;
}

/* A small file may have scans without end, each over all of a large image. */
static void scans_count(j_common_ptr cinfo)
{
    reader *r = cinfo->client_data;

    if (r->cinfo.input_scan_number > SCANS_MAX)
        tnimage_leave(&r->call,
                      tn_failf(r->call.err, TN_E_UNSUPPORTED, "the JPEG has more than %d scans", SCANS_MAX));
}

static void writer_error(j_common_ptr cinfo)
{
    writer *w = cinfo->client_data;
    char text[JMSG_LENGTH_MAX] = "";

    (*w->errors.format_message)(cinfo, text);
    tnimage_leave(&w->call,
                  tn_failf(w->call.err, cinfo->err->msg_code == JERR_OUT_OF_MEMORY ? TN_E_NOMEM : TN_E_ARG,
                           "JPEG: %.200s", text));
}

/* ---- the head ---------------------------------------------------------------------------------------- */

static uint32_t number_at(const uint8_t *p, int little, int bytes)
{
    uint32_t v = 0;

    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << 8 * (little ? i : bytes - 1 - i);
    return v;
}

/* Tag 0x0112 of the first directory of EXIF's data; 0: there is none. */
static int32_t orientation_of(const uint8_t *data, size_t bytes)
{
    const uint8_t *tiff = data + 6;
    const size_t left = bytes < 14 ? 0 : bytes - 6;
    int little;
    uint32_t at, count;

    if (!left || memcmp(data, "Exif\0\0", 6) != 0 || (memcmp(tiff, "II*\0", 4) && memcmp(tiff, "MM\0*", 4)))
        return 0;
    little = tiff[0] == 'I';
    at = number_at(tiff + 4, little, 4);
    if (at > left - 2)
        return 0;
    count = number_at(tiff + at, little, 2);
    for (uint32_t i = 0; i < count && (uint64_t)at + 2 + 12 * ((uint64_t)i + 1) <= left; i++) {
        const uint8_t *entry = tiff + at + 2 + 12 * (size_t)i;
        const uint32_t value = number_at(entry + 8, little, 2);

        if (number_at(entry, little, 2) == 0x0112)
            return number_at(entry + 2, little, 2) == 3 && value >= 1 && value <= 8 ? (int32_t)value : 0;
    }
    return 0;
}

static void head_read(reader *r)
{
    jpeg_create_decompress(&r->cinfo);
    r->cinfo.client_data = r;
    r->cinfo.progress = &r->progress;
    r->cinfo.mem->max_memory_to_use = (long)r->call.plugin->memory_max;
    jpeg_mem_src(&r->cinfo, r->call.data, (unsigned long)r->call.bytes);
    if (r->call.info)
        jpeg_save_markers(&r->cinfo, JPEG_APP0 + 1, 0xffff);
    (void)jpeg_read_header(&r->cinfo, TRUE);
}

static void info_body(tnimage_call *call)
{
    reader *r = (reader *)call;
    tn_image_info *out = call->info;

    head_read(r);
    tnimage_size_check(call, r->cinfo.image_width, r->cinfo.image_height);
    out->width = (int32_t)r->cinfo.image_width;
    out->height = (int32_t)r->cinfo.image_height;
    out->channels = r->cinfo.num_components;
    out->bits = r->cinfo.data_precision;
    out->shift_max = SHIFT_MAX;
    out->orientation = 0;
    for (jpeg_saved_marker_ptr m = r->cinfo.marker_list; m && !out->orientation; m = m->next)
        out->orientation = orientation_of(m->data, m->data_length);
}

static tn_status reader_run(void *plugin, const void *data, uint64_t bytes, reader *r,
                            void (*body)(tnimage_call *))
{
    tn_status st;

    if (bytes > UINT32_MAX)
        return tn_fail(r->call.err, TN_E_UNSUPPORTED, "a JPEG of more than 4 GiB");
    r->call.plugin = plugin;
    r->call.data = data;
    r->call.bytes = bytes;
    r->cinfo.err = jpeg_std_error(&r->errors);
    r->cinfo.client_data = r;
    r->errors.error_exit = reader_error;
    r->errors.emit_message = reader_message;
    r->errors.output_message = silent;
    r->progress.progress_monitor = scans_count;
    st = tnimage_guarded(&r->call, body);
    jpeg_destroy_decompress(&r->cinfo);
    return st;
}

static tn_status jpeg_info(void *plugin, const void *data, uint64_t bytes, tn_image_info *out, tn_err *err)
{
    reader r = {.call = {.err = err, .info = out}};

    return reader_run(plugin, data, bytes, &r, info_body);
}

/* ---- decoding ---------------------------------------------------------------------------------------- */

/* Adobe's inverted CMYK, as OpenCV converts it. */
static void cmyk_convert(const uint8_t *from, int32_t count, int32_t channels, uint8_t *to)
{
    for (int32_t i = 0; i < count; i++, from += 4, to += channels) {
        const int k = from[3], red = k - ((255 - from[0]) * k >> 8), green = k - ((255 - from[1]) * k >> 8),
                  blue = k - ((255 - from[2]) * k >> 8);

        if (channels == 1) {
            to[0] = (uint8_t)((4899 * red + 9617 * green + 1868 * blue + 8192) >> 14);
            continue;
        }
        to[0] = (uint8_t)red;
        to[1] = (uint8_t)green;
        to[2] = (uint8_t)blue;
        if (channels == 4)
            to[3] = 255;
    }
}

static void colours_choose(reader *r, int32_t channels)
{
    static const J_COLOR_SPACE spaces[] = {[1] = JCS_GRAYSCALE, [3] = JCS_RGB, [4] = JCS_EXT_RGBA};

    r->cinfo.out_color_space = r->cinfo.num_components == 4 ? JCS_CMYK : spaces[channels];
}

static void rows_read(reader *r, const tn_image_part *p)
{
    const JDIMENSION width = r->cinfo.output_width;
    JDIMENSION first = p->x > MARGIN ? (JDIMENSION)(p->x - MARGIN) : 0,
               end = (JDIMENSION)p->x + (JDIMENSION)p->width + MARGIN, count;
    const size_t components = (size_t)r->cinfo.output_components;
    const bool cmyk = r->cinfo.out_color_space == JCS_CMYK, direct = !cmyk && p->width == (int32_t)width;

    end = end < width ? end : width;
    count = end - first;
    if (!direct && count < width)
        jpeg_crop_scanline(&r->cinfo, &first, &count);
    if (!direct)
        (void)tnimage_room(&r->call, r->cinfo.output_width * components);
    if (p->y)
        (void)jpeg_skip_scanlines(&r->cinfo, (JDIMENSION)p->y);
    for (int32_t i = 0; i < p->height; i++) {
        uint8_t *to = p->out + i * p->stride;
        const uint8_t *from = direct ? to : r->call.room + ((size_t)p->x - first) * components;
        JSAMPROW row = direct ? to : r->call.room;

        if (jpeg_read_scanlines(&r->cinfo, &row, 1) != 1)
            tnimage_fail(&r->call, TN_E_FORMAT, "the JPEG has no more rows");
        if (cmyk)
            cmyk_convert(from, p->width, p->channels, to);
        else if (!direct)
            memcpy(to, from, (size_t)p->width * components);
    }
}

static void decode_body(tnimage_call *call)
{
    reader *r = (reader *)call;
    const tn_image_part *p = call->part;

    head_read(r);
    tnimage_part_check(call, r->cinfo.image_width, r->cinfo.image_height, SHIFT_MAX);
    colours_choose(r, p->channels);
    r->cinfo.scale_num = 1;
    r->cinfo.scale_denom = 1u << p->shift;
    (void)jpeg_start_decompress(&r->cinfo);
    rows_read(r, p);
    if (r->cinfo.output_scanline == r->cinfo.output_height)
        (void)jpeg_finish_decompress(&r->cinfo);
}

static tn_status jpeg_decode(void *plugin, const void *data, uint64_t bytes, const tn_image_part *part,
                             tn_err *err)
{
    reader r = {.call = {.err = err, .part = part}};

    return reader_run(plugin, data, bytes, &r, decode_body);
}

/* ---- encoding ---------------------------------------------------------------------------------------- */

static void sink_begin(j_compress_ptr cinfo)
{
    writer *w = cinfo->client_data;

    w->sink.next_output_byte = w->buffer;
    w->sink.free_in_buffer = SINK_BYTES;
}

static void sink_give(writer *w, size_t bytes)
{
    const tn_status st = bytes ? w->call.to->write(w->call.to->self, w->buffer, bytes, w->call.err) : TN_OK;

    if (st)
        tnimage_leave(&w->call, st);
}

static boolean sink_empty(j_compress_ptr cinfo)
{
    sink_give(cinfo->client_data, SINK_BYTES);
    sink_begin(cinfo);
    return TRUE;
}

static void sink_end(j_compress_ptr cinfo)
{
    writer *w = cinfo->client_data;

    sink_give(w, SINK_BYTES - w->sink.free_in_buffer);
}

static void encode_body(tnimage_call *call)
{
    writer *w = (writer *)call;
    const tn_image_output *to = call->to;

    jpeg_create_compress(&w->cinfo);
    w->cinfo.client_data = w;
    w->sink = (struct jpeg_destination_mgr){
        .init_destination = sink_begin, .empty_output_buffer = sink_empty, .term_destination = sink_end};
    w->cinfo.dest = &w->sink;
    w->cinfo.image_width = (JDIMENSION)to->width;
    w->cinfo.image_height = (JDIMENSION)to->height;
    w->cinfo.input_components = to->channels;
    w->cinfo.in_color_space = to->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&w->cinfo);
    jpeg_set_quality(&w->cinfo, to->quality ? to->quality : QUALITY, TRUE);
    jpeg_start_compress(&w->cinfo, TRUE);
    for (int32_t i = 0; i < to->height; i++) {
        JSAMPROW row = (JSAMPROW)(uintptr_t)(to->data + i * to->stride);

        (void)jpeg_write_scanlines(&w->cinfo, &row, 1);
    }
    jpeg_finish_compress(&w->cinfo);
}

static tn_status jpeg_encode(void *plugin, const tn_image_output *to, tn_err *err)
{
    tn_status st = tnimage_output_check(to, 3, 100, err);
    writer *w;

    if (st)
        return st;
    if (!(w = calloc(1, sizeof *w)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    w->call = (tnimage_call){.err = err, .plugin = plugin, .to = to};
    w->cinfo.err = jpeg_std_error(&w->errors);
    w->cinfo.client_data = w;
    w->errors.error_exit = writer_error;
    w->errors.output_message = silent;
    st = tnimage_guarded(&w->call, encode_body);
    jpeg_destroy_compress(&w->cinfo);
    free(w);
    return st;
}

static int32_t jpeg_probe(void *plugin, const void *head, uint64_t bytes)
{
    (void)plugin;
    return bytes >= 3 && !memcmp(head, "\xff\xd8\xff", 3);
}

static const char *const extensions[] = {"jpg", "jpeg", NULL};

const tn_image_ops tnimage_jpeg = {
    .head = TN_CAPABILITY(tn_image_ops, encode, TN_KIND_IMAGE, "jpeg"),
    .extensions = extensions,
    .probe = jpeg_probe,
    .info = jpeg_info,
    .decode = jpeg_decode,
    .encode = jpeg_encode,
};
