/* Data sets of arrays of the program, and of IDX files that lie in the folder of a data set. */
#include "about.h"
#include "images.h"
#include "own.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- IDX files by the name of a data set ---- */

/* FOLDER/PART-WHAT, plain or with .gz behind it. */
static char *file_find(tn_app *app, const char *folder, const char *part, const char *what)
{
    const char *stem = strcmp(part, "test") ? "train" : "t10k"; /* as MNIST has it */
    char *plain = tnn_format(app, "%s/%s-%s", folder, stem, what), *packed;

    if (!plain || !access(plain, R_OK))
        return plain;
    if ((packed = tnn_format(app, "%s.gz", plain)) && access(packed, R_OK)) {
        if (strncmp(what, "images", 6))
            (void)tnn_fail(app, TN_E_KEY, "data: neither %s nor %s is there", plain, packed);
        else if (tnn_images_are_flat(folder))
            (void)tnn_fail(
                app, TN_E_KEY,
                "data: the images of %s lie in no folders of classes: make one for each class, such "
                "as cat and dog",
                folder);
        else
            (void)tnn_fail(
                app, TN_E_KEY,
                "data: %s has neither folders of classes with .jpg or .png, nor %s.csv, .npz or .rec, "
                "nor %s (.gz); a packed file of another name is given itself: --data %s/NAME.rec",
                folder, part, tnn_path_name(plain), folder);
        free(packed);
        packed = NULL;
    }
    free(plain);
    return packed;
}

typedef struct place { /* where data lies */
    char *path;        /* a folder, or a file */
    const char *part;  /* "train" or "test" */
    bool file;
} place;

/* "digits:test" -> the folder of "digits" and "test"; "iris.csv" is a file. */
static tn_status place_find(tn_app *app, const char *name, place *out)
{
    static const char *const parts[] = {"train", "test", NULL};
    const char *colon = strrchr(name, ':');
    char *set = colon ? tnn_format(app, "%.*s", (int)(colon - name), name) : tnn_strdup(app, name),
         *folder = NULL;
    struct stat s;
    tn_status st;

    out->part = colon ? colon + 1 : "train";
    if (!set)
        return app->status;
    if (!tnn_one_of(out->part, parts)) {
        (void)tnn_unknown(app, "part of a data set", out->part, parts);
    } else if (!*set) {
        (void)tnn_fail(app, TN_E_ARG, "data \"%s\": a name is missing", name);
    } else if (!strcmp(set, ".") || !strcmp(set, "..")) {
        (void)tnn_fail(app, TN_E_KEY, "data \"%s\": write a folder with a slash: %s/", name, set);
    } else if (!stat(set, &s) && !S_ISDIR(s.st_mode)) {
        out->file = true;
        out->path = tnn_strdup(app, set);
    } else if (!(st = tn_data_find(app->ctx, set, &folder))) {
        out->path = tnn_strdup(app, folder);
    } else if (st == TN_E_KEY && (tnn_own_is(set) || tnn_ends_with(set, ".rec"))) {
        (void)tnn_fail_absent(app, "data \"%s\": there is no file %s, and no data set of this name", name,
                              set);
    } else if (st == TN_E_KEY && strchr(set, '/')) {
        (void)tnn_fail_absent(app, "data \"%s\": %s", name, tn_error_text());
    } else {
        (void)tnn_check(app, st, "data \"%s\"", name);
    }
    tn_free(folder);
    free(set);
    return app->status;
}

static tn_data *idx_open(tn_app *app, const char *what, const char *name, const char *folder,
                         const char *part, const tnn_cut *cut)
{
    tn_data *d = tnn_data_make(app, what, name, cut);

    if (!d)
        return NULL;
    d->files[0] = file_find(app, folder, part, "images-idx3-ubyte");
    d->files[1] = d->files[0] ? file_find(app, folder, part, "labels-idx1-ubyte") : NULL;
    if (app->status || tnn_names_beside(app, folder, &d->names) || tnn_data_idx(app, d))
        return NULL;
    d->by_files = d->parts == 1;
    return tnn_data_done(d);
}

