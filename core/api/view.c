/*
 * tenon/view.h: copies of what graphs and programs are, for looking at.
 *
 * Each view keeps all it says in one arena, so that nothing of it depends on symbols, plugins or contexts
 * that go away.
 */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "tenon/view.h"

/* ---- the nodes of a symbol ----------------------------------------------------------------------- */

typedef struct node_copy {
    tn_view_node info;
    uint32_t first_known;
} node_copy;

struct tn_symbol_view {
    tni_arena *arena;
    node_copy *nodes;
    tn_known *known; /* outputs of all nodes */
    tn_view_edge *heads;
    uint32_t node_count, head_count;
};

static const char *text_copy(tni_arena *a, const char *text)
{
    return tni_arena_strdup(a, text ? text : "");
}

static int pair_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Names and texts as the symbol keeps them, by name. */
static tn_status attrs_copy(tni_arena *a, const tni_map *dict, const char *const **out)
{
    const size_t count = dict ? tni_map_count(dict) : 0;
    const char **pairs = tni_arena_alloc(a, (2 * count + 1) * sizeof *pairs), *key;
    size_t cursor = 0, used = 0;
    void *text;

    if (!pairs)
        return TN_E_NOMEM;
    while (dict && used < 2 * count && tni_map_next(dict, &cursor, &key, &text)) {
        pairs[used++] = text_copy(a, key);
        pairs[used++] = text_copy(a, text);
        if (!pairs[used - 2] || !pairs[used - 1])
            return TN_E_NOMEM;
    }
    qsort(pairs, used / 2, 2 * sizeof *pairs, pair_compare);
    *out = pairs;
    return TN_OK;
}

static tn_view_edge edge_of(const tni_graph *g, uint32_t entry)
{
    const uint32_t node = g->entry_node[entry];

    return (tn_view_edge){node, entry - g->nodes[node].first_entry};
}

static tn_status node_fill(tn_symbol_view *v, const tni_graph *g, uint32_t index)
{
    const tni_gnode *n = &g->nodes[index];
    tn_view_edge *inputs = tni_arena_alloc(v->arena, (n->input_count + 1u) * sizeof *inputs);
    node_copy *copy = &v->nodes[index];
    tn_view_node *to = &copy->info;

    copy->first_known = n->first_entry;
    to->name = text_copy(v->arena, n->name);
    to->op = n->def ? text_copy(v->arena, n->def->op->name) : NULL;
    if (!inputs || !to->name || (n->def && !to->op))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < n->input_count; i++)
        inputs[i] = edge_of(g, tni_graph_input(g, n, i));
    to->inputs = inputs;
    to->flags = (n->flags & TNI_GNODE_AUX ? TN_VIEW_AUX : 0u) | (n->random != TNI_NONE ? TN_VIEW_RANDOM : 0u);
    to->input_count = n->input_count;
    to->output_count = n->output_count;
    to->visible_count = n->def ? n->visible_count : 1;
    to->subgraph_count = n->subgraph_count;
    to->macs = to->flops = to->bytes = TN_VIEW_UNKNOWN;
    return attrs_copy(v->arena, n->dict, &to->attrs);
}

/* `g`: of the symbol itself; `found`: with the shapes, or NULL. Both number nodes and entries alike. */
static tn_status known_fill(tn_symbol_view *v, const tni_graph *g, const tni_graph *found)
{
    for (uint32_t n = 0; found && n < g->node_count; n++) {
        tn_view_node *to = &v->nodes[n].info;
        tn_cost cost;
        tn_status st;

        if (!g->nodes[n].def)
            continue;
        if ((st = tni_graph_node_cost(found, n, &cost)))
            return st;
        to->macs = cost.macs;
        to->flops = cost.flops;
        to->bytes = cost.bytes;
    }
    for (uint32_t e = 0; e < g->entry_count; e++) {
        const int32_t ndim = found ? found->shapes[e].ndim : TN_NDIM_UNKNOWN;
        int64_t *shape = tni_arena_alloc(v->arena, (ndim > 0 ? (size_t)ndim : 1) * sizeof *shape);

        if (!shape)
            return TN_E_NOMEM;
        for (int32_t d = 0; d < ndim; d++)
            shape[d] = found->shapes[e].dim[d];
        v->known[e].name = v->nodes[g->entry_node[e]].info.name;
        v->known[e].shape = shape;
        v->known[e].ndim = ndim;
        v->known[e].dtype = found ? found->dtypes[e] : TN_DTYPE_UNKNOWN;
    }
    return TN_OK;
}

