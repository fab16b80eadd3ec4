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
    uint8_t *dropped;        /* per instruction */
    uint32_t *last, *before; /* per root: the last two instructions that touch it, and 1; 0: none */
} summer;

typedef struct sum {
    uint32_t at, maker, output; /* the sum; the instruction that makes the term, and which of its operands */
    uint32_t rest, term, total; /* values */
} sum;

/* A sum that is made in place has the root that it lies in, and views of it still have the sum: until the
 * end. */
static uint32_t root_of(const tni_code *c, uint32_t value)
{
    while (tni_code_root(c, value) != value)
        value = tni_code_root(c, value);
    return value;
}

static void touches_find(summer *w)
{
    for (uint32_t i = 0; i < w->c->code.count; i++) {
        const tni_instruction *in = tni_code_at(w->c, i);

        for (uint32_t k = 0; k < in->in_count + in->out_count; k++) {
            const uint32_t root = tni_code_root(w->c, tni_code_operands(w->c, in)[k]);

            if (w->last[root] == i + 1)
                continue;
            w->before[root] = w->last[root];
            w->last[root] = i + 1;
        }
    }
}

/* From the term's maker on, does anything but the sum touch the rest, or anything but these two the term? */
static bool needed(const summer *w, const sum *s)
{
    const uint32_t rest = root_of(w->c, s->rest), at = s->at + 1, maker = s->maker + 1;

    return w->last[rest] != at || w->before[rest] >= maker || w->last[s->term] != at ||
           w->before[s->term] != maker;
}

/* A value of backward alone that is all that lies in its memory. */
static bool plain(const tni_code *c, uint32_t value)
{
    const tni_value *v = tni_code_value(c, value), *root = tni_code_value(c, root_of(c, value));

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
    const tni_value *term = tni_code_value(c, s->term), *rest = tni_code_value(c, root_of(c, s->rest));
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
    tni_code_value(c, s->total)->root = root_of(c, s->rest);
    return TN_OK;
}

/* The sum is no instruction any more; who touches its result touches the rest. */
static void sum_drop(summer *w, const sum *s)
{
    const uint32_t root = root_of(w->c, s->total);

    w->dropped[s->at] = 1;
    w->last[root] = w->last[s->total];
    w->before[root] = w->before[s->total] > s->at + 1 ? w->before[s->total] : s->maker + 1;
    w->c->rewrites++;
}

/* The terms come in the order in which they are made. */
static tn_status sum_try(summer *w, uint32_t at)
{
    const uint32_t *of = tni_code_operands(w->c, tni_code_at(w->c, at));
    sum s = {.at = at, .rest = of[0], .term = of[1], .total = of[2]};
    bool taken = false;
    tn_status st = fits(w, &s) ? add_instead(w->c, &s, &taken) : TN_OK;

    if (taken)
        sum_drop(w, &s);
    return st;
}

static tn_status sums_make(summer *w)
{
    tni_code *c = w->c;
    tn_status st = TN_OK;
    tni_edit e;

    touches_find(w);
    for (uint32_t i = 0; i < c->code.count && !st; i++)
        if (is_sum(c, tni_code_at(c, i)))
            st = sum_try(w, i);
    if (st || !c->rewrites)
        return st;
    for (uint32_t v = 0; v < c->values.count; v++)
        tni_code_value(c, v)->root = root_of(c, v);
    tni_edit_begin(&e, c);
    for (uint32_t i = 0; i < c->code.count && !st; i++)
        st = w->dropped[i] ? tni_edit_drop(&e, i) : tni_edit_keep(&e, i);
    return tni_edit_end(&e, st);
}

tn_status tni_pass_sums(tni_code *c)
{
    summer w = {.c = c,
                .dropped = tni_calloc(c->code.count + 1, 1),
                .last = tni_calloc(c->values.count + 1, sizeof *w.last),
                .before = tni_calloc(c->values.count + 1, sizeof *w.before)};
    const tn_status st = w.dropped && w.last && w.before ? sums_make(&w) : TN_E_NOMEM;

    tni_free(w.dropped);
    tni_free(w.last);
    tni_free(w.before);
    return st;
}
