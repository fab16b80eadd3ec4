/*
 * Building a program: one instruction per computed node, each with a prepared kernel.
 *
 * The graph is completely inferred. Nodes before `first_node` are not computed; what the others read of them,
 * and of variables, are the program's inputs. Views (Reshape, Flatten …) make no instruction. Heads that are
 * no fresh result of an instruction are copied by a `_copy` behind the rest. Where everything lies is decided
 * in place.c.
 */
#include "compile/compile.h"
#include "compile/place.h"

#include <string.h>

static void instruction_fini(tni_instruction *i)
{
    tni_prepared_release(i->prepared);
    tni_attrs_release((tni_attrs *)i->attrs);
}

void tni_program_retain(tni_program *p)
{
    tni_ref_retain(&p->refs);
}

void tni_program_release(tni_program *p)
{
    if (!p || !tni_ref_release(&p->refs))
        return;
    for (uint32_t i = 0; i < p->code_count; i++)
        instruction_fini(&p->code[i]);
    tni_graph_destroy(p->graph);
    tni_free(p->code);
    tni_free(p->operands);
    tni_free(p->modes);
    tni_free(p->places);
    tni_free(p->tensors);
    tni_free(p->strides);
    tni_free(p->links);
    tni_free(p->external);
    tni_free(p->inputs);
    tni_free(p->outputs);
    tni_free(p);
}

/* ---- tensors of entries ----------------------------------------------------------------------------------
 */

static tn_status tensors_make(tni_program *p)
{
    const tni_graph *g = p->graph;
    uint64_t dims = 0;
    int64_t *at;

    for (uint32_t e = 0; e < g->entry_count; e++)
        dims += (uint64_t)(g->shapes[e].ndim > 0 ? g->shapes[e].ndim : 0);
    p->tensors = tni_calloc(g->entry_count + 1u, sizeof *p->tensors);
    p->strides = at = tni_calloc(dims + 1u, sizeof *p->strides);
    if (!p->tensors || !p->strides)
        return TN_E_NOMEM;
    for (uint32_t e = 0; e < g->entry_count; e++) {
        tn_tensor *t = &p->tensors[e];

        t->shape = g->shapes[e].dim;
        t->stride = at;
        t->ndim = g->shapes[e].ndim;
        t->dtype = g->dtypes[e];
        t->device = p->device->index;
        t->bytes = (uint64_t)tni_row_major(t->ndim, t->shape, at) * tn_dtype_bytes(t->dtype);
        at += t->ndim > 0 ? t->ndim : 0;
    }
    return TN_OK;
}

/* ---- which nodes are computed ------------------------------------------------------------------------ */

typedef struct builder {
    tni_program *p;
    tni_selector *selector;
    const tni_program_spec *spec;
    uint8_t *wanted;   /* per node: computed */
    uint32_t *code_of; /* per node: its instruction, TNI_NONE */
    tni_vec code, operands, modes, links;
} builder;

static bool node_computed(const builder *b, uint32_t node)
{
    return node >= b->spec->first_node && b->p->graph->nodes[node].def;
}

static void wanted_mark(builder *b)
{
    const tni_graph *g = b->p->graph;

    for (uint32_t i = 0; i < b->spec->keep_count; i++)
        b->wanted[g->entry_node[b->spec->keep[i]]] = 1;
    tni_graph_wanted(g, b->spec->first_node, b->wanted);
}

/* ---- instructions ------------------------------------------------------------------------------------ */

static tn_status links_make(builder *b, tni_instruction *in, const tni_gnode *node, uint32_t index)
{
    const tni_gnode *source;
    tn_status st = TN_OK;

    in->first_link = (uint32_t)b->links.count;
    if (node->attr_source == TNI_NONE || node->attr_source == index)
        return TN_OK;
    source = &b->p->graph->nodes[node->attr_source];
    for (uint32_t a = 0; !st && source->def && a < node->def->attr_count; a++) {
        const tni_attr_link link = {node->attr_source,
                                    (uint32_t)tni_attr_index(source->def, node->def->op->attrs[a].name), a};

        if (!(node->def->op->attrs[a].flags & TN_ATTR_F_RUNTIME) || link.from == (uint32_t)-1)
            continue;
        st = tni_vec_push(&b->links, &link);
        in->link_count++;
    }
    return st;
}

static tn_status operands_push(builder *b, uint32_t entry, uint8_t mode)
{
    tn_status st = tni_vec_push(&b->operands, &entry);

    return st ? st : tni_vec_push(&b->modes, &mode);
}

static tn_status operands_of(builder *b, tni_instruction *in, const tni_gnode *node)
{
    const tni_graph *g = b->p->graph;
    tn_status st = TN_OK;

    in->first_operand = (uint32_t)b->operands.count;
    in->in_count = node->input_count;
    for (uint32_t i = 0; !st && i < node->input_count; i++)
        st = operands_push(b, tni_graph_input(g, node, i), TN_MODE_NONE);
    for (uint32_t i = 0; !st && i < node->output_count; i++)
        st = operands_push(b, node->first_entry + i, TN_MODE_WRITE);
    in->out_count = node->output_count;
    for (uint32_t i = 0; !st && i < node->input_count && i < 64; i++)
        if (node->def->op->mutates >> i & 1u) {
            st = operands_push(b, tni_graph_input(g, node, i), TN_MODE_WRITE);
            in->out_count++;
        }
    return st;
}

