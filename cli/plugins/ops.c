/*
 * tenon ops: the operators that this installation knows, and the page of one. All of it is what the library
 * says of itself.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/plugins.h"
#include "tenon/plugin/op.h"

#define NAME_COLUMNS 28
#define FAMILY_COLUMNS 12
#define KERNELS_COLUMNS 17

static const char *const attr_types[] = {
    [TN_ATTR_T_INT] = "int",
    [TN_ATTR_T_FLOAT] = "float",
    [TN_ATTR_T_BOOL] = "bool",
    [TN_ATTR_T_CHOICE] = "choice",
    [TN_ATTR_T_TEXT] = "text",
    [TN_ATTR_T_TUPLE] = "tuple of int",
    [TN_ATTR_T_DTYPE] = "data type",
    [TN_ATTR_T_OPT_INT] = "int or None",
    [TN_ATTR_T_OPT_BOOL] = "bool or None",
    [TN_ATTR_T_OPT_FLOAT] = "float or None",
    [TN_ATTR_T_FLOATS] = "tuple of float",
    [TN_ATTR_T_OPT_TUPLE] = "tuple of int or None",
};

static const char *type_of(const tn_attr_def *a)
{
    const char *name = a->type < sizeof attr_types / sizeof *attr_types ? attr_types[a->type] : NULL;

    return name ? name : "?";
}

static const char *gradient_of(const tn_op_info *o)
{
    if (!o->differentiable)
        return "no";
    return o->definition->flags & TN_OP_ZERO_GRADIENT ? "zero" : "yes";
}

static const char *family_of(const tn_op_info *o)
{
    return *o->family ? o->family : *o->plugin ? o->plugin : "program";
}

static bool internal(const tn_op_info *o)
{
    return (o->definition->flags & (TN_OP_BACKWARD | TN_OP_INTERNAL)) != 0;
}

/* ---- which ones ---- */

static bool contains(const char *text, const char *part)
{
    const size_t length = strlen(part);

    for (; *text; text++) {
        size_t i = 0;

        while (i < length && tolower((unsigned char)text[i]) == tolower((unsigned char)part[i]))
            i++;
        if (i == length)
            return true;
    }
    return !length;
}

static bool wanted(const cli_args *args, const tn_op_info *o)
{
    const char *family = args->value[OPT_FAMILY], *search = args->value[OPT_SEARCH];

    if (internal(o) || (family && strcmp(family, family_of(o)) != 0))
        return false;
    if (!search || contains(o->name, search) || contains(o->doc, search))
        return true;
    for (const char *const *a = o->aliases; *a; a++)
        if (contains(*a, search))
            return true;
    return false;
}

/* Operators and kernels of plugins are known once these are loaded; one that cannot be is no reason to show
 * no list. */
static void plugins_load(tn_ctx *ctx)
{
    size_t count = 0;

    (void)tn_plugin_count(ctx, &count);
    for (size_t i = 0; i < count; i++) {
        tn_plugin_info p = {.struct_size = TN_SIZE(tn_plugin_info)};

        if (!tn_plugin_at(ctx, i, &p) && p.state == TN_PLUGIN_READY &&
            (strstr(p.provides, "op:") || strstr(p.provides, "kernels@")))
            (void)tn_plugin_load(ctx, p.name);
    }
}

typedef struct op_list {
    tn_op_info *items;
    size_t count, shown;
} op_list;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const tn_op_info *)a)->name, ((const tn_op_info *)b)->name);
}

static tn_status list_make(tn_app *app, const cli_args *args, op_list *list)
{
    tn_ctx *ctx = tn_app_ctx(app);
    size_t count = 0;

    plugins_load(ctx);
    if (tn_app_check(app, tn_op_count(ctx, &count)))
        return tn_app_status(app);
    if (!(list->items = calloc(count + 1, sizeof *list->items)))
        return tn_app_fail(app, TN_E_NOMEM, "out of memory");
    for (size_t i = 0; i < count; i++) {
        tn_op_info o = {.struct_size = TN_SIZE(tn_op_info)};

        if (tn_app_check(app, tn_op_at(ctx, i, &o)))
            return tn_app_status(app);
        list->items[list->count++] = o;
    }
    qsort(list->items, list->count, sizeof *list->items, by_name);
    for (size_t i = 0; i < list->count; i++)
        list->shown += wanted(args, &list->items[i]);
    return TN_OK;
}