static tn_status symbol_copy(tn_symbol_view *v, const tni_graph *g, const tni_graph *found)
{
    tn_status st = tni_arena_create(TN_TEXT_MAX, &v->arena);

    if (st)
        return st;
    v->nodes = tni_arena_alloc(v->arena, (g->node_count + 1u) * sizeof *v->nodes);
    v->known = tni_arena_alloc(v->arena, (g->entry_count + 1u) * sizeof *v->known);
    v->heads = tni_arena_alloc(v->arena, (g->head_count + 1u) * sizeof *v->heads);
    if (!v->nodes || !v->known || !v->heads)
        return TN_E_NOMEM;
    for (uint32_t n = 0; n < g->node_count && !st; n++)
        st = node_fill(v, g, n);
    for (uint32_t h = 0; h < g->head_count; h++)
        v->heads[h] = edge_of(g, g->heads[h]);
    v->node_count = g->node_count;
    v->head_count = g->head_count;
    return st ? st : known_fill(v, g, found);
}

static tn_status shapes_check(const char *function, const tn_symbol *s, const tn_inferred *shapes)
{
    if (!shapes || shapes->graph->symbol == s)
        return TN_OK;
    return tni_error(TN_E_ARG, "%s: the shapes were found for another symbol", function);
}

tn_status tn_symbol_view_create(tn_symbol *s, const tn_inferred *shapes, tn_symbol_view **out)
{
    tn_symbol_view *v = NULL;
    tni_graph *g = NULL;
    tn_status st;

    if (!s || !out)
        return api_null(__func__, "s or out");
    if ((st = shapes_check(__func__, s, shapes)))
        return st;
    if (!(v = tni_zalloc(sizeof *v)))
        return TN_E_NOMEM;
    if (!(st = tni_graph_of(s, &g)) && !(st = symbol_copy(v, g, shapes ? shapes->graph : NULL))) {
        *out = v; /* moved */
        v = NULL;
    }
    tni_graph_destroy(g);
    tn_symbol_view_destroy(v);
    return st;
}

uint32_t tn_symbol_view_count(const tn_symbol_view *v)
{
    return v ? v->node_count : 0;
}

tn_status tn_symbol_view_node(const tn_symbol_view *v, uint32_t index, tn_view_node *out)
{
    if (!v || !out)
        return api_null(__func__, "v or out");
    if (index >= v->node_count)
        return tni_error(TN_E_ARG, "node %u of %u", index, v->node_count);
    return api_info(__func__, &v->nodes[index].info, out, (uint32_t)sizeof *out);
}

tn_status tn_symbol_view_output(const tn_symbol_view *v, uint32_t node, uint32_t output, tn_known *out)
{
    if (!v || !out)
        return api_null(__func__, "v or out");
    if (node >= v->node_count || output >= v->nodes[node].info.output_count)
        return tni_error(TN_E_ARG, "output %u of node %u of %u", output, node, v->node_count);
    *out = v->known[v->nodes[node].first_known + output];
    return TN_OK;
}

tn_status tn_symbol_view_head(const tn_symbol_view *v, uint32_t index, tn_view_edge *out)
{
    if (!v || !out)
        return api_null(__func__, "v or out");
    if (index >= v->head_count)
        return tni_error(TN_E_ARG, "head %u of %u", index, v->head_count);
    *out = v->heads[index];
    return TN_OK;
}

