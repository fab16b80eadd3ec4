/*
 * Data sets in batches: named fields of samples. data_open.c and data_files.c fill them.
 *
 * Pixels stay as they are in the file until a batch needs them. The order of an epoch is a function of the
 * seed and the epoch's number alone (order.c), so any batch can be made again: position and seed say all that
 * a checkpoint needs.
 */
#include "about.h"
#include "ahead.h"

#include <sha256.h>
#include <stdlib.h>
#include <string.h>

static void data_destroy(tnn_object *object)
{
    tn_data *d = (tn_data *)object;

    tnn_ahead_destroy(d->ahead); /* whose threads read the images */
    tnn_images_destroy(d->images);
    tnn_about_drop(d->about);
    free(d->note);
    for (size_t i = 0; i < d->field_count; i++) {
        tn_array_release(d->fields[i].array);
        tn_array_release(d->fields[i].aux[0]);
        tn_array_release(d->fields[i].aux[1]);
        free(d->fields[i].own);
        free(d->fields[i].name);
    }
    tnn_order_free(&d->order);
    free(d->buffer);
    tnn_names_destroy(d->names);
    free(d->name);
    free(d->files[0]);
    free(d->files[1]);
    free(d);
}

tn_app *tnn_data_app(const tn_data *d)
{
    return d && !d->failed && tnn_ok(d->object.app) ? d->object.app : NULL;
}

/* ---- making ---- */

tn_data *tnn_data_make(tn_app *app, const char *what, const char *name, const tnn_cut *cut)
{
    tnn_order order;
    tn_data *d;

    if (tnn_order_take(app, what, cut, &order) || !(d = tnn_alloc(app, 1, sizeof *d)))
        return NULL;
    tnn_object_add(app, &d->object, data_destroy);
    d->order = order;
    d->parts = cut->parts ? cut->parts : 1;
    d->part = cut->part;
    d->failed = true;
    return (d->name = tnn_strdup(app, name)) ? d : NULL;
}

tnn_field *tnn_field_add(tn_app *app, tn_data *d, const char *name)
{
    tnn_field *f = &d->fields[d->field_count++];

    f->divisor = 255;
    return (f->name = tnn_strdup(app, name)) ? f : NULL;
}

/* Only the samples of the share are left. */
static tn_status share_take(tn_app *app, tn_data *d)
{
    int64_t begin, end;

    tnn_share(d->count, d->parts, d->part, &begin, &end);
    if (begin == end)
        return tnn_fail(app, TN_E_ARG, "data \"%s\": part %lld of %lld has none of its %lld samples", d->name,
                        (long long)d->part, (long long)d->parts, (long long)d->count);
    for (size_t i = 0; i < d->field_count; i++) {
        tnn_field *f = &d->fields[i];
        const size_t first = (size_t)begin * f->sample;

        if (f->starts)
            f->starts += begin;
        else if (f->bytes)
            f->bytes += first;
        else if (!f->made)
            f->floats += first;
    }
    d->count = end - begin;
    return TN_OK;
}

/* Whole numbers from 0, one per sample, are taken for classes. */
static int64_t classes_of(const tn_data *d, size_t index)
{
    const tnn_field *f = &d->fields[index];
    int64_t classes = 0;

    if (d->field_count <= index || f->sample != 1 || !f->floats || f->starts || d->about)
        return 0;
    for (int64_t i = 0; i < d->count; i++) {
        const float x = f->floats[i];

        if (!(x >= 0 && x < 16777216) || x != (float)(int64_t)x)
            return 0;
        if (classes <= (int64_t)x)
            classes = (int64_t)x + 1;
    }
    return classes;
}

int64_t tnn_data_field_classes(const tn_data *d, size_t index)
{
    return index == 1 ? d->classes : classes_of(d, index);
}