/* What is kept with a model of IDX and images; or the model's, whose shape and classes hold. */
static tn_data *about_give(tn_app *app, tn_data *d, const tnn_about *about, bool strict)
{
    if (!d)
        return NULL;
    if (!about || (!strict && (about->input_count != 1 || about->task != TN_TASK_CLASSES)))
        return tnn_about_of(app, d) ? NULL : d;
    if (strict && tnn_about_fits(app, about, d))
        return NULL;
    if (about->names.count && d->images && tnn_images_rename(app, d->images, d->names, &about->names))
        return NULL;
    d->about = tnn_about_keep((tnn_about *)(uintptr_t)about);
    if (about->names.count && d->images) {
        tnn_names_destroy(d->names);
        d->names = NULL;
        d->classes = about->classes;
        (void)tnn_names_make(app, (const char *const *)about->names.at, about->names.count, &d->names);
    }
    return app->status ? NULL : d;
}

/* A file of the name that is that of the test part: "test.csv", "test.rec". */
static bool is_of_test(const char *path)
{
    return !strncmp(tnn_path_name(path), "test.", 5);
}

/* Images lie there: packed by part, in folders of classes or in those of a part, or in one .rec. `*path`
 * (free) of these; `*split`: a .rec holds both parts, since nothing else there is one of them. */
static bool images_find(tn_app *app, const char *folder, const char *part, char **path, bool *split)
{
    char *train = tnn_format(app, "%s/train.rec", folder), *test = tnn_format(app, "%s/test.rec", folder),
         *below = tnn_format(app, "%s/%s", folder, part), *tests = tnn_format(app, "%s/test", folder);
    const bool first = train && !access(train, R_OK), second = test && !access(test, R_OK);
    const bool loose = below && (tnn_images_are_in(below) || tnn_images_are_in(folder));
    const bool loose_tests = tests && tnn_images_are_in(tests), testing = !strcmp(part, "test");

    *split = !second && !loose_tests;
    if (testing && second && (first || loose))
        *path = tnn_strdup(app, test);
    else if (first && !(testing && loose_tests))
        *path = tnn_strdup(app, train);
    else if (loose)
        *path = tnn_strdup(app, folder);
    else if ((*path = tnn_images_lone(app, folder)))
        *split = !is_of_test(*path);
    free(train);
    free(test);
    free(below);
    free(tests);
    return *path != NULL;
}

static tn_data *images_open(tn_app *app, const char *what, const char *name, const char *path,
                            const char *part, const tnn_about *about, const tn_data_options *o)
{
    tn_images_options i = {.file = o->file,
                           .line = o->line,
                           .batch = o->batch,
                           .shuffle = o->shuffle,
                           .seed = o->seed,
                           .last = o->last,
                           .parts = o->parts,
                           .part = o->part,
                           .part_of = part,
                           .force_resize = 1,
                           .divisor = 255};
    const tnn_shape *s = about && about->input_count == 1 ? &about->inputs[0].shape : NULL;
    const char *none = NULL;
    tnn_shape wanted;

    if (tnn_shape_read(app, tn_ctx_option(app->ctx, "data.shape"), &wanted))
        return NULL;
    if (!s && wanted.ndim && (wanted.ndim != 3 || (wanted.dims[0] != 1 && wanted.dims[0] != 3))) {
        (void)tnn_fail(
            app, TN_E_ARG,
            "%s: option data.shape: of images, 1 or 3 channels, height and width are needed: 3x32x32", path);
        return NULL;
    }
    s = s ? s : &wanted;
    if (s->ndim == 3 && (s->dims[0] == 1 || s->dims[0] == 3 || s->dims[0] == 4))
        memcpy(i.shape, s->dims,
               sizeof i.shape); /* resized to what the model or the data to train on has, or to data.shape */

    return tnn_images_options(app, what, &i, NULL, &none) ? NULL : tnn_images_data(app, what, name, path, &i);
}

/* Its numbers as they are where that is bytes or float32. */
static tn_status images_take(tn_app *app, tn_data *d, tnn_field *f)
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

tn_status tnn_field_numbers(tn_app *app, tnn_field *f, int64_t count, tn_array *array, const char *what)
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

