/*
 * tenon plugins inspect: all that is to be known of one plugin, which is loaded once its checks are passed.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/plugins.h"

#define BACKWARD "_backward_"

static const char *name_next(const void *from, size_t index)
{
    static char name[64];
    tn_plugin_info p;

    if (!cli_plugin_at((tn_app *)from, index, &p))
        return NULL;
    (void)snprintf(name, sizeof name, "%s", p.name);
    return name;
}

/* Takes `text`, which is NULL without memory. */
static bool absent(tn_app *app, char *text)
{
    (void)tn_app_fail(app, TN_E_DEVICE, text ? text : "there is no such plugin");
    free(text);
    return false;
}

/* Loads the plugin that `what` names; its index. */
static bool plugin_find(tn_app *app, const char *what, size_t *index, tn_plugin_info *p)
{
    tn_ctx *ctx = tn_app_ctx(app);
    char path[PATH_MAX], similar[CLI_SIMILAR_BYTES];
    size_t count = 0;

    if (cli_plugin_is_file(what)) {
        if (!realpath(what, path))
            return absent(app, cli_format("%s: %s", what, strerror(errno)));
        if (tn_app_check(app, tn_plugin_open(ctx, path, index)) || !cli_plugin_at(app, *index, p))
            return false;
        what = p->name;
    }
    if (tn_plugin_load(ctx, what) == TN_E_KEY)
        return absent(app, cli_format("there is no plugin %.60s%s; `tenon plugins list` shows what was found",
                                      what, cli_similar_text(cli_nearest(what, name_next, app), similar)));
    if (tn_error_code() && tn_app_check(app, tn_error_code()))
        return false;
    (void)tn_plugin_count(ctx, &count);
    for (*index = 0; *index < count; ++*index)
        if (cli_plugin_at(app, *index, p) && p->state == TN_PLUGIN_LOADED && !strcmp(p->name, what))
            return true;
    return false;
}

/* ---- JSON ---- */

static json_t *libraries_json(tn_app *app, size_t index)
{
    json_t *list = json_array();
    tn_library_info l = {.struct_size = TN_SIZE(tn_library_info)};

    for (size_t i = 0; !tn_plugin_library(tn_app_ctx(app), index, i, &l); i++)
        (void)json_array_append_new(list, json_pack("{s:o,s:b,s:o}", "name", cli_json_text(l.name), "found",
                                                    l.found, "path",
                                                    *l.path ? cli_json_text(l.path) : json_null()));
    return list;
}

static json_t *capabilities_json(tn_app *app, size_t index)
{
    json_t *list = json_array();
    tn_capability_info c = {.struct_size = TN_SIZE(tn_capability_info)};

    for (size_t i = 0; !tn_plugin_capability(tn_app_ctx(app), index, i, &c); i++)
        (void)json_array_append_new(list, json_pack("{s:s,s:o,s:i}", "kind", c.kind, "id",
                                                    cli_json_text(c.id), "count", (int)c.count));
    return list;
}

static json_t *options_json(tn_app *app, size_t index)
{
    json_t *list = json_array();
    tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

    for (size_t i = 0; !tn_plugin_option(tn_app_ctx(app), index, i, &o); i++)
        (void)json_array_append_new(
            list, json_pack("{s:o,s:s,s:o,s:o,s:o,s:o,s:o}", "key", cli_json_text(o.key), "type", o.type,
                            "choices", cli_json_text(o.choices), "default", cli_json_text(o.default_text),
                            "value", cli_json_text(o.value), "origin", cli_json_text(o.where), "help",
                            cli_json_text(o.help)));
    return list;
}

static json_t *types_json(const char *const *types)
{
    json_t *list = json_array();

    for (; *types; types++)
        (void)json_array_append_new(list, cli_json_text(*types));
    return list;
}

