/*
 * Data sets in batches: named fields, which are the images and labels of IDX files, or arrays of the program.
 *
 * Pixels stay as they are in the file until a batch needs them. The order of an epoch is a function of the
 * seed and the epoch's number alone, so any batch can be made again: position and seed say all that a
 * checkpoint needs.
 */
#include "internal.h"

#include <limits.h>
#include <sha256.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/random.h" /* tn_philox */

#define BATCH_MAX (1 << 24)

__extension__ typedef unsigned __int128 wide;

typedef struct field {
    char *name;
    tnn_shape shape; /* of a sample, with a 1 in front */
    size_t sample;   /* numbers */
    tn_array *array; /* u8 or f32 on the host, which holds them; NULL: `own` does */
    float *own;
    const uint8_t *bytes; /* NULL: `floats` */
    const float *floats;
    tn_array *now; /* of the batch, borrowed; NULL: none */
} field;

struct tn_data {
    tnn_object object;
    char *name, *files[2];
    field fields[TNN_VALUES_MAX];
    size_t field_count;
    int64_t count, batch, classes;
    bool shuffle, failed;
    uint64_t seed;
    int64_t epoch, index;    /* of the next batch */
    int64_t order_epoch;     /* that `order` is of; -1 */
    uint32_t *order;         /* NULL: as in the file */
    float *buffer;           /* of one batch */
    struct tnn_names *names; /* of the classes; NULL: none */
};

