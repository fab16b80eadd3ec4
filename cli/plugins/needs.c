/*
 * tenon plugins needs: what must be installed for a model, a configuration or a run, and how large it is. A
 * model's operators are put to the library's own choice of kernels; a configuration names plugins, pools and
 * devices itself. Only plugins with kernels for the device are loaded, and only if there is a model.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data.h"
#include "model.h"
#include "plugins/plugins.h"
#include "runs/runs.h"

#define ITEMS_MAX 1024
#define LEAST "cpu" /* runs every operator, with no library but C's */

typedef struct need { /* one plugin */
    char name[64], why[400];
    size_t count; /* reasons */
    bool absent, optional;
} need;

typedef struct unserved { /* one node of the model */
    char node[128], op[128], why[256];
} unserved;

typedef struct needs {
    tn_app *app;
    const tn_device *device;
    need *items;
    size_t count;
    unserved *failed;
    size_t failed_count, operators;
    bool model, full, images; /* a net is asked about; more nodes than fit; it takes images */
} needs;

/* ---- what is known of a plugin ---- */

static bool plugin_by(tn_app *app, const char *name, const char *provides, tn_plugin_info *p)
{
    for (size_t i = 0; cli_plugin_at(app, i, p); i++) {
        const char *at = provides ? strstr(p->provides, provides) : NULL;
        const size_t length = provides ? strlen(provides) : 0;

        if (cli_plugin_refused(p))
            continue;
        if (name ? !strcmp(p->name, name)
                 : at && (at == p->provides || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    }
    return false;
}

static void need_add(needs *n, const char *name, const char *why, bool optional)
{
    need *at = NULL;
    size_t used;
    tn_plugin_info p;

    for (size_t i = 0; i < n->count && !at; i++)
        if (!strcmp(n->items[i].name, name))
            at = &n->items[i];
    if (!at && n->count < ITEMS_MAX) {
        at = &n->items[n->count++];
        (void)snprintf(at->name, sizeof at->name, "%s", name);
        at->absent = !plugin_by(n->app, name, NULL, &p);
        at->optional = optional;
    }
    if (!at || strstr(at->why, why))
        return;
    at->optional &= optional;
    used = strlen(at->why);
    (void)snprintf(at->why + used, sizeof at->why - used, "%s%s", used ? ", " : "", why);
    at->count++;
}

/* The plugin that provides "pool:round"; `why` if nobody does. */
static void provider_add(needs *n, const char *provides, const char *why, bool optional)
{
    tn_plugin_info p;
    char text[160];

    if (plugin_by(n->app, NULL, provides, &p)) {
        need_add(n, p.name, why, optional);
    } else if (!optional) {
        (void)snprintf(text, sizeof text, "(provides %.100s)", provides);
        need_add(n, text, why, false);
    }
}

/* ---- a model ---- */

static void unserved_add(needs *n, const char *node, const char *op, const char *why)
{
    unserved *u;

    if (n->failed_count == ITEMS_MAX) {
        n->full = true;
        return;
    }
    u = &n->failed[n->failed_count++];
    (void)snprintf(u->node, sizeof u->node, "%s", node);
    (void)snprintf(u->op, sizeof u->op, "%s", op);
    (void)snprintf(u->why, sizeof u->why, "%s", why);
}

/* The plugin that is the least of all nodes has a kernel, too: another one that was chosen is for speed. */
static bool least_serves(const tn_choice *choice)
{
    tn_candidate_info c = {.struct_size = TN_SIZE(tn_candidate_info)};

    for (uint32_t i = 0; !tn_choice_candidate(choice, i, &c); i++)
        if (c.serves && !strcmp(c.plugin, LEAST))
            return true;
    return false;
}

static void chosen_add(needs *n, const tn_choice *choice, const char *plugin, const char *op)
{
    const bool speed = strcmp(plugin, LEAST) != 0 && least_serves(choice);

    need_add(n, plugin, op, speed);
    if (speed)
        need_add(n, LEAST, op, false);
}

static void operator_ask(needs *n, const tn_operator_use *u)
{
    const tn_choice_query q = {.struct_size = TN_SIZE(tn_choice_query),
                               .op = u->op,
                               .attrs = *u->attrs ? u->attrs : NULL,
                               .device = n->device,
                               .dtype = TN_F32};
    tn_choice_info i = {.struct_size = TN_SIZE(tn_choice_info)};
    tn_candidate_info c = {.struct_size = TN_SIZE(tn_candidate_info)};
    tn_choice *choice = NULL;

    n->operators++;
    n->images |= !strcmp(u->op, "Convolution");
    if (tn_choice_create(tn_app_ctx(n->app), &q, &choice)) {
        unserved_add(n, u->node, u->op, tn_error_text());
        return;
    }
    (void)tn_choice_get(choice, &i);
    if (i.chosen != UINT32_MAX && !tn_choice_candidate(choice, i.chosen, &c))
        chosen_add(n, choice, c.plugin, i.op);
    else if (i.rule == TN_RULE_NONE)
        unserved_add(n, u->node, u->op,
                     !tn_choice_candidate(choice, 0, &c) && *c.reason ? c.reason
                                                                      : "no plugin has a kernel for it");
    tn_choice_destroy(choice);
}

/* `st`: of making the list, which is taken. */
static void operators_ask(needs *n, tn_status st, tn_operators *list)
{
    tn_operator_use u = {.struct_size = TN_SIZE(tn_operator_use)};

    n->model = true;
    if (!tn_app_check(n->app, st))
        for (uint32_t i = 0; !tn_operators_at(list, i, &u); i++)
            operator_ask(n, &u);
    tn_operators_destroy(list);
}

/* Not by tn_symbol_load(), which knows no operator of a plugin that is not here. */
static void model_file(needs *n, const char *path)
{
    tn_operators *list = NULL;
    char *about;
    tn_status st;

    if (access(path, F_OK) && !strchr(path, '/') && !cli_ends_with(path, ".json")) {
        char similar[CLI_SIMILAR_BYTES], *why;

        cli_record_similar(CLI_RUNS, path, similar);
        why = cli_format(
            "%s is no run, and no file%s; give a run, a MODEL-symbol.json, a CONFIG.ini or zoo:NAME", path,
            similar);
        (void)tn_app_fail_number(n->app, CLI_ABSENT, why ? why : path);
        free(why);
        return;
    }
    st = tn_operators_load(tn_app_ctx(n->app), path, &list);
    operators_ask(n, st, list);
    if ((about = cli_about_beside(path)))
        n->images = cli_about_images(about);
    free(about);
}

static void model_zoo(needs *n, const char *what)
{
    tn_operators *list = NULL;
    cli_model m;
    char *text = NULL;
    tn_status st;

    if (!cli_model_open(&m, n->app, what) && !tn_app_check(n->app, tn_symbol_to_json(m.symbol, &text))) {
        st = tn_operators_from_json(tn_app_ctx(n->app), text, strlen(text), &list);
        operators_ask(n, st, list);
    }
    tn_free(text);
    cli_model_fini(&m);
}

static void model_add(needs *n, const char *what)
{
    if (!strncmp(what, "zoo:", 4))
        model_zoo(n, what);
    else
        model_file(n, what);
}

/* ---- a configuration ---- */

/* The value of section.key in the file itself, lists in one line; "" if it is not there. The library reads
 * the same file and judges it; what it would load at start was taken out of its options, so it is looked up
 * here. */
static void ini_value(const char *path, const char *section, const char *key, char *out, size_t bytes)
{
    char line[512], here[64] = "";
    FILE *file = fopen(path, "re");
    bool inside = false;
    size_t used = 0;

    out[0] = '\0';
    while (file && fgets(line, sizeof line, file)) {
        char *text = line + strspn(line, " \t"), *sign;
        const bool goes_on = text != line;

        text[strcspn(text, "\r\n;#")] = '\0';
        if (*text == '[' && strchr(text, ']')) {
            (void)snprintf(here, sizeof here, "%.*s", (int)strcspn(text + 1, "]"), text + 1);
            inside = false;
            continue;
        }
        sign = strchr(text, '=');
        if (!goes_on || (sign && !inside)) {
            const size_t length = strcspn(text, " \t=");

            inside = sign && !strcmp(here, section) && strlen(key) == length && !strncmp(text, key, length);
            text = inside ? sign + 1 : text;
            used = inside ? 0 : used;
        }
        if (inside && *text && used < bytes)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? ", " : "", text);
    }
    if (file)
        (void)fclose(file);
}

static void list_add(needs *n, const char *list, const char *why, bool optional)
{
    while (*list) {
        char name[64];
        const size_t skip = strspn(list, ", \t"), length = strcspn(list + skip, ", \t");
        tn_plugin_info p;

        (void)snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), list + skip);
        if (*name && (!optional || plugin_by(n->app, name, NULL, &p)))
            need_add(n, name, why, optional);
        list += skip + length;
    }
}

