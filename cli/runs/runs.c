/*
 * tenon runs list | show | compare: what lies below runs/.
 */
#include "runs/runs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_MAX 4096 /* options of all compared runs together */

const char *cli_runs_folder(const cli_args *args)
{
    const char *named = args->value[OPT_RUNS];

    if (!named || cli_is_folder(named))
        return named ? named : CLI_RUNS;
    cli_error("--runs %s: there is no folder of this name", named);
    return NULL;
}

static const char *measure_name(const cli_record *r)
{
    return r->numbers ? "r2" : "accuracy";
}

static json_t *record_json(const cli_record *r)
{
    json_t *o = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:s, s:b}", "id", cli_json_text(r->id), "folder",
        cli_json_text(r->folder), "started", cli_json_text(cli_record_text(r, "started")), "model",
        cli_json_text(cli_record_text(r, "model")), "data", cli_json_text(cli_record_text(r, "data_name")),
        "epochs", (json_int_t)r->epochs, "epochs_wanted", (json_int_t)r->epochs_wanted,
        r->numbers ? "best_r2" : "best_accuracy", cli_json_number(r->best), measure_name(r),
        cli_json_number(r->accuracy), "loss", cli_json_number(r->loss), "state",
        cli_record_state_name(r->state), "resumable", (int)r->resumable);

    if (*r->why)
        (void)json_object_set_new(o, "why", cli_json_text(r->why));
    return o;
}

/* Control characters of a file that may be anybody's must not reach the terminal. */
static void safe_print(const char *text, int width)
{
    int printed = 0;

    for (size_t bytes; *text; text += bytes ? bytes : 1) {
        bytes = cli_control(text);
        (void)putchar(bytes ? '?' : *text);
        printed += bytes || ((unsigned char)*text & 0xc0) != 0x80;
    }
    (void)printf("%*s", printed < width ? width - printed : 0, "");
}

static void share_print(double x, int width)
{
    if (isfinite(x))
        (void)printf("%*.4f", width, x);
    else
        (void)printf("%*s", width, "-");
}

/* ---- list ---- */

/* A printf() width for a text of UTF-8 that is to take so many columns. */
static int width_for(const char *text, int columns)
{
    return columns + (int)(strlen(text) - cli_columns(text));
}

static void row_print(const char *id, const char *started, const char *model, const char *data,
                      const char *epochs, const char *best, const char *state, const char *why)
{
    char *line =
        cli_format("%-*s%-22s%-*s%-*s%9s%10s  %-9s%s%s", width_for(id, 10), id, started, width_for(model, 24),
                   model, width_for(data, 16), data, epochs, best, state, *why ? " " : "", why);

    if (!line)
        return;
    cli_clean(line, '?');
    (void)cli_line_wrap(line, 0, cli_line_columns());
    (void)putchar('\n');
    free(line);
}

static void record_print(const cli_record *r)
{
    char epochs[48], best[32] = "-";

    (void)snprintf(epochs, sizeof epochs, "%lld/%lld", (long long)r->epochs, (long long)r->epochs_wanted);
    if (isfinite(r->best))
        (void)snprintf(best, sizeof best, "%s%.4f", r->numbers ? "r2 " : "", r->best);
    row_print(r->id, cli_record_text(r, "started"), cli_record_text(r, "model"),
              cli_record_text(r, "data_name"), epochs, best, cli_record_state_name(r->state), r->why);
}

int cmd_runs_list(const cli_args *args)
{
    cli_records records;
    const char *folder = cli_runs_folder(args);
    bool ok;

    if (!folder)
        return CLI_EXIT_USAGE;
    ok = cli_records_read(&records, folder);
    if (ok && !records.count && !args->value[OPT_QUIET])
        cli_say(stderr, "no runs below %s\n", records.folder);
    if (ok && records.count && !args->value[OPT_JSON])
        row_print("ID", "STARTED", "MODEL", "DATA", "EPOCHS", "BEST", "STATE", "");
    for (size_t i = 0; ok && i < records.count; i++) {
        if (args->value[OPT_JSON])
            cli_json_line(record_json(&records.at[i]));
        else
            record_print(&records.at[i]);
    }
    cli_records_fini(&records);
    return ok ? 0 : CLI_EXIT_FAILED;
}

/* ---- show ---- */

