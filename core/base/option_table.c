/* The rows of options.list, and how the text of a value is read. The rows never change; values are in
 * options.c. */
#include <math.h>
#include <string.h>

#include "base/options_internal.h"

const tni_option_def option_defs[] = {
#define TN_OPTION(...) OPTION_ROW(__VA_ARGS__)
#define OPTION_ROW(key_, type_, choices_, default_, min_, max_, flags_, env_, since_, help_)                 \
    {.key = key_,                                                                                            \
     .type = type_,                                                                                          \
     .choices = choices_,                                                                                    \
     .default_text = default_,                                                                               \
     .help = help_,                                                                                          \
     .since = since_,                                                                                        \
     .env = env_,                                                                                            \
     .min = min_,                                                                                            \
     .max = max_,                                                                                            \
     .flags = flags_},
#define TN_OPTION_FOREIGN(names, key)
#define TN_OPTION_DEVICE(name)
#include "base/options.list"
#undef TN_OPTION
#undef TN_OPTION_FOREIGN
#undef TN_OPTION_DEVICE
};
const size_t option_def_count = sizeof option_defs / sizeof option_defs[0];

const option_foreign option_foreigns[] = {
#define TN_OPTION(...)
#define TN_OPTION_FOREIGN(names_, key_) {.names = names_, .key = key_},
#define TN_OPTION_DEVICE(name)
#include "base/options.list"
#undef TN_OPTION
#undef TN_OPTION_FOREIGN
#undef TN_OPTION_DEVICE
};
const size_t option_foreign_count = sizeof option_foreigns / sizeof option_foreigns[0];

static const char *const devices[] = {
#define TN_OPTION(...)
#define TN_OPTION_FOREIGN(names, key)
#define TN_OPTION_DEVICE(name) name,
#include "base/options.list"
#undef TN_OPTION
#undef TN_OPTION_FOREIGN
#undef TN_OPTION_DEVICE
    NULL,
};

const char *const *tni_option_devices(void)
{
    return devices;
}

const tni_option_def *tni_option_defs(size_t *count)
{
    *count = option_def_count;
    return option_defs;
}

bool option_is_pattern(const tni_option_def *def)
{
    return strchr(def->key, '*') != NULL;
}

bool option_stops(const char *stops, char c)
{
    for (; *stops; stops++)
        if (*stops == c)
            return true;
    return false;
}

/* At most three wildcards per pattern and 160 bytes of text bound the recursion. */
bool option_glob(const char *pattern, const char *text, const char *stops)
{
    while (*pattern && *pattern != '*') {
        if (*pattern++ != *text++)
            return false;
    }
    if (!*pattern)
        return !*text;
    for (size_t n = 0; text[n] && !option_stops(stops, text[n]); n++)
        if (option_glob(pattern + 1, text + n + 1, stops))
            return true;
    return false;
}

const tni_option_def *option_def_find(const char *key)
{
    if (strnlen(key, OPTION_KEY_MAX) == OPTION_KEY_MAX)
        return NULL;
    for (size_t i = 0; i < option_def_count; i++) {
        const tni_option_def *def = &option_defs[i];

        if (option_is_pattern(def) ? option_glob(def->key, key, ".@") : strcmp(def->key, key) == 0)
            return def;
    }
    return NULL;
}

tn_status tni_option_def_find(const char *key, const tni_option_def **out)
{
    const tni_option_def *def = option_def_find(key);

    if (!def)
        return option_unknown(key, "");
    *out = def;
    return TN_OK;
}

void option_env_name(const char *key, char out[OPTION_KEY_MAX + 16])
{
    const char *split = strrchr(key, '.');
    size_t at = (size_t)snprintf(out, OPTION_KEY_MAX + 16, "TENON_");

    for (const char *c = key; *c && at + 2 < OPTION_KEY_MAX + 16; c++) {
        if (c == split)
            out[at++] = '_';
        out[at++] = (char)(*c == '.' || *c == '-' || *c == '@' ? '_'
                           : *c >= 'a' && *c <= 'z'            ? *c - 'a' + 'A'
                                                               : *c);
    }
    out[at] = '\0';
}

/* ---- values ---------------------------------------------------------------------------------- */

typedef struct unit {
    const char *name;
    double factor;
} unit;

static const unit byte_units[] = {{"", 1},
                                  {"B", 1},
                                  {"K", 1024.0},
                                  {"KB", 1024.0},
                                  {"KiB", 1024.0},
                                  {"M", 1048576.0},
                                  {"MB", 1048576.0},
                                  {"MiB", 1048576.0},
                                  {"G", 1073741824.0},
                                  {"GB", 1073741824.0},
                                  {"GiB", 1073741824.0},
                                  {"T", 1099511627776.0},
                                  {"TB", 1099511627776.0},
                                  {"TiB", 1099511627776.0},
                                  {NULL, 0}};
