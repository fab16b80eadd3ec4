/*
 * Dead instructions: what no port and no other instruction needs, and what has no effect, is left out. What
 * may refuse its inputs stays, and kernels were chosen before: a net fails where its operators would. Before
 * kernels are chosen, gradients that nobody reads, such as those of a net's data, are marked as not wanted.
 */
#include "compile/code.h"

/* It writes something that is there before it or behind it, or does more than compute. */
static bool lasting(const tni_code *c, const tni_instruction *in, const uint8_t *needed)
{
    if (in->saved != TNI_NONE && !(in->flags & TNI_CODE_READS_SAVED) && needed[in->saved])
        return true; /* it makes a block that somebody reads */
    if (in->kind != TN_EXEC_KERNEL || in->def->op->effects || !in->out_count ||
        in->def->op->flags & TN_OP_CHECKS_VALUES)
        return true;
    for (uint32_t o = in->in_count; o < in->in_count + in->out_count; o++) {
        const uint32_t root = tni_code_root(c, tni_code_operands(c, in)[o]);

        if (tni_code_modes(c, in)[o] == TN_MODE_NONE)
            continue;
        if (needed[root] || tni_code_value(c, root)->place != TNI_PLACE_NONE ||
            (tni_code_value(c, root)->def != TNI_NONE && tni_code_at(c, tni_code_value(c, root)->def) != in))
            return true;
    }
    return false;
}

tn_status tni_pass_dead(tni_code *c)
{
    uint8_t *needed = tni_calloc(c->values.count + 1, 1), *alive = tni_calloc(c->code.count + 1, 1);
    tni_edit e;
    tn_status st = needed && alive ? TN_OK : TN_E_NOMEM;

    for (uint32_t i = (uint32_t)c->code.count; i-- > 0 && !st;) {
        const tni_instruction *in = tni_code_at(c, i);

        if (!(alive[i] = lasting(c, in, needed))) {
            c->rewrites++;
            continue;
        }
        for (uint32_t k = 0; k < in->in_count; k++)
            needed[tni_code_root(c, tni_code_operands(c, in)[k])] = 1;
        if (in->saved != TNI_NONE && in->flags & TNI_CODE_READS_SAVED)
            needed[in->saved] = 1;
    }
    if (!st && c->rewrites) {
        tni_edit_begin(&e, c);
        for (uint32_t i = 0; i < c->code.count && !st; i++)
            st = alive[i] ? tni_edit_keep(&e, i) : tni_edit_drop(&e, i);
        st = tni_edit_end(&e, st);
    }
    tni_free(needed);
    tni_free(alive);
    return st;
}

tn_status tni_pass_unread(tni_code *c)
{
    uint32_t *readers;
    tn_status st = tni_code_readers(c, &readers);

    if (st)
        return st;
    for (uint32_t i = 0; i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);
        const tni_gnode *node = c->p->graph ? &c->p->graph->nodes[in->node] : NULL;

        if (!node || !(node->flags & TNI_GNODE_BACKWARD) || in->kind != TN_EXEC_KERNEL ||
            in->def->op->effects)
            continue;
        for (uint32_t o = in->in_count; o < in->in_count + in->out_count; o++) {
            const uint32_t value = tni_code_operands(c, in)[o];

            if (tni_code_value(c, value)->def != i || readers[value])
                continue;
            tni_code_modes(c, in)[o] = TN_MODE_NONE;
            c->rewrites++;
        }
    }
    tni_free(readers);
    return TN_OK;
}
