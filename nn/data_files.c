/* Data sets of files: CSV, LibSVM, IDX by path, CIFAR, RecordIO. */
#include "data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tenon/nn_data.h"

/* Copies the options, and begins a data set called `path`; NULL: failed. */
#define BEGIN(app, what, path, o, options)                                                                   \
    (tnn_options_copy(&(o), sizeof(o), options),                                                             \
     data_begin(app, what, path, (o).file, (o).line, TNN_CUT_OF(o)))

static tn_data *data_begin(tn_app *app, const char *what, const char *path, const char *file, int32_t line,
                           const tnn_cut *cut)
{
    char place[128];
    tn_data *d;

    (void)snprintf(place, sizeof place, "%s at %.60s:%d", what, file ? file : "?", line);
    if (!tnn_ok(app))
        return NULL;
    if (!path || !*path) {
        (void)tnn_fail(app, TN_E_ARG, "%s: a path is missing", place);
        return NULL;
    }
    d = tnn_data_make(app, place, path, cut);
    if (d)
        d->files[0] = tnn_strdup(app, path);
    return app->status ? NULL : d;
}

static tn_status divisor_take(tn_app *app, const tn_data *d, double given, float *out)
{
    *out = given != 0 ? (float)given : 255;
    return isfinite(*out) && *out > 0
               ? TN_OK
               : tnn_fail(app, TN_E_ARG, "data \"%s\": .divisor is %g", d->name, given);
}

/* Dimensions up to the first 0, behind one of `rows`; how many numbers they hold. */
static tn_status shape_of(tn_app *app, const tn_data *d, int64_t rows, const int64_t given[7], tnn_shape *out,
                          int64_t *numbers)
{
    *out = tnn_shape_of(1, &rows);
    *numbers = 1;
    for (int i = 0; i < 7 && given[i]; i++) {
        if (given[i] < 0 || given[i] > INT32_MAX || *numbers > INT32_MAX / given[i])
            return tnn_fail(app, TN_E_SHAPE, "data \"%s\": a sample with a dimension of %lld", d->name,
                            (long long)given[i]);
        *numbers *= given[i];
        out->dims[out->ndim++] = given[i];
    }
    return TN_OK;
}

/* ---- CSV ----------------------------------------------------------------------------------------------- */

typedef struct sheet { /* one of the files */
    const char *path;
    tn_array *rows;
} sheet;

typedef struct sheets {
    size_t count;
    sheet at[TNN_VALUES_MAX + 1];
    uint64_t before; /* rows in front of the share of the first one */
    int64_t rows;
} sheets;

/* The file of a field, read once. Files beside the first one give the rows that it has. */
static tn_array *sheet_find(tn_app *app, const tn_data *d, sheets *s, const char *path)
{
    tn_array *all = NULL, *rows = NULL;
    const int64_t *shape = NULL;
    int32_t ndim = 0;
    tn_status st = TN_OK;

    for (size_t i = 0; i < s->count; i++)
        if (!strcmp(s->at[i].path, path))
            return s->at[i].rows;
    if (!s->count) {
        st = tn_csv_load_part(app->ctx, path, (uint32_t)d->part, (uint32_t)d->parts, &s->before, &rows);
    } else if (!(st = tn_csv_load(app->ctx, path, &all)) && !(st = tn_array_shape(all, &ndim, &shape))) {
        if (d->parts > 1 && (uint64_t)shape[0] >= s->before + (uint64_t)s->rows)
            st = tn_array_slice(all, (int64_t)s->before, (int64_t)s->before + s->rows, &rows);
        else
            tn_array_retain(rows = all);
    }
    tn_array_release(all);
    if (tnn_check(app, st, "%s", path) ||
        (!s->count && tnn_check(app, tn_array_shape(rows, &ndim, &shape), "%s", path)))
        return NULL;
    if (!s->count)
        s->rows = shape[0];
    s->at[s->count++] = (sheet){path, rows};
    return rows;
}

