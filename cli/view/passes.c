/* tenon viz --passes: what each pass did to the program of a net, and the instructions that came of it. */
#include <stdlib.h>
#include <string.h>

#include "view/viz.h"

#define MIB (1024.0 * 1024.0)
#define NODE_COLUMNS 36

typedef struct passes {
    tn_program_view *view;
    tn_view_program info;
} passes;

static tn_view_pass pass_of(const passes *p, uint32_t index)
{
    tn_view_pass one = {.struct_size = TN_SIZE(tn_view_pass)};

    (void)tn_program_view_pass(p->view, index, &one); /* the index is good */
    return one;
}

static tn_view_step step_of(const passes *p, uint32_t index)
{
    tn_view_step s = {.struct_size = TN_SIZE(tn_view_step)};

    (void)tn_program_view_step(p->view, index, &s);
    return s;
}

static const char *phase_of(const passes *p, uint32_t index)
{
    if (index < p->info.once_count)
        return "once";
    return index - p->info.once_count < p->info.forward_count ? "forward" : "backward";
}

/* Names of parameters and states, NULL-ended; borrowed from the view. free(); NULL: no memory. */
static const char **params_find(const cli_model *m, const uint8_t *parameter)
{
    const uint32_t count = tn_symbol_view_count(m->nodes);
    const char **names = calloc(count + 1u, sizeof(*names));
    size_t n = 0;

    for (uint32_t i = 0; names && i < count; i++) {
        tn_view_node node = {.struct_size = TN_SIZE(tn_view_node)};

        if (parameter[i] && !tn_symbol_view_node(m->nodes, i, &node) && !node.op)
            names[n++] = node.name;
    }
    return names;
}

static tn_status served_make(const cli_model *m, tn_program_view **out)
{
    cli_roles roles = {NULL};
    const char **params = NULL;
    tn_status st;

    if (!cli_roles_find(&roles, m->nodes, m->app))
        return tn_app_status(m->app);
    if (!(params = params_find(m, roles.parameter)))
        st = tn_app_fail(m->app, TN_E_NOMEM, "out of memory");
    else
        st = tn_program_view_served(tn_app_ctx(m->app), m->symbol, m->shapes, NULL, params, out);
    free(params);
    free(roles.parameter);
    return st;
}

/* ---- output -------------------------------------------------------------------------------------------- */

static const char *effect_of(const tn_view_pass *one, char out[64])
{
    if (one->off)
        return "left out";
    if (one->rewrites)
        (void)snprintf(out, 64, "%u changes", one->rewrites);
    else
        (void)snprintf(out, 64, "%s", one->before == one->after ? "-" : "");
    return out;
}

static void text_print(const passes *p)
{
    char effect[64], name[CLI_SHORT_TEXT];

    (void)printf("%-10s %-8s %8s %8s  %-14s %s\n", "pass", "kind", "before", "after", "did", "what it does");
    for (uint32_t i = 0; i < p->info.pass_count; i++) {
        const tn_view_pass one = pass_of(p, i);

        (void)printf("%-10s %-8s %8u %8u  %-14s %s\n", one.name, one.bounded ? "bounded" : "exact",
                     one.before, one.after, effect_of(&one, effect), one.text);
    }
    (void)printf("\n%u instructions", p->info.step_count);
    if (p->info.once_count)
        (void)printf(", %u of them once, which leave %.3f MiB", p->info.once_count,
                     (double)p->info.constant_bytes / MIB);
    (void)printf("; arena %.3f MiB\n\n  #  %-9s", (double)p->info.planned / MIB, "phase");
    cli_pad(stdout, "node", NODE_COLUMNS);
    (void)printf(" %-24s %s\n", "operator", "kernel");
    for (uint32_t i = 0; i < p->info.step_count; i++) {
        const tn_view_step s = step_of(p, i);

        (void)printf("%3u  %-9s", i, phase_of(p, i));
        cli_pad(stdout, cli_shorten(s.node, NODE_COLUMNS, name), NODE_COLUMNS);
        (void)printf(" %-24s %s/%s\n", s.op, s.plugin, s.kernel);
    }
}

static void json_print(const passes *p)
{
    json_t *list = json_array(), *steps = json_array();

    for (uint32_t i = 0; i < p->info.pass_count; i++) {
        const tn_view_pass one = pass_of(p, i);

        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:b, s:i, s:i, s:i, s:s}", "name", one.name, "kind",
                            one.bounded ? "bounded" : "exact", "off", (int)one.off, "before", (int)one.before,
                            "after", (int)one.after, "changes", (int)one.rewrites, "text", one.text));
    }
    for (uint32_t i = 0; i < p->info.step_count; i++) {
        const tn_view_step s = step_of(p, i);

        (void)json_array_append_new(steps,
                                    json_pack("{s:s, s:o, s:o, s:s, s:s}", "phase", phase_of(p, i), "node",
                                              cli_json_text(s.node), "operator", cli_json_text(s.op),
                                              "plugin", s.plugin, "kernel", s.kernel));
    }
    cli_json_line(json_pack("{s:o, s:o, s:I, s:I}", "passes", list, "instructions", steps, "constant_bytes",
                            (json_int_t)p->info.constant_bytes, "planned", (json_int_t)p->info.planned));
}

int cli_viz_passes(const cli_args *args, const cli_model *m)
{
    passes p = {.info = {.struct_size = TN_SIZE(tn_view_program)}};
    tn_status st = args->value[OPT_TRAIN]
                       ? tn_program_view_plan(tn_app_ctx(m->app), m->symbol, m->shapes, NULL,
                                              TN_VIEW_TRAIN | TN_VIEW_RECORDED, &p.view)
                       : served_make(m, &p.view);

    if (st == TN_E_UNSUPPORTED) {
        cli_error("%s; `tenon viz --breaks` lists all such nodes", tn_error_text());
        return CLI_EXIT_FAILED;
    }
    if (tn_app_check(m->app, st) || tn_app_check(m->app, tn_program_view_info(p.view, &p.info))) {
        tn_program_view_destroy(p.view);
        return CLI_EXIT_FAILED;
    }
    if (args->value[OPT_JSON])
        json_print(&p);
    else
        text_print(&p);
    tn_program_view_destroy(p.view);
    return 0;
}
