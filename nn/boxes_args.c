/* Options of boxes: arguments of MXNet's ImageDetRecordIter, what they are by default, what they may be. */
#include "boxes.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

enum { WHOLE, REAL, SAMPLE, TRIALS, TEXT };
/* Where 0 stands for another default, a 0 that is given as text is this, of whole numbers -1. It computes as
 * 0. */
#define NEARLY_ZERO 1e-300

typedef struct row {
    const char *name;
    int kind;
    size_t offset; /* of the options; SAMPLE, TRIALS: of a sampler */
    double min, max, standard;
} row;

#define AT(member) offsetof(tn_boxes_options, member)
#define OF(member) offsetof(tn_crop_sampler, member)
static const row rows[] = {
    {"rand_crop_prob", REAL, AT(rand_crop_prob), 0, 1, 0},
    {"min_crop_scales", SAMPLE, OF(min_scale), 0, 1, 0},
    {"max_crop_scales", SAMPLE, OF(max_scale), 0, 1, 1},
    {"min_crop_aspect_ratios", SAMPLE, OF(min_aspect_ratio), 0, 1e3, 1},
    {"max_crop_aspect_ratios", SAMPLE, OF(max_aspect_ratio), 0, 1e3, 1},
    {"min_crop_overlaps", SAMPLE, OF(min_overlap), 0, 1, 0},
    {"max_crop_overlaps", SAMPLE, OF(max_overlap), 0, 1, 1},
    {"min_crop_sample_coverages", SAMPLE, OF(min_sample_coverage), 0, 1, 0},
    {"max_crop_sample_coverages", SAMPLE, OF(max_sample_coverage), 0, 1, 1},
    {"min_crop_object_coverages", SAMPLE, OF(min_object_coverage), 0, 1, 0},
    {"max_crop_object_coverages", SAMPLE, OF(max_object_coverage), 0, 1, 1},
    {"max_crop_trials", TRIALS, OF(trials), -1, 1e6, 25},
    {"num_crop_sampler", WHOLE, AT(num_crop_sampler), -1, TNN_SAMPLERS_MAX, 1},
    {"crop_emit_mode", TEXT, AT(crop_emit_mode), 0, 0, 0},
    {"emit_overlap_thresh", REAL, AT(emit_overlap_thresh), 0, 1, 0.3},
    {"rand_pad_prob", REAL, AT(rand_pad_prob), 0, 1, 0},
    {"max_pad_scale", REAL, AT(max_pad_scale), 1, 100, 1},
    {"max_random_hue", WHOLE, AT(max_random_hue), 0, 180, 0},
    {"random_hue_prob", REAL, AT(random_hue_prob), 0, 1, 0},
    {"max_random_saturation", WHOLE, AT(max_random_saturation), 0, 255, 0},
    {"random_saturation_prob", REAL, AT(random_saturation_prob), 0, 1, 0},
    {"max_random_illumination", WHOLE, AT(max_random_illumination), 0, 255, 0},
    {"random_illumination_prob", REAL, AT(random_illumination_prob), 0, 1, 0},
    {"max_random_contrast", REAL, AT(max_random_contrast), 0, 1e3, 0},
    {"random_contrast_prob", REAL, AT(random_contrast_prob), 0, 1, 0},
    {"rand_mirror_prob", REAL, AT(rand_mirror_prob), 0, 1, 0},
    {"resize_mode", TEXT, AT(resize_mode), 0, 0, 0},
    {"label_pad_value", REAL, AT(label_pad_value), -1e30, 1e30, -1},
};
#define ROWS (sizeof rows / sizeof *rows)
_Static_assert(ROWS + 2 <= TNN_BOXES_ARGS, "TNN_BOXES_ARGS");

size_t tnn_boxes_names(const char **out)
{
    for (size_t i = 0; i < ROWS; i++)
        out[i] = rows[i].name;
    out[ROWS] = "label_pad_width";
    out[ROWS + 1] = "aug_seq";
    return ROWS + 2;
}

static bool value_take(const row *r, const char *text, char **end, double *v)
{
    *v = tnn_number_read(text, end);
    if (*end == text || !(*v >= r->min && *v <= r->max) ||
        (r->kind != REAL && r->kind != SAMPLE && *v != rint(*v)))
        return false;
    if (*v == 0 && r->standard != 0)
        *v = r->kind == REAL || r->kind == SAMPLE ? NEARLY_ZERO : -1;
    return true;
}

static void value_set(const row *r, void *at, double v)
{
    if (r->kind == REAL || r->kind == SAMPLE)
        memcpy((char *)at + r->offset, &v, sizeof v);
    else
        memcpy((char *)at + r->offset, &(const int32_t){(int32_t)v}, sizeof(int32_t));
}

static double value_of(const row *r, const void *at)
{
    int32_t whole;
    double v;

    memcpy(&whole, (const char *)at + r->offset, sizeof whole);
    memcpy(&v, (const char *)at + r->offset, sizeof v);
    return r->kind == REAL || r->kind == SAMPLE ? v : (double)whole;
}

/* "(0.1,0.5)", "[0.1]" or "0.1": of the samplers one after the other; one number is that of all. */
static bool tuple_take(tnn_boxes_given *g, const row *r, const char *text)
{
    const char *at = text + strspn(text, "([ ");
    double v = 0;
    int32_t count = 0;
    char *end;

    for (; *at && *at != ')' && *at != ']' && count < TNN_SAMPLERS_MAX; at = end + strspn(end, " ,")) {
        if (!value_take(r, at, &end, &v))
            return false;
        value_set(r, &g->samplers[count++], v);
    }
    if (!count || at[strspn(at, ")] ")])
        return false;
    for (int32_t i = count; i < TNN_SAMPLERS_MAX && count == 1; i++)
        value_set(r, &g->samplers[i], v);
    if (count > g->longest)
        g->longest = count;
    return true;
}