static const char *text_at(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

static void line_print(const char *what, const char *text)
{
    if (!*text)
        return;
    (void)printf("%-12s", what);
    safe_print(text, 0);
    (void)printf("\n");
}

static void data_print(const cli_record *r, const char *part)
{
    const json_t *data = json_object_get(json_object_get(r->json, "data"), part);

    if (!json_is_object(data))
        return;
    (void)printf("%-12s", part);
    safe_print(text_at(data, "name"), 0);
    (void)printf(", %lld samples, sha256 ", (long long)json_integer_value(json_object_get(data, "samples")));
    safe_print(text_at(data, "sha256"), 0);
    (void)printf("\n");
}

static void plugins_print(const cli_record *r)
{
    const json_t *p;
    size_t index;

    json_array_foreach(json_object_get(r->json, "plugins"), index, p)
    {
        (void)printf("%-12s", index ? "" : "plugins");
        safe_print(text_at(p, "name"), 16);
        safe_print(text_at(p, "version"), 10);
        (void)printf("%-10s", json_is_true(json_object_get(p, "loaded")) ? "loaded" : "ready");
        safe_print(text_at(p, "build_id"), 0);
        (void)printf("\n");
    }
}

/* What was set, and by whom; defaults are in --json. */
static void options_print(const cli_record *r)
{
    const json_t *o;
    size_t index;
    bool first = true;

    json_array_foreach(json_object_get(r->json, "options"), index, o)
    {
        const char *origin = text_at(o, "origin"), *where = text_at(o, "where");

        if (!strcmp(origin, "default"))
            continue;
        (void)printf("%-12s", first ? "options" : "");
        first = false;
        safe_print(text_at(o, "key"), 26);
        safe_print(text_at(o, "value"), 24);
        (void)printf(" ");
        safe_print(*where ? where : origin, 0);
        (void)printf("\n");
    }
}

static void command_print(const cli_record *r)
{
    const json_t *word;
    size_t index;

    (void)printf("%-12s", "command");
    json_array_foreach(json_object_get(r->json, "command"), index, word)
    {
        (void)printf("%s", index ? " " : "");
        safe_print(json_is_string(word) ? json_string_value(word) : "?", 0);
    }
    (void)printf("\n");
}

static void show_print(const cli_record *r)
{
    const json_t *versions = json_object_get(r->json, "versions"), *host = json_object_get(versions, "host");

    line_print("run", r->id);
    line_print("folder", r->folder);
    (void)printf("%-12s%s", "state", cli_record_state_name(r->state));
    (void)printf("%s", *r->why ? ", " : "");
    safe_print(r->why, 0);
    (void)printf("\n");
    if (!r->json)
        return;
    command_print(r);
    line_print("started", cli_record_text(r, "started"));
    line_print("ended", cli_record_text(r, "ended"));
    line_print("model", cli_record_text(r, "model"));
    line_print("device", cli_record_text(r, "device"));
    data_print(r, "train");
    data_print(r, "valid");
    (void)printf("%-12s%lld of %lld\n", "epochs", (long long)r->epochs, (long long)r->epochs_wanted);
    (void)printf("%-12s", "best");
    share_print(r->best, 0);
    (void)printf("\n%-12s", measure_name(r));
    share_print(r->accuracy, 0);
    (void)printf("\n%-12s", "loss");
    share_print(r->loss, 0);
    (void)printf("\n");
    line_print("params", text_at(json_object_get(r->json, "result"), "params_sha256"));
    line_print("tenon", text_at(versions, "tenon"));
    line_print("build", text_at(versions, "build_id"));
    line_print("machine", text_at(host, "machine"));
    plugins_print(r);
    options_print(r);
}

int cmd_runs_show(const cli_args *args)
{
    const char *folder = cli_runs_folder(args);
    cli_record r;
    json_t *o;
    int code;

    if (!folder || !cli_record_find(&r, folder, args->words[0]))
        return CLI_EXIT_USAGE;
    if (args->value[OPT_JSON]) {
        o = record_json(&r);
        (void)json_object_set(o, "run", r.json ? r.json : json_null());
        cli_json_line(o);
    } else {
        show_print(&r);
    }
    code = r.json ? 0 : CLI_EXIT_DATA;
    cli_record_fini(&r);
    return code;
}

/* ---- compare ---- */

typedef struct comparison {
    cli_record runs[CLI_WORDS_MAX];
    size_t count;
    const char *keys[KEYS_MAX]; /* that differ; of the runs' JSON */
    size_t key_count;
} comparison;

/* Facts of a run that no option tells. */
static const char *fact(const cli_record *r, const char *key)
{
    const json_t *versions = json_object_get(r->json, "versions");
    const json_t *train = json_object_get(json_object_get(r->json, "data"), "train");

    if (!strcmp(key, "tenon"))
        return text_at(versions, "tenon");
    if (!strcmp(key, "build"))
        return text_at(versions, "build_id");
    if (!strcmp(key, "data_sha256"))
        return text_at(train, "sha256");
    return cli_record_text(r, key);
}

static const char *const facts[] = {"model", "data_name", "data_sha256", "device", "tenon", "build"};
#define FACTS (sizeof facts / sizeof *facts)

static bool is_fact(const char *key)
{
    for (size_t i = 0; i < FACTS; i++)
        if (!strcmp(facts[i], key))
            return true;
    return false;
}

static const char *value_of(const cli_record *r, const char *key)
{
    return is_fact(key) ? fact(r, key) : cli_record_option(r, key);
}

static void key_try(comparison *c, const char *key)
{
    bool differs = false;

    for (size_t i = 0; i < c->key_count; i++)
        if (!strcmp(c->keys[i], key))
            return;
    for (size_t i = 1; i < c->count; i++)
        differs = differs || strcmp(value_of(&c->runs[0], key), value_of(&c->runs[i], key));
    if (differs && c->key_count < KEYS_MAX)
        c->keys[c->key_count++] = key;
}

static void keys_find(comparison *c)
{
    for (size_t i = 0; i < FACTS; i++)
        key_try(c, facts[i]);
    for (size_t i = 0; i < c->count; i++) {
        const json_t *o;
        size_t index;

        json_array_foreach(json_object_get(c->runs[i].json, "options"), index, o)
        {
            const char *key = json_string_value(json_object_get(o, "key"));

            if (key && strcmp(key, "run.dir") && strcmp(key, "train.model") && strcmp(key, "train.data"))
                key_try(c, key);
        }
    }
}

static void compare_json(const comparison *c)
{
    json_t *runs = json_array(), *differences = json_object();

    for (size_t i = 0; i < c->count; i++)
        (void)json_array_append_new(runs, record_json(&c->runs[i]));
    for (size_t k = 0; k < c->key_count; k++) {
        json_t *values = json_array();

        for (size_t i = 0; i < c->count; i++)
            (void)json_array_append_new(values, cli_json_text(value_of(&c->runs[i], c->keys[k])));
        (void)json_object_set_new(differences, c->keys[k], values);
    }
    cli_json_line(json_pack("{s:o, s:o}", "runs", runs, "differences", differences));
}

static void results_print(const comparison *c)
{
    static const char *const kinds[] = {"accuracy", "r2", "accuracy or r2"};
    const char *rows[] = {"epochs", "best", NULL, "loss"};
    size_t numbers = 0;

    for (size_t i = 0; i < c->count; i++)
        numbers += c->runs[i].numbers;
    rows[2] = kinds[!numbers ? 0 : numbers == c->count ? 1 : 2];
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        (void)printf("%-26s", rows[row]);
        for (size_t i = 0; i < c->count; i++) {
            const cli_record *r = &c->runs[i];

            if (row == 0)
                (void)printf(" %17lld", (long long)r->epochs);
            else
                share_print(row == 1 ? r->best : row == 2 ? r->accuracy : r->loss, 18);
        }
        (void)printf("\n");
    }
}

