/*
 * Layouts: where a value lies in another memory order than the kernel that reads it asked for, a reorder
 * stands between; so does one behind a kernel whose result lies at a port, or has views.
 *
 * Kernels were chosen in order, each seeing the layout that is there (pass select): a chain of kernels that
 * understand one layout has no reorders within it. A value is brought into a layout once in each phase.
 */
#include "compile/code.h"

typedef struct ordered { /* a value in another layout */
    const tn_layout *layout;
    uint32_t value, next;
    bool backward;
} ordered;

typedef struct placer {
    tni_edit e;
    tni_vec list;     /* ordered */
    uint32_t *first;  /* per value: its first one in the list, +1 */
    uint8_t *written; /* per root: its contents change, so nothing made of it is kept */
    size_t values;    /* that these are for */
} placer;

static const tn_layout *wanted(const tni_instruction *in, uint32_t operand)
{
    if (!in->prepared)
        return NULL;
    return operand < in->in_count ? in->prepared->plan.in_layout[operand]
                                  : in->prepared->plan.out_layout[operand - in->in_count];
}

static tn_status like_add(tni_code *c, uint32_t value, const tn_layout *layout, uint32_t *out)
{
    const tni_value like = *tni_code_value(c, value);
    tn_status st = tni_code_value_add(c, &like, out);

    if (!st)
        tni_code_value(c, *out)->tensor.layout = layout;
    return st;
}

static tn_status reorder_add(placer *p, uint32_t index, uint32_t from, uint32_t to, uint8_t mode)
{
    const uint32_t operands[2] = {from, to};
    const uint8_t modes[2] = {TN_MODE_NONE, mode};
    tni_instruction reorder;
    tn_status st;

    if ((st = tni_code_helper(p->e.c, "_reorder", index, &reorder)))
        return st;
    reorder.flags |= TNI_CODE_REORDER;
    if (!(st = tni_code_prepare(p->e.c, &reorder, operands, modes)))
        st = tni_edit_add(&p->e, &reorder, operands, modes);
    if (st)
        tni_instruction_fini(&reorder);
    p->e.c->rewrites++;
    return st;
}

/* The value in that layout, made in front of instruction `index` if it is not there yet. */
static tn_status brought(placer *p, uint32_t index, uint32_t value, const tn_layout *layout, uint32_t *out)
{
    tni_code *c = p->e.c;
    const bool backward = tni_instruction_backward(tni_code_at(c, index)),
               kept = value < p->values && !p->written[tni_code_root(c, value)];
    ordered made = {.layout = layout, .backward = backward};
    tn_status st;

    for (uint32_t at = kept ? p->first[value] : 0; at;) {
        const ordered *o = tni_vec_at(&p->list, at - 1);

        if (o->layout == layout && o->backward == backward) {
            *out = o->value;
            return TN_OK;
        }
        at = o->next;
    }
    if ((st = like_add(c, value, layout, &made.value)) ||
        (st = reorder_add(p, index, value, made.value, TN_MODE_WRITE)))
        return st;
    *out = made.value;
    if (!kept)
        return TN_OK;
    made.next = p->first[value];
    p->first[value] = (uint32_t)p->list.count + 1;
    return tni_vec_push(&p->list, &made);
}

static tn_status instruction_place(placer *p, uint32_t index)
{
    tni_code *c = p->e.c;
    const tni_instruction in = *tni_code_at(c, index);
    const uint32_t count = in.in_count + in.out_count;
    const uint8_t *given = tni_code_modes(c, &in);
    uint32_t *operands = tni_calloc(count + 1u, sizeof *operands);
    uint8_t *modes = tni_calloc(count + 1u, 1);
    tn_status st = operands && modes ? TN_OK : TN_E_NOMEM;

    for (uint32_t k = 0; k < count && !st; k++) {
        const uint32_t value = operands[k] = tni_code_operands(c, &in)[k];

        modes[k] = given[k];
        if (tni_code_value(c, value)->tensor.layout == wanted(&in, k))
            continue;
        if (tni_code_value(c, value)->place == TNI_PLACE_SHAPE) {
            if (!(st = like_add(c, value, wanted(&in, k), &operands[k])))
                tni_code_value(c, operands[k])->place = TNI_PLACE_SHAPE;
            continue;
        }
        st = k < in.in_count ? brought(p, index, value, wanted(&in, k), &operands[k])
                             : like_add(c, value, wanted(&in, k), &operands[k]);
        modes[k] = modes[k] == TN_MODE_ADD ? TN_MODE_WRITE : modes[k]; /* the reorder adds */
    }
    if (!st)
        st = tni_edit_add(&p->e, &in, operands, modes);
    for (uint32_t k = in.in_count; k < count && !st; k++)
        if (operands[k] != tni_code_operands(c, &in)[k])
            st = reorder_add(p, index, operands[k], tni_code_operands(c, &in)[k], given[k]);
    tni_free(operands);
    tni_free(modes);
    return st;
}

/* A kernel may ask for layouts, or finds one: that of a value that was lent. */
static bool concerned(const tni_code *c, const tni_instruction *in)
{
    bool any = in->prepared && in->prepared->layouts;

    for (uint32_t k = 0; k < in->in_count && !any; k++)
        any = tni_code_value(c, tni_code_operands(c, in)[k])->tensor.layout != NULL;
    return any;
}

tn_status tni_pass_layout(tni_code *c)
{
    placer p = {.values = c->values.count};
    bool any = false;
    tn_status st;

    for (uint32_t i = 0; i < c->code.count && !any; i++)
        any = concerned(c, tni_code_at(c, i));
    c->laid_out = true;
    if (!any)
        return TN_OK;
    if ((st = tni_code_written(c, &p.written)))
        return st;
    tni_vec_init(&p.list, sizeof(ordered), c->values.max);
    tni_edit_begin(&p.e, c);
    if (!(p.first = tni_calloc(p.values + 1, sizeof *p.first)))
        st = TN_E_NOMEM;
    for (uint32_t i = 0; i < c->code.count && !st; i++)
        st = instruction_place(&p, i);
    st = tni_edit_end(&p.e, st);
    tni_vec_fini(&p.list);
    tni_free(p.first);
    tni_free(p.written);
    return st;
}