static tn_status labels_take(tn_app *app, tn_data *d, tnn_field *f, tn_array *labels)
{
    f->shape = tnn_shape_of(1, (const int64_t[]){1});
    f->sample = 1;
    if (tnn_field_numbers(app, f, d->count, labels, d->files[1]))
        return app->status;
    for (int64_t i = 0; i < d->count; i++) {
        if (!(f->floats[i] >= 0 && f->floats[i] < 16777216))
            return tnn_fail(app, TN_E_FORMAT, "%s: label %lld is %g", d->files[1], (long long)i,
                            (double)f->floats[i]);
        if (d->classes <= (int64_t)f->floats[i])
            d->classes = (int64_t)f->floats[i] + 1;
    }
    return TN_OK;
}

tn_status tnn_data_idx(tn_app *app, tn_data *d)
{
    tnn_field *images = tnn_field_add(app, d, "data"), *labels;
    tn_array *classes = NULL;
    tn_status st;

    if (!images)
        return app->status;
    if (!d->files[1])
        return tnn_check(app, tn_idx_load(app->ctx, d->files[0], &images->array), "%s", "")
                   ? app->status
                   : images_take(app, d, images);
    if (!(labels = tnn_field_add(app, d, "label")))
        return app->status;
    if ((st = tn_idx_load_pair(app->ctx, d->files[0], d->files[1], &images->array, &classes)))
        return tnn_check(app, st, "%s", "");
    if (!(st = images_take(app, d, images)))
        st = labels_take(app, d, labels, classes);
    tn_array_release(classes);
    return st;
}

/* A file of no known ending that does not begin as IDX, plain or packed, does. */
static tn_status kind_check(tn_app *app, const char *path)
{
    unsigned char head[2] = {0, 0};
    FILE *file = fopen(path, "rbe");
    const bool other =
        file && fread(head, 1, 2, file) == 2 && (head[0] || head[1]) && (head[0] != 0x1f || head[1] != 0x8b);

    if (file)
        (void)fclose(file);
    if (other && tnn_is_image(path))
        return tnn_fail(
            app, TN_E_FORMAT,
            "%s is one image, a table or arrays are needed here; images of a data set lie in a folder "
            "for each class",
            path);
    return other ? tnn_fail(app, TN_E_FORMAT,
                            "%s is no IDX file, and its name does not end in .csv, .tsv, .libsvm, .npz, .npy "
                            "or .rec",
                            path)
                 : TN_OK;
}

/* IMAGES-idx3-ubyte and the labels beside it. */
static tn_data *idx_file(tn_app *app, const char *what, const char *name, const char *path,
                         const tnn_cut *cut)
{
    const char *at = strstr(path, "images-idx3");
    tn_data *d = tnn_data_make(app, what, name, cut);
    char *labels =
        at ? tnn_format(app, "%.*slabels-idx1%s", (int)(at - path), path, at + strlen("images-idx3")) : NULL;

    if (d && labels && !access(labels, R_OK)) {
        d->files[1] = labels; /* moved */
        labels = NULL;
    }
    free(labels);
    if (!d || kind_check(app, path) || !(d->files[0] = tnn_strdup(app, path)) || tnn_data_idx(app, d))
        return NULL;
    return tnn_data_done(d);
}

/* One image, in the size that the model takes. */
static tn_data *image_file(tn_app *app, const char *what, const char *name, const char *path,
                           const tnn_cut *cut, const tnn_about *about)
{
    tn_data *d = tnn_data_make(app, what, name, cut);
    tnn_field *f = d ? tnn_field_add(app, d, "data") : NULL;

    if (!f)
        return NULL;
    d->count = 1;
    f->shape = about->inputs[0].shape;
    f->shape.ndim++;
    f->shape.dims[0] = 1;
    f->sample = 1;
    for (int32_t i = 0; i < 3; i++)
        f->sample *= (size_t)(f->shape.dims[i + 1] = about->inputs[0].shape.dims[i]);
    if (!tnn_field_room(app, f, 1) || !tn_image_sample(app, path, f->shape.dims + 1, f->own))
        return NULL;
    return tnn_data_done(d);
}

typedef struct opening {
    const char *what, *name;
    place at;
    const tnn_about *about; /* of the model or of the data to train on; NULL */
    bool strict;            /* of the model */
    const tn_data_options *o;
} opening;

