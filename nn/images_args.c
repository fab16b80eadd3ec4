/* The options of images: MXNet's names and texts for them, what they are by default, what they may be. */
#include "images.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { INT, BOOL, WIDE, REAL, TEXT, SHAPE, INTER, MINUS, IGNORED, KINDS = 15, BOXES = 16 };

typedef struct row {
    const char *name;
    int kind; /* MINUS: -1 stands for what is 0 here; IGNORED: it changes nothing here; | BOXES: images with
                 boxes have it, too */
    size_t offset;
    double min, max;
} row;

#define AT(member) offsetof(tn_images_options, member)
#define PATH_IMGREC 0 /* row */
static const row rows[] = {
    {"path_imgrec", TEXT | BOXES, 0, 0, 0},
    {"path_imgidx", TEXT | BOXES, AT(index), 0, 0},
    {"path_imglist", TEXT | BOXES, AT(list), 0, 0},
    {"data_shape", SHAPE | BOXES, AT(shape), 0, 0},
    {"batch_size", WIDE | BOXES, AT(batch), 1, 1 << 24},
    {"label_width", WIDE | BOXES, AT(label_width), 1, 65536},
    {"shuffle", BOOL | BOXES, AT(shuffle), 0, 1},
    {"seed", WIDE | BOXES, AT(seed), 0, 9e15},
    {"seed_aug", WIDE | BOXES, AT(seed_aug), 0, 9e15},
    {"num_parts", WIDE | BOXES, AT(parts), 1, UINT32_MAX},
    {"part_index", WIDE | BOXES, AT(part), 0, UINT32_MAX},
    {"preprocess_threads", INT | BOXES, AT(threads), 1, 256},
    {"prefetch_buffer", INT | BOXES, AT(prefetch), 1, 4096},
    {"resize", MINUS | BOXES, AT(resize), 1, 65500},
    {"rand_crop", BOOL, AT(rand_crop), 0, 1},
    {"random_resized_crop", BOOL, AT(random_resized_crop), 0, 1},
    {"max_rotate_angle", INT, AT(max_rotate_angle), 0, 360},
    {"rotate", MINUS, AT(rotate), 0, 360},
    {"max_aspect_ratio", REAL, AT(max_aspect_ratio), 0, 1e3},
    {"min_aspect_ratio", REAL, AT(min_aspect_ratio), 0, 1e3},
    {"max_shear_ratio", REAL, AT(max_shear_ratio), 0, 1e3},
    {"max_crop_size", MINUS, AT(max_crop_size), 1, 65500},
    {"min_crop_size", MINUS, AT(min_crop_size), 1, 65500},
    {"max_random_scale", REAL, AT(max_random_scale), 1e-6, 1e3},
    {"min_random_scale", REAL, AT(min_random_scale), 1e-6, 1e3},
    {"max_random_area", REAL, AT(max_random_area), 1e-9, 1},
    {"min_random_area", REAL, AT(min_random_area), 1e-9, 1},
    {"max_img_size", REAL, AT(max_img_size), 0, 1e10},
    {"min_img_size", REAL, AT(min_img_size), 0, 65500},
    {"brightness", REAL, AT(brightness), 0, 1e3},
    {"contrast", REAL, AT(contrast), 0, 1e3},
    {"saturation", REAL, AT(saturation), 0, 1e3},
    {"pca_noise", REAL, AT(pca_noise), 0, 1e3},
    {"random_h", INT, AT(random_h), 0, 180},
    {"random_s", INT, AT(random_s), 0, 255},
    {"random_l", INT, AT(random_l), 0, 255},
    {"fill_value", INT | BOXES, AT(fill_value), -1, 255},
    {"inter_method", INTER | BOXES, AT(inter), 0, 0},
    {"pad", INT, AT(pad), 0, 4096},
    {"mirror", BOOL, AT(mirror), 0, 1},
    {"rand_mirror", BOOL, AT(rand_mirror), 0, 1},
    {"mean_img", TEXT | BOXES, AT(mean_img), 0, 0},
    {"mean_r", REAL | BOXES, AT(mean[0]), -1e6, 1e6},
    {"mean_g", REAL | BOXES, AT(mean[1]), -1e6, 1e6},
    {"mean_b", REAL | BOXES, AT(mean[2]), -1e6, 1e6},
    {"mean_a", REAL | BOXES, AT(mean[3]), -1e6, 1e6},
    {"std_r", REAL | BOXES, AT(std[0]), -1e6, 1e6},
    {"std_g", REAL | BOXES, AT(std[1]), -1e6, 1e6},
    {"std_b", REAL | BOXES, AT(std[2]), -1e6, 1e6},
    {"std_a", REAL | BOXES, AT(std[3]), -1e6, 1e6},
    {"scale", REAL | BOXES, AT(scale), -1e6, 1e6},
    {"max_random_contrast", REAL, AT(max_random_contrast), 0, 1e6},
    {"max_random_illumination", REAL, AT(max_random_illumination), 0, 1e6},
    {"round_batch", BOOL | BOXES, AT(last), 0, 1},
    {"verbose", IGNORED | BOXES, 0, 0, 0},
    {"device_id", IGNORED | BOXES, 0, 0, 0},
    {"ctx", IGNORED | BOXES, 0, 0, 0},
    {"shuffle_chunk_size", IGNORED | BOXES, 0, 0, 0},
    {"shuffle_chunk_seed", IGNORED | BOXES, 0, 0, 0},
};
#define ROWS (sizeof rows / sizeof *rows)

