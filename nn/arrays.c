/*
 * Named arrays as data: .npz archives, .npy files side by side. Names say what an array is (x, y, data,
 * label) and which part it belongs to (x_train, test_labels).
 */
#include "own.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "tenon/nn_data.h"

typedef struct named {
    char base[64]; /* without the part */
    const char *part;
    tn_array *array; /* owned */
} named;

typedef struct nameds {
    named at[64];
    size_t count;
} nameds;

static const char *const label_words[] = {"y", "label", "labels", "target", "targets", NULL};
static const char *const input_words[] = {"x",        "data",  "image",  "images", "feature",
                                          "features", "input", "inputs", NULL};

/* "x_train", "test-labels", "train.images" → base and part; one that is neither's has no part. */
static void key_split(const char *key, named *out)
{
    static const char *const parts[] = {"train", "test"};
    size_t length;

    out->part = NULL;
    (void)snprintf(out->base, sizeof out->base, "%.63s", tnn_plain_name(key));
    for (size_t i = 0; i < 2 && !out->part; i++) {
        const size_t n = strlen(parts[i]);

        length = strlen(out->base);
        if (length > n + 1 && !strcasecmp(out->base + length - n, parts[i]) &&
            strchr("_-.", out->base[length - n - 1])) {
            out->base[length - n - 1] = '\0';
            out->part = parts[i];
        } else if (length > n + 1 && !strncasecmp(out->base, parts[i], n) && strchr("_-.", out->base[n])) {
            memmove(out->base, out->base + n + 1, length - n);
            out->part = parts[i];
        }
    }
}

static bool is_word(const char *base, const char *const *words)
{
    for (; *words; words++)
        if (!strcasecmp(base, *words))
            return true;
    return false;
}

/* [takes] array */
static tn_status named_add(tn_app *app, nameds *n, const char *key, tn_array *array, const char *path)
{
    if (n->count == sizeof n->at / sizeof *n->at) {
        tn_array_release(array);
        return tnn_fail(app, TN_E_UNSUPPORTED, "%s holds more than 64 arrays", path);
    }
    key_split(key, &n->at[n->count]);
    n->at[n->count++].array = array;
    return TN_OK;
}

static void nameds_fini(nameds *n)
{
    for (size_t i = 0; i < n->count; i++)
        tn_array_release(n->at[i].array);
}

static tn_status npz_read(tn_app *app, const char *path, nameds *out)
{
    tn_params *p = NULL;
    char head[2] = {0};
    FILE *file = fopen(path, "rbe");
    const bool other = file && fread(head, 1, 2, file) == 2 && memcmp(head, "PK", 2) != 0;
    tn_status st = TN_OK;

    if (file)
        (void)fclose(file);
    if (other)
        return tnn_fail(app, TN_E_FORMAT, "%s is no .npz: it does not begin as a zip archive does", path);
    st = tn_load(app->ctx, path, &p);
    for (size_t i = 0; !st && i < tn_params_count(p); i++) {
        tn_array *a = NULL;

        if (!(st = tn_params_at(p, i, &a)) && a)
            st = named_add(app, out, tn_params_name(p, i), a, path);
    }
    tn_params_destroy(p);
    return app->status ? app->status : tnn_check(app, st, "%s", path);
}

static tn_status npy_add(tn_app *app, const char *path, nameds *out)
{
    const char *name = tnn_path_name(path);
    char key[64];
    tn_array *a = NULL;

    (void)snprintf(key, sizeof key, "%.*s", (int)strnlen(name, strlen(name) - strlen(".npy")), name);
    if (tnn_check(app, tn_npy_load(app->ctx, path, &a), "%s", ""))
        return app->status;
    return named_add(app, out, key, a, path);
}

/* Of x_train.npy: y_train.npy, label_train.npy, … which of them is there. NULL: none. */
static char *labels_beside(tn_app *app, const char *path)
{
    const char *name = tnn_path_name(path);

    for (size_t w = 0; input_words[w]; w++) {
        const char *at = name;
        const size_t n = strlen(input_words[w]);

        while (*at && (strncasecmp(at, input_words[w], n) || (at > name && !strchr("_-.", at[-1])) ||
                       !strchr("_-.", at[n])))
            at++;
        for (size_t l = 0; *at && label_words[l]; l++) {
            char *beside = tnn_format(app, "%.*s%s%s", (int)(at - path), path, label_words[l], at + n);
            struct stat s;

            if (beside && !stat(beside, &s))
                return beside;
            free(beside);
        }
    }
    return NULL;
}