static json_t *kernels_json(tn_app *app, const char *plugin)
{
    json_t *list = json_array();
    tn_kernel_info *kernels = cli_kernels(app);

    for (const tn_kernel_info *k = kernels; k && k->op; k++)
        if (!strcmp(k->plugin, plugin))
            (void)json_array_append_new(
                list,
                json_pack("{s:s,s:s,s:s,s:s,s:i,s:[i,i],s:o,s:b,s:b,s:b,s:b}", "op", k->op, "kernel", k->name,
                          "device", k->device, "isa", k->isa, "rank", (int)k->rank, "op_versions",
                          (int)k->op_version_min, (int)k->op_version_max, "types", types_json(k->types),
                          "usable", k->usable, "deterministic", (k->flags & TN_KERNEL_IS_DETERMINISTIC) != 0,
                          "strided", (k->flags & TN_KERNEL_IS_STRIDED) != 0, "adding",
                          (k->flags & TN_KERNEL_IS_ADDING) != 0));
    free(kernels);
    return list;
}

/* ---- text ---- */

static void head_print(const tn_plugin_info *p)
{
    char package[4200];

    (void)printf("%s %s - %s\n", p->name, p->version, *p->summary ? p->summary : "no summary");
    (void)printf("  file      %s, %llu KiB\n", p->path, (unsigned long long)(p->file_bytes + 1023) / 1024);
    (void)printf("  package   %s\n", cli_plugin_package(p, package, sizeof package));
    (void)printf("  vendor    %s, licence %s\n", *p->vendor ? p->vendor : "unknown",
                 *p->license ? p->license : "unknown");
    (void)printf("  ABI       %u.%u, needs %u.%u; %s%s%s\n", (unsigned)p->abi_major, (unsigned)p->abi_minor,
                 (unsigned)p->abi_major, (unsigned)p->abi_minor_min, p->abi, *p->isa ? ", processor " : "",
                 p->isa);
    (void)printf("  build     %s\n", *p->build_id ? p->build_id : "no build id");
}

static void needs_print(tn_app *app, size_t index)
{
    tn_library_info l = {.struct_size = TN_SIZE(tn_library_info)};

    for (size_t i = 0; !tn_plugin_library(tn_app_ctx(app), index, i, &l); i++)
        (void)printf("  %s %s: %s\n", i ? "         " : "libraries", l.name, l.found ? l.path : "not found");
}

/* How many all tables of this kind and name give together; -1: an earlier one told it. */
static long capability_count(tn_app *app, size_t plugin, size_t index, const tn_capability_info *c)
{
    tn_capability_info other = {.struct_size = TN_SIZE(tn_capability_info)};
    long count = 0;

    for (size_t i = 0; !tn_plugin_capability(tn_app_ctx(app), plugin, i, &other); i++) {
        if (strcmp(other.kind, c->kind) || strcmp(other.id, c->id))
            continue;
        if (i < index)
            return -1;
        count += (long)other.count;
    }
    return count;
}

static void capabilities_print(tn_app *app, size_t index)
{
    tn_capability_info c = {.struct_size = TN_SIZE(tn_capability_info)};

    for (size_t i = 0; !tn_plugin_capability(tn_app_ctx(app), index, i, &c); i++) {
        const long count = *c.kind ? capability_count(app, index, i, &c) : (long)c.count;

        if (count >= 0)
            (void)printf("  %s %s %s%s: %ld\n", i ? "         " : "gives    ",
                         *c.kind ? c.kind : "newer than this tool", strcmp(c.kind, "kernels") ? "" : "@",
                         c.id, count);
    }
}

/* One line for each operator, by family; an operator counts once, with its backward. */
static void kernels_print(tn_app *app, const char *plugin)
{
    tn_kernel_info *kernels = cli_kernels(app);
    size_t ops = 0, shown = 0;
    const char *family = NULL;

    (void)tn_op_count(tn_app_ctx(app), &ops);
    for (size_t i = 0; kernels && i < ops; i++) { /* a family's operators were registered together */
        tn_op_info o = {.struct_size = TN_SIZE(tn_op_info)};
        char letters[CLI_LETTERS];

        if (tn_op_at(tn_app_ctx(app), i, &o) || !strncmp(o.name, BACKWARD, sizeof BACKWARD - 1) ||
            !cli_kernel_letters(kernels, plugin, o.name, letters))
            continue;
        if (!shown++)
            (void)puts("\nkernels (F forward, B backward, D deterministic, S strided, h float16)");
        if (!family || strcmp(family, o.family) != 0)
            (void)printf("  %s\n", *o.family ? o.family : *o.plugin ? o.plugin : "the program");
        family = o.family;
        (void)printf("    %s  %s\n", letters, o.name);
    }
    free(kernels);
}

