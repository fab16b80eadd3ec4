/*
 * What a traced call has done, and the symbol of it.
 *
 * Nodes are composed in the order of the calls, since draws of random numbers follow it. Names of layers with
 * parameters follow that order, too. The order of other calls may be the compiler's (C leaves open in which
 * order arguments are evaluated), so their numbers follow the graph: depth first from the outputs.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct node {
    tnn_layer *layer;
    size_t in;               /* of trace->refs */
    uint32_t in_count, next; /* next: the input that the walk goes to */
    bool seen;
    char *name;
    tn_symbol *symbol;
} node;

typedef struct counter { /* of names */
    const tnn_layer *like;
    uint32_t count;
} counter;

struct tnn_trace {
    node *nodes;
    size_t node_count, node_capacity;
    tnn_ref *refs;
    size_t ref_count, ref_capacity;
    tnn_param **params; /* that are values */
    size_t param_count, param_capacity;
    int32_t *stack; /* node_count of them, while names are given */
    size_t depth;
    counter *counters;
    size_t counter_count;
};

#define NODES_MAX 65536 /* of one call */

void tnn_trace_clear(struct tnn_trace *t)
{
    for (size_t i = 0; t && i < t->node_count; i++) {
        free(t->nodes[i].name);
        tn_symbol_release(t->nodes[i].symbol);
    }
    if (t)
        t->node_count = t->ref_count = t->param_count = 0;
}

void tnn_trace_destroy(struct tnn_trace *t)
{
    tnn_trace_clear(t);
    if (t) {
        free(t->nodes);
        free(t->refs);
        free(t->params);
    }
    free(t);
}

static tn_status grow(tn_app *app, void **items, size_t *capacity, size_t need, size_t bytes)
{
    size_t more = *capacity ? *capacity : 64;
    void *grown;

    while (more < need)
        more *= 2;
    if (more == *capacity)
        return TN_OK;
    if (!(grown = realloc(*items, more * bytes)))
        return tnn_no_memory(app);
    *items = grown;
    *capacity = more;
    return TN_OK;
}

tn_status tnn_trace_add(tn_app *app, struct tnn_trace **trace, tnn_layer *layer, uint32_t in_count,
                        const tnn_ref *in, int32_t *index)
{
    struct tnn_trace *t = *trace;

    if (!t && !(t = *trace = tnn_alloc(app, 1, sizeof *t)))
        return app->status;
    if (t->node_count >= NODES_MAX)
        return tnn_fail(app, TN_E_ARG, "%s: a call runs more than %d layers, called at %s:%d", layer->path,
                        NODES_MAX, layer->file, layer->line);
    if (grow(app, (void **)&t->nodes, &t->node_capacity, t->node_count + 1, sizeof *t->nodes) ||
        grow(app, (void **)&t->refs, &t->ref_capacity, t->ref_count + in_count, sizeof *t->refs))
        return app->status;
    *index = (int32_t)t->node_count;
    t->nodes[t->node_count++] = (node){.layer = layer, .in = t->ref_count, .in_count = in_count};
    memcpy(t->refs + t->ref_count, in, in_count * sizeof *in);
    t->ref_count += in_count;
    return TN_OK;
}

tn_status tnn_trace_param(tn_app *app, struct tnn_trace **trace, tnn_param *param, tnn_ref *ref)
{
    struct tnn_trace *t = *trace;
    size_t at = 0;

    if (!t && !(t = *trace = tnn_alloc(app, 1, sizeof *t)))
        return app->status;
    while (at < t->param_count && t->params[at] != param)
        at++;
    if (at == t->param_count) {
        if (grow(app, (void **)&t->params, &t->param_capacity, at + 1, sizeof(*t->params)))
            return app->status;
        t->params[t->param_count++] = param;
    }
    *ref = (tnn_ref){-1 - TNN_VALUES_MAX - (int32_t)at, 0};
    return TN_OK;
}

/* ---- as text ---- */

typedef struct text {
    tn_app *app;
    char *bytes;
    size_t used, capacity;
} text;

static void TNN_PRINTF(2, 3) text_add(text *x, const char *format, ...)
{
    va_list args, again;
    int length;

    va_start(args, format);
    va_copy(again, args);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length >= 0 &&
        !grow(x->app, (void **)&x->bytes, &x->capacity, x->used + (size_t)length + 1, sizeof *x->bytes))
        x->used += (size_t)vsnprintf(x->bytes + x->used, (size_t)length + 1, format, again);
    va_end(again);
}