void tn_symbol_view_destroy(tn_symbol_view *v)
{
    if (!v)
        return;
    tni_arena_destroy(v->arena);
    tni_free(v);
}

/* ---- the operators of a file --------------------------------------------------------------------- */

struct tn_operators {
    tni_opset *ops;
    tni_arena *arena;
    tni_map *texts; /* of an operator's name: why it is not here, "" if it is */
    tni_vec uses;   /* tn_operator_use */
    uint32_t missing;
};

/* Each operator is looked up once. */
static tn_status why_find(tn_operators *o, const char *op, const char **why)
{
    const tni_opdef *def;
    void *known = NULL;
    tn_status st;

    if (tni_map_get(o->texts, op, &known)) {
        *why = known;
        return TN_OK;
    }
    st = tni_opset_find(o->ops, op, &def);
    if (st == TN_E_NOMEM)
        return st;
    *why = text_copy(o->arena, st ? tni_error_message() : "");
    return *why ? tni_map_set(o->texts, op, (void *)(uintptr_t)*why) : TN_E_NOMEM;
}

static tn_status use_add(void *arg, const tni_operator_use *use)
{
    tn_operators *o = arg;
    const char **pairs = tni_arena_alloc(o->arena, (2 * use->attr_count + 1) * sizeof *pairs);
    tn_operator_use copy = {.index = use->index, .depth = use->depth, .attrs = pairs};
    tn_status st = pairs ? why_find(o, use->op, &copy.why) : TN_E_NOMEM;

    if (st)
        return st;
    copy.number = *copy.why ? 1301 : 0;
    copy.op = text_copy(o->arena, use->op);
    copy.node = text_copy(o->arena, use->node);
    for (size_t i = 0; i < use->attr_count; i++) {
        pairs[2 * i] = text_copy(o->arena, use->names[i]);
        pairs[2 * i + 1] = text_copy(o->arena, use->texts[i]);
        if (!pairs[2 * i] || !pairs[2 * i + 1])
            return TN_E_NOMEM;
    }
    o->missing += copy.number != 0;
    return copy.op && copy.node ? tni_vec_push(&o->uses, &copy) : TN_E_NOMEM;
}

/* `path` NULL: `text`. */
static tn_status operators_read(tn_ctx *ctx, const char *path, const char *text, uint64_t bytes,
                                tn_operators **out)
{
    tn_operators *o = tni_zalloc(sizeof *o);
    tn_status st;

    if (!o)
        return TN_E_NOMEM;
    o->ops = ctx->ops;
    tni_vec_init(&o->uses, sizeof(tn_operator_use), (size_t)TN_GRAPH_NODES_MAX * 4);
    if (!(st = tni_arena_create(TN_TEXT_MAX, &o->arena)) &&
        !(st = tni_map_create(TN_GRAPH_NODES_MAX, &o->texts)) &&
        !(st = path ? tni_json_operators_load(path, use_add, o)
                    : tni_json_operators("(memory)", text, bytes, use_add, o))) {
        *out = o; /* moved */
        o = NULL;
    }
    tn_operators_destroy(o);
    return st;
}

tn_status tn_operators_load(tn_ctx *ctx, const char *path, tn_operators **out)
{
    if (!ctx || !path || !out)
        return api_null(__func__, "ctx, path or out");
    return operators_read(ctx, path, NULL, 0, out);
}

tn_status tn_operators_from_json(tn_ctx *ctx, const char *text, uint64_t bytes, tn_operators **out)
{
    if (!ctx || !text || !out)
        return api_null(__func__, "ctx, text or out");
    return operators_read(ctx, NULL, text, bytes, out);
}

uint32_t tn_operators_count(const tn_operators *o)
{
    return o ? (uint32_t)o->uses.count : 0;
}

uint32_t tn_operators_missing(const tn_operators *o)
{
    return o ? o->missing : 0;
}