static const unit time_units[] = {{"", 1},      {"ms", 1},      {"s", 1000}, {"min", 60000},
                                  {"m", 60000}, {"h", 3600000}, {NULL, 0}};

/* "4 MiB", "1.5s": a number, perhaps a space, a unit. */
static bool scaled_parse(const char *text, const unit *units, double *out)
{
    size_t digits = strspn(text, "0123456789.");
    char number[64];
    double value;

    if (digits == 0 || digits >= sizeof number)
        return false;
    memcpy(number, text, digits);
    number[digits] = '\0';
    text += digits + strspn(text + digits, " ");
    for (; units->name; units++) {
        if (strcmp(text, units->name) != 0)
            continue;
        if (!tni_parse_f64(number, &value))
            return false;
        *out = value * units->factor;
        return *out == floor(*out) && *out <= 9.0e18;
    }
    return false;
}

static bool bool_parse(const char *text, int64_t *out)
{
    static const char *const words[] = {"false", "true", "0", "1", "off", "on", "no", "yes", "False", "True"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = (int64_t)(i & 1);
            return true;
        }
    return false;
}

/* Index of `text` among names divided by '|', or -1. */
static int64_t choice_index(const char *choices, const char *text)
{
    size_t length = strlen(text);
    int64_t index = 0;

    for (const char *at = choices; length > 0; index++) {
        size_t part = strcspn(at, "|");

        if (part == length && strncmp(at, text, part) == 0)
            return index;
        if (at[part] == '\0')
            break;
        at += part + 1;
    }
    return -1;
}

typedef struct value_type {
    const char *name, *expected;
} value_type;

static bool typed_parse(const tni_option_def *def, const char *text, int64_t *integer, double *number)
{
    switch (def->type[0]) {
    case 'i': /* int */
        *number = 0;
        if (!tni_parse_i64(text, integer))
            return false;
        *number = (double)*integer;
        return true;
    case 'f': /* float */
        return tni_parse_f64(text, number) && isfinite(*number);
    case 'b': /* bool, bytes */
        if (strcmp(def->type, "bool") == 0)
            return bool_parse(text, integer);
        if (!scaled_parse(text, byte_units, number))
            return false;
        *integer = (int64_t)*number;
        return true;
    case 'd': /* duration_ms */
        if (!scaled_parse(text, time_units, number))
            return false;
        *integer = (int64_t)*number;
        return true;
    case 'c': /* choice */
        *integer = choice_index(def->choices, text);
        return *integer >= 0;
    default: /* text, list */
        return true;
    }
}

static const value_type value_types[] = {
    {"int", "an integer"},
    {"float", "a number"},
    {"bool", "true or false"},
    {"bytes", "a size such as 4096 or 64MiB"},
    {"duration_ms", "a time such as 500ms or 10s"},
};

static tn_status value_refuse(const tni_option_def *def, const char *key, const char *where, const char *text)
{
    const char *gap = where[0] ? ": " : "";

    if (strcmp(def->type, "choice") == 0)
        return tni_error_number(1205, TN_E_ARG, "%s%s%s = %.100s, but it is one of %s", where, gap, key, text,
                                def->choices);
    for (size_t i = 0; i < sizeof value_types / sizeof value_types[0]; i++)
        if (strcmp(def->type, value_types[i].name) == 0)
            return tni_error_number(1205, TN_E_ARG, "%s%s%s = %.100s, expected %s", where, gap, key, text,
                                    value_types[i].expected);
    return tni_error(TN_E_INTERNAL, "option %s has the unknown type %s", key, def->type);
}

tn_status tni_option_parse(const tni_option_def *def, const char *key, const char *where, const char *text,
                           int64_t *integer, double *number)
{
    char low[32], high[32];

    *integer = 0;
    *number = 0;
    if (strnlen(text, TN_OPTION_VALUE_MAX + 1) > TN_OPTION_VALUE_MAX)
        return tni_error(TN_E_ARG, "%s: the value has more than %d bytes", key, TN_OPTION_VALUE_MAX);
    if (!typed_parse(def, text, integer, number))
        return value_refuse(def, key, where, text);
    if (def->min > def->max || (*number >= def->min && *number <= def->max))
        return TN_OK;
    tni_format_f64(low, sizeof low, def->min);
    tni_format_f64(high, sizeof high, def->max);
    return tni_error_number(1205, TN_E_ARG, "%s%s%s = %.100s, allowed are %s to %s %s", where,
                            where[0] ? ": " : "", key, text, low, high, def->choices);
}
