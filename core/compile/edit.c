/*
 * Changing the instructions of a program under construction: the old list is streamed into a new one, which
 * keeps, changes, drops or adds instructions. What points to instructions is made anew at the end.
 */
#include <string.h>

#include "compile/code.h"

void tni_edit_begin(tni_edit *e, tni_code *c)
{
    *e = (tni_edit){.c = c};
    tni_vec_init(&e->code, sizeof(tni_instruction), c->code.max);
    tni_vec_init(&e->operands, sizeof(uint32_t), c->operands.max);
    tni_vec_init(&e->modes, 1, c->modes.max);
    tni_vec_init(&e->dropped, sizeof(uint32_t), c->code.max);
}

tn_status tni_edit_drop(tni_edit *e, uint32_t index)
{
    return tni_vec_push(&e->dropped, &index);
}

tn_status tni_edit_add(tni_edit *e, const tni_instruction *in, const uint32_t *operands, const uint8_t *modes)
{
    tni_instruction made = *in;
    tn_status st = TN_OK;

    made.first_operand = (uint32_t)e->operands.count;
    for (uint32_t k = 0; k < in->in_count + in->out_count && !st; k++)
        if (!(st = tni_vec_push(&e->operands, &operands[k])))
            st = tni_vec_push(&e->modes, &modes[k]);
    return st ? st : tni_vec_push(&e->code, &made);
}

tn_status tni_edit_keep(tni_edit *e, uint32_t index)
{
    const tni_instruction *in = tni_code_at(e->c, index);

    return tni_edit_add(e, in, tni_code_operands(e->c, in), tni_code_modes(e->c, in));
}

tn_status tni_code_helper(tni_code *c, const char *op, uint32_t like, tni_instruction *out)
{
    const tni_instruction *of = tni_code_at(c, like);
    tni_instruction made = {
        .node = of->node,
        .device = of->device,
        .random = TNI_NONE,
        .workspace = TNI_NONE,
        .saved = TNI_NONE,
        .in_count = 1,
        .out_count = 1,
        .flags = (uint16_t)(TNI_CODE_HELPER | TNI_CODE_FRESH | (of->flags & TNI_CODE_BACKWARD))};
    tn_status st = tni_opset_find(tni_selector_ops(c->selector), op, &made.def);

    if (st || (st = tni_attrs_parse(made.def, 0, NULL, NULL, &made.attrs)))
        return st;
    made.kind = made.def->op->exec;
    *out = made;
    return TN_OK;
}

static bool outside(const tni_code *c, const tni_value *v)
{
    const tni_port *port = v->place == TNI_PLACE_PORT ? tni_vec_at(&c->ports, v->port) : NULL;

    return v->place == TNI_PLACE_LENT ||
           (port && (port->kind == TNI_PORT_INPUT || port->kind == TNI_PORT_ENTRY));
}

static void def_note(const tni_code *c, uint32_t value, uint32_t code)
{
    tni_value *v = value == TNI_NONE ? NULL : tni_code_value(c, value);

    if (v && v->def == TNI_NONE && !outside(c, v))
        v->def = code;
}

void tni_code_index(tni_code *c)
{
    const uint32_t nodes = c->p->graph ? c->p->graph->node_count : 0;

    for (uint32_t v = 0; v < c->values.count; v++)
        tni_code_value(c, v)->def = TNI_NONE;
    memset(c->code_of, 0xff, (nodes + 1ull) * sizeof *c->code_of);
    for (uint32_t i = 0; i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);

        for (uint32_t o = 0; o < in->out_count; o++)
            def_note(c, tni_code_operands(c, in)[in->in_count + o], i);
        def_note(c, in->workspace, i);
        if (!(in->flags & TNI_CODE_READS_SAVED))
            def_note(c, in->saved, i);
        if (c->p->graph && !(in->flags & TNI_CODE_HELPER))
            c->code_of[in->node] = i;
    }
}

tn_status tni_edit_end(tni_edit *e, tn_status st)
{
    tni_code *c = e->c;

    for (uint32_t i = 0; i < e->code.count; i++) {
        tni_instruction *in = tni_vec_at(&e->code, i);

        if (st && in->flags & TNI_CODE_FRESH)
            tni_instruction_fini(in);
        in->flags &= (uint16_t)~TNI_CODE_FRESH;
    }
    if (st) { /* the old list still owns what its instructions hold */
        tni_vec_fini(&e->code);
        tni_vec_fini(&e->operands);
        tni_vec_fini(&e->modes);
        tni_vec_fini(&e->dropped);
        return st;
    }
    for (uint32_t i = 0; i < e->dropped.count; i++)
        tni_instruction_fini(tni_code_at(c, *(uint32_t *)tni_vec_at(&e->dropped, i)));
    tni_vec_fini(&e->dropped);
    tni_vec_fini(&c->code);
    tni_vec_fini(&c->operands);
    tni_vec_fini(&c->modes);
    c->code = e->code;
    c->operands = e->operands;
    c->modes = e->modes;
    tni_code_index(c);
    return TN_OK;
}

/* ---- what passes ask about the code -------------------------------------------------------------------- */

tn_status tni_code_readers(const tni_code *c, uint32_t **out)
{
    uint32_t *readers = tni_calloc(c->values.count + 1, sizeof *readers);

    if (!readers)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);

        for (uint32_t k = 0; k < in->in_count; k++) {
            const uint32_t value = tni_code_operands(c, in)[k];

            readers[value]++;
            if (tni_code_root(c, value) != value)
                readers[tni_code_root(c, value)]++;
        }
    }
    for (uint32_t i = 0; i < c->ports.count; i++)
        readers[((tni_port *)tni_vec_at(&c->ports, i))->value]++;
    *out = readers;
    return TN_OK;
}

tn_status tni_code_written(const tni_code *c, uint8_t **out)
{
    uint8_t *written = tni_calloc(c->values.count + 1, 1);

    if (!written)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);

        for (uint32_t o = in->in_count; o < in->in_count + in->out_count; o++) {
            const uint32_t value = tni_code_operands(c, in)[o];
            const uint8_t mode = tni_code_modes(c, in)[o];

            /* A result has one definition; whatever else is written was there before. */
            if (mode == TN_MODE_ADD || (mode != TN_MODE_NONE && tni_code_value(c, value)->def != i))
                written[tni_code_root(c, value)] = 1;
        }
    }
    *out = written;
    return TN_OK;
}

tn_status tni_code_forwards(const tni_code *c, uint8_t **out)
{
    const tni_graph *g = c->p->graph;
    uint8_t *forward = tni_calloc(g->node_count + 1u, 1);

    if (!forward)
        return TN_E_NOMEM;
    for (uint32_t n = 0; n < g->node_count; n++)
        if (g->nodes[n].flags & TNI_GNODE_BACKWARD && g->nodes[n].forward != TNI_NONE)
            forward[g->nodes[n].forward] = 1;
    *out = forward;
    return TN_OK;
}