static tn_data *file_open(tn_app *app, const opening *p)
{
    const char *part = p->o->whole ? NULL : p->at.part;

    if (p->strict && tnn_is_image(p->at.path) && p->about->inputs[0].shape.ndim == 3)
        return image_file(app, p->what, p->name, p->at.path, TNN_CUT_OF(*p->o), p->about);
    if (p->o->csv || tnn_own_is(p->at.path))
        return tnn_own_open(app, p->what, p->name, p->at.path, p->at.part, true, p->about, p->o);
    if (tnn_ends_with(p->at.path, ".rec"))
        return about_give(app, images_open(app, p->what, p->name, p->at.path, part, p->about, p->o), p->about,
                          p->strict);
    return about_give(app, idx_file(app, p->what, p->name, p->at.path, TNN_CUT_OF(*p->o)), p->about,
                      p->strict);
}

/* The one file of a folder is called as the test part is: that is nothing to train on. */
static tn_status part_check(tn_app *app, const opening *p, const char *path)
{
    const bool lone = path && strcmp(path, p->at.path) != 0 && is_of_test(path);

    return !lone || p->o->whole || !strcmp(p->at.part, "test")
               ? TN_OK
               : tnn_fail(app, TN_E_KEY,
                          "%s has %s and no train one; to train on four fifths of the file, give the file: "
                          "--data %s",
                          p->at.path, tnn_path_name(path), path);
}

static tn_data *folder_open(tn_app *app, const opening *p)
{
    char *path = NULL;
    bool split = false;
    tn_data *d = NULL;
    const bool images = images_find(app, p->at.path, p->at.part, &path, &split);

    if (app->status || (!images && tnn_own_find(app, p->at.path, p->at.part, &path, &split)) ||
        part_check(app, p, path)) {
        free(path);
        return NULL;
    }
    if (images) {
        const bool part = tnn_ends_with(path, ".rec") && !split;

        d = about_give(
            app,
            images_open(app, p->what, p->name, path, part || p->o->whole ? NULL : p->at.part, p->about, p->o),
            p->about, p->strict);
    } else {
        d = path ? tnn_own_open(app, p->what, p->name, path, p->at.part, split, p->about, p->o)
                 : about_give(app, idx_open(app, p->what, p->name, p->at.path, p->at.part, TNN_CUT_OF(*p->o)),
                              p->about, p->strict);
    }
    free(path);
    return d;
}

/* The test part of a table or of arrays is read as that to train on is; alone it needs a look at that. */
static tn_data *first_open(tn_app *app, const opening *p)
{
    tn_data_options o = *p->o;
    opening first = *p;
    bool split = false;
    char *path = NULL;

    if (p->about || strcmp(p->at.part, "test") != 0 || p->o->whole || p->at.file ||
        images_find(app, p->at.path, p->at.part, &path, &split) || app->status ||
        tnn_own_find(app, p->at.path, "train", &path, &split) || !path) {
        free(path);
        return NULL;
    }
    free(path);
    o.parts = o.part = 0;
    first.at.part = "train";
    first.o = &o;
    return folder_open(app, &first);
}

tn_data *tn_data_open_(tn_app *app, const char *name, const tn_data_options *options)
{
    tn_data_options o = {0};
    tnn_about *read = NULL;
    tn_data *d = NULL, *first = NULL;
    char what[96];
    opening p = {.what = what, .name = name, .o = &o};
    struct stat s;

    tnn_options_copy(&o, sizeof o, options);
    (void)snprintf(what, sizeof what, "tn_data_open at %.60s:%d", o.file ? o.file : "?", o.line);
    if (!tnn_ok(app))
        return NULL;
    if (!name) {
        (void)tnn_fail(app, TN_E_ARG, "%s: a name is missing", what);
        return NULL;
    }
    if (o.about && !(p.about = read = tnn_about_read(app, o.about)))
        return NULL;
    p.strict = read != NULL;
    if (!read && o.like && tnn_data_app(o.like) == app)
        p.about = o.like->about;
    if (o.csv || (o.whole && !stat(name, &s)))
        p.at = (place){tnn_strdup(app, name), "train", o.csv || !S_ISDIR(s.st_mode)};
    else
        (void)place_find(app, name, &p.at);
    if (!app->status && (first = first_open(app, &p)))
        p.about = first->about;
    if (!app->status)
        d = p.at.file ? file_open(app, &p) : folder_open(app, &p);
    tnn_about_drop(read);
    free(p.at.path);
    return d;
}

