/*
 * From a walked tape to a compiled backward pass.
 *
 * The tape becomes a flat graph (cached operators are opened up into their inner nodes), the gradient pass
 * appends the backward nodes, and a program is made of those alone: what they read of the forward part
 * becomes its inputs, and a table says where in a tape of this shape each of them is found.
 */
#include "autograd/walk.h"

#include <string.h>

typedef struct origin { /* of a forward entry */
    uint32_t kind, node, index;
} origin;

typedef struct ran {        /* how a forward node ran */
    tni_prepared *prepared; /* NULL: a variable, a view */
    uint32_t tape, instruction;
} ran;

typedef struct build {
    const tni_tape_walk *w;
    tni_graph *g;
    tni_vec origins; /* per entry of g */
    tni_vec outs;    /* entries: outputs of tape node k from first_out[k] on */
    uint32_t *first_out;
    uint32_t *leaf_entry;
    tni_vec tape_of_node;              /* per node of g */
    tni_vec rans;                      /* ran, per node of the forward part */
    tni_prepared **forward;            /* the same as a table for the program's builder */
    bool train, np_shape, graph_taken; /* taken: the program's, or gone */
} build;

static tni_tape_node *node_at(const build *b, size_t i)
{
    return *(tni_tape_node **)tni_vec_at(&b->w->nodes, i);
}

static tni_array *leaf_at(const build *b, size_t i)
{
    return *(tni_array **)tni_vec_at(&b->w->leaves, i);
}

/* Origins and tape positions keep step with the graph. */
static tn_status follow(build *b, uint32_t kind, uint32_t node, uint32_t index, uint32_t tape)
{
    const tni_gnode *last = &b->g->nodes[b->g->node_count - 1];
    const ran nothing = {NULL, TNI_NONE, TNI_NONE};
    tn_status st = tni_vec_push(&b->tape_of_node, &tape);

    if (!st)
        st = tni_vec_push(&b->rans, &nothing);
    for (uint32_t o = 0; o < last->output_count && !st; o++) {
        const origin from = {kind, node, index + o};

        st = tni_vec_push(&b->origins, &from);
    }
    return st;
}

/* The node that was added last ran on `prepared`. */
static void ran_on(build *b, tni_prepared *prepared, uint32_t tape, uint32_t instruction)
{
    *(ran *)tni_vec_at(&b->rans, b->rans.count - 1) = (ran){prepared, tape, instruction};
}

static void entry_set(build *b, uint32_t entry, const tn_shape *shape, int32_t dtype)
{
    b->g->shapes[entry] = *shape;
    b->g->dtypes[entry] = dtype;
    b->g->storages[entry] = TN_STORAGE_DENSE;
}

static tn_status variable_add(build *b, const char *name, int32_t ndim, const int64_t *dims, int32_t dtype,
                              const origin *from, uint32_t *entry)
{
    tn_shape shape = {.ndim = ndim};
    uint32_t node;
    tn_status st = tni_graph_add_variable(b->g, name, &node);

    if (st)
        return st;
    memcpy(shape.dim, dims, (size_t)ndim * sizeof *dims);
    *entry = b->g->nodes[node].first_entry;
    entry_set(b, *entry, &shape, dtype);
    return follow(b, from->kind, from->node, from->index, TNI_NONE);
}

static tn_status leaves_add(build *b)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < b->w->leaves.count && !st; i++) {
        const tni_array *a = leaf_at(b, i);
        const origin from = {TNI_FROM_LEAF, 0, i};
        char name[32];

        snprintf(name, sizeof name, "leaf%u", i);
        st = variable_add(b, name, a->ndim, a->shape, a->dtype, &from, &b->leaf_entry[i]);
    }
    return st;
}

/* The entry that input `i` of tape node `n` reads. */
static tn_status input_entry(build *b, const tni_tape_node *n, uint32_t i, uint32_t *entry)
{
    const tni_tape_entry *e = n->in_entries[i];
    const uint32_t leaf = tni_tape_leaf(b->w, n->leaves[i]);
    const origin from = {TNI_FROM_IN, n->position, i};

    if (e) {
        *entry = *(uint32_t *)tni_vec_at(&b->outs, b->first_out[e->node->position] + e->index);
        return TN_OK;
    }
    if (leaf != TNI_NONE) {
        *entry = b->leaf_entry[leaf];
        return TN_OK;
    }
    if (n->signature) {
        const tni_operand_key *k = &n->signature->in[i];

        return variable_add(b, "constant", k->ndim, k->shape, k->dtype, &from, entry);
    }
    return variable_add(b, "constant", n->in[i]->ndim, n->in[i]->shape, n->in[i]->dtype, &from, entry);
}

