/*
 * Answers of a net: a table, CSV or JSON lines with classes and probabilities, or a .npy with the numbers as
 * they are. Of a model with several outputs all are written: a row of the table for each, columns of CSV that
 * begin with its name, objects in a list of JSON, a .npy for each.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "train/predict.h"

#define RAW_MAX ((size_t)1 << 33) /* numbers of a .npy: 32 GiB */

static bool kind_find(cli_answers *a, const char *path)
{
    static const struct {
        const char *end;
        cli_answer_kind kind;
    } rows[] = {{".csv", CLI_ANSWER_CSV},
                {".json", CLI_ANSWER_JSON},
                {".jsonl", CLI_ANSWER_JSON},
                {".npy", CLI_ANSWER_NPY},
                {".txt", CLI_ANSWER_TABLE}};
    char *text;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (cli_ends_with(path, rows[i].end)) {
            a->kind = rows[i].kind;
            return true;
        }
    text = cli_format("--out %s: a name that ends in .csv, .json, .jsonl, .npy or .txt says what to write",
                      path);
    (void)tn_app_fail(a->app, TN_E_ARG, text ? text : path);
    free(text);
    return false;
}

static const char *class_name(const cli_answers *a, int64_t k)
{
    const char *name = tn_net_class_name(a->net, k);

    return name ? name : "";
}

/* ---- the head of a table ---- */

static void quoted(FILE *out, const char *text)
{
    (void)fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            (void)fputc('"', out);
        (void)fputc(*text, out);
    }
    (void)fputc('"', out);
}

/* Of one output of several the column begins with its name: "fc1_output.y0". */
static void column_write(const cli_answers *a, const cli_answer *o, const char *column)
{
    char *name = a->output_count > 1 ? cli_format("%s.%s", o->name, column) : NULL;

    (void)fputc(',', a->out);
    if (name)
        quoted(a->out, name);
    else
        (void)fputs(column, a->out);
    free(name);
}

static void columns_write(const cli_answers *a, const cli_answer *o)
{
    static const char *const told[] = {"class", "name", "probability"};
    char column[32];

    for (size_t i = 0; o->classes && i < sizeof told / sizeof *told; i++)
        column_write(a, o, told[i]);
    for (int64_t k = 0; k < o->each; k++) {
        (void)snprintf(column, sizeof column, "%c%lld", o->classes ? 'p' : 'y', (long long)k);
        column_write(a, o, column);
    }
}

/* A column of a table: `text`, two blanks in front; *pad: what the one before it lacks of its width. */
static void cell(FILE *out, int *pad, int width, const char *text)
{
    const int used = (int)cli_columns(text);

    cli_say(out, "%*s  %s", *pad, "", text);
    *pad = width > used ? width - used : 0;
}

/* Columns of the names of classes; 0: they have none. */
static int names_width(const cli_answers *a, const cli_answer *o)
{
    size_t width = 0, n;

    for (int64_t k = 0; k < o->each; k++)
        if ((n = cli_columns(class_name(a, k))) > width)
            width = n;
    return width && width < 4 ? 4 : (int)width; /* "name" */
}

/* "class  probability  name", as often as classes are told. */
static void classes_head(const cli_answers *a, const cli_answer *o, int *pad)
{
    for (int64_t n = 0; n < o->top; n++) {
        cell(a->out, pad, 9, "    class");
        cell(a->out, pad, 11, "probability");
        if (o->name_width)
            cell(a->out, pad, o->name_width, "name");
    }
}

static void head_write(const cli_answers *a)
{
    int pad = 0;

    if (a->kind == CLI_ANSWER_TABLE && a->output_count > 1) {
        (void)fprintf(a->out, "sample    output                    class and probability, or numbers%s\n",
                      a->several ? "  input" : "");
    } else if (a->kind == CLI_ANSWER_TABLE && a->outputs->classes) {
        (void)fprintf(a->out, "sample  ");
        classes_head(a, a->outputs, &pad);
        if (a->several)
            cell(a->out, &pad, 0, "input");
        (void)fprintf(a->out, "\n");
    }
    if (a->kind != CLI_ANSWER_CSV)
        return;
    (void)fprintf(a->out, "input,sample");
    for (size_t i = 0; i < a->output_count; i++)
        columns_write(a, &a->outputs[i]);
    (void)fprintf(a->out, "\n");
}

/* ---- files ---- */

