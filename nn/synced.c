/*
 * SyncBatchNorm and devices. `ndev` and `key` of a node belong to a run, not to a net: files say ndev=1 and a
 * key of the graph alone, and a graph that is read to be trained gets the app's number of devices and a key
 * that no other graph has.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SYNCED "_contrib_SyncBatchNorm"

/* One pass over the nodes of a graph. */
typedef struct pass {
    json_t *keys;    /* what each key was, to what it is: NODE#NUMBER of the first node that has it */
    unsigned number; /* of the graph in this app; 0: for a file */
    size_t devices;
    bool found, failed; /* failed: no memory */
} pass;

static const char *key_of(pass *p, const char *old, const char *node)
{
    const unsigned at = (unsigned)json_object_size(p->keys);
    const json_t *known = json_object_get(p->keys, old);

    if (!known) {
        json_t *made =
            p->number ? json_sprintf("%s#%u#%u", node, at, p->number) : json_sprintf("%s#%u", node, at);

        p->failed |= json_object_set_new(p->keys, old, made) != 0;
        known = json_object_get(p->keys, old);
    }
    return json_string_value(known);
}

static void node_set(pass *p, const json_t *node)
{
    json_t *attrs = json_object_get(node, "attrs");
    const char *old = json_string_value(json_object_get(attrs, "key"));
    const char *name = json_string_value(json_object_get(node, "name"));

    p->found = true;
    p->failed |= json_object_set_new(attrs, "ndev", json_sprintf("%zu", p->devices)) ||
                 json_object_set_new(attrs, "key", json_string(key_of(p, old ? old : "", name ? name : "")));
}

/* The graph, and those that its nodes hold. */
static void graph_set(pass *p, const json_t *graph)
{
    const json_t *node, *inner;
    size_t i, k;

    json_array_foreach(json_object_get(graph, "nodes"), i, node)
    {
        const char *op = json_string_value(json_object_get(node, "op"));

        if (op && !strcmp(op, SYNCED))
            node_set(p, node);
        json_array_foreach(json_object_get(node, "subgraphs"), k, inner) graph_set(p, inner);
    }
}

/* The text of a graph whose nodes p has set, for free(); NULL: it has no such nodes, or an error is set. */
static char *text_set(tn_app *app, tn_symbol *symbol, pass *p, const char *what)
{
    char *text = NULL, *set = NULL;
    json_t *root;

    if (tnn_check(app, tn_symbol_to_json(symbol, &text), "%s", what))
        return NULL;
    if (!strstr(text, "\"" SYNCED "\"")) {
        tn_free(text);
        return NULL;
    }
    root = json_loads(text, 0, NULL);
    tn_free(text);
    p->keys = json_object();
    p->failed = !root || !p->keys;
    if (!p->failed)
        graph_set(p, root);
    if (!p->failed)
        set = json_dumps(root, JSON_INDENT(2));
    if (!set)
        (void)tnn_no_memory(app);
    json_decref(root);
    json_decref(p->keys);
    return set;
}

/* Replaces *symbol. */
static tn_status symbol_set(tn_app *app, tn_symbol **symbol, pass *p, const char *what)
{
    char *text = text_set(app, *symbol, p, what);
    tn_symbol *made = NULL;

    if (text && !tnn_check(app, tn_symbol_from_json(app->ctx, text, strlen(text), &made), "%s", what)) {
        tn_symbol_release(*symbol);
        *symbol = made;
    }
    free(text);
    return app->status;
}

const char *tnn_synced_refusal(const tn_app *app)
{
    if (app->device_count < 2)
        return NULL;
    for (size_t i = 0; i < app->device_count; i++)
        if (strcmp(tn_device_type(app->devices[i]), "cpu") != 0)
            return "only host devices (cpu) have a kernel for that";
    return strcmp(tn_ctx_option(app->ctx, "engine.type"), "naive") == 0
               ? "engine.type=naive runs one behind the other"
               : NULL;
}

