/*
 * tenon plugins list: the notes of all plugins found. Nothing is loaded: what would be loaded at start is
 * taken out of the options.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

#define COLUMNS 6

static const char *const nothing_at_start[] = {"plugins.require=", "device.default=cpu", NULL};
static const char *const states[] = {[TN_PLUGIN_REFUSED] = "refused",
                                     [TN_PLUGIN_READY] = "ready",
                                     [TN_PLUGIN_LOADED] = "loaded",
                                     [TN_PLUGIN_FAILED] = "failed"};

static bool is_refused(const tn_plugin_info *p)
{
    return p->state == TN_PLUGIN_REFUSED || p->state == TN_PLUGIN_FAILED;
}

static const char *state_of(const tn_plugin_info *p)
{
    return p->state >= 0 && p->state <= TN_PLUGIN_FAILED ? states[p->state] : "?";
}

/* The kinds of what it provides, each once: "kernels@cpu op:acme" gives "kernels, op". */
static void kinds_of(const tn_plugin_info *p, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (const char *item = p->provides; *item;) {
        size_t length = strcspn(item, " "), word = strcspn(item, ":@ ");
        char kind[32];

        (void)snprintf(kind, sizeof kind, "%.*s", (int)word, item);
        if (word && !strstr(text, kind) && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", kind);
        item += length + (item[length] == ' ');
    }
}

typedef char row[COLUMNS][300];

static void row_fill(row r, const tn_plugin_info *p)
{
    (void)snprintf(r[0], sizeof r[0], "%s", p->name);
    kinds_of(p, r[1], sizeof r[1]);
    (void)snprintf(r[2], sizeof r[2], "%s", p->version);
    (void)snprintf(r[3], sizeof r[3], "%u.%u", (unsigned)p->abi_major, (unsigned)p->abi_minor);
    (void)snprintf(r[4], sizeof r[4], "%s", state_of(p));
    (void)snprintf(r[5], sizeof r[5], "%s", p->provides);
}

static void table_print(row *rows, size_t count)
{
    int width[COLUMNS] = {0};

    for (size_t i = 0; i < count; i++)
        for (int c = 0; c < COLUMNS; c++)
            width[c] = (int)strlen(rows[i][c]) > width[c] ? (int)strlen(rows[i][c]) : width[c];
    for (size_t i = 0; i < count; i++)
        for (int c = 0; c < COLUMNS; c++)
            (void)printf("%-*s%s", c + 1 < COLUMNS ? width[c] : 0, rows[i][c], c + 1 < COLUMNS ? "  " : "\n");
}

static void text_print(tn_app *app, size_t count)
{
    static const char *const head[COLUMNS] = {"NAME", "KIND", "VERSION", "ABI", "STATE", "GIVES"};
    row *rows = calloc(count + 1, sizeof *rows);
    size_t used = 1;

    if (!rows) {
        (void)tn_app_fail(app, TN_E_NOMEM, "out of memory");
        return;
    }
    for (int c = 0; c < COLUMNS; c++)
        (void)snprintf(rows[0][c], sizeof rows[0][c], "%s", head[c]);
    for (size_t i = 0; i < count; i++) {
        tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

        if (!tn_app_check(app, tn_plugin_at(tn_app_ctx(app), i, &p)) && !is_refused(&p))
            row_fill(rows[used++], &p);
    }
    table_print(rows, used);
    free(rows);
    for (size_t i = 0; i < count; i++) {
        tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

        if (!tn_app_check(app, tn_plugin_at(tn_app_ctx(app), i, &p)) && is_refused(&p))
            (void)printf("rejected: %s: L%02u: %s\n", *p.path ? p.path : p.name, (unsigned)p.refusal,
                         p.reason);
    }
}

static json_t *plugin_json(const tn_plugin_info *p)
{
    const struct {
        const char *key, *text;
    } texts[] = {
        {"name", p->name},       {"version", p->version},   {"vendor", p->vendor},
        {"license", p->license}, {"summary", p->summary},   {"isa", p->isa},
        {"platform", p->abi},    {"build_id", p->build_id}, {"path", p->path},
        {"state", state_of(p)},  {"provides", p->provides}, {"reason", p->reason},
    };
    json_t *o = json_object();
    char abi[32], code[16] = "";

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        (void)json_object_set_new(o, texts[i].key, cli_json_text(texts[i].text));
    (void)snprintf(abi, sizeof abi, "%u.%u", (unsigned)p->abi_major, (unsigned)p->abi_minor);
    if (p->refusal)
        (void)snprintf(code, sizeof code, "L%02u", (unsigned)p->refusal);
    (void)json_object_set_new(o, "abi", json_string(abi));
    (void)json_object_set_new(o, "refusal", *code ? json_string(code) : json_null());
    return o;
}

int cmd_plugins_list(const cli_args *args)
{
    tn_app *app;
    size_t count = 0;
    cli_args plain = *args; /* its texts stay args' */

    for (size_t i = 0; nothing_at_start[i]; i++)
        if (plain.setting_count < CLI_SETTINGS_MAX)
            plain.settings[plain.setting_count++] = (char *)nothing_at_start[i];
    plain.settings[plain.setting_count] = NULL;
    app = cli_app_open(&plain, NULL);
    if (!tn_app_ok(app) || tn_app_check(app, tn_plugin_count(tn_app_ctx(app), &count)))
        return tn_app_close(app);
    if (args->value[OPT_JSON]) {
        json_t *list = json_array();

        for (size_t i = 0; i < count; i++) {
            tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

            if (!tn_app_check(app, tn_plugin_at(tn_app_ctx(app), i, &p)))
                (void)json_array_append_new(list, plugin_json(&p));
        }
        cli_json_line(json_pack("{s:o}", "plugins", list));
    } else {
        text_print(app, count);
    }
    return tn_app_close(app);
}