/* PATH-NAME.npy; in a name that is no word of a file, or is there twice, its number. */
static char *npy_path(const cli_answers *a, const cli_answer *o, const char *path)
{
    const int stem = (int)(strlen(path) - strlen(".npy"));
    bool plain = *o->name && *o->name != '.';

    if (a->output_count == 1)
        return cli_format("%s", path);
    for (const char *c = o->name; *c; c++)
        plain = plain && (isalnum((unsigned char)*c) || strchr("._-", *c)) && c - o->name < 100;
    for (size_t i = 0; i < a->output_count; i++)
        plain = plain && (&a->outputs[i] == o || strcmp(a->outputs[i].name, o->name) != 0);
    return plain ? cli_format("%.*s-%s.npy", stem, path, o->name)
                 : cli_format("%.*s-%zu.npy", stem, path, o->index);
}

static bool paths_make(cli_answers *a, const char *path)
{
    const long id = (long)getpid();

    for (size_t i = 0; a->kind == CLI_ANSWER_NPY && i < a->output_count; i++) {
        cli_answer *o = &a->outputs[i];

        if (!(o->path = npy_path(a, o, path)) || !(o->aside = cli_format("%s.tmp-%ld", o->path, id)))
            return false;
    }
    return (a->path = cli_format("%s", path)) && (a->aside = cli_format("%s.tmp-%ld", path, id));
}

const char *cli_answers_file(const cli_answers *a, size_t index)
{
    if (a->kind == CLI_ANSWER_NPY)
        return index < a->output_count ? a->outputs[index].path : NULL;
    return index ? NULL : a->path;
}

static bool output_open(cli_answers *a, cli_answer *o)
{
    o->each = 1;
    for (int32_t i = 1; i < o->ndim; i++)
        o->each *= o->shape[i];
    o->classes =
        o->ndim == 2 && o->each > 1 && o->gives != TN_GIVES_OTHER && !tn_net_units(a->net, NULL, NULL);
    o->top = a->top > o->each ? o->each : a->top;
    o->name_width = o->classes ? names_width(a, o) : 0;
    o->chances = malloc((size_t)o->each * sizeof *o->chances);
    o->order = malloc((size_t)o->each * sizeof *o->order);
    o->batch = malloc((size_t)(o->each * a->batch) * sizeof *o->batch);
    return o->chances && o->order && o->batch;
}

bool cli_answers_open(cli_answers *a, const char *path)
{
    bool ok = true;

    a->out = stdout;
    a->there = path ? cli_folders_there(path) : 0;
    if (path && !kind_find(a, path))
        return false;
    for (size_t i = 0; ok && i < a->output_count; i++)
        ok = output_open(a, &a->outputs[i]);
    if (!ok || (path && !paths_make(a, path)))
        return !tn_app_fail(a->app, TN_E_NOMEM, "out of memory");
    if (path && !cli_folders_above(path))
        return cli_failed_at(a->app, path);
    errno = 0;
    if (a->kind == CLI_ANSWER_NPY)
        a->out = NULL;
    else if (path && !(a->out = fopen(a->aside, "wxe")))
        return cli_failed_at(a->app, path);
    if (a->out)
        head_write(a);
    return true;
}

/* ---- one sample ---- */

static void chances_make(cli_answer *o, const float *x)
{
    double most = (double)x[0], sum = 0;

    for (int64_t k = 0; k < o->each; k++)
        o->chances[k] = o->gives == TN_GIVES_LOGARITHMS ? exp((double)x[k]) : (double)x[k];
    if (o->gives != TN_GIVES_SCORES)
        return;
    for (int64_t k = 1; k < o->each; k++)
        most = fmax(most, (double)x[k]);
    for (int64_t k = 0; k < o->each; k++)
        sum += o->chances[k] = exp((double)x[k] - most);
    for (int64_t k = 0; k < o->each; k++)
        o->chances[k] /= sum;
}

/* The `top` likeliest, the first of equals first. */
static void order_make(cli_answer *o)
{
    for (int64_t n = 0; n < o->top; n++) {
        int64_t best = -1;

        for (int64_t k = 0; k < o->each; k++) {
            bool told = false;

            for (int64_t i = 0; i < n; i++)
                told = told || o->order[i] == k;
            if (!told && (best < 0 || o->chances[k] > o->chances[best]))
                best = k;
        }
        o->order[n] = best;
    }
}

