/*
 * Constants: instructions that read nothing but constants, directly or through each other, move to a phase of
 * their own, which runs before the first call, and again when a constant was written since. So weights are
 * folded and packed once, by the kernels, on the device and with the threads that a call would use.
 */
#include <string.h>

#include "compile/code.h"

typedef struct finder {
    tni_code *c;
    uint8_t *copied;   /* per root: another device gets it; who copies it looks at no constants here */
    uint8_t *constant; /* per value that is a root */
    uint8_t *written;  /* per root: somebody changes what lies there already */
    uint32_t found;
} finder;

static void inputs_note(const finder *f)
{
    const tni_code *c = f->c;

    for (uint32_t i = 0; i < c->ports.count; i++) {
        const tni_port *port = tni_vec_at(&c->ports, i);

        if (port->kind == TNI_PORT_INPUT && c->spec->constants[port->index])
            f->constant[port->value] = !f->written[port->value];
    }
}

static void copies_note(const finder *f)
{
    for (uint32_t i = 0; i < f->c->code.count; i++) {
        const tni_instruction *in = tni_code_at(f->c, i);

        for (uint32_t k = 0; in->kind == TN_EXEC_COPY && k < in->in_count; k++)
            f->copied[tni_code_root(f->c, tni_code_operands(f->c, in)[k])] = 1;
    }
}

/* Its results lie in memory of its own, and every run gives the same. */
static bool may_move(const finder *f, const tni_instruction *in)
{
    const uint32_t *operand = tni_code_operands(f->c, in);

    if (in->kind != TN_EXEC_KERNEL || !in->in_count || in->def->op->effects || in->def->op->mutates ||
        in->random != TNI_NONE || in->saved != TNI_NONE || in->link_count || tni_instruction_backward(in) ||
        in->prepared->kernel->flags & TN_KERNEL_ASYNC || in->prepared->on_host ||
        in->prepared->plan.flags & TN_PLAN_RESIZES)
        return false;
    for (uint32_t k = 0; k < in->in_count; k++)
        if (!f->constant[tni_code_root(f->c, operand[k])] &&
            tni_code_value(f->c, operand[k])->place != TNI_PLACE_SHAPE)
            return false;
    for (uint32_t o = 0; o < in->out_count; o++) {
        const uint32_t value = operand[in->in_count + o];

        if (tni_code_root(f->c, value) != value || f->written[value] || f->copied[value] ||
            tni_code_value(f->c, value)->place != TNI_PLACE_NONE)
            return false;
    }
    return true;
}

static void instructions_find(finder *f)
{
    for (uint32_t i = 0; i < f->c->code.count; i++) {
        tni_instruction *in = tni_code_at(f->c, i);

        if (!may_move(f, in))
            continue;
        in->flags |= TNI_CODE_ONCE;
        for (uint32_t o = 0; o < in->out_count; o++)
            f->constant[tni_code_operands(f->c, in)[in->in_count + o]] = 1;
        f->found++;
    }
}

/* Instructions whose results nobody reads run at each call: they are there because they may refuse their
 * inputs, and a result that is kept would never be asked for. */
static tn_status unread_stay(finder *f)
{
    uint8_t *read = tni_calloc(f->c->values.count + 1, 1);

    if (!read)
        return TN_E_NOMEM;
    for (uint32_t i = (uint32_t)f->c->code.count; i-- > 0;) {
        tni_instruction *in = tni_code_at(f->c, i);
        const uint32_t *operand = tni_code_operands(f->c, in);
        bool any = false;

        for (uint32_t o = in->in_count; o < in->in_count + in->out_count; o++)
            any |= read[tni_code_root(f->c, operand[o])];
        if (!any && in->flags & TNI_CODE_ONCE) {
            in->flags = (uint16_t)(in->flags & ~TNI_CODE_ONCE);
            f->found--;
        }
        for (uint32_t k = 0; k < in->in_count; k++)
            read[tni_code_root(f->c, operand[k])] = 1;
    }
    tni_free(read);
    return TN_OK;
}

static tn_status part_keep(tni_edit *e, bool once)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < e->c->code.count && !st; i++)
        if ((tni_instruction_phase(tni_code_at(e->c, i)) == TNI_ONCE) == once)
            st = tni_edit_keep(e, i);
    return st;
}

static tn_status instructions_move(tni_code *c)
{
    tni_edit e;
    tn_status st;

    tni_edit_begin(&e, c);
    if (!(st = part_keep(&e, true)))
        st = part_keep(&e, false);
    return tni_edit_end(&e, st);
}

tn_status tni_pass_constants(tni_code *c)
{
    finder f = {.c = c};
    tn_status st = TN_OK;

    if (!c->spec->constants)
        return TN_OK;
    f.constant = tni_calloc(c->values.count + 1, 1);
    f.copied = tni_calloc(c->values.count + 1, 1);
    st = f.constant && f.copied ? tni_code_written(c, &f.written) : TN_E_NOMEM;
    if (!st) {
        inputs_note(&f);
        copies_note(&f);
        instructions_find(&f);
        st = unread_stay(&f);
    }
    c->rewrites = f.found;
    if (!st && f.found)
        st = instructions_move(c);
    tni_free(f.constant);
    tni_free(f.copied);
    tni_free(f.written);
    return st;
}
