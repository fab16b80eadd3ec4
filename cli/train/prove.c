/*
 * What is tried before a long training: --dry-run shows what would run, --overfit-one whether the net can
 * learn at all. Neither makes a run folder.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/view.h"
#include "train/train.h"

#define OVERFIT_LOSS 0.01  /* mean over the batch: probability 0.99 for what is right */
#define OVERFIT_STEPS 1000 /* LeNet needs under 100 */
#define OVERFIT_LOOK 10    /* steps between two looks */
#define PLUGINS_MAX 64     /* that one program's kernels come from */

/* ---- one batch by heart ---- */

typedef struct overfit {
    double first, loss, accuracy;
    int64_t steps, batch;
} overfit;

/* The loss that a training on this data has. */
static tn_array *loss_of(const cli_proof *p, const tn_data *data, tn_array *y, tn_array *labels)
{
    return tn_data_task(data) == TN_TASK_NUMBERS ? tn_loss_l2(p->app, y, labels)
                                                 : tn_loss_softmax_ce(p->app, y, labels);
}

/* As in use, not as in training: without dropout. */
static bool look(const cli_proof *p, tn_net *net, const tn_data *data, const tn_batch *b, overfit *o)
{
    tn_meter *loss = tn_meter_new(p->app, "loss"), *accuracy = tn_meter_new(p->app, "accuracy");
    tn_array *y = tn_net_forward(net, b->x);

    tn_meter_add(loss, loss_of(p, data, y, b->y), NULL);
    if (tn_data_task(data) != TN_TASK_NUMBERS)
        tn_meter_add(accuracy, y, b->y);
    o->loss = tn_meter_value(loss);
    o->accuracy = tn_meter_value(accuracy);
    return tn_app_ok(p->app);
}

static void overfit_step(const cli_proof *p, tn_train *train, const tn_batch *b)
{
    for (size_t k = 0; k < tn_app_devices(p->app); k++) {
        tn_array *x = tn_app_part(p->app, b->x, k), *y = tn_app_part(p->app, b->y, k);

        tn_app_record(p->app);
        tn_app_backward(p->app, loss_of(p, tn_train_data(train), tn_net_forward(tn_train_net(train), x), y));
    }
    tn_trainer_step(tn_train_trainer(train), b->n);
}

static bool overfit_run(const cli_proof *p, tn_train *train, overfit *o)
{
    size_t mark;
    tn_batch b;

    if (!tn_data_next(tn_train_data(train), &b))
        return false;
    o->batch = b.n;
    mark = tn_app_mark(p->app);
    if (!look(p, tn_train_net(train), tn_train_data(train), &b, o))
        return false;
    o->first = o->loss;
    cli_stops_take(); /* all that is computed with has been loaded */
    while (o->loss > OVERFIT_LOSS && o->steps < OVERFIT_STEPS && !cli_stop_asked()) {
        for (int i = 0; i < OVERFIT_LOOK; i++, o->steps++) {
            overfit_step(p, train, &b);
            tn_app_release(p->app, mark);
        }
        if (!look(p, tn_train_net(train), tn_train_data(train), &b, o))
            return false;
        tn_app_release(p->app, mark);
        if (!isfinite(o->loss))
            break;
    }
    return tn_app_ok(p->app);
}

int cli_prove_overfit(const cli_proof *p)
{
    tn_train *train = tn_train_open(p->app, .model = p->model, .data = p->data, .schedule = "constant",
                                    .warmup = -1, .early_stop = "none");
    overfit o = {0};
    bool learned;

    if (!train || !overfit_run(p, train, &o))
        return CLI_EXIT_FAILED;
    learned = o.loss <= OVERFIT_LOSS; /* not for NaN */
    if (p->json)
        cli_json_line(json_pack("{s:s, s:b, s:I, s:I, s:o, s:o, s:o}", "event", "overfit", "learned", learned,
                                "steps", (json_int_t)o.steps, "samples", (json_int_t)o.batch, "first_loss",
                                cli_json_number(o.first), "loss", cli_json_number(o.loss), "accuracy",
                                cli_json_number(o.accuracy)));
    else {
        (void)printf("steps %lld\nsamples %lld\nfirst_loss %.4f\nloss %.4f\n", (long long)o.steps,
                     (long long)o.batch, o.first, o.loss);
        if (isfinite(o.accuracy)) /* a regression has none */
            (void)printf("accuracy %.4f\n", o.accuracy);
        (void)printf("learned %s\n", learned ? "yes" : "no");
    }
    if (cli_stop_asked())
        return CLI_EXIT_STOPPED;
    if (!learned)
        cli_error("the net does not learn one batch by heart: loss %.4g after %lld steps, %.4g is "
                  "needed; try another learning rate (--lr), and look at labels, initial values and layers",
                  o.loss, (long long)o.steps, OVERFIT_LOSS);
    return learned ? 0 : CLI_EXIT_FAILED;
}

/* ---- the dry run ---- */

static int32_t stop_at_once(void *arg, int32_t kind, tn_train *train)
{
    (void)arg;
    (void)train;
    return kind == TN_TRAIN_STEP;
}

