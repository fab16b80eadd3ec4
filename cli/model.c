/*
 * Models as commands take them. A graph with operators that nobody knows is refused with all of them at once;
 * one whose shapes do not follow is refused with the inputs to give.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"
#include "runs/runs.h"

#define KNOWN_MAX 64   /* of --shape */
#define UNKNOWN_MAX 20 /* inputs without a shape that are named one by one */

/* ---- shapes ---- */

int64_t cli_elements(const tn_known *k)
{
    int64_t n = 1;

    for (int32_t i = 0; i < k->ndim; i++) {
        if (k->shape[i] < 0)
            return -1;
        n *= k->shape[i]; /* inference has seen that the product fits */
    }
    return k->ndim < 0 ? -1 : n;
}

double cli_cost(uint64_t count)
{
    return count == TN_VIEW_UNKNOWN ? NAN : (double)count;
}

uint64_t cli_dtype_bytes(int32_t dtype)
{
    return dtype >= 0 && dtype < TN_DTYPE_LIMIT ? tn_dtype_bytes(dtype) : 0;
}

const char *cli_shape_text(const tn_known *k, const char *times, char out[CLI_SHAPE_TEXT])
{
    size_t used = 0;

    if (k->ndim < 0)
        return strcpy(out, "?");
    if (!k->ndim)
        return strcpy(out, "scalar");
    for (int32_t i = 0; i < k->ndim && used < CLI_SHAPE_TEXT - 32; i++) {
        used += (size_t)snprintf(out + used, CLI_SHAPE_TEXT - used, "%s", i ? times : "");
        used += k->shape[i] < 0
                    ? (size_t)snprintf(out + used, CLI_SHAPE_TEXT - used, "?")
                    : (size_t)snprintf(out + used, CLI_SHAPE_TEXT - used, "%lld", (long long)k->shape[i]);
    }
    return out;
}

int cli_shape_parse(const char *text, int64_t *out, int max)
{
    int count = 0;

    while (isdigit((unsigned char)*text)) {
        char *end;
        long long value;

        errno = 0;
        value = strtoll(text, &end, 10);
        if (errno || count == max)
            return -1;
        out[count++] = value;
        if (!*end)
            return count;
        if ((*end != ',' && *end != 'x') || !end[1])
            return -1;
        text = end + 1;
    }
    return -1;
}

/* ---- opening ---- */

const char *cli_zoo_short(const char *name, char out[CLI_ZOO_SHORT])
{
    static const char *const ends[] = {"_v1", "_1.0", "1.0"};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (!cli_ends_with(name, ends[i]))
            continue;
        (void)snprintf(out, CLI_ZOO_SHORT, "%.*s", (int)(strlen(name) - strlen(ends[i])), name);
        if (tn_net_zoo_find(out) == name)
            return out;
    }
    return NULL;
}

/* Names and, behind each, its short form. */
static const char *zoo_name(const void *from, size_t index)
{
    static char text[CLI_ZOO_SHORT];
    const char *name = tn_net_zoo_names()[index / 2], *given;

    (void)from;
    given = name && index % 2 ? cli_zoo_short(name, text) : NULL;
    return given ? given : name;
}

char *cli_model_fault(const char *model)
{
    const char *name = strncmp(model, "zoo:", 4) ? model : model + 4, *similar;
    char *folder, *text;

    if (tn_net_zoo_find(name) || cli_ends_with(model, ".json"))
        return NULL;
    if ((folder = cli_record_meant(model))) {
        text = cli_format(
            "%s is a run: `tenon train --resume %s` goes on with it; for a new run of its net give "
            "%s/model-symbol.json",
            folder, folder, folder);
        free(folder);
        return text;
    }
    similar = cli_nearest(name, zoo_name, NULL);
    return cli_format("unknown model \"%s\"%s%s%s; a model is a zoo:NAME (`tenon zoo` lists them), a "
                      "-symbol.json or an .ini that names one",
                      model, similar ? "; did you mean \"zoo:" : "", similar ? similar : "",
                      similar ? "\"?" : "");
}

