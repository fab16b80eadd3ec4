/*
 * Data as people have it: a CSV, LibSVM, .npz, .npy or .rec file, or a folder with train and test ones. What
 * the training sees first says how the rest is read: scaling, classes, columns (about.c). Where one file has
 * all samples, those to test with are drawn by a seed.
 */
#include "own.h"

#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define TEXT_LABELS_MAX 1000 /* numbers that become names of classes */
#define FEW_CLASSES 100      /* auto: whole numbers of a table are classes up to this */

/* ---- CSV, LibSVM ---- */

static tn_status csv_load(tnn_loading *l)
{
    l->table = true;
    return tnn_table_read(l->app, l->d, l->path, &l->q, l->a);
}

static tn_status libsvm_load(tnn_loading *l)
{
    tn_array *csr = NULL, *labels = NULL, *dense = NULL;
    int64_t columns = 0;
    tn_status st;

    if (l->q.about) {
        const tnn_shape *s = &l->q.about->inputs[0].shape;

        columns = 1;
        for (int32_t i = 0; i < s->ndim; i++)
            columns *= s->dims[i];
    }
    l->table = true;
    st = tn_libsvm_load(l->app->ctx, l->path, columns, &csr, &labels);
    if (!st)
        st = tn_array_to_storage(l->app->ctx, csr, TN_STORAGE_DENSE, &dense);
    if (!tnn_check(l->app, st, "%s", l->path) && !tnn_field_array(l->app, l->d, "data", dense) && !l->q.whole)
        (void)tnn_label_add(l, labels);
    l->whole_type = false;
    tn_array_release(csr);
    tn_array_release(labels);
    tn_array_release(dense);
    return l->app->status;
}

/* ---- formats ---- */

static const struct {
    const char *end;
    tn_status (*load)(tnn_loading *l);
} formats[] = {{".csv", csv_load},     {".csv.gz", csv_load},      {".tsv", csv_load},
               {".npz", tnn_npz_load}, {".npy", tnn_npy_load},     {".libsvm", libsvm_load},
               {".svm", libsvm_load},  {".libsvm.gz", libsvm_load}};
#define FORMATS (sizeof formats / sizeof *formats)

static size_t format_of(const char *path)
{
    size_t i = 0;

    while (i < FORMATS && !tnn_ends_with(path, formats[i].end))
        i++;
    return i;
}

bool tnn_own_is(const char *path)
{
    return format_of(path) < FORMATS;
}

/* "train.csv" is the file of the part. */
static bool is_part(const char *name, const char *part)
{
    const size_t n = strlen(part), format = format_of(name);

    return format < FORMATS && !strncmp(name, part, n) && !strcmp(name + n, formats[format].end);
}

tn_status tnn_own_find(tn_app *app, const char *folder, const char *part, char **path, bool *split)
{
    DIR *dir = opendir(folder);
    char found[2][256] = {"", ""}, any[256] = "";
    const char *const parts[] = {"train", "test"}, *chosen;
    const struct dirent *e;
    size_t count = 0, arrays = 0;

    while (dir && (e = readdir(dir))) {
        if (e->d_name[0] == '.' || !tnn_own_is(e->d_name))
            continue;
        count++;
        arrays += tnn_ends_with(e->d_name, ".npy");
        if (!*any || strcmp(e->d_name, any) < 0)
            (void)snprintf(any, sizeof any, "%s", e->d_name);
        for (size_t i = 0; i < 2; i++)
            if (is_part(e->d_name, parts[i]))
                (void)snprintf(found[i], sizeof found[i], "%s", e->d_name);
    }
    if (dir)
        (void)closedir(dir);
    chosen = !strcmp(part, "test") && *found[1] ? found[1] : found[0];
    *split = !*found[0] || !*found[1];
    if (!*found[0] && arrays == count && arrays > 1)
        return (*path = tnn_strdup(app, folder)) ? TN_OK : app->status;
    if (!*chosen && count > 1)
        return tnn_fail(app, TN_E_KEY, "%s holds %zu data files (%s …) and no train one: name one of them",
                        folder, count, any);
    chosen = *chosen ? chosen : any;
    *split = *split && !is_part(chosen, "test");
    *path = count ? tnn_format(app, "%s/%s", folder, chosen) : NULL;
    return app->status;
}

