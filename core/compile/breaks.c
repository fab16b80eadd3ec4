/*
 * Which nodes cut a program, and why. The compiler asks the same question of each instruction, and so does
 * whoever wants to know beforehand.
 */
#include "compile/compile.h"

#include <string.h>

static const char *const exec_kinds[] = {
    [TN_EXEC_KERNEL] = NULL,
    [TN_EXEC_SUBGRAPH] = "it runs graphs of its own",
    [TN_EXEC_HOST] = "it calls back into the program",
    [TN_EXEC_COPY] = "it copies between devices",
    [TN_EXEC_COLLECTIVE] = "it works together with other processes",
};

bool tni_node_cuts(const tni_opdef *def, const tni_prepared *prepared, char *why, size_t size)
{
    const uint16_t exec = def->op->exec;

    if (exec != TN_EXEC_KERNEL) {
        snprintf(why, size, "%s%s",
                 exec < sizeof exec_kinds / sizeof *exec_kinds ? exec_kinds[exec] : "it is of a newer kind",
                 def->op->flags & TN_OP_BY_VALUES ? ", and values decide which" : "");
        return true;
    }
    if (prepared && prepared->kernel->flags & TN_KERNEL_ASYNC) {
        snprintf(why, size, "its kernel %s completes later", prepared->kernel->name);
        return true;
    }
    if (prepared && prepared->on_host) {
        snprintf(why, size, "its kernel %s takes arguments in host memory", prepared->kernel->name);
        return true;
    }
    if (prepared && prepared->plan.flags & TN_PLAN_RESIZES) {
        snprintf(why, size, "its kernel %s decides on the size of its outputs while it runs",
                 prepared->kernel->name);
        return true;
    }
    return false;
}

typedef struct checker {
    tni_selector *selector;
    const tni_breaks_spec *spec;
    const tni_graph *g;
    tni_device *device;
    uint8_t *wanted;         /* per node */
    tni_prepared **prepared; /* per node: what was chosen here; NULL: nothing, or not asked */
    tn_tensor *tensors;      /* per entry; stride NULL: not all of it is known */
    int64_t *strides;
    const tn_tensor **operands; /* room for the widest node */
    uint8_t *modes;
} checker;

static tn_status checker_init(checker *c)
{
    const tni_graph *g = c->g;
    uint64_t dims = 0, widest = 0;
    int64_t *at;

    for (uint32_t e = 0; e < g->entry_count; e++)
        dims += (uint64_t)(g->shapes[e].ndim > 0 ? g->shapes[e].ndim : 0);
    for (uint32_t n = 0; n < g->node_count; n++)
        if (2ull * g->nodes[n].input_count + g->nodes[n].output_count > widest)
            widest = 2ull * g->nodes[n].input_count + g->nodes[n].output_count;
    c->tensors = tni_calloc(g->entry_count + 1u, sizeof *c->tensors);
    c->strides = at = tni_calloc(dims + 1u, sizeof *c->strides);
    c->operands = tni_calloc(widest + 1u, sizeof *c->operands);
    c->modes = tni_calloc(widest + 1u, 1);
    c->wanted = tni_calloc(g->node_count + 1u, 1);
    c->prepared = tni_calloc(g->node_count + 1u, sizeof(*c->prepared));
    if (!c->tensors || !c->strides || !c->operands || !c->modes || !c->wanted || !c->prepared)
        return TN_E_NOMEM;
    tni_graph_wanted(g, c->spec->first_node, c->wanted);
    memset(c->modes, TN_MODE_WRITE, widest + 1u);
    for (uint32_t e = 0; e < g->entry_count; e++) {
        tn_tensor *t = &c->tensors[e];

        if (!tn_shape_known(&g->shapes[e]) || g->dtypes[e] < 0)
            continue;
        t->shape = g->shapes[e].dim;
        t->stride = at;
        t->ndim = g->shapes[e].ndim;
        t->dtype = g->dtypes[e];
        t->device = c->device->index;
        t->bytes = tn_dtype_size(t->dtype, (uint64_t)tni_row_major(t->ndim, t->shape, at));
        at += t->ndim;
    }
    return TN_OK;
}

static void checker_fini(checker *c)
{
    tni_free(c->tensors);
    tni_free(c->strides);
    tni_free((void *)c->operands);
    tni_free(c->modes);
    tni_free(c->wanted);
    for (uint32_t n = 0; c->prepared && n < c->g->node_count; n++)
        tni_prepared_release(c->prepared[n]);
    tni_free(c->prepared);
}