/* ---- files of a saved model ---- */

static bool saved_of_run(cli_saved *saved, tn_app *app)
{
    char *best = cli_path(saved->folder, "model-best.params"),
         *last = cli_path(saved->folder, "model-0000.params"), *why = NULL;

    saved->symbol = cli_path(saved->folder, "model-symbol.json");
    saved->params = best && !access(best, F_OK) ? best : last;
    free(saved->params == best ? last : best);
    if (!saved->symbol || !saved->params)
        return !tn_app_fail(app, TN_E_NOMEM, "out of memory");
    if (!access(saved->symbol, F_OK) && !access(saved->params, F_OK))
        return true;
    why = cli_format("%s holds no model: there is no %s in it; a training that was stopped goes on with "
                     "`tenon train --resume %s`",
                     saved->folder, access(saved->symbol, F_OK) ? "model-symbol.json" : "model-0000.params",
                     saved->folder);
    (void)tn_app_fail_number(app, CLI_ABSENT, why ? why : "no model");
    free(why);
    return false;
}

bool cli_saved_find(cli_saved *saved, const cli_args *args, tn_app *app)
{
    const bool file = !access(args->words[0], F_OK) && !cli_is_folder(args->words[0]);
    char *why, similar[CLI_SIMILAR_BYTES];

    *saved = (cli_saved){.words = 1};
    if (!file && (saved->folder = cli_record_meant(args->words[0])))
        return saved_of_run(saved, app);
    saved->words = 2;
    if (args->word_count > 1 && (file || cli_ends_with(args->words[0], ".json"))) {
        saved->symbol = cli_format("%s", args->words[0]);
        saved->params = cli_format("%s", args->words[1]);
        return saved->symbol && saved->params;
    }
    cli_record_similar(CLI_RUNS, args->words[0], similar);
    if (file && cli_ends_with(args->words[0], ".json"))
        why = cli_format("the .params file is missing: it goes behind %s", args->words[0]);
    else
        why = cli_format(
            "%s is no run and no model%s; give a run folder (`tenon runs list`), or MODEL-symbol.json "
            "and FILE.params",
            args->words[0], similar);
    (void)tn_app_fail(app, TN_E_ARG, why ? why : "no model");
    free(why);
    return false;
}

void cli_saved_fini(cli_saved *saved)
{
    free(saved->symbol);
    free(saved->params);
    free(saved->folder);
    memset(saved, 0, sizeof *saved);
}

/* Neither a file nor a run. */
static int absent_say(const char *what)
{
    char similar[CLI_SIMILAR_BYTES];

    cli_record_similar(CLI_RUNS, what, similar);
    cli_error("%s is no run, and no file%s; give a run (`tenon runs list`), a MODEL-symbol.json or zoo:NAME "
              "(`tenon zoo`)",
              what, similar);
    return CLI_EXIT_USAGE;
}

static int file_open(cli_model *m, const char *path)
{
    if (access(path, F_OK) && !strchr(path, '/') && !cli_ends_with(path, ".json"))
        return absent_say(path);
    m->symbol = tn_app_symbol(m->app, path);
    return m->symbol ? 0 : tn_app_exit_code(m->app);
}

static int zoo_open(cli_model *m, const char *name)
{
    tn_net *net = tn_net_zoo(m->app, name);

    m->symbol = tn_net_symbol(net);
    return m->symbol ? 0 : tn_app_exit_code(m->app);
}

/* "runs/x/model-symbol.json" and "net.json" are called x/model and net; "zoo:lenet" is lenet. */
static char *name_of(const char *what)
{
    const char *slash, *end;
    size_t length;

    if (!strncmp(what, "zoo:", 4))
        return cli_format("%s", what + 4);
    slash = strrchr(what, '/');
    what = slash && slash[1] ? slash + 1 : what;
    length = strlen(what);
    if ((end = strstr(what, "-symbol.json")) && !end[12])
        length = (size_t)(end - what);
    else if ((end = strstr(what, ".json")) && !end[5])
        length = (size_t)(end - what);
    return cli_format("%.*s", (int)length, what);
}