/* ---- arrays ---- */

/* The parts of a csr array on the host. */
static tn_status sparse_take(tn_app *app, tnn_field *f, tn_array *given)
{
    tn_array *values = NULL;
    void *at[3] = {NULL};
    tn_status st;

    for (uint32_t i = 0; i < 2; i++)
        if ((st = tn_array_aux(given, i, &f->aux[i])) || (st = tn_array_wait(f->aux[i])) ||
            (st = tn_array_data(f->aux[i], &at[i])))
            return tnn_check(app, st, "%s", f->name);
        else if (tn_array_dtype(f->aux[i]) != TN_I64)
            return tnn_fail(app, TN_E_DTYPE, "%s: indices of a csr array that are not int64", f->name);
    if (!(st = tn_array_values(given, &values)) &&
        !(st = tn_array_cast(app->ctx, values, TN_F32, &f->array)) && !(st = tn_array_wait(f->array)) &&
        tn_array_count(f->array))
        st = tn_array_data(f->array, &at[2]);
    tn_array_release(values);
    f->starts = at[0];
    f->columns = at[1];
    f->floats = at[2];
    return tnn_check(app, st, "%s", f->name);
}

/* Rows of some numbers: (N, …), as many as the fields before. */
static tn_status rows_check(tn_app *app, tn_data *d, const char *name, const tnn_shape *shape)
{
    const bool first = !d->field_count;

    if (shape->ndim >= 1 && shape->dims[0] >= 1 && shape->dims[0] <= UINT32_MAX &&
        (first || shape->dims[0] == d->count))
        return TN_OK;
    return tnn_fail(app, TN_E_SHAPE, "data \"%s\": field \"%s\" has %lld samples, %s%s", d->name, name,
                    (long long)(shape->ndim > 0 ? shape->dims[0] : 0),
                    first ? "at least 1 is needed" : "another number than ", first ? "" : d->fields[0].name);
}

tn_status tnn_field_array(tn_app *app, tn_data *d, const char *name, tn_array *given)
{
    const size_t index = d->field_count;
    tnn_shape shape;
    tnn_field *f;

    if (!tnn_name_ok(name) || !given)
        return tnn_fail(app, TN_E_ARG, "data \"%s\": field %zu: %s", d->name, index,
                        given ? "its name needs 1 to 128 letters, digits, _ and -" : "the array is NULL");
    for (size_t i = 0; i < index; i++)
        if (!strcmp(d->fields[i].name, name))
            return tnn_fail(app, TN_E_KEY, "data \"%s\" has two fields \"%s\"", d->name, name);
    if (tnn_shape_take(app, given, name, &shape) || rows_check(app, d, name, &shape))
        return app->status;
    d->count = shape.dims[0];
    if (!(f = tnn_field_add(app, d, name)))
        return app->status;
    f->shape = shape;
    f->shape.dims[0] = 1;
    f->shape.dtype = TN_F32;
    f->sample = 1;
    for (int32_t i = 1; i < shape.ndim; i++)
        f->sample *= (size_t)shape.dims[i];
    if (tn_array_storage(given) == TN_STORAGE_CSR)
        return sparse_take(app, f, given);
    return tnn_field_numbers(app, f, d->count, given, name);
}

tn_data *tn_data_from_arrays_(tn_app *app, const tn_arrays_options *options)
{
    tn_arrays_options o = {0};
    char what[96];
    tn_data *d;

    tnn_options_copy(&o, sizeof o, options);
    (void)snprintf(what, sizeof what, "tn_data_from_arrays at %.60s:%d", o.file ? o.file : "?", o.line);
    if (!tnn_ok(app))
        return NULL;
    if (!o.fields[0].name) {
        (void)tnn_fail(app, TN_E_ARG, "%s: no field is given", what);
        return NULL;
    }
    if (!(d = tnn_data_make(app, what, o.name ? o.name : "arrays", TNN_CUT_OF(o))))
        return NULL;
    for (size_t i = 0; i < TNN_VALUES_MAX && o.fields[i].name; i++)
        if (tnn_field_array(app, d, o.fields[i].name, o.fields[i].array))
            return NULL;
    return tnn_data_done(d);
}
