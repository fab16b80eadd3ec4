/*
 * An app for a command: options of the command line in their order, errors on stderr, the log if it is asked
 * for.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

static void log_line(void *arg, int32_t level, const char *text)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};

    (void)arg;
    flockfile(stderr); /* any thread, several at once */
    cli_error_before();
    cli_say(stderr, "%s: %s\n", level >= 0 && level <= 3 ? names[level] : "note", text);
    funlockfile(stderr);
}

tn_app *cli_app_open(const cli_args *args, const char *const *extra)
{
    const char *settings[2 * CLI_SETTINGS_MAX + 4];
    size_t count = 0;
    tn_app *app;

    if (args->value[OPT_VERBOSE])
        settings[count++] = "log.level=info";
    if (args->value[OPT_QUIET])
        settings[count++] = "log.level=error";
    for (size_t i = 0; extra && extra[i] && i < CLI_SETTINGS_MAX; i++)
        settings[count++] = extra[i];
    for (size_t i = 0; i < args->setting_count; i++)
        settings[count++] = args->settings[i];
    settings[count] = NULL;
    app = tn_app_open(.name = "tenon", .config = args->value[OPT_CONFIG], .settings = settings,
                      .errors = stderr, .log = log_line, .local = 1);
    tn_app_report(app);
    return app;
}

static bool was_loaded(const tn_ctx *ctx, const char *name, size_t bytes)
{
    tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

    for (size_t i = 0; !tn_plugin_at(ctx, i, &p); i++)
        if (strlen(p.name) == bytes && !strncmp(p.name, name, bytes) && p.state == TN_PLUGIN_LOADED)
            return true;
    return false;
}

/* What a plugin's options are called is known once it is loaded: those of one that was not may be wrong. */
static void unread_tell(const tn_app *app, const cli_args *args)
{
    for (size_t i = 0; i < args->setting_count; i++) {
        const char *setting = args->settings[i], *name = setting + strlen("plugin.");
        const size_t bytes = strncmp(setting, "plugin.", strlen("plugin.")) ? 0 : strcspn(name, ".=");

        if (bytes && name[bytes] == '.' && !was_loaded(tn_app_ctx(app), name, bytes))
            cli_say(stderr, "note: --set %s had no effect: this run has not loaded the plugin %.*s\n",
                    setting, (int)bytes, name);
    }
}

int cli_app_close(tn_app *app, const cli_args *args)
{
    if (tn_app_ok(app) && !args->value[OPT_QUIET])
        unread_tell(app, args);
    return tn_app_close(app);
}