static int kind_of(const row *r)
{
    return r->kind & KINDS;
}

static tn_status value_wrong(tn_app *app, const char *what, const row *r, const char *text)
{
    return tnn_fail(app, TN_E_ARG, "%s: %s = \"%.60s\"; it is %s%g to %g", what, r->name, text,
                    kind_of(r) == REAL ? "" : "a whole number, ", r->min, r->max);
}

/* "(3,224,224)" */
static tn_status shape_take(tn_app *app, const char *what, const char *text, int64_t shape[3])
{
    int64_t v[3];
    const char *at = text + strspn(text, "([ ");
    char *end = NULL;

    for (int i = 0; i < 3; i++) {
        v[i] = strtoll(at, &end, 10);
        if (end == at || (i < 2 && end[strspn(end, " ")] != ','))
            return tnn_fail(app, TN_E_ARG, "%s: data_shape = \"%.60s\"; it is (channels,height,width)", what,
                            text);
        at = end + strspn(end, " ,");
    }
    memcpy(shape, v, sizeof v);
    return TN_OK;
}

static tn_status inter_take(tn_app *app, const char *what, const char *text, const char **out)
{
    static const char *const names[] = {"nearest", "linear", "cubic", "area", "lanczos", NULL};
    const long i = strtol(text, NULL, 10);

    if (strspn(text, "0123456789") != strlen(text) || (i > 4 && i != 9 && i != 10))
        return tnn_fail(app, TN_E_ARG, "%s: inter_method = \"%.60s\"; it is 0 to 4, 9 or 10", what, text);
    *out = i == 9 ? "auto" : i == 10 ? "random" : names[i];
    return TN_OK;
}

static bool truth_of(const char *text, double *out)
{
    static const char *const words[] = {"False", "True", "false", "true"};

    for (int i = 0; i < 4; i++)
        if (!strcmp(text, words[i])) {
            *out = i % 2;
            return true;
        }
    return false;
}