/* ---- labels ---- */

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

static tnn_field *label_of(const tn_data *d)
{
    const int at = tnn_data_find(d, "label");

    return at < 0 ? NULL : (tnn_field *)(uintptr_t)&d->fields[at];
}

/* Different values, rising; `whole`: all are whole numbers. To be freed. */
static float *values_find(tn_app *app, const tnn_field *y, size_t count, size_t *different, bool *whole)
{
    float *values = tnn_alloc(app, count, sizeof *values);

    *different = 0;
    *whole = true;
    if (!values)
        return NULL;
    memcpy(values, y->floats, count * sizeof *values);
    qsort(values, count, sizeof *values, by_value);
    for (size_t i = 0; i < count; i++) {
        *whole = *whole && values[i] == rintf(values[i]) && fabsf(values[i]) < 16777216;
        if (!i || values[i] != values[*different - 1])
            values[(*different)++] = values[i];
    }
    return values;
}

/* Numbers that do not count from 0 become names. */
static tn_status classes_name(tnn_loading *l, tnn_field *y, const float *values, size_t count)
{
    float *labels = y->own;
    char name[32];

    l->a->classes = (int64_t)count;
    if (values[0] == 0 && values[count - 1] == (float)(count - 1))
        return TN_OK;
    if (count > TEXT_LABELS_MAX) {
        l->a->classes = (int64_t)values[count - 1] + 1;
        return values[0] >= 0 ? TN_OK
                              : tnn_fail(l->app, TN_E_FORMAT, "%s: label %g, but classes count from 0",
                                         l->path, (double)values[0]);
    }
    for (size_t i = 0; i < count && !l->app->status; i++) {
        (void)snprintf(name, sizeof name, "%.9g", (double)values[i]);
        (void)tnn_texts_add(l->app, &l->a->names, name);
    }
    for (int64_t i = 0; i < l->d->count; i++) {
        const float *at = bsearch(&labels[i], values, count, sizeof *values, by_value);

        labels[i] = (float)(at - values);
    }
    return l->app->status;
}

/* Labels of a model's classes: numbers that have names, or classes from 0. */
static tn_status classes_again(tnn_loading *l, tnn_field *y)
{
    const tnn_about *a = l->q.about;
    float *labels = y->own;
    char name[32];

    for (int64_t i = 0; i < l->d->count; i++) {
        const float x = labels[i];
        int64_t k = x == rintf(x) && x >= 0 && x < (float)a->classes ? (int64_t)x : -1;

        if (a->names.count) {
            (void)snprintf(name, sizeof name, "%.9g", (double)x);
            k = tnn_texts_find(&a->names, name);
        }
        if (k < 0)
            return tnn_fail(l->app, TN_E_SHAPE,
                            "%s: label %g of sample %lld is none of the model's %lld classes", l->path,
                            (double)x, (long long)i, (long long)a->classes);
        labels[i] = (float)k;
    }
    return TN_OK;
}

/* A 1 among zeros in each row: classes in another form. */
static bool is_one_hot(const tnn_field *y, size_t rows)
{
    for (size_t i = 0; i < rows; i++) {
        size_t ones = 0, zeros = 0;

        for (size_t k = 0; k < y->sample; k++) {
            ones += y->floats[i * y->sample + k] == 1;
            zeros += y->floats[i * y->sample + k] == 0;
        }
        if (ones != 1 || zeros != y->sample - 1)
            return false;
    }
    return rows > 0;
}