static void arg_wrong(tn_app *app, const char *what, const row *r, const char *text)
{
    (void)tnn_fail(app, TN_E_ARG, "%s: %s = \"%.60s\"; it is %s%s%g to %g", what, r->name, text,
                   r->kind == REAL || r->kind == SAMPLE ? "" : "a whole number, ",
                   r->kind == SAMPLE || r->kind == TRIALS ? "one for all samplers or one for each, " : "",
                   r->min, r->max);
}

bool tnn_boxes_arg(tn_app *app, const char *what, const char *name, const char *text, tnn_boxes_given *g)
{
    static const row width = {"label_pad_width", WHOLE, 0, -1, 1 << 24, 0};
    const row *r = rows;
    bool fine = true;
    char *end;
    double v;

    while (r < rows + ROWS && strcmp(r->name, name) != 0)
        r++;
    if (!strcmp(name, "aug_seq")) {
        fine = text && !strcmp(text, "det_aug_default");
    } else if (!strcmp(name, width.name)) {
        if ((fine = text && value_take(&width, text, &end, &v) && !*end))
            g->o.label_pad_width = v < 0 ? 0 : (int64_t)v;
    } else if (r == rows + ROWS) {
        return false;
    } else if (!text) {
        fine = false;
    } else if (r->kind == TEXT) {
        memcpy((char *)&g->o + r->offset, &text, sizeof text);
    } else if (r->kind == SAMPLE || r->kind == TRIALS) {
        fine = tuple_take(g, r, text);
    } else if ((fine = value_take(r, text, &end, &v) && !*end)) {
        value_set(r, &g->o, v);
    }
    if (!fine && !strcmp(name, "aug_seq"))
        (void)tnn_fail(app, TN_E_UNSUPPORTED, "%s: aug_seq = \"%.60s\"; it is det_aug_default", what,
                       text ? text : "");
    else if (!fine)
        arg_wrong(app, what, r < rows + ROWS ? r : &width, text ? text : "");
    return true;
}

tn_status tnn_boxes_begin(tn_app *app, const char *what, const tn_boxes_options *o, tnn_boxes_given *g)
{
    memset(g, 0, sizeof *g);
    g->o = *o;
    if (o->num_crop_sampler < -1 || o->num_crop_sampler > TNN_SAMPLERS_MAX ||
        (o->num_crop_sampler > 1 && !o->samplers))
        return tnn_fail(app, TN_E_ARG, "%s: num_crop_sampler is %d; it is 0 to %d, of `samplers`", what,
                        (int)o->num_crop_sampler, TNN_SAMPLERS_MAX);
    if (o->samplers && o->num_crop_sampler >= 0)
        memcpy(g->samplers, o->samplers,
               (size_t)(o->num_crop_sampler ? o->num_crop_sampler : 1) * sizeof *g->samplers);
    g->o.samplers = NULL;
    return TN_OK;
}

/* Each number of `at` that is 0 gets its default, and is checked. */
static tn_status numbers_check(tn_app *app, const char *what, void *at, bool sampler)
{
    for (const row *r = rows; r < rows + ROWS; r++) {
        const double given = r->kind == TEXT ? 0 : value_of(r, at), v = given != 0 ? given : r->standard;

        if (r->kind == TEXT || sampler != (r->kind == SAMPLE || r->kind == TRIALS))
            continue;
        if (!(v >= r->min && v <= r->max) && v != NEARLY_ZERO)
            return tnn_fail(app, TN_E_ARG, "%s: %s is %g; it is %g to %g", what, r->name, v, r->min, r->max);
        value_set(r, at, v);
    }
    return TN_OK;
}

static tn_status text_check(tn_app *app, const char **text, const char *what, const char *const *names)
{
    if (!*text)
        return TN_OK;
    for (size_t i = 0; names[i]; i++)
        if (!strcmp(names[i], *text)) {
            *text = names[i]; /* ours, which stays */
            return TN_OK;
        }
    return tnn_unknown(app, what, *text, names);
}

static bool ordered(const tn_crop_sampler *s)
{
    return s->min_scale <= s->max_scale && s->min_aspect_ratio <= s->max_aspect_ratio &&
           s->min_overlap <= s->max_overlap && s->min_sample_coverage <= s->max_sample_coverage &&
           s->min_object_coverage <= s->max_object_coverage;
}

tn_status tnn_boxes_end(tn_app *app, const char *what, tnn_boxes_given *g)
{
    static const char *const emits[] = {"center", "overlap", NULL}, *const modes[] = {"force", "shrink",
                                                                                      "fit", NULL};

    if (numbers_check(app, what, &g->o, false) ||
        text_check(app, &g->o.crop_emit_mode, "crop_emit_mode", emits) ||
        text_check(app, &g->o.resize_mode, "resize_mode", modes))
        return app->status;
    if (g->longest > 1 && g->longest != g->o.num_crop_sampler)
        return tnn_fail(app, TN_E_ARG, "%s: a tuple of %d numbers, num_crop_sampler is %d", what,
                        (int)g->longest, (int)g->o.num_crop_sampler);
    if (g->o.label_pad_width < 0 || g->o.label_pad_width > 1 << 24)
        return tnn_fail(app, TN_E_ARG, "%s: label_pad_width is 0 to 2^24", what);
    for (int32_t i = 0; i < g->o.num_crop_sampler; i++) {
        if (numbers_check(app, what, &g->samplers[i], true))
            return app->status;
        if (!ordered(&g->samplers[i]))
            return tnn_fail(app, TN_E_ARG, "%s: of sampler %d a min_ is above its max_", what, (int)i);
    }
    g->o.samplers = g->samplers;
    return TN_OK;
}
