/*
 * tenon bench op: one operator called over and over, for all combinations of the shapes, data types and
 * devices that are listed.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/table.h"
#include "tenon/plugin/op.h"

#define LISTS_MAX 16 /* of --shape, and the two of types and devices */
#define ITEMS_MAX 64
#define ROWS_MAX 1000
#define ATTRS_MAX 64
#define INPUTS_MAX 64
#define OUTPUTS_MAX 64

typedef struct list { /* items that are tried one by one */
    char *text;       /* taken apart in place */
    char *name;       /* of the input whose shapes these are; NULL: the first */
    tn_array *given;  /* by --in: its shape, its type and what it holds */
    const char *items[ITEMS_MAX];
    size_t count, at;
} list;

typedef struct bench_op {
    const cli_args *args;
    tn_app *app;
    tn_ctx *ctx;
    tn_op_info op;
    list lists[LISTS_MAX]; /* shapes; then types, devices */
    size_t list_count;
    char *attr_text[ATTRS_MAX];
    const char *attrs[2 * ATTRS_MAX + 1];
    size_t attr_count;
    cli_table table;
    uint32_t repeat;
    bool said; /* an error was printed */
    /* of the running combination */
    tn_symbol_view *view;
    tn_site *site;
    tn_array *in[INPUTS_MAX], *out[OUTPUTS_MAX];
    tn_array *given[INPUTS_MAX]; /* input i's values, of a list; NULL: made up */
    uint32_t in_count, out_count;
    bool fresh; /* what comes out has no fixed size: every call makes it */
    char plugin[64], kernel[96];
} bench_op;

static const cli_column columns[] = {
    {"op", "op"},         {"shape", "shape"},      {"dtype", "dtype"},           {"device", "device"},
    {"ms", "ms"},         {"median_ms", "median"}, {"gflops", "GFLOP/s"},        {"gb_per_s", "GB/s"},
    {"kernel", "kernel"}, {"build", "build"},      {"change", "against before"}, {NULL, NULL},
};
static const char *const same[] = {"op", "attrs", "shape", "dtype", "device", "backward", NULL};

/* ---- what is asked ---- */

static bool list_split(list *l)
{
    for (char *at = l->text; at;) {
        char *comma = strchr(at, ',');

        if (l->count == ITEMS_MAX) {
            cli_error("more than %d items in \"%s…\"", ITEMS_MAX, l->items[0]);
            return false;
        }
        l->items[l->count++] = at;
        if (comma)
            *comma++ = '\0';
        at = comma;
    }
    return true;
}

static list *list_add(bench_op *b, const char *text)
{
    list *l = &b->lists[b->list_count];

    if (b->list_count == LISTS_MAX || !(l->text = cli_format("%s", text))) {
        cli_error("more than %d lists", LISTS_MAX);
        return NULL;
    }
    b->list_count++;
    return list_split(l) ? l : NULL;
}

/* Elsewhere a comma stands between the sizes of one shape. */
static void sizes_note(const bench_op *b, const list *l, const char *text)
{
    bool sizes = l->count > 1;

    for (size_t i = 0; i < l->count; i++)
        sizes = sizes && !strchr(l->items[i], 'x');
    if (sizes && !b->args->value[OPT_QUIET])
        cli_say(stderr,
                "note: --shape %s is %zu shapes of one size each; the sizes of one shape have x between\n",
                text, l->count);
}

static bool shapes_read(bench_op *b)
{
    size_t cursor = 0;
    const char *text;

    while ((text = cli_args_each(b->args, OPT_SHAPES, &cursor))) {
        const char *equals = strchr(text, '=');
        list *l = list_add(b, equals ? equals + 1 : text);

        if (!l || (equals && !(l->name = cli_format("%.*s", (int)(equals - text), text))))
            return false;
        for (size_t i = 0; i < l->count; i++) {
            int64_t dims[TN_NDIM_MAX];

            if (cli_shape_parse(l->items[i], dims, TN_NDIM_MAX) < 0) {
                cli_error("--shape %s: \"%s\" is no shape; sizes with x between are needed: 64x64x56x56",
                          text, l->items[i]);
                return false;
            }
        }
        sizes_note(b, l, text);
    }
    return true;
}

