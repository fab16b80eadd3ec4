/*
 * Losses of values, as formulas of x, the labels y and what the options give; one number per sample comes
 * out. Their meaning is that of mxnet.gluon.loss 1.9.1, whose texts these are.
 */
#include "formula.h"
#include "run.h"

#include <math.h>
#include <string.h>

enum { PLAIN, TRANSFORMED = 1, DENSE = 2, BINARY = 4, FULL = 8, WEIGHTED = 16 }; /* variants */
enum { MEAN, SUM, DONE }; /* over all axes but the first */

typedef struct row {
    const char *kind;
    int variant;
    bool same; /* the labels get the shape of x */
    int sum;
    double margin;       /* where the options have 0 */
    const char *formula; /* NULL: that of an operator */
} row;

static const row rows[] = {
    {"l2", PLAIN, true, MEAN, 0, "0.5 * square(y - x)"},
    {"l1", PLAIN, true, MEAN, 0, "abs(y - x)"},
    {"softmax_ce", PLAIN, false, MEAN, 0, "-pick(log_softmax(x), y)"},
    {"softmax_ce", TRANSFORMED, false, MEAN, 0, "-pick(x, y)"},
    {"softmax_ce", DENSE, true, MEAN, 0, "-sum_last(log_softmax(x) * y)"},
    {"softmax_ce", TRANSFORMED | DENSE, true, MEAN, 0, "-sum_last(x * y)"},
    {"sigmoid_ce", PLAIN, true, MEAN, 0, "relu(x) - x * y + softrelu(-abs(x))"},
    {"sigmoid_ce", WEIGHTED, true, MEAN, 0,
     "x - x * y + (1 + (pos_weight - 1) * y) * (softrelu(-abs(x)) + relu(-x))"},
    {"sigmoid_ce", TRANSFORMED, true, MEAN, 0, "-(log(x + 1e-12) * y + log(1 - x + 1e-12) * (1 - y))"},
    {"sigmoid_ce", TRANSFORMED | WEIGHTED, true, MEAN, 0,
     "-(log(x + 1e-12) * y * pos_weight + log(1 - x + 1e-12) * (1 - y))"},
    {"kl_div", PLAIN, true, SUM, 0, "y * (log(y + 1e-12) - log_softmax(x))"},
    {"kl_div", TRANSFORMED, true, SUM, 0, "y * (log(y + 1e-12) - x)"},
    {"huber", PLAIN, true, MEAN, 0, "d := abs(y - x); where(d > rho, d - 0.5 * rho, 0.5 / rho * square(d))"},
    {"hinge", PLAIN, true, MEAN, 1, "relu(margin - x * y)"},
    {"squared_hinge", PLAIN, true, MEAN, 1, "square(relu(margin - x * y))"},
    {"logistic", PLAIN, true, MEAN, 0, "relu(x) - x * ((y + 1) / 2) + softrelu(-abs(x))"},
    {"logistic", BINARY, true, MEAN, 0, "relu(x) - x * y + softrelu(-abs(x))"},
    {"triplet", PLAIN, true, DONE, 1, "relu(sum_all(square(y - x) - square(other - x)) + margin)"},
    {"poisson_nll", PLAIN, true, MEAN, 0, "exp(x) - y * x"},
    {"poisson_nll", TRANSFORMED, true, MEAN, 0, "x - y * log(x + 1e-8)"},
    {"poisson_nll", FULL, true, MEAN, 0,
     "exp(x) - y * x + (y * log(y) - y + 0.5 * log(6.283185307179586 * y)) * (y > 1)"},
    {"poisson_nll", TRANSFORMED | FULL, true, MEAN, 0,
     "x - y * log(x + 1e-8) + (y * log(y) - y + 0.5 * log(6.283185307179586 * y)) * (y > 1)"},
    {"cosine_embedding", PLAIN, false, DONE, 0,
     "c := sum_last(x * other) / max(sqrt(sum_last(square(x))) * sqrt(sum_last(square(other))), 1e-12);"
     "s := column(y); sum_all((1 - c) * (s = 1) + max((s = -1) * (c - margin), 0))"},
    {"sdml", PLAIN, true, DONE, 0,
     "i := column(count(x)) = row(count(x));"
     "l := i * (1 - smoothing) + (1 - i) * (smoothing / (n - 1));"
     "d := sum_drop(square(each(x) - against(y)));"
     "sum_all(l * (log(l + 1e-12) - log_softmax(-d)))"},
    {"ctc", PLAIN, false, DONE, 0, NULL},
};

/* Rows of this kind; `known`: there are some. */
static const row *row_of(const char *kind, int variant, bool *known)
{
    *known = false;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].kind, kind)) {
            *known = true;
            if (rows[i].variant == variant)
                return &rows[i];
        }
    return NULL;
}