/* Several numbers for each sample. */
static tn_status task_of_rows(tnn_loading *l, const tnn_field *y)
{
    l->a->task = TN_TASK_NUMBERS;
    if (!strcmp(l->q.task, "classification"))
        return tnn_fail(l->app, TN_E_SHAPE,
                        "%s: %zu labels of a sample are no class: a class is one number, such as "
                        "y.argmax(1) of NumPy",
                        l->path, y->sample);
    if (strcmp(l->q.task, "regression") != 0 && is_one_hot(y, (size_t)l->d->count))
        return tnn_fail(l->app, TN_E_SHAPE,
                        "%s: each sample has %zu labels, a 1 among zeros: classes need one number each, such "
                        "as y.argmax(1) of NumPy; data.task=regression learns the labels as numbers",
                        l->path, y->sample);
    return TN_OK;
}

/* Classes or numbers: as asked, or by what they look like. */
static tn_status task_find(tnn_loading *l, tnn_field *y)
{
    const size_t count = (size_t)l->d->count;
    size_t different;
    bool whole, few;
    float *values;

    if (y->sample != 1)
        return task_of_rows(l, y);
    if (!(values = values_find(l->app, y, count, &different, &whole)))
        return l->app->status;
    few = l->whole_type ? different < count || count < 3 : different <= FEW_CLASSES && 2 * different <= count;
    l->a->task = !strcmp(l->q.task, "regression")       ? TN_TASK_NUMBERS
                 : !strcmp(l->q.task, "classification") ? TN_TASK_CLASSES
                 : whole && few                         ? TN_TASK_CLASSES
                                                        : TN_TASK_NUMBERS;
    if (l->a->task == TN_TASK_CLASSES && !whole)
        (void)tnn_fail(l->app, TN_E_FORMAT,
                       "%s: classes are whole numbers or texts; for numbers: data.task=regression", l->path);
    else if (l->a->task == TN_TASK_CLASSES)
        (void)classes_name(l, y, values, different);
    free(values);
    return l->app->status;
}

static tn_status labels_settle(tnn_loading *l)
{
    tnn_field *y = label_of(l->d);
    const tnn_about *given = l->q.about;

    if (!y) {
        l->a->task = TN_TASK_CLASSES;
        return l->q.whole ? TN_OK : tnn_fail(l->app, TN_E_FORMAT, "%s has no labels", l->path);
    }
    for (int64_t i = 0; i < l->d->count * (int64_t)y->sample; i++)
        if (!isfinite(y->floats[i]))
            return tnn_fail(l->app, TN_E_FORMAT, "%s: label %lld is %g", l->path, (long long)i,
                            (double)y->floats[i]);
    if (l->a->names.count ||
        (given && given->names.count && l->table && tnn_own_is(l->path) &&
         formats[format_of(l->path)].load == csv_load)) { /* texts of a CSV, or read by name */
        l->a->task = TN_TASK_CLASSES;
        if (given ? !given->names.count : !strcmp(l->q.task, "regression"))
            return tnn_fail(l->app, TN_E_FORMAT, "%s: labels are texts, numbers are needed", l->path);
        return TN_OK;
    }
    if (given)
        return given->task == TN_TASK_CLASSES ? classes_again(l, y) : TN_OK;
    return task_find(l, y);
}

/* ---- parts ---- */

/* Which samples are to test with: a draw without order. To be freed. */
static uint8_t *test_draw(tn_app *app, int64_t count, double share, uint64_t seed)
{
    uint8_t *test = tnn_alloc(app, (size_t)count, 1);
    uint32_t *order = tnn_alloc(app, (size_t)count, sizeof *order);
    const uint64_t key = tnn_random_mix(seed, TNN_PURPOSE_SPLIT);
    int64_t tests = (int64_t)((double)count * share + 0.5);

    tests = tests < 1 ? 1 : tests >= count ? count - 1 : tests;
    for (int64_t i = 0; order && i < count; i++)
        order[i] = (uint32_t)i;
    for (int64_t i = 0; order && test && i < tests; i++) {
        const int64_t j = i + (int64_t)(tnn_random_unit(key, 0, (uint64_t)i) * (double)(count - i));
        const uint32_t kept = order[j];

        order[j] = order[i];
        order[i] = kept;
        test[kept] = 1;
    }
    free(order);
    return test;
}

