/*
 * Sums: where an output is to be added to its array and the kernel can only overwrite, the kernel writes a
 * value aside, which a copy that adds brings there. Either way the old value is added to a finished one, with
 * one rounding.
 */
#include "compile/code.h"

#define OUTPUTS_MAX 64u

static tn_status add_from(tni_edit *e, uint32_t index, uint32_t from, uint32_t to)
{
    const uint32_t operands[2] = {from, to};
    const uint8_t modes[2] = {TN_MODE_NONE, TN_MODE_ADD};
    tni_instruction add;
    tn_status st;

    if ((st = tni_code_helper(e->c, "_copy", index, &add)))
        return st;
    if (!(st = tni_code_prepare(e->c, &add, operands, modes)))
        st = add.prepared->kernel->flags & TN_KERNEL_ADD_TO
                 ? tni_edit_add(e, &add, operands, modes)
                 : tni_error(TN_E_UNSUPPORTED, "kernel %s copies and does not add",
                             add.prepared->kernel->name);
    if (st)
        tni_instruction_fini(&add);
    return st;
}

static tn_status instruction_part(tni_edit *e, uint32_t index)
{
    const tni_instruction *in = tni_code_at(e->c, index);
    const uint32_t count = in->in_count + in->out_count;
    uint32_t *operands = tni_calloc(count + 1u, sizeof *operands), aside[OUTPUTS_MAX];
    uint8_t *modes = tni_calloc(count + 1u, 1);
    tn_status st = operands && modes ? TN_OK : TN_E_NOMEM;

    for (uint32_t k = 0; k < count && !st; k++) {
        const uint32_t value = operands[k] = tni_code_operands(e->c, in)[k];
        const tni_value like = *tni_code_value(e->c, value);

        modes[k] = tni_code_modes(e->c, in)[k];
        if (k < in->in_count || modes[k] != TN_MODE_ADD || k - in->in_count >= OUTPUTS_MAX)
            continue;
        modes[k] = TN_MODE_WRITE;
        st = tni_code_value_add(e->c, &like, &aside[k - in->in_count]);
        operands[k] = aside[k - in->in_count];
    }
    if (!st)
        st = tni_edit_add(e, in, operands, modes);
    for (uint32_t o = 0; o < in->out_count && !st; o++)
        if (tni_code_modes(e->c, in)[in->in_count + o] == TN_MODE_ADD)
            st =
                add_from(e, index, operands[in->in_count + o], tni_code_operands(e->c, in)[in->in_count + o]);
    tni_free(operands);
    tni_free(modes);
    return st;
}

/* Some output is to be added, and the kernel cannot. */
static bool parted(const tni_code *c, const tni_instruction *in)
{
    bool adds = false;

    for (uint32_t o = 0; o < in->out_count; o++)
        adds |= tni_code_modes(c, in)[in->in_count + o] == TN_MODE_ADD;
    return adds && in->prepared && !in->prepared->adds;
}

tn_status tni_pass_addto(tni_code *c)
{
    bool any = false;
    tni_edit e;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < c->code.count && !any; i++)
        any = parted(c, tni_code_at(c, i));
    if (!any)
        return TN_OK;
    tni_edit_begin(&e, c);
    for (uint32_t i = 0; i < c->code.count && !st; i++)
        st = parted(c, tni_code_at(c, i)) ? instruction_part(&e, i) : tni_edit_keep(&e, i);
    return tni_edit_end(&e, st);
}