/* The shape of the samples that a run was trained on, if its data is still there. */
static void sample_find(cli_model *m, const char *folder)
{
    char why[CLI_WHY_BYTES];
    json_t *record = cli_record_json(folder, why);
    const char *name = json_string_value(json_object_get(record, "data_name"));
    tn_data *data = name ? tn_data_open(m->app, name, .batch = 1) : NULL;

    if (data)
        tn_data_shape(data, m->sample);
    else
        tn_app_clear(m->app); /* then --shape is asked for */
    json_decref(record);
}

/* The net of a run: its file, or as long as there is none, the one of the zoo that run.json names. */
static int run_open(cli_model *m, const char *folder)
{
    char *path = cli_path(folder, "model-symbol.json"), why[CLI_WHY_BYTES];
    json_t *record = path && access(path, F_OK) ? cli_record_json(folder, why) : NULL;
    const char *model = json_string_value(json_object_get(record, "model"));
    int code = CLI_EXIT_FAILED;

    if (model && !strncmp(model, "zoo:", 4))
        code = zoo_open(m, model);
    else if (path)
        code = file_open(m, path);
    json_decref(record);
    free(path);
    return code;
}

int cli_model_open(cli_model *m, tn_app *app, const char *what)
{
    char *folder = NULL, *around = NULL;
    int code = CLI_EXIT_FAILED;

    memset(m, 0, sizeof *m);
    m->app = app;
    if (!tn_app_ok(app))
        return tn_app_exit_code(app);
    if (strncmp(what, "zoo:", 4) != 0 && !(folder = cli_record_meant(what)))
        around = cli_record_around(what);
    if ((m->name = name_of(folder ? folder : what)))
        code = folder                          ? run_open(m, folder)
               : strncmp(what, "zoo:", 4) != 0 ? file_open(m, what)
                                               : zoo_open(m, what);
    if (!code && (folder || around))
        sample_find(m, folder ? folder : around);
    free(folder);
    free(around);
    return code;
}

void cli_model_fini(cli_model *m)
{
    tn_symbol_view_destroy(m->nodes);
    tn_inferred_destroy(m->shapes);
    tn_symbol_release(m->symbol);
    free(m->name);
    memset(m, 0, sizeof *m);
}

/* ---- parameters and inputs ---- */

static bool one_of(const char *text, const char *const *list)
{
    for (; *list; list++)
        if (!strcmp(text, *list))
            return true;
    return false;
}

static bool ends_with_one_of(const char *text, const char *const *list)
{
    const char *end = strrchr(text, '_');

    return end && one_of(end + 1, list);
}

static const char *const parameter_inputs[] = {
    "weight",       "bias",        "gamma",      "beta",       "moving_mean", "moving_var",
    "running_mean", "running_var", "parameters", "moving_avg", NULL};

bool cli_roles_find(cli_roles *r, const tn_symbol_view *nodes, tn_app *app)
{
    const uint32_t count = tn_symbol_view_count(nodes);

    if (!(r->parameter = calloc(count + 1u, 1)))
        return !tn_app_fail(app, TN_E_NOMEM, "out of memory");
    for (uint32_t i = 0; i < count; i++) {
        tn_view_node n = {.struct_size = TN_SIZE(tn_view_node)};
        tn_op_info o = {.struct_size = TN_SIZE(tn_op_info)};
        size_t named = 0;

        if (tn_app_check(app, tn_symbol_view_node(nodes, i, &n)))
            return false;
        if (!n.op) {
            r->parameter[i] = n.flags & TN_VIEW_AUX || ends_with_one_of(n.name, parameter_inputs);
            continue;
        }
        if (tn_app_check(app, tn_op_find(tn_app_ctx(app), n.op, &o)))
            return false;
        for (uint32_t k = 0; k < n.input_count; k++) {
            if (o.inputs[named] && one_of(o.inputs[named], parameter_inputs))
                r->parameter[n.inputs[k].node] = 1; /* of a computed node it says nothing */
            named += o.inputs[named] && o.inputs[named][strlen(o.inputs[named]) - 1] != '*';
        }
    }
    return true;
}

