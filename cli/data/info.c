/*
 * tenon data info: what a data set is, as a training would read it: both parts, shapes, classes with how many
 * samples, mean and deviation of the numbers as the file has them, images that cannot be read.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "tenon/nn_data.h"

#define PARTS 2
#define COLUMNS_SHOWN 20 /* of a table, without --json */
#define CLASSES_SHOWN 50

typedef struct measures { /* of a column, or of all numbers */
    double count, mean, squares, least, most;
} measures;

typedef struct part {
    const char *name;
    tn_data *data;
    char error[512];                /* why there is none; "" */
    measures all, *columns;         /* of the first field; `columns`: of a table */
    int64_t column_count, *samples; /* of each class */
    measures labels;                /* of a regression */
} part;

static void measure(measures *m, double x)
{
    const double d = x - m->mean;

    m->count++;
    m->mean += d / m->count;
    m->squares += d * (x - m->mean);
    m->least = m->count > 1 ? fmin(m->least, x) : x;
    m->most = m->count > 1 ? fmax(m->most, x) : x;
}

static double deviation_of(const measures *m)
{
    return m->count > 0 ? sqrt(m->squares / m->count) : NAN;
}

/* ---- reading ---- */

static bool batch_measure(tn_app *app, part *p, const tn_batch *b, int64_t each, float *x)
{
    const int64_t classes = tn_data_classes(p->data);
    double mean, deviation;

    if (!tn_app_read(app, b->x, (size_t)(b->n * each), x))
        return false;
    for (int64_t i = 0; i < b->n * each; i++) {
        measure(&p->all, (double)x[i]);
        if (p->columns)
            measure(&p->columns[i % each], (double)x[i]);
    }
    tn_data_units(p->data, &mean, &deviation);
    if (!b->y || (!classes && tn_data_task(p->data) != TN_TASK_NUMBERS))
        return true;
    if (!tn_app_read(app, b->y, (size_t)b->n, x))
        return false;
    for (int64_t i = 0; i < b->n; i++) {
        if (classes && x[i] >= 0 && x[i] < (float)classes)
            p->samples[(int64_t)x[i]]++;
        if (!classes)
            measure(&p->labels, (double)x[i] * deviation + mean);
    }
    return true;
}

static bool part_measure(tn_app *app, part *p)
{
    tn_field_info field = {.struct_size = TN_SIZE(tn_field_info)};
    int64_t each = 1, batch;
    bool ok = true;
    tn_batch b;
    float *x;

    if (!tn_data_field_at(p->data, 0, &field))
        return false;
    for (int32_t i = 0; i < field.ndim; i++)
        each *= field.shape[i];
    batch = tn_data_count(p->data) < 256 ? tn_data_count(p->data) : 256;
    p->column_count = field.ndim == 1 ? each : 0;
    p->columns = p->column_count ? calloc((size_t)each, sizeof *p->columns) : NULL;
    p->samples = calloc((size_t)tn_data_classes(p->data) + 1, sizeof *p->samples);
    x = malloc((size_t)(batch * each + batch) * sizeof *x);
    if (!x || !p->samples || (p->column_count && !p->columns))
        ok = !tn_app_fail(app, TN_E_NOMEM, "out of memory");
    while (ok && tn_data_next(p->data, &b))
        ok = batch_measure(app, p, &b, each, x);
    free(x);
    return ok && tn_app_ok(app);
}

static void part_fini(part *p)
{
    free(p->columns);
    free(p->samples);
    p->columns = NULL;
    p->samples = NULL;
}

/* `like`: the part to train on; NULL. */
static bool part_read(tn_app *app, const char *name, tn_data *like, part *p)
{
    char *whole = cli_format("%s:%s", name, p->name);

    p->data = whole ? tn_data_open(app, whole, .batch = 256, .scale = "none", .like = like) : NULL;
    free(whole);
    if (p->data && part_measure(app, p))
        return true;
    part_fini(p);
    p->data = NULL;
    return false;
}

