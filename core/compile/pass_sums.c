/*
 * Sums of gradients in place: where the last term of a sum comes from a kernel that adds 16-bit floats before
 * it rounds (TN_KERNEL_ADD_SHORT), and the rest of the sum is needed no more, the kernel adds to that. The
 * term is never written, and one rounding less is made. Sums that pass pointwise has joined with what reads
 * them stay there.
 */
#include <string.h>

#include "compile/code.h"

typedef struct summer {
    tni_code *c;
    uint8_t *dropped; /* per instruction */
} summer;

typedef struct sum {
    uint32_t at, maker, output; /* the sum; the instruction that makes the term, and which of its operands */
    uint32_t rest, term, total; /* values */
} sum;

static const tni_value *root_of(const tni_code *c, uint32_t value)
{
    return tni_code_value(c, tni_code_root(c, value));
}

static bool touches(const tni_code *c, const tni_instruction *in, uint32_t root)
{
    for (uint32_t k = 0; k < in->in_count + in->out_count; k++)
        if (tni_code_root(c, tni_code_operands(c, in)[k]) == root)
            return true;
    return false;
}

/* From the term's maker on, does anything but the sum touch the rest, or anything but these two the term? */
static bool needed(const summer *w, const sum *s)
{
    const tni_code *c = w->c;

    for (uint32_t i = s->maker; i < c->code.count; i++)
        if (i != s->at && !w->dropped[i] &&
            (touches(c, tni_code_at(c, i), tni_code_root(c, s->rest)) ||
             (i != s->maker && touches(c, tni_code_at(c, i), s->term))))
            return true;
    return false;
}

/* A value of backward alone that is all that lies in its memory. */
static bool plain(const tni_code *c, uint32_t value)
{
    const tni_value *v = tni_code_value(c, value), *root = root_of(c, value);

    return root->place == TNI_PLACE_NONE && root->def != TNI_NONE && !v->delta && !v->tensor.layout &&
           !root->tensor.layout && v->tensor.bytes == root->tensor.bytes && tni_code_dense(c, value) &&
           tni_instruction_phase(tni_code_at(c, root->def)) == TNI_BACKWARD;
}

static bool is_sum(const tni_code *c, const tni_instruction *in)
{
    const int32_t dtype = in->out_count
                              ? tni_code_value(c, tni_code_operands(c, in)[in->in_count])->tensor.dtype
                              : TN_DTYPE_UNKNOWN;

    return in->kind == TN_EXEC_KERNEL && in->in_count == 2 && in->out_count == 1 &&
           (dtype == TN_F16 || dtype == TN_BF16) && !strcmp(in->def->op->name, "_grad_add") &&
           tni_code_modes(c, in)[2] == TN_MODE_WRITE;
}

/* The kernel that makes the term may add it to the rest, which is there by then: nobody else looks at either
 * from there on. */
static bool fits(const summer *w, sum *s)
{
    const tni_code *c = w->c;
    const tni_value *term = tni_code_value(c, s->term), *rest = root_of(c, s->rest);
    const tni_instruction *in;

    if (!plain(c, s->rest) || !plain(c, s->term) || !plain(c, s->total) || term->root != s->term ||
        tni_code_root(c, s->total) != s->total || term->tensor.bytes != rest->tensor.bytes ||
        term->device != rest->device)
        return false;
    s->maker = term->def;
    in = tni_code_at(c, s->maker);
    for (s->output = in->in_count; tni_code_operands(c, in)[s->output] != s->term;)
        s->output++;
    return in->prepared && in->prepared->kernel->flags & TN_KERNEL_ADD_SHORT &&
           !(in->flags & (TNI_CODE_HELPER | TNI_CODE_AGAIN | TNI_CODE_SKIP_EMPTY)) &&
           tni_code_modes(c, in)[s->output] == TN_MODE_WRITE && !needed(w, s);
}

static bool laid_out_alike(const tni_prepared *a, const tni_prepared *b)
{
    return !memcmp(a->plan.in_layout, b->plan.in_layout, a->in_count * sizeof(void *)) &&
           !memcmp(a->plan.out_layout, b->plan.out_layout, a->out_count * sizeof(void *));
}

/* The same kernel, prepared to add. `*taken` false: everything is as before. */
static tn_status add_instead(tni_code *c, const sum *s, bool *taken)
{
    tni_instruction *in = tni_code_at(c, s->maker);
    tni_prepared *adding = NULL;
    uint64_t bytes;
    tn_status st;

    tni_code_operands(c, in)[s->output] = s->total;
    tni_code_modes(c, in)[s->output] = TN_MODE_ADD;
    in->flags |= TNI_CODE_ADD_SHORT;
    st = tni_code_choose(c, s->maker, &adding);
    bytes = st ? 0 : tni_workspace_bytes(&adding->plan);
    *taken = !st && adding->kernel == in->prepared->kernel && adding->adds &&
             laid_out_alike(adding, in->prepared) && (!bytes || in->workspace != TNI_NONE);
    if (!*taken) {
        tni_prepared_release(adding);
        tni_code_operands(c, in)[s->output] = s->term;
        tni_code_modes(c, in)[s->output] = TN_MODE_WRITE;
        in->flags &= (uint16_t)~TNI_CODE_ADD_SHORT;
        if (st == TN_E_UNSUPPORTED)
            tni_error_clear();
        return st == TN_E_UNSUPPORTED ? TN_OK : st;
    }
    tni_prepared_release(in->prepared);
    in->prepared = adding;
    if (bytes && bytes > tni_code_value(c, in->workspace)->tensor.bytes)
        tni_code_value(c, in->workspace)->tensor.bytes = bytes;
    tni_code_value(c, s->total)->def = s->maker;
    for (tni_value *v = tni_code_value(c, 0); v < tni_code_value(c, (uint32_t)c->values.count); v++)
        if (v->root == s->total) /* the sum, and views of it */
            v->root = tni_code_root(c, s->rest);
    return TN_OK;
}

static tn_status sum_try(summer *w, uint32_t at)
{
    const uint32_t *of = tni_code_operands(w->c, tni_code_at(w->c, at));
    tn_status st = TN_OK;

    for (uint32_t k = 2; k-- > 0 && !st && !w->dropped[at];) {
        sum s = {.at = at, .rest = of[!k], .term = of[k], .total = of[2]};
        bool taken = false;

        if (fits(w, &s) && !(st = add_instead(w->c, &s, &taken)) && taken) {
            w->dropped[at] = 1;
            w->c->rewrites++;
        }
    }
    return st;
}

tn_status tni_pass_sums(tni_code *c)
{
    summer w = {c, tni_calloc(c->code.count + 1, 1)};
    tn_status st = w.dropped ? TN_OK : TN_E_NOMEM;
    tni_edit e;

    for (uint32_t i = 0; i < c->code.count && !st; i++)
        if (is_sum(c, tni_code_at(c, i)))
            st = sum_try(&w, i);
    if (!st && c->rewrites) {
        tni_edit_begin(&e, c);
        for (uint32_t i = 0; i < c->code.count && !st; i++)
            st = w.dropped[i] ? tni_edit_drop(&e, i) : tni_edit_keep(&e, i);
        st = tni_edit_end(&e, st);
    }
    tni_free(w.dropped);
    return st;
}