static bool file_read(bench_op *b, const char *path, tn_array **out)
{
    tn_params *arrays = NULL;
    tn_status st = tn_load(b->ctx, path, &arrays);
    const size_t count = st ? 1 : tn_params_count(arrays);

    if (!st && count == 1)
        st = tn_params_at(arrays, 0, out);
    tn_params_destroy(arrays);
    if (count == 1 && (st || *out))
        return !tn_app_check(b->app, st);
    cli_error("--in %s: %zu arrays, one with values is needed", path, count);
    return false;
}

/* Arrays of files: an input's shape, type and values. */
static bool files_read(bench_op *b)
{
    size_t cursor = 0;
    const char *text;

    while ((text = cli_args_each(b->args, OPT_IN, &cursor))) {
        const char *equals = strchr(text, '=');
        list *l = list_add(b, "");

        if (!l || (equals && !(l->name = cli_format("%.*s", (int)(equals - text), text))))
            return false;
        if (!file_read(b, equals ? equals + 1 : text, &l->given))
            return false;
    }
    return true;
}

static bool attrs_read(bench_op *b)
{
    size_t cursor = 0;
    const char *text;

    while ((text = cli_args_each(b->args, OPT_ATTR, &cursor))) {
        char *copy, *equals;

        if (!strchr(text, '=') || *text == '=' || b->attr_count == ATTRS_MAX) {
            cli_error("--attr %s: NAME=VALUE is needed, at most %d times", text, ATTRS_MAX);
            return false;
        }
        if (!(copy = cli_format("%s", text)))
            return false;
        equals = strchr(copy, '=');
        *equals = '\0';
        b->attrs[2 * b->attr_count] = copy;
        b->attrs[2 * b->attr_count + 1] = equals + 1;
        b->attr_text[b->attr_count++] = copy;
    }
    return true;
}

static bool types_check(const list *l)
{
    for (size_t i = 0; i < l->count; i++) {
        int32_t dtype;

        if (tn_dtype_parse(l->items[i], &dtype)) {
            cli_error("--dtype: %s", tn_error_text());
            return false;
        }
    }
    return true;
}

static bool asked_read(bench_op *b)
{
    const char *types = b->args->value[OPT_DTYPE], *devices = b->args->value[OPT_DEVICES];
    uint64_t rows = 1;
    list *l;

    if (!(b->repeat = cli_repeat_of(b->args)) || !attrs_read(b) || !shapes_read(b) || !files_read(b) ||
        !(l = list_add(b, types ? types : "float32")) || !types_check(l) ||
        !list_add(b, devices ? devices : tn_app_device(b->app)))
        return false;
    for (size_t i = 0; i < b->list_count; i++)
        rows = rows > ROWS_MAX ? rows : rows * b->lists[i].count;
    if (rows > ROWS_MAX)
        cli_error("more than %d combinations", ROWS_MAX);
    return rows <= ROWS_MAX;
}

/* ---- one combination ---- */

static const list *types_of(const bench_op *b)
{
    return &b->lists[b->list_count - 2];
}

static const list *devices_of(const bench_op *b)
{
    return &b->lists[b->list_count - 1];
}

static const char *item_of(const list *l)
{
    return l->items[l->at];
}

static bool variadic(const char *name)
{
    return *name && name[strlen(name) - 1] == '*';
}

static const char *attr_of(const bench_op *b, const char *name)
{
    for (size_t i = 0; i < b->attr_count; i++)
        if (!strcmp(b->attrs[2 * i], name))
            return b->attrs[2 * i + 1];
    return NULL;
}