static tn_status unknown(tn_app *app, const char *kind, const tn_loss_options *o)
{
    const char *names[sizeof rows / sizeof *rows + 1] = {NULL};
    char what[512];
    size_t count = 0;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!count || strcmp(names[count - 1], rows[i].kind) != 0)
            names[count++] = rows[i].kind;
    (void)snprintf(what, sizeof what, "tn_loss, called at %s:%d:", o->file ? o->file : "?", o->line);
    return tnn_unknown(app, what, kind, names);
}

static tn_status options_check(tn_app *app, const char *kind, const tn_loss_options *o, const row *r)
{
    const char *file = o->file ? o->file : "?", *wrong = NULL;

    if (!r)
        wrong = "has no such combination of .transformed, .dense, .binary, .full and .pos_weight";
    else if (!o->other == (r->formula && strstr(r->formula, "other") != NULL))
        wrong = o->other ? "takes no .other" : "needs .other";
    else if (r->formula && (o->data_lengths || o->label_lengths || o->layout))
        wrong = "takes neither lengths nor a .layout";
    else if (r->formula && o->label_layout)
        wrong = "takes no .label_layout";
    else if (o->axis && strcmp(kind, "softmax_ce") != 0 && strcmp(kind, "kl_div") != 0)
        wrong = "takes no .axis";
    else if (o->batch_axis && r->sum == DONE && strcmp(kind, "triplet") != 0)
        wrong = "takes no .batch_axis";
    else if (o->layout && strcmp(o->layout, "NTC") != 0 && strcmp(o->layout, "TNC") != 0)
        wrong = ": .layout is neither NTC nor TNC";
    else if (o->label_layout && strcmp(o->label_layout, "NT") != 0 && strcmp(o->label_layout, "TN") != 0)
        wrong = ": .label_layout is neither NT nor TN";
    else if (!isfinite(o->weight) || !isfinite(o->margin) || !isfinite(o->rho) || o->rho < 0 ||
             !(o->smoothing >= 0 && o->smoothing <= 1))
        wrong =
            ": .weight, .margin and .rho are finite numbers, .rho is not below 0, .smoothing within 0 and 1";
    return wrong ? tnn_fail(app, TN_E_ARG, "tn_loss %s, called at %s:%d: it %s", kind, file, o->line, wrong)
                 : TN_OK;
}

/* Axes of x from 0 on, which the options may count from the last one. */
static tn_status axes_set(tn_app *app, const char *kind, const tn_loss_options *o, tn_x x, tnn_formula *f)
{
    const bool classes = !strcmp(kind, "softmax_ce") || (!strcmp(kind, "kl_div") && !o->transformed);
    const int32_t ndim = tnn_value_shape(x)->ndim,
                  axis = o->axis > 0 ? o->axis : ndim + (o->axis < 0 ? o->axis : -1);

    if (!o->axis && !o->batch_axis)
        return TN_OK;
    if (axis < 0 || axis >= ndim || o->batch_axis < 0 || o->batch_axis >= ndim ||
        ((o->axis || classes) && axis == o->batch_axis))
        return tnn_fail(app, TN_E_ARG, "tn_loss %s, called at %s:%d: .axis %d and .batch_axis %d of %d axes",
                        kind, o->file ? o->file : "?", o->line, !o->axis && classes ? axis : o->axis,
                        o->batch_axis, ndim);
    if (o->axis) {
        (void)snprintf(f->axis, sizeof f->axis, "%d", axis);
        (void)snprintf(f->axes, sizeof f->axes, "(%d,)", axis);
    }
    if (o->batch_axis)
        (void)snprintf(f->samples, sizeof f->samples, "(%d,)", o->batch_axis);
    return TN_OK;
}

/* Times the weights; summed. */
static tn_x finish(tn_x v, const row *r, const tn_loss_options *o)
{
    static const char *const texts[] = {
        [MEAN] = "mean_all(v * w * n)", [SUM] = "sum_all(v * w * n)", [DONE] = "v * w * n"};
    static const char *const plain[] = {[MEAN] = "mean_all(v)", [SUM] = "sum_all(v)", [DONE] = NULL};
    static const char *const number[] = {
        [MEAN] = "mean_all(v * n)", [SUM] = "sum_all(v * n)", [DONE] = "v * n"};
    tnn_place place = {o->file, o->line};
    tnn_formula f = {.run = tnn_value_step, .arg = &place};
    const double n = o->weight != 0 ? o->weight : 1;
    const char *text = o->sample_weight ? texts[r->sum] : n != 1 ? number[r->sum] : plain[r->sum];

    if (o->batch_axis)
        (void)snprintf(f.samples, sizeof f.samples, "(%d,)", o->batch_axis);
    tnn_formula_name(&f, "v", v, 0);
    tnn_formula_name(&f, "w", o->sample_weight, 0);
    tnn_formula_name(&f, "n", NULL, n);
    return !v || !text ? v : tnn_formula_run(&f, text);
}