tn_status tn_operators_at(const tn_operators *o, uint32_t index, tn_operator_use *out)
{
    if (!o || !out)
        return api_null(__func__, "o or out");
    if (index >= o->uses.count)
        return tni_error(TN_E_ARG, "operator %u of %zu", index, o->uses.count);
    return api_info(__func__, tni_vec_at(&o->uses, index), out, (uint32_t)sizeof *out);
}

void tn_operators_destroy(tn_operators *o)
{
    if (!o)
        return;
    tni_vec_fini(&o->uses);
    tni_map_destroy(o->texts);
    tni_arena_destroy(o->arena);
    tni_free(o);
}

/* ---- a program ----------------------------------------------------------------------------------- */

struct tn_program_view {
    tni_arena *arena;
    tn_view_program info;
    tn_view_entry *entries;
    tn_view_step *steps;
    tn_view_pass *passes;
};

static int32_t kind_of(const tni_program *p, const tni_value *v)
{
    if (v->place == TNI_PLACE_PORT)
        switch (p->ports[v->port].kind) {
        case TNI_PORT_OUTPUT:
            return TN_VIEW_OUTPUT;
        case TNI_PORT_GRADIENT:
            return TN_VIEW_GRADIENT;
        default:
            return TN_VIEW_INPUT;
        }
    if (v->place == TNI_PLACE_CONSTANT)
        return TN_VIEW_CONSTANT;
    if (v->place == TNI_PLACE_NONE || v->place == TNI_PLACE_SHAPE || v->first == TNI_NONE)
        return TN_VIEW_UNUSED;
    return TN_VIEW_ARENA;
}

/* Offsets count from the start of the kept part; the scratch part lies behind it. */
static uint64_t offset_of(const tni_program *p, const tni_value *v)
{
    if (v->place == TNI_PLACE_SCRATCH)
        return p->arenas[v->arena].kept_bytes + v->offset;
    return v->place == TNI_PLACE_KEPT ? v->offset : 0;
}

/* The entry that stands for a root: the first one of the graph that lies in it. */
static tn_status entry_fill(tn_program_view *v, const tni_program *p, uint32_t e, uint32_t *entry_of)
{
    const tni_value *value = &p->values[p->value_of[e]];
    const tni_gnode *node = &p->graph->nodes[p->graph->entry_node[e]];
    const tn_tensor *t = &value->tensor;
    tn_view_entry *to = &v->entries[e];
    int64_t *shape = tni_arena_alloc(v->arena, (t->ndim > 0 ? (size_t)t->ndim : 1) * sizeof *shape);

    if (!shape || !(to->node = text_copy(v->arena, node->name)))
        return TN_E_NOMEM;
    for (int32_t d = 0; d < t->ndim; d++)
        shape[d] = t->shape[d];
    if (entry_of[value->root] == TNI_NONE)
        entry_of[value->root] = e;
    to->kind = kind_of(p, value);
    to->output = e - node->first_entry;
    to->root = entry_of[value->root];
    to->bytes = t->bytes;
    to->offset = to->kind == TN_VIEW_ARENA      ? offset_of(p, value)
                 : to->kind == TN_VIEW_CONSTANT ? value->offset
                                                : 0;
    to->first = value->first == TNI_NONE ? 0 : value->first;
    to->last = value->first == TNI_NONE ? 0 : value->last;
    to->dtype = t->dtype;
    to->ndim = t->ndim;
    to->shape = shape;
    return TN_OK;
}

/* A block of bytes that is no tensor of the graph: a workspace, or what a kernel saves. */
static tn_status block_add(tn_program_view *v, int32_t kind, const tn_view_entry *like)
{
    tn_view_entry *to = &v->entries[v->info.entry_count];
    int64_t *shape = tni_arena_alloc(v->arena, sizeof *shape);

    if (!shape)
        return TN_E_NOMEM;
    *to = *like;
    *shape = (int64_t)like->bytes;
    to->kind = kind;
    to->root = v->info.entry_count++;
    to->dtype = TN_U8;
    to->ndim = 1;
    to->shape = shape;
    return TN_OK;
}