/* What a process of a job needs beside what it computes with: the transport, and servers a device that runs
 * optimizers. A scheduler computes nothing. */
static void job_add(needs *n, const tn_option_info *o)
{
    const char *transport = tn_ctx_option(tn_app_ctx(n->app), "kvstore.transport");

    if (!transport || !strcmp(transport, "auto"))
        provider_add(n, "transport:zmq", o->key, false);
    if (!strcmp(o->value, "server"))
        need_add(n, "cpu", "kvstore.role = server", false);
}

static void option_add(needs *n, const tn_option_info *o)
{
    const size_t length = strlen(o->key);
    char text[200];

    if (o->origin == TN_ORIGIN_DEFAULT)
        return;
    if (!strncmp(o->key, "kernel.", 7) && strchr(o->key, '@')) {
        (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(o->value, "/"), o->value);
        need_add(n, text, o->key, false);
    } else if (!strcmp(o->key, "kernel.prefer")) {
        list_add(n, o->value, o->key, true);
    } else if (!strncmp(o->key, "memory.", 7) && length > 5 && !strcmp(o->key + length - 5, ".pool") &&
               strcmp(o->value, "none") != 0) {
        const bool automatic = !strcmp(o->value, "auto");

        (void)snprintf(text, sizeof text, "pool:%.100s", automatic ? "segment" : o->value);
        provider_add(n, text, o->key, automatic);
    } else if (!strcmp(o->key, "kvstore.transport") && *o->value && strcmp(o->value, "auto") != 0) {
        (void)snprintf(text, sizeof text, "transport:%.100s", o->value);
        provider_add(n, text, o->key, false);
    } else if (!strcmp(o->key, "kvstore.role") ||
               (!strcmp(o->key, "kvstore.type") && !strncmp(o->value, "dist_", 5))) {
        job_add(n, o);
    }
}

