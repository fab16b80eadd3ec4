/*
 * tenon kv serve, tenon kv schedule: one server, or the scheduler, of a distributed job, until it has ended.
 * The address of a scheduler is told once it listens: on stdout, and in a file that is whole or absent.
 */
#include <stdlib.h>
#include <string.h>

#include "cli.h"

typedef struct role {
    const cli_args *args;
    tn_app *app;
} role;

static void listens(role *r, const char *address)
{
    const char *file = r->args->value[OPT_ADDRESS_FILE];
    char *line = cli_format("%s\n", address);

    if (r->args->value[OPT_JSON])
        cli_json_line(json_pack("{s:s}", "address", address));
    else
        cli_say(stdout, "%s\n", address);
    (void)fflush(stdout);
    if (file && !cli_folders_above(file))
        (void)cli_failed_at(r->app, file);
    else if (file && line)
        (void)cli_text_save(r->app, file, line, strlen(line));
    free(line);
}

static void told(void *arg, int32_t head, const char *body)
{
    if (head == TN_KV_LISTENS)
        listens(arg, body);
}

static int role_run(const cli_args *args, const char *setting)
{
    const char *const extra[] = {setting, NULL};
    role r = {.args = args, .app = cli_app_open(args, extra)};
    int32_t ran = 0;

    if (tn_app_ok(r.app))
        (void)tn_app_check(r.app, tn_kv_run_role(tn_app_ctx(r.app), told, &r, &ran));
    return tn_app_close(r.app);
}

int cmd_kv_serve(const cli_args *args)
{
    return role_run(args, "kvstore.role=server");
}

int cmd_kv_schedule(const cli_args *args)
{
    return role_run(args, "kvstore.role=scheduler");
}