tn_status tnn_symbol_take(tn_app *app, const char *path, tn_symbol **out)
{
    pass p = {.number = app->synced + 1, .devices = app->device_count};
    const char *why = tnn_synced_refusal(app);
    tn_symbol *s = NULL;

    if (!tnn_symbol_load(app, path, &s) && !symbol_set(app, &s, &p, path) && p.found && why)
        (void)tnn_fail(app, TN_E_UNSUPPORTED,
                       "%s: the %zu devices of its SyncBatchNorm need each other's numbers, and %s", path,
                       app->device_count, why);
    app->synced += p.found;
    if (app->status) {
        tn_symbol_release(s);
        return app->status;
    }
    *out = s;
    return TN_OK;
}

/* The symbol as files have it; the caller's reference. NULL: an error is set. */
static tn_symbol *symbol_of_file(tn_app *app, tn_symbol *symbol, const char *what)
{
    pass p = {.devices = 1};

    tn_symbol_retain(symbol);
    if (!symbol_set(app, &symbol, &p, what))
        return symbol;
    tn_symbol_release(symbol);
    return NULL;
}

tn_status tnn_symbol_save(tn_app *app, tn_symbol *symbol, const char *path)
{
    tn_symbol *s = symbol_of_file(app, symbol, path);

    if (s)
        (void)tnn_check(app, tn_symbol_save(s, path), "%s", path);
    tn_symbol_release(s);
    return app->status;
}

/* The text of the error names `path`, not the file aside. */
static tn_status aside_save(tn_app *app, tn_symbol *symbol, const char *path, const char *aside)
{
    const tn_status st = tn_symbol_save(symbol, aside);
    const char *text = tn_error_text();
    const size_t length = strlen(aside);

    return !st || strncmp(text, aside, length) != 0 ? tnn_check(app, st, "%s", path)
                                                    : tnn_fail(app, st, "%s%s", path, text + length);
}

/* A name beside `path` that no other thread has: numbers count down, those of the core's files aside up. */
static char *aside_name(tn_app *app, const char *path)
{
    static atomic_uint names;

    return tnn_format(app, "%s.tmp-%ld-%u", path, (long)getpid(), UINT_MAX - atomic_fetch_add(&names, 1));
}

/* A rename in it outlasts a loss of power. The files of the pair are written: no reason to fail. */
static void folder_sync(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

/* The parameters, then the graph that lies aside. A second name keeps the old parameters until both stand. */
static void pair_place(tn_app *app, const char *aside, const char *json, const tn_params *params,
                       const char *file, const char *kept)
{
    struct stat info;
    bool there, linked;

    (void)unlink(kept); /* of a process that was killed and had our id */
    there = !lstat(file, &info);
    linked = there && !link(file, kept);
    if (!tnn_check(app, tn_params_save(params, file), "%s", file) && rename(aside, json))
        (void)tnn_fail_system(app, json);
    if (app->status && linked)
        (void)rename(kept, file);
    else if (app->status && !there)
        (void)unlink(file);
    if (linked)
        (void)unlink(kept);
}

tn_status tnn_pair_save(tn_app *app, tn_symbol *symbol, const char *json, const tn_params *params,
                        const char *file)
{
    char *aside = aside_name(app, json), *kept = aside_name(app, file), *folder = tnn_path_folder(app, json);
    tn_symbol *s = aside && kept && folder ? symbol_of_file(app, symbol, json) : NULL;

    if (s && !aside_save(app, s, json, aside))
        pair_place(app, aside, json, params, file, kept);
    if (s && app->status)
        (void)unlink(aside);
    else if (s)
        folder_sync(folder);
    tn_symbol_release(s);
    free(aside);
    free(kept);
    free(folder);
    return app->status;
}

tn_status tnn_symbol_text(tn_app *app, tn_symbol *symbol, const char *what, char **out)
{
    tn_symbol *s = symbol_of_file(app, symbol, what);

    if (s)
        (void)tnn_check(app, tn_symbol_to_json(s, out), "%s", what);
    tn_symbol_release(s);
    return app->status;
}