/* The attribute that says how many inputs there are; NULL: none does. */
static const char *count_attr(const bench_op *b)
{
    static const char *const names[] = {"num_args", "num_arrays", "num_outputs"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (uint32_t k = 0; k < b->op.attr_count; k++)
            if (!strcmp(b->op.attrs[k].name, names[i]))
                return names[i];
    return NULL;
}

/* An operator that takes any number of inputs gets as many as shapes are given. One shape is that of two
 * inputs, or of as many as the attribute says. */
static uint32_t variadic_count(const bench_op *b)
{
    const uint32_t shapes = (uint32_t)b->list_count - 2;
    const char *name = count_attr(b), *given = name ? attr_of(b, name) : NULL;
    const long count = given ? strtol(given, NULL, 10) : 0;

    if (shapes > 1 || (shapes && b->lists[0].given))
        return shapes;
    return count > 0 && count <= INPUTS_MAX ? (uint32_t)count : 2;
}

static tn_status symbol_make(bench_op *b, tn_symbol **out)
{
    tn_symbol *in[INPUTS_MAX] = {NULL};
    tn_symbol_call call = {
        .struct_size = TN_SIZE(tn_symbol_call), .op = b->op.name, .name = "", .attrs = b->attrs, .in = in};
    tn_status st = TN_OK;

    if (b->op.inputs[0] && variadic(b->op.inputs[0])) {
        call.in_count = variadic_count(b);
        for (uint32_t i = 0; !st && i < call.in_count; i++) {
            char name[32];

            (void)snprintf(name, sizeof name, "%.*s%u", (int)strlen(b->op.inputs[0]) - 1, b->op.inputs[0], i);
            st = tn_symbol_variable(b->ctx, name, &in[i]);
        }
    }
    if (!st)
        st = tn_symbol_op(b->ctx, &call, out);
    for (uint32_t i = 0; i < call.in_count; i++)
        tn_symbol_release(in[i]);
    return st;
}

static bool among(const char *name, char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* Which inputs there are depends on the attributes: the symbol knows it. */
static bool inputs_check(bench_op *b, char *const *inputs, size_t count)
{
    char takes[512] = "";
    size_t used = 0;

    for (size_t i = 0; i < count && used < sizeof takes; i++)
        used += (size_t)snprintf(takes + used, sizeof takes - used, "%s%.60s", i ? ", " : "", inputs[i]);
    for (size_t i = 0; i + 2 < b->list_count; i++) {
        if (b->lists[i].name ? among(b->lists[i].name, inputs, count) : i < count)
            continue;
        if (b->lists[i].name)
            cli_error("--shape %s=: %s has no such input; it takes %s", b->lists[i].name, b->op.name, takes);
        else
            cli_error("--shape: %zu shapes, but %s takes %s only", i + 1, b->op.name, takes);
        b->said = true;
        return false;
    }
    return true;
}

static void given_find(bench_op *b, char *const *inputs, size_t count)
{
    memset(b->given, 0, sizeof b->given);
    for (size_t i = 0; i + 2 < b->list_count; i++)
        for (size_t k = 0; k < count && k < INPUTS_MAX; k++)
            if (b->lists[i].name ? !strcmp(b->lists[i].name, inputs[k]) : i == k)
                b->given[k] = b->lists[i].given;
}

/* Shapes as listed; types: of the input that is named or first. */
static tn_status infer(bench_op *b, tn_symbol *s, tn_inferred **out)
{
    int64_t dims[LISTS_MAX][TN_NDIM_MAX];
    char **inputs = NULL;
    tn_known known[LISTS_MAX];
    int32_t dtype = TN_F32;
    size_t count = b->list_count - 2, input_count = 0;
    tn_status st = tn_symbol_list(s, TN_LIST_INPUTS, &input_count, &inputs);

    if (!st && !inputs_check(b, inputs, input_count))
        st = TN_E_KEY;
    if (!st)
        given_find(b, inputs, input_count);
    (void)tn_dtype_parse(item_of(types_of(b)), &dtype);
    for (size_t i = 0; !st && i < count; i++) {
        const list *l = &b->lists[i];

        known[i] =
            (tn_known){.name = l->name ? l->name : inputs[i], .shape = dims[i], .dtype = i ? -1 : dtype};
        if (!l->given) {
            known[i].ndim = cli_shape_parse(item_of(l), dims[i], TN_NDIM_MAX);
        } else {
            known[i].dtype = tn_array_dtype(l->given);
            st = tn_array_shape(l->given, &known[i].ndim, &known[i].shape);
        }
    }
    if (!st && !count && input_count) { /* only a type is known */
        known[0] = (tn_known){.name = inputs[0], .ndim = -1, .dtype = dtype};
        count = 1;
    }
    if (!st)
        st = tn_symbol_infer(s, count, known, 0, out);
    tn_free(inputs);
    return st;
}

static bool is_float(int32_t dtype)
{
    return dtype == TN_F16 || dtype == TN_BF16 || dtype == TN_F32 || dtype == TN_F64;
}

static bool is_sparse(const tn_array *a)
{
    return a && tn_array_storage(a) != TN_STORAGE_DENSE;
}

/* Input i: a sparse array is the file's itself. */
static tn_status input_make(bench_op *b, uint32_t i, const tn_known *k, const tn_device *device)
{
    tn_status st;

    if (is_sparse(b->given[i])) {
        tn_array_retain(b->in[i] = b->given[i]);
        b->fresh = true;
        return TN_OK;
    }
    if ((st = tn_array_create(b->ctx, k->dtype, k->ndim, k->shape, device, &b->in[i])))
        return st;
    return b->given[i] ? tn_array_copy(b->given[i], b->in[i]) : cli_array_fill(b->in[i], 0.1, 1);
}

static tn_status unknown_find(bench_op *b, uint32_t node)
{
    tn_status st = TN_OK;
    tn_known k;

    for (uint32_t i = 0; !st && i < b->out_count; i++) {
        if ((st = tn_symbol_view_output(b->view, node, i, &k)))
            break;
        b->fresh = b->fresh || k.ndim < 0;
        for (int32_t d = 0; d < k.ndim; d++)
            b->fresh = b->fresh || k.shape[d] < 0;
    }
    return st;
}

static tn_status arrays_make(bench_op *b, const tn_device *device)
{
    const uint32_t last = tn_symbol_view_count(b->view) - 1;
    tn_view_node node = {.struct_size = TN_SIZE(tn_view_node)};
    bool backward = b->args->value[OPT_BACKWARD] != NULL, any = false;
    tn_status st = tn_symbol_view_node(b->view, last, &node);

    if (st || node.input_count > INPUTS_MAX || node.visible_count > OUTPUTS_MAX)
        return st ? st : tn_app_fail(b->app, TN_E_UNSUPPORTED, "the operator has too many inputs or outputs");
    b->out_count = node.visible_count;
    b->fresh = false;
    st = unknown_find(b, last);
    for (uint32_t i = 0; !st && i < node.input_count; i++) {
        tn_known k;

        if ((st = tn_symbol_view_output(b->view, node.inputs[i].node, node.inputs[i].output, &k)))
            break;
        st = input_make(b, i, &k, device);
        b->in_count += b->in[i] != NULL;
        if (st || !backward || !is_float(k.dtype))
            continue;
        st = tn_attach_grad(b->ctx, b->in[i], TN_MODE_WRITE, NULL);
        any = true;
    }
    if (!st && backward && !any)
        st = tn_app_fail(b->app, TN_E_UNSUPPORTED, "--backward: no input is of a floating-point type");
    return st;
}

/* All inputs are of files, and some are sparse, or nothing comes out: no symbol says how they are called. */
static bool is_direct(const bench_op *b)
{
    const size_t count = b->list_count - 2;
    bool all = count > 0, sparse = false;

    for (size_t i = 0; i < count; i++) {
        all = all && b->lists[i].given && !b->lists[i].name;
        sparse = sparse || is_sparse(b->lists[i].given);
    }
    return all && (sparse || !b->op.outputs[0]) && !b->args->value[OPT_BACKWARD];
}

static tn_status direct_make(bench_op *b, const tn_device *device)
{
    tn_status st = TN_OK;

    b->fresh = true;
    for (b->out_count = 0; b->op.outputs[b->out_count];)
        b->out_count++;
    if (b->out_count > OUTPUTS_MAX)
        return tn_app_fail(b->app, TN_E_UNSUPPORTED, "the operator has too many outputs");
    for (uint32_t i = 0; !st && i + 2 < b->list_count; i++) {
        tn_known k = {.dtype = tn_array_dtype(b->lists[i].given)};

        b->given[i] = b->lists[i].given;
        st = tn_array_shape(b->given[i], &k.ndim, &k.shape);
        if (!st)
            st = input_make(b, i, &k, device);
        b->in_count += b->in[i] != NULL;
    }
    return st;
}

/* Which kernel a program would run; "" if the operator cannot be part of one. */
static void kernel_find(bench_op *b, tn_symbol *s, const tn_inferred *shapes, const tn_device *device)
{
    tn_program_view *v = NULL;
    tn_view_step step = {.struct_size = TN_SIZE(tn_view_step)};

    if (!tn_program_view_plan(b->ctx, s, shapes, device, 0, &v) && !tn_program_view_step(v, 0, &step)) {
        (void)snprintf(b->plugin, sizeof b->plugin, "%s", step.plugin);
        (void)snprintf(b->kernel, sizeof b->kernel, "%s", step.kernel);
    }
    tn_program_view_destroy(v);
}

static tn_status forward_run(void *arg, uint32_t calls)
{
    bench_op *b = arg;
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < calls; i++) {
        for (uint32_t k = 0; b->fresh && k < b->out_count; k++) {
            tn_array_release(b->out[k]);
            b->out[k] = NULL;
        }
        st = tn_invoke(b->site, b->in_count, b->in, b->out_count, b->out);
    }
    return st ? st : tn_wait_all(b->ctx);
}

/* Forward, recorded, and back to all inputs, from ones. */
static tn_status both_run(void *arg, uint32_t calls)
{
    bench_op *b = arg;
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < calls; i++) {
        tn_array *out[OUTPUTS_MAX] = {NULL};

        (void)tn_record_set(1);
        (void)tn_train_set(1);
        st = tn_invoke(b->site, b->in_count, b->in, b->out_count, out);
        (void)tn_train_set(0);
        (void)tn_record_set(0);
        if (!st)
            st = tn_backward(b->ctx, b->out_count, out, NULL, 0);
        for (uint32_t k = 0; k < b->out_count; k++)
            tn_array_release(out[k]);
    }
    return st ? st : tn_wait_all(b->ctx);
}