static const char *family_next(const void *from, size_t index)
{
    const op_list *list = from;

    return index < list->count ? family_of(&list->items[index]) : NULL;
}

static bool family_known(const op_list *list, const char *family)
{
    for (size_t i = 0; i < list->count; i++)
        if (!strcmp(family_of(&list->items[i]), family))
            return true;
    return false;
}

/* ---- kernels ---- */

/* The next kernel of an operator, from the one at `k` on; NULL: no more. */
static const tn_kernel_info *kernel_next(const tn_kernel_info *k, const char *op)
{
    while (k->op && strcmp(k->op, op) != 0)
        k++;
    return k->op ? k : NULL;
}

static json_t *kernels_json(const tn_kernel_info *kernels, const char *op)
{
    json_t *list = json_array(), *types;

    for (const tn_kernel_info *k = kernels; (k = kernel_next(k, op)); k++) {
        types = json_array();
        for (const char *const *t = k->types; t && *t; t++)
            (void)json_array_append_new(types, cli_json_text(*t));
        (void)json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:o, s:o, s:i, s:o, s:b}", "plugin", cli_json_text(k->plugin), "kernel",
                      cli_json_text(k->name), "device", cli_json_text(k->device), "isa",
                      cli_json_text(k->isa), "rank", (int)k->rank, "types", types, "usable", (int)k->usable));
    }
    return list;
}

static bool has_body(const tn_op *op)
{
    return op->struct_size >= TN_END(tn_op, body) && op->body;
}

static void kernels_print(const tn_kernel_info *kernels, const tn_op_info *o)
{
    bool first = true;

    for (const tn_kernel_info *k = kernels; (k = kernel_next(k, o->name)); k++, first = false) {
        (void)printf("%s  %s/%s on %s, rank %d%s%s%s\n  %-20s", first ? "\nkernels\n" : "", k->plugin,
                     k->name, k->device, (int)k->rank, *k->isa ? ", needs " : "", k->isa,
                     k->usable ? "" : ", which this processor lacks", "");
        for (const char *const *t = k->types; t && *t; t++)
            (void)printf(" %s", *t);
        (void)puts(k->types && *k->types ? "" : " any types");
    }
    if (first && has_body(o->definition))
        (void)puts("\nno kernel of its own: its body runs by the device's kernel of _fused_pointwise");
    else if (first)
        (void)puts("\nno loaded plugin has a kernel");
}

/* "cpu, cpu-openblas": plugins that have one; "-". */
static const char *plugins_text(const tn_kernel_info *kernels, const char *op, char out[64])
{
    const char *last = "";
    size_t used = 0;

    (void)snprintf(out, 64, "-");
    for (const tn_kernel_info *k = kernels; (k = kernel_next(k, op)); k++) { /* they come plugin by plugin */
        if (strcmp(last, k->plugin) != 0 && used < 64)
            used += (size_t)snprintf(out + used, 64 - used, "%s%s", used ? "," : "", k->plugin);
        last = k->plugin;
    }
    return out;
}

/* ---- the list ---- */

static json_t *texts_json(const char *const *texts)
{
    json_t *list = json_array();

    for (; *texts; texts++)
        (void)json_array_append_new(list, cli_json_text(*texts));
    return list;
}

/* [name, type, default] of one; a default that is None is text, one that is missing null. */
static json_t *arg_json(const char *name, const char *type, const char *fallback)
{
    json_t *arg = json_array();

    (void)json_array_append_new(arg, cli_json_text(name));
    (void)json_array_append_new(arg, cli_json_text(type));
    (void)json_array_append_new(arg, fallback ? cli_json_text(fallback) : json_null());
    return arg;
}

/* Inputs, then attributes. */
static json_t *args_json(const tn_op_info *o)
{
    json_t *list = json_array();

    for (const char *const *in = o->inputs; *in; in++)
        (void)json_array_append_new(list, arg_json(*in, "array", NULL));
    for (uint32_t i = 0; i < o->attr_count; i++) {
        const tn_attr_def *a = &o->attrs[i];
        char type[512];

        (void)snprintf(type, sizeof type, "%s%s", a->choices ? "choice of " : "",
                       a->choices                   ? a->choices
                       : a->flags & TN_ATTR_F_PAIRS ? "tuple of pairs of int"
                                                    : type_of(a));
        (void)json_array_append_new(list, arg_json(a->name, type, a->default_text));
    }
    return list;
}

