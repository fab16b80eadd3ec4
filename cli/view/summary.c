/*
 * tenon viz --summary: a table of layers. What a step of training takes is an estimate from the same numbers:
 * weights, their gradients, states of the optimizer, all activations, and the widest point of the backward
 * pass.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/op.h"
#include "view/viz.h"

#define LAYER_COLUMNS 24
#define OPERATOR_COLUMNS 22
#define SHAPE_COLUMNS 18
#define MIB 1048576.0
#define PLANNED_NODES_MAX 2500 /* all of a recorded program's tensors live at once: planning is quadratic */

typedef struct layer {
    tn_view_node node;
    tn_known out;
    char op[64]; /* with what kind of activation or pooling */
    double parameters, macs, bytes;
} layer;

typedef struct summary {
    tn_app *app;
    const cli_model *m;
    layer *layers;
    uint32_t count;
    double batch;
    double parameters, macs, activations; /* of all layers; activations in bytes */
    double weights, states;               /* bytes: trained, and moving averages */
    double kept;                          /* bytes of activations that a recorded program needs */
    double widest;                        /* bytes of gradients that are needed at once, at most */
    bool macs_known;
} summary;

static double bytes_of(const tn_known *k)
{
    return (double)cli_elements(k) * (double)cli_dtype_bytes(k->dtype);
}

static bool known_of(const summary *s, tn_view_edge e, tn_known *k)
{
    return !tn_app_check(s->app, tn_symbol_view_output(s->m->nodes, e.node, e.output, k));
}

/* Parameters count for the first layer that uses them. */
static void parameters_count(summary *s, layer *l, uint8_t *parameter)
{
    for (uint32_t i = 0; i < l->node.input_count; i++) {
        const tn_view_edge e = l->node.inputs[i];
        tn_view_node from = {.struct_size = TN_SIZE(tn_view_node)};
        tn_known k;

        if (!parameter[e.node] || tn_symbol_view_node(s->m->nodes, e.node, &from) || from.op ||
            !known_of(s, e, &k))
            continue;
        parameter[e.node] = 0;
        l->parameters += (double)cli_elements(&k);
        *(from.flags & TN_VIEW_AUX ? &s->states : &s->weights) += bytes_of(&k);
    }
}

static void layer_cost(summary *s, layer *l, const tn_op_info *o)
{
    const uint32_t index = (uint32_t)(l - s->layers);
    tn_known known;

    for (uint32_t i = l->node.visible_count; i--;) {
        (void)tn_symbol_view_output(s->m->nodes, index, i, &known);
        l->bytes += bytes_of(&known);
        l->out = known; /* at last output 0 */
    }
    l->macs = cli_cost(l->node.macs) / s->batch;
    if (o->definition->flags & TN_OP_VIEW)
        l->bytes = 0;
    if (l->node.input_count && known_of(s, l->node.inputs[0], &known))
        s->widest = fmax(s->widest, l->bytes + bytes_of(&known));
    else
        s->widest = fmax(s->widest, l->bytes);
}

static void op_text(layer *l)
{
    const char *kind = cli_node_attr(&l->node, "act_type");

    if (!*kind)
        kind = cli_node_attr(&l->node, "pool_type");
    (void)snprintf(l->op, sizeof l->op, "%s%s%s", l->node.op, *kind ? " " : "", kind);
}

/* The first dimension of the first input that is no parameter. */
static void batch_find(summary *s, const uint8_t *parameter)
{
    s->batch = 1;
    for (uint32_t i = 0; i < s->count; i++) {
        tn_known k;

        if (s->layers[i].node.op || parameter[i] || tn_symbol_view_output(s->m->nodes, i, 0, &k) ||
            k.ndim < 1)
            continue;
        s->batch = k.shape[0] > 0 ? (double)k.shape[0] : 1;
        return;
    }
}

static bool layers_fill(summary *s)
{
    cli_roles roles = {NULL};
    bool ok = cli_roles_find(&roles, s->m->nodes, s->app);

    for (uint32_t i = 0; ok && i < s->count; i++) {
        s->layers[i].node.struct_size = TN_SIZE(tn_view_node);
        ok = !tn_app_check(s->app, tn_symbol_view_node(s->m->nodes, i, &s->layers[i].node));
    }
    if (ok)
        batch_find(s, roles.parameter);
    s->macs_known = true;
    for (uint32_t i = 0; ok && i < s->count; i++) {
        layer *l = &s->layers[i];
        tn_op_info o = {.struct_size = TN_SIZE(tn_op_info)};

        if (!l->node.op)
            continue;
        ok = !tn_app_check(s->app, tn_op_find(tn_app_ctx(s->app), l->node.op, &o));
        if (!ok)
            break;
        op_text(l);
        layer_cost(s, l, &o);
        parameters_count(s, l, roles.parameter);
        s->parameters += l->parameters;
        s->activations += l->bytes;
        s->macs += isnan(l->macs) ? 0 : l->macs;
        s->macs_known &= !isnan(l->macs);
    }
    free(roles.parameter);
    return ok && tn_app_ok(s->app);
}

/* Of the compiled program, where tensors share memory; where there is none (no kernel, no gradient), of all
 * layers. */