static tn_status operator_add(build *b, const tni_tape_node *n, const uint32_t *in)
{
    const tni_signature *s = n->signature;
    uint32_t node;
    tn_status st = tni_graph_add_node(b->g, s->def, n->attrs, s->def->op->name, n->in_count, in, &node);

    if (st || (st = follow(b, TNI_FROM_OUT, n->position, 0, n->position)))
        return st;
    ran_on(b, s->prepared, n->position, TNI_NONE);
    b->train |= (s->flags & TN_NODE_TRAIN) != 0;
    b->np_shape |= (s->flags & TN_NODE_NP_SHAPE) != 0;
    for (uint32_t o = 0; o < s->out_count && !st; o++) {
        const uint32_t entry = b->g->nodes[node].first_entry + o;

        entry_set(b, entry, &s->out_shape[o], s->out_dtype[o]);
        st = tni_vec_push(&b->outs, &entry);
    }
    return st;
}

/* One inner node of a cached operator. `map`: its graph's entries to ours. */
static tn_status inner_add(build *b, const tni_tape_node *n, uint32_t inner, uint32_t *map,
                           const uint32_t *in)
{
    const tni_graph *from = n->cached->graph;
    const tni_gnode *node = &from->nodes[inner];
    uint32_t small[16], *inputs = small, made;
    tn_status st;

    if (!node->def) {
        map[node->first_entry] = in[node->variable];
        return TN_OK;
    }
    if (node->input_count > 16 && !(inputs = tni_calloc(node->input_count, sizeof *inputs)))
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < node->input_count; i++)
        inputs[i] = map[tni_graph_input(from, node, i)];
    st = tni_graph_add_node(b->g, node->def, node->attrs, node->name, node->input_count, inputs, &made);
    if (inputs != small)
        tni_free(inputs);
    if (st)
        return st;
    for (uint32_t o = 0; o < node->output_count; o++) {
        map[node->first_entry + o] = b->g->nodes[made].first_entry + o;
        entry_set(b, map[node->first_entry + o], &from->shapes[node->first_entry + o],
                  from->dtypes[node->first_entry + o]);
    }
    return follow(b, TNI_FROM_FRAME, n->position, node->first_entry, TNI_NONE);
}

static tn_status cached_add(build *b, const tni_tape_node *n, const uint32_t *in)
{
    const tni_graph *from = n->cached->graph;
    const tni_program *program = n->cached->program;
    uint32_t *map = tni_calloc(from->entry_count + 1u, sizeof *map);
    tn_status st = map ? TN_OK : TN_E_NOMEM;

    b->train |= (n->cached->flags & TN_NODE_TRAIN) != 0;
    b->np_shape |= from->np_shape;
    for (uint32_t i = 0, c = 0; i < from->node_count && !st; i++) {
        st = inner_add(b, n, i, map, in);
        if (st || !from->nodes[i].def)
            continue;
        while (c < program->code_count && program->code[c].node < i) /* in the order of nodes */
            c++;
        if (c < program->code_count && program->code[c].node == i)
            ran_on(b, program->code[c].prepared, n->position, c);
    }
    for (uint32_t h = 0; h < from->head_count && !st; h++)
        st = tni_vec_push(&b->outs, &map[from->heads[h]]);
    tni_free(map);
    return st;
}

static tn_status nodes_add(build *b)
{
    tn_status st = TN_OK;

    for (size_t k = 0; k < b->w->nodes.count && !st; k++) {
        const tni_tape_node *n = node_at(b, k);
        uint32_t small[16], *in = small;

        b->first_out[k] = (uint32_t)b->outs.count;
        if (n->in_count > 16 && !(in = tni_calloc(n->in_count, sizeof *in)))
            return TN_E_NOMEM;
        for (uint32_t i = 0; i < n->in_count && !st; i++)
            st = input_entry(b, n, i, &in[i]);
        if (!st)
            st = n->signature ? operator_add(b, n, in) : cached_add(b, n, in);
        if (in != small)
            tni_free(in);
    }
    return st;
}