static json_t *op_json(const tn_kernel_info *kernels, const tn_op_info *o)
{
    json_t *j = json_object();

    (void)json_object_set_new(j, "name", cli_json_text(o->name));
    (void)json_object_set_new(j, "doc", cli_json_text(o->doc));
    (void)json_object_set_new(j, "aliases", texts_json(o->aliases));
    (void)json_object_set_new(j, "family", cli_json_text(o->family));
    (void)json_object_set_new(j, "plugin", cli_json_text(o->plugin));
    (void)json_object_set_new(j, "version", json_integer(o->version));
    (void)json_object_set_new(j, "gradient", json_string(gradient_of(o)));
    (void)json_object_set_new(j, "random", json_boolean(o->random));
    (void)json_object_set_new(j, "inputs", texts_json(o->inputs));
    (void)json_object_set_new(j, "args", args_json(o));
    (void)json_object_set_new(j, "outputs", texts_json(o->outputs));
    (void)json_object_set_new(j, "kernels", kernels_json(kernels, o->name));
    return j;
}

static void row_print(const char *name, const char *family, const char *gradient, const char *plugins,
                      const tn_op_info *o)
{
    const int columns = cli_line_columns();
    char *line = cli_format("%-*s  %-*s  %-8s  %-*s  %s", NAME_COLUMNS, name, FAMILY_COLUMNS, family,
                            gradient, KERNELS_COLUMNS, plugins, o ? o->doc : "MEANING");
    int used = line ? cli_line_wrap(line, 0, columns) : 0;

    free(line);
    for (const char *const *a = o ? o->aliases : NULL; a && *a; a++) {
        line = cli_format("%s%s", a == o->aliases ? " (also " : ", ", *a);
        used = line ? cli_line_wrap(line, used, columns) : used;
        free(line);
    }
    (void)puts(o && *o->aliases ? ")" : "");
}

static void list_print(const tn_kernel_info *kernels, const cli_args *args, const op_list *list)
{
    json_t *all = args->value[OPT_JSON] ? json_array() : NULL;

    if (!all)
        row_print("NAME", "FAMILY", "GRADIENT", "KERNELS", NULL);
    for (size_t i = 0; i < list->count; i++) {
        const tn_op_info *o = &list->items[i];
        char plugins[64];

        if (!wanted(args, o))
            continue;
        if (all)
            (void)json_array_append_new(all, op_json(kernels, o));
        else
            row_print(o->name, family_of(o), gradient_of(o), plugins_text(kernels, o->name, plugins), o);
    }
    if (all)
        cli_json_line(json_pack("{s:o}", "operators", all));
}

static int list_all(tn_app *app, const cli_args *args)
{
    const char *family = args->value[OPT_FAMILY];
    op_list list = {NULL, 0, 0};
    tn_kernel_info *kernels = NULL;
    int code = 0;

    if (list_make(app, args, &list) || !(kernels = cli_kernels(app))) {
        code = CLI_EXIT_FAILED; /* the app says which */
    } else if (family && !family_known(&list, family)) {
        char similar[CLI_SIMILAR_BYTES];

        cli_error("there is no family \"%s\"%s; `tenon ops` shows the family of each operator", family,
                  cli_similar_text(cli_nearest(family, family_next, &list), similar));
        code = CLI_EXIT_USAGE;
    } else {
        list_print(kernels, args, &list);
        if (!list.shown) {
            cli_error("no operator's name, alias or meaning has that in it");
            code = CLI_EXIT_FAILED;
        }
    }
    free(list.items);
    free(kernels);
    return code;
}

/* ---- one of them ---- */

static json_t *attr_json(const tn_attr_def *a)
{
    json_t *j = json_object(), *range = json_null();

    if (a->min <= a->max) {
        range = json_array();
        (void)json_array_append_new(range, cli_json_number(a->min));
        (void)json_array_append_new(range, cli_json_number(a->max));
    }
    (void)json_object_set_new(j, "name", cli_json_text(a->name));
    (void)json_object_set_new(j, "type", json_string(type_of(a)));
    (void)json_object_set_new(j, "default", a->default_text ? cli_json_text(a->default_text) : json_null());
    (void)json_object_set_new(j, "required", json_boolean(!a->default_text));
    (void)json_object_set_new(j, "choices", a->choices ? cli_json_text(a->choices) : json_null());
    (void)json_object_set_new(j, "range", range);
    (void)json_object_set_new(j, "since", json_integer(a->since));
    (void)json_object_set_new(j, "run_time", json_boolean((a->flags & TN_ATTR_F_RUNTIME) != 0));
    (void)json_object_set_new(j, "doc", cli_json_text(a->doc ? a->doc : ""));
    return j;
}