/* Of the first input, or if there is none of the output. */
static void shape_text(const bench_op *b, char out[CLI_SHAPE_TEXT])
{
    const uint32_t last = b->view ? tn_symbol_view_count(b->view) - 1 : 0;
    tn_view_node node = {.struct_size = TN_SIZE(tn_view_node)};
    tn_known k = {.ndim = -1};

    if (!b->view) {
        (void)tn_array_shape(b->in[0], &k.ndim, &k.shape);
    } else if (!tn_symbol_view_node(b->view, last, &node)) {
        if (node.input_count)
            (void)tn_symbol_view_output(b->view, node.inputs[0].node, node.inputs[0].output, &k);
        else
            (void)tn_symbol_view_output(b->view, last, 0, &k);
    }
    (void)cli_shape_text(&k, "x", out);
}

/* Operations and bytes of a run; NaN: not known. With its backward a product takes three times as much: data
 * and weight each take as much again. Of others it is not known. */
static void cost_of(const bench_op *b, double *flops, double *bytes)
{
    tn_view_node node = {.struct_size = TN_SIZE(tn_view_node)};

    if (b->view)
        (void)tn_symbol_view_node(b->view, tn_symbol_view_count(b->view) - 1, &node);
    *flops = b->view ? cli_cost(node.flops) : NAN;
    *bytes = b->view ? cli_cost(node.bytes) : NAN;
    if (b->args->value[OPT_BACKWARD]) {
        *flops = cli_cost(node.macs) > 0 ? 3 * *flops : NAN;
        *bytes = NAN;
    }
}