/* What the forward of a backward node runs on, as far as it is known. */
static tni_prepared *forward_of(const checker *c, const tni_gnode *node)
{
    if (!(node->flags & TNI_GNODE_BACKWARD) || node->forward == TNI_NONE)
        return NULL;
    if (node->forward < c->spec->first_node)
        return c->spec->forward ? c->spec->forward[node->forward] : NULL;
    return c->prepared[node->forward];
}

/* The operands of a node as its instruction would have them; false if one is not known. */
static bool operands_of(const checker *c, const tni_gnode *node, tni_request *r)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < node->input_count; i++)
        c->operands[count++] = &c->tensors[tni_graph_input(c->g, node, i)];
    for (uint32_t i = 0; i < node->output_count; i++)
        c->operands[count++] = &c->tensors[node->first_entry + i];
    for (uint32_t i = 0; i < node->input_count; i++)
        if (tn_op_mutates(node->def->op, node->input_count, i))
            c->operands[count++] = &c->tensors[tni_graph_input(c->g, node, i)];
    for (uint32_t i = 0; i < count; i++)
        if (!c->operands[i]->stride)
            return false;
    r->def = tni_op_meaning(node->def);
    r->attrs = node->attrs;
    r->device = c->device;
    r->in = c->operands;
    r->out = c->operands + node->input_count;
    r->modes = c->modes;
    r->in_count = node->input_count;
    r->out_count = count - node->input_count;
    r->threads = c->spec->threads;
    r->flags = c->spec->flags;
    r->forward = forward_of(c, node);
    return true;
}

/* Everything goes in known and something comes out unknown: only a run tells its size. */
static bool sized_by_run(const checker *c, const tni_gnode *node)
{
    bool unknown = false;

    for (uint32_t i = 0; i < node->input_count; i++)
        if (!c->tensors[tni_graph_input(c->g, node, i)].stride)
            return false;
    for (uint32_t i = 0; i < node->output_count; i++)
        unknown |= !tn_shape_known(&c->g->shapes[node->first_entry + i]);
    return unknown;
}

/* From operator and kernels alone. */
static tn_status check_loosely(const checker *c, const tni_gnode *node, tni_break *found)
{
    uint32_t count = 0, prompt = 0;
    tn_status st = tni_select_count(c->selector, node->def, c->device, &count, &prompt);

    if (st)
        return st;
    if (!count)
        snprintf(found->why, sizeof found->why, "no loaded plugin has a kernel for device %s",
                 c->device->type);
    else if ((found->runs = !prompt))
        snprintf(found->why, sizeof found->why,
                 "each of its kernels for device %s completes later or takes arguments in host memory",
                 c->device->type);
    return TN_OK;
}

static tn_status check_exactly(const checker *c, const tni_request *r, tni_break *found)
{
    tni_prepared *prepared = NULL;
    tn_status st = tni_select(c->selector, r, &prepared);

    if (st == TN_E_UNSUPPORTED) {
        snprintf(found->why, sizeof found->why, "%s", tni_error_message());
        tni_error_clear();
        return TN_OK;
    }
    if (!st)
        found->runs = tni_node_cuts(r->def, prepared, found->why, sizeof found->why);
    c->prepared[found->node] = prepared; /* moved */
    return st;
}

static tn_status check_node(const checker *c, const tni_gnode *node, tni_break *found)
{
    tni_request r = {0};

    found->runs = tni_node_cuts(node->def, NULL, found->why, sizeof found->why);
    if (found->runs)
        return TN_OK;
    if (operands_of(c, node, &r))
        return check_exactly(c, &r, found);
    if (!sized_by_run(c, node))
        return check_loosely(c, node, found);
    snprintf(found->why, sizeof found->why, "the size of its outputs is known only after it ran");
    found->runs = true;
    return TN_OK;
}

tn_status tni_graph_breaks(tni_selector *s, const tni_breaks_spec *spec, tni_vec *out)
{
    const tni_graph *g = spec->graph;
    checker c = {.selector = s, .spec = spec, .g = g, .device = spec->device};
    tn_status st = checker_init(&c);

    for (uint32_t n = spec->first_node; !st && n < g->node_count; n++) {
        const tni_gnode *node = &g->nodes[n];
        tni_break found = {.node = n};

        if (!node->def || !c.wanted[n] || node->def->op->flags & TN_OP_VIEW)
            continue;
        st = check_node(&c, node, &found);
        if (!st && found.why[0])
            st = tni_vec_push(out, &found);
    }
    checker_fini(&c);
    return st;
}
