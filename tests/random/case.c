/* Building a case piece by piece, and writing it as text. */
#include "case.h"

#include <inttypes.h>
#include <string.h>

void fuzz_case_init(fuzz_case *c, uint64_t seed, uint64_t number, fuzz_rng *r)
{
    memset(c, 0, offsetof(fuzz_case, variables)); /* the counts say what of the rest is valid */
    c->seed = seed;
    c->number = number;
    r->state = seed * 0x9e3779b97f4a7c15u ^ (number + 1) * 0xd1342543de82ef95u;
    (void)fuzz_next(r);
}

fuzz_mark fuzz_case_mark(const fuzz_case *c)
{
    return (fuzz_mark){c->variable_count, c->node_count, c->entry_count,
                       c->edge_count,     c->attr_count, c->text_used};
}

void fuzz_case_cut(fuzz_case *c, const fuzz_mark *m)
{
    c->variable_count = m->variables;
    c->node_count = m->nodes;
    c->entry_count = m->entries;
    c->edge_count = m->edges;
    c->attr_count = m->attrs;
    c->text_used = m->text;
}

/* What does not fit is left out. */
static void text_put(fuzz_case *c, uint32_t at, const char *format, va_list args)
{
    const size_t room = FUZZ_TEXT_MAX - at;
    const int length = vsnprintf(c->text + at, room, format, args);

    if (length < 0 || (size_t)length >= room)
        c->text[at] = '\0';
    c->text_used = at + (uint32_t)strlen(c->text + at) + 1;
}

uint32_t fuzz_text(fuzz_case *c, const char *format, ...)
{
    const uint32_t at = c->text_used < FUZZ_TEXT_MAX ? c->text_used : FUZZ_TEXT_MAX - 1;
    va_list args;

    va_start(args, format);
    text_put(c, at, format, args);
    va_end(args);
    return at;
}

void fuzz_text_more(fuzz_case *c, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    text_put(c, c->text_used - 1, format, args); /* over the NUL */
    va_end(args);
}

uint32_t fuzz_entry_add(fuzz_case *c, uint32_t node, uint32_t index, int32_t dtype, const tn_shape *shape)
{
    c->entries[c->entry_count] = (fuzz_entry){.node = node, .index = index, .dtype = dtype, .shape = *shape};
    return c->entry_count++;
}

uint32_t fuzz_variable_add(fuzz_case *c, fuzz_rng *r, int32_t dtype, const tn_shape *shape)
{
    fuzz_variable *v = &c->variables[c->variable_count];
    const bool whole = !tni_dtype_is_float(dtype);

    v->form = fuzz_chance(r, 65) ? FUZZ_DENSE : (uint8_t)fuzz_below(r, FUZZ_FORMS);
    v->values = fuzz_chance(r, whole ? 30 : 60) ? FUZZ_SMALL
                : whole && fuzz_chance(r, 50)   ? FUZZ_INDEX
                                                : (uint8_t)fuzz_below(r, FUZZ_VALUES);
    v->grad = FUZZ_NO_GRAD;
    v->grad_form = FUZZ_FORMS;
    v->state = false;
    v->seed = fuzz_next(r);
    v->entry = fuzz_entry_add(c, FUZZ_NONE, c->variable_count, dtype, shape);
    c->variable_count++;
    return v->entry;
}

uint32_t fuzz_case_root(const fuzz_case *c, uint32_t entry)
{
    while (c->entries[entry].node != FUZZ_NONE && c->nodes[c->entries[entry].node].view)
        entry = c->edges[c->nodes[c->entries[entry].node].first_edge];
    return entry;
}

bool fuzz_case_needed(const fuzz_case *c, uint32_t entry, uint32_t node)
{
    const uint32_t root = fuzz_case_root(c, entry);

    for (uint32_t n = node + 1; n < c->node_count; n++)
        for (uint32_t i = 0; i < c->nodes[n].in_count; i++)
            if (fuzz_case_root(c, c->edges[c->nodes[n].first_edge + i]) == root)
                return true;
    for (uint32_t h = 0; h < c->head_count; h++)
        if (fuzz_case_root(c, c->heads[h].entry) == root)
            return true;
    return false;
}

void fuzz_case_live(const fuzz_case *c, bool live[FUZZ_NODES_MAX])
{
    memset(live, 0, FUZZ_NODES_MAX * sizeof *live);
    for (uint32_t h = 0; h < c->head_count; h++)
        if (c->entries[c->heads[h].entry].node != FUZZ_NONE)
            live[c->entries[c->heads[h].entry].node] = true;
    for (uint32_t n = c->node_count; n-- > 0;)
        for (uint32_t i = 0; live[n] && i < c->nodes[n].in_count; i++) {
            const uint32_t from = c->entries[c->edges[c->nodes[n].first_edge + i]].node;

            if (from != FUZZ_NONE)
                live[from] = true;
        }
}