static json_t *attrs_json(const bench_op *b)
{
    json_t *o = json_object();

    for (size_t i = 0; i < b->attr_count; i++)
        (void)json_object_set_new(o, b->attrs[2 * i], cli_json_text(b->attrs[2 * i + 1]));
    return o;
}

static const char *type_name(const bench_op *b)
{
    const bool given = b->list_count > 2 && b->given[0];

    return given ? tn_dtype_name(tn_array_dtype(b->given[0])) : item_of(types_of(b));
}

static void row_add(bench_op *b, const cli_series *s)
{
    double flops, bytes;
    char shape[CLI_SHAPE_TEXT], kernel[sizeof b->plugin + sizeof b->kernel + 2];

    cost_of(b, &flops, &bytes);
    shape_text(b, shape);
    (void)snprintf(kernel, sizeof kernel, "%s%s%s", b->plugin, *b->kernel ? "/" : "-", b->kernel);
    cli_table_add(&b->table,
                  json_pack("{s:s, s:o, s:s, s:s, s:s, s:b, s:o, s:o, s:s}", "op", b->op.name, "attrs",
                            attrs_json(b), "shape", shape, "dtype", type_name(b), "device",
                            item_of(devices_of(b)), "backward", (int)(b->args->value[OPT_BACKWARD] != NULL),
                            "gflops", cli_json_number(flops > 0 ? flops / s->median : NAN), "gb_per_s",
                            cli_json_number(bytes > 0 ? bytes / s->median : NAN), "kernel", kernel),
                  s);
}

static void combination_clear(bench_op *b)
{
    for (uint32_t i = 0; i < b->in_count; i++) {
        tn_array_release(b->in[i]);
        b->in[i] = NULL;
    }
    for (uint32_t i = 0; i < OUTPUTS_MAX; i++) {
        tn_array_release(b->out[i]);
        b->out[i] = NULL;
    }
    b->in_count = b->out_count = 0;
    tn_site_release(b->site);
    tn_symbol_view_destroy(b->view);
    b->site = NULL;
    b->view = NULL;
}