static void compare_print(const comparison *c)
{
    (void)printf("%-26s", "");
    for (size_t i = 0; i < c->count; i++) {
        (void)printf(" ");
        safe_print(c->runs[i].id, 17);
    }
    (void)printf("\n%-26s", "state");
    for (size_t i = 0; i < c->count; i++)
        (void)printf(" %-17s", cli_record_state_name(c->runs[i].state));
    (void)printf("\n");
    for (size_t k = 0; k < c->key_count; k++) {
        safe_print(c->keys[k], 26);
        for (size_t i = 0; i < c->count; i++) {
            char value[18];

            (void)snprintf(value, sizeof value, "%s", value_of(&c->runs[i], c->keys[k]));
            (void)printf(" ");
            safe_print(*value ? value : "-", 17);
        }
        (void)printf("\n");
    }
    results_print(c);
}

int cmd_runs_compare(const cli_args *args)
{
    const char *folder = cli_runs_folder(args);
    comparison *c = folder ? calloc(1, sizeof *c) : NULL;
    int code = folder ? CLI_EXIT_MEMORY : CLI_EXIT_USAGE;

    if (folder && !c)
        cli_error("out of memory");
    for (size_t i = 0; c && i < args->word_count; i++) {
        code = 0;
        if (!cli_record_find(&c->runs[i], folder, args->words[i]))
            code = CLI_EXIT_USAGE;
        else
            c->count++;
        if (!code && !c->runs[i].json) {
            cli_error("%s: %s", c->runs[i].folder, c->runs[i].why);
            code = CLI_EXIT_DATA;
        }
        if (code)
            break;
    }
    if (!code) {
        keys_find(c);
        if (args->value[OPT_JSON])
            compare_json(c);
        else
            compare_print(c);
    }
    for (size_t i = 0; c && i < c->count; i++)
        cli_record_fini(&c->runs[i]);
    free(c);
    return code;
}
