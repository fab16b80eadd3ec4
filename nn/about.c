/*
 * What is kept of the data with a model, as JSON: PREFIX-data.json beside PREFIX-symbol.json.
 *
 * {"version": 1, "task": "classification", "classes": 3, "names": ["setosa", …], "label": {"name": "kind",
 * "column": 4, "mean": 0, "deviation": 1}, "columns": ["petal", …], "split": {"share": 0.2, "seed": 0},
 * "inputs": [{"name": "data", "shape": [4], "divisor": 0, "mean": [ … ], "deviation": [ … ]}]}
 */
#include "about.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_BYTES_MAX ((off_t)256 << 20)
#define COLUMNS_MAX 131072 /* as in a CSV */

static const char *const tasks[] = {"", "classification", "regression"};

/* ---- lists of texts ---- */

void tnn_texts_fini(tnn_texts *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->at[i]);
    free(t->at);
    *t = (tnn_texts){NULL, 0, 0};
}

tn_status tnn_texts_add(tn_app *app, tnn_texts *t, const char *text)
{
    if (t->count == t->room) {
        const size_t room = t->room ? 2 * t->room : 16;
        char **grown = realloc(t->at, room * sizeof *grown);

        if (!grown)
            return tnn_no_memory(app);
        t->at = grown;
        t->room = room;
    }
    if (!(t->at[t->count] = tnn_strdup(app, text)))
        return app->status;
    t->count++;
    return TN_OK;
}

int64_t tnn_texts_find(const tnn_texts *t, const char *text)
{
    for (size_t i = 0; i < t->count; i++)
        if (!strcmp(t->at[i], text))
            return (int64_t)i;
    return -1;
}

/* ---- life ---- */

tnn_about *tnn_about_make(tn_app *app)
{
    tnn_about *a = tnn_alloc(app, 1, sizeof *a);

    if (a) {
        a->references = 1;
        a->label_column = -1;
        a->deviation = 1;
    }
    return a;
}

tnn_about *tnn_about_keep(tnn_about *a)
{
    if (a)
        a->references++;
    return a;
}

void tnn_about_drop(tnn_about *a)
{
    if (!a || --a->references)
        return;
    for (size_t i = 0; i < a->input_count; i++) {
        free(a->inputs[i].name);
        free(a->inputs[i].mean);
        free(a->inputs[i].deviation);
    }
    tnn_texts_fini(&a->names);
    tnn_texts_fini(&a->columns);
    free(a->label);
    free(a);
}

/* ---- writing ---- */

static json_t *texts_json(const tnn_texts *t)
{
    json_t *list = json_array();

    for (size_t i = 0; i < t->count; i++)
        (void)json_array_append_new(list, json_string(t->at[i]));
    return list;
}

static json_t *numbers_json(const double *x, int64_t count)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < count; i++)
        (void)json_array_append_new(list, json_real(x[i]));
    return list;
}

static json_t *input_json(const tnn_input *in)
{
    json_t *shape = json_array();

    for (int32_t i = 0; i < in->shape.ndim; i++)
        (void)json_array_append_new(shape, json_integer((json_int_t)in->shape.dims[i]));
    return json_pack("{s:s, s:o, s:f, s:o, s:o}", "name", in->name, "shape", shape, "divisor", in->divisor,
                     "mean", numbers_json(in->mean, in->count), "deviation",
                     numbers_json(in->deviation, in->count));
}

tn_status tnn_about_write(tn_app *app, const tnn_about *a, const char *path)
{
    json_t *inputs = json_array(), *o = NULL, *label;
    FILE *file = NULL;
    char *aside = tnn_format(app, "%s.tmp", path);
    bool ok;

    for (size_t i = 0; i < a->input_count; i++)
        (void)json_array_append_new(inputs, input_json(&a->inputs[i]));
    label = json_pack("{s:s, s:I, s:f, s:f}", "name", a->label ? a->label : "", "column",
                      (json_int_t)a->label_column, "mean", a->mean, "deviation", a->deviation);
    o = json_pack("{s:i, s:s, s:I, s:o, s:o, s:o, s:{s:f, s:I}, s:o}", "version", 1, "task", tasks[a->task],
                  "classes", (json_int_t)a->classes, "names", texts_json(&a->names), "label", label,
                  "columns", texts_json(&a->columns), "split", "share", a->share, "seed", (json_int_t)a->seed,
                  "inputs", inputs);
    file = aside && o ? fopen(aside, "we") : NULL;
    ok = file && !json_dumpf(o, file, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) && fputc('\n', file) != EOF;
    if (file)
        ok = !fclose(file) && ok;
    if (aside && (!ok || rename(aside, path))) {
        const int error = errno;

        (void)remove(aside);
        (void)tnn_fail(app, tnn_status_of(error), "%s cannot be written: %s", path, strerror(error));
    }
    json_decref(o);
    free(aside);
    return app->status;
}

/* ---- reading: another program may have written it ---- */