static tn_x ctc(tn_x x, tn_x labels, const tn_loss_options *o)
{
    static const int64_t turned[] = {1, 0, 2};
    const bool by_sample = !o->layout || !strcmp(o->layout, "NTC");
    tn_op_options call = {.struct_size = sizeof call,
                          .line = o->line,
                          .file = o->file,
                          .attrs = {"blank_label", "last", "use_data_lengths",
                                    o->data_lengths ? "True" : "False", "use_label_lengths",
                                    o->label_lengths ? "True" : "False"},
                          .with = {labels, o->data_lengths ? o->data_lengths : o->label_lengths,
                                   o->data_lengths ? o->label_lengths : NULL}};

    if (by_sample)
        x = tn_transpose_(x, 3, turned, o->file, o->line);
    if (o->label_layout && !strcmp(o->label_layout, "TN"))
        call.with[0] = tn_transpose_(labels, 2, turned, o->file, o->line);
    return call.with[0] ? tn_op_(x, "CTCLoss", &call) : NULL;
}

/* Labels as a training's data has them are classes of x. */
static tn_status classes_check(tn_app *app, tn_x x, const tn_x labels, const tn_loss_options *o)
{
    const tnn_shape *s = tnn_value_shape(x);
    const int32_t axis = o->axis > 0 ? o->axis : s->ndim + (o->axis < 0 ? o->axis : -1);
    char what[192];

    for (size_t i = 0; app->known && i < app->known->count; i++)
        if (labels == app->known->labels[i] && s->ndim > 0) {
            (void)snprintf(what, sizeof what, "softmax_ce, called at %.128s:%d", o->file ? o->file : "?",
                           o->line);
            return tnn_classes_fit(app, app->known->classes[i], s->dims[axis], what);
        }
    return TN_OK;
}

tn_x tn_loss_(tn_x x, tn_x labels, const char *kind, const tn_loss_options *options)
{
    tn_loss_options o = {0};
    tnn_place place;
    tnn_formula f = {.run = tnn_value_step, .arg = &place};
    const row *r = NULL;
    bool known = false;
    tn_app *app;

    tnn_options_copy(&o, sizeof o, options);
    place = (tnn_place){o.file, o.line};
    if (!(app = tnn_value_pair(x, labels, kind ? kind : "tn_loss", o.file, o.line)))
        return NULL;
    if (kind)
        r = row_of(kind,
                   (o.transformed ? TRANSFORMED : 0) | (o.dense ? DENSE : 0) | (o.binary ? BINARY : 0) |
                       (o.full ? FULL : 0) | (o.pos_weight ? WEIGHTED : 0),
                   &known);
    if (!known) {
        (void)unknown(app, kind ? kind : "", &o);
        return NULL;
    }
    if (options_check(app, kind, &o, r) || (o.other && !tnn_value_app(o.other, kind, o.file, o.line)) ||
        (o.sample_weight && !tnn_value_app(o.sample_weight, kind, o.file, o.line)) ||
        (o.pos_weight && !tnn_value_app(o.pos_weight, kind, o.file, o.line)))
        return NULL;
    if (axes_set(app, kind, &o, x, &f))
        return NULL;
    if (!strcmp(kind, "softmax_ce") && !o.dense && classes_check(app, x, labels, &o))
        return NULL;
    if (!r->formula)
        return finish(ctc(x, labels, &o), r, &o);
    tnn_formula_name(&f, "x", x, 0);
    tnn_formula_name(&f, "y", r->same ? tnn_value_like(labels, x, o.file, o.line) : labels, 0);
    tnn_formula_name(&f, "other", o.other ? tnn_value_like(o.other, x, o.file, o.line) : NULL, 0);
    tnn_formula_name(&f, "pos_weight", o.pos_weight, 0);
    tnn_formula_name(&f, "margin", NULL, o.margin != 0 ? o.margin : r->margin);
    tnn_formula_name(&f, "rho", NULL, o.rho != 0 ? o.rho : 1);
    tnn_formula_name(&f, "smoothing", NULL, o.smoothing != 0 ? o.smoothing : 0.3);
    tnn_formula_name(&f, "n", NULL, tnn_value_shape(x)->ndim > 0 ? (double)tnn_value_shape(x)->dims[0] : 0);
    return finish(tnn_formula_run(&f, r->formula), r, &o);
}

#define LOSS(name)                                                                                           \
    tn_x tn_##name##_(tn_x x, tn_x labels, const char *file, int32_t line)                                   \
    {                                                                                                        \
        const tn_loss_options o = {.struct_size = sizeof o, .line = line, .file = file};                     \
        return tn_loss_(x, labels, #name, &o);                                                               \
    }

LOSS(softmax_ce)
LOSS(sigmoid_ce)
LOSS(l2)
LOSS(l1)