static tn_status combination_measure(bench_op *b)
{
    const tn_device *device = NULL, *before = NULL;
    const char *attrs[2 * ATTRS_MAX + 3];
    tn_inferred *shapes = NULL;
    tn_symbol *s = NULL;
    cli_series series;
    char count[16];
    tn_status st;

    memcpy(attrs, b->attrs, sizeof b->attrs);
    b->plugin[0] = b->kernel[0] = '\0';
    if ((st = tn_device_get(b->ctx, item_of(devices_of(b)), &device)))
        goto cleanup;
    if (!is_direct(b)) {
        if ((st = symbol_make(b, &s)) || (st = infer(b, s, &shapes)) ||
            (st = tn_symbol_view_create(s, shapes, &b->view)))
            goto cleanup;
        kernel_find(b, s, shapes, device);
    }
    before = tn_device_use(device);
    if (!(st = b->view ? arrays_make(b, device) : direct_make(b, device))) {
        if (b->op.inputs[0] && variadic(b->op.inputs[0]) && count_attr(b) && !attr_of(b, count_attr(b))) {
            (void)snprintf(count, sizeof count, "%u", b->in_count); /* a site wants to know how many */
            attrs[2 * b->attr_count] = count_attr(b);
            attrs[2 * b->attr_count + 1] = count;
            attrs[2 * b->attr_count + 2] = NULL;
        }
        if (!(st = tn_site_create(b->ctx, b->op.name, attrs, &b->site)) &&
            !(st = cli_series_measure(b->args->value[OPT_BACKWARD] ? both_run : forward_run, b, b->repeat,
                                      &series)))
            row_add(b, &series);
    }
    (void)tn_device_use(before);

cleanup:
    combination_clear(b);
    tn_inferred_destroy(shapes);
    tn_symbol_release(s);
    return st;
}

/* The next combination, the last list first; false: that was the last. */
static bool combination_next(bench_op *b)
{
    for (size_t i = b->list_count; i-- > 0;) {
        if (++b->lists[i].at < b->lists[i].count)
            return true;
        b->lists[i].at = 0;
    }
    return false;
}

/* ---- the command ---- */

static int bench_run(bench_op *b)
{
    tn_status st = tn_op_find(b->ctx, b->args->words[0], &b->op);
    int code;

    if (tn_app_check(b->app, st))
        return CLI_EXIT_FAILED;
    if (!asked_read(b))
        return CLI_EXIT_USAGE;
    if ((code = cli_table_begin(&b->table, b->args)))
        return code;
    b->table.columns = columns;
    b->table.same = same;
    do {
        st = combination_measure(b);
    } while (!st && combination_next(b));
    if (st == TN_E_SHAPE || st == TN_E_DTYPE || st == TN_E_KEY || st == TN_E_ATTR) {
        if (!b->said)
            cli_error("%s; `tenon ops %s` shows inputs and attributes, --shape INPUT=… gives a shape",
                      tn_error_text(), b->op.name);
        code = CLI_EXIT_USAGE;
    } else {
        (void)tn_app_check(b->app, st);
    }
    if (st)
        json_array_clear(b->table.rows);
    st = cli_table_end(&b->table, b->args);
    return code ? code : (int)st;
}

int cmd_bench_op(const cli_args *args)
{
    bench_op *b = calloc(1, sizeof *b);
    int code = CLI_EXIT_FAILED, closed;

    if (!b) {
        cli_error("out of memory");
        return CLI_EXIT_MEMORY;
    }
    b->args = args;
    b->app = cli_app_open(args, NULL);
    b->ctx = tn_app_ctx(b->app);
    b->op.struct_size = TN_SIZE(tn_op_info);
    if (tn_app_ok(b->app))
        code = bench_run(b);
    for (size_t i = 0; i < LISTS_MAX; i++)
        tn_array_release(b->lists[i].given);
    closed = cli_app_close(b->app, args);
    for (size_t i = 0; i < LISTS_MAX; i++) {
        free(b->lists[i].text);
        free(b->lists[i].name);
    }
    for (size_t i = 0; i < b->attr_count; i++)
        free(b->attr_text[i]);
    free(b);
    return closed ? closed : code;
}
