/*
 * The plugin `image`: JPEG by libjpeg-turbo, PNG by libpng. Both libraries report errors by a jump, which
 * never leaves this plugin: a call is a struct, and tnimage_guarded() is the only place that is jumped to.
 */
#include "image.h"

#include <stdlib.h>
#include <string.h>

tn_status tnimage_guarded(tnimage_call *c, void (*body)(tnimage_call *c))
{
    c->status = TN_OK;
    if (!setjmp(c->jump))
        body(c);
    free(c->room);
    c->room = NULL;
    return c->status;
}

_Noreturn void tnimage_leave(tnimage_call *c, tn_status st)
{
    c->status = st;
    longjmp(c->jump, 1);
}

_Noreturn void tnimage_fail(tnimage_call *c, tn_status st, const char *text)
{
    tnimage_leave(c, tn_fail(c->err, st, text));
}

uint8_t *tnimage_room(tnimage_call *c, size_t bytes)
{
    if (!(c->room = malloc(bytes ? bytes : 1)))
        tnimage_fail(c, TN_E_NOMEM, "out of memory");
    return c->room;
}

void tnimage_size_check(tnimage_call *c, int64_t width, int64_t height)
{
    if (width * height > c->plugin->pixels_max)
        tnimage_leave(c, tn_failf(c->err, TN_E_NOMEM,
                                  "the image has %lld x %lld pixels, [plugin.image] pixels_max permits %lld",
                                  (long long)width, (long long)height, (long long)c->plugin->pixels_max));
}

void tnimage_part_check(tnimage_call *c, int64_t width, int64_t height, int32_t shift_max)
{
    const tn_image_part *p = c->part;
    int64_t w, h;

    tnimage_size_check(c, width, height);
    if (p->shift < 0 || p->shift > shift_max)
        tnimage_leave(c, tn_failf(c->err, TN_E_ARG, "a scale of 1/2^%d, this format has 0 to %d",
                                  (int)p->shift, (int)shift_max));
    w = (width + (1 << p->shift) - 1) >> p->shift;
    h = (height + (1 << p->shift) - 1) >> p->shift;
    if (p->x < 0 || p->y < 0 || p->width < 1 || p->height < 1 || p->x > w - p->width || p->y > h - p->height)
        tnimage_leave(c, tn_failf(c->err, TN_E_ARG,
                                  "%d x %d pixels from (%d, %d) on do not lie in an image of %lld x %lld",
                                  (int)p->width, (int)p->height, (int)p->x, (int)p->y, (long long)w,
                                  (long long)h));
    if ((p->channels != 1 && p->channels != 3 && p->channels != 4) || !p->out ||
        p->stride < (int64_t)p->width * p->channels)
        tnimage_leave(c, tn_failf(c->err, TN_E_ARG, "%d channels, a row of %lld bytes%s", (int)p->channels,
                                  (long long)p->stride, p->out ? "" : ", no memory for them"));
}

tn_status tnimage_output_check(const tn_image_output *to, int32_t channels_max, int32_t quality_max,
                               tn_err *err)
{
    if (to->width < 1 || to->height < 1 || to->width > TNIMAGE_SIDE_MAX || to->height > TNIMAGE_SIDE_MAX ||
        !to->data || !to->write || to->stride < (int64_t)to->width * to->channels)
        return tn_failf(err, TN_E_ARG, "an image of %d x %d pixels, rows of %lld bytes", (int)to->width,
                        (int)to->height, (long long)to->stride);
    if ((to->channels != 1 && to->channels != 3 && to->channels != 4) || to->channels > channels_max)
        return tn_failf(err, TN_E_ARG, "%d channels, this format takes 1, 3%s", (int)to->channels,
                        channels_max == 4 ? " or 4" : "");
    if (to->quality < 0 || to->quality > quality_max)
        return tn_failf(err, TN_E_ARG, "quality %d, this format has 1 to %d", (int)to->quality,
                        (int)quality_max);
    return TN_OK;
}

/* ---- the descriptor ---------------------------------------------------------------------------------- */

#define PIXELS_MAX_TEXT "134217728"
#define MEMORY_MAX_TEXT "1073741824"

static int64_t option_number(const tn_options_service *o, const tn_host *host, const char *key,
                             const char *standard)
{
    const char *text = o && TN_OFFERS(o, tn_options_service, text) ? o->text(host, key) : NULL;

    return strtoll(text ? text : standard, NULL, 10);
}

static tn_status image_init(const tn_host *host, void **plugin, tn_err *err)
{
    const tn_options_service *options = tn_host_service(host, TN_SERVICE_OPTIONS);
    tnimage_plugin *p = calloc(1, sizeof *p);
    const char *text = NULL;

    if (!p)
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    p->pixels_max = option_number(options, host, "pixels_max", PIXELS_MAX_TEXT);
    p->memory_max = option_number(options, host, "memory_max", MEMORY_MAX_TEXT);
    if (options && TN_OFFERS(options, tn_options_service, text))
        text = options->text(host, "strict");
    p->strict = !text || strcmp(text, "false") != 0;
    *plugin = p;
    return TN_OK;
}

static void image_fini(void *plugin)
{
    free(plugin);
}

#define ROW (uint32_t) TN_END(tn_option_row, max)
static const tn_option_row pixels_max = {
    .struct_size = ROW,
    .key = "pixels_max",
    .type = "int",
    .default_text = PIXELS_MAX_TEXT,
    .help = "the most pixels of an image; a larger one is refused by its head",
    .min = 1,
    .max = 4294967296};
static const tn_option_row memory_max = {.struct_size = ROW,
                                         .key = "memory_max",
                                         .type = "int",
                                         .default_text = MEMORY_MAX_TEXT,
                                         .help = "the most bytes that decoding one image takes",
                                         .min = 65536,
                                         .max = 1099511627776};
static const tn_option_row strict = {
    .struct_size = ROW,
    .key = "strict",
    .type = "bool",
    .default_text = "true",
    .help = "refuse a JPEG whose data is damaged or ends early; false: decode the "
            "rest as grey, as MXNet does"};
static const tn_option_row *const rows[] = {&pixels_max, &memory_max, &strict, NULL};
static const tn_option_table options = {TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, "image"), rows};

static const tn_capability *const capabilities[] = {&tnimage_jpeg.head,      &tnimage_png.head,
                                                    &tnimage_operators.head, &tnimage_kernels.head,
                                                    &options.head,           NULL};

TN_PLUGIN_DEFINE("image", "0.1.0", "Tenon", "Apache-2.0", "JPEG and PNG, by libjpeg-turbo and libpng", "",
                 "image:jpeg image:png op:_cvimdecode op:_cvimread op:_cvimresize op:_cvcopyMakeBorder "
                 "op:_npi_cvimdecode op:_npi_cvimread op:_npi_cvimresize kernels@cpu options",
                 image_init, image_fini, NULL, capabilities);
