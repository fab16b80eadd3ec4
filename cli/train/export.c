/*
 * tenon export: the model of a run under a name of one's own: its two files, and what is kept of its data.
 * All of them are written, or none; links in their places are replaced, not followed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "data/data.h"
#include "model.h"

/* The last part of the run's path: "first" of runs/first. */
static char *prefix_of(const char *folder)
{
    const char *slash = strrchr(folder, '/');

    return cli_format("%s", slash ? slash + 1 : folder);
}

static bool is_same(const char *a, const char *b)
{
    struct stat x, y;

    return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The files of the run stay as they are: model-0000.params holds the last parameters, not the best. */
static bool is_apart(tn_app *app, const cli_saved *saved, const char *symbol, const char *params)
{
    char *last = cli_path(saved->folder, "model-0000.params"), *why = NULL;
    const bool same =
        last && (is_same(saved->symbol, symbol) || is_same(saved->params, params) || is_same(last, params));

    if (same && (why = cli_format("%s is a file of the run itself: give a PREFIX outside of %s", symbol,
                                  saved->folder)))
        (void)tn_app_fail(app, TN_E_ARG, why);
    free(why);
    free(last);
    return last && !same;
}

static void files_say(const cli_args *args, const char *symbol, const char *params, const char *of)
{
    const char *const files[] = {"symbol", symbol, "params", params, "of", of};
    char *about = cli_about_beside(symbol);
    json_t *o;

    if (args->value[OPT_JSON]) {
        o = json_pack("{s:o, s:o, s:o}", files[0], cli_json_text(symbol), files[2], cli_json_text(params),
                      files[4], cli_json_text(of));
        if (about)
            (void)json_object_set_new(o, "data", cli_json_text(about));
        cli_json_line(o);
    }
    for (size_t i = 0; !args->value[OPT_JSON] && i < sizeof files / sizeof *files; i += 2)
        cli_say(stdout, "%s %s\n", files[i], files[i + 1]);
    if (about && !args->value[OPT_JSON])
        cli_say(stdout, "data %s  scaling, shape and names of classes: keep it beside the model\n", about);
    free(about);
}

static void export(tn_app *app, const cli_args *args, const cli_saved *saved)
{
    char *prefix = args->word_count > 1 ? cli_format("%s", args->words[1]) : prefix_of(saved->folder);
    char *symbol = prefix ? cli_format("%s-symbol.json", prefix) : NULL;
    char *params = prefix ? cli_format("%s-0000.params", prefix) : NULL;
    cli_aside about = {.replace = true}; /* what is kept of the data: named once the model is there */
    const size_t there = prefix ? cli_folders_there(prefix) : 0;
    tn_net *net = NULL;

    if (symbol && params && is_apart(app, saved, symbol, params) &&
        (net = tn_net_load_files(app, saved->symbol, saved->params, NULL)) &&
        (cli_folders_above(prefix) || cli_failed_at(app, prefix)) &&
        cli_about_copy(app, saved->symbol, prefix, &about))
        tn_net_export(net, prefix);
    if (net && tn_app_ok(app))
        (void)cli_about_name(app, prefix, &about);
    cli_aside_fini(&about);
    if (net && tn_app_ok(app))
        files_say(args, symbol, params, saved->params);
    if (prefix)
        cli_folders_back(prefix, there);
    free(prefix);
    free(symbol);
    free(params);
}

int cmd_export(const cli_args *args)
{
    cli_args run = *args; /* a second word is no file of the model */
    cli_saved saved = {.words = 0};
    tn_app *app = cli_app_open(args, NULL);

    run.word_count = 1;
    if (tn_app_ok(app) && cli_saved_find(&saved, &run, app))
        export(app, args, &saved);
    cli_saved_fini(&saved);
    return tn_app_close(app);
}
