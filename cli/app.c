/*
 * An app for a command: options of the command line in their order, errors on stderr, the log if it is asked
 * for.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli.h"

#define BLAS_PLUGIN "cpu-openblas"
#define BLAS_BYTES (128ull << 20) /* that OpenBLAS maps for each thread */

static void log_line(void *arg, int32_t level, const char *text)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};

    (void)arg;
    cli_say(stderr, "%s: %s\n", level >= 0 && level <= 3 ? names[level] : "note", text);
}

/* As many as OpenBLAS makes buffers for when it is loaded. */
static long blas_threads(void)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        const long n = text ? strtol(text, NULL, 10) : 0;

        if (n > 0)
            return n;
    }
    return sysconf(_SC_NPROCESSORS_ONLN);
}

/* A library that waits for ever for memory while it is loaded cannot be refused: no code of its plugin has
 * run by then. So what may happen is said. */
static void address_space_tell(tn_app *app)
{
    const long threads = blas_threads();
    struct rlimit limit;

    if (!tn_app_ok(app) || getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur / BLAS_BYTES >= (rlim_t)threads + 1)
        return;
    for (size_t i = 0;; i++) {
        tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

        if (tn_plugin_at(tn_app_ctx(app), i, &p))
            return;
        if (strcmp(p.name, BLAS_PLUGIN) || (p.state != TN_PLUGIN_READY && p.state != TN_PLUGIN_LOADED))
            continue;
        cli_say(
            stderr,
            "warning: the address space is limited to %llu MiB (ulimit -v), and OpenBLAS may wait for ever "
            "for %llu MiB for each of %ld threads: raise the limit, or leave " BLAS_PLUGIN " out, as --set "
            "plugins.load=cpu,mempool does\n",
            (unsigned long long)limit.rlim_cur >> 20, BLAS_BYTES >> 20, threads);
        return;
    }
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
    if (!args->value[OPT_QUIET])
        address_space_tell(app);
    return app;
}
