/*
 * Three nets of MXNet's model zoo give MXNet's outputs with the kernels of every plugin for the host, called
 * and served, with all passes, without each (not in a short test), and without any, with the recordings of
 * tests/oracle/recorded.
 * `scripts/campaign --only zoo` compares ten nets at their real sizes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/runs.h"
#include "zoo/zoo.h"

#define PLUGINS_MAX 8
#define DISTANCE_MAX 1e-5 /* part of the largest absolute value that MXNet gives */

static char plugins[PLUGINS_MAX][64]; /* those with kernels for the host */
static size_t plugin_count;

static void ok(tn_status st, const char *what)
{
    if (st)
        fail_msg("%s gave %s: %s", what, tn_status_name(st), tn_error_text());
}

static tn_ctx *open_with(const char *prefer, const char *off)
{
    char path[4096], kernels[80], passes[120];
    const char *const settings[] = {"plugins.trust=off", path, passes, prefer ? kernels : NULL, NULL};
    const tn_open_options o = {.struct_size = TN_SIZE(tn_open_options),
                               .flags = TN_OPEN_NO_ENVIRONMENT | TN_OPEN_NO_SYSTEM,
                               .settings = settings};
    const char *folder = getenv("TENON_TEST_PLUGINS");
    tn_ctx *ctx = NULL;

    assert_non_null(folder);
    (void)snprintf(path, sizeof path, "plugins.path=%s", folder);
    (void)snprintf(kernels, sizeof kernels, "kernel.prefer=%s", prefer ? prefer : "");
    (void)snprintf(passes, sizeof passes, "compile.passes_off=%s", off);
    ok(tn_open(&o, &ctx), "tn_open");
    return ctx;
}

static int plugins_find(void **state)
{
    tn_ctx *ctx = open_with(NULL, "");
    size_t count = 0;

    (void)state;
    ok(tn_plugin_count(ctx, &count), "tn_plugin_count");
    for (size_t i = 0; i < count; i++) {
        tn_plugin_info info = {.struct_size = TN_SIZE(tn_plugin_info)};

        ok(tn_plugin_at(ctx, i, &info), "tn_plugin_at");
        if (info.state == TN_PLUGIN_REFUSED || !strstr(info.provides, "kernels@cpu"))
            continue;
        assert_in_range(plugin_count, 0, PLUGINS_MAX - 1);
        (void)snprintf(plugins[plugin_count++], sizeof plugins[0], "%s", info.name);
    }
    assert_in_range(plugin_count, 1, PLUGINS_MAX);
    return tn_close(ctx) != TN_OK;
}

static void compare(const char *net, const char *plugin, const char *off, tn_status (*run)(zoo_net *n))
{
    char graph[4096], params[4096];
    const char *source = getenv("TENON_TEST_SOURCE");
    tn_ctx *ctx = open_with(plugin, off);
    zoo_record record;
    zoo_net n = {.ctx = ctx};
    zoo_error e = {0, 0};

    assert_non_null(source);
    (void)snprintf(graph, sizeof graph, "%s/tests/oracle/recorded/%s.json.gz", source, net);
    (void)snprintf(params, sizeof params, "%s/tests/oracle/recorded/%s.params", source, net);
    ok(zoo_record_open(ctx, params, &record), params);
    ok(zoo_net_open(ctx, graph, &record, TN_F32, &n), graph);
    ok(run(&n), net);
    ok(zoo_compare(&n, &record, &e), "zoo_compare");
    print_message("%-16s %-14s %s without %s: %.1e of the largest, %g\n", net, plugin,
                  run == zoo_net_serve ? "served" : "called", *off ? off : "nothing", e.distance / e.largest,
                  e.largest);
    if (!(e.largest > 0 && e.distance <= DISTANCE_MAX * e.largest))
        fail_msg("%s with the kernels of %s, without %s, differs by %g, at most %g is allowed", net, plugin,
                 off, e.distance, DISTANCE_MAX * e.largest);
    zoo_net_close(&n);
    zoo_record_close(&record);
    ok(tn_close(ctx), "tn_close");
}

static void outputs_are_mxnets(void **state)
{
    static const char *const off[] = {
        "cse",    "fold",      "fuse",    "dead",
        "layout", "constants", "inplace", "cse,fold,fuse,dead,layout,constants,inplace"};
    const size_t count = sizeof off / sizeof *off;

    for (size_t i = 0; i < plugin_count; i++) {
        compare(*state, plugins[i], "", zoo_net_infer);
        compare(*state, plugins[i], "", zoo_net_serve);
        for (size_t o = test_short() ? count - 1 : 0; o < count; o++)
            compare(*state, plugins[i], off[o], zoo_net_serve);
    }
}

#define NET(name)                                                                                            \
    {                                                                                                        \
        name, outputs_are_mxnets, NULL, NULL, name                                                           \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {NET("resnet18_v1"), NET("squeezenet1.1"), NET("mobilenetv2_1.0")};

    return cmocka_run_group_tests(tests, plugins_find, NULL);
}
