/*
 * What a resumed training has other than the run so far, and what gives its numbers other bits: options that
 * choose kernels, devices and threads, the plugins themselves, the library. run.json has them as they were.
 * None of it is refused, since results stay as good; whoever compares hashes is told.
 */
#include <stdlib.h>
#include <string.h>

#include "train/train.h"

/* Options whose values decide on bits; a '.' at the end stands for all that begin so. */
static const char *const deciding[] = {"kernel.", "plugins.load", "device.default", "engine.threads",
                                       "run.deterministic"};

static bool is_deciding(const char *key)
{
    for (size_t i = 0; i < sizeof deciding / sizeof *deciding; i++) {
        const size_t length = strlen(deciding[i]);

        if (deciding[i][length - 1] == '.' ? !strncmp(key, deciding[i], length) : !strcmp(key, deciding[i]))
            return true;
    }
    return false;
}

static void differs(const char *what, const char *before, const char *now)
{
    cli_say(stderr,
            "note: %s was \"%s\" so far and is \"%s\" now: the training may go on with other bits than "
            "unbroken\n",
            what, before, now);
}

/* ---- options ---- */

/* The value of run.json; "" if it has none. */
static const char *option_before(const json_t *record, const char *key)
{
    const char *name, *value = NULL;
    json_t *o;
    size_t i;

    json_array_foreach(json_object_get(record, "options"), i,
                       o) if ((name = json_string_value(json_object_get(o, "key"))) && !strcmp(name, key))
        value = json_string_value(json_object_get(o, "value"));
    return value ? value : "";
}

/* Options of the context; the open-ended ones (kernel.Op@device) are there only while they are set. */
static bool option_now(tn_app *app, const char *key, const char **value)
{
    tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

    for (size_t i = 0; !tn_ctx_option_at(tn_app_ctx(app), i, &o); i++)
        if (!strcmp(o.key, key)) {
            *value = o.value;
            return true;
        }
    return false;
}

static void options_compare(const json_t *record, tn_app *app)
{
    tn_option_info now = {.struct_size = TN_SIZE(tn_option_info)};
    const char *key, *value = "";
    bool any_threads;
    json_t *o;
    size_t i;

    any_threads = option_now(app, "run.deterministic", &value) && !strcmp(value, "threads") &&
                  !strcmp(option_before(record, "run.deterministic"), value);
    for (i = 0; !tn_ctx_option_at(tn_app_ctx(app), i, &now); i++) {
        const char *before = option_before(record, now.key);

        if (is_deciding(now.key) && strcmp(before, now.value) != 0 &&
            !(any_threads && !strcmp(now.key, "engine.threads")))
            differs(now.key, before, now.value);
    }
    json_array_foreach(json_object_get(record, "options"), i, o)
    {
        key = json_string_value(json_object_get(o, "key"));
        if (key && is_deciding(key) && !option_now(app, key, &value) && *option_before(record, key))
            differs(key, option_before(record, key), "");
    }
}

/* ---- plugins and the library ---- */

static bool plugin_now(tn_app *app, const char *name, tn_plugin_info *p)
{
    for (size_t i = 0; !tn_plugin_at(tn_app_ctx(app), i, p); i++)
        if (!strcmp(p->name, name) && (p->state == TN_PLUGIN_LOADED || p->state == TN_PLUGIN_READY))
            return true;
    return false;
}

static bool plugin_before(const json_t *record, const char *name)
{
    const char *other;
    json_t *p;
    size_t i;

    json_array_foreach(json_object_get(record, "plugins"), i,
                       p) if ((other = json_string_value(json_object_get(p, "name"))) &&
                              !strcmp(other, name)) return true;
    return false;
}

static void plugin_compare(const json_t *old, tn_app *app)
{
    const char *name = json_string_value(json_object_get(old, "name")),
               *build = json_string_value(json_object_get(old, "build_id"));
    tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};
    char *what = name ? cli_format("plugin %s", name) : NULL;

    if (!what || !build || !json_is_true(json_object_get(old, "loaded")))
        ; /* it had no part in the run */
    else if (!plugin_now(app, name, &p))
        differs(what, build, "absent");
    else if (strcmp(p.build_id, build) != 0)
        differs(what, build, p.build_id);
    free(what);
}

/* A plugin that came since may bring kernels that rank before those of the run. */
static void plugins_new(const json_t *record, tn_app *app)
{
    tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

    for (size_t i = 0; !tn_plugin_at(tn_app_ctx(app), i, &p); i++) {
        char *what;

        if ((p.state != TN_PLUGIN_LOADED && p.state != TN_PLUGIN_READY) || !strstr(p.provides, "kernels@") ||
            plugin_before(record, p.name) || !(what = cli_format("plugin %s", p.name)))
            continue;
        differs(what, "absent", p.build_id);
        free(what);
    }
}

void cli_resumed_compare(const cli_run *run, tn_app *app)
{
    const json_t *versions = json_object_get(run->record, "versions"), *plugins, *p;
    const char *build = json_string_value(json_object_get(versions, "build_id"));
    size_t i;

    plugins = json_object_get(run->record, "plugins");
    if (json_array_size(json_object_get(run->record, "options")))
        options_compare(run->record, app);
    json_array_foreach(plugins, i, p) plugin_compare(p, app);
    if (json_array_size(plugins))
        plugins_new(run->record, app);
    if (build && strcmp(build, tn_build_id()) != 0)
        differs("libtenon", build, tn_build_id());
}