/* The buffer of one batch of the largest field, and room for an order. */
static tn_status room_make(tn_app *app, tn_data *d)
{
    size_t sample = 1;
    char name[128];

    for (size_t i = 0; i < d->field_count; i++)
        if (!d->fields[i].starts && !d->fields[i].made && d->fields[i].sample > sample)
            sample = d->fields[i].sample;
    d->order.count = d->count;
    (void)snprintf(name, sizeof name, "data \"%.100s\"", d->name);
    if (tnn_order_room(app, &d->order, name))
        return app->status;
    if (sample > SIZE_MAX / sizeof(float) / (uint64_t)d->order.batch)
        return tnn_fail(app, TN_E_ARG, "data \"%s\": a batch of %lld does not fit", d->name,
                        (long long)d->order.batch);
    d->buffer = tnn_alloc(app, (size_t)d->order.batch * sample, sizeof(float));
    return app->status;
}

int64_t tnn_data_classes_of(const tn_app *app, const tn_array *labels)
{
    for (const tnn_object *o = app->objects; o; o = o->next)
        if (o->destroy == data_destroy && ((const tn_data *)o)->fields[1].now == labels)
            return ((const tn_data *)o)->classes;
    return 0;
}

tn_data *tnn_data_done(tn_data *d)
{
    tn_app *app = d->object.app;

    if (app->status)
        return NULL;
    if (!d->classes)
        d->classes = classes_of(d, 1);
    if ((d->parts > 1 && share_take(app, d)) || room_make(app, d))
        return NULL;
    d->failed = false;
    return d;
}

/* A sample of data in memory, on a thread. */
static tn_status memory_make(void *self, int32_t worker, uint32_t row, int64_t epoch, float *const *out,
                             char *why, size_t why_bytes)
{
    const tn_data *d = self;

    (void)worker;
    (void)epoch;
    (void)why;
    (void)why_bytes;
    for (size_t i = 0; i < d->field_count; i++) {
        const tnn_field *f = &d->fields[i];
        const size_t from = row * f->sample;

        if (f->bytes)
            for (size_t k = 0; k < f->sample; k++)
                out[i][k] = (float)f->bytes[from + k] / f->divisor;
        else
            memcpy(out[i], f->floats + from, f->sample * sizeof **out);
    }
    return TN_OK;
}

tn_data *tnn_data_done_ahead(tn_data *d, int32_t threads, int32_t prefetch)
{
    const tnn_maker maker = {
        .self = d, .threads = threads, .prefetch = prefetch ? prefetch : 1, .make = memory_make};
    tn_app *app = d->object.app;

    if (threads < 0 || threads > 256 || prefetch < 0 || prefetch > 4096)
        (void)tnn_fail(app, TN_E_ARG, "data \"%s\": .threads is 0 to 256, .prefetch 0 to 4096", d->name);
    if (!tnn_data_done(d) || !threads)
        return app->status ? NULL : d;
    d->failed = true;
    for (size_t i = 0; i < d->field_count; i++) {
        if (d->fields[i].starts)
            (void)tnn_fail(app, TN_E_UNSUPPORTED, "data \"%s\": threads make no sparse batches", d->name);
        d->fields[i].made = true;
    }
    if (app->status || tnn_ahead_create(app, &maker, d, &d->ahead))
        return NULL;
    d->failed = false;
    return d;
}

/* ---- batches ---- */

bool tnn_data_varies(const tn_data *d)
{
    return tnn_order_streams(&d->order) && d->count % d->order.batch;
}

bool tnn_data_fills(const tn_data *d)
{
    return d->count % d->order.batch && (d->order.last == TNN_LAST_PAD || d->order.last == TNN_LAST_ROUND);
}

