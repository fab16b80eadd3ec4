/*
 * Options from the environment: first the names that MXNet and OpenMP users know, with their values
 * translated, then TENON_SECTION__KEY. What is unknown or may not be set there is a warning, never an error:
 * the environment belongs to many programs. A TENON_ variable with a bad value is an error.
 */
#include <stdlib.h>
#include <string.h>

#include "base/options_internal.h"

#define FOREIGN_NAME_MAX 64

extern char **environ;

/* Variables of ours that are no options. */
static const char *const reserved[] = {"TENON_FAILPOINT", "TENON_TEST_", "TENON_SWITCH", "TENON_DEBUG_",
                                       NULL};

static bool is_reserved(const char *name)
{
    for (const char *const *r = reserved; *r; r++)
        if (strncmp(name, *r, strlen(*r)) == 0)
            return true;
    return false;
}

/* Finds `value` in "theirs:ours;theirs:ours" of `length` bytes. */
static bool value_translate(const char *pairs, size_t length, const char *value, char *out, size_t size)
{
    const char *end = pairs + length;

    while (pairs < end) {
        size_t pair = 0, left = 0;

        while (pairs + pair < end && pairs[pair] != ';')
            pair++;
        while (left < pair && pairs[left] != ':')
            left++;
        if (left < pair && strlen(value) == left && strncmp(pairs, value, left) == 0) {
            snprintf(out, size, "%.*s", (int)(pair - left - 1), pairs + left + 1);
            return true;
        }
        pairs += pair + 1;
    }
    return false;
}

/* One of "NAME{…},NAME". Moves `*names` behind it. */
static void foreign_read(tni_options *o, const char **names, const char *key)
{
    const char *at = *names, *pairs = NULL;
    size_t length = strcspn(at, ",{"), pairs_length = 0;
    char name[FOREIGN_NAME_MAX], value[256];
    const char *text;

    snprintf(name, sizeof name, "%.*s", (int)length, at);
    at += length;
    if (*at == '{') {
        pairs = at + 1;
        pairs_length = strcspn(pairs, "}");
        at = pairs + pairs_length + 1;
    }
    *names = *at == ',' ? at + 1 : at;
    text = getenv(name);
    if (!text || !text[0])
        return;
    if (!pairs) /* OMP_NUM_THREADS=4,2 has one number per nesting level */
        snprintf(value, sizeof value, "%.*s", (int)strcspn(text, ","), text);
    else if (!value_translate(pairs, pairs_length, text, value, sizeof value)) {
        tni_logf(option_log(o), TN_LOG_WARNING, "%s=%.100s is not understood; %s stays %s", name, text, key,
                 tni_option_text(o, key));
        return;
    }
    if (tni_options_set_value(o, key, value, TN_ORIGIN_MXNET, name)) {
        tni_logf(option_log(o), TN_LOG_WARNING, "%s=%.100s is ignored: %s", name, text, tni_error_message());
        tni_error_clear();
    }
}

static void foreign_read_all(tni_options *o)
{
    for (size_t i = 0; i < option_def_count; i++)
        for (const char *names = option_defs[i].env; *names;)
            foreign_read(o, &names, option_defs[i].key);
    for (size_t i = 0; i < option_foreign_count; i++)
        for (const char *names = option_foreigns[i].names; *names;)
            foreign_read(o, &names, option_foreigns[i].key);
}

static const tni_option_def *env_def_find(const char *name)
{
    char env[OPTION_KEY_MAX + 16];

    for (size_t i = 0; i < option_def_count; i++) {
        option_env_name(option_defs[i].key, env);
        if (option_is_pattern(&option_defs[i]) ? option_glob(env, name, "") : strcmp(env, name) == 0)
            return &option_defs[i];
    }
    return NULL;
}

static void env_unknown(tni_options *o, const char *name)
{
    const char **names = tni_calloc(option_def_count + 1, sizeof *names);
    char(*texts)[OPTION_KEY_MAX + 16] = tni_calloc(option_def_count, sizeof *texts);
    const char *best[3];
    size_t count = 0, found = 0;

    if (names && texts) {
        for (size_t i = 0; i < option_def_count; i++) {
            if (option_is_pattern(&option_defs[i]))
                continue;
            option_env_name(option_defs[i].key, texts[count]);
            names[count] = texts[count];
            count++;
        }
        found = tni_suggest(name, names, best);
    }
    tni_logf(option_log(o), TN_LOG_WARNING, "%.100s names no option and is ignored%s%s%s", name,
             found ? "; did you mean " : "", found ? best[0] : "", found ? "?" : "");
    tni_free(names);
    tni_free(texts);
}

static tn_status env_read(tni_options *o, const char *name, const char *value)
{
    const tni_option_def *def = env_def_find(name);

    if (!def) {
        env_unknown(o, name);
        return TN_OK;
    }
    if (def->flags & TN_OPTION_TRUSTED) {
        tni_logf(option_log(o), TN_LOG_WARNING,
                 "%s is ignored: %s may not come from the environment; use --config or --set", name,
                 def->key);
        return TN_OK;
    }
    if (option_is_pattern(def))
        return option_env_place(o, def, name, value);
    return tni_options_set_value(o, def->key, value, TN_ORIGIN_ENVIRONMENT, name);
}

tn_status tni_options_read_environment(tni_options *o)
{
    char name[OPTION_KEY_MAX + 16];
    tn_status st = TN_OK;

    foreign_read_all(o);
    for (char **e = environ; e && *e && !st; e++) {
        size_t length = strcspn(*e, "=");

        if (strncmp(*e, "TENON_", 6) != 0 || length >= sizeof name || (*e)[length] != '=')
            continue;
        memcpy(name, *e, length);
        name[length] = '\0';
        if (!is_reserved(name))
            st = env_read(o, name, *e + length + 1);
    }
    return st;
}