/* A part that is not there is no error as long as the other one is. */
static void part_open(tn_app *app, const char *name, tn_data *like, part *p)
{
    if (part_read(app, name, like, p))
        return;
    (void)snprintf(p->error, sizeof p->error, "%s", tn_app_error(app));
    tn_app_clear(app);
}

/* ---- JSON ---- */

static json_t *measures_json(const measures *m)
{
    return json_pack("{s:o, s:o, s:o, s:o}", "mean", cli_json_number(m->count > 0 ? m->mean : NAN),
                     "deviation", cli_json_number(deviation_of(m)), "min",
                     cli_json_number(m->count > 0 ? m->least : NAN), "max",
                     cli_json_number(m->count > 0 ? m->most : NAN));
}

static json_t *fields_json(const tn_data *d)
{
    tn_field_info field = {.struct_size = TN_SIZE(tn_field_info)};
    json_t *list = json_array();

    for (size_t i = 0; tn_data_field_at(d, i, &field); i++) {
        json_t *shape = json_array();

        for (int32_t k = 0; k < field.ndim; k++)
            (void)json_array_append_new(shape, json_integer((json_int_t)field.shape[k]));
        (void)json_array_append_new(list,
                                    json_pack("{s:o, s:o, s:s}", "name", cli_json_text(field.name), "shape",
                                              shape, "type", field.dtype == TN_U8 ? "uint8" : "float32"));
    }
    return list;
}

static json_t *broken_json(const tn_data *d)
{
    json_t *list = json_array();
    const char *text;

    for (int64_t i = 0; (text = tn_data_broken_text(d, i)); i++)
        (void)json_array_append_new(list, cli_json_text(text));
    return list;
}

static json_t *part_json(const part *p)
{
    json_t *o = json_object(), *classes = json_array(), *columns = json_array();

    if (!p->data)
        (void)json_object_set_new(o, "error", cli_json_text(p->error));
    for (int64_t k = 0; p->data && k < tn_data_classes(p->data); k++) {
        const char *name = tn_data_class_name(p->data, k);
        json_t *one = json_pack("{s:I, s:I}", "class", (json_int_t)k, "samples", (json_int_t)p->samples[k]);

        if (name)
            (void)json_object_set_new(one, "name", cli_json_text(name));
        (void)json_array_append_new(classes, one);
    }
    for (int64_t k = 0; p->data && k < p->column_count; k++) {
        const char *name = tn_data_column(p->data, k);
        json_t *one = measures_json(&p->columns[k]);

        if (name)
            (void)json_object_set_new(one, "name", cli_json_text(name));
        (void)json_array_append_new(columns, one);
    }
    if (p->data) {
        (void)json_object_set_new(o, "samples", json_integer((json_int_t)tn_data_count(p->data)));
        (void)json_object_set_new(o, "file", cli_json_text(tn_data_file(p->data, 0)));
        (void)json_object_set_new(o, "fields", fields_json(p->data));
        (void)json_object_set_new(o, "numbers", measures_json(&p->all));
        if (tn_data_task(p->data) == TN_TASK_NUMBERS)
            (void)json_object_set_new(o, "labels", measures_json(&p->labels));
        (void)json_object_set(o, "classes", classes);
        (void)json_object_set(o, "columns", columns);
        (void)json_object_set_new(o, "broken", broken_json(p->data));
        if (*tn_data_note(p->data))
            (void)json_object_set_new(o, "note", cli_json_text(tn_data_note(p->data)));
    }
    json_decref(classes);
    json_decref(columns);
    return o;
}

static const char *task_of(const tn_data *d)
{
    static const char *const tasks[] = {"none", "classification", "regression"};

    return tasks[tn_data_task(d)];
}

/* ---- text ---- */

