/*
 * Data sets: images and labels of IDX files, in batches.
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

struct tn_data {
    tnn_object object;
    char *name, *files[2];
    tn_array *images;     /* u8 or f32 on the host; `pixels` is its data */
    const uint8_t *bytes; /* NULL: `floats` */
    const float *floats;
    float *labels;
    int64_t count, batch, classes;
    int64_t shape[4]; /* 1, C, H, W */
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

    tn_array_release(d->images);
    free(d->labels);
    free(d->order);
    free(d->buffer);
    tnn_names_destroy(d->names);
    free(d->name);
    free(d->files[0]);
    free(d->files[1]);
    free(d);
}

static tn_app *data_app(const tn_data *d)
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

static tn_status images_take(tn_app *app, tn_data *d)
{
    const int64_t *shape = NULL;
    tn_array *cast = NULL;
    int32_t ndim = 0;
    void *data = NULL;
    tn_status st;

    if ((st = tn_array_shape(d->images, &ndim, &shape)))
        return tnn_check(app, st, "%s", d->files[0]);
    if (ndim != 3 && ndim != 4)
        return tnn_fail(app, TN_E_FORMAT, "%s has %d dimensions, (N, H, W) or (N, C, H, W) is needed",
                        d->files[0], ndim);
    d->count = shape[0];
    d->shape[0] = 1;
    d->shape[1] = ndim == 4 ? shape[1] : 1;
    d->shape[2] = shape[ndim - 2];
    d->shape[3] = shape[ndim - 1];
    if (d->count < 1 || d->shape[1] < 1 || d->shape[2] < 1 || d->shape[3] < 1)
        return tnn_fail(app, TN_E_FORMAT, "%s holds no pixels", d->files[0]);
    if (d->count > UINT32_MAX)
        return tnn_fail(app, TN_E_UNSUPPORTED, "%s holds more than 2^32 images", d->files[0]);
    if (tn_array_dtype(d->images) != TN_U8 && tn_array_dtype(d->images) != TN_F32) {
        if ((st = tn_array_cast(app->ctx, d->images, TN_F32, &cast)))
            return tnn_check(app, st, "%s", d->files[0]);
        tn_array_release(d->images);
        d->images = cast;
    }
    if ((st = tn_array_wait(d->images)) || (st = tn_array_data(d->images, &data)))
        return tnn_check(app, st, "%s", d->files[0]);
    if (tn_array_dtype(d->images) == TN_U8)
        d->bytes = data;
    else
        d->floats = data;
    return TN_OK;
}

static tn_status labels_take(tn_app *app, tn_data *d, tn_array *labels)
{
    tn_array *cast = NULL;
    tn_status st;

    if (!(d->labels = tnn_alloc(app, (size_t)d->count, sizeof(float))))
        return TN_E_NOMEM;
    if (!(st = tn_array_cast(app->ctx, labels, TN_F32, &cast)))
        st = tn_array_read(cast, d->labels, (uint64_t)d->count * sizeof(float));
    tn_array_release(cast);
    if (st)
        return tnn_check(app, st, "%s", d->files[1]);
    for (int64_t i = 0; i < d->count; i++) {
        if (!(d->labels[i] >= 0 && d->labels[i] < 16777216))
            return tnn_fail(app, TN_E_FORMAT, "%s: label %lld is %g", d->files[1], (long long)i,
                            (double)d->labels[i]);
        if (d->classes <= (int64_t)d->labels[i])
            d->classes = (int64_t)d->labels[i] + 1;
    }
    return TN_OK;
}