/* ---- inference ---- */

static bool is_label(const char *name)
{
    static const char *const labels[] = {"label", NULL};

    return ends_with_one_of(name, labels);
}

/* A variable of unknown shape. `strict` 1: that is no parameter, 2: and no label, which mostly follows. */
static bool is_missing(const cli_model *m, const cli_roles *r, uint32_t index, int strict)
{
    tn_view_node n = {.struct_size = TN_SIZE(tn_view_node)};
    tn_known k;

    if (tn_symbol_view_node(m->nodes, index, &n) || n.op || (strict > 0 && r->parameter[index]) ||
        (strict > 1 && is_label(n.name)))
        return false;
    return !tn_symbol_view_output(m->nodes, index, 0, &k) && cli_elements(&k) < 0;
}

static bool any_missing(const cli_model *m, const cli_roles *r, int strict)
{
    for (uint32_t i = 0; i < tn_symbol_view_count(m->nodes); i++)
        if (is_missing(m, r, i, strict))
            return true;
    return false;
}

/* Names what to give: inputs, or if these are all known whatever is not. */
static int missing_say(const cli_model *m)
{
    cli_roles roles = {NULL};
    uint32_t said = 0;
    int strict = 2;

    if (!cli_roles_find(&roles, m->nodes, m->app)) {
        free(roles.parameter);
        return CLI_EXIT_FAILED;
    }
    while (strict && !any_missing(m, &roles, strict))
        strict--;
    for (uint32_t i = 0; i < tn_symbol_view_count(m->nodes) && said < UNKNOWN_MAX; i++) {
        tn_view_node n = {.struct_size = TN_SIZE(tn_view_node)};

        if (!is_missing(m, &roles, i, strict) || tn_symbol_view_node(m->nodes, i, &n))
            continue;
        cli_error("the shape of \"%.200s\" is not known; give --shape %.200s=SIZES, such as %.200s=1,1,28,28",
                  n.name, n.name, n.name);
        said++;
    }
    if (!said)
        cli_error("some shapes follow from no input: they are known only when the model runs");
    free(roles.parameter);
    return CLI_EXIT_USAGE;
}

typedef struct shape_list {
    tn_known known[KNOWN_MAX];
    int64_t dims[KNOWN_MAX][TN_NDIM_MAX];
    char *names[KNOWN_MAX];
    size_t count;
} shape_list;

/* The only variable that is no parameter, label apart: what --shape without a name is for. NULL: there are
 * `*count`. */
static char *only_input(const cli_model *m, size_t *count)
{
    cli_roles roles = {NULL};
    char *found = NULL;

    *count = 0;
    if (cli_roles_find(&roles, m->nodes, m->app))
        for (uint32_t i = 0; i < tn_symbol_view_count(m->nodes); i++) {
            tn_view_node n = {.struct_size = TN_SIZE(tn_view_node)};

            if (tn_symbol_view_node(m->nodes, i, &n) || n.op || roles.parameter[i] || is_label(n.name))
                continue;
            free(found);
            found = cli_format("%s", n.name);
            ++*count;
        }
    free(roles.parameter);
    if (*count == 1)
        return found;
    free(found);
    return NULL;
}

/* --batch N is the first size of every shape given. */
static bool batch_set(const cli_args *args, shape_list *list)
{
    const char *text = args->value[OPT_BATCH];
    char *end = NULL;
    long long batch = text ? strtoll(text, &end, 10) : 0;

    if (text && (*end || end == text || batch < 1)) {
        cli_error("--batch %s: a whole number of at least 1 is needed", text);
        return false;
    }
    for (size_t i = 0; text && i < list->count; i++)
        if (list->known[i].ndim > 0)
            list->dims[i][0] = batch;
    return true;
}

