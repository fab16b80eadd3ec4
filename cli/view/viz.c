/*
 * tenon viz: one picture or table of a net or a run.
 */
#include <string.h>

#include "view/viz.h"

static const struct kind {
    cli_option_id option;
    int (*of_model)(const cli_args *args, const cli_model *m);
    int (*of_run)(const cli_args *args, tn_app *app);
    bool all_shapes; /* they must be known */
} kinds[] = {
    {OPT_SUMMARY, cli_viz_summary, NULL, true}, {OPT_GRAPH, cli_viz_graph, NULL, false},
    {OPT_MEMORY, cli_viz_memory, NULL, true},   {OPT_BREAKS, cli_viz_breaks, NULL, false},
    {OPT_PASSES, cli_viz_passes, NULL, true},   {OPT_CURVES, NULL, cli_viz_curves, false},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* NULL: more than one, said. */
static const struct kind *kind_of(const cli_args *args)
{
    const struct kind *found = NULL;

    for (size_t i = 0; i < KINDS; i++) {
        if (!args->value[kinds[i].option])
            continue;
        if (found) {
            cli_error("one of --summary, --graph, --curves, --memory, --breaks and --passes at a time");
            return NULL;
        }
        found = &kinds[i];
    }
    return found ? found : &kinds[0];
}

/* Pictures go to files of their kind; all else goes to stdout. */
static bool out_fits(const cli_args *args, const struct kind *kind)
{
    const char *out = args->value[OPT_OUTPUT], *dot = out ? strrchr(out, '.') : NULL;
    const bool graph = kind->option == OPT_GRAPH;

    if (args->value[OPT_TERM] && kind->option != OPT_CURVES) {
        cli_error("--term goes with --curves");
        return false;
    }
    if (!out)
        return true;
    if (kind->option == OPT_SUMMARY || kind->option == OPT_BREAKS || kind->option == OPT_PASSES ||
        args->value[OPT_TERM]) {
        cli_error("-o is for pictures: this view goes to standard output");
        return false;
    }
    if (!dot || strchr(dot, '/') || !strcmp(dot, ".svg") ||
        (graph && (!strcmp(dot, ".dot") || !strcmp(dot, ".gv"))))
        return true;
    cli_error("-o %s: pictures are written as .svg%s", out, graph ? ", graphs also as .dot or .gv" : "");
    return false;
}

static int model_show(const cli_args *args, tn_app *app, const struct kind *kind)
{
    cli_model m;
    int code = cli_model_open(&m, app, args->words[0]);

    if (!code && !(code = cli_model_infer(&m, args, kind->all_shapes)))
        code = kind->of_model(args, &m);
    cli_model_fini(&m);
    return code;
}

int cmd_viz(const cli_args *args)
{
    const struct kind *kind = kind_of(args);
    tn_app *app;
    int code = CLI_EXIT_FAILED, closed;

    if (!kind || !out_fits(args, kind))
        return CLI_EXIT_USAGE;
    app = cli_app_open(args, NULL);
    if (tn_app_ok(app))
        code = kind->of_run ? kind->of_run(args, app) : model_show(args, app, kind);
    closed = tn_app_close(app);
    return closed ? closed : code;
}
