/*
 * Arguments in host memory: a kernel of a device that wants some there gets values on the host. Copies bring
 * the inputs there before and the outputs back behind it; each is a segment of its own.
 */
#include "compile/code.h"

typedef struct host_copies { /* of one instruction: host values in place of its operands */
    uint32_t count;
    uint32_t value[64], copy[64];
} host_copies;

static uint32_t host_copy_find(const host_copies *n, uint32_t value)
{
    for (uint32_t i = 0; i < n->count; i++)
        if (n->value[i] == value)
            return n->copy[i];
    return TNI_NONE;
}

static tn_status host_copy_make(tni_code *c, host_copies *n, uint32_t value, uint32_t *out)
{
    tni_value like = *tni_code_value(c, value);
    tn_status st;

    if ((*out = host_copy_find(n, value)) != TNI_NONE)
        return TN_OK;
    if (n->count == sizeof n->value / sizeof *n->value)
        return tni_error(TN_E_UNSUPPORTED, "an operator has more than 64 arguments in host memory");
    if ((st = tni_device_get(c->spec->device->set, "cpu", 0, &like.device)) ||
        (st = tni_code_value_add(c, &like, out)))
        return st;
    tni_code_value(c, *out)->tensor.memory = TN_MEMORY_HOST;
    n->value[n->count] = value;
    n->copy[n->count++] = *out;
    return TN_OK;
}

static tn_status copy_add(tni_edit *e, uint32_t index, uint32_t from, uint32_t to, uint8_t mode)
{
    const uint32_t operands[2] = {from, to};
    const uint8_t modes[2] = {TN_MODE_NONE, mode};
    tni_instruction copy;
    tn_status st;

    if ((st = tni_code_helper(e->c, "_copy", index, &copy)))
        return st;
    copy.kind = TN_EXEC_COPY;
    if ((st = tni_edit_add(e, &copy, operands, modes)))
        tni_instruction_fini(&copy);
    return st;
}

static tn_status instruction_move(tni_edit *e, uint32_t index)
{
    const tni_instruction in = *tni_code_at(e->c, index);
    const uint32_t count = in.in_count + in.out_count;
    uint32_t *operands = tni_calloc(count + 1u, sizeof *operands);
    const uint8_t *modes = tni_code_modes(e->c, &in);
    host_copies n = {0};
    tn_status st = operands ? TN_OK : TN_E_NOMEM;

    for (uint32_t k = 0; k < count && !st; k++) {
        const uint32_t value = operands[k] = tni_code_operands(e->c, &in)[k];
        const bool read = k < in.in_count && host_copy_find(&n, value) == TNI_NONE;

        if (!tni_kernel_on_host(in.prepared->kernel, in.def->op, in.in_count, in.out_count, k))
            continue;
        if (!(st = host_copy_make(e->c, &n, value, &operands[k])) && read)
            st = copy_add(e, index, value, operands[k], TN_MODE_WRITE);
    }
    if (!st)
        st = tni_edit_add(e, &in, operands, modes);
    for (uint32_t k = in.in_count; k < count && !st; k++)
        if (operands[k] != tni_code_operands(e->c, &in)[k] && modes[k] != TN_MODE_NONE)
            st = copy_add(e, index, operands[k], tni_code_operands(e->c, &in)[k], TN_MODE_WRITE);
    tni_free(operands);
    return st;
}

static bool moves(const tni_instruction *in)
{
    return in->prepared && in->prepared->on_host;
}

tn_status tni_pass_host(tni_code *c)
{
    bool any = false;
    tni_edit e;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < c->code.count && !any; i++)
        any = moves(tni_code_at(c, i));
    if (!any)
        return TN_OK;
    tni_edit_begin(&e, c);
    for (uint32_t i = 0; i < c->code.count && !st; i++)
        st = moves(tni_code_at(c, i)) ? instruction_move(&e, i) : tni_edit_keep(&e, i);
    return tni_edit_end(&e, st);
}
