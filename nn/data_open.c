/* Data sets of arrays of the program, and of IDX files that lie in the folder of a data set. */
#include "images.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- IDX files by the name of a data set ---- */

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

/* "digits:test" -> the folder of "digits" (tn_free) and "test". */
static tn_status part_find(tn_app *app, const char *name, char **folder, const char **part)
{
    static const char *const parts[] = {"train", "test", NULL};
    const char *colon = strrchr(name, ':');
    char *set = colon ? tnn_format(app, "%.*s", (int)(colon - name), name) : tnn_strdup(app, name);

    *part = colon ? colon + 1 : "train";
    if (!set)
        return app->status;
    if (!tnn_one_of(*part, parts))
        (void)tnn_unknown(app, "part of a data set", *part, parts);
    else if (!*set)
        (void)tnn_fail(app, TN_E_ARG, "data \"%s\": a name is missing", name);
    else
        (void)tnn_check(app, tn_data_find(app->ctx, set, folder), "data \"%s\"", name);
    free(set);
    return app->status;
}

/* Files "t10k-…" for the part "test". */
static tn_data *idx_open(tn_app *app, const char *what, const char *name, const char *folder,
                         const char *part, const tnn_cut *cut)
{
    const char *stem = strcmp(part, "test") ? "train" : "t10k";
    tn_data *d = tnn_data_make(app, what, name, cut);

    if (!d)
        return NULL;
    d->files[0] = file_find(app, folder, stem, "images-idx3-ubyte");
    d->files[1] = d->files[0] ? file_find(app, folder, stem, "labels-idx1-ubyte") : NULL;
    if (app->status || tnn_names_beside(app, folder, &d->names) || tnn_data_idx(app, d))
        return NULL;
    d->by_files = d->parts == 1;
    return tnn_data_done(d);
}

/* Images lie there: in folders of classes, or in those of a part, or in PART.rec. `*path` (free) of these. */
static bool images_find(tn_app *app, const char *folder, const char *part, char **path)
{
    char *record = tnn_format(app, "%s/%s.rec", folder, part),
         *below = tnn_format(app, "%s/%s", folder, part);
    const bool packed = record && !access(record, R_OK);
    const bool loose = !packed && below && (tnn_images_are_in(below) || tnn_images_are_in(folder));

    free(below);
    *path = packed ? record : loose ? tnn_strdup(app, folder) : NULL;
    if (!packed)
        free(record);
    return *path != NULL;
}

static tn_data *images_open(tn_app *app, const char *what, const char *name, const char *path,
                            const char *part, const tn_data_options *o)
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
    const char *none = NULL;

    return tnn_images_options(app, what, &i, &none) ? NULL : tnn_images_data(app, what, name, path, &i);
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

tn_data *tn_data_open_(tn_app *app, const char *name, const tn_data_options *options)
{
    tn_data_options o = {0};
    char what[96], *folder = NULL, *path = NULL;
    const char *part = NULL;
    tn_data *d = NULL;

    tnn_options_copy(&o, sizeof o, options);
    (void)snprintf(what, sizeof what, "tn_data_open at %.60s:%d", o.file ? o.file : "?", o.line);
    if (!tnn_ok(app))
        return NULL;
    if (!name) {
        (void)tnn_fail(app, TN_E_ARG, "%s: a name is missing", what);
        return NULL;
    }
    if (!part_find(app, name, &folder, &part))
        d = images_find(app, folder, part, &path) ? images_open(app, what, name, path, part, &o)
                                                  : idx_open(app, what, name, folder, part, TNN_CUT_OF(o));
    tn_free(folder);
    free(path);
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

tn_data *tn_data_arrays_(tn_app *app, const tn_arrays_options *options)
{
    tn_arrays_options o = {0};
    char what[96];
    tn_data *d;

    tnn_options_copy(&o, sizeof o, options);
    (void)snprintf(what, sizeof what, "tn_data_arrays at %.60s:%d", o.file ? o.file : "?", o.line);
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
