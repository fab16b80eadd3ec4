/*
 * tenon config check, behind what the library finds: values that name a model, data, files and folders, and
 * whether these are there for a program that starts in this folder. What nobody set is not looked at; the
 * configuration may be meant for another place, so all of it is a warning; one of several folders that is not
 * there harms nobody and is a note.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "model.h"

typedef struct values {
    tn_ctx *ctx;
    char fault[700]; /* of the value at hand; "": none */
    tn_status status;
} values;

static void CLI_PRINTF(3, 4) fault_set(values *v, tn_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(v->fault, sizeof v->fault, format, args);
    va_end(args);
    v->status = status;
}

/* ---- of one value each ---- */

static void file_there(values *v, const char *value)
{
    if (access(value, R_OK))
        fault_set(v, TN_E_IO, "%s", strerror(errno));
    else if (cli_is_folder(value))
        fault_set(v, TN_E_IO, "is a folder");
}

static void model_there(values *v, const char *value)
{
    char *fault = cli_model_fault(value);

    if (fault)
        fault_set(v, TN_E_KEY, "%s", fault);
    else if (cli_ends_with(value, ".json"))
        file_there(v, value);
    free(fault);
}

static void folders_there(values *v, const char *value)
{
    for (size_t length; *value && !*v->fault; value += length) {
        size_t end;
        char *folder;

        value += strspn(value, ", \t");
        length = strcspn(value, ",");
        for (end = length; end && (value[end - 1] == ' ' || value[end - 1] == '\t'); end--)
            ;
        folder = cli_format("%.*s", (int)end, value);
        if (folder && *folder && !cli_is_folder(folder))
            fault_set(v, TN_E_IO, "%s is no folder", folder);
        free(folder);
    }
}

static void folder_free(values *v, const char *value)
{
    if (!access(value, F_OK) && !cli_is_folder(value))
        fault_set(v, TN_E_IO, "a file of this name is there");
}

static void file_made(values *v, const char *value)
{
    const char *slash = strrchr(value, '/');
    char *folder = slash ? cli_format("%.*s", slash == value ? 1 : (int)(slash - value), value) : NULL;

    if (folder && !cli_is_folder(folder))
        fault_set(v, TN_E_IO, "%s is no folder", folder);
    free(folder);
}

/* `part` where the value names none. */
static void part_there(values *v, const char *value, const char *part)
{
    const bool whole = cli_ends_with(value, ":train") || cli_ends_with(value, ":test");
    char *path = cli_format("data.path=%s", tn_ctx_option(v->ctx, "data.path"));
    char *name = cli_format("%s%s", value, whole ? "" : part);
    const char *settings[] = {path, NULL};
    tn_app *app = tn_app_open(.name = "tenon", .settings = settings);

    if (path && name && tn_app_ok(app) && !tn_data_open(app, name, .batch = 1))
        fault_set(v, tn_app_status(app), "%s", tn_app_error(app));
    (void)tn_app_close(app);
    free(name);
    free(path);
}

static void data_there(values *v, const char *value)
{
    part_there(v, value, ":train");
}

static void valid_there(values *v, const char *value)
{
    if (strcmp(value, "none") != 0)
        part_there(v, value, ":test");
}

/* ---- all ---- */

static const struct {
    const char *key;
    void (*look)(values *v, const char *value);
    int32_t level;
} rows[] = {
    {"train.model", model_there, TN_LOG_WARNING}, {"train.params", file_there, TN_LOG_WARNING},
    {"train.data", data_there, TN_LOG_WARNING},   {"train.valid", valid_there, TN_LOG_WARNING},
    {"data.path", folders_there, TN_LOG_INFO},    {"run.dir", folder_free, TN_LOG_WARNING},
    {"profiler.file", file_made, TN_LOG_WARNING},
};

static void value_look(values *v, const tn_option_info *o, tn_problem_fn fn, void *arg)
{
    tn_problem p = {.struct_size = TN_SIZE(tn_problem)};
    char *text;

    *v->fault = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].key, o->key) && o->origin != TN_ORIGIN_DEFAULT && *o->value) {
            p.level = rows[i].level;
            rows[i].look(v, o->value);
        }
    if (!*v->fault ||
        !(text = cli_format("%s%s%s = %s: %s", o->where, *o->where ? ": " : "", o->key, o->value, v->fault)))
        return;
    p.status = v->status;
    p.number = (uint32_t)v->status;
    p.text = text;
    fn(arg, &p);
    free(text);
}

void config_values_check(const tn_open_options *options, tn_problem_fn fn, void *arg)
{
    values *v = calloc(1, sizeof *v);
    size_t count = 0;

    if (v && !tn_open(options, &v->ctx) && !tn_ctx_option_count(v->ctx, &count))
        for (size_t i = 0; i < count; i++) {
            tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

            if (!tn_ctx_option_at(v->ctx, i, &o))
                value_look(v, &o, fn, arg);
        }
    if (v)
        tn_close(v->ctx);
    free(v);
}
