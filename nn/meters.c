/*
 * Meters: a row for each metric says what a batch adds and what comes out at the end, as mxnet.metric 1.9.1
 * has it. A meter keeps arrays and reads them later, so that adding a batch does not wait for the device.
 */
#include "internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define METERS_MAX 64    /* of one list */
#define PENDING_MAX 32   /* batches that a meter keeps before it reads the oldest */
#define CLASSES_MAX 2048 /* of pcc, which counts pairs of them */

typedef struct batch { /* as read: `classes` numbers for each of `rows` labels, or as many as labels */
    const float *x, *labels;
    size_t count, rows, classes;
    size_t inner; /* numbers between those of one label */
    bool numbers; /* x has numbers of classes, as the labels */
    bool joined;  /* more of the batch before */
} batch;

/* What x is. Classes: scores, or numbers of classes in the shape of the labels; last: along the last axis. */
enum { NUMBERS, SCORES, LAST_SCORES, CLASSES };

typedef struct kind {
    const char *name, *shown, *alias; /* shown: mxnet.metric's name of its value; alias: NULL, or one more */
    bool labels;
    int takes;
    tn_status (*add)(tn_meter *m, const batch *b);
    double (*value)(const tn_meter *m); /* NULL: sum / count */
} kind;

/* What pearson keeps of pairs: means, sums of squared and of common deviations. */
typedef struct pairs {
    double n, x, y, xx, yy, xy;
} pairs;

struct tn_meter {
    tnn_object object;
    const kind *kind;
    char *name;            /* as shown */
    struct tn_meter *next; /* of a list; each is an object of its own */
    tn_meter_options o;
    double sum;
    int64_t count;
    double table[2][2]; /* f1, mcc: how often [predicted][true] */
    double before;      /* f1, mcc: the sum before the last batch */
    bool joins;         /* what is added now is joined */
    pairs pairs;
    double *pcc; /* classes × classes: [predicted][true] */
    size_t classes;
    struct {
        tn_array *x, *labels;
        bool joined;
    } pending[PENDING_MAX];
    size_t first, pending_count;
    float *buffer;
    size_t buffer_count;
};

/* ---- classes ---- */

static float score_of(const batch *b, size_t row, size_t k)
{
    return b->x[(row / b->inner * b->classes + k) * b->inner + row % b->inner];
}

/* The first of equal scores counts, as in argmax. */
static size_t best_of(const batch *b, size_t row)
{
    size_t best = 0;

    for (size_t k = 1; k < b->classes; k++)
        if (score_of(b, row, k) > score_of(b, row, best))
            best = k;
    return best;
}

/* A number as a class below `classes`; anything else is an error. */
static tn_status class_at(tn_meter *m, double number, size_t classes, size_t *out)
{
    if (!(number >= 0 && number < (double)classes && number == floor(number)))
        return tnn_fail(m->object.app, TN_E_ARG, "metric %s: label %g of %zu classes", m->kind->name, number,
                        classes);
    *out = (size_t)number;
    return TN_OK;
}

static tn_status class_of(tn_meter *m, const batch *b, size_t row, size_t classes, size_t *out)
{
    return class_at(m, (double)b->labels[row], classes, out);
}

/* Numbers are compared as whole ones. */
static tn_status accuracy_add(tn_meter *m, const batch *b)
{
    for (size_t r = 0; r < b->rows; r++) {
        const float taken = b->numbers ? truncf(b->x[r]) : (float)best_of(b, r);

        m->sum += taken == truncf(b->labels[r]);
    }
    m->count += (int64_t)b->rows;
    return TN_OK;
}

/* Among the k largest; of equal ones those in front. */
static tn_status top_k_add(tn_meter *m, const batch *b)
{
    for (size_t r = 0; r < b->rows; r++) {
        size_t label, above = 0;
        float right;

        if (class_of(m, b, r, b->classes, &label))
            return m->object.app->status;
        right = score_of(b, r, label);
        for (size_t k = 0; k < b->classes; k++)
            above += score_of(b, r, k) > right || (k < label && score_of(b, r, k) == right);
        m->sum += above < (size_t)(m->o.k > 0 ? m->o.k : 1);
    }
    m->count += (int64_t)b->rows;
    return TN_OK;
}