static tn_status number_take(tn_app *app, const char *what, const row *r, const char *text,
                             tn_images_options *o)
{
    char *at = (char *)o + r->offset, *end;
    double v = tnn_number_read(text, &end);
    const bool minus = (kind_of(r) == MINUS || (r->offset == AT(label_width) && o->boxes)) && v == -1;

    if (!(kind_of(r) == BOOL && truth_of(text, &v)) &&
        (end == text || *end || !(minus || (v >= r->min && v <= r->max)) ||
         (kind_of(r) != REAL && v != rint(v))))
        return value_wrong(app, what, r, text);
    v = minus ? 0 : v;
    if (r->offset == AT(label_width) && o->boxes)
        o->label_width = (int64_t)v;
    else if (kind_of(r) == REAL)
        memcpy(at, &v, sizeof v);
    else if (kind_of(r) == WIDE)
        memcpy(at, &(const int64_t){(int64_t)v}, sizeof(int64_t));
    else if (r->offset == AT(last))
        o->last = v != 0 ? "round" : "pad";
    else
        memcpy(at, &(const int32_t){(int32_t)v}, sizeof(int32_t));
    if (r->offset == AT(fill_value) && v == 0)
        o->fill_value = -1;
    return TN_OK;
}

static tn_status name_unknown(tn_app *app, const char *name, bool boxes)
{
    const char *names[ROWS + TNN_BOXES_ARGS + 1] = {NULL};
    size_t count = boxes ? tnn_boxes_names(names) : 0;

    for (size_t i = 0; i < ROWS; i++)
        if (!boxes || rows[i].kind & BOXES)
            names[count++] = rows[i].name;
    return tnn_unknown(app, boxes ? "argument of ImageDetRecordIter" : "argument of ImageRecordIter", name,
                       names);
}

static tn_status arg_take(tn_app *app, const char *what, const char *name, const char *text,
                          tn_images_options *o, tnn_boxes_given *boxes, const char **path)
{
    size_t k = 0;

    if (boxes && tnn_boxes_arg(app, what, name, text, boxes))
        return app->status;
    while (k < ROWS && (strcmp(rows[k].name, name) != 0 || (boxes && !(rows[k].kind & BOXES))))
        k++;
    if (k == ROWS)
        return name_unknown(app, name, boxes);
    if (!text)
        return tnn_fail(app, TN_E_ARG, "%s: %s has no value", what, name);
    switch (kind_of(&rows[k])) {
    case IGNORED:
        return TN_OK;
    case TEXT:
        *(k == PATH_IMGREC ? path : (const char **)(void *)((char *)o + rows[k].offset)) =
            *text ? text : NULL;
        return TN_OK;
    case SHAPE:
        return shape_take(app, what, text, o->shape);
    case INTER:
        return inter_take(app, what, text, &o->inter);
    default:
        return number_take(app, what, &rows[k], text, o);
    }
}

/* The numbers of the struct itself have the same limits. */
static tn_status numbers_check(tn_app *app, const char *what, const tn_images_options *o)
{
    for (size_t i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        const char *at = (const char *)o + r->offset;
        int32_t whole;
        double v;

        if (r->offset < AT(shape) ||
            (kind_of(r) != INT && kind_of(r) != BOOL && kind_of(r) != REAL && kind_of(r) != MINUS))
            continue;
        memcpy(&whole, at, sizeof whole);
        memcpy(&v, at, sizeof v);
        v = kind_of(r) == REAL ? v : (double)whole;
        if (v != 0 && !(v >= r->min && v <= r->max) && !(r->offset == AT(threads) && whole == -1))
            return tnn_fail(app, TN_E_ARG, "%s: %s is %g; it is %g to %g", what, r->name, v, r->min, r->max);
        if (v != 0 && o->boxes && !(r->kind & BOXES))
            return tnn_fail(app, TN_E_ARG, "%s: %s does not go with boxes", what, r->name);
    }
    if (o->boxes && (o->force_resize || o->divisor != 0 || (o->classes && o->classes != -1)))
        return tnn_fail(app, TN_E_ARG, "%s: %s does not go with boxes", what,
                        o->force_resize   ? "force_resize"
                        : o->divisor != 0 ? "divisor"
                                          : "classes");
    return TN_OK;
}