/* Instruction `c`, with its workspace and what it saves. */
static tn_status step_fill(tn_program_view *v, const tni_program *p, uint32_t c)
{
    const tni_instruction *in = &p->code[c];
    tn_view_step *to = &v->steps[c];
    tn_view_entry block = {.first = c, .last = c};
    tn_status st = TN_OK;

    to->node = block.node = text_copy(v->arena, p->graph->nodes[in->node].name);
    to->op = text_copy(v->arena, in->def->op->name);
    to->plugin = text_copy(v->arena, in->prepared ? in->prepared->plugin->descriptor->name : "");
    to->kernel = text_copy(v->arena, in->prepared ? in->prepared->kernel->name : "");
    if (!to->node || !to->op || !to->plugin || !to->kernel)
        return TN_E_NOMEM;
    if (!in->prepared)
        return TN_OK;
    to->threads = in->prepared->plan.threads;
    to->est_ns = in->prepared->est_ns;
    to->scratch_bytes = in->prepared->plan.workspace_bytes;
    if (in->workspace != TNI_NONE) {
        block.bytes = to->scratch_bytes;
        block.offset = offset_of(p, &p->values[in->workspace]);
        st = block_add(v, TN_VIEW_SCRATCH, &block);
    }
    if (!st && in->saved != TNI_NONE && !(in->flags & TNI_CODE_READS_SAVED)) {
        block.bytes = in->prepared->plan.saved_bytes;
        block.offset = offset_of(p, &p->values[in->saved]);
        block.last = p->values[in->saved].last;
        st = block_add(v, TN_VIEW_SAVED, &block);
    }
    return st;
}

static tn_status passes_copy(const tni_program *p, tn_program_view *v)
{
    if (!(v->passes = tni_arena_alloc(v->arena, (p->note_count + 1u) * sizeof *v->passes)))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < p->note_count; i++) {
        const tni_pass_note *n = &p->notes[i];

        v->passes[i] = (tn_view_pass){.name = n->name,
                                      .text = n->text,
                                      .off = n->off,
                                      .bounded = n->bounded,
                                      .before = n->before,
                                      .after = n->after,
                                      .rewrites = n->rewrites};
    }
    v->info.pass_count = p->note_count;
    return TN_OK;
}

static tn_status program_copy(const tni_program *p, tn_program_view *v)
{
    const uint32_t entries = p->graph->entry_count, steps = p->code_count;
    uint32_t *entry_of = tni_alloc((p->value_count + 1ull) * sizeof *entry_of);
    char device[96];
    tn_status st;

    if (!entry_of || (st = tni_arena_create(TN_TEXT_MAX, &v->arena))) {
        tni_free(entry_of);
        return TN_E_NOMEM;
    }
    memset(entry_of, 0xff, (p->value_count + 1ull) * sizeof *entry_of);
    snprintf(device, sizeof device, "%s:%d", p->device->type, p->device->index);
    v->info.entry_count = entries;
    v->info.step_count = steps;
    v->info.threads = p->threads;
    v->info.planned = p->planned_bytes;
    v->info.bound = p->bound_bytes;
    v->info.est_ns = p->phases[TNI_FORWARD].est_ns;
    v->info.forward_count = p->phases[TNI_FORWARD].code_count;
    v->info.once_count = p->phases[TNI_ONCE].code_count;
    for (uint32_t a = 0; a < p->arena_count; a++)
        v->info.constant_bytes += p->arenas[a].constant_bytes;
    v->entries = tni_arena_alloc(v->arena, ((size_t)entries + 2ull * steps + 1u) * sizeof *v->entries);
    v->steps = tni_arena_alloc(v->arena, (steps + 1u) * sizeof *v->steps);
    if (!v->entries || !v->steps || !(v->info.device = text_copy(v->arena, device)))
        st = TN_E_NOMEM;
    if (!st)
        st = passes_copy(p, v);
    for (uint32_t e = 0; !st && e < entries; e++)
        st = entry_fill(v, p, e, entry_of);
    for (uint32_t c = 0; !st && c < steps; c++)
        st = step_fill(v, p, c);
    tni_free(entry_of);
    return st;
}