static double f1_of(const double t[2][2])
{
    const double precision = t[1][1] > 0 ? t[1][1] / (t[1][1] + t[1][0]) : 0;
    const double recall = t[1][1] > 0 ? t[1][1] / (t[1][1] + t[0][1]) : 0;

    return precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
}

static double mcc_of(const double t[2][2])
{
    const double sums[] = {t[1][1] + t[1][0], t[1][1] + t[0][1], t[0][0] + t[1][0], t[0][0] + t[0][1]};
    double product = 1;

    for (int i = 0; i < 4; i++)
        product *= sums[i] != 0 ? sums[i] : 1;
    return (t[1][1] * t[0][0] - t[1][0] * t[0][1]) / sqrt(product);
}

/* At most two labels in a batch: 1, and the other one, 0 or -1. */
static tn_status two_classes(tn_meter *m, const batch *b)
{
    float first = 0, second = 0;
    int found = 0;

    if (b->classes != 2)
        return tnn_fail(m->object.app, TN_E_SHAPE, "metric %s is for scores of 2 classes, these have %zu",
                        m->kind->name, b->classes);
    for (size_t r = 0; r < b->rows; r++) {
        const float label = truncf(b->labels[r]);

        if ((found > 0 && label == first) || (found > 1 && label == second))
            continue;
        if (!isfinite(label) || found == 2)
            return tnn_fail(m->object.app, TN_E_ARG, "metric %s: label %g of 2 classes", m->kind->name,
                            (double)label);
        *(found ? &second : &first) = label;
        found++;
    }
    return TN_OK;
}

static tn_status table_add(tn_meter *m, const batch *b, double (*of)(const double t[2][2]))
{
    if (two_classes(m, b))
        return m->object.app->status;
    if (!m->o.micro && !b->joined) {
        memset(m->table, 0, sizeof m->table);
        m->before = m->sum;
        m->count++;
    }
    for (size_t r = 0; r < b->rows; r++)
        m->table[best_of(b, r)][truncf(b->labels[r]) == 1]++;
    m->sum = (m->o.micro ? 0 : m->before) + of((const double(*)[2])m->table);
    m->count = m->o.micro ? 1 : m->count;
    return TN_OK;
}

static tn_status f1_add(tn_meter *m, const batch *b)
{
    return table_add(m, b, f1_of);
}

static tn_status mcc_add(tn_meter *m, const batch *b)
{
    return table_add(m, b, mcc_of);
}

static tn_status pcc_grow(tn_meter *m, size_t classes)
{
    double *grown;

    if (classes <= m->classes)
        return TN_OK;
    if (classes > CLASSES_MAX)
        return tnn_fail(m->object.app, TN_E_UNSUPPORTED, "metric pcc: %zu classes, at most %d are counted",
                        classes, CLASSES_MAX);
    if (!(grown = tnn_alloc(m->object.app, classes * classes, sizeof *grown)))
        return TN_E_NOMEM;
    for (size_t i = 0; i < m->classes; i++)
        memcpy(grown + i * classes, m->pcc + i * m->classes, m->classes * sizeof *grown);
    free(m->pcc);
    m->pcc = grown;
    m->classes = classes;
    return TN_OK;
}

/* Of numbers of classes: one more than the largest. */
static size_t classes_in(const batch *b)
{
    float most = 1;

    for (size_t r = 0; b->numbers && r < b->rows; r++)
        most = fmaxf(most, fmaxf(b->x[r], b->labels[r]));
    return !b->numbers ? b->classes : most < CLASSES_MAX ? (size_t)most + 1 : CLASSES_MAX + 1;
}

