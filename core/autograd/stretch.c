/*
 * A stretch of recorded operators becomes a flat graph; the gradient pass appends the backward nodes, and a
 * program is made of those alone. What they read of the forward part becomes its ports, and a table says
 * where in a tape of this shape each of them is found.
 */
#include "autograd/stretch.h"

#include <string.h>

typedef struct stretch {
    const tni_stretch_spec *spec;
    const tni_tape_walk *w;
    tni_forward f;
    tni_graph *g; /* the forward part's, with the gradient behind */
    uint32_t *heads, *head_vars, *head_slots, *wanted, *targets, *grads, *olds;
    uint8_t *adds, *modes; /* per gradient */
    tni_device **devices;  /* per gradient */
    uint32_t head_count, wanted_count, forward_nodes, forward_entries;
} stretch;

/* ---- the gradient ------------------------------------------------------------------------------------ */

static tn_status gradient_make(stretch *s)
{
    tni_gradient_spec spec = {.heads = s->heads, .wanted = s->wanted, .adds = s->adds, .olds = s->olds};
    tn_status st;

    for (uint32_t k = s->spec->first; k < s->spec->first + s->spec->count; k++)
        for (uint32_t o = 0; o < tni_tape_at(s->w, k)->out_count; o++) {
            const uint32_t slot = s->spec->tables->first_slot[k] + o;

            if (!s->spec->arrives[slot])
                continue;
            s->heads[s->head_count] = s->spec->tables->slot_entry[slot];
            s->head_slots[s->head_count++] = slot;
        }
    for (uint32_t i = 0; i < s->f.outside.count; i++) {
        const tni_outside *o = tni_vec_at(&s->f.outside, i);

        s->wanted[i] = o->node;
        s->targets[i] = o->target;
        s->devices[i] = s->g->nodes[o->node].device;
    }
    spec.wanted_count = s->wanted_count = (uint32_t)s->f.outside.count;
    for (uint32_t i = 0; i < s->wanted_count; i++)
        s->adds[i] = s->spec->adds(s->spec->arg, s->targets[i]);
    spec.head_count = s->head_count;
    if ((st = tni_graph_gradient(s->g, &spec, s->head_vars, s->grads)))
        return st;
    for (uint32_t i = 0; i < s->head_count; i++)
        if (s->head_vars[i] != TNI_NONE)
            tni_forward_like(&s->f, s->head_vars[i], s->heads[i]);
    for (uint32_t i = 0; i < s->wanted_count; i++)
        if (s->olds[i] != TNI_NONE)
            tni_forward_like(&s->f, s->olds[i], s->g->nodes[s->wanted[i]].first_entry);
    s->g->np_shape = s->f.np_shape;
    s->g->train = s->f.train;
    return tni_graph_infer(s->g, false);
}

/* ---- sources ----------------------------------------------------------------------------------------- */

static tn_status source_of(const stretch *s, const tni_port *port, tni_source *out)
{
    if (port->kind == TNI_PORT_SAVED) {
        *out = (tni_source){TNI_FROM_SAVED, *(uint32_t *)tni_vec_at(&s->f.tape_of_node, port->index), 0};
        return TN_OK;
    }
    if (port->kind != TNI_PORT_ENTRY || !(port->read >> TNI_BACKWARD & 1u))
        return TN_OK;
    if (port->index >= s->forward_entries)
        return tni_error(TN_E_INTERNAL, "a backward pass reads an entry that nobody makes");
    return tni_forward_source(&s->f, port->index, out);
}

static tn_status tables_make(const stretch *s, tni_stage *stage)
{
    const tni_program *p = stage->program;
    tn_status st = TN_OK;

    stage->sources = tni_calloc(p->port_count + 1u, sizeof *stage->sources);
    stage->tape_of_node = tni_alloc((p->graph->node_count + 1ull) * sizeof *stage->tape_of_node);
    if (!stage->sources || !stage->tape_of_node)
        return TN_E_NOMEM;
    memset(stage->tape_of_node, 0xff, (p->graph->node_count + 1ull) * sizeof *stage->tape_of_node);
    memcpy(stage->tape_of_node, s->f.tape_of_node.data,
           s->f.tape_of_node.count * sizeof *stage->tape_of_node);
    for (uint32_t i = 0; i < p->port_count && !st; i++)
        st = source_of(s, &p->ports[i], &stage->sources[i]);
    return st;
}