/* ---- the gradient ------------------------------------------------------------------------------------ */

typedef struct gradient {
    uint32_t *heads, *head_vars, *wanted, *grads;
    uint32_t forward_nodes, forward_entries;
} gradient;

static void gradient_fini(gradient *d)
{
    tni_free(d->heads);
    tni_free(d->head_vars);
    tni_free(d->wanted);
    tni_free(d->grads);
}

static tn_status gradient_make(build *b, gradient *d)
{
    const uint32_t heads = b->w->head_count, leaves = (uint32_t)b->w->leaves.count;
    tni_gradient_spec spec = {.head_count = heads, .wanted_count = leaves};
    tn_status st;

    d->heads = tni_calloc(heads + 1u, sizeof *d->heads);
    d->head_vars = tni_calloc(heads + 1u, sizeof *d->head_vars);
    d->wanted = tni_calloc(leaves + 1u, sizeof *d->wanted);
    d->grads = tni_calloc(leaves + 1u, sizeof *d->grads);
    if (!d->heads || !d->head_vars || !d->wanted || !d->grads)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < heads; i++) {
        const tni_tape_entry *e = b->w->heads[i]->grad_entry;

        d->heads[i] = *(uint32_t *)tni_vec_at(&b->outs, b->first_out[e->node->position] + e->index);
    }
    for (uint32_t i = 0; i < leaves; i++)
        d->wanted[i] = b->g->entry_node[b->leaf_entry[i]];
    spec.heads = d->heads;
    spec.wanted = d->wanted;
    d->forward_nodes = b->g->node_count;
    d->forward_entries = b->g->entry_count;
    if ((st = tni_graph_gradient(b->g, &spec, d->head_vars, d->grads)))
        return st;
    for (uint32_t i = 0; i < heads; i++)
        if (d->head_vars[i] != TNI_NONE)
            entry_set(b, b->g->nodes[d->head_vars[i]].first_entry, &b->g->shapes[d->heads[i]],
                      b->g->dtypes[d->heads[i]]);
    b->g->np_shape = b->np_shape;
    b->g->train = b->train;
    return TN_OK;
}

/* ---- sources ----------------------------------------------------------------------------------------- */

/* A consumer that kept this output of node `n` as its input. */
static bool kept_by_consumer(const build *b, uint32_t entry, tni_source *out)
{
    const origin *from = tni_vec_at(&b->origins, entry);

    for (size_t k = from->node + 1; k < b->w->nodes.count; k++) {
        const tni_tape_node *n = node_at(b, k);

        for (uint32_t i = 0; i < n->in_count; i++) {
            const tni_tape_entry *e = n->in_entries[i];

            if (e && n->in[i] &&
                *(uint32_t *)tni_vec_at(&b->outs, b->first_out[e->node->position] + e->index) == entry) {
                *out = (tni_source){TNI_FROM_IN, (uint32_t)k, i};
                return true;
            }
        }
    }
    return false;
}

static tn_status source_of(const build *b, const gradient *d, const tni_port *port, tni_source *out)
{
    const uint32_t entry = port->entry;
    const origin *from;

    if (entry == TNI_NONE) {
        const ran *r = tni_vec_at(&b->rans, port->saved_node);

        *out = (tni_source){TNI_FROM_SAVED, r->tape, r->instruction};
        return TN_OK;
    }
    if (entry >= d->forward_entries) {
        for (uint32_t i = 0; i < b->w->head_count; i++)
            if (d->head_vars[i] == b->g->entry_node[entry]) {
                *out = (tni_source){TNI_FROM_HEAD, 0, i};
                return TN_OK;
            }
        return tni_error(TN_E_INTERNAL, "a backward pass reads an entry that nobody makes");
    }
    from = tni_vec_at(&b->origins, entry);
    *out = (tni_source){from->kind, from->node, from->index};
    if (from->kind == TNI_FROM_OUT && !node_at(b, from->node)->out[from->index] &&
        !kept_by_consumer(b, entry, out))
        return tni_error(TN_E_INTERNAL, "the gradient of %s reads output %u, which was not kept",
                         node_at(b, from->node)->signature->def->op->name, from->index);
    return TN_OK;
}