static tn_status pcc_add(tn_meter *m, const batch *b)
{
    const size_t classes = classes_in(b);

    if (pcc_grow(m, classes))
        return m->object.app->status;
    for (size_t r = 0; r < b->rows; r++) {
        size_t label, taken = 0;

        if (class_at(m, (double)truncf(b->labels[r]), classes, &label) ||
            (b->numbers && class_at(m, (double)truncf(b->x[r]), classes, &taken)))
            return m->object.app->status;
        m->pcc[(b->numbers ? taken : best_of(b, r)) * m->classes + label]++;
    }
    m->count++;
    return TN_OK;
}

static double pcc_value(const tn_meter *m)
{
    double n = 0, xx = 0, yy = 0, xy = 0;

    for (size_t i = 0; i < m->classes * m->classes; i++)
        n += m->pcc[i];
    for (size_t i = 0; i < m->classes; i++) {
        double x = 0, y = 0;

        for (size_t k = 0; k < m->classes; k++) {
            x += m->pcc[i * m->classes + k];
            y += m->pcc[k * m->classes + i];
        }
        xx += x * (n - x);
        yy += y * (n - y);
        xy += m->pcc[i * m->classes + i] * n - x * y;
    }
    return xx == 0 || yy == 0 ? NAN : xy / sqrt(xx * yy);
}

/* ---- logarithms of probabilities ---- */

/* Sum of -log(at least `least`, p + `more`) of the labels' probabilities. */
static tn_status log_add(tn_meter *m, const batch *b, double least, double more)
{
    for (size_t r = 0; r < b->rows; r++) {
        size_t label;
        double p;

        if (m->o.ignores && (double)b->labels[r] == (double)m->o.ignore)
            continue;
        if (class_of(m, b, r, b->classes, &label))
            return m->object.app->status;
        p = (double)score_of(b, r, label) + more;
        m->sum -= log(p > least ? p : least);
        m->count++;
    }
    return TN_OK;
}

static tn_status cross_entropy_add(tn_meter *m, const batch *b)
{
    return log_add(m, b, 0, m->o.eps != 0 ? m->o.eps : 1e-12);
}

static tn_status perplexity_add(tn_meter *m, const batch *b)
{
    return log_add(m, b, 1e-10, 0);
}

static double perplexity_value(const tn_meter *m)
{
    return exp(m->sum / (double)m->count);
}

/* ---- distances: each batch counts once ---- */

static tn_status difference_add(tn_meter *m, const batch *b, bool square, bool root)
{
    double sum = 0;

    if (b->rows != b->count)
        return tnn_fail(m->object.app, TN_E_SHAPE, "metric %s of %zu numbers with %zu labels", m->kind->name,
                        b->count, b->rows);
    for (size_t i = 0; i < b->count; i++) {
        const double d = (double)b->labels[i] - (double)b->x[i];

        sum += square ? d * d : fabs(d);
    }
    sum /= (double)b->count;
    m->sum += root ? sqrt(sum) : sum;
    m->count++;
    return TN_OK;
}

static tn_status mae_add(tn_meter *m, const batch *b)
{
    return difference_add(m, b, false, false);
}

static tn_status mse_add(tn_meter *m, const batch *b)
{
    return difference_add(m, b, true, false);
}

static tn_status rmse_add(tn_meter *m, const batch *b)
{
    return difference_add(m, b, true, true);
}

/* ---- correlation ---- */

static double pearson_value(const tn_meter *m)
{
    return m->o.micro ? m->pairs.xy / sqrt(m->pairs.xx * m->pairs.yy) : m->sum / (double)m->count;
}

static tn_status pearson_add(tn_meter *m, const batch *b)
{
    pairs *p = &m->pairs;

    if (b->rows != b->count)
        return tnn_fail(m->object.app, TN_E_SHAPE, "metric pearson of %zu numbers with %zu labels", b->count,
                        b->rows);
    if (!m->o.micro)
        memset(p, 0, sizeof *p);
    for (size_t i = 0; i < b->count; i++) {
        const double dx = (double)b->x[i] - p->x, dy = (double)b->labels[i] - p->y;

        p->n++;
        p->x += dx / p->n;
        p->y += dy / p->n;
        p->xx += dx * ((double)b->x[i] - p->x);
        p->yy += dy * ((double)b->labels[i] - p->y);
        p->xy += dx * ((double)b->labels[i] - p->y);
    }
    m->sum += p->xy / sqrt(p->xx * p->yy);
    m->count++;
    return TN_OK;
}

