/*
 * tenon doctor --report: everything that a report about a fault should hold. What may be a secret is named,
 * its value is not.
 */
#include "doctor/doctor.h"
#include "machine.h"

#include <gnu/libc-version.h>
#include <string.h>
#include <strings.h>

extern char **environ;

bool doctor_secret(const char *name)
{
    static const char *const words[] = {"key", "token", "secret", "passw", "credential", "auth", "cookie"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static void text_set(json_t *o, const char *key, const char *text)
{
    (void)json_object_set_new(o, key, cli_json_text(text));
}

static json_t *versions(void)
{
    json_t *o = json_object();
    char abi[64];
    uint32_t major = 0, minor = 0, draft = 0;

    (void)snprintf(abi, sizeof abi, "%s", tn_abi(&major, &minor, &draft));
    text_set(o, "tenon", tn_version());
    text_set(o, "build_id", tn_build_id());
    (void)json_object_set_new(o, "abi", json_sprintf("%u.%u draft %u %s", major, minor, draft, abi));
    text_set(o, "glibc", gnu_get_libc_version());
    text_set(o, "jansson", jansson_version_str());
    return o;
}

static json_t *machine(void)
{
    json_t *o = json_object();
    struct utsname u;
    char line[256], lacks[32];

    cli_machine_system(&u); /* not the host's name */
    if (*u.sysname)
        (void)json_object_set_new(o, "system", json_sprintf("%s %s %s", u.sysname, u.release, u.machine));
    if (cli_machine_line("/etc/os-release", line, sizeof line))
        text_set(o, "distribution", line);
    cli_machine_cpu(line, sizeof line);
    text_set(o, "processor", line);
    text_set(o, "level", cli_machine_level(lacks));
    (void)json_object_set_new(o, "processors", json_integer(cli_machine_processors()));
    (void)json_object_set_new(o, "group_processors", cli_json_number(cli_machine_group_cpus()));
    (void)json_object_set_new(o, "group_bytes", json_integer(cli_machine_group_bytes()));
    return o;
}

static json_t *plugins(const doctor *d)
{
    json_t *list = json_array();
    size_t count = 0;

    if (d->ctx)
        (void)tn_plugin_count(d->ctx, &count);
    for (size_t i = 0; i < count; i++) {
        tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

        if (!tn_plugin_at(d->ctx, i, &p))
            (void)json_array_append_new(
                list, json_pack("{s:o, s:o, s:o, s:o, s:o, s:i}", "name", cli_json_text(p.name), "version",
                                cli_json_text(p.version), "build_id", cli_json_text(p.build_id), "path",
                                cli_json_text(p.path), "reason", cli_json_text(p.reason), "refusal",
                                (int)p.refusal));
    }
    return list;
}

static const char *shown(const char *name, const char *value)
{
    return doctor_secret(name) && *value ? "(set, not shown)" : value;
}

static json_t *options(const doctor *d)
{
    static const char *const origins[] = {"default", "file", "environment", "environment", "command line"};
    json_t *list = json_array();
    size_t count = 0;

    if (d->ctx)
        (void)tn_ctx_option_count(d->ctx, &count);
    for (size_t i = 0; i < count; i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

        if (tn_ctx_option_at(d->ctx, i, &o) || o.origin == TN_ORIGIN_DEFAULT)
            continue;
        (void)json_array_append_new(
            list, json_pack("{s:o, s:o, s:o}", "key", cli_json_text(o.key), "value",
                            cli_json_text(shown(o.key, o.value)), "from",
                            cli_json_text(*o.where                                    ? o.where
                                          : o.origin > 0 && o.origin <= TN_ORIGIN_SET ? origins[o.origin]
                                                                                      : "?")));
    }
    return list;
}

/* Variables that change what we do. */
static json_t *variables(void)
{
    static const char *const prefixes[] = {
        "TENON_", "MXNET_", "DMLC_", "PS_",    "OMP_",    "GOMP_",           "KMP_", "OPENBLAS_", "GOTO_",
        "LD_",    "LC_",    "LANG",  "GLIBC_", "MALLOC_", "XDG_CONFIG_HOME", "TERM", "NO_COLOR",  "COLUMNS"};
    json_t *o = json_object();

    for (char **e = environ; e && *e; e++) {
        const char *equals = strchr(*e, '=');
        char name[128];
        bool ours = false;

        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
            ours |= !strncmp(*e, prefixes[i], strlen(prefixes[i]));
        if (!ours || !equals || (size_t)(equals - *e) >= sizeof name)
            continue;
        (void)snprintf(name, sizeof name, "%.*s", (int)(equals - *e), *e);
        (void)json_object_set_new(o, name, cli_json_text(shown(name, equals + 1)));
    }
    return o;
}

json_t *doctor_report(const doctor *d)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "versions", versions(), "machine", machine(), "plugins",
                     plugins(d), "options", options(d), "variables", variables());
}

/* ---- as text ---- */

static void value_print(const json_t *value)
{
    if (json_is_string(value))
        cli_say(stdout, "%s", json_string_value(value));
    else if (json_is_integer(value))
        (void)printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else
        (void)printf("%.10g", json_number_value(value));
}

void doctor_report_print(const json_t *report)
{
    const char *section, *key;
    json_t *part, *item, *value;
    size_t i;

    json_object_foreach((json_t *)report, section, part)
    {
        (void)printf("[%s]\n", section);
        json_object_foreach(part, key, value)
        {
            (void)printf("%-18s ", key);
            value_print(value);
            (void)printf("\n");
        }
        json_array_foreach(part, i, item)
        {
            const char *between = "";

            json_object_foreach(item, key, value)
            {
                (void)printf("%s%s=", between, key);
                value_print(value);
                between = " ";
            }
            (void)printf("\n");
        }
        (void)printf("\n");
    }
}