static void data_destroy(tnn_object *object)
{
    tn_data *d = (tn_data *)object;

    for (size_t i = 0; i < d->field_count; i++) {
        tn_array_release(d->fields[i].array);
        free(d->fields[i].own);
        free(d->fields[i].name);
    }
    free(d->order);
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

/* ---- opening ---- */

/* FOLDER/PART-WHAT, plain or with .gz behind it. */
static char *file_find(tn_app *app, const char *folder, const char *part, const char *what)
{
    char *plain = tnn_format(app, "%s/%s-%s", folder, part, what), *packed;

    if (!plain || !access(plain, R_OK))
        return plain;
    if ((packed = tnn_format(app, "%s.gz", plain)) && access(packed, R_OK)) {
        (void)tnn_fail(app, TN_E_KEY, "data: neither %s nor %s is there", plain, packed);
        free(packed);
        packed = NULL;
    }
    free(plain);
    return packed;
}

/* "digits:test" -> folder "digits", files "t10k-…". */
static tn_status files_find(tn_app *app, tn_data *d)
{
    static const char *const parts[] = {"train", "test", NULL};
    const char *colon = strrchr(d->name, ':'), *part = colon ? colon + 1 : "train", *stem;
    char *set = colon ? tnn_format(app, "%.*s", (int)(colon - d->name), d->name) : tnn_strdup(app, d->name);
    char *folder = NULL;

    if (!set)
        return app->status;
    if (!tnn_one_of(part, parts))
        (void)tnn_unknown(app, "part of a data set", part, parts);
    else if (!*set)
        (void)tnn_fail(app, TN_E_ARG, "data \"%s\": a name is missing", d->name);
    else if (!tnn_check(app, tn_data_find(app->ctx, set, &folder), "data \"%s\"", d->name)) {
        stem = strcmp(part, "test") ? "train" : "t10k";
        d->files[0] = file_find(app, folder, stem, "images-idx3-ubyte");
        d->files[1] = d->files[0] ? file_find(app, folder, stem, "labels-idx1-ubyte") : NULL;
        (void)tnn_names_beside(app, folder, &d->names);
    }
    tn_free(folder);
    free(set);
    return app->status;
}

static field *field_add(tn_app *app, tn_data *d, const char *name)
{
    field *f = &d->fields[d->field_count++];

    return (f->name = tnn_strdup(app, name)) ? f : NULL;
}

/* Its numbers as they are where that is bytes or float32. */
static tn_status images_take(tn_app *app, tn_data *d, field *f)
{
    const int64_t *shape = NULL;
    tn_array *cast = NULL;
    int32_t ndim = 0;
    void *data = NULL;
    tn_status st;

    if ((st = tn_array_shape(f->array, &ndim, &shape)))
        return tnn_check(app, st, "%s", d->files[0]);
    if (ndim != 3 && ndim != 4)
        return tnn_fail(app, TN_E_FORMAT, "%s has %d dimensions, (N, H, W) or (N, C, H, W) is needed",
                        d->files[0], ndim);
    d->count = shape[0];
    f->shape =
        tnn_shape_of(4, (const int64_t[]){1, ndim == 4 ? shape[1] : 1, shape[ndim - 2], shape[ndim - 1]});
    if (d->count < 1 || f->shape.dims[1] < 1 || f->shape.dims[2] < 1 || f->shape.dims[3] < 1)
        return tnn_fail(app, TN_E_FORMAT, "%s holds no pixels", d->files[0]);
    if (d->count > UINT32_MAX)
        return tnn_fail(app, TN_E_UNSUPPORTED, "%s holds more than 2^32 images", d->files[0]);
    f->sample = (size_t)(f->shape.dims[1] * f->shape.dims[2] * f->shape.dims[3]);
    if (tn_array_dtype(f->array) != TN_U8 && tn_array_dtype(f->array) != TN_F32) {
        if ((st = tn_array_cast(app->ctx, f->array, TN_F32, &cast)))
            return tnn_check(app, st, "%s", d->files[0]);
        tn_array_release(f->array);
        f->array = cast;
    }
    if ((st = tn_array_wait(f->array)) || (st = tn_array_data(f->array, &data)))
        return tnn_check(app, st, "%s", d->files[0]);
    if (tn_array_dtype(f->array) == TN_U8)
        f->bytes = data;
    else
        f->floats = data;
    return TN_OK;
}

/* A copy of all numbers of `array`, as float32. */
static tn_status numbers_take(tn_app *app, field *f, int64_t count, tn_array *array, const char *what)
{
    tn_array *cast = NULL;
    tn_status st;

    if (!(f->own = tnn_alloc(app, (size_t)count * f->sample, sizeof(float))))
        return TN_E_NOMEM;
    if (!(st = tn_array_cast(app->ctx, array, TN_F32, &cast)))
        st = tn_array_read(cast, f->own, (uint64_t)count * f->sample * sizeof(float));
    tn_array_release(cast);
    f->floats = f->own;
    return tnn_check(app, st, "%s", what);
}

static tn_status labels_take(tn_app *app, tn_data *d, field *f, tn_array *labels)
{
    f->shape = tnn_shape_of(1, (const int64_t[]){1});
    f->sample = 1;
    if (numbers_take(app, f, d->count, labels, d->files[1]))
        return app->status;
    for (int64_t i = 0; i < d->count; i++) {
        if (!(f->own[i] >= 0 && f->own[i] < 16777216))
            return tnn_fail(app, TN_E_FORMAT, "%s: label %lld is %g", d->files[1], (long long)i,
                            (double)f->own[i]);
        if (d->classes <= (int64_t)f->own[i])
            d->classes = (int64_t)f->own[i] + 1;
    }
    return TN_OK;
}

/* The buffer of one batch of the largest field, and room for an order. */
static tn_status room_make(tn_app *app, tn_data *d)
{
    size_t sample = 1;

    for (size_t i = 0; i < d->field_count; i++)
        if (d->fields[i].sample > sample)
            sample = d->fields[i].sample;
    if (d->batch > d->count)
        d->batch = d->count;
    if (sample > SIZE_MAX / sizeof(float) / (uint64_t)d->batch)
        return tnn_fail(app, TN_E_ARG, "data \"%s\": a batch of %lld does not fit", d->name,
                        (long long)d->batch);
    d->buffer = tnn_alloc(app, (size_t)d->batch * sample, sizeof(float));
    if (d->shuffle)
        d->order = tnn_alloc(app, (size_t)d->count, sizeof *d->order);
    return app->status;
}

static tn_status data_load(tn_app *app, tn_data *d)
{
    field *images = field_add(app, d, "data"), *labels = field_add(app, d, "label");
    tn_array *classes = NULL;
    tn_status st;

    if (!images || !labels || (st = files_find(app, d)))
        return app->status;
    if ((st = tn_idx_load_pair(app->ctx, d->files[0], d->files[1], &images->array, &classes)))
        return tnn_check(app, st, "%s", "");
    if (!(st = images_take(app, d, images)))
        st = labels_take(app, d, labels, classes);
    tn_array_release(classes);
    return st ? st : room_make(app, d);
}

static tn_data *data_make(tn_app *app, const char *name, int64_t batch, int32_t shuffled, uint64_t seed)
{
    tn_data *d = tnn_alloc(app, 1, sizeof *d);

    if (!d)
        return NULL;
    tnn_object_add(app, &d->object, data_destroy);
    d->batch = batch ? batch : 64;
    d->shuffle = shuffled != 0;
    d->order_epoch = -1;
    d->failed = true;
    return (d->name = tnn_strdup(app, name)) && !tnn_seed(app, seed, &d->seed) ? d : NULL;
}

tn_data *tn_data_open_(tn_app *app, const char *name, const tn_data_options *options)
{
    tn_data_options o = {0};
    tn_data *d;

    tnn_options_copy(&o, sizeof o, options);
    if (!tnn_ok(app))
        return NULL;
    if (!name || o.batch < 0 || o.batch > BATCH_MAX) {
        (void)tnn_fail(app, TN_E_ARG, "tn_data_open at %s:%d: %s", o.file ? o.file : "?", o.line,
                       name ? ".batch is out of range" : "a name is missing");
        return NULL;
    }
    if (!(d = data_make(app, name, o.batch, o.shuffle, o.seed)) || data_load(app, d))
        return NULL;
    d->failed = false;
    return d;
}

/* ---- arrays ---- */

static tn_status array_take(tn_app *app, tn_data *d, const tn_field *given)
{
    const size_t index = d->field_count;
    tnn_shape shape;
    field *f;

    if (!tnn_name_ok(given->name) || !given->array)
        return tnn_fail(app, TN_E_ARG, "data \"%s\": field %zu: %s", d->name, index,
                        given->array ? "its name needs 1 to 128 letters, digits, _ and -"
                                     : "the array is NULL");
    for (size_t i = 0; i < index; i++)
        if (!strcmp(d->fields[i].name, given->name))
            return tnn_fail(app, TN_E_KEY, "data \"%s\" has two fields \"%s\"", d->name, given->name);
    if (tnn_shape_take(app, given->array, given->name, &shape))
        return app->status;
    if (shape.ndim < 1 || shape.dims[0] < 1 || shape.dims[0] > UINT32_MAX ||
        (index && shape.dims[0] != d->count))
        return tnn_fail(app, TN_E_SHAPE, "data \"%s\": field \"%s\" has %lld samples, %s%s", d->name,
                        given->name, (long long)(shape.ndim > 0 ? shape.dims[0] : 0),
                        index ? "another number than " : "at least 1 is needed",
                        index ? d->fields[0].name : "");
    d->count = shape.dims[0];
    if (!(f = field_add(app, d, given->name)))
        return app->status;
    f->shape = shape;
    f->shape.dims[0] = 1;
    f->shape.dtype = TN_F32;
    f->sample = tn_array_count(given->array) / (size_t)d->count;
    return numbers_take(app, f, d->count, given->array, given->name);
}

/* Whole numbers from 0, one per sample, are taken for classes. */
static int64_t classes_of(const tn_data *d)
{
    const field *f = &d->fields[1];
    int64_t classes = 0;

    if (d->field_count < 2 || f->sample != 1)
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

tn_data *tn_data_arrays_(tn_app *app, const tn_arrays_options *options)
{
    tn_arrays_options o = {0};
    tn_data *d;

    tnn_options_copy(&o, sizeof o, options);
    if (!tnn_ok(app))
        return NULL;
    if (!o.fields[0].name || o.batch < 0 || o.batch > BATCH_MAX) {
        (void)tnn_fail(app, TN_E_ARG, "tn_data_arrays at %s:%d: %s", o.file ? o.file : "?", o.line,
                       o.fields[0].name ? ".batch is out of range" : "no field is given");
        return NULL;
    }
    if (!(d = data_make(app, o.name ? o.name : "arrays", o.batch, o.shuffle, o.seed)))
        return NULL;
    for (size_t i = 0; i < TNN_VALUES_MAX && o.fields[i].name; i++)
        if (array_take(app, d, &o.fields[i]))
            return NULL;
    d->classes = classes_of(d);
    if (room_make(app, d))
        return NULL;
    d->failed = false;
    return d;
}

/* ---- batches ---- */

/* Fisher and Yates, with 64 bits per exchange. */
static void shuffle(tn_data *d)
{
    const uint64_t key = tnn_random_mix(d->seed, TNN_PURPOSE_SHUFFLE);

    if (d->order_epoch == d->epoch)
        return;
    for (int64_t i = 0; i < d->count; i++)
        d->order[i] = (uint32_t)i;
    for (int64_t i = d->count - 1; i > 0; i--) {
        uint32_t w[4], kept = d->order[i];
        uint64_t bits, j;

        tn_philox(key, (uint64_t)d->epoch, (uint64_t)i, w);
        bits = (uint64_t)w[0] << 32 | w[1];
        j = (uint64_t)((wide)bits * (uint64_t)(i + 1) >> 64);
        d->order[i] = d->order[j];
        d->order[j] = kept;
    }
    d->order_epoch = d->epoch;
}

static tn_array *field_make(tn_app *app, tn_data *d, const field *f, int64_t begin, int64_t n)
{
    tnn_shape shape = f->shape;

    for (int64_t i = 0; i < n; i++) {
        const size_t from = (d->order ? d->order[begin + i] : (size_t)(begin + i)) * f->sample;
        float *to = d->buffer + (size_t)i * f->sample;

        if (f->bytes)
            for (size_t k = 0; k < f->sample; k++)
                to[k] = (float)f->bytes[from + k] / 255.0f;
        else
            memcpy(to, f->floats + from, f->sample * sizeof *to);
    }
    shape.dims[0] = n;
    return tn_app_array(app, shape.ndim, shape.dims, d->buffer);
}

static tn_status batch_make(tn_app *app, tn_data *d, int64_t begin, int64_t n, tn_batch *b)
{
    for (size_t i = 0; i < d->field_count; i++)
        d->fields[i].now = field_make(app, d, &d->fields[i], begin, n);
    b->x = d->fields[0].now;
    b->y = d->field_count > 1 ? d->fields[1].now : NULL;
    return app->status;
}

/* The batch and what was made of it goes. */
static void batch_end(tn_app *app, tn_data *d)
{
    for (size_t i = 0; i < d->field_count; i++)
        d->fields[i].now = NULL;
    tnn_scope_end(app, d);
}

int tn_data_next(tn_data *d, tn_batch *b)
{
    tn_app *app = tnn_data_app(d);
    int64_t begin, n;

    if (!app || !b)
        return 0;
    memset(b, 0, sizeof *b);
    begin = d->index * d->batch;
    batch_end(app, d);
    if (begin >= d->count) {
        d->epoch++;
        d->index = 0;
        return 0;
    }
    n = d->count - begin < d->batch ? d->count - begin : d->batch;
    tnn_scope_begin(app, d);
    if (d->order)
        shuffle(d);
    if (app->status || batch_make(app, d, begin, n, b))
        return 0;
    b->n = n;
    b->index = d->index++;
    b->epoch = d->epoch;
    return 1;
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
    if (epoch < 0 || index < 0 || index > tn_data_batches(d)) {
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
    return tnn_data_app(d) ? (d->count + d->batch - 1) / d->batch : 0;
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

const tnn_shape *tnn_data_field_shape(const tn_data *d, size_t index)
{
    return index < d->field_count ? &d->fields[index].shape : NULL;
}

tn_array *tnn_data_now(const tn_data *d, size_t index)
{
    return index < d->field_count ? d->fields[index].now : NULL;
}

int64_t tnn_data_batch(const tn_data *d)
{
    return d->batch;
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

bool tnn_data_same(const tn_data *a, const tn_data *b)
{
    if (a->count != b->count || a->field_count != b->field_count)
        return false;
    for (size_t i = 0; i < a->field_count; i++) {
        const field *f = &a->fields[i], *g = &b->fields[i];
        const size_t numbers = (size_t)a->count * f->sample;

        if (f->shape.ndim != g->shape.ndim || memcmp(f->shape.dims, g->shape.dims, sizeof f->shape.dims) ||
            !f->bytes != !g->bytes)
            return false;
        if (f->bytes ? memcmp(f->bytes, g->bytes, numbers)
                     : memcmp(f->floats, g->floats, numbers * sizeof(float)))
            return false;
    }
    return true;
}

/* Of arrays: names, shapes and numbers. */
static void fields_hash(const tn_data *d, SHA256_CTX *sha)
{
    for (size_t i = 0; i < d->field_count; i++) {
        const field *f = &d->fields[i];

        SHA256Update(sha, (const uint8_t *)f->name, strlen(f->name) + 1);
        SHA256Update(sha, (const uint8_t *)f->shape.dims, sizeof f->shape.dims);
        SHA256Update(sha, (const uint8_t *)f->floats, (size_t)d->count * f->sample * sizeof(float));
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
    SHA256Init(&sha);
    if (!d->files[0])
        fields_hash(d, &sha);
    for (int i = 0; i < 2 && d->files[0]; i++) {
        FILE *file = fopen(d->files[i], "rb");
        size_t n;
        bool bad;

        while (file && (n = fread(block, 1, sizeof block, file)) > 0)
            SHA256Update(&sha, block, n);
        bad = !file || ferror(file);
        if (file)
            (void)fclose(file);
        if (bad) {
            (void)tnn_fail(app, TN_E_IO, "%s cannot be read", d->files[i]);
            return 0;
        }
    }
    SHA256Final(digest, &sha);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
        (void)snprintf(out_hex + 2 * i, 3, "%02x", digest[i]);
    return 1;
}