static tn_status loss_add(tn_meter *m, const batch *b)
{
    for (size_t i = 0; i < b->count; i++)
        m->sum += (double)b->x[i];
    m->count += (int64_t)b->count;
    return TN_OK;
}

static tn_status custom_add(tn_meter *m, const batch *b)
{
    double sum = 0;
    const int64_t count = m->o.function(m->o.arg, b->x, b->count, b->labels, b->rows, &sum);

    if (count < 0)
        return tnn_fail(m->object.app, TN_E_ARG, "metric %s: its function failed", m->name);
    m->sum += sum;
    m->count += count;
    return TN_OK;
}

/* ---- the table ---- */

static const kind kinds[] = {
    {"accuracy", "accuracy", "acc", true, CLASSES, accuracy_add, NULL},
    {"loss", "loss", NULL, false, NUMBERS, loss_add, NULL},
    {"top_k_accuracy", "top_k_accuracy", "top_k_acc", true, SCORES, top_k_add, NULL},
    {"f1", "f1", NULL, true, SCORES, f1_add, NULL},
    {"mcc", "mcc", NULL, true, SCORES, mcc_add, NULL},
    {"pcc", "pcc", NULL, true, CLASSES, pcc_add, pcc_value},
    {"perplexity", "perplexity", NULL, true, LAST_SCORES, perplexity_add, perplexity_value},
    {"cross_entropy", "cross-entropy", "ce", true, SCORES, cross_entropy_add, NULL},
    {"nll", "nll-loss", "nll_loss", true, SCORES, cross_entropy_add, NULL},
    {"mae", "mae", NULL, true, NUMBERS, mae_add, NULL},
    {"mse", "mse", NULL, true, NUMBERS, mse_add, NULL},
    {"rmse", "rmse", NULL, true, NUMBERS, rmse_add, NULL},
    {"pearson", "pearsonr", NULL, true, NUMBERS, pearson_add, pearson_value},
};

static const kind custom = {"custom", "custom", NULL, true, NUMBERS, custom_add, NULL};

enum { KINDS = sizeof kinds / sizeof *kinds };

static void drop(tn_meter *m)
{
    tn_array_release(m->pending[m->first].x);
    tn_array_release(m->pending[m->first].labels);
    m->first = (m->first + 1) % PENDING_MAX;
    m->pending_count--;
}

static void reset_one(tn_meter *m)
{
    while (m->pending_count)
        drop(m);
    m->sum = 0;
    m->count = 0;
    memset(m->table, 0, sizeof m->table);
    memset(&m->pairs, 0, sizeof m->pairs);
    for (size_t i = 0; i < m->classes * m->classes; i++)
        m->pcc[i] = 0;
}

void tn_meter_reset(tn_meter *m)
{
    for (; m; m = m->next)
        reset_one(m);
}

static void meter_destroy(tnn_object *object)
{
    tn_meter *m = (tn_meter *)object;

    reset_one(m);
    free(m->buffer);
    free(m->pcc);
    free(m->name);
    free(m);
}

static bool is_name(const char *name, const char *text, size_t length)
{
    return name && strlen(name) == length && !strncasecmp(name, text, length);
}

static const kind *kind_find(tn_app *app, const char *text, size_t length)
{
    const char *names[KINDS + 1] = {NULL};
    char what[64];

    for (size_t i = 0; i < KINDS; i++) {
        names[i] = kinds[i].name;
        if (is_name(kinds[i].name, text, length) || is_name(kinds[i].shown, text, length) ||
            is_name(kinds[i].alias, text, length))
            return &kinds[i];
    }
    (void)snprintf(what, sizeof what, "%.*s", (int)(length < sizeof what ? length : sizeof what), text);
    (void)tnn_unknown(app, "meter", what, names);
    return NULL;
}

static const kind *kind_trimmed(tn_app *app, const char *text, size_t length)
{
    const char *end = text + length;

    while (text < end && *text == ' ')
        text++;
    while (end > text && end[-1] == ' ')
        end--;
    return kind_find(app, text, (size_t)(end - text));
}

