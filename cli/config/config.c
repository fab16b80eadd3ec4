/*
 * tenon config show: what is in force and what set it. tenon config check: everything that is wrong with
 * files, variables and settings, not only what a command would stop at.
 */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>

static const char *const origins[] = {"default", "file", "mxnet", "environment", "set"};

/* ---- rows -------------------------------------------------------------------------------------------- */

bool config_fits(const char *row, const char *key)
{
    while (*row && *row != '*')
        if (*row++ != *key++)
            return false;
    if (!*row)
        return !*key;
    for (size_t n = 0; key[n] && !strchr(".@", key[n]); n++)
        if (config_fits(row + 1, key + n + 1))
            return true;
    return false;
}

bool config_row(const char *key, tn_option_info *out)
{
    for (size_t i = 0; i < tn_option_count(); i++) {
        *out = (tn_option_info){.struct_size = TN_SIZE(tn_option_info)};
        if (!tn_option_at(i, out) && config_fits(out->key, key))
            return true;
    }
    return false;
}

static json_t *flags_json(uint32_t flags)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } names[] = {{TN_OPTION_INIT, "init"},
                 {TN_OPTION_LIVE, "live"},
                 {TN_OPTION_TRUSTED, "trusted"}};
    json_t *list = json_array();

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (flags & names[i].flag)
            (void)json_array_append_new(list, json_string(names[i].name));
    return list;
}

json_t *config_row_json(const tn_option_info *o)
{
    bool choice = !strcmp(o->type, "choice"), bound = o->min <= o->max;

    return json_pack(
        "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "key", cli_json_text(o->key), "type", o->type,
        "unit", cli_json_text(choice ? "" : o->choices), "choices", cli_json_text(choice ? o->choices : ""),
        "min", bound ? cli_json_number(o->min) : json_null(), "max",
        bound ? cli_json_number(o->max) : json_null(), "default", cli_json_text(o->default_text), "flags",
        flags_json(o->flags), "variables", cli_json_text(o->env), "help", cli_json_text(o->help));
}

/* ---- show -------------------------------------------------------------------------------------------- */

typedef struct shown {
    tn_option_info *rows;
    size_t count, room;
    tn_app *app;
} shown;

static bool show_add(shown *s, const tn_option_info *o)
{
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 256;
        tn_option_info *rows = realloc(s->rows, room * sizeof *rows);

        if (!rows)
            return !tn_app_fail(s->app, TN_E_NOMEM, "out of memory");
        s->rows = rows;
        s->room = room;
    }
    s->rows[s->count++] = *o;
    return true;
}

/* Whether `word` names the key, or its section, or a section above that. */
static bool names(const char *word, const char *key)
{
    size_t length = strlen(word);

    return !strncmp(word, key, length) && (!key[length] || key[length] == '.');
}

/* What is set or has a name of its own: all of it, or what `word` names. */
static size_t show_known(shown *s, const char *word)
{
    size_t count = 0, before = s->count;

    (void)tn_app_check(s->app, tn_ctx_option_count(tn_app_ctx(s->app), &count));
    for (size_t i = 0; i < count && tn_app_ok(s->app); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

        if (!tn_app_check(s->app, tn_ctx_option_at(tn_app_ctx(s->app), i, &o)) &&
            (!word || names(word, o.key)) && !show_add(s, &o))
            break;
    }
    return s->count - before;
}

/* Sections, once for each option in it. */
static const char *section_next(const void *from, size_t index)
{
    static char name[64];
    tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

    (void)from;
    if (tn_option_at(index, &o))
        return NULL;
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(o.key, "."), o.key);
    return name;
}

/* A key without a fixed name that nobody has set, or a variable has in its own spelling. */
static void show_open(shown *s, const char *word)
{
    const char *value = tn_ctx_option(tn_app_ctx(s->app), word);
    tn_option_info o;

    if (!value) {
        const char *similar = strchr(word, '.') ? NULL : cli_nearest(word, section_next, NULL);
        char *why = similar
                        ? cli_format("there is no option and no section %s; did you mean %s?", word, similar)
                        : NULL;

        if (why)
            (void)tn_app_fail(s->app, TN_E_KEY, why);
        (void)tn_app_check(s->app, tn_error_code());
        free(why);
        return;
    }
    if (!config_row(word, &o))
        return;
    o.key = word;
    o.value = value;
    (void)show_add(s, &o);
}

static const char *origin_name(const tn_option_info *o)
{
    return o->origin >= 0 && o->origin <= TN_ORIGIN_SET ? origins[o->origin] : "?";
}

static void show_json(const shown *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->count; i++) {
        const tn_option_info *o = &s->rows[i];
        json_t *row = config_row_json(o);

        (void)json_object_set_new(row, "value", cli_json_text(o->value));
        (void)json_object_set_new(row, "origin", json_string(origin_name(o)));
        (void)json_object_set_new(row, "where", cli_json_text(o->where));
        (void)json_array_append_new(list, row);
    }
    cli_json_line(json_pack("{s:o}", "options", list));
}

