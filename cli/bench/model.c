/*
 * tenon bench model: a whole net, compiled, with made-up weights and data: how long a step takes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/table.h"

typedef struct bench_model {
    const cli_args *args;
    tn_app *app;
    tn_ctx *ctx;
    cli_model m;
    tn_cached_op *op;
    tn_array **in, **out;
    uint8_t *trained; /* per input */
    size_t in_count, out_count;
    tn_site *update; /* sgd_update */
    int64_t batch;
    cli_table table;
} bench_model;

static const cli_column columns[] = {
    {"model", "model"},
    {"batch", "batch"},
    {"mode", "mode"},
    {"device", "device"},
    {"ms", "ms/step"},
    {"median_ms", "median"},
    {"samples_per_s", "samples/s"},
    {"planned_mib", "planned MiB"},
    {"build", "build"},
    {"change", "against before"},
    {NULL, NULL},
};
static const char *const same[] = {"model", "batch", "mode", "device", NULL};

/* ---- setting up ---- */

/* Is the variable a parameter or state? `*aux`: a state. */
static bool is_parameter(const bench_model *b, const char *name, const uint8_t *parameter, bool *aux)
{
    const uint32_t count = tn_symbol_view_count(b->m.nodes);

    for (uint32_t i = 0; i < count; i++) {
        tn_view_node n = {.struct_size = TN_SIZE(tn_view_node)};

        if (parameter[i] && !tn_symbol_view_node(b->m.nodes, i, &n) && !n.op && !strcmp(n.name, name)) {
            *aux = (n.flags & TN_VIEW_AUX) != 0;
            return true;
        }
    }
    return false;
}

static bool is_trained(const bench_model *b, const char *name, const uint8_t *parameter, int32_t dtype)
{
    bool aux = false;

    return is_parameter(b, name, parameter, &aux) && !aux && (dtype == TN_F32 || dtype == TN_F64);
}

/* The net, told of its parameters. */
static tn_status net_create(bench_model *b, const uint8_t *parameter, char *const *names)
{
    tn_cached_options o = {.struct_size = TN_SIZE(tn_cached_options), .static_alloc = 1};
    const char **params = calloc(b->in_count + 1, sizeof(*params));
    size_t count = 0;
    bool aux;
    tn_status st;

    if (!params)
        return tn_app_fail(b->app, TN_E_NOMEM, "out of memory");
    for (size_t i = 0; i < b->in_count; i++)
        if (is_parameter(b, names[i], parameter, &aux))
            params[count++] = names[i];
    o.params = params;
    st = tn_cached_op_create(b->ctx, b->m.symbol, &o, &b->op);
    free(params);
    return st;
}

/* Small weights keep the numbers finite; variances and the like must be above 0. Labels are class 0. */
static tn_status input_make(bench_model *b, size_t index, const uint8_t *parameter)
{
    const bool train = b->args->value[OPT_TRAIN] != NULL;
    const double fan = 16;
    tn_known k;
    size_t length;
    tn_status st = tn_inferred_at(b->m.shapes, TN_LIST_INPUTS, index, &k);

    if (st || (st = tn_array_create(b->ctx, k.dtype, k.ndim, k.shape, NULL, &b->in[index])))
        return st;
    length = strlen(k.name);
    if (length >= 5 && !strcmp(k.name + length - 5, "label"))
        st = tn_array_fill(b->in[index], 0);
    else
        st = cli_array_fill(b->in[index], k.ndim > 1 ? -1 / fan : 0.5, k.ndim > 1 ? 1 / fan : 1);
    b->trained[index] = train && is_trained(b, k.name, parameter, k.dtype);
    return !st && b->trained[index] ? tn_attach_grad(b->ctx, b->in[index], TN_MODE_WRITE, NULL) : st;
}

static void batch_find(bench_model *b, const uint8_t *parameter)
{
    const uint32_t count = tn_symbol_view_count(b->m.nodes);

    b->batch = 1;
    for (uint32_t i = 0; i < count; i++) {
        tn_view_node n = {.struct_size = TN_SIZE(tn_view_node)};
        tn_known k;

        if (parameter[i] || tn_symbol_view_node(b->m.nodes, i, &n) || n.op ||
            tn_symbol_view_output(b->m.nodes, i, 0, &k) || k.ndim < 1)
            continue;
        b->batch = k.shape[0];
        return;
    }
}

