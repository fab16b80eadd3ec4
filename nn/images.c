/*
 * Data sets of images: samples are made when a batch needs them (ahead.c), from files of a folder or records
 * of a .rec, by augment.c. An image that cannot be read is counted and named; the next one that can stands in
 * its place, so that any thread at any time makes the same batch.
 */
#include "images.h"

#include <errno.h>
#include <sha256.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ahead.h"
#include "augment.h"
#include "tenon/image.h"

#define FILE_BYTES_MAX ((off_t)1 << 31)
#define TRIES_MAX 100 /* images that cannot be read, one behind the other */

void tnn_images_destroy(tnn_images *s)
{
    if (!s)
        return;
    for (int64_t i = 0; s->paths && i < s->count + s->first; i++)
        free(s->paths[i]);
    for (int32_t i = 0; s->readers && i < s->reader_count; i++)
        tn_record_close(s->readers[i]);
    for (size_t i = 0; i < sizeof s->texts / sizeof *s->texts; i++)
        free(s->texts[i]);
    for (size_t i = 0; i < TNN_BROKEN_MAX; i++)
        free(s->broken_texts[i]);
    if (s->has_lock)
        (void)pthread_mutex_destroy(&s->lock);
    free(s->broken_rows);
    free(s->readers);
    free(s->paths);
    free(s->labels);
    free(s->places);
    free(s->listed);
    free(s->list_labels);
    free(s->mean);
    free(s->boxes);
    free(s->root);
    free(s->file);
    free(s);
}

/* ---- samples, on any thread ---- */

typedef struct loaded { /* an encoded image and its labels */
    void *own;
    const void *data;
    uint64_t bytes, id;
    const unsigned char *labels; /* floats, at any address */
    size_t label_count;
    float label;
} loaded;

static tn_status file_load(const char *path, loaded *out, char *why, size_t why_bytes)
{
    FILE *file = fopen(path, "re");
    tn_status st = TN_E_IO;
    struct stat s;

    if (!file || fstat(fileno(file), &s)) {
        st = tnn_status_of(errno);
        (void)snprintf(why, why_bytes, "%s", strerror(errno));
    } else if (!S_ISREG(s.st_mode) || s.st_size > FILE_BYTES_MAX) {
        (void)snprintf(why, why_bytes, "this is no regular file of at most 2 GiB");
    } else if (!(out->own = malloc((size_t)s.st_size + 1))) {
        (void)snprintf(why, why_bytes, "out of memory");
        st = TN_E_NOMEM;
    } else {
        out->data = out->own;
        out->bytes = fread(out->own, 1, (size_t)s.st_size, file);
        st = ferror(file) ? TN_E_IO : TN_OK;
        if (st)
            (void)snprintf(why, why_bytes, "it cannot be read");
    }
    if (file)
        (void)fclose(file);
    return st;
}

static tn_status record_load(tnn_images *s, int32_t worker, uint32_t row, loaded *out, char *why,
                             size_t why_bytes)
{
    tn_record_header h = {.struct_size = TN_SIZE(tn_record_header)};
    tn_record_reader *r = s->readers[worker];
    const void *data = NULL;
    uint64_t bytes = 0;
    tn_status st;

    if ((st = tn_record_seek(r, s->places[row])) || (st = tn_record_next(r, &data, &bytes)) ||
        (st = tn_record_unpack(data, bytes, &h, &out->data, &out->bytes))) {
        (void)snprintf(why, why_bytes, "%s", tn_error_text());
        return st;
    }
    out->id = h.id;
    out->labels = (const unsigned char *)h.labels;
    out->label_count = h.label_count;
    out->label = h.label;
    return TN_OK;
}