/* Without any --shape, that of a run's data. */
static void sample_take(const cli_model *m, shape_list *list)
{
    size_t count;
    char *name = m->sample[0] && !list->count ? only_input(m, &count) : NULL;

    if (!name)
        return;
    memcpy(list->dims[0], m->sample, sizeof m->sample);
    list->known[0] = (tn_known){.name = name, .shape = list->dims[0], .ndim = 4, .dtype = -1};
    list->names[list->count++] = name;
}

static bool shapes_read(const cli_model *m, const cli_args *args, shape_list *list)
{
    const char *text;
    size_t cursor = 0, inputs = 0;

    while ((text = cli_args_each(args, OPT_SHAPE, &cursor))) {
        const char *equals = strrchr(text, '=');
        tn_known *k = &list->known[list->count];
        int ndim;

        if (list->count == KNOWN_MAX) {
            cli_error("more than %d shapes", KNOWN_MAX);
            return false;
        }
        ndim = cli_shape_parse(equals ? equals + 1 : text, list->dims[list->count], TN_NDIM_MAX);
        if (ndim < 0) {
            cli_error("--shape %s: NAME=1,1,28,28 is needed", text);
            return false;
        }
        if (equals)
            list->names[list->count] = cli_format("%.*s", (int)(equals - text), text);
        else if (!(list->names[list->count] = only_input(m, &inputs)))
            cli_error("the model has %zu inputs: say which, --shape NAME=1,1,28,28", inputs);
        k->name = list->names[list->count];
        k->shape = list->dims[list->count++];
        k->ndim = ndim;
        k->dtype = -1;
        if (!k->name)
            return false;
    }
    sample_take(m, list);
    return batch_set(args, list);
}

static int infer_with(cli_model *m, const shape_list *list, bool all)
{
    tn_status st = tn_symbol_infer(m->symbol, list->count, list->known, TN_SYMBOL_PARTIAL, &m->shapes);

    if (!st) { /* types that nothing says are float32, once all shapes are known */
        tn_inferred *whole = NULL;

        if (!tn_symbol_infer(m->symbol, list->count, list->known, 0, &whole)) {
            tn_inferred_destroy(m->shapes);
            m->shapes = whole;
        }
        m->complete = tn_inferred_complete(m->shapes);
    }
    if (st == TN_E_KEY || st == TN_E_SHAPE || st == TN_E_DTYPE) { /* the given ones contradict the model */
        cli_error("%s", tn_error_text());
        return CLI_EXIT_USAGE;
    }
    tn_symbol_view_destroy(m->nodes);
    m->nodes = NULL;
    if (tn_app_check(m->app, st) ||
        tn_app_check(m->app, tn_symbol_view_create(m->symbol, m->shapes, &m->nodes)))
        return CLI_EXIT_FAILED;
    return all && !m->complete ? missing_say(m) : 0;
}

int cli_model_infer(cli_model *m, const cli_args *args, bool all)
{
    shape_list *list = calloc(1, sizeof *list);
    int code = CLI_EXIT_USAGE;

    if (!list) {
        cli_error("out of memory");
        return CLI_EXIT_MEMORY;
    }
    if (tn_app_check(m->app, tn_symbol_view_create(m->symbol, NULL, &m->nodes)))
        code = CLI_EXIT_FAILED;
    else if (shapes_read(m, args, list))
        code = infer_with(m, list, all);
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list);
    return code;
}

const char *cli_node_attr(const tn_view_node *n, const char *name)
{
    for (size_t i = 0; n->attrs[i]; i += 2)
        if (!strcmp(n->attrs[i], name))
            return n->attrs[i + 1];
    return "";
}