/* A device's provider: "fake:0" needs device:fake. */
static void device_add(needs *n, const char *name, const char *why)
{
    char text[80];

    name += strspn(name, " \t");
    (void)snprintf(text, sizeof text, "device:%.*s", (int)strcspn(name, ":( \t"), name);
    if (*name && strcmp(text, "device:cpu") != 0)
        provider_add(n, text, why, false);
}

static void config_add(needs *n, const char *path)
{
    char list[2048];
    size_t count = 0;
    const char *model = tn_ctx_option(tn_app_ctx(n->app), "train.model");

    ini_value(path, "plugins", "require", list, sizeof list);
    list_add(n, list, "plugins.require", false);
    ini_value(path, "device", "default", list, sizeof list);
    for (const char *at = list; at; at = (at = strchr(at, ',')) ? at + 1 : NULL)
        device_add(n, at, "device.default");
    (void)tn_ctx_option_count(tn_app_ctx(n->app), &count);
    for (size_t i = 0; i < count; i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

        if (!tn_ctx_option_at(tn_app_ctx(n->app), i, &o))
            option_add(n, &o);
    }
    if (model && *model)
        model_add(n, model);
}

static void run_add(needs *n, const char *folder)
{
    char *model = cli_path(folder, "model-symbol.json"), why[CLI_WHY_BYTES];
    json_t *run = cli_record_json(folder, why), *p;
    const char *named = json_string_value(json_object_get(run, "model"));
    tn_plugin_info have;
    size_t i;

    json_array_foreach(json_object_get(run, "plugins"), i, p)
    {
        const char *name = json_string_value(json_object_get(p, "name"));

        if (name && json_is_true(json_object_get(p, "loaded")))
            need_add(n, name, "the run had it loaded", plugin_by(n->app, name, NULL, &have));
    }
    if (model && access(model, F_OK) && named && !strncmp(named, "zoo:", 4))
        model_zoo(n, named); /* as long as the run has no file of its net */
    else if (model)
        model_file(n, model);
    json_decref(run);
    free(model);
}

/* ---- sizes ---- */

static uint64_t size_of(const char *path)
{
    struct stat info;

    return stat(path, &info) ? 0 : (uint64_t)info.st_size;
}

typedef struct base_file { /* what every installation has */
    const char *name, *package;
    char path[4096];
} base_file;