static void show_text(const shown *s, bool origin)
{
    int key = 0, value = 0;

    for (size_t i = 0; i < s->count; i++) {
        int wide = (int)strlen(s->rows[i].value);

        key = (int)strlen(s->rows[i].key) > key ? (int)strlen(s->rows[i].key) : key;
        value = wide > value && wide <= 24 ? wide : value;
    }
    for (size_t i = 0; i < s->count; i++) {
        const tn_option_info *o = &s->rows[i];

        if (origin)
            cli_say(stdout, "%-*s = %-*s  %s%s%s\n", key, o->key, value, o->value, origin_name(o),
                    *o->where ? " " : "", o->where);
        else
            cli_say(stdout, "%-*s = %s\n", key, o->key, o->value);
    }
}

int cmd_config_show(const cli_args *args)
{
    tn_app *app = cli_app_open(args, NULL);
    shown s = {.app = app};

    if (!tn_app_ok(app))
        return tn_app_close(app);
    if (!args->word_count)
        (void)show_known(&s, NULL);
    for (size_t i = 0; i < args->word_count && tn_app_ok(app); i++)
        if (!show_known(&s, args->words[i]))
            show_open(&s, args->words[i]);
    if (tn_app_ok(app) && args->value[OPT_JSON])
        show_json(&s);
    else if (tn_app_ok(app))
        show_text(&s, args->value[OPT_ORIGIN] != NULL);
    free(s.rows);
    return tn_app_close(app);
}

/* ---- check ------------------------------------------------------------------------------------------- */

typedef struct findings {
    size_t counts[TN_LOG_DEBUG + 1];
    json_t *list; /* NULL: printed as they come */
    bool quiet;   /* no notes */
} findings;

static void finding_take(void *arg, const tn_problem *p)
{
    static const char *const levels[] = {"error", "warning", "note", "note"};
    findings *f = arg;
    int32_t level = p->level >= TN_LOG_ERROR && p->level <= TN_LOG_DEBUG ? p->level : TN_LOG_INFO;
    char number[16] = "";

    f->counts[level]++;
    if (f->quiet && level >= TN_LOG_INFO)
        return;
    if (p->number)
        (void)snprintf(number, sizeof number, "TN-%04u", (unsigned)p->number);
    if (f->list)
        (void)json_array_append_new(f->list, json_pack("{s:s, s:o, s:o}", "level", levels[level], "number",
                                                       *number ? json_string(number) : json_null(), "text",
                                                       cli_json_text(p->text)));
    else
        cli_say(stdout, "%s%s%s%s: %s\n", levels[level], *number ? "[" : "", number, *number ? "]" : "",
                p->text);
}

int cmd_config_check(const cli_args *args)
{
    const char *files[CLI_WORDS_MAX + 2] = {NULL}, *settings[CLI_SETTINGS_MAX + 1] = {NULL};
    tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                         .flags = TN_OPEN_LOCAL,
                         .files = files,
                         .settings = settings};
    findings f = {.list = args->value[OPT_JSON] ? json_array() : NULL,
                  .quiet = args->value[OPT_QUIET] != NULL};
    size_t count = 0, wrong;
    tn_status st;

    if (args->value[OPT_CONFIG])
        files[count++] = args->value[OPT_CONFIG];
    for (size_t i = 0; i < args->word_count; i++)
        files[count++] = args->words[i];
    for (size_t i = 0; i < args->setting_count; i++)
        settings[i] = args->settings[i];
    if ((st = tn_config_check(&o, finding_take, &f))) {
        cli_error("%s", tn_error_text());
        json_decref(f.list);
        return st == TN_E_NOMEM ? CLI_EXIT_MEMORY : CLI_EXIT_FAILED;
    }
    config_values_check(&o, finding_take, &f);
    wrong = f.counts[TN_LOG_ERROR] + f.counts[TN_LOG_WARNING];
    if (f.list)
        cli_json_line(json_pack("{s:o, s:I, s:I, s:I}", "problems", f.list, "errors",
                                (json_int_t)f.counts[TN_LOG_ERROR], "warnings",
                                (json_int_t)f.counts[TN_LOG_WARNING], "notes",
                                (json_int_t)(f.counts[TN_LOG_INFO] + f.counts[TN_LOG_DEBUG])));
    else if (!args->value[OPT_QUIET])
        (void)fprintf(stderr, "%zu errors, %zu warnings, %zu notes\n", f.counts[TN_LOG_ERROR],
                      f.counts[TN_LOG_WARNING], f.counts[TN_LOG_INFO] + f.counts[TN_LOG_DEBUG]);
    return wrong ? CLI_EXIT_USAGE : 0;
}