/* Columns of a file, as an array of the field's shape. */
static tn_status columns_take(tn_app *app, tn_data *d, const tn_columns *c, tn_array *rows)
{
    tn_array *part = NULL, *shaped = NULL;
    const int64_t *shape = NULL, *stride = NULL;
    int64_t numbers, step, count = c->count;
    int32_t ndim = 0;
    tnn_shape out;
    bool inside;
    tn_status st = TN_OK;

    if ((st = tn_array_shape(rows, &ndim, &shape)) || (st = tn_array_stride(rows, &stride)))
        return tnn_check(app, st, "%s", d->name);
    if (shape_of(app, d, shape[0], c->shape, &out, &numbers))
        return app->status;
    step = stride[0];
    inside = c->first >= 0 && c->first < shape[1];
    count = count ? count : out.ndim > 1 ? numbers : inside ? shape[1] - c->first : 1;
    if (!inside || count < 1 || count > shape[1] - c->first || (out.ndim > 1 && count != numbers))
        return tnn_fail(
            app, TN_E_SHAPE, "data \"%s\": field \"%s\" asks for columns %lld to %lld%s, the file has %lld",
            d->name, c->name ? c->name : "", (long long)c->first,
            (long long)((uint64_t)c->first + (uint64_t)count - 1),
            out.ndim > 1 && count != numbers ? ", which its shape does not hold" : "", (long long)shape[1]);
    if (out.ndim == 1 && count > 1)
        out.dims[out.ndim++] = count;
    /* Rows of the file are apart by `step`; those of the field are what lies between. */
    if (!(st = tn_array_view(rows, (uint64_t)c->first, 2, (int64_t[]){shape[0], count}, (int64_t[]){step, 1},
                             &part)) &&
        !(st = tn_array_to(app->ctx, part, NULL, &shaped))) {
        tn_array_release(part);
        part = NULL;
        st = tn_array_reshape(shaped, out.ndim, out.dims, &part);
    }
    if (!st)
        (void)tnn_field_array(app, d, c->name, part);
    tn_array_release(shaped);
    tn_array_release(part);
    return tnn_check(app, st, "%s", d->name);
}

tn_data *tn_data_from_csv_(tn_app *app, const char *path, const tn_csv_options *options)
{
    static const tn_columns row[2] = {{.name = "data"}, {.name = "label", .count = 1}};
    tn_csv_options o = {0};
    tn_data *d = BEGIN(app, "tn_data_from_csv", path, o, options);
    sheets s = {0};
    tn_array *rows = NULL;

    if (!d || !(rows = sheet_find(app, d, &s, path)))
        return NULL;
    if (!o.fields[0].name) {
        const int64_t *shape = NULL;
        int32_t ndim = 0;

        (void)tnn_check(app, tn_array_shape(rows, &ndim, &shape), "%s", path);
        memcpy(o.fields, row, sizeof row);
        if (!app->status && shape[1] < 2)
            (void)tnn_fail(app, TN_E_FORMAT, "%s has one column; .fields says what it is", path);
        else if (!app->status)
            o.fields[0].count = o.fields[1].first = shape[1] - 1;
    }
    for (size_t i = 0; i < TNN_VALUES_MAX && o.fields[i].name && !app->status; i++)
        if ((rows = sheet_find(app, d, &s, o.fields[i].path ? o.fields[i].path : path)))
            (void)columns_take(app, d, &o.fields[i], rows);
    for (size_t i = 0; i < s.count; i++)
        tn_array_release(s.at[i].rows);
    d->parts = 1; /* cut already */
    return tnn_data_done_ahead(d, o.threads, o.prefetch);
}

/* ---- LibSVM -------------------------------------------------------------------------------------------- */

/* Pairs of another file as labels, (N, columns): the rows that the data has. */
static tn_status pairs_take(tn_app *app, tn_data *d, const tn_libsvm_options *o, uint64_t before)
{
    tn_array *csr = NULL, *unused = NULL, *dense = NULL, *rows = NULL;
    tn_status st = tn_libsvm_load(app->ctx, o->labels, o->label_columns, &csr, &unused);

    if (!st && !(st = tn_array_to_storage(app->ctx, csr, TN_STORAGE_DENSE, &dense))) {
        if (d->parts > 1 && tn_array_count(unused) >= before + (uint64_t)d->count)
            st = tn_array_slice(dense, (int64_t)before, (int64_t)before + d->count, &rows);
        else
            tn_array_retain(rows = dense);
    }
    if (!st)
        (void)tnn_field_array(app, d, "label", rows);
    tn_array_release(csr);
    tn_array_release(unused);
    tn_array_release(dense);
    tn_array_release(rows);
    return tnn_check(app, st, "%s", o->labels);
}