static void kept_find(summary *s)
{
    const cli_model *m = s->m;
    tn_view_program info = {.struct_size = TN_SIZE(tn_view_program)};
    tn_program_view *v = NULL;

    s->kept = s->activations;
    if (s->count > PLANNED_NODES_MAX)
        return;
    if (!tn_program_view_plan(tn_app_ctx(s->app), m->symbol, m->shapes, NULL,
                              TN_VIEW_TRAIN | TN_VIEW_RECORDED, &v) &&
        !tn_program_view_info(v, &info)) {
        s->kept = (double)info.planned;
        s->widest = 0; /* gradients are in the plan */
    }
    for (uint32_t i = 0; i < info.entry_count; i++) {
        tn_view_entry e = {.struct_size = TN_SIZE(tn_view_entry)};

        if (!tn_program_view_entry(v, i, &e) && e.kind == TN_VIEW_OUTPUT && e.root == i)
            s->kept += (double)e.bytes;
    }
    tn_program_view_destroy(v);
    tn_error_clear();
}

/* Bytes of a step with `states` numbers per weight. */
static double step_bytes(const summary *s, double states)
{
    return s->weights * (2 + states) + s->states + s->kept + s->widest;
}

/* ---- as text ---- */

static const char *grouped(double value, char out[48])
{
    char digits[40];
    size_t length, used = 0;

    if (isnan(value))
        return strcpy(out, "-");
    length = (size_t)snprintf(digits, sizeof digits, "%.0f", value);
    for (size_t i = 0; i < length && used < 44; i++) {
        if (i && (length - i) % 3 == 0)
            out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

static void row_print(size_t number, const layer *l, const char *times)
{
    char text[CLI_SHAPE_TEXT], name[CLI_SHORT_TEXT], n[48];

    (void)printf("%3zu  ", number);
    cli_pad(stdout, cli_shorten(l->node.name, LAYER_COLUMNS, name), LAYER_COLUMNS);
    (void)printf(" ");
    cli_pad(stdout, cli_shorten(l->op, OPERATOR_COLUMNS, name), OPERATOR_COLUMNS);
    (void)printf(" ");
    cli_pad(stdout, cli_shape_text(&l->out, times, text), SHAPE_COLUMNS);
    (void)printf(" %12s", grouped(l->parameters, n));
    (void)printf(" %15s %9.2f\n", grouped(l->macs, n), l->bytes / MIB);
}

static void text_print(const summary *s)
{
    const bool utf8 = cli_terminal_of(stdout).utf8;
    size_t number = 0;
    char n[48], m[48];

    (void)printf("  #  %-*s %-*s %-*s %12s %15s %9s\n", LAYER_COLUMNS, "layer", OPERATOR_COLUMNS, "operator",
                 SHAPE_COLUMNS, "output", "parameters", "MAC/sample", "MiB");
    for (uint32_t i = 0; i < s->count; i++)
        if (s->layers[i].node.op)
            row_print(++number, &s->layers[i], utf8 ? "×" : "x");
    (void)printf("     %-*s %-*s %-*s %12s %15s %9.2f\n", LAYER_COLUMNS, "total", OPERATOR_COLUMNS, "",
                 SHAPE_COLUMNS, "", grouped(s->parameters, n), grouped(s->macs, m), s->activations / MIB);
    if (!s->macs_known)
        (void)puts("     -: not known of this operator, and not in the total");
    (void)printf("train step, batch %.0f: about %.1f MiB with sgd, %.1f with momentum, %.1f with adam\n",
                 s->batch, step_bytes(s, 0) / MIB, step_bytes(s, 1) / MIB, step_bytes(s, 2) / MIB);
}

/* ---- as JSON ---- */

json_t *cli_known_json(const tn_known *k)
{
    json_t *shape = json_array();

    for (int32_t i = 0; i < k->ndim; i++)
        (void)json_array_append_new(shape, k->shape[i] < 0 ? json_null() : json_integer(k->shape[i]));
    if (k->ndim >= 0)
        return shape;
    json_decref(shape);
    return json_null();
}

static void json_print(const summary *s)
{
    json_t *layers = json_array(), *step = json_object();

    for (uint32_t i = 0; i < s->count; i++) {
        const layer *l = &s->layers[i];

        if (l->node.op)
            (void)json_array_append_new(
                layers, json_pack("{s:o, s:s, s:s, s:o, s:I, s:o, s:I}", "layer", cli_json_text(l->node.name),
                                  "operator", l->node.op, "kind", l->op, "output", cli_known_json(&l->out),
                                  "parameters", (json_int_t)l->parameters, "macs_per_sample",
                                  cli_json_number(l->macs), "bytes", (json_int_t)l->bytes));
    }
    (void)json_object_set_new(step, "sgd", json_integer((json_int_t)step_bytes(s, 0)));
    (void)json_object_set_new(step, "momentum", json_integer((json_int_t)step_bytes(s, 1)));
    (void)json_object_set_new(step, "adam", json_integer((json_int_t)step_bytes(s, 2)));
    cli_json_line(json_pack("{s:o, s:I, s:o, s:I, s:o, s:b, s:I, s:o}", "model", cli_json_text(s->m->name),
                            "batch", (json_int_t)s->batch, "layers", layers, "parameters",
                            (json_int_t)s->parameters, "macs_per_sample", cli_json_number(s->macs),
                            "macs_complete", (int)s->macs_known, "activation_bytes",
                            (json_int_t)s->activations, "train_step_bytes", step));
}

int cli_viz_summary(const cli_args *args, const cli_model *m)
{
    summary s = {.app = m->app, .m = m, .count = tn_symbol_view_count(m->nodes)};
    bool ok;

    if (!(s.layers = calloc(s.count + 1u, sizeof *s.layers))) {
        (void)tn_app_fail(m->app, TN_E_NOMEM, "out of memory");
        return CLI_EXIT_MEMORY;
    }
    if ((ok = layers_fill(&s))) {
        kept_find(&s);
        (args->value[OPT_JSON] ? json_print : text_print)(&s);
    }
    free(s.layers);
    return ok ? 0 : CLI_EXIT_FAILED;
}