static tn_status program_view(const tni_program *p, tn_program_view **out)
{
    tn_program_view *v = tni_zalloc(sizeof *v);
    tn_status st = v ? program_copy(p, v) : TN_E_NOMEM;

    if (st)
        tn_program_view_destroy(v);
    else
        *out = v;
    return st;
}

tn_status api_view_cached(tni_cached_op *op, tn_program_view **out)
{
    tni_compiled *e = NULL;
    tn_status st = tni_cached_op_recent(op, &e);

    if (st)
        return st;
    st = program_view(e->program, out);
    tni_compiled_release(e);
    return st;
}

tn_status tn_program_view_cached(tn_cached_op *op, tn_program_view **out)
{
    return op && out ? api_view_cached(op, out) : api_null(__func__, "op or out");
}

/* As a cached operator compiles it; recorded: gradients of all arguments are wanted, states have none. */
static tn_status plan_compile(tn_ctx *ctx, const tn_inferred *shapes, tni_device *device, uint32_t flags,
                              const uint8_t *constants, tn_program_view **out)
{
    const tni_graph *g = shapes->graph;
    uint8_t *modes = tni_calloc(g->variable_count + 1u, 1);
    tni_compiled_spec spec = {
        .ctx = ctx, .device = device, .flags = tni_exec_node_flags(ctx), .constants = constants};
    tni_compiled *e = NULL;
    tn_status st = modes ? tni_graph_copy(g, &spec.graph) : TN_E_NOMEM;

    for (uint32_t i = 0; modes && i < g->variable_count; i++)
        modes[i] = g->nodes[g->variables[i]].flags & TNI_GNODE_AUX ? TN_MODE_NONE : TN_MODE_WRITE;
    if (flags & TN_VIEW_TRAIN)
        spec.flags |= TN_NODE_TRAIN;
    if (flags & TN_VIEW_RECORDED)
        spec.modes = modes;
    if (!st) {
        spec.graph->train = (flags & TN_VIEW_TRAIN) != 0;
        st = tni_compiled_create(&spec, &e);
    }
    if (!st && e->no_gradient) {
        tni_error_set(e->no_gradient);
        st = e->no_gradient->code;
    }
    if (!st)
        st = program_view(e->program, out);
    tni_compiled_release(e);
    tni_free(modes);
    return st;
}

static tn_status plan_check(const char *call, tn_ctx *ctx, tn_symbol *s, const tn_inferred *shapes,
                            const tn_device *device, tni_device **d)
{
    tn_status st;

    if (s->ops != ctx->ops)
        return tni_error(TN_E_ARG, "the symbol belongs to another context");
    if ((st = shapes_check(call, s, shapes)) || (st = api_device(ctx, device, d)))
        return st;
    for (uint32_t e = 0; e < shapes->graph->entry_count; e++)
        if (!tn_shape_known(&shapes->graph->shapes[e]) || shapes->graph->dtypes[e] < 0)
            return tni_error(TN_E_SHAPE, "node \"%.200s\": shape or data type is not known",
                             shapes->graph->nodes[shapes->graph->entry_node[e]].name);
    return TN_OK;
}

tn_status tn_program_view_plan(tn_ctx *ctx, tn_symbol *s, const tn_inferred *shapes, const tn_device *device,
                               uint32_t flags, tn_program_view **out)
{
    tni_device *d = NULL;
    tn_status st;

    if (!ctx || !s || !shapes || !out)
        return api_null(__func__, "ctx, s, shapes or out");
    if (flags & ~(TN_VIEW_TRAIN | TN_VIEW_RECORDED))
        return tni_error(TN_E_ARG, "%s: flags 0x%x are not known", __func__, flags);
    st = plan_check(__func__, ctx, s, shapes, device, &d);
    return st ? st : plan_compile(ctx, shapes, d, flags, NULL, out);
}