tn_data *tn_data_from_libsvm_(tn_app *app, const char *path, const tn_libsvm_options *options)
{
    tn_libsvm_options o = {0};
    tn_data *d = BEGIN(app, "tn_data_from_libsvm", path, o, options);
    tn_array *csr = NULL, *labels = NULL, *dense = NULL;
    uint64_t before = 0;
    tn_status st = TN_OK;

    if (!d)
        return NULL;
    st = tn_libsvm_load_part(app->ctx,
                             &(const tn_libsvm_share){.struct_size = TN_SIZE(tn_libsvm_share),
                                                      .part = (uint32_t)d->part,
                                                      .parts = (uint32_t)d->parts,
                                                      .path = path,
                                                      .columns = o.columns},
                             &csr, &labels, &before);
    if (!st && o.dense)
        st = tn_array_to_storage(app->ctx, csr, TN_STORAGE_DENSE, &dense);
    if (!tnn_check(app, st, "%s", path) && !tnn_field_array(app, d, "data", o.dense ? dense : csr)) {
        if (!o.labels)
            (void)tnn_field_array(app, d, "label", labels);
        else if ((d->files[1] = tnn_strdup(app, o.labels)))
            (void)pairs_take(app, d, &o, before);
    }
    tn_array_release(csr);
    tn_array_release(labels);
    tn_array_release(dense);
    d->parts = 1;
    return tnn_data_done_ahead(d, o.threads, o.prefetch);
}

/* ---- IDX ----------------------------------------------------------------------------------------------- */

tn_data *tn_data_from_idx_(tn_app *app, const char *images, const tn_idx_options *options)
{
    tn_idx_options o = {0};
    tn_data *d = BEGIN(app, "tn_data_from_idx", images, o, options);
    float divisor;

    if (!d || (o.labels && !(d->files[1] = tnn_strdup(app, o.labels))) ||
        divisor_take(app, d, o.divisor, &divisor) || tnn_data_idx(app, d))
        return NULL;
    d->fields[0].divisor = divisor;
    if (o.flat)
        d->fields[0].shape = tnn_shape_of(2, (const int64_t[]){1, (int64_t)d->fields[0].sample});
    return tnn_data_done(d);
}

/* ---- CIFAR --------------------------------------------------------------------------------------------- */

#define PIXELS 3072 /* 3 * 32 * 32 */

/* Appends the rows of one file: label bytes, then the pixels. */
static tn_status cifar_read(tn_app *app, tn_data *d, const char *path, int32_t classes)
{
    tnn_field *x = &d->fields[0], *y = &d->fields[1];
    const size_t labels = classes == 10 ? 1 : 2, row = labels + PIXELS;
    FILE *file = fopen(path, "rb");
    uint8_t *pixels;
    float *numbers;
    struct stat s;
    int64_t count;

    if (!file || fstat(fileno(file), &s) || !S_ISREG(s.st_mode)) {
        (void)(file ? tnn_fail(app, TN_E_IO, "%s cannot be read", path) : tnn_fail_open(app, path));
        goto cleanup;
    }
    count = (int64_t)((size_t)s.st_size / row);
    if (!count || (size_t)s.st_size % row || d->count + count > UINT32_MAX) {
        (void)tnn_fail(app, TN_E_FORMAT, "%s has %lld bytes; a file of CIFAR-%d has %zu for each image", path,
                       (long long)s.st_size, classes == 10 ? 10 : 100, row);
        goto cleanup;
    }
    pixels = realloc(x->own, (size_t)(d->count + count) * PIXELS);
    x->own = pixels ? pixels : x->own;
    numbers = realloc(y->own, (size_t)(d->count + count) * sizeof *numbers);
    y->own = numbers ? numbers : y->own;
    if (!pixels || !numbers) {
        (void)tnn_no_memory(app);
        goto cleanup;
    }
    for (; count > 0 && !app->status; count--, d->count++) {
        uint8_t head[2] = {0};
        const uint8_t *label = &head[classes == 100];

        if (fread(head, labels, 1, file) != 1 ||
            fread(pixels + (size_t)d->count * PIXELS, PIXELS, 1, file) != 1)
            (void)tnn_fail(app, TN_E_IO, "%s was changed while it was read", path);
        else if (*label >= classes)
            (void)tnn_fail(app, TN_E_FORMAT, "%s: label %u, but there are %d classes", path, *label, classes);
        numbers[d->count] = *label;
    }
    x->bytes = x->own;
    y->floats = y->own;

cleanup:
    if (file)
        (void)fclose(file);
    return app->status;
}

tn_data *tn_data_from_cifar_(tn_app *app, const char *path, const tn_cifar_options *options)
{
    tn_cifar_options o = {0};
    tn_data *d = BEGIN(app, "tn_data_from_cifar", path, o, options);

    if (!d || !tnn_field_add(app, d, "data") || !tnn_field_add(app, d, "label"))
        return NULL;
    o.classes = o.classes ? o.classes : 10;
    if (o.classes != 10 && o.classes != 20 && o.classes != 100)
        (void)tnn_fail(app, TN_E_ARG, "data \"%s\": .classes is %d; 10, 20 and 100 are known", d->name,
                       o.classes);
    d->fields[0].shape = tnn_shape_of(4, (const int64_t[]){1, 3, 32, 32});
    d->fields[1].shape = tnn_shape_of(1, (const int64_t[]){1});
    d->fields[0].sample = PIXELS;
    d->fields[1].sample = 1;
    if (divisor_take(app, d, o.divisor, &d->fields[0].divisor) || cifar_read(app, d, path, o.classes))
        return NULL;
    for (size_t i = 0; i < sizeof o.files / sizeof *o.files && o.files[i]; i++)
        if (cifar_read(app, d, o.files[i], o.classes))
            return NULL;
    d->classes = o.classes;
    return tnn_data_done(d);
}

