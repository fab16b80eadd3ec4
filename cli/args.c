/*
 * Arguments: one table of all options, what a command line says of them, and the nearest name to a wrong one.
 *
 * An option that stands for one of the library's (--epochs for train.epochs) becomes a setting like --set, in
 * the order given: the last one wins.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define NAME_MAX_BYTES 64 /* longer names are not compared for suggestions */

const cli_option cli_options[OPT_COUNT] = {
#define CLI_OPTION(id, letter, name, value, setting, help) [OPT_##id] = {letter, name, value, setting, help},
#include "options.list"
#undef CLI_OPTION
};
const uint8_t cli_common_options[] = {OPT_CONFIG,  OPT_SET,  OPT_JSON, OPT_QUIET,
                                      OPT_VERBOSE, OPT_HELP, OPT_NONE};

/* ---- the nearest name ---- */

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Levenshtein's distance, with neighbours that changed places as one step. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][NAME_MAX_BYTES + 1], m = strlen(a), n = strlen(b);
    size_t *before = rows[0], *last = rows[1], *now = rows[2];

    if (m > NAME_MAX_BYTES || n > NAME_MAX_BYTES)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        before[j] = last[j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *oldest = before;

        now[0] = i;
        for (size_t j = 1; j <= n; j++) {
            now[j] = smaller(smaller(last[j], now[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = smaller(now[j], before[j - 2] + 1);
        }
        before = last;
        last = now;
        now = oldest;
    }
    return last[n];
}

/* Of the names that hold the text, or that it holds, whatever the case, the one nearest in length: openblas
 * means cpu-openblas, and convolution conv. */
static const char *holding(const char *text, const char *(*next)(const void *from, size_t index),
                           const void *from)
{
    const size_t length = strlen(text);
    size_t best = SIZE_MAX, best_index = 0;
    const char *name;

    for (size_t i = 0; length > 2 && (name = next(from, i)); i++) {
        const size_t n = strlen(name), far = n > length ? n - length : length - n;

        if (far < best && (strcasestr(name, text) || (n > 2 && strcasestr(text, name)))) {
            best = far;
            best_index = i;
        }
    }
    return best == SIZE_MAX ? NULL : next(from, best_index);
}

const char *cli_similar(const char *text, const char *(*next)(const void *from, size_t index),
                        const void *from)
{
    size_t best = 1 + strlen(text) / 3, best_index = SIZE_MAX;
    const char *name;

    for (size_t i = 0; (name = next(from, i)); i++) {
        size_t d = distance(text, name);

        if (d < best || (d == best && best_index == SIZE_MAX)) {
            best = d;
            best_index = i;
        }
    }
    return best_index == SIZE_MAX ? NULL : next(from, best_index);
}

const char *cli_nearest(const char *text, const char *(*next)(const void *from, size_t index),
                        const void *from)
{
    const char *similar = cli_similar(text, next, from);

    return similar ? similar : holding(text, next, from);
}

const char *cli_similar_text(const char *similar, char text[CLI_SIMILAR_BYTES])
{
    text[0] = '\0';
    if (similar)
        (void)snprintf(text, CLI_SIMILAR_BYTES, "; did you mean \"%.200s\"?", similar);
    return text;
}

static const char *option_name(const void *from, size_t index)
{
    const cli_command *command = from;
    size_t own = 0;

    while (command->options[own] != OPT_NONE)
        own++;
    if (index < own)
        return cli_options[command->options[index]].name;
    return index - own < sizeof cli_common_options ? cli_options[cli_common_options[index - own]].name : NULL;
}

/* ---- parsing ---- */

static bool takes(const cli_command *command, uint8_t id)
{
    for (const uint8_t *own = command->options; *own != OPT_NONE; own++)
        if (*own == id)
            return true;
    for (const uint8_t *common = cli_common_options; *common != OPT_NONE; common++)
        if (*common == id)
            return true;
    return false;
}

/* Names that other tools have for our options. */
static const char *other_name(const char *name)
{
    static const char *const names[][2] = {
        {"learning-rate", "lr"},  {"batch-size", "batch"},    {"num-epochs", "epochs"},
        {"num-epoch", "epochs"},  {"max-epochs", "epochs"},   {"dataset", "data"},
        {"data-dir", "data"},     {"train-data", "data"},     {"output-dir", "out"},
        {"save-dir", "out"},      {"ctx", "device"},          {"gpu", "device"},
        {"gpus", "device"},       {"np", "num-workers"},      {"nproc", "num-workers"},
        {"checkpoint", "resume"}, {"continue", "resume"},     {"seed-value", "seed"},
        {"weight-decay", "wd"},   {"workers", "num-workers"}, {"val", "valid"},
        {"val-data", "valid"},    {"validation", "valid"},    {"net", "model"},
        {"arch", "model"},        {"optim", "optimizer"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i][0]))
            return names[i][1];
    return NULL;
}

static bool name_taken(const cli_command *command, const char *name)
{
    const char *own;

    for (size_t i = 0; (own = option_name(command, i)); i++)
        if (!strcmp(own, name))
            return true;
    return false;
}

/* The library's option of this name, for --set: momentum is train.momentum. */
static const char *library_option(const char *name)
{
    static char key[NAME_MAX_BYTES * 2];

    for (size_t i = 0; i < tn_option_count(); i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};
        const char *dot = tn_option_at(i, &o) ? NULL : strrchr(o.key, '.');
        size_t n = 0;

        while (dot && dot[n + 1] && (dot[n + 1] == name[n] || (dot[n + 1] == '_' && name[n] == '-')))
            n++;
        if (!dot || !n || dot[n + 1] || name[n])
            continue;
        (void)snprintf(key, sizeof key, "%s", o.key);
        return key;
    }
    return NULL;
}