static tn_meter *meter_make(tn_app *app, const kind *found, const char *name, const tn_meter_options *o)
{
    tn_meter *m = found ? tnn_alloc(app, 1, sizeof *m) : NULL;

    if (!m)
        return NULL;
    tnn_object_add(app, &m->object, meter_destroy);
    m->kind = found;
    m->o = *o;
    m->o.file = NULL;
    m->name =
        found->add == top_k_add && o->k > 1 ? tnn_format(app, "%s_%d", name, o->k) : tnn_strdup(app, name);
    return m->name ? m : NULL;
}

tn_meter *tn_meter_open_(tn_app *app, const char *what, const tn_meter_options *options)
{
    tn_meter *first = NULL, **at = &first;
    tn_meter_options o = {0};
    size_t length, count = 0;

    tnn_options_copy(&o, sizeof o, options);
    if (!tnn_ok(app))
        return NULL;
    if (o.k < 0 || !(o.eps >= 0 && o.eps < 1)) {
        (void)tnn_fail(app, TN_E_ARG, "tn_meter_open at %s:%d: .k is %d, .eps %g", o.file ? o.file : "?",
                       o.line, o.k, o.eps);
        return NULL;
    }
    if (o.function)
        return meter_make(app, &custom, what && *what ? what : custom.shown, &o);
    for (const char *text = what ? what : "";; text += length + 1) {
        const kind *found;

        if (count++ == METERS_MAX) {
            (void)tnn_fail(app, TN_E_ARG, "tn_meter_open: a list of more than %d metrics", METERS_MAX);
            return NULL;
        }
        length = strcspn(text, ",");
        found = kind_trimmed(app, text, length);
        if (!(*at = meter_make(app, found, found ? found->shown : NULL, &o)))
            return NULL;
        at = &(*at)->next;
        if (!text[length])
            return first;
    }
}

tn_meter *tn_meter_new(tn_app *app, const char *what)
{
    return tn_meter_open_(app, what, NULL);
}

tn_meter *tnn_meter_like(tn_app *app, const tn_meter *m)
{
    tn_meter *first = NULL, **at = &first;

    for (; m && tnn_ok(app); m = m->next) {
        if (!(*at = meter_make(app, m->kind, m->kind == &custom ? m->name : m->kind->shown, &m->o)))
            return NULL;
        at = &(*at)->next;
    }
    return first;
}

static size_t product(const int64_t *shape, int32_t from, int32_t to)
{
    size_t count = 1;

    for (int32_t i = from; i < to; i++)
        count *= (size_t)shape[i];
    return count;
}

bool tnn_classes_second(int32_t ndim, const int64_t *shape, size_t labels)
{
    return ndim > 2 && (size_t)shape[1] * labels == product(shape, 0, ndim);
}

/* The axis of the classes: the asked one, else that of MXNet where the labels fit it, else the last one. */
static int32_t axis_of(const tn_meter *m, const batch *b, int32_t ndim, const int64_t *shape)
{
    if (m->o.axis)
        return m->o.axis < 0 ? m->o.axis + ndim : m->o.axis;
    return m->kind->takes != LAST_SCORES && tnn_classes_second(ndim, shape, b->rows) ? 1 : ndim - 1;
}