static tn_array *sparse_make(tn_app *app, const tn_data *d, const tnn_field *f, int64_t n)
{
    const int64_t shape[] = {n, f->shape.dims[1]};
    int64_t *starts = tnn_alloc(app, (size_t)n + 1, sizeof *starts), stored = 0, *columns = NULL;
    float *values = NULL;
    tn_array *a = NULL;

    for (int64_t i = 0; starts && i < n; i++) {
        starts[i] = stored;
        stored += f->starts[d->order.rows[i] + 1] - f->starts[d->order.rows[i]];
    }
    columns = tnn_alloc(app, (size_t)stored + 1, sizeof *columns);
    values = tnn_alloc(app, (size_t)stored + 1, sizeof *values);
    if (!app->status) {
        starts[n] = stored;
        for (int64_t i = 0; i < n; i++) {
            const int64_t from = f->starts[d->order.rows[i]];
            const size_t count = (size_t)(starts[i + 1] - starts[i]);

            if (!count) /* of no values at all there is no memory */
                continue;
            memcpy(columns + starts[i], f->columns + from, count * sizeof *columns);
            memcpy(values + starts[i], f->floats + from, count * sizeof *values);
        }
        (void)tnn_check(app,
                        tn_array_sparse_from(app->ctx,
                                             &(const tn_array_sparse){.struct_size = TN_SIZE(tn_array_sparse),
                                                                      .storage = TN_STORAGE_CSR,
                                                                      .dtype = TN_F32,
                                                                      .ndim = 2,
                                                                      .shape = shape,
                                                                      .stored = stored,
                                                                      .values = values,
                                                                      .indices = columns,
                                                                      .indptr = starts},
                                             &a),
                        "data \"%s\"", d->name);
    }
    free(starts);
    free(columns);
    free(values);
    return tn_app_own(app, a);
}

static tn_array *field_make(tn_app *app, tn_data *d, const tnn_field *f, int64_t n)
{
    const size_t length = d->order.length ? (size_t)d->order.length : f->sample;
    tnn_shape shape = f->shape;

    if (f->starts)
        return sparse_make(app, d, f, n);
    shape.dims[d->order.time_major] = n;
    if (d->order.length)
        shape.dims[!d->order.time_major] = d->order.length;
    if (f->made)
        return tn_app_array(app, shape.ndim, shape.dims, tnn_ahead_field(d->ahead, (size_t)(f - d->fields)));
    for (int64_t i = 0; i < n; i++) {
        const size_t from = d->order.rows[i] * f->sample;
        float *to = d->buffer + (size_t)i * (d->order.time_major ? 1 : length);

        if (d->order.time_major)
            for (size_t k = 0; k < length; k++)
                to[k * (size_t)n] = f->floats[from + k];
        else if (f->bytes)
            for (size_t k = 0; k < length; k++)
                to[k] = (float)f->bytes[from + k] / f->divisor;
        else
            memcpy(to, f->floats + from, length * sizeof *to);
    }
    return tn_app_array(app, shape.ndim, shape.dims, d->buffer);
}

static tn_status batch_make(tn_app *app, tn_data *d, int64_t n, tn_batch *b)
{
    for (size_t i = 0; i < d->field_count; i++)
        d->fields[i].now = field_make(app, d, &d->fields[i], n);
    b->x = d->fields[0].now;
    b->y = d->field_count > 1 ? d->fields[1].now : NULL;
    return app->status;
}

/* The batch and what was made of it goes. */
static void batch_end(tn_app *app, tn_data *d)
{
    for (size_t i = 0; i < d->field_count; i++)
        d->fields[i].now = NULL;
    d->order.filler = d->order.length = 0;
    tnn_scope_end(app, d);
}

static int64_t epoch_last(const tn_data *d)
{
    return tnn_order_streams(&d->order) ? TNN_EPOCH_MAX : INT64_MAX;
}

int tn_data_next(tn_data *d, tn_batch *b)
{
    tn_app *app = tnn_data_app(d);
    int64_t n;

    if (!app || !b)
        return 0;
    memset(b, 0, sizeof *b);
    batch_end(app, d);
    if (d->index >= tnn_order_batches(&d->order, d->epoch)) {
        if (d->epoch == epoch_last(d))
            return tnn_fail(app, TN_E_ARG, "data \"%s\": no more epochs", d->name) == TN_OK;
        d->epoch++;
        d->index = 0;
        return 0;
    }
    tnn_scope_begin(app, d);
    n = d->ahead ? tnn_ahead_next(app, d->ahead, d) : tnn_order_rows(&d->order, d->epoch, d->index);
    if (app->status || batch_make(app, d, n, b))
        return 0;
    b->n = n;
    b->index = d->index++;
    b->epoch = d->epoch;
    return 1;
}

int64_t tn_data_filler(const tn_data *d)
{
    return tnn_data_app(d) ? d->order.filler : 0;
}

