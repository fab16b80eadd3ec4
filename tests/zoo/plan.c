/* What the arena of a net takes: its plan, the least that any plan needs, and what two plans would take. */
#include <stdlib.h>
#include <string.h>

#include "context/context.h"
#include "zoo/zoo.h"

#define ALIGN 64u

/* ---- two plans --------------------------------------------------------------------------------------- */

static bool in_arena(const tni_value *v)
{
    return (v->place == TNI_PLACE_KEPT || v->place == TNI_PLACE_SCRATCH) && v->first != TNI_NONE;
}

/* Buffers of one part: those that live before the border, behind it, or across it. */
static uint32_t part_collect(const tni_program *p, uint32_t border, int part, tni_interval *items)
{
    uint32_t count = 0;

    for (uint32_t v = 0; v < p->value_count; v++) {
        const tni_value *value = &p->values[v];
        const int of = value->first >= border ? 1 : value->last < border ? 0 : 2;

        if (value->root != v || !in_arena(value) || of != part)
            continue;
        items[count++] = (tni_interval){.bytes = value->tensor.layout ? value->tensor.layout->memory_bytes
                                                                      : value->tensor.bytes,
                                        .first = value->first,
                                        .last = value->last};
    }
    return count;
}

/* A plan of the forward's buffers, one of the backward's, and what is kept between them apart from both. */
static tn_status separate_bytes(const tni_program *p, uint64_t *out)
{
    const bool both = p->phases[TNI_BACKWARD].segment_count != 0;
    const uint32_t border = both ? p->phases[TNI_BACKWARD].first_code : UINT32_MAX;
    tni_interval *items = calloc(p->value_count + 1u, sizeof *items);
    tn_status st = items ? TN_OK : TN_E_NOMEM;
    uint64_t total = 0, bound;

    *out = 0;
    for (int part = 0; part < 2 && !st; part++) {
        st = tni_plan_offsets(items, part_collect(p, border, part, items), ALIGN, &total, &bound);
        *out += total;
    }
    for (uint32_t i = st ? 0 : part_collect(p, border, 2, items); i-- > 0;)
        *out += (items[i].bytes + ALIGN - 1) / ALIGN * ALIGN;
    free(items);
    return st;
}

/* ---- the net ----------------------------------------------------------------------------------------- */

static bool is_data(const tni_gnode *n)
{
    return !strcmp(n->name, "data");
}

static tn_status graph_make(tn_symbol *s, const int64_t shape[4], bool train, tni_graph **out)
{
    tn_shape known = {.ndim = 4};
    tn_status st = tni_graph_of(s, out);

    memcpy(known.dim, shape, 4 * sizeof *shape);
    for (uint32_t v = 0; !st && v < (*out)->variable_count; v++)
        if (is_data(&(*out)->nodes[(*out)->variables[v]]))
            st = tni_graph_preset(*out, v, &known, TN_F32, TN_STORAGE_DENSE);
    if (st)
        return st;
    (*out)->train = train;
    return tni_graph_infer(*out, false);
}

static tn_status compile(tni_context *c, tni_graph **g, bool train, tni_compiled **out)
{
    uint8_t *marks = calloc((*g)->variable_count + 1u, 1);
    tni_compiled_spec spec = {.ctx = c,
                              .flags = (uint16_t)(tni_exec_node_flags(c) | (train ? TN_NODE_TRAIN : 0u))};
    tn_status st = marks ? tni_default_device(c, &spec.device) : TN_E_NOMEM;

    for (uint32_t v = 0; !st && v < (*g)->variable_count; v++) {
        const tni_gnode *n = &(*g)->nodes[(*g)->variables[v]];

        marks[v] =
            !is_data(n) && !(train && n->flags & TNI_GNODE_AUX); /* TN_MODE_WRITE, or: seldom written */
    }
    spec.modes = train ? marks : NULL;
    spec.constants = train ? NULL : marks;
    spec.graph = *g;
    if (!st && !(st = tni_kernels_load(c->plugins, spec.device))) {
        *g = NULL; /* taken */
        st = tni_compiled_create(&spec, out);
    }
    free(marks);
    return st;
}

tn_status zoo_plan_make(tn_ctx *ctx, const char *graph, const int64_t shape[4], bool train, zoo_plan *out)
{
    tn_symbol *s = NULL;
    tni_graph *g = NULL;
    tni_compiled *e = NULL;
    tn_status st;

    if ((st = zoo_graph_read(ctx, graph, &s)) || (st = graph_make(s, shape, train, &g)) ||
        (st = compile(ctx, &g, train, &e)))
        goto cleanup;
    out->planned = e->program->planned_bytes;
    out->bound = e->program->bound_bytes;
    st = separate_bytes(e->program, &out->separate);

cleanup:
    tni_compiled_release(e);
    tni_graph_destroy(g);
    tn_symbol_release(s);
    return st;
}