static void measures_print(const char *name, const measures *m)
{
    cli_say(stdout, "  %-24s", name);
    (void)printf("  %12.6g  %12.6g  %12.6g  %12.6g\n", m->mean, deviation_of(m), m->least, m->most);
}

static void part_print(const part *p)
{
    tn_field_info field = {.struct_size = TN_SIZE(tn_field_info)};
    char name[160];
    const char *text;

    if (!p->data) {
        cli_say(stdout, "%s: %s\n", p->name, p->error);
        return;
    }
    (void)printf("%s: %lld samples of ", p->name, (long long)tn_data_count(p->data));
    cli_say(stdout, "%s\n", tn_data_file(p->data, 0));
    for (size_t i = 0; tn_data_field_at(p->data, i, &field); i++) {
        (void)printf("  %s %s ", field.name, field.dtype == TN_U8 ? "uint8" : "float32");
        for (int32_t k = 0; k < field.ndim; k++)
            (void)printf("%s%lld", k ? "×" : "", (long long)field.shape[k]);
        (void)printf("%s\n", field.ndim ? "" : "one number");
    }
    (void)printf("  %-24s  %12s  %12s  %12s  %12s\n", "numbers", "mean", "deviation", "min", "max");
    measures_print("all", &p->all);
    for (int64_t k = 0; k < p->column_count && k < COLUMNS_SHOWN; k++) {
        const char *column = tn_data_column(p->data, k);

        (void)snprintf(name, sizeof name, "column %lld", (long long)k + 1);
        measures_print(column ? column : name, &p->columns[k]);
    }
    if (p->column_count > COLUMNS_SHOWN)
        (void)printf("  and %lld columns more: --json has all\n", (long long)p->column_count - COLUMNS_SHOWN);
    if (tn_data_task(p->data) == TN_TASK_NUMBERS)
        measures_print("labels", &p->labels);
    for (int64_t k = 0; k < tn_data_classes(p->data) && k < CLASSES_SHOWN; k++) {
        const char *class = tn_data_class_name(p->data, k);

        (void)printf("  class %lld", (long long)k);
        cli_say(stdout, "%s%s", class ? " " : "", class ? class : "");
        (void)printf(": %lld samples\n", (long long)p->samples[k]);
    }
    if (tn_data_broken(p->data))
        (void)printf("  broken: %lld\n", (long long)tn_data_broken(p->data));
    for (int64_t i = 0; (text = tn_data_broken_text(p->data, i)); i++)
        cli_say(stdout, "  %s\n", text);
}

int cmd_data_info(const cli_args *args)
{
    part parts[PARTS] = {{.name = "train"}, {.name = "test"}};
    tn_app *app = cli_app_open(args, NULL);
    const tn_data *any = NULL;
    json_t *o;

    for (size_t i = 0; tn_app_ok(app) && i < PARTS; i++)
        part_open(app, args->words[0], i ? parts[0].data : NULL, &parts[i]);
    any = parts[0].data ? parts[0].data : parts[1].data;
    if (tn_app_ok(app) && !any &&
        part_read(app, args->words[0], NULL, &parts[0])) /* for its error's number */
        any = parts[0].data;
    if (tn_app_ok(app) && args->value[OPT_JSON]) {
        o = json_pack("{s:o, s:s}", "data", cli_json_text(args->words[0]), "task", task_of(any));
        for (size_t i = 0; i < PARTS; i++)
            (void)json_object_set_new(o, parts[i].name, part_json(&parts[i]));
        cli_json_line(o);
    } else if (tn_app_ok(app)) {
        (void)printf("task %s\n", task_of(any));
        if (*tn_data_note(any))
            cli_say(stdout, "%s\n", tn_data_note(any));
        for (size_t i = 0; i < PARTS; i++)
            part_print(&parts[i]);
    }
    for (size_t i = 0; i < PARTS; i++)
        part_fini(&parts[i]);
    return tn_app_close(app);
}
