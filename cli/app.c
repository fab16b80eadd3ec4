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
    cli_error_before();
    cli_say(stderr, "%s: %s\n", level >= 0 && level <= 3 ? names[level] : "note", text);
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