static tn_status constants_note(const tni_graph *g, const char *const *params, uint8_t *constants)
{
    tn_status st = TN_OK;

    for (size_t i = 0; params[i] && !st; i++) {
        uint32_t index;

        if (!(st = api_param_find(g, params[i], &index)))
            constants[index] = 1;
    }
    return st;
}

tn_status tn_program_view_served(tn_ctx *ctx, tn_symbol *s, const tn_inferred *shapes,
                                 const tn_device *device, const char *const *params, tn_program_view **out)
{
    tni_device *d = NULL;
    uint8_t *constants;
    tn_status st;

    if (!ctx || !s || !shapes || !params || !out)
        return api_null(__func__, "ctx, s, shapes, params or out");
    if ((st = plan_check(__func__, ctx, s, shapes, device, &d)))
        return st;
    if (!(constants = tni_calloc(shapes->graph->variable_count + 1u, 1)))
        return TN_E_NOMEM;
    if (!(st = constants_note(shapes->graph, params, constants)))
        st = plan_compile(ctx, shapes, d, 0, constants, out);
    tni_free(constants);
    return st;
}

tn_status tn_program_view_info(const tn_program_view *v, tn_view_program *out)
{
    if (!v || !out)
        return api_null(__func__, "v or out");
    return api_info(__func__, &v->info, out, (uint32_t)sizeof *out);
}

tn_status tn_program_view_entry(const tn_program_view *v, uint32_t index, tn_view_entry *out)
{
    if (!v || !out)
        return api_null(__func__, "v or out");
    if (index >= v->info.entry_count)
        return tni_error(TN_E_ARG, "tensor %u of %u", index, v->info.entry_count);
    return api_info(__func__, &v->entries[index], out, (uint32_t)sizeof *out);
}

tn_status tn_program_view_step(const tn_program_view *v, uint32_t index, tn_view_step *out)
{
    if (!v || !out)
        return api_null(__func__, "v or out");
    if (index >= v->info.step_count)
        return tni_error(TN_E_ARG, "instruction %u of %u", index, v->info.step_count);
    return api_info(__func__, &v->steps[index], out, (uint32_t)sizeof *out);
}

tn_status tn_program_view_pass(const tn_program_view *v, uint32_t index, tn_view_pass *out)
{
    if (!v || !out)
        return api_null(__func__, "v or out");
    if (index >= v->info.pass_count)
        return tni_error(TN_E_ARG, "pass %u of %u", index, v->info.pass_count);
    return api_info(__func__, &v->passes[index], out, (uint32_t)sizeof *out);
}

void tn_program_view_destroy(tn_program_view *v)
{
    if (!v)
        return;
    tni_arena_destroy(v->arena);
    tni_free(v);
}

/* ---- what breaks a graph ------------------------------------------------------------------------- */

struct tn_breaks {
    tni_arena *arena;
    tni_vec items; /* tn_break */
};

/* Those from node `first` on; the nodes from `backward` on are of gradients. */
static tn_status breaks_copy(const tni_graph *g, const tni_vec *found, uint32_t first, uint32_t backward,
                             tn_breaks *b)
{
    for (size_t i = 0; i < found->count; i++) {
        const tni_break *from = tni_vec_at(found, i);
        const tni_gnode *node = &g->nodes[from->node];
        tn_break to = {.backward = from->node >= backward};

        if (from->node < first)
            continue;
        to.index = to.backward ? node->forward : from->node;
        to.node = text_copy(b->arena, node->name);
        to.op = text_copy(b->arena, node->def->op->name);
        to.why = text_copy(b->arena, from->why);
        if (!to.node || !to.op || !to.why)
            return TN_E_NOMEM;
        if (tni_vec_push(&b->items, &to))
            return TN_E_NOMEM;
    }
    return TN_OK;
}