static tn_status data_load(tn_app *app, tn_data *d)
{
    tn_array *labels = NULL;
    uint64_t sample;
    tn_status st;

    if ((st = files_find(app, d)))
        return st;
    if ((st = tn_idx_load_pair(app->ctx, d->files[0], d->files[1], &d->images, &labels)))
        return tnn_check(app, st, "%s", "");
    if (!(st = images_take(app, d)))
        st = labels_take(app, d, labels);
    tn_array_release(labels);
    if (st)
        return st;
    if (d->batch > d->count)
        d->batch = d->count;
    sample = (uint64_t)(d->shape[1] * d->shape[2] * d->shape[3]); /* no more than the file has bytes */
    if (sample > SIZE_MAX / sizeof(float) / (uint64_t)d->batch)
        return tnn_fail(app, TN_E_ARG, "data \"%s\": a batch of %lld does not fit", d->name,
                        (long long)d->batch);
    d->buffer = tnn_alloc(app, (size_t)d->batch * sample, sizeof(float));
    if (d->shuffle)
        d->order = tnn_alloc(app, (size_t)d->count, sizeof *d->order);
    return app->status;
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
    if (!(d = tnn_alloc(app, 1, sizeof *d)))
        return NULL;
    tnn_object_add(app, &d->object, data_destroy);
    d->batch = o.batch ? o.batch : 64;
    d->shuffle = o.shuffle != 0;
    d->order_epoch = -1;
    d->failed = true;
    if (!(d->name = tnn_strdup(app, name)) || tnn_seed(app, o.seed, &d->seed) || data_load(app, d))
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

static tn_status batch_make(tn_app *app, tn_data *d, int64_t begin, int64_t n, tn_batch *b)
{
    const size_t sample = (size_t)(d->shape[1] * d->shape[2] * d->shape[3]);
    const int64_t shape[4] = {n, d->shape[1], d->shape[2], d->shape[3]};

    for (int64_t i = 0; i < n; i++) {
        const size_t from = (d->order ? d->order[begin + i] : (size_t)(begin + i)) * sample;
        float *to = d->buffer + (size_t)i * sample;

        if (d->bytes)
            for (size_t k = 0; k < sample; k++)
                to[k] = (float)d->bytes[from + k] / 255.0f;
        else
            memcpy(to, d->floats + from, sample * sizeof *to);
    }
    b->x = tn_app_array(app, 4, shape, d->buffer);
    for (int64_t i = 0; i < n; i++)
        d->buffer[i] = d->labels[d->order ? d->order[begin + i] : begin + i];
    b->y = tn_app_array(app, 1, shape, d->buffer);
    return app->status;
}

int tn_data_next(tn_data *d, tn_batch *b)
{
    tn_app *app = data_app(d);
    int64_t begin, n;

    if (!app || !b)
        return 0;
    memset(b, 0, sizeof *b);
    begin = d->index * d->batch;
    if (begin >= d->count) {
        tnn_scope_end(app, d);
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
    tn_app *app = data_app(d);

    if (!app)
        return;
    if (epoch < 0 || index < 0 || index > tn_data_batches(d)) {
        (void)tnn_fail(app, TN_E_ARG, "data \"%s\": there is no batch %lld of epoch %lld", d->name,
                       (long long)index, (long long)epoch);
        return;
    }
    tnn_scope_end(app, d);
    d->epoch = epoch;
    d->index = index;
}

int64_t tn_data_count(const tn_data *d)
{
    return data_app(d) ? d->count : 0;
}

int64_t tn_data_batches(const tn_data *d)
{
    return data_app(d) ? (d->count + d->batch - 1) / d->batch : 0;
}

int64_t tn_data_classes(const tn_data *d)
{
    return data_app(d) ? d->classes : 0;
}

void tn_data_shape(const tn_data *d, int64_t shape[4])
{
    if (!shape)
        return;
    memset(shape, 0, 4 * sizeof *shape);
    if (data_app(d))
        memcpy(shape, d->shape, sizeof d->shape);
}

const char *tn_data_class_name(const tn_data *d, int64_t index)
{
    return data_app(d) ? tnn_names_at(d->names, index) : NULL;
}

const char *tn_data_name(const tn_data *d)
{
    return data_app(d) ? d->name : "";
}

const char *tn_data_file(const tn_data *d, int32_t labels)
{
    return data_app(d) ? d->files[labels != 0] : "";
}

bool tnn_data_same(const tn_data *a, const tn_data *b)
{
    const size_t pixels = (size_t)(a->count * a->shape[1] * a->shape[2] * a->shape[3]);

    if (a->count != b->count || memcmp(a->shape, b->shape, sizeof a->shape) || !a->bytes != !b->bytes ||
        memcmp(a->labels, b->labels, (size_t)a->count * sizeof *a->labels))
        return false;
    return a->bytes ? !memcmp(a->bytes, b->bytes, pixels)
                    : !memcmp(a->floats, b->floats, pixels * sizeof *a->floats);
}

int tn_data_sha256(tn_data *d, char out_hex[65])
{
    tn_app *app = data_app(d);
    uint8_t digest[SHA256_DIGEST_LENGTH], block[16384];
    SHA256_CTX sha;

    if (out_hex)
        out_hex[0] = '\0';
    if (!app)
        return 0;
    if (!out_hex)
        return !tnn_fail(app, TN_E_ARG, "tn_data_sha256: out_hex is NULL");
    SHA256Init(&sha);
    for (int i = 0; i < 2; i++) {
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