/* Only the samples whose mark is `mine` stay. */
static tn_status rows_keep(tn_app *app, tn_data *d, const uint8_t *test, uint8_t mine)
{
    int64_t kept = 0;

    for (size_t i = 0; i < d->field_count; i++) {
        tnn_field *f = &d->fields[i];
        const size_t bytes = f->sample * (f->bytes ? 1 : sizeof(float));

        if (f->bytes) {
            if (!(f->own = tnn_alloc(app, (size_t)d->count, bytes)))
                return app->status;
            memcpy(f->own, f->bytes, (size_t)d->count * bytes);
            f->bytes = f->own;
            tn_array_release(f->array);
            f->array = NULL;
        }
        kept = 0;
        for (int64_t k = 0; k < d->count; k++)
            if (test[k] == mine)
                memmove((char *)f->own + (size_t)kept++ * bytes, (char *)f->own + (size_t)k * bytes, bytes);
    }
    d->count = kept;
    return TN_OK;
}

/* ---- scaling ---- */

/* Mean and deviation of each column over the samples to train on; of a constant one 0. */
static void columns_measure(const float *x, int64_t count, const uint8_t *test, int64_t columns, double *mean,
                            double *deviation)
{
    int64_t n = 0;

    for (int64_t i = 0; i < count; i++) {
        if (test && test[i])
            continue;
        n++;
        for (int64_t k = 0; k < columns; k++) { /* Welford: no sum grows */
            const double d = (double)x[i * columns + k] - mean[k];

            mean[k] += d / (double)n;
            deviation[k] += d * ((double)x[i * columns + k] - mean[k]);
        }
    }
    for (int64_t k = 0; k < columns; k++) {
        deviation[k] = n ? sqrt(deviation[k] / (double)n) : 0;
        if (!(deviation[k] > 1e-12 * (1 + fabs(mean[k]))))
            deviation[k] = 0;
    }
}

/* What columns are divided by: constant ones stay as they are. */
static void columns_divisors(const float *x, int64_t count, const uint8_t *test, int64_t columns,
                             double *mean, double *deviation)
{
    columns_measure(x, count, test, columns, mean, deviation);
    for (int64_t k = 0; k < columns; k++)
        deviation[k] = deviation[k] > 0 ? deviation[k] : 1;
}

static void columns_scale(float *x, int64_t count, int64_t columns, const double *mean,
                          const double *deviation)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < columns; k++)
            x[i * columns + k] = (float)(((double)x[i * columns + k] - mean[k]) / deviation[k]);
}

static tn_status input_about(tnn_loading *l, const tnn_field *f, const uint8_t *test, tnn_input *in)
{
    const bool scaled = !f->bytes && (!strcmp(l->q.scale, "standard") ||
                                      (!strcmp(l->q.scale, "auto") && (l->table || f->shape.ndim == 2)));

    in->shape = tnn_shape_of(f->shape.ndim - 1, f->shape.dims + 1);
    in->divisor = f->bytes ? (double)f->divisor : 0;
    in->name = tnn_strdup(l->app, f->name);
    if (!scaled || l->app->status)
        return l->app->status;
    in->count = (int64_t)f->sample;
    in->mean = tnn_alloc(l->app, f->sample, sizeof *in->mean);
    in->deviation = tnn_alloc(l->app, f->sample, sizeof *in->deviation);
    if (!l->app->status)
        columns_divisors(f->floats, l->d->count, test, in->count, in->mean, in->deviation);
    return l->app->status;
}

