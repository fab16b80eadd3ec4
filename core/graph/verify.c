/* Every invariant of a flat graph, checked from scratch. The first that does not hold is the error. */
#include "graph/walk.h"

static tn_status broken(const tni_graph *g, uint32_t node, const char *what)
{
    return tni_error(TN_E_INTERNAL, "graph: node %u \"%.80s\": %s", node,
                     g->nodes[node].name ? g->nodes[node].name : "", what);
}

static tn_status entries_check(const tni_graph *g, uint32_t i)
{
    const tni_gnode *n = &g->nodes[i];

    if (n->output_count == 0 || n->visible_count == 0 || n->visible_count > n->output_count)
        return broken(g, i, "its outputs are not counted right");
    if (n->first_entry > g->entry_count || n->output_count > g->entry_count - n->first_entry)
        return broken(g, i, "its entries lie outside");
    for (uint32_t k = 0; k < n->output_count; k++)
        if (g->entry_node[n->first_entry + k] != i)
            return broken(g, i, "an entry does not point back");
    return TN_OK;
}

static tn_status inputs_check(const tni_graph *g, uint32_t i)
{
    const tni_gnode *n = &g->nodes[i];

    if (n->first_input > g->input_total || n->input_count > g->input_total - n->first_input)
        return broken(g, i, "its inputs lie outside");
    for (uint32_t k = 0; k < n->input_count; k++) {
        uint32_t e = tni_graph_input(g, n, k);

        if (e >= g->entry_count)
            return broken(g, i, "an input is no entry");
        if (g->entry_node[e] >= i)
            return broken(g, i, "an input does not come before its user");
    }
    return TN_OK;
}

static tn_status operator_check(const tni_graph *g, uint32_t i)
{
    const tni_gnode *n = &g->nodes[i];
    tni_args args;
    tn_status st = tni_op_args(n->def, n->attrs, n->input_count, &args);

    if (st)
        return broken(g, i, "its operator does not accept its attributes");
    if (args.in_count != n->input_count || args.out_count != n->output_count ||
        args.visible_count != n->visible_count)
        return broken(g, i, "its counts are not those of its operator");
    if (n->attrs && n->attrs->def != n->def)
        return broken(g, i, "its attributes belong to another operator");
    if (n->variable != TNI_NONE)
        return broken(g, i, "an operator is listed as a variable");
    for (uint32_t k = 0; n->def->op->mutates && k < n->input_count; k++) {
        const tni_gnode *source = &g->nodes[g->entry_node[tni_graph_input(g, n, k)]];

        if (tn_op_mutates(n->def->op, n->input_count, k) && !source->def && !(source->flags & TNI_GNODE_AUX))
            return broken(g, i, "it changes a variable that is not marked as auxiliary");
    }
    return TN_OK;
}

static tn_status variable_check(const tni_graph *g, uint32_t i)
{
    const tni_gnode *n = &g->nodes[i];

    if (n->input_count || n->output_count != 1 || n->attrs)
        return broken(g, i, "a variable has inputs, attributes or several outputs");
    if (n->variable >= g->variable_count || g->variables[n->variable] != i)
        return broken(g, i, "a variable is not in the list of variables");
    return TN_OK;
}

static tn_status links_check(const tni_graph *g, uint32_t i)
{
    const tni_gnode *n = &g->nodes[i];

    if (!n->name)
        return broken(g, i, "it has no name");
    if (n->forward != TNI_NONE && n->forward >= i)
        return broken(g, i, "its forward node does not come before it");
    if (n->attr_source > i)
        return broken(g, i, "the source of its attributes comes after it");
    if (n->random != TNI_NONE && n->random >= g->random_count)
        return broken(g, i, "its number as a random node is too high");
    return TN_OK;
}

static tn_status totals_check(const tni_graph *g)
{
    uint32_t inputs = 0, entries = 0, variables = 0;

    for (uint32_t i = 0; i < g->node_count; i++) {
        inputs += g->nodes[i].input_count;
        entries += g->nodes[i].output_count;
        variables += !g->nodes[i].def;
    }
    if (inputs != g->input_total || entries != g->entry_count || variables != g->variable_count)
        return tni_error(TN_E_INTERNAL,
                         "graph: %u inputs, %u entries and %u variables, but %u, %u and %u are counted",
                         g->input_total, g->entry_count, g->variable_count, inputs, entries, variables);
    for (uint32_t i = 0; i < g->head_count; i++)
        if (g->heads[i] >= g->entry_count)
            return tni_error(TN_E_INTERNAL, "graph: head %u is entry %u of %u", i, g->heads[i],
                             g->entry_count);
    for (uint32_t e = 0; e < g->entry_count; e++)
        if (g->like[e] != TNI_NONE && g->like[e] >= g->entry_count)
            return tni_error(TN_E_INTERNAL, "graph: entry %u is like entry %u of %u", e, g->like[e],
                             g->entry_count);
    return TN_OK;
}

tn_status tni_graph_verify(const tni_graph *g)
{
    tn_status st = totals_check(g);

    for (uint32_t i = 0; i < g->node_count && !st; i++)
        (void)((st = entries_check(g, i)) || (st = inputs_check(g, i)) || (st = links_check(g, i)) ||
               (st = g->nodes[i].def ? operator_check(g, i) : variable_check(g, i)));
    return st;
}
