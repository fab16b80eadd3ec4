/*
 * The nets of the zoo of nn, for tests/oracle/zoo_nets.py:
 *
 *   zoo_nets_run graphs FOLDER SETTING NET...      writes FOLDER/NET-symbol.json, without parameters
 *   zoo_nets_run net NET FOLDER C,H,W SEED SETTING...
 *   zoo_nets_run step GRAPH OUT C,H,W SEED SETTING...
 *
 * `net` reads in FOLDER what MXNet has saved with the rule's values: gluon.params (save_parameters),
 * export-symbol.json and export-0000.params (export, with another prefix). Batches have 2 images. It writes
 * tenon.params, tenon-symbol.json, tenon-0000.params and results.params: the outputs "gluon" (the first file
 * in our net), "export" (the second), "model" (MXNet's graph with its file), all in inference; "output32",
 * "output64", "grad32:NAME", "grad64:NAME" of our graph in training mode. `step` writes "output32" and
 * "grad32:NAME" of a graph into OUT.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/nn.h"
#include "zoo/zoo.h"

#define PATH_BYTES 4096

static const char *in_folder(const char *folder, const char *name)
{
    static char path[PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int graphs(tn_app *app, const char *folder, int count, char **names)
{
    for (int i = 0; i < count; i++) {
        tn_symbol *symbol = tn_net_symbol(tn_net_zoo(app, names[i]));
        char path[PATH_BYTES];

        (void)snprintf(path, sizeof path, "%s/%s-symbol.json", folder, names[i]);
        if (symbol)
            (void)tn_app_check(app, tn_symbol_save(symbol, path));
        tn_symbol_release(symbol);
    }
    return tn_app_close(app);
}

/* ---- one net ---- */

static tn_array *input_make(tn_app *app, const zoo_record *r)
{
    const uint64_t count = (uint64_t)(r->shape[0] * r->shape[1] * r->shape[2] * r->shape[3]);
    float *values = calloc(count, sizeof *values);
    tn_array *x = NULL;

    if (values && zoo_numbers("data", 4, r->shape, (uint64_t)r->seed, count, values))
        (void)tn_app_check(app, tn_array_from(tn_app_ctx(app), TN_F32, 4, r->shape, values, &x));
    free(values);
    return x;
}

static void keep(tn_app *app, tn_params *results, const char *name, tn_array *a)
{
    if (a && tn_app_ok(app))
        (void)tn_app_check(app, tn_params_add(results, name, a));
}

static void gradients(tn_app *app, const char *graph, const zoo_record *r, bool wide, tn_params *results)
{
    zoo_net n = {.ctx = NULL};
    char key[512];

    if (!tn_app_check(app, zoo_net_open(tn_app_ctx(app), graph, r, wide ? TN_F64 : TN_F32, &n)) &&
        !tn_app_check(app, zoo_net_gradient(&n)))
        keep(app, results, wide ? "output64" : "output32", n.out);
    for (size_t i = 0; tn_app_ok(app) && i < n.count; i++) {
        (void)snprintf(key, sizeof key, "grad%d:%s", wide ? 64 : 32, n.names[i]);
        keep(app, results, key, tn_array_grad(n.in[i]));
    }
    zoo_net_close(&n);
}

static int net_run(tn_app *app, const char *name, const char *folder, const zoo_record *r)
{
    tn_net *net = tn_net_zoo(app, name), *model;
    tn_array *x = input_make(app, r);
    tn_params *results = NULL;
    char graph[PATH_BYTES];

    (void)tn_app_check(app, tn_params_create(&results));
    tn_net_init(net, .seed = 1, .shape = {2, r->shape[1], r->shape[2], r->shape[3]});
    tn_net_load_params(net, in_folder(folder, "gluon.params"));
    keep(app, results, "gluon", tn_net_forward(net, x));
    tn_net_save(net, in_folder(folder, "tenon.params"));
    tn_net_export(net, in_folder(folder, "tenon"));
    tn_net_init(net, .seed = 2, .shape = {2, r->shape[1], r->shape[2], r->shape[3]});
    tn_net_load_params(net, in_folder(folder, "export-0000.params"));
    keep(app, results, "export", tn_net_forward(net, x));
    model = tn_net_load(app, in_folder(folder, "export"));
    keep(app, results, "model", tn_net_forward(model, x));
    (void)snprintf(graph, sizeof graph, "%s/tenon-symbol.json", folder);
    gradients(app, graph, r, true, results);
    gradients(app, graph, r, false, results);
    if (tn_app_ok(app))
        (void)tn_app_check(app, tn_params_save(results, in_folder(folder, "results.params")));
    tn_params_destroy(results);
    tn_array_release(x);
    return tn_app_close(app);
}

static int step_run(tn_app *app, const char *graph, const char *out, const zoo_record *r)
{
    tn_params *results = NULL;

    (void)tn_app_check(app, tn_params_create(&results));
    gradients(app, graph, r, false, results);
    if (tn_app_ok(app))
        (void)tn_app_check(app, tn_params_save(results, out));
    tn_params_destroy(results);
    return tn_app_close(app);
}

int main(int argc, char **argv)
{
    const char *settings[16] = {"plugins.trust=off"};
    zoo_record r = {.shape = {2}};
    long long c, h, w, seed;

    if (argc > 4 && !strcmp(argv[1], "graphs")) {
        settings[1] = argv[3];
        return graphs(tn_app_open(.name = "zoo_nets_run", .errors = stderr, .settings = settings), argv[2],
                      argc - 4, argv + 4);
    }
    if (argc < 6 || argc > 6 + 14 || (strcmp(argv[1], "net") != 0 && strcmp(argv[1], "step") != 0) ||
        sscanf(argv[4], "%lld,%lld,%lld", &c, &h, &w) != 3 || sscanf(argv[5], "%lld", &seed) != 1 || c < 1 ||
        h < 1 || w < 1) {
        (void)fprintf(stderr, "usage: zoo_nets_run graphs FOLDER SETTING NET...\n"
                              "       zoo_nets_run net NET FOLDER C,H,W SEED SETTING...\n"
                              "       zoo_nets_run step GRAPH OUT C,H,W SEED SETTING...\n");
        return 2;
    }
    for (int i = 6; i < argc; i++)
        settings[i - 5] = argv[i];
    r.shape[1] = c;
    r.shape[2] = h;
    r.shape[3] = w;
    r.seed = seed;
    return (*argv[1] == 'n' ? net_run : step_run)(
        tn_app_open(.name = "zoo_nets_run", .errors = stderr, .settings = settings), argv[2], argv[3], &r);
}