uint64_t fuzz_elements(const tn_shape *s)
{
    uint64_t count = s->ndim < 0 ? 0 : 1;

    for (int32_t d = 0; d < s->ndim; d++)
        if (s->dim[d] <= 0)
            return 0;
    for (int32_t d = 0; d < s->ndim; d++)
        if (!tni_size_mul(count, (uint64_t)s->dim[d], &count))
            return UINT64_MAX;
    return count;
}

/* ---- as text ------------------------------------------------------------------------------------------- */

static const char *const form_names[] = {"dense", "gaps", "rows", "turned", "offset", "stretched", "new"};
static const char *const value_names[] = {"small", "unit", "index", "zeros", "wild", "ones"};
static const char *const grad_names[] = {"null", "write", "add"};

static void entry_write(const fuzz_case *c, uint32_t entry, tni_str *out)
{
    const fuzz_entry *e = &c->entries[entry];

    if (e->node == FUZZ_NONE)
        tni_str_addf(out, "v%u", e->index);
    else
        tni_str_addf(out, "n%u.%u", e->node, e->index);
}

static void variable_write(const fuzz_case *c, uint32_t i, tni_str *out)
{
    const fuzz_variable *v = &c->variables[i];
    const fuzz_entry *e = &c->entries[v->entry];
    const char *dtype = tni_dtype_name(e->dtype);

    tni_str_addf(out, "  v%u = array %s ", i, dtype ? dtype : "?");
    tni_shape_format(&e->shape, out);
    tni_str_addf(out, " %s, values %s of seed %" PRIu64, form_names[v->form], value_names[v->values],
                 v->seed);
    if (v->grad != FUZZ_NO_GRAD)
        tni_str_addf(out, ", gradient %s (%s)", grad_names[v->grad], form_names[v->grad_form]);
    tni_str_add(out, "\n");
}

static void node_write(const fuzz_case *c, uint32_t i, tni_str *out)
{
    const fuzz_node *n = &c->nodes[i];

    tni_str_addf(out, "  n%u = %s(", i, fuzz_text_at(c, n->op));
    for (uint32_t k = 0; k < n->in_count; k++) {
        tni_str_add(out, k ? ", " : "");
        entry_write(c, c->edges[n->first_edge + k], out);
    }
    for (uint32_t a = 0; a < n->attr_count; a++) {
        const fuzz_attr *at = &c->attrs[n->first_attr + a];

        tni_str_addf(out, "%s%s=\"%.300s\"", n->in_count || a ? ", " : "", fuzz_text_at(c, at->name),
                     fuzz_text_at(c, at->text));
    }
    tni_str_add(out, ")");
    if (n->inplace != FUZZ_NONE)
        tni_str_addf(out, " over its input %u", n->inplace);
    for (uint32_t o = 0; o < n->out_count; o++) {
        const fuzz_entry *e = &c->entries[n->first_entry + o];
        const char *dtype = tni_dtype_name(e->dtype);

        tni_str_addf(out, "%s%s ", o ? ", " : " -> ", dtype ? dtype : "?");
        tni_shape_format(&e->shape, out);
    }
    tni_str_add(out, "\n");
}

/* Somebody reads it, or it has a gradient. */
static bool variable_counts(const fuzz_case *c, uint32_t i, const bool *live)
{
    bool counts = c->variables[i].grad != FUZZ_NO_GRAD;

    for (uint32_t h = 0; h < c->head_count; h++)
        counts |= c->heads[h].over == i || c->heads[h].entry == c->variables[i].entry;
    for (uint32_t n = 0; n < c->node_count; n++)
        for (uint32_t k = 0; live[n] && k < c->nodes[n].in_count; k++)
            counts |= c->edges[c->nodes[n].first_edge + k] == c->variables[i].entry;
    return counts;
}

void fuzz_case_write(const fuzz_case *c, tni_str *out)
{
    static const char *const flags[] = {FUZZ_FLAGS};
    bool live[FUZZ_NODES_MAX];

    fuzz_case_live(c, live);
    for (uint32_t i = 0; i < c->variable_count; i++)
        if (variable_counts(c, i, live))
            variable_write(c, i, out);
    for (uint32_t i = 0; i < c->node_count; i++)
        if (live[i])
            node_write(c, i, out);
    for (uint32_t i = 0; i < c->head_count; i++) {
        const fuzz_head *h = &c->heads[i];

        tni_str_add(out, "  head ");
        entry_write(c, h->entry, out);
        if (h->over != FUZZ_NONE)
            tni_str_addf(out, ", written over v%u", h->over);
        else
            tni_str_addf(out, ", array %s", form_names[h->form]);
        if (h->backward)
            tni_str_addf(out, ", head gradient %s of seed %" PRIu64, value_names[h->grad], h->seed);
        tni_str_add(out, "\n");
    }
    tni_str_add(out, "  with");
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (c->flags >> i & 1u)
            tni_str_addf(out, " %s;", flags[i]);
    tni_str_addf(out, " mode %u\n", c->mode);
}