static void classes_add(const cli_answers *a, const cli_answer *o, int *pad)
{
    char text[32];

    for (int64_t n = 0; n < o->top; n++) {
        (void)snprintf(text, sizeof text, "%9lld", (long long)o->order[n]);
        cell(a->out, pad, 9, text);
        (void)snprintf(text, sizeof text, "%.4f", o->chances[o->order[n]]);
        cell(a->out, pad, 11, text);
        if (o->name_width)
            cell(a->out, pad, o->name_width, class_name(a, o->order[n]));
    }
}

static void table_add(const cli_answers *a, const cli_answer *o, const char *input, int64_t index,
                      const float *x)
{
    const int64_t number = a->one_each ? a->done - 1 : index;
    int pad = 0;

    if (a->output_count > 1)
        cli_say(a->out, "%-8lld  %-24s", (long long)number, o->name);
    else
        (void)fprintf(a->out, "%-8lld", (long long)number);
    if (o->classes)
        classes_add(a, o, &pad);
    for (int64_t k = 0; !o->classes && k < o->each; k++)
        (void)fprintf(a->out, " %.6g", (double)x[k]);
    if (a->several)
        cell(a->out, &pad, 0, input);
    (void)fprintf(a->out, "\n");
}

static void csv_add(const cli_answers *a, const cli_answer *o, const float *x)
{
    if (o->classes) {
        (void)fprintf(a->out, ",%lld,", (long long)o->order[0]);
        quoted(a->out, class_name(a, o->order[0]));
        (void)fprintf(a->out, ",%.7g", o->chances[o->order[0]]);
    }
    for (int64_t k = 0; k < o->each; k++)
        (void)fprintf(a->out, ",%.9g", o->classes ? o->chances[k] : (double)x[k]);
}

static json_t *class_json(const cli_answers *a, const cli_answer *o, int64_t k)
{
    json_t *row =
        json_pack("{s:I, s:o}", "class", (json_int_t)k, "probability", cli_json_number(o->chances[k]));

    if (*class_name(a, k))
        (void)json_object_set_new(row, "name", cli_json_text(class_name(a, k)));
    return row;
}

/* The likeliest class in front; numbers that are of no classes are called `numbers`. */
static void best_put(const cli_answers *a, const cli_answer *o, json_t *row)
{
    json_t *best = o->classes ? class_json(a, o, o->order[0]) : NULL;

    if (best)
        (void)json_object_update(row, best);
    json_decref(best);
}

static void list_put(const cli_answers *a, const cli_answer *o, int64_t at, const char *numbers, json_t *row)
{
    const float *x = o->batch + at * o->each;
    json_t *list = json_array();

    for (int64_t n = 0; n < (o->classes ? o->top : o->each); n++)
        (void)json_array_append_new(list, o->classes ? class_json(a, o, o->order[n])
                                                     : cli_json_number((double)x[n]));
    (void)json_object_set_new(row, o->classes ? "top" : numbers, list);
}

static json_t *sample_json(const cli_answers *a, const char *input, int64_t index, int64_t at)
{
    json_t *row = json_object(), *list;

    if (a->output_count == 1)
        best_put(a, a->outputs, row);
    (void)json_object_set_new(row, "input", cli_json_text(input));
    (void)json_object_set_new(row, "sample", json_integer((json_int_t)index));
    if (a->output_count == 1) {
        list_put(a, a->outputs, at, "outputs", row);
        return row;
    }
    list = json_array();
    for (size_t i = 0; i < a->output_count; i++) {
        json_t *one = json_pack("{s:o}", "output", cli_json_text(a->outputs[i].name));

        best_put(a, &a->outputs[i], one);
        list_put(a, &a->outputs[i], at, "values", one);
        (void)json_array_append_new(list, one);
    }
    (void)json_object_set_new(row, "outputs", list);
    return row;
}

static bool json_add(const cli_answers *a, json_t *row)
{
    char *text = NULL;

    if (a->out == stdout) {
        cli_json_line(row);
        return true;
    }
    if ((text = json_dumps(row, CLI_JSON_FLAGS | JSON_COMPACT)))
        (void)fprintf(a->out, "%s\n", text);
    free(text);
    json_decref(row);
    return text != NULL;
}