static tn_status setup(bench_model *b)
{
    const char *const attrs[] = {"lr", "0.0001", NULL};
    cli_roles roles = {NULL};
    char **names = NULL;
    tn_status st = tn_symbol_list(b->m.symbol, TN_LIST_INPUTS, &b->in_count, &names);

    b->out_count = tn_symbol_output_count(b->m.symbol);
    b->in = calloc(b->in_count + 1, sizeof(tn_array *));
    b->out = calloc(b->out_count + 1, sizeof(tn_array *));
    b->trained = calloc(b->in_count + 1, 1);
    if (!st && (!b->in || !b->out || !b->trained))
        st = tn_app_fail(b->app, TN_E_NOMEM, "out of memory");
    if (!st && !cli_roles_find(&roles, b->m.nodes, b->app))
        st = tn_app_status(b->app);
    if (!st)
        batch_find(b, roles.parameter);
    for (size_t i = 0; !st && i < b->in_count; i++)
        st = input_make(b, i, roles.parameter);
    if (!st)
        st = net_create(b, roles.parameter, names);
    free(roles.parameter);
    tn_free(names);
    return st ? st : tn_site_create(b->ctx, "sgd_update", attrs, &b->update);
}

static void teardown(bench_model *b)
{
    for (size_t i = 0; b->in && i < b->in_count; i++)
        tn_array_release(b->in[i]);
    for (size_t i = 0; b->out && i < b->out_count; i++)
        tn_array_release(b->out[i]);
    free(b->in);
    free(b->out);
    free(b->trained);
    tn_site_release(b->update);
    tn_cached_op_release(b->op);
    cli_model_fini(&b->m);
}

/* ---- steps ---- */

static tn_status infer_run(void *arg, uint32_t calls)
{
    bench_model *b = arg;
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < calls; i++)
        st = tn_cached_op_call(b->op, (uint32_t)b->in_count, b->in, (uint32_t)b->out_count, b->out);
    return st ? st : tn_wait_all(b->ctx);
}

static tn_status train_step(bench_model *b)
{
    tn_status st;

    (void)tn_record_set(1);
    (void)tn_train_set(1);
    st = tn_cached_op_call(b->op, (uint32_t)b->in_count, b->in, (uint32_t)b->out_count, b->out);
    (void)tn_train_set(0);
    (void)tn_record_set(0);
    if (!st)
        st = tn_backward(b->ctx, (uint32_t)b->out_count, b->out, NULL, 0);
    for (size_t i = 0; i < b->out_count; i++) {
        tn_array_release(b->out[i]);
        b->out[i] = NULL;
    }
    for (size_t i = 0; !st && i < b->in_count; i++)
        if (b->trained[i]) {
            tn_array *const in[2] = {b->in[i], tn_array_grad(b->in[i])};

            st = tn_invoke(b->update, 2, in, 1, &b->in[i]);
        }
    return st;
}

static tn_status train_run(void *arg, uint32_t calls)
{
    bench_model *b = arg;
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < calls; i++)
        st = train_step(b);
    return st ? st : tn_wait_all(b->ctx);
}

/* ---- the command ---- */

static void row_add(bench_model *b, const cli_series *s)
{
    uint64_t planned = 0, bound = 0;
    json_t *row;

    (void)tn_cached_op_memory(b->op, &planned, &bound);
    row =
        json_pack("{s:o, s:I, s:s, s:s, s:o, s:I, s:I, s:o}", "model", cli_json_text(b->m.name), "batch",
                  (json_int_t)b->batch, "mode", b->args->value[OPT_TRAIN] ? "train" : "infer", "device",
                  tn_app_device(b->app), "samples_per_s", cli_json_number((double)b->batch * 1e9 / s->median),
                  "planned_bytes", (json_int_t)planned, "bound_bytes", (json_int_t)bound, "planned_mib",
                  cli_json_number((double)planned / 1048576));
    cli_table_add(&b->table, row, s);
}

static int bench_run(bench_model *b)
{
    const uint32_t repeat = cli_repeat_of(b->args);
    const char *model = b->args->words[0];
    cli_series series;
    int code = repeat ? cli_table_begin(&b->table, b->args) : CLI_EXIT_USAGE, end;
    tn_status st;

    if (!code && !(code = cli_model_open(&b->m, b->app, model))) {
        if (!strncmp(model, "zoo:", 4)) /* where no --shape is given */
            cli_zoo_shape(model + 4, b->m.sample);
        code = cli_model_infer(&b->m, b->args, true);
    }
    if (code) {
        (void)cli_table_end(&b->table, b->args);
        return code;
    }
    b->table.columns = columns;
    b->table.same = same;
    if (!(st = setup(b)) &&
        !(st = cli_series_measure(b->args->value[OPT_TRAIN] ? train_run : infer_run, b, repeat, &series)))
        row_add(b, &series);
    (void)tn_app_check(b->app, st);
    end = cli_table_end(&b->table, b->args);
    return st ? CLI_EXIT_FAILED : end;
}

int cmd_bench_model(const cli_args *args)
{
    bench_model b = {.args = args};
    int code = CLI_EXIT_FAILED, closed;

    b.app = cli_app_open(args, NULL);
    b.ctx = tn_app_ctx(b.app);
    if (tn_app_ok(b.app))
        code = bench_run(&b);
    teardown(&b);
    closed = cli_app_close(b.app, args);
    return closed ? closed : code;
}