/* Of the first data of a model: what scales it, by the samples to train on. */
static tn_status about_measure(tnn_loading *l, const uint8_t *test)
{
    tnn_field *y = label_of(l->d);

    for (size_t i = 0; i < l->d->field_count; i++)
        if (&l->d->fields[i] != y &&
            input_about(l, &l->d->fields[i], test, &l->a->inputs[l->a->input_count++]))
            return l->app->status;
    if (y && l->a->task == TN_TASK_NUMBERS && strcmp(l->q.scale, "none") != 0) {
        double *both = tnn_alloc(l->app, 2 * y->sample, sizeof *both);

        if (!both)
            return l->app->status;
        if (y->sample == 1) {
            columns_divisors(y->floats, l->d->count, test, 1, both, both + 1);
            l->a->mean = both[0];
            l->a->deviation = both[1];
        }
        free(both);
    }
    return TN_OK;
}

static tn_status finite_check(tnn_loading *l, const tnn_field *f)
{
    for (size_t i = 0; f->floats && i < (size_t)l->d->count * f->sample; i++)
        if (!isfinite(f->floats[i]))
            return tnn_fail(l->app, TN_E_FORMAT,
                            "%s: number %zu of sample %zu of \"%s\" is %g: values are missing", l->path,
                            i % f->sample + 1, i / f->sample, f->name, (double)f->floats[i]);
    return TN_OK;
}

static tn_status data_scale(tnn_loading *l)
{
    const tnn_about *a = l->d->about;
    tnn_field *y = label_of(l->d);

    for (size_t i = 0; i < a->input_count; i++) {
        const tnn_input *in = &a->inputs[i];
        const int at = tnn_data_meant(l->d, a->input_count, in->name);
        tnn_field *f = &l->d->fields[at < 0 ? 0 : at];

        if (f->bytes && in->divisor > 0)
            f->divisor = (float)in->divisor;
        else if (f->bytes) /* the model was trained on numbers as they are */
            f->divisor = 1;
        if (in->count && !f->bytes && (size_t)in->count == f->sample)
            columns_scale(f->own, l->d->count, in->count, in->mean, in->deviation);
    }
    if (y && a->task == TN_TASK_NUMBERS) {
        double mean[1] = {0}, deviation[1] = {0};

        columns_scale(y->own, l->d->count * (int64_t)y->sample, 1, &a->mean, &a->deviation);
        columns_measure(y->floats, l->d->count * (int64_t)y->sample, NULL, 1, mean, deviation);
        l->d->label_deviation = deviation[0];
    }
    return TN_OK;
}

/* ---- opening ---- */

/* "1x8x8", "1,8,8" */
tn_status tnn_shape_read(tn_app *app, const char *text, tnn_shape *out)
{
    const char *at = text;

    *out = tnn_shape_of(0, NULL);
    while (*at) {
        char *end;
        const long long dim = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : 0;

        if (dim < 1 || dim > INT32_MAX || out->ndim == TNN_NDIM_MAX - 1 || (*end && !strchr("x,", *end)) ||
            (*end && !end[1]))
            return tnn_fail(app, TN_E_ARG,
                            "option data.shape is \"%.64s\"; whole numbers such as 1x8x8 are needed", text);
        out->dims[out->ndim++] = dim;
        at = end + (*end != '\0');
    }
    return TN_OK;
}

static tn_status asked_fill(tn_app *app, const tn_data_options *o, const tnn_about *about, tnn_asked *q)
{
    *q = (tnn_asked){.label = o->label ? o->label : tn_ctx_option(app->ctx, "data.label"),
                     .task = o->task ? o->task : tn_ctx_option(app->ctx, "data.task"),
                     .scale = o->scale ? o->scale : tn_ctx_option(app->ctx, "data.scale"),
                     .header = tn_ctx_option(app->ctx, "data.header"),
                     .about = about,
                     .whole = o->whole != 0,
                     .text = o->csv,
                     .bytes = (size_t)o->csv_bytes};
    if (about && about->share > 0) {
        q->share = about->share;
        q->seed = about->seed;
    } else if (tnn_seed(app, 0, &q->seed) ||
               tnn_check(app, tn_ctx_option_float(app->ctx, "data.test_share", &q->share), "%s", "")) {
        return app->status;
    }
    return tnn_shape_read(app, tn_ctx_option(app->ctx, "data.shape"), &q->shape);
}