static size_t base_files(base_file out[3])
{
    const struct {
        const char *name, *package;
        const void *address;
    } libraries[] = {
        {"libtenon", "libtenon0", (const void *)(uintptr_t)&tn_version},
        {"libtenon-nn", "libtenon0", (const void *)(uintptr_t)&tn_app_report},
    };
    ssize_t length;
    Dl_info info;

    for (size_t i = 0; i < 2; i++) {
        out[i] = (base_file){.name = libraries[i].name, .package = libraries[i].package};
        if (dladdr(libraries[i].address, &info) && info.dli_fname)
            (void)snprintf(out[i].path, sizeof out[i].path, "%s", info.dli_fname);
    }
    out[2] = (base_file){.name = "tenon", .package = "tenon"};
    length = readlink("/proc/self/exe", out[2].path, sizeof out[2].path - 1);
    out[2].path[length < 0 ? 0 : length] = '\0';
    return 3;
}

/* ---- libraries of the system ---- */

typedef struct library_list {
    needs *n;
    json_t *paths;
} library_list;

/* Tenon's own files are told with their sizes. */
static int library_add(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    const library_list *l = arg;
    bool own = info->dlpi_name[0] != '/' || strstr(info->dlpi_name, "/libtenon");
    tn_plugin_info p;

    (void)bytes;
    for (size_t i = 0; !own && cli_plugin_at(l->n->app, i, &p); i++)
        own = !strcmp(p.path, info->dlpi_name);
    if (!own)
        (void)json_array_append_new(l->paths, cli_json_text(info->dlpi_name));
    return 0;
}

/* What this process has open, since a model's plugins are loaded: those of libraries, too, and the one that
 * the C library opens by itself when a thread ends. Without a model nothing is loaded: an empty list. */
static json_t *libraries_json(needs *n)
{
    library_list l = {n, json_array()};
    void *unwinder = n->model ? dlopen("libgcc_s.so.1", RTLD_LAZY) : NULL;

    if (n->model)
        (void)dl_iterate_phdr(library_add, &l);
    if (unwinder)
        (void)dlclose(unwinder);
    return l.paths;
}

/* ---- output ---- */

static json_t *needs_json(needs *n, const char *what, const char *install)
{
    json_t *plugins = json_array(), *base = json_array(), *failed = json_array();
    base_file files[3];
    uint64_t total = 0;
    tn_plugin_info p;

    for (size_t i = 0; i < base_files(files); i++) {
        total += size_of(files[i].path);
        (void)json_array_append_new(base, json_pack("{s:s,s:o,s:I}", "name", files[i].name, "path",
                                                    cli_json_text(files[i].path), "bytes",
                                                    (json_int_t)size_of(files[i].path)));
    }
    for (size_t i = 0; i < n->count; i++) {
        const need *d = &n->items[i];
        const bool there = plugin_by(n->app, d->name, NULL, &p);

        total += there ? p.file_bytes : 0;
        (void)json_array_append_new(plugins,
                                    json_pack("{s:o,s:o,s:b,s:b,s:I,s:o}", "name", cli_json_text(d->name),
                                              "why", cli_json_text(d->why), "present", there, "optional",
                                              d->optional, "bytes", (json_int_t)(there ? p.file_bytes : 0),
                                              "path", there ? cli_json_text(p.path) : json_null()));
    }
    for (size_t i = 0; i < n->failed_count; i++)
        (void)json_array_append_new(
            failed, json_pack("{s:o,s:o,s:o}", "node", cli_json_text(n->failed[i].node), "op",
                              cli_json_text(n->failed[i].op), "why", cli_json_text(n->failed[i].why)));
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:i,s:I,s:o}", "of", cli_json_text(what), "plugins", plugins,
                     "base", base, "libraries", libraries_json(n), "unserved", failed, "operators",
                     (int)n->operators, "bytes", (json_int_t)total, "install", cli_json_text(install));
}

static bool size_row(cli_column_table *t, const char *name, const char *why, uint64_t bytes,
                     const char *package)
{
    char size[32] = "absent";
    const char *cells[] = {name, size, package, why};

    if (bytes)
        (void)snprintf(size, sizeof size, "%llu KiB", (unsigned long long)(bytes + 1023) / 1024);
    return cli_table_row(t, cells);
}

static void libraries_print(needs *n)
{
    json_t *list = libraries_json(n);
    const json_t *path;
    size_t i;

    if (json_array_size(list))
        (void)printf("libraries of the system, with those of optional plugins\n");
    json_array_foreach(list, i, path) cli_say(stdout, "  %s\n", json_string_value(path));
    json_decref(list);
}

