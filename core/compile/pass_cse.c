/*
 * Common subexpressions: of instructions with the same operator, attributes and inputs, which give the same
 * bits, the first stays; who reads the others reads its results.
 *
 * Left alone is what draws, mutates or has effects, what lies at a port, what reads memory that is written in
 * between, and what some backward reads a saved block of. A forward is not merged with a backward: its value
 * would be kept for it.
 */
#include <string.h>

#include "compile/code.h"

typedef struct merger {
    tni_code *c;
    tni_edit e;
    uint32_t *forward; /* per value: the one that stands for it */
    uint8_t *written;  /* per root */
    uint8_t *forwards; /* per node: a backward knows it */
    uint32_t *buckets; /* instruction + 1 */
    uint32_t *next;    /* per instruction: the next of its bucket, +1 */
    uint64_t *hashes;  /* per instruction */
    uint32_t bucket_count;
} merger;

static uint64_t mixed(uint64_t h, uint64_t v)
{
    return (h ^ v) * 0x9e3779b97f4a7c15u + (h >> 29);
}

static uint64_t hash_of(const merger *m, const tni_instruction *in)
{
    uint64_t h = mixed(tni_attrs_hash(in->attrs), (uint64_t)(uintptr_t)in->def);

    h = mixed(h, (uint64_t)in->in_count << 32 | in->out_count);
    for (uint32_t k = 0; k < in->in_count; k++)
        h = mixed(h, m->forward[tni_code_operands(m->c, in)[k]]);
    return h;
}

static bool mergeable(const merger *m, const tni_instruction *in)
{
    const tni_code *c = m->c;

    if (in->kind != TN_EXEC_KERNEL || in->def->op->effects || in->def->op->mutates ||
        in->random != TNI_NONE || in->link_count || !in->in_count || in->flags & TNI_CODE_HELPER ||
        m->forwards[in->node])
        return false;
    for (uint32_t k = 0; k < in->in_count; k++)
        if (m->written[tni_code_root(c, tni_code_operands(c, in)[k])])
            return false;
    for (uint32_t o = in->in_count; o < in->in_count + in->out_count; o++) {
        const uint32_t value = tni_code_operands(c, in)[o];

        if (tni_code_root(c, value) != value || tni_code_value(c, value)->place != TNI_PLACE_NONE ||
            m->written[value] || tni_code_modes(c, in)[o] != TN_MODE_WRITE)
            return false;
    }
    return true;
}

static bool equal(const merger *m, uint32_t x, uint32_t y)
{
    const tni_instruction *a = tni_code_at(m->c, x), *b = tni_code_at(m->c, y);

    if (m->hashes[x] != m->hashes[y] || a->def != b->def || a->in_count != b->in_count ||
        a->out_count != b->out_count || tni_instruction_phase(a) != tni_instruction_phase(b) ||
        !tni_attrs_equal(a->attrs, b->attrs))
        return false;
    for (uint32_t k = 0; k < a->in_count; k++)
        if (m->forward[tni_code_operands(m->c, a)[k]] != m->forward[tni_code_operands(m->c, b)[k]])
            return false;
    for (uint32_t o = a->in_count; o < a->in_count + a->out_count; o++)
        if (tni_code_value(m->c, tni_code_operands(m->c, a)[o])->device !=
            tni_code_value(m->c, tni_code_operands(m->c, b)[o])->device)
            return false;
    return true;
}

/* An earlier one that is equal; TNI_NONE, and then it stands in the table. */
static uint32_t twin_of(merger *m, uint32_t index)
{
    const uint64_t h = m->hashes[index] = hash_of(m, tni_code_at(m->c, index));
    uint32_t *bucket = &m->buckets[h & (m->bucket_count - 1)];

    for (uint32_t at = *bucket; at; at = m->next[at - 1])
        if (equal(m, at - 1, index))
            return at - 1;
    m->next[index] = *bucket;
    *bucket = index + 1;
    return TNI_NONE;
}

static void results_forward(merger *m, uint32_t from, uint32_t to)
{
    const tni_instruction *a = tni_code_at(m->c, from), *b = tni_code_at(m->c, to);

    for (uint32_t o = a->in_count; o < a->in_count + a->out_count; o++)
        m->forward[tni_code_operands(m->c, a)[o]] = tni_code_operands(m->c, b)[o];
    m->c->rewrites++;
}

static tn_status instruction_merge(merger *m, uint32_t index)
{
    tni_code *c = m->c;
    const tni_instruction *in = tni_code_at(c, index);
    uint32_t twin = TNI_NONE;

    if (mergeable(m, in) && (twin = twin_of(m, index)) != TNI_NONE) {
        results_forward(m, index, twin);
        return tni_edit_drop(&m->e, index);
    }
    for (uint32_t k = 0; k < in->in_count; k++)
        tni_code_operands(c, in)[k] = m->forward[tni_code_operands(c, in)[k]];
    return tni_edit_keep(&m->e, index);
}

/* Views lie in what stands for their root; a view that is the same as another stays apart. */
static void values_forward(const merger *m)
{
    const tni_code *c = m->c;
    const uint32_t entries = c->p->graph->entry_count;

    for (uint32_t v = 0; v < c->values.count; v++) {
        tni_value *value = tni_code_value(c, v);

        if (m->forward[v] == v)
            value->root = m->forward[value->root];
    }
    for (uint32_t e = 0; e < entries; e++)
        c->value_of[e] = m->forward[c->value_of[e]];
}

static void merger_fini(merger *m)
{
    tni_free(m->forward);
    tni_free(m->written);
    tni_free(m->forwards);
    tni_free(m->buckets);
    tni_free(m->next);
    tni_free(m->hashes);
}

static tn_status merger_init(merger *m, tni_code *c)
{
    *m = (merger){.c = c, .bucket_count = 16};
    while (m->bucket_count < c->code.count)
        m->bucket_count *= 2;
    m->forward = tni_alloc((c->values.count + 1) * sizeof *m->forward);
    m->buckets = tni_calloc(m->bucket_count, sizeof *m->buckets);
    m->next = tni_calloc(c->code.count + 1, sizeof *m->next);
    m->hashes = tni_calloc(c->code.count + 1, sizeof *m->hashes);
    if (!m->forward || !m->buckets || !m->next || !m->hashes)
        return TN_E_NOMEM;
    for (uint32_t v = 0; v < c->values.count; v++)
        m->forward[v] = v;
    return TN_OK;
}

tn_status tni_pass_cse(tni_code *c)
{
    merger m;
    tn_status st;

    if ((st = merger_init(&m, c)) || (st = tni_code_written(c, &m.written)) ||
        (st = tni_code_forwards(c, &m.forwards))) {
        merger_fini(&m);
        return st;
    }
    tni_edit_begin(&m.e, c);
    for (uint32_t i = 0; i < c->code.count && !st; i++)
        st = instruction_merge(&m, i);
    if (!st)
        values_forward(&m);
    st = tni_edit_end(&m.e, st);
    merger_fini(&m);
    return st;
}