tn_array *tnn_data_real(const tn_data *d, tn_array *array)
{
    tn_app *app = tnn_data_app(d);
    tn_array *real = NULL;

    if (!app || !array || !d->order.filler)
        return array;
    (void)tnn_check(app, tn_array_slice(array, 0, -d->order.filler, &real), "data \"%s\"", d->name);
    return tn_app_own(app, real);
}

void tn_data_tell(const tn_data *d, int64_t *epoch, int64_t *index)
{
    if (epoch)
        *epoch = d ? d->epoch : 0;
    if (index)
        *index = d ? d->index : 0;
}

void tn_data_seek(tn_data *d, int64_t epoch, int64_t index)
{
    tn_app *app = tnn_data_app(d);

    if (!app)
        return;
    if (epoch < 0 || epoch > epoch_last(d) || index < 0 || index > tnn_order_batches(&d->order, epoch)) {
        (void)tnn_fail(app, TN_E_ARG, "data \"%s\": there is no batch %lld of epoch %lld", d->name,
                       (long long)index, (long long)epoch);
        return;
    }
    batch_end(app, d);
    d->epoch = epoch;
    d->index = index;
}

int64_t tn_data_count(const tn_data *d)
{
    return tnn_data_app(d) ? d->count : 0;
}

int64_t tn_data_batches(const tn_data *d)
{
    return tnn_data_app(d) ? tnn_order_batches(&d->order, d->epoch) : 0;
}

int64_t tn_data_classes(const tn_data *d)
{
    return tnn_data_app(d) ? d->classes : 0;
}

void tn_data_shape(const tn_data *d, int64_t shape[4])
{
    if (!shape)
        return;
    memset(shape, 0, 4 * sizeof *shape);
    if (tnn_data_app(d))
        for (int32_t i = 0; i < 4 && i < d->fields[0].shape.ndim; i++)
            shape[i] = d->fields[0].shape.dims[i];
}

int tnn_data_find(const tn_data *d, const char *name)
{
    for (size_t i = 0; i < d->field_count; i++)
        if (!strcmp(d->fields[i].name, name))
            return (int)i;
    return -1;
}

int tnn_data_meant(const tn_data *d, size_t inputs, const char *name)
{
    return inputs == 1 ? 0 : tnn_data_find(d, name);
}

const tnn_shape *tnn_data_field_shape(const tn_data *d, size_t index)
{
    return index < d->field_count ? &d->fields[index].shape : NULL;
}

tn_array *tnn_data_now(const tn_data *d, size_t index)
{
    return index < d->field_count ? d->fields[index].now : NULL;
}

int32_t tnn_data_axis(const tn_data *d)
{
    return d->order.time_major;
}

tn_status tnn_data_rows_first(const tn_data *d, const char *what)
{
    return d->order.time_major
               ? tnn_fail(d->object.app, TN_E_UNSUPPORTED,
                          "data \"%s\" has layout TN: %s needs batches along the first axis", d->name, what)
               : TN_OK;
}

int64_t tnn_data_batch(const tn_data *d)
{
    return d->order.batch;
}

tn_array *tn_data_field(tn_data *d, const char *name)
{
    const char *names[TNN_VALUES_MAX + 1] = {NULL};
    tn_app *app = tnn_data_app(d);
    int index;

    if (!app || !name)
        return NULL;
    if ((index = tnn_data_find(d, name)) >= 0)
        return d->fields[index].now;
    for (size_t i = 0; i < d->field_count; i++)
        names[i] = d->fields[i].name;
    (void)tnn_unknown(app, "field of data", name, names);
    return NULL;
}

const char *tn_data_class_name(const tn_data *d, int64_t index)
{
    return tnn_data_app(d) ? tnn_names_at(d->names, index) : NULL;
}

const char *tn_data_name(const tn_data *d)
{
    return tnn_data_app(d) ? d->name : "";
}

const char *tn_data_file(const tn_data *d, int32_t labels)
{
    return tnn_data_app(d) && d->files[labels != 0] ? d->files[labels != 0] : "";
}

