/*
 * Tables of measurements. A row is a JSON object; columns name its members. Against an older file a row is
 * marked where the means are further apart than three standard deviations.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/table.h"
#include "view/viz.h"

#define DEVIATIONS 3.0
#define ROWS_MAX 1000
#define CELL 192

static const char *format_of(const cli_args *args)
{
    return args->value[OPT_FORMAT] ? args->value[OPT_FORMAT] : args->value[OPT_JSON] ? "json" : "md";
}

int cli_table_begin(cli_table *t, const cli_args *args)
{
    const char *format = format_of(args), *path = args->value[OPT_COMPARE];
    json_error_t error;

    if (strcmp(format, "md") != 0 && strcmp(format, "csv") != 0 && strcmp(format, "json") != 0) {
        cli_error("-o %s: md, csv or json is needed", format);
        return CLI_EXIT_USAGE;
    }
    if (args->value[OPT_JSON] && strcmp(format, "json") != 0) {
        cli_error("--json is -o json; -o %s is something else", format);
        return CLI_EXIT_USAGE;
    }
    if (path) {
        json_t *file = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

        t->old = json_incref(json_object_get(file, "rows"));
        json_decref(file);
        if (!file && access(path, R_OK)) {
            cli_error("--compare %s: cannot be read", path);
            return CLI_EXIT_USAGE;
        }
        if (!json_is_array(t->old)) {
            cli_error("--compare %s: %s%s; a file that `-o json` wrote is needed", path,
                      file ? "it has no rows" : "it is no JSON: ", file ? "" : error.text);
            return CLI_EXIT_DATA;
        }
    }
    t->rows = json_array();
    return 0;
}

/* ---- an older measurement ---- */

static const json_t *old_of(const cli_table *t, const json_t *row)
{
    size_t index;
    json_t *old;

    json_array_foreach(t->old, index, old)
    {
        bool same = true;

        for (const char *const *key = t->same; *key; key++)
            same = same && json_equal(json_object_get(old, *key), json_object_get(row, *key));
        if (same)
            return old;
    }
    return NULL;
}