static void ref_add(text *x, const struct tnn_trace *t, tnn_ref ref)
{
    if (ref.node >= 0)
        text_add(x, " %s:%u", t->nodes[ref.node].layer->path, ref.output);
    else if (ref.node >= -TNN_VALUES_MAX)
        text_add(x, " input%d", -1 - ref.node);
    else
        text_add(x, " %s", t->params[-1 - TNN_VALUES_MAX - ref.node]->name);
}

/* "net.conv0 (Convolution kernel=(3, 3)) of input0", a tab, "file.c:12"; the last line has the outputs. */
char *tnn_trace_text(tn_app *app, const struct tnn_trace *t, size_t out_count, const tnn_ref *out)
{
    text x = {.app = app};

    for (size_t i = 0; t && i < t->node_count; i++) {
        const tnn_layer *l = t->nodes[i].layer;

        text_add(&x, "%s (%s", l->path, l->op);
        for (size_t k = 0; k + 1 < l->attr_count; k += 2)
            text_add(&x, " %s=%s", l->attrs[k], l->attrs[k + 1]);
        text_add(&x, ") of");
        for (uint32_t k = 0; k < t->nodes[i].in_count; k++)
            ref_add(&x, t, t->refs[t->nodes[i].in + k]);
        text_add(&x, "\t%s:%d\n", l->file, l->line);
    }
    text_add(&x, "outputs");
    for (size_t i = 0; i < out_count; i++)
        ref_add(&x, t, out[i]);
    text_add(&x, "\t\n");
    if (!app->status)
        return x.bytes;
    free(x.bytes);
    return NULL;
}

/* ---- names ---- */

/* Whether two are numbered together: the same layer again, or bare calls of one kind in one scope. */
static bool counted_together(const tnn_layer *a, const tnn_layer *b)
{
    return a == b ||
           (a->net == b->net && a->scope == b->scope && a->plain == b->plain && !strcmp(a->stem, b->stem));
}

/* Whether its number is the graph's rather than that of its call. */
static bool floats(const tnn_layer *layer)
{
    return layer->net->function && layer->unnamed && !layer->param_count && !layer->random;
}

static uint32_t number_of(struct tnn_trace *t, const tnn_layer *layer)
{
    for (size_t i = 0; i < t->counter_count; i++) {
        const tnn_layer *like = t->counters[i].like;

        if (floats(layer) ? floats(like) && counted_together(like, layer) : like == layer)
            return t->counters[i].count++;
    }
    t->counters[t->counter_count++] = (counter){layer, 1};
    return 0;
}

/* "net_stage1_pool0_fwd", "net_plus0"; "net_lstm0_i2h_fwd2" for the third use of a shared layer. */
static tn_status node_name(tn_app *app, struct tnn_trace *t, node *n)
{
    const tnn_layer *layer = n->layer;
    const uint32_t number = number_of(t, layer);
    const char *end = layer->plain ? "" : "_fwd";
    const size_t scope = strlen(layer->prefix) - strlen(layer->name);

    if (floats(layer))
        n->name = tnn_format(app, "%.*s%s%u%s", (int)scope, layer->prefix, layer->stem, number, end);
    else if (number)
        n->name = tnn_format(app, "%s%s%u", layer->prefix, layer->plain ? "_" : end, number);
    else
        n->name = tnn_format(app, "%s%s", layer->prefix, end);
    return app->status;
}

static void visit(struct tnn_trace *t, tnn_ref ref)
{
    if (ref.node < 0 || t->nodes[ref.node].seen)
        return;
    t->nodes[ref.node].seen = true;
    t->stack[t->depth++] = ref.node;
}

/* Depth first, inputs in their order; a node gets its name when its inputs have theirs. */
static tn_status names_give(tn_app *app, struct tnn_trace *t, tnn_ref from)
{
    visit(t, from);
    while (!app->status && t->depth) {
        node *n = &t->nodes[t->stack[t->depth - 1]];

        if (n->next < n->in_count) {
            visit(t, t->refs[n->in + n->next++]);
            continue;
        }
        t->depth--;
        (void)node_name(app, t, n);
    }
    return app->status;
}

static tn_status names_of(tn_app *app, struct tnn_trace *t, size_t count, const tnn_ref *out)
{
    t->depth = t->counter_count = 0;
    t->stack = tnn_alloc(app, t->node_count, sizeof *t->stack);
    t->counters = tnn_alloc(app, t->node_count, sizeof *t->counters);
    for (size_t i = 0; !app->status && i < count; i++)
        (void)names_give(app, t, out[i]);
    free(t->stack);
    free(t->counters);
    t->stack = NULL;
    t->counters = NULL;
    for (size_t i = 0; !app->status && i < t->node_count; i++)
        if (!t->nodes[i].seen && t->nodes[i].layer->random)
            return tnn_fail(app, TN_E_STATE,
                            "%s (%s), called at %s:%d: nothing uses what it gives, so a compiled net would "
                            "draw other random numbers",
                            t->nodes[i].layer->path, t->nodes[i].layer->op, t->nodes[i].layer->file,
                            t->nodes[i].layer->line);
    return app->status;
}