static void texts_print(const char *title, const char *const *texts)
{
    if (!*texts)
        return;
    (void)printf("%-10s", title);
    for (size_t i = 0; texts[i]; i++)
        (void)printf("%s%s", i ? ", " : "", texts[i]);
    (void)putchar('\n');
}

static void attr_print(const tn_attr_def *a)
{
    (void)printf("  %-20s %s", a->name, type_of(a));
    if (a->choices)
        (void)printf(" %s", a->choices);
    if (a->min <= a->max)
        (void)printf(" %.12g to %.12g", a->min, a->max);
    if (!a->default_text)
        (void)printf(", required");
    else
        (void)printf(", default %s", *a->default_text ? a->default_text : "\"\"");
    if (a->since > 1)
        (void)printf(", since version %u", (unsigned)a->since);
    if (a->flags & TN_ATTR_F_RUNTIME)
        (void)printf(", may change from call to call");
    (void)printf("\n  %-20s %s\n", "", a->doc ? a->doc : "");
}

static void mutated_print(const tn_op_info *o)
{
    bool first = true;

    for (size_t i = 0; o->inputs[i] && i < 64; i++)
        if (o->mutates >> i & 1u) {
            (void)printf("%s%s", first ? "changes   " : ", ", o->inputs[i]);
            first = false;
        }
    if (!first)
        (void)putchar('\n');
}

static void page_print(const tn_kernel_info *kernels, const tn_op_info *o)
{
    (void)printf("%s — %s\n\n", o->name, o->doc);
    texts_print("inputs", o->inputs);
    texts_print("outputs", o->outputs);
    mutated_print(o);
    texts_print("aliases", o->aliases);
    (void)printf("gradient  %s\n", gradient_of(o));
    if (o->random)
        (void)puts("random    takes a draw of the device's counter");
    (void)printf("family    %s\n", family_of(o));
    if (*o->plugin)
        (void)printf("plugin    %s\n", o->plugin);
    (void)printf("version   %u\n", (unsigned)o->version);
    if (o->attr_count)
        (void)puts("\nattributes");
    for (uint32_t i = 0; i < o->attr_count; i++)
        attr_print(&o->attrs[i]);
    kernels_print(kernels, o);
}

static int show_one(tn_app *app, const cli_args *args)
{
    tn_op_info o = {.struct_size = TN_SIZE(tn_op_info)};
    json_t *page, *attrs, *mutated;
    tn_kernel_info *kernels;

    plugins_load(tn_app_ctx(app));
    if (tn_app_check(app, tn_op_find(tn_app_ctx(app), args->words[0], &o)) || !(kernels = cli_kernels(app)))
        return CLI_EXIT_FAILED; /* the app knows it better: 3 */
    if (!args->value[OPT_JSON]) {
        page_print(kernels, &o);
        free(kernels);
        return 0;
    }
    page = op_json(kernels, &o);
    attrs = json_array();
    mutated = json_array();
    for (uint32_t i = 0; i < o.attr_count; i++)
        (void)json_array_append_new(attrs, attr_json(&o.attrs[i]));
    for (size_t i = 0; o.inputs[i] && i < 64; i++)
        if (o.mutates >> i & 1u)
            (void)json_array_append_new(mutated, cli_json_text(o.inputs[i]));
    (void)json_object_set_new(page, "attributes", attrs);
    (void)json_object_set_new(page, "changes", mutated);
    cli_json_line(page);
    free(kernels);
    return 0;
}

int cmd_ops(const cli_args *args)
{
    tn_app *app = cli_app_open(args, NULL);
    int code = 0, closed;

    if (args->word_count && (args->value[OPT_FAMILY] || args->value[OPT_SEARCH])) {
        cli_error("--family and --search choose among all operators; \"%s\" is one", args->words[0]);
        code = CLI_EXIT_USAGE;
    } else if (tn_app_ok(app)) {
        code = args->word_count ? show_one(app, args) : list_all(app, args);
    }
    closed = tn_app_close(app);
    return closed ? closed : code;
}