static void default_set(double *v, double standard)
{
    *v = *v != 0 ? *v : standard;
}

static void defaults_set(tn_images_options *o)
{
    default_set(&o->min_random_scale, 1);
    default_set(&o->max_random_scale, 1);
    default_set(&o->min_random_area, 1);
    default_set(&o->max_random_area, 1);
    default_set(&o->scale, 1);
    for (int i = 0; i < 4; i++)
        default_set(&o->std[i], 1);
    if (o->min_aspect_ratio == 0) {
        o->min_aspect_ratio = 1 - o->max_aspect_ratio;
        o->max_aspect_ratio = 1 + o->max_aspect_ratio;
    }
    o->max_img_size = o->max_img_size >= 1e10 ? 0 : o->max_img_size;
    o->label_width = o->boxes         ? (o->label_width < 0 ? 0 : o->label_width)
                     : o->label_width ? o->label_width
                                      : 1;
    if (o->boxes) {
        o->fill_value = o->fill_value ? o->fill_value : 127;
        o->classes = -1; /* labels are none */
    }
    o->threads = o->threads ? o->threads : 4;
    o->threads = o->threads < 0 ? 0 : o->threads;
    o->prefetch = o->prefetch ? o->prefetch : 4;
    o->max_crop_size = o->max_crop_size ? o->max_crop_size : o->min_crop_size;
    o->min_crop_size = o->min_crop_size ? o->min_crop_size : o->max_crop_size;
}

static tn_status together_check(tn_app *app, const char *what, const tn_images_options *o)
{
    static const char *const inters[] = {"nearest", "linear", "cubic",  "area",
                                         "lanczos", "auto",   "random", NULL};
    const char *fault = NULL;

    if (o->inter && !tnn_one_of(o->inter, inters))
        return tnn_unknown(app, "interpolation", o->inter, inters);
    if (o->shape[0] || o->shape[1] || o->shape[2]) {
        if ((o->shape[0] != 1 && o->shape[0] != 3 && o->shape[0] != 4) || o->shape[1] < 1 ||
            o->shape[2] < 1 || o->shape[1] > 65500 || o->shape[2] > 65500)
            fault = "the shape is 1, 3 or 4 channels, height and width";
    }
    if (o->random_resized_crop &&
        (o->rand_crop || o->max_crop_size || o->min_random_scale != 1 || o->max_random_scale != 1))
        fault = "random_resized_crop goes with none of rand_crop, crop sizes and random scales";
    if (o->min_crop_size > o->max_crop_size || o->min_random_scale > o->max_random_scale ||
        o->min_random_area > o->max_random_area || o->min_aspect_ratio > o->max_aspect_ratio)
        fault = "a min_ is above its max_";
    if (!(o->min_aspect_ratio > 0))
        fault = "the aspect ratio is above 0";
    if (o->label_width < !o->boxes || o->label_width > 65536 || o->classes < -1 || o->classes > 16777216)
        fault = "label_width is 1 to 65536, classes -1 to 2^24";
    if (!isfinite(o->divisor))
        fault = "the divisor is finite";
    return fault ? tnn_fail(app, TN_E_ARG, "%s: %s", what, fault) : TN_OK;
}

tn_status tnn_images_options(tn_app *app, const char *what, tn_images_options *o, tnn_boxes_given *boxes,
                             const char **path)
{
    if (o->boxes && tnn_boxes_begin(app, what, o->boxes, boxes))
        return app->status;
    for (const char *const *a = o->args; a && *a; a += 2)
        if (arg_take(app, what, a[0], a[1], o, o->boxes ? boxes : NULL, path))
            return app->status;
    if (o->boxes && tnn_boxes_end(app, what, boxes))
        return app->status;
    o->boxes = o->boxes ? &boxes->o : NULL;
    if (o->args && !o->index)
        o->index = "";
    if (numbers_check(app, what, o))
        return app->status;
    defaults_set(o);
    return together_check(app, what, o);
}