/* A stretch of memory that the samples of a field consist of; false: there is no such one. */
static bool piece_of(const tn_data *d, const tnn_field *f, int64_t index, const void **data, size_t *bytes)
{
    const size_t numbers = (size_t)d->count * f->sample;
    const size_t stored = f->starts ? (size_t)(f->starts[d->count] - f->starts[0]) : 0;
    const size_t first = f->starts ? (size_t)f->starts[0] : 0;

    if (index == 0) {
        *data = f->bytes ? (const void *)f->bytes : f->floats + first;
        *bytes = f->bytes ? numbers : (f->starts ? stored : numbers) * sizeof(float);
    } else if (index == 1 && f->starts) {
        *data = f->columns + first;
        *bytes = stored * sizeof *f->columns;
    } else if (index > 1 && f->starts && index - 2 < d->count) { /* lengths of the rows, by their ends */
        *data = NULL;
        *bytes = (size_t)(f->starts[index - 1] - f->starts[0]);
    } else {
        return false;
    }
    return true;
}

bool tnn_data_same(const tn_data *a, const tn_data *b)
{
    char p_hex[65] = "", q_hex[65] = "";

    if (a->images || b->images) {
        if (a->images && b->images) {
            tnn_images_digest(a->images, p_hex);
            tnn_images_digest(b->images, q_hex);
        }
        return *p_hex && !strcmp(p_hex, q_hex);
    }
    if (a->count != b->count || a->field_count != b->field_count)
        return false;
    for (size_t i = 0; i < a->field_count; i++) {
        const tnn_field *f = &a->fields[i], *g = &b->fields[i];
        const void *p, *q;
        size_t m, n;

        if (f->shape.ndim != g->shape.ndim || memcmp(f->shape.dims, g->shape.dims, sizeof f->shape.dims) ||
            !f->bytes != !g->bytes || !f->starts != !g->starts || f->divisor != g->divisor)
            return false;
        for (int64_t k = 0; piece_of(a, f, k, &p, &m) && piece_of(b, g, k, &q, &n); k++)
            if (m != n || (p && m && memcmp(p, q, m)))
                return false;
    }
    return true;
}

/* Names, shapes and numbers. */
static void fields_hash(const tn_data *d, SHA256_CTX *sha)
{
    for (size_t i = 0; i < d->field_count; i++) {
        const tnn_field *f = &d->fields[i];
        const void *data;
        size_t bytes;

        SHA256Update(sha, (const uint8_t *)f->name, strlen(f->name) + 1);
        SHA256Update(sha, (const uint8_t *)f->shape.dims, sizeof f->shape.dims);
        if (f->bytes)
            SHA256Update(sha, (const uint8_t *)&f->divisor, sizeof f->divisor);
        for (int64_t k = 0; piece_of(d, f, k, &data, &bytes); k++)
            SHA256Update(sha, data ? data : (const void *)&bytes, data ? bytes : sizeof bytes);
    }
}

int tn_data_sha256(tn_data *d, char out_hex[65])
{
    tn_app *app = tnn_data_app(d);
    uint8_t digest[SHA256_DIGEST_LENGTH], block[16384];
    SHA256_CTX sha;

    if (out_hex)
        out_hex[0] = '\0';
    if (!app)
        return 0;
    if (!out_hex)
        return !tnn_fail(app, TN_E_ARG, "tn_data_sha256: out_hex is NULL");
    if (d->images) {
        tnn_images_digest(d->images, out_hex);
        return 1;
    }
    SHA256Init(&sha);
    if (!d->by_files)
        fields_hash(d, &sha);
    for (int i = 0; i < 2 && d->by_files; i++) {
        FILE *file = fopen(d->files[i], "rb");
        size_t n;
        bool bad;

        if (!file)
            return !tnn_fail_open(app, d->files[i]);
        while ((n = fread(block, 1, sizeof block, file)) > 0)
            SHA256Update(&sha, block, n);
        bad = ferror(file) != 0;
        (void)fclose(file);
        if (bad)
            return !tnn_fail(app, TN_E_IO, "%s cannot be read", d->files[i]);
    }
    SHA256Final(digest, &sha);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
        (void)snprintf(out_hex + 2 * i, 3, "%02x", digest[i]);
    return 1;
}