/* ---- RecordIO ------------------------------------------------------------------------------------------ */

/* Makes room for one sample more, by doubling. */
static tn_status field_grow(tn_app *app, tnn_field *f, int64_t count, size_t bytes)
{
    void *grown;

    if (count & (count - 1)) /* there is room up to the next power of two */
        return TN_OK;
    if (!(grown = realloc(f->own, (count ? 2 * (size_t)count : 1) * bytes)))
        return tnn_no_memory(app);
    f->own = grown;
    return TN_OK;
}

static tn_status record_take(tn_app *app, tn_data *d, const void *data, uint64_t bytes, size_t element)
{
    tnn_field *x = &d->fields[0], *y = &d->fields[1];
    const uint64_t wanted = x->sample * element;
    tn_record_header h = {.struct_size = TN_SIZE(tn_record_header)};
    const void *payload = NULL;
    uint64_t have = 0;

    if (tnn_check(app, tn_record_unpack(data, bytes, &h, &payload, &have), "%s: record %lld", d->name,
                  (long long)d->count))
        return app->status;
    if (have != wanted || (h.label_count ? h.label_count : 1) != y->sample)
        return tnn_fail(app, TN_E_FORMAT,
                        "%s: record %lld has %u labels and %llu bytes; %zu and %llu are needed", d->name,
                        (long long)d->count, h.label_count ? h.label_count : 1, (unsigned long long)have,
                        y->sample, (unsigned long long)wanted);
    if (d->count == UINT32_MAX)
        return tnn_fail(app, TN_E_UNSUPPORTED, "%s holds more than 2^32 records", d->name);
    if (field_grow(app, x, d->count, wanted) || field_grow(app, y, d->count, y->sample * sizeof(float)))
        return app->status;
    memcpy((char *)x->own + (size_t)d->count * wanted, payload, wanted);
    memcpy((float *)y->own + (size_t)d->count * y->sample, h.label_count ? h.labels : &h.label,
           y->sample * sizeof(float));
    d->count++;
    return TN_OK;
}

tn_data *tn_data_from_records_(tn_app *app, const char *path, const tn_records_options *options)
{
    tn_records_options o = {0};
    tn_data *d = BEGIN(app, "tn_data_from_records", path, o, options);
    tn_record_reader *reader = NULL;
    const void *data = NULL;
    uint64_t bytes = 0;
    int64_t numbers;
    tnn_field *x, *y;
    tn_status st = TN_OK;

    if (!d || !(x = tnn_field_add(app, d, "data")) || !(y = tnn_field_add(app, d, "label")))
        return NULL;
    if ((o.dtype != TN_F32 && o.dtype != TN_U8) || o.label_width < 0 || o.label_width > INT32_MAX)
        (void)tnn_fail(app, TN_E_ARG,
                       "data \"%s\": .dtype is to be float32 or uint8, .label_width at least 1", d->name);
    if (shape_of(app, d, 1, o.shape, &x->shape, &numbers) || divisor_take(app, d, o.divisor, &x->divisor) ||
        tnn_check(app, tn_record_open(path, (uint32_t)d->part, (uint32_t)d->parts, &reader), "%s", path))
        return NULL;
    x->sample = (size_t)numbers;
    y->sample = o.label_width ? (size_t)o.label_width : 1;
    y->shape = tnn_shape_of(o.label_width > 1 ? 2 : 1, (const int64_t[]){1, o.label_width});
    while (!app->status && !(st = tn_record_next(reader, &data, &bytes)) && data)
        (void)record_take(app, d, data, bytes, o.dtype == TN_U8 ? 1 : sizeof(float));
    tn_record_close(reader);
    if (!app->status && !tnn_check(app, st, "%s", path) && !d->count)
        (void)tnn_fail(app, TN_E_FORMAT, "%s holds no records%s", path, d->parts > 1 ? " in this share" : "");
    if (o.dtype == TN_U8)
        x->bytes = x->own;
    else
        x->floats = x->own;
    y->floats = y->own;
    d->parts = 1;
    return tnn_data_done(d);
}