/* ---- the whole --------------------------------------------------------------------------------------- */

void tni_backward_release(tni_backward_program *p)
{
    if (!p || !tni_ref_release(&p->refs))
        return;
    tni_frame_release(p->frame);
    tni_program_release(p->program);
    tni_bynode_destroy(p->bynode);
    tni_graph_destroy(p->broken);
    tni_free(p->key);
    tni_free(p->sources);
    tni_free(p->leaf_of_output);
    tni_free(p->zero_leaves);
    tni_free(p->tape_of_node);
    tni_free(p->head_used);
    tni_free(p);
}

/* Heads of the backward graph: one gradient per leaf that is reached. */
static tn_status outputs_choose(const build *b, const gradient *d, tni_backward_program *p,
                                const uint8_t *modes, uint8_t *head_modes)
{
    const uint32_t leaves = (uint32_t)b->w->leaves.count;
    uint32_t *heads = tni_calloc(leaves + 1u, sizeof *heads), count = 0;
    tn_status st = heads ? TN_OK : TN_E_NOMEM;

    p->leaf_of_output = tni_calloc(leaves + 1u, sizeof *p->leaf_of_output);
    p->zero_leaves = tni_calloc(leaves + 1u, sizeof *p->zero_leaves);
    if (!p->leaf_of_output || !p->zero_leaves)
        st = TN_E_NOMEM;
    for (uint32_t i = 0; i < leaves && !st; i++) {
        if (d->grads[i] == TNI_NONE) {
            p->zero_leaves[p->zero_count++] = i;
            continue;
        }
        head_modes[count] = modes[i];
        p->leaf_of_output[count] = i;
        heads[count++] = d->grads[i];
    }
    if (!st)
        st = tni_graph_set_heads(b->g, count, heads);
    tni_free(heads);
    return st;
}

/* The compiler's refusal stands if the nodes cannot run one by one either. */
static tn_status by_node(tni_context *c, tni_backward_program *p, const tni_program_spec *refused)
{
    const tni_bynode_spec spec = {.graph = p->broken,
                                  .device = refused->device,
                                  .first_node = refused->first_node,
                                  .forward = refused->forward,
                                  .flags = refused->flags};
    tn_err refusal;
    tn_status st;

    tni_error_get(&refusal);
    st = tni_bynode_create(c, &spec, &p->bynode);
    if (st == TN_E_UNSUPPORTED)
        tni_error_set(&refusal);
    if (st)
        return st;
    tni_error_clear();
    p->graph = p->broken;
    p->inputs = tni_bynode_inputs(p->bynode, &p->input_count);
    return TN_OK;
}

/* As a program, or node by node where the graph breaks. Takes the graph of `b`. */
static tn_status compile(build *b, tni_backward_program *p, tni_program_spec *spec)
{
    tni_context *c = b->w->ctx;
    tn_status st = tni_graph_copy(b->g, &p->broken);

    if (st)
        return st;
    spec->graph = b->g;
    b->graph_taken = true; /* also on failure */
    st = tni_program_create(c->selector, spec, &p->program);
    if (st) {
        b->g = p->broken; /* the other one is gone */
        return st == TN_E_UNSUPPORTED ? by_node(c, p, spec) : st;
    }
    tni_exec_program_made(c);
    tni_graph_destroy(p->broken);
    p->broken = NULL;
    p->graph = p->program->graph;
    p->inputs = p->program->inputs;
    p->input_count = p->program->input_count;
    return tni_frame_create(c, p->program, &p->frame);
}

