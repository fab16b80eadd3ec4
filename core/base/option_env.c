/*
 * Options from the environment: first the names that MXNet and OpenMP users know, with their values
 * translated, then TENON_SECTION__KEY. What is unknown or may not be set there is a warning, never an error:
 * the environment belongs to many programs. A TENON_ variable with a bad value is an error.
 */
#include <stdlib.h>
#include <string.h>

#include "base/options_internal.h"

extern char **environ;

/* Variables of ours that are no options. */
static const char *const reserved[] = {"TENON_FAILPOINT", "TENON_TEST_", "TENON_SWITCH", "TENON_DEBUG_",
                                       "TENON_KV_JOB", NULL};

static bool is_reserved(const char *name)
{
    for (const char *const *r = reserved; *r; r++)
        if (strncmp(name, *r, strlen(*r)) == 0)
            return true;
    return false;
}

static void foreign_read(tni_options *o, const tni_variable *v, const char *text)
{
    char value[TN_OPTION_VALUE_MAX + 1];

    if (!v->key[0]) {
        tni_logf(option_log(o), TN_LOG_INFO, "%s is set and means nothing here: %s", v->name, v->reason);
        return;
    }
    if (tni_variable_translate(v, text, value, sizeof value) == TN_OK &&
        (!value[0] || tni_options_set_value(o, v->key, value, TN_ORIGIN_MXNET, v->name) == TN_OK))
        return;
    tni_logf(option_log(o), TN_LOG_WARNING, "%s; %s stays %s", tni_error_message(), v->key,
             tni_option_text(o, v->key));
    tni_error_clear();
}

static void foreign_read_all(tni_options *o)
{
    size_t count;
    const tni_variable *all = tni_variables(&count);

    for (size_t i = 0; i < count; i++) {
        const char *text = getenv(all[i].name);

        if (text && text[0])
            foreign_read(o, &all[i], text);
    }
}

/* A name of a foreign family that none of them reads, but that looks like one they do. */
static void foreign_misspelt(tni_options *o, const char *name)
{
    static const char *const families[] = {"MXNET_", "DMLC_", "PS_", "NNVM_"};
    const char *similar = NULL;

    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strncmp(name, families[i], strlen(families[i])) == 0)
            similar = option_variable_similar(name);
    if (similar && strcmp(similar, name) != 0)
        tni_logf(option_log(o), TN_LOG_WARNING, "%.100s is not known and ignored; did you mean %s?", name,
                 similar);
}

const tni_option_def *option_env_find(const char *name)
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
    char text[300];

    option_suggest_row(name, true, text, sizeof text);
    tni_logf(option_log(o), TN_LOG_WARNING, "%.100s names no option and is ignored%s", name, text);
}

static tn_status env_read(tni_options *o, const char *name, const char *value)
{
    const tni_option_def *def = option_env_find(name);

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

        if (length >= sizeof name && strncmp(*e, "TENON_", 6) == 0)
            tni_logf(option_log(o), TN_LOG_WARNING, "%.60s… names no option and is ignored", *e);
        if (length >= sizeof name || (*e)[length] != '=')
            continue;
        memcpy(name, *e, length);
        name[length] = '\0';
        if (strncmp(name, "TENON_", 6) != 0)
            foreign_misspelt(o, name);
        else if (!is_reserved(name))
            st = tni_options_problem(o, env_read(o, name, *e + length + 1));
    }
    return st;
}