static json_t *shape_json(int32_t ndim, const int64_t *shape)
{
    json_t *list = json_array();

    for (int32_t i = 0; i < ndim; i++)
        (void)json_array_append_new(list, json_integer((json_int_t)shape[i]));
    return list;
}

/* A row for each operator: name, operator, shape. */
static json_t *layers_json(tn_app *app, tn_symbol *symbol, const tn_inferred *found)
{
    tn_symbol_view *view = NULL;
    json_t *list = json_array();

    if (tn_app_check(app, tn_symbol_view_create(symbol, found, &view)))
        return list;
    for (uint32_t i = 0; i < tn_symbol_view_count(view); i++) {
        tn_view_node node = {.struct_size = TN_SIZE(tn_view_node)};
        tn_known out;

        if (tn_symbol_view_node(view, i, &node) || !node.op || tn_symbol_view_output(view, i, 0, &out))
            continue;
        (void)json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "name", cli_json_text(node.name), "op",
                                                    cli_json_text(node.op), "shape",
                                                    shape_json(out.ndim, out.shape)));
    }
    tn_symbol_view_destroy(view);
    return list;
}

/* Which plugin's kernel runs each instruction of the compiled net. */
static json_t *kernels_json(const tn_program_view *view, uint32_t steps)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < steps; i++) {
        tn_view_step s = {.struct_size = TN_SIZE(tn_view_step)};

        if (!tn_program_view_step(view, i, &s))
            (void)json_array_append_new(list,
                                        json_pack("{s:o, s:o, s:o, s:o}", "node", cli_json_text(s.node), "op",
                                                  cli_json_text(s.op), "plugin", cli_json_text(s.plugin),
                                                  "kernel", cli_json_text(s.kernel)));
    }
    return list;
}

static bool plan_add(tn_app *app, tn_symbol *symbol, const tn_inferred *found, json_t *o)
{
    tn_view_program info = {.struct_size = TN_SIZE(tn_view_program)};
    tn_program_view *view = NULL;

    if (tn_app_check(app, tn_program_view_plan(tn_app_ctx(app), symbol, found, NULL,
                                               TN_VIEW_TRAIN | TN_VIEW_RECORDED, &view)))
        return false;
    if (!tn_app_check(app, tn_program_view_info(view, &info))) {
        (void)json_object_set_new(json_object_get(o, "memory"), "activations",
                                  json_integer((json_int_t)info.planned));
        (void)json_object_set_new(json_object_get(o, "memory"), "least",
                                  json_integer((json_int_t)info.bound));
        (void)json_object_set_new(o, "kernels", kernels_json(view, info.step_count));
    }
    tn_program_view_destroy(view);
    return tn_app_ok(app);
}

static bool graph_add(tn_app *app, tn_train *train, const tn_train_info *info, json_t *o)
{
    tn_net *net = tn_train_net(train);
    tn_symbol *symbol = tn_net_symbol(net);
    int64_t shape[4] = {0};
    tn_field_info field = {.struct_size = TN_SIZE(tn_field_info)};
    tn_known known = {.name = tn_net_input(net), .shape = shape, .ndim = 4, .dtype = TN_F32};
    tn_inferred *found = NULL;
    bool ok = symbol != NULL;

    tn_data_shape(tn_train_data(train), shape);
    if (tn_data_field_at(tn_train_data(train), 0, &field) && field.ndim < 4)
        known.ndim = field.ndim + 1;
    shape[0] = info->batch_size;
    if (ok && !tn_app_check(app, tn_symbol_infer(symbol, 1, &known, 0, &found))) {
        (void)json_object_set_new(o, "input", shape_json(known.ndim, shape));
        (void)json_object_set_new(o, "layers", layers_json(app, symbol, found));
        ok = plan_add(app, symbol, found, o);
    }
    tn_inferred_destroy(found);
    tn_symbol_release(symbol);
    return ok && tn_app_ok(app);
}

static json_t *data_facts(tn_data *data)
{
    int64_t shape[4];
    char sha[65] = "";

    if (!data || !tn_data_sha256(data, sha))
        return json_null();
    tn_data_shape(data, shape);
    return json_pack("{s:o, s:I, s:I, s:I, s:o, s:s}", "name", cli_json_text(tn_data_name(data)), "samples",
                     (json_int_t)tn_data_count(data), "batches", (json_int_t)tn_data_batches(data), "classes",
                     (json_int_t)tn_data_classes(data), "shape", shape_json(3, shape + 1), "sha256", sha);
}