static double number_at(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static void change_add(const cli_table *t, json_t *row)
{
    const json_t *old = old_of(t, row);
    const double before = number_at(old, "mean_ms"), now = number_at(row, "mean_ms");
    const double a = number_at(old, "sd_ms"), b = number_at(row, "sd_ms");
    char text[64] = "new";

    if (isfinite(before) && before > 0 && isfinite(a)) {
        const bool changed = fabs(now - before) > DEVIATIONS * sqrt(a * a + b * b);

        (void)snprintf(text, sizeof text, changed ? "%+.1f %% %s" : "same (%+.1f %%)",
                       100 * (now - before) / before, now > before ? "slower" : "faster");
        (void)json_object_set_new(row, "before_ms", cli_json_number(before));
        (void)json_object_set_new(row, "changed", json_boolean(changed));
    }
    (void)json_object_set_new(row, "change", json_string(text));
}

void cli_table_add(cli_table *t, json_t *row, const cli_series *s)
{
    (void)json_object_set_new(row, "mean_ms", cli_json_number(s->mean / 1e6));
    (void)json_object_set_new(row, "sd_ms", cli_json_number(s->sd / 1e6));
    (void)json_object_set_new(row, "median_ms", cli_json_number(s->median / 1e6));
    (void)json_object_set_new(row, "best_ms", cli_json_number(s->best / 1e6));
    (void)json_object_set_new(row, "rounds", json_integer(s->rounds));
    (void)json_object_set_new(row, "calls", json_integer(s->calls));
    (void)json_object_set_new(row, "noisy", json_boolean(s->noisy));
    (void)json_object_set_new(row, "build", json_string(tn_build_id()));
    if (t->old)
        change_add(t, row);
    (void)json_array_append_new(t->rows, row);
    t->noisy |= s->noisy;
}

/* ---- as text ---- */

static void cell_text(const json_t *row, const char *key, bool utf8, char out[CELL])
{
    const json_t *value = json_object_get(row, key);

    if (!strcmp(key, "ms"))
        (void)snprintf(out, CELL, "%.4g %s %.2g%s", number_at(row, "mean_ms"), utf8 ? "\xc2\xb1" : "+-",
                       number_at(row, "sd_ms"), json_is_true(json_object_get(row, "noisy")) ? " noisy" : "");
    else if (!strcmp(key, "build"))
        (void)snprintf(out, CELL, "%.8s", json_string_value(value) ? json_string_value(value) : "");
    else if (json_is_string(value))
        (void)snprintf(out, CELL, "%s", json_string_value(value));
    else if (json_is_number(value))
        (void)snprintf(out, CELL, "%.4g", json_number_value(value));
    else
        (void)snprintf(out, CELL, "-");
    cli_clean(out, '?');
}

/* The first column from `c` on that is shown; one without key at the end. */
static const cli_column *column_from(const cli_table *t, const cli_column *c)
{
    while (c->key && !t->old && !strcmp(c->key, "change"))
        c++;
    return c;
}

static int width_of(const cli_table *t, const cli_column *column, bool utf8)
{
    size_t width = strlen(column->title), index;
    json_t *row;

    json_array_foreach(t->rows, index, row)
    {
        char cell[CELL];

        cell_text(row, column->key, utf8, cell);
        width = cli_columns(cell) > width ? cli_columns(cell) : width;
    }
    return (int)width;
}

static void markdown_print(const cli_table *t)
{
    const bool utf8 = cli_terminal_of(stdout).utf8;
    size_t index;
    json_t *row;

    for (const cli_column *c = column_from(t, t->columns); c->key; c = column_from(t, c + 1))
        (void)printf("| %-*s ", width_of(t, c, utf8), c->title);
    (void)puts("|");
    for (const cli_column *c = column_from(t, t->columns); c->key; c = column_from(t, c + 1)) {
        (void)fputs("|-", stdout);
        for (int i = width_of(t, c, utf8); i-- > 0;)
            (void)putchar('-');
        (void)putchar('-');
    }
    (void)puts("|");
    json_array_foreach(t->rows, index, row)
    {
        for (const cli_column *c = column_from(t, t->columns); c->key; c = column_from(t, c + 1)) {
            char cell[CELL];

            cell_text(row, c->key, utf8, cell);
            (void)fputs("| ", stdout);
            cli_pad(stdout, cell, width_of(t, c, utf8));
            (void)putchar(' ');
        }
        (void)puts("|");
    }
}

static void csv_cell(const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        (void)fputs(text, stdout);
        return;
    }
    (void)putchar('"');
    for (; *text; text++) {
        if (*text == '"')
            (void)putchar('"');
        (void)putchar(*text);
    }
    (void)putchar('"');
}

/* Mean and deviation are two columns here. */
static void csv_print(const cli_table *t)
{
    static const char *const two[] = {"mean_ms", "sd_ms"};
    size_t index;
    json_t *row;

    for (const cli_column *c = column_from(t, t->columns); c->key; c = column_from(t, c + 1))
        (void)printf("%s%s", c == t->columns ? "" : ",", strcmp(c->key, "ms") ? c->key : "mean_ms,sd_ms");
    (void)putchar('\n');
    json_array_foreach(t->rows, index, row)
    {
        for (const cli_column *c = column_from(t, t->columns); c->key; c = column_from(t, c + 1))
            for (int k = 0; k < (strcmp(c->key, "ms") ? 1 : 2); k++) {
                char cell[CELL];

                cell_text(row, strcmp(c->key, "ms") ? c->key : two[k], false, cell);
                (void)fputs(c == t->columns && !k ? "" : ",", stdout);
                csv_cell(cell);
            }
        (void)putchar('\n');
    }
}

int cli_table_end(cli_table *t, const cli_args *args)
{
    const char *format = format_of(args);
    int code = 0;

    if (json_array_size(t->rows) && !strcmp(format, "json"))
        cli_json_line(json_pack("{s:O, s:b}", "rows", t->rows, "noisy", (int)t->noisy));
    else if (json_array_size(t->rows))
        (strcmp(format, "csv") ? markdown_print : csv_print)(t);
    if (t->noisy) {
        cli_error(
            "two series of a measurement differ by more than 10 %%, or most rounds took over twice the best "
            "one: this machine is too busy to measure");
        code = CLI_EXIT_FAILED;
    }
    json_decref(t->rows);
    json_decref(t->old);
    t->rows = t->old = NULL;
    return code;
}