static void needs_print(needs *n, const char *install)
{
    static const char *const head[] = {"NEEDED", "SIZE", "PACKAGE", "WHY"};
    cli_column_table t = {.columns = 4};
    base_file files[3];
    uint64_t total = 0;
    bool ok = cli_table_row(&t, head);
    tn_plugin_info p;

    for (size_t i = 0; ok && i < base_files(files); i++) {
        total += size_of(files[i].path);
        ok = size_row(&t, files[i].name, "always", size_of(files[i].path), files[i].package);
    }
    for (size_t i = 0; ok && i < n->count; i++) {
        const bool there = plugin_by(n->app, n->items[i].name, NULL, &p);
        char package[4200] = "", why[sizeof n->items->why + 16];

        total += there ? p.file_bytes : 0;
        if (there)
            (void)cli_plugin_package(&p, package, sizeof package);
        else if (n->items[i].name[0] != '(')
            (void)snprintf(package, sizeof package, "tenon-plugin-%s", n->items[i].name);
        (void)snprintf(why, sizeof why, "%s%s", n->items[i].optional ? "optional: " : "", n->items[i].why);
        ok = size_row(&t, n->items[i].name, why, there ? p.file_bytes : 0, package);
    }
    if (ok)
        cli_table_print(&t);
    cli_table_free(&t);
    (void)printf("together %llu KiB\n", (unsigned long long)(total + 1023) / 1024);
    libraries_print(n);
    for (size_t i = 0; i < n->failed_count; i++)
        cli_say(stdout, "not served: node %s: %s: %s\n", n->failed[i].node, n->failed[i].op,
                n->failed[i].why);
    if (n->full)
        (void)printf("and more\n");
    (void)printf("install: %s\n", install);
}

static void install_line(const needs *n, char *out, size_t bytes)
{
    size_t used = (size_t)snprintf(out, bytes, "apt install libtenon0 tenon");

    for (size_t i = 0; i < n->count && used < bytes; i++)
        if (n->items[i].name[0] != '(')
            used += (size_t)snprintf(out + used, bytes - used, " tenon-plugin-%s", n->items[i].name);
}

/* ---- the command ---- */

static int needs_tell(needs *n, const cli_args *args)
{
    const char *what = args->words[0];
    char *install = calloc(1, 65536);
    bool missing = n->failed_count > 0;

    if (!install) {
        (void)tn_app_fail(n->app, TN_E_NOMEM, "out of memory");
        return CLI_EXIT_MEMORY;
    }
    for (size_t i = 0; i < n->count; i++)
        missing |= n->items[i].absent && !n->items[i].optional;
    install_line(n, install, 65536);
    if (args->value[OPT_JSON])
        cli_json_line(needs_json(n, what, install));
    else
        needs_print(n, install);
    free(install);
    return missing ? CLI_EXIT_MISSING : 0;
}

static void needs_collect(needs *n, const cli_args *args)
{
    const char *what = args->words[0], *device = args->value[OPT_DEVICE];
    char *folder;

    if (tn_app_check(n->app, tn_device_get(tn_app_ctx(n->app), device, &n->device)))
        return;
    if (device)
        device_add(n, device, "--device");
    folder = !strncmp(what, "zoo:", 4) ? NULL : cli_record_meant(what);
    if (folder)
        run_add(n, folder);
    else if (cli_ends_with(what, ".ini"))
        config_add(n, what);
    else
        model_add(n, what);
    free(folder);
    if (n->images) /* also where it is absent: the net runs without, its files cannot be read */
        need_add(n, "image", "inputs in JPEG or PNG files", true);
    provider_add(n, "pool:segment", "memory pools (auto)", true);
}

int cmd_plugins_needs(const cli_args *args)
{
    cli_args *with = malloc(sizeof *with);
    needs n = {.items = calloc(ITEMS_MAX, sizeof *n.items), .failed = calloc(ITEMS_MAX, sizeof *n.failed)};
    int code = CLI_EXIT_MEMORY, closed;

    if (with && n.items && n.failed) {
        *with = *args;
        if (cli_ends_with(args->words[0], ".ini"))
            with->value[OPT_CONFIG] = args->words[0];
        n.app = cli_plugins_open(with);
        code = 0;
        if (tn_app_ok(n.app))
            needs_collect(&n, args);
        if (tn_app_ok(n.app))
            code = needs_tell(&n, args);
        closed = tn_app_close(n.app);
        code = closed ? closed : code;
    } else {
        cli_error("out of memory");
    }
    free(n.items);
    free(n.failed);
    free(with);
    return code;
}