static bool raw_add(cli_answers *a, cli_answer *o, const float *x)
{
    const size_t need = o->raw_count + (size_t)o->each;

    if (need > o->raw_room) {
        size_t room = 2 * need;
        float *grown = need < RAW_MAX ? realloc(o->raw, room * sizeof *grown) : NULL;

        if (!grown)
            return !tn_app_fail(a->app, TN_E_NOMEM, "out of memory for the outputs of a .npy");
        o->raw = grown;
        o->raw_room = room;
    }
    memcpy(o->raw + o->raw_count, x, (size_t)o->each * sizeof *x);
    o->raw_count = need;
    return true;
}

/* Of a regression: in the units of the labels. */
static void units_give(const cli_answers *a, cli_answer *o, int64_t at)
{
    double mean, deviation;
    float *x = o->batch + at * o->each;

    if (!tn_net_units(a->net, &mean, &deviation))
        return;
    for (int64_t k = 0; k < o->each; k++)
        x[k] = (float)((double)x[k] * deviation + mean);
}

bool cli_answers_add(cli_answers *a, const char *input, int64_t index, int64_t at)
{
    a->done++;
    for (size_t i = 0; i < a->output_count; i++)
        units_give(a, &a->outputs[i], at);
    if (a->kind == CLI_ANSWER_CSV) {
        quoted(a->out, input);
        (void)fprintf(a->out, ",%lld", (long long)index);
    }
    for (size_t i = 0; i < a->output_count; i++) {
        cli_answer *o = &a->outputs[i];
        const float *x = o->batch + at * o->each;

        if (a->kind == CLI_ANSWER_NPY && !raw_add(a, o, x))
            return false;
        if (a->kind != CLI_ANSWER_NPY && o->classes) {
            chances_make(o, x);
            order_make(o);
        }
        if (a->kind == CLI_ANSWER_CSV)
            csv_add(a, o, x);
        else if (a->kind == CLI_ANSWER_TABLE)
            table_add(a, o, input, index, x);
    }
    if (a->kind == CLI_ANSWER_CSV)
        (void)fprintf(a->out, "\n");
    if (a->kind == CLI_ANSWER_JSON && !json_add(a, sample_json(a, input, index, at)))
        return !tn_app_fail(a->app, TN_E_NOMEM, "out of memory");
    return true;
}

/* ---- the end ---- */

static bool npy_save(cli_answers *a, cli_answer *o)
{
    const tn_device *host = NULL, *before;
    tn_array *array = NULL;
    tn_ctx *ctx = tn_app_ctx(a->app);
    tn_status st;

    o->shape[0] = a->done;
    if (tn_app_check(a->app, tn_device_get(ctx, "cpu", &host)))
        return false;
    before = tn_device_use(host);
    st = tn_array_from(ctx, TN_F32, o->ndim, o->shape, o->raw, &array);
    (void)tn_device_use(before);
    if (!tn_app_check(a->app, st))
        (void)tn_app_check(a->app, tn_npy_save(array, a->output_count > 1 ? o->aside : o->path));
    tn_array_release(array);
    return tn_app_ok(a->app) != 0;
}

/* Of several all are written before the first one gets its name. */
static bool npy_close(cli_answers *a)
{
    bool ok = true;

    for (size_t i = 0; ok && i < a->output_count; i++)
        ok = npy_save(a, &a->outputs[i]);
    errno = 0;
    for (size_t i = 0; ok && a->output_count > 1 && i < a->output_count; i++)
        if (rename(a->outputs[i].aside, a->outputs[i].path))
            ok = cli_failed_at(a->app, a->outputs[i].path);
    return ok;
}

bool cli_answers_close(cli_answers *a)
{
    bool ok;

    if (a->kind == CLI_ANSWER_NPY)
        return npy_close(a);
    if (!a->path)
        return true;
    errno = 0;
    ok = !fflush(a->out) && !ferror(a->out);
    ok = !fclose(a->out) && ok && !rename(a->aside, a->path);
    a->out = NULL;
    return ok || cli_failed_at(a->app, a->path);
}

static void output_fini(cli_answer *o)
{
    if (o->aside)
        (void)unlink(o->aside);
    free(o->path);
    free(o->aside);
    free(o->chances);
    free(o->order);
    free(o->batch);
    free(o->raw);
}

void cli_answers_fini(cli_answers *a)
{
    if (a->path && a->out)
        (void)fclose(a->out);
    if (a->aside)
        (void)unlink(a->aside); /* what did not become the file */
    for (size_t i = 0; i < a->output_count; i++)
        output_fini(&a->outputs[i]);
    if (a->path)
        cli_folders_back(a->path, a->there);
    free(a->outputs);
    free(a->path);
    free(a->aside);
}