static tn_status folder_npy(tn_app *app, const char *folder, nameds *out)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;

    while (dir && !app->status && (e = readdir(dir)))
        if (e->d_name[0] != '.' && tnn_ends_with(e->d_name, ".npy")) {
            char *path = tnn_format(app, "%s/%s", folder, e->d_name);

            if (path)
                (void)npy_add(app, path, out);
            free(path);
        }
    if (dir)
        (void)closedir(dir);
    return app->status;
}

/* Bytes stay bytes until a batch needs them; (N, H, W) are images of one channel, as in IDX files. */
static tn_status bytes_keep(tn_app *app, tn_data *d, const char *name, tn_array *given)
{
    tn_array *whole = NULL;
    void *data = NULL;
    tnn_shape shape;
    tnn_field *f;
    tn_status st;

    if (tnn_shape_take(app, given, name, &shape) || !(f = tnn_field_add(app, d, name)))
        return app->status;
    if (shape.ndim < 1 || shape.dims[0] < 1 || shape.dims[0] > UINT32_MAX ||
        (d->field_count > 1 && shape.dims[0] != d->count))
        return tnn_fail(app, TN_E_SHAPE, "data \"%s\": \"%s\" has %lld samples%s", d->name, name,
                        (long long)(shape.ndim > 0 ? shape.dims[0] : 0),
                        d->field_count > 1 ? ", another number than the arrays beside it" : "");
    if (!(st = tn_array_to(app->ctx, given, NULL, &whole)) && !(st = tn_array_wait(whole)))
        st = tn_array_data(whole, &data);
    f->array = whole; /* moved */
    d->count = shape.dims[0];
    f->shape = shape;
    f->shape.dims[0] = 1;
    f->shape.dtype = TN_F32;
    f->sample = 1;
    for (int32_t i = 1; i < shape.ndim; i++)
        f->sample *= (size_t)shape.dims[i];
    f->bytes = data;
    if (f->shape.ndim == 3) {
        memmove(f->shape.dims + 2, f->shape.dims + 1, 2 * sizeof *f->shape.dims);
        f->shape.dims[f->shape.ndim++ - 2] = 1;
    }
    return f->sample
               ? tnn_check(app, st, "%s", name)
               : tnn_fail(app, TN_E_SHAPE, "data \"%s\": \"%s\" has samples of no numbers", d->name, name);
}

static bool is_whole(int32_t dtype)
{
    return dtype != TN_F16 && dtype != TN_F32 && dtype != TN_F64 && dtype != TN_BF16;
}

static tn_status input_add(tnn_loading *l, const char *name, tn_array *a)
{
    if (tn_array_dtype(a) == TN_U8)
        return bytes_keep(l->app, l->d, name, a);
    return tnn_field_array(l->app, l->d, name, a);
}

/* (N), or (N, K); (N, 1) is (N). */
tn_status tnn_label_add(tnn_loading *l, tn_array *a)
{
    tnn_field *f;

    l->whole_type = is_whole(tn_array_dtype(a));
    if (tnn_field_array(l->app, l->d, "label", a))
        return l->app->status;
    f = &l->d->fields[l->d->field_count - 1];
    if (f->sample == 1)
        f->shape.ndim = 1;
    return TN_OK;
}