/* ---- composing ---- */

/* A reference of the caller. */
static tn_status symbol_at(struct tnn_trace *t, tn_symbol **inputs, tnn_ref ref, tn_symbol **out)
{
    const tnn_param *p = ref.node < -TNN_VALUES_MAX ? t->params[-1 - TNN_VALUES_MAX - ref.node] : NULL;
    tn_symbol *whole = p ? p->variable : ref.node < 0 ? inputs[-1 - ref.node] : t->nodes[ref.node].symbol;

    if (tn_symbol_output_count(whole) > 1)
        return tn_symbol_output(whole, ref.output, out);
    tn_symbol_retain(whole);
    *out = whole;
    return TN_OK;
}

/* What says that a variable is a parameter where its name does not, and its shape, as Gluon writes them. */
static tn_status own_write(const tnn_param *p)
{
    const char *const factor = p->fixed ? "0.0" : "1.0";
    char shape[32 * TNN_NDIM_MAX];
    size_t used = 0;
    tn_status st;

    for (int32_t i = 0; i < p->ndim; i++)
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%s%lld", i ? ", " : "(",
                                 (long long)p->shape[i]);
    (void)snprintf(shape + used, sizeof shape - used, p->ndim > 1 ? ")" : ",)");
    if (!(st = tn_symbol_attr_set(p->variable, "__lr_mult__", factor)) &&
        !(st = tn_symbol_attr_set(p->variable, "__wd_mult__", factor)))
        st = tn_symbol_attr_set(p->variable, "__shape__", shape);
    return st;
}

/* A parameter that is used again has the same variable. */
static tn_status variables_make(tn_app *app, tnn_param *const *params, size_t count)
{
    tn_status st = TN_OK;

    for (size_t i = 0; !st && i < count; i++)
        if (!params[i]->variable) {
            st = tn_symbol_variable(app->ctx, params[i]->full, &params[i]->variable);
            st = !st && params[i]->own ? own_write(params[i]) : st;
        }
    return st;
}

static void variables_drop(tnn_param *const *params, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        tn_symbol_release(params[i]->variable);
        params[i]->variable = NULL;
    }
}

static tn_status compose(tn_app *app, struct tnn_trace *t, tn_symbol **inputs, node *n)
{
    tn_symbol *in[TNN_LAYER_VALUES] = {NULL};
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < n->in_count; i++)
        st = symbol_at(t, inputs, t->refs[n->in + i], &in[i]);
    if (!st && !(st = variables_make(app, n->layer->params, n->layer->param_count)))
        st = tnn_layer_symbol(app, n->layer, n->in_count, in, n->name, &n->symbol);
    for (uint32_t i = 0; i < n->in_count; i++)
        tn_symbol_release(in[i]);
    if (st)
        (void)tnn_check(app, st, "%s (%s), called at %s:%d", n->layer->path, n->layer->op, n->layer->file,
                        n->layer->line);
    return st;
}

tn_status tnn_trace_symbol(tn_app *app, struct tnn_trace *t, tn_net *net, const tnn_ref *out,
                           tn_symbol **symbol)
{
    tn_symbol *inputs[TNN_VALUES_MAX] = {NULL}, *outputs[TNN_VALUES_MAX] = {NULL};
    tn_status st = TN_OK;

    if (t && !(st = names_of(app, t, net->output_count, out)))
        st = variables_make(app, t->params, t->param_count);
    for (size_t i = 0; !st && i < net->input_count; i++)
        st = tn_symbol_variable(app->ctx, tnn_net_input_name(net, i), &inputs[i]);
    for (size_t i = 0; t && !st && i < t->node_count; i++)
        if (t->nodes[i].seen)
            st = compose(app, t, inputs, &t->nodes[i]);
    for (size_t i = 0; !st && i < net->output_count; i++)
        st = symbol_at(t, inputs, out[i], &outputs[i]);
    if (!st && net->output_count > 1)
        st = tn_symbol_group(net->output_count, outputs, symbol);
    else if (!st)
        tn_symbol_retain(*symbol = outputs[0]);
    for (size_t i = 0; t && i < t->node_count; i++)
        variables_drop(t->nodes[i].layer->params, t->nodes[i].layer->param_count);
    if (t)
        variables_drop(t->params, t->param_count);
    for (size_t i = 0; i < TNN_VALUES_MAX; i++) {
        tn_symbol_release(inputs[i]);
        tn_symbol_release(outputs[i]);
    }
    return tnn_check(app, st, "net %s", net->path);
}