/* "; did you mean --lr?", or what sets it otherwise. `name` without its dashes. */
static void option_unknown(const cli_command *command, const char *given)
{
    char name[NAME_MAX_BYTES + 1];
    const char *similar, *other, *key = NULL;

    (void)snprintf(name, sizeof name, "%s", given + strspn(given, "-"));
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    similar = other = other_name(name);
    if (!similar || !name_taken(command, similar))
        similar = other ? NULL : cli_similar(name, option_name, command);
    if (!similar)
        key = library_option(other ? other : name);
    cli_error("unknown option %s%s%s%s%s%s; `tenon %s --help` lists them", given,
              similar ? "; did you mean --" : "", similar ? similar : "", key ? "; did you mean --set " : "",
              key ? key : "",
              key       ? "=VALUE?"
              : similar ? "?"
                        : "",
              command->name);
}

/* The option that `text` (with its dashes) names, and in `*value` what follows "=";
 * OPT_NONE: unknown, said. */
static uint8_t option_find(const cli_command *command, const char *text, const char **value)
{
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : strlen(text);
    char name[NAME_MAX_BYTES + 1];

    *value = equals ? equals + 1 : NULL;
    for (uint8_t id = 1; id < OPT_COUNT; id++) {
        const cli_option *o = &cli_options[id];

        if (!takes(command, id))
            continue;
        if (text[1] == '-' && strlen(o->name) == length - 2 && !strncmp(o->name, text + 2, length - 2))
            return id;
        if (text[1] != '-' && o->letter && text[1] == o->letter && !text[2])
            return id;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)smaller(length, NAME_MAX_BYTES), text);
    option_unknown(command, name);
    return OPT_NONE;
}

static bool setting_add(cli_args *args, char *text)
{
    if (text && args->setting_count < CLI_SETTINGS_MAX) {
        args->settings[args->setting_count++] = text;
        return true;
    }
    if (text)
        cli_error("more than %d settings", CLI_SETTINGS_MAX);
    free(text);
    return false;
}

bool cli_args_setting(cli_args *args, const char *key, const char *value)
{
    return setting_add(args, cli_format("%s=%s", key, value));
}

static bool option_take(cli_args *args, uint8_t id, const char *value)
{
    const cli_option *o = &cli_options[id];

    if (args->given_count >= CLI_SETTINGS_MAX) {
        cli_error("more than %d options", CLI_SETTINGS_MAX);
        return false;
    }
    args->given[args->given_count].id = id;
    args->given[args->given_count++].value = value;
    args->value[id] = value;
    if (id == OPT_SET) {
        if (!strchr(value, '=') || *value == '=') {
            cli_error("--set %s: SECTION.KEY=VALUE is needed", value);
            return false;
        }
        return setting_add(args, cli_format("%s", value));
    }
    return !o->setting || cli_args_setting(args, o->setting, value);
}

bool cli_option_may_stand_alone(const cli_option *o)
{
    const char *end = o->value && *o->value == '[' ? strchr(o->value, ']') : NULL;

    return end && !end[1];
}

/* One argument that begins with '-'; `*index` moves on if its value is the next one. */
static bool option_read(cli_args *args, int *index)
{
    const char *text = args->argv[*index], *value;
    uint8_t id = option_find(args->command, text, &value);
    const cli_option *o = &cli_options[id];
    const char *next = *index + 1 < args->argc ? args->argv[*index + 1] : NULL;
    const bool alone = cli_option_may_stand_alone(o);

    if (id == OPT_NONE)
        return false;
    if (!o->value) {
        if (!value)
            return option_take(args, id, "");
        cli_error("--%s takes no value", o->name);
        return false;
    }
    if (!value && next && (!alone || *next != '-')) {
        value = next;
        ++*index;
    }
    if (value && !*value) { /* a shell's variable that is not set; never the default instead */
        cli_error("--%s: the value is empty: %s is needed", o->name, o->value);
        return false;
    }
    if (!value && alone)
        value = "";
    if (value)
        return option_take(args, id, value);
    cli_error("--%s needs a value: %s", o->name, o->value);
    return false;
}

bool cli_args_parse(cli_args *args, const cli_command *command, int first, int argc, char *const *argv)
{
    bool only_words = false;

    memset(args, 0, sizeof *args);
    args->command = command;
    args->argc = argc;
    args->argv = argv;
    for (int i = first; i < argc && !args->rest; i++) {
        if (!only_words && !strcmp(argv[i], "--")) {
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1]) {
            if (!option_read(args, &i))
                return false;
        } else if (command->words_max == CLI_WORDS_REST) {
            args->rest = argv + i;
            args->rest_count = (size_t)(argc - i);
        } else if (args->word_count < command->words_max) {
            args->words[args->word_count++] = argv[i];
        } else {
            cli_error("%s: argument \"%s\" is one too many; `tenon %s --help` shows it", command->name,
                      argv[i], command->name);
            return false;
        }
    }
    if (args->value[OPT_HELP] || args->word_count >= command->words_min)
        return true;
    cli_error("%s: an argument is missing: %s; `tenon %s --help` shows it", command->name, command->words,
              command->name);
    return false;
}

const char *cli_args_each(const cli_args *args, cli_option_id id, size_t *cursor)
{
    while (*cursor < args->given_count)
        if (args->given[(*cursor)++].id == (uint8_t)id)
            return args->given[*cursor - 1].value;
    return NULL;
}

void cli_args_fini(cli_args *args)
{
    for (size_t i = 0; i < args->setting_count; i++)
        free(args->settings[i]);
    args->setting_count = 0;
}