static const tnn_listed *listed_find(const tnn_images *s, uint64_t id)
{
    size_t low = 0, high = s->listed_count;

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (s->listed[middle].id == id)
            return &s->listed[middle];
        if (s->listed[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* Where the labels of an image of a .rec stand, at any address. */
static tn_status labels_find(const tnn_images *s, const loaded *l, const unsigned char **labels,
                             size_t *count, char *why, size_t bytes)
{
    const size_t width = (size_t)s->o.label_width;
    const tnn_listed *listed = s->listed ? listed_find(s, l->id) : NULL;

    if (s->listed && !listed) {
        (void)snprintf(why, bytes, "image %llu is not in %.300s", (unsigned long long)l->id, s->o.list);
        return TN_E_KEY;
    }
    *labels = listed           ? (const unsigned char *)(s->list_labels + listed->first)
              : l->label_count ? l->labels
                               : (const unsigned char *)&l->label;
    *count = listed ? listed->count : l->label_count ? l->label_count : 1;
    if (!width || *count == width)
        return TN_OK;
    (void)snprintf(why, bytes, "image %llu has %zu labels, label_width is %zu", (unsigned long long)l->id,
                   listed ? *count : l->label_count, width);
    return TN_E_SHAPE;
}

static tn_status labels_write(const tnn_images *s, uint32_t row, const loaded *l, float *out,
                              tnn_boxes *boxes, char *why, size_t bytes)
{
    const unsigned char *labels = (const unsigned char *)(s->labels ? &s->labels[row] : NULL);
    const char *fault;
    size_t count = 1;
    tn_status st = s->labels ? TN_OK : labels_find(s, l, &labels, &count, why, bytes);

    if (st)
        return st;
    if (!boxes) {
        memcpy(out, labels, count * sizeof *out);
        return TN_OK;
    }
    fault = tnn_boxes_take(boxes, labels, count);
    if (!fault && (int64_t)count > boxes->o->label_pad_width)
        fault = "it has more labels than label_pad_width";
    if (fault)
        (void)snprintf(why, bytes, "%s", fault);
    return fault ? TN_E_FORMAT : TN_OK;
}

/* "cat/1.png", or "x.rec, image 17". */
static void place_name(const tnn_images *s, uint32_t row, char *out, size_t bytes)
{
    if (s->paths)
        (void)snprintf(out, bytes, "%s/%s", s->root, s->paths[row]);
    else
        (void)snprintf(out, bytes, "%s, byte %llu", s->file, (unsigned long long)s->places[row]);
}

static tn_status one_make(tnn_images *s, int32_t worker, uint32_t row, uint64_t sample, float *const *out,
                          char *why, size_t why_bytes)
{
    tnn_draws draws = {s->key, sample, 0};
    tnn_boxes boxes = {.o = s->o.boxes}, *b = s->o.boxes ? &boxes : NULL;
    loaded l = {.own = NULL};
    const char *text = NULL;
    char path[4200];
    tn_status st;

    tn_error_clear();
    place_name(s, row, path, sizeof path);
    st = s->paths ? file_load(path, &l, why, why_bytes) : record_load(s, worker, row, &l, why, why_bytes);
    if (!st && !(st = labels_write(s, row, &l, out[1], b, why, why_bytes)) &&
        (st = tnn_augment_run(s->ctx, &s->o, s->mean, l.data, l.bytes, &draws, b, out[0], &text)))
        (void)snprintf(why, why_bytes, "%s", text && *text ? text : tn_status_name(st));
    if (!st && b)
        tnn_boxes_write(b, out[1]);
    tnn_boxes_free(&boxes);
    free(l.own);
    return st;
}

static void broken_note(tnn_images *s, uint32_t row, const char *why)
{
    char place[4200];
    size_t bytes;

    place_name(s, row, place, sizeof place);
    bytes = strlen(place) + strlen(why) + 3;
    (void)pthread_mutex_lock(&s->lock);
    if (s->broken < TNN_BROKEN_MAX && (s->broken_texts[s->broken] = malloc(bytes)))
        (void)snprintf(s->broken_texts[s->broken], bytes, "%s: %s", place, why);
    s->broken++;
    if (!s->broken_rows)
        s->broken_rows = calloc((size_t)(s->first + s->count) / 8 + 1, 1);
    if (s->broken_rows && !(s->broken_rows[row / 8] & 1u << row % 8)) {
        s->broken_rows[row / 8] |= (uint8_t)(1u << row % 8);
        s->broken_images++;
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static tn_status sample_make(void *self, int32_t worker, uint32_t row, int64_t epoch, float *const *out,
                             char *why, size_t why_bytes)
{
    tnn_images *s = self;
    const uint64_t sample = (uint64_t)epoch << 32 | row;
    uint32_t at = row;
    char text[400] = "", place[4200];
    tn_status st = TN_OK;

    for (int i = 0; i < TRIES_MAX && i < s->count; i++) {
        if (!(st = one_make(s, worker, at + s->first, sample, out, text, sizeof text)))
            return TN_OK;
        broken_note(s, at + s->first, text);
        if (s->o.strict || st == TN_E_NOMEM || tn_error_number() == TNN_NUMBER_PLUGIN_MISSING)
            break;
        at = at + 1 < (uint64_t)s->count ? at + 1 : 0;
    }
    place_name(s, at + s->first, place, sizeof place);
    (void)snprintf(why, why_bytes, "%.300s: %.200s", place, text);
    return st;
}

/* ---- making ---- */

/* Of the first image that can be read. */
static tn_status shape_find(tn_app *app, tnn_images *s)
{
    char why[400] = "", place[4200] = "";

    for (uint32_t i = 0; i < TRIES_MAX && i < s->count; i++) {
        tn_image_about a = {.struct_size = TN_SIZE(tn_image_about)};
        loaded l = {.own = NULL};
        tn_status st;

        place_name(s, i, place, sizeof place);
        st = s->paths ? file_load(place, &l, why, sizeof why) : record_load(s, 0, i, &l, why, sizeof why);
        if (!st && (st = tn_image_look(s->ctx, l.data, l.bytes, &a)))
            (void)snprintf(why, sizeof why, "%s", tn_error_text());
        free(l.own);
        if (st && tn_error_number() == TNN_NUMBER_PLUGIN_MISSING)
            return tnn_check(app, st, "%s", place);
        if (st == TN_E_NOMEM)
            return tnn_fail(app, st, "%s: %s", place, why);
        if (!st) {
            s->o.shape[0] = a.channels <= 2 ? 1 : 3;
            s->o.shape[1] = a.height;
            s->o.shape[2] = a.width;
            return TN_OK;
        }
    }
    return tnn_fail(app, TN_E_FORMAT, "%s: %s", place, why);
}

static tn_status mean_load(tn_app *app, tnn_images *s)
{
    const size_t count = (size_t)(s->o.shape[0] * s->o.shape[1] * s->o.shape[2]);
    tn_params *p = NULL;
    tn_array *a = NULL, *cast = NULL;
    tn_status st = tn_load(app->ctx, s->o.mean_img, &p);

    if (!st && !(st = tn_params_at(p, 0, &a)) && tn_array_count(a) != count)
        (void)tnn_fail(app, TN_E_SHAPE, "%s has %llu numbers, an image %zu", s->o.mean_img,
                       (unsigned long long)tn_array_count(a), count);
    if (!st && !app->status && (s->mean = tnn_alloc(app, count, sizeof *s->mean)) &&
        !(st = tn_array_cast(app->ctx, a, TN_F32, &cast)))
        st = tn_array_read(cast, s->mean, count * sizeof *s->mean);
    tn_array_release(cast);
    tn_array_release(a);
    tn_params_destroy(p);
    return app->status ? app->status : tnn_check(app, st, "%s", s->o.mean_img);
}

static tn_status text_keep(tn_app *app, tnn_images *s, int place, const char **text)
{
    if (!*text)
        return TN_OK;
    *text = s->texts[place] = tnn_strdup(app, *text);
    return app->status;
}

static char *index_find(tn_app *app, const char *path)
{
    char *beside = tnn_beside(app, path, ".idx");

    if (beside && !access(beside, R_OK))
        return beside;
    free(beside);
    return NULL;
}

/* Names of classes, in NAME.classes beside NAME.rec. */
static tn_status classes_find(tn_app *app, tnn_images *s, tn_data *d)
{
    char *path = s->o.list || s->o.boxes ? NULL : tnn_beside(app, s->file, ".classes");

    if (path && !access(path, F_OK) && !tnn_names_read(app, path, &d->names)) {
        int64_t count = 0;

        while (tnn_names_at(d->names, count))
            count++;
        if (count < d->classes)
            (void)tnn_fail(app, TN_E_FORMAT, "%s names %lld classes, %s has %lld", path, (long long)count,
                           s->file, (long long)d->classes);
        d->classes = count;
    }
    free(path);
    return app->status;
}

static tn_status readers_open(tn_app *app, tnn_images *s)
{
    const int32_t count = s->o.threads ? s->o.threads : 1;

    if (!(s->readers = tnn_alloc(app, (size_t)count, sizeof *s->readers)))
        return app->status;
    for (; s->reader_count < count; s->reader_count++)
        if (tnn_check(app, tn_record_open(s->file, 0, 1, &s->readers[s->reader_count]), "%s", s->file))
            return app->status;
    return TN_OK;
}

static void note_make(tn_app *app, tn_data *d, const char *path)
{
    d->note = tnn_format(app, "%s has no parts: each fifth image%s is to test with, all others train", path,
                         d->images->file ? "" : " of a class");
}

/* Of a .rec that holds both parts each fifth image is to test with. */
static tn_status part_keep(tn_app *app, tnn_images *s, tn_data *d)
{
    const bool test = !strcmp(s->o.part_of, "test");
    int64_t kept = 0;

    for (int64_t i = 0; i < s->count; i++)
        if ((i % TNN_TEST_EVERY == TNN_TEST_EVERY - 1) == test)
            s->places[kept++] = s->places[i];
    s->count = kept;
    note_make(app, d, s->file);
    return kept ? app->status
                : tnn_fail(app, TN_E_FORMAT, "%s has fewer than %d images: none is left to test with",
                           s->file, TNN_TEST_EVERY);
}

/* Options of boxes are ours from here on, and the labels have a width. */
static tn_status boxes_keep(tn_app *app, tnn_images *s)
{
    int64_t most;

    if (!(s->boxes = tnn_alloc(app, 1, sizeof *s->boxes)) || tnn_images_widest(app, s, &most))
        return app->status;
    s->boxes->o = *s->o.boxes;
    memcpy(s->boxes->samplers, s->o.boxes->samplers, sizeof s->boxes->samplers);
    s->boxes->o.samplers = s->boxes->samplers;
    s->o.boxes = &s->boxes->o;
    if (s->boxes->o.label_pad_width && s->boxes->o.label_pad_width < most)
        return tnn_fail(app, TN_E_ARG, "%s: an image has %lld labels, label_pad_width is %lld", s->file,
                        (long long)most, (long long)s->boxes->o.label_pad_width);
    s->boxes->o.label_pad_width = s->boxes->o.label_pad_width ? s->boxes->o.label_pad_width : most;
    return TN_OK;
}

/* Which images there are. */
static tn_status images_find(tn_app *app, tnn_images *s, tn_data *d, const char *path)
{
    struct stat info;

    if (stat(path, &info))
        return tnn_fail_open(app, path);
    if (S_ISDIR(info.st_mode) && s->o.boxes)
        return tnn_fail(app, TN_E_ARG, "%s: boxes are read from a .rec, with labels in it or in a .lst",
                        path);
    if (S_ISDIR(info.st_mode)) {
        if (!tnn_images_folder(app, s, path, s->o.part_of, &d->names) && s->o.part_of &&
            !strcmp(s->root, path))
            note_make(app, d, path);
        return app->status;
    }
    if (!(s->file = tnn_strdup(app, path)) || readers_open(app, s))
        return app->status;
    if (!s->o.index && (s->texts[0] = index_find(app, path)))
        s->o.index = s->texts[0];
    if (s->o.list && tnn_images_list(app, s))
        return app->status;
    if (s->o.part_of) /* shares are cut by number then */
        return app->status || tnn_images_records(app, s, 1, 0, &d->classes) || classes_find(app, s, d)
                   ? app->status
                   : part_keep(app, s, d);
    if (app->status || tnn_images_records(app, s, d->parts, d->part, &d->classes) || classes_find(app, s, d))
        return app->status;
    d->parts = 1; /* they are cut already */
    return TN_OK;
}

static tn_status fields_make(tn_app *app, tnn_images *s, tn_data *d)
{
    tnn_field *data = tnn_field_add(app, d, "data"), *label = data ? tnn_field_add(app, d, "label") : NULL;
    const int64_t width = s->boxes ? TNN_BOXES_HEAD + s->boxes->o.label_pad_width : s->o.label_width;

    if (!label)
        return app->status;
    data->shape = tnn_shape_of(4, (const int64_t[]){1, s->o.shape[0], s->o.shape[1], s->o.shape[2]});
    data->sample = (size_t)(s->o.shape[0] * s->o.shape[1] * s->o.shape[2]);
    label->shape = tnn_shape_of(width > 1 ? 2 : 1, (const int64_t[]){1, width});
    label->sample = (size_t)width;
    data->made = label->made = true;
    return TN_OK;
}

static tn_status images_open(tn_app *app, tnn_images *s, tn_data *d, const char *path)
{
    if (text_keep(app, s, 0, &s->o.index) || text_keep(app, s, 1, &s->o.list) ||
        text_keep(app, s, 2, &s->o.inter) || text_keep(app, s, 3, &s->o.mean_img))
        return app->status;
    if (pthread_mutex_init(&s->lock, NULL))
        return tnn_no_memory(app);
    s->has_lock = true;
    if (images_find(app, s, d, path))
        return app->status;
    d->count = s->count;
    if (s->o.boxes && boxes_keep(app, s))
        return app->status;
    if (s->o.classes)
        d->classes = s->o.classes > 0 ? s->o.classes : 0;
    if (!s->o.shape[0] && shape_find(app, s))
        return app->status;
    if (s->o.mean_img && mean_load(app, s))
        return app->status;
    s->key = tnn_random_mix(s->o.seed_aug ? s->o.seed_aug : d->order.seed, TNN_PURPOSE_IMAGES);
    return fields_make(app, s, d);
}

/* The samples of a share, as tnn_data_done() has cut it. */
static tn_data *images_start(tn_app *app, tnn_images *s, tn_data *d)
{
    const int64_t all = s->count;
    const tnn_maker maker = {
        .self = s, .threads = s->o.threads, .prefetch = s->o.prefetch, .make = sample_make};
    int64_t begin = 0, end = all;

    if (d->parts > 1)
        tnn_share(all, d->parts, d->part, &begin, &end);
    if (!tnn_data_done(d))
        return NULL;
    d->failed = true;
    s->first = (uint32_t)begin;
    s->count = end - begin;
    for (int64_t i = end; s->paths && i < all; i++) {
        free(s->paths[i]);
        s->paths[i] = NULL;
    }
    if (tnn_ahead_create(app, &maker, d, &d->ahead))
        return NULL;
    d->failed = false;
    return d;
}

tn_data *tnn_images_data(tn_app *app, const char *what, const char *name, const char *path,
                         const tn_images_options *o)
{
    tn_data *d = tnn_data_make(app, what, name, TNN_CUT_OF(*o));

    if (!d || !(d->images = tnn_alloc(app, 1, sizeof *d->images)))
        return NULL;
    d->images->ctx = app->ctx;
    d->images->o = *o;
    if (!(d->files[0] = tnn_strdup(app, path)) || images_open(app, d->images, d, path))
        return NULL;
    return images_start(app, d->images, d);
}

tn_data *tn_data_from_images_(tn_app *app, const char *path, const tn_images_options *options)
{
    static const char *const parts[] = {"train", "test", NULL};
    tn_images_options o = {0};
    tnn_boxes_given boxes;
    char what[96];

    tnn_options_copy(&o, sizeof o, options);
    (void)snprintf(what, sizeof what, "tn_data_from_images at %.60s:%d", o.file ? o.file : "?", o.line);
    if (!tnn_ok(app) || tnn_images_options(app, what, &o, &boxes, &path))
        return NULL;
    if (o.part_of && !tnn_one_of(o.part_of, parts)) {
        (void)tnn_unknown(app, "part of a data set", o.part_of, parts);
        return NULL;
    }
    if (!path) {
        (void)tnn_fail(app, TN_E_ARG, "%s: a path is missing", what);
        return NULL;
    }
    return tnn_images_data(app, what, path, path, &o);
}

/* ---- what is broken, what is there ---- */

static void file_digest(SHA256_CTX *sha, const char *path)
{
    struct stat info;
    const int64_t bytes = stat(path, &info) ? -1 : (int64_t)info.st_size;

    SHA256Update(sha, (const uint8_t *)&bytes, sizeof bytes);
}

void tnn_images_digest(const tnn_images *s, char hex[65])
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    char path[4200];
    SHA256_CTX sha;

    SHA256Init(&sha);
    SHA256Update(&sha, (const uint8_t *)s->o.shape, sizeof s->o.shape);
    for (int64_t i = 0; i < s->count; i++) {
        const uint32_t row = (uint32_t)i + s->first;

        if (s->places) {
            SHA256Update(&sha, (const uint8_t *)&s->places[row], sizeof s->places[row]);
            continue;
        }
        place_name(s, row, path, sizeof path);
        SHA256Update(&sha, (const uint8_t *)s->paths[row], strlen(s->paths[row]) + 1);
        SHA256Update(&sha, (const uint8_t *)&s->labels[row], sizeof s->labels[row]);
        file_digest(&sha, path);
    }
    if (s->file)
        file_digest(&sha, s->file);
    SHA256Final(digest, &sha);
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* Of one of the counters of `d`, which threads count up. */
static int64_t counter_read(const tn_data *d, bool images)
{
    int64_t count = 0;

    if (!tnn_data_app(d) || !d->images)
        return 0;
    (void)pthread_mutex_lock(&d->images->lock);
    count = images ? d->images->broken_images : d->images->broken;
    (void)pthread_mutex_unlock(&d->images->lock);
    return count;
}

int64_t tn_data_broken(const tn_data *d)
{
    return counter_read(d, false);
}

int64_t tn_data_broken_images(const tn_data *d)
{
    return counter_read(d, true);
}

const char *tn_data_broken_text(const tn_data *d, int64_t index)
{
    return index >= 0 && index < tn_data_broken(d) && index < TNN_BROKEN_MAX ? d->images->broken_texts[index]
                                                                             : NULL;
}

int tn_image_sample(tn_app *app, const char *path, const int64_t shape[3], float *out)
{
    tn_images_options o = {.divisor = 255, .force_resize = 1};
    tnn_draws draws = {0, 0, 0};
    loaded l = {.own = NULL};
    const char *text = NULL, *none = NULL;
    char why[400] = "";
    tn_status st;

    if (!tnn_ok(app))
        return 0;
    if (!path || !shape || !out)
        return !tnn_fail(app, TN_E_ARG, "tn_image_sample: path, shape or out is NULL");
    memcpy(o.shape, shape, sizeof o.shape);
    if (tnn_images_options(app, "tn_image_sample", &o, NULL, &none))
        return 0;
    if (!o.shape[0])
        return !tnn_fail(app, TN_E_ARG, "tn_image_sample: a shape without pixels");
    if ((st = file_load(path, &l, why, sizeof why)))
        return !tnn_fail(app, st, "%s: %s", path, why);
    st = tnn_augment_run(app->ctx, &o, NULL, l.data, l.bytes, &draws, NULL, out, &text);
    free(l.own);
    if (st && tn_error_number() == TNN_NUMBER_PLUGIN_MISSING)
        return !tnn_check(app, st, "%s", path);
    return st ? !tnn_fail(app, st, "%s: %s", path, text) : 1;
}