/* What the forward of a backward node runs on; `*at`: its instruction, if it is in this program. */
static tni_prepared *forward_of(const builder *b, const tni_gnode *node, uint32_t *at)
{
    *at = TNI_NONE;
    if (!(node->flags & TNI_GNODE_BACKWARD) || node->forward == TNI_NONE)
        return NULL;
    if (node->forward < b->spec->first_node)
        return b->spec->forward ? b->spec->forward[node->forward] : NULL;
    *at = b->code_of[node->forward];
    return *at == TNI_NONE ? NULL : ((tni_instruction *)tni_vec_at(&b->code, *at))->prepared;
}

/* Chooses and prepares the kernel of an instruction whose operands and modes stand. */
static tn_status instruction_prepare(builder *b, tni_instruction *in)
{
    const uint32_t count = in->in_count + in->out_count;
    const uint32_t *operands = (const uint32_t *)b->operands.data + in->first_operand;
    const uint8_t *modes = (const uint8_t *)b->modes.data + in->first_operand + in->in_count;
    const tn_tensor **t = tni_calloc(count + 1u, sizeof *t);
    tni_request r = {.def = in->def, .attrs = in->attrs, .device = b->p->device};
    char why[256];
    tn_status st;

    if (!t)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < count; i++)
        t[i] = &b->p->tensors[operands[i]];
    r.in = t;
    r.out = t + in->in_count;
    r.modes = modes;
    r.in_count = in->in_count;
    r.out_count = in->out_count;
    r.threads = b->p->threads;
    r.flags = b->spec->flags;
    r.forward = forward_of(b, &b->p->graph->nodes[in->node], &in->saved_of);
    st = tni_select(b->selector, &r, &in->prepared);
    tni_free((void *)t);
    if (st)
        return st;
    if (tni_node_breaks(in->def, in->prepared, why, sizeof why))
        return tni_error(TN_E_UNSUPPORTED, "node \"%s\" (%s) cannot be part of a program: %s",
                         b->p->graph->nodes[in->node].name, in->def->op->name, why);
    if (!tni_prepared_reads(in->prepared))
        in->saved_of = TNI_NONE;
    b->p->est_ns += in->prepared->plan.est_ns ? in->prepared->plan.est_ns : 1000;
    b->p->parallel |= (in->prepared->plan.flags & TN_PLAN_PARALLEL) != 0;
    return TN_OK;
}

/* The mode of an output that is a head is the head's, before its kernel is chosen. */
static void head_modes(builder *b, const tni_gnode *node, tni_instruction *in)
{
    const tni_graph *g = b->p->graph;
    uint8_t *modes = (uint8_t *)b->modes.data + in->first_operand + in->in_count;

    for (uint32_t h = 0; b->spec->modes && h < g->head_count; h++) {
        uint32_t entry = g->heads[h];

        if (entry >= node->first_entry && entry < node->first_entry + node->output_count)
            modes[entry - node->first_entry] = b->spec->modes[h];
    }
}

static tn_status instruction_of_node(builder *b, uint32_t index)
{
    const tni_gnode *node = &b->p->graph->nodes[index];
    tni_instruction in = {.def = node->def,
                          .node = index,
                          .random = node->random,
                          .workspace = TNI_NONE,
                          .saved = TNI_NONE,
                          .saved_of = TNI_NONE,
                          .saved_input = TNI_NONE};
    char why[256];
    tn_status st;

    if (tni_node_breaks(node->def, NULL, why, sizeof why))
        return tni_error(TN_E_UNSUPPORTED, "node \"%s\" (%s) cannot be part of a program: %s", node->name,
                         node->def->op->name, why);
    in.attrs = tni_attrs_retain(node->attrs);
    if (!(st = operands_of(b, &in, node))) {
        head_modes(b, node, &in);
        if (!(st = links_make(b, &in, node, index)) && !(st = instruction_prepare(b, &in))) {
            b->code_of[index] = (uint32_t)b->code.count;
            st = tni_vec_push(&b->code, &in);
        }
    }
    if (st)
        instruction_fini(&in);
    return st;
}

/* Is this head written by its own instruction, and the only head there? If it is to be added up, nobody else
 * may read it, since its memory then holds more than the result. */
