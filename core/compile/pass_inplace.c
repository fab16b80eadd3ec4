/*
 * In place: a result takes over the memory of an input that nobody needs any more, where the kernel allows
 * it. Lives are known afterwards: from the instruction that makes a root to the last that touches it.
 */
#include "compile/code.h"

static void touch(const tni_code *c, uint32_t value, uint32_t at)
{
    tni_value *root = tni_code_value(c, tni_code_root(c, value));

    if (root->first == TNI_NONE)
        root->first = at;
    if (root->last == TNI_NONE || root->last < at)
        root->last = at;
}

static void lives_make(const tni_code *c)
{
    for (uint32_t i = 0; i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);

        for (uint32_t k = 0; k < in->in_count + in->out_count; k++)
            touch(c, tni_code_operands(c, in)[k], i);
        if (in->workspace != TNI_NONE)
            touch(c, in->workspace, i);
        if (in->saved != TNI_NONE)
            touch(c, in->saved, i);
    }
}

/* A view's root may lie in place of something else by now: then that is where it lies. */
static uint32_t top_of(const tni_code *c, uint32_t value)
{
    uint32_t root = tni_code_root(c, value);

    while (tni_code_root(c, root) != root)
        root = tni_code_root(c, root);
    return root;
}

/* It is all that lies in its memory, element by element in the order of a result. */
static bool whole(const tni_code *c, uint32_t value)
{
    const tni_value *v = tni_code_value(c, value);

    return !(v->flags & TNI_VALUE_WINDOW) ||
           (!v->delta && tni_code_dense(c, value) &&
            v->tensor.bytes == tni_code_value(c, tni_code_root(c, value))->tensor.bytes);
}

/* May output `out` of instruction `at` take over the memory of its input `in`? */
static bool may_share(const tni_code *c, uint32_t at, uint32_t in, uint32_t out)
{
    const tni_instruction *code = tni_code_at(c, at);
    const uint32_t *operand = tni_code_operands(c, code);
    const uint32_t from = top_of(c, operand[in]), to = operand[code->in_count + out];
    const tni_value *source = tni_code_value(c, from), *target = tni_code_value(c, to);

    if (source->place != TNI_PLACE_NONE || target->place != TNI_PLACE_NONE || target->root != to ||
        source->def == TNI_NONE)
        return false;
    if (tni_instruction_phase(tni_code_at(c, source->first)) == TNI_ONCE &&
        tni_instruction_phase(code) != TNI_ONCE)
        return false; /* the next call reads it again */
    if (source->last != at || target->first != at || tni_value_bytes(source) != tni_value_bytes(target) ||
        source->device != target->device || !whole(c, operand[in]))
        return false;
    for (uint32_t k = 0; k < code->in_count + code->out_count; k++)
        if (k != in && k != code->in_count + out && top_of(c, operand[k]) == from &&
            !(k < code->in_count && code->def->op->flags & TN_OP_POINTWISE && whole(c, operand[k])))
            return false;
    return true;
}

static void share(const tni_code *c, uint32_t from, uint32_t to)
{
    tni_code_value(c, to)->root = from;
    tni_code_value(c, from)->last = tni_code_value(c, to)->last;
}

tn_status tni_pass_lives(tni_code *c)
{
    lives_make(c);
    return TN_OK;
}

tn_status tni_pass_inplace(tni_code *c)
{
    for (uint32_t i = 0; i < c->code.count; i++) {
        const tni_instruction *in = tni_code_at(c, i);

        for (uint32_t o = 0; in->prepared && o < in->out_count; o++) {
            const int32_t from = in->prepared->plan.inplace[o];
            const uint32_t *operand = tni_code_operands(c, in);

            if (from < 0 || (uint32_t)from >= in->in_count || !may_share(c, i, (uint32_t)from, o))
                continue;
            share(c, top_of(c, operand[from]), operand[in->in_count + o]);
            c->rewrites++;
        }
    }
    for (uint32_t v = 0; v < c->values.count; v++)
        tni_code_value(c, v)->root = top_of(c, v);
    return TN_OK;
}