/* The arrays of the part, those without a part if there are none of it. */
static tn_status arrays_take(tnn_loading *l, nameds *n)
{
    const named *inputs[TNN_VALUES_MAX] = {NULL}, *label = NULL;
    const bool several = l->q.about && l->q.about->input_count > 1;
    bool parts = false, test = false;
    const char *part = l->part;
    size_t count = 0;

    for (size_t i = 0; i < n->count; i++) {
        parts = parts || n->at[i].part;
        test =
            test || (n->at[i].part && !strcmp(n->at[i].part, "test") && is_word(n->at[i].base, label_words));
    }
    l->split = l->split && (!parts || !test);
    if (parts && !test)
        part = "train";
    for (size_t i = 0; i < n->count; i++) {
        const named *one = &n->at[i];

        if (parts && (!one->part || strcmp(one->part, part) != 0))
            continue;
        if (is_word(one->base, label_words) && !label)
            label = one;
        else if (count < TNN_VALUES_MAX - 1)
            inputs[count++] = one;
    }
    if (count > 1 && l->q.whole && l->q.about && l->q.about->input_count == 1) { /* one of them is meant */
        size_t k = 0;

        while (k < count && !is_word(inputs[k]->base, input_words))
            k++;
        inputs[0] = k < count ? inputs[k] : NULL;
        count = k < count;
    }
    if (!count || (!label && !l->q.whole))
        return tnn_fail(
            l->app, TN_E_FORMAT,
            "%s has no %s; arrays are called x and y, data and label, x_train, y_train, x_test, y_test",
            l->path, count ? "labels" : "samples");
    if (input_add(l, count == 1 && !several ? "data" : inputs[0]->base, inputs[0]->array) ||
        (label && !l->q.whole && tnn_label_add(l, label->array)))
        return l->app->status;
    for (size_t i = 1; i < count; i++)
        if (input_add(l, inputs[i]->base, inputs[i]->array))
            return l->app->status;
    return TN_OK;
}

tn_status tnn_npz_load(tnn_loading *l)
{
    nameds n = {.count = 0};

    if (!npz_read(l->app, l->path, &n))
        (void)arrays_take(l, &n);
    nameds_fini(&n);
    return l->app->status;
}

tn_status tnn_npy_load(tnn_loading *l)
{
    char *beside = labels_beside(l->app, l->path);
    nameds n = {.count = 0};
    struct stat s;

    if (!stat(l->path, &s) && S_ISDIR(s.st_mode))
        (void)folder_npy(l->app, l->path, &n);
    else if (!npy_add(l->app, l->path, &n) && beside)
        (void)npy_add(l->app, beside, &n);
    for (size_t i = 0; beside && i < n.count; i++)
        n.at[i].part = NULL; /* the file was named */
    if (!l->app->status)
        (void)arrays_take(l, &n);
    nameds_fini(&n);
    free(beside);
    return l->app->status;
}

/* ---- for programs ---- */

/* The array `key`; of a file of one array without a name, that one. Borrowed; NULL: failed. */
static tn_array *key_find(tn_app *app, const tn_params *p, const char *key, const char *path)
{
    const char *names[65] = {NULL};
    tn_array *a = NULL;

    if (!tn_params_get(p, key, &a) ||
        (tn_params_count(p) == 1 && !*tn_params_name(p, 0) && !tn_params_at(p, 0, &a)))
        return a;
    for (size_t i = 0; i < 64 && i < tn_params_count(p); i++)
        names[i] = tn_params_name(p, i);
    (void)tnn_unknown(app, path, key, names);
    return NULL;
}

tn_data *tn_data_from_npz_(tn_app *app, const char *path, const tn_npz_options *options)
{
    static const tn_npz_field usual[] = {{"data", "data"}, {"label", "label"}};
    tn_npz_options o = {0};
    tn_params *p = NULL;
    tn_data *d = NULL;
    char what[96];

    tnn_options_copy(&o, sizeof o, options);
    (void)snprintf(what, sizeof what, "tn_data_from_npz at %.60s:%d", o.file ? o.file : "?", o.line);
    if (!tnn_ok(app))
        return NULL;
    if (!path || !*path) {
        (void)tnn_fail(app, TN_E_ARG, "%s: a path is missing", what);
        return NULL;
    }
    if (!o.fields[0].name)
        memcpy(o.fields, usual, sizeof usual);
    if (!(d = tnn_data_make(app, what, path, TNN_CUT_OF(o))) || !(d->files[0] = tnn_strdup(app, path)) ||
        tnn_check(app, tn_load(app->ctx, path, &p), "%s", path))
        return NULL;
    for (size_t i = 0; i < TNN_VALUES_MAX && o.fields[i].name && !app->status; i++) {
        const char *key = o.fields[i].key ? o.fields[i].key : o.fields[i].name;
        tn_array *a = key_find(app, p, key, path);

        if (a && tn_array_dtype(a) == TN_U8 && i != 1)
            (void)bytes_keep(app, d, o.fields[i].name, a);
        else if (a)
            (void)tnn_field_array(app, d, o.fields[i].name, a);
        tn_array_release(a);
    }
    tn_params_destroy(p);
    return app->status ? NULL : tnn_data_done_ahead(d, o.threads, o.prefetch);
}