/* A finite number within bounds. */
static bool number_take(const json_t *o, const char *key, double least, double most, double *out)
{
    const json_t *v = json_object_get(o, key);

    if (!json_is_number(v))
        return false;
    *out = json_number_value(v);
    return *out >= least && *out <= most; /* not for NaN */
}

static bool whole_take(const json_t *o, const char *key, int64_t least, int64_t most, int64_t *out)
{
    const json_t *v = json_object_get(o, key);

    if (!json_is_integer(v))
        return false;
    *out = (int64_t)json_integer_value(v);
    return *out >= least && *out <= most;
}

static bool texts_take(tn_app *app, const json_t *list, size_t most, tnn_texts *out)
{
    const size_t count = json_array_size(list);

    if (!json_is_array(list) || count > most)
        return false;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (!text || strlen(text) > 255 || tnn_texts_add(app, out, text))
            return false;
    }
    return true;
}

static bool numbers_take(tn_app *app, const json_t *list, int64_t count, bool positive, double **out)
{
    if (!json_is_array(list) || (int64_t)json_array_size(list) != count)
        return false;
    if (!count)
        return true;
    if (!(*out = tnn_alloc(app, (size_t)count, sizeof **out)))
        return false;
    for (int64_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(list, (size_t)i);

        (*out)[i] = json_number_value(v);
        if (!json_is_number(v) || !isfinite((*out)[i]) || (positive && !((*out)[i] > 0)))
            return false;
    }
    return true;
}

static bool input_take(tn_app *app, const json_t *o, tnn_input *in)
{
    const json_t *shape = json_object_get(o, "shape");
    const char *name = json_string_value(json_object_get(o, "name"));
    int64_t count = 1;

    if (!name || !tnn_name_ok(name) || !json_is_array(shape) || json_array_size(shape) >= TNN_NDIM_MAX ||
        !(in->name = tnn_strdup(app, name)) || !number_take(o, "divisor", 0, 1e9, &in->divisor))
        return false;
    in->shape = tnn_shape_of(0, NULL);
    for (size_t i = 0; i < json_array_size(shape); i++) {
        const int64_t dim = (int64_t)json_integer_value(json_array_get(shape, i));

        if (dim < 1 || dim > INT32_MAX || count > INT32_MAX / dim)
            return false;
        count *= dim;
        in->shape.dims[in->shape.ndim++] = dim;
    }
    in->count = json_array_size(json_object_get(o, "mean")) ? count : 0;
    return numbers_take(app, json_object_get(o, "mean"), in->count, false, &in->mean) &&
           numbers_take(app, json_object_get(o, "deviation"), in->count, true, &in->deviation);
}

static bool about_take(tn_app *app, const json_t *o, tnn_about *a)
{
    const json_t *label = json_object_get(o, "label"), *split = json_object_get(o, "split"),
                 *inputs = json_object_get(o, "inputs");
    const char *task = json_string_value(json_object_get(o, "task")),
               *name = json_string_value(json_object_get(label, "name"));
    int64_t seed = 0, version = 0;

    for (a->task = 2; a->task > 0 && (!task || strcmp(task, tasks[a->task]) != 0);)
        a->task--;
    if (!a->task || !name || !whole_take(o, "version", 1, 1, &version) ||
        !whole_take(o, "classes", 0, 16777216, &a->classes) ||
        !texts_take(app, json_object_get(o, "names"), TNN_CLASSES_MAX, &a->names) ||
        !texts_take(app, json_object_get(o, "columns"), COLUMNS_MAX, &a->columns) ||
        !whole_take(label, "column", -1, COLUMNS_MAX, &a->label_column) ||
        !number_take(label, "mean", -1e300, 1e300, &a->mean) ||
        !number_take(label, "deviation", 1e-300, 1e300, &a->deviation) ||
        !number_take(split, "share", 0, 0.99, &a->share) ||
        !whole_take(split, "seed", INT64_MIN, INT64_MAX, &seed) ||
        (a->names.count && (int64_t)a->names.count != a->classes))
        return false;
    a->seed = (uint64_t)seed;
    if (*name && !(a->label = tnn_strdup(app, name)))
        return false;
    if (!json_is_array(inputs) || !json_array_size(inputs) || json_array_size(inputs) > TNN_VALUES_MAX)
        return false;
    for (size_t i = 0; i < json_array_size(inputs); i++) {
        if (a->input_count++, !input_take(app, json_array_get(inputs, i), &a->inputs[i]))
            return false;
        for (size_t k = 0; k < i; k++)
            if (!strcmp(a->inputs[i].name, a->inputs[k].name))
                return false;
    }
    return true;
}