/* How x and the labels lie to each other. */
static tn_status batch_fit(tn_meter *m, tn_array *x, tn_array *labels, batch *b)
{
    const int64_t *shape = NULL, *of = NULL;
    int32_t ndim = 0, label_ndim = 0, axis;
    tn_app *app = m->object.app;

    b->inner = 1;
    if (labels && (!b->rows || !b->count || b->count % b->rows))
        return tnn_fail(app, TN_E_SHAPE, "%s of %zu numbers with %zu labels", m->kind->name, b->count,
                        b->rows);
    b->classes = b->rows ? b->count / b->rows : 0;
    if (m->kind->takes == NUMBERS)
        return TN_OK;
    if (tnn_check(app, tn_array_shape(x, &ndim, &shape), "metric %s", m->kind->name) ||
        tnn_check(app, tn_array_shape(labels, &label_ndim, &of), "metric %s", m->kind->name))
        return app->status;
    b->numbers =
        m->kind->takes == CLASSES && ndim == label_ndim && !memcmp(shape, of, (size_t)ndim * sizeof *shape);
    if (b->numbers)
        return TN_OK;
    axis = axis_of(m, b, ndim, shape);
    if (axis < 0 || axis >= ndim || (size_t)shape[axis] != b->classes) {
        char have[TNN_SHAPE_TEXT], want[TNN_SHAPE_TEXT];

        return tnn_fail(app, TN_E_SHAPE, "metric %s: axis %d of scores %s, with labels %s", m->kind->name,
                        axis, tnn_shape_text(ndim, shape, have), tnn_shape_text(label_ndim, of, want));
    }
    b->inner = product(shape, axis + 1, ndim);
    return TN_OK;
}

static tn_status drain_one(tn_meter *m)
{
    tn_app *app = m->object.app;
    tn_array *x = m->pending[m->first].x, *labels = m->pending[m->first].labels;
    const size_t count = tn_array_count(x), rows = labels ? tn_array_count(labels) : count;
    batch b = {.count = count, .rows = rows, .joined = m->pending[m->first].joined};

    if (batch_fit(m, x, labels, &b))
        return app->status;
    if (m->buffer_count < count + rows) {
        float *grown = realloc(m->buffer, (count + rows) * sizeof *grown);

        if (!grown)
            return tnn_no_memory(app);
        m->buffer = grown;
        m->buffer_count = count + rows;
    }
    if (!tn_app_read(app, x, count, m->buffer) ||
        (labels && !tn_app_read(app, labels, rows, m->buffer + count)))
        return app->status;
    b.x = m->buffer;
    b.labels = m->buffer + count;
    if (!m->kind->add(m, &b))
        drop(m);
    return app->status;
}

bool tnn_meter_labelled(const tn_meter *m)
{
    while (m && !m->kind->labels)
        m = m->next;
    return m != NULL;
}

static void add_one(tn_meter *m, tn_array *x, tn_array *labels)
{
    size_t at;

    if (!tnn_ok(m->object.app) || !x || (m->kind->labels && !labels))
        return;
    if (m->pending_count == PENDING_MAX && drain_one(m))
        return;
    at = (m->first + m->pending_count++) % PENDING_MAX;
    tn_array_retain(x);
    m->pending[at].x = x;
    m->pending[at].joined = m->joins;
    if (m->kind->labels)
        tn_array_retain(labels);
    m->pending[at].labels = m->kind->labels ? labels : NULL;
}

void tn_meter_add(tn_meter *m, tn_array *x, tn_array *labels)
{
    for (; m; m = m->next)
        add_one(m, x, labels);
}

void tnn_meter_join(tn_meter *m, bool on)
{
    for (; m; m = m->next)
        m->joins = on;
}

double tn_meter_value(tn_meter *m)
{
    if (!m || !tnn_ok(m->object.app))
        return NAN;
    while (m->pending_count)
        if (drain_one(m))
            return NAN;
    if (!m->count)
        return NAN;
    return m->kind->value ? m->kind->value(m) : m->sum / (double)m->count;
}

size_t tn_meter_count(const tn_meter *m)
{
    size_t count = 0;

    for (; m; m = m->next)
        count++;
    return count;
}

tn_meter *tn_meter_at(tn_meter *m, size_t index)
{
    while (m && index--)
        m = m->next;
    return m;
}

const char *tn_meter_name(const tn_meter *m)
{
    return m ? m->name : NULL;
}

tn_status tnn_meter_get(tn_meter *m, double *sum, int64_t *count)
{
    (void)tn_meter_value(m);
    *sum = m->sum;
    *count = m->count;
    return m->object.app->status;
}

void tnn_meter_set(tn_meter *m, double sum, int64_t count)
{
    tn_meter_reset(m);
    m->sum = sum;
    m->count = count;
}