static tn_status program_make(build *b, const gradient *d, tni_backward_program *p, const uint8_t *modes)
{
    tni_context *c = b->w->ctx;
    tni_program_spec spec = {.threads = tni_exec_threads(c), .first_node = d->forward_nodes};
    uint8_t *head_modes = tni_calloc(b->w->leaves.count + 1u, 1);
    tn_status st = head_modes ? TN_OK : TN_E_NOMEM;

    spec.flags = (uint16_t)(tni_exec_node_flags(c) | (b->train ? TN_NODE_TRAIN : 0u));
    spec.device = b->w->heads[0]->storage->device;
    spec.modes = head_modes;
    b->forward = tni_calloc(b->rans.count + 1u, sizeof *b->forward);
    spec.forward = b->forward;
    if (!b->forward)
        st = TN_E_NOMEM;
    for (size_t i = 0; !st && i < b->rans.count; i++)
        b->forward[i] = ((ran *)tni_vec_at(&b->rans, i))->prepared;
    if (!st && !(st = outputs_choose(b, d, p, modes, head_modes)) && !(st = tni_graph_infer(b->g, false)))
        st = compile(b, p, &spec);
    tni_free(head_modes);
    return st;
}

static tn_status tables_make(build *b, const gradient *d, tni_backward_program *p)
{
    tn_status st = TN_OK;

    p->sources = tni_calloc(p->input_count + 1u, sizeof *p->sources);
    p->head_used = tni_calloc(b->w->head_count + 1u, 1);
    p->tape_of_node = tni_calloc(p->graph->node_count + 1u, sizeof *p->tape_of_node);
    p->key = tni_alloc(b->w->key.count * sizeof *p->key);
    if (!p->sources || !p->head_used || !p->tape_of_node || !p->key)
        return TN_E_NOMEM;
    memcpy(p->key, b->w->key.data, b->w->key.count * sizeof *p->key);
    p->key_count = b->w->key.count;
    p->hash = b->w->hash;
    memset(p->tape_of_node, 0xff, p->graph->node_count * sizeof *p->tape_of_node);
    for (size_t i = 0; i < b->tape_of_node.count; i++)
        p->tape_of_node[i] = *(uint32_t *)tni_vec_at(&b->tape_of_node, i);
    for (uint32_t i = 0; i < p->input_count && !st; i++) {
        st = source_of(b, d, &p->inputs[i], &p->sources[i]);
        if (!st && p->sources[i].kind == TNI_FROM_HEAD)
            p->head_used[p->sources[i].index] = 1;
    }
    return st;
}

static void build_fini(build *b)
{
    if (!b->graph_taken)
        tni_graph_destroy(b->g);
    tni_vec_fini(&b->origins);
    tni_vec_fini(&b->outs);
    tni_vec_fini(&b->tape_of_node);
    tni_vec_fini(&b->rans);
    tni_free((void *)b->forward);
    tni_free(b->first_out);
    tni_free(b->leaf_entry);
}

static tn_status build_init(build *b, const tni_tape_walk *w)
{
    memset(b, 0, sizeof *b);
    b->w = w;
    tni_vec_init(&b->origins, sizeof(origin), 2u * TN_TAPE_NODES_MAX);
    tni_vec_init(&b->outs, sizeof(uint32_t), 2u * TN_TAPE_NODES_MAX);
    tni_vec_init(&b->tape_of_node, sizeof(uint32_t), 2u * TN_TAPE_NODES_MAX);
    tni_vec_init(&b->rans, sizeof(ran), 2u * TN_TAPE_NODES_MAX);
    b->first_out = tni_calloc(w->nodes.count + 1u, sizeof *b->first_out);
    b->leaf_entry = tni_calloc(w->leaves.count + 1u, sizeof *b->leaf_entry);
    if (!b->first_out || !b->leaf_entry)
        return TN_E_NOMEM;
    return tni_graph_create(w->ctx->ops, &b->g);
}

tn_status tni_backward_build(const tni_tape_walk *w, const uint8_t *modes, tni_backward_program **out)
{
    tni_backward_program *p = tni_zalloc(sizeof *p);
    gradient d = {0};
    build b;
    tn_status st = build_init(&b, w);

    if (p)
        tni_ref_init(&p->refs);
    else
        st = TN_E_NOMEM;
    if (st || (st = leaves_add(&b)) || (st = nodes_add(&b)) || (st = gradient_make(&b, &d)) ||
        (st = program_make(&b, &d, p, modes)) || (st = tables_make(&b, &d, p)))
        goto cleanup;
    *out = p;
    p = NULL;

cleanup:
    build_fini(&b);
    gradient_fini(&d);
    tni_backward_release(p);
    return st;
}