static json_t *facts_json(tn_train *train, const tn_train_info *info)
{
    const json_int_t bytes = info->param_elements * (json_int_t)sizeof(float);
    const json_int_t states = info->state_elements * (json_int_t)sizeof(float);

    return json_pack("{s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I}, s:o, s:o, s:{s:o, s:o, s:o}}",
                     "event", "dry-run", "model", cli_json_text(info->model), "device",
                     cli_json_text(info->device), "parameters", (json_int_t)info->param_elements, "epochs",
                     (json_int_t)info->epochs, "batch", (json_int_t)info->batch_size, "steps",
                     (json_int_t)info->steps, "memory", "parameters", bytes, "gradients", bytes, "optimizer",
                     states, "data", data_facts(tn_train_data(train)), "valid",
                     data_facts(tn_train_valid(train)), "step", "loss", cli_json_number(info->loss), "lr",
                     cli_json_number(info->lr), "seconds", cli_json_number(info->seconds));
}

/* ---- as text ---- */

static void shape_print(const json_t *shape)
{
    const json_t *dim;
    char text[256] = "";
    size_t i, used = 0;

    json_array_foreach(shape, i, dim)
    {
        int n = snprintf(text + used, sizeof text - used, "%s%lld", i ? "x" : "",
                         (long long)json_integer_value(dim));

        used += n > 0 && used + (size_t)n < sizeof text ? (size_t)n : 0;
    }
    (void)printf("%s", text);
}

static const char *text_at(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text ? text : "";
}

static long long whole_at(const json_t *o, const char *key)
{
    return (long long)json_integer_value(json_object_get(o, key));
}

static void data_print(const char *what, const json_t *data)
{
    if (!json_is_object(data))
        return;
    cli_say(stdout, "%s %s: %lld samples of ", what, text_at(data, "name"), whole_at(data, "samples"));
    shape_print(json_object_get(data, "shape"));
    (void)printf(", %lld classes, %lld batches, sha256 %.16s\n", whole_at(data, "classes"),
                 whole_at(data, "batches"), text_at(data, "sha256"));
}

/* Plugins in order of first use, with how many of the program's instructions are theirs. */
static void plugins_print(const json_t *kernels)
{
    struct {
        const char *name;
        int count;
    } seen[PLUGINS_MAX];
    const json_t *k;
    size_t i, count = 0;

    json_array_foreach(kernels, i, k)
    {
        const char *name = text_at(k, "plugin");
        size_t at = 0;

        while (at < count && strcmp(seen[at].name, name))
            at++;
        if (at == count && count < PLUGINS_MAX) {
            seen[count].name = name;
            seen[count++].count = 0;
        }
        if (at < count)
            seen[at].count++;
    }
    (void)printf("plugins");
    for (i = 0; i < count; i++)
        (void)printf(" %s (%d)", seen[i].name, seen[i].count);
    (void)printf("\n");
}

static const char *kernel_of(const json_t *kernels, const char *node)
{
    const json_t *k;
    size_t i;

    json_array_foreach(kernels, i, k) if (!strcmp(text_at(k, "node"), node)) return text_at(k, "kernel");
    return "(in another's)";
}

static void facts_print(const json_t *o)
{
    const json_t *kernels = json_object_get(o, "kernels"), *memory = json_object_get(o, "memory"), *row;
    const json_t *step = json_object_get(o, "step");
    size_t i;

    cli_say(stdout, "model %s on %s, %lld parameters, %lld steps in %lld epochs\n", text_at(o, "model"),
            text_at(o, "device"), whole_at(o, "parameters"), whole_at(o, "steps"), whole_at(o, "epochs"));
    data_print("train", json_object_get(o, "data"));
    data_print("valid", json_object_get(o, "valid"));
    (void)printf("input ");
    shape_print(json_object_get(o, "input"));
    (void)printf("\n");
    json_array_foreach(json_object_get(o, "layers"), i, row)
    {
        cli_say(stdout, "%3zu  %-26s %-18s %-22s ", i + 1, text_at(row, "name"), text_at(row, "op"),
                kernel_of(kernels, text_at(row, "name")));
        shape_print(json_object_get(row, "shape"));
        (void)printf("\n");
    }
    plugins_print(kernels);
    (void)printf(
        "memory parameters %lld, gradients %lld, optimizer %lld, activations %lld bytes (least %lld)\n",
        whole_at(memory, "parameters"), whole_at(memory, "gradients"), whole_at(memory, "optimizer"),
        whole_at(memory, "activations"), whole_at(memory, "least"));
    (void)printf("step 1: loss %.4f, %.3f s\n", json_number_value(json_object_get(step, "loss")),
                 json_number_value(json_object_get(step, "seconds")));
}

int cli_prove_dry_run(const cli_proof *p)
{
    tn_train *train = tn_train_open(p->app, .model = p->model, .data = p->data, .event = stop_at_once);
    tn_train_info info = {.struct_size = TN_SIZE(tn_train_info)};
    json_t *o;
    bool ok;

    if (!train || (!tn_train_run(train) && !tn_app_ok(p->app)))
        return CLI_EXIT_FAILED;
    tn_train_info_get(train, 1, &info);
    o = facts_json(train, &info);
    ok = o && graph_add(p->app, train, &info, o) && tn_app_ok(p->app);
    if (ok && p->json)
        cli_json_line(json_incref(o));
    else if (ok)
        facts_print(o);
    json_decref(o);
    return ok ? 0 : CLI_EXIT_FAILED;
}