/* What a pass over `g` finds from node `first` on. */
static tn_status breaks_of(tni_breaks_spec *ask, tni_selector *selector, uint32_t first, uint32_t backward,
                           tn_breaks *b)
{
    tni_vec found;
    tn_status st;

    tni_vec_init(&found, sizeof(tni_break), TN_GRAPH_NODES_MAX);
    if (!(st = tni_graph_breaks(selector, ask, &found)))
        st = breaks_copy(ask->graph, &found, first, backward, b);
    tni_vec_fini(&found);
    return st;
}

/* The graph as it stands, then what training would append to it, if that is possible. */
static tn_status breaks_find(tn_ctx *ctx, const tni_graph *g, tni_device *device, tn_breaks *b)
{
    tni_breaks_spec ask = {
        .graph = g, .device = device, .threads = tni_exec_threads(ctx), .flags = tni_exec_node_flags(ctx)};
    tni_graph *trained = NULL;
    tn_status st;

    if ((st = breaks_of(&ask, ctx->selector, 0, g->node_count, b)))
        return st;
    st = tni_graph_trained(g, &trained);
    if (st == TN_E_UNSUPPORTED) { /* nobody trains this */
        tni_error_clear();
        return TN_OK;
    }
    ask.graph = trained;
    ask.flags |= TN_NODE_TRAIN | TN_NODE_RECORDED;
    if (!st)
        st = breaks_of(&ask, ctx->selector, g->node_count, g->node_count, b);
    tni_graph_destroy(trained);
    return st;
}

static tn_status breaks_make(tn_ctx *ctx, const tni_graph *g, tni_device *device, tn_breaks **out)
{
    tn_breaks *b = tni_zalloc(sizeof *b);
    tn_status st;

    if (!b)
        return TN_E_NOMEM;
    tni_vec_init(&b->items, sizeof(tn_break), 2u * TN_GRAPH_NODES_MAX);
    if (!(st = tni_arena_create(TN_TEXT_MAX, &b->arena)) && !(st = breaks_find(ctx, g, device, b))) {
        *out = b; /* moved */
        return TN_OK;
    }
    tn_breaks_destroy(b);
    return st;
}

tn_status tn_graph_breaks(tn_ctx *ctx, tn_symbol *s, const tn_inferred *shapes, const tn_device *device,
                          tn_breaks **out)
{
    tni_graph *g = NULL;
    tni_device *d;
    tn_status st;

    if (!ctx || !s || !out)
        return api_null(__func__, "ctx, s or out");
    if (s->ops != ctx->ops)
        return tni_error(TN_E_ARG, "the symbol belongs to another context");
    if ((st = shapes_check(__func__, s, shapes)) || (st = api_device(ctx, device, &d)))
        return st;
    if (shapes)
        return breaks_make(ctx, shapes->graph, d, out);
    if (!(st = tni_graph_of(s, &g)))
        st = breaks_make(ctx, g, d, out);
    tni_graph_destroy(g);
    return st;
}

uint32_t tn_breaks_count(const tn_breaks *b)
{
    return b ? (uint32_t)b->items.count : 0;
}

tn_status tn_breaks_at(const tn_breaks *b, uint32_t index, tn_break *out)
{
    if (!b || !out)
        return api_null(__func__, "b or out");
    if (index >= b->items.count)
        return tni_error(TN_E_ARG, "break %u of %zu", index, b->items.count);
    return api_info(__func__, tni_vec_at(&b->items, index), out, (uint32_t)sizeof *out);
}

void tn_breaks_destroy(tn_breaks *b)
{
    if (!b)
        return;
    tni_vec_fini(&b->items);
    tni_arena_destroy(b->arena);
    tni_free(b);
}