/* ---- the whole --------------------------------------------------------------------------------------- */

static tn_status program_make(stretch *s, tni_stage *stage)
{
    tni_context *c = s->w->ctx;
    uint32_t *head_of = tni_calloc(s->g->variable_count + 1u, sizeof *head_of);
    tni_program_spec spec = {
        .threads = tni_exec_threads(c),
        .device = s->spec->device,
        .flags = (uint16_t)(tni_exec_node_flags(c) | (s->f.train && !s->w->predict ? TN_NODE_TRAIN : 0u)),
        .first_node = s->forward_nodes,
        .backward_node = s->forward_nodes,
        .head_of = head_of,
        .gradient_count = s->wanted_count,
        .gradients = s->grads,
        .gradient_index = s->targets,
        .gradient_modes = s->modes,
        .gradient_devices = s->devices,
        .forward = s->f.prepared.data};
    tn_status st = head_of ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = 0; i < s->head_count && !st; i++)
        if (s->head_vars[i] != TNI_NONE)
            head_of[s->g->nodes[s->head_vars[i]].variable] = s->head_slots[i];
    for (uint32_t i = 0; i < s->wanted_count && !st; i++) {
        s->modes[i] = s->grads[i] == TNI_NONE ? TN_MODE_NONE : s->spec->mode(s->spec->arg, s->targets[i]);
        if (s->olds[i] != TNI_NONE) { /* the sum begins with it, so the port is written */
            head_of[s->g->nodes[s->olds[i]].variable] = i;
            s->modes[i] = TN_MODE_WRITE;
        }
    }
    if (!st) {
        spec.graph = s->g;
        s->g = s->f.g = NULL; /* also on failure */
        st = tni_program_create(c->selector, &spec, &stage->program);
    }
    tni_free(head_of);
    if (st)
        return st;
    tni_exec_program_made(c);
    return tni_frame_pool_create(c, stage->program, &stage->pool);
}

static void stretch_fini(stretch *s)
{
    tni_forward_fini(&s->f);
    tni_free(s->heads);
    tni_free(s->devices);
}

/* Tables as long as what this stretch makes, and what it reads from outside. */
static tn_status tables_alloc(stretch *s)
{
    const uint64_t wanted = s->f.outside.count + 1;
    uint64_t heads = 1;

    for (uint32_t k = s->spec->first; k < s->spec->first + s->spec->count; k++)
        heads += tni_tape_at(s->w, k)->out_count;
    s->heads = tni_calloc(3 * heads + 5 * wanted, sizeof *s->heads);
    s->devices = tni_calloc(wanted, sizeof(*s->devices));
    if (!s->heads || !s->devices)
        return TN_E_NOMEM;
    s->head_vars = s->heads + heads;
    s->head_slots = s->head_vars + heads;
    s->wanted = s->head_slots + heads;
    s->targets = s->wanted + wanted;
    s->grads = s->targets + wanted;
    s->olds = s->grads + wanted;
    s->adds = (uint8_t *)(s->olds + wanted);
    s->modes = s->adds + wanted;
    memset(s->olds, 0xff, wanted * sizeof *s->olds);
    return TN_OK;
}

static tn_status stretch_init(stretch *s, const tni_stretch_spec *spec)
{
    tn_status st;

    memset(s, 0, sizeof *s);
    s->spec = spec;
    s->w = spec->walk;
    st = tni_forward_make(&s->f, s->w, spec->tables, spec->first, spec->count);
    s->g = s->f.g;
    if (st || (st = tables_alloc(s)))
        return st;
    s->forward_nodes = s->g->node_count;
    s->forward_entries = s->g->entry_count;
    return TN_OK;
}

tn_status tni_stretch_build(const tni_stretch_spec *spec, tni_stage *stage)
{
    stretch s;
    tn_status st;

    if (!(st = stretch_init(&s, spec)) && !(st = gradient_make(&s)) && !(st = program_make(&s, stage)))
        st = tables_make(&s, stage);
    stretch_fini(&s);
    return st;
}