/* data.shape, or that of the model, where samples are rows of as many numbers. */
static void shape_give(tnn_loading *l)
{
    tnn_field *f = &l->d->fields[0];
    const tnn_shape *s = l->q.shape.ndim ? &l->q.shape : l->q.about ? &l->q.about->inputs[0].shape : NULL;
    size_t numbers = 1;

    for (int32_t i = 0; s && i < s->ndim; i++)
        numbers *= (size_t)s->dims[i];
    if (!s || f->shape.ndim > 3 || numbers != f->sample)
        return;
    if (f->shape.ndim == 3 && s->ndim != 3) /* images without channels have one */
        return;
    f->shape.ndim = s->ndim + 1;
    memcpy(f->shape.dims + 1, s->dims, (size_t)s->ndim * sizeof *s->dims);
}

static void note_make(tnn_loading *l, int64_t all, int64_t tests)
{
    l->d->note = tnn_format(l->app,
                            "%s holds all %lld samples: %lld to train, %lld to test, drawn by seed %llu "
                            "(run.seed, data.test_share)",
                            l->path, (long long)all, (long long)(all - tests), (long long)tests,
                            (unsigned long long)l->q.seed);
}

/* Splits, scales; the data is whole then. */
static tn_status data_settle(tnn_loading *l)
{
    const int64_t all = l->d->count;
    uint8_t *test = NULL;

    l->split = l->split && !l->q.whole;
    if (l->split && all < 2)
        return tnn_fail(l->app, TN_E_FORMAT, "%s has %lld sample: one to train and one to test are needed",
                        l->path, (long long)all);
    if (l->split && !(test = test_draw(l->app, all, l->q.share, l->q.seed)))
        return l->app->status;
    if (l->q.about) {
        tnn_about_drop(l->a);
        l->a = NULL;
        l->d->about = tnn_about_keep((tnn_about *)(uintptr_t)l->q.about);
    } else if (!about_measure(l, test)) {
        l->a->share = l->split ? l->q.share : 0;
        l->a->seed = l->q.seed;
        l->d->about = l->a; /* moved */
        l->a = NULL;
    }
    if (!l->app->status && l->split && !rows_keep(l->app, l->d, test, !strcmp(l->part, "test")))
        note_make(l, all, !strcmp(l->part, "test") ? l->d->count : all - l->d->count);
    free(test);
    if (l->app->status || tnn_about_fits(l->app, l->d->about, l->d))
        return l->app->status;
    return data_scale(l);
}

static tn_status fields_read(tnn_loading *l)
{
    const size_t format = format_of(l->path);

    if ((l->q.text ? csv_load : format < FORMATS ? formats[format].load : tnn_npy_load)(l))
        return l->app->status;
    for (size_t i = 0; i < l->d->field_count; i++)
        if (finite_check(l, &l->d->fields[i]))
            return l->app->status;
    shape_give(l);
    return labels_settle(l);
}

tn_data *tnn_own_open(tn_app *app, const char *what, const char *name, const char *path, const char *part,
                      bool split, const tnn_about *about, const tn_data_options *o)
{
    tnn_loading l = {.app = app, .path = path, .part = part, .split = split};

    if (!(l.d = tnn_data_make(app, what, name, TNN_CUT_OF(*o))) || !(l.a = tnn_about_make(app)) ||
        asked_fill(app, o, about, &l.q) || !(l.d->files[0] = tnn_strdup(app, path)) || fields_read(&l) ||
        data_settle(&l)) {
        tnn_about_drop(l.a);
        return NULL;
    }
    if (l.d->about->task == TN_TASK_CLASSES)
        l.d->classes = label_of(l.d) ? l.d->about->classes : 0;
    if (l.d->about->names.count &&
        tnn_names_make(app, (const char *const *)l.d->about->names.at, l.d->about->names.count, &l.d->names))
        return NULL;
    return tnn_data_done_ahead(l.d, o->threads, o->prefetch);
}