static bool head_direct(const builder *b, uint32_t head, uint8_t mode)
{
    const tni_graph *g = b->p->graph;
    uint32_t entry = g->heads[head], node = g->entry_node[entry];

    if (!node_computed(b, node) || g->nodes[node].def->op->flags & TN_OP_VIEW)
        return false;
    for (uint32_t i = 0; i < head; i++)
        if (g->heads[i] == entry)
            return false;
    for (uint32_t n = b->spec->first_node; mode == TN_MODE_ADD && n < g->node_count; n++)
        for (uint32_t k = 0; k < g->nodes[n].input_count; k++)
            if (tni_graph_input(g, &g->nodes[n], k) == entry)
                return false;
    return true;
}

/* Appends an entry like `entry` to the graph's tables, without a node of its own. */
static tn_status entry_append(tni_program *p, uint32_t entry, uint32_t *out)
{
    const tni_opdef *copy;
    tni_attrs *attrs = NULL;
    uint32_t node;
    tn_status st;

    if ((st = tni_opset_find(p->graph->ops, "_copy", &copy)) ||
        (st = tni_attrs_parse(copy, 0, NULL, NULL, &attrs)) ||
        (st = tni_graph_add_node(p->graph, copy, attrs, "head", 1, &entry, &node)))
        goto cleanup;
    *out = p->graph->nodes[node].first_entry;
    p->graph->shapes[*out] = p->graph->shapes[entry];
    p->graph->dtypes[*out] = p->graph->dtypes[entry];
    p->graph->storages[*out] = p->graph->storages[entry];

cleanup:
    tni_attrs_release(attrs);
    return st;
}

/* Heads that need a copy get a `_copy` node, before tensors are made. */
static tn_status heads_copy(builder *b)
{
    tni_graph *g = b->p->graph;
    tn_status st = TN_OK;

    for (uint32_t i = 0; !st && i < g->head_count; i++) {
        uint8_t mode = b->spec->modes ? b->spec->modes[i] : TN_MODE_WRITE;
        uint32_t entry = g->heads[i];

        if (!head_direct(b, i, mode) && !(st = entry_append(b->p, entry, &entry)))
            g->heads[i] = entry;
    }
    return st;
}

static tn_status code_make(builder *b)
{
    const tni_graph *g = b->p->graph;
    tn_status st = TN_OK;

    for (uint32_t n = b->spec->first_node; !st && n < g->node_count; n++) {
        if (!b->wanted[n] || !g->nodes[n].def || g->nodes[n].def->op->flags & TN_OP_VIEW)
            continue;
        st = instruction_of_node(b, n);
    }
    return st;
}

/* ---- the whole --------------------------------------------------------------------------------------- */

static void builder_init(builder *b, tni_program *p, tni_selector *s, const tni_program_spec *spec)
{
    memset(b, 0, sizeof *b);
    b->p = p;
    b->selector = s;
    b->spec = spec;
    tni_vec_init(&b->code, sizeof(tni_instruction), TN_GRAPH_NODES_MAX);
    tni_vec_init(&b->operands, sizeof(uint32_t), 4u * TN_GRAPH_NODES_MAX);
    tni_vec_init(&b->modes, 1, 4u * TN_GRAPH_NODES_MAX);
    tni_vec_init(&b->links, sizeof(tni_attr_link), TN_GRAPH_NODES_MAX);
}

/* Moves the vectors into the program; whatever happens, the instructions end up owned by it. */
static void builder_finish(builder *b)
{
    tni_program *p = b->p;

    p->code = b->code.data;
    p->code_count = (uint32_t)b->code.count;
    p->operands = b->operands.data;
    p->operand_count = (uint32_t)b->operands.count;
    p->modes = b->modes.data;
    p->links = b->links.data;
    p->link_count = (uint32_t)b->links.count;
    tni_free(b->wanted);
    tni_free(b->code_of);
}

tn_status tni_program_create(tni_selector *s, tni_program_spec *spec, tni_program **out)
{
    static atomic_uint_fast64_t ids;
    tni_program *p = tni_zalloc(sizeof *p);
    builder b;
    tn_status st;

    if (!p) {
        tni_graph_destroy(spec->graph);
        return TN_E_NOMEM;
    }
    tni_ref_init(&p->refs);
    p->graph = spec->graph;
    p->device = spec->device;
    p->threads = spec->threads;
    p->train = (spec->flags & TN_NODE_TRAIN) != 0;
    p->random_count = p->graph->random_count;
    p->id = atomic_fetch_add(&ids, 1) + 1;
    builder_init(&b, p, s, spec);
    if ((st = heads_copy(&b)) || (st = tensors_make(p)))
        goto cleanup;
    b.wanted = tni_calloc(p->graph->node_count + 1u, 1);
    b.code_of = tni_alloc((p->graph->node_count + 1u) * sizeof *b.code_of);
    if (!b.wanted || !b.code_of) {
        st = TN_E_NOMEM;
        goto cleanup;
    }
    memset(b.code_of, 0xff, (p->graph->node_count + 1u) * sizeof *b.code_of);
    wanted_mark(&b);
    st = code_make(&b);

cleanup:
    builder_finish(&b);
    if (!st)
        st = tni_program_place(p, spec);
    if (st)
        tni_program_release(p);
    else
        *out = p;
    return st;
}
