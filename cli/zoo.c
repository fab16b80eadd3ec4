/*
 * tenon zoo: the nets that zoo:NAME means, with their parameters and the options that they know.
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "plugins/plugins.h"

typedef struct zoo_row {
    const char *name;
    char also[CLI_ZOO_SHORT]; /* the short form; "": it has none */
    const char *options;
    int64_t shape[4], parameters; /* of the input that it was made for */
} zoo_row;

static const struct {
    const char *begins;
    int64_t channels, side;
    const char *options;
} kinds[] = {
    {"lenet", 1, 28, "classes activation pad"},    {"mlp", 1, 28, "classes activation"},
    {"alexnet", 3, 224, "classes dropout"},        {"densenet", 3, 224, "classes dropout bn_size"},
    {"inception", 3, 299, "classes dropout"},      {"mobilenet", 3, 224, "classes"},
    {"resnet", 3, 224, "classes thumbnail"},       {"squeezenet", 3, 224, "classes dropout"},
    {"vgg", 3, 224, "classes dropout batch_norm"},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static size_t kind_of(const char *name)
{
    size_t i = 0;

    while (i + 1 < KINDS && strncmp(name, kinds[i].begins, strlen(kinds[i].begins)) != 0)
        i++;
    return i;
}

void cli_zoo_shape(const char *name, int64_t out[4])
{
    const char *found = tn_net_zoo_find(name);
    const size_t kind = found ? kind_of(found) : 0;

    if (found)
        memcpy(out, (int64_t[]){1, kinds[kind].channels, kinds[kind].side, kinds[kind].side},
               4 * sizeof *out);
}

/* Elements of all that the graph takes but its data, moving averages included. */
static int64_t parameters_of(tn_app *app, tn_net *net, const int64_t *shape)
{
    const tn_known data = {.name = tn_net_input(net), .shape = shape, .ndim = 4, .dtype = TN_F32};
    static const int32_t lists[] = {TN_LIST_ARGUMENTS, TN_LIST_AUX};
    tn_symbol *symbol = tn_net_symbol(net);
    tn_inferred *found = NULL;
    int64_t sum = -cli_elements(&data);
    tn_known k;

    if (!tn_app_check(app, symbol ? tn_symbol_infer(symbol, 1, &data, 0, &found) : TN_E_STATE))
        for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
            for (size_t i = 0; !tn_inferred_at(found, lists[l], i, &k); i++)
                sum += cli_elements(&k);
    tn_inferred_destroy(found);
    tn_symbol_release(symbol);
    return sum;
}

static bool row_make(zoo_row *row, tn_app *app, const char *name)
{
    tn_net *net = tn_net_zoo(app, name);
    *row = (zoo_row){.name = name, .options = kinds[kind_of(name)].options};
    cli_zoo_shape(name, row->shape);
    if (!cli_zoo_short(name, row->also))
        row->also[0] = '\0';
    row->parameters = net ? parameters_of(app, net, row->shape) : 0;
    return tn_app_ok(app);
}

static bool row_print(const zoo_row *row, cli_column_table *t)
{
    const tn_known input = {.shape = row->shape + 1, .ndim = 3};
    char parameters[32], shape[CLI_SHAPE_TEXT];
    const char *cells[] = {row->name, row->also, parameters, shape, row->options};

    (void)snprintf(parameters, sizeof parameters, "%lld", (long long)row->parameters);
    (void)cli_shape_text(&input, "x", shape);
    return cli_table_row(t, cells);
}

static json_t *row_json(const zoo_row *row)
{
    return json_pack("{s:s, s:s, s:I, s:[I,I,I], s:s}", "name", row->name, "also", row->also, "parameters",
                     (json_int_t)row->parameters, "input", (json_int_t)row->shape[1],
                     (json_int_t)row->shape[2], (json_int_t)row->shape[3], "options", row->options);
}

static void rows_print(tn_app *app, const char *only, bool json)
{
    static const char *const head[] = {"NAME", "ALSO", "PARAMETERS", "INPUT", "OPTIONS"};
    cli_column_table t = {.columns = 5};
    json_t *list = json ? json_array() : NULL;
    bool ok = cli_table_row(&t, head);
    zoo_row row;

    for (const char *const *name = tn_net_zoo_names(); ok && *name; name++) {
        if (only && only != *name)
            continue;
        ok = row_make(&row, app, *name) &&
             (json ? !json_array_append_new(list, row_json(&row)) : row_print(&row, &t));
    }
    if (!ok)
        (void)tn_app_fail(app, TN_E_NOMEM, "out of memory");
    else if (json)
        cli_json_line(json_pack("{s:O}", "nets", list));
    else
        cli_table_print(&t);
    json_decref(list);
    cli_table_free(&t);
}

int cmd_zoo(const cli_args *args)
{
    const char *name = args->word_count ? args->words[0] : NULL, *only = name ? tn_net_zoo_find(name) : NULL;
    char *fault = name && !only ? cli_model_fault(name) : NULL;
    tn_app *app;

    if (name && !only) {
        cli_error("zoo: %s", fault ? fault : "a file of a net is none of the zoo");
        free(fault);
        return CLI_EXIT_USAGE;
    }
    app = tn_app_open(.name = "tenon", .errors = stderr); /* no [model] of a file is for all nets */
    rows_print(app, only, args->value[OPT_JSON] != NULL);
    return tn_app_close(app);
}
