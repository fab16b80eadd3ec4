/*
 * Nets with a program's functions in them: compiled parts, and the functions between them, called one after
 * the other. All of it is queued; recorded are the parts and the functions, each as a call of its own.
 *
 * A node's depth is the most functions on a way to it. Part d holds the compiled nodes of depth d; behind it
 * come the functions of depth d. Draws are those of the whole net.
 */
#include "exec/internal.h"

#include <string.h>

typedef struct part {
    tni_cached_op *op;        /* NULL: nothing has this depth but functions */
    uint32_t *inputs, *heads; /* entries of the net */
} part;

struct tni_parts {
    tni_context *ctx;
    const tni_graph *g; /* of the cached operator that holds this */
    uint32_t *depth;    /* per node */
    part *list;
    uint32_t count;
};

static bool is_function(const tni_gnode *n)
{
    return n->def && n->def->function;
}

void tni_parts_destroy(tni_parts *p)
{
    if (!p)
        return;
    for (uint32_t i = 0; p->list && i < p->count; i++) {
        tni_cached_op_release(p->list[i].op);
        tni_free(p->list[i].inputs);
    }
    tni_free(p->list);
    tni_free(p->depth);
    tni_free(p);
}

/* ---- making -------------------------------------------------------------------------------------------- */

/* False: no function is in it. */
static bool depths_find(tni_parts *p)
{
    const tni_graph *g = p->g;
    bool any = false;

    for (uint32_t n = 0; n < g->node_count; n++) {
        const tni_gnode *node = &g->nodes[n];

        for (uint32_t i = 0; i < node->input_count; i++) {
            const uint32_t from = g->entry_node[tni_graph_input(g, node, i)];
            const uint32_t depth = p->depth[from] + is_function(&g->nodes[from]);

            p->depth[n] = depth > p->depth[n] ? depth : p->depth[n];
        }
        any |= is_function(node);
        p->count = p->depth[n] >= p->count ? p->depth[n] + 1 : p->count;
    }
    return any;
}

/* Entries that compiled nodes make for somebody outside of their part. */
static void crossing_mark(const tni_parts *p, uint8_t *crosses)
{
    const tni_graph *g = p->g;

    for (uint32_t n = 0; n < g->node_count; n++)
        for (uint32_t i = 0; i < g->nodes[n].input_count; i++) {
            const uint32_t e = tni_graph_input(g, &g->nodes[n], i), from = g->entry_node[e];

            crosses[e] |= is_function(&g->nodes[n]) || p->depth[from] != p->depth[n];
        }
    for (uint32_t h = 0; h < g->head_count; h++)
        crosses[g->heads[h]] = 1;
}

static tn_status part_make(tni_parts *p, uint32_t depth, const uint8_t *crosses, uint8_t *take)
{
    const tni_graph *g = p->g;
    part *made = &p->list[depth];
    tni_graph *of = NULL;
    uint32_t heads = 0;
    tn_status st;

    if (!(made->inputs = tni_calloc(2ull * g->entry_count + 1, sizeof *made->inputs)))
        return TN_E_NOMEM;
    made->heads = made->inputs + g->entry_count;
    for (uint32_t n = 0; n < g->node_count; n++) {
        take[n] = g->nodes[n].def && !is_function(&g->nodes[n]) && p->depth[n] == depth;
        for (uint32_t o = 0; take[n] && o < g->nodes[n].output_count; o++)
            if (crosses[g->nodes[n].first_entry + o])
                made->heads[heads++] = g->nodes[n].first_entry + o;
    }
    if (!heads)
        return TN_OK;
    st = tni_graph_part(g, take, heads, made->heads, &of, made->inputs);
    return st ? st : tni_cached_op_of_graph(p->ctx, of, &made->op);
}

static void functions_tell(const tni_parts *p)
{
    char why[256];

    for (uint32_t n = 0; n < p->g->node_count; n++) {
        const tni_gnode *node = &p->g->nodes[n];

        if (is_function(node) && tni_node_cuts(node->def, NULL, why, sizeof why))
            tni_selector_tell_cut(p->ctx->selector, node->def, node->name, why);
    }
}

static tn_status parts_make(tni_parts *p)
{
    uint8_t *crosses = tni_calloc(p->g->entry_count + p->g->node_count + 1ull, 1);
    tn_status st = TN_OK;

    p->list = tni_calloc(p->count, sizeof *p->list);
    if (!crosses || !p->list)
        st = TN_E_NOMEM;
    else
        crossing_mark(p, crosses);
    for (uint32_t d = 0; d < p->count && !st; d++)
        st = part_make(p, d, crosses, crosses + p->g->entry_count);
    tni_free(crosses);
    if (!st)
        functions_tell(p);
    return st;
}

tn_status tni_parts_create(tni_context *c, const tni_graph *g, tni_parts **out)
{
    tni_parts *p = tni_zalloc(sizeof *p);
    tn_status st = TN_E_NOMEM;

    if (p && (p->depth = tni_calloc(g->node_count + 1u, sizeof *p->depth))) {
        p->ctx = c;
        p->g = g;
        st = TN_OK;
        if (depths_find(p) && !(st = parts_make(p))) {
            *out = p; /* moved */
            p = NULL;
        }
    }
    tni_parts_destroy(p);
    return st;
}

void tni_parts_flags(const tni_parts *p, const tni_cached_flags *flags)
{
    for (uint32_t d = 0; d < p->count; d++)
        if (p->list[d].op)
            p->list[d].op->flags = *flags;
}

