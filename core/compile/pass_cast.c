/*
 * Casts: one to the type that its input has is its input, and one of a value that was widened reads that
 * value instead, so that float16 -> float32 -> float16 is no work at all. Among floating-point types only,
 * where the wider type holds every number of the narrower; a NaN may keep other bits. Casts that nobody reads
 * any more go with the dead ones. The backward of a cast stays in recorded nets: what it reads for its type
 * is kept for it, and other backwards, made later, look for it there.
 */
#include <string.h>

#include "compile/code.h"

static const char *const casts[] = {"Cast", "amp_cast", "_backward_cast"};

/* Narrower and wider types. */
static const struct {
    int32_t narrow, wide;
} widens[] = {
    {TN_F16, TN_F32}, {TN_F16, TN_F64}, {TN_BF16, TN_F32}, {TN_BF16, TN_F64}, {TN_F32, TN_F64},
};

typedef struct shortcut {
    tni_code *c;
    uint32_t *forward; /* per value: the one that stands for it */
    uint8_t *written;  /* per root */
} shortcut;

static int32_t dtype_of(const tni_code *c, uint32_t value)
{
    return tni_code_value(c, value)->tensor.dtype;
}

static bool is_cast(const tni_instruction *in)
{
    const char *op = tni_op_meaning(in->def)->op->name;

    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        if (!strcmp(op, casts[i]))
            return in->kind == TN_EXEC_KERNEL && in->out_count == 1 && !in->link_count;
    return false;
}

static bool wider(int32_t narrow, int32_t wide)
{
    for (size_t i = 0; i < sizeof widens / sizeof *widens; i++)
        if (widens[i].narrow == narrow && widens[i].wide == wide)
            return true;
    return false;
}

/* The result of a cast that other readers may do without: in memory of its own, written once. */
static bool passing(const shortcut *s, const tni_instruction *in)
{
    const uint32_t out = tni_code_operands(s->c, in)[in->in_count];
    const tni_value *v = tni_code_value(s->c, out);

    return v->root == out && v->place == TNI_PLACE_NONE && !s->written[out] &&
           tni_code_modes(s->c, in)[in->in_count] == TN_MODE_WRITE;
}

/* Its memory is as it is, whenever it is read. */
static bool steady(const shortcut *s, uint32_t value)
{
    return !s->written[tni_code_root(s->c, value)];
}

/* What was widened to `value`, in the same phase as `in`; TNI_NONE: nothing was. */
static uint32_t widened_from(const shortcut *s, uint32_t value, const tni_instruction *in)
{
    const uint32_t def = tni_code_value(s->c, value)->def;
    const tni_instruction *made;
    uint32_t from;

    if (def == TNI_NONE || !is_cast(made = tni_code_at(s->c, def)) || !passing(s, made) ||
        tni_code_operands(s->c, made)[made->in_count] != value ||
        tni_instruction_phase(made) != tni_instruction_phase(in))
        return TNI_NONE;
    from = tni_code_operands(s->c, made)[0];
    return wider(dtype_of(s->c, from), dtype_of(s->c, value)) && steady(s, from) ? from : TNI_NONE;
}

static void cast_shorten(shortcut *s, tni_instruction *in)
{
    uint32_t *operands = tni_code_operands(s->c, in), from;
    const uint32_t out = operands[in->in_count];

    while (tni_dtype_is_float(dtype_of(s->c, out)) && (from = widened_from(s, operands[0], in)) != TNI_NONE) {
        operands[0] = from;
        s->c->rewrites++;
    }
    from = operands[0];
    if (dtype_of(s->c, from) != dtype_of(s->c, out) || !passing(s, in) || !steady(s, from) ||
        tni_code_root(s->c, from) != from || (in->in_count > 1 && s->c->spec->flags & TN_NODE_RECORDED))
        return;
    s->forward[out] = from;
    s->c->rewrites++;
}

static void values_forward(const shortcut *s)
{
    tni_code *c = s->c;

    for (uint32_t v = 0; v < c->values.count; v++)
        if (s->forward[v] == v)
            tni_code_value(c, v)->root = s->forward[tni_code_root(c, v)];
    for (uint32_t e = 0; e < c->p->graph->entry_count; e++)
        c->value_of[e] = s->forward[c->value_of[e]];
}

tn_status tni_pass_cast(tni_code *c)
{
    shortcut s = {.c = c, .forward = tni_alloc((c->values.count + 1) * sizeof *s.forward)};
    tn_status st = s.forward ? tni_code_written(c, &s.written) : TN_E_NOMEM;

    for (uint32_t v = 0; !st && v < c->values.count; v++)
        s.forward[v] = v;
    for (uint32_t i = 0; !st && i < c->code.count; i++) {
        tni_instruction *in = tni_code_at(c, i);

        for (uint32_t k = 0; k < in->in_count; k++)
            tni_code_operands(c, in)[k] = s.forward[tni_code_operands(c, in)[k]];
        if (is_cast(in))
            cast_shorten(&s, in);
    }
    if (!st)
        values_forward(&s);
    tni_free(s.forward);
    tni_free(s.written);
    return st;
}