static void options_print(tn_app *app, const tn_plugin_info *p, size_t index)
{
    static const char *const head[] = {"  KEY", "TYPE", "RANGE", "DEFAULT", "NOW", "FROM", "MEANING"};
    cli_column_table t = {.columns = 7};
    tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};
    bool ok = cli_table_row(&t, head);

    if (!p->option_count) {
        cli_table_free(&t);
        return;
    }
    for (size_t i = 0; ok && !tn_plugin_option(tn_app_ctx(app), index, i, &o); i++) {
        char key[100], range[100];
        const char *cells[] = {key, o.type, range, o.default_text, o.value, o.where, o.help};

        (void)snprintf(key, sizeof key, "  %.90s", o.key);
        if (*o.choices || o.min > o.max)
            (void)snprintf(range, sizeof range, "%.90s", o.choices);
        else
            (void)snprintf(range, sizeof range, "%.15g..%.15g", o.min, o.max);
        ok = cli_table_row(&t, cells);
    }
    (void)printf("\noptions, in [plugin.%s]\n", p->name);
    if (ok)
        cli_table_print(&t);
    cli_table_free(&t);
}

static void lines_print(tn_app *app, const tn_plugin_info *p, size_t index)
{
    static const struct {
        const char *kind, *section, *key, *end;
    } lines[] = {
        {"kernels", "kernel", "prefer", ""},
        {"pool", "memory.cpu", "pool", ""},
        {"device", "device", "default", ":0"},
        {"transport", "kvstore", "transport", ""},
    };
    tn_capability_info c = {.struct_size = TN_SIZE(tn_capability_info)};
    tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

    (void)printf("\nlines for a configuration\n  [plugins]\n  require = %s\n", p->name);
    for (size_t k = 0; k < sizeof lines / sizeof *lines; k++)
        for (size_t i = 0, done = 0; !done && !tn_plugin_capability(tn_app_ctx(app), index, i, &c); i++) {
            if (strcmp(c.kind, lines[k].kind) != 0)
                continue;
            (void)printf("  [%s]\n  %s = %s%s\n", lines[k].section, lines[k].key, k ? c.id : p->name,
                         lines[k].end);
            done = 1;
        }
    for (size_t i = 0; !tn_plugin_option(tn_app_ctx(app), index, i, &o); i++)
        (void)printf("%s%s%s  %s = %s\n", i ? "" : "  [plugin.", i ? "" : p->name, i ? "" : "]\n", o.key,
                     o.value);
}

static void text_print(tn_app *app, const tn_plugin_info *p, size_t index)
{
    head_print(p);
    needs_print(app, index);
    capabilities_print(app, index);
    kernels_print(app, p->name);
    options_print(app, p, index);
    lines_print(app, p, index);
}

int cmd_plugins_inspect(const cli_args *args)
{
    tn_app *app = cli_plugins_open(args);
    tn_plugin_info p;
    size_t index = 0;

    if (!tn_app_ok(app) || !plugin_find(app, args->words[0], &index, &p))
        return tn_app_close(app);
    if (args->value[OPT_JSON]) {
        json_t *o = cli_plugin_json(&p);

        (void)json_object_set_new(o, "libraries", libraries_json(app, index));
        (void)json_object_set_new(o, "capabilities", capabilities_json(app, index));
        (void)json_object_set_new(o, "kernels", kernels_json(app, p.name));
        (void)json_object_set_new(o, "options", options_json(app, index));
        cli_json_line(o);
    } else {
        text_print(app, &p, index);
    }
    return tn_app_close(app);
}
