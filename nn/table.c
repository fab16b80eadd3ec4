/*
 * CSV as features and labels: a header names the columns, one column has the labels, all others are numbers.
 * Texts in the column of labels are names of classes. A model's columns are found again by their names, so
 * that another order, or a column more, does not matter.
 */
#include "about.h"

#include <stdlib.h>
#include <string.h>

typedef struct table {
    tn_app *app;
    const char *path;
    const tnn_asked *q;
    tn_csv_words words;
    tnn_texts heads;   /* fields of the first line */
    tnn_texts classes; /* as they came up */
    size_t *slots;     /* hash table of classes, number + 1 */
    size_t slot_count;
    bool header;
    int64_t label, columns;      /* column of the labels; -1: there is none */
    bool texts, numbers, mapped; /* what the labels are; a model's names are given */
} table;

static tn_status TNN_PRINTF(4, 5)
    place_fail(const table *t, uint64_t line, int64_t column, const char *format, ...)
{
    char why[256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(why, sizeof why, format, args);
    va_end(args);
    return tnn_fail(t->app, TN_E_FORMAT, "%s:%llu:%lld: %s", t->path, (unsigned long long)line,
                    (long long)column + 1, why);
}

static const char not_utf8[] = "this is no text in UTF-8: save the file as UTF-8";

/* ---- the first line ---- */

static tn_status on_first(void *arg, uint64_t column, const char *text)
{
    table *t = arg;

    if (tnn_is_printable(text))
        return tnn_texts_add(t->app, &t->heads, text);
    return place_fail(t, 1, (int64_t)column, "%s",
                      strchr(text, '\r')
                          ? "a carriage return alone ends no line: save the file with line ends of LF"
                      : tnn_is_utf8(text) ? "a control character in the first line"
                                          : not_utf8);
}

static int by_name(const void *a, const void *b)
{
    char **x = *(char **const *)a, **y = *(char **const *)b;
    const int order = strcmp(*x, *y);

    return order ? order : (x > y) - (x < y);
}

/* Columns are found by their names. */
static tn_status names_differ(table *t)
{
    char ***sorted = tnn_alloc(t->app, t->heads.count, sizeof *sorted);

    for (size_t i = 0; sorted && i < t->heads.count; i++)
        sorted[i] = &t->heads.at[i];
    if (sorted)
        qsort(sorted, t->heads.count, sizeof *sorted, by_name);
    for (size_t i = 1; sorted && i < t->heads.count && !t->app->status; i++)
        if (**sorted[i] && !strcmp(*sorted[i], *sorted[i - 1]))
            (void)place_fail(t, 1, sorted[i] - t->heads.at,
                             "column %td is called \"%.64s\", too: give each column a name of its own",
                             sorted[i - 1] - t->heads.at + 1, *sorted[i]);
    free(sorted);
    return t->app->status;
}

/* The name of the header, or a number from 1, from the end where it is below 0. */
static tn_status label_find(table *t, const char *label)
{
    char *end = NULL;
    long long number = strtoll(label, &end, 10);

    t->label = t->header ? tnn_texts_find(&t->heads, label) : -1;
    if (t->label >= 0)
        return TN_OK;
    if (*label && !*end && number && number <= t->columns && number >= -t->columns) {
        t->label = number > 0 ? number - 1 : t->columns + number;
        return TN_OK;
    }
    if (t->header && (!*label || *end)) {
        const char *names[64] = {NULL};

        for (size_t i = 0; i < 63 && i < t->heads.count; i++)
            names[i] = t->heads.at[i];
        return tnn_unknown(t->app, "column", label, names);
    }
    return tnn_fail(t->app, TN_E_KEY, "%s: data.label is \"%.60s\", but the file has %lld columns and %s",
                    t->path, label, (long long)t->columns, t->header ? "none of that name" : "no header");
}

/* Nobody said: a column of a usual name, else the last one. */
static void label_guess(table *t)
{
    static const char *const usual[] = {"label", "target", "class", "y"};

    t->label = -1;
    for (size_t i = 0; t->header && t->label < 0 && i < sizeof usual / sizeof *usual; i++)
        for (size_t k = 0; t->label < 0 && k < t->heads.count; k++)
            if (!strcasecmp(t->heads.at[k], usual[i]))
                t->label = (int64_t)k;
    if (t->label < 0)
        t->label = t->columns - 1;
}

static int64_t numbers_of(const tnn_shape *s)
{
    int64_t numbers = 1;

    for (int32_t i = 0; i < s->ndim; i++)
        numbers *= s->dims[i];
    return numbers;
}

/* Of a model: its column by name; without names where it was, if there is a column more than features. */
static tn_status label_again(table *t)
{
    const tnn_about *a = t->q->about;
    const int64_t features = a->columns.count ? (int64_t)a->columns.count : numbers_of(&a->inputs[0].shape);
    char takes[TNN_SHAPE_TEXT];

    if (!(t->header && a->columns.count) && t->columns != features && t->columns != features + 1)
        return tnn_fail(t->app, TN_E_SHAPE, "%s: the model takes %s, the data is %lld", t->path,
                        tnn_shape_text(a->inputs[0].shape.ndim, a->inputs[0].shape.dims, takes),
                        (long long)t->columns);
    t->label = t->header && a->label ? tnn_texts_find(&t->heads, a->label) : -1;
    if (!(t->header && a->label) && t->columns == features + 1)
        t->label = a->label_column >= 0 && a->label_column < t->columns ? a->label_column : t->columns - 1;
    if (t->label < 0 && !t->q->whole)
        return tnn_fail(t->app, TN_E_KEY, "%s has no column \"%s\" with the labels", t->path,
                        a->label ? a->label : "label");
    if (t->header && a->columns.count > (size_t)t->columns)
        return tnn_fail(t->app, TN_E_SHAPE, "%s: the model takes %zu columns, the data is %lld", t->path,
                        a->columns.count, (long long)t->columns);
    for (size_t i = 0; t->header && i < a->columns.count; i++)
        if (tnn_texts_find(&t->heads, a->columns.at[i]) < 0)
            return tnn_fail(t->app, TN_E_KEY, "%s has no column \"%s\", which the model takes", t->path,
                            a->columns.at[i]);
    return TN_OK;
}

static tn_status on_head(void *arg, uint64_t columns, int32_t header)
{
    table *t = arg;
    tn_status st = TN_OK;

    t->header = header != 0;
    t->columns = (int64_t)columns;
    if (header && names_differ(t))
        return t->app->status;
    if (t->q->about)
        st = label_again(t);
    else if (*t->q->label)
        st = label_find(t, t->q->label);
    else
        label_guess(t);
    t->words.column = t->label;
    return st;
}

/* ---- labels ---- */

/* The class of this name; a new one is added. */
static tn_status class_find(table *t, const char *text, size_t *out)
{
    const size_t mask = t->slot_count - 1;
    size_t at = tnn_hash(text) & mask;

    for (; t->slots[at]; at = (at + 1) & mask)
        if (!strcmp(t->classes.at[t->slots[at] - 1], text)) {
            *out = t->slots[at] - 1;
            return TN_OK;
        }
    if (t->classes.count == TNN_CLASSES_MAX)
        return tnn_fail(t->app, TN_E_UNSUPPORTED, "%s: more than %d different labels are texts", t->path,
                        TNN_CLASSES_MAX);
    if (tnn_texts_add(t->app, &t->classes, text))
        return t->app->status;
    *out = t->classes.count - 1;
    t->slots[at] = t->classes.count;
    return TN_OK;
}

static tn_status on_word(void *arg, const char *text, int32_t number, uint64_t line, float *out)
{
    table *t = arg;
    size_t index = 0;
    tn_status st;

    if (t->q->whole) { /* labels do not count */
        *out = 0;
        return TN_OK;
    }
    if (t->mapped) { /* a name that the model has */
        int64_t known = tnn_texts_find(&t->classes, text);
        char same[32];

        (void)snprintf(same, sizeof same, "%.9g", number ? (double)*out : 0.0);
        if (known < 0 && number) /* 1.0 for 1 */
            known = tnn_texts_find(&t->classes, same);
        if (known < 0)
            return place_fail(t, line, t->label, "\"%.64s\" is none of the model's classes", text);
        *out = (float)known;
        return TN_OK;
    }
    if (number && t->texts)
        return place_fail(t, line, t->label, "%s is a number, but the labels above it are texts", text);
    if (!number && t->numbers)
        return place_fail(t, line, t->label, "\"%s\" is no number, but the labels above it are", text);
    t->numbers = t->numbers || number;
    t->texts = !t->numbers;
    if (number)
        return TN_OK;
    if (strlen(text) >= 64 || !tnn_is_printable(text))
        return place_fail(t, line, t->label, "%s",
                          tnn_is_utf8(text) ? "a class's name has at most 63 bytes and no control characters"
                                            : not_utf8);
    st = class_find(t, text, &index);
    *out = (float)index;
    return st;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Classes in the order of their names. */
static tn_status classes_sort(table *t, tnn_about *a, float *labels, int64_t count)
{
    float *rank = tnn_alloc(t->app, t->classes.count, sizeof *rank);

    for (size_t i = 0; rank && i < t->classes.count; i++)
        (void)tnn_texts_add(t->app, &a->names, t->classes.at[i]);
    if (!t->app->status) {
        qsort(a->names.at, a->names.count, sizeof *a->names.at, by_text);
        for (size_t i = 0; i < t->classes.count; i++) {
            const char *const *at =
                bsearch(&t->classes.at[i], a->names.at, a->names.count, sizeof *a->names.at, by_text);

            rank[i] = (float)((char **)(uintptr_t)at - a->names.at);
        }
        for (int64_t i = 0; i < count; i++)
            labels[i] = rank[(size_t)labels[i]];
        a->classes = (int64_t)a->names.count;
    }
    free(rank);
    return t->app->status;
}

/* ---- features ---- */

/* Which column feature `i` is; all but the labels, or those that the model knows by name. */
static tn_status features_find(table *t, int64_t **columns, int64_t *count)
{
    const tnn_about *a = t->q->about;
    const bool named = a && a->columns.count && t->header;

    *count = 0;
    if (!(*columns = tnn_alloc(t->app, (size_t)t->columns, sizeof **columns)))
        return t->app->status;
    for (int64_t i = 0; !named && i < t->columns; i++)
        if (i != t->label)
            (*columns)[(*count)++] = i;
    for (size_t i = 0; named && i < a->columns.count; i++)
        (*columns)[(*count)++] =
            tnn_texts_find(&t->heads, a->columns.at[i]); /* label_again() has seen them */
    return *count ? TN_OK
                  : tnn_fail(t->app, TN_E_FORMAT, "%s has no column beside that of the labels", t->path);
}

float *tnn_field_room(tn_app *app, tnn_field *f, int64_t count)
{
    f->own = tnn_alloc(app, (size_t)count * f->sample, sizeof(float));
    f->bytes = NULL;
    return (float *)(uintptr_t)(f->floats = f->own);
}

/* data.shape, or the model's, if it has as many numbers; else (features). */
static void shape_choose(const tnn_asked *q, int64_t features, tnn_shape *out)
{
    const tnn_shape *wanted = q->shape.ndim ? &q->shape : q->about ? &q->about->inputs[0].shape : NULL;

    *out = tnn_shape_of(2, (const int64_t[]){1, features});
    if (!wanted || numbers_of(wanted) != features)
        return;
    out->ndim = wanted->ndim + 1;
    memcpy(out->dims + 1, wanted->dims, (size_t)wanted->ndim * sizeof *wanted->dims);
}

static tn_status fields_fill(table *t, tn_data *d, tnn_about *a, const float *rows)
{
    tnn_field *x = tnn_field_add(t->app, d, "data"), *y = NULL;
    int64_t *columns = NULL, count = 0;
    float *to = NULL, *labels = NULL;

    if (!x || features_find(t, &columns, &count))
        goto cleanup;
    if (t->q->shape.ndim && !t->q->about && numbers_of(&t->q->shape) != count) {
        (void)tnn_fail(t->app, TN_E_SHAPE,
                       "%s: data.shape has %lld numbers, a row has %lld beside the labels", t->path,
                       (long long)numbers_of(&t->q->shape), (long long)count);
        goto cleanup;
    }
    shape_choose(t->q, count, &x->shape);
    x->sample = (size_t)count;
    if (!(to = tnn_field_room(t->app, x, d->count)))
        goto cleanup;
    for (int64_t i = 0; i < d->count; i++)
        for (int64_t k = 0; k < count; k++)
            *to++ = rows[i * t->columns + columns[k]];
    for (int64_t k = 0; t->header && k < count && !t->app->status; k++)
        (void)tnn_texts_add(t->app, &a->columns, t->heads.at[columns[k]]);
    if (t->label < 0 || t->q->whole || t->app->status || !(y = tnn_field_add(t->app, d, "label")))
        goto cleanup;
    y->shape = tnn_shape_of(1, (const int64_t[]){1});
    y->sample = 1;
    if (!(labels = tnn_field_room(t->app, y, d->count)))
        goto cleanup;
    for (int64_t i = 0; i < d->count; i++)
        labels[i] = rows[i * t->columns + t->label];
    if (t->texts)
        (void)classes_sort(t, a, labels, d->count);

cleanup:
    free(columns);
    return t->app->status;
}

static tn_status classes_begin(table *t)
{
    const tnn_about *a = t->q->about;

    t->slot_count = 4 * TNN_CLASSES_MAX;
    t->slots = tnn_alloc(t->app, t->slot_count, sizeof *t->slots);
    t->mapped = a && a->names.count;
    for (size_t i = 0; t->mapped && i < a->names.count && !t->app->status; i++)
        (void)tnn_texts_add(t->app, &t->classes, a->names.at[i]);
    return t->app->status;
}

/* What to do about a field that is no number, by how the reader's message of it ends: tests/io/test_csv.c
 * holds it to these words. "": nobody knows. */
static void advice_find(const table *t, const char *text, char *out, size_t bytes)
{
    static const char *const absent[] = {"NA", "N/A", "na", "n/a", "NULL", "null", "None", "?", "-"};
    static const char fill[] = "; fill it in, or leave the row out", no_number[] = "\" is no number";
    const char *end, *field;

    out[0] = '\0';
    if (tnn_ends_with(text, ": the field is empty: a value is missing"))
        (void)snprintf(out, bytes, "%s", fill);
    if (!tnn_ends_with(text, no_number))
        return;
    end = text + strlen(text) - strlen(no_number);
    for (field = end; field > text && field[-1] != '"'; field--)
        ;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
        if ((size_t)(end - field) == strlen(absent[i]) && !strncmp(field, absent[i], (size_t)(end - field))) {
            (void)snprintf(out, bytes, "%s", fill);
            return;
        }
    if (memchr(field, ',', (size_t)(end - field)))
        (void)snprintf(out, bytes, "; a number has a decimal point, and no comma");
    else if (t->label >= 0 && (size_t)t->label < t->heads.count)
        (void)snprintf(out, bytes, "; only the labels may be texts, here column \"%.64s\" (data.label)",
                       t->heads.at[t->label]);
    else if (t->label >= 0)
        (void)snprintf(out, bytes, "; only the labels may be texts, here column %lld (data.label)",
                       (long long)t->label + 1);
}

/* What the reader of the file said, and advice. */
static tn_status rows_check(const table *t, tn_status st)
{
    char advice[160];

    if (st != TN_E_FORMAT || t->app->status)
        return tnn_check(t->app, st, "%s", "");
    advice_find(t, tn_error_text(), advice, sizeof advice);
    return tnn_fail(t->app, st, "%s%s", tn_error_text(), advice);
}

tn_status tnn_table_read(tn_app *app, tn_data *d, const char *path, const tnn_asked *q, tnn_about *a)
{
    table t = {.app = app,
               .path = path,
               .q = q,
               .words = {.struct_size = sizeof t.words,
                         .header = !strcmp(q->header, "yes")  ? 1
                                   : !strcmp(q->header, "no") ? -1
                                                              : 0,
                         .column = -1,
                         .first = on_first,
                         .head = on_head,
                         .word = on_word}};
    const int64_t *shape = NULL;
    tn_array *rows = NULL;
    void *data = NULL;
    int32_t ndim = 0;
    tn_status st = TN_OK;

    t.words.arg = &t;
    if (!classes_begin(&t))
        st = tn_csv_load_words(app->ctx, path, q->text, q->bytes, &t.words, &rows);
    if (!app->status && !rows_check(&t, st) &&
        !tnn_check(app, tn_array_shape(rows, &ndim, &shape), "%s", path) &&
        !tnn_check(app, tn_array_data(rows, &data), "%s", path)) {
        d->count = shape[0];
        a->label_column = t.label;
        if (t.label >= 0 && t.header)
            a->label = tnn_strdup(app, t.heads.at[t.label]);
        (void)fields_fill(&t, d, a, data);
    }
    tn_array_release(rows);
    tnn_texts_fini(&t.heads);
    tnn_texts_fini(&t.classes);
    free(t.slots);
    return app->status;
}
