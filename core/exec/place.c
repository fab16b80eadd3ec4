/*
 * Where the nodes of a net run, if its arrays lie on several devices or its nodes name some.
 *
 * In this order: the device of its group (`__ctx_group__`), the attribute ctx of what has no inputs, where
 * its own variables lie, where its first input is. Variables lie where their arrays are.
 */
#include "exec/internal.h"

#include <string.h>

struct tni_groups {
    uint32_t count;
    char **names;
    tni_device **devices;
};

typedef struct placer {
    tni_context *ctx;
    tni_graph *g;
    const tni_groups *groups;
    tni_device *device; /* of nodes that nothing says more of */
} placer;

static tni_device *device_at(const placer *p, uint32_t entry)
{
    return p->g->nodes[p->g->entry_node[entry]].device;
}

/* The device of the node's group; NULL: it is in none, or in one that nobody gave a device. */
static tni_device *group_device(const placer *p, const tni_gnode *n)
{
    void *name = NULL;

    if (!n->dict || !p->groups || !tni_map_get(n->dict, "__ctx_group__", &name))
        return NULL;
    for (uint32_t i = 0; i < p->groups->count; i++)
        if (!strcmp(p->groups->names[i], name))
            return p->groups->devices[i];
    return NULL;
}

static tn_status named_device(const placer *p, const tni_gnode *n, tni_device **out)
{
    const int32_t at =
        n->input_count && n->def->op->exec != TN_EXEC_COPY ? -1 : tni_attr_index(n->def, "ctx");
    const char *text = at < 0 ? NULL : tn_value_pointer(n->attrs->values[at]);

    return text && *text ? tni_device_parse(p->ctx->devices, text, out) : TN_OK;
}

/* Where its variables lie, which are to lie together; without any where its first input is. */
static tn_status input_device(const placer *p, const tni_gnode *n, tni_device **out)
{
    uint32_t of = TNI_NONE;

    for (uint32_t i = 0; i < n->input_count; i++) {
        const uint32_t e = tni_graph_input(p->g, n, i);
        tni_device *d = device_at(p, e);

        if (p->g->nodes[p->g->entry_node[e]].def)
            continue;
        if (of != TNI_NONE && d != *out)
            return tni_error(
                TN_E_DEVICE,
                "node \"%.80s\" (%s) of the net: input %u is on %s:%d, input %u on %s:%d; bring them "
                "together, or name its device by its group",
                n->name, n->def->op->name, i, d->type, d->index, of, (*out)->type, (*out)->index);
        of = i;
        *out = d;
    }
    if (of == TNI_NONE && n->input_count)
        *out = device_at(p, tni_graph_input(p->g, n, 0));
    return TN_OK;
}

/* What a node changes is not copied to it: it lies there. */
static tn_status mutated_check(const placer *p, const tni_gnode *n)
{
    for (uint32_t i = 0; i < n->input_count; i++) {
        const tni_device *d = device_at(p, tni_graph_input(p->g, n, i));

        if (tn_op_mutates(n->def->op, n->input_count, i) && d != n->device)
            return tni_error(
                TN_E_DEVICE, "node \"%.80s\" (%s) runs on %s:%d and changes input %u, which is on %s:%d",
                n->name, n->def->op->name, n->device->type, n->device->index, i, d->type, d->index);
    }
    return TN_OK;
}

static tn_status node_place(const placer *p, tni_gnode *n)
{
    tni_device *d = group_device(p, n);
    tn_status st = TN_OK;

    if (n->device) /* of a part, as the whole was placed */
        return mutated_check(p, n);
    if (n->def->op->exec == TN_EXEC_COPY && tni_attr_index(n->def, "ctx") >= 0)
        d = NULL; /* it says itself where to */
    if (!d && ((st = named_device(p, n, &d)) || (!d && (st = input_device(p, n, &d)))))
        return st;
    n->device = d ? d : p->device;
    return mutated_check(p, n);
}

tn_status tni_graph_place(tni_context *c, tni_graph *g, tni_array *const *in, const tni_groups *groups,
                          tni_device *device)
{
    const placer p = {c, g, groups, device};
    tn_status st = TN_OK;

    for (uint32_t v = 0; v < g->variable_count; v++)
        g->nodes[g->variables[v]].device = in[v]->storage->device;
    for (uint32_t k = 0; k < g->node_count && !st; k++)
        if (g->nodes[k].def && !(st = node_place(&p, &g->nodes[k])))
            st = tni_kernels_load(c->plugins, g->nodes[k].device);
    return st;
}

bool tni_graph_placed(const tni_graph *g)
{
    for (uint32_t k = 0; k < g->node_count; k++) {
        const tni_gnode *n = &g->nodes[k];
        const int32_t at = n->def && (!n->input_count || n->def->op->exec == TN_EXEC_COPY)
                               ? tni_attr_index(n->def, "ctx")
                               : -1;
        const char *text = at < 0 ? NULL : tn_value_pointer(n->attrs->values[at]);

        if (n->device || (text && *text))
            return true;
    }
    return false;
}

/* ---- groups -------------------------------------------------------------------------------------------- */

static bool group_used(const tni_graph *g, const char *name)
{
    void *of = NULL;

    for (uint32_t k = 0; k < g->node_count; k++)
        if (g->nodes[k].dict && tni_map_get(g->nodes[k].dict, "__ctx_group__", &of) && !strcmp(of, name))
            return true;
    return false;
}

static tn_status group_add(tni_context *c, const tni_graph *g, const char *name, const char *device,
                           tni_groups *to)
{
    tn_status st;

    if (!group_used(g, name))
        return tni_error(TN_E_KEY, "no node of the net is in a group \"%.80s\" (attribute __ctx_group__)",
                         name);
    for (uint32_t i = 0; i < to->count; i++)
        if (!strcmp(to->names[i], name))
            return tni_error(TN_E_ARG, "group \"%.80s\" is given two devices", name);
    if ((st = tni_device_parse(c->devices, device, &to->devices[to->count])))
        return st;
    if (!(to->names[to->count] = tni_strdup(name)))
        return TN_E_NOMEM;
    to->count++;
    return TN_OK;
}

tn_status tni_groups_create(tni_context *c, const tni_graph *g, const char *const *pairs, tni_groups **out)
{
    tni_groups *to;
    uint32_t count = 0;
    tn_status st = TN_OK;

    while (pairs[2 * count])
        if (!pairs[2 * count + 1] || ++count > TN_DEVICES_MAX)
            return pairs[2 * count] && count <= TN_DEVICES_MAX
                       ? tni_error(TN_E_ARG, "group \"%.80s\" is given no device", pairs[2 * count])
                       : tni_error(TN_E_ARG, "more than %u groups are given devices", TN_DEVICES_MAX);
    if (!(to = tni_zalloc(sizeof *to + count * (sizeof(char *) + sizeof(tni_device *)))))
        return TN_E_NOMEM;
    to->names = (char **)(to + 1);
    to->devices = (tni_device **)(to->names + count);
    for (uint32_t i = 0; i < count && !st; i++)
        st = group_add(c, g, pairs[2 * i], pairs[2 * i + 1], to);
    if (st)
        tni_groups_destroy(to);
    else
        *out = to;
    return st;
}

void tni_groups_destroy(tni_groups *g)
{
    for (uint32_t i = 0; g && i < g->count; i++)
        tni_free(g->names[i]);
    tni_free(g);
}