tn_status tni_parts_constant(const tni_parts *p, uint32_t index)
{
    const uint32_t entry = p->g->nodes[p->g->variables[index]].first_entry;
    tn_status st = TN_OK;

    for (uint32_t d = 0; d < p->count; d++)
        for (uint32_t v = 0; p->list[d].op && v < p->list[d].op->graph->variable_count && !st; v++)
            if (p->list[d].inputs[v] == entry)
                st = tni_cached_op_constant(p->list[d].op, v);
    return st;
}

/* ---- the call ---------------------------------------------------------------------------------------- */

typedef struct parts_run {
    const tni_parts *p;
    tni_array **value;   /* per entry; of variables borrowed */
    tni_array **scratch; /* in and out of one call */
    uint32_t functions;
} parts_run;

static tn_status part_call(const parts_run *r, const part *called)
{
    const tni_graph *g = called->op->graph;
    tni_array **in = r->scratch, **out = in + g->variable_count;
    tn_status st;

    for (uint32_t v = 0; v < g->variable_count; v++)
        in[v] = r->value[called->inputs[v]];
    memset(out, 0, g->head_count * sizeof(*out));
    st = tni_cached_op_call(called->op, g->variable_count, in, g->head_count, out);
    for (uint32_t h = 0; h < g->head_count && !st; h++)
        r->value[called->heads[h]] = out[h];
    return st;
}

static tn_status function_call(parts_run *r, const tni_gnode *node)
{
    const tni_graph *g = r->p->g;
    const tni_function_args args = {node->attrs, node->input_count, node->output_count, r->scratch};

    for (uint32_t i = 0; i < node->input_count; i++)
        r->scratch[i] = r->value[tni_graph_input(g, node, i)];
    if (node->output_count > TN_FUNCTION_OUTPUTS_MAX)
        return tni_error(TN_E_UNSUPPORTED, "node \"%.200s\" has %u outputs, a function at most %d",
                         node->name, node->output_count, TN_FUNCTION_OUTPUTS_MAX);
    r->functions++;
    return tni_function_call(r->p->ctx, node->def->function, &args, r->value + node->first_entry);
}

static tn_status steps_run(parts_run *r)
{
    const tni_parts *p = r->p;
    tn_status st = TN_OK;

    for (uint32_t d = 0; d < p->count && !st; d++) {
        if (p->list[d].op)
            st = part_call(r, &p->list[d]);
        for (uint32_t n = 0; n < p->g->node_count && !st; n++)
            if (is_function(&p->g->nodes[n]) && p->depth[n] == d)
                st = function_call(r, &p->g->nodes[n]);
    }
    return st;
}

/* An input, and what is a head twice, or given an array, is copied, as a net itself does. */
static tn_status heads_give(const parts_run *r, tni_array **out)
{
    const tni_graph *g = r->p->g;
    uint8_t *made = tni_calloc(g->head_count + 1u, 1);
    tn_status st = made ? TN_OK : TN_E_NOMEM;

    for (uint32_t h = 0; h < g->head_count && !st; h++) {
        tni_array *from = r->value[g->heads[h]];
        bool fresh = !out[h] && g->nodes[g->entry_node[g->heads[h]]].def;

        made[h] = !out[h];
        for (uint32_t k = 0; k < h; k++)
            fresh &= g->heads[k] != g->heads[h];
        if (fresh)
            tni_array_retain(out[h] = from);
        else
            st = tni_invoke_copy(r->p->ctx, from, &out[h]);
    }
    for (uint32_t h = 0; h < g->head_count && st && made; h++)
        if (made[h]) {
            tni_array_release(out[h]);
            out[h] = NULL;
        }
    tni_free(made);
    return st;
}

static uint64_t widest(const tni_parts *p)
{
    uint64_t most = TN_FUNCTION_OUTPUTS_MAX;

    for (uint32_t d = 0; d < p->count; d++) {
        const tni_graph *g = p->list[d].op ? p->list[d].op->graph : NULL;

        if (g && (uint64_t)g->variable_count + g->head_count > most)
            most = (uint64_t)g->variable_count + g->head_count;
    }
    for (uint32_t n = 0; n < p->g->node_count; n++)
        most = p->g->nodes[n].input_count > most ? p->g->nodes[n].input_count : most;
    return most;
}

static tn_status parts_run_all(const tni_parts *p, tni_array *const *in, tni_array **out)
{
    const tni_graph *g = p->g;
    parts_run r = {.p = p, .value = tni_calloc(g->entry_count + widest(p) + 1, sizeof(*r.value))};
    tn_status st;

    if (!r.value)
        return TN_E_NOMEM;
    r.scratch = r.value + g->entry_count;
    for (uint32_t v = 0; v < g->variable_count; v++)
        r.value[g->nodes[g->variables[v]].first_entry] = in[v];
    if (!(st = steps_run(&r)) && !(st = heads_give(&r, out)))
        atomic_fetch_add_explicit(&p->ctx->exec->cuts, r.functions, memory_order_relaxed);
    for (uint32_t e = 0; e < g->entry_count; e++)
        if (g->nodes[g->entry_node[e]].def)
            tni_array_release(r.value[e]);
    tni_free(r.value);
    return st;
}

tn_status tni_parts_call(const tni_parts *p, tni_device *d, tni_array *const *in, tni_array **out)
{
    tni_scope *scope = tni_scope_get();
    const tni_scope before = *scope;
    uint64_t draw;
    tn_status st;

    if (!scope->draw && p->g->random_count) {
        draw = tni_random_take(p->ctx, d, p->g->random_count);
        scope->draw = &draw;
    }
    scope->np_shape |= p->g->np_shape;
    st = parts_run_all(p, in, out);
    *scope = before;
    return st;
}