tnn_about *tnn_about_read(tn_app *app, const char *path)
{
    FILE *file = fopen(path, "re");
    tnn_about *a = NULL;
    json_t *o = NULL;
    json_error_t error = {.text = "this is no regular file"};
    struct stat s;

    if (!file) {
        (void)tnn_fail_open(app, path);
        return NULL;
    }
    if (!fstat(fileno(file), &s) && S_ISREG(s.st_mode) && s.st_size <= FILE_BYTES_MAX)
        o = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    (void)fclose(file);
    if (!o)
        (void)tnn_fail(app, TN_E_FORMAT, "%s:%d: %s", path, error.line, error.text);
    else if ((a = tnn_about_make(app)) && !about_take(app, o, a))
        (void)tnn_fail(app, TN_E_FORMAT, "%s does not describe the data of a model", path);
    json_decref(o);
    if (!app->status)
        return a;
    tnn_about_drop(a);
    return NULL;
}

/* ---- of data ---- */

tn_status tnn_about_of(tn_app *app, tn_data *d)
{
    tnn_about *a = tnn_about_make(app);
    const bool label = d->field_count > 1;

    if (!a)
        return app->status;
    a->task = TN_TASK_CLASSES;
    a->classes = d->classes;
    for (int64_t k = 0; tnn_names_at(d->names, k) && !app->status; k++)
        (void)tnn_texts_add(app, &a->names, tnn_names_at(d->names, k));
    if ((int64_t)a->names.count != a->classes)
        tnn_texts_fini(&a->names);
    for (size_t i = 0; i < (label ? 1 : d->field_count) && !app->status; i++) {
        tnn_input *in = &a->inputs[a->input_count++];
        const tnn_field *f = &d->fields[i];

        in->shape = tnn_shape_of(f->shape.ndim - 1, f->shape.dims + 1);
        in->divisor = f->bytes || f->made ? (double)f->divisor : 0;
        in->name = tnn_strdup(app, f->name);
    }
    d->about = a;
    return app->status;
}

tn_status tnn_about_fits(tn_app *app, const tnn_about *a, const tn_data *d)
{
    char takes[TNN_SHAPE_TEXT], has[TNN_SHAPE_TEXT];

    for (size_t i = 0; i < a->input_count; i++) {
        const tnn_input *in = &a->inputs[i];
        const int at = tnn_data_meant(d, a->input_count, in->name);
        const tnn_shape *s = at < 0 ? NULL : &d->fields[at].shape;

        if (!s)
            return tnn_fail(app, TN_E_KEY, "data \"%s\": the model takes an input \"%s\", which is not there",
                            d->name, in->name);
        if (s->ndim != in->shape.ndim + 1 ||
            memcmp(s->dims + 1, in->shape.dims, (size_t)in->shape.ndim * sizeof *s->dims))
            return tnn_fail(app, TN_E_SHAPE, "data \"%s\": the model takes %s, the data is %s", d->name,
                            tnn_shape_text(in->shape.ndim, in->shape.dims, takes),
                            tnn_shape_text(s->ndim - 1, s->dims + 1, has));
    }
    return TN_OK;
}

/* ---- for programs ---- */

int32_t tn_data_task(const tn_data *d)
{
    return tnn_data_app(d) && d->about ? d->about->task : tn_data_classes(d) ? TN_TASK_CLASSES : TN_TASK_NONE;
}

int tn_data_about_save(const tn_data *d, const char *path)
{
    tn_app *app = tnn_data_app(d);

    if (!app)
        return 0;
    if (!path)
        return !tnn_fail(app, TN_E_ARG, "tn_data_about_save: path is NULL");
    if (!d->about)
        return !tnn_fail(app, TN_E_ARG, "data \"%s\" was made by a program, which knows more about it",
                         d->name);
    return !tnn_about_write(app, d->about, path);
}

void tn_data_units(const tn_data *d, double *mean, double *deviation)
{
    const bool known = tnn_data_app(d) && d->about;

    if (mean)
        *mean = known ? d->about->mean : 0;
    if (deviation)
        *deviation = known ? d->about->deviation : 1;
}

const char *tn_data_note(const tn_data *d)
{
    return tnn_data_app(d) && d->note ? d->note : "";
}

int tn_data_field_at(const tn_data *d, size_t index, tn_field_info *out)
{
    tn_field_info i = {.struct_size = sizeof i, .dtype = TN_F32};
    const tnn_field *f;
    uint32_t size;

    if (!tnn_data_app(d) || !out || !(size = out->struct_size) || index >= d->field_count)
        return 0;
    f = &d->fields[index];
    i.name = f->name;
    i.ndim = f->shape.ndim - 1;
    if (f->bytes || (d->images && !index))
        i.dtype = TN_U8;
    memcpy(i.shape, f->shape.dims + 1, (size_t)i.ndim * sizeof *i.shape);
    i.struct_size = size < sizeof i ? size : (uint32_t)sizeof i;
    memcpy(out, &i, i.struct_size);
    return 1;
}

const char *tn_data_column(const tn_data *d, int64_t index)
{
    return tnn_data_app(d) && d->about && index >= 0 && index < (int64_t)d->about->columns.count
               ? d->about->columns.at[index]
               : NULL;
}
